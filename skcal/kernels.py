"""Kernels on predictions and low-rank factors of their matrices."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist, pdist
from sklearn import config_context
from sklearn.metrics.pairwise import (
    PAIRWISE_KERNEL_FUNCTIONS,
    paired_euclidean_distances,
    paired_manhattan_distances,
    pairwise_kernels,
)

from skcal._matrices import IndefiniteError, pivoted_cholesky
from skcal._running import over_jobs
from skcal._sklearn_compat import _euclidean_distances
from skcal._validation import InputError, row_blocks

_KernelLike: TypeAlias = str | Callable[..., np.ndarray]
_Parameters: TypeAlias = dict[str, Any]

KERNEL_NAMES = frozenset(PAIRWISE_KERNEL_FUNCTIONS)

_UNIT_DIAGONAL = ("rbf", "laplacian")  # k(x, x) = 1
_DIAGONAL_BLOCK = 32
_TRIED_ROWS = 16  # of a callable kernel, by which its shape and its symmetry are checked
_ASYMMETRY = 1e-6  # of the largest value
_CACHE_BYTES = 2**23  # blocks of a kernel matrix
_TILE_BYTES = 2**26  # of blocks of matrices
_FORM_ROWS = 64  # of a block of forms
_FORGOTTEN = 745.2  # exp of its negative is 0
_SEGMENT = 500.0  # exp of it and of its negative are finite with room for sums
_MEDIAN_ROWS, _BRACKET_ROWS = 3000, 60
_NARROWEST = 0.01  # median width


_OF_PAIRS = (
    "A callable kernel(X, Z) must return the matrix of values for all pairs of rows. Of a kernel k "
    "of two points pass lambda X, Z: [[k(x, z) for z in Z] for x in X]."
)


def kernel_matrix(
    X: np.ndarray,
    Z: np.ndarray,
    kernel: _KernelLike,
    parameters: _Parameters,
    m: int | None = None,
) -> np.ndarray:
    """Kernel values of all pairs of rows, shape (n, k) or (n, k, m, m), checked to be finite.

    Parameters
    ----------
    X, Z : ndarray of shape (n, d) and (k, d)
        Points, a row each; the result has a row for each of X and a column for each of Z.
    kernel : str or callable
        A name in :data:`sklearn.metrics.pairwise.PAIRWISE_KERNEL_FUNCTIONS`, or a callable
        ``kernel(X, Z)`` that returns the matrix.
    parameters : dict
        ``gamma``, ``degree``, ``coef0``: those that a named kernel takes are passed on.
    m : int, default=None
        The size of the matrices that a matrix-valued kernel returns; None: numbers.
    """
    # scikit-learn's kernels of float32 are float32, too coarse for a factor.
    X, Z = X.astype(np.float64, copy=False), Z.astype(np.float64, copy=False)
    if callable(kernel):
        try:
            values = np.array(kernel(X, Z), dtype=np.float64)  # the caller's own stays as it is
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The kernel fails for X of shape {X.shape} and Z of shape {Z.shape} ({error}). "
                f"{_OF_PAIRS}"
            ) from error
        shape = (len(X), len(Z)) if m is None else (len(X), len(Z), m, m)
        if values.shape != shape:
            raise ValueError(f"The kernel returned shape {values.shape}, not {shape}. {_OF_PAIRS}")
    else:
        values = _named_kernel(X, Z, kernel, parameters)
    if not np.isfinite(values).all():
        row, column, *entry = np.argwhere(~np.isfinite(values))[0].tolist()
        raise ValueError(
            f"The kernel returned {values[row, column, *entry]} for X row {X[row].tolist()} and "
            f"{Z[column].tolist()}. Its values must be finite."
        )
    return values


def _named_kernel(X: np.ndarray, Z: np.ndarray, kernel: str, parameters: _Parameters) -> np.ndarray:
    """scikit-learn's kernel, whose checks of X take longer than a narrow matrix where it can be."""
    if kernel not in _UNIT_DIAGONAL:
        with config_context(assume_finite=True):
            return pairwise_kernels(X, Z, metric=kernel, filter_params=True, **parameters)
    gamma = parameters.get("gamma")
    rbf = kernel == "rbf"
    values = _euclidean_distances(X, Z, squared=True) if rbf else cdist(X, Z, "cityblock")
    values *= -(1 / X.shape[1] if gamma is None else gamma)
    return np.exp(values, out=values)


def kernel_diagonal(X: np.ndarray, kernel: _KernelLike, parameters: _Parameters) -> np.ndarray:
    """k(x, x) for each row, from small diagonal blocks."""
    if kernel in _UNIT_DIAGONAL:
        return np.ones(len(X))
    return _diagonal(partial(kernel_matrix, kernel=kernel, parameters=parameters), X, X)


def _diagonal(matrix: Callable[..., np.ndarray], X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    blocks = (slice(i, i + _DIAGONAL_BLOCK) for i in range(0, len(X), _DIAGONAL_BLOCK))
    each = np.arange(_DIAGONAL_BLOCK)
    return np.concatenate(
        [matrix(X[rows], Z[rows])[(each[: len(X[rows])],) * 2] for rows in blocks]
    )


def _size_of_matrices(kernel: Callable[..., Any], X: np.ndarray) -> int | None:
    """Return m of (m, m) matrices, None of numbers; raise unless K(x, z) = K(z, x)ᵀ."""
    few = X[_evenly(len(X), _TRIED_ROWS)].astype(np.float64)
    other = few[: max(len(few) - 1, 1)]  # of all pairs, not of two points with as many classes
    try:
        shape = np.shape(kernel(few, other))
    except (TypeError, ValueError):
        shape = ()
    m = X.shape[1] if len(shape) == 4 else None
    if m is not None and shape[2:] != (m, m):
        reason = f"returns matrices of shape {shape[2:]} for residuals of {m} entries."
        remedy = f"Return ({m}, {m}) matrices, or pass notion='canonical': an entry for each class."
        raise InputError("kernel", reason, remedy)
    kernel_matrix(few, other, kernel, {}, m)
    values = kernel_matrix(few, few, kernel, {}, m)
    gap = values - (values.T if m is None else values.transpose(1, 0, 3, 2))
    if np.abs(gap).max(initial=0) > _ASYMMETRY * np.abs(values).max(initial=0):
        i, j, *entry = (int(k) for k in np.unravel_index(np.abs(gap).argmax(), gap.shape))
        value, other_value = values[i, j, *entry], values[j, i, *entry[::-1]]
        reason = (
            f"is not symmetric: k(x, z) = {value:.6g} and k(z, x) = {other_value:.6g} for "
            f"x = {few[i].tolist()} and z = {few[j].tolist()}{f', entry {entry}' * bool(entry)}."
        )
        remedy = "Return k(x, z) = k(z, x); for matrices the transpose of k(z, x)."
        raise InputError("kernel", reason, remedy)
    return m


def _only_entry(kernel: Callable[..., Any], X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """A kernel of 1 × 1 matrices as one of numbers."""
    return np.asarray(kernel(X, Z))[:, :, 0, 0]


class Kernel(NamedTuple):
    """A kernel on features with its width.

    "laplacian" is exp(-d_TV / ν) with the total variation distance ½‖x - z‖₁, ``|x - z|`` for
    scalar features; "rbf" is exp(-‖x - z‖² / (2ν²)).

    Attributes
    ----------
    name : str or callable
        A callable ``kernel(X, Z)`` returns the matrix and has no width here.
    bandwidth, gamma : float
        ν and scikit-learn's parameter; NaN for a callable.
    m : int or None
        The size of the matrices K(x, z) of a matrix-valued kernel ([W19]_, Definition 1); None
        of a kernel of numbers, k(x, z) times the identity.

    References
    ----------
    .. [W19] Widmann, Lindsten & Zachariah, Calibration tests in multi-class classification: a
       unifying framework, NeurIPS 2019.
    """

    name: _KernelLike
    bandwidth: float = np.nan
    gamma: float = np.nan
    m: int | None = None

    @classmethod
    def of(
        cls, name: _KernelLike, bandwidth: float | str, X: np.ndarray, matrices: bool = False
    ) -> Kernel:
        """Resolve the width for features X (n, d); "median" by :func:`median_distance`.

        Parameters
        ----------
        name : str or callable
            Name of the kernel, or a symmetric callable.
        bandwidth : float or "median"
            Width of the kernel, in units of the features.
        X : ndarray of shape (n, d)
            Points, a row each.
        matrices : bool, default=False
            Whether a callable may return (d, d) matrices K(x, z); then its symmetry is checked.
        """
        if callable(name):
            m = _size_of_matrices(name, X) if matrices else None
            return cls(partial(_only_entry, name)) if m == 1 else cls(name, m=m)
        metric = "cityblock" if name == "laplacian" else "euclidean"
        halves = 2.0 if metric == "cityblock" and X.shape[1] > 1 else 1.0
        if bandwidth == "median":  # differences of probabilities below the least do not matter
            width = max(median_distance(X, metric) / halves, _NARROWEST)
        else:
            width = float(bandwidth)
        gamma = 1 / (halves * width) if metric == "cityblock" else 1 / (2 * width**2)
        return cls(name, width, gamma)

    def matrix(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """k(x, z) for all pairs of rows, (n, k), or K(x, z), (n, k, m, m).

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Points, a row each.
        Z : ndarray of shape (k, d)
            Points, a row each.
        """
        if self.name == "rbf":  # scikit-learn's expands the square, which loses small distances
            X, Z = X.astype(np.float64, copy=False), Z.astype(np.float64, copy=False)
            return np.exp(-self.gamma * cdist(X, Z, "sqeuclidean"))
        return kernel_matrix(X, Z, self.name, {"gamma": self.gamma}, self.m)

    def paired(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """k(x_i, z_i) for each row, (n,), or K(x_i, z_i), (n, m, m).

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Points, a row each.
        Z : ndarray of shape (k, d)
            Points, a row each.
        """
        X, Z = X.astype(np.float64, copy=False), Z.astype(np.float64, copy=False)
        if self.name == "laplacian":
            return np.exp(-self.gamma * paired_manhattan_distances(X, Z))
        if self.name == "rbf":
            return np.exp(-self.gamma * paired_euclidean_distances(X, Z) ** 2)
        return _diagonal(self.matrix, X, Z)

    def blocks(self, n: int, n_others: int = _DIAGONAL_BLOCK) -> Iterator[slice]:
        """Slices of n rows whose values with ``n_others`` rows fit ``working_memory``.

        Parameters
        ----------
        n : int
            Number of rows.
        n_others : int, default=32
            Number of other rows.
        """
        return row_blocks(n, 24 * (self.m or 1) ** 2 * n_others, most=_TILE_BYTES)

    def tiles(self, n: int) -> Iterator[tuple[slice, slice]]:
        """Rows and columns of blocks of n × n values that fit ``working_memory``.

        Parameters
        ----------
        n : int
            Number of rows.
        """
        return (
            (rows, columns)
            for columns in self.blocks(n)
            for rows in self.blocks(n, columns.stop - columns.start)
        )

    def products(self, X: np.ndarray, V: np.ndarray, Z: np.ndarray, W: np.ndarray) -> np.ndarray:
        """k(x_i, z_j) ⟨v_i, w_j⟩ or v_iᵀ K(x_i, z_j) w_j for all pairs of rows, (n, k).

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Points, a row each.
        V : ndarray of shape (n, m)
            Vectors, a row for each point.
        Z : ndarray of shape (k, d)
            Points, a row each.
        W : ndarray of shape (k, m)
            Vectors, a row for each point.
        """
        if self.m is None:
            return self.matrix(X, Z) * (V @ W.T)
        values = np.empty((len(X), len(Z)))
        for rows in self.blocks(len(X)):
            for columns in self.blocks(len(Z), rows.stop - rows.start):
                images = np.einsum("ijab,jb->ija", self.matrix(X[rows], Z[columns]), W[columns])
                values[rows, columns] = np.einsum("ia,ija->ij", V[rows], images)
        return values

    def paired_products(
        self, X: np.ndarray, V: np.ndarray, Z: np.ndarray, W: np.ndarray
    ) -> np.ndarray:
        """The same of x_i and z_i, for each row, (n,).

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Points, a row each.
        V : ndarray of shape (n, m)
            Vectors, a row for each point.
        Z : ndarray of shape (n, d)
            Points, a row each.
        W : ndarray of shape (n, m)
            Vectors, a row for each point.
        """
        if self.m is None:
            return self.paired(X, Z) * np.einsum("ij,ij->i", V, W)
        each = [
            np.einsum("ia,iab,ib->i", V[rows], self.paired(X[rows], Z[rows]), W[rows])
            for rows in self.blocks(len(X))
        ]
        return np.concatenate(each)

    def times(self, X: np.ndarray, V: np.ndarray) -> np.ndarray:
        """K V for K = k(X, X) and V (n, m), without the n×n matrix.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Points, a row each.
        V : ndarray of shape (n, m)
            Vectors, a row for each point.
        """
        if self.name == "laplacian" and X.shape[1] == 1:
            return laplacian_times(X[:, 0].astype(np.float64), V, self.gamma)
        return np.concatenate(_over_blocks(self._rows_times, X, V))

    def _rows_times(self, rows: slice, X: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self.matrix(X[rows], X) @ V

    def quadratic_form(self, X: np.ndarray, V: np.ndarray) -> float:
        """Σ_ij k(x_i, x_j) ⟨v_i, v_j⟩, of half the pairs, or Σ_ij v_iᵀ K(x_i, x_j) v_j.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Points, a row each.
        V : ndarray of shape (n, m)
            Vectors, a row for each point.
        """
        if self.name == "laplacian" and X.shape[1] == 1:
            order = np.argsort(X[:, 0])
            z, V = X[order, 0].astype(np.float64), V[order]
            return float(2 * np.vdot(V, _decayed_sums(z, V, self.gamma)) - np.vdot(V, V))
        return float(sum(_over_blocks(self._rows_form, X, V)))

    def _rows_form(self, rows: slice, X: np.ndarray, V: np.ndarray) -> float:
        if self.m is not None:
            return self.products(X[rows], V[rows], X, V).sum()
        product = self.matrix(X[rows], X[rows.start :]) @ V[rows.start :]
        n_rows = rows.stop - rows.start
        inner = self.matrix(X[rows], X[rows]) @ V[rows] if n_rows < len(X) else product
        return 2 * np.vdot(V[rows], product) - np.vdot(V[rows], inner)


def _over_blocks(work: Callable[..., Any], X: np.ndarray, V: np.ndarray) -> list[Any]:
    """``work`` on blocks of rows, spread over the jobs of ``joblib.parallel_config``."""
    blocks = row_blocks(len(X), 16 * len(X), most=_CACHE_BYTES)
    return over_jobs([(work, rows, X, V) for rows in blocks], prefer="threads")


def laplacian_times(z: np.ndarray, V: np.ndarray, gamma: float = 1.0) -> np.ndarray:
    """``Σ_j exp(-gamma |z_i - z_j|) v_j`` for every i, in O(n log n).

    Along sorted z the sums from the left obey s_i = exp(-gamma (z_i - z_{i-1})) s_{i-1} + v_i;
    within segments that exp can span, they are cumulative sums of exp(gamma z_j) v_j.
    """
    order = np.argsort(z)
    z, V = z[order], V[order]
    left = _decayed_sums(z, V, gamma)
    right = _decayed_sums(-z[::-1], V[::-1], gamma)[::-1]
    product = np.empty_like(left)
    product[order] = left + right - V  # v_i itself is in both
    return product


def laplacian_forms(
    z: np.ndarray, rows_at: Callable[[slice], np.ndarray], gamma: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Σ exp(-gamma abs(z_i - z_j)) v_i v_j over i ≠ j and over i = j, in O(n).

    Parameters
    ----------
    z : ndarray of shape (n,)
        Ascending.
    rows_at : callable
        Gives the v of a slice of samples, one form a row, (n_forms, n_samples).
    gamma : float
        Inverse width of the kernel exp(-gamma * distance); above 0.

    Returns
    -------
    apart, alone : ndarray of shape (n_forms,)

    Notes
    -----
    Pairs within a block are a product with a small matrix; of the blocks before it, what counts is
    Σ_j exp(-gamma (z_1 - z_j)) v_j, which each block carries to the first sample of the next.
    """
    apart = alone = carried = np.zeros(1)
    for rows in (slice(i, i + _FORM_ROWS) for i in range(0, len(z), _FORM_ROWS)):
        v, places = rows_at(rows), z[rows]
        inside = np.exp(-gamma * np.abs(places[:, None] - places))
        from_first, to_last = inside[0].copy(), inside[-1].copy()
        np.fill_diagonal(inside, 0.0)
        apart = apart + np.einsum("ij,ij->i", v @ inside, v) + 2 * carried * (v @ from_first)
        alone = alone + np.einsum("ij,ij->i", v, v)
        carried = carried * to_last[0] + v @ to_last
        if rows.stop < len(z):
            carried = carried * np.exp(-gamma * (z[rows.stop] - z[rows.stop - 1]))
    return apart, alone


def _decayed_sums(z: np.ndarray, V: np.ndarray, gamma: float) -> np.ndarray:
    """Σ_{j ≤ i} exp(-gamma (z_i - z_j)) v_j for ascending z."""
    # Differences first: the products with a large gamma would lose the digits of small ones.
    gaps = gamma * np.diff(z)
    travelled = np.append(0.0, np.cumsum(np.minimum(gaps, 2 * _SEGMENT)))
    starts = np.append(0, 1 + np.flatnonzero(np.diff(np.floor(travelled / _SEGMENT))))
    stops = np.append(starts[1:], len(z))
    alone = np.append(True, gaps > _FORGOTTEN)[starts]  # from all samples before
    sums = V.astype(np.float64)
    inside = (stops - starts > 1) | ~alone
    for start, stop, first in zip(starts[inside], stops[inside], alone[inside], strict=True):
        if not first:
            sums[start] += sums[start - 1] * np.exp(-gaps[start - 1])
        grow = np.exp(gamma * (z[start:stop] - z[start]))[:, None]
        sums[start:stop] = np.cumsum(grow * sums[start:stop], axis=0) / grow
    return sums


def median_distance(X: np.ndarray, metric: str) -> float:
    """Median distance between pairs of rows, "cityblock" or "euclidean".

    Of more than 3,000 rows, that of 3,000 evenly spaced in the lexicographic order of their ranked
    entries (so the names of the classes do not matter), then of the rows. Where half of the
    pairs coincide, the median of the others; 1 where all do.
    """
    if X.shape[1] == 1:
        ascending = np.sort(X[:, 0]).astype(np.float64)
        return _median_gap(ascending[_evenly(len(X), _MEDIAN_ROWS)])
    if len(X) > _MEDIAN_ROWS:
        order = np.lexsort(np.hstack([-np.sort(-X, axis=1), X]).T[::-1])
        X = X[order[_evenly(len(X), _MEDIAN_ROWS)]]
    distances = pdist(X.astype(np.float64), metric)
    median = float(np.median(distances)) if len(distances) else 0.0
    if median == 0:
        distances = distances[distances > 0]
        median = float(np.median(distances)) if len(distances) else 1.0
    return median


def _evenly(n_rows: int, most: int) -> np.ndarray:
    """At most so many positions, at equal steps."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).round().astype(np.intp)


def _median_gap(x: np.ndarray) -> float:
    """:func:`median_distance` of ascending numbers (n,)."""
    values, repeats = np.unique(x, return_counts=True)
    pairs, coincide = len(x) * (len(x) - 1) // 2, int(repeats @ (repeats - 1)) // 2
    if pairs == coincide:
        return 1.0
    if pairs // 2 < coincide:
        pairs, coincide = pairs - coincide, 0
    middle = np.array([(pairs - 1) // 2, pairs // 2]) - coincide  # among those that are not 0
    gaps = _ordered_gaps(values, repeats, np.maximum(middle, 0), x[_evenly(len(x), _BRACKET_ROWS)])
    return float(np.where(middle < 0, 0.0, gaps).mean())


def _ordered_gaps(
    values: np.ndarray, repeats: np.ndarray, ranks: np.ndarray, some: np.ndarray
) -> np.ndarray:
    """Order statistics of the differences of distinct numbers, all pairs of their copies counted.

    Differences of ``some`` of the numbers bracket the ``ranks``, ascending, as counting along the
    values tells; all that fall into the bracket are then sorted.
    """
    up_to, index = np.cumsum(repeats), np.arange(len(values))

    def count(gap: float) -> int:
        within = np.searchsorted(values, values + gap, side="right") - 1
        return int(repeats @ (up_to[within] - up_to))

    gaps = np.append(0.0, np.sort(pdist(some[:, None], "cityblock")))
    low = bisect_left(gaps, ranks[0] + 1, hi=len(gaps) - 1, key=count)
    high = bisect_left(gaps, ranks[-1] + 1, lo=low, hi=len(gaps) - 1, key=count)
    least, most = gaps[max(low - 1, 0)], gaps[high]
    slack = 4 * np.finfo(np.float64).eps * (np.abs(values) + most)  # sums are rounded
    start = np.maximum(np.searchsorted(values, values + least - slack), index + 1)
    stop = np.searchsorted(values, values + most + slack, side="right")
    sizes = np.maximum(stop - start, 0)
    left = np.repeat(index, sizes)
    right = np.arange(len(left)) + np.repeat(start - np.cumsum(sizes) + sizes, sizes)
    between = values[right] - values[left]
    order = np.argsort(between)
    below = repeats @ (up_to[start - 1] - up_to)
    total = below + np.cumsum((repeats[left] * repeats[right])[order])
    return between[order[np.searchsorted(total, ranks, side="right")]]


class KernelBasis(NamedTuple):
    """K ≈ ΨΨᵀ with ψ(x) = L⁻¹ k(B, x), before training samples rotate it.

    Attributes
    ----------
    landmarks : ndarray of shape (r, d)
        B, the samples that the features are built on.
    triangle : ndarray of shape (r, r)
        L, with k(B, B) = L Lᵀ.
    psi : ndarray of shape (n, r)
        Ψ.
    trace_error : float
        Share of the (weighted) trace of K that ΨΨᵀ leaves out.
    approximation : {"low-rank", "exact", "nystroem"}
        Whether the tolerance (or rounding) was reached, the rank is n, or the rank limit came
        first.
    """

    landmarks: np.ndarray
    triangle: np.ndarray
    psi: np.ndarray
    trace_error: float
    approximation: str

    def projection(self, rotation: np.ndarray) -> np.ndarray:
        """Return (r, k) by which k(x, B) becomes ψ(x)ᵀU.

        Parameters
        ----------
        rotation : ndarray of shape (r, k)
            U.
        """
        return solve_triangular(self.triangle, rotation, lower=True, trans="T")

    def first(self, rank: int) -> KernelBasis:
        """Return the basis of the first landmarks.

        Parameters
        ----------
        rank : int
            Number of landmarks.
        """
        psi, triangle = self.psi[:, :rank], self.triangle[:rank, :rank]
        return KernelBasis(self.landmarks[:rank], triangle, psi, np.nan, "nystroem")


def kernel_basis(
    X: np.ndarray,
    weight: np.ndarray,
    kernel: _KernelLike,
    parameters: _Parameters,
    tol: float,
    max_rank: int,
) -> KernelBasis:
    """Low-rank basis of a kernel matrix by pivoted Cholesky decomposition.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Points, a row each.
    weight : ndarray of shape (n,)
        Positive weights.
    kernel : str or callable
        The argument of :func:`kernel_matrix`.
    parameters : dict
        The argument of :func:`kernel_matrix`.
    tol : float
        Stop when the weighted trace error falls to this share of the trace.
    max_rank : int
        The largest rank, at most n. With the limit reached first the pivots are the landmarks of a
        Nyström approximation.

    Returns
    -------
    basis : KernelBasis

    Notes
    -----
    O(n r²) time, O(n r) memory; no n×n matrix unless r = n.
    """
    X64 = X.astype(np.float64, copy=False)  # once, not for every block
    diagonal = kernel_diagonal(X64, kernel, parameters).astype(np.float64)
    if not diagonal.any():
        raise ValueError("k(x, x) is zero on all training samples. Choose another kernel.")
    rows_at = partial(_rows_at, X64, kernel, parameters)
    try:
        pivots, psi, trace_error = pivoted_cholesky(diagonal, rows_at, weight, tol, max_rank)
    except IndefiniteError as error:
        raise ValueError(
            f"The kernel is not positive semidefinite: at X row {X64[error.row].tolist()} the "
            f"remainder of k(x, x) is {error.remainder:.3g}. Choose a positive semidefinite kernel."
        ) from None
    if len(pivots) == len(X):
        approximation = "exact"
    elif trace_error > tol and len(pivots) == max_rank:
        approximation = "nystroem"
    else:
        approximation = "low-rank"
    return KernelBasis(X[pivots], psi[pivots], psi, trace_error, approximation)


def _rows_at(
    X: np.ndarray, kernel: _KernelLike, parameters: _Parameters, positions: np.ndarray
) -> np.ndarray:
    return kernel_matrix(X[positions], X, kernel, parameters)
