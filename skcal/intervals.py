"""Named intervals."""

from __future__ import annotations

from typing import NamedTuple

from scipy.stats import norm


class ConfidenceInterval(NamedTuple):
    """An interval with fields ``low`` and ``high``, as scipy's results have."""

    low: float
    high: float

    @classmethod
    def normal(cls, value: float, standard_error: float, confidence_level: float):
        """Symmetric normal interval."""
        if not 0 < confidence_level < 1:
            raise ValueError(f"confidence_level={confidence_level!r} must be between 0 and 1.")
        half = norm.ppf((1 + confidence_level) / 2) * standard_error
        return cls(float(value - half), float(value + half))
