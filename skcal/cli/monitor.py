"""The command ``monitor``: a batch of predictions against the state of a monitor."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np

from skcal._files import replacing
from skcal._show import as_json
from skcal.cli.checks import FileError, Predictions, listed
from skcal.cli.streams import tell
from skcal.cli.text_files import STANDARD_INPUT, read_text
from skcal.monitoring import CalibrationMonitor

_KEPT = 400  # batches whose content is known again


def watch(predictions: Predictions, notion: str, options) -> int:
    """Update the state file by a batch, print what is known, and return the exit status.

    The state also holds digests of the last files, so that none is added twice by mistake: evidence
    that is counted twice is none. The standard input is not known again.

    Parameters
    ----------
    predictions : Predictions
    notion : str
        "auto" if none was asked for.
    options : Namespace
        ``file``, ``again``, ``state``, ``alpha``, ``run_length``, ``max_size``, ``quiet`` and
        ``json``; None for what was not given, since a state file knows.

    Returns
    -------
    status : int
        1 after an alarm, else 0.
    """
    with _alone(Path(options.state)):
        return _watch(predictions, notion, options)


@contextmanager
def _alone(path: Path):
    """Let other monitors of the folder wait, so that none writes over what another has added."""
    with ExitStack() as stack:
        with suppress(ImportError, OSError):  # systems and file systems without such locks
            import fcntl

            folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
            stack.callback(os.close, folder)
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield


def _watch(predictions, notion, options) -> int:
    path = Path(options.state)
    digests: list[str] = []
    if path.exists():
        monitor, digests = _read(path, options)
        _compare(monitor, notion, options)
        predictions = _aligned(predictions, monitor.classes_, options)
    else:
        alpha = 0.05 if options.alpha is None else options.alpha
        given = {"alpha": alpha, "run_length": options.run_length}
        monitor = CalibrationMonitor(notion, labels=predictions.classes, **given)
    digest = _digest(options.file)
    if digest in digests and not options.again:
        _tell_repeated(options)
    else:
        monitor.update(predictions.proba, predictions.labels)
        kept = [*digests, *([digest] if digest else [])][-_KEPT:]
        with replacing(path, "w", encoding="utf-8") as file:
            file.write(json.dumps({**json.loads(monitor.to_json()), "batches": kept}))
    options.say(as_json(_facts(monitor)) if options.json else monitor)
    return int(monitor.alarm_ is not None)


def _digest(file) -> str | None:
    """What knows the content of a file again; None of the standard input."""
    if file == STANDARD_INPUT:
        return None
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:16]


def _tell_repeated(options) -> None:
    if not options.quiet:
        tell(f"{options.file} was added before and is not added again (--again adds it).")


def _read(path: Path, options) -> tuple[CalibrationMonitor, list[str]]:
    """The monitor of a state file, and the digests of the files that it has seen."""
    if not path.is_file():
        raise FileError(f"{path}: is no file. Pass the name of one, which is made if absent.")
    try:
        text = read_text(path, options.max_size * 2**30)
        monitor = CalibrationMonitor.from_json(text)
    except FileError:
        raise
    except ValueError as error:
        told = str(error).removeprefix("text ")
        raise FileError(f"{path}: {told} The order is STATE, then FILE.") from error
    if not monitor.n_samples_seen_:
        raise FileError(f"{path}: a monitor without samples. Remove it to begin.")
    digests = json.loads(text).get("batches", [])
    return monitor, digests if isinstance(digests, list) else []


def _compare(monitor: CalibrationMonitor, notion: str, options) -> None:
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


def _aligned(predictions: Predictions, classes: np.ndarray, options) -> Predictions:
    """Bring the columns into the order of the state."""
    here, there = predictions.classes.tolist(), classes.tolist()
    if here == there:
        return predictions
    if set(here) != set(there) or predictions.proba.ndim == 1:
        raise FileError(
            f"{options.file}: has the classes {listed(here)}, {options.state} {listed(there)}. "
            "Pass batches of one model, and the same --pos-label."
        )
    order = [here.index(name) for name in there]
    return predictions._replace(proba=predictions.proba[:, order], classes=classes)


def _facts(monitor: CalibrationMonitor) -> dict:
    """Plain data; infinite evidence as text."""
    found = monitor.estimates_
    return {
        "n_samples_seen": monitor.n_samples_seen_,
        "notion": str(monitor.notion_),
        "alpha": monitor.alpha,
        "run_length": monitor.run_length,
        "alarm": monitor.alarm_,
        "e_value": _plain(monitor.e_value_),
        "log_e_value": _plain(monitor.log_e_value_),
        "detector": _plain(monitor.detector_),
        "e_values": {title: _plain(value) for title, value in monitor.e_values_.items()},
        "estimates": {title: estimate._asdict() for title, estimate in found.items()},
    }


def _plain(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)
