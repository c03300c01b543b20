"""Tails of Brownian motion against quadrature, moments and walks; the test by its definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from skcal.hypothesis_tests import kolmogorov_smirnov_test
from skcal.hypothesis_tests.kolmogorov_smirnov import maximum_tail, range_tail
from skcal.metrics import cutoff_calibration_error, kolmogorov_smirnov_calibration_error

TAILS = {"kolmogorov-smirnov": maximum_tail, "kuiper": range_tail}


@pytest.mark.parametrize(
    ("tail", "mean", "square"),
    [
        (maximum_tail, np.sqrt(np.pi / 2), 2 * 0.915965594177219),  # Catalan's constant
        (range_tail, 2 * np.sqrt(2 / np.pi), 4 * np.log(2)),
    ],
)
def test_tails_have_the_known_moments(tail, mean, square):
    # Feller 1951: mean 2 √(2/π) and second moment 4 log 2 of the range.
    assert_allclose(quad(tail, 0, 20, limit=200)[0], mean, rtol=1e-8)
    assert_allclose(quad(lambda x: 2 * x * tail(x), 0, 20, limit=200)[0], square, rtol=1e-8)


@pytest.mark.parametrize(("tail", "end"), [(maximum_tail, 1.0), (range_tail, 1.5)])
def test_both_series_agree_where_they_meet(tail, end):
    assert_allclose(tail(end), tail(np.nextafter(end, 2)), rtol=1e-12)


@pytest.mark.parametrize("tail", TAILS.values())
def test_tails_fall_from_1_to_the_smallest_numbers(tail):
    x = np.linspace(0, 30, 3001)
    values = np.array([tail(value) for value in x])
    assert values[0] == 1
    assert (np.diff(values) <= 1e-15).all()
    assert 0 < values[-1] < 1e-190
    # The first term: the largest is reached once.
    assert_allclose(maximum_tail(9.0), 4 * norm.sf(9), rtol=1e-14)
    assert_allclose(range_tail(9.0), 8 * norm.sf(9), rtol=1e-12)


def test_critical_values_are_those_of_the_literature():
    assert_allclose(maximum_tail(2.2414), 0.05, rtol=1e-4)  # Φ̄(2.2414) = 1/80
    assert_allclose(range_tail(2.4977), 0.05, rtol=1e-3)


@pytest.mark.parametrize("statistic", TAILS)
@pytest.mark.parametrize("notion", ["binary", "confidence"])
def test_the_statistic_is_the_metric_in_units_of_its_standard_deviation(statistic, notion, rng):
    kuiper = statistic == "kuiper"
    metric = cutoff_calibration_error if kuiper else kolmogorov_smirnov_calibration_error
    if notion == "binary":
        x = proba = np.round(rng.uniform(size=200), 2)
        y = (rng.uniform(size=200) < proba**1.5).astype(int)
    else:
        proba = rng.dirichlet(np.ones(3), size=200)
        x, y = proba.max(axis=1), rng.integers(3, size=200)
    weight = rng.uniform(0.5, 2, 200)
    result = kolmogorov_smirnov_test(
        y, proba, notion=notion, statistic=statistic, sample_weight=weight
    )
    error = metric(y, proba, notion=notion, sample_weight=weight)
    deviation = np.sqrt(np.sum(weight**2 * x * (1 - x))) / weight.sum()
    assert_allclose(result.estimate, error, rtol=1e-12)
    assert_allclose(result.statistic, error / deviation, rtol=1e-12)
    assert_allclose(result.pvalue, TAILS[statistic](error / deviation), rtol=1e-9)


def test_certain_predictions_are_right_or_have_no_limit():
    assert kolmogorov_smirnov_test([0, 1, 1], [0.0, 1.0, 1.0]).pvalue == 1
    with pytest.raises(ValueError, match=r"a label contradicts them. Use monte_carlo_test"):
        kolmogorov_smirnov_test([0, 1, 0], [0.0, 1.0, 1.0])
