"""Fine cells of predictions, the same in every table and engine, and sums over them that add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skcal._bins import Intervals
from skcal._validation import InputError, as_floats

_FINEST, _WITHIN = 33, 9  # 2**-33 is the smallest width, and each power of two has 2**9 cells
_LINEAR = 1 << _WITHIN  # cells of equal width next to 0
_EXPONENT = (1023 - _FINEST + _WITHIN - 1) << _WITHIN
#: The cell of 1/2; that of 1 has twice the number.
MIDDLE = ((_FINEST - 1 - _WITHIN) << _WITHIN) + _LINEAR + 1
N_CELLS = 2 * MIDDLE + 1


def cells(p: ArrayLike) -> np.ndarray:
    """Return the cell of each prediction, as :class:`skcal.CalibrationTable` counts them.

    Parameters
    ----------
    p : array-like of any shape
        Probabilities in [0, 1].

    Returns
    -------
    cell : ndarray of int64, of the shape of ``p``
        From 0 to 24,578, not falling in p. 0, 1/2 and 1 have the cells 0, 12,289 and 24,578 of
        their own.

    Raises
    ------
    ValueError
        If a number is not in [0, 1].

    Notes
    -----
    With q = min(p, 1 - p), i = ⌊2³³ q⌋ and s = max(bits of i - 10, 0), the cell is c = 1 + 512 s +
    ⌊i / 2ˢ⌋, and 0 for q = 0. Above 1/2 it is 24,578 - c. So cells are at most q / 512 wide, or
    2⁻³³. These are whole numbers, which every engine computes alike.

    Examples
    --------
    >>> from skcal.table import cells
    >>> cells([0, 0.001, 0.25, 0.5, 0.75, 1]).tolist()
    [0, 7693, 11777, 12289, 12801, 24578]
    """
    given = np.asarray(p)
    x = as_floats(given, "p") if given.dtype.kind != "f" else given
    wrong = ~((x >= 0) & (x <= 1))
    if wrong.any():
        reason = f"holds {x[wrong][0]:.6g}, and cells are of probabilities in [0, 1]."
        raise InputError("p", reason, "Pass numbers p in [0, 1].")
    return _cells(x.astype(np.float64, copy=False).ravel()).reshape(x.shape)


def _cells(x: np.ndarray) -> np.ndarray:
    """Cells of checked float64 predictions (n,)."""
    q = np.minimum(x, 1 - x)
    cell = (q.view(np.int64) >> (52 - _WITHIN)) - (_EXPONENT - 1)
    few = np.flatnonzero(q < _LINEAR * 2.0**-_FINEST)
    if len(few):
        cell[few] = np.ceil(q[few]) + np.floor(q[few] * 2.0**_FINEST)
    return np.where(x > 0.5, 2 * MIDDLE - cell, cell)


def ends_of(cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest prediction that cells can hold."""
    side = np.minimum(cell, 2 * MIDDLE - cell)
    i = np.maximum(side - 1, 0)
    shift = np.maximum(i // _LINEAR - 1, 0)
    low, high = ((i - _LINEAR * shift + k) * 2.0 ** (shift - _FINEST) for k in (0, 1))
    low = np.where(side == MIDDLE, 0.5, low)
    high = np.where(side == MIDDLE, 0.5, np.where(side == 0, 0.0, high))
    upper = cell > MIDDLE
    return np.where(upper, 1 - high, low), np.where(upper, 1 - low, high)


class Places(NamedTuple):
    """The cells that the edges of bins cut, numbered in order, for predictions of one dtype.

    A cell and a bin have the place cell + bin. Since both rise with the prediction no other pair
    has it.

    Attributes
    ----------
    base : ndarray of shape (N_CELLS,)
        The place of the lower part of each cell.
    inner : ndarray of shape (N_CELLS,)
        The edge that cuts each cell, infinity where none does.
    edges : ndarray or None
        Of the dtype, where some cell is cut more than once.
    cell, bin : ndarray of shape (N_CELLS + n_bins,)
        What each place is.
    """

    base: np.ndarray
    inner: np.ndarray
    edges: Any
    cell: np.ndarray
    bin: np.ndarray

    @classmethod
    def of(cls, intervals: Intervals, dtype: np.dtype) -> Places:
        """Cut the cells at the inner edges, which belong to the bin before them."""
        edges = intervals.edges[1:-1].astype(dtype)
        cut = _cells(edges.astype(np.float64))
        base = np.arange(N_CELLS) + np.searchsorted(cut, np.arange(N_CELLS))
        inner = np.full(N_CELLS, np.inf, dtype)
        inner[cut] = edges
        n_places = N_CELLS + len(edges)
        place = np.arange(n_places)
        after = cut + np.arange(len(cut)) + 1  # the place of the upper part of a cell
        number = np.searchsorted(after, place, side="right")
        several = len(np.unique(cut)) < len(cut)
        return cls(base, inner, edges if several else None, place - number, number)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the place of each prediction of the dtype."""
        cell = _cells(x.astype(np.float64, copy=False))
        if self.edges is not None:
            return cell + np.searchsorted(self.edges, x)
        place = self.base.take(cell)
        place += x > self.inner.take(cell)
        return place


#: What each row of a table sums up: samples, w, w², w p, w p², w y, w y².
NAMES = ("n", "w", "w2", "wp", "wp2", "wy", "wy2")
#: Outcomes that are kept apart: 0, 1, and shares between them.
OUTCOMES = 3
_PENDING = 2**18  # rows that wait until they are added up
_MOST_BYTES = 2**31
_ROW_BYTES = 8 * (1 + len(NAMES))


class Sums:
    """Sums of samples by group, problem, cell, bin and outcome.

    Parameters
    ----------
    n_problems, n_bins : int
    """

    def __init__(self, n_problems: int, n_bins: int):
        self.n_problems, self.n_bins = n_problems, n_bins
        self._known = [(np.empty(0, dtype=np.int64), np.empty((len(NAMES), 0)))]

    @property
    def keys(self) -> np.ndarray:
        """Numbers of what the rows are of, increasing."""
        self._add_up()
        return self._known[0][0]

    @property
    def values(self) -> np.ndarray:
        """The sums of ``NAMES``, a column a row."""
        self._add_up()
        return self._known[0][1]

    @property
    def _radices(self) -> tuple[int, ...]:
        return (self.n_problems, N_CELLS, self.n_bins, OUTCOMES)

    def key(self, group, problem, cell, bin_, outcome) -> np.ndarray:
        """Number what a row is of."""
        key = group
        for part, radix in zip((problem, cell, bin_, outcome), self._radices, strict=True):
            key = key * radix + part
        return key

    def parts(self) -> list[np.ndarray]:
        """Group, problem, cell, bin and outcome of each row."""
        left, parts = self.keys, []
        for radix in reversed(self._radices):
            left, part = np.divmod(left, radix)
            parts.append(part)
        return [left, *reversed(parts)]

    def regroup(self, numbers: np.ndarray) -> None:
        """Give groups other numbers, rising with those that they have."""
        base = int(np.prod(self._radices))
        keys, values = self.keys, self.values
        self._known = [(keys + (numbers[keys // base] - keys // base) * base, values)]

    def within_groups(self, of_all: bool) -> Sums:
        """Return sums without groups; weights of a group are divided by their sum if above 1.

        Parameters
        ----------
        of_all : bool
            Whether each problem has all samples of a group.
        """
        group, problem, *places = self.parts()
        counted = self.values[:2] * ((problem == 0) | (not of_all))
        n, mass = (np.bincount(group, values) for values in counted)
        scale = 1 / np.maximum(np.where(n > 1, mass, 1.0), 1.0)[group]
        powers = np.array([[0], [1], [2], [1], [1], [1], [1]])  # of weights in NAMES
        joined = Sums(self.n_problems, self.n_bins)
        joined.append(self.key(0, problem, *places), self.values * scale**powers)
        return joined

    def append(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Add rows whose keys may be those of others."""
        self._known.append((keys, values))
        if sum(len(keys) for keys, _ in self._known[1:]) > _PENDING:
            self._add_up()

    def merge(self, other: Sums) -> None:
        """Add the rows of other sums of the same problems and bins."""
        self.append(other.keys, other.values)

    def copy(self) -> Sums:
        """Return sums that change on their own."""
        copied = Sums(self.n_problems, self.n_bins)
        copied._known = [(self.keys, self.values)]
        return copied

    def _add_up(self) -> None:
        if len(self._known) == 1:
            return
        keys = np.concatenate([keys for keys, _ in self._known])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        if _ROW_BYTES * len(starts) > _MOST_BYTES:
            reason = f"fill {len(starts):,} cells of a CalibrationTable, more than 2 GiB."
            remedy = "Count fewer classes or groups in a table, such as one table for each class."
            raise InputError("y_proba", reason, remedy)
        values = np.empty((len(NAMES), len(starts)))
        for k, sums in enumerate(values):  # one by one, since all are copied
            given = np.concatenate([of_rows[k] for _, of_rows in self._known])
            np.add.reduceat(given[order], starts, out=sums)
        self._known = [(keys[starts], values)]


_INNER = np.concatenate([2.0 ** np.arange(-10, -4), np.arange(1, 8) / 16])  # edges below 1/2
_N_COARSE = 2 * (len(_INNER) + 1)


class Products(NamedTuple):
    """Sums of w² δ δ' over the samples, δ and δ' residuals of two classes, in coarse cells of both.

    So the variance of a mean over several classes is known, for any signs that change at the edges.

    Attributes
    ----------
    values : ndarray of shape (n_pairs, n_cells, n_cells)
        Of the classes k < l, in the order of ``np.triu_indices``.
    n_classes : int
    """

    values: np.ndarray
    n_classes: int

    @classmethod
    def empty(cls, n_classes: int) -> Products:
        """Sums of no samples."""
        return cls(np.zeros((n_classes * (n_classes - 1) // 2, _N_COARSE, _N_COARSE)), n_classes)

    def add(self, x: np.ndarray, residuals: np.ndarray) -> None:
        """Add samples by their predictions and weighted residuals (n_classes, n)."""
        cells = _coarse(x)
        above = cells * _N_COARSE
        for pair, (k, other) in enumerate(np.transpose(np.triu_indices(self.n_classes, 1))):
            both, products = above[k] + cells[other], residuals[k] * residuals[other]
            self.values[pair] += np.bincount(both, products, _N_COARSE**2).reshape(_N_COARSE, -1)

    def between(self, factors: Sequence[tuple[np.ndarray, ...]]) -> float:
        """The sum over pairs of classes of the products, each residual times a factor.

        Parameters
        ----------
        factors : sequence of tuple of ndarray of shape (n_rows,)
            Of each class predictions, factors and shares in the mean factor of a cell.
        """
        means = np.zeros((self.n_classes, _N_COARSE))
        for mean, (x, factor, share) in zip(means, factors, strict=True):
            cells = _coarse(x)
            mass = np.bincount(cells, share, _N_COARSE)
            mean += np.bincount(cells, share * factor, _N_COARSE) / np.maximum(mass, 1e-300)
        first, second = np.triu_indices(self.n_classes, 1)
        return float(np.einsum("pk,pkl,pl->", means[first], self.values, means[second]))


def _coarse(x: np.ndarray) -> np.ndarray:
    """The coarse cells of predictions; those of p and 1 - p mirror each other."""
    cell = np.searchsorted(_INNER, np.minimum(x, 1 - x), side="right")
    return np.where(x > 0.5, _N_COARSE - 1 - cell, cell)


def count(
    sums: Sums, problem: Any, places: Places, x: np.ndarray, y: np.ndarray, weight: Any, group: Any
) -> None:
    """Add the samples of one problem, or of several.

    Parameters
    ----------
    sums : Sums
    problem : int or ndarray of shape (n,)
    places : Places
        For the dtype of ``x``.
    x, y : ndarray of shape (n,)
        Predictions and outcomes; of booleans and integers only 0 and 1.
    weight, group : ndarray of shape (n,) or None
    """
    shares, where = y.dtype.kind == "f", places(x)
    where *= OUTCOMES
    if shares:
        where += (y > 0) + ((y > 0) & (y < 1)).astype(np.intp)
    else:
        where += y.astype(np.intp, copy=False)
    size = OUTCOMES * len(places.cell)
    x = x.astype(np.float64)
    if group is None and np.ndim(problem) == 0:
        held = np.bincount(where, minlength=size)
        found = np.flatnonzero(held)
        n, of_rows, owner = held[found].astype(np.float64), where, problem
    else:
        given = problem if group is None else group * sums.n_problems + problem
        found, of_rows = np.unique(given * size + where, return_inverse=True)
        n = np.bincount(of_rows).astype(np.float64)
        owner, found = np.divmod(found, size)
        size = 0

    def total(values):
        added = np.bincount(of_rows, values, size)
        return added[found] if size else added

    place, outcome = np.divmod(found, OUTCOMES)
    if weight is None:
        w, w2, wp, wp2 = n, n, total(x), total(x * x)
    else:
        wx = weight * x
        w, w2, wp, wp2 = map(total, (weight, weight * weight, wx, wx * x))
    wy, wy2 = (np.where(outcome == 1, w, 0.0) for _ in range(2))
    if shares:
        wy_of = y if weight is None else weight * y
        between = outcome == 2
        wy[between], wy2[between] = total(wy_of)[between], total(wy_of * y)[between]
    group, problem = np.divmod(owner, sums.n_problems)
    keys = sums.key(group, problem, places.cell[place], places.bin[place], outcome)
    sums.append(keys, np.stack([n, w, w2, wp, wp2, wy, wy2]))
