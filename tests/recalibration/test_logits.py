"""Maps of logits: without loss, equal to those of probabilities where these lose nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, logit, softmax
from sklearn.base import clone

from skcal import TemperatureScaling
from skcal.recalibration import (
    BetaCalibration,
    ClassBasedTemperatureScaling,
    InterceptCalibration,
    MatrixScaling,
    QuadraticScaling,
    SplineScaling,
    VectorScaling,
)

MAPS = [
    TemperatureScaling(),
    ClassBasedTemperatureScaling(),
    InterceptCalibration(),
    VectorScaling(),
    MatrixScaling(),
    MatrixScaling(structured=True, tol=1e-10),
    MatrixScaling(structured=True, coordinates="log", tol=1e-10),
]
SCALAR_MAPS = [cls(tol=1e-10) for cls in (BetaCalibration, QuadraticScaling, SplineScaling)]
CASES = [(scaling, d) for scaling in MAPS for d in (1, 2, 4)]
CASES += [(scaling, d) for scaling in SCALAR_MAPS for d in (1, 2)]
every_case = pytest.mark.parametrize(("scaling", "d"), CASES, ids=str)


def sample(rng, n, d, temperature=1.0):
    """Logits and labels that a temperature calibrates."""
    z = rng.normal(scale=1.5, size=(n, max(d, 2)))
    p = softmax(z, axis=1)
    y = np.minimum((p.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1), z.shape[1] - 1)
    z *= temperature
    return (z[:, 1:] - z[:, :1] if d == 1 else z), y


def link(z):
    return expit(z) if z.shape[1] == 1 else softmax(z, axis=1)


@every_case
def test_logits_whatever_is_added_to_a_row_give_the_map_of_their_probabilities(rng, scaling, d):
    z, y = sample(rng, 150, d, temperature=2.0)
    one = clone(scaling).fit(link(z), y).predict_proba(link(z))
    for added in (0, rng.normal(scale=100, size=(150, 1)))[: 1 + (d > 1)]:
        fitted = clone(scaling).set_params(from_logits=True).fit(z + added, y)
        assert_allclose(fitted.predict_proba(z + added), one, atol=1e-7)


@pytest.mark.parametrize(
    ("n_classes", "temperature"),
    [*((n, t) for n in (2, 10) for t in (0.2, 1.0, 8.0, 20.0)), (100, 0.2), (100, 20.0)],
)
def test_the_temperature_of_logits_is_the_direct_optimum(n_classes, temperature):
    rng = np.random.default_rng(n_classes)
    z, y = sample(rng, 1000, n_classes, temperature)
    found = TemperatureScaling(from_logits=True).fit(z, y).temperature_

    def loss(log_scale):
        return -log_softmax(z * np.exp(log_scale), axis=1)[np.arange(len(y)), y].mean()

    # The minimum of a parabola through three points around the best; 1e-3 apart they resolve it.
    brute = minimize_scalar(loss, bracket=(-np.log(100), np.log(10)), tol=1e-6).x
    step = 1e-3
    low, mid, high = (loss(brute + h) for h in (-step, 0, step))
    brute += step * (low - high) / (2 * (low - 2 * mid + high))
    assert_allclose(found, np.exp(-brute), rtol=1e-6)
    assert abs(found / temperature - 1) < 0.2
    if n_classes == 2:
        margin = TemperatureScaling(from_logits=True).fit(z[:, 1] - z[:, 0], y == 1)
        assert_allclose(margin.temperature_, found, rtol=1e-9)


def test_probabilities_of_1000_classes_lose_no_temperature():
    """A floor of 2⁻⁵² made 6.9 of 8."""
    z, y = sample(np.random.default_rng(0), 1000, 1000, 8.0)
    exact = TemperatureScaling(from_logits=True).fit(z, y).temperature_
    assert_allclose(TemperatureScaling().fit(softmax(z, axis=1), y).temperature_, exact, rtol=1e-6)
    single = softmax(z.astype(np.float32), axis=1)
    assert_allclose(TemperatureScaling().fit(single, y).temperature_, exact, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:InterceptCalibration lacks the slope")
@every_case
def test_huge_logits_give_finite_probabilities(rng, scaling, d):
    z, y = sample(rng, 60, d, temperature=1e4)
    proba = clone(scaling).set_params(from_logits=True).fit(z, y).predict_proba(z)
    assert np.isfinite(proba).all()
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)


def test_logits_beyond_the_resolution_of_probabilities_are_told_apart():
    z = np.array([-300.0, -60.0, -40.0, 40.0, 60.0, 300.0])
    fitted = TemperatureScaling(from_logits=True).fit(z, [0, 0, 1, 0, 1, 1])
    assert_array_equal(np.argsort(fitted.predict_proba(z)[:, 1]), np.arange(6))
    assert_allclose(logit(fitted.predict_proba(z)[:, 1]), z / fitted.temperature_, rtol=1e-9)
    features = BetaCalibration()._features(z[:, None])
    assert_allclose(features[0], [-300, np.exp(-300)], rtol=1e-12)  # log p, -log(1 - p)
    assert_allclose(features[-1], [-np.exp(-300), 300], rtol=1e-12)


# What probabilities lose


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeros_that_float32_rounded_are_said_to_be_lost(dtype):
    z = np.zeros((40, 3), np.float32)
    z[:, 0], z[:20, 1] = 900, 820  # exp(-80) is 1.8e-35
    X, y = softmax(z, axis=1).astype(dtype), np.arange(40) % 2
    with pytest.warns(UserWarning, match=r"60 of 120 probabilities in X are 0 or 1.*from_logits"):
        TemperatureScaling().fit(X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeros_of_forests_are_no_loss(dtype):
    X = np.array([[0.0, 0.5, 0.5], [0.25, 0.75, 0.0], [1.0, 0.0, 0.0]] * 4, dtype=dtype)
    TemperatureScaling().fit(X, [1, 1, 0] * 4)  # warnings are errors


def test_probabilities_of_few_classes_hardly_count_below_the_floor():
    """Their order stays; exact logarithms of naive Bayes are worse, see ``_SMALLEST``."""
    X = np.array([[1e-300, 1.0, 0.0], [1e-200, 0.0, 1.0], [1.0, 1e-100, 0.0]] * 4)
    one, other = (TemperatureScaling().fit(x, [1, 2, 1] * 4) for x in (X, np.maximum(X, 2.0**-52)))
    assert_allclose(one.temperature_, other.temperature_, rtol=1e-6)


def test_confidences_that_are_rounded_to_1_are_said_to_be_lost():
    X = np.array([1.0, 1 - 1e-7, 0.9] * 5, dtype=np.float32)
    with pytest.warns(UserWarning, match="5 of 15 probabilities in X are 0 or 1, which float32"):
        BetaCalibration().fit(X, [1, 1, 0] * 5)


def test_probabilities_passed_as_logits_are_refused(rng):
    X = rng.dirichlet(np.ones(3), 20)
    with pytest.raises(ValueError, match=r"X holds probabilities already, not logits"):
        TemperatureScaling(from_logits=True).fit(X, np.arange(20) % 3)


def test_logits_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="Input X contains infinity"):
        TemperatureScaling(from_logits=True).fit([[0.0, np.inf], [1.0, 0.0]], [0, 1])
