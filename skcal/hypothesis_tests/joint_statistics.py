"""The statistics of the joint test, as a function of blocks of outcomes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit
from sklearn.metrics import pairwise_distances_argmin

from skcal._validation import row_blocks
from skcal.hypothesis_tests.scan import RangeScan
from skcal.hypothesis_tests.skce import all_pairs, covariance_products
from skcal.kernels import Kernel
from skcal.metrics.gap_sums import in_canonical_order
from skcal.metrics.statistic import observed_draw
from skcal.notions import Problem

_MOST_CELLS = 256
_WIDTHS = (0.01, 0.1, 1.0)
_TINY = float(np.finfo(np.float64).tiny)
_BLOCK = 2**21  # outcomes that are drawn at a time
_ENDS = 1e-6  # from 0 and 1, within which logits do not change
_MOST_SHIFT, _MOST_STEPS = 20.0, 40  # of an intercept, and of Newton's method
_WAVES, _WIDTH = 7, 0.1  # half waves over all predictions; of the kernel of single probabilities
_DIGITS, _DEPENDENT = 9, 1e-6
_SPREADS = "too extreme", "not extreme enough"
#: How much each statistic of single probabilities counts, and of vectors.
WEIGHTS = {
    "bias": 2.25,
    "slope": 3.0,
    "curvature": 2.5,
    "waves": 1.0,
    "kernel": 1.25,
    "scan": 0.5,
}
WEIGHTS_OF_VECTORS = {"bias": 1.0, "slope": 1.5, "kernel": 1.0}
#: Fine errors, which few samples cannot show: half of the weight at so much information.
_FINE, _HALF = ("curvature", "waves", "scan"), 60.0


class JointStatistics:
    """Statistics that detect different errors, as a function of blocks of outcomes.

    A residual counts with the weight of its sample, divided by the mean of all. Predictions are
    merged into cells: single probabilities into cells of equally many, equal ones together; vectors
    by the nearest of evenly chosen ones. Few distinct ones have a cell each.

    Attributes
    ----------
    problem : Problem
        In the order of the outcomes that are passed: single probabilities in increasing order.
    names : tuple of str
        What the columns of a call are.
    chunk : int
        How many rows of outcomes to hand over at a time.
    """

    def __init__(self, problem: Problem):
        n, m = problem.features.shape
        self.scalar = m == 1
        if self.scalar:
            self.impossible = problem.number(_impossible(problem))
            problem = in_canonical_order(problem.as_cells)
        problem = problem.of_mean_1
        if self.scalar:
            self.scan = RangeScan(problem)
            problem = self.scan.problem
        self.problem = problem
        self.X = X = problem.features.astype(np.float64, copy=False)
        weights = WEIGHTS if self.scalar else WEIGHTS_OF_VECTORS
        self.names, self.weights = tuple(weights), np.array([*weights.values()])
        self.chunk = max(1, min(128, _BLOCK // n))
        self.cells = _cells_of_equal_mass(problem) if self.scalar else _nearest_points(X)
        self.weight, self.squares = problem.weight, problem.squares
        each = self.weight, self.squares, self.squares**2
        mass, sizes, fourth = (np.bincount(self.cells, values) for values in each)
        self.sums = np.column_stack([np.bincount(self.cells, self.weight * x) for x in X.T])
        centres = self.sums / mass[:, None]
        if self.scalar:
            self._prepare_cells(mass, sizes, centres)
            return
        self.spread = _roots(self.squares @ (X * (1 - X)))
        self.logs = np.log(np.maximum(X, _ENDS))
        self.mean_logs = (X * self.logs).sum(axis=1)
        variances = (X * self.logs**2).sum(axis=1) - self.mean_logs**2
        self.steepness = _roots(self.squares @ variances)
        kernels = [Kernel.of("laplacian", width, centres) for width in _WIDTHS]
        self.kernels = [kernel.matrix(centres, centres) for kernel in kernels]
        # Standard deviations under H0, as if all predictions of a cell were its centre.
        products = np.outer(sizes, sizes) * covariance_products(centres, centres, None, all_pairs)
        products[np.diag_indices(len(sizes))] *= np.maximum(1 - fourth / sizes**2, 0)
        self.scales = _roots([2 * np.vdot(K**2, products) for K in self.kernels])

    def _prepare_cells(self, mass, squares, centres):
        """Prepare the statistics of single probabilities, whose cells are in order."""
        x, starts = self.X[:, 0], np.flatnonzero(np.diff(self.cells, prepend=-1))
        self.starts = np.union1d(starts, self.scan.starts)  # cells of both
        self.of_cells, self.of_scan = (
            np.searchsorted(self.starts, some) for some in (starts, self.scan.starts)
        )
        z = logit(np.clip(centres[:, 0], _ENDS, 1 - _ENDS))
        self.logistic = _Logistic(z, mass, squares)
        variances = np.bincount(self.cells, self.squares * x * (1 - x))
        information = (self.weight @ (x * (1 - x))) ** 2 / max(variances.sum(), _TINY)
        self.weights[np.isin(self.names, _FINE)] *= information / (information + _HALF)
        time = (variances.cumsum() - variances / 2) / max(variances.sum(), _TINY)
        waves = [np.cos(np.pi * k * time) for k in range(_WAVES + 1)]
        self.curvature = _orthonormal([np.ones_like(z), z, z**2], variances)[2]
        self.waves = _orthonormal(waves, variances)[2:]
        self.kernel = Kernel.of("laplacian", _WIDTH, centres).matrix(centres, centres)

    @property
    def shape(self) -> tuple[int]:
        """How many statistics there are of a draw."""
        return (len(self.names),)

    def counted(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Predictions in order and the first row of each cell; None of vectors or with weights."""
        counts = self.scalar and self.scan.weight is None
        return (self.X[:, 0], self.starts) if counts else None

    @property
    def n_impossible(self) -> int:
        """Samples with an observed outcome that was given the probability 0."""
        if self.scalar:
            return self.impossible
        return int(np.count_nonzero(_impossible(self.problem)))

    def __call__(self, codes):
        """Return the statistics (k, n_statistics) of each row of outcomes."""
        if self.scalar:
            return self.of_sums(self._sums(codes))
        gaps, squares, scores = self._of_vectors(codes)
        errors = [
            (np.einsum("kcm,kcm->k", gaps, K @ gaps) - squares) / scale
            for K, scale in zip(self.kernels, self.scales, strict=True)
        ]
        columns = [
            ((gaps.sum(axis=1) / self.spread) ** 4).sum(axis=1).round(_DIGITS),
            np.abs(scores / self.steepness).round(_DIGITS),
            np.max(errors, axis=0),
        ]
        return np.stack(columns, axis=1)

    def of_sums(self, sums):
        """Return the same of single probabilities, for sums of outcomes by weight over ``starts``.

        Without weights, they are how many events there are.
        """
        gaps, in_scan = self._gaps(sums), np.add.reduceat(sums, self.of_scan, axis=1)
        columns = [
            *self.logistic.statistics(self.sums[:, 0] + gaps),
            np.abs(gaps @ self.curvature),
            ((gaps @ self.waves.T) ** 2).sum(axis=1),
            np.einsum("kc,kc->k", gaps, gaps @ self.kernel),
        ]
        columns = [column.round(_DIGITS) for column in columns]  # equal outcomes tie
        return np.stack([*columns, self.scan.of_sums(in_scan)], axis=1)

    def sides(self) -> dict[str, str]:
        """On which side the observed outcomes are, by "bias" and "slope"."""
        observed = observed_draw(self.problem)
        if not self.scalar:
            scores = self._of_vectors(observed)[2]
            return {"slope": _SPREADS[bool(scores[0] > 0)]}
        gaps = self._gaps(self._sums(observed))
        low, steep = gaps.sum() > 0, self.logistic.scores(self.sums[:, 0] + gaps)[0] > 0
        return {
            "bias": "too low" if low else "too high",
            "slope": _SPREADS[bool(steep)],
        }

    def _sums(self, codes):
        """Sums (k, n) over ``starts`` of outcomes by weight."""
        return np.add.reduceat(self.scan.weighted(codes), self.starts, axis=1)

    def _gaps(self, sums):
        """The same of residuals over cells (k, n_cells)."""
        return np.add.reduceat(sums, self.of_cells, axis=1) - self.sums[:, 0]

    def _of_vectors(self, codes):
        """Sums of residuals over cells (k, n_cells, m), and of their squares (k,)."""
        X, k = self.X, len(codes)
        if codes.ndim == 3:  # outcomes are numbers, perhaps of flipped residuals
            delta = (codes - X) * self.weight[:, None]
            gaps = [[np.bincount(self.cells, column) for column in row.T] for row in delta]
            squares = np.einsum("kim,kim->k", delta, delta)
            scores = np.einsum("kim,im->k", delta, self.logs)
            return np.swapaxes(gaps, 1, 2), squares, scores
        n_cells, m = self.sums.shape
        counts = np.stack(
            [np.bincount(self.cells * m + row, self.weight, n_cells * m) for row in codes]
        )
        squares, drawn = self.squares[:, None], np.take_along_axis(X, codes.T, axis=1)
        scores = self.weight @ np.take_along_axis(self.logs, codes.T, axis=1)
        # ‖e_c - x‖² = 1 + ‖x‖² - 2 x_c
        squares = (squares * X**2).sum() + squares.sum() - 2 * (squares * drawn).sum(axis=0)
        scores = scores - self.weight @ self.mean_logs
        return counts.reshape(k, n_cells, m) - self.sums, squares, scores


class _Logistic(NamedTuple):
    """Logistic regressions of outcomes on the logits of cells; calibrated ones have slope 1.

    Attributes
    ----------
    logits, mass, squares : ndarray of shape (n_cells,)
        Of each cell the logit, and the sums of the weights and of their squares.
    """

    logits: np.ndarray
    mass: np.ndarray
    squares: np.ndarray

    def statistics(self, events) -> list[np.ndarray]:
        """Return how far intercept and slope are off, for sums of outcomes (k, n_cells).

        They are the root of twice the log likelihood ratio of the intercept, and the absolute score
        of the slope.
        """
        shifts = self._intercepts(events.sum(axis=1))
        shifted = np.logaddexp(0, self.logits + shifts[:, None])
        ratios = events.sum(axis=1) * shifts - (shifted - np.logaddexp(0, self.logits)) @ self.mass
        return [np.sqrt(np.maximum(2 * ratios, 0)), np.abs(self.scores(events, shifts))]

    def scores(self, events, shifts=None):
        """Scores of the slope in standard deviations, for sums of outcomes (k, n_cells).

        They have the sign of the fitted slope minus 1: a bias, whose residuals differ from cell to
        cell, is taken by the intercept.
        """
        shifts = self._intercepts(events.sum(axis=1)) if shifts is None else shifts
        p = expit(self.logits + shifts[:, None])
        variance = p * (1 - p)
        inner = variance * self.mass
        means = inner @ self.logits / np.maximum(inner.sum(axis=1), _TINY)
        z = self.logits - means[:, None]
        scores = ((events - self.mass * p) * z).sum(axis=1)
        return scores / _roots((variance * self.squares * z**2).sum(axis=1))

    def _intercepts(self, events):
        """The intercepts at which as many events (k,) are expected, half of one at the least."""
        events = np.clip(events, 0.5, self.mass.sum() - 0.5)
        intercepts, active = np.zeros(len(events)), np.arange(len(events))
        for _ in range(_MOST_STEPS):
            p = expit(self.logits + intercepts[active, None])
            rate = np.maximum((p * (1 - p)) @ self.mass, _TINY)
            step = np.clip((events[active] - p @ self.mass) / rate, -1, 1)
            intercepts[active] = np.clip(intercepts[active] + step, -_MOST_SHIFT, _MOST_SHIFT)
            active = active[np.abs(step) > 1e-9]
            if not len(active):
                break
        return intercepts


def _roots(variances) -> np.ndarray:
    """Square roots by which statistics are divided: 1 where nothing is left to chance."""
    variances = np.asarray(variances, dtype=np.float64)
    return np.sqrt(np.where(variances > 0, variances, 1.0))


def _orthonormal(columns: list[np.ndarray], variances: np.ndarray) -> np.ndarray:
    """Directions whose sums of residuals have variance 1 and are uncorrelated; 0 if dependent."""
    directions: list[np.ndarray] = []
    for column in columns:
        size, rest = np.sqrt(variances @ column**2), column
        for earlier in 2 * directions:  # twice, so that rounding does not count
            rest = rest - (variances * earlier) @ rest * earlier
        left = np.sqrt(variances @ rest**2)
        directions.append(rest / left if left > _DEPENDENT * size else np.zeros_like(rest))
    return np.array(directions)


def _impossible(problem: Problem) -> np.ndarray:
    """Whether each row has an outcome that was given the probability 0."""
    outcomes, X = problem.outcomes, problem.features
    happened = (X == 0) & (outcomes > 0) | (X.shape[1] == 1) & (X == 1) & (outcomes < 1)
    return happened.any(axis=1)


def _cells_of_equal_mass(problem: Problem) -> np.ndarray:
    """The cell of each prediction; equal predictions share one."""
    x = problem.features[:, 0].astype(np.float64)
    edges = np.unique(problem.quantiles(np.arange(1, _MOST_CELLS) / _MOST_CELLS))
    return np.unique(np.searchsorted(edges, x), return_inverse=True)[1]


def _nearest_points(X) -> np.ndarray:
    """The nearest of some rows for each row of X; names of classes do not matter."""
    order = np.lexsort(np.hstack([-np.sort(-X, axis=1), X]).T[::-1])
    steps = np.linspace(0, len(X) - 1, min(len(X), _MOST_CELLS)).round().astype(np.intp)
    points = X[order[steps]]
    nearest = [
        pairwise_distances_argmin(X[rows], points) for rows in row_blocks(len(X), 8 * len(points))
    ]
    return np.unique(np.concatenate(nearest), return_inverse=True)[1]
