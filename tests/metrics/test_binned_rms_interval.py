"""Closed-form intervals against the metric, sums over pairs, and their coverage."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit
from used import used

from skcal.metrics import binned_rms_error_interval, expected_calibration_error
from skcal.metrics.binned_rms_interval import _PairTerms, _skewed_ends
from skcal.metrics.bins import BinRule
from skcal.sample import read_sample

NOTIONS = ["binary", "confidence", "top-label", "classwise"]


def sample(notion, n=60, seed=0):
    rng = np.random.default_rng(seed)
    if notion == "binary":
        p = rng.uniform(size=n)
        return (rng.uniform(size=n) < p**1.5).astype(int), p, rng.uniform(0.3, 3, n)
    proba = rng.dirichlet(np.ones(3), size=n)
    return rng.integers(3, size=n), proba, rng.uniform(0.3, 3, n)


def naive_pairs(y, proba, notion, weight, n_bins):
    """h_ij of all pairs, also of centred residuals; variances under H0; means of pairs in bins."""
    n, (h, centred, null), own = len(y), np.zeros((3, len(y), len(y))), np.zeros(len(y))
    if notion == "binary":
        parts = [(np.arange(n), proba, y == 1)]
    elif notion == "classwise":
        parts = [(np.arange(n), proba[:, k], y == k) for k in range(3)]
    else:
        top = proba.argmax(axis=1)
        groups = [top == k for k in range(3)] if notion == "top-label" else [top >= 0]
        parts = [
            (rows, proba[rows].max(axis=1), y[rows] == top[rows])
            for rows in map(np.flatnonzero, groups)
        ]
    for rows, x, hit in parts:
        w, delta, variance = weight[rows], hit - x, x * (1 - x)
        bins = np.ceil(x * n_bins).clip(1)
        for inside in (bins == b for b in np.unique(bins)):
            pairs = np.outer(w * inside, w * inside)
            np.fill_diagonal(pairs, 0)
            if inside.sum() < 2:
                continue
            products, share = pairs * np.outer(delta, delta), w[inside].sum() / weight.sum()
            factor, place = share / pairs.sum(), np.ix_(rows, rows)
            own[rows[inside]] += products.sum() / pairs.sum()
            h[place] += factor * products
            apart = delta - np.average(delta[inside], weights=w[inside])
            centred[place] += factor * pairs * np.outer(apart, apart)
            null[place] += (factor * pairs) ** 2 * np.outer(variance, variance)
    return h, centred, null, own


@pytest.mark.parametrize("strategy", ["uniform", "quantile", "unique"])
@pytest.mark.parametrize("notion", NOTIONS)
def test_the_estimate_is_the_debiased_error(notion, strategy):
    y, proba, weight = sample(notion)
    options = {"notion": notion, "strategy": strategy, "n_bins": 6, "sample_weight": weight}
    options = used(binned_rms_error_interval, **options)
    for root in (False, True):
        interval = binned_rms_error_interval(y, proba, root=root, **options)
        error = expected_calibration_error(y, proba, norm=2, debias=True, root=root, **options)
        assert_allclose(interval.estimate, error, atol=1e-14)
        assert 0 <= interval.low <= max(interval.estimate, 0) <= interval.high


@pytest.mark.parametrize("notion", NOTIONS)
def test_the_variance_is_that_of_sums_over_pairs(notion):
    y, proba, weight = sample(notion)
    terms = _PairTerms(
        read_sample(y, proba, notion=notion, sample_weight=weight), BinRule(5, "uniform")
    )
    h, centred, null, own = naive_pairs(y, proba, notion, weight, 5)
    assert_allclose(terms.estimate, h.sum(), rtol=1e-10)
    assert_allclose(terms.means, h.sum(axis=1), atol=1e-12)
    assert_allclose(terms.expected, null.sum(), rtol=1e-10)
    share = weight / weight.sum()
    influence = 2 * h.sum(axis=1) - share * (own + h.sum())
    assert abs(influence.sum()) < 1e-12
    seen = np.sum(centred**2)
    assert_allclose(terms.degenerate, 2 * max(seen, null.sum()), rtol=1e-10)
    assert_allclose(terms.linear, max(influence @ influence - 4 * seen, 0), rtol=1e-9)
    assert 1 <= terms.freedom <= 15


def test_the_upper_end_solves_the_equation_of_wilsons_interval():
    y, p, weight = sample("binary", 2000)
    terms = _PairTerms(read_sample(y, p, sample_weight=weight), BinRule(5, "uniform"))
    # far enough from 0 for the observed slope
    assert terms.estimate > 2 * np.sqrt(terms.degenerate)
    _, estimate, high = _skewed_ends(terms, 0.025, 1.96)
    variance = terms.linear / estimate * high + terms.degenerate
    assert_allclose((high - estimate) ** 2, 1.96**2 * variance, rtol=1e-10)


def test_one_bin_has_one_degree_of_freedom_and_equal_bins_as_many_as_they_are():
    p = np.repeat([0.2, 0.8], 50)
    y = np.tile([0, 1], 50)
    for n_bins, freedom in ((1, 1), (2, 2)):
        terms = _PairTerms(read_sample(y, p), BinRule(n_bins, "uniform"))
        assert_allclose(terms.freedom, freedom)


def test_events_that_have_not_happened_are_counted():
    p = np.full(2000, 0.01)
    y = (np.arange(2000) < 6).astype(int)
    interval = binned_rms_error_interval(y, p, root=False)
    assert interval.standard_error >= np.sqrt(2) * 0.01 * 0.99 / 2000 * 0.999
    with pytest.warns(UserWarning, match="Too few outcomes are uncertain for the interval"):
        binned_rms_error_interval(np.roll(y, 7) * (np.arange(2000) < 10), p, labels=[0, 1])


def test_scale_of_weights_does_not_matter_and_levels_nest():
    y, proba, weight = sample("confidence", 200)
    one = binned_rms_error_interval(y, proba, sample_weight=weight)
    other = binned_rms_error_interval(y, proba, sample_weight=7 * weight)
    assert_allclose([one.low, one.high], [other.low, other.high], rtol=1e-10)
    wide = binned_rms_error_interval(y, proba, sample_weight=weight, confidence_level=0.99)
    assert wide.low <= one.low < one.high <= wide.high


@pytest.mark.parametrize("option", [{"strategy": "sweep"}, {"notion": "canonical"}])
def test_bins_that_see_labels_and_vectors_are_refused(option):
    y, proba, _ = sample("confidence")
    with pytest.raises(ValueError, match=next(iter(option))):
        binned_rms_error_interval(y, proba, **option)


@pytest.mark.parametrize(("slope", "weighted"), [(1.0, True), (1.4, False)])
def test_intervals_cover_calibrated_or_not(slope, weighted):
    """The error in 15 uniform bins, of uniform predictions whose logits are too steep."""
    p = (np.arange(600_000) + 0.5) / 600_000
    gaps = (expit(logit(p) / slope) - p).reshape(15, -1).mean(axis=1)
    truth, hits = np.mean(gaps**2), 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        p = rng.uniform(size=400)
        y = (rng.uniform(size=400) < expit(logit(p) / slope)).astype(int)
        weight = rng.uniform(0.2, 2, 400) if weighted else None
        interval = binned_rms_error_interval(y, p, root=False, sample_weight=weight)
        hits += interval.low <= truth <= interval.high
    # At 94 %, fewer than 130 of 150 has probability 4e-4; tests/battery has other sizes.
    assert hits >= 130


def test_the_error_of_a_bin_is_the_mean_over_pairs_of_different_groups():
    y, p, weight = sample("binary")
    groups, bins = np.arange(60) // 4, np.ceil(4 * p)
    read = read_sample(y, p, "binary", weight, groups=groups)
    pairs = np.outer(weight, weight) * (bins[:, None] == bins) * (groups[:, None] != groups)
    products = pairs * np.outer(y - p, y - p)
    means = [products[bins == b].sum() / pairs[bins == b].sum() for b in bins]
    assert_allclose(_PairTerms(read, BinRule(4, "uniform")).errors, means)
