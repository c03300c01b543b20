"""Centres: how their O/E, slope and C differ, and what a recalibration leaves in one left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skcal.displays import draw as drawing
from skcal.metrics.random_effects import (
    Heterogeneity,
    heterogeneity_of_limits,
    heterogeneity_of_ratios,
)
from skcal.report.compare import columns_of, sample_of, subgroups_of
from skcal.report.findings import Gain, gain_of, recalibrated
from skcal.report.measure import Measures
from skcal.sample import Sample

_FEWEST_CENTRES = 5
_MARGIN, _WIDEST = 0.05, 3.0  # beside what a plot shows; of the median, an interval that it holds


def heterogeneity(
    by, rows: Sample, sample: Sample, subgroups: list[Measures], level: float
) -> list[Heterogeneity]:
    """How O/E, slope and C differ between the subgroups of each column that makes at least five."""
    if not sample.notion.of_positive_class:
        return []
    found, measured = [], iter(subgroups)
    for name, column in columns_of(by).items():
        parts = subgroups_of(column, len(rows.weight), rows.weight)
        of_column = [next(measured).validation for _ in parts]
        if len(parts) < _FEWEST_CENTRES:
            continue
        events = [_events(sample_of(sample, part)) for _, part in parts]
        observed, expected, variance = np.transpose(events)
        found.append(heterogeneity_of_ratios(name, observed, expected, variance, level))
        for measure_name, field in (("calibration slope", "slope"), ("C-statistic", "c_statistic")):
            values = [getattr(part, field) for part in of_column if part is not None]
            known = [value for value in values if np.isfinite(value).all()]
            if len(known) >= _FEWEST_CENTRES:
                estimate, low, high = np.transpose(known)
                about = name, measure_name, estimate, low, high, level
                found.append(heterogeneity_of_limits(*about))
    return [part for part in found if part is not None]


@dataclass(frozen=True)
class LeftOut:
    """What a recalibration leaves in the subgroups of a column that it was not fitted to.

    Attributes
    ----------
    column : str
    n_subgroups : int
    gain : Gain
        The calibration error of all predictions, each recalibrated by the other subgroups.
    before, after : tuple of two float
        The smallest and the largest O/E ratio of a subgroup.
    """

    column: str
    n_subgroups: int
    gain: Gain
    before: tuple[float, float]
    after: tuple[float, float]


def leave_out(by, rows: Sample, sample: Sample, error) -> list[LeftOut]:
    """Recalibrate each subgroup of a column by the others, if there are at least five.

    That is of use where the error of all is significant.
    """
    if not (sample.notion.of_positive_class and error is not None and error.is_significant):
        return []
    found = []
    for name, column in columns_of(by).items():
        parts = subgroups_of(column, len(rows.weight), rows.weight)
        if len(parts) < _FEWEST_CENTRES:
            continue
        blocks = np.empty(len(sample.codes), dtype=np.intp)
        for k, (_, part) in enumerate(parts):
            blocks[part] = k
        proba = recalibrated(sample, blocks)
        after = sample._replace(proba=proba, logits=None)
        ranges = []
        for one in (sample, after):
            ratios = [events[0] / events[1] for events in (_events(one.take(p)) for _, p in parts)]
            ranges.append((min(ratios), max(ratios)))
        found.append(LeftOut(name, len(parts), gain_of(proba, sample, error), *ranges))
    return found


def _events(sample: Sample) -> tuple[float, float, float]:
    """Events that were observed, that were expected, and the variance of the first."""
    [problem] = sample.problems()
    weight, happened = problem.weight / problem.weight.mean(), problem.outcomes[:, 0]
    rate = np.average(happened, weights=weight)
    variance = sample.groups.variance_of_sum(weight * (happened - rate))
    return weight @ happened, weight @ problem.features[:, 0], float(variance)


def draw_forest(axis, report, measure: str) -> None:
    """A row for each subgroup with its interval of a measure, and the prediction intervals."""
    rows = [(part.name, _ends(part, measure), drawing.BLUE, 1.5) for part in report.subgroups]
    for one in report.heterogeneity:
        if one.measure == measure:
            ends = one.estimate, one.low, one.high
            rows.append((f"a new {one.column or 'subgroup'}", ends, drawing.GREY, 5))
    rows = [row for row in rows if np.isfinite(row[1]).all()]
    for k, (_, (estimate, low, high), colour, width) in enumerate(rows):
        axis.hlines(k, low, high, color=colour, linewidth=width, zorder=2)
        axis.plot(estimate, k, "o", color=drawing.ink(axis), markersize=4, zorder=3)
    widths = np.array([high - low for _, (_, low, high), *_ in rows])
    usual = widths <= _WIDEST * np.median(widths)  # the others may go on beyond the axis
    usual[[colour == drawing.GREY for _, _, colour, _ in rows]] = True
    shown = [
        end for row, whole in zip(rows, usual, strict=True) for end in row[1][: 3 if whole else 1]
    ]
    if measure != "C-statistic":
        shown.append(1.0)
        axis.axvline(1, color=drawing.GREY, linewidth=1, linestyle="--", zorder=1)
    margin = _MARGIN * (max(shown) - min(shown)) + 1e-3
    axis.set_xlim(min(shown) - margin, max(shown) + margin)
    axis.locator_params(axis="x", nbins=5)
    drawing.name_rows(axis, drawing.as_labels([name for name, *_ in rows], 16), fontsize="medium")
    axis.set_xlabel(measure)


def _ends(part: Measures, measure: str) -> tuple[float, float, float]:
    """The estimate and the interval of a measure; NaN if there is none."""
    unknown = (np.nan,) * 3
    if measure == "O/E":
        return part.ratio or unknown
    name = "slope" if measure == "calibration slope" else "c_statistic"
    return unknown if part.validation is None else getattr(part.validation, name)
