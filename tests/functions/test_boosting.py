"""Boosting against two explicit fits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from skcal import (
    Binning,
    Boosting,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    PlugIn,
    Stacking,
    StructuredMatrixScaling,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)

PAIRS = [
    (PlugIn(TemperatureScaling()), TwoStepKernelRidge(1e-2)),
    (
        PlugIn(StructuredMatrixScaling(C=0.1)),
        PlugIn(DecisionTreeRegressor(max_depth=2, random_state=0)),
    ),
    (DirichletKernelDensity(0.1), Binning(3)),
    (Boosting(Zero(), Binning(2)), TwoStepKernelRidge(1e-1)),
]


@pytest.fixture
def canonical(tempered):
    proba, labels = (array[:150] for array in tempered)
    return proba, np.eye(4)[labels] - proba


@pytest.mark.parametrize(("first", "rest"), PAIRS)
@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_rest_is_fitted_to_what_the_first_leaves(
    canonical, rng, first, rest, columns, weighted
):
    X, residuals = (part[:, :columns] for part in canonical)
    weight = rng.uniform(0.2, 3, len(X)) if weighted else None
    boosting = Boosting(first, rest).fit(X, residuals, weight)
    one = clone(first).fit(X, residuals, weight).residual(X)
    other = clone(rest).fit(X, residuals - one, weight).residual(X)
    assert np.abs(other).max() > 1e-4
    assert_allclose(boosting.residual(X), one + other, atol=1e-12)
    assert_allclose(boosting.predict_pairs(X), (one + other) @ (one + other).T, atol=1e-12)
    assert_allclose(boosting.predict(X), np.sum((one + other) ** 2, axis=1), atol=1e-12)


def test_a_list_of_residuals_is_one_column(canonical):
    X, residuals = (part[:, 0] for part in canonical)
    boosting = Boosting(*PAIRS[0])
    one = boosting.fit(X[:, None], residuals).residual(X[:, None])
    assert one.shape == (150, 1)
    assert_array_equal(boosting.fit(X[:, None], residuals[:, None]).residual(X[:, None]), one)


def test_weight_zero_removes_a_row(canonical, rng):
    X, residuals = canonical
    weight = rng.choice([0.0, 0.5, 2.0], len(X))
    kept = weight > 0
    zeroed = Boosting().fit(X, residuals, weight).residual(X)
    assert_array_equal(zeroed, Boosting().fit(X[kept], residuals[kept], weight[kept]).residual(X))


def test_the_defaults_are_matrix_scaling_and_a_two_step_ridge(canonical):
    X, residuals = canonical
    named = Boosting(PlugIn(StructuredMatrixScaling()), TwoStepKernelRidge(alpha=1e-3)).fit(
        X, residuals
    )
    assert_array_equal(Boosting().fit(X, residuals).residual(X), named.residual(X))


def test_after_zero_nothing_is_left_but_the_residuals(canonical):
    X, residuals = canonical
    ridge = TwoStepKernelRidge(1e-2)
    for boosting in (Boosting(Zero(), ridge), Boosting(ridge, Zero())):
        expected = clone(ridge).fit(X, residuals).residual(X)
        assert_array_equal(boosting.fit(X, residuals).residual(X), expected)


def test_least_squares_leaves_nothing_to_itself(canonical):
    X, residuals = canonical
    linear = PlugIn(LinearRegression())
    boosting = Boosting(linear, linear).fit(X, residuals)
    assert_allclose(boosting.rest_.residual(X), 0, atol=1e-12)


@pytest.mark.parametrize("name", ["first", "rest"])
@pytest.mark.parametrize("function", [KroneckerKernelRidge(), Binning(debias=True)])
def test_functions_without_residual_are_refused_by_name(canonical, name, function):
    with pytest.raises(ValueError, match=f"^{name}={type(function).__name__}.* no `residual`"):
        Boosting(**{name: function}).fit(*canonical)


def test_a_rest_that_needs_outcomes_is_refused(canonical):
    with pytest.raises(ValueError, match=r"add up to .* not to an outcome"):
        Boosting(rest=PlugIn(TemperatureScaling())).fit(*canonical)


def test_parameters_are_nested_and_the_given_functions_stay_unfitted(canonical):
    first, rest = PAIRS[0]
    boosting = Boosting(first, rest).set_params(rest__alpha=0.5)
    assert boosting.fit(*canonical).rest_.alpha == 0.5
    assert not hasattr(boosting.first, "n_features_in_")
    assert not hasattr(boosting.rest, "n_features_in_")
    rest.set_params(alpha=1e-2)
    with pytest.raises(ValueError, match="The 'rest' parameter of Boosting"):
        Boosting(rest=LinearRegression()).fit(*canonical)


def test_boosting_can_be_stacked(canonical):
    X, residuals = canonical
    stack = Stacking([Boosting(*PAIRS[0]), PAIRS[0][0]]).fit(X, residuals)
    boosting = Boosting(*PAIRS[0]).fit(X, residuals)
    assert_array_equal(stack.functions_[0].residual(X), boosting.residual(X))
