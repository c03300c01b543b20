"""Recalibration maps with many parameters, shrunk towards the identity or one temperature."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Integral, Real

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import SplineTransformer

from skcal._bins import quantile
from skcal._matrices import weighted_gram
from skcal._sklearn_compat import Interval, StrOptions, _fit_context
from skcal._validation import row_blocks
from skcal.recalibration.coordinates import COORDINATES, PROBABILITY_FLOOR
from skcal.recalibration.maps import TemperatureScaling, _ScalingMap

_BLOCK_BYTES = 2**21  # of features


class _PenalizedScaling(_ScalingMap):
    """c(p) = softmax(log p / T + Vᵀf(p) + b), the penalty Σ V² / (2C) + ‖b‖² / (2C)."""

    _parameter_constraints: dict = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    @abstractmethod
    def _features(self, X):
        """f(p), shape (n_samples, n_features)."""

    def _start(self, X, weight):
        """Learn what the features need before any is computed."""

    def _inverse_penalty(self, shape):
        """C of each coefficient of (V, b), shape (n_features + 1, n_logits)."""
        return np.full(shape, self.C)

    def _temperature(self, X, codes, weight):
        return TemperatureScaling().fit(X, codes, weight).temperature_

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Find the coefficients, by L-BFGS or, of two classes, by Newton steps.

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
        X = np.asarray(X, dtype=np.float64)
        kept = weight > 0
        X, logits, codes, weight = X[kept], logits[kept], codes[kept], weight[kept]
        self._start(X, weight)
        self.temperature_ = self._temperature(X, codes, weight)
        features = self._features_and_one(X)
        result = _penalized_likelihood(
            logits / self.temperature_,
            features,
            codes,
            weight,
            self._inverse_penalty((features.shape[1], _n_free(logits.shape[1]))),
            self.max_iter,
            self.tol,
        )
        self.n_iter_ = result.nit
        coefficients = result.x
        if result.nit >= self.max_iter or not np.isfinite(coefficients).all():
            warnings.warn(
                f"{self} did not converge in {result.nit} iterations and stays the identity. "
                "Lower C or raise max_iter.",
                ConvergenceWarning,
                stacklevel=2,
            )
            self.temperature_, coefficients = 1.0, np.zeros_like(coefficients)
        self.coef_, self.intercept_ = coefficients[:-1], coefficients[-1]
        return self

    def _features_and_one(self, X):
        """f(p) and a column of ones, (n_samples, n_features + 1), without a second such array."""
        width = self._features(X[:1]).shape[1]
        features = np.ones((len(X), width + 1))
        for rows in row_blocks(len(X), 8 * width, most=_BLOCK_BYTES):
            features[rows, :-1] = self._features(X[rows])
        return features

    def _map(self, X, logits):
        logits = logits / self.temperature_
        free = logits[:, -self.coef_.shape[1] :]
        for rows in row_blocks(len(X), 8 * len(self.coef_), most=_BLOCK_BYTES):
            free[rows] += self._features(X[rows]) @ self.coef_ + self.intercept_
        return logits


def _n_free(n_classes):
    """Logits that are free: of two classes only the second one's."""
    return 1 if n_classes == 2 else n_classes


def _penalized_likelihood(offset, features, codes, weight, inverse_penalty, max_iter, tol):
    """Coefficients (n_features, n_logits) of softmax(offset + features @ coefficients)."""
    share = weight / weight.sum()
    precision = 1 / (inverse_penalty * weight.sum())
    # A bound of the Hessian's diagonal is 1/4 of the features' squares: unit curvature.
    squares = np.einsum("i,ij,ij->j", share, features, features)
    scale = 1 / np.sqrt(squares[:, None] / 4 + precision)
    if inverse_penalty.shape[1] == 1:
        problem = _two_classes(offset[:, 1] - offset[:, 0], features, codes, share)
    else:
        problem = _many_classes(offset, features, codes, share)

    def objective(scaled):
        coefficients = scaled.reshape(scale.shape) * scale
        loss, gradient = problem["likelihood"](coefficients)
        loss += 0.5 * np.vdot(precision * coefficients, coefficients)
        return loss, ((gradient + precision * coefficients) * scale).ravel()

    def hessian(scaled):
        inner = problem["hessian"](scaled[:, None] * scale) + np.diag(precision[:, 0])
        return inner * np.outer(scale, scale)

    options = {"maxiter": int(max_iter), "gtol": tol} | problem["options"]
    if "hessian" in problem:  # of so few coefficients that Newton steps are cheap
        solver = {"method": "trust-exact", "hess": hessian}
    else:
        solver = {"method": "L-BFGS-B"}
    result = minimize(objective, np.zeros(scale.size), jac=True, options=options, **solver)
    problem.clear()  # older versions of scipy keep the objective until a collection
    result.x = result.x.reshape(scale.shape) * scale
    return result


def _two_classes(offset, features, codes, share):
    sign = 1.0 - 2.0 * codes

    def likelihood(coefficients):
        margin = sign * (offset + features @ coefficients[:, 0])
        return share @ np.logaddexp(0, margin), features.T @ (share * sign * expit(margin))[:, None]

    def hessian(coefficients):
        margin = offset + features @ coefficients[:, 0]
        curvature = share * expit(margin) * expit(-margin)
        return weighted_gram(features, curvature)

    return {"likelihood": likelihood, "hessian": hessian, "options": {}}


def _many_classes(offset, features, codes, share):
    rows = np.arange(len(codes))

    def likelihood(coefficients):
        log_c = log_softmax(offset + features @ coefficients, axis=1)
        error = np.exp(log_c)
        error[rows, codes] -= 1
        error *= share[:, None]
        return -(share @ log_c[rows, codes]), features.T @ error

    return {"likelihood": likelihood, "options": {"maxfun": 10**9, "ftol": 1e-15}}


class MatrixScaling(_PenalizedScaling):
    """A matrix on coordinates of p, shrunk towards temperature scaling.

    c(p) = softmax(log p / T + Vᵀf(p) + b), T the maximum likelihood temperature, and V and b
    penalised by (‖V‖² + ‖b‖²) / (2 C). For a single column, c is the logistic function of
    logit(p) / T + vᵀf(p) + b.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty, as in
        :class:`~sklearn.linear_model.LogisticRegression`.
    coordinates : {"square-root", "probability", "log", "log-ratio"}, default="square-root"
        f(p): √p, p, log p or log p minus its mean. With logarithms this is matrix scaling [1]_
        or Dirichlet calibration [2]_; bounded coordinates are better conditioned, and on real
        predictions of deep networks had lower risks.
    C_off_diagonal, C_intercept : float > 0, default=None
        The same for the off-diagonal of V and for b [2]_; None: C.
    max_iter : int, default=1000
    tol : float, default=1e-6
        Gradient tolerance, in units of the curvature's root.

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
    skcal.VectorScaling : one slope a class; for hundreds of classes.

    Notes
    -----
    O(n C²) an iteration. Probabilities below 2⁻⁵² count as that floor in logarithms.

    References
    ----------
    .. [1] Guo et al., On calibration of modern neural networks, ICML 2017.
    .. [2] Kull et al., Beyond temperature scaling: obtaining well-calibrated multi-class
       probabilities with Dirichlet calibration, NeurIPS 2019.

    Examples
    --------
    >>> from skcal import MatrixScaling
    >>> p = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]] * 4
    >>> scaling = MatrixScaling().fit(p, [0, 1, 2, 0, 1, 2, 0, 0, 2, 0, 1, 2])
    >>> scaling.predict_proba(p)[1].round(2)
    array([0.13, 0.8 , 0.07])
    """

    _parameter_constraints: dict = {
        **_PenalizedScaling._parameter_constraints,
        "coordinates": [StrOptions(set(COORDINATES))],
        "C_off_diagonal": [Interval(Real, 0, None, closed="neither"), None],
        "C_intercept": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        C=1.0,
        coordinates="square-root",
        C_off_diagonal=None,
        C_intercept=None,
        max_iter=1000,
        tol=1e-6,
    ):
        self.C = C
        self.coordinates = coordinates
        self.C_off_diagonal = C_off_diagonal
        self.C_intercept = C_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _features(self, X):
        return COORDINATES[self.coordinates](X)

    def _inverse_penalty(self, shape):
        inverse = np.full(shape, self.C)
        if self.C_off_diagonal is not None and shape[1] > 1:
            inverse[:-1][~np.eye(shape[1], dtype=bool)] = self.C_off_diagonal
        if self.C_intercept is not None:
            inverse[-1] = self.C_intercept
        return inverse


class SplineScaling(_PenalizedScaling):
    """A cubic spline added to the logit of a single probability, shrunk towards a temperature.

    c(p) = σ(logit(p) / T + s(p)), T the maximum likelihood temperature, the coefficients of the
    B-splines penalised by ‖v‖² / (2 C). For scalar notions: confidence, top-label, class-wise,
    binary.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty.
    n_knots : int ≥ 2, default=10
        Knots, at quantiles of the predictions; fewer where predictions repeat.
    max_iter : int, default=1000
    tol : float, default=1e-6

    Attributes
    ----------
    temperature_ : float
    coef_ : ndarray of shape (n_splines, 1)
    intercept_ : ndarray of shape (1,)
    n_iter_ : int
    classes_ : ndarray of shape (2,)
    n_features_in_ : int

    References
    ----------
    .. [1] Gupta et al., Calibration of neural networks using splines, ICLR 2021, who fit a spline
       to the empirical distribution function instead.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal import SplineScaling
    >>> p = np.linspace(0.05, 0.95, 19)[:, None]
    >>> SplineScaling().fit(p, p[:, 0] > 0.5).predict_proba([[0.7]])[0, 1].round(2)
    np.float64(1.0)
    """

    _parameter_constraints: dict = {
        **_PenalizedScaling._parameter_constraints,
        "n_knots": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(self, C=1.0, n_knots=10, max_iter=1000, tol=1e-6):
        self.C = C
        self.n_knots = n_knots
        self.max_iter = max_iter
        self.tol = tol

    def _start(self, X, weight):
        _require_single_column(self, X)
        inner = quantile(X, None, weight, n_bins=self.n_knots - 1, min_samples=1).edges[1:-1]
        knots = np.unique([X.min(), *inner, X.max()])
        if len(knots) == 1:
            knots = np.array([0.0, 1.0])
        self._splines = SplineTransformer(knots=knots[:, None], extrapolation="constant").fit(X)

    def _features(self, X):
        return self._splines.transform(X)


class BetaCalibration(_PenalizedScaling):
    """Beta calibration of a single probability, shrunk towards the identity.

    c(p) = σ(a log p - b log(1 - p) + m), penalised by ((a - 1)² + (b - 1)² + m²) / (2 C).

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty.
    max_iter : int, default=1000
    tol : float, default=1e-6

    Attributes
    ----------
    coef_ : ndarray of shape (2, 1)
        a - 1 and b - 1.
    intercept_ : ndarray of shape (1,)
        m.
    n_iter_ : int
    classes_ : ndarray of shape (2,)
    n_features_in_ : int

    Notes
    -----
    Probabilities below 2⁻⁵² count as that floor.

    References
    ----------
    .. [1] Kull, Silva Filho & Flach, Beta calibration: a well-founded and easily implemented
       improvement on logistic calibration for binary classifiers, AISTATS 2017.

    Examples
    --------
    >>> from skcal import BetaCalibration
    >>> p = [[0.9], [0.8], [0.9], [0.2], [0.1], [0.8]]
    >>> BetaCalibration(C=1e-9).fit(p, [1, 1, 0, 0, 0, 0]).predict_proba([[0.9]]).round(2)
    array([[0.1, 0.9]])
    """

    def __init__(self, C=1.0, max_iter=1000, tol=1e-6):
        self.C = C
        self.max_iter = max_iter
        self.tol = tol

    def _start(self, X, weight):
        _require_single_column(self, X)

    def _temperature(self, X, codes, weight):
        return 1.0

    def _features(self, X):
        return np.log(np.maximum(np.hstack([X, 1 - X]), PROBABILITY_FLOOR)) * [1.0, -1.0]


def _require_single_column(scaling, X):
    if X.shape[1] > 1:
        two = "pass X[:, 1:], P(positive); or " if X.shape[1] == 2 else ""
        raise ValueError(
            f"X has {X.shape[1]} columns. {type(scaling).__name__} recalibrates a single "
            f'probability: {two}use it for a scalar notion such as "confidence" or "classwise", or '
            "MatrixScaling."
        )
