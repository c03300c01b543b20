"""The penalised likelihood of maps that are shrunk towards the identity or one temperature."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Integral, Real

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from skcal._matrices import weighted_gram
from skcal._sklearn_compat import Interval
from skcal._validation import row_blocks
from skcal.recalibration.base import BLOCK_BYTES, RecalibrationMap, logits_of_all
from skcal.recalibration.temperature import best_temperature


class PenalizedScaling(RecalibrationMap):
    """c(p) = softmax(log p / T + Vᵀf(p) + b), the penalty Σ V² / (2C) + ‖b‖² / (2C)."""

    _parameter_constraints: dict = {
        **RecalibrationMap._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    _saved_parameters: tuple[str, ...] = ("temperature", "coef", "intercept")

    @abstractmethod
    def _features(self, z):
        """f(p), shape (n_samples, n_features)."""

    def _features_told(self):
        """f(p) as text, of z and p; not needed of maps of one probability."""

    def _formula_told(self):
        if self._of_single_probability:
            return self._formula
        shift = "f @ coef + intercept"
        shift = f"(0, {shift})" if self.coef_.shape[1] == 1 else shift
        p = "softmax(z)" if self.n_features_in_ == 1 else "exp(z)"
        return f"softmax(z / temperature + {shift}), f = {self._features_told()}, p = {p}"

    def _start(self, z, weight):
        """Learn what the features need before any is computed."""

    def _inverse_penalty(self, shape):
        """C of each coefficient of (V, b), shape (n_features + 1, n_logits)."""
        return np.full(shape, self.C)

    def _temperature(self, z, codes, weight):
        return best_temperature(z, codes, weight)

    def _fit(self, z, codes, weight):
        self._start(z, weight)
        self.temperature_ = self._temperature(z, codes, weight)
        features, offset = self._features_and_one(z), logits_of_all(z) / self.temperature_
        inverse_penalty = self._inverse_penalty((features.shape[1], _n_free(offset.shape[1])))
        coefficients = penalized_coefficients(
            self, offset, Affine(features), codes, weight, inverse_penalty
        )
        if coefficients is None:
            self.temperature_ = 1.0
            coefficients = np.zeros_like(inverse_penalty)
        self.coef_, self.intercept_ = coefficients[:-1], coefficients[-1]

    def _features_and_one(self, z):
        """f(p) and a column of ones, (n_samples, n_features + 1), without a second such array."""
        width = self._features(z[:1]).shape[1]
        features = np.ones((len(z), width + 1))
        for rows in row_blocks(len(z), 8 * width, most=BLOCK_BYTES):
            features[rows, :-1] = self._features(z[rows])
        return features

    def _map(self, z):
        logits = logits_of_all(z) / self.temperature_
        logits[:, -self.coef_.shape[1] :] += self._features(z) @ self.coef_ + self.intercept_
        return logits


def _n_free(n_classes):
    """Logits that are free: of two classes only the second one's."""
    return 1 if n_classes == 2 else n_classes


class Affine:
    """Logits features @ coefficients, of which the last feature is 1."""

    def __init__(self, features):
        self.features = features

    def logits(self, coefficients, rows):
        """Logits of some rows, (n_rows, n_logits)."""
        return self.features[rows] @ coefficients

    def gradient(self, error, rows):
        """Derivative in the coefficients, (n_features, n_logits), by that in the rows' logits."""
        return self.features[rows].T @ error

    def mean_squares(self, share):
        """Weighted mean squares of the features, (n_features, 1)."""
        return np.einsum("i,ij,ij->j", share, self.features, self.features)[:, None]


class ClassByClass:
    """Logits a ⊙ z + b of logits z: coefficients (2, n_classes)."""

    def __init__(self, z):
        self.z = z

    def logits(self, coefficients, rows):
        """Logits of some rows, (n_rows, n_classes)."""
        return coefficients[0] * self.z[rows] + coefficients[1]

    def gradient(self, error, rows):
        """Derivative in the coefficients, (2, n_classes), by that in the rows' logits."""
        return np.stack([np.einsum("ij,ij->j", error, self.z[rows]), error.sum(axis=0)])

    def mean_squares(self, share):
        """Weighted mean squares of what is multiplied, (2, n_classes)."""
        squares = np.einsum("i,ij,ij->j", share, self.z, self.z)
        return np.stack([squares, np.ones_like(squares)])


def penalized_coefficients(scaling, offset, design, codes, weight, inverse_penalty):
    """Coefficients of the highest penalised likelihood of softmax(offset + design.logits(…)).

    Sets ``n_iter_`` of the map; None, with a warning, where ``max_iter`` iterations do not suffice.

    Parameters
    ----------
    scaling : RecalibrationMap
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
    warnings.warn(
        f"{scaling} did not converge in {result.nit} iterations and stays the identity. "
        "Lower C or raise max_iter.",
        ConvergenceWarning,
        stacklevel=2,
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
    def likelihood(coefficients):
        loss, gradient = 0.0, np.zeros_like(coefficients)
        for rows in row_blocks(len(codes), 8 * offset.shape[1], most=BLOCK_BYTES):
            chosen = np.arange(len(codes[rows])), codes[rows]
            logits = offset[rows] + design.logits(coefficients, rows)
            logits -= logits.max(axis=1, keepdims=True)
            own = logits[chosen]
            error = np.exp(logits, out=logits)
            total = error.sum(axis=1)
            loss += share[rows] @ (np.log(total) - own)
            error *= (share[rows] / total)[:, None]
            error[chosen] -= share[rows]
            gradient += design.gradient(error, rows)
        return loss, gradient

    return {"likelihood": likelihood, "options": {"maxfun": 10**9, "ftol": 1e-15}}
