"""The columns of a monitor, fixed by its first batch, and its state as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skcal._labels import GivenColumns
from skcal._show import Document, listed, worded
from skcal._validation import check_proba
from skcal.exceptions import InputError
from skcal.monitoring.bets import Batch
from skcal.monitoring.evidence import Evidence
from skcal.monitoring.history import MOST_ROWS
from skcal.monitoring.status import Entry
from skcal.notions import Notion, make_problems, resolve_notion
from skcal.sample import HoldsNotion, Sample, read_sample, refuse_groups
from skcal.table import CalibrationTable

_PART_BYTES = 2**25


@dataclass(frozen=True, eq=False)
class Layout(HoldsNotion):
    """Columns, classes and notion.

    Attributes
    ----------
    n_columns : int or None
        The number of columns; None for 1-D predictions.
    names : list or None
        Names of the columns of a data frame.
    classes : ndarray of shape (n_classes,)
    notion : Notion
    """

    n_columns: int | None
    names: list | None
    classes: np.ndarray
    notion: Notion
    _notion_name: ClassVar[str] = "notion"

    def batches(self, sample: Sample) -> Iterator[list[Batch]]:
        """Cut into parts of bounded memory, each a batch for every problem."""
        if not sample.holds_rows:
            yield self._parts(sample)
            return
        for part in sample.blocks(64 * len(self.classes), _PART_BYTES):
            yield self._parts(part)

    def _parts(self, sample: Sample) -> list[Batch]:
        parts = [Batch.of_problem(problem) for problem in sample.problems()]
        return [Batch.together(parts), *parts] if self.pooled else parts

    @property
    def pooled(self) -> bool:
        """Whether all problems are also one: each sample belongs to one of them."""
        return self.notion.by_class and not self.notion.shares_samples

    @property
    def common(self) -> bool:
        """Whether the first problem is about all samples, not about one class."""
        return self.pooled or not self.notion.by_class

    def titles(self) -> list[str]:
        """Return the name of each problem, all samples first where they are one problem, too."""
        if not self.notion.by_class:
            return [str(self.notion)]
        return ["all"] * self.pooled + self.notion.titles([str(name) for name in self.classes])

    def shares(self) -> np.ndarray:
        """Weights of the problems' e-values in their mean, (n_problems,)."""
        n_problems = len(self.titles())
        if not self.pooled:
            return np.full(n_problems, 1 / n_problems)
        return np.array([0.5] + [0.5 / (n_problems - 1)] * (n_problems - 1))

    def evidence(self, ranges: bool = True) -> list[Evidence]:
        """Return the evidence of each problem before any sample.

        ``ranges`` says whether there are bets on ranges of the predictions of a problem that has
        all samples.
        """
        width, scalar = 2, self.notion.scalar
        if not scalar:
            proba = np.full((1, len(self.classes)), 1 / len(self.classes))
            width = make_problems(proba, None, self.notion)[0].features.shape[1]
        ranges &= self.common
        return [Evidence(width, scalar, ranges and not k) for k in range(len(self.titles()))]

    @classmethod
    def of(cls, given: GivenColumns, classes, notion: Notion) -> Layout:
        """Return that of columns as they were passed."""
        return cls(next(iter(given.shape), None), given.names, classes, notion)

    def refuse_other(self, given: GivenColumns) -> None:
        """Raise unless predictions have the same columns."""
        shape = () if self.n_columns is None else (self.n_columns,)
        GivenColumns(shape, self.names).refuse_other(given, "X", "batches")

    def difference(self, other: Layout) -> str | None:
        """Return the name of what another layout has otherwise, or None."""
        for name in ("n_columns", "names", "notion"):
            if getattr(self, name) != getattr(other, name):
                return name
        return None if self.classes.tolist() == other.classes.tolist() else "classes"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; a lens or a notion of the user's own has none."""
        if not _is_named(self.notion):
            raise ValueError(
                f"notion={str(self.notion)!r} is code, which JSON does not hold. Use a notion that "
                "has a name."
            )
        for label in [*self.classes.tolist(), *(self.names or [])]:
            if not isinstance(label, str | int | float | bool):
                raise ValueError(
                    f"The label {label!r} is {type(label).__name__}, which JSON does not hold. Use "
                    "strings or numbers."
                )
        return {
            "n_columns": self.n_columns,
            "names": self.names,
            "classes": self.classes.tolist(),
            "notion": str(self.notion),
        }


def _is_named(notion: Notion) -> bool:
    """Whether the notion can be restored from its name."""
    columns = np.zeros((1, 2 if notion.of_positive_class else 10_000))
    try:
        return type(resolve_notion(str(notion), columns)) is type(notion)
    except ValueError:
        return False


def read_batch(X, y, sample_weight, notion, labels, layout: Layout | None) -> tuple[Layout, Sample]:
    """Check a batch against the layout of earlier ones, or of the first one make it.

    The sample is without rows of weight 0.
    """
    given, _ = GivenColumns.of(X, "X"), GivenColumns.of(y, "y")  # errors name what has no shape
    if layout is not None:
        if len(given.shape) < 2:  # others are refused below
            layout.refuse_other(given)
        notion, labels = layout.notion, layout.classes
    options: dict[str, Any] = {"names": ("y", "X"), "keep_weightless": True}
    sample = read_sample(y, X, notion, sample_weight, labels, **options)
    remedy = "Pass one vote of each sample, drawn at random."
    refuse_groups(sample.groups, "a monitor", remedy, "y")
    weight = sample.weight
    wrong = (weight > 1) & (weight % 1 != 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            "sample_weight",
            f"is {weight[row]:.6g}: neither a count nor at most 1.",
            "Pass whole numbers, which repeat rows, or divide by the largest weight: a power above "
            "1 of a bet on one outcome would not be a fair bet.",
            row=row,
        )
    rows = slice(None) if weight.all() else np.flatnonzero(weight)
    sample = sample.take(rows, weight[rows])
    return layout or Layout.of(given, sample.classes, sample.notion), sample


def read_sums(table: CalibrationTable, beside, notion, labels, layout: Layout | None) -> tuple:
    """Read a table as :func:`read_batch` reads rows; of two classes it has one column or two."""
    for name, value in beside.items():
        if value is not None:
            reason = "is given beside a CalibrationTable, which holds its own."
            raise InputError(name, reason, "Pass the table alone.")
    sample, given = table._for_bets()
    sample = sample.asked(notion if layout is None else layout.notion)
    classes = labels if layout is None else layout.classes
    here, there = (
        sample.classes.tolist(),
        classes if classes is None else np.asarray(classes).tolist(),
    )
    if there not in (None, here):
        reason = f"counts the classes {listed(here)}, not {listed(there)}."
        raise InputError("X", reason, "Pass the same labels= to each CalibrationTable.")
    if sample.positive_first:
        given = GivenColumns((), None)  # whose second column is the event
    of_events = sample.notion.of_positive_class and len(sample.classes) == 2
    if layout is None:
        layout = Layout.of(given, sample.classes, sample.notion)
    elif not of_events:
        layout.refuse_other(given)
    return layout, sample


def read_unknown(X, notion, labels, layout: Layout | None) -> tuple[Layout, Batch]:
    """Check predictions, and return a batch whose outcomes mean nothing."""
    proba, given = check_proba(X, name="X"), GivenColumns.of(X, "X")
    if layout is None:
        n_classes = proba.shape[1] if proba.ndim == 2 else 2
        classes = np.arange(n_classes) if labels is None else np.asarray(labels)
        layout = Layout.of(given, classes, resolve_notion(notion, proba))
    else:
        layout.refuse_other(given)
    features = [part.features for part in make_problems(proba, None, layout.notion)]
    joined = np.concatenate(features) if layout.pooled else features[0]
    return layout, Batch.of(joined, np.zeros_like(joined), np.ones(len(joined)))


_MONITOR_FORMAT, _MONITOR_VERSION = "skcal monitor", 4
_EARLIER = 3  # which knows no bets on ranges, nor what an alarm was raised for
_MOST_SUM = 2**62  # of samples, and of sums of numbers up to 1
_SIGNED = {"log_wealth", "log_starts", "bias_sums", "error_sums", "rows", "totals", "begun"} | {
    "LearnedTilt",
    "PivotedSlopes",
    "runs",
}
_MAY_BE_INFINITE = {"log_wealth", "log_starts", "rows"}


def dumped(monitor) -> str:
    """Write a monitor; floats are written so that they are read as the same."""
    document: dict[str, Any] = {
        "format": _MONITOR_FORMAT,
        "version": _MONITOR_VERSION,
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
            {name: _nested_lists(array) for name, array in evidence.arrays().items()}
            for evidence in monitor._evidence
        ],
        "history": {
            "n_batches": history.n_batches,
            "rows": _nested_lists(history.rows),
        },
    }
    return json.dumps(document, allow_nan=False)


def _nested_lists(array: np.ndarray) -> list:
    """Nested lists; infinities as text, for which JSON has no number."""
    if np.isfinite(array).all():
        return array.tolist()
    if array.ndim == 1:
        return [value if np.isfinite(value) else str(value) for value in array.tolist()]
    return [_nested_lists(row) for row in array]


def loaded(cls, text: str):
    """Read a monitor of a class; raises ValueError where the text is not one's state."""
    remedy = worded("Pass what to_json() of a monitor returned.", "The order is STATE, then FILE.")
    document = Document.parse(text, "the state of a monitor", remedy)
    if document.parts.get("format") != _MONITOR_FORMAT:
        raise document.wrong("text", "is not the state of a monitor")
    given = document.parts
    if given.get("version") != _EARLIER:
        document.expect("version", _MONITOR_VERSION)
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
        return Layout(n_columns, names, np.asarray(classes), resolved)
    except (ValueError, OverflowError) as error:
        raise given.wrong("layout", f"is not valid ({error})") from error


def _fill(arrays: dict[str, np.ndarray], given: Document) -> None:
    """Copy what was given into arrays of the same names and shapes."""
    if given.parts.keys() != arrays.keys():
        raise given.wrong("evidence", f"has other parts than {', '.join(arrays)}")
    for name, kept in arrays.items():
        low = -_MOST_SUM if name in _SIGNED else 0
        array = given.array(name, low=low, high=_MOST_SUM, infinite=name in _MAY_BE_INFINITE)
        if array.shape != kept.shape:
            raise given.wrong(name, f"has shape {array.shape}, not {kept.shape}")
        if name == "totals" and (array[[0, 1, 2, 4]] < 0).any():
            raise given.wrong(name, "holds a negative count")
        kept[...] = array
    before, now = arrays["begun"][:2], arrays["totals"][1:3]
    if (before < 0).any() or (before > now).any():
        raise given.wrong("begun", "is not between 0 and totals")


def _read_history(history, given: Document) -> None:
    rows = given.array("rows", low=-_MOST_SUM, high=_MOST_SUM, infinite=True).astype(np.float64)
    rows = rows if rows.size else np.empty_like(history.rows)
    if rows.ndim != 2 or rows.shape[1] != history.rows.shape[1] or len(rows) > MOST_ROWS:
        raise given.wrong("rows", f"has shape {rows.shape}")
    counts = rows[:, [0, 3]]
    if not ((counts >= 0) & (counts < _MOST_SUM)).all() or not np.isfinite(rows[:, 3:]).all():
        raise given.wrong("rows", "holds a number that is not possible")
    history.rows = rows
    history.n_batches = given.count("n_batches", len(rows))
