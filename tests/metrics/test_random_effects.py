"""Variation of O/E ratios between subgroups."""

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import null_space

from skcal import calibration_report
from skcal.metrics.random_effects import heterogeneity_of_ratios, restricted_likelihood_variance
from skcal.report.compare import heterogeneity
from skcal.sample import read_sample


def drawn(seed, n=8, between=0.3):
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.005, 0.1, n)
    return rng.normal(-0.2, np.sqrt(between**2 + spread)), spread


@pytest.mark.parametrize("between", [0.0, 0.1, 0.5])
def test_the_variance_has_the_largest_density_of_contrasts(between):
    """Twin: the likelihood of n - 1 contrasts, whose law does not depend on the mean, on a grid."""
    for seed in range(20):
        values, spread = drawn(seed, between=between)
        contrasts = null_space(np.ones((1, len(values))))
        found = restricted_likelihood_variance(values, spread)

        grid = np.array([found, max(found - 1e-4, 0), found + 1e-4, *np.linspace(0, 2, 401)])
        laws = contrasts.T @ (np.eye(len(values)) * (grid[:, None, None] + spread)) @ contrasts
        seen = np.broadcast_to(contrasts.T @ values, laws.shape[:2])[..., None]
        squares = (seen * np.linalg.solve(laws, seen)).sum(axis=(1, 2))
        density = -(np.linalg.slogdet(laws).logabsdet + squares) / 2  # but for a constant
        assert density[0] >= density.max() - 1e-9


def test_equal_sampling_variances_have_a_closed_form():
    """τ² is the variance of the values less the sampling variance, and μ their mean."""
    observed, expected = np.array([50, 60, 90, 120, 200.0]), np.full(5, 100.0)
    found = heterogeneity_of_ratios("site", observed, expected, 0.01 * observed**2, 0.9)
    logs = np.log(observed / expected)
    between = logs.var(ddof=1) - 0.01
    assert found.standard_deviation == pytest.approx(np.sqrt(between), rel=1e-5)
    error = np.sqrt(between + logs.var(ddof=1) / 5)
    ends = np.exp(logs.mean() + stats.t(3).isf(0.05) * error * np.array([-1, 0, 1]))
    np.testing.assert_allclose([found.low, found.ratio, found.high], ends, rtol=1e-5)


def test_prediction_intervals_hold_new_centres():
    """If 95 % are held, fewer than 368 of 400 are with a probability of 0.5 %."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        sizes = rng.integers(200, 2000, 8)
        rate = 0.1 * np.exp(rng.normal(-0.1, 0.35, 9))
        events = rng.binomial(sizes, rate[:8])
        variance = events * (1 - events / sizes)
        found = heterogeneity_of_ratios("", events, 0.1 * sizes, variance, 0.95)
        held += found.low <= rate[8] / 0.1 <= found.high
    assert held >= 368


@pytest.mark.usefixtures("few_draws")
def test_a_report_of_five_centres_predicts_a_new_one():
    rng = np.random.default_rng(0)
    n, centre = 500, np.arange(500) % 5
    p = rng.beta(1, 4, n)
    y = rng.random(n) < np.clip(p * np.array([0.5, 0.8, 1, 1.3, 1.8])[centre], 0, 1)
    report = calibration_report(y, p, n_resamples=19, by={"centre": centre})
    [found] = report.heterogeneity
    sample = read_sample(y, p)
    assert heterogeneity({"ward": centre % 4}, sample, sample, 0.95) == []  # four are too few
    observed = np.bincount(centre, y)
    variance = observed * (1 - observed / 100)
    expected = heterogeneity_of_ratios("centre", observed, np.bincount(centre, p), variance, 0.95)
    assert vars(found) == pytest.approx(vars(expected))
    assert found.sentence() in report._repr_html_()
    assert report.to_dict()["heterogeneity"][0]["low"] == found.low


def test_a_centre_without_events_counts():
    found = heterogeneity_of_ratios("", [0, 5, 8, 3, 4], [4] * 5, [0, 5, 8, 3, 4], 0.95)
    assert 0 < found.low < found.ratio < found.high < np.inf
