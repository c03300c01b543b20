"""Axes of rare events end where the predictions do."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skcal.displays import CalibrationCurveDisplay, RecalibrationDisplay, ReliabilityDisplay
from skcal.displays.base import axis_limit

RNG = np.random.default_rng(0)
P = np.append(RNG.beta(0.5, 30, size=2999), 0.9)
Y = (RNG.uniform(size=3000) < P).astype(int)
OPTIONS = {"strategy": "quantile", "n_resamples": 19, "random_state": 0}


def test_the_limit_holds_most_predictions_and_all_points_at_them():
    x = np.linspace(0, 0.04, 200)
    assert axis_limit(x, np.array([0.01, 0.03]), np.array([0.02, 0.04])) == 0.05
    assert axis_limit(x, np.array([0.01, 0.03]), np.array([0.02, 0.4])) == 0.5
    assert axis_limit(x, np.array([0.01, 0.03]), np.array([0.02, 0.6])) == 1
    few_above = np.append(x, [0.9])
    assert axis_limit(few_above, np.array([0.01, 0.9]), np.array([0.02, 1.0])) == 0.05
    assert axis_limit(np.append(x, np.full(5, 0.9)), x, x) == 1
    assert axis_limit(np.array([0.7]), np.array([0.7]), np.array([0.0])) == 1


def test_diagrams_of_rare_events_are_enlarged_and_say_what_is_not_seen():
    display = ReliabilityDisplay.from_predictions(Y, P, **OPTIONS)
    [panel] = display.panels
    assert panel.limit < 0.5
    assert panel.n_above == np.count_nonzero(panel.limit < P) > 0
    assert panel.histogram.sum() == 3000 - panel.n_above
    assert panel.histogram_edges[-1] == panel.limit
    assert display.ax_.get_xlim() == display.ax_.get_ylim()
    assert display.ax_.get_xlim()[1] == pytest.approx(1.02 * panel.limit)
    assert f"; {panel.n_above:,} above {panel.limit:g}" in display.ax_.get_title()
    plt.close("all")


def test_a_second_diagram_on_the_axes_does_not_cut_the_first():
    wide = RNG.uniform(size=500)
    outcomes = (RNG.uniform(size=500) < wide).astype(int)
    display = ReliabilityDisplay.from_predictions(outcomes, wide, **OPTIONS)
    ReliabilityDisplay.from_predictions(Y, P, ax=display.ax_, **OPTIONS)
    assert display.ax_.get_xlim()[1] == pytest.approx(1.02)
    plt.close("all")


def test_curves_and_maps_are_enlarged_too():
    curve = CalibrationCurveDisplay.from_predictions(Y, P)
    assert curve.limit < 1
    assert curve.ax_.get_ylim()[1] == pytest.approx(1.02 * curve.limit)
    assert curve.histogram.sum() == np.count_nonzero(curve.limit >= P)
    after = RecalibrationDisplay.from_predictions(Y, P, P / 2, **OPTIONS)
    before = after.before.panels[0].limit
    assert after.ax_[2].get_xlim()[1] == pytest.approx(1.02 * before)
    plt.close("all")
