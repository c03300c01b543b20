"""Scores in parts: miscalibration, discrimination and uncertainty."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from skcal._bins import SCALAR_PARTITIONS, SIMPLEX_PARTITIONS, equal_intervals
from skcal._scores import brier_losses, log_losses, of_outcomes
from skcal._show import ShownRounded, plain_number
from skcal._sklearn_compat import StrOptions, validate_params
from skcal.metrics.base import Strategy
from skcal.metrics.bins import (
    BIN_OPTIONS,
    BinMoments,
    BinnedRows,
    BinRule,
    bin_moments,
    is_of_vectors,
)
from skcal.metrics.smoothers import isotonic_frequency, make_points
from skcal.metrics.statistic import observed_draw
from skcal.sample import Sample, read_sample

_GROUPS = {
    **{name: BIN_OPTIONS[name] for name in ("n_bins", "min_samples")},
    "strategy": [StrOptions({"isotonic"} | set(SCALAR_PARTITIONS) | set(SIMPLEX_PARTITIONS))],
}
SCORE_OPTION = {"score": [StrOptions({"log-loss", "brier"})]}


@dataclass(frozen=True)
class ScoreDecomposition(ShownRounded):
    """Parts of a proper score.

    score = miscalibration - discrimination + uncertainty
    + within_bin_variance - within_bin_covariance.

    Attributes
    ----------
    score : float
        Mean Brier score, in [0, 1] for two classes and [0, 2] for more, or log loss, in nats.
    miscalibration : float
        What recalibrating saves; 0 is calibrated. Of the Brier score in bins: the mean squared
        distance of the mean predictions and the frequencies.
    discrimination : float
        What the recalibrated predictions save beside the base rates.
    uncertainty : float
        Score of the base rates.
    within_bin_variance, within_bin_covariance : float
        The variance of the predictions within bins, and twice their covariance with the outcomes,
        of the Brier score in bins. 0 for groups of equal predictions, for "isotonic" and for the
        log loss, whose miscalibration in bins holds all that one frequency a bin changes.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    within_bin_variance: float = 0.0
    within_bin_covariance: float = 0.0

    def sentence(self) -> str:
        """Return how much of the score recalibration would save."""
        score, saved = map(plain_number, (self.score, self.miscalibration))
        return f"recalibration would save {saved} of the score {score}"


@validate_params(
    {**_GROUPS, **SCORE_OPTION},
    used_with={
        "n_bins": {"strategy": ("uniform", "quantile")},
        "min_samples": {"strategy": is_of_vectors},
    },
)
def score_decomposition(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    score: Literal["log-loss", "brier"] = "brier",
    notion: str | Callable = "auto",
    strategy: Literal["isotonic"] | Strategy = "isotonic",
    n_bins: int | str = 15,
    min_samples: int = 100,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> ScoreDecomposition:
    """Decompose a proper score into miscalibration, discrimination and uncertainty.

    "reliability" and "resolution" are the older names of miscalibration and discrimination, for the
    Brier score in bins.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    score : {"brier", "log-loss"}, default="brier"
        "log-loss" is in nats; as scikit-learn's, it takes probabilities below the resolution of
        their dtype (2.2e-16 in float64) for that resolution; logits have no such bound. If an
        outcome had the probability 0 the log loss is infinite, and there is a warning.
    notion : str or callable, default="auto"
        The kind of calibration; "auto" is "binary" for one and two columns and "confidence" for
        more. "classwise" decomposes the sum over classes of the scores of one class against the
        rest: for "brier" the multi-class score, the sum over classes of (p_k - 1[y = k])².
        "canonical", not with "isotonic", decomposes the multi-class score, for "log-loss" that of
        :func:`sklearn.metrics.log_loss`. The Brier score of two classes is (p - y)², whatever the
        notion and whether there are one or two columns.
    strategy : {"isotonic", "uniform", "quantile", "sweep", "unique", "median-variance"}, \
default="isotonic"
        How predictions are grouped, and recalibrated to the frequencies of their group. "isotonic"
        is isotonic regression of each scalar problem (CORP [3]_), without a choice of bins;
        "unique" groups equal predictions [1]_; the others are bins as in
        :func:`expected_calibration_error`.
    n_bins : int or "cube_root", default=15
        Number of bins, as in :func:`expected_calibration_error`.
    min_samples : int, default=100
        Smallest number of samples in a cell of "median-variance".
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
    parts : ScoreDecomposition
        They add up to ``score`` to rounding; summed over the problems of the notion. With
        "isotonic" and "unique" all are ≥ 0. The miscalibration of the log loss in bins can be below
        0, since one frequency replaces many predictions.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, or the strategy does not fit the notion.

    See Also
    --------
    sklearn.metrics.brier_score_loss : the Brier score, of the same scale.
    sklearn.metrics.log_loss : the log loss.

    Notes
    -----
    The score is miscalibration - discrimination + uncertainty, plus terms within bins. Without
    these terms the parts of the Brier score would not add up [2]_. Miscalibration is biased upwards
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
    >>> from skcal.metrics import score_decomposition
    >>> parts = score_decomposition([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75])
    >>> parts.score, parts.miscalibration, parts.discrimination, parts.uncertainty
    (0.1875, 0.0625, 0.0625, 0.1875)
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, from_sums=True)
    rule = None if strategy == "isotonic" else BinRule(n_bins, strategy, min_samples)
    if score == "log-loss":
        _warn_of_floor(sample)
    return parts_of(sample, score, rule)


def _warn_of_floor(sample: Sample) -> None:
    """Warn where a log loss is infinite, so that the number rests on the floor of probabilities."""
    for problem in sample.problems():
        x, happened = problem.features, observed_draw(problem)[0]
        columns = np.hstack([1 - x, x]) if x.shape[1] == 1 else x
        n = problem.number(of_outcomes((columns == 0) * 1.0, happened) > 0)
        if n and problem.logits is None:
            many, floor = f"{n:,} outcome{'s' * (n > 1)}", np.finfo(x.dtype).eps
            warnings.warn(
                f"The log loss is infinite: {many} had a predicted probability of 0. The numbers "
                f"returned replace 0 by {floor:.0g}, which decides them.",
                stacklevel=3,
            )
            return


def parts_of(sample: Sample, score: str, rule: BinRule | None = None) -> ScoreDecomposition:
    """The parts of a score of a sample, by bins or, without a rule, by isotonic regression."""
    if rule is None:
        parts = _isotonic_parts(sample, score)
    else:
        names = _PARTS if score == "brier" else ("weight", "outcomes", "log_loss")
        parts = sum_of_parts(bin_moments(sample, rule, names), score)
    return scaled_parts(parts, score, sample.notion, len(sample.classes))


def sharpness(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str | Callable = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Variance of the predicted probabilities; ``y_true`` is not used.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), or Sample
        Labels; checked only.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str or callable, default="auto"
        The kind of calibration; "auto" is "binary" for one and two columns, and for more
        "confidence", the variance of the confidences. "classwise" sums the variances of all
        columns.
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
    variance : float
        The variance, in [0, 1]; 0 where all predictions are equal. Calibrated predictions are the
        more useful the sharper they are.

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
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, from_sums=True)
    return prediction_variance(bin_moments(sample, BinRule(1, "uniform"), _SPREAD))


def _isotonic_parts(sample, score) -> np.ndarray:
    """The six parts of a score against isotonic regression, summed over the problems."""
    if not sample.notion.scalar:
        raise ValueError(
            f"notion={sample.notion!r} conditions on a vector, strategy='isotonic' on one number. "
            "Pass strategy='uniform', 'unique' or 'median-variance'."
        )
    total = np.zeros(6)
    for problem in sample.problems():
        if len(problem.weight):
            total[:4] += problem.share * np.array(_against_isotonic(problem, score))
    return total


def _against_isotonic(problem, score):
    """Score, miscalibration, discrimination and uncertainty."""
    x, codes = problem.features.astype(np.float64), observed_draw(problem)[0]
    weight = problem.weight / problem.weight.sum()
    points = make_points(x[:, 0], codes, problem.weight, most=len(x))
    base_rate = np.full((len(x), 1), np.clip(weight @ codes, 0, 1))
    recalibrated, uncertainty = (
        weight @ of_outcomes(_LOSS_BY_NAME[score](p), codes)
        for p in (isotonic_frequency(points)[points.group][:, None], base_rate)
    )
    rows = BinnedRows(problem, equal_intervals(1))
    if score == "brier":
        of_means = of_outcomes(brier_losses(rows.problem.features.astype(np.float64)), codes)
        loss = weight @ (of_means + rows.spread)
    else:
        [loss] = rows.sums(("log_loss",), weight)["log_loss"]
    return loss, loss - recalibrated, uncertainty - recalibrated, uncertainty


_LOSS_BY_NAME = {"brier": brier_losses, "log-loss": log_losses}
_SPREAD = ("weight", "shift", "deviations")
_PARTS = (*_SPREAD, "outcomes", "errors", "products")


def sum_of_parts(problems: list[BinMoments], score: str) -> np.ndarray:
    """The six parts of a score against the frequencies of bins, summed over the problems."""
    parts_of = _brier_parts if score == "brier" else _log_loss_parts
    return sum(p.share * parts_of(p) for p in problems if p.total > 0)


def scaled_parts(parts: np.ndarray, score: str, notion, n_classes: int) -> ScoreDecomposition:
    """The result, in which the Brier score of two classes counts one of them."""
    both = score == "brier" and n_classes == 2 and notion.values_per_row(n_classes) == 2
    return ScoreDecomposition(*(parts / 2 if both else parts).tolist())


def _brier_parts(moments):
    """The six parts in the order of ScoreDecomposition."""
    base_rate = moments.outcomes.sum(axis=0) / moments.total
    gaps = ((moments.predictions - moments.frequencies) ** 2).sum(axis=1)
    told_apart = ((moments.frequencies - base_rate) ** 2).sum(axis=1)
    uncertainty = (base_rate * (1 - base_rate)).sum()
    weight = moments.weight
    sums = moments.errors.sum(), weight @ gaps, weight @ told_apart
    rest = moments.variance_sums.sum(), 2 * moments.covariance_sums.sum()
    return np.array([*sums, uncertainty * moments.total, *rest]) / moments.total


def _log_loss_parts(moments):
    """The six parts in the order of ScoreDecomposition, the last two 0."""
    loss, hits = moments.log_loss.sum() / moments.total, moments.outcomes
    best = _log_loss_of_frequencies(moments.weight, hits)
    whole = moments.weight.sum(keepdims=True), hits.sum(axis=0, keepdims=True)
    uncertainty = _log_loss_of_frequencies(*whole)
    return np.array([loss, loss - best, uncertainty - best, uncertainty, 0, 0])


def _log_loss_of_frequencies(weight, hits):
    """Mean log loss of the frequencies of groups as predictions for these."""
    filled = np.where(weight > 0, weight, 1)[:, None]
    losses = -xlogy(hits, hits / filled)
    if hits.shape[1] == 1:
        misses = np.maximum(weight[:, None] - hits, 0)
        losses = losses - xlogy(misses, misses / filled)
    return losses.sum() / weight.sum()


def prediction_variance(problems: list[BinMoments]) -> float:
    """Variance of the predictions, within bins and between them, summed over the problems."""
    variance = 0.0
    for moments in problems:
        if moments.total > 0:
            mean = moments.weight @ moments.predictions / moments.total
            between = moments.weight @ ((moments.predictions - mean) ** 2).sum(axis=1)
            variance += moments.share * (moments.variance_sums.sum() + between) / moments.total
    return float(variance)
