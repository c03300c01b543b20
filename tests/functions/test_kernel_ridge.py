"""Both ridge forms against the dense formulas of mathematics.md §6."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from skcal import KroneckerKernelRidge, TwoStepKernelRidge
from skcal.recalibration.features import COORDINATES

RIDGES = [KroneckerKernelRidge, TwoStepKernelRidge]


def own_rbf(X, Z):
    return pairwise_kernels(X, Z, metric="rbf", gamma=1.0)


KERNELS = [
    {"kernel": "rbf", "gamma": None},  # scikit-learn's 1 / d
    {"kernel": "laplacian", "gamma": 0.7},
    {"kernel": "linear"},
    {"kernel": "polynomial", "degree": 2, "gamma": 0.5, "coef0": 0.3},
    {"kernel": own_rbf},
]


def name_of(options):
    return "-".join(str(getattr(value, "__name__", value)) for value in options.values())


def dense_kernel(X, Z, kernel="rbf", **parameters):
    if callable(kernel):
        return kernel(X, Z)
    return pairwise_kernels(
        X, Z, metric=kernel, filter_params=True, **({"gamma": 1.0} | parameters)
    )


def sample(rng, n, d=3):
    """Predictions, and residuals of which some depend on them."""
    X = rng.dirichlet(np.full(max(d, 2), 0.8), size=n)[:, :d]
    return X, rng.normal(size=(n, d)) * 0.3 + X - 0.3


def dense_kronecker(X, residuals, Z, alpha, **kernel):
    """(k(z) ⊗ k(z'))ᵀ (K ⊗ K + n²λ I)⁻¹ vec(ΔΔᵀ)."""
    n, K, k = len(X), dense_kernel(X, X, **kernel), dense_kernel(Z, X, **kernel)
    system = np.kron(K, K) + n**2 * alpha * np.eye(n**2)
    solved = np.linalg.solve(system, (residuals @ residuals.T).ravel())
    return (np.kron(k, k) @ solved).reshape(len(Z), len(Z))


def eigen_kronecker(X, residuals, Z, alpha, **kernel):
    """[GB, 29]: k(z)ᵀ Q [(Qᵀ ΔΔᵀ Q) ⊘ (s sᵀ + n²λ)] Qᵀ k(z')."""
    n, K, k = len(X), dense_kernel(X, X, **kernel), dense_kernel(Z, X, **kernel)
    s, Q = np.linalg.eigh(K)
    rotated = Q.T @ residuals @ residuals.T @ Q / (np.outer(s, s) + n**2 * alpha)
    return k @ Q @ rotated @ Q.T @ k.T


def dense_residual(X, residuals, Z, alpha, **kernel):
    """[GB, 32]: Δᵀ (K + nλ I)⁻¹ k(z)."""
    system = dense_kernel(X, X, **kernel) + len(X) * alpha * np.eye(len(X))
    return dense_kernel(Z, X, **kernel) @ np.linalg.solve(system, residuals)


# Definitions


@pytest.mark.parametrize("options", KERNELS, ids=name_of)
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("n", [2, 7])
def test_kronecker_solves_the_tensor_product_system(rng, n, d, options):
    X, residuals = sample(rng, n, d)
    Z, _ = sample(rng, 5, d)
    function = KroneckerKernelRidge(alpha=1e-3, tol=0, **options).fit(X, residuals)
    dense = dense_kronecker(X, residuals, Z, 1e-3, **options)
    assert_allclose(function.predict_pairs(Z), dense, atol=1e-11 * np.abs(dense).max())
    assert_allclose(function.predict(Z), np.diagonal(dense), atol=1e-11 * np.abs(dense).max())


@pytest.mark.parametrize("options", KERNELS[:-1], ids=name_of)
def test_two_step_is_sklearns_weighted_kernel_ridge(rng, options):
    X, residuals = sample(rng, 50)
    weight = rng.uniform(0.2, 3, 50)
    function = TwoStepKernelRidge(alpha=1e-3, tol=0, **options).fit(X, residuals, weight)
    sklearns = KernelRidge(alpha=weight.sum() * 1e-3, **({"gamma": 1.0} | options))
    sklearns.fit(X, residuals, sample_weight=weight)
    assert_allclose(function.residual(X), sklearns.predict(X), atol=1e-11)


# Low rank


@pytest.mark.parametrize("tol", [1e-2, 1e-6, 1e-10])
def test_error_of_the_factor_is_what_tol_allows(rng, tol):
    """Perturbation bounds for K - K̃ of trace ≤ n tol, k(x, x) = 1: n tol on training samples,
    but its root for an unseen point, whose k(z) the factor misses by up to √(n tol)."""
    X, residuals = sample(rng, 200)
    Z, _ = sample(rng, 100)
    alpha, size, penalty = 1e-2, np.linalg.norm(residuals), 2.0
    function = TwoStepKernelRidge(alpha=alpha, tol=tol).fit(X, residuals)
    error, unseen = (function.residual(A) - dense_residual(X, residuals, A, alpha) for A in (X, Z))
    assert np.linalg.norm(error) <= 200 * tol / penalty * size
    allowed = np.sqrt(200 * tol) / penalty + 200 * tol / (2 * penalty**1.5)
    assert np.linalg.norm(unseen, axis=1).max() <= allowed * size
    features = KroneckerKernelRidge(tol=tol).fit(X, residuals).feature_map(X)
    left_out = 1 - np.sum(features**2) / 200  # of the trace, which is n
    assert_allclose(function.trace_error_, left_out, atol=1e-13)
    assert left_out <= tol
    assert (function.approximation_, len(function.landmarks_)) == ("low-rank", function.rank_)


@pytest.mark.parametrize("ridge", RIDGES)
def test_max_rank_gives_a_nystroem_approximation_at_the_landmarks(rng, ridge):
    X, residuals = sample(rng, 60)
    function = ridge(alpha=1e-3, max_rank=5).fit(X, residuals)
    assert (function.approximation_, function.rank_) == ("nystroem", 5)
    assert function.trace_error_ > 1e-8
    B = function.landmarks_

    def nystroem(X, Z):
        middle = np.linalg.solve(dense_kernel(B, B), dense_kernel(B, Z))
        return dense_kernel(X, B) @ middle

    if ridge is KroneckerKernelRidge:
        expected = eigen_kronecker(X, residuals, X, 1e-3, kernel=nystroem)
    else:
        g = dense_residual(X, residuals, X, 1e-3, kernel=nystroem)
        expected = g @ g.T
    assert_allclose(function.predict_pairs(X), expected, atol=1e-9)


def test_rank_n_is_exact_and_the_memory_limit_is_nystroem(rng):
    X, residuals = rng.dirichlet(np.full(100, 0.05), size=300), np.zeros((300, 100))
    options = {"gamma": 100.0, "tol": 0}
    function = KroneckerKernelRidge(**options).fit(X, residuals)
    assert (function.approximation_, function.rank_) == ("exact", 300)
    with config_context(working_memory=8 * 300 * 40 / 2**20):  # holds 40 columns
        function = KroneckerKernelRidge(**options).fit(X, residuals)
    assert (function.approximation_, function.rank_) == ("nystroem", 40)


@pytest.mark.parametrize("options", [{"kernel": "linear"}, {"kernel": "rbf"}])
def test_a_factor_that_only_rounding_ends_is_not_called_nystroem(rng, options):
    """No rank limit was reached: all that is left out is rounding."""
    X, residuals = sample(rng, 300, 2)
    function = KroneckerKernelRidge(tol=0, **options).fit(X, residuals)
    assert function.trace_error_ < 1e-14
    assert function.approximation_ != "nystroem"


# The tolerance that follows alpha

SAMPLES = {
    "confidence": lambda rng: rng.beta(5, 1, (100, 1)),
    "3 classes": lambda rng: rng.dirichlet(np.full(3, 0.3), size=100),
    "10 classes": lambda rng: rng.dirichlet(np.full(10, 0.1), size=100),
}
TRACES = {
    "1": {"kernel": "rbf"},
    "larger": {"kernel": "polynomial", "gamma": 2.0, "degree": 4, "coef0": 1},
    "smaller": {"kernel": "polynomial", "gamma": 0.1, "degree": 3, "coef0": 0.2},
}


def in_the_whole_space(ridge, K, k, residuals):
    """h(z, z) from the eigenvectors of all n rows."""
    values, vectors = np.linalg.eigh(K)
    values, n = np.maximum(values, 0), len(K)
    moments, rotated = vectors.T @ residuals, k @ vectors
    if isinstance(ridge, TwoStepKernelRidge):
        correction = rotated @ (moments / (values + n * ridge.alpha)[:, None])
        return np.sum(correction**2, axis=1)
    form = moments @ moments.T / (np.outer(values, values) + n**2 * ridge.alpha)
    return np.einsum("ij,jk,ik->i", rotated, form, rotated)


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("alpha", [1e-3, 1e-9])
def test_the_automatic_tolerance_keeps_h_to_1e_6_at_every_alpha(rng, ridge, kind, trace, alpha):
    X, Z = SAMPLES[kind](rng), SAMPLES[kind](rng)
    residuals = rng.normal(size=X.shape)
    function = ridge(alpha, **TRACES[trace]).fit(X, residuals)
    K, k = (dense_kernel(A, X, **TRACES[trace]) for A in (X, Z))
    expected = in_the_whole_space(function, K, k, residuals)
    error = np.abs(function.predict(Z) - expected).max() / np.abs(expected).max()
    mean = np.diagonal(K).mean()
    assert error <= max(1e-6, 4e-15 * max(mean, mean**2) / alpha)


# Extremes and errors


@pytest.mark.parametrize("ridge", RIDGES)
def test_one_distinct_prediction_shrinks_the_mean_residual(rng, ridge):
    """K = 1 1ᵀ: ĝ = δ̄ / (1 + λ), and ‖δ̄‖² / (1 + λ) in the tensor-product space."""
    residuals = rng.normal(size=(20, 3))
    X, alpha = np.tile([[0.2, 0.3, 0.5]], (20, 1)), 0.25
    function = ridge(alpha=alpha).fit(X, residuals)
    mean = (residuals.mean(axis=0) ** 2).sum()
    power = 1 if ridge is KroneckerKernelRidge else 2
    assert function.rank_ == 1
    assert_allclose(function.predict(X), mean / (1 + alpha) ** power, rtol=1e-12)


def test_kronecker_can_be_negative_and_two_step_cannot(tempered):
    proba, labels = tempered
    residuals = np.eye(4)[labels] - proba
    train, test = slice(300), slice(300, 1200)
    kronecker, two_step = (ridge(1e-8).fit(proba[train], residuals[train]) for ridge in RIDGES)
    assert kronecker.predict(proba[test]).min() < 0
    assert two_step.predict(proba[test]).min() >= 0


def test_kernels_that_are_none_raise():
    X, residuals = np.array([[0.2], [0.4]]), np.array([0.8, -0.4])
    for kernel, message in (
        ("gauss", "kernel"),
        (lambda X, Z: X @ Z.T - 1, "not positive semidefinite"),
        (lambda X, Z: np.ones(len(X)), "must return the matrix of values"),
        (lambda X, Z: np.full((len(X), len(Z)), np.nan), "must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            KroneckerKernelRidge(kernel=kernel).fit(X, residuals)


# Coordinates of the simplex, and the width of the median distance


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
