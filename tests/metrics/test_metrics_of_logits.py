"""Metrics of logits: logarithms are theirs, where probabilities have lost their digits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp, softmax

from skcal import CalibrationTable
from skcal.hypothesis_tests import cox_test
from skcal.metrics import (
    bootstrap_interval,
    calibration_intercept,
    calibration_slope,
    cox_recalibration,
    cross_fitted_calibration_error,
    expected_calibration_error,
    integrated_calibration_index,
    score_decomposition,
    validation_measures,
)
from skcal.notions import make_problems


def overconfident(rng, n=2000):
    """Logits and labels whose slope is 1/40: most are far beyond ±36, where float64 ends."""
    z = rng.normal(scale=1.5, size=n)
    return 40 * z, (rng.random(n) < expit(z)).astype(int)


@pytest.fixture(scope="module")
def extreme():
    return overconfident(np.random.default_rng(0))


def binary_loss(z, y):
    return np.logaddexp(0, np.where(y == 1, -z, z))


def test_slope_and_intercept_are_those_of_the_logits(extreme):
    z, y = extreme
    direct = minimize(
        lambda ab: binary_loss(ab[0] + ab[1] * z / 40, y).sum(), [0.0, 1.0], tol=1e-10
    )
    slope = calibration_slope(y, z, from_logits=True)
    assert_allclose(slope, direct.x[1] / 40, rtol=1e-5)
    with pytest.warns(UserWarning, match="against predictions of exactly 0 or 1"):
        calibration_slope(y, expit(z))
    found = cox_recalibration(y, z, from_logits=True)
    assert_allclose([found.slope, found.intercept], [slope, direct.x[0]], rtol=1e-4, atol=1e-6)
    assert_allclose(found.log_likelihood["calibrated"], -binary_loss(z, y).sum())
    assert_allclose(
        calibration_intercept(y, z, from_logits=True), found.intercept_in_the_large, rtol=1e-8
    )
    measured = validation_measures(y, z, from_logits=True, n_resamples=19, random_state=0)
    assert_allclose(measured.slope.estimate, found.slope)
    two_columns = cox_recalibration(y, np.column_stack([-z / 2, z / 2]), from_logits=True)
    assert_allclose(two_columns.slope, slope, rtol=1e-9)


def test_the_likelihood_ratio_of_slopes_is_that_of_the_logits(extreme):
    z, y = extreme
    found = cox_recalibration(y, z, from_logits=True)
    tested = cox_test(y, z, hypothesis="slope", from_logits=True)
    assert_allclose(tested.estimate, found.slope)
    gain = found.log_likelihood["intercept and slope"] - found.log_likelihood["intercept"]
    assert_allclose(tested.statistic, 2 * gain)


@pytest.mark.parametrize("strategy", ["isotonic", "uniform"])
def test_the_log_loss_of_logits_has_no_bound(extreme, strategy):
    z, y = extreme
    options = {"score": "log-loss", "notion": "binary", "strategy": strategy, "from_logits": True}
    parts = score_decomposition(y, z, **options)
    assert_allclose(parts.score, binary_loss(z, y).mean())
    rest = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert_allclose(rest, parts.score)


def test_the_log_loss_of_several_classes_is_that_of_the_logits(rng):
    z, y = rng.normal(scale=60, size=(500, 5)), rng.integers(0, 5, 500)
    loss = -np.take_along_axis(log_softmax(z, axis=1), y[:, None], axis=1).mean()
    options = {"score": "log-loss", "strategy": "uniform", "n_bins": 2, "from_logits": True}
    assert_allclose(score_decomposition(y, z, notion="canonical", **options).score, loss)
    table = CalibrationTable()
    for rows in (slice(0, 200), slice(200, None)):
        table.update(y[rows], z[rows], from_logits=True)
    expected = expected_calibration_error(y, softmax(z, axis=1))
    assert_allclose(expected_calibration_error(table), expected)


def test_logits_pass_through_the_bootstrap(extreme):
    z, y = extreme
    options = {"n_resamples": 19, "random_state": 0}
    found = bootstrap_interval(calibration_slope, y, z, from_logits=True, **options)
    assert_allclose(found.estimate, calibration_slope(y, z, from_logits=True))
    one = bootstrap_interval(expected_calibration_error, y, z, from_logits=True, **options)
    other = bootstrap_interval(expected_calibration_error, y, expit(z), **options)
    assert_allclose(one.distribution, other.distribution)


def test_the_positive_class_of_two_columns_may_be_the_first(rng):
    z = rng.normal(size=(300, 2))
    y = (rng.random(300) < expit(z[:, 1] - z[:, 0])).astype(int)
    names = np.array(["no", "yes"])[y]
    options = {"labels": ["no", "yes"], "from_logits": True}
    one = cox_recalibration(names, z, pos_label="no", **options)
    other = cox_recalibration(1 - y, z[:, 0] - z[:, 1], from_logits=True)
    assert_allclose([one.slope, one.intercept], [other.slope, other.intercept], rtol=1e-9)


def grouped(logs, groups):
    """Logarithm of the sums of p over groups of classes, by definition."""
    return np.stack(
        [logsumexp(np.where(groups == k, logs, -np.inf), axis=1) for k in range(groups.max() + 1)],
        axis=1,
    )


@pytest.mark.parametrize("scale", [1, 30])
@pytest.mark.parametrize("notion", ["canonical", "confidence", "top-label", "classwise", "top-2"])
def test_problems_hold_the_logarithms_of_their_features(rng, notion, scale):
    logs = log_softmax(rng.normal(scale=scale, size=(50, 4)), axis=1)
    proba, classes = np.exp(logs), np.arange(4)
    top = proba.argmax(axis=1)
    rank = np.argsort(np.argsort(-logs, axis=1), axis=1)
    for k, problem in enumerate(make_problems(proba, None, notion, logits=logs)):
        assert problem.logits.shape == problem.features.shape
        if notion in ("canonical", "top-2"):
            group = np.minimum(rank, 2) if notion == "top-2" else np.tile(classes, (50, 1))
            expected = grouped(logs, group)
        else:
            own = (classes == (k if notion == "classwise" else top[:, None])).astype(int)
            own = np.broadcast_to(own, logs.shape)
            both = grouped(logs, own)
            expected = (both[:, 1:] - both[:, :1])[problem.rows]
        assert_allclose(problem.logits, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("metric", [cross_fitted_calibration_error, integrated_calibration_index])
@pytest.mark.parametrize("scale", [1, 3])
def test_of_moderate_logits_what_is_fitted_is_that_of_the_probabilities(metric, scale, rng):
    z = rng.normal(scale=scale, size=(300, 4))
    y = (z / scale + rng.gumbel(size=z.shape)).argmax(axis=1)
    options = {"random_state": 0} if metric is cross_fitted_calibration_error else {}
    of_logits = metric(y, z, from_logits=True, **options)
    assert_allclose(of_logits, metric(y, softmax(z, axis=1), **options), rtol=1e-6)
