"""Which rows of a table name its columns, and which at its end are no samples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from skcal._show import cut_apart, listed
from skcal.cli.cells import is_likely_number, is_missing, is_whole
from skcal.cli.names import is_known

PROBED = 50  # rows by which the header is found
ROW_NAMES = "row names"
OF_LIBSVM = "predicted"  # which libsvm calls labels, before the classes of its probabilities
_MOST_LINES = 8  # that a message names
_AT_END = 10  # rows among which those of totals are looked for
_HIGHEST = 20  # rows above a header
_WORDS = re.compile(r"[^\W\d_]+\W*[ ]")  # of a remark, which has more than one
_BELOW = 5  # rows below a header that hold numbers
_TYPES = frozenset(["continuous", "discrete", "string", "time"])  # of columns in files of Orange
_SHORT_TYPES = frozenset("cdst")
_ROLES = frozenset(["", "class", "meta", "ignore", "weight", *"cmiw"])
_FLAGS = re.compile(r"^[cmiw]?[CDST]?#(?=.)")  # before the names of columns, of Orange
RULE = re.compile(r"[-+:=| ]*-{2}[-+:=| ]*")  # below the names, as databases print


class Head(NamedTuple):
    """The rows of a table that describe its columns.

    Attributes
    ----------
    above : int
        The number of rows above them.
    n_rows : int
        0 where no row names the columns.
    names : list of str
    aside : set of str
        Columns that the header does not name, and which are not read: those that number or name
        the rows, and all but the first one.
    """

    above: int
    n_rows: int
    names: list[str]
    aside: set[str]


def head_of(rows: Sequence[Sequence[str]], sep: str = "", has_header: bool = True) -> Head:
    """Find the names of columns in the first rows of a table, whose cells have no blanks around."""
    if not has_header:
        return Head(0, 0, [f"column{k}" for k in range(1, _width(rows) + 1)], set())
    above = _above(rows)
    header, first, second = [*rows[above : above + 3], *[[""]] * 3][:3]
    names = list(header)
    if _are_names(rows, above, _width(rows)):
        names = [names[0].removeprefix("#").strip(), *names[1:]]
    if not names[0] and sep == " " and _extent(first) == len(names) - 1:  # of "# p label"
        names = names[1:]
    n_rows = 1
    if RULE.fullmatch("".join(first)):
        n_rows = 2
    elif len(first) == len(names) and (_are_types(first, second, sep) or _are_ids(second)):
        n_rows = 3
    at = names.index("labels") + 1 if "labels" in names[:-2] else 0
    if at and all(re.fullmatch(r"-?\d+", name) for name in names[at:]):
        names[at - 1] = OF_LIBSVM
    flagged = [_FLAGS.match(name) for name in names]
    if 2 * sum(map(bool, flagged)) > len(names):
        names = [_FLAGS.sub("", name) for name in names]
    nameless = {
        k: f"column {k + 1}"
        for k, name in enumerate(names)
        if not name and (k or not any(row[0] for row in rows[above + n_rows :] if row))
    }
    if len(nameless) < len(names):
        names = [nameless.get(k, name) for k, name in enumerate(names)]
    aside = set(nameless.values()) & {*names}
    first_cells = [row[0] for row in rows[above + n_rows :] if row]
    if names[0] == "" and 1 < len(first_cells) == len(set(first_cells)):  # of a data frame
        aside |= {""} - {"" for x in first_cells if is_likely_number(x) and not is_whole(x)}
    return Head(above, n_rows, names, aside)


def _above(rows) -> int:
    """The number of rows above the header: titles, comments, or names of groups of columns."""
    width = _width(rows)
    first = rows[0] if rows else [""]
    if first[0][:1] != "#" and _extent(first) >= width and all(first[1:width]):
        return 0
    likely = [k for k in range(min(_HIGHEST, len(rows))) if _are_names(rows, k, width)]
    named = [k for k in likely if k and sum(map(bool, rows[k])) > sum(map(bool, first))]
    plain = [k for k in named or likely if rows[k][0][:1] != "#"]
    return plain[0] if plain else max(likely, default=0)


def _are_names(rows, k: int, width: int) -> bool:
    """Whether a row holds different texts that are no numbers, and most rows below numbers."""
    known = [cell for cell in rows[k] if cell]
    if not (_extent(rows[k]) >= width and 1 < len(set(known)) == len(known)):
        return False
    if any(is_likely_number(cell) or is_missing(cell) for cell in known):
        return False
    below = [row for row in rows[k + 1 :] if any(row)][:_BELOW]
    held = [any(map(_holds_numbers, row)) for row in below]
    return bool(held) and held[0] and 2 * sum(held) >= len(held)


def _holds_numbers(cell: str) -> bool:
    return is_likely_number(cell) or cell[:1] in ("[", "{", "(")


def _width(rows) -> int:
    """The number of fields that most rows have, without empty ones at their end."""
    counts = Counter(map(_extent, rows))
    return max(counts, key=lambda n: (bool(n), counts[n], n), default=0)


def _extent(row: Sequence[str]) -> int:
    return max((k for k, cell in enumerate(row, 1) if cell), default=0)


def _are_types(first: Sequence[str], second: Sequence[str], sep: str) -> bool:
    """Whether rows hold the types and the roles of columns, as Orange writes below the names."""
    types = _TYPES | (_SHORT_TYPES if sep == "\t" else frozenset())
    return len(second) > 1 and not types.isdisjoint(first) and _ROLES >= {*second} != {""}


def _are_ids(second: Sequence[str]) -> bool:
    """Whether cells are ids of questions, as Qualtrics writes below their texts."""
    return all(cell.startswith('{"ImportId":') for cell in second if cell) and any(second)


def samples_of(columns) -> tuple[int, list[tuple[int, str, str]]]:
    """The number of the first rows of a data frame that are samples; rows, texts, what they are.

    The last rows are no samples if they are empty, if they hold words in one of several cells and
    nothing else, or if a cell says Total, Mean and the like, which no other row of its column says.
    """
    others, n, n_plain = list[tuple[int, str, str]](), len(columns), len(columns)
    for row in columns.iloc[-_AT_END:].astype(str).to_numpy()[::-1].tolist():
        cells = [cell.strip() for cell in row]
        told = [cell for cell in cells if cell]
        known = [
            k
            for k, cell in enumerate(cells)
            if is_known("total", cell) or is_known("beside total", cell)
        ]
        is_total = bool(known) and _stands_once(columns.iloc[:, known[0]], cells[known[0]])
        is_remark = len(told) == 1 < len(cells) - 1 and _WORDS.search(told[0])
        if told and not (is_total or is_remark):
            break
        n -= 1
        if is_total:
            others.append((n, cells[known[0]], "holds totals"))
        elif is_remark:
            others.append((n, told[0], "is a remark"))
        if not any(what == "holds totals" for *_, what in others):
            n_plain = n
    if not any(is_known("total", text) for _, text, _ in others):  # but words such as min alone
        n = n_plain
    return n, [other for other in others[::-1] if other[0] >= n]


def note_of_header(lines: Sequence[int]) -> str:
    """A sentence on lines that name the columns again."""
    shown = listed(list(map(str, lines)), _MOST_LINES)
    if len(lines) == 1:
        return f"Line {shown} repeats the header and is not read."
    return f"Lines {shown} repeat the header and are not read."


def notes_of(aside: set[str], line: int | None = None) -> list[str]:
    """Sentences on columns that are not read, and on a header that is not line 1 but another."""
    notes = [f"The header is line {line}; the lines above it are not read."] * (line is not None)
    if aside & {"", ROW_NAMES}:
        notes.append("The first field of each row, which the header does not name, is not read.")
    return notes


def note_of_totals(others, line_of) -> list[str]:
    """Sentences on rows that are not read, whose lines ``line_of(row)`` gives."""
    return [
        f"Line {line_of(row)}, {cut_apart([text])[0]!r}, {what} and is not read."
        for row, text, what in others
    ]


def _stands_once(column, text: str) -> bool:
    return (column.astype(str).str.strip() == text).sum() == 1
