"""The predictions of a file before they are checked, and files that are written again."""

from __future__ import annotations

import gzip
import json
import zipfile
import zlib
from collections.abc import Collection, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skcal._show import listed, replacing
from skcal.cli.cells import Dialect
from skcal.cli.files import kind_of
from skcal.cli.frames import Frame
from skcal.cli.names import is_known, last_word
from skcal.cli.problems import FileError, check_size

_DAMAGES = (
    zipfile.BadZipFile,
    EOFError,
    zlib.error,
    OverflowError,
    NotImplementedError,  # of a method of compression
    RuntimeError,  # of a password
)
_MOST_PAIRS = 6  # of arrays, of which commands are shown
_WRITTEN = "Pass a .csv, .tsv, .txt, .jsonl, .parquet or .npz file, of text perhaps as .gz."


class FileTable(NamedTuple):
    """The predictions of a file.

    Attributes
    ----------
    path : Path
    numbers : ndarray of shape (n_rows, n_columns) or, of archives alone, (n_rows,)
    names : list of str
        The names of the columns; empty for archives, whose columns have none.
    rows : ndarray of shape (n_rows,) or None
        The rows of the file; None is all.
    frame : Frame or None
        The whole file; None for archives.
    vector : str or None
        The column of the file whose cells hold all numbers of a row.
    order : sequence of int
        Of an archive that is written again, the column of each column of numbers.
    arrays : dict of str to ndarray or None
        Of an archive that is written again.
    """

    path: Path
    numbers: np.ndarray
    names: list[str]
    rows: np.ndarray | None = None
    frame: Frame | None = None
    vector: str | None = None
    order: Sequence[int] = ()
    arrays: dict[str, np.ndarray] | None = None

    @property
    def predictions(self) -> np.ndarray:
        """The numbers, of shape (n_rows,) where a name stands for one column of them alone."""
        return self.numbers[:, 0] if len(self.names) == 1 else self.numbers

    def take(self, rows: np.ndarray) -> FileTable:
        """Return the numbers of some rows."""
        known = np.arange(len(self.numbers)) if self.rows is None else self.rows
        return self._replace(numbers=self.numbers[rows], rows=known[rows])

    def words_for_row(self, row: int) -> str:
        """Return what messages call a row."""
        row = row if self.rows is None else int(self.rows[row])
        return f"row {row}" if self.frame is None else self.frame.words_for_row(row)

    def words_for_column(self, column: int) -> str:
        """Return what messages call a column of numbers."""
        return f"column {self.names[column]!r}" if self.names else f"column {column}"


def require_cells(path, names, rows) -> None:
    """Raise unless there are rows and columns of numbers."""
    if not len(names) or not len(rows):
        what = (
            "rows of probabilities below the header" if len(names) else "columns of probabilities"
        )
        remedy = "Give a header, a column per class and a row per sample."
        raise FileError(f"{path}: no {what}. {remedy}")


def write_table(out, table: FileTable, numbers: np.ndarray, dialect: Dialect) -> None:
    """Write a file like the one that was read, with other numbers in place of its own.

    Parameters
    ----------
    out : path-like
        Of the same kind as the file of the table.
    table : FileTable
        Of a whole file.
    numbers : ndarray of the shape of ``table.numbers``
    dialect : Dialect
        Of a text file.
    """
    kind, frame = kind_of(out), table.frame
    with replacing(out) as file:
        if frame is None:
            if numbers.ndim == 2:
                numbers = numbers[:, np.argsort(table.order)]
            arrays = table.arrays or {}
            numbers = np.array(_in_rows(table, numbers, arrays.get("proba")))
            _write_arrays(file, {**arrays, "proba": numbers})
            return
        if kind == "jsonl":
            text = _with_numbers(table, numbers)
        else:
            columns = _replaced(frame, table, numbers, dialect, as_text=kind == "csv")
            if kind == "parquet":
                columns.to_parquet(file)
                return
            columns = columns.set_axis(frame.header, axis=1)
            sep = frame.sep or dialect.sep or ","
            text = columns.to_csv(sep=sep, index=False, lineterminator="\n", header=dialect.header)
        content = text.encode(dialect.encoding)
        if str(out).lower().endswith(".gz"):
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as target:
                target.write(content)
        else:
            file.write(content)


def refuse_unwritable(path) -> None:
    """Raise for a kind of file that is read but not written."""
    packed = str(path).lower().endswith((".zip", ".bz2", ".xz", ".arff", ".md", ".markdown"))
    if packed or kind_of(path) not in ("csv", "jsonl", "parquet", "npz"):
        raise FileError(f"{path}: such a file is not written. {_WRITTEN}")


def _replaced(frame: Frame, table: FileTable, numbers, dialect, as_text: bool):
    """The columns of a file with other numbers."""
    columns = frame.columns.copy()
    parts, write = dict(zip(table.names, numbers.T.tolist(), strict=True)), dialect.write
    if table.vector is not None:
        parts, write = {table.vector: _vectors(table, numbers)}, json.dumps
    for name, values in parts.items():
        place = frame.header.index(name)
        cells = list(map(write, values)) if as_text else values
        others = columns.iloc[:, place].to_numpy(dtype=object)
        columns.isetitem(place, _in_rows(table, cells, others))
    return columns


def _in_rows(table: FileTable, values, others):
    """Values in the rows of a table, and the others in all other rows of the file."""
    if table.rows is None:
        return values
    cells = list(others)
    for row, value in zip(table.rows.tolist(), values, strict=True):
        cells[row] = value
    return cells


def _vectors(table: FileTable, numbers: np.ndarray) -> list:
    """Lists of numbers, or dicts where the entries have names."""
    parts = [name.removeprefix(f"{table.vector}[").removesuffix("]") for name in table.names]
    rows = numbers.tolist()
    if all(map(str.isdecimal, parts)):
        return rows
    return [dict(zip(parts, row, strict=True)) for row in rows]


def _with_numbers(table: FileTable, numbers) -> str:
    """Objects of JSON, one a line, with other numbers in place of some of their own."""
    assert table.frame is not None
    lines = []
    rows = numbers.tolist() if table.vector is None else _vectors(table, numbers)
    records = table.frame.records
    known = records if table.rows is None else [records[row] for row in table.rows.tolist()]
    for text, values in zip(known, rows, strict=True):
        record = json.loads(text)
        parts = [values] if table.vector is not None else values
        for name, value in zip([table.vector] if table.vector else table.names, parts, strict=True):
            if not _replace(record, name, value):
                raise FileError(
                    f"{table.path}: {name!r} is a part of a text, which is not written. Save it as "
                    "a field of its own."
                )
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    return "".join(_in_rows(table, lines, [f"{text.strip()}\n" for text in records]))


def _replace(record: Any, name: str, value: Any) -> bool:
    """Put a value where a name, perhaps of a part of a part, stands, if it does."""
    while isinstance(record, list) and len(record) == 1:
        record = record[0]
    if not isinstance(record, dict):
        return False
    if name in record:
        record[name] = value
        return True
    return any(
        _replace(part, name.removeprefix(f"{key}."), value)
        for key, part in record.items()
        if name.startswith(f"{key}.")
    )


# Archives of numpy


def decoded(values):
    """Text where there are bytes, which JSON and messages do not hold."""
    return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values


def read_arrays(
    path: Path, max_bytes: float, needed: Sequence[str], others: Collection[str] | None = None
) -> dict[str, np.ndarray]:
    """Arrays of an ``.npz`` file, which holds no more than ``max_bytes``; no pickle is read.

    Parameters
    ----------
    path : Path
    max_bytes : float
    needed : sequence of str
        Arrays without which FileError is raised.
    others : collection of str, default=None
        Further arrays, which are read where they are there; None is all.
    """
    remedy = "Name the array of predictions by --score and that of labels by --label, or save them "
    remedy += f"by numpy.savez(file, {', '.join(f'{name}=…' for name in needed[:2])})."
    with _open_archive(path, max_bytes, remedy) as data:
        held = [name.removesuffix(".npy") for name in data.zip.namelist() if name.endswith(".npy")]
        missing = [name for name in needed if name not in held]
        if missing:
            text = f"{path}: array {missing[0]!r} is missing (found: {listed(held)})."
            if missing[0] not in needed[:2]:
                raise FileError(text)
            choices = _likely_arrays(data, held) if others is not None else []
            raise FileError(f"{text} {remedy}", choices=choices)
        wanted = [*needed, *(name for name in others or () if name in data)]
        names = held if others is None else list(dict.fromkeys(wanted))
        return {name: _read_array(path, data, name, max_bytes, remedy) for name in names}


def _likely_arrays(data, names: Sequence[str]) -> list[dict[str, str]]:
    """Pairs of arrays that may hold predictions and labels, by their types and names."""
    scores, labels, others = list[str](), list[str](), list[str]()
    for name in names:
        with data.zip.open(f"{name}.npy") as file:
            version = np.lib.format.read_magic(file)
            read = getattr(np.lib.format, f"read_array_header_{version[0]}_0", None)
            shape, _, dtype = read(file) if read is not None else ((), False, np.dtype(object))
        last = name.rpartition("/")[2]
        if dtype.kind == "f" and len(shape) in (1, 2):
            scores.append(name)
        elif dtype.kind in "iubUS" and len(shape) == 1:
            is_named = is_known("label", last) or is_known("label", last_word(last)[0])
            (labels if is_named else others).append(name)
    pairs = [{"score": score, "label": label} for score in scores for label in labels or others]
    return pairs if len(pairs) <= _MOST_PAIRS else []


@contextmanager
def _open_archive(path: Path, max_bytes: float, remedy: str):
    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            raise FileError(f"{path}: not an .npz archive. {remedy}")
        file.seek(0)
        try:
            with zipfile.ZipFile(file) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
            check_size(path, size, max_bytes)
            file.seek(0)
            with np.load(file, allow_pickle=False) as data:
                yield data
        except _DAMAGES as error:
            raise FileError(f"{path}: a damaged .npz archive. {remedy}") from error


def _read_array(path, data, name, max_bytes, remedy):
    try:
        values = data[name]
    except (MemoryError, FileError):
        raise
    except Exception as error:  # numpy reads the description of an array as Python text
        if "pickle" not in str(error):
            raise FileError(f"{path}: array {name!r} is damaged. {remedy}") from error
        raise FileError(
            f"{path}: array {name!r} holds Python objects. Save numbers or {name}.astype(str)."
        ) from error
    check_size(path, values.size, max_bytes)  # of empty texts there may be any number
    return values


def _write_arrays(file, arrays):
    """What ``numpy.savez`` writes, of arrays of any name."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
