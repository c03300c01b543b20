"""The highest penalised likelihood of logits that are linear in their coefficients."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from skcal._validation import row_blocks
from skcal.recalibration.base import BLOCK_BYTES

_FLOOR = 1e-4  # of the bound, which is added to a Hessian
_FIRST_ITERATIONS = 12  # after which the Hessian may have changed so much that it pays anew
_WHITENED_CLASSES = 15  # the Hessian has (C (C + 1))² entries


class Affine:
    """Logits features @ coefficients, of which the last feature is 1."""

    def __init__(self, features):
        self.features = features

    def logits(self, coefficients, rows):
        """Logits of some rows, (n_rows, n_logits)."""
        return self.features[rows] @ coefficients

    def gradient(self, share, values, rows):
        """Derivative in the coefficients, (n_features, n_logits), by share · values in logits."""
        return (share[:, None] * self.features[rows]).T @ values

    def mean_squares(self, share):
        """Weighted mean squares of the features, (n_features, 1)."""
        return np.einsum("i,ij,ij->j", share, self.features, self.features)[:, None]


class ClassByClass:
    """Logits a ⊙ z + b of logits z: coefficients (2, n_classes)."""

    def __init__(self, z):
        self.z = z

    def logits(self, coefficients, rows):
        """Logits of some rows, (n_rows, n_classes)."""
        logits = coefficients[0] * self.z[rows]
        logits += coefficients[1]
        return logits

    def gradient(self, share, values, rows):
        """Derivative in the coefficients, (2, n_classes), by share · values in logits."""
        total = share @ values
        return np.stack([share @ np.multiply(values, self.z[rows], out=values), total])

    def mean_squares(self, share):
        """Weighted mean squares of what is multiplied, (2, n_classes)."""
        squares = np.einsum("i,ij,ij->j", share, self.z, self.z)
        return np.stack([squares, np.ones_like(squares)])


def penalized_coefficients(scaling, offset, design, codes, weight, inverse_penalty, start=None):
    """Coefficients of the highest penalised likelihood of softmax(offset + design.logits(…)).

    The penalty is Σ coefficients² / (2 inverse_penalty). Two classes have so few coefficients that
    Newton steps in a trust region are cheap. For more classes L-BFGS takes the curvature where it
    starts for the identity: that of all coefficients where a Hessian costs less than some tens of
    iterations, class by class where the coefficients are so few. It starts anew after 12, 24, …
    iterations.

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
    start : ndarray of the coefficients' shape, default=None
        Where to start; None: zeros.

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
    coefficients = np.zeros_like(precision) if start is None else start
    n_iter, n_more = 0, int(scaling.max_iter)
    by_class = isinstance(design, ClassByClass)
    whitened = by_class or 1 < inverse_penalty.shape[1] <= _WHITENED_CLASSES
    converged, until_whitened = False, _FIRST_ITERATIONS
    while not converged and n_iter < scaling.max_iter and np.isfinite(coefficients).all():
        if whitened:
            # Where predictions are certain the Hessian says nothing of that elsewhere.
            floor = precision + _FLOOR * (bound - precision)
            hessian = _class_hessians if by_class else _hessian
            units = _Whitened(hessian(offset, design, coefficients, share), floor)
            n_more = min(until_whitened, int(scaling.max_iter) - n_iter)
            until_whitened *= 2
        result = _minimize(problem, units, coefficients, precision, n_more, scaling.tol)
        coefficients, n_iter = units.coefficients(result.x), n_iter + result.nit
        converged = result.nit < n_more and bool(np.isfinite(coefficients).all())
    problem.clear()  # older versions of scipy keep the objective until a collection
    if converged:
        return coefficients, n_iter
    name = " ".join(str(scaling).split())  # which scikit-learn breaks into lines
    warnings.warn(
        f"{name} did not converge in {n_iter} iterations and stays the identity. Lower C or "
        "raise max_iter.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return None, n_iter


class _Scaled:
    """Coefficients in units of their own, in which the curvature is about 1."""

    def __init__(self, scale):
        self.scale = scale

    def numbers(self, coefficients):
        """Numbers of which these are the coefficients."""
        return (coefficients / self.scale).ravel()

    def coefficients(self, x):
        """Coefficients of numbers of unit curvature (n_coefficients,)."""
        return x.reshape(self.scale.shape) * self.scale

    def gradient(self, gradient):
        """Derivative in the numbers, by that in the coefficients."""
        return (gradient * self.scale).ravel()


class _Whitened:
    """Coefficients as linear functions of numbers in which the curvature is about the identity.

    The Hessian (n_blocks, k, k) is that of blocks of coefficients, class after class.
    """

    def __init__(self, hessian, floor):
        self.shape = floor.shape
        diagonal = floor.T.reshape(len(hessian), -1)
        hessian = hessian + diagonal[:, :, None] * np.eye(diagonal.shape[1])
        self.root = np.linalg.cholesky(hessian)
        self.inverse = np.linalg.inv(self.root)

    def numbers(self, coefficients):
        """Numbers of which these are the coefficients."""
        return self._times(self.root.swapaxes(1, 2), coefficients.T)

    def coefficients(self, x):
        """Coefficients of the numbers."""
        return self._times(self.inverse.swapaxes(1, 2), x).reshape(self.shape[::-1]).T

    def gradient(self, gradient):
        """Derivative in the numbers, by that in the coefficients."""
        return self._times(self.inverse, gradient.T)

    def _times(self, blocks, values):
        return (blocks @ values.reshape(len(blocks), -1, 1)).ravel()


def _hessian(offset, design, coefficients, share):
    """Second derivatives of the likelihood, one block: Σ (diag p - ppᵀ) ⊗ ffᵀ."""
    n_classes, width = offset.shape[1], design.features.shape[1]
    hessian = np.zeros((n_classes * width, n_classes * width))
    for rows in row_blocks(len(offset), 8 * len(hessian), most=BLOCK_BYTES):
        p = softmax(offset[rows] + design.logits(coefficients, rows), axis=1)
        weighted = np.sqrt(share[rows])[:, None] * design.features[rows]
        products = (p[:, :, None] * weighted[:, None]).reshape(len(weighted), -1)
        hessian -= products.T @ products
        for k in range(n_classes):
            own = slice(k * width, (k + 1) * width)
            hessian[own, own] += (p[:, k, None] * weighted).T @ weighted
    return hessian[None]


def _class_hessians(offset, design, coefficients, share):
    """Second derivatives in the two coefficients of each class, (n_classes, 2, 2)."""
    sums = np.zeros((3, offset.shape[1]))
    for rows in row_blocks(len(offset), 8 * offset.shape[1], most=BLOCK_BYTES):
        z, p = design.z[rows], softmax(offset[rows] + design.logits(coefficients, rows), axis=1)
        spread = share[rows, None] * p * (1 - p)
        for total, moment in zip(sums, (spread * z * z, spread * z, spread), strict=True):
            total += moment.sum(axis=0)
    return sums.T[:, [[0, 1], [1, 2]]]


def _minimize(problem, units, start, precision, max_iter, tol):
    """Minimise the loss and its penalty Σ precision coefficients² / 2 in units of coefficients."""

    def objective(x):
        coefficients = units.coefficients(x)
        loss, gradient = problem["likelihood"](coefficients)
        loss += 0.5 * np.vdot(precision * coefficients, coefficients)
        return loss, units.gradient(gradient + precision * coefficients)

    def hessian(x):
        inner = problem["hessian"](units.coefficients(x)) + np.diag(precision[:, 0])
        return inner * np.outer(units.scale, units.scale)

    options = {"maxiter": max_iter, "gtol": tol} | problem["options"]
    if "hessian" in problem:
        solver = {"method": "trust-exact", "hess": hessian}
    else:
        solver = {"method": "L-BFGS-B"}
    return minimize(objective, units.numbers(start), jac=True, options=options, **solver)


def _two_classes(offset, features, codes, share):
    """Loss, gradient and Hessian of the coefficients of the second class's logit.

    The optimiser asks for all three at the same coefficients, one after the other, so that one pass
    over the samples makes them.
    """
    sign, width = 1.0 - 2.0 * codes, features.shape[1]
    latest: dict = {}

    def derivatives(coefficients):
        if latest and np.array_equal(latest["coefficients"], coefficients):
            return latest["derivatives"]
        loss, gradient, hessian = 0.0, np.zeros((width, 1)), np.zeros((width, width))
        for rows in row_blocks(len(codes), 8 * width, most=BLOCK_BYTES):
            design, mass = features[rows], share[rows]
            margin = sign[rows] * (offset[rows] + design @ coefficients[:, 0])
            decay = np.exp(-np.abs(margin))
            total = 1 + decay
            loss += mass @ (np.maximum(margin, 0) + np.log(total))
            error = np.where(margin > 0, 1, decay) / total
            gradient[:, 0] += (mass * sign[rows] * error) @ design
            curvature = mass * decay / total**2
            hessian += (design * curvature[:, None]).T @ design
        latest.update(coefficients=coefficients, derivatives=(loss, gradient, hessian))
        return latest["derivatives"]

    return {
        "likelihood": lambda coefficients: derivatives(coefficients)[:2],
        "hessian": lambda coefficients: derivatives(coefficients)[2],
        "options": {},
    }


def _many_classes(offset, design, codes, share):
    """Loss and gradient of the coefficients of all logits, by blocks of rows."""
    blocks = list(row_blocks(len(codes), 8 * offset.shape[1], most=BLOCK_BYTES))
    observed = 0.0
    for rows in blocks:
        happened = (codes[rows, None] == np.arange(offset.shape[1])).astype(np.float64)
        observed = observed + design.gradient(share[rows], happened, rows)

    def likelihood(coefficients):
        loss, gradient = 0.0, -observed
        for rows in blocks:
            logits = design.logits(coefficients, rows)
            logits += offset[rows]
            logits -= logits.max(axis=1, keepdims=True)
            of_labels = logits[np.arange(len(logits)), codes[rows]]
            values = np.exp(logits, out=logits)
            total = values.sum(axis=1)
            loss += share[rows] @ (np.log(total) - of_labels)
            gradient = gradient + design.gradient(share[rows] / total, values, rows)
        return loss, gradient

    return {"likelihood": likelihood, "options": {"maxfun": 10**9, "ftol": 1e-15}}
