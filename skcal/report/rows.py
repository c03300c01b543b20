"""A report as rows of a table, which text, HTML and data frame show."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from skcal._show import format_setting, number, percent
from skcal.metrics.validation import MEASURE_NAMES
from skcal.report.cautions import STANDING
from skcal.report.parts import Measures

BIASED = ", which leaves out what noise adds to the estimate"


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


def pvalue(value: float) -> str:
    """``p = 0.012``."""
    return f"p = {value:.2g}"


def root(squared: float) -> float:
    """The root of a squared error, 0 where it is negative."""
    return math.sqrt(max(squared, 0.0))


def rows_of(measures: Measures, settings: dict) -> list[Row]:
    """All numbers of one set of predictions but those of single classes."""
    level = settings["confidence_level"]
    rows = _overview(measures.overview)
    for facts in measures.tuned:
        rows += tuned_rows(facts)
    if measures.ece is not None:
        rows += _ece(measures.ece, level)
    if measures.without_bins is not None:
        rows.append(_without_bins(measures.without_bins))
    if measures.mce is not None:
        rows.append(_mce(measures.mce, measures.ece))
    rows += [
        Row(
            f"SKCE ({part.notion})",
            part.estimate,
            f"{pvalue(part.pvalue)}; {part.method}; {_kernel(part.method)}",
            part.notion,
            pvalue=part.pvalue,
        )
        for part in measures.skce
    ]
    rows += [_score(part) for part in measures.scores]
    rows += _validation(measures.validation or {}, level)
    rows += _net_benefit(measures.decision or {}, level)
    what = "variance of the probabilities"
    if any(part.notion.by_class for part in measures.scores):
        what += ", summed over classes"
    return [*rows, Row("sharpness", measures.sharpness, what)]


def _kernel(method: str) -> str:
    """The kernel of ``skce_test``, whose units those of an SKCE are."""
    return f"Laplacian kernel of {'the width that decides' if 'widths' in method else MEDIAN_WIDTH}"


def records_of(measures: Measures, settings: dict) -> list[dict]:
    """The rows as dicts for a data frame; parts carry the name of the row above them."""
    records, above = [], ""
    for row in rows_of(measures, settings):
        above = above if row.indented else row.quantity
        quantity = f"{above}: {row.quantity}" if row.indented else row.quantity
        names = ("notion", "value", "low", "high", "pvalue", "detail")
        records.append({"quantity": quantity} | {name: getattr(row, name) for name in names})
    return records


def _overview(overview):
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
    [chosen] = [one for one in facts["candidates"] if one["chosen"]]
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


def _ece(ece, level):
    bins = f"mean gap of {ece.n_bins} {ece.strategy} bins"
    interval = f"{percent(level)} basic bootstrap interval [{number(ece.low)}, {number(ece.high)}]"
    if not ece.low <= ece.estimate <= ece.high:
        interval += BIASED
    limit = f"on average, ≤ {number(ece.null_limit)} in {percent(level)} of draws"
    return [
        Row("ECE", ece.estimate, f"{bins}; {interval}", ece.notion, ece.low, ece.high),
        Row(
            "if calibrated",
            ece.null_mean,
            f"{limit}; {pvalue(ece.pvalue)}",
            ece.notion,
            high=ece.null_limit,
            pvalue=ece.pvalue,
            indented=True,
        ),
    ]


def _without_bins(facts):
    detail = "mean absolute error by cross-fitted corrections"
    if facts["standard_error"] is not None:
        detail += f", ± {number(facts['standard_error'])} (s.e.)"
    bound = facts["lower_confidence_bound"]
    if bound is not None and bound > 0:
        detail += f"; at least {number(bound)}, at {percent(facts['confidence_level'])} confidence"
    if facts["reading"]:
        detail += f"; {facts['reading']}"
    return Row(facts["name"], facts["estimate"], detail, facts["notion"], bound)


def _mce(mce, mean):
    where = (
        f"largest gap of {mce.n_bins} {mce.strategy} bins: from {mce.left:.3g} to {mce.right:.3g}"
    )
    gap = f"{mce.count:,} samples, predicted {mce.prediction:.3f}, observed {mce.frequency:.3f}"
    bins = "bin" if mce.n_left_out == 1 else "bins"
    guard = f"{mce.n_left_out} {bins} of fewer than {mce.min_bin_samples} samples left out"
    if mean is not None and mean.estimate > mce.estimate:
        guard += ", whose larger gaps count in the ECE"
    return Row("MCE", mce.estimate, f"{where}, {gap}; {guard}", mce.notion)


def _score(part):
    if part.miscalibration is None:
        return Row(part.name, part.score, "of the whole vector", part.notion)
    discrimination = round(part.discrimination, 12) + 0.0  # no "− -1e-16"
    parts = (
        f"= {number(part.miscalibration)} miscalibration − {number(discrimination)} "
        f"discrimination + {number(part.uncertainty)} uncertainty"
    )
    if part.notion.by_class:
        parts += "; summed over classes"
    return Row(part.name, part.score, parts, part.notion)


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


def _validation(found: dict, level) -> list[Row]:
    """What medicine reports of one outcome."""
    rows = []
    if found:
        prevalence, low, high = found["prevalence"]
        mean = number(found["mean_prediction"][0])
        detail = (
            f"mean prediction {mean}; {percent(level)} interval [{number(low)}, {number(high)}]"
        )
        rows.append(Row("prevalence", prevalence, detail, "binary", low, high))
    for name, meaning in _VALIDATION.items():
        if name in found:
            value, low, high = found[name]
            ends = f"[{_end(low, '−∞')}, {_end(high, '∞')}]"
            indented = name in ("e50", "e90", "emax")
            detail = f"{meaning}; {percent(level)} interval {ends}"
            if high is not None and value > high:
                detail += BIASED
            rows.append(
                Row(MEASURE_NAMES[name], value, detail, "binary", low, high, indented=indented)
            )
    return rows


def _net_benefit(decision: dict, level) -> list[Row]:
    if not decision:
        return []
    rate, value, low, high = decision["at_prevalence"]
    detail = (
        f"of treating from a prediction of {number(rate)} on, in events per sample; treating all "
        f"or none gives 0; {percent(level)} interval [{number(low)}, {number(high)}]"
    )
    return [Row("net benefit at the prevalence", value, detail, "binary", low, high)]


def _end(value, infinite) -> str:
    return infinite if value is None else number(value)


def class_rows(measures: Measures) -> list[tuple]:
    """Class, base rate and mean prediction."""
    view = measures.overview
    return list(zip(view.classes, view.base_rates, view.mean_predictions, strict=True))


MEDIAN_WIDTH = "the median width"


def heading(report) -> str:
    """One line about the samples."""
    view = report.overall.overview
    return (
        f"{view.n_samples:,} predictions of {len(view.classes)} classes, {report.notion} "
        "calibration unless said"
    )


def how_made(report) -> str:
    """What repeats the report."""
    settings = report.settings
    searched = ""
    if report.n_searched < report.overall.overview.n_samples:
        searched = (
            f" Tuned errors are estimated on {report.n_searched:,} of the samples, drawn at "
            "random (max_search_samples)."
        )
    return (
        f"skcal {report.version}, random_state={settings['random_state']}, "
        f"{settings['n_resamples']} resamples.{searched}"
    )


def all_warnings(report, groups: bool = True) -> list[str]:
    """Warnings of every part, those of groups and of the second model by name."""
    found = list(report.overall.warnings)
    others = list(report.groups) if groups else []
    if report.comparison is not None:
        others.append(report.comparison.second)
        found += report.comparison.warnings
    return [*dict.fromkeys([*found, *by_kind(others)]), STANDING]


def by_kind(others) -> list[str]:
    """The warnings of groups, once for each kind: they differ in numbers alone."""
    kinds: dict[str, list] = {}
    for measures in others:
        for text in measures.warnings:
            kinds.setdefault(re.sub(r"[\d.,]*\d", "#", text), []).append((measures.name, text))
    found = []
    for same in kinds.values():
        name, text = same[0]
        more = len(same) - 1
        also = f" (and alike in {more} more)" if more else ""
        found.append(f"{name}{also}: {text}")
    return found
