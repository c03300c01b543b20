"""Comparison of two classifiers: its definition, its symmetries, its level and its power."""

import numpy as np
import pytest
from calibrated_samples import sample, superclass
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist
from scipy.special import expit, logit
from scipy.stats import binom, norm
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from skcal import Binning, KroneckerKernelRidge, LogProbabilities, PlugIn, TwoStepKernelRidge
from skcal.datasets import make_tempered
from skcal.hypothesis_tests import compare_calibration
from skcal.metrics import squared_kernel_calibration_error
from skcal.notions import make_problems

NOTIONS = ["binary", "confidence", "top-label", "classwise", "canonical", "top-2", superclass]
METHODS = ["one-step", "skce"]
# Of "top-label" the SKCE is refused.
COMPARABLE = [(n, m) for n in NOTIONS for m in METHODS if (n, m) != ("top-label", "skce")]
every_comparison = pytest.mark.parametrize(("notion", "method"), COMPARABLE)
LINEAR = PlugIn(LinearRegression())


def pair(notion, n=60):
    """Labels and the predictions of two classifiers."""
    y, a = sample(notion, n)
    _, b = sample(notion, n, seed=1)
    return y, a, (a + 2 * b) / 3


def sharpened(proba, power):
    proba = proba**power
    return proba / proba.sum(axis=1, keepdims=True)


def check(result, estimate, error):
    assert_allclose(result.estimate, estimate, rtol=1e-8)
    assert_allclose(result.standard_error, error, rtol=1e-8)
    assert_allclose(result.statistic, estimate / error, rtol=1e-8)
    assert_allclose(result.pvalue, 2 * norm.sf(abs(estimate / error)), rtol=1e-7)
    interval = estimate + norm.ppf([0.05, 0.95]) * error
    assert_allclose(result.confidence_interval(0.9), interval, rtol=1e-7)


# Definitions


@pytest.mark.parametrize("function", [LINEAR, TwoStepKernelRidge(1e-2), Binning(4)])
@pytest.mark.parametrize("notion", NOTIONS)
def test_one_step_is_the_mean_of_paired_cross_fitted_terms(notion, function):
    y, *both = pair(notion)
    terms = np.zeros((2, len(y)))
    for train, test in KFold(3, shuffle=True, random_state=np.random.RandomState(2)).split(y):
        for own, proba in zip(terms, both, strict=True):
            fits = make_problems(proba[train], y[train], notion)
            evaluations = make_problems(proba[test], y[test], notion)
            for (X, D, *_), (x, d, *_, rows) in zip(fits, evaluations, strict=True):
                if len(X) < 2 or not len(x):
                    continue
                g = clone(function).fit(X, D).residual(x)
                own[test[rows]] += np.sum(d**2 - (d - g) ** 2, axis=1)
    difference = terms[0] - terms[1]
    result = compare_calibration(y, *both, notion=notion, function=function, cv=3, random_state=2)
    check(result, difference.mean(), np.std(difference, ddof=1) / np.sqrt(len(y)))


@pytest.mark.parametrize("kernel", ["laplacian", "rbf"])
@pytest.mark.parametrize("notion", [n for n in NOTIONS if n != "top-label"])
def test_skce_error_is_that_of_the_literal_jackknife(notion, kernel):
    y, a, b = pair(notion, 24)
    n, options = len(y), {"notion": notion, "kernel": kernel, "bandwidth": 0.3}

    def difference(rows):
        errors = [squared_kernel_calibration_error(y[rows], p[rows], **options) for p in (a, b)]
        return errors[0] - errors[1]

    without = np.array([difference(np.arange(n) != i) for i in range(n)])
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    result = compare_calibration(y, a, b, method="skce", **options)
    check(result, difference(np.arange(n) >= 0), error)


@pytest.mark.parametrize("notion", ["binary", "canonical"])
def test_the_median_width_is_that_of_both_predictions_together(notion):
    y, a, b = pair(notion)
    both = np.concatenate([a, b]).reshape(2 * len(y), -1)
    width = np.median(pdist(both, "cityblock")) / (1 if notion == "binary" else 2)
    options = {"notion": notion, "method": "skce"}
    expected = compare_calibration(y, a, b, bandwidth=width, **options)
    assert_allclose(compare_calibration(y, a, b, **options).statistic, expected.statistic)


@pytest.mark.parametrize("notion", NOTIONS)
def test_the_default_function_is_a_recalibration_map(notion):
    y, a, b = pair(notion)
    result = compare_calibration(y, a, b, notion=notion, random_state=0)
    assert 0 < result.pvalue <= 1
    if notion in ("binary", "confidence"):
        logistic = LogisticRegression(solver="newton-cholesky", max_iter=1000)
        cox = PlugIn(make_pipeline(LogProbabilities(), logistic))
        same = compare_calibration(y, a, b, notion=notion, function=cox, random_state=0)
        assert result.statistic == same.statistic


# Symmetries


@every_comparison
def test_comparison_is_antisymmetric(notion, method):
    y, a, b = pair(notion)
    options = {"notion": notion, "method": method, "function": LINEAR, "random_state": 0}
    one, other = compare_calibration(y, a, b, **options), compare_calibration(y, b, a, **options)
    assert_allclose(other.estimate, -one.estimate, rtol=1e-9)
    assert_allclose(other.statistic, -one.statistic, rtol=1e-9)
    assert_allclose(other.pvalue, one.pvalue, rtol=1e-9)


@every_comparison
def test_identical_predictions_have_p_1(notion, method):
    y, a, _ = pair(notion)
    result = compare_calibration(y, a, a.copy(), notion=notion, method=method, random_state=0)
    assert (result.estimate, result.statistic, result.pvalue) == (0, 0, 1)


@pytest.mark.parametrize("method", METHODS)
def test_a_difference_without_spread_has_no_standard_error(method):
    y, a, b = np.ones(40, int), np.full(40, 0.75), np.full(40, 0.25)
    with pytest.raises(ValueError, match="same for every sample, so it has no standard error"):
        compare_calibration(y, a, b, method=method, labels=[0, 1], random_state=0)


# Level and power


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("notion", ["canonical", "confidence", "classwise"])
def test_the_better_calibrated_classifier_is_found(notion, method):
    data = make_tempered(500, temperature=2.0, n_truth_draws=0, random_state=0)
    better = sharpened(data.proba, 0.5)  # undoes the temperature
    options = {"notion": notion, "method": method, "random_state": 0}
    result = compare_calibration(data.labels, data.proba, better, **options)
    assert result.estimate > 0
    assert result.pvalue < 0.01


@pytest.mark.parametrize("method", METHODS)
def test_equally_miscalibrated_classifiers_differ_about_as_often_as_nominal(method):
    """The two are exchangeable: overconfident, with a perturbation of either sign."""
    rejections = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth = rng.uniform(0.05, 0.95, 200)
        y = (rng.uniform(size=200) < truth).astype(int)
        sign = rng.choice([-1, 1], size=200)
        a, b = (expit(2 * logit(truth) + s) for s in (sign, -sign))
        options = {"method": method, "function": LINEAR, "cv": 2, "random_state": seed}
        rejections += compare_calibration(y, a, b, **options).pvalue <= 0.05
    # A level of 7 % passes this number with probability below 1e-4.
    assert rejections <= binom.isf(1e-4, 200, 0.07)


@pytest.mark.parametrize("notion", ["binary", "canonical"])
def test_a_fold_may_hold_a_single_sample(notion):
    y, a, b = pair(notion, 6)
    result = compare_calibration(y, a, b, notion=notion, function=LINEAR, cv=6)
    assert np.isfinite(result.statistic)
    with pytest.raises(ValueError, match="6 samples are too few for cv=7 folds"):
        compare_calibration(y, a, b, notion=notion, function=LINEAR, cv=7)


# Refusals


def test_classifiers_predict_the_same_classes_for_the_same_samples():
    y, a, b = pair("canonical")
    wider = np.column_stack([b, np.zeros(len(b))])
    with pytest.raises(ValueError, match=r"y_proba_a has shape \(60, 4\), y_proba_b \(60, 5\)"):
        compare_calibration(y, a, wider)
    with pytest.raises(ValueError, match=r"y_proba_a has shape \(60, 4\), y_proba_b \(59, 4\)"):
        compare_calibration(y, a, b[1:])
    with pytest.raises(ValueError, match=r"shape \(60,\), y_proba_b \(60, 2\)"):
        compare_calibration(y // 2, a[:, 0], np.column_stack([1 - a[:, 0], a[:, 0]]))


@pytest.mark.parametrize("which", ["a", "b"])
def test_errors_name_the_classifier_whose_predictions_are_wrong(which):
    y, a, b = pair("canonical")
    {"a": a, "b": b}[which][3] = np.nan
    with pytest.raises(ValueError, match=f"y_proba_{which} contains NaN: y_proba_{which} row 3"):
        compare_calibration(y, a, b)


@pytest.mark.parametrize("function", [KroneckerKernelRidge(), Binning(debias=True)])
def test_one_step_estimates_need_a_residual(function):
    with pytest.raises(ValueError, match=r"has no residual\(X\)"):
        compare_calibration(*pair("confidence"), function=function)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"method": "ece"}, "'method' parameter"),
        ({"cv": 1}, "'cv' parameter"),
        ({"bandwidth": 0.0}, "'bandwidth' parameter"),
        ({"notion": "top-label", "method": "skce"}, "notion='top-label' is not comparable"),
    ],
)
def test_options_that_are_none_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        compare_calibration(*pair("confidence"), **options)
