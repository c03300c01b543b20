"""Interpolated sums of Beta kernels against the direct ones."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import skcal.functions.dirichlet_sums as dirichlet_sums
from skcal import DirichletKernelDensity
from skcal.functions.beta_sums import _NODES, beta_sums, log_peak
from skcal.functions.dirichlet_sums import (
    _TrainingPoints,
    _weights,
    leave_one_out_residuals,
    loo_log_likelihoods,
)
from skcal.functions.kernel_density import BANDWIDTHS

SHAPES = {
    "uniform": lambda rng, n: rng.random(n),
    "confident": lambda rng, n: 1 - 0.9 * rng.beta(0.3, 3, n),
    "both ends": lambda rng, n: rng.beta(0.1, 0.1, n),
    "grid": lambda rng, n: rng.integers(0, 11, n) / 10,
    "gap": lambda rng, n: (
        np.where(rng.random(n) < 0.5, 0.1, 0.02) * rng.random(n) + 0.7 * (rng.random(n) < 0.5)
    ),
    "one value": lambda rng, n: np.full(n, 0.3),
    "masses at 0 and 1": lambda rng, n: np.clip(rng.normal(0.5, 0.5, n), 0, 1),
}


def draw(shape, n, seed):
    """Points (n, 1) with outcomes and weights of 1 to 3."""
    rng = np.random.default_rng(seed)
    p = SHAPES[shape](rng, n)[:, None]
    outcomes = (rng.random((n, 1)) < p).astype(float)
    return p, outcomes, rng.integers(1, 4, n).astype(float)


def queries(shape):
    """Queries like the points, anywhere, and as close to 0 and 1 as floats come."""
    rng = np.random.default_rng(7)
    ends = 10.0 ** -rng.uniform(1, 300, 40)
    z = np.concatenate([SHAPES[shape](rng, 300), rng.random(200), ends, 1 - ends[ends > 1e-16]])
    return z[(z > 0) & (z < 1)][:, None]


def pair(z):
    return np.hstack([z, 1 - z])


def exponents(z, p, bandwidth):
    train = _TrainingPoints(p)
    return train.products(z) / bandwidth + train.log_norm(bandwidth)


def direct_sums(z, p, charges, bandwidth):
    train = _TrainingPoints(p)
    return _weights(train.products(z), bandwidth, train.log_norm(bandwidth))[0] @ charges


def ratios(sums):
    return sums[:, 0] / sums[:, 1]


@pytest.mark.parametrize(
    "bandwidths",
    [[1e-7], BANDWIDTHS[8:9], [10.0], [1e-7, *BANDWIDTHS[::6], 10.0], [*BANDWIDTHS[8::6], 10.0]],
    ids=["narrow", "middle", "wide", "all", "without narrow ones"],
)
@pytest.mark.parametrize("shape", SHAPES)
def test_interpolated_ratios_of_one_or_many_bandwidths_are_the_direct_ones(shape, bandwidths):
    p, outcomes, weight = draw(shape, 1000, seed=5)
    z = queries(shape)
    charges = weight[:, None] * np.hstack([outcomes, np.ones_like(outcomes)])
    path = beta_sums(pair(z), [(pair(p), charges)], bandwidths)
    for bandwidth, [found] in zip(bandwidths, path, strict=True):
        direct = direct_sums(z, p, charges, bandwidth)
        # At 1e-7 the exponents of both reach 1e8 and are known to 1e-8 only.
        tolerance = 1e-9 if bandwidth > 1e-6 else 1e-7
        assert_allclose(ratios(found), ratios(direct), rtol=0, atol=tolerance)


@pytest.mark.parametrize("bandwidth", [1e-5, 1e-3, 0.1, 1.0])
def test_sums_near_points_are_scaled_by_the_peak(bandwidth):
    p, _, weight = draw("uniform", 2000, seed=1)
    z = p[:100]
    peaks = np.diagonal(exponents(z, z, bandwidth))
    expected = np.exp(exponents(z, p, bandwidth) - peaks[:, None]) @ weight
    [[found]] = beta_sums(pair(z), [(pair(p), weight[:, None])], [bandwidth])
    assert_allclose(found[:, 0], expected, rtol=1e-8)
    differences = log_peak(pair(z), bandwidth) - peaks
    assert_allclose(differences, differences[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", ["confident", "gap", "masses at 0 and 1"])
def test_estimates_do_not_depend_on_the_way_sums_are_made(shape, monkeypatch):
    p, outcomes, weight = draw(shape, 1500, seed=2)
    bandwidths = BANDWIDTHS[[0, 9, 19]]

    def estimates():
        for bandwidth in bandwidths:
            function = DirichletKernelDensity(bandwidth).fit(p, outcomes - p, sample_weight=weight)
            yield function.residual(p)
            yield leave_one_out_residuals(p, outcomes, weight, bandwidth)
        yield loo_log_likelihoods(p, bandwidths, weight)

    interpolated = list(estimates())
    monkeypatch.setattr(dirichlet_sums, "_MANY_PAIRS", np.inf)
    for fast, direct in zip(interpolated, estimates(), strict=True):
        assert_allclose(fast, direct, rtol=1e-8, atol=1e-8)


def test_memory_grows_with_samples_not_with_pairs():
    p, outcomes, weight = draw("uniform", 40_000, seed=4)
    charges = weight[:, None] * np.hstack([outcomes, np.ones_like(outcomes)])
    tracemalloc.start()
    for _ in beta_sums(pair(p), [(pair(p), charges)], [1e-4, 1e-1]):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40_000 * 8 * 4 * _NODES  # pairs would be 13 GB


@pytest.fixture
def direct_rows(monkeypatch):
    """How many rows were summed directly over all points."""
    rows = []
    raw = _TrainingPoints.raw_products
    monkeypatch.setattr(
        _TrainingPoints,
        "raw_products",
        lambda self, z, *out: rows.append(len(z)) or raw(self, z, *out),
    )
    return rows


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_samples_at_0_and_1_are_summed_once_a_value(direct_rows, scale):
    p, outcomes, weight = draw("masses at 0 and 1", 4000, seed=6)
    weight = scale * weight
    assert np.isin(p, [0, 1]).sum() > 1000
    function = DirichletKernelDensity().fit(p, outcomes - p, sample_weight=weight)
    function._residuals(p, BANDWIDTHS[:3])
    leave_one_out_residuals(p, outcomes, weight, 0.01)
    if scale == 1:
        loo_log_likelihoods(p, BANDWIDTHS[:3], weight)
    assert sum(direct_rows) < 100


@pytest.mark.parametrize("many", [True, False])
@pytest.mark.parametrize("bandwidth", [1e-3, 0.3])
def test_leaving_out_equals_removing_the_sample(monkeypatch, bandwidth, many):
    p, outcomes, _ = draw("masses at 0 and 1", 60, seed=7)
    p[:6], p[6:8], p[8:10] = 0.25, 0.75, 1e-12
    weight = np.random.default_rng(0).choice([0.1, 0.5, 1.0], 60)
    weight[0], weight[6] = 1e-9, 1e-9  # beside a weight of 1 nothing is left of its value
    monkeypatch.setattr(dirichlet_sums, "_MANY_PAIRS", 0 if many else np.inf)
    found = leave_one_out_residuals(p, outcomes, weight, bandwidth)
    for row in range(60):
        others = np.arange(60) != row
        function = DirichletKernelDensity(bandwidth)
        function.fit(p[others], (outcomes - p)[others], sample_weight=weight[others])
        assert_allclose(found[row], function.residual(p[[row]])[0], rtol=1e-7, atol=1e-9)


def test_leaving_out_the_only_point_with_these_zeros_falls_back_on_the_least_mass():
    p = np.array([[0.0, 0.4, 0.6], [0.1, 0.4, 0.5], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    outcomes = np.eye(3)[[1, 1, 0, 2]]
    found = leave_one_out_residuals(p, outcomes, np.ones(4), 0.1)
    function = DirichletKernelDensity(0.1).fit(p[1:], (outcomes - p)[1:])
    assert_allclose(found[0], function.residual(p[:1])[0], rtol=1e-12)


@pytest.mark.parametrize("many", [True, False])
def test_leave_one_out_likelihood_of_fractional_weights(monkeypatch, many):
    p, _, _ = draw("masses at 0 and 1", 80, seed=8)
    weight = np.random.default_rng(0).uniform(0.2, 2.5, 80)
    kernel = np.exp(exponents(p, p, 0.05))
    density = kernel @ weight - np.minimum(weight, 1) * np.diagonal(kernel)
    expected = weight @ np.log(density) - weight.sum() * np.log(weight.sum() - 1)
    monkeypatch.setattr(dirichlet_sums, "_MANY_PAIRS", 0 if many else np.inf)
    assert_allclose(loo_log_likelihoods(p, [0.05], weight), [expected], rtol=1e-9)
