"""What a segment's residuals say, for observed and redrawn outcomes, and step-down p-values."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np

from skcal._running import over_jobs
from skcal._show import number
from skcal._validation import row_blocks
from skcal.hypothesis_tests.segment_features import Segments
from skcal.metrics.limits import clopper_pearson
from skcal.metrics.statistic import draw_codes, observed_codes
from skcal.notions import Problem

_N_BINS = 10  # of the ECE within a segment
_N_SCALES = 200  # further draws by which it is standardised
_BLOCK_BYTES = 2**27
_ROUNDING = 1e-9  # relative differences of weighted sums


class Segment(NamedTuple):
    """One segment, or one class in it.

    Attributes
    ----------
    name : str
        Such as ``age in (40, 55] and sex = F``.
    outcome : str
        What is predicted: ``P(1)``, ``confidence``, ``class cat``, …
    n_samples : int
    predicted, observed : float
        Weighted means over the segment, of the probability and of what happened.
    low, high : float
        95 % Clopper-Pearson interval of the observed mean, of this segment by itself; it covers the
        mean of unequal probabilities too (Hoeffding 1956). Weights count by their effective number
        of samples.
    statistic : float
        The standardised statistic; under ``statistic="bias"`` it has the sign of observed minus
        predicted.
    pvalue : float
        Adjusted for all segments.
    """

    name: str
    outcome: str
    n_samples: int
    predicted: float
    observed: float
    low: float
    high: float
    statistic: float
    pvalue: float

    def __str__(self):
        way = "underpredicted" if self.observed > self.predicted else "overpredicted"
        return (
            f"{self.name}, {self.outcome}: {way}, {number(self.predicted)} against "
            f"{number(self.observed)} ({number(self.low)} to {number(self.high)}) observed in "
            f"{self.n_samples} samples; p = {self.pvalue:.2g}"
        )


class _Sums:
    """Weighted sums over segments of whether something happens, minus what was predicted."""

    def __init__(self, members, weight, predicted):
        self._members = members
        self._weight = None if (weight == 1).all() else weight[:, None]
        self.predicted = (members @ (weight * predicted))[:, None]
        self.variance = (members @ (weight**2 * predicted * (1 - predicted)))[:, None]

    def deviations(self, happens):
        """Sums (n_segments, k) for booleans (n_rows, k); without weights they count exactly."""
        if self._weight is None:
            values = happens.astype(np.float32 if len(happens) < 2**24 else np.float64)
        else:
            values = happens * self._weight
        return (self._members @ values).astype(np.float64) - self.predicted


class Bias:
    """|observed - predicted| of each segment of a problem in standard deviations.

    The worst of several columns counts.

    Attributes
    ----------
    features : ndarray of shape (n_rows, d)
    codes : ndarray of shape (1, n_rows)
        The observed outcomes.
    n_samples : ndarray of shape (n_segments,)
        Sizes of the segments that have enough samples of the problem.
    """

    def __init__(self, problem: Problem, segments: Segments, titles, min_samples, rng):
        members = segments.members[:, np.arange(segments.members.shape[1])[problem.rows]]
        sizes = np.diff(members.indptr)
        large = np.flatnonzero(sizes >= min_samples)
        self.n_left_out = int(np.count_nonzero(sizes)) - len(large)
        self.n_samples, self._members = sizes[large], members[large]
        self._names, self._titles = [segments.names[k] for k in large], titles
        self.features, self.codes = problem.features.astype(np.float64), observed_codes(problem)
        self._weight = problem.weight
        self._mass = (self._members @ self._weight)[:, None]
        self._squares = (self._members @ self._weight**2)[:, None]
        self._smallest = self._squares / self.n_samples[:, None]
        self._columns = [_Sums(self._members, self._weight, x) for x in self.features.T]
        single = len(self._columns) == 1
        self._labels = [1] if single else list(range(len(self._columns)))
        self._prepare(rng)

    def _prepare(self, rng):
        pass

    def _signed(self, codes):
        """Standardised sums (n_segments, k) of each column, for outcomes (k, n_rows)."""
        for label, sums in zip(self._labels, self._columns, strict=True):
            yield sums.deviations(label == codes.T) / np.sqrt(sums.variance + self._smallest)

    def __call__(self, codes):
        """Statistics (k, n_segments) of outcomes (k, n_rows)."""
        return reduce(np.maximum, map(np.abs, self._signed(codes))).T

    @property
    def scale(self):
        """Standard deviations of observed minus predicted means of the first column, (n,)."""
        return (np.sqrt(self._columns[0].variance + self._smallest) / self._mass)[:, 0]

    def describe(self, pvalues) -> list[Segment]:
        """Return the segments, with the next of the p-values."""
        signed = np.hstack(list(self._signed(self.codes)))
        column = np.abs(signed).argmax(axis=1)
        worst = np.arange(len(column)), column
        predicted = np.hstack([sums.predicted for sums in self._columns]) / self._mass
        happened = [sums.deviations(label == self.codes.T) for label, sums in self._labelled()]
        observed = predicted + np.hstack(happened) / self._mass
        effective = self._mass**2 / self._squares
        low, high = clopper_pearson(observed * effective, effective, (1 - 0.95) / 2)
        values = [each[worst].tolist() for each in (predicted, observed, low, high)]
        statistics = self._shown(signed[worst]).tolist()
        outcomes = [self._titles[k] for k in column.tolist()]
        columns = [self._names, outcomes, self.n_samples.tolist(), *values, statistics]
        rows = zip(*columns, strict=True)
        return [Segment._make([*row, next(pvalues)]) for row in rows]

    def _labelled(self):
        return zip(self._labels, self._columns, strict=True)

    def _shown(self, signed):
        """Return the statistics as they are printed."""
        return signed


class BinnedError(Bias):
    """ECE of each segment, in standard deviations above its mean under calibration."""

    def _prepare(self, rng):
        self._contrasts: list = [(label, sums, slice(None)) for label, sums in self._labelled()]
        if len(self._columns) == 1:
            x = self.features[:, 0]
            bins = np.minimum((x * _N_BINS).astype(int), _N_BINS - 1)
            rows = [np.flatnonzero(bins == k) for k in np.unique(bins)]
            self._contrasts = [
                (1, _Sums(self._members[:, own], self._weight[own], x[own]), own) for own in rows
            ]
        seeds = rng.randint(2**31 - 1, size=_N_SCALES).tolist()
        draws = np.concatenate([self._errors(draw_codes(self.features, [s])) for s in seeds])
        self._mean = draws.mean(axis=0)
        self._scale = np.sqrt(draws.var(axis=0) + self._smallest[:, 0])

    def _errors(self, codes):
        """Σ |observed - predicted| over bins or columns, (k, n_segments)."""
        errors = np.zeros((len(self.n_samples), len(codes)))
        for label, sums, rows in self._contrasts:
            errors += np.abs(sums.deviations(codes.T[rows] == label))
        return errors.T

    def __call__(self, codes):
        """Statistics (k, n_segments) of outcomes (k, n_rows)."""
        return (self._errors(codes) - self._mean) / self._scale

    def _shown(self, signed):
        return self(self.codes)[0]


def step_down(family, n_resamples, rng, n_jobs):
    """Adjusted p-values of all segments of a family, and the largest statistic of each redraw."""
    observed = np.concatenate([part(part.codes)[0] for part in family])
    order = np.argsort(-observed, kind="stable")
    bar = observed[order] - _ROUNDING * (1 + np.abs(observed[order]))
    seeds = rng.randint(2**31 - 1, size=(n_resamples, len(family)))
    row_bytes = 32 * max(sum(len(part.features) for part in family), len(observed))
    blocks = row_blocks(n_resamples, row_bytes, _BLOCK_BYTES)
    counted = over_jobs(((_exceedances, family, seeds[b], order, bar) for b in blocks), n_jobs)
    adjusted = np.empty(len(observed))
    counts = np.sum([count for count, _ in counted], axis=0)
    adjusted[order] = np.maximum.accumulate((1 + counts) / (1 + n_resamples))
    return adjusted, np.concatenate([maxima for _, maxima in counted])


def _exceedances(family, seeds, order, bar):
    """How often the largest of each segment and those after it reaches the bar; all maxima."""
    drawn = [part(draw_codes(part.features, seeds[:, k])) for k, part in enumerate(family)]
    largest = np.hstack(drawn)[:, order[::-1]]
    largest = np.maximum.accumulate(largest, axis=1)[:, ::-1]
    return np.count_nonzero(largest >= bar, axis=0), largest[:, 0]
