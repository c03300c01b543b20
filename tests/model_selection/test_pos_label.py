"""The positive class of estimators and searches: two columns in any order say the same."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    PlugIn,
    TemperatureScaling,
    Zero,
)
from skcal.datasets import make_tempered
from skcal.model_selection import FunctionCorrection, compare_risks
from skcal.sample import read_sample

CANDIDATES = [Zero(), (PlugIn(TemperatureScaling()), {}), (Binning(), {"n_bins": [3, 8]})]
NAMES = np.array(["no", "yes"])


@pytest.fixture
def data():
    data = make_tempered(300, n_classes=2, temperature=2.0, n_truth_draws=0, random_state=0)
    return data.proba, NAMES[data.labels]


def searched(X, y, **options):
    return CalibrationErrorSearchCV(CANDIDATES, cv=3, random_state=0, **options).fit(X, y)


def as_logits(proba):
    return np.log(np.clip(proba, 1e-12, None))


@pytest.mark.parametrize("from_logits", [False, True])
def test_the_columns_of_a_search_may_stand_in_any_order(data, from_logits):
    P, y = data
    X = as_logits(P) if from_logits else P
    plain = searched(X, y, from_logits=from_logits)
    turned = searched(X[:, ::-1], y, labels=NAMES[::-1], pos_label="yes", from_logits=from_logits)
    assert_array_equal(turned.classes_, NAMES[::-1])
    assert turned.squared_error_ == plain.squared_error_
    assert turned.one_step_squared_error_ == plain.one_step_squared_error_
    assert_array_equal(turned.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])
    assert_array_equal(turned.predict(X[:, ::-1]), plain.predict(X))
    assert turned.score(X[:, ::-1], y) == plain.score(X, y)
    error = turned.best_estimator_.squared_error(X[:, ::-1])
    assert error == plain.best_estimator_.squared_error(X)


def test_the_other_class_may_be_positive(data):
    P, y = data
    other = searched(P, y, pos_label="no")
    column = searched(P[:, 0], (y == "no").astype(int))
    assert_array_equal(other.classes_, NAMES)
    assert_allclose(other.squared_error_, column.squared_error_, rtol=1e-12)


def test_one_column_is_of_the_positive_class(data):
    P, y = data
    named = searched(P[:, 1], y, pos_label="yes")
    plain = searched(P[:, 1], y == "yes")
    assert_array_equal(named.classes_, NAMES)
    assert named.squared_error_ == plain.squared_error_
    assert named.score(P[:, 1], y) == plain.score(P[:, 1], y == "yes")


def test_corrections_of_turned_columns_stand_in_the_order_of_the_classes(data):
    P, y = data
    estimator = CalibrationErrorEstimator(PlugIn(TemperatureScaling()), "binary")
    plain = FunctionCorrection(estimator).fit(P, y)
    estimator = CalibrationErrorEstimator(
        PlugIn(TemperatureScaling()), "binary", labels=NAMES[::-1], pos_label="yes"
    )
    turned = FunctionCorrection(estimator).fit(P[:, ::-1], y)
    assert_array_equal(turned.classes_, NAMES[::-1])
    assert_array_equal(turned.predict_proba(P[:, ::-1]), plain.predict_proba(P)[:, ::-1])
    assert_array_equal(turned.predict(P[:, ::-1]), plain.predict(P))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pos_label": "maybe"}, "pos_label='maybe' is not one of two classes"),
        ({"pos_label": ["yes"]}, "is an array. Pass one label"),
        ({"pos_label": "yes", "notion": "canonical"}, "has no meaning for notion='canonical'"),
    ],
)
def test_a_positive_class_without_meaning_is_refused(data, options, said):
    P, y = data
    with pytest.raises(ValueError, match=said):
        searched(P, y, **options)
    with pytest.raises(ValueError, match=said):
        CalibrationErrorEstimator(**options).fit(P, y)


def test_missing_labels_are_said_of_y(data):
    with pytest.raises(ValueError, match=r"^y row 0 is missing"):
        searched(data[0][:, 1], np.array([None, *data[1][1:]], dtype=object), pos_label="yes")


def test_risks_of_different_positive_classes_are_not_compared(data):
    P, y = data
    a, b = (CalibrationErrorEstimator(Zero(), pos_label=one).fit(P, y) for one in ("yes", "no"))
    with pytest.raises(ValueError, match="a has pos_label='yes', b has 'no'"):
        compare_risks(a, b, P, y)


def test_where_the_other_class_is_absent_it_has_another_name():
    p = np.array([0.2, 0.5, 0.9])
    assert read_sample(["sick"] * 3, p, pos_label="sick").classes.tolist() == ["not sick", "sick"]
    assert read_sample([1, 1, 1], p, pos_label=1).classes.tolist() == [0, 1]
