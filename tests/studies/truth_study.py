"""The calibration error against its truth, beside every published estimator of it.

Cells are predictions whose truth is known: scalar ones of ``errors_study.py``; models M1 to M3 of
Widmann et al. (2019), tempered ones of Gruber & Bach (2025) and distortions that no matrix scaling
contains, of ten classes, as confidences; and vectors of three and ten classes. What is estimated is
the root of the mean squared calibration error. Run

    python tests/studies/truth_study.py --out truth.csv --tables OUT          # six minutes; resumes
    python tests/studies/truth_study.py --out truth.csv --tables OUT --peers  # probmetrics too

Other errors, as the one that ECE estimates, are those of ``errors_study.py``.
"""

import time
import warnings
from collections import defaultdict
from functools import partial

import numpy as np
from errors_study import BINARY, GROUPS, UNUSUAL, draw, true_errors
from joblib import Parallel, delayed
from sklearn.model_selection import ShuffleSplit
from study_tools import (
    append,
    command_line,
    draw_errors,
    kept,
    mean_of_cells,
    means_of_column,
    rows_of,
    write_table,
)

from skcal import CalibrationErrorSearchCV
from skcal.datasets import DISTORTIONS, make_dirichlet, make_distorted, make_tempered
from skcal.metrics import expected_calibration_error, kernel_density_calibration_error

N_CLASSES = 10
DEFAULT = "skcal: default search"


def of_errors_study(group, name, n, seed):
    """Labels, predictions and the error of this draw."""
    p, q, y = draw(group, name, n, seed)
    return y, p, true_errors(p, q)["rms"]


def of_confidences(model, n, seed):
    """Labels, ten classes and the true error of the confidence."""
    options = {"n_classes": N_CLASSES, "random_state": seed}
    if model in DISTORTIONS:
        data = make_distorted(n, distortion=model, **options)
    elif model.startswith("T"):
        temperature = float(model[4:])
        data = make_tempered(n, temperature=temperature, **options)
    else:
        data = make_dirichlet(n, model=model, **options)
    truth = data.true_squared_errors["confidence"]
    return data.labels, data.proba, np.sqrt(truth.value)


CONFIDENCES = ("M1", "M2", "M3", "T = 1", "T = 1.3", "T = 2", *DISTORTIONS)
#: Group → notion and {cell: function of n and seed}.
CELLS = {
    "two classes": (
        "binary",
        {
            name: partial(of_errors_study, group, name)
            for group, names in (("binary", BINARY), ("binary, unusual", UNUSUAL))
            for name in names
        },
    ),
    "confidences": ("confidence", {name: partial(of_confidences, name) for name in CONFIDENCES}),
    "vectors": (
        "canonical",
        {
            f"{name}, {group}": partial(of_errors_study, group, name)
            for group in ("3 classes", "10 classes", "tempered")
            for name in GROUPS[group]
        },
    ),
}


def searches(y, p, options, seed):
    """Yield the default search, and Gruber & Bach's, which keeps a fifth for the error."""
    search = CalibrationErrorSearchCV(random_state=seed, **options).fit(p, y)
    yield DEFAULT, search.rms_calibration_error_
    split = ShuffleSplit(1, test_size=0.2, random_state=seed)
    theirs = CalibrationErrorSearchCV(
        "gruber-bach", outer_cv=split, random_state=seed, **options
    ).fit(p, y)
    yield "Gruber & Bach: lowest risk, plug-in", root(theirs.plug_in_squared_error_)
    [outer] = theirs.outer_results_
    test = p[outer.outer.test]
    names = {
        "Binning": "bins, tuned by the risk",
        "KroneckerKernelRidge": "kernel ridge, Kronecker",
        "TwoStepKernelRidge": "kernel ridge, two steps",
    }
    for family in theirs.families_:
        if family.name in names:
            found = np.mean([model.squared_error(test) for model in family.models])
            yield names[family.name], root(found)


def untuned(y, p, options):
    """Yield estimators whose choices nobody checks."""
    if options["notion"] == "canonical":
        yield "10 bins a class", expected_calibration_error(y, p, n_bins=10, norm=2, **options)
    else:
        bins = partial(expected_calibration_error, y, p, norm=2, **options)
        yield "15 bins", bins()
        yield "15 quantile bins", bins(strategy="quantile")
        yield "15 bins, debiased", bins(debias=True)
        yield "15 quantile bins, debiased", bins(strategy="quantile", debias=True)
        yield "bins by sweep", bins(strategy="sweep")
    yield "kernel density", kernel_density_calibration_error(y, p, norm=2, **options)


def variational(y, p, options, seed):
    """Yield probmetrics' estimates of the Brier score that classifiers save."""
    import torch
    from probmetrics.calibrators import get_calibrator
    from probmetrics.metrics import BrierLoss, MetricsWithCalibration
    from probmetrics.splitters import CVSplitter

    torch.set_num_threads(1)
    if options["notion"] == "confidence":
        y, p = (p.argmax(axis=1) == y).astype(int), p.max(axis=1)
    scale = 0.5 if p.ndim == 1 else 1.0  # two columns count the error twice
    p = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
    for title, name in (("temperature", "temp-scaling"), ("isotonic", "isotonic")):
        fitted = get_calibrator(name, calibrate_with_mixture=True)
        metric = MetricsWithCalibration(BrierLoss(), fitted, CVSplitter(5), random_state=seed)
        try:
            found = metric.compute_all_from_labels_probs(torch.as_tensor(y), torch.as_tensor(p))
            error = next(float(v) for k, v in found.items() if k.startswith("calib-err"))
        except ValueError:  # no positives among the samples of a fit
            error = np.nan
        yield f"variational, {title} (probmetrics)", root(scale * error)


def root(squared):
    """Estimates of squares may be negative."""
    return np.sqrt(np.maximum(squared, 0.0))


def run(group, cell, n, seed, peers):
    """The rows of one draw."""
    notion, cells = CELLS[group]
    y, p, truth = cells[cell](n, seed)
    options = {"notion": notion, "labels": range(p.shape[1] if p.ndim == 2 else 2)}
    start, found = time.process_time(), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # negative estimates, absent classes, flat likelihoods
        if peers:
            found |= variational(y, p, options, seed)
        else:
            found |= searches(y, p, options, seed)
            found |= untuned(y, p, options)
    seconds = time.process_time() - start
    return [(group, cell, n, seed, peers, name, truth, v, seconds) for name, v in found.items()]


def study(path, groups, sizes, seeds, peers, n_jobs):
    """Append the draws that are missing."""
    done = kept(path, 5)
    tasks = [
        delayed(run)(group, cell, n, seed, peers)
        for n in sizes
        for group in groups
        for cell in CELLS[group][1]
        for seed in range(seeds)
        if (group, cell, str(n), str(seed), str(peers)) not in done
    ]
    append(path, Parallel(n_jobs=n_jobs, return_as="generator")(tasks))


def tables(path, folder):
    """Mean absolute errors × 1000 over the cells of a group, with standard errors."""
    gaps = defaultdict(lambda: defaultdict(list))
    for group, cell, n, _, _, name, truth, value, _ in rows_of(path):
        gaps[group, int(n), name][cell].append(1000 * abs(float(value) - float(truth)))
    columns = sorted({key[:2] for key in gaps}, key=lambda key: (list(CELLS).index(key[0]), key[1]))
    names = list(dict.fromkeys(key[2] for key in gaps))
    texts = [
        means_of_column({name: gaps[*column, name] for name in names if (*column, name) in gaps})
        for column in columns
    ]
    rows = [[name, *(text.get(name, "–") for text in texts)] for name in names]
    header = ["estimator", *(f"{group}, {n:,}" for group, n in columns)]
    write_table(folder, "number", header, rows)
    panels = {group: {n: {} for of, n in columns if of == group} for group in CELLS}
    for (group, n, name), by_cell in gaps.items():
        panels[group][n][name] = mean_of_cells(by_cell)
    draw_errors(panels, names, (10, 4.4), folder, "number")


def main():
    parser = command_line(__doc__, required=True)
    parser.add_argument("--peers", action="store_true", help="those of probmetrics too")
    parser.add_argument("--groups", nargs="+", default=list(CELLS), choices=CELLS)
    parser.add_argument("--sizes", nargs="+", type=int, default=[200, 1000])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    for peers in (False, True) if options.peers else (False,):
        study(options.out, options.groups, options.sizes, options.seeds, peers, options.n_jobs)
    tables(options.out, options.tables)


if __name__ == "__main__":
    main()
