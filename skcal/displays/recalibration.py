"""Reliability before and after recalibration, and the map of a single probability."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from skcal._validation import plain_array
from skcal.displays.base import (
    BLUE,
    Display,
    as_label,
    draw_diagonal,
    limit_axes,
    with_error,
)
from skcal.displays.reliability import ReliabilityDisplay
from skcal.sample import read_sample

_MOST = 2000  # points of a drawn map


@dataclass(eq=False, repr=False)
class RecalibrationDisplay(Display):
    """Reliability diagrams before and after recalibration; of one probability the map beside them.

    Make it with :meth:`from_predictions`, from samples that no fit has seen.

    Parameters
    ----------
    before, after : ReliabilityDisplay
        Diagrams of one panel each.
    map_x, map_y : ndarray of shape (n_points,), default=None
        Of a binary notion: predictions in ascending order and what became of them.
    name : str, default=None
        The name of the classifier.

    Attributes
    ----------
    ax_ : ndarray of matplotlib axes of shape (2,), or (3,) with the map
        Set by :meth:`plot`, as are the following.
    figure_ : matplotlib figure
    line_ : matplotlib line or None
        The map.

    See Also
    --------
    skcal.displays.ReliabilityDisplay : one diagram.

    Notes
    -----
    The map is steeper than the diagonal where probabilities become more extreme. Where it is drawn
    as a cloud, what becomes of a prediction depends on more than itself, as when several folds have
    maps of their own.

    Examples
    --------
    >>> from skcal import Recalibrator
    >>> from skcal.datasets import make_tempered
    >>> from skcal.displays import RecalibrationDisplay
    >>> data = make_tempered(2000, n_classes=2, temperature=2.0, n_truth_draws=0, random_state=0)
    >>> P, y = data.proba, data.labels
    >>> after = Recalibrator(random_state=0).fit(P[:1000], y[:1000]).predict_proba(P[1000:])
    >>> display = RecalibrationDisplay.from_predictions(
    ...     y[1000:], P[1000:], after, random_state=0, plot=False
    ... )
    >>> display
    RecalibrationDisplay(n = 1,000, binary, ECE without bins 0.0515 → 0.00386)
    >>> len(display.before.panels[0].ranges) > 0, len(display.after.panels[0].ranges)
    (True, 0)
    """

    before: ReliabilityDisplay
    after: ReliabilityDisplay
    _: KW_ONLY
    map_x: np.ndarray | None = None
    map_y: np.ndarray | None = None
    name: str | None = None

    def _facts(self):
        [before], [after] = self.before.panels, self.after.panels
        facts = [panel.without_bins or {"estimate": None} for panel in (before, after)]
        known = all(fact["estimate"] is not None for fact in facts)
        errors = " → ".join(with_error(fact["estimate"], None) for fact in facts if known)
        return [
            f"n = {before.n_samples:,}",
            self.before.notion,
            f"ECE without bins {errors}" if known else "",
        ]

    def _repr_html_(self):
        return self.before._repr_html_() + self.after._repr_html_()

    @property
    def panels(self) -> list:
        """Both diagrams, and the map where there is one."""
        both = [*self.before.panels, *self.after.panels]
        return both if self.map_x is None else [*both, (self.map_x, self.map_y)]

    @classmethod
    def from_predictions(
        cls,
        y_true,
        y_before,
        y_after,
        *,
        notion="auto",
        sample_weight=None,
        labels=None,
        pos_label=None,
        name=None,
        ax=None,
        plot=True,
        **options,
    ):
        """Compute and plot the diagrams.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        y_before, y_after : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities before and after recalibration.
        notion : {"auto", "binary", "confidence"}, default="auto"
            "auto" is "binary" for one and two columns and "confidence" for more.
        sample_weight : array-like of shape (n_samples,), default=None
        labels : array-like of shape (n_classes,), default=None
            The class of each column; for 1-D predictions (negative class, positive class).
        pos_label : label, default=None
            The positive class of a binary notion.
        name : str, default=None
            The name of the classifier, for the titles.
        ax : array of matplotlib axes, default=None
            Two, or three with the map; None makes a figure.
        plot : bool, default=True
            False computes the numbers alone, without matplotlib.
        **options
            Further options of :meth:`ReliabilityDisplay.from_predictions`, such as ``n_bins``,
            ``method`` and ``random_state``.

        Returns
        -------
        display : RecalibrationDisplay
        """
        shared = {
            "notion": notion,
            "sample_weight": sample_weight,
            "labels": labels,
            "pos_label": pos_label,
        }
        given = plain_array(y_before, "y_before"), plain_array(y_after, "y_after")
        proba = [_single_as_columns(*given), _single_as_columns(*given[::-1])]
        before, after = (
            ReliabilityDisplay.from_predictions(
                y_true, predictions, name=part, plot=False, **shared, **options
            )
            for predictions, part in zip(proba, ("before", "after"), strict=True)
        )
        if len(before.panels) > 1 or len(after.panels) > 1:
            raise ValueError(
                f"notion={notion!r} has a diagram a class. Use 'confidence' or 'binary', or a "
                "ReliabilityDisplay before and one after."
            )
        curve: dict[str, np.ndarray] = {}
        if before.notion.of_positive_class:
            x, y = (
                read_sample(y_true, predictions, **shared).problems()[0].features[:, 0]
                for predictions in proba
            )
            order = np.lexsort([y, x])
            order = order[np.linspace(0, len(order) - 1, min(len(order), _MOST)).astype(int)]
            curve = {"map_x": x[order], "map_y": y[order]}
        display = cls(before, after, **curve, name=name)
        return display.plot(ax=ax) if plot else display

    def _layout(self):
        return len(self.panels), (4.6, 5.2) if self.map_x is None else (3.3, 4.2)

    def _draw(self, axes, name, kwargs):
        titles = [f"{name}, {part}" if name else part for part in ("before", "after", "map")]
        self.before.plot(ax=axes[0], name=titles[0], **kwargs)
        self.after.plot(ax=axes[1], name=titles[1], **kwargs)
        self.line_: Any = None
        if self.map_x is not None:
            limit = max(panel.limit for panel in (*self.before.panels, *self.after.panels))
            self.line_ = _draw_map(axes[2], self.map_x, self.map_y, limit)
            axes[2].set_title(as_label(titles[2]), fontsize="small")


def _single_as_columns(proba, other):
    """Two columns for single probabilities where the other predictions have them."""
    if proba.ndim == 1 and other.ndim == 2:
        return np.column_stack([1 - proba, proba])
    return proba


def _draw_map(ax, x, y, limit):
    draw_diagonal(ax)
    distinct, place = np.unique(x, return_inverse=True)
    low, high = np.full(len(distinct), np.inf), np.full(len(distinct), -np.inf)
    np.minimum.at(low, place, y)
    np.maximum.at(high, place, y)
    is_function = (high - low < 1e-9).all() and (np.diff(low) >= 0).all()
    cloud = {"marker": ".", "linestyle": "none", "alpha": 0.3}
    look: dict[str, Any] = {"linewidth": 1.5} if is_function else cloud
    [line] = ax.plot(x, y, color=BLUE, **look)
    limit_axes(ax, limit)
    ax.set(xlabel="probability before", ylabel="probability after")
    return line
