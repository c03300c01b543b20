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
from skcal.recalibration import Recalibrator, TemperatureScaling
from skcal.report import calibration_report

__version__ = "0.1.0"

__all__ = [
    "Binning",
    "CalibrationErrorEstimator",
    "CalibrationErrorSearchCV",
    "ClassifierProbabilities",
    "DirichletKernelDensity",
    "KroneckerKernelRidge",
    "PlugIn",
    "RecalibratedClassifierCV",
    "Recalibrator",
    "Stacking",
    "TemperatureScaling",
    "TwoStepKernelRidge",
    "Zero",
    "calibration_report",
    "compare_risks",
]
