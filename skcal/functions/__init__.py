"""Calibration-estimation functions h(x, x') = φ(x)ᵀ M φ(x')."""

from skcal.functions.base import BilinearFunction
from skcal.functions.binning import Binning
from skcal.functions.boosting import Boosting
from skcal.functions.interactions import ProbabilityInteractions
from skcal.functions.kernel_density import DirichletKernelDensity
from skcal.functions.kernel_ridge import KroneckerKernelRidge, TwoStepKernelRidge
from skcal.functions.penalized_scaling import BetaCalibration, MatrixScaling, SplineScaling
from skcal.functions.plug_in import PlugIn, Zero
from skcal.functions.recalibration import (
    ClassBasedTemperatureScaling,
    LogProbabilities,
    TemperatureScaling,
    VectorScaling,
)
from skcal.functions.stacking import Stacking

__all__ = [
    "BetaCalibration",
    "BilinearFunction",
    "Binning",
    "Boosting",
    "ClassBasedTemperatureScaling",
    "DirichletKernelDensity",
    "KroneckerKernelRidge",
    "LogProbabilities",
    "MatrixScaling",
    "PlugIn",
    "ProbabilityInteractions",
    "SplineScaling",
    "Stacking",
    "TemperatureScaling",
    "TwoStepKernelRidge",
    "VectorScaling",
    "Zero",
]
