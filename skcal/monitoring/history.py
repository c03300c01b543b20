"""The history of a monitor: its course, periods, and the time of a change."""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

import numpy as np

from skcal.monitoring.bets import PRECISION
from skcal.monitoring.evidence import N_SUMS, as_e_value, estimate_from_sums

MOST_ROWS = 256
N_MOMENTS = 5
_FIRST_COLUMNS = ("n_samples", "log_e_value", "log_detector")
RECENT = 25.0  # variance of the events of the recent period: O/E of rare events is known to 20 %
_Z = 1.96
_CLEAR_GAIN = 10.0  # twice the log-likelihood by which another start fits clearly better
_CHANGED = 16.0  # the same, for a change at any one of all times since


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


def are_said(leanings: np.ndarray) -> np.ndarray:
    """Which of mean and slope are said to be off: one is not beside another twice as large.

    A shift that is not small has a slope of the second order.
    """
    sizes = np.abs(leanings)
    return sizes >= sizes.max() / 2


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
        self.rows = np.empty((0, len(_FIRST_COLUMNS) + N_SUMS + N_MOMENTS))
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
        table = dict(zip(_FIRST_COLUMNS, self.rows.T, strict=False))
        sums = self.rows[:, len(_FIRST_COLUMNS) : -N_MOMENTS]
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
        ends = self.ends()
        n, residual, predicted, *_, variance = ends[end] - ends[start]
        ratios: tuple = (None, None, None)
        if predicted > 0:
            margin = _Z * np.sqrt(variance) / predicted
            ratio, *chance = (residual + predicted) / predicted, max(0.0, 1 - margin), 1 + margin
            ratios = float(ratio), *map(float, chance)
        places = int(ends[start, 0]) + 1, int(ends[end, 0]), int(n)
        counts = (round(float(value), 6) for value in (residual + predicted, predicted))
        return Period(*places, *counts, *ratios)

    def surplus(self, start: int, end: int = -1) -> tuple[float, float]:
        """Return observed minus predicted events per unit of weight between two rows.

        The second number is the margin about 0 that holds 95 % of those of a calibrated model.
        """
        weight, ends = np.append(0.0, self.rows[:, len(_FIRST_COLUMNS)]), self.ends()
        _, residual, *_, variance = (ends[end] - ends[start]) / (weight[end] - weight[start])
        margin = _Z * np.sqrt(variance / (weight[end] - weight[start]))
        return float(residual), float(margin)

    def recent_row(self) -> int:
        """Return after which row the last samples lie whose events have a variance of 25 or more.

        They are at least the last batch.
        """
        ends = self.ends()
        enough = np.flatnonzero(ends[-1, -1] - ends[:-1, -1] >= RECENT)
        return int(enough[-1]) if len(enough) else 0

    def drift_rows(self, alarm: int, after: int = 0) -> list[int]:
        """Return the rows after which a drift began and ended, and of each later change.

        The drift is that of the alarm at so many samples, and begins ``after`` so many. It began
        where that was plausible at the alarm. Between two of the rows log-odds have one shift and
        one slope; the likelihood is that of a Newton step, as of a learned tilt. Of all such rows
        those are most likely, if a change has to gain as much as chance rarely does. The last row
        is that of now. A drift that only grows has not ended.
        """
        n = self.ends()[:, 0]
        last = len(n) - 1
        at = int(np.clip(np.searchsorted(n, alarm), 1, last))
        starts = np.flatnonzero(n[:at] >= min(after, n[at - 1]))
        of_alarm = self._gains(starts, at)
        starts = starts[of_alarm >= of_alarm.max() - _CLEAR_GAIN]
        # The best value of all after each row, a change there included, and the next change.
        ends = np.arange(at, last + 1)
        first, end = np.minimum(ends[:, None], ends), np.maximum(ends[:, None], ends)
        values = self._values(first, end) - _CHANGED / 2 * self._noise(first, end)
        best, following = np.zeros(len(ends)), np.zeros(len(ends), dtype=int)
        for k in range(len(ends) - 2, -1, -1):
            total = values[k, k + 1 :] + best[k + 1 :]
            best[k], following[k] = total.max(), k + 1 + np.argmax(total)
        total = self._values(starts[:, None], ends) + best
        start, place = map(int, np.unravel_index(np.argmax(total), total.shape))
        rows = [int(starts[start]), int(ends[place])]
        while rows[-1] < last:
            place = following[place]
            rows.append(int(ends[place]))
        for k in range(len(rows) - 2, 0, -1):
            if self._lasts(*rows[k - 1 : k + 2]):
                del rows[k]
        grown = (self._grows(*rows[k : k + 3]) for k in range(len(rows) - 2))
        return [rows[0], *rows[1 + sum(takewhile(bool, grown)) :]]

    def _values(self, first, ends: np.ndarray) -> np.ndarray:
        """The gains between rows, less half of what a change costs at an end before now."""
        cost = np.where(ends < len(self.rows), _CHANGED / 2, 0.0)
        return self._gains(first, ends) - cost * self._noise(first, ends)

    def _noise(self, first, last) -> np.ndarray:
        """The variance of events between rows by that of their predictions, at least 1."""
        squares = np.append(0.0, self.rows[:, len(_FIRST_COLUMNS) + 2])
        variance = self.ends()[:, -1]
        ratio = (squares[last] - squares[first] + 1) / (variance[last] - variance[first] + 1)
        return np.maximum(ratio, 1.0)

    def variance_since(self, start: int) -> float:
        """Return the variance of the events after a row."""
        return float(self.ends()[-1, -1] - self.ends()[start, -1])

    def row_before(self, sample: int) -> int:
        """Return the last row before a sample."""
        return int(np.searchsorted(self.rows[:, 0], sample - 1, side="right"))

    def first_after(self, weight: float) -> int:
        """Return the first sample, or nearly so, after samples whose weights have this sum."""
        sums = np.append(0.0, self.rows[:, len(_FIRST_COLUMNS)])
        row = int(np.searchsorted(sums, weight * (1 + 1e-9), side="right")) - 1
        return int(self.ends()[row, 0]) + 1

    def _gains(self, first, last) -> np.ndarray:
        """Twice the log-likelihood that a shift and a slope gain between rows; 0 of no samples."""
        ends = self.ends()
        _, residual, _, slope, of_slope, shared, of_mean = np.moveaxis(
            ends[last] - ends[first], -1, 0
        )
        of_slope, of_mean = of_slope + PRECISION[0, 0], of_mean + PRECISION[1, 1]
        gains = of_mean * slope**2 - 2 * shared * slope * residual + of_slope * residual**2
        return gains / (of_slope * of_mean - shared**2)

    def _lasts(self, start: int, change: int, end: int) -> bool:
        """Whether predictions are off in the same directions since a change, by about as much.

        Where slopes are off, extreme predictions vary more than all do: such a change has to gain
        twice as much.
        """
        before, since = (
            np.array(self.leanings(*rows)) for rows in ((start, change), (change, end))
        )
        said = are_said(before)
        same = (are_said(since) == said).all() and (before * since > 0)[said].all()
        gain = self._gains(start, change) + self._gains(change, end) - self._gains(start, end)
        return bool(same and gain < 2 * _CHANGED * self._noise(start, end))

    def _grows(self, start: int, change: int, end: int) -> bool:
        """Whether predictions are off in the same directions since a change, and no less."""
        before, since = (
            np.array(self.leanings(*rows)) / np.sqrt(np.diff(self.ends()[list(rows), -1]))
            for rows in ((start, change), (change, end))
        )
        said = are_said(before)
        no_less = since * np.sign(before) >= np.abs(before)
        return bool((are_said(since) == said).all() and no_less[said].all())

    def leanings(self, start: int, end: int = -1) -> tuple[float, float]:
        """Standardised deviations between two rows of the mean, and of the slope beside it.

        Below 0 events are fewer than predicted, and predictions too extreme.
        """
        ends = self.ends()
        _, mean, _, slope, of_slope, shared, of_mean = (ends[end] - ends[start]).tolist()
        if of_mean <= 0:
            return 0.0, 0.0
        slope, of_slope = slope - shared / of_mean * mean, of_slope - shared**2 / of_mean
        return mean / np.sqrt(of_mean), slope / np.sqrt(of_slope) if of_slope > 0 else 0.0

    def ends(self) -> np.ndarray:
        """Samples, Σ δ and moments before all samples and after each row."""
        ends = self.rows[:, [0, len(_FIRST_COLUMNS) + 1, *range(-N_MOMENTS, 0)]]
        return np.vstack([np.zeros(ends.shape[1]), ends])
