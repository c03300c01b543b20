"""Calibration-estimation functions as recalibration maps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.isotonic import IsotonicRegression

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    KroneckerKernelRidge,
    PlugIn,
    Recalibrator,
    TemperatureScaling,
    Zero,
)
from skcal.datasets import make_tempered
from skcal.model_selection import FunctionCorrection
from skcal.recalibration import SplineScaling


def tempered(n_samples=600, n_classes=3, seed=0):
    data = make_tempered(
        n_samples, n_classes=n_classes, temperature=2.0, n_truth_draws=0, random_state=seed
    )
    return data.proba, data.labels


def corrected(function, notion, P, y):
    return FunctionCorrection(CalibrationErrorEstimator(function, notion)).fit(P, y)


@pytest.mark.parametrize("notion", ["canonical", "binary"])
def test_the_correction_by_a_map_is_the_map(notion):
    P, y = tempered(n_classes=2)
    found = corrected(PlugIn(TemperatureScaling()), notion, P, y).predict_proba(P)
    X = P if notion == "canonical" else P[:, 1]
    expected = np.maximum(TemperatureScaling().fit(X, y).predict_proba(X), P / np.sqrt(600))
    assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), rtol=1e-6)


def test_classes_are_corrected_one_by_one_and_divided_by_their_sum():
    P, y = tempered()
    isotonic = IsotonicRegression(out_of_bounds="clip")
    found = corrected(PlugIn(isotonic, target="outcome"), "classwise", P, y).predict_proba(P)
    own = [isotonic.fit(P[:, k], y == k).predict(P[:, k]) for k in range(3)]
    expected = np.maximum(np.stack(own, axis=1), P / np.sqrt(600))
    assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)


def test_of_the_confidence_the_others_keep_their_ratios():
    P, y = tempered()
    P[0] = [0, 1, 0]
    found = corrected(PlugIn(SplineScaling()), "confidence", P, y).predict_proba(P)
    top = P.argmax(axis=1)
    assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    hit = SplineScaling().fit(P.max(axis=1), top == y)
    expected = hit.predict_proba(P.max(axis=1))[:, 1]
    moved = found[np.arange(600), top]
    assert_allclose(moved[1:], expected[1:], rtol=0.02, atol=0.02)
    assert found[0, 0] == found[0, 2] > 0
    first, second = ((top + k) % 3 for k in (1, 2))
    rows = np.arange(1, 600)
    for one in (first, second):
        share = found[rows, one[1:]] / (1 - moved[1:])
        assert_allclose(share, P[rows, one[1:]] / (1 - P[rows, top[1:]]), rtol=1e-6)


def test_the_predicted_classes_have_corrections_of_their_own():
    P, y = tempered()
    found = corrected(PlugIn(SplineScaling()), "top-label", P, y).predict_proba(P)
    assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert found.min() >= 0


def test_no_correction_changes_nothing():
    P, y = tempered()
    assert_allclose(corrected(Zero(), "canonical", P, y).predict_proba(P), P, rtol=1e-12)


def test_a_search_gives_its_best_function_as_a_map():
    P, y = tempered(1200)
    candidates = [Zero(), PlugIn(TemperatureScaling())]
    search = CalibrationErrorSearchCV(candidates, "canonical", cv=3, random_state=0)
    search.fit(P[:600], y[:600])
    map_ = search.recalibrator()
    own = corrected(PlugIn(TemperatureScaling()), "canonical", P[:600], y[:600])
    assert_array_equal(map_.predict_proba(P[600:]), own.predict_proba(P[600:]))
    again = map_.fit(P[:600], y[:600])
    assert_array_equal(again.predict_proba(P[600:]), own.predict_proba(P[600:]))
    rows = np.arange(600, 1200)
    loss = [-np.log(q[rows - 600, y[rows]]).mean() for q in (P[600:], map_.predict_proba(P[600:]))]
    assert loss[1] < loss[0]


def test_it_is_a_candidate_of_recalibrators():
    P, y = tempered()
    function = CalibrationErrorEstimator(PlugIn(TemperatureScaling()), "canonical")
    fitted = Recalibrator([FunctionCorrection(function)], random_state=0).fit(P, y)
    assert fitted.best_name_ in ("FunctionCorrection", "Mixture")


def test_functions_and_notions_without_a_correction_are_told():
    P, y = tempered()
    with pytest.raises(ValueError, match=r"KroneckerKernelRidge has no residual\(X\)"):
        corrected(KroneckerKernelRidge(), "confidence", P, y)
    with pytest.raises(ValueError, match="notion='top-2' corrects sums"):
        corrected(Zero(), "top-2", P, y)
    search = CalibrationErrorSearchCV(
        [KroneckerKernelRidge(alpha=1e-6), Binning(200)], "confidence", cv=3, random_state=0
    ).fit(P, y)
    assert isinstance(search.best_function_, KroneckerKernelRidge)
    with pytest.raises(ValueError, match=r"The best function, KroneckerKernelRidge.*one_step"):
        search.recalibrator()
