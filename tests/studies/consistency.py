"""Consistency resampling, which redraws the predictions too and does not hold its level.

Bröcker & Smith, Increasing the reliability of reliability diagrams, Weather and Forecasting 2007;
Vaicenavicius et al., Evaluating model calibration in classification, AISTATS 2019. That it rejects
calibrated models is Figure 2 of Widmann, Lindsten & Zachariah, Calibration tests in multi-class
classification, NeurIPS 2019, which ``errors_of_tests.py`` draws; ``skcal`` offers no such test.
"""

import numpy as np
from sklearn.utils import check_random_state

from skcal._matrices import one_hot
from skcal.hypothesis_tests.monte_carlo import STATISTICS, Draws, from_draws, nonempty
from skcal.metrics.statistic import draw_codes, observed_codes, prepare
from skcal.sample import read_sample


def consistency_test(
    y_true,
    y_proba,
    statistic,
    *,
    notion="auto",
    labels=None,
    n_resamples=999,
    random_state=None,
    **params,
):
    """Compare a statistic with its values for resampled predictions and outcomes drawn from them.

    Parameters and result are those of :func:`skcal.hypothesis_tests.monte_carlo_test`.
    """
    sample = read_sample(y_true, y_proba, notion, labels=labels)
    metric, rng = STATISTICS.get(statistic, statistic), check_random_state(random_state)
    draws = []
    for problem in nonempty(sample):
        observed = prepare(metric, problem, params)(observed_codes(problem))[0]
        seeds = rng.randint(2**31 - 1, size=n_resamples)
        null = [_resampled(metric, problem, params, seed) for seed in seeds]
        draws.append(Draws(np.array([null]), np.array([observed]), 0.0))
    return from_draws(sample, draws, "consistency resampling, level not held")


def _resampled(metric, problem, params, seed):
    """The metric of resampled predictions, with outcomes drawn from them."""
    rows = np.random.default_rng(seed).integers(len(problem.weight), size=len(problem.weight))
    X = problem.features[rows]
    codes = draw_codes(X, [seed + 1])
    outcomes = codes[0][:, None] if X.shape[1] == 1 else one_hot(codes[0], X.shape[1])
    resampled = problem._replace(features=X, residuals=outcomes - X, weight=problem.weight[rows])
    return float(prepare(metric, resampled, params)(codes)[0])
