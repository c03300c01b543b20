"""Axes of probabilities that hold all that is drawn, and histograms of both outcomes along them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from skcal.displays import draw

SCALES = ("linear", "logit")
#: Labels of both axes, for events and for whether predictions are right.
AXIS_LABELS = (("predicted probability", "observed frequency"), ("confidence", "accuracy"))
_LIMITS = (0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 1.0)  # of linear axes
_DECADES = tuple(10.0**-k for k in range(6, 0, -1))
_LOGIT_ENDS = (*_DECADES, 0.2, 0.5, 0.8, *(1 - end for end in _DECADES[::-1]))
_AXIS_MARGIN = 0.02
_MOST_TICKS = 7
_BROAD = 0.5  # an axis whose six labels are short; others have three, or four; and the widest part


class ProbabilityAxis(NamedTuple):
    """Where an axis of probabilities begins and ends.

    Attributes
    ----------
    low, high : float
        For the linear scale the low end is 0 or the high one 1; for "logit" both lie in between.
    scale : {"linear", "logit"}
    """

    low: float
    high: float
    scale: str = "linear"

    def _data(self) -> dict[str, Any]:
        return self._asdict()

    def place(self, probability) -> np.ndarray:
        """Positions of probabilities: 0 at the low end, 1 at the high one; none lies outside."""
        probability = np.clip(probability, self.low, self.high)
        if self.scale == "linear":
            return (probability - self.low) / (self.high - self.low)
        first, last = logit([self.low, self.high])
        return (logit(probability) - first) / (last - first)

    def at(self, place) -> np.ndarray:
        """The probabilities at positions, which are 0 and 1 at the ends."""
        place = np.asarray(place, dtype=float)
        if self.scale == "linear":
            return self.low + place * (self.high - self.low)
        first, last = logit([self.low, self.high])
        return expit(first + place * (last - first))

    def inside(self, probability) -> np.ndarray:
        """Move probabilities beyond an end to that end."""
        return np.clip(probability, self.low, self.high)

    def ticks(self) -> np.ndarray:
        """Probabilities that get a label."""
        if self.scale == "linear":
            span = round(self.high - self.low, 6)
            by_thirds = f"{span:.1e}"[:3] in ("1.5", "3.0", "6.0")
            return np.linspace(self.low, self.high, 6 if span >= _BROAD else 3 + by_thirds)
        ends = np.array(_LOGIT_ENDS)
        ends = ends[(self.low <= ends) & (ends <= self.high)]
        if len(ends) > _MOST_TICKS:
            ends = ends[~np.isin(ends, (0.2, 0.8))]
        every = int(np.ceil(len(ends) / _MOST_TICKS))
        return ends[::-every][::-1] if self.high <= 0.5 else ends[::every]

    def joined(self, other: ProbabilityAxis) -> ProbabilityAxis:
        """The axis that holds both."""
        return self._replace(low=min(self.low, other.low), high=max(self.high, other.high))


UNIT = ProbabilityAxis(0.0, 1.0)


def axes_of(predictions, scale: str, sizes: Any = 1) -> list[ProbabilityAxis]:
    """Axes that hold the predictions, the shortest first, the last with all probabilities.

    A linear one ends before 1 and leaves out at most 1 % of the predictions, or begins above 0 and
    leaves none out. One of logits leaves out at most 0.5 % at each end, and what is nearer to 0 or
    1 than the share of a single sample. There are ``sizes`` samples of each prediction.
    """
    order = np.argsort(predictions)
    values, last = predictions[order], np.cumsum(np.broadcast_to(sizes, len(order))[order]) - 1
    places = np.column_stack([np.append(0, last[:-1] + 1), last]).ravel()
    tails = np.array([0.005, 0.99, 0.995]) * last[-1]
    first, most, end = np.interp(tails, places, np.repeat(values, 2))
    if scale == "linear":
        lows = [round(1 - limit, 6) for limit in _LIMITS if limit <= _BROAD]
        begun = [ProbabilityAxis(low, 1.0) for low in lows if low <= values[0]]
        return begun + [ProbabilityAxis(0.0, limit) for limit in _LIMITS if most <= limit]
    share = min(1 / (last[-1] + 1), 0.1)
    ends = np.array(_LOGIT_ENDS)
    low = float(ends[:-1][ends[:-1] <= max(first, share, ends[0])].max())
    most = ends[np.searchsorted(ends, min(end, 1 - share, ends[-1]))]
    return [ProbabilityAxis(low, float(end), scale) for end in ends if end >= most and end > low]


def set_axes(ax, axis: ProbabilityAxis, labels: tuple[str, str]) -> None:
    """Let both axes of a diagram be alike, or hold what another display on them drew too."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    drawn = getattr(ax, "_skcal_axis", None)
    if drawn is not None and drawn.scale != axis.scale:
        raise ValueError(
            f"ax holds a diagram with scale={drawn.scale!r}, this one has {axis.scale!r}. "
            "Use the same scale, or leave ax out."
        )
    axis = axis if drawn is None else axis.joined(drawn)
    ax._skcal_axis = axis
    ax.set(
        xscale=axis.scale,
        yscale=axis.scale,
        xlabel=labels[0],
        ylabel=draw.side_label(ax, labels[1]),
    )
    ends = padded_ends(axis)
    ax.set(xlim=ends, ylim=ends, box_aspect=1)
    ax.spines[["top", "right"]].set_visible(False)
    ticks = axis.ticks().tolist()
    ticks = ticks[:: len(ticks) - 1] if draw.is_small(ax) else ticks
    for side in (ax.xaxis, ax.yaxis):
        side.set_major_locator(FixedLocator(ticks))
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
        side.set_minor_locator(NullLocator())


def padded_ends(axis: ProbabilityAxis) -> tuple[float, float]:
    """The axis and a margin at both ends, so that markers at them are whole."""
    low, high = axis.at([-_AXIS_MARGIN, 1 + _AXIS_MARGIN]).tolist()
    return low, high


STRIP = "histogram of outcomes"
HEIGHTS = "bar heights: √ of counts"
_HEIGHT, _LOW, _GAP = 0.65, 0.35, 0.1  # inches, the second beside small axes
_TINY_STRIP = 15  # letters beside axes that have no room for a strip
_ROOM = 1.15  # above the highest bar
_LABELLED = 0.62  # of the highest bar: where the side is named


class _AboveStrip:
    """Place axes in their own rectangle, above a strip: the layout of the figure stays as it is."""

    def __init__(self, ax, taken: float):
        self._ax, self._taken = ax, taken

    def get_subplotspec(self):
        """What tight layouts ask for."""
        return self._ax.get_subplotspec()

    def __call__(self, ax, renderer):
        from matplotlib.transforms import Bbox

        box, figure = ax.get_position(original=True), ax.figure
        taken = self._taken * figure.dpi / figure.bbox.height
        return Bbox.from_extents(box.x0, box.y0 + min(taken, box.height / 2), box.x1, box.y1)


def strip_of(ax):
    """The strip of a diagram; None if it has none."""
    return next((child for child in ax.child_axes if child.get_label() == STRIP), None)


def draw_histogram(ax, edges, counts, sides: tuple[str, str], colour: str, most=0):
    """Draw how often the outcome happened (up) and did not (down), by prediction.

    Heights are square roots, so that bins of few samples are visible. On a strip that another
    display has drawn bars are outlines. Axes of less than 1.8 inches, as four in a figure of usual
    size, are left to the diagram.

    Parameters
    ----------
    ax : matplotlib axes
        Those of the diagram, whose horizontal axis is shared.
    edges : ndarray of shape (n_bins + 1,)
    counts : ndarray of shape (2, n_bins)
        Samples in which it did not happen, and in which it did.
    sides : tuple of two str
        Their names.
    colour : str
    most : float, default=0
        The least count that both halves of the strip have room for.

    Returns
    -------
    bars : list of two matplotlib artists, or of none
    """
    strip, first = strip_of(ax), False
    if strip is None and draw.is_small(ax, _TINY_STRIP):
        return []
    if strip is None:
        strip, first = _new_strip(ax), True
    look = {"fill": True, "alpha": 0.8} if first else {"fill": False, "edgecolor": colour}
    down, up = np.sqrt(counts)
    colours = [draw.GREY, colour] if first else [colour, colour]
    bars = [
        strip.stairs(heights, edges, color=bar_colour, **look)
        for heights, bar_colour in zip((-down, up), colours, strict=True)
    ]
    most = max(np.sqrt(most), down.max(), up.max(), 0 if first else strip.get_ylim()[1] / _ROOM)
    strip.set_ylim(-_ROOM * most, _ROOM * most)
    numbers, labels = counts.sum(axis=1), draw.as_labels(sides, 14)
    if first or np.array_equal(numbers, strip._skcal_numbers):  # all displays are of these samples
        shown = (f"{number:,.1f}".removesuffix(".0") for number in numbers)
        labels = [f"{number} {name}" for number, name in zip(shown, labels, strict=True)]
        strip._skcal_numbers = numbers
    strip.set_yticks([-_LABELLED * most, _LABELLED * most], labels)
    if strip._skcal_height > _LOW:
        ax.set_xlabel(f"{ax.get_xlabel()}\n{HEIGHTS}")
    return bars


def _new_strip(ax):
    height = _LOW if draw.is_small(ax) else _HEIGHT
    box = [0, -height - _GAP, 1, height]
    strip = ax.inset_axes(box, transform=draw.in_inches(ax), sharex=ax, label=STRIP)
    strip._skcal_height = height
    strip.axhline(0, color=draw.ink(ax), linewidth=0.6)
    strip.patch.set_visible(False)
    strip.tick_params(axis="x", bottom=False, labelbottom=False)
    strip.tick_params(axis="y", length=0)
    strip.spines[["top", "right", "bottom"]].set_visible(False)
    ax.set_axes_locator(_AboveStrip(ax, height + _GAP))
    ax.tick_params(axis="x", pad=draw.POINTS * (height + _GAP))
    return strip
