"""The Monte Carlo test by brute force over its seeds, its level and its power."""

import warnings

import numpy as np
import pytest
from calibrated_samples import draw, sample, superclass
from numpy.testing import assert_allclose, assert_array_equal

from skcal.hypothesis_tests import (
    adjust_pvalues,
    mean_embedding_test,
    monte_carlo_test,
    risk_test,
    skce_test,
)
from skcal.hypothesis_tests.monte_carlo import STATISTICS
from skcal.metrics import expected_calibration_error, squared_kernel_calibration_error
from skcal.metrics.statistic import prepared_by
from skcal.notions import make_problems

ECE, SKCE = "expected_calibration_error", "squared_kernel_calibration_error"
SCALAR_ONLY = {
    "maximum_mean_calibration_error",
    "smooth_calibration_error",
    "cutoff_calibration_error",
    "kolmogorov_smirnov_calibration_error",
    "integrated_calibration_index",
}
SCALAR_NOTIONS = ["binary", "confidence", "classwise", "top-label"]
NOTIONS = [*SCALAR_NOTIONS, "canonical", "top-2", superclass]


def bias(outcomes, features):
    """A statistic of the user, for scalar notions."""
    return abs(np.mean(outcomes - features))


def seeds_of(random_state, n_resamples):
    return random_state.randint(2**31 - 1, size=n_resamples)


def naive_null(x, statistic, seeds):
    """Statistics of outcomes redrawn from scalar predictions, one by one."""
    outcomes = [(np.random.default_rng(seed).random(len(x)) < x).astype(int) for seed in seeds]
    return np.array([statistic(outcome, x) for outcome in outcomes])


def naive_pvalue(observed, null):
    return (1 + sum(value >= observed for value in null)) / (1 + len(null))


# The p-value


@pytest.mark.parametrize("statistic", [ECE, SKCE, bias])
@pytest.mark.parametrize("notion", ["binary", "confidence"])
def test_pvalue_counts_redrawn_statistics_that_are_as_large(notion, statistic):
    y, proba = sample(notion)
    [(x, residuals, *_)] = make_problems(proba, y, notion)
    metric = {ECE: expected_calibration_error, SKCE: squared_kernel_calibration_error}.get(
        statistic, bias
    )
    null = naive_null(x[:, 0], metric, seeds_of(np.random.RandomState(4), 39))
    observed = metric(np.rint(x + residuals)[:, 0].astype(int), x[:, 0])
    result = monte_carlo_test(y, proba, statistic, notion=notion, n_resamples=39, random_state=4)
    assert_allclose(result.null_distribution, null, rtol=1e-9, atol=1e-14)
    assert_allclose(result.statistic, observed, rtol=1e-9)
    assert result.estimate == result.statistic
    assert result.pvalue == naive_pvalue(observed, null)
    assert result.notion == notion


def test_classes_are_tested_one_by_one_and_adjusted_by_holm():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), size=60)
    y = draw(rng, 0.8 * proba + [0, 0.2, 0, 0])
    result = monte_carlo_test(y, proba, notion="classwise", n_resamples=99, random_state=0)
    rng = np.random.RandomState(0)
    each = [
        monte_carlo_test(y == k, proba[:, k], n_resamples=99, random_state=rng, labels=[0, 1])
        for k in range(4)
    ]
    pvalues = [one.pvalue for one in each]
    assert len(set(pvalues)) > 2
    assert_allclose(result.class_pvalues, adjust_pvalues(pvalues), rtol=1e-12)
    assert_allclose(result.class_statistics, [one.statistic for one in each], rtol=1e-12)
    assert result.pvalue == result.class_pvalues.min()
    assert_allclose(result.statistic, expected_calibration_error(y, proba, notion="classwise"))
    assert result.null_distribution.shape == (4, 99)
    assert "Holm over 4 classes" in result.method


def test_top_label_sums_the_classes_by_their_shares():
    y, proba = sample("top-label", n_classes=3)
    proba = np.column_stack([proba, np.zeros(len(y))])  # a class that is never the top one
    rng, top = np.random.RandomState(0), proba.argmax(axis=1)
    observed, null = 0.0, np.zeros(99)
    for k in range(3):
        rows = top == k
        x, share = proba[rows, k], rows.mean()
        null += share * naive_null(x, expected_calibration_error, seeds_of(rng, 99))
        observed += share * expected_calibration_error((y[rows] == k).astype(int), x)
    result = monte_carlo_test(y, proba, notion="top-label", n_resamples=99, random_state=0)
    assert_allclose(result.null_distribution, null, rtol=1e-12)
    assert_allclose(result.statistic, observed, rtol=1e-12)
    assert_allclose(result.statistic, expected_calibration_error(y, proba, notion="top-label"))
    assert result.pvalue == naive_pvalue(result.statistic, result.null_distribution)


# Statistics


@pytest.mark.parametrize(
    ("name", "notion"),
    [
        (name, notion)
        for name in STATISTICS
        for notion in (SCALAR_NOTIONS if name in SCALAR_ONLY else NOTIONS)
    ],
)
def test_statistics_by_name_are_the_metrics(name, notion):
    y, proba = sample(notion, n=45, n_classes=3)
    n_resamples = 59 if notion == "classwise" else 19
    options = {"notion": notion, "random_state": 0, "n_resamples": n_resamples}
    result, expected = monte_carlo_test(y, proba, name, **options), 0.0
    assert 0 < result.pvalue <= 1
    for x, residuals, *_, rows in make_problems(proba, y, notion):
        scalar = x.shape[1] == 1
        outcomes = np.rint(x + residuals).astype(int)
        codes, features = (outcomes[:, 0], x[:, 0]) if scalar else (outcomes.argmax(axis=1), x)
        params = {"notion": "binary" if scalar else "canonical"}
        if name == "squared_mean_embedding_calibration_error":
            params["random_state"] = 0
        value = STATISTICS[name](codes, features, labels=np.arange(max(2, x.shape[1])), **params)
        expected += value * (1 if isinstance(rows, slice) else len(rows) / len(y))
    assert_allclose(result.statistic, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("notion", NOTIONS)
def test_a_callable_sees_outcomes_and_features_only(notion):
    y, proba = sample(notion)
    seen = []

    def statistic(*arguments, **parameters):
        seen.append((arguments, parameters))
        return 1.0

    options = {"n_resamples": 79, "random_state": 0, "sample_weight": np.ones(len(y))}
    result = monte_carlo_test(y, proba, statistic, notion=notion, scale=3, **options)
    assert result.pvalue == 1
    problems = make_problems(proba, y, notion)
    shapes = [x.shape if x.shape[1] > 1 else (len(x),) for x, *_ in problems for _ in range(80)]
    for ((outcomes, features), parameters), shape in zip(seen, shapes, strict=True):
        assert parameters == {"scale": 3}
        assert features.shape == shape
        assert outcomes.shape == (len(features),)
        top = 1 if features.ndim == 1 else features.shape[1] - 1
        assert set(outcomes.tolist()) <= set(range(top + 1))


@pytest.mark.parametrize("value", [np.nan, np.inf, np.ones(2), np.ones(1), [0.5], None, "0"])
def test_statistics_that_are_not_numbers_are_refused(value):
    def broken(outcomes, features):
        return value

    with pytest.raises(ValueError, match=r"statistic broken returned .* It must return a finite"):
        monte_carlo_test(*sample(), broken, n_resamples=19)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lambda codes: np.zeros((len(codes), 1)), r"shape \(16, 1\) for 16 rows .* shape \(16,\)"),
        (lambda codes: 0.0, r"shape \(\) for 16 rows"),
        (lambda codes: codes[1:, 0], r"shape \(15,\) for 16 rows"),
        (lambda codes: np.full(len(codes), np.nan), "NaN or infinity"),
    ],
)
def test_prepared_statistics_that_are_not_a_number_a_row_are_refused(values, message):
    @prepared_by(lambda problem: values)
    def statistic(y_true, y_proba, *, notion="auto", labels=None, sample_weight=None):
        return 0.0

    with pytest.raises(ValueError, match=rf"The prepared statistic <lambda> returned {message}"):
        monte_carlo_test(*sample(), statistic, n_resamples=19)


@pytest.mark.parametrize(
    ("statistic", "params", "message"),
    [
        (ECE, {"bins": 5}, "statistic=expected_calibration_error.*'bins'"),
        (lambda outcomes: 0.0, {}, "statistic=<lambda>.*too many positional"),
        (lambda outcomes, features: 0.0, {"width": 1}, "statistic=<lambda>.*'width'"),
    ],
)
def test_what_the_statistic_does_not_take_is_named(statistic, params, message):
    with pytest.raises(TypeError, match=message):
        monte_carlo_test(*sample(), statistic, n_resamples=19, **params)


@pytest.mark.parametrize(
    ("name", "params"), [("kernel_density_calibration_error", {}), (SKCE, {"method": "linear"})]
)
def test_small_problems_do_not_stop_the_test(name, params):
    proba = np.array([[0.9, 0.1, 0]] * 6 + [[0.02, 0.05, 0.93]])
    y = np.array([0, 0, 0, 0, 1, 1, 2])
    result = monte_carlo_test(
        y, proba, name, notion="top-label", n_resamples=19, random_state=0, **params
    )
    assert 0 < result.pvalue <= 1


@pytest.mark.parametrize("statistic", [ECE, SKCE, "smooth_calibration_error"])
def test_weights_are_those_of_the_metric(statistic):
    y, proba = sample()
    weight = np.random.default_rng(2).choice([0.0, 0.5, 2.0], size=len(y))
    options = {"n_resamples": 19, "random_state": 0}
    result = monte_carlo_test(y, proba, statistic, sample_weight=weight, **options)
    expected = STATISTICS[statistic](y, proba, sample_weight=weight)
    assert_allclose(result.statistic, expected, rtol=1e-9)


# Randomness, names, warnings


def test_integer_seeds_repeat_and_random_states_go_on():
    y, proba = sample()
    first, second = (monte_carlo_test(y, proba, n_resamples=19, random_state=1) for _ in "ab")
    assert_array_equal(first.null_distribution, second.null_distribution)
    rng = np.random.RandomState(1)
    third, fourth = (monte_carlo_test(y, proba, n_resamples=19, random_state=rng) for _ in "ab")
    assert_array_equal(first.null_distribution, third.null_distribution)
    assert (third.null_distribution != fourth.null_distribution).any()


@pytest.mark.parametrize(
    ("test", "options", "enough"),
    [
        (monte_carlo_test, {}, 19),
        (monte_carlo_test, {"notion": "classwise"}, 79),
        (monte_carlo_test, {"notion": "top-label"}, 19),
        (skce_test, {}, 19),
        (skce_test, {"method": "asymptotic"}, 19),
        (skce_test, {"method": "spectral"}, 19),
        (mean_embedding_test, {"n_locations": 2}, 19),
        (risk_test, {}, 19),
    ],
)
def test_too_few_resamples_warn_once_and_say_how_many_are_needed(test, options, enough):
    y, proba = sample()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        test(y, proba, n_resamples=enough - 1, random_state=0, **options)
    [warning] = caught
    assert f"above 0.05. Use at least n_resamples={enough}." in str(warning.message)
    test(y, proba, n_resamples=enough, random_state=0, **options)
