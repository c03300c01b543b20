"""A report as aligned text."""

from __future__ import annotations

import textwrap

from skcal._show import as_columns, number, printable
from skcal.displays.base import as_label
from skcal.report.group_rows import (
    GROUP_COLUMNS,
    NO_POWER,
    OUTCOME_COLUMNS,
    group_rows,
    outcome_reading,
    outcome_rows,
)
from skcal.report.paired_rows import comparison_rows, paired_lines, verdict
from skcal.report.rows import (
    all_warnings,
    class_rows,
    heading,
    how_made,
    rows_of,
)
from skcal.report.segment_audit import SEGMENT_COLUMNS, segment_rows, segment_verdict

_WIDTH = 100
_CLASSES = 12


def as_text(report) -> str:
    """The report for a terminal of 100 columns."""
    title = f"Calibration report: {one_line(report.overall.name)}"
    verdict_lines = [_wrapped(report.verdict, "", ""), ""]
    lines = [title, "=" * len(title), heading(report), "", *verdict_lines, *_measures(report)]
    if report.comparison is not None:
        lines += ["", *_comparison(report)]
    if report.groups:
        lines += ["", *_groups(report)]
    if report.segments is not None:
        lines += ["", *_segments(report.segments)]
    lines += ["", *_classes(report.overall), "", "Caveats:"]
    lines += [_wrapped(text, "* ", "  ") for text in all_warnings(report)]
    return printable("\n".join([*lines, "", _wrapped(how_made(report), "", "")]))


def comparison_text(report) -> str:
    """The comparison alone, with the warnings."""
    names = f"{report.overall.name} and {report.comparison.second.name}"
    title = f"Calibration of {one_line(names, 90)}"
    lines = [title, "=" * len(title), heading(report), "", *_comparison(report), "", "Caveats:"]
    lines += [_wrapped(text, "* ", "  ") for text in all_warnings(report)]
    return printable("\n".join([*lines, "", _wrapped(how_made(report), "", "")]))


def one_line(name, width: int = 60) -> str:
    """A name from outside, without line breaks and not too long."""
    return as_label(name, width).replace(r"\$", "$")


def _wrapped(text, first, rest):
    return textwrap.fill(
        " ".join(text.split()), _WIDTH, initial_indent=first, subsequent_indent=rest
    )


def _measures(report) -> list[str]:
    rows = rows_of(report.overall, report.settings)
    names = [("  " if row.indented else "") + row.quantity for row in rows]
    left, right = max(map(len, names)), max(len(row.shown) for row in rows)
    indent = " " * (left + right + 4)
    lines: list[str] = []
    for name, row in zip(names, rows, strict=True):
        start = f"{name.ljust(left)}  {row.shown.rjust(right)}  "
        text = _wrapped(row.detail, start, indent) if row.detail else start.rstrip()
        lines += text.split("\n")
    return lines


def _groups(report) -> list[str]:
    rows, width = group_rows(report), len(GROUP_COLUMNS)
    lines = as_columns([GROUP_COLUMNS, *_named([row[:width] for row in rows])])
    marks = [""] + ["  *" if row[width] else "" for row in rows]
    lines = [line + mark for line, mark in zip(lines, marks, strict=True)]
    if any(marks):
        lines.append(f"* {NO_POWER}")
    outcomes = outcome_rows(report)
    if outcomes:
        lines += ["", *as_columns([OUTCOME_COLUMNS, *_named(outcomes)]), outcome_reading(report)]
    return lines


def _named(rows):
    return [(one_line(row[0], 24), *row[1:]) for row in rows]


def _segments(found) -> list[str]:
    rows = [(one_line(row[0], 40), *row[1:]) for row in segment_rows(found)]
    return [_wrapped(segment_verdict(found), "", ""), "", *as_columns([SEGMENT_COLUMNS, *rows])]


def _comparison(report) -> list[str]:
    names = report.overall.name, report.comparison.second.name
    rows = comparison_rows(report)
    table = [("", *(one_line(name, 20) for name in names)), *(row[:3] for row in rows)]
    lines = as_columns(table)
    width = max(map(len, lines))
    lines = [lines[0]] + [
        f"{line.ljust(width)}  {row[3]}".rstrip() for line, row in zip(lines[1:], rows, strict=True)
    ]
    paired = [_wrapped(text, "", "  ") for text in paired_lines(report)]
    return [_wrapped(verdict(report), "", ""), "", *lines, "", *paired]


def _classes(measures) -> list[str]:
    rows = class_rows(measures)
    table = [
        (one_line(label, 24), number(rate), number(mean)) for label, rate, mean in rows[:_CLASSES]
    ]
    lines = as_columns([("class", "base rate", "mean prediction"), *table])
    more = len(rows) - _CLASSES
    return [*lines, f"… and {more:,} more"] if more > 0 else lines
