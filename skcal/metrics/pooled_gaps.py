"""Gaps of several classes: what they have in common, offsets of classes, and models of each class.

Few samples of each of many classes say little about each. Together they say how large gaps are:

1. one curve of the gaps of all pairs of a sample and a class, by :mod:`skcal.metrics.gap_models`;
2. beside it an offset of each class in the log-odds, normal with a variance that all share;
3. or the models of that class by itself.

A class has 3. instead of 1. and 2. with some probability. The evidence of all classes weights the
sizes of the offsets and these probabilities, that of a class its models.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skcal._groups import INDEPENDENT, Groups
from skcal._running import over_jobs
from skcal.metrics.gap_models import GapModels, cells_of, mean_absolute
from skcal.metrics.gap_sums import GapSums

FEWEST_POOLED = 3  # classes; of two, each is the other one's mirror
_OFFSETS = np.append(0, 0.04 * 2.0 ** np.arange(6))  # deviations of log-odds, 0 half of the time
_SHARED = np.array([0.5, 0.9, 0.99])[:, None]  # probabilities that a class is like the others


def pooled_error(parts: Sequence[GapSums], shares: Sequence[float], groups: Groups) -> float:
    """Posterior mean of the mean absolute gap of several classes.

    Parameters
    ----------
    parts : sequence of GapSums
        Of each class.
    shares : sequence of float
        The share of each in the error.
    groups : Groups
        Of the samples.
    """
    pooled, member = _pooled(parts, shares)
    n, cells = pooled.n_effective, cells_of(pooled)
    together = _together(pooled, parts, shares, groups) * n**2 / cells.noise.sum()
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
    member = np.repeat(np.arange(len(parts)), [len(part.x) for part in parts])
    x, residuals, rows = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("x", "residuals", "rows")
    )
    pairs = list(zip(parts, shares, strict=True))
    weight = np.concatenate([share * part.weight for part, share in pairs])
    implied, squares, seen = (
        np.concatenate([share**2 * getattr(part, name) for part, share in pairs])
        for name in ("implied", "squares", "seen")
    )
    order = np.lexsort((weight, residuals, x))
    x, residuals, rows = x[order], residuals[order], rows[order]
    starts = np.append(0, np.flatnonzero(np.diff(x)) + 1)
    folds = None
    if parts[0].given_folds is not None:
        folds = np.concatenate([part.given_folds for part in parts])[order]
    known = weight[order], implied[order], INDEPENDENT, rows, starts, squares[order], seen[order]
    gaps = GapSums(x, residuals, *known, folds)
    return gaps, member[order]


def _together(pooled: GapSums, parts, shares, groups: Groups) -> float:
    """Variance of the sum of all residuals, of samples and groups that err together."""
    if pooled.given_folds is not None:  # which classes of a table err together is not known
        return float(pooled.seen.sum())
    n = int(pooled.rows.max()) + 1
    sums = np.bincount(groups.units(n)[pooled.rows], pooled.weight * pooled.residuals)
    together = float(np.sort(sums**2).sum())
    if parts[0].groups.independent:
        return together
    of_classes = [part.variance_of_all for part in parts]
    return max(together, float(np.square(shares) @ of_classes))
