"""Scores of functions that are fitted without some blocks of samples, on these blocks.

The fits share what they compute, as :class:`skcal.functions.base.BlockFits` says. Where that is an
approximation, it is refined until the choice among the settings no longer shows it: for each group
of columns that chooses by itself, because labels of the samples that it tests must not matter. Of
each group only the best settings and those beside them in the list are scored again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import compress, count
from typing import Any, NamedTuple

import numpy as np

from skcal._running import recorded_warnings
from skcal.functions import BilinearFunction
from skcal.functions.base import BlockFits
from skcal.model_selection.engine import Fit, no_correction, raise_no_pairs
from skcal.model_selection.plan import Plan
from skcal.notions import Problem, Problems

_SETTLED = 1e-5  # relative change of the lowest risk by an approximation half as fine


class PathsOfBlocks(NamedTuple):
    """Paths that are scored by fits of one function.

    Attributes
    ----------
    serving : calibration-estimation function
    paths : list of (function, values of its path parameter)
    blocks : sequence of int
        The numbers of the blocks that score.
    """

    serving: BilinearFunction
    paths: list[tuple[BilinearFunction, list]]
    blocks: Sequence[int]


class BlockScores(NamedTuple):
    """What paths score on the columns of some blocks.

    Attributes
    ----------
    columns : list of int
    scores : ndarray of shape (n_settings, n_columns)
    fits : dict
        The fit that serves all settings, by the numbers of its training set and its refinement;
        empty where fits cost nothing.
    refinements : dict
        How often the fits were refined for each column.
    times : ndarray of shape (2,)
        Seconds of what fits share and of all else, for one setting and one training set.
    warnings : list of Warning
    """

    columns: list[int]
    scores: np.ndarray
    fits: dict[tuple[int, int], Fit]
    refinements: dict[int, int]
    times: np.ndarray
    warnings: list


def score_blocks(task: PathsOfBlocks, data: Problems, plan: Plan) -> BlockScores:
    """Score paths on the columns of some blocks."""
    with recorded_warnings() as caught:
        scores = _score_blocks(task, data, plan)
    return scores._replace(warnings=[one.message for one in caught])


def _score_blocks(task, data, plan) -> BlockScores:
    start = time.perf_counter()
    fits = _FitsOfProblems.of(task.serving, [data.take(rows) for rows in plan.blocks])
    middle = time.perf_counter()
    columns = [
        k for block in task.blocks for k, one in enumerate(plan.columns) if one.split == block
    ]
    scores = np.empty((sum(len(values) for _, values in task.paths), len(plan.columns)))
    groups = [[k for k in columns if k in group] for group in plan.groups]
    kept, refinements = {}, {}
    for refinement in count():
        open_columns = sorted(set().union(*groups))
        if refinement:
            for group in groups:
                _score_the_best_again(fits, task.paths, plan, group, scores)
        else:
            scores[:, open_columns] = fits.scores(task.paths, plan, open_columns)
        refinements.update(dict.fromkeys(open_columns, refinement))
        if task.serving._blocks_share == "fits":
            for training in {plan.columns[column].training for column in open_columns}:
                kept[training, refinement] = fits.fit(_training_blocks(plan, training))
        coarser = fits.coarser()
        if coarser is None:
            break
        groups = [one for one in groups if not _is_settled(coarser, task.paths, plan, one, scores)]
        if not groups:
            break
        fits = fits.finer()
    times = np.array([middle - start, time.perf_counter() - middle])
    times /= len(scores) * len(plan.trainings)
    return BlockScores(columns, scores[:, columns], kept, refinements, times, [])


def _score_the_best_again(fits, paths, plan, columns, scores) -> None:
    """Score what the columns choose by finer fits, with the settings beside it in the list."""
    known = np.zeros(len(scores), dtype=bool)
    while (new := _near_the_best(paths, scores[:, columns].mean(axis=1)) & ~known).any():
        places = np.flatnonzero(new)[:, None], columns
        scores[places] = fits.scores(_of_paths(paths, new), plan, columns)
        known |= new


def _near_the_best(paths, means) -> np.ndarray:
    """Which settings are the best of a path or beside it."""
    parts = _by_path(paths, means)
    return np.concatenate([np.abs(np.arange(len(own)) - own.argmax()) <= 1 for own in parts])


def _of_paths(paths, settings) -> list:
    """The paths of these settings alone."""
    return [
        (function, list(compress(values, chosen)))
        for (function, values), chosen in zip(paths, _by_path(paths, settings), strict=True)
        if chosen.any()
    ]


def _by_path(paths, values) -> list[np.ndarray]:
    """What is said of all settings, path by path."""
    return np.split(values, np.cumsum([len(one) for _, one in paths])[:-1])


def _training_blocks(plan: Plan, training: int) -> tuple[int, ...]:
    """The numbers of the blocks of a training set."""
    return tuple(k for k in range(len(plan.blocks)) if k not in plan.trainings[training].lacks)


def _is_settled(coarser, paths, plan, columns, scores) -> bool:
    """Whether half the accuracy changes nothing of the best score of each path."""
    means = _by_path(paths, scores[:, columns].mean(axis=1))
    best = [
        (function, [values[int(mean.argmax())]])
        for (function, values), mean in zip(paths, means, strict=True)
    ]
    highest = np.array([mean.max() for mean in means])
    others = coarser.scores(best, plan, columns).mean(axis=1)
    return bool((np.abs(others - highest) <= _SETTLED * np.abs(highest)).all())


class _FitsOfProblems(NamedTuple):
    """Fits of one function to unions of blocks, for every problem.

    ``parts`` holds None for problems of which no union has enough samples; ``blocks`` the problems
    of each block.
    """

    parts: list[BlockFits | None]
    blocks: list[Problems]

    @classmethod
    def of(cls, function: BilinearFunction, blocks: list[Problems]) -> _FitsOfProblems:
        """Prepare the fits."""
        parts = []
        for problems in zip(*(block.parts for block in blocks), strict=True):
            data = [(one.seen_by(function), one.residuals, one.weight) for one in problems]
            parts.append(function._over_blocks(data) if _has_pairs(problems) else None)
        return cls(parts, blocks)

    def fit(self, training: tuple[int, ...]) -> Fit:
        """Return the function of each problem; h = 0 for one with too few samples."""
        return [
            part.fit(training) if part and self._is_trained(number, training) else no_correction()
            for number, part in enumerate(self.parts)
        ]

    def scores(self, paths: list, plan: Plan, columns: list[int]) -> np.ndarray:
        """Scores of every value of the paths on columns, summed over the problems."""
        scores = np.zeros((sum(len(values) for _, values in paths), len(columns)))
        for block in range(len(self.blocks)):
            places = [k for k, column in enumerate(columns) if plan.columns[column].split == block]
            numbers = [plan.columns[columns[place]].training for place in places]
            trainings = [_training_blocks(plan, number) for number in numbers]
            if places:
                scores[:, places] = self._scores_on(block, paths, trainings)
        return scores

    def _scores_on(self, block: int, paths: list, trainings: list) -> Any:
        parts = self.blocks[block].parts
        if not any(problem.has_pairs for problem in parts):
            raise_no_pairs(len(self.blocks[block].weight))
        return sum(
            problem.share * self._scores_of(number, block, paths, trainings)
            for number, problem in enumerate(parts)
            if problem.has_pairs
        )

    def _scores_of(self, number: int, block: int, paths: list, trainings: list) -> np.ndarray:
        """Scores of a problem; those of h = 0 where fits have too few samples."""
        part, problem = self.parts[number], self.blocks[block].parts[number]
        trained = [k for k, one in enumerate(trainings) if self._is_trained(number, one)]
        scores = np.empty((sum(len(values) for _, values in paths), len(trainings)))
        if len(trained) < len(trainings):
            X, residuals, weight = problem.features, problem.residuals, problem.weight
            scores[:] = no_correction().score(X, residuals, weight)
        if part and trained:
            scores[:, trained] = part.scores(paths, block, [trainings[k] for k in trained])
        return scores

    def coarser(self) -> _FitsOfProblems | None:
        """Return fits that approximate more, or None where nothing is an approximation."""
        coarser = [part and part.coarser() for part in self.parts]
        if not any(coarser):
            return None
        parts = [one or part for one, part in zip(coarser, self.parts, strict=True)]
        return self._replace(parts=parts)

    def finer(self) -> _FitsOfProblems:
        """Return fits that approximate less, of those that are approximations."""
        parts = [part.finer() if part and part.coarser() else part for part in self.parts]
        return self._replace(parts=parts)

    def _is_trained(self, number: int, training: tuple[int, ...]) -> bool:
        return _has_pairs([self.blocks[k].parts[number] for k in training])


def _has_pairs(problems: Sequence[Problem]) -> bool:
    """Whether parts of one problem have the samples, together, that a fit needs."""
    counts = [int(np.count_nonzero(problem.weight)) for problem in problems]
    return problems[0].of_all_samples or sum(counts) >= 2
