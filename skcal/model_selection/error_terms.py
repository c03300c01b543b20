"""One-step terms of errors other than the square, by duality: what a correction gains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from skcal.model_selection.adaptive import Spread
from skcal.model_selection.estimates import OneStepEstimate
from skcal.notions import Problem, Problems
from skcal.pair_risk import weighted_mean


@dataclass(frozen=True, eq=False)
class Gain:
    """One-step terms ⟨outcome, payoff⟩ + base of the samples of a problem.

    ``mean`` is their mean if the outcomes follow p + ĝ.
    """

    payoff: np.ndarray  # (n_rows, m)
    base: np.ndarray  # (n_rows,)
    mean: np.ndarray  # (n_rows,)
    correction: np.ndarray  # (n_rows, m)


def _dot(first, second):
    return np.einsum("ij,ij->i", first, second)


def _direction_gain(direction, part: Problem, correction) -> Gain:
    return Gain(direction, -_dot(part.features, direction), _dot(correction, direction), correction)


def _l1_gain(part: Problem, correction, n_samples) -> Gain:
    return _direction_gain(np.sign(correction) * half(correction), part, correction)


def half(correction) -> float:
    """Total variation halves the sum over outcomes; of one number its complement is left out."""
    return 0.5 if correction.shape[1] > 1 else 1.0


def _l2_gain(part: Problem, correction, n_samples) -> Gain:
    norm = np.linalg.norm(correction, axis=1, keepdims=True)
    direction = np.divide(correction, norm, out=np.zeros_like(correction), where=norm > 0)
    return _direction_gain(direction, part, correction)


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
    if not scalar:
        return Gain(gain, np.zeros(len(p)), _dot(q, gain), correction)
    return Gain(gain[:, :1] - gain[:, 1:], gain[:, 1], _dot(q, gain), correction[:, :1])


GAINS: dict[str, Callable] = {"l1": _l1_gain, "l2": _l2_gain, "log": _log_gain}


def one_step_gain(gains: list[Gain], data: Problems) -> tuple[OneStepEstimate, float]:
    """One-step estimate with the guarded standard error of ``estimates.one_step``; the plug-in.

    Their terms differ: here ⟨outcome, payoff⟩ + base, added over the problems of a sample.
    """
    n = len(data.weight)
    share, places = data.weight / data.weight.sum(), np.arange(n)
    terms, implied_means, plug_in = np.zeros(n), np.zeros(n), np.zeros(n)
    predicted, moved = Spread(n), Spread(n)
    for gain, part in zip(gains, data.parts, strict=True):
        terms[part.rows] += _dot(part.features + part.residuals, gain.payoff) + gain.base
        implied_means[part.rows] += _dot(part.features, gain.payoff) + gain.base
        plug_in[part.rows] += gain.mean
        predicted.add(places[part.rows], part.features, gain.payoff)
    second, third = share**2 @ predicted.variances, share**3 @ predicted.third_moments
    belief = 1 - min(0.25, 2 * third**2 / second**3) if second > 0 else 1.0
    for gain, part in zip(gains, data.parts, strict=True):
        proba = np.clip(part.features + belief * gain.correction, 0, 1)
        moved.add(places[part.rows], proba, gain.payoff)
    value, standard_error = weighted_mean(terms, data.weight)
    implied = np.minimum(predicted.variances, moved.variances)
    implied = implied + (implied_means - share @ implied_means) ** 2
    unbiased = 1 - share @ share
    if unbiased > 0:
        standard_error = max(standard_error, np.sqrt(share**2 @ implied / unbiased))
    return OneStepEstimate(value, float(standard_error), terms), float(share @ plug_in)
