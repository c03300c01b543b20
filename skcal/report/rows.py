"""The tables of a report, which text, HTML, CSV, LaTeX and data frames show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from skcal._show import (
    Table,
    beside_limit,
    format_setting,
    method_name,
    number,
    percent,
    plain_number,
    pvalue_number,
    says_above_0,
    share,
    significant,
)
from skcal.metrics import ValidationMeasures
from skcal.report import words
from skcal.report.answer import sizes, worst_range
from skcal.report.measure import Measures, at_threshold

_N_WORST = 10  # segments that are shown
CENTRES = ("O/E", "calibration slope", "C-statistic")  # measures whose heterogeneity is estimated
_ROW_TITLES = ValidationMeasures.titles
_SHOWN_AS_1 = 5e-5  # what four decimals show as 1
_RECORD = ("part", "name", "quantity", "notion", "value", "low", "high", "pvalue", "detail")
_SUBGROUPS = ("subgroup", "n", "confidence", "accuracy", "calibration error", "p (Holm)")
_OUTCOMES = ("subgroup", "n", "predicted", "observed", "O/E ratio", "calibration error", "p (Holm)")
_OF_BINS = ("samples", "mean prediction", "frequency", "from", "to", "all bins at once from", "to")
_VALIDATION = {
    "intercept_in_the_large": "logistic intercept at slope 1; ideal 0",
    "ici": "mean distance of a spline curve from the prediction",
    "e50": "its median",
    "e90": "its 90 % quantile",
    "emax": "its maximum",
    "c_statistic": "area under the ROC curve",
    "scaled_brier_score": "1 − Brier score / that of the prevalence",
}

_HEAD = ("", "value", "limits", "meaning")
_PHRASES = {
    "O/E ratio": "observed over predicted events; ideal 1",
    "calibration slope": "below 1 overconfident, above 1 underconfident",
    "accuracy": "share of right predictions",
    "mean confidence": "equal to the accuracy if calibrated on average",
    "Brier score": "mean squared error, of discrimination too",
}
_BY_NOISE = "noise puts it above the calibration error"
_LESS_BY_NOISE = "smaller than the calibration error by noise"
_INFINITE = {
    "observed_expected_ratio": "undefined: all predictions are 0",
    "intercept_in_the_large": "undefined: predictions of exactly 0 or 1 have no finite logit",
}
_IDEAL = {"observed_expected_ratio": 1.0, "intercept_in_the_large": 0.0, "slope": 1.0}


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
    above_0: bool = False
    one_sided: bool = False
    smallest_pvalue: float = 0.0
    tolerance: float = math.inf  # to whose sides limits are rounded

    @property
    def shown(self) -> str:
        """The value as text."""
        if self.pvalue is not None:
            return pvalue_number(self.pvalue, self.smallest_pvalue)
        if isinstance(self.value, int):
            return f"{self.value:,}"
        return "–" if self.value is None else plain_number(self.value)

    @property
    def limits(self) -> str:
        """The limits as text."""
        low, high = (
            None if end is None else beside_limit(end, self.tolerance)
            for end in (self.low, self.high)
        )
        if high is None:
            return "" if low is None else f"≥ {low}"
        outside = self.value is not None and not self._lies_within(low, high)
        without = "without noise " * outside  # which is in the estimate alone
        if low is None:
            return f"{without}≤ {high}"
        tiny = self.above_0 and says_above_0(self.low or 0.0, self.value or 0.0)
        if (self.low == 0 or tiny) and float(high) > 0:
            return f"{'above 0, ' * self.above_0}{without}≤ {high}"
        return f"≥ {low}, ≤ {high}" if self.one_sided else f"{without}{low} to {high}"

    def _lies_within(self, low: str | None, high: str) -> bool:
        """Whether the value, as it is shown, is between the limits that are shown."""
        value = float(plain_number(float(self.value or 0)))
        return float(low or "-inf") <= value <= float(high)

    @property
    def with_limits(self) -> str:
        """The value, and the limits in brackets, as text."""
        return f"{self.shown} ({self.limits})" if self.limits else self.shown

    def cells(self, note: str) -> tuple[str, ...]:
        """The row of a table whose last column is a note."""
        return "  " * self.indented + self.quantity, self.shown, self.limits, note


# One set of predictions


def measures_table(measures: Measures, settings: dict, full: bool = True) -> Table:
    """All numbers of one set of predictions but those of single classes, or five rows."""
    rows = (measure_rows if full else headline_rows)(measures, settings)
    cells = [row.cells(row.detail) for row in rows]
    return Table(_HEAD, cells, "lrlp", notes=assumption_of(measures))


def assumption_of(*parts: Measures, where: str = "") -> list[str]:
    """What upper limits of calibration errors assume."""
    errors = [part.error for part in parts if part.error is not None]
    if not errors:
        return []
    widest = max(errors, key=lambda error: error.max_crossings)
    place = f" {where}" * bool(where)
    return [f"The upper error limit{place} assumes {widest.assumption}."]


def article_table(measures: Measures, settings: dict, full: bool = True) -> Table:
    """Numbers for an article and the kind of their limits; sentences about them stand below."""
    rows = (measure_rows if full else headline_rows)(measures, settings)
    if not full:
        asked = _ROW_TITLES["intercept_in_the_large"], _ROW_TITLES["c_statistic"]
        more = _validation_rows(measures, settings)
        rows += [row for row in more if row.quantity in asked]
    level = percent(settings["confidence_level"])
    cells = [row.cells(_kind_of_limits(row, level)) for row in rows]
    notes = [f"{row.quantity}: {row.detail}" for row in rows if row.detail]
    notes += assumption_of(measures)
    return Table(("quantity", "value", "limits", "note"), cells, "lrll", notes=notes)


def _kind_of_limits(row: Row, level: str) -> str:
    if row.low is None and row.high is None:
        return "" if row.pvalue is None else "p-value"
    if row.quantity == "calibration error":
        return f"each limit {level}"
    return f"{level} {'limit' if None in (row.low, row.high) else 'interval'}"


def headline_rows(measures: Measures, settings: dict) -> list[Row]:
    """Five numbers, the last of them the Brier score, and the metrics of the user."""
    brier = [
        Row(score.name, score.score, _PHRASES[score.name], score.notion)
        for score in measures.scores[:1]
    ]
    return [*_leading_rows(measures, settings), *brier, *_own_rows(measures, settings)]


def measure_rows(measures: Measures, settings: dict) -> list[Row]:
    """The rows of :func:`measures_table`."""
    spread = "variance of the probabilities"
    if any(score.notion.by_class for score in measures.scores):
        spread += ", summed over classes"
    return [
        *_leading_rows(measures, settings),
        *_test_rows(measures.test),
        Row("samples", measures.overview.n_samples),
        *_ece_rows(measures.ece, settings),
        *map(_score_row, measures.scores),
        *_validation_rows(measures, settings),
        *_net_benefit_rows(measures.at_prevalence, settings),
        *([] if measures.sharpness is None else [Row("sharpness", measures.sharpness, spread)]),
        *(row for facts in measures.tuned for row in tuned_rows(facts)),
        *_own_rows(measures, settings),
    ]


def _own_rows(measures, settings) -> list[Row]:
    """Metrics of the user."""
    detail = f"your metric; {percent(settings['confidence_level'])} bootstrap interval"
    return [Row(m.name, m.estimate, detail, m.notion, m.low, m.high) for m in measures.own]


def _leading_rows(measures, settings):
    """The error, the worst range, and two numbers about the average."""
    if measures.error is not None:
        yield _error_row(measures.error, measures)
    test, notion = measures.cutoff, settings["notion"]
    if test is not None:
        detail = worst_range(test, notion) + f"; {_BY_NOISE}" * _cutoff_is_larger(measures)
        yield Row("cutoff error", test.estimate, detail, test.notion, None, test.high)
    if measures.validation is not None:
        for name in ("observed_expected_ratio", "slope"):
            yield _validation_row(name, measures, _PHRASES[_ROW_TITLES[name]], settings)
    elif measures.ratio is not None:
        name = "observed_expected_ratio"
        phrase = _PHRASES[_ROW_TITLES[name]]
        yield _measure_row(name, measures.ratio, phrase, measures, settings)
        yield Row(_ROW_TITLES["slope"], None, _why_no_slope(measures))
    else:
        view = measures.overview
        for name, value in (("accuracy", view.accuracy), ("mean confidence", view.mean_confidence)):
            yield Row(name, value, _PHRASES[name], notion)


def _why_no_slope(measures) -> str:
    """Why the slope and the other measures of medicine are missing, which is a warning, too."""
    start = f"{words.VALIDATION}: "
    said = (text for text in measures.warnings if text.startswith(f"{start}not estimated."))
    why = next(said, "not estimated. It needs rows, which a CalibrationTable does not hold.")
    return why.removeprefix(start).rstrip(".")


def _error_row(error, measures) -> Row:
    level = percent(error.confidence_level)
    mean = "mean over the labels of the mean" if error.notion == "multi-label" else "mean"
    detail = f"{mean} difference of probability and frequency; each limit {level}"
    if not error.is_significant:
        detail += "; within noise, so it is shrunk towards 0"
    elif measures.max_error is None or error.high >= measures.tolerance:
        detail += f"; {sizes(measures.tolerance)}"
    about = detail, error.notion, error.low, error.high
    kind = {"above_0": error.is_significant, "one_sided": True, "tolerance": measures.tolerance}
    return Row("calibration error", error.estimate, *about, **kind)


def _cutoff_is_larger(measures) -> bool:
    """Whether noise makes the cutoff error larger than the error that it is a part of."""
    error, test = measures.error, measures.cutoff
    known = error is not None and test is not None and measures.notion.single
    return known and _is_larger(test.estimate, error.estimate)


def _is_larger(value: float, other: float) -> bool:
    """Whether a number that is shown is larger than another one."""
    return float(plain_number(value)) > float(plain_number(other))


def _test_rows(test):
    if test is None:
        return []
    least = test.smallest_pvalue
    parts = (f"{name} {pvalue_number(p, least)}" for name, p in test.statistic_pvalues.items())
    detail = f"p-value; of its parts, adjusted for all: {', '.join(parts)}"
    about = detail, test.notion, None, None, test.pvalue
    return [Row("test", test.pvalue, *about, smallest_pvalue=least)]


def tuned_rows(facts: dict) -> Iterator[Row]:
    """The RMS error of a search, its plug-in and one-step estimate, and the lower bound."""
    notion, squared = facts["notion"], facts["squared_error"]
    [chosen] = [fact for fact in facts["candidates"] if fact["chosen"]]
    setting = format_setting(chosen["parameters"])
    how = method_name(chosen["candidate"]) + (f" ({setting})" if setting != "-" else "")
    if len(facts["candidates"]) > 1:
        how += f", the lowest risk of {len(facts['candidates'])} candidates"
    estimate = f"root mean square; its square is {significant(squared)}"
    if facts["standard_error"] is not None:
        estimate += f" ± {significant(facts['standard_error'], 1)}"
    estimate += f"; if calibrated ≤ {plain_number(facts['calibrated_up_to'])}"
    headline = facts["calibration_error"]
    if headline and _is_larger(headline["estimate"], facts["rms_calibration_error"]):
        estimate += f"; {_LESS_BY_NOISE}"
    plug_in = root(facts["plug_in_squared_error"])
    yield Row(f"RMS calibration error, {notion}", facts["rms_calibration_error"], estimate, notion)
    yield Row("plug-in", plug_in, how, notion, indented=True)
    if facts["one_step"] is not None:
        yield from _one_step_rows(facts["one_step"], notion, facts["n_test_samples"])


def root(squared: float) -> float:
    """The root of a squared error, 0 where it is negative."""
    return math.sqrt(max(squared, 0.0))


def _one_step_rows(facts: dict, notion, n_samples: int) -> Iterator[Row]:
    """The one-step estimate, and the lower bound if it is above 0."""
    by = f"by {facts['function']}"
    if facts["standard_error"] is not None:
        spread = significant(facts["standard_error"], 1)
        square = f"{significant(facts['squared_error'])} ± {spread}"
        by += f"; its square is {square}, on {n_samples:,} test samples"
    yield Row("one-step estimate", root(facts["squared_error"]), by, notion, indented=True)
    bound = facts["lower_confidence_bound"]
    if bound is not None and bound > 0:
        level = percent(facts["confidence_level"])
        reading = f"the root mean square is at least this, at {level} confidence"
        yield Row("lower bound", root(bound), reading, notion, indented=True)


def _ece_rows(ece, settings) -> list[Row]:
    if ece is None:
        return []
    level = percent(settings["confidence_level"])
    name = f"binned ECE ({ece.n_bins} bins)"
    mean = "mean over the labels of the mean" if str(ece.notion) == "multi-label" else "mean"
    interval = f"{mean} gap of {ece.strategy} bins; {level} bootstrap interval"
    if ece.estimate > ece.high:
        interval += " of what is left without the noise in the estimate"
    limit = f"on average; the limit holds in {level} of draws"
    return [
        Row(name, ece.estimate, interval, ece.notion, ece.low, ece.high),
        Row("if calibrated", ece.null_mean, limit, ece.notion, high=ece.null_limit, indented=True),
    ]


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


def _validation_rows(measures, settings) -> Iterator[Row]:
    """The rows that medicine reports for one outcome."""
    validation = measures.validation
    if validation is not None:
        prevalence, low, high = validation.prevalence
        mean = plain_number(validation.mean_prediction.estimate)
        yield Row("prevalence", prevalence, f"mean prediction {mean}", "binary", low, high)
        for name, meaning in _VALIDATION.items():
            yield _validation_row(name, measures, meaning, settings)


def _validation_row(name, measures, meaning, settings) -> Row:
    measure, note = getattr(measures.validation, name), measures.validation.slope_note
    if name == "slope" and note:
        of_others = f"; this is the slope of the others, {meaning}"
        meaning = f"{note}{of_others * math.isfinite(measure.estimate)}"
    return _measure_row(name, measure, meaning, measures, settings)


def _measure_row(name, measure, meaning, measures, settings) -> Row:
    """A number of medicine with its interval; what is infinite is not shown, but why."""
    value, low, high = (x if math.isfinite(x) else None for x in measure)
    if value is None and name in _INFINITE:
        meaning = _INFINITE[name]
    if value is not None and not math.isnan(measure.low):
        meaning += f"; {percent(settings['confidence_level'])} interval"
        holds = measure.low <= _IDEAL.get(name, measure.low) <= measure.high
        if not holds and not measures.is_significant:
            meaning += f", {words.UNADJUSTED}"
    part = name in ("e50", "e90", "emax")
    return Row(_ROW_TITLES[name], value, meaning, "binary", low, high, indented=part)


def _net_benefit_rows(curve, settings) -> list[Row]:
    """The net benefit at the prevalence."""
    if curve is None:
        return []
    rate, value, low, high = at_threshold(curve)
    detail = (
        f"of treating from a prediction of {plain_number(rate)} on, in events per sample; treating "
        f"all or none gives 0; {percent(settings['confidence_level'])} interval"
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
    cells = [(f"{count:,}", *map(_probability, values)) for count, *values in rows]
    return Table(_OF_BINS, cells, "r" * 7)


def _probability(value: float) -> str:
    """Four decimals, or the distance from 1 of what would be shown as 1."""
    return f"1 − {1 - value:.1e}" if 0 < 1 - value < _SHOWN_AS_1 else number(value)


# Subgroups, segments, two models


def subgroups_table(report) -> Table:
    """A row for each subgroup: mean prediction, frequency and error; of events O/E, too."""
    of_events = any(part.ratio is not None for part in report.subgroups)
    rows, parts = [], sorted(report.subgroups, key=lambda part: not part.is_significant)
    for part in parts:
        view = part.overview
        error = "–" if part.error is None else _error_row(part.error, part).with_limits
        cells = [*map(share, view.averages(part.notion)), *[_shown_ratio(part)] * of_events]
        no_test = part.test is None or view.has_few_groups
        pvalue = "–" if no_test else pvalue_number(part.test.pvalue, part.test.smallest_pvalue)
        pvalue += " *" * part.is_significant
        rows.append((part.name, f"{view.n_samples:,}", *cells, error, pvalue))
    level = percent(report.settings["confidence_level"])
    note = f"Each limit alone holds with {level} confidence. p-values are adjusted for all rows."
    if of_events:
        more = f"of an error alone holds with {level} confidence; O/E has {level} intervals"
        note = f"Each limit {more}. p-values are adjusted for all rows."
    note += " A star marks significant miscalibration." * any(part.is_significant for part in parts)
    name = words.name_of_parts(report).lower().removesuffix("s")
    columns = (name, *(_OUTCOMES if of_events else _SUBGROUPS)[1:])
    notes = [*_of_first(report), note, *_without_weights(report, "The column n counts")]
    if assumption_of(*parts) != assumption_of(report.overall):
        notes += assumption_of(*parts, where="in subgroups")
    return Table(columns, rows, "l" + "r" * (len(columns) - 1), notes=notes)


def centres_table(report) -> Table:
    """O/E, slope and C of each subgroup, and what a new one of a column is expected to have."""
    rows = []
    for part in report.subgroups:
        events, measures = f"{part.overview.counts[-1]:,.0f}", part.validation
        shown = [_shown_ratio(part, False), "–", "–"]
        if measures is not None and not part.overview.has_few_groups:
            shown[1:] = [_with_limits(measures.slope), _with_limits(measures.c_statistic)]
        rows.append((part.name, events, *shown))
    for column in dict.fromkeys(one.column for one in report.heterogeneity):
        of = {one.measure: one for one in report.heterogeneity if one.column == column}
        found = [of.get(name) for name in CENTRES]
        ends = [
            "–" if one is None else _with_limits((one.estimate, one.low, one.high)) for one in found
        ]
        rows.append((f"a new {column or 'subgroup'}", "", *ends))
    level = percent(report.settings["confidence_level"])
    notes = [f"{level} intervals; those of a new subgroup are prediction intervals."]
    notes = [*_of_first(report), *notes, *_without_weights(report, "The column of events counts")]
    notes += [found.sentence() for found in report.heterogeneity]
    error = report.overall.error
    notes += [words.sentence_of_left_out(left, error) for left in report.left_out]
    return Table(("subgroup", "events", *CENTRES), rows, "lrrrr", notes=notes)


def _with_limits(measure) -> str:
    estimate, low, high = measure
    if not math.isfinite(estimate):
        return "–"
    return f"{estimate:.2f} ({low:.2f} to {min(high, 999):.2f})"


def _shown_ratio(part, why: bool = True) -> str:
    """O/E with its interval, or why it has none."""
    if part.ratio is None or not math.isfinite(part.ratio.estimate):
        return "–"
    if part.overview.has_few_groups:
        n_groups = part.overview.n_groups
        groups = "1 group" if n_groups == 1 else f"{n_groups} groups"
        return f"{part.ratio.estimate:.2f}" + f" ({groups}, too few for a test)" * why
    return _with_limits(part.ratio)


def side_by_side(parts, settings, most=4) -> list[Table]:
    """All numbers of some sets of predictions, a column for each, so many in a table."""
    tables, level = [], percent(settings["confidence_level"])
    for first in range(0, len(parts), most):
        shown = parts[first : first + most]
        columns = [measure_rows(part, settings) for part in shown]
        names = list(dict.fromkeys(row.quantity for rows in columns for row in rows))
        cells: list[dict] = [{row.quantity: row.with_limits for row in rows} for rows in columns]
        lines = [(name, *(of_part.get(name, "–") for of_part in cells)) for name in names]
        head = ("", *(part.name for part in shown))
        notes = [f"Each limit (≥ or ≤) alone holds with {level} confidence; others are intervals."]
        tables.append(Table(head, lines, "l" + "r" * len(shown), notes=notes))
    return tables


def segments_table(report) -> Table:
    """The worst of the segments of a report."""
    test = report.segments
    table = test.worst(_N_WORST)
    title = words.segment_verdict(test, len(table.rows), report.settings["confidence_level"])
    less = [one.name for one in words.segments_that_differ(report) if not one.is_worse]
    lines = [(*row[:-1], row[-1] + " †" * (row[0] in less)) for row in table.rows]
    marked = any(row[0] in less for row in table.rows)
    notes = [*_of_first(report), *table.notes]
    notes += ["† marks segments that are wrong by less than elsewhere, or right."] * marked
    return replace(table, rows=lines, title=title, notes=notes)


def _of_first(report) -> list[str]:
    """Of two models, whose rows a table has."""
    if report.comparison is None:
        return []
    first, second = (model.name for model in words.models_of(report))
    return [f"All rows are of {first}, none of {second}."]


def _without_weights(report, what: str) -> list[str]:
    """What is counted without the weights, by which all other numbers are."""
    weighted = report.overall.overview.effective_size is not None
    return [f"{what} samples without weights; all other numbers are weighted."] * weighted


def comparison_table(report, full: bool = True) -> Table:
    """Two models side by side, with a phrase about each quantity."""
    level = percent(report.settings["confidence_level"])
    first, second = words.models_of(report)
    larger = [_cutoff_is_larger(model) for model in (first, second)]
    whose = "" if all(larger) else f"{'first' if larger[0] else 'second'} model: "
    phrases = {
        **_PHRASES,
        "calibration error": f"each limit {level}",
        "cutoff error": f"{whose}{_BY_NOISE}" * any(larger),
    }
    both = headline_rows(first, report.settings), headline_rows(second, report.settings)
    rows = [
        (row.quantity, row.with_limits, other.with_limits, phrases.get(row.quantity, ""))
        for row, other in zip(*both, strict=False)
        if row.quantity == other.quantity
    ]
    for score, other in zip(first.scores[1:], second.scores[1:], strict=False):
        remark = "of discrimination too" + "; summed over classes" * score.notion.by_class
        rows.append((score.name, plain_number(score.score), plain_number(other.score), remark))
    return Table(
        ("", first.name, second.name, ""),
        rows,
        "lrrp",
        str(words.answer_of_comparison(report)),
        [*assumption_of(first, second), *(words.paired_lines(report) if full else [])],
    )


# All numbers in full


def records_table(report) -> Table:
    """A row for each number of all samples, groups and the second model, and paired test."""
    parts = [("all", report.overall), *(("subgroup", part) for part in report.subgroups)]
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
    if report.target is not None:
        found = report.target
        numbers = (found.estimate, found.low, found.high, None)
        about = ("target", report.overall.name, "calibration error", found.notion)
        rows.append((*about, *numbers, f"{found.shift} shift"))
    if report.comparison is not None:
        name = " minus ".join(model.name for model in words.models_of(report))
        for test in [*report.comparison.tests, *report.comparison.score_tests]:
            numbers = (test.estimate, test.low, test.high, test.pvalue)
            about = ("paired", name, f"{test.measure}, difference", test.notion)
            rows.append((*about, *numbers, words.how_tested(test)))
    return Table(_RECORD, rows)
