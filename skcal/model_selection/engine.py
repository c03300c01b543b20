"""Functions fitted to the problems of a notion, and what they say: problems in, numbers out.

A *fit* is a list of fitted functions, one a problem. The units of parallel work are
:func:`fit_and_score`, of functions or paths on one training set, and ``fit_parts`` of
:mod:`skcal.model_selection.combination`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from skcal._running import recorded_warnings
from skcal.functions import BilinearFunction, Zero
from skcal.functions.base import read_feature_map, read_residual
from skcal.notions import Problems
from skcal.pair_risk import PairRisk, add_problems, excess_risk

Fit: TypeAlias = list[BilinearFunction]


def fit(template: BilinearFunction, data: Problems) -> Fit:
    """Fit clones to the problems; h = 0 for a problem with too few samples."""
    [fitted] = _fit_settings([template], data)
    return fitted


def _fit_settings(functions: list[BilinearFunction], data: Problems) -> Iterator[Fit]:
    """Fits of the settings of a function to the problems, one after the other."""
    first, of_problems = functions[0], []
    for problem in data.parts:
        if problem.has_pairs:
            groups = {}
            if has_fit_parameter(first, "groups"):
                groups = {"groups": problem.groups}  # of those whose fit divides the samples
            sample = problem.seen_by(first), problem.residuals, problem.weight
            of_problems.append(first._fit_settings(functions, *sample, **groups))
        else:
            of_problems.append(no_correction() for _ in functions)
    for fitted in zip(*of_problems, strict=True):
        yield list(fitted)


def no_correction() -> BilinearFunction:
    """H = 0, for want of samples."""
    return Zero().fit(np.full((1, 1), 0.5), [0.0])


def derived(template: BilinearFunction, fitted: Fit) -> Fit:
    """``template`` fitted by what the functions hold; h = 0, for want of samples, stays."""
    return [
        function if function.path_parameter is None else template.with_factor_of(function)
        for function in fitted
    ]


def pointwise(fitted: Fit, data: Problems) -> np.ndarray:
    """h(x, x) of each sample, summed over its problems, (n_samples,)."""
    total = np.zeros(len(data.weight))
    for function, problem in zip(fitted, data.parts, strict=True):
        if len(problem.features):
            total[problem.rows] += function.predict(problem.seen_by(function))
    return total


def plug_in(fitted: Fit, data: Problems) -> float:
    """Weighted mean of h(x, x)."""
    return float(np.average(pointwise(fitted, data), weights=data.weight))


def corrections(fitted: Fit, data: Problems) -> list[np.ndarray]:
    """ĝ at the samples of each problem, (n_rows, m)."""
    return [
        read_residual(function, problem.seen_by(function))
        if len(problem.features)
        else np.zeros(problem.features.shape)
        for function, problem in zip(fitted, data.parts, strict=True)
    ]


def score(fitted: Fit, data: Problems) -> float:
    """Minus the pair risk."""
    return float(_add_scores(lambda function, *problem: function.score(*problem), fitted, data))


def score_path(template: BilinearFunction, values: list, fitted: Fit, data: Problems) -> np.ndarray:
    """Scores of ``template`` for each value of its path parameter, from what a fit holds."""

    def scores(function, *problem):
        if function.path_parameter is None:  # h = 0, for want of training samples
            return np.full(len(values), function.score(*problem))
        features, residuals, weight = problem
        function = template.with_factor_of(function)
        return function.score_path(features, residuals, values, weight)

    return _add_scores(scores, fitted, data)


def risk(fitted: Fit, data: Problems) -> PairRisk:
    """Pair risk with its standard error."""
    return _add_risks(lambda function, *problem: function.risk(*problem), fitted, data)


def excess(fitted: Fit, data: Problems) -> PairRisk:
    """Pair risk above that of h = 0."""

    def own(function, features, residuals, weight):
        phi = read_feature_map(function, features)
        return excess_risk(phi, residuals, function.form_, sample_weight=weight)

    return _add_risks(own, fitted, data)


class Task(NamedTuple):
    """What one job fits to a training set.

    Attributes
    ----------
    functions : list of calibration-estimation functions
        Functions that are fitted one after the other.
    paths : list of (function, values of its path parameter)
        If any, all are scored by the fit of the one function.
    keep : bool
        Whether the fits are returned.
    """

    functions: list[BilinearFunction]
    paths: list[tuple[BilinearFunction, list]]
    keep: bool


class Scores(NamedTuple):
    """What the functions or paths of a task score.

    Attributes
    ----------
    fits : list of fits
        One a function, if they are kept.
    scores : ndarray of shape (n_settings, n_evaluations)
    times : ndarray of shape (n_settings, 2)
        Seconds of the fit and of the scores; what settings share is divided among them.
    warnings : list of Warning
    """

    fits: list[Fit]
    scores: np.ndarray
    times: np.ndarray
    warnings: list


def fit_and_score(
    task: Task, data: Problems, train: np.ndarray, evaluations: list[np.ndarray]
) -> Scores:
    """Fit the functions to the training rows and score them on each set of evaluation rows."""
    with recorded_warnings() as caught:
        scores = _fit_and_score(task, data, train, evaluations)
    return scores._replace(warnings=[one.message for one in caught])


def _fit_and_score(task: Task, data: Problems, train, evaluations) -> Scores:
    training, held_out = data.take(train), [data.take(rows) for rows in evaluations]
    fits: list[Fit] = []
    scores: list = []
    times: list = []
    start = time.perf_counter()
    for fitted in _fit_settings(task.functions, training):
        middle = time.perf_counter()
        for path in task.paths:
            scores.extend(np.stack([score_path(*path, fitted, rows) for rows in held_out], axis=1))
        if not task.paths:
            scores.append([score(fitted, rows) for rows in held_out])
        end = time.perf_counter()
        times.append((middle - start, end - middle))
        if task.keep:
            fits.append(fitted)
        start = time.perf_counter()
    shared = len(scores) // len(times)
    spent = np.repeat(np.array(times) / shared, shared, axis=0)
    return Scores(fits, np.array(scores), spent, [])


def fit_again(template: BilinearFunction, data: Problems) -> Fit:
    """Fit what has been fitted before and has noted then, if it did not converge."""
    with recorded_warnings():
        return fit(template, data)


def _add_scores(own, fitted, data):
    """``own(function, features, residuals, weight)`` over problems, by their shares."""
    total, counted = 0.0, False
    for function, problem in zip(fitted, data.parts, strict=True):
        if problem.has_pairs:
            counted = True
            X = problem.seen_by(function)
            value = own(function, X, problem.residuals, problem.weight)
            total = total + value * problem.share
    if not counted:
        raise_no_pairs(len(data.weight))
    return total


def _add_risks(own, fitted, data):
    """``own`` over problems as risks with standard errors."""
    risks = [
        own(function, problem.seen_by(function), problem.residuals, problem.weight)
        if problem.has_pairs
        else None
        for function, problem in zip(fitted, data.parts, strict=True)
    ]
    if all(risk is None for risk in risks):
        raise_no_pairs(len(data.weight))
    shares, rows = ([getattr(part, name) for part in data.parts] for name in ("share", "rows"))
    return add_problems(risks, shares, rows, len(data.weight))


def raise_no_pairs(n_samples):
    """Say that no problem has the samples that a risk needs."""
    raise ValueError(
        "The risk needs pairs: no class is predicted for 2 samples "
        f"(n_samples = {n_samples}). Pass more samples."
    )
