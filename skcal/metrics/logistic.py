"""Maximum likelihood of logistic regression, and limits where the likelihood has fallen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.special import logit as log_odds
from scipy.stats import chi2

from skcal._groups import no_smaller
from skcal._validation import InputError, effective_weights
from skcal.metrics.base import Outcome, check_both
from skcal.metrics.limits import FEWEST_EVENTS
from skcal.model_selection.estimator import ConfidenceInterval

_ITERATIONS, _STEP_HALVINGS = 100, 30
_GRADIENT_TOL = 1e-13  # of the gradient of the mean loss
_LOSS_ROUNDING = 1e-13  # of the mean loss
_RIDGE = 1e-9
_LINE_STEPS = 60
_FAR_LOGIT = 1000.0  # a logit whose chance is 0 or 1 to the last digit
_CERTAIN_LOGIT = 8.0  # a logit beyond which a chance hardly tells


class LogisticLikelihood(NamedTuple):
    """The penalised log-likelihood of logits offset + design @ coefficients.

    Attributes
    ----------
    design : ndarray of shape (n, m)
    hits, mass : ndarray of shape (n,)
        Sums of the weights of the events, and of all samples, at each row.
    penalty : ndarray of shape (m,) or 0
        Of half the squared coefficients.
    offset : ndarray of shape (n, 1) or 0
    """

    design: np.ndarray
    hits: np.ndarray
    mass: np.ndarray
    penalty: Any = 0.0
    offset: Any = 0.0

    def expanded(self, coefficients):
        """Values (k,), gradients (k, m), negative Hessians (k, m, m) at coefficients (m, k)."""
        m, linear = self.design.shape[1], self.offset + self.design @ coefficients
        away, misses = np.exp(-np.abs(linear)), self.mass - self.hits
        chance = np.where(linear > 0, 1, away) / (1 + away)
        loss = self.hits @ np.maximum(-linear, 0) + misses @ np.maximum(linear, 0)
        expected = self.mass[:, None] * chance
        gradient = (self.design.T @ self.hits)[:, None] - self.design.T @ expected
        information = [
            (self.design * spread[:, None]).T @ self.design
            for spread in (expected * (1 - chance)).T
        ]
        penalty = np.broadcast_to(self.penalty, m)
        return (
            -loss - self.mass @ np.log1p(away) - penalty @ coefficients**2 / 2,
            gradient.T - penalty * coefficients.T,
            np.stack(information) + np.diag(penalty),
        )

    def at(self, coefficients):
        """The value, the gradient (m,) and the negative Hessian (m, m) at coefficients (m,)."""
        return tuple(part[0] for part in self.expanded(np.asarray(coefficients)[:, None]))

    def most_likely(self, start) -> np.ndarray:
        """Coefficients of the largest value.

        Newton's method with halved steps, from 0 or a better start: resamples that a threshold
        separates have flat likelihoods, where solvers warn and change.
        """
        total, ridge = self.mass.sum(), np.eye(len(start))
        starts = [(self.at(guess), guess) for guess in (start, 0 * start)]
        (value, gradient, information), coefficients = max(starts, key=lambda known: known[0][0])
        for _ in range(_ITERATIONS):
            if np.abs(gradient).max() <= _GRADIENT_TOL * total:
                break
            step = np.linalg.solve(information + 1e-14 * total * ridge, gradient)
            for _ in range(_STEP_HALVINGS):
                new = self.at(coefficients + step)
                if new[0] > value - _LOSS_ROUNDING * total:
                    break
                step = step / 2
            else:
                break
            coefficients, (value, gradient, information) = coefficients + step, new
        return coefficients

    def farthest(self, rows, sign, z, start) -> np.ndarray:
        """The least (sign -1) or largest value of each row's predictor that is not rejected.

        Of all coefficients whose log-likelihood is at most z² / 2 below the largest, by steps to
        the farthest point of a quadratic approximation [1]_, which move no predictor by more than
        2 at a time, beside what it moves where its chance is all but 0 or 1.

        Parameters
        ----------
        rows : ndarray of shape (k, m)
        sign : -1 or 1
        z : ndarray of shape (k,)
        start : ndarray of shape (m,)
            The coefficients of the largest likelihood.

        References
        ----------
        .. [1] Venzon & Moolgavkar, A method for computing profile-likelihood-based confidence
           intervals, Applied Statistics 1988.
        """
        coefficients = np.repeat(start[:, None], len(rows), axis=1)
        bound = self.at(start)[0] - z**2 / 2
        going = np.arange(len(rows))  # whose steps have not become small
        for _ in range(_LINE_STEPS):
            row, at = rows[going], coefficients[:, going]
            value, gradient, curvature = self.expanded(at)
            inverse = np.linalg.inv(curvature + _RIDGE * np.eye(len(at)))
            newton = np.einsum("kij,kj->ki", inverse, gradient)
            along = np.einsum("kij,kj->ki", inverse, row)
            room = 2 * (value - bound[going]) + (newton * gradient).sum(axis=1)
            length = np.sqrt(np.maximum(room, 0) / (along * row).sum(axis=1))
            step = (newton + sign * length[:, None] * along).T
            linear = np.vstack([self.offset + self.design @ at, (row.T * at).sum(axis=0)])
            move = np.vstack([self.design @ step, (row.T * step).sum(axis=0)])
            # Predictors that are certain already would else hold up those that tell something.
            beyond = np.maximum(np.abs(linear) - _CERTAIN_LOGIT, 0)
            outwards = (beyond > 0) & (move * linear > 0)
            moved = np.where(outwards, 0, np.abs(move) / (2 + beyond)).max(axis=0)
            coefficients[:, going] = at + step * np.minimum(1, 1 / np.maximum(moved, 1e-300))
            going = going[moved >= 1e-6]
            if not len(going):
                break
        farthest = (rows * coefficients.T).sum(axis=1)
        return sign * np.maximum(sign * farthest, sign * (rows @ start))


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

    Attributes
    ----------
    n_certain, n_against : int
        Predictions of exactly 0 or 1, and how many outcomes are against them. They say nothing of a
        finite slope, which is that of the others; at slope 1 they are as far off as infinity is.
    """

    def __init__(self, data: Outcome, slope: int | None = None):
        check_both(data.happened)
        certain = ~np.isfinite(data.logit)
        against = certain & (data.happened != data.prediction)
        self.n_certain, self.n_against = int(certain.sum()), int(against.sum())
        kept = slice(None) if slope or not self.n_certain else ~certain
        self.outcome, self.weight = data.happened[kept], data.weight[kept]
        self.groups, self.certain = data.problem.groups.take(kept), certain[kept]
        z, self.offset = data.logit[kept], np.zeros(1)
        self.design = np.column_stack([np.ones(len(z)), z])
        if slope is not None:
            far = _FAR_LOGIT + np.abs(z[~certain]).max(initial=0)  # where chances are 0 and 1
            self.offset, self.design = np.clip(z, -far, far), self.design[:, :1]
        hits = self.weight * self.outcome
        offset = self.offset[:, None]
        self.likelihood = LogisticLikelihood(self.design, hits, self.weight, offset=offset)

    @cached_property
    def events(self) -> float:
        """Events or non-events, whichever are fewer, by the effective size of weights.

        Those of groups are as many as would tell as much if they were independent.
        """
        if not len(self.weight):
            return 0.0
        rows = self.outcome > 0, self.outcome < 1
        if not self.groups.independent:
            return float(min(map(np.sum, rows)) / self.groups.design_effect(self.weight))
        if not (rows[0].any() and rows[1].any()):
            return 0.0
        return float(min(effective_weights(self.weight[of_one]).sum() for of_one in rows))

    @cached_property
    def why_no_slope(self) -> str:
        """Why no finite slope is the most likely; empty where one is.

        A share of both outcomes counts on both sides: its likelihood falls wherever b goes.
        """
        logit, beside = self.design[:, 1], " between 0 and 1" * bool(self.n_certain)
        if not len(logit):
            return "All predictions are 0 or 1, so they have no slope."
        if logit.min() == logit.max():
            return f"All predictions{beside} are equal, so they have no slope."
        below, above = logit[self.outcome < 1], logit[self.outcome > 0]
        ends = below.min(initial=np.inf), above.min(initial=np.inf)
        if below.max(initial=-np.inf) <= ends[1] or above.max(initial=-np.inf) <= ends[0]:
            return (
                f"A threshold on predictions{beside} separates the outcomes, so that no "
                "finite slope is the most likely. More samples are needed."
            )
        return ""

    @property
    def slope_note(self) -> str:
        """Why the slope of all predictions is undefined, or why there is none; else empty."""
        if self.n_against:
            many = "s" * (self.n_against > 1)
            return (
                f"undefined: {self.n_against:,} outcome{many} against predictions of exactly 0 or 1"
            )
        if self.events < FEWEST_EVENTS:
            return "fewer than five events or non-events: no slope"
        return self.why_no_slope.rstrip(".") if self.n_certain else ""

    def check_overlap(self) -> None:
        """Raise unless the predictions of the two outcomes overlap, without which b is infinite."""
        if self.why_no_slope:
            raise ValueError(self.why_no_slope)

    @staticmethod
    def finite(intercept: float) -> float:
        """The intercept at slope 1; raise where there is none."""
        if not np.isfinite(intercept):
            raise ValueError(
                "Predictions between 0 and 1 cannot make up for outcomes against those "
                "of exactly 0 or 1, so that no finite intercept is the most likely. Pass "
                "probabilities that are not rounded to 0 and 1."
            )
        return float(intercept)

    def log_likelihood(self, coefficients) -> float:
        """Log-likelihood of the coefficients."""
        return float(self.likelihood.at(coefficients)[0])

    def most_likely(self) -> np.ndarray:
        """The coefficients of the largest likelihood."""
        if self.design.shape[1] == 1:
            return np.array([self._most_likely_intercept()])
        return self.likelihood.most_likely(np.array([0.0, 1.0]))

    def _most_likely_intercept(self) -> float:
        """The score falls with a, so that its root is bracketed.

        Newton's method would not do: the likelihood is flat where p is 0 or 1.
        """
        free, weight = ~self.certain, self.weight
        excess = weight[self.certain] @ (self.outcome - (self.offset > 0))[self.certain]
        missing = weight[free] @ self.outcome[free] + excess
        if self.n_certain and not 0 < missing < weight[free].sum():  # which others cannot expect
            return np.inf if missing > 0 else -np.inf if missing < 0 or free.any() else np.nan
        if not free.any():
            return np.nan
        rate = missing / weight[free].sum()
        centre = log_odds(rate)
        if not np.isfinite(centre):
            reason = "leaves one of two outcomes no weight beside rounding."
            raise InputError("sample_weight", reason, "Lower the largest weight.")
        bracket = centre - self.offset.max() - 1, centre - self.offset.min() + 1
        # Not a closure: brentq's cycle of references would keep its arrays until a collection.
        arguments = self.offset, self.outcome, self.weight
        return brentq(_score, *bracket, args=arguments, xtol=1e-13, maxiter=1000)

    def fit(self) -> LogisticFit:
        """Maximum likelihood, with the Fisher information or, of groups, their sandwich."""
        coefficients = self.most_likely()
        if not np.isfinite(coefficients).all():
            return LogisticFit(coefficients, np.full((1, 1), np.nan), np.abs(coefficients[0]))
        value, _, information = self.likelihood.at(coefficients)
        if len(coefficients) == 1:
            with np.errstate(divide="ignore"):  # of certain predictions alone
                covariance = 1 / information
        else:
            covariance = np.linalg.pinv(information)
        if not self.groups.independent:
            covariance = self._sandwich(covariance, coefficients)
        return LogisticFit(coefficients, covariance, float(value))

    def _sandwich(self, covariance, coefficients) -> np.ndarray:
        """The covariance by the groups' scores.

        It is in no direction smaller than that of independent samples, and than that of outcomes
        which depend on each other as strongly as those of the groups do.
        """
        chance = expit(self.offset + self.design @ coefficients)
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
        best, errors = fit.coefficients, fit.standard_errors
        low: Any
        high: Any
        if not np.isfinite(errors).all():
            low, high = np.full((2, len(best)), [[-np.inf], [np.inf]])
        elif not self.groups.independent:
            half = self.groups.quantile((1 - confidence_level) / 2, self.weight) * errors
            low, high = best - half, best + half
        else:
            rows, z = np.eye(len(best)), np.full(len(best), np.sqrt(chi2.ppf(confidence_level, 1)))
            low, high = (  # one after the other, which halves the memory
                [self.likelihood.farthest(row[None], sign, z[:1], best)[0] for row in rows]
                for sign in (-1, 1)
            )
        return [ConfidenceInterval(*ends) for ends in np.column_stack([low, high]).tolist()]


def _score(intercept, offset, outcome, weight) -> float:
    """Derivative of the log-likelihood of offset + intercept by the intercept."""
    return weight @ (outcome - expit(offset + intercept))
