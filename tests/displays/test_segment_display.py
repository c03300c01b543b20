import numpy as np
from display_cases import binary, curve, segments
from numpy.testing import assert_allclose, assert_array_equal

from skcal.displays import BiasCurveDisplay, SegmentDisplay
from skcal.hypothesis_tests import segment_test


def test_rows_are_the_worst_segments_with_their_intervals():
    result = segments()
    display = SegmentDisplay.from_result(result, n_worst=3)
    worst = result.segments[:3]
    assert display.segments == worst
    assert_array_equal(display.observed_.get_xdata(), [segment.observed for segment in worst])
    predicted = [segment.predicted for segment in worst]
    assert_allclose(display.expected_.get_xdata(), predicted, rtol=1e-12)
    assert display.expected_.get_label() == "predicted"
    ends = np.array(display.intervals_.get_segments())[:, :, 0]
    assert_array_equal(ends, [[segment.low, segment.high] for segment in worst])
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels[0].endswith(f"(n = {worst[0].n_samples})")
    assert display.n_segments == len(result.segments)


def test_relative_segments_stand_beside_what_all_samples_would_show():
    y, proba = binary(300)
    options = {"relative": True, "order": 1, "n_resamples": 19, "random_state": 0}
    result = segment_test(y, proba, {"side": np.arange(300) % 3}, **options)
    display = SegmentDisplay.from_result(result)
    expected = [part.observed - part.difference for part in result.segments]
    assert_array_equal(display.expected_.get_xdata(), expected)
    assert display.expected_.get_label() == "all samples"


def test_rejected_segments_are_marked():
    result = segments()
    level = min(0.99, result.segments[0].pvalue)
    display = SegmentDisplay.from_result(result, level=level)
    marked = [text.get_text().endswith("*") for text in display.tests_]
    assert marked == [segment.pvalue <= level for segment in display.segments]
    assert marked[0]


def test_the_band_of_a_curve_is_around_the_prediction_and_within_0_and_1():
    result = curve()
    display = BiasCurveDisplay.from_result(result, feature="age")
    assert_array_equal(display.observed_.get_ydata(), result.observed)
    [path] = display.band_.get_paths()
    assert path.vertices[:, 1].min() >= 0
    assert path.vertices[:, 1].max() <= 1
    assert display.ax_.get_xlabel() == "age"
