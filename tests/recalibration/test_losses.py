"""Losses of predictions and their paired comparisons."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import brier_score_loss, log_loss

from skcal._scores import LOSSES, LossComparison, of_outcomes
from skcal.hypothesis_tests import compare_calibration


@pytest.mark.parametrize("n_classes", [2, 4])
def test_mean_losses_are_those_of_scikit_learn(rng, n_classes):
    P, y = rng.dirichlet(np.ones(n_classes), size=200), rng.integers(0, n_classes, 200)
    labels = np.arange(n_classes)
    log, brier = (of_outcomes(LOSSES[name](P), y).mean() for name in LOSSES)
    assert_allclose(log, log_loss(y, P, labels=labels))
    if n_classes == 2:
        assert_allclose(brier, brier_score_loss(y, P[:, 1]))
    else:  # of several classes only scikit-learn 1.8 and later know it
        assert_allclose(brier, ((np.eye(n_classes)[y] - P) ** 2).sum(axis=1).mean())


def test_difference_and_its_standard_error_are_paired(rng):
    before, after = rng.uniform(size=50), rng.uniform(size=50)
    found = LossComparison.of(before, after, np.full(50, 3.0))
    gain = before - after
    assert_allclose(found.difference, gain.mean())
    assert_allclose(found.standard_error, gain.std(ddof=1) / np.sqrt(50))
    assert found.before - found.after == pytest.approx(found.difference)
    sides = [(found, gain), (LossComparison.of(after, before, np.ones(50)), -gain)]
    for compared, side in sides:
        change = "better" if side.mean() > 0 else "worse"
        assert f" after: {change} by {abs(gain.mean()):.4f} ±" in str(compared)


def test_weight_zero_removes_a_sample_also_one_of_infinite_loss(rng):
    before, after, weight = rng.uniform(size=50), rng.uniform(size=50), np.ones(50)
    weight[0], before[0] = 0, np.inf
    found = LossComparison.of(before, after, weight)
    alone = LossComparison.of(before[1:], after[1:], weight[1:])
    assert_allclose(
        [found.difference, found.standard_error], [alone.difference, alone.standard_error]
    )


def test_identical_predictions_do_not_differ():
    found = LossComparison.of(np.ones(5), np.ones(5), np.ones(5))
    assert (found.difference, found.standard_error, found.pvalue) == (0, 0, 1)
    assert str(found) == "1.0000 before and after"


@pytest.mark.parametrize(
    ("before", "after", "difference", "text"),
    [
        ([np.inf, 1], [1, 1], np.inf, "infinite before, 1.0000 after"),
        ([1, 1], [1, np.inf], -np.inf, "1.0000 before, infinite after"),
        ([np.inf, 1], [np.inf, 1], np.nan, "infinite before, infinite after"),
    ],
)
def test_infinite_losses_are_said_in_words(before, after, difference, text):
    found = LossComparison.of(np.array(before, float), np.array(after, float), np.ones(2))
    assert found.difference == difference or np.isnan(found.difference) == np.isnan(difference)
    assert np.isnan(found.pvalue)
    assert str(found).startswith(text)


@pytest.mark.parametrize("score", LOSSES)
def test_few_events_do_not_show_a_difference_of_equal_expected_losses(score):
    rng = np.random.default_rng(0)
    odds = rng.beta(0.5, 10, 500)
    odds /= odds.sum()
    proba = [np.column_stack([1 - n * odds, n * odds]) for n in (8, 2)]  # events expected
    gain = np.subtract(*(LOSSES[score](p) for p in proba))
    n_events = -gain[:, 0].sum() / (odds @ (gain[:, 1] - gain[:, 0]))  # of equal expected losses
    draws = (rng.random((400, 500)) < n_events * odds).astype(int)
    judged = [
        LossComparison.of_predictions(LOSSES[score], proba, (y, y), np.ones(500)) for y in draws
    ]
    rejections = np.count_nonzero([result.pvalue <= 0.05 for result in judged])
    assert (
        rejections <= 33
    )  # more have probability 3e-3 at level 5 %; by the spread of losses 30 to 56


def test_one_event_where_eight_were_expected_is_no_proof_of_another_loss():
    y, proba = (np.arange(1000) == 3).astype(int), [np.full(1000, p) for p in (0.0078, 0.001)]
    proba = [np.column_stack([1 - p, p]) for p in proba]
    judged = LossComparison.of_predictions(LOSSES["neg_log_loss"], proba, (y, y), np.ones(1000))
    gain = np.log(0.0078 / 0.001) + np.log((1 - 0.001) / (1 - 0.0078))
    deviation = gain * np.sqrt(0.0044 * (1 - 0.0044) / 1000)  # of events of the mean probability
    assert judged.standard_error == pytest.approx(deviation, rel=1e-9)
    assert judged.pvalue > 0.05


@pytest.mark.parametrize(("n_events", "by_law"), [(1, True), (9, True), (10, False), (30, False)])
def test_ten_events_show_the_variance_of_losses_by_themselves(n_events, by_law):
    y, proba = (np.arange(1000) < n_events).astype(int), [np.full(1000, p) for p in (0.1, 0.05)]
    proba = [np.column_stack([1 - p, p]) for p in proba]
    judged = LossComparison.of_predictions(LOSSES["neg_log_loss"], proba, (y, y), np.ones(1000))
    gain = np.subtract(*(LOSSES["neg_log_loss"](p)[0] for p in proba))
    share = 0.075 if by_law else n_events / 1000
    deviation = (gain[1] - gain[0]) * np.sqrt(share * (1 - share) / 1000)
    assert judged.standard_error == pytest.approx(abs(deviation), rel=1e-3)


@pytest.mark.parametrize("score", LOSSES)
@pytest.mark.parametrize("n_classes", [1, 2, 4])
@pytest.mark.parametrize("n", [5, 500])  # of few surprises the law sets the variance, of more not
def test_losses_that_differ_by_rounding_are_equal(rng, score, n_classes, n):
    P = rng.dirichlet(np.ones(max(n_classes, 2)), n)[:, -n_classes:]
    P = (P + 0.1) / (1 + 0.1 * max(n_classes, 2))
    y = rng.integers(0, max(n_classes, 2), n)
    for change, equal in ((3e-16, True), (3e-15, True), (1e-9, False)):
        proba = [P, P * (1 - change)]
        judged = LossComparison.of_predictions(LOSSES[score], proba, (y, y), np.ones(n))
        shown = judged.difference, judged.standard_error, judged.pvalue
        assert (shown == (0, 0, 1)) == equal
    judged = LossComparison.of(np.array([np.inf, 1.0]), np.array([0.0, 1.0]), np.ones(2))
    assert judged.difference == np.inf


def test_predictions_that_differ_by_rounding_have_no_difference(rng):
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    for method in ("projection", "skce"):
        for groups in (None, np.arange(400) // 4) if method == "projection" else (None,):
            judged = compare_calibration(y, p, p * (1 - 1e-15), method=method, groups=groups)
            assert (judged.pvalue, judged.estimate, judged.standard_error) == (1, 0, 0)
            limits = judged.error_difference
            assert (limits.estimate, limits.low, limits.high) == (0, 0, 0)
            other = compare_calibration(y, p, p * 0.9, method=method, groups=groups)
            assert other.standard_error > 0
