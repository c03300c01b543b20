"""The cells of a table as people write them: numbers, missing values and vectors."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from skcal.cli.names import looks_like
from skcal.cli.problems import PERCENT, FileError

LEAVE_OUT = "Pass --drop-missing to leave out such samples."
_MISSING = frozenset(
    ["", "na", "n/a", "#n/a", "#nv", "#n/d", "nan", "null", "none", "\\n", ".", "-", "?"]
)
_FEW_BOUNDS = 6  # different ones that a command names
_FEW_WORDS = 3  # among numbers, which may mark missing values
_LONGEST = 40  # characters of a cell that a message shows
_SPARSE = re.compile(r"\((\d+),\s*\[([^\]]*)\],\s*\[([^\]]*)\]\)")  # of Spark: size, places, values
_CALL = re.compile(r"[A-Za-z_.]+\((.*?)(,\s*(dtype|device|grad_fn|requires_grad)=.*)?\)", re.DOTALL)
_SCALAR = re.compile(r"(?:np|numpy)\.\w+\(([^()]*)\)")  # as numpy 2 writes numbers in lists
_LONGEST_VECTOR = 2**20  # characters
_BOUND = re.compile(
    r"\s*([<>]=?|[\u2264\u2265~\u2248]|(about|above|approx\.?|at least|at most|below|ca\.?|"
    r"less than|more than|over|under)(?=[ \d]))\s*",
    re.IGNORECASE,
)
_APPROXIMATE = re.compile(r"\s*([~\u2248]|about|approx|ca)", re.IGNORECASE)
_SIGNS = ",.'\u2019 \u00a0\u202f"  # between thousands
_LIKELY = re.compile(
    rf"[+-]?(\d{{1,3}}([{_SIGNS}]\d{{2,3}})*[{_SIGNS}]\d{{3}}|\d*)([.,]\d*)?(e[+-]?\d+)?",
    re.IGNORECASE,
)


class Dialect(NamedTuple):
    """How the fields and numbers of a text file are written.

    Attributes
    ----------
    sep : str or None
        The character that separates fields; None is a comma, or of ``.tsv`` a tabulator.
    decimal : {".", ","}
    encoding : str
    percent : bool
        Whether a number may end in a percent sign.
    missing : bool
        Whether an empty field, or a word for a missing value, is NaN in place of an error.
    header : bool
        Whether the first row names the columns.
    codes : sequence of str
        Further words or numbers for missing values.
    bounds : bool
        Whether ``<1``, ``>99`` and ``~5`` are the number in them.
    sheet : str or None
        The sheet of an Excel file.
    """

    sep: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    percent: bool = False
    missing: bool = False
    header: bool = True
    codes: Sequence[str] = ()
    bounds: bool = False
    sheet: str | None = None

    def marks_missing(self, text: str) -> bool:
        """Whether a field is read as a missing number."""
        return self.missing and (is_missing(text) or text.strip() in self.codes)

    def parse(self, text: str) -> float:
        """Return the number that a field holds, or raise ValueError."""
        if self.marks_missing(text):
            return math.nan
        text = bare(text)
        if self.bounds:
            text = _without_bound(text)
        if self.percent:
            text = text.strip().removesuffix("%")
        if self.decimal == ",":
            if "." in text:
                raise ValueError("a decimal point")
            text = text.replace(",", ".")
        return float(text)

    def without_codes(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers with NaN in place of those that stand for missing values."""
        plain = self._replace(missing=False)
        codes = [plain.parse(code) for code in self.codes if plain.is_number(code)]
        return np.where(np.isin(numbers, codes), np.nan, numbers) if codes else numbers

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


def bare(text: str) -> str:
    """The number of ``[0.3]`` or ``tensor(0.3, device='cuda:0')``; other texts as they are."""
    if not text.rstrip().endswith((")", "]")):
        return text
    text = _SCALAR.sub(r"\1", text.strip())
    while call := _CALL.fullmatch(text) or re.fullmatch(r"\[(.*)\]", text):
        text = call[1].strip()
    return text


def quoted(text: str) -> str:
    """A text in single quotes, as a shell takes it, with its backslashes."""
    return f"'{text}'"


def is_missing(text: str) -> bool:
    """Whether a field is empty or holds a word for a missing value."""
    return text.strip().lower() in _MISSING


def whole(text: str) -> str:
    """Return ``2`` for ``2.0`` and ``+2``, and any other text as it is."""
    head, _, decimals = text.partition("," if re.fullmatch(r"[+-]?\d+,00?", text) else ".")
    is_whole = head.lstrip("+-").isdecimal() and not decimals.strip("0")
    return head.removeprefix("+") if is_whole else text


def is_whole(text: str) -> bool:
    """Whether a number has no decimals that are not 0."""
    return whole(text).lstrip("+-").isdecimal()


# Columns of numbers


def parse_column(texts: np.ndarray, dialect: Dialect, place: Any, name: str) -> np.ndarray:
    """The numbers of texts (n,), or FileError for the first that is none.

    ``place(row)`` is what messages call a row, with the file.
    """
    if dialect.decimal == "." and not dialect.percent:
        try:
            return texts.astype(np.float64)
        except (ValueError, TypeError):
            pass
    first: dict[str, int] = {}  # the row in which each text stands first
    codes = np.array([first.setdefault(text, row) for row, text in enumerate(texts.tolist())])
    numbers = np.full(len(texts), np.nan)
    for text, row in first.items():
        try:
            numbers[row] = dialect.parse(text)
        except ValueError:
            raise _no_number(list(first), text, dialect, place(row), name) from None
    if dialect.percent:
        _refuse_mixed(
            {t: row for t, row in first.items() if not dialect.marks_missing(t)}, place, name
        )
    return numbers[codes]


def _no_number(texts, text, dialect, place, name) -> FileError:
    """What is wrong with a text in a column of numbers."""
    place, text = f"{place}, column {name!r} is", text.strip()
    if is_missing(text):
        return FileError(
            f"{place}{f' {text!r}.' if text else ' empty.'} {LEAVE_OUT}", drop_missing=True
        )
    if "\n" in text:
        remedy = "Close its quotation mark."
        return FileError(f"{place} {text[:_LONGEST]!r} …, which spans lines. {remedy}")
    number, shown = text.removesuffix("%"), f"{place} {text[:_LONGEST]!r}"
    signs = {sign: [t for t in texts if sign in t] for sign in ",."}
    if number != text and not dialect.percent and is_likely_number(text):
        return FileError(f"{shown}, a percentage. Pass --percent.", scale=PERCENT)
    sign = "." if dialect.decimal == "," else ","
    if sign in number and is_likely_number(text):
        if _separate_thousands(signs[sign], sign):
            return FileError(
                f"{shown}. It may have separators of thousands, or {sign!r} before its decimals. "
                f"Write the numbers of this column without separators of thousands."
            )
        if sign == ",":
            remedy = "If that is a decimal comma, pass --decimal ','."
            return FileError(f"{shown}. {remedy}", decimal=",")
        if not signs[","]:
            remedy = "Leave that option out."
            what = ", with a point where --decimal says a comma."
            return FileError(f"{shown}{what} {remedy}", decimal=".")
    if (bounded := _without_bound(text)) != text and is_likely_number(bounded):
        raise _bound(texts, f"{shown}, which is no exact number.")
    words = [other for other in texts if not is_likely_number(other) and not is_missing(other)]
    if text in map(str.strip, words) and len(words) <= _FEW_WORDS < len(texts) - len(words):
        remedy = f"If {text!r} marks missing values, pass --missing {quoted(text)}."
        return FileError(f"{shown}, not a number. {remedy}", missing=[text])
    return FileError(f"{shown}, not a number. Give a number, or drop the row.")


def is_likely_number(text: str) -> bool:
    """Whether a text is a number for people, perhaps with a percent sign, commas or a bound."""
    if text.endswith((")", "]")) or Dialect().is_number(text):
        return Dialect().is_number(text)
    text = _without_bound(text.strip()).removesuffix("%").strip()
    return _LIKELY.fullmatch(text) is not None and any(map(str.isdigit, text))


def _without_bound(text: str) -> str:
    """The number of ``<1%`` or ``about 5``."""
    found = _BOUND.match(text)
    return text[found.end() :] if found else text


def _bound(texts: Sequence[str], shown: str) -> FileError:
    """Both readings of texts such as ``<1%``, unless all are about a number."""
    bounded = [text for text in texts if _without_bound(text) != text and is_likely_number(text)]
    first = bounded[0].strip()
    how = f"{shown} If {first!r} and the like stand for the number in them, pass --bounds."
    if all(map(_APPROXIMATE.match, bounded)):
        return FileError(how, bounds=True)
    if len(bounded) > _FEW_BOUNDS:
        return FileError(f"{how} If not, delete these rows.", choices=[{"bounds": True}])
    marks = [text.strip() for text in bounded]
    missing = " ".join(f"--missing {quoted(text)}" for text in marks)
    return FileError(
        f"{how} If they mark missing values, pass {missing}.",
        choices=[{"bounds": True}, {"missing": marks}],
    )


def _separate_thousands(texts: Sequence[str], sign: str) -> bool:
    """Whether a comma or point may stand between thousands in all of the texts that have it."""
    other = re.escape("." if sign == "," else ",")
    grouped = re.compile(rf"[+-]?[1-9]\d{{0,2}}(\{sign}\d{{3}})+({other}\d*)?%?")
    certain = re.compile(rf".*\{sign}.*({other}|\{sign}).*", re.DOTALL)
    texts = [text.strip() for text in texts]
    return any(map(certain.fullmatch, texts)) or all(map(grouped.fullmatch, texts))


def _refuse_mixed(first: dict[str, int], place, name: str) -> None:
    """Raise where some numbers of a column end in a percent sign, and others do not."""
    signed = [text.strip().endswith("%") for text in first]
    if len(set(signed)) > 1:
        text, row = list(first.items())[signed.index(not signed[0])]
        raise FileError(
            f"{place(row)}, column {name!r} is {text.strip()!r}, "
            f"{'without' if signed[0] else 'with'} a percent sign, unlike those above. Write all "
            "of them alike."
        )


# Vectors in a cell


def vector_of(cell: Any) -> dict[str, float] | None:
    """The entries of a vector in a cell, named by their classes or by numbers from 0.

    Read are lists as JSON, Python, numpy, PyTorch and Spark write them, dicts of class to number,
    lists of dicts that hold a name and a number, and lists of pairs of which the first part is the
    number; None of other cells.
    """
    cell = _plain(cell)
    if isinstance(cell, dict):
        values = cell.get("values")
        if isinstance(values, list | np.ndarray) and len(values):  # a vector of Spark
            return vector_of(values)
        named = list(cell.items())
    elif isinstance(cell, list | tuple) and cell:
        named = [_named(part, k) for k, part in enumerate(cell)]
    else:
        return None
    try:
        numbers = {_as_text(name): _first_number(part) for name, part in named}
    except (TypeError, ValueError):
        return None
    return numbers if 1 < len(numbers) == len(named) else None


def _plain(cell: Any) -> Any:
    """What a cell holds, out of arrays and of lists of one list."""
    if isinstance(cell, str):
        cell = _parsed(cell)
    cell = cell.tolist() if hasattr(cell, "tolist") else cell
    while isinstance(cell, list) and len(cell) == 1 and isinstance(cell[0], list | dict):
        cell = cell[0]
    return cell


def _as_text(name: Any) -> str:
    return str(name).lower() if isinstance(name, bool) else str(name)


def fields_in(cell: Any) -> dict | None:
    """The object that a text holds, alone or in a list, if it is no vector; else None."""
    start = cell.lstrip("[ ")[:1] if isinstance(cell, str) else ""
    fields = _plain(cell) if start == "{" else None
    return fields if isinstance(fields, dict) and vector_of(fields) is None else None


def names_in(cell: Any) -> list[str] | None:
    """The names in a cell that holds a list of different texts or integers; None of other cells."""
    cell = _plain(cell)
    if not isinstance(cell, list | tuple) or not all(isinstance(part, str | int) for part in cell):
        return None
    names = list(map(_as_text, cell))
    return names if 1 < len(names) == len(set(names)) else None


def _parsed(text: str) -> Any:
    """What a text says that looks like a list or a dict."""
    text = text.strip()
    if not text.endswith((")", "]", "}")) or len(text) > _LONGEST_VECTOR:
        return None
    if sparse := _SPARSE.fullmatch(text):
        size, places, values = (json.loads(f"[{part}]") for part in sparse.groups())
        filled = dict.fromkeys(range(min(size[0], 10**4)), 0.0)
        return list((filled | dict(zip(places, values, strict=False))).values())
    text = _SCALAR.sub(r"\1", text)
    if call := _CALL.fullmatch(text):
        text = call[1].strip()
    if text.startswith("[") and "," not in text:  # as numpy prints
        text = re.sub(r"(?<=[\d.])\s+(?=[\d.+-])", ", ", text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _named(part: Any, place: int) -> tuple[Any, Any]:
    """The name and number of an entry: of {"label": "cat", "score": .9} "cat" and .9."""
    if isinstance(part, dict):
        numbers = [key for key, value in part.items() if Dialect().is_number(str(value))]
        numbers = [key for key in numbers if looks_like("key of a number", str(key))] or numbers
        names = [key for key, value in part.items() if isinstance(value, str | int | float)]
        names = [key for key in names if key not in numbers]
        names = [key for key in names if looks_like("key of a class", str(key))] or names
        if len(numbers) == len(names) == 1:
            return part[names[0]], part[numbers[0]]
    return str(place), part


def _first_number(part: Any) -> float:
    """The number of an entry, or the first of a list, such as a log-likelihood and a flag."""
    while isinstance(part, list | tuple):
        if not part or any(
            isinstance(x, int | float) and not isinstance(x, bool) for x in part[1:]
        ):
            raise ValueError("an empty list, or several numbers")
        part = part[0]
    if part is None:
        return math.nan
    if isinstance(part, bool):
        raise TypeError("a truth value")
    return float(part)


def vectors_of(cells: Sequence, place: Any, name: str) -> tuple[list[str], np.ndarray]:
    """Names of entries and numbers (n, n_entries) of a column of vectors; NaN where one is absent.

    A cell that holds no vector has NaN alone.
    """
    rows = list[dict[str, float]]()
    for row, cell in enumerate(cells):
        entries = vector_of(cell)
        if entries is None and not (isinstance(cell, str | None) and is_missing(cell or "")):
            raise FileError(
                f"{place(row)}, column {name!r} is {str(cell)[:_LONGEST]!r}, not a list of "
                "numbers, as others are. Give a list of numbers, or drop the row."
            )
        rows.append(entries or {})
    order = sorted({*chain.from_iterable(rows)})  # not as in the first row
    if all(part.isdecimal() for part in order):
        order.sort(key=int)
    numbers = np.array([[entries.get(part, np.nan) for part in order] for entries in rows])
    return order, numbers.reshape(len(rows), len(order))
