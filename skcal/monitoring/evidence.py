r"""Evidence of one problem: wealth over all tilts and starting times, and sums for its estimates.

With L_t(j) the likelihood ratio of tilt j on the samples of batch t, and prior weights π_j,

    E_t = Σ_j π_j Σ_{s ≤ t} ρ_s Π_{i=s…t} L_i(j)  +  1 - Σ_{s ≤ t} ρ_s

is the wealth of who spreads 1 over all tilts and over the batches s before which calibration may
have been lost. Under H0 it is a martingale with E_0 = 1, so that P(E_t ≥ 1/α at some t) ≤ α by
Ville's inequality. The inner sum obeys A_t = (A_{t-1} + ρ_t) L_t, so that no past is kept. ρ_t =
R(n) - R(n + m) for a batch of m samples after n earlier ones; R(n) = 1 / (1 + log(1 + n / 100))
falls so slowly that a change after n samples costs but a factor of some log² n · n / m.

The e-detector of Shiryaev and Roberts (Shin, Ramdas & Rinaldo 2023) starts a bet at every sample,

    D_t = Σ_j π_j D_t(j),    D_t(j) = (D_{t-1}(j) + m) L_t(j),

and D_t - n_t is a martingale: at the first alarm, D ≥ c, E n = E D ≥ c. So on average no false
alarm comes before c samples.

Of the tilt that holds most wealth before a batch, ĝ = q - p, the terms T = 2⟨δ, ĝ⟩ - ‖ĝ‖² have
conditional means ≤ ‖E[δ | x, past]‖²: a lower bound of their running mean is one of the mean
squared calibration error. T ≥ -c for ĝ shrunk until 2 (max ĝ - min ĝ) + ‖ĝ‖² ≤ c.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skcal.monitoring.batch import Batch
from skcal.monitoring.bets import MEMORIES, make_families, tilted
from skcal.monitoring.sequences import lower_bound

SCALES = np.array([0.04, 0.2, 1.0])  # c: small ones for small errors
_EARLY = 100.0  # samples


class Estimate(NamedTuple):
    """Means over all samples so far, with confidence sequences.

    Attributes
    ----------
    bias : float
        Observed minus predicted probability of the target.
    bias_low, bias_high : float
        Limits of its conditional mean.
    error_low : float
        Lower limit of the squared calibration error; not below 0.
    """

    bias: float
    bias_low: float
    bias_high: float
    error_low: float


class Evidence:
    """The e-process and the e-detector of one problem.

    Parameters
    ----------
    n_columns : int
        Columns of predictions, 2 for a scalar problem.
    scalar : bool
        Whether the squared error is that of one column.

    Attributes
    ----------
    log_wealth, log_starts : ndarray of shape (n_tilts,)
        log A_t(j) and log D_t(j).
    totals : ndarray of shape (4,)
        The sum of the weights; that of this stream alone, n; the logarithm of the wealth merged
        from other streams; the weight of outcomes whose prediction was 0, infinite evidence.
    bias_sums : ndarray of shape (2,)
        Σ w δ_t and Σ w² δ_t² of the target; as of other sums with w² = w for counts w > 1.
    error_sums : ndarray of shape (2, n_scales)
        Σ w T and Σ w² T².
    """

    def __init__(self, n_columns: int, scalar: bool):
        self.scalar = scalar
        self.families = make_families(n_columns)
        sizes = [family.n_tilts for family in self.families]
        self.ends = np.cumsum(sizes)
        self.log_prior = -np.log(len(sizes) * np.repeat(sizes, sizes))
        self.log_wealth, self.log_starts = np.full((2, sum(sizes)), -np.inf)
        self.totals, self.bias_sums = np.zeros(4), np.zeros(2)
        self.error_sums = np.zeros((2, len(SCALES)))

    def bet(self, part: Batch) -> list:
        """Return what bets on a part of a batch win and teach, for :meth:`settle`; [] of no rows.

        The bets are by what earlier batches taught. Lists of several parts add up entry by entry.
        """
        best = int(np.argmax(self.log_prior + self.log_wealth))
        found: list = []
        for block in part.blocks():
            ratios = np.concatenate([family.log_ratios(block) for family in self.families])
            size = np.array([block.weight.sum(), block.weight @ (block.happened == 0)])
            sums = [family.sums_of(block) for family in self.families]
            found = added(found, [ratios, size, *self._estimate(block, best), *sums])
        return found

    def settle(self, found: list) -> None:
        """Pay the bets on a batch out, and learn from it."""
        if not found:
            return
        ratios, (size, impossible), bias_sums, error_sums, *learned = found
        share = _not_started(self.totals[1]) - _not_started(self.totals[1] + size)
        with np.errstate(divide="ignore"):  # nothing starts beside a batch of nearly all weight
            self.log_wealth = np.logaddexp(self.log_wealth, np.log(share)) + ratios
        self.log_starts = np.logaddexp(self.log_starts, np.log(size)) + ratios
        self.totals += [size, size, 0.0, impossible]
        self.bias_sums += bias_sums
        self.error_sums += error_sums
        kept = np.exp(-size / MEMORIES)
        for family, sums in zip(self.families, learned, strict=True):
            if family.sums.size:
                family.sums *= kept.reshape(-1, *[1] * (family.sums.ndim - 1))
                family.sums += sums

    def _estimate(self, batch: Batch, best: int) -> tuple[np.ndarray, np.ndarray]:
        """Sums of the estimates, ĝ being that of the ``best`` tilt before the batch."""
        weight, squared = batch.weight, batch.weight * np.minimum(batch.weight, 1)
        residual = batch.hit - batch.expected
        bias_sums = np.array([weight @ residual, squared @ residual**2])
        if not np.isfinite(self.log_wealth[best]):
            return bias_sums, np.zeros_like(self.error_sums)
        family = int(np.searchsorted(self.ends, best, side="right"))
        place = best - self.ends[family] + self.families[family].n_tilts
        gap = tilted(batch, self.families[family].tilt(batch, place)) - batch.proba
        # Both columns of a scalar problem have the same gap, up to the sign.
        part = 0.5 if self.scalar else 1.0
        square = part * np.einsum("ij,ij->i", gap, gap)
        span = 2 * part * (gap.max(axis=1) - gap.min(axis=1))
        product = batch.of_column(gap, batch.code) - np.einsum("ij,ij->i", batch.proba, gap)
        shrunk = np.minimum(1, SCALES / np.maximum(span + square, 1e-300)[:, None])
        terms = 2 * part * shrunk * product[:, None] - shrunk**2 * square[:, None]
        return bias_sums, np.stack([weight @ terms, squared @ terms**2])

    @property
    def log_e_value(self) -> float:
        """The logarithm of E_t."""
        if self.totals[3]:
            return np.inf
        bets = np.logaddexp.reduce(self.log_prior + self.log_wealth)
        return float(np.logaddexp(bets, np.log(_not_started(self.totals[1]))) + self.totals[2])

    @property
    def log_detector(self) -> float:
        """The logarithm of D_t."""
        if self.totals[3]:
            return np.inf
        return float(np.logaddexp.reduce(self.log_prior + self.log_starts))

    def estimate(self, alpha: float) -> Estimate:
        """Means so far; the limits of each hold at all times with probability 1 - alpha."""
        return estimate(self.sums_for_estimates(), alpha)

    def sums_for_estimates(self) -> np.ndarray:
        """What :func:`estimate` reads."""
        return np.concatenate([self.totals[:1], self.bias_sums, self.error_sums.ravel()])

    def merge(self, other: Evidence) -> None:
        """Add the evidence of another stream, independent of this one given the past."""
        won = 0.0 if other.totals[3] else other.log_e_value
        self.totals += [other.totals[0], 0.0, won, other.totals[3]]
        self.log_starts = np.logaddexp(self.log_starts, other.log_starts)
        self.bias_sums += other.bias_sums
        self.error_sums += other.error_sums
        for own, theirs in zip(self.families, other.families, strict=True):
            own.sums += theirs.sums

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all state by name."""
        names = ("log_wealth", "log_starts", "totals", "bias_sums", "error_sums")
        state = {name: getattr(self, name) for name in names}
        for family in self.families:
            if family.sums.size:
                state[type(family).__name__] = family.sums
        return state


def added(first: list, second: list) -> list:
    """Add what :meth:`Evidence.bet` returned for two parts of a batch."""
    if not (first and second):
        return first or second
    return [a + b for a, b in zip(first, second, strict=True)]


N_SUMS = 3 + 2 * len(SCALES)


def estimate(sums: np.ndarray, alpha: float) -> Estimate:
    """Read sums (…, N_SUMS); the limits are arrays if there are several rows.

    Two limits of the bias share alpha, as do the scales of the error.
    """
    count, total, squares = np.moveaxis(sums[..., :3], -1, 0)
    errors = sums[..., 3:].reshape(*sums.shape[:-1], 2, len(SCALES))
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = total / count
    low = lower_bound(total, squares, count, alpha / 2)
    high = -lower_bound(-total, squares, count, alpha / 2)
    bounds = [
        lower_bound(errors[..., 0, k], errors[..., 1, k], count, alpha / len(SCALES), scale)
        for k, scale in enumerate(SCALES)
    ]
    limits = np.maximum(low, -1), np.minimum(high, 1), np.maximum(np.max(bounds, axis=0), 0)
    return Estimate(*(value[()] for value in (bias, *limits)))


def _not_started(n: float) -> float:
    """R(n), the wealth that is not yet bet after n samples."""
    return 1 / (1 + np.log1p(n / _EARLY))
