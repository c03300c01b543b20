"""The figures of a report, drawn without pyplot's state and with the same bytes each time."""

from __future__ import annotations

import base64
from copy import copy
from dataclasses import replace
from functools import reduce
from math import ceil
from typing import Any

from skcal.displays import CalibrationCurveDisplay, DecisionCurveDisplay, ReliabilityDisplay
from skcal.displays.axis import ProbabilityAxis
from skcal.displays.base import MAX_PANELS
from skcal.displays.files import rendered
from skcal.report.measure import Measures

_SIZE = (3.1, 4.2)  # at its own size, and on a telephone, text has at least 9 points
_LINES = 0.6  # of that height are for the error in the title
_WITHOUT_STRIP = 3.0  # the height of a figure without a histogram


def reliability(parts: list[Measures], notion: str, settings: dict) -> ReliabilityDisplay:
    """A panel for each set of predictions; of many those with the largest error."""
    panels = [part.diagram for part in parts if part.diagram is not None]
    if not panels:
        raise ValueError("There is no reliability diagram to draw: too few samples.")
    kept = sorted(range(len(panels)), key=lambda k: -_error_of(panels[k]))[:MAX_PANELS]
    return ReliabilityDisplay(
        [panels[k] for k in sorted(kept)],
        notion=notion,
        method="bins",
        confidence_level=settings["confidence_level"],
        n_panels_left_out=len(panels) - len(kept),
    )


def _error_of(panel) -> float:
    return 0.0 if panel.number is None else panel.number.estimate


def single_panels(display: ReliabilityDisplay, same_counts: bool) -> list[ReliabilityDisplay]:
    """The panels one by one on the same axes, those of histograms too if that is asked for."""
    options = {name: getattr(display, name) for name in ("notion", "method", "confidence_level")}
    shared: dict[str, Any] = {
        "axis": reduce(ProbabilityAxis.joined, (panel.axis for panel in display.panels))
    }
    if same_counts:
        shared["most"] = max(panel.histogram.max() for panel in display.panels)
    return [ReliabilityDisplay([replace(one, **shared)], **options) for one in display.panels]


def draw(display: ReliabilityDisplay):
    """Plot on a figure that pyplot does not know of."""
    n = len(display.panels)
    without = all(panel.number is None for panel in display.panels)
    figure, axes = _new_figure(n, _SIZE[1] - _LINES * without)
    for unused in axes[n:]:
        figure.delaxes(unused)
    display.plot(ax=axes[:n])
    for legend in display.legends_:
        legend.remove()  # pages explain what is drawn, and legends would hide points
    return display.figure_


def draw_curve(display: CalibrationCurveDisplay):
    """Plot a calibration curve on a figure that pyplot does not know of."""
    figure, [axis] = _new_figure()
    copy(display).plot(ax=axis)  # plotting keeps the axes
    if axis.get_legend() is not None:
        axis.get_legend().remove()
    return figure


def draw_decisions(measures: list[Measures]):
    """Plot the decision curves of some models on axes that they share."""
    figure, [axis] = _new_figure(height=_WITHOUT_STRIP)
    for part in measures:
        if part.decision is not None:
            DecisionCurveDisplay(part.decision, name=part.name).plot(ax=axis)
    return figure


def _new_figure(n_panels=1, height=_SIZE[1]):
    """A figure that pyplot does not know of, and its axes, of at most three columns."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Figures need matplotlib: pip install matplotlib.") from error
    n_columns = min(n_panels, 3)
    n_rows = ceil(n_panels / n_columns)
    figure = Figure((_SIZE[0] * n_columns, height * n_rows), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False).ravel()


def svg_uri(figure) -> str:
    """The figure as a data URI, the same bytes for the same figure."""
    svg = rendered(figure, "svg", transparent=True)
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")
