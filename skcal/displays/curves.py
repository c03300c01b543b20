"""Curves of single probabilities: calibration, net benefit and elementary scores."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from skcal._show import percent
from skcal.displays.base import (
    BLUE,
    COLOURS,
    GREY,
    ORANGE,
    Display,
    FromEstimator,
    as_label,
    axis_limit,
    counted,
    draw_band,
    draw_diagonal,
    legend_below,
    limit_axes,
    problem_titles,
    styled,
    titled,
)
from skcal.metrics.curve import CalibrationCurve, flexible_calibration_curve
from skcal.metrics.thresholds import DecisionCurve, MurphyDiagram, decision_curve, murphy_diagram
from skcal.sample import read_sample

_BINS = 50  # of the histogram below a calibration curve
_ALL, _NONE = "treat all", "treat none"
_GRID = np.linspace(0, 1, 501)
_MANY = 1000  # points of exact Murphy diagrams


@dataclass(eq=False, repr=False)
class CalibrationCurveDisplay(FromEstimator, Display):
    """Smooth calibration curve with its pointwise and simultaneous limits.

    Make it with :meth:`from_predictions` or :meth:`from_estimator`.

    Parameters
    ----------
    curve : CalibrationCurve
    histogram : ndarray of shape (50,)
        The number of predictions in 50 equal intervals of [0, limit].
    limit : float, default=1.0
        Where both axes end.
    name : str, default=None
        The name of the classifier.
    label : str, default=None
        What is predicted, such as "P(ill)"; None is the notion.

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
    _: KW_ONLY
    limit: float = 1.0
    name: str | None = None
    label: str | None = None

    def _repr_html_(self):
        return self.curve._repr_html_()

    def _facts(self):
        return [f"n = {self.curve.n_samples:,}", self.curve.notion, f"curve by {self.curve.method}"]

    @classmethod
    def from_predictions(
        cls,
        y_true,
        y_proba,
        *,
        method="splines",
        notion="auto",
        confidence_level=0.95,
        sample_weight=None,
        groups=None,
        labels=None,
        pos_label=None,
        name=None,
        ax=None,
        plot=True,
    ):
        """Compute and plot the curve.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels; both outcomes must occur.
        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        method : {"splines", "loess", "isotonic"}, default="splines"
            The smoother, see :func:`skcal.metrics.flexible_calibration_curve`.
        notion : {"auto", "binary", "confidence"}, default="auto"
            "auto" is "binary" for one and two columns and "confidence" for more.
        confidence_level : float in (0, 1), default=0.95
        sample_weight : array-like of shape (n_samples,), default=None
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other; None: all are independent.
        labels : array-like of shape (n_classes,), default=None
            The class of each column; for 1-D predictions (negative class, positive class).
        pos_label : label, default=None
            The positive class of 1-D predictions, or of two columns for "binary".
        name : str, default=None
            The name of the classifier, for the title.
        ax : matplotlib axes, default=None
            None makes a figure.
        plot : bool, default=True
            False computes the numbers alone, without matplotlib.

        Returns
        -------
        display : CalibrationCurveDisplay
        """
        options = {
            "notion": notion,
            "sample_weight": sample_weight,
            "labels": labels,
            "pos_label": pos_label,
        }
        limits = {"confidence_level": confidence_level, "groups": groups}
        curve = flexible_calibration_curve(y_true, y_proba, method=method, **limits, **options)
        sample = read_sample(y_true, y_proba, **options)
        [problem], [label] = sample.problems(), problem_titles(sample)
        predictions = problem.features[:, 0]
        limit = axis_limit(predictions, curve.prediction, curve.frequency)
        histogram, _ = np.histogram(predictions, bins=_BINS, range=(0, limit))
        display = cls(curve, histogram, limit=limit, name=name, label=label)
        return display.plot(ax=ax) if plot else display

    def _layout(self):
        return 1, (4.6, 5.6)

    def _draw(self, axes, name, kwargs):
        [axis], curve = axes, self.curve
        others = _named_lines(axis)
        colour = COLOURS[len(others) % len(COLOURS)]
        if not others:
            draw_diagonal(axis)
        label = as_label(name, 24) if name else f"curve by {curve.method}"
        label = f" {label}" if label.startswith("_") else label  # legends leave out "_…"
        look = styled(kwargs, color=colour, linewidth=1.5, label=label)
        [self.line_] = axis.plot(curve.prediction, curve.frequency, **look)
        level = percent(curve.confidence_level)
        labels = f"{level} at each point", f"{level} of the whole curve"
        self.bands_ = _draw_bands(self.line_, curve, (None, None) if others else labels)
        self._draw_histogram(axis, colour if others else GREY)
        limit_axes(axis, self.limit)
        names = "" if others else name
        facts = f"{self.label or curve.notion}: n = {curve.n_samples:,}"
        _explain(axis, titled(names, facts))

    def _draw_histogram(self, axis, colour):
        """Relative counts along the lower edge; of a further curve their outlines."""
        edges = np.linspace(0, self.limit, _BINS + 1)
        heights = 0.08 * self.limit * self.histogram / max(self.histogram.max(), 1)
        look = {"align": "edge", "color": GREY, "alpha": 0.6}
        if colour != GREY:
            look = {"align": "edge", "fill": False, "edgecolor": colour, "linewidth": 0.5}
        axis.bar(edges[:-1], heights, np.diff(edges), bottom=-0.02 * self.limit, **look)


@dataclass(eq=False, repr=False)
class DecisionCurveDisplay(FromEstimator, Display):
    """Net benefit by threshold beside that of treating everybody and nobody.

    Make it with :meth:`from_predictions` or :meth:`from_estimator`. Several classifiers stand on
    the same axes: pass ``ax=first.ax_`` to the second.

    Parameters
    ----------
    curve : DecisionCurve
    name : str, default=None
        The name of the classifier.
    label : str, default=None
        What is predicted, such as "P(ill)"; None is the notion.

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

    def _facts(self):
        n_thresholds = counted(len(self.curve.thresholds), "threshold")
        return [f"n = {self.curve.n_samples:,}", self.curve.notion, n_thresholds]

    @classmethod
    def from_predictions(
        cls,
        y_true,
        y_proba,
        *,
        thresholds=None,
        notion="auto",
        confidence_level=0.95,
        sample_weight=None,
        groups=None,
        labels=None,
        pos_label=None,
        name=None,
        ax=None,
        plot=True,
    ):
        """Compute and plot the curve.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        thresholds : array-like of shape (n_thresholds,), default=None
            Thresholds in [0, 1), in increasing order; None: 0, 0.01, …, 0.99. They are drawn up to
            a quarter beyond the last at which the net benefit is above 0 with confidence, or the
            prevalence.
        notion : {"auto", "binary", "confidence"}, default="auto"
            "auto" is "binary" for one and two columns and "confidence" for more.
        confidence_level : float in (0, 1), default=0.95
        sample_weight : array-like of shape (n_samples,), default=None
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other; None: all are independent.
        labels : array-like of shape (n_classes,), default=None
            The class of each column; for 1-D predictions (negative class, positive class).
        pos_label : label, default=None
            The positive class of 1-D predictions, or of two columns for "binary".
        name : str, default=None
            The name of the classifier, for title and legend.
        ax : matplotlib axes, default=None
            None makes a figure.
        plot : bool, default=True
            False computes the numbers alone, without matplotlib.

        Returns
        -------
        display : DecisionCurveDisplay
        """
        options = {
            "notion": notion,
            "sample_weight": sample_weight,
            "labels": labels,
            "pos_label": pos_label,
        }
        limits = {"confidence_level": confidence_level, "groups": groups}
        curve = decision_curve(y_true, y_proba, thresholds=thresholds, **limits, **options)
        [label] = problem_titles(read_sample(y_true, y_proba, **options))
        display = cls(curve, name=name, label=label)
        return display.plot(ax=ax) if plot else display

    def _layout(self):
        return 1, (5.6, 4.8)

    def _draw(self, axes, name, kwargs):
        [axis], curve = axes, self.curve
        others = [line for line in axis.get_lines() if line.get_label() not in (_ALL, _NONE)]
        is_first = len(others) == len(axis.get_lines())
        if is_first:
            axis.axhline(0, color="0.3", linewidth=1, label=_NONE)
            axis.plot(curve.thresholds, curve.treat_all, color=GREY, linewidth=1.5, label=_ALL)
        label = as_label(name) if name else "classifier"
        look = styled(kwargs, color=COLOURS[len(others) % len(COLOURS)], linewidth=1.5, label=label)
        [self.line_] = axis.plot(curve.thresholds, curve.net_benefit, **look)
        # The legend has the bands of the first curve; those of others have their colours.
        level = percent(curve.confidence_level)
        labels = f"{level} at each threshold", f"{level} at all thresholds"
        self.bands_ = _draw_bands(self.line_, curve, labels if is_first else (None, None))
        self._set_limits(axis, is_first)
        axis.set(xlabel="threshold t", ylabel="net benefit")
        names = ", ".join([*(line.get_label() for line in others), *([label] if name else [])])
        facts = f"{self.label or curve.notion}: n = {curve.n_samples:,}"
        _explain(axis, f"{names}\n{facts}" if names else facts, ncols=2)

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
class MurphyDisplay(FromEstimator, Display):
    """Mean elementary score by threshold; of two classifiers also their difference.

    Make it with :meth:`from_predictions` or :meth:`from_estimator`.

    Parameters
    ----------
    diagram : MurphyDiagram
    name, compare_name : str, default=None
        The names of the classifiers.
    label : str, default=None
        What is predicted, such as "P(ill)"; None is the notion.

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
        n_thresholds = counted(len(self.diagram.thresholds), "threshold")
        return [f"n = {self.diagram.n_samples:,}", self.diagram.notion, n_curves, n_thresholds]

    @classmethod
    def from_predictions(
        cls,
        y_true,
        y_proba,
        *,
        compare=None,
        thresholds=None,
        notion="auto",
        confidence_level=0.95,
        sample_weight=None,
        groups=None,
        labels=None,
        pos_label=None,
        name=None,
        compare_name=None,
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
        compare : array-like of the shape of ``y_proba``, default=None
            Predictions of a second classifier for the same samples.
        thresholds : array-like of shape (n_thresholds,), default=None
            Thresholds in [0, 1], in increasing order. None: all predictions, of more than 500
            samples 0, 0.002, …, 1.
        notion : {"auto", "binary", "confidence"}, default="auto"
            "auto" is "binary" for one and two columns and "confidence" for more.
        confidence_level : float in (0, 1), default=0.95
        sample_weight : array-like of shape (n_samples,), default=None
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other; None: all are independent.
        labels : array-like of shape (n_classes,), default=None
            The class of each column; for 1-D predictions (negative class, positive class).
        pos_label : label, default=None
            The positive class of 1-D predictions, or of two columns for "binary".
        name, compare_name : str, default=None
            The names of the classifiers, for title and legend.
        ax : matplotlib axes or array of two, default=None
            Two where classifiers are compared. None makes a figure.
        plot : bool, default=True
            False computes the numbers alone, without matplotlib.

        Returns
        -------
        display : MurphyDisplay
        """
        if thresholds is None and 2 * np.size(y_true) > _MANY:
            thresholds = _GRID
        options = {
            "notion": notion,
            "sample_weight": sample_weight,
            "labels": labels,
            "pos_label": pos_label,
        }
        limits = {"confidence_level": confidence_level, "groups": groups}
        asked = {"compare": compare, "thresholds": thresholds}
        diagram = murphy_diagram(y_true, y_proba, **asked, **limits, **options)
        [label] = problem_titles(read_sample(y_true, y_proba, **options))
        display = cls(diagram, name=name, compare_name=compare_name, label=label)
        return display.plot(ax=ax) if plot else display

    def _layout(self):
        return 1 if self.diagram.compared is None else 2, (4.8, 4.4)

    def _draw(self, axes, name, kwargs):
        diagram = self.diagram
        names = [as_label(name or "classifier"), as_label(self.compare_name or "second classifier")]
        look = styled(kwargs, color=BLUE, linewidth=1.5, label=names[0])
        self.lines_ = axes[0].plot(diagram.thresholds, diagram.score, **look)
        if diagram.compared is None:
            self._draw_band(axes[0])
        else:
            second = {"color": ORANGE, "linewidth": 1.5, "label": names[1]}
            self.lines_ += axes[0].plot(diagram.thresholds, diagram.compared, **second)
            self._draw_difference(axes[1], kwargs, names[1])
        for axis in axes:
            axis.set(xlim=(0, 1), xlabel="threshold t")
        axes[0].set(ylabel="mean elementary score", ylim=(0, None))
        facts = f"{self.label or diagram.notion}: n = {diagram.n_samples:,}"
        if diagram.compared is None:
            _explain(axes[0], titled(name, facts))
            return
        for axis, separator in zip(axes, (", ", " − "), strict=True):
            _explain(axis, f"{separator.join(names)}\n{facts}")

    def _draw_difference(self, axis, kwargs, second_name):
        axis.axhline(0, color=GREY, linewidth=1, linestyle=":")
        label = f"above 0: {second_name} is better"
        look = styled(kwargs, color="black", linewidth=1.2, label=label)
        self.lines_ += axis.plot(self.diagram.thresholds, self.diagram.difference, **look)
        self._draw_band(axis)
        axis.set_ylabel("difference of the scores")

    def _draw_band(self, axis):
        diagram, colour = self.diagram, self.lines_[-1].get_color()
        label = f"{percent(diagram.confidence_level)} at each threshold"
        self.band_ = draw_band(
            axis, diagram.thresholds, diagram.low, diagram.high, colour, 0.25, label
        )


def _explain(axis, title, ncols=1) -> None:
    axis.set_title(title, fontsize="small")
    legend_below(axis, ncols=ncols)


def _named_lines(axis) -> list:
    """The curves of displays on the axes, which have a name in the legend."""
    return [line for line in axis.get_lines() if not str(line.get_label()).startswith("_")]


def _draw_bands(line, curve, labels) -> list:
    """The pointwise limits of a drawn curve and its simultaneous band, which is paler."""
    limits = (curve.low, curve.high, 0.3), (curve.band_low, curve.band_high, 0.15)
    return [
        draw_band(line.axes, line.get_xdata(), low, high, line.get_color(), alpha, label)
        for (low, high, alpha), label in zip(limits, labels, strict=True)
    ]
