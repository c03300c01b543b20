"""Calibration errors of binned predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import isinf
from numbers import Real
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from skcal._bins import bin_sums
from skcal._groups import INDEPENDENT
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal._validation import InputError
from skcal.metrics.base import Average, Bins, Distance, Strategy, combine_problems
from skcal.metrics.bins import (
    BIN_OPTIONS,
    DISTANCES,
    GAPS,
    USE_OF_BINS,
    BinMoments,
    BinnedRows,
    BinRule,
    bin_moments,
    gap_distances,
    moments_together,
    pooled,
)
from skcal.metrics.statistic import CountedCells, prepared_by
from skcal.notions import Problem
from skcal.sample import Sample, error_of_shares, read_sample, refuse_groups, refused_sums

# Sums that debiasing takes besides the gaps.
_DEBIAS = {
    False: (),
    True: ("count", "squares", "square_errors"),
    "labels": ("count", "squares", "outcomes"),
}
ERROR_OPTIONS = {
    "norm": [Interval(Real, 1, np.inf, closed="both")],
    "debias": ["boolean", StrOptions({"labels"})],
    "average": [StrOptions({"sum", "macro", "micro"}), None],
    "root": ["boolean"],
}

_MANY_RESAMPLED, _FINE_BINS = 50_000, 1024  # that are resampled by cells, of so many in [0, 1]
LEAST_SAMPLES = [*BIN_OPTIONS["min_samples"], None]


def resolve_distance(distance, norm, debias):
    """Return the distance that "auto" means, or refuse what does not go together."""
    if 50 < norm < np.inf:
        raise InputError("norm", f"is {norm:g}: powers of small gaps vanish.", "Pass numpy.inf.")
    if debias and norm != 2:
        raise ValueError(f"debias={debias!r} is for norm=2, the squared error, not {norm}.")
    if distance == "auto":
        return "total-variation" if norm == 1 or np.isinf(norm) else "euclidean"
    if debias and distance != "euclidean":
        raise ValueError(f"debias={debias!r} goes with distance='euclidean', not {distance!r}.")
    return distance


def prepare_bins(
    problem,
    *,
    n_bins=15,
    strategy="uniform",
    min_samples=100,
    edges=None,
    norm=1,
    distance="auto",
    root=True,
    **others,
):
    """The error in bins that do not depend on outcomes; None of others and of debiased errors."""
    if others or (strategy == "sweep" and edges is None):
        return None
    rule = BinRule.of(n_bins, strategy, min_samples, edges)
    return BinnedStatistic(problem, rule, norm, resolve_distance(distance, norm, False), root=root)


def _count_expected_error(sample, *, norm, debias, **others):
    """The error as a function of how often each row counts."""
    if others["average"] == "micro" or (debias and not sample.groups.independent):
        return None
    rule = _pop_rule(others)
    distance = resolve_distance(others.pop("distance"), norm, debias)
    choices = {"norm": norm, "debias": debias, "distance": distance, **others}
    measure: Callable = partial(expected_error, **choices)
    names = (*GAPS, *_DEBIAS[debias])

    def of_rows(counts):
        rows = counts > 0
        return measure(bin_moments(sample.take(rows, (counts * sample.weight)[rows]), rule, names))

    return count_bins(sample, rule, names, measure) or of_rows


def _count_largest_error(sample, **options):
    """The largest gap as a function of how often each row counts."""
    least = options["min_samples"]
    rule = _pop_rule(options | {"min_samples": least or 100})
    measure = partial(largest_error, min_samples=least, distance=options["distance"])
    return count_bins(sample, rule, GAPS, measure)


def _pop_rule(options: dict) -> BinRule:
    names = "n_bins", "strategy", "min_samples", "edges"
    return BinRule.of(*(options.pop(name) for name in names))


@overload
def expected_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = ...,
    *,
    average: None,
    **options: Unpack[Bins],
) -> np.ndarray: ...
@overload
def expected_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = ...,
    *,
    average: Average | Literal["micro"] = "sum",
    **options: Unpack[Bins],
) -> float: ...
@prepared_by(prepare_bins, counts=_count_expected_error)
@validate_params(
    {**BIN_OPTIONS, **ERROR_OPTIONS, "distance": [StrOptions({"auto", *DISTANCES})]},
    used_with=USE_OF_BINS,
)
def expected_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str | Callable = "auto",
    n_bins: int | Literal["cube_root"] = 15,
    strategy: Strategy = "uniform",
    min_samples: int = 100,
    edges: ArrayLike | None = None,
    norm: float = 1,
    debias: bool | Literal["labels"] = False,
    distance: Literal["auto"] | Distance = "auto",
    average: Average | Literal["micro"] | None = "sum",
    root: bool = True,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float | np.ndarray:
    """Binned calibration error (ECE): mean gap between observed frequency and prediction.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str or callable, default="auto"
        The kind of calibration, see :mod:`skcal.notions`. "auto" is "binary" for one and two
        columns and "confidence" for more: two different numbers on the same data.
    n_bins : int or "cube_root", default=15
        Number of bins, on the simplex of intervals per class; "cube_root": ⌊n^(1/3)⌋ with
        n the sum of the weights. For the strategies "uniform" and "quantile".
    strategy : {"uniform", "quantile", "sweep", "unique", "median-variance"}, default="uniform"
        Bins as in :class:`skcal.Binning`: b_{j-1} < x ≤ b_j, the first closed at 0. "unique" groups
        equal predictions. Scalar notions know all but the last, vectors "uniform", "unique" and
        "median-variance".
    min_samples : int, default=100
        Fewest samples in a cell of "median-variance".
    edges : array-like of shape (n_edges,), default=None
        Edges of bins for scalar notions, rising from 0 to 1, in place of ``n_bins`` and
        ``strategy``.
    norm : float in [1, 50] or inf, default=1
        The power q: 1 is ECE, 2 the root mean squared calibration error, ``inf`` the maximum.
    debias : bool or "labels", default=False
        Whether, for ``norm=2``, to subtract the estimated variance of each bin's mean residual.
        "labels" uses the variance of the labels [1]_, which is too large if predictions vary within
        a bin. The debiased square of a bin is the mean of ⟨δ_i, δ_j⟩ over its pairs; it is 0 for a
        bin with one sample.
    distance : {"auto", "total-variation", "euclidean", "sqeuclidean", "cityblock"}, default="auto"
        ‖·‖ for notions with vectors. "auto" is total variation, half the sum of absolute
        differences [2]_, for ``norm=1`` and ``inf``, and Euclidean otherwise. Scalar notions take
        the absolute difference.
    average : {"sum", "macro", "micro"} or None, default="sum"
        The average over classes or labels, for "classwise", "top-label" and "multi-label". "sum":
        the sum of their q-th powers ("top-label": each times its share of the samples). "macro":
        their plain mean. "micro": the predictions of all classes share the same bins. None: one
        error each (shape (1,) for other notions). The class-wise ECE of Kull et al. (2019) and the
        static calibration error of Nixon et al. (2019) are "macro". If ``norm=inf``, "sum" and
        "macro" return the largest error.
    root : bool, default=True
        False returns the q-th power, which debiasing leaves unbiased and possibly negative.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row; variances for ``debias`` take weights for
        importances instead, so that their scale does not matter.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other, so that ``debias=True`` leaves out their
        pairs; other errors do not change. See :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class). None:
        integers from 0 are column numbers, a data frame's columns may name the classes, and other
        labels, sorted, must be as many as columns.
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    error : float, or ndarray of shape (n_classes,) for ``average=None``
        The error in probability units, in [0, 1] for a scalar problem and total variation; 0 is
        calibrated. A debiased square below 0 has the root 0. NaN for a class that is never
        predicted ("top-label", ``average=None``).

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, the strategy does not fit the notion, or
        ``debias`` does not go with the norm or distance.

    See Also
    --------
    maximum_calibration_error, calibration_bins, skcal.CalibrationErrorSearchCV
    skcal.CalibrationTable : the same of samples in batches, on workers and in engines.
    skcal.Sample : Labels and predictions, read once for several questions.

    Notes
    -----
    The error is (Σ_b n_b/n ‖mean residual of bin b‖^q)^(1/q), with q = ``norm``. It is biased
    upwards. Calibrated predictions, uniform on [0, 1], have an ECE in 15 bins of about 0.12 at
    n = 100, 0.04 at 1,000 and 0.012 at 10,000. So never report it without n. It is biased downwards
    if a bin holds gaps of both signs. O(n log n_bins) time, O(n) memory.

    Away from edges, packages agree if the question is the same. The binary task of torchmetrics is
    ``notion="binary"``, and its multiclass task is "confidence" (two columns mean "binary" here).
    Its norms l1, l2 and max are 1, 2 and inf.

    Predictions on the grid k/n_bins fall into the same bins in float32 and float64. Sums and
    differences of probabilities ("confidence" of 1-D predictions, "top-K", lenses) have rounding
    errors of their own. On such grids packages differ by whole bins. An example has 110 samples on
    {0, 0.1, …, 1} and 10 bins, in float32 and in float64. skcal gives 0.1727 in both. Others give:
    torchmetrics 1.9 0.1545 and 0.1909 (bins [a, b), 1.0 in an eleventh), netcal 1.4 0.1182 and
    0.1909, uncertainty-calibration 0.1.4 and scikit-learn's ``calibration_curve`` 0.1727 and
    0.0818, MAPIE 1.6 0.1909 in both (9 bins and one for 0), relplot 1.0 0.1182 and 0.1909.

    References
    ----------
    .. [1] Kumar, Liang & Ma, Verified uncertainty calibration, NeurIPS 2019.
    .. [2] Widmann, Lindsten & Zachariah, Calibration tests in multi-class classification,
       NeurIPS 2019.
    .. [3] Roelofs et al., Mitigating bias in calibration error estimation, AISTATS 2022.

    Examples
    --------
    >>> from skcal.metrics import expected_calibration_error
    >>> y = [0, 1, 1, 1]
    >>> expected_calibration_error(y, [0.25, 0.25, 0.75, 1.0], n_bins=4)
    0.1875
    >>> proba = [[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.1, 0.1, 0.8]]
    >>> round(expected_calibration_error([0, 2, 2], proba, notion="classwise"), 6)
    0.866667
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, groups=groups, from_sums=True)
    if not debias and not sample.groups.independent:
        sample = sample._replace(groups=INDEPENDENT)  # so that large samples are read in blocks
    if debias == "labels":
        refuse_groups(sample.groups, "debias='labels'", "Use debias=True.")
        if not sample.holds_rows and sample.problems()[0].of_shares:
            raise error_of_shares("debias='labels'", "Use debias=True.")
        if average == "micro":
            raise ValueError(
                "debias='labels' is not for average='micro', whose bins hold several outcomes of a "
                "sample. Use debias=True."
            )
    distance = resolve_distance(distance, norm, debias)
    rule = BinRule.of(n_bins, strategy, min_samples, edges)
    names = (*GAPS, *_DEBIAS[debias])
    if average == "micro" and sample.notion.by_class and not sample.holds_rows:
        if debias:
            raise refused_sums("average='micro' with debias=True beside y_true")
        moments = [moments_together(bin_moments(sample, rule, names))]
    elif average == "micro" and sample.notion.by_class:
        moments = [rule.moments(pooled(sample), names)]
    else:
        moments = bin_moments(sample, rule, names)
    return expected_error(moments, norm, debias, distance, average, root)


def expected_error(problems: list[BinMoments], norm, debias, distance, average, root):
    """Combine Σ_b n_b/n ‖gap‖^q of all problems; NaN for one without samples."""
    powers = []
    for p in problems:
        variances = p.variances(debias) if debias and p.total > 0 else None
        powers.append(_error_power(p.weight, p.gaps, norm, distance, variances))
    return combine_problems(powers, problems, norm, average, root)


def _error_power(weight, gaps, norm, distance, variances: Any = None):
    """Σ_b n_b/n ‖gap‖^q of one problem; for q = ∞ the largest ‖gap‖; NaN without samples."""
    total, distances = weight.sum(), gap_distances(gaps, distance)
    if not total > 0:
        return np.nan
    if isinf(norm):
        return distances.max()
    powers = distances if norm == 1 else distances**norm
    return weight.dot(powers if variances is None else powers - variances) / total


@prepared_by(counts=_count_largest_error)
@validate_params(
    {
        **BIN_OPTIONS,
        "min_samples": LEAST_SAMPLES,
        "distance": [StrOptions(set(DISTANCES))],
    },
    used_with={"n_bins": USE_OF_BINS["n_bins"], "strategy": USE_OF_BINS["strategy"]},
)
def maximum_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str | Callable = "auto",
    n_bins: int | Literal["cube_root"] = 15,
    strategy: Strategy = "uniform",
    min_samples: int | None = None,
    edges: ArrayLike | None = None,
    distance: Distance = "total-variation",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Maximum calibration error (MCE): the largest gap of any bin.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str or callable, default="auto"
        The kind of calibration, as in :func:`expected_calibration_error`. If there are several
        classes, the worst bin of all counts.
    n_bins : int or "cube_root", default=15
        Number of bins, as in :func:`expected_calibration_error`.
    strategy : {"uniform", "quantile", "sweep", "unique", "median-variance"}, default="uniform"
        Bins as in :func:`expected_calibration_error`.
    min_samples : int, default=None
        Bins with fewer samples (a smaller sum of weights) do not count; "median-variance" makes
        none. None counts all, so that a bin with one sample can decide, as in other packages; it is
        100 for "median-variance".
    edges : array-like of shape (n_edges,), default=None
        Edges of bins, as in :func:`expected_calibration_error`.
    distance : {"total-variation", "euclidean", "sqeuclidean", "cityblock"}, \
default="total-variation"
        The distance between vectors, for notions that have them.
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
    error : float in [0, 1], in probability units; 0 is calibrated.
        The largest gap of a bin.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, or no bin holds ``min_samples``.

    See Also
    --------
    calibration_bins : its ``largest_gap`` is the number of that bin.

    Notes
    -----
    It is the binned error with ``norm=inf``. As the largest of many noisy gaps it grows with the
    number of sparse bins, even if predictions are calibrated.

    References
    ----------
    .. [1] Naeini, Cooper & Hauskrecht, Obtaining well calibrated probabilities using Bayesian
       binning, AAAI 2015.

    Examples
    --------
    >>> from skcal.metrics import maximum_calibration_error
    >>> y, p = [0, 0, 1, 1], [0.125, 0.25, 0.25, 0.875]
    >>> maximum_calibration_error(y, p, n_bins=2)
    0.125
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, from_sums=True)
    rule = BinRule.of(n_bins, strategy, min_samples or 100, edges)
    moments = bin_moments(sample, rule, GAPS)
    return largest_error(moments, min_samples, distance)


def largest_error(problems: list[BinMoments], min_samples, distance="total-variation") -> float:
    """Largest gap of any bin of weight ``min_samples`` or more."""
    largest, fullest = [], 0.0
    for moments in problems:
        if moments.total > 0:
            fullest = max(fullest, moments.weight.max())
            # Sums of weights have rounding errors.
            enough = moments.weight >= (min_samples or 0) * (1 - 1e-12)
            allowed = (moments.weight > 0) & enough
            largest += gap_distances(moments.gaps[allowed], distance).tolist()
    if not largest:
        raise ValueError(
            f"min_samples={min_samples}: the fullest bin holds {fullest:.6g} samples. "
            "Lower min_samples or n_bins."
        )
    return max(largest)


class BinnedStatistic:
    """Binned calibration error of a problem, by counting; bins must not depend on labels.

    Attributes
    ----------
    moments : BinMoments
        The moments of all bins.
    bins : ndarray of shape (n_rows,)
        Number of the bin of each row, among those that hold samples.
    mass : ndarray of shape (n_filled,)
    predicted : ndarray of shape (n_filled, m)
        Sums of the weights and of weighted predictions.
    """

    def __init__(self, problem: Problem, rule, norm=1, distance="total-variation", root=True):
        self.norm, self.distance, self.weight = norm, distance, problem.weight
        self.exponent = 1 / norm if root and np.isfinite(norm) else 1
        self.features = problem.features
        self.moments = rule.moments(problem, GAPS)
        filled = np.flatnonzero(self.moments.weight > 0)
        self.bins = np.searchsorted(filled, self.moments.bins)
        self.mass = self.moments.weight[filled]
        weighted = problem.weight[:, None] * problem.features
        self.predicted = bin_sums(self.bins, weighted, len(filled))

    def __call__(self, codes):
        """Return the error of each row of outcomes."""
        return self._errors([self.hits(row) for row in codes])

    def counted(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Predictions in order and the first row of each bin; None of vectors or with weights."""
        if self.features.shape[1] > 1 or (self.weight != 1).any():
            return None
        order = np.argsort(self.features[:, 0])
        starts = np.flatnonzero(np.diff(self.bins[order], prepend=-1))
        return self.features[order, 0].astype(np.float64), starts

    def of_sums(self, counts):
        """Return the error of each row of numbers of events in the bins."""
        return self._errors(counts[:, :, None])

    def _errors(self, hits):
        return np.array([self.power(of_draw) for of_draw in hits]) ** self.exponent

    def hits(self, codes):
        """Weighted number of each outcome in each bin, (n_filled, m)."""
        n_bins, m = self.predicted.shape
        if m == 1 or codes.ndim == 2:
            return bin_sums(self.bins, self.weight[:, None] * codes.reshape(-1, m), n_bins)
        cells = np.bincount(self.bins * m + codes, self.weight, minlength=n_bins * m)
        return cells.reshape(n_bins, m)

    def power(self, hits):
        """Σ_b n_b/n ‖gap‖^q of weighted numbers of outcomes; for q = ∞ the largest ‖gap‖."""
        gaps = (hits - self.predicted) / self.mass[:, None]
        return _error_power(self.mass, gaps, self.norm, self.distance)


def count_bins(sample: Sample, rule, names, measure):
    """Return a measure of sums over bins as a function of how often each row counts.

    None for bins that depend on the weights.

    Parameters
    ----------
    sample : Sample
    rule : BinRule
    names : sequence of str
        The sums, as in :func:`skcal.metrics.bins.bin_moments`.
    measure : callable
        Maps a list of BinMoments to a float.
    """
    if not rule.known and (rule.strategy != "unique" or rule.n_bins == "cube_root"):
        return None
    problems = [problem for problem in sample.problems() if len(problem.weight)]
    binned = [BinnedRows(problem, rule.partition(problem)) for problem in problems]
    of_counts = partial(_measure_counts, shares_samples=sample.notion.shares_samples)
    of_counts = partial(of_counts, names=names, measure=measure)
    cells = None
    if sample.groups.independent:
        cells = (_fine_cells if sample.holds_rows else _counted_cells)(binned, names)
    if cells is None:
        return partial(of_counts, binned)
    return CountedCells(partial(of_counts, binned), cells[0], partial(of_counts, [cells[1]]))


def _fine_cells(binned: list[BinnedRows], names) -> tuple[np.ndarray, BinnedRows] | None:
    """Sizes of cells of equal outcomes and predictions that differ by 0.001, and these as rows.

    None if they are not far fewer than the rows. The predictions of a cell differ by less than a
    hundredth of the deviation of its outcomes, so that resamples of the cells vary as much.
    """
    problem, bins = binned[0].problem, binned[0].bins
    n, (x, *others) = len(bins), problem.features.astype(np.float64).T
    y = problem.outcomes[:, 0]
    apart = others or problem.of_shares or np.ptp(problem.weight) > 0
    if len(binned) > 1 or apart or n < _MANY_RESAMPLED or set(names) != set(GAPS):
        return None
    places = (bins * (_FINE_BINS + 1) + (_FINE_BINS * x).astype(np.intp)) * 2 + (y > 0.5)
    if places.max() > n:
        return None
    size = np.bincount(places)
    mean = np.bincount(places, x)[size > 0] / size[size > 0]
    held = np.flatnonzero(size)
    outcome, edge = held % 2, (held // 2) % (_FINE_BINS + 1) / _FINE_BINS
    mean = np.clip(mean, edge, edge + 1 / _FINE_BINS)
    rows = problem._replace(
        features=mean[:, None],
        residuals=(outcome - mean)[:, None],
        weight=np.full(len(held), problem.weight[0]),
        logits=None,
    )
    cells = BinnedRows(rows, binned[0].partition)
    cells.bins = held // (2 * (_FINE_BINS + 1))
    return size[held], cells


def _counted_cells(binned: list[BinnedRows], names) -> tuple[np.ndarray, BinnedRows] | None:
    """The same of rows that are cells already; samples of unequal weights are fewer equal ones."""
    [rows], problem = binned, binned[0].problem
    sizes = np.maximum(np.rint(1 / problem.counted.uneven), 1).astype(np.intp)
    rows = BinnedRows(problem._replace(weight=problem.weight / sizes), rows.partition)
    return sizes, rows


def _measure_counts(binned: list[BinnedRows], counts, *, shares_samples, names, measure) -> float:
    counts, moments = counts.astype(np.float64), []
    for rows in binned:
        counted = rows.problem.weight * counts[rows.problem.rows]
        moments.append(rows.moments(names, 1.0, counted))
    if not shares_samples:
        total = sum(part.total for part in moments)
        moments = [replace(part, share=part.total / total) for part in moments]
    return measure(moments)
