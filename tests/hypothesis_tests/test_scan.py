"""The scan of ranges of predictions: its definition, its level, and what its ranges promise."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest, norm

from skcal.hypothesis_tests import monte_carlo_test, scan_test
from skcal.hypothesis_tests.scan import RangeScan, _best_disjoint, _critical_value
from skcal.sample import read_sample


def too_high_above(rng, n, start=0.6, gap=0.2):
    p = rng.uniform(size=n)
    truth = np.where(p > start, p - gap, p)
    return (rng.uniform(size=n) < truth).astype(int), p, truth


def test_pvalue_counts_redrawn_outcomes_and_rejects_above_the_critical_value_alone(rng):
    for n_resamples in (19, 99, 199, 999):
        null = np.round(rng.uniform(size=n_resamples), 2)  # with ties
        critical = _critical_value(null, 0.05)
        for value in np.linspace(0, 1.01, 150):
            pvalue = (1 + np.count_nonzero(null >= value)) / (1 + n_resamples)
            assert (value > critical) == (pvalue <= 0.05)
    assert _critical_value(np.zeros(18), 0.05) == np.inf


def test_chosen_ranges_are_the_disjoint_ones_of_the_largest_sum(rng):
    first, end = np.triu_indices(6, 1)
    for _ in range(20):
        value = np.maximum(rng.standard_normal(len(first)), 0)
        chosen = _best_disjoint(first, end, value)
        best = max(
            value[list(some)].sum()
            for size in range(6)
            for some in combinations(range(len(first)), size)
            if all(end[a] <= first[b] or end[b] <= first[a] for a, b in combinations(some, 2))
        )
        assert value[chosen].sum() == pytest.approx(best)
        assert all(end[a] <= first[b] for a, b in pairwise(chosen))


def test_limits_are_binomial_at_the_tail_of_the_critical_value(rng):
    y, p, _ = too_high_above(rng, 2000)
    result = scan_test(y, p, random_state=0)
    critical = _critical_value(result.null_distribution, 0.05)
    total = np.sum(p * (1 - p))
    excess = 0.0
    assert result.ranges
    for one in result.ranges:
        inside = (one.low <= p) & (p <= one.high)
        variance = np.sum(p[inside] * (1 - p[inside]))
        tail = norm.sf(critical + np.sqrt(2 * np.log(np.e * total / variance)))
        interval = binomtest(int(y[inside].sum()), int(inside.sum())).proportion_ci(1 - 2 * tail)
        assert_allclose([one.observed_low, one.observed_high], interval, rtol=1e-9)
        assert one.n_samples == inside.sum()
        assert one.predicted == pytest.approx(p[inside].mean())
        assert one.observed == y[inside].mean()
        below, above = interval.low - one.predicted, one.predicted - interval.high
        excess += inside.mean() * max(below, above, 0)
    assert result.lower_bound >= excess * (1 - 1e-9)


def test_one_region_that_is_too_high_is_named(rng):
    y, p, truth = too_high_above(rng, 3000)
    result = scan_test(y, p, random_state=0)
    assert result.pvalue == 0.001
    assert 0 < result.lower_bound < np.abs(truth - p).mean()
    [one] = result.ranges
    assert 0.3 < one.low < 0.68
    assert one.high > 0.95
    assert one.observed_low < one.observed < one.observed_high < one.predicted
    assert f"{one.n_samples:,}" in str(result)
    assert "at 95 % confidence" in str(result)
    assert len(result.to_frame()) == 1
    assert "<table>" in result._repr_html_()


@pytest.mark.parametrize("seed", range(15))
def test_ranges_bound_and_pvalue_agree(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 800))
    p = rng.beta(*rng.choice([0.2, 1, 3], 2), n)
    p = np.round(p, int(rng.integers(1, 6)))
    y = (rng.uniform(size=n) < p ** rng.choice([0.6, 1, 1.4])).astype(int)
    result = scan_test(y, p, n_resamples=99, random_state=seed, labels=[0, 1])
    assert (result.lower_bound > 0) == bool(result.ranges)
    assert not result.ranges or result.pvalue <= 0.05
    for left, right in pairwise(result.ranges):
        assert left.high < right.low
    for one in result.ranges:
        assert one.observed_low <= one.observed <= one.observed_high
        assert not one.observed_low <= one.predicted <= one.observed_high


def test_result_does_not_depend_on_the_order_of_the_rows(rng):
    y, p, _ = too_high_above(rng, 400)
    order = rng.permutation(400)
    one, other = (scan_test(y[k], p[k], random_state=3) for k in (slice(None), order))
    assert_allclose(one.null_distribution, other.null_distribution, rtol=1e-9)
    assert one.statistic == pytest.approx(other.statistic, rel=1e-12)


def test_each_class_is_scanned_and_named(rng):
    proba = rng.dirichlet([1, 1, 1], 900)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 900)]
    result = scan_test(y, proba, notion="classwise", random_state=0)
    assert result.class_pvalues.shape == (3,)
    assert {one.outcome[-1] for one in result.ranges} <= {"a", "b", "c"}
    assert result.pvalue == min(result.class_pvalues)
    assert result.null_distribution.shape == (3, 999)


def test_predictions_that_leave_nothing_to_chance():
    right = scan_test([0, 1, 1], [0.0, 1.0, 1.0], n_resamples=99, random_state=0)
    assert (right.pvalue, right.ranges, right.lower_bound) == (1.0, [], 0.0)
    wrong = scan_test([1, 1, 0, 1], [0.0, 1.0, 1.0, 0.5], n_resamples=99, random_state=0)
    assert wrong.pvalue == 0.01


def test_few_resamples_are_warned_of():
    with pytest.warns(UserWarning, match="at least n_resamples=19"):
        scan_test([0, 1, 1], [0.2, 0.5, 0.6], n_resamples=9)


def test_an_impossible_outcome_does_not_hide_ranges_from_a_scan_of_groups():
    rng = np.random.default_rng(0)
    p = np.append(np.zeros(500), rng.uniform(0.2, 0.8, 3500))
    y = rng.uniform(size=4000) < np.where(p > 0.5, p - 0.2, p)
    y[7] = True  # though its probability was 0
    groups = rng.permutation(np.repeat(np.arange(400), 10))
    result = scan_test(y, p, groups=groups, n_resamples=99, random_state=0)
    assert result.pvalue == 0.01
    impossible, other = result.ranges  # as without groups
    assert (impossible.low, impossible.high) == (0, 0)
    assert other.low > 0.3


def test_minimal_ranges_hold_no_other():
    rng = np.random.default_rng(0)
    [problem] = read_sample(rng.integers(2, size=400), rng.uniform(size=400)).problems()
    scan = RangeScan(problem)
    significant = rng.uniform(size=len(scan.first)) < 0.05
    places = list(zip(scan.first[significant], scan.end[significant], strict=True))
    rows = scan.first, scan.end, significant, scan._minimal(significant)
    for first, end, own, minimal in zip(*rows, strict=True):
        inside = [1 for a, b in places if first <= a and b <= end and (a, b) != (first, end)]
        assert minimal == (own and not inside)


def test_few_samples_of_a_range_are_calibrated_where_the_error_is_local():
    """The share is .02 unless a calibrated range is named, in at most 5 %: thrice of five in .1 %.

    The bound is .59 of the truth on average (standard deviation .08 of one set).
    """
    rng = np.random.default_rng(0)
    shares, bounds = [], []
    for _ in range(5):
        p = rng.uniform(size=10_000)
        wrong = (p > 0.5) & (p < 0.55)
        y = rng.uniform(size=10_000) < np.where(wrong, p + 0.2, p)
        result = scan_test(y, p, n_resamples=99, random_state=0)
        inside = np.zeros(10_000, dtype=bool)
        for one in result.ranges:
            inside |= (one.low <= p) & (p <= one.high)
            assert 0 <= one.may_be_calibrated <= 1
        shares.append(np.mean(~wrong[inside]))
        bounds.append(result.lower_bound / (0.2 * wrong.mean()))
    assert np.median(shares) < 0.15
    assert 0.45 < np.mean(bounds) < 1


def test_ranges_of_small_scores_may_be_calibrated_at_their_ends():
    rng = np.random.default_rng(3)
    p, weight = rng.uniform(size=4000), rng.lognormal(size=4000)
    y = rng.uniform(size=4000) < np.where(p > 0.9, p - 0.2, p)
    result = scan_test(y, p, sample_weight=weight, n_resamples=99, random_state=0)
    most = max(one.may_be_calibrated for one in result.ranges)
    assert most > 0.15
    text = "most samples of each range are in a part that is wrong"
    if most > 0.5:
        text = "the part of a range that is wrong may hold less than half of its samples"
    assert text in " ".join(str(result).split())
    one = result.ranges[0]._replace(n_samples=1234, may_be_calibrated=0.471)
    assert one.size_in_words("cases") == "1,234 cases, most of them in a part that is wrong"
    few = one._replace(may_be_calibrated=0.51)
    assert few.size_in_words("cases") == "somewhere among 1,234 cases"
    assert one._replace(may_be_calibrated=0.1).size_in_words() == "1,234 samples"


def test_the_calibrated_samples_between_two_errors_are_counted():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=20_000)
    between = (p > 0.61) & (p < 0.65)
    y = rng.uniform(size=20_000) < p + 0.2 * ((p > 0.56) & (p < 0.7) & ~between)
    [one] = scan_test(y, p, n_resamples=99, random_state=0).ranges
    held = (one.low <= p) & (p <= one.high)
    assert between[held].mean() > 0.25
    assert 0.2 < one.may_be_calibrated < 0.5


def test_cells_grow_with_the_samples():
    rng = np.random.default_rng(0)
    for n, n_cells in ((300, 32), (4900, 70), (40_000, 128)):
        p = rng.uniform(size=n)
        [problem] = read_sample(rng.uniform(size=n) < p, p).problems()
        assert len(RangeScan(problem).starts) == n_cells


def test_ranges_hold_numbers_of_python():
    p = np.linspace(0.05, 0.95, 200)
    ranges = scan_test((p > 0.5).astype(int), p, n_resamples=99, random_state=0).ranges
    assert ranges
    assert "np." not in repr(ranges)


HARD = "ignore:All predictions in y_proba are 0 or 1"


@pytest.mark.filterwarnings(HARD)
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("wrong", ["all", "a tenth", "one", "none"])
@pytest.mark.parametrize("others", [0, 800])
def test_certain_predictions_that_did_not_happen_are_named(rng, weights, wrong, others):
    p = np.repeat([0.0, 1.0], 200)
    share = {"all": 1.0, "a tenth": 0.1}.get(wrong, 0.0)
    y = np.where(rng.random(400) < share, 1 - p, p)
    if wrong == "one":
        y[0] = 1
    between = rng.random(others)
    p, y = np.append(p, between), np.append(y, rng.random(others) < between).astype(int)
    weight = rng.lognormal(0, 1, len(p)) if weights else None
    result = scan_test(y, p, sample_weight=weight, n_resamples=199)
    named = {(one.low, one.high): one for one in result.ranges}
    if wrong == "none":
        assert not {(0.0, 0.0), (1.0, 1.0)} & set(named)
        assert others or (result.pvalue == 1 and result.lower_bound == 0)
        return
    assert result.pvalue == 1 / 200
    assert result.lower_bound > 0
    for value in (0.0,) if wrong == "one" else (0.0, 1.0):
        one, inside = named[value, value], p == value
        observed = np.average(y[inside], weights=None if weight is None else weight[inside])
        assert one.n_samples == 200
        assert (one.predicted, one.observed) == pytest.approx((value, observed))
        assert one.observed_low <= observed <= one.observed_high
        assert one.may_be_calibrated == 0
    assert "no single range" not in str(result)


@pytest.mark.filterwarnings(HARD)
def test_limits_of_certain_predictions_are_those_of_bonferroni():
    p = np.repeat([0.0, 1.0], 200)  # three ranges: each and both
    for one in scan_test(1 - p.astype(int), p).ranges:
        interval = binomtest(200 - int(200 * one.low), 200).proportion_ci(1 - 0.05 / 3)
        assert_allclose([one.observed_low, one.observed_high], interval, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings(HARD)
@pytest.mark.parametrize("kind", ["groups", "some alone", "votes"])
def test_impossible_outcomes_of_groups_and_votes_name_their_range(kind):
    rng = np.random.default_rng(5)
    p = (rng.random(300) < 0.4).astype(float)
    wrong = np.flatnonzero(p == 0)[:4]
    y = p.copy()
    y[wrong] = 1
    options = {"n_resamples": 199, "labels": [0, 1]}
    if kind == "votes":
        y[wrong] = 0.2
        y, p = np.rint(5 * np.column_stack([1 - y, y])), np.column_stack([1 - p, p])
    else:
        options["groups"] = np.arange(300) // 5
        if kind == "some alone":
            options["groups"][150:] = np.arange(1000, 1150)
    test = scan_test(y, p, **options)
    assert test.pvalue == monte_carlo_test(y, p, **options).pvalue == 1 / 200
    [one] = test.ranges
    assert (one.low, one.high, one.observed_low > 0) == (0, 0, True)
    share = (0.2 if kind == "votes" else 1) * 4 / np.count_nonzero(p.reshape(300, -1)[:, -1] == 0)
    assert one.observed == pytest.approx(share)


@pytest.mark.filterwarnings(HARD)
def test_limits_of_certain_predictions_of_alike_groups_are_those_of_groups():
    p, y = np.repeat([0.0, 1.0], 200), np.append(np.ones(40), np.ones(360)).astype(int)
    single = scan_test(np.where(np.arange(80) < 8, 1, p[::5]), p[::5], labels=[0, 1]).ranges[0]
    y[40:200] = 0
    [groups] = scan_test(y, p, groups=np.arange(400) // 5).ranges
    assert_allclose(groups[4:7], single[4:7], rtol=1e-12)
