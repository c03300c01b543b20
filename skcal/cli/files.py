"""Predictions from files."""

from __future__ import annotations

import csv
import zipfile
import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skcal._validation import LOGITS, SWAPPED, InputError, check_labels, check_proba

MAX_BYTES = 4 * 2**30


class Predictions(NamedTuple):
    """Checked predictions, labels, the class of each column and perhaps subgroups."""

    proba: np.ndarray
    labels: np.ndarray
    classes: np.ndarray
    groups: np.ndarray | None = None


_DAMAGES = (
    zipfile.BadZipFile,
    EOFError,
    zlib.error,
    OverflowError,
    NotImplementedError,  # of a method of compression
    RuntimeError,  # of a password
)
_ROUNDING = 0.05  # by which a sum of rounded probabilities may miss 1
_NO_CLASS = (
    "Remove columns that are no classes; name that of the labels by --label, that of subgroups by "
    "--groups (command report)."
)
_SAVE = "Save it by numpy.savez(file, proba=…, labels=…)."


class FileError(ValueError):
    """A file that cannot be read as predictions; the message is one line."""

    def __init__(self, message):
        super().__init__(" ".join(message.splitlines()))


class _Places(NamedTuple):
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
        return f"line {self.lines[row]}" if self.lines else f"row {row}"

    def column(self, column: int) -> str:
        return f"column {self.names[column]!r}" if self.names else f"column {column}"


def read_predictions(
    path,
    label: str = "label",
    groups: str | None = None,
    max_bytes: int = MAX_BYTES,
    *,
    pos_label: str | None = None,
    normalize: bool = False,
) -> Predictions:
    """Read predictions and labels from a ``.csv``, ``.parquet`` or ``.npz`` file.

    Parameters
    ----------
    path : path-like
        ``.csv`` and ``.parquet``: a column of probabilities per class named by the class, and a
        column of labels; a single column of probabilities holds P(label 1) or P(``pos_label``).
        ``.npz``: arrays ``proba`` and ``labels``, and optionally ``classes``, the class of each
        column. No code in a file is run.
    label : str, default="label"
        Name of the label column of a table.
    groups : str, default=None
        Name of a column (an array) with the subgroup of each sample.
    max_bytes : int, default=4 GiB
        Files whose content takes more are refused.
    pos_label : str, default=None
        The positive label of a single column; of two columns that which comes second.
    normalize : bool, default=False
        Divide each row by its sum, which may miss 1 by 0.05: for rounded probabilities.

    Returns
    -------
    predictions : Predictions

    Raises
    ------
    FileError
        Says which line and column are wrong and what to do.
    """
    path = Path(path)
    readers = {".csv": _read_csv, ".npz": _read_npz, ".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise FileError(f"{path}: unknown kind of file. Pass a .csv, .parquet or .npz file.")
    try:
        _check_size(path, path.stat().st_size, max_bytes)
        check = partial(_check, pos_label=pos_label, normalize=normalize)
        return readers[path.suffix.lower()](path, label, groups, max_bytes, check)
    except FileError:
        raise
    except OSError as error:
        reason = " ".join(str(error.strerror or error).split()).rstrip(".")
        raise FileError(f"{path}: {reason}.") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not UTF-8 text. Save it as UTF-8.") from error
    except MemoryError as error:
        raise FileError(f"{path}: its arrays do not fit into memory.") from error
    except (LookupError, AttributeError) as error:  # of pyarrow's description of a data frame
        raise FileError(f"{path}: a damaged file ({error!r}). Save it again.") from error
    except csv.Error as error:
        raise FileError(f"{path}: {error}. Save it as a table, one line a sample.") from error
    except (ValueError, TypeError) as error:
        raise FileError(f"{path}: {_sentence(str(error))}") from error


def align(first: Predictions, second: Predictions, first_name, second_name) -> Predictions:
    """Bring the columns of another model's predictions into the order of the first.

    Parameters
    ----------
    first, second : Predictions
        Of the same samples in the same order, with the same labels.
    first_name, second_name : str
        Their files, for messages.
    """
    if len(first.labels) != len(second.labels):
        raise FileError(
            f"{second_name} has {len(second.labels)} samples, {first_name} {len(first.labels)}. "
            "Compare predictions for the same samples, in the same order."
        )
    here, there = first.classes.tolist(), second.classes.tolist()
    if first.proba.ndim != second.proba.ndim or set(here) != set(there):
        missing = sorted(map(str, set(here) ^ set(there))) or ["of a single column"]
        raise FileError(
            f"{second_name} and {first_name} have different classes; not in both: "
            f"{', '.join(missing[:8])}."
        )
    wrong = np.flatnonzero(first.labels != second.labels)
    if len(wrong):
        raise FileError(
            f"{second_name}: sample {wrong[0] + 1} has the label {second.labels[wrong[0]]!s}, in "
            f"{first_name} {first.labels[wrong[0]]!s}. Compare predictions for the same samples, "
            "in the same order."
        )
    if first.proba.ndim == 1 or here == there:
        return second
    order = [there.index(name) for name in here]
    return second._replace(proba=second.proba[:, order], classes=first.classes)


def _check_size(path, size, max_bytes):
    if size > max_bytes:
        raise FileError(
            f"{path}: holds {size / 2**30:.3g} GB, more than {max_bytes / 2**30:.3g}. "
            "Raise --max-size if that is meant."
        )


def _read_npz(path, label, groups, max_bytes, check) -> Predictions:
    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            raise FileError(f"{path}: not an .npz archive. {_SAVE}")
        file.seek(0)
        try:
            with zipfile.ZipFile(file) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
            _check_size(path, size, max_bytes)
            file.seek(0)
            return _from_archive(path, file, groups, check)
        except _DAMAGES as error:
            raise FileError(f"{path}: a damaged .npz archive. {_SAVE}") from error


def _from_archive(path, file, groups, check) -> Predictions:
    with np.load(file, allow_pickle=False) as data:
        needed = ["proba", "labels"] if groups is None else ["proba", "labels", groups]
        missing = [name for name in needed if name not in data]
        if missing:
            raise FileError(
                f"{path}: array {missing[0]!r} is missing (found: {', '.join(data) or 'none'}). "
                f"{_SAVE}"
            )
        found = None if groups is None else _plain_array(path, data, groups)
        arrays = (_plain_array(path, data, name) for name in ("proba", "labels", "classes"))
        return check(_Places(path), *arrays)._replace(groups=found)


def _plain_array(path, data, name):
    try:
        return data.get(name)
    except ValueError as error:
        if "pickle" not in str(error):
            raise FileError(f"{path}: array {name!r} is damaged. {_SAVE}") from error
        raise FileError(
            f"{path}: array {name!r} holds Python objects. Save numbers or {name}.astype(str)."
        ) from error


def _read_parquet(path, label, groups, max_bytes, check) -> Predictions:
    try:
        import pandas  # noqa: F401
        from pyarrow import parquet
    except ImportError as error:
        raise FileError(
            f"{path}: reading Parquet needs pandas and pyarrow: pip install 'skcal[parquet]'."
        ) from error
    with parquet.ParquetFile(path) as file:
        _check_size(path, 8 * file.metadata.num_rows * file.metadata.num_columns, max_bytes)
        return _from_frame(path, file.read().to_pandas(), label, groups, check)


def _from_frame(path, frame, label, groups, check) -> Predictions:
    header = [str(name).strip() for name in frame.columns]
    _check_header(path, header, label, groups, "the table")
    apart = [header.index(name) for name in (label, groups) if name is not None]
    names = [name for k, name in enumerate(header) if k not in apart]
    _require_cells(path, names, frame)
    columns = [_column(path, frame, k, header[k]) for k in range(len(header)) if k not in apart]
    labels = [_plain_label(path, row, value) for row, value in enumerate(frame.iloc[:, apart[0]])]
    predictions = _from_table(np.column_stack(columns), labels, check, _Places(path, names=names))
    found = None if groups is None else frame.iloc[:, apart[1]].astype(str).to_numpy(dtype=str)
    return predictions._replace(groups=found)


def _column(path, frame, k, name) -> np.ndarray:
    try:
        if frame.dtypes.iloc[k].kind in ("m", "M"):
            raise TypeError("dates or times")
        return frame.iloc[:, k].to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise FileError(
            f"{path}: column {name!r} holds {frame.dtypes.iloc[k]}, not numbers. {_NO_CLASS}"
        ) from error


def _plain_label(path, row, value) -> str:
    """A label as the header can name it."""
    if value is None or value != value:
        raise FileError(f"{path}: row {row} has no label. Drop or label that sample.")
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value).strip()


def _read_csv(path, label, groups, max_bytes, check) -> Predictions:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        header = [name.strip() for name in next(rows, [])]
        _check_header(path, header, label, groups)
        apart = [header.index(name) for name in (label, groups) if name is not None]
        names = [name for k, name in enumerate(header) if k not in apart]
        values, labels, lines, found = [], [], [], []
        for row in rows:
            if row:
                values.append(_numbers(path, rows.line_num, header, row, apart))
                labels.append(row[apart[0]].strip())
                found.append(row[apart[-1]].strip())
                lines.append(rows.line_num)
    _require_cells(path, names, values)
    predictions = _from_table(np.array(values), labels, check, _Places(path, lines, names))
    return predictions._replace(groups=None if groups is None else np.array(found))


def _require_cells(path, names, values):
    if not names or not len(values):
        missing = "rows of probabilities below the header" if names else "columns of probabilities"
        raise FileError(
            f"{path}: no {missing}. Give a header, a column per class and a row per sample."
        )


def _check_header(path, header, label, groups, first="line 1") -> None:
    if not any(header):
        raise FileError(
            f"{path}: {first} is empty. Give a header: the class of each column, and the column "
            "of labels."
        )
    remedy = "Name the column of labels by --label."
    if len(header) == 1 and ";" in header[0]:
        remedy = "Separate the fields by commas, not semicolons."
    elif header and all(_is_number(name) for name in header):
        remedy = "Give a header: the class of each column, and the column of labels."
    for name in (label, groups):
        if name is not None and name not in header:
            raise FileError(
                f"{path}: {first} has no column {name!r} (columns: {_listed(header)}). "
                f"{remedy if name == label else 'Name a column by --groups.'}"
            )
    for name in header:
        if not name:
            raise FileError(
                f"{path}: {first} has a column without a name. Remove it; pandas writes none with "
                "to_csv(…, index=False)."
            )
        if header.count(name) > 1:
            raise FileError(f"{path}: {first} names column {name!r} twice. Name each class once.")


def _listed(names, most: int = 12) -> str:
    more = f", … {len(names) - most} more" if len(names) > most else ""
    return (", ".join(map(str, names[:most])) or "none") + more


def _is_number(text) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(path, line, header, row, apart) -> list[float]:
    if len(row) != len(header):
        raise FileError(
            f"{path}: line {line} has {len(row)} fields, the header {len(header)}. "
            "Give one a column."
        )
    numbers = []
    for k, text in enumerate(row):
        if k in apart:
            continue
        try:
            numbers.append(float(text))
        except ValueError:
            place = f"{path}: line {line}, column {header[k]!r} is"
            if not text.strip():
                raise FileError(f"{place} empty. Give a probability, or drop the row.") from None
            raise FileError(f"{place} {text!r}, not a number. {_NO_CLASS}") from None
    return numbers


def _from_table(values, labels, check, places) -> Predictions:
    names = places.names
    if len(names) == 1:
        return check(places, values[:, 0], np.array(labels), None)
    _refuse_other_columns(values, labels, places)
    return check(places, values, np.array(labels), np.array(names))


def _refuse_other_columns(values, labels, places) -> None:
    """Name columns that no label names and without which the rows sum to 1."""
    names = places.names
    unnamed = ~np.isin(names, labels)
    if unnamed.all():
        like = _like_labels(names, labels)
        remedy = (
            f"Rename them to the labels, such as {like!r} to {labels[0]!r}."
            if like
            else "Give a column per class, named by the class, or a single column, of P(positive). "
            f"{_NO_CLASS}"
        )
        raise FileError(
            f"{places.path}: columns {_listed(names)}: none has the name of a label, such as "
            f"{labels[0]!r} in {places.row(0)}. {remedy}"
        )
    if not _misses_1(values).any():
        return
    for apart in (unnamed & ((values < 0) | (values > 1)).any(axis=0), unnamed):
        if apart.any() and not _misses_1(values[:, ~apart]).any():
            others = [repr(name) for name, out in zip(names, apart, strict=True) if out]
            raise FileError(
                f"{places.path}: {_listed(others)}: no label has this name, and the rows sum to 1 "
                f"without it. {_NO_CLASS}"
            )


def _like_labels(names, labels):
    """The first label's column if columns are named as p_cat, p_dog for labels cat, dog."""
    first, others = labels[0], set(labels)
    for name in names:
        if first and first in name and {name.replace(first, k, 1) for k in others} <= set(names):
            return name
    return None


def _misses_1(values) -> np.ndarray:
    """Rows whose sum is not explained by rounding."""
    with np.errstate(all="ignore"):
        return ~(np.abs(values.sum(axis=1, dtype=np.float64) - 1) <= _ROUNDING)


def _check(places, proba, labels, classes, pos_label=None, normalize=False) -> Predictions:
    """Check arrays; errors name the file's lines and columns, and what its owner can do."""
    try:
        return _check_arrays(proba, labels, classes, pos_label, normalize)
    except InputError as error:
        remedy = _REMEDIES.get(error.kind)
        if error.kind == "integers":
            remedy = f"{SWAPPED}{_REMEDIES['range']}"
        if error.kind == "sum" and not _misses_1(np.asarray(proba)[[error.row]]).any():
            remedy = f"{error.remedy} If it was rounded, --normalize does that."
        row = None if error.row is None else places.row(error.row)
        k = 0 if error.argument == "proba" and len(places.names) == 1 else error.column
        column = None if k is None else places.column(k)
        message = _sentence(error.told(remedy, row, column))
        raise FileError(f"{places.path}: {message}") from error


_REMEDIES = {
    "logits": "If these are logits, apply the softmax.",
    "range": LOGITS.format("the softmax, to a single column the logistic function"),
    "classes": "Every label must be the name of a column of probabilities.",
    "positive class": "Name the positive one by --pos-label.",
}


def _check_arrays(proba, labels, classes, pos_label, normalize) -> Predictions:
    proba = check_proba(_normalized(proba) if normalize else proba, name="proba")
    if proba.ndim == 1 and classes is None:
        labels, classes = _two_labels(labels, pos_label)
    codes, classes = check_labels(labels, proba, classes, name="label", proba_name="proba")
    labels = classes[codes]
    if pos_label is not None:
        names = [str(name) for name in classes.tolist()]
        if len(names) != 2 or pos_label not in names:
            raise ValueError(
                f"--pos-label {pos_label!r} is not one of two classes: {_listed(names)}."
            )
        if pos_label == names[0]:
            proba, classes = proba[:, ::-1] if proba.ndim == 2 else proba, classes[::-1]
    return Predictions(proba, labels, classes)


def _normalized(proba) -> np.ndarray:
    """Rows divided by their sums; what is no row of numbers is left to the checks."""
    if np.ndim(proba) != 2 or np.asarray(proba).dtype.kind != "f" or not np.isfinite(proba).all():
        return proba
    wrong = _misses_1(proba)
    if wrong.any():
        row = int(np.argmax(wrong))
        reason = f"sums to {proba[row].sum():.6g}, not 1."
        remedy = f"--normalize mends rounding alone, sums within {_ROUNDING} of 1."
        raise InputError("proba", reason, remedy, row=row)
    return proba / proba.sum(axis=1, dtype=np.float64, keepdims=True)


def _two_labels(labels, pos_label):
    """Labels of a single column, and the classes where they are known."""
    if pos_label is not None:
        present = np.unique(labels)
        if len(present) != 2:
            raise ValueError(
                f"--pos-label {pos_label!r} needs two labels, found {_listed(present.tolist())}."
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


def _sentence(message: str) -> str:
    """The message on one line, with a remedy where numpy gives none."""
    message = " ".join(message.split())
    return message if message.endswith((".", "?")) else f"{message}. Give numbers and labels."
