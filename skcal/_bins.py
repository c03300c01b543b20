"""Partitions of [0, 1] and of the simplex into bins: one rule for fit, metric and diagram.

A value x falls in bin j when b_{j-1} < x ≤ b_j, and x = 0 in the first bin. Edges j/B are computed
in float64 and cast to the dtype of x before they are compared, so that grid values k/B fall alike
in float32 and float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils import check_array

from skcal._validation import naming

_WEIGHT_ROUNDING = 1e-12  # of sums of weights, relative to their total


@dataclass(frozen=True, eq=False)
class Intervals:
    """Bins of [0, 1]; ``edges`` (n_bins + 1,) in float64."""

    edges: np.ndarray

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @cached_property
    def middles(self) -> np.ndarray:
        """Middle of each bin, (n_bins, 1)."""
        return ((self.edges[:-1] + self.edges[1:]) / 2)[:, None]

    @cached_property
    def _of_dtype(self) -> dict[str, tuple[np.ndarray, bool]]:
        """By the letter of a dtype what :func:`_edges_in` returns; skops stores keys of text."""
        return {}

    def assign(self, X: np.ndarray) -> np.ndarray:
        """Return the bin of each row of X (n, 1)."""
        known = self._of_dtype.get(X.dtype.char)
        if known is None:
            known = self._of_dtype[X.dtype.char] = _edges_in(self.edges, X.dtype)
        return _place_in_bins(*known, X[:, 0])


@lru_cache(maxsize=64)
def equal_intervals(n_bins: int) -> Intervals:
    """Bins of equal width of [0, 1]."""
    edges = np.arange(n_bins + 1) / n_bins
    edges.flags.writeable = False
    return Intervals(edges)


def given_edges(edges: Any) -> Intervals:
    """Bins between edges that a user gives, which rise from 0 to 1."""
    with naming("edges"):
        edges = check_array(edges, dtype=np.float64, ensure_2d=False, input_name="edges")
    if edges.ndim != 1 or len(edges) < 2 or edges[0] != 0 or edges[-1] != 1:
        shown = f"{edges[0]:g} to {edges[-1]:g}" if edges.ndim == 1 else f"shape {edges.shape}"
        raise ValueError(
            f"edges of {shown}: a 1-D array from 0 to 1 is needed. Pass [0, …, 1] with the "
            "inner edges between."
        )
    if not (np.diff(edges) > 0).all():
        k = int(np.argmin(np.diff(edges) > 0))
        raise ValueError(
            f"edges must increase, but edges[{k + 1}] = {edges[k + 1]:g} follows {edges[k]:g}. "
            "Pass numpy.unique(edges)."
        )
    return Intervals(edges)


def _edges_in(edges: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, bool]:
    """Edges of a dtype, the outer ones infinite, and whether a product finds the bins.

    It does where they are so few and equal.
    """
    n_bins, edges = len(edges) - 1, edges.astype(dtype)
    few = n_bins * np.finfo(dtype).eps < 0.01
    equal = few and np.array_equal(edges, (np.arange(n_bins + 1) / n_bins).astype(dtype))
    edges[0], edges[-1] = -np.inf, np.inf
    return edges, bool(equal)


def _place_in_bins(edges: np.ndarray, equal: bool, x: np.ndarray) -> np.ndarray:
    """The bin of each x, at least 0 up to rounding."""
    if equal:
        # Of equal bins the right one is found at once, or by a rounded product the one after it.
        n_bins = len(edges) - 1
        place = (x * n_bins).astype(np.intp)
        np.minimum(place, n_bins, out=place)
        place -= x <= edges.take(place, mode="clip")
        return place
    return np.searchsorted(edges[1:-1], x, side="left")


@dataclass(frozen=True, eq=False)
class SimplexCells:
    """Occupied cells (⌈B p_1⌉, …, ⌈B p_C⌉) of the simplex; ``keys`` are the sorted cell codes.

    Without ``edges`` each distinct row is a cell.
    """

    edges: np.ndarray | None
    keys: np.ndarray

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.keys)

    def assign(self, X: np.ndarray) -> np.ndarray:
        """Return the cell of each row of X (n, C); ``n_bins`` for a cell unseen in training."""
        keys = cell_keys(X, self.edges)
        place = np.minimum(np.searchsorted(self.keys, keys), self.n_bins - 1)
        return np.where(self.keys[place] == keys, place, self.n_bins)


def cell_keys(X: np.ndarray, edges: np.ndarray | None) -> np.ndarray:
    """Code the cell of each row as one opaque, sortable key."""
    # Big-endian bytes of numbers ≥ 0 compare as the tuples do; -0.0 + 0.0 = 0.0.
    if edges is None:
        cells = (X + 0.0).astype(">f8")
    else:
        cells = _place_in_bins(*_edges_in(edges, X.dtype), np.maximum(X, 0)).astype(">u4")
    return np.ascontiguousarray(cells).view(f"S{cells.itemsize * X.shape[1]}").ravel()


@dataclass(frozen=True, eq=False)
class Tree:
    """Axis-parallel median splits: node i sends ``X[:, axis[i]] < threshold[i]`` to ``left[i]``.

    Leaves have axis -1 and hold their bin in ``left``.
    """

    axis: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return int(np.count_nonzero(self.axis < 0))

    def assign(self, X: np.ndarray) -> np.ndarray:
        """Return the leaf of each row of X (n, C)."""
        node = np.zeros(len(X), dtype=np.intp)
        active = np.flatnonzero(self.axis[node] >= 0)
        while len(active):
            at = node[active]
            below = X[active, self.axis[at]] < self.threshold[at]
            node[active] = np.where(below, self.left[at], self.right[at])
            active = active[self.axis[node[active]] >= 0]
        return self.left[node]


_Partition: TypeAlias = Intervals | SimplexCells | Tree


def uniform(
    X: np.ndarray, outcomes: np.ndarray, weight: np.ndarray, *, n_bins: int, min_samples: int
) -> Intervals | SimplexCells:
    """Bins of equal width; on the simplex, cells of equal widths in every class [W19]."""
    intervals = equal_intervals(n_bins)
    if X.shape[1] == 1:
        return intervals
    return SimplexCells(intervals.edges, np.unique(cell_keys(X, intervals.edges)))


def quantile(
    X: np.ndarray, outcomes: np.ndarray | None, weight: np.ndarray, *, n_bins: int, min_samples: int
) -> Intervals:
    """Bins of equal mass at inverted-CDF quantiles; equal values share a bin.

    Repeated edges are merged, so there may be fewer bins than asked for.
    """
    values, group = np.unique(X[:, 0], return_inverse=True)
    ends = _equal_mass_ends(np.cumsum(np.bincount(group, weight)), n_bins)
    return _between(values[ends], X[:, 0])


def unique(
    X: np.ndarray, outcomes: np.ndarray, weight: np.ndarray, *, n_bins: int, min_samples: int
) -> Intervals | SimplexCells:
    """A bin for each distinct prediction."""
    if X.shape[1] == 1:
        return _between(X[:, 0], X[:, 0])
    return SimplexCells(None, np.unique(cell_keys(X, None)))


def _equal_mass_ends(cdf: np.ndarray, n_bins: int) -> np.ndarray:
    """Positions of the inverted-CDF quantiles j / n_bins, up to the rounding of sums."""
    quantiles = np.arange(1, n_bins) / n_bins
    return np.unique(np.searchsorted(cdf / cdf[-1], quantiles - _WEIGHT_ROUNDING, side="left"))


def _between(inner: np.ndarray, x: np.ndarray) -> Intervals:
    """Intervals from inner edges that are data values; the largest value starts no bin."""
    inner = np.unique(inner).astype(np.float64)
    inner = inner[inner < x.max()]
    return Intervals(np.concatenate([[0.0], inner, [1.0]]))


def sweep(
    X: np.ndarray, outcomes: np.ndarray, weight: np.ndarray, *, n_bins: int, min_samples: int
) -> Intervals:
    """Most equal-mass bins such that these and all fewer have monotone frequencies [R22]."""
    values, group = np.unique(X[:, 0], return_inverse=True)
    mass = np.bincount(group, weight)
    hits = np.bincount(group, weight * outcomes[:, 0])
    if _monotone(hits, mass):
        return _between(values, X[:, 0])  # then every coarser partition is monotone too
    cdf = np.cumsum(mass)
    cumulative_hits = np.cumsum(hits)
    last = np.array([], dtype=np.intp)
    for n_equal in range(2, max(len(X), int(np.ceil(weight.sum()))) + 1):
        ends = np.union1d(_equal_mass_ends(cdf, n_equal), len(values) - 1)
        frequency_hits = np.diff(cumulative_hits[ends], prepend=0.0)
        if not _monotone(frequency_hits, np.diff(cdf[ends], prepend=0.0)):
            break
        last = ends[:-1]
    return _between(values[last], X[:, 0])


def _monotone(hits: np.ndarray, mass: np.ndarray) -> bool:
    return bool(np.all(np.diff(hits / mass) >= -_WEIGHT_ROUNDING))


def median_variance(
    X: np.ndarray, outcomes: np.ndarray, weight: np.ndarray, *, n_bins: int, min_samples: int
) -> Tree:
    """Split each cell at the median of its most variable class [W19, App. J.2.3].

    Values below the median go left. A cell is final when a half would keep fewer than
    ``min_samples`` samples. ``n_bins`` is ignored: since whether a cell splits depends on that
    cell alone, the order of the splits does not matter.
    """
    axis, threshold, left, right = [-1], [0.0], [0], [0]
    pending, n_leaves = [(0, np.arange(len(X)))], 0
    while pending:
        node, rows = pending.pop()
        split = _median_split(X[rows], weight[rows], min_samples)
        if split is None:
            left[node], n_leaves = n_leaves, n_leaves + 1
            continue
        axis[node], threshold[node] = split
        below = X[rows, axis[node]] < threshold[node]
        left[node], right[node] = len(axis), len(axis) + 1
        pending += [(right[node], rows[~below]), (left[node], rows[below])]
        axis += [-1, -1]
        threshold += [0.0, 0.0]
        left += [0, 0]
        right += [0, 0]
    return Tree(np.array(axis), np.array(threshold), np.array(left), np.array(right))


def _median_split(X: np.ndarray, weight: np.ndarray, min_samples: int) -> tuple[int, float] | None:
    """Return (class, median) of the split, or None when a half would be too small."""
    total = weight.sum()
    if total < 2 * min_samples or total <= 1:
        return None
    centre = weight @ X / total
    variance = weight @ (X - centre) ** 2  # n - 1 is common to all classes
    # Of equal variances, up to rounding, the first: so the order of the rows does not matter.
    k = int(np.argmax(variance >= variance.max() * (1 - 1e-9)))
    median = _weighted_median(X[:, k].astype(np.float64), weight)
    mass_below = weight[X[:, k] < median].sum()
    if min(mass_below, total - mass_below) < max(min_samples, np.finfo(float).tiny):
        return None
    return k, median


def _weighted_median(x: np.ndarray, weight: np.ndarray) -> float:
    """Median; for integer weights that of the repeated values."""
    order = np.argsort(x)
    cdf = np.cumsum(weight[order])
    low = np.searchsorted(cdf, cdf[-1] / 2, side="left")
    high = np.searchsorted(cdf, cdf[-1] / 2, side="right")
    return float(x[order[low]] + x[order[high]]) / 2


SCALAR_PARTITIONS = {"uniform": uniform, "quantile": quantile, "sweep": sweep, "unique": unique}
SIMPLEX_PARTITIONS = {"uniform": uniform, "median-variance": median_variance, "unique": unique}


def find_partition(strategy: str, n_columns: int) -> Callable[..., _Partition]:
    """Return the rule of a strategy for scalar problems (one column) or the simplex."""
    rules = SCALAR_PARTITIONS if n_columns == 1 else SIMPLEX_PARTITIONS
    if strategy not in rules:
        raise ValueError(
            f"strategy={strategy!r} does not fit {n_columns} feature(s) per sample. "
            f"Use one of {', '.join(map(repr, rules))}."
        )
    return rules[strategy]


def bin_sums(bins: np.ndarray, values: np.ndarray, n_bins: int) -> np.ndarray:
    """Sums in each bin of ``values`` (n,) or (n, m), float64 of shape (n_bins,) or (n_bins, m)."""
    if values.ndim == 1:
        return np.bincount(bins, values, minlength=n_bins)
    if values.shape[1] == 1:
        return np.bincount(bins, values[:, 0], minlength=n_bins)[:, None]
    return np.stack([np.bincount(bins, column, minlength=n_bins) for column in values.T], axis=1)


def variance_of_means(
    weight: np.ndarray,
    squares: np.ndarray,
    count: np.ndarray,
    gaps: np.ndarray,
    square_errors: np.ndarray | None = None,
    frequencies: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Estimated variance v_b of each bin's mean, and which bins have too few samples to tell.

    Of a bin without pairs it is the squared mean itself, so that what is left of it is 0: the other
    choices are not zero on average where predictions are calibrated.

    Parameters
    ----------
    weight, squares, count : ndarray of shape (n_bins,)
        Sums of the weights and of their squares; number of samples.
    gaps : ndarray of shape (n_bins, m)
        Mean residuals.
    square_errors : ndarray of shape (n_bins,), default=None
        Sums of w² ‖residual‖².
    frequencies : ndarray of shape (n_bins, m), default=None
        Mean labels, if v_b is by the variance of labels instead.
    """
    squared_gaps = (gaps**2).sum(axis=1, dtype=np.float64)
    if frequencies is None:
        excess = square_errors - squares * squared_gaps
    else:
        excess = squares * np.maximum((frequencies * (1 - frequencies)).sum(axis=1), 0)
    pairs = weight**2 - squares
    enough = (count >= 2) & (pairs > 1e-12 * squares)
    variance = np.divide(excess, pairs, out=squared_gaps, where=enough)
    return variance, (weight > 0) & ~enough
