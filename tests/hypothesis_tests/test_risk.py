"""The risk test: its statistic by pairs, its null distribution and its level."""

import numpy as np
import pytest
from calibrated_samples import sample, superclass
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    KroneckerKernelRidge,
    PlugIn,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)
from skcal.datasets import make_dirichlet
from skcal.hypothesis_tests import risk_test
from skcal.model_selection import compare_risks
from skcal.notions import make_problems
from skcal.recalibration import LogProbabilities

NOTIONS = ["binary", "confidence", "top-label", "classwise", "canonical", "top-2", superclass]
FUNCTIONS = [
    PlugIn(TemperatureScaling()),
    Binning(5, debias=True),
    KroneckerKernelRidge(1e-4),
    TwoStepKernelRidge(1e-3),
]
names = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: type(f).__name__)


def split(n, random_state, test_size=0.5):
    """The training and the test part, and the state that draws the outcomes."""
    rng = np.random.RandomState(random_state)
    splitter = ShuffleSplit(1, test_size=test_size, random_state=rng.randint(2**31 - 1))
    [(train, test)] = splitter.split(np.zeros(n))
    return train, test, rng


def fit(function, notion, y, proba, train):
    labels = np.arange(2 if proba.ndim == 1 else proba.shape[1])
    return CalibrationErrorEstimator(function, notion, labels=labels).fit(proba[train], y[train])


def naive_gain(h, residuals):
    """Mean over pairs of ⟨δ_i, δ_j⟩² - (⟨δ_i, δ_j⟩ - h_ij)²."""
    inner, others = residuals @ residuals.T, ~np.eye(len(residuals), dtype=bool)
    return np.mean((inner**2 - (inner - h) ** 2)[others])


@names
@pytest.mark.parametrize("notion", NOTIONS)
def test_statistic_is_the_risk_of_0_minus_that_of_h_on_the_held_out_part(notion, function):
    y, proba = sample(notion, n=90)
    train, test, _ = split(len(y), 5)
    a, zero = (fit(f, notion, y, proba, train) for f in (function, Zero()))
    gains, shares = [], []
    for k, (x, residuals, *_, rows) in enumerate(make_problems(proba[test], y[test], notion)):
        gains.append(naive_gain(a.functions_[k].predict_pairs(x), residuals))
        shares.append(1 if isinstance(rows, slice) else len(rows) / len(test))
    result = risk_test(y, proba, function, notion=notion, n_resamples=79, random_state=5)
    assert_allclose(result.statistic, np.dot(gains, shares), rtol=1e-8, atol=1e-14)
    compared = compare_risks(zero, a, proba[test], y[test]).difference
    assert_allclose(result.statistic, compared, rtol=1e-8, atol=1e-14)
    if notion == "classwise":
        assert_allclose(result.class_statistics, gains, rtol=1e-8, atol=1e-14)
    assert np.isnan(result.estimate)


@names
@pytest.mark.parametrize("notion", ["confidence", "canonical"])
def test_outcomes_are_redrawn_on_the_held_out_part_with_h_fixed(notion, function):
    y, proba = sample(notion, n=60)
    train, test, rng = split(60, 2, test_size=0.4)
    [h] = fit(function, notion, y, proba, train).functions_
    x = make_problems(proba[test], None, notion)[0].features
    pairs, null = h.predict_pairs(x), []
    for seed in rng.randint(2**31 - 1, size=19):
        uniform = np.random.default_rng(seed).random(len(x))
        if notion == "confidence":
            outcomes = (uniform < x[:, 0]).astype(float)[:, None]
        else:
            cdf = np.cumsum(x, axis=1)
            outcomes = np.eye(4)[(uniform[:, None] >= cdf / cdf[:, -1:]).sum(axis=1)]
        null.append(naive_gain(pairs, outcomes - x))
    options = {"notion": notion, "test_size": 0.4, "n_resamples": 19, "random_state": 2}
    result = risk_test(y, proba, function, **options)
    assert_allclose(result.null_distribution, null, rtol=1e-8, atol=1e-14)
    assert result.pvalue == (1 + np.sum(result.null_distribution >= result.statistic)) / 20


@pytest.mark.parametrize(
    ("notion", "C"), [("binary", 1.0), ("top-label", 1.0), ("canonical", 0.01), ("top-2", 0.01)]
)
def test_the_default_is_a_recalibration_map_that_is_shrunk_for_vectors(notion, C):
    y, awkward = sample(notion)
    positive = 0.999 * awkward + 0.001 / (2 if notion == "binary" else 4)
    logistic = LogisticRegression(C=C, solver="newton-cholesky", max_iter=1000)
    function = PlugIn(make_pipeline(LogProbabilities(), logistic))
    options = {"notion": notion, "n_resamples": 79, "random_state": 0}
    # One computes a softmax of (0, logit), the other the logistic function. Maps read 1e-7 of a
    # logarithm that zeros lose by the floor.
    for proba, rtol in ((positive, 1e-12), (awkward, 1e-5)):
        result, same = risk_test(y, proba, **options), risk_test(y, proba, function, **options)
        assert_allclose(result.null_distribution, same.null_distribution, rtol=rtol, atol=1e-15)
        assert result.pvalue == same.pvalue


def test_miscalibrated_predictions_are_rejected():
    for model in ("M2", "M3"):
        for seed in range(5):
            data = make_dirichlet(250, n_classes=3, model=model, random_state=seed)
            options = {"notion": "canonical", "n_resamples": 99, "random_state": seed}
            assert risk_test(data.labels, data.proba, **options).pvalue == 0.01


def test_two_samples_in_each_part_are_enough():
    y, p = [0, 1, 0, 1], [0.2, 0.8, 0.4, 0.6]
    options = {"n_resamples": 19, "random_state": 0, "function": Zero()}
    assert risk_test(y, p, test_size=0.5, **options).pvalue == 1
    for test_size in (0.25, 0.75):
        with pytest.raises(ValueError, match=r"leaves \d training and \d test samples; both parts"):
            risk_test(y, p, test_size=test_size, **options)
