import itertools
from dataclasses import replace

import numpy as np
import pytest
from display_cases import comparison, fitted_search, null_result, tempered
from numpy.testing import assert_allclose, assert_array_equal

from skcal import CalibrationErrorSearchCV, KroneckerKernelRidge
from skcal.displays import ComparisonDisplay
from skcal.hypothesis_tests import adjust_pvalues


def test_numbers_are_those_of_the_searches():
    display = comparison(plot=False, confidence_level=0.9)
    assert [row.name for row in display.classifiers] == ["calibrated", "overconfident"]
    for one, temperature in zip(display.classifiers, (1.0, 2.0), strict=True):
        search = fitted_search(temperature)
        assert one.plug_in == search.rms_calibration_error_
        assert_allclose(one.one_step**2, max(search.one_step_squared_error_, 0))
        assert_allclose(one.lower_bound**2, max(search.lower_confidence_bound(0.9), 0))
        assert one.lower_bound <= one.one_step
    assert np.isnan(display.classifiers[0].pvalue)
    assert not display.classifiers[0].rejected


def test_pvalues_are_adjusted_over_the_classifiers():
    searches = {name: fitted_search() for name in "abc"}
    tests = {"c": replace(null_result(), pvalue=0.03), "a": replace(null_result(), pvalue=0.01)}
    display = ComparisonDisplay.from_searches(searches, tests, level=0.025)
    by_name = {one.name: one for one in display.classifiers}
    expected = adjust_pvalues([0.01, 0.03])
    assert_allclose([by_name["a"].pvalue, by_name["c"].pvalue], expected)
    assert [by_name[name].rejected for name in "abc"] == [True, False, False]
    assert [text.get_text() for text in display.tests_] == ["p = 0.02 *", "p = 0.03"]
    assert display.tests_[0].get_fontweight() == "bold"


def test_a_search_without_one_step_estimate_shows_its_plug_in():
    y, proba = tempered()
    search = CalibrationErrorSearchCV([(KroneckerKernelRidge(), {})], "confidence", random_state=0)
    display = ComparisonDisplay.from_searches({"only": search.fit(proba, y)})
    [one] = display.classifiers
    assert np.isnan(one.one_step)
    assert np.isnan(one.lower_bound)
    assert display.plug_ins_.get_xdata()[0] == search.rms_calibration_error_
    display.figure_.draw_without_rendering()


def test_markers_stand_in_rows_under_each_other():
    display = comparison()
    assert_array_equal(display.plug_ins_.get_ydata(), [0, 1])
    assert_array_equal(
        display.one_steps_.get_xdata(), [row.one_step for row in display.classifiers]
    )
    segments = np.array(display.lower_bounds_.get_segments())
    assert_array_equal(segments[:, 0, 0], [row.lower_bound for row in display.classifiers])
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == ["calibrated", "overconfident"]
    assert display.ax_.get_xlabel() == "RMS calibration error (confidence)"
    bottom, top = display.ax_.get_ylim()
    assert bottom > top


def test_many_classifiers_of_long_names_fit():
    searches = {f"a classifier of a long name, number {k}": fitted_search() for k in range(40)}
    display = ComparisonDisplay.from_searches(searches)
    figure = display.figure_
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in display.ax_.get_yticklabels()]
    assert all(low.y1 <= high.y0 + 1 for high, low in itertools.pairwise(boxes))
    assert display.ax_.get_window_extent().width > 0.5 * figure.bbox.width
    labels = {text.get_text() for text in display.ax_.get_yticklabels()}
    assert len(labels) == 40  # the ends of the names tell them apart


def test_bad_comparisons_are_refused():
    search, result = fitted_search(), null_result()
    for empty in ({}, [search]):
        with pytest.raises(ValueError, match="searches must be a dict"):
            ComparisonDisplay.from_searches(empty)
    with pytest.raises(ValueError, match=r"of notion 'canonical', searches\['x'\] of 'confidence'"):
        ComparisonDisplay.from_searches({"x": search, "y": fitted_search(notion="canonical")})
    with pytest.raises(TypeError, match=r"tests\['x'\] is float. Pass what a test"):
        ComparisonDisplay.from_searches({"x": search}, {"x": 0.1})
    with pytest.raises(ValueError, match="tests holds 'y'"):
        ComparisonDisplay.from_searches({"x": search}, {"y": result})
