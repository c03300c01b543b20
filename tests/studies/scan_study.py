"""What a scan names and what it bounds where errors are local, at n = 10,000.

Of every design: how often the test rejects at 5 %, the share of the samples of the ranges it names
that are calibrated, the share of those that are not calibrated which the ranges hold, the lower
bound as a share of the true mean gap, how often it is above that, the share that the result says
may be calibrated, and how often more of a range is, and more than 15 %. Run

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


def within(draw, low, high, gap):
    """Predictions of a range are off by a gap."""

    def drawn(rng, size):
        p = draw(rng)
        return p, np.where((p > low) & (p < high), np.clip(p + gap * size, 0, 1), p)

    return drawn


def two_ranges(rng, size):
    p = rng.random(N)
    low, high = (p > 0.2) & (p < 0.25), (p > 0.7) & (p < 0.78)
    return p, np.select([low, high], [p + size, p - 0.75 * size], p)


def close_ranges(rng, size):
    """A third of what lies between the first and the last error is calibrated."""
    p = rng.random(N)
    return p, p + size * (((p > 0.56) & (p < 0.61)) | ((p > 0.64) & (p < 0.69)))


def triangle(rng, size):
    p = rng.random(N)
    return p, p + size * np.clip(1 - np.abs(p - 0.4) / 0.08, 0, 1)


def strong_and_weak(rng, size):
    p = rng.random(N)
    return p, p + np.select([(p > 0.3) & (p < 0.36), (p >= 0.36) & (p < 0.46)], [size, size / 4])


def tail(mean, cutoff):
    """Of rare events, the predictions above a cutoff are a multiple of the truth."""

    def drawn(rng, ratio):
        p = expit(rng.normal(mean, 0.9, N))
        return p, np.where(p > cutoff, p / ratio, p)

    return drawn


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
#: Not used for choices.
ASIDE = {
    "0.2 to 0.28 too high by 0.12": (within(lambda r: r.random(N), 0.2, 0.28, -1), 0.12),
    "Beta(2, 5), 0.4 to 0.47 too low by 0.2": (
        within(lambda r: r.beta(2, 5, N), 0.4, 0.47, 1),
        0.2,
    ),
    "top 3 % too high by 0.3": (within(lambda r: r.random(N), 0.97, 1, -1), 0.3),
    "Beta(1, 30), top 7 % too low by 0.15": (within(lambda r: r.beta(1, 30, N), 0.085, 1, 1), 0.15),
    "two ranges, 0.2 and -0.15": (two_ranges, 0.2),
    "rounded, 0.6 to 0.65 too high by 0.2": (
        within(lambda r: r.random(N).round(2), 0.595, 0.655, -1),
        0.2,
    ),
    "bottom decile too low by 0.05": (within(lambda r: r.random(N), 0, 0.1, 1), 0.05),
    "0.56 to 0.61 and 0.64 to 0.69 too low by 0.18": (close_ranges, 0.18),
    "a triangle of 0.2": (triangle, 0.2),
    "0.22 at 0.3 to 0.36, 0.055 up to 0.46": (strong_and_weak, 0.22),
    "1 % events, top ones 3.5 times too high": (tail(-4.9, 0.035), 3.5),
    "6 % events, above 0.1 twice too high": (tail(-3.1, 0.1), 2.0),
    "Beta(8, 2), above 0.93 too high by 0.08": (
        within(lambda r: r.beta(8, 2, N), 0.93, 1, -1),
        0.08,
    ),
}


def measured(design, weighted, seed):
    """One data set's row of numbers; NaN where no range is named."""
    draw, size = (DESIGNS | ASIDE)[design]
    rng = np.random.default_rng([seed, 3])
    p, truth = draw(rng, size)
    y, gap = rng.random(N) < truth, np.abs(truth - p)
    weight = rng.lognormal(size=N) if weighted else np.ones(N)
    options = {"n_resamples": 199, "random_state": 0}
    found = scan_test(y, p, sample_weight=weight if weighted else None, **options)
    inside = [(one.low <= p) & (p <= one.high) for one in found.ranges]
    named = np.any(inside, axis=0) if inside else np.zeros(N, dtype=bool)
    said = max((one.may_be_calibrated for one in found.ranges), default=0.0)
    most = max((np.mean(gap[one] < 1e-9) for one in inside), default=np.nan)
    mean = weight @ gap / weight.sum()
    return [
        found.pvalue <= 0.05,
        np.mean(gap[named] < 1e-9) if named.any() else np.nan,
        named[gap > 1e-9].mean() if named.any() else np.nan,
        found.lower_bound / mean,
        found.lower_bound > mean,
        said if inside else np.nan,
        most > max(said, 0.15) if inside else np.nan,
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=40)
    options = parser.parse_args()
    print("rejects, calibrated, held, bound, above the truth, may be calibrated, more than said")
    for design in DESIGNS | ASIDE:
        for weighted in (False, True):
            rows = [measured(design, weighted, seed) for seed in range(options.sets)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of designs without ranges
                means = np.nanmean(rows, axis=0)
            title = f"{design}{', weights' * weighted}"
            print(f"{title:<50}", "  ".join(f"{mean:.2f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
