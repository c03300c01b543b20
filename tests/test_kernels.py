"""Low-rank factors against the full kernel matrix."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from skcal.kernels import KERNEL_NAMES, kernel_basis, kernel_diagonal, kernel_matrix

# Smooth kernels on the simplex have a small numerical rank, laplacian has a full one.
POSITIVE_SEMIDEFINITE = ["linear", "poly", "polynomial", "rbf", "laplacian", "chi2", "cosine"]
INDEFINITE = ["sigmoid", "additive_chi2"]
GAMMA = {"gamma": 1.0}


def simplex(n=150, n_classes=3):
    return np.random.default_rng(0).dirichlet(np.ones(n_classes), size=n)


def factor(X, kernel="rbf", tol=1e-8, max_rank=None, weight=None):
    weight = np.ones(len(X)) if weight is None else weight
    return kernel_basis(X, weight, kernel, GAMMA, tol, max_rank or len(X))


def remainder(X, kernel, features):
    return kernel_matrix(X, X, kernel, GAMMA) - features @ features.T


@pytest.mark.parametrize("kernel", sorted(KERNEL_NAMES))
def test_named_kernels_are_those_of_scikit_learn(kernel):
    X, Z = simplex(40), simplex(7)
    for parameters in ({"gamma": None}, {"gamma": 0.5, "degree": 2, "coef0": 0.3}):
        parameters = {} if kernel == "chi2" and parameters["gamma"] is None else parameters
        expected = pairwise_kernels(X, Z, metric=kernel, filter_params=True, **parameters)
        assert_array_equal(kernel_matrix(X, Z, kernel, parameters), expected)
    diagonal = np.diagonal(kernel_matrix(X, X, kernel, parameters))
    assert_allclose(kernel_diagonal(X, kernel, parameters), diagonal, rtol=1e-14, atol=1e-15)


def test_every_named_kernel_is_tested_here():
    assert {*POSITIVE_SEMIDEFINITE, *INDEFINITE} == KERNEL_NAMES


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tol", [1e-1, 1e-8])
@pytest.mark.parametrize("kernel", POSITIVE_SEMIDEFINITE)
def test_the_factor_leaves_out_no_more_than_the_tolerance_and_says_how_much(kernel, tol, weighted):
    X = simplex()
    weight = np.random.default_rng(1).uniform(0.1, 5, size=150) if weighted else np.ones(150)
    result = factor(X, kernel, tol, weight=weight)
    rest, trace = remainder(X, kernel, result.psi), weight @ kernel_diagonal(X, kernel, GAMMA)
    assert result.approximation == ("exact" if len(result.landmarks) == 150 else "low-rank")
    assert result.trace_error <= tol
    assert_allclose(result.trace_error, weight @ np.diagonal(rest) / trace, rtol=1e-6, atol=1e-15)
    # The remainder is positive semidefinite, so that its entries are below its largest diagonal.
    assert np.abs(rest).max() <= np.diagonal(rest).max() + 1e-13
    assert np.linalg.eigvalsh(rest).min() > -1e-12


@pytest.mark.parametrize("kernel", POSITIVE_SEMIDEFINITE)
def test_the_projection_extends_the_features_to_new_samples(kernel):
    X = simplex()
    result = factor(X[:100], kernel)
    assert all((X[:100] == landmark).all(axis=1).any() for landmark in result.landmarks)
    phi = kernel_matrix(X, result.landmarks, kernel, GAMMA) @ result.projection(
        np.eye(len(result.landmarks))
    )
    # Pivots go down to 1e-15 of k(x, x), and their inverse root magnifies rounding to 1e-8.
    assert_allclose(phi[:100], result.psi, rtol=0, atol=1e-7)
    rest = remainder(X, kernel, phi)  # on new samples a Nyström remainder: semidefinite still
    assert np.linalg.eigvalsh(rest).min() > -1e-7


@pytest.mark.parametrize("kernel", POSITIVE_SEMIDEFINITE)
def test_tolerance_0_factors_down_to_rounding(kernel):
    X = simplex(60)
    result = factor(X, kernel, tol=0)
    assert np.abs(remainder(X, kernel, result.psi)).max() < 1e-13
    assert result.trace_error < 1e-14
    # Rounding ended it, no rank limit.
    assert result.approximation == ("exact" if len(result.landmarks) == 60 else "low-rank")
    if kernel == "laplacian":
        assert len(result.landmarks) == len(factor(np.vstack([X, X]), kernel, 0).landmarks) == 60


@pytest.mark.parametrize("max_rank", [1, 5, 70, 149])
def test_a_rank_limit_makes_a_nystroem_factor_of_honest_error(max_rank):
    X = simplex()
    result = factor(X, "laplacian", max_rank=max_rank)
    assert result.approximation == "nystroem"
    assert result.psi.shape == (150, max_rank)
    left_out = np.trace(remainder(X, "laplacian", result.psi)) / 150
    assert_allclose(result.trace_error, left_out, rtol=1e-12, atol=1e-15)
    assert result.trace_error > 1e-8


# What is refused.


@pytest.mark.parametrize(
    "kernel",
    [
        *INDEFINITE,
        lambda X, Z: -(X @ Z.T),
        lambda X, Z: 1 - ((X[:, None] - Z) ** 2).sum(axis=2),
        lambda X, Z: np.where((X[:, None] == Z).all(axis=2), 1.0, 2.0),
    ],
)
def test_indefinite_kernels_are_refused(kernel):
    match = r"^The kernel is not positive semidefinite: at X row|^k\(x, x\) is zero on all training"
    with pytest.raises(ValueError, match=match):
        factor(simplex(), kernel)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_kernel_that_is_not_finite_is_refused_with_its_arguments(value):
    X = simplex()

    def kernel(A, B):
        return np.where(np.outer(A[:, 0] == X[50, 0], np.ones(len(B))), value, A @ B.T)

    match = rf"^The kernel returned {value} for X row \[{X[50, 0]}.*must be finite"
    with pytest.raises(ValueError, match=match):
        factor(X, kernel)


OTHER_SHAPE = r"^The kernel returned shape .*, not \(20, 20\).*all pairs"


@pytest.mark.parametrize(
    ("kernel", "match"),
    [
        (lambda X, Z: (X @ Z.T)[:, :-1], OTHER_SHAPE),
        (lambda X, Z: X[:, 0], OTHER_SHAPE),
        (np.dot, "align"),  # of (n, d) and (k, d) fails by itself
        ("nope", r"'metric'.*'nope'"),
    ],
)
def test_a_kernel_of_another_shape_or_an_unknown_name_is_refused(kernel, match):
    with pytest.raises(ValueError, match=match):
        factor(simplex(20), kernel)


def test_what_a_callable_returns_stays_as_it_is():
    returned = []

    def remembering(A, B):
        values = rbf_kernel(A, B)
        returned.append((values, values.copy()))
        return values

    factor(simplex(), remembering)
    assert len(returned) > 1
    for values, copy in returned:
        assert_array_equal(values, copy)


# Cost.


@pytest.mark.parametrize(("kernel", "max_rank"), [("rbf", None), ("laplacian", 100)])
def test_no_array_over_pairs_is_formed(kernel, max_rank):
    X = simplex(20_000)
    tracemalloc.start()
    result = factor(X, kernel, max_rank=max_rank)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 10 <= len(result.landmarks) <= 100
    assert peak < 100e6  # n² numbers take 3.2 GB
