"""Which of two named labels single predictions are about."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss

from skcal import Recalibrator, TemperatureScaling, recalibration
from skcal.recalibration import BetaCalibration, RecalibrationMap

NAMES = {
    name
    for name, thing in vars(recalibration).items()
    if isinstance(thing, type)
    and issubclass(thing, RecalibrationMap)
    and thing is not RecalibrationMap
}
FEW = [TemperatureScaling()]
FITS = [TemperatureScaling(), BetaCalibration(), Recalibrator(FEW, random_state=0)]


@pytest.fixture
def sick():
    """P(ill) and labels, of which "ill" is the first in order."""
    rng = np.random.default_rng(0)
    p = rng.uniform(size=300)
    return p, np.where(rng.uniform(size=300) < p, "ill", "well")


@pytest.mark.parametrize("fit", FITS, ids=lambda fit: type(fit).__name__)
@pytest.mark.parametrize("shape", [(300,), (300, 1)])
def test_predictions_of_the_first_label_are_told_of_once_at_the_call(sick, fit, shape):
    p, y = sick
    with pytest.warns(UserWarning, match="predictions of 'well'.*higher for 'ill'") as caught:
        fit.fit(p.reshape(shape), y)
    assert len(caught) == 1


@pytest.mark.parametrize("fit", FITS, ids=lambda fit: type(fit).__name__)
def test_predictions_of_the_second_label_are_read_without_a_word(sick, fit):
    p, y = sick
    fit.fit(1 - p, y)
    assert fit.classes_.tolist() == ["ill", "well"]
    proba = fit.predict_proba(1 - p)
    assert np.corrcoef(proba[:, 1], 1 - p)[0, 1] > 0.9


@pytest.mark.parametrize("y", ["noise", "few", "0 and 1"])
def test_what_is_not_clear_is_not_told(sick, y):
    p = sick[0]
    given = {
        "noise": np.random.default_rng(1).choice(["a", "b"], size=300),
        "few": np.array(["a"] + 299 * ["b"]),
        "0 and 1": (p < 0.5).astype(int),
    }[y]
    TemperatureScaling().fit(p, given)


def test_labels_of_the_recalibrator_settle_it(sick):
    p, y = sick
    fitted = Recalibrator(FEW, labels=["well", "ill"], random_state=0).fit(p, y)
    assert fitted.classes_.tolist() == ["well", "ill"]
    assert fitted.summary().startswith(
        "300 predictions of the probability of ill; cross-validated losses"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = Recalibrator(FEW, random_state=0).fit(1 - p, y)
    np.testing.assert_allclose(
        fitted.predict_proba(p)[:, ::-1], other.predict_proba(1 - p), rtol=1e-9
    )


def test_names_of_columns_say_which_class_each_holds():
    """Whatever their order, and for shares of classes as for labels."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 2, 3], 200)
    codes = (proba.cumsum(axis=1) > rng.random((200, 1))).argmax(axis=1)
    names, order = np.array(["ape", "bee", "cow"]), [2, 0, 1]
    expected = TemperatureScaling().fit(proba, names[codes])
    frame = pd.DataFrame(proba, columns=names)
    for y in (names[codes], pd.DataFrame(np.eye(3)[codes][:, order], columns=names[order])):
        found = TemperatureScaling().fit(frame[names[order]], y)
        assert found.classes_.tolist() == names[order].tolist()
        assert_allclose(found.temperature_, expected.temperature_, rtol=1e-6)
    some = codes != 1  # also where a class is missing
    found = TemperatureScaling().fit(frame[names[order]][some], names[codes[some]])
    assert found.classes_.tolist() == names[order].tolist()
    expected = TemperatureScaling().fit(proba[some], codes[some])
    assert_allclose(found.temperature_, expected.temperature_, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_labels_counted_from_1_are_told_as_the_message_says(name):
    rng = np.random.default_rng(0)
    P = np.column_stack([rng.dirichlet(np.full(4, 0.5), 400), np.full(400, 1e-6)])
    P /= P.sum(axis=1, keepdims=True)
    y = (P.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1).clip(0, 3) + 1
    kind = getattr(recalibration, name)
    fit = kind(TemperatureScaling()) if name == "Smoothed" else kind()
    said = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit.fit(P, y)
        said.append("better counted from 1. If so pass y - 1." in str(caught[0].message))
        caught.clear()
        right = fit.fit(P, y - 1).predict_proba(P)
        said.append(any("counted from 1" in str(warning.message) for warning in caught))
    assert said == [True, False]
    assert log_loss(y - 1, right, labels=range(5)) < 1
