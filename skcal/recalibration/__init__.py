"""Recalibration maps: scikit-learn estimators from predicted to recalibrated probabilities."""

from skcal.recalibration.interactions import ProbabilityInteractions
from skcal.recalibration.maps import (
    ClassBasedTemperatureScaling,
    LogProbabilities,
    TemperatureScaling,
    VectorScaling,
)
from skcal.recalibration.penalized import BetaCalibration, MatrixScaling, SplineScaling

__all__ = [
    "BetaCalibration",
    "ClassBasedTemperatureScaling",
    "LogProbabilities",
    "MatrixScaling",
    "ProbabilityInteractions",
    "SplineScaling",
    "TemperatureScaling",
    "VectorScaling",
]
