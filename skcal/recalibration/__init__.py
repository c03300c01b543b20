"""Recalibration maps: scikit-learn estimators from predicted to recalibrated probabilities."""

from skcal.recalibration.coordinates import LogProbabilities
from skcal.recalibration.identity import Identity, Smoothed
from skcal.recalibration.interactions import ProbabilityInteractions
from skcal.recalibration.matrix import MatrixScaling, StructuredMatrixScaling
from skcal.recalibration.mixture import Mixture
from skcal.recalibration.recalibrator import Recalibrator
from skcal.recalibration.scalar import BetaCalibration, SplineScaling
from skcal.recalibration.temperature import ClassBasedTemperatureScaling, TemperatureScaling
from skcal.recalibration.vector import VectorScaling

__all__ = [
    "BetaCalibration",
    "ClassBasedTemperatureScaling",
    "Identity",
    "LogProbabilities",
    "MatrixScaling",
    "Mixture",
    "ProbabilityInteractions",
    "Recalibrator",
    "Smoothed",
    "SplineScaling",
    "StructuredMatrixScaling",
    "TemperatureScaling",
    "VectorScaling",
]
