"""Estimates of squared calibration errors with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from skcal._show import ShownRounded
from skcal._validation import check_confidence_level
from skcal.model_selection.adaptive import Spread
from skcal.notions import Problems
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
        what the predictions imply: see ``one_step``.
    terms : ndarray of shape (n_samples,)
        The independent terms ψ_i, whose (weighted) mean is the value.
    """

    value: float
    standard_error: float
    terms: np.ndarray = field(repr=False)

    def confidence_interval(self, confidence_level=0.95) -> ConfidenceInterval:
        """Normal interval around the value.

        It covers the squared error minus E‖ĝ - g*‖², so only its lower end bounds the calibration
        error.
        """
        self._check_level(confidence_level)
        half = norm.ppf((1 + confidence_level) / 2) * self.standard_error
        return ConfidenceInterval(float(self.value - half), float(self.value + half))

    def lower_confidence_bound(self, confidence_level=0.95) -> float:
        """One-sided lower confidence limit of the squared calibration error."""
        self._check_level(confidence_level)
        return float(self.value - norm.ppf(confidence_level) * self.standard_error)

    def _check_level(self, confidence_level):
        check_confidence_level(confidence_level)
        if not np.isfinite(self.standard_error):
            raise ValueError(
                f"An interval needs at least 2 test samples, there are {len(self.terms)}. "
                "Pass a larger test split."
            )


def one_step(corrections: Sequence[np.ndarray], data: Problems) -> OneStepEstimate:
    """One-step estimate by corrections ĝ that were fitted to other samples.

    Parameters
    ----------
    corrections : sequence of ndarray of shape (n_rows, m), one a problem
    data : Problems

    Returns
    -------
    estimate : OneStepEstimate

    Notes
    -----
    The terms ψ = 2⟨δ, ĝ⟩ - ‖ĝ‖² of rare events look alike until an event occurs, so that their
    variance v is too small by chance, and a bound by it too high. Given ĝ it is known what it would
    be if the outcomes followed p, or p + λĝ; v₀ takes the smaller of the two for each sample, and
    the standard error is √(max(v, v₀) / n). λ = 1 - min(¼, 2γ²), with γ the skewness of mean ⟨e_Y,
    ĝ⟩ if the outcomes followed p: the fewer events carry the terms, the less is ĝ believed.
    """
    n = len(data.weight)
    share = data.weight / data.weight.sum()
    terms, paid, places = np.zeros(n), np.zeros(n), np.arange(n)
    predicted = Spread(n)
    for correction, part in zip(corrections, data.parts, strict=True):
        terms[part.rows] += one_step_terms(correction, part.residuals)
        paid[part.rows] += np.einsum("ij,ij->i", correction, correction)
        predicted.add(places[part.rows], part.features, correction)
    second, third = share**2 @ predicted.variances, share**3 @ predicted.third_moments
    belief = 1 - min(0.25, 2 * third**2 / second**3) if second > 0 else 1.0
    moved = Spread(n)
    for correction, part in zip(corrections, data.parts, strict=True):
        proba = np.clip(part.features + belief * correction, 0, 1)
        moved.add(places[part.rows], proba, correction)
    value, standard_error = weighted_mean(terms, data.weight)
    implied = 4 * np.minimum(predicted.variances, moved.variances) + (paid - share @ paid) ** 2
    unbiased = 1 - share @ share
    if unbiased > 0:
        standard_error = max(standard_error, np.sqrt(share**2 @ implied / unbiased))
    return OneStepEstimate(value, float(standard_error), terms)


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
    return OneStepEstimate(middle, error, closest.terms)
