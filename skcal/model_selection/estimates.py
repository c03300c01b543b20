"""Estimates of squared calibration errors with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from skcal._validation import check_confidence_level


class ConfidenceInterval(NamedTuple):
    """An interval with fields ``low`` and ``high``, as scipy's results have."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class OneStepEstimate:
    """One-step estimate of a squared calibration error.

    Attributes
    ----------
    value : float
        Estimate; negative values are possible.
    standard_error : float
        Of the mean of the terms, given the fitted function.
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
