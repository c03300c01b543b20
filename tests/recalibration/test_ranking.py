"""Which maps keep the ranking of samples of two classes, as doc/faq.rst says."""

import inspect
import warnings

import numpy as np
import pytest
from scipy.special import expit, logit

from skcal import recalibration
from skcal.recalibration import Mixture, RecalibrationMap, Smoothed

KEEP = {
    "Identity",
    "BayesianCalibration",
    "TemperatureScaling",
    "ClassBasedTemperatureScaling",
    "InterceptCalibration",
}
MAKE_EQUAL = {"IsotonicCalibration", "VennAbers", "EnsembleTemperatureScaling"}
REVERSE = {
    "BetaCalibration",
    "QuadraticScaling",
    "SplineScaling",
    "HistogramBinning",
    "VectorScaling",
    "MatrixScaling",
    "DirichletCalibration",
}
MAPS = {
    name: kind
    for name, kind in vars(recalibration).items()
    if inspect.isclass(kind)
    and issubclass(kind, RecalibrationMap)
    and kind not in (RecalibrationMap, Smoothed, Mixture)
}
TRUTHS = {
    "shifted": lambda p: expit(0.6 * logit(p) + 0.5),
    "turned round": lambda p: 1 - p,
    "lowest in the middle": lambda p: 0.1 + 3.2 * (p - 0.5) ** 2,
    "highest in the middle": lambda p: 0.9 - 3.2 * (p - 0.5) ** 2,
    "waves": lambda p: p + 0.25 * np.sin(4 * np.pi * p),
}


def steps(name, truth, n):
    """Differences of recalibrated probabilities along a grid of predictions."""
    rng = np.random.default_rng(n)
    p = rng.uniform(0.002, 0.998, n)
    y = (rng.random(n) < np.clip(TRUTHS[truth](p), 0, 1)).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MAPS[name]().fit(np.column_stack([1 - p, p]), y)
    grid = expit(np.linspace(-6, 6, 401))
    return np.diff(fitted.predict_proba(np.column_stack([1 - grid, grid]))[:, 1])


def test_each_map_is_in_one_list():
    lists = [*KEEP, *MAKE_EQUAL, *REVERSE, "PlattScaling"]
    assert sorted(lists) == sorted(MAPS)


@pytest.mark.parametrize("name", sorted(KEEP | MAKE_EQUAL))
def test_maps_that_reverse_no_two_samples(name):
    for truth in TRUTHS:
        for n in (60, 600):
            step = steps(name, truth, n)
            assert (step > 0).all() if name in KEEP else (step >= -1e-12).all()


@pytest.mark.parametrize("name", sorted(REVERSE))
def test_maps_that_may_reverse_samples(name):
    assert any((steps(name, truth, 600) < -1e-6).any() for truth in TRUTHS)


def test_platt_scaling_rises_unless_its_slope_is_negative():
    assert (steps("PlattScaling", "shifted", 600) > 0).all()
    assert (steps("PlattScaling", "turned round", 600) < 0).all()


def test_isotonic_maps_make_samples_equal():
    for name in ("IsotonicCalibration", "VennAbers"):
        assert (steps(name, "waves", 600) == 0).any()
