import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from display_cases import binary, fitted_search, tempered
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit
from scipy.stats import binned_statistic
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    KroneckerKernelRidge,
    PlugIn,
    Sample,
    TemperatureScaling,
)
from skcal._show import plain_number, pvalue_text
from skcal._validation import InputError
from skcal.displays import CalibrationCurveDisplay, RecalibrationDisplay, ReliabilityDisplay
from skcal.displays.axis import HEIGHTS, UNIT, padded_ends, strip_of
from skcal.displays.draw import as_label
from skcal.displays.reliability import as_percent
from skcal.displays.reliability_panel import bins_of_axis, make_panel
from skcal.hypothesis_tests import calibration_error_interval, scan_test
from skcal.metrics import calibration_bins, calibration_error, expected_calibration_error
from skcal.notions import Problem, make_problems
from skcal.report import Findings

BINS = {"n_bins": 15, "strategy": "uniform"}


def numbers_of(y, proba, **options):
    options = {"random_state": 0, "n_resamples": 99, "plot": False, **options}
    return ReliabilityDisplay.from_predictions(y, proba, **options)


@pytest.mark.parametrize("strategy", ["uniform", "quantile", "sweep", "unique"])
@pytest.mark.parametrize("weighted", [False, True])
def test_points_are_the_filled_bins(strategy, weighted):
    y, proba = binary(400)
    options = {"strategy": strategy, "n_bins": 12}  # another number than "auto"
    if weighted:
        proba = np.round(20 * proba) / 20  # on edges
        options["sample_weight"] = np.random.default_rng(1).integers(1, 4, len(y))
    [panel] = numbers_of(y, proba, **options).panels
    if strategy in ("sweep", "unique"):
        del options["n_bins"]
    bins = calibration_bins(y, proba, **options)
    filled = bins.count > 0
    assert_array_equal(panel.count, bins.count[filled])
    assert_array_equal(panel.prediction, bins.prediction[filled, 0])
    assert_array_equal(panel.frequency, bins.frequency[filled, 0])
    assert_array_equal(panel.low, bins.low[filled, 0])
    assert_array_equal(panel.high, bins.high[filled, 0])
    assert panel.n_bins == len(bins)
    assert panel.n_samples == len(y)
    equal = calibration_bins(y, proba, n_bins=40)
    assert_array_equal(panel.histogram.sum(axis=0), equal.count)
    events = np.histogram(proba[y == 1], panel.histogram_edges)[0] if not weighted else None
    assert weighted or assert_array_equal(panel.histogram[1], events) is None


@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise", "top-label"])
def test_the_number_is_the_calibration_error_with_its_limits(notion):
    y, proba = binary(200) if notion == "binary" else tempered(180)
    rows = np.arange(len(y))
    for options in ({"sample_weight": rows % 3 + 1.0}, {"groups": rows // 3}):
        panels = numbers_of(y, proba, notion=notion, n_resamples=59, **options).panels
        for k, panel in enumerate(panels):
            rows, given = slice(None), (y, proba, notion)
            if notion == "classwise":
                given = y == k, proba[:, k], "binary"
            elif notion == "top-label":
                rows = proba.argmax(axis=1) == k
                given = y[rows] == k, proba[rows, k], "binary"
            chosen = {name: value[rows] for name, value in options.items()}
            number = panel.number
            if len(panels) == 1:
                assert number == calibration_error_interval(*given[:2], notion=given[2], **chosen)
            assert number.estimate == calibration_error(*given[:2], notion=given[2], **chosen)
            assert number.low <= number.estimate <= number.high
            assert not panel.ranges or number.is_significant


def test_points_are_significant_in_ranges_that_the_test_names_and_nowhere_else():
    shown = coloured = 0
    for seed, power in itertools.product((0, 1, 3), (1, 1.5, 3)):
        y, proba = binary(400, seed)
        proba = proba**power / (proba**power + (1 - proba) ** power)
        [panel] = numbers_of(y, proba).panels
        test = scan_test(y, proba, n_resamples=99, random_state=0)
        assert panel.ranges == (test.ranges if panel.number.is_significant else [])
        x = panel.prediction[panel.significant]
        inside = [any(part.low <= value <= part.high for part in panel.ranges) for value in x]
        assert all(inside)
        low, high = panel.low[panel.significant], panel.high[panel.significant]
        assert ((x < low) | (high < x)).all()
        shown += len(panel.ranges) > 0
        coloured += len(x)
    assert 2 <= shown <= 7  # of 9, with these seeds
    assert coloured >= shown


@pytest.mark.slow
def test_bands_hold_the_probabilities_of_all_bins_at_once():
    rng, held = np.random.default_rng(0), 0
    for _ in range(300):
        proba = rng.beta(0.5, 3, size=500)
        truth = proba**1.2
        [problem] = make_problems(proba, (rng.random(500) < truth).astype(int), "binary")
        panel = make_panel("", problem)
        edges = ends_of_bins(proba, np.ones(500), panel.axis)
        means = binned_statistic(proba, truth, bins=edges).statistic
        held += ((panel.band_low <= means) & (means <= panel.band_high)).all()
    # Of 300 bands at level 95 % fewer than 264 hold with probability 1e-6.
    assert held >= 264


def test_bins_end_at_tenths_and_at_quantiles_of_the_samples():
    rng = np.random.default_rng(0)
    x = rng.beta(2, 3, 1000)
    edges = ends_of_bins(x, np.ones(1000), UNIT)
    tenths = np.arange(1, 10) / 10
    quantiles = np.quantile(x, np.arange(1, 7) / 7, method="hazen")
    for end in edges[1:-1]:  # each is the last prediction below one of them
        above = x[x > end].min()
        assert any(end <= mark <= above for mark in [*tenths, *quantiles])
    assert len(edges) - 1 <= 19
    counts = np.histogram(x, edges)[0]
    assert counts.min() >= 12
    assert np.histogram(x, np.linspace(0, 1, 11))[0].min() < 12  # so that some have joined


def ends_of_bins(x, weight, axis):
    return bins_of_axis(Problem(x[:, None], None, weight), axis)


def test_a_thin_bin_ends_at_tenths_of_the_axis():
    rng, n_avoided, fewest = np.random.default_rng(0), 0, 0.24 * 5000 / 10  # of ten quantiles
    for a, b in rng.uniform(0.5, 4, (50, 2)):
        x = np.sort(rng.beta(a, b, 5000))
        below = np.searchsorted(x, ends_of_bins(x, np.ones(5000), UNIT), side="right")
        tenths = np.searchsorted(x, np.arange(11) / 10, side="right")
        thin, at_tenth = np.diff(below) < fewest, np.isin(below, tenths)
        assert (at_tenth[:-1] & at_tenth[1:])[thin].all()
        both = np.union1d(tenths, np.arange(500, 5000, 500))
        n_avoided += np.count_nonzero(np.diff(both) < fewest) - np.count_nonzero(thin)
    assert n_avoided > 50


def test_equal_predictions_stay_together_and_few_distinct_ones_have_a_bin_each():
    ratings = np.repeat([0.0, 0.1, 0.1, 0.5, 1.0], 50)
    edges = ends_of_bins(ratings, np.ones(250), UNIT)
    assert_array_equal(edges, [0, 1e-38, 0.1, 0.5, 1])
    assert calibration_bins([0, 1] * 125, ratings, edges=edges).count.tolist() == [50, 100, 50, 50]
    assert_array_equal(ends_of_bins(np.full(9, 0.3), np.ones(9), UNIT), [0, 1])
    rare = np.append(ratings, [0.6] * 11)  # too few for a bin: they join the nearer neighbour
    assert_array_equal(ends_of_bins(rare, np.ones(261), UNIT), [0, 1e-38, 0.1, 0.6, 1])
    assert_array_equal(ends_of_bins(ratings, np.full(250, 7.0), UNIT), edges)


@pytest.mark.parametrize("scale", ["linear", "logit"])
def test_intervals_of_rare_events_lie_on_the_axis(scale):
    rng = np.random.default_rng(0)
    for n, shift in itertools.product((200, 3000), (0.5, 1, 2)):
        p = rng.beta(0.5, 40, n)
        y = rng.random(n) < shift * np.minimum(p, 0.4)
        panel = make_panel("", *make_problems(p, y.astype(int), "binary"), scale=scale)
        assert panel.axis.high < 1
        assert len(panel.count) >= (5 if n == 3000 else 1)
        assert panel.prediction.max() <= panel.axis.high
        assert panel.frequency[panel.frequency < 1].max() <= panel.axis.high
        if scale == "linear":
            assert panel.high[panel.count >= 0.02 * n].max() <= panel.axis.high


def test_nothing_is_drawn_across_a_gap_without_samples():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 0.2, 200), rng.uniform(0.7, 0.9, 200)])
    y = rng.random(400) < x
    for method in ("auto", "bins", "isotonic", "splines"):
        [panel] = numbers_of(y, x, method=method).panels
        middle = (panel.line_x > 0.25) & (panel.line_x < 0.65)
        assert middle.any()
        assert np.isnan(panel.line_y[middle]).all()
        assert np.isfinite(panel.line_y[(panel.line_x < 0.1) | (panel.line_x > 0.8)]).all()
    curve = CalibrationCurveDisplay.from_predictions(y, x)
    middle = (curve.curve.prediction > 0.25) & (curve.curve.prediction < 0.65)
    assert middle.any()
    assert np.isnan(curve.line_.get_ydata()[middle]).all()
    x[:40] = np.linspace(0.2, 0.7, 40)
    assert np.isfinite(numbers_of(y, x, method="splines").panels[0].line_y).all()


@pytest.mark.parametrize(
    ("model", "at_least"), [("naive Bayes", 5), ("logistic", 5), ("forest", 10)]
)
def test_classifiers_of_breast_cancer_have_points_to_be_read(model, at_least):
    X, y = load_breast_cancer(return_X_y=True)
    classifier = {
        "naive Bayes": GaussianNB(),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "forest": RandomForestClassifier(30, random_state=0),
    }[model]
    proba = cross_val_predict(classifier, X, y, cv=5, method="predict_proba")
    [panel] = numbers_of(y, proba).panels
    assert len(panel.count) >= at_least
    assert panel.count.min() >= 12
    assert panel.line == ("bins" if model == "naive Bayes" else "splines")


@pytest.mark.parametrize("notion", ["classwise", "top-label", "confidence"])
def test_panels_are_those_of_the_notion(notion):
    y, proba = tempered()
    names = np.array(["ant", "bee", "cat"])
    display = numbers_of(names[y], proba, notion=notion, name="Forest", **BINS)
    top = proba.argmax(axis=1)
    sides = {"confidence": ("wrong", "right"), "classwise": ("others", "in class")}
    assert {panel.sides for panel in display.panels} == {sides.get(notion, ("wrong", "right"))}
    if notion == "confidence":
        [panel] = display.panels
        assert panel.label == "Forest\nconfidence"
        return
    word = {"classwise": "class", "top-label": "predicted"}[notion]
    assert [p.label for p in display.panels] == [f"Forest\n{word} {name}" for name in names]
    for k, panel in enumerate(display.panels):
        rows = slice(None) if notion == "classwise" else top == k
        bins = calibration_bins((y == k)[rows].astype(int), proba[rows, k], **BINS)
        assert_array_equal(panel.count, bins.count[bins.count > 0])


def test_of_many_classes_the_largest_errors_are_shown():
    y, proba = tempered(300, n_classes=14)
    display = numbers_of(y, proba, notion="classwise", labels=range(14), **BINS)
    assert display.panels[0].number is None  # of some classes alone there is no test
    assert display._repr_html_().count(">–</td>") >= 12
    errors = expected_calibration_error(
        y, proba, notion="classwise", labels=range(14), average=None
    )
    largest = sorted(np.argsort(errors)[-12:])
    assert [panel.label for panel in display.panels] == [f"class {k}" for k in largest]
    assert display.n_panels_left_out == 2


def test_curves_stay_in_the_unit_interval_and_leave_points_alone():
    y, proba = binary(150)
    [expected] = numbers_of(y, proba).panels
    for method in ("isotonic", "kernel-density", PlugIn(TemperatureScaling())):
        [panel] = numbers_of(y, proba, method=method).panels
        assert len(panel.line_x) >= 401
        for values in (panel.line_x, panel.line_y):
            assert np.nanmin(values) >= 0
            assert np.nanmax(values) <= 1
        assert_array_equal(panel.frequency, expected.frequency)


def test_a_function_is_fitted_to_the_samples_and_not_changed():
    y, proba = binary(200)
    function = Binning(n_bins=7)
    [panel] = numbers_of(y, proba, method=function, n_resamples=99).panels
    fitted = Binning(n_bins=7).fit(proba[:, None], y - proba)
    expected = panel.line_x + fitted.residual(panel.line_x[:, None])[:, 0]
    assert_allclose(panel.line_y, np.clip(expected, 0, 1), atol=1e-9)
    assert not hasattr(function, "n_features_in_")


def test_a_fitted_estimator_is_drawn_as_it_stands():
    y, proba = tempered()
    estimator = CalibrationErrorEstimator(Binning(5), "confidence", labels=range(3))
    estimator.fit(proba[:300], y[:300])
    display = numbers_of(y[300:], proba[300:], method=estimator, labels=range(3))
    [panel] = display.panels
    residual = estimator.functions_[0].residual(panel.line_x[:, None])[:, 0]
    assert_array_equal(panel.line_y, np.clip(panel.line_x + residual, 0, 1))


def test_a_search_needs_the_notion_the_classes_and_a_residual():
    y, proba = tempered()
    search = fitted_search()
    with pytest.raises(ValueError, match="fitted for the notion 'confidence'"):
        numbers_of(y, proba, notion="classwise", method=search)
    with pytest.raises(ValueError, match="fitted for the classes"):
        numbers_of(np.array(["a", "b", "c"])[y], proba, method=search)
    kronecker = CalibrationErrorSearchCV(
        [(KroneckerKernelRidge(), {}), (Binning(), {})], "confidence", labels=range(3)
    ).fit(proba, y)
    kronecker.best_estimator_ = CalibrationErrorEstimator(
        KroneckerKernelRidge(), "confidence", labels=range(3)
    ).fit(proba, y)
    with pytest.raises(ValueError, match=r"method=search\.one_step_function_"):
        numbers_of(y, proba, method=kronecker)
    with pytest.raises(ValueError, match="has no residual"):
        numbers_of(y, proba, method=KroneckerKernelRidge())


def test_notions_of_vectors_and_too_many_bins_name_what_to_do():
    for notion in ("canonical", "top-2", lambda p: np.zeros(p.shape, dtype=int)):
        with pytest.raises(ValueError, match=r"'classwise' has a panel a class; SimplexDisplay"):
            numbers_of(*tempered(), notion=notion)
    with pytest.raises(ValueError, match=r"1,200 bins .* more than the 1,000 .*n_bins='auto'"):
        numbers_of(*binary(1200), strategy="unique", n_bins=15)


def test_title_legend_and_labels_say_what_is_drawn():
    y, proba = binary(300)
    for power in (1.5, 4):
        p = proba**power / (proba**power + (1 - proba) ** power)
        display = numbers_of(y, p).plot()
        [panel] = display.panels
        texts = [text.get_text() for text in display.legends_[0].get_texts()]
        shaded = ["significant miscalibration"] if panel.ranges else []
        assert texts == ["bins, 95 % intervals", "smooth curve", *shaded]
        assert len(display.ranges_[0]) == len(panel.ranges)
        number = panel.number
        limits = [f"≤ {plain_number(number.high)}"]
        if number.low > 0:
            limits.insert(0, f"≥ {plain_number(number.low)}")
        elif number.is_significant:
            limits.insert(0, pvalue_text(number.pvalue, number.pvalue))
        brief = f"error {plain_number(number.estimate)} ({', '.join(limits)})"
        assert display.ax_.get_title() == f"P(1)\n{brief}"
        assert display.ax_.get_xlabel().split("\n") == ["predicted probability", HEIGHTS]
        assert display.ax_.get_ylabel() == "observed frequency"
    display = numbers_of(*tempered()).plot()
    assert display.ax_.get_xlabel() == f"confidence\n{HEIGHTS}"
    assert display.ax_.get_ylabel() == "accuracy"


def test_histograms_mirror_both_outcomes_with_their_names_and_numbers():
    y, proba = binary(300)
    names = np.array(["well", "ill"])
    display = numbers_of(names[y], proba, labels=names).plot()
    [panel] = display.panels
    down, up = display.histograms_[0]
    for bars, side, sign in ((up, 1, 1), (down, 0, -1)):
        counts = np.histogram(proba[y == side], panel.histogram_edges)[0]
        assert_array_equal(panel.histogram[side], counts)
        assert_allclose(bars.get_data().values, sign * np.sqrt(counts))
    [strip] = display.ax_.child_axes
    well, ill = panel.histogram.sum(axis=1)
    said = [text.get_text() for text in strip.get_yticklabels()]
    assert said == [f"{well:g} well", f"{ill:g} ill"]
    numbers_of(names[y], proba**2, labels=names).plot(ax=display.ax_)
    assert [text.get_text() for text in strip.get_yticklabels()] == said
    numbers_of(names[y[:200]], proba[:200], labels=names).plot(ax=display.ax_)
    assert [text.get_text() for text in strip.get_yticklabels()] == ["well", "ill"]


def test_events_of_shares_are_their_sum():
    shares = np.tile([[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]], (21, 1))
    display = numbers_of(shares, np.linspace(0.1, 0.9, 63), n_resamples=19).plot()
    [strip] = display.ax_.child_axes
    events = [text.get_text() for text in strip.get_yticklabels()]
    assert events == ["26.2 non-events", "36.8 events"]  # 21 · 1.25 and 21 · 1.75


def test_numbers_have_the_digits_of_their_standard_error_and_no_exponent():
    assert list(map(as_percent, (0, 1, 0.46789, 1.2345e-6))) == ["0", "100", "46.8", "0.000123"]


def test_several_classifiers_on_one_axes_differ_in_colour_and_legend(figures):
    from matplotlib.colors import same_color

    y, proba = binary(300)
    _, ax = figures.subplots()
    classifiers = [("tree", 1, "bins"), ("forest", 1.5, "isotonic"), ("logit", 0.5, "bins")]
    displays = [
        numbers_of(y, proba**power, method=method, name=name).plot(ax=ax)
        for name, power, method in classifiers
    ]
    colours = [display.lines_[0].get_color() for display in displays]
    assert len(set(colours)) == 3
    for display, colour in zip(displays, colours, strict=True):
        assert all(same_color(rgba[:3], colour) for rgba in display.intervals_[0].get_color())
    for display, colour in zip(displays[1:], colours[1:], strict=True):
        assert same_color(display.histograms_[0][0].get_edgecolor(), colour)
    texts = [text.get_text() for text in displays[-1].legends_[0].get_texts()]
    assert [text.split(":")[0] for text in texts[:-1]] == ["tree", "forest", "logit"]
    kinds = [text.split(", ")[1] for text in texts[:-1]]
    assert kinds == ["bins joined", "isotonic regression", "bins joined"]
    assert texts[-1] == "bins, 95 % intervals"
    assert ax.get_title() == "P(1)"  # of no single classifier
    [strip] = ax.child_axes
    highest = max(display.panels[0].histogram.max() for display in displays)
    assert strip.get_ylim()[1] > np.sqrt(highest)
    with pytest.raises(ValueError, match="scale='linear', this one has 'logit'"):
        numbers_of(y, proba, scale="logit").plot(ax=ax)
    assert displays[0].ax_ is ax


def test_shading_and_its_legend_go_when_a_second_classifier_comes(figures):
    y, proba = tempered(temperature=3.0)
    first = numbers_of(y, proba).plot()
    assert first.ranges_[0]
    figure = first.figure_
    second = numbers_of(y, np.sqrt(proba) / np.sqrt(proba).sum(axis=1, keepdims=True))
    second.plot(ax=first.ax_)
    assert first.ranges_ == second.ranges_ == [[]]
    assert len(first.ax_.patches) == 0
    [legend] = figure.legends
    assert "significant miscalibration" not in [one.get_text() for one in legend.get_texts()]


def test_points_beyond_the_first_axis_are_placed_anew_on_the_longer_one_of_the_second(figures):
    rng = np.random.default_rng(0)
    true = expit(rng.normal(-5, 1, 40_000))
    y, high = (rng.random(40_000) < true).astype(int), expit(logit(true) + 3)
    display = numbers_of(y, high, scale="logit", n_resamples=19).plot()
    [panel] = display.panels
    below = panel.frequency < panel.axis.low
    assert below.any()
    assert "below the axis" in [one.get_text() for one in display.legends_[0].get_texts()]
    second = numbers_of(y, true, scale="logit", n_resamples=19).plot(ax=display.ax_)
    low = second.panels[0].axis.low
    assert display.ax_.get_xlim() == padded_ends(panel.axis.joined(second.panels[0].axis))
    assert low < panel.frequency[below].max() < panel.axis.low
    drawn = np.concatenate([one.get_offsets()[:, 1] for one in display.points_[0]])
    assert_allclose(np.sort(drawn), np.sort(np.maximum(panel.frequency, low)))
    assert_allclose(display.lines_[0].get_ydata(), panel.line_y)
    lower = [segment[0, 1] for segment in display.intervals_[0].get_segments()]
    assert_allclose(lower, np.maximum(panel.low, low))


@pytest.mark.parametrize("proba", [[0.5], [0.0, 1.0], [1.0, 1.0, 1.0], [0.3] * 30])
def test_few_samples_and_constant_predictions_are_drawn(proba, figures):
    y = np.arange(len(proba)) % 2
    figure, ax = figures.subplots()
    for method in ("bins", "isotonic", "kernel-density"):
        display = numbers_of(y, proba, method=method, labels=[0, 1]).plot(ax=ax)
        assert np.isfinite(display.panels[0].frequency).all()
    figure.draw_without_rendering()


def test_the_number_of_artists_does_not_grow_with_the_samples():
    def count(n):
        display = numbers_of(*binary(n), method="isotonic", n_resamples=19).plot()
        ax = display.ax_
        n_ranges = len(display.panels[0].ranges)
        return len(ax.get_children()) - n_ranges, len(display.lines_[0].get_xdata())

    assert np.abs(np.subtract(count(200), count(5_000))).max() <= 20  # bins


def test_long_names_are_shortened_and_dollars_are_no_formula():
    assert as_label("a" * 20 + "b" * 20, 10) == "aaaaaa…bbb"
    assert as_label("5 $ and 6 $") == r"5 \$ and 6 \$"
    y, proba = tempered()
    names = np.array(["$x_1", "$\\frac$", "a\nvery long name " * 5])
    display = numbers_of(names[y], proba, notion="classwise", labels=names)
    assert max(len(panel.label) for panel in display.panels) <= 40


def test_curves_of_many_predictions_are_fitted_to_groups_of_them():
    y, proba = binary(5000)
    [panel] = numbers_of(y, proba, method="isotonic", n_resamples=99).panels
    expected = IsotonicRegression().fit(proba, y).predict(panel.line_x)
    assert np.abs(panel.line_y - expected).mean() < 0.01


@pytest.mark.parametrize("display", [ReliabilityDisplay, CalibrationCurveDisplay])
def test_no_line_leads_from_predictions_of_exactly_0_or_1_to_the_others(display):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 600)
    p[:100], p[100:200] = 0, 1
    y = (rng.random(600) < np.clip(p, 0.1, 0.9)).astype(int)
    shown = display.from_predictions(y, p)
    lines = shown.lines_ if display is ReliabilityDisplay else [shown.line_]
    for x, y in (line.get_data() for line in lines):
        assert np.isnan(y[(x > 0) & (x < 0.2)]).all()
        assert np.isnan(y[(x > 0.8) & (x < 1)]).all()
        assert np.isfinite(y[(x > 0.3) & (x < 0.7)]).all()


def test_names_of_columns_before_or_after_tell_the_classes_of_both():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=200)
    y = np.where(rng.uniform(size=200) < p, "yes", "no")
    before, after = (np.column_stack([q, 1 - q]) for q in (p, p**1.2))
    named = [pd.DataFrame(proba, columns=["yes", "no"]) for proba in (before, after)]
    draw = partial(RecalibrationDisplay.from_predictions, y, plot=False, n_resamples=19)
    expected = draw(before, after, labels=["yes", "no"])
    for given in (named, (named[0], after), (before, named[1])):
        found = draw(*given)
        for part in ("before", "after"):
            [panel], [own] = getattr(found, part).panels, getattr(expected, part).panels
            assert panel.number == own.number
    single = draw(named[0], 1 - p**1.2)  # the second class is the event
    assert single.after.panels[0].number == expected.after.panels[0].number
    with pytest.raises(InputError, match=r"y_after has the columns .*same order"):
        draw(named[0], named[1][["no", "yes"]])
    with pytest.raises(InputError, match="1-D y_before is unknown"):
        draw(1 - p, named[1])


def arrows_of(display):
    """Which arrows the axes have, by their shape, and which the legend has."""
    drawn = set()
    for ax in np.atleast_1d(display.ax_):
        [part] = ax._skcal_drawn
        for scatter in (*part.cuts, *part.points):
            for path in scatter.get_paths() if len(scatter.get_offsets()) else ():
                tip = path.vertices[np.abs(path.vertices[:, 0]).argmin(), 1]
                drawn |= {"^" if tip > 0 else "v"} if len(path.vertices) < 6 else set()
    handles = display.legends_[0].legend_handles
    explained = {one.get_marker() for one in handles if hasattr(one, "get_marker")}
    return drawn, explained & {"^", "v"}


@pytest.mark.parametrize(("reflected", "beyond"), [(False, {"^"}), (True, {"v"}), (None, set())])
def test_the_legend_has_the_arrows_that_are_drawn(reflected, beyond, figures):
    """An interval may go on above the axis of rare events, and below that of sure predictions."""
    rng = np.random.default_rng(0)
    p = np.append(rng.uniform(0, 0.05, 4000), np.full(30, 0.14))
    y = np.append(rng.random(4000) < p[:4000], np.arange(30) < 4).astype(int)
    edges = [0, 0.02, 0.1, 0.9, 0.98, 1]
    if reflected is None:
        p, y = rng.random(400), np.arange(400) % 2
    elif reflected:
        p, y = 1 - p, 1 - y
    display = numbers_of(y, p, edges=edges, method="bins").plot()
    assert arrows_of(display) == (beyond, beyond)


@pytest.mark.parametrize("digits", [1, 2, 17])
@pytest.mark.parametrize("seed", [0, 2])
def test_shaded_ranges_are_those_of_a_report(digits, seed):
    """Rounded zeros that happen are no range of their own in either."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.5, 6, 5000)
    y = (rng.random(5000) < 1.25 * p).astype(int)
    [panel] = numbers_of(y, p.round(digits), n_resamples=None).panels
    found = Findings.of(Sample(y, p.round(digits)))
    assert panel.ranges == found.ranges != []


@pytest.mark.parametrize(
    ("changed", "limits"),
    [
        ({"low": 0.01, "pvalue": 0.001}, "≥ 0.010, ≤ 0.082"),
        ({"low": 0.0, "pvalue": 0.02}, "> 0, ≤ 0.082"),
        ({"low": 0.0, "pvalue": 0.2}, "≤ 0.082"),
    ],
)
def test_a_title_has_the_error_and_its_limits_alone(changed, limits, figures):
    """A p-value beside two limits would look like a third one."""
    [panel] = numbers_of(*binary(300)).panels
    number = replace(panel.number, estimate=0.05, high=0.082, **changed)
    display = ReliabilityDisplay([replace(panel, number=number)], notion="binary", method="bins")
    assert display.plot().ax_.get_title().split("\n")[1] == f"error 0.050 ({limits})"


def test_each_of_several_panels_has_its_own_counts(figures):
    """Names of sides stand in the first column alone; counts of other panels are others."""
    y, proba = tempered(n_classes=5, n_samples=300)
    display = numbers_of(y, proba, notion="classwise").plot()
    counts = [[label.get_text() for label in strip_of(ax).get_yticklabels()] for ax in display.ax_]
    for k, (ax, shown) in enumerate(zip(display.ax_, counts, strict=True)):
        others, held = np.count_nonzero(y != k), np.count_nonzero(y == k)
        first = ax.get_subplotspec().is_first_col()
        assert shown == [f"{others}{' others' * first}", f"{held}{' in class' * first}"]
        assert (ax.get_ylabel() == "") != first


@pytest.mark.parametrize("rarest", [0.01, 0.3])
def test_rare_classes_have_axes_of_their_own(rarest, figures):
    """Beside a frequent class they would lie in a corner; similar classes share the axis."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(20 * np.array([rarest, 0.3, 0.7 - rarest]), 2000)
    y = (proba.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    display = numbers_of(y, proba, notion="classwise", n_resamples=19).plot()
    axes = [panel.axis for panel in display.panels]
    spans = [axis.high - axis.low for axis in axes]
    apart = rarest < 0.1
    assert (max(spans) > 3 * min(spans)) == apart
    for ax, axis in zip(display.ax_, axes, strict=True):
        assert ax.get_xlim() == ax.get_ylim() == padded_ends(axis if apart else display.axis)
        shown = [tick.label1.get_visible() for tick in ax.yaxis.get_major_ticks()]
        assert all(shown) == (apart or ax.get_subplotspec().is_first_col())
