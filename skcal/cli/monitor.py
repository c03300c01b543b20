"""The command ``monitor``: a batch of predictions against the state of a monitor."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
from scipy.stats import binom

from skcal._show import as_json, import_pandas, listed, printable, replacing
from skcal.cli.counted import CountedPredictions
from skcal.cli.options import with_option
from skcal.cli.predictions import Predictions, names_of, shown_name
from skcal.cli.problems import FileError, read_text
from skcal.displays import MonitorDisplay
from skcal.monitoring import CalibrationMonitor

_MOST_DIGESTS = 800  # of the last batches, two each
_LONGEST_NAME = 100  # of a file, in the state
_PERIODS = {
    "all": "of all samples",
    "recent": "of the last samples",
    "drift": "of the drift that raised the last alarm",
    "since_drift": "since the last change after that drift",
}
_MOST_MARKS = 100_000  # of the last rows
_CHANCE = 1e-6  # of so many known rows in a file of others
_ONE_EACH = "Name each prediction once, perhaps by two columns: --id customer --id date."


@dataclass
class Known:
    """The batches and rows that were added, which the state file holds beside the monitor.

    Evidence that is counted twice is none.

    Attributes
    ----------
    batches : list of str
        Digests of the last batches, whatever the order of their rows, and with it.
    columns : dict or None
        Names of columns: ``predictions``, ``label``, ``soft``, and lists of ``id``; None before a
        file.
    rows : ndarray of uint64
        Marks of the last rows: 48 bits of the id, 16 of predictions and label; without an id 64 of
        these.
    places : list of [int, int, str, str]
        Of the last batches since a reset: the first and the last sample, the file, and the date,
        which is empty without --date.
    """

    batches: list[str]
    columns: dict[str, Any] | None
    rows: np.ndarray
    places: list[list]

    @classmethod
    def parse(cls, parts: dict, path: Path) -> Known:
        """Read what :meth:`parts` returned; a state of the library has none of it."""
        batches, columns = parts.get("batches", []), parts.get("columns")
        places = parts.get("places", [])
        try:
            marks = np.frombuffer(base64.b64decode(parts.get("rows", ""), validate=True), "<u8")
            if not isinstance(batches, list) or not isinstance(columns, dict | None):
                raise TypeError
            if not all(re.fullmatch(r"([0-9]{1,18} )?[0-9a-f]{16}", entry) for entry in batches):
                raise ValueError
            if any([*map(type, place)] != [int, int, str, str] for place in places):
                raise ValueError
        except (TypeError, ValueError) as error:
            raise FileError(f"{path}: batches, columns or rows are damaged.") from error
        return cls(batches, columns, marks, places)

    def parts(self) -> dict[str, Any]:
        """Return plain data."""
        rows = base64.b64encode(self.rows.astype("<u8").tobytes()).decode()
        kept = {"batches": self.batches, "columns": self.columns, "rows": rows}
        return kept | {"places": self.places}

    def place_of(self, sample: int | None) -> dict[str, Any] | None:
        """Return the batch that a sample came with; None if it is not known any more."""
        for first, last, file, date in self.places if sample else ():
            if first <= sample <= last:
                found = {"file": file or None, "date": date or None}
                return {**found, "first_sample": first, "last_sample": last}
        return None


def watch(read: Callable[..., Predictions], notion: str, options) -> int:
    """Update the state file by a batch, print what is known, and return the exit status.

    Parameters
    ----------
    read : callable
        ``read(known=classes, each=…)`` reads the batch, or counts it and calls ``each`` for each
        block; a batch of a single column may lack a class.
    notion : str
        "auto" if none was asked for.
    options : Namespace
        Of the command; None for what was not given, since a state file knows.

    Returns
    -------
    status : int
        1 after an alarm that nobody acknowledged, else 0.
    """
    path = Path(options.state)
    if options.batch is not None and options.plan is None:
        options.parser.error("--batch is for --plan: pass both")
    if options.json and options.format == "prometheus":
        options.parser.error("--json is not an option with --format prometheus")
    with _folder_locked(path):
        monitor, known = None, Known([], None, np.empty(0, "<u8"), [])
        if path.exists() or options.file is None or options.reset or options.acknowledge:
            monitor, known = _read_state(path, options)
            _refuse_other_options(monitor, notion, options)
            try:
                if options.acknowledge:
                    monitor.acknowledge(options.note)
                if options.reset:
                    monitor.reset(options.note)
                    known.places = []
            except ValueError as error:
                raise FileError(f"{options.state}: {error}") from error
        changed = options.reset or options.acknowledge
        if options.file is not None:
            added, monitor = _update(monitor, known, read, notion, options)
            changed |= added
        assert monitor is not None
        plan = None if options.plan is None else monitor.plan(options.plan, options.batch)
        if changed:
            state = {**json.loads(monitor.to_json()), **known.parts()}
            with replacing(path, "w", encoding="utf-8") as file:
                file.write(json.dumps(state))
        if options.format == "prometheus":
            options.print(_as_metrics(monitor, plan))
        elif options.json or options.format == "json":
            planned = {} if plan is None else {"plan": asdict(plan)}
            options.print(as_json({**monitor.to_dict(), **_places(monitor, known), **planned}))
        else:
            text = "\n".join(_lines(monitor, known, options))
            options.print(text if plan is None else f"{text}\nPlan: {plan}")
    if options.plot is not None:
        MonitorDisplay.from_monitor(monitor).save(options.plot)
    return int(monitor.alarm_ is not None and monitor.acknowledged_ is None)


def _lines(monitor: CalibrationMonitor, known: Known, options) -> list[str]:
    """What a person reads: the monitor, the batches of its alarm, and likely subgroups."""
    text = str(monitor).replace(" STATE ", f" {shlex.quote(options.state)} ")
    first, *others = text.split("\n")
    lines = [first, *_named(_places(monitor, known)), *others]
    name = getattr(options, "subgroups", None)
    if name is not None:
        lines.append(
            f"Column {name!r} may name subgroups, whose errors can cancel in all samples: "
            f"--only {shlex.quote(f'{name}=…')} and a STATE of its own watch one of them."
        )
    return lines


def _places(monitor: CalibrationMonitor, known: Known) -> dict[str, Any]:
    """The batches with which the last alarm came and its drift began; None if not known."""
    drift = monitor.periods_.get("drift")
    began = None if drift is None else known.place_of(drift.first_sample)
    return {"alarm_batch": known.place_of(monitor.alarm_), "drift_batch": began}


def _named(places: dict[str, Any]) -> list[str]:
    """A sentence about each batch that has a name."""
    said = {"alarm_batch": "The alarm came with", "drift_batch": "The drift began at about"}
    sentences = []
    for key, place in places.items():
        if place is not None and (name := ", ".join(filter(None, (place["file"], place["date"])))):
            samples = f"samples {place['first_sample']:,} to {place['last_sample']:,}"
            sentences.append(f"{said[key]} {printable(name)} ({samples}).")
    return [" ".join(sentences)] if sentences else []


def _as_metrics(monitor: CalibrationMonitor, plan) -> str:
    """The numbers of the monitor in the text format of Prometheus."""
    values = {
        "samples": ("samples since the last reset", monitor.n_samples_seen_),
        "alarm": ("1 after an alarm that was not acknowledged", int(monitor._is_open)),
        "log_e_value": ("natural logarithm of the e-value", monitor.log_e_value_),
        "e_detector": ("e-detector, in samples", monitor.detector_),
    }
    meaning = "of the e-value, or of the e-detector with a run length"
    values["threshold"] = meaning, monitor.to_dict()["threshold"]
    for name, period in monitor.periods_.items():
        if period.ratio is not None and not name.startswith("later_"):  # gauges are about now
            values[f"observed_expected_ratio_{name}"] = (f"O/E {_PERIODS[name]}", period.ratio)
    if plan is not None and plan.n_batches is not None:
        values["plan_batches"] = ("batches until half of such drifts are found", plan.n_batches)
    lines = []
    for name, (meaning, value) in values.items():
        name = f"skcal_monitor_{name}"
        shown = f"{float(value):+}".title() if np.isinf(value) else repr(float(value))
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", f"{name} {shown}"]
    return "\n".join(lines)


@contextmanager
def _folder_locked(path: Path):
    """Let other monitors of the folder wait, so that none writes over what another has added."""
    with ExitStack() as stack:
        with suppress(ImportError, OSError):  # systems and file systems without such locks
            import fcntl

            folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
            stack.callback(os.close, folder)
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield


def _update(monitor, known: Known, read, notion, options) -> tuple[bool, CalibrationMonitor]:
    """Whether rows were added, and the monitor, or a new one, with those that it has not seen."""
    options.id.sort()
    if known.columns and known.columns.get("id") and not options.id:
        options.id = known.columns["id"]
        options.ignore = [*options.ignore, *options.id]
    marks_of_blocks: list[np.ndarray] = []

    def each(part: Predictions) -> None:
        marks_of_blocks.append(_marks(part, _contents(part), options))

    if monitor is None:
        predictions = read(each=each)
        alpha = 0.05 if options.alpha is None else options.alpha
        given = {"alpha": alpha, "run_length": options.run_length}
        monitor = CalibrationMonitor(notion, labels=predictions.classes, **given)
    else:
        options.notion = [str(monitor.notion_)]
        predictions = read(known=monitor.classes_, each=each)
        predictions = _ordered_as(predictions, monitor.classes_, options)
    options.subgroups = predictions.subgroups
    known.columns = _same_columns(predictions, known.columns, options)
    if predictions.left_out is not None and options.skip_unlabelled and not options.id:
        warn(
            f"{options.file}: do not add it again when it has more labels, or its rows count "
            "twice. With --id only new rows would be added.",
            stacklevel=2,
        )
    if isinstance(predictions, CountedPredictions):
        marks = np.concatenate(marks_of_blocks)
        digest = _digest(marks)
    else:
        contents = _contents(predictions)
        digest, marks = _digest(contents), _marks(predictions, contents, options)
    if not options.again:
        if digest in known.batches:
            text = f"{options.file} was added before and is not added again (--again adds it)."
            warn(text, stacklevel=2)
            return False, monitor
        new = _new_rows(marks, known, predictions, options)
        if not new.any():
            return False, monitor
        if not new.all():
            marks, predictions = marks[new], predictions.take(new)
    file = "" if options.file == "-" else Path(options.file).name[:_LONGEST_NAME]
    for date, part in _by_date(predictions, options):
        first = monitor.n_samples_seen_ + 1
        if isinstance(part, CountedPredictions):
            [table] = part.tables[""].values()
            monitor.update(table)
        else:
            monitor.update(part.proba, part.labels, groups=part.groups)
        if first <= monitor.n_samples_seen_:
            known.places.append([first, monitor.n_samples_seen_, file, date])
    known.places = known.places[-_MOST_DIGESTS:]
    known.batches = [*known.batches, digest, _in_order(marks)][-_MOST_DIGESTS:]
    known.rows = np.append(known.rows, marks)[-_MOST_MARKS:]
    return True, monitor


def _by_date(predictions: Predictions, options) -> list[tuple[str, Predictions]]:
    """The rows of each day, in order; without --date all of them, and no day."""
    if options.date is None:
        return [("", predictions)]
    pandas, values = import_pandas(), predictions.others[options.date]
    days = pandas.to_datetime(values, format="ISO8601", errors="coerce", utc=True)
    if days.isna().any():
        wrong = str(values[int(np.argmax(days.isna()))])
        raise FileError(
            f"{options.file}: column {options.date!r} holds {wrong!r}, which is no date such as "
            "2024-12-31. Write dates so, or leave --date out: the rows are then one batch."
        )
    names = days.strftime("%Y-%m-%d").to_numpy(dtype=str)
    if predictions.groups is not None:
        pairs = set(zip(predictions.groups.tolist(), names.tolist(), strict=True))
        if len(pairs) > len(np.unique(predictions.groups)):
            raise FileError(
                f"{options.file}: rows of one {options.groups!r} have several days, but belong to "
                "one batch, since they may depend on each other. Leave --date out."
            )
    return [(str(day), predictions.take(names == day)) for day in np.unique(names)]


def _same_columns(predictions: Predictions, earlier, options) -> dict[str, Any]:
    """The names of the columns; raises where they are not those of earlier batches."""
    columns = {
        "predictions": sorted(predictions.names),
        "label": options.label if predictions.names and options.soft is None else None,
        "soft": options.soft,
        "id": options.id,
    }
    for name, value in columns.items():
        before = (earlier or {}).get(name)
        unknown = name in ("predictions", "label", "id") and not (before and value)
        if earlier is not None and before != value and not unknown:
            raise FileError(
                f"{options.file}: {_shown(name, value)}, earlier batches in {options.state} had "
                f"{_shown(name, before)}. Give the same columns, or begin another state file."
            )
        columns[name] = value or before
    return columns


def _shown(name: str, value) -> str:
    kind = {"predictions": "predictions in", "label": "labels in", "id": "ids in", "soft": "--soft"}
    return f"{kind[name]} {listed(value) if isinstance(value, list) else repr(value)}"


def _digest(contents: np.ndarray) -> str:
    """Return a digest of a batch, the same for any file and any order of rows, or marks."""
    rows = np.sort(contents)
    joined = rows.tobytes() if rows.dtype.kind == "u" else b"".join(rows.tolist())
    return hashlib.sha256(joined).hexdigest()[:16]


def _contents(predictions: Predictions) -> np.ndarray:
    """Predictions and label of each row, as texts of bytes that end with a new line."""
    proba = np.ascontiguousarray(predictions.proba, dtype=np.float64)
    n, labels = len(proba), predictions.labels
    texts, codes = [str(label) for label in labels.tolist()], np.arange(n)
    if labels.ndim == 1:
        names, codes = np.unique(labels, return_inverse=True)
        texts = [str(name) for name in names.tolist()]
    ends = np.array([f"\n{text}\n".encode() for text in texts])
    parts = proba.view(np.uint8).reshape(n, -1), ends[codes].view(np.uint8).reshape(n, -1)
    return np.hstack(parts).view(f"S{sum(part.shape[1] for part in parts)}")[:, 0]


def _marks(predictions: Predictions, contents: np.ndarray, options) -> np.ndarray:
    """A number of each row: 48 bits of its id, 16 of its content; without ids 64 of its content."""
    digest, rows = hashlib.blake2b, contents.tolist()
    if options.id:
        names = names_of(predictions, options.id, options.file, _ONE_EACH).tolist()
        marks = [
            digest(name.encode() + b"\n" + row, digest_size=2).digest()
            + digest(name.encode(), digest_size=6).digest()
            for name, row in zip(names, rows, strict=True)
        ]
    else:
        marks = [digest(row, digest_size=8).digest() for row in rows]
    return np.frombuffer(b"".join(marks), "<u8")


def _among(marks, known) -> np.ndarray:
    """Which marks are known. Sorted: the table of numpy 2.0 overflows on unsigned integers."""
    return np.isin(marks, known, kind="sort")


def _new_rows(marks, known: Known, predictions: Predictions, options) -> np.ndarray:
    """Which rows were not added before; raises where one was with another content."""
    same = _among(marks, known.rows)
    if not options.id:
        if _is_no_chance(marks, known.rows) or _begins_with_a_batch(marks, known.batches):
            raise FileError(
                f"{options.file}: {same.sum():,} of {len(same):,} rows have predictions and label "
                "of rows that were added before, far more than chance would make. Pass new rows "
                "only, or begin another state file whose rows --id names. --again adds all rows."
            )
        return np.ones(len(same), dtype=bool)
    ids, known_ids = marks >> np.uint64(16), known.rows >> np.uint64(16)
    changed = np.flatnonzero(_among(ids, known_ids) & ~same)
    if len(changed):
        names = names_of(predictions, options.id, options.file, _ONE_EACH)
        raise FileError(
            f"{options.file}: {shown_name(options.id, names[changed[0]])} was added before with "
            f"another prediction or label. {_ONE_EACH} If a label was corrected, leave the row "
            "out: what was added stays."
        )
    if same.any():
        warn(
            f"{options.file}: {same.sum():,} of {len(same):,} rows were added before, by their "
            f"{' and '.join(options.id)}, and are left out (--again adds them).",
            stacklevel=2,
        )
    return ~same


def _is_no_chance(marks, known) -> bool:
    """Whether a file holds more values that were seen once before than a file of new rows would.

    The probability that a new row has one of these is about 2 f₂ / n, if f₂ of the values of n
    known rows were seen twice (Good & Turing). An upper limit of it is taken. Values that were seen
    more often are frequent, so that new rows have them, too.
    """
    values, counts = np.unique(known, return_counts=True)
    pairs = np.count_nonzero(counts == 2)
    chance = 2 * (pairs + 3 * np.sqrt(pairs) + 6) / max(len(known), 1)
    n_again = len(np.unique(marks[_among(marks, values[counts == 1])]))
    return bool(binom.sf(n_again - 1, len(marks), min(chance, 1.0)) < _CHANCE)


def _begins_with_a_batch(marks, batches: list[str]) -> bool:
    """Whether a file begins with the rows of an earlier one in their order, not by chance."""
    sizes = {int(entry.split()[0]) for entry in batches if " " in entry}
    known = [n for n in sizes if 0 < n < len(marks) and _in_order(marks[:n]) in batches]
    if not known:
        return False
    _, place, counts = np.unique(marks, return_inverse=True, return_counts=True)
    chance = np.cumsum(np.log(counts / len(marks))[place])  # of each beginning
    return any(chance[n - 1] < np.log(_CHANCE) for n in known)


def _in_order(marks) -> str:
    """Return the number of rows of a file and a digest of their order."""
    return f"{len(marks)} {hashlib.sha256(marks.tobytes()).hexdigest()[:16]}"


def _read_state(path: Path, options) -> tuple[CalibrationMonitor, Known]:
    """The monitor of a state file, and which batches and rows it has seen."""
    if not path.is_file():
        remedy = "Pass the name of one, which is made if absent."
        if options.file is None and not path.exists():
            remedy = "Pass a FILE with predictions to begin it."
        raise FileError(f"{path}: is no file. {remedy}")
    text = read_text(path, options.max_bytes)
    try:
        monitor = CalibrationMonitor.from_json(text)
    except ValueError as error:
        raise FileError(f"{path}: {with_option(error).removeprefix('text ')}") from error
    if not hasattr(monitor, "classes_"):
        raise FileError(f"{path}: a monitor without samples. Remove it to begin.")
    return monitor, Known.parse(json.loads(text), path)


def _refuse_other_options(monitor: CalibrationMonitor, notion: str, options) -> None:
    """Raise where an option asks for something else than the state holds."""
    given = {"notion": None if notion == "auto" else notion}
    given |= {name: getattr(options, name) for name in ("alpha", "run_length")}
    for name, value in given.items():
        kept = str(monitor.notion_) if name == "notion" else getattr(monitor, name)
        if value is not None and value != kept:
            option = f"--{name.replace('_', '-')}"
            raise FileError(
                f"{options.state}: watches with {option} {kept}, not {value}. Leave the option "
                "out, or begin another state file."
            )


def _ordered_as(predictions: Predictions, classes: np.ndarray, options) -> Predictions:
    """The columns in the order of the state; raises unless the classes are the same.

    Those of one column must be in the same order.
    """
    here, there = predictions.classes.tolist(), classes.tolist()
    if here != there and (set(here) != set(there) or predictions.proba.ndim == 1):
        raise FileError(
            f"{options.file}: has the classes {listed(here)}, {options.state} {listed(there)}. "
            "Pass batches of one model, and the same --pos-label."
        )
    return predictions.ordered_as(classes)
