"""Limits of proportions and of means over thresholds, and the events on which limits rest."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.special import betainccinv, betaincinv
from scipy.stats import norm

from skcal._groups import Groups
from skcal._scores import brier_losses, of_outcomes
from skcal.metrics.base import Outcome
from skcal.notions import Problem
from skcal.sample import Sample


def clopper_pearson(hits, n, tail, upper_tail=None):
    """Limits of a binomial proportion, each missed with probability ``tail`` at most.

    The upper one with ``upper_tail``, where given. Of NaN hits they are 0 and 1.
    """
    upper_tail = tail if upper_tail is None else upper_tail
    low = betaincinv(hits, n - hits + 1, tail)
    high = betainccinv(hits + 1, n - hits, upper_tail)
    return np.where(hits > 0, low, 0.0), np.where(hits < n, high, 1.0)


def proportion_limits(happened, weight, groups: Groups, tail) -> tuple[float, float]:
    """Clopper-Pearson limits of a weighted frequency, by its effective number of samples.

    That of groups is what makes a binomial variance as large as theirs, less what Student's
    distribution adds [1]_, and no larger than their dependence allows. If all outcomes agree, the
    variance cannot be estimated, and each group counts as one sample.

    .. [1] Korn & Graubard, Confidence intervals for proportions with small expected number of
       positive counts estimated from survey data, Survey Methodology 1998.
    """
    total = weight.sum()
    rate, number = float(weight @ happened / total), float(total**2 / (weight @ weight))
    if not groups.independent:
        effective = groups.effective_number(weight)
        spread = float(groups.variance_of_sum(weight * (happened - rate))) / total**2
        number /= groups.design_effect(weight)
        number = effective if spread == 0 else min(number, rate * (1 - rate) / spread)
        number *= (norm.isf(tail) / groups.quantile(tail, weight)) ** 2
    low, high = clopper_pearson(rate * number, number, tail)
    return float(low), float(high)


def frequency_limits(problem: Problem, tail: float) -> tuple[float, float]:
    """The same of the outcomes of a problem, whose rows may be several samples each."""
    happened, weight = problem.outcomes[:, 0].astype(np.float64), problem.weight
    if problem.counted is None:
        return proportion_limits(happened, weight, problem.groups, tail)
    squares, total = problem.squares, weight.sum()
    rate, number = float(weight @ happened / total), float(total**2 / squares.sum())
    if number < problem.number() * (1 - _EQUAL):  # weights differ
        spread = squares @ ((happened - rate) ** 2 + problem.counted.scatter) / total**2
        spread /= 1 - 1 / number
        number = min(number, rate * (1 - rate) / spread) if spread > 0 else number
        number *= (norm.isf(tail) / problem.quantile(tail)) ** 2
    low, high = clopper_pearson(rate * number, number, tail)
    return float(low), float(high)


_DRAWS = 2000
_EQUAL = 1e-9  # relative difference of sizes that rounding makes
_ADDED = 2  # samples
_ROUNDED_CURVE = 1e-13
_MOST_STEPS_DRAWN = 1000  # thresholds of drawn processes; of more, some in equal steps


class MeanOfSets(NamedTuple):
    """Mean of what takes one value on each of several sets without common samples, 0 elsewhere.

    Sets and values belong to thresholds.

    Attributes
    ----------
    share, square : ndarray of shape (n_sets, n_thresholds)
        Sums of w / Σw and of (w / Σw)² over each set.
    values : ndarray of shape (n_sets, n_thresholds)
    total : float
        Σ (w / Σw)² of all samples.
    """

    share: np.ndarray
    square: np.ndarray
    values: np.ndarray
    total: float

    def mean(self) -> np.ndarray:
        """The mean at each threshold."""
        return (self.values * self.share).sum(axis=0)

    def variance(self) -> np.ndarray:
        """The variance of that mean."""
        mean, of_sets = self.mean(), self.values * self.square
        square = (self.values * of_sets).sum(axis=0)
        variance = square - 2 * mean * of_sets.sum(axis=0) + mean**2 * self.total
        return np.where(variance > _ROUNDED_CURVE * square, variance, 0)

    def limits(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Normal limits after two samples are added, which are divided among the sets [1]_.

        Without them limits are too short where the sets hold few samples, and collapse where none.

        .. [1] Agresti & Min, Simple improved confidence intervals for comparing matched
           proportions, Statistics in Medicine 2005.
        """
        added, everything = _ADDED / len(self.share) * self.total, 1 + _ADDED * self.total
        larger = self._replace(
            share=(self.share + added) / everything,
            square=(self.square + added * self.total) / everything**2,
            total=self.total / everything,
        )
        centre, observed = larger.mean(), self.mean()
        half = z * np.sqrt(larger.variance())
        return np.minimum(centre - half, observed), np.maximum(centre + half, observed)

    def simultaneous_z(self, level: float, least: float) -> float:
        """How many standard deviations hold the mean at all thresholds, in increasing order.

        A quantile of the largest of |z| of a normal process that has the empirical covariance: each
        share is that of samples above the threshold, hence a sum of independent steps. ``least`` is
        the quantile for one threshold.
        """
        kept = slice(None, None, -(-self.share.shape[1] // _MOST_STEPS_DRAWN))
        share, square, values = (rows[:, kept] for rows in self[:3])
        some = MeanOfSets(share, square, values, self.total)
        mean, deviation = some.mean(), np.sqrt(some.variance())
        varies = deviation > 0
        if not varies.any():
            return least
        steps = np.maximum(-np.diff(square, append=0.0), 0)
        rest = self.total - steps.sum()  # of samples below all thresholds
        rng, process = np.random.default_rng(0), 0.0
        all_samples = np.sqrt(rest if rest > _ROUNDED_CURVE * self.total else 0)
        all_samples = all_samples * rng.standard_normal((_DRAWS, 1))
        for step, value in zip(steps, values, strict=True):
            path = rng.standard_normal((_DRAWS, len(step))) * np.sqrt(step)
            path = np.cumsum(path[:, ::-1], axis=1)[:, ::-1]
            all_samples = all_samples + path[:, :1]
            process = process + value * path
        z = (process - mean * all_samples)[:, varies] / deviation[varies]
        return max(least, float(np.quantile(np.abs(z).max(axis=1), level)))


def mean_of_sets(data: Outcome, sets, values) -> MeanOfSets:
    """The mean, of samples that tell as much as the dependence in groups leaves.

    ``sets`` are results of :func:`share_above` and :func:`share_between`.
    """
    weight = data.weight / data.weight.sum()
    effect = data.problem.groups.design_effect(weight)
    share, square = np.stack(sets, axis=1)
    return MeanOfSets(share, effect * square, np.stack(values), effect * float(weight @ weight))


def share_above(x, weight, thresholds, strict=False) -> np.ndarray:
    """Sums (2, n_thresholds) of w and w² of samples whose x is at least the threshold.

    Parameters
    ----------
    x : ndarray of shape (n_samples,)
    weight : ndarray of shape (n_samples,)
        w / Σw, 0 for samples that do not belong to the set.
    thresholds : ndarray of shape (n_thresholds,)
    strict : bool or ndarray of bool of shape (n_thresholds,)
        Whether x is above it.
    """
    order = np.argsort(x, kind="stable")
    ranked = x[order]
    left, right = (np.searchsorted(ranked, thresholds, side) for side in ("left", "right"))
    weight = weight[order][::-1]
    sums = np.cumsum([weight, weight**2], axis=1)[:, ::-1]
    return np.append(sums, [[0.0]] * 2, axis=1)[:, np.where(strict, right, left)]


def share_between(low, high, weight, thresholds, strict=False) -> np.ndarray:
    """The same of samples between whose two numbers the threshold lies, low < t ≤ high."""
    above_high, above_low = (share_above(x, weight, thresholds, strict) for x in (high, low))
    return np.maximum(above_high - above_low, 0)


FEWEST_EVENTS = 5  # below that limits are off by more than a percent or two


def surprises(sample: Sample) -> float:
    """Effective number of outcomes that were not predicted, e = w² (Brier loss).

    Never above the sum of the Brier losses, since where nothing has happened all are small, and
    alike.
    """
    if sample.notion.of_labels:
        errors = ((sample.columns - sample.happened) ** 2).sum(axis=1)
    else:
        errors = of_outcomes(brier_losses(sample.columns), sample.happened)
    number = sample.effective_sizes  # of samples that are a row
    most, errors = (sample.sizes * errors).sum(), sample.weight**2 / number * errors
    return float(min(effective_number(errors, errors**2 / number), most))


def effective_number(variances: np.ndarray, fourth_moments: np.ndarray) -> float:
    """(Σ variance)² / Σ fourth moment: how many equal terms of ±1 would be as far from normal.

    It is close to the expected number of events where those are rare.
    """
    total = fourth_moments.sum()
    return variances.sum() ** 2 / total if total > 0 else 0.0


def warn_if_few_events(events: float, at_least: float, of: str, remedy: str) -> None:
    """Warn where no resample and no limit knows what may happen."""
    if events < at_least:
        warnings.warn(
            f"Too few outcomes are uncertain for {of}: the effective number of events is "
            f"{events:.2g}, below {at_least}. {remedy}",
            stacklevel=2,
        )
