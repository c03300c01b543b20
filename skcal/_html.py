"""What notebooks and pages show: tables whose looks no host changes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any

import numpy as np

from skcal._text import as_columns

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
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


def plain(text) -> str:
    """Text without control characters, escaped."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", escape(str(text)))


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


def result(title: str, *parts: str) -> str:
    """A part of a notebook with its style."""
    return (
        f'{_STYLE}<div class="skcal skcal-result">\n<p>{plain(title)}</p>\n{"".join(parts)}</div>\n'
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], chosen: int | None = None) -> str:
    """A table of numbers and text; numbers stand to the right, and the chosen row is bold."""
    rows = list(rows)
    sides = [_side(cell) for cell in rows[0]] if rows else [""] * len(columns)
    head = "".join(
        f'<th scope="col"{side}>{plain(column)}</th>'
        for side, column in zip(sides, columns, strict=True)
    )
    body = "".join(
        ('<tr class="skcal-chosen">' if k == chosen else "<tr>")
        + "".join(map(_cell, row))
        + "</tr>\n"
        for k, row in enumerate(rows[:_ROWS])
    )
    more = len(rows) - _ROWS
    note = f"<ul><li>… and {more:,} more rows</li></ul>\n" if more > 0 else ""
    head = f"<thead><tr>{head}</tr></thead>\n" if any(columns) else ""
    return f'<div class="skcal-scroll"><table>\n{head}<tbody>\n{body}</tbody></table></div>\n{note}'


def some_rows(columns: Mapping[str, Any], most: int = 10) -> str:
    """A table of arrays by name, of many rows those that are evenly spread."""
    n_rows = min(len(values) for values in columns.values())
    rows = np.unique(np.linspace(0, n_rows - 1, most).astype(int)) if n_rows > most else slice(None)
    return table(
        tuple(columns), zip(*(values[rows].tolist() for values in columns.values()), strict=True)
    )


def _side(value) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return ' class="skcal-number"' if is_number else ""


def _cell(value) -> str:
    return f"<td{_side(value)}>{plain(rounded(value))}</td>"


def notes(texts: Iterable[str]) -> str:
    """A list of sentences."""
    items = "".join(f"<li>{plain(text)}</li>\n" for text in texts)
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
        return result(type(self).__name__, table(("", ""), self._shown()))
