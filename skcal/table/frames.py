"""Tables as data frames and as JSON, and back, with every sum checked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from skcal._labels import sorted_labels
from skcal._rounding import RESOLUTION
from skcal._show import Document
from skcal._sklearn_compat import validate_parameter_constraints
from skcal._validation import InputError
from skcal.table.sums import N_CELLS, NAMES, OUTCOMES, Places, Products, Sums, ends_of

_FORMAT, _VERSION = "skcal table", 1
_REMEDY = "Pass what to_json() of a CalibrationTable returned."
_ROUNDING = 1e-6  # relative, of sums of another engine, which may be of 32 bits
_ALIKE = 1e-9  # of weights
_MOST = 2.0**53
_ANEW = "Count the table anew."
_EDGES = "Pass edges= as they were when the bins were counted."
_PROBABILITIES = "Count probabilities: divide percentages by 100, and leave out rows without one."
_OUTCOMES = "Count outcomes 0 and 1, and leave out rows without one."
#: What to do about columns that an engine counted of other rows than those of a table.
_COLUMN_ADVICE = {"cell": _PROBABILITIES, "wp": _PROBABILITIES, "bin": _EDGES, "outcome": _OUTCOMES}
#: What each column of a frame is, and the columns that may be left out.
KEYS = ("problem", "group", "cell", "bin", "outcome")


def to_frame(sums: Sums, groups: Any, titles: list[str]) -> Any:
    """Return a pandas data frame, a row for each cell, bin, outcome, class and group."""
    import pandas as pd

    group, problem, *places = sums.parts()
    columns: dict[str, Any] = {}
    if len(titles) > 1:
        columns["problem"] = np.array(titles, dtype=object)[problem]
    if groups is not None:
        columns["group"] = groups[group]
    columns |= dict(zip(KEYS[2:], places, strict=True))
    columns |= dict(zip(NAMES, sums.values, strict=True))
    columns["n"] = columns["n"].astype(np.int64)
    return pd.DataFrame(columns)


def from_frame(frame: Any, intervals: Any, titles: list[str]) -> tuple[Sums, Any]:
    """Check the sums of a data frame; return them, and the labels of its groups or None."""
    if hasattr(frame, "to_pandas"):  # of Polars and Arrow
        frame = frame.to_pandas()
    names = list(getattr(frame, "columns", ()))
    several = ("problem",) if len(titles) > 1 else ()
    for name in (*several, "cell", "bin", "outcome", "n", "wp", "wp2"):
        if name not in names:
            reason = f"has no column {name!r}: its columns are {names[:12]}."
            raise InputError("frame", reason, "Name the columns as to_frame() does.")
    n = _numbers(frame, "n")
    given = {name: _numbers(frame, name) for name in NAMES if name in names}
    given = {"w": n, "w2": n} | given
    keys = {name: _whole(frame, name, most) for name, most in _most(intervals).items()}
    given["wy"] = given.get("wy", np.where(keys["outcome"] == 1, given["w"], 0.0))
    given["wy2"] = given.get("wy2", np.where(keys["outcome"] == 1, given["w"], 0.0))
    problem, groups = np.zeros(len(n), dtype=np.intp), None
    if several:
        order = {str(title): k for k, title in enumerate(titles)}
        named = [str(name) for name in frame["problem"].tolist()]
        other = next((row for row, name in enumerate(named) if name not in order), None)
        if other is not None:
            reason = f"holds the problem {named[other]!r}, not one of {titles[:8]}."
            raise InputError("frame", reason, "Pass the labels of all classes.", row=other)
        problem = np.array([order[name] for name in named])
    group = np.zeros(len(n), dtype=np.intp)
    if "group" in names:
        groups, group = sorted_labels(frame["group"].to_numpy(), "group")
    _check_sums(keys, given, intervals)
    sums = Sums(len(titles), intervals.n_bins)
    values = np.stack([given[name] for name in NAMES])
    sums.append(sums.key(group, problem, *keys.values()), values)
    return sums, groups


def joint_of_classes(sums: Sums, titles: list[str], of_one: bool) -> float:
    """Check that classes have the same samples; return Σ (w Σ |δ|)², or infinity.

    If each sample is of one class, its absolute residuals are together twice 1 - p of that class.
    """
    problem, outcome = sums.parts()[1::3]
    n, w, w2, wp, wp2, wy, _ = sums.values
    counts, mass = (np.bincount(problem, values, len(titles)) for values in (n, w))
    other = int(np.argmax(counts != counts[0]))
    remedy = "Count each sample in each class, with the outcome 1 in its own."
    if other:
        reason = f"holds {counts[0]:,.0f} samples in {titles[0]!r}, {counts[other]:,.0f} in "
        raise InputError("frame", f"{reason}{titles[other]!r}.", remedy)
    if of_one and abs(wy.sum() - mass[0]) > _ROUNDING * mass[0]:
        reason = f"holds {mass[0]:,.6g} samples, of which {wy.sum():,.6g} are of a class."
        raise InputError("frame", reason, remedy)
    if not of_one or (outcome == 2).any():
        return np.inf
    return 4 * float((w2 * (1 - (2 * wp - wp2) / w))[outcome == 1].sum())


def are_counts(weight: np.ndarray) -> bool:
    """Whether each weight is a count or at most 1, so that powers of fair bets are fair."""
    return bool(((weight <= 1) | (weight % 1 == 0)).all())


def repeats(sums: Sums) -> bool:
    """Whether sums show that each weight is a count or at most 1: those of a row are alike."""
    n, w, w2 = sums.values[:3]
    alike = np.abs(w2 * n - w**2) <= _ALIKE * w**2
    near = np.abs(w / n - np.rint(w / n)) < _ALIKE
    return bool(alike.all()) and are_counts(np.where(near, np.rint(w / n), w / n))


def _most(intervals) -> dict[str, int]:
    return {"cell": N_CELLS, "bin": intervals.n_bins, "outcome": OUTCOMES}


def _numbers(frame, name) -> np.ndarray:
    values = np.asarray(frame[name])
    try:
        values = values.astype(np.float64)
    except (TypeError, ValueError):
        remedy = _COLUMN_ADVICE.get(name, "Pass sums.")
        raise InputError(name, "holds no numbers.", remedy) from None
    remedy = _COLUMN_ADVICE.get(name, _ANEW)
    _refuse(name, ~np.isfinite(values), values, "is not a finite number.", remedy)
    return values


def _whole(frame, name, most) -> np.ndarray:
    values = _numbers(frame, name)
    wrong = (values < 0) | (values >= most) | (values != np.rint(values))
    reason = f"is not a whole number from 0 to {most - 1:,}."
    _refuse(name, wrong, values, reason, _COLUMN_ADVICE.get(name, _ANEW))
    return values.astype(np.intp)


def _refuse(name, wrong, values, reason, remedy=_ANEW) -> None:
    """Raise for the first wrong row of a column."""
    if wrong.any():
        row = int(np.argmax(wrong))
        shown = f"{values[row]:.12g} " if values is not None else ""
        raise InputError(name, f"{shown}{reason}", remedy, row=row)


def _check_sums(keys, sums, intervals) -> None:
    """Raise for sums that no predictions of a cell have."""
    n, w, w2, wp, wp2, wy, wy2 = (sums[name] for name in NAMES)
    cell, bin_, outcome = keys.values()
    _refuse("n", (n < 1) | (n != np.rint(n)) | (n > _MOST), n, "is not a number of samples.")
    _refuse("w", w <= 0, w, "is not a sum of positive weights.")
    least = w**2 / n
    wrong = (w2 < least * (1 - _ROUNDING)) | (w2 > w**2 * (1 + _ROUNDING))
    _refuse("w2", wrong, w2, "is no sum of squares of n weights with the sum w.")
    low, high = ends_of(cell)
    edges = intervals.edges
    cut = Places.of(intervals, np.dtype(np.float64))
    possible = np.isin(cell * intervals.n_bins + bin_, cut.cell * intervals.n_bins + cut.bin)
    other = "is not the bin of this cell: the edges are others."
    _refuse("bin", ~possible, bin_, other, _EDGES)
    low, high = np.maximum(low, edges[bin_]), np.minimum(high, edges[bin_ + 1])
    slack = _ROUNDING * np.maximum(high, 1e-9)
    mean = wp / w
    wrong = (mean < low - slack) | (mean > high + slack)
    _refuse("wp", wrong, wp, "is no sum of predictions of this cell.")
    mean_square = wp2 / w
    width = (high - low + slack) ** 2
    wrong = (mean_square < mean**2 * (1 - _ROUNDING) - slack**2) | (
        mean_square > mean**2 * (1 + _ROUNDING) + width + slack**2
    )
    _refuse("wp2", wrong, wp2, "is no sum of squares of predictions of this cell.")
    rate, square = wy / w, wy2 / w
    between = outcome == 2
    wrong = np.where(between, (rate <= 0) | (rate >= 1), np.abs(rate - outcome) > _ROUNDING)
    _refuse("wy", wrong, wy, "is no sum of outcomes of this kind.")
    wrong = (square < rate**2 * (1 - _ROUNDING)) | (square > rate * (1 + _ROUNDING))
    _refuse("wy2", wrong, wy2, "is no sum of squares of outcomes of this kind.")


def dump(table: Any) -> str:
    """Write a table as JSON; floats are written so that they are read as the same."""
    columns, sums = table._known, table._sums
    document: dict[str, Any] = {"format": _FORMAT, "version": _VERSION, **columns.to_dict()}
    document |= {"edges": table.edges.tolist(), "resolution": table.resolution}
    joint = None if np.isinf(table._joint) else table._joint
    document |= {"joint": joint, "of_shares": table._of_shares, "repeats": table._repeats}
    if table._products is not None:
        document["products"] = table._products.ravel().tolist()
    if sums is not None:
        group, problem, *places = (part.tolist() for part in sums.parts())
        document |= dict(zip(KEYS, (problem, group, *places), strict=True))
        document |= dict(zip(NAMES, sums.values.tolist(), strict=True))
    labels = table._group_labels
    document["groups"] = None if labels is None else labels.tolist()
    return json.dumps(document, allow_nan=False)


def load(table: Any, text: str, columns_of: Any, intervals_of: Any) -> None:
    """Fill an empty table from JSON, of which every part is checked."""
    document = Document.parse(text, "a CalibrationTable", _REMEDY)
    if document.parts.get("format") != _FORMAT:
        raise document.wrong("text", "is not a CalibrationTable")
    document.expect("version", _VERSION)
    table._columns = table._given_columns = columns_of(document)
    table._intervals = intervals_of(document.array("edges", low=0, high=1))
    table.resolution = document.parts.get("resolution")
    validate_parameter_constraints(RESOLUTION, {"resolution": table.resolution}, "CalibrationTable")
    joint = document.parts.get("joint")
    table._joint = np.inf if joint is None else document.number("joint", 0, np.inf)
    table._of_shares = document.value("of_shares", bool)
    if "n" not in document.parts:
        return
    names = [*KEYS, *NAMES]
    arrays = {name: document.array(name, low=0) for name in names}
    if len({array.shape for array in arrays.values()}) > 1 or arrays["n"].ndim != 1:
        raise document.wrong("n", "is of another length than other sums")
    n_problems, groups = table._columns.n_problems, document.parts.get("groups")
    keys = {name: _whole(arrays, name, most) for name, most in _most(table._intervals).items()}
    problem = _whole(arrays, "problem", n_problems)
    group = _whole(arrays, "group", 1 if groups is None else len(document.value("groups", list)))
    given = {name: _numbers(arrays, name) for name in NAMES}
    _check_sums(keys, given, table._intervals)
    table._sums = Sums(n_problems, table._intervals.n_bins)
    key = table._sums.key(group, problem, *keys.values())
    table._sums.append(key, np.stack([given[name] for name in NAMES]))
    if table._columns.pairs_known and "products" in document.parts:
        products, empty = document.array("products"), Products.empty(n_problems).values
        most = given["w2"].sum() / n_problems * (1 + _ROUNDING)
        if products.size != empty.size:
            raise document.wrong("products", "is of another length than pairs of cells")
        table._products = products.reshape(empty.shape).astype(np.float64)
        if np.abs(table._products).sum(axis=(1, 2)).max() > most:
            raise document.wrong("products", "is not of the residuals of these samples")
    known = "repeats" in document.parts  # of a table that this version or a later one wrote
    table._repeats = document.value("repeats", bool) if known else repeats(table._sums)
    if groups is not None:
        labels, codes = sorted_labels(groups, "groups")
        if not np.array_equal(codes, np.arange(len(labels))):
            raise document.wrong("groups", "is not one label a group, in order")
        table._group_labels = labels
