"""Comparison of the calibration of two classifiers on the same samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.polynomial.legendre import legvander
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from skcal._groups import FEW_OF_COMPARISONS, law_of_mean
from skcal._labels import refuse_another_order
from skcal._sklearn_compat import Interval, StrOptions, is_named, validate_params
from skcal._validation import CONFIDENCE_LEVEL, InputError, row_blocks
from skcal.hypothesis_tests.error_interval import ErrorDifference, difference_of_errors
from skcal.hypothesis_tests.result import CalibrationTestResult, positive
from skcal.kernels import Kernel
from skcal.metrics.limits import FEWEST_EVENTS, warn_if_few_events
from skcal.notions import Problem
from skcal.sample import (
    Sample,
    read_sample,
    refuse_groups,
    require_given,
)

_SHARED_CLASSES = 10  # up to here every residual sees the polynomials of all probabilities
_MANY_CLASSES = 100  # of more the polynomials are straight lines
_COLLINEAR = 1e-4  # eigenvalue of a direction that rounding tells from the others
_SAME_PROBA = 1e-12
_SQUARED_ROWS = 2000  # between which the mean of h² is taken
_VECTOR_BYTES = 2**24
_AT_LEAST: dict[str, Any] = {"at_least": 4}


@dataclass(frozen=True, eq=False)
class ComparisonResult(CalibrationTestResult):
    """Result of :func:`compare_calibration`, beside what every test returns.

    Attributes
    ----------
    error_difference : ErrorDifference or None
        The calibration error of the first classifier minus that of the second, with its interval;
        None for vectors, which have no such error.
    """

    error_difference: ErrorDifference | None = field(default=None, repr=False)

    def sentence(self) -> str:
        """Return the difference of the calibration errors, or what the test says, in words."""
        if self.error_difference is None:
            return super().sentence()
        return self.error_difference.sentence()


@validate_params(
    {
        "method": [StrOptions({"projection", "skce"})],
        "degree": [Interval(Integral, 1, 100, closed="both")],
        "kernel": [StrOptions({"laplacian", "rbf"}), callable],
        "bandwidth": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"})],
        **CONFIDENCE_LEVEL,
    },
    prefer_skip_nested_validation=False,
    used_with={
        "degree": {"method": ("projection",)},
        "kernel": {"method": ("skce",)},
        "bandwidth": {"method": ("skce",), "kernel": is_named},
    },
)
def compare_calibration(
    y_true: ArrayLike | Sample,
    y_proba_a: ArrayLike | Sample,
    y_proba_b: ArrayLike | None = None,
    *,
    notion: str | Callable = "auto",
    method: Literal["projection", "skce"] = "projection",
    degree: int = 3,
    kernel: Literal["laplacian", "rbf"] | Callable = "laplacian",
    bandwidth: float | str = "median",
    confidence_level: float = 0.95,
    second_y_true: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> ComparisonResult:
    """Test whether two classifiers are equally miscalibrated on the same samples.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba_a : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Predictions of the first classifier; after a :class:`skcal.Sample` of that, the Sample of
        the second one, with the same outcomes, weights and groups.
    y_proba_b : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Predictions of the second classifier for the same samples, in the same order.
    notion : str or callable, default="auto"
        "auto" is "binary" for 1-D predictions and two columns, and "confidence" otherwise.
    method : {"projection", "skce"}, default="projection"
        "projection": difference of the squared calibration errors that the predictions and
        polynomials of their ranks can mend. "skce": difference of the unbiased squared kernel
        calibration errors, with the same kernel and width on both sides.
    degree : int from 1 to 100, default=3
        The degree of the polynomials of "projection"; a larger one sees finer errors, noisily.
    kernel : {"laplacian", "rbf"} or callable, default="laplacian"
    bandwidth : float > 0 or "median", default="median"
        The width of the kernel, for "skce"; "median" is that of both classifiers' predictions
        together.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of ``error_difference``.
    second_y_true : array-like of the shape of ``y_true``, default=None
        Outcomes of the second model, such as whether each of its own answers to the same questions
        is right. None: those of ``y_true``. Row i of all four arrays is the same question.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; only their ratios matter: the errors are those of a population in
        which a sample stands for as many as its weight says, and pairs count w_i w_j. A weight of 2
        is no repeated row, which would be another sample that agrees.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other, for "projection"; None: all are independent.
        See :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D or two-column predictions.
    from_logits : bool, default=False
        Whether ``y_proba_a`` and ``y_proba_b`` hold logits; probabilities are computed from them
        without loss of precision.

    Returns
    -------
    result : ComparisonResult
        ``error_difference`` holds the difference of the two calibration errors with its interval,
        and says it in a sentence; the test decides whether it is significant.
        ``estimate`` is the squared calibration error of a minus that of b, as far as the method
        measures it; negative: a is better. ``confidence_interval()`` is a normal one, with weights
        or ``groups`` one of Student's distribution. Two-sided p-value, asymptotic.

    Raises
    ------
    ValueError
        If the input is not valid, the two have different shapes, or the difference is the same for
        every sample, but not 0. Equal predictions of equal outcomes differ by 0 (p = 1).

    Notes
    -----
    The estimate is a difference of two U-statistics, each the mean of W_ij ⟨δ_i, δ_j⟩ over pairs i
    ≠ j. W depends only on the predictions, so that the mean is exactly zero for every calibrated
    classifier, sharp or flat. For "projection" W_ij = ψ(x_i)ᵀ (ΨᵀΨ/n)⁻¹ ψ(x_j) with Legendre
    polynomials ψ of the mid-ranks and the probabilities themselves, and the expectation is the
    squared norm of the projection of E[δ | x] on them. With up to 10 probabilities, every residual
    is projected on polynomials of all of them. With more, it is projected on those of its own
    probability, and with more than 100 on degree 1. Errors of other shapes, such as a sawtooth, are
    not detected: raise ``degree`` or use "skce".

    The variance [1]_ is that of the linear part, 4 ζ₁/n, plus that of the degenerate part, the mean
    of 2 (h^a_ij - h^b_ij)² over pairs, divided by n (n - 1). Where both are calibrated only the
    second is there, and the test is conservative. With ``groups`` or weights and single
    probabilities it is no smaller than what predictions and the estimated dependence imply. With
    several probabilities, Student's distribution of groups has no more degrees of freedom than half
    of Σ ‖δ_i‖², divided by the design effect, less 1. Samples whose weights differ are groups of
    one each: (Σ w)² / Σ w² - 1 degrees of freedom. The page "Levels and powers of single tests" of
    the documentation has measured rejections.

    SKCE weighs an error by how many predictions are near, so that it differs between a sharp and a
    flat classifier of equal error, where it rejects 72 %. With few events the variance cannot be
    estimated: below a sum of ‖δ_i‖² of 5, with weights (Σ w ‖δ‖²)² / Σ w² ‖δ‖², there is a warning.

    Swapping predictions between the classifiers is not offered: it tests exchangeability, not equal
    errors. O(n r²) time and O(n r) memory, r the number of polynomials times that of residuals;
    "skce" O(n log n) for scalar notions and O(n²) for vectors, with the mean of squares from 2,000
    evenly spaced samples at most.

    References
    ----------
    .. [1] Hoeffding, A class of statistics with asymptotically normal distribution, Ann. Math.
       Statist. 1948.

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> from skcal.hypothesis_tests import compare_calibration
    >>> data = make_tempered(1000, temperature=2.0, n_truth_draws=0, random_state=0)
    >>> better = data.proba**0.5 / (data.proba**0.5).sum(axis=1, keepdims=True)
    >>> result = compare_calibration(data.labels, data.proba, better)
    >>> result.estimate > 0, result.pvalue < 0.01
    (True, True)

    Two language models answer the same questions, each with its own right and wrong answers:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> stated = rng.choice([0.6, 0.8, 0.9, 1.0], size=(2, 800))
    >>> right_a, right_b = rng.random((2, 800)) < stated - [[0.0], [0.15]]  # b is overconfident
    >>> result = compare_calibration(right_a, stated[0], stated[1], second_y_true=right_b)
    >>> result.estimate < 0, result.pvalue < 0.01  # a is better
    (True, True)
    """
    options: dict[str, Any] = {"notion": notion, "labels": labels, "pos_label": pos_label}
    options |= {"sample_weight": sample_weight, "from_logits": from_logits}
    pair: tuple[Sample, Any]
    if isinstance(y_true, Sample):
        beside = {"y_proba_b": y_proba_b, "second_y_true": second_y_true, "groups": groups}
        beside |= {**options, "notion": None, "from_logits": from_logits or None}
        y_true.require_pairs(y_proba_a, "y_proba_a", **beside)
        pair = y_true, y_proba_a
    else:
        pair = _read_pair(y_true, y_proba_a, y_proba_b, second_y_true, groups, options)
        notion = "auto"
    options = {"degree": degree, "kernel": kernel, "bandwidth": bandwidth}
    asked: Any = notion, method, confidence_level
    return comparison_of(*pair, *asked, **options)


def comparison_of(
    a: Sample,
    b: Sample,
    notion: Any = "auto",
    method: str = "projection",
    confidence_level: float | None = 0.95,
    *,
    degree: int = 3,
    kernel: Any = "laplacian",
    bandwidth: Any = "median",
) -> ComparisonResult:
    """Compare two models on samples with the same weights and groups.

    Their outcomes may differ. Without a confidence level the difference of the errors is left out.
    """
    a = read_sample(a, notion=notion, **_AT_LEAST, groups=None, few_groups=FEW_OF_COMPARISONS)
    b = b.asked(a.notion).counted
    if method == "skce":
        refuse_groups(a.groups, "method='skce'", "Use method='projection'.")
    same = np.array_equal(a.happened, b.happened)
    if same and np.allclose(a.proba, b.proba, _SAME_PROBA, _SAME_PROBA):  # they differ by rounding
        b = a
    given = a, b
    a, b = (part._replace(weight=part.weight / part.weight.mean()) for part in (a, b))
    surprises = max(sum(map(_surprises, sample.problems())) for sample in (a, b))
    warn_if_few_events(surprises, FEWEST_EVENTS, "the comparison", "Use more samples.")
    a = a._replace(groups=a.groups.or_singles(a.weight))
    single, law = a.notion.single and not a.groups.independent, 0.0
    if method == "projection":
        vectors = _Vectors(a, b, degree)
        sums = vectors.sums()
        if single:
            law = _variance_of_pairs(vectors, a.problems()[0], b.problems()[0])
        name = f"paired projections on polynomials of degree {degree}"
    else:
        sums = _skce_sums(a, b, kernel, bandwidth)
        name = "paired SKCE"
    estimate, error = (_mean_of_pairs if a.groups.independent else _mean_of_group_pairs)(sums)
    error = max(error, np.sqrt(law))
    if estimate and error <= 1e-6 * abs(estimate):
        raise ValueError(
            "The difference is the same for every sample, so it has no standard error. More, and "
            "more varied, samples are needed."
        )
    freedom = a.groups.degrees_of_freedom(a.weight)
    if not (b.groups.independent or single):  # a group without a surprise says nothing of variance
        freedom = min(freedom, max(surprises / 2 - 1, 1.0))
    z = estimate / error if error > 0 else 0.0
    result = ComparisonResult(
        statistic=float(z),
        pvalue=positive(2 * law_of_mean(freedom).sf(abs(z))),
        estimate=float(estimate),
        method=f"{name}, asymptotic level",
        notion=a.notion,
        standard_error=float(error),
        degrees_of_freedom=freedom,
    )
    if not a.notion.scalar or confidence_level is None:
        return result
    difference = difference_of_errors(*given, result, confidence_level)
    return replace(result, error_difference=difference)


def _read_pair(y_true, y_proba_a, y_proba_b, second_y_true, groups, options):
    """The samples of two models, with the same weights and groups."""
    require_given(y_proba_a=y_proba_a, y_proba_b=y_proba_b)
    refuse_another_order({"y_proba_a": y_proba_a, "y_proba_b": y_proba_b})
    options = options | _AT_LEAST
    together: dict[str, Any] = {"groups": groups, "few_groups": FEW_OF_COMPARISONS}
    a = read_sample(y_true, y_proba_a, names=("y_true", "y_proba_a"), **options, **together)
    if np.shape(y_proba_a) != np.shape(y_proba_b):
        raise ValueError(
            f"y_proba_a has shape {np.shape(y_proba_a)}, y_proba_b {np.shape(y_proba_b)}; the "
            "classifiers must predict the same classes for the same samples."
        )
    if second_y_true is None:
        b = read_sample(y_true, y_proba_b, names=("y_true", "y_proba_b"), **options)
    else:
        b = _read_second_model(second_y_true, y_proba_b, a, options)
    return a, b._replace(groups=a.groups)


def _read_second_model(second_y_true, y_proba_b, a: Sample, options) -> Sample:
    """The second model with outcomes of its own, whose classes are those of the first."""
    if options["labels"] is None:
        options = options | {"labels": a.given_classes}
    names: dict[str, Any] = {"names": ("second_y_true", "y_proba_b")}
    b = read_sample(second_y_true, y_proba_b, **names, **options)
    if not np.array_equal(a.weight, b.weight):
        reason = "holds other numbers of votes than y_true, so that samples weigh differently."
        raise InputError("second_y_true", reason, "Pass shares in place of counts.")
    return b


def _surprises(problem) -> float:
    """How many outcomes were not predicted, of groups no more than their dependence leaves."""
    if not len(problem.weight):
        return 0.0
    squares, weight = (problem.residuals**2).sum(axis=1), problem.weight
    effective = (weight @ squares) ** 2 / (weight**2 @ squares or 1.0)
    return float(effective / problem.groups.design_effect(weight))


class _PairSums(NamedTuple):
    """Sums over pairs g ≠ g' of h_gg', of samples, or of groups by all of their samples.

    Attributes
    ----------
    sizes : ndarray of shape (n,)
        The weight of each.
    rows : ndarray of shape (n,)
        Σ_{g'≠g} h_gg' of each.
    squares, mixed : float
        Σ h_gg'² and Σ s_g s_g' h_gg' of the sizes s.
    """

    sizes: np.ndarray
    rows: np.ndarray
    squares: float
    mixed: float


def _mean_of_pairs(sums: _PairSums) -> tuple[float, float]:
    """Mean over pairs of samples of equal weight, and its standard error."""
    n = len(sums.rows)
    means = sums.rows / (n - 1)
    estimate = means.mean()
    of_means = np.sum((means - estimate) ** 2) / (n - 1)
    of_pairs = max(sums.squares / (n * (n - 1)) - estimate**2, 0.0)
    # Each mean has noise of its own pairs, besides ζ₁, the variance of E[h_ij | i].
    linear = max(of_means - (of_pairs - of_means) / (n - 2), 0.0)
    return estimate, np.sqrt((4 * (n - 2) * linear + 2 * of_pairs) / (n * (n - 1)))


def _mean_of_group_pairs(sums: _PairSums) -> tuple[float, float]:
    """Mean over pairs of different groups and its standard error over groups."""
    sizes, n_groups = sums.sizes, len(sums.sizes)
    total, squared = sizes.sum(), sizes @ sizes
    pairs = total**2 - squared
    estimate = sums.rows.sum() / pairs
    # Σ (h_gg' - s_g s_g' θ)²
    centred = sums.squares - 2 * estimate * sums.mixed
    centred += estimate**2 * (squared**2 - (sizes**4).sum())
    square = max(centred, 0.0) / pairs**2
    influence = 2 * (sums.rows - sizes * (total - sizes) * estimate) / pairs
    linear = max(float(influence @ influence) - 4 * square, 0.0)
    return estimate, np.sqrt(n_groups / (n_groups - 1) * linear + 2 * square)


def _variance_of_pairs(vectors: _Vectors, a: Problem, b: Problem) -> float:
    """Variance of the mean over pairs of groups by the law of the outcomes.

    With the vectors U of both models, signs S = ± and C, the covariance of Σ U, it is that of
    2 ⟨S E[Σ U], Σ U⟩, and 2 tr(S C S C), at most, of what is left where both are calibrated.
    """
    groups, weight, signs = a.groups, vectors.weight, vectors.signs
    if groups.strength == 0 and (weight == 1).all():  # what is seen will do
        return 0.0
    values = [weight[:, None] * psi for psi, *_ in vectors.factors]
    pairs_of = zip(values, vectors.factors, strict=True)
    total = np.hstack([value.T @ delta[:, 0] for value, (_, delta, _) in pairs_of])
    if np.allclose(a.outcomes, b.outcomes):
        chance = (a.features[:, 0] + b.features[:, 0]) / 2
        covariance = groups.covariance(np.hstack(values), chance)
    else:
        each = (
            groups.covariance(value, part.features[:, 0])
            for value, part in zip(values, (a, b), strict=True)
        )
        covariance = block_diag(*each)
    signed = signs[:, None] * covariance
    pairs = max(float(np.vdot(signed, signed.T)), 0.0)  # of the same model 0 but for rounding
    linear = float((signs * total) @ covariance @ (signs * total)) - pairs
    sizes = groups.sums(weight)
    return (4 * max(linear, 0.0) + 2 * pairs) / (sizes.sum() ** 2 - sizes @ sizes) ** 2


class _Vectors:
    """Vectors U of samples, w u of both classifiers, or their sums over groups, block by block.

    ⟨u_i, u_j⟩ = W_ij ⟨δ_i, δ_j⟩, and h_gg' = Σ_k ±_k U_gk U_g'k, with + for the first classifier.
    """

    def __init__(self, a: Sample, b: Sample, degree: int):
        self.weight = self.sizes = a.weight
        self.factors: list[Any] = []  # whitened polynomials, residuals that they multiply, and sign
        for sample, sign in ((a, 1.0), (b, -1.0)):
            for problem in sample.problems():
                if len(problem.weight) > 1:
                    self._add(problem, degree, sign)
        widths = [psi.shape[1] * delta.shape[1] for psi, delta, _ in self.factors]
        self.signs = np.repeat([sign for *_, sign in self.factors], widths)
        self.of_groups, groups, n = None, a.groups, len(a.weight)
        if groups.n_units(n) < n:
            U = np.zeros((groups.n_groups, len(self.signs)))
            for rows in self._blocks(n):
                np.add.at(U, groups.codes[rows], self._of(rows))
            self.of_groups, self.sizes = U, groups.sums(a.weight)

    def _add(self, problem, degree, sign):
        X, m = problem.features, problem.features.shape[1]
        columns = [slice(0, m)] if m <= _SHARED_CLASSES else [slice(k, k + 1) for k in range(m)]
        for k in columns:
            curved = 1 if m > _MANY_CLASSES else degree
            psi = _whitened_polynomials(X[:, k], problem.weight, curved)
            # Samples of other problems (of "top-label") have vectors of zeros.
            polynomials = np.zeros((len(self.weight), psi.shape[1]))
            residuals = np.zeros((len(self.weight), problem.residuals[:, k].shape[1]))
            polynomials[problem.rows] = psi / np.sqrt(problem.share)
            residuals[problem.rows] = problem.residuals[:, k]
            self.factors.append((polynomials, residuals, sign))

    def _blocks(self, n):
        return row_blocks(n, 16 * len(self.signs), most=_VECTOR_BYTES)

    def _of(self, rows: slice) -> np.ndarray:
        if self.of_groups is not None:
            return self.of_groups[rows]
        parts = [psi[rows, :, None] * delta[rows, None] for psi, delta, _ in self.factors]
        vectors = np.hstack([part.reshape(len(part), -1) for part in parts])
        return self.weight[rows, None] * vectors

    def sums(self) -> _PairSums:
        """Sums over pairs, without a pair; all 0 of the same predictions."""
        signs, n = self.signs, len(self.sizes)
        products, total = np.zeros((len(signs), len(signs))), np.zeros(len(signs))
        by_size = np.zeros(len(signs))
        for rows in self._blocks(n):
            U = self._of(rows)
            products += U.T @ U
            total += U.sum(axis=0)
            by_size += self.sizes[rows] @ U
        row_sums, diagonal = np.empty(n), np.empty(n)
        for rows in self._blocks(n):
            U = self._of(rows)
            diagonal[rows] = U**2 @ signs
            row_sums[rows] = U @ (signs * total) - diagonal[rows]
        terms = products**2 * np.outer(signs, signs)
        squares = terms.sum() - diagonal @ diagonal
        if squares <= _SAME_PROBA * np.abs(terms).sum():
            return _PairSums(self.sizes, np.zeros(n), 0.0, 0.0)
        mixed = by_size**2 @ signs - self.sizes**2 @ diagonal
        return _PairSums(self.sizes, row_sums, float(squares), float(mixed))


def _whitened_polynomials(X, weight, degree):
    """The columns and polynomials of their mid-ranks, orthonormal over the weighted samples."""
    n, share = len(X), weight / weight.sum()
    centred = X - np.average(X, axis=0, weights=weight)
    spread = np.sqrt(share @ centred**2)
    lines = centred / np.where(spread > _SAME_PROBA, spread, np.inf)
    ranks = np.column_stack([_mid_ranks(x, weight) for x in X.T])
    curves = legvander(ranks, degree)[:, :, 1:].reshape(n, -1)
    psi = np.hstack([np.ones((n, 1)), curves, lines])
    eigenvalues, vectors = np.linalg.eigh(psi.T @ (share[:, None] * psi))
    kept = eigenvalues > _COLLINEAR * eigenvalues[-1]
    return psi @ (vectors[:, kept] / np.sqrt(eigenvalues[kept]))


def _mid_ranks(x, weight) -> np.ndarray:
    """Ranks from -1 to 1: the weight of smaller values minus that of larger ones."""
    _, place = np.unique(x, return_inverse=True)
    mass = np.bincount(place, weight)
    return ((2 * np.cumsum(mass) - mass) / mass.sum() - 1)[place]


def _skce_sums(a: Sample, b: Sample, kernel, bandwidth) -> _PairSums:
    """The same for h_ij = w_i w_j k(x_i, x_j) ⟨δ_i, δ_j⟩ of a minus that of b, of all problems."""
    n, weight = len(a.codes), a.weight
    pairs = list(zip(a.problems(), b.problems(), strict=True))
    if any(len(problem.weight) != n for pair in pairs for problem in pair):
        raise ValueError("notion='top-label' is not comparable by method='skce'.")
    few = np.linspace(0, n - 1, min(n, _SQUARED_ROWS)).round().astype(np.intp)
    row_sums, H = np.zeros(n), np.zeros((len(few), len(few)))
    for p, q in pairs:
        width = Kernel.of(kernel, bandwidth, np.vstack([p.features, q.features]))
        for problem, sign in ((p, 1), (q, -1)):
            X = problem.features
            delta = weight[:, None] * problem.residuals.astype(np.float64, copy=False)
            row_sums += sign * _row_sums(width, X, delta)
            H += sign * width.matrix(X[few], X[few]) * (delta[few] @ delta[few].T)
    np.fill_diagonal(H, 0)
    many = n * (n - 1) / (len(few) * (len(few) - 1))
    mixed = weight[few] @ H @ weight[few]
    return _PairSums(weight, row_sums, float(many * np.vdot(H, H)), float(many * mixed))


def _row_sums(kernel, X, delta):
    """Σ_j k(x_i, x_j) ⟨δ_i, δ_j⟩ over j ≠ i."""
    sums = np.einsum("ij,ij->i", delta, kernel.times(X, delta))
    return sums - kernel.paired(X, X) * np.einsum("ij,ij->i", delta, delta)
