"""The command ``monitor``: a batch of predictions against the state of a monitor."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from warnings import warn

import numpy as np

from skcal._files import replacing
from skcal._show import as_json
from skcal.cli.bounds import FileError, listed, read_text
from skcal.cli.predictions import Predictions
from skcal.displays import MonitorDisplay
from skcal.displays.files import save_figure
from skcal.monitoring import CalibrationMonitor

_MOST_DIGESTS = 400  # of the last batches


def watch(read: Callable[..., Predictions], notion: str, options) -> int:
    """Update the state file by a batch, print what is known, and return the exit status.

    The state also holds digests of the last batches, so that none is added twice by mistake:
    evidence that is counted twice is none. Without a file the state is shown as it is.

    Parameters
    ----------
    read : callable
        ``read(known=classes)`` reads the batch; a batch of a single column may lack a class.
    notion : str
        "auto" if none was asked for.
    options : Namespace
        ``file``, ``again``, ``state``, ``alpha``, ``run_length``, ``max_size``, ``plot``, ``quiet``
        and ``json``; None for what was not given, since a state file knows.

    Returns
    -------
    status : int
        1 after an alarm, else 0.
    """
    path = Path(options.state)
    with _folder_locked(path):
        monitor, digests = None, list[str]()
        if path.exists() or options.file is None:
            monitor, digests = _read_state(path, options)
            _refuse_other_options(monitor, notion, options)
        if options.file is not None:
            monitor = _update(path, monitor, digests, read, notion, options)
        assert monitor is not None
        options.print(as_json(_facts(monitor)) if options.json else monitor)
    if options.plot is not None:
        save_figure(MonitorDisplay.from_monitor(monitor).figure_, options.plot)
    return int(monitor.alarm_ is not None)


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


def _update(path: Path, monitor, digests, read, notion, options) -> CalibrationMonitor:
    """The monitor, or a new one, with a batch that it has not seen."""
    if monitor is None:
        predictions = read()
        alpha = 0.05 if options.alpha is None else options.alpha
        given = {"alpha": alpha, "run_length": options.run_length}
        monitor = CalibrationMonitor(notion, labels=predictions.classes, **given)
    else:
        predictions = read(known=monitor.classes_)
        _require_classes(predictions, monitor.classes_, options)
        predictions = predictions.ordered_as(monitor.classes_)
    digest = _digest(predictions)
    if digest in digests and not options.again:
        warn(
            f"{options.file} was added before and is not added again (--again adds it).",
            stacklevel=2,
        )
        return monitor
    monitor.update(predictions.proba, predictions.labels)
    kept = [*digests, digest][-_MOST_DIGESTS:]
    with replacing(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({**json.loads(monitor.to_json()), "batches": kept}))
    return monitor


def _digest(predictions: Predictions) -> str:
    """What a batch is recognised by, whatever file it comes in."""
    content = hashlib.sha256(np.ascontiguousarray(predictions.proba, dtype=np.float64).tobytes())
    content.update("\n".join(map(str, predictions.labels.tolist())).encode())
    return content.hexdigest()[:16]


def _read_state(path: Path, options) -> tuple[CalibrationMonitor, list[str]]:
    """The monitor of a state file, and the digests of the files that it has seen."""
    if not path.is_file():
        remedy = "Pass a FILE with predictions to begin it." if options.file is None else ""
        remedy = remedy or "Pass the name of one, which is made if absent."
        raise FileError(f"{path}: is no file. {remedy}")
    try:
        text = read_text(path, options.max_size * 2**30)
        monitor = CalibrationMonitor.from_json(text)
    except FileError:
        raise
    except ValueError as error:
        reason = str(error).removeprefix("text ")
        raise FileError(f"{path}: {reason} The order is STATE, then FILE.") from error
    if not monitor.n_samples_seen_:
        raise FileError(f"{path}: a monitor without samples. Remove it to begin.")
    digests = json.loads(text).get("batches", [])
    return monitor, digests if isinstance(digests, list) else []


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


def _require_classes(predictions: Predictions, classes: np.ndarray, options) -> None:
    """Raise unless the classes are those of the state, for one column in the same order."""
    here, there = predictions.classes.tolist(), classes.tolist()
    if here != there and (set(here) != set(there) or predictions.proba.ndim == 1):
        raise FileError(
            f"{options.file}: has the classes {listed(here)}, {options.state} {listed(there)}. "
            "Pass batches of one model, and the same --pos-label."
        )


def _facts(monitor: CalibrationMonitor) -> dict:
    """Plain data; infinite evidence as text."""

    def finite_or_text(value: float) -> float | str:
        return value if np.isfinite(value) else str(value)

    return {
        "n_samples_seen": monitor.n_samples_seen_,
        "notion": str(monitor.notion_),
        "alpha": monitor.alpha,
        "run_length": monitor.run_length,
        "alarm": monitor.alarm_,
        "e_value": finite_or_text(monitor.e_value_),
        "log_e_value": finite_or_text(monitor.log_e_value_),
        "detector": finite_or_text(monitor.detector_),
        "e_values": {title: finite_or_text(value) for title, value in monitor.e_values_.items()},
        "estimates": {title: found._asdict() for title, found in monitor.estimates_.items()},
    }
