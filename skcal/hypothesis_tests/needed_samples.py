"""How many samples would show an error to be below a limit, by data sets that are drawn.

Gaps of the size of the assumed error, in the shape that the data at hand suggest, plus normal noise
of the variance that so many samples would have. The draws are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.optimize import brentq

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

CHANCE = 0.9  # of a pass
_DRAWS = 200
_OF_ENDS = 1.165  # standard deviations of a step (Siegmund 1985)
_TOGETHER = 4  # coarse cells that make one
_LEAST_ROOT, _PRECISION = 2.0**-25, 0.004  # of 1 / √n


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
    return float(np.ceil(brentq(above, low, high, rtol=_PRECISION) ** -2))


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
        self.signal = np.bincount(gaps.coarse // _TOGETHER, gaps.at_points(gaps.weight) * gap)
        variances = gaps.independent_steps[1]
        self.variances = np.bincount(np.arange(len(variances)) // _TOGETHER, variances)
        normal = np.random.default_rng(seed).standard_normal((_DRAWS, len(self.signal)))
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
        return float(np.quantile(highs, CHANCE))

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
        return float(np.quantile(highs, CHANCE)) + missed * np.sqrt(part)

    return np.inf if assumed >= limit else samples_needed(limit, 0.0, high, n), assumed


def _ranges(steps) -> np.ndarray:
    """The range of the sums of the first steps (…, n_steps), from 0 on."""
    paths = np.cumsum(steps, axis=-1)
    return np.maximum(paths.max(axis=-1), 0) - np.minimum(paths.min(axis=-1), 0)
