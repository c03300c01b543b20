"""Cumulative calibration errors: sums of residuals over thresholds and over ranges of predictions.

Equal predictions enter together, and there are neither bins nor widths.
"""

from __future__ import annotations

from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from skcal._sklearn_compat import validate_params
from skcal.metrics.base import AVERAGE, Average, OfScalars, estimate_problems
from skcal.metrics.statistic import prepared_by
from skcal.notions import Problem
from skcal.sample import Sample, read_sample


@overload
def cutoff_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = ...,
    *,
    average: None,
    **options: Unpack[OfScalars],
) -> np.ndarray: ...
@overload
def cutoff_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = ...,
    *,
    average: Average = "sum",
    **options: Unpack[OfScalars],
) -> float: ...
@prepared_by(lambda problem, **others: _prepare(problem, _range, others))
@validate_params(AVERAGE)
def cutoff_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    average: Average | None = "sum",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float | np.ndarray:
    """Cutoff calibration error: largest surplus or shortage of events in any range, per sample.

    In no range of predictions do the numbers of observed and predicted events differ by more than
    this, divided by the number of all samples. Decisions by cutoffs of the predictions lose at most
    this much by miscalibration [1]_.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str, default="auto"
        A scalar notion; "auto" is "binary" for one and two columns and "confidence" for more.
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
        The error in probability units, in [0, 1] for one problem; 0 is calibrated. It is of the
        order of n^(-1/2) for calibrated predictions. It is per sample of all: an error of 0.02 may
        be a gap of 0.2 in a tenth of the samples.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, or the notion has vectors.

    See Also
    --------
    skcal.hypothesis_tests.equivalence_test : bounds it, with this as the estimate.
    skcal.hypothesis_tests.kolmogorov_smirnov_test : its p-value, by ``statistic="kuiper"``.

    Notes
    -----
    The error is ``max_{s ≤ t} |mean_i 1[s ≤ x_i ≤ t] δ_i|``. It is the range of the cumulative
    sums, and so Kuiper's statistic in [2]_, the same for either choice of the positive class.
    Errors that change their sign from one prediction to the next cancel: steps of ±0.1 between 20
    levels make an error of 0.005. O(n log n) time.

    References
    ----------
    .. [1] Rossellini, Soloff, Barber, Ren & Willett, Can a calibration metric be both testable and
       actionable?, 2025, https://arxiv.org/abs/2502.19851.
    .. [2] Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu, Metrics of calibration for probabilistic
       predictions, JMLR 2022.

    Examples
    --------
    >>> from skcal.metrics import cutoff_calibration_error
    >>> cutoff_calibration_error([0, 1, 1, 1], [0.25, 0.5, 0.5, 0.75])  # from 0.5 to 0.75
    0.3125
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, scalar=True)
    return estimate_problems(sample, largest_over_ranges, average=average)


@overload
def kolmogorov_smirnov_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = ...,
    *,
    average: None,
    **options: Unpack[OfScalars],
) -> np.ndarray: ...
@overload
def kolmogorov_smirnov_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = ...,
    *,
    average: Average = "sum",
    **options: Unpack[OfScalars],
) -> float: ...
@prepared_by(lambda problem, **others: _prepare(problem, _largest_gap, others))
@validate_params(AVERAGE)
def kolmogorov_smirnov_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    average: Average | None = "sum",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float | np.ndarray:
    """Cumulative calibration error: largest surplus or shortage of events up to any cutoff.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str, default="auto"
        A scalar notion; "auto" is "binary" for one and two columns and "confidence" for more.
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
        The error in probability units, in [0, 1] for one problem; 0 is calibrated. It is of the
        order of n^(-1/2) for calibrated predictions.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, or the notion has vectors.

    See Also
    --------
    cutoff_calibration_error : the largest over all ranges, at most twice as large.

    Notes
    -----
    The error is ``max_t |mean_i 1[x_i ≤ t] δ_i|``. O(n log n) time. Sums start at the smallest
    prediction, so the value depends on which class is the positive one unless the mean residual is
    0.

    References
    ----------
    .. [1] Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu & Hartley, Calibration of neural networks
       using splines, ICLR 2021.

    Examples
    --------
    >>> from skcal.metrics import kolmogorov_smirnov_calibration_error
    >>> kolmogorov_smirnov_calibration_error([0, 0, 1, 1], [0.25, 0.5, 0.5, 0.75])
    0.0625
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, scalar=True)
    return estimate_problems(sample, largest_over_thresholds, average=average)


def _prepare(problem, measure, others):
    if others or problem.features.shape[1] > 1:
        return None
    return CumulativeStatistic(problem, measure)


def largest_over_ranges(problem: Problem) -> float:
    """The range of the cumulative means, with the 0 from which they start."""
    return _of_observed(problem, _range)


def largest_over_thresholds(problem: Problem) -> float:
    """The largest absolute value of the cumulative means."""
    return _of_observed(problem, _largest_gap)


def _range(paths):
    return np.maximum(paths.max(axis=-1), 0) - np.minimum(paths.min(axis=-1), 0)


def _largest_gap(paths):
    return np.maximum(paths.max(axis=-1), -paths.min(axis=-1))


def _of_observed(problem: Problem, measure) -> float:
    return float(measure(CumulativeStatistic(problem).paths(problem.residuals[:, 0])))


class CumulativeStatistic:
    """A measure of the cumulative means of a scalar problem, as a function of its outcomes."""

    def __init__(self, problem: Problem, measure: Any = None):
        self.measure, self.x, self.weight = measure, problem.features[:, 0], problem.weight
        self.order = np.argsort(self.x)  # equal predictions count together, in any order
        x = self.x[self.order]
        self.last: Any = np.append(x[1:] > x[:-1], True)  # of equal predictions
        if self.last.all():
            self.last = slice(None)

    def __call__(self, outcomes):
        """Return the measure of each draw of outcomes."""
        return self.measure(self.paths(outcomes - self.x))

    def paths(self, residuals) -> np.ndarray:
        """Cumulative means at the distinct predictions, of residuals (…, n_rows)."""
        sums = np.cumsum((self.weight * residuals)[..., self.order], axis=-1)
        return sums[..., self.last] / self.weight.sum()
