"""Candidate functions with their settings, their fits, and their scores on a plan.

A family is ``Plain``, whose every setting is fitted by itself, ``Shared``, whose fits share work,
or a ``Stack`` of parts that are fitted once, and that held-out samples weight.
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from joblib import hash as hash_of

from skcal._matrices import sum_over_pairs
from skcal._running import one_by_one, over_jobs
from skcal._selection import warn_of_fits
from skcal.functions import BilinearFunction
from skcal.functions.stacking import best_weights
from skcal.model_selection.engine import (
    Fit,
    FitsOfProblems,
    SharedTask,
    fit_again,
    fit_and_score,
    no_correction,
    raise_no_pairs,
    score_shared,
)
from skcal.model_selection.plan import Plan
from skcal.notions import Problem, Problems
from skcal.pair_risk import pair_risk_path


class Work(NamedTuple):
    """What a cross-validation works with: the samples, their splits, and the number of jobs."""

    data: Problems
    plan: Plan
    n_jobs: int | None


@dataclass(eq=False)
class FunctionFamily:
    """A candidate function with its parameter settings and what the held-out samples said of them.

    Attributes
    ----------
    name : str
    function : calibration-estimation function
        The candidate as it was passed.
    settings : list of dict
    functions : list of calibration-estimation functions
        Unfitted, one a setting.
    column_scores : ndarray of shape (n_settings, n_columns)
        The score of each setting on each column of the plan.
    split_scores : ndarray of shape (n_settings, n_splits)
        The mean over the columns of each split.
    scores : ndarray of shape (n_settings,)
        The mean over the splits.
    times : ndarray of shape (n_settings, n_trainings, 2)
        Seconds of the fits and of the scores.
    models : list of CalibrationErrorEstimator
        The best setting as fitted to the training samples of a column of each split.
    excess_risks : list of PairRisk
        The risks of the models above that of h = 0 on these columns.
    """

    name: str
    function: BilinearFunction
    settings: list[dict]
    functions: list[BilinearFunction]
    column_scores: np.ndarray = field(init=False, repr=False)
    split_scores: np.ndarray = field(init=False, repr=False)
    scores: np.ndarray = field(init=False, repr=False)
    times: np.ndarray = field(init=False, repr=False)
    models: list = field(default_factory=list, repr=False)
    excess_risks: list = field(default_factory=list, repr=False)
    _fits: dict = field(default_factory=dict, repr=False)  # known fits, until they are forgotten

    @property
    def best(self) -> int:
        """Index of the best setting."""
        return int(np.argmax(self.scores))

    @property
    def best_function(self) -> BilinearFunction:
        """Unfitted function with the best parameters."""
        return self.functions[self.best]

    @property
    def best_setting(self) -> dict:
        """The best parameters."""
        return self.settings[self.best]

    def report(self) -> str:
        """One line for ``verbose``."""
        return (
            f"{self.name}: {len(self.settings)} setting(s), {self.split_scores.shape[1]} folds, "
            f"lowest risk {-self.scores.max():.9g}"
        )

    def shares_fits(self, other: FunctionFamily) -> bool:
        """Whether fits of one family serve the other, too."""
        return False

    def calls(self, group: list, work: Work) -> list[tuple]:
        """Return (function, *arguments) of what is to be done for a group."""
        raise NotImplementedError

    def record(self, group: list, results: list, work: Work) -> tuple[np.ndarray, np.ndarray]:
        """Keep the fits that are known; return scores and times of the settings of the group.

        Scores are (n_settings, n_columns), times (n_settings, n_trainings, 2); ``results`` holds
        what each call has returned.
        """
        raise NotImplementedError

    def take_scores(self, scores: np.ndarray, times: np.ndarray, plan: Plan) -> None:
        """Set the scores of the settings on the columns of a plan.

        A setting whose risk is not finite on every column scores minus infinity, with a warning.
        """
        finite = np.isfinite(scores).all(axis=1)
        if not finite.all():
            setting = self.settings[int(np.argmin(finite))]
            n_others = np.count_nonzero(~finite) - 1
            others = f" and {n_others} more of its settings" if n_others else ""
            pronoun = "them" if n_others else "it"
            warnings.warn(
                f"The risk of {self.name} with {setting}{others} is not finite. The search leaves "
                f"{pronoun} out. Check what this candidate predicts.",
                stacklevel=2,
            )
            scores = np.where(finite[:, None], scores, -np.inf)
        self.column_scores, self.times = scores, times
        means = [scores[:, columns].mean(axis=1) for columns in plan.splits]
        self.split_scores = np.stack(means, axis=1)
        self.scores = self.split_scores.mean(axis=1)

    def fit_of(self, setting: int, column: int, chosen_by: list[int], work: Work) -> Fit:
        """Return the fit of a column; others choose the weights of a stack."""
        raise NotImplementedError

    def fit_to_all(self, work: Work) -> Fit:
        """Fit the best setting to all samples of the plan."""
        return fit_again(self.best_function, work.data, work.plan.rows)

    def forget_fits(self) -> None:
        """Free the fits that the best setting does not need."""
        self._fits = {}


class Plain(FunctionFamily):
    """Every setting is fitted to every training set."""

    def calls(self, group: list, work: Work) -> list[tuple]:
        """Return a call a training set; fits of a single setting, or small ones, are kept."""
        keep = len(self.functions) == 1 or all(f._has_small_fits for f in self.functions)
        return [
            (fit_and_score, self.functions, keep, work.data, *training)
            for training in work.plan.scored_trainings
        ]

    def record(self, group: list, results: list, work: Work) -> tuple[np.ndarray, np.ndarray]:
        """Keep the fits that were returned."""
        for training, result in enumerate(results):
            for setting, fitted in enumerate(result.fits):
                self._fits[setting, training] = fitted
        scores = np.hstack([result.scores for result in results])
        return scores, np.stack([result.times for result in results], axis=1)

    def fit_of(self, setting: int, column: int, chosen_by: list[int], work: Work) -> Fit:
        """Return the fit that was kept; else the setting is fitted to all training sets."""
        training = work.plan.columns[column].training
        if (setting, training) not in self._fits:
            function = self.functions[setting]
            calls = [(fit_again, function, work.data, rows) for rows in work.plan.trainings]
            for number, fitted in enumerate(over_jobs(calls, work.n_jobs)):
                self._fits[setting, number] = fitted
        return self._fits[setting, training]

    def known_fits(self) -> dict[tuple[Hashable, int], Fit]:
        """The fits by the key of the function and the number of the training set."""
        keys = [hash_or_id(function) for function in self.functions]
        return {(keys[setting], k): fitted for (setting, k), fitted in self._fits.items()}


def hash_or_id(function: BilinearFunction) -> Hashable:
    """What is equal for functions of equal parameters, if these can be pickled."""
    try:
        return hash_of(function)
    except (pickle.PicklingError, TypeError, AttributeError):
        return id(function)


class Shared(FunctionFamily):
    """Settings whose fits share work, also with those of other families, which are a group."""

    _tasks: list[tuple[list[int], SharedTask]]  # of the group, with numbers of its settings
    _offset: int  # of the settings of this family among those of the group

    def shares_fits(self, other: FunctionFamily) -> bool:
        """Whether the functions share work."""
        return isinstance(other, Shared) and self.function._shares_with(other.function)

    def calls(self, group: list, work: Work) -> list[tuple]:
        """Return calls for settings that share work, one a block where blocks divide it."""
        functions = [function for family in group for function in family.functions]
        owners = [number for number, family in enumerate(group) for _ in family.functions]
        self._tasks = []
        for rows, cells in work.plan.unions:
            blocks = [work.data.take(block) for block in rows]
            for numbers in _sharing(functions):
                fits = FitsOfProblems.of([functions[k] for k in numbers], blocks)
                candidates = groupby(numbers, owners.__getitem__)
                paths = [[functions[k] for k in settings] for _, settings in candidates]
                parts = [cells]
                if fits.of_single_blocks:
                    parts = [[c for c in cells if c.block == block] for block in range(len(rows))]
                for part in parts:
                    groups = [
                        [c for c in part if c.column in chosen] for chosen in work.plan.groups
                    ]
                    task = SharedTask(fits, paths, list(filter(None, groups)))
                    self._tasks.append((numbers, task))
        return [(score_shared, task) for _, task in self._tasks]

    def record(self, group: list, results: list, work: Work) -> tuple[np.ndarray, np.ndarray]:
        """Keep the fits of each column for all families of the group."""
        plan, count = work.plan, sum(len(family.functions) for family in group)
        scores, times = np.empty((count, len(plan.columns))), np.zeros((count, 2))
        known: dict[tuple[int, int], tuple[FitsOfProblems, tuple[int, ...]]] = {}
        for (numbers, task), result in zip(self._tasks, results, strict=True):
            times[numbers, 0] += result.seconds / len(numbers) / len(plan.trainings)
            for cell in chain(*task.groups):
                scores[numbers, cell.column] = result.scores[cell.column]
                fits = result.fits.get(cell.column, task.fits)
                known |= {(k, cell.column): (fits, cell.training) for k in numbers}
        start = 0
        for family in group:
            family._fits, family._offset = known, start
            start += len(family.functions)
        self._tasks = []
        return scores, np.broadcast_to(times[:, None], (count, len(plan.trainings), 2))

    def fit_of(self, setting: int, column: int, chosen_by: list[int], work: Work) -> Fit:
        """Derive the fit from what was shared."""
        fits, training = self._fits[self._offset + setting, column]
        return fits.fit(self.functions[setting], training)

    def fit_to_all(self, work: Work) -> Fit:
        """Fit the best setting to all blocks, as finely as any choice needed."""
        if not work.plan.of_blocks:
            return super().fit_to_all(work)
        number = self._offset + self.best
        known = (self._fits[number, column][0] for column in range(len(work.plan.columns)))
        finest = max(known, key=attrgetter("rank"))
        return finest.fit(self.best_function, tuple(range(len(work.plan.blocks))))


def _sharing(functions: list[BilinearFunction]) -> list[list[int]]:
    """Numbers of functions that share work with each other."""
    sharing: list[list[int]] = []
    for number, function in enumerate(functions):
        for numbers in sharing:
            if function._shares_with(functions[numbers[0]]):
                numbers.append(number)
                break
        else:
            sharing.append([number])
    return sharing


def group_families(families) -> list[list[FunctionFamily]]:
    """Put families that are served by the same fits into one group each, stacks of others last."""
    groups: list[list[FunctionFamily]] = []
    for family in families:
        group = next((group for group in groups if family.shares_fits(group[0])), None)
        if group is None:
            groups.append([family])
        else:
            group.append(family)
    return sorted(groups, key=_is_stack)


def score_groups(groups, work: Work) -> Iterator[list[FunctionFamily]]:
    """Score every setting of every family on every column; yield each group when it is done."""
    first_stack = sum(not _is_stack(group) for group in groups)
    yield from _score_groups(groups[:first_stack], work)
    for [stack] in groups[first_stack:]:
        stack.take_parts(chain(*groups))
    yield from _score_groups(groups[first_stack:], work)


def _is_stack(group: list[FunctionFamily]) -> bool:
    return bool(group[0].function.parts)


def _score_groups(groups, work):
    calls = [group[0].calls(group, work) for group in groups]
    results = one_by_one(chain(*calls), work.n_jobs)
    for group, of_group in zip(groups, calls, strict=True):
        scored = list(islice(results, len(of_group)))
        caught = [warning for result in scored for warning in result.warnings]
        warn_of_fits(caught, f"{group[0].name}: {{}} fit(s)")
        scores, times = group[0].record(group, scored, work)
        start = 0
        for family in group:
            settings = slice(start, start := start + len(family.settings))
            family.take_scores(scores[settings], times[settings], work.plan)
        yield group


class Stack(FunctionFamily):
    """A function of fitted parts, its weights chosen by samples that other fits hold out.

    The parts are fitted once to each training set and never cross-validated inside: what they say
    of the samples that score other fits chooses the weights.
    """

    _held_out: list[list]  # of each column
    _known: dict[tuple[Hashable, int], Fit]  # of functions that may be parts, by training

    def take_parts(self, families: Iterable[FunctionFamily]) -> None:
        """Take the fits of parts from candidates that are the same functions."""
        self._known = {}
        for family in families:
            if isinstance(family, Plain):
                self._known |= family.known_fits()

    def calls(self, group: list, work: Work) -> list[tuple]:
        """Return the call that fits the parts, for each training set."""
        keys = [hash_or_id(part) for part in self.function.parts]
        known = [
            [self._known.get((key, k)) for key in keys] for k in range(len(work.plan.trainings))
        ]
        return [
            (fit_parts, self.function, work.data, *training, of_parts)
            for training, of_parts in zip(work.plan.scored_trainings, known, strict=True)
        ]

    def record(self, group: list, results: list, work: Work) -> tuple[np.ndarray, np.ndarray]:
        """Keep the parts; score each column by the weights that the others of its group choose."""
        self._fits = dict(enumerate(result.fits for result in results))
        self._held_out = [column for result in results for column in result.held_out]
        scores = np.empty((1, len(work.plan.columns)))
        for columns in work.plan.groups:
            for column in columns:
                others = [self._held_out[other] for other in columns if other != column]
                scores[0, column] = _stack_score(self.function, self._held_out[column], others)
        return scores, np.stack([result.times for result in results], axis=1)

    def fit_of(self, setting: int, column: int, chosen_by: list[int], work: Work) -> Fit:
        """Combine the parts by weights that some columns choose."""
        held_out = [self._held_out[number] for number in chosen_by]
        training = work.plan.columns[column].training
        return _combine(self.function, self._fits[training], held_out)

    def fit_to_all(self, work: Work) -> Fit:
        """Fit the parts to all samples; all columns choose the weights."""
        # which the parts have said before
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            parts = _parts_of(self.function, work.data.take(work.plan.rows))
        return _combine(self.function, parts, self._held_out)

    def forget_fits(self) -> None:
        """Free the parts, and what they say."""
        self._fits, self._held_out, self._known = {}, [], {}


class HeldOutParts(NamedTuple):
    """What the parts of a stack say of one problem of samples that their fits lack.

    Attributes
    ----------
    products : ndarray
        What :meth:`skcal.Stacking.products` returns.
    zero_risk, pairs, share : float
        The risk of h = 0, the weight of all pairs, and the share of the problem.
    """

    products: np.ndarray
    zero_risk: float
    pairs: float
    share: float


class FittedParts(NamedTuple):
    """Fitted parts of a stack, and what they say of held-out samples.

    Attributes
    ----------
    fits : list
        The fitted functions of each problem, or None where it has too few samples.
    held_out : list of lists of HeldOutParts or None
        One for each set of evaluation rows and each problem.
    times : ndarray of shape (1, 2)
    warnings : list of Warning
    """

    fits: list
    held_out: list[list]
    times: np.ndarray
    warnings: list


def fit_parts(
    stack: Any,
    data: Problems,
    train: np.ndarray,
    evaluations: list[np.ndarray],
    known: list[Fit | None],
) -> FittedParts:
    """Fit the parts of a stack to the training rows, for weights that others will choose.

    ``known`` holds the fit of each part, or None.
    """
    start = time.perf_counter()
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
        fits = _parts_of(stack, data.take(train), known)
    middle = time.perf_counter()
    held_out = [
        [
            _hold_out(stack, fitted, problem)
            for fitted, problem in zip(fits, data.take(rows).parts, strict=True)
        ]
        for rows in evaluations
    ]
    times = np.array([[middle - start, time.perf_counter() - middle]])
    return FittedParts(fits, held_out, times, [entry.message for entry in caught])


def _parts_of(stack: Any, data: Problems, known: Iterable[Fit | None] = ()) -> list:
    """The fitted parts of each problem, None where it has too few samples."""
    fits = []
    for k, problem in enumerate(data.parts):
        sample = problem.seen_by(stack), problem.residuals, problem.weight
        known_parts = [fitted and fitted[k] for fitted in known]
        fits.append(stack.fit_parts(*sample, known_parts) if problem.has_pairs else None)
    return fits


def _hold_out(stack, fitted, problem: Problem) -> HeldOutParts | None:
    if fitted is None or not problem.has_pairs:
        return None
    X, residuals, weight = problem.seen_by(stack), problem.residuals, problem.weight
    zero = pair_risk_path(np.zeros((len(X), 1)), residuals, [None], sample_weight=weight)
    products = stack.products(fitted, X, residuals, weight)
    return HeldOutParts(products, float(zero[0]), float(sum_over_pairs(weight)), problem.share)


def _combine(stack: Any, fits: list, columns: list[list]) -> Fit:
    """The stack of fitted parts, its weights chosen by what columns of held-out samples say."""
    return [
        no_correction()
        if fitted is None
        else stack.combined(fitted, _sum_of_products(stack, held_out))
        for fitted, *held_out in zip(fits, *columns, strict=True)
    ]


def _sum_of_products(stack, held_out):
    count = len(stack.parts)
    return sum(
        (part.products for part in held_out if part is not None), np.zeros((2, count, count + 1))
    )


def _stack_score(stack: Any, column: list, others: list[list]) -> float:
    """Score of a stack on a column whose weights the other columns choose."""
    total, counted = 0.0, False
    for judged, *held_out in zip(column, *others, strict=True):
        if judged is not None:
            counted = True
            weights = best_weights(_sum_of_products(stack, held_out)[0])
            gram, moments = judged.products[0][:, :-1], judged.products[0][:, -1]
            gain = weights @ (gram @ weights - 2 * moments) / judged.pairs
            total -= judged.share * (judged.zero_risk + gain)
    if not counted:
        raise_no_pairs(0)
    return total
