"""One slope and one intercept a class."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np

from skcal._sklearn_compat import Interval, _fit_context
from skcal.recalibration.base import ScalingMap
from skcal.recalibration.penalized import ClassByClass, penalized_coefficients


class VectorScaling(ScalingMap):
    """One slope and one intercept a class on log-probabilities, shrunk towards the identity.

    c(p) = softmax(a ⊙ log p + b), penalised by (‖a - 1‖² + ‖b‖²) / (2 C). Probabilities below 2⁻⁵²
    count as that floor.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty, as in
        :class:`~sklearn.linear_model.LogisticRegression`.
    max_iter : int, default=1000
    tol : float, default=1e-8
        Gradient tolerance, in units of the curvature's root.

    Attributes
    ----------
    slope_, intercept_ : ndarray of shape (n_classes,)
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    References
    ----------
    .. [1] Guo et al., On calibration of modern neural networks, ICML 2017.

    Examples
    --------
    >>> from skcal import VectorScaling
    >>> p = [[0.8, 0.2], [0.8, 0.2], [0.2, 0.8], [0.2, 0.8]]
    >>> VectorScaling(C=1e-9).fit(p, [0, 1, 1, 0]).predict_proba(p).round(3)[0]
    array([0.8, 0.2])
    """

    _parameter_constraints: dict = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, C=1.0, max_iter=1000, tol=1e-8):
        self.C = C
        self.max_iter = max_iter
        self.tol = tol

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Find slopes and intercepts by L-BFGS.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples, 1)
            Probabilities; a single column holds P(positive class).
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` iterations do not suffice; the map is then the identity.
        """
        logits, codes, weight = self._validate(X, y, sample_weight)
        kept = weight > 0
        logits, codes, weight = logits[kept], codes[kept], weight[kept]
        inverse_penalty = np.full((2, logits.shape[1]), self.C)
        shift = penalized_coefficients(
            self, logits, ClassByClass(logits), codes, weight, inverse_penalty
        )
        shift = np.zeros_like(inverse_penalty) if shift is None else shift
        self.slope_, self.intercept_ = 1 + shift[0], shift[1]
        return self

    def _map(self, X, logits):
        return self.slope_ * logits + self.intercept_
