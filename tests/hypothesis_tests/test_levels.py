"""Levels: calibrated predictions are rejected as often as nominal at most; see tests/battery."""

from functools import partial

import numpy as np
import pytest
from calibrated_samples import FALSE_ALARM, awkward, draw
from scipy.stats import binom

from skcal import Binning
from skcal.hypothesis_tests import (
    calibration_test,
    kolmogorov_smirnov_test,
    mean_embedding_test,
    risk_test,
    scan_test,
)


def happened(rng, p):
    return (rng.uniform(size=len(p)) < p).astype(int)


def rare(rng, seed):
    p = rng.beta(0.5, 5, 80)
    return happened(rng, p), p


def rare_or_rounded(rng, seed):
    p = np.round(rng.uniform(size=80), 1)
    return rare(rng, seed) if seed % 2 else (happened(rng, p), p)


def two_columns(rng, seed):
    p = rng.uniform(size=250)
    return happened(rng, p), np.column_stack([1 - p, p])


def ten_classes(rng, seed):
    proba = awkward(rng, 50, 10)
    return draw(rng, proba), proba


def up_to(highest, rng, seed):
    p = np.clip(rng.uniform(0, highest, 400), 0, 1)
    return happened(rng, p), p


def weighted(y, p, **options):
    weight = np.random.default_rng(options["random_state"]).lognormal(1.0, 1.0, len(y))
    return calibration_test(y, p, sample_weight=weight, **options)


FEW, TWO = {"n_resamples": 19}, {"labels": [0, 1]}
#: Test, samples, options, number of data sets, and the largest level that it may have.
CASES = {
    "scan": (scan_test, rare, FEW | TWO, 100, 0.05),
    "combined": (calibration_test, rare_or_rounded, FEW | TWO, 100, 0.05),
    "combined, weights": (weighted, rare, FEW | TWO, 100, 0.05),
    "embeddings": (
        partial(mean_embedding_test, notion="canonical", n_locations=3),
        ten_classes,
        FEW,
        100,
        0.05,
    ),
    "embeddings, as many locations as events support": (
        partial(mean_embedding_test, notion="canonical", method="chi2"),
        two_columns,
        TWO,
        100,
        0.07,
    ),
    "risk": (
        partial(risk_test, function=Binning(5, debias=True), notion="confidence"),
        ten_classes,
        FEW,
        100,
        0.05,
    ),
    "largest sum": (kolmogorov_smirnov_test, partial(up_to, 1.0), TWO, 400, 0.05),
    "largest range": (
        partial(kolmogorov_smirnov_test, statistic="kuiper"),
        partial(up_to, 0.04),
        TWO,
        400,
        0.05,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_calibrated_predictions_are_rejected_at_most_as_often_as_nominal(name):
    test, sample, options, n_sets, level = CASES[name]
    rejections = 0
    for seed in range(n_sets):
        y, proba = sample(np.random.default_rng(seed), seed)
        rejections += test(y, proba, random_state=seed, **options).pvalue <= 0.05
    assert rejections <= binom.isf(FALSE_ALARM, n_sets, level)
