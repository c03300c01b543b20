"""Products of matrices that are dense, sparse, or a multiple of the identity."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse
from scipy.linalg.blas import dtrmm

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
    triangle = np.tril(form + form.T)
    triangle[np.diag_indices_from(triangle)] /= 2
    return np.einsum("ji,ji->i", dtrmm(1.0, triangle.T, z.T), z.T)


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
