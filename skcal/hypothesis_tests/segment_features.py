"""From features of samples to overlapping segments: categories, quantile ranges and their pairs."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse

from skcal._labels import column_names, is_missing
from skcal._validation import InputError, decoded


class Segments(NamedTuple):
    """Overlapping subsets of the samples, all different.

    Attributes
    ----------
    names : list of str
    members : scipy.sparse.csr_array of shape (n_segments, n_samples)
        1 where a sample belongs to a segment.
    n_left_out : int
        The number of further ones, with fewer samples than asked for.
    """

    names: list[str]
    members: sparse.csr_array
    n_left_out: int


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
    single = [
        _of_column(name, column, n_bins) for name, column in read_columns(features, n_samples)
    ]
    kept = [_large(block, min_samples) for block in single]
    pairs = combinations(kept, 2) if order == 2 else ()
    paired = [_intersections(first, second) for first, second in pairs]
    blocks = [*kept, *(_large(block, min_samples) for block in paired)]
    members = sparse.csr_array(sparse.vstack([own for _, own in blocks], format="csr"))
    names = [name for own_names, _ in blocks for name in own_names]
    if not names:
        reason = f"make no segment of at least {min_samples} samples."
        remedy = "Pass coarser features, or call segment_test with a lower min_samples or n_bins."
        raise InputError("features", reason, remedy)
    left_out = sum(np.count_nonzero(np.diff(own.indptr)) for _, own in [*single, *paired])
    return _without_repetitions(Segments(names, members, int(left_out) - len(names)))


def _without_repetitions(segments: Segments) -> Segments:
    """Make segments of the same samples one, with the names of all."""
    members = segments.members
    members.sort_indices()
    rows = (members.indices[a:b].tobytes() for a, b in pairwise(members.indptr.tolist()))
    first_of: dict[bytes, int] = {}
    same = np.array([first_of.setdefault(key, k) for k, key in enumerate(rows)])
    names: dict[int, list[str]] = {}
    for name, first in zip(segments.names, same.tolist(), strict=True):
        names.setdefault(first, []).append(name)
    return Segments(
        [_as_one_name(own) for own in names.values()], members[list(names)], segments.n_left_out
    )


def _as_one_name(names: list[str]) -> str:
    """The names of one segment, the first and so many others."""
    if len(names) < 3:
        return ", also ".join(names)
    return f"{names[0]}, also {names[1]} and {len(names) - 2} more"


def _large(block, min_samples):
    """The segments of a block with enough samples."""
    names, members = block
    rows = np.flatnonzero(np.diff(members.indptr) >= min_samples)
    return [names[k] for k in rows], members[rows]


def _intersections(first, second):
    """The segments of the samples that are in one of the first and one of the second block."""
    names = [f"{a} and {b}" for a in first[0] for b in second[0]]
    belongs = [first[1][[row]].toarray()[0] > 0 for row in range(len(first[0]))]
    members = [second[1] @ sparse.diags_array(rows.astype(np.float32)) for rows in belongs]
    both = sparse.csr_array(sparse.vstack([second[1][:0], *members], format="csr"))
    both.eliminate_zeros()
    return names, both


def read_columns(features, n_samples):
    """Return name and values of each column."""
    names = list(features) if isinstance(features, dict) else column_names(features)
    if names is None:
        array, name = np.asarray(features), None
        if array.ndim == 1:
            array = array[:, None]
            name = getattr(features, "name", None)  # of a pandas Series
        if array.ndim != 2:
            reason = f"has {array.ndim} dimensions."
            raise InputError("features", reason, "Pass (n_samples, n_features).")
        names = [f"feature {k}" for k in range(array.shape[1])] if name is None else [str(name)]
        columns = list(zip(names, array.T, strict=True))
    else:
        _refuse_equal(names)
        columns = [(str(name), _values(features, name)) for name in names]
    if not columns:
        raise InputError("features", "has no columns.", "Pass at least one.")
    for name, column in columns:
        _refuse_nested(name, column)
        if column.shape != (n_samples,):
            reason = f"column {name!r} has shape {column.shape}, y_proba {n_samples} rows."
            raise InputError("features", reason, "Pass one value a sample.")
    return columns


def _refuse_equal(names):
    """Raise where two columns have the same name."""
    known = set()
    for name in map(str, names):
        if name in known:
            raise InputError("features", f"has two columns {name!r}.", "Name each once.")
        known.add(name)


def _values(features, name):
    """A column of a data frame, an arrow table or a dict."""
    try:
        return np.asarray(decoded(features[name]))
    except TypeError as error:
        reason = f"is a {type(features).__name__}, whose columns cannot be read."
        raise InputError("features", reason, "Pass a data frame, or collect() it.") from error


def _refuse_nested(name, column):
    """Raise where an entry holds several values."""
    kinds = (list, tuple, dict, set, np.ndarray)
    nested = [isinstance(value, kinds) for value in column] if column.dtype.kind == "O" else []
    if any(nested):
        raise InputError(
            "features",
            f"column {name!r} holds {type(column[nested.index(True)]).__name__}s.",
            "Pass a column for each of their parts.",
            row=nested.index(True),
        )


def _of_column(name, column, n_bins):
    """Names and members of the segments of one feature."""
    if column.dtype.kind == "b":
        return [name], sparse.csr_array(column[None].astype(np.float32))
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
        names = [f"{name} = {label}" for label in labels.tolist()]
    else:
        names, codes = _ranges(name, values[~missing], n_bins)
    group = np.full(len(column), len(names))
    group[~missing] = codes
    if missing.any():
        names.append(f"{name} missing")
    entries = np.ones(len(column), dtype=np.float32), (group, np.arange(len(column)))
    return names, sparse.csr_array(entries, shape=(len(names), len(column)))


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


def _ranges(name, values, n_bins):
    """Quantile ranges (low, high] by their ends, or single values where there are few."""
    distinct = np.unique(values)
    if len(distinct) <= n_bins:
        return [f"{name} = {value:.6g}" for value in distinct], np.searchsorted(distinct, values)
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
    return names, codes


def _shortly(numbers):
    """Numbers with as few digits as tell them apart, three at least; integers as they are."""
    shown = [f"{one:.3g}" if one % 1 and abs(one) < 1000 else f"{one:.9g}" for one in numbers]
    return shown if len(set(shown)) == len(shown) else [f"{one:.9g}" for one in numbers]
