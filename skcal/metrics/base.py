"""From problems to one number, and the input of measures of a single outcome.

By the types of the options editors and type checkers find a misspelt one. A metric of several
classes returns an array where ``average=None``, else a float; its overloads say so, and name its
other options by one of these dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isinf, isnan
from numbers import Real
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from skcal._running import over_jobs
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal._validation import InputError, as_floats, plain_array
from skcal.notions import Problem
from skcal.sample import Sample

#: Constraint of how the numbers of classes become one.
AVERAGE = {"average": [StrOptions({"sum", "macro"}), None]}


def estimate_problems(
    sample: Sample, measure, *, at_least=1, norm=1, average="sum", root=True, in_order=False
):
    """Apply ``measure(problem) → float`` to each problem with enough samples, and combine.

    ``in_order=True`` is for measures that draw random numbers one after the other.
    """
    problems = sample.problems()
    enough = [problem for problem in problems if len(problem.weight) >= at_least]
    calls = [(measure, problem) for problem in enough]
    results = iter(over_jobs(calls, 1 if in_order else None, prefer="threads"))
    powers = [next(results) if len(p.weight) >= at_least else np.nan for p in problems]
    for k, (power, problem) in enumerate(zip(powers, problems, strict=True)):
        if isnan(power) and len(problem.weight) >= at_least:
            raise FloatingPointError(f"The estimate of problem {k} is not a number.")
    return combine_problems(powers, problems, norm, average, root)


def combine_problems(powers, problems, norm: float, average: str | None, root: bool = True):
    """Combine E‖gap‖^q of several problems into one number, or one number a problem.

    Parameters
    ----------
    powers : list of float
        One a problem; NaN for one with too few samples, which is left out of sum and mean.
    problems : list of Problem
    norm : float
        q; for infinity the largest of the problems counts.
    average : {"sum", "macro"} or None
    root : bool
        Take the q-th root; a negative power, which debiasing can leave, has root 0.
    """
    present = [
        (power, problem.share)
        for power, problem in zip(powers, problems, strict=True)
        if not isnan(power)
    ]
    if not present:
        raise ValueError("y_proba has too few samples of every class to estimate the error.")
    values: Any
    if average is None:
        values = np.asarray(powers, dtype=np.float64)
    elif isinf(norm):
        values = max(power for power, _ in present)
    elif average == "macro":
        values = np.mean([power for power, _ in present])
    elif len(present) == 1:
        values = present[0][0] * present[0][1]
    else:
        values = np.sum([power * share for power, share in present])
    if root and norm != 1 and not isinf(norm):
        values = np.maximum(values, 0) ** (1 / norm)
    return values if average is None else float(values)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions of one outcome: a problem of single probabilities, in one dimension.

    Attributes
    ----------
    problem : Problem
    notion : Notion or None
    """

    problem: Problem
    notion: Any = None

    @cached_property
    def prediction(self) -> np.ndarray:
        """Probabilities (n_samples,), float64."""
        return self.problem.features[:, 0].astype(np.float64)

    @cached_property
    def logit(self) -> np.ndarray:
        """Their logits, those of 0 and 1 infinite."""
        z = self.problem.logits
        return logits_of(self.prediction) if z is None else z[:, 0]

    @cached_property
    def happened(self) -> np.ndarray:
        """1.0 where the outcome happened, else 0.0."""
        return self.problem.outcomes[:, 0].astype(np.float64)

    @property
    def weight(self) -> np.ndarray:
        """Sample weights."""
        return self.problem.weight


def logits_of(p: np.ndarray) -> np.ndarray:
    """The logits of single probabilities, those of 0 and 1 infinite."""
    with np.errstate(divide="ignore"):
        return np.log(p) - np.log(1 - p)


def bounded_logits(z: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
    """Logits of which those of 0 and 1 are the outermost of the others: no constant decides them.

    ``others`` are those of the samples, for logits of other places.
    """
    others = z if others is None else others
    inner = others[np.isfinite(others)]
    low, high = (inner.min(), inner.max()) if len(inner) else (-1.0, 1.0)
    return np.where(np.isfinite(z), z, np.where(z > 0, high, low))


def outcome_of(sample: Sample) -> Outcome:
    """The outcome that a sample is about; raise where there are several."""
    return Outcome(one_problem(sample), sample.notion)


def one_problem(sample: Sample) -> Problem:
    """The problem of a sample whose notion is one of single probabilities; raise of others."""
    if not sample.notion.single:
        raise ValueError(
            f"notion={sample.notion!r} is several problems or a vector. Use 'binary' or "
            "'confidence'."
        )
    [problem] = sample.problems()
    return problem


def check_both(outcome):
    """Raise unless both outcomes occur."""
    if outcome.min() == outcome.max() and outcome[0] in (0, 1):
        raise ValueError(f"y_true shows one outcome only ({int(outcome[0])}); both are needed.")


def read_increasing(values, name: str, below_one: bool = False) -> np.ndarray:
    """Probabilities in increasing order, of shape (n,)."""
    grid = as_floats(values, name)
    inside = (grid >= 0) & ((grid < 1) if below_one else (grid <= 1))
    if grid.ndim != 1 or not len(grid) or not inside.all():
        where = "[0, 1)" if below_one else "[0, 1]"
        raise ValueError(f"{name} must be a 1-D array of probabilities in {where}, got {values!r}.")
    if (np.diff(grid) < 0).any():
        raise ValueError(f"{name} must be in increasing order. Pass np.sort({name}).")
    return grid


Average = Literal["sum", "macro"]
Distance = Literal["total-variation", "euclidean", "sqeuclidean", "cityblock"]
Strategy = Literal["uniform", "quantile", "sweep", "unique", "median-variance"]


class SampleOptions(TypedDict, total=False):
    """The classes of the columns of predictions, and the weights of the samples."""

    sample_weight: ArrayLike | None
    labels: ArrayLike | None
    pos_label: Any
    from_logits: bool


class OfScalars(SampleOptions, total=False):
    """And the kind of calibration, of single probabilities."""

    notion: str


class Smooth(OfScalars, total=False):
    """And the width of a kernel."""

    bandwidth: float | Literal["self-consistent"]


class Density(SampleOptions, total=False):
    """And of the error of a density."""

    notion: str | Callable
    bandwidth: float | Literal["loo"]
    norm: float
    root: bool


class Kernels(SampleOptions, total=False):
    """And of pairs of samples."""

    notion: str | Callable
    bandwidth: float | Literal["median"]
    method: Literal["unbiased", "biased", "linear", "block", "incomplete"]
    kernel: Literal["laplacian", "rbf"] | Callable
    block_size: int | None
    n_pairs: int | None
    class_kernel: ArrayLike | None
    random_state: int | np.random.RandomState | None


class Bins(SampleOptions, total=False):
    """And of the error in bins."""

    notion: str | Callable
    n_bins: int | Literal["cube_root"]
    strategy: Strategy
    min_samples: int
    edges: ArrayLike | None
    norm: float
    debias: bool | Literal["labels"]
    distance: Literal["auto"] | Distance
    root: bool
    groups: ArrayLike | None


ROUNDING = 0.05  # by which a sum of rounded probabilities may miss 1


@validate_params({"tolerance": [Interval(Real, 0, 1, closed="neither")]})
def normalize_proba(y_proba: ArrayLike, *, tolerance: float = ROUNDING) -> np.ndarray:
    """Divide each row of rounded probabilities by its sum.

    Metrics, tests and reports refuse rows whose sum misses 1 by more than their precision explains,
    since most of those are no probabilities. If yours are rounded probabilities, pass them through
    this function.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities. A 1-D array is returned as it is. So is an array that holds anything but
        finite floats; the function that reads it checks it.
    tolerance : float in (0, 1), default=0.05
        The most by which the sum of a row may miss 1.

    Returns
    -------
    proba : ndarray of the same shape
        Rows that sum to 1. Names of a data frame's columns are lost: pass them as ``labels``.

    Raises
    ------
    ValueError
        If the sum of a row misses 1 by more, which is not rounding.

    Examples
    --------
    >>> from skcal.metrics import expected_calibration_error, normalize_proba
    >>> rounded = [[0.33, 0.33, 0.33], [0.1, 0.2, 0.71]]
    >>> round(expected_calibration_error([0, 2], normalize_proba(rounded)), 3)
    0.482
    """
    proba = plain_array(y_proba, "y_proba")
    if proba.ndim != 2 or proba.dtype.kind != "f" or not np.isfinite(proba).all():
        return proba
    with np.errstate(over="ignore"):
        total = proba.sum(axis=1, dtype=np.float64)
    wrong = misses_1(proba, tolerance)
    if wrong.any():
        row = int(np.argmax(wrong))
        reason = f"sums to {total[row]:.6g}, not 1."
        remedy = f"Rounding explains {tolerance:g}; pass probabilities, of logits the softmax."
        raise InputError("y_proba", reason, remedy, row=row, kind="rounding")
    return proba / total[:, None]


def misses_1(values: np.ndarray, tolerance: float = ROUNDING) -> np.ndarray:
    """Rows whose sum is not explained by rounding."""
    with np.errstate(all="ignore"):
        return ~(np.abs(values.sum(axis=1, dtype=np.float64) - 1) <= tolerance)
