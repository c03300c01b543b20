"""The kernel-density calibration error against a double loop over log kernels."""

import tracemalloc
from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln, logsumexp
from scipy.stats import beta

from skcal import DirichletKernelDensity
from skcal.metrics import kernel_density_calibration_error
from skcal.notions import make_problems


def first_or_other(proba):
    """A lens."""
    return np.tile([0, 1, 1], (len(proba), 1))


NOTIONS = ["binary", "confidence", "classwise", "top-label", "canonical", "top-1", first_or_other]


def draw(notion, kind, n=18):
    """Labels and predictions: one column for "binary", three for the others."""
    rng = np.random.default_rng(5)
    proba = rng.dirichlet(np.full(3, 0.7), size=n)
    if kind == "grid":  # zeros, vertices and ties
        proba = rng.multinomial(10, proba) / 10
    labels = rng.integers(0, 3, n)
    return (labels // 2, proba[:, 0]) if notion == "binary" else (labels, proba)


def log_kernel(z, p, bandwidth):
    """log K_b(z; p) on the coordinates where z > 0."""
    inside = z > 0
    slope = p[inside] @ np.log(z[inside]) / bandwidth
    return slope + gammaln(1 / bandwidth + len(p)) - gammaln(p / bandwidth + 1).sum()


def naive_residual(i, points, outcomes, weight, bandwidth):
    """ĝ at point i from the others, and the other copies of i if its weight is more than 1."""
    mass = weight.copy()
    mass[i] = max(weight[i] - 1, 0)
    others = np.flatnonzero(mass)
    # K = Π z_c^(p_c / b) …: only the points with the least Σ p_c over z_c = 0 keep a weight.
    lost = np.array([points[j][points[i] == 0].sum() for j in others])
    others = others[lost <= lost.min() + 1e-14]
    log_weight = [log_kernel(points[i], points[j], bandwidth) + np.log(mass[j]) for j in others]
    share = np.exp(log_weight - logsumexp(log_weight))
    return sum(s * outcomes[j] for s, j in zip(share, others, strict=True)) - points[i]


def naive_error(features, outcomes, q, bandwidth, weight=None):
    """mean_i ‖ĝ_{-i}(x_i)‖_q^q; a scalar problem is the first of two coordinates."""
    d = features.shape[1]
    weight = np.ones(len(features)) if weight is None else weight
    if d == 1:
        features, outcomes = (np.hstack([a, 1 - a]) for a in (features, outcomes))
    residuals = [
        naive_residual(i, features, outcomes, weight, bandwidth)[:d] for i in range(len(features))
    ]
    return weight @ (np.abs(residuals) ** q).sum(axis=1) / weight.sum()


def problems(y, proba, notion):
    for x, residuals, *_, rows in make_problems(proba, y, notion):
        yield x, np.rint(x + residuals), 1 if isinstance(rows, slice) else len(rows) / len(y)


@pytest.mark.parametrize("kind", ["spread", "grid"])
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize(("bandwidth", "q"), [(1e-3, 2), (0.02, 1), (1, 3.5)])
def test_the_error_is_the_mean_of_leave_one_out_residuals(notion, kind, bandwidth, q):
    y, proba = draw(notion, kind)
    options = {"notion": notion, "norm": q, "bandwidth": bandwidth}
    error = kernel_density_calibration_error(y, proba, **options)
    expected = sum(
        share * naive_error(x, outcomes, q, bandwidth)
        for x, outcomes, share in problems(y, proba, notion)
    )
    assert_allclose(error, expected ** (1 / q), rtol=1e-9)
    power = kernel_density_calibration_error(y, proba, root=False, **options)
    assert_allclose(power, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["spread", "grid"])
@pytest.mark.parametrize("notion", ["binary", "canonical"])
def test_a_weight_counts_copies_of_which_one_is_left_out(notion, kind):
    y, proba = draw(notion, kind)
    metric = partial(kernel_density_calibration_error, notion=notion, norm=2, root=False)
    [(x, outcomes, _)] = problems(y, proba, notion)
    times = np.random.default_rng(1).integers(0, 4, size=len(y))
    weighted = metric(y, proba, sample_weight=times)
    assert abs(weighted - metric(y, proba)) > 1e-3
    repeated = metric(y.repeat(times), proba.repeat(times, axis=0))
    rows = np.repeat(np.arange(len(y)), times)
    assert_allclose(weighted, repeated, rtol=1e-9)
    assert_allclose(weighted, naive_error(x[rows], outcomes[rows], 2, 0.02), rtol=1e-9)
    fractions = np.random.default_rng(2).uniform(0.1, 2.5, size=len(y))
    weighted = metric(y, proba, sample_weight=fractions)
    assert_allclose(weighted, naive_error(x, outcomes, 2, 0.02, fractions), rtol=1e-9)


def test_the_kernel_is_the_beta_density_of_scipy():
    p, y = np.array([0.2, 0.3, 0.7, 0.9]), np.array([0, 1, 0, 1])
    density = np.array([beta.pdf(p, x / 0.1 + 1, (1 - x) / 0.1 + 1) for x in p])
    np.fill_diagonal(density, 0)
    expected = np.abs(y @ density / density.sum(axis=0) - p).mean()
    assert_allclose(kernel_density_calibration_error(y, p, bandwidth=0.1), expected, rtol=1e-12)


# Zeros, copies and few samples


def test_the_row_itself_is_left_out_of_the_limit_at_a_zero():
    """Of the other two, 0.6 has less mass on the zero of 1 - p: its outcome counts alone."""
    p = [1.0, 0.6, 0.5]
    error = kernel_density_calibration_error([0, 1, 0], p, bandwidth=1e-3)
    assert_allclose(error, np.mean([1 - 1, 0.6 - 0, 1 - 0.5]), rtol=1e-12)
    twice = kernel_density_calibration_error([0, 1, 0], p, bandwidth=1e-3, sample_weight=[2, 1, 1])
    assert_allclose(twice, np.mean([1, 1, 0.6 - 0, 1 - 0.5]), rtol=1e-12)


@pytest.mark.parametrize(
    ("n_classes", "bandwidth"),
    [
        *product([2, 3], [1e-7, 1e10, "loo"]),
        (200, 1e-7),
        pytest.param(1000, "loo", marks=pytest.mark.slow),
    ],
)
def test_extreme_predictions_have_finite_errors(bandwidth, n_classes):
    rng = np.random.default_rng(0)
    vertices = np.eye(n_classes)[rng.integers(0, n_classes, 8)]
    sparse = rng.dirichlet(np.full(n_classes, 0.01), size=8)
    proba = np.vstack([vertices, sparse, np.full((1, n_classes), 1 / n_classes)])
    y = rng.integers(0, n_classes, len(proba))
    for notion in ("canonical", "classwise", "confidence"):
        error = kernel_density_calibration_error(y, proba, notion=notion, bandwidth=bandwidth)
        assert 0 <= error <= 2


def test_classes_that_are_all_predicted_once_are_refused():
    with pytest.raises(ValueError, match="too few samples of every class"):
        kernel_density_calibration_error([0, 1, 2], np.eye(3), notion="top-label")


# Bandwidth by leave-one-out likelihood


@pytest.mark.parametrize("kind", ["spread", "grid"])
@pytest.mark.parametrize("notion", ["binary", "confidence", "canonical", "classwise"])
def test_loo_takes_the_bandwidth_of_the_estimator_for_each_problem(notion, kind):
    y, proba = draw(notion, kind)
    metric = partial(kernel_density_calibration_error, y, proba, notion=notion, average=None)
    chosen = [
        DirichletKernelDensity("loo").fit(x, outcomes - x).bandwidth_
        for x, outcomes, _ in problems(y, proba, notion)
    ]
    each = [metric(bandwidth=b)[k] for k, b in enumerate(chosen)]
    np.testing.assert_array_equal(metric(bandwidth="loo"), each)
    assert not np.allclose(metric(bandwidth="loo"), metric(), rtol=1e-3)


# Refusals and cost


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"norm": 0.5}, "'norm'"),
        ({"norm": np.inf}, "'norm'"),
        ({"bandwidth": 0}, "'bandwidth'"),
        ({"sample_weight": [1, 0]}, r"1 sample\(s\) of positive weight"),
    ],
)
def test_what_is_no_error_is_refused(options, match):
    with pytest.raises(ValueError, match=match):
        kernel_density_calibration_error([0, 1], [0.2, 0.7], **options)


def test_no_array_over_pairs_is_formed():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=5000)
    tracemalloc.start()
    kernel_density_calibration_error(rng.integers(0, 3, 5000), proba, notion="canonical")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6  # n² numbers take 200 MB
