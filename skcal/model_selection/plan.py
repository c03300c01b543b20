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

from skcal._folds import OUTCOMES_UNKNOWN, absent_class, read_splits, warn_of_absent_class
from skcal._show import worded
from skcal.sample import Sample

_PLAN_SHUFFLES = 100  # tries to keep every class in every training set


class Column(NamedTuple):
    """A score: the number of the training set, and of the block that scores its fit."""

    training: int
    block: int


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
    trainings : list of ndarray of int
        Samples that every function is fitted to.
    blocks : list of ndarray of int
        Samples that score fits; each block makes one split.
    columns : list of Column
        The scores of every function, training after training.
    outers : list of Outer
        May be none.
    of_blocks : bool
        Whether blocks divide all samples, and each training set lacks just those that score it.
    """

    rows: np.ndarray
    trainings: list[np.ndarray]
    blocks: list[np.ndarray]
    columns: list[Column]
    outers: list[Outer]
    of_blocks: bool

    @property
    def groups(self) -> list[list[int]]:
        """Columns that choose together; every column is in one group."""
        return [outer.columns for outer in self.outers] or [list(range(len(self.columns)))]

    @property
    def splits(self) -> list[list[int]]:
        """Columns of each split, over which its score is the mean."""
        return [
            [k for k, column in enumerate(self.columns) if column.block == block]
            for block in range(len(self.blocks))
        ]

    @property
    def scored_trainings(self) -> list[tuple[np.ndarray, list[np.ndarray]]]:
        """The samples of each training set, and of the blocks that score its fits."""
        return [
            (rows, [self.blocks[column.block] for column in self.columns if column.training == k])
            for k, rows in enumerate(self.trainings)
        ]

    @property
    def unions(self) -> list[tuple[list[np.ndarray], list[Cell]]]:
        """Blocks, with the columns whose trainings are unions of them.

        Where trainings are no unions of common blocks, each is a block of its own.
        """
        if not self.of_blocks:
            return [
                ([self.trainings[column.training], self.blocks[column.block]], [Cell(k, (0,), 1)])
                for k, column in enumerate(self.columns)
            ]
        cells = []
        for k, (training, block) in enumerate(self.columns):
            lacking = {column.block for column in self.columns if column.training == training}
            others = tuple(number for number in range(len(self.blocks)) if number not in lacking)
            cells.append(Cell(k, others, block))
        return [(self.blocks, cells)]

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
    _warn_of_absent_classes(plans, data, search.cv)
    return plans


def _pairs_of_blocks(search, data, seed, repeat) -> Plan:
    """Fit without every pair of blocks, and score each fit on both blocks of its pair.

    A block is tested by the fits that lack it, chosen by their scores on the other block of their
    pair. So K (K - 1) / 2 fits serve K nested cross-validations.
    """
    blocks = _disjoint_blocks(search, data, seed)
    n_blocks, everyone = len(blocks), np.arange(len(data.codes))
    if n_blocks < 3:
        remedy = worded("cv=3 or more, or outer_cv", "--cv 3 or more, or --outer-cv")
        raise ValueError(
            f"cv={search.cv!r} makes {n_blocks} blocks, and functions are fitted without two of "
            f"them. Pass {remedy}."
        )
    trainings: list[np.ndarray] = []
    columns: list[Column] = []
    chosen_by: list[list[int]] = [[] for _ in blocks]
    for number, pair in enumerate(combinations(range(n_blocks), 2)):
        trainings.append(_others(everyone, np.concatenate([blocks[k] for k in pair])))
        for block, other in (pair, pair[::-1]):
            chosen_by[other].append(len(columns))
            columns.append(Column(number, block))
    outers = [
        Outer(_others(everyone, test), test, chosen, repeat)
        for test, chosen in zip(blocks, chosen_by, strict=True)
    ]
    return Plan(everyone, trainings, blocks, columns, outers, of_blocks=True)


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
    for _ in range(_PLAN_SHUFFLES):
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
        trainings, blocks = ([train[rows] for rows in part] for part in zip(*splits, strict=True))
        columns = [Column(k, k) for k in range(len(splits))]
        outers = [Outer(train, test, list(range(len(columns))), repeat)] if len(test) else []
        of_blocks = _are_blocks(splits, len(train))
        plans.append(Plan(train, trainings, blocks, columns, outers, of_blocks))
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
    for number, (trained, scoring) in enumerate(plan.scored_trainings):
        for part, rows in [("training", trained), *(("validation", rows) for rows in scoring)]:
            count = int(np.count_nonzero(data.weight[rows]))
            if count < 2:
                many = part == "validation" and len(data.codes) >= 6  # two in each of three blocks
                raise ValueError(
                    f"cv leaves {count} {part} sample(s) in fold {number} of {len(data.codes)} "
                    f"samples (n_samples); a risk needs 2. Pass {'fewer folds or ' * many}more "
                    "samples."
                )


def _warn_of_absent_classes(plans, data, cv):
    """Say which classes a training set lacks, where functions learn outcomes class by class."""
    if not data.notion.of_given_classes:
        return
    for plan in plans:
        if absent := absent_class(plan.trainings, data.codes, data.weight, data.groups):
            return warn_of_absent_class(absent, data.classes, OUTCOMES_UNKNOWN, cv, fewest=3)


def warn_of_small_problems(plans, problems, data: Sample):
    """Say which classes of ``top-label`` are predicted too rarely for a risk in some fold."""
    predicted = np.zeros(len(data.codes), dtype=np.intp)
    for k, problem in enumerate(problems):
        predicted[problem.rows] = k
    counted = data.weight > 0
    small: set = set()
    for plan in plans:
        for rows in (*plan.trainings, *plan.blocks):
            counts = np.bincount(predicted[rows], counted[rows], minlength=len(problems))
            small.update(np.flatnonzero(counts < 2).tolist())
    if small:
        warnings.warn(
            f"Class {data.classes.tolist()[min(small)]!r} ({len(small)} such classes) is predicted "
            "for fewer than 2 samples of some fold: it adds no risk there, and where it was not "
            "trained its error is estimated as 0. Pass more samples, or notion='confidence', which "
            "takes all predicted classes together.",
            stacklevel=2,
        )
