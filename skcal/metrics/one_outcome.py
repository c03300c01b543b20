"""What measures of a single outcome read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skcal.notions import Notion
from skcal.sample import read_sample


class Outcome(NamedTuple):
    """Predictions of one outcome.

    Attributes
    ----------
    prediction, happened, weight : ndarray of shape (n_samples,)
    notion : Notion
    """

    prediction: np.ndarray
    happened: np.ndarray
    weight: np.ndarray
    notion: Notion


def read_outcome(*arguments, **options) -> Outcome:
    """Check a metric's input, which is that of :func:`skcal.sample.read_sample`."""
    sample = read_sample(*arguments, **options, single=True)
    [problem] = sample.problems()
    x, happened = problem.features[:, 0].astype(np.float64), problem.outcomes[:, 0]
    return Outcome(x, happened, problem.weight, sample.notion)


def check_both(outcome):
    """Raise unless both outcomes occur."""
    if outcome.min() == outcome.max():
        raise ValueError(f"y_true shows one outcome only ({int(outcome[0])}); both are needed.")


def read_increasing(values, name: str, below_one: bool = False) -> np.ndarray:
    """Probabilities in increasing order, of shape (n,)."""
    grid = np.asarray(values, dtype=np.float64)
    inside = (grid >= 0) & ((grid < 1) if below_one else (grid <= 1))
    if grid.ndim != 1 or not len(grid) or not inside.all():
        where = "[0, 1)" if below_one else "[0, 1]"
        raise ValueError(f"{name} must be a 1-D array of probabilities in {where}, got {values!r}.")
    if (np.diff(grid) < 0).any():
        raise ValueError(f"{name} must be in increasing order. Pass np.sort({name}).")
    return grid
