r"""Evidence of one problem: wealth over all tilts and starting times, and sums for its estimates.

With L_t(j) the likelihood ratio of tilt j on the samples of batch t, and prior weights π_j,

    W_t = Σ_j π_j Σ_{s ≤ t} ρ_s Π_{i=s…t} L_i(j)  +  1 - Σ_{s ≤ t} ρ_s

is the wealth of a player who spreads 1 over all tilts and over the batches s before which
calibration may have been lost. Under H0 it is a martingale with W_0 = 1. The inner sum obeys A_t =
(A_{t-1} + ρ_t) L_t, so that no past is kept. ρ_t = R(V) - R(V + v) for a batch whose outcomes have
the variance v = Σ p (1 - p) after earlier ones of V: rare events are waited for. R is 1 before the
first batch and .8 (1 + V / 100)^-.3 after it, so that a fifth of the wealth is bet on a model that
was never calibrated, and the cost of a late change grows slowly. For vectors, v is half of the
variance Σ (1 - ‖p‖²).

The e-detector of Shiryaev and Roberts (Shin, Ramdas & Rinaldo 2023) starts a bet at every sample,

    D_t = Σ_j π_j D_t(j),    D_t(j) = (D_{t-1}(j) + m) L_t(j),

and D_t - n_t is a martingale: at the first alarm, D ≥ c, E n = E D ≥ c. So on average no false
alarm comes before c samples.

Of the tilt that holds most wealth before a batch, ĝ = q - p, the terms T = 2⟨δ, ĝ⟩ - ‖ĝ‖² have
conditional means ≤ ‖E[δ | x, past]‖²: a lower bound of their running mean is one of the mean
squared calibration error. T ≥ -c for ĝ shrunk until 2 (max ĝ - min ĝ) + ‖ĝ‖² ≤ c.

Confidence sequences are bounds of a running mean that hold at all times at once. Terms T_i ≥ -c
with conditional means m_i, given the past, satisfy (Howard et al. 2021, from Fan et al. 2015) for
every 0 ≤ λ < 1 / c that

    E exp(λ (T_i - m_i) - ψ(cλ) T_i² / c²) ≤ 1,      ψ(s) = -log(1 - s) - s,

since exp(λ ξ - ψ(λ) ξ²) ≤ 1 + λ ξ for ξ ≥ -1 and 1 + λ m ≤ exp(λ m). The product over samples is
a supermartingale, and so is its average over several λ. By Ville's inequality the average stays
below 1 / α at all times with probability 1 - α; where it does,

    Σ m_i ≥ Σ T_i - c u(Σ T_i² / c²),      u(V) solving  mean_j exp(λ_j u - ψ(λ_j) V) = 1 / α.

The m_i may differ: the bound is of their running mean. Only the sums of T and T² are needed. A
weight w is an exponent, of likelihood ratios too. For w ≤ 1 the mean stays at most 1 (Jensen); w =
2, 3, … stands for so many samples. If weights sum to at most 1, the mean of the product of powers
is at most 1 *whatever the dependence* of the samples (Hölder): those of one group share a weight.

For T = ±δ and m = 0 the same averages, B⁺ and B⁻, are evidence of a bias. The e-value is

    E_t = 3/4 W_t + (B⁺_t + B⁻_t) / 8,

a supermartingale under H0 with E_0 = 1, so that P(E_t ≥ 1/α at some t) ≤ α by Ville's inequality.
The limits of the bias are those that B± reach at 8 / α: where they leave out 0, E_t ≥ 1 / α.

References
----------
Fan, Grama & Liu, Exponential inequalities for martingales with applications, Electron. J. Probab.
2015. Howard, Ramdas, McAuliffe & Sekhon, Time-uniform, nonparametric, nonasymptotic confidence
sequences, Ann. Statist. 2021. Waudby-Smith & Ramdas, Estimating means of bounded random variables
by betting, J. R. Statist. Soc. B 2024.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skcal.monitoring.bets import Batch, LearnedBins, LearnedTilt, Ranges, tilt_families, tilted

BET_SCALES = np.array([0.04, 0.2, 1.0])  # c: small ones for small errors
_AT_ONCE, _EARLY, _FALL = 0.2, 100.0, 0.3  # of R
SHARE_OF_BETS = 0.75  # of the e-value
_RATES = 0.9 * 0.5 ** np.arange(16.0)  # λ: the smallest suits some 1e9 samples
_PSI = -np.log1p(-_RATES) - _RATES
_NEWTON_ROUNDS = 60


class Estimate(NamedTuple):
    """Means over all samples so far, with confidence sequences.

    Attributes
    ----------
    bias : float
        Observed minus predicted probability of the target.
    bias_low, bias_high : float
        Limits of its conditional mean.
    rms_error_low : float
        Lower limit of the RMS calibration error; not below 0.
    """

    bias: float
    bias_low: float
    bias_high: float
    rms_error_low: float


class Evidence:
    """The e-process and the e-detector of one problem.

    Parameters
    ----------
    n_columns : int
        Columns of predictions, 2 for a scalar problem.
    scalar : bool
        Whether the squared error is that of one column.
    ranges : bool, default=True
        Whether there are bets on ranges of predictions.

    Attributes
    ----------
    log_wealth, log_starts : ndarray of shape (n_tilts,)
        log A_t(j) and log D_t(j).
    totals : ndarray of shape (5,)
        The sum of the weights, twice; the variance V; the logarithm of the wealth merged from other
        streams; the weight of outcomes whose prediction was 0, infinite evidence.
    begun : ndarray of shape (4,)
        The second and third of the totals, and ``bias_sums``, when the evidence last began anew,
        and what other streams added to the totals since: of this stream the rest is not yet bet.
    bias_sums : ndarray of shape (2,)
        Σ w δ_t and Σ w δ_t² of the target.
    error_sums : ndarray of shape (2, n_scales)
        Σ w T and Σ w T².
    runs : ndarray of shape (2, n_tilts of ranges)
        The log likelihood ratio of each range since the time from which on it is largest, and the
        sum of the weights before that time.
    """

    def __init__(self, n_columns: int, scalar: bool, ranges: bool = True):
        self.scalar = scalar
        self.families = tilt_families(n_columns, ranges)
        self.ends = np.cumsum([family.n_tilts for family in self.families])
        shares = np.array([family.share for family in self.families])
        self.log_prior = np.log(
            np.concatenate(
                [
                    share * family.weights
                    for share, family in zip(shares, self.families, strict=True)
                ]
            )
            / shares.sum()
        )
        self.log_wealth, self.log_starts = np.full((2, self.ends[-1]), -np.inf)
        self.totals, self.bias_sums, self.begun = np.zeros(5), np.zeros(2), np.zeros(4)
        self.error_sums = np.zeros((2, len(BET_SCALES)))
        self.runs = np.zeros((2, self.families[-1].n_tilts if ranges else 0))

    def bet(self, part: Batch) -> list:
        """Return what bets on a part of a batch win and teach, for :meth:`settle`; [] of no rows.

        The bets are by what earlier batches taught. Lists of several parts add up entry by entry.
        """
        best = int(np.argmax(self.log_prior + self.log_wealth))
        sums: list = []
        for block in part.blocks():
            ratios = np.concatenate([family.log_ratios(block) for family in self.families])
            of_rows = np.ones(len(block.code)), block.variance, block.happened == 0
            size = np.array(of_rows) @ block.weight
            lessons = [family.sums_of(block) for family in self.families]
            sums = add_bets(sums, [ratios, size, *self._estimate(block, best), *lessons])
        return sums

    def settle(self, bets: list) -> None:
        """Pay the bets on a batch out, and learn from it."""
        if not bets:
            return
        ratios, (size, variance, impossible), bias_sums, error_sums, *lessons = bets
        before = self.totals[1:3] - self.begun[:2]
        share = not_started(*before) - not_started(*(before + np.array([size, variance])))
        with np.errstate(divide="ignore"):  # nothing starts beside a batch of nearly all weight
            self.log_wealth = np.logaddexp(self.log_wealth, np.log(share)) + ratios
        self.log_starts = np.logaddexp(self.log_starts, np.log(size)) + ratios
        n_runs, begun = self.runs.shape[1], self.runs[0] <= 0
        self.runs[1, begun] = self.totals[0]
        self.runs[0] = np.maximum(self.runs[0], 0) + ratios[len(ratios) - n_runs :]
        self.totals += [size, size, variance, 0.0, impossible]
        self.bias_sums += bias_sums
        self.error_sums += error_sums
        for family, sums in zip(self.families, lessons, strict=True):
            if family.sums.size:
                kept = np.exp(-size / family.memories)
                family.sums *= kept.reshape(-1, *[1] * (family.sums.ndim - 1))
                family.sums += sums

    def begin_anew(self) -> None:
        """Return to the evidence of no samples; what was learned stays, and so do estimates."""
        self.log_wealth[:] = self.log_starts[:] = -np.inf
        self.begun[:] = *self.totals[1:3], *self.bias_sums
        self.totals[3:] = self.runs[0] = 0.0

    def _estimate(self, batch: Batch, best: int) -> tuple[np.ndarray, np.ndarray]:
        """Sums of the estimates, ĝ being that of the ``best`` tilt before the batch."""
        weight = batch.weight
        residual = batch.hit - batch.expected
        bias_sums = np.array([weight @ residual, weight @ (residual**2 + batch.excess)])
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
        shrunk = np.minimum(1, BET_SCALES / np.maximum(span + square, 1e-300)[:, None])
        terms = 2 * part * shrunk * product[:, None] - shrunk**2 * square[:, None]
        squares = terms**2 + (2 * shrunk * gap[:, 1:2]) ** 2 * batch.excess[:, None]
        return bias_sums, np.stack([weight @ terms, weight @ squares])

    @property
    def log_e_value(self) -> float:
        """The logarithm of E_t."""
        total, squares = self.bias_sums - self.begun[2:]
        exponents = np.multiply.outer([total, -total], _RATES) - squares * _PSI
        log_bias = np.logaddexp.reduce(exponents, axis=None) - np.log(exponents.size)
        of_bets, of_bias = np.log(SHARE_OF_BETS), np.log1p(-SHARE_OF_BETS)
        return float(np.logaddexp(of_bets + self.log_wealth_of_bets, of_bias + log_bias))

    @property
    def log_wealth_of_bets(self) -> float:
        """The logarithm of W_t."""
        if self.totals[4]:
            return np.inf
        won = np.logaddexp.reduce(self.log_prior + self.log_wealth)
        left = np.log(not_started(*(self.totals[1:3] - self.begun[:2])))
        return float(np.logaddexp(won, left) + self.totals[3])

    @property
    def log_detector(self) -> float:
        """The logarithm of D_t."""
        if self.totals[4]:
            return np.inf
        return float(np.logaddexp.reduce(self.log_prior + self.log_starts))

    def winning_range(self, of_wealth: bool) -> tuple[float, float, float, float] | None:
        """Return the range that won most of what bets have won; None if others won half of it.

        Its ends, its shift, and the sum of the weights before it began to win. ``of_wealth`` reads
        the e-value, else the e-detector. Half of the predictions or more make no range.
        """
        n, won = (
            self.runs.shape[1],
            self.log_prior + (self.log_wealth if of_wealth else self.log_starts),
        )
        others, of_ranges = np.split(won, [len(won) - n])
        if not n or not np.logaddexp.reduce(of_ranges) > np.logaddexp.reduce(others):
            return None
        k = int(np.argmax(of_ranges))
        low, high, shift, part = self._family(Ranges).range_of(k)
        return None if part >= 0.5 else (low, high, shift, float(self.runs[1, k]))

    @property
    def moments(self) -> np.ndarray:
        """Sums over all samples, of the target t, for the periods of :mod:`.history`.

        Σ p_t, the score of the slope a, and the information of (a, a), (a, b) and (b, b), b being
        the shift: the last is Σ p_t (1 - p_t).
        """
        tilt, bins = (self._family(kind).sums[-1] for kind in (LearnedTilt, LearnedBins))
        return np.array([bins[1].sum(), tilt[0], *tilt[2:]])

    def predicted(self) -> tuple[np.ndarray, np.ndarray]:
        """Predicted probabilities of the target so far, the mean of each bin, and their shares."""
        total, expected, _ = self._family(LearnedBins).sums[-1]
        some = total > 0
        return expected[some] / total[some], total[some] / total.sum()

    def order(self) -> float:
        """Standardised covariance of predicted and observed targets in the last 1,000 samples.

        Below 0 they are rarer where they are predicted to be more frequent.
        """
        total, expected, observed = self._family(LearnedBins).sums[0]
        rate, mean = observed.sum() / total.sum(), expected.sum() / total.sum()
        away = np.divide(expected, total, out=np.full_like(total, mean), where=total > 0) - mean
        spread = np.sqrt((total @ away**2) * rate * (1 - rate))
        return float(away @ observed / spread) if spread > 0 else 0.0

    def places(self, kind: type) -> slice:
        """Return where the tilts of a family lie."""
        k = next(k for k, family in enumerate(self.families) if isinstance(family, kind))
        return slice(self.ends[k] - self.families[k].n_tilts, self.ends[k])

    def _family(self, kind: type) -> Any:
        return next(family for family in self.families if isinstance(family, kind))

    def estimate(self, alpha: float) -> Estimate:
        """Means so far; the limits of each hold at all times with probability 1 - alpha."""
        return estimate_from_sums(self.sums_for_estimates(), alpha)

    def sums_for_estimates(self) -> np.ndarray:
        """Return the sums that :func:`estimate_from_sums` reads."""
        return np.concatenate([self.totals[:1], self.bias_sums, self.error_sums.ravel()])

    def merge(self, other: Evidence) -> None:
        """Add the evidence of another stream, independent of this one given the past."""
        won = 0.0 if other.totals[4] else other.log_wealth_of_bets
        self.totals += [*other.totals[:3], won, other.totals[4]]
        self.begun[:2] += other.totals[1:3]
        self.log_starts = np.logaddexp(self.log_starts, other.log_starts)
        self.bias_sums += other.bias_sums
        self.begun[2:] += other.begun[2:]
        self.error_sums += other.error_sums
        for ours, theirs in zip(self.families, other.families, strict=True):
            ours.sums += theirs.sums

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all state by name."""
        names = ("log_wealth", "log_starts", "totals", "bias_sums", "begun", "error_sums")
        state = {name: getattr(self, name) for name in names}
        for family in self.families:
            if family.sums.size:
                state[type(family).__name__] = family.sums
        return state | ({"runs": self.runs} if self.runs.size else {})


def add_bets(first: list, second: list) -> list:
    """Add what :meth:`Evidence.bet` returned for two parts of a batch."""
    if not (first and second):
        return first or second
    return [a + b for a, b in zip(first, second, strict=True)]


N_SUMS = 3 + 2 * len(BET_SCALES)


def estimate_from_sums(sums: np.ndarray, alpha: float) -> Estimate:
    """Read sums (…, N_SUMS); the limits are arrays if there are several rows.

    The limits of the bias hold with probability 1 - alpha / 4, and leave out 0 only where the
    e-value is at least 1 / alpha. The scales of the error share alpha.
    """
    count, total, squares = np.moveaxis(sums[..., :3], -1, 0)
    errors = sums[..., 3:].reshape(*sums.shape[:-1], 2, len(BET_SCALES))
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = total / count
    low = lower_bound(total, squares, count, alpha / 8)
    high = -lower_bound(-total, squares, count, alpha / 8)
    bounds = [
        lower_bound(errors[..., 0, k], errors[..., 1, k], count, alpha / len(BET_SCALES), scale)
        for k, scale in enumerate(BET_SCALES)
    ]
    rms = np.sqrt(np.maximum(np.max(bounds, axis=0), 0))
    limits = np.maximum(low, -1), np.minimum(high, 1), rms
    return Estimate(*(value[()] for value in (bias, *limits)))


def not_started(n_samples: Any, variance: Any) -> Any:
    """Return R, the wealth that is not yet bet after so many samples of so much variance."""
    waiting = (1 - _AT_ONCE) * (1 + variance / _EARLY) ** -_FALL
    return np.where(n_samples > 0, waiting, 1.0)


def boundary(variance: Any, alpha: float) -> np.ndarray:
    """Return u(V), the most that the sum of T - m may be.

    Parameters
    ----------
    variance : array-like of float ≥ 0
        V.
    alpha : float in (0, 1)
        The probability that the boundary is ever crossed under calibration.

    Returns
    -------
    u : ndarray of the same shape
        The sum of deviations at which the boundary is crossed, for each ``variance``.

    Examples
    --------
    >>> from skcal.monitoring.evidence import boundary
    >>> boundary([0, 100, 10_000], alpha=0.05).round(1)
    array([  6.3,  37.9, 338.7])
    """
    cost = np.asarray(variance, dtype=np.float64)[..., None] * _PSI
    threshold = np.log(len(_RATES) / alpha)
    u = ((threshold + cost) / _RATES).min(axis=-1)  # one λ alone is above 1 / α: Newton descends
    for _ in range(_NEWTON_ROUNDS):
        terms = _RATES * u[..., None] - cost
        total = np.logaddexp.reduce(terms, axis=-1)
        slope = (np.exp(terms - total[..., None]) * _RATES).sum(axis=-1)
        step = (total - threshold) / slope
        u = u - step
        if (np.abs(step) <= 1e-12 * u).all():
            break
    return u


def lower_bound(total: Any, squares: Any, count: Any, alpha: float, least: float = 1.0) -> Any:
    """Return the lower confidence bound of the running mean of terms ≥ -``least``.

    Parameters
    ----------
    total, squares : array-like of float
        Σ T and Σ T².
    count : array-like of float
        The number of terms; the bound of none is ``-inf``.
    alpha : float in (0, 1)
        One minus the confidence of the bound.
    least : float, default=1
        c.

    Returns
    -------
    bound : ndarray of float
        The bound, in the units of the terms.

    Examples
    --------
    >>> from skcal.monitoring.evidence import lower_bound
    >>> lower_bound([50, 500], squares=[100, 1000], count=[100, 1000], alpha=0.05).round(2)
    array([0.12, 0.39])
    """
    total, squares, count = np.broadcast_arrays(total, squares, count)
    bound = np.full(total.shape, -np.inf)
    some = count > 0
    margin = least * boundary(squares[some] / least**2, alpha)
    bound[some] = (total[some] - margin) / count[some]
    return bound


def as_e_value(logarithm):
    """Return the exponential; what is too large for float64 is infinite."""
    with np.errstate(over="ignore"):
        return np.exp(logarithm)
