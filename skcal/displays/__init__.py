"""Displays: all numbers are computed first, and each draws on its own axes only."""

from skcal.displays.bin_count import BinCountDisplay
from skcal.displays.comparison import BiasCurveDisplay, ComparisonDisplay, SegmentDisplay
from skcal.displays.curves import (
    CalibrationCurveDisplay,
    DecisionCurveDisplay,
    MurphyDisplay,
)
from skcal.displays.monitor import MonitorDisplay
from skcal.displays.recalibration import RecalibrationDisplay
from skcal.displays.reliability import ReliabilityDisplay
from skcal.displays.reliability_panel import ReliabilityPanel
from skcal.displays.risk import RiskCoverageDisplay, RiskDisplay
from skcal.displays.simplex import SimplexDisplay

__all__ = [
    "BiasCurveDisplay",
    "BinCountDisplay",
    "CalibrationCurveDisplay",
    "ComparisonDisplay",
    "DecisionCurveDisplay",
    "MonitorDisplay",
    "MurphyDisplay",
    "RecalibrationDisplay",
    "ReliabilityDisplay",
    "ReliabilityPanel",
    "RiskCoverageDisplay",
    "RiskDisplay",
    "SegmentDisplay",
    "SimplexDisplay",
]
