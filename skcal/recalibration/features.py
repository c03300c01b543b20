"""Features of probabilities: coordinates of the simplex, B-splines, and products of these."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline
from scipy.special import expit
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skcal._sklearn_compat import Interval, StrOptions, _fit_context
from skcal._validation import read_probabilities

#: Smallest probability whose logarithm is taken: 2⁻⁵² ≈ 2.2e-16, so that log p ≥ -36.04.
PROBABILITY_FLOOR = float(np.finfo(np.float64).eps)
_SMALLEST = 5e-324  # zeros count as that
#: How much of a logarithm maps read beyond this floor, so that the order stays.
BEYOND = 1e-7


def log_probabilities(
    X: np.ndarray, floor: float = PROBABILITY_FLOOR, beyond: float = 0.0
) -> np.ndarray:
    """Return log p; for a single column the logit, log p - log(1 - p).

    Probabilities below ``floor`` count as that; 1 - p below :data:`PROBABILITY_FLOOR` as it. To
    keep their order, ``beyond`` times the logarithm that is lost is added.
    """
    X = X.astype(np.float64, copy=False)
    log_p = _floored_logarithms(X, floor, beyond)
    if X.shape[1] == 1:
        log_p -= _floored_logarithms(1 - X, PROBABILITY_FLOOR, beyond)
    return log_p


def _floored_logarithms(X: np.ndarray, floor: float, beyond: float) -> np.ndarray:
    log_p = np.maximum(X, floor)
    np.log(log_p, out=log_p)
    if beyond and X.min() < floor:
        rare = floor > X
        log_p[rare] += beyond * np.log(np.maximum(X[rare], _SMALLEST) / floor)
    return log_p


def graded(z: np.ndarray) -> np.ndarray:
    """Return σ(z), to which 1e-6 of what z has beyond ±30 is added: else it would round to 0 or 1.

    Different logits stay different.
    """
    return expit(z) + 1e-6 * (z - np.clip(z, -30, 30))


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


class _OfProbabilities(TransformerMixin, BaseEstimator):
    """The base of transformers of probabilities, which learn nothing."""

    _parameter_constraints: dict[str, list[object]] = {}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check the probabilities X of shape (n_samples, d); nothing is learnt.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Probabilities in [0, 1].
        y : None, default=None
            Ignored; there for scikit-learn.
        """
        read_probabilities(self, X, y)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")


class LogProbabilities(OneToOneFeatureMixin, _OfProbabilities):
    """Map probabilities to their logarithms, a single column to its logit.

    Probabilities below 2⁻⁵² ≈ 2.2e-16 count as that floor, so that 0 and 1 stay finite.

    Examples
    --------
    >>> from skcal.recalibration import LogProbabilities
    >>> LogProbabilities().fit_transform([[0.25, 0.75], [1.0, 0.0]]).round(2)
    array([[ -1.39,  -0.29],
           [  0.  , -36.04]])
    """

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return logarithms (or logits) of shape (n_samples, d).

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Probabilities in [0, 1].
        """
        check_is_fitted(self)
        return log_probabilities(read_probabilities(self, X, reset=False))


class ProbabilityInteractions(_OfProbabilities):
    """Multiply all probabilities by the predicted class or by splines of the confidence.

    A linear model on them is a linear map of p whose coefficients vary from predicted class to
    predicted class, or smoothly with max p.

    Parameters
    ----------
    by : {"confidence", "predicted class"}, default="confidence"
    n_knots : int ≥ 2, default=8
        Evenly spaced on [0, 1], for quadratic splines of max p.

    Attributes
    ----------
    n_features_in_ : int

    Notes
    -----
    Ties for the largest probability go to the first class; of a single column max p is p. Bins of
    the confidence with a map in each are those of [1]_, maps for each predicted class those of
    [2]_, here for whole vectors.

    References
    ----------
    .. [1] Ji et al., Bin-wise temperature scaling, ICCV Workshops 2019.
    .. [2] Gupta & Ramdas, Top-label calibration and multiclass-to-binary reductions, ICLR 2022.

    Examples
    --------
    >>> from skcal.recalibration import ProbabilityInteractions
    >>> ProbabilityInteractions("predicted class").fit_transform([[0.75, 0.25], [0.5, 0.5]])
    array([[0.75, 0.25, 0.  , 0.  ],
           [0.5 , 0.5 , 0.  , 0.  ]])
    """

    _parameter_constraints: dict[str, list[object]] = {
        "by": [StrOptions({"confidence", "predicted class"})],
        "n_knots": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(self, by: str = "confidence", n_knots: int = 8) -> None:
        self.by = by
        self.n_knots = n_knots

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the products, (n_samples, d²) or (n_samples, d (n_knots + 1)).

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Probabilities in [0, 1].
        """
        check_is_fitted(self)
        p = read_probabilities(self, X, reset=False).astype(np.float64)
        if self.by == "confidence":
            varying = b_splines(p.max(axis=1, keepdims=True), np.linspace(0, 1, self.n_knots), 2)
        else:
            varying = np.eye(p.shape[1])[p.argmax(axis=1)]
        return (varying[:, :, None] * p[:, None, :]).reshape(len(p), -1)


def b_splines(x: np.ndarray, knots: np.ndarray, degree: int) -> np.ndarray:
    """Values of the B-splines (n, k) at numbers (n, 1), beyond the knots those at the last one."""
    steps = np.arange(1, degree + 1)
    before = knots[0] - (knots[1] - knots[0]) * steps[::-1]
    after = knots[-1] + (knots[-1] - knots[-2]) * steps
    n_splines = len(knots) + degree - 1
    splines = BSpline(np.concatenate([before, knots, after]), np.eye(n_splines), degree)
    return splines(np.clip(x[:, 0], knots[0], knots[-1]))
