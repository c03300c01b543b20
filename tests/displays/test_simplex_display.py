import numpy as np
import pytest
from display_cases import binary, fitted_search, tempered
from numpy.testing import assert_allclose, assert_array_equal

from skcal import CalibrationErrorEstimator, KroneckerKernelRidge, TwoStepKernelRidge
from skcal.datasets import make_dirichlet
from skcal.displays import SimplexDisplay
from skcal.displays.simplex import triangles_of
from skcal.metrics import calibration_bins


def numbers_of(y, proba, **options):
    return SimplexDisplay.from_predictions(y, proba, plot=False, **options)


def test_arrows_are_the_gaps_of_the_cells():
    y, proba = tempered(2000)
    arrows = numbers_of(y, proba, n_bins=5, min_samples=20).arrows
    bins = calibration_bins(y, proba, notion="canonical", n_bins=5)
    enough = bins.count >= 20
    assert_array_equal(arrows.count, bins.count[enough])
    assert_array_equal(arrows.prediction, bins.prediction[enough])
    assert_array_equal(arrows.residual, bins.gap[enough])
    assert_allclose(arrows.distance, np.abs(bins.gap[enough]).sum(axis=1) / 2)


def test_noise_is_the_length_that_calibrated_predictions_show():
    data = make_dirichlet(400, n_classes=3, concentration=1.0, random_state=0)
    rng = np.random.default_rng(0)
    squares = []
    for _ in range(200):
        y = (data.proba.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1)
        arrows = numbers_of(y, data.proba, n_bins=3, labels=range(3)).arrows
        squares.append((arrows.residual**2).sum(axis=1))
    # A mean of 200 squares has a relative error of at most 10 %.
    assert_allclose(np.mean(squares, axis=0), arrows.noise**2, rtol=0.25)


def test_few_arrows_of_calibrated_predictions_are_distinct():
    data = make_dirichlet(20_000, n_classes=3, concentration=1.0, random_state=0)
    arrows = numbers_of(data.labels, data.proba).arrows
    # 100 cells at 5 %: more than 15 has probability 1e-4.
    assert len(arrows.count) == 100
    assert np.count_nonzero(arrows.distinct) <= 15


def test_no_arrow_where_there_is_no_data():
    proba = np.tile([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]], (20, 1))
    display = SimplexDisplay.from_predictions(np.arange(40) % 3, proba)
    assert len(display.arrows.count) == 2
    assert display.arrows.count.sum() == 40
    display = SimplexDisplay.from_predictions(np.arange(40) % 3, proba, min_samples=21)
    assert display.arrows_ is display.pale_arrows_ is display.colorbar_ is None
    assert "no arrow" in display.ax_.get_title()


def test_residuals_are_those_of_a_fitted_estimator():
    y, proba = tempered()
    estimator = CalibrationErrorEstimator(
        TwoStepKernelRidge(1e-2), labels=range(3), notion="canonical"
    ).fit(proba, y)
    one = numbers_of(y, proba, method=estimator, labels=range(3)).arrows
    expected = estimator.functions_[0].residual(one.prediction)
    assert_array_equal(one.residual, expected)
    assert one.distinct.all()
    search = fitted_search(notion="canonical")
    display = SimplexDisplay.from_predictions(y, proba, method=search, labels=range(3))
    assert display.pale_arrows_ is None


def test_a_function_is_fitted_to_the_samples_also_through_cells():
    y, proba = tempered(8000)
    function = TwoStepKernelRidge(1e-2)
    arrows = numbers_of(y, proba, method=function).arrows
    whole = TwoStepKernelRidge(1e-2).fit(proba, np.eye(3)[y] - proba)
    assert_allclose(arrows.residual, whole.residual(arrows.prediction), atol=2e-3)
    assert not hasattr(function, "n_features_in_")


def test_groups_sum_their_classes():
    y, proba = tempered(1000, n_classes=5)
    names = np.array(list("abcde"))
    superclasses = {"first": ["b", "d"], "second": ["a"], "third": ["c", "e"]}
    group_of = np.array([1, 0, 2, 0, 2])
    mass = np.stack([proba[:, group_of == k].sum(axis=1) for k in range(3)], axis=1)
    one = numbers_of(names[y], proba, superclasses=superclasses)
    other = numbers_of(group_of[y], mass, labels=range(3))
    assert one.corners == ["first", "second", "third"]
    assert_allclose(one.arrows.residual, other.arrows.residual)
    assert_array_equal(one.density, other.density)


def test_ranks_are_three_groups():
    y, proba = tempered(1000, n_classes=5)
    display = numbers_of(y, proba, notion="top-2", labels=range(5))
    assert display.corners == ["most probable", "second", "rest"]
    assert display.arrows.prediction[:, 0].min() >= 1 / 5


THREE = {"a": [0, 1], "b": [2], "c": [3, 4]}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"superclasses": {"a": [0, 1], "b": [2, 3, 4]}}, "superclasses has 2 names"),
        ({"superclasses": {**THREE, "c": [3]}}, "lacks the class 4"),
        ({"superclasses": {**THREE, "c": [3, 4, 5]}}, "holds 5, which is not a class"),
        ({"superclasses": {**THREE, "b": [1, 2]}}, "holds a class twice"),
        ({"superclasses": THREE, "notion": "top-2"}, "both say how to sum classes"),
        ({"superclasses": THREE, "corners": ["a", "b"]}, "corners has 2 names"),
        ({"notion": "canonical"}, r"Pass superclasses=.* or notion='top-2'"),
        ({"notion": "top-3"}, r"Pass superclasses=.* or notion='top-2'"),
        ({"notion": "confidence"}, "Use ReliabilityDisplay"),
        ({"notion": "classwise"}, "Use ReliabilityDisplay"),
        ({"superclasses": THREE, "method": KroneckerKernelRidge()}, "has no residual"),
        ({"method": "kde"}, "method"),
        ({"n_bins": 51}, "n_bins"),
        ({"min_samples": 0}, "min_samples"),
    ],
)
def test_other_than_three_classes_and_bad_options_are_named(options, match):
    y, proba = tempered(300, n_classes=5)
    with pytest.raises(ValueError, match=match):
        numbers_of(y, proba, labels=range(5), **options)


def test_fewer_than_three_classes_name_the_other_display():
    y, proba = binary(50)
    for given in (proba, np.column_stack([1 - proba, proba])):
        match = "a single probability.*Use R" if given.ndim == 1 else "Use ReliabilityDisplay"
        with pytest.raises(ValueError, match=match):
            numbers_of(y, given)


def test_small_triangles_hold_every_point_once():
    rng = np.random.default_rng(0)
    X = rng.dirichlet([0.3] * 3, size=2000)
    X[:6] = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]]
    for n in (1, 2, 7, 30):
        cells = triangles_of(X, n)
        assert cells.min() >= 0
        assert cells.max() < 2 * n**2
        assert len(np.unique(cells)) <= n**2
        i, j, down = cells // 2 // n, cells // 2 % n, cells % 2
        assert (i + j + down < n).all()
        centre = (np.stack([i, j], axis=1) + np.where(down, 2 / 3, 1 / 3)[:, None]) / n
        assert (np.abs(X[:, :2] - centre) <= 2 / 3 / n + 1e-12).all()


def test_corners_arrows_and_density_are_drawn_where_they_belong():
    y, proba = tempered(2000)
    display = SimplexDisplay.from_predictions(y, proba, corners=["x", "y", "a $ b"], name="Forest")
    assert [text.get_text() for text in display.corner_texts_] == ["x", "y", r"a \$ b"]
    corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    distinct = display.arrows.distinct
    starts = display.arrows.prediction[distinct] @ corners
    assert_allclose(display.arrows_.get_offsets(), starts)
    ends = (display.arrows.prediction + display.arrows.residual)[distinct] @ corners
    assert_allclose(np.stack([display.arrows_.U, display.arrows_.V], axis=1), ends - starts)
    assert_allclose(display.arrows_.get_array(), display.arrows.distance[distinct])
    assert len(display.density_.get_paths()) == np.count_nonzero(display.density) <= 900
    assert display.density.sum() == 2000
    assert display.ax_.get_title().startswith("Forest\nn = 2,000")
