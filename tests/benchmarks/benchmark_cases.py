"""The costs that the package promises, as functions of one size."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from measuring import binary
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from skcal import (
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    TwoStepKernelRidge,
)
from skcal.datasets import make_dirichlet
from skcal.hypothesis_tests import monte_carlo_test
from skcal.metrics import (
    expected_calibration_error,
    maximum_mean_calibration_error,
    score_decomposition,
    smooth_calibration_error,
    squared_kernel_calibration_error,
)
from skcal.model_selection.candidates import family_name, resolve_candidates
from skcal.notions import NOTIONS
from skcal.pair_risk import pair_risk


class Case(NamedTuple):
    """What is measured: ``prepare(size)`` returns a callable that does the work.

    ``order`` is the promised exponent of the time in the size.
    """

    size: str
    sizes: tuple[int, ...]
    order: float
    prepare: Callable


def simplex(n, n_classes=10):
    """Labels and rows of n samples."""
    data = make_dirichlet(n, n_classes=n_classes, random_state=0)
    return data.labels, data.proba


def of_binary(function, **options):
    """Prepare a measure of binary predictions."""

    def prepare(n):
        y, p = binary(n)
        return lambda: function(y, p, **options)

    return prepare


def of_simplex(function, **options):
    """Prepare a measure of ten classes."""

    def prepare(n):
        y, proba = simplex(n)
        return lambda: function(y, proba, **options)

    return prepare


def risk_of_a_factor(rank):
    """Prepare the risk of a form on 10,000 samples."""
    rng = np.random.default_rng(0)
    phi, residuals = rng.normal(size=(10_000, rank)), rng.normal(size=(10_000, 10))
    form = np.eye(rank)
    return lambda: pair_risk(phi, residuals, form)


def ridge_of_rank(rank):
    """Prepare a ridge form of 10,000 samples."""
    y, proba = simplex(10_000)
    function = TwoStepKernelRidge(max_rank=rank, tol=0)
    estimator = CalibrationErrorEstimator(function, "canonical")
    return lambda: estimator.fit(proba, y)


def of_confidence(function):
    """Prepare fit and score of a function on confidences."""

    def prepare(n):
        y, proba = simplex(n)
        estimator = CalibrationErrorEstimator(function, "confidence")
        return lambda: estimator.fit(proba, y).score(proba, y)

    return prepare


def density_of_classes(n_classes):
    """Prepare a canonical kernel density of 3,000 samples."""
    y, proba = simplex(3000, n_classes)
    estimator = CalibrationErrorEstimator(DirichletKernelDensity(0.1), "canonical")
    return lambda: estimator.fit(proba, y).predict(proba)


def default_search(n):
    """Prepare the default search for confidences."""
    y, proba = simplex(n)
    search = CalibrationErrorSearchCV(notion="confidence", random_state=0)
    return lambda: search.fit(proba, y)


MILLION = (1000, 10_000, 100_000, 1_000_000)
FAMILIES = {
    family_name(function): clone(function).set_params(**next(iter(ParameterGrid(grid))))
    for function, grid in resolve_candidates(None, NOTIONS["confidence"], 10, 1e5)
}
CASES = {
    "expected calibration error": Case("n", MILLION, 1, of_binary(expected_calibration_error)),
    "smooth calibration error": Case("n", MILLION, 1, of_binary(smooth_calibration_error)),
    "Brier decomposition": Case("n", MILLION, 1, of_binary(score_decomposition)),
    "MMCE": Case("n", MILLION, 1, of_binary(maximum_mean_calibration_error)),
    "SKCE, canonical": Case(
        "n",
        (2500, 5000, 10_000),
        2,
        of_simplex(squared_kernel_calibration_error, notion="canonical"),
    ),
    "SKCE, incomplete, canonical": Case(
        "n",
        MILLION[:3],
        1,
        of_simplex(squared_kernel_calibration_error, notion="canonical", method="incomplete"),
    ),
    "Monte Carlo test of ECE, 199 draws": Case(
        "n",
        MILLION[:3],
        1,
        of_binary(monte_carlo_test, statistic="expected_calibration_error", n_resamples=199),
    ),
    "pair risk of a form": Case("rank", (100, 200, 400, 800), 2, risk_of_a_factor),
    "two-step ridge": Case("rank", (125, 250, 500, 1000), 2, ridge_of_rank),
    "kernel density, canonical": Case("C", (10, 30, 100), 1, density_of_classes),
    "default search, confidence": Case("n", (1000, 10_000, 100_000), 1, default_search),
    **{
        f"{name}, confidence": Case("n", MILLION, 1, of_confidence(function))
        for name, function in FAMILIES.items()
    },
}
