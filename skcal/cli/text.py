"""Separated text becomes named columns, read by pandas."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice

import numpy as np

from skcal.cli.cells import Dialect
from skcal.cli.frames import LONGEST_NAME, Frame, all_names
from skcal.cli.problems import FileError

_LONGEST_LINE = 2**24  # bytes
_CHUNK = 2**16  # rows of a text that are read at a time
_TYPES = frozenset(["continuous", "discrete", "string", "time"])  # of columns in files of Orange
_LAST_IN_WEKA = "distribution"  # a column whose numbers stand between commas
_WITHOUT_NAME = ("id", "inst#", "row", "index", "no", "nr", "doc_id", "#")


def first_line(path, file) -> bytes:
    """The first line of a text, which is refused where it is too long."""
    line = file.readline(_LONGEST_LINE + 1)
    if len(line) > _LONGEST_LINE and b"\r" not in line:
        raise FileError(
            f"{path}: line 1 has more than {_LONGEST_LINE:,} characters. Save it as a table, one "
            "line a sample."
        )
    return line


def read_separated(pandas, path, opened: Callable, dialect: Dialect) -> Frame:
    """The columns of a text; each call of ``opened(stack)`` gives its bytes from the start."""
    encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
    sep = dialect.sep or ("\t" if re.search(r"\.(tsv|tab)(\.\w+)?$", str(path).lower()) else ",")
    n_skipped = 0

    @contextmanager
    def rows():
        with ExitStack() as stack:
            stream = io.TextIOWrapper(opened(stack), encoding, newline="")
            for _ in range(n_skipped):
                stream.readline()
            yield stream, _rows(stream, sep)

    with ExitStack() as stack:
        first_line(path, opened(stack))
    with rows() as (stream, _):
        n_skipped = _lines_of_preamble(stream)
    with rows() as (_, lines):
        header = [name.strip() for name in next(lines, (0, []))[1]]
        first, second = ([name.strip() for name in next(lines, (0, []))[1]] for _ in range(2))
    is_typed = not _TYPES.isdisjoint(first) and {"class", "meta"} & {*second} and len(second) > 1
    n_names = 3 if is_typed and len(first) == len(header) else 1  # lines, of Orange
    if "\0" in "".join(header):
        raise FileError(
            f"{path}: is text in UTF-16. Pass --encoding utf-16-le.", encoding="utf-16-le"
        )
    others = [sign for sign in ",;\t|" if sign != sep and len(header) == 1 and sign in header[0]]
    empty = pandas.DataFrame({k: [] for k in range(len(header))}, dtype=str)
    if not any(header) or others or header[0].startswith(("#", "sep=")) or not first:
        return Frame(path, header, empty, lambda row: row + 2, sep=sep)
    if n_names == 1:
        refuse_title(path, header, first)
    notes = []
    more = sep in " \t" and len(first) == len(header) + 1 > 2  # as R writes tables
    if more and first[-1].strip() and header[0].lower() not in _WITHOUT_NAME:
        header.insert(0, "row names")
        notes.append("The first field of each row, which the header does not name, is not read.")
    exact = {} if pandas.__version__ >= "3.1" else {"float_precision": "round_trip"}

    def line_of(row: int) -> int:
        with rows() as (_, lines):
            return n_skipped + next(islice(lines, row + n_names, None))[0]

    def refuse(error=None) -> None:
        with rows() as (_, lines):
            _refuse_widths(path, lines, sep, n_skipped, len(header), error)

    def read(places=None, n_rows=None):
        """Parts of columns as texts, or of all as numbers where all cells are."""
        with rows() as (stream, lines):
            for _ in range(n_names):
                next(lines)
            yield from pandas.read_csv(
                stream,
                sep=r"\s+" if sep == " " else sep,
                header=None,
                names=range(len(header)),
                usecols=places,
                nrows=n_rows,
                dtype=None if places is None else object,
                na_filter=False,
                decimal=dialect.decimal,
                chunksize=_CHUNK,
                **exact,
            )

    if len(first) > len(header):
        if header[-1] != _LAST_IN_WEKA:
            refuse()
        with rows() as (_, lines):
            cells = [_with_list(row, len(header) - 1) for _, row in islice(lines, 1, None)]
        return Frame(path, header, pandas.DataFrame(cells, dtype=object), line_of, sep=sep)
    try:
        columns = pandas.concat(map(_narrowed, read()))
    except pandas.errors.EmptyDataError:
        return Frame(path, header, empty, line_of, sep=sep)
    except pandas.errors.ParserError as error:
        refuse(error)
        raise FileError(f"{path}: {' '.join(str(error).split())}. Save it again.") from error
    last = columns.iloc[:, -1]
    if last.dtype.kind not in "iuf" and (last == "").any():  # also fields that are not there
        refuse()
    frame = Frame(path, header, columns, line_of, notes=notes, sep=sep, read=read)
    frame.row_names = header[0] if notes else None
    return frame


def _narrowed(chunk):
    """A part of a long table, with small integers in less memory."""
    for name in chunk.columns[chunk.dtypes == np.int64] if len(chunk) == _CHUNK else ():
        if chunk[name].min() >= -128 and chunk[name].max() <= 127:
            chunk[name] = chunk[name].astype(np.int8)
    return chunk


def refuse_title(path, header: list[str], first: list[str]) -> None:
    """Raise where line 1 is one text and line 2 holds different names alone."""
    names, is_number = [name.strip() for name in first], Dialect(percent=True).is_number
    is_title = header[0] and not any(header[1:]) and 1 < len(set(names)) == len(names)
    if is_title and all(names) and not any(map(is_number, names)):
        raise FileError(
            f"{path}: line 1, {header[0][:LONGEST_NAME]!r}, may be a title, and line 2 the header: "
            f"{all_names(names)}. If so, delete line 1."
        )


def _with_list(row: list[str], n_before: int) -> list[str]:
    """A row whose last fields become a list; Weka marks the largest by a star."""
    return [*row[:n_before], f"[{','.join(row[n_before:]).replace('*', '')}]"]


def _lines_of_preamble(stream) -> int:
    """The number of lines that Weka writes before the header."""
    n_lines = 0
    while line := stream.readline():
        if not (line.startswith("=== ") or (n_lines and not line.strip())):
            break
        n_lines += 1
    return n_lines


def _rows(stream, sep: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of fields, the first one even if it is empty, with the lines in which they end."""
    lines = iter(stream.readline, "")
    if sep == " ":
        lines = (f"{' '.join(line.split())}\n" for line in lines)
    rows = csv.reader(lines, delimiter=sep)
    for k, row in enumerate(rows):
        if k == 0 or len(row) > 1 or (row and row[0].strip()):
            yield rows.line_num, row


def _refuse_widths(path, rows, sep: str, n_skipped: int, width: int, error) -> None:
    """Name the first row that has more or fewer fields than the header, or does not end."""
    line, row = 0, [""]
    for line, row in islice(rows, 1, None):
        if len(row) == width:
            continue
        place = f"{path}: line {line + n_skipped}"
        remedy = "Give each column one."
        if row[0].startswith("#"):
            remedy = "Delete lines of comments."
        elif sep == "," and len(row) > width:
            remedy = (
                "If commas stand before decimals, quote the numbers and pass --decimal ','. If a "
                "list of probabilities stands between commas, name a column for each in the header."
            )
        raise FileError(f"{place} has {len(row)} fields, the header {width}. {remedy}")
    if error is not None and any("\n" in field or "\r" in field for field in row):
        raise FileError(
            f"{path}: line {line + n_skipped} ends a field which spans lines. Close its quotation "
            "mark."
        )
