"""Calibration errors without bins: smoothed, and of kernel densities."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import dct, dst, next_fast_len

from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal._validation import row_weights
from skcal.functions.dirichlet_sums import leave_one_out_residuals, loo_log_likelihoods
from skcal.functions.kernel_density import BANDWIDTHS
from skcal.metrics.base import AVERAGE, Average, Density, Smooth, estimate_problems
from skcal.metrics.statistic import prepared_by
from skcal.sample import Sample, read_sample

_SMALLEST_WIDTH, _FINE_WIDTH = 1e-5, 1e-3
_VANISHING = 37.0  # exp(-37) is below the rounding of 1
_POINTS_PER_MODE = 8  # the grid is then 1/22 of the width
_CELLS_PER_MODE = 2, 32  # of the Taylor series: the fewer, the more terms
_SETTLED = 1e-6  # a relative step of Newton's after which the next is below 1e-11


@overload
def smooth_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = ...,
    *,
    average: None,
    **options: Unpack[Smooth],
) -> np.ndarray: ...
@overload
def smooth_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = ...,
    *,
    average: Average = "sum",
    **options: Unpack[Smooth],
) -> float: ...
@prepared_by()
@validate_params(
    {
        **AVERAGE,
        "bandwidth": [Interval(Real, 0, None, closed="neither"), StrOptions({"self-consistent"})],
    }
)
def smooth_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    bandwidth: float | Literal["self-consistent"] = "self-consistent",
    average: Average | None = "sum",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float | np.ndarray:
    """Smooth calibration error (smECE): mean absolute residual after kernel smoothing.

    K_σ is a Gaussian kernel of width σ, reflected at 0 and 1.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str, default="auto"
        A scalar notion; "auto" is "binary" for one and two columns and "confidence" for more.
    bandwidth : float > 0 or "self-consistent", default="self-consistent"
        σ. "self-consistent" is the σ* at which the error is σ* itself, so the value returned is
        also its width.
    average : {"sum", "macro"} or None, default="sum"
        The average over the classes of "classwise" and "top-label", as in
        :func:`expected_calibration_error`.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    error : float, or ndarray of shape (n_classes,) for ``average=None``
        The error in probability units, in [0, 1] for one problem; 0 is calibrated. Accurate to
        about 1e-8 of itself; widths below 1e-5 are not resolved: an error below 1e-5 is known to
        that accuracy only.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, or the notion has vectors.

    See Also
    --------
    expected_calibration_error : its ``strategy="unique"`` is the limit σ → 0.

    Notes
    -----
    The error is ``∫ |mean_i K_σ(t, x_i) δ_i| dt`` over [0, 1]. It is within constant factors of the
    distance to the nearest calibrated predictor [1]_. The reflected kernel is a cosine series,
    K_σ(t, x) = 1 + 2 Σ_k exp(-k²π²σ²/2) cos(kπt) cos(kπx). So the integral between two zeros of the
    mean is known exactly. O(n + (1/σ) log(1/σ)) time.

    References
    ----------
    .. [1] Błasiok & Nakkiran, Smooth ECE: principled reliability diagrams via kernel smoothing,
       ICLR 2024.

    Examples
    --------
    >>> from skcal.metrics import smooth_calibration_error
    >>> error = smooth_calibration_error([0, 1, 1, 1], [0.25, 0.25, 0.75, 1.0], bandwidth=0.1)
    >>> round(error, 6)
    0.1875
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, scalar=True)
    return estimate_problems(
        sample, lambda problem: _smooth_error(problem, bandwidth), average=average
    )


def _smooth_error(problem, bandwidth):
    x = problem.features[:, 0].astype(np.float64)
    mass = problem.weight * problem.residuals[:, 0] / problem.weight.sum()
    if (x == x[0]).all() or not mass.min() < 0 < mass.max():
        return abs(mass.sum())  # masses of one sign cancel nowhere, whatever the width
    series = CosineSeries(x, mass)
    if bandwidth != "self-consistent":
        return series.error_and_slope(max(bandwidth, _SMALLEST_WIDTH))[0]
    return _own_width(series)


def _own_width(series):
    """The width that equals its error, searched from wide ones down, which cost less."""
    low, high, width, step, limit = 0.0, 1.0, 1.0, np.inf, None
    while True:
        if width < _FINE_WIDTH and limit is None:
            limit = series.limit()
            if limit <= _SMALLEST_WIDTH:  # no width has a larger error
                return limit
        error, slope = series.error_and_slope(width)
        if error <= width == _SMALLEST_WIDTH:
            return width
        # The error falls with the width, so that the solution is between the two.
        low, high = max(low, min(width, error)), min(high, max(width, error))
        last, step = step, (error - width) / (1 - slope)
        if abs(step) <= _SETTLED * width:
            return float(np.clip(width + step, low, high))
        width = max(width + step, width / 4, _SMALLEST_WIDTH)
        if not low <= width <= high or abs(step) > abs(last) / 2:
            width = max(np.sqrt(low * high), _SMALLEST_WIDTH)


class CosineSeries:
    """a_k = Σ_i m_i cos(kπ x_i) of masses at points of [0, 1], as far as a width needs them."""

    def __init__(self, x, mass):
        self.x, self.mass = x, mass
        self.coefficients = np.empty(0)

    def limit(self) -> float:
        """∫ |g(t)| dt for σ → 0: the absolute masses of the distinct points."""
        _, place = np.unique(self.x, return_inverse=True)
        return float(np.abs(np.bincount(place, self.mass)).sum())

    def up_to(self, n_modes: int) -> np.ndarray:
        """Return a_0 … a_{n_modes-1}, for half as many more when there are not enough."""
        if len(self.coefficients) < n_modes:
            self.coefficients = self._compute(max(3 * n_modes // 2, 1024))
        return self.coefficients[:n_modes]

    def _compute(self, n_modes):
        # cos(kπ(c + d)) = Σ_p (kπd)^p / p! cos(kπc + pπ/2) for the centre c of the cell of x.
        fewest, most = (ratio * n_modes for ratio in _CELLS_PER_MODE)
        n_cells = next_fast_len(int(np.clip(len(self.x) / 4, fewest, most)), real=True)
        cell = np.minimum((self.x * n_cells).astype(np.intp), n_cells - 1)
        offset = self.x - (cell + 0.5) / n_cells
        order = np.arange(n_modes) * np.pi
        total, moment, scale = np.zeros(n_modes), self.mass, np.ones(n_modes)
        p = 0
        while scale[-1] / (2 * n_cells) ** p > np.finfo(np.float64).eps:  # (kπd)^p / p!
            sums = np.bincount(cell, moment, minlength=n_cells)
            total += (-1) ** ((p + 1) // 2) * scale * _transform(sums, n_modes, odd=p % 2 == 1)
            moment = moment * offset
            p += 1
            scale = scale * order / p
        return total

    def error_and_slope(self, width: float) -> tuple[float, float]:
        """Return the smooth error ∫ |g(t)| dt of g(t) = Σ_i m_i K_σ(t, x_i), and its slope by σ."""
        n_modes = int(np.sqrt(2 * _VANISHING) / (np.pi * width)) + 2
        k = np.arange(n_modes)
        decayed = self.up_to(n_modes) * np.exp(-((k * np.pi * width) ** 2) / 2)
        n_points = next_fast_len(_POINTS_PER_MODE * n_modes, real=True)
        # g and its derivatives at j / n_points; g is the derivative of ``area``.
        area = np.arange(n_points + 1) / n_points * decayed[0]
        area[1:-1] += _sines(np.append(0.0, decayed[1:] / (k[1:] * np.pi)), n_points)
        g = _cosines(decayed, n_points)
        total, rises = np.abs(np.diff(area)).sum(), 0.0
        crossing = np.flatnonzero(np.diff(np.signbit(g)))
        size = np.abs(g[[crossing, crossing + 1]]).max(axis=0)
        crossing = crossing[size > np.finfo(np.float64).eps * np.abs(g).max()]  # no rounding
        if len(crossing):
            slope = np.pad(_sines(-decayed * k * np.pi, n_points), 1)
            bend = _cosines(-decayed * (k * np.pi) ** 2, n_points)
            excess, rises = _folded(crossing, area, g, slope, bend, 1 / n_points)
            total += excess
        # dg/dσ = σ g'', whose integral over the pieces between zeros is that of g' at their ends.
        return float(total), float(-2 * width * rises)


def _folded(crossing, area, g, slope, bend, step):
    """What ∫ |g| exceeds Σ |∫ g| by in cells in which g has a zero, and Σ |g'| at the zeros."""
    near = np.where(np.abs(g[crossing]) < np.abs(g[crossing + 1]), crossing, crossing + 1)
    low, high = (crossing - near) * step, (crossing + 1 - near) * step
    third = (bend[crossing + 1] - bend[crossing]) / step
    s = np.zeros(len(near))
    for _ in range(6):  # Newton on the Taylor series about the nearer end, within the cell
        value = g[near] + s * (slope[near] + s * (bend[near] / 2 + s * third / 6))
        rise = slope[near] + s * (bend[near] + s * third / 2)
        s = np.clip(s - value / np.where(rise == 0, 1, rise), low, high)
    at_zero = area[near] + s * (
        g[near] + s * (slope[near] / 2 + s * (bend[near] / 6 + s * third / 24))
    )
    left, right = at_zero - area[crossing], area[crossing + 1] - at_zero
    excess = np.abs(left) + np.abs(right) - np.abs(left + right)
    rise = slope[near] + s * (bend[near] + s * third / 2)
    return excess.sum(), np.abs(rise).sum()


def _cosines(coefficients, n_points):
    """a_0 + 2 Σ_k a_k cos(kπt) at t = j / n_points, j = 0 … n_points."""
    padded = np.zeros(n_points + 1)
    padded[: len(coefficients)] = coefficients
    return dct(padded, type=1)


def _sines(coefficients, n_points):
    """2 Σ_k b_k sin(kπt) at the inner points."""
    padded = np.zeros(n_points - 1)
    padded[: len(coefficients) - 1] = coefficients[1:]
    return dst(padded, type=1)


def _transform(sums, n_modes, *, odd):
    """Σ_c s_c cos(kπ x_c), or sin, over cell centres, for k < n_modes."""
    if not odd:
        return dct(sums, type=2)[:n_modes] / 2
    return np.concatenate([[0.0], dst(sums, type=2)[: n_modes - 1] / 2])


@overload
def kernel_density_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = ...,
    *,
    average: None,
    **options: Unpack[Density],
) -> np.ndarray: ...
@overload
def kernel_density_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = ...,
    *,
    average: Average = "sum",
    **options: Unpack[Density],
) -> float: ...
@prepared_by(at_least=2)
@validate_params(
    {
        **AVERAGE,
        "norm": [Interval(Real, 1, 50, closed="both")],
        "bandwidth": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"})],
        "root": ["boolean"],
    }
)
def kernel_density_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str | Callable = "auto",
    norm: float = 1,
    bandwidth: float | Literal["loo"] = 0.02,
    average: Average | None = "sum",
    root: bool = True,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float | np.ndarray:
    """Calibration error estimated with Dirichlet kernels, also for whole vectors.

    ĝ_{-i} is the residual that :class:`skcal.DirichletKernelDensity` estimates from all samples
    but i.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str or callable, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more; [1]_ is about
        "canonical".
    norm : float from 1 to 50, default=1
        q.
    bandwidth : float > 0 or "loo", default=0.02
        "loo": the one of the grid of [1]_ with the highest leave-one-out likelihood, for each
        problem. It costs 20 times as much.
    average : {"sum", "macro"} or None, default="sum"
        The average over the classes of "classwise" and "top-label", as in
        :func:`expected_calibration_error`.
    root : bool, default=True
        False returns the q-th power, as in [1]_.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row, of which one copy is left out. A sum below the
        effective sample size (Σ w)² / Σ w² is raised to it.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    error : float, or ndarray of shape (n_classes,) for ``average=None``
        The error in probability units; its q-th power is at most 2 for vectors, 1 for a scalar
        problem. NaN (``average=None``) or left out: a class that is predicted once ("top-label").

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, or there are fewer than two samples.

    Notes
    -----
    The error is (mean_i ‖ĝ_{-i}(x_i)‖_q^q)^(1/q), with q = ``norm``. It takes O(n² C) time for
    vectors, in blocks of bounded memory: minutes for 100,000 of ten classes. Use a random part of
    so many samples.

    References
    ----------
    .. [1] Popordanoska, Sayer & Blaschko, A consistent and differentiable Lp canonical calibration
       error estimator, NeurIPS 2022.

    Examples
    --------
    >>> from skcal.metrics import kernel_density_calibration_error
    >>> y, p = [0, 0, 1, 0], [0.25, 0.25, 0.25, 0.25]
    >>> round(kernel_density_calibration_error(y, p), 6)
    0.125
    """
    sample = read_sample(
        y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits, at_least=2
    )
    # A class that is predicted once ("top-label") has no other samples.
    return estimate_problems(
        sample,
        lambda problem: _density_power(problem, norm, bandwidth),
        at_least=2,
        norm=norm,
        average=average,
        root=root,
    )


def _density_power(problem, norm, bandwidth):
    weight = row_weights(problem.weight)
    x = problem.features.astype(np.float64)
    if bandwidth == "loo":
        bandwidth = BANDWIDTHS[np.argmax(loo_log_likelihoods(x, BANDWIDTHS, weight))]
    residuals = leave_one_out_residuals(x, problem.outcomes, weight, bandwidth)
    return weight @ (np.abs(residuals) ** norm).sum(axis=1) / weight.sum()
