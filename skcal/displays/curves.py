"""Curves of single probabilities: calibration, net benefit and elementary scores."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np

from skcal._show import as_data, percent
from skcal._sklearn_compat import StrOptions, validate_params
from skcal.displays import draw
from skcal.displays.axis import AXIS_LABELS, ProbabilityAxis, axes_of, draw_histogram, set_axes
from skcal.displays.base import DRAWN, Display, of_cv_results, of_estimator
from skcal.displays.reliability_panel import (
    bins_of_axis,
    histograms,
    sides_of,
    wide_gaps,
    within,
)
from skcal.metrics.curve import CalibrationCurve, flexible_calibration_curve
from skcal.metrics.murphy import MurphyDiagram, murphy_diagram
from skcal.metrics.thresholds import DecisionCurve, decision_curve
from skcal.sample import Sample, read_sample

_DRAWN = ("frequency", "low", "high", "band_low", "band_high")
_ALL, _NONE = "treat all", "treat none"
_CURVE_GRID = np.linspace(0, 1, 501)
_MANY_POINTS = 1000  # points of exact Murphy diagrams


@dataclass(eq=False, repr=False)
class CalibrationCurveDisplay(Display):
    """Smooth calibration curve with its pointwise and simultaneous limits.

    Make it with :meth:`from_predictions` or :meth:`from_estimator`.

    Parameters
    ----------
    curve : CalibrationCurve
        What is drawn; see :func:`skcal.metrics.flexible_calibration_curve`.
    histogram : ndarray of shape (2, n)
        The number of samples by prediction in which the outcome did not happen, and did.
    histogram_edges : ndarray of shape (n + 1,)
        Edges of the bins of ``histogram``, in [0, 1].
    axis : ProbabilityAxis
        The limits of both axes.
    gaps : ndarray of shape (n_gaps, 2)
        Wide ranges with hardly any samples, across which nothing is drawn.
    sides : tuple of two str
        Names of the samples without the event and with it.
    name : str, default=None
        The name of the classifier.
    label : str, default=None
        The predicted quantity, such as "P(ill)"; None: the kind of calibration.

    Attributes
    ----------
    ax_ : matplotlib axes
        Set by :meth:`plot`, as are the following.
    figure_ : matplotlib figure
    line_ : matplotlib line
    bands_ : list of matplotlib collections
        The pointwise and the simultaneous band.
    histogram_ : list of matplotlib artists
    ref_lines_ : list of matplotlib lines

    See Also
    --------
    ReliabilityDisplay : bins, and what calibrated predictions would show.
    skcal.metrics.flexible_calibration_curve : the curve as data.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.displays import CalibrationCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> y = rng.uniform(size=500) < p**2
    >>> display = CalibrationCurveDisplay.from_predictions(y, p, plot=False)
    >>> display.curve.method, len(display.curve.frequency)
    ('splines', 101)
    """

    curve: CalibrationCurve
    histogram: np.ndarray
    histogram_edges: np.ndarray
    _: KW_ONLY
    axis: ProbabilityAxis
    gaps: np.ndarray
    sides: tuple[str, str]
    name: str | None = None
    label: str | None = None
    _size = (4.6, 5.6)

    def _repr_html_(self):
        return self.curve._repr_html_()

    def _data(self):
        beside = ("histogram", "histogram_edges", "axis")
        return as_data(self.curve) | {name: getattr(self, name) for name in beside}

    def _facts(self):
        return [f"n = {self.curve.n_samples:,}", self.curve.notion, f"curve by {self.curve.method}"]

    @classmethod
    @validate_params({**DRAWN, "method": [StrOptions(set(CalibrationCurve.methods))]})
    def from_predictions(
        cls,
        y_true,
        y_proba=None,
        *,
        method="splines",
        notion="auto",
        scale="linear",
        confidence_level=0.95,
        sample_weight=None,
        groups=None,
        labels=None,
        pos_label=None,
        from_logits=False,
        name=None,
        ref_line=True,
        line_kw=None,
        ax=None,
        plot=True,
    ) -> Self:
        """Compute and plot the curve.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,), or Sample
            Labels; both outcomes must occur.
        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
            Left out beside a :class:`skcal.Sample`.
        method : {"splines", "loess", "isotonic"}, default="splines"
            The smoother, see :func:`skcal.metrics.flexible_calibration_curve`.
        notion : {"auto", "binary", "confidence"}, default="auto"
            "auto" is "binary" for one and two columns and "confidence" for more.
        scale : {"linear", "logit"}, default="linear"
            The scale of both axes. "logit" spreads probabilities near 0 and 1.
        confidence_level : float in (0, 1), default=0.95
            The confidence level of the limits.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other; None: all are independent.
        labels : array-like of shape (n_classes,), default=None
            The class of each column; for 1-D predictions (negative class, positive class).
        pos_label : label, default=None
            The positive class of 1-D predictions, or of two columns for "binary".
        from_logits : bool, default=False
            Whether ``y_proba`` holds logits; probabilities are computed from them without loss of
            precision.
        name : str, default=None
            The name of the classifier, for the title.
        ref_line : bool, default=True
            Whether to draw the diagonal, on which calibrated predictions lie.
        line_kw : dict, default=None
            Options of :meth:`matplotlib.axes.Axes.plot` for the curve.
        ax : matplotlib axes, default=None
            None makes a figure.
        plot : bool, default=True
            False computes only the numbers, without matplotlib.

        Returns
        -------
        display : CalibrationCurveDisplay
        """
        sample = read_sample(
            y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits, groups=groups
        )
        limits: dict[str, Any] = {"method": method, "confidence_level": confidence_level}
        curve = flexible_calibration_curve(sample, **limits)
        [problem], [sides] = sample.problems(), sides_of(sample)
        [label] = draw.problem_titles(sample)
        x = problem.features[:, 0]
        for axis in axes_of(x, scale):
            beyond = axis.scale == "linear" and curve.frequency.min() < axis.low
            if max(curve.prediction.max(), curve.frequency.max()) <= axis.high and not beyond:
                break
        ends = bins_of_axis(problem, axis)
        place = np.searchsorted(ends[1:-1], x)
        sums = np.bincount(place, minlength=len(ends) - 1), np.bincount(place, x, len(ends) - 1)
        _, gaps = wide_gaps((sums[1] / np.maximum(sums[0], 1))[sums[0] > 0], np.unique(x), axis)
        edges, histogram = histograms(problem, axis)
        display = cls(
            curve,
            histogram,
            edges,
            axis=axis,
            gaps=gaps,
            sides=sides,
            name=name,
            label=label,
        )
        return display.plot(ax=ax, ref_line=ref_line, **(line_kw or {})) if plot else display

    from_estimator = of_estimator(from_predictions)
    from_cv_results = of_cv_results(from_predictions)

    def _draw(self, axes, name, kwargs):
        [ax], curve = axes, self.curve
        others = _named_lines(ax)
        set_axes(ax, self.axis, AXIS_LABELS[curve.notion.of_largest])
        self.ref_lines_ = [] if others else [draw.diagonal(ax)]
        label = draw.as_label(name, 24) if name else f"curve by {curve.method}"
        label = f" {label}" if label.startswith("_") else label  # legends leave out "_…"
        look = {"color": draw.colour_of(len(others)), "linewidth": 1.5, "label": label}
        hidden = within(self.gaps, curve.prediction)
        seen: Any = {part: np.where(hidden, np.nan, getattr(curve, part)) for part in _DRAWN}
        drawn = replace(curve, **seen)
        [self.line_] = ax.plot(drawn.prediction, drawn.frequency, **draw.styled(kwargs, **look))
        self.bands_ = _draw_bands(self.line_, drawn, not others)
        counts = self.histogram_edges, self.histogram
        self.histogram_ = draw_histogram(ax, *counts, self.sides, self.line_.get_color())
        _explain(ax, draw.titled("" if others else name, self._heading(alone=not others)))

    def _heading(self, alone: bool) -> str:
        """What is predicted, how often it happened, and where the curve ends before the samples."""
        curve, sums = self.curve, self.histogram.sum(axis=0)
        n_events = f"{self.histogram[1].sum():,.1f}".removesuffix(".0")
        facts, end = f"{self.label or curve.notion}: n = {curve.n_samples:,}", curve.prediction[-1]
        if alone and self.histogram_edges[:-1][sums > 0].max() > end:
            return f"{facts}, few above {end:.2g}"
        return facts + f", {n_events} {draw.as_label(self.sides[1], 14)}" * alone


@dataclass(eq=False, repr=False)
class DecisionCurveDisplay(Display):
    """Net benefit by threshold beside that of treating everybody and nobody.

    Make it with :meth:`from_predictions` or :meth:`from_estimator`. Several classifiers stand on
    the same axes: pass ``ax=first.ax_`` to the second.

    Parameters
    ----------
    curve : DecisionCurve
        What is drawn; see :func:`skcal.metrics.decision_curve`.
    name : str, default=None
        The name of the classifier.
    label : str, default=None
        The predicted quantity, such as "P(ill)"; None: the kind of calibration.

    Attributes
    ----------
    ax_ : matplotlib axes
        Set by :meth:`plot`, as are the following.
    figure_ : matplotlib figure
    line_ : matplotlib line
    bands_ : list of matplotlib collections
        The pointwise and the simultaneous band.

    See Also
    --------
    skcal.metrics.decision_curve : the curve as data.
    CalibrationCurveDisplay : the frequency of the outcome by prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.displays import DecisionCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500) ** 2
    >>> y = rng.uniform(size=500) < p
    >>> display = DecisionCurveDisplay.from_predictions(y, p, plot=False)
    >>> len(display.curve.thresholds)
    100
    """

    curve: DecisionCurve
    _: KW_ONLY
    name: str | None = None
    label: str | None = None
    _size = (5.6, 4.8)

    def _facts(self):
        n_thresholds = draw.counted(len(self.curve.thresholds), "threshold")
        return [f"n = {self.curve.n_samples:,}", self.curve.notion, n_thresholds]

    @classmethod
    @validate_params(DRAWN, prefer_skip_nested_validation=False)
    def from_predictions(
        cls,
        y_true,
        y_proba=None,
        *,
        thresholds=None,
        notion="auto",
        confidence_level=0.95,
        sample_weight=None,
        groups=None,
        labels=None,
        pos_label=None,
        from_logits=False,
        name=None,
        ref_line=True,
        line_kw=None,
        ax=None,
        plot=True,
    ) -> Self:
        """Compute and plot the curve.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
            Left out beside a :class:`skcal.Sample`.
        thresholds : array-like of shape (n_thresholds,), default=None
            Thresholds in [0, 1), in increasing order; None: 0, 0.01, …, 0.99. They are drawn up to
            a quarter beyond the last at which the net benefit is above 0 with confidence, or the
            prevalence.
        notion : {"auto", "binary", "confidence"}, default="auto"
            "auto" is "binary" for one and two columns and "confidence" for more.
        confidence_level : float in (0, 1), default=0.95
            The confidence level of the limits.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other; None: all are independent.
        labels : array-like of shape (n_classes,), default=None
            The class of each column; for 1-D predictions (negative class, positive class).
        pos_label : label, default=None
            The positive class of 1-D predictions, or of two columns for "binary".
        from_logits : bool, default=False
            Whether ``y_proba`` holds logits; probabilities are computed from them without loss of
            precision.
        name : str, default=None
            The name of the classifier, for title and legend.
        ref_line : bool, default=True
            Whether to draw the net benefit of treating everybody and of treating nobody.
        line_kw : dict, default=None
            Options of :meth:`matplotlib.axes.Axes.plot` for the curve.
        ax : matplotlib axes, default=None
            None makes a figure.
        plot : bool, default=True
            False computes only the numbers, without matplotlib.

        Returns
        -------
        display : DecisionCurveDisplay
        """
        sample = read_sample(
            y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits, groups=groups
        )
        level = {"confidence_level": confidence_level}
        curve = decision_curve(sample, thresholds=thresholds, **level)
        [label] = draw.problem_titles(sample)
        display = cls(curve, name=name, label=label)
        return display.plot(ax=ax, ref_line=ref_line, **(line_kw or {})) if plot else display

    from_estimator = of_estimator(from_predictions)
    from_cv_results = of_cv_results(from_predictions)

    def _draw(self, axes, name, kwargs):
        [axis], curve = axes, self.curve
        others = [line for line in _named_lines(axis) if line.get_label() not in (_ALL, _NONE)]
        is_first, self.ref_lines_ = not others, []
        if is_first:
            none = axis.axhline(0, color="0.3", linewidth=1, label=_NONE)
            look = {"color": draw.GREY, "linewidth": 1.5, "label": _ALL}
            self.ref_lines_ = [none, *axis.plot(curve.thresholds, curve.treat_all, **look)]
        label = draw.as_label(name) if name else "classifier"
        look = {"color": draw.colour_of(len(others)), "linewidth": 1.5, "label": label}
        [self.line_] = axis.plot(curve.thresholds, curve.net_benefit, **draw.styled(kwargs, **look))
        self.bands_ = _draw_bands(self.line_, curve, is_first)
        self._set_limits(axis, is_first)
        axis.set(xlabel="threshold t", ylabel="net benefit")
        names = ", ".join([*(line.get_label() for line in others), *([label] if name else [])])
        facts = f"{self.label or curve.notion}: n = {curve.n_samples:,}"
        _explain(axis, f"{names}\n{facts}" if names else facts)

    def _set_limits(self, axis, is_first):
        """Up to a quarter beyond the last threshold that tells; down to a little below 0.

        At that threshold the curve is surely above 0, or so is that of treating everybody.
        """
        curve = self.curve
        telling = np.flatnonzero((curve.low > 0) | (curve.treat_all > 0))
        right = 1.25 * curve.thresholds[telling.max(initial=0)]
        last = min(np.searchsorted(curve.thresholds, right), len(curve.thresholds) - 1)
        left, right = curve.thresholds[0], curve.thresholds[last]
        top = max(curve.band_high[: last + 1].max(), curve.treat_all[0], 1e-3)
        if not is_first:
            left, right = min(left, axis.get_xlim()[0]), max(right, axis.get_xlim()[1])
            top = max(top, axis.get_ylim()[1] / 1.05)
        if right > left:
            axis.set_xlim(left, right)
        axis.set_ylim(-0.15 * top, 1.05 * top)


@dataclass(eq=False, repr=False)
class MurphyDisplay(Display):
    """Murphy diagram: elementary score by threshold, of one classifier or two and their difference.

    Make it with :meth:`from_predictions` or :meth:`from_estimator`.

    Parameters
    ----------
    diagram : MurphyDiagram
        What is drawn; see :func:`skcal.metrics.murphy_diagram`.
    name, compare_name : str, default=None
        The names of the classifiers.
    label : str, default=None
        The predicted quantity, such as "P(ill)"; None: the kind of calibration.

    Attributes
    ----------
    ax_ : matplotlib axes or array of two
        Set by :meth:`plot`, as are the following. The second shows the difference.
    figure_ : matplotlib figure
    lines_ : list of matplotlib lines
    band_ : matplotlib collection
        The pointwise band of the difference, or of the score of a single classifier.

    See Also
    --------
    skcal.metrics.murphy_diagram : the scores as data.
    DecisionCurveDisplay : the same by net benefit.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.displays import MurphyDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> y = rng.uniform(size=500) < p
    >>> display = MurphyDisplay.from_predictions(y, p**2, compare=p, plot=False)
    >>> bool(display.diagram.difference.mean() > 0)  # the second is better
    True
    """

    diagram: MurphyDiagram
    _: KW_ONLY
    name: str | None = None
    compare_name: str | None = None
    label: str | None = None

    def _facts(self):
        n_curves = "1 curve" if self.diagram.compared is None else "2 curves"
        n_thresholds = draw.counted(len(self.diagram.thresholds), "threshold")
        return [f"n = {self.diagram.n_samples:,}", self.diagram.notion, n_curves, n_thresholds]

    @classmethod
    @validate_params(DRAWN, prefer_skip_nested_validation=False)
    def from_predictions(
        cls,
        y_true,
        y_proba=None,
        *,
        compare=None,
        thresholds=None,
        notion="auto",
        confidence_level=0.95,
        sample_weight=None,
        groups=None,
        labels=None,
        pos_label=None,
        from_logits=False,
        name=None,
        compare_name=None,
        ref_line=True,
        line_kw=None,
        ax=None,
        plot=True,
    ) -> Self:
        """Compute and plot the diagram.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
            Left out beside a :class:`skcal.Sample`.
        compare : array-like of the shape of ``y_proba``, default=None
            Predictions of a second classifier for the same samples.
        thresholds : array-like of shape (n_thresholds,), default=None
            Thresholds in [0, 1], in increasing order. None: all predictions, of more than 500
            samples 0, 0.002, …, 1.
        notion : {"auto", "binary", "confidence"}, default="auto"
            "auto" is "binary" for one and two columns and "confidence" for more.
        confidence_level : float in (0, 1), default=0.95
            The confidence level of the limits.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other; None: all are independent.
        labels : array-like of shape (n_classes,), default=None
            The class of each column; for 1-D predictions (negative class, positive class).
        pos_label : label, default=None
            The positive class of 1-D predictions, or of two columns for "binary".
        from_logits : bool, default=False
            Whether ``y_proba`` holds logits; probabilities are computed from them without loss of
            precision.
        name, compare_name : str, default=None
            The names of the classifiers, for title and legend.
        ref_line : bool, default=True
            Whether to draw the line at 0 of the difference.
        line_kw : dict, default=None
            Options of :meth:`matplotlib.axes.Axes.plot` for the curve.
        ax : matplotlib axes or array of two, default=None
            Two where classifiers are compared. None makes a figure.
        plot : bool, default=True
            False computes only the numbers, without matplotlib.

        Returns
        -------
        display : MurphyDisplay
        """
        n_labels = len(y_true) if isinstance(y_true, Sample) else np.size(y_true)
        if thresholds is None and 2 * n_labels > _MANY_POINTS:
            thresholds = _CURVE_GRID
        options = {
            "notion": notion,
            "sample_weight": sample_weight,
            "labels": labels,
            "pos_label": pos_label,
            "from_logits": from_logits,
        }
        limits = {"confidence_level": confidence_level, "groups": groups}
        asked = {"compare": compare, "thresholds": thresholds}
        diagram = murphy_diagram(y_true, y_proba, **asked, **limits, **options)
        [label] = draw.problem_titles(read_sample(y_true, y_proba, **options))
        display = cls(diagram, name=name, compare_name=compare_name, label=label)
        return display.plot(ax=ax, ref_line=ref_line, **(line_kw or {})) if plot else display

    from_estimator = of_estimator(from_predictions)
    from_cv_results = of_cv_results(from_predictions)

    def _layout(self):
        return 1 if self.diagram.compared is None else 2, (4.3, 4.0)

    def _draw(self, axes, name, kwargs):
        diagram, second_name = self.diagram, self.compare_name or "second classifier"
        names = draw.as_labels([name or "classifier", second_name])
        look = draw.styled(kwargs, color=draw.BLUE, linewidth=1.5, label=names[0])
        self.lines_ = axes[0].plot(diagram.thresholds, diagram.score, **look)
        if diagram.compared is not None:
            second = {"color": draw.ORANGE, "linewidth": 1.5, "label": names[1]}
            self.lines_ += axes[0].plot(diagram.thresholds, diagram.compared, **second)
            self._draw_difference(axes[1], kwargs, names[1])
        label = f"{percent(diagram.confidence_level)} pointwise band"
        band = diagram.thresholds, diagram.low, diagram.high
        self.band_ = draw.band(axes[-1], *band, self.lines_[-1].get_color(), 0.25, label)
        for axis in axes:
            axis.set(xlim=(0, 1), xlabel="threshold t")
        axes[0].set(ylabel=draw.side_label(axes[0], "mean elementary score"), ylim=(0, None))
        facts = f"{self.label or diagram.notion}: n = {diagram.n_samples:,}"
        if diagram.compared is None:
            _explain(axes[0], draw.titled(name, facts))
            return
        for axis, separator in zip(axes, (", ", " − "), strict=True):
            _explain(axis, f"{separator.join(names)}\n{facts}")

    def _draw_difference(self, axis, kwargs, second_name):
        self.ref_lines_ = [axis.axhline(0, color=draw.GREY, linewidth=1, linestyle=":")]
        label = f"above 0: {second_name} is better"
        look = draw.styled(kwargs, color=draw.ink(axis), linewidth=1.2, label=label)
        self.lines_ += axis.plot(self.diagram.thresholds, self.diagram.difference, **look)
        axis.set_ylabel(draw.side_label(axis, "difference of the scores"))


def _explain(ax, title) -> None:
    draw.set_title(ax, title)
    draw.legend_below(ax)


def _named_lines(axis) -> list:
    """The curves of displays on the axes, which have a name in the legend."""
    return [line for line in axis.get_lines() if not str(line.get_label()).startswith("_")]


def _draw_bands(line, curve, is_first: bool) -> list:
    """The pointwise limits of a drawn curve and its simultaneous band, which is paler.

    The legend has the bands of the first curve; those of others have their colours.
    """
    x, colour, level = line.get_xdata(), line.get_color(), percent(curve.confidence_level)
    labels = f"{level} pointwise band", f"{level} simultaneous band"
    pointwise, simultaneous = labels if is_first else (None, None)
    return [
        draw.band(line.axes, x, curve.low, curve.high, colour, 0.3, pointwise),
        draw.band(line.axes, x, curve.band_low, curve.band_high, colour, 0.15, simultaneous),
    ]
