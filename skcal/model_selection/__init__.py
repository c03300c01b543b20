"""Estimate a calibration error with one function, and what a search for a function needs."""

from skcal.model_selection.adapters import ClassifierProbabilities, FunctionCorrection
from skcal.model_selection.comparison import RiskComparison, compare_risks
from skcal.model_selection.errors import ErrorEstimate
from skcal.model_selection.estimates import OneStepEstimate
from skcal.model_selection.estimator import CalibrationErrorEstimator, ConfidenceInterval

__all__ = [
    "CalibrationErrorEstimator",
    "ClassifierProbabilities",
    "ConfidenceInterval",
    "ErrorEstimate",
    "FunctionCorrection",
    "OneStepEstimate",
    "RiskComparison",
    "compare_risks",
]
