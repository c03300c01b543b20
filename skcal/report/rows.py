"""The tables of a report, which text, HTML, CSV, LaTeX and data frames show."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skcal._show import Table, format_setting, number, percent
from skcal.metrics.validation import MEASURE_NAMES
from skcal.report.measure import Measures
from skcal.report.words import (
    MEDIAN_WIDTH,
    comparison_verdict,
    how_tested,
    paired_lines,
    powerless,
    pvalue_text,
    segment_verdict,
)

N_WORST = 10  # segments that are shown
_BIASED = ", which leaves out what noise adds to the estimate"
_NO_POWER = "too few samples to show an error as large as that of all"
_RECORD = ("part", "name", "quantity", "notion", "value", "low", "high", "pvalue", "detail")
_GROUPS = ("group", "n", "accuracy", "tuned", "at least", "ECE", "if calibrated ≤", "p (Holm)")
_OUTCOMES = (
    "group",
    "n",
    "events",
    "expected",
    "O/E ratio",
    "calibration slope",
    "C-statistic",
)
_SEGMENTS = ("segment", "samples", "predicted", "observed", "95 % interval", "p-value")
_BINS = (
    "samples",
    "mean prediction",
    "frequency",
    "from",
    "to",
    "if calibrated from",
    "to",
)
_VALIDATION = {
    "observed_expected_ratio": "observed over expected; above 1 predictions are low",
    "intercept_in_the_large": "logistic intercept at slope 1; ideal 0",
    "slope": "below 1 predictions are too extreme",
    "ici": "mean distance of a spline curve from the prediction",
    "e50": "its median",
    "e90": "its 90 % quantile",
    "emax": "its maximum",
    "c_statistic": "area under the ROC curve",
    "scaled_brier_score": "1 − Brier score / that of the prevalence",
}


@dataclass(frozen=True)
class Row:
    """One number; ``part`` of the row above it if indented."""

    quantity: str
    value: float | int | None
    detail: str = ""
    notion: str = ""
    low: float | None = None
    high: float | None = None
    pvalue: float | None = None
    indented: bool = False

    @property
    def shown(self) -> str:
        """The value as text."""
        return f"{self.value:,}" if isinstance(self.value, int) else number(self.value)


# One set of predictions


def measures_table(measures: Measures, settings: dict) -> Table:
    """All numbers of one set of predictions but those of single classes."""
    rows = [
        ("  " * row.indented + row.quantity, row.shown, row.detail)
        for row in measure_rows(measures, settings)
    ]
    return Table(("", "", ""), rows, "lrp")


def measure_rows(measures: Measures, settings: dict) -> list[Row]:
    """The rows of :func:`measures_table`."""
    level = settings["confidence_level"]
    rows = _overview_rows(measures.overview)
    for facts in measures.tuned:
        rows += tuned_rows(facts)
    if measures.ece is not None:
        rows += _ece_rows(measures.ece, level)
    if measures.without_bins is not None:
        rows.append(_row_without_bins(measures.without_bins))
    if measures.mce is not None:
        rows.append(_mce_row(measures.mce, measures.ece))
    rows += [_skce_row(test) for test in measures.skce]
    rows += [_score_row(score) for score in measures.scores]
    rows += _validation_rows(measures.validation, level)
    rows += _net_benefit_rows(measures.at_prevalence, level)
    what = "variance of the probabilities"
    if any(score.notion.by_class for score in measures.scores):
        what += ", summed over classes"
    return [*rows, Row("sharpness", measures.sharpness, what)]


def _overview_rows(overview):
    gap = overview.mean_confidence - overview.accuracy
    side = "above" if gap >= 0 else "below"
    return [
        Row("samples", overview.n_samples),
        Row("classes", len(overview.classes)),
        Row("accuracy", overview.accuracy),
        Row(
            "mean confidence",
            overview.mean_confidence,
            f"{number(abs(gap))} {side} the accuracy",
        ),
    ]


def tuned_rows(facts: dict) -> list[Row]:
    """The estimate of a search, its plug-in and one-step estimate, and the lower bound."""
    notion, squared = facts["notion"], facts["squared_error"]
    [chosen] = [fact for fact in facts["candidates"] if fact["chosen"]]
    setting = format_setting(chosen["parameters"])
    how = chosen["candidate"] + (f" ({setting})" if setting != "-" else "")
    if len(facts["candidates"]) > 1:
        how += f", the lowest risk of {len(facts['candidates'])} candidates"
    estimate = f"root mean square; its square is {squared:.2g}"
    if facts["standard_error"] is not None:
        estimate += f" ± {facts['standard_error']:.1g}"
    estimate += f", by {facts['by']}; if calibrated ≤ {number(facts['calibrated_up_to'])}"
    plug_in = root(facts["plug_in_squared_error"])
    rows = [
        Row(f"{notion} error, tuned", facts["calibration_error"], estimate, notion),
        Row("plug-in", plug_in, how, notion, indented=True),
    ]
    return [*rows, *_one_step_rows(facts)]


def root(squared: float) -> float:
    """The root of a squared error, 0 where it is negative."""
    return math.sqrt(max(squared, 0.0))


def _one_step_rows(facts: dict) -> list[Row]:
    """The one-step estimate and the lower bound, where there are any."""
    notion, one_step = facts["notion"], facts["one_step"]
    if one_step is None:
        return []
    by = f"by {one_step['function']}"
    if one_step["standard_error"] is not None:
        square = f"{one_step['squared_error']:.2g} ± {one_step['standard_error']:.1g}"
        by += f"; its square is {square}, on {facts['n_test_samples']:,} test samples"
    rows = [Row("one-step estimate", root(one_step["squared_error"]), by, notion, indented=True)]
    bound = one_step["lower_confidence_bound"]
    if bound is None:
        return rows
    level = percent(one_step["confidence_level"])
    reading = f"the error is at least this, at {level} confidence"
    if bound <= 0:
        shown = f"these {facts['n_test_samples']:,} test samples show no miscalibration"
        split = facts["n_test_samples"] < facts["n_samples"]
        others = "use all samples" if split else "may see more"
        reading = f"at {level} confidence {shown}; the tests below {others}"
    return [*rows, Row("lower bound", root(bound), reading, notion, indented=True)]


def _ece_rows(ece, level):
    bins = f"mean gap of {ece.n_bins} {ece.strategy} bins"
    interval = f"{percent(level)} basic bootstrap interval [{number(ece.low)}, {number(ece.high)}]"
    if not ece.low <= ece.estimate <= ece.high:
        interval += _BIASED
    limit = f"on average, ≤ {number(ece.null_limit)} in {percent(level)} of draws"
    return [
        Row("ECE", ece.estimate, f"{bins}; {interval}", ece.notion, ece.low, ece.high),
        Row(
            "if calibrated",
            ece.null_mean,
            f"{limit}; {pvalue_text(ece.pvalue)}",
            ece.notion,
            high=ece.null_limit,
            pvalue=ece.pvalue,
            indented=True,
        ),
    ]


def _row_without_bins(facts):
    detail = "mean absolute error by cross-fitted corrections"
    if facts["standard_error"] is not None:
        detail += f", ± {number(facts['standard_error'])} (s.e.)"
    bound = facts["lower_confidence_bound"]
    if bound is not None and bound > 0:
        detail += f"; at least {number(bound)}, at {percent(facts['confidence_level'])} confidence"
    if facts["reading"]:
        detail += f"; {facts['reading']}"
    return Row(facts["name"], facts["estimate"], detail, facts["notion"], bound)


def _mce_row(mce, ece):
    where = (
        f"largest gap of {mce.n_bins} {mce.strategy} bins: from {mce.left:.3g} to {mce.right:.3g}"
    )
    gap = f"{mce.count:,} samples, predicted {mce.prediction:.3f}, observed {mce.frequency:.3f}"
    bins = "bin" if mce.n_left_out == 1 else "bins"
    guard = f"{mce.n_left_out} {bins} of fewer than {mce.min_bin_samples} samples left out"
    if ece is not None and ece.estimate > mce.estimate:
        guard += ", whose larger gaps count in the ECE"
    return Row("MCE", mce.estimate, f"{where}, {gap}; {guard}", mce.notion)


def _skce_row(test):
    # The units of an SKCE are those of its kernel.
    width = "the width that decides" if "widths" in test.method else MEDIAN_WIDTH
    detail = f"{pvalue_text(test.pvalue)}; {test.method}; Laplacian kernel of {width}"
    return Row(
        f"SKCE ({test.notion})", float(test.estimate), detail, test.notion, pvalue=test.pvalue
    )


def _score_row(score):
    if score.miscalibration is None:
        return Row(score.name, score.score, "of the whole vector", score.notion)
    discrimination = round(score.discrimination, 12) + 0.0  # no "− -1e-16"
    parts = (
        f"= {number(score.miscalibration)} miscalibration − {number(discrimination)} "
        f"discrimination + {number(score.uncertainty)} uncertainty"
    )
    if score.notion.by_class:
        parts += "; summed over classes"
    return Row(score.name, score.score, parts, score.notion)


def _validation_rows(validation, level) -> list[Row]:
    """What medicine reports of one outcome."""
    if validation is None:
        return []
    prevalence, low, high = validation.prevalence
    mean = number(validation.mean_prediction.estimate)
    detail = f"mean prediction {mean}; {percent(level)} interval [{number(low)}, {number(high)}]"
    rows = [Row("prevalence", prevalence, detail, "binary", low, high)]
    for name, meaning in _VALIDATION.items():
        measure = getattr(validation, name)
        value, low, high = (x if math.isfinite(x) else None for x in measure)
        ends = f"[{'−∞' if low is None else number(low)}, {'∞' if high is None else number(high)}]"
        detail = f"{meaning}; {percent(level)} interval {ends}"
        if measure.estimate > measure.high:
            detail += _BIASED
        part = name in ("e50", "e90", "emax")
        rows.append(Row(MEASURE_NAMES[name], value, detail, "binary", low, high, indented=part))
    return rows


def _net_benefit_rows(curve, level) -> list[Row]:
    """The net benefit at the prevalence, the only threshold of this decision curve."""
    if curve is None:
        return []
    columns = (curve.thresholds, curve.net_benefit, curve.low, curve.high)
    rate, value, low, high = (float(column[0]) for column in columns)
    detail = (
        f"of treating from a prediction of {number(rate)} on, in events per sample; treating all "
        f"or none gives 0; {percent(level)} interval [{number(low)}, {number(high)}]"
    )
    return [Row("net benefit at the prevalence", value, detail, "binary", low, high)]


def classes_table(measures: Measures) -> Table:
    """The base rate and the mean prediction of each class."""
    view = measures.overview
    rows = zip(view.classes, view.base_rates, view.mean_predictions, strict=True)
    cells = [(str(label), number(rate), number(mean)) for label, rate, mean in rows]
    return Table(("class", "base rate", "mean prediction"), cells, "lrr")


def bins_table(panel) -> Table:
    """The bins of a reliability diagram."""
    names = ("prediction", "frequency", "low", "high", "band_low", "band_high")
    rows = zip(panel.count, *(getattr(panel, name) for name in names), strict=True)
    return Table(_BINS, [(f"{count:,}", *map(number, values)) for count, *values in rows], "r" * 7)


# Groups, segments, two models


def groups_table(report) -> Table:
    """A row for each group."""
    rows, remarks = [], {}
    for k, (part, p) in enumerate(zip(report.groups, report.group_pvalues, strict=True)):
        numbers = map(number, _group_numbers(part))
        pvalue = "–" if p is None else f"{p:.2g}"
        rows.append((part.name, f"{part.overview.n_samples:,}", *numbers, pvalue))
        if powerless(part, report.overall):
            remarks[k] = _NO_POWER
    return Table(_GROUPS, rows, "l" + 7 * "r", remarks=remarks)


def _group_numbers(part):
    tuned = part.tuned[0] if part.tuned else {}
    bound = (tuned.get("one_step") or {}).get("lower_confidence_bound")
    ece = part.ece
    return (
        part.overview.accuracy,
        tuned.get("calibration_error"),
        None if bound is None else root(bound),
        None if ece is None else ece.estimate,
        None if ece is None else ece.null_limit,
    )


def outcomes_table(report) -> Table:
    """What medicine reports of each group; without rows where there are many classes."""
    rows = []
    for part in report.groups:
        if part.validation is not None:
            n, measures = part.overview.n_samples, part.validation
            events = n * measures.prevalence.estimate, n * measures.mean_prediction.estimate
            names = "observed_expected_ratio", "slope", "c_statistic"
            ends = [_range_text(getattr(measures, name)) for name in names]
            rows.append((part.name, f"{n:,}", f"{events[0]:,.0f}", f"{events[1]:,.1f}", *ends))
    level = percent(report.settings["confidence_level"])
    return Table(
        _OUTCOMES, rows, "lrrrrrr", notes=[f"Ranges in parentheses are {level} intervals."]
    )


def _range_text(measure) -> str:
    value, low, high = (f"{x:.2f}" if math.isfinite(x) else "–" for x in measure)
    return f"{value} ({low} to {high})"


def segments_table(test) -> Table:
    """The worst of the segments of a test."""
    rows = [
        (
            segment.name,
            f"{segment.n_samples:,}",
            number(segment.predicted),
            number(segment.observed),
            f"{number(segment.low)} to {number(segment.high)}",
            f"{segment.pvalue:.2g}",
        )
        for segment in test.segments[:N_WORST]
    ]
    return Table(_SEGMENTS, rows, "lrrrrr", title=segment_verdict(test, len(rows)))


def comparison_table(report) -> Table:
    """Two models side by side, with a remark about each quantity."""
    comparison = report.comparison
    first, second = report.overall, comparison.second
    rows = []
    for same in comparison.estimators:
        by = f"both by {same.function}" + (f" ({same.parameters})" * (same.parameters != "-"))
        shown, others = ({row.quantity: row for row in tuned_rows(one)} for one in same.errors)
        for name, row in shown.items():
            remark = f"{by}, the lowest sum of risks" if not row.indented else ""
            quantity = f"{same.notion} {name}" if row.indented else name
            other = others[name].shown if name in others else "–"
            rows.append((quantity, row.shown, other, remark))
    if first.ece is not None and second.ece is not None:
        bins = f"the same {first.ece.n_bins} {first.ece.strategy} bins"
        rows.append(("ECE", number(first.ece.estimate), number(second.ece.estimate), bins))
        limits = number(first.ece.null_limit), number(second.ece.null_limit)
        rows.append(("ECE if calibrated, at most", *limits, "each with its own predictions"))
    for score, other in zip(first.scores, second.scores, strict=False):
        remark = "also of discrimination" + "; summed over classes" * score.notion.by_class
        rows.append((score.name, number(score.score), number(other.score), remark))
    accuracies = number(first.overview.accuracy), number(second.overview.accuracy)
    return Table(
        ("", first.name, second.name, ""),
        [*rows, ("accuracy", *accuracies, "")],
        "lrrp",
        comparison_verdict(report),
        paired_lines(report),
    )


# All numbers in full


def records_table(report) -> Table:
    """A row for each number of all samples, groups and the second model, and paired test."""
    parts = [("all", report.overall), *(("group", part) for part in report.groups)]
    if report.comparison is not None:
        parts.append(("second", report.comparison.second))
    rows = []
    for part, measures in parts:
        above = ""
        for row in measure_rows(measures, report.settings):
            above = above if row.indented else row.quantity
            quantity = f"{above}: {row.quantity}" if row.indented else row.quantity
            numbers = (row.value, row.low, row.high, row.pvalue)
            rows.append((part, measures.name, quantity, row.notion, *numbers, row.detail))
    if report.comparison is not None:
        name = f"{report.overall.name} minus {report.comparison.second.name}"
        for test in [*report.comparison.tests, *report.comparison.score_tests]:
            numbers = (test.estimate, test.low, test.high, test.pvalue)
            about = ("paired", name, f"{test.measure}, difference", test.notion)
            rows.append((*about, *numbers, how_tested(test)))
    return Table(_RECORD, rows)
