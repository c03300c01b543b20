"""Isotonic, Venn-Abers, Dirichlet and ensemble maps, brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression

from skcal import TemperatureScaling
from skcal.recalibration import (
    BetaCalibration,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    IsotonicCalibration,
    VennAbers,
)


def binary(rng, n, ties=True):
    p = rng.uniform(0.02, 0.98, n)
    p = p.round(1 if ties else 9).clip(0.02, 0.98)
    return p, (rng.uniform(size=n) < p**1.5).astype(int)


def vector(rng, n, d=3):
    truth = rng.dirichlet(np.ones(d), size=n)
    y = np.minimum((truth.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1), d - 1)
    X = truth**1.7 * (1 + np.eye(d)[0])
    return X / X.sum(axis=1, keepdims=True), y


# Several classes


@pytest.mark.parametrize("map", [IsotonicCalibration(), VennAbers(), BetaCalibration()])
def test_of_several_classes_each_is_mapped_against_the_rest(map, rng):
    X, y = vector(rng, 90)
    fitted = clone(map).fit(X, y)
    parts = [clone(map).fit(X[:, k], y == k).predict_proba(X[:, k])[:, 1] for k in range(3)]
    proba = np.stack(parts, axis=1)
    assert_allclose(fitted.predict_proba(X), proba / proba.sum(axis=1, keepdims=True), rtol=1e-12)
    logits = np.log(X) + rng.normal(size=(90, 1))
    of_logits = clone(map).set_params(from_logits=True).fit(logits, y)
    assert_allclose(of_logits.predict_proba(logits), fitted.predict_proba(X), rtol=1e-5)
    huge = of_logits.predict_proba([[1e4, -1e4, 0.0]])
    assert np.isfinite(huge).all()
    if isinstance(map, VennAbers):
        assert_allclose(
            fitted.predict_interval(X)[:, 1],
            clone(map).fit(X[:, 1], y == 1).predict_interval(X[:, 1]),
        )


# Isotonic


@pytest.mark.parametrize("centered", [False, True])
def test_predictions_that_differ_in_the_last_digit_alone_stay_numbers(centered):
    nearly = 1 - 2.0**-50
    p, y = np.r_[0.2, 0.4, 0.6, [nearly] * 20, [1.0] * 20], np.r_[0, 1, 0, [1] * 40]
    fitted = IsotonicCalibration(centered=centered).fit(p, y)
    assert np.isfinite(fitted.y_thresholds_).all()
    assert_allclose(fitted.predict_proba([nearly, 1.0])[:, 1], 43.5 / 44, rtol=1e-6)


@pytest.mark.parametrize("ties", [False, True])
def test_without_centres_it_is_isotonic_regression(rng, ties):
    p, y = binary(rng, 80, ties)
    weight = rng.uniform(0.5, 2, 80)
    queries = np.linspace(0, 1, 57)
    plain = IsotonicRegression(out_of_bounds="clip").fit(p, y, weight).predict(queries)
    expected = (weight.sum() * plain + 0.5) / (weight.sum() + 1)
    found = IsotonicCalibration(centered=False).fit(p, y, weight).predict_proba(queries)
    assert_allclose(found[:, 1], expected, rtol=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_centred_flat_parts_are_points_at_their_mean(rng, ties):
    p, y = binary(rng, 60, ties)
    level = IsotonicRegression().fit(p, y).predict(p)
    centers = [[p[level == v].mean(), v] for v in np.unique(level)]
    queries = np.linspace(0, 1, 57)
    expected = (60 * np.interp(queries, *np.transpose(centers)) + 0.5) / 61
    fitted = IsotonicCalibration().fit(p, y)
    assert_allclose(fitted.predict_proba(queries)[:, 1], expected, rtol=1e-9)
    assert (np.diff(fitted.y_thresholds_) > 0).all()


# Venn-Abers


@pytest.mark.parametrize(("ties", "weighted"), [(False, True), (True, False), (True, True)])
@pytest.mark.parametrize("n", [1, 2, 15])
def test_venn_abers_is_isotonic_regression_with_the_new_sample(rng, n, ties, weighted):
    p, y = binary(rng, n, ties)
    weight = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    queries = np.concatenate([p, rng.uniform(size=9), [0.0, 1.0]])
    fitted = VennAbers().fit(p, y, weight)
    interval = fitted.predict_interval(queries)
    for q, found in zip(queries, interval, strict=True):
        for label in (0, 1):
            isotonic = IsotonicRegression().fit(
                np.append(p, q), np.append(y, label), np.append(weight, 1)
            )
            assert_allclose(found[label], isotonic.predict([q])[0], atol=1e-9)
    p0, p1 = interval.T
    assert_allclose(fitted.predict_proba(queries)[:, 1], p1 / (1 - p0 + p1), rtol=1e-12)


# Dirichlet


@pytest.mark.parametrize("columns", [1, 2])
def test_dirichlet_calibration_of_two_classes_is_beta_calibration(rng, columns):
    p, y = binary(rng, 120, ties=False)
    X = p if columns == 1 else np.column_stack([1 - p, p])
    found = DirichletCalibration(tol=1e-10).fit(X, y).predict_proba(X)
    assert_allclose(found, BetaCalibration(tol=1e-10).fit(p, y).predict_proba(p), rtol=1e-6)


# Ensemble temperature


@pytest.mark.parametrize("d", [2, 4])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_weights_of_the_mixture_maximise_the_likelihood(rng, d, noise):
    X, y = vector(rng, 300, d)
    y = np.where(rng.uniform(size=300) < noise, rng.integers(0, d, 300), y)
    weight = rng.uniform(0.2, 2, 300)
    fitted = EnsembleTemperatureScaling().fit(X, y, weight)
    assert fitted.temperature_ == TemperatureScaling().fit(X, y, weight).temperature_
    assert_allclose(fitted.weights_.sum(), 1, rtol=1e-12)
    parts = [softmax(np.log(X) / fitted.temperature_, axis=1), X, np.full_like(X, 1 / d)]
    own = np.stack([part[np.arange(300), y] for part in parts], axis=1)
    steps = np.linspace(0, 1, 101)
    grid = [(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1 + 1e-9]
    likelihood = np.log(own @ np.transpose(grid)).T @ weight
    assert np.log(own @ fitted.weights_) @ weight >= likelihood.max() - 1e-9
    expected = np.tensordot(fitted.weights_, np.stack(parts), axes=1)
    assert_allclose(fitted.predict_proba(X), expected, rtol=1e-9)
    assert_array_equal(fitted.predict(X), X.argmax(axis=1))
    alone = [fitted.predict_proba(row)[0] for row in X[:, None]]
    assert_array_equal(alone, fitted.predict_proba(X))
