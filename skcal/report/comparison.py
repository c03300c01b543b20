"""Two models on the same samples: one estimator for both, and the paired test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import clone

from skcal._scores import brier_losses, log_losses, of_outcomes
from skcal._show import format_setting
from skcal.functions import Zero
from skcal.hypothesis_tests import compare_calibration
from skcal.notions import Notion
from skcal.recalibration.losses import LossComparison
from skcal.report.numbers import Attempts, fit_search, measure, run_searches, tuned_error
from skcal.report.parts import Data, Measures, Settings

_PAIRS = 1e10
_LOSSES = {"Brier score": brier_losses, "log loss": log_losses}


@dataclass(frozen=True)
class PairedTest:
    """Difference of a measure, first model minus second; negative: the first is better."""

    notion: Notion
    measure: str
    estimate: float
    low: float
    high: float
    pvalue: float
    method: str
    n_samples: int


@dataclass(frozen=True)
class SameEstimator:
    """Both models under one function: ``tuned_error`` of each."""

    notion: Notion
    function: str
    parameters: str
    errors: list[dict]


@dataclass(frozen=True)
class Comparison:
    """A second model on the same samples; ``tests`` are of calibration, the others of scores."""

    second: Measures
    estimators: list[SameEstimator]
    tests: list[PairedTest]
    score_tests: list[PairedTest]
    warnings: list[str]


def compare_models(name: str, first: Data, second: Data, settings: Settings, searches: list):
    """Measure the second model, and both under the function with the lowest summed risk."""
    second_attempt, attempt = (Attempts(who, settings.verbose) for who in (name, "both models"))
    others = run_searches(second, settings, second_attempt)
    measures = measure(name, second, settings, others, second_attempt)
    estimators, tests = [], []
    for one, other in zip(searches, others, strict=True):
        if one is None or other is None:
            continue
        asked = first, second, settings, one.notion_
        shared = shared_function(one, other)
        what = f"{one.notion_} comparison"
        estimators.append(attempt(f"{what} by one estimator", _same_estimator, *asked, shared))
        tests.append(attempt(f"{what}, projection", _projection_test, *asked))
        if len(first.codes) ** 2 * len(first.classes) <= _PAIRS or one.notion_.scalar:
            tests.append(attempt(f"{what}, SKCE", _skce_test, *asked))
    return Comparison(
        measures,
        [part for part in estimators if part is not None],
        [part for part in tests if part is not None],
        _score_tests(first, second, measures.scores, settings),
        attempt.messages,
    )


class Shared(NamedTuple):
    """An unfitted function with the name and the setting that tables show."""

    function: Any
    name: str
    setting: str


def shared_function(one, other) -> Shared | None:
    """The function with the lowest sum of both searches' validation risks.

    It is one of those that estimate the residual, so that there are one-step estimates; Zero does
    not count.
    """
    total = one.cv_results_["mean_test_score"] + other.cv_results_["mean_test_score"]
    rows = [(family, setting) for family in one.families_ for setting in family.settings]
    for row in np.argsort(-total, kind="stable"):
        family, setting = rows[row]
        if hasattr(family.function, "residual") and not isinstance(family.function, Zero):
            function = clone(family.function).set_params(**setting)
            return Shared(function, family.name, format_setting(setting))
    return None


def _same_estimator(first, second, settings, notion, shared) -> SameEstimator:
    if shared is None:
        raise ValueError("No candidate estimates the residual itself.")
    candidates: list = [(shared.function, {})]
    errors = [
        tuned_error(fit_search(data, settings, notion, candidates), settings)
        for data in (first, second)
    ]
    return SameEstimator(notion, shared.name, shared.setting, errors)


def _projection_test(first, second, settings, notion):
    return _paired("squared error", first, second, settings, notion)


def _skce_test(first, second, settings, notion):
    return _paired("SKCE", first, second, settings, notion, method="skce")


def _paired(measure, first, second, settings, notion, **options) -> PairedTest:
    test = compare_calibration(
        first.labels,
        first.proba,
        second.proba,
        notion=notion,
        labels=first.classes,
        **options,
    )
    low, high = test.confidence_interval(settings.confidence_level)
    return PairedTest(
        notion, measure, test.estimate, low, high, test.pvalue, test.method, len(first.codes)
    )


def _score_tests(first, second, scores, settings) -> list[PairedTest]:
    """Normal tests of equal scores; without that of a log loss that is infinite."""
    z = norm.isf((1 - settings.confidence_level) / 2)
    tests = []
    for score in (one for one in scores if one.name in _LOSSES):
        one, other = (
            of_outcomes(_LOSSES[score.name](data.rows), data.codes) for data in (first, second)
        )
        found = LossComparison.of(one, other, np.ones(len(one)))
        if np.isfinite(found.standard_error):
            half = z * found.standard_error
            ends = found.difference - half, found.difference + half
            about = score.notion, score.name, found.difference, *ends, found.pvalue
            tests.append(PairedTest(*about, "normal limit", len(one)))
    return tests
