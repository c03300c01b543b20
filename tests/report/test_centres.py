"""Reports of five centres or more: their O/E, slope and C, and what a new one would have."""

import functools
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib import pyplot
from report_cases import draw_few
from scipy.special import expit, logit

from skcal import calibration_error_interval, calibration_report
from skcal.displays import ReliabilityDisplay
from skcal.metrics import validation_measures
from skcal.metrics.validation import Measure
from skcal.recalibration import BayesianCalibration
from skcal.report.centres import draw_forest, height_of_forest
from skcal.report.compare import sample_of
from skcal.report.rows import CENTRES, centres_table
from skcal.report.views import draw
from skcal.sample import read_sample

SIZES = [500, 400, 300, 300, 200, 120]


def centres():
    """Labels, predictions and centres, whose events are more frequent by other factors."""
    rng = np.random.default_rng(1)
    site = np.repeat([f"s{k}" for k in range(len(SIZES))], SIZES)
    p = rng.beta(1.2, 4, len(site))
    off = np.repeat(rng.normal(0.4, 0.3, len(SIZES)), SIZES)
    return (rng.random(len(p)) < expit(0.8 * logit(p) + off)).astype(int), p, site


@functools.cache
def report():
    y, p, site = centres()
    return calibration_report(y, p, by={"site": site}, n_resamples=19)


def text_of(measure):
    return "{:.2f} ({:.2f} to {:.2f})".format(*measure)


def test_a_row_has_the_measures_of_its_centre_and_the_last_one_those_of_a_new_one():
    y, p, site = centres()
    *rows, new = centres_table(report()).rows
    for row, name in zip(rows, np.unique(site), strict=True):
        part = site == name
        found = validation_measures(y[part], p[part], n_resamples=None)
        measures = found.observed_expected_ratio, found.slope, found.c_statistic
        assert row == (f"site = {name}", f"{y[part].sum()}", *map(text_of, measures))
    ends = {one.measure: (one.estimate, one.low, one.high) for one in report().heterogeneity}
    assert new == ("a new site", "", *(text_of(ends[name]) for name in CENTRES))
    for view in (report().summary(), report()._repr_html_()):
        assert new[2] in view
        assert rows[0][3] in view


def test_latex_has_the_centres(tmp_path):
    report().save(tmp_path / "report.tex")
    assert "a new site &" in (tmp_path / "report.tex").read_text()


def test_a_recalibration_that_leaves_a_centre_out_is_fitted_to_the_others():
    y, p, site = centres()
    left_out = np.empty(len(p))
    for name in np.unique(site):
        others = site != name
        fitted = BayesianCalibration().fit(np.column_stack([1 - p, p])[others], y[others])
        left_out[~others] = fitted.predict_proba(np.column_stack([1 - p, p])[~others])[:, 1]
    expected = calibration_error_interval(y, left_out)
    [found] = report().left_out
    assert found.gain.error == pytest.approx(expected.estimate, abs=1e-9)
    assert found.gain.high == pytest.approx(expected.high, abs=1e-9)
    ratios = [y[site == name].sum() / left_out[site == name].sum() for name in np.unique(site)]
    assert found.after == pytest.approx((min(ratios), max(ratios)))
    said = "Recalibration fitted to the other 5 subgroups (site) reduces the error of all"
    assert said in " ".join(str(report()).split())
    assert report().to_dict()["left_out"][0]["gain"]["error"] == found.gain.error


def test_nothing_is_recalibrated_where_no_error_is_significant_or_centres_are_few():
    rng = np.random.default_rng(0)
    p, site = rng.uniform(size=300), np.repeat(np.arange(6), 50)
    y = (rng.random(300) < p).astype(int)
    assert calibration_report(y, p, by=site, n_resamples=19).left_out == []
    few = calibration_report(rng.random(300) < p**3, p, by=site % 4, n_resamples=19)
    assert few.left_out == few.heterogeneity == []
    assert "a new" not in str(few)


def test_each_measure_has_a_forest_plot_with_a_row_for_each_centre():
    figure = pytest.importorskip("matplotlib.figure")
    for name in CENTRES:
        axis = figure.Figure().subplots()
        draw_forest(axis, report(), name)
        rows = [label.get_text() for label in axis.get_yticklabels()]
        assert rows == [*(f"s{k}" for k in range(len(SIZES))), "a new site"]
        assert axis.get_ylabel() == "site"  # which names of rows do not repeat
        assert axis.get_xlabel() == name
        low, high = axis.get_xlim()
        middles = [line.get_xdata()[0] for line in axis.get_lines() if line.get_marker() == "o"]
        assert all(low < middle < high for middle in middles)
        assert len(middles) == len(rows)
    assert report()._repr_html_().count('alt="Forest plot of') == 3


@pytest.mark.filterwarnings("ignore:groups holds")
def test_the_caveat_of_few_groups_names_each_subgroup_and_its_own_number(monkeypatch):
    draw_few(monkeypatch)
    rng = np.random.default_rng(0)
    sizes = {"a": 20, "b": 4, "c": 1}
    site = np.repeat(list(sizes), [10 * n for n in sizes.values()])
    groups = np.arange(len(site)) // 10
    p = rng.uniform(0.1, 0.9, len(site))
    y = (rng.random(len(site)) < p).astype(int)
    few = calibration_report(y, p, by=site, groups=groups, n_resamples=19)
    caveat = "Too few groups for a test, which needs 6: b (4 groups), c (1 group)."
    assert caveat in few.warnings
    assert caveat in " ".join(str(few).split())
    assert not any("25 groups" in text for text in few.warnings)


def test_a_part_of_the_groups_has_the_variance_of_these_alone():
    rng = np.random.default_rng(0)
    groups, p = np.repeat(np.arange(40), 5), rng.uniform(size=200)
    y = (rng.random(200) < p).astype(int)
    rows = np.flatnonzero(np.isin(groups, [3, 7, 8, 20, 21, 30, 38]))
    part = sample_of(read_sample(y, p, groups=groups), rows)
    with pytest.warns(UserWarning, match="groups holds 7 groups"):
        alone = read_sample(y[rows], p[rows], groups=groups[rows])
    assert part.groups.n_groups == 7
    terms = rng.normal(size=len(rows))
    assert part.groups.variance_of_sum(terms) == pytest.approx(alone.groups.variance_of_sum(terms))


def test_centres_that_are_one_group_each_have_no_interval_for_a_new_one():
    rng = np.random.default_rng(0)
    centre = np.repeat(np.arange(8), 100)
    p = rng.uniform(0.05, 0.6, 800)
    y = (rng.random(800) < p).astype(int)
    with pytest.warns(UserWarning, match="groups"):
        report = calibration_report(y, p, by={"centre": centre}, groups=centre, n_resamples=19)
    assert report.heterogeneity == []
    said = " ".join(str(report).split())
    assert "8 of 8 have too few groups for a test" in said
    assert "In a new subgroup" not in said
    assert "no evidence of miscalibration in any" not in said


@pytest.mark.parametrize("measure", ["O/E", "calibration slope", "C-statistic"])
def test_forest_plots_have_a_row_for_each_subgroup_and_for_a_new_one(measure):
    ax = report().plot_subgroups(measure)
    names = [part.name for part in report().subgroups]
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert [f"site = {name}" for name in shown[: len(names)]] == names
    assert shown[len(names) :] == ["a new site"]
    assert ax.get_xlabel() == measure
    new = next(one for one in report().heterogeneity if one.measure == measure)
    last = ax.collections[-1].get_segments()[0]
    assert last[:, 0] == pytest.approx([new.low, new.high])
    assert report().plot_subgroups(measure, ax=ax) is ax
    pyplot.close(ax.figure)


def test_forest_plots_refuse_what_they_cannot_draw():
    with pytest.raises(ValueError, match=r"measure='slope' is unknown. Use one of 'O/E', 'calib"):
        report().plot_subgroups("slope")
    alone = replace(report(), subgroups=[], heterogeneity=[])
    with pytest.raises(ValueError, match=r"Pass by=… and one event."):
        alone.plot_subgroups()


NAMES = ["Hôpital de la Croix-Rousse", "Universitätsklinikum Heidelberg Mitte", "St. Mary"]


@pytest.mark.parametrize("measure", ["O/E", "calibration slope", "C-statistic"])
@pytest.mark.parametrize("names", [NAMES, [f"s{k}" for k in range(3)]])
def test_long_names_of_rows_are_whole_and_no_text_of_a_forest_plot_covers_another(measure, names):
    figures = pytest.importorskip("matplotlib.figure")
    parts = [
        replace(part, name=f"hospital = {names[k % 3]}{'' if k < 3 else f' {k}'}")
        for k, part in enumerate(report().subgroups)
    ]
    shown = replace(report(), subgroups=parts)
    figure = figures.Figure((3.1, height_of_forest(shown)), layout="constrained")
    axis = figure.subplots()
    draw_forest(axis, shown, measure)
    figure.draw_without_rendering()
    labels = [
        label.get_text().replace("-\n", "-").replace("\n", " ") for label in axis.get_yticklabels()
    ]
    assert labels[:3] == names
    assert axis.get_ylabel() == "hospital"
    low, high = axis.get_xlim()
    ticks = [tick for tick in axis.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    assert len(ticks) >= 2
    for texts in ([tick.label1 for tick in ticks], axis.get_yticklabels()):
        boxes = [text.get_window_extent() for text in texts]
        assert not any(one.overlaps(other) for one, other in pairwise(boxes))
        assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)


@pytest.mark.parametrize(
    ("factors", "ticks"),
    [
        ((0.5, 0.8, 1, 1.2, 2), {"0.5", "1", "2"}),
        ((0.9, 0.95, 1, 1, 1.1), {"0.9", "1", "1.1"}),
        ((0.05, 0.2, 1, 5, 20), {"0.25", "1", "4"}),
        ((0, 0.5, 1, 1, 2), {"1"}),
    ],
)
def test_ratios_have_logarithmic_axes_with_plain_numbers_about_1(factors, ticks):
    """A ratio of 0 is marked at the end of the axis."""
    figures = pytest.importorskip("matplotlib.figure")
    parts = [
        replace(part, ratio=Measure(factor, 0.9 * factor, 1.1 * factor + 0.1))
        for part, factor in zip(report().subgroups, factors, strict=False)
    ]
    axis = figures.Figure((3.1, 3), layout="constrained").subplots()
    draw_forest(axis, replace(report(), subgroups=parts, heterogeneity=[]), "O/E")
    axis.figure.draw_without_rendering()
    assert axis.get_xscale() == "log"
    shown = [label.get_text() for label in axis.get_xticklabels()]
    assert ticks <= set(shown)
    assert [f"{float(text):g}" for text in shown] == shown
    low, high = axis.get_xlim()
    assert 0 < low < 1 < high
    marks = [line for line in axis.lines if line.get_marker() in "o<"]
    assert [mark.get_marker() for mark in marks] == ["o" if ratio else "<" for ratio in factors]
    places = [float(mark.get_xdata()[0]) for mark in marks]
    assert places == pytest.approx([ratio or low for ratio in factors])
    for texts in pairwise(label.get_window_extent() for label in axis.get_xticklabels()):
        assert not texts[0].overlaps(texts[1])


def test_subgroups_of_two_columns_keep_the_column_in_the_names_of_rows():
    figures = pytest.importorskip("matplotlib.figure")
    parts = [
        replace(part, name=f"{'sex' if k % 2 else 'site'} = {k}")
        for k, part in enumerate(report().subgroups)
    ]
    axis = figures.Figure().subplots()
    draw_forest(axis, replace(report(), subgroups=parts), "O/E")
    assert [label.get_text() for label in axis.get_yticklabels()][:2] == ["site = 0", "sex = 1"]
    assert axis.get_ylabel() == ""


def test_titles_of_panels_stay_inside_of_their_figures():
    pytest.importorskip("matplotlib.figure")
    part = report().subgroups[0].diagram
    panel = replace(part, label="hospital = Northgate General Hosp")
    figure = draw(
        ReliabilityDisplay([panel], notion="binary", method="bins", confidence_level=0.95)
    )
    figure.draw_without_rendering()
    box = figure.axes[0].title.get_window_extent()
    assert figure.axes[0].get_title().startswith("hospital = Northgate\nGeneral Hosp")
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
