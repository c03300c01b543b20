"""Which functions and parameters a search tries, and whether they can be fitted at all."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from skcal._selection import as_pair, distinct_names, settings_of, short_name
from skcal.functions import (
    Binning,
    DirichletKernelDensity,
    FixedFunction,
    KroneckerKernelRidge,
    PlugIn,
    Stacking,
    TwoStepKernelRidge,
    Zero,
)
from skcal.functions.base import BilinearFunction
from skcal.functions.kernel_density import BANDWIDTHS
from skcal.model_selection.families import FunctionFamily, Plain, Shared, Stack
from skcal.recalibration.features import ProbabilityInteractions
from skcal.recalibration.scalar_scaling import SplineScaling
from skcal.recalibration.scaling import MatrixScaling, VectorScaling
from skcal.recalibration.temperature import ClassBasedTemperatureScaling, TemperatureScaling

# Above this the default ridge forms are Nyström approximations; `trace_error_` tells how good.
_MAX_RANK = 1000
_C_GRID = [0.01, 0.1, 1.0, 10.0, 100.0]
_TREES = ExtraTreesRegressor(n_estimators=30, min_samples_leaf=20, random_state=0)
_ISOTONIC = IsotonicRegression(out_of_bounds="clip")
_RIDGE_CV = RidgeCV(alphas=np.logspace(-2, 4, 13), gcv_mode="svd")  # one for all alphas
MATRIX_SCALING_MAX_CLASSES = 100
_INTERACTIONS_MAX_CLASSES = 30  # there are C² of them
_STACK_MIN_SAMPLES = 100
# Training samples² × classes, above which a kernel density takes more than ten minutes; of 10,000
# predictions of 1,000 classes its risk is above that of h = 0.
_MANY_PRODUCTS = 5e11


def gruber_bach(notion, n_classes: int, n_train: float) -> list[tuple]:
    """The search space of Gruber & Bach (2025).

    Parameters
    ----------
    notion : Notion
    n_classes : int
    n_train : float
        Training samples of a fold; their λ' enters as λ'/√n (Kronecker) and λ'/n^¼ (two-step).

    Returns
    -------
    candidates : list of (function, param_grid)
    """
    return _published(notion.scalar, n_train, max_rank=None)


def _published(scalar, n_train, max_rank, step=1):
    """The published grids; of those that cost much in time every ``step``-th value."""
    every = slice(step - 1, None, step)
    if scalar:
        kronecker, two_step = np.logspace(-1, -17, 9), np.logspace(-1, -9, 9)
    else:
        kronecker, two_step = np.logspace(8, -9, 18)[every], np.logspace(4, -4.5, 18)[every]
    # Of vectors the narrowest kernels see single points.
    bandwidths = BANDWIDTHS[every] if scalar or step == 1 else BANDWIDTHS[every][2:]
    # Scalar kernels have rank about 10 even at a tolerance that the smallest λ' asks for.
    options = {"tol": 1e-14 if scalar else 1e-8, "max_rank": max_rank}
    binning = [(Binning(), {"n_bins": list(range(5, 95, 5))})] if scalar else []
    return [
        *binning,
        (DirichletKernelDensity(), {"bandwidth": bandwidths.tolist()}),
        (KroneckerKernelRidge(**options), {"alpha": (kronecker / n_train**0.5).tolist()}),
        (TwoStepKernelRidge(**options), {"alpha": (two_step / n_train**0.25).tolist()}),
    ]


def recommended(notion, n_classes: int, n_train: float) -> list[tuple]:
    """Zero, the published search space, recalibration maps and a stack; arguments as above."""
    scalar = notion.scalar
    published = _published(scalar, n_train, _MAX_RANK, step=2)
    if not scalar and n_train**2 * n_classes > _MANY_PRODUCTS:
        published = [
            (function, grid)
            for function, grid in published
            if not isinstance(function, DirichletKernelDensity)
        ]
    candidates = [(Zero(), {}), *published]
    candidates.append((PlugIn(TemperatureScaling()), {}))
    if scalar:
        candidates += _scalar_maps()
    elif n_classes <= MATRIX_SCALING_MAX_CLASSES:
        candidates += _matrix_maps(n_classes)
    else:
        # Weaker penalties need hundreds of steps; of four cells of 110 and 150 classes, one shifted
        # far and two with slopes of their own, none had its lowest risk there.
        vector = PlugIn(VectorScaling(tol=1e-6))
        candidates.append((vector, {"estimator__C": _C_GRID[:3]}))
    return candidates


def _scalar_maps():
    temperature, isotonic = PlugIn(TemperatureScaling()), PlugIn(_ISOTONIC, target="outcome")
    return [
        (isotonic, {}),
        (PlugIn(SplineScaling()), {"estimator__C": _C_GRID[:4]}),
        (Stacking([temperature, PlugIn(SplineScaling()), isotonic], cv=3, random_state=0), {}),
    ]


def _matrix_maps(n_classes):
    # Maps shrunk towards the identity and towards uniform predictions, and trees and maps with
    # varying coefficients for what these cannot express.
    maps = [TemperatureScaling(), MatrixScaling(structured=True), MatrixScaling(C=0.01), _TREES]
    parts = [PlugIn(one) for one in maps]
    if n_classes <= _INTERACTIONS_MAX_CLASSES:
        by_confidence = make_pipeline(ProbabilityInteractions("confidence"), _RIDGE_CV)
        parts += [
            PlugIn(ClassBasedTemperatureScaling()),
            PlugIn(make_pipeline(ProbabilityInteractions("predicted class"), _RIDGE_CV)),
            PlugIn(by_confidence),
            PlugIn(by_confidence, equivariant=True),
        ]
    return [
        (PlugIn(MatrixScaling(structured=True)), {"estimator__C": _C_GRID}),
        (Stacking(parts, cv=3, random_state=0), {}),
    ]


def fast_function(notion, n_classes: int, n_train: float) -> BilinearFunction:
    """One function with ``residual`` that suits most predictions; arguments as above."""
    if notion.scalar:
        return PlugIn(SplineScaling())
    if n_classes > MATRIX_SCALING_MAX_CLASSES:
        return PlugIn(VectorScaling(C=0.1))
    if n_classes > _INTERACTIONS_MAX_CLASSES or n_train < _STACK_MIN_SAMPLES:
        return PlugIn(MatrixScaling(C=0.1, structured=True))
    # A map by class, and one of all predictions whatever the names of the classes.
    by_confidence = make_pipeline(ProbabilityInteractions("confidence"), _RIDGE_CV)
    parts = [PlugIn(ClassBasedTemperatureScaling()), PlugIn(by_confidence, equivariant=True)]
    return Stacking(parts, cv=3, random_state=0)


CANDIDATES: dict[str, Callable] = {"recommended": recommended, "gruber-bach": gruber_bach}


def resolve_candidates(candidates, notion, n_classes: int, n_train: float) -> list[tuple]:
    """Return (function, grid of its parameters) pairs; grids may be callables of n_train."""
    if candidates is None:
        candidates = "recommended"
    if isinstance(candidates, str):
        if candidates not in CANDIDATES:
            raise ValueError(
                f"candidates={candidates!r} is unknown. Use one of "
                f"{', '.join(map(repr, CANDIDATES))}, or a list of (function, param_grid)."
            )
        return CANDIDATES[candidates](notion, n_classes, n_train)
    resolved = []
    for position, candidate in enumerate(candidates):
        if callable(candidate) and not isinstance(candidate, type):
            candidate = FixedFunction(candidate)
        function, grid = as_pair(candidate, f"candidates[{position}]", _is_function, _CANDIDATES)
        resolved.append((function, grid(n_train) if callable(grid) else grid))
    if not resolved:
        raise ValueError("candidates is empty. Pass at least one (function, param_grid).")
    return resolved


_CANDIDATES = (
    "Pass (function, param_grid) with a calibration-estimation function such as skcal.Binning(); "
    "wrap scikit-learn estimators and recalibration maps as skcal.PlugIn(estimator)."
)


def _is_function(candidate) -> bool:
    return isinstance(candidate, BilinearFunction)


def family_name(function: BilinearFunction) -> str:
    """Name of a candidate for tables: its class, for a plug-in that of its last step."""
    return short_name(function.estimator if isinstance(function, PlugIn) else function)


def expand_candidates(candidates, from_logits=False) -> list[FunctionFamily]:
    """Expand (function, param_grid) pairs.

    Recalibration maps take logits if ``from_logits`` and probabilities otherwise.
    """
    names = distinct_names(family_name(function) for function, _ in candidates)
    families: list[FunctionFamily] = []
    for position, (name, (function, grid)) in enumerate(zip(names, candidates, strict=True)):
        place = f"candidates[{position}], {family_name(function)}"
        settings, functions = settings_of(function, grid, place)
        function = function.reading(from_logits)
        functions = [setting.reading(from_logits) for setting in functions]
        families.append(_family_of(function)(name, function, settings, functions))
    return families


def _family_of(function: BilinearFunction) -> type[FunctionFamily]:
    if function.parts:
        return Stack
    return Shared if function._shares_with(function) else Plain


def try_families(families, problem, rows, n_rows=30):
    """Fit every setting on a few samples, so that what cannot work is said at once.

    A candidate that fails on few samples is fitted once on a whole fold before it is refused.

    Parameters
    ----------
    families : list of FunctionFamily
    problem : Problem
    rows : ndarray of int
        A training set, whose first samples are taken unless the problem is about a part of all.
    n_rows : int, default=30
    """
    if not problem.of_all_samples:
        rows = np.arange(len(problem.features))
    if len(rows) < 2:
        return
    few = rows[:n_rows]
    for position, family in enumerate(families):
        for setting, function in zip(family.settings, family.functions, strict=True):
            error = _fit_error(function, problem, few)
            if error is not None and len(rows) > len(few):
                error = _fit_error(function, problem, rows)
            if error is not None:
                shown = ", ".join(f"{k}={v!r}" for k, v in setting.items())
                raise ValueError(
                    f"candidates[{position}], {family.name}({shown}), cannot be fitted: {error}"
                ) from error


def _fit_error(function, problem, rows):
    X, residuals = problem.seen_by(function)[rows], problem.residuals[rows]
    weight = problem.weight[rows] if problem.weight[rows].any() else np.ones(len(residuals))
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            if function.parts:  # whose combination comes from what searches hold out
                clone(function).fit_parts(X, residuals, weight)
            else:
                clone(function).fit(X, residuals, weight)
    except (ValueError, TypeError) as error:
        return error
    return None
