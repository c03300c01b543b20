"""The interval of the calibration error agrees with the verdict, and says so in words."""

import numpy as np
import pytest

from skcal.hypothesis_tests import (
    calibration_error_interval,
    calibration_test,
    equivalence_test,
)
from skcal.metrics import calibration_error
from skcal.metrics.error_limits import CalibrationErrorInterval, ErrorLimits
from skcal.sample import read_sample


def drawn(n, seed, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p**power).astype(int), p


def test_lower_limit_is_above_0_only_where_the_test_rejects():
    seen = set()
    for seed in range(6):
        y, p = drawn(200, seed, 1 + seed / 8)
        interval = calibration_error_interval(y, p)
        rejected = calibration_test(y, p, random_state=0).pvalue <= 0.05
        assert interval.is_significant == rejected
        assert rejected or interval.low == 0
        assert 0 <= interval.low <= interval.estimate <= interval.high <= 1
        assert interval.estimate == calibration_error(y, p)
        seen.add((rejected, interval.low > 0))
    assert {(False, False), (True, True)} <= seen


def test_other_confidence_levels_have_the_same_estimate_and_nested_limits():
    y, p = drawn(300, 3, 1.5)
    narrow, usual, wide = (
        calibration_error_interval(y, p, confidence_level=level) for level in (0.5, 0.95, 0.99)
    )
    assert narrow.estimate == usual.estimate == wide.estimate
    assert wide.low <= usual.low <= narrow.low
    assert narrow.high <= usual.high <= wide.high


def test_more_crossings_widen_the_upper_limit_and_evident_ones_are_allowed():
    y, p = drawn(2000, 4)
    highs = [calibration_error_interval(y, p, max_crossings=k).high for k in (0, 1, 3, 7)]
    assert highs == sorted(highs)
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    truth = p + 0.2 * np.sign(np.sin(20 * np.pi * p)) * (np.abs(p - 0.5) < 0.3)
    interval = calibration_error_interval((rng.random(5000) < truth).astype(int), p)
    assert interval.max_crossings > 3
    changes = f"at most {interval.max_crossings} changes between too low and too high"
    assert changes in " ".join(str(interval).split())
    assert interval.high > np.abs(truth - p).mean()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("notion", ["binary", "multi-label", "precision-at-2"])
def test_votes_and_labels_in_another_order_change_no_digit(notion, seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, (120, 3))
    y = (rng.random((120, 3)) < p).astype(int)
    if notion == "binary":
        p = p[:, 0].round(1)
        votes = rng.binomial(5, p)
        y = np.column_stack([5 - votes, votes])
    rows = rng.permutation(120)
    one = calibration_error_interval(y, p, notion=notion)
    assert one == calibration_error_interval(y[rows], p[rows], notion=notion)


def test_even_votes_at_one_half_in_another_order_change_no_digit():
    """Their residuals are 0, but their weights count."""
    rng = np.random.default_rng(0)
    p = np.where(rng.random(300) < 0.3, 0.5, rng.integers(0, 21, 300) / 20)
    votes = np.where(p == 0.5, 1, rng.binomial(2, 0.3 + 0.4 * p))
    y, weight = np.column_stack([2 - votes, votes]), rng.integers(1, 9, 300)
    one, other = (
        calibration_error_interval(y[order], p[order], sample_weight=weight[order])
        for order in (np.arange(300), rng.permutation(300))
    )
    assert one == other
    assert one.low > 0


def test_errors_that_change_their_sign_more_often_than_signed_sums_may_are_within_their_limits():
    rng = np.random.default_rng(0)
    step = rng.integers(60, size=100_000)
    p = 0.2 + 0.01 * step
    y = (rng.random(len(p)) < p + 0.15 * (-1.0) ** step).astype(int)
    limits = ErrorLimits(read_sample(y, p))
    assert limits.high(0.05)[0] < 0.1 < limits.estimate
    assert limits.interval(0.001).high == limits.estimate


def test_sentences_say_what_the_numbers_say():
    def said(**changes):
        facts = {"estimate": 0.032, "low": 0.018, "high": 0.051, "pvalue": 0.001}
        return CalibrationErrorInterval(
            **facts | changes, confidence_level=0.95, max_crossings=3, notion="binary"
        ).sentence()

    assert said() == (
        "calibration error 0.032 (at least 0.018, at most 0.051, each with 95 % confidence)"
    )
    assert said(low=0.0) == (
        "calibration error 0.032 (above 0, p ≤ 0.001; at most 0.051 with 95 % confidence)"
    )
    assert said(low=0.0, pvalue=0.2) == (
        "calibration error 0.032 (not significantly above 0; at most 0.051 with 95 % confidence)"
    )


@pytest.mark.parametrize("max_crossings", [-1, 101])
def test_numbers_of_crossings_without_sense_are_refused(max_crossings):
    with pytest.raises(ValueError, match=r"max_crossings.*\[0, 100\]"):
        calibration_error_interval([0, 1, 1], [0.2, 0.7, 0.6], max_crossings=max_crossings)


def test_a_given_pvalue_decides_in_place_of_that_of_the_test():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=500)
    y = rng.uniform(size=500) < p**1.6
    found = calibration_error_interval(y, p)
    again = calibration_error_interval(y, p, pvalue=found.pvalue)
    assert vars(again) == vars(found)
    assert found.low > 0
    adjusted = calibration_error_interval(y, p, pvalue=0.2)
    assert (adjusted.low, adjusted.pvalue, adjusted.is_significant) == (0, 0.2, False)
    assert (adjusted.estimate, adjusted.high) == (found.estimate, found.high)
    limit = found.low / 2
    assert equivalence_test(y, p, limit=limit).verdict == "above"
    assert equivalence_test(y, p, limit=limit, pvalue=0.2).verdict == "unknown"
