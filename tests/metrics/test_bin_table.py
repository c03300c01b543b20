"""The table of bins against exact loops over them."""

import numpy as np
import pytest
from naive_bins import FORMS, MIN_SAMPLES, N_BINS, bins_of, continuous, draw, grid
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest

from skcal.metrics import calibration_bins, expected_calibration_error, maximum_calibration_error

every_form = pytest.mark.parametrize(("notion", "strategy"), FORMS)
BINS = {"n_bins": N_BINS, "min_samples": MIN_SAMPLES}


@every_form
def test_table_holds_the_samples_of_each_bin(notion, strategy):
    proba, _, y = draw(grid, notion)
    table = calibration_bins(y, proba, notion=notion, strategy=strategy, **BINS)
    filled = table.count > 0
    found = np.column_stack([table.problem, table.count, table.prediction, table.frequency])[filled]
    expected = [
        [k, len(rows), *np.mean(np.array(rows, float), 0), *np.mean(np.array(outcomes, float), 0)]
        for k, bins in bins_of(grid, notion, strategy).items()
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
        options["min_bin_samples"] = 3
        largest = maximum_calibration_error(y, proba, n_bins=N_BINS, **options)
        assert_allclose(largest, size[table.weight >= 3].max(), rtol=1e-12)


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
@pytest.mark.parametrize("n", [1, 2, 15])
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
