"""ECE, mean Euclidean and log errors against the truth, beside other estimators (slow).

The benchmark of "A variational estimator for Lp calibration errors" (arXiv:2602.24230), whose
truths are known functions of the predictions, tempered models, and predictions of kinds that
generative models of papers leave out. For each draw, ``cross_fitted_calibration_error`` stands
beside binned, smooth and kernel density errors and, with ``--peers`` and ``probmetrics`` and
``catboost`` installed, beside the estimators that came with that paper, with their own defaults.
The truth of a draw is the mean over its predictions. Run

    python tests/studies/errors_study.py --out errors.csv --seeds 10      # half an hour; resumes
    python tests/studies/errors_study.py --out errors.csv --peers CatBoost temperature isotonic
    python tests/studies/errors_study.py --out errors.csv --seeds 0 --tables OUT    # what is there
"""

import time
import warnings
from collections import defaultdict
from functools import partial

import numpy as np
from laws import beta, between, labels_of, odds, same, uniform
from scipy.special import rel_entr, softmax
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

from skcal.datasets import make_tempered
from skcal.metrics import (
    cross_fitted_calibration_error,
    expected_calibration_error,
    kernel_density_calibration_error,
    smooth_calibration_error,
)

OWN = "skcal, without bins"


def wave(p):
    return p + np.sin(10 * np.pi * p) / (5 * np.pi) + np.sin(40 / 3 * np.pi * p) / (10 * np.pi)


def steps(p):
    return p + 0.1 * np.where(np.floor(p * 20) % 2 == 0, 1, -1)


def near_vertices(rng, n):
    near, side, offset = rng.random(n) < 0.9, rng.random(n) < 0.5, 1e-4 * rng.random(n)
    return np.where(near, np.where(side, 1 - offset, offset), rng.random(n))


def grid(rng, n):
    return rng.binomial(10, rng.beta(0.3, 0.3, n)) / 10


def dirichlet(n_classes, rng, n):
    p = np.maximum(rng.dirichlet(np.full(n_classes, 0.5), n), 1e-12)
    return p / p.sum(axis=1, keepdims=True)


#: (how predictions are drawn, what is true of them) by group and name.
BINARY = {
    "temperature .4": (uniform, odds(0.4, 0.3)),
    "temperature 4": (uniform, odds(4, 1)),
    "shift": (uniform, lambda p: np.minimum(p + 0.02, 1)),
    "calibrated": (uniform, same),
    "wave": (uniform, lambda p: np.clip(wave(p), 0, 1)),
}
UNUSUAL = {
    "rare, calibrated": (beta(0.3, 29.7), same),
    "vertices, calibrated": (near_vertices, same),
    "forest": (grid, lambda p: (10 * p + 0.3) / 10.6),
    "steps": (between(0.1, 0.9), steps),
}
VECTORS = {
    "calibrated": same,
    "temperature 2": lambda p: softmax(2 * np.log(p), axis=1),
    "temperature .3": lambda p: softmax(0.3 * np.log(p), axis=1),
    "waves": lambda p: softmax(np.log(p) + 0.5 * np.sin(5 * np.log(p)), axis=1),
}


def of_classes(n_classes):
    return {name: (partial(dirichlet, n_classes), truth) for name, truth in VECTORS.items()}


def tempered(n_classes, temperature):
    def proba(rng, n):
        seed = int(rng.integers(2**31))
        options = {"n_classes": n_classes, "temperature": temperature, "n_truth_draws": 0}
        return make_tempered(n, random_state=seed, **options).proba

    def truth(p):
        return softmax(np.log(np.maximum(p, 1e-300)) / temperature, axis=1)

    return proba, truth


GROUPS = {
    "binary": BINARY,
    "binary, unusual": UNUSUAL,
    "3 classes": of_classes(3),
    "10 classes": of_classes(10),
    "tempered": {
        "T = 1, 3 classes": tempered(3, 1.0),
        "T = 1.3, 3 classes": tempered(3, 1.3),
        "T = 2, 3 classes": tempered(3, 2.0),
        "T = 1.3, 10 classes": tempered(10, 1.3),
    },
}


def draw(group, name, n, seed):
    """Predictions, what is true of them, and labels."""
    place = list(GROUPS[group]).index(name)
    rng = np.random.default_rng([seed, n, place, len(group)])
    proba, truth = GROUPS[group][name]
    p = proba(rng, n)
    q = truth(p)
    return p, q, labels_of(q, rng)


def true_errors(p, q):
    """The errors of this draw; of two classes those of the positive one."""
    gap = (q - p).reshape(len(p), -1)
    euclidean = np.linalg.norm(gap, axis=1)
    half = 0.5 if p.ndim == 2 else 1.0
    divergence = rel_entr(q, p).reshape(len(p), -1).sum(axis=1)
    if p.ndim == 1:
        divergence += rel_entr(1 - q, 1 - p)
    return {
        "l1": np.abs(gap).sum(axis=1).mean() * half,
        "l2": euclidean.mean(),
        "rms": np.sqrt((euclidean**2).mean()),
        "log": divergence.mean(),
    }


def own_estimators(p, seed):
    """(kind, name, function of labels and predictions)."""
    labels = range(p.shape[1]) if p.ndim == 2 else range(2)
    options = {"notion": "canonical" if p.ndim == 2 else "binary", "labels": labels}
    for kind in ("l1", "l2", "log") if p.ndim == 2 else ("l1", "log", "rms"):
        fitted = partial(cross_fitted_calibration_error, kind=kind, random_state=seed, **options)
        yield kind, OWN, fitted
    density = partial(kernel_density_calibration_error, **options)
    if p.ndim == 2:
        yield "l1", "kernel density", lambda y, p: density(y, p) / 2  # the norm is not halved
        return
    yield "l1", "kernel density", density
    binned = partial(expected_calibration_error, **options)
    yield "l1", "15 bins", binned
    yield "l1", "15 quantile bins", partial(binned, strategy="quantile")
    yield "l1", "sweep", partial(binned, strategy="sweep")
    yield "l1", "smooth", partial(smooth_calibration_error, **options)
    # Debiasing is of squares: its truth is the root mean square.
    yield "rms", "15 bins, debiased", partial(binned, norm=2, debias=True)


def peer_estimators(p, seed, names):
    """The variational estimators of probmetrics 1.3, two columns halved to one."""
    import multiprocessing
    from multiprocessing.pool import ThreadPool

    import torch
    from probmetrics.calibrators import get_calibrator
    from probmetrics.classifiers import WS_CatboostClassifier
    from probmetrics.metrics import LogLoss, MetricsWithCalibration, ProperLpLoss
    from probmetrics.splitters import CVSplitter

    torch.set_num_threads(1)
    multiprocessing.Pool = ThreadPool  # forks of a process that has threads may wait forever
    losses = {
        "l1": (ProperLpLoss(p=1, binary_as_multiclass=True), 0.5),
        "l2": (ProperLpLoss(p=2, binary_as_multiclass=True), 1.0),
        "log": (LogLoss(), 1.0),
    }
    classifiers = {
        "temperature": get_calibrator("temp-scaling", calibrate_with_mixture=True),
        "isotonic": get_calibrator("isotonic", calibrate_with_mixture=True),
        "CatBoost": WS_CatboostClassifier(),
    }

    def value(y, p, metric, scale):
        p = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
        found = metric.compute_all_from_labels_probs(torch.as_tensor(y), torch.as_tensor(p))
        return scale * next(float(v) for k, v in found.items() if k.startswith("calib-err"))

    for kind in ("l1", "l2", "log") if p.ndim == 2 else ("l1", "log"):
        loss, scale = losses[kind]
        for name in names:
            splitter = CVSplitter(5)
            metric = MetricsWithCalibration(loss, classifiers[name], splitter, random_state=seed)
            yield kind, f"probmetrics, {name}", partial(value, metric=metric, scale=scale)


def study(path, groups, sizes, seeds, estimators):
    """Append the rows that are missing."""
    done = kept(path, 6)
    cells = [(group, name) for group in groups for name in GROUPS[group]]
    append(
        path,
        (
            estimates(group, name, n, seed, estimators, done)
            for n in sizes
            for seed in range(seeds)
            for group, name in cells
        ),
    )


def estimates(group, name, n, seed, estimators, done):
    """The rows of one draw that are missing."""
    p, q, y = draw(group, name, n, seed)
    truth, rows = true_errors(p, q), []
    for kind, estimator, function in estimators(p, seed):
        key = (group, str(n), name, str(seed), kind, estimator)
        if key in done:
            continue
        start = time.process_time()
        try:
            estimate = function(y, p)
        except Exception as error:
            print(*key, repr(error)[:200], flush=True)
            continue
        rows.append([*key, truth[kind], estimate, time.process_time() - start])
    return rows


def read(path):
    """Absolute errors × 1000 by (group, n, kind, estimator) and cell, and seconds."""
    gaps, seconds = defaultdict(lambda: defaultdict(list)), defaultdict(list)
    for group, n, name, _, kind, estimator, truth, estimate, time_taken in rows_of(path):
        if np.isfinite(float(truth)):  # a log error may be infinite
            key = (group, int(n), kind, estimator)
            gaps[key][name].append(1000 * abs(float(estimate) - float(truth)))
            seconds[key].append(float(time_taken))
    return gaps, seconds


TABLES = {
    "errors_binary": ("binary", "binary, unusual"),
    "errors_vectors": ("3 classes", "10 classes"),
}
KINDS = {"l1": "total variation", "l2": "Euclidean", "rms": "root mean square", "log": "log loss"}


def write_tables(path, folder):
    """A table of two classes and one of vectors, and pictures of the total variation."""
    gaps, seconds = read(path)
    found = {key: mean_of_cells(by_cell) for key, by_cell in gaps.items()}
    names = list(dict.fromkeys(key[3] for key in gaps))
    sizes = sorted({key[1] for key in gaps})
    for title, groups in TABLES.items():
        rows = []
        for kind in KINDS:
            columns = [(group, n, kind) for group in groups for n in sizes]
            texts = [
                means_of_column({name: gaps[*of, name] for name in names if (*of, name) in gaps})
                for of in columns
            ]
            for name in names:
                times = [t for group in groups for t in seconds[group, sizes[1], kind, name]]
                if any(name in text for text in texts):
                    shown = (text.get(name, "–") for text in texts)
                    time_taken = f"{np.median(times):.2f} s" if times else "–"
                    rows.append([KINDS[kind], name, *shown, time_taken])
        header = [f"{group}, {n:,}" for group in groups for n in sizes]
        write_table(folder, title, ["error", "estimator", *header, f"time, {sizes[1]:,}"], rows)
    groups = ("binary", "3 classes", "10 classes")
    panels = {group: {n: {} for n in sizes} for group in groups}
    for (group, n, kind, name), pair in found.items():
        if kind == "l1" and group in groups:
            panels[group][n][name] = pair
    drawn = {name for errors in panels.values() for by_name in errors.values() for name in by_name}
    names = [name for name in names if name in drawn]
    draw_errors(panels, names, (10, 4), folder, "errors")


def main():
    parser = command_line(__doc__)
    parser.add_argument("--peers", nargs="+", default=(), help="of probmetrics, in place of ours")
    parser.add_argument("--groups", nargs="+", default=list(GROUPS), choices=GROUPS)
    parser.add_argument("--sizes", nargs="+", type=int, default=[200, 1069, 10_000])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    peers = partial(peer_estimators, names=options.peers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimators = peers if options.peers else own_estimators
        study(options.out, options.groups, options.sizes, options.seeds, estimators)
    if options.tables:
        write_tables(options.out, options.tables)


if __name__ == "__main__":
    main()
