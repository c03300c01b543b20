"""Bounds of calibration errors: their definitions, what they cover, and the verdict."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import beta, binom, t

from skcal.hypothesis_tests import (
    bounds,
    calibration_error_interval,
    calibration_test,
    equivalence,
    equivalence_test,
)
from skcal.hypothesis_tests.bounds import _range_quantile
from skcal.hypothesis_tests.equivalence import bounded, equivalence_tests
from skcal.hypothesis_tests.kolmogorov_smirnov import range_tail
from skcal.metrics import (
    binned_rms_error_interval,
    cutoff_calibration_error,
    expected_calibration_error,
)
from skcal.metrics.error_limits import ErrorLimits
from skcal.sample import read_sample

Z = 1.6448536269514722


def draw(seed, n, slope=1.0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.001, 0.999, n)
    truth = expit(slope * logit(p))
    return (rng.uniform(size=n) < truth).astype(int), p, truth


@pytest.fixture
def bounds_alone(monkeypatch):
    """Leave out how many samples would be needed, which takes most of the time."""
    monkeypatch.setattr(equivalence, "needed_for_calibration_error", lambda *_: np.nan)
    monkeypatch.setattr(bounds, "needed_for_cutoff_error", lambda *_: (np.nan, np.nan))


def ranges(values):
    """Sums over all stretches of distinct predictions."""
    path = np.append(0, np.cumsum(values))
    first, end = np.triu_indices(len(path), 1)
    return path[end] - path[first]


@pytest.mark.parametrize("seed", range(4))
def test_asymptotic_bound_is_the_largest_mean_plus_half_width_of_all_ranges(seed, bounds_alone):
    y, p, _ = draw(seed, 200, slope=0.7)
    high = equivalence_test(y, p, limit=0.1, error="cutoff").high - np.log(20) / 200
    delta, order = y - p, np.argsort(p)
    delta, p = delta[order], p[order]
    naive = max(
        (sign * ranges(delta) / 200 + Z * np.sqrt(ranges(variance)) / 200).max()
        for sign in (1, -1)
        for variance in (p * (1 - p), delta**2)
    )
    # The square root is the least of a grid of parabolas.
    assert naive <= high <= naive * 1.02


@pytest.mark.parametrize("seed", range(4))
def test_exact_bound_is_the_largest_of_all_ranges(seed, bounds_alone):
    y, p, _ = draw(seed, 100)
    delta = (y - p)[np.argsort(p)]
    rate = np.log(20)
    slope = min(0.7, np.sqrt(2 * rate / (100 * np.mean(p * (1 - p)))))
    psi = -np.log(1 - slope) - slope
    naive = max(
        (sign * ranges(delta) / 100 + psi / slope * ranges(delta**2) / 100).max()
        for sign in (1, -1)
    )
    high = equivalence_test(y, p, limit=0.1, error="cutoff", method="exact").high
    assert high == pytest.approx(naive + rate / (100 * slope))
    options = {"limit": 0.1, "error": "cutoff", "method": "exact", "labels": [0, 1]}
    low = equivalence_test(np.zeros(100, int), np.full(100, 0.9), **options).low
    assert low == pytest.approx(0.9 - np.sqrt(2 * np.log(40) / 100))


@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.001, 1e-6])
def test_quantile_of_the_range_of_brownian_motion(alpha):
    assert range_tail(_range_quantile(alpha)) == pytest.approx(alpha)


@pytest.mark.parametrize("seed", range(3))
def test_the_upper_bound_of_the_ece_is_that_of_a_mean_of_signed_residuals(seed):
    y, p, _ = draw(seed, 200)
    bins, residuals = np.minimum((p * 15).astype(int), 14), y - p
    signed = np.sign(np.bincount(bins, residuals))[bins] * residuals
    spread = max(np.mean(residuals**2), np.mean(p * (1 - p))) - signed.mean() ** 2
    expected = signed.mean() + Z * np.sqrt(spread / 200) + np.log(20) / 200
    assert equivalence_test(y, p, limit=0.1, error="ece").high == pytest.approx(expected)


def test_the_lower_bound_of_the_ece_is_that_of_the_errors_of_the_bins(rng):
    y, p, _ = draw(0, 600, slope=0.2)
    bins, groups = (p * 15).astype(int), np.arange(600) // 3
    count = np.bincount(bins)
    frequency, mean = np.bincount(bins, y) / count, np.bincount(bins, p) / count
    variance = np.maximum(frequency * (1 - frequency), mean * (1 - mean))
    errors, share = np.sqrt(variance / count), count / 600
    sums = np.abs(rng.normal(size=(20_000, 15))) @ (share * errors)
    ece = expected_calibration_error(y, p)
    alone = equivalence_test(y, p, limit=0.1, error="ece")
    assert alone.low == pytest.approx(ece - np.quantile(sums, 0.95), abs=1e-3)
    of_groups = np.zeros((200, 15))
    np.add.at(of_groups, (groups, bins), y - p - (frequency - mean)[bins])
    errors = np.maximum(errors, np.sqrt(200 / 199 * (of_groups**2).sum(axis=0)) / count)
    grouped = equivalence_test(y, p, limit=0.1, error="ece", groups=groups)
    assert grouped.low == pytest.approx(ece - t.isf(0.025, 199) * share @ errors)
    assert grouped.low > 0


@pytest.mark.parametrize("notion", ["binary", "confidence"])
def test_estimates_are_those_of_the_metrics(notion):
    y, p, _ = draw(0, 300)
    p = np.column_stack([1 - p, p])
    cutoff = equivalence_test(y, p, limit=0.05, notion=notion, error="cutoff")
    assert cutoff.estimate == cutoff_calibration_error(y, p, notion=notion)
    ece = equivalence_test(y, p, limit=0.05, notion=notion, error="ece", n_bins=10)
    assert ece.estimate == pytest.approx(
        expected_calibration_error(y, p, notion=notion, n_bins=10), rel=1e-12
    )


@pytest.mark.parametrize(
    ("slope", "method"),
    [(1.0, "asymptotic"), (0.6, "asymptotic"), pytest.param(0.7, "exact", marks=pytest.mark.slow)],
)
def test_bounds_cover_the_errors_given_the_predictions(slope, method, bounds_alone):
    misses = np.zeros(3)
    for seed in range(200):
        y, p, truth = draw(seed, 200, slope)
        result = equivalence_test(y, p, limit=0.05, method=method, error="cutoff")
        path, order = np.append(0, np.cumsum((truth - p)[np.argsort(p)])), np.arange(200)
        error = np.ptp(path) / 200
        gap = max(np.abs(path[k:] - path[:-k]).max() / k for k in order[20:])
        misses += [result.low > error, result.high < error, result.largest_gap < gap]
        assert result.low <= result.estimate <= result.high
    # At level 5 %, more than this number of misses have probability 3e-4.
    assert misses.max() <= binom.isf(3e-4, 200, 0.05)


def test_small_samples_show_nothing_and_large_ones_one_side():
    y, p, _ = draw(0, 40)
    few = equivalence_test(y, p, limit=0.05, error="cutoff")
    assert few.verdict == "unknown"
    assert 300 < few.n_samples_needed < 5000
    assert "about" in str(few)
    y, p, _ = draw(1, 6000)
    assert equivalence_test(y, p, limit=0.05).verdict == "below"
    above = equivalence_test(y, p**2, limit=0.05)
    assert above.verdict == "above"
    assert above.n_samples_needed == np.inf


@pytest.mark.parametrize(
    ("error", "slope", "limit"),
    [
        ("calibration", 1.0, 0.07),
        pytest.param("calibration", 0.7, 0.11, marks=pytest.mark.slow),
        pytest.param("cutoff", 1.0, 0.05, marks=pytest.mark.slow),
        pytest.param("cutoff", 0.7, 0.11, marks=pytest.mark.slow),
        ("rms", 1, 0.06),
    ],
)
def test_samples_that_are_needed_suffice_in_nine_of_ten_cases(error, slope, limit):
    y, p, _ = draw(0, 20_000, slope)
    needed = int(equivalence_test(y, p, limit=limit, error=error).n_samples_needed)
    passed = 0
    for seed in range(1, 61):
        y, p, _ = draw(seed, needed, slope)
        if error == "calibration":  # without the test, which is about the lower limit
            passed += ErrorLimits(read_sample(y, p)).high(0.05)[0] <= limit
        else:
            passed += equivalence_test(y, p, limit=limit, error=error).verdict == "below"
    # With a chance of 90 %, fewer have probability 6e-4.
    assert passed >= binom.ppf(6e-4, 60, 0.9)


def test_the_calibration_error_has_the_limits_that_it_has_everywhere(rng, bounds_alone):
    y, p, _ = draw(0, 400, slope=0.5)
    interval = calibration_error_interval(y, p)
    limits = {"below": interval.high * 1.01, "above": interval.low * 0.99}
    for verdict, limit in {**limits, "unknown": interval.estimate}.items():
        result = equivalence_test(y, p, limit=limit)
        assert result.verdict == verdict
        numbers = interval.estimate, interval.low, interval.high
        assert (result.estimate, result.low, result.high) == numbers
    y, p, _ = draw(2, 200)
    assert equivalence_test(y, p, limit=0.1).low == 0
    proba = rng.dirichlet([1, 1, 1], 200)
    y = rng.integers(0, 3, 200)
    for notion in ("confidence", "top-label", "classwise"):
        interval = calibration_error_interval(y, proba, notion=notion)
        assert equivalence_test(y, proba, limit=0.1, notion=notion).high == interval.high


def test_rms_limits_are_those_of_the_two_sided_interval_of_bins():
    y, p, _ = draw(0, 800, slope=0.6)
    interval = binned_rms_error_interval(y, p, confidence_level=0.9)
    result = equivalence_test(y, p, limit=0.1, error="rms")
    assert (result.estimate, result.low, result.high) == pytest.approx(
        (interval.estimate, interval.low, interval.high)
    )


def test_a_range_that_the_user_names_has_binomial_limits():
    y, p, _ = draw(0, 500)
    inside = (p >= 0.2) & (p <= 0.4)
    n, hits = inside.sum(), y[inside].sum()
    low, high = beta.ppf(0.05, hits, n - hits + 1), beta.isf(0.05, hits + 1, n - hits)
    result = equivalence_test(y, p, limit=0.2, interval=(0.2, 0.4))
    mean = p[inside].mean()
    assert result.estimate == pytest.approx(abs(y[inside].mean() - mean))
    assert result.high == pytest.approx(max(high - mean, mean - low))
    assert result.low == pytest.approx(max(low - mean, mean - high, 0))
    assert np.isnan(result.largest_gap)


@pytest.mark.parametrize("grouped", [False, True])
def test_largest_gap_is_the_largest_mean_of_a_range_plus_its_half_width(rng, grouped):
    y, p, _ = draw(0, 150)
    groups = rng.integers(0, 40, 150) if grouped else None
    result = equivalence_test(y, p, limit=0.05, min_share=0.25, groups=groups)
    order, naive = np.argsort(p), 0.0
    delta, spread = (y - p)[order], (p * (1 - p))[order]
    z = t.isf(0.05, 150**2 / np.sum(np.bincount(groups) ** 2) - 1) if grouped else Z
    for first in range(150):
        for end in range(first + 38, 151):
            own, n = delta[first:end], end - first
            variance = max(np.sum(own**2), np.sum(spread[first:end]))
            if grouped:
                sums = np.bincount(groups[order][first:end], own)
                present = len(np.unique(groups))
                variance = max(variance, present / (present - 1) * np.sum(sums**2))
            naive = max(naive, (abs(own.sum()) + z * np.sqrt(variance) + np.log(20)) / n)
    assert result.largest_gap == pytest.approx(min(naive, 1))


def test_the_largest_of_all_classes_is_bounded(rng):
    proba = rng.dirichlet([1, 1, 1], 400)
    y = rng.integers(0, 3, 400)
    options = {"limit": 0.05, "error": "cutoff"}
    every = equivalence_test(y, proba, notion="classwise", **options)
    each = [
        equivalence_test(y == k, proba[:, k], confidence_level=1 - 0.05 / 3, **options)
        for k in range(3)
    ]
    assert every.high == pytest.approx(max(one.high for one in each))
    assert every.low == pytest.approx(max(one.low for one in each))


@pytest.mark.parametrize("error", ["calibration", "cutoff", "ece", "rms"])
@pytest.mark.filterwarnings("ignore:All predictions")
def test_certain_predictions_and_single_samples_have_bounds(error):
    for y, p in [([0, 1], [0.0, 1.0]), ([1, 0], [0.3, 0.4]), ([0, 0], [0.5, 0.5])]:
        result = equivalence_test(y, p, limit=0.01, error=error, labels=[0, 1])
        assert 0 <= result.low <= result.estimate <= result.high <= 1
        assert result.verdict == "unknown"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"method": "exact", "error": "ece"}, "method='exact' is for error='cutoff'"),
        ({"interval": (0.4, 0.2)}, "low ≤ high"),
        ({"interval": (0.9999, 1)}, "holds none of the predictions"),
        ({"limit": 1.5}, "limit"),
    ],
)
def test_what_has_no_bound_is_refused(options, match):
    y, p, _ = draw(0, 50)
    with pytest.raises(ValueError, match=match):
        equivalence_test(y, p, **{"limit": 0.05, **options})


@pytest.mark.parametrize(("limit", "each"), [(0.5, 0.95), (0.1, 1 - 0.05 / 3)])
def test_several_errors_are_bounded_at_the_level_if_all_are_below_and_else_together(limit, each):
    rng = np.random.default_rng(0)
    questions = []
    for n, error in ((900, "calibration"), (900, "cutoff"), (100, "calibration")):
        p = rng.uniform(size=n)
        questions.append((read_sample((rng.random(n) < p).astype(int), p), error))
    results = equivalence_tests(questions, limit=limit)
    for result, question in zip(results, questions, strict=True):
        expected = bounded(*question, limit, each)
        assert (result.low, result.high) == (expected.low, expected.high)
        assert (result.verdict, result.confidence_level) == (expected.verdict, each)
    assert [result.verdict for result in results[:2]] == ["below", "below"]
    assert results[2].verdict == ("below" if limit == 0.5 else "unknown")
    [alone] = equivalence_tests(questions[2:], limit=limit)
    assert alone.confidence_level == 0.95


@pytest.mark.parametrize("off", [0.051, 0.049])
def test_any_verdict_of_several_is_false_in_at_most_5_percent(off, bounds_alone):
    """Of parts whose errors are all just above the limit, or all just below it."""
    wrong, n_sets, false = "below" if off > 0.05 else "above", 30, 0
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.1, 0.9, (3, 200))
        y = (rng.random(p.shape) < p + off).astype(int)
        parts = [(read_sample(*rows), "cutoff") for rows in zip(y, p, strict=True)]
        false += any(one.verdict == wrong for one in equivalence_tests(parts, limit=0.05))
    assert false <= binom.isf(1e-3, n_sets, 0.05)


def test_a_limit_beyond_the_usual_draws_takes_more_of_them():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=300)
    sample = read_sample((rng.random(300) < p**3).astype(int), p)
    assert calibration_test(sample).pvalue == 0.001
    assert bounded(sample, "calibration", 0.05, 1 - 0.001).verdict == "above"  # by usual ones
    assert bounded(sample, "calibration", 0.05, 1 - 0.0005).verdict == "above"
    y = (rng.random(300) < p).astype(int)
    assert bounded(read_sample(y, p), "calibration", 0.05, 1 - 0.0005).low == 0


def test_a_p_value_near_the_smallest_takes_more_draws_too():
    rng = np.random.default_rng(12)
    p = rng.uniform(0.02, 0.98, 120)
    sample = read_sample((rng.random(120) < expit(6 * logit(p))).astype(int), p)
    assert 0.001 < calibration_test(sample).pvalue < 0.005  # of some ten thousandths, by chance
    assert bounded(sample, "calibration", 0.04, 1 - 0.0005).verdict == "above"
