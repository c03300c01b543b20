"""How results are shown: numbers as text, tables as text, HTML, CSV, LaTeX and data frames."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.utils.validation import check_is_fitted

# What moves a terminal's cursor, writes from right to left, is not seen, or is no character.
_CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """The text with control characters, which names from outside may hold, escaped."""
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def as_json(data: Any, indent: int | None = 2) -> str:
    """Strict JSON; control characters are escaped, others stand as they are."""
    text = json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def number(value: float | None, decimals: int = 4) -> str:
    """Fixed decimals, or two digits of what is smaller; a dash for None."""
    if value is None:
        return "–"
    fixed = value == 0 or abs(value) >= 10.0 ** (1 - decimals)
    return f"{value:.{decimals}f}" if fixed else f"{value:.1e}"


def percent(level: float) -> str:
    """``95 %``."""
    return f"{100 * level:g} %"


def as_columns(table: Sequence[Sequence[str]], sides: str = "") -> list[str]:
    """Align a table of text; ``sides`` has < or > a column, by default the first is left."""
    sides = sides or "<" + ">" * (len(table[0]) - 1)
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    return [
        "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)
        ).rstrip()
        for row in table
    ]


_FORMULAS = ("=", "+", "-", "@")  # what a spreadsheet would evaluate
_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "±": r"$\pm$",
    "−": "$-$",
    "∞": r"$\infty$",
    "–": "--",
    "…": r"\dots{}",
}


def as_csv(columns: Sequence[str], records: Sequence[dict[str, Any]]) -> str:
    """Comma-separated numbers in full, with a header; text is not evaluated by spreadsheets."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for record in records:
        writer.writerow([_csv_cell(record[name]) for name in columns])
    return file.getvalue()


def _csv_cell(value):
    if not isinstance(value, str):
        return "" if value is None else repr(value)
    value = printable(" ".join(value.split()))
    return f"'{value}" if value.startswith(_FORMULAS) else value


def as_latex(title: str, sides: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A ``tabular`` of booktabs, of cells that are escaped, below a comment."""
    head = [
        f"% {printable(' '.join(title.split()))}",
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
    ]
    lines = [" & ".join(row) + r" \\" for row in [columns, *rows]]
    body = [lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join([*head, *body])


def tex(text: str) -> str:
    """Text as LaTeX prints it; two spaces in front indent it."""
    words = printable(" ".join(text.split()))
    escaped = "".join(_LATEX.get(sign, sign) for sign in words)
    return rf"\quad {escaped}" if text.startswith("  ") else escaped


def import_pandas():
    """The module pandas, or an error that says how to install it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_frame() needs pandas: pip install 'skcal[pandas]'.") from error
    return pandas


_NOT_HTML = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ROWS = 60  # of a table in a notebook

# The rules of notebooks and of nbconvert, such as ".jp-RenderedHTMLCommon tbody tr:nth-child(odd)",
# name two classes at most: three undo them, four are ours and five those of one kind of output,
# since every output repeats its style and the last of equal rules would win.
_LIGHT = """--text: #1c1c1c; --soft: #595959; --line: #dcdcdc; --back: #fff; --box: #f4f6f8;
  --mind: #fdf3e7; --edge: #d55e00; --image: none; color-scheme: light;"""
_DARK = """--text: #ececec; --soft: #b3b3b3; --line: #3a3a3a; --back: #141414; --box: #222;
  --mind: #2b2118; --edge: #d55e00; --image: invert(.92) hue-rotate(180deg);
  color-scheme: dark;"""
_RESET = """
& :is(article, aside, b, bdi, caption, dd, details, div, dl, dt, figcaption, figure, footer, h1, h2,
  h3, h4, header, img, li, p, section, small, summary, table, tbody, td, th, thead, tr, ul)
  { all: revert; box-sizing: border-box; }
"""
_RULES = f"""
& {{ {_LIGHT} color: var(--text); background: var(--back);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; text-align: left;
  white-space: normal; overflow-wrap: anywhere; box-sizing: border-box; }}
@media screen and (prefers-color-scheme: dark) {{ & {{ {_DARK} }} }}
@media screen {{
  [data-jp-theme-light="true"] &, .vscode-light & {{ {_LIGHT} }}
  [data-jp-theme-light="false"] &, .vscode-dark & {{ {_DARK} }}
}}
& table {{ width: 100%; border-collapse: collapse; color: inherit; font-size: .9375rem;
  font-variant-numeric: tabular-nums; }}
& :is(td, th) {{ padding: .3rem .75rem .3rem 0; text-align: left; vertical-align: top;
  font-weight: normal; border-bottom: 1px solid var(--line); background: none; }}
& thead th {{ color: var(--soft); font-size: .8125rem; vertical-align: bottom; }}
& .skcal-scroll {{ overflow: auto; }}
& ul {{ margin: 0; padding-left: 1.1rem; }}
& li {{ margin: .2rem 0; }}
"""
_RESULT = """
& { width: fit-content; max-width: 100%; padding: .5rem .75rem; font-size: .875rem; }
& table { width: auto; font-size: .875rem; overflow-wrap: break-word; }
& :is(td, th) { padding: .15rem 1.25rem .15rem 0; }
& thead + tbody .skcal-number, & thead .skcal-number { text-align: right; white-space: nowrap; }
& thead + tbody td { white-space: nowrap; }
& .skcal-scroll + .skcal-scroll { margin-top: .75rem; }
& .skcal-chosen :is(td, th) { font-weight: 600; }
& p { margin: 0 0 .4rem; font-weight: 600; }
& ul { margin-top: .5rem; color: var(--soft); padding-left: 1.1rem; }
"""


def style(name: str, rules: str, of_page: bool = False) -> str:
    """A style element of the rules of a kind of output, in which & stands for its elements.

    Hosts have sizes of their own: of a page of ours alone the reader's size of text is the unit.
    """
    common = _RESET.replace("&", 3 * ".skcal") + _RULES.replace("&", 4 * ".skcal")
    text = common + rules.replace("&", 4 * ".skcal" + "." + name)
    if not of_page:
        text = re.sub(r"([\d.]+)rem", lambda found: f"{16 * float(found[1]):g}px", text)
    return f"<style>{text}</style>\n"


_STYLE = style("skcal-result", _RESULT)


def html_text(text) -> str:
    """Text without control characters, escaped."""
    return _NOT_HTML.sub("\N{REPLACEMENT CHARACTER}", escape(str(text)))


def rounded(value) -> str:
    """Four significant digits of a number, of several with their names, the words of others."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        value = dict(zip(value._fields, value, strict=True))
    if isinstance(value, dict):
        return ", ".join(f"{name} {rounded(one)}" for name, one in value.items())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if value != value:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if math.isfinite(value) else str(value)


def html_result(title: str, *parts: str) -> str:
    """A part of a notebook with its style."""
    head = f'{_STYLE}<div class="skcal skcal-result">\n<p>{html_text(title)}</p>\n'
    return f"{head}{''.join(parts)}</div>\n"


def html_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], chosen: int | None = None
) -> str:
    """A table of numbers and text; numbers stand to the right, and the chosen row is bold."""
    rows = list(rows)
    sides = [_side(cell) for cell in rows[0]] if rows else [""] * len(columns)
    head = "".join(
        f'<th scope="col"{side}>{html_text(column)}</th>'
        for side, column in zip(sides, columns, strict=True)
    )
    body = "".join(
        ('<tr class="skcal-chosen">' if k == chosen else "<tr>")
        + "".join(map(_html_cell, row))
        + "</tr>\n"
        for k, row in enumerate(rows[:_ROWS])
    )
    more = len(rows) - _ROWS
    note = f"<ul><li>… and {more:,} more rows</li></ul>\n" if more > 0 else ""
    head = f"<thead><tr>{head}</tr></thead>\n" if any(columns) else ""
    return f'<div class="skcal-scroll"><table>\n{head}<tbody>\n{body}</tbody></table></div>\n{note}'


def html_rows(columns: Mapping[str, Any], most: int = 10) -> str:
    """A table of arrays by name, of many rows those that are evenly spread."""
    n_rows = min(len(values) for values in columns.values())
    rows = np.unique(np.linspace(0, n_rows - 1, most).astype(int)) if n_rows > most else slice(None)
    return html_table(
        tuple(columns), zip(*(values[rows].tolist() for values in columns.values()), strict=True)
    )


def _side(value) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return ' class="skcal-number"' if is_number else ""


def _html_cell(value) -> str:
    return f"<td{_side(value)}>{html_text(rounded(value))}</td>"


def html_list(texts: Iterable[str]) -> str:
    """A list of sentences."""
    items = "".join(f"<li>{html_text(text)}</li>\n" for text in texts)
    return f"<ul>\n{items}</ul>\n" if items else ""


class ShownRounded:
    """A dataclass that `print` and notebooks show as a table of its rounded numbers."""

    def _shown(self) -> list[tuple[str, Any]]:
        own: Any = self
        shown = [(field.name, getattr(own, field.name)) for field in fields(own) if field.repr]
        return [
            (name.replace("_", " "), value)
            for name, value in shown
            if value is not None and value == value and not is_dataclass(value)
        ]

    def __str__(self):
        rows = [(name, rounded(value)) for name, value in self._shown()]
        return "\n".join(as_columns(rows, "<<"))

    def _repr_html_(self):
        return html_result(type(self).__name__, html_table(("", ""), self._shown()))


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
        marks = ["  ", *("* " if k == self.chosen else "  " for k in range(len(self.rows)))]
        marked = [
            (mark + row[0], *row[1:])
            for mark, row in zip(marks, [self.columns, *self.rows], strict=True)
        ]
        choice = [mark + text for mark, text in zip(("* ", "  "), self.choice, strict=False)]
        width = max(len(name) for name, _ in self.facts) + 2
        facts = [f"{name:{width}} {text}" for name, text in self.facts]
        return "\n".join([self.heading, "", *as_columns(marked, "<<>>>"), "", *choice, *facts])

    def as_html(self) -> str:
        """The same for notebooks."""
        if not self.rows:
            return ""
        return html_result(
            self.heading,
            html_table(("", ""), self.facts),
            html_table(self.columns, self.rows, self.chosen),
            html_list(self.choice),
        )

    def as_csv(self) -> str:
        """The numbers of the candidates in full."""
        return as_csv(tuple(self.records[0]) if self.records else (), self.records)

    def as_latex(self) -> str:
        """The table of the candidates for the package booktabs, the chosen one bold."""
        rows = [
            [rf"\textbf{{{tex(cell)}}}" if k == self.chosen and cell else tex(cell) for cell in row]
            for k, row in enumerate(self.rows)
        ]
        return as_latex(self.heading, "llrrr", [tex(name) for name in self.columns], rows)


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
        views = {"text": Summary.as_text, "csv": Summary.as_csv, "latex": Summary.as_latex}
        if format not in views:
            raise ValueError(f"format={format!r} is unknown. Use one of {', '.join(views)}.")
        return views[format](self._summary())

    def to_frame(self):
        """Return a pandas data frame, a row for each candidate."""
        check_is_fitted(self)
        return import_pandas().DataFrame(self._summary().records)

    def _result_html(self) -> str:
        return self._summary().as_html() if hasattr(self, self._set_last) else ""

    def _repr_html_inner(self):
        return self._result_html() + super()._repr_html_inner()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._result_html() + bundle["text/html"]
        return bundle


def with_settings(results: dict[str, Any], params: list[dict]) -> dict[str, Any]:
    """Add the parameters of every setting, and the ranks of their mean scores."""
    for name in dict.fromkeys(name for setting in params for name in setting):
        column = np.ma.masked_all(len(params), dtype=object)
        for row, setting in enumerate(params):
            if name in setting:
                column[row] = setting[name]
        results[f"param_{name}"] = column
    results["params"] = params
    rank = rankdata(-results["mean_test_score"], method="min")
    results["rank_test_score"] = rank.astype(np.int32)
    return results


def format_setting(setting: dict) -> str:
    """Short text of a parameter setting."""
    parts = []
    for name, value in setting.items():
        short = name.rsplit("__", 1)[-1]
        parts.append(f"{short}={value:.3g}" if isinstance(value, float) else f"{short}={value}")
    return ", ".join(parts) or "-"
