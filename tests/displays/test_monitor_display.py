"""Evidence and bias over time, as the monitor has them."""

import numpy as np
import pytest
from display_cases import monitored
from numpy.testing import assert_allclose

from skcal.displays import MonitorDisplay
from skcal.monitoring import CalibrationMonitor


def test_what_is_drawn_is_what_the_monitor_has(figures):
    monitor = monitored()
    display = MonitorDisplay.from_monitor(monitor, name="model $1")
    history = monitor.history()
    samples, logs = display.evidence_.get_data()
    assert_allclose(samples, history["n_samples"])
    assert_allclose(10**logs, history["e_value"])
    assert display.threshold_.get_ydata()[0] == pytest.approx(np.log10(20))
    assert display.alarm_.get_xdata()[0] == monitor.alarm_
    before = history["n_samples"] < monitor.periods_["drift"].first_sample
    assert_allclose(display.bias_.get_ydata(), history["bias"][before])
    assert_allclose(display.recent_bias_.get_ydata(), history["recent_bias"])
    assert display.ax_[0].get_title() == "model \\$1\nevidence of miscalibration (confidence)"


def drifted(factor, n_before=15):
    """A monitor of rare events, which happen more or less often from then on."""
    monitor, rng = CalibrationMonitor(labels=[0, 1]), np.random.default_rng(0)
    for batch in range(30):
        p = rng.beta(1.2, 12, 300)
        weight = np.full(300, 0.5)
        shifted = p if batch < n_before else np.clip(factor * p, 0, 1)
        monitor.update(p, (rng.random(300) < shifted).astype(int), weight)
    return monitor


@pytest.mark.parametrize(("factor", "n_before"), [(1.6, 15), (0.5, 15), (1.6, 0)])
def test_after_an_alarm_the_mean_of_the_drift_lies_outside_of_those_of_calibrated_models(
    factor, n_before, figures
):
    """The mean of all samples lags behind: its band, which still holds 0, ends at the drift."""
    monitor = drifted(factor, n_before)
    drift = monitor.periods_["drift"]
    assert monitor.alarm_ is not None
    display = MonitorDisplay.from_monitor(monitor)
    stretch = display.periods[0]
    assert (stretch.first_sample, stretch.last_sample) == (drift.first_sample, drift.last_sample)
    weight = drift.n_samples / 2
    assert stretch.surplus == pytest.approx((drift.observed - drift.predicted) / weight)
    assert abs(stretch.surplus) > stretch.margin
    assert (stretch.surplus > 0) == (factor > 1)
    by_chance = 1 - drift.chance_low
    assert stretch.margin / stretch.surplus == pytest.approx(by_chance / (drift.ratio - 1))
    line = display.periods_[0]
    assert_allclose(line.get_ydata(), stretch.surplus)
    assert list(line.get_xdata()) == [drift.first_sample - 1, drift.last_sample]
    if n_before:
        assert display.bias_.get_xdata()[-1] < drift.first_sample
        assert display.bias_.get_label() == "all samples before the drift"
    else:
        assert display.bias_ is display.interval_ is None
    calm = MonitorDisplay.from_monitor(drifted(1.0))
    assert calm.periods_ == [] == list(calm.periods)
    assert calm.bias_.get_label() == "all samples so far"
    low, high = (calm.columns[name] for name in ("bias_low", "bias_high"))
    assert ((low <= 0) & (high >= 0)).all()


def test_a_picture_names_a_drift_that_is_over_and_what_came_then(figures):
    monitor, rng = CalibrationMonitor(labels=[0, 1]), np.random.default_rng(0)
    for batch in range(45):
        p = rng.beta(1.2, 12, 300)
        factor = 1.7 if 15 <= batch < 25 else 1
        monitor.update(p, (rng.random(300) < np.minimum(1, factor * p)).astype(int))
    display = MonitorDisplay.from_monitor(monitor)
    drift, later = display.periods
    assert drift.last_sample + 1 == later.first_sample
    assert abs(later.surplus) <= later.margin < drift.margin < drift.surplus
    labels = [line.get_label() for line in display.periods_]
    assert [label.partition(":")[0] for label in labels] == ["drift", "later"]


def test_the_detector_is_drawn_where_it_alarms(figures):
    monitor = monitored(run_length=1000)
    display = MonitorDisplay.from_monitor(monitor)
    assert_allclose(10 ** display.evidence_.get_ydata(), monitor.history()["detector"])
    assert display.threshold_.get_ydata()[0] == pytest.approx(3)
    assert "e-detector" in display.ax_[0].get_ylabel()


def test_infinite_evidence_and_a_single_batch_are_drawn_and_no_line_without_alarm(figures):
    assert MonitorDisplay.from_monitor(monitored(n_batches=2, alpha=1e-9)).alarm_ is None
    monitor = CalibrationMonitor(labels=[0, 1]).update([0.5, 0.0], [1, 1])
    display = MonitorDisplay.from_monitor(monitor)
    display.figure_.draw_without_rendering()
    assert "infinite evidence" in display.alarm_.get_label()
    with pytest.raises(ValueError, match="has seen no samples"):
        MonitorDisplay.from_monitor(CalibrationMonitor())


def test_a_binary_monitor_names_no_kind_and_its_labels_are_no_taller_than_the_axes(figures):
    monitor = CalibrationMonitor(labels=[0, 1])
    rng = np.random.default_rng(0)
    for k in range(8):
        p = rng.beta(1, 8, 800)
        monitor.update(p, (rng.random(800) < np.minimum(1, p * (1 + (k > 3)))).astype(int))
    display = MonitorDisplay.from_monitor(monitor)
    assert display.alarm_ is not None  # whose legend makes the axes lower
    assert display.ax_[0].get_title() == "evidence of miscalibration"
    assert display.ax_[1].get_ylabel().replace("\n", " ") == "observed − predicted"
    figure = display.figure_
    figure.draw_without_rendering()
    for ax in display.ax_:
        label = ax.yaxis.label.get_window_extent()
        assert label.height <= ax.get_window_extent().height + 1
        assert figure.bbox.y0 <= label.y0 < label.y1 <= figure.bbox.y1
