"""In a grid of axes, under another theme, no text, legend or axes of a display covers another."""

import itertools

import matplotlib as mpl
import numpy as np
import pytest
from display_cases import CASES
from test_display_contract import computed, drawn

THEME = {  # as seaborn sets it
    "axes.facecolor": "#EAEAF2",
    "axes.edgecolor": "white",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "white",
    "font.size": 12,
    "axes.labelsize": 12,
    "axes.titlesize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 11,
    "xtick.bottom": False,
    "ytick.left": False,
}


def texts_of(axes):
    """Texts that are drawn, but those of legends, which are boxes of their own."""
    for ax in (part for one in axes for part in (one, *one.child_axes)):
        yield from [ax.title, *ax.texts]
        for axis in (ax.xaxis, ax.yaxis) if ax.axison else ():
            yield from [axis.label, axis.offsetText]
            yield from [
                label for tick in axis._update_ticks() for label in (tick.label1, tick.label2)
            ]


def boxes(axes):
    """Names and boxes of what must not cover each other."""
    found = {}
    for text in texts_of(axes):
        if text.get_visible() and text.get_text().strip():
            found[id(text)] = (text.get_text(), text.get_window_extent())
    named = list(found.values())
    for ax in axes:
        if ax.get_legend() is not None:
            named.append(("legend", ax.get_legend().get_window_extent()))
            named += [("axes", ax.get_window_extent())]
            named += [("strip", child.get_window_extent()) for child in ax.child_axes]
    return named


def covers(one, other):
    """Whether two boxes share more than a pixel."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return width > 1 and height > 1


@pytest.mark.parametrize(("make", "n_panels"), CASES.values(), ids=CASES)
@pytest.mark.parametrize(
    ("theme", "size"),
    [({}, (11, 9)), (THEME, (11, 9)), ({}, (8, 6)), ({}, (14, 10)), ({}, (6.4, 4.8))],
    ids=["plain", "seaborn", "small", "large", "usual"],
)
def test_nothing_overprints_in_a_grid_of_axes(make, n_panels, theme, size, figures):
    with mpl.rc_context(theme):
        figure, axes = figures.subplots(2, 2, layout="constrained", figsize=size)
        display = drawn(make, ax=axes.ravel()[0] if n_panels == 1 else axes.ravel()[:n_panels])
        figure.draw_without_rendering()
        used = list(np.atleast_1d(display.ax_))
        for ax in used:
            assert ax.get_title().count("\n") <= 2
        named = boxes([*axes.ravel()])
        own = {"axes", "strip"}
        for (name, one), (other_name, other) in itertools.combinations(named, 2):
            if not (name in own and other_name in own) and "axes" not in (name, other_name):
                assert not covers(one, other), (name, other_name)
        legends = [box for name, box in named if name == "legend"]
        for legend, ax in itertools.product(legends, axes.ravel()):
            assert not covers(legend, ax.get_window_extent()), "a legend hides data"
        whole = figure.bbox
        for name, box in named:
            assert box.x0 >= -1, name
            assert box.y0 >= -1, name
            assert box.x1 <= whole.x1 + 1, name
            assert box.y1 <= whole.y1 + 1, name


@pytest.mark.parametrize("make", [make for make, _ in CASES.values()], ids=CASES)
def test_no_text_leaves_a_figure_of_its_own(make, figures):
    figure = drawn(make).figure_
    figure.draw_without_rendering()
    named = [box for box in boxes(figure.axes) if box[0] not in ("axes", "strip")]
    named += [("key", legend.get_window_extent()) for legend in figure.legends]
    for name, box in named:
        assert min(box.x0, box.y0, figure.bbox.x1 - box.x1, figure.bbox.y1 - box.y1) >= -1, name
    for (name, one), (other_name, other) in itertools.combinations(named, 2):
        assert not covers(one, other), (name, other_name)


def test_every_display_is_tried():
    assert {type(computed(make)) for make, _ in CASES.values()}
