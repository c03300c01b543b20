"""Tests by the largest cumulative residual, whose limit is Brownian motion, and limits of gaps."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.utils import check_random_state

from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal.hypothesis_tests.monte_carlo import STATISTICS, draw_nulls, nonempty
from skcal.hypothesis_tests.result import (
    CalibrationTestResult,
    of_each_problem,
    positive,
    warn_if_few,
    warn_of_limit,
)
from skcal.metrics.cumulative import largest_over_ranges, largest_over_thresholds
from skcal.metrics.gap_sums import GapSums
from skcal.metrics.statistic import prepare
from skcal.sample import Sample, read_sample

_SERIES_TERMS = np.arange(20)  # of the series of Brownian motion; each needs 5 where it is used


@validate_params(
    {
        "statistic": [StrOptions({"kolmogorov-smirnov", "kuiper"})],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }
)
def kolmogorov_smirnov_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    statistic: Literal["kolmogorov-smirnov", "kuiper"] = "kolmogorov-smirnov",
    n_resamples: int = 999,
    random_state: int | np.random.RandomState | None = 0,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> CalibrationTestResult:
    """Test calibration by the largest cumulative residual, with a p-value in closed form.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : {"auto", "binary", "confidence", "top-label", "classwise"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more. The last two test each
        class and adjust by Holm's method.
    statistic : {"kolmogorov-smirnov", "kuiper"}, default="kolmogorov-smirnov"
        "kolmogorov-smirnov": the largest absolute cumulative residual from the smallest prediction
        on. "kuiper": their range, which is the largest over all intervals of predictions, and the
        same whichever class is the positive one.
    n_resamples : int, default=999
        Flips of the residuals of ``groups``, which have no closed form; not used without them.
    random_state : int, RandomState instance or None, default=0
        The seed of the flips.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the residuals; they must not depend on the labels.
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
    result : CalibrationTestResult
        ``estimate`` is :func:`skcal.metrics.kolmogorov_smirnov_calibration_error`, NaN for several
        classes; ``statistic`` is it in units of the standard deviation of the whole sum under H0.
        Asymptotic.

    Raises
    ------
    ValueError
        If the input is not valid, the notion has vectors, or all predictions are certain and a
        label contradicts them.

    Warns
    -----
    UserWarning
        If the predictions expect fewer than 5 effective events, where no limit holds.

    See Also
    --------
    monte_carlo_test : the same statistics with exact level, at the cost of resamples.

    Notes
    -----
    Under H0, cumulative residuals in the order of the predictions are a martingale. Its limit is
    Brownian motion in the time Σ w² p (1 - p). With B on [0, 1] and Φ̄ the upper tail of the normal
    distribution,

    P(max abs(B) ≥ x) = 4 Σ_k (-1)^k Φ̄((2k + 1) x), k = 0, 1, …, and

    P(max B - min B ≥ x) = 8 Σ_k (-1)^(k-1) k Φ̄(k x), k = 1, 2, … [2]_;

    for small x the transformed series, which converge there. Tied predictions enter together, and
    the path among them does not count. So the test is conservative if ties are large: its level is
    1 % to 3 % for constant predictions. Measured levels of other predictions, 2.4 % to 5.3 %, are
    on the page "Levels and powers of single tests" of the documentation.

    O(n log n) time, where Monte Carlo takes n_resamples times that.

    References
    ----------
    .. [1] Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu, Metrics of calibration for probabilistic
       predictions, JMLR 2022.
    .. [2] Feller, The asymptotic distribution of the range of sums of independent random variables,
       Ann. Math. Statist. 1951.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.hypothesis_tests import kolmogorov_smirnov_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> kolmogorov_smirnov_test(rng.uniform(size=500) < p**2, p).pvalue < 1e-6
    True
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, groups=groups, scalar=True)
    if not sample.groups.independent:
        warn_if_few(n_resamples, len(nonempty(sample)), sample.groups)
    draws = n_resamples, check_random_state(random_state)
    return of_each_problem(sample, lambda problem: _largest_residual(problem, statistic, *draws))


def _largest_residual(problem, statistic, n_resamples, rng):
    kuiper = statistic == "kuiper"
    x, weight = problem.features[:, 0].astype(np.float64), problem.weight
    variance, square_weight = x * (1 - x), weight * weight
    deviation = np.sqrt(square_weight @ variance)
    estimate = largest_over_ranges(problem) if kuiper else largest_over_thresholds(problem)
    # Where all predictions are certain and right, the value is 0.
    value = estimate * weight.sum() / deviation if deviation > 0 else estimate
    pvalue, limit = 1.0, "Brownian motion"
    if not problem.groups.independent:
        name = "cutoff" if kuiper else "kolmogorov_smirnov"
        prepared = prepare(STATISTICS[f"{name}_calibration_error"], problem, {})
        [draw] = draw_nulls([prepared], [problem], n_resamples, rng)
        pvalue, limit = draw.pvalue, "signs of groups flipped"
    elif deviation > 0:
        fourth = variance * (1 - 3 * variance)
        warn_of_limit(square_weight * variance, square_weight**2 * fourth)
        pvalue = positive(range_tail(value) if kuiper else maximum_tail(value))
    elif estimate > 0:
        raise ValueError(
            "All predictions in y_proba are 0 or 1, so that the statistic has a variance of 0, and "
            "a label contradicts them. Use monte_carlo_test."
        )
    return CalibrationTestResult(
        statistic=float(value),
        pvalue=pvalue,
        estimate=estimate,
        method=f"{'Kuiper' if kuiper else 'Kolmogorov-Smirnov'}, {limit}, asymptotic level",
    )


def maximum_tail(x: float) -> float:
    """P(max abs(B) ≥ x) of Brownian motion on [0, 1]."""
    odd, signs = 2 * _SERIES_TERMS + 1, (-1.0) ** _SERIES_TERMS
    if x > 1:
        return float(4 * np.sum(signs * norm.sf(odd * x)))
    if x <= 0.05:  # 1 to the last bit
        return 1.0
    return float(1 - 4 / np.pi * np.sum(signs / odd * np.exp(-((odd * np.pi / x) ** 2) / 8)))


def range_tail(x: float) -> float:
    """P(max B - min B ≥ x) of Brownian motion on [0, 1]."""
    if x > 1.5:
        k = _SERIES_TERMS + 1
        return float(8 * np.sum((-1.0) ** _SERIES_TERMS * k * norm.sf(k * x)))
    if x <= 0.1:
        return 1.0
    squares = ((2 * _SERIES_TERMS + 1) * np.pi) ** 2
    return float(1 - 8 * np.sum((1 / x**2 + 1 / squares) * np.exp(-squares / (2 * x**2))))


_CELLS = 200  # at whose ends ranges begin and end
_SUM_ROUNDING = 1e-12


def largest_gap_limit(gaps: GapSums, min_share: float, z: float, tail: float) -> float:
    """The largest mean residual of a range plus its half width.

    The range of the largest gap is a fixed one, so that its own half width is enough. Ranges of
    whole cells that hold nearly ``min_share`` stand for all that do.

    Parameters
    ----------
    gaps : GapSums
    min_share : float in (0, 1]
    z, tail : float
        The quantile of half widths, and its probability.
    """
    cells = gaps.in_cells(_CELLS)
    of_rows = gaps.of_rows(cells)
    weighted = gaps.weight * gaps.residuals
    mass, path, seen, implied = (
        np.append(0.0, np.cumsum(np.bincount(of_rows, values)))
        for values in (gaps.weight, weighted, gaps.seen, gaps.implied)
    )
    first, end = np.triu_indices(len(mass), 1)
    held = mass[end] - mass[first]
    merged = len(gaps.starts) > _CELLS  # the ends of a range may lie within cells
    wide = held >= min_share - 2 * merged / _CELLS - _SUM_ROUNDING
    first, end, held = first[wide], end[wide], held[wide]
    variances = np.maximum(seen[end] - seen[first], implied[end] - implied[first])
    for covariances in gaps.covariances(cells):
        variances = np.maximum(variances, variances_of_ranges(covariances)[first, end])
    deviations = np.sqrt(np.maximum(variances, 0))
    unseen = np.log(1 / tail) * (gaps.squares / gaps.weight).max()
    limits = (np.abs(path[end] - path[first]) + z * deviations + unseen) / held
    return float(min(limits.max(), 1.0))


def variances_of_ranges(covariances: np.ndarray) -> np.ndarray:
    """Variances of the sums over the cells from i to before j, by the covariances of the cells."""
    path = np.pad(covariances.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    squares = np.diagonal(path)
    return squares[:, None] + squares - path - path.T
