"""A file becomes names and columns, within the size that is allowed, and is written again."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Collection, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skcal._files import replacing
from skcal._show import listed
from skcal.cli.bounds import STANDARD_INPUT, FileError, check_size
from skcal.cli.text import (
    NO_CLASS,
    Choice,
    Dialect,
    Rows,
    Texts,
    holds_records,
    require_cells,
    write_records,
)

_COMMAS = Dialect()
_BATCH_BYTES = 2**29  # of texts that are expanded at a time
_TEXTS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_DAMAGES = (
    zipfile.BadZipFile,
    EOFError,
    zlib.error,
    OverflowError,
    NotImplementedError,  # of a method of compression
    RuntimeError,  # of a password
)


class FileTable(NamedTuple):
    """The contents of a file, before its columns have a meaning.

    Attributes
    ----------
    path : Path
    numbers : ndarray of shape (n_rows, n_columns) or, of archives alone, (n_rows,)
    columns : list of int
        The place in the file of each column of numbers.
    header : list of str
        The names of all columns of the file; empty for archives, whose columns have none.
    texts : dict of str to Texts
        Columns that are no numbers, by name.
    lines : sequence of int
        The line of each row of a text file; else empty.
    source : data frame, dict of arrays or list of str, default=None
        What :func:`write_table` writes again, of other files than separated text.
    dialect : Dialect
        Of a text file.
    """

    path: Path
    numbers: np.ndarray
    columns: list[int]
    header: Sequence[str]
    texts: dict[str, Texts]
    lines: Sequence[int] = ()
    source: Any = None
    dialect: Dialect = _COMMAS

    @property
    def names(self) -> list[str]:
        """The names of the columns of numbers; empty for archives."""
        return [self.header[k] for k in self.columns] if self.header else []

    @property
    def predictions(self) -> np.ndarray:
        """The numbers, of shape (n_rows,) where a header names one column of them alone."""
        return self.numbers[:, 0] if len(self.names) == 1 else self.numbers

    def take(self, rows: np.ndarray) -> FileTable:
        """Return the numbers of some rows."""
        lines = np.asarray(self.lines)[rows].tolist() if len(self.lines) else ()
        return self._replace(numbers=self.numbers[rows], lines=lines)

    def part(self, places: slice | list[int]) -> FileTable:
        """Return some of the columns of numbers."""
        columns = np.array(self.columns)[places].tolist()
        return self._replace(numbers=self.numbers[:, places], columns=columns)

    def words_for_row(self, row: int) -> str:
        """Return what messages call a row."""
        return f"line {self.lines[row]}" if len(self.lines) else f"row {row}"

    def words_for_column(self, column: int) -> str:
        """Return what messages call a column of numbers."""
        return f"column {self.names[column]!r}" if self.header else f"column {column}"


def read_table(
    path: Path,
    max_bytes: float,
    choose: Choice,
    keep: bool = False,
    dialect: Dialect = _COMMAS,
) -> FileTable:
    """Read a ``.csv``, ``.csv.gz``, ``.tsv``, ``.jsonl`` or ``.parquet`` file.

    Parameters
    ----------
    path : Path
        ``-`` is the standard input, read as ``.csv``.
    max_bytes : float
        Content that takes more is refused, before it is held where the file tells its size.
    choose : callable
        Gets the header and what messages call it, raises FileError where it does not suit, and
        returns the places of the columns that hold numbers and of those that are read as texts.
    keep : bool, default=False
        Whether all other columns are kept too, so that :func:`write_table` can write them again.
    dialect : Dialect, default=Dialect()
        Of a text file: commas between fields and decimal points, unless told otherwise.

    Returns
    -------
    table : FileTable
        With at least one row and one column of numbers.
    """
    if kind_of(path) == "parquet":
        return _read_parquet(path, max_bytes, choose, keep)
    rows = Rows(path, max_bytes, choose, keep, dialect)
    parts = rows.numbers, rows.columns, rows.header, rows.texts, rows.lines
    return FileTable(path, *parts, source=rows.records, dialect=dialect)


def write_table(out, table: FileTable, numbers: np.ndarray) -> None:
    """Write a file like the one that was read, with other numbers in place of its own.

    Parameters
    ----------
    out : path-like
        Of the same kind as the file of the table.
    table : FileTable
        Read with ``keep=True``, or all arrays of an archive.
    numbers : ndarray of the shape of ``table.numbers``
    """
    packed = str(out).lower().endswith(".gz")
    with replacing(out) as file:
        if kind_of(out) == "npz":
            if numbers.ndim == 2:
                numbers = numbers[:, np.argsort(table.columns)]
            _write_arrays(file, {**table.source, "proba": numbers})
        elif kind_of(out) == "parquet":
            for column, values in zip(table.columns, numbers.T, strict=True):
                table.source.isetitem(column, values)
            table.source.to_parquet(file)
        elif packed:
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as target:
                _write_text(target, table, numbers)
        else:
            _write_text(file, table, numbers)


def _write_text(file, table, numbers):
    if table.source:
        write_records(file, table.source, table.names, numbers, table.dialect)
        return
    cells = {
        name: map(table.dialect.write, values.tolist())
        for name, values in zip(table.names, numbers.T, strict=True)
    }
    for name, texts in table.texts.items():
        cells[name] = map(texts.values.__getitem__, texts.codes)
    text = io.TextIOWrapper(file, encoding=table.dialect.encoding, newline="", write_through=True)
    writer = csv.writer(text, delimiter=table.dialect.sep)
    writer.writerow(table.header)
    writer.writerows(zip(*(cells[name] for name in table.header), strict=True))
    text.detach()  # the file stays open


def kind_of(path) -> str:
    """Return "csv", "jsonl", "parquet" or "npz", or raise FileError."""
    name = Path(path).name.lower()
    if holds_records(path):
        return "jsonl"
    if str(path) == STANDARD_INPUT or name.endswith(_TEXTS):
        return "csv"
    if not name.endswith((".parquet", ".npz")):
        raise FileError(
            f"{path}: unknown kind of file. Pass a .csv, .tsv, .jsonl, .parquet or .npz file."
        )
    return name.rpartition(".")[2]


# Parquet


def _read_parquet(path, max_bytes, choose, keep) -> FileTable:
    frame = _read_frame(path, max_bytes)
    header = [str(name).strip() for name in frame.columns]
    columns, texts = choose(header, "the table")
    require_cells(path, columns, frame)
    numbers = np.column_stack([_numbers_of(frame, k, path, header[k]) for k in columns])
    columns_of_text = {header[k]: _texts_of(frame.iloc[:, k]) for k in texts}
    source = frame if keep else None
    return FileTable(path, numbers, columns, header, columns_of_text, source=source)


def _read_frame(path, max_bytes):
    """The data frame of a Parquet file."""
    try:
        import pandas  # noqa: F401
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise FileError(
            f"{path}: reading Parquet needs pandas and pyarrow: pip install pandas pyarrow."
        ) from error
    try:
        with parquet.ParquetFile(path) as file:
            table = _read_arrow(path, file, max_bytes)
        table.validate(full=True)  # texts are UTF-8
        return table.to_pandas()
    except ArrowException as error:
        if isinstance(error, ValueError | LookupError | TypeError | MemoryError | OSError):
            raise  # those that every reader may raise
        raise FileError(f"{path}: a damaged file ({error!r}). Save it again.") from error


def _read_arrow(path, file, max_bytes):
    """The table, as long as what it expands to stays within bounds.

    Repeated values take hardly any bytes in a file. Numbers are counted before they are read. Texts
    are expanded some rows at a time, since no text is longer than all columns of texts are in the
    file, uncompressed. Lists may hold anything, and are no probabilities.
    """
    from pyarrow import Table, types

    metadata, schema = file.metadata, file.schema_arrow
    for field in schema:
        if types.is_nested(field.type):
            raise FileError(f"{path}: column {field.name!r} holds {field.type}. {NO_CLASS}")
    widths = [max(8, column.length) for column in file.schema]  # the length of fixed texts
    check_size(path, metadata.num_rows * sum(widths), max_bytes)
    row_groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    chunks = [group.column(k) for group in row_groups for k in range(group.num_columns)]
    texts = [chunk for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"]
    longest = sum(chunk.total_uncompressed_size for chunk in texts)
    check_size(path, longest, max_bytes)
    size, batches = 0, []
    for batch in file.iter_batches(min(2**16, max(16, _BATCH_BYTES // max(1, longest)))):
        size += batch.nbytes
        check_size(path, size, max_bytes)
        batches.append(batch)
    return Table.from_batches(batches, schema=schema)


def _numbers_of(frame, k, path, name) -> np.ndarray:
    """Numbers of a column of a data frame."""
    dtype = frame.dtypes.iloc[k]
    try:
        if dtype.kind in ("m", "M"):
            raise TypeError("dates or times")
        return frame.iloc[:, k].to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise FileError(
            f"{path}: column {name!r} holds {dtype}, not numbers. {NO_CLASS}"
        ) from error


def _texts_of(column) -> Texts:
    """Texts of a column of a data frame, as a header can name them; "" where they are missing."""
    codes, values = column.factorize(use_na_sentinel=False)
    texts = []
    for value, missing in zip(values.tolist(), values.isna().tolist(), strict=True):
        whole = isinstance(value, float) and value.is_integer()
        texts.append("" if missing else str(int(value) if whole else value))
    return Texts(texts, codes)


# Archives of numpy


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
    remedy = f"Save it by numpy.savez(file, {', '.join(f'{name}=…' for name in needed[:2])})."
    with _open_archive(path, max_bytes, remedy) as data:
        missing = [name for name in needed if name not in data]
        if missing:
            raise FileError(
                f"{path}: array {missing[0]!r} is missing (found: {listed(list(data))}). {remedy}"
            )
        wanted = [*needed, *(name for name in others or () if name in data)]
        names = data.files if others is None else list(dict.fromkeys(wanted))
        return {name: _read_array(path, data, name, max_bytes, remedy) for name in names}


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
