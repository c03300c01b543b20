"""Estimate and test the calibration errors of probabilistic classifiers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from skcal.hypothesis_tests.error_interval import calibration_error_interval
    from skcal.metrics import calibration_error
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
    "calibration_error",
    "calibration_error_interval",
    "calibration_report",
    "compare_risks",
]

# Half of the time that an import of everything takes; few programs need it.
_ANSWERS = {
    "calibration_error": "skcal.metrics",
    "calibration_error_interval": "skcal.metrics",
    "calibration_report": "skcal.report",
}
_WHEN_USED = ("cli", "displays", "hypothesis_tests", "metrics", "monitoring", "report")


def __getattr__(name: str) -> Any:
    if name in _ANSWERS:
        return getattr(import_module(_ANSWERS[name]), name)
    if name in _WHEN_USED:
        return import_module(f"skcal.{name}")
    raise AttributeError(f"module 'skcal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_WHEN_USED})
