"""Many subgroups: what can be shown does not depend on how many there are."""

import numpy as np
import pytest
from report_cases import CANDIDATES

from skcal.hypothesis_tests import monte_carlo_test
from skcal.report import calibration_report
from skcal.report import compare as module
from skcal.report.compare import compare_groups, sequential_pvalue
from skcal.report.measure import Settings
from skcal.sample import read_sample

# scikit-learn's own, of splines of a few samples that one class has alone.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
OPTIONS = {"candidates": CANDIDATES[:1], "cv": 3, "random_state": 0}


def settings(n_resamples=99, seed=0):
    values = dict.fromkeys(Settings._fields)
    values |= {"n_bins": 5, "strategy": "uniform"}
    return Settings(**values | {"n_resamples": n_resamples, "random_state": seed})


def binary_data(n, shift, seed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.6, n)
    y = (rng.random(n) < p + shift).astype(int)
    return read_sample(y, p, labels=[0, 1])


def test_a_group_among_many_can_be_flagged():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(3), 30)  # 3 / (1 + 19) is above 5 %
    p = rng.uniform(0.1, 0.6, len(groups))
    y = np.where(groups == 1, 1, rng.random(len(p)) < p).astype(int)
    report = calibration_report(y, p, groups=groups, n_resamples=19, **OPTIONS)
    adjusted = dict(zip((part.name for part in report.groups), report.group_pvalues, strict=True))
    assert adjusted["1"] == 0.01
    assert min(adjusted["0"], adjusted["2"]) > 0.05
    assert not any("too many" in text for text in report.warnings)


def test_few_groups_have_the_pvalues_of_the_test():
    p = np.linspace(0.1, 0.9, 60)
    y = (np.random.default_rng(0).random(60) < p).astype(int)
    groups = np.arange(60) % 2
    report = calibration_report(y, p, groups=groups, n_resamples=99, **OPTIONS)
    for part in report.groups:
        rows = groups == int(part.name)
        test = monte_carlo_test(y[rows], p[rows], n_bins=15, n_resamples=99, random_state=0)
        assert part.ece.pvalue == test.pvalue


def test_more_groups_than_draws_allow_are_a_caution(monkeypatch):
    monkeypatch.setattr(module, "_MOST_DRAWS", 100)
    report = calibration_report(
        np.tile([0, 1, 1], 11),
        np.full(33, 0.5),
        groups=np.repeat(np.arange(11), 3),
        n_resamples=19,
        **OPTIONS,
    )
    text = "11 groups are too many for their tests: the smallest adjusted p-value is 0.11"
    assert any(caution.startswith(text) for caution in report.warnings)


def test_groups_that_could_not_be_tested_are_left_out():
    assert compare_groups([], [], settings()) == ([], [], [])


@pytest.mark.parametrize("most", [50, 400])
def test_sequential_pvalues_count_draws_until_the_twentieth_exceedance(most):
    calibrated = sequential_pvalue(binary_data(100, 0.0, 3), settings(39), most)
    assert calibrated >= 20 / (most - 1) or calibrated * most == round(calibrated * most)
    assert sequential_pvalue(binary_data(300, 0.39, 3), settings(39), most) == 1 / most


@pytest.mark.slow
def test_sequential_pvalues_hold_their_level():
    # Under H0 P(p ≤ α) ≤ α; at α = 10 % more than 34 of 200 has probability 1e-3.
    found = [sequential_pvalue(binary_data(40, 0.0, k), settings(99, k), 300) for k in range(200)]
    assert np.count_nonzero(np.array(found) <= 0.1) <= 34
    assert 0.4 < np.mean(found) < 0.6
