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
from skcal.model_selection.adaptive import SquaredError, adaptive_squared_error
from skcal.model_selection.engine import Fit, corrections, excess, plug_in
from skcal.model_selection.estimates import OneStepEstimate, calibrated_limit, one_step
from skcal.model_selection.families import FunctionFamily, Work
from skcal.model_selection.plan import Outer
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


def compare_folds(families, work: Work) -> list[list[Fit]]:
    """Return fits of each family's best setting to a training set of each split.

    The excess risks of these fits on the split are set. A stack is weighted by the other columns of
    the group.
    """
    plan = work.plan
    others = {
        number: [k for group in plan.groups if number in group for k in group if k != number]
        for number in plan.compared
    }
    fits = [
        [family.fit_of(family.best, number, others[number], work) for number in plan.compared]
        for family in families
    ]
    calls = [
        (_excess_of_rows, fitted, work.data, plan.blocks[plan.columns[number].block])
        for of_family in fits
        for number, fitted in zip(plan.compared, of_family, strict=True)
    ]
    risks = iter(over_jobs(calls, work.n_jobs))
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


def try_choices(families, work: Work) -> list[OuterResult]:
    """Choose for each outer split by its own columns, and test the fits on its test samples."""
    outers = work.plan.outers
    rankings = [ranking(families, outer.columns, with_residual=True) for outer in outers]

    def calls():  # whose fits are derived in turn, since all of them take much memory
        for outer, with_residual in zip(outers, rankings, strict=True):
            best = _fits(ranking(families, outer.columns)[0], outer, work)
            others = _fits(with_residual[0], outer, work) if with_residual else None
            yield _test_fits, best, others, work.data, outer.test

    return [
        OuterResult(outer, plug_ins, *_first_with_correction(means, with_residual, outer, work))
        for outer, with_residual, (plug_ins, means) in zip(
            outers, rankings, over_jobs(calls(), work.n_jobs), strict=True
        )
    ]


def _first_with_correction(means, ranked, outer, work):
    """The best function whose corrections are not zero throughout, which would say nothing."""
    if means is None:
        return None, None
    zeros = means
    for number, (family, setting) in enumerate(ranked):
        if number:
            test = work.data.take(outer.test)
            means = _mean_corrections(_fits((family, setting), outer, work), test)
        if any(mean.any() for mean in means):
            return family.functions[setting], means
    family, setting = ranked[0]
    return family.functions[setting], zeros


def _fits(choice, outer, work):
    family, setting = choice
    return [family.fit_of(setting, column, outer.columns, work) for column in outer.columns]


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
        squared_error = adaptive_squared_error(tested_data, gathered)
        return cls(
            data=tested_data,
            corrections=gathered,
            squared_error=squared_error,
            one_step=one_step(gathered, tested_data) if known and says_something else None,
            plug_in=float(np.average(means, weights=shares)),
            calibrated_up_to=calibrated_limit(tested_data, gathered, squared_error),
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
