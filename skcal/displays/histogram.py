"""Histograms of both outcomes as mirror images, in a strip along the lower edge of a diagram."""

from __future__ import annotations

import numpy as np

from skcal.displays import draw

STRIP = "histogram of outcomes"
HEIGHTS = "bar heights: √ of counts"
_HEIGHT, _GAP = 0.65, 0.1  # inches
_ROOM = 1.15  # above the highest bar
_LABELLED = 0.62  # of the highest bar: where the side is named


class _AboveStrip:
    """Place axes in their own rectangle, above a strip: the layout of the figure stays as it is."""

    def __init__(self, ax):
        self._ax = ax

    def get_subplotspec(self):
        """What tight layouts ask for."""
        return self._ax.get_subplotspec()

    def __call__(self, ax, renderer):
        from matplotlib.transforms import Bbox

        box, figure = ax.get_position(original=True), ax.figure
        taken = (_HEIGHT + _GAP) * figure.dpi / figure.bbox.height
        return Bbox.from_extents(box.x0, box.y0 + min(taken, box.height / 2), box.x1, box.y1)


def strip_of(ax):
    """The strip of a diagram; None if it has none."""
    return next((child for child in ax.child_axes if child.get_label() == STRIP), None)


def draw_histogram(ax, edges, counts, sides: tuple[str, str], colour: str, most=0):
    """Draw how often the outcome happened (up) and did not (down), by prediction.

    Heights are square roots, so that bins of few samples are visible. On a strip that another
    display has drawn bars are outlines.

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
    bars : list of two matplotlib artists
    """
    strip, first = strip_of(ax), False
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
    ax.set_xlabel(f"{ax.get_xlabel()}\n{HEIGHTS}")
    return bars


def _new_strip(ax):
    box = [0, -_HEIGHT - _GAP, 1, _HEIGHT]
    strip = ax.inset_axes(box, transform=draw.in_inches(ax), sharex=ax, label=STRIP)
    strip.axhline(0, color=draw.ink(ax), linewidth=0.6)
    strip.patch.set_visible(False)
    strip.tick_params(axis="x", bottom=False, labelbottom=False)
    strip.tick_params(axis="y", length=0)
    strip.spines[["top", "right", "bottom"]].set_visible(False)
    ax.set_axes_locator(_AboveStrip(ax))
    ax.tick_params(axis="x", pad=draw.POINTS * (_HEIGHT + _GAP))
    return strip
