"""Which maps a recalibrator tries, and which keep the order of the classes."""

from __future__ import annotations

from typing import Any

from skcal.recalibration.base import Identity, Smoothed
from skcal.recalibration.bayesian import BayesianCalibration
from skcal.recalibration.scaling import MatrixScaling, VectorScaling
from skcal.recalibration.temperature import EnsembleTemperatureScaling, TemperatureScaling

MATRIX_MAX_CLASSES = 100
_TOL = 1e-5  # of maps whose neighbours on the grid differ by far more


def default_candidates(n_classes: int, monotone=True, preserve_classes=False) -> list[tuple]:
    """Maps and grids, from the simplest on."""
    temperature, smoothed = TemperatureScaling(), Smoothed(TemperatureScaling(), strength=0.01)
    if preserve_classes:
        return [(temperature, {}), (smoothed, {}), (EnsembleTemperatureScaling(), {})]
    if n_classes == 2:
        return [(BayesianCalibration(monotone=monotone), {})]
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


def keeps_order(estimator: Any) -> bool:
    """Whether a map never changes the order of the classes of a sample."""
    if isinstance(estimator, Smoothed):
        return keeps_order(estimator.estimator)
    return type(estimator) in (Identity, TemperatureScaling, EnsembleTemperatureScaling)
