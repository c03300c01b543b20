"""Reliability diagrams."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import reduce
from numbers import Integral, Real
from typing import Any

import numpy as np

from skcal._bins import SCALAR_PARTITIONS
from skcal._show import Table, html_list, html_result, percent
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal.displays.axis import AXIS_LABELS, SCALES, ProbabilityAxis, set_axes
from skcal.displays.base import (
    COLOURS,
    MAX_PANELS,
    ORANGE,
    Display,
    as_label,
    as_percent,
    counted,
    diagram_size,
    draw_diagonal,
    problem_titles,
    styled,
    titled,
    with_error,
)
from skcal.displays.from_estimator import of_cv_results, of_estimator
from skcal.displays.histogram import draw_histogram
from skcal.displays.reliability_panel import (
    JOINED,
    RIGHT,
    SMOOTH,
    ReliabilityPanel,
    binned_error,
    make_curves,
    make_panel,
    rule_of,
    sides_of,
)
from skcal.functions.base import BilinearFunction
from skcal.hypothesis_tests.result import default_resamples
from skcal.hypothesis_tests.scan import ScanRange, scan_test
from skcal.metrics.bins import BinRule, problem_moments
from skcal.metrics.cross_fitted import ece_without_bins
from skcal.model_selection import CalibrationErrorEstimator, CalibrationErrorSearchCV
from skcal.sample import SCALAR_NOTIONS, Sample, read_sample

_MOST_WITHOUT_BINS = 200_000  # samples; more take longer than all the rest
_NARROW = 0.02  # of the axis: the least width of a shaded range
_FEW_BINS = BinRule(15, "quantile")  # by which the classes with the largest errors are found
_KINDS = {SMOOTH: "smooth curve", "isotonic": "isotonic regression"}
COLOURS_OF_LINES = [colour for colour in COLOURS if colour != ORANGE]


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Display):
    """Reliability diagram: observed frequency against predicted probability.

    Make it with :meth:`from_predictions` or :meth:`from_estimator`, which compute all numbers.

    Parameters
    ----------
    panels : list of ReliabilityPanel
        One, or one for each class if the kind of calibration is "classwise" or "top-label".
    notion : str
        The kind of calibration.
    method : str
        What drew the line, such as "auto" or "isotonic".
    confidence_level : float, default=0.95
        The confidence level of the intervals and of the shaded ranges.
    n_panels_left_out : int, default=0
        The number of classes without a panel: if there are more than 12, those with the largest
        errors are shown.

    Attributes
    ----------
    ax_ : matplotlib axes, or ndarray of axes, one for each panel
        Set by :meth:`plot`, as are the following.
    figure_ : matplotlib figure
    lines_, points_, intervals_, histograms_, legends_, ref_lines_ : list
        Lines; points of the bins and their intervals; histograms of both outcomes; legends; the
        diagonals.
    ranges_ : list of list
        Shaded ranges of each panel.

    See Also
    --------
    skcal.metrics.calibration_bins : the table of bins.
    skcal.hypothesis_tests.scan_test : the test that finds the shaded ranges.
    skcal.displays.CalibrationCurveDisplay : a smooth curve with its confidence band.
    skcal.displays.SimplexDisplay : three classes at once.

    Notes
    -----
    **Points** are bins that end at tenths of the axis and at quantiles of the samples. Each has
    its own Clopper-Pearson interval, so 1 in 20 of them misses the truth. The **line** is a smooth
    curve if the predictions are continuous, otherwise it joins the points. It stops where no
    samples are.

    **Shaded** are the ranges of predictions in which
    :func:`skcal.hypothesis_tests.scan_test` finds significant miscalibration. Points in them whose
    interval misses the mean prediction have another colour. All ranges together have the error rate
    of one test. Single intervals do not, so look at the shading before you look at a point.

    **Below** are the histograms of both outcomes, as mirror images. Bar heights are square roots of
    counts, so bins of few samples stay visible; the axis shows the largest count.

    Linear axes end before 1 if at least 99 % of the predictions and all intervals lie below 0.5;
    the title then counts the predictions beyond. ``scale="logit"`` shows every prediction: those
    beyond an end are drawn at that end, and an arrow marks a frequency beyond it.

    There is no shading with weights, because the test redraws outcomes, nor if classes are left
    out. A panel of a million samples takes about 6 s.

    References
    ----------
    .. [1] Bröcker & Smith, Increasing the reliability of reliability diagrams, Weather and
       Forecasting 2007.
    .. [2] Dimitriadis, Gneiting & Jordan, Stable reliability diagrams for probabilistic
       classifiers, PNAS 2021.

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> from skcal.displays import ReliabilityDisplay
    >>> data = make_tempered(500, temperature=2.0, n_truth_draws=0, random_state=0)
    >>> display = ReliabilityDisplay.from_predictions(
    ...     data.labels, data.proba, random_state=0, plot=False
    ... )
    >>> display
    ReliabilityDisplay(n = 500, confidence, 9 bins, ECE without bins 0.132 ± 0.020, 1 range shown)
    """

    panels: list[ReliabilityPanel]
    _: KW_ONLY
    notion: str
    method: str
    confidence_level: float = 0.95
    n_panels_left_out: int = 0

    def _facts(self):
        n_samples = max(panel.n_samples for panel in self.panels)
        facts = [
            f"n = {n_samples:,}",
            self.notion,
            "" if self.method in ("auto", JOINED) else f"line by {self.method}",
        ]
        if len(self.panels) > 1:
            return [*facts, f"{len(self.panels)} panels"]
        [panel] = self.panels
        return [*facts, counted(panel.n_bins, "bin"), _error_in_words(panel), self._verdict(panel)]

    def _verdict(self, panel) -> str:
        """What the test of the panel shows, in few words; empty if it was not asked."""
        if panel.ranges:
            return f"{counted(len(panel.ranges), 'range')} shown"
        if np.isnan(panel.pvalue):
            return ""
        shown = panel.pvalue <= 1 - self.confidence_level
        text = "shown, but not where" if shown else "no range stands out"
        return f"{text} (p = {panel.pvalue:.2g})"

    def _repr_html_(self):
        columns = ("panel", "n", "bins", "ECE without bins", "± s.e.", "p (scan)")
        rows, shown = [], []
        for panel in self.panels:
            facts = panel.without_bins or {"estimate": None, "standard_error": None}
            label = panel.label.replace("\n", ": ")
            pvalue = None if np.isnan(panel.pvalue) else panel.pvalue
            numbers = (facts["estimate"], facts["standard_error"], pvalue)
            cells = ("–" if value is None else value for value in numbers)
            rows.append((label, panel.n_samples, panel.n_bins, *cells))
            told = [_range_in_words(part) for part in panel.ranges] or [self._verdict(panel)]
            shown += [f"{label}: {text}" for text in told if text]
        title = f"Reliability diagram, {self.notion} calibration"
        return html_result(title, Table(columns, rows), html_list(shown))

    @classmethod
    @validate_params(
        {
            "method": [
                StrOptions({"auto", JOINED, SMOOTH, "isotonic", "kernel-density"}),
                BilinearFunction,
                CalibrationErrorEstimator,
                CalibrationErrorSearchCV,
            ],
            "n_bins": [
                Interval(Integral, 1, None, closed="left"),
                StrOptions({"auto", "cube_root"}),
            ],
            "strategy": [StrOptions(set(SCALAR_PARTITIONS))],
            "edges": ["array-like", None],
            "scale": [StrOptions(set(SCALES))],
            "confidence_level": [Interval(Real, 0, 1, closed="neither")],
            "n_resamples": [Interval(Integral, 19, None, closed="left"), None],
            "random_state": ["random_state"],
            "line_kw": [dict, None],
        },
        prefer_skip_nested_validation=False,
    )
    def from_predictions(
        cls,
        y_true,
        y_proba,
        *,
        notion="auto",
        method="auto",
        n_bins="auto",
        strategy="uniform",
        edges=None,
        scale="linear",
        confidence_level=0.95,
        n_resamples=None,
        sample_weight=None,
        groups=None,
        labels=None,
        pos_label=None,
        from_logits=False,
        random_state=0,
        name=None,
        ref_line=True,
        line_kw=None,
        ax=None,
        plot=True,
    ):
        """Compute and plot the diagram.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        notion : {"auto", "binary", "confidence", "top-label", "classwise"}, default="auto"
            "auto" is "binary" for one and two columns and "confidence" for more.
        method : str, calibration-estimation function, estimator or search, default="auto"
            The line; points and intervals do not depend on it. "auto": "splines" if there are more
            than 21 distinct predictions and at least 12 samples of both outcomes, otherwise "bins".
            "splines": a smooth curve, by logistic regression on splines of the logit. "bins": a
            line that joins the points. "isotonic": isotonic regression, CORP [2]_.
            "kernel-density": a ratio of kernel densities. A function with ``residual``: a clone is
            fitted to these samples. A fitted :class:`skcal.CalibrationErrorEstimator` or
            :class:`skcal.CalibrationErrorSearchCV` of the same kind of calibration: its curve
            x + ĝ(x) as fitted. More than 1,000 distinct predictions are grouped into 1,000 of equal
            mass before a curve is fitted.
        n_bins : int, "auto" or "cube_root", default="auto"
            "auto": bins end at tenths of the axis and at quantiles of the samples. A bin of fewer
            than 12 samples joins its nearer neighbour. Up to 21 distinct predictions have a bin
            each.
        strategy : {"uniform", "quantile", "sweep", "unique"}, default="uniform"
            How other ``n_bins`` are made, as in
            :func:`skcal.metrics.expected_calibration_error`.
        edges : array-like of shape (n_edges,), default=None
            Edges of bins, rising from 0 to 1, in place of ``n_bins`` and ``strategy``.
        scale : {"linear", "logit"}, default="linear"
            The scale of both axes. "logit" spreads probabilities near 0 and 1, for rare events and
            for very confident classifiers.
        confidence_level : float in (0, 1), default=0.95
            The confidence level of intervals and ranges.
        n_resamples : int ≥ 19, default=None
            The number of redrawn outcomes of the test. None: 999, for more than 100,000 samples
            199, as in a report.
        sample_weight : array-like of shape (n_samples,), default=None
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other, which the ranges, the limits of the bins
            and the error without bins take into account. None: all are independent.
        labels : array-like of shape (n_classes,), default=None
            The class of each column; for 1-D predictions (negative class, positive class).
        pos_label : label, default=None
            The positive class of 1-D predictions, or of two columns for "binary"; otherwise an
            error.
        from_logits : bool, default=False
            Whether ``y_proba`` holds logits; probabilities are computed from them without loss of
            precision.
        random_state : int, RandomState instance or None, default=0
            Seed of the test and of the folds of the error without bins.
        name : str, default=None
            The name of the classifier, for title and legend.
        ref_line : bool, default=True
            Whether to draw the diagonal, on which calibrated predictions lie.
        line_kw : dict, default=None
            Options of :meth:`matplotlib.axes.Axes.plot` for the line; points and intervals take
            its colour.
        ax : matplotlib axes or array of axes, default=None
            One a panel; None makes a figure. On axes that hold a diagram the next one takes the
            next colour.
        plot : bool, default=True
            False computes the numbers alone, without matplotlib.

        Returns
        -------
        display : ReliabilityDisplay
        """
        question = notion, sample_weight, labels, pos_label, from_logits
        sample = read_sample(y_true, y_proba, *question, groups=groups)
        _require_scalar(sample)
        curves, sides = make_curves(method, sample), sides_of(sample)
        problems = [(k, p) for k, p in enumerate(sample.problems()) if len(p.weight)]
        rule = rule_of(n_bins, strategy, edges)
        shown = _with_largest_errors(problems, rule or _FEW_BINS)
        scans: dict[int, tuple[float, list]] = {k: (np.nan, []) for k, _ in shown}
        if len(shown) == len(problems):
            n_resamples = n_resamples or default_resamples(len(sample.codes))
            options = {"n_resamples": n_resamples, "confidence_level": confidence_level}
            options |= {"labels": labels, "pos_label": pos_label, "random_state": random_state}
            options |= {"sample_weight": sample_weight, "groups": groups}
            options["from_logits"] = from_logits
            scans = _scan(scan_test(y_true, y_proba, notion=notion, **options), sample, shown)
        panels = []
        for k, problem in shown:
            without_bins = None
            if len(sample.codes) <= _MOST_WITHOUT_BINS:
                level = {"random_state": random_state, "confidence_level": confidence_level}
                without_bins = ece_without_bins(sample, problem=problem, **level)
            label = titled(name, problem_titles(sample)[k])
            pvalue, ranges = scans[k]
            panel = make_panel(
                label,
                problem,
                sides=sides[k],
                curve=curves[k],
                rule=rule,
                scale=scale,
                level=confidence_level,
                pvalue=pvalue,
                ranges=ranges,
                without_bins=without_bins,
            )
            panels.append(panel)
        display = cls(
            panels,
            notion=sample.notion,
            method=method if isinstance(method, str) else type(method).__name__,
            confidence_level=confidence_level,
            n_panels_left_out=len(problems) - len(shown),
        )
        return display.plot(ax=ax, ref_line=ref_line, **(line_kw or {})) if plot else display

    from_estimator = of_estimator(from_predictions)
    from_cv_results = of_cv_results(from_predictions)

    def _layout(self):
        return len(self.panels), diagram_size(len(self.panels))

    def _draw(self, axes, name, kwargs):
        self.lines_: list[Any] = []
        self.points_: list[Any] = []
        self.intervals_: list[Any] = []
        self.ranges_: list[list[Any]] = []
        self.histograms_: list[list[Any]] = []
        self.legends_: list[Any] = []
        self.ref_lines_: list[Any] = []
        shared = reduce(ProbabilityAxis.joined, (panel.axis for panel in self.panels))
        for ax, panel in zip(axes, self.panels, strict=True):
            if name is not None:
                described = panel.label.split("\n")[-1]
                panel = replace(panel, label=f"{as_label(name)}\n{described}")
            self._draw_panel(ax, replace(panel, axis=shared), kwargs)

    def _draw_panel(self, ax, panel, kwargs):
        others = getattr(ax, "_skcal_labels", [])
        colour = COLOURS_OF_LINES[len(others) % len(COLOURS_OF_LINES)]
        set_axes(ax, panel.axis, AXIS_LABELS[panel.sides == RIGHT])
        if not others:
            self.ref_lines_.append(draw_diagonal(ax))
        self.ranges_.append([_shade(ax, part, panel.axis) for part in panel.ranges if not others])
        line = _draw_line(ax, panel, styled(kwargs, color=colour, linewidth=1.3, alpha=0.7))
        colour = line.get_color()
        self.lines_.append(line)
        colours = np.where(panel.significant, colour if others else ORANGE, colour)
        points, intervals = _draw_points(ax, panel, colours)
        self.points_.append(points)
        self.intervals_.append(intervals)
        counts = panel.histogram_edges, panel.histogram
        self.histograms_.append(draw_histogram(ax, *counts, panel.sides, colour))
        ax._skcal_labels = [*others, (line, _line_label(panel))]
        self._explain(ax, panel, line)

    def _explain(self, ax, panel, line):
        """A title, and a legend in the corner that has more room."""
        from matplotlib.lines import Line2D

        drawn = ax._skcal_labels
        title = panel.label.split("\n")[-1]
        if len(drawn) == 1:
            title = "\n".join(filter(None, [_heading(panel), _error_in_words(panel)]))
        ax.set_title(title, fontsize="medium")
        level = percent(self.confidence_level)
        parts = drawn
        if len(drawn) == 1:
            dot = Line2D([], [], color=line.get_color(), marker="o", linewidth=1.6)
            parts = [(dot, f"bins, {level} intervals")]
            if panel.line != JOINED:
                parts.append((line, _KINDS.get(panel.line, panel.line)))
            if panel.ranges:
                parts.append((self.ranges_[-1][0], "significant miscalibration"))
        look = {"loc": _free_corner(panel), "fontsize": "medium", "frameon": False}
        look |= {"handlelength": 1.2, "borderaxespad": 0.2, "labelspacing": 0.3}
        self.legends_.append(ax.legend(*zip(*parts, strict=True), **look))


def _require_scalar(sample: Sample):
    if not sample.notion.scalar:
        raise ValueError(
            f"notion={sample.notion!r} conditions on a vector, which one frequency axis does "
            f"not show. Use one of {SCALAR_NOTIONS}: 'classwise' has a panel a class; "
            "SimplexDisplay shows vectors of three classes or groups."
        )


def _with_largest_errors(problems, rule):
    if len(problems) <= MAX_PANELS:
        return problems
    errors = [binned_error(problem_moments(problem, rule)) for _, problem in problems]
    return [problems[k] for k in sorted(np.argsort(errors)[-MAX_PANELS:])]


def _scan(result, sample: Sample, shown) -> dict[int, tuple[float, list[ScanRange]]]:
    """The p-value and the ranges of each problem."""
    if not sample.notion.by_class:
        return {k: (result.pvalue, result.ranges) for k, _ in shown}
    outcomes = sample.notion.titles([str(name) for name in sample.classes])
    return {
        k: (
            float(result.class_pvalues[k]),
            [part for part in result.ranges if part.outcome == outcomes[k]],
        )
        for k, _ in shown
    }


def _error_in_words(panel) -> str:
    facts = panel.without_bins
    if facts is None or facts["estimate"] is None:
        return ""
    return f"ECE without bins {with_error(facts['estimate'], facts['standard_error'])}"


def _range_in_words(part: ScanRange) -> str:
    low = as_percent(part.low if 1000 * part.low > part.high else 0.0, 2)
    high = as_percent(part.high, 2)
    predicted, observed = as_percent(part.predicted), as_percent(part.observed)
    return f"{low} to {high} %: {predicted} % predicted, {observed} % happened"


def _shade(ax, part: ScanRange, axis: ProbabilityAxis):
    """Shade a range of predictions, a narrow one a little wider than it is."""
    middle = axis.place([part.low, part.high]).mean()
    low, high = axis.at(np.clip([middle - _NARROW / 2, middle + _NARROW / 2], 0, 1))
    ends = min(low, axis.inside(part.low)), max(high, axis.inside(part.high))
    return ax.axvspan(*ends, color=ORANGE, alpha=0.12, linewidth=0, zorder=0)


def _draw_line(ax, panel, look):
    outside = (panel.line_y < panel.axis.low) | (panel.line_y > panel.axis.high)
    line_y = np.where(outside & (panel.line != JOINED), np.nan, panel.line_y)
    points = panel.axis.inside(panel.line_x), panel.axis.inside(line_y)
    return ax.plot(*points, **{"zorder": 2, **look})[0]


def _draw_points(ax, panel, colours):
    """Points, as arrows where a frequency lies beyond the axis, and their intervals."""
    axis = panel.axis
    x, y = axis.inside(panel.prediction), axis.inside(panel.frequency)
    low, high = axis.inside(panel.low), axis.inside(panel.high)
    intervals = ax.vlines(x, low, high, color=colours, linewidth=1.6, alpha=0.85, zorder=3)
    look = {"s": 34, "edgecolor": "white", "linewidth": 0.8, "zorder": 4}
    points = []
    beyond = [("v", panel.frequency < axis.low), ("^", panel.frequency > axis.high)]
    for marker, which in [("o", ~(beyond[0][1] | beyond[1][1])), *beyond]:
        if which.any():
            points.append(ax.scatter(x[which], y[which], c=colours[which], marker=marker, **look))
    return points, intervals


def _heading(panel) -> str:
    n_events = f"{panel.n_events:,.1f}".removesuffix(".0")
    title = f"{panel.label}: n = {panel.n_samples:,}, {n_events} {as_label(panel.sides[1], 14)}"
    if panel.n_above:
        title += f"\n{panel.n_above:,} predictions above {panel.axis.high:g}"
    return title


def _line_label(panel) -> str:
    """The name of a classifier and its error, for axes that it shares."""
    name = as_label(panel.label.split("\n")[0], 24) if "\n" in panel.label else "classifier"
    facts = panel.without_bins or {"estimate": None}
    if facts["estimate"] is not None:
        name += ": " + with_error(facts["estimate"], facts["standard_error"])
    return f" {name}" if name.startswith("_") else name  # legends leave out "_…"


def _free_corner(panel) -> str:
    """The corner beside the diagonal in which less is drawn."""
    x, low, high = map(panel.axis.place, (panel.prediction, panel.low, panel.high))
    upper = np.count_nonzero((x < 0.6) & (high > 0.75))
    lower = np.count_nonzero((x > 0.4) & (low < 0.25))
    below = (panel.axis.place(panel.frequency) - x).mean() < 0
    return "upper left" if upper < lower or (upper == lower and below) else "lower right"
