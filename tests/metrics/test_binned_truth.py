"""Binned errors against published figures and known truths."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skcal.metrics import expected_calibration_error


@pytest.mark.parametrize("network", ["resnet18", "densenet121", "vgg16_bn", "googlenet"])
def test_canonical_errors_are_those_published(cifar10, published, network):
    """Widmann, Lindsten & Zachariah (2019): 10 bins a class, and cells of at least 100 samples."""
    proba, labels = cifar10(network)
    uniform = expected_calibration_error(labels, proba, notion="canonical", n_bins=10)
    assert_allclose(uniform, published[network]["ECE_uniform"], rtol=1e-10)
    options = {"notion": "canonical", "strategy": "median-variance", "min_samples": 100}
    dynamic = expected_calibration_error(labels, proba, **options)
    assert_allclose(dynamic, published[network]["ECE_dynamic"], rtol=1e-10)


@pytest.mark.parametrize(
    ("n", "stated"),
    [(100, 0.12), (1000, 0.04), pytest.param(10_000, 0.012, marks=pytest.mark.slow)],
)
def test_calibrated_predictions_show_the_bias_that_the_notes_state(n, stated):
    errors = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = rng.uniform(size=n)
        errors.append(expected_calibration_error((rng.uniform(size=n) < p).astype(int), p))
    # √(2/π) E√(p(1 - p)) √(15/n) = 1.21/√n for normal gaps; the mean of 200 has 2 % error.
    assert_allclose(np.mean(errors), 1.21 / np.sqrt(n), rtol=0.08)
    assert_allclose(np.mean(errors), stated, rtol=0.08)


@pytest.mark.parametrize(
    ("notion", "weighted"), [("classwise", False), ("canonical", True), ("top-label", True)]
)
def test_debiased_errors_of_sparse_bins_average_zero_over_all_outcomes(notion, weighted):
    """Every outcome of five calibrated predictions in bins of one, two and three samples."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.5] * 3, size=5)
    weight = rng.uniform(0.5, 2, 5) if weighted else None
    options = {"notion": notion, "sample_weight": weight, "labels": range(3), "n_bins": 3}
    options, mean = {"norm": 2, "debias": True, "root": False, **options}, 0.0
    for codes in product(range(3), repeat=5):
        chance = np.prod(proba[np.arange(5), list(codes)])
        mean += chance * expected_calibration_error(codes, proba, **options)
    assert abs(mean) < 1e-15
