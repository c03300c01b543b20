"""The identity, smoothed maps and mixtures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import softmax

from skcal import TemperatureScaling
from skcal.recalibration import Identity, Mixture, RecalibrationMap, Smoothed
from skcal.recalibration.mixture import LabelledPredictions, fit_map, mapped_proba, mixture_weights


def test_the_identity_returns_probabilities_to_the_last_bit(rng):
    P = rng.dirichlet(np.full(4, 0.1), size=30)
    P[0] = [0, 0, 1, 0]
    y = rng.integers(0, 4, 30)
    assert_array_equal(Identity().fit(P, y).predict_proba(P), P)
    assert_array_equal(Identity().fit(P[:, 0], y > 1).predict_proba(P[:, 0])[:, 1], P[:, 0])


@pytest.mark.filterwarnings("ignore:Identity lacks the slope")
def test_the_identity_of_logits_is_their_softmax(rng):
    logits = rng.normal(size=(30, 3)) * 100
    fitted = Identity(from_logits=True).fit(logits, rng.integers(0, 3, 30))
    assert_allclose(fitted.predict_proba(logits), softmax(logits, axis=1), rtol=1e-14)


def test_a_smoothed_map_is_the_map_of_smoothed_probabilities(rng):
    P, y = rng.dirichlet(np.full(3, 0.3), size=80), rng.integers(0, 3, 80)
    with pytest.raises(ValueError, match=r"estimator has from_logits=True.*to Smoothed instead"):
        Smoothed(TemperatureScaling(from_logits=True)).fit(P, y)
    a = 0.02
    own = (P + a) / (1 + 3 * a)
    expected = TemperatureScaling().fit(own, y).predict_proba(own)
    fitted = Smoothed(TemperatureScaling(), strength=a).fit(P, y)
    assert_allclose(fitted.predict_proba(P), expected, rtol=1e-9)
    single = Smoothed(TemperatureScaling(), strength=a).fit(P[:, 0], y == 0)
    own = (P[:, 0] + a) / (1 + 2 * a)
    expected = TemperatureScaling().fit(own, y == 0).predict_proba(own)
    assert_allclose(single.predict_proba(P[:, 0]), expected, rtol=1e-9)


def test_smoothing_reads_logits(rng):
    logits, y = rng.normal(size=(50, 3)) * 3, rng.integers(0, 3, 50)
    P = softmax(logits, axis=1)
    one = Smoothed(TemperatureScaling(), from_logits=True).fit(logits, y).predict_proba(logits)
    assert_allclose(one, Smoothed(TemperatureScaling()).fit(P, y).predict_proba(P), rtol=1e-9)


def test_mixture_weights_maximise_the_penalised_likelihood(rng):
    losses, weight = rng.exponential(size=(60, 3)), rng.integers(0, 3, 60).astype(float)
    scaled = weight / weight.mean()

    def objective(z):
        w = softmax(np.append(z, 0))
        return -scaled @ np.log(np.exp(-losses) @ w) - np.log(w).sum() / 3

    expected = softmax(np.append(minimize(objective, np.zeros(2)).x, 0))
    assert_allclose(mixture_weights(losses, weight), expected, atol=2e-3)


def test_mixture_weights_bear_infinite_losses():
    losses = np.array([[np.inf, 0.5], [0.1, 0.7], [np.inf, np.inf]])
    weights = mixture_weights(losses, np.ones(3))
    assert weights.sum() == pytest.approx(1)
    assert weights[1] > weights[0]


def test_a_mixture_is_the_weighted_mean_of_its_maps(rng):
    P, y = rng.dirichlet(np.full(3, 0.3), size=80), rng.integers(0, 3, 80)
    fitted = Mixture([Identity(), TemperatureScaling()], [0.3, 0.7]).fit(
        P, np.array(list("abc"))[y]
    )
    expected = 0.3 * P + 0.7 * TemperatureScaling().fit(P, y).predict_proba(P)
    assert_allclose(fitted.predict_proba(P), expected, rtol=1e-12)
    assert_array_equal(fitted.predict(P), fitted.classes_[expected.argmax(axis=1)])


def test_no_map_but_the_identity_makes_anything_impossible(rng):
    P = np.eye(3)[rng.integers(0, 3, 20)]
    data = LabelledPredictions(P, P.argmax(axis=1), np.ones(20))
    fitted = fit_map(TemperatureScaling(), data)
    assert mapped_proba(fitted, P, 20, 3).min() >= 1 / 63
    assert mapped_proba(fit_map(Identity(), data), P, 20, 3).min() == 0


@pytest.mark.parametrize("method", ["_map", "_proba"])
@pytest.mark.parametrize("columns", [0, slice(1), [0, 1, 1]])
def test_an_own_map_without_a_column_for_each_class_is_told_so(rng, method, columns):
    own = {"_fit": lambda self, z, codes, weight: None, method: lambda self, z: z[:, columns]}
    P, y = rng.dirichlet(np.ones(2), size=20), rng.integers(0, 2, 20)
    with pytest.raises(ValueError, match=rf"^Own\.{method} returned an array of shape .*a column"):
        type("Own", (RecalibrationMap,), own)().fit(P, y).predict_proba(P)
