"""What a search must survive, and what it must say instead of going wrong silently."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    PlugIn,
    Stacking,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)
from skcal.model_selection.candidates import family_name

NAMES = np.array(["plum", "apple", "pear", "fig"])


def test_columns_named_by_the_classes_are_the_classes_in_any_order(data):
    """Not the sorted labels, which would pair every column with another class."""
    pd = pytest.importorskip("pandas")
    P, y = data
    frame = pd.DataFrame(P, columns=NAMES)
    for model in (
        CalibrationErrorEstimator(Binning(), "confidence"),
        CalibrationErrorSearchCV([Binning()], "confidence", cv=3, random_state=0),
    ):
        named = model.fit(frame, NAMES[y])
        assert named.classes_.tolist() == named.feature_names_in_.tolist() == NAMES.tolist()
        plain = clone(model).fit(P, y)
        assert_allclose(named.predict(frame), plain.predict(P), rtol=1e-12)
        assert_allclose(named.score(frame, NAMES[y]), plain.score(P, y), rtol=1e-12)
        with pytest.raises(ValueError, match="feature names should match"):
            named.predict(frame[sorted(NAMES)])


def test_a_candidate_that_predicts_nan_is_refused_with_the_remedy(data):
    isotonic = PlugIn(IsotonicRegression(), target="outcome")  # out_of_bounds="nan"
    with pytest.raises(ValueError, match=r"IsotonicRegression predicts NaN.*out_of_bounds='clip'"):
        CalibrationErrorSearchCV([Zero(), isotonic], "confidence", random_state=0).fit(*data)


class NaNRisk(Zero):
    """A function whose score is not a number, as after an overflow."""

    def score(self, X, y, sample_weight=None):
        return np.nan


def test_a_candidate_whose_risk_is_not_finite_is_left_out_with_a_warning(data):
    candidates = [Zero(), Binning()]
    expected = CalibrationErrorSearchCV(candidates, "confidence", random_state=0).fit(*data)
    search = CalibrationErrorSearchCV([NaNRisk(), *candidates], "confidence", random_state=0)
    with pytest.warns(UserWarning, match=r"risk of NaNRisk with \{\} is not finite.*leaves"):
        search.fit(*data)
    assert [family.name for family in search.families_] == ["Zero", "Binning"]
    assert search.squared_error_ == expected.squared_error_
    assert search.cv_results_["mean_test_score"].tolist() == [
        *expected.cv_results_["mean_test_score"]
    ]


def test_a_search_without_a_finite_risk_says_so(data):
    search = CalibrationErrorSearchCV([NaNRisk()], "confidence", random_state=0)
    with (
        pytest.warns(UserWarning, match="NaNRisk"),
        pytest.raises(ValueError, match=r"No candidate has a finite risk.*candidates"),
    ):
        search.fit(*data)


def test_fixed_folds_do_not_go_with_several_training_sets(data):
    folds = [(np.arange(100), np.arange(100, 200))]
    with pytest.raises(ValueError, match="cv holds fixed rows, but there are several outer splits"):
        CalibrationErrorSearchCV([Zero()], cv=folds, outer_cv=3, notion="canonical").fit(*data)


def test_test_samples_must_not_be_training_samples(data):
    split = [(np.arange(200), np.arange(199, 300))]
    with pytest.raises(ValueError, match=r"outer_cv puts sample 199 into both parts of split 0"):
        CalibrationErrorSearchCV([Zero()], outer_cv=split, notion="canonical").fit(*data)


@pytest.mark.parametrize("outer_cv", [None, 2])
def test_a_search_keeps_no_fits_but_those_of_its_choice(data, outer_cv):
    """Else it would hold the training samples once per candidate, setting, fold and split."""
    candidates = [
        DirichletKernelDensity(),
        (TwoStepKernelRidge(), {"alpha": [1e-3, 1e-1]}),
        PlugIn(TemperatureScaling()),
        Stacking([Binning(), PlugIn(TemperatureScaling())]),
    ]
    search = CalibrationErrorSearchCV(candidates, "confidence", outer_cv=outer_cv, random_state=0)
    search.fit(*data)
    for family in search.families_:
        assert not family._fits
        assert not getattr(family, "_held_out", [])
        assert not getattr(family, "_known", {})
        assert len(family.models) == 5
    for result in search.outer_results_:
        assert result.function is None or not hasattr(result.function, "form_")


@pytest.mark.parametrize(("outer_cv", "sizes"), [(2, [30, 30, 60]), (None, [30])])
def test_candidates_are_sized_by_the_problem_and_by_the_fold(monkeypatch, outer_cv, sizes):
    """The canonical problem of top-2 has 3 columns; the final search has all samples."""
    seen = []

    def spy(candidates, notion, n_classes, n_train):
        seen.append((n_classes, n_train))
        return [(Zero(), {})]

    monkeypatch.setattr("skcal.choice.search.resolve_candidates", spy)
    P = np.random.default_rng(0).dirichlet(np.full(120, 0.3), size=90)
    search = CalibrationErrorSearchCV(
        None, "top-2", labels=range(120), cv=3, outer_cv=outer_cv, random_state=0
    )
    search.fit(P, P.argmax(axis=1))
    assert sorted(seen) == [(3, size) for size in sizes]


def test_zero_gives_no_one_step_estimate(data):
    """Its 0 ± 0 would read as certainty; the best other correction is tested instead."""
    P, _ = data
    rng = np.random.default_rng(3)
    y = (P.cumsum(axis=1) < rng.uniform(size=(len(P), 1))).sum(axis=1)  # calibrated
    search = CalibrationErrorSearchCV(
        [Zero(), PlugIn(TemperatureScaling())], labels=range(4), random_state=0, notion="canonical"
    ).fit(P, y)
    assert family_name(search.one_step_function_) == "TemperatureScaling"
    assert search.one_step_standard_error_ > 0
    alone = CalibrationErrorSearchCV([Zero()], "canonical", labels=range(4), random_state=0)
    alone.fit(P, y)
    assert alone.one_step_squared_error_ is None


def test_classes_predicted_too_rarely_for_a_risk_are_reported(data):
    P, y = data
    rare = P.copy()
    rows = np.flatnonzero(rare.argmax(axis=1) == 3)[1:]
    rare[rows] = rare[rows][:, [3, 1, 2, 0]]  # class 3 is predicted once
    search = CalibrationErrorSearchCV([Binning()], "top-label", labels=range(4), random_state=0)
    with pytest.warns(UserWarning, match=r"^Class 3 \(1 such classes\) is predicted for fewer"):
        search.fit(rare, y)
    assert np.isfinite(search.squared_error_)
    assert search.best_estimator_.risk(rare, y).skipped == (3,)
