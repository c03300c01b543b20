"""The class-wise calibration error, in which classes share a curve, beside other estimators (slow).

Predictions of 3, 10 and 100 classes are calibrated, or wrong in ways of which the true error is
known. Three columns are estimates of skcal: as it is, with a higher prior probability of
calibrated, and the mean of the errors of the classes, each estimated from its own column. Run

    python tests/studies/class_errors_study.py --out rows.csv                # resumes
    python tests/studies/class_errors_study.py --out rows.csv --tables doc/evidence
"""

import warnings
from functools import cache
from unittest.mock import patch

import numpy as np
from laws import labels_of, same
from scipy.special import softmax
from study_tools import append, command_line, kept, rows_of, write_table

from skcal.metrics import (
    calibration_error,
    expected_calibration_error,
    gap_models,
    smooth_calibration_error,
)

HIGHER = 0.25  # prior probability that all gaps are 0
N_TRUTH = 200_000
HEADER = ["predictions", "classes", "n", "truth", "calibration error", "prior 0.25"]
HEADER += ["each class alone", "smooth ECE", "15 bins", "data sets"]


def dirichlet(rng, n, n_classes):
    return rng.dirichlet(np.full(n_classes, 0.4), n)


def network(rng, n, n_classes):
    """Logits are normal, and larger for one class of each sample."""
    logits = 2.4 * rng.normal(size=(n, n_classes))
    logits[np.arange(n), rng.integers(0, n_classes, n)] += 4
    return softmax(logits, axis=1)


def rows_sum_to_1(q):
    return q / q.sum(axis=1, keepdims=True)


def power(exponent):
    """Predictions are too extreme if the exponent is below 1."""
    return lambda p: rows_sum_to_1(np.maximum(p, 1e-300) ** exponent)


def noise(share):
    return lambda p: (1 - share) * p + share / p.shape[1]


def odds_in_turn(factor):
    """Odds are off by a factor, up and down in turn."""
    return lambda p: rows_sum_to_1(p * np.resize([factor, 1 / factor], p.shape[1]))


def one_class(curve):
    """The first class is off, and the others keep their proportions."""

    def chances(p):
        q = p.copy()
        q[:, 0] = curve(p[:, 0])
        q[:, 1:] *= ((1 - q[:, 0]) / np.maximum(1 - p[:, 0], 1e-12))[:, None]
        return rows_sum_to_1(q)

    return chances


def one_of_odds(factor):
    return one_class(lambda p: factor * p / (1 - p + factor * p))


#: Predictions, the chances of the classes, numbers of classes, of samples and of data sets.
CELLS = {
    "calibrated, 3": (dirichlet, same, 3, 1000, 80),
    "calibrated, 10": (dirichlet, same, 10, 1000, 120),
    "calibrated, 10 of a network": (network, same, 10, 1000, 120),
    "calibrated, 100": (dirichlet, same, 100, 2000, 16),
    "overconfident, power 0.93": (dirichlet, power(0.93), 10, 1000, 80),
    "overconfident, power 0.85": (network, power(0.85), 10, 1000, 40),
    "noise of 5 %": (dirichlet, noise(0.05), 10, 1000, 40),
    "odds times or by 1.1": (dirichlet, odds_in_turn(1.1), 10, 1000, 80),
    "odds times or by 1.3": (dirichlet, odds_in_turn(1.3), 10, 1000, 40),
    "one class, odds times 1.35": (dirichlet, one_of_odds(1.35), 10, 1000, 80),
    "one class, odds times 3": (dirichlet, one_of_odds(3), 10, 1000, 40),
    "one class, p to the power 1.3": (dirichlet, one_class(lambda p: p**1.3), 10, 1000, 80),
}


@cache
def truth_of(cell):
    draw, chances, n_classes, _, _ = CELLS[cell]
    p = draw(np.random.default_rng(1), N_TRUTH, n_classes)
    return float(np.abs(chances(p) - p).mean())


def row_for(cell, seed):
    """The estimates of a data set."""
    draw, chances, n_classes, n, _ = CELLS[cell]
    rng = np.random.default_rng([seed, list(CELLS).index(cell)])
    p = draw(rng, n, n_classes)
    y = labels_of(chances(p), rng)
    options = {"notion": "classwise", "labels": range(n_classes)}
    found = [calibration_error(y, p, **options)]
    with patch.object(gap_models, "_CALIBRATED", HIGHER):
        found.append(calibration_error(y, p, **options))
    alone = [calibration_error(y == k, p[:, k], labels=[False, True]) for k in range(n_classes)]
    found.append(np.mean(alone))
    for metric in (smooth_calibration_error, expected_calibration_error):
        found.append(metric(y, p, average="macro", **options))
    return [cell, seed, *found]


def tables(path, folder):
    """Mean absolute errors times 10,000, with the mean estimate in parentheses."""
    table = []
    for cell, (_, _, n_classes, n, _) in CELLS.items():
        found = np.array([row[2:] for row in rows_of(path) if row[0] == cell], dtype=float) * 1e4
        if len(found):
            truth = 1e4 * truth_of(cell)
            errors, means = np.abs(found - truth).mean(axis=0), found.mean(axis=0)
            texts = [f"{error:.1f} ({mean:.1f})" for error, mean in zip(errors, means, strict=True)]
            table.append([cell, n_classes, n, f"{truth:.1f}", *texts, len(found)])
    write_table(folder, "accuracy_classes", HEADER, table)


def main():
    parser = command_line(__doc__)
    options = parser.parse_args()
    if options.tables:
        tables(options.out, options.tables)
        return
    warnings.simplefilter("ignore")
    done = kept(options.out, 2)
    for cell, (*_, n_sets) in CELLS.items():
        seeds = [seed for seed in range(n_sets) if (cell, str(seed)) not in done]
        append(options.out, ([row_for(cell, seed)] for seed in seeds))


if __name__ == "__main__":
    main()
