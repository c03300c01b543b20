"""The command ``monitor``: a batch of predictions against the state of a monitor."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from skcal._files import replacing
from skcal._text import as_json
from skcal.cli.checks import FileError, Predictions, check_size, listed
from skcal.monitoring import CalibrationMonitor


def watch(predictions: Predictions, notion: str, options) -> int:
    """Update the state file by a batch, print what is known, and return the exit status.

    Parameters
    ----------
    predictions : Predictions
    notion : str
        "auto" if none was asked for.
    options : Namespace
        ``state``, ``alpha``, ``run_length``, ``max_size`` and ``json``; None for what was not
        given, since a state file knows.

    Returns
    -------
    status : int
        1 after an alarm, else 0.
    """
    path = Path(options.state)
    if path.exists():
        monitor = _read(path, options)
        _compare(monitor, notion, options)
        predictions = _aligned(predictions, monitor.classes_, options)
    else:
        alpha = 0.05 if options.alpha is None else options.alpha
        given = {"alpha": alpha, "run_length": options.run_length}
        monitor = CalibrationMonitor(notion, labels=predictions.classes, **given)
    monitor.update(predictions.proba, predictions.labels)
    with replacing(path, "w", encoding="utf-8") as file:
        file.write(monitor.to_json())
    options.say(as_json(_facts(monitor)) if options.json else monitor)
    return int(monitor.alarm_ is not None)


def _read(path: Path, options) -> CalibrationMonitor:
    check_size(path, path.stat().st_size, options.max_size * 2**30)
    try:
        monitor = CalibrationMonitor.from_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FileError(f"{path}: {error} The order is STATE, then FILE.") from error
    if not monitor.n_samples_seen_:
        raise FileError(f"{path}: a monitor without samples. Remove it to begin.")
    return monitor


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
