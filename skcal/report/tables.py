"""A report as CSV and as LaTeX tables."""

from __future__ import annotations

from skcal import _show
from skcal._show import printable, tex
from skcal.report.group_rows import (
    GROUP_COLUMNS,
    OUTCOME_COLUMNS,
    group_rows,
    outcome_reading,
    outcome_rows,
)
from skcal.report.paired_rows import comparison_rows, paired_lines, paired_records, verdict
from skcal.report.rows import records_of, rows_of

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
    return _show.as_csv(_COLUMNS, records(report))


def as_latex(report) -> str:
    """A ``tabular`` of booktabs for all samples, and those of groups and of two models."""
    return "\n".join([_measures(report), *_groups(report), *_comparison(report)])


def _measures(report) -> str:
    rows = [
        ("  " * row.indented + row.quantity, row.shown, row.detail)
        for row in rows_of(report.overall, report.settings)
    ]
    sides = r"lrp{0.6\linewidth}"
    return _tabular(_title(report), sides, ("quantity", "value", ""), rows)


def _groups(report) -> list[str]:
    if not report.groups:
        return []
    width = len(GROUP_COLUMNS)
    title, rows = f"{_title(report)}, groups", [row[:width] for row in group_rows(report)]
    tables = [_tabular(title, "l" + "r" * (width - 1), GROUP_COLUMNS, rows)]
    outcomes = outcome_rows(report)
    if outcomes:
        title = f"{title}. {outcome_reading(report)}"
        tables.append(_tabular(title, "lrrrrrr", OUTCOME_COLUMNS, outcomes))
    return tables


def _comparison(report) -> list[str]:
    """Two models side by side, and in comments what the paired tests say."""
    if report.comparison is None:
        return []
    columns = "quantity", report.overall.name, report.comparison.second.name, ""
    title, rows = f"{_title(report)}, two models. {verdict(report)}", comparison_rows(report)
    notes = "".join(f"% {printable(line)}\n" for line in paired_lines(report))
    return [_tabular(title, r"lrrp{0.4\linewidth}", columns, rows) + notes]


def _title(report) -> str:
    return f"Calibration report: {report.overall.name}"


def _tabular(title, sides, columns, rows) -> str:
    cells = [[tex(cell) for cell in row] for row in rows]
    return _show.as_latex(title, sides, [tex(column) for column in columns], cells)
