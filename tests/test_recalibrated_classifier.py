"""Classifiers with their recalibrators."""

import pickle

import numpy as np
import pytest
import scipy
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, PredefinedSplit, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skcal import RecalibratedClassifierCV, Recalibrator, TemperatureScaling
from skcal.recalibration import VectorScaling

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
SPARSE = scipy.sparse.csr_array(X)
NAMED = "X row 3, column 1 "


def with_entry(value):
    changed = X.astype(type(value) if isinstance(value, float) else object)
    changed[3, 1] = value
    return changed


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (
            with_entry(np.nan),
            Y,
            "Input X contains NaN: X row 3, column 1.*in a pipeline before Gau",
        ),
        (with_entry("a"), Y, f"{NAMED}holds 'a', not a number. Encode"),
        (X[:, 0], Y, r"1D array instead: X has shape \(60,\). Reshape"),
        (X.astype(complex), Y, "X holds complex numbers"),
        (SPARSE, Y, "X, y or fit_params are refused by GaussianNB: Sparse"),
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
    ids=str,
)
def test_what_a_classifier_refuses_is_named(X, y, message):
    model = RecalibratedClassifierCV(GaussianNB(), TemperatureScaling(), cv=2)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y)
    if y is Y and X is not None and X.shape[0] == 60:
        model.fit(*made(60))
        with pytest.raises((ValueError, TypeError), match=message.replace("60", "5")):
            model.predict_proba(X[:5])


TEXTS = [f"{'good' if label else 'bad'} day {row}" for row, label in enumerate(Y)]
UNREADABLE = np.array([text.encode() + b"\xff" for text in TEXTS], dtype=object)


@pytest.mark.parametrize(
    ("classifier", "X", "message"),
    [
        (LogisticRegression(C=-1), X, "^The 'C' parameter of LogisticRegression must be"),
        (make_pipeline(CountVectorizer(min_df=99), GaussianNB()), TEXTS, "refused by Pipe.*min_df"),
        (make_pipeline(CountVectorizer(), GaussianNB()), UNREADABLE, "refused by Pipe.*0xff"),
        (
            make_pipeline(
                ColumnTransformer([("", OneHotEncoder(sparse_output=False), [1])]), GaussianNB()
            ),
            [[0, f"only {row}"] for row in range(60)],
            "refused by Pipeline: Found unknown categories",
        ),
        (
            make_pipeline(StandardScaler(), GaussianNB()),
            with_entry(np.nan),
            "NaN: X row 3, column 1",
        ),
    ],
    ids=["parameter", "texts", "bytes", "categories", "numbers"],
)
def test_entries_that_a_classifier_takes_are_not_blamed(classifier, X, message):
    with pytest.raises(ValueError, match=message):
        RecalibratedClassifierCV(classifier, TemperatureScaling(), cv=2).fit(X, Y)


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


@pytest.mark.parametrize("classifier", [GaussianNB(), LinearSVC()], ids=["proba", "logits"])
def test_a_fold_may_lack_a_class_and_a_prediction_does_not_depend_on_its_batch(classifier):
    X, y = made(n_classes=3)
    test_fold = np.where(y == 2, 0, np.arange(len(y)) % 3)
    scaling = VectorScaling()  # no temperature is better than the logits of LinearSVC
    fitted = RecalibratedClassifierCV(classifier, scaling, PredefinedSplit(test_fold)).fit(X, y)
    whole = fitted.predict_proba(X)
    assert whole.shape == (len(X), 3)
    assert np.isfinite(whole).all()
    assert_allclose(np.vstack([fitted.predict_proba(row[None]) for row in X[:20]]), whole[:20])


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


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_huge_and_tiny_weights_are_rescaled_for_the_classifier_too(scale):
    X, y = made(300)
    fitted = [
        RecalibratedClassifierCV(DecisionTreeClassifier(max_depth=3, random_state=0), ONE, cv=3)
        .fit(X, y, sample_weight=np.where(y == 0, 1.0, 0.25) * factor)
        .predict_proba(X)
        for factor in (1, scale)
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
