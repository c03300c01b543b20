"""Scores of functions that share work, which are fitted to unions of blocks of samples.

Where what they share (see :class:`skcal.functions.base.BlockFits`) is an approximation, it is
refined until the choice among the settings no longer shows it: for each group of columns that
chooses by itself, because labels of the samples that it tests must not matter. Of each group only
the best settings and those beside them in the list are scored again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from skcal._running import recorded_warnings
from skcal.functions import BilinearFunction
from skcal.functions.base import BlockFits
from skcal.model_selection.engine import Fit, no_correction, raise_no_pairs
from skcal.model_selection.plan import Cell
from skcal.notions import Problem, Problems

_SETTLED = 1e-5  # relative change of the lowest risk by an approximation half as fine


class SharedTask(NamedTuple):
    """What one job scores.

    Attributes
    ----------
    fits : FitsOfProblems
    paths : list of lists of calibration-estimation functions
        The functions, candidate by candidate.
    groups : list of lists of Cell
        Columns that choose together.
    """

    fits: FitsOfProblems
    paths: list[list[BilinearFunction]]
    groups: list[list[Cell]]


class BlockScores(NamedTuple):
    """What functions score on some columns.

    Attributes
    ----------
    scores : dict of ndarray of shape (n_functions,)
        By column.
    fits : dict of FitsOfProblems
        The fits that are fine enough for each column; empty where none was refined.
    seconds : float
    warnings : list of Warning
    """

    scores: dict[int, np.ndarray]
    fits: dict[int, FitsOfProblems]
    seconds: float
    warnings: list


def score_shared(task: SharedTask) -> BlockScores:
    """Score functions that share work, by fits that are refined as often as it matters."""
    start = time.perf_counter()
    scores: dict[int, np.ndarray] = {}
    fits_of_column: dict[int, FitsOfProblems] = {}
    fits, groups, is_first = task.fits, task.groups, True
    with recorded_warnings() as caught:
        while groups:
            cells = [cell for group in groups for cell in group]
            if is_first:
                every = [function for path in task.paths for function in path]
                for cell, column in zip(cells, fits.scores(every, cells).T, strict=True):
                    scores[cell.column] = column
            else:
                for group in groups:
                    _score_the_best_again(fits, task.paths, group, scores)
            if not fits.of_single_blocks:
                fits_of_column |= {cell.column: fits for cell in cells}
            coarser, is_first = fits.coarser(), False
            if coarser is None:
                break
            groups = [g for g in groups if not _is_settled(coarser, task.paths, g, scores)]
            fits = fits.finer()
    seconds = time.perf_counter() - start
    return BlockScores(scores, fits_of_column, seconds, [entry.message for entry in caught])


def _mean_of(group: list[Cell], scores) -> np.ndarray:
    return np.mean([scores[cell.column] for cell in group], axis=0)


def _by_path(paths, values) -> list[np.ndarray]:
    """What is said of all functions, path by path."""
    return np.split(values, np.cumsum([len(path) for path in paths])[:-1])


def _score_the_best_again(fits, paths, group, scores) -> None:
    """Score what the columns choose by finer fits, with the settings beside it in the list."""
    every = [function for path in paths for function in path]
    known = np.zeros(len(every), dtype=bool)
    while (new := _near_the_best(paths, _mean_of(group, scores)) & ~known).any():
        again = fits.scores(list(compress(every, new)), group)
        for cell, column in zip(group, again.T, strict=True):
            scores[cell.column][new] = column
        known |= new


def _near_the_best(paths, means) -> np.ndarray:
    """Which settings are the best of a path or beside it."""
    parts = _by_path(paths, means)
    return np.concatenate([np.abs(np.arange(len(part)) - part.argmax()) <= 1 for part in parts])


def _is_settled(coarser, paths, group, scores) -> bool:
    """Whether half the accuracy changes nothing of the best score of each path."""
    means = _by_path(paths, _mean_of(group, scores))
    best = [path[int(mean.argmax())] for path, mean in zip(paths, means, strict=True)]
    highest = np.array([mean.max() for mean in means])
    others = coarser.scores(best, group).mean(axis=1)
    return bool((np.abs(others - highest) <= _SETTLED * np.abs(highest)).all())


class FitsOfProblems(NamedTuple):
    """Fits of functions to unions of blocks, for every problem.

    ``parts`` holds None for problems of which no union has enough samples; ``blocks`` the problems
    of each block.
    """

    parts: list[BlockFits | None]
    blocks: list[Problems]

    @classmethod
    def of(cls, functions: list[BilinearFunction], blocks: list[Problems]) -> FitsOfProblems:
        """Prepare the fits."""
        parts, first = [], functions[0]
        for problems in zip(*(block.parts for block in blocks), strict=True):
            data = [(part.seen_by(first), part.residuals, part.weight) for part in problems]
            parts.append(first._over_blocks(functions, data) if _has_pairs(problems) else None)
        return cls(parts, blocks)

    @property
    def of_single_blocks(self) -> bool:
        """Whether jobs may divide the blocks that score."""
        return all(part is None or part.of_single_blocks for part in self.parts)

    def fit(self, function: BilinearFunction, training: tuple[int, ...]) -> Fit:
        """Return the function of each problem; h = 0 for one with too few samples."""
        return [
            part.fit(function, training)
            if part and self._is_trained(number, training)
            else no_correction()
            for number, part in enumerate(self.parts)
        ]

    def scores(self, functions: list, cells: list[Cell]) -> np.ndarray:
        """Scores (n_functions, n_cells), summed over the problems."""
        scores = np.zeros((len(functions), len(cells)))
        for block in {cell.block for cell in cells}:
            places = [k for k, cell in enumerate(cells) if cell.block == block]
            trainings = [cells[k].training for k in places]
            parts = self.blocks[block].parts
            if not any(problem.has_pairs for problem in parts):
                raise_no_pairs(len(self.blocks[block].weight))
            scores[:, places] = sum(
                problem.share * self._scores_of(number, block, functions, trainings)
                for number, problem in enumerate(parts)
                if problem.has_pairs
            )
        return scores

    def _scores_of(self, number: int, block: int, functions: list, trainings: list) -> np.ndarray:
        """Scores of a problem; those of h = 0 where fits have too few samples."""
        part, problem = self.parts[number], self.blocks[block].parts[number]
        trained = [k for k, training in enumerate(trainings) if self._is_trained(number, training)]
        scores = np.empty((len(functions), len(trainings)))
        if len(trained) < len(trainings):
            scores[:] = no_correction().score(problem.features, problem.residuals, problem.weight)
        if part and trained:
            scores[:, trained] = part.scores(functions, block, [trainings[k] for k in trained])
        return scores

    def coarser(self) -> FitsOfProblems | None:
        """Return fits that approximate more, or None where nothing is an approximation."""
        coarser = [part and part.coarser() for part in self.parts]
        if not any(coarser):
            return None
        parts = [more or part for more, part in zip(coarser, self.parts, strict=True)]
        return self._replace(parts=parts)

    def finer(self) -> FitsOfProblems:
        """Return fits that approximate less, of those that are approximations."""
        parts = [part.finer() if part and part.coarser() else part for part in self.parts]
        return self._replace(parts=parts)

    @property
    def rank(self) -> int:
        """The sum of the ranks of the approximations; greater is finer."""
        return sum(part.rank for part in self.parts if part)

    def _is_trained(self, number: int, training: tuple[int, ...]) -> bool:
        return _has_pairs([self.blocks[k].parts[number] for k in training])


def _has_pairs(problems: Sequence[Problem]) -> bool:
    """Whether parts of one problem have the samples, together, that a fit needs."""
    counts = [int(np.count_nonzero(problem.weight)) for problem in problems]
    return problems[0].of_all_samples or sum(counts) >= 2
