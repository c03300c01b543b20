"""Which maps a recalibrator tries."""

from __future__ import annotations

from skcal.recalibration.identity import Smoothed
from skcal.recalibration.matrix import StructuredMatrixScaling
from skcal.recalibration.scalar import SplineScaling
from skcal.recalibration.temperature import TemperatureScaling
from skcal.recalibration.vector import VectorScaling

MATRIX_MAX_CLASSES = 100


def default_candidates(n_classes: int) -> list[tuple]:
    """Maps and grids, from the simplest on."""
    candidates: list[tuple] = [(TemperatureScaling(), {}), (Smoothed(TemperatureScaling()), {})]
    if n_classes == 2:
        smoothed = Smoothed(SplineScaling())
        grid = {"strength": [0.001, 0.01], "estimator__C": [1.0, 10.0]}
        return [*candidates, (smoothed, grid)]
    if n_classes > MATRIX_MAX_CLASSES:
        return [candidates[0], (VectorScaling(), {"C": [0.01, 0.1]})]
    roots = StructuredMatrixScaling(tol=1e-5)
    logs = StructuredMatrixScaling(coordinates="log-ratio", tol=1e-5)
    return [
        *candidates,
        (logs, {"C": [0.001, 0.01]}),
        (roots, {"C": [0.1, 1.0, 10.0]}),
        (Smoothed(roots), {"strength": [0.001], "estimator__C": [0.1, 1.0]}),
    ]


def default_max_samples(n_classes: int) -> int:
    """Samples that choose: enough for differences that matter."""
    return 50_000 if n_classes == 2 else 5_000
