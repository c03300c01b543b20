"""The rows of a text file: its columns of numbers, and its texts."""

from __future__ import annotations

import csv
import gzip
import io
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np

from skcal.cli.bounds import FileError, bounded, check_size, listed, open_bytes

NO_CLASS = (
    "Remove columns that are no classes, or name them by --ignore; name that of the labels by "
    "--label, those of subgroups by --by and of samples that belong together by --groups."
)
_LONGEST_LINE = 2**24  # characters
_GZIP = b"\x1f\x8b"  # what compressed content begins with
_BLOCK = 2**10  # fields of rows converted together: of more the garbage collector takes its time


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
        with ExitStack() as stack:
            rows = csv.reader(_lines_of(path, max_bytes, stack), delimiter=dialect.sep)
            self.header = [name.strip() for name in next(rows, [])]
            self.columns, texts = choose(self.header, "line 1")
            if keep:
                texts = sorted(set(range(len(self.header))).difference(self.columns))
            self._texts: list[tuple[int, dict[str, int], array]] = [
                (k, {}, array("q")) for k in texts
            ]
            found = ((rows.line_num, row) for row in rows if row)
            while block := list(islice(found, max(1, _BLOCK // len(self.header)))):
                self._take(block)
        require_cells(path, self.columns, self.lines)

    @property
    def numbers(self) -> np.ndarray:
        """Of shape (n_rows, n_columns)."""
        return np.frombuffer(self._numbers).reshape(len(self.lines), -1)

    @property
    def texts(self) -> dict[str, Texts]:
        """Columns of texts by name."""
        return {self.header[k]: Texts(list(known), codes) for k, known, codes in self._texts}

    def _take(self, block) -> None:
        """Add rows, each with the number of its line."""
        parse = float if self._dialect.decimal == "." else self._dialect.parse
        lines, rows = zip(*block, strict=True)
        if set(map(len, rows)) != {len(self.header)}:
            self._refuse(block)
        fields = list(zip(*rows, strict=True))
        try:
            numbers = [list(map(parse, fields[k])) for k in self.columns]
        except ValueError:
            self._refuse(block)
        self._numbers.frombytes(np.column_stack(numbers or [[]]).tobytes())
        check_size(self._path, self._numbers.itemsize * len(self._numbers), self._max_bytes)
        self.lines.extend(lines)
        for k, known, codes in self._texts:
            codes.extend([known.setdefault(text, len(known)) for text in fields[k]])

    def _refuse(self, block) -> NoReturn:
        """Say what is wrong with the first of the rows that cannot be read."""
        width, is_number = len(self.header), self._dialect.is_number
        for line, row in block:
            if len(row) != width:
                raise FileError(
                    f"{self._path}: line {line} has {len(row)} fields, the header {width}. "
                    "Give one a column."
                )
            if not all(is_number(row[k]) for k in self.columns):
                is_first = not self.lines and row is block[0][1]
                raise FileError(
                    f"{self._path}: line {line}{self._what_is_no_number(row, is_first)}"
                )
        raise AssertionError("a row that can be read was refused")

    def _what_is_no_number(self, row, is_first: bool) -> str:
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
        if not is_first:
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


def _lines_of(path, max_bytes: float, stack) -> Iterator[str]:
    """The lines of a text file, which the stack closes, expanded if gzip has compressed it.

    Reading raises FileError at content of more than ``max_bytes``, also of a device or a pipe,
    whose size is not known before, and at a line that can be no row.
    """
    file = bounded(open_bytes(path, stack), path, max_bytes)
    if Path(path).suffix.lower() == ".gz" or file.peek(2)[:2] == _GZIP:
        packed: IO[bytes] = gzip.GzipFile(fileobj=file)  # type: ignore[assignment]
        file = bounded(stack.enter_context(packed), path, max_bytes)
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")
    number = 0
    while line := text.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise FileError(
                f"{path}: line {number} has more than {_LONGEST_LINE:,} characters. "
                "Save it as a table, one line a sample."
            )
        yield line
