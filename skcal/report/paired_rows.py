"""Rows and sentences that set two models side by side."""

from __future__ import annotations

from skcal._show import number, percent
from skcal.hypothesis_tests import adjust_pvalues
from skcal.report.rows import MEDIAN_WIDTH, pvalue, tuned_rows


def comparison_rows(report) -> list[tuple[str, str, str, str]]:
    """Quantity, first model, second model, remark."""
    comparison = report.comparison
    first, second = report.overall, comparison.second
    rows = []
    for same in comparison.estimators:
        by = f"both by {same.function}" + (f" ({same.parameters})" * (same.parameters != "-"))
        tables = [{row.quantity: row for row in tuned_rows(facts)} for facts in same.errors]
        for name, row in tables[0].items():
            remark = f"{by}, the lowest sum of risks" if not row.indented else ""
            quantity = f"{same.notion} {name}" if row.indented else name
            other = tables[1].get(name)
            rows.append((quantity, row.shown, "–" if other is None else other.shown, remark))
    if first.ece is not None and second.ece is not None:
        bins = f"the same {first.ece.n_bins} {first.ece.strategy} bins"
        rows.append(("ECE", number(first.ece.estimate), number(second.ece.estimate), bins))
        limits = number(first.ece.null_limit), number(second.ece.null_limit)
        rows.append(("ECE if calibrated, at most", *limits, "each with its own predictions"))
    for one, other in zip(first.scores, second.scores, strict=False):
        both = "also of discrimination" + "; summed over classes" * one.notion.by_class
        rows.append((one.name, number(one.score), number(other.score), both))
    accuracies = number(first.overview.accuracy), number(second.overview.accuracy)
    return [*rows, ("accuracy", *accuracies, "")]


def verdict(report) -> str:
    """Which model is better calibrated, by the paired tests together."""
    names, tests = _compared(report), report.comparison.tests
    if not tests:
        return "Which model is better calibrated was not tested."
    level = 1 - report.settings["confidence_level"]
    adjusted = adjust_pvalues([test.pvalue for test in tests])
    how = f"paired tests, adjusted by Holm's method over {len(tests)}"
    evidence: list[list[str]] = [[], []]
    for test, p in zip(tests, adjusted, strict=True):
        if p <= level:
            better = int(test.estimate > 0)
            evidence[better].append(f"{test.notion} {test.measure}, {pvalue(p)}")
    if all(evidence):
        found = "; ".join(
            f"{name} by {' and '.join(shown)}" for name, shown in zip(names, evidence, strict=True)
        )
        return f"Which model is better calibrated depends on the measure: {found} ({how})."
    if not any(evidence):
        return (
            f"Neither model is shown to be better calibrated: the smallest p-value is "
            f"{adjusted.min():.2g} ({how})."
        )
    better = int(bool(evidence[1]))
    return f"{names[better]} is better calibrated: {' and '.join(evidence[better])} ({how})."


def _compared(report) -> tuple[str, str]:
    return report.overall.name, report.comparison.second.name


def paired_records(report) -> list[dict]:
    """The paired tests as dicts for a data frame."""
    name = " minus ".join(_compared(report))
    return [
        {
            "part": "paired",
            "name": name,
            "quantity": f"{test.measure}, difference",
            "notion": test.notion,
            "value": test.estimate,
            "low": test.low,
            "high": test.high,
            "pvalue": test.pvalue,
            "detail": _how(test),
        }
        for test in _tests(report)
    ]


def paired_lines(report) -> list[str]:
    """What the paired tests say, those of scores last."""
    level, names = percent(report.settings["confidence_level"]), " minus ".join(_compared(report))
    of_scores = report.comparison.score_tests
    return [
        f"{test.measure if test in of_scores else f'{test.notion} {test.measure}'}, {names}: "
        f"{test.estimate:+.2e}, {level} interval "
        f"[{test.low:+.2e}, {test.high:+.2e}], {pvalue(test.pvalue)} ({_how(test)})"
        for test in _tests(report)
    ]


def _tests(report) -> list:
    return [*report.comparison.tests, *report.comparison.score_tests]


def _how(test) -> str:
    kernel = f", Laplacian kernel of {MEDIAN_WIDTH}" if test.measure == "SKCE" else ""
    return f"{test.method}{kernel}, {test.n_samples:,} samples"
