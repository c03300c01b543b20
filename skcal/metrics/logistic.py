"""Logistic recalibration a + b logit(p): its maximum likelihood and intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.special import logit as log_odds
from scipy.stats import chi2

from skcal._validation import InputError
from skcal.model_selection.estimator import ConfidenceInterval

_ITERATIONS, _HALVINGS = 100, 30
_TOLERANCE = 1e-13  # of the gradient of the mean loss
_ROUNDING = 1e-13  # of the mean loss
_DOUBLINGS = 60


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients, their covariance by the Fisher information, and the log-likelihood."""

    coefficients: np.ndarray
    covariance: np.ndarray
    log_likelihood: float


def fit_intercept(logit, outcome, weight) -> LogisticFit:
    """Maximum likelihood of a in a + logit: the score falls with a, so its root is bracketed.

    Newton's method would not do: the likelihood is flat where p is 0 or 1.
    """
    centre = log_odds(weight @ outcome / weight.sum())
    if not np.isfinite(centre):
        reason = "leaves one of two outcomes no weight beside rounding."
        raise InputError("sample_weight", reason, "Lower the largest weight.")
    bracket = centre - logit.max() - 1, centre - logit.min() + 1
    # Not a closure: brentq's cycle of references would keep its arrays until a collection.
    sample = logit, outcome, weight
    a = brentq(_intercept_score, *bracket, args=sample, xtol=1e-13, maxiter=1000)
    frequency = expit(a + logit)
    with np.errstate(divide="ignore"):  # of certain predictions alone
        variance = 1 / (weight @ (frequency * (1 - frequency)))
    best = log_likelihood(a + logit, outcome, weight)
    return LogisticFit(np.array([a]), np.array([[variance]]), best)


def _intercept_score(a, logit, outcome, weight):
    return weight @ (outcome - expit(a + logit))


def fit_logistic(logit, outcome, weight) -> LogisticFit:
    """Maximum likelihood of (a, b) in a + b logit."""
    design = np.column_stack([np.ones_like(logit), logit])
    coefficients = logistic_coefficients(design, weight * outcome, weight, np.zeros(2))
    linear = design @ coefficients
    frequency = expit(linear)
    spread = weight * frequency * (1 - frequency)
    information = (design * spread[:, None]).T @ design
    best = log_likelihood(linear, outcome, weight)
    return LogisticFit(coefficients, np.linalg.pinv(information), best)


def logistic_coefficients(X, hits, mass, penalty) -> np.ndarray:
    """Coefficients β where Σ mass log(1 + exp(η)) - hits η + Σ penalty β² / 2 is least, η = Xβ.

    Newton's method with halved steps: resamples that a threshold separates have flat likelihoods,
    where solvers warn and change.
    """

    def loss(coefficients):
        linear = X @ coefficients
        fit = mass @ np.logaddexp(0, linear) - hits @ linear
        return fit + penalty @ coefficients**2 / 2

    coefficients, total = np.zeros(X.shape[1]), mass.sum()
    least = loss(coefficients)
    for _ in range(_ITERATIONS):
        chance = expit(X @ coefficients)
        gradient = X.T @ (mass * chance - hits) + penalty * coefficients
        if np.abs(gradient).max() <= _TOLERANCE * total:
            break
        curvature = (X * (mass * chance * (1 - chance))[:, None]).T @ X
        curvature += np.diag(penalty + 1e-14 * total)
        step = np.linalg.solve(curvature, gradient)
        for _ in range(_HALVINGS):
            new = loss(coefficients - step)
            if new < least + _ROUNDING * total:
                break
            step = step / 2
        else:
            break
        coefficients, least = coefficients - step, new
    return coefficients


def log_likelihood(logit, outcome, weight):
    """Log likelihood of outcomes 0/1 given their logits."""
    return float(-(weight @ np.logaddexp(0, np.where(outcome == 1, -logit, logit))))


def profile_intervals(logit, outcome, weight, both, large, confidence_level):
    """Profile likelihood intervals of the intercept, the slope and the intercept in the large.

    They hold the values that the likelihood ratio test does not reject, so that they are skewed as
    the likelihood is, where events are few.
    """
    fall = chi2.ppf(confidence_level, 1) / 2
    errors = np.sqrt(np.diagonal(both.covariance))
    design = np.ones_like(logit), logit
    intervals = []
    for own, other in ((0, 1), (1, 0)):
        ratio = both.covariance[own, other] / both.covariance[own, own]
        line = both.coefficients[other], ratio, both.coefficients[own], errors[other] / 10
        best = partial(_best, design[own], design[other], outcome, weight, line)
        intervals.append(_profile(best, both.coefficients[own], errors[own], fall))
    error = np.sqrt(large.covariance[0, 0])
    shifted = partial(_shifted, logit, outcome, weight)
    return [*intervals, _profile(shifted, large.coefficients[0], error, fall)]


def _best(own, other, outcome, weight, line, value):
    """The largest log-likelihood over the other coefficient, near a line in the own one."""
    start, ratio, center, reach = line
    offset = value * own
    guess = start + ratio * (value - center)
    c = _root_of_score(other, offset, outcome, weight, guess, reach)
    return log_likelihood(offset + c * other, outcome, weight)


def _shifted(logit, outcome, weight, a):
    return log_likelihood(a + logit, outcome, weight)


def _root_of_score(z, offset, outcome, weight, guess, reach):
    """C that is most likely in offset + c z; its score falls with it."""
    sample = z, offset, outcome, weight  # not a closure, as above
    tolerance, low, high = 1e-5 * reach, guess - reach, guess + reach
    while _score(low, *sample) < 0:
        low, high, reach = low - 2 * reach, low, 2 * reach
    while _score(high, *sample) > 0:
        low, high, reach = high, high + 2 * reach, 2 * reach
    return brentq(_score, low, high, args=sample, xtol=tolerance)


def _score(c, z, offset, outcome, weight):
    return weight @ (z * (outcome - expit(offset + c * z)))


def _profile(likelihood: Callable, best, step, fall) -> ConfidenceInterval:
    """Values where a profile likelihood is ``fall`` below its largest."""
    least = likelihood(best) - fall
    ends = []
    for reach in (-2 * step, 2 * step):
        for _ in range(_DOUBLINGS):
            if likelihood(best + reach) < least:
                ends_at = best, best + reach
                root = brentq(_above, *ends_at, args=(likelihood, least), xtol=1e-8 * step)
                ends.append(float(root))
                break
            reach *= 2
        else:
            ends.append(float(np.copysign(np.inf, reach)))
    return ConfidenceInterval(*ends)


def _above(value, likelihood, least):
    return likelihood(value) - least
