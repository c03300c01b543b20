"""All candidates of a search on one plan: expanded, tried on few samples, grouped and scored."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone

from skcal._running import one_by_one, recorded_warnings
from skcal._selection import distinct_names, settings_of, warn_of_fits
from skcal.functions import BilinearFunction
from skcal.model_selection.candidates import family_name
from skcal.model_selection.families import FunctionFamily, Plain, Shared
from skcal.model_selection.plan import Plan
from skcal.model_selection.stacks import Stack
from skcal.notions import Problems


def expand_candidates(candidates, from_logits=False) -> list[FunctionFamily]:
    """Expand (function, param_grid) pairs.

    Recalibration maps take logits if ``from_logits`` and probabilities otherwise.
    """
    names = distinct_names(family_name(function) for function, _ in candidates)
    families: list[FunctionFamily] = []
    for position, (name, (function, grid)) in enumerate(zip(names, candidates, strict=True)):
        place = f"candidates[{position}], {family_name(function)}"
        settings, functions = settings_of(function, grid, place)
        function = function.reading(from_logits)
        functions = [setting.reading(from_logits) for setting in functions]
        families.append(_kind_of(function)(name, function, settings, functions))
    return families


def _kind_of(function: BilinearFunction) -> type[FunctionFamily]:
    if function.parts:
        return Stack
    return Shared if function._shares_with(function) else Plain


def try_families(families, problem, rows, n_rows=30):
    """Fit every setting on a few samples, so that what cannot work is said at once.

    A candidate that fails on few samples is fitted once on a whole fold before it is refused.

    Parameters
    ----------
    families : list of FunctionFamily
    problem : Problem
    rows : ndarray of int
        A training set, whose first samples are taken unless the problem is about a part of all.
    n_rows : int, default=30
    """
    if not problem.of_all_samples:
        rows = np.arange(len(problem.features))
    if len(rows) < 2:
        return
    few = rows[:n_rows]
    for position, family in enumerate(families):
        for setting, function in zip(family.settings, family.functions, strict=True):
            error = _fit_error(function, problem, few)
            if error is not None and len(rows) > len(few):
                error = _fit_error(function, problem, rows)
            if error is not None:
                shown = ", ".join(f"{k}={v!r}" for k, v in setting.items())
                raise ValueError(
                    f"candidates[{position}], {family.name}({shown}), cannot be fitted: {error}"
                ) from error


def _fit_error(function, problem, rows):
    X, residuals = problem.seen_by(function)[rows], problem.residuals[rows]
    weight = problem.weight[rows] if problem.weight[rows].any() else np.ones(len(residuals))
    try:
        with recorded_warnings():
            if function.parts:  # whose combination comes from what searches hold out
                clone(function).fit_parts(X, residuals, weight)
            else:
                clone(function).fit(X, residuals, weight)
    except (ValueError, TypeError) as error:
        return error
    return None


def group_families(families) -> list[list[FunctionFamily]]:
    """Put families that are served by the same fits into one group each, stacks of others last."""
    groups: list[list[FunctionFamily]] = []
    for family in families:
        group = next((group for group in groups if family.shares_fits(group[0])), None)
        if group is None:
            groups.append([family])
        else:
            group.append(family)
    return sorted(groups, key=lambda group: isinstance(group[0], Stack))


def score_groups(groups, data: Problems, plan: Plan, n_jobs) -> Iterator[list[FunctionFamily]]:
    """Score every setting of every family on every column; yield each group when it is done."""
    first_stack = sum(not isinstance(group[0], Stack) for group in groups)
    yield from _score_groups(groups[:first_stack], data, plan, n_jobs)
    for [stack] in groups[first_stack:]:
        stack.take_parts(chain(*groups))
    yield from _score_groups(groups[first_stack:], data, plan, n_jobs)


def _score_groups(groups, data, plan, n_jobs):
    n_jobs_now = effective_n_jobs(n_jobs)
    calls = [group[0].calls(group, data, plan, n_jobs_now) for group in groups]
    results = one_by_one(chain(*calls), n_jobs)
    for group, of_group in zip(groups, calls, strict=True):
        scored = list(islice(results, len(of_group)))
        caught = [warning for result in scored for warning in result.warnings]
        warn_of_fits(caught, f"{group[0].name}: {{}} fit(s)")
        scores, times = group[0].record(group, scored, plan)
        start = 0
        for family in group:
            settings = slice(start, start := start + len(family.settings))
            family.take_scores(scores[settings], times[settings], plan)
        yield group
