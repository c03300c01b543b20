"""Gaussian models of the gaps of a calibration curve, averaged by their evidence in closed form.

Sums of residuals in cells of predictions are the gaps plus noise of known variance. A model says
how gaps of different cells hang together (they are constant, on a line, on a parabola, smooth in
probabilities, logits or ranks, independent, or off in few cells only) and how large they are.
Posterior means, weighted by the evidence of each model and of "calibrated", estimate the gaps and
their mean absolute value. There are neither draws nor folds. Gaps of several classes have a curve
in common, and offsets or models of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logit, ndtr

from skcal._groups import INDEPENDENT, Groups
from skcal._running import one_blas_thread, over_jobs
from skcal.metrics.gap_sums import FOLDS, GapSums, steps_from_middle

_CALIBRATED = 0.18  # prior probability that all gaps are 0
_SMALLEST, _LARGEST = 1.25, 16.0  # scales: in standard errors of a mean, and of p (1 - p)
_TYPICAL = 1.5  # above which larger scales are less likely
_WIDTHS, _RANGES = (0.15, 0.07, 0.03), (0.6, 0.2, 0.07, 0.025)  # of Gaussian, exponential kernels
_SIMPLE = 2.7  # odds of a constant and of a line, beside those of other kernels
_SPARSE = 0.54  # odds of all partitions together, of which each coarse cell is off with _OFF
_OFF = 0.1
_OWN = 0.1  # variance of the gap of one prediction beside what a shape gives it
_FAR = 5.0  # standard errors from 0, from which the gap of one prediction is read as it is
_APART = 0.05  # prior probability that such gaps say nothing about the others
_PARTITIONS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_FARTHEST = 7.0  # logits that are told apart
_MOST_CELLS, _MANY, _MOST_OF_MANY = 96, 5000, 128
_FEWEST = 6  # samples of a cell
_LEAST = 0.7  # variance of a cell
_ROUNDING = 1e-9
_SEEN = 2.0  # standard deviations of a variance that was seen, by which it may exceed another
_NEAR, _AS_EXPECTED = 0.06, 30  # of the local variance beside the implied one


class Cells(NamedTuple):
    """Neighbouring predictions together, in increasing order; counts are effective ones.

    Attributes
    ----------
    mass, sums : ndarray of shape (n_cells,)
        Numbers of samples and sums of residuals.
    noise : ndarray of shape (n_cells,)
        The variance of each sum.
    chance : ndarray of shape (n_cells,)
        Sums of p (1 - p).
    p : ndarray of shape (n_cells,)
        Mean predictions.
    alone, far : ndarray of bool of shape (n_cells,)
        Which cells hold one distinct prediction, and of which of these the gap is far from 0.
    cell : ndarray of shape (n_points,)
        The cell of each distinct prediction.
    """

    mass: np.ndarray
    sums: np.ndarray
    noise: np.ndarray
    chance: np.ndarray
    p: np.ndarray
    alone: np.ndarray
    far: np.ndarray
    cell: np.ndarray


def cells_of(gaps: GapSums) -> Cells:
    """Cells of equal mass and of enough variance, none on both sides of 1/2.

    A prediction of as much mass as a cell is one by itself. If there are few predictions, each is.
    """
    n = gaps.n_effective
    mass, implied = (
        gaps.at_points(gaps.weight) * n,
        gaps.at_points(gaps.implied) * n**2 * gaps.repeated,
    )
    p, total = gaps.x[gaps.starts], implied.sum()
    side = np.sign(p - 0.5).astype(np.intp)
    most = min(_MOST_CELLS if n < _MANY else _MOST_OF_MANY, max(4, int(n) // _FEWEST))
    most_by_variance = max(1, min(most, int(total / _LEAST)))
    density, chance = most * mass / n, mass * p * (1 - p)
    by_itself = (density >= 1 - _ROUNDING) | (len(p) <= most)
    np.minimum(density, 2 * most_by_variance * chance / max(chance.sum(), 1e-300), out=density)
    density[by_itself] = 0
    middle = np.cumsum(density) - (density + density.sum()) / 2
    steps = 3 * steps_from_middle(middle, density.sum()) + side
    begins = (np.diff(steps, prepend=steps[0] - 1) != 0) | by_itself
    begins[1:] |= by_itself[:-1]
    fine, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    seen = gaps.at_points(gaps.seen) * n**2
    cell = _joined(np.bincount(fine, implied), np.bincount(fine, seen), side[first])[fine]
    size, sums, variance, chance, mean = (
        np.bincount(cell, values)
        for values in (
            mass,
            gaps.steps * n,
            implied,
            gaps.at_points(gaps.weight * gaps.x * (1 - gaps.x)) * n,
            mass * p,
        )
    )
    noise, seen = np.maximum(variance, _LEAST), gaps.variances_in(cell) * n**2
    rank = (np.cumsum(size) - size / 2) / n
    near = np.exp(-0.5 * ((rank[:, None] - rank) / _NEAR) ** 2)
    noise = noise * np.maximum(1, (near @ seen + _AS_EXPECTED) / (near @ noise + _AS_EXPECTED))
    noise = np.maximum(noise, seen - _SEEN * np.sqrt(seen))
    alone = np.bincount(cell) == 1
    far = alone & (np.abs(sums) > _FAR * np.sqrt(noise))
    if not gaps.groups.independent:  # whose samples may lie in several cells
        noise = noise * max(1.0, gaps.variance_of_all * n**2 / noise.sum())
    chance = np.maximum(chance, _LEAST)
    return Cells(size, sums, noise, chance, mean / size, alone, far, cell)


def _joined(implied, seen, side) -> np.ndarray:
    """New numbers: a cell of little variance joins the next towards 1/2, the last the one before.

    Cells with more events than predictions close to 0 or 1 explain are not joined.
    ``side`` is -1, 0 or 1 where predictions are below 1/2, equal to it or above it.
    """
    label, k = np.zeros(len(implied), dtype=np.intp), 0
    for places in (np.flatnonzero(side == sign)[:: -sign or 1] for sign in (-1, 0, 1)):
        first, filled, events = k, 0.0, 0.0
        for i in places:
            label[i], filled, events = k, filled + implied[i], events + seen[i]
            surprising = events >= filled + 2 * np.sqrt(filled) + _LEAST
            if filled >= _LEAST or surprising:
                k, filled, events = k + 1, 0.0, 0.0
        rest = places[label[places] == k]
        label[rest] -= k > first
        k += bool(len(rest) and k == first)
        if len(places) and side[places[0]] > 0:
            label[places] = first + k - 1 - label[places]
    return label


def held_out_gaps(gaps: GapSums) -> tuple[Cells, np.ndarray]:
    """Cells, and the gaps (FOLDS, n_cells) of each as the other folds predict them."""
    cells, folds = cells_of(gaps), gaps.folds
    models, n = GapModels(cells), len(cells.mass)
    places = n * folds + gaps.of_rows(cells.cell)
    sums = np.bincount(places, gaps.weight * gaps.residuals, FOLDS * n).reshape(-1, n)
    part = 1 - np.bincount(folds, gaps.weight, FOLDS)  # of the weight, in the other folds
    train = gaps.n_effective * (sums.sum(axis=0) - sums) / np.sqrt(np.maximum(part, 0.5))[:, None]
    return cells, np.array([models.average(of_others)[1] for of_others in train])


class GapModels:
    """Models of the gaps of some cells.

    Parameters
    ----------
    cells : Cells
    """

    @one_blas_thread()  # matrices are small
    def __init__(self, cells: Cells):
        self.mass, _, noise, chance, p, alone, self.far, _ = cells
        self.share, self.deviation = self.mass / self.mass.sum(), np.sqrt(noise)
        if self.far.all():
            return
        if self.far.any():
            named = zip(cells._fields[:-1], cells[:-1], strict=True)
            near = {name: values[~self.far] for name, values in named}
            self.others = GapModels(cells._replace(**near))
        self.density = self.mass / self.deviation
        rank = np.cumsum(self.share) - self.share / 2
        smallest = _SMALLEST / np.sqrt(chance.sum())
        n_scales = max(2, np.ceil(np.log2(_LARGEST / smallest)) + 1)
        scales = smallest * 2.0 ** np.arange(n_scales)
        self.squares, self.log_prior = scales**2, -np.log1p((scales / _TYPICAL) ** 1.5)
        of_cell, mean = chance / self.mass, chance.sum() / self.mass.sum()
        equal = np.full(len(of_cell), mean)
        self.amplitudes = np.stack([of_cell, np.sqrt(of_cell * mean), equal])
        kernels, odds = _kernels(rank, p, chance)
        kernels += _OWN * np.diag(alone.astype(float))
        scaled = self.density * self.amplitudes
        grams = scaled[:, None, :, None] * kernels * scaled[:, None, None, :]
        values, vectors = np.linalg.eigh(grams.reshape(-1, *kernels.shape[1:]))
        signal = self.squares[:, None] * np.maximum(values, 0)[:, None]
        self.turned, self.kept = vectors.transpose(0, 2, 1), signal / (1 + signal)
        self.log_noise = np.log1p(signal).sum(axis=2)
        variance = np.maximum(self.kept @ self.turned**2, 1e-12)
        self.spread = np.sqrt(variance) / self.density
        self.partitions = [
            np.unique(steps_from_middle(size * (rank - 0.5), size + shift), return_inverse=True)[1]
            for size in _PARTITIONS
            for shift in ((0, 1) if size > 3 else (0,))
        ]
        labels = np.array([self.partitions] * len(self.amplitudes))
        self.sizes = labels.reshape(-1, len(p)).max(axis=1) + 1  # numbers of parts
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.part = labels + self.starts.reshape(labels.shape[:2])[..., None]
        squares = self.squares[:, None]
        noise = squares * self._in_parts(scaled * scaled)
        self.kept_of_parts, self.log_noise_of_parts = squares / (1 + noise), np.log1p(noise)
        smooth = np.log(np.tile(odds, len(self.amplitudes)))[:, None] + self.log_prior
        log_prior = self.log_prior + np.log(_SPARSE / len(self.partitions))
        sparse = np.repeat(log_prior[:, None], len(self.sizes), axis=1)
        whole = np.log(np.exp(smooth).sum() + np.exp(sparse).sum()) - np.log1p(-_CALIBRATED)
        self.log_priors = smooth - whole, sparse - whole

    def _in_parts(self, values) -> np.ndarray:
        """Sums (n_parts,) of values (n_amplitudes, n_cells) over the parts of all partitions."""
        values = np.broadcast_to(values[:, None], self.part.shape)
        return np.bincount(self.part.ravel(), values.ravel())

    def average(self, sums: np.ndarray) -> tuple[float, np.ndarray]:
        """Posterior means of the mean absolute gap, and of the gap of each cell.

        Parameters
        ----------
        sums : ndarray of shape (n_cells,)
            Sums of residuals.
        """
        _, means = self.posterior(sums)
        return float(self.share @ means[0]), means[1]

    def posterior(self, sums: np.ndarray) -> tuple[float, np.ndarray]:
        """Log evidence beside that of no gaps, and mean absolute and mean gaps (2, n_cells).

        Gaps that are far from 0 are read as they are.
        """
        far, observed = self.far, sums / self.mass
        read = np.stack([np.abs(observed), observed])
        any_gap = np.sqrt(np.pi / 2) * self.deviation / self.mass  # evenly from -1 to 1
        log_far = (np.log(any_gap * _OFF) + (sums / self.deviation) ** 2 / 2)[far].sum()
        if far.all():
            return float(log_far), read
        log, means = self._of_models(sums / self.deviation)
        if far.any():  # either the models hold for all, or for the others only
            log_others, others = self.others.posterior(sums[~far])
            log_apart = np.log(_APART) + log_far + log_others
            total = np.logaddexp(np.log1p(-_APART) + log, log_apart)
            means[:, ~far] += np.exp(log_apart - total) * (others - means[:, ~far])
            log, means[:, far] = total, read[:, far]
        return float(log), means

    @one_blas_thread()
    def _of_models(self, z) -> tuple[float, np.ndarray]:
        """Log evidence, and means (2, n_cells), of the models of all cells."""
        y = np.einsum("k,mjk->mj", z, self.turned)[:, None]
        smooth = 0.5 * ((self.kept * y * y).sum(axis=2) - self.log_noise)
        sums = self._in_parts(self.density * self.amplitudes * z)  # of cells that are off or not
        gaps_of_parts = sums * self.kept_of_parts
        off = np.log(_OFF) + 0.5 * (sums * gaps_of_parts - self.log_noise_of_parts)
        either = np.logaddexp(np.log1p(-_OFF), off)
        sparse = np.add.reduceat(either, self.starts, axis=1)
        logs = [a + b for a, b in zip(self.log_priors, (smooth, sparse), strict=True)]
        log = np.logaddexp.reduce(np.concatenate([values.ravel() for values in logs]))
        total = np.logaddexp(log, np.log(_CALIBRATED))
        smooth, sparse = (np.exp(values - total) for values in logs)
        gaps = (self.kept * y) @ self.turned / self.density
        absolute = mean_absolute(gaps, self.spread)
        means = np.stack([np.einsum("ms,msk->k", smooth, values) for values in (absolute, gaps)])
        chance = np.repeat(sparse, self.sizes, axis=1) * np.exp(off - either)
        absolute = mean_absolute(gaps_of_parts, np.sqrt(self.kept_of_parts))
        of_parts = np.stack([(chance * values).sum(axis=0) for values in (absolute, gaps_of_parts)])
        return total, means + (of_parts[:, self.part] * self.amplitudes[:, None]).sum(axis=(1, 2))


def _kernels(rank, p, chance) -> tuple[np.ndarray, list[float]]:
    """Covariances (n_kernels, k, k) of the gaps of cells, and their odds."""
    a = np.clip(logit(np.clip(p, 1e-7, 1 - 1e-7)), -_FARTHEST, _FARTHEST)
    x = a - chance @ a / chance.sum()
    x = np.clip(x / max(np.sqrt(chance @ x**2 / chance.sum()), 1e-3), -3, 3)
    ranks, probabilities, logits = (np.abs(c[:, None] - c) for c in (rank, p, a / 6))
    line = 1 + np.outer(x, x)
    parabola = line + 0.5 * np.outer(x * x - 1, x * x - 1)
    kernels = [np.ones_like(line), line, parabola, np.eye(len(p))]
    odds = [_SIMPLE, _SIMPLE] + [1.0] * (2 + len(_RANGES) + 2 * len(_WIDTHS))
    for width in _RANGES:
        kernels.append((np.exp(-probabilities / width) + np.exp(-logits / width)) / 2)
    for width in _WIDTHS:
        near_rank, near_p, near_logit = (
            np.exp(-0.5 * (c / width) ** 2) for c in (ranks, probabilities, logits)
        )
        kernels += [near_rank, (near_p + near_logit) / 2]
    return np.stack(kernels), odds


def mean_absolute(mean, deviation):
    """The mean of the absolute value of a normal variable."""
    x = mean / deviation
    return deviation * np.sqrt(2 / np.pi) * np.exp(-x * x / 2) + mean * (2 * ndtr(x) - 1)


FEWEST_POOLED = 3  # classes; of two, each is the other one's mirror
_OFFSETS = np.append(0, 0.04 * 2.0 ** np.arange(6))  # deviations of log-odds, 0 half of the time
_SHARED = np.array([0.5, 0.9, 0.99])[:, None]  # probabilities that a class is like the others


def pooled_error(
    parts: Sequence[GapSums], shares: Sequence[float], groups: Groups, between: float = 0.0
) -> float:
    """Posterior mean of the mean absolute gap of several classes.

    Parameters
    ----------
    parts : sequence of GapSums
        Of each class.
    shares : sequence of float
        The share of each in the error.
    groups : Groups
        Of the samples.
    between : float, default=0
        Of sums, what pairs of classes add to the variance of the sum of all residuals.
    """
    pooled, member = _pooled(parts, shares)
    n, cells = pooled.n_effective, cells_of(pooled)
    together = _together(pooled, parts, shares, groups, between) * n**2 / cells.noise.sum()
    cells = cells._replace(noise=cells.noise * max(1.0, together))
    n_cells, everybody = len(cells.mass), np.ones(len(parts), dtype=bool)
    places = member * n_cells + pooled.of_rows(cells.cell)
    weight, variance = pooled.weight, pooled.x * (1 - pooled.x)
    mass, sums, implied, chance = (
        np.bincount(places, values, len(parts) * n_cells).reshape(-1, n_cells)
        for values in (
            weight * n,
            weight * pooled.residuals * n,
            pooled.implied * n**2 + 1e-9 * weight * n,
            weight * variance * n,
        )
    )
    noise = np.maximum(implied * (cells.noise / implied.sum(axis=0)), 1e-300)
    own = np.array(over_jobs([(_own, part) for part in parts], prefer="threads")).T
    of_classes = mass, sums, noise, chance
    error, like_others = _mixture(*of_classes, _curve(cells, *of_classes, everybody), own, shares)
    if like_others.all() or not like_others.any():
        return error
    curve = _curve(cells, *of_classes, like_others)  # without those that have their own
    return _mixture(*of_classes, curve, own, shares)[0]


def _curve(cells, mass, sums, noise, chance, kept) -> np.ndarray:
    """Mean absolute and mean gaps (2, n_cells) of the classes that are kept."""
    shares = [
        np.maximum(values[kept].sum(axis=0) / np.maximum(values.sum(axis=0), 1e-300), 1e-6)
        for values in (mass, noise, chance)
    ]
    mass, noise, chance = (
        share * of_all
        for share, of_all in zip(shares, (cells.mass, cells.noise, cells.chance), strict=True)
    )
    cells = cells._replace(mass=mass, sums=sums[kept].sum(axis=0), noise=noise, chance=chance)
    return GapModels(cells).posterior(cells.sums)[1]


def _mixture(mass, sums, noise, chance, curve, own, shares) -> tuple[float, np.ndarray]:
    """The error, and which classes are rather like the others."""
    absolute, gap = curve
    log_own, of_own = own
    # Normal offsets o of the log-odds, beside the gaps of all.
    squares, signal = _OFFSETS[:, None] ** 2, mass * gap
    like_all = (signal * (sums - signal / 2) / noise).sum(axis=1)
    score = ((sums - signal) * chance / noise).sum(axis=1)
    information = (chance**2 / noise).sum(axis=1)
    kept = squares / (1 + information * squares)
    like_all = like_all + (score**2 * kept - np.log1p(information * squares)) / 2
    slope = chance / np.maximum(mass, 1e-300)
    spread = np.maximum(np.pi / 2 * (absolute**2 - gap**2), 1e-16)
    deviation = np.sqrt(spread + kept[..., None] * slope**2)
    of_all = mean_absolute(gap + (score * kept)[..., None] * slope, deviation)
    of_all = (of_all * mass).sum(axis=2) / mass.sum(axis=1)
    # Whether a class is like the others, and the evidence of all classes.
    shared = np.log(_SHARED) + like_all[:, None]
    both = np.logaddexp(shared, np.log1p(-_SHARED) + log_own)
    part = np.exp(shared - both)
    errors = (part * of_all[:, None] + (1 - part) * of_own) @ np.asarray(shares)
    evidence = both.sum(axis=2)
    evidence[0] += np.log(len(_OFFSETS) - 1)
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    return float((weights * errors).sum()), np.einsum("os,osk->k", weights, part) > 0.5


def _own(part: GapSums) -> tuple[float, float]:
    """Log evidence of the models of a class by itself, and its error."""
    cells = cells_of(part)
    log_evidence, (absolute, _) = GapModels(cells).posterior(cells.sums)
    return log_evidence, float(cells.mass @ absolute / cells.mass.sum())


def _pooled(parts, shares) -> tuple[GapSums, np.ndarray]:
    """The rows of all classes as those of one, and the class of each."""
    squared = [share**2 * part.repeated for part, share in zip(parts, shares, strict=True)]

    def of_all(name, factors=None):
        values = [getattr(part, name) for part in parts]
        if factors is not None:
            values = [f * value for f, value in zip(factors, values, strict=True)]
        return np.concatenate(values)

    order = np.lexsort((of_all("weight", shares), of_all("residuals"), of_all("x")))
    member = np.repeat(np.arange(len(parts)), [len(part.x) for part in parts])[order]
    x, residuals, rows = (of_all(name)[order] for name in ("x", "residuals", "rows"))
    weight = of_all("weight", shares)[order]
    implied, squares, seen = (
        of_all(name, squared)[order] for name in ("implied", "squares", "seen")
    )
    starts = np.append(0, np.flatnonzero(np.diff(x)) + 1)
    folds = None if parts[0].given_folds is None else of_all("given_folds")[order]
    known = weight, implied, INDEPENDENT, rows, starts, squares, seen
    return GapSums(x, residuals, *known, folds), member


def _together(pooled: GapSums, parts, shares, groups: Groups, between: float) -> float:
    """Variance of the sum of all residuals, of samples and groups that err together."""
    if pooled.given_folds is not None:
        return float(pooled.seen.sum()) + between
    n = int(pooled.rows.max()) + 1
    sums = np.bincount(groups.units(n)[pooled.rows], pooled.weight * pooled.residuals)
    together = float(np.sort(sums**2).sum())
    if parts[0].groups.independent:
        return together
    of_classes = [part.variance_of_all for part in parts]
    return max(together, float(np.square(shares) @ of_classes))
