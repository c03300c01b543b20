"""Constant weights change nothing unless they can be numbers of rows; no size is impossible."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    PlugIn,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)
from skcal._validation import InputError, check_weight, effective_weights, n_rows, row_weights
from skcal.metrics import cross_fitted_calibration_error, squared_kernel_calibration_error
from skcal.recalibration import BetaCalibration, MatrixScaling, SplineScaling

SCALES = [1e-300, 1e-3, 1e308]
FUNCTIONS = [
    Binning(5),
    DirichletKernelDensity(0.05),
    KroneckerKernelRidge(1e-3),
    TwoStepKernelRidge(1e-2),
    PlugIn(SplineScaling()),
    PlugIn(BetaCalibration()),
]
CANDIDATES = [(Zero(), {}), *((one, {}) for one in FUNCTIONS[:1] + FUNCTIONS[3:5])]


@pytest.fixture(scope="module")
def data(tempered):
    proba, labels = tempered
    return proba[:120], labels[:120]


@pytest.mark.parametrize("scale", SCALES)
def test_constant_weights_change_no_search(data, scale):
    P, y = data
    weight = np.full(len(y), scale)
    plain, weighted = (
        CalibrationErrorSearchCV(CANDIDATES, "confidence", cv=3, random_state=0).fit(P, y, w)
        for w in (None, weight)
    )
    assert weighted.squared_error_ == pytest.approx(plain.squared_error_, rel=1e-9)
    assert weighted.best_risk_ == pytest.approx(plain.best_risk_, rel=1e-9)
    assert str(weighted.best_function_) == str(plain.best_function_)
    assert weighted.score(P, y, weight) == pytest.approx(plain.score(P, y), rel=1e-9)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("scale", SCALES)
def test_constant_weights_change_no_estimator(data, scale, function):
    P, y = data
    weight = np.full(len(y), scale)
    plain, weighted = (
        CalibrationErrorEstimator(function, "confidence").fit(P, y, w) for w in (None, weight)
    )
    assert weighted.predict(P).tobytes() == plain.predict(P).tobytes()
    assert weighted.squared_error(P, weight) == plain.squared_error(P)
    assert weighted.risk(P, y, weight).value == plain.risk(P, y).value
    if hasattr(function, "residual"):
        assert weighted.one_step(P, y, weight).value == plain.one_step(P, y).value


@pytest.mark.parametrize("scaling", [TemperatureScaling(), MatrixScaling(structured=True)])
@pytest.mark.parametrize("scale", SCALES)
def test_constant_weights_change_no_map(data, scale, scaling):
    P, y = data
    plain = scaling.fit(P, y).predict_proba(P)
    weighted = scaling.fit(P, y, np.full(len(y), scale)).predict_proba(P)
    np.testing.assert_array_equal(weighted, plain)


@pytest.mark.parametrize("scale", [0.1, 3.0, 1e-17])
@pytest.mark.parametrize("notion", ["confidence", "canonical", "binary"])
def test_ties_do_not_depend_on_the_rounding_of_constant_weights(scale, notion):
    """Predictions in sixteenths, whose cells can be halved at two places equally well."""
    rng = np.random.default_rng(3)
    for _ in range(2):
        p = rng.integers(0, 17, 30) / 16
        P, y = np.column_stack([1 - p, p]), rng.integers(0, 2, 30)
        plain, weighted = (
            cross_fitted_calibration_error(
                y, P, function=Binning(2), notion=notion, random_state=0, sample_weight=weight
            )
            for weight in (None, np.full(30, scale))
        )
        assert weighted == pytest.approx(plain, rel=1e-12)


def test_weights_are_left_as_they_are_unless_their_squares_are_no_numbers():
    weight = np.array([0.0, 1e-30, 3.0, 1e30])
    assert check_weight(weight, 4).tobytes() == weight.tobytes()
    for factor in (2.0**-900, 2.0**800):
        kept = check_weight(weight * factor, 4)
        assert kept.max() == 1
        assert kept[2] == weight[2] / weight[3]


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_weights_of_a_fit_are_raised_to_the_effective_sample_size_and_no_further(n):
    rng = np.random.default_rng(n)
    counts = rng.integers(0, 4, n) + (np.arange(n) == 0)
    assert row_weights(counts.astype(float)).tobytes() == counts.astype(float).tobytes()
    weight = rng.lognormal(0, 1, n)
    effective = weight.sum() ** 2 / (weight @ weight)
    for total in (1e-300, 1e-6, 0.5 * effective, effective, 2 * effective, 1e6 * effective):
        passed = weight / weight.sum() * total
        found = row_weights(passed)
        assert found.sum() == pytest.approx(max(total, effective))
        assert_allclose(found / found.sum(), weight / weight.sum())
        assert n_rows(passed) == found.sum()
    assert row_weights(np.full(n, 1e-3)).tolist() == [1.0] * n
    assert n_rows(weight * 1e300) < np.inf


def test_effective_weights_depend_on_ratios_alone_and_count_votes():
    rng = np.random.default_rng(0)
    weight, votes = rng.lognormal(0, 1, 50), rng.integers(1, 9, 50)
    found = effective_weights(weight, votes)
    alone = effective_weights(weight.repeat(votes))  # a row for each vote
    assert_allclose(found.repeat(votes), alone, rtol=1e-12)
    assert alone.sum() == pytest.approx(alone.sum() ** 2 / (alone @ alone))
    assert effective_weights(weight * 2.0**-70, votes).tobytes() == found.tobytes()
    assert effective_weights(np.full(50, 0.1), votes).tolist() == [1.0] * 50


@pytest.mark.parametrize("method", ["unbiased", "block"])
@pytest.mark.parametrize("heaviest", [1e4, 1e7, 1e12, 1e17, 1e30, 1e300])
def test_one_heavy_weight_is_exact_or_refused(data, method, heaviest):
    P, y = data
    weight = np.ones(len(y))
    weight[3] = heaviest
    options = {"notion": "canonical", "bandwidth": 0.3, "method": method}
    if method == "block":
        options["block_size"] = 60
    if heaviest > 1e9:
        with pytest.raises(InputError, match=r"^sample_weight is so unequal"):
            squared_kernel_calibration_error(y, P, sample_weight=weight, **options)
        return
    found = squared_kernel_calibration_error(y, P, sample_weight=weight, **options)
    delta = np.eye(P.shape[1])[y] - P
    h = np.exp(-np.abs(P[:, None] - P).sum(axis=2) / 2 / 0.3) * (delta @ delta.T)
    pairs = weight[:, None] * weight * ~np.eye(len(y), dtype=bool)
    if method == "block":
        pairs[:60, 60:] = pairs[60:, :60] = 0
    assert_allclose(found, np.sum(pairs * h) / pairs.sum(), rtol=1e-7)


def test_risks_whose_pairs_vanish_beside_one_weight_are_refused(data):
    P, y = data
    weight = np.where(np.arange(len(y)) == 7, 1e17, 1.0)
    fitted = CalibrationErrorEstimator(TwoStepKernelRidge(1e-2), "confidence").fit(P, y)
    for ask in (fitted.score, fitted.risk):
        with pytest.raises(InputError, match="so unequal that the pairs"):
            ask(P, y, weight)
