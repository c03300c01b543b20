"""Distances of a smooth curve from the diagonal: ICI, E50, E90 and Emax, and what chance adds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from skcal._groups import INDEPENDENT, Groups
from skcal._validation import is_significant
from skcal.metrics.base import Outcome
from skcal.metrics.smoothers import Points, make_points, point_gaps

_QUANTILES = {"e50": 0.5, "e90": 0.9, "emax": 1.0}
CURVE_DISTANCES = ("ici", *_QUANTILES)


class CurveDistances:
    """Distances of the curve of one outcome, in the order of ``CURVE_DISTANCES``.

    Parameters
    ----------
    method : str
        The curve, one of :data:`skcal.metrics.smoothers.CURVES`.
    data : Outcome
    """

    def __init__(self, method: str, data: Outcome):
        self.method, self.happened, self.weight = method, data.happened, data.weight
        self.groups: Groups = data.problem.groups
        self.points = make_points(data.prediction, data.happened, data.weight)
        self.gaps = point_gaps(method, self.points)
        self.estimates = _summarised(self.gaps, self.points.mass)

    def intervals(self, level: float, n_resamples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Ends of intervals that hold the distances, the lower ones 0 unless these are shown.

        Noise adds to the distances, once more in the resamples. The lower end leaves that out
        twice; the upper end counts the spread alone, since that of the truth may be any part of it.
        """
        tail, estimates, groups = (1 - level) / 2, self.estimates, self.groups
        dependent = not groups.independent and not groups.alone.all()
        units = [(INDEPENDENT.or_singles(self.weight), 1.0)]
        if dependent:  # no interval is narrower than without groups
            units = [(units[0][0], np.sqrt(groups.design_effect(self.weight))), (groups, 1.0)]
        below = above = np.zeros(len(estimates))
        for resampled, scale in units:
            drawn, noise = self._resampled(resampled, n_resamples, rng)
            middle, largest = np.quantile(drawn, [0.5, 1 - tail], axis=0)
            below = np.maximum(below, scale * (largest - estimates))
            above = np.maximum(above, scale * (largest - middle))
        if dependent:  # groups that are drawn anew may not tell how outcomes vary
            of_curve = self._redrawn(self.points.prediction + self.gaps, n_resamples, rng)
            middle, largest = np.quantile(of_curve, [0.5, 1 - tail], axis=0)
            with np.errstate(invalid="ignore"):
                above = np.fmax(above, largest - middle)
        calibrated = self._redrawn(self.points.prediction, n_resamples, rng)
        larger = (calibrated >= estimates).sum(axis=0)
        if not groups.independent:
            larger = np.maximum(larger, (noise >= estimates).sum(axis=0))
        shown = is_significant((1 + larger) / (1 + n_resamples), level)
        low = np.where(shown, np.clip(estimates - below, 0, estimates), 0.0)
        return low, np.minimum(estimates + above, 1)

    def _resampled(self, groups: Groups, n_resamples, rng) -> tuple[np.ndarray, np.ndarray]:
        """Distances of the curves of resamples, from the diagonal and from the curve."""
        resamples = self._samples(rng) if groups.independent else self._samples_of(groups, rng)
        distances: list[np.ndarray] = []
        noise: list[np.ndarray] = []
        while len(distances) < n_resamples:
            points, kept = self._kept(*next(resamples))
            if len(kept):
                gaps = point_gaps(self.method, points)
                distances.append(_summarised(gaps, points.mass))
                noise.append(_summarised(gaps - self.gaps[kept], points.mass))
        return np.array(distances), np.array(noise)

    def _samples(self, rng) -> Iterator[tuple]:
        """Hits, misses and squared weights at each point, of samples that are drawn anew."""
        n, points = len(self.happened), self.points
        cells = np.concatenate([points.hits, points.mass - points.hits]) / n
        while True:
            hits, misses = rng.multinomial(n, cells).reshape(2, -1)
            yield hits, misses, hits + misses

    def _samples_of(self, groups: Groups, rng) -> Iterator[tuple]:
        """The same where groups are drawn with all of their samples."""
        n, size, place = groups.n_groups, len(self.points.mass), self.points.group
        cells = csr_array(
            (self.weight, (place + size * (1 - self.happened.astype(np.intp)), groups.codes)),
            shape=(2 * size, n),
        )
        squares = csr_array((self.weight**2, (place, groups.codes)), shape=(size, n))
        shares = np.full(n, 1 / n)
        while True:
            counts = rng.multinomial(n, shares)
            yield *(cells @ counts).reshape(2, -1), squares @ counts

    def _redrawn(self, chance: np.ndarray, n_resamples, rng) -> np.ndarray:
        """Distances (n_resamples, 4) if outcomes have these chances; infinite without a curve."""
        redraw = self._outcomes if self.groups.independent else self._outcomes_of_groups
        distances = np.full((n_resamples, len(CURVE_DISTANCES)), np.inf)
        drawn = redraw(chance, n_resamples, rng)
        for row, (hits, misses) in zip(distances, drawn, strict=True):
            points, kept = self._kept(hits, misses, self.points.squares)
            if len(kept):
                row[:] = _summarised(point_gaps(self.method, points), points.mass)
        return distances

    def _outcomes(self, chance, n_resamples, rng) -> Iterator[tuple]:
        """Hits and misses at each point."""
        size, rate = self.points.mass.astype(np.int64), np.clip(chance, 0, 1)
        for hits in rng.binomial(size, rate, size=(n_resamples, len(size))):
            yield hits, size - hits

    def _outcomes_of_groups(self, chance, n_resamples, rng) -> Iterator[tuple]:
        """The same of samples whose weights may differ, and which depend on each other."""
        points, rate = self.points, np.clip(chance, 0, 1)[self.points.group]
        for seeds in rng.integers(2**31 - 1, size=(n_resamples, 2)):
            [uniform] = self.groups.uniform(seeds[:1], seeds[1:])
            hits = np.bincount(points.group, self.weight * (uniform < rate), len(points.mass))
            misses = points.mass - hits
            yield hits, np.where(misses > 1e-12 * points.mass, misses, 0.0)

    def _kept(self, hits, misses, squares) -> tuple[Points, np.ndarray]:
        """The points with samples, and their places; none where one outcome does not occur."""
        mass = np.asarray(hits + misses, dtype=np.float64)
        kept = np.flatnonzero(mass > 0) if hits.any() and misses.any() else np.arange(0)
        return self.points._replace(
            prediction=self.points.prediction[kept],
            mass=mass[kept],
            hits=np.asarray(hits, dtype=np.float64)[kept],
            squares=np.asarray(squares, dtype=np.float64)[kept],
        ), kept


def _summarised(gaps: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Mean, median, 90 % quantile and maximum of the sizes of gaps."""
    sizes = np.abs(gaps)
    quantiles = np.quantile(sizes, list(_QUANTILES.values()), method="inverted_cdf", weights=mass)
    return np.append(mass @ sizes / mass.sum(), quantiles)
