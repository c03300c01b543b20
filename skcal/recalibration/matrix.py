"""Affine maps of whole vectors of coordinates of p."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.linear_model import LogisticRegression

from skcal._sklearn_compat import Interval, StrOptions
from skcal.recalibration.base import RecalibrationMap, logits_of_all
from skcal.recalibration.coordinates import COORDINATES, coordinates_of_logarithms
from skcal.recalibration.penalized import PenalizedScaling

_CHOLESKY_MAX_CLASSES = 30  # its Hessian has (C (C + 1))² entries

_TOLD = {  # coordinates of a single column and of several, as text
    "probability": ("p[1:]", "p"),
    "square-root": ("sqrt(p[::-1])", "sqrt(p)"),
    "log": ("z[1:]", "z"),
    "log-ratio": ("z[1:]", "z - mean(z)"),
}


class MatrixScaling(RecalibrationMap):
    """An affine map of log-probabilities: logistic regression on them.

    c(p) = softmax(W log p + b), penalised by ‖W‖² / (2 C), which shrinks towards the frequencies of
    the classes, whatever p. For a single column this is Platt scaling of the logit.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty, as in
        :class:`~sklearn.linear_model.LogisticRegression`.
    max_iter : int, default=1000
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    present_ : ndarray of int
        Column numbers of the classes with training samples.
    coef_ : ndarray of shape (n_present, n_columns), for two classes (1, n_columns)
        W; for two classes, of the second one's logit. All 0 for one class, which is then predicted.
    intercept_ : ndarray of shape (n_present,) or (1,)
        b.
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    skcal.StructuredMatrixScaling : shrunk towards temperature scaling, better with few samples.
    skcal.VectorScaling : one slope a class; for hundreds of classes.

    Notes
    -----
    A class without training samples is predicted with probability 0. Newton steps, which bear the
    bad scale of logarithms of small probabilities, by Cholesky decompositions up to 30 classes.

    References
    ----------
    .. [1] Guo et al., On calibration of modern neural networks, ICML 2017.

    Examples
    --------
    >>> from skcal import MatrixScaling
    >>> p = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]] * 4
    >>> scaling = MatrixScaling().fit(p, [0, 1, 2, 0, 1, 2, 0, 0, 2, 0, 1, 2])
    >>> scaling.predict_proba(p)[1].round(2)
    array([0.31, 0.55, 0.14])
    """

    _parameter_constraints: dict = {
        **RecalibrationMap._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    _saved_parameters: tuple[str, ...] = ("present", "coef", "intercept")
    _formula = "softmax(coef @ z + intercept) of the classes present, 0 of others"

    def __init__(self, C=1.0, max_iter=1000, from_logits=False):
        self.C = C
        self.max_iter = max_iter
        self.from_logits = from_logits

    def _fit(self, z, codes, weight):
        self.present_ = np.unique(codes)
        self.coef_, self.intercept_, self.n_iter_ = np.zeros((1, z.shape[1])), np.zeros(1), 0
        if len(self.present_) > 1:
            few = len(self.classes_) <= _CHOLESKY_MAX_CLASSES
            solver = "newton-cholesky" if few else "newton-cg"
            logistic = LogisticRegression(C=self.C, solver=solver, max_iter=self.max_iter)
            logistic.fit(z, codes, sample_weight=weight)
            self.coef_, self.intercept_ = logistic.coef_, logistic.intercept_
            self.n_iter_ = int(np.max(logistic.n_iter_))

    def _formula_told(self):
        own = f"coef @ {'z[1:]' if self.n_features_in_ == 1 else 'z'} + intercept"
        own = f"(0, {own})" if len(self.present_) == 2 else own
        return f"softmax({own}) of the classes present, 0 of others"

    def _map(self, z):
        logits = np.full((len(z), len(self.classes_)), -np.inf)
        own = z @ self.coef_.T + self.intercept_
        logits[:, self.present_] = logits_of_all(own) if len(self.present_) == 2 else own
        return logits


class StructuredMatrixScaling(PenalizedScaling):
    """A matrix on coordinates of p beside a temperature, to which its penalty shrinks it.

    c(p) = softmax(log p / T + Vᵀf(p) + b), T the maximum likelihood temperature, and V and b
    penalised by (‖V‖² + ‖b‖²) / (2 C). For a single column, c is the logistic function of
    logit(p) / T + vᵀf(p) + b.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty, as in
        :class:`~sklearn.linear_model.LogisticRegression`.
    coordinates : {"square-root", "probability", "log", "log-ratio"}, default="square-root"
        f(p): √p, p, log p or log p minus its mean. With logarithms this is matrix scaling under a
        structured penalty [1]_, or Dirichlet calibration [2]_; bounded coordinates are better
        conditioned, and on real predictions of deep networks had lower risks.
    C_off_diagonal, C_intercept : float > 0, default=None
        The inverse strengths of the penalty of V off the diagonal and of b [1]_ [2]_; None: C.
    max_iter : int, default=1000
    tol : float, default=1e-6
        Gradient tolerance, in units of the curvature's root.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    temperature_ : float
    coef_ : ndarray of shape (n_coordinates, n_classes), for two classes (n_coordinates, 1)
        V; for two classes, of the second one's logit.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        b.
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    skcal.MatrixScaling : without a temperature, shrunk towards uniform predictions.
    skcal.VectorScaling : one slope a class; for hundreds of classes.

    Notes
    -----
    O(n C²) an iteration.

    References
    ----------
    .. [1] Berta, Holzmüller, Jordan & Bach, Structured matrix scaling for multi-class calibration,
       arXiv:2511.03685, 2025.
    .. [2] Kull et al., Beyond temperature scaling: obtaining well-calibrated multi-class
       probabilities with Dirichlet calibration, NeurIPS 2019.

    Examples
    --------
    >>> from skcal import StructuredMatrixScaling
    >>> p = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]] * 4
    >>> scaling = StructuredMatrixScaling().fit(p, [0, 1, 2, 0, 1, 2, 0, 0, 2, 0, 1, 2])
    >>> scaling.predict_proba(p)[1].round(2)
    array([0.13, 0.8 , 0.07])
    """

    _parameter_constraints: dict = {
        **PenalizedScaling._parameter_constraints,
        "coordinates": [StrOptions(set(COORDINATES))],
        "C_off_diagonal": [Interval(Real, 0, None, closed="neither"), None],
        "C_intercept": [Interval(Real, 0, None, closed="neither"), None],
    }
    _formula = "softmax(z / temperature + f @ coef + intercept)"

    def __init__(
        self,
        C=1.0,
        coordinates="square-root",
        C_off_diagonal=None,
        C_intercept=None,
        max_iter=1000,
        tol=1e-6,
        from_logits=False,
    ):
        self.C = C
        self.coordinates = coordinates
        self.C_off_diagonal = C_off_diagonal
        self.C_intercept = C_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.from_logits = from_logits

    def _features(self, z):
        return coordinates_of_logarithms(self.coordinates, z)

    def _features_told(self):
        return _TOLD[self.coordinates][0 if self.n_features_in_ == 1 else 1]

    def _inverse_penalty(self, shape):
        inverse = np.full(shape, self.C)
        if self.C_off_diagonal is not None and shape[1] > 1:
            inverse[:-1][~np.eye(shape[1], dtype=bool)] = self.C_off_diagonal
        if self.C_intercept is not None:
            inverse[-1] = self.C_intercept
        return inverse
