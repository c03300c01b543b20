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
from laws import beta, normal_logits, odds, uniform

from skcal.hypothesis_tests import scan_test

N = 10_000


def off(draw, where, change):
    """Predictions, and what is true of them: in a range they are changed by a size."""

    def drawn(rng, size):
        p = draw(rng, N)
        return p, np.where(where(p), np.clip(change(p, size), 0, 1), p)

    return drawn


def too_low(p, size):
    return p + size


def too_high(p, size):
    return p - size


def inside(low, high):
    return lambda p: (p > low) & (p < high)


def above(low):
    return lambda p: p > low


def everywhere(change):
    return off(uniform, np.isfinite, change)


def rounded(rng, n):
    return rng.random(n).round(2)


def two_ranges(p, size):
    return np.select([inside(0.2, 0.25)(p), inside(0.7, 0.78)(p)], [p + size, p - 0.75 * size], p)


def close_ranges(p, size):
    """A third of what lies between the first and the last error is calibrated."""
    return p + size * (inside(0.56, 0.61)(p) | inside(0.64, 0.69)(p))


def triangle(p, size):
    return p + size * np.clip(1 - np.abs(p - 0.4) / 0.08, 0, 1)


def strong_and_weak(p, size):
    return p + np.select([inside(0.3, 0.36)(p), (p >= 0.36) & (p < 0.46)], [size, size / 4])


def steps(p, size):
    return p + size * np.where((p * 8).astype(int) % 2, 1, -1)


TOP_20TH = above(1 - 0.05 ** (1 / 49))  # of Beta(1, 49)
#: What draws predictions and truth, and its size.
DESIGNS = {
    "a twentieth too low by 0.2": (off(uniform, inside(0.5, 0.55), too_low), 0.2),
    "a twentieth too low by 0.15": (off(uniform, inside(0.5, 0.55), too_low), 0.15),
    "top decile too high by 0.1": (off(uniform, above(0.9), too_high), 0.1),
    "top decile too high by 0.05": (off(uniform, above(0.9), too_high), 0.05),
    "2 % events, top 5 % 6 times too high": (off(beta(1, 49), TOP_20TH, np.multiply), 0.15),
    "2 % events, top 5 % 2.2 times too low": (off(beta(1, 49), TOP_20TH, np.multiply), 2.2),
    "slope 0.7": (everywhere(lambda p, slope: odds(slope)(p)), 0.7),
    "eight steps of 0.1": (everywhere(steps), 0.1),
}
#: Not used for choices.
ASIDE = {
    "0.2 to 0.28 too high by 0.12": (off(uniform, inside(0.2, 0.28), too_high), 0.12),
    "Beta(2, 5), 0.4 to 0.47 too low by 0.2": (off(beta(2, 5), inside(0.4, 0.47), too_low), 0.2),
    "top 3 % too high by 0.3": (off(uniform, above(0.97), too_high), 0.3),
    "Beta(1, 30), top 7 % too low by 0.15": (off(beta(1, 30), above(0.085), too_low), 0.15),
    "two ranges, 0.2 and -0.15": (everywhere(two_ranges), 0.2),
    "rounded, 0.6 to 0.65 too high by 0.2": (off(rounded, inside(0.595, 0.655), too_high), 0.2),
    "bottom decile too low by 0.05": (off(uniform, inside(0, 0.1), too_low), 0.05),
    "0.56 to 0.61 and 0.64 to 0.69 too low by 0.18": (everywhere(close_ranges), 0.18),
    "a triangle of 0.2": (everywhere(triangle), 0.2),
    "0.22 at 0.3 to 0.36, 0.055 up to 0.46": (everywhere(strong_and_weak), 0.22),
    "1 % events, top ones 3.5 times too high": (
        off(normal_logits(-4.9, 0.9), above(0.035), np.divide),
        3.5,
    ),
    "6 % events, above 0.1 twice too high": (
        off(normal_logits(-3.1, 0.9), above(0.1), np.divide),
        2.0,
    ),
    "Beta(8, 2), above 0.93 too high by 0.08": (off(beta(8, 2), above(0.93), too_high), 0.08),
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
    held = [(part.low <= p) & (p <= part.high) for part in found.ranges]
    named = np.any(held, axis=0) if held else np.zeros(N, dtype=bool)
    said = max((part.may_be_calibrated for part in found.ranges), default=0.0)
    most = max((np.mean(gap[rows] < 1e-9) for rows in held), default=np.nan)
    mean = weight @ gap / weight.sum()
    return [
        found.pvalue <= 0.05,
        np.mean(gap[named] < 1e-9) if named.any() else np.nan,
        named[gap > 1e-9].mean() if named.any() else np.nan,
        found.lower_bound / mean,
        found.lower_bound > mean,
        said if held else np.nan,
        most > max(said, 0.15) if held else np.nan,
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
