"""Smooth calibration curves of single probabilities, with pointwise and simultaneous limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, ndtri
from scipy.stats import t as student
from sklearn.isotonic import isotonic_regression

from skcal._groups import INDEPENDENT, Groups
from skcal.metrics.base import Outcome, bounded_logits, logits_of
from skcal.metrics.limits import clopper_pearson
from skcal.metrics.logistic import LogisticLikelihood

_MAX_POINTS = 1000  # distinct predictions; more are grouped
_MAX_GROUPS = 100  # of isotonic limits, which take every interval of groups
_BAND_DRAWS = 2000
_SPLINE_RIDGE = 1e-9
_KNOT_RULES = (  # fewest events and non-events, and the shares at whose quantiles the knots are
    (100, (0.05, 0.275, 0.5, 0.725, 0.95)),
    (30, (0.05, 0.35, 0.65, 0.95)),
    (0, (0.1, 0.5, 0.9)),
)
_FEWEST_CERTAIN = 12  # samples of predictions of 0, or of 1, that have a frequency of their own
_SPAN = 0.75
_MASS_ROUNDING = 1e-12  # of sums of weights, relatively: a share that is just reached is reached


class Points(NamedTuple):
    """Distinct predictions with what happened, or means of groups of equal mass of many.

    Attributes
    ----------
    prediction, mass, hits, squares : ndarray of shape (n_points,)
        Mean prediction, sums of the weights, of those of the positive outcomes and of the squared
        weights.
    group : ndarray of shape (n_samples,)
        The point of each sample.
    design_effect : float
        How many events of dependent samples tell as much as one.
    """

    prediction: np.ndarray
    mass: np.ndarray
    hits: np.ndarray
    squares: np.ndarray
    group: np.ndarray
    design_effect: float = 1.0

    @property
    def frequency(self) -> np.ndarray:
        """The share of positive outcomes."""
        return self.hits / self.mass

    def curve(self, method: str, grid: np.ndarray) -> np.ndarray:
        """The frequency on a grid by a smoother."""
        return CURVES[method](self, grid).frequency

    @property
    def scale(self) -> float:
        """What the weights are multiplied by, so that each counts as often as the mean weight."""
        return float(self.mass.sum() / self.squares.sum())

    @property
    def events(self) -> float:
        """The effective number of events, or of non-events where these are fewer."""
        fewer = min(self.hits.sum(), (self.mass - self.hits).sum())
        return float(self.scale * fewer / self.design_effect)


def make_points(
    x,
    outcome,
    weight,
    most: int = _MAX_POINTS,
    groups: Groups = INDEPENDENT,
    squares: Any = None,
) -> Points:
    """Group samples by prediction; ``squares`` are Σ w² of rows that are several samples each."""
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
        np.bincount(group, weight**2 if squares is None else squares),
        group,
        groups.design_effect(weight),
    )


class Curve(NamedTuple):
    """A curve on a grid; rows of ``limits`` are low, high, and simultaneous low and high."""

    frequency: np.ndarray
    limits: np.ndarray | None = None


def spline_curve(points: Points, grid, level: float | None = None, data: Any = None) -> Curve:
    """Logistic regression on natural cubic splines of the logit, straight beyond the outer knots.

    Predictions of exactly 0 have no finite logit, and no others that are near to them. 12 or more
    have the frequency that was observed there; fewer stand at the outermost others. So has 1.

    Limits are those of the profile likelihood: where no events happened, normal ones of the linear
    predictor would tell nothing.
    """
    given = logits_of(points.prediction)
    logit = bounded_logits(given)
    scale = points.scale
    mass, hits = points.mass * scale, points.hits * scale
    certain = _certain(points, mass)
    inner = ~np.isin(points.prediction, certain)
    knots = _knots(logit[inner], mass[inner], points.events)
    design = _with_ends(_natural_splines(logit, knots), points.prediction, certain)
    middle = np.average(design, axis=0, weights=mass)
    middle[0] = 0  # of the constant
    design -= middle
    rows = design
    if grid is not points.prediction:
        logits = bounded_logits(logits_of(grid), given)
        rows = _with_ends(_natural_splines(logits, knots), grid, certain) - middle
    penalty = np.full(design.shape[1], _SPLINE_RIDGE * mass.sum())
    penalty[0] = 0
    likelihood = LogisticLikelihood(design, hits, mass, penalty)
    calibrated = np.append([middle[1], 1.0], np.zeros(design.shape[1] - 2))
    coefficients = likelihood.most_likely(calibrated)
    centre = rows @ coefficients
    if level is None:
        return Curve(expit(centre))
    curvature = likelihood.at(coefficients)[2] + _SPLINE_RIDGE * np.eye(len(coefficients))
    roots = rows @ np.linalg.pinv(np.linalg.cholesky(curvature)).T
    of_groups = None
    if not data.problem.groups.independent:
        influence = scale * rows @ np.linalg.inv(curvature) @ design.T
        of_groups = _deviations_of_groups(data, points, expit(design @ coefficients), influence)
    widths = _widths(roots, level, data, of_groups)
    limits = [
        likelihood.farthest(rows, sign, z, coefficients)
        for z in widths / np.sqrt((roots**2).sum(axis=1))
        for sign in (-1, 1)
    ]
    return Curve(expit(centre), expit(np.stack(limits)))


def _knots(logit, mass, events) -> np.ndarray:
    """Harrell's: 5 quantiles, of fewer than 100 events or non-events 4, below 30 they are 3."""
    shares = next(shares for fewest, shares in _KNOT_RULES if events >= fewest)
    knots = np.quantile(
        logit, np.array(shares) * (1 - _MASS_ROUNDING), method="inverted_cdf", weights=mass
    )
    return np.unique(knots)


def _certain(points: Points, mass) -> list[float]:
    """Which of 0 and 1 enough samples have as their prediction, if others have another one."""
    inner = (points.prediction > 0) & (points.prediction < 1)
    ends = [end for end in (0.0, 1.0) if mass[points.prediction == end].sum() >= _FEWEST_CERTAIN]
    return ends if inner.any() else []


def _with_ends(columns, prediction, certain) -> np.ndarray:
    """Columns of a design, and one for each end, which is 1 where that is the prediction."""
    return np.column_stack([columns, *(prediction == end for end in certain)])


def _natural_splines(x, knots) -> np.ndarray:
    """A constant, x, and cubic splines (n, max(len(knots), 2)) that are straight at both ends [1]_.

    .. [1] Harrell, Regression modeling strategies, 2015, section 2.4.5.
    """
    columns = [np.ones_like(x), x]
    if len(knots) > 2:
        cubes = np.clip(x[:, None] - knots, 0, None) ** 3 / np.ptp(knots) ** 2
        last, before = knots[-1], knots[-2]
        for knot, cube in zip(knots[:-2], cubes.T, strict=False):
            ends = cubes[:, -2] * (last - knot) - cubes[:, -1] * (before - knot)
            columns.append(cube - ends / (last - before))
    return np.column_stack(columns)


def loess_curve(points: Points, grid, level: float | None = None, data: Any = None) -> Curve:
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
    roots, of_groups = weights * deviation, None
    if not data.problem.groups.independent:
        of_groups = _deviations_of_groups(data, points, chance, weights / points.mass)
    widths = _widths(roots, level, data, of_groups)
    limits = [centre + sign * width for width in widths for sign in (-1, 1)]
    return Curve(centre, np.clip(np.stack(limits), 0, 1))


def _loess_weights(points: Points, grid) -> np.ndarray:
    """The weight (n_grid, n_points) of each point's frequency in the curve at each place."""
    smoother_weights = np.empty((len(grid), len(points.mass)))
    needed = _SPAN * points.mass.sum() * (1 - _MASS_ROUNDING)
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


def _deviations_of_groups(data: Outcome, points: Points, chance, influence):
    """Deviations (n_grid, n_groups) of a curve by group, whose squares add up to its variance.

    And the standard deviations (n_grid,) by the estimated dependence. ``influence``
    (n_grid, n_points) is that of w (y - chance) at each point.
    """
    groups, weight, size = data.problem.groups, data.weight, len(chance)
    residuals = weight * (data.happened - chance[points.group])
    sums = csr_array((residuals, (groups.codes, points.group)), shape=(groups.n_groups, size))
    rank = np.argsort(np.argsort(chance))
    each = chance[points.group], rank[points.group]
    law = groups.covariance_of_cells(weight, *each, size)[np.ix_(rank, rank)]
    variances = np.einsum("ki,ki->k", influence @ law, influence)
    deviations = np.sqrt(groups.unbiased) * (sums @ influence.T).T
    return deviations, np.sqrt(np.maximum(variances, 0))


def _widths(roots, level, data: Outcome, of_groups) -> np.ndarray:
    """Half widths (2, n) of normal limits at each point and of all at once.

    With groups they are those of Student's distribution, and of the deviations of the groups unless
    those of independent samples, ``roots``, or of the estimated dependence are larger.
    """
    deviation = np.sqrt((roots**2).sum(axis=1))
    if of_groups is None:
        pointwise = float(-ndtri((1 - level) / 2))
        largest = largest_deviations(roots, deviation)
    else:
        of_groups, implied = of_groups
        floor, deviation = np.maximum(deviation, implied), np.sqrt((of_groups**2).sum(axis=1))
        freedom = data.problem.groups.degrees_of_freedom(data.weight)
        chi = np.sqrt(np.random.default_rng(1).chisquare(freedom, _BAND_DRAWS) / freedom)
        pointwise = float(student.isf((1 - level) / 2, freedom))
        largest = largest_deviations(of_groups, deviation) / chi
        deviation = np.maximum(deviation, floor)
    return np.outer([pointwise, max(pointwise, float(np.quantile(largest, level)))], deviation)


def largest_deviations(roots, deviation) -> np.ndarray:
    """Drawn values of the largest of |z| over the grid, by the symmetric root of its covariance.

    Singular vectors would depend on rounding, by their signs and where singular values coincide.
    """
    scaled = np.divide(
        roots, deviation[:, None], out=np.zeros_like(roots), where=deviation[:, None] > 0
    )
    u, s, _ = np.linalg.svd(scaled, full_matrices=False)
    draws = np.random.default_rng(0).standard_normal((_BAND_DRAWS, len(scaled)))
    return np.abs(draws @ (u * s) @ u.T).max(axis=1)


#: Curves of points on a grid, by name.
CURVES: dict[str, Callable] = {
    "splines": spline_curve,
    "loess": loess_curve,
    "isotonic": isotonic_curve,
}


def point_gaps(method: str, points: Points) -> np.ndarray:
    """A curve minus the prediction at each point."""
    return points.curve(method, points.prediction) - points.prediction
