"""Recalibration maps: scikit-learn estimators from predicted to recalibrated probabilities."""

from skcal.recalibration.base import Identity, RecalibrationMap, Smoothed
from skcal.recalibration.features import LogProbabilities, ProbabilityInteractions
from skcal.recalibration.mixture import Mixture
from skcal.recalibration.monotone import IsotonicCalibration, VennAbers
from skcal.recalibration.prevalence import adjust_prevalence, estimate_prevalence
from skcal.recalibration.recalibrator import Recalibrator
from skcal.recalibration.scaling import (
    BetaCalibration,
    DirichletCalibration,
    InterceptCalibration,
    MatrixScaling,
    QuadraticScaling,
    SplineScaling,
    VectorScaling,
)
from skcal.recalibration.temperature import (
    ClassBasedTemperatureScaling,
    EnsembleTemperatureScaling,
    TemperatureScaling,
)

__all__ = [
    "BetaCalibration",
    "ClassBasedTemperatureScaling",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "Identity",
    "InterceptCalibration",
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
    "TemperatureScaling",
    "VectorScaling",
    "VennAbers",
    "adjust_prevalence",
    "estimate_prevalence",
]
