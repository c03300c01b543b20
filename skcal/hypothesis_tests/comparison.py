"""Comparison of the calibration of two classifiers on the same samples."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.polynomial.legendre import legvander
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from skcal._groups import FEW_OF_COMPARISONS, Groups, degrees_of_freedom, law_of_mean
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal._validation import row_blocks
from skcal.hypothesis_tests.result import CalibrationTestResult, positive
from skcal.kernels import Kernel
from skcal.metrics.limits import FEWEST_EVENTS, warn_if_few_events
from skcal.sample import Sample, read_sample, refuse_groups

_SHARED_CLASSES = 10  # up to here every residual sees the polynomials of all probabilities
_MANY_CLASSES = 100  # of more the polynomials are straight lines
_DEPENDENT = 1e-4  # eigenvalue of a direction that rounding tells from the others
_ROUNDING = 1e-12
_SQUARED_ROWS = 2000  # between which the mean of h² is taken
_BLOCK_BYTES = 2**24


@validate_params(
    {
        "method": [StrOptions({"projection", "skce"})],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "kernel": [StrOptions({"laplacian", "rbf"}), callable],
        "bandwidth": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"})],
    },
    prefer_skip_nested_validation=False,
)
def compare_calibration(
    y_true: ArrayLike,
    y_proba_a: ArrayLike,
    y_proba_b: ArrayLike,
    *,
    notion: str | Callable = "auto",
    method: str = "projection",
    degree: int = 3,
    kernel: str | Callable = "laplacian",
    bandwidth: float | str = "median",
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> CalibrationTestResult:
    """Test whether two classifiers are equally miscalibrated on the same samples.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba_a, y_proba_b : array-like of shape (n_samples,) or (n_samples, n_classes)
        Predictions of the two classifiers for the same samples, in the same order.
    notion : str or callable, default="auto"
        "auto" is "binary" for 1-D predictions and two columns, and "confidence" otherwise.
    method : {"projection", "skce"}, default="projection"
        "projection": difference of the squared calibration errors that the predictions and
        polynomials of their ranks can mend. "skce": difference of the unbiased squared kernel
        calibration errors, with the same kernel and width on both sides.
    degree : int ≥ 1, default=3
        The degree of the polynomials of "projection"; a larger one sees finer errors, noisily.
    kernel : {"laplacian", "rbf"} or callable, default="laplacian"
    bandwidth : float > 0 or "median", default="median"
        The width of the kernel, for "skce"; "median" is that of both classifiers' predictions
        together.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other, for "projection"; None: all are independent.
        See :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D or two-column predictions.

    Returns
    -------
    result : CalibrationTestResult
        ``estimate`` is the squared calibration error of a minus that of b, as far as the method
        sees it; negative: a is better. ``confidence_interval()`` is a normal one. Two-sided
        p-value, asymptotic.

    Raises
    ------
    ValueError
        If the input is not valid, the two have different shapes, or the difference is the same for
        every sample.

    Notes
    -----
    The estimate is a difference of two U-statistics, each the mean of W_ij ⟨δ_i, δ_j⟩ over pairs
    i ≠ j. W depends on the predictions alone, so that the mean is exactly zero for every calibrated
    classifier, sharp or flat. For "projection" W_ij = ψ(x_i)ᵀ (ΨᵀΨ/n)⁻¹ ψ(x_j) with
    Legendre polynomials ψ of the mid-ranks and the probabilities themselves, and the expectation is
    the squared norm of the projection of E[δ | x] on them. Up to 10 probabilities, every residual
    sees the polynomials of all; of more, those of its own probability, and above 100 of degree 1.
    Errors of other shapes, such as a sawtooth, are not seen: raise ``degree`` or use "skce".

    The variance [1]_ is that of the linear part, 4 ζ₁/n, plus that of the degenerate part, the mean
    of 2 (h^a_ij - h^b_ij)² over pairs, divided by n (n - 1). Where both are calibrated only the
    second is there, and the test is conservative. Measured rejections are on the
    page "Levels and powers of single tests" of the documentation.

    SKCE weighs an error by how many predictions are near, so that it differs between a sharp and a
    flat classifier of equal error, where it rejects 72 %. Of a few events no test of this kind
    knows the variance: below a sum of ‖δ_i‖² of 5 there is a warning.

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
    """
    options = {"notion": notion, "labels": labels, "pos_label": pos_label, "at_least": 4}
    together: dict[str, Any] = {"groups": groups, "few_groups": FEW_OF_COMPARISONS}
    a = read_sample(y_true, y_proba_a, proba_name="y_proba_a", **options, **together)
    if np.shape(y_proba_a) != np.shape(y_proba_b):
        raise ValueError(
            f"y_proba_a has shape {np.shape(y_proba_a)}, y_proba_b {np.shape(y_proba_b)}; the "
            "classifiers must predict the same classes for the same samples."
        )
    b = read_sample(y_true, y_proba_b, proba_name="y_proba_b", **options)
    _warn_if_sure(a, b)
    if method == "projection":
        row_sums, square = _projection_sums(
            _Projection(a, degree), _Projection(b, degree), a.groups
        )
        name = f"paired projections on polynomials of degree {degree}"
    else:
        refuse_groups(a.groups, "method='skce'", "Use method='projection'.")
        row_sums, square = _skce_sums(a, b, kernel, bandwidth)
        name = "paired SKCE"
    if a.groups is None:
        estimate, error = _mean_of_pairs(row_sums, square)
    else:
        estimate, error = _mean_of_group_pairs(row_sums, square, a.groups)
    freedom = degrees_of_freedom(a.weight, a.groups)
    z = estimate / error if error > 0 else 0.0
    return CalibrationTestResult(
        statistic=float(z),
        pvalue=positive(2 * law_of_mean(freedom).sf(abs(z))),
        estimate=float(estimate),
        method=f"{name}, asymptotic level",
        notion=a.notion,
        standard_error=float(error),
        degrees_of_freedom=freedom,
    )


def _warn_if_sure(a: Sample, b: Sample):
    """Warn where hardly any outcome was a surprise, so that its variance cannot be known."""
    surprises = max(
        float(sum((problem.residuals**2).sum() for problem in sample.problems()))
        for sample in (a, b)
    )
    warn_if_few_events(surprises, FEWEST_EVENTS, "the comparison", "Use more samples.")


def _mean_of_pairs(row_sums, square):
    """Mean of h_ij over pairs i ≠ j and its standard error, from Σ_j h_ij and the mean of h_ij²."""
    n = len(row_sums)
    means = row_sums / (n - 1)
    estimate = means.mean()
    of_means = np.sum((means - estimate) ** 2) / (n - 1)
    of_pairs = max(square - estimate**2, 0.0)
    # Each mean has noise of its own pairs, besides ζ₁, the variance of E[h_ij | i].
    linear = max(of_means - (of_pairs - of_means) / (n - 2), 0.0)
    error = np.sqrt((4 * (n - 2) * linear + 2 * of_pairs) / (n * (n - 1)))
    if estimate and error <= 1e-6 * abs(estimate):
        raise ValueError(
            "The difference is the same for every sample, so it has no standard error. More, and "
            "more varied, samples are needed."
        )
    return estimate, error


def _mean_of_group_pairs(row_sums, square, groups: Groups):
    """Mean over pairs of different groups and its standard error, from sums over the groups.

    Σ_{g'≠g} h_gg' and Σ_{g≠g'} (h_gg' - n_g n_g' θ)² / (Σ_{g≠g'} n_g n_g')², h_gg' the sum of h_ij
    over the samples of both groups.
    """
    sizes = groups.sums(np.ones(len(groups.codes)))
    n, n_groups = sizes.sum(), groups.n_groups
    pairs = n**2 - sizes @ sizes
    estimate = row_sums.sum() / pairs
    influence = 2 * (row_sums - sizes * (n - sizes) * estimate) / pairs
    linear = max(float(influence @ influence) - 4 * square, 0.0)
    return estimate, np.sqrt(n_groups / (n_groups - 1) * linear + 2 * square)


class _Projection:
    """Vectors u_i with ⟨u_i, u_j⟩ = W_ij ⟨δ_i, δ_j⟩, made block by block."""

    def __init__(self, sample: Sample, degree: int):
        self.n = len(sample.codes)
        self.factors: list[Any] = []  # whitened polynomials and the residuals that they multiply
        for problem in sample.problems():
            if len(problem.weight) > 1:
                self._add(problem, degree)
        self.width = sum(psi.shape[1] * delta.shape[1] for psi, delta in self.factors)

    def _add(self, problem, degree):
        X, m = problem.features, problem.features.shape[1]
        columns = [slice(0, m)] if m <= _SHARED_CLASSES else [slice(k, k + 1) for k in range(m)]
        for k in columns:
            psi = _whitened_polynomials(X[:, k], 1 if m > _MANY_CLASSES else degree)
            # Samples of other problems (of "top-label") have vectors of zeros.
            polynomials = np.zeros((self.n, psi.shape[1]))
            residuals = np.zeros((self.n, problem.residuals[:, k].shape[1]))
            polynomials[problem.rows] = psi / np.sqrt(problem.share)
            residuals[problem.rows] = problem.residuals[:, k]
            self.factors.append((polynomials, residuals))

    def block(self, rows: slice) -> np.ndarray:
        """Return the vectors of some samples, (n_rows, width)."""
        parts = [psi[rows, :, None] * delta[rows, None] for psi, delta in self.factors]
        return np.hstack([part.reshape(len(part), -1) for part in parts])


def _whitened_polynomials(X, degree):
    """The columns and polynomials of their mid-ranks, orthonormal over the samples."""
    n, spread = len(X), X.std(axis=0, dtype=np.float64)
    lines = (X - X.mean(axis=0, dtype=np.float64)) / np.where(spread > _ROUNDING, spread, np.inf)
    ranks = (2 * rankdata(X, axis=0) - 1) / n - 1
    curves = legvander(ranks, degree)[:, :, 1:].reshape(n, -1)
    psi = np.hstack([np.ones((n, 1)), curves, lines])
    eigenvalues, vectors = np.linalg.eigh(psi.T @ psi / n)
    kept = eigenvalues > _DEPENDENT * eigenvalues[-1]
    return psi @ (vectors[:, kept] / np.sqrt(eigenvalues[kept]))


def _projection_sums(a: _Projection, b: _Projection, groups: Groups | None) -> tuple:
    """Σ_j h_ij and the mean of h_ij², h_ij = ⟨u^a_i, u^a_j⟩ - ⟨u^b_i, u^b_j⟩, over j ≠ i."""
    signs = np.repeat([1.0, -1.0], [a.width, b.width])
    if groups is not None:
        return _group_sums(a, b, signs, groups)
    products, total = np.zeros((len(signs), len(signs))), np.zeros(len(signs))
    blocks = list(row_blocks(a.n, 16 * len(signs), most=_BLOCK_BYTES))
    for rows in blocks:
        U = np.hstack([a.block(rows), b.block(rows)])
        products += U.T @ U
        total += U.sum(axis=0)
    row_sums, own = np.empty(a.n), np.empty(a.n)
    for rows in blocks:
        U = np.hstack([a.block(rows), b.block(rows)])
        own[rows] = U**2 @ signs
        row_sums[rows] = U @ (signs * total) - own[rows]
    terms = products**2 * np.outer(signs, signs)
    squares = terms.sum() - own @ own
    if squares <= _ROUNDING * np.abs(terms).sum():  # the same predictions
        return np.zeros(a.n), 0.0
    return row_sums, squares / (a.n * (a.n - 1))


def _group_sums(a: _Projection, b: _Projection, signs, groups: Groups):
    """What :func:`_mean_of_group_pairs` takes, by the sums U_g of the vectors of each group."""
    U = np.zeros((groups.n_groups, len(signs)))
    for rows in row_blocks(a.n, 16 * len(signs), most=_BLOCK_BYTES):
        vectors = np.hstack([a.block(rows), b.block(rows)])
        np.add.at(U, groups.codes[rows], vectors)
    sizes = groups.sums(np.ones(a.n))
    own, total = U**2 @ signs, U.sum(axis=0)
    row_sums = U @ (signs * total) - own
    terms = (U.T @ U) ** 2 * np.outer(signs, signs)
    if terms.sum() - own @ own <= _ROUNDING * np.abs(terms).sum():  # the same predictions
        return np.zeros(len(own)), 0.0
    # Σ_{g≠g'} (h - n_g n_g' θ)²
    pairs = a.n**2 - sizes @ sizes
    estimate = row_sums.sum() / pairs
    weighted = sizes @ U
    mixed = weighted**2 @ signs - sizes**2 @ own
    of_sizes = (sizes @ sizes) ** 2 - (sizes**4).sum()
    squares = terms.sum() - own @ own - 2 * estimate * mixed + estimate**2 * of_sizes
    return row_sums, max(squares, 0.0) / pairs**2


def _skce_sums(a: Sample, b: Sample, kernel, bandwidth):
    """The same for h_ij = k(x_i, x_j) ⟨δ_i, δ_j⟩ of a minus that of b, summed over problems."""
    n = len(a.codes)
    pairs = list(zip(a.problems(), b.problems(), strict=True))
    if any(len(problem.weight) != n for pair in pairs for problem in pair):
        raise ValueError("notion='top-label' is not comparable by method='skce'.")
    few = np.linspace(0, n - 1, min(n, _SQUARED_ROWS)).round().astype(np.intp)
    row_sums, H = np.zeros(n), np.zeros((len(few), len(few)))
    for p, q in pairs:
        width = Kernel.of(kernel, bandwidth, np.vstack([p.features, q.features]))
        for problem, sign in ((p, 1), (q, -1)):
            X, delta = problem.features, problem.residuals.astype(np.float64, copy=False)
            row_sums += sign * _row_sums(width, X, delta)
            H += sign * width.matrix(X[few], X[few]) * (delta[few] @ delta[few].T)
    np.fill_diagonal(H, 0)
    return row_sums, np.vdot(H, H) / (len(few) * (len(few) - 1))


def _row_sums(kernel, X, delta):
    """Σ_j k(x_i, x_j) ⟨δ_i, δ_j⟩ over j ≠ i."""
    sums = np.einsum("ij,ij->i", delta, kernel.times(X, delta))
    return sums - kernel.paired(X, X) * np.einsum("ij,ij->i", delta, delta)
