"""Everything that a defensible account of a classifier's calibration holds, in one call."""

from skcal.report.report import CalibrationReport, calibration_report

__all__ = ["CalibrationReport", "calibration_report"]
