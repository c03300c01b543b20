"""False alarms and missed miscalibration of every test (slow).

Figure 2 of Widmann et al. (2019): data sets of model M1 are calibrated, so a test rejects falsely;
those of M2 and M3 are not, so it errs when it does not reject. Drawn for every test of skcal;
beside it the levels at 5 % and the power against weak noise. Run

    python examples/errors_of_tests.py --out pvalues.csv --n-jobs 2        # an hour; resumes
    python examples/errors_of_tests.py --out pvalues.csv --table
    python examples/errors_of_tests.py --out pvalues.csv --figure errors.png
"""

import argparse
import csv
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binom

from skcal.datasets import make_dirichlet
from skcal.hypothesis_tests import (
    consistency_test,
    cox_test,
    hosmer_lemeshow_test,
    mean_embedding_test,
    monte_carlo_test,
    risk_test,
    skce_test,
    spiegelhalter_test,
)

ECE, SKCE = "expected_calibration_error", "squared_kernel_calibration_error"


CLOSED = {
    "SKCE biased, distribution-free": partial(
        skce_test, method="distribution-free", estimator="biased"
    ),
    "SKCE unbiased, distribution-free": partial(skce_test, method="distribution-free"),
    "SKCE linear, distribution-free": partial(
        skce_test, method="distribution-free", estimator="block", block_size=2
    ),
    "SKCE linear, normal": partial(skce_test, method="block", block_size=2),
    "SKCE blocks √n, normal": partial(skce_test, method="block"),
    "CME, Hotelling's F": partial(mean_embedding_test, method="hotelling", random_state=0),
    "CME, χ²": partial(mean_embedding_test, method="chi2", random_state=0),
    "Spiegelhalter": lambda y, p, notion: spiegelhalter_test(y, p),
    "Hosmer-Lemeshow": lambda y, p, notion: hosmer_lemeshow_test(y, p),
    "Cox": lambda y, p, notion: cox_test(y, p),
}
RESAMPLED = {
    "ECE, Monte Carlo": partial(monte_carlo_test, statistic=ECE, n_bins=10),
    "ECE median-variance, Monte Carlo": partial(
        monte_carlo_test, statistic=ECE, strategy="median-variance", min_samples=10
    ),
    "ECE, consistency": partial(consistency_test, statistic=ECE, n_bins=10),
    "ECE median-variance, consistency": partial(
        consistency_test, statistic=ECE, strategy="median-variance", min_samples=10
    ),
    "SKCE unbiased, Monte Carlo": skce_test,
    "SKCE quadratic, bootstrap": partial(skce_test, method="asymptotic"),
    "SKCE quadratic, spectral": partial(skce_test, method="spectral"),
    "CME, Monte Carlo": mean_embedding_test,
    "risk of matrix scaling, Monte Carlo": risk_test,
}
SETTINGS = [  # model, noise of M2, n, C, concentration
    *[(model, 0.5, 250, 10, 0.1) for model in ("M1", "M2", "M3")],
    *[("M2", noise, 250, 10, 0.1) for noise in (0.05, 0.1, 0.25)],
    *[("M1", 0.5, n, 10, 0.1) for n in (50, 1000)],
    *[("M1", 0.5, 250, C, a) for C, a in ((2, 0.1), (100, 0.1), (2, 1.0), (10, 1.0), (100, 1.0))],
]


def pvalues(setting, seed, names, n_resamples):
    """Return a row for each test on one data set."""
    model, noise, n, C, concentration = setting
    data = make_dirichlet(
        n, n_classes=C, concentration=concentration, model=model, noise=noise, random_state=seed
    )
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            options = {"notion": "canonical"}
            if name in RESAMPLED:
                options |= {"n_resamples": n_resamples, "random_state": seed}
            test = RESAMPLED.get(name) or CLOSED[name]
            try:
                pvalue = test(data.labels, data.proba, **options).pvalue
            except ValueError:  # a singular covariance, separated outcomes
                pvalue = np.nan
            rows.append((*setting, seed, name, pvalue))
    return rows


def study(path, closed, resampled, n_resamples, n_jobs, settings):
    """Append missing p-values to the file."""
    done = set()
    if path.exists():
        with path.open(newline="") as file:
            done = {tuple(row[:7]) for row in csv.reader(file)}
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        for setting in settings:
            tasks = []
            for seed in range(max(closed, resampled)):
                names = [
                    *(CLOSED if seed < closed else ()),
                    *(RESAMPLED if seed < resampled else ()),
                ]
                key = (*map(str, setting), str(seed))
                names = [name for name in names if (*key, name) not in done]
                if names:
                    tasks.append(delayed(pvalues)(setting, seed, names, n_resamples))
            for rows in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
                writer.writerows(rows)


def read(path):
    """Return {(setting, test): p-values}."""
    groups: dict = {}
    with path.open(newline="") as file:
        for *setting, _, name, pvalue in csv.reader(file):
            model, noise, n, C, a = setting
            key = ((model, float(noise), int(n), int(C), float(a)), name)
            groups.setdefault(key, []).append(float(pvalue))
    return groups


def table(path):
    """Print the share of rejections at 5 %."""
    groups = read(path)
    for setting in SETTINGS:
        rows = [(name, values) for (s, name), values in groups.items() if s == setting]
        if rows:
            model, noise, n, C, a = setting
            print(
                f"\n{model}{f' (π = {noise})' if model == 'M2' else ''}, n = {n}, C = {C}, Dir({a})"
            )
        for name, values in rows:
            values = np.array(values)
            known = values[~np.isnan(values)]
            most = binom.ppf(0.9999, len(known), 0.05) / max(len(known), 1)
            note = (
                f"  (calibrated: above {most:.3f} with probability 1e-4)" if model == "M1" else ""
            )
            print(f"  {name:36s} {np.mean(known <= 0.05):.3f} of {len(known)}{note}")


def figure(path, target):
    """Draw empirical test error against significance level."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = read(path)
    names = [*RESAMPLED, *CLOSED]
    fig, axes = plt.subplots(
        len(names), 3, figsize=(7, 1.5 * len(names)), sharex=True, layout="constrained"
    )
    levels = np.linspace(0, 1, 101)
    for row, name in zip(axes, names, strict=True):
        for ax, model in zip(row, ("M1", "M2", "M3"), strict=True):
            values = np.array(groups.get(((model, 0.5, 250, 10, 0.1), name), [np.nan]))
            values = values[~np.isnan(values)]
            if len(values):
                rejected = (values[:, None] <= levels).mean(axis=0)
                ax.plot(levels, rejected if model == "M1" else 1 - rejected)
            if model == "M1":
                ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
                ax.set_ylabel(name.replace(", ", ",\n"), fontsize=6)
            ax.set_ylim(-0.02, 1.02)
            if name == names[0]:
                ax.set_title(
                    f"{model}: {'false alarms' if model == 'M1' else 'misses'}", fontsize=9
                )
    for ax in axes[-1]:
        ax.set_xlabel("significance level", fontsize=8)
    fig.savefig(target, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--closed", type=int, default=10_000, help="data sets of closed forms")
    parser.add_argument("--resampled", type=int, default=1000, help="data sets of resampled tests")
    parser.add_argument("--n-resamples", type=int, default=199)
    parser.add_argument("--settings", nargs="+", type=int, default=range(len(SETTINGS)))
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    if options.table:
        table(options.out)
    elif options.figure:
        figure(options.out, options.figure)
    else:
        study(
            options.out,
            options.closed,
            options.resampled,
            options.n_resamples,
            options.n_jobs,
            [SETTINGS[k] for k in options.settings],
        )


if __name__ == "__main__":
    main()
