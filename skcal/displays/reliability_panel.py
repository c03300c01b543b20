"""The numbers of a reliability diagram."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from sklearn.base import clone

from skcal.displays.base import axis_limit, fitted_functions, require_residual
from skcal.functions import DirichletKernelDensity
from skcal.functions.base import BilinearFunction, read_residual
from skcal.hypothesis_tests.scan import ScanRange
from skcal.metrics.bin_table import TABLE, tabulate
from skcal.metrics.binned import BinnedStatistic, expected_error
from skcal.metrics.bins import BinMoments, BinRule
from skcal.metrics.limits import proportion_limits
from skcal.metrics.smoothers import isotonic_curve, make_points
from skcal.metrics.statistic import observed_draw
from skcal.notions import NOTIONS, Problem
from skcal.sample import Sample

MAX_BINS = 1000
_MOST_BINS, _FEWEST_EXPECTED = 20, 5
_GRID_POINTS = 201
_ABOVE_0 = 1e-38  # an edge, so that predictions of 0 may have a bin
_HISTOGRAM_BINS = 40


@dataclass(frozen=True, eq=False)
class ReliabilityPanel:
    """Numbers of one panel.

    Attributes
    ----------
    label : str
        What is predicted.
    n_samples : int
    n_events : float
        How many times it happened; of soft labels the sum of its shares.
    count : ndarray of shape (n_points,)
        Samples of each bin; bins without samples are left out.
    prediction, frequency : ndarray of shape (n_points,)
        Mean prediction and observed frequency of each bin.
    low, high : ndarray of shape (n_points,)
        Clopper-Pearson limits of the frequency, of each bin by itself; of weights that differ and
        of groups by the effective numbers of samples, of groups by Student's distribution.
    band_low, band_high : ndarray of shape (n_points,)
        The same for all bins at once, by Bonferroni's method.
    line_x, line_y : ndarray of shape (n_line,)
        The line: that of the bins, or another curve.
    histogram, histogram_edges : ndarray of shape (40,) and (41,)
        Number of samples by prediction, up to ``limit``.
    n_bins : int
        Bins, empty ones included.
    error : float
        Expected calibration error in these bins.
    pvalue : float
        Of :func:`skcal.hypothesis_tests.scan_test`; NaN where it is not asked.
    ranges : list of ScanRange
        Where it shows miscalibration.
    without_bins : dict or None
        The error without bins by cross-fitted corrections, among others ``estimate`` and
        ``standard_error``. It is by one function, and that of a search, in a report too, by the
        best of many. None for more than 200,000 samples.
    limit : float
        Where both axes end: 1, of rare events less.
    n_above : int
        Predictions above that, which are not seen.
    """

    label: str
    n_samples: int
    n_events: float
    count: np.ndarray
    prediction: np.ndarray
    frequency: np.ndarray
    low: np.ndarray
    high: np.ndarray
    band_low: np.ndarray
    band_high: np.ndarray
    line_x: np.ndarray
    line_y: np.ndarray
    histogram: np.ndarray
    histogram_edges: np.ndarray
    n_bins: int
    error: float
    pvalue: float = np.nan
    ranges: list[ScanRange] = field(default_factory=list)
    without_bins: dict | None = None
    limit: float = 1.0
    n_above: int = 0

    def band(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The drawn band, its places and limits: it leaves out the diagonal in the ranges alone.

        Outside of what the test shows it is widened to the diagonal, so it still has its level.
        """
        first, last = self.prediction[[0, -1]]
        ends = np.array([(part.low, part.high) for part in self.ranges]).reshape(-1, 2)
        x = np.concatenate([np.linspace(first, last, _GRID_POINTS), self.prediction, ends.ravel()])
        x = np.unique(x[(first <= x) & (x <= last)])
        low, high = (np.interp(x, self.prediction, y) for y in (self.band_low, self.band_high))
        tested = ((x < ends[:, :1]) | (ends[:, 1:] < x)).all(axis=0) & ~np.isnan(self.pvalue)
        low[tested], high[tested] = np.minimum(low, x)[tested], np.maximum(high, x)[tested]
        return x, low, high


def rule_of(problem: Problem, n_bins, strategy, edges) -> BinRule:
    """How the predictions of a problem are binned."""
    if n_bins == "auto" and edges is None:
        edges = informative_edges(problem.features[:, 0], problem.weight, problem.residuals[:, 0])
    return BinRule.of(n_bins, strategy, edges=edges)


def informative_edges(x, weight, residuals) -> np.ndarray:
    """Edges of bins that suit samples, outcomes and axis alike; equal predictions stay together.

    What is cut into equal parts is the sum of three shares: of the samples, of the variance of
    their outcomes, Σ p (1 - p), and of the length between the smallest and the largest prediction.
    The number of bins grows with the cube root of the variance, as for a histogram; of predictions
    that are too sure it is that of the residuals.
    """
    values, place = np.unique(x.astype(np.float64), return_inverse=True)
    mass = np.bincount(place, weight) / weight.mean()
    variance = mass * values * (1 - values)
    if variance.any():
        variance *= max(1.0, weight @ residuals**2 / weight.mean() / variance.sum())
    total = variance.sum()
    n_bins = int(np.clip(min(2 * np.cbrt(total), total / _FEWEST_EXPECTED), 1, _MOST_BINS))
    if len(values) > n_bins:
        length = np.gradient(values) / np.ptp(values)
        measure = mass / mass.sum() + variance / max(total, 1e-300) + length
        middle = np.cumsum(measure) - measure / 2
        place = np.minimum(middle * n_bins / measure.sum(), n_bins - 1).astype(np.intp)
        last = np.flatnonzero(np.diff(place, append=n_bins) > 0)
    else:
        last = np.arange(len(values))
    inner = values[_merged(last, np.minimum(variance, mass / 4))[:-1]]
    return np.unique([0, *np.maximum(inner, _ABOVE_0), 1])


def _merged(last, variance) -> list[int]:
    """The last values of bins, without those of bins of several values that expect few events.

    The variance of a sample counts as at most 1/4.
    """
    kept: list[int] = []
    start = 0
    for end in last:
        if end == start or variance[start : end + 1].sum() >= _FEWEST_EXPECTED:
            kept.append(int(end))
            start = end + 1
    return [*kept[:-1], int(last[-1])]  # what is left belongs to the last bin


def make_curves(method, sample: Sample) -> list[Callable | None]:
    """What draws the line of each problem, from points and a grid: None for bins."""
    n_problems = len(sample.problems())
    if method == "bins":
        return [None] * n_problems
    if method == "isotonic":
        return [_isotonic] * n_problems
    if method == "kernel-density":
        method = DirichletKernelDensity()
    if isinstance(method, BilinearFunction):
        require_residual(method)
        return [partial(_refitted, method)] * n_problems
    return [partial(_as_fitted, function) for function in fitted_functions(method, sample)]


def make_panel(label, problem: Problem, curve, rule: BinRule, level, pvalue, ranges, without_bins):
    """Compute a panel; ``ranges`` are those of a scan of this problem."""
    statistic = BinnedStatistic(problem, rule, names=TABLE)
    n_bins, notion = len(statistic.moments.weight), NOTIONS["binary"]
    table = tabulate([statistic.moments], notion, np.arange(2), level)
    filled = table.count > 0
    n_filled = np.count_nonzero(filled)
    if n_filled > MAX_BINS:
        raise ValueError(
            f"n_bins and strategy make {n_filled:,} bins with samples, more than the {MAX_BINS:,} "
            "that a diagram can show. Use fewer bins, n_bins='auto' or method='isotonic'."
        )
    together = tabulate([statistic.moments], notion, np.arange(2), 1 - (1 - level) / n_filled)
    limits = [table.low[filled, 0], table.high[filled, 0]]
    limits += [together.low[filled, 0], together.high[filled, 0]]
    if problem.groups is not None:
        limits = _limits_of_groups(problem, statistic.moments.bins, limits, 1 - level)
    low, high, band_low, band_high = limits
    prediction, frequency = table.prediction[filled, 0], table.frequency[filled, 0]
    x = problem.features[:, 0]
    points = make_points(x, problem.outcomes[:, 0], problem.weight)
    line_x, line_y = prediction, frequency
    if curve is not None:
        line_x = np.linspace(points.prediction[0], points.prediction[-1], _GRID_POINTS).clip(0, 1)
        line_y = curve(points, line_x)
    seen = [(part.predicted, part.observed) for part in ranges]
    limit = axis_limit(x, line_x, line_y, at_least=max(map(max, seen), default=0.0))
    edges = limit * np.arange(_HISTOGRAM_BINS + 1) / _HISTOGRAM_BINS
    # Values on an edge belong to the interval below it, as in the bins.
    place = np.searchsorted(edges[1:-1].astype(x.dtype), x[x <= limit], side="left")
    return ReliabilityPanel(
        label=label,
        n_samples=len(x),
        n_events=float(problem.outcomes[:, 0].sum()),
        count=table.count[filled],
        prediction=prediction,
        frequency=frequency,
        low=low,
        high=high,
        band_low=band_low,
        band_high=band_high,
        line_x=line_x,
        line_y=line_y,
        histogram=np.bincount(place, minlength=_HISTOGRAM_BINS),
        histogram_edges=edges,
        n_bins=n_bins,
        error=float(statistic(observed_draw(problem))[0]),
        pvalue=pvalue,
        ranges=ranges,
        without_bins=without_bins,
        limit=limit,
        n_above=int(np.count_nonzero(x > limit)),
    )


def _limits_of_groups(problem: Problem, bins, limits, level) -> list[np.ndarray]:
    """Limits of the frequency in each bin that holds samples, never inside those of samples."""
    outcomes, order = problem.outcomes[:, 0], np.argsort(bins, kind="stable")
    starts = np.flatnonzero(np.diff(bins[order], prepend=-1))
    found = []
    for rows in np.split(order, starts[1:]):
        own = outcomes[rows], problem.weight[rows], problem.groups.take(rows)
        tails = level / 2, level / 2 / len(starts)
        found.append([end for tail in tails for end in proportion_limits(*own, tail)])
    widest = (np.minimum, np.maximum, np.minimum, np.maximum)
    pairs = zip(widest, limits, np.transpose(found), strict=True)
    return [outer(one, other) for outer, one, other in pairs]


def binned_error(moments: BinMoments) -> float:
    """The expected calibration error, times the share of the problem."""
    return expected_error([moments], 1, False, "total-variation", "sum", True)


def _isotonic(points, grid):
    """Isotonic regression of the outcomes, between points linear [1]_.

    .. [1] Dimitriadis, Gneiting & Jordan, Stable reliability diagrams for probabilistic
       classifiers, PNAS 2021.
    """
    return isotonic_curve(points, grid).frequency


def _refitted(function, points, grid):
    """The curve x + ĝ(x) of a function that is fitted to the outcomes at hand."""
    X = np.concatenate([points.prediction, points.prediction])[:, None]
    outcomes = np.repeat([1.0, 0.0], len(points.prediction))[:, None]
    weight = np.concatenate([points.hits, points.mass - points.hits])
    held = weight > 1e-12 * points.mass.max()
    X, outcomes, weight = X[held], outcomes[held], weight[held]
    return _as_fitted(clone(function).fit(X, outcomes - X, sample_weight=weight), points, grid)


def _as_fitted(function, points, grid):
    """The curve x + ĝ(x) of a fitted function."""
    return np.clip(grid + np.asarray(read_residual(function, grid[:, None]))[:, 0], 0, 1)
