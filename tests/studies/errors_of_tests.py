"""False alarms and missed miscalibration of every test.

Figure 2 of Widmann et al. (2019) for 2, 10 and 100 classes: data sets of model M1 are calibrated,
so a test rejects falsely; those of M2, M3 and of a temperature are not, so it errs when it does not
reject. Drawn for the paper's tests and skcal's defaults, with a table of every test at 5 %. Run

    python tests/studies/errors_of_tests.py --out pvalues.csv --tables OUT      # resumes
    python tests/studies/errors_of_tests.py --out pvalues.csv --every-setting --table

where the first takes ten minutes; the second adds other sizes, concentrations and weaker noise, and
with ``--closed 10000 --resampled 1000 --n-resamples 199`` takes hours.
"""

import warnings
from functools import partial

import numpy as np
from consistency import consistency_test
from joblib import Parallel, delayed
from scipy.stats import binom
from study_tools import append, command_line, dots, figure, kept, rows_of, save, write_table

from skcal.datasets import make_dirichlet, make_tempered
from skcal.hypothesis_tests import (
    calibration_test,
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
    "calibration_test": calibration_test,
    "calibration_test, confidence": lambda y, p, notion, **options: calibration_test(
        y, p, **options
    ),
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
#: The tests of the paper's figure, and the defaults of skcal.
SHOWN = {
    "ECE, consistency": "ECE, uniform\nconsistency",
    "ECE median-variance, consistency": "ECE, data-dep.\nconsistency",
    "SKCE biased, distribution-free": "SKCE, biased\ndistr.-free",
    "SKCE unbiased, distribution-free": "SKCE, unbiased\ndistr.-free",
    "SKCE linear, distribution-free": "SKCE, linear\ndistr.-free",
    "SKCE quadratic, bootstrap": "SKCE, unbiased\nasymptotic",
    "SKCE linear, normal": "SKCE, linear\nasymptotic",
    "ECE, Monte Carlo": "ECE\nskcal's default",
    "SKCE unbiased, Monte Carlo": "SKCE\nskcal's default",
}
N_CLASSES, MODELS = (2, 10, 100), ("M1", "M2", "M3")
OF_FIGURE = [  # model, noise of M2, n, C, concentration
    (model, 0.5, 250, C, 0.1) for C in N_CLASSES for model in MODELS
]
SETTINGS = [
    *OF_FIGURE,
    *[("M2", noise, 250, 10, 0.1) for noise in (0.05, 0.1, 0.25)],
    ("T", 1.2, 250, 10, 0.1),  # a temperature in place of the noise
    *[("M1", 0.5, n, 10, 0.1) for n in (50, 1000)],
    *[("M1", 0.5, 250, C, 1.0) for C in N_CLASSES],
]


def pvalues(setting, seed, names, n_resamples):
    """Return a row for each test on one data set."""
    model, noise, n, C, concentration = setting
    options = {"n_classes": C, "concentration": concentration, "random_state": seed}
    if model == "T":
        data = make_tempered(n, temperature=noise, n_truth_draws=0, **options)
    else:
        data = make_dirichlet(n, model=model, noise=noise, **options)
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
    done = kept(path, 7)
    for setting in settings:
        tasks = []
        for seed in range(max(closed, resampled)):
            names = [*(CLOSED if seed < closed else ()), *(RESAMPLED if seed < resampled else ())]
            key = (*map(str, setting), str(seed))
            names = [name for name in names if (*key, name) not in done]
            if names:
                tasks.append(delayed(pvalues)(setting, seed, names, n_resamples))
        append(path, Parallel(n_jobs=n_jobs, return_as="generator")(tasks))


def read(path):
    """Return {(setting, test): p-values}, NaN where a test refused."""
    groups: dict = {}
    for *setting, _, name, pvalue in rows_of(path):
        model, noise, n, C, a = setting
        key = ((model, float(noise), int(n), int(C), float(a)), name)
        groups.setdefault(key, []).append(float(pvalue))
    return {key: np.array(values) for key, values in groups.items()}


def table(path):
    """Print the share of rejections at 5 %."""
    groups = read(path)
    for setting in SETTINGS:
        rows = [(name, values) for (s, name), values in groups.items() if s == setting]
        if rows:
            model, noise, n, C, a = setting
            words = {"M2": f"M2 (π = {noise})", "T": f"temperature {noise}"}
            of_model = words.get(model, model)
            print(f"\n{of_model}, n = {n}, C = {C}, Dir({a})")
        for name, values in rows:
            known = values[~np.isnan(values)]
            most = binom.ppf(0.9999, len(known), 0.05) / max(len(known), 1)
            note = f"  (calibrated: above {most:.3f} with probability 1e-4)" * (model == "M1")
            print(f"  {name:36s} {np.mean(known <= 0.05):.3f} of {len(known)}{note}")


def rejected(groups, setting, name, levels=(0.05,)):
    """The share of data sets that are rejected at each level."""
    values = groups.get((setting, name), np.array([np.nan]))
    known = values[~np.isnan(values)]
    return (known[:, None] <= np.array(levels) + 1e-12).mean(axis=0) if len(known) else [np.nan]


def write_tables(path, tables):
    """The share of rejections at 5 % of every test, as table and dots, and the paper's figure."""
    groups, rows, levels = read(path), [], {C: ([], []) for C in N_CLASSES}
    names = [*RESAMPLED, *CLOSED]
    for name in names:
        row = [name]
        for model in MODELS:
            for C in N_CLASSES:
                [share] = rejected(groups, (model, 0.5, 250, C, 0.1), name)
                row.append("–" if np.isnan(share) else f"{100 * share:.1f}")
                if model == "M1":
                    n = len(groups[(model, 0.5, 250, C, 0.1), name])
                    levels[C][0].append(100 * share)
                    levels[C][1].append(100 * np.sqrt(0.05 * 0.95 / n))
        rows.append(row)
    header = ["test", *(f"{model}, C = {C}" for model in MODELS for C in N_CLASSES)]
    write_table(tables, "tests", header, rows)
    drawn, axes = figure(1, 1, size=(7.4, 5.6))
    dots(axes[0, 0], names, {f"C = {C}": pair for C, pair in levels.items()}, spread=0.4)
    axes[0, 0].axvline(5, color="black", linewidth=0.9)
    axes[0, 0].set_xscale("symlog", linthresh=10)
    axes[0, 0].set_xticks([0, 5, 10, 20, 50, 100], ["0", "5", "10", "20", "50", "100"])
    axes[0, 0].set(xlabel="rejections of calibrated data sets at 5 %, in percent")
    save(drawn, tables, "levels", axes[0, 0], frameon=False)
    draw_errors(groups, tables)


def draw_errors(groups, tables):
    """Empirical test error against significance level, a row for each test."""
    drawn, axes = figure(len(SHOWN), 3, size=(7.4, 1.25 * len(SHOWN)))
    levels = np.linspace(0, 1, 101)
    for row, (name, title) in zip(axes, SHOWN.items(), strict=True):
        for ax, model in zip(row, MODELS, strict=True):
            for C, colour in zip(N_CLASSES, ("#0072B2", "#D55E00", "#009E73"), strict=True):
                shares = rejected(groups, (model, 0.5, 250, C, 0.1), name, levels)
                error = shares if model == "M1" else 1 - np.asarray(shares)
                ax.plot(levels[: len(error)], error, color=colour, label=f"C = {C}")
            if model == "M1":
                ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle=":")
                ax.set_ylabel(title, fontsize="small")
            ax.set(ylim=(-0.03, 1.03), xlim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 1])
            ax.label_outer()
    for ax, model in zip(axes[0], MODELS, strict=True):
        ax.set_title(f"{model}: {'false alarms' if model == 'M1' else 'misses'}", fontsize="medium")
    for ax in axes[-1]:
        ax.set_xlabel("significance level", fontsize="small")
    save(drawn, tables, "tests", axes[0, 0])


def main():
    parser = command_line(__doc__)
    parser.add_argument("--table", action="store_true", help="print, without new draws")
    parser.add_argument("--every-setting", action="store_true", help="not only the figure's")
    parser.add_argument("--closed", type=int, default=250, help="data sets of closed forms")
    parser.add_argument("--resampled", type=int, default=100, help="data sets of resampled tests")
    parser.add_argument("--n-resamples", type=int, default=99)
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    if not options.table:
        draws = options.closed, options.resampled, options.n_resamples, options.n_jobs
        study(options.out, *draws, SETTINGS if options.every_setting else OF_FIGURE)
    if options.table:
        table(options.out)
    if options.tables:
        write_tables(options.out, options.tables)


if __name__ == "__main__":
    main()
