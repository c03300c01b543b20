"""Decision curves: net benefit by threshold."""

from __future__ import annotations

import numpy as np

from skcal._show import percent
from skcal.displays.base import (
    COLOURS,
    GREY,
    ClassifierDisplay,
    as_label,
    draw_bands,
    keep_axes,
    legend_below,
    make_axes,
    styled,
)
from skcal.metrics.thresholds import DecisionCurve, decision_curve

_ALL, _NONE = "treat all", "treat none"


class DecisionCurveDisplay(ClassifierDisplay):
    """Net benefit by threshold beside that of treating everybody and nobody.

    Make it with :meth:`from_predictions` or :meth:`from_estimator`. Several classifiers stand on
    the same axes: pass ``ax=first.ax_`` to the second.

    Parameters
    ----------
    curve : DecisionCurve
    name : str, default=None
        The name of the classifier.

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

    def __init__(self, curve: DecisionCurve, *, name: str | None = None):
        self.curve = curve
        self.name = name

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
            Labels.
        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        thresholds : array-like of shape (n_thresholds,), default=None
            Thresholds in [0, 1), in increasing order; None: 0, 0.01, …, 0.99, drawn up to the
            largest prediction.
        notion : {"auto", "binary", "confidence"}, default="auto"
            "auto" is "binary" for one and two columns and "confidence" for more.
        confidence_level : float in (0, 1), default=0.95
        sample_weight : array-like of shape (n_samples,), default=None
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
        curve = decision_curve(
            y_true,
            y_proba,
            thresholds=thresholds,
            notion=notion,
            confidence_level=confidence_level,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
        )
        display = cls(curve, name=name)
        return display.plot(ax=ax) if plot else display

    def plot(self, ax=None, *, name=None, **kwargs):
        """Draw the curve, its bands, and the net benefit of treating everybody and nobody.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            None makes a figure; those of another decision curve gain a second.
        name : str, default=None
            The name of the classifier; None takes that of the display.
        **kwargs : dict
            Options of :meth:`matplotlib.axes.Axes.plot` for the curve.

        Returns
        -------
        display : DecisionCurveDisplay
        """
        [axis] = make_axes(ax, 1, (5.6, 4.8))
        curve, name = self.curve, self.name if name is None else name
        others = [line for line in axis.get_lines() if line.get_label() not in (_ALL, _NONE)]
        first = len(others) == len(axis.get_lines())
        if first:
            axis.axhline(0, color="0.3", linewidth=1, label=_NONE)
            axis.plot(curve.thresholds, curve.treat_all, color=GREY, linewidth=1.5, label=_ALL)
        label = as_label(name) if name else "classifier"
        look = styled(kwargs, color=COLOURS[len(others) % len(COLOURS)], linewidth=1.5, label=label)
        [self.line_] = axis.plot(curve.thresholds, curve.net_benefit, **look)
        self._draw_bands(axis, first)
        self._set_limits(axis, first)
        axis.set(xlabel="threshold t", ylabel="net benefit")
        title = ", ".join([*(line.get_label() for line in others), *([label] if name else [])])
        facts = f"{curve.notion}, n = {curve.n_samples:,}"
        axis.set_title(f"{title}\n{facts}" if title else facts, fontsize="small")
        legend_below(axis, ncols=2)
        keep_axes(self, [axis])
        return self

    def _draw_bands(self, axis, first):
        """The legend has the bands of the first curve; those of others have their colours."""
        curve, level = self.curve, percent(self.curve.confidence_level)
        said = f"{level} at each threshold", f"{level} at all thresholds"
        labels = said if first else (None, None)
        self.bands_ = draw_bands(axis, curve.thresholds, curve, self.line_.get_color(), labels)

    def _set_limits(self, axis, first):
        """Up to the last threshold at which somebody is treated; down to a little below 0."""
        curve = self.curve
        treated = np.flatnonzero(curve.net_benefit != 0)
        last = min(treated.max(initial=0) + 1, len(curve.thresholds) - 1)
        left, right = curve.thresholds[0], curve.thresholds[last]
        shown = slice(None, last + 1)
        top = max(curve.band_high[shown].max(), curve.treat_all[0], 1e-3)
        if not first:
            left, right = min(left, axis.get_xlim()[0]), max(right, axis.get_xlim()[1])
            top = max(top, axis.get_ylim()[1] / 1.05)
        if right > left:
            axis.set_xlim(left, right)
        axis.set_ylim(-0.15 * top, 1.05 * top)
