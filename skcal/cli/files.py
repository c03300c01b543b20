"""Predictions from files."""

from __future__ import annotations

import csv
import gzip
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from skcal.cli.checks import (
    FileError,
    Places,
    Predictions,
    check_predictions,
    check_size,
    listed,
    one_sentence,
)
from skcal.cli.tables import read_csv, read_parquet
from skcal.cli.text_files import STANDARD_INPUT

MAX_BYTES = 4 * 2**30


_DAMAGES = (
    zipfile.BadZipFile,
    EOFError,
    zlib.error,
    OverflowError,
    NotImplementedError,  # of a method of compression
    RuntimeError,  # of a password
)
_SAVE = "Save it by numpy.savez(file, proba=…, labels=…)."


def read_predictions(
    path,
    label: str = "label",
    groups: str | None = None,
    max_bytes: int = MAX_BYTES,
    *,
    pos_label: str | None = None,
    normalize: bool = False,
    ignored: Sequence[str] = (),
    from_logits: bool = False,
) -> Predictions:
    """Read predictions and labels from a ``.csv``, ``.csv.gz``, ``.parquet`` or ``.npz`` file.

    Parameters
    ----------
    path : path-like
        ``-`` is the standard input, read as ``.csv``. ``.csv``, ``.csv.gz`` and ``.parquet``: a
        column of probabilities per class named by the class, and a column of labels; a single
        column of probabilities holds P(label 1) or P(``pos_label``).
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
    ignored : sequence of str, default=()
        Columns of a table that are neither classes nor labels.
    from_logits : bool, default=False
        Whether there are logits in place of probabilities.

    Returns
    -------
    predictions : Predictions

    Raises
    ------
    FileError
        Says which line and column are wrong and what to do.
    """
    path = Path(path)
    read = {"csv": read_csv, "npz": _read_npz, "parquet": read_parquet}[kind_of(path)]
    options = {"pos_label": pos_label, "normalize": normalize, "from_logits": from_logits}
    with telling_damage(path, max_bytes):
        check = partial(check_predictions, **options)
        return read(path, label, groups, max_bytes, check, tuple(ignored))


def kind_of(path) -> str:
    """Return "csv", "parquet" or "npz", or raise."""
    name = Path(path).name.lower()
    if str(path) == STANDARD_INPUT or name.endswith((".csv", ".csv.gz")):
        return "csv"
    if not name.endswith((".parquet", ".npz")):
        raise FileError(f"{path}: unknown kind of file. Pass a .csv, .parquet or .npz file.")
    return name.rpartition(".")[2]


@contextmanager
def telling_damage(path: Path, max_bytes: float):
    """Refuse a file that is too large, and let errors about it name it and a remedy."""
    try:
        if str(path) != STANDARD_INPUT:
            check_size(path, path.stat().st_size, max_bytes)
        yield
    except FileError:
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileError(f"{path}: a damaged .gz file ({error}). Compress it again.") from error
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
        raise FileError(f"{path}: {one_sentence(str(error))}") from error


def align(first: Predictions, second: Predictions, first_name, second_name) -> Predictions:
    """Bring the columns of another model's predictions into the order of the first.

    Parameters
    ----------
    first, second : Predictions
        Predictions for the same samples in the same order, with the same labels.
    first_name, second_name : str
        The names of their files, for messages.
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


def _read_npz(path, label, groups, max_bytes, check, ignored=()) -> Predictions:
    with open_archive(path, max_bytes) as data:
        needed = ["proba", "labels"] if groups is None else ["proba", "labels", groups]
        missing = [name for name in needed if name not in data]
        if missing:
            raise FileError(
                f"{path}: array {missing[0]!r} is missing (found: {listed(list(data))}). {_SAVE}"
            )
        found = None if groups is None else plain_array(path, data, groups, max_bytes)
        names = "proba", "labels", "classes"
        arrays = [plain_array(path, data, name, max_bytes) for name in names]
        if arrays[1].ndim == 2 and arrays[1].shape[1] == 1:
            arrays[1] = arrays[1][:, 0]
        arrays[1:] = [_text(array) for array in arrays[1:]]
        predictions = check(Places(path), *arrays)._replace(groups=found)
    classes = [str(name) for name in predictions.classes]
    if arrays[2] is None and arrays[0].ndim == 2 and arrays[1].dtype.kind in "US":
        warnings.warn(
            f"{path}: without an array 'classes' the columns are taken to be in the order of the "
            f"sorted labels, {listed(classes)}. Save classes=… to say which they are.",
            stacklevel=2,
        )
    return predictions


def _text(array):
    """Labels as text where they are bytes, which JSON and messages do not hold."""
    return (
        np.char.decode(array, "utf-8") if array is not None and array.dtype.kind == "S" else array
    )


@contextmanager
def open_archive(path: Path, max_bytes: float):
    """The arrays of an .npz file, which hold no more than ``max_bytes``."""
    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            raise FileError(f"{path}: not an .npz archive. {_SAVE}")
        file.seek(0)
        try:
            with zipfile.ZipFile(file) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
            check_size(path, size, max_bytes)
            file.seek(0)
            with np.load(file, allow_pickle=False) as data:
                yield data
        except _DAMAGES as error:
            raise FileError(f"{path}: a damaged .npz archive. {_SAVE}") from error


def plain_array(path, data, name, max_bytes):
    """An array of an archive, None where it is absent."""
    try:
        array = data.get(name)
    except (MemoryError, FileError):
        raise
    except Exception as error:  # numpy reads the description of an array as Python text
        if "pickle" not in str(error):
            raise FileError(f"{path}: array {name!r} is damaged. {_SAVE}") from error
        raise FileError(
            f"{path}: array {name!r} holds Python objects. Save numbers or {name}.astype(str)."
        ) from error
    if array is not None:
        check_size(path, array.size, max_bytes)  # of empty texts there may be any number
    return array
