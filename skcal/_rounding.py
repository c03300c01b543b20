"""Predictions that were rounded: 0 and 1 then mean "within half a step"."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from skcal._show import worded
from skcal._sklearn_compat import Interval, StrOptions
from skcal._validation import InputError
from skcal.notions import Problem

RESOLUTION: dict[str, list] = {
    "resolution": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="right"), None]
}
_LIKELY_STEPS = 0.1, 0.05, 0.01  # from the coarsest
_LOOKED_AT = 64  # predictions that are looked at before all are sorted
_MOST_NAMED_STEPS = 1001  # in 1, of a step that is named
_LEAST_VALUES = 3  # different predictions between 0 and 1, without which no step is found
_STEP_ROUNDING = 1e-5  # of a prediction in steps, as that of 32 bits


def step_of(problems: list[Problem], resolution: float | str | None) -> float | None:
    """Return the step in which single probabilities are rounded; None if they are not.

    Parameters
    ----------
    problems : list of Problem
    resolution : float, "auto" or None
    """
    if resolution is None:
        return None
    if problems[0].features.shape[1] > 1:
        if resolution == "auto":
            return None
        reason = f"is {resolution:g}, and canonical calibration reads vectors, which have no step."
        remedy = worded(
            'Leave it "auto", or pass a notion of single probabilities, such as "classwise".',
            "Leave --resolution out, or pass --notion classwise.",
        )
        raise InputError("resolution", reason, remedy)
    if resolution == "auto":
        first = problems[0].features[:_LOOKED_AT, 0].astype(np.float64)
        steps = [step for step in _LIKELY_STEPS if _multiples(first, step).all()]
        return _first_step(steps, problems) if steps else None
    x, step = _distinct_predictions(problems), float(resolution)
    others = ~_multiples(x, step)
    if others.any():
        value, what = f"{x[others][0]:.6g}", f"is {step:g}, and"
        other = worded(f"y_proba holds {value}", f"a prediction is {value}")
        remedy = worded(
            'Pass the step of the predictions, or "auto".',
            "Pass the step of the predictions, or leave --resolution out.",
        )
        raise InputError("resolution", f"{what} {other}, which is no multiple of it.", remedy)
    return step


def likely_steps(problems: list[Problem]) -> int | None:
    """The least k of which all single probabilities are multiples of 1 / k, if there is one."""
    step = _first_step([1 / k for k in range(2, _MOST_NAMED_STEPS)], problems)
    return None if step is None else round(1 / step)


def _first_step(steps: list[float], problems: list[Problem]) -> float | None:
    """Return the first step that divides all predictions, None if none does."""
    x = _distinct_predictions(problems)
    if np.count_nonzero((x > 0) & (x < 1)) < _LEAST_VALUES:
        return None
    return next((step for step in steps if _multiples(x, step).all()), None)


def _distinct_predictions(problems: list[Problem]) -> np.ndarray:
    """The distinct predictions of all problems."""
    x = np.unique(np.concatenate([problem.features[:, 0] for problem in problems]))
    return x.astype(np.float64)


def _multiples(x, step) -> np.ndarray:
    steps = x / step
    return np.abs(steps - np.rint(steps)) < _STEP_ROUNDING * np.maximum(1, steps)


def within_half_a_step(problem: Problem, step: float | None) -> Problem:
    """Return the problem with predictions of 0 and 1 moved to the frequency of their outcomes.

    By at most half a step, so that outcomes count only as far as rounding does not explain them.
    """
    if step is None:
        return problem
    features, outcomes = problem.features.astype(np.float64), problem.outcomes
    for end in (0.0, 1.0):
        rows = (features[:, 0] == end) & (problem.weight > 0)
        if rows.any():
            frequency = np.average(outcomes[rows, 0], weights=problem.weight[rows])
            features[rows, 0] = np.clip(frequency, max(end - step / 2, 0), min(end + step / 2, 1))
    if (features == problem.features).all():
        return problem
    return problem._replace(features=features, residuals=outcomes - features, logits=None)


def n_moved(given: Problem, moved: Problem) -> int:
    """How many outcomes contradict predictions that were moved."""
    if moved is given:
        return 0
    against: Any = (given.features != moved.features) & (given.features != given.outcomes)
    return given.number(against[:, 0])
