"""Losses of predictions and their paired comparisons."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import brier_score_loss, log_loss

from skcal._scores import LOSSES, of_outcomes
from skcal.recalibration.losses import LossComparison


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
