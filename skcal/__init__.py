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
from skcal.model_selection import CalibrationErrorEstimator
from skcal.recalibration import TemperatureScaling
from skcal.sample import Sample
from skcal.table import CalibrationTable

if TYPE_CHECKING:
    from skcal.choice import CalibrationErrorSearchCV, RecalibratedClassifierCV, Recalibrator
    from skcal.displays import ReliabilityDisplay
    from skcal.hypothesis_tests import (
        calibration_error_interval,
        calibration_test,
        compare_calibration,
        equivalence_test,
        scan_test,
    )
    from skcal.metrics import calibration_error, expected_calibration_error
    from skcal.monitoring import CalibrationMonitor
    from skcal.report import calibration_report

__version__ = "0.1.0"

__all__ = [
    "Binning",
    "CalibrationErrorEstimator",
    "CalibrationErrorSearchCV",
    "CalibrationMonitor",
    "CalibrationTable",
    "DirichletKernelDensity",
    "KroneckerKernelRidge",
    "PlugIn",
    "RecalibratedClassifierCV",
    "Recalibrator",
    "ReliabilityDisplay",
    "Sample",
    "Stacking",
    "TemperatureScaling",
    "TwoStepKernelRidge",
    "Zero",
    "calibration_error",
    "calibration_error_interval",
    "calibration_report",
    "calibration_test",
    "compare_calibration",
    "equivalence_test",
    "expected_calibration_error",
    "scan_test",
]

# Half of the time that an import of everything takes; few programs need it.
_ANSWERS = {
    "CalibrationErrorSearchCV": "choice",
    "CalibrationMonitor": "monitoring",
    "RecalibratedClassifierCV": "choice",
    "Recalibrator": "choice",
    "ReliabilityDisplay": "displays",
    "calibration_error": "metrics",
    "calibration_error_interval": "hypothesis_tests",
    "calibration_report": "report",
    "calibration_test": "hypothesis_tests",
    "compare_calibration": "hypothesis_tests",
    "equivalence_test": "hypothesis_tests",
    "expected_calibration_error": "metrics",
    "scan_test": "hypothesis_tests",
}
_WHEN_USED = ("choice", "cli", "displays", "hypothesis_tests", "metrics", "monitoring", "report")


def __getattr__(name: str) -> Any:
    if name in _ANSWERS:
        return getattr(import_module(f"skcal.{_ANSWERS[name]}"), name)
    if name in _WHEN_USED:
        return import_module(f"skcal.{name}")
    raise AttributeError(f"module 'skcal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_WHEN_USED})
