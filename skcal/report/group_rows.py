"""The groups of a report as rows of tables, which text, HTML and LaTeX show."""

from __future__ import annotations

from skcal._show import number, percent
from skcal.report.overview import powerless
from skcal.report.rows import root

GROUP_COLUMNS = (
    "group",
    "n",
    "accuracy",
    "tuned",
    "at least",
    "ECE",
    "if calibrated ≤",
    "p (Holm)",
)


NO_POWER = "too few samples to show an error as large as that of all"


def group_rows(report) -> list[tuple[str, ...]]:
    """A row of text for each group, as GROUP_COLUMNS names them, and a note."""
    return [
        (
            measures.name,
            f"{measures.overview.n_samples:,}",
            *map(number, _group_numbers(measures)),
            "–" if p is None else f"{p:.2g}",
            NO_POWER if powerless(measures, report.overall) else "",
        )
        for measures, p in zip(report.groups, report.group_pvalues, strict=True)
    ]


def _group_numbers(measures):
    tuned = measures.tuned[0] if measures.tuned else {}
    one_step = tuned.get("one_step") or {}
    bound = one_step.get("lower_confidence_bound")
    ece = measures.ece
    return (
        measures.overview.accuracy,
        tuned.get("calibration_error"),
        None if bound is None else root(bound),
        None if ece is None else ece.estimate,
        None if ece is None else ece.null_limit,
    )


OUTCOME_COLUMNS = (
    "group",
    "n",
    "events",
    "expected",
    "O/E ratio",
    "calibration slope",
    "C-statistic",
)


def outcome_rows(report) -> list[tuple[str, ...]]:
    """What medicine reports of each group, as OUTCOME_COLUMNS names it; none of many classes."""
    return [_outcome_row(part) for part in report.groups if part.validation]


def _outcome_row(part) -> tuple[str, ...]:
    n, found = part.overview.n_samples, part.validation
    expected = n * found["mean_prediction"][0]
    names = "observed_expected_ratio", "slope", "c_statistic"
    ends = [_interval(found[name]) if name in found else "–" for name in names]
    return part.name, f"{n:,}", f"{n * found['prevalence'][0]:,.0f}", f"{expected:,.1f}", *ends


def _interval(found) -> str:
    value, low, high = ("–" if x is None else f"{x:.2f}" for x in found)
    return f"{value} ({low} to {high})"


def outcome_reading(report) -> str:
    """What the ranges of ``outcome_rows`` are."""
    return f"Ranges in parentheses are {percent(report.settings['confidence_level'])} intervals."
