"""Recalibration maps: scikit-learn estimators from predicted to recalibrated probabilities."""

from skcal.recalibration.base import RecalibrationMap
from skcal.recalibration.coordinates import LogProbabilities
from skcal.recalibration.dirichlet import DirichletCalibration
from skcal.recalibration.ensemble import EnsembleTemperatureScaling
from skcal.recalibration.identity import Identity, Smoothed
from skcal.recalibration.interactions import ProbabilityInteractions
from skcal.recalibration.isotonic import IsotonicCalibration, VennAbers
from skcal.recalibration.matrix import MatrixScaling, StructuredMatrixScaling
from skcal.recalibration.mixture import Mixture
from skcal.recalibration.prevalence import adjust_prevalence, estimate_prevalence
from skcal.recalibration.recalibrator import Recalibrator
from skcal.recalibration.scalar import BetaCalibration, QuadraticScaling, SplineScaling
from skcal.recalibration.temperature import ClassBasedTemperatureScaling, TemperatureScaling
from skcal.recalibration.vector import StructuredVectorScaling, VectorScaling

__all__ = [
    "BetaCalibration",
    "ClassBasedTemperatureScaling",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "Identity",
    "IsotonicCalibration",
    "LogProbabilities",
    "MatrixScaling",
    "Mixture",
    "ProbabilityInteractions",
    "QuadraticScaling",
    "RecalibrationMap",
    "Recalibrator",
    "Smoothed",
    "SplineScaling",
    "StructuredMatrixScaling",
    "StructuredVectorScaling",
    "TemperatureScaling",
    "VectorScaling",
    "VennAbers",
    "adjust_prevalence",
    "estimate_prevalence",
]
