"""Calibration curves, their limits, and what medicine reports, against definitions and truths."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import null_space
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit, ndtri
from scipy.stats import beta, binom
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

from skcal.metrics import (
    cox_recalibration,
    flexible_calibration_curve,
    integrated_calibration_index,
    smoothers,
    validation_measures,
)
from skcal.metrics.smoothers import isotonic_limits, make_points

METHODS = ["splines", "loess", "isotonic"]


def draw(n, seed=0, slope=0.6):
    rng = np.random.default_rng([seed, n])
    p = rng.uniform(0.02, 0.98, n)
    return (rng.random(n) < expit(slope * logit(p) - 0.3)).astype(int), p


@pytest.mark.parametrize("method", METHODS)
def test_limits_hold_each_other_and_the_curve(method):
    y, p = draw(300)
    curve = flexible_calibration_curve(y, p, method=method)
    assert len(curve.prediction) == len(curve.frequency) == 101
    assert_allclose(curve.prediction[[0, -1]], np.sort(p)[[9, -10]])
    order = [0 * p[:101], curve.band_low, curve.low, curve.frequency, curve.high, curve.band_high]
    assert (np.diff([*order, 1 + 0 * p[:101]], axis=0) >= -1e-12).all()
    narrow = flexible_calibration_curve(y, p, method=method, confidence_level=0.5)
    assert (narrow.high - narrow.low <= curve.high - curve.low + 1e-12).all()


def test_the_index_of_many_predictions_is_that_of_the_validation():
    y, p = draw(3000)
    found = validation_measures(y, p, n_resamples=None)
    assert_allclose(integrated_calibration_index(y, p), found.ici.estimate, rtol=1e-12)
    largest = integrated_calibration_index(y, p, quantile=1)
    assert_allclose(largest, found.emax.estimate, rtol=1e-12)


def test_a_straight_line_of_splines_has_the_limits_of_the_likelihood_ratio():
    rng = np.random.default_rng(0)
    p = rng.choice([0.01, 0.6], 400, p=[0.2, 0.8])
    y = (rng.random(400) < p).astype(int)
    y[p < 0.1] = 0  # no event: normal limits would be 0 and 1
    curve = flexible_calibration_curve(y, p, at=[0.01, 0.6])
    for k, value in enumerate((0.01, 0.6)):
        n, hits = np.sum(p == value), y[p == value].sum()

        def excess(q, n=n, hits=hits):
            return 2 * (binom.logpmf(hits, n, hits / n) - binom.logpmf(hits, n, q)) - 3.841459

        assert_allclose(curve.frequency[k], hits / n, atol=1e-5)
        assert_allclose(curve.high[k], brentq(excess, hits / n + 1e-9, 1 - 1e-9), atol=1e-5)
        low = brentq(excess, 1e-9, hits / n) if hits else 0
        assert_allclose(curve.low[k], low, atol=1e-5)


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 40), marks=pytest.mark.slow)])
def test_limits_of_few_events_do_not_explode(seeds):
    """Of these 40 calibrated sets unrestricted splines with normal limits reached 0.9 in most."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        p = rng.beta(1, 9, 500)
        curve = flexible_calibration_curve(rng.random(500) < p, p)
        assert (curve.high - curve.low).max() < 0.75


def test_loess_is_a_weighted_parabola_at_every_place():
    y, p = draw(60)
    curve = flexible_calibration_curve(y, p, method="loess", at=[0.1, 0.5, 0.9])
    for x, value in zip(curve.prediction, curve.frequency, strict=True):
        distance = np.abs(p - x)
        width = np.sort(distance)[44]  # three quarters of 60
        weight = np.clip(1 - (distance / width) ** 3, 0, None) ** 3
        fit = np.polynomial.Polynomial.fit(p - x, y, 2, w=np.sqrt(weight))
        assert_allclose(value, np.clip(fit(0), 0, 1), atol=1e-9)


def test_isotonic_curves_are_isotonic_regression():
    y, p = draw(200)
    grid = np.sort(p)
    curve = flexible_calibration_curve(y, p, method="isotonic", at=grid)
    assert_allclose(curve.frequency, IsotonicRegression().fit(p, y).predict(grid), atol=1e-12)


def test_isotonic_limits_are_the_best_of_all_intervals():
    y, p = draw(12)
    grid = np.linspace(0, 1, 41)
    limits = isotonic_limits(p, y, grid, 0.9)
    order = np.argsort(p)
    x, hits = p[order], y[order]
    number = 12 * 13 / 2
    low, high = np.zeros(41), np.ones(41)
    for i in range(12):
        for j in range(i, 12):
            k, n = hits[i : j + 1].sum(), j - i + 1
            if k:
                bound = beta.ppf(0.05 / number, k, n - k + 1)
                low = np.where(grid >= x[j], np.maximum(low, bound), low)
            if k < n:
                bound = beta.isf(0.05 / number, k + 1, n - k)
                high = np.where(grid <= x[i], np.minimum(high, bound), high)
    assert_allclose(limits[2], low, atol=1e-12)
    assert_allclose(limits[3], high, atol=1e-12)


@pytest.mark.parametrize("method", METHODS[:2])
def test_scale_of_weights_does_not_matter_and_zero_removes(method):
    y, p = draw(200)
    weight = np.random.default_rng(0).integers(0, 3, 200)
    kept, curve = weight > 0, partial(flexible_calibration_curve, method=method, at=[0.2, 0.5, 0.8])
    one = curve(y, p, sample_weight=weight)
    for other in (
        curve(y, p, sample_weight=10.0 * weight),
        curve(y[kept], p[kept], sample_weight=weight[kept]),
    ):
        assert_allclose(one.frequency, other.frequency, atol=1e-10)
        assert_allclose(one.high, other.high, atol=1e-10)


@pytest.mark.filterwarnings("ignore:All predictions in")
@pytest.mark.parametrize("method", METHODS[:2])
@pytest.mark.parametrize("scale", [1e-200, 1e3, 1e17])
def test_equal_predictions_have_the_limits_of_their_mean_at_any_scale_of_weights(method, scale):
    y, p, weight = np.arange(60) % 3 > 0, np.full(60, 1.0), np.array([0.25, 0.5, 1] * 20)
    one, other = (
        flexible_calibration_curve(y, p, method=method, sample_weight=weight * factor)
        for factor in (1, scale)
    )
    assert_allclose(one.low, other.low, rtol=1e-12)
    assert_allclose(one.frequency, np.average(y, weights=weight), atol=1e-12)


def test_many_predictions_are_grouped_by_mass():
    y, p = draw(5000)
    points = make_points(p, y, np.ones(5000))
    assert len(points.mass) == 1000
    assert (points.mass == 5).all()
    assert points.hits.sum() == y.sum()
    exact = make_points(p, y, np.ones(5000), 5000)
    assert len(exact.mass) == 5000
    assert_allclose(points.mass @ points.prediction, p.sum())


SMALL = {  # labels and predictions
    "two samples": ([0, 1], [0.2, 0.7]),
    "zeros and ones": ([0, 1, 1, 0, 1], [0.0, 1.0, 0.5, 1.0, 0.0]),
    "one prediction": ([0, 1, 1], [0.4, 0.4, 0.4]),
}


@pytest.mark.filterwarnings("ignore:Too few")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("times", [1, 6])
@pytest.mark.parametrize("case", SMALL)
def test_small_and_certain_samples_give_finite_curves(method, case, times):
    curve = flexible_calibration_curve(*np.tile(SMALL[case], times), method=method)
    rows = np.array([curve.frequency, curve.low, curve.high, curve.band_low, curve.band_high])
    assert ((rows >= 0) & (rows <= 1)).all()


def test_refusals_say_what_to_do():
    y, p = draw(50)
    with pytest.raises(ValueError, match="shows one outcome only"):
        flexible_calibration_curve(0 * y, p)
    with pytest.raises(ValueError, match="in increasing order"):
        flexible_calibration_curve(y, p, at=[0.5, 0.2])
    with pytest.raises(ValueError, match=r"probabilities in \[0, 1\]"):
        flexible_calibration_curve(y, p, at=[2.0])
    with pytest.raises(ValueError, match="method='splines' or 'loess'"):
        flexible_calibration_curve(y, p, method="isotonic", sample_weight=np.arange(50.0) + 1)
    with pytest.raises(ValueError, match="Use 'binary' or 'confidence'"):
        flexible_calibration_curve(y, np.column_stack([1 - p, p]), notion="classwise")


# Of 300 bands at level 95 % fewer than 264 hold the curve with probability 1e-6.
@pytest.mark.slow
@pytest.mark.parametrize(("method", "least"), [("splines", 264), ("isotonic", 285)])
def test_bands_hold_the_curve(method, least):
    held = 0
    for seed in range(300):
        y, p = draw(500, seed + 1)
        curve = flexible_calibration_curve(y, p, method=method)
        truth = expit(0.6 * logit(curve.prediction) - 0.3)
        held += ((curve.band_low <= truth) & (truth <= curve.band_high)).all()
    assert held >= least


def test_draws_of_a_band_depend_on_the_covariance_alone():
    rng = np.random.default_rng(0)
    roots = np.repeat(rng.normal(size=(6, 4)), 2, axis=0)  # of rank 4
    roots[:, :2] /= np.linalg.norm(roots[:, :2], axis=0)
    rotation = np.linalg.qr(rng.normal(size=(9, 9)))[0][:4]
    deviation = np.linalg.norm(roots, axis=1)
    drawn = smoothers.largest_deviations(roots, deviation)
    for same in (roots @ rotation, -roots[:, ::-1]):
        assert_allclose(smoothers.largest_deviations(same, deviation), drawn, rtol=1e-9)
    exact = np.abs(rng.normal(size=(100_000, 4)) @ (roots / deviation[:, None]).T).max(axis=1)
    # Standard error of the mean of 2,000 draws: 0.012. False alarms: 1 in 10,000.
    assert drawn.mean() == pytest.approx(exact.mean(), abs=0.05)


def test_curves_are_shown_and_framed():
    y, p = draw(100)
    curve = flexible_calibration_curve(y, p)
    assert "Calibration curve by splines, binary, 100 samples" in curve._repr_html_()
    pytest.importorskip("pandas")
    assert len(curve.to_frame()) == 101


def test_validation_measures_are_those_of_their_definitions():
    y, p = draw(400)
    found = validation_measures(y, p, random_state=0, n_resamples=49)
    assert found.prevalence.estimate == y.mean()
    assert_allclose(found.prevalence.low, beta.ppf(0.025, y.sum(), 401 - y.sum()))
    assert_allclose(found.observed_expected_ratio.estimate, y.mean() / p.mean())
    cox = cox_recalibration(y, p)
    assert found.slope == (cox.slope, *cox.slope_interval)
    assert found.intercept_in_the_large[0] == cox.intercept_in_the_large
    assert_allclose(found.ici.estimate, integrated_calibration_index(y, p), rtol=1e-12)
    for name, quantile in (("e50", 0.5), ("e90", 0.9), ("emax", 1.0)):
        expected = integrated_calibration_index(y, p, quantile=quantile)
        assert_allclose(found.measures[name].estimate, expected, atol=1e-6)
    assert_allclose(found.c_statistic.estimate, roc_auc_score(y, p))
    assert_allclose(found.brier_score.estimate, brier_score_loss(y, p))
    assert_allclose(
        found.scaled_brier_score.estimate, 1 - brier_score_loss(y, p) / (y.mean() * (1 - y.mean()))
    )
    for name, (estimate, low, high) in found.measures.items():
        assert name == "mean_prediction" or low < estimate < high, name
    two = validation_measures(y, np.column_stack([1 - p, p]), random_state=0, n_resamples=49)
    assert_allclose(list(two.measures.values()), list(found.measures.values()))
    assert "C-statistic" in found._repr_html_()


def test_the_interval_of_the_c_statistic_is_delongs():
    y = np.repeat([0, 1], 5)
    p = np.array([0.1, 0.4, 0.4, 0.2, 0.5, 0.4, 0.6, 0.3, 0.8, 0.2])
    pairs = (p[y == 1][:, None] > p[y == 0]) + 0.5 * (p[y == 1][:, None] == p[y == 0])
    area = pairs.mean()
    variance = pairs.mean(1).var(ddof=1) / 5 + pairs.mean(0).var(ddof=1) / 5
    half = 1.959964 * np.sqrt(variance) / (area * (1 - area))
    found = validation_measures(y, p, n_resamples=19, random_state=0).c_statistic
    assert_allclose(found, [area, expit(logit(area) - half), expit(logit(area) + half)], rtol=1e-6)


@pytest.mark.parametrize("smoother", ["splines", "loess"])
@pytest.mark.parametrize("scale", [1e-300, 1 / 3, 0.1, 1e200])
def test_equal_weights_of_any_scale_change_no_curve(smoother, scale):
    # A knot at a share of the weights that is just reached must not move by the rounding of sums.
    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, 200)
    y = (rng.random(200) < p).astype(int)
    weight = np.full(200, scale)
    found = integrated_calibration_index(y, p, estimator=smoother, sample_weight=weight)
    assert found == pytest.approx(integrated_calibration_index(y, p, estimator=smoother), rel=1e-9)


@pytest.mark.parametrize("method", ["splines", "loess"])
def test_copies_that_are_a_group_count_as_one_sample(method):
    y, p = draw(400)
    rows, options = np.arange(400).repeat(4), {"method": method, "at": [0.2, 0.5, 0.8]}
    curves = (
        flexible_calibration_curve(y[rows], p[rows], groups=groups, **options)
        for groups in (rows, None)
    )
    together, apart = (curve.high - curve.low for curve in curves)
    assert_allclose(together / apart, 2, rtol=0.15)


FAR = {  # predictions whose logits are far apart, a case that no step of the same length suits
    "many near 0": lambda rng: rng.beta(0.3, 0.7, 500),
    "near 0 and 1": lambda rng: rng.beta(0.05, 0.05, 500).clip(1e-15, 1 - 1e-15),
    "naive Bayes": lambda rng: expit(8 * rng.normal(size=500)),
    "rare": lambda rng: rng.beta(1, 60, 2000),
}


@pytest.mark.parametrize("kind", FAR)
def test_limits_of_splines_are_where_the_profile_likelihood_falls_by_their_quantile(kind):
    rng = np.random.default_rng(0)
    p = FAR[kind](rng)
    y = (rng.uniform(size=len(p)) < p**1.3).astype(int)
    curve = flexible_calibration_curve(y, p)
    points = make_points(p, y, np.ones(len(p)))
    linear, at = logit(points.prediction), logit(curve.prediction)
    knots = smoothers._knots(linear, points.mass, min(y.sum(), len(y) - y.sum()))
    design = smoothers._natural_splines(linear, knots)
    rows = smoothers._natural_splines(at, knots)
    scale = np.abs(design).max(axis=0)
    ridge = np.append(0, np.full(len(scale) - 1, smoothers._SPLINE_RIDGE * len(p))) / scale**2

    def lowest(start, directions):
        """The least deviance of start + directions @ c, by scipy's trust region."""
        columns = design / scale @ directions

        def chance(c):
            return expit(design / scale @ start + columns @ c)

        def loss(c):
            beta = start + directions @ c
            linear = design / scale @ beta
            return 2 * (points.mass @ np.logaddexp(0, linear) - points.hits @ linear) + (
                ridge @ beta**2
            )

        def slope(c):
            rest = points.mass * chance(c) - points.hits
            return 2 * (columns.T @ rest + directions.T @ (ridge * (start + directions @ c)))

        def curvature(c):
            spread = points.mass * chance(c) * (1 - chance(c))
            return 2 * (columns.T * spread @ columns + directions.T * ridge @ directions)

        nothing = np.zeros(directions.shape[1])
        found = minimize(loss, nothing, jac=slope, hess=curvature, method="trust-exact", tol=1e-9,
                         options={"maxiter": 5000, "max_trust_radius": 1e5})  # fmt: skip
        return found.fun

    least = lowest(0 * scale, np.eye(len(scale)))
    for k in (10, 50, 90):
        row = rows[k] / scale
        for limit in (curve.low[k], curve.high[k]):
            if 1e-6 < limit < 1 - 1e-6:
                fixed = row * logit(limit) / (row @ row)
                rise = lowest(fixed, null_space(row[None])) - least
                assert_allclose(rise, ndtri(0.975) ** 2, rtol=0.02)


@pytest.mark.parametrize("method", ["splines", "loess"])
def test_fewer_than_five_events_or_non_events_give_no_limits(method):
    p, y = np.random.default_rng(0).beta(1, 9, 100), np.repeat([1, 0], [5, 95])
    twice = {"groups": np.repeat(np.arange(100), 2), "method": method}  # two images, one label
    told = flexible_calibration_curve(np.repeat(y, 2), np.repeat(p, 2), **twice)
    assert (told.band_high < 1).any()
    few = {"groups": twice["groups"][2:], "method": method}
    for arguments, options in (
        ((y[1:], p[1:]), {"method": method}),
        ((1 - y[1:], 1 - p[1:]), {"method": method}),
        ((np.repeat(y[1:], 2), np.repeat(p[1:], 2)), few),
    ):
        with pytest.warns(UserWarning, match="few outcomes are uncertain for limits of a curve"):
            curve = flexible_calibration_curve(*arguments, **options)
        assert set(curve.low) | set(curve.band_low) == {0.0}
        assert set(curve.high) | set(curve.band_high) == {1.0}
        assert np.ptp(curve.frequency) > 0


@pytest.mark.parametrize("n_certain", [11, 12, 200])
def test_splines_give_enough_predictions_of_0_and_1_their_own_frequency(n_certain):
    rng = np.random.default_rng(0)
    inner = rng.uniform(0.05, 0.95, 600)
    p = np.concatenate([np.zeros(n_certain), np.ones(n_certain), inner])
    y = (rng.random(len(p)) < np.where(p == 0, 0.3, np.where(p == 1, 0.6, p**1.2))).astype(int)
    points = make_points(p, y, np.ones(len(p)))
    found = smoothers.spline_curve(points, points.prediction).frequency
    if n_certain < 12:
        moved = make_points(p.clip(inner.min(), inner.max()), y, np.ones(len(p)))
        expected = smoothers.spline_curve(moved, moved.prediction).frequency
        assert_allclose(found[1:-1], expected, rtol=1e-9)
        assert_allclose(found[[0, -1]], expected[[0, -1]], rtol=1e-9)
    else:
        assert_allclose(found[[0, -1]], points.frequency[[0, -1]], atol=1e-6)
        others = make_points(inner, y[2 * n_certain :], np.ones(600))
        alone = smoothers.spline_curve(others, others.prediction).frequency
        assert_allclose(found[1:-1], alone, atol=1e-4)  # but for the ridge


def test_ici_is_near_the_truth_where_some_predictions_are_0_or_1():
    truths, found = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.2, 0.8, 3000)
        p[:600], p[600:1200] = 0, 1
        chance = np.where(p == 0, 0.01, np.where(p == 1, 0.99, 0.8 * p))
        y = (rng.random(3000) < chance).astype(int)
        truths.append(np.abs(chance - p).mean())
        found.append(integrated_calibration_index(y, p))
    assert np.mean(found) == pytest.approx(np.mean(truths), rel=0.1)  # 0.064; one curve: 0.085
