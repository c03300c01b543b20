"""The search finds what Gruber & Bach's published code finds on resnet18 (CIFAR-10).

The figures are those of shared/data/README.md: mean validation risks over five unshuffled folds of
the first 8,000 shuffled samples at the best setting, and the mean over fold models of the estimates
on the other 2,000. λ' is the published parameter: λ = λ' / √n (Kronecker), λ' / n^¼ (two-step) with
the n = 6,400 training samples of a fold.
"""

from functools import cache

import numpy as np
import pytest
from sklearn.model_selection import KFold

from skcal import (
    Binning,
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    TwoStepKernelRidge,
    Zero,
)

# Printed to seven decimals. The reference drops the NaN of its kernel density on the simplex, so
# that its canonical risk is known to 1e-6 only.
PRINTED, WITHOUT_NAN = 0.5e-7, 1e-6

# At λ' = 1e-17 float64 cannot resolve the eigenvalues that matter: the published estimate is
# 0.0091848, and this one comes from ψ_k(x) = e^(-x²) √(2^k / k!) x^k, k < 40, an exact factor of
# the kernel, in arithmetic of 120 digits. Ours leaves out the directions below its tolerance, and
# is near it within 0.75 %. That arithmetic gives the risk 0.00411357, published is 0.0041138: risks
# of float64 are known to this difference only, which another order of pivots moves by 1e-8.
EXACT = 0.00931331
UNRESOLVED = 0.0041138 - 0.00411357 + 0.5e-7

# Best parameter, its risk and the error of that, the estimate on the test samples and its error.
CONFIDENCE = {
    "Binning": ({"n_bins": 40}, 0.0041442, PRINTED, 0.0093204, PRINTED),
    "DirichletKernelDensity": ({"bandwidth": 5.18e-4}, 0.0041186, PRINTED, 0.0100736, PRINTED),
    "TwoStepKernelRidge": ({"alpha": 1e-9 / 6400**0.25}, 0.0041159, PRINTED, 0.0092290, PRINTED),
    "KroneckerKernelRidge": ({"alpha": 1e-17 / 80}, 0.0041138, UNRESOLVED, EXACT, 0.0075 * EXACT),
}
CANONICAL = {
    "DirichletKernelDensity": ({"bandwidth": 1.0}, 0.0029699, WITHOUT_NAN, 0.0040279, PRINTED),
    "TwoStepKernelRidge": (
        {"alpha": 10**-3.5 / 6400**0.25},
        0.0029592,
        PRINTED,
        0.0106900,
        PRINTED,
    ),
    "KroneckerKernelRidge": ({"alpha": 1e-4 / 80}, 0.0029615, PRINTED, 0.0058675, PRINTED),
}
PUBLISHED = {"confidence": CONFIDENCE, "canonical": CANONICAL}

# The best values on the published grids and, where that is cheap, neighbours: a short run.
SHORT = {
    "confidence": [
        (Binning(), {"n_bins": [35, 40, 45]}),
        (DirichletKernelDensity(), {"bandwidth": [10 ** (-5 + 24 / 14), 1e-3]}),
        (KroneckerKernelRidge(tol=1e-14), lambda n: {"alpha": [1e-15 / n**0.5, 1e-17 / n**0.5]}),
        (TwoStepKernelRidge(tol=1e-14), lambda n: {"alpha": [1e-8 / n**0.25, 1e-9 / n**0.25]}),
    ],
    "canonical": [
        (DirichletKernelDensity(), {"bandwidth": [1.0]}),
        (KroneckerKernelRidge(), lambda n: {"alpha": [1e-4 / n**0.5]}),
        (TwoStepKernelRidge(), lambda n: {"alpha": [10**-3.5 / n**0.25]}),
    ],
}


@pytest.fixture(scope="module")
def resnet18(cifar10):
    P, y = cifar10("resnet18")
    # The reference seeds the global state; a RandomState of the same seed draws the same.
    order = np.random.RandomState(0).choice(10000, 10000, replace=False)
    return P, y, order[:8000], order[8000:]


def searched(resnet18, candidates, notion):
    P, y, train, test = resnet18
    search = CalibrationErrorSearchCV(candidates, notion, cv=KFold(5), outer_cv=[(train, test)])
    return search.fit(P, y)


@pytest.fixture(scope="module")
def short(resnet18):
    return cache(lambda notion: searched(resnet18, SHORT[notion], notion))


def estimate(family, resnet18):
    P, _, _, test = resnet18
    return np.mean([model.squared_error(P[test]) for model in family.models])


def check_published(search, resnet18, published):
    assert {family.name for family in search.families_} == published.keys()
    for family in search.families_:
        best, risk, risk_error, squared_error, error = published[family.name]
        assert family.settings[family.best] == pytest.approx(best, rel=1e-3)
        assert -family.scores.max() == pytest.approx(risk, abs=risk_error, rel=0)
        ours = estimate(family, resnet18)
        assert ours == pytest.approx(squared_error, abs=error, rel=0)
        if family is search.best_family_:
            assert search.plug_in_squared_error_ == pytest.approx(ours, rel=1e-12)
    assert search.best_family_.name == min(published, key=lambda name: published[name][1])
    for key, values in search.cv_results_.items():
        if key.endswith(("_score", "_time")):
            assert np.isfinite(values).all(), key


# tests/functions/test_reference.py holds the canonical functions to the published code.
@pytest.mark.parametrize(
    "notion", ["confidence", pytest.param("canonical", marks=pytest.mark.slow)]
)
def test_best_settings_of_the_published_search_have_the_published_risks(short, resnet18, notion):
    check_published(short(notion), resnet18, PUBLISHED[notion])


@pytest.mark.slow
@pytest.mark.parametrize("notion", PUBLISHED)
def test_the_whole_published_search_has_the_published_risks(resnet18, notion):
    check_published(searched(resnet18, "gruber-bach", notion), resnet18, PUBLISHED[notion])


def test_calibrated_has_the_published_canonical_risk(resnet18):
    search = searched(resnet18, [Zero()], "canonical")
    assert search.best_risk_ == pytest.approx(0.0029815, abs=PRINTED, rel=0)
    assert search.plug_in_squared_error_ == 0


def test_with_the_smallest_penalty_ours_is_nearer_the_exact_estimate_than_the_published(short):
    plug_in = short("confidence").plug_in_squared_error_
    assert abs(plug_in - EXACT) < abs(0.0091848 - EXACT)
