"""Axes of rare events end where the predictions do."""

from dataclasses import replace

import numpy as np
import pytest

from skcal.displays import CalibrationCurveDisplay, RecalibrationDisplay, ReliabilityDisplay
from skcal.displays.axis import UNIT, axes_of, padded_ends

RNG = np.random.default_rng(0)
P = np.append(RNG.beta(0.5, 30, size=999), 0.9)
Y = (RNG.uniform(size=1000) < P).astype(int)
OPTIONS = {"strategy": "quantile", "n_resamples": 19, "random_state": 0}


@pytest.mark.parametrize("axis", [*axes_of(P, "linear"), *axes_of(P, "logit")])
def test_places_run_along_the_axis_and_back(axis):
    places = np.linspace(0, 1, 11)
    probabilities = axis.at(places)
    assert (np.diff(probabilities) > 0).all()
    np.testing.assert_allclose(axis.place(probabilities), places, atol=1e-12)
    np.testing.assert_array_equal(axis.place([0.0, 1.0]), [0, 1])
    ticks = axis.ticks()
    assert 3 <= len(ticks) <= 7
    assert axis.low <= ticks[0] < ticks[-1] <= axis.high
    low, high = padded_ends(axis)
    assert low < axis.low < axis.high < high


def test_the_first_axis_is_the_shortest_that_holds_the_predictions():
    x = np.linspace(0, 0.04, 200)
    limits = [0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 1]
    assert [axis.high for axis in axes_of(x, "linear")] == limits
    assert axes_of(np.append(x, [0.9]), "linear")[0].high == 0.04
    assert axes_of(np.append(x, np.full(5, 0.9)), "linear")[0].high == 1
    first = axes_of(np.concatenate([x, 1 - x]), "logit")[0]
    np.testing.assert_allclose([first.low, first.high], [1e-3, 0.999])  # one of 400 is finer
    assert axes_of(np.array([1e-16, 1.0]), "logit")[0].low == 0.1


def test_diagrams_of_rare_events_are_enlarged_and_say_what_is_not_seen():
    display = ReliabilityDisplay.from_predictions(Y, P, **OPTIONS)
    [panel] = display.panels
    high = panel.axis.high
    assert high < 0.5
    assert panel.n_above == np.count_nonzero(high < P) > 0
    assert panel.histogram.sum() == 1000
    assert display.ax_.get_xlim() == display.ax_.get_ylim()
    assert display.ax_.get_xlim()[1] == pytest.approx(1.02 * high)
    said = f"predicted probability\n({panel.n_above:,} above {high:g})\n"
    assert display.ax_.get_xlabel().startswith(said)
    assert replace(panel, axis=UNIT).n_above == 0


def test_curves_and_maps_are_enlarged_too():
    curve = CalibrationCurveDisplay.from_predictions(Y, P)
    assert curve.axis.high < 1
    assert curve.ax_.get_ylim()[1] == pytest.approx(1.02 * curve.axis.high)
    assert curve.histogram.sum() == 1000
    for scale in ("linear", "logit"):
        both = RecalibrationDisplay.from_predictions(Y, P, P / 10, scale=scale, **OPTIONS)
        ends = {(*ax.get_xlim(), *ax.get_ylim()) for ax in both.ax_}
        assert len(ends) == 1
        before, after = both.before.panels[0].axis, both.after.panels[0].axis
        assert before != after
        assert both.ax_[0].get_xlim() == padded_ends(before.joined(after))


@pytest.mark.parametrize("least", [0.86, 0.6, 0.3])
def test_axes_begin_where_all_confidences_and_points_are(least):
    rng = np.random.default_rng(0)
    p = rng.uniform(least, 1, 4000)
    y = (rng.random(4000) < p).astype(int)
    for display in (ReliabilityDisplay, CalibrationCurveDisplay):
        shown = display.from_predictions(y, p)
        low, high = shown.ax_.get_xlim()
        assert (low, high) == shown.ax_.get_ylim()
        axis = shown.panels[0].axis if display is ReliabilityDisplay else shown.axis
        assert axis.high == 1
        assert (axis.low == 0) == (least < 0.5)
        assert axis.low <= least
        assert shown.ax_.get_xticks()[0] == pytest.approx(axis.low)
    [panel] = ReliabilityDisplay.from_predictions(y, p, plot=False).panels
    assert panel.frequency.min() >= panel.axis.low
    assert panel.histogram.sum() == 4000
    assert panel.n_above == 0


def test_an_interval_that_goes_on_below_the_axis_is_marked():
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.95, 1, 4000), rng.uniform(0.86, 0.87, 40)])
    y = np.concatenate([rng.random(4000) < p[:4000], np.arange(40) < 35]).astype(int)
    display = ReliabilityDisplay.from_predictions(y, p, edges=[0, 0.9, 0.97, 1])
    [panel] = display.panels
    below = (panel.low < panel.axis.low).sum()
    marks = [one for one in display.ax_.collections if len(one.get_paths()) == 1]
    drawn = sum(len(one.get_offsets()) for one in marks if one.get_offsets().size)
    assert below >= 1
    assert drawn == len(panel.prediction) + below
