"""Maximum likelihood of logit P(Y = 1) = a + b logit(p), and intervals of a and b."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.special import logit as log_odds
from scipy.stats import chi2

from skcal._groups import no_smaller
from skcal._scores import log_losses_of_logits
from skcal._validation import InputError
from skcal.metrics.base import Outcome, check_both
from skcal.model_selection.estimator import ConfidenceInterval

_ITERATIONS, _HALVINGS = 100, 30
_TOLERANCE = 1e-13  # of the gradient of the mean loss
_ROUNDING = 1e-13  # of the mean loss
_DOUBLINGS = 60
_NEWTON_STEPS, _FAR = 10, 100.0  # Newton's, from a guess at most so many reaches off


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients, their covariance, and the log-likelihood."""

    coefficients: np.ndarray
    covariance: np.ndarray
    log_likelihood: float

    @property
    def standard_errors(self) -> np.ndarray:
        """The standard errors of the coefficients, of the same shape."""
        return np.sqrt(np.diagonal(self.covariance))


class LogisticLine:
    """The likelihood of a + b logit(p), or with ``slope=1`` of a + logit(p), for one outcome.

    Parameters
    ----------
    data : Outcome
        Both outcomes occur; else an error is raised.
    slope : 1 or None, default=None
        None: it is free.
    """

    def __init__(self, data: Outcome, slope: int | None = None):
        check_both(data.happened)
        self.outcome, self.weight, self.groups = data.happened, data.weight, data.problem.groups
        ones, self.offset = np.ones_like(data.logit), np.zeros(1)
        self.design = np.column_stack([ones, data.logit])
        if slope is not None:
            self.offset, self.design = data.logit, ones[:, None]

    @cached_property
    def events(self) -> float:
        """Events or non-events, whichever are fewer; of groups as many as would tell as much alone.

        A sample with a weight counts as repeated rows unless the weights made groups of it.
        """
        rows = np.maximum(self.weight, 1) if self.groups.independent else np.ones(len(self.weight))
        fewer = min(rows[self.outcome > 0].sum(), rows[self.outcome < 1].sum())
        return float(fewer / self.groups.design_effect(self.weight))

    def check_overlap(self) -> None:
        """Raise unless the predictions of the two outcomes overlap, without which b is infinite."""
        logit = self.design[:, 1]
        if logit.min() == logit.max():
            raise ValueError("All predictions of y_proba are equal, so they have no slope.")
        below, above = logit[self.outcome == 0], logit[self.outcome == 1]
        if below.max() <= above.min() or above.max() <= below.min():
            raise ValueError(
                "A threshold on y_proba separates the outcomes, so that no finite slope is the "
                "most likely. More samples are needed."
            )

    def log_likelihood(self, coefficients) -> float:
        """Log-likelihood of the coefficients."""
        return _log_likelihood(self.offset + self.design @ coefficients, self.outcome, self.weight)

    def most_likely(self) -> np.ndarray:
        """The coefficients of the largest likelihood."""
        if self.design.shape[1] == 1:
            return np.array([self._most_likely_intercept()])
        hits, penalty = self.weight * self.outcome, np.zeros(2)
        return logistic_coefficients(self.design, hits, self.weight, penalty, np.array([0.0, 1.0]))

    def _most_likely_intercept(self) -> float:
        """The score falls with a, so that its root is bracketed.

        Newton's method would not do: the likelihood is flat where p is 0 or 1.
        """
        centre = log_odds(self.weight @ self.outcome / self.weight.sum())
        if not np.isfinite(centre):
            reason = "leaves one of two outcomes no weight beside rounding."
            raise InputError("sample_weight", reason, "Lower the largest weight.")
        bracket = centre - self.offset.max() - 1, centre - self.offset.min() + 1
        # Not a closure: brentq's cycle of references would keep its arrays until a collection.
        arguments = self.design[:, 0], self.offset, self.outcome, self.weight
        return brentq(_score, *bracket, args=arguments, xtol=1e-13, maxiter=1000)

    def fit(self) -> LogisticFit:
        """Maximum likelihood, with the Fisher information or, of groups, their sandwich."""
        coefficients = self.most_likely()
        chance = expit(self.offset + self.design @ coefficients)
        if len(coefficients) == 1:
            with np.errstate(divide="ignore"):  # of certain predictions alone
                covariance = np.array([[1 / (self.weight @ (chance * (1 - chance)))]])
        else:
            spread = self.weight * chance * (1 - chance)
            covariance = np.linalg.pinv((self.design * spread[:, None]).T @ self.design)
        if not self.groups.independent:
            covariance = self._sandwich(covariance, chance)
        return LogisticFit(coefficients, covariance, self.log_likelihood(coefficients))

    def _sandwich(self, covariance, chance) -> np.ndarray:
        """The covariance by the groups' scores.

        It is in no direction smaller than that of independent samples, and than that of outcomes
        which depend on each other as strongly as those of the groups do.
        """
        weighted, residuals = self.design * self.weight[:, None], self.outcome - chance
        groups = self.groups.about(chance[:, None], residuals[:, None])
        larger = covariance
        for middle in (
            groups.covariance_of_sums(weighted * residuals[:, None]),
            groups.covariance(weighted, chance),
        ):
            larger = no_smaller(covariance @ middle @ covariance, larger)
        return larger

    def intervals(self, fit: LogisticFit, confidence_level: float) -> list[ConfidenceInterval]:
        """Intervals of the coefficients: Student's of groups, else those of profile likelihoods.

        These hold the values that the likelihood ratio test does not reject, so that they are
        skewed as the likelihood is, where events are few.
        """
        values = list(zip(fit.coefficients, fit.standard_errors, strict=True))
        if not self.groups.independent:
            half = self.groups.quantile((1 - confidence_level) / 2, self.weight)
            ends = [(value - half * error, value + half * error) for value, error in values]
            return [ConfidenceInterval(float(low), float(high)) for low, high in ends]
        fall = chi2.ppf(confidence_level, 1) / 2
        return [
            _where_it_falls(partial(self._profile, fit, k), value, error, fall)
            for k, (value, error) in enumerate(values)
        ]

    def _profile(self, fit: LogisticFit, k: int, value: float) -> float:
        """The largest log-likelihood where coefficient k has this value."""
        if len(fit.coefficients) == 1:
            return self.log_likelihood([value])
        other, offset = self.design[:, 1 - k], value * self.design[:, k]
        slope = fit.covariance[k, 1 - k] / fit.covariance[k, k]
        guess = fit.coefficients[1 - k] + slope * (value - fit.coefficients[k])
        reach = fit.standard_errors[1 - k] / 10
        best = _root_of_score(other, offset, self.outcome, self.weight, guess, reach)
        return _log_likelihood(offset + best * other, self.outcome, self.weight)


def logistic_coefficients(X, hits, mass, penalty, start) -> np.ndarray:
    """Coefficients β where Σ mass log(1 + exp(η)) - hits η + Σ penalty β² / 2 is least, η = Xβ.

    Newton's method with halved steps, from 0 or a better start: resamples that a threshold
    separates have flat likelihoods, where solvers warn and change.
    """

    def loss(coefficients):
        linear = X @ coefficients
        fit = mass @ np.logaddexp(0, linear) - hits @ linear
        return fit + penalty @ coefficients**2 / 2

    total = mass.sum()
    starts = ((loss(coefficients), coefficients) for coefficients in (start, 0 * start))
    least, coefficients = min(starts, key=itemgetter(0))
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


def _log_likelihood(logit, outcome, weight) -> float:
    """Log-likelihood of outcomes 0/1 given their logits."""
    return -float(weight @ log_losses_of_logits(logit[:, None], outcome))


def _root_of_score(z, offset, outcome, weight, guess, reach) -> float:
    """The c that is most likely in offset + c z; its score falls with it."""
    c, weighted = guess, weight * z
    for _ in range(_NEWTON_STEPS):
        chance = expit(offset + c * z)
        information = weighted @ (z * chance * (1 - chance))
        step = weighted @ (outcome - chance) / information if information > 0 else np.inf
        if not abs(step) < _FAR * reach:
            break
        c += step
        if abs(step) <= 1e-3 * reach:  # the next one would be some square of it
            return c
    arguments = z, offset, outcome, weight  # not a closure, as above
    tolerance, low, high = 1e-5 * reach, guess - reach, guess + reach
    while _score(low, *arguments) < 0:
        low, high, reach = low - 2 * reach, low, 2 * reach
    while _score(high, *arguments) > 0:
        low, high, reach = high, high + 2 * reach, 2 * reach
    return brentq(_score, low, high, args=arguments, xtol=tolerance)


def _score(c, z, offset, outcome, weight) -> float:
    """Derivative of the log-likelihood of offset + c z by c."""
    return weight @ (z * (outcome - expit(offset + c * z)))


def _where_it_falls(likelihood, best, step, fall) -> ConfidenceInterval:
    """Values where a profile likelihood is ``fall`` below its largest."""
    least = likelihood(best) - fall
    ends = []
    for reach in (-2 * step, 2 * step):
        for _ in range(_DOUBLINGS):
            if likelihood(best + reach) < least:
                bracket = best, best + reach
                root = brentq(_above, *bracket, args=(likelihood, least), xtol=1e-8 * step)
                ends.append(float(root))
                break
            reach *= 2
        else:
            ends.append(float(np.copysign(np.inf, reach)))
    return ConfidenceInterval(*ends)


def _above(value, likelihood, least) -> float:
    return likelihood(value) - least
