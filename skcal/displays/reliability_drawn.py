"""A panel of a reliability diagram as it is drawn on axes that may hold other classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcal._show import percent, plain_number
from skcal.displays import draw
from skcal.displays.axis import ProbabilityAxis
from skcal.displays.reliability_panel import JOINED, SMOOTH, ReliabilityPanel
from skcal.hypothesis_tests.scan import ScanRange

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
