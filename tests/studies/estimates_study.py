"""How estimates scatter around the truth: Figure 1 of Widmann et al. (2019).

Data sets of 250 samples of 2, 10 and 100 classes from M1 (calibrated), M2 (half of the labels are
one class) and M3 (labels at random): two estimators of ECE and three of SKCE, as in the paper, and
skcal's ECE without bins of the first data sets. Run

    python tests/studies/estimates_study.py --tables OUT     # three minutes; the paper drew 10,000
"""

import itertools
import warnings
from functools import partial

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial.distance import pdist, squareform
from study_tools import command_line, figure, mean_and_error, save, write_table

from skcal.datasets import make_dirichlet
from skcal.metrics import (
    cross_fitted_calibration_error,
    expected_calibration_error,
    squared_kernel_calibration_error,
)

N_CLASSES, MODELS, N_SAMPLES = (2, 10, 100), ("M1", "M2", "M3"), 250
SKCE = squared_kernel_calibration_error
ESTIMATORS = {
    "ECE, uniform": partial(expected_calibration_error, n_bins=10),
    "ECE, data-dependent": partial(
        expected_calibration_error, strategy="median-variance", min_samples=10
    ),
    "SKCE, biased": partial(SKCE, method="biased"),
    "SKCE, unbiased": partial(SKCE, method="unbiased"),
    "SKCE, linear": partial(SKCE, method="linear"),
    "ECE, without bins": partial(cross_fitted_calibration_error, kind="l1", random_state=0),
}


def estimates(n_classes, model, seed, names):
    """The estimates on one data set."""
    data = make_dirichlet(N_SAMPLES, n_classes=n_classes, model=model, random_state=seed)
    options = {"notion": "canonical", "labels": range(n_classes)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a hundred classes are not all seen
        return [ESTIMATORS[name](data.labels, data.proba, **options) for name in names]


def true_skce(n_classes, model, n=4000):
    """The mean over pairs of k(p, p') ⟨q - p, q' - p'⟩; the width is the median distance."""
    proba = make_dirichlet(n, n_classes=n_classes, model="M1", random_state=0).proba
    truth = {
        "M1": proba,
        "M2": 0.5 * proba + 0.5 * np.eye(n_classes)[0],
        "M3": np.full_like(proba, 1 / n_classes),
    }
    gap = truth[model] - proba
    distances = pdist(proba, "cityblock") / 2
    kernel = squareform(np.exp(-distances / np.median(distances)))  # zero on the diagonal
    return np.sum((kernel @ gap) * gap) / (n * (n - 1))


def study(n_sets, n_slow, n_jobs):
    """Yield (classes, model, estimator, truth, estimates)."""
    *fast, slow = ESTIMATORS
    for n_classes, model in itertools.product(N_CLASSES, MODELS):
        one = partial(delayed(estimates), n_classes, model)
        drawn = Parallel(n_jobs)(one(seed, fast) for seed in range(n_sets))
        others = Parallel(n_jobs)(one(seed, [slow]) for seed in range(n_slow))
        data = make_dirichlet(1, n_classes=n_classes, model=model)
        variation, skce = data.true_total_variation, true_skce(n_classes, model)
        for name, values in zip(fast, np.transpose(drawn), strict=True):
            yield n_classes, model, name, skce if "SKCE" in name else variation, values
        yield n_classes, model, slow, variation, np.ravel(others)


def draw(rows, tables):
    """A panel for each estimator and number of classes: histograms, their means, the truths."""
    drawn, axes = figure(len(ESTIMATORS), len(N_CLASSES), size=(8.4, 10.5))
    colours = dict(zip(MODELS, ("#0072B2", "#D55E00", "#009E73"), strict=True))
    for n_classes, model, name, truth, values in rows:
        ax = axes[list(ESTIMATORS).index(name), N_CLASSES.index(n_classes)]
        colour = colours[model]
        if name == list(ESTIMATORS)[-1]:  # few draws
            ax.plot(values, np.full(len(values), 0.5), "o", color=colour, markersize=3.5)
        else:
            counts, edges = np.histogram(values, bins=20)
            look = {"fill": True, "color": colour, "alpha": 0.45, "label": model}
            ax.stairs(counts / counts.max(), edges, **look)
        ax.axvline(values.mean(), color=colour, linestyle="--", linewidth=1.3)
        ax.axvline(truth, color=colour, linewidth=1.8)
        ax.set_yticks([])
        ax.tick_params(labelsize="small")
    for ax, n_classes in zip(axes[0], N_CLASSES, strict=True):
        ax.set_title(f"C = {n_classes}", fontsize="medium")
    for row, name in zip(axes, ESTIMATORS, strict=True):
        row[0].set_ylabel(name.replace(", ", ",\n"))
        for ax in row if "ECE" in name and "SK" not in name else ():
            ax.set_xlim(-0.02, 1.02)
    save(drawn, tables, "estimates", axes[0, 0])


def main():
    parser = command_line(__doc__, out=False, required=True)
    parser.add_argument("--sets", type=int, default=250)
    parser.add_argument("--slow-sets", type=int, default=5, help="of the estimate without bins")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    rows = list(study(options.sets, options.slow_sets, options.n_jobs))
    lines = []
    for name in ESTIMATORS:
        for n_classes in N_CLASSES:
            line = [name, n_classes]
            for model in MODELS:
                [(truth, values)] = [row[3:] for row in rows if row[:3] == (n_classes, model, name)]
                shown = "{:.4f} ± {:.4f}" if "SK" in name else "{:.3f} ± {:.3f}"
                line += [f"{truth:.4f}"[: 6 if "SK" in name else 5]]
                line += [shown.format(*mean_and_error(values))]
            lines.append(line)
    header = ["estimator", "C"]
    header += [text for model in MODELS for text in (f"{model}: truth", "mean estimate")]
    write_table(options.tables, "estimates", header, lines)
    draw(rows, options.tables)


if __name__ == "__main__":
    main()
