"""A file becomes names and columns, within the size that is allowed, and is written again."""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zipfile
import zlib
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from skcal._files import replacing
from skcal._show import printable

STANDARD_INPUT = "-"
NO_CLASS = (
    "Remove columns that are no classes, or name them by --ignore; name that of the labels by "
    "--label, those of subgroups by --by and of samples that belong together by --groups."
)
_LONGEST_MESSAGE = 2000  # characters: names in files may be of any length
_LONGEST_LINE = 2**24
_BATCH_BYTES = 2**29  # of texts that are expanded at a time
_GZIP = b"\x1f\x8b"  # what compressed content begins with
_DAMAGES = (
    zipfile.BadZipFile,
    EOFError,
    zlib.error,
    OverflowError,
    NotImplementedError,  # of a method of compression
    RuntimeError,  # of a password
)


class FileError(ValueError):
    """A file that cannot be read as predictions; the message is one line of bounded length."""

    def __init__(self, message):
        message = printable(" ".join(message.splitlines()))
        if len(message) > _LONGEST_MESSAGE:
            start, end = _LONGEST_MESSAGE // 2, _LONGEST_MESSAGE // 4
            message = f"{message[:start]} … {message[-end:]}"
        super().__init__(message)


class Texts(NamedTuple):
    """A column of texts, each different one held once.

    Attributes
    ----------
    values : sequence of str or None
        The different texts in the order of their first rows; None is a missing value.
    codes : array of int of shape (n_rows,)
        The place of each row's text among the values.
    """

    values: Sequence[str | None]
    codes: Any


class FileTable(NamedTuple):
    """What a file holds, before anyone decides what it means.

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
    source : data frame or dict of arrays, default=None
        What :func:`write_table` writes again, of other files than text.
    """

    path: Path
    numbers: np.ndarray
    columns: list[int]
    header: Sequence[str]
    texts: dict[str, Texts]
    lines: Sequence[int] = ()
    source: Any = None

    @property
    def names(self) -> list[str]:
        """The names of the columns of numbers; empty for archives."""
        return [self.header[k] for k in self.columns] if self.header else []

    @property
    def predictions(self) -> np.ndarray:
        """The numbers, of shape (n_rows,) where a header names one column of them alone."""
        return self.numbers[:, 0] if len(self.names) == 1 else self.numbers

    def words_for_row(self, row: int) -> str:
        """Return what messages call a row."""
        return f"line {self.lines[row]}" if self.lines else f"row {row}"

    def words_for_column(self, column: int) -> str:
        """Return what messages call a column of numbers."""
        return f"column {self.names[column]!r}" if self.header else f"column {column}"


Choice = Callable[[list[str], str], tuple[list[int], list[int]]]


def read_table(path: Path, max_bytes: float, choose: Choice, keep: bool = False) -> FileTable:
    """Read a ``.csv``, ``.csv.gz`` or ``.parquet`` file.

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

    Returns
    -------
    table : FileTable
        With at least one row and one column of numbers.
    """
    read = {"csv": _read_csv, "parquet": _read_parquet}[kind_of(path)]
    return read(path, max_bytes, choose, keep)


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
                _write_csv(target, table, numbers)
        else:
            _write_csv(file, table, numbers)


def kind_of(path) -> str:
    """Return "csv", "parquet" or "npz", or raise FileError."""
    name = Path(path).name.lower()
    if str(path) == STANDARD_INPUT or name.endswith((".csv", ".csv.gz")):
        return "csv"
    if not name.endswith((".parquet", ".npz")):
        raise FileError(f"{path}: unknown kind of file. Pass a .csv, .parquet or .npz file.")
    return name.rpartition(".")[2]


@contextmanager
def errors_that_name(path: Path, max_bytes: float):
    """Refuse a file that is too large, and let every error name the file and a remedy."""
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


def one_sentence(message: str) -> str:
    """The message on one line, with a remedy where numpy gives none."""
    message = " ".join(message.split())
    return message if message.endswith((".", "?")) else f"{message}. Give numbers and labels."


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


def is_number(text) -> bool:
    """Whether Python reads it as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


# Text files


def _read_csv(path, max_bytes, choose, keep) -> FileTable:
    with _open_rows(path, max_bytes) as rows:
        header = [name.strip() for name in next(rows, [])]
        columns, texts = choose(header, "line 1")
        if keep:
            texts = sorted(set(range(len(header))).difference(columns))
        found: list[tuple[int, dict[str, int], array]] = [(k, {}, array("q")) for k in texts]
        numbers, lines = array("d"), array("q")
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise FileError(
                    f"{path}: line {rows.line_num} has {len(row)} fields, the header "
                    f"{len(header)}. Give one a column."
                )
            try:
                numbers.extend([float(row[k]) for k in columns])
            except ValueError:
                wrong = _what_is_no_number(header, row, columns, not lines)
                raise FileError(f"{path}: line {rows.line_num}{wrong}") from None
            lines.append(rows.line_num)
            check_size(path, numbers.itemsize * len(numbers), max_bytes)
            for k, known, codes in found:
                codes.append(known.setdefault(row[k], len(known)))
    _require_cells(path, columns, lines)
    values = np.frombuffer(numbers).reshape(len(lines), -1)
    columns_of_text = {header[k]: Texts(list(known), codes) for k, known, codes in found}
    return FileTable(path, values, columns, header, columns_of_text, lines)


def _what_is_no_number(header, row, columns, first) -> str:
    """Say what is wrong with a row; at the ``first`` one its columns may be no classes."""
    if [text.strip() for text in row] == header:
        return " repeats the header. Remove it."
    wrong = [k for k in sorted(columns) if not is_number(row[k])]
    place, text = f", column {header[wrong[0]]!r} is", row[wrong[0]]
    if not text.strip():
        return f"{place} empty. Give a probability, or drop the row."
    if text.strip().endswith("%") and is_number(text.strip()[:-1]):
        return f"{place} {text!r}, a percentage. Divide by 100 and leave out the sign."
    if "," in text and is_number(text.replace(",", ".", 1)):
        return f"{place} {text!r}. Write decimal points, not commas."
    if not first:
        return f"{place} {text!r}, not a number. Give a probability, or drop the row."
    others = [repr(header[k]) for k in wrong[1:]]
    nor = f"; nor are {listed(others)}" if others else ""
    return f"{place} {text!r}, not a number{nor}. {NO_CLASS}"


def _require_cells(path, columns, rows):
    """Raise unless there are rows and columns of numbers."""
    if not columns or not len(rows):
        missing = (
            "rows of probabilities below the header" if columns else "columns of probabilities"
        )
        raise FileError(
            f"{path}: no {missing}. Give a header, a column per class and a row per sample."
        )


@contextmanager
def _open_rows(path, max_bytes: float) -> Iterator:
    """Open a text file, expanded if gzip has compressed it; yields a ``csv.reader``.

    Reading raises FileError at content of more than ``max_bytes``, also of a device or a pipe,
    whose size is not known before, and at a line that can be no row.
    """
    with ExitStack() as stack:
        file = _bounded(_open_bytes(path, stack), path, max_bytes)
        if Path(path).suffix.lower() == ".gz" or file.peek(2)[:2] == _GZIP:
            packed: IO[bytes] = gzip.GzipFile(fileobj=file)  # type: ignore[assignment]
            file = _bounded(stack.enter_context(packed), path, max_bytes)
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        yield csv.reader(_lines_of(text, path))


def read_text(path, max_bytes: float) -> str:
    """The whole text of a file; raises FileError where it holds more than ``max_bytes``."""
    with open(path, "rb") as file:
        return str(_bounded(file, path, max_bytes).read(), "utf-8")


def _open_bytes(path, stack) -> IO[bytes]:
    """The bytes of a file, which the stack closes, or of the standard input, which stays open."""
    if str(path) != STANDARD_INPUT:
        return stack.enter_context(open(path, "rb"))
    if sys.stdin is None:
        raise FileError("standard input: is closed. Pass the name of a file.")
    return sys.stdin.buffer


def _bounded(stream, path, max_bytes) -> io.BufferedReader:
    return io.BufferedReader(_BoundedBytes(stream, path, max_bytes))


class _BoundedBytes(io.RawIOBase):
    """A stream that is refused once it has given more than ``max_bytes``; it stays open.

    Parameters
    ----------
    stream : file object
    path : path-like
        What messages call it.
    max_bytes : float
    """

    def __init__(self, stream, path, max_bytes):
        self._stream, self._path, self._max_bytes = stream, path, max_bytes
        self._size = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        n_read = self._stream.readinto(buffer)
        self._size += n_read
        check_size(self._path, self._size, self._max_bytes)
        return n_read


def _lines_of(text, path) -> Iterator[str]:
    for number in count(1):
        line = text.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE:
            raise FileError(
                f"{path}: line {number} has more than {_LONGEST_LINE:,} characters. Save it as a "
                "table, one line a sample."
            )
        if not line:
            return
        yield line


def _write_csv(file, table, numbers):
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    cells = {
        name: map(repr, values.tolist())
        for name, values in zip(table.names, numbers.T, strict=True)
    }
    for name, texts in table.texts.items():
        cells[name] = map(texts.values.__getitem__, texts.codes)
    writer = csv.writer(text)
    writer.writerow(table.header)
    writer.writerows(zip(*(cells[name] for name in table.header), strict=True))
    text.detach()


# Parquet


def _read_parquet(path, max_bytes, choose, keep) -> FileTable:
    frame = _read_frame(path, max_bytes)
    header = [str(name).strip() for name in frame.columns]
    columns, texts = choose(header, "the table")
    _require_cells(path, columns, frame)
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
    """Texts of a column of a data frame, as a header can name them."""
    codes, values = column.factorize(use_na_sentinel=False)
    texts: list[str | None] = []
    for value, missing in zip(values.tolist(), values.isna().tolist(), strict=True):
        whole = isinstance(value, float) and value.is_integer()
        texts.append(None if missing else str(int(value) if whole else value))
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
