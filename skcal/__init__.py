"""Estimate and test the calibration errors of probabilistic classifiers."""

from skcal.functions import (
    Binning,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    PlugIn,
    Stacking,
    TwoStepKernelRidge,
    Zero,
)
from skcal.model_selection import (
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    ClassifierProbabilities,
    compare_risks,
)
from skcal.recalibrated_classifier import RecalibratedClassifierCV
from skcal.recalibration import (
    BetaCalibration,
    ClassBasedTemperatureScaling,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    IsotonicCalibration,
    LogProbabilities,
    MatrixScaling,
    ProbabilityInteractions,
    QuadraticScaling,
    Recalibrator,
    SplineScaling,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    VectorScaling,
    VennAbers,
)
from skcal.report import calibration_report

__version__ = "0.1.0"

__all__ = [
    "BetaCalibration",
    "Binning",
    "CalibrationErrorEstimator",
    "CalibrationErrorSearchCV",
    "ClassBasedTemperatureScaling",
    "ClassifierProbabilities",
    "DirichletCalibration",
    "DirichletKernelDensity",
    "EnsembleTemperatureScaling",
    "IsotonicCalibration",
    "KroneckerKernelRidge",
    "LogProbabilities",
    "MatrixScaling",
    "PlugIn",
    "ProbabilityInteractions",
    "QuadraticScaling",
    "RecalibratedClassifierCV",
    "Recalibrator",
    "SplineScaling",
    "Stacking",
    "StructuredMatrixScaling",
    "StructuredVectorScaling",
    "TemperatureScaling",
    "TwoStepKernelRidge",
    "VectorScaling",
    "VennAbers",
    "Zero",
    "calibration_report",
    "compare_risks",
]
