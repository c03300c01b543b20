"""Classifiers with their recalibrators."""

import pickle
import re
import warnings

import numpy as np
import pytest
import sklearn
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skcal import (
    CalibrationErrorSearchCV,
    RecalibratedClassifierCV,
    Recalibrator,
    TemperatureScaling,
)
from skcal.recalibration import HistogramBinning, Identity

ONE = Recalibrator([TemperatureScaling()], cv=3, random_state=0)


def made(n_samples=600, n_classes=3, seed=0):
    return make_classification(
        n_samples,
        n_features=10,
        n_informative=5,
        n_redundant=5,
        n_classes=n_classes,
        random_state=seed,
    )


def test_predictions_are_those_of_the_recalibrator_on_out_of_fold_predictions():
    X, y = made()
    folds = StratifiedKFold(3)
    single = RecalibratedClassifierCV(GaussianNB(), TemperatureScaling(), folds, ensemble=False)
    single.fit(X, y)
    proba = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")
    expected = TemperatureScaling().fit(proba, y)
    assert single.recalibrator_.best_estimator_.temperature_ == pytest.approx(
        expected.temperature_, rel=1e-9
    )
    own = expected.predict_proba(GaussianNB().fit(X, y).predict_proba(X))
    assert_allclose(single.predict_proba(X), (600 * own + 1 / 3) / 601, rtol=1e-9)
    several = RecalibratedClassifierCV(GaussianNB(), TemperatureScaling(), folds).fit(X, y)
    mean = np.mean(
        [
            expected.predict_proba(GaussianNB().fit(X[train], y[train]).predict_proba(X))
            for train, _ in folds.split(X, y)
        ],
        axis=0,
    )
    assert_allclose(several.predict_proba(X), (600 * mean + 1 / 3) / 601, rtol=1e-9)


@pytest.mark.parametrize("recalibrator", [None, TemperatureScaling()])
def test_random_state_is_that_of_the_default_classifier_and_recalibrator(recalibrator):
    X, y = made(60)
    for options in ({}, {"random_state": 3})[recalibrator is None :]:
        fitted = RecalibratedClassifierCV(recalibrator=recalibrator, **options).fit(X, y)
        expected = options.get("random_state")
        assert fitted.recalibrator_.random_state == expected
        assert fitted.classifiers_[0].random_state == expected
    assert isinstance(fitted.classifiers_[0], LinearSVC)
    again = clone(fitted).fit(X, y)
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    own = Recalibrator([TemperatureScaling()], random_state=7)
    fitted = RecalibratedClassifierCV(GaussianNB(), own, random_state=3).fit(X, y)
    assert fitted.recalibrator_.random_state == 7


def test_the_comparison_judges_each_fold_by_a_map_of_the_others():
    X, y = made()
    folds = StratifiedKFold(3)
    fitted = RecalibratedClassifierCV(GaussianNB(), TemperatureScaling(), folds).fit(X, y)
    before = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")
    after = np.empty_like(before)
    for train, test in folds.split(X, y):
        own = TemperatureScaling().fit(before[train], y[train]).predict_proba(before[test])
        after[test] = (len(train) * own + 1 / 3) / (len(train) + 1)
    won = fitted.comparison_["log_loss"]
    assert won.before == pytest.approx(log_loss(y, before))
    assert won.after == pytest.approx(log_loss(y, after))
    found = fitted.out_of_fold_
    order = np.argsort(found.rows)
    assert_allclose(found.before[order], before, rtol=1e-12)
    assert_allclose(found.after[order], after, rtol=1e-6)
    assert_array_equal(found.codes, y[found.rows])


def test_what_is_left_is_estimated_with_a_bound():
    X, y = made(1500, n_classes=2)
    fitted = RecalibratedClassifierCV(GaussianNB(), ONE, cv=3).fit(X, y)
    before, after = fitted.initial_error(), fitted.remaining_error()
    assert before.notion == after.notion == "binary"
    assert before.low > 0
    assert after.low <= after.estimate < before.estimate
    assert fitted.remaining_error("classwise").notion == "classwise"


def test_a_fitted_classifier_stays_as_it_is():
    X, y = made(900)
    classifier = GaussianNB().fit(X[:300], y[:300])
    fitted = RecalibratedClassifierCV(FrozenEstimator(classifier), ONE).fit(X[300:600], y[300:600])
    assert len(fitted.classifiers_) == 1
    assert_array_equal(
        fitted.classifiers_[0].predict_proba(X), FrozenEstimator(classifier).predict_proba(X)
    )
    again = RecalibratedClassifierCV(FrozenEstimator(classifier), ONE, ensemble=True)
    again.fit(X[300:600], y[300:600])
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert fitted.comparison_["log_loss"].before == pytest.approx(
        log_loss(y[300:600], classifier.predict_proba(X[300:600]))
    )


class Fixed(ClassifierMixin, BaseEstimator):
    """A fitted classifier of given classes, whose features are its logits."""

    def __init__(self, classes):
        self.classes = classes
        self.classes_ = np.array(classes)

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return softmax(X, axis=1)


@pytest.mark.parametrize("classes", [[0, 1, 2], ["a", "b", "c"], ["c", "a", "b"]])
def test_the_classes_of_a_frozen_classifier_are_its_own(classes):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(400, 3))
    names = np.array(classes)
    codes = (softmax(logits, axis=1).cumsum(axis=1) < rng.random((400, 1))).sum(axis=1)
    few = codes != 1  # a class is absent from the calibration set
    fitted = RecalibratedClassifierCV(FrozenEstimator(Fixed(classes)), TemperatureScaling())
    fitted.fit(logits[few], names[codes[few]])
    assert_array_equal(fitted.classes_, names)
    proba = fitted.predict_proba(logits)
    assert proba.shape == (400, 3)
    assert_array_equal(proba.argmax(axis=1), logits.argmax(axis=1))
    assert set(fitted.predict(logits)) <= set(classes)
    fitted.fit(logits, names[codes])
    assert_array_equal(fitted.out_of_fold_.codes, codes[fitted.out_of_fold_.rows])


@pytest.mark.parametrize(("classes", "labels"), [([0, 1], [0, 2]), (["a", "b"], [0, 1])])
def test_labels_that_a_frozen_classifier_does_not_know_are_refused(classes, labels):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.array(labels)[np.arange(20) % 2]
    with pytest.raises(ValueError, match=r"y row \d is .*not a class of the frozen classifier"):
        RecalibratedClassifierCV(FrozenEstimator(Fixed(classes))).fit(X, y)


def test_out_of_fold_predictions_need_not_be_stored():
    X, y = made(300)
    options = {"cv": 3, "store_out_of_fold": False}
    slim = RecalibratedClassifierCV(GaussianNB(), TemperatureScaling(), **options).fit(X, y)
    full = clone(slim).set_params(store_out_of_fold=True).fit(X, y)
    assert_array_equal(slim.predict_proba(X), full.predict_proba(X))
    assert len(pickle.dumps(full)) - len(pickle.dumps(slim)) > 2 * 300 * 3 * 8
    with pytest.raises(ValueError, match="Fit with store_out_of_fold=True"):
        slim.remaining_error()
    assert slim.comparison_["log_loss"].after == full.comparison_["log_loss"].after


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("classifier", [LinearSVC(), SVC()], ids=["linear", "kernel"])
def test_decision_values_are_logits(classifier, n_classes):
    X, y = made(n_classes=n_classes)
    fitted = RecalibratedClassifierCV(classifier, ONE, cv=3).fit(X, y)
    assert fitted.recalibrator_.from_logits
    proba = fitted.predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-9)
    assert log_loss(y, proba) < 0.8 * np.log(n_classes)


X, Y = made(60)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (None, Y, "X is None"),
        (X[1:], Y, "X has 59 rows, y 60"),
        (X, X[:, 0], "y row 0 is .*, a fraction.*swapped"),
        (
            X,
            np.where(np.arange(60) == 7, -100, Y),
            r"^y row 7 is -100, which.*y\[keep\] and X\[keep\]",
        ),
        (X, np.array([0, "1"] * 30, dtype=object), "y holds labels that cannot be sorted"),
    ],
    ids=["none", "rows", "fractions", "mark", "labels"],
)
def test_impossible_features_and_labels_are_named(X, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        RecalibratedClassifierCV(GaussianNB(), TemperatureScaling(), cv=2).fit(X, y)


class BrokenError(ValueError):
    """An error of a user's own, whose constructor takes other arguments than a message."""

    def __init__(self, code, place):
        super().__init__(f"code {code} in {place}")
        self.code = code


class Broken(GaussianNB):
    """Raises where it is asked to."""

    def __init__(self, error=None, where="fit"):
        super().__init__()
        self.error, self.where = error, where

    def fit(self, X, y, sample_weight=None):
        if self.where == "fit":
            raise ERRORS[self.error]()
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X):
        if self.where == "predict_proba":
            raise ERRORS[self.error]()
        return super().predict_proba(X)


ERRORS = {
    "own": lambda: BrokenError(7, "the classifier"),
    "not fitted": lambda: NotFittedError("not fitted"),
    "value": lambda: ValueError("Input X contains NaN"),
    "type": lambda: TypeError("a bug"),
    "key": lambda: KeyError("column"),
    "unicode": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    "memory": MemoryError,
    "singular": lambda: np.linalg.LinAlgError("singular"),
}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("where", ["fit", "predict_proba"])
@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_the_classifier_come_through_with_a_note(name, where, n_jobs):
    error = ERRORS[name]()
    model = RecalibratedClassifierCV(Broken(name, where), TemperatureScaling(), cv=2)
    with parallel_config("threading"), pytest.raises(type(error)) as caught:
        model.set_params(n_jobs=n_jobs).fit(X, Y)
    assert type(caught.value) is type(error)
    assert str(caught.value) == str(error)
    assert vars(caught.value).get("code") == vars(error).get("code")
    part = "training" if where == "fit" else "test"
    note = f"{where} with the {part} part of fold [01]"
    [note_of] = caught.value.__notes__
    assert re.match(f"RecalibratedClassifierCV called Broken.{note}", note_of)


def test_errors_of_predictions_and_of_the_last_fit_come_through_with_a_note():
    fitted = RecalibratedClassifierCV(Broken(where=None), ONE, cv=2).fit(X, Y)
    for classifier in fitted.classifiers_:
        classifier.set_params(error="key", where="predict_proba")
    with pytest.raises(KeyError) as caught:
        fitted.predict_proba(X)
    assert caught.value.__notes__ == ["RecalibratedClassifierCV called Broken.predict_proba."]
    with pytest.raises(ValueError, match="contains NaN") as missing:
        RecalibratedClassifierCV(GaussianNB(), cv=2).fit(np.where(X > 2, np.nan, X), Y)
    assert "GaussianNB.fit with the training part of fold 0" in missing.value.__notes__[-1]


class Fussy(KFold):
    """A splitter with an error of its own."""

    def split(self, X, y=None, groups=None):
        raise BrokenError(3, "the splitter")


@pytest.mark.parametrize(
    "model",
    [
        RecalibratedClassifierCV(GaussianNB(), cv=Fussy()),
        Recalibrator(cv=Fussy()),
        CalibrationErrorSearchCV(cv=Fussy()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_errors_of_a_splitter_come_through_with_a_note(model):
    with pytest.raises(BrokenError, match="code 3 in the splitter") as caught:
        model.fit(softmax(X[:, :3], axis=1), Y)
    assert "cv" in caught.value.__notes__[-1]


@pytest.mark.parametrize(
    ("name", "value"), [("estimator", GaussianNB), ("recalibrator", TemperatureScaling)]
)
def test_classes_in_place_of_instances_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"{name} is a class, {value.__name__}. Pass an instance"):
        RecalibratedClassifierCV(**{name: value}).fit(*made(60))


def test_decisions_between_pairs_are_refused():
    X, y = made(n_classes=4)
    with pytest.raises(ValueError, match=r"6 columns for 4 classes.*decision_function_shape='ovr'"):
        RecalibratedClassifierCV(SVC(decision_function_shape="ovo")).fit(X, y)


def sites(n_samples, y):
    """Groups of which the last holds all samples of class 2, and others as well."""
    return np.where((y == 2) | (np.arange(n_samples) % 40 == 0), 8, np.arange(n_samples) % 8)


def without(y, number):
    """Splits of which one trains without class 2."""
    splits = list(StratifiedKFold(4).split(y, y))
    splits[number] = (splits[number][0][y[splits[number][0]] != 2], splits[number][1])
    return splits


#: cv, groups and the first class that the training part of a fold lacks, with the fold.
LACKING = {
    "KFold": lambda y: (KFold(3), None, "'middle' .* fold 1"),
    "GroupKFold": lambda y: (GroupKFold(3), sites(len(y), y), r"'high' .* fold \d"),
    "LeaveOneGroupOut": lambda y: (LeaveOneGroupOut(), sites(len(y), y), "'high' .* fold 8"),
    "int of groups": lambda y: (3, sites(len(y), y), r"'high' .* fold \d"),
    "PredefinedSplit": lambda y: (PredefinedSplit(np.where(y == 2, 1, y)), None, "'low' .* fold 0"),
    "splits": lambda y: (without(y, 2), None, "'high' .* fold 2"),
    "generator": lambda y: (iter(without(y, 3)), None, "'high' .* fold 3"),
    "masks": lambda y: ([(y < 2, y == 2), (y > 0, y == 0)], None, "'high' .* fold 0"),
    "one of eight folds": lambda y: (
        PredefinedSplit(np.where(y == 2, 7, np.arange(len(y)) % 7)),
        None,
        "'high' .* fold 7",
    ),
}


@pytest.mark.filterwarnings("ignore:groups holds:UserWarning")
@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("name", LACKING)
def test_a_training_fold_without_a_class_is_refused_by_name(name, ensemble):
    X, y = made(240)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    cv, groups, place = LACKING[name](y)
    names = np.array(["low", "middle", "high"])[y]
    model = RecalibratedClassifierCV(GaussianNB(), TemperatureScaling(), cv, ensemble=ensemble)
    with pytest.raises(ValueError, match=f"^cv is unsuitable. Class {place}") as caught:
        model.fit(X, names, groups=groups)
    message, kept = str(caught.value), np.ones(240, dtype=bool)
    if groups is None:  # the remedy, to the letter
        [remedy] = re.findall(r"Pass cv=(StratifiedKFold\(\d, shuffle=True\))\.$", message)
        model.set_params(cv=eval(remedy))
    else:
        assert "This class has one group: pass more of it, or leave the class out." in message
        kept = y < 2
        model.set_params(cv=3)
        groups = groups[kept]
    proba = model.fit(X[kept], names[kept], groups=groups).predict_proba(X)
    assert np.isfinite(np.log(proba)).all()


def test_a_class_of_weight_0_in_a_training_fold_is_absent_and_one_of_weight_0_at_all_is_not():
    X, y = made(90)
    [(train, test), *rest] = StratifiedKFold(3).split(X, y)
    weight = np.ones(90)
    weight[train[y[train] == 1]] = 0
    cv = [(train, test), *rest]
    with pytest.raises(ValueError, match="Class 1 does not occur in the training part of fold 0"):
        RecalibratedClassifierCV(GaussianNB(), ONE, cv).fit(X, y, weight)
    model = RecalibratedClassifierCV(DecisionTreeClassifier(max_depth=2), ONE, cv)
    assert model.fit(X, y, (y != 1) * 1.0).predict_proba(X).shape == (90, 3)


def test_a_class_of_one_sample_has_no_folds():
    X, y = made(60)
    y[y == 2], y[5] = 0, 2
    message = "This class has one sample: pass more of it, or leave the class out"
    with pytest.raises(ValueError, match=message):
        RecalibratedClassifierCV(GaussianNB(), ONE, cv=KFold(3)).fit(X, y)


class Reversed(GaussianNB):
    """A classifier with its classes, and columns, in the other order."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.known_, self.classes_ = self.classes_, self.classes_[::-1]
        return self

    def predict_proba(self, X):
        return np.exp(self._joint_log_likelihood(X))[:, ::-1]

    def _joint_log_likelihood(self, X):
        self.classes_, kept = self.known_, self.classes_
        logs = super()._joint_log_likelihood(X)
        self.classes_ = kept
        return logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)


class ReversedDecisions(LinearSVC):
    """A classifier with its two classes, and decisions, in the other order."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.classes_ = self.classes_[::-1]
        return self

    def decision_function(self, X):
        return -super().decision_function(X)


@pytest.mark.parametrize(
    ("plain", "other", "n_classes"),
    [(GaussianNB(), Reversed(), 3), (LinearSVC(), ReversedDecisions(), 2)],
    ids=["proba", "decisions"],
)
def test_columns_are_those_of_the_classes_in_any_order(plain, other, n_classes):
    X, y = made(150, n_classes)
    proba = [
        RecalibratedClassifierCV(c, TemperatureScaling(), 3).fit(X, y).predict_proba(X)
        for c in (plain, other)
    ]
    assert_allclose(*proba, rtol=1e-6, atol=1e-12)


def test_a_classifier_that_loses_a_class_is_refused():
    class Loses(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            return super().fit(X[y < 2], y[y < 2])

    message = r"Loses was fitted to the classes .*0, 1, 2.* but its classes_ are .*0, 1"
    with pytest.raises(ValueError, match=message):
        RecalibratedClassifierCV(Loses(), ONE, cv=2).fit(X, Y)


def test_five_groups_are_enough_for_folds():
    X, y = made(300, n_classes=2)
    groups = np.arange(300) % 5
    splits = list(GroupKFold(5).split(X, y, groups))
    whole = RecalibratedClassifierCV(GaussianNB(), TemperatureScaling(), splits).fit(X, y)
    for cv in (GroupKFold(5), LeaveOneGroupOut(), splits):
        model = RecalibratedClassifierCV(GaussianNB(), TemperatureScaling(), cv)
        with pytest.warns(UserWarning, match="groups holds 5 groups"):
            assert_allclose(
                model.fit(X, y, groups=groups).predict_proba(X), whole.predict_proba(X), rtol=1e-9
            )
    proba = GaussianNB().fit(X, y).predict_proba(X)
    with pytest.warns(UserWarning, match="groups holds 5 groups"):
        Recalibrator([TemperatureScaling()], cv=GroupKFold(5)).fit(proba, y, groups=groups)
    with pytest.warns(UserWarning, match="groups holds 2 groups"):
        Recalibrator([TemperatureScaling()], cv=GroupKFold(2)).fit(proba, y, groups=groups % 2)
    with pytest.raises(ValueError, match="groups holds 1 groups, and at least 2 are needed"):
        model.fit(X, y, groups=np.zeros(300))


def test_prefit_names_what_has_replaced_it():
    model = RecalibratedClassifierCV(GaussianNB().fit(X, Y), TemperatureScaling(), cv="prefit")
    with pytest.raises(ValueError, match=r"Leave cv out, and pass FrozenEstimator\(estimator\)"):
        model.fit(X, Y)
    remedy = RecalibratedClassifierCV(FrozenEstimator(model.estimator), TemperatureScaling())
    assert remedy.fit(X, Y).predict_proba(X).shape == (60, 3)
    with pytest.raises(ValueError, match="The 'cv' parameter of RecalibratedClassifierCV must be"):
        model.set_params(cv="other").fit(X, Y)


def test_weights_reach_the_classifier_and_the_recalibrator():
    X, y = made()
    weight = np.where(y == 0, 3.0, 1.0)
    map_ = Recalibrator([TemperatureScaling()], do_no_harm=False, mix=False)
    folds = StratifiedKFold(3)
    fitted = RecalibratedClassifierCV(GaussianNB(), map_, folds, ensemble=False)
    fitted.fit(X, y, sample_weight=weight)
    proba = np.empty((600, 3))
    for train, test in folds.split(X, y):
        own = GaussianNB().fit(X[train], y[train], sample_weight=weight[train])
        proba[test] = own.predict_proba(X[test])
    expected = TemperatureScaling().fit(proba, y, weight)
    found = fitted.recalibrator_.best_estimator_.temperature_
    assert found == pytest.approx(expected.temperature_, rel=1e-9)
    last = GaussianNB().fit(X, y, sample_weight=weight)
    assert_array_equal(fitted.classifiers_[0].predict_proba(X), last.predict_proba(X))


def test_masked_arrays_are_refused_and_numbers_in_object_arrays_are_labels():
    X, y = made(200)
    model = RecalibratedClassifierCV(GaussianNB(), ONE, cv=3)
    with pytest.raises(ValueError, match="X is masked"):
        model.fit(np.ma.masked_less(X, -1), y)
    with pytest.raises(ValueError, match="y is masked"):
        model.fit(X, np.ma.masked_equal(y, 2))
    proba = [model.fit(X, labels).predict_proba(X) for labels in (y, y.astype(object))]
    assert_array_equal(*proba)


@pytest.mark.parametrize(
    ("scale", "like"), [(1e-300, 0.5), (1e-6, 0.5), (1e300, 0.5), (1e30, 1e15)]
)
def test_the_classifier_has_the_weights_as_passed_and_maps_count_rows(scale, like):
    X, y = made(300)
    fitted = [
        RecalibratedClassifierCV(DecisionTreeClassifier(max_depth=3, random_state=0), ONE, cv=3)
        .fit(X, y, sample_weight=np.where(y == 0, 1.0, 0.25) * factor)
        .predict_proba(X)
        for factor in (like, scale)
    ]
    assert_allclose(*fitted, rtol=1e-9)


def test_a_classifier_without_weights_is_warned_of():
    X, y = made(200)
    with pytest.warns(UserWarning, match="KNeighborsClassifier does not take sample_weight"):
        RecalibratedClassifierCV(KNeighborsClassifier(), ONE, cv=3).fit(X, y, np.ones(200))


def test_a_pipeline_has_the_weights_of_its_last_step():
    X, y = made(200)
    weight = np.where(y == 1, 3.0, 1.0)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    recalibrated = RecalibratedClassifierCV(pipeline, ONE, cv=3)
    with pytest.warns(UserWarning, match="Pass logisticregression__sample_weight to fit, too"):
        recalibrated.fit(X, y, weight)
    fitted = recalibrated.fit(X, y, weight, logisticregression__sample_weight=weight)
    unweighted = RecalibratedClassifierCV(pipeline, ONE, cv=3).fit(X, y)
    for own, other in zip(fitted.classifiers_, unweighted.classifiers_, strict=True):
        assert not np.allclose(own[-1].coef_, other[-1].coef_)


def test_metadata_are_routed_to_the_classifier_and_the_splitter():
    X, y = made(300)
    groups, weight = np.arange(300) // 10, np.where(y == 1, 2.0, 1.0)
    plain = RecalibratedClassifierCV(LogisticRegression(), ONE, cv=3).fit(X, y, weight)
    with sklearn.config_context(enable_metadata_routing=True):
        classifier = LogisticRegression().set_fit_request(sample_weight=True)
        routed = RecalibratedClassifierCV(classifier, ONE, cv=3).fit(X, y, sample_weight=weight)
        assert_allclose(routed.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
        grouped = RecalibratedClassifierCV(classifier, ONE, cv=GroupKFold(3))
        grouped.fit(X, y, groups=groups)
    assert len(grouped.classifiers_) == 3


class Recording(ClassifierMixin, BaseEstimator):
    """A classifier that keeps what ``fit`` got."""

    def fit(self, X, y, metadata=None):
        self.metadata_, self.classes_ = metadata, np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


def test_parameters_of_fit_are_passed_on_by_fold():
    X, y = made(90)
    fitted = RecalibratedClassifierCV(Recording(), ONE, cv=3).fit(X, y, metadata=np.arange(90))
    for classifier, (train, _) in zip(
        fitted.classifiers_, StratifiedKFold(3).split(X, y), strict=True
    ):
        assert_array_equal(classifier.metadata_, train)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({}, np.zeros(20), "y holds one class, 0.0"),
        ({"cv": 5}, np.repeat([0, 1], [17, 3]), "Class 1 has 3 samples, less than cv=5 folds"),
        (
            {"cv": [([0, 1, 10, 11], [2]), ([0, 1, 10, 11], [2, 3])]},
            np.repeat([0, 1], 10),
            "cv tests sample 2 2 times",
        ),
        ({"cv": [(1, 2)]}, np.repeat([0, 1], 10), r"cv has the split 0 \(1, 2\). Pass pairs"),
    ],
)
def test_impossible_labels_and_splits_raise(options, y, message):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=message):
        RecalibratedClassifierCV(GaussianNB(), ONE, **options).fit(X, y)


def test_a_class_of_as_many_samples_as_folds_is_enough():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.arange(30) % 10 == 0
    mended = RecalibratedClassifierCV(GaussianNB(), TemperatureScaling(), cv=3).fit(
        X + y[:, None], y
    )
    assert mended.predict_proba(X).shape == (30, 2)
    with pytest.raises(ValueError, match="has 3 samples, less than cv=4 folds"):
        RecalibratedClassifierCV(GaussianNB(), TemperatureScaling(), cv=4).fit(X, y)


class Returns(GaussianNB):
    """A classifier whose probabilities are made by a function of the right ones."""

    def __init__(self, change=None):
        super().__init__()
        self.change = change

    def predict_proba(self, X):
        return self.change(super().predict_proba(X))


NO_PREDICTIONS = {
    "is NaN. Correct the classifier": lambda p: np.where(p == p[0, 0], np.nan, p),
    r"returned shape \(\)": lambda p: None,
    r"returned shape \(45, 3\) for 46 samples": lambda p: p[1:],
    "has 1 columns for 3 classes. Return": lambda p: p[:, :1],
    "returned an array of dtype <U32": lambda p: p.astype(str),
    r"is -.*, not a probability in .* decision_function if these": lambda p: np.log(p) - 1,
    r"is -0\.001, not a probability": lambda p: p * 0 + [-0.001, 0.501, 0.5],
    r"is 1\.001, not a probability": lambda p: p * 0 + [1.001, -0.001, 0],
    r"row 0, column 0 is infinite\. Correct": lambda p: p + np.inf,
    r"row 0 sums to 1\.4, not 1\. Return rows that sum to 1": lambda p: (
        1.4 * np.full_like(p, 1 / 3)
    ),
    r"row 0 sums to 1\.001, not 1\. Return rows": lambda p: 1.001 * np.full_like(p, 1 / 3),
    r"row 0 sums to 0, not 1\. Return rows": np.zeros_like,
}


@pytest.mark.parametrize("message", NO_PREDICTIONS)
@pytest.mark.parametrize("frozen", [False, True])
def test_what_a_classifier_returns_is_not_blamed_on_the_features(message, frozen):
    X, y = made(138)
    classifier = Returns(NO_PREDICTIONS[message])
    if frozen:
        classifier, message = FrozenEstimator(classifier.fit(X, y)), message.replace("45", "137")
        message = message.replace("46", "138")
    model = RecalibratedClassifierCV(classifier, ONE, cv=3)
    with pytest.raises(ValueError, match=r"^(Returns|FrozenEstimator)\.predict_proba .*" + message):
        model.fit(X, y)
    fitted = RecalibratedClassifierCV(Returns(np.abs), ONE, cv=3).fit(X, y)
    for member in fitted.classifiers_:
        member.change = NO_PREDICTIONS["is NaN. Correct the classifier"]
    with pytest.raises(ValueError, match=r"^Returns\.predict_proba row 0, column 0 is NaN"):
        fitted.predict_proba(X)


NO_LOGITS = {
    r"row 0, column 0 is NaN\. Correct": lambda z: z * np.nan,
    r"row 0, column 0 is infinite\. Correct": lambda z: np.where(z == z[0], np.inf, z),
    r"row 2, column 0 is infinite\. Correct": lambda z: np.where(z == z[2], -np.inf, z),
    "holds probabilities already, not logits. Name the method predict_proba": (
        lambda z: softmax(z, axis=1)
    ),
    r"row 2 is infinite\. Correct": lambda z: np.where(np.arange(len(z)) == 2, -np.inf, z[:, 0]),
}


@pytest.mark.parametrize("message", NO_LOGITS)
@pytest.mark.parametrize("ensemble", [False, True])
def test_what_a_decision_function_returns_is_not_blamed_on_the_features(message, ensemble):
    class Decides(GaussianNB):
        predict_proba = property()

        def decision_function(self, X):
            return NO_LOGITS[message](super().predict_joint_log_proba(X))

    X, y = made(150)
    y = y if "column" in message or "holds" in message else (y > 0).astype(int)
    with pytest.raises(ValueError, match=r"^Decides\.decision_function .*" + message):
        RecalibratedClassifierCV(Decides(), ONE, cv=3, ensemble=ensemble).fit(X, y)


def test_logits_are_taken_by_the_name_that_the_message_advises():
    class Logits(GaussianNB):
        predict_proba = property()

        def decision_function(self, X):
            return super().predict_log_proba(X) + 3

        def predict_log_proba(self, X):
            return GaussianNB.predict_log_proba(self, X)

    X, y = made(150)
    proba = [
        RecalibratedClassifierCV(classifier, TemperatureScaling(), 3).fit(X, y).predict_proba(X)
        for classifier in (Logits(), GaussianNB())
    ]
    assert_allclose(*proba, rtol=1e-4)  # logs of probabilities near 0 are cut


def test_an_exception_of_two_arguments_comes_from_a_worker_by_its_name():
    model = RecalibratedClassifierCV(Broken("own"), TemperatureScaling(), cv=2, n_jobs=2)
    with pytest.raises(RuntimeError, match=r"BrokenError\('code 7.* training part of fold [01]"):
        model.fit(X, Y)


def test_a_frozen_classifier_is_fitted_first():
    model = RecalibratedClassifierCV(FrozenEstimator(GaussianNB()), ONE, cv=3)
    with pytest.raises(NotFittedError, match=r"GaussianNB is not fitted. Fit it before Frozen"):
        model.fit(X, Y)
    fitted = model.set_params(estimator=FrozenEstimator(GaussianNB().fit(X, Y))).fit(X, Y)
    assert len(fitted.classifiers_) == 1


@pytest.mark.parametrize("cv", [GroupKFold(3), LeaveOneGroupOut()])
def test_a_splitter_of_groups_without_groups_asks_for_them(cv):
    proba = GaussianNB().fit(X, Y).predict_proba(X)
    models = {
        RecalibratedClassifierCV(GaussianNB(), ONE, cv): X,
        Recalibrator([TemperatureScaling()], cv): proba,
    }
    for model, features in models.items():
        with pytest.raises(ValueError, match=r"^cv is a .*, which splits by groups\. Pass groups"):
            model.fit(features, Y)
        with pytest.warns(UserWarning, match="groups holds 8 groups"):
            model.fit(features, Y, groups=np.arange(len(Y)) % 8)


@pytest.mark.filterwarnings("ignore:groups holds:UserWarning")
@pytest.mark.parametrize("n_groups", [3, 4, 7])
def test_folds_of_few_groups_are_refused_with_a_number_that_works(n_groups):
    p, groups = GaussianNB().fit(X, Y).predict_proba(X), np.arange(len(Y)) % n_groups
    model = Recalibrator([TemperatureScaling()], cv=5)
    with pytest.raises(ValueError, match="5 blocks need 10") as caught:
        model.fit(p, Y, groups=groups)
    most = re.findall(r"Pass at most (\d) folds, or finer groups\.$", str(caught.value))
    assert bool(most) == (n_groups > 3)
    for number in most:
        model.set_params(cv=int(number)).fit(p, Y, groups=groups)
    classifier = RecalibratedClassifierCV(GaussianNB(), ONE, cv=8)
    with pytest.raises(
        ValueError, match=r"(cannot split|leaves no sample).*Pass fewer folds or finer gr"
    ):
        classifier.fit(X, Y, groups=groups)
    classifier.set_params(cv=n_groups).fit(X, Y, groups=groups)


def test_last_digits_are_those_of_the_map_mixed_with_uniform_probabilities():
    X, y = load_iris(return_X_y=True)
    model = FrozenEstimator(GaussianNB().fit(X[::2], y[::2]))
    P, labels = model.predict_proba(X[1::2]), y[1::2]
    fitted = RecalibratedClassifierCV(model, TemperatureScaling()).fit(X[1::2], labels)
    expected = TemperatureScaling().fit(P, labels).predict_proba(P)
    n = len(labels)
    found = fitted.predict_proba(X[1::2])
    assert_allclose(found, (n * expected + 1 / 3) / (n + 1), rtol=1e-12)
    assert found.min() >= 1 / (3 * (n + 1))
    kept = RecalibratedClassifierCV(model, Identity()).fit(X[1::2], labels)
    assert_array_equal(kept.predict_proba(X[1::2]), P)


def test_logits_of_0_and_1_are_not_said_to_be_hard_predictions():
    z, y = np.tile([0.0, 1.0, 0.0, 1.0], 30), np.tile([0, 1, 1, 0], 30)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TemperatureScaling(from_logits=True).fit(np.c_[z, -z], y)
        Recalibrator(from_logits=True).fit(z, y)
        Recalibrator().fit(z, y)
    hard = ["are 0 or 1" in str(warning.message) for warning in caught]
    assert sum(hard) == 1
    assert hard[-1]


@pytest.mark.parametrize("rows", [np.arange(200), np.arange(0, 400, 3), np.arange(150, 400)])
@pytest.mark.parametrize("ensemble", [False, True])
def test_samples_of_weight_0_are_no_samples_wherever_they_stand(rows, ensemble):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 3)), np.arange(400) // 8
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
    weight = np.zeros(400)
    weight[rows] = 1
    for cv in (None, 3):
        model = RecalibratedClassifierCV(GaussianNB(), ONE, cv=cv, ensemble=ensemble)
        for name in ({}, {"groups": groups}):
            found = clone(model).fit(X, y, sample_weight=weight, **name).predict_proba(X)
            alone = {key: values[rows] for key, values in name.items()}
            expected = clone(model).fit(X[rows], y[rows], **alone).predict_proba(X)
            assert_allclose(found, expected, rtol=1e-6)


def test_a_map_that_does_harm_is_kept_from_it_as_the_warning_says():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 3000)
    y = (rng.random(3000) < p).astype(int)
    X = np.log(p / (1 - p))[:, None]

    class Known(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.column_stack([1 / (1 + np.exp(X[:, 0])), 1 / (1 + np.exp(-X[:, 0]))])

    bad = HistogramBinning(n_bins=2)
    with pytest.warns(UserWarning, match=r"or Recalibrator\(\[the map\], do_no_harm=True\)"):
        RecalibratedClassifierCV(Known(), bad).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = RecalibratedClassifierCV(Known(), Recalibrator([bad], do_no_harm=True)).fit(X, y)
    assert_allclose(kept.predict_proba(X), Known().fit(X, y).predict_proba(X), atol=1e-3)


def test_folds_without_weight_are_mended_as_the_message_says():
    X, y = made(200)
    weight = np.repeat([1.0, 0.0], 100)
    model = RecalibratedClassifierCV(GaussianNB(), ONE, cv=StratifiedKFold(5))
    with pytest.raises(ValueError, match="Leave out the samples of weight 0, or pass a number of"):
        model.fit(X, y, sample_weight=weight)
    left_out = model.fit(X[:100], y[:100]).predict_proba(X)
    by_number = model.set_params(cv=5).fit(X, y, sample_weight=weight).predict_proba(X)
    assert_allclose(by_number, left_out, rtol=1e-9)
