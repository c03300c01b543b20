"""Maps of penalised likelihood: intercept, vector, matrix and Dirichlet scaling."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from skcal._sklearn_compat import Interval, StrOptions
from skcal._validation import row_blocks
from skcal.recalibration.base import BLOCK_BYTES, RecalibrationMap, logits_of_all
from skcal.recalibration.features import COORDINATES, coordinates_of_logarithms
from skcal.recalibration.likelihood import Affine, ClassByClass, penalized_coefficients
from skcal.recalibration.temperature import best_temperature

_CHOLESKY_MAX_CLASSES = 30  # its Hessian has (C (C + 1))² entries
_POSITIVE = Interval(Real, 0, None, closed="neither")

_COORDINATES_AS_TEXT = {  # of a single column and of several
    "probability": ("p[1:]", "p"),
    "square-root": ("sqrt(p[::-1])", "sqrt(p)"),
    "log": ("z[1:]", "z"),
    "log-ratio": ("z[1:]", "z - mean(z)"),
}


class PenalizedScaling(RecalibrationMap):
    """c(p) = softmax(log p / T + Vᵀf(p) + b), the penalty Σ V² / (2C) + ‖b‖² / (2C).

    Subclasses differ in the features f, in the temperature T from which the fit starts and to which
    the penalty shrinks it, and in the C of each coefficient.
    """

    _parameter_constraints: dict = {
        **RecalibrationMap._parameter_constraints,
        "C": [_POSITIVE],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [_POSITIVE],
    }

    _saved_parameters: tuple[str, ...] = ("temperature", "coef", "intercept")
    _takes_line = True
    _is_tempered: Any = True  # whether T is that of the highest likelihood, else 1

    def __init__(self, C=1.0, max_iter=1000, tol=1e-6, from_logits=False):
        self.C = C
        self.max_iter = max_iter
        self.tol = tol
        self.from_logits = from_logits

    def _features(self, z):
        """f(p), shape (n_samples, n_features); subclasses have it, or a design of their own."""

    def _formula_of(self, features):
        """The formula of a matrix on features of z and p."""
        shift = "f @ coef + intercept"
        shift = f"(0, {shift})" if self.coef_.shape[1] == 1 else shift
        p = "softmax(z)" if self.n_features_in_ == 1 else "exp(z)"
        return f"softmax(z / temperature + {shift}), f = {features}, p = {p}"

    def _inverse_penalty(self, shape):
        """C of each coefficient of (V, b), shape (n_features + 1, n_logits)."""
        return np.full(shape, self.C)

    def _fit(self, z, codes, weight):
        self.temperature_ = best_temperature(z, codes, weight) if self._is_tempered else 1.0
        offset = logits_of_all(z)
        if self.temperature_ != 1:
            offset = offset / self.temperature_
        design, shape = self._design(z, offset)
        coefficients, self.n_iter_ = penalized_coefficients(
            self, offset, design, codes, weight, self._inverse_penalty(shape)
        )
        if coefficients is None:
            self.temperature_, coefficients = 1.0, np.zeros(shape)
        self._keep(coefficients)

    def _design(self, z, offset):
        """How logits are added to the offset by coefficients, and the shape of these."""
        n_logits = 1 if offset.shape[1] == 2 else offset.shape[1]  # of two the second one is free
        width = self._features(z[:1]).shape[1]
        features = np.ones((len(z), width + 1))  # filled by blocks: no second array of this size
        for rows in row_blocks(len(z), 8 * width, most=BLOCK_BYTES):
            features[rows, :-1] = self._features(z[rows])
        return Affine(features), (width + 1, n_logits)

    def _keep(self, coefficients):
        self.coef_, self.intercept_ = coefficients[:-1], coefficients[-1]

    def _map(self, z):
        logits = logits_of_all(z) / self.temperature_
        logits[:, -self.coef_.shape[1] :] += self._features(z) @ self.coef_ + self.intercept_
        return logits


class InterceptCalibration(PenalizedScaling):
    """Add a constant to the log-probability of each class, fitted by maximum likelihood.

    c(p) = softmax(log p + b); for a single column σ(logit p + b). The mean prediction is then the
    share of each class among the training samples: calibration in the large. It suits predictions
    of another population of which only the base rate is new, and few samples.

    Parameters
    ----------
    C : float > 0, default=1e6
        Inverse strength of the penalty ‖b‖² / (2 C), which keeps b finite where a class is absent.
    max_iter : int, default=1000
        The largest number of iterations.
    tol : float, default=1e-6
        The tolerance at which the iterations stop.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    intercept_ : ndarray of shape (n_classes,) or, of two classes, (1,)
        b, of two classes that of the second.
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    TemperatureScaling : of two classes the slope of the logit alone.
    adjust_prevalence : the same by base rates that are known, without labels.

    References
    ----------
    .. [1] Vergouwe et al., A closed testing procedure to select an appropriate method for updating
       prediction models, Statistics in Medicine 2017.

    Examples
    --------
    >>> from skcal.recalibration import InterceptCalibration
    >>> p = [0.9, 0.8, 0.6, 0.2, 0.1, 0.4]
    >>> fitted = InterceptCalibration().fit(p, [1, 1, 0, 0, 0, 0])
    >>> new = fitted.predict_proba(p)[:, 1]
    >>> new.round(2), float(new.sum().round(4))  # two events
    (array([0.76, 0.59, 0.35, 0.08, 0.04, 0.19]), 2.0)
    """

    _saved_parameters = ("intercept",)
    _takes_line = False
    _is_tempered = False

    def __init__(self, C=1e6, max_iter=1000, tol=1e-6, from_logits=False):
        super().__init__(C=C, max_iter=max_iter, tol=tol, from_logits=from_logits)

    def _features(self, z):
        return z[:, :0]

    def _keep(self, coefficients):
        self.intercept_ = coefficients[-1]

    @property
    def _formula(self):
        return f"softmax(z + {'(0, intercept)' if len(self.intercept_) == 1 else 'intercept'})"

    def _map(self, z):
        logits = np.array(logits_of_all(z))
        logits[:, -len(self.intercept_) :] += self.intercept_
        return logits


class VectorScaling(PenalizedScaling):
    """Vector scaling: one slope and one intercept for each class, on log-probabilities.

    c(p) = softmax(a ⊙ log p + b), penalised by (‖T a - 1‖² + ‖b‖²) / (2 C). With T = 1 the map is
    shrunk towards the identity, with the maximum likelihood temperature towards this.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty, as in
        :class:`~sklearn.linear_model.LogisticRegression`; that of [2]_ is 1 / (2 n_classes).
    structured : bool, default=False
        Whether T is the maximum likelihood temperature, as in structured vector scaling [2]_; else
        it is 1.
    max_iter : int, default=1000
        The largest number of iterations.
    tol : float, default=1e-8
        Gradient tolerance, in units of the curvature's root.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    temperature_ : float
        T.
    slope_, intercept_ : ndarray of shape (n_classes,)
        a and b.
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    TemperatureScaling : one slope for all classes.
    MatrixScaling : slopes for all pairs of classes.

    References
    ----------
    .. [1] Guo et al., On calibration of modern neural networks, ICML 2017.
    .. [2] Berta, Holzmüller, Jordan & Bach, Structured matrix scaling for multi-class calibration,
       arXiv:2511.03685, 2025.

    Examples
    --------
    >>> from skcal.recalibration import VectorScaling
    >>> p = [[0.8, 0.2], [0.8, 0.2], [0.2, 0.8], [0.2, 0.8]] * 2
    >>> y = [0, 1, 1, 0, 0, 1, 1, 1]
    >>> VectorScaling(C=1e-9).fit(p, y).predict_proba(p).round(3)[0]
    array([0.8, 0.2])
    >>> fitted = VectorScaling(C=1e-9, structured=True).fit(p, y)
    >>> float(round(fitted.temperature_, 3)), fitted.predict_proba(p).round(3)[0]
    (2.714, array([0.625, 0.375]))
    """

    _parameter_constraints: dict = {
        **PenalizedScaling._parameter_constraints,
        "structured": ["boolean"],
    }

    _saved_parameters: tuple[str, ...] = ("temperature", "slope", "intercept")
    _formula = "softmax(slope ⊙ z + intercept)"

    def __init__(self, C=1.0, structured=False, max_iter=1000, tol=1e-8, from_logits=False):
        super().__init__(C=C, max_iter=max_iter, tol=tol, from_logits=from_logits)
        self.structured = structured

    @property
    def _is_tempered(self):
        return self.structured

    def _design(self, z, offset):
        return ClassByClass(offset), (2, offset.shape[1])

    def _keep(self, coefficients):
        slope, self.intercept_ = coefficients
        self.slope_ = (1 + slope) / self.temperature_

    def _map(self, z):
        return self.slope_ * logits_of_all(z) + self.intercept_


class MatrixScaling(PenalizedScaling):
    """Matrix scaling: plain or structured logistic regression on transformed probabilities.

    The plain map is c(p) = softmax(Vᵀf(p) + b), penalised by ‖V‖² / (2 C). The penalty shrinks it
    towards the frequencies of the classes, whatever p. For a single column with f(p) = logit(p)
    this is Platt scaling. The structured map is c(p) = softmax(log p / T + Vᵀf(p) + b), with T the
    maximum likelihood temperature and V and b penalised by (‖V‖² + ‖b‖²) / (2 C). This penalty
    shrinks it towards temperature scaling, which is better with few samples. With two classes only
    the logit of the second is mapped.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty, as in
        :class:`~sklearn.linear_model.LogisticRegression`.
    structured : bool, default=False
        Whether a temperature stands beside the matrix, to which the penalty shrinks [2]_.
    coordinates : {"square-root", "probability", "log", "log-ratio"}, default=None
        f(p): √p, p, log p or log p minus its mean. None: "log", and "square-root" if structured.
        With logarithms the structured map is that of [2]_, or Dirichlet calibration [3]_. Bounded
        coordinates are better conditioned, and had lower risks on real predictions of deep
        networks.
    C_off_diagonal, C_intercept : float > 0, default=None
        With ``structured``, the inverse strengths of the penalty of V off the diagonal and of b
        [2]_ [3]_; None: C.
    max_iter : int, default=1000
        The largest number of iterations.
    tol : float, default=1e-6
        With ``structured``, the gradient tolerance in units of the curvature's root.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    temperature_ : float
        T; with ``structured`` only.
    present_ : ndarray of int
        Column numbers of the classes with training samples; without ``structured`` only.
    coef_ : ndarray of shape (n_coordinates, n_logits)
        V; ``n_logits`` is 1 for two classes, else their number, without ``structured`` of those
        present. All 0 where one class alone is present, which is then predicted.
    intercept_ : ndarray of shape (n_logits,)
        b.
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Raises
    ------
    ValueError
        In ``fit``, if ``C_off_diagonal`` or ``C_intercept`` is given without ``structured=True``.

    See Also
    --------
    VectorScaling : one slope for each class; for hundreds of classes.
    DirichletCalibration : shrunk off the diagonal alone.

    Notes
    -----
    The plain map predicts a class without training samples with probability 0. Its fit uses Newton
    steps, which tolerate the bad scale of logarithms of small probabilities, with Cholesky
    decompositions up to 30 classes. An iteration of the structured fit takes O(n C²). Both take
    some ten seconds for 10,000 samples of 100 classes, which hardly determine so many coefficients.

    References
    ----------
    .. [1] Guo et al., On calibration of modern neural networks, ICML 2017.
    .. [2] Berta, Holzmüller, Jordan & Bach, Structured matrix scaling for multi-class calibration,
       arXiv:2511.03685, 2025.
    .. [3] Kull et al., Beyond temperature scaling: obtaining well-calibrated multi-class
       probabilities with Dirichlet calibration, NeurIPS 2019.

    Examples
    --------
    >>> from skcal.recalibration import MatrixScaling
    >>> p = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]] * 4
    >>> y = [0, 1, 2, 0, 1, 2, 0, 0, 2, 0, 1, 2]
    >>> MatrixScaling().fit(p, y).predict_proba(p)[1].round(2)
    array([0.31, 0.55, 0.14])
    >>> MatrixScaling(structured=True).fit(p, y).predict_proba(p)[1].round(2)
    array([0.13, 0.8 , 0.07])
    """

    _parameter_constraints: dict = {
        **PenalizedScaling._parameter_constraints,
        "structured": ["boolean"],
        "coordinates": [StrOptions(set(COORDINATES)), None],
        "C_off_diagonal": [_POSITIVE, None],
        "C_intercept": [_POSITIVE, None],
    }

    def __init__(
        self,
        C=1.0,
        structured=False,
        coordinates=None,
        C_off_diagonal=None,
        C_intercept=None,
        max_iter=1000,
        tol=1e-6,
        from_logits=False,
    ):
        super().__init__(C=C, max_iter=max_iter, tol=tol, from_logits=from_logits)
        self.structured = structured
        self.coordinates = coordinates
        self.C_off_diagonal = C_off_diagonal
        self.C_intercept = C_intercept

    @property
    def _saved_parameters(self):  # type: ignore[override]
        return ("temperature" if self.structured else "present", "coef", "intercept")

    def _fit(self, z, codes, weight):
        if self.structured:
            super()._fit(z, codes, weight)
            return
        for name in ("C_off_diagonal", "C_intercept"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} belongs to the structured penalty. Pass "
                    "structured=True, too, or leave it out."
                )
        features, self.present_ = self._features(z), np.unique(codes)
        self.coef_, self.intercept_, self.n_iter_ = np.zeros((features.shape[1], 1)), np.zeros(1), 0
        if len(self.present_) > 1:
            few = len(self.classes_) <= _CHOLESKY_MAX_CLASSES
            solver = "newton-cholesky" if few else "newton-cg"
            logistic = LogisticRegression(C=self.C, solver=solver, max_iter=self.max_iter)
            logistic.fit(features, codes, sample_weight=weight)
            self.coef_ = np.ascontiguousarray(logistic.coef_.T)
            self.intercept_ = logistic.intercept_
            self.n_iter_ = int(np.max(logistic.n_iter_))

    def _inverse_penalty(self, shape):
        inverse = np.full(shape, self.C)
        if self.C_off_diagonal is not None and shape[1] > 1:
            inverse[:-1][~np.eye(shape[1], dtype=bool)] = self.C_off_diagonal
        if self.C_intercept is not None:
            inverse[-1] = self.C_intercept
        return inverse

    def _coordinates(self):
        """The name of f."""
        return self.coordinates or ("square-root" if self.structured else "log")

    def _features(self, z):
        return coordinates_of_logarithms(self._coordinates(), z)

    def _map(self, z):
        if self.structured:
            return super()._map(z)
        logits = np.full((len(z), len(self.classes_)), -np.inf)
        of_present = self._features(z) @ self.coef_ + self.intercept_
        logits[:, self.present_] = (
            logits_of_all(of_present) if len(self.present_) == 2 else of_present
        )
        return logits

    @property
    def _formula(self):
        features = _COORDINATES_AS_TEXT[self._coordinates()][0 if self.n_features_in_ == 1 else 1]
        formula = self._formula_of(features)
        if self.structured:
            return formula
        of_present = formula.replace("z / temperature + ", "")
        return of_present.replace("), f", ") of the classes present, 0 of others, f", 1)


class DirichletCalibration(PenalizedScaling):
    """Dirichlet calibration: a matrix on log-probabilities, shrunk off the diagonal.

    The map is c(p) = softmax(W log p + b). The penalty is
    Σ_{i≠j} W_ij² / (2 C) + ‖b‖² / (2 C_intercept). A weak penalty Σ (W_ii - 1)² / (2 C_diagonal)
    gives separable outcomes an optimum. With two classes it is Beta calibration, and only C
    penalises the slopes' distance from the identity.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty of W off the diagonal.
    C_intercept : float > 0, default=None
        Inverse strength of the penalty of b; None: C.
    C_diagonal : float > 0, default=100.0
        Inverse strength of the penalty of the diagonal.
    max_iter : int, default=1000
        The largest number of iterations.
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
    MatrixScaling : ``structured=True`` shrinks towards one temperature, in bounded coordinates.
    VectorScaling : one slope for each class; for hundreds of classes.

    Notes
    -----
    An iteration takes O(n C²), a fit some 20 s for 10,000 samples of 100 classes.

    References
    ----------
    .. [1] Kull et al., Beyond temperature scaling: obtaining well-calibrated multi-class
       probabilities with Dirichlet calibration, NeurIPS 2019.

    Examples
    --------
    >>> from skcal.recalibration import DirichletCalibration
    >>> p = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]] * 4
    >>> fitted = DirichletCalibration(C=0.1).fit(p, [0, 1, 2, 0, 1, 2, 0, 0, 2, 0, 1, 2])
    >>> fitted.predict_proba(p)[1].round(2)
    array([0.2 , 0.78, 0.02])
    """

    _parameter_constraints: dict = {
        **PenalizedScaling._parameter_constraints,
        "C_intercept": [_POSITIVE, None],
        "C_diagonal": [_POSITIVE],
    }
    _is_tempered = False

    def __init__(
        self,
        C=1.0,
        C_intercept=None,
        C_diagonal=100.0,
        max_iter=1000,
        tol=1e-6,
        from_logits=False,
    ):
        super().__init__(C=C, max_iter=max_iter, tol=tol, from_logits=from_logits)
        self.C_intercept = C_intercept
        self.C_diagonal = C_diagonal

    def _features(self, z):
        if z.shape[1] == 1:
            return np.hstack([np.logaddexp(0, z), -np.logaddexp(0, -z)]) * [-1.0, 1.0]
        return z

    @property
    def _formula(self):
        return self._formula_of("log(p)" if self.n_features_in_ == 1 else "z")

    def _inverse_penalty(self, shape):
        inverse = np.full(shape, self.C)
        if shape[1] > 1:
            np.fill_diagonal(inverse, self.C_diagonal)
        if self.C_intercept is not None:
            inverse[-1] = self.C_intercept
        return inverse
