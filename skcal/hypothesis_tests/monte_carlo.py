"""Tests whose level is exact at every sample size: outcomes redrawn from the predictions.

Given its features the outcomes of a calibrated problem are independent draws from the predictions,
so a statistic of features and outcomes alone has a null distribution that can be simulated at every
sample size. Observed and resampled outcomes go through the same code, since rounding breaks ties.

If groups of samples depend on each other, only the mean of the residuals is known under H0: 0 given
the features. So all residuals of a group keep or change their signs together [1]_. Flips know too
little where few groups have events: where none has one all residuals are negative. So the p-value
is the larger of theirs and that of outcomes that are redrawn with the dependence that the samples
show (:class:`skcal._groups.Dependence`); shares of votes, whose law is not known, as shares that
vary as much as those that are seen.

.. [1] Hagemann, Placebo inference on treatment effects when the number of clusters is small,
   Journal of Econometrics 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from skcal._running import over_jobs
from skcal._sklearn_compat import StrOptions, validate_params
from skcal.hypothesis_tests.result import (
    RESAMPLING,
    CalibrationTestResult,
    adjust_pvalues,
    resampled_pvalue,
    warn_if_few,
)
from skcal.metrics import binned, cumulative, kernel, mean_embedding, smooth
from skcal.metrics.statistic import (
    MetricStatistic,
    draw_counts,
    flip_groups,
    group_signs,
    observed_draw,
    observed_outcomes,
    prepare,
    redraw,
)
from skcal.notions import Problem
from skcal.sample import Sample, read_sample

#: Metrics that a test can take by name.
STATISTICS = {
    name: metric
    for module in (binned, cumulative, kernel, mean_embedding, smooth)
    for name, metric in vars(module).items()
    if hasattr(metric, "preparation")
}
# Numbers of events are drawn from so many rows on, and so many for a cell; draws at a time
_MANY_ROWS, _ROWS_A_CELL, _COUNTS = 50_000, 50, 128
_TIE = 1e-9  # relative differences of a statistic of flipped residuals


@validate_params(
    {"statistic": [StrOptions(set(STATISTICS)), callable], **RESAMPLING},
    prefer_skip_nested_validation=False,
)
def monte_carlo_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    statistic: str | Callable = "expected_calibration_error",
    *,
    notion: str | Callable = "auto",
    n_resamples: int = 999,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
    **statistic_params: Any,
) -> CalibrationTestResult:
    """Test calibration by redrawing the outcomes from the predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    statistic : str or callable, default="expected_calibration_error"
        Large where miscalibrated: a metric of :mod:`skcal.metrics` by name, or a callable
        ``statistic(outcomes, features, **statistic_params) → float``. It gets only what the kind of
        calibration is about. For scalar notions these are outcomes 0/1 and probabilities (n,), for
        the others columns and rows (n, m) of the simplex. If ``groups`` are given, outcomes are
        other numbers as well, of the shape of the features: p + δ or p - δ for a residual δ.
    notion : str or callable, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more: errors of the two
        classes that cancel show in "binary" only. "classwise" tests each class and adjusts by
        Holm's method, since the outcomes of several classes have no joint law under it. "top-label"
        sums the classes' statistics, each times its share of the samples. See
        :doc:`/guide/multi_label` for "multi-label" and "precision-at-K".
    n_resamples : int, default=999
        The p-value is (1 + #{T_b ≥ T}) / (1 + n_resamples), so never 0.
    random_state : int, RandomState instance or None, default=0
        The seed of the draws.
    n_jobs : int, default=None
        Workers; results do not depend on it.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the statistic, kept fixed; they must not depend on the labels. A callable gets
        them as ``sample_weight``.
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
    **statistic_params
        Options of the statistic, such as ``n_bins``, ``norm`` or ``bandwidth``.

    Returns
    -------
    result : CalibrationTestResult
        ``estimate`` is the statistic itself: of a biased measure such as ECE compare it with
        ``null_distribution.mean()``, not with 0. One-sided: let a signed statistic return its
        absolute value.

    Raises
    ------
    ValueError
        If the input is not valid, the statistic returns NaN or not a number, or there are fewer
        than 6 groups.

    Warns
    -----
    UserWarning
        If there are fewer than 10 groups, or no p-value can reach 5 %.

    See Also
    --------
    skce_test : by the squared kernel calibration error of several widths.

    Notes
    -----
    P(p-value ≤ α) ≤ α at every sample size, for any statistic that is a fixed function of its
    arguments, if the labels of different samples are independent given the predictions. If
    ``groups`` are given, labels of different groups must be independent. The level is then
    asymptotic in their number, and the p-value at least 2^(1 - n_groups), unless some groups have
    one sample. Binned errors cost O(n) a resample, the kernel statistic O(n log n) for scalar
    notions and O(n² C) for vectors. 999 resamples of a binned error take some 10 s for 10,000
    samples of each of 100 classes. For a million samples of one probability they take 0.5 s, since
    the numbers of events in the bins are drawn by their law, and with weights some 10 s.
    :func:`kolmogorov_smirnov_test` and :func:`spiegelhalter_test` take milliseconds.

    References
    ----------
    .. [1] Barnard, discussion of Bartlett, J. R. Statist. Soc. B 1963.
    .. [2] Vaicenavicius et al., Evaluating model calibration in classification, AISTATS 2019.

    Examples
    --------
    >>> from skcal.datasets import make_dirichlet
    >>> from skcal.hypothesis_tests import monte_carlo_test
    >>> data = make_dirichlet(500, n_classes=3, model="M2", random_state=0)
    >>> monte_carlo_test(data.labels, data.proba, n_bins=10, random_state=0).pvalue
    0.001
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, groups=groups)
    rng = check_random_state(random_state)
    return monte_carlo_of(sample, statistic, statistic_params, n_resamples, rng, n_jobs)


def monte_carlo_of(
    sample: Sample, statistic: str | Callable, params: dict, n_resamples, rng, n_jobs=None
) -> CalibrationTestResult:
    """The test of a sample; ``params`` are options of the statistic."""
    sample = sample.effective  # by which differences that rounding makes are measured
    problems = nonempty(sample)
    metric: Any = statistic
    name = getattr(statistic, "__name__", "statistic")
    if isinstance(statistic, str):
        metric, name = STATISTICS[statistic], statistic
    statistics = [prepare(metric, problem, params) for problem in problems]
    draws = draw_nulls(statistics, problems, n_resamples, rng, n_jobs)
    return from_draws(sample, draws, f"Monte Carlo ({name})")


def nonempty(sample: Sample) -> list[Problem]:
    """Problems that hold samples."""
    return [problem for problem in sample.problems() if len(problem.weight)]


class Draws(NamedTuple):
    """A statistic of a problem, observed and under H0.

    Attributes
    ----------
    nulls : ndarray of shape (n_laws, n_resamples) or (n_laws, n_resamples, n_statistics)
        Of redrawn outcomes; of groups also of flips, the first row.
    observed : ndarray of shape (n_laws,) or (n_laws, n_statistics)
        The same number but for rounding, by the code of each law.
    slack : float or ndarray of shape (n_statistics,)
        Differences that rounding makes.
    """

    nulls: np.ndarray
    observed: np.ndarray
    slack: Any

    @property
    def snapped(self) -> np.ndarray:
        """The nulls, set to the observed value where only rounding makes them differ."""
        observed = self.observed[:, None]
        return np.where(np.abs(self.nulls - observed) <= self.slack, observed, self.nulls)

    @property
    def pvalue(self) -> float:
        """The largest p-value of the laws."""
        return float(resampled_pvalue(self.observed, self.snapped).max())

    @property
    def null(self) -> np.ndarray:
        """The distribution under the law of the largest p-value, (n_resamples,)."""
        return self.snapped[resampled_pvalue(self.observed, self.snapped).argmax()]


def level_of(sample: Sample) -> str:
    """Say what is known of the level of a test that redraws outcomes."""
    if sample.groups.independent:
        return "exact level"
    return f"signs of {sample.groups.n_groups:,} groups flipped, asymptotic level"


def from_draws(sample: Sample, draws: list[Draws], method: str) -> CalibrationTestResult:
    """Combine the draws of the problems with samples."""
    name, method = str(sample.notion), f"{method}, {level_of(sample)}"
    warn_if_few(
        draws[0].nulls.shape[1], 1 if sample.notion.joint_law else len(draws), sample.groups
    )
    if not sample.notion.joint_law:
        observed = np.array([draw.observed[-1] for draw in draws])
        pvalues = adjust_pvalues([draw.pvalue for draw in draws])
        return CalibrationTestResult(
            statistic=float(observed.sum()),
            pvalue=float(pvalues.min()),
            estimate=float(observed.sum()),
            method=f"{method}, Holm over {len(draws)} classes",
            notion=name,
            class_statistics=observed,
            class_pvalues=pvalues,
            null_distribution=np.stack([draw.null for draw in draws]),
        )
    shares = np.array([problem.share for problem in nonempty(sample)])
    # One path for the observed and the resampled sums.
    both = np.stack([np.column_stack([draw.nulls, draw.observed]) for draw in draws], axis=-1)
    totals = np.sum(both * shares, axis=-1)
    slack = float(np.dot(shares, [draw.slack for draw in draws]))
    total = Draws(totals[:, :-1], totals[:, -1], slack)
    return CalibrationTestResult(
        statistic=float(total.observed[-1]),
        pvalue=total.pvalue,
        estimate=float(total.observed[-1]),
        method=method,
        notion=name,
        null_distribution=total.null,
    )


def draw_nulls(statistics, problems, n_resamples, random_state, n_jobs=None) -> list[Draws]:
    """Draw the statistics of problems about the same samples under H0, one problem after the other.

    Parameters
    ----------
    statistics : list of callable
        Each maps a block of outcomes of its problem to as many values, or to rows of values of its
        ``shape``; ``statistic.chunk`` draws at a time. If ``statistic.counted()`` returns
        predictions in increasing order and the first row of each of some cells,
        ``statistic.of_sums`` maps numbers of events in these, which are drawn where rows are many.
    problems : list of Problem
    n_resamples : int
        The number of resamples.
    random_state : RandomState
        The seed of the draws.
    n_jobs : int or None
    """
    independent = problems[0].groups.independent and not problems[0].of_shares
    # All problems of a draw flip the same groups, and share what the samples of a group share.
    common = 0 if independent else random_state.randint(2**31 - 1, size=n_resamples)
    draws = []
    for statistic, problem in zip(statistics, problems, strict=True):
        slack = getattr(statistic, "slack", 0.0)
        chunk, values = getattr(statistic, "chunk", 16), partial(_statistic_values, statistic)
        laws: list[Any] = [(redraw, values, chunk, observed_draw(problem))]
        n, counted = len(problem.weight), getattr(statistic, "counted", None)
        cells = counted() if independent and n >= _MANY_ROWS and counted else None
        if cells and n >= _ROWS_A_CELL * len(cells[1]):
            laws[0] = (partial(_counts_drawn, *cells), statistic.of_sums, _COUNTS, laws[0][-1])
        if not independent:
            laws.append((flip, values, chunk, observed_outcomes(problem)))
        prefer = None if isinstance(statistic, MetricStatistic) else "threads"
        nulls, observed = [], []
        for law, of_draws, chunk, outcomes in laws:
            seeds = np.empty((n_resamples, 2), dtype=np.int64)
            seeds[:, 0], seeds[:, 1] = random_state.randint(2**31 - 1, size=n_resamples), common
            parts = (seeds[start : start + chunk] for start in range(0, n_resamples, chunk))
            calls = [(_draw, law, of_draws, problem, part) for part in parts]
            nulls.append(np.concatenate(over_jobs(calls, n_jobs, prefer)))
            observed.append(values(outcomes)[0])
        if not independent:
            slack = np.maximum(slack, _TIE * np.abs(observed[1]))
        draws.append(Draws(np.stack(nulls[::-1]), np.array(observed[::-1]), slack))
    return draws


def _draw(law, values, problem, seeds):
    return values(law(problem, *seeds.T))


def _counts_drawn(x, starts, problem, seeds, group_seeds):
    return draw_counts(x, starts, seeds)


def flip(problem: Problem, seeds, group_seeds) -> np.ndarray:
    """Outcomes (k, n, …) for which each group keeps or changes the signs of all its residuals."""
    if problem.groups.independent:  # shares of votes, each by itself
        return flip_groups(problem, np.empty((0, 0)), seeds)
    return flip_groups(problem, group_signs(group_seeds, problem.groups), seeds)


def _statistic_values(statistic, codes) -> np.ndarray:
    """Finite numbers for each row of outcomes, which a user's own preparation may miss."""
    values = np.asarray(statistic(codes))
    shape = len(codes), *getattr(statistic, "shape", ())
    if values.shape != shape or not np.isfinite(values).all():
        name = getattr(statistic, "__name__", type(statistic).__name__)
        returned = f"shape {values.shape}" if values.shape != shape else "NaN or infinity"
        raise ValueError(
            f"The prepared statistic {name} returned {returned} for {len(codes)} rows of outcomes. "
            f"It must return finite numbers of shape ({len(codes)},)."
        )
    return values
