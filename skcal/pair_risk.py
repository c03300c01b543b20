"""The mean-squared-error risk of a calibration-estimation function, over pairs of samples.

The risk of h is the U-statistic ([GB]_, Eq. 16-20)

    R(h) = 1/(n(n-1)) Σ_{i≠j} (⟨δ_i, δ_j⟩ - h(x_i, x_j))²,

and for h(x, x') = φ(x)ᵀ M φ(x') the gap in the brackets is itself a bilinear form
z_iᵀ Q z_j, z = (δ, φ), Q = diag(I, -M). Sums of its squares over all pairs are traces of
(r+m)×(r+m) matrices, so no pair is ever formed: O(n (r+m)²) time, O(r+m) memory per block row.

Weights are importance weights: every sum over pairs is Σ_{i≠j} w_i w_j (…). A weight of 2
differs from a repeated row, whose copies would form pairs with each other.

References
----------
.. [GB] Gruber & Bach, Optimizing Estimators of Squared Calibration Errors in Classification,
   TMLR 2025.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_consistent_length

from skcal._matrices import (
    Factor,
    Matrix,
    as_factor,
    inner_product,
    rows_of,
    rowwise_dot,
    rowwise_quadratic,
    square_of_products,
    sum_over_pairs,
    times,
    times_rows,
)
from skcal._show import ShownRounded
from skcal._validation import check_weight, row_blocks

_Scatter: TypeAlias = dict[tuple[int, int], Matrix]  # blocks of ZᵀWZ


@dataclass(frozen=True, eq=False)
class PairRisk(ShownRounded):
    """A risk, or a difference of two, with its standard error given the fitted function.

    Attributes
    ----------
    value : float
        Mean over pairs of the squared gap; the unit is that of a squared-error squared.
    standard_error : float
        The standard error by the Hájek projection of the U-statistic: √Σ_i c_i², c the
        ``influence``. Two samples make one pair, which has no spread: 0.
    influence : ndarray of shape (n_samples,)
        Linear contribution of each sample to the deviation from the expected value.
    skipped : tuple of int
        Problems with fewer than two evaluation samples, which add nothing.
    """

    value: float
    standard_error: float
    influence: np.ndarray = field(repr=False)
    skipped: tuple[int, ...] = ()

    def sentence(self) -> str:
        """Return the risk in words."""
        return f"risk {self.value:.4g} ± {self.standard_error:.2g} (s.e.)"

    def __sub__(self, other: PairRisk) -> PairRisk:
        """Difference on the same samples, paired."""
        influence = self.influence - other.influence
        norm = float(np.linalg.norm(influence))
        return PairRisk(self.value - other.value, norm, influence, self.skipped)


def pair_risk(
    phi: ArrayLike | sparse.sparray,
    residuals: ArrayLike,
    form: ArrayLike | sparse.sparray | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> PairRisk:
    """Risk of h(x, x') = φ(x)ᵀ M φ(x') on evaluation samples, exact and without pairs.

    Parameters
    ----------
    phi : array-like or sparse array of shape (n_samples, r)
        Features φ(x_i).
    residuals : array-like of shape (n_samples,) or (n_samples, m)
        The residuals δ_i, observed minus predicted.
    form : array-like or sparse array of shape (r, r), default=None
        The symmetric M; None is the identity.
    sample_weight : array-like of shape (n_samples,), default=None
        Importance weights; a row of weight 0 is as good as removed.

    Returns
    -------
    risk : PairRisk

    Raises
    ------
    ValueError
        If fewer than two samples have positive weight.

    Notes
    -----
    O(n (r+m)²) time; memory beyond the arguments is bounded by ``working_memory``.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.pair_risk import pair_risk
    >>> residuals = np.array([0.5, -0.25, 0.25])
    >>> round(pair_risk(np.zeros((3, 1)), residuals).value, 6)
    0.011719
    """
    phi, residuals = _check_parts(phi, residuals)
    weight = check_weight(sample_weight, len(residuals))
    return _pair_mean(phi, residuals, as_factor(form), (1.0, 1.0), weight)


def excess_risk(
    phi: ArrayLike | sparse.sparray,
    residuals: ArrayLike,
    form: ArrayLike | sparse.sparray | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> PairRisk:
    """Risk of h minus that of h = 0, the mean of h² - 2⟨δ, δ'⟩h over pairs.

    The irreducible ⟨δ_i, δ_j⟩² is never computed, so that the difference of two functions, one's
    result minus the other's, keeps its digits and has its own, paired standard error. Parameters,
    errors and cost as of :func:`pair_risk`.
    """
    phi, residuals = _check_parts(phi, residuals)
    weight = check_weight(sample_weight, len(residuals))
    return _pair_mean(phi, residuals, as_factor(form), (0.0, 2.0), weight)


def dense_pair_risk(
    h: Callable[..., np.ndarray],
    X: ArrayLike,
    residuals: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> PairRisk:
    """Risk of any callable h, from its definition: the reference for :func:`pair_risk`.

    Parameters
    ----------
    h : callable
        ``h(X_rows, X)`` returns the (n_rows, n_samples) matrix of values.
    X : array-like of shape (n_samples, d)
        Features of the samples.
    residuals : array-like of shape (n_samples,) or (n_samples, m)
        Outcomes minus predictions, a column for each output.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; only their ratios matter. None: all equal.

    Returns
    -------
    risk : PairRisk

    Notes
    -----
    O(n²) time, in blocks of bounded memory.
    """
    X, residuals = _check_parts(X, residuals)
    weight = check_weight(sample_weight, len(residuals))
    sums, own = np.empty_like(weight), np.empty_like(weight)
    for rows in row_blocks(len(X), 24 * len(X)):
        loss = (residuals[rows].astype(np.float64) @ residuals.T - h(X[rows], X)) ** 2
        sums[rows] = loss @ weight
        own[rows] = np.diagonal(loss, offset=rows.start)
    return _u_statistic(sums, own, weight)


def pair_risk_path(
    phi: Matrix,
    residuals: np.ndarray,
    forms: Iterable[Matrix | None],
    *,
    sample_weight: ArrayLike | None = None,
    constant: float | None = None,
) -> np.ndarray:
    """Risks of several forms M on the same features φ, whose products are computed once.

    Parameters
    ----------
    phi : ndarray of shape (n_samples, r)
        Features φ(x), a row for each sample.
    residuals : ndarray of shape (n_samples,) or (n_samples, m)
        Outcomes minus predictions, a column for each output.
    forms : iterable of ndarray of shape (r, r)
        Symmetric matrices M; None is the identity.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; only their ratios matter. None: all equal.
    constant : float, default=None
        The sum of w w' ⟨δ, δ'⟩² over all pairs, with a sample itself, where it is known.

    Returns
    -------
    risks : ndarray of shape (n_forms,)
        What :func:`pair_risk` gives for each form, without standard errors.
    """
    phi, residuals = _check_parts(phi, residuals)
    phi, residuals = phi.astype(np.float64, copy=False), residuals.astype(np.float64, copy=False)
    weight = check_weight(sample_weight, len(residuals))
    pairs = sum_over_pairs(weight)
    norms = rowwise_dot(residuals, residuals)
    # With few samples pairs are the cheaper way.
    few = not sparse.issparse(phi) and len(phi) < phi.shape[1]
    if few:
        products = residuals @ residuals.T
    else:
        weighted = times_rows(residuals, np.sqrt(weight))
        square = square_of_products(weighted) if constant is None else constant
        scatter = _scatter([residuals, phi], weight, [(0, 1), (1, 1)])
        cross, inner = scatter[0, 1].T @ scatter[0, 1], scatter[1, 1]

    def risk(form: Factor) -> float:
        if few:
            h = times(phi, form) @ phi.T
            own = norms - np.diagonal(h)
            total = weight @ (products - h) ** 2 @ weight
        else:
            own = norms - rowwise_quadratic(phi, form)
            product = times(form, inner)  # tr(Q S Q S), Q = diag(I, -M)
            total = square - 2 * inner_product(cross, form) + inner_product(product, product.T)
        return (total - (weight * own) @ (weight * own)) / pairs

    # No form is held while the next one is made.
    return np.array(list(map(risk, map(as_factor, forms))))


def plug_in_risks(
    phis: Iterable[np.ndarray], residuals: np.ndarray, *, sample_weight: ArrayLike | None = None
) -> np.ndarray:
    """Risks of h(x, x') = ⟨φ(x), φ(x')⟩ for several φ; the part of the residuals is taken once.

    Parameters
    ----------
    phis : iterable of ndarray of shape (n_samples, m)
        Features of each candidate, all for the same samples.
    residuals : ndarray of shape (n_samples,) or (n_samples, m)
        Outcomes minus predictions, a column for each output.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; only their ratios matter. None: all equal.

    Returns
    -------
    risks : ndarray of shape (n_functions,)
        What :func:`pair_risk` gives for each, without standard errors.
    """
    residuals = np.asarray(residuals, dtype=np.float64).reshape(len(residuals), -1)
    weight = check_weight(sample_weight, len(residuals))
    root = np.sqrt(weight)
    weighted, norms = times_rows(residuals, root), rowwise_dot(residuals, residuals)
    constant, totals = square_of_products(weighted), []
    for phi in phis:
        # ΣΣ w w (⟨δ, δ'⟩ - ⟨φ, φ'⟩)² = ‖S_δδ‖² - 2 ‖S_φδ‖² + ‖S_φφ‖², S_φδ = Σ w φ δᵀ
        own = weight * (norms - rowwise_dot(phi, phi))
        phi = times_rows(phi, root)
        cross = phi.T @ weighted
        square = square_of_products(phi)
        totals.append(constant - 2 * inner_product(cross, cross) + square - own @ own)
    return np.array(totals) / sum_over_pairs(weight)


class PlugInSums:
    """The sums of :func:`plug_in_risks` over blocks of samples, where not all fit the memory."""

    def __init__(self, n_functions: int) -> None:
        self._weight: list[np.ndarray] = []
        self._residuals: Any = 0.0  # S_δδ
        # For each function: Σ w² (‖δ‖² - ‖φ‖²)², S_φδ, S_φφ
        self._of_functions: list[list[Any]] = [[0.0, 0.0, 0.0] for _ in range(n_functions)]

    def add(self, phis: Iterable[np.ndarray], residuals: np.ndarray, weight: np.ndarray) -> None:
        """Add some of the samples.

        Parameters
        ----------
        phis : iterable of ndarray of shape (n_rows, m)
            φ of every function at these samples.
        residuals : ndarray of shape (n_rows, d)
            Observed minus predicted.
        weight : ndarray of shape (n_rows,)
            Weights of the samples.
        """
        root = np.sqrt(weight)
        weighted, norms = times_rows(residuals, root), rowwise_dot(residuals, residuals)
        self._weight.append(weight)
        self._residuals += weighted.T @ weighted
        for sums, phi in zip(self._of_functions, phis, strict=True):
            own = weight * (norms - rowwise_dot(phi, phi))
            phi = times_rows(phi, root)
            sums[0] += own @ own
            sums[1] += phi.T @ weighted
            sums[2] += phi.T @ phi

    def risks(self) -> np.ndarray:
        """Return the risk of each function."""
        constant = inner_product(self._residuals, self._residuals)
        totals = [
            constant - 2 * inner_product(cross, cross) + inner_product(square, square) - own
            for own, cross, square in self._of_functions
        ]
        return np.array(totals) / sum_over_pairs(np.concatenate(self._weight))


def pair_products(
    parts: Sequence[tuple[Matrix, Matrix | None]],
    residuals: np.ndarray,
    sample_weight: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums over pairs of the products of several functions, with each other and the residuals'.

    With them the risk of Σ_k a_k h_k is, up to a constant and the factor 1/Σ_{i≠j} w_i w_j,
    aᵀGa - 2 mᵀa.

    Parameters
    ----------
    parts : sequence of (phi, form)
        φ (n_samples, r_k) and M of each function; None is the identity.
    residuals : ndarray of shape (n_samples, m)
        Outcomes minus predictions, a column for each output.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; only their ratios matter. None: all equal.

    Returns
    -------
    gram : ndarray of shape (n_functions, n_functions)
        G_kl = Σ_{i≠j} w_i w_j h_k(x_i, x_j) h_l(x_i, x_j).
    moments : ndarray of shape (n_functions,)
        m_k = Σ_{i≠j} w_i w_j h_k(x_i, x_j) ⟨δ_i, δ_j⟩.
    """
    weight = check_weight(sample_weight, len(residuals))
    # The residuals are one more function, h = ⟨δ, δ'⟩.
    parts = [(phi, as_factor(form)) for phi, form in [(residuals, None), *parts]]
    own = np.array([weight * rowwise_dot(times(phi, form), phi) for phi, form in parts])
    total = -(own @ own.T)
    for k, (phi, form) in enumerate(parts):
        for j, (other, other_form) in enumerate(parts[: k + 1]):
            scatter = phi.T @ times_rows(other, weight)  # tr(M_k S M_j Sᵀ), S = Φ_kᵀWΦ_j
            total[k, j] += inner_product(times(form, scatter), times(scatter, other_form))
            total[j, k] = total[k, j]
    return total[1:, 1:], total[1:, 0]


def one_step_terms(correction: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Terms ψ_i = 2⟨δ_i, ĝ(x_i)⟩ - ‖ĝ(x_i)‖² of the one-step estimate of E‖E[δ | x]‖².

    With ĝ fitted on *other* samples their mean has expectation E‖g*‖² - E‖ĝ - g*‖², the squared
    calibration error minus what ĝ misses: never too high. It is the Brier score that
    recalibrating by ĝ saves.

    Parameters
    ----------
    correction : ndarray of shape (n_samples, m)
        ĝ(x_i).
    residuals : ndarray of shape (n_samples, m)
        δ_i.

    Returns
    -------
    terms : ndarray of shape (n_samples,)
    """
    correction, residuals = _check_parts(correction, residuals)
    return rowwise_dot(correction, 2 * residuals - correction)


def weighted_mean(terms: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Weighted mean of independent terms and its standard error (n - 1 in the variance)."""
    share = weight / weight.sum()
    mean = float(share @ terms)
    spread = float(share**2 @ (terms - mean) ** 2)
    effective = 1 - float(share @ share)
    return mean, np.sqrt(spread / effective) if effective > 0 else np.nan


def add_problems(
    risks: Sequence[PairRisk | None],
    shares: Sequence[float],
    rows: Sequence[slice | np.ndarray],
    n_samples: int,
) -> PairRisk:
    """Share-weighted sum of the risks of several problems, None standing for a skipped one.

    Problems about the same samples are correlated, so their influences are added sample by
    sample before the variance is taken.
    """
    value, influence = 0.0, np.zeros(n_samples)
    for risk, share, members in zip(risks, shares, rows, strict=True):
        if risk is not None:
            value += share * risk.value
            influence[members] += share * risk.influence
    skipped = tuple(k for k, risk in enumerate(risks) if risk is None)
    return PairRisk(value, float(np.linalg.norm(influence)), influence, skipped)


def _pair_mean(
    phi: Matrix,
    residuals: np.ndarray,
    form: Factor,
    factors: tuple[float, float],
    weight: np.ndarray,
) -> PairRisk:
    """Weighted mean over i≠j of (a⟨δ_i, δ_j⟩ - h_ij)(b⟨δ_i, δ_j⟩ - h_ij), a and b the factors."""
    # [GB] Eq. (20): Σ_j w_j (z_i'L z_j)(z_i'R z_j) = z_i'L S R z_i with z = (δ, φ), S = Z'WZ,
    # L = diag(a, -M) and R = diag(b, -M).
    a, b = factors
    scatter = _scatter([residuals, phi], weight)
    outcomes, cross = a * b * scatter[0, 0], -(a + b) * times(scatter[0, 1], form)
    inner = times(times(form, scatter[1, 1]), form)
    sums, own = np.zeros(len(weight)), np.empty(len(weight))
    for rows in _row_parts([residuals, phi]):
        delta, own_phi = rows_of(residuals, rows), rows_of(phi, rows)
        sums[rows] = rowwise_dot(delta @ cross, own_phi) + rowwise_quadratic(own_phi, inner)
        if a * b:
            sums[rows] += rowwise_quadratic(delta, outcomes)
        norms, h = rowwise_dot(delta, delta), rowwise_quadratic(own_phi, form)
        own[rows] = (a * norms - h) * (b * norms - h)
    return _u_statistic(sums, own, weight)


def quadratic_form(phi: Matrix, form: Matrix | None) -> np.ndarray:
    """φᵀMφ of each row of φ (n, r); None is the identity."""
    return rowwise_quadratic(phi, as_factor(form))


def _row_parts(parts: Sequence[Matrix]) -> Iterator[slice]:
    return row_blocks(parts[0].shape[0], 8 * 4 * sum(part.shape[1] for part in parts))


def _scatter(
    parts: Sequence[Matrix], weight: np.ndarray, wanted: list[tuple[int, int]] | None = None
) -> _Scatter:
    """S = ZᵀWZ, its blocks on and above the diagonal, or those that are wanted."""
    if wanted is None:
        wanted = [(i, j) for j in range(len(parts)) for i in range(j + 1)]
    scatter: _Scatter = {}
    root = np.sqrt(weight)  # ZᵀZ of one matrix costs half of a product of two
    for rows in _row_parts(parts):
        z = [times_rows(rows_of(part, rows), root[rows]) for part in parts]
        for i, j in wanted:
            scatter[i, j] = scatter.get((i, j), 0.0) + z[i].T @ z[j]
    return scatter


def _u_statistic(sums: np.ndarray, own: np.ndarray, weight: np.ndarray) -> PairRisk:
    """U-statistic and Hájek projection from row sums Σ_j w_j ℓ_ij and the diagonal ℓ_ii."""
    total = weight.sum()
    others = total - weight
    pairs = sum_over_pairs(weight)
    row_sums = sums - weight * own
    value = float(weight @ row_sums / pairs)
    # A row of weight 0 has no influence, and the only row of positive weight no others.
    mean = np.divide(row_sums, others, out=np.full_like(sums, value), where=others > 0)
    influence = 2 * weight / total * (mean - value)
    return PairRisk(value, float(np.linalg.norm(influence)), influence)


def _check_parts(
    phi: ArrayLike | sparse.sparray, residuals: ArrayLike
) -> tuple[Matrix, np.ndarray]:
    """Features and residuals as (n, r) and (n, m) arrays of equal lengths."""
    phi = phi if sparse.issparse(phi) else np.asarray(phi)
    residuals = np.asarray(residuals)
    check_consistent_length(phi, residuals)
    return phi, residuals[:, None] if residuals.ndim == 1 else residuals
