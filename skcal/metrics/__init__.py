"""Calibration measures ``(y_true, y_proba, *, …) → float`` (or parts), intervals and scorers."""

from skcal.metrics.base import normalize_proba
from skcal.metrics.bin_table import CalibrationBins, calibration_bins
from skcal.metrics.binned import expected_calibration_error, maximum_calibration_error
from skcal.metrics.binned_rms_interval import ErrorInterval, binned_rms_error_interval
from skcal.metrics.bins import BinMoments, BinRule
from skcal.metrics.bootstrap import BootstrapInterval, bootstrap_interval
from skcal.metrics.cox import (
    CoxRecalibration,
    calibration_intercept,
    calibration_slope,
    cox_recalibration,
)
from skcal.metrics.cross_fitted import cross_fitted_calibration_error, refinement_loss
from skcal.metrics.cumulative import (
    cutoff_calibration_error,
    kolmogorov_smirnov_calibration_error,
)
from skcal.metrics.curve import (
    CalibrationCurve,
    flexible_calibration_curve,
    integrated_calibration_index,
)
from skcal.metrics.decomposition import ScoreDecomposition, score_decomposition, sharpness
from skcal.metrics.error_limits import CalibrationErrorInterval, calibration_error
from skcal.metrics.kernel import (
    maximum_mean_calibration_error,
    squared_kernel_calibration_error,
)
from skcal.metrics.mean_embedding import squared_mean_embedding_calibration_error
from skcal.metrics.murphy import MurphyDiagram, murphy_diagram
from skcal.metrics.sample_size import ValidationSampleSize, validation_sample_size
from skcal.metrics.scorers import get_scorer, get_scorer_names, make_calibration_scorer
from skcal.metrics.selective import (
    CoverageAtRisk,
    RiskCoverageCurve,
    area_under_risk_coverage,
    coverage_at_risk,
    risk_coverage_curve,
)
from skcal.metrics.shifted import ShiftedCalibrationError, shifted_calibration_error
from skcal.metrics.smooth import kernel_density_calibration_error, smooth_calibration_error
from skcal.metrics.thresholds import DecisionCurve, decision_curve, net_benefit
from skcal.metrics.validation import Measure, ValidationMeasures, validation_measures

__all__ = [
    "BinMoments",
    "BinRule",
    "BootstrapInterval",
    "CalibrationBins",
    "CalibrationCurve",
    "CalibrationErrorInterval",
    "CoverageAtRisk",
    "CoxRecalibration",
    "DecisionCurve",
    "ErrorInterval",
    "Measure",
    "MurphyDiagram",
    "RiskCoverageCurve",
    "ScoreDecomposition",
    "ShiftedCalibrationError",
    "ValidationMeasures",
    "ValidationSampleSize",
    "area_under_risk_coverage",
    "binned_rms_error_interval",
    "bootstrap_interval",
    "calibration_bins",
    "calibration_error",
    "calibration_intercept",
    "calibration_slope",
    "coverage_at_risk",
    "cox_recalibration",
    "cross_fitted_calibration_error",
    "cutoff_calibration_error",
    "decision_curve",
    "expected_calibration_error",
    "flexible_calibration_curve",
    "get_scorer",
    "get_scorer_names",
    "integrated_calibration_index",
    "kernel_density_calibration_error",
    "kolmogorov_smirnov_calibration_error",
    "make_calibration_scorer",
    "maximum_calibration_error",
    "maximum_mean_calibration_error",
    "murphy_diagram",
    "net_benefit",
    "normalize_proba",
    "refinement_loss",
    "risk_coverage_curve",
    "score_decomposition",
    "sharpness",
    "shifted_calibration_error",
    "smooth_calibration_error",
    "squared_kernel_calibration_error",
    "squared_mean_embedding_calibration_error",
    "validation_measures",
    "validation_sample_size",
]
