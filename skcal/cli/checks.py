"""Checks of arrays that were read from a file; errors name its lines and columns."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skcal._show import printable
from skcal._validation import LOGITS, SWAPPED, InputError, check_labels, check_proba
from skcal._validation import check_predictions as check_floats
from skcal.metrics.rounded import ROUNDING, divide_by_sums, misses_1


class Predictions(NamedTuple):
    """Checked predictions, labels, the class of each column and perhaps subgroups."""

    proba: np.ndarray
    labels: np.ndarray
    classes: np.ndarray
    groups: np.ndarray | None = None


NO_CLASS = (
    "Remove columns that are no classes, or name them by --ignore; name that of the labels by "
    "--label, that of subgroups by --groups (command report)."
)
_LONGEST = 2000  # of a message, in characters: names in files may be of any length


class FileError(ValueError):
    """A file that cannot be read as predictions; the message is one line of bounded length."""

    def __init__(self, message):
        message = printable(" ".join(message.splitlines()))
        if len(message) > _LONGEST:
            message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 4 :]}"
        super().__init__(message)


class Places(NamedTuple):
    """What messages call a file and the rows and columns of its array.

    Parameters
    ----------
    path : path-like
    lines : list of int, default=()
        The line of each row.
    names : list of str, default=()
        The name of each column.
    """

    path: Path
    lines: Sequence[int] = ()
    names: Sequence[str] = ()

    def row(self, row: int) -> str:
        """Return the words for a row."""
        return f"line {self.lines[row]}" if self.lines else f"row {row}"

    def column(self, column: int) -> str:
        """Return the words for a column."""
        return f"column {self.names[column]!r}" if self.names else f"column {column}"


def check_size(path, size, max_bytes) -> None:
    """Refuse content of more bytes than the user allows."""
    if size > max_bytes:
        raise FileError(
            f"{path}: holds {size / 2**30:.3g} GB, more than {max_bytes / 2**30:.3g}. "
            "Raise --max-size if that is meant."
        )


def listed(names, most: int = 12) -> str:
    """Return the first names, and how many more there are."""
    more = f", … {len(names) - most} more" if len(names) > most else ""
    return (", ".join(map(str, names[:most])) or "none") + more


def check_predictions(
    places, proba, labels, classes, pos_label=None, normalize=False, from_logits=False
) -> Predictions:
    """Check arrays; errors name the file's lines and columns, and what its owner can do."""
    with telling_places(places, proba):
        proba = plain_predictions(proba, normalize, from_logits)
        return _check_arrays(proba, labels, classes, pos_label)


def plain_predictions(proba, normalize: bool, from_logits: bool) -> np.ndarray:
    """Check probabilities, or logits, as they are."""
    if from_logits:
        check_floats(proba, True, name="proba")
        return np.asarray(proba)
    return check_proba(divide_by_sums(np.asarray(proba)) if normalize else proba, name="proba")


@contextmanager
def telling_places(places: Places, proba):
    """Let errors about arrays name the file's lines and columns, and what its owner can do."""
    try:
        yield
    except InputError as error:
        remedy = _REMEDIES.get(error.kind)
        if error.kind == "integers":
            remedy = f"{SWAPPED}{_REMEDIES['range']}"
        if error.kind == "sum" and not misses_1(np.asarray(proba)[[error.row]]).any():
            remedy = f"{error.remedy} If it was rounded, --normalize does that."
        row = None if error.row is None else places.row(error.row)
        k = 0 if error.argument == "proba" and len(places.names) == 1 else error.column
        column = None if k is None else places.column(k)
        message = one_sentence(error.told(remedy, row, column))
        raise FileError(f"{places.path}: {message}") from error


_REMEDIES = {
    "logits": "If these are logits, apply the softmax.",
    "range": LOGITS.format("the softmax, to a single column the logistic function"),
    "rounding": f"--normalize mends rounding alone, sums within {ROUNDING} of 1.",
    "classes": "Every label must be the name of a column of probabilities.",
    "positive class": "Name the positive one by --pos-label.",
}


def _check_arrays(proba, labels, classes, pos_label) -> Predictions:
    if proba.ndim == 1 and classes is None:
        labels, classes = _two_labels(labels, pos_label)
    codes, classes = check_labels(labels, proba, classes, name="label", proba_name="proba")
    labels = classes[codes]
    if pos_label is not None:
        names = [str(name) for name in classes.tolist()]
        if len(names) != 2 or pos_label not in names:
            raise ValueError(
                f"--pos-label {pos_label!r} is not one of two classes: {listed(names)}."
            )
        if pos_label == names[0]:
            proba, classes = proba[:, ::-1] if proba.ndim == 2 else proba, classes[::-1]
    return Predictions(proba, labels, classes)


def _two_labels(labels, pos_label):
    """Labels of a single column, and the classes where they are known."""
    if pos_label is not None:
        present = np.unique(labels)
        if len(present) != 2:
            raise ValueError(
                f"--pos-label {pos_label!r} needs two labels, found {listed(present.tolist())}."
            )
        return labels, present
    if labels.dtype.kind != "U" or labels.ndim != 1:
        return labels, None
    for row, label in enumerate(labels.tolist()):
        if label not in ("0", "1"):
            remedy = (
                "With a single column of probabilities labels must be 0 or 1; for other labels "
                "name the positive one by --pos-label."
            )
            raise InputError("label", f"is {label!r}.", remedy, row=row)
    return labels.astype(int), None


def one_sentence(message: str) -> str:
    """The message on one line, with a remedy where numpy gives none."""
    message = " ".join(message.split())
    return message if message.endswith((".", "?")) else f"{message}. Give numbers and labels."
