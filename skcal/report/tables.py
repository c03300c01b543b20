"""A report as CSV and as LaTeX tables."""

from __future__ import annotations

from skcal import _tables
from skcal._tables import tex
from skcal._text import printable
from skcal.report.paired_rows import comparison_rows, paired_lines, paired_records, verdict
from skcal.report.rows import GROUP_COLUMNS, group_rows, records_of, rows_of

_COLUMNS = ("part", "name", "quantity", "notion", "value", "low", "high", "pvalue", "detail")


def records(report) -> list[dict]:
    """A record for each number of all samples, groups and the second model, and paired test."""
    parts = [("all", report.overall), *(("group", part) for part in report.groups)]
    if report.comparison is not None:
        parts.append(("second", report.comparison.second))
    rows = [
        {"part": part, "name": measures.name, **record}
        for part, measures in parts
        for record in records_of(measures, report.settings)
    ]
    return rows if report.comparison is None else rows + paired_records(report)


def as_csv(report) -> str:
    """Comma-separated numbers in full, with a header."""
    return _tables.as_csv(_COLUMNS, records(report))


def as_latex(report) -> str:
    """A ``tabular`` of booktabs for all samples, one for groups and one for two models."""
    rows = [
        ("  " * row.indented + row.quantity, row.shown, row.detail)
        for row in rows_of(report.overall, report.settings)
    ]
    name = report.overall.name
    sides = r"lrp{0.6\linewidth}"
    text = _tabular(f"Calibration report: {name}", sides, ("quantity", "value", ""), rows)
    if report.groups:
        width = len(GROUP_COLUMNS)
        of_groups = [row[:width] for row in group_rows(report)]
        text += "\n" + _tabular("Groups", "l" + "r" * (width - 1), GROUP_COLUMNS, of_groups)
    if report.comparison is not None:
        columns = "quantity", name, report.comparison.second.name, ""
        title, sides = verdict(report), r"lrrp{0.4\linewidth}"
        text += "\n" + _tabular(title, sides, columns, comparison_rows(report))
        text += "".join(f"% {printable(line)}\n" for line in paired_lines(report))
    return text


def _tabular(title, sides, columns, rows) -> str:
    cells = [[tex(cell) for cell in row] for row in rows]
    return _tables.as_latex(title, sides, [tex(column) for column in columns], cells)
