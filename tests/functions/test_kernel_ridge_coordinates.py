"""Ridge forms in coordinates of the simplex, and the width of the median distance."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from skcal import KroneckerKernelRidge, TwoStepKernelRidge
from skcal.recalibration.features import COORDINATES

RIDGES = [KroneckerKernelRidge, TwoStepKernelRidge]


def sample(rng, n, d=3):
    """Predictions, and residuals of which some depend on them."""
    X = rng.dirichlet(np.full(max(d, 2), 0.8), size=n)[:, :d]
    return X, rng.normal(size=(n, d)) * 0.3 + X - 0.3


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("name", COORDINATES)
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("gamma", [0.7, "median"])
def test_ridge_in_coordinates_is_ridge_on_transformed_features(rng, ridge, name, d, gamma):
    X, residuals = sample(rng, 60, d)
    Z, new = sample(rng, 30, d)
    weight, transform = rng.uniform(0.2, 3, 60), COORDINATES[name]
    inside = ridge(1e-3, gamma=gamma, coordinates=name).fit(X, residuals, weight)
    outside = ridge(1e-3, gamma=gamma).fit(transform(X), residuals, weight)
    assert_array_equal(inside.predict_pairs(Z), outside.predict_pairs(transform(Z)))
    assert inside.gamma_ == outside.gamma_
    assert inside.score(Z, new) == outside.score(transform(Z), new)
    assert inside.n_features_in_ == d
    if ridge is TwoStepKernelRidge:
        assert_array_equal(inside.residual(Z), outside.residual(transform(Z)))


@pytest.mark.parametrize("ridge", RIDGES)
def test_without_coordinates_any_features_are_taken(rng, ridge):
    X, residuals = sample(rng, 20)
    plain = ridge(1e-3).fit(X, residuals).predict(X)
    assert_array_equal(ridge(1e-3, coordinates="probability").fit(X, residuals).predict(X), plain)
    logits = 5 * X - 2
    fitted = ridge(1e-3).fit(logits, residuals)
    assert np.isfinite(fitted.predict(logits)).all()
    for name in COORDINATES:
        with pytest.raises(ValueError, match=r"X row \d+, column \d+ is .* not a probability"):
            ridge(1e-3, coordinates=name).fit(logits, residuals)
        fitted = ridge(1e-3, coordinates=name).fit(X, residuals)
        with pytest.raises(ValueError, match="not a probability"):
            fitted.predict(logits)


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("name", COORDINATES)
def test_zeros_and_ones_are_finite_in_all_coordinates(ridge, name):
    X = np.eye(3)[[0, 1, 2, 0, 1]]
    residuals = np.eye(3)[[0, 1, 1, 2, 1]] - X
    fitted = ridge(1e-3, gamma="median", coordinates=name).fit(X, residuals)
    assert np.isfinite(fitted.predict_pairs(X)).all()


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("d", [1, 3])
def test_the_median_width_is_its_formula(rng, ridge, d):
    X, residuals = sample(rng, 41, d)
    pairs = list(combinations(X, 2))
    euclidean = np.median([np.sqrt(np.sum((p - q) ** 2)) for p, q in pairs])
    cityblock = np.median([np.sum(np.abs(p - q)) for p, q in pairs])
    for kernel, gamma in (("rbf", 0.5 / euclidean**2), ("laplacian", 1 / cityblock)):
        fitted = ridge(1e-3, kernel=kernel, gamma="median").fit(X, residuals)
        assert_allclose(fitted.gamma_, gamma, rtol=1e-12)
        same = ridge(1e-3, kernel=kernel, gamma=fitted.gamma_).fit(X, residuals)
        assert_array_equal(fitted.predict_pairs(X), same.predict_pairs(X))


@pytest.mark.parametrize("ridge", RIDGES)
def test_the_median_width_is_of_the_rows_that_have_weight(rng, ridge):
    X, residuals = sample(rng, 40)
    weight = rng.choice([0.0, 1.0, 3.0], 40)
    weighted = ridge(gamma="median").fit(X, residuals, weight)
    rows = ridge(gamma="median").fit(X[weight > 0], residuals[weight > 0])
    assert weighted.gamma_ == rows.gamma_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": "median", "kernel": "linear"}, 'gamma="median" is for the kernels "rbf" and'),
        ({"gamma": "median", "kernel": rbf_kernel}, 'gamma="median" is for the kernels'),
    ],
)
@pytest.mark.parametrize("ridge", RIDGES)
def test_unknown_widths_and_coordinates_raise(rng, ridge, options, message):
    with pytest.raises(ValueError, match=message):
        ridge(**options).fit(*sample(rng, 10))


def test_factors_of_other_kernels_are_not_shared():
    options = {"coordinates": "square-root", "gamma": "median", "tol": 1e-8}
    ridge, other_form = TwoStepKernelRidge(1e-2, **options), KroneckerKernelRidge(1e-4, **options)
    assert ridge._shares_with(other_form)
    for other in (
        {"coordinates": "log"},
        {"coordinates": None},
        {"gamma": 1.0},
        {"tol": "auto"},
        {"kernel": rbf_kernel},
        {"max_rank": 3},
    ):
        assert not ridge._shares_with(clone(other_form).set_params(**other))
