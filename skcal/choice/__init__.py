"""Estimators that choose by cross-validation, and whose results tests judge."""

from skcal.choice.recalibrated_classifier import RecalibratedClassifierCV
from skcal.choice.recalibrator import Recalibrator
from skcal.choice.search import CalibrationErrorSearchCV
from skcal.choice.segment_recalibrator import RecalibratedSegment, SegmentRecalibrator

__all__ = [
    "CalibrationErrorSearchCV",
    "RecalibratedClassifierCV",
    "RecalibratedSegment",
    "Recalibrator",
    "SegmentRecalibrator",
]
