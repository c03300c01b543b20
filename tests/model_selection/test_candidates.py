"""Which functions and parameters a search tries."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
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
from skcal.model_selection.candidates import (
    family_name,
    fast_function,
    recommended,
    resolve_candidates,
)
from skcal.notions import resolve_notion
from skcal.recalibration import (
    LogProbabilities,
    MatrixScaling,
    SplineScaling,
)

SCALAR = ["confidence", "top-label", "classwise", "binary"]
SIMPLEX = ["canonical", "top-2", lambda proba: np.zeros(proba.shape, int)]


def resolved(notion):
    return resolve_notion(notion, np.full((1, 2 if notion == "binary" else 10), 0.1))


@pytest.mark.parametrize(("n_classes", "n_samples"), [(3, 40), (3, 300), (31, 300)])
def test_the_fast_function_estimates_the_residual_and_knows_no_class_order(n_classes, n_samples):
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(n_classes), n_samples)
    y = np.eye(n_classes)[rng.integers(n_classes, size=n_samples)] - X
    function = fast_function(resolved("canonical"), n_classes, n_samples)
    fitted = clone(function).fit(X, y).residual(X)
    assert_allclose(fitted.sum(axis=1), 0, atol=1e-8)
    order = rng.permutation(n_classes)
    other = clone(function).fit(X[:, order], y[:, order]).residual(X[:, order])
    assert_allclose(other, fitted[:, order], atol=1e-3)


def names(candidates):
    return [family_name(function) for function, _ in candidates]


@pytest.mark.parametrize("candidates", [None, "recommended"])
@pytest.mark.parametrize("notion", SCALAR)
def test_scalar_notions_get_isotonic_regression_splines_and_binning(candidates, notion):
    assert names(resolve_candidates(candidates, resolved(notion), 10, 1000)) == [
        "Zero",
        "Binning",
        "DirichletKernelDensity",
        "KroneckerKernelRidge",
        "TwoStepKernelRidge",
        "TemperatureScaling",
        "IsotonicRegression",
        "SplineScaling",
        "Stacking",
    ]


@pytest.mark.parametrize(
    ("n_classes", "last"),
    [
        (3, ["Structured MatrixScaling", "Stacking"]),
        (100, ["Structured MatrixScaling", "Stacking"]),
        (101, ["VectorScaling"]),
    ],
)
@pytest.mark.parametrize("notion", SIMPLEX, ids=["canonical", "top-2", "lens"])
def test_other_notions_get_matrix_scaling_and_vector_scaling_above_100_classes(
    notion, n_classes, last
):
    assert names(resolve_candidates(None, resolved(notion), n_classes, 1000)) == [
        "Zero",
        "DirichletKernelDensity",
        "KroneckerKernelRidge",
        "TwoStepKernelRidge",
        "TemperatureScaling",
        *last,
    ]


@pytest.mark.parametrize("notion", ["canonical", "confidence"])
def test_of_very_many_vectors_there_is_no_kernel_density(notion):
    few, many = (recommended(resolved(notion), 1000, n_train) for n_train in (22_000, 23_000))
    assert "DirichletKernelDensity" in names(few)
    assert ("DirichletKernelDensity" in names(many)) == (notion == "confidence")
    assert {*names(few)} - {*names(many)} <= {"DirichletKernelDensity"}


def test_lists_resolved_twice_share_no_function():
    one, other = (resolve_candidates(None, resolved("canonical"), 10, 1000) for _ in range(2))
    assert not {id(function) for function, _ in one} & {id(function) for function, _ in other}


def as_dict(candidates):
    return {type(function): grid for function, grid in candidates}


@pytest.mark.parametrize("notion", SCALAR)
def test_gruber_bach_is_the_published_search_space_for_scalar_notions(notion):
    candidates = resolve_candidates("gruber-bach", resolved(notion), 10, 6400)
    grids = as_dict(candidates)
    assert len(candidates) == len(grids) == 4
    assert list(grids[Binning]["n_bins"]) == list(range(5, 91, 5))
    decades = [10.0**-k for k in (1, 3, 5, 7, 9, 11, 13, 15, 17)]
    # 6400^(1/2) = 80 and 6400^(1/4) = 8.94427…
    assert_allclose(grids[KroneckerKernelRidge]["alpha"], np.divide(decades, 80), rtol=1e-12)
    decades = [10.0**-k for k in range(1, 10)]
    assert_allclose(grids[TwoStepKernelRidge]["alpha"], np.divide(decades, 80**0.5), rtol=1e-12)


@pytest.mark.parametrize("notion", SIMPLEX, ids=["canonical", "top-2", "lens"])
def test_gruber_bach_is_the_published_search_space_for_other_notions(notion):
    candidates = resolve_candidates("gruber-bach", resolved(notion), 10, 6400)
    grids = as_dict(candidates)
    assert grids.keys() == {DirichletKernelDensity, KroneckerKernelRidge, TwoStepKernelRidge}
    decades = [10.0**k for k in range(8, -10, -1)]
    assert_allclose(grids[KroneckerKernelRidge]["alpha"], np.divide(decades, 80), rtol=1e-12)
    halves = [10.0 ** (4 - k / 2) for k in range(18)]
    assert_allclose(grids[TwoStepKernelRidge]["alpha"], np.divide(halves, 80**0.5), rtol=1e-12)


@pytest.mark.parametrize("notion", ["canonical", "confidence"])
def test_published_bandwidths_and_kernels(notion):
    candidates = resolve_candidates("gruber-bach", resolved(notion), 10, 6400)
    bandwidths = [10 ** (-5 + 4 * k / 14) for k in range(15)] + [0.2, 0.4, 0.6, 0.8, 1.0]
    assert_allclose(as_dict(candidates)[DirichletKernelDensity]["bandwidth"], bandwidths)
    for function, _ in candidates:
        if hasattr(function, "kernel"):
            assert (function.kernel, function.gamma) == ("rbf", 1.0)


@pytest.mark.parametrize("notion", ["canonical", "confidence"])
def test_every_recommended_list_holds_the_published_one(notion):
    """Of the bandwidths, and of the alphas for vectors, every second value; of wide kernels."""
    published = resolve_candidates("gruber-bach", resolved(notion), 10, 6400)
    recommended = resolve_candidates(None, resolved(notion), 10, 6400)
    for function, grid in published:
        [(name, values)] = grid.items()
        halved = name == "bandwidth" or (name == "alpha" and notion == "canonical")
        first = 5 if name == "bandwidth" and notion == "canonical" else 1
        expected = {name: values[first::2] if halved else values}
        assert [g for f, g in recommended if type(f) is type(function)] == [expected]


@pytest.mark.parametrize("weight", [None, 0.5, 2.0])
def test_the_search_scales_the_published_grid_by_the_weight_of_a_training_fold(tempered, weight):
    P, y = tempered[0][:80], tempered[1][:80]
    search = CalibrationErrorSearchCV("gruber-bach", "confidence", cv=4, random_state=0)
    search.fit(P, y, None if weight is None else np.full(80, weight))
    n = 80 if weight == 2 else 40  # rows of two of four blocks
    alphas = [
        setting["function__alpha"]
        for setting in search.cv_results_["params"]
        if isinstance(setting["function"], KroneckerKernelRidge)
    ]
    assert_allclose(alphas, 10.0 ** -np.arange(1, 18, 2) / n**0.5, rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (Zero(), "Zero"),
        (PlugIn(TemperatureScaling()), "TemperatureScaling"),
        (PlugIn(MatrixScaling(structured=True)), "Structured MatrixScaling"),
        (PlugIn(IsotonicRegression(), target="outcome"), "IsotonicRegression"),
        (PlugIn(make_pipeline(LogProbabilities(), LogisticRegression())), "LogisticRegression"),
    ],
)
def test_a_plug_in_is_named_after_its_last_step(function, name):
    assert family_name(function) == name


# The constants of the default candidates


def test_ridge_forms_are_approximations_of_rank_1000():
    for notion in (resolved("confidence"), resolved("canonical")):
        ranks = {
            function.max_rank
            for function, _ in recommended(notion, 4, 1000)
            if hasattr(function, "max_rank")
        }
        assert ranks == {1000}


@pytest.mark.parametrize(
    ("n_classes", "n_parts"), [(2, 8), (30, 8), (31, 4), (100, 4), (101, None)]
)
def test_maps_of_vectors_by_the_number_of_classes(n_classes, n_parts):
    function, grid = recommended(resolved("canonical"), n_classes, 1000)[-1]
    if n_parts is None:
        assert grid == {"estimator__C": [0.01, 0.1, 1.0]}
        assert function.estimator.tol == 1e-6
        return
    assert (len(function.functions), function.cv) == (n_parts, 3)
    assert hasattr(function, "residual")  # so that it has a one-step estimate
    equivariant = [getattr(part, "equivariant", False) for part in function.functions]
    assert sum(equivariant) == (n_classes <= 30)
    temperature, structured, matrix, trees = (part.estimator for part in function.functions[:4])
    assert (type(temperature).__name__, structured.C, matrix.C) == ("TemperatureScaling", 1, 0.01)
    assert (trees.n_estimators, trees.min_samples_leaf, trees.random_state) == (30, 20, 0)
    for part in function.functions[5:]:
        np.testing.assert_array_equal(part.estimator[-1].alphas, np.logspace(-2, 4, 13))


def test_maps_of_scalars():
    *_, (isotonic, _), (_, grid), (stack, _) = recommended(resolved("confidence"), 1, 1000)
    assert (isotonic.target, isotonic.estimator.out_of_bounds) == ("outcome", "clip")
    assert grid == {"estimator__C": [0.01, 0.1, 1.0, 10.0]}
    assert (len(stack.functions), stack.cv) == (3, 3)
    assert hasattr(stack, "residual")


@pytest.mark.parametrize(
    ("n_classes", "n_train", "name"),
    [
        (30, 100, "Stacking"),
        (30, 99, "Structured MatrixScaling"),
        (31, 100, "Structured MatrixScaling"),
        (100, 100, "Structured MatrixScaling"),
        (101, 100, "VectorScaling"),
        (101, 1000, "VectorScaling"),
    ],
)
def test_the_fast_function_changes_at_30_and_100_classes_and_100_samples(n_classes, n_train, name):
    function = fast_function(resolved("canonical"), n_classes, n_train)
    assert family_name(function) == name
    if name == "Stacking":
        assert len(function.functions) == 2
    else:
        assert function.estimator.C == 0.1
    scalar = fast_function(resolved("confidence"), 1, 50)
    assert (family_name(scalar), scalar.estimator.C) == ("SplineScaling", SplineScaling().C)
