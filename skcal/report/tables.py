"""A report as CSV and as a LaTeX table."""

from __future__ import annotations

import csv
import io

from skcal._text import printable
from skcal.report.rows import records_of, rows_of

_COLUMNS = ("part", "name", "quantity", "notion", "value", "low", "high", "pvalue", "detail")
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


def records(report) -> list[dict]:
    """A record for each number of all samples, of each group and of the second model."""
    parts = [("all", report.overall), *(("group", part) for part in report.groups)]
    if report.comparison is not None:
        parts.append(("second", report.comparison.second))
    return [
        {"part": part, "name": measures.name, **record}
        for part, measures in parts
        for record in records_of(measures, report.settings)
    ]


def as_csv(report) -> str:
    """Comma-separated numbers in full, with a header."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for record in records(report):
        writer.writerow([_cell(record[name]) for name in _COLUMNS])
    return file.getvalue()


def _cell(value):
    if not isinstance(value, str):
        return "" if value is None else repr(value)
    value = printable(" ".join(value.split()))
    return f"'{value}" if value.startswith(_FORMULAS) else value


def as_latex(report) -> str:
    """A ``tabular`` of booktabs: each number with its explanation."""
    rows = rows_of(report.overall, report.settings)
    lines = [
        rf"{_tex(('  ' if row.indented else '') + row.quantity)} & {_tex(row.shown)} & "
        rf"{_tex(row.detail)} \\"
        for row in rows
    ]
    title = f"% Calibration report: {printable(' '.join(str(report.overall.name).split()))}"
    head = [title, r"\begin{tabular}{lrp{0.6\linewidth}}", r"\toprule"]
    columns = [r"quantity & value & \\", r"\midrule"]
    return "\n".join([*head, *columns, *lines, r"\bottomrule", r"\end{tabular}", ""])


def _tex(text) -> str:
    indented = text.startswith("  ")
    escaped = "".join(_LATEX.get(sign, sign) for sign in printable(text.strip()))
    return rf"\quad {escaped}" if indented else escaped
