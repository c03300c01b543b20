"""Recalibration maps: scikit-learn estimators from predicted to recalibrated probabilities."""

from skcal._scores import LossComparison
from skcal.recalibration.base import Identity, RecalibrationMap, Smoothed
from skcal.recalibration.bayesian import BayesianCalibration
from skcal.recalibration.features import LogProbabilities, ProbabilityInteractions
from skcal.recalibration.mixture import Mixture
from skcal.recalibration.monotone import HistogramBinning, IsotonicCalibration, VennAbers
from skcal.recalibration.prevalence import adjust_prevalence, estimate_prevalence
from skcal.recalibration.scalar_scaling import (
    BetaCalibration,
    PlattScaling,
    QuadraticScaling,
    SplineScaling,
)
from skcal.recalibration.scaling import (
    DirichletCalibration,
    InterceptCalibration,
    MatrixScaling,
    VectorScaling,
)
from skcal.recalibration.temperature import (
    ClassBasedTemperatureScaling,
    EnsembleTemperatureScaling,
    TemperatureScaling,
)
from skcal.recalibration.trial import OutOfFold

__all__ = [
    "BayesianCalibration",
    "BetaCalibration",
    "ClassBasedTemperatureScaling",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "HistogramBinning",
    "Identity",
    "InterceptCalibration",
    "IsotonicCalibration",
    "LogProbabilities",
    "LossComparison",
    "MatrixScaling",
    "Mixture",
    "OutOfFold",
    "PlattScaling",
    "ProbabilityInteractions",
    "QuadraticScaling",
    "RecalibrationMap",
    "Smoothed",
    "SplineScaling",
    "TemperatureScaling",
    "VectorScaling",
    "VennAbers",
    "adjust_prevalence",
    "estimate_prevalence",
]
