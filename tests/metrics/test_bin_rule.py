"""Bins that are given by their edges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import monte_carlo_test
from skcal.metrics import (
    bootstrap_interval,
    calibration_bins,
    expected_calibration_error,
    maximum_calibration_error,
)

EDGES = [0, 0.05, 0.4, 0.5, 0.97, 1]


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
        assert metric(*binary, edges=edges, strategy="sweep") == metric(*binary, n_bins=10)


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
