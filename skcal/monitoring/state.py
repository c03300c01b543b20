"""The state of a monitor as JSON: plain numbers and names, every one checked when it is read."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from skcal._show import read_json
from skcal._validation import plain_labels
from skcal.monitoring.evidence import MOST_ROWS
from skcal.monitoring.layout import Layout
from skcal.notions import resolve_notion

_FORMAT, _VERSION = "skcal monitor", 1
_MOST = 2**62  # of samples, and of sums of numbers up to 1
_SIGNED = {"log_wealth", "log_starts", "bias_sums", "error_sums", "rows", "LearnedTilt", "totals"}
_INFINITE = {"log_wealth", "log_starts", "rows"}


def dump(monitor) -> str:
    """Write a monitor; floats are written so that they are read as the same."""
    document: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "alpha": float(monitor.alpha),
        "run_length": None if monitor.run_length is None else float(monitor.run_length),
        "layout": None,
    }
    if monitor._layout is None:
        if not isinstance(monitor.notion, str):
            raise ValueError("notion is a callable, which JSON does not hold. Use a named notion.")
        labels = monitor.labels if monitor.labels is None else np.asarray(monitor.labels).tolist()
        return json.dumps({**document, "notion": str(monitor.notion), "labels": labels}, indent=1)
    history = monitor._history
    document |= {
        "layout": monitor._layout.to_dict(),
        "n_samples": monitor.n_samples_seen_,
        "alarm": monitor.alarm_,
        "evidence": [
            {name: _as_lists(array) for name, array in evidence.arrays().items()}
            for evidence in monitor._evidence
        ],
        "history": {
            "n_batches": history.n_batches,
            "stride": history.stride,
            "rows": _as_lists(history.rows),
        },
    }
    return json.dumps(document, allow_nan=False)


def _as_lists(array: np.ndarray) -> list:
    """Nested lists; infinities as text, for which JSON has no number."""
    if np.isfinite(array).all():
        return array.tolist()
    if array.ndim == 1:
        return [value if np.isfinite(value) else str(value) for value in array.tolist()]
    return [_as_lists(row) for row in array]


def load(cls, text: str):
    """Read a monitor of a class; raises ValueError where the text is not one's state."""
    try:
        document = read_json(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise _wrong("text", f"is not JSON ({error})") from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise _wrong("text", "is not the state of a monitor")
    if document.get("version") != _VERSION:
        raise _wrong("version", f"is {document.get('version')!r}, and {_VERSION} can be read")
    alpha, run_length = document.get("alpha"), document.get("run_length")
    if document.get("layout") is None:
        monitor = cls(document.get("notion"), document.get("labels"), alpha, run_length=run_length)
        _check_parameters(monitor)
        return monitor
    layout = _read_layout(_part(document, "layout", dict))
    labels = layout.classes.tolist()
    monitor = cls(str(layout.notion), labels, alpha, run_length=run_length)
    _check_parameters(monitor)
    evidence = _part(document, "evidence", list)
    if len(evidence) != len(layout.titles()):
        raise _wrong("evidence", f"has {len(evidence)} problems, not {len(layout.titles())}")
    monitor._begin(layout, layout.evidence())
    for own, given in zip(monitor._evidence, evidence, strict=True):
        _fill(own.arrays(), given)
    _read_history(monitor._history, _part(document, "history", dict))
    monitor.n_samples_seen_ = _integer(document, "n_samples", 0)
    if document.get("alarm") is not None:
        monitor.alarm_ = _integer(document, "alarm", 0)
    return monitor


def _wrong(place: str, what: str) -> ValueError:
    return ValueError(f"{place} {what}. Pass what to_json() of a monitor returned.")


def _check_parameters(monitor) -> None:
    try:
        monitor._validate_params()
    except (ValueError, TypeError) as error:
        raise _wrong("text", f"holds parameters that are not valid ({error})") from error


def _part(document: dict, name: str, kind: type) -> Any:
    if not isinstance(document, dict) or not isinstance(document.get(name), kind):
        raise _wrong(name, "is missing or of another kind")
    return document[name]


def _integer(document: dict, name: str, least: int) -> int:
    value = document.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _MOST:
        raise _wrong(name, f"is {str(value)[:40]}, not a count")
    return value


def _read_layout(given: dict) -> Layout:
    """Read columns, classes and the notion."""
    classes, names = _part(given, "classes", list), given.get("names")
    n_columns = given.get("n_columns")
    if n_columns is not None:
        n_columns = _integer(given, "n_columns", 2)
    plain = all(isinstance(label, str | int | float) for label in classes)
    if not plain or len(set(classes)) != len(classes) or len(classes) != (n_columns or 2):
        raise _wrong("classes", "is not one name or number a column")
    named = isinstance(names, list) and all(isinstance(name, str | int | float) for name in names)
    if names is not None and not (named and len(names) == len(classes)):
        raise _wrong("names", "is not one name a column")
    notion = _part(given, "notion", str)
    proba = np.zeros((1, n_columns)) if n_columns else np.zeros(1)
    try:
        found = resolve_notion(notion, proba)
        return Layout(n_columns, names, plain_labels(classes, "classes"), found)
    except (ValueError, OverflowError) as error:
        raise _wrong("layout", f"is not valid ({error})") from error


def _array(given: Any, name: str) -> np.ndarray:
    """Read nested lists of numbers, infinities where they may be."""
    try:
        array = np.array(given, dtype=object)
        if not all(_is_number(value) for value in array.ravel()):
            raise ValueError("an entry is not a number")
        array = array.astype(np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise _wrong(name, f"is not an array of numbers ({error})") from error
    possible = np.abs(array) < _MOST
    if name in _INFINITE:
        possible |= np.isinf(array)
    if not possible.all() or (name not in _SIGNED and (array < 0).any()):
        raise _wrong(name, "holds a number that is not possible")
    return array


def _is_number(value: Any) -> bool:
    return value in ("inf", "-inf") if isinstance(value, str) else type(value) in (int, float)


def _fill(arrays: dict[str, np.ndarray], given: Any) -> None:
    """Copy what was given into arrays of the same names and shapes."""
    if not isinstance(given, dict) or given.keys() != arrays.keys():
        raise _wrong("evidence", f"has other parts than {', '.join(arrays)}")
    for name, own in arrays.items():
        array = _array(given[name], name)
        if array.shape != own.shape:
            raise _wrong(name, f"has shape {array.shape}, not {own.shape}")
        if name == "totals" and (array[[0, 1, 3]] < 0).any():
            raise _wrong(name, "holds a negative count")
        own[...] = array


def _read_history(history, given: dict) -> None:
    rows = _array(_part(given, "rows", list), "rows")
    if rows.ndim != 2 or rows.shape[1] != history.rows.shape[1] or not 0 < len(rows) <= MOST_ROWS:
        raise _wrong("rows", f"has shape {rows.shape}")
    counts = rows[:, [0, 3]]
    if not ((counts >= 0) & (counts < _MOST)).all() or not np.isfinite(rows[:, 3:]).all():
        raise _wrong("rows", "holds a number that is not possible")
    history.rows = rows
    history.n_batches = _integer(given, "n_batches", 1)
    history.stride = _integer(given, "stride", 1)
