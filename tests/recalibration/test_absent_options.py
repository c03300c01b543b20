"""Options that a question lacks, whose logits are -inf, have probability 0 before and after."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from skcal import Recalibrator, TemperatureScaling
from skcal.recalibration import (
    EnsembleTemperatureScaling,
    Identity,
    Mixture,
    RecalibrationMap,
    Smoothed,
)
from skcal.recalibration.base import known_maps


def questions(n, n_options=5, seed=0, noise=0.0, fewest=2):
    """Logits that are twice too large, -inf from some option on, and the right options."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, n_options))
    z[np.arange(n_options) >= rng.integers(fewest, n_options + 1, n)[:, None]] = -np.inf
    present = np.isfinite(z)
    chance = (1 - noise) * softmax(z, axis=1) + noise * present / present.sum(axis=1)[:, None]
    y = (chance.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return 2 * z, y


MAPS = [
    Identity(from_logits=True),
    TemperatureScaling(from_logits=True),
    EnsembleTemperatureScaling(from_logits=True),
    Mixture([Identity(True), TemperatureScaling(from_logits=True)], [0.4, 0.6], temperature=1.2),
    Recalibrator(cv=3, from_logits=True, random_state=0),
    Recalibrator(cv=3, from_logits=True, preserve_classes=True, random_state=0),
    Recalibrator([TemperatureScaling()], cv=3, from_logits=True, do_no_harm=False),
]


@pytest.mark.parametrize("n_options", [2, 3, 5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", MAPS, ids=lambda method: type(method).__name__)
def test_absent_options_have_mass_0_and_the_answer_stays(method, dtype, n_options):
    X, y = questions(400, n_options, fewest=1)
    X, absent = X.astype(dtype), np.isneginf(X)
    assert 0.1 < absent.mean() < 0.5
    fitted = method.fit(X, y)
    proba = fitted.predict_proba(X)
    assert_array_equal(proba[absent], 0)
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-6)
    assert (proba[~absent] > 0).all()
    assert_array_equal(fitted.predict(X), X.argmax(axis=1))
    alone = np.concatenate([fitted.predict_proba(row) for row in X[:5, None]])
    assert_allclose(alone, proba[:5], rtol=1e-6)


def test_the_temperature_is_that_of_the_present_options():
    X, y = questions(500)
    rows = np.arange(500)

    def loss(log_scale):
        return -log_softmax(np.exp(log_scale) * X, axis=1)[rows, y].mean()

    expected = np.exp(-minimize_scalar(loss, bracket=(-1, 0), tol=1e-10).x)
    fitted = TemperatureScaling(from_logits=True).fit(X, y)
    assert fitted.temperature_ == pytest.approx(expected, rel=1e-4)
    rng = np.random.default_rng(1)
    order = rng.permuted(np.tile(np.arange(5), (500, 1)), axis=1)  # options are alike
    shuffled = np.take_along_axis(X, order, axis=1), (order == y[:, None]).argmax(axis=1)
    again = TemperatureScaling(from_logits=True).fit(*shuffled)
    assert again.temperature_ == pytest.approx(fitted.temperature_, rel=1e-9)


def test_the_temperature_of_two_options_ignores_questions_with_one():
    X, y = questions(300, 2, fewest=1)
    both = np.isfinite(X).all(axis=1)
    assert 0.3 < both.mean() < 0.7
    fitted = [TemperatureScaling(from_logits=True).fit(X[rows], y[rows]) for rows in (both, y >= 0)]
    assert fitted[0].temperature_ == pytest.approx(fitted[1].temperature_, rel=1e-9)
    one = TemperatureScaling(from_logits=True).fit(X[~both][:3], [0, 0, 0])
    assert one.temperature_ == 1


def test_noise_is_shared_by_the_present_options():
    X, y = questions(3000, noise=0.3)
    fitted = Recalibrator(from_logits=True, random_state=0).fit(X, y)
    assert fitted.names_[:3] == ["Identity", "TemperatureScaling", "EnsembleTemperatureScaling"]
    assert fitted.best_name_ == "EnsembleTemperatureScaling"
    present = np.isfinite(X)
    truth = 0.7 * softmax(X / 2, axis=1) + 0.3 * present / present.sum(axis=1)[:, None]
    assert np.abs(fitted.predict_proba(X) - truth).mean() < 0.01
    assert fitted.remaining_error().estimate < fitted.initial_error().estimate
    assert "0 % of the samples change theirs" in fitted.summary()
    assert_array_equal(fitted.cross_fit_predict_proba(X)[~present], 0)
    read = Recalibrator.from_json(fitted.to_json())
    assert_array_equal(read.predict_proba(X), fitted.predict_proba(X))


OTHERS = [
    kind
    for kind in known_maps(RecalibrationMap).values()
    if not kind._treats_options_alike and kind is not Smoothed
]


@pytest.mark.parametrize("kind", OTHERS, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore")  # such logits are outliers
def test_maps_that_treat_classes_differently_refuse_absent_ones(kind):
    X, y = questions(200, 3)
    method = kind() if kind.__name__ != "FunctionCorrection" else None
    if method is None or "from_logits" not in method.get_params():
        pytest.skip("takes no logits")
    with pytest.raises(ValueError, match=r"Input X contains infinity.*numpy\.maximum\(X, -1e4\)"):
        kind(from_logits=True).fit(X, y)
    with pytest.raises(ValueError, match=r"does not take logits of -inf.*Leave candidates out"):
        Recalibrator([kind()], from_logits=True).fit(X, y)
    kind(from_logits=True).fit(np.maximum(X, -1e4), y)  # the remedy


def test_a_map_of_classes_in_place_of_options_has_a_remedy():
    X, y = questions(100)
    with pytest.raises(ValueError, match=r"pass TemperatureScaling\(\) or EnsembleTemperature"):
        Recalibrator([Smoothed(TemperatureScaling())], from_logits=True).fit(X, y)
    passed = [TemperatureScaling(), EnsembleTemperatureScaling()]
    for candidates in (None, passed[:1], passed[1:]):
        fitted = Recalibrator(candidates, from_logits=True, random_state=0).fit(X, y)
        assert fitted.predict_proba(X)[np.isneginf(X)].max() == 0


def test_what_is_no_absent_option_is_refused_by_place():
    X, y = questions(50)
    model = TemperatureScaling(from_logits=True)
    row = int(np.argmax(np.isneginf(X[:, 4])))
    wrong = y.copy()
    wrong[row] = 4
    with pytest.raises(ValueError, match=rf"X row {row}, column 4 is -inf, but y says that '4'"):
        model.fit(X, wrong)
    with pytest.raises(ValueError, match=r"X row \d+, column \d is -inf, but y says that"):
        model.fit(X, np.full((50, 5), 0.2))
    wrong[row] = y[row]
    model.fit(X, wrong)  # the remedy
    for value in (np.nan, np.inf):
        broken = X.copy()
        broken[3, 0] = value
        with pytest.raises(ValueError, match="X row 3, column 0"):
            model.fit(broken, y)
    broken = X.copy()
    broken[7] = -np.inf
    with pytest.raises(ValueError, match=r"X row 7 is -inf for every class\. Drop that sample"):
        model.fit(broken, y)
    model.fit(np.delete(broken, 7, axis=0), np.delete(y, 7))
    with pytest.raises(ValueError, match="contains infinity"):
        TemperatureScaling(from_logits=True).fit([[-np.inf], [0.3]], [0, 1])
