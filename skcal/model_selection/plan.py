"""Splits, samples and the pooling of estimates over outer splits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import KFold, ShuffleSplit, check_cv
from sklearn.utils import check_random_state

from skcal.model_selection.estimates import OneStepEstimate
from skcal.model_selection.estimator import CalibrationErrorEstimator
from skcal.pair_risk import weighted_mean


class Samples(NamedTuple):
    """Predictions, labels and weights (or None), taken together."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None

    def take(self, rows) -> Samples:
        """Return the samples of the given rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Samples(self.X[rows], self.y[rows], weight)

    def n_positive(self, rows) -> int:
        """Number of samples of positive weight among some, without a copy of their predictions."""
        return len(rows) if self.weight is None else int(np.count_nonzero(self.weight[rows]))

    def classes(self, rows=slice(None)) -> set:
        """Labels of the samples of positive weight among some."""
        y = self.y[rows] if self.weight is None else self.y[rows][self.weight[rows] > 0]
        return set(np.unique(y).tolist())

    def total_weight(self, rows) -> float:
        """Sum of the weights of some samples, or their number."""
        return float(len(rows) if self.weight is None else self.weight[rows].sum())


@dataclass(frozen=True, eq=False)
class Outer:
    """An outer split: training samples, test samples, and the folds of the training samples.

    The last outer of a plan with several has all samples for training, no test samples, and
    ``repeat`` -1.
    """

    train: np.ndarray
    test: np.ndarray
    splits: list
    repeat: int = 0

    @property
    def first_fold(self) -> np.ndarray:
        """Samples on which the first fold trains."""
        return self.train[self.splits[0][0]]


@dataclass(frozen=True, eq=False)
class OuterResult:
    """What one outer split said.

    Attributes
    ----------
    outer : Outer
        Its test samples no choice has seen.
    families : list of Family
        Candidates with their validation scores, without fold models.
    plug_ins : ndarray of shape (n_splits,)
        Plug-in squared error of each fold model of the best candidate on the test samples.
    one_step : OneStepEstimate or None
        From the best candidate with ``residual``, refitted on the training samples.
    one_step_estimator : CalibrationErrorEstimator or None
        The refitted candidate.
    """

    outer: Outer = field(repr=False)
    families: list = field(repr=False)
    plug_ins: np.ndarray
    one_step: OneStepEstimate | None
    one_step_estimator: CalibrationErrorEstimator | None


def make_plan(search, data: Samples) -> list[Outer]:
    """Make all splits before any work starts, and check that they can be worked with.

    A plan of several outer splits ends with one that has all samples for training.
    """
    rng = check_random_state(search.random_state)
    first, inner, *others = rng.randint(2**31 - 1, size=1 + search.n_repeats)
    pairs = [
        (*pair, repeat)
        for repeat, seed in enumerate([first, *others])
        for pair in _outer_pairs(search, data, seed)
    ]
    if len(pairs) > 1:
        if not (isinstance(search.cv, Integral) or hasattr(search.cv, "split")):
            raise ValueError(
                "cv holds fixed rows, but there are several outer splits and so several training "
                "sets. Pass an int or a splitter as cv."
            )
        pairs.append((np.arange(len(data.y)), np.arange(0), -1))
    inner_cv = _splitter(search.cv, inner)
    plan = [
        Outer(train, test, _split(inner_cv, data.take(train), "cv", len(test)), repeat)
        for train, test, repeat in pairs
    ]
    for outer in plan:
        _check_outer(outer, data)
    _warn_of_absent_classes(plan, data, search)
    return plan


def _outer_pairs(search, data, seed):
    """Rows for training and for testing, of every outer split of a repeat."""
    outer_cv = search.outer_cv
    if outer_cv is None:
        outer_cv = ShuffleSplit(1, test_size=0.2, random_state=seed)
    elif search.n_repeats > 1 and not isinstance(outer_cv, Integral):
        raise ValueError(
            f"n_repeats={search.n_repeats} shuffles the samples anew, which outer_cv of type "
            f"{type(outer_cv).__name__} does not allow. Pass an int or None as outer_cv."
        )
    pairs = _split(_splitter(outer_cv, seed), data, "outer_cv")
    for number, (train, test) in enumerate(pairs):
        trained = np.zeros(len(data.y), dtype=bool)
        trained[train] = True
        shared = np.unique(test[trained[test]])
        if len(shared):
            raise ValueError(
                f"outer_cv puts sample {shared[0]} into both parts of split {number} "
                f"({len(shared)} such samples). Choices must not see the test samples."
            )
        if not data.n_positive(test):
            raise ValueError(
                f"outer_cv leaves 0 test samples in split {number} of {len(data.y)} samples. "
                "Pass fewer splits or a larger test_size."
            )
    return pairs


def _splitter(cv, seed):
    return KFold(cv, shuffle=True, random_state=seed) if isinstance(cv, Integral) else check_cv(cv)


def _split(cv, data, name, n_test=0):
    try:
        pairs = cv.split(data.X, data.y)
        everyone = np.arange(len(data.y))  # turns masks into numbers, and refuses what is neither
        return [(everyone[train], everyone[test]) for train, test in pairs]
    except (ValueError, IndexError) as error:
        n = len(data.y)
        tested = f" ({n + n_test} less {n_test} for testing)" if n_test else ""
        raise ValueError(
            f"{name} cannot split {n} samples{tested}. Pass fewer folds or more samples. ({error})"
        ) from error


def _check_outer(outer, data):
    for number, (train, validation) in enumerate(outer.splits):
        for rows, part in ((train, "training"), (validation, "validation")):
            count = data.n_positive(outer.train[rows])
            if count < 2:
                raise ValueError(
                    f"cv leaves {count} {part} sample(s) in fold {number} of {len(data.y)} samples "
                    "(n_samples); a risk needs 2. Pass fewer folds or more samples."
                )


def _warn_of_absent_classes(plan, data, search):
    """Say which classes a training fold lacks, where functions learn outcomes class by class."""
    if not search.notion_.of_given_classes:
        return
    classes = data.classes()
    for outer in plan:
        for number, (train, _) in enumerate(outer.splits):
            absent = classes - data.classes(outer.train[train])
            if absent:
                warnings.warn(
                    f"Class {min(absent, key=str)!r} does not occur in the training part of fold "
                    f"{number} ({len(absent)} such classes): functions that learn outcomes give "
                    "it probability 0 there. Pass fewer folds, a stratified cv, or more samples.",
                    UserWarning,
                    stacklevel=4,
                )
                return


def warn_of_small_problems(plan, problems, data, classes):
    """Say which classes of ``top-label`` are predicted too rarely for a risk in some fold."""
    predicted = np.zeros(len(data.y), dtype=np.intp)
    for k, problem in enumerate(problems):
        predicted[problem.rows] = k
    counted = np.ones(len(data.y)) if data.weight is None else data.weight > 0
    small: set = set()
    for outer in plan:
        for rows in (outer.train[part] for split in outer.splits for part in split):
            counts = np.bincount(predicted[rows], counted[rows], minlength=len(problems))
            small.update(np.flatnonzero(counts < 2).tolist())
    if small:
        warnings.warn(
            f"Class {classes.tolist()[min(small)]!r} ({len(small)} such classes) is predicted for "
            "fewer than 2 samples of some fold: it adds no risk there, and where it was not "
            "trained its error is estimated as 0. Pass fewer folds or more samples.",
            UserWarning,
            stacklevel=4,
        )


def pool_one_steps(results: list[OuterResult], weight: np.ndarray) -> OneStepEstimate | None:
    """Average one-step terms over outer splits; a sample tested twice counts by its mean term."""
    total, count = np.zeros(len(weight)), np.zeros(len(weight))
    for result in results:
        if result.one_step is None:
            return None
        total[result.outer.test] += result.one_step.terms
        count[result.outer.test] += 1
    tested = count > 0
    terms = total[tested] / count[tested]
    value, standard_error = weighted_mean(terms, weight[tested] * count[tested])
    return OneStepEstimate(value, standard_error, terms)


def median_of_repeats(repeats: list[OneStepEstimate | None]) -> OneStepEstimate | None:
    """Median over repeated shuffles, its variance the median of s.e.² + (deviation)².

    So an estimate does not hang on one shuffle (Chernozhukov et al., Double/debiased machine
    learning for treatment and structural parameters, The Econometrics Journal 2018, Def. 3.3). The
    terms are those of the repeat closest to the median.
    """
    estimates = [estimate for estimate in repeats if estimate is not None]
    if len(estimates) < len(repeats):
        return None
    if len(estimates) == 1:
        return estimates[0]
    values = np.array([estimate.value for estimate in estimates])
    errors = np.array([estimate.standard_error for estimate in estimates])
    middle = float(np.median(values))
    standard_error = float(np.sqrt(np.median(errors**2 + (values - middle) ** 2)))
    closest = estimates[int(np.argmin(np.abs(values - middle)))]
    return OneStepEstimate(middle, standard_error, closest.terms)
