"""Scores in parts: miscalibration, discrimination and uncertainty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy
from sklearn.isotonic import isotonic_regression

from skcal._bins import SCALAR_PARTITIONS, SIMPLEX_PARTITIONS
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal.metrics.base import read_sample
from skcal.metrics.moments import (
    BinMoments,
    bin_moments,
    brier_losses,
    clip_probabilities,
    log_losses,
)

_GROUPS = {
    "strategy": [StrOptions({"isotonic"} | set(SCALAR_PARTITIONS) | set(SIMPLEX_PARTITIONS))],
    "n_bins": [Interval(Integral, 1, None, closed="left"), StrOptions({"cube-root"})],
    "min_samples": [Interval(Integral, 1, None, closed="left")],
}


SCORES = {"score": [StrOptions({"log-loss", "brier"})]}


@dataclass(frozen=True)
class BrierDecomposition:
    """Parts of a Brier score; squares, in [0, 2].

    score = reliability - resolution + uncertainty + within_bin_variance - within_bin_covariance.

    Attributes
    ----------
    score : float
        Mean squared distance of predictions and outcomes.
    reliability : float
        Miscalibration: squared distance of bin frequencies and mean predictions; 0 is calibrated.
    resolution : float
        Squared distance of the frequencies and the base rates: what the predictions tell apart.
    uncertainty : float
        Variance of the outcomes.
    within_bin_variance, within_bin_covariance : float
        Variance of the predictions within bins, and twice their covariance with the outcomes; 0
        for groups of equal predictions and for "isotonic".
    """

    score: float
    reliability: float
    resolution: float
    uncertainty: float
    within_bin_variance: float
    within_bin_covariance: float


@dataclass(frozen=True)
class ScoreDecomposition:
    """Parts of a proper score: score = miscalibration - discrimination + uncertainty.

    Attributes
    ----------
    score : float
    miscalibration : float
        What recalibrating saves; 0 is calibrated.
    discrimination : float
        What the recalibrated predictions save beside the base rates.
    uncertainty : float
        Score of the base rates.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@validate_params(_GROUPS, prefer_skip_nested_validation=True)
def brier_decomposition(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    notion: str | Callable = "classwise",
    strategy: str = "isotonic",
    n_bins: int | str = 15,
    min_samples: int = 100,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> BrierDecomposition:
    """Brier score = reliability - resolution + uncertainty, and what happens within bins.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    notion : str or callable, default="classwise"
        What is predicted. "classwise" and (not with "isotonic") "canonical" decompose the
        multi-class Brier score, the sum over classes of (p_k - 1[y = k])²; 1-D predictions mean
        (p - y)².
    strategy : {"isotonic", "uniform", "quantile", "sweep", "unique", "median-variance"}, \
default="isotonic"
        How predictions are grouped. "isotonic" recalibrates each scalar problem by isotonic
        regression (CORP [3]_), without a choice of bins; "unique" groups equal predictions [1]_;
        the others are bins as in :func:`expected_calibration_error`.
    n_bins : int or "cube-root", default=15
    min_samples : int, default=100
        Of the bins.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.

    Returns
    -------
    parts : BrierDecomposition
        They add up to ``score`` to rounding; summed over the problems of the notion.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, or the strategy does not fit the notion.

    See Also
    --------
    score_decomposition : the same for other scores.
    sklearn.metrics.brier_score_loss : the score; for multi-class with ``scale_by_half=False``.

    Notes
    -----
    Without within-bin terms the parts of bins would not add up [2]_. Reliability is biased upwards
    in small samples, most for "unique" and "isotonic".

    References
    ----------
    .. [1] Murphy, A new vector partition of the probability score, J. Appl. Meteor. 1973.
    .. [2] Stephenson, Coelho & Jolliffe, Two extra components in the Brier score decomposition,
       Weather and Forecasting 2008.
    .. [3] Dimitriadis, Gneiting & Jordan, Stable reliability diagrams for probabilistic
       classifiers, PNAS 2021.

    Examples
    --------
    >>> from skcal.metrics import brier_decomposition
    >>> brier_decomposition([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75])
    BrierDecomposition(score=0.1875, reliability=0.0625, resolution=0.0625, uncertainty=0.1875,
                       within_bin_variance=0.0, within_bin_covariance=0.0)
    """
    sample = _read(y_true, y_proba, notion, sample_weight, labels, pos_label)
    if strategy == "isotonic":
        parts = [*_isotonic_parts(sample, "brier"), 0.0, 0.0]
        return BrierDecomposition(*parts)
    return brier_parts(bin_moments(sample, (n_bins, strategy, min_samples), _PARTS))


@validate_params({**_GROUPS, **SCORES}, prefer_skip_nested_validation=True)
def score_decomposition(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    score: str = "log-loss",
    notion: str | Callable = "classwise",
    strategy: str = "isotonic",
    n_bins: int | str = 15,
    min_samples: int = 100,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> ScoreDecomposition:
    """Proper score = miscalibration - discrimination + uncertainty.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    score : {"log-loss", "brier"}, default="log-loss"
        "log-loss" in nats; as scikit-learn's, it takes probabilities below the resolution of their
        dtype (2.2e-16 in float64) for that resolution.
    notion : str or callable, default="classwise"
        What is predicted. "classwise" decomposes the sum over classes of the scores of one class
        against the rest (twice that of 1-D predictions); "canonical", not with "isotonic", the
        multi-class score, for "log-loss" that of :func:`sklearn.metrics.log_loss`.
    strategy : {"isotonic", "uniform", "quantile", "sweep", "unique", "median-variance"}, \
default="isotonic"
        Predictions are recalibrated to the frequencies of isotonic regression (CORP [1]_, scalar
        notions only), of bins, or of groups of equal predictions ("unique").
    n_bins : int or "cube-root", default=15
    min_samples : int, default=100
        Of the bins, as in :func:`expected_calibration_error`.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.

    Returns
    -------
    parts : ScoreDecomposition
        They add up to ``score`` to rounding; summed over the problems of the notion. With
        "isotonic" and "unique" all are ≥ 0; in bins miscalibration can be below 0, since one
        frequency replaces many predictions.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, or the strategy does not fit the notion.

    See Also
    --------
    brier_decomposition

    References
    ----------
    .. [1] Dimitriadis, Gneiting & Jordan, Stable reliability diagrams for probabilistic
       classifiers, PNAS 2021.

    Examples
    --------
    >>> from skcal.metrics import score_decomposition
    >>> parts = score_decomposition([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75])
    >>> round(parts.score, 4), round(parts.miscalibration, 4)
    (0.5623, 0.2158)
    """
    sample = _read(y_true, y_proba, notion, sample_weight, labels, pos_label)
    if strategy == "isotonic":
        return ScoreDecomposition(*_isotonic_parts(sample, score))
    names = ("weight", "outcomes", _SUMS[score])
    return score_parts(bin_moments(sample, (n_bins, strategy, min_samples), names), score)


def sharpness(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    notion: str | Callable = "classwise",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Variance of the predicted probabilities, summed over classes; ``y_true`` plays no part.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels; checked only.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    notion : str or callable, default="classwise"
        What is predicted; "confidence" gives the variance of the confidences.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.

    Returns
    -------
    variance : float
        In [0, 1]; 0 where all predictions are equal. Calibrated predictions are the more useful
        the sharper they are.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid.

    Examples
    --------
    >>> from skcal.metrics import sharpness
    >>> sharpness([0, 1], [0.25, 0.75])
    0.0625
    """
    sample = _read(y_true, y_proba, notion, sample_weight, labels, pos_label)
    return prediction_variance(bin_moments(sample, (1, "uniform", 1), _SPREAD))


def _read(y_true, y_proba, notion, sample_weight, labels, pos_label):
    return read_sample(
        y_true,
        y_proba,
        notion=notion,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
    )


def _isotonic_parts(sample, score):
    """Parts of a score against isotonic regression, summed over the problems."""
    if not sample.notion.scalar:
        raise ValueError(
            f"notion={sample.notion!r} conditions on a vector, strategy='isotonic' on one number. "
            "Pass strategy='uniform', 'unique' or 'median-variance'."
        )
    total = np.zeros(4)
    for problem in sample.problems():
        if len(problem.weight):
            total += problem.share * np.array(_against_isotonic(problem, score))
    return total.tolist()


def _isotonic_frequencies(problem):
    """Isotonic regression of the outcomes at each prediction, equal ones together."""
    group = np.unique(problem.features[:, 0], return_inverse=True)[1]
    mass = np.bincount(group, problem.weight)
    hits = np.bincount(group, problem.weight * problem.outcomes[:, 0])
    fitted = isotonic_regression(hits / mass, sample_weight=mass, y_min=0, y_max=1)
    return fitted[group][:, None]


def _against_isotonic(problem, score):
    """Score, miscalibration, discrimination and uncertainty."""
    loss = _LOSSES[score]
    weight = problem.weight / problem.weight.sum()
    outcomes = problem.outcomes.astype(np.float64)
    base_rate = np.broadcast_to(weight @ outcomes, outcomes.shape)
    x = problem.features
    x = clip_probabilities(x) if score == "log-loss" else x.astype(np.float64)
    own = weight @ loss(x, outcomes)
    best = weight @ loss(_isotonic_frequencies(problem), outcomes)
    uncertainty = weight @ loss(base_rate, outcomes)
    return own, own - best, uncertainty - best, uncertainty


_LOSSES = {"brier": brier_losses, "log-loss": log_losses}
# The sum over bins that is the score, and those that the parts take.
_SUMS = {"brier": "errors", "log-loss": "log_loss"}
_SPREAD = ("weight", "shift", "deviations")
_PARTS = (*_SPREAD, "outcomes", "errors", "products")


def score_parts(problems: list[BinMoments], score: str) -> ScoreDecomposition:
    """Parts of a score against the frequencies of bins, summed over the problems."""
    total = np.zeros(4)
    for moments in problems:
        if moments.total > 0:
            own = getattr(moments, _SUMS[score]).sum() / moments.total
            hits = moments.outcomes
            best = _score_of_frequencies(moments.weight, hits, score)
            whole = moments.weight.sum(keepdims=True), hits.sum(axis=0, keepdims=True)
            uncertainty = _score_of_frequencies(*whole, score)
            total += moments.share * np.array([own, own - best, uncertainty - best, uncertainty])
    return ScoreDecomposition(*total.tolist())


def _score_of_frequencies(weight, hits, score):
    """Mean score of the frequencies of groups as predictions for these."""
    misses = np.maximum(weight[:, None] - hits, 0)
    filled = np.where(weight > 0, weight, 1)[:, None]
    if score == "brier":
        losses = hits * misses / filled
    else:
        losses = -xlogy(hits, hits / filled)
        if hits.shape[1] == 1:
            losses = losses - xlogy(misses, misses / filled)
    return losses.sum() / weight.sum()


def brier_parts(problems: list[BinMoments]) -> BrierDecomposition:
    """Parts of the Brier score in bins, summed over the problems."""
    parts = sum(p.share * _parts_of_bins(p) for p in problems if p.total > 0)
    return BrierDecomposition(*parts.tolist())


def _parts_of_bins(moments):
    """The six parts in the order of BrierDecomposition."""
    base_rate = moments.outcomes.sum(axis=0) / moments.total
    reliability = ((moments.predictions - moments.frequencies) ** 2).sum(axis=1)
    resolution = ((moments.frequencies - base_rate) ** 2).sum(axis=1)
    uncertainty = (base_rate * (1 - base_rate)).sum()
    weight = moments.weight
    sums = moments.errors.sum(), weight @ reliability, weight @ resolution
    rest = moments.variance_sums.sum(), 2 * moments.covariance_sums.sum()
    return np.array([*sums, uncertainty * moments.total, *rest]) / moments.total


def prediction_variance(problems: list[BinMoments]) -> float:
    """Variance of the predictions, within bins and between them, summed over the problems."""
    variance = 0.0
    for moments in problems:
        if moments.total > 0:
            mean = moments.weight @ moments.predictions / moments.total
            between = moments.weight @ ((moments.predictions - mean) ** 2).sum(axis=1)
            variance += moments.share * (moments.variance_sums.sum() + between) / moments.total
    return float(variance)
