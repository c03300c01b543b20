"""Tests whose level is exact at every sample size: outcomes redrawn from the predictions."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from skcal import metrics
from skcal._matrices import one_hot
from skcal._running import over_jobs
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal.hypothesis_tests.null import null_distribution
from skcal.hypothesis_tests.result import (
    CalibrationTestResult,
    adjust_pvalues,
    resampled_pvalue,
    warn_if_few,
)
from skcal.metrics.statistic import draw_codes, observed_codes, prepare
from skcal.notions import Problem
from skcal.sample import Sample, read_sample

#: Metrics that a test can take by name.
STATISTICS = {
    name: getattr(metrics, name)
    for name in metrics.__all__
    if hasattr(getattr(metrics, name), "preparation")
}
_COMMON = {
    "statistic": [StrOptions(set(STATISTICS)), callable],
    "n_resamples": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}


@validate_params(_COMMON, prefer_skip_nested_validation=False)
def monte_carlo_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    statistic: str | Callable = "expected_calibration_error",
    *,
    notion: str | Callable = "auto",
    n_resamples: int = 999,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    **statistic_params: Any,
) -> CalibrationTestResult:
    """Test calibration by redrawing the outcomes from the predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    statistic : str or callable, default="expected_calibration_error"
        Large where miscalibrated: a metric of :mod:`skcal.metrics` by name, or a callable
        ``statistic(outcomes, features, **statistic_params) → float``. It sees what the notion is
        about and no more: for scalar notions outcomes 0/1 and probabilities (n,), for the others
        columns and rows (n, m) of the simplex.
    notion : str or callable, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more:
        errors of the two classes that cancel show in "binary" only. "classwise" tests each class
        and adjusts by Holm's method, since the outcomes of several classes have no joint law under
        it; "top-label" sums the classes' statistics, each times its share of the samples.
    n_resamples : int, default=999
        The p-value is (1 + #{T_b ≥ T}) / (1 + n_resamples), so never 0.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
        Workers; results do not depend on it.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the statistic, kept fixed; they must not depend on the labels. A callable gets
        them as ``sample_weight``.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
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
        If the input is not valid, or the statistic returns NaN or not a number.

    See Also
    --------
    consistency_test : also resamples predictions; too many false alarms.

    Notes
    -----
    P(p-value ≤ α) ≤ α at every sample size, for any statistic that is a fixed function of its
    arguments, if the labels of different samples are independent given the predictions. Binned
    errors cost O(n) a resample, the kernel statistic O(n log n) for scalar notions and O(n² C) for
    vectors.

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
    sample = read_sample(y_true, y_proba, notion, sample_weight, labels, pos_label)
    rng = check_random_state(random_state)
    draws = [
        null_distribution(
            prepare(_function(statistic), problem, statistic_params),
            problem,
            n_resamples,
            rng,
            n_jobs,
        )
        for problem in nonempty(sample)
    ]
    method = f"Monte Carlo ({_name(statistic)}), exact level"
    return from_draws(sample, draws, method)


def nonempty(sample: Sample) -> list[Problem]:
    """Problems that hold samples."""
    return [problem for problem in sample.problems() if len(problem.weight)]


def _name(statistic):
    return statistic if isinstance(statistic, str) else getattr(statistic, "__name__", "statistic")


def _function(statistic):
    return STATISTICS[statistic] if isinstance(statistic, str) else statistic


def from_draws(sample: Sample, draws: list, method: str) -> CalibrationTestResult:
    """Combine (null distribution, observed statistic, slack) of the problems with samples."""
    name = str(sample.notion)
    if not sample.notion.joint_law:
        return _by_class(draws, method, name)
    warn_if_few(len(draws[0][0]), 1)
    shares = np.array([problem.share for problem in nonempty(sample)])
    # One path for the observed and the resampled sums.
    both = np.stack([np.append(null, observed) for null, observed, _ in draws], axis=1)
    slack = float(np.dot(shares, [draw[2] for draw in draws]))
    totals = np.sum(both * shares, axis=1)
    observed, null = float(totals[-1]), _snap(totals[:-1], totals[-1], slack)
    return CalibrationTestResult(
        statistic=observed,
        pvalue=float(resampled_pvalue(observed, null)),
        estimate=observed,
        method=method,
        notion=name,
        null_distribution=null,
    )


def _snap(null, observed, slack):
    """Resampled values that rounding alone tells from the observed one are ties."""
    return np.where(np.abs(null - observed) <= slack, observed, null)


def _by_class(draws, method, name):
    warn_if_few(len(draws[0][0]), len(draws))
    null = np.stack([draw[0] for draw in draws])
    observed = np.array([draw[1] for draw in draws])
    slack = np.array([draw[2] for draw in draws])
    null = _snap(null, observed[:, None], slack[:, None])
    pvalues = adjust_pvalues(resampled_pvalue(observed, null))
    return CalibrationTestResult(
        statistic=float(observed.sum()),
        pvalue=float(pvalues.min()),
        estimate=float(observed.sum()),
        method=f"{method}, Holm over {len(draws)} classes",
        notion=name,
        class_statistics=observed,
        class_pvalues=pvalues,
        null_distribution=null,
    )


@validate_params(_COMMON, prefer_skip_nested_validation=False)
def consistency_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    statistic: str | Callable = "expected_calibration_error",
    *,
    notion: str | Callable = "auto",
    n_resamples: int = 999,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    **statistic_params: Any,
) -> CalibrationTestResult:
    """Consistency resampling: predictions are resampled too. Does not hold its level.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    statistic : str or callable, default="expected_calibration_error"
    notion : str or callable, default="auto"
        The notion, as in :func:`monte_carlo_test`.
    n_resamples : int, default=999
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    **statistic_params
        Options of the statistic.

    Returns
    -------
    result : CalibrationTestResult

    Raises
    ------
    ValueError
        If the input is not valid, or the statistic returns NaN or not a number.

    See Also
    --------
    monte_carlo_test : the same with fixed predictions, whose level is exact.

    Notes
    -----
    Kept for comparison with the literature.

    References
    ----------
    .. [1] Bröcker & Smith, Increasing the reliability of reliability diagrams, Weather and
       Forecasting 2007.
    .. [2] Widmann, Lindsten & Zachariah, Calibration tests in multi-class classification,
       NeurIPS 2019, Fig. 2.

    Examples
    --------
    >>> from skcal.datasets import make_dirichlet
    >>> from skcal.hypothesis_tests import consistency_test
    >>> data = make_dirichlet(500, n_classes=3, model="M3", random_state=0)
    >>> consistency_test(data.labels, data.proba, n_resamples=99, random_state=0).pvalue
    0.01
    """
    if "sample_weight" in statistic_params:
        raise ValueError("consistency_test takes no sample_weight. Use monte_carlo_test.")
    sample = read_sample(y_true, y_proba, notion=notion, labels=labels, pos_label=pos_label)
    rng = check_random_state(random_state)

    draws = []
    for problem in nonempty(sample):
        observed = prepare(_function(statistic), problem, statistic_params)(observed_codes(problem))
        seeds = rng.randint(2**31 - 1, size=n_resamples)
        calls = [(_resampled, problem, statistic, statistic_params, seed) for seed in seeds]
        null = over_jobs(calls, n_jobs)
        draws.append((np.array(null), float(observed[0]), 0.0))
    method = f"consistency resampling ({_name(statistic)}), level not held"
    return from_draws(sample, draws, method)


def _resampled(problem, statistic, params, seed):
    """The statistic of resampled predictions with outcomes drawn from them."""
    rows = np.random.default_rng(seed).integers(len(problem.weight), size=len(problem.weight))
    X = problem.features[rows]
    codes = draw_codes(X, [seed + 1])
    outcomes = codes[0][:, None] if X.shape[1] == 1 else one_hot(codes[0], X.shape[1])
    drawn = problem._replace(features=X, residuals=outcomes - X, weight=problem.weight[rows])
    return float(prepare(_function(statistic), drawn, params)(codes)[0])
