"""What measures of a single outcome read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skcal.metrics.base import read_sample
from skcal.notions import Notion


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


def read_outcome(y_true, y_proba, **options) -> Outcome:
    """Check a metric's input; ``options`` are those of :func:`skcal.metrics.base.read_sample`."""
    sample = read_sample(y_true, y_proba, **options)
    if not sample.notion.single:
        raise ValueError(
            f"notion={sample.notion!r} is several problems or a vector. Use 'binary' or "
            "'confidence'."
        )
    [problem] = sample.problems()
    x, happened = problem.features[:, 0].astype(np.float64), problem.outcomes[:, 0]
    return Outcome(x, happened, problem.weight, sample.notion)


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
