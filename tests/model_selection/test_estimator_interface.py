"""CalibrationErrorEstimator inside scikit-learn, and its words about bad input."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.ensemble import RandomForestClassifier, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.fixes import parse_version

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    PlugIn,
    TemperatureScaling,
    TwoStepKernelRidge,
)
from skcal.model_selection import ClassifierProbabilities

FUNCTION = TwoStepKernelRidge(1e-3)
SPLITS = list(KFold(3).split(np.zeros(300)))


@pytest.fixture
def weight(rng):
    return rng.choice([0.0, 0.5, 1.0, 3.0], size=300)


@pytest.fixture(scope="module")
def raw():
    """Samples with three features, labels in three classes, and a classifier fitted on others."""
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=450)
    X = rng.normal(size=(450, 3)) + 1.5 * np.eye(3)[y]
    X = np.hstack([X, X[:, :1]])  # a repeated feature makes naive Bayes overconfident
    return X[150:], y[150:], GaussianNB().fit(X[:150], y[:150])


def test_nested_parameters_reach_the_function(data):
    estimator = CalibrationErrorEstimator(PlugIn(TemperatureScaling()), notion="canonical")
    estimator.set_params(function__estimator__max_temperature=1.01, notion="confidence").fit(*data)
    assert_allclose(estimator.functions_[0].estimator_.temperature_, 1.01)
    assert estimator.get_params()["function__estimator__max_temperature"] == 1.01


def test_pipeline_runs_from_raw_samples(raw):
    X, y, classifier = raw
    P = classifier.predict_proba(X)
    probabilities = ClassifierProbabilities(FrozenEstimator(classifier))
    pipeline = make_pipeline(probabilities, CalibrationErrorEstimator(FUNCTION, notion="canonical"))
    pipeline.fit(X[:200], y[:200])
    estimator = CalibrationErrorEstimator(FUNCTION, notion="canonical").fit(P[:200], y[:200])
    assert_array_equal(pipeline.predict(X[200:]), estimator.predict(P[200:]))
    assert pipeline.score(X[200:], y[200:]) == estimator.score(P[200:], y[200:])
    scores = cross_validate(pipeline, X, y, cv=SPLITS, error_score="raise")["test_score"]
    other = cross_validate(
        CalibrationErrorEstimator(FUNCTION, notion="canonical"), P, y, cv=SPLITS
    )["test_score"]
    assert_allclose(scores, other, rtol=1e-12)  # folds of P differ in memory layout


def test_classifier_probabilities_leaves_a_frozen_classifier_and_fits_another(raw):
    X, y, classifier = raw
    names = np.array(["c", "a", "b"])[y]
    frozen = ClassifierProbabilities(FrozenEstimator(classifier)).fit(X, names)
    assert_array_equal(frozen.transform(X), classifier.predict_proba(X))
    fitted = ClassifierProbabilities(GaussianNB()).fit(X, names)
    assert_array_equal(fitted.transform(X), GaussianNB().fit(X, names).predict_proba(X))
    assert_array_equal(fitted.get_feature_names_out(), ["a", "b", "c"])
    assert_array_equal(fitted.classes_, ["a", "b", "c"])


def routed(estimator):
    return estimator.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)


def weighted_scores(P, y, weight, function):
    estimators = [
        CalibrationErrorEstimator(function, notion="canonical").fit(P[a], y[a], weight[a])
        for a, _ in SPLITS
    ]
    return [
        estimator.score(P[b], y[b], weight[b])
        for estimator, (_, b) in zip(estimators, SPLITS, strict=True)
    ]


def test_routed_weights_reach_fit_and_score_through_grid_search(data, weight):
    P, y = data
    grid = {"function": [Binning(3), TwoStepKernelRidge(1e-3)]}
    with config_context(enable_metadata_routing=True):
        estimator = routed(CalibrationErrorEstimator(notion="canonical"))
        search = GridSearchCV(estimator, grid, cv=SPLITS).fit(P, y, sample_weight=weight)
    for setting, function in enumerate(grid["function"]):
        scores = [search.cv_results_[f"split{k}_test_score"][setting] for k in range(3)]
        assert_allclose(scores, weighted_scores(P, y, weight, function), rtol=1e-12)


@pytest.mark.parametrize("estimator", [CalibrationErrorEstimator(), CalibrationErrorSearchCV()])
def test_weights_and_groups_of_fit_are_the_only_metadata(estimator):
    with config_context(enable_metadata_routing=True):
        requests = estimator.get_metadata_routing()
    names = {name: set(getattr(requests, name).requests) for name in ("fit", "predict", "score")}
    fit = {"sample_weight", "groups"}
    assert names == {"fit": fit, "predict": set(), "score": {"sample_weight"}}


def routed_pipeline(classifier):
    probabilities = ClassifierProbabilities(FrozenEstimator(classifier))
    return make_pipeline(
        probabilities, routed(CalibrationErrorEstimator(FUNCTION, notion="canonical"))
    )


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="earlier versions ask for a score request of Pipeline, which has none",
)
def test_routed_weights_reach_a_pipeline_within_cross_validation(raw, weight):
    X, y, classifier = raw
    grid = {"calibrationerrorestimator__function__alpha": [1e-3]}
    with config_context(enable_metadata_routing=True):
        pipeline = routed_pipeline(classifier)
        params = {"sample_weight": weight}
        cross = cross_validate(pipeline, X, y, cv=SPLITS, params=params, error_score="raise")
        search = GridSearchCV(pipeline, grid, cv=SPLITS).fit(X, y, **params)
    expected = weighted_scores(classifier.predict_proba(X), y, weight, FUNCTION)
    assert_allclose(cross["test_score"], expected, rtol=1e-12)
    assert_allclose(search.cv_results_["mean_test_score"], [np.mean(expected)], rtol=1e-12)


@pytest.mark.parametrize("method", ["predict", "squared_error", "score", "risk", "one_step"])
def test_methods_before_fit_say_so(data, method):
    arguments = data if method in ("score", "risk", "one_step") else data[:1]
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(CalibrationErrorEstimator(FUNCTION, notion="canonical"), method)(*arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda P, y: (P[:, :3] / P[:, :3].sum(axis=1, keepdims=True), y), "X has 3 features"),
        (lambda P, y: (P[:, 0], y), "fitted on 4 columns"),
        (lambda P, y: (P, np.where(y == 1, 7, y)), r"row \d+ is .*7.*, which is not one of"),
        (lambda P, y: (P, y[1:]), "inconsistent numbers of samples"),
        (lambda P, y: (P[:1], y[:1]), "at least 2 samples"),
        (lambda P, y: (P, y, np.ones(299)), r"sample_weight.shape == \(299,\)"),
        (lambda P, y: (P, y, np.eye(300)[0]), "at least 2 samples with positive sample_weight"),
    ],
)
def test_bad_evaluation_samples_are_named(data, change, message):
    estimator = CalibrationErrorEstimator(FUNCTION, notion="canonical").fit(*data)
    with pytest.raises(ValueError, match=message):
        estimator.score(*change(*data))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"notion": "calibrated"}, "notion='calibrated' is unknown. Use one of 'canonical'"),
        ({"notion": "top-4"}, "K must be from 1 to 3"),
        ({"notion": "top-0"}, "K must be from 1 to 3"),
        ({"notion": "binary"}, "needs 1-D predictions or two columns, not 4"),
        ({"notion": lambda proba: proba}, "lens returned float64 of shape .300, 4."),
        ({"notion": lambda proba: np.zeros(4, int)}, r"lens returned int64 of shape \(4,\)"),
        ({"labels": [0, 1, 2]}, "labels holds 3 distinct classes, X has 4 columns"),
        ({"labels": [0, 1, 2, 2]}, "labels holds 3 distinct classes"),
        ({"labels": [0, 1, 2, 9]}, "row .* is .*3.*, which is not one of the classes"),
    ],
)
def test_bad_parameters_are_named(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        CalibrationErrorEstimator(**parameters).fit(*data)


@pytest.mark.parametrize(
    ("function", "name", "meant"),
    [
        (Binning(), "n_bins", "function__n_bins"),
        (PlugIn(TemperatureScaling()), "max_temperature", "function__estimator__max_temperature"),
        (
            PlugIn(TemperatureScaling()),
            "function__max_temperature",
            "function__estimator__max_temperature",
        ),
        (
            PlugIn(VotingRegressor([("lasso", Lasso()), ("ridge", Ridge())])),
            "alpha",
            "function__estimator__lasso__alpha or function__estimator__ridge__alpha",
        ),
    ],
)
def test_a_parameter_of_the_function_is_told_its_full_name(data, function, name, meant):
    estimator = CalibrationErrorEstimator(function, "confidence")
    with pytest.raises(ValueError, match=rf"Write {meant} for {name}\.$"):
        GridSearchCV(estimator, {name: [7]}).fit(*data)
    for full in meant.split(" or "):
        assert estimator.set_params(**{full: 7}).get_params()[full] == 7


def test_a_parameter_that_no_function_has_keeps_the_message_of_scikit_learn():
    with pytest.raises(ValueError, match=r"Invalid parameter 'bins' .* \['[^\]]*'\]\.$"):
        CalibrationErrorEstimator(Binning(), notion="canonical").set_params(bins=3)


@pytest.mark.parametrize("function", [Binning, LogisticRegression(), "binning"])
def test_what_is_no_function_is_told_how_to_become_one(data, function):
    with pytest.raises(TypeError, match=r"^function is .*skcal\.Binning.*skcal\.PlugIn"):
        CalibrationErrorEstimator(function, notion="canonical").fit(*data)


class OfTag(LogisticRegression):
    """A classifier that says whether it takes sparse features."""

    def __init__(self, sparse=True):
        super().__init__()
        self.sparse = sparse

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.sparse
        return tags


def test_probabilities_of_a_classifier_tell_the_columns_of_its_features():
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(30, 4))
    y = np.arange(30) % 2
    fitted = ClassifierProbabilities(LogisticRegression()).fit(X, y)
    assert fitted.n_features_in_ == 4
    fitted.fit(pd.DataFrame(X, columns=list("abcd")), y)
    assert fitted.feature_names_in_.tolist() == list("abcd")
    assert not hasattr(fitted.fit(X, y), "feature_names_in_")
    for classifier in (RandomForestClassifier(), LogisticRegression(), GaussianNB()):
        own = get_tags(classifier).input_tags.sparse
        assert get_tags(ClassifierProbabilities(classifier)).input_tags.sparse == own
    for sparse in (True, False):  # whatever the tags of scikit-learn's own are, which change
        classifier = OfTag(sparse)
        assert get_tags(ClassifierProbabilities(classifier)).input_tags.sparse is sparse
