"""Power and level of the test of calibration beside each of its statistics alone (slow).

Every column is a test of exact level on the same redrawn outcomes: the combined p-value, the
smallest p-value of bias, slope, kernel and scan, which the combined one replaced, and each
statistic alone, which are the likelihood ratio of an intercept, Cox's likelihood ratio, the score
of the slope, Hosmer and Lemeshow's statistic, the squared kernel error and the scan. Run

    python tests/studies/power_study.py power
    python tests/studies/power_study.py level
"""

import argparse

import numpy as np
from scipy.special import expit, logit
from scipy.stats import rankdata

from skcal.hypothesis_tests import calibration_test
from skcal.hypothesis_tests.joint import JointStatistics, combined_pvalues
from skcal.hypothesis_tests.monte_carlo import draw_nulls
from skcal.notions import make_problems

LEVEL = 0.05


def rare(n, rng):
    """Predictions of 1 % events."""
    return expit(rng.normal(-5, 0.9, n))


def credit(n, rng):
    """Predictions of 20 % events."""
    return expit(rng.normal(-1.6, 1, n))


def ends(n, rng):
    """Nine of ten predictions near 0 or 1."""
    return np.where(rng.uniform(size=n) < 0.9, rng.choice([0.001, 0.999], n), rng.uniform(size=n))


def slope(factor, shift=0.0):
    """Log-odds are off by a factor and a shift."""
    return lambda p: expit(factor * logit(p) + shift)


CELLS = {
    "1 % events, 1.7 times too high, n = 3,000": (rare, lambda p: p / 1.7, 3000),
    "1 % events, 1.5 times too low, n = 4,000": (rare, lambda p: np.minimum(1, 1.5 * p), 4000),
    "1 % events, slope 0.6, n = 3,000": (rare, slope(0.6, -1.8), 3000),
    "20 % events, slope 1.4, n = 500": (credit, slope(1.4, 0.5), 500),
    "20 % events, slope 0.7, n = 600": (credit, slope(0.7, -0.4), 600),
    "20 % events, odds 1.28, n = 500": (credit, slope(1, 0.25), 500),
    "up to 0.4, a fifth too low, n = 800": (
        lambda n, rng: rng.uniform(0, 0.4, n),
        lambda p: 1.2 * p,
        800,
    ),
    "a twentieth off by 0.3, n = 2,000": (
        lambda n, rng: rng.uniform(size=n),
        lambda p: np.where((p > 0.6) & (p < 0.65), p - 0.3, p),
        2000,
    ),
    "a sine of ±0.07, n = 1,000": (
        lambda n, rng: rng.uniform(0.1, 0.9, n),
        lambda p: p + 0.07 * np.sin(6 * np.pi * p),
        1000,
    ),
    "90 % at the ends, 1 % noise, n = 500": (ends, lambda p: 0.01 + 0.98 * p, 500),
}
OLD = ("bias", "slope", "kernel", "scan")


def rejections(draw, truth, n, seed, n_resamples=199):
    """Which tests reject, by name."""
    rng = np.random.default_rng([seed, 23])
    p = draw(n, rng)
    y = (rng.uniform(size=n) < truth(p)).astype(int)
    [problem] = make_problems(p, y, "binary", np.ones(n))
    joint = JointStatistics(problem)
    [draws] = draw_nulls([joint], [joint.problem], n_resamples, np.random.RandomState(seed))
    values = np.vstack([draws.snapped[0], draws.observed[0]])
    ranks = np.column_stack([rankdata(-column, method="max") for column in values.T])
    smallest = ranks[:, [joint.names.index(name) for name in OLD]]
    evidence = smallest.min(axis=1) - (1 / smallest).sum(axis=1) / 5
    return {
        "this": combined_pvalues(values, joint.weights)[1].min() <= LEVEL,
        "before": np.mean(evidence <= evidence[-1]) <= LEVEL,
        **dict(zip(joint.names, ranks[-1] / len(ranks) <= LEVEL, strict=True)),
    }


def print_power(n_sets):
    """Print a row a cell, and how far the test is from the best statistic."""
    for name, cell in CELLS.items():
        rows = [rejections(*cell, seed) for seed in range(n_sets)]
        shares = {key: 100 * np.mean([row[key] for row in rows]) for key in rows[0]}
        best = max(value for key, value in shares.items() if key not in ("this", "before"))
        shown = "  ".join(f"{key} {value:.0f}" for key, value in shares.items())
        print(f"{name:44}{shown}  loss {best - shares['this']:.0f}", flush=True)


def atoms(n, rng):
    """Four distinct predictions."""
    return rng.choice([0.05, 0.1, 0.3, 0.5], n)


def votes(p, rng):
    """Shares of five votes of two classes."""
    share = rng.binomial(5, p) / 5
    return np.column_stack([1 - share, share])


def print_level(n_sets):
    """Print how often calibrated predictions are rejected."""
    cells = {
        "four predictions, n = 30": (atoms, 30, {}),
        "1 % events, n = 500": (rare, 500, {}),
        "uniform, lognormal weights, n = 100": (lambda n, r: r.uniform(size=n), 100, {"weights"}),
        "uniform, votes, n = 100": (lambda n, r: r.uniform(size=n), 100, {"votes"}),
        "uniform, pairs, n = 100": (lambda n, r: r.uniform(size=n), 100, {"pairs"}),
    }
    for name, (draw, n, kinds) in cells.items():
        rejected = 0
        for seed in range(n_sets):
            rng = np.random.default_rng([seed, 29])
            p = draw(n, rng)
            y = (rng.uniform(size=n) < p).astype(int)
            options = {"labels": [0, 1], "n_resamples": 99, "random_state": seed}
            if "weights" in kinds:
                options["sample_weight"] = rng.lognormal(size=n)
            if "pairs" in kinds:
                options["groups"] = np.arange(n) // 2
            if "votes" in kinds:
                y, p = votes(p, rng), np.column_stack([1 - p, p])
            rejected += calibration_test(y, p, **options).pvalue <= LEVEL
        print(f"{name:40}{100 * rejected / n_sets:.1f} % of {n_sets}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=["power", "level"])
    parser.add_argument("--n-sets", type=int)
    options = parser.parse_args()
    if options.study == "power":
        print_power(options.n_sets or 300)
    else:
        print_level(options.n_sets or 1000)
