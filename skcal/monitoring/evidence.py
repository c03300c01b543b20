r"""Evidence of one problem: wealth over all tilts and starting times, and sums for its estimates.

With L_t(j) the likelihood ratio of tilt j on the samples of batch t, and prior weights π_j,

    W_t = Σ_j π_j Σ_{s ≤ t} ρ_s Π_{i=s…t} L_i(j)  +  1 - Σ_{s ≤ t} ρ_s

is the wealth of a player who spreads 1 over all tilts and over the batches s before which
calibration may have been lost. Under H0 it is a martingale with W_0 = 1. The inner sum obeys
A_t = (A_{t-1} + ρ_t) L_t, so that no past is kept. ρ_t = R(n) - R(n + m) for a batch of m samples
after n earlier ones; R(n) = 1 / (1 + log(1 + n / 100)) falls so slowly that a change after n
samples costs but a factor of some log² n · n / m.

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
term of weight w ≤ 1 is w T with the square w² T²; one of weight 2, 3, … stands for so many terms.

For T = ±δ and m = 0 the same averages, B⁺ and B⁻, are evidence of a bias. The e-value is

    E_t = W_t / 2 + (B⁺_t + B⁻_t) / 4,

a supermartingale under H0 with E_0 = 1, so that P(E_t ≥ 1/α at some t) ≤ α by Ville's inequality.
The limits of the bias are those that B± reach at 4 / α: where they leave out 0, E_t ≥ 1 / α.

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

from skcal.monitoring.bets import MEMORIES, Batch, LearnedTilt, tilt_families, tilted

SCALES = np.array([0.04, 0.2, 1.0])  # c: small ones for small errors
_EARLY = 100.0  # samples
_RATES = 0.9 * 0.5 ** np.arange(16.0)  # λ: the smallest suits some 1e9 samples
_PSI = -np.log1p(-_RATES) - _RATES
_STEPS = 60
MOST_ROWS = 256
_FIRST = ("n_samples", "log_e_value", "log_detector")


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
        self.families = tilt_families(n_columns)
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
        sums: list = []
        for block in part.blocks():
            ratios = np.concatenate([family.log_ratios(block) for family in self.families])
            size = np.array([block.weight.sum(), block.weight @ (block.happened == 0)])
            lessons = [family.sums_of(block) for family in self.families]
            sums = add_bets(sums, [ratios, size, *self._estimate(block, best), *lessons])
        return sums

    def settle(self, bets: list) -> None:
        """Pay the bets on a batch out, and learn from it."""
        if not bets:
            return
        ratios, (size, impossible), bias_sums, error_sums, *lessons = bets
        share = _not_started(self.totals[1]) - _not_started(self.totals[1] + size)
        with np.errstate(divide="ignore"):  # nothing starts beside a batch of nearly all weight
            self.log_wealth = np.logaddexp(self.log_wealth, np.log(share)) + ratios
        self.log_starts = np.logaddexp(self.log_starts, np.log(size)) + ratios
        self.totals += [size, size, 0.0, impossible]
        self.bias_sums += bias_sums
        self.error_sums += error_sums
        kept = np.exp(-size / MEMORIES)
        for family, sums in zip(self.families, lessons, strict=True):
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
        total, squares = self.bias_sums
        of_bias = np.multiply.outer([total, -total], _RATES) - squares * _PSI
        log_bias = np.logaddexp.reduce(of_bias, axis=None) - np.log(of_bias.size)
        return float(np.logaddexp(self.log_wealth_of_bets, log_bias) - np.log(2))

    @property
    def log_wealth_of_bets(self) -> float:
        """The logarithm of W_t."""
        if self.totals[3]:
            return np.inf
        won = np.logaddexp.reduce(self.log_prior + self.log_wealth)
        return float(np.logaddexp(won, np.log(_not_started(self.totals[1]))) + self.totals[2])

    @property
    def log_detector(self) -> float:
        """The logarithm of D_t."""
        if self.totals[3]:
            return np.inf
        return float(np.logaddexp.reduce(self.log_prior + self.log_starts))

    @property
    def leanings(self) -> tuple[float, float]:
        """Standardised deviations of the mean of all samples, and of the slope beside it.

        Below 0 events are fewer than predicted, and predictions too extreme.
        """
        [learned] = (family for family in self.families if isinstance(family, LearnedTilt))
        slope, mean, of_slope, shared, of_mean = learned.sums[-1].tolist()
        if of_mean <= 0:
            return 0.0, 0.0
        slope, of_slope = slope - shared / of_mean * mean, of_slope - shared**2 / of_mean
        return mean / np.sqrt(of_mean), slope / np.sqrt(of_slope) if of_slope > 0 else 0.0

    def estimate(self, alpha: float) -> Estimate:
        """Means so far; the limits of each hold at all times with probability 1 - alpha."""
        return estimate_from_sums(self.sums_for_estimates(), alpha)

    def sums_for_estimates(self) -> np.ndarray:
        """What :func:`estimate_from_sums` reads."""
        return np.concatenate([self.totals[:1], self.bias_sums, self.error_sums.ravel()])

    def merge(self, other: Evidence) -> None:
        """Add the evidence of another stream, independent of this one given the past."""
        won = 0.0 if other.totals[3] else other.log_wealth_of_bets
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


def add_bets(first: list, second: list) -> list:
    """Add what :meth:`Evidence.bet` returned for two parts of a batch."""
    if not (first and second):
        return first or second
    return [a + b for a, b in zip(first, second, strict=True)]


N_SUMS = 3 + 2 * len(SCALES)


def estimate_from_sums(sums: np.ndarray, alpha: float) -> Estimate:
    """Read sums (…, N_SUMS); the limits are arrays if there are several rows.

    The limits of the bias hold with probability 1 - alpha / 2, and leave out 0 only where the
    e-value is at least 1 / alpha. The scales of the error share alpha.
    """
    count, total, squares = np.moveaxis(sums[..., :3], -1, 0)
    errors = sums[..., 3:].reshape(*sums.shape[:-1], 2, len(SCALES))
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = total / count
    low = lower_bound(total, squares, count, alpha / 4)
    high = -lower_bound(-total, squares, count, alpha / 4)
    bounds = [
        lower_bound(errors[..., 0, k], errors[..., 1, k], count, alpha / len(SCALES), scale)
        for k, scale in enumerate(SCALES)
    ]
    limits = np.maximum(low, -1), np.minimum(high, 1), np.maximum(np.max(bounds, axis=0), 0)
    return Estimate(*(value[()] for value in (bias, *limits)))


def _not_started(n: float) -> float:
    """R(n), the wealth that is not yet bet after n samples."""
    return 1 / (1 + np.log1p(n / _EARLY))


def boundary(variance: Any, alpha: float) -> np.ndarray:
    """Return u(V), the most that the sum of T - m may be.

    Parameters
    ----------
    variance : array-like of float ≥ 0
        V.
    alpha : float in (0, 1)

    Returns
    -------
    u : ndarray of the same shape

    Examples
    --------
    >>> from skcal.monitoring.evidence import boundary
    >>> boundary([0, 100, 10_000], alpha=0.05).round(1)
    array([  6.3,  37.9, 338.7])
    """
    cost = np.asarray(variance, dtype=np.float64)[..., None] * _PSI
    threshold = np.log(len(_RATES) / alpha)
    u = ((threshold + cost) / _RATES).min(axis=-1)  # one λ alone is above 1 / α: Newton descends
    for _ in range(_STEPS):
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


class History:
    """Rows of what was known after some of the batches, the last among them.

    When there are too many, every second is dropped, and from then on only every second, fourth, …
    batch leaves a row. Rows hold sums over all earlier samples, so that nothing is lost but steps.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, 3 + N_SUMS)
        Samples, logarithms of e-value and e-detector, and the sums of the estimates.
    n_batches, stride : int
        Batches so far, and how many share a row.
    """

    def __init__(self) -> None:
        self.rows = np.empty((0, len(_FIRST) + N_SUMS))
        self.n_batches, self.stride = 0, 1

    def add(self, *values: float, sums: np.ndarray) -> None:
        """Add a row; the last one gives way unless its turn had come."""
        if self.n_batches % self.stride:
            self.rows = self.rows[:-1]
        self.rows = np.vstack([self.rows, np.concatenate([values, sums])])
        self.n_batches += 1
        if len(self.rows) == MOST_ROWS and self.n_batches % self.stride == 0:
            self.rows, self.stride = self.rows[1::2], 2 * self.stride

    def columns(self, alpha: float) -> dict[str, np.ndarray]:
        """Return columns: evidence, bias and error with their limits, bias since the last row."""
        table = dict(zip(_FIRST, self.rows.T, strict=False))
        sums = self.rows[:, len(_FIRST) :]
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


def as_e_value(logarithm):
    """Return the exponential; what is too large for float64 is infinite."""
    with np.errstate(over="ignore"):
        return np.exp(logarithm)
