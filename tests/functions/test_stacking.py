"""Stacking against explicit least squares on all pairs of out-of-fold samples."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from skcal import (
    Binning,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    PlugIn,
    Stacking,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)
from skcal.functions import BilinearFunction
from skcal.recalibration import MatrixScaling

PLUG_INS = [
    TwoStepKernelRidge(1e-3),
    TwoStepKernelRidge(1e-1),
    PlugIn(TemperatureScaling()),
    DirichletKernelDensity(0.1),
    Zero(),
]
MIXED = [
    Binning(4),
    Binning(4, debias=True),  # a sparse form
    KroneckerKernelRidge(1e-3),
    TwoStepKernelRidge(1e-2),
    PlugIn(MatrixScaling(C=0.1, structured=True, tol=1e-10)),
]


class Polynomials(BilinearFunction):
    """⟨φ, φ'⟩ of three features beside a single residual, and none that corrects."""

    def fit(self, X, y, sample_weight=None):
        _, residuals, weight = self._validate(X, y, sample_weight)
        self.scale_, self.form_ = (weight @ residuals)[0] / weight.sum(), None
        return self

    def feature_map(self, X):
        return self.scale_ * self._validate_features(X) ** np.arange(3)


every_list = pytest.mark.parametrize("functions", [PLUG_INS, MIXED], ids=["plug-ins", "mixed"])


@pytest.fixture
def sample(tempered):
    """Return features and residuals of n overconfident predictions, in one column or four."""

    def make(n=60, columns=4):
        proba, labels = (array[:n] for array in tempered)
        return proba[:, :columns], (np.eye(4)[labels] - proba)[:, :columns]

    return make


def held_out(stack, X, residuals, weight=None):
    """Yield the fold models with the held-out features, residuals and weights."""
    folds = KFold(min(stack.cv, len(X) // 2), shuffle=True, random_state=stack.random_state)
    weight = np.ones(len(X)) if weight is None else weight
    for train, test in folds.split(X):
        models = [
            clone(function).fit(X[train], residuals[train], weight[train])
            for function in stack.functions
        ]
        yield models, X[test], residuals[test], weight[test]


def pairs_of(stack, X, residuals, weight=None):
    """Rows (h_1, …, h_K) and targets ⟨δ, δ'⟩ of all held-out pairs, times √w w'."""
    rows, targets = [], []
    for models, Z, delta, w in held_out(stack, X, residuals, weight):
        h = np.stack([model.predict_pairs(Z) for model in models], axis=-1)
        for i, j in itertools.permutations(range(len(Z)), 2):
            root = np.sqrt(w[i] * w[j])
            rows.append(root * h[i, j])
            targets.append(root * (delta[i] @ delta[j]))
    return np.array(rows), np.array(targets)


def loss(weights, rows, targets):
    return np.sum((rows @ weights - targets) ** 2)


@every_list
@pytest.mark.parametrize(("columns", "weighted", "cv"), [(1, True, 2), (4, False, 5), (4, True, 2)])
def test_weights_are_nonnegative_least_squares_on_held_out_pairs(
    sample, rng, functions, columns, weighted, cv
):
    X, residuals = sample(columns=columns)
    weight = rng.uniform(0.2, 3, len(X)) if weighted else None
    stack = Stacking(functions, cv=cv, random_state=0).fit(X, residuals, weight)
    rows, targets = pairs_of(stack, X, residuals, weight)
    expected, norm = nnls(rows, targets)
    assert (stack.weights_ >= 0).all()
    assert stack.weights_.any()
    # The functions resemble each other, so that the loss is better determined than the weights.
    assert_allclose(loss(stack.weights_, rows, targets), norm**2, rtol=1e-9)
    assert_allclose(rows @ stack.weights_, rows @ expected, atol=1e-4 * np.abs(targets).max())


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_residual_weights_are_nonnegative_least_squares_on_held_out_rows(
    sample, rng, columns, weighted
):
    X, residuals = sample(columns=columns)
    weight = rng.uniform(0.2, 3, len(X)) if weighted else None
    stack = Stacking(PLUG_INS, random_state=0).fit(X, residuals, weight)
    rows, targets = [], []
    for models, Z, delta, w in held_out(stack, X, residuals, weight):
        root = np.sqrt(w)[:, None]
        rows.append(np.stack([(root * model.residual(Z)).ravel() for model in models], axis=1))
        targets.append((root * delta).ravel())
    rows, targets = np.vstack(rows), np.concatenate(targets)
    _, norm = nnls(rows, targets)
    assert (stack.residual_weights_ >= 0).all()
    assert_allclose(loss(stack.residual_weights_, rows, targets), norm**2, rtol=1e-9)
    expected = sum(
        b * function.residual(X)
        for b, function in zip(stack.residual_weights_, stack.functions_, strict=True)
    )
    assert_allclose(stack.residual(X), expected, atol=1e-14)


@every_list
@pytest.mark.parametrize("columns", [1, 4])
def test_h_is_the_weighted_sum_of_the_functions_refitted_on_all_samples(
    sample, rng, functions, columns
):
    X, residuals = sample(columns=columns)
    Z, new = sample(100, columns)
    weight = rng.uniform(0.2, 3, len(X))
    stack = Stacking(functions, random_state=0).fit(X, residuals, weight)
    alone = [clone(function).fit(X, residuals, weight) for function in functions]
    h = sum(
        a * function.predict_pairs(Z) for a, function in zip(stack.weights_, alone, strict=True)
    )
    assert_allclose(stack.predict_pairs(Z), h, atol=1e-12)
    assert_allclose(stack.predict_pairs(Z, X), stack.predict_pairs(X, Z).T, atol=1e-12)
    assert_allclose(stack.predict(Z), np.diagonal(h), atol=1e-12)
    gap = (h - new @ new.T)[~np.eye(100, dtype=bool)]
    assert_allclose(stack.score(Z, new), -np.mean(gap**2), rtol=1e-10)


@pytest.mark.parametrize("columns", [1, 4])
def test_a_stack_of_zeros_is_zero(sample, columns):
    X, residuals = sample(columns=columns)
    stack = Stacking([Zero(), Zero()], random_state=0).fit(X, residuals)
    assert_array_equal(stack.weights_, [0, 0])
    assert_array_equal(stack.predict(X), np.zeros(60))
    assert_array_equal(stack.residual(X), np.zeros((60, columns)))
    assert stack.score(X, residuals) == Zero().fit(X, residuals).score(X, residuals)


def test_a_function_that_points_the_wrong_way_gets_no_weight(rng):
    """Its held-out products with the residuals are negative: minus it would be better."""
    X = rng.uniform(size=(40, 1))
    residuals = np.ones((40, 1))

    class Backwards(Zero):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y, sample_weight)
            self.form_ = -np.eye(1)
            return self

        def residual(self, X):
            return -np.ones((len(X), 1))

    stack = Stacking([Backwards(), Binning(3)], random_state=0).fit(X, residuals)
    assert_array_equal(stack.weights_[:1], 0)
    assert_array_equal(stack.residual_weights_[:1], 0)
    assert_allclose(stack.predict(X), 1, rtol=1e-9)  # mean residual 1 in every bin
    assert_allclose(stack.residual(X), 1, rtol=1e-9)


@pytest.mark.parametrize("n", [2, 3])
def test_fewer_than_4_samples_tell_no_weights(sample, n):
    X, residuals = sample(n)
    stack = Stacking([Binning(2), TwoStepKernelRidge()], random_state=0).fit(X, residuals)
    assert_array_equal(stack.weights_, [0, 0])
    assert_array_equal(stack.residual_weights_, [0, 0])
    assert_array_equal(stack.predict(X), np.zeros(n))


def test_4_samples_have_two_folds(sample):
    X, residuals = sample(4)
    stack = Stacking([PlugIn(Ridge()), Zero()], random_state=0).fit(X, residuals)
    rows, targets = pairs_of(stack, X, residuals)
    assert_allclose(loss(stack.weights_, rows, targets), nnls(rows, targets)[1] ** 2, rtol=1e-9)


def test_residual_exists_only_where_all_functions_have_it(sample):
    assert hasattr(Stacking(PLUG_INS), "residual")
    assert not hasattr(Stacking([*PLUG_INS, KroneckerKernelRidge()]), "residual")
    X, residuals = sample()
    mixed = Stacking(MIXED, random_state=0).fit(X, residuals)
    assert not hasattr(mixed, "residual")
    assert not hasattr(mixed, "residual_weights_")


# Weights and seeds


def test_the_seed_determines_the_folds(sample):
    X, residuals = sample()
    one, same, other = (
        Stacking(PLUG_INS, random_state=seed).fit(X, residuals).weights_ for seed in (0, 0, 1)
    )
    assert_array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"functions": []}, "functions is empty"),
        (
            {"functions": [Binning(), Ridge()]},
            r"functions\[1\] is Ridge\(\)\. Pass calib.* wrap .*skcal\.PlugIn\(estimator\)\.$",
        ),
        ({"functions": [PlugIn(TemperatureScaling())]}, "X row 0 and y row 0 add up to"),
    ],
)
def test_what_cannot_be_stacked_is_named(rng, options, message):
    X, residuals = rng.dirichlet(np.ones(3), 20), rng.normal(size=(20, 3))
    with pytest.raises(ValueError, match=message):
        Stacking(**options).fit(X, residuals)


def test_features_may_be_more_than_residuals(rng):
    X = rng.uniform(size=(60, 1))
    y = (rng.uniform(size=(60, 1)) < X**2) - X
    stack = Stacking([Polynomials(), Binning(3)], cv=3, random_state=0).fit(X, y)
    assert stack.weights_[0] > 0
    parts = [function.predict_pairs(X) for function in stack.functions_]
    expected = np.tensordot(stack.weights_, parts, 1)
    assert_allclose(stack.predict_pairs(X), expected, atol=1e-12)
