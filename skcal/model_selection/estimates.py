"""One-step estimates: what a correction that was fitted to other samples gains, and how surely.

The terms of errors other than the squared one follow by duality, see
:mod:`skcal.model_selection.errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from skcal._groups import law_of_mean
from skcal._matrices import rowwise_dot
from skcal._show import ShownRounded
from skcal._sklearn_compat import validate_params
from skcal._validation import CONFIDENCE_LEVEL
from skcal.model_selection.adaptive import Spread
from skcal.notions import Problem, Problems
from skcal.pair_risk import one_step_terms, weighted_mean


class ConfidenceInterval(NamedTuple):
    """An interval with fields ``low`` and ``high``, as scipy's results have."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class OneStepEstimate(ShownRounded):
    """One-step estimate of a squared calibration error.

    Attributes
    ----------
    value : float
        Estimate; negative values are possible.
    standard_error : float
        The standard error of the mean of the terms, given the fitted function, and no less than
        what the predictions imply: see ``one_step_gain``.
    terms : ndarray of shape (n_samples,)
        The independent terms ψ_i, whose (weighted) mean is the value.
    degrees_of_freedom : float
        Degrees of freedom of the value in units of its standard error: those of Student's
        distribution for groups; infinity is the normal one.
    """

    value: float
    standard_error: float
    terms: np.ndarray = field(repr=False)
    degrees_of_freedom: float = field(default=np.inf, repr=False)

    def sentence(self) -> str:
        """Return the estimate in words."""
        return f"squared calibration error {self.value:.4g} ± {self.standard_error:.2g} (s.e.)"

    @property
    def _law(self):
        return law_of_mean(self.degrees_of_freedom)

    @property
    def pvalue(self) -> float:
        """One-sided p-value of a squared error of 0; 1 where the standard error is unknown.

        :meth:`lower_confidence_bound` is above 0 where it is below 1 - ``confidence_level``.
        """
        if not np.isfinite(self.standard_error):
            return 1.0
        if self.standard_error == 0:
            return 0.0 if self.value > 0 else 1.0
        return float(self._law.sf(self.value / self.standard_error))

    @validate_params(CONFIDENCE_LEVEL)
    def confidence_interval(self, confidence_level=0.95) -> ConfidenceInterval:
        """Normal interval around the value.

        It covers the squared error minus E‖ĝ - g*‖², so only its lower end bounds the calibration
        error.

        Parameters
        ----------
        confidence_level : float in (0, 1), default=0.95
            Share of samples, drawn anew, for which the limits hold.
        """
        self._require_error()
        half = self._law.ppf((1 + confidence_level) / 2) * self.standard_error
        return ConfidenceInterval(float(self.value - half), float(self.value + half))

    @validate_params(CONFIDENCE_LEVEL)
    def lower_confidence_bound(self, confidence_level=0.95) -> float:
        """One-sided lower confidence limit of the squared calibration error.

        Parameters
        ----------
        confidence_level : float in (0, 1), default=0.95
            Share of samples, drawn anew, for which the limits hold.
        """
        self._require_error()
        return float(self.value - self._law.ppf(confidence_level) * self.standard_error)

    def _require_error(self):
        if not np.isfinite(self.standard_error):
            raise ValueError(
                f"An interval needs at least 2 test samples, there are {len(self.terms)}. "
                "Pass a larger test split."
            )


@dataclass(frozen=True, eq=False)
class Gain:
    """One-step terms of the samples of a problem: what the outcomes pay, above a constant.

    Attributes
    ----------
    terms : ndarray of shape (n_rows,)
    expected : ndarray of shape (n_rows,)
        The mean of the terms if the outcomes follow the predictions p.
    corrected : ndarray of shape (n_rows,)
        The mean of the terms if the outcomes follow p + ĝ.
    payoff : ndarray of shape (n_rows, m)
        What each outcome pays.
    correction : ndarray of shape (n_rows, m)
        ĝ.
    """

    terms: np.ndarray
    expected: np.ndarray
    corrected: np.ndarray
    payoff: np.ndarray
    correction: np.ndarray


def _squared_gain(part: Problem, correction) -> Gain:
    """2⟨δ, ĝ⟩ - ‖ĝ‖²."""
    norms = rowwise_dot(correction, correction)
    terms = one_step_terms(correction, part.residuals)
    return Gain(terms, -norms, norms, 2 * correction, correction)


def _outcome_gain(part: Problem, payoff, base, corrected, correction) -> Gain:
    """⟨outcome, payoff⟩ + base."""
    terms = rowwise_dot(part.features + part.residuals, payoff) + base
    return Gain(terms, rowwise_dot(part.features, payoff) + base, corrected, payoff, correction)


def _direction_gain(part: Problem, direction, correction) -> Gain:
    """⟨δ, direction⟩."""
    base = -rowwise_dot(part.features, direction)
    return _outcome_gain(part, direction, base, rowwise_dot(correction, direction), correction)


def _l1_gain(part: Problem, correction, n_samples) -> Gain:
    return _direction_gain(part, np.sign(correction) * half(correction), correction)


def half(correction) -> float:
    """Total variation halves the sum over outcomes; of one number its complement is left out."""
    return 0.5 if correction.shape[1] > 1 else 1.0


def _l2_gain(part: Problem, correction, n_samples) -> Gain:
    norms = np.linalg.norm(correction, axis=1, keepdims=True)
    direction = np.divide(correction, norms, out=np.zeros_like(correction), where=norms > 0)
    return _direction_gain(part, direction, correction)


def proba_of_outcomes(part: Problem) -> np.ndarray:
    """The features, of a single one (p, 1 - p), which of logits is no difference."""
    p = part.features.astype(np.float64)
    if p.shape[1] > 1:
        return p
    return np.hstack([p, 1 - p if part.logits is None else expit(-part.logits)])


def corrected_proba(p, correction, n_samples) -> np.ndarray:
    """Rows q ∝ max(p + ĝ, p / √n): no outcome becomes impossible by a correction."""
    q = np.maximum(p + correction, p / np.sqrt(n_samples))
    return q / q.sum(axis=1, keepdims=True)


def _log_gain(part: Problem, correction, n_samples) -> Gain:
    """Gain of log loss of the corrected probabilities."""
    p = proba_of_outcomes(part)
    scalar = correction.shape[1] == 1
    if scalar:
        correction = np.hstack([correction, -correction])
    q = corrected_proba(p, correction, n_samples)
    ratio = np.divide(q, p, out=np.ones_like(q), where=(p > 0) & (q > 0))
    gain = np.log(ratio)
    corrected = rowwise_dot(q, gain)
    if not scalar:
        return _outcome_gain(part, gain, np.zeros(len(p)), corrected, correction)
    payoff, base = gain[:, :1] - gain[:, 1:], gain[:, 1]
    return _outcome_gain(part, payoff, base, corrected, correction[:, :1])


#: Kind of error → its one-step terms, by a problem, ĝ and the number of samples.
GAINS: dict[str, Callable[..., Gain]] = {"l1": _l1_gain, "l2": _l2_gain, "log": _log_gain}


def one_step(corrections: Sequence[np.ndarray], data: Problems) -> OneStepEstimate:
    """One-step estimate of the squared error by corrections ĝ that were fitted to other samples.

    Parameters
    ----------
    corrections : sequence of ndarray of shape (n_rows, m), one a problem
    data : Problems

    Returns
    -------
    estimate : OneStepEstimate
    """
    pairs = zip(data.parts, corrections, strict=True)
    return one_step_gain([_squared_gain(*pair) for pair in pairs], data)[0]


def one_step_gain(gains: Sequence[Gain], data: Problems) -> tuple[OneStepEstimate, float]:
    """One-step estimate by the terms of each problem, and their mean if the outcomes follow p + ĝ.

    Parameters
    ----------
    gains : sequence of Gain, one a problem
    data : Problems

    Returns
    -------
    estimate : OneStepEstimate
    corrected : float

    Notes
    -----
    The terms of rare events look alike until an event occurs, so that their variance v is too small
    by chance, and a bound by it too high. Given ĝ it is known what it would be if the outcomes
    followed p, or p + λĝ; v₀ takes the smaller of the two for each sample, and the standard error
    is √(max(v, v₀) / n). λ = 1 - min(¼, 2γ²), with γ the skewness of the mean payoff if the
    outcomes followed p: the fewer events carry the terms, the less is ĝ believed.
    """
    n = len(data.weight)
    share, places = data.weight / data.weight.sum(), np.arange(n)
    terms, expected, corrected = np.zeros(n), np.zeros(n), np.zeros(n)
    predicted, moved = Spread(n), Spread(n)
    for gain, part in zip(gains, data.parts, strict=True):
        terms[part.rows] += gain.terms
        expected[part.rows] += gain.expected
        corrected[part.rows] += gain.corrected
        predicted.add(places[part.rows], part.features, gain.payoff)
    second, third = share**2 @ predicted.variances, share**3 @ predicted.third_moments
    belief = 1 - min(0.25, 2 * third**2 / second**3) if second > 0 else 1.0
    for gain, part in zip(gains, data.parts, strict=True):
        proba = np.clip(part.features + belief * gain.correction, 0, 1)
        moved.add(places[part.rows], proba, gain.payoff)
    value, standard_error = weighted_mean(terms, data.weight)
    implied = np.minimum(predicted.variances, moved.variances)
    unbiased = 1 - share @ share
    if unbiased > 0:
        total = implied + (expected - share @ expected) ** 2
        standard_error = max(standard_error, np.sqrt(share**2 @ total / unbiased))
    variance = data.groups.larger_variance(standard_error**2, share * (terms - value))
    if not data.groups.independent:
        law = data.dependent.variance_of_terms(share * np.sqrt(implied))
        between = data.groups.variance_of_sum(share * (expected - share @ expected))
        variance = max(variance, law + float(between))
    freedom = data.groups.degrees_of_freedom(data.weight)
    estimate = OneStepEstimate(value, float(np.sqrt(variance)), terms, freedom)
    return estimate, float(share @ corrected)


def median_of_repeats(values: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """Median over repeated shuffles, its variance the median of s.e.² + (deviation)².

    So an estimate does not hang on one shuffle (Chernozhukov et al., Double/debiased machine
    learning for treatment and structural parameters, The Econometrics Journal 2018, Def. 3.3).
    """
    middle = np.median(values)
    variance = np.median(np.square(errors) + (np.asarray(values) - middle) ** 2)
    return float(middle), float(np.sqrt(variance))


def median_of_one_steps(repeats: list[OneStepEstimate | None]) -> OneStepEstimate | None:
    """Median over repeats, with the terms of the repeat closest to it."""
    estimates = [estimate for estimate in repeats if estimate is not None]
    if len(estimates) < len(repeats):
        return None
    if len(estimates) == 1:
        return estimates[0]
    values = [estimate.value for estimate in estimates]
    middle, error = median_of_repeats(values, [one.standard_error for one in estimates])
    closest = estimates[int(np.argmin(np.abs(np.array(values) - middle)))]
    return OneStepEstimate(middle, error, closest.terms, closest.degrees_of_freedom)
