"""Differences of two models in accuracy, area under the risk-coverage curve and coverage."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

from skcal import calibration_report
from skcal.hypothesis_tests.error_interval import _of_answers, _Ranked
from skcal.metrics import area_under_risk_coverage
from skcal.sample import read_sample


def questions(seed, n_questions=60, n_answers=5, better=0.0, decimals=8):
    """Whether answers of two models to the same questions are right, and their confidences."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_questions), n_answers)
    ease, n = rng.normal(size=n_questions)[groups], len(groups)
    both = []
    for skill in (0.5, 0.5 + better):
        logit = skill + ease + 0.7 * rng.normal(size=n)
        right = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
        noise = rng.normal(size=n)
        both.append((right, np.round(1 / (1 + np.exp(-logit - 0.5 * noise)), decimals)))
    return groups, *both


def samples(groups, *models):
    return [read_sample(right, sure, "binary", groups=groups) for right, sure in models]


def widest(right, sure, risk):
    """The largest share of answers that a threshold keeps whose risk is at most this."""
    kept = [sure >= t for t in np.unique(sure)]
    return max([part.mean() for part in kept if 1 - right[part].mean() <= risk], default=0.0)


@pytest.mark.parametrize("decimals", [1, 8])
def test_estimates_are_those_of_the_metrics(decimals):
    groups, first, second = questions(0, better=1.0, decimals=decimals)
    found = _of_answers(*samples(groups, first, second), 0.95, 19, 0)
    risk = float(f"{(1 - second[0].mean()) / 2:.1g}")
    expected = {
        "accuracy": first[0].mean() - second[0].mean(),
        "area under the risk-coverage curve": area_under_risk_coverage(*first)
        - area_under_risk_coverage(*second),
        f"coverage at a risk of {100 * risk:g} %": widest(*first, risk) - widest(*second, risk),
    }
    assert [one.measure for one in found] == list(expected)
    assert_allclose([one.estimate for one in found], list(expected.values()), atol=1e-12)
    assert all(one.low <= one.estimate <= one.high for one in found)
    assert [one.larger_is_better for one in found] == [True, False, True]


@pytest.mark.parametrize("grouped", [False, True])
def test_the_standard_error_of_the_area_is_that_of_the_jackknife(grouped):
    groups, (right, sure), _ = questions(1, 200)
    units = groups if grouped else np.arange(len(groups))
    [sample] = samples(units if grouped else None, (right, sure))
    terms = _Ranked.of(sample).influence()
    assert terms.mean() == pytest.approx(area_under_risk_coverage(right, sure))
    n = units.max() + 1
    sums = np.bincount(units, (terms - terms.mean()) / len(terms))
    left_out = [area_under_risk_coverage(right[units != k], sure[units != k]) for k in range(n)]
    jackknife = np.sqrt((n - 1) / n * np.sum((left_out - np.mean(left_out)) ** 2))
    assert np.sqrt(n / (n - 1) * np.sum(sums**2)) == pytest.approx(jackknife, rel=0.02)


def test_intervals_of_equal_models_hold_0_by_question():
    missed, n_sets = np.zeros(3), 60
    for seed in range(n_sets):
        found = _of_answers(*samples(*questions(seed)), 0.95, 99, seed)
        missed += [not one.low <= 0 <= one.high for one in found]
    assert (missed <= binom.isf(1e-3, n_sets, 0.06)).all()


def test_a_report_says_which_model_is_better_by_which_measure():
    groups, first, second = questions(3, 120, better=2.0)
    (right, sure), (other_right, other_sure) = first, second
    options = {"compare": np.column_stack([1 - other_sure, other_sure]), "notion": "confidence"}
    options |= {"second_y_true": other_right, "groups": groups, "n_resamples": 99}
    proba = np.column_stack([1 - sure, sure])
    report = calibration_report(right, proba, name="A", compare_name="B", **options)
    tests = {test.measure: test for test in report.comparison.score_tests}
    assert list(tests)[:4] == ["Brier score", "log loss", "accuracy", [*tests][3]]
    [said] = [text for text in report.further if "accuracy" in text]
    for test in tests.values():
        better = "AB"[(test.estimate > 0) != test.larger_is_better]
        size = f"{test.measure} ({'higher' if test.larger_is_better else 'lower'} by "
        models = [part[0] for part in said.split("; ") if size in part]
        assert models == [better] * (not test.low <= 0 <= test.high)
    assert "(each with its 95 % interval)" in said
    assert said in " ".join(str(report).split())


def test_where_no_answer_is_wrong_there_is_no_coverage_at_a_risk():
    rng = np.random.default_rng(0)
    sure, right = rng.uniform(0.5, 1, (2, 50)), np.ones((2, 50), dtype=int)
    right[1, :5] = 0
    pair = [read_sample(y, p, "binary", labels=[0, 1]) for y, p in zip(right, sure, strict=True)]
    found = _of_answers(*pair, 0.95, 19, 0)
    assert found[0].measure == "accuracy"
    assert not any("coverage at" in one.measure for one in found)
