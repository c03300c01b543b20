"""A report as CSV and as a LaTeX table."""

from __future__ import annotations

from skcal import _tables
from skcal._tables import tex
from skcal.report.group_rows import OUTCOME_COLUMNS, outcome_reading, outcome_rows
from skcal.report.rows import records_of, rows_of

_COLUMNS = ("part", "name", "quantity", "notion", "value", "low", "high", "pvalue", "detail")


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
    return _tables.as_csv(_COLUMNS, records(report))


def as_latex(report) -> str:
    """A ``tabular`` of booktabs: each number with its explanation; one of groups of one outcome."""
    rows = [
        ("  " * row.indented + row.quantity, row.shown, row.detail)
        for row in rows_of(report.overall, report.settings)
    ]
    title, sides = f"Calibration report: {report.overall.name}", r"lrp{0.6\linewidth}"
    cells = [[tex(cell) for cell in row] for row in rows]
    table = _tables.as_latex(title, sides, ("quantity", "value", ""), cells)
    outcomes = [[tex(cell) for cell in row] for row in outcome_rows(report)]
    if not outcomes:
        return table
    columns = [tex(name) for name in OUTCOME_COLUMNS]
    title = f"{title}, groups. {outcome_reading(report)}"
    return f"{table}\n{_tables.as_latex(title, 'lrrrrrr', columns, outcomes)}"
