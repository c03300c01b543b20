"""Scores of any unit and offset: every map keeps their order and its log loss, or warns."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss, roc_auc_score

from skcal import RecalibratedClassifierCV, Recalibrator, TemperatureScaling, recalibration
from skcal.recalibration import (
    BayesianCalibration,
    BetaCalibration,
    HistogramBinning,
    InterceptCalibration,
    MatrixScaling,
    PlattScaling,
    RecalibrationMap,
    Smoothed,
    VectorScaling,
    features,
)

#: Maps without an offset or a slope, or of rounded probabilities: they warn where scores need one.
WITHOUT_LINE = {
    "ClassBasedTemperatureScaling",
    "EnsembleTemperatureScaling",
    "Identity",
    "InterceptCalibration",
    "Smoothed",
    "TemperatureScaling",
}
NAMES = {
    name
    for name, thing in vars(recalibration).items()
    if isinstance(thing, type)
    and issubclass(thing, RecalibrationMap)
    and thing is not RecalibrationMap
}
FREE = [getattr(recalibration, name)() for name in sorted(NAMES - WITHOUT_LINE)]
FREE += [
    HistogramBinning(strategy="uniform"),
    MatrixScaling(structured=True),
    VectorScaling(structured=True),
    Recalibrator(cv=2, random_state=0),
]
LACKING = [
    Smoothed(PlattScaling()) if name == "Smoothed" else getattr(recalibration, name)()
    for name in sorted(WITHOUT_LINE)
]
UNITS = [(0, 1e-3), (0, 30), (0, 1e4), (-1e3, 1e-3), (600, 50), (-1e3, 1e4)]
WAYS = np.array([0, 1, -0.6])
N, HALF = 2000, 1000
RNG = np.random.default_rng(0)
Z = 1.5 * RNG.normal(size=(N, 3))
Y = (softmax(Z, axis=1).cumsum(axis=1) > RNG.random((N, 1))).argmax(axis=1)
MARGIN = 1.5 * RNG.normal(size=N)
EVENT = (RNG.random(N) < expit(MARGIN)).astype(int)


def scores(kind, offset, unit):
    """Scores and labels: one column, two, three with an offset a row, or an offset a class.

    ``"shifted"`` has two offsets a class, of which one is in the unit of the logits.
    """
    margin = offset + unit * MARGIN
    if kind == "column":
        return margin, EVENT
    if kind == "two":
        return np.column_stack([0 * margin, margin]), EVENT
    of_rows = offset * np.linspace(-1, 1, N)[:, None]
    if kind == "rows":
        return unit * Z + of_rows, Y
    return unit * (Z + (np.array([3, -2, 1]) if kind == "shifted" else 0)) + offset * WAYS, Y


def judged(method, X, y):
    """Log loss and area under the curve on the other half, and what the fit warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = clone(method).set_params(from_logits=True).fit(X[:HALF], y[:HALF])
        proba = fitted.predict_proba(X[HALF:])
    y = y[HALF:]
    area = roc_auc_score(y, proba[:, 1] if proba.shape[1] == 2 else proba, multi_class="ovr")
    return log_loss(y, proba), area, [str(entry.message) for entry in caught]


@pytest.mark.parametrize("kind", ["column", "two", "rows", "classes", "shifted"])
@pytest.mark.parametrize("method", FREE, ids=lambda method: " ".join(repr(method).split()))
def test_maps_with_slope_and_offset_do_as_well_in_every_unit(method, kind):
    loss, area, _ = judged(method, *scores("classes" if kind == "shifted" else kind, 0, 1))
    units = UNITS if kind in ("column", "classes") else UNITS[2::3]
    for offset, unit in [(0, 1), (0, 30)] if kind == "shifted" else units:
        found = judged(method, *scores(kind, offset, unit))
        # The standard error of a mean log loss of 1,000 is about 0.02.
        assert abs(found[0] - loss) < 0.015
        assert abs(found[1] - area) < 0.008
        assert not found[2]


class Scoring(ClassifierMixin, BaseEstimator):
    """Its decision values are a + b x."""

    def __init__(self, offset=0.0, unit=1.0):
        self.offset, self.unit = offset, unit

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return self.offset + self.unit * (X[:, 0] if len(self.classes_) == 2 else X)


@pytest.mark.filterwarnings("ignore:The chosen map makes the predictions worse")
@pytest.mark.parametrize("kind", ["column", "classes"])
def test_recalibrated_classifiers_do_as_well_in_every_unit(kind):
    X, y = scores(kind, 0, 1)
    X = X.reshape(N, -1)
    found = []
    for offset, unit in [(0, 1), (1e3, 1e-3), (-1e3, 1e4), (600, 50)]:
        classifier = Scoring(offset * (WAYS if kind == "classes" else 1), unit)
        method = None if kind == "column" else VectorScaling()
        fitted = RecalibratedClassifierCV(classifier, method, cv=2, random_state=0)
        proba = fitted.fit(X[:HALF], y[:HALF]).predict_proba(X[HALF:])
        found.append(log_loss(y[HALF:], proba))
    assert np.ptp(found) < 0.015


@pytest.mark.parametrize("kind", ["column", "two", "classes"])
@pytest.mark.parametrize("method", LACKING, ids=lambda method: type(method).__name__)
def test_maps_that_lack_slope_or_offset_do_as_well_or_warn(method, kind):
    loss, area, messages = judged(method, *scores(kind, 0, 1))
    assert not messages
    for offset, unit in UNITS:
        found = judged(method, *scores(kind, offset, unit))
        as_well = abs(found[0] - loss) < 0.015 and abs(found[1] - area) < 0.008
        assert as_well != any("lacks the slope or the offset" in text for text in found[2])


def test_what_a_map_lacks_is_what_scores_need():
    assert judged(TemperatureScaling(), *scores("two", 0, 1e4))[2] == []
    assert judged(InterceptCalibration(), *scores("two", 1e3, 1))[2] == []
    [message] = judged(Recalibrator([TemperatureScaling()], cv=3), *scores("column", 1e3, 1))[2]
    assert "lacks the slope or the offset" in message


@pytest.mark.parametrize("method", FREE, ids=lambda method: " ".join(repr(method).split()))
def test_one_percent_of_outliers_does_no_harm(method):
    """Outliers that say nothing cost 0.01 where they count as the farthest of the other scores."""
    far = np.random.default_rng(1).random(N) < 0.01
    signs = np.random.default_rng(2).choice([-1, 1], N)
    cases = [(0, 1, signs), (0, 1, np.ones(N)), (600, 50, 2 * EVENT - 1), (0, 1e-3, signs)]
    for offset, unit, sign in cases:
        X, y = scores("column", offset, unit)
        loss, area, _ = judged(method, X, y)
        found = judged(method, np.where(far, 1e6 * sign, X), y)
        assert found[0] < loss + 0.02
        assert found[1] > area - 0.01


@pytest.mark.parametrize(
    ("size", "value", "kind"),
    [("_MOST_LOGIT_CELLS", 100, "column"), ("_MOST_ENTRIES", 1000, "classes")],
)
def test_lines_of_cells_and_of_part_of_the_rows_do_as_well(size, value, kind, monkeypatch):
    X, y = scores(kind, 600, 50)
    losses = []
    for one in (value, 10**9):
        monkeypatch.setattr(features, size, one)
        fitted = VectorScaling(from_logits=True).fit(X[:HALF], y[:HALF])
        assert fitted.line_ is not None
        losses.append(log_loss(y[HALF:], fitted.predict_proba(X[HALF:])))
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], abs=0.01)


def test_scores_that_are_log_odds_are_used_as_they_are():
    """Neither noise, reversed or calibrated predictions, nor zeros of forests get a line."""
    rng = np.random.default_rng(2)
    p = expit(MARGIN)
    forest = np.round(p * 20) / 20
    for X, y in ((p, EVENT), (1 - p, EVENT), (rng.random(N), EVENT), (forest, EVENT)):
        for method in (PlattScaling(), BayesianCalibration()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert clone(method).fit(X, y).line_ is None
    assert VectorScaling().fit(softmax(Z, axis=1), Y).line_ is None
    few = np.array([-0.01, 0.01] * 5)  # separable, but too few to show anything
    assert PlattScaling(from_logits=True).fit(few, few > 0).line_ is None


def test_decision_values_of_thousands_keep_their_order():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 4)) * [1, 1000, 50, 1]
    y = (rng.random(400) < expit(X[:, 0] + X[:, 1] / 1000)).astype(int)
    found = RecalibratedClassifierCV(SGDClassifier(random_state=0), ensemble=False, random_state=0)
    found.fit(X[:200], y[:200])
    raw = found.classifiers_[0].decision_function(X[200:])
    area = roc_auc_score(y[200:], found.predict_proba(X[200:])[:, 1])
    assert area == pytest.approx(roc_auc_score(y[200:], raw), abs=1e-3)


@pytest.mark.parametrize("method", FREE, ids=lambda method: " ".join(repr(method).split()))
def test_probabilities_next_to_0_and_1_keep_their_order(method):
    """Two columns, of which the smaller one still has digits where the larger one rounds to 1."""
    rng = np.random.default_rng(4)
    d = 60 * rng.normal(size=600)
    y = (rng.random(600) < expit(d / 60)).astype(int)
    X = np.column_stack([expit(-d), expit(d)])
    proba = clone(method).fit(X, y).predict_proba(X)[:, 1]
    if isinstance(method, HistogramBinning):
        return
    lost = roc_auc_score(y, d) - roc_auc_score(y, proba)
    assert lost < (0.02 if isinstance(method, recalibration.VennAbers) else 2e-3)


@pytest.mark.parametrize("unit", [-1e-3, -0.01, -0.1, -1.0, -10.0])
@pytest.mark.parametrize("centre", [600, 3000])
@pytest.mark.parametrize("method", [PlattScaling, BetaCalibration])
def test_scores_that_fall_with_the_frequency_of_events_are_turned_round(method, centre, unit):
    rng = np.random.default_rng(0)
    points = rng.normal(centre, 100, 2000)
    truth = expit(1.5 * (points - centre) / 100)
    y = (rng.random(2000) < truth).astype(int)
    mapped = method(from_logits=True).fit(unit * points, y).predict_proba(unit * points)[:, 1]
    assert log_loss(y, mapped) < log_loss(y, truth) + 0.002


@pytest.mark.parametrize("unit", [1e-4, 0.003, 0.005, 0.02, 0.1, 10, 1000])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_temperature_has_the_unit_of_the_logits(unit, n_classes):
    rng = np.random.default_rng(0)
    z = rng.normal(scale=2, size=(N, n_classes))
    y = (softmax(z, axis=1).cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
    expected = TemperatureScaling(from_logits=True).fit(z, y).temperature_
    assert 0.8 < expected < 1.25
    fitted = TemperatureScaling(from_logits=True).fit(unit * z, y)  # warnings are errors
    assert fitted.temperature_ / unit == pytest.approx(expected, rel=1e-6)
