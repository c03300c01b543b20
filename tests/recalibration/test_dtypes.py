"""Predictions of 16 and 32 bits: all maps take them, and answer in 32 bits as in 64."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator

from skcal import RecalibratedClassifierCV, Recalibrator, TemperatureScaling, recalibration
from skcal.choice import SegmentRecalibrator
from skcal.recalibration import Identity, Mixture, PlattScaling, RecalibrationMap, Smoothed

METHODS = [
    Smoothed(PlattScaling()) if thing is Smoothed else thing()
    for _, thing in sorted(vars(recalibration).items())
    if isinstance(thing, type)
    and issubclass(thing, RecalibrationMap)
    and thing is not RecalibrationMap
]
METHODS += [
    Mixture([Identity(), TemperatureScaling()], [0.5, 0.5], temperature=1.1),
    Recalibrator(cv=3, random_state=0),
    Recalibrator([TemperatureScaling()], cv=3, random_state=0),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: " ".join(repr(m).split()))


def drawn(n_columns, n=300):
    rng = np.random.default_rng(n_columns)
    X = rng.dirichlet(np.full(max(n_columns, 2), 0.7), n)
    y = np.minimum((X.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), X.shape[1] - 1)
    return (X[:, 1] if n_columns == 1 else X), y


@pytest.mark.filterwarnings("ignore:The frequency of events clearly falls")
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("n_columns", [1, 2, 12])
@every_method
def test_short_floats_are_taken_and_answered_in_32_bits(method, n_columns, dtype):
    X, y = drawn(n_columns)
    short = X.astype(dtype)
    fitted = clone(method).fit(short, y)
    proba = fitted.predict_proba(short)
    assert proba.dtype == np.float32
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    exact = short.astype(np.float64)  # the same rows, divided by their sums
    exact = exact / exact.sum(axis=1, keepdims=True) if n_columns > 1 else exact
    jumps = isinstance(method, Recalibrator | recalibration.VennAbers)  # at rounding, or by chance
    if dtype == np.float16 and not jumps:
        assert_allclose(fitted.predict_proba(exact.astype(np.float32)), proba, atol=1e-5)
    assert fitted.predict_proba(exact).dtype == np.float64


class Known(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose features are its probabilities, in the type in which they come."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return X


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_classifiers_and_segments_take_short_floats(dtype):
    X, y = drawn(2)
    short = X.astype(dtype)
    known = FrozenEstimator(Known().fit(short, y))
    found = RecalibratedClassifierCV(known, random_state=0).fit(short, y).predict_proba(short)
    assert found.dtype == np.float32
    segments = {"site": np.tile(["a", "b"], 150)}
    method = SegmentRecalibrator(PlattScaling(), cv=2, random_state=0, n_resamples=19)
    fitted = method.fit(short, y, segments=segments)
    assert fitted.predict_proba(short, segments=segments).dtype == np.float32


def test_predictions_of_32_bits_need_no_array_of_64():
    X, y = drawn(20, 100_000)
    X = X.astype(np.float32)
    fitted = TemperatureScaling().fit(X[:1000], y[:1000])
    tracemalloc.start()
    fitted.predict_proba(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * X.nbytes  # the answer, sums and a block
