"""Levels and limits of tables beside those of the samples that they count.

``python tests/battery/tables.py 200 [size,size [cell …]]`` prints them for as many data sets of
each cell and size. Both see the same samples. Misses are of one-sided 95 % limits, whose truth is
known.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import NamedTuple

import numpy as np
from battery import confident, dirichlet, draw_labels, rare_sharp, uniform
from scipy.stats import norm

from skcal import CalibrationTable, Sample, calibration_error_interval, calibration_test

SIZES = (1000, 10_000)
TRUTH = 1_000_000  # predictions that tell the true error
RESAMPLES = 99  # at least; 20 a class, so that p-values adjusted for all classes reach 5 %


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


def labels(rng, n):
    """Three labels, of which each may be 1 or 0."""
    return rng.beta(0.6, 1.4, (n, 3))


three, five, ten = (
    partial(dirichlet, concentration=concentration, n_classes=n_classes)
    for concentration, n_classes in ((0.5, 3), (0.3, 5), (0.3, 10))
)


class Cell(NamedTuple):
    """Predictions (rng, n), what happens how often, what is asked, and what samples are beside."""

    predictions: object
    curve: object
    notion: str = "binary"
    beside: str = ""


#: Each is calibrated, and off.
CELLS = {
    name + off: Cell(predictions, (calibrated, curve)[bool(off)], *more)
    for off in ("", ", off")
    for name, predictions, curve, *more in [
        ("uniform", uniform, wave),
        ("rare", rare_sharp, too_low),
        ("atoms", atoms, wave),
        ("ties", ties, wave),
        ("weights", uniform, wave, "binary", "weights"),
        ("groups", uniform, wave, "binary", "groups"),
        ("shares", uniform, wave, "binary", "shares"),
        ("3 classes", three, overconfident, "classwise"),
        ("5 classes", five, overconfident, "classwise"),
        ("10 classes", ten, overconfident, "classwise"),
        ("10 classes, sure", confident, overconfident, "classwise"),
        ("3 classes, weights", three, overconfident, "classwise", "weights"),
        ("top-label", ten, overconfident, "top-label"),
        ("multi-label", labels, wave, "multi-label"),
    ]
}
_VOTES, _SIZE, _SHARED = 5, 4, 0.3  # of a sample; of a group, and its part of the variance


def error_of(name):
    """The true error."""
    cell = CELLS[name]
    if cell.curve is calibrated:
        return 0.0
    p = cell.predictions(np.random.default_rng(0), TRUTH)
    gap = np.abs(cell.curve(p) - p)
    if cell.notion == "top-label":
        gap = np.take_along_axis(gap, p.argmax(axis=1)[:, None], axis=1)
    return float(gap.mean())


def drawn(name, n, seed):
    """Labels and predictions, weights or groups, and the classes."""
    cell = CELLS[name]
    rng = np.random.default_rng([seed, n, list(CELLS).index(name)])
    p, more = cell.predictions(rng, n), {}
    truth, columns = cell.curve(p), 2 if p.ndim == 1 else p.shape[1]
    if cell.notion == "multi-label":
        return (rng.random(p.shape) < truth).astype(int), p, {}, None
    if cell.beside == "shares":
        share = rng.binomial(_VOTES, truth) / _VOTES
        return np.column_stack([1 - share, share]), p, {}, range(2)
    if cell.beside == "groups":
        more["groups"] = rng.permutation(n) // _SIZE
        common = rng.standard_normal(n)[more["groups"]]
        each = np.sqrt(_SHARED) * common + np.sqrt(1 - _SHARED) * rng.standard_normal(n)
        return (norm.cdf(each) < truth).astype(int), p, more, range(2)
    if cell.beside == "weights":
        more["sample_weight"] = np.exp(0.7 * rng.standard_normal(n))
    return draw_labels(rng, truth), p, more, range(columns)


def intervals(name, n, seed):
    """The interval of the table and that of the samples."""
    y, p, more, classes = drawn(name, n, seed)
    asked = {"notion": CELLS[name].notion, "labels": classes}
    parts = [CalibrationTable(**asked), CalibrationTable(**asked)]
    for part, rows in zip(parts, np.array_split(np.arange(n), 2), strict=True):
        part.update(y[rows], p[rows], **{each: values[rows] for each, values in more.items()})
    both = sum(parts), Sample(y, p, **asked, **more)
    # Of one seed, draws for predictions of one law would be alike in all sets.
    n_resamples = max(RESAMPLES, 20 * (p.shape[1] if p.ndim == 2 else 1) - 1)
    pvalues = [
        calibration_test(each, random_state=seed, n_resamples=n_resamples).pvalue for each in both
    ]
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


def main(n_sets, sizes=SIZES, cells=()):
    print("cell, n, sets; table / samples, %: rejected, upper, lower limits missed; same verdict;")
    print("largest differences, %: estimate (of the upper limit), lower limit, upper limit")
    for n in sizes:
        for cell in cells or CELLS:
            print(row(cell, n, n_sets), flush=True)


if __name__ == "__main__":
    sizes = map(int, sys.argv[2].split(",")) if len(sys.argv) > 2 else SIZES
    main(int(sys.argv[1]), sizes, sys.argv[3:])
