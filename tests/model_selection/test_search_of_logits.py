"""Searches and estimators of logits: maps get them as they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.isotonic import IsotonicRegression

from skcal import (
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    PlugIn,
    Stacking,
    TemperatureScaling,
    Zero,
)
from skcal.recalibration import SplineScaling, VectorScaling

_ISOTONIC = PlugIn(IsotonicRegression(out_of_bounds="clip"), target="outcome")


def tempered_logits(rng, n, n_classes, temperature):
    z = rng.normal(scale=2, size=(n, n_classes))
    z[:, 0] += 3
    y = (softmax(z, axis=1).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return temperature * z, np.minimum(y, n_classes - 1)


def direct_temperature(z, y):
    def loss(log_t):
        own = log_softmax(z / np.exp(log_t), axis=1)
        return -np.take_along_axis(own, y[:, None], axis=1).mean()

    return np.exp(minimize_scalar(loss, bracket=(0, 2), tol=1e-12).x)


@pytest.mark.filterwarnings("ignore:Class .* does not occur in the training part:UserWarning")
@pytest.mark.parametrize("notion", ["canonical", "binary"])
def test_a_search_fits_the_temperature_of_the_logits(rng, notion):
    n_classes = {"canonical": 200, "binary": 2}[notion]
    z, y = tempered_logits(rng, 600, n_classes, 8.0 if notion == "canonical" else 60.0)
    expected = direct_temperature(z, y)
    given = z if notion == "canonical" else z[:, 1] - z[:, 0]
    search = CalibrationErrorSearchCV(
        [Zero(), PlugIn(TemperatureScaling())], notion, from_logits=True, cv=3, random_state=0
    ).fit(given, y)
    [function] = search.best_estimator_.functions_
    assert_allclose(function.estimator_.temperature_, expected, rtol=1e-6)
    corrected = search.recalibrator().predict_proba(given)
    proba = np.maximum(softmax(z / expected, axis=1), softmax(z, axis=1) / np.sqrt(600))
    assert_allclose(corrected, proba / proba.sum(axis=1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("notion", ["canonical", "top-label"])
def test_where_nothing_is_lost_logits_give_the_answers_of_probabilities(rng, notion):
    z, y = tempered_logits(rng, 200, 3, 2.0)
    scalar = notion != "canonical"
    other = PlugIn(SplineScaling()) if scalar else PlugIn(VectorScaling())
    stack = Stacking([PlugIn(TemperatureScaling()), *([_ISOTONIC] if scalar else []), other])
    candidates = [Zero(), other, stack, (PlugIn(TemperatureScaling()), {"equivariant": [True]})]
    searches = [
        CalibrationErrorSearchCV(candidates, notion, from_logits=logits, cv=3, random_state=0)
        for logits in (True, False)
    ]
    one, two = searches[0].fit(z, y), searches[1].fit(softmax(z, axis=1), y)
    assert_allclose(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"], atol=1e-7
    )
    assert_allclose(one.squared_error_, two.squared_error_, atol=1e-7)
    assert_allclose(one.predict(z), two.predict(softmax(z, axis=1)), atol=1e-6)


def test_maps_read_what_the_estimator_reads(rng):
    z, y = tempered_logits(rng, 300, 2, 2.0)
    z = z[:, 1] - z[:, 0]
    for function in (PlugIn(TemperatureScaling()), PlugIn(TemperatureScaling(from_logits=True))):
        fits = [
            CalibrationErrorEstimator(function, "binary", from_logits=True).fit(z, y),
            CalibrationErrorEstimator(function, "binary").fit(expit(z), y),
        ]
        temperatures = [fit.functions_[0].estimator_.temperature_ for fit in fits]
        assert_allclose(*temperatures, rtol=1e-6)
        assert [fit.functions_[0].reads_logits for fit in fits] == [True, False]
        assert fits[0].function is function


def test_the_log_error_of_logits_is_finite_where_probabilities_are_1(rng):
    z = 60 * rng.choice([-1.0, 1.0], size=400)
    y = (rng.random(400) < np.where(z > 0, 0.9, 0.1)).astype(int)
    estimator = CalibrationErrorEstimator(PlugIn(TemperatureScaling()), from_logits=True)
    found = estimator.fit(z[:200], y[:200]).error(z[200:], y[200:], "log")
    # A tenth is wrong, which costs 60 nats each: 6 on average, with a standard error of 1.3.
    assert 2 < found.estimate < 10
    lost = CalibrationErrorEstimator(PlugIn(TemperatureScaling())).fit(expit(z), y)
    with pytest.warns(UserWarning, match="log error is infinite"):
        found = lost.error(expit(z), y, "log")
    assert found.estimate == np.inf
