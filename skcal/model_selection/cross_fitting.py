"""Which fits are chosen without the samples that they test, and what they say of these.

A choice is a family and the number of one of its settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np

from skcal._running import over_jobs
from skcal.functions import BilinearFunction, Zero
from skcal.model_selection.adaptive import SquaredError, adaptive_squared_error, partitions_of
from skcal.model_selection.calibrated_limit import calibrated_limit
from skcal.model_selection.engine import Fit, corrections, excess, fit_again, plug_in
from skcal.model_selection.estimates import OneStepEstimate, one_step
from skcal.model_selection.families import FunctionFamily
from skcal.model_selection.plan import Outer, Plan
from skcal.notions import Problems


def best_family(families) -> FunctionFamily:
    """The family with the highest score; ties go to the first."""
    return families[int(np.argmax([family.scores.max() for family in families]))]


def ranking(families, columns, with_residual=False) -> list[tuple[FunctionFamily, int]]:
    """Families with the numbers of their settings, from the highest mean score on some columns.

    ``with_residual`` leaves out functions without, and h = 0, whose correction says nothing.
    """
    scored = [
        (score, family, setting)
        for family in families
        for setting, score in enumerate(family.column_scores[:, columns].mean(axis=1))
        if not with_residual
        or (
            hasattr(family.functions[setting], "residual") and not isinstance(family.function, Zero)
        )
    ]
    scored.sort(key=itemgetter(0), reverse=True)
    return [(family, setting) for _, family, setting in scored]


def fit_lacking(requests, data: Problems, plan: Plan, n_jobs) -> None:
    """Fit the families, settings and columns whose fits are not known yet."""
    keys = [(family, family.lacking(setting, column, plan)) for family, setting, column in requests]
    lacking = [(family, key) for family, key in dict.fromkeys(keys) if key is not None]
    calls = [
        (_fit_rows, family.functions[setting], data, plan.trainings[training])
        for family, (setting, training) in lacking
    ]
    for (family, key), fitted in zip(lacking, over_jobs(calls, n_jobs), strict=True):
        family.add_fit(key, fitted)


def _fit_rows(function, data, rows):
    return fit_again(function, data.take(rows))


def compare_folds(families, data: Problems, plan: Plan, n_jobs) -> list[list[Fit]]:
    """Return fits of each family's best setting to a training set of each split.

    The excess risks of these fits on the split are set. A stack is weighted by the other columns of
    the group.
    """
    requests = [(family, family.best, number) for family in families for number in plan.compared]
    fit_lacking(requests, data, plan, n_jobs)
    others = {
        number: [k for group in plan.groups if number in group for k in group if k != number]
        for number in plan.compared
    }
    fits = [
        [family.fit_of(family.best, number, others[number], plan) for number in plan.compared]
        for family in families
    ]
    calls = [
        (_excess_of_rows, fitted, data, plan.blocks[plan.columns[number].block])
        for of_family in fits
        for number, fitted in zip(plan.compared, of_family, strict=True)
    ]
    risks = iter(over_jobs(calls, n_jobs))
    for family in families:
        family.excess_risks = [next(risks) for _ in plan.compared]
    return fits


def _excess_of_rows(fitted, data, rows):
    return excess(fitted, data.take(rows))


@dataclass(frozen=True, eq=False)
class OuterResult:
    """The corrections of the test samples of an outer split, by the fits that are chosen for them.

    Attributes
    ----------
    outer : Outer
        The split, whose test samples no choice and no fit has seen.
    plug_ins : ndarray of shape (n_fits,)
        The plug-in squared error of each fit of the best function.
    function : calibration-estimation function or None
        The best function with ``residual``, other than :class:`skcal.Zero`.
    corrections : list of ndarray or None
        The mean of ĝ over its fits, for each problem of the test samples.
    """

    outer: Outer = field(repr=False)
    plug_ins: np.ndarray
    function: BilinearFunction | None
    corrections: list[np.ndarray] | None = field(repr=False)


def try_choices(families, data, plan, n_jobs) -> list[OuterResult]:
    """Choose for each outer split by its own columns, and test the fits on its test samples."""
    rankings = [
        [ranking(families, outer.columns), ranking(families, outer.columns, with_residual=True)]
        for outer in plan.outers
    ]
    requests = [
        (*choices[0], column)
        for pair, outer in zip(rankings, plan.outers, strict=True)
        for choices in pair
        if choices
        for column in outer.columns
    ]
    fit_lacking(requests, data, plan, n_jobs)
    calls = [
        (
            _test_fits,
            _fits(best[0], outer, plan),
            _fits(others[0], outer, plan) if others else None,
            data,
            outer.test,
        )
        for (best, others), outer in zip(rankings, plan.outers, strict=True)
    ]
    tested = over_jobs(calls, n_jobs)
    return [
        OuterResult(outer, plug_ins, *_first_with_correction(means, others, outer, data, plan))
        for outer, (_, others), (plug_ins, means) in zip(plan.outers, rankings, tested, strict=True)
    ]


def _first_with_correction(means, others, outer, data, plan):
    """The best function whose corrections are not zero throughout, which would say nothing."""
    if means is None:
        return None, None
    for family, setting in others:
        if means is None:
            requests = [(family, setting, column) for column in outer.columns]
            fit_lacking(requests, data, plan, None)
            means = _mean_corrections(_fits((family, setting), outer, plan), data.take(outer.test))
        if any(mean.any() for mean in means):
            return family.functions[setting], means
        means, zeros = None, means
    return others[0][0].functions[others[0][1]], zeros


def _fits(choice, outer, plan):
    family, setting = choice
    return [family.fit_of(setting, column, outer.columns, plan) for column in outer.columns]


def _test_fits(best, with_residual, data, rows):
    test = data.take(rows)
    plug_ins = np.array([plug_in(fitted, test) for fitted in best])
    return plug_ins, None if with_residual is None else _mean_corrections(with_residual, test)


def _mean_corrections(fits, test):
    total = corrections(fits[0], test)
    for fitted in fits[1:]:
        total = [mean + more for mean, more in zip(total, corrections(fitted, test), strict=True)]
    return [correction / len(fits) for correction in total]


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Samples that were tested, with corrections of fits without them.

    Attributes
    ----------
    data : Problems
        The tested samples of positive weight.
    corrections : list of ndarray of shape (n_rows, m), one a problem
        ĝ; zeros where no candidate estimates the residual.
    squared_error : SquaredError
    one_step : OneStepEstimate or None
        None where no candidate estimates the residual, or estimates it as 0 throughout.
    plug_in : float
        The mean plug-in squared error, every test sample counting once.
    calibrated_up_to : float
        What the squared error stays below with probability 0.95 if the predictions are calibrated.
    """

    data: Problems = field(repr=False)
    corrections: list[np.ndarray] = field(repr=False)
    squared_error: SquaredError
    one_step: OneStepEstimate | None
    plug_in: float
    calibrated_up_to: float

    @classmethod
    def of(cls, results: Sequence[OuterResult], data: Problems) -> CrossFit:
        """Gather the corrections of outer splits; a sample tested twice has their mean."""
        tested = np.zeros(len(data.weight), dtype=bool)
        tested[np.concatenate([result.outer.test for result in results])] = True
        rows = np.flatnonzero(tested & (data.weight > 0))
        tested_data = data.take(rows)
        known = all(result.corrections is not None for result in results)
        gathered = _gather_corrections(results, data, tested_data, rows)
        says_something = any(correction.any() for correction in gathered)  # else 0 ± 0
        shares = [data.weight[result.outer.test].sum() for result in results]
        means = [result.plug_ins.mean() for result in results]
        partitions = list(partitions_of(tested_data))
        squared_error = adaptive_squared_error(tested_data, gathered, partitions)
        return cls(
            data=tested_data,
            corrections=gathered,
            squared_error=squared_error,
            one_step=one_step(gathered, tested_data) if known and says_something else None,
            plug_in=float(np.average(means, weights=shares)),
            calibrated_up_to=calibrated_limit(tested_data, gathered, squared_error, partitions),
        )


def _gather_corrections(results, data, tested_data, rows) -> list[np.ndarray]:
    """Mean corrections of some samples, one array a problem; zeros where there are none."""
    shared = data.share_samples
    n_arrays = len(data.parts) if shared else 1  # problems may divide the samples among them
    width = data.parts[0].features.shape[1]
    total, count = np.zeros((n_arrays, len(data.weight), width)), np.zeros(len(data.weight))
    for result in results:
        tested = result.outer.test
        count[tested] += 1
        parts = data.take(tested).parts
        for k, (part, correction) in enumerate(zip(parts, result.corrections or [], strict=False)):
            total[k if shared else 0, tested[part.rows]] += correction
    total /= np.maximum(count, 1)[:, None]
    return [total[k if shared else 0, rows[part.rows]] for k, part in enumerate(tested_data.parts)]
