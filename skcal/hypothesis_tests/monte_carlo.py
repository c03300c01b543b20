"""Tests whose level is exact at every sample size: outcomes redrawn from the predictions.

Given its features the outcomes of a calibrated problem are independent draws from the predictions,
so a statistic of features and outcomes alone has a null distribution that can be simulated at every
sample size. Observed and resampled outcomes go through the same code, since rounding breaks ties.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from skcal import metrics
from skcal._running import over_jobs
from skcal._sklearn_compat import Interval, StrOptions, validate_params
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
_CONSTRAINTS = {
    "statistic": [StrOptions(set(STATISTICS)), callable],
    "n_resamples": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}


@validate_params(_CONSTRAINTS, prefer_skip_nested_validation=False)
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
    skce_test : by the squared kernel calibration error of several widths.

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
            prepare(_as_callable(statistic), problem, statistic_params),
            problem,
            n_resamples,
            rng,
            n_jobs,
        )
        for problem in nonempty(sample)
    ]
    method = f"Monte Carlo ({_statistic_name(statistic)}), exact level"
    return from_draws(sample, draws, method)


def nonempty(sample: Sample) -> list[Problem]:
    """Problems that hold samples."""
    return [problem for problem in sample.problems() if len(problem.weight)]


def _statistic_name(statistic):
    return statistic if isinstance(statistic, str) else getattr(statistic, "__name__", "statistic")


def _as_callable(statistic):
    return STATISTICS[statistic] if isinstance(statistic, str) else statistic


def from_draws(sample: Sample, draws: list, method: str) -> CalibrationTestResult:
    """Combine (null distribution, observed statistic, slack) of the problems with samples."""
    name = str(sample.notion)
    if not sample.notion.joint_law:
        return _of_several_classes(draws, method, name)
    warn_if_few(len(draws[0][0]), 1)
    shares = np.array([problem.share for problem in nonempty(sample)])
    # One path for the observed and the resampled sums.
    both = np.stack([np.append(null, observed) for null, observed, _ in draws], axis=1)
    slack = float(np.dot(shares, [draw[2] for draw in draws]))
    totals = np.sum(both * shares, axis=1)
    observed, null = float(totals[-1]), _ties_snapped(totals[:-1], totals[-1], slack)
    return CalibrationTestResult(
        statistic=observed,
        pvalue=float(resampled_pvalue(observed, null)),
        estimate=observed,
        method=method,
        notion=name,
        null_distribution=null,
    )


def _ties_snapped(null, observed, slack):
    """Set resampled values to the observed one where only rounding makes them differ."""
    return np.where(np.abs(null - observed) <= slack, observed, null)


def _of_several_classes(draws, method, name):
    warn_if_few(len(draws[0][0]), len(draws))
    null = np.stack([draw[0] for draw in draws])
    observed = np.array([draw[1] for draw in draws])
    slack = np.array([draw[2] for draw in draws])
    null = _ties_snapped(null, observed[:, None], slack[:, None])
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


def null_distribution(statistic, problem, n_resamples, random_state, n_jobs=None):
    """Statistics of resampled outcomes (n_resamples,), the observed one, and its rounding.

    Parameters
    ----------
    statistic : callable
        Maps a block of outcomes (k, n_rows) to k values; ``statistic.chunk`` resamples at a time.
    problem : Problem
    n_resamples : int
    random_state : RandomState
    n_jobs : int or None
    """
    seeds = random_state.randint(2**31 - 1, size=n_resamples)
    chunk = getattr(statistic, "chunk", 16)
    parts = over_jobs(
        [
            (_draw_statistics, statistic, problem.features, seeds[start : start + chunk])
            for start in range(0, n_resamples, chunk)
        ],
        n_jobs,
    )
    [observed] = _statistic_values(statistic, observed_codes(problem))
    return np.concatenate(parts), float(observed), getattr(statistic, "slack", 0.0)


def _draw_statistics(statistic, X, seeds):
    return _statistic_values(statistic, draw_codes(X, seeds))


def _statistic_values(statistic, codes) -> np.ndarray:
    """One finite number for each row of outcomes, which a user's own preparation may miss."""
    values = np.asarray(statistic(codes))
    if values.shape != (len(codes),) or not np.isfinite(values).all():
        name = getattr(statistic, "__name__", type(statistic).__name__)
        returned = f"shape {values.shape}" if values.shape != (len(codes),) else "NaN or infinity"
        raise ValueError(
            f"The prepared statistic {name} returned {returned} for {len(codes)} rows of outcomes. "
            f"It must return finite numbers of shape ({len(codes)},)."
        )
    return values
