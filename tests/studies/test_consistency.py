"""Consistency resampling by brute force over its seeds."""

import numpy as np
import pytest
from calibrated_samples import sample
from consistency import consistency_test
from numpy.testing import assert_allclose

from skcal.hypothesis_tests import monte_carlo_test
from skcal.metrics import expected_calibration_error, squared_kernel_calibration_error


def bias(outcomes, features):
    return abs(np.mean(outcomes - features))


METRICS = {
    bias: bias,
    "expected_calibration_error": expected_calibration_error,
    "squared_kernel_calibration_error": squared_kernel_calibration_error,
}
NOTIONS = ["binary", "confidence", "classwise", "top-label", "canonical"]


@pytest.mark.parametrize("statistic", METRICS)
def test_predictions_are_redrawn_too(statistic):
    metric = METRICS[statistic]
    y, x = sample("binary")
    null = []
    for seed in np.random.RandomState(4).randint(2**31 - 1, size=39):
        drawn = x[np.random.default_rng(seed).integers(len(x), size=len(x))]
        outcomes = np.random.default_rng(seed + 1).random(len(x)) < drawn
        null.append(metric(outcomes.astype(int), drawn))
    result = consistency_test(y, x, statistic, n_resamples=39, random_state=4)
    assert_allclose(result.null_distribution, null, rtol=1e-9, atol=1e-14)
    assert_allclose(result.statistic, metric(y, x), rtol=1e-9)
    assert (
        result.pvalue == (1 + np.count_nonzero(result.null_distribution >= result.statistic)) / 40
    )


@pytest.mark.parametrize("notion", NOTIONS)
def test_every_notion_is_known(notion):
    name = "expected_calibration_error"
    y, proba = sample(notion, n=40, n_classes=3)
    result = consistency_test(y, proba, name, notion=notion, n_resamples=59, random_state=0)
    test = monte_carlo_test(y, proba, name, notion=notion, n_resamples=59, random_state=0)
    assert result.statistic == test.statistic
    assert 0 < result.pvalue <= 1
    assert "level not held" in result.method
