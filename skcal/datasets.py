"""Generative models whose true calibration error is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from numbers import Integral, Real
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.special import betaln
from scipy.stats import gamma
from sklearn.utils import check_random_state

from skcal._sklearn_compat import Interval, StrOptions, validate_params

__all__ = ["CalibrationDataset", "TrueError", "make_dirichlet", "make_distorted", "make_tempered"]

_OPTIONS = {
    "n_samples": [Interval(Integral, 1, None, closed="left")],
    "n_classes": [Interval(Integral, 2, None, closed="left")],
    "concentration": [Interval(Real, 0, None, closed="neither")],
    "n_truth_draws": [Interval(Integral, 0, None, closed="left")],
    "random_state": ["random_state"],
}


class TrueError(NamedTuple):
    """A true squared calibration error and the Monte Carlo error with which it is known.

    Parameters
    ----------
    value : float
        The calibration error of the simulated model, in [0, 1].
    standard_error : float, default=0.0
        Monte Carlo error of ``value``; 0 for a closed form.
    """

    value: float
    standard_error: float = 0.0


_CALIBRATED_MODELS = MappingProxyType(
    dict.fromkeys(("canonical", "classwise", "confidence"), TrueError(0.0))
)


@dataclass(frozen=True, eq=False)
class CalibrationDataset:
    """Predictions and labels from a model whose calibration error is known.

    The true errors are computed when they are asked for, once.

    Parameters
    ----------
    proba : ndarray of shape (n_samples, n_classes)
        Predicted probabilities.
    labels : ndarray of shape (n_samples,), int64
        The number of the column that happened.
    find_errors : callable
        Returns, without arguments, the true squared error of each notion.
    find_total_variation : callable or None, default=None
        Returns, without arguments, the true total variation.
    """

    proba: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    find_errors: Callable[[], Mapping[str, TrueError]] = field(repr=False)
    find_total_variation: Callable[[], float] | None = field(repr=False, default=None)

    @cached_property
    def true_squared_errors(self) -> Mapping[str, TrueError]:
        """The :class:`TrueError` of "canonical", "classwise" and "confidence"."""
        return self.find_errors()

    @cached_property
    def true_total_variation(self) -> float | None:
        """E ½‖E[e_y | p] - p‖₁ where a closed form is known, else None."""
        return None if self.find_total_variation is None else self.find_total_variation()


@validate_params(
    {
        **_OPTIONS,
        "model": [StrOptions({"M1", "M2", "M3"})],
        "noise": [Interval(Real, 0, 1, closed="both")],
    },
    used_with={"noise": {"model": ("M2",)}},
)
def make_dirichlet(
    n_samples: int = 1000,
    *,
    n_classes: int = 10,
    concentration: float = 0.1,
    model: str = "M1",
    noise: float = 0.5,
    n_truth_draws: int = 1_000_000,
    random_state: int | np.random.RandomState | None = None,
) -> CalibrationDataset:
    """Simulate Dirichlet predictions with labels from M1, M2 or M3 of Widmann et al.

    p ~ Dir(α 1), and the label is drawn from p (M1, calibrated), from (1 - π) p + π e_1 (M2), or
    uniformly (M3).

    Parameters
    ----------
    n_samples : int, default=1000
        The number of draws.
    n_classes : int, default=10
        The number of columns.
    concentration : float > 0, default=0.1
        The concentration α of the Dirichlet distribution.
    model : {"M1", "M2", "M3"}, default="M1"
        The distribution of labels.
    noise : float in [0, 1], default=0.5
        The share π of M2.
    n_truth_draws : int, default=1_000_000
        0 leaves the true errors out, as in :func:`make_tempered`. Other numbers make no difference:
        these true errors are closed forms, without draws.
    random_state : int, RandomState instance or None, default=None
        The seed of the draws.

    Returns
    -------
    data : CalibrationDataset
        The true errors are exact up to rounding (confidence: up to quadrature, about 1e-10).

    References
    ----------
    .. [1] Widmann, Lindsten & Zachariah, Calibration tests in multi-class classification: a
       unifying framework, NeurIPS 2019, Section 7.

    Examples
    --------
    >>> from skcal.datasets import make_dirichlet
    >>> data = make_dirichlet(5, n_classes=2, concentration=1.0, model="M3", random_state=0)
    >>> round(data.true_squared_errors["canonical"].value, 6)  # E‖p - 1/2‖²
    0.166667
    """
    rng = _generator(random_state)
    proba = _dirichlet(rng, n_samples, n_classes, concentration)
    labels = _categorical(rng, _CONDITIONALS[model](proba, noise))
    truth = model, n_classes, concentration, noise
    if not n_truth_draws:
        return CalibrationDataset(proba, labels, dict)
    errors, variation = partial(_dirichlet_errors, *truth), partial(_total_variation, *truth)
    return CalibrationDataset(proba, labels, errors, variation)


@validate_params({**_OPTIONS, "temperature": [Interval(Real, 0, None, closed="neither")]})
def make_tempered(
    n_samples: int = 1000,
    *,
    n_classes: int = 5,
    temperature: float = 2.0,
    concentration: float = 0.3,
    n_truth_draws: int = 1_000_000,
    random_state: int | np.random.RandomState | None = None,
) -> CalibrationDataset:
    """Simulate predictions that are overconfident or underconfident by a known temperature.

    Parameters
    ----------
    n_samples : int, default=1000
        The number of draws.
    n_classes : int, default=5
        The number of columns.
    temperature : float, default=2.0
        The temperature T; 1 is calibrated.
    concentration : float > 0, default=0.3
        The concentration α of the Dirichlet distribution.
    n_truth_draws : int, default=1_000_000
        Draws by which the true errors are computed when asked for, once per process and setting; 0
        leaves them out.
    random_state : int, RandomState instance or None, default=None
        The seed of the draws.

    Returns
    -------
    data : CalibrationDataset
        Predictions, labels and the truth, by Monte Carlo with a stated error.

    Notes
    -----
    Predictions are p ∝ π^T for labels y ~ Cat(π), π ~ Dir(α 1): overconfident for T > 1.

    References
    ----------
    .. [1] Gruber & Bach, Optimizing Estimators of Squared Calibration Errors in Classification,
       TMLR 2025, Section 5.1.

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> data = make_tempered(100, temperature=1.0, random_state=0)
    >>> data.true_squared_errors["canonical"]
    TrueError(value=0.0, standard_error=0.0)
    """
    rng = _generator(random_state)
    truth = _dirichlet(rng, n_samples, n_classes, concentration)
    labels = _categorical(rng, truth)
    setting = temperature, n_classes, concentration, n_truth_draws
    errors = partial(_simulated_errors, *setting) if n_truth_draws else dict
    return CalibrationDataset(_temper(truth, temperature), labels, errors)


@validate_params(
    {**_OPTIONS, "distortion": [StrOptions({"class-dependent", "non-monotone", "confused-pair"})]}
)
def make_distorted(
    n_samples: int = 1000,
    *,
    n_classes: int = 5,
    distortion: str = "class-dependent",
    concentration: float = 0.3,
    n_truth_draws: int = 1_000_000,
    random_state: int | np.random.RandomState | None = None,
) -> CalibrationDataset:
    """Simulate Dirichlet predictions with a distortion that matrix scaling cannot undo.

    Parameters
    ----------
    n_samples : int, default=1000
        The number of draws.
    n_classes : int, default=5
        The number of columns.
    distortion : {"class-dependent", "non-monotone", "confused-pair"}, default="class-dependent"
        "class-dependent": q ∝ √p where the most probable class has an even number, q ∝ p^1.5 where
        it is odd. "non-monotone": q = (1 - s) p + s p', p' the probabilities of the previous
        classes and s = ½ sin²(2π max p). "confused-pair": the same with p' the probabilities after
        the two largest changed places, and s of their difference.
    concentration : float > 0, default=0.3
        The concentration α of p ~ Dir(α 1).
    n_truth_draws : int, default=1_000_000
        Draws by which the true errors are computed when asked for, once per process and setting; 0
        leaves them out.
    random_state : int, RandomState instance or None, default=None
        The seed of the draws.

    Returns
    -------
    data : CalibrationDataset
        Predictions, labels and the truth, by Monte Carlo with a stated error.

    Notes
    -----
    Predictions are p, and labels are drawn as y ~ Cat(q(p)), where q is the distortion.

    Examples
    --------
    >>> from skcal.datasets import make_distorted
    >>> options = {"distortion": "non-monotone", "n_truth_draws": 100_000}
    >>> data = make_distorted(100, random_state=0, **options)
    >>> round(data.true_squared_errors["canonical"].value, 3)
    0.071
    """
    rng = _generator(random_state)
    proba = _dirichlet(rng, n_samples, n_classes, concentration)
    labels = _categorical(rng, DISTORTIONS[distortion](proba))
    setting = distortion, n_classes, concentration, n_truth_draws
    errors = partial(_simulated_errors, *setting) if n_truth_draws else dict
    return CalibrationDataset(proba, labels, errors)


def _class_dependent(proba: np.ndarray) -> np.ndarray:
    odd = proba.argmax(axis=1) % 2 == 1
    return _temper(proba, np.where(odd, 1.5, 0.5)[:, None])


def _non_monotone(proba: np.ndarray) -> np.ndarray:
    share = np.sin(2 * np.pi * proba.max(axis=1, keepdims=True)) ** 2 / 2
    return (1 - share) * proba + share * np.roll(proba, 1, axis=1)


def _confused_pair(proba: np.ndarray) -> np.ndarray:
    rows, top = np.arange(len(proba))[:, None], np.argsort(-proba, axis=1)[:, :2]
    first, second = proba[rows, top].T
    moved = (first - second) * np.sin(2 * np.pi * (first - second)) ** 2 / 2
    distorted = proba.copy()
    distorted[rows, top] += np.stack([-moved, moved], axis=1)
    return distorted


DISTORTIONS = {
    "class-dependent": _class_dependent,
    "non-monotone": _non_monotone,
    "confused-pair": _confused_pair,
}


def _m1(proba: np.ndarray, noise: float) -> np.ndarray:
    return proba


def _m2(proba: np.ndarray, noise: float) -> np.ndarray:
    conditional = (1 - noise) * proba
    conditional[:, 0] += noise
    return conditional


def _m3(proba: np.ndarray, noise: float) -> np.ndarray:
    return np.full_like(proba, 1 / proba.shape[1])


_CONDITIONALS = {"M1": _m1, "M2": _m2, "M3": _m3}


def _generator(random_state: int | np.random.RandomState | None) -> np.random.Generator:
    """A Generator, whose Dirichlet draws stay finite at small concentrations."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def _dirichlet(
    rng: np.random.Generator, n_samples: int, n_classes: int, concentration: float
) -> np.ndarray:
    return rng.dirichlet(np.full(n_classes, concentration), size=n_samples)


def _categorical(rng: np.random.Generator, proba: np.ndarray) -> np.ndarray:
    """Draw a class from each row."""
    below = np.cumsum(proba, axis=1) < rng.uniform(size=(len(proba), 1))
    return np.minimum(below.sum(axis=1), proba.shape[1] - 1).astype(np.int64)


def _temper(truth: np.ndarray, temperature: float | np.ndarray) -> np.ndarray:
    powered = (truth / truth.max(axis=1, keepdims=True)) ** temperature
    return powered / powered.sum(axis=1, keepdims=True)


def _dirichlet_errors(
    model: str, n_classes: int, concentration: float, noise: float
) -> Mapping[str, TrueError]:
    """Closed forms of the canonical, class-wise and confidence errors."""
    if model == "M1":
        return _CALIBRATED_MODELS
    C, a = n_classes, concentration
    q = (a + 1) / (C * a + 1)  # E‖p‖²
    mean, square = _max_moments(C, a)
    confidence = 1 / C**2 - 2 / C * mean + square  # E(1/C - max p)²
    canonical = q - 1 / C
    if model == "M2":
        canonical, confidence = noise**2 * (1 - 2 / C + q), noise**2 * confidence
    errors = {"canonical": canonical, "classwise": canonical, "confidence": confidence}
    return {name: TrueError(float(error)) for name, error in errors.items()}


def _total_variation(model: str, n_classes: int, concentration: float, noise: float) -> float:
    C, a = n_classes, concentration
    if model == "M1":
        return 0.0
    if model == "M2":
        return noise * (1 - 1 / C)
    b = (C - 1) * a
    log_terms = (1 - a) * np.log(C) + b * np.log1p(-1 / C) - betaln(a, b)
    return float(np.exp(log_terms) / (C * a))


@lru_cache
def _max_moments(n_classes: int, concentration: float) -> tuple[float, float]:
    """E max p and E (max p)² of a symmetric Dirichlet distribution.

    p = g / Σg for gamma variables g, independent of their sum, so E max p^k = E max g^k / E(Σg)^k.
    """
    C, a = n_classes, concentration

    def survival(t: float) -> float:
        return -np.expm1(C * gamma.logcdf(t, a))

    limits = [0, 1e-6, 1e-3, 1e-1, 1, 10, 100 + 10 * a]
    pieces = list(pairwise(limits))
    first = sum(quad(survival, *p, epsabs=1e-13)[0] for p in pieces)
    second = sum(quad(lambda t: 2 * t * survival(t), *p, epsabs=1e-13)[0] for p in pieces)
    return first / (C * a), second / (C * a * (C * a + 1))


@lru_cache
def _simulated_errors(
    change: float | str, n_classes: int, concentration: float, n_draws: int
) -> Mapping[str, TrueError]:
    """True squared errors of a temperature or a distortion, by Monte Carlo with a stated error.

    Canonical: the mean of ‖E[e_y | p] - p‖². Confidence and class-wise: regression of the gap on
    the scalar feature by 1,000 equal-mass bins in each of 10 batches, with the bins' variance
    subtracted. The standard error is that of the mean of the batches.
    """
    if change == 1:
        return _CALIBRATED_MODELS
    classes = range(n_classes) if change == "class-dependent" else [0]  # else exchangeable
    rng = np.random.default_rng(0)
    batches, size = np.empty((10, 3)), max(n_draws // 10, 2)
    for batch in batches:
        drawn = rng.dirichlet(np.full(n_classes, concentration), size=size)
        if isinstance(change, str):
            proba, gap = drawn, DISTORTIONS[change](drawn) - drawn
        else:
            proba = _temper(drawn, change)
            gap = drawn - proba
        canonical = np.mean(np.sum(gap**2, axis=1))
        classwise = n_classes * np.mean([_explained(proba[:, k], gap[:, k]) for k in classes])
        top_gap = np.take_along_axis(gap, proba.argmax(axis=1)[:, None], axis=1)[:, 0]
        batch[:] = canonical, classwise, _explained(proba.max(axis=1), top_gap)
    means, deviations = batches.mean(axis=0), batches.std(axis=0, ddof=1)
    errors = map(TrueError, means.tolist(), (deviations / np.sqrt(10)).tolist())
    # The cache hands the same object to everyone.
    return MappingProxyType(dict(zip(_CALIBRATED_MODELS, errors, strict=True)))


def _explained(feature: np.ndarray, target: np.ndarray, n_bins: int = 1000) -> float:
    """E(E[target | feature])² by debiased equal-mass bins."""
    order = np.argsort(feature)
    parts = np.array_split(target[order], max(1, min(n_bins, len(order) // 50)))
    return float(sum(len(t) * (t.mean() ** 2 - t.var(ddof=1) / len(t)) for t in parts) / len(order))
