"""Corrections of samples by functions that have not seen them, and the estimates that they give."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from skcal._running import over_jobs
from skcal.functions import BilinearFunction
from skcal.model_selection.adaptive import SquaredError, adaptive_squared_error
from skcal.model_selection.engine import corrections, plug_in
from skcal.model_selection.estimates import OneStepEstimate, one_step
from skcal.model_selection.families import fit_lacking, ranking
from skcal.model_selection.plan import Outer
from skcal.notions import Problems


@dataclass(frozen=True, eq=False)
class OuterResult:
    """What the fits that are chosen for the test samples of an outer split say of them.

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
        (*choices[0], plan.columns[column].training)
        for pair, outer in zip(rankings, plan.outers, strict=True)
        for choices in pair
        if choices
        for column in outer.columns
    ]
    fit_lacking(requests, data, plan, n_jobs)
    calls = [
        (
            _test,
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
            fit_lacking(
                [(family, setting, plan.columns[column].training) for column in outer.columns],
                data,
                plan,
                None,
            )
            means = _mean_corrections(_fits((family, setting), outer, plan), data.take(outer.test))
        if any(mean.any() for mean in means):
            return family.functions[setting], means
        means, zeros = None, means
    return others[0][0].functions[others[0][1]], zeros


def _fits(choice, outer, plan):
    family, setting = choice
    trainings = [plan.columns[column].training for column in outer.columns]
    return [family.fit_of(setting, training, outer.columns) for training in trainings]


def _test(best, with_residual, data, rows):
    test = data.take(rows)
    plug_ins = np.array([plug_in(fitted, test) for fitted in best])
    return plug_ins, None if with_residual is None else _mean_corrections(with_residual, test)


def _mean_corrections(fits, test):
    total = corrections(fits[0], test)
    for fitted in fits[1:]:
        total = [one + more for one, more in zip(total, corrections(fitted, test), strict=True)]
    return [one / len(fits) for one in total]


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Samples that were tested, with corrections that have not seen them.

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
    """

    data: Problems = field(repr=False)
    corrections: list[np.ndarray] = field(repr=False)
    squared_error: SquaredError
    one_step: OneStepEstimate | None
    plug_in: float

    @classmethod
    def of(cls, results: list[OuterResult], data: Problems) -> CrossFit:
        """Gather the corrections of outer splits; a sample tested twice has their mean."""
        tested = np.zeros(len(data.weight), dtype=bool)
        tested[np.concatenate([result.outer.test for result in results])] = True
        rows = np.flatnonzero(tested & (data.weight > 0))
        own = data.take(rows)
        known = all(result.corrections is not None for result in results)
        gathered = _gather(results, data, own, rows)
        says_something = any(correction.any() for correction in gathered)  # else 0 ± 0
        shares = [data.weight[result.outer.test].sum() for result in results]
        means = [result.plug_ins.mean() for result in results]
        return cls(
            data=own,
            corrections=gathered,
            squared_error=adaptive_squared_error(own, gathered),
            one_step=one_step(gathered, own) if known and says_something else None,
            plug_in=float(np.average(means, weights=shares)),
        )


def _gather(results, data, own, rows) -> list[np.ndarray]:
    """Mean corrections of some samples, one array a problem; zeros where there are none."""
    shared = isinstance(data.parts[0].rows, slice)
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
    return [total[k if shared else 0, rows[part.rows]] for k, part in enumerate(own.parts)]
