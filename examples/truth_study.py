"""How far from the truth? Estimates of calibration errors that are known (slow).

Models M1-M3 of Widmann et al. (2019), the tempered model of Gruber & Bach (2025) and three
distortions that matrix scaling does not contain are drawn many times; for each draw the default
search gives its plug-in and one-step estimates, beside every family alone and the untuned 15-bin
estimate. Run

    python examples/truth_study.py --out study.csv            # hours; resumes where it stopped
    python examples/truth_study.py --out study.csv --table    # bias and spread
"""

import argparse
import csv
import itertools
import sys
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binom
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit

from skcal import Binning, CalibrationErrorEstimator, CalibrationErrorSearchCV
from skcal.datasets import (
    DISTORTIONS,
    distorted_true_errors,
    make_dirichlet,
    make_distorted,
    make_tempered,
    tempered_true_errors,
)

MODELS = {
    "M1": lambda n, C, seed: make_dirichlet(n, n_classes=C, model="M1", random_state=seed),
    "M2": lambda n, C, seed: make_dirichlet(n, n_classes=C, model="M2", random_state=seed),
    "M3": lambda n, C, seed: make_dirichlet(n, n_classes=C, model="M3", random_state=seed),
    "T1": lambda n, C, seed: _tempered(n, C, 1.0, seed),
    "T1.3": lambda n, C, seed: _tempered(n, C, 1.3, seed),
    "T2": lambda n, C, seed: _tempered(n, C, 2.0, seed),
    "class-dependent": lambda n, C, seed: _distorted(n, C, "class-dependent", seed),
    "non-monotone": lambda n, C, seed: _distorted(n, C, "non-monotone", seed),
    "confused-pair": lambda n, C, seed: _distorted(n, C, "confused-pair", seed),
}
FIELDS = ("model", "C", "n", "nested", "notion", "seed", "truth", "estimator", "value")


def _tempered(n, C, temperature, seed):
    return make_tempered(
        n, n_classes=C, temperature=temperature, n_truth_draws=0, random_state=seed
    )


def _distorted(n, C, distortion, seed):
    return make_distorted(n, n_classes=C, distortion=distortion, n_truth_draws=0, random_state=seed)


def _truth(model, C, notion, data):
    if model in DISTORTIONS:
        return distorted_true_errors(C, model, 0.3, 10_000_000)[notion].value
    if model.startswith("T"):
        return tempered_true_errors(C, float(model[1:]), 0.3, 10_000_000)[notion].value
    return data.true_squared_errors[notion].value


def run(model, C, n, nested, notion, seed, truth):
    """Return the rows of one draw."""
    data = MODELS[model](n, C, seed)
    outer_cv = None if nested else ShuffleSplit(1, test_size=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # negative estimates, absent classes
        search = CalibrationErrorSearchCV(
            notion=notion, labels=range(C), outer_cv=outer_cv, random_state=seed
        ).fit(data.proba, data.labels)
    values = {
        "adaptive": search.squared_error_,
        "plug-in": search.plug_in_squared_error_,
        "one-step": search.one_step_squared_error_,
        "one-step s.e.": search.one_step_standard_error_,
        "lower bound": search.lower_confidence_bound(0.95),
    }
    if not nested:
        [outer] = search.outer_results_
        test = data.proba[outer.outer.test]
        for family in search.families_:
            plug_ins = [model.squared_error(test) for model in family.models]
            values[family.name] = float(np.mean(plug_ins))
    if notion == "confidence":
        binned = CalibrationErrorEstimator(Binning(15), notion).fit(data.proba, data.labels)
        values["15 bins, L2"] = binned.squared_error(data.proba)
        gaps = np.sqrt(np.maximum(binned.predict(data.proba), 0))
        values["ECE²"] = float(gaps.mean() ** 2)
    key = (model, C, n, int(nested), notion, seed, truth)
    return [(*key, name, value) for name, value in values.items()]


def study(path, models, classes, sizes, seeds, nested, notions, n_jobs):
    """Append the missing draws to the file."""
    done = set()
    if path.exists():
        with path.open(newline="") as file:
            done = {tuple(row[:6]) for row in csv.reader(file)}
    tasks = []
    for n, C, model, notion in itertools.product(sizes, classes, models, notions):
        truth = _truth(model, C, notion, MODELS[model](2, C, 0))
        for seed in range(seeds):
            key = (model, C, n, int(nested), notion, seed)
            if tuple(map(str, key)) not in done:
                tasks.append((model, C, n, nested, notion, seed, truth))
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        jobs = (delayed(run)(*task) for task in tasks)
        for count, rows in enumerate(Parallel(n_jobs=n_jobs, return_as="generator")(jobs), 1):
            writer.writerows(rows)
            file.flush()
            if count % 50 == 0:
                print(f"{count} of {len(tasks)} draws", file=sys.stderr, flush=True)


def table(path):
    """Print bias ± spread of every estimator, and how often the lower bound exceeds the truth."""
    groups: dict = {}
    with path.open(newline="") as file:
        for row in csv.reader(file):
            model, C, n, nested, notion, _, truth, estimator, value = row
            key = (notion, model, int(C), int(n), int(nested))
            group = groups.setdefault(key, {"truth": float(truth)})
            group.setdefault(estimator, []).append(float(value))
    for key in sorted(groups):
        group = groups[key]
        truth = group.pop("truth")
        notion, model, C, n, nested = key
        count = len(group["plug-in"])
        exceed = int(np.sum(np.array(group["lower bound"]) > truth))
        low, se = np.array(group["one-step"]), np.array(group["one-step s.e."])
        covered = np.mean(np.abs(low - truth) <= 1.96 * se)
        print(
            f"\n{notion}, {model}, C = {C}, n = {n}{', nested' if nested else ''}: truth "
            f"{truth:.5f}, {count} draws; lower bound above the truth in {exceed} "
            f"(95 % band: at most {int(binom.ppf(0.975, count, 0.05))}), two-sided coverage "
            f"{covered:.2f}"
        )
        for name, values in group.items():
            if name not in ("one-step s.e.", "lower bound"):
                gap = np.array(values) - truth
                print(
                    f"  {name:24s} bias {gap.mean():+.5f}  spread {gap.std():.5f}  "
                    f"mean absolute error {np.abs(gap).mean():.5f}"
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--classes", nargs="+", type=int, default=[2, 5, 10])
    parser.add_argument("--sizes", nargs="+", type=int, default=[500, 2000, 10_000])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--nested", action="store_true")
    parser.add_argument("--notions", nargs="+", default=["confidence", "canonical"])
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    if options.table:
        table(options.out)
        return
    study(
        options.out,
        options.models,
        options.classes,
        options.sizes,
        options.seeds,
        options.nested,
        options.notions,
        options.n_jobs,
    )


if __name__ == "__main__":
    main()
