"""Reliability diagrams: the display, and its panels as they are drawn beside other classifiers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import reduce
from typing import Any, Self

import numpy as np

from skcal._show import Table, html_list, html_result, percent, plain_number, worded
from skcal._sklearn_compat import StrOptions, validate_params
from skcal._validation import BIN_COUNT
from skcal.displays import draw
from skcal.displays.axis import AXIS_LABELS, ProbabilityAxis, draw_histogram, set_axes
from skcal.displays.base import (
    DRAWN,
    MAX_PANELS,
    METHODS,
    Display,
    diagram_size,
    of_cv_results,
    of_estimator,
)
from skcal.displays.reliability_panel import (
    JOINED,
    RIGHT,
    SMOOTH,
    ReliabilityPanel,
    make_curves,
    make_panel,
    rule_of,
    sides_of,
)
from skcal.hypothesis_tests import calibration_error_interval, calibration_test
from skcal.hypothesis_tests.scan import ScanRange
from skcal.metrics import BinRule, CalibrationErrorInterval
from skcal.sample import Sample, read_sample

_FEW_BINS = BinRule(15, "quantile")  # by which the classes with the largest errors are found
DIAGRAM_OPTIONS = {
    **DRAWN,
    "method": [StrOptions({"auto", JOINED, SMOOTH, "isotonic", "kernel-density"}), *METHODS],
    "n_bins": [BIN_COUNT, StrOptions({"auto", "cube_root"})],
    "strategy": [StrOptions(set(BinRule.strategies))],
    "edges": ["array-like", None],
}
_LONGER = 3  # than the shortest, an axis that classes share
_NUMBERS = ("estimate", "low", "high")
COLOURS_OF_LINES = [colour for colour in draw.COLOURS if colour != draw.ORANGE]


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
        The method of the line, such as "auto" or "isotonic".
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
        Shaded ranges of each panel; empty once a second classifier is drawn on the axes.

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
    Axes that several classifiers share have no shading.

    **Below** are the histograms of both outcomes, as mirror images. Bar heights are square roots of
    counts, so bins of few samples stay visible; labels say how many samples each side has. Axes of
    less than 1.8 inches, as four in a figure of the usual size, have none.

    Linear axes end before 1 where at least 99 % of the predictions, all points and the intervals of
    bins with 2 % of the samples or more lie below 0.5. The label of the axis then counts the
    predictions beyond, and an arrow marks an interval that goes on. They begin above 0 where all
    predictions, points and such intervals lie above 0.5. ``scale="logit"`` shows every prediction:
    those beyond an end are drawn at that end, and an arrow marks a frequency beyond it. A second
    diagram on the axes lengthens them, and all points are placed anew. Panels have the same axis,
    but those of classes have their own where one axis is more than three times as long as another.

    **The title** holds the calibration error ("error") with its limits, as
    :func:`skcal.calibration_error_interval` returns them. Ranges are shaded only if that
    error is significant. If classes are left out, there is neither.

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
    ReliabilityDisplay(n = 500, confidence, 8 bins, calibration error 0.138, 2 significant ranges)
    """

    panels: list[ReliabilityPanel]
    _: KW_ONLY
    notion: Any
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
        return [*facts, draw.counted(panel.n_bins, "bin"), *_facts_of_error(panel)]

    def _repr_html_(self):
        columns = ("", "samples", "calibration error", "at least", "at most", "p-value")
        rows, lines = [], []
        for panel in self.panels:
            label, number = panel.label.replace("\n", ": "), panel.number
            cells: tuple = ("–",) * 4
            if number is not None:
                cells = (number.estimate, number.low, number.high, number.pvalue)
            rows.append((label, panel.n_samples, *cells))
            head = f"{label}: " * (len(self.panels) > 1)
            lines += [f"{head}{_range_in_words(part)}" for part in panel.ranges]
        table, level = Table(columns, rows), percent(self.confidence_level)
        return html_result(
            self._sentence(), table, f"<p>Each limit: {level}.</p>\n", html_list(lines)
        )

    def _sentence(self):
        """The first sentence of the display."""
        [panel, *more] = self.panels
        if more or panel.number is None:
            return f"Reliability diagram, {draw.counted(len(self.panels), 'panel')}, {self.notion}"
        sentence = panel.number.sentence()
        return f"{sentence[0].upper()}{sentence[1:]}"

    @classmethod
    @validate_params(DIAGRAM_OPTIONS, prefer_skip_nested_validation=False)
    def from_predictions(
        cls,
        y_true,
        y_proba=None,
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
    ) -> Self:
        """Compute and plot the diagram.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes), Sample or \
CalibrationTable
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
            Left out beside a :class:`skcal.Sample` or a :class:`skcal.CalibrationTable`. Cells of a
            table are drawn whole, so ends of bins and bars move by the width of a cell at most.
        notion : {"auto", "binary", "confidence", "top-label", "classwise"}, default="auto"
            "auto" is "binary" for one and two columns and "confidence" for more.
        method : str, calibration-estimation function, estimator or search, default="auto"
            The line; points and intervals do not depend on it. "auto": "splines" if there are more
            than 21 distinct predictions and at least 12 samples of both outcomes, otherwise "bins".
            "splines": a smooth curve, by logistic regression on splines of the logit. "bins": a
            line that joins the points. "isotonic": isotonic regression, CORP (PNAS 2021).
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
            The number of redrawn outcomes of the scan. None: 999, for more than 100,000 samples
            199, as in a report.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other. Ranges, intervals and the limits of the
            calibration error take that into account. None: all are independent.
        labels : array-like of shape (n_classes,), default=None
            The class of each column; for 1-D predictions (negative class, positive class).
        pos_label : label, default=None
            The positive class of 1-D predictions, or of two columns for "binary"; otherwise an
            error.
        from_logits : bool, default=False
            If True, ``y_proba`` holds logits; probabilities are computed from them without loss of
            precision.
        random_state : int, RandomState instance or None, default=0
            Seed of the scan for ranges. The calibration error and its limits have no seed.
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
            False computes only the numbers, without matplotlib.

        Returns
        -------
        display : ReliabilityDisplay
        """
        question = notion, sample_weight, labels, pos_label, from_logits
        sample = read_sample(y_true, y_proba, *question, groups=groups, from_sums=True)
        bins = {"rule": rule_of(n_bins, strategy, edges), "scale": scale}
        test = confidence_level, n_resamples, random_state
        display = cls._of_sample(sample, name, method, *test, **bins)
        return display.plot(ax=ax, ref_line=ref_line, **(line_kw or {})) if plot else display

    @classmethod
    def _of_sample(
        cls, sample: Sample, name, method, confidence_level, n_resamples, random_state, rule, scale
    ) -> Self:
        """Compute the diagram of a sample whose predictions are binned by a rule."""
        _require_scalar(sample)
        curves, sides = make_curves(method, sample), sides_of(sample)
        problems = [(k, p) for k, p in enumerate(sample.problems()) if len(p.weight)]
        shown = _with_largest_errors(problems, rule or _FEW_BINS)
        numbers, ranges = {}, {}
        if len(shown) == len(problems):
            numbers = _errors_of(sample, shown, confidence_level)
        if any(number.is_significant for number in numbers.values()):
            test = calibration_test(sample, n_resamples=None)
            options: dict[str, Any] = {"confidence_level": confidence_level}
            scan = test.scan(sample, n_resamples, random_state=random_state, **options)
            ranges = _ranges_of(scan, sample, numbers)
        panels = [
            make_panel(
                draw.titled(name, draw.problem_titles(sample)[k], 22),
                problem,
                sides=sides[k],
                curve=curves[k],
                rule=rule,
                scale=scale,
                level=confidence_level,
                number=numbers.get(k),
                ranges=ranges.get(k, []),
            )
            for k, problem in shown
        ]
        return cls(
            panels,
            notion=sample.notion,
            method=method if isinstance(method, str) else type(method).__name__,
            confidence_level=confidence_level,
            n_panels_left_out=len(problems) - len(shown),
        )

    from_estimator = of_estimator(from_predictions)
    from_cv_results = of_cv_results(from_predictions)

    @classmethod
    def of_panels(
        cls, panels: list[ReliabilityPanel], *, notion: str, confidence_level: float = 0.95
    ) -> Self:
        """Return the diagram of panels with bins; of more than 12 those with the largest errors.

        Parameters
        ----------
        panels : list of ReliabilityPanel
            At least one.
        notion : str
            The kind of calibration of all.
        confidence_level : float in (0, 1), default=0.95
            The one that they were made with.
        """
        errors = [0.0 if one.number is None else one.number.estimate for one in panels]
        kept = sorted(range(len(panels)), key=lambda k: -errors[k])[:MAX_PANELS]
        return cls(
            [panels[k] for k in sorted(kept)],
            notion=notion,
            method="bins",
            confidence_level=confidence_level,
            n_panels_left_out=len(panels) - len(kept),
        )

    @property
    def axis(self) -> ProbabilityAxis:
        """The shortest axis that holds those of all panels."""
        return reduce(ProbabilityAxis.joined, (panel.axis for panel in self.panels))

    @property
    def _has_one_axis(self) -> bool:
        """Whether panels share an axis: classes do not if one is much rarer than another."""
        spans = [panel.axis.high - panel.axis.low for panel in self.panels]
        of_classes = self.notion in ("top-label", "classwise", "multi-label")
        return not of_classes or max(spans) <= _LONGER * min(spans)

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
        for ax, panel in zip(axes, self.panels, strict=True):
            if name is not None:
                described = panel.label.split("\n")[-1]
                panel = replace(panel, label=draw.titled(name, described, 22))
            axis = self.axis if self._has_one_axis else panel.axis
            self._draw_panel(ax, replace(panel, axis=axis), kwargs)
        if len({panel.sides for panel in self.panels}) == 1:
            draw.hide_inner_labels(axes, numbers=self._has_one_axis)

    def _draw_panel(self, ax, panel, kwargs):
        others = getattr(ax, "_skcal_drawn", [])
        colour = COLOURS_OF_LINES[len(others) % len(COLOURS_OF_LINES)]
        across, up = AXIS_LABELS[panel.sides == RIGHT]
        if panel.n_above:
            across += f"\n({panel.n_above:,} above {panel.axis.high:g})"
        set_axes(ax, panel.axis, (across, up))
        if not others:
            self.ref_lines_.append(draw.diagonal(ax))
        look = draw.styled(kwargs, color=colour, linewidth=1.3, alpha=0.7)
        added = DrawnPanel(ax, panel, look)
        drawn = ax._skcal_drawn = [*others, added]
        for part in drawn:  # the axis may be longer than before
            part.place(ax._skcal_axis, alone=not others)
        self.lines_.append(added.line)
        self.points_.append(added.points)
        self.intervals_.append(added.intervals)
        self.ranges_.append(added.shades)
        most = max(max(part.most, part.histogram.max()) for part in self.panels)
        counts = panel.histogram_edges, panel.histogram
        self.histograms_.append(draw_histogram(ax, *counts, panel.sides, added.colour, most))
        self._explain(ax, drawn)

    def _explain(self, ax, drawn):
        """A title; a legend of a single panel, or of the classifiers that share the axes."""
        panel, several = drawn[-1].panel, len(drawn) > 1
        title = panel.label.split("\n")[-1] if several else _heading(panel)
        draw.set_title(ax, title)
        level = self.confidence_level
        parts = key_of_several(drawn, level, draw.ink(ax)) if several else drawn[0].key(level)
        below: Any = getattr(ax, "_skcal_key", None)  # of a single classifier
        is_below = below in ax.figure.legends
        if several and is_below:
            below.remove()
        if several and is_below and len(self.panels) == 1:
            place = {"loc": "outside lower center", **draw.LEGEND}
            ax._skcal_key = ax.figure.legend(*zip(*parts, strict=True), **place)
            self.legends_.append(ax._skcal_key)
        elif several or len(self.panels) == 1:
            self.legends_.append(draw.legend_below(ax, parts))

    def _finish(self, figure):
        """Explain all panels below them, where a legend hides no point."""
        super()._finish(figure)
        for legend in self.legends_:
            legend.remove()
        parts: dict[str, Any] = {}
        for line in self.lines_:
            [drawn] = line.axes._skcal_drawn
            parts |= {label: handle for handle, label in drawn.key(self.confidence_level)}
        n_columns = 3 if len(self.panels) > 1 else 2
        place = {"loc": "outside lower center", "ncols": n_columns, **draw.LEGEND}
        self.legends_ = [figure.legend(list(parts.values()), list(parts), **place)]
        for line in self.lines_:
            line.axes._skcal_key = self.legends_[0]


def _require_scalar(sample: Sample):
    if not sample.notion.scalar:
        asked = worded(f"notion={sample.notion!r}", f"--notion {sample.notion}")
        raise ValueError(
            f"{asked} conditions on a vector, which one frequency axis does not show. Use one of "
            "'confidence', 'top-label', 'classwise': 'classwise' has a panel a class"
            + worded("; SimplexDisplay shows vectors of three classes or groups.", ".")
        )


def _with_largest_errors(problems, rule):
    if len(problems) <= MAX_PANELS:
        return problems
    moments = [rule.moments(problem) for _, problem in problems]
    errors = [m.share * (m.weight @ np.abs(m.gaps[:, 0])) / m.weight.sum() for m in moments]
    return [problems[k] for k in sorted(np.argsort(errors)[-MAX_PANELS:])]


def _errors_of(sample: Sample, shown, level) -> dict[int, CalibrationErrorInterval]:
    """The calibration error of each problem with its limits, by the test of the verdict."""
    if not sample.notion.by_class:
        of_all = calibration_error_interval(sample, confidence_level=level)
        return {k: of_all for k, _ in shown}
    pvalues: Any = calibration_test(sample, n_resamples=None).class_pvalues
    of_classes = CalibrationErrorInterval.of_classes(sample, pvalues, confidence_level=level)
    return {k: of_classes[k] for k, _ in shown}


def _ranges_of(result, sample: Sample, numbers) -> dict[int, list[ScanRange]]:
    """The ranges of each problem whose error is significant."""
    outcomes = sample.notion.titles([str(name) for name in sample.classes])
    return {
        k: [
            part
            for part in result.ranges
            if not sample.notion.by_class or part.outcome == outcomes[k]
        ]
        for k, number in numbers.items()
        if number.is_significant
    }


def _facts_of_error(panel) -> list[str]:
    if panel.number is None:
        return []
    error = f"calibration error {plain_number(panel.number.estimate)}"
    if panel.ranges:
        return [error, draw.counted(len(panel.ranges), "significant range")]
    return [error, "significant" if panel.number.is_significant else "not significant"]


def as_percent(probability: float, digits: int = 3) -> str:
    """The first digits of 100 times a probability, without an exponent."""
    return np.format_float_positional(100 * probability, digits, fractional=False, trim="-")


def _range_in_words(part: ScanRange) -> str:
    low, high = as_percent(part.low, 2), as_percent(part.high, 2)
    predicted, observed = as_percent(part.predicted), as_percent(part.observed)
    return (
        f"Predictions from {low} to {high} % average {predicted} %, but {observed} % were observed "
        f"({part.size_in_words()})."
    )


def _heading(panel) -> str:
    """The classifier and the predicted event, and the calibration error with its limits."""
    lines = [panel.label.replace("\n", ": ")] if panel.label else []
    if panel.number is not None:
        size, low, high = map(plain_number, (getattr(panel.number, name) for name in _NUMBERS))
        above = f"≥ {low}, " if panel.number.low > 0 else "> 0, " * panel.number.is_significant
        lines.append(f"error {size} ({above}≤ {high})")
    return "\n".join(lines)


_THINNEST_RANGE = 0.02  # of the axis: the least width of a shaded range
_BEYOND_AXIS = {"^": "above the axis", "v": "below the axis"}
_CURVE_NAMES = {SMOOTH: "smooth curve", "isotonic": "isotonic regression", JOINED: "bins joined"}


class DrawnPanel:
    """The artists of a panel, which :meth:`place` puts where the axis wants them.

    Ranges are shaded, and points in them orange, only while no other classifier is drawn.
    """

    def __init__(self, ax, panel: ReliabilityPanel, look: dict[str, Any]):
        self.ax, self.panel = ax, panel
        [self.line] = ax.plot([], [], **{"zorder": 2, **look})
        self.intervals = ax.vlines([], [], [], linewidth=1.6, alpha=0.85, zorder=3)
        self.points: list[Any] = []
        self.cuts: list[Any] = []
        self.shades: list[Any] = []
        self.beyond: set[str] = set()  # markers that are drawn

    @property
    def colour(self):
        """The colour of its line."""
        return self.line.get_color()

    def place(self, axis: ProbabilityAxis, alone: bool) -> None:
        """Draw on this axis. Arrows at its end mark what lies beyond."""
        panel = self.panel
        for artist in (*self.points, *self.cuts, *self.shades):
            artist.remove()
        self.points.clear()
        self.cuts.clear()
        self.beyond.clear()
        self.shades[:] = [_shade(self.ax, part, axis) for part in panel.ranges if alone]
        outside = (panel.line_y < axis.low) | (panel.line_y > axis.high)
        line_y = np.where(outside & (panel.line != JOINED), np.nan, panel.line_y)
        self.line.set_data(axis.inside(panel.line_x), axis.inside(line_y))
        colours = np.where(panel.significant & alone, draw.ORANGE, self.colour)
        x, y = axis.inside(panel.prediction), axis.inside(panel.frequency)
        low, high = axis.inside(panel.low), axis.inside(panel.high)
        ends = np.column_stack([x, low]), np.column_stack([x, high])
        self.intervals.set_segments(np.stack(ends, axis=1))
        self.intervals.set_color(colours)
        for marker, end, cut in (
            ("^", high, panel.high > axis.high),
            ("v", low, panel.low < axis.low),
        ):
            cut &= axis.scale == "linear"
            look: dict[str, Any] = {"c": colours[cut], "marker": marker, "s": 22, "zorder": 3}
            self.cuts.append(self.ax.scatter(x[cut], end[cut], **look))
            self.beyond |= {marker} if cut.any() else set()
        look = {"s": 34, "edgecolor": "white", "linewidth": 0.8, "zorder": 4}
        below, above = panel.frequency < axis.low, panel.frequency > axis.high
        for marker, which in [("o", ~(below | above)), ("v", below), ("^", above)]:
            if which.any():
                self.beyond.add(marker)
                drawn = self.ax.scatter(x[which], y[which], c=colours[which], marker=marker, **look)
                self.points.append(drawn)

    def key(self, level: float) -> list[tuple[Any, str]]:
        """The parts of the drawing, with their meaning."""
        from matplotlib.patches import Patch

        parts: list[tuple[Any, str]] = [(_mark(self.colour), _bins(level))]
        if self.panel.line != JOINED:
            parts.append((self.line, self.kind))
        if self.shades:
            both = Patch(color=draw.ORANGE, alpha=0.15), _mark(draw.ORANGE)
            parts.append((both, "significant miscalibration"))
        return [*parts, *_arrows(self.colour, self.beyond)]

    @property
    def kind(self) -> str:
        """The kind of its line."""
        return _CURVE_NAMES.get(self.panel.line, self.panel.line)

    @property
    def name(self) -> str:
        """The name of the classifier and its error."""
        label = self.panel.label
        name = draw.as_label(label.split("\n")[0], 24) if "\n" in label else "classifier"
        if self.panel.number is not None:
            name += f": {plain_number(self.panel.number.estimate)}"
        return f" {name}" if name.startswith("_") else name  # legends leave out "_…"


def key_of_several(drawn: list[DrawnPanel], level: float, ink) -> list[tuple[Any, str]]:
    """Classifiers on the same axes, each with its line if they differ, and what they share."""
    differ = len({part.kind for part in drawn}) > 1
    names = [f"{part.name}, {part.kind}" if differ else part.name for part in drawn]
    parts = [(_mark(part.colour), name) for part, name in zip(drawn, names, strict=True)]
    bar = _mark(ink, marker="|", markersize=11, linestyle="none")
    beyond = set().union(*(part.beyond for part in drawn))
    return [*parts, (bar, _bins(level)), *_arrows(ink, beyond)]


def _bins(level: float) -> str:
    return f"bins, {percent(level)} intervals"


def _mark(colour, **look):
    """A point with its interval, or another mark, for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, **{"marker": "o", "linewidth": 1.6, **look})


def _arrows(colour, beyond: set[str]) -> list[tuple[Any, str]]:
    """Each arrow that is drawn, as it is drawn."""
    return [
        (_mark(colour, marker=arrow, linestyle="none"), meaning)
        for arrow, meaning in _BEYOND_AXIS.items()
        if arrow in beyond
    ]


def _shade(ax, part: ScanRange, axis: ProbabilityAxis):
    """Shade a range of predictions, a narrow one a little wider than it is."""
    middle = axis.place([part.low, part.high]).mean()
    low, high = axis.at(np.clip([middle - _THINNEST_RANGE / 2, middle + _THINNEST_RANGE / 2], 0, 1))
    ends = min(low, axis.inside(part.low)), max(high, axis.inside(part.high))
    return draw.shade(ax, *ends)
