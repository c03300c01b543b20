"""The kernel density ratio against direct sums of the Dirichlet kernel."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln, logsumexp
from scipy.stats import dirichlet

from skcal import DirichletKernelDensity
from skcal.functions import dirichlet_sums
from skcal.functions.dirichlet_sums import loo_log_likelihoods
from skcal.functions.kernel_density import BANDWIDTHS


def sample(rng, n, d, concentration=0.8):
    """Predictions and residuals of outcomes drawn from them."""
    X = rng.dirichlet(np.full(max(d, 2), concentration), size=n)
    outcomes = np.eye(max(d, 2))[(X.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)]
    X, outcomes = (X[:, 1:], outcomes[:, 1:]) if d == 1 else (X, outcomes)
    return X, outcomes - X


def on_the_grid(rng, n, d, steps=20):
    """Rows of multiples of 1/steps, many of them 0, some vertices, and residuals."""
    X = rng.multinomial(steps, rng.dirichlet(np.full(max(d, 2), 0.3), size=n)) / steps
    outcomes = np.eye(max(d, 2))[rng.integers(0, max(d, 2), n)]
    X, outcomes = (X[:, 1:], outcomes[:, 1:]) if d == 1 else (X, outcomes)
    return X, outcomes - X


def full_point(p):
    return np.append(p, 1 - p) if len(p) == 1 else p


def naive_log_kernel(z, point, bandwidth, log_zero=None):
    """mathematics.md §7, one pair at a time, 0 · log 0 = 0; else log 0 is ``log_zero``."""
    z, point = full_point(z), full_point(point)
    total = gammaln(1 / bandwidth + len(point))
    for z_c, p_c in zip(z, point, strict=True):
        if p_c > 0:
            total += p_c / bandwidth * (log_zero if z_c == 0 else np.log(z_c))
        total -= gammaln(p_c / bandwidth + 1)
    return total


def naive_residual(Z, X, outcomes, bandwidth, log_zero=None):
    expected = []
    for z in Z:
        log_kernel = np.array([naive_log_kernel(z, point, bandwidth, log_zero) for point in X])
        expected.append(np.exp(log_kernel - logsumexp(log_kernel)) @ outcomes - z)
    return np.array(expected)


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("bandwidth", BANDWIDTHS[::3])
def test_residual_is_the_ratio_of_direct_sums(rng, d, bandwidth):
    X, residuals = sample(rng, 25, d)
    Z, _ = sample(rng, 12, d)
    function = DirichletKernelDensity(bandwidth).fit(X, residuals)
    expected = naive_residual(Z, X, X + residuals, bandwidth)
    # Exponents of some 1/b carry a rounding error of some 2e-16 / b.
    tolerance = 1e-12 + 2e-15 / bandwidth
    assert_allclose(function.residual(Z), expected, rtol=0, atol=tolerance)
    assert_allclose(function.predict(Z), (expected**2).sum(axis=1), rtol=0, atol=3 * tolerance)
    assert_allclose(function.predict_pairs(Z), expected @ expected.T, rtol=0, atol=3 * tolerance)


@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("bandwidth", [1e-4, 1e-2, 0.3])
def test_what_a_sum_leaves_out_is_nothing_beside_points_of_tiny_weight(rng, d, bandwidth):
    X, residuals = sample(rng, 60, d)
    Z, _ = sample(rng, 8, d)
    weight = 10.0 ** -rng.uniform(0, 15, 60)
    expected = []
    for z in Z:
        logs = np.array([naive_log_kernel(z, point, bandwidth) for point in X]) + np.log(weight)
        expected.append(np.exp(logs - logsumexp(logs)) @ (X + residuals) - z)
    function = DirichletKernelDensity(bandwidth).fit(X, residuals, weight)
    assert_allclose(function.residual(Z), expected, rtol=0, atol=1e-12 + 2e-15 / bandwidth)


# Zeros and ones


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("bandwidth", [1e-3, 1])
@pytest.mark.parametrize("draw", [sample, on_the_grid])
def test_zeros_of_a_query_mean_the_limit_of_small_probabilities(rng, d, bandwidth, draw):
    """Interior training points: none has density; on the grid: ties of least mass."""
    X, residuals = draw(rng, 25, d)
    Z = np.vstack([on_the_grid(rng, 30, d)[0], np.eye(max(d, 2))[:, -d:]])
    function = DirichletKernelDensity(bandwidth).fit(X, residuals)
    # z_c = exp(-1e8 b) suppresses a point with 1e-5 more mass on the zeros by e^-1000, and the
    # exponents, up to 1e8, carry rounding errors of some 1e-8.
    expected = naive_residual(Z, X, X + residuals, bandwidth, log_zero=-1e8 * bandwidth)
    assert_allclose(function.residual(Z), expected, rtol=0, atol=1e-6)


def test_a_point_with_little_mass_on_a_zero_is_the_limit_at_1e_200():
    X = np.array([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4], [0.1, 0.2, 0.7]])
    outcomes = np.eye(3)
    function = DirichletKernelDensity(0.02).fit(X, outcomes - X)
    Z = np.array([[0.4, 0.6, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    tiny = naive_residual(Z, X, outcomes, 0.02, log_zero=np.log(1e-200))
    assert_allclose(function.residual(Z), tiny, rtol=0, atol=1e-12)
    assert_allclose(function.residual(Z), outcomes[[0, 0, 2]] - Z, rtol=0, atol=1e-12)


def test_points_that_share_the_least_mass_keep_their_other_terms():
    # The first two have mass 0.3 on the zeros of z, 0.1 + 0.2 = 0.30000000000000004 in float64;
    # the remaining terms of log K, with b = 1 and log z = 0, differ by the normalisation alone.
    X = np.array([[0.7, 0.1, 0.2], [0.7, 0.3, 0.0], [0.2, 0.4, 0.4]])
    function = DirichletKernelDensity(1.0).fit(X, np.eye(3) - X)
    weight = np.exp(-gammaln(X[:2] + 1).sum(axis=1))
    expected = np.append(weight / weight.sum(), 0) - [1, 0, 0]
    assert_allclose(function.residual([[1.0, 0.0, 0.0]])[0], expected, atol=1e-12)


@pytest.mark.parametrize("bandwidth", [1e-5, 0.02, 1.0, "loo"])
@pytest.mark.parametrize("d", [1, 2, 3, 1000])
def test_no_point_of_the_simplex_gives_nan_or_infinity(rng, d, bandwidth):
    width = max(d, 2)
    vertices, centre = np.eye(width)[:5], np.full((1, width), 1 / width)
    sparse_rows = rng.dirichlet(np.full(width, 0.01), size=10)
    close = np.where(vertices == 1, 1 - 1e-16, 1e-300)
    Z = np.vstack([vertices, centre, sparse_rows, close])
    Z = Z[:, 1:] if d == 1 else Z
    outcomes = np.eye(width)[rng.integers(0, width, len(Z))]
    outcomes = outcomes[:, 1:] if d == 1 else outcomes
    for rows in (slice(None), slice(5), slice(5, 6), slice(6, 16)):
        function = DirichletKernelDensity(bandwidth)
        if bandwidth == "loo" and len(Z[rows]) < 2:
            function.set_params(bandwidth=1e-5)
        function.fit(Z[rows], (outcomes - Z)[rows])
        frequency = function.residual(Z) + Z
        assert np.isfinite(frequency).all()
        assert frequency.min() >= -1e-12
        assert frequency.max() <= 1 + 1e-12
        if d > 1:
            assert_allclose(frequency.sum(axis=1), 1, rtol=1e-12)


# Invariances


@pytest.mark.parametrize("d", [1, 3])
def test_blocks_do_not_change_the_result(rng, d, monkeypatch):
    X, residuals = on_the_grid(rng, 50, d)
    function = DirichletKernelDensity("loo").fit(X, residuals)
    whole = function.residual(X), loo_log_likelihoods(X, BANDWIDTHS, np.ones(50))
    for rows in (1, 7):
        monkeypatch.setattr(dirichlet_sums, "_WEIGHT_BYTES", 8 * 50 * rows)
        assert_allclose(function.residual(X), whole[0], atol=1e-13)
        assert_allclose(loo_log_likelihoods(X, BANDWIDTHS, np.ones(50)), whole[1], rtol=1e-12)


def test_float32_predictions_are_stored_and_read_as_they_are(rng):
    X, residuals = sample(rng, 30, 3)
    X32 = X.astype(np.float32)
    single = DirichletKernelDensity(0.02).fit(X32, np.round(X + residuals) - X32)
    exact = DirichletKernelDensity(0.02).fit(X32.astype(float), np.round(X + residuals) - X32)
    assert single.proba_.dtype == np.float32
    assert_allclose(single.residual(X32), exact.residual(X32.astype(float)), atol=1e-14)


# Bandwidth by leave-one-out likelihood


def naive_loo(X, bandwidth):
    """Σ_i log 1/(n-1) Σ_{j≠i} K_b(p_i; p_j), points of density 0 left out."""
    total = 0.0
    for i, z in enumerate(X):
        log_kernel = [
            naive_log_kernel(z, p, bandwidth)
            for j, p in enumerate(X)
            if j != i and not (full_point(p)[full_point(z) == 0] > 0).any()
        ]
        total += logsumexp(log_kernel) if log_kernel else 0.0
    return total - len(X) * np.log(len(X) - 1)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("draw", [sample, on_the_grid])
def test_bandwidth_is_the_leave_one_out_maximiser_on_the_grid(rng, d, draw):
    X, residuals = draw(rng, 10, d)
    expected = np.array([naive_loo(X, bandwidth) for bandwidth in BANDWIDTHS])
    assert_allclose(loo_log_likelihoods(X, BANDWIDTHS, np.ones(10)), expected, rtol=1e-9)
    function = DirichletKernelDensity("loo").fit(X, residuals)
    assert function.bandwidth_ == BANDWIDTHS[np.argmax(expected)]


def test_weights_of_the_likelihood_count_copies_of_which_one_is_left_out(rng):
    X, _ = sample(rng, 8, 3)
    counts = rng.integers(1, 4, 8)
    expected = [naive_loo(X.repeat(counts, axis=0), bandwidth) for bandwidth in BANDWIDTHS]
    assert_allclose(loo_log_likelihoods(X, BANDWIDTHS, counts.astype(float)), expected, rtol=1e-9)


def test_isolated_points_say_nothing_about_the_bandwidth(rng):
    """A vertex among interior points has density 0 under every bandwidth."""
    X, residuals = sample(rng, 60, 3, concentration=5.0)
    vertex = np.eye(3)[:1]
    likelihood = loo_log_likelihoods(np.vstack([X, vertex]), BANDWIDTHS, np.ones(61))
    assert np.isfinite(likelihood).all()
    alone = DirichletKernelDensity("loo").fit(X, residuals)
    beside = DirichletKernelDensity("loo").fit(
        np.vstack([X, vertex]), np.vstack([residuals, 0 * vertex])
    )
    assert beside.bandwidth_ == alone.bandwidth_ < 0.1


# Errors


@pytest.mark.parametrize("weight", [[1.0, 0.0], [0.5, 0.0]])
def test_leave_one_out_needs_two_samples(weight):
    with pytest.raises(ValueError, match="at least 2 training samples"):
        DirichletKernelDensity("loo").fit([[0.2], [0.4]], [0.8, -0.4], weight)


def test_residuals_have_a_column_for_each_of_the_predictions():
    with pytest.raises(ValueError, match="y has 1 columns, X has 2"):
        DirichletKernelDensity().fit([[0.2, 0.8], [0.4, 0.6]], [0.8, 0.6])


@pytest.mark.parametrize("outcome", [[1.1], [2.0], [-1.0], [1, 1], [0, 0], [0.5, 0.7], [2, -1]])
def test_residuals_that_make_no_outcome_raise(outcome):
    X = np.tile([[0.2], [0.4]], len(outcome))
    valid = np.eye(2)[:1, : len(outcome)]
    with pytest.raises(ValueError, match="X row 1 and y row 1 add up to"):
        DirichletKernelDensity().fit(X, np.vstack([valid, [outcome]]) - X)


def test_sums_by_class_are_the_ratios_of_their_definition(rng):
    X = rng.dirichlet(np.full(30, 0.2), 50)
    outcomes = np.eye(30)[rng.integers(0, 25, 50)]
    weight = rng.uniform(0.1, 2, 50)
    function = DirichletKernelDensity(0.3).fit(X, outcomes - X, weight)
    z = rng.dirichlet(np.full(30, 0.5), 5)
    for row, found in zip(z, function.residual(z), strict=True):
        kernel = np.array([dirichlet.pdf(row, p / 0.3 + 1) for p in X]) * weight
        assert_allclose(found, kernel @ outcomes / kernel.sum() - row, rtol=1e-9, atol=1e-12)
