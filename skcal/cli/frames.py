"""The named columns of a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from skcal._show import cut_apart, listed
from skcal.cli.cells import (
    Dialect,
    bare,
    is_likely_number,
    is_missing,
    parse_column,
    vector_of,
    whole,
)
from skcal.cli.problems import FileError, check_size

LONGEST_NAME = 80  # characters of a column's name in a message
_FIRST = 1000  # rows by which a column is known
FEW = 30  # different texts of a column that may hold labels
_OF_LIBRARY = re.compile(r"tensor\(|np\.|numpy\.")  # how one writes single numbers


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

    @classmethod
    def joined(cls, parts: Iterable[tuple[Sequence[str], Any]]) -> Texts:
        """Return the values and codes of parts of a column, which are held one at a time."""
        known: dict[str, int] = {}
        codes = []
        for values, places in parts:
            numbers = np.array([known.setdefault(v, len(known)) for v in values], np.int32)
            codes.append(numbers[np.asarray(places)])
        return cls(list(known), np.concatenate(codes))

    def stripped(self) -> Texts:
        """Return the texts without blanks around them."""
        return Texts([text.strip() for text in self.values], self.codes)

    def as_labels(self) -> Texts:
        """Return the texts without blanks; whole numbers without decimals, ``2`` for ``2.0``."""
        values = [
            bare(text) if _OF_LIBRARY.match(text) else text for text in self.stripped().values
        ]
        plain = [whole(text) for text in values]
        if all(is_missing(text) or text.lstrip("+-").isdecimal() for text in plain):
            values = plain
        return Texts(values, self.codes)

    def distinct(self) -> list[str]:
        """Return the different texts that are not missing."""
        return [text for text in dict.fromkeys(self.values) if not is_missing(text)]

    def array(self, path=None, max_bytes: float = np.inf) -> np.ndarray:
        """Return the text of each row, which takes the place of the longest."""
        check_size(path, 4 * len(self.codes) * max(map(len, self.values), default=0), max_bytes)
        return np.array(self.values, dtype=str)[np.asarray(self.codes, int)]


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

    Attributes
    ----------
    place : str
        What messages call the names of the columns.
    aside : set of str
        Columns that the header does not name, which hold no predictions.
    is_ordered : bool
        Whether the order of columns is more than that of the first object's fields.
    files : ndarray of str of shape (n_rows,) or None
        The file of each row of several files.
    start : int
        The number of rows before these in a file without lines.
    partitions : list of str
        Columns that names of folders hold, such as ``day=2026-01-01``.
    """

    def __init__(self, path, header, columns, line_of=None, records=(), notes=(), sep=None):
        self.path, self.header, self._columns = path, header, columns
        self._read: Callable | None = None
        self.records, self.notes, self.sep = records, list(notes), sep
        self.line_of = line_of
        self.place = "the table" if line_of is None else "line 1"
        self.aside: set[str] = set()
        self.is_ordered = True
        self.files: np.ndarray | None = None
        self.partitions: list[str] = []
        self.start = 0
        self._places: dict[str, int] = {}
        for k, name in enumerate(header):
            self._places.setdefault(name, k)
        self._kinds: dict[str, str] = {}
        self._codes: dict[str, np.ndarray] = {}
        self._labels: dict[str, Texts] = {}
        self._are_texts: list[bool] = []
        self._dtypes: list[Any] = []

    def reread(self, read: Callable) -> None:
        """Take texts from ``read(places, n_rows)``, which yields parts of columns of a text."""
        from pandas.api.types import is_string_dtype

        self._read = read
        self._are_texts = [is_string_dtype(self._columns[place]) for place in self._columns]

    def __len__(self):
        return len(self._columns)

    def copied(self) -> Frame:
        """Hold these rows only, not what they are a view of."""
        self._columns = self._columns.copy()
        return self

    def add_partition(self, name: str, value: str) -> None:
        """Add a column that holds one text in all rows."""
        self.partitions.append(name)
        self._places[name] = len(self.header)
        self.header = [*self.header, name]
        self._columns[name] = value
        self._are_texts.append(True)

    @property
    def columns(self):
        """All columns, those of a text file as texts."""
        return self._columns if self._read is None else _joined(self._read(range(len(self.header))))

    def words_for_row(self, row: int) -> str:
        """Return what messages call a row."""
        if self.line_of is None:
            return f"row {self.start + row}"
        return f"line {self.line_of(int(row))}"

    def place_of(self, row: int) -> str:
        """Return what messages call a row, with the file."""
        return f"{self.path}: {self.words_for_row(row)}"

    def series(self, name: str, most: int | None = None, as_read: bool = False):
        """A column as texts, or ``as_read``, numbers where all cells are, or its first rows."""
        place = self._places[name]
        if as_read or self._read is None or self._are_texts[place]:
            return self._columns.iloc[:most, place]
        return _joined(self._read([place], most)).iloc[:, 0]

    def is_numeric(self, name: str) -> bool:
        """Whether all cells are numbers."""
        if len(self._dtypes) < len(self.header):
            self._dtypes = self._columns.dtypes.tolist()  # which pandas makes of all at each call
        dtype = self._dtypes[self._places[name]]
        return getattr(dtype, "kind", "O") in ("biuf" if self._read is None else "iuf")

    def cells(self, name: str, most: int | None = None) -> np.ndarray:
        """The texts, or other values, of a column (n_rows,), or of the first rows."""
        series = self.series(name, most)
        return series.to_numpy(dtype=object, na_value="") if len(series) else np.empty(0, object)

    def numbers(self, name: str, dialect: Dialect, most: int | None = None) -> np.ndarray:
        """The numbers of a column, or of its first rows; FileError names a cell that is none."""
        if self.is_numeric(name):
            series = self.series(name, most, as_read=True)
            return dialect.without_codes(series.to_numpy(dtype=np.float64, na_value=np.nan))
        cells = self.cells(name, most)
        if not all(isinstance(cell, str) for cell in cells[:_FIRST]):
            if self.kind(name) == "other":
                raise FileError(
                    f"{self.path}: column {name!r} holds {self.series(name, most).dtype}, not "
                    "numbers. Name the column of probabilities by --score."
                )
            cells = np.array([str(cell) for cell in cells], dtype=object)
        return dialect.without_codes(parse_column(cells, dialect, self.place_of, name))

    def kind(self, name: str) -> str:
        """Return "number", "vector", "text", "empty" or "other", by the first rows of a column."""
        if name not in self._kinds:
            is_numeric = self.is_numeric(name)
            self._kinds[name] = "number" if is_numeric else _kind_of(self.cells(name, _FIRST))
        return self._kinds[name]

    def n_distinct(self, name: str) -> int:
        """The number of different cells among the first ones."""
        return self.series(name, _FIRST).nunique()

    def labels(self, name: str, most: int | None = None) -> Texts:
        """The labels of a column, or of its first rows, as they are read."""
        if most is not None:
            return self.texts(name, most).as_labels()
        if name not in self._labels:
            self._labels[name] = self.texts(name).as_labels()
        return self._labels[name]

    def few_labels(self, name: str, most: int | None = None) -> list[str]:
        """The different labels of a column, or of its first rows; none if they are many."""
        are_many = self.kind(name) not in ("number", "text") or self.n_distinct(name) > FEW
        return [] if are_many else self.labels(name, most).distinct()

    def codes(self, name: str) -> np.ndarray:
        """Which of the different cells of a column each row holds; -1 where one is missing."""
        if name not in self._codes:
            codes = self.series(name, as_read=True).factorize()[0]
            self._codes[name] = codes.astype(np.int32)
        return self._codes[name]

    def texts(self, name: str, most: int | None = None) -> Texts:
        """The texts of a column, or of its first rows; "" where one is missing."""
        place = self._places[name]
        if self._read is not None and not self._are_texts[place]:
            parts = (part.iloc[:, 0] for part in self._read([place], most))
            return Texts.joined(part.factorize()[::-1] for part in parts)
        codes, values = self.series(name, most).factorize(use_na_sentinel=False)
        texts = []
        for value in values.tolist():
            absent = value is None or value != value or type(value).__name__ == "NAType"
            is_whole = isinstance(value, float) and value.is_integer()
            texts.append("" if absent else str(int(value) if is_whole else value))
        return Texts(texts, codes)


class RowsOf(Frame):
    """Columns of which each row is one of another frame, or is made of several, from that one on.

    Parameters
    ----------
    whole : Frame
    header : list of str
    columns : pandas.DataFrame or None
    rows : ndarray of int of shape (n_rows,)
        The row in ``whole`` that messages name.
    notes : list of str
    """

    def __init__(self, whole: Frame, header, columns, rows: np.ndarray, notes):
        super().__init__(whole.path, header, columns, whole.line_of, notes=notes, sep=whole.sep)
        self._whole, self._rows = whole, rows
        self.place, self.aside, self.is_ordered = whole.place, whole.aside, whole.is_ordered
        self.files = None if whole.files is None else whole.files[rows]
        self.partitions = [name for name in whole.partitions if name in header]

    def words_for_row(self, row: int) -> str:
        """Return what messages call a row."""
        return self._whole.words_for_row(int(self._rows[row]))

    def place_of(self, row: int) -> str:
        """Return what messages call a row, with the file."""
        return self._whole.place_of(int(self._rows[row]))


class SomeRows(RowsOf):
    """Some rows of a frame.

    Parameters
    ----------
    whole : Frame
    rows : ndarray of int of shape (n_rows,)
    notes : list of str
    """

    def __init__(self, whole: Frame, rows: np.ndarray, notes):
        super().__init__(whole, whole.header, None, rows, notes)

    def __len__(self):
        return len(self._rows)

    def series(self, name: str, most: int | None = None, as_read: bool = False):
        """A column, or its first rows."""
        return self._whole.series(name, as_read=as_read).iloc[self._rows[:most]]

    def is_numeric(self, name: str) -> bool:
        """Whether all cells are numbers."""
        return self._whole.is_numeric(name)


def _joined(parts):
    import pandas

    return pandas.concat(parts)


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
