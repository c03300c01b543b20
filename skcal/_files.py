"""Predictions from files."""

from __future__ import annotations

import csv
import re
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skcal._validation import check_labels, check_proba


class Predictions(NamedTuple):
    """Checked predictions, labels and the class of each column."""

    proba: np.ndarray
    labels: np.ndarray
    classes: np.ndarray


_SAVE = "Save it by numpy.savez(file, proba=…, labels=…)."


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
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not UTF-8 text. Save it as UTF-8.") from error
    except (ValueError, csv.Error) as error:
        raise FileError(f"{path}: {_for_files(str(error))}") from error


def _read_npz(path, label) -> Predictions:
    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            raise FileError(f"{path}: not an .npz archive. {_SAVE}")
        file.seek(0)
        try:
            return _from_archive(path, file)
        except (zipfile.BadZipFile, EOFError) as error:
            raise FileError(f"{path}: a damaged .npz archive. {_SAVE}") from error


def _from_archive(path, file) -> Predictions:
    with np.load(file, allow_pickle=False) as data:
        missing = [name for name in ("proba", "labels") if name not in data]
        if missing:
            raise FileError(
                f"{path}: array {missing[0]!r} is missing (found: {', '.join(data) or 'none'}). "
                f"{_SAVE}"
            )
        return _check(*(_plain_array(path, data, name) for name in ("proba", "labels", "classes")))


def _plain_array(path, data, name):
    try:
        return data.get(name)
    except ValueError as error:
        raise FileError(
            f"{path}: array {name!r} holds Python objects. Save numbers or {name}.astype(str)."
        ) from error


def _read_csv(path, label) -> Predictions:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        header = [name.strip() for name in next(rows, [])]
        _check_header(path, header, label)
        at = header.index(label)
        names = header[:at] + header[at + 1 :]
        values, labels, lines = [], [], []
        for row in rows:
            if row:
                values.append(_numbers(path, rows.line_num, header, row, at))
                labels.append(row[at].strip())
                lines.append(rows.line_num)
    if not names or not values:
        raise FileError(
            f"{path}: no {'rows' if names else 'columns'} of probabilities. Give a header, a "
            "column per class and a row per sample."
        )
    try:
        return _from_table(np.array(values), labels, names)
    except ValueError as error:
        raise FileError(f"{path}: {_in_lines(_for_files(str(error)), lines, names)}") from error


def _check_header(path, header, label) -> None:
    remedy = "Name the column of labels by --label."
    if len(header) == 1 and ";" in header[0]:
        remedy = "Separate the fields by commas, not semicolons."
    elif header and all(_is_number(name) for name in header):
        remedy = "Give a header: the class of each column, and the column of labels."
    if label not in header:
        raise FileError(
            f"{path}: line 1 has no column {label!r} (columns: {', '.join(header) or 'none'}). "
            f"{remedy}"
        )
    for name in header:
        if not name:
            raise FileError(
                f"{path}: line 1 has a column without a name. Remove it; pandas writes none with "
                "to_csv(…, index=False)."
            )
        if header.count(name) > 1:
            raise FileError(f"{path}: line 1 names column {name!r} twice. Name each class once.")


def _is_number(text) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(path, line, header, row, at) -> list[float]:
    if len(row) != len(header):
        raise FileError(
            f"{path}: line {line} has {len(row)} fields, the header {len(header)}. "
            "Give one a column."
        )
    numbers = []
    for k, text in enumerate(row):
        if k == at:
            continue
        try:
            numbers.append(float(text))
        except ValueError:
            raise FileError(
                f"{path}: line {line}, column {header[k]!r} is {text or 'empty'!r}, not a number. "
                "Give a probability"
                + (", or name the column of labels by --label." if text.strip() else ".")
            ) from None
    return numbers


def _from_table(values, labels, names) -> Predictions:
    if len(names) > 1:
        return _check(values, np.array(labels), np.array(names))
    wrong = [row for row, label in enumerate(labels) if label not in ("0", "1")]
    if wrong:
        raise ValueError(
            f"label row {wrong[0]} is {labels[wrong[0]]!r}. With a single column of probabilities "
            "labels must be 0 or 1; for other labels give a column per class."
        )
    return _check(values[:, 0], np.array(labels).astype(int), np.array([0, 1]))


def _check(proba, labels, classes) -> Predictions:
    proba = check_proba(proba, name="proba")
    codes, classes = check_labels(labels, proba, classes, name="label", proba_name="proba")
    return Predictions(proba, classes[codes], classes)


def _for_files(message: str) -> str:
    """Replace remedies for callers of Python functions."""
    for python, file in (
        (
            "Pass labels= with the class of every column.",
            "Every label must be the name of a column of probabilities.",
        ),
        (", apply scipy.special.softmax(…, axis=1) or from_logits=True.", ", apply the softmax."),
        ("; for logits apply scipy.special.softmax or expit.", "; for logits apply the softmax."),
    ):
        message = message.replace(python, file)
    return " ".join(message.split())


def _in_lines(message, lines, names) -> str:
    """Turn row and column numbers of arrays into lines and names of the file."""
    message = re.sub(r"\brow (\d+)", lambda match: f"line {lines[int(match[1])]}", message)
    return re.sub(r"\bcolumn (\d+)", lambda match: f"column {names[int(match[1])]!r}", message)
