"""What a report compares: groups among each other, and two models on the same samples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import clone

from skcal._scores import brier_losses, log_losses, of_outcomes
from skcal._show import format_setting
from skcal._validation import column_names, plain_labels
from skcal.functions import Zero
from skcal.hypothesis_tests import adjust_pvalues, compare_calibration, monte_carlo_test
from skcal.notions import Notion
from skcal.recalibration.losses import LossComparison
from skcal.report.measure import (
    Attempts,
    Measures,
    Settings,
    class_columns,
    fit_search,
    measure,
    plain_label,
    tuned_error,
)
from skcal.report.words import LEVEL
from skcal.sample import Sample, read_sample

_EXCEEDANCES = 20  # after which no more outcomes are drawn
_MOST_DRAWS = 100_000
_PAIRS = 1e10
_LOSSES = {"Brier score": brier_losses, "log loss": log_losses}


# Groups


def read_groups(groups, n_samples) -> list[tuple]:
    """Name and rows of each subgroup; of several columns each makes its own."""
    names = list(groups) if isinstance(groups, Mapping) else column_names(groups)
    if names is not None:
        return [
            (f"{name} = {value}", rows)
            for name in names
            for value, rows in read_groups(groups[name], n_samples)
        ]
    groups = plain_labels(groups, "groups")
    if len(groups) != n_samples:
        raise ValueError(f"groups has {len(groups)} entries, y_proba {n_samples} rows.")
    try:
        names, codes = np.unique(groups, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"groups cannot be sorted ({error}). Pass strings.") from error
    names = [str(plain_label(name)) for name in names.tolist()]
    parts = [(name, np.flatnonzero(codes == k)) for k, name in enumerate(names)]
    parts.sort(key=lambda part: _natural_order(part[0]))
    for label, rows in parts:
        if len(rows) < 2:
            raise ValueError(f"groups has a single sample in {label!r}. Merge it with another.")
    return parts


def _natural_order(name: str) -> list:
    """A key that sorts texts by the numbers in them: "site 2" before "site 10"."""
    return [
        (0, int(part), part) if part.isdecimal() else (1, 0, part)
        for part in re.split(r"(\d+)", name)
        if part
    ]


def compare_groups(
    measures: list[Measures], samples: list[Sample], settings: Settings
) -> tuple[list[Measures], list[float | None], list[str]]:
    """Adjust the p-values of the groups' tests by ECE; where there are many, draw more outcomes.

    The smallest adjusted p-value of G groups is G / (1 + n_resamples). Where that is above 5 %,
    each group's p-value is that of Besag & Clifford (1991): outcomes are drawn until the 20th that
    shows as much, at draw L, and p = 20 / L, or up to 100 G draws. It is exact, and draws are spent
    where p is small.

    Returns
    -------
    measures : list of Measures
    adjusted : list of float or None
    warnings : list of str
    """
    tested = sum(part.ece is not None for part in measures)
    warnings = []
    if tested > LEVEL * (1 + settings.n_resamples):
        most = min(100 * tested, _MOST_DRAWS)
        measures = [
            part
            if part.ece is None
            else replace(
                part, ece=replace(part.ece, pvalue=sequential_pvalue(sample, settings, most))
            )
            for part, sample in zip(measures, samples, strict=True)
        ]
        if tested > LEVEL * most:
            warnings.append(
                f"{tested} groups are too many for their tests: the smallest adjusted p-value is "
                f"{tested / most:.2g} with {most:,} draws of each. Merge groups."
            )
    pvalues = [part.ece.pvalue for part in measures if part.ece is not None]
    adjusted = iter(adjust_pvalues(pvalues).tolist() if pvalues else [])
    return measures, [None if part.ece is None else next(adjusted) for part in measures], warnings


def sequential_pvalue(sample: Sample, settings: Settings, most: int) -> float:
    """Besag & Clifford's p-value of calibration by ECE, from at most ``most`` - 1 draws."""
    options = {**settings.bins(sample), "n_jobs": settings.n_jobs}
    seeds = np.random.SeedSequence(settings.random_state)
    exceeds, size = np.empty(0, dtype=bool), settings.n_resamples
    while len(exceeds) < most - 1:
        [seed] = seeds.spawn(1)[0].generate_state(1)
        count = max(19, min(size, most - 1 - len(exceeds)))
        test = monte_carlo_test(
            sample.labels, sample.proba, n_resamples=count, random_state=int(seed), **options
        )
        null = np.asarray(test.null_distribution)
        exceeds = np.append(exceeds, null >= test.statistic)[: most - 1]
        reached = np.flatnonzero(exceeds)[:_EXCEEDANCES]
        if len(reached) == _EXCEEDANCES:
            return _EXCEEDANCES / (1 + int(reached[-1]))
        size *= 2
    return (1 + int(np.count_nonzero(exceeds))) / most


# Two models


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
class ModelComparison:
    """A second model on the same samples; ``tests`` are of calibration, the others of scores."""

    second: Measures
    estimators: list[SameEstimator]
    tests: list[PairedTest]
    score_tests: list[PairedTest]
    warnings: list[str]


def read_second(y_true, y_proba, compare, strategy, options) -> Sample:
    """Check the predictions of a second model for the same samples."""
    if np.shape(compare) != np.shape(y_proba):
        raise ValueError(
            f"compare has shape {np.shape(compare)}, y_proba {np.shape(y_proba)}. Pass predictions "
            "of the same classes for the same samples."
        )
    if strategy != "uniform":
        raise ValueError(
            f"strategy={strategy!r} makes other bins for every model. With compare use 'uniform'."
        )
    return read_sample(y_true, compare, proba_name="compare", **options)


def compare_models(
    name: str, measures: Measures, first: Sample, second: Sample, settings: Settings
) -> ModelComparison:
    """Measure the second model, and both under the function with the lowest summed risk.

    ``measures`` are those of the first.
    """
    others, attempt = measure(name, second, settings), Attempts("both models", settings.verbose)
    estimators, tests = [], []
    for notion in (notion for notion in measures.searches if notion in others.searches):
        search, other = measures.searches[notion], others.searches[notion]
        asked = first, second, settings, search.notion_
        shared, what = shared_function(search, other), f"{search.notion_} comparison"
        estimators.append(attempt(f"{what} by one estimator", _same_estimator, *asked, shared))
        tests.append(attempt(f"{what}, projection", _paired_test, *asked, "projection"))
        if len(first.codes) ** 2 * len(first.classes) <= _PAIRS or search.notion_.scalar:
            tests.append(attempt(f"{what}, SKCE", _paired_test, *asked, "skce"))
    return ModelComparison(
        others,
        [part for part in estimators if part is not None],
        [part for part in tests if part is not None],
        _score_tests(first, second, others.scores, settings),
        attempt.messages,
    )


class Shared(NamedTuple):
    """An unfitted function with the name and the setting that tables show."""

    function: Any
    name: str
    setting: str


def shared_function(search, other) -> Shared | None:
    """The function with the lowest sum of both searches' validation risks.

    It is one of those that estimate the residual, so that there are one-step estimates; Zero does
    not count.
    """
    total = search.cv_results_["mean_test_score"] + other.cv_results_["mean_test_score"]
    rows = [(family, setting) for family in search.families_ for setting in family.settings]
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
        tuned_error(fit_search(sample, settings, notion, candidates), settings)
        for sample in (first, second)
    ]
    return SameEstimator(notion, shared.name, shared.setting, errors)


def _paired_test(first, second, settings, notion, method) -> PairedTest:
    test = compare_calibration(
        first.labels,
        first.proba,
        second.proba,
        notion=notion,
        labels=first.classes,
        method=method,
    )
    measured = "SKCE" if method == "skce" else "squared error"
    low, high = test.confidence_interval(settings.confidence_level)
    about = test.pvalue, test.method, len(first.codes)
    return PairedTest(notion, measured, test.estimate, low, high, *about)


def _score_tests(first, second, scores, settings) -> list[PairedTest]:
    """Normal tests of equal scores; without that of a log loss that is infinite."""
    z = norm.isf((1 - settings.confidence_level) / 2)
    tests = []
    for score in (score for score in scores if score.name in _LOSSES):
        losses = _LOSSES[score.name]
        before, after = (
            of_outcomes(losses(class_columns(sample)), sample.codes) for sample in (first, second)
        )
        gain = LossComparison.of(before, after, np.ones(len(before)))
        if np.isfinite(gain.standard_error):
            half = z * gain.standard_error
            ends = gain.difference - half, gain.difference + half
            about = score.notion, score.name, gain.difference, *ends, gain.pvalue
            tests.append(PairedTest(*about, "normal limit", len(before)))
    return tests
