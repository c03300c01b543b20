"""Which maps a recalibrator tries."""

from __future__ import annotations

from skcal.recalibration.base import Smoothed
from skcal.recalibration.scaling import MatrixScaling, SplineScaling, VectorScaling
from skcal.recalibration.temperature import TemperatureScaling

MATRIX_MAX_CLASSES = 100
_TOL = 1e-5  # of maps whose neighbours on the grid differ by far more


def default_candidates(n_classes: int) -> list[tuple]:
    """Maps and grids, from the simplest on."""
    temperature, smoothed = TemperatureScaling(), Smoothed(TemperatureScaling(), strength=0.01)
    if n_classes == 2:
        splines = {"strength": [0.001, 0.01], "estimator__C": [1.0, 10.0]}
        return [(temperature, {}), (smoothed, {}), (Smoothed(SplineScaling()), splines)]
    vector = VectorScaling(C=1 / (2 * n_classes), structured=True, tol=_TOL)
    if n_classes > MATRIX_MAX_CLASSES:
        return [(temperature, {}), (vector, {})]
    roots = MatrixScaling(structured=True, tol=_TOL)
    logs = MatrixScaling(C=0.01, structured=True, coordinates="log-ratio", tol=_TOL)
    return [
        (temperature, {}),
        (smoothed, {}),
        (vector, {}),
        (logs, {}),
        (roots, {"C": [0.1, 1.0, 10.0]}),
        (Smoothed(roots, strength=0.001), {"estimator__C": [0.1, 1.0]}),
    ]


def default_max_samples(n_classes: int) -> int:
    """Samples that choose: enough for differences that matter."""
    return 50_000 if n_classes == 2 else 5_000
