"""Decision curves and Murphy diagrams: what they draw."""

import numpy as np
from display_cases import binary
from numpy.testing import assert_allclose

from skcal.displays import CalibrationCurveDisplay, DecisionCurveDisplay, MurphyDisplay
from skcal.metrics import murphy_diagram


def labels(axis):
    return [line.get_label() for line in axis.get_lines()]


def test_several_classifiers_share_axes_and_references():
    y, p = binary(200)
    first = DecisionCurveDisplay.from_predictions(y, p, name="one")
    second = DecisionCurveDisplay.from_predictions(y, p**2, name="two", ax=first.ax_)
    assert second.ax_ is first.ax_
    assert labels(first.ax_) == ["treat none", "treat all", "one", "two"]
    assert first.ax_.get_title().startswith("one, two\n")
    assert first.line_.get_color() != second.line_.get_color()
    top = max(first.curve.band_high.max(), second.curve.band_high.max())
    assert first.ax_.get_ylim()[1] >= top


def test_curves_of_rare_events_fill_the_axes():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 30, 500)
    display = DecisionCurveDisplay.from_predictions((rng.random(500) < p).astype(int), p)
    low, high = display.ax_.get_xlim()
    curve = display.curve
    telling = curve.thresholds[(curve.low > 0) | (curve.treat_all > 0)].max()
    assert low == 0
    assert 1.25 * telling <= high < 1.25 * telling + 0.011 < p.max()
    assert display.ax_.get_ylim()[1] < 0.1


def test_curves_on_one_axes_have_two_colours_and_two_names():
    y, p = binary(200)
    first = CalibrationCurveDisplay.from_predictions(y, p, name="one")
    second = CalibrationCurveDisplay.from_predictions(y, p**2, name="_two", ax=first.ax_)
    assert first.line_.get_color() != second.line_.get_color()
    texts = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert {"one", " _two"} <= set(texts)
    assert first.ax_.get_title() == "P(1): n = 200"


def test_the_title_counts_samples_and_says_where_the_curve_ends_before_the_samples():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 20, 300)
    y = (rng.random(300) < p).astype(int)
    display = CalibrationCurveDisplay.from_predictions(y, p)
    end = display.curve.prediction[-1]
    assert end < p.max() - display.axis.high / 40  # a bar of the histogram
    assert display.ax_.get_title() == f"P(1): n = 300, few above {end:.2g}"


def test_few_samples_are_drawn_exactly_and_many_on_a_grid():
    y, p = binary(100)
    few = MurphyDisplay.from_predictions(y, p, plot=False).diagram
    assert_allclose(few.score, murphy_diagram(y, p).score)
    y, p = binary(2000)
    many = MurphyDisplay.from_predictions(y, p, compare=p**2, name="a", compare_name="b")
    assert len(many.diagram.thresholds) == 501
    assert labels(many.ax_[0]) == ["a", "b"]
    assert many.ax_[1].get_title().startswith("a − b\n")
    assert_allclose(many.lines_[2].get_ydata(), many.diagram.difference)
