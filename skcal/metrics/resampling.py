"""Bootstrap resamples as counts of rows, and binned measures as functions of the counts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from scipy.sparse import csc_array
from scipy.stats import poisson
from sklearn import get_config

from skcal._validation import row_blocks
from skcal.metrics.base import Sample, read_sample
from skcal.metrics.binned import measure_of_moments
from skcal.metrics.moments import BinMoments, RowTerms, find_bins
from skcal.notions import Problem

_FEW_ROWS = 10_000  # fewer are drawn one by one
_WORDS = 2**16
_UNDECIDED = 255
_CACHE_BYTES = 2**18


def resample_counts(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return how often each of n rows is among n draws with replacement.

    Poisson counts are multinomial given their sum. So those of a mean a little below 1 are drawn,
    and what they lack in n one by one: exact, at a third of the cost of n draws.
    """
    if n < _FEW_ROWS:
        return np.bincount(rng.integers(n, size=n), minlength=n)
    mean = 1 - 5 / np.sqrt(n)
    lacking = -1
    while lacking < 0:  # once in a million
        counts = _poisson_counts(rng, n, mean)
        lacking = n - int(counts.sum(dtype=np.int64))
    np.add.at(counts, rng.integers(n, size=lacking), 1)
    return counts


def _poisson_counts(rng, n, mean):
    """Poisson variates below 255 by inversion: 16 bits decide, or more are drawn."""
    cdf, table = _poisson_table(mean)
    words = rng.integers(_WORDS, size=n, dtype=np.uint16)
    counts = np.empty(n, dtype=np.uint8)
    for rows in row_blocks(n, 8, most=_CACHE_BYTES):
        np.take(table, words[rows], out=counts[rows], mode="clip")
    undecided = np.flatnonzero(counts == _UNDECIDED)
    uniform = (words[undecided] + rng.random(len(undecided))) / _WORDS
    counts[undecided] = np.searchsorted(cdf, uniform, side="right")
    return counts


@lru_cache(maxsize=8)
def _poisson_table(mean):
    """The distribution function, and the variate of each uniform number cut to 16 bits."""
    cdf = poisson.cdf(np.arange(30), mean)
    bounds = np.arange(_WORDS + 1) / _WORDS
    low = np.searchsorted(cdf, bounds[:-1], side="right")
    high = np.searchsorted(cdf, bounds[1:], side="left")
    return cdf, np.where(low == high, low, _UNDECIDED).astype(np.uint8)


def binned_measure(metric, y, proba, weight, params) -> Callable | None:
    """Return a binned metric as a function of how often each row counts.

    None for other metrics, for bins that depend on the weights, and where the terms of all rows
    would not fit scikit-learn's ``working_memory``.
    """
    if isinstance(metric, partial) and not metric.args:
        metric, params = metric.func, {**metric.keywords, **params}
    options = {**_defaults(metric), **params}
    form = measure_of_moments(metric, options)
    if form is None:
        return None
    rule, names, measure = form
    who = ("notion", "labels", "pos_label")
    sample = read_sample(y, proba, sample_weight=weight, **{name: options[name] for name in who})
    if _size(sample, names) > get_config()["working_memory"] * 2**20:
        return None
    problems = [_CountedProblem(p, rule, names) for p in sample.problems() if len(p.weight)]
    return partial(_evaluate, problems, not sample.notion.shares_samples, measure)


def _defaults(metric):
    parameters = inspect.signature(metric).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def _size(sample: Sample, names) -> int:
    """Bytes of the terms of all rows, each a float64 with the int32 number of its bin."""
    n_classes = 1 if sample.proba.ndim == 1 else sample.proba.shape[1]
    return 12 * len(sample.proba) * sample.notion.values_per_row(n_classes) * len(names)


class _CountedProblem:
    """The terms of each row of one problem as sparse matrices, (n_bins m, n_rows)."""

    def __init__(self, problem: Problem, rule, names):
        self.partition = find_bins(problem, *rule)
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
        factors = {"count": counts > 0, "squares": counts**2} if "squares" in self.matrices else {}
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
