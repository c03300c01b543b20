"""A file becomes named columns, read by pandas within the size that is allowed."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skcal._show import cut_apart, listed
from skcal.cli.cells import Dialect, is_likely_number, is_missing, parse_column, vector_of
from skcal.cli.problems import STANDARD_INPUT, FileError, at_most_bytes, check_size, open_bytes

_PACKED: dict[str, Callable] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_KINDS = {
    **dict.fromkeys([".csv", ".tsv", ".txt", ".tab", ".dat"], "csv"),
    **dict.fromkeys([".jsonl", ".ndjson"], "jsonl"),
    **dict.fromkeys([".xlsx", ".xlsm"], "excel"),
    **dict.fromkeys([".parquet", ".pq"], "parquet"),
    ".json": "json",
    ".npz": "npz",
}
_GZIP = b"\x1f\x8b"  # what compressed content begins with
_LONGEST_LINE = 2**24  # bytes
LONGEST_NAME = 80  # characters of a column's name in a message
_FIRST = 1000  # rows by which a column is known, and lines of JSON that name the columns
_CHUNK = 2**16  # rows of a text that are read at a time
_BATCH_BYTES = 2**29  # of texts that are expanded at a time
_TYPES = frozenset(["continuous", "discrete", "string", "time"])  # of columns in files of Orange
_LAST_IN_WEKA = "distribution"  # a column whose numbers stand between commas
_WITHOUT_NAME = ("id", "inst#", "row", "index", "no", "nr", "doc_id", "#")


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


class Frame:
    """The named columns of a file.

    Parameters
    ----------
    path : Path
    header : list of str
        The names of all columns.
    columns : pandas.DataFrame
        In the order of the header; texts or numbers, or of Parquet values of any type.
    line_of : callable, default=None
        ``line_of(row)`` is the line of a row in a text file.
    records : list of str, default=()
        The lines of objects of JSON.
    notes : sequence of str, default=()
        What was decided while the file was read.
    read : callable, default=None
        ``read(places, n_rows)`` yields parts of columns of a text file again, as texts.

    Attributes
    ----------
    place : str
        What messages call the names of the columns.
    row_names : str or None
        The column that the header does not name.
    files : ndarray of str of shape (n_rows,) or None
        The file of each row of a folder.
    """

    def __init__(
        self, path, header, columns, line_of=None, records=(), notes=(), sep=None, read=None
    ):
        self.path, self.header, self._columns, self._read = path, header, columns, read
        self.records, self.notes, self.sep = records, list(notes), sep
        self._line_of = line_of
        self.place = "the table" if line_of is None else "line 1"
        self.row_names: str | None = None
        self.files: np.ndarray | None = None
        self._places: dict[str, int] = {}
        for k, name in enumerate(header):
            self._places.setdefault(name, k)
        self._kinds: dict[str, str] = {}
        if read is not None:
            from pandas.api.types import is_string_dtype

            self._are_texts = [is_string_dtype(columns[place]) for place in columns]

    def __len__(self):
        return len(self._columns)

    @property
    def columns(self):
        """All columns, those of a text file as texts."""
        return self._columns if self._read is None else _joined(self._read(range(len(self.header))))

    def words_for_row(self, row: int) -> str:
        """Return what messages call a row."""
        return f"row {row}" if self._line_of is None else f"line {self._line_of(int(row))}"

    def place_of(self, row: int) -> str:
        """Return what messages call a row, with the file."""
        return f"{self.path}: {self.words_for_row(row)}"

    def series(self, name: str, most: int | None = None):
        """A column, or its first rows."""
        place = self._places[name]
        if self._read is None or self._are_texts[place]:
            return self._columns.iloc[:most, place]
        return _joined(self._read([place], most)).iloc[:, 0]

    def is_numeric(self, name: str) -> bool:
        """Whether all cells are numbers."""
        dtype = self._columns.dtypes.iloc[self._places[name]]
        return getattr(dtype, "kind", "O") in ("biuf" if self._read is None else "iuf")

    def cells(self, name: str, most: int | None = None) -> np.ndarray:
        """The texts, or other values, of a column (n_rows,), or of the first rows."""
        series = self.series(name, most)
        return series.to_numpy(dtype=object, na_value="") if len(series) else np.empty(0, object)

    def numbers(self, name: str, dialect: Dialect, most: int | None = None) -> np.ndarray:
        """The numbers of a column, or of its first rows; FileError names a cell that is none."""
        if self.is_numeric(name):
            series = self._columns.iloc[:most, self._places[name]]
            return series.to_numpy(dtype=np.float64, na_value=np.nan)
        cells = self.cells(name, most)
        if not all(isinstance(cell, str) for cell in cells[:_FIRST]):
            if self.kind(name) == "other":
                raise FileError(
                    f"{self.path}: column {name!r} holds {self.series(name, most).dtype}, not "
                    "numbers. Name the column of probabilities by --score."
                )
            cells = np.array([str(cell) for cell in cells], dtype=object)
        return parse_column(cells, dialect, self.place_of, name)

    def kind(self, name: str) -> str:
        """Return "number", "vector", "text", "empty" or "other", by the first rows of a column."""
        if name not in self._kinds:
            is_numeric = self.is_numeric(name)
            self._kinds[name] = "number" if is_numeric else _kind_of(self.cells(name, _FIRST))
        return self._kinds[name]

    def n_distinct(self, name: str) -> int:
        """The number of different cells among the first ones."""
        return self.series(name, _FIRST).nunique()

    def texts(self, name: str, most: int | None = None) -> Texts:
        """The texts of a column, or of its first rows; "" where one is missing."""
        place = self._places[name]
        if self._read is not None and not self._are_texts[place]:
            return _texts_of(part.iloc[:, 0] for part in self._read([place], most))
        codes, values = self.series(name, most).factorize(use_na_sentinel=False)
        texts = []
        for value in values.tolist():
            absent = value is None or value != value or type(value).__name__ == "NAType"
            is_whole = isinstance(value, float) and value.is_integer()
            texts.append("" if absent else str(int(value) if is_whole else value))
        return Texts(texts, codes)


def _joined(parts):
    import pandas

    return pandas.concat(parts)


def _texts_of(parts) -> Texts:
    """The texts of parts of a column, which are held one at a time."""
    known: dict[str, int] = {}
    codes = []
    for part in parts:
        places, values = part.factorize()
        numbers = np.array([known.setdefault(v, len(known)) for v in values], np.int32)
        codes.append(numbers[places])
    return Texts(list(known), np.concatenate(codes))


def _kind_of(cells) -> str:
    """What the first cells of a column are that are not missing."""
    known = [cell for cell in cells if not (isinstance(cell, str) and is_missing(cell))]
    if not known:
        return "empty"
    numbers = sum(
        isinstance(cell, int | float | np.number) or is_likely_number(str(cell))
        for cell in known[:50]
        if not isinstance(cell, bool)
    )
    if 2 * numbers >= len(known[:50]):
        return "number"
    if 2 * sum(vector_of(cell) is not None for cell in known[:20]) > len(known[:20]):
        return "vector"
    return "text" if all(isinstance(cell, str | bool) for cell in known[:50]) else "other"


def all_names(names: Sequence[str]) -> str:
    """Return all names of columns for a message."""
    return listed(cut_apart(names, LONGEST_NAME), len(names))


def kind_of(path) -> str:
    """Return "csv", "jsonl", "json", "excel", "parquet", "npz" or "folder", or raise FileError."""
    if str(path) == STANDARD_INPUT:
        return "csv"
    names = [Path(path).name.lower()]
    if Path(path).is_dir():
        return "folder" if not names[0].endswith(".npz") else "npz"
    if names[0].endswith(".zip"):
        names = [names[0].removesuffix(".zip"), *_members(path)]
    for name in names:
        for ending in _PACKED:
            name = name.removesuffix(ending)
        kind = _KINDS.get(Path(name).suffix)
        if kind is not None:
            return kind
    if Path(path).is_file():  # as services name parts of their predictions
        with open(path, "rb") as file:
            if file.read(1) == b"{":
                return "jsonl"
    raise FileError(
        f"{path}: unknown kind of file. Pass a .csv, .tsv, .txt, .jsonl, .json, .parquet, .xlsx or "
        ".npz file; text may be packed as .gz, .bz2, .xz or .zip. Save other kinds as .csv."
    )


def _members(path) -> list[str]:
    """The names of the files in an archive, if it is one."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    except (OSError, zipfile.BadZipFile):
        return []
    return [name for name in names if not name.startswith("__MACOSX")]


def read_frame(path: Path, max_bytes: float, dialect: Dialect, known: dict | None = None) -> Frame:
    """Read the columns of a file that is no ``.npz`` archive.

    Parameters
    ----------
    path : Path
        ``-`` is the standard input, read as ``.csv`` or, if it begins with a brace, as ``.jsonl``;
        of a folder all files of tables, in the order of their names.
    max_bytes : float
        Content that takes more is refused, before it is held where the file tells its size.
    dialect : Dialect
    known : dict, default=None
        Frames that were read before, to which this one is added.
    """
    key = str(path), dialect.sep, dialect.encoding, dialect.decimal
    if known is not None and key in known:
        return known[key]
    pandas = _pandas(path)
    kind = kind_of(path)
    if kind == "folder":
        frame = _read_folder(pandas, path, max_bytes, dialect)
    elif kind == "parquet":
        frame = _read_parquet(path, max_bytes)
    elif kind == "csv" and Path(path).is_file():  # which can be opened again
        frame = _read_text(pandas, path, partial(_opened, path, max_bytes), dialect)
    else:
        with ExitStack() as stack:
            file = _opened(path, max_bytes, stack)
            content = _first_line(path, file) + file.read()
        if str(path) == STANDARD_INPUT and content.lstrip()[:1] in (b"{", b"["):
            kind = "jsonl" if content.lstrip()[:1] == b"{" else "json"
        if kind == "csv":
            frame = _read_text(pandas, path, lambda stack: io.BytesIO(content), dialect)
        else:
            frame = _READERS[kind](pandas, path, content, dialect, max_bytes)
    if known is not None:
        known[key] = frame
    return frame


def _pandas(path):
    try:
        import pandas
    except ImportError as error:
        raise FileError(f"{path}: reading it needs pandas: pip install pandas.") from error
    return pandas


def _opened(path, max_bytes: float, stack: ExitStack):
    """The bytes of a file, expanded if it is packed, and refused where they are too many."""
    name = str(path).lower()
    if name.endswith(".zip"):
        return _opened_zip(path, max_bytes, stack)
    file = at_most_bytes(open_bytes(path, stack), path, max_bytes)
    unpack = next((how for end, how in _PACKED.items() if name.endswith(end)), None)
    if unpack is None and file.peek(2)[:2] == _GZIP:
        unpack = gzip.open
    if unpack is not None:
        file = at_most_bytes(stack.enter_context(unpack(file)), path, max_bytes)
    return file


def _first_line(path, file) -> bytes:
    line = file.readline(_LONGEST_LINE + 1)
    if len(line) > _LONGEST_LINE and b"\r" not in line:
        raise FileError(
            f"{path}: line 1 has more than {_LONGEST_LINE:,} characters. Save it as a table, one "
            "line a sample."
        )
    return line


def _opened_zip(path, max_bytes, stack):
    try:
        archive, names = stack.enter_context(zipfile.ZipFile(path)), _members(path)
        if len(names) != 1:
            raise FileError(
                f"{path}: holds {len(names)} files ({listed(names)}). Pack one file, or unpack "
                "them and pass the folder."
            )
        check_size(path, archive.getinfo(names[0]).file_size, max_bytes)
        content = at_most_bytes(archive.open(names[0]), path, max_bytes).read()
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise FileError(f"{path}: a damaged .zip file ({error}). Pack it again.") from error
    return io.BytesIO(content)


# Separated text


def _read_text(pandas, path, opened: Callable, dialect: Dialect) -> Frame:
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
        _first_line(path, opened(stack))
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
        _refuse_title(path, header, first)
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


def _refuse_title(path, header: list[str], first: list[str]) -> None:
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


# Objects of JSON


def _read_lines_of_json(pandas, path, content: bytes, dialect: Dialect, max_bytes) -> Frame:
    text = str(content, "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding)
    lines = [(k, line) for k, line in enumerate(io.StringIO(text), 1) if line.strip()]
    records = [_fields_of_record(path, number, line) for number, line in lines]
    numbers = [number for number, _ in lines]
    frame = _frame_of_records(pandas, path, records, numbers.__getitem__)
    frame.records = [line for _, line in lines]
    return frame


def _frame_of_records(pandas, path, records, line_of=None) -> Frame:
    """The columns of objects: those that the first thousand name."""
    header = list(dict.fromkeys(name for record in records[:_FIRST] for name in record))
    cells = {k: [record.get(name, "") for record in records] for k, name in enumerate(header)}
    return Frame(path, header, pandas.DataFrame(cells, dtype=object), line_of)


def _read_json(pandas, path, content: bytes, dialect: Dialect, max_bytes) -> Frame:
    """Objects in a list, also below a name; or columns by name, as pandas writes them."""
    remedy = 'Give a list of objects, such as [{"confidence": 0.9, "correct": 1}].'
    try:
        whole = json.loads(str(content, "utf-8-sig"), **_AS_TEXT)
    except (ValueError, RecursionError) as error:
        if content.lstrip()[:1] == b"{" and b"\n" in content.strip():
            return _read_lines_of_json(pandas, path, content, dialect, max_bytes)
        raise FileError(f"{path}: is no JSON ({error}). {remedy}") from error
    if isinstance(whole, dict):
        lists = [v for v in whole.values() if isinstance(v, list) and v and isinstance(v[0], dict)]
        columns = [v.values() if isinstance(v, dict) else v for v in whole.values()]
        if "columns" in whole and isinstance(whole.get("data"), list):
            names = [str(name) for name in whole["columns"]]
            whole = [dict(zip(names, row, strict=False)) for row in whole["data"]]
        elif lists:
            whole = max(lists, key=len)
        elif (
            all(isinstance(v, list | dict) for v in whole.values())
            and len(set(map(len, columns))) == 1
        ):
            whole = [dict(zip(whole, row, strict=True)) for row in zip(*columns, strict=True)]
    if not (isinstance(whole, list) and whole and all(isinstance(row, dict) for row in whole)):
        raise FileError(f"{path}: holds no list of objects. {remedy}")
    return _frame_of_records(pandas, path, [dict(_flat(record)) for record in whole])


def _with_distinct_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a name stands twice")
    return record


_AS_TEXT: dict[str, Any] = {
    "object_pairs_hook": _with_distinct_names,
    **dict.fromkeys(["parse_float", "parse_int", "parse_constant"], str),
}


def _fields_of_record(path, number: int, line: str) -> dict[str, str]:
    """The fields of an object of JSON as text; those of an object within it as "name.part"."""
    try:
        record = json.loads(line, **_AS_TEXT)
        if not isinstance(record, dict):
            raise ValueError("not an object")
        return dict(_flat(record))
    except (ValueError, RecursionError) as error:
        raise FileError(
            f"{path}: line {number} is not an object of JSON ({error}). Give one a line, such as "
            '{"confidence": 0.9, "correct": 1}.'
        ) from error


def _flat(record: dict, start: str = "") -> Iterator[tuple[str, str]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{start}{name}.")
        elif isinstance(value, bool):
            yield f"{start}{name}", "true" if value else "false"
        elif isinstance(value, list):
            yield f"{start}{name}", json.dumps(value)
        else:
            yield f"{start}{name}", "" if value is None else str(value)


# Excel and Parquet


def _read_excel(pandas, path, content: bytes, dialect: Dialect, max_bytes) -> Frame:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_size(path, sum(entry.file_size for entry in archive.infolist()), max_bytes)
        sheets = pandas.read_excel(
            io.BytesIO(content), sheet_name=None, header=None, dtype=str, keep_default_na=False
        )
    except ImportError as error:
        raise FileError(f"{path}: reading it needs openpyxl: pip install openpyxl.") from error
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise FileError(f"{path}: a damaged file ({error}). Save it again, or as .csv.") from error
    filled = [name for name, sheet in sheets.items() if len(sheet)]
    if len(filled) != 1:
        raise FileError(
            f"{path}: has {len(filled)} sheets with cells ({listed(filled)}). Save one as .csv."
        )
    sheet = sheets[filled[0]].fillna("")
    header = [str(name).strip() for name in sheet.iloc[0]]
    columns = sheet.iloc[1:].reset_index(drop=True)
    if len(columns):
        _refuse_title(path, header, columns.iloc[0].tolist())
    return Frame(path, header, columns, lambda row: row + 2)


def _read_parquet(path, max_bytes) -> Frame:
    """The columns of a Parquet file."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise FileError(
            f"{path}: reading Parquet needs pandas and pyarrow: pip install pandas pyarrow."
        ) from error
    try:
        with parquet.ParquetFile(path) as file:
            table = _read_arrow(path, file, max_bytes)
        table.validate(full=True)  # texts are UTF-8
        columns = table.to_pandas()
    except ArrowException as error:
        if isinstance(error, ValueError | LookupError | TypeError | MemoryError | OSError):
            raise  # those that every reader may raise
        raise FileError(f"{path}: a damaged file ({error!r}). Save it again.") from error
    return Frame(path, [str(name).strip() for name in columns.columns], columns)


def _read_arrow(path, file, max_bytes):
    """The table, as long as what it expands to stays within bounds.

    Repeated values take hardly any bytes in a file. Numbers, also those of lists, are counted
    before they are read. Texts are expanded some rows at a time, since no text is longer than all
    columns of texts are in the file, uncompressed.
    """
    from pyarrow import Table

    metadata, schema = file.metadata, file.schema_arrow
    widths = [max(8, column.length) for column in file.schema]  # the length of fixed texts
    row_groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    chunks = [group.column(k) for group in row_groups for k in range(group.num_columns)]
    counted = [chunk.num_values * widths[k % len(widths)] for k, chunk in enumerate(chunks)]
    check_size(path, sum(counted), max_bytes)
    texts = [chunk for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"]
    longest = sum(chunk.total_uncompressed_size for chunk in texts)
    check_size(path, longest, max_bytes)
    size, batches = 0, []
    for batch in file.iter_batches(min(2**16, max(16, _BATCH_BYTES // max(1, longest)))):
        size += batch.nbytes
        check_size(path, size, max_bytes)
        batches.append(batch)
    return Table.from_batches(batches, schema=schema)


def _read_folder(pandas, path, max_bytes, dialect) -> Frame:
    """The rows of all tables of a folder, whose columns have the same names."""
    files = sorted(
        part
        for part in Path(path).rglob("*")
        if part.is_file() and not part.name.startswith((".", "_")) and _is_table(part)
    )
    if not files:
        raise FileError(f"{path}: is a folder without tables. Pass the path of a file.")
    frames = [read_frame(part, max_bytes, dialect) for part in files]
    header = frames[0].header
    if all(map(Dialect().is_number, header)):
        raise FileError(
            f"{path}: {frames[0].path.name} has no header, but numbers in line 1. Save the files "
            "with names of the columns, in Spark by header=True."
        )
    for frame in frames:
        if sorted(frame.header) != sorted(header):
            other = sorted(set(frame.header) ^ set(header))
            raise FileError(
                f"{path}: {frame.path.name} and {frames[0].path.name} have different columns; not "
                f"in both: {listed(other)}. Pass files of the same columns."
            )
    places = [[frame.header.index(name) for name in header] for frame in frames]
    parts = [
        frame.columns.iloc[:, order].set_axis(range(len(header)), axis=1)
        for frame, order in zip(frames, places, strict=True)
    ]
    whole = pandas.concat(parts, ignore_index=True)
    names = [str(part.relative_to(path)) for part in files]
    note = f"The rows of {len(files)} files stand one after the other: {listed(names, 4)}."
    frame = Frame(path, header, whole, notes=[note])
    frame.files = np.repeat(names, [len(part) for part in frames])
    return frame


def _is_table(path) -> bool:
    try:
        return kind_of(path) not in ("npz", "folder")
    except FileError:
        return False


_READERS = {
    "jsonl": _read_lines_of_json,
    "json": _read_json,
    "excel": _read_excel,
}
