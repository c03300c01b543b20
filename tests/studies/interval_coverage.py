"""How often do bootstrap intervals hold the truth? Coverage on models M1-M3 (slow).

For each model of Widmann et al. (2019), many data sets are drawn, and 95 % intervals of four
measures compared with the measure's own population value: that of the same bins, width or kernel
on a large sample with the labels replaced by their true probabilities. Run

    python tests/studies/interval_coverage.py --n-jobs 2      # half an hour
"""

import argparse

import numpy as np
from joblib import Parallel, delayed

from skcal.datasets import make_dirichlet
from skcal.metrics import (
    bootstrap_interval,
    expected_calibration_error,
    smooth_calibration_error,
    squared_kernel_calibration_error,
)

MODELS = ("M1", "M2", "M3")
MEASURES = {
    "ECE": (expected_calibration_error, {}),
    "debiased squared ECE": (
        expected_calibration_error,
        {"norm": 2, "debias": True, "root": False},
    ),
    "smooth ECE": (smooth_calibration_error, {}),
    "SKCE": (squared_kernel_calibration_error, {"bandwidth": 0.2}),
}


def truths(model, n_classes, n_draws=1_000_000):
    """Population values of the measures of confidences."""
    proba = make_dirichlet(n_draws, n_classes=n_classes, model="M1", random_state=1).proba
    top, correct = proba.max(axis=1), proba.max(axis=1)
    if model == "M2":
        correct = 0.5 * top + 0.5 * (proba.argmax(axis=1) == 0)
    elif model == "M3":
        correct = np.full(n_draws, 1 / n_classes)
    # A weight for each outcome stands for the expectation over labels.
    y = np.repeat([1, 0], n_draws)
    weight = np.concatenate([correct, 1 - correct])
    p = np.concatenate([top, top])
    return {
        name: metric(y, p, sample_weight=weight, **{**params, "debias": False})
        if "debias" in params
        else metric(y, p, sample_weight=weight, **params)
        for name, (metric, params) in MEASURES.items()
    }


def covered(model, n, n_classes, seed, truth):
    """Whether each interval holds the truth."""
    data = make_dirichlet(n, n_classes=n_classes, model=model, random_state=seed)
    found = {}
    for name, (metric, params) in MEASURES.items():
        percentile = bootstrap_interval(
            metric,
            data.labels,
            data.proba,
            notion="confidence",
            n_resamples=399,
            method="percentile",
            random_state=seed,
            **params,
        )
        low, high, twice = percentile.low, percentile.high, 2 * percentile.estimate
        found[name, "percentile"] = low <= truth[name] <= high
        found[name, "basic"] = twice - high <= truth[name] <= twice - low
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[250, 1000])
    parser.add_argument("--n-classes", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    for model in MODELS:
        truth = truths(model, options.n_classes)
        for n in options.sizes:
            found = Parallel(n_jobs=options.n_jobs)(
                delayed(covered)(model, n, options.n_classes, seed, truth)
                for seed in range(options.seeds)
            )
            print(f"\n{model}, n = {n}, {options.seeds} data sets")
            for key in found[0]:
                rate = np.mean([draw[key] for draw in found])
                print(f"  {key[0]:22s} {key[1]:12s} {rate:6.1%}   truth {truth[key[0]]:.5f}")


if __name__ == "__main__":
    main()
