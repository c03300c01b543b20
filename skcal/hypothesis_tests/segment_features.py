"""From features of samples to overlapping segments: categories, quantile ranges and their pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from skcal._labels import is_missing, named_columns
from skcal._validation import InputError

_DENSE = 256  # of more single segments the members are sparse
_KEYS = 2**26  # sums of so large integers are exact up to 10⁸ samples


class Rule(NamedTuple):
    """A condition on one column, which a sample fulfils or not.

    Attributes
    ----------
    column : str
    kind : {"true", "missing", "category", "value", "range"}
        A column that is true, a missing value, a string, a number, or a number with ``low`` < x ≤
        ``high``.
    low, high : str, float or None
        The category or the value is ``low``; None is no bound.
    name : str
        Such as ``age > 65``.
    """

    column: str
    kind: str
    low: Any
    high: Any
    name: str

    def __str__(self):
        return self.name

    def holds(self, column: np.ndarray) -> np.ndarray:
        """Return whether each value of the column fulfils the condition."""
        if self.kind == "true":
            return column.astype(bool)
        missing = np.array([is_missing(value) for value in column.tolist()], dtype=bool)
        if self.kind == "missing":
            return missing
        if self.kind == "category":
            return ~missing & (column.astype(str) == self.low)
        values = _as_numbers(column)
        if values is None:
            reason = f"column {self.column!r} holds no numbers, which {self.name!r} needs."
            raise InputError("features", reason, "Pass numbers, as before.")
        if self.kind == "value":
            return values == self.low
        low = -np.inf if self.low is None else self.low
        return (values > low) & (values <= (np.inf if self.high is None else self.high))


@dataclass(frozen=True, eq=False)
class Segments:
    """Overlapping subsets of the samples: what two single segments, or one and itself, share.

    Attributes
    ----------
    names : sequence of str
    single : ndarray or scipy.sparse.csr_array of shape (n_samples, n_single)
        1 where a sample belongs to a value or range of a feature.
    first, second : ndarray of shape (n_segments,)
        The columns of ``single`` that each segment has in common.
    n_left_out : int
        The number of further segments, with fewer samples than asked for.
    rules : sequence of Rule
        The condition of each column of ``single``.
    """

    names: Sequence[str]
    single: Any
    first: np.ndarray
    second: np.ndarray
    n_left_out: int = 0
    rules: Sequence[Rule] = ()

    def rules_of(self, segment: int) -> tuple[Rule, ...]:
        """Return the conditions of a segment, one or two."""
        columns = dict.fromkeys([int(self.first[segment]), int(self.second[segment])])
        return tuple(self.rules[column] for column in columns)

    def take(self, rows) -> Segments:
        """Return the segments of some of the samples."""
        return replace(self, single=self.single[rows])

    def keep(self, which: np.ndarray, n_left_out: int) -> Segments:
        """Return some of the segments, by their numbers."""
        names = [self.names[k] for k in which.tolist()]
        return replace(
            self,
            names=names,
            first=self.first[which],
            second=self.second[which],
            n_left_out=n_left_out,
        )

    @cached_property
    def _members(self) -> dict[int, np.ndarray]:
        """The samples of each single segment that is the first of some."""
        return {k: self._column(k).nonzero()[0].astype(np.intp) for k in np.unique(self.first)}

    def _column(self, k) -> np.ndarray:
        return np.asarray((self.single[:, [k]] * np.uint8(1)).sum(axis=1)) > 0

    def rows_of(self, segment: int) -> np.ndarray:
        """The samples of a segment."""
        rows = self._members[self.first[segment]]
        return rows[self._column(self.second[segment])[rows]]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the samples of each segment, (n_segments, k), of floats (n_samples, k).

        By a product for each first single segment, so that no more than ``single`` is in memory.
        """
        sums = np.empty((len(self.first), values.shape[1]), dtype=values.dtype)
        for first, rows in self._members.items():
            at = np.flatnonzero(self.first == first)
            members = self.single[rows][:, self.second[at]].astype(values.dtype)
            sums[at] = members.T @ values[rows]
        return sums


def make_segments(features, n_samples: int, *, n_bins=4, order=2, min_samples=20) -> Segments:
    """Return the segments of single features and, for ``order=2``, those of pairs of features.

    Parameters
    ----------
    features : data frame, arrow table, dict of columns or array-like
        Shape (n_samples, n_features) or (n_samples,).
    n_samples : int
    n_bins : int
        Quantile ranges of a column of numbers with more distinct values.
    order : {1, 2}
    min_samples : int
        Smaller segments are left out.
    """
    rules: list[Rule] = []
    feature, codes, n_left_out = [], [], 0
    for k, (name, column) in enumerate(named_columns(features, n_samples)):
        of_column, of_samples = _of_column(name, column, n_bins)
        size = np.bincount(of_samples[of_samples >= 0], minlength=len(of_column))
        large = np.flatnonzero(size >= min_samples)
        n_left_out += int(np.count_nonzero(size)) - len(large)
        place = np.full(len(of_column) + 1, -1)
        place[large] = len(rules) + np.arange(len(large))
        codes.append(place[of_samples])
        rules += [of_column[rule_number] for rule_number in large.tolist()]
        feature += [k] * len(large)
    names = [rule.name for rule in rules]
    if not names:
        reason = f"make no segment of at least {min_samples} samples."
        remedy = "Pass coarser features, or call segment_test with a lower min_samples or n_bins."
        raise InputError("features", reason, remedy)
    single = _membership(codes, len(names))
    each = np.arange(len(names))
    if order == 1:
        return _without_repetitions(Segments(names, single, each, each, n_left_out, rules))
    first, second, size = _pairs(single, np.array(feature))
    large = size >= min_samples
    n_left_out += int(np.count_nonzero(~large))
    first, second = first[large], second[large]
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    names += [f"{names[a]} and {names[b]}" for a, b in pairs]
    first, second = np.concatenate([each, first]), np.concatenate([each, second])
    return _without_repetitions(Segments(names, single, first, second, n_left_out, rules))


def _membership(codes, width):
    """Members (n_samples, width) of the columns that codes of several features tell; -1: none."""
    n_samples = len(codes[0])
    columns = np.concatenate(codes)
    rows = np.tile(np.arange(n_samples), len(codes))[columns >= 0]
    columns = columns[columns >= 0]
    if width > _DENSE:
        entries = np.ones(len(rows), dtype=np.uint8), (rows, columns)
        return sparse.csr_array(entries, shape=(n_samples, width))
    single = np.zeros((n_samples, width), dtype=np.uint8)
    single[rows, columns] = 1
    return single


def _pairs(single, feature):
    """The columns of two features that share samples, and how many, feature by feature."""
    exact = single.astype(np.float32 if single.shape[0] < 2**24 else np.float64)
    shared = sparse.coo_array(exact.T @ exact)
    first, second = shared.coords
    other = feature[first] < feature[second]
    first, second, size = first[other], second[other], shared.data[other]
    order = np.lexsort((second, first, feature[second], feature[first]))
    return first[order], second[order], size[order].astype(int)


def _without_repetitions(segments: Segments) -> Segments:
    """Make segments of the same samples one, with the names of all."""
    rng = np.random.default_rng(0)  # for sums that no two sets of samples have in common
    keys = segments.sums(rng.integers(_KEYS, size=(segments.single.shape[0], 3)).astype(np.float64))
    first_of: dict[bytes, int] = {}
    same = np.array([first_of.setdefault(key.tobytes(), k) for k, key in enumerate(keys)])
    names: dict[int, list[str]] = {}
    for name, first in zip(segments.names, same.tolist(), strict=True):
        names.setdefault(first, []).append(name)
    kept = segments.keep(np.array(list(names)), segments.n_left_out)
    return replace(kept, names=[_as_one_name(shared_names) for shared_names in names.values()])


def _as_one_name(names: list[str]) -> str:
    """The names of one segment, the first and so many others."""
    if len(names) < 3:
        return ", also ".join(names)
    return f"{names[0]}, also {names[1]} and {len(names) - 2} more"


def _of_column(name, column, n_bins):
    """The conditions of one feature, and the number of that of each sample; -1: none."""
    if column.dtype.kind == "b":
        return [Rule(name, "true", None, None, name)], np.where(column, 0, -1)
    if column.dtype.kind in "mMcV":
        raise InputError(
            "features",
            f"column {name!r} holds {column.dtype}.",
            "Pass numbers, strings or booleans, such as the month of a date.",
        )
    values = _as_numbers(column)
    missing = np.array([is_missing(value) for value in column.tolist()])
    if values is None:
        labels, codes = np.unique(column[~missing].astype(str), return_inverse=True)
        rules = [
            Rule(name, "category", label, None, f"{name} = {label}") for label in labels.tolist()
        ]
    else:
        rules, codes = _quantiles_of(name, values[~missing], n_bins)
    group = np.full(len(column), len(rules))
    group[~missing] = codes
    if missing.any():
        rules.append(Rule(name, "missing", None, None, f"{name} missing"))
    return rules, group


def _as_numbers(column):
    """The column as floats, or None if it holds other things than numbers and missing values."""
    if column.dtype.kind in "iuf":
        return column.astype(np.float64)
    if column.dtype.kind != "O":
        return None
    numbers = [np.nan if is_missing(value) else value for value in column.tolist()]
    if any(isinstance(value, str | bool) for value in numbers):
        return None
    try:
        return np.array(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _quantiles_of(name, values, n_bins):
    """Quantile ranges (low, high] by their ends, or single values where there are few."""
    distinct = np.unique(values)
    if len(distinct) <= n_bins:
        rules = [
            Rule(name, "value", value, None, f"{name} = {value:.6g}") for value in distinct.tolist()
        ]
        return rules, np.searchsorted(distinct, values)
    shares = np.arange(1, n_bins) / n_bins
    ends = np.quantile(values, shares, method="inverted_cdf")
    ends = np.unique(ends[ends < distinct[-1]])
    codes = np.searchsorted(ends, values)
    shown = _shortly(ends)
    names = [
        f"{name} ≤ {shown[0]}",
        *(f"{name} in ({low}, {high}]" for low, high in pairwise(shown)),
        f"{name} > {shown[-1]}",
    ]
    bounds = [None, *ends.tolist(), None]
    rules = [
        Rule(name, "range", *pair, text) for pair, text in zip(pairwise(bounds), names, strict=True)
    ]
    return rules, codes


def _shortly(numbers):
    """Numbers with as few digits as tell them apart, three at least; integers as they are."""
    shown = [f"{end:.3g}" if end % 1 and abs(end) < 1000 else f"{end:.9g}" for end in numbers]
    return shown if len(set(shown)) == len(shown) else [f"{end:.9g}" for end in numbers]
