"""Classical tests with a p-value in closed form, all of them asymptotic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from scipy.stats import chi2, f

from skcal._bins import bin_sums
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal._validation import InputError, row_blocks
from skcal.hypothesis_tests.result import (
    CalibrationTestResult,
    of_each_problem,
    positive,
    warn_of_limit,
)
from skcal.metrics.base import Outcome
from skcal.metrics.bins import BinRule
from skcal.metrics.limits import FEWEST_EVENTS, warn_if_few_events
from skcal.metrics.logistic import LogisticLine
from skcal.sample import Sample, read_sample, refuse_groups

_SCORE_ROUNDING = 1e-14
_EXCESS_BYTES = 2**19  # of float64, of which several stay in the processor's cache


def spiegelhalter_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str | Callable = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> CalibrationTestResult:
    """Spiegelhalter's z-test: compare the Brier score with its expectation if calibrated.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), or Sample
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str or callable, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more. "top-label" and
        "classwise" test each class and adjust by Holm's method. Classes that are never predicted
        are left out; their p-value is NaN. With vectors ("canonical", "top-K", lenses) the Brier
        score covers all their entries.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; they must not depend on the labels.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities are computed from them without loss of
        precision.

    Returns
    -------
    result : CalibrationTestResult
        ``statistic`` is z, ``estimate`` the excess of the Brier score over its expectation,
        positive for overconfident predictions; NaN for several classes. Two-sided p-value,
        asymptotic. ``confidence_interval()`` uses the variance of the sample or that under H0,
        whichever is larger. z uses that under H0, so the interval may hold 0 even if p < 0.05.

    Raises
    ------
    ValueError
        If the input is not valid. Also if every prediction is 0, ½ or 1 (vectors: certain, or alike
        in all classes), because then z is 0/0.

    Warns
    -----
    UserWarning
        If the predictions expect fewer than 5 effective events, where no limit holds.

    Notes
    -----
    There is no ``groups``: the limit is that of independent samples. If samples depend on each
    other, use :func:`monte_carlo_test` or :func:`cox_test` with ``groups``.

    Blind to miscalibration that leaves the Brier score as expected. Measured level at 5 %
    on confidences of model M1, C = 10, Dir(0.1): 3.8 % at n = 50, 5.1 % at n = 250 (2,000 data
    sets).

    References
    ----------
    .. [1] Spiegelhalter, Probabilistic prediction in patient management and clinical trials,
       Statistics in Medicine 1986.

    Examples
    --------
    >>> from skcal.hypothesis_tests import spiegelhalter_test
    >>> y, p = [0, 1, 1, 1] * 20, [0.1, 0.4, 0.2, 0.9] * 20
    >>> result = spiegelhalter_test(y, p)
    >>> round(result.statistic, 4), round(result.pvalue, 6)
    (4.6074, 4e-06)
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, groups=None, at_least=2)
    refuse_groups(sample.groups, "spiegelhalter_test", "Use monte_carlo_test.")
    return of_each_problem(sample, _excess_brier)


def _excess_brier(problem):
    """Spiegelhalter's z; of vectors with the Brier score Σ_k (o_k - x_k)²."""
    n, m = problem.features.shape
    weight, sums_of_weights = None, (n, n)
    if (problem.weight != 1).any():
        weight = problem.weight
        sums_of_weights = weight.sum(), weight @ weight
    blocks = row_blocks(n, 64 * m, most=_EXCESS_BYTES)
    sums = np.array([_moments_of_excess(problem, weight, rows) for rows in blocks]).T
    total, cross, squares, variance, _ = sums.sum(axis=1).tolist()
    weight, square_weights = sums_of_weights
    deviation, mean = np.sqrt(variance), total / weight
    if deviation <= _SCORE_ROUNDING * weight:
        raise ValueError(
            "Spiegelhalter's z has a variance of 0: every prediction in y_proba is 0, 0.5 or 1. "
            "Use monte_carlo_test."
        )
    warn_of_limit(*sums[3:])
    z = float(total / deviation)
    # "top-label" may have one sample of a class
    pairs = 1 - square_weights / weight**2 if n > 1 else np.inf
    # Σ w² (term - mean)², and as much more as a mean of the sample takes away
    seen = np.sqrt(max(squares - 2 * mean * cross + mean**2 * square_weights, 0) / pairs)
    spread = max(seen, deviation)
    return CalibrationTestResult(
        statistic=z,
        pvalue=positive(2 * ndtr(-abs(z))),
        estimate=float(mean),
        method="Spiegelhalter's z, asymptotic level",
        standard_error=float(spread / weight),
    )


def _moments_of_excess(problem, weight, rows):
    """Weighted sums of the terms, of their squares, and of their moments 2 and 4 under H0.

    Without weights the first two are the same.
    """
    X, delta = (
        array[rows].astype(np.float64, copy=False)
        for array in (problem.features, problem.residuals)
    )
    if X.shape[1] == 1:  # the moments of a hit's and a miss's term in closed form
        x = X[:, 0]
        slope, uncertain = 1 - 2 * x, 1 - x
        uncertain *= x
        terms, squares = delta[:, 0] * slope, slope * slope
        variances = uncertain * squares
        fourth_moments = uncertain
        fourth_moments *= -3
        fourth_moments += 1
        fourth_moments *= squares
        fourth_moments *= variances
    else:
        terms = np.sum(delta * (1 - 2 * X), axis=1)
        squares = (2 * (np.sum(X**2, axis=1, keepdims=True) - X)) ** 2
        variances, fourth_moments = np.sum(X * squares, axis=1), np.sum(X * squares**2, axis=1)
    if weight is None:
        total = cross = terms.sum()
    else:
        terms *= weight[rows]
        total, cross = terms.sum(), weight[rows] @ terms
        squares = weight[rows] ** 2
        variances *= squares
        fourth_moments *= squares**2  # a power of 4 is slow
    return total, cross, terms @ terms, variances.sum(), fourth_moments.sum()


@validate_params(
    {
        "n_bins": [Interval(Integral, 3, 100_000, closed="both")],
        "strategy": [StrOptions({"uniform", "quantile"})],
        "min_expected": [Interval(Real, 0, None, closed="left")],
        "external": ["boolean"],
    }
)
def hosmer_lemeshow_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    n_bins: int = 10,
    strategy: Literal["uniform", "quantile"] = "quantile",
    min_expected: float = 5,
    external: bool = True,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> CalibrationTestResult:
    """Hosmer-Lemeshow goodness-of-fit test of calibration in bins.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), or Sample
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : {"auto", "binary", "confidence", "top-label", "classwise"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more. The last two test each
        class and adjust by Holm's method.
    n_bins : int ≥ 3, default=10
        The number of bins.
    strategy : {"quantile", "uniform"}, default="quantile"
        The rule of the bins, as in :func:`skcal.metrics.expected_calibration_error`; equal
        predictions share a bin.
    min_expected : float ≥ 0, default=5
        Fewest positives and fewest negatives that the predictions expect in a bin: neighbouring
        bins are merged until they have them. 0 leaves the bins as they are.
    external : bool, default=True
        Whether the samples are other than those that the model was fitted to: degrees of freedom
        are the number of bins, else that minus 2.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; they must not depend on the labels.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities are computed from them without loss of
        precision.

    Returns
    -------
    result : CalibrationTestResult
        ``estimate`` is NaN; asymptotic.

    Raises
    ------
    ValueError
        If the input is not valid, or a bin holds certain predictions only (all 0 or all 1). Also if
        all samples together (or those of one class) expect fewer than ``min_expected`` of either
        outcome.

    Notes
    -----
    The statistic Σ_b (O_b - E_b)² / (E_b (1 - E_b / n_b)) is compared with χ². There is no
    ``groups``: the limit is that of independent samples. If samples depend on each other, use
    :func:`monte_carlo_test` or :func:`cox_test` with ``groups``.

    The value depends on the bins. Measured level at 5 % (400 data sets, standard error 1 %):
    confidences of model M1, C = 10, Dir(0.1), 3.5 % at n = 50 and 5.0 % at n = 250; 1 % positives,
    2.5 % at n = 500 and 6.8 % at n = 3,000; 20 classes, Dir(10), n = 200, 6.8 %. Without merging,
    ``min_expected=0``, 12.2 % for 1 % positives at n = 500.

    References
    ----------
    .. [1] Hosmer & Lemeshow, Goodness of fit tests for the multiple logistic regression model,
       Comm. Statist. A 1980.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.hypothesis_tests import hosmer_lemeshow_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> hosmer_lemeshow_test(rng.uniform(size=500) < p**2, p).pvalue < 1e-6
    True
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, groups=None, scalar=True)
    refuse_groups(sample.groups, "hosmer_lemeshow_test", "Use monte_carlo_test.")
    rule = BinRule(n_bins, strategy)
    return of_each_problem(sample, lambda p: _hosmer_lemeshow(p, rule, min_expected, external))


def _hosmer_lemeshow(problem, rule, min_expected, external):
    sums, w = rule.moments(problem), problem.weight[:, None]
    values = np.hstack([w * problem.features, w**2])
    expected, squares = bin_sums(sums.bins, values, len(sums.weight)).T
    table = np.stack([sums.weight, expected, squares, sums.residuals[:, 0]], axis=1)
    weight, expected, squares, gaps = _merge_bins(table[sums.weight > 0], min_expected).T
    variance = squares / weight * expected * (1 - expected / weight)
    certain = variance <= 1e-12 * weight
    if (certain & (np.abs(gaps) > 1e-9)).any() or certain.all():
        raise ValueError(
            "A bin holds only predictions of 0 or 1 in y_proba, whose variance is 0. Use "
            "monte_carlo_test."
        )
    statistic = float((gaps[~certain] ** 2 / variance[~certain]).sum())
    freedom = int((~certain).sum()) - (0 if external else 2)
    if freedom < 1:
        raise ValueError(
            f"{int((~certain).sum())} bins are too few with external={external}. Pass more n_bins."
        )
    return CalibrationTestResult(
        statistic=statistic,
        pvalue=positive(chi2.sf(statistic, freedom)),
        method=f"Hosmer-Lemeshow, χ² with {freedom} degrees of freedom, asymptotic level",
    )


def _merge_bins(table, least):
    """Rows (Σ w, Σ w p, Σ w², gap) of neighbouring bins summed until enough is expected."""

    def enough(row):  # of as many samples of equal weight as those are worth
        return min(row[1], row[0] - row[1]) * row[0] >= least * row[2]

    rows: list[np.ndarray] = []
    rest = np.zeros(4)
    for row in table:
        rest = rest + row
        if enough(rest):
            rows, rest = [*rows, rest], np.zeros(4)
    if rows:
        rows[-1] = rows[-1] + rest  # what is left over joins the last
        return np.stack(rows)
    worth = rest[0] / rest[2]
    raise ValueError(
        f"y_proba expects {rest[1] * worth:.3g} positives among {rest[0] * worth:.0f} samples, and "
        f"at least min_expected={least:g} of either outcome are needed. Use monte_carlo_test."
    )


@validate_params({"hypothesis": [StrOptions({"calibrated", "intercept", "slope"})]})
def cox_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    hypothesis: Literal["calibrated", "intercept", "slope"] = "calibrated",
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> CalibrationTestResult:
    """Likelihood ratio test of the calibration intercept and slope of Cox.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : {"auto", "binary", "confidence", "top-label", "classwise"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more. The last two test each
        class and adjust by Holm's method.
    hypothesis : {"calibrated", "intercept", "slope"}, default="calibrated"
        "calibrated": intercept 0 and slope 1, 2 degrees of freedom. "intercept": intercept 0 given
        slope 1; "slope": slope 1 with a free intercept; 1 degree of freedom each.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; they must not depend on the labels.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. See
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    result : CalibrationTestResult
        ``estimate`` is the intercept or the slope; NaN for "calibrated" and for several classes.
        From fewer than five events or non-events there is no slope, and a warning. Asymptotic.
        ``confidence_interval()`` is a normal one; that of the likelihood is in
        :func:`skcal.metrics.cox_recalibration`. With ``groups``, or weights that differ, it is
        Wald's test with the sandwich covariance of that function, against Hotelling's F.

    Raises
    ------
    ValueError
        If :func:`skcal.metrics.cox_recalibration` raises it, of a class by its name, or the groups
        or weights are too unequal: (Σ w)² / Σ_g w_g² must be above the number of coefficients
        that are tested.

    Notes
    -----
    Predictions of exactly 0 and 1 say nothing of a finite slope. If an outcome is against one of
    them, intercept 0 and slope 1 are impossible: the statistic is infinite.

    Measured level at 5 % of "calibrated", on confidences of model M1, C = 10, Dir(0.1): 4.3 % at
    n = 50, 6.4 % at n = 250 (2,000 data sets).

    References
    ----------
    .. [1] Cox, Two further applications of a model for binary regression, Biometrika 1958.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.hypothesis_tests import cox_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> cox_test(rng.uniform(size=500) < p**2, p).pvalue < 1e-6
    True
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, groups=groups, scalar=True)
    return of_each_problem(sample, lambda problem: _cox(problem, hypothesis))


def _cox(problem, hypothesis):
    """The likelihood ratio test of the coefficients, or with groups or weights Wald's test."""
    weight = problem.weight / problem.weight.mean()
    groups = problem.groups.or_singles(weight)
    outcome = Outcome(problem._replace(weight=weight, groups=groups))
    line, shift = LogisticLine(outcome), LogisticLine(outcome, slope=1)
    if hypothesis == "intercept":  # needs no slope, so no overlap either
        fit, tested = shift.fit(), slice(0, 1)
        shift.finite(fit.coefficients[0])
    else:
        line.check_overlap()
        fit, tested = line.fit(), slice(1 if hypothesis == "slope" else 0, 2)
    if groups.independent:
        null = shift.log_likelihood(shift.most_likely() if tested.start else [0.0])
        result = _likelihood_ratio(fit, tested, null)
    else:
        argument = "sample_weight" if problem.groups.independent else "groups"
        result = _wald(fit, tested, groups.effective_number(weight) - 1, argument)
    warn_if_few_events(line.events, FEWEST_EVENTS, "the limit", "Use monte_carlo_test.")
    if line.n_against and hypothesis != "intercept":  # what happened was excluded at slope 1
        many = f"{line.n_against:,} outcome{'s' * (line.n_against > 1)}"
        how = f"{many} against predictions of exactly 0 or 1, impossible at slope 1"
        return replace(result, statistic=np.inf, pvalue=positive(0.0), method=how)
    if hypothesis == "calibrated" or (hypothesis == "slope" and line.events < FEWEST_EVENTS):
        return result
    estimate, error = fit.coefficients[tested][0], fit.standard_errors[tested][0]
    return replace(result, estimate=float(estimate), standard_error=float(error))


def _wald(fit, tested, freedom, argument):
    """Wald's test of the coefficients against Hotelling's F; ``argument`` is the reason for it."""
    gap = (fit.coefficients - [0, 1][: len(fit.coefficients)])[tested]
    size, rest = len(gap), freedom - len(gap) + 1
    if rest <= 0:
        raise InputError(
            argument,
            f"leaves {freedom + 1:.2g} {'groups' if argument == 'groups' else 'samples'} in "
            "effect, as a few have most of the weight: too few for the covariance of the "
            "coefficients.",
            "Use monte_carlo_test.",
        )
    statistic = float(gap @ np.linalg.solve(fit.covariance[tested, tested], gap))
    return CalibrationTestResult(
        statistic=statistic,
        pvalue=positive(f.sf(statistic * rest / (size * freedom), size, rest)),
        method=f"Wald's with a sandwich covariance, F with {size} and {rest:.3g} degrees of "
        "freedom, asymptotic level",
        degrees_of_freedom=freedom,
    )


def _likelihood_ratio(fit, tested, null):
    """Twice the difference of the largest log-likelihoods."""
    statistic, freedom = max(2 * (fit.log_likelihood - null), 0.0), len(fit.coefficients[tested])
    return CalibrationTestResult(
        statistic=statistic,
        pvalue=positive(chi2.sf(statistic, freedom)),
        method=f"likelihood ratio, χ² with {freedom} degree(s) of freedom, asymptotic level",
    )
