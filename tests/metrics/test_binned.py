"""Binned errors against exact loops over bins."""

import math

import numpy as np
import pytest
from naive_bins import (
    FORMS,
    MIN_SAMPLES,
    N_BINS,
    SIZES,
    VECTOR,
    bins_of,
    continuous,
    draw,
    gap_size,
    grid,
    naive_bins,
    naive_powers,
    naive_sum,
)
from numpy.testing import assert_allclose
from used import used

from skcal.metrics import calibration_bins, expected_calibration_error, maximum_calibration_error

METRICS = [expected_calibration_error, maximum_calibration_error, calibration_bins]
P, TWO = np.array([0.1, 0.4, 0.6, 0.8]), np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.5, 0.5]])
every_form = pytest.mark.parametrize(("notion", "strategy"), FORMS)
every_kind = pytest.mark.parametrize("kind", [grid, continuous])
BINS = {"n_bins": N_BINS, "min_samples": MIN_SAMPLES}
NORMS = [1, 1.5, 2, math.inf]


def root(power, norm):
    return np.power(power, 1 if norm == math.inf else 1 / norm)


@every_form
@pytest.mark.parametrize(
    ("kind", "dtype"), [(grid, np.float32), (grid, np.float64), (continuous, np.float64)]
)
def test_error_is_the_mean_of_powers_of_gaps(notion, strategy, kind, dtype):
    proba, _, y = draw(kind, notion, dtype)
    bins = bins_of(kind, notion, strategy, dtype)
    options = used(expected_calibration_error, notion=notion, strategy=strategy, **BINS)
    for norm in NORMS:
        distance = "total-variation" if norm in (1, math.inf) else "euclidean"
        expected = naive_sum(bins, notion, norm, distance)
        power = expected_calibration_error(y, proba, norm=norm, root=False, **options)
        # In either dtype bins are exact and residuals rounded by one unit in the last place.
        rtol = 2e-6 if dtype == np.float32 else 1e-13
        assert_allclose(power, expected, rtol=rtol)
        error = expected_calibration_error(y, proba, norm=norm, **options)
        assert_allclose(error, root(expected, norm), rtol=rtol)


@every_form
@pytest.mark.parametrize(("kind", "debias"), [(grid, True), (continuous, "labels")])
def test_debiasing_subtracts_the_variance_of_each_mean(notion, strategy, kind, debias):
    proba, _, y = draw(kind, notion)
    options = {"norm": 2, "debias": debias, "notion": notion, "strategy": strategy}
    options = used(expected_calibration_error, **options, **BINS)
    expected = naive_sum(bins_of(kind, notion, strategy), notion, 2, debias=debias)
    squared = expected_calibration_error(y, proba, root=False, **options)
    assert_allclose(squared, expected, rtol=1e-11, atol=1e-15)
    error = expected_calibration_error(y, proba, **options)
    assert_allclose(error, math.sqrt(max(expected, 0)), rtol=1e-11)


@pytest.mark.parametrize("strategy", ["uniform", "median-variance"])
@pytest.mark.parametrize("notion", VECTOR)
@pytest.mark.parametrize("distance", SIZES)
def test_distances_of_vectors(notion, strategy, distance):
    proba, _, y = draw(continuous, notion)
    options = {"notion": notion, "strategy": strategy, "distance": distance}
    options = used(expected_calibration_error, **options, **BINS)
    for norm in NORMS:
        expected = naive_sum(bins_of(continuous, notion, strategy), notion, norm, distance)
        power = expected_calibration_error(y, proba, norm=norm, root=False, **options)
        assert_allclose(power, expected, rtol=1e-13)
    assert_allclose(maximum_calibration_error(y, proba, **options), expected, rtol=1e-13)


@pytest.mark.parametrize("distance", SIZES)
def test_scalar_notions_take_the_absolute_difference_whatever_the_distance(distance):
    proba, _, y = draw(continuous, "classwise")
    for metric in (expected_calibration_error, maximum_calibration_error):
        auto = metric(y, proba, notion="classwise")
        assert metric(y, proba, notion="classwise", distance=distance) == auto


@pytest.mark.parametrize("notion", ["top-label", "classwise"])
@pytest.mark.parametrize("norm", NORMS)
def test_average_is_the_sum_over_classes_their_mean_or_none(notion, norm):
    proba, exact, y = draw(continuous, notion)
    # Class 1 is never predicted: top-label has no problem of it.
    proba, exact, y = np.insert(proba, 1, 0, axis=1), [[a, 0, *b] for a, *b in exact], y + (y > 0)
    powers = naive_powers(naive_bins(exact, y, notion, "uniform"), norm)
    values = np.array([powers[k][1] if k in powers else np.nan for k in range(4)])
    pi = np.array([powers[k][0] if k in powers else 0 for k in range(4)])
    total = np.nansum(values * pi if notion == "top-label" else values)
    for average, expected in (("sum", total), ("macro", np.nanmean(values)), (None, values)):
        if average and norm == math.inf:
            expected = np.nanmax(values)
        options = {"notion": notion, "norm": norm, "average": average, "n_bins": N_BINS}
        power = expected_calibration_error(y, proba, root=False, **options)
        assert_allclose(power, expected, rtol=1e-13)
        error = expected_calibration_error(y, proba, **options)
        assert_allclose(error, root(expected, norm), rtol=1e-13)
        assert isinstance(error, np.ndarray if average is None else float)


@every_form
@every_kind
def test_maximum_is_over_bins_with_enough_samples(notion, strategy, kind):
    proba, _, y = draw(kind, notion)
    bins = [b for group in bins_of(kind, notion, strategy).values() for b in group]
    sizes = [(gap_size(*samples, "total-variation"), len(samples[0])) for samples in bins]
    for least in (1, 2, 4, 5):
        least = 4 if strategy == "median-variance" else least  # the least of its cells
        options = {"notion": notion, "strategy": strategy, "n_bins": N_BINS, "min_samples": least}
        options = used(maximum_calibration_error, **options)
        allowed = [size for size, count in sizes if count >= least]
        if allowed:
            error = maximum_calibration_error(y, proba, **options)
            assert_allclose(error, float(max(allowed)), rtol=1e-13)
        else:
            fullest = max(count for _, count in sizes)
            with pytest.raises(
                ValueError, match=f"^min_samples={least}: .* {fullest}.* Lower min_s"
            ):
                maximum_calibration_error(y, proba, **options)


# Relations to other parts


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9, 10, 20, 21])
def test_cube_root_counts_full_cubes(size):
    for n, n_bins in ((size**3 - 1, size - 1), (size**3, size), ((size + 1) ** 3 - 1, size)):
        if n:
            table = calibration_bins(np.arange(n) % 2, np.full(n, 0.5), n_bins="cube_root")
            assert len(table) == max(n_bins, 1)


def test_cube_root_of_a_sum_of_weights_is_up_to_its_rounding():
    weight = np.full(135, 0.2)
    assert weight.sum() < 27
    bins = calibration_bins([0, 1, 1] * 45, [0.5] * 135, n_bins="cube_root", sample_weight=weight)
    assert len(bins) == 3


def test_many_float32_rows_are_summed_in_double_precision(rng):
    p = rng.uniform(size=200_000).astype(np.float32)
    y = (rng.uniform(size=len(p)) < p**2).astype(int)
    single, double = (expected_calibration_error(y, x) for x in (p, p.astype(float)))
    assert_allclose(single, double, rtol=1e-9)  # torchmetrics 1.9 is off by 3e-5


# Refusals


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("proba", "options", "match"),
    [
        (P, {"strategy": "median-variance"}, "^strategy='median-var.* fit 1 feature"),
        (TWO, {"notion": "canonical", "strategy": "sweep"}, "^strategy='sweep' .* 2 f"),
        (P, {"notion": "marginal"}, "^notion='marginal' is unknown. Use one of"),
        ([], {}, "0 sample"),
    ],
)
def test_errors_name_the_argument_and_the_remedy(metric, proba, options, match):
    with pytest.raises(ValueError, match=match):
        metric([0, 1, 0, 1][: len(proba)], proba, **options)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"debias": True}, "^debias=True is for norm=2, the squared error, not 1"),
        ({"debias": "labels", "norm": np.inf}, "^debias='labels' is for norm=2, .* not inf"),
        (
            {"debias": True, "norm": 2, "distance": "cityblock"},
            "debias=True .*'euclidean', not 'cit",
        ),
        ({"norm": 51}, "^norm is 51: powers of small gaps vanish. Pass numpy.inf"),
    ],
)
def test_options_that_do_not_go_together_raise(options, match):
    with pytest.raises(ValueError, match=match):
        expected_calibration_error([0, 1, 0, 1], TWO, notion="canonical", **options)


def test_the_least_number_of_samples_is_at_least_1():
    with pytest.raises(ValueError, match=r"'min_samples' parameter .* Got 0"):
        maximum_calibration_error([0, 1, 0, 1], P, min_samples=0)
