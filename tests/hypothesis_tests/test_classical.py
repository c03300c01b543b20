"""The classical tests by hand, by a numerical optimiser, and their levels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import binom, chi2, norm

from skcal._validation import InputError
from skcal.hypothesis_tests import (
    adjust_pvalues,
    cox_test,
    hosmer_lemeshow_test,
    kolmogorov_smirnov_test,
    spiegelhalter_test,
)

TESTS = [spiegelhalter_test, hosmer_lemeshow_test, cox_test, kolmogorov_smirnov_test]
HYPOTHESES = ["calibrated", "intercept", "slope"]


def binary(n=300, seed=0, slope=1.0, intercept=0.0):
    """Outcomes with logit P(Y = 1) = intercept + slope logit(p)."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    return (rng.uniform(size=n) < expit(intercept + slope * logit(p))).astype(int), p


@pytest.mark.parametrize("test", TESTS)
def test_confidence_is_a_binary_question_about_the_most_probable_class(test):
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(3), size=200), rng.integers(0, 3, 200)
    correct = (y == proba.argmax(axis=1)).astype(int)
    expected = test(correct, proba.max(axis=1))
    for notion in ("auto", "confidence"):
        result = test(y, proba, notion=notion)
        assert result.notion == "confidence"
        assert_allclose(result.statistic, expected.statistic, rtol=1e-12)
        assert_allclose(result.pvalue, expected.pvalue, rtol=1e-12)


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("notion", ["classwise", "top-label"])
def test_classes_are_tested_one_by_one_and_adjusted(test, notion):
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(3), size=600), rng.integers(0, 3, 600)
    result = test(y, proba, notion=notion)
    rows = [np.ones(600, bool) if notion == "classwise" else proba.argmax(1) == k for k in range(3)]
    single = [test((y == k)[rows[k]], proba[rows[k], k]) for k in range(3)]
    assert_allclose(result.class_statistics, [one.statistic for one in single], rtol=1e-10)
    assert_allclose(result.class_pvalues, adjust_pvalues([one.pvalue for one in single]), rtol=1e-9)
    assert result.pvalue == result.class_pvalues.min()
    assert result.notion == notion
    assert "Holm over 3 classes" in result.method


def test_spiegelhalter_takes_a_class_of_one_sample():
    proba = np.array([[0.7, 0.3, 0.0]] * 40 + [[0.3, 0.7, 0.0]] * 40 + [[0.2, 0.2, 0.6]])
    y = np.append([0] * 30 + [1] * 40 + [0] * 10, 2)
    with pytest.warns(UserWarning, match="effective number of events is 0.86"):
        result = spiegelhalter_test(y, proba, notion="top-label", labels=[0, 1, 2])
    assert np.isfinite(result.class_pvalues).all()


@pytest.mark.parametrize("test", [spiegelhalter_test, kolmogorov_smirnov_test])
def test_classes_without_a_test_are_left_out_or_named(test):
    y, p = binary()
    result = test(y, np.column_stack([1 - p, p, 0 * p]), notion="top-label", labels=[0, 1, 2])
    assert np.isnan(result.class_pvalues[2])
    assert "Holm over 2 classes" in result.method
    proba = np.column_stack([1 - p, p / 2, p / 2])
    with pytest.raises(ValueError, match=r"Of class 2: y_true shows one outcome only"):
        cox_test(y, proba, notion="classwise", labels=[0, 1, 2])


@pytest.mark.parametrize(
    ("test", "y", "p", "match"),
    [
        (cox_test, [1, 1, 1], [0.2, 0.4, 0.6], "one outcome only"),
        (cox_test, [0, 0, 1, 1], [0.1, 0.2, 0.7, 0.8], "separates the outcomes"),
        (
            hosmer_lemeshow_test,
            np.arange(300) < 0,
            np.linspace(0.001, 0.02, 300),
            r"expects 3\.15 positives among 300 samples.*min_expected=5.*Use monte_carlo_test",
        ),
    ],
)
def test_too_few_events_or_too_clear_ones_are_refused(test, y, p, match):
    with pytest.raises(ValueError, match=match):
        test(np.asarray(y, dtype=int), p, labels=[0, 1])


# Spiegelhalter


def test_spiegelhalter_standardizes_the_brier_score():
    y, p = binary(slope=0.7)
    brier, expected = np.mean((y - p) ** 2), np.mean(p * (1 - p))
    deviation = np.sqrt(np.sum((1 - 2 * p) ** 2 * p * (1 - p))) / len(p)
    result = spiegelhalter_test(y, p)
    assert_allclose(result.statistic, (brier - expected) / deviation, rtol=1e-10)
    assert_allclose(result.pvalue, 2 * norm.cdf(-abs(result.statistic)), rtol=1e-10)
    assert_allclose(result.estimate, brier - expected, rtol=1e-10)
    terms = (y - p) * (1 - 2 * p)  # whose variance differs from that under H0
    error = np.sqrt(np.sum((terms - terms.mean()) ** 2) / (len(p) - 1) / len(p))
    assert_allclose(result.standard_error, max(error, deviation), rtol=1e-10)


def test_spiegelhalter_of_vectors_standardizes_their_brier_score():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(4), size=300), rng.integers(0, 4, 300)
    outcomes = np.eye(4)
    losses = ((proba[:, None, :] - outcomes) ** 2).sum(axis=2)  # of every outcome
    expected = np.sum(proba * losses, axis=1)
    variance = np.sum(proba * (losses - expected[:, None]) ** 2)
    excess = losses[np.arange(300), y] - expected
    result = spiegelhalter_test(y, proba, notion="canonical")
    assert_allclose(result.statistic, excess.sum() / np.sqrt(variance), rtol=1e-10)
    assert_allclose(result.estimate, excess.mean(), rtol=1e-10)


@pytest.mark.parametrize("test", [spiegelhalter_test, kolmogorov_smirnov_test])
def test_few_events_are_warned_of(test):
    y, p = np.arange(480) % 120 == 0, np.full(480, 0.01)
    with pytest.warns(UserWarning, match=r"number of events is 4\.[89].*Use monte_carlo_test"):
        test(y, p, labels=[False, True])
    test(np.tile(y, 2), np.tile(p, 2), labels=[False, True])


def test_the_interval_of_events_that_have_not_happened_knows_their_chance():
    p = np.full(1000, 0.01)
    result = spiegelhalter_test(np.zeros(1000, int), p, labels=[0, 1])
    low, high = result.confidence_interval(0.999)
    assert low <= 0 <= high


@pytest.mark.parametrize("p", [[0.0, 0.5, 1.0, 0.5], [0.5] * 4, [0.0, 1.0, 1.0, 0.0]])
def test_spiegelhalter_is_0_over_0_at_0_one_half_and_1(p):
    with pytest.raises(ValueError, match=r"variance of 0.*Use monte_carlo_test"):
        spiegelhalter_test([0, 1, 1, 0], p)
    y, p = [0, 1, 1, 0] + 60 * [1], [*p] + 60 * [0.7]
    assert np.isfinite(spiegelhalter_test(y, p).statistic)


# Hosmer-Lemeshow


def test_hosmer_lemeshow_by_hand():
    """Bins of thirds: O = 1, 1, 2 and E = 0.5, 1, 2.5 of 3, 2, 3."""
    y, p = [0, 1, 0, 0, 1, 1, 0, 1], [0.1, 0.1, 0.3, 0.4, 0.6, 0.75, 0.8, 0.95]
    expected = 0.5**2 / (0.5 * (1 - 0.5 / 3)) + 0.5**2 / (2.5 * (1 - 2.5 / 3))
    for external, freedom in ((True, 3), (False, 1)):
        result = hosmer_lemeshow_test(
            y, p, n_bins=3, strategy="uniform", min_expected=0, external=external
        )
        assert_allclose(result.statistic, expected, rtol=1e-12)
        assert_allclose(result.pvalue, chi2.sf(expected, freedom), rtol=1e-12)
        assert f"with {freedom} degrees of freedom" in result.method
        assert np.isnan(result.estimate)


@pytest.mark.parametrize("external", [True, False])
@pytest.mark.parametrize("n_bins", [5, 10])
def test_hosmer_lemeshow_bins_by_mass(n_bins, external):
    y, p = binary()
    y, p = (np.tile(values, 4) for values in (y, p))
    order, expected = np.argsort(p, kind="stable"), 0.0
    for rows in np.split(order, n_bins):
        E, n = p[rows].sum(), len(rows)
        expected += (y[rows].sum() - E) ** 2 / (E * (1 - E / n))
    result = hosmer_lemeshow_test(y, p, n_bins=n_bins, external=external)
    assert_allclose(result.statistic, expected, rtol=1e-9)
    freedom = n_bins if external else n_bins - 2
    assert_allclose(result.pvalue, chi2.sf(expected, freedom), rtol=1e-9)


def test_equal_predictions_share_a_bin_and_a_degree_of_freedom():
    y, p = np.tile([0, 1, 1], 60), np.repeat([0.2, 0.4, 0.9], 60)
    assert "with 3 degrees" in hosmer_lemeshow_test(y, p).method
    with pytest.raises(ValueError, match="2 bins are too few with external=False"):
        hosmer_lemeshow_test(y, np.minimum(p, 0.4), external=False)


def test_bins_without_chance_count_only_if_they_contradict():
    y, p = np.array([0, 0, 0, 1, 0, 1]), np.array([0.0, 0.0, 0.4, 0.5, 0.9, 0.8])
    options = {"n_bins": 10, "strategy": "uniform", "min_expected": 0}
    result = hosmer_lemeshow_test(y, p, **options)
    without = hosmer_lemeshow_test(y[2:], p[2:], **options)
    assert (result.statistic, result.pvalue) == (without.statistic, without.pvalue)
    with pytest.raises(ValueError, match=r"predictions of 0 or 1 in y_proba.*Use monte_carlo_test"):
        hosmer_lemeshow_test([1, *y[1:]], p, **options)
    with pytest.raises(ValueError, match="Use monte_carlo_test"):
        hosmer_lemeshow_test([0, 1], [0.0, 1.0], min_expected=0)


def test_bins_are_merged_until_five_of_either_outcome_are_expected():
    """Bins of 20: E = 2, 4 | 6 | 10 | 18, the last of which expects two negatives."""
    p = np.repeat([0.1, 0.2, 0.3, 0.5, 0.9], 20)
    y = np.tile([0, 1, 0, 0, 1], 20)
    groups = [p < 0.25, p == 0.3, p > 0.4]
    expected = sum(
        (y[g].sum() - p[g].sum()) ** 2 / (p[g].sum() * (1 - p[g].mean())) for g in groups
    )
    result = hosmer_lemeshow_test(y, p)
    assert "with 3 degrees" in result.method
    assert_allclose(result.statistic, expected)
    assert "with 5 degrees" in hosmer_lemeshow_test(y, p, min_expected=0).method


@pytest.mark.parametrize("test", TESTS)
def test_p_values_are_never_zero(test):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.001, 0.999, 100_000)
    y = (rng.uniform(size=len(p)) < np.where(p > 0.5, 0.95, 0.1)).astype(int)
    assert 0 < test(y, p).pvalue < 1e-300


# Cox


def largest_log_likelihood(y, p, free):
    """Maximum of Σ log P(y) over those of (intercept, slope) that are free."""
    start = np.array([0.0, 1.0])

    def loss(values):
        coefficients = start.copy()
        coefficients[free] = values
        z = coefficients[0] + coefficients[1] * logit(p)
        return np.sum(np.logaddexp(0, np.where(y == 1, -z, z)))

    if not free:
        return -loss([]), start
    best = minimize(
        loss, start[free], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11}
    )
    return -best.fun, best.x


@pytest.mark.parametrize("hypothesis", HYPOTHESES)
@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.6, 0.5)])
def test_cox_compares_maximised_likelihoods(hypothesis, slope, intercept):
    y, p = binary(slope=slope, intercept=intercept)
    full, null, freedom = {
        "calibrated": ([0, 1], [], 2),
        "intercept": ([0], [], 1),
        "slope": ([0, 1], [0], 1),
    }[hypothesis]
    (largest, estimates), (smaller, _) = (largest_log_likelihood(y, p, f) for f in (full, null))
    result = cox_test(y, p, hypothesis=hypothesis)
    assert_allclose(result.statistic, 2 * (largest - smaller), rtol=1e-6, atol=1e-8)
    assert_allclose(result.pvalue, chi2.sf(2 * (largest - smaller), freedom), rtol=1e-6)
    assert f"with {freedom} degree(s)" in result.method
    if hypothesis == "calibrated":
        assert np.isnan(result.estimate)
        with pytest.raises(ValueError, match="No interval is known"):
            result.confidence_interval()
    else:
        assert_allclose(result.estimate, estimates[-1], atol=1e-5)
        design = np.column_stack([np.ones_like(p), logit(p)])
        coefficients = estimates if len(full) == 2 else np.append(estimates, 1)
        frequency = expit(design @ coefficients)
        information = (design.T * frequency * (1 - frequency)) @ design
        error = np.sqrt(np.linalg.inv(information[np.ix_(full, full)])[-1, -1])
        interval = estimates[-1] + norm.ppf([0.05, 0.95]) * error
        assert_allclose(result.confidence_interval(0.9), interval, atol=1e-5)


@pytest.mark.parametrize(
    ("y", "p"), [([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.8]), ([0, 1, 1, 1], [0.3] * 4)]
)
def test_the_intercept_alone_needs_no_overlap(y, p):
    y, p = y * 5, p * 5
    expected, _ = largest_log_likelihood(np.array(y), np.array(p), [0])
    null, _ = largest_log_likelihood(np.array(y), np.array(p), [])
    result = cox_test(y, p, hypothesis="intercept")
    assert_allclose(result.statistic, 2 * (expected - null), rtol=1e-6)


# Levels


def test_weights_of_few_samples_in_effect_are_refused_by_their_name():
    y, p = binary(30)
    weight = np.where(np.arange(30) == 7, 1000.0, 1.0)
    assert "sandwich" in cox_test(y, p, sample_weight=1 + y).method
    with pytest.raises(InputError, match=r"sample_weight leaves 1\.1 samples"):
        cox_test(y, p, sample_weight=weight)


@pytest.mark.parametrize("test", [spiegelhalter_test, hosmer_lemeshow_test, cox_test])
def test_asymptotic_levels_are_near_nominal_at_500_samples(test):
    rejections = sum(test(*binary(500, seed)).pvalue <= 0.05 for seed in range(200))
    # Levels between 4 and 6.5 % leave this range with probability below 1e-4 on either side.
    assert binom.ppf(1e-4, 200, 0.04) <= rejections <= binom.isf(1e-4, 200, 0.065)


def test_cox_test_says_how_many_outcomes_are_impossible_at_slope_1():
    y, p = binary()
    p[:5], y[:5] = 0.0, [1, 1, 0, 0, 0]
    result = cox_test(y, p)
    assert result.method.startswith("2 outcomes against predictions of exactly 0 or 1")
    assert np.isinf(result.statistic)
    assert "impossible" in str(result)
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 300)
    proba[0], y = [0.5, 0.5, 0.0], rng.integers(3, size=300)
    y[0] = 2
    assert cox_test(y, proba, notion="classwise").method.startswith("1 outcome against")
