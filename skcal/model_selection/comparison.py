"""Paired comparison of the risks of two fitted estimators."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from skcal._groups import law_of_mean
from skcal._matrices import as_factor, rowwise_quadratic, sum_over_pairs, times
from skcal._selection import LEVEL, simplest
from skcal._show import ShownRounded
from skcal._validation import InputError, row_blocks
from skcal.functions.base import read_feature_map
from skcal.model_selection import engine
from skcal.model_selection.adaptive import Spread
from skcal.model_selection.estimator import CalibrationErrorEstimator
from skcal.notions import Problem, Problems
from skcal.pair_risk import PairRisk, excess_risk

#: Differences below this are rounding: residuals are probabilities, so risks are of order 1.
LAST_DIGIT = 1e-15
_FEW_PAIRS = 256  # samples of a group, of which pairs cost less than the call of a function


@dataclass(frozen=True, eq=False)
class RiskComparison(ShownRounded):
    """Difference of two risks on the same samples.

    Attributes
    ----------
    difference : float
        Risk of a minus risk of b; negative: a is better.
    standard_error : float
        The standard error of the difference, given the fitted functions; 0 for identical functions,
        inf for the one pair that two samples make.
    pvalue : float
        Two-sided normal p-value of equal risks; 1 for identical functions. Conservative: equally
        good functions differ significantly less often than the level says.
    identical : bool
        Whether the two functions agree on all samples, so that there is nothing to test.
    """

    difference: float
    standard_error: float
    pvalue: float
    identical: bool = False

    def __str__(self):
        return self.sentence()

    def sentence(self) -> str:
        """Return which risk is lower, in words."""
        if self.identical:
            return "identical on these samples (p = 1)"
        verdict = "a has the lower risk" if self.difference < 0 else "b has the lower risk"
        if self.pvalue > LEVEL:
            verdict = "not told apart at the 5 % level"
        return (
            f"risk(a) - risk(b) = {self.difference:.3g} ± {self.standard_error:.2g}, "
            f"p = {self.pvalue:.3g}: {verdict}"
        )


def compare_risks(a, b, X, y, sample_weight=None, groups=None) -> RiskComparison:
    """Test whether two fitted estimators have equal risks, on samples that neither was fitted to.

    The irreducible part of the risk cancels in the paired difference. So functions can be ranked
    even if the error bars of their single risks overlap.

    Parameters
    ----------
    a, b : CalibrationErrorEstimator
        Fitted, of the same notion and classes; a fitted
        :class:`~skcal.CalibrationErrorSearchCV` stands for its best estimator.
    X : array-like of shape (n_samples,) or (n_samples, n_classes)
        Predictions.
    y : array-like of shape (n_samples,) or (n_samples, n_classes)
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    sample_weight : array-like of shape (n_samples,), default=None
        Importance weights of the pairs, w_i w_j.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other: pairs are of different groups, and the
        standard error is that of sums over groups. None: all are independent.

    Returns
    -------
    comparison : RiskComparison
        ``difference`` of the risks (first minus second), ``standard_error``, ``pvalue`` and whether
        both are ``identical``.

    Raises
    ------
    ValueError
        If the estimators differ in notion, classes, ``from_logits`` or ``pos_label``, or there are
        groups and the problems of the notion divide the samples ("top-label").

    Notes
    -----
    O(n (r_a + r_b + m)²) time. The normal p-value is conservative near degeneracy. The standard
    error is no less than what the predictions imply, so rare events that did not happen in these
    samples count. An example: 1,000 data sets with 1 % positives, n = 200 and two equally good
    functions. The Hájek standard error rejected 141 of them at 5 %, this one none.

    Examples
    --------
    >>> from skcal import CalibrationErrorEstimator, PlugIn, TemperatureScaling, Zero
    >>> from skcal.model_selection import compare_risks
    >>> from skcal.datasets import make_tempered
    >>> data = make_tempered(4000, temperature=2.0, random_state=0)
    >>> X, y = data.proba, data.labels
    >>> a, b = (
    ...     CalibrationErrorEstimator(function, "confidence").fit(X[:2000], y[:2000])
    ...     for function in (PlugIn(TemperatureScaling()), Zero())
    ... )
    >>> comparison = compare_risks(a, b, X[2000:], y[2000:])
    >>> bool(comparison.difference < 0), bool(comparison.pvalue < 0.05)
    (True, True)
    """
    a, b = _fitted_estimator("a", a), _fitted_estimator("b", b)
    _check_comparable(a, b)
    data = a._labelled(X, y, sample_weight, groups)
    difference = engine.excess(a.functions_, data) - engine.excess(b.functions_, data)
    if not data.groups.independent:
        difference = _between_groups(a, b, data, difference)
    implied = _implied_standard_error(a.functions_, b.functions_, data)
    standard_error = max(difference.standard_error, implied)
    compared = as_comparison([replace(difference, standard_error=standard_error)])
    if data.groups.independent or compared.identical or standard_error < LAST_DIGIT:
        return compared
    law = law_of_mean(data.groups.degrees_of_freedom(data.weight))
    return replace(compared, pvalue=float(2 * law.sf(abs(difference.value) / standard_error)))


def _between_groups(a, b, data: Problems, whole: PairRisk) -> PairRisk:
    """The difference over pairs of different groups, its standard error from sums over groups."""
    if not data.share_samples:
        raise InputError(
            "groups",
            "is not for a notion whose problems divide the samples.",
            "Use notion='confidence' or 'classwise'.",
        )
    weight, codes, n_groups = data.weight, data.groups.codes, data.groups.n_groups
    sums = _sums_over_others(whole, weight)
    mass = np.bincount(codes, weight, minlength=n_groups)
    for first, second, part in zip(a.functions_, b.functions_, data.parts, strict=True):
        within = _sums_within_groups(first, part) - _sums_within_groups(second, part)
        sums -= part.share * within
    others = weight.sum() - mass[codes]
    value = float(weight @ sums / (weight @ others))
    influence = 2 * weight / weight.sum() * (sums / others - value)
    error = float(np.sqrt(data.groups.variance_of_sum(influence)))
    return PairRisk(value, error, influence)


def _sums_within_groups(function, part: Problem) -> np.ndarray:
    """Σ_j w_j ℓ_ij of each sample over the others of its group, ℓ = h² - 2⟨δ_i, δ_j⟩h.

    Pairs are formed, of groups of equal size together, where that is less than their trace.
    """
    phi, form = read_feature_map(function, part.seen_by(function)), as_factor(function.form_)
    weight, delta = part.weight, part.residuals
    width = phi.shape[1] + delta.shape[1]
    order, sizes = np.argsort(part.groups.codes, kind="stable"), np.bincount(part.groups.codes)
    starts, sums = np.cumsum(sizes) - sizes, np.zeros(len(weight))
    for size in np.unique(sizes[sizes > 1]):
        members = order[starts[sizes == size][:, None] + np.arange(size)]
        if size > max(width, _FEW_PAIRS):
            for rows in members[(weight[members] > 0).sum(axis=1) > 1]:
                arguments = phi[rows], delta[rows], function.form_
                risk = excess_risk(*arguments, sample_weight=weight[rows])
                sums[rows] = _sums_over_others(risk, weight[rows])
            continue
        for some in row_blocks(len(members), 8 * size * (2 * size + 3 * width)):
            rows = members[some]
            h = _products(times(phi[rows.ravel()], form), phi[rows.ravel()], rows.shape)
            loss = h * (h - 2 * _products(delta[rows.ravel()], delta[rows.ravel()], rows.shape))
            loss[:, np.arange(size), np.arange(size)] = 0
            sums[rows] = np.einsum("gij,gj->gi", loss, weight[rows])
    return sums


def _products(left, right, shape) -> np.ndarray:
    """Inner products (n_groups, size, size) of the rows of each of some groups of equal size."""
    left, right = (part.toarray() if sparse.issparse(part) else part for part in (left, right))
    return left.reshape(*shape, -1) @ right.reshape(*shape, -1).transpose(0, 2, 1)


def _sums_over_others(risk: PairRisk, weight) -> np.ndarray:
    """Σ_{j≠i} w_j ℓ_ij of each sample, of which a risk keeps the influence."""
    influence = np.divide(risk.influence, weight, out=np.zeros(len(weight)), where=weight > 0)
    return (influence * weight.sum() / 2 + risk.value) * (weight.sum() - weight)


def _implied_standard_error(one, other, data) -> float:
    """Standard error of the difference if each outcome in turn followed its prediction.

    The difference is linear in the residual of a sample, -2 Σ_j h_ij ⟨δ_i, δ_j⟩ twice over, and
    the covariance of the residual under p is known. Events that have not happened count in it.
    """
    spread, places = Spread(len(data.weight)), np.arange(len(data.weight))
    for first, second, part in zip(one, other, data.parts, strict=True):
        if part.has_pairs:
            vectors = _weighted_residuals(first, part) - _weighted_residuals(second, part)
            scale = 4 * part.share * part.weight / sum_over_pairs(part.weight)
            spread.add(places[part.rows], part.features, scale[:, None] * vectors)
    if data.groups.independent:
        return float(np.sqrt(spread.variances.sum()))
    return float(np.sqrt(data.dependent.variance_of_terms(np.sqrt(spread.variances))))


def _weighted_residuals(function, part) -> np.ndarray:
    """Σ_{j≠i} w_j h_ij δ_j of each sample i, (n_rows, m)."""
    phi, form = read_feature_map(function, part.seen_by(function)), as_factor(function.form_)
    diagonal = part.weight * rowwise_quadratic(phi, form)
    every_j = times(phi, form) @ (phi.T @ (part.weight[:, None] * part.residuals))
    return every_j - diagonal[:, None] * part.residuals


def _fitted_estimator(name, estimator) -> CalibrationErrorEstimator:
    """The fitted estimator, of a search the best one."""
    if hasattr(estimator, "candidates"):
        check_is_fitted(estimator)
        estimator = estimator.best_estimator_
    if not isinstance(estimator, CalibrationErrorEstimator):
        raise TypeError(
            f"{name} is {type(estimator).__name__}. Pass a fitted CalibrationErrorEstimator "
            "or CalibrationErrorSearchCV."
        )
    check_is_fitted(estimator)
    return estimator


def _check_comparable(a, b):
    for name in ("notion_", "from_logits", "pos_label"):
        if getattr(a, name) != getattr(b, name):
            raise ValueError(
                f"a has {name}={getattr(a, name)!r}, b has {getattr(b, name)!r}. Risks are "
                "comparable only for the same notion of calibration and kind of input."
            )
    if not np.array_equal(a.classes_, b.classes_):
        raise ValueError("a and b were fitted with different classes_. Pass the same labels=.")


def as_comparison(folds, difference=None) -> RiskComparison:
    """Average of differences over folds whose samples are disjoint, or a difference that is known.

    ``difference`` may come from more fits on these folds than its standard error does.
    """
    mean = float(np.mean([fold.value for fold in folds]))
    difference = mean if difference is None else difference
    standard_error = float(np.linalg.norm([fold.standard_error for fold in folds]) / len(folds))
    identical = max(abs(mean), standard_error) < LAST_DIGIT
    if identical:
        return RiskComparison(0.0, 0.0, 1.0, True)
    if standard_error < LAST_DIGIT:  # two samples make one pair, which has no spread
        return RiskComparison(difference, np.inf, 1.0)
    pvalue = float(2 * norm.sf(abs(difference) / standard_error))
    return RiskComparison(difference, standard_error, pvalue)


def compare_families(families, best) -> list[RiskComparison]:
    """Paired difference of the risk of each family's best setting to the best of all."""

    def compare(family):
        if family is best:
            return RiskComparison(0.0, 0.0, 1.0, identical=True)
        pairs = zip(family.excess_risks, best.excess_risks, strict=True)
        several = family.column_scores.shape[1] > len(family.excess_risks)
        difference = float(best.scores.max() - family.scores.max()) if several else None
        return as_comparison([one - other for one, other in pairs], difference)

    return [compare(family) for family in families]


#: From the simplest to the most flexible; what is not named comes between scaling and binning.
SIMPLICITY = (
    "Zero",
    "TemperatureScaling",
    "BetaCalibration",
    "IsotonicRegression",
    "SplineScaling",
    "VectorScaling",
    "MatrixScaling",
    "Structured MatrixScaling",
    None,
    "Binning",
    "TwoStepKernelRidge",
    "KroneckerKernelRidge",
    "DirichletKernelDensity",
    "Stacking",
)


def simplest_family(families, comparisons):
    """The simplest family whose risk is not significantly above the lowest."""
    names = [family.name if family.name in SIMPLICITY else None for family in families]
    return families[simplest(comparisons, [SIMPLICITY.index(name) for name in names])]
