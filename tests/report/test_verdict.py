"""One question, one answer: what a report prints agrees with its verdict, and says it in words."""

import csv
import io
import json
import re
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from report_cases import (
    FEW,
    HOSTILE,
    binary,
    binary_report,
    findings_of,
    full_report,
    oddly_named_report,
    plain_report,
    predictions,
    verdict_test,
)
from scipy.special import expit, logit
from sklearn.metrics import brier_score_loss

from skcal import Sample, Zero
from skcal._show import plain_number, share
from skcal.cli.commands import main
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import calibration_error_interval, equivalence_test, scan_test
from skcal.hypothesis_tests.joint import JointTestResult
from skcal.metrics import calibration_error, validation_measures
from skcal.metrics.curve import CURVE_DISTANCES
from skcal.metrics.error_limits import ErrorLimits
from skcal.report import calibration_report, findings
from skcal.report import views as page
from skcal.report.answer import answer_of, average_sentence, what_is_wrong
from skcal.report.compare import read_subgroups
from skcal.report.findings import ReportSamples
from skcal.report.measure import Settings, measure
from skcal.report.rows import (
    comparison_table,
    headline_rows,
    measure_rows,
    records_table,
    subgroups_table,
)
from skcal.report.words import UNADJUSTED, all_warnings, answer_of_subgroups, by_kind, models_of
from skcal.sample import read_sample

FAST = {"n_resamples": 19}
IDEALS = {"O/E ratio": 1, "calibration in the large": 0, "calibration slope": 1}


def simulated(seed, n=None):
    """Labels and predictions, calibrated in two of five cases."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.choice([60, 150, 300]))
    p = np.clip(rng.beta(*[(1, 1), (1, 5), (0.5, 0.5)][seed % 3], n), 1e-4, 1 - 1e-4)
    kind = rng.integers(5)
    truth = {
        0: p,
        1: p,
        2: expit(0.6 * logit(p)),
        3: np.clip(1.4 * p, 0, 1),
        4: np.where(p > 0.6, p - 0.3, p),
    }[int(kind)]
    y = (rng.random(n) < truth).astype(int)
    y[:2] = 0, 1
    return y, p


KINDS = ("binary", "confidence", "classwise", "multi-label", "top-label", "precision-at-2", "votes")


def of_one_outcome(seed):
    return *simulated(seed), {"notion": "binary"}


def of_any_kind(seed):
    """Labels, predictions and options of a kind of calibration, some with groups or weights."""
    rng, (more, kind) = np.random.default_rng(seed), divmod(seed, len(KINDS))
    kind, more = KINDS[kind], more % 3
    n = int(rng.choice([80, 200, 500]))
    groups = np.arange(n) // 4 if more == 1 else np.arange(n)
    options = {"notion": "binary" if kind == "votes" else kind}
    if kind in ("binary", "votes"):
        y, p = simulated(seed, n)
        if kind == "votes":
            of_class = rng.multinomial(4, [0.5, 0.5], n) + np.column_stack([1 - y, y])
            y, p = of_class, np.clip((p + 2) / 5, 0, 1)
    elif kind in ("multi-label", "precision-at-2"):
        p = rng.beta(0.8, 1.5, (n, 3))
        y = (rng.random((n, 3))[groups] < p ** rng.choice([1.0, 1.0, 1.3, 0.8], 3)).astype(int)
    else:
        truth = rng.dirichlet(np.full(3, 0.6), n)
        p = truth ** float(rng.choice([1.0, 1.0, 1.4, 0.8]))
        p, drawn = p / p.sum(axis=1, keepdims=True), rng.random((n, 1))
        y = (truth.cumsum(axis=1) < drawn[groups]).sum(axis=1).clip(0, 2)
    if more == 1:
        options["groups"] = groups
    if more == 2:
        options["sample_weight"] = rng.lognormal(0, 0.7, n)
    return y, p, options


def contradictions(y, p, options, found, answer):
    """The kinds of contradictions between the findings of any kind of calibration."""
    error, shown = found.error, found.test.pvalue <= 0.05
    if ("is significant (" in answer) != shown:
        yield "verdict"
    if found.test.pvalue != verdict_test(y, p, **options).pvalue:
        yield "another test"
    sample = Sample(y, p, **options)
    number = calibration_error_interval(sample)
    if replace(error, notion=number.notion) != number:
        yield "another calibration error"
    if error.estimate != calibration_error(sample):
        yield "another metric"
    if shown and error.sentence() not in answer:
        yield "another sentence"
    if error.is_significant != shown or (error.low > 0 and not shown):
        yield "a lower limit beside the verdict"
    limits = ErrorLimits.of(sample)
    bias, deviation = abs(limits.bias[0]), limits.bias[1]
    if shown and error.low < bias - limits.quantile(0.025) * deviation - 1e-12:
        yield "a lower limit below that of the bias"
    biased = found.test.statistic_pvalues["bias"] <= 0.05
    if len(limits.parts) > 1:  # the test is of each class, and the bias that of all samples
        biased = bias > 1.96 * deviation
    if biased and error.estimate < bias - 1e-9:
        yield "an error below the bias"
    if not 0 <= error.low <= error.estimate <= error.high <= 1:
        yield "an estimate outside its limits"
    if found.gain is not None and not found.gain.error <= found.gain.high:
        yield "a gain outside its limit"
    gate = equivalence_test(sample, limit=found.tolerance)
    if (gate.estimate, gate.high) != (error.estimate, error.high) or gate.low not in (0, error.low):
        yield "a gate about another number"
    cutoff = getattr(found, "cutoff", None)
    if cutoff is not None and cutoff.low > error.high:
        yield "a cutoff error above the calibration error"


def contradictions_of_report(y, p, report):
    """The kinds of contradictions between what a report of one outcome prints and its verdict."""
    overall, verdict = report.overall, report.verdict
    shown, printed = overall.test.pvalue <= 0.05, " ".join(str(report).split())
    rows = {row.quantity: row for row in measure_rows(overall, report.settings)}
    ranges = overall.scan.ranges
    if any(left.high >= right.low for left, right in pairwise(ranges)):
        yield "ranges overlap"
    if overall.ranges != (ranges if shown else []) or "too high by" in report.summary("full"):
        yield "ranges beside the verdict"
    if plain_number(overall.error.estimate) not in verdict.partition("alibration error")[2]:
        yield "another number in the sentence"
    if shown and overall.error.sentence() not in printed:
        yield "another sentence in print"
    binned = overall.ece  # which noise raises, above its interval if calibrated
    if not binned.low <= min(binned.estimate, binned.high):
        yield "an interval from above"
    measured = overall.validation
    distances = [getattr(measured, name) for name in CURVE_DISTANCES]
    if any(not part.low <= part.estimate <= part.high for part in distances):
        yield "an estimate outside its interval"
    if not shown and max(part.low for part in distances) > 0:
        yield "a lower limit above 0"
    for name, ideal in IDEALS.items():
        row = rows[name]
        if None not in (row.low, row.high):
            outside = not row.low <= ideal <= row.high
            if (outside and not shown) != (UNADJUSTED in row.detail):
                yield f"an interval of the {name}"
    steep, many = measured.slope.estimate > 1, measured.observed_expected_ratio.estimate > 1
    if verdict.startswith("Overconfident" if steep else "Underconfident"):
        yield "the side of the slope"
    if verdict.startswith(f"{'Too high' if many else 'Too low'} on average"):
        yield "the side of the average"
    if rows["Brier score"].value != pytest.approx(brier_score_loss(y, p), rel=1e-12):
        yield "another Brier score"


def found_contradictions(make, seeds):
    found = []
    for seed in seeds:
        y, p, options = make(seed)
        if options["notion"] in ("classwise", "top-label"):  # of which `evaluate` prints answers
            findings = findings_of(y, p, **options)
            answer = answer_of(findings)
        else:
            report = calibration_report(y, p, random_state=seed, **FAST, **options)
            findings, answer = report.overall, report.answer
        kinds = [*contradictions(y, p, options, findings, str(answer))]
        kinds += contradictions_of_report(y, p, report) if make is of_one_outcome else []
        found += [(seed, options["notion"], kind) for kind in kinds]
    return found


OF_ALL = 39  # whose bias is significant in all samples, and in no class


@pytest.mark.parametrize(
    ("make", "seeds"), [(of_one_outcome, range(5)), (of_any_kind, [*range(1, 7), OF_ALL])]
)
def test_nothing_that_is_said_contradicts_the_verdict(make, seeds):
    assert found_contradictions(make, seeds) == []


@pytest.mark.slow
@pytest.mark.usefixtures("usual_draws")
@pytest.mark.parametrize("part", range(20))  # of 50 reports each, half a minute
@pytest.mark.parametrize("make", [of_one_outcome, of_any_kind])
def test_nothing_that_is_said_contradicts_the_verdict_of_many_samples(make, part):
    assert found_contradictions(make, range(7 + 50 * part, 57 + 50 * part)) == []


def test_parts_of_the_verdict_are_those_of_the_public_tests():
    labels, proba = predictions()
    overall = plain_report().overall
    assert overall.test.pvalue == verdict_test(labels, proba).pvalue
    assert overall.scan.ranges == scan_test(labels, proba, n_resamples=199, random_state=0).ranges
    assert overall.error == calibration_error_interval(labels, proba)
    test = equivalence_test(labels, proba, error="cutoff", limit=0.05)
    assert overall.cutoff.high == test.high
    row = headline_rows(overall, plain_report().settings)[1]
    assert (row.value, row.high) == (test.estimate, test.high)
    assert row.detail.startswith(f"acting on any range: at most {1000 * test.high:.0f} right pred")
    assert row.detail.endswith("confidence)")
    smaller = replace(overall, error=replace(overall.error, estimate=row.value - 0.002))
    row = headline_rows(smaller, plain_report().settings)[1]
    assert row.detail.endswith("; noise puts it above the calibration error")
    y, p = binary()
    found = validation_measures(y, p, n_resamples=99, random_state=0)
    assert binary_report().overall.validation.slope == found.slope


@pytest.mark.usefixtures("usual_draws")
def test_the_test_and_the_ranges_are_of_999_draws():
    y, p = binary()
    found = findings_of(y, p)
    assert found.test.null_distribution.shape[-1] == 999
    test = scan_test(y, p, n_resamples=999, random_state=0)
    assert (found.scan.pvalue, found.scan.ranges) == (test.pvalue, test.ranges)
    samples = [Sample(np.arange(n) % 2, np.full(n, 0.5)) for n in (100_000, 100_001)]
    assert [sample.default_resamples for sample in samples] == [999, 199]


def test_a_shown_error_is_said_with_side_place_and_remedy():
    report = plain_report()
    wrong, sure, remedy = report.answer.sentences
    assert report.answer.title in ("Overconfident: moderate", "Overconfident: large")
    said = (
        r"^Confidences .*average \d\d %, but \d\d % of the predictions are right "
        r"\((\d+ cases(, most of them in a part that is wrong)?|somewhere among \d+ cases)\)\.$"
    )
    assert re.search(said, wrong)
    assert sure == f"This is significant (p ≤ 0.005): {report.overall.error.sentence()}."
    assert re.match(
        r"Temperature scaling is expected to reduce the error from 0\.\d+ to about 0\.\d+ "
        r"\(at most 0\.\d+ with 95 % confidence\)\. Fit it on a held-out set, "
        "then run this report again on fresh data.",
        remedy,
    )
    assert "but the event happened in" in binary_report().verdict
    for view in (str(report), report._repr_html_()):
        text = re.sub("<[^>]+>", "", view)
        assert " ".join(report.verdict.split()) in " ".join(text.split())


def test_what_is_not_shown_is_not_claimed():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 5, 60)
    y = np.where(rng.random(60) < p, "sick", "well")
    report = calibration_report(y, p, pos_label="sick", random_state=0, **FAST)
    assert report.verdict.startswith(
        "No evidence of miscalibration. The calibration error is not significantly above 0 (p = "
    )
    assert re.search(r"at most 0\.\d+ with 95 % confidence", report.verdict)
    needed = (
        r"If the error is 0\.\d+, about [\d,]+ samples in all would show that it is below 0\.\d+"
    )
    assert re.search(needed + r" \(max_error sets another limit\)\.", report.verdict)
    assert report.overall.gain is None
    assert any(": every number here is uncertain" in text for text in report.warnings)
    assert "e-0" not in str(report)
    assert "Collect at least" not in report.summary("full")


def test_averages_are_said_in_percent():
    view = binary_report().overall.overview
    predicted, rate = (f"{100 * x:.0f} %" for x in (view.mean_predictions[1], view.base_rates[1]))
    expected = f"Predictions average {predicted}, but the event happened in {rate}."
    assert average_sentence(view, binary_report().notion) == expected


def test_what_is_significant_without_a_range_says_so():
    overall = plain_report().overall
    without = replace(overall, scan=None)
    assert what_is_wrong(without) == average_sentence(overall.overview, overall.notion)
    nowhere = replace(without, test=replace(overall.test, direction=""))
    assert what_is_wrong(nowhere) == "No single range of predictions is significant by itself."


def test_what_refutes_calibration_alone_is_said():
    p = np.linspace(0.02, 0.98, 400)
    y = (np.random.default_rng(0).random(400) < p).astype(int)
    p[:2], y[:2] = (0.0, 1.0), 1
    assert (
        what_is_wrong(findings_of(y, p))
        == "1 of 2 predictions of exactly 0 or 100 % was wrong (50 %)."
    )


@pytest.mark.parametrize(
    ("estimate", "size"), [(0.02, "small"), (0.06, "moderate"), (0.2, "large")]
)
def test_the_size_is_that_of_the_error_beside_the_tolerance(estimate, size):
    overall = plain_report().overall
    error = replace(overall.error, estimate=estimate)
    assert answer_of(replace(overall, error=error)).title.endswith(f": {size}")


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.8])  # rare outcomes have another default
def test_the_limit_that_the_user_sets_decides_the_words(rate, monkeypatch):
    rng = np.random.default_rng(1)
    p = rng.beta(20 * rate, 20 * (1 - rate), 5000)
    sample = Sample((rng.random(5000) < expit(logit(p) - 0.5)).astype(int), p)
    usual = findings_of(sample)
    error = usual.error
    monkeypatch.setattr(
        findings, "_gain_of_trial", lambda *_: usual.gain
    )  # which it does not change
    monkeypatch.setattr(JointTestResult, "scan", lambda *_, **__: usual.scan)
    ends = error.low, error.estimate / 2, error.estimate, 2 * error.estimate, error.high
    assert error.is_significant
    said = {}
    for limit in [times * end for end in ends for times in (0.98, 1.02)]:
        found = findings_of(sample, max_error=limit, test=usual.test)
        answer, test = answer_of(found), equivalence_test(sample, limit=limit)
        assert found.gate.verdict == test.verdict
        text = str(answer).partition(". ")[2]
        assert (f"but by less than your limit of {limit:g} (at most " in str(answer)) == (
            test.verdict == "below"
        )
        assert (f"above your limit of {limit:g} (at least " in text) == (test.verdict == "above")
        assert ("do not decide" in text) == (test.verdict == "unknown")
        assert answer.verdict().startswith("MISCALIBRATED: too high on average, ")
        if test.verdict == "below":
            assert answer.grade == "good"
            assert "Recalibration is expected" not in text
            continue
        size = "small" if error.estimate <= limit / 2 else "moderate"
        size = "large" if error.estimate > 2 * limit else size
        assert answer.title == f"Too high on average: {size}"
        said[size] = limit
    assert {"moderate", "large"} <= set(said)
    assert "your limit" not in str(answer_of(usual))


def test_an_error_that_is_below_the_tolerance_needs_no_recalibration():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    found = findings_of(rng.random(4000) < p, p, max_error=0.1)
    assert answer_of(found)[:2] == ("Calibrated within 0.1", "good")
    assert found.error.high < 0.1


def test_short_is_one_screen_and_full_is_everything():
    report = binary_report()
    assert len(str(report).splitlines()) < 40
    assert str(report) == report.summary()
    assert len(report.summary("full").splitlines()) > 50
    assert report._repr_html_().count("<details>") >= 3
    with pytest.raises(ValueError, match="detail='all' is unknown"):
        report.summary("all")


def test_a_diagram_shows_the_verdict_and_no_range_that_it_does_not_show():
    y, p = binary()
    sample = read_sample(y, p)
    settings = Settings(False, 15, "uniform", None, 0.95, 99, [Zero()], 2, None, None, None, 0)
    found = measure("model", ReportSamples.of(sample), settings)
    assert found.diagram.number.pvalue == found.test.pvalue != found.scan.pvalue
    assert found.diagram.ranges == list(found.scan.ranges) != []
    other = measure("model", ReportSamples.of(sample), settings, replace(found.test, pvalue=0.5))
    assert other.scan.ranges != []
    assert (other.diagram.number.pvalue, other.diagram.ranges) == (0.5, [])


def test_the_other_side_is_said_only_where_it_is_wrong_by_more_than_noise():
    """Both sides of a slope of 0.6 are; the confidences below 0.75 here differ by a rounding."""
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=4000)
    both = (rng.random(4000) < expit(0.6 * z)).astype(int)
    assert what_is_wrong(findings_of(both, expit(z))).count(", but the event") == 2
    rng = np.random.default_rng(11)
    p = np.round((0.5 + 0.5 * rng.beta(2.5, 1.2, 600)) * 20) / 20
    found = findings_of((rng.random(600) < p - 0.12).astype(int), p)
    assert found.test.spread == "too extreme"
    assert what_is_wrong(found).count(", but the event") == 1


def test_a_range_of_one_prediction_is_said_by_it():
    rng = np.random.default_rng(0)
    p = rng.choice([0.2, 0.5, 0.8], 900)
    y = (rng.random(900) < np.where(p == 0.5, 0.75, p)).astype(int)
    said = what_is_wrong(findings_of(y, p))
    assert said.startswith("Predictions of 50 % average 50 %, but the event happened in ")


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_predictions_at_an_end_are_not_said_to_reach_beyond_it(end):
    rng = np.random.default_rng(0)
    p = rng.choice([end, 0.3, 0.5, 0.7], 900)
    y = (rng.random(900) < np.where(p == end, 0.4 * end + 0.3, p)).astype(int)
    said = what_is_wrong(findings_of(y, p))
    assert f"redictions of {100 * end:g} % average {100 * end:g} %, but the event" in said


@pytest.mark.parametrize("larger", [(True, False), (False, True), (True, True)])
def test_two_models_are_told_whose_cutoff_error_is_above_its_calibration_error(larger):
    report, models = full_report(), []
    for measures, is_larger in zip(models_of(report), larger, strict=True):
        estimate = measures.cutoff.estimate + (-0.002 if is_larger else 0.002)
        models.append(replace(measures, error=replace(measures.error, estimate=estimate)))
    comparison = replace(report.comparison, second=models[1])
    rows = comparison_table(replace(report, overall=models[0], comparison=comparison)).rows
    [note] = [row[-1] for row in rows if row[0] == "cutoff error"]
    whose = {(True, False): "first model: ", (False, True): "second model: "}.get(larger, "")
    assert note == f"{whose}noise puts it above the calibration error"


def test_scales_of_weights_do_not_change_what_recalibration_is_expected_to_leave():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 900)
    y, weight = (rng.random(900) < p**2).astype(int), rng.uniform(0.2, 3, 900)
    first, *others = (
        findings_of(y, p, sample_weight=scale * weight).gain for scale in (1.0, 1e-6, 1e6)
    )
    for other in others:
        assert other.error == pytest.approx(first.error, rel=1e-6)
        assert other.high == pytest.approx(first.high, rel=1e-6)


def test_caveats_of_subgroups_stand_once_and_subgroups_without_evidence_say_how_large_it_may_be():
    labels, proba = predictions()
    by = np.repeat(np.arange(5), [420, 20, 20, 20, 20])
    report = calibration_report(labels, proba, by=by, **FAST)
    few = [text for text in all_warnings(report) if "every number here" in text]
    assert len(few) == 1
    assert few[0].startswith("1: 20 samples are few")
    assert few[0].endswith(" The same holds for 2, 3, 4.")
    names, cautions = "1234567", [f"{n} samples are few" for n in (20, 20, 20, 19, 18, 17, 6)]
    parts = [SimpleNamespace(name=n, cautions=[c]) for n, c in zip(names, cautions, strict=True)]
    others = " The same holds, in other numbers, for 2, 3, 4, … 3 more."
    assert by_kind(parts, full=False) == [f"1: 20 samples are few{others}"]
    table = subgroups_table(report)
    parts = {part.name: part for part in report.subgroups}
    shown = [parts[row[0]] for row in table.rows]  # miscalibrated ones first
    assert shown == sorted(report.subgroups, key=lambda part: not part.is_significant)
    for row, part in zip(table.rows, shown, strict=True):
        assert row[-1].endswith(" *") == part.is_significant
        estimate, low, high = map(
            plain_number, (part.error.estimate, part.error.low, part.error.high)
        )
        limits = f"≥ {low}, ≤ {high}" if part.error.low else f"≤ {high}"
        above = "above 0, " * (part.is_significant and not part.error.low)
        assert row[4] == f"{estimate} ({above}{limits})"
        assert row[2:4] == tuple(map(share, part.overview.averages(part.notion)))
    assert (
        str(report).count("Each limit alone holds with 95 % confidence. p-values are adjusted") == 1
    )
    wrong = [part for part in report.subgroups if part.is_significant]
    others = [part for part in report.subgroups if not part.is_significant]
    highest = max(others, key=lambda part: part.error.high)
    said = answer_of_subgroups(report)
    assert said.startswith(f"Subgroups: {len(wrong)} of 5 significantly miscalibrated: 0")
    assert said.endswith(f"may be up to {plain_number(highest.error.high)} ({highest.name}).")


@pytest.mark.parametrize("off", [(0.9, 0.0), (0.8, -0.8)], ids=["one", "opposite"])
def test_subgroups_that_differ_are_to_be_recalibrated_by_themselves_and_all_samples_are_not(
    off, monkeypatch
):
    monkeypatch.setattr(page, "_figures", lambda *_: "")
    rng = np.random.default_rng(0)
    by, p = np.repeat(["a", "b"], 500), rng.uniform(0.35, 0.65, 1000)
    y = rng.random(1000) < expit(logit(p) + np.repeat(off, 500))
    report = calibration_report(y, p, by=by, **FAST)
    assert report.overall.is_significant == (off[1] == 0)
    for text in (str(report), re.sub("<[^>]+>", "", report._repr_html_())):
        text = " ".join(text.split())
        assert text.count("Subgroups differ, so one recalibration of all samples") == 1
        ends = "too low on average, (small|moderate|large)", "; all samples: "
        assert re.search(f"a: {''.join(ends)}", text)
        for other in ("expected to reduce", "Recalibrate on", "not needed"):
            assert other not in text


def test_subgroups_that_are_alike_are_to_be_recalibrated_together():
    rng = np.random.default_rng(0)
    by, p = np.repeat(["a", "b"], 500), rng.uniform(0.35, 0.65, 1000)
    same = calibration_report(rng.random(1000) < expit(logit(p) + 0.6), p, by=by, **FAST)
    assert "Subgroups differ" not in same.verdict
    assert "between subgroups: recalibrate all together." in same.verdict
    assert "expected to reduce" in same.verdict


def test_subgroups_may_be_several_columns():
    columns = {"site": ["s10", "s2"] * 5, "sex": ["f"] * 4 + ["m"] * 6}
    names = ["site = s2", "site = s10", "sex = f", "sex = m"]
    assert [name for name, _ in read_subgroups(columns, 10)] == names
    pd = pytest.importorskip("pandas")
    assert [name for name, _ in read_subgroups(pd.DataFrame(columns), 10)] == names


def test_groups_of_dependent_samples_and_weights_reach_the_verdict_and_the_validation():
    y, p = binary()
    groups = np.arange(len(y)) // 8
    weight = np.arange(len(y)) % 3 / 2
    given = {"groups": groups, "sample_weight": weight, "max_error": 0.2}
    report = calibration_report(y, p, **given, **FEW)
    assert report.overall.tolerance == 0.2
    test = verdict_test(y, p, groups=groups, sample_weight=weight)
    assert report.overall.test.pvalue == test.pvalue
    assert "groups flipped" in report.overall.test.method
    asked = {"groups": groups, "sample_weight": weight, "n_resamples": 19, "random_state": 0}
    found = validation_measures(y, p, **asked)
    assert report.overall.validation.observed_expected_ratio == found.observed_expected_ratio
    assert report.overall.validation.slope == found.slope


def test_the_same_seed_gives_the_same_ranges_in_display_and_report():
    labels, proba = predictions()
    display = ReliabilityDisplay.from_predictions(
        labels, proba, n_resamples=199, random_state=0, plot=False
    )
    [panel], shown = display.panels, plain_report().overall.diagram
    assert panel.ranges == shown.ranges == plain_report().overall.scan.ranges
    assert panel.frequency.tolist() == shown.frequency.tolist()
    assert panel.number == shown.number


def records(report):
    table = records_table(report)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_csv_holds_every_number_in_full_and_no_formula(tmp_path):
    report = full_report()
    report.save(tmp_path / "report.csv")
    text = (tmp_path / "report.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    expected = records(report)
    assert len(rows) == len(expected)
    assert [row["value"] for row in rows] == [repr(record["value"]) for record in expected]
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row.values())
    assert any(row["detail"].startswith("'= ") for row in rows)
    assert rows[0]["name"] == HOSTILE


def test_latex_has_a_table_of_subgroups_and_one_of_two_models(tmp_path):
    labels, proba = predictions(200)
    softer = np.sqrt(proba) / np.sqrt(proba).sum(axis=1, keepdims=True)
    by = np.repeat(["a_1", "b"], 100)
    report = calibration_report(labels, proba, compare=softer, compare_name="B_2", by=by, **FEW)
    report.save(tmp_path / "report.tex")
    first, of_subgroups, of_two = (tmp_path / "report.tex").read_text().split("\n\n")
    tables = first, of_subgroups, of_two
    assert all(table.count("tabular}") == 2 for table in tables)
    assert "\na\\_1 & 100 & " in of_subgroups
    assert " & B\\_2 & " in of_two
    assert f"accuracy & {report.overall.overview.accuracy:.3f} & " in of_two
    notes = [line for line in of_two.splitlines() if line.startswith("% ")]
    tests = [*report.comparison.tests, *report.comparison.score_tests]
    assert len(notes) == 2 + len(tests)
    assert notes[1].startswith("% The upper error limit assumes at most ")
    assert f"% {report.verdict}" in first  # the sentences that print shows
    paired = [one for one in records(report) if one["part"] == "paired"]
    assert [one["pvalue"] for one in paired] == [test.pvalue for test in tests]


@pytest.mark.parametrize("make", [binary_report, plain_report])
@pytest.mark.parametrize("detail", ["short", "full"])
def test_cells_of_latex_hold_no_sentence_and_what_medicine_asks_for(tmp_path, make, detail):
    report = make()
    report.save(tmp_path / "report.tex", detail)
    text = (tmp_path / "report.tex").read_text(encoding="utf-8")
    lines = text.partition("\\midrule\n")[2].partition("\\bottomrule")[0].splitlines()
    rows = [line.removesuffix(r" \\").split(" & ") for line in lines]
    cells = {row[0]: row for row in rows}
    assert all(len(cell.split()) < 8 for row in rows for cell in row)
    assert cells["calibration error"][3] == r"each limit 95 \%"
    measured = report.overall.validation
    names = {"intercept_in_the_large": "calibration in the large", "slope": "calibration slope"}
    for name, quantity in {**names, "c_statistic": "C-statistic"}.items():
        assert (quantity in cells) == (measured is not None)
        if measured is not None:
            low, high = getattr(measured, name)[1:]
            assert cells[quantity][2] == f"{plain_number(low)} to {plain_number(high)}"
    said = [row.detail for row in headline_rows(report.overall, report.settings)]
    assert all(f": {sentence}\n" in text for sentence in said[:-1])


def test_latex_is_escaped(tmp_path):
    oddly_named_report().save(tmp_path / "report.tex")
    text = (tmp_path / "report.tex").read_text(encoding="utf-8")
    body = text.partition("\\midrule\n")[2].partition("\\bottomrule")[0]
    for line in body.splitlines():
        assert line.endswith(r" \\")
        assert len(re.findall(r"(?<!\\)&", line)) == 3
        assert not re.search(r"(?<!\\)[%#_]", line)
    assert text.splitlines()[0].startswith("% Calibration report: 50 % of A_1")


def test_rounded_predictions_are_read_within_half_a_step_and_the_report_says_so(tmp_path, capsys):
    rng = np.random.default_rng(3)
    truth = rng.beta(4, 1, 800)
    y, p = (rng.random(800) < truth).astype(int), np.round(20 * truth) / 20
    assert np.any((p == 1) & (y == 0)) or np.any((p == 0) & (y == 1))
    report = calibration_report(y, p, **FAST)
    assert report.overall.test.resolution == 0.05
    assert any(text.startswith("Predictions are rounded to 0.05") for text in report.warnings)
    exact, rounded = verdict_test(y, p, resolution=None).pvalue, report.overall.test.pvalue
    assert exact < rounded
    np.savez(tmp_path / "p.npz", proba=p, labels=y)
    for asked, expected in (("auto", rounded), ("none", exact), ("0.05", rounded)):
        main(["evaluate", str(tmp_path / "p.npz"), "--resolution", asked, "--json"])
        [found] = json.loads(capsys.readouterr().out)
        assert found["answers"][0]["test"]["pvalue"] == expected
    with pytest.raises(
        ValueError, match=r"^resolution is 0.1, and y_proba holds 0\.\d5, which is no"
    ):
        calibration_report(y, p, resolution=0.1, **FAST)
    with pytest.raises(
        ValueError, match=r"^resolution is 0.1, and y_proba holds 0\.\d+, which is no"
    ):
        calibration_report(y, np.round(p, 1), compare=truth, resolution=0.1, **FAST)


@pytest.mark.parametrize("rate", [0.06, 0.12, 0.4])
@pytest.mark.parametrize("times", [0.4, 1.2, 3])
def test_the_same_error_has_another_size_only_where_the_answer_says_beside_which_rate(rate, times):
    """The size in the title follows from what stands beside it."""
    rng = np.random.default_rng(0)
    p = np.full(20_000, rate) + rng.uniform(-0.02, 0.02, 20_000)
    tolerance = min(0.05, float(f"{0.2 * rate:.1g}"))
    found = findings_of((rng.random(len(p)) < p).astype(int), p + times * tolerance)
    assert found.is_significant
    text = str(found.answer)
    size = found.answer.title.rpartition(": ")[2]
    relative = re.search(
        r"relative to the rarer outcome \(([\d.]+) %\): (\w+) is (up to|above) (\d\.\d+)\.", text
    )
    assert (relative is None) == (found.tolerance == 0.05)
    if relative is None:
        return
    assert float(relative[1]) == pytest.approx(100 * found.overview.base_rates[1], abs=0.5)
    assert relative[2] == size
    assert (found.error.estimate > float(relative[4])) == (relative[3] == "above")
    assert (relative[3] == "above") == (size == "large")
