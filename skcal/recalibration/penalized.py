"""The penalised likelihood of maps that are shrunk towards the identity or one temperature."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from sklearn.exceptions import ConvergenceWarning

from skcal._matrices import weighted_gram
from skcal._notes import note
from skcal._sklearn_compat import Interval, _fit_context
from skcal._validation import row_blocks
from skcal.recalibration.base import ScalingMap
from skcal.recalibration.temperature import TemperatureScaling

_BLOCK_BYTES = 2**21  # of features


class PenalizedScaling(ScalingMap):
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
        coefficients = penalized_coefficients(
            self,
            logits / self.temperature_,
            Affine(features),
            codes,
            weight,
            self._inverse_penalty((features.shape[1], _n_free(logits.shape[1]))),
        )
        if coefficients is None:
            self.temperature_ = 1.0
            coefficients = np.zeros((features.shape[1], _n_free(logits.shape[1])))
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


class Affine:
    """Logits features @ coefficients, of which the last feature is 1."""

    def __init__(self, features):
        self.features = features

    def logits(self, coefficients):
        """Logits (n_samples, n_logits)."""
        return self.features @ coefficients

    def gradient(self, error):
        """Derivative in the coefficients, (n_features, n_logits), by that in the logits."""
        return self.features.T @ error

    def mean_squares(self, share):
        """Weighted mean squares of the features, (n_features, 1)."""
        return np.einsum("i,ij,ij->j", share, self.features, self.features)[:, None]


class ClassByClass:
    """Logits a ⊙ z + b of logits z: coefficients (2, n_classes)."""

    def __init__(self, z):
        self.z = z

    def logits(self, coefficients):
        """Logits (n_samples, n_classes)."""
        return coefficients[0] * self.z + coefficients[1]

    def gradient(self, error):
        """Derivative in the coefficients, (2, n_classes), by that in the logits."""
        return np.stack([np.einsum("ij,ij->j", error, self.z), error.sum(axis=0)])

    def mean_squares(self, share):
        """Weighted mean squares of what is multiplied, (2, n_classes)."""
        squares = np.einsum("i,ij,ij->j", share, self.z, self.z)
        return np.stack([squares, np.ones_like(squares)])


def penalized_coefficients(scaling, offset, design, codes, weight, inverse_penalty):
    """Coefficients of the highest penalised likelihood of softmax(offset + design.logits(…)).

    Sets ``n_iter_`` of the map; None, with a warning, where ``max_iter`` iterations do not suffice.

    Parameters
    ----------
    scaling : ScalingMap
        The map, with ``max_iter`` and ``tol``.
    offset : ndarray of shape (n_samples, n_classes)
        Logits.
    design : Affine or ClassByClass
        The design of the map; of two classes an ``Affine`` one gives the second one's logit.
    codes : ndarray of shape (n_samples,)
        Labels.
    weight : ndarray of shape (n_samples,)
    inverse_penalty : ndarray of the coefficients' shape
        C of each.

    Returns
    -------
    coefficients : ndarray or None
    """
    share = weight / weight.sum()
    precision = 1 / (inverse_penalty * weight.sum())
    if isinstance(design, Affine) and inverse_penalty.shape[1] == 1:
        problem = _two_classes(offset[:, 1] - offset[:, 0], design.features, codes, share)
    else:
        problem = _many_classes(offset, design, codes, share)
    # A bound of the Hessian's diagonal is 1/4 of the features' squares: unit curvature.
    scale = 1 / np.sqrt(design.mean_squares(share) / 4 + precision)
    result = _minimize(problem, scale, precision, scaling.max_iter, scaling.tol)
    scaling.n_iter_ = result.nit
    if result.nit < scaling.max_iter and np.isfinite(result.x).all():
        return result.x.reshape(scale.shape) * scale
    note(
        f"{scaling} did not converge in {result.nit} iterations and stays the identity. "
        "Lower C or raise max_iter.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return None


def _minimize(problem, scale, precision, max_iter, tol):
    """Minimise over coefficients / scale."""

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


def _many_classes(offset, design, codes, share):
    rows = np.arange(len(codes))

    def likelihood(coefficients):
        log_c = log_softmax(offset + design.logits(coefficients), axis=1)
        error = np.exp(log_c)
        error[rows, codes] -= 1
        error *= share[:, None]
        return -(share @ log_c[rows, codes]), design.gradient(error)

    return {"likelihood": likelihood, "options": {"maxfun": 10**9, "ftol": 1e-15}}
