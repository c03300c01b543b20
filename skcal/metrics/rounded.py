"""Probabilities that were rounded, so that their rows miss 1."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from skcal._sklearn_compat import Interval, validate_params
from skcal._validation import InputError, plain_array

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
    return divide_by_sums(plain_array(y_proba, "y_proba"), tolerance, "y_proba")


def divide_by_sums(proba: np.ndarray, tolerance: float = ROUNDING, name: str = "proba"):
    """Return rows divided by their sums; what is no row of numbers as it is."""
    if proba.ndim != 2 or proba.dtype.kind != "f" or not np.isfinite(proba).all():
        return proba
    with np.errstate(over="ignore"):
        total = proba.sum(axis=1, dtype=np.float64)
    wrong = misses_1(proba, tolerance)
    if wrong.any():
        row = int(np.argmax(wrong))
        reason = f"sums to {total[row]:.6g}, not 1."
        remedy = f"Rounding explains {tolerance:g}; pass probabilities, of logits the softmax."
        raise InputError(name, reason, remedy, row=row, kind="rounding")
    return proba / total[:, None]


def misses_1(values: np.ndarray, tolerance: float = ROUNDING) -> np.ndarray:
    """Rows whose sum is not explained by rounding."""
    with np.errstate(all="ignore"):
        return ~(np.abs(values.sum(axis=1, dtype=np.float64) - 1) <= tolerance)
