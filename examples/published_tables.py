"""The printed tables of two papers beside what skcal finds on the same predictions.

The predictions are those that Widmann, Lindsten & Zachariah (NeurIPS 2019) and Gruber & Bach (TMLR
2025) published with their code. They are not part of skcal: pass the folder that holds

    cifar10/NAME.npz       proba (10,000, 10) and labels: resnet18, densenet121, vgg16_bn, googlenet
    cifar10/published.csv  a line for each network with the printed figures
    gruber_bach/NAME.npz   confidence and correct of densenet40_c10 and resnet110_c100

``python examples/published_tables.py FOLDER`` prints both tables and what skcal's default search
says; four minutes on one core, most of them for the canonical searches. With a second argument,
the name of a picture, the table of Gruber & Bach is drawn.
"""

import csv
import sys
import time
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.model_selection import KFold

from skcal import CalibrationErrorSearchCV
from skcal.hypothesis_tests import monte_carlo_test, skce_test
from skcal.metrics import expected_calibration_error, squared_kernel_calibration_error

# Root mean validation risk × 100 as printed, and its standard error.
GRUBER_BACH = {
    "densenet40_c10": {
        "Binning": (6.12, 0.12),
        "DirichletKernelDensity": (13.7, 0.27),
        "TwoStepKernelRidge": (6.13, 0.12),
        "KroneckerKernelRidge": (6.11, 0.12),
    },
    "resnet110_c100": {
        "Binning": (18.61, 0.42),
        "DirichletKernelDensity": (19.69, 0.47),
        "TwoStepKernelRidge": (18.59, 0.42),
        "KroneckerKernelRidge": (18.61, 0.43),
    },
}


def full_matrix_median(proba):
    """Widmann's width: the median of all n² total variation distances, the zero diagonal too."""
    distances, n = pdist(proba, "cityblock"), len(proba)
    middle = [(n * n // 2 - 1 - n) // 2, (n * n // 2 - n) // 2]
    distances.partition(middle)
    return distances[middle].mean() / 2


def widmann(proba, labels):
    """Yield the names of the printed figures and what is found."""
    options = {"notion": "canonical"}
    kernel = {**options, "bandwidth": full_matrix_median(proba)}
    bins = {**options, "strategy": "median-variance", "min_samples": 100}

    def skce(method):
        return squared_kernel_calibration_error(labels, proba, method=method, **kernel)

    yield "ECE_uniform", expected_calibration_error(labels, proba, n_bins=10, **options)
    yield "ECE_dynamic", expected_calibration_error(labels, proba, **bins)
    yield "SKCEb_median", skce("biased")
    yield "SKCEuq_median", skce("unbiased")
    yield "SKCEul_median", skce("linear")
    linear = {**kernel, "block_size": 2, "variance": "sample"}
    test = skce_test(labels, proba, method="block", **linear)
    yield "pvalue_SKCEul_median_asymptotic", test.pvalue
    test = monte_carlo_test(labels, proba, n_bins=10, random_state=0, **options)
    yield "pvalue_ECE_uniform", test.pvalue


def print_widmann(folder):
    with open(folder / "published.csv", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        with np.load(folder / f"{line['model']}.npz") as data:
            proba, labels = data["proba"], data["labels"]
        print(f"\n{line['model']:32s} {'printed':>14s} {'skcal':>14s}")
        for name, found in widmann(proba, labels):
            print(f"{name:32s} {float(line[name]):14.8g} {found:14.8g}")
        for notion in ("confidence", "canonical"):
            start = time.perf_counter()
            search = CalibrationErrorSearchCV(notion=notion, random_state=0).fit(proba, labels)
            without_bins = search.error("l1")
            print(
                f"default search, {notion}: error {search.calibration_error_:.4f} (root of "
                f"{search.squared_error_:.5f} ± {search.standard_error_:.5f}), ECE without bins "
                f"{without_bins.estimate:.4f} ± {without_bins.standard_error:.4f}; "
                f"{time.perf_counter() - start:.0f} s"
            )


def root_risk(family):
    """100 × mean of the folds' root risks and its standard error, as printed in the paper."""
    splits = [family.results[f"split{k}_test_score"][family.best] for k in range(5)]
    roots = 100 * np.sqrt(-np.array(splits))
    return roots.mean(), roots.std(ddof=1) / np.sqrt(len(roots))


def gruber_bach(folder):
    """Print the table; return (network, estimator, printed, found) of its rows."""
    order = np.random.RandomState(0).choice(10_000, 10_000, replace=False)
    options = {"cv": KFold(5), "outer_cv": [(order[:8000], order[8000:])]}
    rows = []
    for network, printed in GRUBER_BACH.items():
        with np.load(folder / f"{network}.npz") as data:
            confidence, correct = data["confidence"].astype(np.float64), data["correct"]
        print(f"\n{network:32s} {'printed':>13s} {'skcal':>15s} {'time':>6s}")
        for candidates in ("gruber-bach", None):
            start = time.perf_counter()
            search = CalibrationErrorSearchCV(candidates, "binary", random_state=0, **options)
            search.fit(confidence, correct.astype(int))
            seconds = time.perf_counter() - start
            for family in search.families_ if candidates else [search.best_family_]:
                paper = printed.get(family.name) if candidates else None
                name = family.name if candidates else f"default search ({family.name})"
                found = root_risk(family)
                shown = "{:6.2f} ± {:4.2f}".format(*paper) if paper else "-"
                value = "{:6.3f} ± {:5.3f}".format(*found)
                print(f"{name:32s} {shown:>13s} {value:>15s} {seconds:5.0f} s")
                rows.append((network, name, paper, found))
        for family, other in zip(search.families_, search.comparisons_, strict=True):
            if family.name in printed:
                print(
                    f"  risk of {family.name} above the default's: {other.difference:.2e} ± "
                    f"{other.standard_error:.1e}"
                )
    return rows


def draw(rows, path):
    """Dots with error bars are skcal's, ticks the printed values."""
    import matplotlib.pyplot as plt

    networks = list(dict.fromkeys(row[0] for row in rows))
    figure, axes = plt.subplots(1, len(networks), figsize=(9, 2.8), layout="constrained")
    for ax, network in zip(axes, networks, strict=True):
        own = [row[1:] for row in rows if row[0] == network]
        for place, (_, printed, (risk, error)) in enumerate(own):
            ax.errorbar(risk, place, xerr=error, fmt="o", color="#0072B2", label="skcal")
            if printed:
                ax.plot(printed[0], place, "|", color="black", markersize=16, label="printed")
        names = [name for name, *_ in own]
        ax.set_yticks(range(len(own)), names if ax is axes[0] else [""] * len(own))
        ax.set(title=network, xlabel="root risk × 100", ylim=(len(own) - 0.5, -0.5))
    handles, labels = axes[0].get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    axes[1].legend(shown.values(), shown.keys(), fontsize="small", loc="lower right")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    table = gruber_bach(Path(sys.argv[1]) / "gruber_bach")
    if len(sys.argv) == 3:
        draw(table, sys.argv[2])
    print_widmann(Path(sys.argv[1]) / "cifar10")
