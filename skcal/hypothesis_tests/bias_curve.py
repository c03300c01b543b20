"""Predicted and observed means along a feature, with a band that holds for the whole curve."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_random_state

from skcal._labels import named_columns, refuse_another_order
from skcal._show import Table, html_list, import_pandas
from skcal._sklearn_compat import Interval, validate_params
from skcal._validation import CONFIDENCE_LEVEL, InputError
from skcal.hypothesis_tests.monte_carlo import level_of
from skcal.hypothesis_tests.result import RESAMPLING, CalibrationTestResult, require_reachable
from skcal.hypothesis_tests.segment_features import Segments
from skcal.hypothesis_tests.segments import SegmentBias, step_down
from skcal.metrics.base import one_problem
from skcal.sample import Sample, read_sample, require_given


@dataclass(frozen=True, eq=False)
class BiasCurve(CalibrationTestResult):
    """Result of :func:`~skcal.hypothesis_tests.bias_curve`, beside what every test returns.

    Attributes
    ----------
    values : ndarray of shape (n_points,)
        The median of the feature in each window.
    predicted, observed : ndarray of shape (n_points,)
        Weighted means over each window.
    chance : ndarray of shape (n_points,)
        Half the width of the band: with probability ``confidence_level`` no window of a calibrated
        model has ``observed`` farther than that from ``predicted``.
    confidence_level : float
    """

    values: np.ndarray = field(repr=False)
    predicted: np.ndarray = field(repr=False)
    observed: np.ndarray = field(repr=False)
    chance: np.ndarray = field(repr=False)
    confidence_level: float

    def to_frame(self):
        """Return a pandas data frame, a row for each window."""
        return import_pandas().DataFrame(self._columns())

    def _columns(self):
        names = ("values", "predicted", "observed", "chance")
        return {name: getattr(self, name) for name in names}

    def _parts(self):
        note = "chance: half the width of the band of calibrated predictions, in all windows"
        return Table.of(self._columns()), html_list([note])


@validate_params(
    {
        "window": [Interval(Real, 0, 1, closed="right")],
        "n_points": [Interval(Integral, 1, 100_000, closed="both")],
        **CONFIDENCE_LEVEL,
        **RESAMPLING,
    }
)
def bias_curve(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    feature: ArrayLike | None = None,
    *,
    notion: Any = "auto",
    window: float = 0.1,
    n_points: int = 50,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> BiasCurve:
    """Compare predicted and observed means in windows along a feature.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    feature : array-like of shape (n_samples,), default=None
        Finite numbers, by name beside a Sample.
    notion : str, default="auto"
        "binary" or "confidence"; "auto" is the first for one and two columns, the second for more.
    window : float in (0, 1], default=0.1
        The share of the samples in a window.
    n_points : int, default=50
        Windows at most, at evenly spaced ranks of the feature. A window holds all samples of the
        values that are in it, so that a feature of few values has a window for each.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of the limits.
    n_resamples : int, default=999
        The number of resamples.
    random_state : int, RandomState instance or None, default=0
        The seed of the draws.
    n_jobs : int, default=None
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. See
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities are computed from them without loss of
        precision.

    Returns
    -------
    curve : BiasCurve
        ``pvalue`` is that of the hypothesis that the model is calibrated along the feature.

    Raises
    ------
    ValueError
        If the input is not valid, the notion has several problems, or so few ``groups`` cannot
        reach the confidence level.

    See Also
    --------
    segment_test : many features at once.

    Notes
    -----
    Each window is a segment of :func:`segment_test`, tested by its bias. The band is the quantile
    of the largest standardised bias of all windows under redrawn outcomes, so its level is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.hypothesis_tests import bias_curve
    >>> rng = np.random.default_rng(0)
    >>> age, proba = rng.uniform(20, 80, 2000), rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < np.where(age > 60, proba**2, proba)
    >>> curve = bias_curve(y, proba, age, random_state=0)
    >>> outside = abs(curve.observed - curve.predicted) > curve.chance
    >>> float(curve.values[outside].min().round())
    61.0
    """
    require_given(feature=feature)
    options: dict[str, Any] = {"keep_weightless": True, "groups": groups}
    question = notion, sample_weight, labels, pos_label, from_logits
    refuse_another_order({"y_proba": y_proba, "y_true": y_true, "feature": feature})
    sample = read_sample(y_true, y_proba, *question, **options)
    weighted = sample.weight > 0
    values = _read_feature(feature, len(weighted))[weighted]
    sample = sample.counted
    require_reachable(1 - confidence_level, sample.groups)
    windows = _windows(values, window, n_points)
    rng = check_random_state(random_state)
    problem = one_problem(sample)
    each = np.arange(len(windows))
    segments = Segments([""] * len(windows), _in_windows(windows, len(values)), each, each)
    part = SegmentBias(problem, segments, sample.notion.titles(list(sample.classes)), 1, rng)
    pvalues, maxima = step_down([part], n_resamples, rng, n_jobs)
    described = part.describe(iter(pvalues.tolist()))
    rank = int(np.ceil(confidence_level * (1 + n_resamples))) - 1
    limit = np.inf if rank >= n_resamples else np.sort(maxima)[:, rank].max()
    return BiasCurve(
        statistic=max(abs(each.statistic) for each in described),
        pvalue=float(pvalues.min()),
        method=f"windows along a feature, {level_of(sample)}",
        notion=str(sample.notion),
        null_distribution=maxima[0],
        values=np.array([np.median(values[rows]) for rows in windows]),
        predicted=np.array([each.predicted for each in described]),
        observed=np.array([each.observed for each in described]),
        chance=limit * part.scale,
        confidence_level=confidence_level,
    )


def _read_feature(feature, n_samples):
    [(_, values)] = named_columns({"feature": np.asarray(feature)}, n_samples)
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise InputError("feature", "is not of finite numbers.", "Leave out missing values.")
    return values.astype(np.float64)


def _windows(values, window, n_points):
    """Rows of each window, in the order of the feature; samples of one value are in it together.

    If windows have the same median, the last is kept, which holds the fewest lower values.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    width = max(1, round(window * len(values)))
    starts = np.linspace(0, len(values) - width, n_points).round().astype(int)
    first = np.searchsorted(ordered, ordered[starts], side="left")
    end = np.searchsorted(ordered, ordered[first + width - 1], side="right")
    rows = {np.median(ordered[a:b]): order[a:b] for a, b in zip(first, end, strict=True)}
    return list(rows.values())


def _in_windows(windows, n_samples):
    """Whether each sample, a row, is in each window, a column."""
    rows, sizes = np.concatenate(windows), [len(window) for window in windows]
    of = np.repeat(np.arange(len(windows)), sizes)
    entries = np.ones(len(rows), dtype=np.uint8), (rows, of)
    return sparse.csr_array(entries, shape=(n_samples, len(windows)))
