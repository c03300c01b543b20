"""CalibrationErrorSearchCV chooses as a plain grid search over the same folds does."""

from functools import cache, partial

import numpy as np
import pytest
from notion_cases import superclass
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    PlugIn,
    Stacking,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)
from skcal.functions import kernel_ridge
from skcal.model_selection.plan import make_plans
from skcal.recalibration import LogProbabilities, MatrixScaling
from skcal.sample import read_sample

TRAIN, TEST = np.arange(240), np.arange(240, 300)
OUTER = [(TRAIN, TEST)]
BLOCKS = {"cv": 3, "outer_cv": None, "random_state": 0}
CANDIDATES = [
    (Zero(), {}),
    (KroneckerKernelRidge(tol=1e-14), {"alpha": [1e-4, 1e-2]}),  # these two share a factor
    (TwoStepKernelRidge(tol=1e-14), {"alpha": [1e-2, 1.0]}),
    (TwoStepKernelRidge(), {"alpha": [1e-2], "gamma": [0.5, 4.0]}),  # and this has two
    (Binning(), {"n_bins": [3, 6]}),
    (DirichletKernelDensity(0.05), {}),
    (PlugIn(TemperatureScaling()), {}),
]


LINEAR = PlugIn(make_pipeline(LogProbabilities(), Ridge()))


@pytest.fixture(scope="module")
def data(tempered):
    """300 samples."""
    return tempered[0][:300], tempered[1][:300]


def searched(data, candidates=CANDIDATES, notion="confidence", weight=None, **parameters):
    parameters = {"cv": KFold(3), "outer_cv": OUTER} | parameters
    search = CalibrationErrorSearchCV(candidates, notion, **parameters)
    return search.fit(*data, sample_weight=weight)


@pytest.fixture(scope="module")
def found(data):
    """The search of CANDIDATES under a notion, made once."""
    return cache(lambda notion: searched(data, notion=notion))


def plain_grid_search(P, y, candidates, notion, splits, weight=None):
    grid = [
        {"function": [function]} | {f"function__{name}": values for name, values in grid.items()}
        for function, grid in candidates
    ]
    with config_context(enable_metadata_routing=weight is not None):
        estimator = CalibrationErrorEstimator(notion=notion)
        params = {}
        if weight is not None:
            estimator.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
            params["sample_weight"] = weight
        return GridSearchCV(estimator, grid, cv=splits, refit=False).fit(P, y, **params)


@pytest.fixture(scope="module", autouse=True)
def whole_rank():
    """Let ridge fits that share a basis have the rank of those of GridSearchCV at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_ridge, "_FIRST_RANK", 300)
        yield


# A vector, and a problem a predicted class; with weights a problem a class.
every_kind = pytest.mark.parametrize("notion", ["canonical", "top-label"])


@every_kind
def test_cv_results_equal_those_of_a_plain_grid_search(found, data, notion):
    P, y = data
    plain = plain_grid_search(P[TRAIN], y[TRAIN], CANDIDATES, notion, KFold(3))
    check_equal_results(found(notion), plain)
    names = [family.name for family in found(notion).families_]
    assert names[1:4] == ["KroneckerKernelRidge", "TwoStepKernelRidge", "TwoStepKernelRidge 2"]


def features_and_residuals(P, y, notion):
    """As the page on GridSearchCV writes them."""
    if notion == "confidence":
        features = P.max(axis=1, keepdims=True)
        return features, (P.argmax(axis=1) == y) - features[:, 0]
    if notion == "canonical":
        return P, np.eye(P.shape[1])[y] - P
    return P[:, 1:], (y == 1) - P[:, 1]


@pytest.mark.filterwarnings("ignore:The squared calibration error is estimated as -")
@pytest.mark.parametrize("notion", ["confidence", "canonical", "binary"])
def test_a_grid_search_over_features_and_residuals_chooses_and_estimates_alike(data, notion):
    P, y = data
    if notion == "binary":
        P, y = np.column_stack([1 - P[:, 1], P[:, 1]]), (y == 1).astype(int)
    features, residuals = features_and_residuals(P, y, notion)
    for function, grid in CANDIDATES[1:3] + CANDIDATES[4:5]:
        search = searched((P, y), [(function, grid)], notion)
        plain = GridSearchCV(function, grid, cv=KFold(3)).fit(features[TRAIN], residuals[TRAIN])
        scores = (one.cv_results_["mean_test_score"] for one in (search, plain))
        assert_allclose(*scores, rtol=4e-9)
        assert search.best_index_ == plain.best_index_
        eq_21 = plain.predict(features[TEST]).mean()
        assert_allclose(search.predict(P[TEST]).mean(), eq_21, rtol=1e-6)
        of_folds = [one.squared_error(P[TEST]) for one in search.estimators_]
        assert_allclose(search.plug_in_squared_error_, np.mean(of_folds), rtol=1e-12)


def test_weighted_cv_results_equal_those_of_a_plain_grid_search(data, rng):
    notion = "classwise"
    P, y = data
    weight = rng.choice([0.0, 0.5, 2.0], size=300)
    candidates = [*CANDIDATES[1:3], *CANDIDATES[4:], (LINEAR, {})]
    plain = plain_grid_search(P[TRAIN], y[TRAIN], candidates, notion, KFold(3), weight[TRAIN])
    check_equal_results(searched(data, candidates, notion, weight), plain)


def test_ridge_forms_of_automatic_tolerance_share_the_factor_of_the_smallest_alpha(data):
    candidates = [
        (KroneckerKernelRidge(), {"alpha": [1e-3, 1e-7]}),
        (TwoStepKernelRidge(), {"alpha": [1e-2, 1e-5]}),
    ]
    search = searched(data, candidates)
    P, y = data
    plain = plain_grid_search(P[TRAIN], y[TRAIN], candidates, "confidence", KFold(3))
    scores = (one.cv_results_["mean_test_score"] for one in (search, plain))
    assert_allclose(*scores, rtol=1e-6)
    [fine] = {f.tol_ for family in search.families_ for m in family.models for f in m.functions_}
    assert fine == KroneckerKernelRidge(1e-7).fit([[0.5], [0.7]], [0, 1]).tol_


def check_equal_results(search, plain):
    mine, its = search.cv_results_, plain.cv_results_
    assert set(mine) == set(its)
    assert mine["params"] == its["params"]
    for key in its:
        if key.endswith("_test_score") and key != "rank_test_score":
            # Ridge forms have a basis of all folds: what it leaves out differs by up to 4e-10.
            assert_allclose(mine[key], its[key], rtol=4e-9, atol=1e-16, err_msg=key)
        elif key.startswith("param_"):
            assert_array_equal(np.ma.getmaskarray(mine[key]), np.ma.getmaskarray(its[key]))
            assert_array_equal(mine[key].compressed(), its[key].compressed())
        elif key.endswith("_time"):
            assert mine[key].shape == its[key].shape
            assert (mine[key] >= 0).all()
    assert_array_equal(mine["rank_test_score"], its["rank_test_score"])
    assert search.best_index_ == np.argmax(its["mean_test_score"])


@every_kind
def test_the_best_setting_has_the_lowest_risk_and_is_refitted_on_all_training_samples(
    found, data, notion
):
    search = found(notion)
    means = search.cv_results_["mean_test_score"]
    assert search.best_score_ == means.max() == -search.best_risk_
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1
    setting = {k.removeprefix("function__"): v for k, v in search.best_params_.items()}
    function = setting.pop("function")
    assert type(search.best_function_) is type(function)
    assert setting.items() <= search.best_function_.get_params().items()
    P, y = data
    refit = CalibrationErrorEstimator(search.best_function_, notion).fit(P[TRAIN], y[TRAIN])
    # The refit of a ridge form takes the samples block by block, which rounds otherwise.
    assert_allclose(search.predict(P[TEST]), refit.predict(P[TEST]), rtol=1e-13)
    assert_allclose(search.score(P[TEST], y[TEST]), refit.score(P[TEST], y[TEST]), rtol=1e-13)


@every_kind
def test_fold_models_are_those_fitted_on_the_folds(found, data, notion):
    search = found(notion)
    P, y = data
    for family in search.families_:
        for model, (fold, _) in zip(family.models, KFold(3).split(TRAIN), strict=True):
            fitted = CalibrationErrorEstimator(family.best_function, notion).fit(P[fold], y[fold])
            # Ridge forms have a basis of all folds: what it leaves out differs by up to 3e-9.
            is_ridge = isinstance(family.function, KroneckerKernelRidge | TwoStepKernelRidge)
            options = {"rtol": 1e-9, "atol": 1e-8 if is_ridge else 1e-13}
            assert_allclose(model.predict(P[TEST]), fitted.predict(P[TEST]), **options)
    best = search.best_family_.models
    for model, one in zip(search.estimators_, best, strict=True):
        assert_array_equal(model.predict(P[TEST]), one.predict(P[TEST]))


@pytest.mark.parametrize(
    "candidates",
    [
        [(Binning(3), {}), (Binning(), {"n_bins": [3]}), (Binning(40), {})],
        [(Binning(strategy="sweep"), {"n_bins": [7, 3]}), (Binning(40), {})],  # ignored by "sweep"
        [
            (TwoStepKernelRidge(), {"alpha": [1e-3, 1e-3]}),
            (TwoStepKernelRidge(), {"alpha": [1e-3]}),
        ],
    ],
    ids=["families", "settings", "paths"],
)
def test_ties_go_to_the_first(data, candidates):
    search = searched(data, candidates)
    means = search.cv_results_["mean_test_score"]
    assert np.count_nonzero(means == means.max()) > 1
    assert search.best_index_ == 0
    assert search.best_family_ is search.families_[0]
    assert search.summary().count("\n* ") == 2  # the row of the table and its explanation


def test_a_grid_may_be_a_callable_of_the_training_samples_of_a_fold(data):
    seen = []

    def grid(n):
        seen.append(n)
        return {"alpha": [1 / n]}

    search = searched(data, [(TwoStepKernelRidge(), grid)])
    assert seen == [160]  # two thirds of 240
    assert search.best_params_["function__alpha"] == 1 / 160
    searched(data, [(TwoStepKernelRidge(), grid)], weight=np.repeat([2.0, 0.0, 1.0], 100))
    assert seen[1] == 20 * 2 + 100 * 0 + 40 * 1  # samples 80 to 239


def test_the_seed_determines_the_result(data):
    one, same, other = (
        searched(data, CANDIDATES[-3:], cv=3, outer_cv=None, random_state=seed)
        for seed in (0, 0, 1)
    )
    key = "mean_test_score"
    assert_array_equal(one.cv_results_[key], same.cv_results_[key])
    assert one.squared_error_ == same.squared_error_
    assert (one.cv_results_[key] != other.cv_results_[key]).all()


@pytest.mark.parametrize("outer_cv", [None, 3])
def test_an_int_cv_shuffles_so_that_sorted_samples_do_no_harm(tempered, outer_cv):
    proba, labels = tempered[0][:300], tempered[1][:300]
    order = np.argsort(labels, kind="stable")
    search = CalibrationErrorSearchCV(
        [Zero()], cv=4, outer_cv=outer_cv, random_state=0, notion="canonical"
    )
    search.fit(proba[order], labels[order])  # a fold without a class would warn
    for plan in make_plans(search, read_sample(labels[order], proba[order])):
        for rows in (*plan.trainings, *plan.blocks):
            assert set(labels[order][rows]) == {0, 1, 2, 3}


@pytest.mark.parametrize("kind", ["generator", "masks"])
def test_splits_may_be_listed(data, kind):
    pairs = list(KFold(3).split(TRAIN))
    masks = [tuple(np.isin(TRAIN, rows) for rows in pair) for pair in pairs]
    cv, outer_cv = (masks, OUTER) if kind == "masks" else ((p for p in pairs), (p for p in OUTER))
    search = searched(data, CANDIDATES[4:], cv=cv, outer_cv=outer_cv)
    expected = searched(data, CANDIDATES[4:])
    assert_array_equal(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
    assert search.squared_error_ == expected.squared_error_


def test_a_path_takes_any_object_as_kernel(data):
    named, called = (
        searched(
            data,
            [
                (ridge(**options), {"alpha": [1e-4, 1e-2, 1.0]})
                for ridge in (KroneckerKernelRidge, TwoStepKernelRidge)
            ],
        )
        for options in ({"gamma": 2.0}, {"kernel": partial(rbf_kernel, gamma=2.0)})
    )
    scores = called.cv_results_["mean_test_score"]
    # Both kernels differ in their last bits, which α = 1e-4 amplifies to 6e-12 and 2e-11.
    assert_allclose(scores, named.cv_results_["mean_test_score"], rtol=1e-10)
    assert_allclose(called.squared_error_, named.squared_error_, rtol=1e-10)


@pytest.mark.parametrize(
    ("notion", "parameters"),
    [("top-label", {"cv": 2}), *((notion, BLOCKS) for notion in ("top-2", superclass))],
)
def test_the_default_search_runs_under_every_notion(tempered, notion, parameters):
    rows = (tempered[0][:120], tempered[1][:120])
    options = {"cv": KFold(3), "outer_cv": [(np.arange(80), np.arange(80, 120))]} | parameters
    search = CalibrationErrorSearchCV(None, notion, **options).fit(*rows)
    assert getattr(search.notion_, "function", search.notion_) == notion
    assert all(
        np.isfinite(search.cv_results_[key]).all()
        for key in search.cv_results_
        if key.endswith("_score")
    )
    assert np.isfinite([search.squared_error_, search.one_step_squared_error_]).all()


class Counting(Zero):
    fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).fits += 1
        return super().fit(X, y, sample_weight)


def test_a_single_setting_is_fitted_once_a_fold(data):
    Counting.fits = 0
    searched(data, [(Counting(), {})])
    assert Counting.fits == 1 + 3 + 1  # on few samples beforehand, on the folds, on all of them
    Counting.fits = 0
    searched(data, [(Counting(), {})], cv=4, outer_cv=None)
    assert Counting.fits == 1 + 6 + 1  # four blocks make six pairs


def test_a_stack_takes_the_fits_of_candidates_that_are_its_parts(data):
    scaled = [PlugIn(MatrixScaling(structured=True, C=C)) for C in (10.0, 1.0)]
    stack = Stacking([Counting(), *scaled])
    alone = searched(data, [(stack, {})])
    Counting.fits = 0
    maps = PlugIn(MatrixScaling(structured=True)), {"estimator__C": [1.0, 10.0]}
    beside = searched(data, [(stack, {}), (Counting(), {}), maps])
    # On few samples for itself and for the stack, on the folds; another one is the best.
    assert Counting.fits == 1 + 1 + 3
    assert_array_equal(beside.families_[0].column_scores, alone.families_[0].column_scores)


def test_a_stack_may_have_parts_that_cannot_be_pickled(data):
    part = PlugIn(make_pipeline(FunctionTransformer(lambda p: p**2), Ridge()))
    search = searched(data, [(part, {}), (Stacking([part]), {})])
    assert len(search.families_) == 2
