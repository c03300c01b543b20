"""Dirichlet calibration, a matrix on log-probabilities."""

from __future__ import annotations

from numbers import Real

import numpy as np

from skcal._sklearn_compat import Interval
from skcal.recalibration.penalized import PenalizedScaling


class DirichletCalibration(PenalizedScaling):
    """A matrix on log-probabilities whose off-diagonal entries and intercept are shrunk.

    c(p) = softmax(W log p + b), penalised by Σ_{i≠j} W_ij² / (2 C) + ‖b‖² / (2 C_intercept) and,
    that separable outcomes have an optimum, weakly by Σ (W_ii - 1)² / (2 C_diagonal). For two
    classes, where it is Beta calibration, all penalties are C's, of the distance from the identity.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty of W off the diagonal.
    C_intercept : float > 0, default=None
        Inverse strength of the penalty of b; None: C.
    C_diagonal : float > 0, default=100.0
        Inverse strength of the penalty of the diagonal.
    max_iter : int, default=1000
    tol : float, default=1e-6
        Gradient tolerance, in units of the curvature's root.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_classes), for two classes (2, 1)
        The transpose of W - 1; for two classes, of the second one's logit.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        b.
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    skcal.StructuredMatrixScaling : shrunk towards one temperature, in bounded coordinates.

    References
    ----------
    .. [1] Kull et al., Beyond temperature scaling: obtaining well-calibrated multi-class
       probabilities with Dirichlet calibration, NeurIPS 2019.

    Examples
    --------
    >>> from skcal import DirichletCalibration
    >>> p = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]] * 4
    >>> fitted = DirichletCalibration(C=0.1).fit(p, [0, 1, 2, 0, 1, 2, 0, 0, 2, 0, 1, 2])
    >>> fitted.predict_proba(p)[1].round(2)
    array([0.2 , 0.78, 0.02])
    """

    _parameter_constraints: dict = {
        **PenalizedScaling._parameter_constraints,
        "C_intercept": [Interval(Real, 0, None, closed="neither"), None],
        "C_diagonal": [Interval(Real, 0, None, closed="neither")],
    }

    _formula = "softmax(z + z @ coef + intercept)"

    def __init__(
        self,
        C=1.0,
        C_intercept=None,
        C_diagonal=100.0,
        max_iter=1000,
        tol=1e-6,
        from_logits=False,
    ):
        self.C = C
        self.C_intercept = C_intercept
        self.C_diagonal = C_diagonal
        self.max_iter = max_iter
        self.tol = tol
        self.from_logits = from_logits

    def _temperature(self, z, codes, weight):
        return 1.0

    def _features(self, z):
        if z.shape[1] == 1:
            return np.hstack([np.logaddexp(0, z), -np.logaddexp(0, -z)]) * [-1.0, 1.0]
        return z

    def _features_told(self):
        return "log(p)" if self.n_features_in_ == 1 else "z"

    def _inverse_penalty(self, shape):
        inverse = np.full(shape, self.C)
        if shape[1] > 1:
            np.fill_diagonal(inverse, self.C_diagonal)
        if self.C_intercept is not None:
            inverse[-1] = self.C_intercept
        return inverse
