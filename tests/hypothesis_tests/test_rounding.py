"""Rounded predictions: 0 and 1 mean "within half a step"."""

import numpy as np
import pytest

from skcal import Sample
from skcal._rounding import _LOOKED_AT, step_of, within_half_a_step
from skcal.hypothesis_tests import calibration_test
from skcal.notions import make_problems

OPTIONS = {"n_resamples": 99, "random_state": 0}


def confidences(seed, step, n=400):
    """Calibrated confidences of a language model, told in steps; most are near 1."""
    rng = np.random.default_rng(seed)
    p = 1 - rng.beta(0.4, 4, n)
    return (rng.uniform(size=n) < p).astype(int), np.round(p / step) * step


def told_as_certain_but_wrong(n_wrong):
    """Calibrated but for some of 80 predictions of 1."""
    p = np.repeat([0.6, 0.7, 0.8, 0.9, 1.0], 80)
    y = np.tile(np.arange(80) + 0.5, 5) / 80 < p
    y[-n_wrong:] = False
    return y.astype(int), p


def test_an_outcome_against_a_rounded_1_does_not_decide():
    y, p = told_as_certain_but_wrong(1)
    result = calibration_test(y, p, **OPTIONS)
    assert (result.resolution, result.n_rounded, result.n_impossible) == (0.1, 1, 0)
    assert result.pvalue > 0.05
    assert "certainty" not in result.statistic_pvalues
    assert "1 outcome against predictions of 0 or 1: these may be rounded" in str(result)
    exact = calibration_test(y, p, resolution=None, **OPTIONS)
    assert (exact.resolution, exact.n_rounded, exact.n_impossible) == (None, 0, 1)
    assert exact.pvalue == 0.01


def test_more_than_half_a_step_of_wrong_outcomes_refute_a_rounded_1():
    y, p = told_as_certain_but_wrong(20)  # a quarter of the ones
    result = calibration_test(y, p, **OPTIONS)
    assert result.n_rounded == 20
    assert result.pvalue <= 0.05


def test_rounded_predictions_are_rejected_no_more_often_than_the_level():
    """More than 6 of 40 calibrated sets are rejected with probability .003 at 5 %."""
    rejected = sum(
        calibration_test(*confidences(k, 0.01), **OPTIONS).pvalue <= 0.05 for k in range(40)
    )
    assert rejected <= 6


def test_nothing_changes_without_an_outcome_against_0_or_1():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 200).round(2)
    y = (rng.uniform(size=200) < p).astype(int)
    found, exact = (calibration_test(y, p, resolution=r, **OPTIONS) for r in ("auto", None))
    assert found.resolution == 0.01
    assert found.statistic_pvalues == exact.statistic_pvalues


@pytest.mark.parametrize(
    ("p", "step"),
    [
        ([0, 0.1, 0.3, 0.7, 1], 0.1),
        (np.float32([0, 0.1, 0.3, 0.7, 1]), 0.1),
        ([0, 0.05, 0.3, 0.95, 1], 0.05),
        ([0, 0.01, 0.3, 0.95, 1], 0.01),
        (np.float32([0, 0.05, 0.3, 0.95, 1]), 0.05),
        ([0, 0.055, 0.3, 0.95, 1], None),
        ([0, 0.5, 0.9, 1], None),  # too few to tell
        ([0, 1, 1, 0], None),
    ],
)
def test_a_step_is_found_where_enough_predictions_are_its_multiples(p, step):
    p = np.asarray(p)
    problems = make_problems(p, np.ones(len(p), int), "binary")
    assert step_of(problems, "auto") == step
    assert step_of(problems, None) is None


@pytest.mark.parametrize("place", [0, _LOOKED_AT - 1, _LOOKED_AT, 199])
def test_one_prediction_between_the_steps_excludes_them_wherever_it_stands(place):
    p = np.random.default_rng(0).integers(1, 20, 200) / 20
    y = (np.random.default_rng(1).uniform(size=200) < p).astype(int)
    assert calibration_test(y, p, **OPTIONS).resolution == 0.05
    p[place] = 0.125
    assert calibration_test(y, p, **OPTIONS).resolution is None


def test_a_step_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"resolution is 0.1, and y_proba holds 0.25, which is no"):
        calibration_test([0, 1, 1], [0.2, 0.25, 0.5], resolution=0.1, **OPTIONS)


def test_ends_move_to_the_frequency_by_at_most_half_a_step():
    p, y = np.repeat([0.0, 0.5, 1.0], 10), np.zeros(30, int)
    y[0] = 1  # a tenth of the zeros
    y[20:] = 1
    [problem] = make_problems(p, y, "binary")
    for step, low in ((0.5, 0.1), (0.1, 0.05)):
        moved = within_half_a_step(problem, step)
        np.testing.assert_allclose(moved.features[:, 0], np.repeat([low, 0.5, 1.0], 10))
        np.testing.assert_allclose(moved.outcomes, problem.outcomes)
    assert within_half_a_step(problem, None) is problem


@pytest.mark.parametrize("function", [Sample, calibration_test])
def test_a_step_is_refused_where_vectors_are_read(function):
    proba = np.tile([[0.2, 0.3, 0.5], [0.4, 0.4, 0.2], [0.1, 0.7, 0.2]], (20, 1))
    y = np.arange(60) % 3
    with pytest.raises(ValueError, match=r'vectors, which have no step. Leave it "auto", or'):
        function(y, proba, notion="canonical", resolution=0.1)
    for notion in ("confidence", "top-label", "classwise"):  # as the message advises
        function(y, proba, notion=notion, resolution=0.1)
    function(y, proba, notion="canonical", resolution="auto")
