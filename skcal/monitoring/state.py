"""The state of a monitor as JSON: plain numbers and names, every one checked when it is read."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from skcal._files import Document
from skcal._labels import plain_labels
from skcal.monitoring.history import MOST_ROWS
from skcal.monitoring.layout import Layout
from skcal.monitoring.status import Entry
from skcal.notions import resolve_notion

_FORMAT, _VERSION = "skcal monitor", 4
_EARLIER = 3  # which knows no bets on ranges, nor what an alarm was raised for
_REMEDY = "Pass what to_json() of a monitor returned."
_MOST = 2**62  # of samples, and of sums of numbers up to 1
_SIGNED = {"log_wealth", "log_starts", "bias_sums", "error_sums", "rows", "totals", "begun"} | {
    "LearnedTilt",
    "PivotedSlopes",
    "runs",
}
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
    document["journal"] = [entry._asdict() for entry in monitor.journal_]
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
        "acknowledged": monitor.acknowledged_,
        "evidence": [
            {name: _as_lists(array) for name, array in evidence.arrays().items()}
            for evidence in monitor._evidence
        ],
        "history": {
            "n_batches": history.n_batches,
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
    document = Document.parse(text, "the state of a monitor", _REMEDY)
    if document.parts.get("format") != _FORMAT:
        raise document.wrong("text", "is not the state of a monitor")
    given = document.parts
    if given.get("version") != _EARLIER:
        document.expect("version", _VERSION)
    options = {"alpha": given.get("alpha"), "run_length": given.get("run_length")}
    question, layout = (given.get("notion"), given.get("labels")), None
    if given.get("layout") is not None:
        layout = _read_layout(document.part("layout"))
        question = str(layout.notion), layout.classes.tolist()
    monitor = _valid(cls(*question, **options), document)
    monitor.journal_ = tuple(_read_entry(entry) for entry in document.objects("journal"))
    if layout is None:
        return monitor
    evidence = document.objects("evidence")
    if len(evidence) != len(layout.titles()):
        reason = f"has {len(evidence)} problems, not {len(layout.titles())}"
        raise document.wrong("evidence", reason)
    monitor._begin(layout, layout.evidence("runs" in evidence[0].parts))
    for of_problem, parts in zip(monitor._evidence, evidence, strict=True):
        _fill(of_problem.arrays(), parts)
    _read_history(monitor._history, document.part("history"))
    monitor.n_samples_seen_ = document.count("n_samples", 0)
    for name in ("alarm", "acknowledged"):
        if given.get(name) is not None:
            setattr(monitor, f"{name}_", document.count(name, 0))
    return monitor


def _valid(monitor, document: Document):
    """Return the monitor if its parameters are valid."""
    try:
        monitor._validate_params()
    except (ValueError, TypeError) as error:
        reason = f"holds parameters that are not valid ({error})"
        raise document.wrong("text", reason) from error
    return monitor


def _read_entry(given: Document) -> Entry:
    """Read an entry of the journal; what is not known is None, or absent in earlier versions."""
    entry = given.value("what", str), given.count("n_samples", 0), given.value("note", str)
    known = {name for name in ("since", "low", "high") if given.parts.get(name) is not None}
    since = given.count("since", 1) if "since" in known else None
    low, high = (given.number(k, 0, 1) if k in known else None for k in ("low", "high"))
    if (low is None) != (high is None) or (low is not None and since is None):
        raise given.wrong("journal", "has a range without its ends or its first sample")
    return Entry(*entry, since, low, high)


def _read_layout(given: Document) -> Layout:
    """Read columns, classes and the notion."""
    n_columns = given.parts.get("n_columns")
    if n_columns is not None:
        n_columns = given.count("n_columns", 2)
    classes, names = given.labels("classes", n_columns or 2), given.parts.get("names")
    named = isinstance(names, list) and all(isinstance(name, str | int | float) for name in names)
    if names is not None and not (named and len(names) == len(classes)):
        raise given.wrong("names", "is not one name a column")
    notion = given.value("notion", str)
    proba = np.zeros((1, n_columns)) if n_columns else np.zeros(1)
    try:
        resolved = resolve_notion(notion, proba)
        return Layout(n_columns, names, plain_labels(classes, "classes"), resolved)
    except (ValueError, OverflowError) as error:
        raise given.wrong("layout", f"is not valid ({error})") from error


def _fill(arrays: dict[str, np.ndarray], given: Document) -> None:
    """Copy what was given into arrays of the same names and shapes."""
    if given.parts.keys() != arrays.keys():
        raise given.wrong("evidence", f"has other parts than {', '.join(arrays)}")
    for name, kept in arrays.items():
        low = -_MOST if name in _SIGNED else 0
        array = given.array(name, low=low, high=_MOST, infinite=name in _INFINITE)
        if array.shape != kept.shape:
            raise given.wrong(name, f"has shape {array.shape}, not {kept.shape}")
        if name == "totals" and (array[[0, 1, 2, 4]] < 0).any():
            raise given.wrong(name, "holds a negative count")
        kept[...] = array
    before, now = arrays["begun"][:2], arrays["totals"][1:3]
    if (before < 0).any() or (before > now).any():
        raise given.wrong("begun", "is not between 0 and totals")


def _read_history(history, given: Document) -> None:
    rows = given.array("rows", low=-_MOST, high=_MOST, infinite=True).astype(np.float64)
    rows = rows if rows.size else np.empty_like(history.rows)
    if rows.ndim != 2 or rows.shape[1] != history.rows.shape[1] or len(rows) > MOST_ROWS:
        raise given.wrong("rows", f"has shape {rows.shape}")
    counts = rows[:, [0, 3]]
    if not ((counts >= 0) & (counts < _MOST)).all() or not np.isfinite(rows[:, 3:]).all():
        raise given.wrong("rows", "holds a number that is not possible")
    history.rows = rows
    history.n_batches = given.count("n_batches", len(rows))
