"""Pivoted Cholesky decomposition of a positive semidefinite matrix that is known by its rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dtrsm

_BLOCK, _FIRST_BLOCK = 128, 16
# A pivot may fall behind samples outside its block by this factor before the block ends.
_QUALITY = 0.25
_MERIT = 0.7  # of the best sample's, from which on a sample is a good candidate
# A remainder of the diagonal below this share of its largest entry is rounding.
_REMAINDER = 1e-15
_INDEFINITE = 1e-8  # a remainder this share below 0 is none


class IndefiniteError(ValueError):
    """A matrix is not positive semidefinite: what remains of the diagonal at ``row``."""

    def __init__(self, row: int, remainder: float):
        super().__init__(f"The remainder of row {row} is {remainder:.3g}.")
        self.row, self.remainder = row, remainder


def pivoted_cholesky(
    diagonal: np.ndarray,
    rows_at: Callable[[np.ndarray], np.ndarray],
    weight: np.ndarray,
    tol: float,
    max_rank: int,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return pivots (r,), Ψ (n, r) with K ≈ ΨΨᵀ, and the relative weighted trace error.

    ``rows_at(positions)`` gives rows of K (k, n), which are overwritten. Greedy pivots, found in
    blocks so that the work is matrix products: of candidates with large remainders those are
    taken, one after the other, that stay close to the largest remainder outside the block. Where
    few do, the next block is small.
    """
    scale, trace = diagonal.max(), weight @ diagonal
    _check_definite(diagonal, 0.0)
    rest, psi = diagonal.copy(), _Rows(len(diagonal), max_rank)
    pivots, error, size = np.arange(0), 1.0, _FIRST_BLOCK
    while error > tol and len(pivots) < max_rank:
        block, outside = _candidates(weight * rest, min(size, len(rest) - len(pivots)))
        remainder = rows_at(block)
        remainder -= psi.known[:, block].T @ psi.known
        floor, most = _QUALITY * outside, max_rank - len(pivots)
        chosen, lower = _choose_pivots(
            remainder[:, block], weight[block], floor, _REMAINDER * scale, most
        )
        if not len(chosen):
            break  # what is left is rounding
        new = psi.add(remainder[chosen])
        dtrsm(1.0, lower, new.T, side=1, lower=1, trans_a=1, overwrite_b=1)  # Ψ Lᵀ = remainder
        new[:, pivots] = 0.0
        new[:, block[chosen]] = lower.T
        pivots = np.append(pivots, block[chosen])
        rest -= np.einsum("ij,ij->j", new, new)
        rest[pivots] = 0.0
        _check_definite(rest, _INDEFINITE * scale)
        np.maximum(rest, 0.0, out=rest)
        error, size = float(weight @ rest / trace), min(_BLOCK, 4 * len(chosen))
    return pivots, psi.transposed(), error


class _Rows:
    """Rows of Ψᵀ in memory that grows in place."""

    def __init__(self, n_samples: int, max_rank: int):
        self._memory = np.empty((min(max_rank, _BLOCK), n_samples))
        self._n_known, self._max_rank = 0, max_rank

    @property
    def known(self) -> np.ndarray:
        return self._memory[: self._n_known]

    def add(self, rows: np.ndarray) -> np.ndarray:
        """Copy rows behind those that are known; the copies, in place."""
        start, self._n_known = self._n_known, self._n_known + len(rows)
        if self._n_known > len(self._memory):
            self._resize(min(self._max_rank, 2 * len(self._memory)))
        self.known[start:] = rows
        return self.known[start:]

    def transposed(self) -> np.ndarray:
        """Ψ, without memory for more."""
        self._resize(self._n_known)
        return self._memory.T

    def _resize(self, n_rows: int) -> None:
        self._memory.resize((n_rows, self._memory.shape[1]), refcheck=False)


def _check_definite(rest: np.ndarray, tolerance: float) -> None:
    if rest.min() < -tolerance:
        raise IndefiniteError(int(rest.argmin()), float(rest.min()))


def _candidates(merit: np.ndarray, size: int) -> tuple[np.ndarray, float]:
    """Positions of good candidates, with the best one, and the largest merit of the others.

    Where more than ``size`` are good, they are taken at equal steps of their ranking: the largest
    merits of all are often those of neighbours, of which one is enough.
    """
    good = np.flatnonzero(merit >= _MERIT * merit.max())
    if len(good) > size:
        ranking = good[np.argsort(-merit[good], kind="stable")]
        block = ranking[np.arange(size) * len(good) // size]
    else:
        block = np.argpartition(-merit, size - 1)[:size]
    return block, np.delete(merit, block).max(initial=0.0)


def _choose_pivots(
    schur: np.ndarray, weight: np.ndarray, floor: float, smallest: float, most: int
) -> tuple[np.ndarray, np.ndarray]:
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
