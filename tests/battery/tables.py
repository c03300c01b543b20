"""Levels and limits of tables beside those of the samples that they count.

``python tests/battery/tables.py 200 [cell …]`` prints them for as many data sets of each cell and
size. Both see the same samples. Misses are of one-sided 95 % limits, whose truth is known.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from battery import confident, dirichlet, draw_labels, rare_sharp, uniform

from skcal import CalibrationTable, Sample, calibration_error_interval, calibration_test

SIZES = (1000, 10_000)
TRUTH = 1_000_000  # predictions that tell the true error
RESAMPLED = {"n_resamples": 99}


def atoms(rng, n):
    """A quarter of exact 0 and 1."""
    p, drawn = rng.beta(0.4, 0.6, n), rng.random(n)
    return np.where(drawn < 0.15, 0, np.where(drawn > 0.9, 1, p))


def ties(rng, n):
    return rng.integers(0, 21, n) / 20


def calibrated(p):
    return p


def too_low(p):
    return np.minimum(1.2 * p, 1)


def wave(p):
    return np.clip(p**1.1 + 0.03 * np.sin(9 * p), 0, 1) * ((p > 0) & (p < 1)) + (p == 1)


def overconfident(proba):
    """The frequency of class k is that of row k alone: its gap is 0.1 / n_classes - 0.1 p."""
    return 0.9 * proba + 0.1 / proba.shape[1]


def three_classes(rng, n):
    return dirichlet(rng, n, 0.5, 3)


def ten_classes(rng, n):
    return dirichlet(rng, n, 0.3, 10)


#: Name → predictions (rng, n), and what happens how often.
CELLS = {
    "uniform": (uniform, calibrated),
    "rare": (rare_sharp, calibrated),
    "atoms": (atoms, calibrated),
    "ties": (ties, calibrated),
    "3 classes": (three_classes, calibrated),
    "10 classes": (ten_classes, calibrated),
    "10 classes, sure": (confident, calibrated),
    "uniform, off": (uniform, wave),
    "rare, off": (rare_sharp, too_low),
    "atoms, off": (atoms, wave),
    "ties, off": (ties, wave),
    "3 classes, off": (three_classes, overconfident),
    "10 classes, off": (ten_classes, overconfident),
}


def error_of(cell):
    """The true error."""
    predictions, curve = CELLS[cell]
    if curve is calibrated:
        return 0.0
    p = predictions(np.random.default_rng(0), TRUTH)
    return float(np.abs(curve(p) - p).mean())


def intervals(cell, n, seed):
    """The interval of the table and that of the samples."""
    predictions, curve = CELLS[cell]
    rng = np.random.default_rng([seed, n, list(CELLS).index(cell)])
    p = predictions(rng, n)
    y = draw_labels(rng, curve(p))
    notion = "binary" if p.ndim == 1 else "classwise"
    labels = range(2 if p.ndim == 1 else p.shape[1])
    parts = [CalibrationTable(notion, labels=labels), CalibrationTable(notion, labels=labels)]
    for part, rows in zip(parts, np.array_split(np.arange(n), 2), strict=True):
        part.update(y[rows], p[rows])
    both = sum(parts), Sample(y, p, notion=notion, labels=labels)
    # Of one seed, draws for predictions of one law would be alike in all sets.
    pvalues = [calibration_test(each, random_state=seed, **RESAMPLED).pvalue for each in both]
    return [
        calibration_error_interval(each, pvalue=pvalue)
        for each, pvalue in zip(both, pvalues, strict=True)
    ]


def measured(cell, n, n_sets):
    """Of each set and path: rejected, upper and lower limit missed, estimate, low, high.

    The array has the shape (n_sets, 2, 6), tables before samples.
    """
    truth = error_of(cell)
    return np.array(
        [
            [
                (i.is_significant, i.high < truth, i.low > truth, i.estimate, i.low, i.high)
                for i in intervals(cell, n, seed)
            ]
            for seed in range(n_sets)
        ],
        dtype=float,
    )


def row(cell, n, n_sets):
    """A line of the printed table."""
    start = time.process_time()
    values = measured(cell, n, n_sets)
    table, sample = values.transpose(1, 0, 2)
    rates = [
        f"{100 * a:.1f} / {100 * b:.1f}" for a, b in zip(*values[..., :3].mean(0), strict=True)
    ]
    alike = 100 * (table[:, 0] == sample[:, 0]).mean()
    both = (table[:, 4] > 0) & (sample[:, 4] > 0)
    differences = [
        100 * np.abs(table[kept, k] / np.maximum(sample[kept, k], 1e-3) - 1).max(initial=0)
        if k == 4
        else 100 * (np.abs(table[:, k] - sample[:, k]) / sample[:, 5]).max()
        for k, kept in ((3, None), (4, both), (5, None))
    ]
    texts = [cell, n, n_sets, *rates, f"{alike:.1f}", *(f"{d:.1f}" for d in differences)]
    return "  ".join(map(str, texts)) + f"  ({time.process_time() - start:.0f} s)"


def main(n_sets, cells=()):
    print("cell, n, sets; table / samples, %: rejected, upper, lower limits missed; same verdict;")
    print("largest differences, %: estimate (of the upper limit), lower limit, upper limit")
    for n in SIZES:
        for cell in cells or CELLS:
            print(row(cell, n, n_sets), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
