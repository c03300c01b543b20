"""Separated text becomes named columns, read by pandas."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice

import numpy as np

from skcal._show import listed
from skcal.cli.cells import Dialect, is_likely_number
from skcal.cli.frames import Frame
from skcal.cli.header import (
    PROBED,
    ROW_NAMES,
    RULE,
    Head,
    head_of,
    note_of_header,
    note_of_totals,
    notes_of,
    samples_of,
)
from skcal.cli.names import is_known
from skcal.cli.problems import FileError, unreadable

_LONGEST_LINE = 2**24  # bytes
_CHUNK = 2**16  # rows of a text that are read at a time
_BLOCK = 2**23  # characters of a text that are held at a time where it is counted
_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s", re.IGNORECASE)
_OF_LIBSVM = re.compile(r"labels( -?\d+){2,}\s*")
_N_ROWS = re.compile(  # below a printed table
    r"\s*\(?\d[\d,.]* (rows?|records?|tuples?|results?|zeilen?|lignes?|filas?|righe)( \w+)*\)?\.?"
    r"( \([^()]*\))?\s*",
    re.IGNORECASE,
)
_FEWEST_BY_BLANKS = 2  # fields of each line, above which blanks may separate them
_ABOVE_RULE = 4  # the first lines, among which a rule below the names of columns is
_MOST_LINES = 8  # that a message names
_SEP = re.compile(r"sep=(.)")  # what spreadsheets write and read above a header


def first_line(path, file) -> bytes:
    """The first line of a text, which is refused where it is too long."""
    line = file.readline(_LONGEST_LINE + 1)
    if len(line) > _LONGEST_LINE and b"\r" not in line:
        raise FileError(
            f"{path}: line 1 has more than {_LONGEST_LINE:,} characters. Save it as a table, one "
            "line a sample."
        )
    return line


def encoding_of(dialect: Dialect) -> str:
    """The encoding of a text, which may begin with a mark of it."""
    return "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding


def read_separated(
    pandas, path, opened: Callable, dialect: Dialect, n_before: int = 0, is_end: bool = True
) -> Frame:
    """The columns of a text; each call of ``opened(stack)`` gives its bytes from the start.

    ``n_before`` lines of the file that stand before its rows are not among these bytes.
    ``is_end`` says whether the last rows are those of the file, which may be totals.
    """
    with ExitStack() as stack:
        first_line(path, opened(stack))
    text = _Text(pandas, path, opened, dialect)
    text.n_before, text.is_end = n_before, is_end
    names = text.head.names
    frame = Frame(path, names, text.columns(), text.line_of, sep=text.sep, notes=text.notes)
    frame.place = f"line {text.line_of_header or 1}"
    frame.aside = {*text.head.aside, *names[: text.has_row_names]}
    frame.notes += notes_of(frame.aside, text.line_of_header)
    if text.head.n_rows == 3:
        frame.notes.append("The two rows below the header describe the columns, no samples.")
    if not text.n_lines_of_weka and len(frame):
        frame.reread(text.read)
    return frame


class _Text:
    """A text that is read as often as it must.

    Parameters
    ----------
    pandas : module
    path : path-like
    opened : callable
        ``opened(stack)`` gives the bytes from the start.
    dialect : Dialect

    Attributes
    ----------
    head : Head
    sep : str
    line_of_header : int or None
        None where it is line 1.
    notes : list of str
        What was decided.
    has_row_names : bool
        Whether the first column is one that the header does not name.
    n_lines_of_weka : int
        The number of lines that Weka wrote above the header.
    n_before : int
        The number of lines of the file that are not among the bytes.
    is_end : bool
        Whether the last rows are those of the file.
    """

    def __init__(self, pandas, path, opened: Callable, dialect: Dialect):
        self.pandas, self.path, self.opened, self.dialect = pandas, path, opened, dialect
        of_tabs = re.search(r"\.(tsv|tab)(\.\w+)?$", str(path).lower())
        self.sep = dialect.sep or ("\t" if of_tabs else ",")
        self.notes: list[str] = []
        self.n_before, self.is_end = 0, True
        self.line_of_header: int | None = None
        self._n_skipped, self.has_row_names = 0, False
        self._n_samples: int | None = None
        self._quote, self._is_no_row, self._header = '"', list[Callable](), [""]
        with self._stream() as stream:
            self.n_lines_of_weka = self._n_skipped = _lines_of_preamble(stream)
        with self._stream() as stream:
            start = [line.strip() for line in islice(stream, PROBED) if line.strip()]
        if start and re.match("(%|@relation)", start[0], re.IGNORECASE):
            self._read_names_of_arff()
            return
        if start and _OF_LIBSVM.fullmatch(start[0]):
            self.sep = dialect.sep or " "
        if any(map(RULE.fullmatch, start[:_ABOVE_RULE])):  # as programs print tables
            self._is_no_row += [lambda line: RULE.fullmatch(line.strip()), _N_ROWS.fullmatch]
            self.sep = dialect.sep or (
                "|" if re.search("[+|]", "".join(start[:_ABOVE_RULE])) else self.sep
            )
        rows = self._first_rows()
        if match := _SEP.fullmatch(",".join(rows[0][1])):
            self.sep, self._n_skipped = dialect.sep or match[1], 1
            rows = self._first_rows()
        cells = [row for _, row in rows]
        lines = [self.sep.join(row) for row in cells]
        first = next(filter(any, cells), [])
        is_other = len(first) == 1 or (first[:1] and first[0].startswith("#"))
        other = self._other_sep(lines) if is_other else None
        if other:  # which an error names
            above = head_of([line.split(other) for line in lines]).above
            self.head, self._below = Head(above, 1, [lines[above]], set()), []
            return
        self.head = head_of(cells, self.sep, dialect.header)
        above, n_rows, names, _ = self.head
        self._header = cells[above] if n_rows else [""]
        self._below = next(iter(cells[above + n_rows :]), [])
        if above:
            self.line_of_header = line = rows[above][0]
            self._n_skipped = line - 1 - sum(cell.count("\n") for cell in cells[above])
        more = self.sep in " \t" and len(self._below) == len(names) + 1 > 2  # as R writes tables
        numbered = names[0] == "#" or is_known("number of rows", names[0])
        if more and self._below[-1] and not numbered:
            names.insert(0, ROW_NAMES)
            self.has_row_names = True

    def _read_names_of_arff(self) -> None:
        """Take the names of columns from the lines above the rows."""
        names: list[str] = []
        with self._stream() as stream:
            for k, line in enumerate(stream, 1):
                if found := _ATTRIBUTE.match(line.strip()):
                    names.append(re.sub(r"^(['\"])(.*)\1$", r"\2", found[1]))
                elif line.strip().lower() == "@data":
                    self._n_skipped = k
                    break
        self._quote, self.head = "'", Head(0, 0, names or [""], set())
        self._is_no_row.append(lambda line: line.startswith("%"))
        self._below = next((row for _, row in self._first_rows() if any(row)), [])

    def _first_rows(self) -> list[tuple[int, list[str]]]:
        """The first rows, with the lines in which they end, blanks around cells stripped."""
        found: list[tuple[int, list[str]]] = []
        with self._rows() as rows:
            while len(found) < PROBED:
                try:
                    line, row = next(rows, (0, None))
                except csv.Error:
                    if len(found) < 2:
                        raise
                    break
                if row is None:
                    break
                found.append((line, [cell.strip() for cell in row] or [""]))
        if found and "\0" in "".join(found[0][1]):
            raise FileError(
                f"{self.path}: is text in UTF-16. Pass --encoding utf-16-le.", encoding="utf-16-le"
            )
        return found or [(0, [""])]

    def _other_sep(self, lines: list[str]) -> str | None:
        """Another character that separates the fields of most lines."""
        signs = [
            sign for sign in (";\t|, " if self.n_lines_of_weka else ";\t|,") if sign != self.sep
        ]
        counts = {sign: sum(sign in line for line in lines) for sign in signs}
        rows = [line for line in lines if not line.startswith("#")]
        n_fields = {0 if self.sep in line else len(line.split()) for line in rows}
        if len(n_fields) == 1 and min(n_fields) > _FEWEST_BY_BLANKS:
            counts[" "] = len(lines)
        sign = max(counts, key=counts.__getitem__)
        return sign if 2 * counts[sign] > len(lines) else None

    @contextmanager
    def _stream(self):
        with ExitStack() as stack:
            stream = io.TextIOWrapper(self.opened(stack), encoding_of(self.dialect), newline="")
            for _ in range(self._n_skipped):
                stream.readline()
            yield _Kept(stream, self._is_no_row) if self._is_no_row else stream

    @contextmanager
    def _rows(self):
        """Rows of fields, with the lines in which they end."""
        with self._stream() as stream:
            n_lines = self.n_before + self._n_skipped
            yield ((n_lines + line, row) for line, row in _rows(stream, self.sep, self._quote))

    def line_of(self, row: int) -> int:
        """The line in which a row of samples ends."""
        with self._rows() as rows:
            return next(islice(rows, row + self.head.n_rows, None), (row + 2, []))[0]

    def columns(self):
        """All columns, as numbers where all of their cells are."""
        names, pandas = self.head.names, self.pandas
        empty = pandas.DataFrame({k: [] for k in range(len(names))}, dtype=str)
        if not any(names) or names[0].startswith("#") or not self._below:
            return empty
        if self.n_lines_of_weka:
            return pandas.DataFrame(self._cells_of_weka(), dtype=object)
        if len(self._below) > len(names):
            self._refuse_widths()
        try:
            columns = pandas.concat(map(_narrowed, self.read()))
        except pandas.errors.EmptyDataError:
            return empty
        except pandas.errors.ParserError as error:
            self._refuse_widths(error)
            raise unreadable(self.path, error) from error
        if self._names_again(columns):
            columns = pandas.concat(map(_narrowed, self.read()))
        last = columns.iloc[:, -1]
        if last.dtype.kind not in "iuf" and (last == "").any():  # also fields that are not there
            self._refuse_widths()
        n, totals = samples_of(columns) if self.is_end else (len(columns), [])
        if n == len(columns):
            return columns
        self.notes += note_of_totals(totals, self.line_of)
        self._n_samples = n
        return pandas.concat(map(_narrowed, self.read())) if n else empty

    def _names_again(self, columns) -> bool:
        """Leave out rows that name all columns again, as those of files one after the other do."""
        from pandas.api.types import is_string_dtype

        names, k = self._header, len(self.head.names) - len(self._header)
        if k < 0 or not all(map(is_string_dtype, columns.dtypes)):
            return False
        likely = np.flatnonzero(columns.iloc[:, k].str.strip().isin(names))
        cells = {int(row): [*map(str.strip, columns.iloc[row, k:])] for row in likely}
        others = [row for row in cells if cells[row] != names and {*cells[row]} == {*names}]
        if others:
            raise self._other_header([self.line_of(row) for row in others], cells[others[0]])
        again = [row for row in cells if cells[row] == names]
        if again:
            self.notes.append(note_of_header([self.line_of(row) for row in again]))
            self._is_no_row.append(self._is_header)
        return bool(again)

    def _is_header(self, line: str) -> bool:
        if self._header[0] not in line:
            return False
        [row] = csv.reader([line], delimiter=self.sep) or [[]]
        return [cell.strip() for cell in row] == self._header

    def _other_header(self, lines: Sequence[int], names: Sequence[str]) -> FileError:
        """Tables of other columns, or another order of them, one after the other."""
        shown = listed(list(map(str, lines)), _MOST_LINES)
        return FileError(
            f"{self.path}: line {shown} {'begin tables' if lines[1:] else 'begins a table'} with "
            f"the columns {listed(names)}, below one with {listed(self._header)}. Write each table "
            "into a file of its own, and pass all of them."
        )

    def read(self, places=None, n_rows=None):
        """Parts of columns as texts, or of all as numbers where all cells are."""
        with self._stream() as stream:
            rows = _rows(stream, self.sep, self._quote)
            for _ in range(self.head.n_rows):
                next(rows)
            yield from self.pandas.read_csv(
                stream,
                sep=r"\s+" if self.sep == " " else self.sep,
                header=None,
                names=range(len(self.head.names)),
                usecols=places,
                nrows=self._n_samples if n_rows is None else n_rows,
                dtype=None if places is None else object,
                na_filter=False,
                decimal=self.dialect.decimal,
                quotechar=self._quote,
                chunksize=_CHUNK,
                **({} if self.pandas.__version__ >= "3.1" else {"float_precision": "round_trip"}),
            )

    def _cells_of_weka(self) -> list[list[str]]:
        """Rows whose last fields are a list, and which may lack the sign of an error."""
        names, cells = self.head.names, []
        sign = names.index("error") if self.sep == " " and "error" in names else None
        with self._rows() as rows:
            for line, row in islice(rows, 1, None):
                if sign is not None and row[sign : sign + 1] != ["+"]:
                    row.insert(sign, "")
                if names[-1] == "distribution":
                    n = len(names) - 1
                    row = [*row[:n], f"[{','.join(row[n:]).replace('*', '')}]"]
                if len(row) != len(names):
                    raise _wrong_width(self.path, line, row, len(names), self.sep)
                cells.append(row)
        return cells

    def _refuse_widths(self, error=None) -> None:
        """Name the first row that has more or fewer fields than the header, or does not end."""
        width = len(self.head.names)
        with self._rows() as rows:
            for line, row in islice(rows, self.head.n_rows, None):
                if len(row) == width and error is None:
                    continue
                spans = [len(field.rstrip("\r\n").splitlines()) - 1 for field in row]
                if any(span > 0 for span in spans):
                    raise FileError(
                        f"{self.path}: the quotation mark that opens in line "
                        f"{line - sum(span for span in spans if span > 0)} closes in line {line} "
                        "or never. Close it, or delete it."
                    )
                if len(row) != width:
                    cells = [cell.strip() for cell in row]
                    names = len(cells) > 1 and not any(map(is_likely_number, cells))
                    if names and not {*cells}.isdisjoint(self._header) and all(cells):
                        raise self._other_header([line], cells)
                    raise _wrong_width(self.path, line, row, width, self.sep)


def _wrong_width(path, line: int, row, width: int, sep: str) -> FileError:
    """A row that has more or fewer fields than the header."""
    remedy = "Give each column one, or delete the line if it is no sample."
    if row[0].startswith("#"):
        remedy = "Delete lines of comments."
    elif sep == "," and len(row) > width:
        remedy = (
            "If commas stand before decimals, quote the numbers and pass --decimal ','. If a "
            "list of probabilities stands between commas, name a column for each in the header."
        )
    return FileError(f"{path}: line {line} has {len(row)} fields, the header {width}. {remedy}")


def blocks_of_text(stream, n_lines: int | None = None) -> Iterator[tuple[str, int]]:
    """Parts of a text that end with a row, or the first rows of each, and how many lines it has.

    A line in quotation marks does not end a row.
    """
    while text := stream.read(_BLOCK):
        parts = [text, stream.readline()]
        is_open = sum(part.count('"') for part in parts) % 2
        while is_open and len(parts) < _CHUNK and (line := stream.readline()):
            parts.append(line)
            is_open ^= line.count('"') % 2
        text = "".join(parts)
        size = text.count("\n")
        yield text if n_lines is None else _first_rows(text, n_lines), size


def _first_rows(text: str, n_lines: int) -> str:
    """The first lines of a text, and the rest of a field that spans lines."""
    end, is_open = 0, 0
    for k in range(n_lines + _CHUNK):
        start, end = end, text.find("\n", end) + 1
        is_open ^= text.count('"', start, end) % 2
        if not end or (k + 1 >= n_lines and not is_open):
            break
    return text[: end or None]


def _narrowed(chunk):
    """A part of a long table, with small integers in less memory."""
    for name in chunk.columns[chunk.dtypes == np.int64] if len(chunk) == _CHUNK else ():
        if chunk[name].min() >= -128 and chunk[name].max() <= 127:
            chunk[name] = chunk[name].astype(np.int8)
    return chunk


def _lines_of_preamble(stream) -> int:
    """The number of lines that Weka writes before the header."""
    n_lines, is_weka = 0, False
    while line := stream.readline():
        if line.strip() and not line.startswith("=== "):
            break
        is_weka |= line.startswith("=== ")
        n_lines += 1
    return n_lines if is_weka else 0


class _Kept(io.TextIOBase):
    """Lines of a stream, empty ones in place of those, but the first, that are no rows.

    Parameters
    ----------
    stream : text stream
    is_no_row : sequence of callable
        Each says of a line whether it is none.
    """

    def __init__(self, stream, is_no_row: Sequence[Callable]):
        self._stream, self._is_no_row, self._is_first = stream, is_no_row, True

    def readline(self, size=-1):
        """Return the next line."""
        line = self._stream.readline()
        keeps, self._is_first = self._is_first, False
        return "\n" if not keeps and line and any(one(line) for one in self._is_no_row) else line

    def read(self, size=-1):
        """Return about so many characters, whole lines."""
        parts, n_read = list[str](), 0
        while (size < 0 or n_read < size) and (line := self.readline()):
            parts.append(line)
            n_read += len(line)
        return "".join(parts)


def _rows(stream, sep: str, quote: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of fields, the first one even if it is empty, with the lines in which they end."""
    lines = iter(stream.readline, "")
    if sep == " ":
        lines = (f"{' '.join(line.split())}\n" for line in lines)
    csv.field_size_limit(2**31 - 1)  # a cell may hold many probabilities; files have limits
    rows = csv.reader(lines, delimiter=sep, quotechar=quote)
    for k, row in enumerate(rows):
        if k == 0 or len(row) > 1 or (row and row[0].strip()):
            yield rows.line_num, row
