"""Everything that a defensible account of a classifier's calibration holds, in one call."""

from skcal.report.build import calibration_report
from skcal.report.report import CalibrationReport

__all__ = ["CalibrationReport", "calibration_report"]
