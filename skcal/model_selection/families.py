"""Candidate functions with their settings, their fits, and their scores on a plan.

A family is ``Plain``, whose every setting is fitted by itself, ``Shared``, whose fits share work,
or a ``Stack`` (:mod:`skcal.model_selection.stacks`) of parts that are fitted once.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from joblib import hash as hash_of

from skcal._running import one_by_one, over_jobs
from skcal._selection import warn_of_fits
from skcal.functions import BilinearFunction
from skcal.model_selection.block_scores import FitsOfProblems, SharedTask, score_shared
from skcal.model_selection.engine import Fit, fit_again, fit_and_score
from skcal.model_selection.plan import Plan
from skcal.notions import Problems


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
        keys = [key_of(function) for function in self.functions]
        return {(keys[setting], k): fitted for (setting, k), fitted in self._fits.items()}


def key_of(function: BilinearFunction) -> Hashable:
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
