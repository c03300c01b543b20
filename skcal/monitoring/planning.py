"""How soon a monitor finds a drift: what shifts of the log-odds win on the way to the alarm.

Predictions p of the target and a drift b of their log-odds give the mean and the variance of the
events. On the path Y_n = n q̄ + z √(n v), z a normal quantile, the wealth of every fixed shift from
every later start is known, and so is when their mixture reaches the alarm. A learned shift is
b̂ = S / (I + 4), from sums S of the residuals and I of the variances that forget; it wins about
d b̂ - V (b̂² + Var b̂) / 2 a sample, d being the mean residual and V the variance of one, and
finds drifts smaller than the fixed ones. Other tilts, the wealth won before the drift, and bets on
the bias of all samples are left out, so that a monitor is rather faster than planned.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm

from skcal.monitoring.bets import MEMORIES, PRECISION, SHIFTS, LearnedTilt, Shifts
from skcal.monitoring.evidence import SHARE_OF_BETS, Evidence, not_started

_MOST_BATCHES = 20_000
_MOST_DRIFT = 6.0  # of log-odds
_N_SHIFTS = 2**13  # up to it
_DRIFT_STARTS = 20  # in which a drift may begin
_END = 1e-12
_POINTS = 200


@dataclass(frozen=True)
class MonitorPlan:
    """How soon a monitor finds a drift.

    Attributes
    ----------
    ratio : float
        Observed / predicted events under the drift, O/E.
    batch_size : int
    n_before : int
        Calibrated samples before the drift.
    n_batches : int or None
        Batches until the alarm in half of the cases; None if 20,000 do not suffice.
    n_batches_90 : int or None
        Batches until the alarm in nine of ten cases.
    """

    ratio: float
    batch_size: int
    n_before: int
    n_batches: int | None
    n_batches_90: int | None

    def __str__(self):
        drift = f"If O/E is {self.ratio:g} from the first sample on"
        if self.n_before:
            before = f"{self.n_before:,} calibrated samples come first"
            drift = f"If {before} and O/E is {self.ratio:g} from then on"
        if self.n_batches is None:
            return f"{drift}, no alarm comes in {_MOST_BATCHES:,} batches of {self.batch_size:,}."
        text = (
            f"{drift}, the alarm comes after about {_batches(self.n_batches)} of "
            f"{self.batch_size:,} ({self.n_batches * self.batch_size:,} samples)"
        )
        if self.n_batches_90 is None:
            return f"{text}."
        return f"{text}; in 9 of 10 cases within {_batches(self.n_batches_90)}."


def _batches(n: int) -> str:
    return "1 batch" if n == 1 else f"{n:,} batches"


@dataclass(frozen=True, eq=False)
class Outlook:
    """The gain of bets on shifts if the log-odds of the target drift.

    Attributes
    ----------
    proba, share : ndarray of shape (n_points,)
        Predicted probabilities of the target and how frequent each is.
    variance : float
        Of a sample, in which the wealth for later starts is counted.
    log_prior : ndarray of shape (n_shifts + n_memories,)
        Shares of the wealth, those of the e-value and of the problem included.
    alpha : float
    run_length : float or None
    """

    proba: np.ndarray
    share: np.ndarray
    variance: float
    log_prior: np.ndarray
    alpha: float
    run_length: float | None

    @property
    def mean(self) -> float:
        """The mean prediction."""
        return float(self.share @ self.proba)

    def shift_of(self, ratio: float) -> float:
        """Return the shift of the log-odds at which O/E is ``ratio``."""
        ends = [self.ratio_of(side) for side in (-_MOST_DRIFT, _MOST_DRIFT)]
        if not ends[0] < ratio < ends[1]:
            raise ValueError(
                f"ratio is {ratio:g}, and predictions with a mean of {self.mean:.3g} allow O/E "
                f"from {ends[0]:.3g} to {ends[1]:.3g}. Pass one between them."
            )
        return brentq(lambda b: self.ratio_of(b) - ratio, -_MOST_DRIFT, _MOST_DRIFT)

    def ratio_of(self, shift: float) -> float:
        """O/E after a shift of the log-odds."""
        return float(self.share @ self._drifted(shift)) / self.mean

    def _drifted(self, shift: float) -> np.ndarray:
        return expit(logit(np.clip(self.proba, _END, 1 - _END)) + shift)

    def is_found(self, shift, n_samples, n_starts, n_before, variance_before, chance) -> bool:
        """Whether a drift raises the alarm within so many samples, with the chance given.

        Parameters
        ----------
        shift : float
        n_samples : float
            Since the drift.
        n_starts : int
            Batches since the drift.
        n_before, variance_before : float
            Samples before the drift, and their variance.
        chance : float in (0, 1)
        """
        q = self._drifted(shift)
        unlucky = norm.isf(chance) * np.sign(shift) * np.sqrt(n_samples * (self.share @ (q - q**2)))
        events = n_samples * (self.share @ q) + unlucky
        norms = self.share @ np.log1p(self.proba[:, None] * np.expm1(SHIFTS))
        gains = SHIFTS * max(events, 0.0) - n_samples * norms
        left = 1 - np.arange(n_starts) / n_starts  # the part that follows each start
        starts = np.append(1 - left, 1.0) * n_samples
        if self.run_length is not None:
            shares, threshold = np.diff(starts), np.log(self.run_length)
        else:
            waiting = not_started(n_before + starts, variance_before + starts * self.variance)
            shares, threshold = -np.diff(waiting), -np.log(self.alpha)
        learned = self._learned(shift, max(events, 0.0) / n_samples, starts, n_before)
        won = np.hstack([left[:, None] * gains, learned])
        with np.errstate(divide="ignore"):
            wealth = np.log(shares)[:, None] + self.log_prior + won
        return bool(np.logaddexp.reduce(wealth, axis=None) >= threshold)

    def _learned(self, shift, rate, ends, n_before) -> np.ndarray:
        """The gain of learned shifts from each start on (n_starts, n_memories)."""
        V, d = float(self.share @ (self.proba - self.proba**2)), rate - self.mean
        t = ends[:-1, None] + np.diff(ends)[:, None] / 2
        information = V * _decayed(n_before + t, MEMORIES)
        learned = d * _decayed(t, MEMORIES) / (information + PRECISION[1, 1])
        variance = V * _decayed(n_before + t, MEMORIES / 2) / (information + PRECISION[1, 1]) ** 2
        # The parabola is too high for shifts that are not small.
        ratios = self.share @ np.log1p(self.proba * np.expm1(shift))
        most = shift * float(self.share @ self._drifted(shift)) - float(ratios)
        drift = float(self.share @ self._drifted(shift)) - self.mean
        scale = min(1.0, 2 * V * most / max(drift**2, 1e-300))
        gains = scale * (d * learned - V * (learned**2 + variance) / 2) * np.diff(ends)[:, None]
        return gains[::-1].cumsum(axis=0)[::-1]

    def batches(self, shift, batch_size, n_before, variance_before, chance) -> int | None:
        """Return the least number of batches until the alarm."""

        def found(k: int) -> bool:
            state = k, n_before, variance_before, chance
            return self.is_found(shift, k * batch_size, *state)

        high = 1
        while high < _MOST_BATCHES and not found(high):
            high = min(2 * high, _MOST_BATCHES)
        numbers = range(high // 2 + 1, high + 1)
        place = bisect_left(numbers, True, key=found)
        return numbers[place] if place < len(numbers) else None

    def least_ratios(self, n_samples, n_before, variance_before, chance) -> list[float | None]:
        """Return the largest O/E below 1 and the least above it that are found, None for none."""
        state = n_samples, _DRIFT_STARTS, n_before, variance_before, chance
        return [self._least_ratio(sign * _MOST_DRIFT / _N_SHIFTS, state) for sign in (-1, 1)]

    def _least_ratio(self, step: float, state: tuple) -> float | None:
        """O/E of the least multiple of a shift that is found."""
        numbers = range(1, _N_SHIFTS + 1)
        place = bisect_left(numbers, True, key=lambda k: self.is_found(k * step, *state))
        return self.ratio_of(numbers[place] * step) if place < _N_SHIFTS else None


def _decayed(n, memory) -> np.ndarray:
    """A sum of n ones that forgets."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(memory), n, -memory * np.expm1(-n / memory))


def condensed(proba: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means of at most 200 groups of neighbouring predictions, and their shares."""
    parts = np.array_split(np.sort(proba), min(len(proba), _POINTS))
    return np.array([part.mean() for part in parts]), np.array([len(p) for p in parts]) / len(proba)


def log_prior_of(evidence: Evidence, share: float, of_e_value: bool) -> np.ndarray:
    """Return the logarithms of the wealth that is bet on each fixed and on each learned shift."""
    part = np.log(share * (SHARE_OF_BETS if of_e_value else 1.0))
    shares = [evidence.log_prior[evidence.places(kind)] for kind in (Shifts, LearnedTilt)]
    return np.concatenate(shares) + part
