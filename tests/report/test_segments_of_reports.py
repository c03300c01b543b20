import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom

from skcal import calibration_report
from skcal._show import share
from skcal.hypothesis_tests import segment_test
from skcal.report import words


@pytest.fixture(scope="module")
def audited():
    rng = np.random.default_rng(0)
    p, group = rng.uniform(size=600), rng.choice(["<old>", "young"], 600)
    y = (rng.uniform(size=600) < np.where(group == "young", p**2, p)).astype(int)
    features = {"age": group, "score": rng.normal(size=600)}
    options = {"n_resamples": 99, "random_state": 0}
    report = calibration_report(y, p, segments=features, **options)
    return report, segment_test(y, p, features, relative=True, **options)


def off_by_sex(seed, kind, n=1500, off=0.5):
    """A report of predictions that are right on average, and wrong for each sex."""
    rng = np.random.default_rng(seed)
    sex, age = rng.choice(["F", "M"], n), rng.normal(65, 10, n)
    p = rng.beta(2, 3, n) if kind == "binary" else rng.uniform(0.5, 0.9, n)
    y = (rng.random(n) < expit(logit(p) + np.where(sex == "F", off, -off))).astype(int)
    notion = {"notion": kind}
    proba = p if kind == "binary" else np.column_stack([1 - p, p])
    options = {"segments": {"sex": sex, "age": age}, "n_resamples": 199}
    return calibration_report(y, proba, **options, **notion)


@pytest.mark.parametrize("kind", ["binary", "confidence"])
def test_the_headline_and_the_advice_know_the_worst_segment(kind):
    report = off_by_sex(0, kind)
    answer, worst = report.answer, words.segments_that_differ(report)[0]
    assert report.segments.segments[0] == worst
    sides = ("too low", "too high") if kind == "binary" else ("underconfident", "overconfident")
    side = sides["sex = M" in worst.name]
    happened = "happened" if kind == "binary" else "right"
    rates = f"{share(worst.observed)} {happened}, {share(worst.predicted)} predicted"
    assert answer.title.startswith(f"{worst.name}: {side}, {rates}; all samples: ")
    assert answer.grade in ("moderate", "bad")
    assert "Segments differ, so one recalibration" in str(answer)
    verdict = " ".join(str(report).split())
    for said in ("o evidence", "expected to reduce", "not needed", "Recalibrate on"):
        assert said not in verdict
    limits = f"({share(worst.low)} to {share(worst.high)}, 95 % interval for all segments together)"
    assert limits in verdict
    assert not worst.low <= worst.expected <= worst.high
    page = re.sub("<[^>]+>", "", report._repr_html_())
    assert answer.title in " ".join(page.split())


def test_segments_and_subgroups_that_differ_are_both_in_the_headline():
    report = off_by_sex(0, "binary")
    rng = np.random.default_rng(0)
    n = 1500
    site, p = rng.choice(["north", "south"], n), rng.beta(2, 3, n)
    y = rng.random(n) < expit(logit(p) + np.where(site == "north", 0.6, -0.6))
    options = {"n_resamples": 19}
    both = calibration_report(y, p, by=site, **options)
    both = replace(both, segments=report.segments)
    assert "Subgroups and segments differ, so one" in both.verdict
    title = both.answer.title
    assert title.startswith(f"{report.segments.segments[0].name}: ")
    assert re.search(r"; (north|south): [^;]*; all samples: [^;]*$", title)
    same = calibration_report(y, p, by={"site": site}, segments={"site": site}, **options)
    assert re.match(r"site = (north|south): [^;]*; all samples: [^;]*$", same.answer.title)


def test_a_segment_that_is_less_wrong_than_elsewhere_is_not_called_wrong():
    rng = np.random.default_rng(3)
    n = 1500
    group, p = rng.choice(["u", "v", "w"], n, p=[0.46, 0.46, 0.08]), rng.uniform(0.05, 0.7, n)
    y = rng.random(n) < np.where(group == "w", p, np.minimum(p**0.6, 1))
    report = calibration_report(y, p, segments={"g": group}, n_resamples=199)
    [only] = words.segments_that_differ(report)
    assert (only.name, only.is_worse) == ("g = w", False)
    assert report.answer.title.startswith("g = w: fewer events than elsewhere, ")
    assert (
        "0 of 3 segments are wrong by more than elsewhere, and 1 is wrong by less, or right"
        in report.verdict
    )
    assert "The most different is g = w" in report.verdict


def named(report, seed, n=400):
    """Whether a report names a segment of samples that are calibrated in all of 99."""
    rng = np.random.default_rng([seed, 9])
    features = {"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.normal(size=n)}
    features |= {"d": rng.choice(["x", "y", "z"], n)}
    p = rng.beta(2, 4, n)
    y = rng.random(n) < p
    options = {"relative": True, "n_resamples": 99, "random_state": 0, "min_samples": 10}
    test = segment_test(y, p, features, **options)
    assert len(test.segments) > 90
    shown = replace(report, segments=test)
    name = test.segments[0].name
    said = name in shown.verdict or name in shown.answer.title or "egments differ" in shown.verdict
    assert said == (test.pvalue <= 0.05)
    return said


def named_of(n_sets):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=300)
    options = {"n_resamples": 19}
    report = calibration_report(rng.random(300) < p, p, **options)
    return sum(named(report, seed) for seed in range(n_sets))


def test_where_all_segments_are_calibrated_nothing_is_named():
    assert named_of(20) <= binom.isf(1e-3, 20, 0.05)


@pytest.mark.slow
def test_where_all_segments_are_calibrated_nothing_is_named_in_200_sets():
    assert named_of(200) <= binom.isf(1e-2, 200, 0.05)


def test_numbers_are_those_of_the_test(audited):
    report, test = audited
    assert report.segments.pvalue == test.pvalue == 0.01
    assert report.segments.segments == test.segments
    data = report.to_dict()["segments"]
    assert data["pvalue"] == test.pvalue
    assert data["n_segments"] == len(test.segments)
    assert data["worst"] == [segment._asdict() for segment in test.segments[:10]]


def test_every_view_shows_the_worst_segment(audited):
    report, test = audited
    worst = next(one for one in test.segments if one.is_worse)
    said = "of 14 overlapping segments "
    assert said in " ".join(str(report).split())
    assert worst.name in str(report)
    assert f"The worst is {worst.name}, with " in report.verdict
    assert report.answer.title.startswith(f"{worst.name}: too high, ")
    page = report._repr_html_()
    assert "<h4>Segments</h4>" in page
    assert "age = young" in page
    assert "<old>" not in page
    named = json.loads(report.to_json())["segments"]["worst"]
    assert worst.name in [one["name"] for one in named]


def test_without_features_there_are_no_segments():
    y, p = np.tile([0, 1], 20), np.full(40, 0.5)
    report = calibration_report(y, p, n_resamples=19, random_state=0)
    assert report.segments is None
    assert "segment" not in str(report)


def test_a_model_that_is_off_everywhere_is_off_in_no_segment_beyond_that():
    rng = np.random.default_rng(1)
    p, site = rng.uniform(size=600), rng.choice(["a", "b", "c"], 600)
    y = rng.uniform(size=600) < p**2
    options = {"n_resamples": 99, "random_state": 0}
    report = calibration_report(y, p, segments={"site": site}, **options)
    assert report.overall.test.pvalue == 0.005
    assert "segment" not in report.verdict
    assert "None of 3 overlapping segments differs significantly" in str(report)


def test_segments_that_are_too_small_are_told_by_the_name_of_the_argument():
    y, p = np.tile([0, 1], 30), np.full(60, 0.5)
    with pytest.raises(ValueError, match=r"^segments make no segment of at least 20 samples"):
        calibration_report(y, p, segments={"age": np.arange(60.0)})


def test_segments_that_are_less_wrong_are_marked_and_long_names_stand_in_full():
    rng = np.random.default_rng(0)
    n = 6000
    product = rng.choice(["a mortgage of a house", "card loans", "a personal loan"], n)
    region = rng.choice(["South East of the country", "North", "West"], n)
    p = expit(rng.normal(-1, 1, n))
    right = (product == "card loans") & (region != "North")
    y = rng.random(n) < expit(logit(p) + 0.8 * ~right)
    features = {"name_of_the_product": product, "region_of_customers": region}
    report = calibration_report(y, p, segments=features, n_resamples=99)
    text = str(report)
    table = text.partition("\nsegment ")[2].partition("\nExpected")[0].splitlines()[1:]
    assert max(map(len, table)) <= 100
    starts = [k for k, line in enumerate(table) if not line.startswith(" ")] + [len(table)]
    for one, first, last in zip(
        report.segments.segments[:10], starts[:-1], starts[1:], strict=True
    ):
        row = table[first:last]
        name = " ".join(re.split(r" {2,}", line.strip())[0] for line in row)
        assert name.replace(" ", "") == one.name.replace(" ", "")
        less = one.is_significant(0.95) and not one.is_worse
        assert row[0].endswith("†") == less
    assert text.count("†") > 1
    assert "† marks segments that are wrong by less than elsewhere, or right." in text


def test_a_subgroup_that_segments_alone_show_is_named_beside_the_others():
    rng = np.random.default_rng(0)
    x, site = rng.normal(-1, 1, 1200), rng.integers(0, 8, 1200).astype(str)
    y = (rng.random(1200) < expit(x + 0.8 * (site == "0"))).astype(int)
    report = calibration_report(
        y, expit(x), by={"site": site}, segments={"site": site}, n_resamples=199
    )
    said = " As a segment, site = 0 is significantly wrong by more than elsewhere."
    assert [one.name for one in words.segments_that_differ(report)] == ["site = 0"]
    assert said not in report.verdict  # its own test shows it
    parts = [replace(part, error=replace(part.error, pvalue=0.2)) for part in report.subgroups]
    alone = replace(report, subgroups=parts)
    assert said in alone.verdict
    assert "excludes 1 in site = 0" not in alone.verdict
    without = replace(alone, segments=None)
    assert said not in without.verdict
    assert "excludes 1 in site = 0" in without.verdict
