"""Products of matrices, pivoted Cholesky decompositions, and the largest entry of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse
from scipy.linalg.blas import dtrmm, dtrsm
from scipy.special import log_softmax, logsumexp, softmax

from skcal._validation import refuse_lost_pairs, row_blocks

Matrix: TypeAlias = np.ndarray | sparse.sparray
Factor: TypeAlias = Matrix | float  # a number is a multiple of the identity


def as_factor(form: ArrayLike | sparse.sparray | None) -> Factor:
    """A matrix, or 1.0 for the identity."""
    if form is None:
        return 1.0
    return form if sparse.issparse(form) else np.asarray(form)


def rows_of(part: Matrix, rows: slice) -> Matrix:
    """Some rows, float64."""
    if sparse.issparse(part):
        return sparse.csr_array(part[rows], dtype=np.float64)
    return np.asarray(part[rows], dtype=np.float64)


def times(a: Any, b: Any) -> Any:
    """The matrix product, where one factor may be a multiple of the identity."""
    return a * b if np.isscalar(a) or np.isscalar(b) else a @ b


def times_rows(z: Matrix, weight: np.ndarray) -> Matrix:
    """Rows times their weights; z itself, no copy, where all are 1."""
    if (weight == 1).all():
        return z
    return sparse.diags_array(weight) @ z if sparse.issparse(z) else weight[:, None] * z


def inner_product(a: Matrix, b: Factor) -> float:
    """Sum of the products of the entries; a number stands for a multiple of the identity."""
    if np.isscalar(b):
        return float(b * a.trace())
    if sparse.issparse(a) or sparse.issparse(b):
        return float(sparse.csr_array(a).multiply(b).sum())
    return float(np.vdot(a, b))


def square_of_products(rows: np.ndarray) -> float:
    """‖ZᵀZ‖² or, where that is smaller, the equal ‖ZZᵀ‖²; of one matrix BLAS computes half."""
    product = rows.T @ rows if len(rows) > rows.shape[1] else rows @ rows.T
    return inner_product(product, product)


def rowwise_dot(a: Matrix, b: Matrix) -> np.ndarray:
    """aᵀb of each pair of rows."""
    if sparse.issparse(a) or sparse.issparse(b):
        return np.asarray(sparse.csr_array(a).multiply(b).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", a, b, dtype=np.float64)


def rowwise_quadratic(z: Matrix, form: Factor) -> np.ndarray:
    """zᵀMz of each row, by a triangular product: half the work of one with M."""
    if not (isinstance(z, np.ndarray) and isinstance(form, np.ndarray)):
        return rowwise_dot(times(z, form), z)
    both = form + form.T  # dtrmm reads only a triangle
    both[np.diag_indices_from(both)] /= 2
    return np.einsum("ji,ji->i", dtrmm(1.0, both.T, z.T), z.T)


def one_hot(codes: np.ndarray, width: int, dtype: DTypeLike = np.float64) -> np.ndarray:
    """Return outcomes of shape (n_samples, width), 1 in the column of each code.

    Rows of ``np.eye(width)`` are the same at the cost of that matrix, which is larger than few
    samples of many classes.
    """
    outcome = np.zeros((len(codes), width), dtype=dtype)
    outcome[np.arange(len(codes)), codes] = 1
    return outcome


def sum_over_pairs(weight: np.ndarray) -> float:
    """Return Σ_{i≠j} w_i w_j; raise where there are no pairs or rounding leaves nothing of them."""
    total = weight.sum()
    pairs = weight @ (total - weight)
    if pairs <= 0 or np.count_nonzero(weight) == 1:
        raise ValueError(
            "The risk needs pairs: at least 2 samples with positive sample_weight "
            "(n_samples = 1 has none)."
        )
    refuse_lost_pairs(pairs, total**2)
    return pairs


def gram_square(U):
    """‖UᵀU‖² = ‖UUᵀ‖², of the one that takes fewer products, in blocks of bounded memory."""
    V = (U if U.nnz > U.shape[0] ** 2 else U.T).tocsr()
    transposed = V.T.tocsr()
    blocks = row_blocks(V.shape[0], 16 * V.shape[0])
    return sum(((V[rows] @ transposed).data ** 2).sum() for rows in blocks)


def hits(codes: np.ndarray | None, happened: Any) -> Any:
    """Whether the labels are these, or None of unknown ones; of outcomes (n, C) their entries."""
    if codes is None or codes.ndim == 1:
        return None if codes is None else codes == happened
    columns = np.broadcast_to(happened, len(codes))[:, None]
    return np.take_along_axis(codes, columns, axis=1)[:, 0]


def two_columns(proba: np.ndarray) -> np.ndarray:
    """The rows of 1-D predictions as columns of the negative and the positive class."""
    return np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba


_ROWS_OF_BLOCK, _FIRST_BLOCK = 128, 16
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
        error, size = float(weight @ rest / trace), min(_ROWS_OF_BLOCK, 4 * len(chosen))
    return pivots, psi.transposed(), error


class _Rows:
    """Rows of Ψᵀ in memory that grows in place."""

    def __init__(self, n_samples: int, max_rank: int):
        self._memory = np.empty((min(max_rank, _ROWS_OF_BLOCK), n_samples))
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


_CACHED_BYTES = 2**20  # of float64, which stay in the processor's cache
_TINY_SUM = 1e-280  # below which sums of probabilities lose digits


class Softmax:
    """Probabilities of rows of logits; the largest of each row are computed first.

    It is read where labels are checked, in place of an array: others are computed when asked for.

    Attributes
    ----------
    top : ndarray of shape (n_samples,)
        The first most probable class.
    confidence : ndarray of shape (n_samples,)
        Its probability, in float64.
    odds : ndarray of shape (n_samples,)
        The logit of that probability, without the loss of probabilities near 1.
    """

    ndim = 2

    def __init__(self, logits: np.ndarray):
        self._logits, self.shape = logits, logits.shape
        parts = [_largest(logits[rows]) for rows in row_blocks(*self._size, most=_CACHED_BYTES)]
        self.top, self.confidence, self.odds = map(np.concatenate, zip(*parts, strict=True))

    @property
    def _size(self) -> tuple[int, int]:
        return len(self), 8 * self.shape[1]

    def __len__(self) -> int:
        return len(self._logits)

    def __getitem__(self, places: Any) -> np.ndarray:
        """The probabilities of some rows, or one for each of the numbers of rows and columns."""
        if not isinstance(places, tuple):
            return softmax(self._logits[places].astype(np.float64), axis=1)
        z = self._logits
        largest = z[places[0], self.top[places[0]]].astype(np.float64)
        return self.confidence[places[0]] * np.exp(z[places] - largest)

    def item(self, place: int) -> float:
        """Return a probability by its place in the flattened rows."""
        row, column = divmod(place, self.shape[1])
        return float(self[row : row + 1][0, column])


def _largest(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first most probable class of each row, its probability and the logit of that."""
    proba = logits.astype(np.float64)
    proba -= proba.max(axis=1, keepdims=True)
    np.exp(proba, out=proba)
    proba /= proba.sum(axis=1, keepdims=True)
    rows, top = np.arange(len(proba)), proba.argmax(axis=1)
    confidence = proba[rows, top]
    proba[rows, top] = 0
    others = proba.sum(axis=1)
    small = others < _TINY_SUM
    odds = np.log(confidence) - np.log(np.where(small, 1, others))
    if small.any():
        z = log_softmax(logits[small].astype(np.float64), axis=1)
        rows, top_of_small = np.arange(len(z)), top[small]
        odds[small] = z[rows, top_of_small]
        z[rows, top_of_small] = -np.inf
        odds[small] -= logsumexp(z, axis=1)
    return top, confidence, odds
