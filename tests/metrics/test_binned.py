"""Binned errors and their table against exact loops over bins."""

import math

import numpy as np
import pytest
from naive_bins import (
    FORMS,
    MIN_SAMPLES,
    N_BINS,
    SIZES,
    VECTOR,
    continuous,
    draw,
    gap_size,
    grid,
    naive_bins,
    naive_powers,
    naive_sum,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest

from skcal import Binning, CalibrationErrorEstimator
from skcal.metrics import (
    calibration_bins,
    expected_calibration_error,
    maximum_calibration_error,
)

every_form = pytest.mark.parametrize(("notion", "strategy"), FORMS)
every_kind = pytest.mark.parametrize("kind", [grid, continuous])
BINS = {"n_bins": N_BINS, "min_samples": MIN_SAMPLES}
NORMS = [1, 1.5, 2, math.inf]


def root(power, norm):
    return np.power(power, 1 if norm == math.inf else 1 / norm)


@every_form
@every_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_error_is_the_mean_of_powers_of_gaps(notion, strategy, kind, dtype):
    proba, exact, y = draw(kind, notion, dtype)
    options = {"notion": notion, "strategy": strategy, **BINS}
    for norm in NORMS:
        distance = "total-variation" if norm in (1, math.inf) else "euclidean"
        expected = naive_sum(exact, y, notion, strategy, norm, distance)
        power = expected_calibration_error(y, proba, norm=norm, root=False, **options)
        # In either dtype bins are exact and residuals rounded by one unit in the last place.
        rtol = 2e-6 if dtype == np.float32 else 1e-13
        assert_allclose(power, expected, rtol=rtol)
        error = expected_calibration_error(y, proba, norm=norm, **options)
        assert_allclose(error, root(expected, norm), rtol=rtol)


@every_form
@every_kind
@pytest.mark.parametrize("debias", [True, "labels"])
def test_debiasing_subtracts_the_variance_of_each_mean(notion, strategy, kind, debias):
    proba, exact, y = draw(kind, notion)
    options = {"norm": 2, "debias": debias, "notion": notion, "strategy": strategy, **BINS}
    expected = naive_sum(exact, y, notion, strategy, 2, debias=debias)
    squared = expected_calibration_error(y, proba, root=False, **options)
    assert_allclose(squared, expected, rtol=1e-11, atol=1e-15)
    error = expected_calibration_error(y, proba, **options)
    assert_allclose(error, math.sqrt(max(expected, 0)), rtol=1e-11)


@pytest.mark.parametrize("strategy", ["uniform", "median-variance"])
@pytest.mark.parametrize("notion", VECTOR)
@pytest.mark.parametrize("distance", SIZES)
def test_distances_of_vectors(notion, strategy, distance):
    proba, exact, y = draw(continuous, notion)
    options = {"notion": notion, "strategy": strategy, "distance": distance, **BINS}
    for norm in NORMS:
        expected = naive_sum(exact, y, notion, strategy, norm, distance)
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
    proba, exact, y = draw(kind, notion)
    bins = [b for group in naive_bins(exact, y, notion, strategy).values() for b in group]
    sizes = [(gap_size(*samples, "total-variation"), len(samples[0])) for samples in bins]
    for least in (1, 2, 4, 5):
        options = {"notion": notion, "strategy": strategy, "min_bin_samples": least, **BINS}
        allowed = [size for size, count in sizes if count >= least]
        if allowed:
            error = maximum_calibration_error(y, proba, **options)
            assert_allclose(error, float(max(allowed)), rtol=1e-13)
        else:
            fullest = max(count for _, count in sizes)
            with pytest.raises(
                ValueError, match=f"^min_bin_samples={least}: .* {fullest}.* Lower min_bin_s"
            ):
                maximum_calibration_error(y, proba, **options)


# The table


@every_form
@every_kind
def test_table_holds_the_samples_of_each_bin(notion, strategy, kind):
    proba, exact, y = draw(kind, notion)
    table = calibration_bins(y, proba, notion=notion, strategy=strategy, **BINS)
    filled = table.count > 0
    found = np.column_stack([table.problem, table.count, table.prediction, table.frequency])[filled]
    expected = [
        [k, len(rows), *np.mean(np.array(rows, float), 0), *np.mean(np.array(outcomes, float), 0)]
        for k, bins in naive_bins(exact, y, notion, strategy).items()
        for rows, outcomes in bins
    ]
    assert_allclose(sorted(found.round(9).tolist()), sorted(np.round(expected, 9).tolist()))
    assert_allclose(table.gap, table.frequency - table.prediction, rtol=1e-12, atol=1e-15)
    assert_array_equal(table.weight, table.count)
    for column in (table.prediction, table.frequency, table.gap):
        assert np.isnan(column[~filled]).all()
    assert (table.low[~filled] == 0).all()
    assert (table.high[~filled] == 1).all()
    assert len(table) == len(table.count)
    assert table.notion == notion


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_bins", [1, 3, 10, 15])
def test_uniform_bins_hold_what_lies_between_their_edges(n_bins, dtype):
    x = (np.arange(n_bins + 1) / n_bins).astype(dtype)
    table = calibration_bins(np.ones(n_bins + 1, dtype=int), x, n_bins=n_bins)
    assert_array_equal(table.left, np.arange(n_bins) / n_bins)
    assert_array_equal(table.right, np.arange(1, n_bins + 1) / n_bins)
    assert_array_equal(table.count, [2] + [1] * (n_bins - 1))  # (left, right], the first with 0


def test_cells_of_the_simplex_have_no_edges():
    proba, _, y = draw(continuous, "canonical")
    table = calibration_bins(y, proba, notion="canonical")
    assert np.isnan([table.left, table.right]).all()


@every_form
def test_errors_follow_from_the_table(rng, notion, strategy):
    proba, _, y = draw(grid, notion)
    options = {"notion": notion, "strategy": strategy, "sample_weight": rng.uniform(0, 2, 40)}
    table = calibration_bins(y, proba, **options, **BINS)
    size = np.abs(table.gap).sum(axis=1) / min(table.gap.shape[1], 2)
    total = options["sample_weight"].sum()
    error = expected_calibration_error(y, proba, **options, **BINS)
    assert_allclose(error, np.nansum(table.weight * size) / total, rtol=1e-12)
    if strategy != "median-variance":
        largest = maximum_calibration_error(y, proba, n_bins=N_BINS, **options)
        assert_allclose(largest, np.nanmax(size), rtol=1e-12)
        assert_allclose(size[table.largest_gap()], largest, rtol=1e-12)
    least = 3
    allowed = np.where(table.weight >= least, size, -1)
    assert_allclose(size[table.largest_gap(least)], allowed.max(), rtol=1e-12)


@pytest.mark.parametrize("notion", ["confidence", "canonical"])
def test_frame_has_a_row_a_bin_and_a_column_an_entry(notion):
    pytest.importorskip("pandas")
    proba, _, y = draw(continuous, notion)
    table = calibration_bins(y, proba, notion=notion, n_bins=3)
    frame = table.to_frame()
    assert len(frame) == len(table)
    for name in ("prediction", "frequency", "gap", "low", "high"):
        columns = [name] if notion == "confidence" else [f"{name}_{k}" for k in range(3)]
        assert_array_equal(frame[columns], getattr(table, name))
    for name in ("problem", "left", "right", "count", "weight"):
        assert_array_equal(frame[name], getattr(table, name))


@pytest.mark.parametrize("confidence_level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_intervals_are_those_of_clopper_and_pearson(n, confidence_level):
    for hits in range(n + 1):
        y = np.arange(n) < hits
        table = calibration_bins(y, np.full(n, 0.75), n_bins=1, confidence_level=confidence_level)
        exact = binomtest(hits, n).proportion_ci(confidence_level, method="exact")
        assert_allclose([table.low[0, 0], table.high[0, 0]], exact, rtol=1e-10)
        assert table.confidence_level == confidence_level


@pytest.mark.parametrize("scale", [1, 0.1])
def test_intervals_of_weighted_samples_have_their_effective_number(scale):
    # (Σw)² / Σw² = 6² / 12 = 3 samples, and 2/6 of the weight on hits: 1 of 3.
    weight = scale * np.array([1, 3, 1, 1])
    table = calibration_bins([1, 0, 1, 0], [0.5] * 4, n_bins=1, sample_weight=weight)
    exact = binomtest(1, 3).proportion_ci(0.95, method="exact")
    assert_allclose([table.low[0, 0], table.high[0, 0]], exact, rtol=1e-10)


# Relations to other parts


@every_form
def test_plain_squared_error_is_the_plug_in_of_binning_on_its_training_samples(notion, strategy):
    """[GB] Eq. 24."""
    proba, _, y = draw(continuous, notion)
    estimator = CalibrationErrorEstimator(Binning(strategy=strategy, **BINS), notion=notion)
    squared = estimator.fit(proba, y).squared_error(proba)
    options = {"norm": 2, "root": False, "notion": notion, "strategy": strategy, **BINS}
    assert_allclose(expected_calibration_error(y, proba, **options), squared, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9, 10, 20, 21])
def test_cube_root_counts_full_cubes(size):
    for n, n_bins in ((size**3 - 1, size - 1), (size**3, size), ((size + 1) ** 3 - 1, size)):
        if n:
            table = calibration_bins(np.arange(n) % 2, np.full(n, 0.5), n_bins="cube-root")
            assert len(table) == max(n_bins, 1)


def test_cube_root_of_a_sum_of_weights_is_up_to_its_rounding():
    weight = np.full(135, 0.2)
    assert weight.sum() < 27
    bins = calibration_bins([0, 1, 1] * 45, [0.5] * 135, n_bins="cube-root", sample_weight=weight)
    assert len(bins) == 3
