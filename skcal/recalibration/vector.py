"""One slope and one intercept a class."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np

from skcal._sklearn_compat import Interval
from skcal.recalibration.base import RecalibrationMap, logits_of_all
from skcal.recalibration.penalized import ClassByClass, penalized_coefficients
from skcal.recalibration.temperature import best_temperature


class VectorScaling(RecalibrationMap):
    """One slope and one intercept a class on log-probabilities, shrunk towards the identity.

    c(p) = softmax(a ⊙ log p + b), penalised by (‖a - 1‖² + ‖b‖²) / (2 C).

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty, as in
        :class:`~sklearn.linear_model.LogisticRegression`.
    max_iter : int, default=1000
    tol : float, default=1e-8
        Gradient tolerance, in units of the curvature's root.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    slope_, intercept_ : ndarray of shape (n_classes,)
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    skcal.StructuredVectorScaling : shrunk towards one temperature.

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
        **RecalibrationMap._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    _saved_parameters: tuple[str, ...] = ("slope", "intercept")
    _formula = "softmax(slope ⊙ z + intercept)"

    def __init__(self, C=1.0, max_iter=1000, tol=1e-8, from_logits=False):
        self.C = C
        self.max_iter = max_iter
        self.tol = tol
        self.from_logits = from_logits

    def _fit(self, z, codes, weight):
        self.temperature_ = self._temperature(z, codes, weight)
        z = logits_of_all(z)
        if self.temperature_ != 1:
            z = z / self.temperature_
        inverse_penalty = np.full((2, z.shape[1]), self.C)
        shift = penalized_coefficients(self, z, ClassByClass(z), codes, weight, inverse_penalty)
        if shift is None:
            self.temperature_, shift = 1.0, np.zeros_like(inverse_penalty)
        self.slope_, self.intercept_ = (1 + shift[0]) / self.temperature_, shift[1]

    def _temperature(self, z, codes, weight):
        return 1.0

    def _map(self, z):
        return self.slope_ * logits_of_all(z) + self.intercept_


class StructuredVectorScaling(VectorScaling):
    """One slope and one intercept a class on log-probabilities, shrunk towards one temperature.

    c(p) = softmax(a ⊙ log p + b), penalised by (‖T a - 1‖² + ‖b‖²) / (2 C), T the maximum
    likelihood temperature.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty; that of [1]_ is 1 / (2 n_classes).
    max_iter : int, default=1000
    tol : float, default=1e-8
        Gradient tolerance, in units of the curvature's root.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    temperature_ : float
    slope_, intercept_ : ndarray of shape (n_classes,)
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    skcal.VectorScaling : shrunk towards the identity.

    References
    ----------
    .. [1] Berta, Holzmüller, Jordan & Bach, Structured matrix scaling for multi-class calibration,
       arXiv:2511.03685, 2025.

    Examples
    --------
    >>> from skcal import StructuredVectorScaling
    >>> p = [[0.8, 0.2], [0.8, 0.2], [0.2, 0.8], [0.2, 0.8]] * 2
    >>> fitted = StructuredVectorScaling(C=1e-9).fit(p, [0, 1, 1, 0, 0, 1, 1, 1])
    >>> float(round(fitted.temperature_, 3)), fitted.predict_proba(p).round(3)[0]
    (2.714, array([0.625, 0.375]))
    """

    _saved_parameters: tuple[str, ...] = ("temperature", "slope", "intercept")

    def _temperature(self, z, codes, weight):
        return best_temperature(z, codes, weight)
