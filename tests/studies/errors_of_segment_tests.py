"""Level and power of the test of all segments, beside p-values without adjustment and Bonferroni's.

``python tests/studies/errors_of_segment_tests.py 200`` prints the share of data sets in which a
segment is named at 5 %: with no bad segment (any is an error), and with one of 2, 5 or 10 % of the
samples whose probabilities are p² (then only segments that overlap it most count).
"""

import sys

import numpy as np
from scipy.stats import norm

from skcal.hypothesis_tests import segment_test

N_SAMPLES, N_RESAMPLES = 2000, 199


def draw(seed, n_features, share):
    """Labels, predictions, features and the samples that are off."""
    rng = np.random.default_rng([seed, n_features, int(100 * share)])
    features = rng.uniform(size=(N_SAMPLES, n_features))
    proba = rng.uniform(size=N_SAMPLES)
    side = np.sqrt(share)  # of a square in the first two features
    off = (features[:, 0] < side) & (features[:, 1] < side)
    truth = np.where(off, proba**2, proba)
    return rng.uniform(size=N_SAMPLES) < truth, proba, features


def named(seed, n_features, share):
    """Whether the worst segment is rejected: adjusted, unadjusted, by Bonferroni; of how many."""
    y, proba, features = draw(seed, n_features, share)
    result = segment_test(y, proba, features, n_resamples=N_RESAMPLES, random_state=seed)
    worst = 2 * norm.sf(result.statistic)
    n = len(result.segments)
    return result.pvalue <= 0.05, worst <= 0.05, n * worst <= 0.05, n


if __name__ == "__main__":
    n_sets = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("segments  bad share  step-down  unadjusted  Bonferroni")
    for n_features in (2, 5, 12):
        for share in (0, 0.02, 0.05, 0.1):
            found = np.array([named(seed, n_features, share) for seed in range(n_sets)])
            rates = 100 * found[:, :3].mean(axis=0)
            print(f"{found[0, 3]:8d} {100 * share:8.0f} %", *(f"{one:9.1f} %" for one in rates))
