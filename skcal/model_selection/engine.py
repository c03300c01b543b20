"""Functions fitted to the problems of a notion, and what they say: problems in, numbers out.

A *fit* is a list of fitted functions, one a problem. Functions that share work are fitted to unions
of blocks of samples. If what they share (see :class:`skcal.functions.base.BlockFits`) is an
approximation, it is refined until the choice among the settings no longer shows it: for each group
of columns that chooses by itself, because labels of the samples that it tests must not matter. Of
each group only the best settings and those beside them in the list are scored again.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from skcal.functions import BilinearFunction, Zero
from skcal.functions.base import BlockFits, read_feature_map, read_residual
from skcal.model_selection.plan import Cell
from skcal.notions import Problem, Problems
from skcal.pair_risk import PairRisk, add_problems, excess_risk

Fit: TypeAlias = list[BilinearFunction]


def fit(template: BilinearFunction, data: Problems) -> Fit:
    """Fit clones to the problems; h = 0 for a problem with too few samples."""
    fitted = []
    for problem in data.parts:
        if not problem.has_pairs:
            fitted.append(no_correction())
            continue
        options = {"sample_weight": problem.weight}
        if has_fit_parameter(template, "groups"):
            options["groups"] = problem.groups  # of those whose fit divides the samples
        X = problem.seen_by(template)
        fitted.append(clone(template).fit(X, problem.residuals, **options))
    return fitted


def no_correction() -> BilinearFunction:
    """H = 0, for want of samples."""
    return Zero().fit(np.full((1, 1), 0.5), [0.0])


def pointwise(fitted: Fit, data: Problems) -> np.ndarray:
    """h(x, x) of each sample, summed over its problems, (n_samples,)."""
    total = np.zeros(len(data.weight))
    for function, problem in zip(fitted, data.parts, strict=True):
        if len(problem.features):
            total[problem.rows] += function.predict(problem.seen_by(function))
    return total


def plug_in(fitted: Fit, data: Problems) -> float:
    """Weighted mean of h(x, x)."""
    return float(np.average(pointwise(fitted, data), weights=data.weight))


def corrections(fitted: Fit, data: Problems) -> list[np.ndarray]:
    """ĝ at the samples of each problem, (n_rows, m)."""
    return [
        read_residual(function, problem.seen_by(function))
        if len(problem.features)
        else np.zeros(problem.features.shape)
        for function, problem in zip(fitted, data.parts, strict=True)
    ]


def score(fitted: Fit, data: Problems) -> float:
    """Minus the pair risk, over problems by their shares."""
    scored = [
        problem.share * function.score(problem.seen_by(function), problem.residuals, problem.weight)
        for function, problem in zip(fitted, data.parts, strict=True)
        if problem.has_pairs
    ]
    if not scored:
        raise_no_pairs(len(data.weight))
    return float(sum(scored))


def risk(fitted: Fit, data: Problems) -> PairRisk:
    """Pair risk with its standard error."""
    return _add_risks(lambda function, *problem: function.risk(*problem), fitted, data)


def excess(fitted: Fit, data: Problems) -> PairRisk:
    """Pair risk above that of h = 0."""

    def of_problem(function, features, residuals, weight):
        phi = read_feature_map(function, features)
        return excess_risk(phi, residuals, function.form_, sample_weight=weight)

    return _add_risks(of_problem, fitted, data)


class Scores(NamedTuple):
    """What functions score that are fitted to one training set.

    Attributes
    ----------
    fits : list of fits
        One a function, if they are kept.
    scores : ndarray of shape (n_functions, n_evaluations)
    times : ndarray of shape (n_functions, 2)
        Seconds of the fit and of the scores.
    warnings : list of Warning
    """

    fits: list[Fit]
    scores: np.ndarray
    times: np.ndarray
    warnings: list


def fit_and_score(
    functions: list[BilinearFunction],
    keep: bool,
    data: Problems,
    train: np.ndarray,
    evaluations: list[np.ndarray],
) -> Scores:
    """Fit the functions to the training rows and score them on each set of evaluation rows."""
    training, held_out = data.take(train), [data.take(rows) for rows in evaluations]
    fits, scores, times = [], [], []
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
        for function in functions:
            start = time.perf_counter()
            fitted = fit(function, training)
            middle = time.perf_counter()
            scores.append([score(fitted, rows) for rows in held_out])
            times.append((middle - start, time.perf_counter() - middle))
            if keep:
                fits.append(fitted)
    return Scores(fits, np.array(scores), np.array(times), [entry.message for entry in caught])


def fit_again(template: BilinearFunction, data: Problems, rows: np.ndarray) -> Fit:
    """Fit what has been fitted before, and has noted then if it did not converge, to some rows."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return fit(template, data.take(rows))


def _add_risks(of_problem, fitted, data):
    """``of_problem(function, features, residuals, weight)`` over problems, by their shares."""
    risks = [
        of_problem(function, problem.seen_by(function), problem.residuals, problem.weight)
        if problem.has_pairs
        else None
        for function, problem in zip(fitted, data.parts, strict=True)
    ]
    if all(risk is None for risk in risks):
        raise_no_pairs(len(data.weight))
    shares, rows = ([getattr(part, name) for part in data.parts] for name in ("share", "rows"))
    return add_problems(risks, shares, rows, len(data.weight))


def raise_no_pairs(n_samples):
    """Say that no problem has the samples that a risk needs."""
    raise ValueError(
        "The risk needs pairs: no class is predicted for 2 samples "
        f"(n_samples = {n_samples}). Pass more samples."
    )


_SETTLED_RISK = 1e-5  # relative change of the lowest risk by an approximation half as fine


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
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
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
    return bool((np.abs(others - highest) <= _SETTLED_RISK * np.abs(highest)).all())


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
