"""The search compares its candidates pairwise and names the simplest that is good enough."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    KroneckerKernelRidge,
    PlugIn,
    TemperatureScaling,
    Zero,
)
from skcal.model_selection import RiskComparison, compare_risks
from skcal.model_selection.comparison import simplest_family

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
