"""Coordinates of the simplex against their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from scipy.special import logit

from skcal.recalibration import LogProbabilities
from skcal.recalibration.features import COORDINATES, PROBABILITY_FLOOR

EXTREMES = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1e-300, 0.5, 0.5]])
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture(params=[1, 3])
def X(rng, request):
    return rng.dirichlet(np.ones(3), size=20)[:, : request.param]


def test_logarithms_are_those_of_the_transformer(X):
    assert_array_equal(COORDINATES["log"](X), LogProbabilities().fit_transform(X))


@every_dtype
def test_log_ratios_are_logarithms_over_the_geometric_mean(X, dtype):
    X = X.astype(dtype)
    exact = X.astype(np.float64)
    if X.shape[1] == 1:
        expected = logit(exact)
    else:
        expected = np.log(exact / np.exp(np.log(exact).mean(axis=1, keepdims=True)))
    assert_allclose(COORDINATES["log-ratio"](X), expected, atol=1e-13)


@every_dtype
def test_distances_of_square_roots_are_hellingers(X, dtype):
    X = X.astype(dtype)
    both = np.hstack([X, 1 - X]) if X.shape[1] == 1 else X
    both = both.astype(np.float64)
    affinity = np.array([[np.sum(np.sqrt(p * q)) for q in both] for p in both])
    sums = both.sum(axis=1)  # of float32 rows not exactly 1
    hellinger = np.sqrt(np.maximum((sums[:, None] + sums) / 2 - affinity, 0))
    roots = COORDINATES["square-root"](X)
    assert_allclose(cdist(roots, roots), np.sqrt(2) * hellinger, atol=1e-7)


@pytest.mark.parametrize("name", COORDINATES)
def test_coordinates_of_zeros_and_ones_are_finite_and_those_at_the_floor(name):
    coordinates = COORDINATES[name]
    floored = np.maximum(EXTREMES, PROBABILITY_FLOOR)
    # √floor is 1.5e-8, all others agree to rounding.
    assert_allclose(coordinates(EXTREMES), coordinates(floored), atol=2e-8)
    scalar = coordinates(np.array([[0.0], [1.0]]))
    assert np.isfinite(scalar).all()
    assert_allclose(scalar, coordinates(np.array([[PROBABILITY_FLOOR], [1.0]])), atol=2e-8)


@pytest.mark.parametrize("name", ["square-root", "log", "log-ratio"])
def test_coordinates_are_computed_in_double_precision(X, name):
    single = X.astype(np.float32)
    coordinates = COORDINATES[name](single)
    assert coordinates.dtype == np.float64
    if single.shape[1] == 1 and name == "square-root":
        single = single.astype(np.float64)  # 1 - p
    assert_array_equal(coordinates, COORDINATES[name](single.astype(np.float64)))
