"""E-values of many streams: merge them into one, or say which streams are miscalibrated."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from skcal._sklearn_compat import Interval, validate_params
from skcal._validation import as_floats, check_weight
from skcal.exceptions import InputError


def _check_e_values(e_values: ArrayLike) -> np.ndarray:
    e_values = as_floats(e_values, "e_values")
    if e_values.ndim != 1 or not len(e_values):
        reason = f"has shape {e_values.shape}."
        raise InputError("e_values", reason, "Pass one e-value a stream, at least one.")
    wrong = ~(e_values >= 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        reason = f"is {e_values[row]:.6g}, not a number ≥ 0."
        raise InputError("e_values", reason, "Pass e_value_ of monitors.", row=row)
    return e_values


@validate_params({"independent": ["boolean"]})
def merge_e_values(
    e_values: ArrayLike, *, independent: bool = False, sample_weight: ArrayLike | None = None
) -> float:
    """Merge e-values of one hypothesis into one.

    Parameters
    ----------
    e_values : array-like of shape (n_streams,)
        The values, each ≥ 0; infinity is allowed.
    independent : bool, default=False
        Whether the streams are independent of each other. True takes the product; False takes the
        mean, which needs no condition.
    sample_weight : array-like of shape (n_streams,), default=None
        Weights of the mean, chosen without looking at the outcomes; a product takes none.

    Returns
    -------
    e_value : float ≥ 0
        Evidence against "all streams are calibrated".

    Raises
    ------
    ValueError
        If an e-value is negative or NaN, or weights are given for a product.

    See Also
    --------
    e_benjamini_hochberg : which of the streams are miscalibrated.

    References
    ----------
    .. [1] Vovk & Wang, E-values: calibration, combination and applications, Ann. Statist. 2021.

    Examples
    --------
    >>> from skcal.monitoring import merge_e_values
    >>> merge_e_values([8.0, 0.5, 2.0])
    3.5
    >>> round(merge_e_values([8.0, 0.5, 2.0], independent=True), 6)
    8.0
    """
    e_values = _check_e_values(e_values)
    if not independent:
        weight = check_weight(sample_weight, len(e_values))
        keep = weight > 0
        return float(np.average(e_values[keep], weights=weight[keep]))
    if sample_weight is not None:
        raise ValueError("sample_weight weighs a mean. Leave it out of a product.")
    if np.isinf(e_values).any():
        return np.inf  # of a prediction that cannot be true, whatever the other streams show
    with np.errstate(divide="ignore", over="ignore"):
        return float(np.exp(np.log(e_values).sum()))


@validate_params({"alpha": [Interval(Real, 0, 1, closed="neither")]})
def e_benjamini_hochberg(e_values: ArrayLike, *, alpha: float = 0.05) -> np.ndarray:
    """Select the miscalibrated streams among many, at a given false discovery rate (e-BH).

    Parameters
    ----------
    e_values : array-like of shape (n_streams,)
        One a stream, each ≥ 0; infinity is allowed.
    alpha : float in (0, 1), default=0.05
        The false discovery rate: at most this share of the named streams is calibrated, on average.

    Returns
    -------
    rejected : ndarray of shape (n_streams,), bool
        The k streams with the largest e-values, for the largest k whose k-th e-value is at least
        n_streams / (k alpha).

    Raises
    ------
    ValueError
        If an e-value is negative or NaN.

    See Also
    --------
    merge_e_values : whether any stream is miscalibrated.

    Notes
    -----
    The promise holds whatever the dependence of the streams; the procedure of Benjamini and
    Hochberg on p-values needs a condition. It is a promise for one reading of the e-values, at any
    time that does not look ahead. Alarms of single monitors hold at all times.

    References
    ----------
    .. [1] Wang & Ramdas, False discovery rate control with e-values, J. R. Statist. Soc. B 2022.

    Examples
    --------
    >>> from skcal.monitoring import e_benjamini_hochberg
    >>> e_benjamini_hochberg([100.0, 45.0, 1.2, 0.3])
    array([ True,  True, False, False])
    """
    e_values = _check_e_values(e_values)
    order = np.argsort(-e_values, kind="stable")
    ranks = np.arange(1, len(e_values) + 1)
    enough = np.flatnonzero(e_values[order] * ranks >= len(e_values) / alpha)
    rejected = np.zeros(len(e_values), dtype=bool)
    rejected[order[: enough[-1] + 1 if len(enough) else 0]] = True
    return rejected
