"""Scorers in scikit-learn's tools, and the columns that they hand to metrics."""

import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    PredefinedSplit,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skcal import metrics
from skcal.metrics import (
    expected_calibration_error,
    get_scorer,
    get_scorer_names,
    make_calibration_scorer,
    smooth_calibration_error,
)

NAMES = get_scorer_names()
BINARY = [name for name in NAMES if "binary" in name]
UNSAID = ["neg_integrated_calibration_index", "neg_maximum_mean_calibration_error"]
UNSAID += [
    f"neg_{kind}_calibration_error" for kind in ("expected", "kernel_density", "squared_kernel")
]
# The notion that a name promises.
PROMISED = {
    "canonical": "canonical",
    "classwise": "classwise",
    "top": "top-label",
    "binary": "binary",
}
NOTIONS = {name: PROMISED[name.split("_")[1]] for name in NAMES if name.split("_")[1] in PROMISED}
NOTIONS |= dict.fromkeys(UNSAID, "auto")
MULTICLASS = [name for name in NOTIONS if name not in BINARY]
TWO, THREE = np.array(["no", "yes"]), np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="session")
def problem():
    """Features and string labels of 2 or 3 classes."""

    def make(names):
        X, y = make_classification(
            180, n_informative=4, n_classes=len(names), flip_y=0.2, random_state=0
        )
        return X, names[y]

    return make


def by_hand(name, classes, proba, y, **options):
    """The score for a column per class; of two classes P(classes[1])."""
    metric = getattr(metrics, re.sub("neg_|binary_|canonical_|classwise_|top_label_", "", name))
    proba = proba[:, 1] if len(classes) == 2 else proba
    if "classwise" in name:
        options = {"average": "macro", **options}
    return -metric(y, proba, notion=NOTIONS[name], labels=classes, **options)


def sklearn_scorer(metric, **options):
    return make_scorer(metric, response_method="predict_proba", greater_is_better=False, **options)


def one_split(test):
    """Train on what is not in ``test``, once."""
    return PredefinedSplit(np.where(test, 0, -1))


def test_a_name_without_a_notion_is_the_metric_by_its_defaults():
    for name in set(NAMES) - {"neg_debiased_squared_calibration_error"}:
        assert hasattr(metrics, name.removeprefix("neg_")) == (not get_scorer(name)._kwargs)


@pytest.mark.parametrize("classes", [TWO, THREE])
def test_every_scorer_is_minus_its_metric_to_the_last_bit(problem, classes):
    X, y = problem(classes)
    fitted = GaussianNB().fit(X[::2], y[::2])
    X, y = X[1::2], y[1::2]
    proba = fitted.predict_proba(X)
    for name in NAMES:
        plain = name.removeprefix("neg_")
        if "risk_coverage" in name:
            correct, general = fitted.predict(X) == y, name.startswith("neg_generalized")
            value = metrics.area_under_risk_coverage(
                correct, proba.max(axis=1), generalized=general
            )
        elif plain == "debiased_squared_calibration_error":
            options = {"norm": 2, "debias": True, "root": False}
            value = metrics.expected_calibration_error(y, proba, labels=classes, **options)
        elif hasattr(metrics, plain):
            value = getattr(metrics, plain)(y, proba, labels=classes)
        elif name in NOTIONS and not (name in BINARY and len(classes) == 3):
            value = -by_hand(name, classes, proba, y)
        else:
            continue
        assert get_scorer(name)(fitted, X, y) == -value, name


# In scikit-learn's tools


@pytest.mark.parametrize(
    ("classes", "names"), [(TWO, NAMES), (THREE, [name for name in NAMES if name not in BINARY])]
)
def test_every_name_works_in_cross_validation(problem, classes, names):
    X, y = problem(classes)
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    scoring = {name: get_scorer(name) for name in names}
    options = {"return_estimator": True, "return_indices": True, "error_score": "raise"}
    results = cross_validate(pipeline, X, y, cv=3, scoring=scoring, **options)
    for k, test in enumerate(results["indices"]["test"]):
        proba = results["estimator"][k].predict_proba(X[test])
        for name in NOTIONS.keys() & scoring.keys():
            expected = by_hand(name, classes, proba, y[test])
            assert_allclose(results[f"test_{name}"][k], expected, rtol=1e-12)
    for name in names:
        assert np.isfinite(results[f"test_{name}"]).all()


def test_scorers_of_other_columns_do_not_disturb_each_other(problem):
    X, y = problem(TWO)
    model = GaussianNB().fit(X, y)
    name = "neg_binary_expected_calibration_error"
    other = sklearn_scorer(brier_score_loss, pos_label="no")
    alone = cross_validate(model, X, y, cv=3, scoring={name: get_scorer(name)})
    for scoring in ({"other": other, name: get_scorer(name)}, {name: get_scorer(name), "o": other}):
        together = cross_validate(model, X, y, cv=3, scoring=scoring)
        assert_allclose(together[f"test_{name}"], alone[f"test_{name}"], rtol=1e-12)


# The columns


@pytest.mark.parametrize("name", MULTICLASS[::3])
@pytest.mark.parametrize("lacking", ["test", "training"])
def test_folds_without_a_class_score_as_if_its_column_were_there(problem, name, lacking):
    X, y = problem(THREE)
    test = np.arange(len(y)) % 3 == 0
    test = test & (y != "bee") if lacking == "test" else test | (y == "bee")
    model = GaussianNB().fit(X[~test], y[~test])
    proba = np.zeros((np.count_nonzero(test), 3))
    proba[:, np.isin(THREE, model.classes_)] = model.predict_proba(X[test])
    [score] = cross_validate(
        GaussianNB(), X, y, cv=one_split(test), scoring=get_scorer(name), error_score="raise"
    )["test_score"]
    assert_allclose(score, by_hand(name, THREE, proba, y[test]), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:All predictions in")
@pytest.mark.parametrize("name", NOTIONS)
@pytest.mark.parametrize("known", TWO)
def test_of_two_classes_one_may_be_unknown(problem, name, known):
    X, y = problem(TWO)
    model = DummyClassifier().fit(X[y == known], y[y == known])
    proba = np.tile(known == TWO, (len(y), 1)).astype(float)
    assert_allclose(get_scorer(name)(model, X, y), by_hand(name, TWO, proba, y), rtol=1e-9)


class Turned(ClassifierMixin, BaseEstimator):
    """Naive Bayes whose classes_ are not sorted."""

    def fit(self, X, y):
        self.model_ = GaussianNB().fit(X, y)
        self.classes_ = np.roll(self.model_.classes_, 1)
        return self

    def predict_proba(self, X):
        return np.roll(self.model_.predict_proba(X), 1, axis=1)


@pytest.mark.parametrize(
    ("name", "classes"), [*((n, TWO) for n in NOTIONS), *((n, THREE) for n in MULTICLASS)]
)
def test_columns_are_those_of_classes_(problem, name, classes):
    X, y = problem(classes)
    model = Turned().fit(X, y)
    turned = [*classes[-1:], *classes[:-1]]
    expected = by_hand(name, turned, model.predict_proba(X), y)
    assert_allclose(get_scorer(name)(model, X, y), expected, rtol=1e-12)


@pytest.mark.parametrize("pos_label", TWO)
def test_pos_label_chooses_the_column_of_two(problem, pos_label):
    X, y = problem(TWO)
    model = GaussianNB().fit(X, y)
    options = {"notion": "binary", "pos_label": pos_label}
    own = make_calibration_scorer(expected_calibration_error, **options)
    column = model.predict_proba(X)[:, list(TWO).index(pos_label)]
    assert_allclose(own(model, X, y), -expected_calibration_error(y, column, **options), rtol=1e-12)
    theirs = sklearn_scorer(expected_calibration_error, **options)
    assert_allclose(theirs(model, X, y), own(model, X, y), rtol=1e-12)


# Weights and metadata


@pytest.fixture
def weight(rng):
    return rng.uniform(0.2, 2, 180)


@pytest.mark.parametrize("name", MULTICLASS[::4])
def test_weights_are_handed_on(problem, weight, name):
    X, y = problem(THREE)
    model = GaussianNB().fit(X, y)
    expected = by_hand(name, THREE, model.predict_proba(X), y, sample_weight=weight)
    scorer = get_scorer(name)
    assert_allclose(scorer(model, X, y, sample_weight=weight), expected, rtol=1e-12)
    assert scorer(model, X, y) != expected
    test = np.arange(len(y)) % 2 == 0
    with config_context(enable_metadata_routing=True):
        model = GaussianNB().set_fit_request(sample_weight=False)
        scorer = get_scorer(name).set_score_request(sample_weight=True)
        options = {"cv": one_split(test), "return_estimator": True, "scoring": scorer}
        result = cross_validate(model, X, y, params={"sample_weight": weight}, **options)
        proba = result["estimator"][0].predict_proba(X[test])
        expected = by_hand(name, THREE, proba, y[test], sample_weight=weight[test])
        assert_allclose(result["test_score"], [expected], rtol=1e-12)
        fresh = get_scorer(name)  # knows nothing of the request
        result = cross_validate(model, X, y, params={}, **options | {"scoring": fresh})
        assert_allclose(result["test_score"], [by_hand(name, THREE, proba, y[test])], rtol=1e-12)


def test_options_given_twice_warn_as_in_scikit_learn(problem, weight):
    X, y = problem(THREE)
    model = GaussianNB().fit(X, y)
    own = make_calibration_scorer(expected_calibration_error, sample_weight=np.ones(180))
    with pytest.warns(UserWarning, match="Overlapping parameters are: {'sample_weight'}"):
        score = own(model, X, y, sample_weight=weight)
    scorer = make_calibration_scorer(expected_calibration_error)
    assert score == scorer(model, X, y, sample_weight=weight)
    with (
        config_context(enable_metadata_routing=True),
        pytest.warns(UserWarning, match="Overlapping parameters are: {'sample_weight'}"),
    ):
        own.set_score_request(sample_weight=True)


# Scorers as objects


@pytest.mark.parametrize("name", NAMES[::4])
def test_scorers_are_pickled_and_cloned(problem, name):
    X, y = problem(TWO)
    model, scorer = GaussianNB().fit(X, y), get_scorer(name)
    search = clone(GridSearchCV(GaussianNB(), {}, scoring=scorer))
    for copy in (pickle.loads(pickle.dumps(scorer)), search.scoring):
        assert copy is not scorer
        assert repr(copy) == repr(scorer)
        assert copy(model, X, y) == scorer(model, X, y)


def test_repr_names_the_metric_and_its_options():
    scorer = make_calibration_scorer(smooth_calibration_error, notion="classwise")
    text = "make_scorer(smooth_calibration_error, greater_is_better=False, response_method="
    assert repr(scorer) == f"{text}'predict_proba', notion=classwise)"


def test_greater_is_better_keeps_the_sign(problem):
    X, y = problem(TWO)
    model = GaussianNB().fit(X, y)
    error = make_calibration_scorer(expected_calibration_error, greater_is_better=True)
    assert error(model, X, y) == -get_scorer("neg_expected_calibration_error")(model, X, y) > 0


# Bad input


@pytest.mark.parametrize("name", ["expected_calibration_error", "neg_brier", "", "neg_", None])
def test_unknown_names_raise_and_near_ones_are_answered_with_the_right_one(name):
    hint = "Did you mean 'neg_expected_calibration_error'" if name and "expected" in name else "Use"
    match = (
        rf"is not a scorer of skcal \(scikit-learn's are in sklearn.metrics\)\. {hint}.*neg_smooth"
    )
    with pytest.raises(ValueError, match=match):
        get_scorer(name)


def test_what_cannot_be_scored_raises(problem):
    X, y = problem(TWO)
    scorer = get_scorer("neg_expected_calibration_error")
    with pytest.raises(AttributeError, match=r"LinearSVC has no predict_proba.*CalibratedClass"):
        scorer(LinearSVC().fit(X, y), X, y)
    with pytest.raises(NotFittedError):
        scorer(GaussianNB(), X, y)


@pytest.mark.parametrize(
    ("metric", "options", "error", "message"),
    [
        (None, {}, ValueError, "metric=None is not callable"),
        (expected_calibration_error, {"labels": TWO}, TypeError, "Leave labels= out"),
        (expected_calibration_error, {"bins": 5}, TypeError, "metric=expected_cal.*'bins'"),
        (expected_calibration_error, {"n_bins": "many"}, ValueError, "'n_bins' .* 'many'"),
        (accuracy_score, {}, TypeError, "metric=accuracy_score .*'labels'.*must take labels"),
        (lambda y, p: 0.0, {}, TypeError, "'labels'.*must take labels"),
        (smooth_calibration_error, {"greater_is_better": "no"}, TypeError, "is_better='no'"),
        (smooth_calibration_error, {"from_logits": True}, TypeError, "Leave from_logits= out"),
    ],
)
def test_what_no_call_could_score_is_refused_when_made(metric, options, error, message):
    with pytest.raises(error, match=message):
        make_calibration_scorer(metric, **options)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["0", "1", "2"], r"y_true holds '0', classes_ of the estimator 0: labels of another type"),
        ([0.5, 0.25, 1], r"Unknown label type: continuous\. y_true holds 0\.5"),
        (None, "y_true is None"),
        ([0, None, 1], "y_true row 60 is missing"),
        (np.eye(3), "y_true should be a 1d array"),
    ],
)
def test_labels_of_another_kind_are_named(problem, labels, message):
    X, y = problem(THREE)
    model = GaussianNB().fit(X, np.searchsorted(THREE, y))
    y_true = labels if labels is None else np.array(labels, dtype=object).repeat(60, axis=0)
    with pytest.raises(ValueError, match=message):
        get_scorer("neg_expected_calibration_error")(model, X, y_true)


@pytest.mark.parametrize(
    ("metric", "options", "kind"),
    [
        (metrics.score_decomposition, {}, "ScoreDecomposition"),
        (expected_calibration_error, {"notion": "classwise", "average": None}, "ndarray"),
    ],
)
def test_what_is_no_number_is_named(problem, metric, options, kind):
    X, y = problem(THREE)
    scorer = make_calibration_scorer(metric, **options)
    with pytest.raises(TypeError, match=f"{metric.__name__} returns {kind}, not a number"):
        scorer(GaussianNB().fit(X, y), X, y)


class Counted(GaussianNB):
    """Naive Bayes that counts its predictions."""

    calls = 0

    def predict_proba(self, X):
        type(self).calls += 1
        return super().predict_proba(X)


@pytest.mark.parametrize("classes", [TWO, THREE])
def test_scorers_of_one_run_share_predictions(problem, classes):
    X, y = problem(classes)
    names = ["neg_expected_calibration_error", "neg_calibration_error"]
    scoring = {name: get_scorer(name) for name in names}
    Counted.calls = 0
    together = cross_validate(Counted(), X, y, cv=2, scoring=scoring)
    assert Counted.calls == 2
    for name in names:
        alone = cross_val_score(Counted(), X, y, cv=2, scoring=scoring[name])
        assert_allclose(together[f"test_{name}"], alone, rtol=1e-12)


def test_a_constant_wins_by_most_calibration_errors_but_not_by_a_proper_score():
    """As the docstring of ``get_scorer`` says."""
    X, y = load_breast_cancer(return_X_y=True)
    models = DummyClassifier(), make_pipeline(StandardScaler(), LogisticRegression())
    scoring = {name: get_scorer(name) for name in NAMES}
    scoring |= {name: name for name in ("neg_log_loss", "neg_brier_score")}
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    constant, logistic = (cross_validate(model, X, y, cv=cv, scoring=scoring) for model in models)
    wins = {
        name: constant[f"test_{name}"].mean() > logistic[f"test_{name}"].mean() for name in scoring
    }
    assert not wins.pop("neg_log_loss")
    assert not wins.pop("neg_brier_score")
    assert not wins.pop("neg_refinement_loss")
    assert not wins.pop("neg_brier_refinement_loss")
    assert (len(wins), sum(wins.values())) == (21, 17)
