"""Sums over the cells of a table, sparse and in order, which add up."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcal._validation import InputError
from skcal.table.cells import N_CELLS, Places

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
        values = np.concatenate([values for _, values in self._known], axis=1)[:, order]
        self._known = [(keys[starts], np.add.reduceat(values, starts, axis=1))]


def count(
    sums: Sums, problem: int, places: Places, x: np.ndarray, y: np.ndarray, weight: Any, group: Any
) -> None:
    """Add the samples of one problem.

    Parameters
    ----------
    sums : Sums
    problem : int
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
    given, x = (np.zeros(len(x), dtype=np.intp) if group is None else group), x.astype(np.float64)
    if group is None:
        held = np.bincount(where, minlength=size)
        found = np.flatnonzero(held)
        n, of_rows, owner = held[found].astype(np.float64), where, given[:1]
    else:
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
    keys = sums.key(owner, problem, places.cell[place], places.bin[place], outcome)
    sums.append(keys, np.stack([n, w, w2, wp, wp2, wy, wy2]))
