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
    LogProbabilities,
    MatrixScaling,
    ProbabilityInteractions,
    Recalibrator,
    SplineScaling,
    StructuredMatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from skcal.report import calibration_report

__version__ = "0.1.0.dev0"

__all__ = [
    "BetaCalibration",
    "Binning",
    "CalibrationErrorEstimator",
    "CalibrationErrorSearchCV",
    "ClassBasedTemperatureScaling",
    "ClassifierProbabilities",
    "DirichletKernelDensity",
    "KroneckerKernelRidge",
    "LogProbabilities",
    "MatrixScaling",
    "PlugIn",
    "ProbabilityInteractions",
    "RecalibratedClassifierCV",
    "Recalibrator",
    "SplineScaling",
    "Stacking",
    "StructuredMatrixScaling",
    "TemperatureScaling",
    "TwoStepKernelRidge",
    "VectorScaling",
    "Zero",
    "calibration_report",
    "compare_risks",
]
