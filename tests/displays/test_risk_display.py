import numpy as np
import pytest
from display_cases import fitted_search, tempered
from numpy.testing import assert_allclose, assert_array_equal

from skcal import Binning, CalibrationErrorSearchCV, DirichletKernelDensity
from skcal.displays import RiskDisplay
from skcal.displays.risk import RiskCurve


def searched(function, grid, **options):
    y, proba = tempered()
    search = CalibrationErrorSearchCV([(function, grid)], "confidence", random_state=0, **options)
    return search.fit(proba, y)


def test_curves_are_the_scores_of_the_search():
    search = fitted_search()
    display = RiskDisplay.from_search(search, param="n_bins", plot=False)
    [curve] = display.curves
    rows = [k for k, p in enumerate(search.cv_results_["params"]) if "function__n_bins" in p]
    assert curve.name == "Binning"
    assert_array_equal(curve.values, [2, 5, 10])
    assert_array_equal(curve.risk, -search.cv_results_["mean_test_score"][rows])
    assert_allclose(curve.above_best, curve.risk - search.best_risk_)
    assert display.best_risk == search.best_risk_
    assert display.n_folds == 5


def test_bands_are_paired_over_folds():
    search = fitted_search()
    results = search.cv_results_
    [curve] = RiskDisplay.from_search(search, param="alpha", plot=False).curves
    rows = [k for k, p in enumerate(results["params"]) if "function__alpha" in p]
    folds = np.array([results[f"split{k}_test_score"] for k in range(5)])
    excess = folds[:, [search.best_index_]] - folds[:, rows]
    assert_allclose(curve.above_best, excess.mean(axis=0), atol=1e-12)
    assert_allclose(curve.standard_error, excess.std(axis=0, ddof=1) / np.sqrt(5))


def test_the_chosen_setting_is_marked_at_the_lowest_risk():
    search = searched(Binning(), {"n_bins": [20, 2, 5]})
    display = RiskDisplay.from_search(search, param="n_bins")
    [curve] = display.curves
    assert_array_equal(curve.values, [2, 5, 20])
    assert curve.values[curve.chosen] == search.best_function_.n_bins
    assert curve.above_best[curve.chosen] == curve.standard_error[curve.chosen] == 0
    assert (curve.above_best >= 0).all()
    assert display.chosen_.get_xdata() == search.best_function_.n_bins
    assert display.chosen_.get_label() == f"chosen: n_bins = {search.best_function_.n_bins}"


def test_other_parameters_take_their_best_value():
    search = searched(Binning(), {"n_bins": [3, 9], "strategy": ["uniform", "quantile"]})
    [curve] = RiskDisplay.from_search(search, param="n_bins", plot=False).curves
    scores = search.cv_results_["mean_test_score"]
    bins = np.array([p["function__n_bins"] for p in search.cv_results_["params"]])
    assert_array_equal(curve.risk, [-scores[bins == 3].max(), -scores[bins == 9].max()])
    with pytest.raises(ValueError, match="values that are not numbers"):
        RiskDisplay.from_search(search, param="strategy")


def test_candidates_are_those_of_the_comparisons():
    search = fitted_search()
    display = RiskDisplay.from_search(search)
    assert [one.name for one in display.candidates] == [f.name for f in search.families_]
    assert_array_equal(
        [one.above_best for one in display.candidates],
        [comparison.difference for comparison in search.comparisons_],
    )
    [chosen] = [one for one in display.candidates if one.chosen]
    assert chosen.name == search.best_family_.name
    assert chosen.risk == search.best_risk_
    [simplest] = [one.name for one in display.candidates if one.simplest]
    assert simplest == search.simplest_family_.name
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels[0] == "Zero"
    assert labels[1].startswith("Binning\nn_bins=")
    top, bottom = display.ax_.get_ylim()
    assert top > bottom  # the first candidate stands above


def test_risks_of_very_different_size_are_shown_on_a_symmetric_logarithm():
    grid = {"bandwidth": [1e-7, 1e-6, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08]}
    search = searched(DirichletKernelDensity(), grid)
    display = RiskDisplay.from_search(search, param="bandwidth")
    assert display.ax_.get_yscale() == "symlog"
    assert display.ax_.get_xscale() == "log"


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.3, 1, 3, 7], {"0.5", "1", "2", "5"}),
        ([3, 5, 20, 80], {"5", "10", "20", "50"}),
        ([1e-8, 1e-4, 1], {"$\\mathdefault{10^{-4}}$"}),
    ],
)
def test_logarithmic_axes_show_plain_numbers_where_they_are_short(values, shown, figures):
    curve = RiskCurve("a", *np.array([values, *[np.linspace(0, 1, len(values))] * 3]), 0)
    display = RiskDisplay("C", curves=[curve], best_name="a", n_folds=5).plot()
    low, high = display.ax_.get_xlim()
    ticks = display.ax_.get_xticks(), display.ax_.get_xticklabels()
    found = {label.get_text() for at, label in zip(*ticks, strict=True) if low <= at <= high}
    assert shown <= found
    if max(values) < 1000 * min(values):
        assert not any("10^" in text for text in found)


def test_a_single_fold_has_no_band_but_a_curve():
    split = [(np.arange(300), np.arange(300, 480))]
    test = [(np.arange(480), np.arange(480, 600))]
    search = searched(Binning(), {"n_bins": [2, 9]}, cv=split, outer_cv=test)
    display = RiskDisplay.from_search(search, param="n_bins")
    assert np.isnan(display.curves[0].standard_error).all()


def test_a_parameter_that_is_not_varied_names_those_that_are():
    with pytest.raises(ValueError, match=r"param='gamma' is not varied .* 'alpha', 'n_bins'"):
        RiskDisplay.from_search(fitted_search(), param="gamma")
