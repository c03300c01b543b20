"""The rows of a text file: its columns of numbers, and its texts."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np

from skcal._show import listed
from skcal.cli.bounds import (
    STANDARD_INPUT,
    FileError,
    at_most_bytes,
    check_size,
    open_bytes,
)

NO_CLASS = (
    "Remove columns that are no classes, or name them by --ignore; name that of the labels by "
    "--label, those of subgroups by --by and of samples that belong together by --groups."
)
_MISSING = frozenset(["", "na", "n/a", "#n/a", "nan", "null", "none", ".", "-", "?"])
LEAVE_OUT = "Pass --drop-missing to leave out such samples."
_LONGEST = 40  # characters of a field that spans lines
_LONGEST_LINE = 2**24  # characters
_GZIP = b"\x1f\x8b"  # what compressed content begins with
_BLOCK = 2**10  # fields of rows converted together: of more the garbage collector takes its time


class Dialect(NamedTuple):
    """How the fields and numbers of a text file are written.

    Attributes
    ----------
    sep : str
        The character that separates fields.
    decimal : {".", ","}
    encoding : str
    percent : bool
        Whether a number may end in a percent sign.
    missing : bool
        Whether an empty field, or a word for a missing value, is NaN in place of an error.
    """

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    percent: bool = False
    missing: bool = False

    def parse(self, text: str) -> float:
        """Return the number that a field holds, or raise ValueError."""
        if self.missing and is_missing(text):
            return math.nan
        if self.percent:
            text = text.strip().removesuffix("%")
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


def is_missing(text: str) -> bool:
    """Whether a field is empty or holds a word for a missing value."""
    return text.strip().lower() in _MISSING


class Texts(NamedTuple):
    """A column of texts, each different one held once.

    Attributes
    ----------
    values : sequence of str
        The different texts in the order of their first rows.
    codes : array of int of shape (n_rows,)
        The place of each row's text among the values.
    """

    values: Sequence[str]
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
    records : list of str
        The lines of objects of JSON, where all columns are kept; else empty.
    """

    def __init__(self, path: Path, max_bytes: float, choose: Choice, keep: bool, dialect: Dialect):
        self._path, self._max_bytes, self._dialect = path, max_bytes, dialect
        self.lines, self._numbers = array("q"), array("d")
        self.columns: list[int] = []
        self.records: list[str] = []
        self._keep_records = False
        self._signed: dict[int, bool] = {}  # whether numbers of a column have a percent sign
        with ExitStack() as stack:
            lines = _lines_of(path, max_bytes, stack, dialect.encoding)
            first = next(lines, "")
            are_records = holds_records(path) or (
                str(path) == STANDARD_INPUT and first.lstrip().startswith("{")
            )
            rows = (self._rows_of_records if are_records else self._rows)(chain([first], lines))
            self.header = next(rows)[1]
            if "\0" in "".join(self.header):
                raise FileError(
                    f"{path}: is text in UTF-16. Pass --encoding utf-16-le.", encoding="utf-16-le"
                )
            self.columns, texts = choose(self.header, "line 1")
            if keep:
                texts = sorted(set(range(len(self.header))).difference(self.columns))
            self._keep_records = keep and are_records
            self._texts: list[tuple[int, dict[str, int], array]] = [
                (k, {}, array("q")) for k in texts
            ]
            while block := list(islice(rows, max(1, _BLOCK // len(self.header)))):
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

    def _rows(self, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
        """The header and the rows of separated fields, with the lines in which they end."""
        rows = csv.reader(lines, delimiter=self._dialect.sep)
        yield 1, [name.strip() for name in next(rows, [])]
        yield from ((rows.line_num, row) for row in rows if row)

    def _rows_of_records(self, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
        """The same of objects of JSON, one a line; the names of the first one are the header."""
        header: list[str] = []
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            record = _fields_of_record(self._path, number, line)
            if not header:
                header = list(record)
                yield number, header
            if len(self.columns) > 1 and not record.keys() <= set(header):
                [name, *_] = record.keys() - set(header)
                raise FileError(
                    f"{self._path}: line {number} has {name!r}, which the first line lacks. Give "
                    "each line the same names, or name one column of probabilities by --score."
                )
            if self._keep_records:
                self.records.append(line)
            yield number, [record.get(name, "") for name in header]
        if not header:
            yield 1, []

    def _parse(self, fields) -> list[float]:
        """The numbers of a column."""
        if self._dialect.decimal == ".":
            with suppress(ValueError):
                return list(map(float, fields))
        return list(map(self._dialect.parse, fields))

    def _take(self, block) -> None:
        """Add rows, each with the number of its line."""
        lines, rows = zip(*block, strict=True)
        if set(map(len, rows)) != {len(self.header)}:
            self._refuse(block)
        fields = list(zip(*rows, strict=True))
        try:
            numbers = [self._parse(fields[k]) for k in self.columns]
        except ValueError:
            self._refuse(block)
        if self._dialect.percent:
            self._refuse_mixed(lines, fields)
        self._numbers.frombytes(np.column_stack(numbers or [[]]).tobytes())
        check_size(self._path, self._numbers.itemsize * len(self._numbers), self._max_bytes)
        self.lines.extend(lines)
        for k, known, codes in self._texts:
            codes.extend([known.setdefault(text, len(known)) for text in fields[k]])

    def _refuse_mixed(self, lines, fields) -> None:
        """Raise where some numbers of a column end in a percent sign, and others do not."""
        for k in self.columns:
            for line, text in zip(lines, fields[k], strict=True):
                signed = text.strip().endswith("%")
                if not is_missing(text) and self._signed.setdefault(k, signed) != signed:
                    place = f"{self._path}: line {line}, column {self.header[k]!r}"
                    raise FileError(
                        f"{place} is {text.strip()!r}, {'with' if signed else 'without'} a percent "
                        "sign, unlike those above. Write all of them alike."
                    )

    def _refuse(self, block) -> NoReturn:
        """Say what is wrong with the first of the rows that cannot be read."""
        width, is_number = len(self.header), self._dialect.is_number
        for line, row in block:
            place = f"{self._path}: line {line}"
            if [text.strip() for text in row] == self.header:
                raise FileError(f"{place} repeats the header. Remove it.")
            if len(row) != width:
                commas = self._dialect[:2] == (",", ",")
                remedy = "Give each column one."
                if row[0].startswith("#"):
                    remedy = "Delete lines of comments."
                elif commas:
                    remedy = (
                        "If commas stand before decimals, quote the numbers, or pass --sep ';'."
                    )
                raise FileError(f"{place} has {len(row)} fields, the header {width}. {remedy}")
            wrong = [k for k in sorted(self.columns) if not is_number(row[k])]
            if wrong:
                is_first = not self.lines and row is block[0][1]
                raise self._no_numbers(place, row, wrong, is_first)
        raise AssertionError("a row that can be read was refused")

    def _no_numbers(self, place: str, row, wrong: list[int], is_first: bool) -> FileError:
        """What is wrong with a row; in the first one its columns may be no classes."""
        others = [k for k in wrong if self._reading_of(row[k]) is None]
        if is_first and others and len(others) < len(self.columns):
            names = [self.header[k] for k in others]
            nor = f"; nor are {listed([repr(name) for name in names[1:]])}" if names[1:] else ""
            what = f"column {names[0]!r} is {row[others[0]]!r}, not a number{nor}."
            return FileError(f"{place}, {what} {NO_CLASS}", ignore=names)
        column, text = self.header[wrong[0]], row[wrong[0]]
        place = f"{place}, column {column!r} is"
        reading = self._reading_of(text)
        if "\n" in text:
            remedy = "Close its quotation mark."
            return FileError(f"{place} {text[:_LONGEST]!r} …, which spans lines. {remedy}")
        if reading is None:
            remedy = NO_CLASS if is_first else "Give a probability, or drop the row."
            return FileError(f"{place} {text!r}, not a number. {remedy}")
        what, option, options = reading
        shown = "" if not text.strip() else f" {text!r}"
        return FileError(f"{place}{shown}{what} {option}", **options)

    def _reading_of(self, text: str) -> tuple[str, str, dict] | None:
        """How a field could be read that is no number: what it is, the option, and its value."""
        text = text.strip()
        if is_missing(text):
            what = "." if text else " empty."
            return what, LEAVE_OUT, {"drop_missing": True}
        number = text.removesuffix("%")
        if not Dialect().is_number(number.replace(",", ".", 1)):
            return None
        if number != text and not self._dialect.percent:
            return ", a percentage.", "Pass --percent.", {"scale": 100.0}
        if "," in number:
            return ".", "If that is a decimal comma, pass --decimal ','.", {"decimal": ","}
        what = ", with a point where --decimal says a comma."
        return what, "Leave that option out.", {"decimal": "."}


def require_cells(path, columns, rows) -> None:
    """Raise unless there are rows and columns of numbers."""
    if not columns or not len(rows):
        missing = (
            "rows of probabilities below the header" if columns else "columns of probabilities"
        )
        raise FileError(
            f"{path}: no {missing}. Give a header, a column per class and a row per sample."
        )


def write_records(file, records, names, numbers, dialect: Dialect) -> None:
    """Write objects of JSON, one a line, with other numbers in place of some of their own.

    Parameters
    ----------
    file : file object
        Of bytes; it stays open.
    records : sequence of str
    names : sequence of str
        Those of the numbers.
    numbers : ndarray of shape (n_records, n_names)
    dialect : Dialect
    """
    for text, values in zip(records, numbers.tolist(), strict=True):
        record = json.loads(text)
        for name, value in zip(names, values, strict=True):
            _replace(record, name, value)
        file.write(f"{json.dumps(record, ensure_ascii=False)}\n".encode(dialect.encoding))


def _replace(record: dict, name: str, value: float) -> None:
    """Put a number where :func:`_flat` found one."""
    if name in record:
        record[name] = value
    for key, part in record.items():
        if isinstance(part, dict) and name.startswith(f"{key}."):
            _replace(part, name.removeprefix(f"{key}."), value)


def holds_records(path) -> bool:
    """Whether the name of a file says that it holds objects of JSON, one a line."""
    return str(path).lower().endswith((".jsonl", ".jsonl.gz"))


def _fields_of_record(path, number: int, line: str) -> dict[str, str]:
    """The fields of an object of JSON as text; those of an object within it as "name.part"."""
    try:
        record = json.loads(
            line,
            object_pairs_hook=_with_distinct_names,
            parse_float=str,
            parse_int=str,
            parse_constant=str,
        )
        if not isinstance(record, dict):
            raise ValueError("not an object")
        return dict(_flat(record))
    except (ValueError, RecursionError) as error:
        raise FileError(
            f"{path}: line {number} is not an object of JSON ({error}). Give one a line, such as "
            '{"confidence": 0.9, "correct": 1}.'
        ) from error


def _with_distinct_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a name stands twice")
    return record


def _flat(record: dict, start: str = "") -> Iterator[tuple[str, str]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{start}{name}.")
        elif isinstance(value, bool):
            yield f"{start}{name}", "true" if value else "false"
        else:
            yield f"{start}{name}", "" if value is None else str(value)


def _lines_of(path, max_bytes: float, stack, encoding: str) -> Iterator[str]:
    """The lines of a text file, which the stack closes, expanded if gzip has compressed it.

    Reading raises FileError at content of more than ``max_bytes``, also of a device or a pipe,
    whose size is not known before, and at a line that can be no row.
    """
    file = at_most_bytes(open_bytes(path, stack), path, max_bytes)
    if Path(path).suffix.lower() == ".gz" or file.peek(2)[:2] == _GZIP:
        packed: IO[bytes] = gzip.GzipFile(fileobj=file)  # type: ignore[assignment]
        file = at_most_bytes(stack.enter_context(packed), path, max_bytes)
    text = io.TextIOWrapper(file, "utf-8-sig" if encoding == "utf-8" else encoding, newline="")
    number = 0
    while line := text.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise FileError(
                f"{path}: line {number} has more than {_LONGEST_LINE:,} characters. "
                "Save it as a table, one line a sample."
            )
        yield line
