"""The numbers of a reliability diagram."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from skcal._bins import bin_sums
from skcal.displays.base import axis_limit, fitted_functions, require_residual
from skcal.functions import DirichletKernelDensity
from skcal.functions.base import BilinearFunction, read_residual
from skcal.metrics import bootstrap_interval
from skcal.metrics.bin_table import TABLE, tabulate
from skcal.metrics.binned import BinnedStatistic, expected_error
from skcal.metrics.bins import BinMoments
from skcal.metrics.smoothers import isotonic_curve, make_points
from skcal.metrics.statistic import draw_codes, observed_codes
from skcal.notions import NOTIONS
from skcal.sample import Sample

MAX_BINS = 1000
_GRID_POINTS = 201
_HISTOGRAM_BINS = 40


@dataclass(frozen=True, eq=False)
class ReliabilityPanel:
    """Numbers of one panel.

    Attributes
    ----------
    label : str
        What is predicted.
    n_samples : int
    prediction, frequency : ndarray of shape (n_points,)
        The curve; for bins mean prediction and observed frequency of those that hold samples.
    low, high : ndarray of shape (n_points,) or None
        Clopper-Pearson bars of the frequencies; bins only.
    count : ndarray of shape (n_points,) or None
        Samples of each bin; bins only.
    band_low, band_high : ndarray of shape (n_points,) or None
        What calibrated predictions would show, pointwise; None for a function fitted elsewhere.
    empty : ndarray of shape (n_empty, 2)
        Ends of the stretches of bins without samples; bins only.
    histogram, histogram_edges : ndarray of shape (k,) and (k + 1,)
        Number of samples by prediction, up to ``limit``.
    n_bins : int
        Bins of the error, empty ones included.
    error : float
        Expected calibration error in these bins.
    error_interval : tuple of float
        Its basic bootstrap interval with these bins, not below 0; NaN for one sample.
    null_error : float
        What the error of calibrated predictions exceeds with probability 1 - confidence_level.
    without_bins : dict or None
        The error without bins by cross-fitted corrections: ``estimate``, ``standard_error``,
        ``lower_confidence_bound``, its parts ``over`` and ``under``, and ``reading``, the side and
        place in words where the bound is above 0. It is by one function, and that of a search, in
        a report too, by the best of many. None for more than 200,000 samples.
    limit : float
        Where both axes end: 1, of rare events less.
    n_above : int
        Predictions above that, which are not seen.
    """

    label: str
    n_samples: int
    prediction: np.ndarray
    frequency: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    count: np.ndarray | None
    band_low: np.ndarray | None
    band_high: np.ndarray | None
    empty: np.ndarray
    histogram: np.ndarray
    histogram_edges: np.ndarray
    n_bins: int
    error: float
    error_interval: tuple[float, float]
    null_error: float
    without_bins: dict | None = None
    limit: float = 1.0
    n_above: int = 0


class DrawnCurve(NamedTuple):
    """A curve in place of bins.

    Attributes
    ----------
    frequencies : callable
        Maps points, of :func:`skcal.metrics.smoothers.make_points`, and a grid to the curve there.
    of_outcomes : bool
        Whether the curve follows redrawn outcomes, and so has a band.
    """

    frequencies: Callable
    of_outcomes: bool = True


def make_curves(method, sample: Sample) -> list[DrawnCurve | None]:
    """What draws the curve of each problem: None for bins."""
    n_problems = len(sample.problems())
    if method == "bins":
        return [None] * n_problems
    if method == "isotonic":
        return [DrawnCurve(_isotonic)] * n_problems
    if method == "kernel-density":
        method = DirichletKernelDensity()
    if isinstance(method, BilinearFunction):
        require_residual(method)
        return [DrawnCurve(partial(_refitted, method))] * n_problems
    return [
        DrawnCurve(partial(_as_fitted, function), of_outcomes=False)
        for function in fitted_functions(method, sample)
    ]


def make_panel(label, problem, curve, rule, level, n_resamples, seed) -> ReliabilityPanel:
    """Compute a panel; ``rule`` makes the bins, ``seed`` is a random state.

    An int seeds band and interval alike, so that they are those of the public functions.
    """
    statistic = BinnedStatistic(problem, rule, names=TABLE)
    table = tabulate([statistic.moments], NOTIONS["binary"], np.arange(2), level)
    filled = table.count > 0
    points = None
    if curve is not None:
        points = make_points(problem.features[:, 0], problem.outcomes[:, 0], problem.weight)
    groups = [statistic.bins] if points is None else [statistic.bins, points.group]
    null_hits = _null_hits(problem, groups, n_resamples, check_random_state(seed))
    null_errors = [statistic.power(hits[:, None]) for hits in null_hits[0]]
    if points is None:
        parts = _of_bins(table, filled, null_hits[0] / statistic.mass, level)
    else:
        parts = _of_curve(curve, points, null_hits[1], level)
    x = problem.features[:, 0]
    limit = axis_limit(x, parts["prediction"], parts["frequency"])
    counts, edges = _histogram(x[x <= limit], np.append(table.left, 1.0), limit)
    return ReliabilityPanel(
        label=label,
        n_samples=len(problem.weight),
        histogram=counts,
        histogram_edges=edges,
        n_bins=len(table),
        error=float(statistic(observed_codes(problem))[0]),
        error_interval=_error_interval(problem, statistic.moments, level, n_resamples, seed),
        null_error=float(np.quantile(null_errors, level)),
        limit=limit,
        n_above=int(np.count_nonzero(x > limit)),
        **parts,
    )


def _null_hits(problem, groups, n_resamples, rng) -> list[np.ndarray]:
    """Sums of weighted outcomes (n_resamples, n_groups), drawn from the predictions."""
    sums = [np.empty((n_resamples, group.max() + 1)) for group in groups]
    for row, seed in enumerate(rng.randint(2**31 - 1, size=n_resamples)):
        hits = problem.weight * draw_codes(problem.features, [seed])[0]
        for total, group in zip(sums, groups, strict=True):
            total[row] = np.bincount(group, hits)
    return sums


def _error_interval(problem, moments, level, n_resamples, seed) -> tuple[float, float]:
    """Basic bootstrap interval of the error, with the bins that are drawn."""
    if len(problem.weight) < 2:
        return np.nan, np.nan

    def error(outcomes, features, *, sample_weight):
        return binned_error(_reweighted(moments, problem.residuals, sample_weight))

    interval = bootstrap_interval(
        error,
        problem.outcomes[:, 0],
        problem.features[:, 0],
        sample_weight=problem.weight,
        confidence_level=level,
        n_resamples=n_resamples,
        random_state=seed,
    )
    return max(interval.low, 0.0), max(interval.high, 0.0)


def binned_error(moments: BinMoments) -> float:
    """The expected calibration error, times the share of the problem."""
    return expected_error([moments], 1, False, "total-variation", "sum", True)


def _reweighted(moments: BinMoments, residuals, weight) -> BinMoments:
    """The moments of the same bins of one problem with other weights of the samples."""
    size = len(moments.weight)
    return replace(
        moments,
        share=1.0,
        weight=np.bincount(moments.bins, weight, minlength=size),
        residuals=bin_sums(moments.bins, weight[:, None] * residuals, size),
    )


def _tails(values, level):
    tail = (1 - level) / 2
    return np.quantile(values, [tail, 1 - tail], axis=0)


def _of_bins(table, filled, null, level) -> dict[str, Any]:
    if np.count_nonzero(filled) > MAX_BINS:
        raise ValueError(
            f"n_bins and strategy make {np.count_nonzero(filled):,} bins with samples, more than "
            f"the {MAX_BINS:,} that a diagram can show. Use fewer bins, strategy='quantile' or "
            "method='isotonic'."
        )
    band_low, band_high = _tails(null, level)
    return {
        "prediction": table.prediction[filled, 0],
        "frequency": table.frequency[filled, 0],
        "low": table.low[filled, 0],
        "high": table.high[filled, 0],
        "count": table.count[filled],
        "band_low": band_low,
        "band_high": band_high,
        "empty": _stretches(table.left[~filled], table.right[~filled]),
    }


def _stretches(left, right) -> np.ndarray:
    """Join intervals that touch: (n, 2) ends."""
    starts = np.isin(left, right, invert=True)
    ends = np.isin(right, left, invert=True)
    return np.column_stack([left[starts], right[ends]])


def _of_curve(curve, points, null_hits, level) -> dict[str, Any]:
    grid = np.linspace(points.prediction[0], points.prediction[-1], _GRID_POINTS)
    grid = np.clip(grid, 0, 1)
    band_low = band_high = None
    if curve.of_outcomes:
        null = [curve.frequencies(points._replace(hits=hits), grid) for hits in null_hits]
        band_low, band_high = _tails(null, level)
    return {
        "prediction": grid,
        "frequency": curve.frequencies(points, grid),
        "low": None,
        "high": None,
        "count": None,
        "band_low": band_low,
        "band_high": band_high,
        "empty": np.empty((0, 2)),
    }


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


def _histogram(x, edges, limit):
    """Counts by prediction, in the bins themselves where these are uniform and few."""
    width = np.diff(edges)
    uniform = len(width) <= 2 * _HISTOGRAM_BINS and len(width) >= 5 and np.ptp(width) <= 1e-9
    if limit < 1 or not uniform:
        edges = limit * np.arange(_HISTOGRAM_BINS + 1) / _HISTOGRAM_BINS
    # Values on an edge belong to the bin below it, as in the diagram.
    bins = np.searchsorted(edges[1:-1].astype(x.dtype), x, side="left")
    return np.bincount(bins, minlength=len(edges) - 1), edges
