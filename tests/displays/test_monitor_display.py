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
    assert_allclose(display.bias_.get_ydata(), history["bias"])
    assert_allclose(display.recent_bias_.get_ydata(), history["recent_bias"])
    assert display.ax_[0].get_title() == "model \\$1\nevidence of miscalibration (confidence)"


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
