"""The numbers of a triangle of three classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from skcal.displays.base import fitted_functions, require_residual
from skcal.functions.base import BilinearFunction, read_residual
from skcal.metrics import calibration_bins
from skcal.metrics.bins import BinRule, gap_distances, problem_moments

_FIT_CELLS = 100
_MAX_ROWS = 5000  # that a function is fitted to as they are; more are grouped in cells


@dataclass(frozen=True, eq=False)
class SimplexArrows:
    """Estimated residuals at mean predictions.

    Attributes
    ----------
    prediction : ndarray of shape (n_arrows, 3)
        Mean prediction of a cell.
    residual : ndarray of shape (n_arrows, 3)
        Estimate of E[δ | x] there: the arrow goes from the prediction to where the frequencies are.
    distance : ndarray of shape (n_arrows,)
        Total variation, half the sum of the absolute values.
    count : ndarray of shape (n_arrows,)
        Samples of the cell.
    noise : ndarray of shape (n_arrows,)
        Root mean squared length of the mean residual of the cell, were the predictions calibrated.
    distinct : ndarray of shape (n_arrows,), bool
        Whether the length exceeds twice the noise, as it does for at most about 5 % of the cells of
        calibrated predictions. True for the residuals of functions.
    """

    prediction: np.ndarray
    residual: np.ndarray
    distance: np.ndarray
    count: np.ndarray
    noise: np.ndarray
    distinct: np.ndarray


def make_arrows(sample, problem, method, n_bins, min_samples) -> SimplexArrows:
    """Estimate the residual at the mean prediction of each cell that holds enough samples."""
    if n_bins == "auto":
        n_bins = int(np.clip(np.sqrt(len(problem.weight) / 50), 2, 10))
    table = calibration_bins(
        problem.outcomes.argmax(axis=1),
        problem.features,
        notion="canonical",
        labels=[0, 1, 2],
        sample_weight=problem.weight,
        n_bins=n_bins,
    )
    enough = table.count >= min_samples
    prediction, residual = table.prediction[enough], table.gap[enough]
    noise = _noise(problem, n_bins)[enough]
    distinct = np.linalg.norm(residual, axis=1) > 2 * noise
    if method != "bins" and enough.any():
        residual = np.asarray(read_residual(_function(method, sample, problem), prediction))
        distinct = np.ones(len(residual), dtype=bool)
    distance = gap_distances(residual, "total-variation")
    return SimplexArrows(prediction, residual, distance, table.count[enough], noise, distinct)


def _noise(problem, n_bins) -> np.ndarray:
    """√E‖mean residual‖² of each cell under calibration: Σ w² (1 - ‖p‖²) / (Σ w)²."""
    sums = problem_moments(problem, BinRule(n_bins, "uniform"))
    spread = 1 - np.einsum("ij,ij->i", problem.features, problem.features)
    variance = np.bincount(sums.bins, problem.weight**2 * np.maximum(spread, 0))
    return np.sqrt(variance) / sums.weight


def _function(method, sample, problem):
    if not isinstance(method, BilinearFunction):
        return fitted_functions(method, sample)[0]
    require_residual(method)
    X, outcomes, weight = problem.features, problem.outcomes, problem.weight
    if len(X) > _MAX_ROWS:
        X, outcomes, weight = _grouped(X, outcomes, weight)
    return clone(method).fit(X, outcomes - X, sample_weight=weight)


def _grouped(X, outcomes, weight):
    """Mean predictions of small cells, with the weight of each outcome there."""
    cells = np.unique(cells_of(X, _FIT_CELLS), return_inverse=True)[1]
    mass = np.bincount(cells, weight)
    mean = np.stack([np.bincount(cells, weight * column) / mass for column in X.T], axis=1)
    mean /= mean.sum(axis=1, keepdims=True)
    hits = np.stack([np.bincount(cells, weight * column) for column in outcomes.T], axis=1)
    cell, outcome = np.nonzero(hits)
    return mean[cell], np.eye(3)[outcome], hits[cell, outcome]


def cells_of(X, n) -> np.ndarray:
    """The small triangle of each row of X, n along a side: (first, second, up or down)."""
    scaled = n * X[:, :2].astype(np.float64)
    i = np.minimum(scaled[:, 0].astype(np.intp), n - 1)
    j = np.minimum(scaled[:, 1].astype(np.intp), n - 1 - i)
    down = (scaled[:, 0] - i + scaled[:, 1] - j > 1) & (i + j < n - 1)
    return 2 * (i * n + j) + down
