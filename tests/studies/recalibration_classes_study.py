"""The calibration error that the default recalibrator leaves on networks of 100 classes.

A network's logits are those of the truth with wrong weights, wrong biases and a temperature. Maps
are fitted to n samples and judged on 10,000 others: binned ECE (15 bins) of the confidence, log
loss, accuracy, and the share of the samples whose predicted class changes. Run

    python tests/studies/recalibration_classes_study.py --out rows.csv                 # resumes
    python tests/studies/recalibration_classes_study.py --out rows.csv --tables OUT
"""

import argparse
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import softmax
from study_tools import append, kept, mean_and_error, rows_of, write_table

from skcal import Recalibrator, TemperatureScaling
from skcal.metrics import expected_calibration_error
from skcal.recalibration import Identity

SIZES, N_NETWORKS, N_TEST, N_CLASSES, N_FEATURES = (2000, 5000), 2, 10_000, 100, 30


def network(seed, n):
    """Predictions and labels of n samples of a network."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(N_FEATURES, N_CLASSES)) * 4 / np.sqrt(N_FEATURES)
    weights = truth + rng.normal(size=truth.shape) * 1.2 / np.sqrt(N_FEATURES)
    bias, sharpness = rng.normal(size=N_CLASSES) * 0.5, rng.uniform(1.0, 2.0)
    x = rng.normal(size=(n, N_FEATURES)) * rng.gamma(4, 0.25, size=(n, 1)) * 2
    chance = softmax(x @ truth, axis=1)
    y = (chance.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return softmax(sharpness * (x @ weights + bias), axis=1), np.minimum(y, N_CLASSES - 1)


def methods():
    return {
        "raw": Identity(),
        "temperature": TemperatureScaling(),
        "default": Recalibrator(random_state=0),
    }


def batches(done):
    for seed, n in product(range(N_NETWORKS), SIZES):
        P, y = network(seed, n + N_TEST)
        rows = []
        for name, unfitted in methods().items():
            if (str(n), str(seed), name) in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                after = unfitted.fit(P[:n], y[:n]).predict_proba(P[n:])
            labels = y[n:]
            error = expected_calibration_error(labels, after, notion="confidence")
            loss = -np.log(after[np.arange(N_TEST), labels]).mean()
            right = (after.argmax(axis=1) == labels).mean()
            moved = (after.argmax(axis=1) != P[n:].argmax(axis=1)).mean()
            rows.append((n, seed, name, error, loss, right, moved))
        yield rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--before", type=Path, help="rows of an earlier version")
    parser.add_argument("--tables", type=Path)
    options = parser.parse_args()
    if options.tables is None:
        append(options.out, batches(kept(options.out, 3)))
        return
    found = {}
    for path, suffix in ((options.out, ""), (options.before, ", before")):
        for n, _, name, *values in rows_of(path) if path else ():
            key = n, name + suffix * (name == "default")
            found.setdefault(key, []).append([float(value) for value in values])
    rows = []
    for (n, name), values in sorted(found.items(), key=lambda item: (int(item[0][0]), item[0][1])):
        error, loss, right, moved = np.transpose(values)
        mean, spread = mean_and_error(error)
        shown = f"{mean:.4f} ± {spread:.4f}", f"{loss.mean():.4f}", f"{right.mean():.3f}"
        rows.append([n, name, *shown, f"{100 * moved.mean():.1f} %"])
    header = ["n", "method", "binned ECE ± s.e.", "log loss", "accuracy", "classes changed"]
    write_table(options.tables, "recalibration_classes", header, rows)


if __name__ == "__main__":
    main()
