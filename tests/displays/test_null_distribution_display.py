from dataclasses import replace

import numpy as np
import pytest
from display_cases import null_result, tempered
from numpy.testing import assert_allclose

from skcal.displays import NullDistributionDisplay, null_distribution
from skcal.hypothesis_tests import adjust_pvalues, skce_test, spiegelhalter_test
from skcal.hypothesis_tests.result import resampled_pvalue


def test_histogram_statistic_and_pvalue_are_the_results():
    result = null_result()
    display = NullDistributionDisplay.from_result(result, name="Forest")
    [panel] = display.panels
    assert panel.counts.sum() == panel.n_resamples == 199
    assert panel.statistic == result.statistic
    assert panel.pvalue == result.pvalue == (1 + panel.n_as_extreme) / 200
    assert display.lines_[0].get_xdata()[0] == result.statistic
    texts = [text.get_text() for text in display.legends_[0].get_texts()]
    assert texts == [
        f"observed {result.statistic:.3g}, p = {result.pvalue:.3g}",
        "199 resamples if calibrated",
    ]  # none is as large
    words = result.method.replace("expected_calibration_error", "expected calibration error")
    assert display.ax_.get_title() == f"Forest\n{words}"


def test_a_panel_a_class_from_the_smallest_pvalue_on():
    result = null_result("classwise", n_resamples=199)
    display = NullDistributionDisplay.from_result(result, labels=["a", "b", "c"], plot=False)
    pvalues = [panel.pvalue for panel in display.panels]
    assert pvalues == sorted(result.class_pvalues)
    for panel in display.panels:
        k = "abc".index(panel.label[-1])
        assert panel.statistic == result.class_statistics[k]
        assert panel.pvalue == result.class_pvalues[k]
    raw = resampled_pvalue(result.class_statistics, result.null_distribution)
    assert_allclose(adjust_pvalues(raw), result.class_pvalues)


def test_of_many_classes_the_smallest_pvalues_are_shown(monkeypatch):
    monkeypatch.setattr(null_distribution, "MAX_PANELS", 4)
    result = null_result("classwise", n_classes=6, n_resamples=199)
    display = NullDistributionDisplay.from_result(result)
    assert len(display.panels) == len(display.ax_) == 4
    assert display.n_panels_left_out == 2
    assert display.panels[-1].pvalue <= np.sort(result.class_pvalues)[3]
    assert "4 of 6" in display.figure_.get_suptitle()


def test_bars_beyond_the_statistic_are_coloured():
    result = null_result()
    middle = replace(result, statistic=float(np.median(result.null_distribution)))
    display = NullDistributionDisplay.from_result(middle)
    colours = {
        bar.get_x() >= middle.statistic: bar.get_facecolor() for bar in display.histograms_[0]
    }
    assert colours[True] != colours[False]
    texts = [text.get_text() for text in display.legends_[0].get_texts()]
    assert texts[-1] == f"{display.panels[0].n_as_extreme} at least as large"


def test_a_statistic_far_outside_is_still_on_the_axis():
    y, proba = tempered()
    result = skce_test(y, proba, notion="canonical", n_resamples=19, random_state=0)
    for observed in (1e6, -1e6, 1e-300):
        display = NullDistributionDisplay.from_result(replace(result, statistic=observed))
        low, high = display.ax_.get_xlim()
        assert low <= observed <= high


@pytest.mark.parametrize("value", [0.0, 0.25, -3.0])
def test_resamples_that_are_all_the_same_make_one_bar(value):
    result = replace(null_result(), null_distribution=np.full(99, value), statistic=value)
    display = NullDistributionDisplay.from_result(result)
    assert np.count_nonzero(display.panels[0].counts) == 1


def test_results_without_null_distribution_and_names_of_some_classes_are_refused():
    with pytest.raises(ValueError, match=r"no null distribution. Use .* monte_carlo_test"):
        NullDistributionDisplay.from_result(spiegelhalter_test(*tempered()))
    with pytest.raises(ValueError, match="labels has 2 entries, the result 3 classes"):
        NullDistributionDisplay.from_result(null_result("classwise"), labels=["a", "b"])
