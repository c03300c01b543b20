"""What a scan names and what it bounds where errors are local, at n = 10,000.

Of every design: how often the test rejects at 5 %, the share of the samples of the ranges it names
that are calibrated, the share of those that are not calibrated which the ranges hold, the lower
bound as a share of the true mean gap, and how often it is above that. Run

    python tests/studies/scan_study.py --sets 40                # ten minutes
"""

import argparse
import warnings

import numpy as np
from scipy.special import expit, logit

from skcal.hypothesis_tests import scan_test

N = 10_000


def bump(rng, size):
    """A twentieth of the samples is too low."""
    p = rng.random(N)
    return p, np.where((p > 0.5) & (p < 0.55), p + size, p)


def decile(rng, size):
    """The top decile is too high."""
    p = rng.random(N)
    return p, np.where(p > 0.9, p - size, p)


def rare(rng, ratio):
    """2 % events, of the top 5 % of the predictions a multiple."""
    p = rng.beta(1, 49, N)
    return p, np.where(p > 1 - 0.05 ** (1 / 49), p * ratio, p)


def slope(rng, slope):
    p = rng.random(N)
    return p, expit(slope * logit(p))


def steps(rng, size):
    p = rng.random(N)
    return p, np.clip(p + size * np.where((p * 8).astype(int) % 2, 1, -1), 0, 1)


DESIGNS = {
    "a twentieth too low by 0.2": (bump, 0.2),
    "a twentieth too low by 0.15": (bump, 0.15),
    "top decile too high by 0.1": (decile, 0.1),
    "top decile too high by 0.05": (decile, 0.05),
    "2 % events, top 5 % 6 times too high": (rare, 0.15),
    "2 % events, top 5 % 2.2 times too low": (rare, 2.2),
    "slope 0.7": (slope, 0.7),
    "eight steps of 0.1": (steps, 0.1),
}


def measured(design, weighted, seed):
    """One data set's row of numbers; NaN where no range is named."""
    draw, size = DESIGNS[design]
    rng = np.random.default_rng([seed, 3])
    p, truth = draw(rng, size)
    y, gap = rng.random(N) < truth, np.abs(truth - p)
    weight = rng.lognormal(size=N) if weighted else np.ones(N)
    options = {"n_resamples": 199, "random_state": 0}
    found = scan_test(y, p, sample_weight=weight if weighted else None, **options)
    named = np.zeros(N, dtype=bool)
    for one in found.ranges:
        named |= (one.low <= p) & (p <= one.high)
    mean = weight @ gap / weight.sum()
    return [
        found.pvalue <= 0.05,
        np.mean(gap[named] < 1e-9) if named.any() else np.nan,
        named[gap > 1e-9].mean() if named.any() else np.nan,
        found.lower_bound / mean,
        found.lower_bound > mean,
        np.mean([one.may_be_calibrated for one in found.ranges]) if found.ranges else np.nan,
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=40)
    options = parser.parse_args()
    print("rejects, calibrated, held, bound, above the truth, may be calibrated")
    for design in DESIGNS:
        for weighted in (False, True):
            rows = [measured(design, weighted, seed) for seed in range(options.sets)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of designs without ranges
                means = np.nanmean(rows, axis=0)
            title = f"{design}{', weights' * weighted}"
            print(f"{title:<50}", "  ".join(f"{mean:.2f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
