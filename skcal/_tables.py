"""Tables for spreadsheets and for LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from skcal._text import printable

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
        writer.writerow([_cell(record[name]) for name in columns])
    return file.getvalue()


def _cell(value):
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
