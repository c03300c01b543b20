"""Functions fitted to the problems of a notion, and what they say: problems in, numbers out.

A *fit* is a list of fitted functions, one a problem.
"""

from __future__ import annotations

import time
from typing import NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from skcal._running import recorded_warnings
from skcal.functions import BilinearFunction, Zero
from skcal.functions.base import read_feature_map, read_residual
from skcal.notions import Problems
from skcal.pair_risk import PairRisk, add_problems, excess_risk

Fit: TypeAlias = list[BilinearFunction]


def fit(template: BilinearFunction, data: Problems) -> Fit:
    """Fit clones to the problems; h = 0 for a problem with too few samples."""
    fitted = []
    for problem in data.parts:
        if not problem.has_pairs:
            fitted.append(no_correction())
            continue
        options = {"sample_weight": problem.weight}
        if has_fit_parameter(template, "groups"):
            options["groups"] = problem.groups  # of those whose fit divides the samples
        X = problem.seen_by(template)
        fitted.append(clone(template).fit(X, problem.residuals, **options))
    return fitted


def no_correction() -> BilinearFunction:
    """H = 0, for want of samples."""
    return Zero().fit(np.full((1, 1), 0.5), [0.0])


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
    """Minus the pair risk, over problems by their shares."""
    scored = [
        problem.share * function.score(problem.seen_by(function), problem.residuals, problem.weight)
        for function, problem in zip(fitted, data.parts, strict=True)
        if problem.has_pairs
    ]
    if not scored:
        raise_no_pairs(len(data.weight))
    return float(sum(scored))


def risk(fitted: Fit, data: Problems) -> PairRisk:
    """Pair risk with its standard error."""
    return _add_risks(lambda function, *problem: function.risk(*problem), fitted, data)


def excess(fitted: Fit, data: Problems) -> PairRisk:
    """Pair risk above that of h = 0."""

    def of_problem(function, features, residuals, weight):
        phi = read_feature_map(function, features)
        return excess_risk(phi, residuals, function.form_, sample_weight=weight)

    return _add_risks(of_problem, fitted, data)


class Scores(NamedTuple):
    """What functions score that are fitted to one training set.

    Attributes
    ----------
    fits : list of fits
        One a function, if they are kept.
    scores : ndarray of shape (n_functions, n_evaluations)
    times : ndarray of shape (n_functions, 2)
        Seconds of the fit and of the scores.
    warnings : list of Warning
    """

    fits: list[Fit]
    scores: np.ndarray
    times: np.ndarray
    warnings: list


def fit_and_score(
    functions: list[BilinearFunction],
    keep: bool,
    data: Problems,
    train: np.ndarray,
    evaluations: list[np.ndarray],
) -> Scores:
    """Fit the functions to the training rows and score them on each set of evaluation rows."""
    training, held_out = data.take(train), [data.take(rows) for rows in evaluations]
    fits, scores, times = [], [], []
    with recorded_warnings() as caught:
        for function in functions:
            start = time.perf_counter()
            fitted = fit(function, training)
            middle = time.perf_counter()
            scores.append([score(fitted, rows) for rows in held_out])
            times.append((middle - start, time.perf_counter() - middle))
            if keep:
                fits.append(fitted)
    return Scores(fits, np.array(scores), np.array(times), [entry.message for entry in caught])


def fit_again(template: BilinearFunction, data: Problems, rows: np.ndarray) -> Fit:
    """Fit what has been fitted before, and has noted then if it did not converge, to some rows."""
    with recorded_warnings():
        return fit(template, data.take(rows))


def _add_risks(of_problem, fitted, data):
    """``of_problem(function, features, residuals, weight)`` over problems, by their shares."""
    risks = [
        of_problem(function, problem.seen_by(function), problem.residuals, problem.weight)
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
