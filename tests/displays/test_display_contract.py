"""What every display promises."""

import copy
import functools
import re
import sys

import matplotlib as mpl
import numpy as np
import pytest
from display_cases import (
    CASES,
    binary,
    comparison,
    fitted_search,
    null_result,
    segments,
    tempered,
)
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from skcal import Binning, CalibrationErrorSearchCV
from skcal.displays import (
    BiasCurveDisplay,
    BinCountDisplay,
    ComparisonDisplay,
    MonitorDisplay,
    NullDistributionDisplay,
    ReliabilityDisplay,
    RiskDisplay,
    SegmentDisplay,
    SimplexDisplay,
)
from skcal.hypothesis_tests.bias_curve import BiasCurve
from skcal.metrics.curve import CalibrationCurve
from skcal.metrics.selective import CoverageAtRisk, RiskCoverageCurve
from skcal.metrics.thresholds import DecisionCurve, MurphyDiagram

RESULTS = (
    BiasCurve
    | CalibrationCurve
    | CoverageAtRisk
    | DecisionCurve
    | MurphyDiagram
    | RiskCoverageCurve
)
EVERY = pytest.mark.parametrize(("make", "n_panels"), CASES.values(), ids=CASES)


@functools.cache
def computed(make):
    return make(plot=False)


def drawn(make, **options):
    """A display of each kind in its figure, whose numbers were computed once for all tests."""
    return copy.copy(computed(make)).plot(**options)


@EVERY
def test_a_seed_gives_the_same_numbers_with_and_without_matplotlib(make, n_panels, monkeypatch):
    before = numbers(computed(make))
    names = [name for name in sys.modules if name.split(".")[0] == "matplotlib"]
    for name in {*names, "matplotlib", "matplotlib.pyplot"}:
        monkeypatch.setitem(sys.modules, name, None)
    display = make(plot=False)
    assert before
    for one, other in zip(before, numbers(display), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not hasattr(display, "figure_")
    with pytest.raises(ImportError, match="pip install matplotlib"):
        display.plot()


@EVERY
def test_without_axes_a_figure_is_made_that_holds_all_and_changes_no_number(
    make, n_panels, figures
):
    """With a name, options of the main artist and settings of the user."""
    display = copy.copy(computed(make))
    before = numbers(display)
    assert figures.get_fignums() == []
    assert not hasattr(display, "figure_")
    with mpl.rc_context({"axes.facecolor": "yellow", "font.size": 12}):
        assert display.plot(name="another name", alpha=0.25) is display
    assert repr(display) == repr(computed(make))
    axes = np.atleast_1d(display.ax_)
    assert len(axes) == n_panels
    assert all(axis.get_facecolor() == (1, 1, 0, 1) for axis in axes)
    assert all("another name" in axis.get_title() for axis in axes)
    artists = [artist for axis in axes for artist in axis.get_children()]
    assert any(artist.get_alpha() == 0.25 for artist in artists)
    assert len(figures.get_fignums()) == 1
    figure = figures.gcf()
    assert display.figure_ is figure
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert width <= 10  # that of a notebook
    assert min(box.x0, box.y0) > -0.05
    assert box.x1 < width + 0.05
    assert box.y1 < height + 0.05
    for name in [name for name in vars(display) if name.endswith("_")]:
        delattr(display, name)
    for one, other in zip(before, numbers(display), strict=True):
        np.testing.assert_array_equal(one, other)


@EVERY
def test_given_axes_are_used_and_no_others_and_all_fits(make, n_panels, figures):
    figure, axes = figures.subplots(1, n_panels + 1, figsize=(6.4 * (n_panels + 1), 4.8))
    display = drawn(make, ax=axes[0] if n_panels == 1 else axes[:n_panels])
    assert display.figure_ is figure
    assert figures.get_fignums() == [figure.number]
    assert all(ax.has_data() for ax in axes[:n_panels])
    assert not axes[n_panels].has_data()
    assert not axes[n_panels].get_title()
    assert figure.axes == [*axes]  # colour bars and histograms are children of their axes
    match = f"{n_panels + 1} axes, the display has {n_panels} panel.* leave ax out"
    with pytest.raises(ValueError, match=match):
        display.plot(ax=axes)
    figure.draw_without_rendering()
    boxes = np.array([ax.get_tightbbox().extents for ax in axes])
    assert (boxes[:, :2] >= -1).all()
    assert (boxes[:, 2:] <= figure.bbox.size + 1).all()
    assert (boxes[:-1, 2] <= boxes[1:, 0] + 1).all()  # panels do not cover each other


def test_axes_of_equal_aspect_fit_into_a_low_figure(figures):
    figure, axes = figures.subplots(1, 3, figsize=(13, 5))
    for ax in axes[:2]:
        drawn(CASES["reliability"][0], ax=ax, name="a name above the facts")
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert box.y0 >= 0
    assert box.y1 <= 5


def test_two_displays_stand_on_one_figure(figures):
    figure, (one, other) = figures.subplots(2, 1, figsize=(6.4, 9.6))
    drawn(CASES["reliability"][0], ax=one)
    drawn(CASES["null"][0], ax=other)
    figure.draw_without_rendering()
    assert one.get_tightbbox().y0 >= other.get_tightbbox().y1 - 1


def test_axes_that_were_placed_by_hand_stay_and_an_engine_too(figures):
    figure = figures.figure()
    ax = drawn(CASES["reliability"][0], ax=figure.add_axes([0.1, 0.2, 0.6, 0.7])).ax_
    figure.draw_without_rendering()
    np.testing.assert_allclose(ax.get_position(original=True).bounds, [0.1, 0.2, 0.6, 0.7])
    figure, ax = figures.subplots(layout="tight")
    drawn(CASES["reliability"][0], ax=ax)
    assert type(figure.get_layout_engine()).__name__ == "TightLayoutEngine"
    part = figures.figure(layout=None).subfigures(1, 2)[0]
    drawn(CASES["reliability"][0], ax=part.subplots())
    assert part.get_layout_engine() is not None


@EVERY
def test_a_wrong_ax_is_refused_with_a_remedy(make, n_panels):
    with pytest.raises(ValueError, match="leave ax out"):
        drawn(make, ax=["not axes"] * n_panels)


@EVERY
def test_a_display_says_in_one_line_what_it_holds(make, n_panels):
    display = computed(make)
    shown = repr(display)
    assert re.fullmatch(rf"{type(display).__name__}\(.*\d.*\)", shown)
    assert len(shown) <= 120
    assert "object at" not in shown
    result = getattr(display, "curve", getattr(display, "diagram", display))
    if hasattr(result, "notion"):
        assert str(result.notion) in shown
    if hasattr(result, "n_samples"):
        assert f"n = {result.n_samples:,}" in shown


def numbers(thing):
    """Every number in a display and its parts, in order."""
    if isinstance(thing, np.ndarray) and thing.dtype.kind == "f":
        return [thing]
    if isinstance(thing, float):
        return [np.array(thing)]
    if isinstance(thing, list | tuple):
        return [number for part in thing for number in numbers(part)]
    of_display = type(thing).__module__.startswith("skcal.displays")
    if of_display or isinstance(thing, RESULTS):
        return [number for part in vars(thing).values() for number in numbers(part)]
    return []


def iris_like():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    return rng.normal(size=(300, 2)) + np.array([[0, 0], [2, 0], [0, 2]])[y], np.array(list("abc"))[
        y
    ]


@pytest.mark.parametrize("display", [ReliabilityDisplay, SimplexDisplay, BinCountDisplay])
def test_from_estimator_is_from_predictions_with_its_classes(display):
    X, y = iris_like()
    classifier = LogisticRegression().fit(X, y)
    options = {"plot": False}
    if display is not SimplexDisplay:
        options["random_state"] = 0
    one = display.from_estimator(classifier, X, y, **options)
    other = display.from_predictions(
        y, classifier.predict_proba(X), labels=["a", "b", "c"], **options
    )
    for a, b in zip(numbers(one), numbers(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_from_estimator_takes_the_positive_class_of_two():
    X, y = iris_like()
    X, y = X[y != "c"], y[y != "c"]
    classifier = LogisticRegression().fit(X, y)
    proba = classifier.predict_proba(X)
    options = {"random_state": 0, "plot": False}
    second = ReliabilityDisplay.from_estimator(classifier, X, y, **options).panels[0]
    first = ReliabilityDisplay.from_estimator(classifier, X, y, pos_label="a", **options).panels[0]
    assert second.label.endswith("P(b)")
    assert first.label == "LogisticRegression\nP(a)"
    expected = ReliabilityDisplay.from_predictions(
        (y == "a").astype(int), proba[:, 0], **options
    ).panels[0]
    assert first.error == expected.error
    with pytest.raises(ValueError, match="pos_label='z' is not one of two classes"):
        ReliabilityDisplay.from_estimator(classifier, X, y, pos_label="z", plot=False)


def test_bad_predictions_are_refused_as_by_the_metrics():
    y, proba = tempered()
    for display in (ReliabilityDisplay, SimplexDisplay, BinCountDisplay):
        with pytest.raises(ValueError, match=r"y_proba row 0 sums to 2"):
            display.from_predictions(y, 2 * proba)
    y, proba = binary(20)
    for display in (ReliabilityDisplay, BinCountDisplay):
        with pytest.raises(ValueError, match="y_true"):
            display.from_predictions(y[:-1], proba)
    X, y = iris_like()
    with pytest.raises(ValueError, match="has no predict_proba"):
        ReliabilityDisplay.from_estimator(LinearSVC().fit(X, y), X, y)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: NullDistributionDisplay.from_result(0.05), "result is float. Pass what a test"),
        (lambda: SegmentDisplay.from_result(null_result()), "Pass what segment_test returned"),
        (lambda: BiasCurveDisplay.from_result(null_result()), "Pass what bias_curve returned"),
        (lambda: MonitorDisplay.from_monitor(3), "monitor is int. Pass a CalibrationMonitor"),
        (lambda: RiskDisplay.from_search(Binning()), "search is Binning. Pass a fitted"),
        (
            lambda: ComparisonDisplay.from_searches({"x": Binning()}),
            r"searches\['x'\] is Binning. Pass a fitted",
        ),
        (
            lambda: ComparisonDisplay.from_searches({"x": fitted_search()}, {"x": 0.1}),
            r"tests\['x'\] is float. Pass what a test",
        ),
        (lambda: RiskDisplay.from_search(CalibrationErrorSearchCV()), "not fitted"),
        (
            lambda: ComparisonDisplay.from_searches({"x": CalibrationErrorSearchCV()}),
            "not fitted",
        ),
    ],
)
def test_other_objects_are_refused_with_what_to_pass(make, match):
    with pytest.raises(ValueError if match == "not fitted" else TypeError, match=match):
        make()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda **o: RiskDisplay.from_search(fitted_search(), **o), "confidence_level"),
        (lambda **o: comparison(**o), "confidence_level"),
        (lambda **o: comparison(**o), "level"),
        (lambda **o: SegmentDisplay.from_result(segments(), **o), "level"),
    ],
)
def test_levels_outside_0_and_1_are_refused(make, name):
    with pytest.raises(
        ValueError, match=rf"'{name}' parameter .* must be a float in the range \(0.0, 1.0\)"
    ):
        make(**{name: 5})
