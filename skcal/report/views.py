"""A report as text, CSV, LaTeX and plain data."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from skcal._show import Table, cut_apart, one_line, printable, wrapped
from skcal.displays import CalibrationCurveDisplay
from skcal.displays.axis import ProbabilityAxis
from skcal.hypothesis_tests.result import CalibrationTestResult
from skcal.hypothesis_tests.scan import ScanRange
from skcal.hypothesis_tests.segments import SegmentTestResult
from skcal.metrics.shifted import ShiftedCalibrationError
from skcal.metrics.validation import ValidationMeasures
from skcal.report import rows, words
from skcal.report.measure import Measures

_CLASSES = 12  # that text shows
_OF_A_TEST = (
    "notion",
    "pvalue",
    "method",
    "statistic_pvalues",
    "direction",
    "spread",
    "n_impossible",
    "ranges",
    "lower_bound",
)


# Text


def as_text(report, full: bool = False) -> str:
    """The report for a terminal of 100 columns: one screen, or everything."""
    parts = ["\n\n".join(map(wrapped, report.paragraphs)), "", wrapped(report.read_as)]
    if report.comparison is not None:
        parts += ["", _comparison_text(report, full)]
    if report.comparison is None or full:
        parts += ["", rows.measures_table(report.overall, report.settings, full).text()]
    if report.subgroups:
        parts += ["", _short_names(rows.subgroups_table(report), 24).text()]
        if full:
            tables = rows.side_by_side(report.subgroups, report.settings, 2)
            parts += [text for table in tables for text in ("", table.text())]
    if report.segments is not None:
        segments = rows.segments_table(report.segments, report.settings)
        parts += ["", _short_names(segments, 40).text()]
    if full:
        parts += ["", _classes_text(report.overall)]
    return _framed(report, title_of(report, 90), parts, full)


def title_of(report, width: int | None = None) -> str:
    """The title of a report."""
    names = " and ".join(model.name for model in words.models_of(report))
    kind = "Calibration report" if report.comparison is None else "Comparison of calibration"
    return f"{kind}: {names if width is None else one_line(names, width)}"


def _framed(report, title, parts, full) -> str:
    """The parts between what every report begins and ends with."""
    caveats = [wrapped(text, "* ", "  ") for text in words.all_warnings(report, full=full)]
    begin = [title, "=" * len(title), *map(wrapped, words.headings(report)), ""]
    end = ["", "Caveats:", *caveats, "", wrapped(words.how_made(report))]
    return printable("\n".join([*begin, *parts, *end]))


def _comparison_text(report, full) -> str:
    table = rows.comparison_table(report, full)
    columns = cut_apart(table.columns, 20)
    notes = [wrapped(note, "", "  ") for note in table.notes]
    text = replace(table, columns=columns, title="", notes=()).text()
    return "\n".join([text, "", *notes] if notes else [text])


def _short_names(table, width) -> Table:
    """The table with names of rows, which come from outside, of about this width."""
    names = cut_apart([row[0] for row in table.rows], width)
    return replace(
        table, rows=[(name, *row[1:]) for name, row in zip(names, table.rows, strict=True)]
    )


def _classes_text(measures) -> str:
    table = _short_names(rows.classes_table(measures), 24)
    more = len(table.rows) - _CLASSES
    notes = [f"… and {more:,} more"] if more > 0 else []
    return replace(table, rows=table.rows[:_CLASSES], notes=notes).text()


# LaTeX


def as_latex(report, full: bool = False) -> str:
    """A ``tabular`` of booktabs for all samples, and those of subgroups and of two models."""
    title, overall = title_of(report), report.overall
    shown = rows.article_table(overall, report.settings, full)
    notes = [report.verdict, *words.all_warnings(report, full=full), *shown.notes]
    tables = [replace(shown, title=title, notes=notes)]
    if report.subgroups:
        tables.append(replace(rows.subgroups_table(report), title=f"{title}, subgroups"))
        if full:
            numbers = rows.side_by_side(report.subgroups, report.settings)
            tables += [replace(table, title=f"{title}, numbers of subgroups") for table in numbers]
    if report.comparison is not None:
        table = rows.comparison_table(report)
        columns = ("quantity", *table.columns[1:])
        tables.append(replace(table, columns=columns, title=f"{title}. {table.title}"))
    return "\n".join(table.latex() for table in tables)


# Plain data


def as_data(value: Any) -> Any:
    """Dicts, lists, strings and finite numbers of a part of a report; None for what is not known.

    A result of another room is here what the report shows of it.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.ndarray):
        return as_data(value.tolist())
    if isinstance(value, ScanRange | ProbabilityAxis):
        return as_data(value._asdict())
    if isinstance(value, list | tuple):
        return [as_data(part) for part in value]
    if isinstance(value, dict):
        return {name: as_data(part) for name, part in value.items()}
    if isinstance(value, Measures):
        return _measures_as_data(value)
    if is_dataclass(value) and not isinstance(value, type):
        return as_data(_shown_of(value))
    return value


def _shown_of(result: Any) -> dict[str, Any]:
    """Names and values of a result that are shown."""
    if isinstance(result, ValidationMeasures):
        return result.measures
    if isinstance(result, CalibrationCurveDisplay):
        beside = ("histogram", "histogram_edges", "axis")
        return as_data(result.curve) | {name: getattr(result, name) for name in beside}
    if isinstance(result, SegmentTestResult):
        worst = [segment._asdict() for segment in result.segments[: rows.N_WORST]]
        counts = {"n_segments": len(result.segments), "n_left_out": result.n_left_out}
        return {"pvalue": result.pvalue, **counts, "worst": worst}
    names = [field.name for field in fields(result)]
    if isinstance(result, CalibrationTestResult):
        names = [name for name in _OF_A_TEST if hasattr(result, name)]
    if isinstance(result, ShiftedCalibrationError):
        names.remove("weights")
    return {name: getattr(result, name) for name in names}


def _measures_as_data(measures: Measures) -> dict[str, Any]:
    data = _shown_of(measures)
    at_prevalence = data.pop("at_prevalence")
    del data["searches"]  # whose numbers are in "tuned"
    data = as_data(data)
    if at_prevalence is not None:
        data["decision"]["at_prevalence"] = rows.at_threshold(at_prevalence)
    return data
