"""A statistic is prepared once for a problem and evaluated many times, under other outcomes.

A metric declares by :func:`prepared_by` what it computes beforehand, so that tests redraw outcomes
and a bootstrap redraws counts at little cost. A metric that declares nothing is evaluated by its
definition, outcome by outcome.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from numbers import Real
from typing import Any, NamedTuple, TypeVar

import numpy as np

from skcal._groups import Groups
from skcal._labels import Outcomes
from skcal._matrices import one_hot
from skcal._sklearn_compat import refuse_unused, validate_parameter_constraints
from skcal.notions import Problem
from skcal.sample import read_sample

_Metric = TypeVar("_Metric", bound=Callable)
_FINE_CELLS, _ROWS_OF_A_CELL = 256, 2000  # steps from 0 to 1 of redrawn counts; of more rows more
_NEARLY_LABELS, _LEAST_RATIO = 0.95, 1e-9  # variances of shares, as parts of those of labels


@dataclass(frozen=True)
class Preparation:
    """The declaration of a metric; see :func:`prepared_by`."""

    outcomes: Callable | None = None
    counts: Callable | None = None
    at_least: int = 1
    options: dict = field(default_factory=dict)


def prepared_by(
    outcomes: Callable | None = None,
    *,
    counts: Callable | None = None,
    at_least: int = 1,
    **options: Any,
) -> Callable[[_Metric], _Metric]:
    """Declare how a metric is prepared, as a decorator.

    Parameters
    ----------
    outcomes : callable, default=None
        ``outcomes(problem, **params)`` returns the metric of a :class:`~skcal.notions.Problem` as a
        function of outcomes: a block of k draws becomes k values. A block holds integers
        (k, n_rows), 0/1 for scalar problems and columns for vectors, or, where groups of samples
        change the signs of their residuals, any numbers: (k, n_rows) for scalar problems and
        (k, n_rows, m) for vectors; :func:`outcome_rows` makes one of the other. It may have the
        attributes ``chunk``, how many draws to hand over at a time, and ``slack``, differences that
        rounding makes. None in place of a function says that these options have no such form.
    counts : callable, default=None
        ``counts(sample, **params)`` returns the metric of a ``skcal.sample.Sample`` as
        a function of how often each row counts, or None.
    at_least : int, default=1
        The statistic of a problem with fewer samples is 0.
    **options
        Options that a test sets unless told otherwise.

    Returns
    -------
    declare : callable
        Takes the metric and returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.metrics.statistic import prepared_by
    >>> def prepare_mean_gap(problem):
    ...     p = problem.features[:, 0]
    ...     return lambda outcomes: np.abs((outcomes - p).mean(axis=1))
    >>> @prepared_by(prepare_mean_gap)
    ... def mean_gap(outcomes, features):
    ...     return abs(np.mean(outcomes - features))
    >>> mean_gap.preparation.outcomes is prepare_mean_gap
    True
    """

    def declare(metric: Any) -> Any:
        metric.preparation = Preparation(outcomes, counts, at_least, options)
        return metric

    return declare


def prepare(metric: Callable, problem: Problem, params: dict) -> Callable:
    """Return a metric of a problem as a function of blocks of outcomes, by its fastest form.

    Parameters
    ----------
    metric : callable
        A metric that takes ``notion`` and declares how it is prepared, or a statistic
        ``metric(outcomes, features, **params)``.
    problem : Problem
        Features, outcomes and weights of the samples.
    params : dict
        Options of the metric.

    Returns
    -------
    statistic : callable
        Takes a block of k draws of the outcomes, as in :func:`prepared_by`, and returns k values.

    Raises
    ------
    TypeError, ValueError
        If the metric does not take the options.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.metrics import expected_calibration_error
    >>> from skcal.metrics.statistic import prepare
    >>> from skcal.notions import make_problems
    >>> [problem] = make_problems(np.array([0.25, 0.75]), np.array([0, 1]), "binary")
    >>> prepare(expected_calibration_error, problem, {"n_bins": 1})(np.array([[0, 1], [1, 1]]))
    array([0. , 0.5])
    """
    declared = getattr(metric, "preparation", Preparation())
    is_metric = hasattr(metric, "preparation") and "notion" in _parameters(metric)
    _check_params(metric, params)
    statistic = None if declared.outcomes is None else declared.outcomes(problem, **params)
    if statistic is not None:
        return statistic
    if len(problem.weight) < declared.at_least:
        return _nothing
    m = problem.features.shape[1]
    if is_metric:
        params = {"notion": "binary" if m == 1 else "canonical", **declared.options, **params}
        params["labels"] = [0, 1] if m == 1 else np.arange(m)
        params["sample_weight"] = problem.weight
    elif (problem.weight != 1).any():
        params = {**params, "sample_weight": problem.weight}
    return MetricStatistic(problem, metric, params, is_metric)


class CountedCells(NamedTuple):
    """A metric of how often each row counts, or each of some cells of rows that are nearly alike.

    Attributes
    ----------
    of_rows : callable
    sizes : ndarray of int of shape (n_cells,)
    of_cells : callable
    """

    of_rows: Callable
    sizes: np.ndarray
    of_cells: Callable

    def __call__(self, counts: np.ndarray) -> float:
        """Evaluate the metric on counts of the rows."""
        return self.of_rows(counts)


def prepare_counts(metric: Any, y, proba, weight, params: dict) -> Callable | None:
    """Return a metric as a function of how often each row counts, if it declares such a form."""
    of_sample, question = form_of_counts(metric, params)
    return of_sample and of_sample(read_sample(y, proba, **question | {"sample_weight": weight}))


def form_of_counts(metric: Any, params: dict) -> tuple[Callable | None, dict[str, Any]]:
    """The function of samples by which a metric declares that form, and how they are read."""
    if isinstance(metric, partial) and not metric.args:
        metric, params = metric.func, {**metric.keywords, **params}
    counts = getattr(metric, "preparation", Preparation()).counts
    if counts is None:
        return None, {}
    defaults = {
        name: parameter.default
        for name, parameter in _parameters(metric).items()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is not parameter.empty
    }
    options = {**defaults, **params}
    who = ("notion", "sample_weight", "groups", "labels", "pos_label", "from_logits")
    question = {name: options.pop(name, None) for name in who}
    return partial(counts, **options), question


def _parameters(metric):
    return inspect.signature(metric).parameters


def _check_params(metric, params):
    name = getattr(metric, "__name__", "statistic")
    try:
        inspect.signature(metric).bind_partial(None, None, **params)
    except TypeError as error:
        raise TypeError(
            f"statistic={name}(outcomes, features, **statistic_params): {error}."
        ) from None
    except ValueError:  # some compiled functions have no signature
        return
    constraints = getattr(metric, "_skl_parameter_constraints", {})
    validate_parameter_constraints(constraints, params, name)
    refuse_unused(metric, params)


def _nothing(outcomes):
    """The statistic of a problem with too few samples."""
    return np.zeros(len(outcomes))


def outcome_rows(draw: np.ndarray, m: int) -> np.ndarray:
    """One draw of outcomes of a problem with ``m`` columns as numbers (n_rows, m)."""
    if draw.ndim == 2:
        return draw
    return draw[:, None].astype(np.float64) if m == 1 else one_hot(draw, m)


def observed_draw(problem: Problem) -> np.ndarray:
    """Outcomes as a block of one draw: of labels columns, of shares of votes numbers."""
    if problem.of_shares or problem.counted is not None:
        return observed_outcomes(problem)
    return observed_codes(problem)


def observed_outcomes(problem: Problem) -> np.ndarray:
    """Outcomes as a block of one draw of numbers, (1, n_rows) or (1, n_rows, m)."""
    outcomes = problem.outcomes.astype(np.float64)
    return (outcomes[:, 0] if outcomes.shape[1] == 1 else outcomes)[None]


def group_signs(seeds, groups: Groups) -> np.ndarray:
    """Whether each group keeps its residuals, booleans (k, n_groups); one draw a seed."""
    draws = [np.random.default_rng(seed).integers(2, size=groups.n_groups) for seed in seeds]
    return np.stack(draws).astype(bool)


def flip_groups(problem: Problem, signs: np.ndarray, seeds) -> np.ndarray:
    """Outcomes x + ε_g δ, a block of numbers: groups keep all of their residuals or flip them.

    If calibrated, the residuals of a group have mean 0 given the features, whatever their law, and
    flipping them changes neither their covariances nor what is independent of what. Outcomes of
    samples that are alone are redrawn, since their law is known. So is that of predictions of 0 and
    1: their residuals are 0.

    Parameters
    ----------
    problem : Problem
        With groups.
    signs : ndarray of bool of shape (k, n_groups)
        Which groups keep their residuals, in each draw.
    seeds : sequence of int of length k
    """
    if problem.counted is not None:
        return _flip_means(problem, seeds)
    x = problem.features.astype(np.float64)
    residuals = np.where((x > 0) & (x < 1), problem.outcomes - x, 0.0)
    if x.shape[1] == 1:
        x, residuals = x[:, 0], residuals[:, 0]
    block = np.empty((len(signs), *x.shape))
    sign = np.empty(len(x))
    for draw, kept in zip(block, np.where(signs, 1.0, -1.0), strict=True):
        np.take(kept, problem.groups.codes, out=sign, mode="clip")
        np.multiply(sign if x.ndim == 1 else sign[:, None], residuals, out=draw)
        draw += x
    alone = np.flatnonzero(problem.groups.alone)
    if len(alone):
        for draw, codes in zip(block, draw_codes(problem.features[alone], seeds), strict=True):
            draw[alone] = codes if x.ndim == 1 else one_hot(codes, x.shape[1])
    return block


def observed_codes(problem: Problem) -> np.ndarray:
    """Outcomes as a block of one row: 0/1 for scalar problems, columns of the label else."""
    outcomes = problem.outcomes
    codes = outcomes[:, 0] if outcomes.shape[1] == 1 else outcomes.argmax(axis=1)
    return codes.astype(np.int64)[None]


def redraw(problem: Problem, seeds, group_seeds=None) -> np.ndarray:
    """Outcomes of calibrated predictions, of shares those of :func:`draw_shares`.

    Those of a group depend on each other as strongly as the observed ones, by the law of
    :class:`skcal._groups.Dependence`; ``group_seeds`` draw what they share.
    """
    if problem.counted is not None:
        return _draw_means(problem, seeds)
    if problem.groups.independent:
        return draw_codes(problem.features, seeds)
    if not problem.of_shares:
        uniform = problem.groups.uniform(seeds, group_seeds)
        return codes_of(uniform, problem.features)
    shares = draw_shares(problem, seeds, group_seeds)
    return shares[:, :, 0] if shares.shape[2] == 1 else shares


def _draw_means(problem: Problem, seeds) -> np.ndarray:
    """Mean outcomes (k, n_rows) of the calibrated samples that the rows stand for.

    Samples of unequal weights count as their effective number of equal ones; shares are drawn from
    the normal law, as unevenly as the observed ones.
    """
    x, n = np.clip(problem.features[:, 0].astype(np.float64), 0, 1), 1 / problem.counted.uneven
    draws = [np.random.default_rng(seed) for seed in seeds]
    if problem.of_shares:
        deviation = np.sqrt(ratio_of_shares(problem) * x * (1 - x) / n)
        return np.stack([x + deviation * rng.standard_normal(len(x)) for rng in draws])
    n = np.maximum(np.rint(n), 1).astype(np.int64)
    several = np.flatnonzero(n > 1)
    means = np.empty((len(draws), len(x)))
    for rng, mean in zip(draws, means, strict=True):  # single samples need no binomial law
        np.less(rng.random(len(x)), x, out=mean)
        if len(several):
            mean[several] = rng.binomial(n[several], x[several]) / n[several]
    return means


def _flip_means(problem: Problem, seeds) -> np.ndarray:
    """Mean outcomes (k, n_rows) if each sample of a row keeps its residual or flips it."""
    x, delta = problem.features[:, 0].astype(np.float64), problem.residuals[:, 0]
    deviation = np.sqrt(problem.counted.uneven * (delta**2 + problem.counted.scatter))
    deviation[(x == 0) | (x == 1)] = 0
    draws = [np.random.default_rng(seed).standard_normal(len(x)) for seed in seeds]
    return x + deviation * np.stack(draws)


def draw_shares(problem: Problem, seeds, group_seeds=None) -> np.ndarray:
    """Shares of calibrated predictions as uneven as the observed ones, (n_resamples, n_rows, m).

    Their law is not known. Those of Dirichlet with the mean x have the variance ρ x (1 - x), and ρ
    is that of :func:`ratio_of_shares`; labels are redrawn where a sample has one vote. Where
    samples of a group depend on each other, shares are x + √ρ (e - x) of a drawn label e instead.
    """
    X = problem.features.astype(np.float64)
    columns = np.hstack([X, 1 - X]) if X.shape[1] == 1 else X
    several, ratio = ~problem.groups.alone, ratio_of_shares(problem)
    strength = problem.groups.strength
    if strength > 0:
        codes = codes_of(problem.groups.uniform(seeds, group_seeds), columns)
    else:
        codes = draw_codes(columns, seeds)
    if ratio > _NEARLY_LABELS:
        several = np.zeros_like(several)
    shape = columns * (1 - ratio) / max(ratio, _LEAST_RATIO)
    block = np.empty((len(seeds), *X.shape))
    for draw, seed, labels in zip(block, seeds, codes, strict=True):
        draw[:] = one_hot(labels, columns.shape[1])[:, : X.shape[1]]
        if strength > 0:
            draw[several] = X[several] + np.sqrt(ratio) * (draw - X)[several]
            continue
        rng = np.random.default_rng([seed, 1])
        parts = rng.standard_gamma(shape[several])
        total = parts.sum(axis=1, keepdims=True)
        drawn = np.where(total > 0, parts / np.where(total > 0, total, 1), columns[several])
        draw[several] = drawn[:, : X.shape[1]]
    return block


def ratio_of_shares(problem: Problem) -> float:
    """How much shares of several votes vary beside labels, (Σ δ² + max δ²) / Σ x (1 - x)."""
    if problem.counted is not None:
        n, x = problem.counted.counts, problem.features[:, 0].astype(np.float64)
        squares = problem.residuals[:, 0] ** 2 + problem.counted.scatter
        chance, largest = n @ (x * (1 - x)), squares.max(initial=0.0)
        return float((n @ squares + largest) / chance) if chance > 0 else 1.0
    several = ~problem.groups.alone
    X = problem.features[several].astype(np.float64)
    chance = np.sort((X * (1 - X)).sum(axis=1)).sum()  # so that the order of rows does not matter
    squares = np.sort((problem.residuals[several] ** 2).sum(axis=1))
    # As if the largest had been seen once more: where few events are expected and fewer happened,
    # those alone would make the ratio too small.
    return float((squares.sum() + squares.max(initial=0.0)) / chance) if chance > 0 else 1.0


def draw_codes(X: np.ndarray, seeds) -> np.ndarray:
    """Outcomes of calibrated predictions, shape (n_resamples, n_rows); a resample per seed."""
    if X.shape[1] == 1:  # draw by draw, in the processor's cache
        codes = np.zeros((len(seeds), len(X)), dtype=np.int64)
        for draw, seed in zip(codes, seeds, strict=True):
            draw[:] = np.random.default_rng(seed).random(len(X)) < X[:, 0]
        return codes
    return codes_of(np.stack([np.random.default_rng(seed).random(len(X)) for seed in seeds]), X)


def draw_counts(x: np.ndarray, starts: np.ndarray, seeds) -> np.ndarray:
    """Numbers of events in cells of calibrated predictions, (n_resamples, n_cells).

    Their law is that of sums of :func:`draw_codes`, but few rows are visited. In a narrow cell of s
    rows whose predictions are lo to hi, Binomial(s, lo) events happen wherever they are. Some of
    the rows without one are drawn, each with the probability (hi - lo) / (1 - lo), and a drawn row
    has an event with the probability (x - lo) / (hi - lo). Cells above 1/2 count misses instead.

    Parameters
    ----------
    x : ndarray of shape (n_rows,)
        Predictions in increasing order.
    starts : ndarray of shape (n_cells,)
        The first row of each cell.
    seeds : sequence of int
        One for each resample.
    """
    n = len(x)
    edges = np.linspace(0, 1, max(_FINE_CELLS, n // _ROWS_OF_A_CELL), endpoint=False)
    fine = np.union1d(starts, np.searchsorted(x, edges))
    fine = fine[fine < n]
    sizes, low, high = np.diff(np.append(fine, n)), x[fine], x[np.append(fine[1:], n) - 1]
    misses, width = low + high > 1, high - low
    base = np.where(misses, 1 - high, low)
    further, into = width / (1 - base), np.searchsorted(fine, starts)
    counts = np.empty((len(seeds), len(fine)), dtype=np.int64)
    for events, seed in zip(counts, seeds, strict=True):
        rng = np.random.default_rng(seed)
        events[:] = rng.binomial(sizes, base)
        cells = np.repeat(np.arange(len(fine)), rng.binomial(sizes - events, further))
        rows = _distinct_rows(rng, cells, fine, sizes)
        excess = np.where(misses[cells], high[cells] - x[rows], x[rows] - low[cells])
        events += np.bincount(cells[rng.random(len(rows)) * width[cells] < excess], None, len(fine))
    return np.add.reduceat(np.where(misses, sizes - counts, counts), into, axis=1)


def _distinct_rows(rng, cells, starts, sizes) -> np.ndarray:
    """Draw a row of each of some cells, named as often as rows are wanted, without repetition."""
    rows = starts[cells] + (rng.random(len(cells)) * sizes[cells]).astype(np.intp)
    while True:
        order = np.argsort(rows, kind="stable")
        again = order[1:][np.diff(rows[order]) == 0]
        if not len(again):
            return rows
        of = cells[again]
        rows[again] = starts[of] + (rng.random(len(of)) * sizes[of]).astype(np.intp)


def codes_of(uniform: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The outcomes in whose parts of [0, 1] uniform numbers (k, n_rows) lie."""
    if X.shape[1] == 1:
        return (uniform < X[:, 0]).astype(np.int64)
    codes = np.zeros(uniform.shape, dtype=np.int64)
    cdf = np.cumsum(X, axis=1, dtype=np.float64)
    cdf /= cdf[:, -1:]
    for k in range(X.shape[1] - 1):
        codes += uniform >= cdf[:, k]
    return codes


class MetricStatistic:
    """Any metric ``metric(outcomes, features, **params) → float`` of a problem, one by one."""

    def __init__(self, problem, metric: Callable, params: dict, reads_samples: bool = False):
        self.metric, self.params, self.reads_samples = metric, params, reads_samples
        X = problem.features
        self.features = X[:, 0] if X.shape[1] == 1 else X

    def __call__(self, codes):
        """Return the metric of each draw of outcomes."""
        return np.array([self._value(row) for row in codes])

    def _value(self, codes):
        if self.reads_samples and codes.dtype.kind == "f":
            codes = codes.view(Outcomes)
        value = self.metric(codes, self.features, **self.params)
        if not isinstance(value, Real) or not isfinite(value):
            name = getattr(self.metric, "__name__", repr(self.metric))
            raise ValueError(
                f"statistic {name} returned {value!r}. It must return a finite number for every "
                "outcome of the predictions."
            )
        return float(value)
