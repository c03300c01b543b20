"""Power and level of the test of calibration beside each of its statistics alone (slow).

Every column is a test of exact level on the same redrawn outcomes: the combined p-value, and single
statistics, which are the likelihood ratio of an intercept, Cox's likelihood ratio, the score of the
slope, Hosmer and Lemeshow's statistic, the squared kernel error and the scan. Run

    python tests/studies/power_study.py power
    python tests/studies/power_study.py frontier
    python tests/studies/power_study.py level
"""

import argparse

import numpy as np
from laws import beta, between, labels_of, nearly_certain, normal_logits, odds, uniform
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm, rankdata

from skcal.hypothesis_tests import calibration_test
from skcal.hypothesis_tests.joint import JointStatistics
from skcal.kernels import Kernel
from skcal.notions import make_problems

LEVEL = 0.05
RARE, CREDIT = normal_logits(-5, 0.9), normal_logits(-1.6, 1)  # 1 % and 20 % events


def ends(rng, n):
    """Nine of ten predictions near 0 or 1."""
    return np.where(rng.uniform(size=n) < 0.9, rng.choice([0.001, 0.999], n), rng.uniform(size=n))


CELLS = {
    "1 % events, 1.7 times too high, n = 3,000": (RARE, lambda p: p / 1.7, 3000),
    "1 % events, 1.5 times too low, n = 4,000": (RARE, lambda p: np.minimum(1, 1.5 * p), 4000),
    "1 % events, slope 0.6, n = 3,000": (RARE, odds(0.6, -1.8), 3000),
    "20 % events, slope 1.4, n = 500": (CREDIT, odds(1.4, 0.5), 500),
    "20 % events, slope 0.7, n = 600": (CREDIT, odds(0.7, -0.4), 600),
    "20 % events, odds 1.28, n = 500": (CREDIT, odds(1, 0.25), 500),
    "up to 0.4, a fifth too low, n = 800": (between(0, 0.4), lambda p: 1.2 * p, 800),
    "a twentieth off by 0.3, n = 2,000": (
        uniform,
        lambda p: np.where((p > 0.6) & (p < 0.65), p - 0.3, p),
        2000,
    ),
    "a sine of ±0.07, n = 1,000": (
        between(0.1, 0.9),
        lambda p: p + 0.07 * np.sin(6 * np.pi * p),
        1000,
    ),
    "90 % at the ends, 1 % noise, n = 500": (ends, lambda p: 0.01 + 0.98 * p, 500),
}
#: Kept aside: looked at once, after all choices.
ASIDE = {
    "5 % events, odds 1.5, n = 800": (normal_logits(-3.3, 0.9), odds(1, 0.4), 800),
    "2 % events, 1.6 times too high, n = 2,500": (
        normal_logits(-4.3, 0.9),
        lambda p: p / 1.6,
        2500,
    ),
    "10 % events, slope 0.65, n = 900": (normal_logits(-2.5, 1), odds(0.65, -0.85), 900),
    "uniform, slope 1.25, n = 900": (uniform, odds(1.25), 900),
    "sure, top ones 0.03 too high, n = 600": (
        nearly_certain,
        lambda p: np.where(p > 0.95, p - 0.03, p),
        600,
    ),
    "two jumps of 0.1, n = 2,000": (
        uniform,
        lambda p: p + 0.1 * ((p > 0.35) & (p < 0.5)) - 0.1 * ((p > 0.5) & (p < 0.65)),
        2000,
    ),
    "top decile 0.1 too high, n = 2,000": (
        beta(2, 6),
        lambda p: np.where(p > 0.43, p - 0.1, p),
        2000,
    ),
    "Beta-shaped, n = 700": (uniform, lambda p: expit(1.15 * np.log(p) - 0.85 * np.log1p(-p)), 700),
}
N_NULL, N_SETS = 1999, 60  # of each draw of predictions
SHOWN = ("intercept", "cox", "slope", "bins", "kernel", "scan")


class WithKernel(JointStatistics):
    """The statistics of the test, and the squared kernel error of width 0.1 as the last."""

    def __call__(self, codes):
        gaps = self._gaps(codes)
        centres = self.sums / np.bincount(self.cells)[:, None]
        matrix = Kernel.of("laplacian", 0.1, centres).matrix(centres, centres)
        errors = np.einsum("kc,kc->k", gaps, gaps @ matrix)
        return np.column_stack([super().__call__(codes), errors])


def draw_statistics(joint, chance, n_rows, rng):
    """Statistics of outcomes of known probabilities, (n_rows, n_statistics)."""
    sizes = [min(100, n_rows - start) for start in range(0, n_rows, 100)]
    blocks = [(rng.random((size, len(chance))) < chance).astype(np.int8) for size in sizes]
    return np.concatenate([joint(block) for block in blocks])


def ranks_among(null, values):
    """How many of a null distribution and the value itself are at least as large."""
    return len(null) + 1 - np.searchsorted(np.sort(null), values, "left")


def rejections(draw, truth, n, seed):
    """Which of the data sets each test rejects; all share predictions and the redrawn outcomes."""
    rng = np.random.default_rng([seed, 23])
    p = draw(rng, n)
    [problem] = make_problems(p, np.zeros(n, dtype=int), "binary", np.ones(n))
    joint = WithKernel(problem)
    p = joint.X[:, 0]
    null = draw_statistics(joint, p, N_NULL, rng)
    found = draw_statistics(joint, truth(p), N_SETS, rng)
    own = np.column_stack([rankdata(-column, method="max") for column in null.T])
    ranks = np.column_stack([ranks_among(*pair) for pair in zip(null.T, found.T, strict=True)])
    weights = np.array([*joint.weights, 0.0])
    evidence = ranks_among((weights / own).sum(axis=1), (weights / ranks).sum(axis=1))
    columns = [evidence, *ranks.T]
    names = ["this", *joint.names, "kernel"]
    return {name: rank <= LEVEL * (N_NULL + 1) for name, rank in zip(names, columns, strict=True)}


def print_power(n_draws):
    """Print a row a cell, and how far the test is from the best statistic."""
    for cells in (CELLS, ASIDE):
        losses = []
        for name, cell in cells.items():
            rows = [rejections(*cell, seed) for seed in range(n_draws)]
            shares = {key: 100 * np.mean([row[key] for row in rows]) for key in rows[0]}
            losses.append(max(shares[key] for key in SHOWN) - shares["this"])
            shown = "".join(f"{shares[key]:<6.0f}" for key in ("this", *SHOWN))
            print(f"{name:43}{shown}loss {losses[-1]:.0f}", flush=True)
        print(f"mean loss {np.mean(losses):.1f}, largest {max(losses):.0f}", flush=True)


def print_frontier(n_draws=400_000):
    """Print what any test loses that protects d unrelated directions equally.

    An error lies in one of d directions, on either side, and moves that standardised statistic by
    the distance at which a test of it alone has the power given. No test has a larger mean power
    over the 2 d cases than the Bayes test, whose statistic is the mean likelihood ratio.
    """
    rng = np.random.default_rng(0)
    for power in (0.5, 0.7, 0.8, 0.9):
        away = brentq(lambda d, b=power: norm.sf(1.96 - d) + norm.cdf(-1.96 - d) - b, 0, 6)
        losses = []
        for n_directions in (1, 2, 3, 4):
            z = rng.normal(size=(n_draws, n_directions))
            critical = np.quantile(np.cosh(away * z).sum(axis=1), 1 - LEVEL)
            z[:, 0] += away
            found = np.mean(np.cosh(away * z).sum(axis=1) > critical)
            losses.append(f"{100 * (power - found):.0f}")
        print(f"power {power:.0%}: loss {', '.join(losses)} points for 1, 2, 3, 4 directions")


def atoms(rng, n):
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
        "1 % events, n = 500": (RARE, 500, {}),
        "uniform, lognormal weights, n = 100": (uniform, 100, {"weights"}),
        "uniform, votes, n = 100": (uniform, 100, {"votes"}),
        "uniform, pairs, n = 100": (uniform, 100, {"pairs"}),
    }
    for name, (draw, n, kinds) in cells.items():
        rejected = 0
        for seed in range(n_sets):
            rng = np.random.default_rng([seed, 29])
            p = draw(rng, n)
            y = labels_of(p, rng)
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
    parser.add_argument("study", choices=["power", "frontier", "level"])
    parser.add_argument("--n-sets", type=int)
    options = parser.parse_args()
    if options.study == "power":
        print_power(options.n_sets or 8)  # draws of the predictions
    elif options.study == "frontier":
        print_frontier()
    else:
        print_level(options.n_sets or 1000)
