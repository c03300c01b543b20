"""The printed tables of two papers beside what skcal finds on the same predictions.

The predictions are those that Widmann, Lindsten & Zachariah (NeurIPS 2019) and Gruber & Bach (TMLR
2025) published with their code. They are not part of skcal: pass the folder that
``published_inputs.py`` makes of the files that they published. It holds

    cifar10/NAME.npz       proba (10,000, 10) and labels: resnet18, densenet121, vgg16_bn, googlenet
    cifar10/published.csv  a line for each network with the printed figures
    gruber_bach/NAME.npz   confidence and correct of densenet40_c10 and resnet110_c100

Run

    python tests/studies/published_tables.py networks FOLDER --tables OUT    # Widmann et al.
    python tests/studies/published_tables.py risks FOLDER --tables OUT       # Gruber & Bach
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.model_selection import KFold
from study_tools import dots, figure, mean_and_error, save, write_table

from skcal import CalibrationErrorSearchCV
from skcal.hypothesis_tests import monte_carlo_test, skce_test
from skcal.metrics import expected_calibration_error, squared_kernel_calibration_error
from skcal.model_selection.candidates import resolve_candidates
from skcal.notions import NOTIONS

FIGURES = {  # a name for each column of published.csv, its factor and how it is shown
    "ECE_uniform": ("ECE, 10 bins a class", 1, ".9f"),
    "ECE_dynamic": ("ECE, median-variance bins", 1, ".9f"),
    "SKCEb_median": ("SKCE × 10⁴, biased", 1e4, ".7f"),
    "SKCEuq_median": ("SKCE × 10⁴, unbiased", 1e4, ".7f"),
    "SKCEul_median": ("SKCE × 10⁴, linear", 1e4, ".7f"),
    "pvalue_SKCEb_median_distribution_free": ("p, biased SKCE, distribution-free", 1, ".6f"),
    "pvalue_SKCEul_median_asymptotic": ("p, linear SKCE, asymptotic", 1, ".6f"),
    "pvalue_SKCEuq_median_asymptotic": ("p, unbiased SKCE, resampled", 1, ".3f"),
    "pvalue_ECE_uniform": ("p, ECE, resampled", 1, ".3f"),
}
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
# Mean validation risks that their code prints for resnet18, the first network of the other paper.
RESNET18 = {
    "confidence": {
        "Binning": 0.0041442,
        "DirichletKernelDensity": 0.0041186,
        "TwoStepKernelRidge": 0.0041159,
        "KroneckerKernelRidge": 0.0041138,
    },
    "canonical": {
        "DirichletKernelDensity": 0.0029699,
        "TwoStepKernelRidge": 0.0029592,
        "KroneckerKernelRidge": 0.0029615,
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

    def test(**changed):
        return skce_test(labels, proba, **{**kernel, "random_state": 0, **changed}).pvalue

    yield "ECE_uniform", expected_calibration_error(labels, proba, n_bins=10, **options)
    yield "ECE_dynamic", expected_calibration_error(labels, proba, **bins)
    yield "SKCEb_median", skce("biased")
    yield "SKCEuq_median", skce("unbiased")
    yield "SKCEul_median", skce("linear")
    free = {"method": "distribution-free", "estimator": "biased"}
    yield "pvalue_SKCEb_median_distribution_free", test(**free)
    linear = {"method": "block", "block_size": 2, "variance": "sample"}
    yield "pvalue_SKCEul_median_asymptotic", test(**linear)
    yield "pvalue_SKCEuq_median_asymptotic", test(method="asymptotic")
    result = monte_carlo_test(labels, proba, n_bins=10, random_state=0, **options)
    yield "pvalue_ECE_uniform", result.pvalue


def networks(folder, tables):
    """Printed figures beside ours, and what the default search says."""
    with open(folder / "published.csv", encoding="utf-8") as file:
        printed = {line["model"]: line for line in csv.DictReader(file)}
    found, errors = {}, {}
    for name in printed:
        with np.load(folder / f"{name}.npz") as data:
            proba, labels = data["proba"], data["labels"]
        found[name] = dict(widmann(proba, labels))
        for notion in ("confidence", "canonical"):
            search = CalibrationErrorSearchCV(notion=notion, random_state=0).fit(proba, labels)
            bound = np.sqrt(max(search.lower_confidence_bound(), 0))
            errors[name, notion] = search, search.error("l1"), bound
    rows = []
    for column, (title, factor, form) in FIGURES.items():
        both = (
            [f"{factor * float(line[column]):{form}}" for line in printed.values()],
            [f"{factor * found[name][column]:{form}}" for name in printed],
        )
        rows += [[title, "printed", *both[0]], ["", "skcal", *both[1]]]
    write_table(tables, "networks", ["", "", *printed], rows)
    rows = [
        [
            *key,
            f"{search.squared_error_:.5f} ± {search.standard_error_:.5f}",
            f"{search.rms_calibration_error_:.4f}",
            f"{bound:.4f}",
            f"{ece.estimate:.4f} ± {ece.standard_error:.4f}",
        ]
        for key, (search, ece, bound) in errors.items()
    ]
    header = ["network", "notion", "squared error", "its root", "at least, 95 %", "ECE"]
    write_table(tables, "networks_errors", header, rows)
    draw_networks(printed, errors, tables)


def draw_networks(printed, errors, tables):
    """ECE without bins beside the printed ECE of the whole vectors."""
    drawn, axes = figure(1, 1, size=(7.2, 2.9))
    series = {}
    for notion in ("canonical", "confidence"):
        parts = [errors[name, notion][1] for name in printed]
        pair = [part.estimate for part in parts], [part.standard_error for part in parts]
        series[f"skcal, without bins, {notion}"] = pair
    ticks = {
        "printed, 10 bins a class": [float(line["ECE_uniform"]) for line in printed.values()],
        "printed, median-variance": [float(line["ECE_dynamic"]) for line in printed.values()],
    }
    dots(axes[0, 0], list(printed), series, ticks, spread=0.3)
    axes[0, 0].set(xlabel="ECE with its standard error", xlim=(0, None))
    drawn.legend(loc="outside right center", fontsize="small", frameon=False)
    save(drawn, tables, "networks")


def of_folds(family, root):
    """The mean over folds of the risks × 10⁴, or of their roots × 100, and its standard error."""
    splits = -family.split_scores[family.best]
    return mean_and_error(100 * np.sqrt(splits) if root else 1e4 * np.array(splits))


def published_and_default(notion, n_classes, X, y):
    """One search among the published candidates, which come first, and the default ones."""
    order = np.random.RandomState(0).choice(len(y), len(y), replace=False)
    n_search = int(0.8 * len(y))
    space = NOTIONS[notion], n_classes, 0.8 * n_search
    published = resolve_candidates("gruber-bach", *space)
    search = CalibrationErrorSearchCV(
        [*published, *resolve_candidates("recommended", *space)],
        notion,
        labels=range(n_classes),
        cv=KFold(5),
        outer_cv=[(order[:n_search], order[n_search:])],
        random_state=0,
    )
    return search.fit(X, y), len(published)


def problems(folder):
    """Yield a title, whether risks are roots, what is printed, and the arguments of a search."""
    for network, printed in GRUBER_BACH.items():
        with np.load(folder / "gruber_bach" / f"{network}.npz") as data:
            X, y = data["confidence"].astype(np.float64), data["correct"].astype(int)
        yield network, True, printed, ("binary", 2, X, y)
    with np.load(folder / "cifar10" / "resnet18.npz") as data:
        X, y = data["proba"], data["labels"]
    for notion, printed in RESNET18.items():
        pairs = {name: (1e4 * risk, np.nan) for name, risk in printed.items()}
        yield f"resnet18, {notion}", False, pairs, (notion, 10, X, y)


def keep_in_view(ax, names, low, high, ticks):
    """Limit the axis, and write what lies beyond it."""
    ax.set_xlim(low, high)
    for place in np.flatnonzero(ticks > high):
        text = f"published: {ticks[place]:.1f} →"
        ax.text(high, place - 0.28, text, ha="right", va="center", fontsize="small")


def risks(folder, tables):
    """The confidence table of Gruber & Bach, and both of what their code finds on resnet18."""
    drawn, axes = figure(2, 2, size=(9, 5))
    rows = {True: [], False: []}
    for ax, (title, root, printed, arguments) in zip(axes.flat, problems(folder), strict=True):
        search, n_published = published_and_default(*arguments)
        form = ("{:.2f}", "{:.3f}") if root else ("{:.3f}", "{:.3f}")
        names, values = [], []
        paired = zip(search.families_, search.comparisons_, strict=True)
        for place, (family, other) in enumerate(paired):
            own = place < n_published
            if own or family is search.best_family_:
                found = of_folds(family, root)
                paper = printed.get(family.name, (np.nan, np.nan)) if own else (np.nan, np.nan)
                shown = " ± ".join(form[0].format(v) for v in paper if np.isfinite(v)) or "–"
                z = other.difference / other.standard_error if own else np.nan
                gap = f"{1e4 * other.difference:.3f} ± {1e4 * other.standard_error:.3f}"
                name = family.name if own else f"default: {family.name}"
                value = "{0} ± {0}".format(form[1]).format(*found)
                line = [title, name, shown, value, *([gap, f"{z:.1f}"] if own else ["–", "–"])]
                rows[root].append(line)
                names.append(name)
                values.append((*found, paper[0]))
        means, errors, ticks = np.transpose(values)
        dots(ax, names, {"skcal": (means, errors)}, {"published": ticks})
        keep_in_view(ax, names, (means - 3 * errors).min(), (means + 3 * errors).max(), ticks)
        ax.set(title=title, xlabel="root risk × 100" if root else "risk × 10⁴")
    handles = axes[0, 0].get_legend_handles_labels()
    drawn.legend(*handles, loc="outside lower center", ncols=2, frameon=False)
    header = ["data", "estimator", "published", "skcal", "risk above the default's × 10⁴", "ratio"]
    write_table(tables, "risks", header, rows[True])
    write_table(tables, "risks_resnet18", header, rows[False])
    save(drawn, tables, "risks")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=["networks", "risks"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", type=Path, required=True, help="where tables are written")
    options = parser.parse_args()
    if options.study == "networks":
        networks(options.folder / "cifar10", options.tables)
    else:
        risks(options.folder, options.tables)


if __name__ == "__main__":
    main()
