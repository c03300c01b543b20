"""The gaps of a scalar problem: sums of residuals at its distinct predictions, in canonical order.

Rows are sorted by prediction, outcome and weight, so that no digit depends on the order in which
they were passed. If the other outcome is called the event, the order is reversed.

Signed sums of residuals with few changes of sign give an upper limit of a mean absolute gap.
For a pattern of signs s(p) the mean of (y - p) s(p) estimates at most the mean absolute gap, and
just that if s is the sign of the gap. T_k is the largest such mean over patterns that change their
sign at most k times. T_k plus a half width is an upper limit for all curves that cross the diagonal
at most k times: the pattern of the true gap is fixed, so its noise is that of one mean. This needs
a half width that is no smaller than that of the true pattern. That of any pattern is as good for
independent samples. Groups add up in a constant pattern and cancel in an alternating one, so the
limit is the largest of T_j plus the half width of the pattern that attains T_j, for j = 0, …, k.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from skcal._groups import Groups
from skcal.metrics.statistic import ratio_of_shares
from skcal.notions import Problem
from skcal.table import cells

_SIGNED_CELLS, _CELLS_OF_GROUPS = 1024, 32  # whose signed sums have a noise that is known
_MOST_POINTS = 2**17  # between which signs change; of more, cells of equal mass
_LEAST_NOISE = 1e-9  # variance beside another
_NEAR_CELLS = 8  # cells in which predictions of a group are nearly equal
_GAP_ROUNDING = 1e-9
FOLDS = 10
_MOST_BY_RANK = 2**20  # samples of a table; those of more draw their folds row by row


def canonical_order(problem: Problem, beside: np.ndarray | None = None) -> np.ndarray:
    """The rows of a scalar problem by prediction, outcome, weight and group, whatever their order.

    Groups of votes have the numbers of their rows, but rows that agree in all else are alike. Above
    1/2 weights and groups fall, so that 1 - p and 1 - y have the reversed order. Rows that agree in
    all of these are in the order of ``beside``.
    """
    x, y = problem.features[:, 0], problem.outcomes[:, 0]
    keys = [problem.weight] + ([] if beside is None else [beside])
    if not problem.groups.independent:
        keys[1:1] = [problem.groups.alone, problem.groups.codes]
    if beside is None and problem.groups.independent and np.ptp(problem.weight) == 0:
        happened = y == 1
        if not y[~happened].any():  # x, whose bits rise with it, and y behind its last bit
            bits = np.add(x, 0.0, dtype=np.float64).view(np.uint64)
            return np.argsort((bits << np.uint64(1)) | happened)
    side = np.where(np.where(x == 0.5, y, x) < 0.5, -1, 1)
    keys = [key * side for key in reversed(keys) if np.ptp(key * 1.0) > 0]
    return np.lexsort((*keys, y, x))


def steps_from_middle(places: np.ndarray, n_steps: float) -> np.ndarray:
    """Numbers of the steps of length 1 in which places lie, 0 the middle of so many steps.

    Places and minus places have numbers of opposite sign.
    """
    phase = (np.rint(n_steps) / 2) % 1
    steps = np.abs(places)
    steps -= phase
    steps -= _GAP_ROUNDING
    return np.copysign(np.ceil(steps, out=steps), places, out=steps)


def in_canonical_order(problem: Problem) -> Problem:
    """The problem with its rows in that order, and its groups numbered as they come."""
    order = canonical_order(problem)
    taken = problem.take(order, order, problem.weight)
    taken = taken._replace(rows=slice(None), share=problem.share, weight=problem.weight[order])
    if problem.groups.independent:
        return taken
    _, first, codes = np.unique(taken.groups.codes, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    groups = replace(taken.groups, codes=rank[codes])
    residuals = problem.outcomes[order] - taken.features
    return taken._replace(groups=groups.about(taken.features, residuals))


def by_cells(x: np.ndarray, outcomes: np.ndarray, groups: Groups) -> np.ndarray:
    """Rows in canonical order, sorted by the cell of a table, the outcome and the group.

    So a table, which does not know the order within its cells, divides them among the same folds.
    """
    place = 3 * cells(x) + (outcomes > _GAP_ROUNDING) + (outcomes > 1 - _GAP_ROUNDING)
    if groups.independent:
        return np.argsort(place, kind="stable")
    side = np.where(np.where(x == 0.5, outcomes, x) < 0.5, -1, 1)
    return np.lexsort((groups.codes * side, groups.alone * side, place))


def drawn_by_rank(n: int) -> np.ndarray:
    """Numbers in [0, 1) of n ranks by a fixed seed; those of both ends mirror each other."""
    half = np.random.default_rng(0).random((n + 1) // 2)
    return np.append(half, half[: n // 2][::-1])


def in_folds(problem: Problem) -> tuple[Problem, np.ndarray]:
    """The rows of a counted problem in canonical order, divided among folds, and the fold of each.

    Samples of a row are exchangeable, so that the folds of their ranks divide them as well as those
    of a draw that knew each. Unequal weights count as their effective number of equal ones.
    """
    counts = problem.sizes
    numbers = np.clip(np.rint(1 / problem.counted.uneven), 1, counts).astype(np.intp)
    if counts.sum() > _MOST_BY_RANK:
        drawn = np.random.default_rng(0).multinomial(numbers, np.full(FOLDS, 1 / FOLDS))
    else:
        order = by_cells(problem.features[:, 0], problem.outcomes[:, 0], problem.groups)
        row = np.repeat(order, counts[order])
        ends = np.cumsum(counts[order])
        place = np.arange(len(row)) - np.repeat(ends - counts[order], counts[order])
        kept = place < numbers[row]
        fold = (FOLDS * drawn_by_rank(len(row))).astype(np.intp)
        drawn = np.bincount(FOLDS * row[kept] + fold[kept], minlength=FOLDS * len(counts))
        drawn = drawn.reshape(-1, FOLDS)
    row, fold = np.nonzero(drawn)
    part, n = drawn[row, fold], numbers[row]
    counted = problem.counted.take(row)
    counted = counted._replace(counts=counted.counts * part / n, uneven=counted.uneven * n / part)
    parts = problem.features[row], problem.residuals[row], problem.weight[row] * part / n
    rows = row if isinstance(problem.rows, slice) else problem.rows[row]
    return Problem(*parts, problem.share, rows=rows, counted=counted), fold


@dataclass(frozen=True, eq=False)
class GapSums:
    """A scalar problem with its rows in canonical order.

    Attributes
    ----------
    x, residuals : ndarray of shape (n_rows,)
        Predictions in increasing order, and outcomes less predictions.
    weight : ndarray of shape (n_rows,)
        Weights with the sum 1.
    implied : ndarray of shape (n_rows,)
        The variance of each weighted residual if predictions are calibrated.
    groups : skcal._groups.Groups
        Groups of which one holds several rows, or of independent rows.
    rows : ndarray of shape (n_rows,)
        The row of the sample to which each belongs.
    starts : ndarray of shape (n_points,)
        The first row of each distinct prediction.
    squares, seen : ndarray of shape (n_rows,)
        Σ w² and Σ w² δ² of each row, which is one sample or several.
    given_folds : ndarray of shape (n_rows,) or None
        The fold of each row that is several samples.
    """

    x: np.ndarray
    residuals: np.ndarray
    weight: np.ndarray
    implied: np.ndarray
    groups: Groups
    rows: np.ndarray
    starts: np.ndarray
    squares: np.ndarray
    seen: np.ndarray
    given_folds: np.ndarray | None = None

    @classmethod
    def of(cls, problem: Problem, beside: np.ndarray | None = None) -> GapSums:
        """Sort the rows of a problem; of equal ones by what else is known of them."""
        folds: Any = None
        if problem.counted is not None:
            problem, folds = in_folds(problem)
        order = canonical_order(problem, beside)
        x = problem.features[order, 0].astype(np.float64)
        residuals = problem.outcomes[order, 0] - x
        weight = problem.weight[order]
        weight = weight / weight.sum()
        squares, seen = weight**2, (weight * residuals) ** 2
        if problem.counted is not None:
            counted, folds = problem.counted.take(order), folds[order]
            squares = squares * counted.uneven
            seen = squares * (residuals**2 + counted.scatter)
        implied = squares * x * (1 - x)
        groups = problem.groups.take(order).about(x[:, None], residuals[:, None])
        if problem.of_shares:  # whose law is not known but for their variance
            several = slice(None) if groups.independent else ~groups.alone
            implied[several] *= min(1.0, ratio_of_shares(problem))
        rows = order if isinstance(problem.rows, slice) else problem.rows[order]
        starts = np.append(0, np.flatnonzero(np.diff(x)) + 1)
        parts = x, residuals, weight, implied, groups.of_several(), rows, starts
        return cls(*parts, squares, seen, folds)

    def at_points(self, values: np.ndarray) -> np.ndarray:
        """Sums of values (n_rows,) over each distinct prediction."""
        if len(self.starts) == len(values):
            return values
        return np.add.reduceat(values, self.starts)

    @cached_property
    def steps(self) -> np.ndarray:
        """Σ w δ at each distinct prediction."""
        return self.at_points(self.weight * self.residuals)

    @property
    def bias(self) -> float:
        """The mean residual."""
        return float(self.steps.sum())

    @cached_property
    def n_effective(self) -> float:
        """How many independent samples of equal weight would tell as much, 1 / Σ w² of such."""
        n = 1 / float(np.sort(self.squares).sum())
        return n if self.repeated == 1 else round(n / self.repeated, 6)  # cells ask for whole ones

    @cached_property
    def repeated(self) -> float:
        """By how much dependence within groups multiplies variances of nearly equal predictions.

        It is the effect of pairs of a group that share one of eight cells of equal mass, beyond
        those of groups that are spread over all predictions.
        """
        if self.groups.strength == 0:
            return 1.0
        mass, own = self.at_points(self.weight), float(self.squares.sum())
        middle = np.cumsum(mass) - mass / 2 - 0.5
        near, by_chance = [], []
        for shift in (0, 1):
            steps = steps_from_middle(_NEAR_CELLS * middle, _NEAR_CELLS + shift)
            cells = self.of_rows(np.unique(steps, return_inverse=True)[1])
            place = self.groups.cells(cells, cells.max() + 1)[1]
            near.append((np.bincount(place, self.weight) ** 2).sum())
            by_chance.append((np.bincount(cells, self.weight) ** 2).sum())
        pairs, chance = (self.groups.sums(self.weight) ** 2).sum() - own, np.mean(by_chance)
        excess = (np.mean(near) - own - chance * pairs) / max(1 - chance, _GAP_ROUNDING)
        return 1 + self.groups.strength * max(float(excess) / own, 0.0)

    @cached_property
    def variances(self) -> tuple[float, float]:
        """The variance of the mean residual, as observed in independent rows and as implied."""
        return float(self.seen.sum()), float(self.implied.sum())

    def in_cells(self, most: int) -> np.ndarray:
        """The cell of each distinct prediction, of at most so many cells of equal mass."""
        return _of_equal_mass(self.at_points(self.weight), most)

    @property
    def folds(self) -> np.ndarray:
        """A number below FOLDS of each row, of groups together, by a fixed seed."""
        if self.given_folds is not None:
            return self.given_folds
        n = len(self.x)
        drawn = np.empty(n)
        drawn[by_cells(self.x, self.x + self.residuals, self.groups)] = drawn_by_rank(n)
        drawn = self.groups.sums(drawn)[self.groups.units(n)] % 1
        return (FOLDS * drawn).astype(np.intp)

    def variances_in(self, cells: np.ndarray) -> np.ndarray:
        """Σ of the squares of w δ in each cell of distinct predictions, of a group together."""
        if self.given_folds is not None:
            return np.bincount(self.of_rows(cells), self.seen)
        terms = self.weight * self.residuals
        return self.groups.squares_of_cells(terms, self.of_rows(cells), cells.max() + 1)

    def covariances(self, cells: np.ndarray) -> tuple:
        """Those of :meth:`Groups.covariances`, of w δ in cells of distinct predictions."""
        of_rows, n_cells = self.of_rows(cells), cells.max() + 1
        return self.groups.covariances(self.weight, self.residuals, self.x, of_rows, n_cells)

    def of_rows(self, values: np.ndarray) -> np.ndarray:
        """What belongs to each distinct prediction, for each row."""
        if len(self.starts) == len(self.x):
            return values
        return np.repeat(values, np.diff(self.starts, append=len(self.x)))

    def variance_of_groups(self, signs: np.ndarray) -> float:
        """Variance of Σ w y times signs of the rows, as dependent as outcomes of a group are."""
        return float(self.groups.covariance(self.weight * signs, self.x))

    @property
    def variance_of_all(self) -> float:
        """Variance of the mean residual of groups, as observed and as their dependence says."""
        sums = self.groups.sums(self.weight * self.residuals)
        return max(float(sums @ sums), self.variance_of_groups(np.ones(len(self.x))))

    @cached_property
    def coarse(self) -> np.ndarray:
        """The cell of each distinct prediction, in which independent steps are taken.

        Cells of a table are whole in them, so that tables and samples take the same steps.
        """
        point = np.cumsum(np.diff(cells(self.x[self.starts]), prepend=-1) > 0) - 1
        most = _SIGNED_CELLS if self.groups.independent else _CELLS_OF_GROUPS
        return _of_equal_mass(np.bincount(point, self.at_points(self.weight)), most)[point]

    @cached_property
    def independent_steps(self) -> tuple[np.ndarray, np.ndarray]:
        """Σ w δ in the coarse cells, and variances of independent sums that vary as much.

        For groups these variances are no smaller than the covariance of the cells in any direction,
        so that signed sums of independent steps are no smaller, either (Anderson's inequality).
        """
        cells = self.coarse
        steps = np.bincount(cells, self.steps)
        seen, implied = self.variances
        variances: np.ndarray = np.bincount(cells, self.at_points(self.implied))
        if implied <= _LEAST_NOISE * seen:
            variances = np.bincount(cells, self.at_points(self.seen))
        elif seen > implied:
            variances = variances * (seen / implied)
        covariances = self.covariances(cells)
        if covariances:
            # A cell of predictions of 0 and 1 has no implied variance, but what was seen.
            variances = np.maximum.reduce([variances, *map(np.diagonal, covariances)])
            scales = np.sqrt(np.maximum(variances, _LEAST_NOISE * variances.sum()))
            products = np.outer(scales, scales)
            largest = [np.linalg.eigvalsh(matrix / products)[-1] for matrix in covariances]
            variances = variances * max(1.0, *largest)
        return steps, variances

    def largest_patterns(self, changes) -> list[np.ndarray]:
        """Signs of the rows that make their sum of w δ largest, with at most k changes, each k."""
        cells = self.in_cells(_MOST_POINTS)
        patterns = largest_patterns(np.bincount(cells, self.steps), changes)
        return [self.of_rows(signs[cells]) for signs in patterns]


def _of_equal_mass(mass: np.ndarray, most: int) -> np.ndarray:
    """The cell of each point of a mass, of at most so many cells of equal mass."""
    if len(mass) <= most:
        return np.arange(len(mass))
    middle = np.cumsum(mass)
    middle -= mass / 2
    middle -= 0.5
    middle *= most
    steps, cell = steps_from_middle(middle, most), np.zeros(len(mass), dtype=np.intp)
    np.cumsum(steps[1:] > steps[:-1], out=cell[1:])
    return cell


#: Changes of sign whose T_k are compared.
CHANGES = (0, 1, 2, 3, 4, 6, 9, 14, 22, 34)
CROSSINGS = 3  # of the diagonal, that calibration_error allows
# Mean and standard deviation of T_k of a Brownian motion on [0, 1]: 4,000 to 8,000 paths of 256,
# 1,024 and 4,096 steps, of which each change of sign misses _OF_STEPS standard deviations of a step
# (Siegmund 1985).
_MEANS = np.array([0.80, 1.97, 2.77, 3.40, 3.94, 4.84, 5.95, 7.44, 9.35, 11.63])
_DEVIATIONS = np.array([0.603, 0.580, 0.577, 0.576, 0.578, 0.579, 0.580, 0.581, 0.582, 0.584])
_OF_STEPS = 1.165
_OF_ALL = 0.25  # changes for each step, up to which that is so
# Standard errors by which more changes of sign must be larger to be evident, and by which others
# may be less evident than the best; how much faster than that an upper limit grows.
_EVIDENT, _AS_GOOD, _TIMES = 0.7, 0.5, 2.5


def largest_signed_sums(steps: np.ndarray, most: int) -> np.ndarray:
    """T_0, …, T_most (most + 1, …): the largest sums of steps times signs that change k times.

    Of steps (n_steps,), or of a few steps of many draws (n_draws, n_steps). Signs may change less
    often than that.
    """
    if steps.ndim == 1:
        path = np.append(0.0, np.cumsum(steps))
        best = np.array([[row[-1] for row in _values(path, first, most)] for first in (1, -1)])
    else:  # all draws at a step in turn, where they go on or change their sign
        signs = np.resize([1.0, -1.0], most + 1)[:, None] * np.array([1, -1])[:, None, None]
        best = np.zeros((2, most + 1, len(steps)))
        for step in steps.T:
            np.maximum(best[:, 1:], best[:, :-1], out=best[:, 1:])
            best += signs * step
    return np.maximum.accumulate(best.max(axis=0), axis=0)


def largest_patterns(steps: np.ndarray, changes) -> list[np.ndarray]:
    """Signs of the steps that attain T_k, for each k of the changes."""
    path = np.append(0.0, np.cumsum(steps))
    by_first = {first: list(_values(path, first, max(changes))) for first in (1, -1)}
    sums = [(row[-1], -k, -first) for first, rows in by_first.items() for k, row in enumerate(rows)]
    patterns = []
    for most in changes:
        _, k, first = max(each for each in sums if each[1] >= -most)
        k, first, values = -k, -first, by_first[-first]
        signs, end = np.empty(len(steps)), len(steps)
        for change in range(k, -1, -1):
            sign = first * (-1) ** change
            start = int(np.argmax((values[change - 1] - sign * path)[: end + 1])) if change else 0
            signs[start:end], end = sign, start
        patterns.append(signs)
    return patterns


def _values(path, sign, most):
    """Yield for each k the largest signed sum up to each place, that starts with this sign."""
    value = sign * path
    yield value
    for _ in range(most):
        sign = -sign
        value = np.maximum.accumulate(value - sign * path, axis=-1) + sign * path
        yield value


def noise_of_sums(variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of T_k, k of CHANGES, of independent steps of these variances."""
    total = variances.sum()
    if total <= 0:
        return np.zeros(len(CHANGES)), np.zeros(len(CHANGES))
    changes, coarseness = np.array(CHANGES), (variances**1.5).sum() / total**1.5
    missed = np.where(changes * coarseness**2 < _OF_ALL, _OF_STEPS * changes * coarseness, 0)
    of_all = np.sqrt(2 / np.pi * variances).sum()  # the mean of the sum of all absolute steps
    means = np.minimum(np.sqrt(total) * (_MEANS - missed), max(of_all, np.sqrt(total)))
    return means, np.sqrt(total) * _DEVIATIONS


def noise_of_fine_sums(variance: float) -> np.ndarray:
    """Mean of T_k, k of CHANGES, of very many small steps of this variance together."""
    return np.sqrt(variance) * _MEANS


def excess_of_more_changes(sums, means, deviation: float, changes: int) -> np.ndarray:
    """What to add to T_k where more changes of sign are evident.

    Parameters
    ----------
    sums : ndarray of shape (n_changes, …)
        T_k for k of CHANGES.
    means : ndarray of shape (n_changes,)
        Means of those of noise alone.
    deviation : float
        The standard deviation of a mean of signed residuals.
    changes : int
        k.
    """
    gains = (sums.T - means).T
    more = np.array(CHANGES) > changes
    if not more.any():
        return np.zeros(sums.shape[1:])
    best = gains[more].max(axis=0)
    excess = best - at_changes(gains, changes) - _EVIDENT * deviation
    as_good = gains[more] >= best - _AS_GOOD * deviation
    covering = np.where(as_good, sums[more], np.inf).min(axis=0) - at_changes(sums, changes)
    return np.clip(_TIMES * excess, 0, np.maximum(covering, 0))


def at_changes(values: np.ndarray, changes: int) -> np.ndarray:
    """Values (n_changes, …), for k of CHANGES, at another k; those of the last k beyond it."""
    after = int(np.searchsorted(CHANGES, changes))
    if after == len(CHANGES) or CHANGES[after] == changes:
        return values[min(after, len(CHANGES) - 1)]
    below, above = CHANGES[after - 1 : after + 1]
    part = (changes - below) / (above - below)
    return (1 - part) * values[after - 1] + part * values[after]
