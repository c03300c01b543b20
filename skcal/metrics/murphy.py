"""Murphy diagrams: mean elementary scores by threshold, of one classifier or two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skcal._show import ShownColumns, percent
from skcal._sklearn_compat import validate_params
from skcal._validation import CONFIDENCE_LEVEL, row_blocks
from skcal.metrics.base import Outcome, outcome_of, read_increasing
from skcal.metrics.limits import MeanOfSets, mean_of_sets, share_above, share_between
from skcal.notions import Notion
from skcal.sample import Sample, read_sample

_MOST_OF_GROUPS = 256  # thresholds of a Murphy diagram at which groups are summed
_CURVE_BYTES = 2**26


@dataclass(frozen=True, eq=False, repr=False)
class MurphyDiagram(ShownColumns):
    """Mean elementary scores of one or two classifiers by threshold; lower is better.

    Attributes
    ----------
    thresholds : ndarray of shape (n_thresholds,)
        In increasing order. Where none were given every prediction stands twice, for the values at
        it and just above it.
    score : ndarray of shape (n_thresholds,)
        Mean scores of ``y_proba``.
    compared : ndarray of shape (n_thresholds,) or None
        Mean scores of ``compare``.
    difference : ndarray of shape (n_thresholds,) or None
        score - compared; above 0 ``compare`` is better.
    low, high : ndarray of shape (n_thresholds,)
        Pointwise limits of the difference, or of the score of a single classifier.
    confidence_level : float
    notion : Notion
    n_samples : int
    """

    thresholds: np.ndarray
    score: np.ndarray
    compared: np.ndarray | None
    difference: np.ndarray | None
    low: np.ndarray
    high: np.ndarray
    confidence_level: float
    notion: Notion
    n_samples: int

    def _caption(self):
        what = "score" if self.difference is None else "difference"
        limits = f"low, high hold the {what} at a threshold with {percent(self.confidence_level)}"
        return f"Murphy diagram, {self.notion}, {self.n_samples:,} samples", limits


@validate_params(CONFIDENCE_LEVEL)
def murphy_diagram(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    compare: ArrayLike | Sample | None = None,
    thresholds: ArrayLike | None = None,
    notion: str = "auto",
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> MurphyDiagram:
    """Murphy diagram: elementary score by threshold, of one classifier or two and their difference.

    The elementary score of a threshold t is t for a negative whose prediction is at least t. It is
    1 - t for a positive whose prediction is below t, and 0 otherwise. Every proper score of
    probabilities is a mixture of them. So if one classifier is below another at all thresholds,
    every proper score agrees.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    compare : array-like of the shape of ``y_proba``, default=None
        Predictions of a second classifier for the same samples.
    thresholds : array-like of shape (n_thresholds,), default=None
        Thresholds in [0, 1], in increasing order. None: 0, every prediction twice, and 1, between
        which the score is a straight line.
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence", whether the predicted class is
        right, for more.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of the limits.
    sample_weight : array-like of shape (n_samples,), default=None
        Importance weights.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. See
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` and ``compare`` hold logits; probabilities keep full precision.

    Returns
    -------
    diagram : MurphyDiagram
        The mean ``score`` at each of the ``thresholds``, and that of the second model.

    Raises
    ------
    ValueError
        If the input is not valid.

    See Also
    --------
    decision_curve : its net benefit is prevalence - score / (1 - t).
    score_decomposition : parts of the Brier score and the log loss.
    skcal.displays.MurphyDisplay : draws it.

    Notes
    -----
    Twice the integral of the score over t is the Brier score (p - y)². The integral with weight
    1 / (t (1 - t)) is the log loss. Between the thresholds of ``thresholds=None`` the trapezoidal
    rule is exact. Ehm et al. count predictions equal to t as below it, which matters only at
    thresholds that equal a prediction.

    Limits are normal ones after two samples are added, as of :func:`decision_curve`. They were
    measured on 1,000 data sets at n = 200 and 1,000. The 95 % limits of a score held in 93 % or
    more at each of 49 thresholds, and those of a difference in 92 % or more. On average over
    thresholds they held in 95 % to 99 %. If ``groups`` are given, limits use the effective number
    of samples under the estimated dependence, and quantiles of Student's distribution. They are no
    closer than those of sums over groups.

    O(n log n).

    References
    ----------
    .. [1] Ehm, Gneiting, Jordan & Krüger, Of quantiles and expectiles: consistent scoring
       functions, Choquet representations and forecast rankings, J. Royal Statistical Society B
       2016.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics import brier_score_loss
    >>> from skcal.metrics import murphy_diagram
    >>> y, p = np.array([0, 1, 0, 1]), np.array([0.2, 0.6, 0.4, 0.9])
    >>> diagram = murphy_diagram(y, p)
    >>> round(float(2 * np.trapezoid(diagram.score, diagram.thresholds)), 6)
    0.0925
    >>> round(float(brier_score_loss(y, p)), 6)
    0.0925
    """
    options = {
        "notion": notion,
        "sample_weight": sample_weight,
        "labels": labels,
        "pos_label": pos_label,
        "from_logits": from_logits,
    }
    data = outcome_of(read_sample(y_true, y_proba, groups=groups, **options))
    second = None if compare is None else _read_second(y_true, compare, data, options)
    both = [data] if second is None else [data, second]
    if thresholds is None:
        grid, strict = _all_jumps(np.concatenate([classifier.prediction for classifier in both]))
    else:
        grid = read_increasing(thresholds, "thresholds")
        strict = np.zeros(len(grid), dtype=bool)
    scores = [_elementary_scores(classifier, grid, strict) for classifier in both]
    shown = scores[0] if second is None else _score_differences(data, second, grid, strict)
    score, *compared = (mean_score.mean() for mean_score in scores)
    z = data.problem.groups.quantile((1 - confidence_level) / 2, data.weight)
    low, high = shown.limits(z)
    if not data.problem.groups.independent:
        half = z * _deviation_of_groups(data, second, grid, strict)
        low, high = np.minimum(low, shown.mean() - half), np.maximum(high, shown.mean() + half)
    return MurphyDiagram(
        thresholds=grid,
        score=score,
        compared=compared[0] if compared else None,
        difference=score - compared[0] if compared else None,
        low=low,
        high=high,
        confidence_level=confidence_level,
        notion=data.notion,
        n_samples=len(data.weight),
    )


def _read_second(y_true, compare, first, options):
    if isinstance(y_true, Sample):
        y_true.require_pairs(compare, "compare")
        y_true, compare, options = compare, None, options | {"notion": first.notion}
    second = outcome_of(read_sample(y_true, compare, names=("y_true", "compare"), **options))
    # Of the notion "confidence" both must be about the same event.
    if second.notion != first.notion or not np.array_equal(second.happened, first.happened):
        raise ValueError(
            "compare is about other events than y_proba: the predicted classes differ. Compare "
            "P(positive class), with notion='binary'."
        )
    return second


def _all_jumps(predictions):
    """0, every prediction twice, and 1; and where the values just above a threshold are meant."""
    grid = np.concatenate([[0.0], np.repeat(np.unique(predictions), 2), [1.0]])
    strict = np.zeros(len(grid), dtype=bool)
    strict[2:-1:2] = True
    strict[-1] = True
    return grid, strict


def _elementary_scores(data: Outcome, grid, strict) -> MeanOfSets:
    """The score, of positives below and of negatives above the thresholds."""
    weight = data.weight / data.weight.sum()
    positive, negative = weight * data.happened, weight * (1 - data.happened)
    above = np.full(len(weight), 2.0)  # any t is below
    sets = [
        share_between(data.prediction, above, positive, grid, strict),
        share_above(data.prediction, negative, grid, strict),
    ]
    return mean_of_sets(data, sets, [1 - grid, grid])


def _deviation_of_groups(data: Outcome, second, grid, strict) -> np.ndarray:
    """Standard deviations of mean scores, or of their difference, by sums over groups.

    Of many thresholds some are taken, and straight lines between them.
    """
    groups, weight = data.problem.groups, data.weight / data.weight.sum()
    happened, deviations = data.happened[:, None], []
    some = np.unique(np.linspace(0, len(grid) - 1, min(len(grid), _MOST_OF_GROUPS)).round())
    for block in row_blocks(len(some), 32 * len(weight), most=_CURVE_BYTES):
        rows = some[block].astype(np.intp)
        t, above = grid[rows], strict[rows]

        def scores(classifier, t=t, above=above):
            x = classifier.prediction[:, None]
            below = np.where(above, x <= t, x < t)
            return np.where(below, (1 - t) * happened, t * (1 - happened))

        each = scores(data) if second is None else scores(data) - scores(second)
        variances = groups.variance_of_sum(weight[:, None] * (each - weight @ each))
        deviations.append(np.sqrt(variances))
    return np.interp(np.arange(len(grid)), some, np.concatenate(deviations))


def _score_differences(first: Outcome, second: Outcome, grid, strict) -> MeanOfSets:
    """The difference, of samples between whose predictions the thresholds lie."""
    weight = first.weight / first.weight.sum()
    sets, values = [], []
    for low, high, sign in ((first, second, 1), (second, first, -1)):
        rows = low.prediction < high.prediction
        ends = low.prediction[rows], high.prediction[rows]
        happened = first.happened[rows]
        for rate, value in ((happened, 1 - grid), (1 - happened, -grid)):
            sets.append(share_between(*ends, weight[rows] * rate, grid, strict))
            values.append(sign * value)
    return mean_of_sets(first, sets, values)
