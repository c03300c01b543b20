"""What was known after earlier batches: the course, periods, and the time of a change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skcal.monitoring.bets import PRECISION
from skcal.monitoring.evidence import N_SUMS, as_e_value, estimate_from_sums

MOST_ROWS = 256
N_MOMENTS = 5
_FIRST = ("n_samples", "log_e_value", "log_detector")
_RECENT = 25.0  # variance of the events of the recent period: O/E of rare events is known to 20 %
_Z = 1.96


class Period(NamedTuple):
    """Observed and predicted events of consecutive samples.

    An event is the positive class or, of several classes, that the predicted class is right.

    Attributes
    ----------
    first_sample : int
        The first sample of the period, counted from 1.
    n_samples : int
    observed, predicted : float
        Events, and the sum of their predicted probabilities.
    ratio : float or None
        Observed / predicted, O/E; None where none were predicted.
    chance_low, chance_high : float or None
        95 % of such ratios of a calibrated model lie between these.
    """

    first_sample: int
    n_samples: int
    observed: float
    predicted: float
    ratio: float | None
    chance_low: float | None
    chance_high: float | None


class History:
    """Rows of sums over all earlier samples, after some of the batches; the last is always there.

    Of the rows those are dropped that lie densest for their age: after T samples rows of age a lie
    about √(a T) / 128 samples apart, so that the last batches are all there.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, 3 + N_SUMS + N_MOMENTS)
        Samples, logarithms of e-value and e-detector, sums of the estimates, and moments.
    n_batches : int
    """

    def __init__(self) -> None:
        self.rows = np.empty((0, len(_FIRST) + N_SUMS + N_MOMENTS))
        self.n_batches = 0

    def add(self, *values: float, sums: np.ndarray, moments: np.ndarray) -> None:
        """Add a row."""
        self.rows = np.vstack([self.rows, np.concatenate([values, sums, moments])])
        self.n_batches += 1
        if len(self.rows) > MOST_ROWS:
            n = self.rows[:, 0]
            gaps = (n[2:] - n[:-2]) / np.sqrt(n[-1] - n[:-2])
            self.rows = np.delete(self.rows, 1 + np.argmin(gaps), axis=0)

    def columns(self, alpha: float) -> dict[str, np.ndarray]:
        """Return columns: evidence, bias and error with their limits, bias since the last row."""
        table = dict(zip(_FIRST, self.rows.T, strict=False))
        sums = self.rows[:, len(_FIRST) : -N_MOMENTS]
        count, bias = np.diff(sums[:, :2], axis=0, prepend=0.0).T
        with np.errstate(divide="ignore", invalid="ignore"):
            recent = bias / count
        limits = estimate_from_sums(sums, alpha)._asdict()
        unknown = np.where(sums[:, 0] > 0, 0.0, np.nan)  # of a notion without a common bias
        return {
            "n_samples": table["n_samples"].astype(np.int64),
            "e_value": as_e_value(table["log_e_value"]),
            "log_e_value": table["log_e_value"],
            "detector": as_e_value(table["log_detector"]),
            "recent_bias": recent,
            **{name: value + unknown for name, value in limits.items()},
        }

    # Periods

    def since(self, row: int) -> Period:
        """Return what happened after a row; -1 is before all samples."""
        n, residual, predicted, *_, variance = self._later()[row + 1]
        ratios: tuple = (None, None, None)
        if predicted > 0:
            margin = _Z * np.sqrt(variance) / predicted
            ratio, *chance = (residual + predicted) / predicted, max(0.0, 1 - margin), 1 + margin
            ratios = float(ratio), *map(float, chance)
        first = 1 + int(self.rows[-1, 0] - n)
        counts = (round(float(value), 6) for value in (residual + predicted, predicted))
        return Period(first, int(n), *counts, *ratios)

    def recent_row(self) -> int:
        """Return after which row the last samples lie whose events have a variance of 25 or more.

        They are at least the last batch.
        """
        enough = np.flatnonzero(self._later()[:, -1] >= _RECENT)
        return int(enough[-1]) - 1 if len(enough) else -1

    def change_row(self) -> int:
        """Return after which row a drift of shift and slope until now is the most likely.

        The likelihood is that of one Newton step, as of a learned tilt.
        """
        _, residual, _, slope, of_slope, shared, of_mean = self._later().T
        information = np.stack([of_slope, shared, shared, of_mean], axis=1).reshape(-1, 2, 2)
        score = np.stack([slope, residual], axis=1)[..., None]
        gains = (score * np.linalg.solve(information + PRECISION, score)).sum(axis=(1, 2))
        return int(np.argmax(gains)) - 1

    def leanings(self, row: int) -> tuple[float, float]:
        """Standardised deviations after a row of the mean, and of the slope beside it.

        Below 0 events are fewer than predicted, and predictions too extreme.
        """
        _, mean, _, slope, of_slope, shared, of_mean = self._later()[row + 1].tolist()
        if of_mean <= 0:
            return 0.0, 0.0
        slope, of_slope = slope - shared / of_mean * mean, of_slope - shared**2 / of_mean
        return mean / np.sqrt(of_mean), slope / np.sqrt(of_slope) if of_slope > 0 else 0.0

    def _later(self) -> np.ndarray:
        """Samples, Σ δ and moments after no row and after each but the last, one row each."""
        ends = self.rows[:, [0, len(_FIRST) + 1, *range(-N_MOMENTS, 0)]]
        return ends[-1] - np.vstack([np.zeros(ends.shape[1]), ends[:-1]])
