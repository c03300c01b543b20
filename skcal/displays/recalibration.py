"""Reliability before and after recalibration, and the map of a single probability."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np

from skcal._labels import class_names, refuse_another_order
from skcal._show import plain_number
from skcal._sklearn_compat import validate_params
from skcal.displays import draw
from skcal.displays.axis import set_axes
from skcal.displays.base import Display, diagram_size
from skcal.displays.reliability import DIAGRAM_OPTIONS, ReliabilityDisplay
from skcal.displays.reliability_panel import rule_of
from skcal.exceptions import InputError
from skcal.sample import Sample, read_sample, require_given

_MOST_DRAWN = 2000  # points of a drawn map


@dataclass(eq=False, repr=False)
class RecalibrationDisplay(Display):
    """Reliability diagrams before and after recalibration, and the map of a single probability.

    Make it with :meth:`from_predictions`, from cross-validated predictions.

    Parameters
    ----------
    before, after : ReliabilityDisplay
        Diagrams of one panel each.
    map_x, map_y : ndarray of shape (n_points,), default=None
        With a binary notion: predictions in ascending order, and their recalibrated values.
    name : str, default=None
        The name of the classifier.

    Attributes
    ----------
    ax_ : ndarray of matplotlib axes of shape (2,), or (3,) with the map
        Set by :meth:`plot`, as are the following.
    figure_ : matplotlib figure
    diagrams_ : ReliabilityDisplay
        Both diagrams, with their lines, points, intervals and histograms.
    line_ : matplotlib line or None
        The map.

    See Also
    --------
    skcal.displays.ReliabilityDisplay : one diagram.

    Notes
    -----
    The map is steeper than the diagonal where probabilities become more extreme. It is drawn as a
    cloud if equal predictions may be recalibrated differently, as when several folds have maps of
    their own.

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
    RecalibrationDisplay(n = 1,000, binary, calibration error 0.051 → 0.0056)
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
        errors = [
            plain_number(panel.number.estimate)
            for panel in (before, after)
            if panel.number is not None
        ]
        return [
            f"n = {before.n_samples:,}",
            self.before.notion,
            f"calibration error {' → '.join(errors)}" if errors else "",
        ]

    def _repr_html_(self):
        return self._both()._repr_html_()

    def _both(self, name=None) -> ReliabilityDisplay:
        """Both diagrams side by side."""
        head = f"{draw.as_label(name)}, " if name else ""
        panels = [
            replace(panel, label=f"{head}{part}\n{panel.label.split(chr(10))[-1]}")
            for part, display in (("before", self.before), ("after", self.after))
            for panel in display.panels
        ]
        return replace(self.before, panels=panels)

    @property
    def panels(self) -> list:
        """Both diagrams, and the map where there is one."""
        both = [*self.before.panels, *self.after.panels]
        return both if self.map_x is None else [*both, (self.map_x, self.map_y)]

    @classmethod
    @validate_params(DIAGRAM_OPTIONS, prefer_skip_nested_validation=False)
    def from_predictions(
        cls,
        y_true,
        y_before,
        y_after=None,
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
        """Compute and plot the diagrams.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        y_before, y_after : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities before and after recalibration.
        notion : {"auto", "binary", "confidence"}, default="auto"
            The kind of calibration. "auto" is "binary" for one and two columns and "confidence"
            for more.
        method : str, calibration-estimation function, estimator or search, default="auto"
            The line, as in :meth:`ReliabilityDisplay.from_predictions`.
        n_bins : int, "auto" or "cube_root", default="auto"
            The number of bins; "auto" lets them suit the samples and the axis.
        strategy : {"uniform", "quantile", "sweep", "unique"}, default="uniform"
            How other ``n_bins`` are made; the default is that of
            :func:`skcal.metrics.expected_calibration_error`.
        edges : array-like of shape (n_edges,), default=None
            Edges of bins, rising from 0 to 1, in place of ``n_bins`` and ``strategy``.
        scale : {"linear", "logit"}, default="linear"
            The scale of all axes. "logit" spreads probabilities near 0 and 1.
        confidence_level : float in (0, 1), default=0.95
            The confidence level of intervals and ranges.
        n_resamples : int ≥ 19, default=None
            The number of redrawn outcomes of the scans. None: 999, for more than 100,000 samples
            199.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other. None: all are independent.
        labels : array-like of shape (n_classes,), default=None
            The class of each column; for 1-D predictions (negative class, positive class).
        pos_label : label, default=None
            The positive class of 1-D predictions, or of two columns for "binary".
        from_logits : bool, default=False
            Whether ``y_before`` holds logits; ``y_after`` holds probabilities.
        random_state : int, RandomState instance or None, default=0
            Seed of the scans for ranges.
        name : str, default=None
            The name of the classifier, for the titles.
        ref_line : bool, default=True
            Whether to draw the diagonals.
        line_kw : dict, default=None
            Options of :meth:`matplotlib.axes.Axes.plot` for the lines.
        ax : array of matplotlib axes, default=None
            Two, or three with the map; None makes a figure.
        plot : bool, default=True
            False computes only the numbers, without matplotlib.

        Returns
        -------
        display : RecalibrationDisplay
        """
        options: dict[str, Any] = {"notion": notion, "pos_label": pos_label, "groups": groups}
        options["sample_weight"] = sample_weight
        if isinstance(y_true, Sample):
            y_true.require_pairs(y_before, "y_before")
            options |= {"from_logits": from_logits, "names": ("y_true", "y_after")}
            first = read_sample(y_true, y_after, labels=labels, **options)
            samples = [first, y_before.asked(first.notion).counted]
        else:
            require_given(y_before=y_before, y_after=y_after)
            refuse_another_order({"y_before": y_before, "y_after": y_after, "y_true": y_true})
            samples = _read_maps(y_true, y_before, y_after, labels, from_logits, options)
        bins = {"rule": rule_of(n_bins, strategy, edges), "scale": scale}
        test = method, confidence_level, n_resamples, random_state
        before, after = (
            ReliabilityDisplay._of_sample(sample, part, *test, **bins)
            for sample, part in zip(samples, ("before", "after"), strict=True)
        )
        if len(before.panels) > 1 or len(after.panels) > 1:
            other = "" if before.notion.of_labels else "notion='confidence', or "
            raise ValueError(
                f"notion={before.notion!r} has a diagram a class. Use {other}a ReliabilityDisplay "
                "before and one after."
            )
        curve: dict[str, np.ndarray] = {}
        if before.notion.of_positive_class:
            x, y = (sample.problems()[0].features[:, 0] for sample in samples)
            order = np.lexsort([y, x])
            order = order[np.linspace(0, len(order) - 1, min(len(order), _MOST_DRAWN)).astype(int)]
            curve = {"map_x": x[order], "map_y": y[order]}
        display = cls(before, after, **curve, name=name)
        return display.plot(ax=ax, ref_line=ref_line, **(line_kw or {})) if plot else display

    def _layout(self):
        return len(self.panels), diagram_size(len(self.panels))

    def _draw(self, axes, name, kwargs):
        both = self._both(name)
        both._draw(axes[:2], None, kwargs)
        self.ref_lines_ = both.ref_lines_
        self.diagrams_, self.line_ = both, None
        if self.map_x is not None:
            self.line_, diagonal = _draw_map(axes[2], self.map_x, self.map_y, both.axis, kwargs)
            self.ref_lines_ = [*self.ref_lines_, diagonal]
            draw.set_title(axes[2], f"{draw.as_label(name)}, map" if name else "map")

    def _finish(self, figure):
        self.diagrams_._finish(figure)


def _read_maps(y_true, y_before, y_after, labels, from_logits, options) -> list[Sample]:
    """The samples before and after; names of the columns of one tell the classes of both."""
    columns = class_names(y_before), class_names(y_after)
    if None not in columns and columns[0] != columns[1]:
        reason = f"has the columns {columns[1][:8]}, y_before {columns[0][:8]}."
        raise InputError("y_after", reason, "Bring the columns into the same order.")
    given = [("y_before", y_before, from_logits), ("y_after", y_after, None)]
    named_last, samples = columns[0] is None and columns[1] is not None, {}
    for name, proba, of_logits in reversed(given) if named_last else given:
        samples[name] = read_sample(
            y_true, proba, labels=labels, from_logits=of_logits, names=("y_true", name), **options
        )
        if not named_last or np.ndim(y_before) == 2:
            labels = samples[name].given_classes
    return [samples["y_before"], samples["y_after"]]


def _draw_map(ax, x, y, axis, kwargs):
    diagonal = draw.diagonal(ax)
    rises, tied = np.diff(y), np.diff(x) == 0
    is_function = (rises > -1e-9).all() and (rises[tied] < 1e-9).all()
    cloud = {"marker": ".", "linestyle": "none", "alpha": 0.3}
    look: dict[str, Any] = {"linewidth": 1.5} if is_function else cloud
    [line] = ax.plot(x, y, **draw.styled(kwargs, color=draw.BLUE, **look))
    set_axes(ax, axis, ("probability before", "probability after"))
    return line, diagonal
