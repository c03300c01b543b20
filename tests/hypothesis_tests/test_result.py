"""Adjusted p-values against literal procedures, and what a result is."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from skcal._show import wrapped
from skcal.hypothesis_tests import adjust_pvalues, compare_calibration, monte_carlo_test
from skcal.hypothesis_tests.result import CalibrationTestResult, resampled_pvalue

MANY = [
    np.random.default_rng(seed).choice([0, 0.001, 0.01, 0.02, 0.2, 0.5, 1], size=seed % 7 + 1)
    for seed in range(40)
]


def holm_rejects(pvalues, level):
    """Holm (1979): from the smallest on, reject while p ≤ level / (number left)."""
    rejected = np.zeros(len(pvalues), dtype=bool)
    for step, k in enumerate(np.argsort(pvalues)):
        if pvalues[k] * (len(pvalues) - step) > level:
            break
        rejected[k] = True
    return rejected


@pytest.mark.parametrize("pvalues", MANY)
def test_holm_adjusted_pvalues_are_the_smallest_rejecting_levels(pvalues):
    adjusted = adjust_pvalues(pvalues)
    assert (adjusted >= pvalues).all()
    for level in [*np.unique(adjusted), 0.01, 0.05, 0.999]:
        if level < 1:  # at level 1 all are rejected
            assert_array_equal(adjusted <= level, holm_rejects(pvalues, level))
    assert adjusted.max() <= 1


@pytest.mark.parametrize(
    ("pvalues", "match"),
    [
        ([0.1, 1.1], "numbers in"),
        ([-0.1], "numbers in"),
        ([0.1, np.nan], "numbers in"),
        ([], "1-D array"),
        ([[0.1]], "1-D array"),
        (0.1, "1-D array"),
        ("a", "pvalues: could not convert"),
    ],
)
def test_what_is_no_pvalue_is_refused(pvalues, match):
    with pytest.raises(ValueError, match=match):
        adjust_pvalues(pvalues)


def test_ties_count_against_the_observed():
    assert resampled_pvalue(1.0, [0.5, 1.0, 1.0, 2.0]) == 4 / 5
    assert resampled_pvalue(3.0, [0.5, 1.0, 1.0, 2.0]) == 1 / 5
    assert_array_equal(resampled_pvalue([1.0, 0.0], [[0.0, 2.0], [0.0, 0.0]]), [2 / 3, 1])


@pytest.fixture
def result():
    return CalibrationTestResult(
        statistic=2.0, pvalue=0.25, estimate=0.5, method="z", notion="binary", standard_error=0.25
    )


def test_results_are_frozen(result):
    with pytest.raises(FrozenInstanceError):
        result.pvalue = 0.0


def test_reprs_are_short_and_hold_no_arrays(rng):
    proba = rng.dirichlet(np.ones(3), size=100)
    y = rng.integers(0, 3, size=100)
    result = monte_carlo_test(y, proba, notion="classwise", random_state=0)
    assert len(repr(result)) < 300
    assert "\n" not in repr(result)
    assert "array" not in repr(result)
    for word in ("statistic=", "pvalue=", "estimate=", "method='Monte Carlo", "notion='classwise'"):
        assert word in repr(result)


def test_what_is_printed_holds_the_mean_under_the_null(rng):
    y, proba = rng.integers(0, 3, size=100), rng.dirichlet(np.ones(3), size=100)
    result = monte_carlo_test(y, proba, random_state=0)
    assert result.null_mean == result.null_distribution.mean()
    assert str(result).splitlines() == [
        f"Significantly miscalibrated (p ≤ {result.pvalue:.2g}).",
        "method     Monte Carlo (expected_calibration_error), exact level; kind: confidence",
        f"statistic  {result.statistic:.4g}",
        f"under H0   {result.null_mean:.4g} on average",
    ]
    assert "under H0, on average" in result._repr_html_()
    by_class = monte_carlo_test(y, proba, notion="classwise", random_state=0)
    assert_allclose(by_class.null_mean, by_class.null_distribution.mean(axis=1).sum())


def test_what_is_printed_leaves_out_what_is_not_known(result):
    assert str(result).splitlines() == [
        "No evidence of miscalibration (p = 0.25).",
        "method     z; kind: binary",
        "statistic  2",
        "estimate   0.5 ± 0.25 (s.e.)",
    ]
    assert np.isnan(result.null_mean)
    assert "under H0" not in result._repr_html_()


def test_what_is_printed_of_a_comparison_has_its_direction_method_and_interval(rng):
    y, a, b = rng.integers(0, 2, size=200), rng.uniform(size=200), rng.uniform(size=200)
    for method, name in [
        ("projection", "projections on polynomials of degree 3"),
        ("skce", "SKCE"),
    ]:
        result = compare_calibration(y, a, b, method=method)
        low, high = result.confidence_interval()
        sentence = result.error_difference.sentence()
        assert str(result).splitlines() == [
            *wrapped(f"{sentence[0].upper()}{sentence[1:]}.").splitlines(),
            f"method     paired {name}, asymptotic level; kind: binary",
            f"statistic  {result.statistic:.4g}",
            f"estimate   {result.estimate:.4g} ± {result.standard_error:.2g} (s.e.), "
            "squared errors, first minus second",
            f"interval   [{low:.4g}, {high:.4g}] at 95 % confidence",
        ]
        page = result._repr_html_()
        assert "standard error" in page
        assert "95\N{NO-BREAK SPACE}% interval" in page


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_confidence_intervals_are_normal(result, level):
    low, high = result.confidence_interval(level)
    assert_allclose([low, high], norm.interval(level, 0.5, 0.25))


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, np.nan, "95"])
def test_confidence_levels_are_between_0_and_1(result, level):
    with pytest.raises(ValueError, match=r"must be a float in the range \(0.0, 1.0\)"):
        result.confidence_interval(level)


def test_results_without_a_standard_error_have_no_interval():
    result = monte_carlo_test([0, 1, 1], [0.2, 0.7, 0.4], random_state=0)
    with pytest.raises(ValueError, match="No interval is known for Monte Carlo"):
        result.confidence_interval()
