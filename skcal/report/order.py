"""Whether the columns of predictions seem to be in another order than the labels."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linear_sum_assignment

from skcal._scores import of_outcomes

_MOST_CLASSES = 100
_SURE = 4.0  # standard errors
REVERSED = (
    "Shuffled labels would fit these predictions better than the labels do. The columns may be in "
    "another order than the labels, or the other class may be the positive one: check labels= and "
    "pos_label=."
)


def doubt_about_order(rows: np.ndarray, happened: np.ndarray, classes) -> str | None:
    """Return what is wrong with the order of the columns, if anything seems to be.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_classes)
        The predictions.
    happened : ndarray of shape (n_samples,) or (n_samples, n_classes)
        The column of each label, or how much of each class happened.
    classes : sequence
        The names of the classes.
    """
    other_order = _other_order(rows, happened, classes)
    return REVERSED if are_reversed(rows, happened) else other_order


def are_reversed(rows: np.ndarray, happened: np.ndarray) -> bool:
    """Whether outcomes and probabilities of classes are negatively correlated on the whole."""
    n, n_classes = rows.shape
    codes = happened.ndim == 1
    rates = np.bincount(happened, minlength=n_classes) / n if codes else happened.mean(axis=0)
    gain = of_outcomes(rows, happened) - rows @ rates
    return bool(gain.mean() < -_SURE * max(gain.std() / math.sqrt(n), 1e-9))


def _other_order(rows: np.ndarray, happened: np.ndarray, classes) -> str | None:
    """A warning where columns in another order give what happened much higher probabilities.

    The order is found in each half of the samples and judged in the other half: the best order of
    many classes fits the samples that chose it, even if predictions hold no information.
    """
    n, n_classes = rows.shape
    if happened.ndim > 1 or not 2 < n_classes <= _MOST_CLASSES:
        return None
    halves = np.zeros((2, n_classes, n_classes))
    samples = np.arange(n)
    half = samples % 2
    np.add.at(halves, (half, happened), rows)
    orders = np.array([_best_order(sums) for sums in halves[::-1]])
    gain = rows[samples, orders[half, happened]] - rows[samples, happened]
    if gain.mean() <= _SURE * max(gain.std() / math.sqrt(n), 1e-9):
        return None
    names = ", ".join(str(classes[k]) for k in np.argsort(_best_order(halves.sum(axis=0))))
    return (
        f"The columns seem to be in the wrong order: {names} would fit the labels much better. "
        "Check it, and pass labels= if columns are not in the order of the sorted labels."
    )


def _best_order(sums: np.ndarray) -> np.ndarray:
    """The column of each class that gives the largest sum of probabilities."""
    return linear_sum_assignment(sums, maximize=True)[1]
