"""Bets on ranges of predictions: fair, found soon, and named."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from naive_bets import e_process, make_batches
from numpy.testing import assert_allclose

from skcal.monitoring import CalibrationMonitor
from skcal.monitoring.bets import Batch, Ranges, tilted
from skcal.monitoring.evidence import Evidence


def batch_of(p, y):
    return Batch.of(p[:, None], y[:, None].astype(float), np.ones(len(p)))


def drifting(seed, drift, before=2000, after=20_000, size=200, draw=None, **options):
    """A monitor of batches until its alarm, and the samples after the drift."""
    rng, monitor = np.random.default_rng(seed), CalibrationMonitor(labels=[0, 1], **options)
    for start in range(0, before + after, size):
        p = rng.beta(2, 3, size) if draw is None else draw(rng, size)
        q = p if start < before else drift(p)
        monitor.update(p, (rng.uniform(size=size) < q).astype(int))
        if monitor.alarm_:
            break
    return monitor, start + size - before


@pytest.fixture
def ranges(rng):
    family = Ranges(1.0)
    p = rng.beta(1, 4, 5000)
    family.sums += family.sums_of(batch_of(p, p < 0))
    return family, p


def test_ratios_are_those_of_the_tilts_and_ranges_hold_their_part(ranges, rng):
    family, p = ranges
    batch = batch_of(p[:200], rng.random(200) < p[:200])
    ratios, parts = family.log_ratios(batch), []
    for k in range(0, family.n_tilts, 7):
        law = tilted(batch, family.tilt(batch, k))
        assert_allclose(ratios[k], np.log(batch.of_column(law, batch.code) / batch.happened).sum())
        low, high, shift, part = family.range_of(k)
        inside = family.tilt(batch, k)[:, 1] == shift
        assert (inside == ((p > low) & (p <= high))[:200]).all()
        parts.append([((p > low) & (p <= high)).mean(), part])
    assert_allclose(family.weights.sum(), 1)
    widths, step = 1 / 2.0 ** np.arange(2, 7), family.sums.max() / family.sums.sum()
    assert all(np.abs(held - widths).min() <= step / 4 for held, _ in parts)
    assert all(held <= part <= held + 2 * step for held, part in parts)


def test_equal_predictions_are_in_one_range_of_each_level_or_two(ranges):
    family = Ranges(1.0)
    family.sums += family.sums_of(batch_of(np.full(300, 0.2), np.zeros(300)))
    batch = batch_of(np.full(3, 0.2), np.zeros(3))
    n_bets = np.count_nonzero(family.log_ratios(batch))
    assert n_bets in range(4 * 5, 2 * 4 * 5 + 1)


@pytest.mark.parametrize("n_columns", [2, 3])
def test_the_mean_over_all_outcomes_is_exactly_1(n_columns, rng, monkeypatch):
    """As that of all families, which have no bets on ranges before 200 predictions."""
    batches = make_batches([2, 1, 1], n_columns, rng)
    means = []
    for least in (2.0, 200.0):
        monkeypatch.setattr("skcal.monitoring.bets._RANGES_FROM", least)
        mean, spread = 0.0, 0.0
        for codes in product(range(n_columns), repeat=4):
            evidence, probability = Evidence(n_columns, n_columns == 2), 1.0
            for batch, code in zip(batches, np.split(np.array(codes), [2, 3]), strict=True):
                happened = replace(batch, code=code)
                probability *= happened.happened.prod()
                evidence.settle(evidence.bet(happened))
            mean += probability * np.exp(evidence.log_wealth_of_bets)
            spread = max(spread, np.ptp(evidence.log_starts[-evidence.runs.shape[1] :]))
        means.append(mean)
        assert (spread > 0) == (least == 2)
    assert_allclose(means, 1)


@pytest.mark.parametrize("n_columns", [2, 3])
def test_the_e_process_is_the_mixture_over_tilts_and_starts(n_columns, rng, monkeypatch):
    monkeypatch.setattr("skcal.monitoring.bets._RANGES_FROM", 4.0)
    batches = make_batches([3, 2, 6, 3], n_columns, rng, tilt=0.6)
    evidence, (e_value, detector) = (
        Evidence(n_columns, n_columns == 2),
        e_process(batches, n_columns),
    )
    for batch in batches:
        evidence.settle(evidence.bet(batch))
    assert np.ptp(evidence.log_starts[-evidence.runs.shape[1] :]) > 0.1
    assert_allclose(np.exp(evidence.log_e_value), e_value, rtol=1e-10)
    assert_allclose(np.exp(evidence.log_detector), detector, rtol=1e-10)


def test_a_run_begins_where_its_likelihood_ratio_is_largest(rng):
    evidence, ratios, sizes = Evidence(2, True), [], []
    for size in (300, 150, 80, 200, 40, 110):
        p = rng.beta(1, 4, size)
        batch = batch_of(p, rng.random(size) < p)
        ratios.append(evidence.families[-1].log_ratios(batch))
        evidence.settle(evidence.bet(batch))
        sizes.append(size)
    sums = np.cumsum(ratios[::-1], axis=0)[::-1]  # from each start on
    starts = np.append(0, np.cumsum(sizes)[:-1])
    reached = sums.max(axis=0)
    assert_allclose(evidence.runs[0], reached, atol=1e-9)
    alone = (np.sort(sums, axis=0)[-2] < reached - 1e-9) & (reached > 1e-9)
    assert alone.sum() > 100
    assert_allclose(evidence.runs[1, alone], starts[sums.argmax(axis=0)][alone])


@pytest.mark.parametrize("run_length", [None, 400_000])
def test_a_drift_of_a_range_is_found_soon_and_named(run_length):
    """2 % of the cases off by 0.45: without such bets the mean delay is some 20,000."""
    delays, named = [], 0
    for seed in range(4):
        low, high = np.quantile(np.random.default_rng(1).beta(2, 3, 100_000), [0.5, 0.52])
        drift = lambda p, low=low, high=high: p + 0.45 * ((low <= p) & (p < high))  # noqa: E731
        monitor, delay = drifting(seed, drift, run_length=run_length)
        delays.append(delay)
        [raised] = monitor.journal_
        named += raised.low < high and low < raised.high
        assert 0 < raised.since <= monitor.alarm_
        assert raised.high - raised.low < 0.15
        assert "among predictions from 3" in raised.note
        assert "the event happens more often than predicted" in str(monitor).splitlines()[0]
        resumed = CalibrationMonitor.from_json(monitor.to_json())
        assert resumed.journal_ == monitor.journal_
        assert str(resumed) == str(monitor)
    assert np.mean(delays) < 5000
    assert named == 4


def test_the_ends_of_all_predictions_are_said_in_words():
    top, _ = drifting(0, lambda p: np.where(p > 0.75, p - 0.4, p))
    assert " or more the event happens less often than predicted" in str(top)
    bottom, _ = drifting(0, lambda p: np.where(p < 0.06, p + 0.25, p))
    assert "among predictions up to " in str(bottom)
    assert ", of all predictions: " in str(bottom)
    assert "seems to be over" not in str(bottom)


def test_a_shift_of_all_predictions_is_no_range():
    draws = [None, lambda rng, n: rng.uniform(size=n), lambda rng, n: np.full(n, 0.3)]
    for seed, draw in enumerate(draws):
        monitor, _ = drifting(seed, lambda p: p / (p + (1 - p) / 2), draw=draw)
        assert monitor.journal_[0].low is None
        assert str(monitor).count("the event happens more often than predicted") == 1


def test_a_state_without_ranges_does_not_merge_with_others(monkeypatch):
    p = np.full(10, 0.3)
    with monkeypatch.context() as patch:
        patch.setattr(
            "skcal.monitoring.layout.Evidence", lambda *shape: Evidence(shape[0], shape[1], False)
        )
        old = CalibrationMonitor(labels=[0, 1]).update(p, np.arange(10) < 3)
    new = CalibrationMonitor(labels=[0, 1]).update(p, np.arange(10) < 3)
    for one, other in ((old, new), (new, old)):
        with pytest.raises(ValueError, match="have different bets: one has a state of format 3"):
            one.merge(other)
    merged = CalibrationMonitor(labels=[0, 1]).merge(old)
    assert_allclose(merged.log_e_value_, old.log_e_value_)
    assert_allclose(CalibrationMonitor.from_json(old.to_json()).log_e_value_, old.log_e_value_)
