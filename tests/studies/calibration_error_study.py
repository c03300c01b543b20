"""The calibration error and its limits against known truths, beside other estimators (slow).

Each cell is a law of predictions and a calibration curve, so that the true error is known. For each
data set the study stores the estimate, both limits and other estimators; "plain" are independent
samples, the other kinds have weights that differ, groups of samples that depend on each other, or
five votes for each sample. Run

    python tests/studies/calibration_error_study.py --out rows.csv --seeds 200 --sizes 300 1000
    python tests/studies/calibration_error_study.py --out rows.csv --table
"""

import argparse
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm
from study_tools import append, kept, rows_of

from skcal.hypothesis_tests.joint import verdict_of
from skcal.metrics import expected_calibration_error, smooth_calibration_error
from skcal.metrics.error_limits import ErrorLimits
from skcal.sample import read_sample

KINDS = ("plain", "weights", "groups", "votes")
LIKE_OTHERS = ("calibrated, uniform", "slope 0.8", "nearly certain, 0.06 too high", "2 %, x 1.5")


def uniform(rng, n):
    return rng.uniform(0.002, 0.998, n)


def normal_logits(mean, deviation):
    return lambda rng, n: expit(rng.normal(mean, deviation, n))


def nearly_certain(rng, n):
    return np.clip(rng.beta(9, 0.3, n), 0.01, 1 - 1e-7)


def levels(k):
    return lambda rng, n: rng.integers(0, k + 1, n) / k


def with_spike(rng, n):
    return np.where(rng.random(n) < 0.05, rng.uniform(0.88, 0.9, n), rng.random(n))


def sine(periods, size):
    return lambda p: np.clip(p + size * np.sin(2 * np.pi * periods * p), 0, 1)


def lobes(n_lobes, size):
    """Too low and too high in turn."""
    return lambda p: np.clip(p + size * np.where(np.floor(p * n_lobes) % 2 == 0, 1, -1), 0, 1)


# Cells: predictions and the probability of the event. The first of the miscalibrated ones cross the
# diagonal at most three times, so that the upper limit holds for them.
CELLS = {
    "calibrated, uniform": (uniform, lambda p: p),
    "calibrated, 2 %": (normal_logits(-4.2, 1.1), lambda p: p),
    "calibrated, nearly certain": (nearly_certain, lambda p: p),
    "calibrated, multiples of 0.05": (levels(20), lambda p: p),
    "calibrated, 0.5 %": (normal_logits(-5.6, 0.8), lambda p: p),
    "shift of 0.15": (uniform, lambda p: expit(logit(p) + 0.15)),
    "slope 0.8": (uniform, lambda p: expit(0.8 * logit(p))),
    "2 %, x 1.5": (normal_logits(-4.2, 1.1), lambda p: np.minimum(1.5 * p, 1)),
    "nearly certain, 0.06 too high": (nearly_certain, lambda p: np.where(p > 0.97, p - 0.06, p)),
    "spike": (with_spike, lambda p: np.where((p > 0.88) & (p < 0.9), 0.5, p)),
    "plateau from 0.3 to 0.7": (uniform, lambda p: np.where((p > 0.3) & (p < 0.7), 0.5, p)),
    "jump at 0.5": (uniform, lambda p: np.where(p > 0.5, p - 0.1, p)),
    "sevenths, shrunk": (levels(6), lambda p: 0.5 + 0.75 * (p - 0.5)),
    "three crossings, sine": (uniform, sine(2, 0.2)),
    "three crossings, jumps": (uniform, lobes(4, 0.15)),
    "three crossings, sd 2": (normal_logits(0, 2), sine(2, 0.15)),
    "five crossings": (uniform, sine(3, 0.1)),
    "nine crossings": (uniform, sine(5, 0.12)),
    "19 crossings": (lambda rng, n: rng.uniform(0.1, 0.9, n), lobes(20, 0.1)),
}
MANY_CROSSINGS = ("five crossings", "nine crossings", "19 crossings")


def truth_of(cell):
    draw, curve = CELLS[cell]
    p = draw(np.random.default_rng(1), 1_000_000)
    return float(np.abs(curve(p) - p).mean())


def sample_of(cell, kind, n, seed):
    """Labels or votes, predictions, and the options that belong to the kind."""
    draw, curve = CELLS[cell]
    rng = np.random.default_rng([seed, n, KINDS.index(kind)])
    p = draw(rng, n)
    q, options = curve(p), {"labels": [0, 1]}
    if kind == "votes":  # five, which depend on each other
        shares = rng.beta(np.maximum(2 * q, 1e-9), np.maximum(2 * (1 - q), 1e-9))
        votes = rng.binomial(5, shares)
        return np.column_stack([5 - votes, votes]), p, options
    if kind == "groups":  # of five, whose normal scores are correlated by 0.5
        groups = np.arange(n) // 5
        score = np.sqrt(0.5) * (rng.normal(size=n) + rng.normal(size=n)[groups])
        return (score < norm.ppf(q)).astype(int), p, {**options, "groups": groups}
    if kind == "weights":
        options["sample_weight"] = rng.lognormal(0, 0.7, n)
    return (rng.random(n) < q).astype(int), p, options


def rows_for(cell, kind, n, seeds):
    """Rows of a data set each; the test runs where a limit is above 0."""
    for seed in seeds:
        y, p, options = sample_of(cell, kind, n, seed)
        limits = ErrorLimits(read_sample(y, p, **options))
        shown = limits.low(0.05) > 0 and verdict_of(limits.sample).pvalue <= 0.05
        low, (high, crossings) = limits.low(0.05) if shown else 0.0, limits.high(0.05)
        others = ["", ""]
        if kind == "plain":
            others = [
                smooth_calibration_error(y, p, labels=[0, 1]),
                expected_calibration_error(y, p, labels=[0, 1]),
            ]
        yield [[cell, kind, n, seed, limits.estimate, low, high, crossings, *others]]


def table(path):
    """Misses and mean limits of each cell, and pooled misses of those that the limit is about."""
    by_cell, pooled = defaultdict(list), defaultdict(list)
    for cell, kind, n, _, *values in rows_of(path):
        by_cell[cell, kind, int(n)].append([float(value or "nan") for value in values])
    print(
        f"{'cell':32}{'kind':9}{'n':>6} {'truth':>6} estimate (error)  low  (misses) high  (misses)"
    )
    for (cell, kind, n), values in by_cell.items():
        truth, rows = truth_of(cell), np.array(values)
        estimate, low, high = rows[:, :3].T
        below, above = low > truth, high < truth
        if cell not in MANY_CROSSINGS:
            pooled[kind, n].append([below.mean(), above.mean(), len(rows)])
        others = "".join(f" {np.abs(other - truth).mean():.4f}" for other in rows[:, 4:6].T)
        print(
            f"{cell:32}{kind:9}{n:>6} {truth:.4f} {estimate.mean():.4f} "
            f"({np.abs(estimate - truth).mean():.4f}) {low.mean():.4f} ({below.sum():3})  "
            f"{high.mean():.4f} ({above.sum():3}) of {len(rows)}; smooth, 15 bins:{others}"
        )
    for (kind, n), values in pooled.items():
        below, above, count = np.array(values).T
        print(
            f"pooled, {kind}, n = {n}: low {below.mean():.3f}, high {above.mean():.3f}, "
            f"{count.sum():.0f} data sets"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1000, 10_000])
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.table:
        table(options.out)
        return
    warnings.simplefilter("ignore")
    done = kept(options.out, 4)
    for n in options.sizes:
        for kind in options.kinds:
            for cell in CELLS if kind == "plain" else LIKE_OTHERS:
                seeds = [
                    seed
                    for seed in range(options.seeds)
                    if (cell, kind, str(n), str(seed)) not in done
                ]
                append(options.out, rows_for(cell, kind, n, seeds))


if __name__ == "__main__":
    main()
