"""Bootstrap intervals of calibration measures."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import bootstrap, norm
from sklearn.utils import check_consistent_length, check_random_state

from skcal._groups import Groups, read_groups
from skcal._labels import (
    check_labels,
    class_names,
    classes_of_shares,
    is_table,
    refuse_another_order,
)
from skcal._running import over_jobs
from skcal._show import ShownRounded, percent, plain_number, worded
from skcal._sklearn_compat import Interval, StrOptions, refuse_unused, validate_params
from skcal._validation import CONFIDENCE_LEVEL, check_weight, naming, plain_array
from skcal.metrics.limits import surprises, warn_if_few_events
from skcal.metrics.statistic import CountedCells, form_of_counts, prepare_counts
from skcal.sample import (
    Sample,
    Summed,
    read_proba,
    read_sample,
    refuse_beside_sample,
    refuse_lazy,
    refused_sums,
    require_given,
)

_FEWEST_EVENTS = 15  # below that 95 % intervals cover 60 % to 90 %
_FEW_GROUPS = 30  # fewer draw a warning: 95 % intervals cover 77 % to 91 % of shared labels
_TASKS = 64  # fixed, so that the seeds do not depend on n_jobs


@dataclass(frozen=True, eq=False)
class BootstrapInterval(ShownRounded):
    """A measure with its bootstrap interval.

    Attributes
    ----------
    estimate : float
        The measure on the samples.
    low, high : float
        The interval.
    standard_error : float
        Standard deviation of the resampled values.
    confidence_level : float
    distribution : ndarray of shape (n_resamples,)
        The resampled values.
    """

    estimate: float
    low: float
    high: float
    standard_error: float
    confidence_level: float
    distribution: np.ndarray = field(repr=False)

    def sentence(self) -> str:
        """Return the estimate with its interval, in words."""
        estimate, low, high = map(plain_number, (self.estimate, self.low, self.high))
        level = percent(self.confidence_level)
        return f"estimate {estimate} ({low} to {high}, {level} bootstrap interval)"


@validate_params(
    {
        "metric": [callable],
        **CONFIDENCE_LEVEL,
        "n_resamples": [Interval(Integral, 2, None, closed="left")],
        "method": [StrOptions({"percentile", "basic", "BCa"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    },
    prefer_skip_nested_validation=False,
)
def bootstrap_interval(
    metric: Callable,
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    method: Literal["percentile", "basic", "BCa"] = "basic",
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    **metric_params: Any,
) -> BootstrapInterval:
    """Bootstrap confidence interval of a calibration measure.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_proba, **metric_params) → float``, one of :mod:`skcal.metrics` or your
        own.
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`. A
        :class:`skcal.CalibrationTable` for :func:`expected_calibration_error` and
        :func:`maximum_calibration_error` in bins of its edges.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of the limits.
    n_resamples : int, default=999
        The number of resamples.
    method : {"percentile", "basic", "BCa"}, default="basic"
        The kind of interval, as in :func:`scipy.stats.bootstrap`. "BCa" evaluates the metric
        n_samples times more.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights, which are resampled with the samples and passed to the metric.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other. Whole groups are resampled, and passed to a
        metric that takes them. Intervals are wider if groups are few, see Notes and
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; resamples that lack a class keep its column.
    random_state : int, RandomState instance or None, default=0
        The seed of the draws.
    n_jobs : int, default=None
        Workers; results do not depend on it.
    **metric_params
        Options of the metric, such as ``notion`` and ``n_bins``; those that are called as options
        of this function (``method``, ``random_state``) go in by :func:`functools.partial`.

    Returns
    -------
    interval : BootstrapInterval
        ``estimate``, ``low``, ``high``, ``standard_error`` and the resampled ``distribution``.

    Raises
    ------
    ValueError
        If the input is not valid.

    Warns
    -----
    UserWarning
        If fewer than 15 effective outcomes differed from the prediction. Their number is (Σ e)² / Σ
        e², where e is w² times the Brier loss of a sample. It is never more than the sum of the
        Brier losses. Also if there are fewer than 30 groups.

    Notes
    -----
    Predictions and labels are resampled together. Coverage of 95 % intervals of confidence
    calibration, on models M1 (calibrated), M2 and M3 of Widmann et al. (2019) with C = 10,
    Dir(0.1), 150 data sets each (standard error 2 %), of the measure's own population value
    (``tests/studies/interval_coverage.py``):

    ==================== ========== ============ ============= ============ =============
    measure              method     M1, n = 250  M1, n = 1,000 M2, n = 250  M2, n = 1,000
    ==================== ========== ============ ============= ============ =============
    ECE, 15 bins         percentile 0 %          0 %           94 %         97 %
    ECE, 15 bins         basic      49 %         57 %          88 %         95 %
    debiased squared ECE percentile 100 %        99 %          91 %         96 %
    debiased squared ECE basic      99 %         100 %         90 %         94 %
    smooth ECE           percentile 0 %          0 %           95 %         97 %
    smooth ECE           basic      27 %         9 %           93 %         95 %
    SKCE                 percentile 100 %        100 %         93 %         95 %
    SKCE                 basic      99 %         99 %          91 %         94 %
    ==================== ========== ============ ============= ============ =============

    Use percentile intervals of the debiased squared error (``norm=2, debias=True, root=False``) or
    of the SKCE: they also hold if the model is calibrated. Intervals of ECE and smooth ECE then
    miss the truth, since the measures are biased upwards and resampling adds the bias again.
    "basic" subtracts part of the bias, so an interval may exclude the estimate or go below 0. M3 is
    like M2.

    Coverage of percentile intervals of the debiased squared error was also measured on other
    calibrated predictions, 40 to 100 data sets. Class-wise with 10 or 20 classes, n = 200 or 300:
    98 % to 100 %. Confidence, 3 classes, n = 100: 100 %. If there is only a handful of events, no
    bootstrap knows the tail, hence the warning. Three further cases (300 data sets a cell),
    confidence or binary, were: 1 % positives whose predictions vary (Beta(0.3, 29.7)), networks
    that are 99 % sure, and predictions of which 90 % are near 0 and 1. Such intervals covered the
    truth as follows, by the number of effective events: below 5, 46 % to 57 %; 5 to 10, 76 % to
    94 %; 10 to 15, 90 % to 99 %; 15 and more, 96 % to 100 %.

    Resamples of G groups vary less than the measure, so ``groups`` widen the interval: the tail α
    becomes Φ(-√(G / (G - 1)) t), with the quantile t at α of Student's law of G - 1 degrees of
    freedom (the expanded interval of [2]_). Groups of different sizes count as fewer groups of
    equal size. Misses of 95 % intervals of the bias and the Brier score, before and now, in 400
    data sets a cell:

    =================================== ========== ========= ========= =========
    groups                              method     G = 8     G = 12    G = 30
    =================================== ========== ========= ========= =========
    20 samples each                     percentile 12 → 6 %  9 → 7 %   6 → 5 %
    20 samples each                     basic      13 → 9 %  9 → 7 %   7 → 6 %
    1 to 59 samples each                percentile 13 → 6 %  12 → 6 %  5 → 4 %
    1 to 59 samples each                basic      18 → 14 % 16 → 10 % 7 → 4 %
    one label each, an event in 25 %    percentile 23 → 14 % 16 → 12 % 10 → 8 %
    one label each, an event in 25 %    basic      26 → 23 % 18 → 15 % 13 → 11 %
    =================================== ========== ========= ========= =========

    Each cell is that of the worse measure. With few groups take "percentile".

    Resamples of :func:`expected_calibration_error` and :func:`maximum_calibration_error` with
    "uniform" and "unique" bins are sums over fixed bins. From 50,000 samples of one probability on,
    resamples draw numbers of samples in cells of equal outcomes, whose predictions differ by at
    most 0.001: 1 s for a million samples and 1,000 resamples. Other measures cost n_resamples
    evaluations, 10 s for the smooth error of 100,000 samples. To save time choose 200 resamples or
    ``n_jobs``. :func:`binned_rms_error_interval` gives an interval of the binned error without
    resampling.

    References
    ----------
    .. [1] Efron & Tibshirani, An introduction to the bootstrap, 1993.
    .. [2] Hesterberg, What teachers should know about the bootstrap, The American Statistician,
       2015.

    Examples
    --------
    >>> from skcal.datasets import make_dirichlet
    >>> from skcal.metrics import bootstrap_interval, expected_calibration_error
    >>> data = make_dirichlet(500, n_classes=3, model="M3", random_state=0)
    >>> interval = bootstrap_interval(
    ...     expected_calibration_error, data.labels, data.proba, random_state=0, n_resamples=199
    ... )
    >>> bool(interval.low < interval.estimate < interval.high)
    True
    """
    if isinstance(y_true, Sample | Summed):
        beside = {"y_proba": y_proba, "sample_weight": sample_weight, "groups": groups}
        beside |= {"labels": labels}
        found = _read_for_counts(metric, y_true, beside, metric_params)
        if found is not None:
            sample, estimate, evaluate = found
            _warn_if_few(sample)
            about = sample.weight, sample.groups, n_resamples, random_state, n_jobs
            return interval_of_counts(estimate, evaluate, *about, confidence_level, method)
        if isinstance(y_true, Summed):
            raise refused_sums("y_true")
        y_true, y_proba, sample_weight, groups, labels, metric_params = _arguments_of(
            metric, y_true, beside, metric_params
        )
    require_given(y_proba=y_proba)
    refuse_lazy({"y_proba": y_proba, "y_true": y_true})
    y, proba, weight, together, params = _read_for_metric(
        metric, y_true, y_proba, sample_weight, groups, labels, metric_params
    )
    _warn_if_few_events(y, proba, weight, params)
    by_rows = _on_rows(metric, y, proba, weight, params)
    estimate = _one_number(by_rows(np.ones(len(proba), dtype=np.intp)))
    evaluate = prepare_counts(metric, y, proba, weight, params) or by_rows
    counted = np.ones(len(proba)) if weight is None else weight
    about = counted, together, n_resamples, random_state, n_jobs
    return interval_of_counts(estimate, evaluate, *about, confidence_level, method)


def _one_number(estimate) -> float:
    """The estimate of a metric, which is one number."""
    if not isinstance(estimate, Real) or not isfinite(estimate):
        raise ValueError(
            f"metric returned {estimate!r:.80}; an interval needs one finite number. Wrap it: "
            "lambda y, p, **options: metric(y, p, **options).attribute."
        )
    return float(estimate)


def interval_of_counts(
    estimate: float,
    evaluate: Callable,
    weight: np.ndarray,
    together: Groups,
    n_resamples: int,
    random_state,
    n_jobs: int | None = None,
    confidence_level: float = 0.95,
    method: str = "basic",
) -> BootstrapInterval:
    """The interval of a measure, ``evaluate(counts)``, of how often each sample counts."""
    n_units, covered = len(weight), confidence_level
    if not together.independent:
        n_units, evaluate = together.n_groups, partial(_metric_of_groups, evaluate, together.codes)
        freedom = together.degrees_of_freedom(weight)
        quantile = together.quantile((1 - confidence_level) / 2, weight)
        covered = 1 - 2 * float(norm.sf(np.sqrt(1 + 1 / freedom) * quantile))
    seeds = check_random_state(random_state).randint(2**31 - 1, size=_TASKS)
    sizes = [len(part) for part in np.array_split(np.arange(n_resamples), _TASKS)]
    draws = zip(sizes, seeds, strict=True)
    draw = partial(resample_counts, n=n_units)
    resampled, prefer = evaluate, None
    if isinstance(evaluate, CountedCells):
        prefer = "threads"  # which are cheaper than copies of the cells
        n_samples = int(evaluate.sizes.sum())
        shares = evaluate.sizes / n_samples
        draw, resampled = partial(_multinomial, n=n_samples, shares=shares), evaluate.of_cells
    calls = [(_resample, resampled, draw, n_units, size, seed) for size, seed in draws]
    distribution = np.concatenate(over_jobs(calls, n_jobs, prefer))
    interval = bootstrap(
        (np.arange(n_units),),
        lambda rows: evaluate(np.bincount(rows, minlength=n_units)),
        n_resamples=0,
        vectorized=False,
        confidence_level=covered,
        method=method,
        bootstrap_result=SimpleNamespace(bootstrap_distribution=distribution),
    ).confidence_interval
    return BootstrapInterval(
        float(estimate),
        float(interval.low),
        float(interval.high),
        float(distribution.std(ddof=1)),
        confidence_level,
        distribution,
    )


def _metric_of_groups(evaluate, codes, counts):
    """A metric of how often each group counts."""
    return evaluate(counts[codes])


def _read_for_counts(metric, given, beside, params) -> tuple[Sample, float, Callable] | None:
    """The samples of positive weight that a metric is asked about, it, and it as of counts."""
    of_sample, question = form_of_counts(metric, params)
    if of_sample is None or (isinstance(given, Sample) and np.ndim(given.arguments["y_true"]) == 2):
        return None  # samples with several votes are drawn as rows are
    refuse_beside_sample(beside)
    refuse_unused(metric, params)
    question |= {"groups": None, "few_groups": _FEW_GROUPS, "at_least": 2, "from_sums": True}
    sample = read_sample(given, **question)
    estimate = _one_number(metric(given, **params))  # before memory holds the bins of rows
    evaluate = of_sample(sample)
    return None if evaluate is None else (sample, estimate, evaluate)


def _arguments_of(metric, sample: Sample, beside, params) -> tuple:
    """The arguments for a sample, whose notion is asked about unless the options name another."""
    refuse_beside_sample(beside | {name: params.get(name) for name in ("pos_label",)})
    refuse_beside_sample({"from_logits": params.get("from_logits") or None})
    asked = sample.asked(params.get("notion", "auto"))
    given = asked.arguments
    if asked.source.asked != "auto" and "notion" in inspect.signature(metric).parameters:
        params = {**params, "notion": asked.notion}
    if given.pop("from_logits"):
        params["from_logits"] = True
    return *given.values(), params


def _read_for_metric(metric, y_true, y_proba, sample_weight, groups, labels, params):
    """Labels, predictions, weights and groups, without samples of weight 0; the metric's options.

    The weights are None for a metric that has none.
    """
    rows = {"y_proba": y_proba, "y_true": y_true, "sample_weight": sample_weight}
    refuse_another_order({**rows, "groups": groups})
    columns = class_names(y_proba)
    logits = bool(params.get("from_logits", False))
    proba, checked_logits = read_proba(y_proba, params.get("notion"), logits, "y_proba")
    proba = proba if checked_logits is None else checked_logits
    y = plain_array(y_true, "y_true")
    with naming("y_true"):
        check_consistent_length(y, proba)
    if proba.ndim == 2 and is_table(y):
        labels = classes_of_shares(y_true, proba, labels, columns, "y_true", "y_proba")
    elif proba.ndim == 2:  # a resample may lack a class
        labels = check_labels(y, proba, labels, columns=columns)[1]
    refuse_unused(metric, params)
    takes = dict(list(inspect.signature(metric).parameters.items())[2:])
    any_option = any(option.kind is option.VAR_KEYWORD for option in takes.values())
    if labels is not None and ("labels" in takes or any_option):
        params = {**params, "labels": labels}
    weight = check_weight(sample_weight, len(proba))
    together = read_groups(groups, weight, _FEW_GROUPS)
    if not together.independent:
        together = together.take(weight > 0)
        if "groups" in takes:
            params = {**params, "groups": together}
    y, proba, weight = y[weight > 0], proba[weight > 0], weight[weight > 0]
    if len(proba) < 2:
        raise ValueError("A bootstrap needs at least 2 samples of positive weight.")
    weighted = sample_weight is not None or "sample_weight" in takes
    return y, proba, weight if weighted else None, together, params


def _warn_if_few_events(y, proba, weight, params):
    names = ("labels", "pos_label", "from_logits")
    options = {name: params[name] for name in names if name in params}
    with suppress(ValueError):  # a metric of your own may take other labels, and others raise
        _warn_if_few(read_sample(y, proba, sample_weight=weight, **options))


def _warn_if_few(sample: Sample) -> None:
    """Warn where no resample of a sample knows what may happen."""
    remedy = f"Use more samples, or {worded('monte_carlo_test', 'the command test')}."
    warn_if_few_events(surprises(sample), _FEWEST_EVENTS, "the interval", remedy)


def _on_rows(metric, y, proba, weight, params) -> Callable:
    """Return the metric as a function of how often each row counts."""
    if weight is not None:
        # Counts as weights: copies of a row form no pairs in U-statistics.
        return lambda count: metric(y, proba, sample_weight=count * weight, **params)

    def evaluate(count):
        rows = np.repeat(np.arange(len(count)), count)
        options = (
            {**params, "groups": params["groups"].take(rows)} if "groups" in params else params
        )
        return metric(y[rows], proba[rows], **options)

    return evaluate


def _resample(evaluate, draw, n_samples, size, seed):
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(size):
        count = draw(rng)
        try:
            values.append(evaluate(count))
        except ValueError as error:
            raise ValueError(
                f"The metric is not defined on a resample of {n_samples} samples, "
                f"{np.count_nonzero(count)} of them distinct: {error}"
            ) from error
    return np.array(values)


def _multinomial(rng: np.random.Generator, n: int, shares: np.ndarray) -> np.ndarray:
    """The same of cells that hold these shares of the rows."""
    return rng.multinomial(n, shares)


def resample_counts(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return how often each of n rows is among n draws with replacement."""
    return np.bincount(rng.integers(n, size=n), minlength=n)
