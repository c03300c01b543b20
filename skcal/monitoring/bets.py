r"""Bets against calibration: tilted predictions, and what they have won on a batch.

Under H0 an outcome has the probabilities p of its prediction, given all that came before. A tilt
ψ_k of the classes, which earlier batches and p may determine, makes the law q_k ∝ p_k exp(ψ_k). Its
likelihood ratio

    q_y / p_y = exp(ψ_y) / Σ_k p_k exp(ψ_k)

has the mean Σ_k p_k · q_k / p_k = 1 under H0, whatever ψ is, also where some p_k = 0. Every
*family* here holds several tilts, fixed or learned from the sums over earlier batches:

=============== ========================================= ==================================
family          ψ_k                                       learned from
=============== ========================================= ==================================
`Shifts`        b 1[k = t]                                nothing: six shifts b
`Slopes`        a log p_k                                 nothing: four slopes a
`PivotedSlopes` a (log p_k - c 1[k = t])                  the mean of log-odds c
`ClassShifts`   b 1[k = c]                                nothing: two shifts b of each class
`LearnedTilt`   a log p_k + b 1[k = t]                    one Newton step from a = b = 0
`LearnedBins`   b_j 1[k = t], p_t in bin j                observed and expected odds of a bin
`LearnedShares` b_k                                       observed and expected class counts
`Ranges`        b 1[k = t], p_t in a range                dyadic quantiles of p_t
=============== ========================================= ==================================

`share` says how much of the wealth is bet by a family: a fifth on `Ranges`. Of the rest half, or
nearly so, is bet on shifts, since a drift of the mean is the most frequent one.

The sums of a table are enough. Let ψ be that of the mean prediction p̄ of a cell, for all samples
of the cell: p and earlier batches determine it. The logarithm of Σ_k p_k exp(ψ_k) is concave in p,
so that with weights w of the samples i of a cell, and their sum W,

    Σ_i w_i log Σ_k p_ik exp(ψ_k) ≤ W log Σ_k p̄_k exp(ψ_k)                              (Jensen).

The bet on the cell, its outcomes at p̄, thus wins at most what the tilt wins sample by sample, which
has the mean 1: every family here is fair, those of slopes and ranges, too. It wins less by at most
W c² v / 2, with the variance v ≤ (p̄ / 1024)² of the predictions in the cell and c = exp(ψ_1 - ψ_0)
- 1 below 1/2. A slope differs by up to a / 512 within a cell, which changes the bet and not its
mean. Σ δ and Σ δ² of the residuals are known from sums, so that evidence of a bias is the same.

t is the *target*: the positive class of a scalar problem, else the most probable class. 1 + a is
the inverse of a temperature. log p is floored at log 1e-12. Learned tilts forget: their sums decay
by exp(-m / memory) over a batch of m samples, for each of `MEMORIES`. All state is sums, so that
its size is constant and that it can be merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import expit, logit

from skcal._validation import row_blocks
from skcal.notions import Problem

MEMORIES = np.array([1e3, 1e4, np.inf])  # samples after which a sum has lost 63 % of its weight
SHIFTS = np.array([-1.2, -0.6, -0.3, 0.3, 0.6, 1.2])  # of log-odds
_SLOPES = np.array([-0.5, -0.25, 0.3, 0.8])  # temperatures 2, 4/3, 0.77, 0.56
_CLASS_SHIFTS = np.array([-1.5, np.log(2)])  # a class nearly lost, and one twice as frequent
PRECISION = np.array([[10.0, 0.0], [0.0, 4.0]])  # of a and b before any sample
_STAKE_LIMITS = np.array([0.8, 3.0])  # of |a| and |b|
_EDGES = np.array(
    [0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 0.99, 0.997, 0.999]
)
_PSEUDO_COUNT = 4.0  # by which observed counts are drawn towards expected ones
_MOST_SHIFTED = 5.0  # that log-odds are shifted in a bin
_LEVELS = np.arange(2, 7)  # ranges hold 1/4, 1/8, … 1/64 of the predictions
_N_CELLS = 2 ** (_LEVELS[-1] + 1)  # of equally many predictions, two a narrowest range
_OF_LEVELS = np.array([1.0, 1.0, 1.5, 2.0, 2.5]) / 8  # of the share: narrow ranges are many
# Shifts of each level: a drift of few predictions is found if it is large.
_RANGE_SHIFTS = np.outer(2.0 ** (0.4 * _LEVELS), [-0.45, -0.2, 0.2, 0.45])
_GRID = np.concatenate([[0.0], expit(np.linspace(-14, 14, 281)), [1.0]])  # counts predictions
_RANGES_FROM = 200.0  # predictions, by which ranges are made
_WEALTH_FLOOR = 1e-12
_BET_BYTES = 2**22


@dataclass(frozen=True, eq=False)
class Batch:
    """Predictions and outcomes of one problem.

    Attributes
    ----------
    proba : ndarray of shape (n_rows, n_columns)
        Rows sum to 1; a scalar problem has the columns 1 - x and x.
    code : ndarray of shape (n_rows,)
        The column that happened.
    target : ndarray of shape (n_rows,)
        The column t.
    weight : ndarray of shape (n_rows,)
    excess : ndarray of shape (n_rows,)
        Of a row that is several samples, the mean square of their residuals less that of the row.
    """

    proba: np.ndarray
    code: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    excess: Any = None

    def __post_init__(self) -> None:
        if self.excess is None:
            object.__setattr__(self, "excess", np.zeros(len(self.code)))

    @classmethod
    def of_problem(cls, problem: Problem) -> Batch:
        """Read a problem, of which a row may be the samples of a cell that have one outcome."""
        counted = problem.counted
        if counted is None:
            return cls.of(problem.features, problem.outcomes, problem.weight)
        y = np.rint(problem.outcomes)
        batch = cls.of(np.clip(problem.features, 0, 1), y, problem.weight)
        squares = (y[:, 0] - counted.means) ** 2 + counted.spread
        return replace(batch, excess=squares - (batch.hit - batch.expected) ** 2)

    @classmethod
    def together(cls, parts: Sequence[Batch]) -> Batch:
        """Return all rows of several batches."""
        return cls(*map(np.concatenate, zip(*(part._arrays for part in parts), strict=True)))

    @classmethod
    def of(cls, features: np.ndarray, outcomes: np.ndarray, weight: np.ndarray) -> Batch:
        """Read the features (n, d) and outcomes (n, d) of a problem."""
        features = features.astype(np.float64)
        if features.shape[1] == 1:
            proba = np.hstack([1 - features, features])
            code = outcomes[:, 0].astype(np.intp)
            return cls(proba, code, np.ones(len(proba), dtype=np.intp), weight)
        # Ratios to p have the mean 1 only if p sums to 1: a miss of 1e-6 adds up over samples.
        proba = features / features.sum(axis=1, keepdims=True)
        return cls(proba, outcomes.argmax(axis=1), proba.argmax(axis=1), weight)

    def blocks(self) -> Iterator[Batch]:
        """Cut into batches whose temporary arrays stay small."""
        for rows in row_blocks(len(self.proba), 64 * self.proba.shape[1], most=_BET_BYTES):
            yield Batch(*(array[rows] for array in self._arrays))

    @property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        return self.proba, self.code, self.target, self.weight, self.excess

    def of_column(self, array: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Entries of an array (n, C) at one column a row."""
        return array[np.arange(len(array)), column]

    @property
    def log_proba(self) -> np.ndarray:
        """Logarithms with the floor."""
        return np.log(np.maximum(self.proba, _WEALTH_FLOOR))

    @property
    def happened(self) -> np.ndarray:
        """The probability of what happened."""
        return self.of_column(self.proba, self.code)

    @property
    def hit(self) -> np.ndarray:
        """Whether the target happened."""
        return (self.code == self.target).astype(np.float64)

    @property
    def variance(self) -> np.ndarray:
        """Half of the variance of what happened; of two columns that of one."""
        return (1 - np.einsum("ij,ij->i", self.proba, self.proba)) / 2

    @property
    def expected(self) -> np.ndarray:
        """The probability of the target."""
        return self.of_column(self.proba, self.target)


class TiltFamily(Protocol):
    """Tilts that share their form.

    Attributes
    ----------
    sums : ndarray
        What learned tilts know, one first axis entry a memory; empty for fixed ones.
    n_tilts : int
    share : float
        Of the wealth, in any unit.
    memories : ndarray
        After how many samples each of the sums has lost 63 % of its weight.
    """

    sums: np.ndarray = np.empty(0)
    n_tilts: int
    share: float = 1.25
    memories: np.ndarray = MEMORIES

    @property
    def weights(self) -> np.ndarray:
        """Parts of the share of each tilt (n_tilts,)."""
        return np.full(self.n_tilts, 1 / self.n_tilts)

    def log_ratios(self, batch: Batch) -> np.ndarray:
        """Log likelihood ratio of each tilt (n_tilts,), summed over the weighted rows."""

    def tilt(self, batch: Batch, k: int) -> np.ndarray:
        """ψ of the k-th tilt, an array that broadcasts to (n_rows, n_columns)."""

    def sums_of(self, batch: Batch) -> np.ndarray | float:
        """The terms that a batch adds to the sums of every memory; none for fixed tilts."""
        return 0.0


class Tilts(TiltFamily):
    """Slopes a of log p, each with some shifts b of the target's log-odds."""

    def slopes_and_shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a (n_slopes,) and b (n_slopes, n_shifts)."""
        raise NotImplementedError

    def log_ratios(self, batch: Batch) -> np.ndarray:
        """Log likelihood ratio of each tilt."""
        slopes, shifts = self.slopes_and_shifts()
        log_p, slopes = batch.log_proba, slopes[:, None]
        powers = np.exp(slopes[:, :, None] * log_p) * batch.proba
        at_target = powers[:, np.arange(len(log_p)), batch.target]
        total = powers.sum(axis=2)
        norms = np.log(total[..., None] + at_target[..., None] * np.expm1(shifts)[:, None, :])
        happened = batch.weight @ batch.of_column(log_p, batch.code)
        hits = batch.weight @ batch.hit
        return (slopes * happened + shifts * hits - batch.weight @ norms).ravel()

    def tilt(self, batch: Batch, k: int) -> np.ndarray:
        """ψ of the k-th tilt."""
        slopes, shifts = self.slopes_and_shifts()
        psi = slopes[k // shifts.shape[1]] * batch.log_proba
        psi[np.arange(len(psi)), batch.target] += shifts.flat[k]
        return psi


class Shifts(Tilts):
    """Shifts of the target's log-odds."""

    n_tilts = len(SHIFTS)
    share = 5.0

    def slopes_and_shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """No slope, and the shifts."""
        return np.zeros(1), SHIFTS[None]


class Slopes(Tilts):
    """Temperatures."""

    n_tilts = len(_SLOPES)
    share = 2.0

    def slopes_and_shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """The slopes, without shifts."""
        return _SLOPES, np.zeros((len(_SLOPES), 1))


class PivotedSlopes(Slopes):
    """Temperatures that leave the mean prediction of the target about as it is."""

    share = 2.5

    def __init__(self) -> None:
        self.sums = np.zeros((len(MEMORIES), 2))

    def slopes_and_shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """The slopes, each with its shift."""
        shared, of_mean = self.sums[-1]
        return _SLOPES, -_SLOPES[:, None] * (shared / of_mean if of_mean > 0 else 0.0)

    def sums_of(self, batch: Batch) -> np.ndarray:
        """Information of slope and shift together, and of the shift."""
        return _scores(batch)[3:] @ batch.weight


class LearnedTilt(Tilts):
    """Temperature and shift by one Newton step on sums of scores and information."""

    n_tilts = len(MEMORIES)
    share = 1.0

    def __init__(self) -> None:
        self.sums = np.zeros((self.n_tilts, 5))

    def slopes_and_shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a and b of each memory."""
        score, information = self.sums[:, :2], self.sums[:, [2, 3, 3, 4]].reshape(-1, 2, 2)
        step = np.linalg.solve(information + PRECISION, score[..., None])[..., 0]
        pairs = np.clip(step, -_STAKE_LIMITS, _STAKE_LIMITS)
        return pairs[:, 0], pairs[:, 1:]

    def sums_of(self, batch: Batch) -> np.ndarray:
        """Score and information of (a, b) at 0."""
        return _scores(batch) @ batch.weight


def _scores(batch: Batch) -> np.ndarray:
    """Score of slope a and shift b of each row at 0, and information of (a, a), (a, b), (b, b)."""
    log_p, expected = batch.log_proba, batch.expected
    mean = np.einsum("ij,ij->i", batch.proba, log_p)
    square = np.einsum("ij,ij,ij->i", batch.proba, log_p, log_p)
    return np.array(
        [
            batch.of_column(log_p, batch.code) - mean,
            batch.hit - expected,
            square - mean**2,
            expected * (batch.of_column(log_p, batch.target) - mean),
            expected * (1 - expected),
        ]
    )


class ClassShifts(TiltFamily):
    """A bet that a single class is less or more frequent."""

    def __init__(self, n_columns: int):
        self.n_columns = n_columns
        self.n_tilts = len(_CLASS_SHIFTS) * n_columns

    def log_ratios(self, batch: Batch) -> np.ndarray:
        """Log likelihood ratio of each shift, for one class after the other."""
        counts = np.bincount(batch.code, batch.weight, minlength=self.n_columns)
        norms = [batch.weight @ np.log1p(batch.proba * np.expm1(b)) for b in _CLASS_SHIFTS]
        return (_CLASS_SHIFTS[:, None] * counts - np.array(norms)).ravel()

    def tilt(self, batch: Batch, k: int) -> np.ndarray:
        """ψ of the k-th shift."""
        psi = np.zeros((1, self.n_columns))
        psi[0, k % self.n_columns] = _CLASS_SHIFTS[k // self.n_columns]
        return psi


class LearnedBins(TiltFamily):
    """Log-odds of the target shifted in each bin of its probability."""

    n_tilts = len(MEMORIES)
    share = 0.5

    def __init__(self) -> None:
        self.sums = np.zeros((self.n_tilts, 3, len(_EDGES) + 1))

    def _shifts(self) -> np.ndarray:
        total, expected, observed = self.sums.swapaxes(0, 1)
        share = np.divide(expected, total, out=np.full_like(total, 0.5), where=total > 0)
        share = np.clip(share, 1e-9, 1 - 1e-9)
        # The mean of a Beta posterior around the expected share, of the same width in log-odds
        # wherever that lies.
        prior = _PSEUDO_COUNT / (share * (1 - share))
        drawn = np.clip((observed + prior * share) / (total + prior), 1e-9, 1 - 1e-9)
        return np.clip(logit(drawn) - logit(share), -_MOST_SHIFTED, _MOST_SHIFTED)

    def _by_row(self, batch: Batch) -> np.ndarray:
        """Shift of each row for each memory (n_memories, n_rows)."""
        return self._shifts()[:, np.searchsorted(_EDGES, batch.expected)]

    def log_ratios(self, batch: Batch) -> np.ndarray:
        """Log likelihood ratio for each memory."""
        shifts = self._by_row(batch)
        return (shifts * batch.hit - np.log1p(batch.expected * np.expm1(shifts))) @ batch.weight

    def tilt(self, batch: Batch, k: int) -> np.ndarray:
        """ψ of the k-th memory."""
        psi = np.zeros_like(batch.proba)
        psi[np.arange(len(psi)), batch.target] = self._by_row(batch)[k]
        return psi

    def sums_of(self, batch: Batch) -> np.ndarray:
        """Samples, expected and observed targets of each bin."""
        expected, weight = batch.expected, batch.weight
        bins, size = np.searchsorted(_EDGES, expected), len(_EDGES) + 1
        values = (weight, weight * expected, weight * batch.hit)
        return np.stack([np.bincount(bins, value, minlength=size) for value in values])


class LearnedShares(TiltFamily):
    """Classes more or less frequent, by the ratio of observed to expected counts."""

    n_tilts = len(MEMORIES)

    def __init__(self, n_columns: int):
        self.sums = np.zeros((self.n_tilts, 2, n_columns))

    def _shifts(self) -> np.ndarray:
        expected, observed = self.sums.swapaxes(0, 1)
        return np.log((observed + _PSEUDO_COUNT) / (expected + _PSEUDO_COUNT))

    def log_ratios(self, batch: Batch) -> np.ndarray:
        """Log likelihood ratio for each memory."""
        shifts = self._shifts()
        counts = np.bincount(batch.code, batch.weight, minlength=shifts.shape[1])
        return shifts @ counts - batch.weight @ np.log(batch.proba @ np.exp(shifts).T)

    def tilt(self, batch: Batch, k: int) -> np.ndarray:
        """ψ of the k-th memory."""
        return self._shifts()[k : k + 1]

    def sums_of(self, batch: Batch) -> np.ndarray:
        """Expected and observed counts of the classes."""
        n_columns = self.sums.shape[2]
        observed = np.bincount(batch.code, batch.weight, minlength=n_columns)
        return np.stack([batch.weight @ batch.proba, observed])


class Ranges(TiltFamily):
    """Log-odds of the target shifted in one range of its probability.

    A range holds 1/4, 1/8, … or 1/64 of the predictions so far; neighbours share a half. There is
    no bet before 200 predictions.
    """

    memories = MEMORIES[-1:]
    n_of_level = 2 ** (_LEVELS + 1) - 1
    n_tilts = int(n_of_level.sum()) * _RANGE_SHIFTS.shape[1]

    def __init__(self, share: float) -> None:
        self.share = share
        self.sums = np.zeros((1, len(_GRID) - 1))

    @property
    def weights(self) -> np.ndarray:
        """Equal within a level."""
        sizes = self.n_of_level * _RANGE_SHIFTS.shape[1]
        return np.repeat(_OF_LEVELS / sizes, sizes)

    @property
    def _are_known(self) -> bool:
        return bool(self.sums.sum() >= _RANGES_FROM)

    def _below(self) -> np.ndarray:
        """The part of the predictions so far below each value of the grid."""
        return np.append(0.0, self.sums[0].cumsum()) / max(self.sums.sum(), 1e-300)

    def _cells(self, batch: Batch) -> np.ndarray:
        """The cell in which each row lies."""
        below = np.interp(batch.expected, _GRID, self._below())
        return np.minimum((below * _N_CELLS).astype(np.intp), _N_CELLS - 1)

    def log_ratios(self, batch: Batch) -> np.ndarray:
        """Log likelihood ratios, of each level those of all ranges for one shift after another."""
        if not self._are_known:
            return np.zeros(self.n_tilts)
        cells, expected, hit, ratios = self._cells(batch), batch.expected, batch.hit, []
        for level, shifts in zip(_LEVELS, _RANGE_SHIFTS, strict=True):
            for b in shifts:
                gains = batch.weight * (b * hit - np.log1p(expected * np.expm1(b)))
                sums = np.bincount(cells, gains, minlength=_N_CELLS)
                halves = sums.reshape(2 ** (level + 1), -1).sum(axis=1)
                ratios.append(halves[:-1] + halves[1:])
        return np.concatenate(ratios)

    def _place(self, k: int) -> tuple[float, int, int]:
        """The shift of the k-th tilt, the first cell of its range and the one after the last."""
        ends = np.cumsum(self.n_of_level * _RANGE_SHIFTS.shape[1])
        of_level = int(np.searchsorted(ends, k, side="right"))
        n_ranges = self.n_of_level[of_level]
        shift, place = divmod(k - ends[of_level] + n_ranges * _RANGE_SHIFTS.shape[1], n_ranges)
        width = _N_CELLS >> _LEVELS[of_level]
        first = int(place * width // 2)
        return float(_RANGE_SHIFTS[of_level, shift]), first, first + int(width)

    def tilt(self, batch: Batch, k: int) -> np.ndarray:
        """ψ of the k-th tilt."""
        shift, first, stop = self._place(k)
        cells, psi = self._cells(batch), np.zeros_like(batch.proba)
        inside = self._are_known & (first <= cells) & (cells < stop)
        psi[np.arange(len(psi)), batch.target] = shift * inside
        return psi

    def sums_of(self, batch: Batch) -> np.ndarray:
        """Predictions in each bin of the grid."""
        bins = np.searchsorted(_GRID[1:-1], batch.expected)
        return np.bincount(bins, batch.weight, minlength=len(_GRID) - 1)

    def range_of(self, k: int) -> tuple[float, float, float, float]:
        """The ends of the range of the k-th tilt, its shift, and the predictions in these bins."""
        shift, first, stop = self._place(k)
        low, high = np.interp(np.array([first, stop]) / _N_CELLS, self._below(), _GRID)
        low, high = (low if first else 0.0), (high if stop < _N_CELLS else 1.0)
        bins = np.searchsorted(_GRID[1:-1], [low, high])
        part = self.sums[0, bins[0] : bins[1] + 1].sum() / self.sums.sum()
        return float(low), float(high), shift, float(part)


def tilt_families(n_columns: int, ranges: bool = True) -> list[TiltFamily]:
    """Return families for predictions of so many columns, without what they may learn.

    ``ranges`` says whether a fifth of the wealth is bet on ranges.
    """
    families: list[TiltFamily] = [Shifts(), Slopes(), PivotedSlopes(), LearnedTilt(), LearnedBins()]
    if n_columns > 2:
        families += [ClassShifts(n_columns), LearnedShares(n_columns)]
    if ranges:
        families.append(Ranges(sum(family.share for family in families) / 4))
    return families


def tilted(batch: Batch, psi: np.ndarray) -> np.ndarray:
    """Return the law q ∝ p exp(ψ) of each row."""
    law = batch.proba * np.exp(psi)
    return law / law.sum(axis=1, keepdims=True)
