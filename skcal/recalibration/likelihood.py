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
_NEWTON_STEPS = 60
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


def penalized_coefficients(scaling, offset, design, codes, weight, inverse_penalty):
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

    Returns
    -------
    coefficients : ndarray or None
        None, with a warning, where ``max_iter`` iterations do not suffice.
    n_iter : int
    """
    share = weight / weight.sum()
    precision = 1 / (inverse_penalty * weight.sum())
    likelihood: TwoClasses | ManyClasses = (
        TwoClasses(offset[:, 1] - offset[:, 0], design.features, share * codes, share)
        if isinstance(design, Affine) and inverse_penalty.shape[1] == 1
        else ManyClasses(offset, design, codes, share)
    )
    # A bound of the Hessian's diagonal is 1/4 of the features' squares.
    bound = design.mean_squares(share) / 4 + precision
    units = _Units(np.zeros((bound.size, 1, 1)), bound)
    coefficients = np.zeros_like(precision)
    n_iter, n_more = 0, int(scaling.max_iter)
    by_class = isinstance(design, ClassByClass)
    whitened = by_class or 1 < inverse_penalty.shape[1] <= _WHITENED_CLASSES
    converged, until_whitened = False, _FIRST_ITERATIONS
    while not converged and n_iter < scaling.max_iter and np.isfinite(coefficients).all():
        if whitened:
            # Where predictions are certain the Hessian says nothing of that elsewhere.
            floor = precision + _FLOOR * (bound - precision)
            hessian = _class_hessians if by_class else _hessian
            units = _Units(hessian(offset, design, coefficients, share), floor)
            n_more = min(until_whitened, int(scaling.max_iter) - n_iter)
            until_whitened *= 2
        result = _minimize(likelihood, units, coefficients, precision, n_more, scaling.tol)
        coefficients, n_iter = units.coefficients(result.x), n_iter + result.nit
        converged = result.nit < n_more and bool(np.isfinite(coefficients).all())
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


class _Units:
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
            of_class = slice(k * width, (k + 1) * width)
            hessian[of_class, of_class] += (p[:, k, None] * weighted).T @ weighted
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


def _minimize(likelihood, units, start, precision, max_iter, tol):
    """Minimise the loss and its penalty Σ precision coefficients² / 2 in units of coefficients."""

    def objective(x):
        coefficients = units.coefficients(x)
        loss, gradient = likelihood.loss_and_gradient(coefficients)
        loss += 0.5 * np.vdot(precision * coefficients, coefficients)
        return loss, units.gradient(gradient + precision * coefficients)

    def hessian(x):
        inner = likelihood.hessian(units.coefficients(x)) + np.diag(precision[:, 0])
        scale = units.inverse.ravel()
        return inner * np.outer(scale, scale)

    options = {"maxiter": max_iter, "gtol": tol}
    solver: dict = {"method": "trust-exact", "hess": hessian, "options": options}
    if isinstance(likelihood, ManyClasses):
        solver = {"method": "L-BFGS-B", "options": options | {"maxfun": 10**9, "ftol": 1e-15}}
    return minimize(objective, units.numbers(start), jac=True, **solver)


def two_class_terms(logits, events, others):
    """Loss (…), and its first and second derivatives in logits (…, n_samples) of events."""
    decay, mass = np.exp(-np.abs(logits)), events + others
    total, is_positive = 1 + decay, logits > 0
    loss = np.maximum(-logits, 0) @ events + np.maximum(logits, 0) @ others + np.log(total) @ mass
    chance = np.where(is_positive, 1, decay) / total
    rest = np.where(is_positive, decay, 1) / total
    return loss, others * chance - events * rest, mass * chance * rest


def modes(derivatives, shape):
    """Coefficients of the highest likelihood under standard normal priors, by Newton steps.

    Parameters
    ----------
    derivatives : callable
        Coefficients (k, n_features) and the numbers of k models to losses (k,), gradients
        (k, n_features) and Hessians (k, n_features, n_features).
    shape : tuple (n_models, n_features)

    Returns
    -------
    coefficients : ndarray of this shape
    losses : ndarray of shape (n_models,)
        Minus the log-likelihoods there.
    hessians : ndarray of shape (n_models, n_features, n_features)
    """
    b, moving = np.zeros(shape), np.arange(shape[0])
    losses, gradients, hessians = derivatives(b, moving)
    for _ in range(_NEWTON_STEPS):
        before, precisions = b[moving], hessians[moving] + np.eye(shape[1])
        step = np.linalg.solve(precisions, (gradients[moving] + before)[:, :, None])[:, :, 0]
        objective = losses[moving] + (before**2).sum(axis=1) / 2
        size = np.ones((len(moving), 1))
        while True:
            after = before - size * step
            loss, gradient, hessian = derivatives(after, moving)
            gain = objective - loss - (after**2).sum(axis=1) / 2
            too_far = (gain < -1e-12) & (size[:, 0] >= 1e-6)
            if not too_far.any():
                break
            size[too_far] /= 2
        b[moving], losses[moving] = after, loss
        gradients[moving], hessians[moving] = gradient, hessian
        moving = moving[gain >= 1e-6]
        if not len(moving):
            break
    return b, losses, hessians


class TwoClasses:
    """The likelihood of coefficients of the second class's logit, offset + features @ coefficients.

    Events are the weights of samples of the second class, within their ``mass``.
    """

    def __init__(self, offset, features, events, mass):
        self.offset, self.features = offset, features
        self.events, self.others = events, mass - events
        self._latest = None

    def derivatives(self, coefficients):
        """Loss, gradient and Hessian in one pass over the samples."""
        width = self.features.shape[1]
        loss, gradient, hessian = 0.0, np.zeros(width), np.zeros((width, width))
        for rows in row_blocks(len(self.offset), 8 * width, most=BLOCK_BYTES):
            features, events, others = self.features[rows], self.events[rows], self.others[rows]
            logits = self.offset[rows] + features @ coefficients
            of_rows, error, curvature = two_class_terms(logits, events, others)
            loss += of_rows
            gradient += error @ features
            hessian += (features * curvature[:, None]).T @ features
        return loss, gradient, hessian

    def mode(self):
        """Coefficients of the highest likelihood under standard normal priors."""

        def derivatives(coefficients, _):
            return [np.array([value]) for value in self.derivatives(coefficients[0])]

        return modes(derivatives, (1, self.features.shape[1]))[0][0]

    def loss_and_gradient(self, coefficients):
        """Loss and derivative of coefficients (n_features, 1)."""
        loss, gradient, _ = self._at(coefficients)
        return loss, gradient[:, None]

    def hessian(self, coefficients):
        """Second derivatives, for which the optimiser asks where it has asked for the first."""
        return self._at(coefficients)[2]

    def _at(self, coefficients):
        if self._latest is None or not np.array_equal(self._latest[0], coefficients):
            self._latest = coefficients.copy(), self.derivatives(coefficients[:, 0])
        return self._latest[1]


class ManyClasses:
    """The likelihood of coefficients of all logits, offset + design.logits(coefficients)."""

    def __init__(self, offset, design, codes, share):
        self.offset, self.design, self.codes, self.share = offset, design, codes, share
        self.blocks = list(row_blocks(len(codes), 8 * offset.shape[1], most=BLOCK_BYTES))
        self.observed = 0.0
        for rows in self.blocks:
            happened = (codes[rows, None] == np.arange(offset.shape[1])).astype(np.float64)
            self.observed = self.observed + design.gradient(share[rows], happened, rows)

    def loss_and_gradient(self, coefficients):
        """Loss and derivative of coefficients, by blocks of rows."""
        loss, gradient = 0.0, -self.observed
        for rows in self.blocks:
            logits = self.design.logits(coefficients, rows)
            logits += self.offset[rows]
            logits -= logits.max(axis=1, keepdims=True)
            of_labels = logits[np.arange(len(logits)), self.codes[rows]]
            values = np.exp(logits, out=logits)
            total = values.sum(axis=1)
            loss += self.share[rows] @ (np.log(total) - of_labels)
            gradient = gradient + self.design.gradient(self.share[rows] / total, values, rows)
        return loss, gradient
