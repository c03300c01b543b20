"""Signed sums, models of gaps and the calibration error against their definitions."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import foldnorm, multivariate_normal, norm

from skcal import calibration_error
from skcal.metrics import get_scorer
from skcal.metrics.error_limits import ErrorLimits, _sharpest
from skcal.metrics.gap_models import (
    _APART,
    _CALIBRATED,
    _FAR,
    _OFF,
    _OWN,
    _SPARSE,
    Cells,
    GapModels,
    _kernels,
    cells_of,
    held_out_gaps,
)
from skcal.metrics.gap_sums import (
    CHANGES,
    FOLDS,
    GapSums,
    canonical_order,
    excess_of_more_changes,
    largest_patterns,
    largest_signed_sums,
    noise_of_sums,
)
from skcal.sample import read_sample


def drawn(n, seed=0, truth=lambda p: p):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < truth(p)).astype(int), p


def limits_of(y, p, **options):
    return ErrorLimits(read_sample(y, p, **options))


def test_largest_signed_sums_are_the_largest_of_all_patterns_of_signs():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 9):
        steps = rng.normal(size=n)
        patterns = [np.array(signs) for signs in product((1, -1), repeat=n)]
        changes = [sum(a != b for a, b in pairwise(signs)) for signs in patterns]
        for k, total in enumerate(largest_signed_sums(steps, n + 2)):
            fitting = [signs for signs, c in zip(patterns, changes, strict=True) if c <= k]
            assert_allclose(total, max(signs @ steps for signs in fitting))
            signs = largest_patterns(steps, [0, k])[1]
            assert_allclose(signs @ steps, total)
            assert np.count_nonzero(np.diff(signs)) <= k


def test_largest_signed_sums_of_draws_are_those_of_each_draw():
    steps = np.random.default_rng(0).normal(size=(7, 40))
    for most in (0, 1, 34, 50):
        expected = np.stack([largest_signed_sums(row, most) for row in steps], axis=1)
        assert_allclose(largest_signed_sums(steps, most), expected, rtol=1e-12)


def test_noise_of_signed_sums_is_that_of_simulated_paths():
    rng = np.random.default_rng(1)
    variances = rng.uniform(0.5, 1.5, 200) / 200
    most = 9  # of more changes 200 steps are few
    kept = np.array(CHANGES) <= most
    sums = np.array(
        [largest_signed_sums(rng.normal(size=200) * np.sqrt(variances), most) for _ in range(400)]
    )[:, np.array(CHANGES)[kept]]
    mean, deviation = noise_of_sums(variances)
    # Standard errors of a mean and of a standard deviation of 400 values: 0.03 and 0.02.
    assert_allclose(sums.mean(axis=0), mean[kept], atol=0.13)
    assert_allclose(sums.std(axis=0), deviation[kept], atol=0.1)


def posterior_by_definition(cells: Cells):
    """Evidence, absolute gaps and gaps, by dense normal laws and by all sets of cells."""
    models, known = GapModels(cells), {}
    observed, share = cells.sums / cells.mass, cells.mass / cells.mass.sum()
    noise = np.diag(cells.noise / cells.mass**2)
    zero = multivariate_normal(cov=noise).logpdf(observed)
    rank = np.cumsum(share) - share / 2
    kernels, odds = _kernels(rank, cells.p, cells.chance)
    kernels = kernels + _OWN * np.diag(cells.alone)

    def given(covariance):
        kept = covariance @ np.linalg.inv(covariance + noise)
        mean, variance = kept @ observed, np.diagonal(covariance - kept @ covariance)
        deviation = np.sqrt(np.maximum(variance, 0)) + 1e-12
        return mean, foldnorm.mean(np.abs(mean) / deviation, scale=deviation)

    def evidence(covariance):
        return multivariate_normal(cov=covariance + noise).logpdf(observed) - zero

    log_weights, errors, gaps = [], [], []
    for square, log_prior in zip(models.squares, models.log_prior, strict=True):
        for amplitude in models.amplitudes:
            for kernel, odd in zip(kernels, odds, strict=True):
                covariance = square * amplitude[:, None] * kernel * amplitude
                mean, absolute = given(covariance)
                log_weights.append(np.log(odd) + log_prior + evidence(covariance))
                errors.append(absolute)
                gaps.append(mean)
            for cell in models.partitions:
                place = (*cell, square, *amplitude)
                parts = known.setdefault(place, [])
                for off in [] if parts else product((False, True), repeat=cell.max() + 1):
                    shared = (cell[:, None] == cell) & np.array(off)[cell]
                    covariance = square * amplitude[:, None] * shared * amplitude
                    chance = np.prod(np.where(off, _OFF, 1 - _OFF))
                    mean, absolute = given(covariance)
                    absolute = np.where(np.array(off)[cell], absolute, 0)
                    parts.append((chance * np.exp(evidence(covariance)), absolute, mean))
                weight = np.array([part[0] for part in parts])
                prior = np.log(_SPARSE / len(models.partitions)) + log_prior
                log_weights.append(prior + np.log(weight.sum()))
                errors.append(weight @ np.array([part[1] for part in parts]) / weight.sum())
                gaps.append(weight @ np.array([part[2] for part in parts]) / weight.sum())
    total = np.exp(models.log_prior).sum() * len(models.amplitudes) * (sum(odds) + _SPARSE)
    weight = (1 - _CALIBRATED) * np.exp(log_weights) / total
    whole = weight.sum() + _CALIBRATED
    return whole, weight @ np.array(errors) / whole, weight @ np.array(gaps) / whole


@pytest.mark.parametrize("sums", [[3.0, 1, -2, 0.5], [0.2, 0.1, 0, -0.3], [-9.0, 1, -2, 3]])
@pytest.mark.parametrize("alone", [False, True])
def test_gap_models_average_what_dense_normal_laws_say(sums, alone):
    mass, p, sums = np.array([20.0, 30, 25, 25]), np.array([0.1, 0.3, 0.6, 0.9]), np.array(sums)
    chance, all_alone = mass * p * (1 - p), np.full(4, alone)
    far = all_alone & (np.abs(sums) > _FAR * np.sqrt(1.2 * chance))
    cells = Cells(mass, sums, 1.2 * chance, chance, p, all_alone, far, np.arange(4))
    evidence, absolute, gaps = posterior_by_definition(cells)
    if far.any():  # models of all cells, or of the others only, beside any gap of those
        others = Cells(*(values[~far] for values in cells[:-1]), np.arange(3))
        apart, *of_others = posterior_by_definition(others)
        density = norm.pdf(sums[far], scale=np.sqrt(cells.noise[far]))
        apart *= _APART / (1 - _APART) * np.prod(_OFF / (2 * mass[far]) / density)
        for values, mean in zip((absolute, gaps), of_others, strict=True):
            values[~far] = (evidence * values[~far] + apart * mean) / (evidence + apart)
            values[far] = (sums / mass)[far]
    error, found = GapModels(cells).average(sums)
    assert_allclose(error, mass / 100 @ np.where(far, np.abs(absolute), absolute), rtol=1e-5)
    assert_allclose(found, gaps, rtol=1e-5, atol=1e-9)


def values_with_events(values, rates, n):
    """Samples of some predictions, n of each, of which just that share are events."""
    numbers = np.broadcast_to(n, len(values))
    events = np.rint(np.multiply(rates, numbers)).astype(int)
    y = np.concatenate([np.arange(m) < k for m, k in zip(numbers, events, strict=True)])
    return y.astype(int), np.repeat(np.asarray(values, dtype=float), numbers)


PAIRS = [(0, 0.2), (1e-12, 0.2), (9e-5, 0.2), (2e-4, 0.2), (0.001, 0.2), (0.01, 0.2)]


@pytest.mark.parametrize("pair", [*PAIRS, (0.3, 0.3001), (0.05, 0.050001), (0.499, 0.501)])
@pytest.mark.parametrize("more", [(), ("sample_weight",), ("groups",)])
def test_errors_of_two_predictions_do_not_cancel(pair, more):
    # As far apart as 0.2 and 0, or as near as 1e-6; on both sides of 5,000 samples.
    gap = 0.1 if pair[0] < 0.03 else 0.04
    for n in (200, 2490, 2510):
        rates = [pair[0] + gap, pair[1] - gap]
        y, p = values_with_events(pair, rates, n)
        options = {"sample_weight": 1 + np.arange(2 * n) % 2, "groups": np.arange(2 * n) // 2}
        options = {name: options[name] for name in more}
        for outcome, prediction in ((y, p), (1 - y, 1 - p)):
            limits = limits_of(outcome, prediction, labels=[0, 1], **options)
            interval = limits.interval(0.01)
            assert interval.low <= interval.estimate <= gap + 0.01 <= interval.high + 0.02
            if n > 200 or gap > 0.05:
                assert interval.estimate > 0.8 * gap
                assert interval.low > 0.2 * gap


@pytest.mark.parametrize(("n", "most"), [(4704, 96), (5160, 128)])
def test_so_many_predictions_are_each_read_by_itself(n, most):
    # 24 samples of 0.5 ± 0.4 in turn: just as many predictions as there are cells, and one more.
    for n_values in (most - 1, most, most + 1):
        values = np.linspace(0.4, 0.6, n_values)
        rates = np.where(np.arange(n_values) % 2, 0.9, 0.1)
        y, p = values_with_events(values, rates, np.full(n_values, n // (most + 1)))
        truth = np.abs(rates - values).mean()
        assert calibration_error(y, p) > 0.95 * truth


def test_a_prediction_with_as_many_samples_as_a_cell_is_alone_in_one():
    rng = np.random.default_rng(0)
    for size, alone in ((50, True), (49, False)):  # 1 / 96 of 4,800
        p = np.append(np.full(size, 0.3), rng.uniform(0.1, 0.9, 4800 - size))
        y = np.append(np.arange(size) < 40, rng.random(4800 - size) < p[size:]).astype(int)
        part = limits_of(y, p).parts[0]
        cells = cells_of(part)
        place = cells.cell[np.searchsorted(part.x[part.starts], 0.3)]
        assert bool(cells.alone[place]) == alone == bool(cells.far[place])
        assert 0.004 < calibration_error(y, p) < 0.02  # 0.005 of a calibrated curve


def test_few_predictions_are_read_as_they_are_beside_some_that_are_far_off():
    # Leaves of a tree: 12 events where the prediction is 0, and gaps of two standard errors.
    values, n = [0, 0.1, 0.36, 0.68, 0.86], np.array([12, 970, 1880, 1020, 1120])
    rates = np.array([1, 0.122, 0.382, 0.646, 0.845])
    y, p = values_with_events(values, rates, n)
    error = n @ np.abs(rates - values) / n.sum()
    assert 0.65 * error < calibration_error(y, p) < error  # 0.14 of it where events at 0 decide
    y, p = values_with_events([0, 0.3, 0.7, 1], [0.06, 0.25, 0.74, 0.92], 1000)
    assert_allclose(calibration_error(y, p), 0.0575, rtol=0.03)


def test_cells_hold_every_sample_once_and_stay_on_their_side_of_one_half():
    for n in (3, 20, 700, 6000):
        y, p = drawn(n, seed=n)
        gaps = GapSums.of(read_sample(y, p, labels=[0, 1]).problems()[0])
        cells = cells_of(gaps)
        assert_allclose(cells.mass.sum(), n)
        assert_allclose(cells.sums.sum(), (y - p).sum())
        assert (np.diff(cells.cell) >= 0).all()
        side = gaps.x[gaps.starts] >= 0.5
        assert all(len(set(side[cells.cell == k])) == 1 for k in range(len(cells.mass)))
        assert len(cells.mass) <= 128


def test_limits_are_signed_means_and_their_half_widths():
    y, p = drawn(400, seed=3, truth=lambda p: p**2)
    order = np.argsort(p)
    gap = (y - p)[order]
    sums = [gap[:i].sum() - gap[i:].sum() for i in range(401)]
    largest = np.abs(sums).max() / 400
    square, limits = max(np.mean(gap**2), np.mean(p * (1 - p))), limits_of(y, p)
    high, crossings = limits.high(0.05, 1)
    assert crossings == 1
    half = 1.6449 * np.sqrt((square - largest**2) / 400)
    assert_allclose(high, largest + half + np.log(20) / 400, rtol=1e-4)
    bias = abs(gap.mean())  # shows more here than residuals that others sign
    assert_allclose(limits.low(0.05), bias - 1.96 * np.sqrt((square - bias**2) / 400), rtol=1e-4)


def test_factors_of_a_lower_limit_are_the_best_that_a_search_finds():
    rng = np.random.default_rng(0)
    signals, variances = rng.normal(size=(3, 6)) * [[0.5], [2], [5]], rng.uniform(0.3, 1, 6)

    def shortage(factors, signal):
        return 2 * np.sqrt(factors**2 @ variances) - factors @ signal

    for signal, factors in zip(signals, _sharpest(signals, variances), strict=True):
        searched = [
            minimize(shortage, start, args=(signal,), bounds=[(-1, 1)] * 6).fun
            for start in (np.sign(signal) / 2, 0.1 * np.sign(signal))
        ]
        assert shortage(factors, signal) <= min(searched) + 1e-3


def test_no_residual_has_a_factor_that_it_chose():
    y, p = drawn(400, seed=2, truth=lambda p: p**2)
    part = limits_of(y, p).parts[0]
    part = replace(part, given_folds=part.folds)
    cells, before = held_out_gaps(part)
    for fold in (0, FOLDS - 1):
        own = part.folds == fold
        moved = replace(part, residuals=np.where(own, -part.residuals, part.residuals))
        assert_allclose(held_out_gaps(moved)[1][fold], before[fold], rtol=1e-9)
        assert np.abs(held_out_gaps(moved)[1][3] - before[3]).max() > 0.01
    others = part.folds > 0
    sums = np.bincount(part.of_rows(cells.cell), part.residuals * others) / np.sqrt(others.mean())
    assert_allclose(before[0], GapModels(cells).average(sums)[1])


def test_the_lower_limit_shows_much_of_a_spike():
    # 7 % of 1,000 samples are off by 0.39, 0.027 on average. Signed sums of all samples show 0.009.
    lows = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = np.where(rng.random(1000) < 0.05, rng.uniform(0.88, 0.9, 1000), rng.random(1000))
        truth = np.where((p > 0.88) & (p < 0.9), 0.5, p)
        lows.append(limits_of((rng.random(1000) < truth).astype(int), p).low(0.05))
    assert np.mean(lows) > 0.01


@pytest.mark.parametrize("law", ["uniform", "rounded", "rare", "outer"])
@pytest.mark.parametrize("more", [(), ("sample_weight",), ("sample_weight", "groups")])
def test_the_other_outcome_as_the_event_has_the_same_error_and_limits(law, more):
    rng = np.random.default_rng(9)
    for n in (37, 333, 2500)[: 3 if law == "uniform" else 2]:
        p = {
            "uniform": rng.random(n),
            "rounded": rng.integers(0, 21, n) / 20,
            "rare": expit(rng.normal(-4, 1, n)),
            "outer": rng.beta(0.3, 0.3, n).clip(1e-6, 1 - 1e-6),
        }[law]
        y = (rng.random(n) < p**1.3).astype(int)
        options = {
            "sample_weight": rng.lognormal(0, 0.7, n),
            "groups": rng.integers(n // 3, size=n),
        }
        options = {name: options[name] for name in more}
        one, other = (
            limits_of(*pair, labels=[0, 1], **options) for pair in ((y, p), (1 - y, 1 - p))
        )
        assert_allclose(other.estimate, one.estimate, rtol=1e-9)
        assert_allclose(other.low(0.05), one.low(0.05), rtol=1e-9, atol=1e-15)
        assert_allclose(other.high(0.05)[0], one.high(0.05)[0], rtol=1e-9)


def test_limits_of_groups_are_those_of_their_sums():
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(40), 5)
    p = np.repeat(rng.uniform(0.2, 0.8, 40), 5)
    y = np.repeat(rng.random(40) < 0.5, 5).astype(int)
    limits = limits_of(y, p, groups=groups)
    ones = [np.ones(200)]
    sums = np.bincount(groups, (y - p) - np.mean(y - p)) / 200
    assert_allclose(limits._variance(ones, [np.mean(y - p)]), 40 / 39 * sums @ sums)
    alone = limits_of(y, p)
    assert limits.high(0.05, 34)[0] > alone.high(0.05, 34)[0]
    assert limits.low(0.05) <= alone.low(0.05)


@pytest.mark.filterwarnings("ignore:groups holds 9 groups")
def test_the_upper_limit_of_groups_is_the_largest_of_fewer_changes_and_their_half_widths():
    groups, fewer = np.append([0, 0, 0], np.arange(9)), set()
    patterns = [np.array(signs) for signs in product((1.0, -1.0), repeat=12)]
    changes = np.array([np.count_nonzero(np.diff(signs)) for signs in patterns])
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p, y = np.sort(rng.uniform(0.2, 0.8, 12)), (rng.random(9) < 0.5)[groups]
        limits = limits_of(y.astype(int), p, groups=groups, labels=[0, 1])
        means, highs = np.array([signs @ (y - p) / 12 for signs in patterns]), []
        for k in range(4):
            best = np.flatnonzero(changes <= k)[means[changes <= k].argmax()]
            spread = np.sqrt(limits._variance([patterns[best]], [means[best]]))
            highs.append(means[best] + limits.quantile(0.05) * spread)
        more = excess_of_more_changes(limits._sums, limits.noise_means, limits.deviation, 3)
        assert_allclose(limits.high(0.05)[0], min(1, max(highs) + more + np.log(20) / 12))
        fewer.add(int(np.argmax(highs)))
    assert len(fewer) > 1


def calibrated_but_for_a_gap(n_groups, size, correlation, gap, rng):
    """Outcomes with a latent correlation within groups, more frequent than predicted by a gap."""
    groups = np.repeat(np.arange(n_groups), size)
    p = rng.random(len(groups))
    q = np.minimum(p + gap, 1)
    score = np.sqrt(correlation) * rng.normal(size=n_groups)[groups]
    score += np.sqrt(1 - correlation) * rng.normal(size=len(groups))
    return (score < norm.ppf(q)).astype(int), p, groups, np.mean(q - p)


@pytest.mark.slow
@pytest.mark.parametrize(
    "design", [(10, 800, 0.6, 0.15), (12, 1000, 0.4, 0.1), (40, 400, 0.5, 0.075)]
)
def test_the_upper_limit_of_large_groups_is_too_low_in_5_percent_of_data_sets(design):
    missed = 0
    for seed in range(2000):
        y, p, groups, truth = calibrated_but_for_a_gap(*design, np.random.default_rng(seed))
        missed += limits_of(y, p, groups=groups, labels=[0, 1]).high(0.05)[0] < truth
    assert missed <= 109  # 5 % and one standard error; without fewer changes 7 % in the first


@pytest.mark.parametrize("notion", ["confidence", "top-label", "classwise"])
def test_the_order_of_the_rows_changes_no_digit(notion):
    rng = np.random.default_rng(7)
    n = 300
    proba = rng.dirichlet([0.5] * 3, n).round(1)
    proba[:, 2] = 1 - proba[:, :2].sum(axis=1)
    proba = np.abs(proba)
    y, weight, groups = rng.integers(3, size=n), rng.integers(1, 4, n), rng.integers(90, size=n)
    rows = rng.permutation(n)
    for more in ({}, {"sample_weight": weight}, {"sample_weight": weight, "groups": groups}):
        one = limits_of(y, proba, notion=notion, **more).interval(0.01)
        moved = {name: values[rows] for name, values in more.items()}
        assert one == limits_of(y[rows], proba[rows], notion=notion, **moved).interval(0.01)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("law", ["labels", "weights", "shares"])
def test_rows_are_sorted_by_prediction_then_outcome_then_weight(law, dtype):
    rng = np.random.default_rng(1)
    p = np.append([0.0, 1, 1e-310, 5e-324, 0.5], rng.integers(0, 21, 300) / 20).astype(dtype)
    y = (rng.random(305) < p).astype(int)
    weight = rng.integers(1, 3, 305) if law == "weights" else np.ones(305)
    if law == "shares":
        y = np.column_stack([1 - y / 2, y / 2])
    problem = read_sample(y, p, labels=[0, 1], sample_weight=weight).problems()[0]
    problem = problem._replace(features=np.where(problem.features == 0, -0.0, problem.features))
    x, outcome, weight = problem.features[:, 0], problem.outcomes[:, 0], problem.weight
    order = canonical_order(problem)
    assert sorted(order) == list(range(305))
    keys = np.where(np.where(x == 0.5, outcome, x) < 0.5, -weight, weight), outcome, x
    expected = np.lexsort(keys)
    for key in keys:
        np.testing.assert_array_equal(key[order], key[expected])


def test_classwise_error_of_two_classes_is_that_of_one():
    rng = np.random.default_rng(8)
    two = rng.dirichlet([0.5] * 2, 500)
    y = (rng.random(500) < 0.5).astype(int)
    both, one = (limits_of(y, two, notion=notion) for notion in ("classwise", "binary"))
    assert_allclose(both.estimate, one.estimate, rtol=1e-9)
    assert_allclose(both.high(0.05)[0], one.high(0.05)[0], rtol=1e-9)
    # The factors of cells are chosen for the sum over the classes, as if they were independent.
    assert_allclose(both.low(0.05), one.low(0.05), rtol=0.02)


def classes_off(rng, n, n_classes, off):
    """Labels and predictions of many classes, and the true class-wise error."""
    p = rng.dirichlet(np.full(n_classes, 0.3), n)
    q = {
        "calibrated": p,
        "noise": 0.8 * p + 0.2 / n_classes,
        "prior": p * np.exp(np.resize([0.5, -0.5], n_classes)),
    }[off]
    q = q / q.sum(axis=1, keepdims=True)
    places = np.cumsum(q, axis=1)
    y = np.minimum((rng.random((n, 1)) > places).sum(axis=1), n_classes - 1)
    return y, p, np.abs(q - p).mean()


@pytest.mark.parametrize("off", ["calibrated", "noise", "prior"])
@pytest.mark.parametrize(("n", "n_classes"), [(600, 3), (500, 20)])
def test_classes_lend_each_other_strength(off, n, n_classes):
    pooled, alone, order = [], [], np.random.default_rng(0).permutation(n_classes)
    for seed in range(3):
        rng = np.random.default_rng([seed, n_classes])
        y, p, truth = classes_off(rng, n, n_classes, off)
        error = calibration_error(y, p, notion="classwise", labels=range(n_classes))
        pooled.append(abs(error - truth))
        if off == "calibrated":
            each = [calibration_error(y == k, p[:, k], labels=[0, 1]) for k in range(n_classes)]
            alone.append(np.mean(each))
        if seed == 0:
            again = calibration_error(order.argsort()[y], p[:, order], notion="classwise")
            assert_allclose(again, error, rtol=1e-6)
    most = (0.75 if n_classes == 3 else 1 / 3) * np.mean(alone) if alone else 0.4 * truth
    assert np.mean(pooled) < most


@pytest.mark.parametrize("n_labels", [2, 3, 20])
def test_one_class_that_is_off_alone_is_seen(n_labels):
    rng = np.random.default_rng(n_labels)
    p = rng.beta(1, 4, (1500, n_labels))
    q = p.copy()
    q[:, 0] = np.minimum(p[:, 0] + 0.1, 1)
    y = (rng.random(q.shape) < q).astype(int)
    error = calibration_error(y, p, notion="multi-label")
    assert 0.8 * 0.1 / n_labels < error < 0.1 / n_labels + 0.008


def test_samples_of_groups_do_not_tell_more_of_classes_than_the_groups():
    rng = np.random.default_rng(3)
    y, p, _ = classes_off(rng, 300, 6, "calibrated")
    one = calibration_error(y, p, notion="classwise")
    y, p, groups = np.repeat(y, 8), np.repeat(p, 8, axis=0), np.repeat(np.arange(300), 8)
    assert calibration_error(y, p, notion="classwise", groups=groups) < 2 * one
    assert calibration_error(y, p, notion="classwise") > 2.5 * one


def test_estimate_lies_within_its_limits_and_is_no_smaller_than_a_significant_bias():
    for seed in range(10):
        y, p = drawn(200, seed, lambda p: 0.85 * p)
        limits = limits_of(y, p)
        bias = abs(np.mean(y - p))
        assert limits.low(0.05) <= limits.estimate <= limits.high(0.05)[0]
        if bias > 1.96 * np.sqrt(np.mean((y - p) ** 2) / 200):
            assert limits.estimate >= bias - 1e-12


def test_samples_of_no_uncertainty_have_errors_of_their_gap():
    y, p = np.zeros(100, dtype=int), np.full(100, 1e-9)
    assert calibration_error(y, p, labels=[0, 1]) < 0.01
    assert calibration_error(1 - y, p, labels=[0, 1]) > 0.5


def test_scorer_is_minus_the_error():
    class Model:
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            return np.column_stack([1 - X, X])

    y, p = drawn(300, 1)
    assert get_scorer("neg_calibration_error")(Model(), p, y) == -calibration_error(y, p)


def test_vectors_are_refused_with_the_name_of_their_error():
    proba = np.full((30, 3), 1 / 3)
    with pytest.raises(ValueError, match=r"notion='canonical'.*RMS calibration error"):
        calibration_error(np.arange(30) % 3, proba, notion="canonical")


REPEATED = {  # events of p, and by how much the mean of 12 sets may differ from that of single rows
    "calibrated": (lambda p: p, 0.008),
    "slope": (lambda p: 0.5 + 0.6 * (p - 0.5), 0.012),
    "shift": (lambda p: p + 0.42 * p * (1 - p), 0.008),
}


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_rows_of_a_group_estimate_what_single_rows_do(name):
    truth, tolerance = REPEATED[name]
    singles, repeated = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p = rng.random(150)
        y = (rng.random(150) < truth(p)).astype(int)
        singles.append(calibration_error(y, p))
        times = [np.repeat(np.arange(150), m) for m in ((2, 5, 10, 20) if seed < 3 else (10,))]
        errors = [calibration_error(y[rows], p[rows], groups=rows) for rows in times]
        assert np.ptp(errors) < 1e-4  # however often they are repeated
        repeated.append(errors[0])
    assert abs(np.mean(repeated) - np.mean(singles)) < tolerance


def test_estimates_of_groups_change_little_with_small_changes_of_their_predictions():
    truth, errors = REPEATED["slope"][0], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows, p, shared = np.repeat(np.arange(150), 10), rng.random(150), rng.random(150)
        aside = rng.uniform(-1, 1, 1500)
        each = [np.clip(p[rows] + far * aside, 0.001, 0.999) for far in (0, 0.0003, 0.003, 0.01)]
        errors.append([calibration_error(shared[rows] < truth(q), q, groups=rows) for q in each])
    same, *nearly = np.mean(errors, axis=0)
    assert np.max(np.abs(nearly - same)) < 0.012  # it was 0.07 less if only equal ones counted


def test_groups_that_are_spread_over_all_predictions_do_not_repeat_them():
    rng = np.random.default_rng(0)
    rows, p, shared = np.repeat(np.arange(60), 20), rng.random(1200), rng.random(60)
    for q in (p, np.round(p, 1)):
        [problem] = read_sample(shared[rows] < q, q, groups=rows).problems()
        gaps = GapSums.of(problem)
        assert gaps.groups.strength > 0.5
        assert 1 <= gaps.repeated < 1.5
    [problem] = read_sample(shared[rows] < p[rows], p[rows], groups=rows).problems()
    assert GapSums.of(problem).repeated > 15
