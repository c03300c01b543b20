"""Smooth and cumulative calibration errors against their definitions."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from skcal.metrics import (
    cutoff_calibration_error,
    expected_calibration_error,
    kolmogorov_smirnov_calibration_error,
    smooth_calibration_error,
)
from skcal.metrics import smooth as module
from skcal.metrics.smooth import CosineSeries, _own_width

METRICS = [
    smooth_calibration_error,
    partial(smooth_calibration_error, bandwidth=0.07),
    kolmogorov_smirnov_calibration_error,
    cutoff_calibration_error,
]


def draw(kind, n=14):
    """Labels and P(positive)."""
    rng = np.random.default_rng(3)
    p = rng.uniform(size=n)
    if kind == "ties and ends":
        p = np.array([0, 0, 0.2, 0.2, 0.2, 0.5, 0.5, 0.9, 0.9, 1, 1, 1, 1 - 1e-7, 1e-12])
    if kind == "calibrated":
        p = rng.beta(0.4, 0.4, size=100 * n)
        return (rng.uniform(size=100 * n) < p).astype(int), p
    return rng.integers(0, 2, n), p


DRAWS = ["spread", "ties and ends", "calibrated"]


def multiclass_draw(n=60):
    rng = np.random.default_rng(5)
    return rng.integers(0, 3, n), rng.dirichlet(np.full(3, 0.7), size=n)


# Smooth ECE


def images(p):
    """p reflected at 0 and 1, again and again."""
    return np.concatenate([sign * p + 2 * m for m in range(-6, 7) for sign in (1, -1)])


def smooth_by_zeros(y, p, width):
    """∫ |mean_i δ_i Σ φ(t; image of p_i, width)| dt.

    By the antiderivative, between the zeros of g on a grid of width/20.
    """
    x, mass = images(p), np.tile(y - p, 26) / len(p)
    near = np.abs(x - 0.5) < 0.5 + 10 * width
    x, mass = x[near], mass[near]
    t = (np.unique(p)[:, None] + width * np.linspace(-9, 9, 361)).ravel()
    t = np.unique(np.concatenate([[0, 1], t[(t > 0) & (t < 1)]]))

    def g(t):
        return np.exp(-(((np.asarray(t)[..., None] - x) / width) ** 2) / 2) @ mass

    change = np.flatnonzero(np.diff(np.sign(g(t))))
    zeros = [brentq(g, t[i], t[i + 1], xtol=1e-15) for i in change]
    ends = np.concatenate([[0], zeros, [1]])
    return np.abs(np.diff(ndtr((ends[:, None] - x) / width) @ mass)).sum()


@pytest.mark.parametrize("kind", DRAWS[:2])
@pytest.mark.parametrize("width", [1, 0.1, 0.01, 1e-3])
def test_smooth_error_is_the_integral_of_the_smoothed_residual(width, kind):
    y, p = draw(kind)
    expected = smooth_by_zeros(y, p, width)
    assert_allclose(smooth_calibration_error(y, p, bandwidth=width), expected, rtol=1e-10)


@pytest.mark.parametrize("width", [1, 0.1, 1e-2, 1e-3])
@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_residuals_that_nearly_cancel_keep_their_digits(gap, width):
    y, p = np.array([1, 0]), np.array([0.5, 0.5 + gap])
    expected = smooth_by_zeros(y, p, width)
    assert_allclose(smooth_calibration_error(y, p, bandwidth=width), expected, rtol=1e-8)


@pytest.mark.parametrize("kind", DRAWS)
def test_the_self_consistent_error_is_its_own_width(kind):
    """It is the only such width, since the error falls as the width grows."""
    y, p = draw(kind)
    error = smooth_calibration_error(y, p)
    assert 1e-3 < error < 1
    assert_allclose(smooth_calibration_error(y, p, bandwidth=error), error, rtol=1e-9)
    if kind != "calibrated":
        assert_allclose(smooth_by_zeros(y, p, error), error, rtol=1e-9)


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("width", [0.5, 0.1, 0.01, 1e-3])
def test_the_slope_that_newton_takes_is_the_derivative_by_the_width(kind, width):
    y, p = draw(kind)
    series, step = CosineSeries(p, (y - p) / len(p)), 1e-3 * width
    (below, _), (_, slope), (above, _) = map(
        series.error_and_slope, (width - step, width, width + step)
    )
    assert_allclose(slope, (above - below) / (2 * step), rtol=1e-5, atol=1e-13 / step)


@pytest.mark.parametrize("n", [100, 20_000, 200_000])
@pytest.mark.parametrize("n_modes", [1024, 5000])
def test_coefficients_are_the_sums_of_cosines(n, n_modes):
    """Whatever the number of cells that n and the modes ask for, and of terms in each."""
    rng = np.random.default_rng(2)
    p, mass = np.append(rng.beta(0.3, 2, size=n - 2), [0, 1]), rng.normal(size=n) / n
    coefficients = CosineSeries(p, mass).up_to(n_modes)
    for k in (0, 1, n_modes // 2, n_modes - 1):
        expected = mass @ np.cos(k * np.pi * p)
        assert_allclose(coefficients[k], expected, atol=2e-13 * np.abs(mass).sum())


@pytest.mark.parametrize("seed", range(4))
def test_newton_finds_what_bisection_finds(seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(*rng.uniform(0.2, 3, size=2), size=int(10 ** rng.uniform(0.5, 4)))
    y = rng.uniform(size=len(p)) < p ** rng.uniform(0.5, 2)
    series = CosineSeries(p, (y - p) / len(p))
    expected = brentq(lambda w: series.error_and_slope(w)[0] - w, 1e-4, 1, xtol=1e-15, rtol=1e-14)
    assert_allclose(smooth_calibration_error(y, p), expected, rtol=2e-9)


@pytest.mark.parametrize("steepness", [0.02, 0.002])
def test_newton_is_kept_between_its_bounds_where_the_error_falls_steeply(steepness):
    class Cliff:
        calls = 0

        def error_and_slope(self, width):
            self.calls += 1
            assert self.calls < 60
            share = expit((0.2 - width) / steepness)
            return 0.01 + 0.49 * share, -0.49 * share * (1 - share) / steepness

    width = _own_width(cliff := Cliff())
    assert_allclose(cliff.error_and_slope(width)[0], width, rtol=1e-9)


def test_residuals_that_cancel_within_the_smallest_width_have_that_error(monkeypatch):
    monkeypatch.setattr(module, "_SMALLEST_WIDTH", 1e-3)  # which takes fewer terms than 1e-5
    assert smooth_calibration_error([1, 0], [0.5, 0.5 + 1e-10]) == 1e-3


def test_the_limit_of_small_widths_is_the_ece_of_distinct_predictions():
    rng = np.random.default_rng(1)
    y, p = rng.integers(0, 2, 200), rng.integers(0, 11, 200) / 10
    expected = expected_calibration_error(y, p, strategy="unique")
    assert_allclose(smooth_calibration_error(y, p, bandwidth=1e-3), expected, rtol=1e-9)
    assert smooth_calibration_error(y, p, bandwidth=0.1) < expected - 0.01


@pytest.mark.parametrize("width", [3, 100])
@pytest.mark.parametrize("kind", DRAWS)
def test_the_limit_of_large_widths_is_the_mean_residual(kind, width):
    y, p = draw(kind)
    expected = abs(np.mean(y - p))
    assert_allclose(smooth_calibration_error(y, p, bandwidth=width), expected, rtol=1e-9)


def test_equal_predictions_of_the_right_frequency_have_no_smooth_error():
    y, p = [0, 1, 0, 1, 1, 1, 0], [0, 1, 0.5, 0.5, 0.75, 0.75, 0.75]
    assert smooth_calibration_error([*y, 1], [*p, 0.75]) < 1e-15
    assert smooth_calibration_error([*y, 1], [*p, 0.75], bandwidth=0.01) < 1e-15
    assert smooth_calibration_error([*y, 0], [*p, 0.75]) > 0.01


def test_an_error_below_the_smallest_width_is_that_of_distinct_predictions():
    y = np.array([0, 1, 0, 1])
    assert_allclose(smooth_calibration_error(y, np.abs(y - 1e-6)), 1e-6)


# Bug: f(1) = 1 + 2e-16 leaves brentq on [1, 1] without a change of sign.
@pytest.mark.filterwarnings("ignore:All predictions in")
@pytest.mark.parametrize("n", [1, 49, 100, 333])
def test_certain_and_wrong_predictions_have_error_1(n):
    y = np.ones(n, dtype=int)
    assert_allclose(smooth_calibration_error(y, np.zeros(n)), 1)
    assert_allclose(smooth_calibration_error(1 - y, np.ones(n)), 1)
    assert_allclose(kolmogorov_smirnov_calibration_error(y, np.zeros(n)), 1)


# Over thresholds and over ranges


def cumulative_means(y, p):
    """mean_i 1[p_i ≤ t] δ_i at every t where it may change, and before all of them."""
    return np.array([np.mean((p <= t) * (y - p)) for t in [-1, *p]])


@pytest.mark.parametrize("kind", DRAWS)
def test_cumulative_errors_are_maxima_over_thresholds_and_over_ranges(kind):
    y, p = draw(kind)
    path = cumulative_means(y, p)
    error, span = kolmogorov_smirnov_calibration_error(y, p), cutoff_calibration_error(y, p)
    assert_allclose(error, np.abs(path).max(), rtol=1e-12)
    assert_allclose(span, path.max() - path.min(), rtol=1e-12)
    if kind != "calibrated":
        gaps = [abs(np.mean((low <= p) * (p <= high) * (y - p))) for low in p for high in p]
        assert_allclose(span, max(gaps), rtol=1e-12)


def test_thresholds_lie_between_distinct_predictions_only():
    """Sorting ties by their labels would show 0.25 on the way."""
    assert kolmogorov_smirnov_calibration_error([1, 1, 0, 0], [0.5] * 4) == 0
    assert cutoff_calibration_error([0, 0, 1, 1], [0.5] * 4) == 0


# What holds for all of them


@pytest.mark.parametrize("metric", METRICS)
def test_errors_of_notions_are_those_of_their_binary_problems(metric):
    y, proba = multiclass_draw()
    top, confidence = proba.argmax(axis=1), proba.max(axis=1)
    assert_allclose(metric(y, proba), metric((y == top).astype(int), confidence), rtol=1e-12)
    each = [metric((y == k).astype(int), proba[:, k]) for k in range(3)]
    classwise = partial(metric, y, proba, notion="classwise")
    assert_allclose(classwise(average=None), each, rtol=1e-12)
    assert_allclose(classwise(), np.sum(each), rtol=1e-12)
    assert_allclose(classwise(average="macro"), np.mean(each), rtol=1e-12)
    rows = [top == k for k in range(3)]
    each = [metric((y[r] == k).astype(int), confidence[r]) for k, r in enumerate(rows)]
    top_label = partial(metric, y, proba, notion="top-label")
    assert_allclose(top_label(average=None), each, rtol=1e-12)
    assert_allclose(top_label(), np.mean(rows, axis=1) @ each, rtol=1e-12)


@pytest.mark.parametrize("bandwidth", ["self-consistent", 1e-5, 0.1])
@pytest.mark.parametrize(
    ("y", "p"),
    [([0, 0, 0], [1e-5] * 3), ([0, 1, 0], [0.3] * 3), ([0, 0], [2e-5, 1e-4]), ([1], [1])],
)
def test_residuals_that_cancel_nowhere_need_no_width(y, p, bandwidth, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a series is computed")

    monkeypatch.setattr(module, "CosineSeries", refuse)
    found = smooth_calibration_error(y, p, labels=[0, 1], bandwidth=bandwidth)
    assert_allclose(found, abs(np.mean(y) - np.mean(p)), rtol=1e-12, atol=1e-17)
