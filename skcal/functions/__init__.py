"""Calibration-estimation functions h(x, x') = φ(x)ᵀ M φ(x')."""

from skcal.functions.base import BilinearFunction
from skcal.functions.binning import Binning
from skcal.functions.kernel_density import DirichletKernelDensity
from skcal.functions.kernel_ridge import KroneckerKernelRidge, TwoStepKernelRidge
from skcal.functions.plug_in import FixedFunction, PlugIn, Zero
from skcal.functions.stacking import Stacking

__all__ = [
    "BilinearFunction",
    "Binning",
    "DirichletKernelDensity",
    "FixedFunction",
    "KroneckerKernelRidge",
    "PlugIn",
    "Stacking",
    "TwoStepKernelRidge",
    "Zero",
]
