"""Smooth calibration curves with bands of the curve."""

from __future__ import annotations

import numpy as np

from skcal._show import percent
from skcal.displays.base import (
    BLUE,
    GREY,
    ClassifierDisplay,
    as_label,
    axis_limit,
    draw_bands,
    keep_axes,
    legend_below,
    limit_axes,
    make_axes,
    styled,
)
from skcal.metrics.curve import CalibrationCurve, flexible_calibration_curve
from skcal.sample import read_sample

_BINS = 50


class CalibrationCurveDisplay(ClassifierDisplay):
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

    def __init__(
        self,
        curve: CalibrationCurve,
        histogram: np.ndarray,
        *,
        limit: float = 1.0,
        name: str | None = None,
    ):
        self.curve = curve
        self.histogram = histogram
        self.limit = limit
        self.name = name

    def _repr_html_(self):
        return self.curve._repr_html_()

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
        curve = flexible_calibration_curve(
            y_true, y_proba, method=method, confidence_level=confidence_level, **options
        )
        [problem] = read_sample(y_true, y_proba, **options).problems()
        predictions = problem.features[:, 0]
        limit = axis_limit(predictions, curve.prediction, curve.frequency)
        histogram, _ = np.histogram(predictions, bins=_BINS, range=(0, limit))
        display = cls(curve, histogram, limit=limit, name=name)
        return display.plot(ax=ax) if plot else display

    def plot(self, ax=None, *, name=None, **kwargs):
        """Draw the curve, its bands and the histogram of the predictions.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            None makes a figure.
        name : str, default=None
            The name of the classifier; None takes that of the display.
        **kwargs : dict
            Options of :meth:`matplotlib.axes.Axes.plot` for the curve.

        Returns
        -------
        display : CalibrationCurveDisplay
        """
        [axis] = make_axes(ax, 1, (4.6, 5.6))
        curve, name = self.curve, self.name if name is None else name
        level = percent(curve.confidence_level)
        axis.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":")
        look = styled(kwargs, color=BLUE, linewidth=1.5, label=f"curve by {curve.method}")
        [self.line_] = axis.plot(curve.prediction, curve.frequency, **look)
        said = f"{level} at each point", f"{level} of the whole curve"
        self.bands_ = draw_bands(axis, curve.prediction, curve, self.line_.get_color(), said)
        self._draw_histogram(axis)
        limit_axes(axis, self.limit)
        title = f"{curve.notion}\nn = {curve.n_samples:,}"
        axis.set_title(f"{as_label(name)}\n{title}" if name else title, fontsize="small")
        legend_below(axis)
        keep_axes(self, [axis])
        return self

    def _draw_histogram(self, axis):
        """Relative counts along the lower edge."""
        edges = np.linspace(0, self.limit, _BINS + 1)
        heights = 0.08 * self.limit * self.histogram / max(self.histogram.max(), 1)
        axis.bar(
            edges[:-1],
            heights,
            np.diff(edges),
            bottom=-0.02 * self.limit,
            align="edge",
            color=GREY,
            alpha=0.6,
        )
