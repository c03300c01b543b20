"""Weights, precision and columns of binned errors, by hand."""

import numpy as np
from numpy.testing import assert_allclose

from skcal.metrics import expected_calibration_error


def test_debiasing_of_weighted_samples_is_the_mean_over_pairs(rng):
    """The mean of δ_i δ_j over pairs i ≠ j of a bin, each with weight w_i w_j."""
    p, y, weight = rng.uniform(size=50), rng.integers(0, 2, 50), rng.uniform(0.5, 2, 50)
    expected = 0.0
    for left in (0, 0.5):
        inside = (left < p) & (p <= left + 0.5)
        w, residual = weight[inside], (y - p)[inside]
        pairs = np.outer(w, w)
        np.fill_diagonal(pairs, 0)
        expected += w.sum() / weight.sum() * (residual @ pairs @ residual) / pairs.sum()
    options = {"norm": 2, "debias": True, "root": False, "n_bins": 2}
    squared = expected_calibration_error(y, p, sample_weight=weight, **options)
    assert_allclose(squared, expected, rtol=1e-12)


def test_many_float32_rows_are_summed_in_double_precision(rng):
    p = rng.uniform(size=200_000).astype(np.float32)
    y = (rng.uniform(size=len(p)) < p**2).astype(int)
    single, double = (expected_calibration_error(y, x) for x in (p, p.astype(float)))
    assert_allclose(single, double, rtol=1e-9)  # torchmetrics 1.9 is off by 3e-5


def test_probability_of_the_positive_class_and_confidence_are_two_metrics():
    """Each is 0 where the other is not."""
    p, y = np.repeat([0.25, 0.75], 4), [1, 0, 0, 0, 0, 1, 1, 1]
    two = np.column_stack([1 - p, p])
    assert expected_calibration_error(y, p) == 0
    assert expected_calibration_error(y, two, notion="confidence") == 0
    y = [1, 1, 0, 0, 1, 1, 1, 1]  # 1/4 too seldom below, 1/4 too often above
    assert expected_calibration_error(y, p) == 0.25
    assert expected_calibration_error(y, two, notion="confidence") == 0
    assert expected_calibration_error(y, two) == 0.25  # auto


# Extremes
