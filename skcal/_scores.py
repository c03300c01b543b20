"""The Brier score and the logarithmic loss of single predictions, each defined once.

Predictions have a column a class, or one column, P(positive class). The scale of the Brier score is
that of :func:`sklearn.metrics.brier_score_loss`: (p - y)² of two classes, the sum over classes of
(p_k - 1[y = k])² of more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def log_losses(proba: np.ndarray) -> np.ndarray:
    """Return -log p of every outcome, (n, C); infinite where p is 0."""
    columns = np.hstack([1 - proba, proba]) if proba.shape[1] == 1 else proba
    with np.errstate(divide="ignore"):
        return -np.log(columns)


def brier_losses(proba: np.ndarray) -> np.ndarray:
    """Return the squared distance of p from every outcome, (n, C); of two classes half of it."""
    if proba.shape[1] == 1:
        return np.hstack([proba**2, (1 - proba) ** 2])
    losses = np.einsum("ij,ij->i", proba, proba)[:, None] + 1 - 2 * proba
    return losses / 2 if proba.shape[1] == 2 else losses


#: Name as of scikit-learn's scorers → losses (n, C) of all outcomes, by probabilities (n, C).
LOSSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "neg_log_loss": log_losses,
    "neg_brier_score": brier_losses,
}


def of_outcomes(losses: np.ndarray, happened: np.ndarray) -> np.ndarray:
    """Return the losses (n,) of what happened: a column each, or shares of one column or all."""
    if happened.dtype.kind != "f":
        return np.take_along_axis(losses, happened[:, None], axis=1)[:, 0]
    shares = np.column_stack([1 - happened, happened]) if happened.ndim == 1 else happened
    return (shares * np.where(shares != 0, losses, 0)).sum(axis=1)


def bounded_log_losses(
    proba: np.ndarray, codes: np.ndarray, logits: np.ndarray | None = None
) -> np.ndarray:
    """Return the log losses (n,) of what happened, none of them infinite.

    Parameters
    ----------
    proba : ndarray of shape (n, 1) or (n, C)
        Kept off 0 and 1 by the resolution of the dtype, as in :func:`sklearn.metrics.log_loss`.
    codes : ndarray of shape (n,) or (n, C)
        Columns of the outcomes, 0 and 1 for a single column; or shares of the classes, floats.
    logits : ndarray of the shape of ``proba``, default=None
        The logit of a single column, or the logarithms of several; used instead, without bounds.
    """
    if logits is not None:
        return log_losses_of_logits(logits, codes)
    floor = np.finfo(proba.dtype).eps
    bounded = np.clip(proba, floor, 1 - floor).astype(np.float64)
    return of_outcomes(log_losses(bounded), codes)


def log_losses_of_logits(logits: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the log losses (n,) of one column of logits, or of the logarithms of probabilities."""
    if logits.shape[1] > 1:
        return -of_outcomes(logits, codes)
    z = logits[:, 0]
    # y log(1 + exp(-z)) + (1 - y) log(1 + exp(z)) of shares y, of which labels lose no digit.
    return np.logaddexp(0, -np.abs(z)) + (np.maximum(z, 0) - codes * z)
