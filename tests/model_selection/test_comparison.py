"""Paired comparison of risks: its definition, its level, and its use within the search."""

from types import SimpleNamespace

import numpy as np
import pytest
from notion_cases import every_notion
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    PlugIn,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)
from skcal.datasets import make_tempered
from skcal.functions import BilinearFunction
from skcal.model_selection import RiskComparison, compare_risks
from skcal.model_selection.comparison import simplest_family
from skcal.notions import make_problems

PAIRS = {
    "dense": (PlugIn(TemperatureScaling()), TwoStepKernelRidge(1e-3)),
    "sparse": (Binning(5, debias=True), KroneckerKernelRidge(1e-4)),
}


def fit_both(functions, notion, train):
    return [CalibrationErrorEstimator(function, notion).fit(*train) for function in functions]


def naive_standard_error(a, b, P, y, notion, weight):
    """√Σ c_i² with c_i = 2 w_i / Σw (mean over pairs with i - mean over all pairs), by pairs."""
    influence = np.zeros(len(y))
    for k, (x, residuals, *_, rows) in enumerate(make_problems(P, y, notion)):
        w, inner = weight[rows], residuals @ residuals.T
        loss_a, loss_b = ((inner - f.functions_[k].predict_pairs(x)) ** 2 for f in (a, b))
        pairs = np.outer(w, w) * ~np.eye(len(w), dtype=bool)
        gap = loss_a - loss_b
        mean = np.sum(pairs * gap) / np.sum(pairs)
        own = np.sum(pairs * gap, axis=1) / np.sum(pairs, axis=1)
        influence[rows] += w.sum() / weight.sum() * 2 * w / w.sum() * (own - mean)
    return np.sqrt(np.sum(influence**2))


def naive_implied_error(a, b, P, y, notion, weight):
    """√Σ Var ⟨e_Y, c_i⟩ with Y ~ p_i and c_i the derivative of the difference in δ_i, by pairs."""
    first, second = np.zeros(len(y)), np.zeros(len(y))
    for k, (x, residuals, *_, rows) in enumerate(make_problems(P, y, notion)):
        w = weight[rows]
        share = 1 if isinstance(rows, slice) else w.sum() / weight.sum()
        gap = a.functions_[k].predict_pairs(x) - b.functions_[k].predict_pairs(x)
        pairs = np.outer(w, w) * ~np.eye(len(w), dtype=bool)
        derivative = -4 * share * (pairs * gap) @ residuals / np.sum(pairs)
        first[rows] += np.sum(x * derivative**2, axis=1)
        second[rows] += np.sum(x * derivative, axis=1)
    return np.sqrt(np.sum(first - second**2))


@every_notion
@pytest.mark.parametrize(("pair", "weighted"), [("dense", True), ("sparse", False)])
def test_difference_and_standard_error_are_those_of_the_definition(
    split, rng, notion, pair, weighted
):
    train, (P, y) = split(notion, 200, 80)
    weight = rng.uniform(0.2, 2, len(y)) if weighted else None
    a, b = fit_both(PAIRS[pair], notion, train)
    comparison = compare_risks(a, b, P, y, sample_weight=weight)
    expected = a.risk(P, y, weight).value - b.risk(P, y, weight).value
    # The two risks are about 0.1, so that their difference carries a rounding error of 1e-16.
    assert_allclose(comparison.difference, expected, rtol=1e-9, atol=1e-15)
    weight = np.ones(len(y)) if weight is None else weight
    arguments = (a, b, P, y, notion, weight)
    standard_error = max(naive_standard_error(*arguments), naive_implied_error(*arguments))
    assert_allclose(comparison.standard_error, standard_error, rtol=1e-7)
    z = abs(comparison.difference) / comparison.standard_error
    assert_allclose(comparison.pvalue, 2 * norm.cdf(-z), rtol=1e-12)
    assert not comparison.identical
    other = compare_risks(b, a, P, y, sample_weight=weight)
    assert_allclose(other.difference, -comparison.difference, rtol=1e-9)
    assert_allclose(other.standard_error, comparison.standard_error, rtol=1e-9)
    assert_allclose(other.pvalue, comparison.pvalue, rtol=1e-7)


@pytest.mark.parametrize("notion", ["canonical", "top-label"])
def test_identical_functions_have_p_1_and_the_result_says_so(split, notion):
    train, test = split(notion)
    for function in (KroneckerKernelRidge(), Binning(5), Binning(5, debias=True), Zero()):
        a, b = fit_both((function, function), notion, train)
        comparison = compare_risks(a, b, *test)
        assert comparison.identical
        assert comparison.pvalue == 1
        assert str(comparison) == "identical on these samples (p = 1)"


@pytest.mark.parametrize(
    ("difference", "pvalue", "words"),
    [
        (-1e-3, 0.01, "a has the lower risk"),
        (1e-3, 0.01, "b has the lower risk"),
        (1e-3, 0.2, "not told apart at the 5 % level"),
    ],
)
def test_the_result_says_which_has_the_lower_risk(difference, pvalue, words):
    text = str(RiskComparison(difference, 5e-4, pvalue))
    assert text == f"risk(a) - risk(b) = {difference:g} ± 0.0005, p = {pvalue:g}: {words}"


@pytest.mark.parametrize("function", [TwoStepKernelRidge(1e-4), DirichletKernelDensity(0.05)])
def test_equally_good_functions_differ_significantly_at_most_as_often_as_nominal(function):
    train = make_tempered(80, n_classes=3, n_truth_draws=0, random_state=0)
    turned = [1, 2, 0]
    # Classes are exchangeable in this model: a function fitted to turned classes is another
    # function of exactly the same risk.
    a = CalibrationErrorEstimator(function, labels=[0, 1, 2], notion="canonical").fit(
        train.proba, train.labels
    )
    b = CalibrationErrorEstimator(function, labels=[0, 1, 2], notion="canonical")
    b.fit(train.proba[:, turned], np.argsort(turned)[train.labels])
    rejections = 0
    for seed in range(100):
        test = make_tempered(200, n_classes=3, n_truth_draws=0, random_state=1000 + seed)
        comparison = compare_risks(a, b, test.proba, test.labels)
        assert not comparison.identical
        rejections += comparison.pvalue <= 0.05
    # At level 5 %, more than 14 rejections of 100 have probability 2e-4.
    assert rejections <= 14


def test_two_samples_decide_nothing(split):
    train, (P, y) = split()
    a, b = fit_both((Zero(), Binning(3)), "confidence", train)
    assert not compare_risks(a, b, P[:2], y[:2]).pvalue < 0.05


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"notion": "canonical"}, "notion_='confidence', b has 'canonical'"),
        ({"labels": [1, 0, 2, 3]}, "different classes_. Pass the same labels="),
        ({"from_logits": True}, "from_logits=False, b has True"),
    ],
)
def test_estimators_of_different_things_are_not_compared(split, parameters, message):
    train, test = split()
    a = CalibrationErrorEstimator(notion="confidence").fit(*train)
    b = CalibrationErrorEstimator(**{"notion": "confidence"} | parameters)
    b.fit(np.log(train[0]) if "from_logits" in parameters else train[0], train[1])
    with pytest.raises(ValueError, match=message):
        compare_risks(a, b, *test)


def test_only_fitted_estimators_are_compared(split):
    train, test = split()
    fitted = CalibrationErrorEstimator(notion="confidence").fit(*train)
    with pytest.raises(TypeError, match=r"b is LogisticRegression. Pass a fitted Calibration"):
        compare_risks(fitted, LogisticRegression(), *test)
    for unfitted in (CalibrationErrorEstimator, CalibrationErrorSearchCV):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            compare_risks(fitted, unfitted(notion="confidence"), *test)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            compare_risks(unfitted(notion="confidence"), fitted, *test)


class TwoSided(BilinearFunction):
    """ĝ = 0.01, or 0.01 above and -0.01 below the median of the predictions: h² is the same."""

    def __init__(self, median=None):
        self.median = median

    def fit(self, X, y, sample_weight=None):
        self._validate(X, y, sample_weight)
        self.form_ = None
        return self

    def residual(self, X):
        X = self._validate_features(X)
        return np.full(X.shape, 0.01) if self.median is None else 0.01 * np.sign(X - self.median)


def test_equally_good_functions_are_not_told_apart_by_rare_events():
    """The Hájek standard error alone rejects in 14 % of such samples."""
    rejections = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = 0.01 * np.exp(0.5 * rng.standard_normal(200) - 0.125)
        y = (rng.random(200) < p).astype(int)
        a, b = fit_both([TwoSided(), TwoSided(0.00882)], "binary", (p, y))
        rejections += compare_risks(a, b, p, y).pvalue <= 0.05
    # At level 5 %, more than 20 rejections have probability 1e-3.
    assert rejections <= 20


# Within a search


CANDIDATES = [
    (Zero(), {}),
    (KroneckerKernelRidge(), {"alpha": [1e-4, 1e-2]}),
    (PlugIn(TemperatureScaling()), {}),
    (Binning(), {"n_bins": [5, 10]}),
]


def data(tempered):
    return tempered[0][:600], tempered[1][:600]


def searched(tempered, notion):
    outer_cv = [(np.arange(300), np.arange(300, 400))]
    search = CalibrationErrorSearchCV(CANDIDATES, notion, cv=KFold(3), outer_cv=outer_cv)
    return search.fit(*data(tempered))


def test_a_search_stands_for_its_best_estimator(tempered):
    search = searched(tempered, "confidence")
    P, y = data(tempered)
    zero = CalibrationErrorEstimator(Zero(), "confidence").fit(P[:300], y[:300])
    one = compare_risks(search, zero, P[400:], y[400:])
    other = compare_risks(search.best_estimator_, zero, P[400:], y[400:])
    assert one.difference == other.difference
    assert compare_risks(search, search.best_estimator_, P[400:], y[400:]).identical


def risk_of(family, P, y, train, test):
    notion = family.models[0].notion_
    fitted = CalibrationErrorEstimator(family.best_function, notion).fit(P[train], y[train])
    return fitted.risk(P[test], y[test])


def test_every_family_is_compared_to_the_best_fold_by_fold(tempered):
    search = searched(tempered, "top-label")
    P, y = data(tempered)
    best = search.best_family_
    for family, comparison in zip(search.families_, search.comparisons_, strict=True):
        folds = [
            risk_of(family, P, y, train, test) - risk_of(best, P, y, train, test)
            for train, test in KFold(3).split(P[:300])
        ]
        difference = np.mean([fold.value for fold in folds])
        assert_allclose(comparison.difference, difference, rtol=1e-8, atol=1e-14)
        standard_error = np.sqrt(sum(fold.standard_error**2 for fold in folds)) / 3
        assert_allclose(comparison.standard_error, standard_error, rtol=1e-6, atol=1e-14)
        gap = best.scores.max() - family.scores.max()
        assert_allclose(comparison.difference, gap, rtol=1e-8, atol=1e-14)
        assert comparison.identical == (family is best)


SIMPLE_FIRST = [
    "Zero",
    "TemperatureScaling",
    "IsotonicRegression",
    "Structured MatrixScaling",
    "Binning",
    "KroneckerKernelRidge",
    "DirichletKernelDensity",
]


@pytest.mark.parametrize("n_worse", range(len(SIMPLE_FIRST)))
def test_the_simplest_family_not_significantly_worse_is_named(rng, n_worse):
    """All that is simpler is worse (p ≤ 0.05); the rest is not worse, or better."""
    comparisons = [RiskComparison(1e-3, 1e-4, 0.05)] * n_worse
    comparisons += [RiskComparison(1e-4, 1e-4, 0.051)] * (len(SIMPLE_FIRST) - n_worse)
    pairs = [
        (SimpleNamespace(name=name), comparison)
        for name, comparison in zip(SIMPLE_FIRST, comparisons, strict=True)
    ]
    shuffled = [pairs[k] for k in rng.permutation(len(pairs))]
    assert simplest_family(*zip(*shuffled, strict=True)).name == SIMPLE_FIRST[n_worse]


def test_an_unnamed_family_comes_between_the_scalings_and_binning():
    names = ["Binning", "RandomForestRegressor", "Structured MatrixScaling"]
    families = [SimpleNamespace(name=name) for name in names]
    equal = [RiskComparison(0.0, 0.0, 1.0)] * 3
    assert simplest_family(families, equal).name == "Structured MatrixScaling"
    assert simplest_family(families[:2], equal[:2]).name == "RandomForestRegressor"
