"""The numbers of a reliability diagram."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from skcal._show import worded
from skcal.displays.axis import UNIT, ProbabilityAxis, axes_of
from skcal.displays.base import fitted_functions, require_residual
from skcal.displays.draw import problem_titles, titled
from skcal.functions import DirichletKernelDensity
from skcal.functions.base import BilinearFunction, read_residual
from skcal.hypothesis_tests.scan import ScanRange
from skcal.metrics import BinRule, CalibrationBins, CalibrationCurve
from skcal.metrics.error_limits import CalibrationErrorInterval
from skcal.metrics.limits import clopper_pearson, frequency_limits
from skcal.metrics.smoothers import make_points
from skcal.notions import Problem, resolve_notion
from skcal.sample import Sample

MAX_BINS = 1000
_FEWEST_BINNED = 12  # samples of a bin
_LONG_BAR = 0.4  # of the axis: from a bin to the end of its interval, if it is calibrated
_MOST_VALUES = 21  # distinct predictions with a bin each, such as multiples of 0.05
_TENTHS = np.arange(1, 10) / 10
_THINNEST = 0.25  # of the samples between two quantiles: a quantile this near to a tenth is no end
_WIDE_GAP, _EMPTY = 0.25, 0.05  # of the axis: between bins, and without samples in between
_MIDDLE, _NEAR_MIDDLE = 0.48, 0.2  # a curve is drawn if this share is so near to the axis' middle
_GRID_POINTS = 401
_ABOVE_0 = 1e-38  # an edge, so that predictions of 0 may have a bin
_HISTOGRAM_BINS = 40  # along the axis
_MAY_LEAVE = 0.02  # of the samples: the interval of a smaller bin may leave the axis
_DECIMALS, _FIRST_ROUND = 9, 1e-6  # of means of cells that are not so near to 0 or 1
SMOOTH, JOINED = "splines", "bins"
RIGHT = ("wrong", "right")  # sides of predictions that may be right


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
    sides : tuple of two str
        Names of the samples in which it did not happen, and of those in which it did.
    count : ndarray of shape (n_points,)
        Samples of each bin; bins without samples are left out.
    prediction, frequency : ndarray of shape (n_points,)
        Mean prediction and observed frequency of each bin.
    low, high : ndarray of shape (n_points,)
        Clopper-Pearson limits of the frequency, for each bin separately. With weights that differ
        and with groups they use the effective number of samples, with groups also Student's
        distribution.
    band_low, band_high : ndarray of shape (n_points,)
        The same for all bins at once, by Bonferroni's method.
    line, line_x, line_y : str, ndarray of shape (n_line,) and (n_line,)
        The kind of line, "bins" for one that joins them, and the line. It is NaN where bins are so
        far apart that nothing should be drawn.
    histogram, histogram_edges : ndarray of shape (2, n) and (n + 1,)
        Number of samples by prediction, of both sides: 40 bins along the axis, and more beyond it.
    n_bins : int
        Bins, empty ones included.
    number : CalibrationErrorInterval or None
        The calibration error with its limits, as
        :func:`skcal.calibration_error_interval` returns it.
    ranges : list of ScanRange
        Where miscalibration is significant.
    axis : ProbabilityAxis
        Where both axes begin and end.
    most : float
        A count for which the histogram has room, such as the largest one of another panel.
    """

    label: str
    n_samples: int
    n_events: float
    sides: tuple[str, str]
    count: np.ndarray
    prediction: np.ndarray
    frequency: np.ndarray
    low: np.ndarray
    high: np.ndarray
    band_low: np.ndarray
    band_high: np.ndarray
    line: str
    line_x: np.ndarray
    line_y: np.ndarray
    histogram: np.ndarray
    histogram_edges: np.ndarray
    n_bins: int
    number: CalibrationErrorInterval | None = None
    ranges: list[ScanRange] = field(default_factory=list)
    axis: ProbabilityAxis = UNIT
    most: float = 0

    @classmethod
    def of(
        cls,
        sample: Sample,
        name: str = "",
        *,
        confidence_level: float = 0.95,
        number: CalibrationErrorInterval | None = None,
        ranges: Sequence[ScanRange] = (),
        beside: ReliabilityPanel | None = None,
    ) -> ReliabilityPanel:
        """Return the panel of a sample whose kind of calibration has one.

        Parameters
        ----------
        sample : Sample
            With a notion such as "binary" or "confidence".
        name : str, default=""
            Stands above the title.
        confidence_level : float in (0, 1), default=0.95
            Of the intervals and the band.
        number : CalibrationErrorInterval, default=None
            The calibration error in the heading.
        ranges : sequence of ScanRange, default=()
            Where miscalibration is significant.
        beside : ReliabilityPanel, default=None
            That of all samples, of which these are a part. The axis is the same unless points lie
            beyond it, and intervals of less than 2 % of all samples may leave it.
        """
        [problem], [title], [sides] = sample.problems(), problem_titles(sample), sides_of(sample)
        told: dict[str, Any] = {"level": confidence_level, "number": number, "ranges": ranges}
        return make_panel(titled(name, title), problem, sides=sides, beside=beside, **told)

    @property
    def is_smooth(self) -> bool:
        """Whether the line is a smooth curve and does not join the bins."""
        return self.line == SMOOTH

    @property
    def n_above(self) -> int:
        """Predictions beyond a linear axis. One of logits has those beyond it at its ends."""
        beyond = self.histogram_edges[:-1] > self.axis.high * (1 - 1e-9)
        return round(self.histogram[:, beyond].sum()) if self.axis.scale == "linear" else 0

    def is_beyond(self, axis: ProbabilityAxis) -> bool:
        """Whether an interval goes on beyond an axis, which arrows mark there.

        Parameters
        ----------
        axis : ProbabilityAxis
            One that other panels share.
        """
        return bool((self.high > axis.high).any() or (self.low < axis.low).any())

    @property
    def significant(self) -> np.ndarray:
        """Bins in a shaded range whose own interval leaves out the mean prediction."""
        places = np.zeros(len(self.prediction), dtype=bool)
        for part in self.ranges:
            places |= (part.low <= self.prediction) & (self.prediction <= part.high)
        return places & ((self.prediction < self.low) | (self.high < self.prediction))


def rule_of(n_bins, strategy, edges) -> BinRule | None:
    """How predictions are binned; None for bins that suit samples and axis."""
    return None if n_bins == "auto" and edges is None else BinRule.of(n_bins, strategy, edges=edges)


def bins_of_axis(problem: Problem, axis: ProbabilityAxis) -> np.ndarray:
    """Edges of bins that end at tenths of the axis and at quantiles that are apart from these.

    Equal predictions stay together. A bin joins its nearer neighbour if it has fewer than 12
    samples, or so few that the interval of calibrated predictions would be long or leave the axis.
    """
    x, weight = problem.features[:, 0], problem.weight
    values, group = np.unique(x.astype(np.float64), return_inverse=True)
    sums = np.array([np.bincount(group, part) for part in (weight, problem.squares, weight * x)])
    if len(values) <= _MOST_VALUES:
        last = np.arange(len(values))
    else:
        n_parts = int(np.clip(0.75 * np.cbrt(problem.number()), 2, 10))
        middle = (np.cumsum(sums[0]) - sums[0] / 2) / sums[0].sum()
        tenths = np.searchsorted(values, axis.at(_TENTHS), side="right")
        shares = np.arange(1, n_parts) / n_parts
        below = np.append(0, np.cumsum(sums[0]) / sums[0].sum())[tenths]
        apart = np.abs(shares[:, np.newaxis] - below).min(axis=1) >= _THINNEST / n_parts
        quantiles = np.searchsorted(middle, shares[apart])
        ends = np.unique([*tenths, *quantiles, len(values)])
        last = ends[ends > 0] - 1
    inner = values[_large_enough(last, sums, axis)[:-1]]
    return np.unique([0, *np.maximum(inner, _ABOVE_0), 1])


def _large_enough(last, sums, axis: ProbabilityAxis) -> np.ndarray:
    """The last values of bins after small ones have joined a neighbour."""
    starts = np.concatenate([[0], last[:-1] + 1])
    sums = np.add.reduceat(sums, starts, axis=1)
    while len(last) > 1:
        total, squares, predicted = sums
        number, mean = total**2 / squares, np.clip(predicted / total, 0, 1)
        place = axis.place(mean)
        low, high = clopper_pearson(number * mean, number, 0.025)
        inner = np.where(mean < 0.5, high, low)  # the end of the interval nearer to 1/2
        small = (number < _FEWEST_BINNED - 1e-9) | (np.abs(axis.place(inner) - place) > _LONG_BAR)
        small |= (inner > axis.high) & (axis.high <= 0.5)
        small |= (inner < axis.low) & (axis.low >= 0.5)
        if not small.any():
            break
        k = int(np.argmin(np.where(small, number, np.inf)))
        gaps = np.concatenate([[np.inf], np.diff(place), [np.inf]])
        k -= int(gaps[k] < gaps[k + 1])  # joins the bin after it, or before
        sums[:, k] += sums[:, k + 1]
        sums, last = np.delete(sums, k + 1, axis=1), np.delete(last, k)
    return last


class CurveKind(NamedTuple):
    """A kind of line, and the function of points and a grid that draws it; None joins bins."""

    kind: str
    function: Callable | None


def make_curves(method, sample: Sample) -> list[CurveKind | None]:
    """The line of each problem; None for what suits the predictions."""
    n_problems, kind = len(sample.problems()), method if isinstance(method, str) else ""
    if kind == "auto":
        return [None] * n_problems
    if kind == JOINED:
        return [CurveKind(JOINED, None)] * n_problems
    if kind in CalibrationCurve.methods:
        return [_smooth(kind)] * n_problems
    if kind == "kernel-density":
        method = DirichletKernelDensity()
    kind = kind or type(method).__name__
    if isinstance(method, BilinearFunction):
        require_residual(method)
        return [CurveKind(kind, partial(_refitted, method))] * n_problems
    functions = fitted_functions(method, sample)
    return [CurveKind(kind, partial(_as_fitted, function)) for function in functions]


def make_panel(
    label,
    problem: Problem,
    *,
    sides=("no", "yes"),
    curve: CurveKind | None = None,
    rule: BinRule | None = None,
    scale: str = "linear",
    level: float = 0.95,
    number: CalibrationErrorInterval | None = None,
    ranges: Sequence[ScanRange] = (),
    beside: ReliabilityPanel | None = None,
) -> ReliabilityPanel:
    """Compute a panel on the shortest axis that holds its bins.

    ``ranges`` are those of a scan of this problem. Without a curve the line is a smooth one if
    predictions are continuous, otherwise it joins the bins; without a rule bins suit the axis.
    That of a part of the samples ``beside`` all is at least as long as theirs.
    """
    problem = _with_round_means(problem)
    x, sizes, tail = problem.features[:, 0], problem.sizes, (1 - level) / 2
    total, axes = sizes.sum(), axes_of(x, scale, sizes)
    if beside is not None:
        total, axes = beside.count.sum(), axes_of(np.array(beside.axis[:2]), scale)
    for axis in axes:
        if rule is None:
            of_axis = BinRule.of("auto", "quantile", edges=bins_of_axis(problem, axis))
            bins = _bins_of(problem.cut_at(of_axis.known), of_axis, tail)
        else:
            bins = _bins_of(problem, rule, tail)
        if _holds(axis, bins, _MAY_LEAVE * total):
            break
    kind, line_x, line_y = _line(problem, bins, curve, axis)
    edges, histogram = histograms(problem, axis)
    return ReliabilityPanel(
        label=label,
        n_samples=problem.number(),
        n_events=float(sizes @ problem.outcomes[:, 0]),
        sides=sides,
        **bins,
        line=kind,
        line_x=line_x,
        line_y=line_y,
        histogram=histogram,
        histogram_edges=edges,
        number=number,
        ranges=list(ranges),
        axis=axis,
    )


def _with_round_means(problem: Problem) -> Problem:
    """The problem, in which equal predictions of a counted cell have the mean that they are.

    Sums round it, and ends of bins and bars lie at round numbers.
    """
    x = problem.features
    inner = np.minimum(x, 1 - x) > _FIRST_ROUND
    if problem.counted is None or not inner.any():
        return problem
    x = np.where(inner, x.round(_DECIMALS), x)
    return problem._replace(features=x, residuals=problem.outcomes - x)


def _holds(axis: ProbabilityAxis, bins: dict[str, Any], small: float) -> bool:
    """Whether bins lie on the axis, and intervals but those of bins of fewer samples.

    An axis of logits has some at its ends.
    """
    if axis.scale == "linear":
        large = bins["count"] >= small
        means = np.concatenate([bins["prediction"], bins["frequency"]])
        most = max(means.max(), bins["high"][large].max(initial=0))
        return most <= axis.high and min(means.min(), bins["low"][large].min(initial=1)) >= axis.low
    return bins["frequency"][bins["frequency"] < 1].max(initial=0) <= axis.high


def _bins_of(problem: Problem, rule: BinRule, tail: float) -> dict[str, Any]:
    """What :class:`ReliabilityPanel` holds of the bins."""
    moments = rule.moments(problem)
    about = [moments], resolve_notion("binary", problem.features[:, 0]), np.arange(2)
    table = CalibrationBins.of_moments(*about, 1 - 2 * tail)
    filled = table.count > 0
    n_filled = np.count_nonzero(filled)
    if n_filled > MAX_BINS:
        fewer = worded("fewer n_bins, or n_bins='auto'", "fewer --bins, or leave --bins out")
        if rule.strategy == "unique":
            fewer = "n_bins='auto', or strategy='quantile'"
        elif not isinstance(rule.strategy, str):
            fewer = "fewer edges"
        raise ValueError(
            f"{n_filled:,} bins hold samples, more than the {MAX_BINS:,} that a diagram can show. "
            f"Pass {fewer}."
        )
    together = CalibrationBins.of_moments(*about, 1 - 2 * tail / n_filled)
    limits = [end[filled, 0] for end in (table.low, table.high, together.low, together.high)]
    if not problem.groups.independent:
        limits = _limits_of_groups(problem, moments.bins, limits, 2 * tail)
    return {
        "n_bins": len(filled),
        "count": table.count[filled],
        "prediction": table.prediction[filled, 0],
        "frequency": table.frequency[filled, 0],
        **dict(zip(("low", "high", "band_low", "band_high"), limits, strict=True)),
    }


def _line(problem: Problem, bins: dict[str, Any], curve: CurveKind | None, axis: ProbabilityAxis):
    """The kind of the line and its points, NaN between bins that are far apart."""
    x, happened = problem.features[:, 0], problem.outcomes[:, 0]
    points = make_points(x, happened, problem.weight, squares=problem.squares)
    if curve is None:
        continuous = len(points.prediction) > _MOST_VALUES
        sizes = problem.sizes
        spread = np.average(np.abs(axis.place(x) - 0.5) < _MIDDLE, weights=sizes) >= _NEAR_MIDDLE
        rarer = min(sizes @ happened, sizes @ (1 - happened))
        smooth = continuous and spread and rarer >= _FEWEST_BINNED
        curve = _smooth(SMOOTH) if smooth else CurveKind(JOINED, None)
    after, gaps = wide_gaps(bins["prediction"], points.prediction, axis)
    if curve.function is None:
        line_x = np.insert(bins["prediction"], after, gaps.mean(axis=1))
        return curve.kind, line_x, np.insert(bins["frequency"], after, np.nan)
    ends = points.prediction[[0, -1]]
    first, last = axis.place(ends).tolist()
    line_x = axis.at(np.linspace(first, last, _GRID_POINTS))
    line_x = np.clip(np.unique([*line_x, *bins["prediction"]]), *ends)
    line_y = curve.function(points, line_x)
    return curve.kind, line_x, np.where(within(gaps, line_x), np.nan, line_y)


def wide_gaps(means, values, axis: ProbabilityAxis) -> tuple[np.ndarray, np.ndarray]:
    """Bins before which nothing should be drawn, and the ends (n, 2) of each such gap.

    ``means`` of bins and the distinct ``values`` of predictions ascend.
    """
    means = np.where(means <= _ABOVE_0, 0, means)
    apart = np.diff(axis.place(means)) >= _WIDE_GAP
    apart |= (means[:-1] == 0) | (means[1:] == 1)  # which are no limit of others
    wide = [
        k
        for k in np.flatnonzero(apart) + 1
        if _largest_step(values, means[k - 1], means[k], axis) >= _EMPTY
    ]
    after = np.array(wide, dtype=np.intp)
    return after, np.column_stack([means[after - 1], means[after]])


def _largest_step(values, first, last, axis: ProbabilityAxis) -> float:
    """The longest part of the axis between two numbers that holds no value."""
    inside = values[(first < values) & (values < last)]
    return float(np.diff(axis.place([first, *inside, last])).max())


def within(gaps, x) -> np.ndarray:
    """Whether numbers lie in a gap."""
    return ((gaps[:, :1] < x) & (x < gaps[:, 1:])).any(axis=0)


def histograms(problem: Problem, axis: ProbabilityAxis):
    """Edges of bins, and samples in which it happened and in which it did not."""
    x, happened, sizes = problem.features[:, 0], problem.outcomes[:, 0], problem.sizes
    places = np.arange(_HISTOGRAM_BINS + 1) / _HISTOGRAM_BINS
    edges = axis.at(places)
    if axis.scale == "linear":
        span = axis.high - axis.low
        n_bins = int(np.ceil(_HISTOGRAM_BINS * max((x.max() - axis.low) / span, 1)))
        edges = axis.low + span / _HISTOGRAM_BINS * np.arange(n_bins + 1)
    # Values on an edge belong to the interval below it, as in the bins.
    place = np.searchsorted(edges[1:-1].astype(x.dtype), x, side="left")
    sides = [
        np.bincount(place, part, len(edges) - 1)
        for part in (sizes * (1 - happened), sizes * happened)
    ]
    return edges, np.array(sides)


def _limits_of_groups(problem: Problem, bins, limits, level) -> list[np.ndarray]:
    """Limits of the frequency in each bin that holds samples, never inside those of samples."""
    order = np.argsort(bins, kind="stable")
    starts = np.flatnonzero(np.diff(bins[order], prepend=-1))
    of_groups = []
    for rows in np.split(order, starts[1:]):
        binned = problem.take(rows, slice(None), problem.weight[rows])
        tails = level / 2, level / 2 / len(starts)
        of_groups.append([end for tail in tails for end in frequency_limits(binned, tail)])
    outer = (np.minimum, np.maximum, np.minimum, np.maximum)
    ends = zip(outer, limits, np.transpose(of_groups), strict=True)
    return [widest(of_samples, of_bin) for widest, of_samples, of_bin in ends]


def _smooth(kind):
    """The line of a smoother: splines of the logit, or isotonic regression [1]_.

    .. [1] Dimitriadis, Gneiting & Jordan, Stable reliability diagrams for probabilistic
       classifiers, PNAS 2021.
    """
    return CurveKind(kind, lambda points, grid: points.curve(kind, grid))


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


def sides_of(sample: Sample) -> list[tuple[str, str]]:
    """What the samples are called in which the outcome of each problem did not happen, and did."""
    notion, n_problems = sample.notion, len(sample.problems())
    if notion.of_positive_class:
        names = [str(name) for name in sample.classes]
        numbers = sample.classes.dtype.kind in "biuf"
        return [("non-events", "events") if numbers else (names[0], names[1])]
    if notion.of_largest or not notion.by_class:
        return [RIGHT] * n_problems
    return [("without", "with") if notion.of_labels else ("others", "in class")] * n_problems
