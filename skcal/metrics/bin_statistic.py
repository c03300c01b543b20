"""Binned calibration errors under other outcomes, or other counts of the rows."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.sparse import csc_array
from sklearn import get_config

from skcal._bins import bin_sums
from skcal.metrics.bin_rule import BinRule
from skcal.metrics.moments import GAPS, BinMoments, RowTerms, problem_moments
from skcal.notions import Problem
from skcal.sample import Sample

# Distance of the observed frequencies from the mean prediction, from their differences (n_bins, m).
DISTANCES = {
    "total-variation": lambda gap: np.abs(gap).sum(axis=1) / 2,
    "euclidean": lambda gap: np.sqrt((gap**2).sum(axis=1)),
    "sqeuclidean": lambda gap: (gap**2).sum(axis=1),
    "cityblock": lambda gap: np.abs(gap).sum(axis=1),
}


def gap_distances(gap, distance):
    """‖gap‖ of each bin; the absolute value for scalar problems."""
    if distance not in DISTANCES:
        raise ValueError(
            f"distance={distance!r} is unknown. Use one of {', '.join(map(repr, DISTANCES))}."
        )
    return np.abs(gap[:, 0]) if gap.shape[1] == 1 else DISTANCES[distance](gap)


def resolve_distance(distance, norm, debias):
    """Return the distance that "auto" means, or refuse what does not go together."""
    if debias and norm != 2:
        raise ValueError(f"debias={debias!r} is for norm=2, the squared error, not {norm}.")
    if distance == "auto":
        return "total-variation" if norm == 1 or np.isinf(norm) else "euclidean"
    if debias and distance != "euclidean":
        raise ValueError(f"debias={debias!r} goes with distance='euclidean', not {distance!r}.")
    return distance


def prepare_bins(
    problem,
    *,
    n_bins=15,
    strategy="uniform",
    min_samples=100,
    edges=None,
    norm=1,
    distance="auto",
    **others,
):
    """The error in bins that do not depend on outcomes; None of others and of debiased errors."""
    if others or (strategy == "sweep" and edges is None):
        return None
    rule = BinRule.of(n_bins, strategy, min_samples, edges)
    return BinnedStatistic(problem, rule, norm, resolve_distance(distance, norm, False))


class BinnedStatistic:
    """Binned calibration error of a problem, by counting; bins must not depend on labels.

    Attributes
    ----------
    moments : BinMoments
        The moments of all bins.
    bins : ndarray of shape (n_rows,)
        Number of the bin of each row, among those that hold samples.
    mass : ndarray of shape (n_filled,)
    predicted : ndarray of shape (n_filled, m)
        Sums of the weights and of weighted predictions.
    """

    def __init__(self, problem: Problem, rule, norm=1, distance="total-variation", names=GAPS):
        self.norm, self.distance, self.weight = norm, distance, problem.weight
        self.moments = problem_moments(problem, rule, names)
        filled = np.flatnonzero(self.moments.weight > 0)
        self.bins = np.searchsorted(filled, self.moments.bins)
        self.mass = self.moments.weight[filled]
        weighted = problem.weight[:, None] * problem.features
        self.predicted = bin_sums(self.bins, weighted, len(filled))

    def __call__(self, codes):
        """Return the error of each row of outcomes."""
        powers = np.array([self.power(self.hits(row)) for row in codes])
        return powers if np.isinf(self.norm) else powers ** (1 / self.norm)

    def hits(self, codes):
        """Weighted number of each outcome in each bin, (n_filled, m)."""
        n_bins, m = self.predicted.shape
        if m == 1:
            return np.bincount(self.bins, self.weight * codes, minlength=n_bins)[:, None]
        cells = np.bincount(self.bins * m + codes, self.weight, minlength=n_bins * m)
        return cells.reshape(n_bins, m)

    def power(self, hits):
        """Σ_b n_b/n ‖gap‖^q; for q = ∞ the largest ‖gap‖."""
        distances = gap_distances((hits - self.predicted) / self.mass[:, None], self.distance)
        if np.isinf(self.norm):
            return distances.max()
        return self.mass @ distances**self.norm / self.mass.sum()


def count_bins(sample: Sample, rule, names, measure):
    """Return a measure of sums over bins as a function of how often each row counts.

    None for bins that depend on the weights, and where the terms of all rows would not fit
    scikit-learn's ``working_memory``.

    Parameters
    ----------
    sample : Sample
    rule : BinRule
    names : sequence of str
        The sums, as in :func:`skcal.metrics.moments.bin_moments`.
    measure : callable
        Maps a list of BinMoments to a float.
    """
    if not rule.known and (rule.strategy != "unique" or rule.n_bins == "cube-root"):
        return None
    n_classes = 1 if sample.proba.ndim == 1 else sample.proba.shape[1]
    values = len(sample.proba) * sample.notion.values_per_row(n_classes) * len(names)
    if 12 * values > get_config()["working_memory"] * 2**20:  # float64, and int32 of the bin
        return None
    problems = [_CountedProblem(p, rule, names) for p in sample.problems() if len(p.weight)]
    return partial(_evaluate, problems, not sample.notion.shares_samples, measure)


class _CountedProblem:
    """The terms of each row of one problem as sparse matrices, (n_bins m, n_rows)."""

    def __init__(self, problem: Problem, rule, names):
        self.partition = rule.partition(problem)
        self.rows, self.n_columns = problem.rows, problem.features.shape[1]
        bins, terms = self.partition.assign(problem.features), RowTerms(problem)
        self.matrices = {name: self._matrix(bins, terms.values(name)) for name in names}

    def _matrix(self, bins, values):
        n, m = values.shape
        place = (bins[:, None] * m + np.arange(m)).astype(np.int32)
        ends = np.arange(n + 1, dtype=np.int32) * m
        entries = np.ascontiguousarray(values, dtype=np.float64).ravel()
        return csc_array((entries, place.ravel(), ends), shape=(self.partition.n_bins * m, n))

    def sums(self, counts) -> dict:
        """Sums over the bins, for counts that multiply the weights."""
        counts = counts[self.rows].astype(np.float64)
        # Copies of a row are one sample with a larger weight.
        factors = {"count": counts > 0, "squares": counts**2, "square_errors": counts**2}
        size = self.partition.n_bins
        return {
            name: (matrix @ factors.get(name, counts)).reshape(size, -1)
            for name, matrix in self.matrices.items()
        }


def _evaluate(problems, by_class, measure, counts) -> float:
    sums = [problem.sums(counts) for problem in problems]
    mass = np.array([sum_["weight"].sum() for sum_ in sums])
    shares = mass / mass.sum() if by_class else np.ones(len(mass))
    moments = [
        BinMoments.of(float(share), problem.partition, None, sum_)
        for share, problem, sum_ in zip(shares, problems, sums, strict=True)
    ]
    return measure(moments)
