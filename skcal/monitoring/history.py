"""The history of a monitor: its course, periods, and the time of a change."""

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
_ENDED = 10.0  # twice the log-likelihood by which a drift that ended fits better than one until now


class Period(NamedTuple):
    """Observed and predicted events of consecutive samples.

    An event is the positive class or, of several classes, that the predicted class is right.

    Attributes
    ----------
    first_sample : int
        The first sample of the period, counted from 1.
    last_sample : int
    n_samples : int
    observed, predicted : float
        Events, and the sum of their predicted probabilities.
    ratio : float or None
        Observed / predicted, O/E; None where none were predicted.
    chance_low, chance_high : float or None
        95 % of such ratios of a calibrated model lie between these.
    """

    first_sample: int
    last_sample: int
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

    def between(self, start: int, end: int = -1) -> Period:
        """Return what happened after one row until another; 0 is before all samples."""
        ends = self._ends()
        n, residual, predicted, *_, variance = ends[end] - ends[start]
        ratios: tuple = (None, None, None)
        if predicted > 0:
            margin = _Z * np.sqrt(variance) / predicted
            ratio, *chance = (residual + predicted) / predicted, max(0.0, 1 - margin), 1 + margin
            ratios = float(ratio), *map(float, chance)
        places = int(ends[start, 0]) + 1, int(ends[end, 0]), int(n)
        counts = (round(float(value), 6) for value in (residual + predicted, predicted))
        return Period(*places, *counts, *ratios)

    def recent_row(self) -> int:
        """Return after which row the last samples lie whose events have a variance of 25 or more.

        They are at least the last batch.
        """
        ends = self._ends()
        enough = np.flatnonzero(ends[-1, -1] - ends[:-1, -1] >= _RECENT)
        return int(enough[-1]) if len(enough) else 0

    def drift_rows(self, after: int = 0) -> tuple[int, int]:
        """Return after which row and until which one a drift of shift and slope is most likely.

        It begins after so many samples.
        The likelihood is that of one Newton step, as of a learned tilt. The end is the last row
        unless a drift that ended fits clearly better.
        """
        ends = self._ends()
        first, last = np.triu_indices(len(ends), 1)
        late = ends[first, 0] >= min(after, ends[-2, 0])
        first, last = first[late], last[late]
        _, residual, _, slope, of_slope, shared, of_mean = (ends[last] - ends[first]).T
        of_slope, of_mean = of_slope + PRECISION[0, 0], of_mean + PRECISION[1, 1]
        gains = of_mean * slope**2 - 2 * shared * slope * residual + of_slope * residual**2
        gains /= of_slope * of_mean - shared**2
        until_now = np.where(last == len(ends) - 1, gains, -np.inf)
        if (best := gains).max() < until_now.max() + _ENDED:
            best = until_now
        k = np.argmax(best)
        return int(first[k]), int(last[k])

    def leanings(self, start: int, end: int = -1) -> tuple[float, float]:
        """Standardised deviations between two rows of the mean, and of the slope beside it.

        Below 0 events are fewer than predicted, and predictions too extreme.
        """
        ends = self._ends()
        _, mean, _, slope, of_slope, shared, of_mean = (ends[end] - ends[start]).tolist()
        if of_mean <= 0:
            return 0.0, 0.0
        slope, of_slope = slope - shared / of_mean * mean, of_slope - shared**2 / of_mean
        return mean / np.sqrt(of_mean), slope / np.sqrt(of_slope) if of_slope > 0 else 0.0

    def _ends(self) -> np.ndarray:
        """Samples, Σ δ and moments before all samples and after each row."""
        ends = self.rows[:, [0, len(_FIRST) + 1, *range(-N_MOMENTS, 0)]]
        return np.vstack([np.zeros(ends.shape[1]), ends])
