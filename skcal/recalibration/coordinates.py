"""Coordinates of the simplex in which maps and kernels may work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skcal._validation import read_probabilities

#: Smallest probability whose logarithm is taken: 2⁻⁵² ≈ 2.2e-16, so that log p ≥ -36.04.
PROBABILITY_FLOOR = float(np.finfo(np.float64).eps)


def log_probabilities(X: np.ndarray, floor: float = PROBABILITY_FLOOR) -> np.ndarray:
    """Return log p; for a single column the logit, log p - log(1 - p).

    Probabilities below ``floor`` count as that; 1 - p below :data:`PROBABILITY_FLOOR` as it.
    """
    X = X.astype(np.float64, copy=False)
    log_p = np.maximum(X, floor)
    np.log(log_p, out=log_p)
    if X.shape[1] == 1:
        return log_p - np.log(np.maximum(1 - X, PROBABILITY_FLOOR))
    return log_p


def square_roots(X: np.ndarray) -> np.ndarray:
    """Return √p, of a single column √p and √(1 - p); their distances are Hellinger's, times √2."""
    X = X.astype(np.float64)
    return np.sqrt(np.maximum(np.hstack([X, 1 - X]) if X.shape[1] == 1 else X, 0))


def log_ratios(X: np.ndarray) -> np.ndarray:
    """Return log p minus its mean over the classes (Aitchison's centred log-ratio), or the logit.

    Probabilities below :data:`PROBABILITY_FLOOR` count as the floor.
    """
    log_p = log_probabilities(X)
    return log_p if X.shape[1] == 1 else log_p - log_p.mean(axis=1, keepdims=True)


#: Name → function of features (n, d).
COORDINATES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "probability": lambda X: X,
    "square-root": square_roots,
    "log": log_probabilities,
    "log-ratio": log_ratios,
}


def coordinates_of_logarithms(name: str, z: np.ndarray) -> np.ndarray:
    """Coordinates of predictions whose log-probabilities, in a single column logits, are z."""
    if name == "log":
        return z
    if name == "log-ratio":
        return z if z.shape[1] == 1 else z - z.mean(axis=1, keepdims=True)
    return COORDINATES[name](expit(z) if z.shape[1] == 1 else np.exp(z))


class LogProbabilities(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Map probabilities to their logarithms, a single column to its logit.

    Probabilities below 2⁻⁵² ≈ 2.2e-16 count as that floor, so that 0 and 1 stay finite.

    Examples
    --------
    >>> from skcal import LogProbabilities
    >>> LogProbabilities().fit_transform([[0.25, 0.75], [1.0, 0.0]]).round(2)
    array([[ -1.39,  -0.29],
           [  0.  , -36.04]])
    """

    def fit(self, X: ArrayLike, y: object = None) -> LogProbabilities:
        """Check the probabilities X of shape (n_samples, d); nothing is learnt."""
        read_probabilities(self, X, y)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return logarithms (or logits) of shape (n_samples, d)."""
        check_is_fitted(self)
        return log_probabilities(read_probabilities(self, X, reset=False))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")
