"""The bins of predictions as a table: what is predicted in each and what happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skcal._bins import Intervals
from skcal._show import ShownColumns, Table, percent
from skcal._sklearn_compat import validate_params
from skcal._validation import CONFIDENCE_LEVEL
from skcal.metrics.base import Strategy
from skcal.metrics.bins import BIN_OPTIONS, OF_TABLES, USE_OF_BINS, BinMoments, BinRule, bin_moments
from skcal.metrics.limits import clopper_pearson
from skcal.notions import Notion
from skcal.sample import Sample, read_sample, refuse_groups

_MOST_BINS = 60  # rows that are shown


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationBins(ShownColumns):
    """Bins of predictions with what happened in them, one row a bin.

    Attributes
    ----------
    notion : Notion
        The notion of calibration, a str.
    problem : ndarray of shape (n_rows,)
        The number of the class of each row for "classwise" and "top-label", 0 otherwise.
    left, right : ndarray of shape (n_rows,)
        The bin holds left < x ≤ right, the first also 0; NaN for cells of the simplex.
    count : ndarray of shape (n_rows,), int64
        Number of samples; may be 0.
    weight : ndarray of shape (n_rows,)
        Sum of their weights.
    prediction, frequency, gap : ndarray of shape (n_rows, m)
        Mean prediction, observed frequency and frequency - prediction; NaN in empty bins. m = 1
        but for notions with vectors.
    low, high : ndarray of shape (n_rows, m)
        Clopper-Pearson interval of the frequency; [0, 1] in empty bins.
    confidence_level : float
    classes : ndarray of shape (n_classes,)
        The class of each number.
    """

    notion: Notion
    problem: np.ndarray
    left: np.ndarray
    right: np.ndarray
    count: np.ndarray
    weight: np.ndarray
    prediction: np.ndarray
    frequency: np.ndarray
    gap: np.ndarray
    low: np.ndarray
    high: np.ndarray
    confidence_level: float
    classes: np.ndarray

    @classmethod
    def of_moments(
        cls, problems: Sequence[BinMoments], notion: Notion, classes, confidence_level: float = 0.95
    ) -> CalibrationBins:
        """Return the table of the bins of all problems that have samples.

        Parameters
        ----------
        problems : sequence of BinMoments
            The sums of each, as :meth:`BinRule.moments` returns them.
        notion : Notion
            The kind of calibration.
        classes : ndarray of shape (n_classes,)
            The class of each problem.
        confidence_level : float in (0, 1), default=0.95
            The confidence level of the intervals.
        """
        tables = [
            _columns_of_problem(k, part, confidence_level)
            for k, part in enumerate(problems)
            if part.total > 0
        ]
        columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
        return cls(notion=notion, confidence_level=confidence_level, classes=classes, **columns)

    @classmethod
    def of_sample(
        cls, sample: Sample, rule: BinRule, confidence_level: float = 0.95
    ) -> CalibrationBins:
        """Return the table of a sample, whose groups widen no interval.

        Parameters
        ----------
        sample : Sample
            Labels and predictions.
        rule : BinRule
            How predictions are binned.
        confidence_level : float in (0, 1), default=0.95
            The confidence level of the intervals.
        """
        moments = bin_moments(sample, rule, OF_TABLES)
        return cls.of_moments(moments, sample.notion, sample.classes, confidence_level)

    def __len__(self):
        return len(self.count)

    def _caption(self):
        level = f"low, high: {percent(self.confidence_level)} Clopper-Pearson interval"
        return f"{len(self)} bins, {self.notion} calibration", level

    def _table(self) -> Table:
        columns = self._columns()
        del columns["problem"]
        if (columns["weight"] == columns["count"]).all():
            del columns["weight"]
        return Table.of(columns, most=_MOST_BINS)

    def _columns(self) -> dict[str, np.ndarray]:
        """The fields; vectors take a column for each entry, classes a column "class"."""
        by_class = self.notion.by_class
        columns = {"class": self.classes[self.problem]} if by_class else {}
        columns |= {
            name: getattr(self, name) for name in ("problem", "left", "right", "count", "weight")
        }
        for name in ("prediction", "frequency", "gap", "low", "high"):
            values = getattr(self, name)
            suffixes = [""] if values.shape[1] == 1 else [f"_{k}" for k in range(values.shape[1])]
            columns |= {name + suffix: values[:, k] for k, suffix in enumerate(suffixes)}
        return columns


@validate_params({**BIN_OPTIONS, **CONFIDENCE_LEVEL}, used_with=USE_OF_BINS)
def calibration_bins(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str | Callable = "auto",
    n_bins: int | str = 15,
    strategy: Strategy = "uniform",
    min_samples: int = 100,
    edges: ArrayLike | None = None,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> CalibrationBins:
    """Table of bins: mean prediction, observed frequency and its confidence limits.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str or callable, default="auto"
        The kind of calibration; "auto" is "binary" for one and two columns and "confidence" for
        more.
    n_bins : int or "cube_root", default=15
        Number of bins, on the simplex of intervals per class; "cube_root": ⌊n^(1/3)⌋.
    strategy : {"uniform", "quantile", "sweep", "unique", "median-variance"}, default="uniform"
        The rule of the bins, as in :class:`skcal.Binning`; the last for vectors only, "quantile"
        and "sweep" for scalars.
    min_samples : int, default=100
        Fewest samples in a cell of "median-variance".
    edges : array-like of shape (n_edges,), default=None
        Edges of bins for scalar notions, rising from 0 to 1, in place of ``n_bins`` and
        ``strategy``.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of the Clopper-Pearson intervals of the frequencies. If weights are
        given, the number of samples is the effective one, (Σw)² / Σw².
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    bins : CalibrationBins
        All bins, also empty ones, class after class. A class of "top-label" that is never predicted
        has no bins.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, or the strategy does not fit the notion.

    See Also
    --------
    expected_calibration_error, maximum_calibration_error

    References
    ----------
    .. [1] Clopper & Pearson, The use of confidence or fiducial limits illustrated in the case of
       the binomial, Biometrika 1934.

    Examples
    --------
    >>> from skcal.metrics import calibration_bins
    >>> bins = calibration_bins([0, 0, 1, 1], [0.1, 0.3, 0.4, 0.9], n_bins=2)
    >>> bins.count, bins.gap.ravel().round(3)
    (array([3, 1]), array([0.067, 0.1  ]))
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, groups=None, from_sums=True)
    if sample.source.grouped:
        refuse_groups(sample.groups, "calibration_bins", "Leave the groups out of the Sample.")
    rule = BinRule.of(n_bins, strategy, min_samples, edges)
    return CalibrationBins.of_sample(sample, rule, confidence_level)


def _columns_of_problem(k, moments, confidence_level):
    """Columns of one problem."""
    size = len(moments.weight)
    left = right = np.full(size, np.nan)
    if isinstance(moments.partition, Intervals):
        left, right = moments.partition.edges[:-1], moments.partition.edges[1:]
    filled = np.where(moments.weight > 0, moments.weight, np.nan)[:, None]
    hits = moments.outcomes / filled
    effective = moments.weight**2 / np.where(moments.squares > 0, moments.squares, 1)
    effective = effective[:, None]
    low, high = clopper_pearson(hits * effective, effective, (1 - confidence_level) / 2)
    return {
        "problem": np.full(size, k),
        "left": left,
        "right": right,
        "count": np.rint(moments.count).astype(np.int64),
        "weight": moments.weight,
        "prediction": moments.centres + moments.shift / filled,
        "frequency": hits,
        "gap": moments.residuals / filled,
        "low": low,
        "high": high,
    }
