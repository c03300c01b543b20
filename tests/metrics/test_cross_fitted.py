"""Calibration errors by functions that are fitted to other samples."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from skcal import CalibrationErrorEstimator, PlugIn, TemperatureScaling
from skcal.datasets import make_tempered
from skcal.metrics import (
    cross_fitted_calibration_error,
    expected_calibration_error,
    make_calibration_scorer,
)
from skcal.recalibration import SplineScaling

TEMPERATURE = PlugIn(TemperatureScaling())


def tempered(n=600, temperature=2.0, seed=0):
    data = make_tempered(n, temperature=temperature, n_classes=3, random_state=seed)
    return data.labels, data.proba


@pytest.mark.parametrize("notion", ["confidence", "classwise", "top-label", "canonical"])
def test_a_single_test_set_has_the_error_of_one_function(notion):
    y, P = tempered()
    train, test = np.arange(300), np.arange(300, 600)
    estimator = CalibrationErrorEstimator(TEMPERATURE, notion).fit(P[train], y[train])
    options = {"notion": notion, "function": TEMPERATURE, "cv": [(train, test)]}
    for kind in ("squared", "rms", "l1", "l2", "log"):
        error = cross_fitted_calibration_error(y, P, kind=kind, **options)
        assert_allclose(error, estimator.error(P[test], y[test], kind).estimate)


def test_it_is_near_the_truth_where_bins_are_not():
    calibrated = [tempered(temperature=1.0, seed=seed) for seed in range(20)]
    options = {"notion": "confidence"}
    error = partial(cross_fitted_calibration_error, kind="l1", **options)
    ours = [error(*s, random_state=0) for s in calibrated]
    binned = [expected_calibration_error(*s, **options) for s in calibrated]
    assert np.mean(ours) < 0.35 * np.mean(binned)  # 0.30 when this was written
    y, P = tempered(4000)
    # Noise of bins is small at 30,000 samples.
    one = error(y, P, random_state=0)
    other = expected_calibration_error(*tempered(30_000, seed=1), **options)
    assert abs(one - other) < 0.02


def test_the_defaults_are_splines_and_shuffled_folds():
    y, P = tempered()
    one = cross_fitted_calibration_error(y, P, random_state=1)
    assert one == cross_fitted_calibration_error(
        y, P, kind="rms", notion="confidence", function=PlugIn(SplineScaling()), random_state=1
    )
    order = np.random.default_rng(0).permutation(len(y))
    one, other = (
        cross_fitted_calibration_error(y[rows], P[rows], kind="l1", random_state=1)
        for rows in (slice(None), order)
    )
    assert_allclose(other, one)
    splitter = KFold(5, shuffle=True, random_state=3)
    assert cross_fitted_calibration_error(y, P, cv=splitter) > 0.05


def test_a_scorer_ranks_models_that_are_calibrated():
    X = np.random.default_rng(0).normal(size=(600, 2))
    y = (np.random.default_rng(1).random(600) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    scorer = make_calibration_scorer(cross_fitted_calibration_error, signed=True)
    scores = cross_val_score(LogisticRegression(), X, y, scoring=scorer, cv=10)
    assert len(set(scores)) == 10
    assert min(scores) < 0 < max(scores)


def test_vectors_of_many_columns_have_an_error():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(120, 0.1), 100)
    options = {"notion": "canonical", "labels": range(120), "random_state": 0}
    error = cross_fitted_calibration_error(P.argmax(axis=1), P, kind="l1", **options)
    assert error > 0.1


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_a_few_samples_have_an_error(n):
    y, P = np.array([0, 2, 1, 0])[:n], np.tile([0.5, 0.25, 0.25], (n, 1))
    for notion in ("confidence", "canonical", "classwise", "top-label"):
        error = cross_fitted_calibration_error(y, P, notion=notion, labels=range(3), random_state=0)
        assert 0 <= error <= 2


def test_infinite_log_loss_is_said():
    y, p = np.tile([0, 1], 20), np.tile([0.0, 0.5, 1.0, 0.5], 10)
    with pytest.warns(UserWarning, match="The log error is infinite"):
        assert cross_fitted_calibration_error(y, p, kind="log", random_state=0) == np.inf


def test_a_training_fold_without_a_class_is_warned_of_by_name():
    y, p = np.repeat([0, 1], 60), np.random.default_rng(0).uniform(size=120)
    with pytest.warns(UserWarning, match="Class 0 does not occur in the training part of fold 0"):
        cross_fitted_calibration_error(y, p, cv=KFold(2))
    cross_fitted_calibration_error(y, p, cv=StratifiedKFold(2))
