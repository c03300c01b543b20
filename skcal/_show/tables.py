"""Tables and results as text, HTML, CSV, LaTeX and data frames."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skcal._show.text import (
    import_pandas,
    plain,
    printable,
    rounded,
    stated,
    tex,
    worded,
    wrapped,
)

_NOT_HTML = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_UNIT = re.compile(r"(?<=\d) (?=%)|(?<=[≤≥]) (?=\d)")
_PAGE_ROWS = 60  # of a table in a notebook
_LONG = 40  # rows; longer tables of a report scroll on screens, and say so
_FORMULAS = ("=", "+", "-", "@")  # what a spreadsheet would evaluate


def style_sheet(path: Path) -> dict[str, str]:
    """The sections of a style sheet; a comment in front of each is its name."""
    text = path.read_text(encoding="utf-8")
    return dict(re.findall(r"^/\* (\w+) \*/\n(.*?)(?=^/\* \w+ \*/\n|\Z)", text, re.S | re.M))


_PATH = Path(__file__).parent.with_suffix(".css")
_CSS = style_sheet(_PATH)


def style(name: str, path: Path, of_page: bool = False) -> str:
    """A style element of the rules of a kind of output in a file; & stands for its elements.

    Hosts have sizes of their own: of a page of ours alone the reader's size of text is the unit.
    """
    themes = {theme: _CSS[theme].rstrip() for theme in ("LIGHT", "DARK")}
    common = re.sub("LIGHT|DARK", lambda theme: themes[theme[0]], _CSS["rules"])
    text = _CSS["reset"].replace("&", 3 * ".skcal") + common.replace("&", 4 * ".skcal")
    rules = style_sheet(path)[name.removeprefix("skcal-")]
    text += rules.replace("&", 4 * ".skcal" + "." + name)
    if not of_page:
        text = re.sub(r"([\d.]+)rem", lambda found: f"{16 * float(found[1]):g}px", text)
    return f"<style>{text}</style>\n"


_STYLE = style("skcal-result", _PATH)


def html_text(text) -> str:
    """Text without control characters, escaped; no line ends between a number and its sign."""
    text = _UNIT.sub("\N{NO-BREAK SPACE}", escape(str(text)))
    return _NOT_HTML.sub("\N{REPLACEMENT CHARACTER}", text)


def html_list(texts: Iterable[str]) -> str:
    """A list of sentences."""
    items = "".join(f"<li>{html_text(text)}</li>\n" for text in texts)
    return f"<ul>\n{items}</ul>\n" if items else ""


@dataclass(frozen=True, eq=False)
class Table:
    """Values by row and column, which text, HTML, CSV, LaTeX and data frames show.

    Attributes
    ----------
    columns : sequence of str
        The names of the columns; a table of nothing but empty names is shown without them.
    rows : sequence of sequence
        Text stands as it is; numbers have four digits, and all of them in CSV and data frames.
    sides : str
        "l" or "r" for each column, the side where it stands, or "p" for a last column of sentences,
        which are wrapped; by default numbers stand to the right.
    title : str
    notes : sequence of str
        Sentences below the table.
    chosen : int
        The row that stands out; -1 for none.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    sides: str = ""
    title: str = ""
    notes: Sequence[str] = ()
    chosen: int = -1

    @classmethod
    def of(cls, columns: Mapping[str, Any], most: int = 10) -> Table:
        """Make a table of arrays by name; of more than ``most`` rows those evenly spread."""
        n_rows = min(map(len, columns.values()))
        spread = np.unique(np.linspace(0, n_rows - 1, most).astype(int))
        rows = spread if n_rows > most else slice(None)
        arrays = (np.asarray(values)[rows].tolist() for values in columns.values())
        return cls(tuple(columns), list(zip(*arrays, strict=True)))

    def text(self) -> str:
        """The title, the aligned table and the notes."""
        title = [wrapped(self.title), ""] if self.title else []
        notes = [wrapped(note, "", "  ") for note in self.notes]
        return "\n".join([*title, *self.lines(), *notes])

    def lines(self) -> list[str]:
        """The rows as aligned text below the names of the columns; a star marks the chosen one."""
        rows = [[rounded(cell) for cell in row] for row in self.rows]
        if self.chosen >= 0:
            for k, row in enumerate(rows):
                row[0] = ("* " if k == self.chosen else "  ") + row[0]
        head = [["  " * (self.chosen >= 0) + self.columns[0], *self.columns[1:]]]
        table = head + rows if any(self.columns) else rows
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = []
        for row in table:
            cells = [
                cell if side == "p" else f"{cell:{'>' if side == 'r' else '<'}{width}}"
                for cell, side, width in zip(row, self._sides(), widths, strict=True)
            ]
            line = "  ".join(cells).rstrip()
            if self._sides().endswith("p") and row[-1]:
                start = "  ".join([*cells[:-1], ""])
                line = wrapped(row[-1], start, " " * len(start))
            lines.append(line)
        return lines

    def html(self, kind: str = "skcal-scroll", most: int | None = None) -> str:
        """The title, the table, of at most ``most`` rows, and the notes, all of it escaped."""
        sides = [' class="skcal-number"' * (side == "r") for side in self._sides()]
        names = zip(sides, self.columns, strict=True)
        head = "".join(f'<th scope="col"{side}>{_isolated(name)}</th>' for side, name in names)
        head = f"<thead><tr>{head}</tr></thead>\n" if any(self.columns) else ""
        body = "".join(self._html_row(k, row, sides) for k, row in enumerate(self.rows[:most]))
        more = 0 if most is None else len(self.rows) - most
        notes = [f"… and {more:,} more rows"] * (more > 0)
        if kind == "skcal-scroll":
            if most is None and len(self.rows) > _LONG:
                kind += " skcal-long"
                notes = [f"{len(self.rows):,} rows: scroll in the table to see all."]
            kind += '" tabindex="0'
        title = f"<p>{html_text(self.title)}</p>\n" if self.title else ""
        notes += self.notes
        table = f"<table>\n{head}<tbody>\n{body}</tbody>\n</table>"
        return f'{title}<div class="{kind}">{table}</div>\n{html_list(notes)}'

    def _html_row(self, k, row, sides) -> str:
        """A row, which the first cell names; two spaces in front make it part of that above."""
        name, *cells = map(rounded, row)
        part = name.startswith("  ")
        kind = ' class="skcal-chosen"' if k == self.chosen else ' class="skcal-part"' * part
        beside = zip(sides[1:], self.columns[1:], cells, strict=True)
        others = "".join(
            f'<td{side} data-name="{html_text(column)}">{html_text(cell)}</td>'
            for side, column, cell in beside
        )
        first = f'<th scope="row"{sides[0]}>{_isolated(name.strip())}</th>'
        return f"<tr{kind}>{first}{others}</tr>\n"

    def csv(self) -> str:
        """Comma-separated numbers in full, with a header; text is not evaluated by spreadsheets."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(map(_csv_cell, row) for row in self.rows)
        return file.getvalue()

    def latex(self) -> str:
        """A ``tabular`` of the package booktabs between comments; the chosen row is bold."""
        wide = rf"p{{{1 - 0.2 * (len(self.columns) - 1):.1g}\linewidth}}"
        rows = [[tex(rounded(cell)) for cell in row] for row in self.rows]
        if self.chosen >= 0:
            rows[self.chosen] = [
                rf"\textbf{{{cell}}}" if cell else "" for cell in rows[self.chosen]
            ]
        names, *lines = (
            " & ".join(row) + r" \\" for row in [[tex(name) for name in self.columns], *rows]
        )
        comments = [f"% {printable(' '.join(text.split()))}" for text in (self.title, *self.notes)]
        begin = rf"\begin{{tabular}}{{{self._sides().replace('p', wide)}}}"
        body = [begin, r"\toprule", names, r"\midrule", *lines, r"\bottomrule", r"\end{tabular}"]
        return "\n".join([comments[0], *body, *comments[1:], ""])

    def frame(self):
        """A pandas data frame, a row for each row."""
        return import_pandas().DataFrame(list(self.rows), columns=list(self.columns))

    def _sides(self) -> str:
        if self.sides or not self.rows:
            return self.sides or "l" * len(self.columns)
        return "".join(
            "r" if isinstance(cell, int | float) and not isinstance(cell, bool) else "l"
            for cell in self.rows[0]
        )


def _csv_cell(value):
    if not isinstance(value, str):
        return "" if value is None else repr(plain(value))
    value = printable(" ".join(value.split()))
    return f"'{value}" if value.startswith(_FORMULAS) else value


def _isolated(name: str) -> str:
    """A name from outside: escaped, and the direction of its letters kept to itself."""
    return f"<bdi>{html_text(name)}</bdi>" if name else ""


def html_result(title: str, *parts: Table | str) -> str:
    """What a notebook shows: the title and the parts below it, with their style."""
    shown = [part.html(most=_PAGE_ROWS) if isinstance(part, Table) else part for part in parts]
    head = f'{_STYLE}<div class="skcal skcal-result">\n<p>{html_text(title)}</p>\n'
    return f"{head}{''.join(shown)}</div>\n"


class ShownRounded:
    """A dataclass that `print` and notebooks show as a sentence and a table of rounded numbers."""

    def sentence(self) -> str:
        """Return what was found, in words."""
        raise NotImplementedError

    def _head(self) -> str:
        """The sentence, with a capital and a full stop, where it stands alone."""
        return stated(self.sentence())

    def _shown(self) -> list[tuple[str, Any]]:
        """Names and values of the fields that are known."""
        result: Any = self
        shown = [(part.name, getattr(result, part.name)) for part in fields(result) if part.repr]
        return [
            (name.replace("_", " "), value)
            for name, value in shown
            if value is not None and value == value and value != "" and not is_dataclass(value)
        ]

    def _parts(self) -> Sequence[Table | str]:
        """What notebooks show below the numbers."""
        return ()

    def __str__(self):
        rows = [(name, rounded(value)) for name, value in self._shown()]
        return f"{wrapped(self._head())}\n\n{Table(('', ''), rows).text()}"

    def _repr_html_(self):
        return html_result(self._head(), Table(("", ""), self._shown()), *self._parts())


class ShownColumns:
    """A dataclass of arrays of one length, shown as a table of some rows, or all in a data frame.

    Its ``repr`` holds the other fields.
    """

    def to_frame(self):
        """Return a pandas DataFrame, a column for each array."""
        return import_pandas().DataFrame(self._columns())

    def _columns(self) -> dict[str, np.ndarray]:
        """The arrays in the order of the fields; ``thresholds`` are called ``threshold``."""
        return {
            "threshold" if name == "thresholds" else name: value
            for name, value in self._values()
            if isinstance(value, np.ndarray)
        }

    def _values(self) -> list[tuple[str, Any]]:
        """Names and values of the fields."""
        result: Any = self
        return [(part.name, getattr(result, part.name)) for part in fields(result)]

    def _caption(self) -> tuple[str, str]:
        """The title of the table, and what its columns are."""
        raise NotImplementedError

    def _table(self) -> Table:
        return Table.of(self._columns())

    def __repr__(self):
        others = [
            f"{name}={plain(value)!r}"
            for name, value in self._values()
            if not isinstance(value, np.ndarray | None)
        ]
        return f"{type(self).__name__}({', '.join(others)})"

    def __str__(self):
        title, note = self._caption()
        return replace(self._table(), title=title, notes=[note, *self._left_out()]).text()

    def _left_out(self) -> list[str]:
        """What is said where the table does not hold all rows."""
        shown, in_all = len(self._table().rows), len(next(iter(self._columns().values())))
        return [f"{shown} of {in_all:,} rows; to_frame() has all"] if shown < in_all else []

    def _repr_html_(self):
        title, note = self._caption()
        return html_result(title, self._table(), html_list([note, *self._left_out()]))


@dataclass(frozen=True, eq=False)
class Summary:
    """The candidates, what was chosen, and what that says.

    Attributes
    ----------
    heading : str
    columns : sequence of str
    rows : list of sequence of str
        A row of text for each candidate.
    chosen : int
        The row that was chosen.
    choice : list of str
        Sentences.
    facts : list of (str, str)
        Names and texts of what was found.
    records : list of dict
        The numbers of each candidate in full.
    """

    heading: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    chosen: int = -1
    choice: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    records: Sequence[dict[str, Any]] = ()

    def as_text(self) -> str:
        """The table, the choice and the facts for a terminal."""
        if not self.rows:
            return self.heading
        choice = [mark + text for mark, text in zip(("* ", "  "), self.choice, strict=False)]
        width = max(len(name) for name, _ in self.facts) + 2
        facts = [f"{name:{width}} {text}" for name, text in self.facts]
        return "\n".join([self.heading, "", *self.table.lines(), "", *choice, *facts])

    def as_html(self) -> str:
        """The same for notebooks."""
        if not self.rows:
            return ""
        return html_result(
            self.heading, Table(("", ""), self.facts), self.table, html_list(self.choice)
        )

    @property
    def table(self) -> Table:
        """The candidates as they are shown."""
        return Table(self.columns, self.rows, "llrrr", chosen=self.chosen)

    @property
    def numbers(self) -> Table:
        """The numbers of the candidates in full."""
        columns = tuple(self.records[0]) if self.records else ()
        return Table(columns, [[record[name] for name in columns] for record in self.records])


class Summarized:
    """A fitted estimator whose ``_summary()`` is shown in several forms."""

    _set_last: str  # the attribute of a fit that has come to its end

    def _summary(self) -> Summary:
        raise NotImplementedError

    def summary(self, format: str = "text") -> str:
        """Table of the candidates, what was chosen and why, and what that says.

        Parameters
        ----------
        format : {"text", "csv", "latex"}, default="text"
            "csv" and "latex" hold the candidates alone: the numbers in full, and a ``tabular`` for
            the package booktabs, with what LaTeX would read escaped.

        Returns
        -------
        summary : str
        """
        check_is_fitted(self)
        summary = self._summary()
        views = {
            "text": summary.as_text,
            "csv": summary.numbers.csv,
            "latex": replace(summary.table, title=summary.heading).latex,
        }
        if format not in views:
            raise ValueError(f"format={format!r} is unknown. Use one of {', '.join(views)}.")
        return views[format]()

    def to_frame(self):
        """Return a pandas data frame, a row for each candidate."""
        check_is_fitted(self)
        return self._summary().numbers.frame()

    def _result_html(self) -> str:
        return self._summary().as_html() if hasattr(self, self._set_last) else ""

    def _repr_html_inner(self):
        return self._result_html() + super()._repr_html_inner()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._result_html() + bundle["text/html"]
        return bundle


_OPTION_WORDS = {"n_bins": "bins", "alpha": "penalty", "C": "inverse penalty"}


def format_setting(setting: dict) -> str:
    """Short text of a parameter setting."""
    parts = []
    for name, value in setting.items():
        short = name.rsplit("__", 1)[-1]
        shown = f"{value:.3g}" if isinstance(value, float) else value
        parts.append(worded(f"{short}={shown}", f"{_OPTION_WORDS.get(short, short)} {shown}"))
    return ", ".join(parts) or "-"
