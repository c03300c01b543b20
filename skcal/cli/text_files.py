"""Rows of text files, of which no more is held than the user allows."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import IO

import numpy as np

from skcal.cli.checks import NO_CLASS, FileError, check_size, listed

STANDARD_INPUT = "-"
_GZIP = b"\x1f\x8b"  # what compressed content begins with
_LONGEST_LINE = 2**24


@contextmanager
def open_rows(path, max_bytes: float) -> Iterator:
    """Open a file of comma-separated text, of the standard input where the path is ``-``.

    What gzip has compressed is expanded as it is read.

    Yields
    ------
    rows : csv.reader
        Raises FileError at content of more than ``max_bytes``, also of a device or a pipe, whose
        size nothing tells before, and at a line that can be no row.
    """
    with ExitStack() as stack:
        file = _bounded(_opened(path, stack), path, max_bytes)
        if Path(path).suffix.lower() == ".gz" or file.peek(2)[:2] == _GZIP:
            packed: IO[bytes] = gzip.GzipFile(fileobj=file)  # type: ignore[assignment]
            file = _bounded(stack.enter_context(packed), path, max_bytes)
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        yield csv.reader(_lines(text, path))


def read_text(path, max_bytes: float) -> str:
    """The whole text of a file; raises FileError where it holds more than ``max_bytes``."""
    with open(path, "rb") as file:
        return str(_bounded(file, path, max_bytes).read(), "utf-8")


def _opened(path, stack) -> IO[bytes]:
    """The bytes of a file, which the stack closes, or of the standard input, which stays open."""
    if str(path) != STANDARD_INPUT:
        return stack.enter_context(open(path, "rb"))
    if sys.stdin is None:
        raise FileError("standard input: is closed. Pass the name of a file.")
    return sys.stdin.buffer


def _bounded(stream, path, max_bytes) -> io.BufferedReader:
    return io.BufferedReader(_Bounded(stream, path, max_bytes))


class _Bounded(io.RawIOBase):
    """A stream that is refused where it holds more than ``max_bytes``, and is not closed by this.

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
        count = self._stream.readinto(buffer)
        self._size += count
        check_size(self._path, self._size, self._max_bytes)
        return count


def _lines(text, path) -> Iterator[str]:
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


class Numbers:
    """Numbers of the rows of a text file, eight bytes each, of all columns but those apart.

    Parameters
    ----------
    path : path-like
    header : list of str
    apart : collection of int
    max_bytes : float
        Raise FileError when the numbers take more.

    Attributes
    ----------
    lines : array of int
        The line of each row.
    """

    def __init__(self, path, header, apart, max_bytes):
        self.lines = array("q")
        self._path, self._header, self._apart, self._max_bytes = path, header, apart, max_bytes
        self._numbers = array("d")
        self._texts: dict[str, str] = {}

    def add(self, line, row) -> None:
        """Read a row."""
        first = not self.lines
        self._numbers.extend(
            numbers_of_row(self._path, line, self._header, row, self._apart, first)
        )
        self.lines.append(line)
        check_size(self._path, 8 * len(self._numbers), self._max_bytes)

    def kept(self, text: str) -> str:
        """The text; of equal ones the first, so that each is held once."""
        return self._texts.setdefault(text, text)

    def values(self) -> np.ndarray:
        """An array of shape (n_rows, n_columns)."""
        return np.frombuffer(self._numbers).reshape(len(self.lines), -1)


def is_number(text) -> bool:
    """Whether Python reads it as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def numbers_of_row(path, line, header, row, apart, first=False) -> list[float]:
    """Numbers of a row of text, of all columns but those apart; ``first`` of the rows or not."""
    if len(row) != len(header):
        raise FileError(
            f"{path}: line {line} has {len(row)} fields, the header {len(header)}. "
            "Give one a column."
        )
    try:
        return [float(text) for k, text in enumerate(row) if k not in apart]
    except ValueError:
        raise FileError(f"{path}: line {line}{_no_number(header, row, apart, first)}") from None


def _no_number(header, row, apart, first) -> str:
    """What is wrong with a row: of the first one that its columns may be no classes."""
    if [text.strip() for text in row] == header:
        return " repeats the header. Remove it."
    texts = [k for k, text in enumerate(row) if k not in apart and not is_number(text)]
    place = f", column {header[texts[0]]!r} is"
    if not row[texts[0]].strip():
        return f"{place} empty. Give a probability, or drop the row."
    told = f"{place} {row[texts[0]]!r}, not a number"
    if not first:
        return f"{told}. Give a probability, or drop the row."
    others = [repr(header[k]) for k in texts[1:]]
    return f"{told}{f'; nor are {listed(others)}' if others else ''}. {NO_CLASS}"
