"""Logistic recalibration against other optimisers and closed forms; smoothed curves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog, minimize
from scipy.special import expit, logit
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcal.hypothesis_tests import cox_test
from skcal.metrics import (
    calibration_intercept,
    calibration_slope,
    cox_recalibration,
    integrated_calibration_index,
)

EVERY = [calibration_intercept, calibration_slope, cox_recalibration, integrated_calibration_index]


def draw(n, intercept=0.0, slope=1.0, seed=0):
    """Outcomes with logit P(Y = 1) = intercept + slope · logit(p), and p."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, size=n)
    return (rng.uniform(size=n) < expit(intercept + slope * logit(p))).astype(int), p


def numbers(result):
    """All numbers of a result, or the one."""
    if isinstance(result, float):
        return [result]
    plain = [value for value in vars(result).values() if isinstance(value, float)]
    return [*plain, *result.log_likelihood.values()]


def log_likelihood(coefficients, y, p, weight):
    q = expit(coefficients[0] + coefficients[1] * logit(p))
    return weight @ (y * np.log(q) + (1 - y) * np.log(1 - q))


def numerical_hessian(function, x, step=1e-3):
    """Second differences."""
    e = step * np.eye(len(x))

    def difference(a, b):
        return function(x + a + b) - function(x + a - b) - function(x - a + b) + function(x - a - b)

    return np.array([[difference(a, b) for a in e] for b in e]) / (4 * step**2)


@pytest.fixture(params=[False, True], ids=["", "weighted"])
def drawn(request, rng):
    y, p = draw(300, -0.4, 0.7)
    weight = rng.uniform(0.2, 2, len(y)) if request.param else np.ones(len(y))
    return y, p, weight * weight.sum() / (weight @ weight)  # of the sum of what they are worth


# The fit


def test_intercept_and_slope_are_those_of_logistic_regression_without_penalty(drawn):
    y, p, weight = drawn
    logistic = LogisticRegression(C=1e12, tol=1e-10, max_iter=1000)
    logistic.fit(logit(p)[:, None], y, sample_weight=weight)
    result = cox_recalibration(y, p, sample_weight=weight)
    assert_allclose(result.intercept, logistic.intercept_[0], rtol=1e-5)
    assert_allclose(result.slope, logistic.coef_[0, 0], rtol=1e-5)
    assert calibration_slope(y, p, sample_weight=weight) == result.slope
    assert calibration_intercept(y, p, sample_weight=weight) == result.intercept_in_the_large


def test_log_likelihoods_and_standard_errors_are_those_of_the_definition(drawn):
    y, p, weight = drawn
    result = cox_recalibration(y, p, sample_weight=weight)
    fitted = np.array([result.intercept, result.slope])
    large = result.intercept_in_the_large
    of_both, of_large, calibrated = (
        result.log_likelihood[name] for name in ("intercept and slope", "intercept", "calibrated")
    )
    assert_allclose(of_both, log_likelihood(fitted, y, p, weight), rtol=1e-12)
    assert_allclose(of_large, log_likelihood([large, 1], y, p, weight), rtol=1e-12)
    assert_allclose(calibrated, weight @ np.log(np.where(y == 1, p, 1 - p)), rtol=1e-12)
    assert of_both > of_large > calibrated
    hessian = numerical_hessian(lambda c: log_likelihood(c, y, p, weight), fitted)
    errors = [result.intercept_standard_error, result.slope_standard_error]
    assert_allclose(errors, np.sqrt(np.diag(np.linalg.inv(-hessian))), rtol=1e-4)
    [[bend]] = numerical_hessian(lambda a: log_likelihood([*a, 1], y, p, weight), np.array([large]))
    assert_allclose(result.intercept_in_the_large_standard_error, 1 / np.sqrt(-bend), rtol=1e-4)


# Limits


@pytest.mark.parametrize(
    ("y", "p", "match"),
    [
        ([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], "separates the outcomes"),
        ([1, 1, 0, 0], [0.1, 0.2, 0.3, 0.4], "separates the outcomes"),
        ([0, 0, 1, 1], [0.1, 0.3, 0.3, 0.4], "separates the outcomes"),  # touching is enough
        ([0, 1, 0, 1], [0.3, 0.3, 0.3, 0.3], "All predictions are equal"),
    ],
)
def test_no_finite_slope_raises_while_the_intercept_exists(y, p, match):
    y, p = y * 5, p * 5
    for function in (cox_recalibration, calibration_slope):
        with pytest.raises(ValueError, match=match):
            function(y, p)
    assert np.isfinite(calibration_intercept(y, p))
    assert 0 <= integrated_calibration_index(y, p) <= 1


def fit_of_votes(k, n_votes, p):
    """Votes with a slope as rows of single votes; a slope that separates them by linear programs.

    A slope exists unless one direction (a, b) has a + b z ≥ 0 at all events and ≤ 0 at all others,
    with one of them strict [Albert & Anderson, Biometrika 1984].
    """
    rows = np.repeat(np.arange(len(p)), n_votes)
    y = (np.arange(len(rows)) - np.repeat(np.cumsum(n_votes) - n_votes, n_votes)) < k[rows]
    signed = np.where(y, 1, -1)[:, None] * np.column_stack([np.ones(len(rows)), logit(p[rows])])
    best = linprog(-signed.sum(axis=0), A_ub=-signed, b_ub=np.zeros(len(rows)), bounds=(-1, 1))
    return y.astype(int), p[rows], best.fun > -1e-9


def test_votes_have_a_slope_just_where_their_single_votes_have_one():
    existed = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(12, 18))
        p, n_votes = rng.choice([0.2, 0.3, 0.5, 0.6, 0.9], n), rng.integers(1, 6, n)
        cut = rng.choice([0.3, 0.5, 0.6])
        k = np.where(p > cut, n_votes, 0) if rng.random() < 0.8 else rng.binomial(n_votes, p)
        mixed = p == (cut if rng.random() < 0.6 else rng.choice(p))
        k = np.where(mixed, n_votes // 2, k)
        k = n_votes - k if rng.random() < 0.5 else k
        y, x, exists = fit_of_votes(k, n_votes, p)
        if np.ptp(p) == 0 or min((k > 0).sum(), (k < n_votes).sum()) < 5:
            continue
        votes, proba = np.column_stack([n_votes - k, k]), np.column_stack([1 - p, p])
        existed.append(exists)
        for function in (cox_test, cox_recalibration, calibration_slope):
            if not exists:
                with pytest.raises(ValueError, match="separates the outcomes"):
                    function(votes, proba)
            elif function is cox_recalibration:
                assert_allclose(function(votes, proba).slope, cox_recalibration(y, x).slope)
            else:
                function(votes, proba)
    assert 15 < np.sum(existed) < len(existed) - 15


@pytest.mark.parametrize("least", [0, 1])  # of which outcome there are few
@pytest.mark.parametrize(("events", "each"), [(1, 1), (4, 1), (4, 2), (5, 1)])
def test_fewer_than_five_events_determine_no_slope(least, events, each):
    """Weights repeat no rows, votes do."""
    p = np.linspace(0.1, 0.8, 40)
    y = np.full(40, 1 - least)
    y[5 : 5 + events] = least
    weight = np.full(40, float(each))
    if events >= 5:
        found = cox_recalibration(y, p)
        assert_allclose(calibration_slope(y, p, sample_weight=weight), found.slope, rtol=1e-9)
        return
    shown = [f"effective number of events is {events}, below 5", "which is NaN"]
    with pytest.warns(UserWarning, match=".*".join(shown[::-1])):
        assert np.isnan(calibration_slope(y, p, sample_weight=weight))
    with pytest.warns(UserWarning, match=shown[0]):
        found = cox_recalibration(y, p, sample_weight=weight)
    assert "fewer than five events or non-events: no slope" in found.sentence()
    assert "calibration slope" not in found.sentence()
    unknown = [found.intercept, found.slope, *found.intercept_interval, *found.slope_interval]
    assert np.isnan(unknown).all()
    assert found.intercept_in_the_large == calibration_intercept(y, p, sample_weight=weight)
    low, high = found.intercept_in_the_large_interval
    assert low < found.intercept_in_the_large < high
    for hypothesis in ("calibrated", "slope", "intercept"):
        with pytest.warns(UserWarning, match=shown[0]):
            tested = cox_test(y, p, hypothesis=hypothesis)
        assert np.isnan(tested.estimate) == (hypothesis != "intercept")


@pytest.mark.parametrize("function", EVERY)
@pytest.mark.parametrize("outcome", [0, 1])
def test_one_outcome_raises(function, outcome):
    with pytest.raises(ValueError, match=rf"^y_true shows one outcome only \({outcome}\)"):
        function([outcome] * 4, [0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("p", [[0, 0, 0], [0, 0, 1], [1, 1, 1], [0, 0.5, 1], [0, 1e-9, 1e-3]])
@pytest.mark.parametrize("y", [[1, 1, 0], [0, 1, 0], [1, 0, 1]])
@pytest.mark.parametrize("weight", [[1, 1, 1], [1, 1e-3, 1], [1, 1e3, 1]])
def test_intercept_of_impossible_events_is_the_root_without_a_floor(p, y, weight):
    """Predictions of 0 and 1 stay what they are at any intercept."""
    p, y, weight = np.array(p, float), np.array(y), np.array(weight)
    free = (p > 0) & (p < 1)
    fixed = weight[~free] @ (y - p)[~free]
    if fixed + weight[free] @ y[free] <= 0 or fixed + weight[free] @ (y[free] - 1) >= 0:
        with pytest.raises(ValueError, match="no finite intercept"):
            calibration_intercept(y, p, sample_weight=weight)
        return
    a = calibration_intercept(y, p, sample_weight=weight)
    chance = p.copy()
    chance[free] = expit(a + logit(p[free]))
    assert abs(weight @ (y - chance)) <= 1e-9 * sum(weight)


def test_slope_beside_certain_predictions_is_that_of_the_others(rng):
    y, p = draw(200)
    p[:20] = np.repeat([0, 1], 10)  # half of these are wrong
    y[:20] = np.tile([0, 1], 10)
    note = "undefined: 10 outcomes against predictions of exactly 0 or 1"
    with pytest.warns(UserWarning, match=note):
        result = cox_recalibration(y, p)
    with pytest.warns(UserWarning, match=note):
        assert calibration_slope(y, p) == result.slope
    others = cox_recalibration(y[20:], p[20:])
    assert_allclose([result.slope, result.intercept], [others.slope, others.intercept])
    assert result.slope_interval == others.slope_interval
    assert (result.slope_note, others.slope_note) == (note, "")
    assert note in result.sentence()
    assert result.log_likelihood["calibrated"] == -np.inf
    assert np.isfinite(result.intercept_in_the_large)
    assert 0 < integrated_calibration_index(y, p) < 1


@pytest.mark.filterwarnings("ignore:All predictions in y_proba are 0 or 1")
def test_predictions_of_0_and_1_that_are_right_say_nothing_of_a_slope():
    y, p = draw(200)
    certain = np.r_[0.0, 1, 0, 1]
    more = np.r_[y, 0, 1, 0, 1], np.r_[p, certain]
    assert_allclose(numbers(cox_recalibration(*more)), numbers(cox_recalibration(y, p)))
    assert_allclose(cox_test(*more).statistic, cox_test(y, p).statistic)
    assert cox_test(np.r_[y, 1], np.r_[p, 0.0]).pvalue < 1e-300
    for q, why in ((certain, "are 0 or 1, so"), (np.r_[certain, 0.5], "between 0 and 1 are equal")):
        outcomes = np.tile(np.r_[0, 1, 0, 1, 1][: len(q)], 10)
        outcomes[4::10] = 0
        with pytest.raises(ValueError, match=why):
            calibration_slope(outcomes, np.tile(q, 10))


# The integrated calibration index


def test_index_of_a_straight_curve_is_the_mean_gap_of_the_logistic_fit(drawn):
    y, p, weight = drawn
    fit = cox_recalibration(y, p, sample_weight=weight)
    gap = np.abs(expit(fit.intercept + fit.slope * logit(p)) - p)
    logistic = LogisticRegression(C=1e9, tol=1e-8)
    for estimator in (logistic, make_pipeline(StandardScaler(), logistic)):
        index = integrated_calibration_index(y, p, estimator=estimator, sample_weight=weight)
        assert_allclose(index, np.average(gap, weights=weight), rtol=1e-3)
        assert not hasattr(logistic, "coef_")  # it is a clone that is fitted


def test_index_and_quantiles_of_a_curve_that_is_known(rng):
    p = rng.uniform(size=20_000)
    y = rng.uniform(size=len(p)) < p**2
    # The gap is p (1 - p): on average 1/6, half the time below 3/16, at most 1/4. The curve's
    # standard error is 0.006 on average; it is larger at the ends, where the gap is small.
    quantiles = [None, 0.0, 0.5, 0.9, 1.0]
    mean, least, *rest = (integrated_calibration_index(y, p, quantile=q) for q in quantiles)
    assert_allclose(mean, 1 / 6, atol=0.02)
    assert_allclose(rest, [3 / 16, 0.45 * 0.55, 1 / 4], atol=0.03)
    assert least < 0.01
    assert rest == sorted(rest)


# Intervals


def shuttle():
    """Failures of O-rings by temperature before the Challenger flight, as logits (°F - 70)."""
    temperature = "66 70 69 68 67 72 73 70 57 63 70 78 67 53 67 75 70 81 76 79 75 76 58"
    failure = "0 1 0 0 0 0 0 0 1 1 1 0 0 1 0 0 0 0 0 0 1 0 1"
    return [int(y) for y in failure.split()], expit([float(t) - 70 for t in temperature.split()])


def test_intervals_are_those_of_confint_in_r():
    # R: summary and confint of glm(failure ~ temperature, binomial), data of Dalal, Fowlkes &
    # Hoadley, JASA 1989.
    result = cox_recalibration(*shuttle())
    assert_allclose([result.slope, result.slope_standard_error], [-0.2322, 0.1082], atol=5e-5)
    assert_allclose(result.intercept - 70 * result.slope, 15.0429, atol=5e-4)
    assert_allclose(result.slope_interval, [-0.5154718, -0.0608154], atol=5e-5)


def largest(y, p, weight, fixed):
    """The largest log-likelihood with some of (intercept, slope) fixed."""
    free = [k for k in (0, 1) if k not in fixed]

    def loss(values):
        coefficients = np.zeros(2)
        coefficients[list(fixed)] = list(fixed.values())
        coefficients[free] = values
        return -log_likelihood(coefficients, y, p, weight)

    if not free:
        return -loss([])
    return -minimize(loss, np.array([0.0, 1.0])[free], method="BFGS", tol=1e-9).fun


def test_ends_of_intervals_are_where_the_profile_likelihood_falls_by_half_a_quantile(drawn):
    y, p, weight = drawn
    result = cox_recalibration(y, p, sample_weight=weight, confidence_level=0.9)
    fall = chi2.ppf(0.9, 1) / 2
    cases = [(largest(y, p, weight, {}), {0: end}) for end in result.intercept_interval]
    cases += [(cases[0][0], {1: end}) for end in result.slope_interval]
    of_large = result.log_likelihood["intercept"]
    cases += [(of_large, {0: end, 1: 1.0}) for end in result.intercept_in_the_large_interval]
    for most, fixed in cases:
        assert_allclose(most - largest(y, p, weight, fixed), fall, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:The calibration slope of all predictions is undefined")
def test_intervals_hold_their_estimates_also_at_predictions_of_0_and_1():
    y, p = draw(60, seed=3)
    y, p = np.append(y, [0, 1, 1, 0]), np.append(p, [0.0, 1.0, 0.0, 1.0])
    result = cox_recalibration(y, p)
    for name in ("intercept", "slope", "intercept_in_the_large"):
        low, high = getattr(result, f"{name}_interval")
        assert low < getattr(result, name) < high


@pytest.mark.filterwarnings("ignore:All logits in y_proba are so large")
def test_intervals_of_an_intercept_on_which_certain_predictions_say_nothing_are_infinite():
    result = cox_recalibration(
        [0, 0, 0, 1, 1] * 4, [-800, 800, -800, 800, -800] * 4, from_logits=True
    )
    assert result.intercept_in_the_large_interval == (-np.inf, np.inf)
    assert np.isfinite(result.slope_interval).all()


@pytest.mark.parametrize("scale", [2.0**-30, 1e-6, 3.7, 1e6])
def test_only_ratios_of_weights_matter(drawn, scale):
    y, p, weight = drawn
    one, other = (cox_recalibration(y, p, sample_weight=c * weight) for c in (1, scale))
    rtol = 0 if scale == 2.0**-30 else 1e-9
    for name in ("slope_interval", "intercept_interval", "intercept_in_the_large_interval"):
        assert_allclose(getattr(other, name), getattr(one, name), rtol=rtol)
    assert_allclose(other.slope_standard_error, one.slope_standard_error, rtol=rtol)
    for name, value in one.log_likelihood.items():
        assert_allclose(other.log_likelihood[name], value, rtol=rtol)


def test_weights_that_keep_half_of_the_rows_have_the_intervals_of_these_rows():
    y, p = draw(300, -0.4, 0.7)
    half = np.arange(300) % 2
    weighted, alone = (
        cox_recalibration(y, p, sample_weight=7.0 * half),
        cox_recalibration(y[half == 1], p[half == 1]),
    )
    assert weighted == alone


KINDS = {
    "lognormal, worth 60 %": lambda rng, p: rng.lognormal(0, 0.7, len(p)),
    "lognormal, worth 20 %": lambda rng, p: rng.lognormal(0, 1.3, len(p)),
    "tied to p": lambda rng, p: p**1.5 * rng.lognormal(0, 0.5, len(p)),
    "two values": lambda rng, p: np.where(rng.random(len(p)) < 0.1, 10.0, 1.0),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Too few outcomes are uncertain for a slope, which is NaN")
@pytest.mark.parametrize("scale", [1, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_with_weights_cover_the_truth(kind, scale):
    """200 calibrated sets: 94 % but for chance (2.5 standard errors); a NaN is no cover."""
    hits = []
    for seed in range(200):
        rng = np.random.default_rng([seed, 7])
        p = expit(1.5 * rng.normal(size=300))
        y, weight = (rng.random(300) < p).astype(int), scale * KINDS[kind](rng, p)
        low, high = cox_recalibration(y, p, sample_weight=weight).slope_interval
        hits.append(low <= 1 <= high)
    assert np.mean(hits) > 0.94 - 2.5 * np.sqrt(0.94 * 0.06 / 200)
