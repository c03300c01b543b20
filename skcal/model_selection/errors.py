"""Errors from cross-validated corrections of the samples.

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
that ĝ misses is missing in them. The *estimates* of "l1" and "l2" are √V · ½(mean_k r_k + r) where
z > 1, else 0. V and z are those of :mod:`skcal.model_selection.adaptive` before V is shrunk, r is
mean ‖ĝ‖ / rms ‖ĝ‖, and r_k the same of the means of ĝ in the cells of each chosen candidate: where
the error is constant it is 1, while ĝ itself wiggles. So near z = 1 they may exceed the root mean
square, which is shrunk. *Signed*, sign(V) √|V| · ½(mean_k r_k + r), they rank good models.

References
----------
A variational estimator for Lp calibration errors, arXiv:2602.24230.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skcal._show import ShownRounded, number, percent, rounded
from skcal.model_selection.adaptive import SquaredError
from skcal.model_selection.estimates import (
    GAINS,
    OneStepEstimate,
    half,
    median_of_one_steps,
    median_of_repeats,
    one_step_gain,
    proba_of_outcomes,
)
from skcal.notions import Notion, Problem, Problems

_BOUND_LEVEL = 0.95
_PART = 0.2  # of the error: what a side needs to be said
_BOUND_TAIL = 0.05
_TINIEST = np.finfo(float).tiny
_NAMES = {
    "squared": "squared error",
    "rms": "root mean square error",
    "l1": "mean absolute error",
    "l2": "mean Euclidean error",
    "log": "log error",
}
_NO_RESIDUAL = (
    "There is no correction of the predictions: no candidate has `residual`. Add one that has, "
    "such as skcal.TwoStepKernelRidge()."
)


@dataclass(frozen=True, eq=False)
class ErrorEstimate(ShownRounded):
    """An estimate of a calibration error of some kind.

    Attributes
    ----------
    kind : {"squared", "rms", "l1", "l2", "log"}
    notion : Notion
        The notion of calibration.
    estimate : float
        The error in probability units, squared ones or nats.
    standard_error : float
        The error of the adaptive estimate for "squared" and "rms", else of the one-step estimate.
    over, under : float or None
        The parts of "l1" of scalar notions where predictions are too high (overconfident) and too
        low; their sum is the estimate.
    signed : float
        The estimate before estimates within the noise become 0. It may be negative, and it also
        ranks calibrated models.
    one_step : OneStepEstimate or None
        Its value is never too high in expectation. None where no function estimates the residual.
    squared : OneStepEstimate or None
        The one-step estimate of the squared error, which must show something before a bound does.
    reading : str
        On which side the predictions err, and where, if the lower bound shows an error. An estimate
        of a fitted search says so, otherwise it is empty.
    kinds : tuple of str
        All kinds.
    """

    kinds: ClassVar[tuple[str, ...]] = ("squared", "rms", *GAINS)

    kind: str
    notion: Notion
    estimate: float
    standard_error: float
    over: float | None = None
    under: float | None = None
    signed: float = np.nan
    one_step: OneStepEstimate | None = field(default=None, repr=False)
    squared: OneStepEstimate | None = field(default=None, repr=False)
    reading: str = field(default="", repr=False)

    def __str__(self):
        return self.sentence()

    @property
    def _bound(self) -> float | None:
        if self.one_step is None:
            return None
        known = math.isinf(self.estimate) or np.isfinite(self.one_step.standard_error)
        return self.lower_confidence_bound(_BOUND_LEVEL) if known else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings; None is what is not finite."""
        return {
            "kind": self.kind,
            "name": _NAMES[self.kind],
            "notion": str(self.notion),
            "estimate": _finite(self.estimate),
            "standard_error": _finite(self.standard_error),
            "lower_confidence_bound": _finite(self._bound),
            "confidence_level": _BOUND_LEVEL,
            "over": self.over,
            "under": self.under,
            "reading": self.reading,
        }

    def line(self, width: int = 0) -> str:
        """Return name, error, uncertainty and side in one line.

        Parameters
        ----------
        width : int, default=0
            What the name takes at least, so that lines stand below each other.
        """
        facts = self.to_dict()
        text, bound = facts["reading"], facts["lower_confidence_bound"]
        if facts["estimate"] is not None:
            text = number(facts["estimate"])
            if facts["standard_error"] is not None:
                text += f" ± {number(facts['standard_error'])} (s.e.)"
            if (bound or 0) > 0:
                text += f", at least {number(bound)} at {percent(_BOUND_LEVEL)} confidence"
            text += f"; {self.reading}" * bool(self.reading)
        return f"{facts['name'].ljust(width)} {text}"

    def sentence(self) -> str:
        """Return the estimate with its lower bound, in words."""
        text = f"{self.notion} {self.kind} error {rounded(self.estimate)}"
        if np.isfinite(self.standard_error):
            text += f" ± {rounded(self.standard_error)} (s.e.)"
        if self.one_step is not None and np.isfinite(self.one_step.standard_error):
            bound = self.lower_confidence_bound()
            text += f", at least {rounded(bound)} at 95 % confidence" if bound > 0 else ""
        if self.over is not None and self.under is not None:
            text += f"; too high by {rounded(self.over)}, too low by {rounded(self.under)}"
        return text

    def lower_confidence_bound(self, confidence_level=0.95) -> float:
        """One-sided lower confidence limit of the error.

        Parameters
        ----------
        confidence_level : float in (0, 1), default=0.95
            Share of samples, drawn anew, for which the bound holds.

        Returns
        -------
        bound : float
            The bound in the units of the estimate, which it never exceeds. It is above 0 only where
            its own one-step test rejects calibration at this level, and except for "squared" only
            where that of the squared error does too, since at calibration the other terms of
            different folds are correlated through ĝ; bounds of 0 or less say nothing.
        """
        if self.one_step is None or self.squared is None:
            raise ValueError(_NO_RESIDUAL)
        if np.isposinf(self.estimate):
            return np.inf
        bound = self.one_step.lower_confidence_bound(confidence_level)
        if self.kind == "rms":
            bound = np.sqrt(max(bound, 0.0))
        if self.squared.lower_confidence_bound(confidence_level) <= 0:
            bound = min(bound, 0.0)
        return float(min(bound, self.estimate))


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
        Problems, whose samples are all of positive weight.
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
    estimate_of = partial(ErrorEstimate, kind, notion, squared=squared)
    value, error = squared_error.value, squared_error.standard_error
    unshrunk = squared_error.unshrunk
    if kind == "squared":
        return estimate_of(value, error, signed=unshrunk, one_step=squared)
    signed = float(np.sign(unshrunk) * np.sqrt(abs(unshrunk)))
    if kind == "rms":
        root = float(np.sqrt(max(value, 0.0)))
        error = float(min(error / (2 * root), np.sqrt(error))) if root else float(np.sqrt(error))
        return estimate_of(root, error, signed=signed, one_step=squared)
    if squared is None:
        raise ValueError(_NO_RESIDUAL)
    if kind == "log" and _is_infinite(data):
        return estimate_of(np.inf, np.nan, signed=np.inf, one_step=squared)
    parts = list(zip(data.parts, corrections, strict=True))
    gains = [GAINS[kind](*part, len(data.weight)) for part in parts]
    one_step, corrected = one_step_gain(gains, data)
    if kind == "log":
        # The mean of what is too low and what is too high by the error of ĝ, to first order.
        signed = (one_step.value + corrected) / 2
        estimate = max(0.0, signed) * squared_error.doubt
        return estimate_of(estimate, one_step.standard_error, signed=signed, one_step=one_step)
    sizes = _sizes(kind, parts, squared_error.shapes)
    root = max(signed, 0.0) if squared_error.z > 1 else 0.0
    sides: dict[str, Any] = {}
    if kind == "l1" and notion.scalar:
        sides = {"over": float(root * sizes[0]), "under": float(root * sizes[1])}
    signed, estimate = float(signed * sizes.sum()), float(root * sizes.sum())
    error = one_step.standard_error
    return estimate_of(estimate, error, signed=signed, one_step=one_step, **sides)


def check_kind(kind: str) -> None:
    """Raise a ValueError unless there is such a kind of error."""
    if not isinstance(kind, str) or kind not in ErrorEstimate.kinds:
        raise ValueError(
            f"kind={kind!r} is unknown. Use one of {', '.join(map(repr, ErrorEstimate.kinds))}."
        )


def _is_infinite(data: Problems) -> bool:
    """Whether something happened that was given probability 0, with a warning."""
    for part in data.parts:
        p, happened = proba_of_outcomes(part), part.outcomes
        if happened.shape[1] == 1:
            happened = np.hstack([happened, 1 - happened])
        impossible = (happened > 0) & (p <= 0)
        if impossible.any():
            row = np.flatnonzero(impossible.any(axis=1))[0]
            sample = np.arange(len(data.weight))[part.rows][row]
            warnings.warn(
                f"The log error is infinite: what happened in tested sample {sample} has "
                "probability 0, so that the log loss of the model is infinite. Keep predictions "
                "away from 0 and 1, or use kind='l1'.",
                stacklevel=2,
            )
            return True
    return False


def _sizes(kind, parts, shapes) -> np.ndarray:
    """½(mean_k r_k + r): the parts of entries below 0 and of others for "l1", else 0 and all.

    Where ĝ is 0 throughout, the mean residual takes its place.
    """
    if not any(correction.any() for _, correction in parts):
        return _mean_to_rms(
            kind, [(np.array([part.share]), _mean_residual(part)) for part, _ in parts]
        )
    weights = [(part.share / max(part.weight.sum(), _TINIEST) * part.weight) for part, _ in parts]
    of_all = _mean_to_rms(kind, list(zip(weights, (g for _, g in parts), strict=True)))
    of_chosen = [of_all if shape is None else _mean_to_rms(kind, shape) for shape in shapes]
    # Where ĝ is 0 on average in every cell, those cells have no say.
    of_chosen = [ratio for ratio in of_chosen if ratio.any()] or [of_all]
    return (np.mean(of_chosen, axis=0) + of_all) / 2


def _mean_to_rms(kind, shape) -> np.ndarray:
    """Mean ‖v‖ / rms ‖v‖ in two parts, from the shares and the rows v of each problem."""
    sizes, square = np.zeros(2), 0.0
    for share, v in shape:
        square += share @ (v**2).sum(axis=1)
        if kind == "l2":
            sizes[1] += share @ np.linalg.norm(v, axis=1)
        else:
            sides = [share @ np.maximum(sign * v, 0).sum(axis=1) for sign in (-1, 1)]
            sizes += np.multiply(sides, half(v))
    return sizes / np.sqrt(square) if square > 0 else sizes


def _mean_residual(part: Problem) -> np.ndarray:
    return part.weight @ part.residuals[None] / max(part.weight.sum(), _TINIEST)


def median_of_errors(estimates: list[ErrorEstimate]) -> ErrorEstimate:
    """Median over repeats; of the two signed parts, those of the sum of their medians' shares."""
    first = estimates[0]
    if len(estimates) == 1 or not np.isfinite([each.estimate for each in estimates]).all():
        return first
    values, errors = zip(*((each.estimate, each.standard_error) for each in estimates), strict=True)
    value, error = median_of_repeats(values, errors)

    def median(name):
        return float(np.median([getattr(each, name) for each in estimates]))

    sides: dict[str, Any] = {}
    if first.over is not None:
        over, under = median("over"), median("under")
        over = over / (over + under) * value if over + under > 0 else 0.0
        sides = {"over": over, "under": value - over}
    return replace(
        first,
        estimate=value,
        standard_error=error,
        signed=median("signed"),
        one_step=median_of_one_steps([each.one_step for each in estimates]),
        squared=median_of_one_steps([each.squared for each in estimates]),
        **sides,
    )


def with_reading(error: ErrorEstimate, data: Problems, corrections) -> ErrorEstimate:
    """The error, which also says on which side the predictions err, and where ĝ says so."""
    return replace(error, reading=_sides_in_words(error, error._bound, data, corrections))


def _finite(value) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _sides_in_words(error: ErrorEstimate, bound: float | None, data, corrections) -> str:
    if math.isinf(error.estimate):
        return "infinite: something happened that had probability 0"
    if error.over is None or error.under is None or bound is None or bound <= 0:
        return ""
    largest = error.notion.of_largest
    words = ("overconfident", "underconfident") if largest else ("too high", "too low")
    sides = []
    for sign, word, size in zip((-1, 1), words, (error.over, error.under), strict=True):
        if size >= _PART * error.estimate:
            alone = len(data.parts) == 1
            where = _range_of_side(data, corrections[0][:, 0], sign) if alone else ""
            sides.append(f"{word} by {size:.3f}{where}")
    return ", ".join(sides)


def _range_of_side(data: Problems, correction, sign) -> str:
    """The predictions that hold nine tenths of a side's corrections, where that is not all."""
    x, weight = data.parts[0].features[:, 0], data.weight
    size = weight * np.maximum(sign * correction, 0)
    if not size.any():
        return ""
    low, high = _quantiles(x, size)
    first, last = _quantiles(x, weight)
    all_above = high >= last or f"{high:.2g}" == "1"
    if low <= first:
        return "" if all_above else f" below {high:.2g}"
    return f" above {low:.2g}" if all_above else f" from {low:.2g} to {high:.2g}"


def _quantiles(x, weight):
    order = np.argsort(x, kind="stable")
    mass = np.cumsum(weight[order]) / weight.sum()
    places = np.searchsorted(mass, [_BOUND_TAIL, 1 - _BOUND_TAIL])
    return x[order][np.minimum(places, len(x) - 1)]
