"""Variation of O/E ratios between subgroups."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import null_space
from scipy.special import expit

from skcal import calibration_report
from skcal.metrics.validation import Measure
from skcal.report.centres import (
    heterogeneity,
    heterogeneity_of_limits,
    heterogeneity_of_ratios,
    marginal_likelihood,
    restricted_likelihood_variance,
)
from skcal.report.compare import split
from skcal.report.findings import Overview, ReportSamples
from skcal.report.rows import _shown_ratio, subgroups_table
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
    slopes = np.array([0.6, 0.8, 0.9, 1.2, 1.6])
    half = stats.norm.isf(0.05) * 0.1
    found = heterogeneity_of_limits(
        "site", "calibration slope", slopes, slopes - half, slopes + half, 0.9
    )
    between = slopes.var(ddof=1) - 0.01
    assert found.standard_deviation == pytest.approx(np.sqrt(between), rel=1e-5)
    error = np.sqrt(between + slopes.var(ddof=1) / 5)
    ends = slopes.mean() + stats.t(3).isf(0.05) * error * np.array([-1, 0, 1])
    np.testing.assert_allclose([found.low, found.estimate, found.high], ends, rtol=1e-5)
    areas = expit(slopes)
    other = heterogeneity_of_limits(
        "site", "C-statistic", areas, expit(slopes - half), expit(slopes + half), 0.9
    )
    np.testing.assert_allclose([other.low, other.estimate, other.high], expit(ends), rtol=1e-5)


def test_many_events_are_normal_on_the_scale_of_logarithms():
    observed, expected = np.array([50, 60, 90, 120, 200.0]) * 1e4, np.full(5, 1e6)
    found = heterogeneity_of_ratios("", observed, expected, observed, 0.9)
    logs = np.log(observed / expected)
    half = stats.norm.isf(0.05) / np.sqrt(observed)
    other = heterogeneity_of_limits("", "calibration slope", logs, logs - half, logs + half, 0.9)
    assert found.standard_deviation == pytest.approx(other.standard_deviation, rel=1e-3)
    ends = np.exp([other.low, other.estimate, other.high])
    np.testing.assert_allclose([found.low, found.estimate, found.high], ends, rtol=1e-3)


@pytest.mark.parametrize("between", [1e-4, 0.05, 1.0, 9.0])
def test_the_likelihood_is_an_integral_and_has_these_derivatives(between):
    events, offset = np.array([0.0, 3.0, 40.0, 900.0]), np.array([12.6, 2.0, 95.0, 700.0])

    def value(mean):
        def inner(theta, k):
            peak = events[k] * np.log(max(events[k], 1e-9)) - events[k]
            of_events = events[k] * (theta + np.log(offset[k])) - offset[k] * np.exp(theta) - peak
            return np.exp(of_events) * stats.norm.pdf(theta, mean, np.sqrt(between))

        total = 0.0
        for k, (n, e) in enumerate(zip(events, offset, strict=True)):
            peak = n * np.log(max(n, 1e-9)) - n
            grid = mean + np.sqrt(between) * np.linspace(-9, 9, 40_001)
            total += np.log(np.trapezoid(inner(grid, k), grid)) + peak - n * np.log(e)
        return total

    for mean in (-0.4, 0.2):
        found, score, information = marginal_likelihood(mean, between, events, offset)
        near = [value(mean + h) for h in (-1e-3, 0, 1e-3)]
        assert found == pytest.approx(near[1], rel=1e-6)
        assert score == pytest.approx((near[2] - near[0]) / 2e-3, rel=2e-3, abs=1e-3)
        curvature = (2 * near[1] - near[0] - near[2]) / 1e-6
        assert information == pytest.approx(curvature, rel=1e-2, abs=1e-2)


def adjusted_likelihood(tau, observed, expected, sizes):
    """Of a binomial-normal model, less the information about μ; and exp(μ). All by grids."""
    theta, means = np.linspace(-12, 5, 1701), np.linspace(-2.5, 1, 176)
    rates = np.minimum(np.exp(theta) * (expected / sizes)[:, None], 1 - 1e-12)
    of_theta = observed[:, None] * np.log(rates) + (sizes - observed)[:, None] * np.log1p(-rates)
    of_theta -= of_theta.max(axis=1, keepdims=True)
    logs = np.log(np.exp(of_theta) @ stats.norm.pdf(theta[:, None], means, tau)).sum(axis=0)
    k, step = int(np.argmax(logs)), means[1] - means[0]
    curvature = (2 * logs[k] - logs[k - 1] - logs[k + 1]) / step**2
    return 2 * logs[k] - np.log(curvature), np.exp(means[k])


@pytest.mark.parametrize(
    "observed",
    [
        [0, 13, 12, 14, 11, 13],
        [0, 6, 19, 9, 25, 11, 3],
        [1, 0, 2, 9, 1, 4, 0, 3],
        [4, 1, 23, 0, 62, 12],
    ],
)
def test_it_is_the_maximum_of_a_binomial_normal_likelihood(observed):
    observed = np.array(observed, float)
    data = observed, np.linspace(6, 14, len(observed)), np.full(len(observed), 3000.0)
    variance = observed * (1 - observed / data[2])
    found = heterogeneity_of_ratios("", observed, data[1], variance, 0.95)
    value, ratio = adjusted_likelihood(found.standard_deviation, *data)
    assert found.estimate == pytest.approx(ratio, rel=0.02)  # a step of the grid
    others = [adjusted_likelihood(tau, *data)[0] for tau in np.linspace(0.05, 3, 12)]
    assert value >= max(others) - 1e-3
    near = [adjusted_likelihood(found.standard_deviation * f, *data)[0] for f in (0.9, 1.1)]
    assert value > max(near)


def test_fewer_events_of_a_centre_are_a_larger_deviation():
    deviations = []
    for few in (0, 1, 2, 5, 20, 60, 95):
        observed = np.array([few, 95, 97, 90, 99, 93.0])
        found = heterogeneity_of_ratios("", observed, [95] * 6, observed, 0.95)
        deviations.append(found.standard_deviation)
    assert (np.diff(deviations) < 0).all() or deviations[-2:] == [0, 0]
    assert deviations[0] > 2
    assert deviations[-1] < 0.01
    assert heterogeneity_of_ratios("", [0] * 6, [9] * 6, [0] * 6, 0.95) is None


def test_dependent_events_count_less():
    observed = np.array([5, 8, 14, 3, 12, 9.0])
    alone, together = (
        heterogeneity_of_ratios("", observed, [8.0] * 6, effect * observed, 0.95)
        for effect in (1, 4)
    )
    assert alone.standard_deviation > together.standard_deviation


@pytest.mark.parametrize("rate", [0.1, 0.02])
def test_prediction_intervals_hold_new_centres(rate):
    """If 95 % are held, fewer than 134 of 150 are with a probability of 0.3 %."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(150):
        sizes = rng.integers(200, 2000, 8)
        rates = rate * np.exp(rng.normal(-0.1, 0.35, 9))
        events = rng.binomial(sizes, rates[:8])
        variance = events * (1 - events / sizes)
        found = heterogeneity_of_ratios("", events, rate * sizes, variance, 0.95)
        held += found.low <= rates[8] / rate <= found.high
    assert held >= 134


@pytest.mark.usefixtures("few_draws")
def test_a_report_of_five_centres_predicts_a_new_one():
    rng = np.random.default_rng(0)
    n, centre = 500, np.arange(500) % 5
    p = rng.beta(1, 4, n)
    y = rng.random(n) < np.clip(p * np.array([0.5, 0.8, 1, 1.3, 1.8])[centre], 0, 1)
    report = calibration_report(y, p, n_resamples=19, by={"centre": centre})
    found, *others = report.heterogeneity
    assert [other.measure for other in others] == ["calibration slope", "C-statistic"]
    sample = read_sample(y, p)
    four = split({"ward": centre % 4}, sample, ReportSamples.of(sample))
    assert heterogeneity(four, report.subgroups, 0.95) == []
    observed = np.bincount(centre, y)
    variance = observed * (1 - observed / 100)
    expected = heterogeneity_of_ratios("centre", observed, np.bincount(centre, p), variance, 0.95)
    assert vars(found) == pytest.approx(vars(expected))
    for k, other in enumerate(report.heterogeneity):
        assert other.sentence() in report._repr_html_().replace("\xa0", " ")
        assert report.to_dict()["heterogeneity"][k]["low"] == other.low
    for other, field in zip(others, ("slope", "c_statistic"), strict=True):
        measures = [getattr(part.validation, field) for part in report.subgroups]
        about = "centre", other.measure, *np.transpose(measures)
        assert vars(other) == pytest.approx(vars(heterogeneity_of_limits(*about, 0.95)))


@pytest.mark.usefixtures("few_draws")
def test_rows_without_events_and_of_few_groups_say_so():
    rng = np.random.default_rng(1)
    centre = np.repeat(np.arange(6), 60)
    p = np.where(centre == 5, 0.3, rng.beta(2, 6, 360))  # equal predictions have no slope
    y = (rng.random(360) < p) & (centre > 0)
    for groups in (None, np.arange(360) // 20):
        report = calibration_report(y, p, by={"centre": centre}, groups=groups, n_resamples=19)
        rows = {row[0]: row for row in subgroups_table(report).rows}
        cells = [rows[f"centre = {k}"][4] for k in range(6)]
        if groups is None:
            assert cells[0].startswith("0.00 (0.00 to 0.")
            assert not any("–" in cell or "nan" in cell for cell in cells)
        else:
            assert all(cell.endswith(" (3 groups, too few for a test)") for cell in cells)
            assert all(row[-1] == "–" for row in rows.values())


@pytest.mark.parametrize("n_groups", [1, 5, 6])
def test_six_groups_have_limits(n_groups):
    view = SimpleNamespace(n_groups=n_groups)
    view.has_few_groups = Overview.has_few_groups.fget(view)
    part = SimpleNamespace(overview=view, ratio=Measure(0.8, 0.5, 1.2))
    few = {1: "0.80 (1 group, too few for a test)", 5: "0.80 (5 groups, too few for a test)"}
    assert _shown_ratio(part) == few.get(n_groups, "0.80 (0.50 to 1.20)")
