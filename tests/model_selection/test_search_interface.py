"""CalibrationErrorSearchCV inside scikit-learn, and what it says before the long work."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_validate,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from skcal import (
    Binning,
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    PlugIn,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)
from skcal.recalibration import LogProbabilities, SplineScaling

CANDIDATES = [
    (Zero(), {}),
    (TwoStepKernelRidge(), {"alpha": [1e-3, 1e-1]}),
    (PlugIn(TemperatureScaling()), {}),
]
OUTER = [(np.arange(200), np.arange(200, 300))]
SPLITS = list(KFold(2).split(np.zeros(300)))


class Watched(BaseEstimator, RegressorMixin):
    """A regressor that notes how many samples each of its fits has seen."""

    sizes: list = []

    def fit(self, X, y, sample_weight=None):
        self.sizes.append(len(X))
        self.is_fitted_ = True
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.fixture
def watched():
    """A candidate to put first: what is said late, is said after it was fitted on a fold."""
    Watched.sizes.clear()
    return PlugIn(Watched())


def make(candidates=CANDIDATES, notion="confidence", **parameters):
    parameters = {"cv": KFold(2), "outer_cv": OUTER} | parameters
    return CalibrationErrorSearchCV(candidates, notion, **parameters)


def test_cross_validate_and_grid_search_score_by_minus_the_risk(data):
    P, y = data
    search = make([Zero(), Binning(3)], outer_cv=ShuffleSplit(1, test_size=0.2), random_state=0)
    by_hand = [clone(search).fit(P[a], y[a]).score(P[b], y[b]) for a, b in SPLITS]
    cross = cross_validate(search, P, y, cv=SPLITS, error_score="raise")
    assert_array_equal(cross["test_score"], by_hand)
    grid = GridSearchCV(search, {"cv": [KFold(2), KFold(3)]}, cv=SPLITS).fit(P, y)
    assert_allclose(grid.cv_results_["mean_test_score"][0], np.mean(by_hand), rtol=1e-14)


@pytest.mark.parametrize(
    "method", ["predict", "score", "summary", "lower_confidence_bound", "confidence_interval"]
)
def test_methods_before_fit_say_so(data, method):
    arguments = {"predict": data[:1], "score": data}.get(method, ())
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(make(), method)(*arguments)


def nan_kernel(X, Z):
    return np.full((len(X), len(Z)), np.nan)


@pytest.mark.parametrize(
    ("notion", "candidate", "message"),
    [
        ("confidence", (Binning(), {"bins": [3]}), "Invalid parameter 'bins'"),
        (
            "confidence",
            (Binning(), {"function__n_bins": [5]}),
            r"Write n_bins for function__n_bins\.$",
        ),
        (
            "confidence",
            (PlugIn(SplineScaling()), [{"target": ["outcome"]}, {"C": [1.0]}]),
            r"Write estimator__C for C\.$",
        ),
        (
            "canonical",
            (
                PlugIn(make_pipeline(LogProbabilities(), LogisticRegression())),
                {"estimator__C": [1]},
            ),
            r"Write estimator__logisticregression__C for estimator__C\.$",
        ),
        ("confidence", (Binning(), {"n_bins": [5, 0]}), "'n_bins' parameter"),
        ("confidence", Binning(strategy="median-variance"), "'median-variance' does not fit 1 "),
        ("canonical", Binning(strategy="quantile"), "'quantile' does not fit 4 feature"),
        ("top-2", Binning(strategy="sweep"), "'sweep' does not fit 3 feature"),
        ("confidence", (TwoStepKernelRidge(), {"alpha": [1e-3, 0.0]}), "'alpha' param.*Got 0.0"),
        ("canonical", (KroneckerKernelRidge(), {"alpha": [-1.0]}), "'alpha' param.*Got -1.0"),
        ("canonical", (DirichletKernelDensity(), {"bandwidth": [0]}), "'bandwidth' parameter"),
        ("canonical", TwoStepKernelRidge(kernel=nan_kernel), "The kernel returned nan"),
        ("top-label", KroneckerKernelRidge(kernel=nan_kernel), "The kernel returned nan"),
        ("classwise", TwoStepKernelRidge(kernel=lambda X, Z: X), "The kernel returned shape"),
        ("canonical", PlugIn(LogisticRegression(C=-1)), "'C' parameter"),
    ],
)
def test_a_candidate_that_cannot_work_is_named_before_the_long_work(
    data, watched, notion, candidate, message
):
    with pytest.raises(ValueError, match=rf"(?s)candidates\[1\], \w+.*: .*{message}"):
        make([watched, candidate], notion).fit(*data)
    assert max(Watched.sizes, default=0) <= 30  # a trial, not a fold of 100


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([], "candidates is empty"),
        ("gruber", "candidates='gruber' is unknown. Use one of 'recommended', 'gruber-bach'"),
        ([(Zero(), {}), 3], r"candidates\[1\] is 3. Pass \(function, param_grid\)"),
        ([(Zero(), {}, {})], r"candidates\[0\] is "),
        ([LogisticRegression()], r"candidates\[0\] is LogisticRegression\(\)"),
        ([(LogisticRegression(), {})], r"candidates\[0\] is "),
        ([(Zero, {})], r"candidates\[0\] is "),
        ({"function": Zero()}, "'candidates' parameter"),
    ],
)
def test_what_is_no_list_of_candidates_is_refused(data, candidates, message):
    with pytest.raises(ValueError, match=message):
        make(candidates).fit(*data)


def test_weights_that_a_candidate_cannot_take_are_refused_before_the_long_work(data, watched):
    candidates = [watched, PlugIn(KNeighborsRegressor())]
    with pytest.raises(ValueError, match=r"KNeighborsRegressor.fit does not take it"):
        make(candidates).fit(*data, sample_weight=np.linspace(1, 2, 300))
    assert max(Watched.sizes, default=0) <= 30


def zeros(*ranges):
    weight = np.ones(300)
    for start, stop in ranges:
        weight[start:stop] = 0
    return weight


@pytest.mark.parametrize(
    ("n_samples", "parameters", "weight", "message"),
    [
        (
            8,
            {"cv": 10, "outer_cv": ShuffleSplit(1, test_size=0.2)},
            None,
            r"cv cannot split 6 samples\. Pass fewer folds",
        ),
        (3, {"cv": 2, "outer_cv": 4}, None, r"outer_cv cannot split 3 samples\. Pass"),
        (8, {"cv": 10, "outer_cv": None}, None, r"cv cannot split 8 samples\. Pass fewer folds"),
        (7, {"cv": 4, "outer_cv": None}, None, r"cv leaves 1 validation sample\(s\) in fold 2"),
        (5, {"cv": 3, "outer_cv": None}, None, r"cv leaves 1 training sample\(s\) in fold 0"),
        (300, {"cv": 2, "outer_cv": None}, None, "cv=2 makes 2 blocks.* Pass cv=3 or more"),
        (300, {"outer_cv": None}, None, r"makes 2 blocks.* Pass cv=3 or more, or outer_cv"),
        (
            300,
            {"cv": ShuffleSplit(3, random_state=0), "outer_cv": None},
            None,
            r"cv validates sample \d+ \d times\. .*otherwise pass outer_cv",
        ),
        (1, {"outer_cv": None}, None, "n_samples"),
        (300, {"cv": 1}, None, "'cv' parameter"),
        (300, {}, zeros((0, 100)), r"cv leaves 0 validation sample\(s\) in fold 0"),
        (300, {}, zeros((100, 199)), r"cv leaves 1 training sample\(s\) in fold 0"),
        (300, {}, zeros((200, 300)), "outer_cv leaves 0 test sample"),
        (300, {"outer_cv": [(np.arange(200), np.arange(0))]}, None, "outer_cv leaves no sample in"),
        (300, {}, np.zeros(300), "all zero"),
        (300, {}, np.ones(299), r"sample_weight.shape == \(299,\)"),
    ],
)
def test_too_few_samples_are_said_before_the_long_work(
    data, watched, n_samples, parameters, weight, message
):
    P, y = data[0][:n_samples], np.arange(n_samples) % 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of absent classes
        with pytest.raises(ValueError, match=message):
            make([watched], **parameters).fit(P, y, sample_weight=weight)
    assert not Watched.sizes


@pytest.mark.parametrize("notion", ["canonical", "classwise"])
def test_a_class_absent_from_a_training_fold_is_warned_of(data, notion):
    P, y = data[0], np.arange(300) % 3
    y[[0, 1]] = 3  # of which KFold(2) holds out both at once
    with pytest.warns(UserWarning, match="Class 3 does not occur in the training part of fold 0"):
        make(notion=notion).fit(P, y)
    stratified = make(notion=notion, cv=StratifiedKFold(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stratified.fit(P, y)


def test_a_class_of_weight_0_in_a_training_fold_counts_as_absent(data):
    P, y = data[0], np.arange(300) % 4
    weight = np.ones(300)
    weight[100:200][y[100:200] == 3] = 0
    with pytest.warns(UserWarning, match="Class 3 does not occur in the training part of fold 0"):
        make(notion="canonical").fit(P, y, weight)


@pytest.mark.parametrize("notion", ["canonical", "top-label", "top-2"])
def test_candidates_that_need_outcomes_find_them_under_every_notion(data, notion):
    plug_ins = [PlugIn(LogisticRegression()), PlugIn(TemperatureScaling())]
    candidates = [DirichletKernelDensity(), Binning(3, debias="labels"), *plug_ins]
    search = make(candidates, notion).fit(*data)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
