"""Which samples functions are fitted to, which score them, and which test the choice."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import ShuffleSplit, check_cv
from sklearn.utils import check_random_state

from skcal._groups import read_splits
from skcal.sample import Sample

_SHUFFLES = 100  # tries to keep every class in every training set


class Training(NamedTuple):
    """Samples that every function is fitted to, and the sets of samples that score the fits.

    ``lacks`` holds the numbers of the blocks that the samples lack, where a plan has blocks.
    """

    rows: np.ndarray
    evaluations: list[np.ndarray]
    lacks: tuple[int, ...] = ()


class Column(NamedTuple):
    """A score: the number of the training, the samples that score it, and their split."""

    training: int
    rows: np.ndarray
    split: int


class Cell(NamedTuple):
    """A column by the numbers of blocks: of those of its training, and of the one that scores."""

    column: int
    training: tuple[int, ...]
    block: int


@dataclass(frozen=True, eq=False)
class Outer:
    """Test samples, and the columns whose scores choose for them.

    The fits of these columns and their scores do not use the test samples.
    """

    train: np.ndarray
    test: np.ndarray
    columns: list[int]
    repeat: int = 0


@dataclass(frozen=True, eq=False)
class Plan:
    """One cross-validation of all candidates, and the tests that rest on it.

    Attributes
    ----------
    rows : ndarray of int
        All samples that take part in fits and scores.
    trainings : list of Training
    columns : list of Column
        The scores of every function, training after training.
    outers : list of Outer
        May be none.
    blocks : list of ndarray of int
        Where trainings are all samples but those of some blocks, the blocks, each of which scores
        the columns of the split of its number; else empty.
    """

    rows: np.ndarray
    trainings: list[Training]
    columns: list[Column]
    outers: list[Outer]
    blocks: list[np.ndarray]

    @property
    def groups(self) -> list[list[int]]:
        """Columns that choose together; every column is in one group."""
        return [outer.columns for outer in self.outers] or [list(range(len(self.columns)))]

    @property
    def splits(self) -> list[list[int]]:
        """Columns of each split, over which its score is the mean."""
        count = 1 + max(column.split for column in self.columns)
        numbers = [column.split for column in self.columns]
        return [
            [k for k, number in enumerate(numbers) if number == split] for split in range(count)
        ]

    @property
    def unions(self) -> list[tuple[list[np.ndarray], list[Cell]]]:
        """Blocks, with the columns whose trainings are unions of them.

        Where trainings are no unions of common blocks, each is a block of its own.
        """
        numbers = range(len(self.blocks))
        if self.blocks:
            lacking = [self.trainings[column.training].lacks for column in self.columns]
            trainings = [tuple(k for k in numbers if k not in lacks) for lacks in lacking]
            splits = [column.split for column in self.columns]
            return [(self.blocks, list(map(Cell, range(len(splits)), trainings, splits)))]
        return [
            ([self.trainings[column.training].rows, column.rows], [Cell(k, (0,), 1)])
            for k, column in enumerate(self.columns)
        ]

    @property
    def compared(self) -> list[int]:
        """A column of each split, of different trainings."""
        return [columns[split % len(columns)] for split, columns in enumerate(self.splits)]


def make_plans(search, data: Sample) -> list[Plan]:
    """Make all splits before any work starts, and check that they can be worked with.

    The choice to be shown is that of the last plan.
    """
    rng = check_random_state(search.random_state)
    first, inner, *others = rng.randint(2**31 - 1, size=1 + search.n_repeats)
    seeds = [first, *others]
    if search.outer_cv is None:
        plans = [_pairs_of_blocks(search, data, seed, k) for k, seed in enumerate(seeds)][::-1]
    else:
        plans = _nested(search, data, seeds, inner)
    for plan in plans:
        _require_pairs_of_samples(plan, data)
    _warn_of_absent_classes(plans, data)
    return plans


def _pairs_of_blocks(search, data, seed, repeat) -> Plan:
    """Fit without every pair of blocks, and score each fit on both blocks of its pair.

    A block is tested by the fits that lack it, chosen by their scores on the other block of their
    pair. So K (K - 1) / 2 fits serve K nested cross-validations.
    """
    blocks = _disjoint_blocks(search, data, seed)
    n_blocks, everyone = len(blocks), np.arange(len(data.codes))
    if n_blocks < 3:
        raise ValueError(
            f"cv={search.cv!r} makes {n_blocks} blocks, and functions are fitted without two of "
            "them. Pass cv=3 or more, or outer_cv."
        )
    trainings: list[Training] = []
    columns: list[Column] = []
    chosen_by: list[list[int]] = [[] for _ in blocks]
    for number, pair in enumerate(combinations(range(n_blocks), 2)):
        left_out = np.concatenate([blocks[k] for k in pair])
        evaluations = [blocks[k] for k in pair]
        trainings.append(Training(_others(everyone, left_out), evaluations, pair))
        for split, other in (pair, pair[::-1]):
            chosen_by[other].append(len(columns))
            columns.append(Column(number, blocks[split], split))
    outers = [
        Outer(_others(everyone, test), test, chosen, repeat)
        for test, chosen in zip(blocks, chosen_by, strict=True)
    ]
    return Plan(everyone, trainings, columns, outers, blocks)


def _others(everyone, rows):
    """All samples but some."""
    kept = np.ones(len(everyone), dtype=bool)
    kept[rows] = False
    return everyone[kept]


def _disjoint_blocks(search, data, seed) -> list[np.ndarray]:
    """Disjoint blocks of all samples; shuffled ones keep each class in every training set."""
    if not isinstance(search.cv, Integral):
        blocks = [test for _, test in _split(check_cv(search.cv), data, "cv")]
        count = np.bincount(np.concatenate(blocks), minlength=len(data.codes))
        if (count != 1).any():
            raise ValueError(
                f"cv validates sample {int(np.argmax(count != 1))} {int(count[count != 1][0])} "
                "times. To test on every sample, its validation sets must hold each sample once; "
                "otherwise pass outer_cv, such as ShuffleSplit(1, test_size=0.2)."
            )
        return blocks
    rng = np.random.default_rng(seed)
    enough = np.bincount(data.codes) >= 3
    for _ in range(_SHUFFLES):
        folds = _splitter(search.cv, int(rng.integers(2**31 - 1)), data)
        blocks = [test for _, test in _split(folds, data, "cv")]
        counts = [np.bincount(data.codes[rows], minlength=len(enough)) for rows in blocks]
        occurs = np.stack(counts) > 0
        # A fit lacks two blocks.
        if (occurs.sum(axis=0)[enough] >= 3).all():
            break
    return blocks


def _nested(search, data, seeds, inner) -> list[Plan]:
    """A plan for each outer split; of several, one more for the choice on all samples."""
    pairs = [
        (*pair, repeat)
        for repeat, seed in enumerate(seeds)
        for pair in _outer_pairs(search, data, seed)
    ]
    everyone = np.arange(len(data.codes))
    if len(pairs) > 1:
        if not (isinstance(search.cv, Integral) or hasattr(search.cv, "split")):
            raise ValueError(
                "cv holds fixed rows, but there are several outer splits and so several training "
                "sets. Pass an int or a splitter as cv."
            )
        pairs.append((everyone, everyone[:0], -1))
    inner_cv = _splitter(search.cv, inner, data)
    plans = []
    for train, test, repeat in pairs:
        splits = _split(inner_cv, data.take(train), "cv")
        trainings = [
            Training(train[rows], [train[held_out]], (k,))
            for k, (rows, held_out) in enumerate(splits)
        ]
        blocks = [train[held_out] for _, held_out in splits]
        columns = [Column(k, training.evaluations[0], k) for k, training in enumerate(trainings)]
        outer = Outer(train, test, list(range(len(columns))), repeat)
        blocks = blocks if _are_blocks(splits, len(train)) else []
        plans.append(Plan(train, trainings, columns, [outer] if len(test) else [], blocks))
    return plans


def _are_blocks(splits, n_samples):
    """Whether splits hold out each sample once and train on all others, as those of folds do."""
    everyone = np.arange(n_samples)
    held_out = np.bincount(np.concatenate([rows for _, rows in splits]), minlength=n_samples)
    return bool((held_out == 1).all()) and all(
        np.array_equal(np.sort(train), _others(everyone, rows)) for train, rows in splits
    )


def _outer_pairs(search, data, seed):
    """Rows for training and for testing, of every outer split of a repeat."""
    outer_cv = search.outer_cv
    if isinstance(outer_cv, ShuffleSplit) and outer_cv.random_state is None:
        outer_cv = copy.copy(outer_cv)
        outer_cv.random_state = seed
    elif search.n_repeats > 1 and not isinstance(outer_cv, Integral):
        raise ValueError(
            f"n_repeats={search.n_repeats} shuffles the samples anew, which outer_cv of type "
            f"{type(outer_cv).__name__} does not allow. Pass None, an int or a ShuffleSplit "
            "without random_state as outer_cv."
        )
    pairs = _split(_splitter(outer_cv, seed, data), data, "outer_cv")
    for number, (train, test) in enumerate(pairs):
        trained = np.zeros(len(data.codes), dtype=bool)
        trained[train] = True
        shared = np.unique(test[trained[test]])
        if len(shared):
            raise ValueError(
                f"outer_cv puts sample {shared[0]} into both parts of split {number} "
                f"({len(shared)} such samples). Choices must not see the test samples."
            )
        if not data.weight[test].any():
            raise ValueError(
                f"outer_cv leaves 0 test samples in split {number} of {len(data.codes)} samples. "
                "Pass fewer splits or a larger test_size."
            )
    return pairs


def _splitter(cv, seed, data: Sample):
    """The splitter of shuffled samples, or of shuffled groups, where none is given."""
    if not isinstance(cv, Integral):
        return check_cv(cv)
    return data.groups.blocks(int(cv), seed)


def _split(cv, data, name):
    return read_splits(cv, data.proba, data.classes[data.codes], data.groups, name)


def _require_pairs_of_samples(plan, data: Sample):
    for number, training in enumerate(plan.trainings):
        for rows, part in (
            (training.rows, "training"),
            *((rows, "validation") for rows in training.evaluations),
        ):
            count = int(np.count_nonzero(data.weight[rows]))
            if count < 2:
                raise ValueError(
                    f"cv leaves {count} {part} sample(s) in fold {number} of {len(data.codes)} "
                    "samples (n_samples); a risk needs 2. Pass fewer folds or more samples."
                )


def _warn_of_absent_classes(plans, data):
    """Say which classes a training set lacks, where functions learn outcomes class by class."""
    if not data.notion.of_given_classes:
        return
    everyone = _classes_among(data, slice(None))
    for plan in plans:
        for number, training in enumerate(plan.trainings):
            absent = everyone - _classes_among(data, training.rows)
            if absent:
                warnings.warn(
                    f"Class {min(absent, key=str)!r} does not occur in the training part of fold "
                    f"{number} ({len(absent)} such classes): functions that learn outcomes give "
                    "it probability 0 there. Pass fewer folds, a stratified cv, or more samples.",
                    stacklevel=2,
                )
                return


def _classes_among(data: Sample, rows) -> set:
    """Labels of the samples of positive weight among some."""
    codes = np.unique(data.codes[rows][data.weight[rows] > 0])
    return set(data.classes[codes].tolist())


def warn_of_small_problems(plans, problems, data: Sample):
    """Say which classes of ``top-label`` are predicted too rarely for a risk in some fold."""
    predicted = np.zeros(len(data.codes), dtype=np.intp)
    for k, problem in enumerate(problems):
        predicted[problem.rows] = k
    counted = data.weight > 0
    small: set = set()
    for plan in plans:
        for training in plan.trainings:
            for rows in (training.rows, *training.evaluations):
                counts = np.bincount(predicted[rows], counted[rows], minlength=len(problems))
                small.update(np.flatnonzero(counts < 2).tolist())
    if small:
        warnings.warn(
            f"Class {data.classes.tolist()[min(small)]!r} ({len(small)} such classes) is predicted "
            "for fewer than 2 samples of some fold: it adds no risk there, and where it was not "
            "trained its error is estimated as 0. Pass fewer folds or more samples.",
            stacklevel=2,
        )
