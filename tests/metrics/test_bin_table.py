"""The table of bins against exact loops over them, and bins that are given by their edges."""

import numpy as np
import pytest
from naive_bins import FORMS, MIN_SAMPLES, N_BINS, SCALAR, bins_of, continuous, draw, grid
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest
from used import used

from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import monte_carlo_test
from skcal.metrics import (
    bootstrap_interval,
    calibration_bins,
    expected_calibration_error,
    maximum_calibration_error,
)

every_form = pytest.mark.parametrize(("notion", "strategy"), FORMS)
EDGES = [0, 0.05, 0.4, 0.5, 0.97, 1]
BINS = {"n_bins": N_BINS, "min_samples": MIN_SAMPLES}


@every_form
def test_table_holds_the_samples_of_each_bin(notion, strategy):
    proba, _, y = draw(grid, notion)
    table = calibration_bins(
        y, proba, **used(calibration_bins, notion=notion, strategy=strategy, **BINS)
    )
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


@pytest.mark.parametrize("notion", SCALAR)
def test_bins_of_the_least_weight_have_the_largest_gap(rng, notion):
    proba, _, y = draw(grid, notion)
    options = {"notion": notion, "n_bins": N_BINS, "sample_weight": rng.uniform(0, 2, 40)}
    table = calibration_bins(y, proba, **options)
    for least in (None, 3):
        largest = maximum_calibration_error(y, proba, min_samples=least, **options)
        expected = np.abs(table.gap[table.weight >= (least or 1e-9)]).max()
        assert_allclose(largest, expected, rtol=1e-12)


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


# Given edges


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(0)
    p = np.round(rng.uniform(size=300), 2)
    return (rng.random(300) < p**2).astype(int), p


def naive_gaps(y, p):
    bins = np.maximum(np.ceil(np.interp(p, EDGES, range(len(EDGES)))), 1)
    return {b: (np.sum((y - p)[bins == b]), np.sum(bins == b)) for b in np.unique(bins)}


def test_binned_errors_of_given_edges_are_those_of_their_definitions(binary):
    y, p = binary
    gaps = naive_gaps(y, p)
    ece = sum(abs(total) for total, _ in gaps.values()) / len(y)
    assert_allclose(expected_calibration_error(y, p, edges=EDGES), ece, rtol=1e-12)
    mce = max(abs(total) / count for total, count in gaps.values())
    assert_allclose(maximum_calibration_error(y, p, edges=EDGES), mce, rtol=1e-12)
    bins = calibration_bins(y, p, edges=EDGES)
    assert_array_equal(bins.left, EDGES[:-1])
    assert_array_equal(bins.right, EDGES[1:])
    assert_array_equal(bins.count, [count for _, count in gaps.values()])


def test_equal_edges_are_uniform_bins_to_the_last_bit(binary):
    edges = np.arange(11) / 10
    for metric in (expected_calibration_error, maximum_calibration_error):
        assert metric(*binary, edges=edges) == metric(*binary, n_bins=10)


def test_given_edges_are_prepared_for_tests_and_resamples(binary):
    """Fast forms agree with those of the same bins by their number."""
    options = {"n_resamples": 19, "random_state": 0}
    equal, given = {"n_bins": 10}, {"edges": np.arange(11) / 10}
    tests = [monte_carlo_test(*binary, **options, **bins) for bins in (equal, given)]
    assert tests[0].pvalue == tests[1].pvalue
    for metric in (expected_calibration_error, maximum_calibration_error):
        one, other = (bootstrap_interval(metric, *binary, **options, **b) for b in (equal, given))
        assert (one.low, one.high) == (other.low, other.high)


def test_a_reliability_diagram_has_given_bins(binary):
    options = {"n_resamples": 19, "random_state": 0, "plot": False}
    display = ReliabilityDisplay.from_predictions(*binary, edges=EDGES, **options)
    [panel] = display.panels
    assert panel.n_bins == 5
    bins = calibration_bins(*binary, edges=EDGES)
    assert_allclose(panel.frequency, bins.frequency[bins.count > 0, 0])
    assert "5 bins" in repr(display)


def test_edges_that_are_no_bins_are_refused(binary):
    for metric in (expected_calibration_error, maximum_calibration_error, calibration_bins):
        with pytest.raises(ValueError, match=r"edges\[2\] = 0.5 follows 0.5. Pass numpy.unique"):
            metric(*binary, edges=[0, 0.5, 0.5, 1])


def test_vectors_have_no_edges():
    with pytest.raises(ValueError, match="edges are of single probabilities"):
        expected_calibration_error([0, 1, 2], np.eye(3), notion="canonical", edges=EDGES)
