"""Smooth calibration curves of single probabilities, with pointwise and simultaneous limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri
from sklearn.isotonic import isotonic_regression
from sklearn.preprocessing import SplineTransformer

from skcal.metrics.cox import logistic_coefficients
from skcal.metrics.limits import clopper_pearson
from skcal.recalibration.features import log_probabilities

_MAX_POINTS = 1000  # distinct predictions; more are grouped
_MAX_GROUPS = 100  # of isotonic limits, which take every interval of groups
_DRAWS = 2000
_RIDGE = 1e-9
_SPAN = 0.75
_ROUNDING = 1e-12  # of sums of weights, relatively: a share that is just reached is reached


class Points(NamedTuple):
    """Distinct predictions with what happened, or means of groups of equal mass of many.

    Attributes
    ----------
    prediction, mass, hits, squares : ndarray of shape (n_points,)
        Mean prediction, sums of the weights, of those of the positive outcomes and of the squared
        weights.
    group : ndarray of shape (n_samples,)
        The point of each sample.
    """

    prediction: np.ndarray
    mass: np.ndarray
    hits: np.ndarray
    squares: np.ndarray
    group: np.ndarray

    @property
    def frequency(self) -> np.ndarray:
        """The share of positive outcomes."""
        return self.hits / self.mass


def make_points(x, outcome, weight, most: int = _MAX_POINTS) -> Points:
    """Group samples by prediction."""
    values, group = np.unique(x.astype(np.float64), return_inverse=True)
    if len(values) > most:
        share = np.bincount(group, weight) / weight.sum()
        middle = np.cumsum(share) - share / 2
        group = np.minimum(middle * most, most - 1).astype(np.intp)[group]
        group = np.unique(group, return_inverse=True)[1]
    mass = np.bincount(group, weight)
    return Points(
        np.bincount(group, weight * x) / mass,
        mass,
        np.bincount(group, weight * outcome),
        np.bincount(group, weight**2),
        group,
    )


class Curve(NamedTuple):
    """A curve on a grid; rows of ``limits`` are low, high, and simultaneous low and high."""

    frequency: np.ndarray
    limits: np.ndarray | None = None


def spline_curve(points: Points, grid, level: float | None = None) -> Curve:
    """Logistic regression on cubic splines of the logit, straight beyond the outer of 5 knots.

    Limits are normal ones of the linear predictor.
    """
    logit, at = (log_probabilities(x[:, None])[:, 0] for x in (points.prediction, grid))
    shares = np.linspace(0.05, 0.95, 5) * (1 - _ROUNDING)
    knots = np.quantile(logit, shares, method="inverted_cdf", weights=points.mass)
    knots = np.unique(knots)
    if len(knots) > 1:
        spline = SplineTransformer(
            knots=knots[:, None], extrapolation="linear", include_bias=False
        ).fit(logit[:, None])
        design, rows = (spline.transform(x[:, None]) for x in (logit, at))
    else:  # (nearly) equal predictions: a straight line
        design, rows = logit[:, None], at[:, None]
    middle = np.average(design, axis=0, weights=points.mass)  # else equal ones look like ones
    design, rows = (np.column_stack([np.ones(len(x)), x - middle]) for x in (design, rows))
    penalty = np.full(design.shape[1], _RIDGE * points.mass.sum())
    penalty[0] = 0
    coefficients = logistic_coefficients(design, points.hits, points.mass, penalty)
    centre = rows @ coefficients
    if level is None:
        return Curve(expit(centre))
    chance = expit(design @ coefficients)
    variance = chance * (1 - chance)
    information = (design * (points.mass * variance)[:, None]).T @ design
    bread = np.linalg.pinv(information + np.diag(penalty))
    roots = design * np.sqrt(points.squares * variance)[:, None] @ bread
    return Curve(expit(centre), expit(_normal_limits(centre, rows @ roots.T, level)))


def loess_curve(points: Points, grid, level: float | None = None) -> Curve:
    """Local quadratic least squares on the nearest three quarters of the samples, as R's ``loess``.

    It is evaluated exactly, where R interpolates between vertices of cells. Limits are normal ones
    of the linear smoother, with binomial variances.
    """
    weights = _loess_weights(points, grid)
    centre = np.clip(weights @ points.frequency, 0, 1)
    if level is None:
        return Curve(centre)
    at_points = _loess_weights(points, points.prediction) @ points.frequency
    chance = np.clip(at_points, 1 / points.mass.sum(), 1 - 1 / points.mass.sum())
    deviation = np.sqrt(chance * (1 - chance) * points.squares) / points.mass
    return Curve(centre, np.clip(_normal_limits(centre, weights * deviation, level), 0, 1))


def _loess_weights(points: Points, grid) -> np.ndarray:
    """The weight (n_grid, n_points) of each point's frequency in the curve at each place."""
    smoother_weights = np.empty((len(grid), len(points.mass)))
    needed = _SPAN * points.mass.sum() * (1 - _ROUNDING)
    for row, x in zip(smoother_weights, grid, strict=True):
        away = points.prediction - x
        distance = np.abs(away)
        order = np.argsort(distance, kind="stable")
        last = np.searchsorted(np.cumsum(points.mass[order]), needed)
        width = distance[order[min(last, len(order) - 1)]]
        kernel = np.clip(1 - (distance / max(width, 1e-12)) ** 3, 0, None) ** 3
        scale = away / max(width, 1e-12)
        basis = np.column_stack([np.ones_like(scale), scale, scale**2])
        root = np.sqrt(kernel * points.mass)
        row[:] = np.linalg.pinv(basis * root[:, None], rcond=1e-10)[0] * root
    return smoother_weights


def isotonic_curve(points: Points, grid) -> Curve:
    """Isotonic regression of the outcomes, straight between predictions."""
    return Curve(np.interp(grid, points.prediction, isotonic_frequency(points)))


def isotonic_frequency(points: Points) -> np.ndarray:
    """Isotonic regression of the outcomes at each point."""
    return isotonic_regression(points.frequency, sample_weight=points.mass, y_min=0, y_max=1)


def isotonic_limits(x, outcome, grid, level: float) -> np.ndarray:
    """Limits (4, n_grid) that are exact for any curve that does not fall, of equal weights [1]_.

    The mean frequency of predictions up to x then bounds the curve at x from below: every interval
    of predictions gives a Clopper-Pearson limit, and the best of them counts at a level that is
    divided by their number.

    .. [1] Dimitriadis, Dümbgen, Henzi, Puke & Ziegel, Honest calibration assessment for binary
       outcome predictions, Biometrika 2023.
    """
    points = make_points(x, outcome, np.ones(len(x)), _MAX_GROUPS)
    order = np.argsort(points.group, kind="stable")
    starts = np.flatnonzero(np.diff(points.group[order], prepend=-1))
    first, last = np.minimum.reduceat(x[order], starts), np.maximum.reduceat(x[order], starts)
    n_groups, tail = len(points.mass), (1 - level) / 2
    below, above = np.triu_indices(n_groups)  # intervals of groups, from and to
    mass = np.append(0, np.cumsum(points.mass))
    hits = np.append(0, np.cumsum(points.hits))
    count, positive = mass[above + 1] - mass[below], hits[above + 1] - hits[below]
    at_end = above + 1, n_groups - below  # intervals that end, or begin, there
    limits = np.empty((4, n_groups))
    for row, parts in ((0, at_end), (2, (len(count), len(count)))):
        low, high = clopper_pearson(positive, count, *(tail / part for part in parts))
        limits[row], limits[row + 1] = 0, 1
        np.maximum.at(limits[row], above, low)
        np.minimum.at(limits[row + 1], below, high)
    for row in (0, 2):
        limits[row] = np.maximum.accumulate(limits[row])
        limits[row + 1] = np.minimum.accumulate(limits[row + 1][::-1])[::-1]
    limits = np.column_stack([[0, 1, 0, 1], limits, [0, 1, 0, 1]])
    left, right = np.searchsorted(last, grid, "right"), np.searchsorted(first, grid, "left") + 1
    return np.stack([limits[row][right if row % 2 else left] for row in range(4)])


def _normal_limits(centre, roots, level) -> np.ndarray:
    """Pointwise and simultaneous limits (4, n) of a centre with covariance roots rootsᵀ.

    The simultaneous ones are the quantile of the largest of |z| over the grid, drawn.
    """
    deviation = np.sqrt((roots**2).sum(axis=1))
    scaled = np.divide(
        roots, deviation[:, None], out=np.zeros_like(roots), where=deviation[:, None] > 0
    )
    u, s, _ = np.linalg.svd(scaled, full_matrices=False)
    kept = s > 1e-9 * s.max(initial=0)
    draws = np.random.default_rng(0).standard_normal((_DRAWS, np.count_nonzero(kept)))
    largest = np.abs(draws @ (u[:, kept] * s[kept]).T).max(axis=1)
    pointwise = -ndtri((1 - level) / 2)
    together = max(pointwise, float(np.quantile(largest, level)))
    return np.stack([centre + z * deviation for z in (-pointwise, pointwise, -together, together)])


#: Curves of points on a grid, by name.
CURVES: dict[str, Callable] = {
    "splines": spline_curve,
    "loess": loess_curve,
    "isotonic": isotonic_curve,
}


def point_gaps(method: str, points: Points) -> np.ndarray:
    """Distance of a curve from the prediction at each point."""
    return np.abs(CURVES[method](points, points.prediction).frequency - points.prediction)
