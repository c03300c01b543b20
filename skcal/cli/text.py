"""The rows of a text file: its columns of numbers, and its texts.

There are two readers. The careful one reads any file row by row and says what is wrong with a row.
The fast one, by pyarrow where that is installed, reads a block of whole lines at a time where the
careful one would find the same; at the first block that may be different the careful one goes on.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from skcal.cli.bounds import FileError, bounded, check_size, listed, open_bytes

NO_CLASS = (
    "Remove columns that are no classes, or name them by --ignore; name that of the labels by "
    "--label, those of subgroups by --by and of samples that belong together by --groups."
)
_LONGEST_LINE = 2**24  # bytes
_GZIP = b"\x1f\x8b"  # what compressed content begins with
_BLOCK = 2**20  # bytes, and for each column
_BLOCK_OF_COLUMN = 2**14
_LEAST_FAST = 2**20  # bytes; what is smaller is read before pyarrow is imported
_LONGEST_FAST_LINE = 2**17  # bytes: the limit of a field of the careful reader
# A field in quotes that are not needed: it is what stands between them.
_QUOTED = rb'(?<![^%(sep)s\n])"([^"%(sep)s\r\n]*)"(?![^%(sep)s\r\n])'


class Dialect(NamedTuple):
    """What separates the fields of a row, and the decimals of a number.

    Attributes
    ----------
    sep : str
        A character.
    decimal : {".", ","}
    """

    sep: str = ","
    decimal: str = "."

    def parse(self, text: str) -> float:
        """Return the number that a field holds, or raise ValueError."""
        if self.decimal == ",":
            if "." in text:
                raise ValueError("a decimal point")
            text = text.replace(",", ".")
        return float(text)

    def is_number(self, text: str) -> bool:
        """Whether a field holds a number."""
        try:
            self.parse(text)
        except ValueError:
            return False
        return True

    def write(self, number: float) -> str:
        """Return a number with all its digits."""
        return repr(number).replace(".", self.decimal)


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


Choice = Callable[[list[str], str], tuple[list[int], list[int]]]


class Rows:
    """The rows of a text file.

    Parameters
    ----------
    path : Path
        ``-`` is the standard input.
    max_bytes : float
        More bytes of content, or of its numbers, are refused.
    choose : callable
        Gets the header and what messages call it, and returns the places of the columns of numbers
        and of texts.
    keep : bool
        Whether all columns but those of numbers are read as texts.
    dialect : Dialect

    Attributes
    ----------
    header : list of str
    columns : list of int
    lines : array of int
        The line of each row.
    """

    def __init__(self, path: Path, max_bytes: float, choose: Choice, keep: bool, dialect: Dialect):
        self._path, self._max_bytes, self._dialect = path, max_bytes, dialect
        self.lines, self._numbers = array("q"), array("d")
        with _open_lines(path, max_bytes) as lines:
            rows = csv.reader(lines, delimiter=dialect.sep)
            self.header = [name.strip() for name in next(rows, [])]
            self.columns, texts = choose(self.header, "line 1")
            if keep:
                texts = sorted(set(range(len(self.header))).difference(self.columns))
            self._texts: list[tuple[int, dict[str, int], array]] = [
                (k, {}, array("q")) for k in texts
            ]
            self._read_fast(lines)
            self._read_carefully(lines, rows)
        require_cells(path, self.columns, self.lines)

    @property
    def numbers(self) -> np.ndarray:
        """Of shape (n_rows, n_columns)."""
        return np.frombuffer(self._numbers).reshape(len(self.lines), -1)

    @property
    def texts(self) -> dict[str, Texts]:
        """Columns of texts by name."""
        return {self.header[k]: Texts(list(known), codes) for k, known, codes in self._texts}

    def _read_carefully(self, lines, rows) -> None:
        numbers, found, texts = self._numbers, self.lines, self._texts
        width, columns = len(self.header), self.columns
        parse = float if self._dialect.decimal == "." else self._dialect.parse
        for row in rows:
            if not row:
                continue
            if len(row) != width:
                raise FileError(
                    f"{self._path}: line {lines.number} has {len(row)} fields, the header "
                    f"{width}. Give one a column."
                )
            try:
                numbers.extend([parse(row[k]) for k in columns])
            except ValueError:
                wrong = self._what_is_no_number(row)
                raise FileError(f"{self._path}: line {lines.number}{wrong}") from None
            found.append(lines.number)
            check_size(self._path, numbers.itemsize * len(numbers), self._max_bytes)
            for k, known, codes in texts:
                codes.append(known.setdefault(row[k], len(known)))

    def _read_fast(self, lines) -> None:
        """Read block after block as long as each is certain to be read as carefully."""
        block = lines.read_block(_BLOCK + _BLOCK_OF_COLUMN * len(self.header))
        arrow = _import_arrow() if len(block) >= _LEAST_FAST else None
        while block:
            table = None if arrow is None else self._table_of(arrow, block)
            if table is None:
                lines.give_back(block)
                return
            first = lines.number + 1
            lines.number += table.num_rows
            self.lines.frombytes(np.arange(first, lines.number + 1, dtype=np.int64).tobytes())
            numbers = [table.column(str(k)).to_numpy() for k in self.columns]
            self._numbers.frombytes(np.column_stack(numbers).tobytes())
            for k, known, codes in self._texts:
                column = table.column(str(k)).combine_chunks().dictionary_encode()
                texts = column.dictionary.to_pylist()
                places = np.array([known.setdefault(text, len(known)) for text in texts])
                codes.frombytes(places[column.indices.to_numpy()].astype(np.int64).tobytes())
            block = lines.read_block(_BLOCK + _BLOCK_OF_COLUMN * len(self.header))

    def _table_of(self, arrow, block: bytes):
        """What is in whole lines, or None where the careful reader may find something else."""
        if b'"' in block:
            block = re.sub(_QUOTED % {b"sep": re.escape(self._dialect.sep.encode())}, rb"\1", block)
        if b'"' in block or b"\0" in block or block.count(b"\r") != block.count(b"\r\n"):
            return None
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        if not block.endswith(b"\n"):
            ends = np.append(ends, len(block))
        if np.diff(ends, prepend=-1).max() > _LONGEST_FAST_LINE or not self.columns:
            return None
        chosen = [*self.columns, *(k for k, _, _ in self._texts)]
        kinds = [arrow.float64()] * len(self.columns) + [arrow.string()] * len(self._texts)
        try:
            if not block.isascii() and "\ufeff" in block.decode():
                return None
            table = arrow.csv.read_csv(
                arrow.BufferReader(block),
                arrow.csv.ReadOptions(
                    use_threads=False,
                    block_size=len(block) + 1,
                    column_names=[str(k) for k in range(len(self.header))],
                ),
                arrow.csv.ParseOptions(delimiter=self._dialect.sep, quote_char=False),
                arrow.csv.ConvertOptions(
                    column_types={str(k): kind for k, kind in zip(chosen, kinds, strict=True)},
                    include_columns=[str(k) for k in chosen],
                    null_values=[],
                    decimal_point=self._dialect.decimal,
                ),
            )
        except (arrow.ArrowException, ValueError):
            return None
        size = len(self._numbers) + table.num_rows * len(self.columns)
        if table.num_rows != len(ends) or self._numbers.itemsize * size > self._max_bytes:
            return None  # a blank line, or a row with which it is too large
        if any(table.column(str(k)).null_count for k in chosen):
            return None
        finite = (np.isfinite(table.column(str(k)).to_numpy()).all() for k in self.columns)
        return table if all(finite) else None

    def _what_is_no_number(self, row) -> str:
        """Say what is wrong with a row; at the first one its columns may be no classes."""
        header, is_number = self.header, self._dialect.is_number
        if [text.strip() for text in row] == header:
            return " repeats the header. Remove it."
        wrong = [k for k in sorted(self.columns) if not is_number(row[k])]
        place, text = f", column {header[wrong[0]]!r} is", row[wrong[0]]
        if not text.strip():
            return f"{place} empty. Give a probability, or drop the row."
        if text.strip().endswith("%") and _is_decimal(text.strip()[:-1]):
            return f"{place} {text!r}, a percentage. Divide by 100 and leave out the sign."
        if "," in text and _is_decimal(text):
            return f"{place} {text!r}. Write decimal points, not commas, or pass --decimal ','."
        if _is_decimal(text):
            return f"{place} {text!r}, with a point where --decimal says a comma."
        if self.lines:
            return f"{place} {text!r}, not a number. Give a probability, or drop the row."
        others = [repr(header[k]) for k in wrong[1:]]
        nor = f"; nor are {listed(others)}" if others else ""
        return f"{place} {text!r}, not a number{nor}. {NO_CLASS}"


def require_cells(path, columns, rows) -> None:
    """Raise unless there are rows and columns of numbers."""
    if not columns or not len(rows):
        missing = (
            "rows of probabilities below the header" if columns else "columns of probabilities"
        )
        raise FileError(
            f"{path}: no {missing}. Give a header, a column per class and a row per sample."
        )


def write_rows(file, header, cells, dialect: Dialect) -> None:
    """Write a table as UTF-8 text.

    Parameters
    ----------
    file : file object
        Of bytes; it stays open.
    header : sequence of str
    cells : mapping of str to iterable of str
        The fields of each column.
    dialect : Dialect
    """
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, delimiter=dialect.sep)
    writer.writerow(header)
    writer.writerows(zip(*(cells[name] for name in header), strict=True))
    text.detach()


def _is_decimal(text) -> bool:
    """Whether it is a number with a decimal point or comma."""
    return Dialect().is_number(text.replace(",", ".", 1))


def _import_arrow():
    """The module pyarrow, or None."""
    try:
        import pyarrow.csv
    except ImportError:
        return None
    return pyarrow


# Lines


@contextmanager
def _open_lines(path, max_bytes: float) -> Iterator[_Lines]:
    """Open a text file, expanded if gzip has compressed it.

    Reading raises FileError at content of more than ``max_bytes``, also of a device or a pipe,
    whose size is not known before, and at a line that can be no row.
    """
    with ExitStack() as stack:
        file = bounded(open_bytes(path, stack), path, max_bytes)
        if Path(path).suffix.lower() == ".gz" or file.peek(2)[:2] == _GZIP:
            packed: IO[bytes] = gzip.GzipFile(fileobj=file)  # type: ignore[assignment]
            file = bounded(stack.enter_context(packed), path, max_bytes)
        yield _Lines(file, path)


class _Lines:
    """The lines of a file, to be gone through once; blocks of them can be taken in between.

    Attributes
    ----------
    number : int
        Of the last line that was given.
    """

    def __init__(self, file: io.BufferedReader, path):
        self._file, self._path = file, path
        self._ahead, self._in_line = b"", False
        self._error: Exception | None = None
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        encoding = "utf-8-sig"
        while line := self._file.readline(_LONGEST_LINE + 1):
            if len(line) > _LONGEST_LINE:
                raise FileError(
                    f"{self._path}: line {self.number + 1} has more than {_LONGEST_LINE:,} bytes. "
                    "Save it as a table, one line a sample."
                )
            text, encoding = line.decode(encoding), "utf-8"
            if line.count(b"\r") == line.endswith(b"\r\n"):
                self.number += 1
                yield text
                continue
            pieces = list(io.StringIO(text, newline=""))  # carriage returns end lines, too
            for n_given, piece in enumerate(pieces, 1):
                self.number += 1
                self._in_line = n_given < len(pieces)
                yield piece

    def read_block(self, size: int) -> bytes:
        """At least so many bytes of whole lines, or what is left before the end or an error."""
        pieces, n_read = [self._ahead], len(self._ahead)
        try:
            while n_read < size and (piece := self._file.read1(io.DEFAULT_BUFFER_SIZE)):
                pieces.append(piece)
                n_read += len(piece)
        except Exception as error:  # raised again once all before it has been read
            self._error = error
        block = b"".join(pieces)
        end = len(block) if n_read < size and self._error is None else block.rfind(b"\n") + 1
        self._ahead = block[end:]
        if not end or self._error is not None or self._in_line:
            self.give_back(block[:end])
            return b""
        return block[:end]

    def give_back(self, block: bytes) -> None:
        """Let the lines of a block come next."""
        again = _Again(block + self._ahead, self._file, self._error)
        self._file, self._ahead = io.BufferedReader(again), b""


class _Again(io.RawIOBase):
    """Bytes that were read before, and then what a stream still has, or the error that it raised.

    Parameters
    ----------
    head : bytes
    stream : BufferedReader
    error : Exception or None
    """

    def __init__(self, head, stream, error):
        self._head, self._stream, self._error = memoryview(head), stream, error

    def readable(self):
        return True

    def readinto(self, buffer):
        if self._head:
            size = min(len(buffer), len(self._head))
            buffer[:size], self._head = self._head[:size], self._head[size:]
            return size
        if self._error is not None:
            raise self._error
        return self._stream.readinto1(buffer)
