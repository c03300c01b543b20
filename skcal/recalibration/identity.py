"""The map that changes nothing, and maps of probabilities that are kept off 0 and 1."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skcal._sklearn_compat import HasMethods, Interval
from skcal.recalibration.base import RecalibrationMap, logits_of_all


class Identity(RecalibrationMap):
    """Change nothing: the predictions are calibrated as they are.

    Parameters
    ----------
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities, whose softmax is then the result.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from skcal.recalibration import Identity
    >>> Identity().fit([0.2, 0.9], [0, 1]).predict_proba([0.3])
    array([[0.7, 0.3]])
    """

    def __init__(self, from_logits=False):
        self.from_logits = from_logits

    def _fit(self, z, codes, weight):
        pass

    def _map(self, z):
        return logits_of_all(z)

    def predict_proba(self, X):
        """Return the probabilities themselves, of all classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns), or (n_samples,) of a single column

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        X = self._check(X, reset=False).astype(np.float64, copy=False)
        if self.from_logits:
            return softmax(self._map(X), axis=1)
        return np.hstack([1 - X, X]) if X.shape[1] == 1 else X


class Smoothed(RecalibrationMap):
    """Fit a map to probabilities that are drawn a little towards uniform ones.

    c((p + a) / (1 + a C)) for C classes and the map c. Trees and boosting say 0 and 1 where labels
    are wrong one time in a hundred; logarithms of such probabilities mislead a map of logits.

    Parameters
    ----------
    estimator : recalibration map
    strength : float ≥ 0, default=0.01
        a.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    estimator_ : recalibration map
        Fitted to the smoothed probabilities.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from skcal import TemperatureScaling
    >>> from skcal.recalibration import Smoothed
    >>> p, y = [0.0, 1.0, 1.0, 0.0, 0.6], [0, 1, 0, 0, 1]
    >>> Smoothed(TemperatureScaling(), strength=0.1).fit(p, y).predict_proba([1.0]).round(2)
    array([[0.23, 0.77]])
    """

    _parameter_constraints: dict = {
        **RecalibrationMap._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "strength": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, estimator, strength=0.01, from_logits=False):
        self.estimator = estimator
        self.strength = strength
        self.from_logits = from_logits

    def _fit(self, z, codes, weight):
        self.estimator_ = clone(self.estimator).fit(self._smooth(z), codes, weight)

    def _smooth(self, z):
        p = expit(z) if z.shape[1] == 1 else np.exp(z)
        return (p + self.strength) / (1 + self.strength * max(2, p.shape[1]))

    def _map(self, z):
        return np.log(self._proba(z))

    def _proba(self, z):
        return self.estimator_.predict_proba(self._smooth(z))
