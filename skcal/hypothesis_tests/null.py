"""The distribution of a prepared statistic under H0 "calibrated".

Given its features the outcomes of a calibrated problem are independent draws from the predictions,
so a statistic of features and outcomes alone has a null distribution that can be simulated at every
sample size. Observed and resampled outcomes go through the same code, since rounding breaks ties.
"""

from __future__ import annotations

import numpy as np

from skcal._running import over_jobs
from skcal.metrics.statistic import draw_codes, observed_codes


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
    observed = float(statistic(observed_codes(problem))[0])
    return np.concatenate(parts), observed, getattr(statistic, "slack", 0.0)


def _draw_statistics(statistic, X, seeds):
    return statistic(draw_codes(X, seeds))
