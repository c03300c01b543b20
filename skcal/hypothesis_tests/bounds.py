"""Bounds of errors, and how many samples would show an error to be below a limit.

That number comes from data sets that are drawn: gaps of the size of the assumed error, in the shape
that the data at hand suggest, plus normal noise of the variance that so many samples would have.
The draws are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import foldnorm, norm

from skcal._validation import as_floats
from skcal.hypothesis_tests.kolmogorov_smirnov import (
    largest_gap_limit,
    range_tail,
    variances_of_ranges,
)
from skcal.metrics.binned_rms_interval import rms_bounds
from skcal.metrics.bins import BinRule
from skcal.metrics.cumulative import largest_over_ranges
from skcal.metrics.error_limits import ErrorLimits
from skcal.metrics.gap_models import GapModels, cells_of
from skcal.metrics.gap_sums import (
    CHANGES,
    GapSums,
    at_changes,
    excess_of_more_changes,
    largest_signed_sums,
    noise_of_fine_sums,
    noise_of_sums,
)
from skcal.metrics.limits import proportion_limits
from skcal.notions import Problem

_SCALES = np.geomspace(0.15, 1, 14)  # of standard deviations of sums over ranges
_FEW_SCALES = _SCALES[1::4]
_N_QUANTILES = 101  # between which ranges of groups are taken
# Mean, variance and third central moment of the absolute value of a standard normal variable.
_ABSOLUTE_NORMAL = (2 / np.pi) ** 0.5, 1 - 2 / np.pi, (2 / np.pi) ** 0.5 * (4 / np.pi - 1)
PASS_CHANCE = 0.9  # of a pass
_BOUND_DRAWS = 200
_OF_ENDS = 1.165  # standard deviations of a step (Siegmund 1985)
_CELLS_TOGETHER = 4  # coarse cells that make one
_LEAST_ROOT, _ROOT_PRECISION = 2.0**-25, 0.004  # of 1 / √n


class Bounds(NamedTuple):
    """Estimate and bounds of the error of one problem; bounds may lie outside [0, 1]."""

    estimate: float
    low: float
    high: float
    n_samples_needed: float
    assumed_error: float

    @classmethod
    def largest(cls, bounds) -> Bounds:
        """The bounds of the largest error of several problems."""
        estimate, low, high = (max(column) for column in list(zip(*bounds, strict=True))[:3])
        return cls(estimate, low, high, *max(each[3:] for each in bounds))


def bounds_of_rms(sample, limit, tail, n_bins) -> Bounds:
    """The root of the debiased squared error in uniform bins."""
    bounds = rms_bounds(sample, BinRule(n_bins, "uniform"), tail, PASS_CHANCE)
    needed = samples_needed(limit, 0.0, bounds.high_of) if bounds.estimate < limit else np.inf
    return Bounds(bounds.estimate, bounds.low, bounds.high, needed, bounds.estimate)


def largest_gap_of(problem: Problem, min_share, alpha) -> float:
    """The upper bound of the gap of any range with a share of the samples."""
    return largest_gap_limit(GapSums.of(problem), min_share, problem.quantile(alpha), alpha)


def bounds_of_cutoff(problem: Problem, limit, alpha, method) -> Bounds:
    """The largest difference of the numbers of events in any range of predictions, per sample."""
    terms, rate = _Terms(problem), np.log(1 / alpha)
    estimate, deviation = largest_over_ranges(problem), terms.deviation
    if method == "exact":
        implied = float(terms.implied.sum())
        high = _exact_rise(terms.steps, terms.seen, implied, terms.n, rate)
        low = estimate - np.sqrt(2 * np.log(2 / alpha) / terms.n)  # Hoeffding's inequality
    else:
        z = problem.quantile(alpha)
        of_singles = z if problem.groups.independent else norm.isf(alpha)
        variances = terms.implied, terms.seen
        high = max(_asymptotic_rise(terms.steps, each, of_singles) for each in variances)
        if not problem.groups.independent:
            deviation, between = _between_quantiles(problem, z)
            deviation, high = max(terms.deviation, deviation), np.maximum(high, between)
        high += rate * terms.most
        low = estimate - _range_quantile(alpha) * z / norm.isf(alpha) * deviation

    def high_of(steps, variances, n):
        if method == "exact":
            return _exact_rise(steps, variances, variances.sum(), n, rate)
        unseen = rate * terms.most * terms.n / n
        return _asymptotic_rise(steps, variances, z, _FEW_SCALES) + unseen

    needed, assumed = needed_for_cutoff_error(
        GapSums.of(problem), terms.n, limit, estimate, high_of
    )
    return Bounds(estimate, low, float(high), needed, assumed)


def _between_quantiles(problem, z) -> tuple[float, float]:
    """The largest standard deviation of groups of all ranges between quantiles, and the bound.

    That is the largest mean residual plus z standard deviations.
    """
    x, groups, weight = problem.features[:, 0], problem.groups, problem.weight / problem.number()
    edges = np.unique(np.quantile(x, np.linspace(0, 1, _N_QUANTILES), method="inverted_cdf"))
    cells = np.searchsorted(edges, x)
    sums = groups.sums_in_cells(weight * problem.residuals[:, 0], cells, len(edges))
    law = groups.covariance_of_cells(weight, x.astype(np.float64), cells, len(edges))
    seen = groups.unbiased * sums.T @ sums
    variances = np.maximum(*map(variances_of_ranges, (seen, law))).clip(0)
    path = np.append(0, np.cumsum(sums.sum(axis=0)))
    bound = np.abs(path - path[:, None]) + z * np.sqrt(variances)
    return float(np.sqrt(variances.max())), float(bound.max())


class _Terms:
    """Sums of a scalar problem over equal predictions, in increasing order.

    Attributes
    ----------
    n : int
    steps : ndarray of shape (n_distinct,)
        What equal predictions add to the mean of w δ; weights w have mean 1.
    seen, implied : ndarray of shape (n_distinct,)
        Variances of the steps by w² δ² and by w² p (1 - p).
    deviation : float
        The standard deviation of the mean of w δ, by the larger one.
    most : float
        The largest weight, as a share of all, times the design effect of groups.
    """

    def __init__(self, problem: Problem):
        x, delta = problem.features[:, 0].astype(np.float64), problem.residuals[:, 0]
        _, places = np.unique(x, return_inverse=True)
        self.n = problem.number()
        weight, squares = problem.weight / self.n, problem.squares / self.n**2
        seen = (weight * delta) ** 2
        if problem.counted is not None:
            seen = squares * (delta**2 + problem.counted.scatter)
        self.steps, self.seen, self.implied = (
            np.bincount(places, values)
            for values in (weight * delta, seen, squares * (x * (1 - x)))
        )
        self.deviation = float(np.sqrt(max(self.seen.sum(), self.implied.sum())))
        # No event of a rate 3 / n is seen in 5 % of the samples: how many tell as much as one.
        self.most = float((squares / weight).max()) * problem.groups.design_effect(weight)


def _asymptotic_rise(steps, variances, z, scales=_SCALES) -> np.ndarray:
    """Sup over ranges of the sum of steps (…, n_steps) plus z standard deviations.

    √V = min_a V / (2a) + a / 2.
    """
    high: Any = 0.0
    scales = np.sqrt(variances.sum()) * scales
    for sign in (1, -1):
        rises = [
            _largest_rise(sign * steps + z * variances / (2 * a)) + z * a / 2
            for a in scales[scales > 0]
        ]
        rise = np.minimum.reduce(rises) if rises else _largest_rise(sign * steps)
        high = np.maximum(high, rise)
    return high


def _exact_rise(steps, seen, implied, n, rate) -> np.ndarray:
    """The exact bound, by the variances of the steps that are seen, and that of all implied."""
    slope = min(0.7, np.sqrt(2 * rate / max(n**2 * implied, 1)))
    drift = (-np.log1p(-slope) - slope) / slope * n * seen
    rises = [_largest_rise(sign * steps + drift) for sign in (1, -1)]
    return np.maximum(*rises) + rate / (n * slope)


def _largest_rise(steps) -> np.ndarray:
    """The largest sum over a stretch of consecutive steps (…, n_steps); 0 of none."""
    path = np.zeros((*steps.shape[:-1], steps.shape[-1] + 1))
    np.cumsum(steps, axis=-1, out=path[..., 1:])
    return (path - np.minimum.accumulate(path, axis=-1)).max(axis=-1)


def _range_quantile(alpha) -> float:
    """X with P(range of Brownian motion on [0, 1] ≥ x) = α."""
    return float(brentq(lambda x: range_tail(x) - alpha, 0.2, 40))


def bounds_of_ece(problem: Problem, limit, alpha, n_bins) -> Bounds:
    """ECE in uniform bins."""
    x, weight, groups = problem.features[:, 0].astype(np.float64), problem.weight, problem.groups
    moments = BinRule(n_bins, "uniform").moments(problem)
    inside, filled = moments.bins, moments.weight > 0
    mass, gap = moments.weight[filled], np.abs(moments.gaps[filled, 0])
    terms, rate = _Terms(problem), np.log(1 / alpha)
    share, estimate = mass / terms.n, float(mass @ gap / terms.n)
    variance = np.maximum(*(v * (1 - v) for v in (moments.predictions, moments.frequencies)))
    variance = variance[filled, 0]
    errors = np.sqrt(variance * moments.squares[filled]) / mass  # standard errors of the gaps

    z = problem.quantile(alpha)
    sign = np.sign(moments.gaps[inside, 0])
    signed = sign * problem.residuals[:, 0]
    # Of the terms w (± δ - ECE), with the larger of the means of w² δ² and w² p (1 - p).
    apart_from_mean = problem.squares @ (estimate**2 - 2 * estimate * signed) / terms.n**2
    variance = max(terms.deviation**2 + apart_from_mean, 0)
    law = weight * sign / terms.n, x
    variance = groups.larger_variance(variance, weight * (signed - estimate) / terms.n, law)
    deviation = terms.deviation
    if not groups.independent:
        deviation = float(np.sqrt(variance))
        apart = np.zeros((len(x), len(filled)))
        apart[np.arange(len(x)), inside] = weight * (problem.residuals - moments.gaps[inside])[:, 0]
        of_bins = groups.covariance_of_cells(weight, x, inside, len(filled))
        seen = groups.variance_of_sum(apart[:, filled])
        deviations = np.sqrt(np.maximum(seen, np.diagonal(of_bins)[filled]))
        errors = np.maximum(errors, deviations / mass)
    high = estimate + z * np.sqrt(variance) + rate * terms.most
    true_gaps = np.sqrt(np.maximum(gap**2 - errors**2, 0))

    def noise(n):
        part = terms.n / n
        scales = errors * np.sqrt(part)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = foldnorm.mean(np.nan_to_num(true_gaps / scales, posinf=1e9), scale=scales)
        mean = np.where(scales > 0, mean, true_gaps)
        width = (z + norm.ppf(PASS_CHANCE)) * deviation * np.sqrt(part)
        return float(share @ (mean - true_gaps)) + width + rate * terms.most * part

    assumed = float(share @ true_gaps)
    if groups.independent:
        low = estimate - _sum_of_absolute_quantile(share * errors, z)
    else:  # bins may depend on each other entirely
        both_sides = groups.quantile(alpha / 2, weight)
        low = estimate - both_sides * float(share @ errors)
    return Bounds(estimate, low, high, samples_needed(limit, assumed, noise), assumed)


def _sum_of_absolute_quantile(deviations, z) -> float:
    """The upper quantile of Σ abs(N(0, s²)) by its first three moments (Cornish & Fisher)."""
    mean, variance, third = (
        moment * (deviations**power).sum()
        for power, moment in zip((1, 2, 3), _ABSOLUTE_NORMAL, strict=True)
    )
    if variance == 0:
        return float(mean)
    return float(mean + np.sqrt(variance) * z + third / variance * (z**2 - 1) / 6)


def check_interval(interval) -> tuple[float, float]:
    """The ends of an interval of predictions."""
    values = as_floats(interval, "interval")
    if values.shape != (2,) or not 0 <= values[0] <= values[1] <= 1:
        raise ValueError(
            f"interval={interval!r} must be (low, high), 0 ≤ low ≤ high ≤ 1, such as (0.1, 0.3)."
        )
    return float(values[0]), float(values[1])


def bounds_of_interval(problem: Problem, limit, alpha, interval) -> Bounds:
    """The difference of observed and predicted frequencies among the predictions from low to high.

    The binomial limits are those of sums of unequal probabilities, too (Hoeffding 1956).
    """
    (low, high), x = interval, problem.features[:, 0].astype(np.float64)
    inside = (low <= x) & (x <= high)
    if not inside.any():
        raise ValueError(
            f"interval={interval} holds none of the predictions, which reach from {x.min():.4g} "
            f"to {x.max():.4g}."
        )
    happened, weight = problem.outcomes[inside, 0], problem.weight[inside]
    predicted, frequency = (np.average(part, weights=weight) for part in (x[inside], happened))
    n = weight.sum() ** 2 / (weight @ weight)  # effective
    groups = problem.groups
    if np.ptp(weight) > 0:
        groups = groups.or_singles(problem.weight)
    groups = groups.take(inside)
    least, most = proportion_limits(happened, weight, groups, alpha)
    sigma = np.sqrt(max(predicted * (1 - predicted), frequency * (1 - frequency)))
    gap = abs(frequency - predicted)

    def noise(n_samples):
        n_inside = n_samples * n / len(x)
        width = (norm.isf(alpha) + norm.isf((1 - PASS_CHANCE) / 2)) * sigma / np.sqrt(n_inside)
        return width + np.log(1 / alpha) / n_inside

    assumed = float(np.sqrt(max(gap**2 - sigma**2 / n, 0)))
    return Bounds(
        float(gap),
        float(max(least - predicted, predicted - most)),
        float(max(most - predicted, predicted - least)),
        samples_needed(limit, assumed, noise),
        assumed,
    )


# How many samples are needed


def samples_needed(
    limit: float, error: float, noise: Callable[[float], float], start: int = 1
) -> float:
    """The least n with error + noise(n) ≤ limit, to one percent."""

    @cache
    def above(root):  # nearly a line in 1 / √n
        return error + noise(root**-2) - limit

    if error >= limit or above(_LEAST_ROOT) > 0:
        return np.inf
    low, high = _LEAST_ROOT, start**-0.5
    while above(high) <= 0:
        if high >= 1:
            return 1.0
        low, high = high, min(2 * high, 1.0)
    return float(np.ceil(brentq(above, low, high, rtol=_ROOT_PRECISION) ** -2))


class DrawnSteps:
    """Sums of w δ in cells of a scalar problem, of other data sets of its kind.

    Parameters
    ----------
    gaps : GapSums
    seed : int
    """

    def __init__(self, gaps: GapSums, seed: int = 0):
        cells = cells_of(gaps)
        gap = GapModels(cells).average(cells.sums)[1][cells.cell]
        self.signal = np.bincount(gaps.coarse // _CELLS_TOGETHER, gaps.at_points(gaps.weight) * gap)
        variances = gaps.independent_steps[1]
        self.variances = np.bincount(np.arange(len(variances)) // _CELLS_TOGETHER, variances)
        normal = np.random.default_rng(seed).standard_normal((_BOUND_DRAWS, len(self.signal)))
        self.noise = normal * np.sqrt(self.variances)

    def __call__(self, size: float, part: float) -> np.ndarray:
        """Steps (n_draws, n_cells) of so large a signal, and of this part of the variance."""
        return size * self.signal + np.sqrt(part) * self.noise


def needed_for_calibration_error(
    limits: ErrorLimits, limit: float, tail: float, max_crossings: int
) -> float:
    """Samples with which the upper limit of the calibration error is mostly below a limit."""
    assumed, n = limits.estimate, len(limits.sample)
    drawn = [
        DrawnSteps(gaps, seed if limits.divided else 0) for seed, gaps in enumerate(limits.parts)
    ]
    pairs = list(zip(limits.shares, drawn, strict=True))
    total = sum(share * np.abs(steps.signal).sum() for share, steps in pairs)
    size = assumed / total if total > 0 else 0.0
    z, changes = limits.quantile(tail), list(CHANGES)
    unseen = np.log(1 / tail) * limits.typical_share
    means = sum(share * noise_of_sums(steps.variances)[0] for share, steps in pairs)
    fine = sum(share * noise_of_fine_sums(steps.variances.sum()) for share, steps in pairs)
    missed = float(at_changes(np.asarray(fine - means), max_crossings))  # of signs within cells

    def high(n_samples):
        part = n / n_samples
        parts = [
            share * largest_signed_sums(steps(size, part), changes[-1])[changes]
            for share, steps in pairs
        ]
        sums = np.sum(parts, axis=0)
        deviation = np.sqrt(part) * limits.deviation
        more = excess_of_more_changes(sums, np.sqrt(part) * means, deviation, max_crossings)
        noise = z * deviation + missed * np.sqrt(part) + unseen * part
        highs = at_changes(sums, max_crossings) + more + noise
        return float(np.quantile(highs, PASS_CHANCE))

    return np.inf if assumed >= limit else samples_needed(limit, 0.0, high, n)


def needed_for_cutoff_error(
    gaps: GapSums, n: int, limit: float, estimate: float, bound: Callable[..., np.ndarray]
) -> tuple[float, float]:
    """The same of the cutoff error, and the error with which an estimate is as large on average.

    ``bound`` takes steps, their variances and n.
    """
    drawn = DrawnSteps(gaps)
    whole = _ranges(drawn.signal)
    # Both ends of a range lie within cells.
    missed = _OF_ENDS * (drawn.variances**1.5).sum() / max(drawn.variances.sum(), 1e-300)

    def mean_estimate(size):
        return float(_ranges(drawn(size, 1.0)).mean()) + missed

    size = 0.0
    if whole > 0 and mean_estimate(0.0) < estimate:
        size = brentq(lambda size: mean_estimate(size) - estimate, 0, 2 * estimate / whole + 1)
    assumed = float(size * whole)

    def high(n_samples):
        part = n / n_samples
        highs = bound(drawn(size, part), drawn.variances * part, n_samples)
        return float(np.quantile(highs, PASS_CHANCE)) + missed * np.sqrt(part)

    return np.inf if assumed >= limit else samples_needed(limit, 0.0, high, n), assumed


def _ranges(steps) -> np.ndarray:
    """The range of the sums of the first steps (…, n_steps), from 0 on."""
    paths = np.cumsum(steps, axis=-1)
    return np.maximum(paths.max(axis=-1), 0) - np.minimum(paths.min(axis=-1), 0)
