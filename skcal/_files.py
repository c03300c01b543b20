"""Predictions from files."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skcal._validation import check_labels, check_proba


class Predictions(NamedTuple):
    """Checked predictions, labels and the class of each column."""

    proba: np.ndarray
    labels: np.ndarray
    classes: np.ndarray


class FileError(ValueError):
    """A file that cannot be read as predictions; the message is one line."""


def read_predictions(path, label: str = "label") -> Predictions:
    """Read predictions and labels from a ``.csv`` or ``.npz`` file.

    Parameters
    ----------
    path : path-like
        ``.csv``: a header, a column of probabilities per class named by the class, and a column
        of labels; a single column of probabilities holds P(label 1). ``.npz``: arrays ``proba``
        and ``labels``, and optionally ``classes``, the class of each column.
    label : str, default="label"
        Name of the label column of a ``.csv`` file.

    Returns
    -------
    predictions : Predictions

    Raises
    ------
    FileError
        Says which line and column are wrong and what to do.
    """
    path = Path(path)
    readers = {".csv": _read_csv, ".npz": _read_npz}
    if path.suffix.lower() not in readers:
        raise FileError(f"{path}: unknown kind of file. Pass a .csv or .npz file.")
    try:
        return readers[path.suffix.lower()](path, label)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}.") from error
    except FileError:
        raise
    except ValueError as error:
        raise FileError(f"{path}: {' '.join(str(error).split())}") from error


def _read_npz(path, label) -> Predictions:
    with np.load(path, allow_pickle=False) as data:
        missing = [name for name in ("proba", "labels") if name not in data]
        if missing:
            raise FileError(
                f"{path}: array {missing[0]!r} is missing (found: {', '.join(data) or 'none'}). "
                "Save it by numpy.savez(file, proba=…, labels=…)."
            )
        classes = data.get("classes")
        return _check(data["proba"], data["labels"], classes)


def _read_csv(path, label) -> Predictions:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        header = [name.strip() for name in next(rows, [])]
        if label not in header:
            raise FileError(
                f"{path}: line 1 has no column {label!r} (columns: {', '.join(header) or 'none'}). "
                "Name the column of labels by --label."
            )
        at = header.index(label)
        names = header[:at] + header[at + 1 :]
        values, labels = [], []
        for row in rows:
            if row:
                values.append(_numbers(path, rows.line_num, header, row, at))
                labels.append(row[at].strip())
    if not names or not values:
        raise FileError(
            f"{path}: no {'rows' if names else 'columns'} of probabilities. Give a header, a "
            "column per class and a row per sample."
        )
    try:
        return _from_table(np.array(values), labels, names)
    except ValueError as error:
        raise FileError(f"{path}: {_in_lines(str(error), names)}") from error


def _numbers(path, line, header, row, at) -> list[float]:
    if len(row) != len(header):
        raise FileError(
            f"{path}: line {line} has {len(row)} fields, the header {len(header)}. Complete it."
        )
    numbers = []
    for k, text in enumerate(row):
        if k == at:
            continue
        try:
            numbers.append(float(text))
        except ValueError:
            raise FileError(
                f"{path}: line {line}, column {header[k]!r} is {text!r}, not a number. "
                "Give a probability, or name the column of labels by --label."
            ) from None
    return numbers


def _from_table(values, labels, names) -> Predictions:
    if len(names) > 1:
        return _check(values, np.array(labels), np.array(names))
    wrong = [row for row, label in enumerate(labels) if label not in ("0", "1")]
    if wrong:
        raise ValueError(
            f"label row {wrong[0]} is {labels[wrong[0]]!r}. With a single column of probabilities "
            "labels must be 0 or 1."
        )
    return _check(values[:, 0], np.array(labels).astype(int), np.array([0, 1]))


def _check(proba, labels, classes) -> Predictions:
    proba = check_proba(proba, name="proba")
    codes, classes = check_labels(labels, proba, classes, name="label", proba_name="proba")
    return Predictions(proba, classes[codes], classes)


def _in_lines(message, names) -> str:
    """Turn row and column numbers of arrays into lines and names of the file."""
    message = message.replace(
        "Pass labels= with the class of every column.",
        "Every label must be the name of a column of probabilities.",
    )
    message = re.sub(r"\brow (\d+)", lambda match: f"line {int(match[1]) + 2}", message)
    return re.sub(
        r"\bcolumn (\d+)",
        lambda match: f"column {names[int(match[1])]!r}",
        " ".join(message.split()),
    )
