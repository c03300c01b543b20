"""Candidate functions with their settings, what fits of them cost, and their scores on a plan.

A family is ``Plain``, whose every setting is a fit, a ``Path``, whose settings all derive from one
fit, or a ``Stack``, whose parts are fitted once and weighted by what other fits hold out.
"""

from __future__ import annotations

import copy
import pickle
import time
import warnings
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from joblib import hash as hash_of
from sklearn.base import clone

from skcal._matrices import sum_over_pairs
from skcal._running import one_by_one, recorded_warnings
from skcal._selection import distinct_names, settings_of, warn_of_fits
from skcal.functions import BilinearFunction
from skcal.model_selection.block_scores import BlockScores, PathsOfBlocks, score_blocks
from skcal.model_selection.candidates import family_name
from skcal.model_selection.engine import (
    Fit,
    Task,
    derived,
    fit_again,
    fit_and_score,
    no_correction,
    raise_no_pairs,
)
from skcal.model_selection.plan import Plan
from skcal.notions import Problem, Problems
from skcal.pair_risk import pair_risk_path


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
        """Whether a fit of one family serves the other, too."""
        return False

    def calls(self, group: list, data: Problems, plan: Plan, n_jobs: int) -> list[tuple]:
        """Return (function, *arguments) of what is to be done for a group."""
        tasks = self.tasks(group, n_jobs)
        return [(*task, data, *training[:2]) for task in tasks for training in plan.trainings]

    def tasks(self, group: list, n_jobs: int) -> list[tuple]:
        """Return (function, argument) of what is done on every training set for a group."""
        raise NotImplementedError

    def record(self, group: list, results: list, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
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

    def knows(self, setting: int, training: int) -> bool:
        """Whether the fit of a setting to a training set is known."""
        return True

    def fit_of(self, setting: int, training: int, columns: list[int]) -> Fit:
        """Return a fit that is known; the columns choose the weights of a stack."""
        raise NotImplementedError

    def fit_to_all(self, data: Problems) -> Fit:
        """Fit the best setting; all columns choose the weights of a stack."""
        return fit_again(self.best_function, data)

    def forget_fits(self) -> None:
        """Free the fits that the best setting does not need."""
        self._fits = {}


class Plain(FunctionFamily):
    """Every setting is fitted to every training set; settings are spread over the jobs."""

    def tasks(self, group: list, n_jobs: int) -> list[tuple]:
        """Return tasks of some settings each; fits of a single one, or small ones, are kept."""
        count = len(self.functions)
        keep = count == 1 or all(function._has_small_fits for function in self.functions)
        parts = np.array_split(np.arange(count), min(n_jobs, count))
        return [
            (fit_and_score, Task([self.functions[k] for k in part], [], keep)) for part in parts
        ]

    def record(self, group: list, results: list, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
        """Keep the fits that were returned."""
        for training, of_tasks in enumerate(zip(*_by_task(results, plan), strict=True)):
            for setting, fitted in enumerate(chain(*(one.fits for one in of_tasks))):
                self._fits[setting, training] = fitted
        return _scores_and_times(results, plan)

    def knows(self, setting: int, training: int) -> bool:
        """Whether the setting was fitted to the training set, and the fit kept."""
        return (setting, training) in self._fits

    def add_fit(self, setting: int, training: int, fitted: Fit) -> None:
        """Keep a fit."""
        self._fits[setting, training] = fitted

    def fit_of(self, setting: int, training: int, columns: list[int]) -> Fit:
        """Return the fit that was kept."""
        return self._fits[setting, training]

    def known_fits(self) -> dict[Hashable, dict[int, Fit]]:
        """The fits to each training set, by the key of the function."""
        keys = [_key_of(function) for function in self.functions]
        known: dict[Hashable, dict[int, Fit]] = {}
        for (setting, training), fitted in self._fits.items():
            known.setdefault(keys[setting], {})[training] = fitted
        return known


def _key_of(function: BilinearFunction) -> Hashable:
    """What is equal for functions of equal parameters, if these can be pickled."""
    try:
        return hash_of(function)
    except (pickle.PicklingError, TypeError, AttributeError):
        return id(function)


class Path(FunctionFamily):
    """All settings vary one parameter, and a fit of one of them serves the others.

    Paths whose functions share a factor, such as that of a kernel, are one group of one fit.
    """

    _refinements: dict[int, int] = {}  # of the fits for each column, where blocks share them

    @property
    def parameter(self) -> str:
        """The name of the parameter that varies."""
        return str(self.function.path_parameter)

    @property
    def values(self) -> list:
        """The value of the parameter in each setting."""
        return [setting[self.parameter] for setting in self.settings]

    def shares_fits(self, other: FunctionFamily) -> bool:
        """Whether one of the functions can be derived from a fit of the other."""
        first, second = self.function, other.function
        shares = first.shares_factor(second) or second.shares_factor(first)
        return isinstance(other, Path) and shares

    def calls(self, group: list, data: Problems, plan: Plan, n_jobs: int) -> list[tuple]:
        """Return calls for each training set, or for blocks where fits to these share work."""
        serving = self._serving_group(group)
        if not plan.blocks or serving._blocks_share is None:
            return super().calls(group, data, plan, n_jobs)
        paths = [(path.function, path.values) for path in group]
        n_parts = 1 if serving._blocks_share == "fits" else min(n_jobs, len(plan.blocks))
        parts = np.array_split(np.arange(len(plan.blocks)), n_parts)
        tasks = [PathsOfBlocks(serving, paths, part.tolist()) for part in parts]
        return [(score_blocks, task, data, plan) for task in tasks]

    def tasks(self, group: list, n_jobs: int) -> list[tuple]:
        """Return the task of fitting the function that serves all paths of the group."""
        paths = [(path.function, path.values) for path in group]
        return [(fit_and_score, Task([self._serving_group(group)], paths, True))]

    def _serving_group(self, group: list) -> BilinearFunction:
        """The function whose fit serves all settings of a group."""
        serving, *others = [path._serving() for path in group]
        for function in others:
            if not function.shares_factor(serving):
                serving = function
        return serving

    def _serving(self) -> BilinearFunction:
        """The function whose fit serves the other settings."""
        value = self.function.serving_value(self.values)
        # A shallow copy: the objects of a kernel stay what they are.
        return copy.copy(self.function).set_params(**{self.parameter: value})

    def record(self, group: list, results: list, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
        """Keep the fit to each training set for all paths of the group."""
        if isinstance(results[0], BlockScores):
            return self._record_blocks(group, results, plan)
        for path in group:
            path._fits = {(k, 0): fitted for k, one in enumerate(results) for fitted in one.fits}
        return _scores_and_times(results, plan)

    def _record_blocks(self, group: list, results: list, plan: Plan) -> tuple:
        for path in group:
            path._fits = {k: fitted for one in results for k, fitted in one.fits.items()}
            path._refinements = {
                k: times for one in results for k, times in one.refinements.items()
            }
        order = np.argsort([k for one in results for k in one.columns])
        scores = np.hstack([one.scores for one in results])[:, order]
        times = sum(one.times for one in results)
        return scores, np.broadcast_to(times, (len(scores), len(plan.trainings), 2))

    def knows(self, setting: int, training: int) -> bool:
        """Whether the fit that serves all was kept."""
        return any(known == training for known, _ in self._fits)

    def add_fit(self, setting: int, training: int, fitted: Fit) -> None:
        """Keep a fit."""
        self._fits[training, 0] = fitted

    def fit_of(self, setting: int, training: int, columns: list[int]) -> Fit:
        """Derive the setting from the fit that serves all."""
        refinement = self._refinements[columns[0]] if self._refinements else 0
        return derived(self.functions[setting], self._fits[training, refinement])


def _by_task(results: list, plan: Plan) -> list[list]:
    """Results of each training set, for each task."""
    count = len(plan.trainings)
    return [results[start : start + count] for start in range(0, len(results), count)]


def _scores_and_times(results: list, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Scores and times of settings on each training set."""
    tasks = _by_task(results, plan)
    scores = np.concatenate([np.hstack([one.scores for one in task]) for task in tasks])
    times = np.concatenate([np.stack([one.times for one in task], axis=1) for task in tasks])
    return scores, times


class Stack(FunctionFamily):
    """A function of fitted parts, its weights chosen by samples that other fits hold out.

    The parts are fitted once to each training set and never cross-validated inside: what they say
    of the samples that score other fits chooses the weights.
    """

    _held_out: list[list]  # of each column
    _known: Sequence[dict[int, Fit]]  # fits of each part, by training

    def take_parts(self, families: Iterable[FunctionFamily]) -> None:
        """Take the fits of parts from candidates that are the same functions."""
        known: dict[Hashable, dict[int, Fit]] = {}
        for family in families:
            if isinstance(family, Plain):
                known |= family.known_fits()
        self._known = [known.get(_key_of(part), {}) for part in self.function.parts]

    def calls(self, group: list, data: Problems, plan: Plan, n_jobs: int) -> list[tuple]:
        """Return the call that fits the parts, for each training set."""
        return [
            (fit_parts, self.function, data, *training[:2], [fits.get(k) for fits in self._known])
            for k, training in enumerate(plan.trainings)
        ]

    def record(self, group: list, results: list, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
        """Keep the parts; score each column by the weights that the others of its group choose."""
        self._fits = dict(enumerate(one.fits for one in results))
        self._held_out = [column for one in results for column in one.held_out]
        scores = np.empty((1, len(plan.columns)))
        for columns in plan.groups:
            for column in columns:
                others = [self._held_out[other] for other in columns if other != column]
                scores[0, column] = _stack_score(self.function, self._held_out[column], others)
        return scores, np.stack([one.times for one in results], axis=1)

    def fit_of(self, setting: int, training: int, columns: list[int]) -> Fit:
        """Combine the parts by weights that the columns choose."""
        held_out = [self._held_out[column] for column in columns]
        return _combine(self.function, self._fits[training], held_out)

    def fit_to_all(self, data: Problems) -> Fit:
        """Fit the parts to all samples; all columns choose the weights."""
        with recorded_warnings():  # which the parts have said before
            parts = _parts_of(self.function, data)
        return _combine(self.function, parts, self._held_out)

    def forget_fits(self) -> None:
        """Free the parts, and what they say."""
        self._fits, self._held_out = {}, []


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
    with recorded_warnings() as caught:
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
    return FittedParts(fits, held_out, times, [one.message for one in caught])


def _parts_of(stack: Any, data: Problems, known: Iterable[Fit | None] = ()) -> list:
    """The fitted parts of each problem, None where it has too few samples."""
    fits = []
    for k, problem in enumerate(data.parts):
        sample = problem.seen_by(stack), problem.residuals, problem.weight
        own = [fitted and fitted[k] for fitted in known]
        fits.append(stack.fit_parts(*sample, own) if problem.has_pairs else None)
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
        (one.products for one in held_out if one is not None), np.zeros((2, count, count + 1))
    )


def _stack_score(stack: Any, column: list, others: list[list]) -> float:
    """Score of a stack on a column whose weights the other columns choose."""
    total, counted = 0.0, False
    for judged, *held_out in zip(column, *others, strict=True):
        if judged is not None:
            counted = True
            weights = stack.best_weights(_sum_of_products(stack, held_out)[0])
            gram, moments = judged.products[0][:, :-1], judged.products[0][:, -1]
            gain = weights @ (gram @ weights - 2 * moments) / judged.pairs
            total -= judged.share * (judged.zero_risk + gain)
    if not counted:
        raise_no_pairs(0)
    return total


def expand_candidates(candidates, memory=None, from_logits=False) -> list[FunctionFamily]:
    """Expand (function, param_grid) pairs; functions that can cache get the ``memory``.

    Recalibration maps take logits if ``from_logits`` and probabilities otherwise.
    """
    names = distinct_names(family_name(function) for function, _ in candidates)
    families: list[FunctionFamily] = []
    for position, (name, (function, grid)) in enumerate(zip(names, candidates, strict=True)):
        if memory is not None and "memory" in function.get_params(deep=False):
            function = clone(function).set_params(memory=memory)
        place = f"candidates[{position}], {family_name(function)}"
        settings, functions = settings_of(function, grid, place)
        function = function.reading(from_logits)
        functions = [one.reading(from_logits) for one in functions]
        families.append(_kind_of(function, settings)(name, function, settings, functions))
    return families


def _kind_of(function: BilinearFunction, settings: list[dict]) -> type[FunctionFamily]:
    if function.parts:
        return Stack
    parameter = function.path_parameter
    along_path = parameter is not None and all(one.keys() == {parameter} for one in settings)
    return Path if along_path else Plain


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
        caught = [warning for one in scored for warning in one.warnings]
        warn_of_fits(caught, f"{group[0].name}: {{}} fit(s)")
        scores, times = group[0].record(group, scored, plan)
        start = 0
        for family in group:
            settings = slice(start, start := start + len(family.settings))
            family.take_scores(scores[settings], times[settings], plan)
        yield group
