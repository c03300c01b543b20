"""Estimate a calibration error with one function, or search for the function."""

from skcal.model_selection.adapters import ClassifierProbabilities, FunctionCorrection
from skcal.model_selection.comparison import RiskComparison, compare_risks
from skcal.model_selection.estimates import OneStepEstimate
from skcal.model_selection.estimator import CalibrationErrorEstimator
from skcal.model_selection.search import CalibrationErrorSearchCV

__all__ = [
    "CalibrationErrorEstimator",
    "CalibrationErrorSearchCV",
    "ClassifierProbabilities",
    "FunctionCorrection",
    "OneStepEstimate",
    "RiskComparison",
    "compare_risks",
]
