"""Estimate a calibration error with one function, and what a search for a function needs."""

from skcal.model_selection.adapters import ClassifierProbabilities, FunctionCorrection
from skcal.model_selection.comparison import RiskComparison, compare_risks
from skcal.model_selection.estimates import OneStepEstimate
from skcal.model_selection.estimator import CalibrationErrorEstimator

__all__ = [
    "CalibrationErrorEstimator",
    "ClassifierProbabilities",
    "FunctionCorrection",
    "OneStepEstimate",
    "RiskComparison",
    "compare_risks",
]
