"""Kernels on predictions and low-rank factors of their matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, solve_triangular
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

KERNEL_NAMES = frozenset(PAIRWISE_KERNEL_FUNCTIONS)

_UNIT_DIAGONAL = ("rbf", "laplacian")  # k(x, x) = 1
_DIAGONAL_BLOCK = 32
_PIVOT_BLOCK = 64
# A pivot may fall behind samples outside its block by this factor before the block ends.
_PIVOT_QUALITY = 0.25
# A remainder of k(x, x) below this share of the largest k(x, x) is rounding.
_REMAINDER = 1e-15


def kernel_matrix(X, Z, kernel: str | Callable, parameters: dict) -> np.ndarray:
    """Kernel values of all pairs of rows, shape (n, k), checked to be finite.

    Parameters
    ----------
    X, Z : ndarray of shape (n, d) and (k, d)
    kernel : str or callable
        A name in :data:`sklearn.metrics.pairwise.PAIRWISE_KERNEL_FUNCTIONS`, or a callable
        ``kernel(X, Z)`` that returns the matrix.
    parameters : dict
        ``gamma``, ``degree``, ``coef0``: those that a named kernel takes are passed on.
    """
    # scikit-learn's kernels of float32 are float32, too coarse for a factor.
    X, Z = X.astype(np.float64, copy=False), Z.astype(np.float64, copy=False)
    if callable(kernel):
        values = np.asarray(kernel(X, Z), dtype=np.float64)
        if values.shape != (len(X), len(Z)):
            raise ValueError(
                f"The kernel returned shape {values.shape}, not {(len(X), len(Z))}. A callable "
                "kernel(X, Z) must return the matrix of values for all pairs of rows."
            )
    else:
        values = pairwise_kernels(X, Z, metric=kernel, filter_params=True, **parameters)
    if not np.isfinite(values).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(
            f"The kernel returned {values[row, column]} for X row {X[row].tolist()} and "
            f"{Z[column].tolist()}. Its values must be finite."
        )
    return values


def kernel_diagonal(X, kernel, parameters) -> np.ndarray:
    """k(x, x) for each row, from small diagonal blocks."""
    if kernel in _UNIT_DIAGONAL:
        return np.ones(len(X))
    starts = range(0, len(X), _DIAGONAL_BLOCK)
    blocks = (X[start : start + _DIAGONAL_BLOCK] for start in starts)
    return np.concatenate(
        [np.diagonal(kernel_matrix(block, block, kernel, parameters)) for block in blocks]
    )


class KernelFactor(NamedTuple):
    """K ≈ ΨΨᵀ on the training samples, rotated so that ΦᵀWΦ = diag(s), Φ = ΨU.

    Attributes
    ----------
    landmarks : ndarray of shape (r, d)
        The samples that the features are built on.
    projection : ndarray of shape (r, r)
        φ(x) = k(x, landmarks) @ projection.
    features : ndarray of shape (n, r)
        φ of the training samples.
    eigenvalues : ndarray of shape (r,)
        s, ascending.
    trace_error : float
        Share of the (weighted) trace of K that ΨΨᵀ leaves out.
    approximation : {"low-rank", "exact", "nystroem"}
        Whether the tolerance (or rounding) was reached, the rank is n, or the rank limit came
        first.
    """

    landmarks: np.ndarray
    projection: np.ndarray
    features: np.ndarray
    eigenvalues: np.ndarray
    trace_error: float
    approximation: str


def factor_kernel(X, weight, kernel, parameters, tol, max_rank) -> KernelFactor:
    """Low-rank factor of a kernel matrix by pivoted Cholesky decomposition.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    weight : ndarray of shape (n,)
        Positive weights.
    kernel, parameters
        As in :func:`kernel_matrix`.
    tol : float
        Stop when the weighted trace error falls to this share of the trace.
    max_rank : int
        At most n. With the limit reached first the pivots are the landmarks of a Nyström
        approximation.

    Returns
    -------
    factor : KernelFactor

    Notes
    -----
    O(n r²) time, O(n r) memory; no n×n matrix unless r = n.
    """
    n_samples = len(X)
    pivots, psi, trace_error = _pivoted_cholesky(X, weight, kernel, parameters, tol, max_rank)
    if len(pivots) == n_samples:
        approximation = "exact"
    elif trace_error > tol and len(pivots) == max_rank:
        approximation = "nystroem"
    else:
        approximation = "low-rank"
    eigenvalues, rotation = eigh(psi.T @ (weight[:, None] * psi))
    # ψ(x) = L⁻¹ k(B, x) with K_BB = L Lᵀ, so φ(x) = Uᵀ ψ(x) = (L⁻ᵀ U)ᵀ k(B, x).
    projection = solve_triangular(psi[pivots], rotation, lower=True, trans="T")
    return KernelFactor(
        X[pivots], projection, psi @ rotation, eigenvalues, trace_error, approximation
    )


def _pivoted_cholesky(X, weight, kernel, parameters, tol, max_rank):
    """Return pivots (r,), Ψ (n, r) with K ≈ ΨΨᵀ, and the relative weighted trace error.

    Greedy pivots, found in blocks so that the work is matrix products: of the samples with the
    largest remainders those are taken, one after the other, that stay ahead of all samples outside
    the block.
    """
    diagonal = kernel_diagonal(X, kernel, parameters).astype(np.float64)
    scale = diagonal.max()
    if not diagonal.any():
        raise ValueError("k(x, x) is zero on all training samples. Choose another kernel.")
    if diagonal.min() < 0:
        _raise_indefinite(X, diagonal)
    rest, trace = diagonal.copy(), weight @ diagonal
    pivots, error = np.arange(0), 1.0
    factors: list[np.ndarray] = []
    while error > tol and len(pivots) < max_rank:
        block, outside = _largest(weight * rest, min(_PIVOT_BLOCK, len(X) - len(pivots)))
        columns = kernel_matrix(X, X[block], kernel, parameters)
        for psi in factors:
            columns -= psi @ psi[block].T
        chosen, lower = _choose_pivots(
            columns[block],
            weight[block],
            _PIVOT_QUALITY * outside,
            _REMAINDER * scale,
            max_rank - len(pivots),
        )
        if not len(chosen):
            break  # what is left is rounding
        psi = solve_triangular(lower, columns[:, chosen].T, lower=True, check_finite=False).T
        psi[pivots] = 0.0
        psi[block[chosen]] = lower
        pivots = np.append(pivots, block[chosen])
        factors.append(psi)
        rest -= np.einsum("ij,ij->i", psi, psi)
        rest[pivots] = 0.0
        if rest.min() < -1e-8 * scale:
            _raise_indefinite(X, rest)
        np.maximum(rest, 0.0, out=rest)
        error = float(weight @ rest / trace)
    return pivots, np.hstack(factors), error


def _largest(merit, size):
    """Positions of the largest values, and the largest of the others."""
    block = np.argpartition(-merit, size - 1)[:size]
    return block, np.delete(merit, block).max(initial=0.0)


def _choose_pivots(schur, weight, floor, smallest, most):
    """Pivoted Cholesky of a block's remainder, while the best pivot is worth taking."""
    factor = np.zeros((len(schur), min(len(schur), most)))
    rest = np.diagonal(schur).copy()
    chosen: list[int] = []
    for rank in range(factor.shape[1]):
        pivot = int(np.argmax(weight * rest))
        if rest[pivot] <= smallest or (chosen and weight[pivot] * rest[pivot] < floor):
            break
        factor[:, rank] = schur[:, pivot] - factor[:, :rank] @ factor[pivot, :rank]
        factor[:, rank] /= np.sqrt(rest[pivot])
        factor[chosen, rank] = 0.0
        chosen.append(pivot)
        rest -= factor[:, rank] ** 2
        rest[chosen] = 0.0
    return np.array(chosen, dtype=np.intp), factor[chosen, : len(chosen)]


def _raise_indefinite(X, rest):
    row = int(np.argmin(rest))
    raise ValueError(
        f"The kernel is not positive semidefinite: at X row {X[row].tolist()} the remainder of "
        f"k(x, x) is {rest[row]:.3g}. Choose a positive semidefinite kernel."
    )
