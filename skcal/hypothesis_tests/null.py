"""Outcomes under H0 "calibrated", and statistics of many resamples at once.

Given its features the outcomes of a calibrated problem are independent draws from the predictions,
so a statistic of features and outcomes alone has a null distribution that can be simulated at every
sample size. Observed and resampled outcomes go through the same code, since rounding breaks ties.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from numbers import Real

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from skcal._validation import row_blocks
from skcal.kernels import Kernel
from skcal.metrics.binned import BinSums, gap_distances
from skcal.notions import Problem

_BLOCK_BYTES = 2**24
_SINGLE = 1e-6  # rounding of float32 sums
_UNSEEN = 1e-18  # of the largest number


def nothing(codes):
    """A statistic of a problem that is too small to tell anything."""
    return np.zeros(len(codes))


def observed_codes(problem: Problem) -> np.ndarray:
    """Outcomes as a block of one row: 0/1 for scalar problems, columns of the label else."""
    outcomes = problem.outcomes
    codes = outcomes[:, 0] if outcomes.shape[1] == 1 else outcomes.argmax(axis=1)
    return codes.astype(np.int64)[None]


def draw_codes(X: np.ndarray, seeds) -> np.ndarray:
    """Outcomes of calibrated predictions, shape (n_resamples, n_rows); a resample per seed."""
    uniform = np.stack([np.random.default_rng(seed).random(len(X)) for seed in seeds])
    if X.shape[1] == 1:
        return (uniform < X[:, 0]).astype(np.int64)
    cdf = np.cumsum(X, axis=1, dtype=np.float64)
    cdf /= cdf[:, -1:]
    codes = np.zeros(uniform.shape, dtype=np.int64)
    for k in range(X.shape[1] - 1):
        codes += uniform >= cdf[:, k]
    return codes


def null_distribution(statistic, problem, n_resamples, random_state, n_jobs=None):
    """Statistics of resampled outcomes (n_resamples,), the observed one, and its rounding.

    Parameters
    ----------
    statistic : callable
        Maps a block of outcomes (k, n_rows) to k values; ``statistic.chunk`` resamples at a time.
    problem : Problem
    n_resamples : int
    random_state : RandomState
    n_jobs : int or None
    """
    seeds = random_state.randint(2**31 - 1, size=n_resamples)
    chunk = getattr(statistic, "chunk", 16)
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_draw_statistics)(statistic, problem.features, seeds[start : start + chunk])
        for start in range(0, n_resamples, chunk)
    )
    observed = float(statistic(observed_codes(problem))[0])
    return np.concatenate(parts), observed, getattr(statistic, "slack", 0.0)


def _draw_statistics(statistic, X, seeds):
    return statistic(draw_codes(X, seeds))


class BinnedStatistic:
    """Binned calibration error of a problem, by counting; bins must not depend on labels."""

    def __init__(self, problem, n_bins, strategy, min_samples, norm, distance):
        self.norm, self.distance = norm, distance
        sums = BinSums.of(problem, n_bins, strategy, min_samples)
        filled = np.flatnonzero(sums.weight > 0)
        self.bins = np.searchsorted(filled, sums.bins)
        self.mass = sums.weight[filled]
        weighted = problem.weight[:, None] * problem.features
        self.predicted = np.stack(
            [np.bincount(self.bins, column, minlength=len(filled)) for column in weighted.T], axis=1
        )
        self.weight = problem.weight

    def __call__(self, codes):
        """Return the error of each row of outcomes."""
        return np.array([self._error(row) for row in codes])

    def _error(self, codes):
        n_bins, m = self.predicted.shape
        if m == 1:
            hits = np.bincount(self.bins, self.weight * codes, minlength=n_bins)[:, None]
        else:
            cells = np.bincount(self.bins * m + codes, self.weight, minlength=n_bins * m)
            hits = cells.reshape(n_bins, m)
        distances = gap_distances((hits - self.predicted) / self.mass[:, None], self.distance)
        if np.isinf(self.norm):
            return distances.max()
        return (self.mass @ distances**self.norm / self.mass.sum()) ** (1 / self.norm)


class KernelStatistic:
    """Unbiased or biased squared kernel calibration error of a problem.

    Products with the kernel matrix are float32 for vectors, whose null distribution goes through
    the same code; ``slack`` is what they do not resolve.
    """

    chunk = 128

    def __init__(self, problem, kernel: Kernel, biased: bool):
        self.kernel, self.biased = kernel, biased
        self.X, self.weight = problem.features, problem.weight
        self.own = kernel.paired(self.X, self.X) * self.weight**2
        pairs = self.weight.sum() ** 2
        self.pairs = pairs if biased else pairs - self.weight @ self.weight
        vectors = self.X.shape[1] > 1
        self.slack = _SINGLE * self.own.sum() / len(self.X) ** 1.5 if vectors else 0.0

    def __call__(self, codes):
        """Return the statistic of each row of outcomes; 0 where there are no pairs."""
        if not self.pairs:
            return np.zeros(len(codes))
        codes = codes.T
        n, m = self.X.shape
        if m == 1:
            V = self.weight[:, None] * (codes - self.X)
            total = np.einsum("ij,ij->j", V, self.kernel.times(self.X, V))
            squares = (codes - self.X) ** 2
        else:
            residuals = np.broadcast_to(-_single(self.X)[:, None], (n, codes.shape[1], m)).copy()
            np.put_along_axis(
                residuals,
                codes[:, :, None],
                1 + np.take_along_axis(residuals, codes[:, :, None], axis=2),
                axis=2,
            )
            squares = np.einsum("ijk,ijk->ij", residuals, residuals)
            total = self._quadratic_forms(residuals * self.weight[:, None, None].astype(np.float32))
        return (total if self.biased else total - self.own @ squares) / self.pairs

    def _quadratic_forms(self, V):
        """Σ_ij k_ij ⟨v_i, v_j⟩ of each resample, from half of the pairs."""
        n, n_resamples, m = V.shape
        flat, total = V.reshape(n, -1), np.zeros(n_resamples)
        for rows in row_blocks(n, 12 * n, most=_BLOCK_BYTES):
            K = _single(self.kernel.matrix(self.X[rows], self.X[rows.start :]))
            K[:, rows.stop - rows.start :] *= 2  # pairs with later blocks count for both orders
            product = (K @ flat[rows.start :]).reshape(-1, n_resamples, m)
            total += np.einsum("ijk,ijk->j", V[rows], product, dtype=np.float64)
        return total


def _single(values):
    """float32, where 0 stands for what sums do not see: subnormal factors are slow."""
    single = values.astype(np.float32)
    size = np.abs(single)
    single[size < _UNSEEN * size.max(initial=0)] = 0
    return single


class MetricStatistic:
    """Any metric ``metric(outcomes, features, **params) → float`` of a problem, one by one."""

    def __init__(self, problem, metric: Callable, params: dict):
        self.metric, self.params = metric, params
        X = problem.features
        self.features = X[:, 0] if X.shape[1] == 1 else X

    def __call__(self, codes):
        """Return the metric of each row of outcomes."""
        return np.array([self._value(row) for row in codes])

    def _value(self, codes):
        value = self.metric(codes, self.features, **self.params)
        if not isinstance(value, Real) or not isfinite(value):
            name = getattr(self.metric, "__name__", repr(self.metric))
            raise ValueError(
                f"statistic {name} returned {value!r}. It must return a finite number for every "
                "outcome of the predictions."
            )
        return float(value)
