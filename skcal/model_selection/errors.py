"""The errors that people report, from corrections of samples by functions that have not seen them.

With residuals δ, corrections ĝ that were fitted on other samples, and g*(x) = E[δ | x]:

========= ====================== =================================================================
kind      error                  one-step terms, whose mean is never too high in expectation
========= ====================== =================================================================
"squared" E‖g*‖²                 2⟨δ, ĝ⟩ - ‖ĝ‖²
"rms"     its root
"l1"      E ½‖g*‖₁               ⟨δ, sign(ĝ)⟩ / 2; of single numbers E|g*|, and no division by 2
"l2"      E‖g*‖₂                 ⟨δ, ĝ⟩ / ‖ĝ‖₂
"log"     E KL(p + g* ‖ p)       log q_Y - log p_Y, where q is p + ĝ in the interior of the simplex
========= ====================== =================================================================

The terms follow from duality: an expected norm is the largest E⟨δ, s(x)⟩ over directions s(x) of
dual norm 1, an expected divergence the largest gain of log loss over predictions q(x). An error
that ĝ misses is missing in them. The *estimates* of "l1" and "l2" are the adaptive estimate of the
root mean square times mean ‖ĝ‖ / rms ‖ĝ‖: the size is that of
:mod:`skcal.model_selection.adaptive`, the ratio of the norms that of the corrections.

References
----------
A variational estimator for Lp calibration errors, arXiv:2602.24230.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from skcal.model_selection.adaptive import Spread, SquaredError
from skcal.model_selection.estimates import (
    OneStepEstimate,
    median_of_one_steps,
    median_of_repeats,
)
from skcal.notions import Notion, Problem, Problems
from skcal.pair_risk import weighted_mean


@dataclass(frozen=True, eq=False)
class ErrorEstimate:
    """An estimate of a calibration error of some kind.

    Attributes
    ----------
    kind : {"squared", "rms", "l1", "l2", "log"}
    notion : str
        The notion of calibration.
    estimate : float
        In probability units, squared ones or nats.
    standard_error : float
        Of "squared" and "rms" that of the adaptive estimate, else that of the one-step estimate.
    over, under : float or None
        The parts of "l1" of scalar notions where predictions are too high (overconfident) and too
        low; their sum is the estimate.
    one_step : OneStepEstimate or None
        Its value is never too high in expectation. None where no function estimates the residual.
    squared : OneStepEstimate or None
        The one-step estimate of the squared error, which must show something before a bound does.
    """

    kind: str
    notion: str
    estimate: float
    standard_error: float
    over: float | None = None
    under: float | None = None
    one_step: OneStepEstimate | None = field(default=None, repr=False)
    squared: OneStepEstimate | None = field(default=None, repr=False)

    def lower_confidence_bound(self, confidence_level=0.95) -> float:
        """One-sided lower confidence limit of the error.

        Parameters
        ----------
        confidence_level : float in (0, 1), default=0.95

        Returns
        -------
        bound : float
            In the units of the estimate. Except of "squared" it is above 0 only where that of the
            squared error is, since at calibration the other terms of different folds are
            correlated through ĝ; bounds of 0 or less say nothing.
        """
        if self.one_step is None or self.squared is None:
            _raise_no_residual()
        if np.isposinf(self.estimate):
            return np.inf
        bound = self.one_step.lower_confidence_bound(confidence_level)
        if self.kind == "squared":
            return bound
        if self.kind == "rms":
            return float(np.sqrt(max(bound, 0.0)))
        shown = self.squared.lower_confidence_bound(confidence_level) > 0
        return bound if shown else min(bound, 0.0)


def _raise_no_residual():
    raise ValueError(
        "There is no correction of the predictions: no candidate has `residual`. Add one that has, "
        "such as skcal.TwoStepKernelRidge()."
    )


def estimate_error(
    kind: str,
    notion: Notion,
    data: Problems,
    corrections: Sequence[np.ndarray],
    squared_error: SquaredError,
    squared: OneStepEstimate | None,
) -> ErrorEstimate:
    """Estimate an error by corrections ĝ that were fitted to other samples.

    Parameters
    ----------
    kind : {"squared", "rms", "l1", "l2", "log"}
    notion : Notion
    data : Problems
        Their samples, all of positive weight.
    corrections : sequence of ndarray of shape (n_rows, m), one a problem
    squared_error : SquaredError
        The adaptive estimate by the same corrections.
    squared : OneStepEstimate or None
        The one-step estimate by the same corrections; None if they are none.

    Returns
    -------
    estimate : ErrorEstimate
    """
    check_kind(kind)
    value, error = squared_error.value, squared_error.standard_error
    if kind == "squared":
        return ErrorEstimate(kind, notion, value, error, one_step=squared, squared=squared)
    root = float(np.sqrt(max(value, 0.0)))
    if kind == "rms":
        error = float(min(error / (2 * root), np.sqrt(error))) if root else float(np.sqrt(error))
        return ErrorEstimate(kind, notion, root, error, one_step=squared, squared=squared)
    if squared is None:
        _raise_no_residual()
    if kind == "log" and _is_infinite(data):
        return ErrorEstimate(kind, notion, np.inf, np.nan, one_step=squared, squared=squared)
    parts = list(zip(data.parts, corrections, strict=True))
    one_step, plug_in = _one_step([_GAINS[kind](*part, len(data.weight)) for part in parts], data)
    signs = {}
    if kind == "log":
        # The mean of what is too low and what is too high by the error of ĝ, to first order.
        doubt = max(0.0, 1 - 1 / squared_error.z**2) if squared_error.z > 0 else 0.0
        estimate = max(0.0, (one_step.value + plug_in) / 2) * doubt
    else:
        sizes = _sizes(kind, parts, data)
        estimate = root * sizes.sum()
        if kind == "l1" and notion.scalar:
            signs = {"over": float(root * sizes[0]), "under": float(root * sizes[1])}
            estimate = signs["over"] + signs["under"]
    return ErrorEstimate(
        kind,
        notion,
        float(estimate),
        one_step.standard_error,
        one_step=one_step,
        squared=squared,
        **signs,
    )


def check_kind(kind: str) -> None:
    """Raise a ValueError unless there is such a kind of error."""
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is unknown. Use one of {', '.join(map(repr, KINDS))}.")


def _is_infinite(data: Problems) -> bool:
    """Whether something happened that was given probability 0, with a warning."""
    for part in data.parts:
        p, happened = part.features, part.outcomes
        impossible = (happened == 1) & (p <= 0)
        if p.shape[1] == 1:
            impossible |= (happened == 0) & (p >= 1)
        if impossible.any():
            row = np.flatnonzero(impossible.any(axis=1))[0]
            sample = np.arange(len(data.weight))[part.rows][row]
            warnings.warn(
                f"The log error is infinite: what happened in tested sample {sample} has "
                "probability 0, so that the log loss of the model is infinite. Keep predictions "
                "away from 0 and 1, or use kind='l1'.",
                UserWarning,
                stacklevel=4,
            )
            return True
    return False


@dataclass(frozen=True, eq=False)
class _Gain:
    """One-step terms ⟨outcome, payoff⟩ + base of the samples of a problem.

    ``mean`` is their mean if the outcomes follow p + ĝ.
    """

    payoff: np.ndarray  # (n_rows, m)
    base: np.ndarray  # (n_rows,)
    mean: np.ndarray  # (n_rows,)
    correction: np.ndarray  # (n_rows, m)


def _dot(first, second):
    return np.einsum("ij,ij->i", first, second)


def _direction_gain(direction, part: Problem, correction) -> _Gain:
    return _Gain(
        direction, -_dot(part.features, direction), _dot(correction, direction), correction
    )


def _l1_gain(part: Problem, correction, n_samples) -> _Gain:
    return _direction_gain(np.sign(correction) * _half(correction), part, correction)


def _half(correction) -> float:
    """Total variation halves the sum over outcomes; of one number its complement is left out."""
    return 0.5 if correction.shape[1] > 1 else 1.0


def _l2_gain(part: Problem, correction, n_samples) -> _Gain:
    norm = np.linalg.norm(correction, axis=1, keepdims=True)
    direction = np.divide(correction, norm, out=np.zeros_like(correction), where=norm > 0)
    return _direction_gain(direction, part, correction)


def _log_gain(part: Problem, correction, n_samples) -> _Gain:
    """Gain of log loss of q ∝ max(p + ĝ, p / √n): no outcome becomes impossible by a correction."""
    p = part.features.astype(np.float64)
    scalar = p.shape[1] == 1
    if scalar:
        p, correction = np.hstack([p, 1 - p]), np.hstack([correction, -correction])
    q = np.maximum(p + correction, p / np.sqrt(n_samples))
    q /= q.sum(axis=1, keepdims=True)
    ratio = np.divide(q, p, out=np.ones_like(q), where=(p > 0) & (q > 0))
    gain = np.log(ratio)
    if not scalar:
        return _Gain(gain, np.zeros(len(p)), _dot(q, gain), correction)
    return _Gain(gain[:, :1] - gain[:, 1:], gain[:, 1], _dot(q, gain), correction[:, :1])


_GAINS: dict[str, Callable] = {"l1": _l1_gain, "l2": _l2_gain, "log": _log_gain}
KINDS = ("squared", "rms", *_GAINS)


def _one_step(gains: list[_Gain], data: Problems) -> tuple[OneStepEstimate, float]:
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


def _sizes(kind, parts, data: Problems) -> np.ndarray:
    """Mean ‖ĝ‖ / rms ‖ĝ‖: of entries below 0 and of others for "l1", else as one number.

    Where ĝ is 0 throughout, that of the mean residual takes its place.
    """
    share = data.weight / data.weight.sum()
    if not any(correction.any() for _, correction in parts):
        parts = [(part, _mean_residual(part)) for part, _ in parts]
    sizes, squares = np.zeros((2, len(share))), np.zeros(len(share))
    for part, correction in parts:
        squares[part.rows] += _dot(correction, correction)
        if kind == "l2":
            sizes[0, part.rows] += np.linalg.norm(correction, axis=1)
        else:
            for sign, size in zip((-1, 1), sizes, strict=True):
                positive = np.maximum(sign * correction, 0)
                size[part.rows] += positive.sum(axis=1) * _half(correction)
    rms = np.sqrt(share @ squares)
    return sizes @ share / rms if rms > 0 else np.array([0.0, 1.0])


def _mean_residual(part: Problem) -> np.ndarray:
    mean = part.weight @ part.residuals / max(part.weight.sum(), np.finfo(float).tiny)
    return np.tile(mean, (len(part.weight), 1))


def median_of_errors(estimates: list[ErrorEstimate]) -> ErrorEstimate:
    """Median over repeats; of the two signed parts, those of the sum of their medians' shares."""
    first = estimates[0]
    if len(estimates) == 1 or not np.isfinite([one.estimate for one in estimates]).all():
        return first
    value, error = median_of_repeats(
        [one.estimate for one in estimates], [one.standard_error for one in estimates]
    )
    signs = {}
    if first.over is not None:
        over = float(np.median([one.over for one in estimates]))
        under = float(np.median([one.under for one in estimates]))
        total = over + under
        scale = value / total if total > 0 else 0.0
        signs = {"over": over * scale, "under": value - over * scale}
    return ErrorEstimate(
        first.kind,
        first.notion,
        value,
        error,
        one_step=median_of_one_steps([one.one_step for one in estimates]),
        squared=median_of_one_steps([one.squared for one in estimates]),
        **signs,
    )
