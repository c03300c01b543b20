"""Murphy diagrams: elementary scores by threshold."""

from __future__ import annotations

import numpy as np

from skcal._show import percent
from skcal.displays.base import (
    BLUE,
    GREY,
    ORANGE,
    ClassifierDisplay,
    as_label,
    keep_axes,
    legend_below,
    make_axes,
    styled,
)
from skcal.metrics.thresholds import MurphyDiagram, murphy_diagram

_GRID = np.linspace(0, 1, 501)
_MANY = 1000  # points of exact curves


class MurphyDisplay(ClassifierDisplay):
    """Mean elementary score by threshold; of two classifiers also their difference.

    Make it with :meth:`from_predictions` or :meth:`from_estimator`.

    Parameters
    ----------
    diagram : MurphyDiagram
    name, compare_name : str, default=None
        The names of the classifiers.

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

    def __init__(
        self, diagram: MurphyDiagram, *, name: str | None = None, compare_name: str | None = None
    ):
        self.diagram = diagram
        self.name = name
        self.compare_name = compare_name

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
        y_true : array-like of shape (n_samples,)
            Labels.
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
        diagram = murphy_diagram(
            y_true,
            y_proba,
            compare=compare,
            thresholds=thresholds,
            notion=notion,
            confidence_level=confidence_level,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
        )
        display = cls(diagram, name=name, compare_name=compare_name)
        return display.plot(ax=ax) if plot else display

    def plot(self, ax=None, *, name=None, **kwargs):
        """Draw the scores, and the difference of two.

        Parameters
        ----------
        ax : matplotlib axes or array of two, default=None
            None makes a figure.
        name : str, default=None
            The name of the classifier; None takes that of the display.
        **kwargs : dict
            Options of :meth:`matplotlib.axes.Axes.plot` for the main curve of each panel.

        Returns
        -------
        display : MurphyDisplay
        """
        diagram, name = self.diagram, self.name if name is None else name
        names = [as_label(name or "classifier"), as_label(self.compare_name or "second classifier")]
        axes = make_axes(ax, 1 if diagram.compared is None else 2, (4.8, 4.4))
        look = styled(kwargs, color=BLUE, linewidth=1.5, label=names[0])
        self.lines_ = axes[0].plot(diagram.thresholds, diagram.score, **look)
        shown = names[:1] if name else []
        if diagram.compared is None:
            self._draw_band(axes[0])
        else:
            more = {"color": ORANGE, "linewidth": 1.5, "label": names[1]}
            self.lines_ += axes[0].plot(diagram.thresholds, diagram.compared, **more)
            self._draw_difference(axes[1], kwargs, names)
            shown = names
        axes[0].set(ylabel="mean elementary score", ylim=(0, None))
        for axis in axes:
            axis.set(xlim=(0, 1), xlabel="threshold t")
            facts = f"{diagram.notion}, n = {diagram.n_samples:,}"
            title = " − ".join(shown) if axis is not axes[0] else ", ".join(shown)
            axis.set_title(f"{title}\n{facts}" if title else facts, fontsize="small")
            legend_below(axis)
        keep_axes(self, axes)
        return self

    def _draw_difference(self, axis, kwargs, names):
        diagram = self.diagram
        axis.axhline(0, color=GREY, linewidth=1, linestyle=":")
        look = styled(kwargs, color="black", linewidth=1.2, label=f"above 0: {names[1]} is better")
        self.lines_ += axis.plot(diagram.thresholds, diagram.difference, **look)
        self._draw_band(axis)
        axis.set_ylabel("difference of the scores")

    def _draw_band(self, axis):
        diagram = self.diagram
        self.band_ = axis.fill_between(
            diagram.thresholds,
            diagram.low,
            diagram.high,
            color=axis.get_lines()[-1].get_color(),
            alpha=0.25,
            linewidth=0,
            label=f"{percent(diagram.confidence_level)} at each threshold",
        )
