"""What every display promises."""

import copy
import functools
import inspect
import re
import sys
from dataclasses import is_dataclass

import matplotlib as mpl
import numpy as np
import pytest
from display_cases import CASES, binary, tempered
from matplotlib.text import Text
from numpy.testing import assert_allclose
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_predict, cross_validate
from sklearn.svm import LinearSVC

from skcal import Binning, CalibrationErrorSearchCV, displays
from skcal._validation import InputError

EVERY = pytest.mark.parametrize(("make", "n_panels"), CASES.values(), ids=CASES)


@pytest.mark.parametrize(
    "display", [one for one in vars(displays).values() if hasattr(one, "from_predictions")]
)
def test_logits_are_the_probabilities_that_they_make(display):
    parameters = inspect.signature(display.from_predictions).parameters
    if "from_logits" not in parameters:
        return
    y, proba = tempered() if display is displays.SimplexDisplay else binary(300)
    options = {"n_resamples": 19, "random_state": 0, "plot": False}
    options = {name: value for name, value in options.items() if name in parameters}
    logits = np.log(proba) if proba.ndim == 2 else logit(proba)
    after = [proba**2] if "y_after" in parameters else []
    shown = display.from_predictions(y, logits, *after, from_logits=True, **options)
    expected = display.from_predictions(y, proba, *after, **options)
    assert repr(shown) == repr(expected)
    for of_logits, of_proba in zip(numbers(shown), numbers(expected), strict=True):
        assert_allclose(of_logits, of_proba, rtol=1e-6, atol=1e-9)


@functools.cache
def computed(make):
    return make(plot=False)


def test_every_public_display_is_tried():
    tried = {type(computed(make)).__name__ for make, _ in CASES.values()}
    assert tried == set(displays.__all__) - {"ReliabilityPanel"}


def drawn(make, **options):
    """A display of each kind in its figure, whose numbers were computed once for all tests."""
    return copy.copy(computed(make)).plot(**options)


@EVERY
def test_a_seed_gives_the_same_numbers_with_and_without_matplotlib(make, n_panels, monkeypatch):
    names = [name for name in sys.modules if name.split(".")[0] == "matplotlib"]
    for name in {*names, "matplotlib", "matplotlib.pyplot"}:
        monkeypatch.setitem(sys.modules, name, None)
    display = make(plot=False)
    assert_same_numbers(display, computed(make))
    assert not hasattr(display, "figure_")
    with pytest.raises(ImportError, match="pip install matplotlib"):
        display.plot()


@EVERY
def test_without_axes_a_figure_is_made_that_holds_all_and_changes_no_number(
    make, n_panels, figures
):
    """With a name, options of the main artist and settings of the user."""
    display = copy.copy(computed(make))
    before = copy.deepcopy(display)
    assert figures.get_fignums() == []
    assert not hasattr(display, "figure_")
    with mpl.rc_context({"axes.facecolor": "yellow"}):
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
    assert width <= 9.2  # the column of a page
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    assert len(texts) > 5
    assert min(text.get_fontsize() for text in texts) >= 9
    assert min(box.x0, box.y0) > -0.05
    assert box.x1 < width + 0.05
    assert box.y1 < height + 0.05
    for name in [name for name in vars(display) if name.endswith("_")]:
        delattr(display, name)
    assert_same_numbers(display, before)


@EVERY
def test_given_axes_are_used_and_no_others_and_all_fits(make, n_panels, figures):
    size = (6.4 * (n_panels + 1), 4.8)
    figure, axes = figures.subplots(1, n_panels + 1, figsize=size, layout="constrained")
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


@pytest.mark.parametrize(
    ("case", "layout"),
    [
        ("reliability", None),
        ("reliability", "constrained"),
        ("reliability", "tight"),
        ("calibration curve", "constrained"),
    ],
)
def test_diagrams_stay_in_their_rectangles_and_leave_the_layout_alone(case, layout, figures):
    figure, axes = figures.subplots(2, 1, figsize=(4.5, 11), layout=layout)
    before = [ax.get_position(original=True).bounds for ax in axes]
    engine = figure.get_layout_engine()
    for ax in axes:
        drawn(CASES[case][0], ax=ax)
    assert figure.get_layout_engine() is engine
    if layout is None:
        for ax, bounds in zip(axes, before, strict=True):
            assert ax.get_position(original=True).bounds == bounds
    figure.draw_without_rendering()
    for ax in axes:
        [strip] = ax.child_axes
        box, rectangle = strip.get_window_extent(), ax.get_position(original=True)
        assert box.y0 >= rectangle.y0 * figure.bbox.height - 1
        assert box.y1 < ax.get_window_extent().y0
        assert ax.get_window_extent().height == pytest.approx(ax.get_window_extent().width)
    upper, lower = (ax.get_tightbbox() for ax in axes)
    if layout is not None:
        assert upper.y0 >= lower.y1 - 1
        assert figure.get_tightbbox().y0 > -0.05
        assert figure.get_tightbbox().y1 < 11.05


def test_axes_that_were_placed_by_hand_stay_and_subfigures_have_no_layout_of_their_own(figures):
    figure = figures.figure()
    ax = drawn(CASES["reliability"][0], ax=figure.add_axes([0.1, 0.2, 0.6, 0.7])).ax_
    figure.draw_without_rendering()
    assert ax.get_position(original=True).bounds == (0.1, 0.2, 0.6, 0.7)
    part = figures.figure(layout=None).subfigures(1, 2)[0]
    drawn(CASES["reliability"][0], ax=part.subplots())
    assert part.get_layout_engine() is None


@pytest.mark.parametrize("ending", [".png", ".SVG", ".pdf"])
def test_save_writes_the_figure_with_the_same_bytes_each_time(ending, tmp_path):
    starts = {".png": b"\x89PNG", ".SVG": b"<?xml", ".pdf": b"%PDF"}
    paths = [tmp_path / f"{k}{ending}" for k in range(2)]
    for path in paths:
        copy.copy(computed(CASES["decision curve"][0])).save(path)
    assert paths[0].read_bytes().startswith(starts[ending])
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_other_files_are_refused_and_a_drawn_figure_is_saved_as_it_is(tmp_path, figures):
    display = drawn(CASES["decision curve"][0])
    display.ax_.set_title("a title of mine")
    display.save(tmp_path / "curve.svg")
    assert b"a title of mine" in (tmp_path / "curve.svg").read_bytes()
    assert len(figures.get_fignums()) == 1
    with pytest.raises(ValueError, match=r"the ending '.gif'. Use one of .png, .svg, .pdf"):
        display.save(tmp_path / "curve.gif")


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
    if is_dataclass(thing) and type(thing).__module__.startswith("skcal"):
        return [number for part in vars(thing).values() for number in numbers(part)]
    return []


def assert_same_numbers(shown, expected):
    assert numbers(expected)
    for number, other in zip(numbers(shown), numbers(expected), strict=True):
        np.testing.assert_array_equal(number, other)


def iris_like():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    X = rng.normal(size=(300, 2)) + np.array([[0, 0], [2, 0], [0, 2]])[y]
    return X, np.array(list("abc"))[y]


@pytest.mark.parametrize(
    "display", [displays.ReliabilityDisplay, displays.SimplexDisplay, displays.BinCountDisplay]
)
def test_from_estimator_is_from_predictions_with_its_classes(display):
    X, y = iris_like()
    classifier = LogisticRegression().fit(X, y)
    options = {"plot": False}
    if display is not displays.SimplexDisplay:
        options["random_state"] = 0
    shown = display.from_estimator(classifier, X, y, **options)
    proba = classifier.predict_proba(X)
    assert_same_numbers(shown, display.from_predictions(y, proba, labels=list("abc"), **options))


def test_from_estimator_takes_the_positive_class_of_two():
    X, y = iris_like()
    X, y = X[y != "c"], y[y != "c"]
    classifier = LogisticRegression().fit(X, y)
    proba = classifier.predict_proba(X)
    options = {"random_state": 0, "plot": False}
    show = displays.ReliabilityDisplay.from_estimator
    [second] = show(classifier, X, y, **options).panels
    [first] = show(classifier, X, y, pos_label="a", **options).panels
    assert second.label.endswith("P(b)")
    assert first.label == "LogisticRegression\nP(a)"
    of_a = (y == "a").astype(int), proba[:, 0]
    expected = displays.ReliabilityDisplay.from_predictions(*of_a, **options)
    assert first.number == expected.panels[0].number
    with pytest.raises(ValueError, match="pos_label='z' is not one of two classes"):
        show(classifier, X, y, pos_label="z", plot=False)
    with pytest.raises(ValueError, match="has no predict_proba"):
        show(LinearSVC().fit(X, y), X, y)


@pytest.mark.parametrize(
    "display", [one for one in vars(displays).values() if hasattr(one, "from_estimator")]
)
@pytest.mark.parametrize(
    ("method", "own"), [("from_estimator", "estimator"), ("from_cv_results", "cv_results")]
)
def test_entrances_have_the_options_of_predictions_in_signature_and_docstring(display, method, own):
    model, entrance = display.from_predictions, getattr(display, method)
    told = ("labels", "from_logits")  # by the classifier
    expected = [name for name in inspect.signature(model).parameters if name not in told][2:]
    assert list(inspect.signature(entrance).parameters) == [own, "X", "y", *expected]
    parameters, _, returns = inspect.getdoc(entrance).partition("Returns\n-------")
    parts = re.findall(r"^([\w, ]+) : ", parameters, re.MULTILINE)
    assert [name for part in parts for name in part.split(", ")] == [own, "X", "y", *expected]
    assert display.__name__ in returns
    with pytest.raises(TypeError, match=rf"{display.__name__}.{method}\(\) got .*'labels'"):
        entrance(None, None, None, labels=[0, 1])


@pytest.mark.parametrize("as_frame", [False, True])
def test_results_of_a_cross_validation_are_shown_by_their_out_of_fold_predictions(as_frame):
    X, y = iris_like()
    if as_frame:
        X = pytest.importorskip("pandas").DataFrame(X)
    cv = KFold(3, shuffle=True, random_state=0)
    results = cross_validate(
        LogisticRegression(), X, y, cv=cv, return_estimator=True, return_indices=True
    )
    proba = cross_val_predict(LogisticRegression(), X, y, cv=cv, method="predict_proba")
    weight = np.arange(len(y)) % 3
    options = {"sample_weight": weight, "plot": False}
    for display in (displays.ReliabilityDisplay, displays.CalibrationCurveDisplay):
        shown = display.from_cv_results(results, X, y, **options)
        assert_same_numbers(
            shown, display.from_predictions(y, proba, labels=list("abc"), **options)
        )
    assert shown.name == "LogisticRegression"


def test_folds_that_hold_a_sample_twice_or_never_are_refused():
    X, y = iris_like()
    options = {"return_estimator": True, "return_indices": True}
    show = displays.ReliabilityDisplay.from_cv_results
    results = cross_validate(
        LogisticRegression(), X, y, cv=ShuffleSplit(2, random_state=0), **options
    )
    with pytest.raises(InputError, match=r"has sample \d+ in [02] test folds.* StratifiedKFold"):
        show(results, X, y)
    results = cross_validate(LogisticRegression(), X, y, cv=3, **options)
    with pytest.raises(InputError, match="in 1 test folds, of 299 samples in y"):
        show(results, X[:-1], y[:-1])
    with pytest.raises(InputError, match="return_estimator=True, return_indices=True"):
        show(cross_validate(LogisticRegression(), X, y, cv=3), X, y)


@pytest.mark.parametrize(
    "case",
    ["reliability", "recalibration", "calibration curve", "decision curve", "Murphy diagram"],
)
def test_lines_of_reference_can_be_left_out_and_lines_take_their_look(case):
    make = CASES[case][0]
    with_lines = np.atleast_1d(drawn(make).ax_)
    display = make(ref_line=False, line_kw={"linewidth": 7, "color": "black"})
    axes = np.atleast_1d(display.ax_)
    assert sum(len(ax.get_lines()) for ax in axes) < sum(len(ax.get_lines()) for ax in with_lines)
    for ax in axes:
        assert 7 in [line.get_linewidth() for line in ax.get_lines()]
    assert list(display.ref_lines_) == []


@pytest.mark.parametrize(
    ("entrance", "given", "match"),
    [
        (displays.SegmentDisplay.from_result, 0.05, "Pass what segment_test returned"),
        (displays.BiasCurveDisplay.from_result, 0.05, "Pass what bias_curve returned"),
        (displays.MonitorDisplay.from_monitor, 3, "monitor is int. Pass a CalibrationMonitor"),
        (displays.RiskDisplay.from_search, Binning(), "search is Binning. Pass a fitted"),
        (displays.RiskDisplay.from_search, CalibrationErrorSearchCV(), "not fitted"),
        (displays.ComparisonDisplay.from_searches, {"x": Binning()}, r"\['x'\] is Binning. Pass a"),
        (displays.ComparisonDisplay.from_searches, {"x": CalibrationErrorSearchCV()}, "not fitted"),
    ],
)
def test_other_objects_are_refused_with_what_to_pass(entrance, given, match):
    with pytest.raises(ValueError if match == "not fitted" else TypeError, match=match):
        entrance(given)
