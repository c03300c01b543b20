"""The highest penalised likelihood of logits that are linear in their coefficients."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning

from skcal._matrices import weighted_gram
from skcal._validation import row_blocks
from skcal.recalibration.base import BLOCK_BYTES

_FLOOR = 1e-4  # of the bound, which is added to a Hessian
_WHITENED_CLASSES = 15  # the Hessian has (C (C + 1))² entries


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

    The penalty is Σ coefficients² / (2 inverse_penalty). Two classes have so few coefficients that
    Newton steps in a trust region are cheap. For more classes L-BFGS does without further Hessians,
    and where some tens of its iterations cost more than one Hessian, that at the offset makes the
    curvature that it starts with the identity.

    Parameters
    ----------
    scaling : PenalizedScaling
        The map, whose ``max_iter`` and ``tol`` count.
    offset : ndarray of shape (n_samples, n_classes)
        Logits.
    design : Affine or ClassByClass
        Logits as a function of coefficients; of two classes an ``Affine`` one gives the second
        class's logit alone.
    codes : ndarray of shape (n_samples,)
        Column numbers of the labels.
    weight : ndarray of shape (n_samples,)
    inverse_penalty : ndarray of the coefficients' shape
        C of each coefficient.

    Returns
    -------
    coefficients : ndarray or None
        None, with a warning, where ``max_iter`` iterations do not suffice.
    n_iter : int
    """
    share = weight / weight.sum()
    precision = 1 / (inverse_penalty * weight.sum())
    if isinstance(design, Affine) and inverse_penalty.shape[1] == 1:
        problem = _two_classes(offset[:, 1] - offset[:, 0], design.features, codes, share)
    else:
        problem = _many_classes(offset, design, codes, share)
    # A bound of the Hessian's diagonal is 1/4 of the features' squares.
    bound = design.mean_squares(share) / 4 + precision
    units: _Scaled | _Whitened = _Scaled(1 / np.sqrt(bound))
    if isinstance(design, Affine) and 1 < inverse_penalty.shape[1] <= _WHITENED_CLASSES:
        # Where predictions are certain the Hessian at the offset says nothing of that elsewhere.
        floor = precision + _FLOOR * (bound - precision)
        units = _Whitened(_hessian_at_offset(offset, design.features, share), floor)
    result = _minimize(problem, units, precision, scaling.max_iter, scaling.tol)
    if result.nit < scaling.max_iter and np.isfinite(result.x).all():
        return units.coefficients(result.x), result.nit
    name = " ".join(str(scaling).split())  # which scikit-learn breaks into lines
    warnings.warn(
        f"{name} did not converge in {result.nit} iterations and stays the identity. Lower C or "
        "raise max_iter.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return None, result.nit


class _Scaled:
    """Coefficients in units of their own, in which the curvature is about 1."""

    def __init__(self, scale):
        self.scale = scale

    def coefficients(self, x):
        """Coefficients of numbers of unit curvature (n_coefficients,)."""
        return x.reshape(self.scale.shape) * self.scale

    def gradient(self, gradient):
        """Derivative in the numbers, by that in the coefficients."""
        return (gradient * self.scale).ravel()


class _Whitened:
    """Coefficients as linear functions of numbers whose curvature at the offset is the identity."""

    def __init__(self, hessian, floor):
        self.shape = floor.shape
        self.root = cholesky(hessian + np.diag(floor.T.ravel()), lower=True)

    def coefficients(self, x):
        """Coefficients of the numbers."""
        by_class = solve_triangular(self.root, x, lower=True, trans="T")
        return by_class.reshape(self.shape[::-1]).T

    def gradient(self, gradient):
        """Derivative in the numbers, by that in the coefficients."""
        return solve_triangular(self.root, gradient.T.ravel(), lower=True)


def _hessian_at_offset(offset, features, share):
    """Second derivatives of the likelihood at 0, class after class: Σ (diag p - ppᵀ) ⊗ ffᵀ."""
    p = softmax(offset, axis=1)
    n_classes, width = p.shape[1], features.shape[1]
    hessian = np.zeros((n_classes * width, n_classes * width))
    for rows in row_blocks(len(p), 8 * len(hessian), most=BLOCK_BYTES):
        weighted = np.sqrt(share[rows])[:, None] * features[rows]
        products = (p[rows, :, None] * weighted[:, None]).reshape(len(weighted), -1)
        hessian -= products.T @ products
        for k in range(n_classes):
            own = slice(k * width, (k + 1) * width)
            hessian[own, own] += (p[rows, k, None] * weighted).T @ weighted
    return hessian


def _minimize(problem, units, precision, max_iter, tol):
    """Minimise the loss and its penalty Σ precision coefficients² / 2 in units of coefficients."""

    def objective(x):
        coefficients = units.coefficients(x)
        loss, gradient = problem["likelihood"](coefficients)
        loss += 0.5 * np.vdot(precision * coefficients, coefficients)
        return loss, units.gradient(gradient + precision * coefficients)

    def hessian(x):
        inner = problem["hessian"](units.coefficients(x)) + np.diag(precision[:, 0])
        return inner * np.outer(units.scale, units.scale)

    options = {"maxiter": int(max_iter), "gtol": tol} | problem["options"]
    if "hessian" in problem:
        solver = {"method": "trust-exact", "hess": hessian}
    else:
        solver = {"method": "L-BFGS-B"}
    start = np.zeros(precision.size)
    result = minimize(objective, start, jac=True, options=options, **solver)
    problem.clear()  # older versions of scipy keep the objective until a collection
    return result


def _two_classes(offset, features, codes, share):
    """Loss, gradient and Hessian of the coefficients of the second class's logit."""
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
    """Loss and gradient of the coefficients of all logits, by blocks of rows."""

    def likelihood(coefficients):
        loss, gradient = 0.0, np.zeros_like(coefficients)
        for rows in row_blocks(len(codes), 8 * offset.shape[1], most=BLOCK_BYTES):
            labelled = np.arange(len(codes[rows])), codes[rows]
            logits = offset[rows] + design.logits(coefficients, rows)
            logits -= logits.max(axis=1, keepdims=True)
            of_labels = logits[labelled]
            error = np.exp(logits, out=logits)
            total = error.sum(axis=1)
            loss += share[rows] @ (np.log(total) - of_labels)
            error *= (share[rows] / total)[:, None]
            error[labelled] -= share[rows]
            gradient += design.gradient(error, rows)
        return loss, gradient

    return {"likelihood": likelihood, "options": {"maxfun": 10**9, "ftol": 1e-15}}
