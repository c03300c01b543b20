"""Everything that a defensible account of a classifier's calibration holds, in one call."""

from skcal.report.centres import Heterogeneity
from skcal.report.findings import Findings
from skcal.report.measure import Measures
from skcal.report.report import CalibrationReport, calibration_report

__all__ = [
    "CalibrationReport",
    "Findings",
    "Heterogeneity",
    "Measures",
    "calibration_report",
]
