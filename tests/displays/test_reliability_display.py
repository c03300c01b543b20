import numpy as np
import pytest
from display_cases import binary, fitted_search, tempered
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    KroneckerKernelRidge,
    PlugIn,
    TemperatureScaling,
)
from skcal.displays import ReliabilityDisplay
from skcal.displays.base import as_label
from skcal.displays.reliability import legend_without_bins
from skcal.hypothesis_tests import monte_carlo_test
from skcal.metrics import (
    bootstrap_interval,
    calibration_bins,
    cross_fitted_calibration_error,
    expected_calibration_error,
)

# Of ECE's interval, on the small samples here.
pytestmark = pytest.mark.filterwarnings("ignore:Too few outcomes are uncertain:UserWarning")


def numbers_of(y, proba, **options):
    options = {"random_state": 0, "plot": False, **options}
    return ReliabilityDisplay.from_predictions(y, proba, **options)


@pytest.mark.parametrize("strategy", ["uniform", "quantile", "sweep", "unique"])
@pytest.mark.parametrize("weighted", [False, True])
def test_points_are_the_filled_bins_and_error_is_the_metric(strategy, weighted):
    y, proba = binary(400)
    options = {"strategy": strategy, "n_bins": 12}
    if weighted:
        options["sample_weight"] = np.random.default_rng(1).integers(1, 4, len(y))
    [panel] = numbers_of(y, proba, **options).panels
    bins = calibration_bins(y, proba, **options)
    filled = bins.count > 0
    assert_array_equal(panel.count, bins.count[filled])
    assert_array_equal(panel.prediction, bins.prediction[filled, 0])
    assert_array_equal(panel.frequency, bins.frequency[filled, 0])
    assert_array_equal(panel.low, bins.low[filled, 0])
    assert_array_equal(panel.high, bins.high[filled, 0])
    assert_allclose(panel.error, expected_calibration_error(y, proba, **options), rtol=1e-12)
    assert panel.n_bins == len(bins)
    assert panel.histogram.sum() == panel.n_samples == len(y)


def test_null_error_is_a_quantile_of_the_monte_carlo_test():
    y, proba = binary(300)
    [panel] = numbers_of(y, proba, n_resamples=99, confidence_level=0.9).panels
    test = monte_carlo_test(y, proba, n_resamples=99, random_state=0)
    assert_allclose(panel.null_error, np.quantile(test.null_distribution, 0.9), rtol=1e-12)


def test_interval_of_the_error_is_the_bootstrap_of_the_metric():
    y, proba = binary(300)
    [panel] = numbers_of(y, proba, n_resamples=99).panels
    expected = bootstrap_interval(
        expected_calibration_error, y, proba, n_resamples=99, random_state=0
    )
    assert_allclose(panel.error_interval, (expected.low, expected.high), rtol=1e-10)


def test_a_panel_of_a_predicted_class_has_the_interval_of_its_rows_alone():
    y, proba = tempered()
    for k, panel in enumerate(numbers_of(y, proba, notion="top-label", n_resamples=99).panels):
        rows = proba.argmax(axis=1) == k
        expected = bootstrap_interval(
            expected_calibration_error,
            (y == k)[rows].astype(int),
            proba[rows, k],
            n_resamples=99,
            random_state=0,
        )
        assert_allclose(panel.error_interval, (expected.low, expected.high), rtol=1e-10)


@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise", "top-label"])
def test_the_error_without_bins_is_the_metric(notion):
    y, proba = binary(300) if notion == "binary" else tempered()
    panels = numbers_of(y, proba, notion=notion).panels
    for k, panel in enumerate(panels):
        facts = panel.without_bins
        assert facts["over"] + facts["under"] == pytest.approx(facts["estimate"])
        assert len(panels) == 1 or facts["estimate"] != panels[k - 1].without_bins["estimate"]
    if len(panels) == 1:
        expected = cross_fitted_calibration_error(y, proba, notion=notion, random_state=0)
        assert facts["estimate"] == expected


def test_the_legend_says_the_error_without_bins_and_its_side():
    y, proba = tempered()
    display = numbers_of(y, proba)
    facts = display.panels[0].without_bins
    text = display.plot().lines_[0].get_label()
    assert f"\nwithout bins {facts['estimate']:.3g} ± {facts['standard_error']:.3g} (s.e.)" in text
    assert facts["reading"].startswith("overconfident by 0.1")
    assert text.endswith(f"\n{facts['reading']}")


def test_a_million_samples_have_no_error_without_bins():
    proba = np.linspace(0, 1, 200_001)
    [panel] = numbers_of((proba > 0.5).astype(int), proba, n_resamples=19).panels
    assert panel.without_bins is None


def test_bands_hold_the_frequencies_of_calibrated_predictions():
    rng = np.random.default_rng(0)
    proba = rng.uniform(size=20_000)
    [panel] = numbers_of((rng.random(20_000) < proba).astype(int), proba, n_resamples=999).panels
    se = np.sqrt(panel.prediction * (1 - panel.prediction) / panel.count)
    assert_allclose((panel.band_high - panel.band_low) / (2 * 1.96 * se), 1, atol=0.15)
    # 15 bands of level 99.9 %, drawn once: false alarm about 1.5 %, with this seed none.
    outside = np.abs(panel.frequency - panel.prediction) > 3.3 * se
    assert not outside.any()


@pytest.mark.parametrize("notion", ["classwise", "top-label", "confidence"])
def test_panels_are_those_of_the_notion(notion):
    y, proba = tempered()
    names = np.array(["ant", "bee", "cat"])
    display = numbers_of(names[y], proba, notion=notion, name="Forest")
    top = proba.argmax(axis=1)
    if notion == "confidence":
        [panel] = display.panels
        assert panel.label == "Forest\nconfidence"
        assert_allclose(panel.error, expected_calibration_error(y, proba, labels=range(3)))
        return
    word = {"classwise": "class", "top-label": "predicted"}[notion]
    assert [p.label for p in display.panels] == [f"Forest\n{word} {name}" for name in names]
    for k, panel in enumerate(display.panels):
        rows = slice(None) if notion == "classwise" else top == k
        expected = expected_calibration_error((y == k)[rows].astype(int), proba[rows, k])
        assert_allclose(panel.error, expected, rtol=1e-12)


def test_classes_that_are_never_predicted_have_no_panel():
    proba = np.tile([0.6, 0.3, 0.1], (40, 1))
    display = numbers_of(np.arange(40) % 3, proba, notion="top-label")
    assert [panel.label for panel in display.panels] == ["predicted 0"]
    assert display.n_panels_left_out == 0


def test_of_many_classes_the_largest_errors_are_shown():
    y, proba = tempered(2000, n_classes=30)
    display = numbers_of(y, proba, notion="classwise", labels=range(30), n_resamples=19)
    errors = expected_calibration_error(
        y, proba, notion="classwise", labels=range(30), average=None
    )
    assert len(display.panels) == 12
    assert display.n_panels_left_out == 18
    assert_allclose(sorted(p.error for p in display.panels), np.sort(errors)[-12:])
    assert "12 of 30" in display.plot().figure_.get_suptitle()


@pytest.mark.parametrize("method", ["isotonic", "kernel-density", PlugIn(TemperatureScaling())])
def test_curves_and_bands_stay_in_the_unit_interval(method):
    y, proba = binary(150)
    [panel] = numbers_of(y, proba, method=method, n_resamples=19).panels
    for values in (panel.prediction, panel.frequency, panel.band_low, panel.band_high):
        assert values.shape == (201,)
        assert values.min() >= 0
        assert values.max() <= 1
    assert (panel.band_low <= panel.band_high).all()
    assert panel.count is None


def test_isotonic_curve_is_isotonic_regression():
    y, proba = binary(200)
    [panel] = numbers_of(y, proba, method="isotonic", n_resamples=19).panels
    expected = IsotonicRegression().fit(proba, y).predict(panel.prediction)
    assert_allclose(panel.frequency, expected, atol=1e-6)


def test_a_function_is_fitted_to_the_samples_and_not_changed():
    y, proba = binary(200)
    function = Binning(n_bins=7)
    [panel] = numbers_of(y, proba, method=function, n_resamples=19).panels
    fitted = Binning(n_bins=7).fit(proba[:, None], y - proba)
    expected = panel.prediction + fitted.residual(panel.prediction[:, None])[:, 0]
    assert_allclose(panel.frequency, np.clip(expected, 0, 1), atol=1e-9)
    assert not hasattr(function, "n_features_in_")
    assert panel.band_low is not None


def test_a_fitted_estimator_is_drawn_as_it_stands_and_has_no_band():
    y, proba = tempered()
    estimator = CalibrationErrorEstimator(Binning(5), "confidence", labels=range(3))
    estimator.fit(proba[:300], y[:300])
    display = numbers_of(y[300:], proba[300:], method=estimator, labels=range(3))
    [panel] = display.panels
    residual = estimator.functions_[0].residual(panel.prediction[:, None])[:, 0]
    assert_array_equal(panel.frequency, np.clip(panel.prediction + residual, 0, 1))
    assert panel.band_low is None
    assert display.plot().bands_ == [None]


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


def test_notions_of_vectors_name_what_to_do():
    y, proba = tempered()
    for notion in ("canonical", "top-2", lambda p: np.zeros(p.shape, dtype=int)):
        with pytest.raises(ValueError, match=r"'classwise' has a panel a class; SimplexDisplay"):
            numbers_of(y, proba, notion=notion)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"method": "splines"}, "method"),
        ({"n_bins": 0}, "n_bins"),
        ({"strategy": "median-variance"}, "strategy"),
        ({"n_resamples": 18}, "n_resamples"),
        ({"confidence_level": 95}, "confidence_level"),
        ({"random_state": "yes"}, "random_state"),
    ],
)
def test_bad_options_are_named(options, match):
    with pytest.raises(ValueError, match=match):
        numbers_of(*binary(50), **options)


def test_too_many_bins_to_draw_are_refused_before_drawing():
    y, proba = binary(1200)
    with pytest.raises(ValueError, match=r"1,200 bins .* more than the 1,000 .*method='isotonic'"):
        numbers_of(y, proba, strategy="unique")
    assert numbers_of(y, proba, strategy="unique", method="isotonic").panels[0].n_bins == 1200


def test_empty_and_tiny_bins_are_seen():
    proba = np.repeat([0.05, 0.55, 0.95], [100, 3, 100])
    y = np.random.default_rng(0).random(203) < proba
    display = ReliabilityDisplay.from_predictions(y.astype(int), proba, n_bins=10, random_state=0)
    [panel] = display.panels
    assert_allclose(panel.empty, [[0.1, 0.5], [0.6, 0.9]])
    assert_array_equal(panel.count, [100, 3, 100])
    assert len(display.lines_[0].get_xdata()) == 2  # filled markers
    texts = [text.get_text() for text in display.legends_[0].get_texts()]
    assert "fewer than 10 samples" in texts
    strip = display.ax_.child_axes[0]
    assert strip.get_yscale() == "log"
    assert_array_equal([bar.get_height() for bar in display.histograms_[0]], panel.histogram)


def test_the_legend_holds_the_error_its_interval_and_what_calibration_allows():
    y, proba = binary(300)
    display = ReliabilityDisplay.from_predictions(y, proba, random_state=0)
    [panel] = display.panels
    texts = " ".join(text.get_text() for text in display.legends_[0].get_texts())
    low, high = panel.error_interval
    assert f"ECE {panel.error:.3g} [{low:.3g}, {high:.3g}]" in texts
    assert f"95 % if calibrated, then ECE ≤ {panel.null_error:.3g}" in texts
    assert "n = 300, 15 uniform bins" in display.ax_.get_title()
    assert display.ax_.get_xlabel() == "predicted probability"


def test_the_legend_holds_a_name_that_matplotlib_would_leave_out():
    display = ReliabilityDisplay.from_predictions(*binary(300), random_state=0, name="_old")
    texts = [text.get_text() for text in display.legends_[0].get_texts()]
    assert any(text.startswith(" _old: ECE") for text in texts)


@pytest.mark.parametrize("method", ["bins", "isotonic"])
def test_several_classifiers_on_one_axes_differ_in_colour_and_legend(method, figures):
    from matplotlib.colors import same_color

    y, proba = binary(300)
    _, ax = figures.subplots()
    displays = [
        ReliabilityDisplay.from_predictions(
            y, proba**power, method=method, n_resamples=19, random_state=0, name=name, ax=ax
        )
        for name, power in [("tree", 1), ("forest", 1.5), ("logit", 0.5)]
    ]
    colours = [display.lines_[0].get_color() for display in displays]
    assert len(set(colours)) == 3
    for display, colour in zip(displays[1:], colours[1:], strict=True):
        [band] = display.bands_
        drawn = band.get_facecolor() if method == "isotonic" else band.get_color()
        assert same_color(drawn[0][:3], colour)
        assert same_color(display.histograms_[0][0].get_edgecolor(), colour)
    texts = [text.get_text() for text in displays[-1].legends_[0].get_texts()]
    for display, name in zip(displays, ["tree", "forest", "logit"], strict=True):
        error = f"{name}: ECE {display.panels[0].error:.3g} "
        assert sum(text.startswith(error) for text in texts) == 1
    assert any(text.startswith("forest: 95 % if calibrated") for text in texts)
    assert texts.count("fewer than 10 samples") <= 1
    assert ax.get_title() == "P(1)\nn = 300, 15 uniform bins"  # of no single classifier
    [strip] = ax.child_axes
    highest = max(display.panels[0].histogram.max() for display in displays)
    assert strip.get_ylim()[1] > highest
    assert displays[0].ax_ is ax


@pytest.mark.filterwarnings("ignore:Too few outcomes are uncertain for the interval")
@pytest.mark.parametrize("proba", [[0.5], [0.0, 1.0], [1.0, 1.0, 1.0], [0.3] * 30])
@pytest.mark.parametrize("method", ["bins", "isotonic", "kernel-density"])
def test_few_samples_and_constant_predictions_are_drawn(proba, method):
    y = np.arange(len(proba)) % 2
    display = ReliabilityDisplay.from_predictions(
        y, proba, method=method, n_resamples=19, random_state=0, labels=[0, 1]
    )
    display.figure_.draw_without_rendering()
    assert np.isfinite(display.panels[0].frequency).all()


def test_predictions_of_a_forest_lie_on_edges_and_are_drawn():
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    forest = RandomForestClassifier(10, random_state=0).fit(X[:150], y[:150])
    display = ReliabilityDisplay.from_estimator(
        forest, X[150:], y[150:], n_bins=10, random_state=0, plot=False
    )
    bins = calibration_bins(y[150:], forest.predict_proba(X[150:])[:, 1], n_bins=10)
    assert_array_equal(display.panels[0].histogram, bins.count)


def test_the_number_of_artists_does_not_grow_with_the_samples():
    def count(n):
        display = ReliabilityDisplay.from_predictions(
            *binary(n), method="isotonic", n_resamples=19, random_state=0
        )
        ax = display.ax_
        return len(ax.get_children()), len(display.lines_[0].get_xdata())

    assert count(200) == count(20_000)


def test_long_names_are_shortened_and_dollars_are_no_formula():
    assert as_label("a" * 20 + "b" * 20, 10) == "aaaaaa…bbb"
    assert as_label("5 $ and 6 $") == r"5 \$ and 6 \$"
    y, proba = tempered()
    names = np.array(["$x_1", "$\\frac$", "a\nvery long name " * 5])
    display = ReliabilityDisplay.from_predictions(
        names[y], proba, notion="classwise", labels=names, n_resamples=19, random_state=0
    )
    display.figure_.draw_without_rendering()
    assert max(len(panel.label) for panel in display.panels) <= 40


def test_float32_gives_the_picture_of_float64():
    y, proba = binary(300)
    grid = np.round(proba * 15) / 15
    one, other = (numbers_of(y, grid.astype(dtype)).panels[0] for dtype in (np.float32, np.float64))
    assert_array_equal(one.count, other.count)
    assert_allclose(one.frequency, other.frequency)
    assert_allclose(one.error, other.error, atol=1e-6)


def test_curves_of_many_predictions_are_fitted_to_groups_of_them():
    y, proba = binary(5000)
    [panel] = numbers_of(y, proba, method="isotonic", n_resamples=19).panels
    expected = IsotonicRegression().fit(proba, y).predict(panel.prediction)
    assert np.abs(panel.frequency - expected).mean() < 0.01


def test_the_legend_has_a_line_a_side_so_that_it_is_no_wider_than_the_axes():
    facts = {"estimate": 0.05, "standard_error": 0.01}
    facts["reading"] = "too high by 0.03 above 0.4, too low by 0.02 from 0.001 to 0.2"
    lines = legend_without_bins(facts).split("\n")
    assert lines[-2:] == ["too high by 0.03 above 0.4,", "too low by 0.02 from 0.001 to 0.2"]
