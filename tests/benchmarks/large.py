"""Print times and peak memory of the large cases, each in a process of its own.

    python tests/benchmarks/large.py [name …]

Memory is the peak resident set of the process during the work, data, libraries and read pages of a
memory map included, plus that of the largest worker times the number of workers. Linux only.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from benchmark_cases import simplex
from joblib.externals.loky import get_reusable_executor
from measuring import binary, forget_peak, resident

import skcal
from skcal import (
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    TwoStepKernelRidge,
    Zero,
    metrics,
)
from skcal.cli import commands


def thousand_classes(n_samples=50_000, n_classes=1000, n_features=64, noise=1.6):
    """Labels and float32 predictions of Gaussian classes, a little overconfident."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_classes, n_features))
    y = rng.integers(n_classes, size=n_samples)
    x = centres[y] + noise * rng.normal(size=(n_samples, n_features))
    logits = (x @ centres.T - (centres**2).sum(axis=1) / 2) / noise**2 / 1.2
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    return y, (proba / proba.sum(axis=1, keepdims=True)).astype(np.float32)


def default_search(n_jobs):
    """All families on a million confidences."""
    y, proba = simplex(1_000_000)
    search = CalibrationErrorSearchCV(notion="confidence", n_jobs=n_jobs, random_state=0)
    return lambda: search.fit(proba, y)


def canonical_search(n_jobs):
    """Both ridge forms of rank 2,000 and the density, on 50,000 rows of 1,000 classes."""
    y, proba = thousand_classes()
    candidates = [
        Zero(),
        (KroneckerKernelRidge(max_rank=2000), {"alpha": np.logspace(3, -12, 18)}),
        (TwoStepKernelRidge(max_rank=2000), {"alpha": np.logspace(2, -7, 18)}),
        (DirichletKernelDensity(), {"bandwidth": [1e-3, 1e-2, 0.05, 0.2, 1]}),
    ]
    search = CalibrationErrorSearchCV(candidates, "canonical", n_jobs=n_jobs, random_state=0)
    return lambda: search.fit(proba, y)


def classwise(metric, **options):
    """A metric of each of 1,000 classes, with two threads."""

    def prepare():
        y, proba = thousand_classes()

        def work():
            with joblib.parallel_config(n_jobs=2):
                metric(y, proba, notion="classwise", **options)

        return work

    return prepare


def memory_map():
    """Binned errors and a decomposition of 10⁷ predictions on disk."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name, "proba.npy")
    y, proba = binary(10_000_000)
    np.save(path, proba)
    del proba

    def work():
        counted = skcal.CalibrationTable().update(y, np.load(path, mmap_mode="r"))
        metrics.expected_calibration_error(counted)
        metrics.maximum_calibration_error(counted)
        metrics.expected_calibration_error(counted, norm=2, debias=True)
        metrics.score_decomposition(counted)
        folder.cleanup()

    return work


def table():
    """Limits and the test of 10⁸ predictions, counted in batches of 10⁶."""
    rng, counted = np.random.default_rng(0), skcal.CalibrationTable()

    def work():
        for _ in range(100):
            p = rng.random(1_000_000)
            counted.update(rng.random(1_000_000) < p, p)
        skcal.calibration_error_interval(counted)

    return work


def long_file(kind, n_files=1, monitor=False):
    """The gate of the command line, or its monitor, for files of 5·10⁶ predictions."""

    def prepare():
        folder = tempfile.TemporaryDirectory()
        y, proba = binary(5_000_000)
        frame = pd.DataFrame({"p": proba, "label": y})
        for k in range(n_files):
            path = Path(folder.name, f"{k}.{kind}")
            frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)

        def work():
            command = ["evaluate", folder.name, "--max-error", "0.1"]
            if monitor:
                command = ["monitor", str(Path(folder.name, "state.json")), str(path)]
            commands.main([*command, "--score", "p", "--quiet"])
            folder.cleanup()

        return work

    return prepare


def table_of(notion, n, n_classes=1, n_groups=None):
    """Prepare limits of predictions of many classes, or of many groups."""

    def prepare():
        y, proba = simplex(n, n_classes) if n_classes > 1 else binary(n)
        groups = None if n_groups is None else np.random.default_rng(0).integers(0, n_groups, n)
        counted = skcal.CalibrationTable(notion, labels=range(max(n_classes, 2)))
        return lambda: skcal.calibration_error_interval(counted.update(y, proba, groups=groups))

    return prepare


def smooth():
    """The smooth error of 10⁷ predictions."""
    y, proba = binary(10_000_000)
    return lambda: metrics.smooth_calibration_error(y, proba)


def bootstrap():
    """An interval of the error of 10⁶ predictions, by two workers."""
    y, proba = binary(1_000_000)
    options = {"n_resamples": 1000, "random_state": 0, "n_jobs": 2}
    error = metrics.expected_calibration_error
    return lambda: metrics.bootstrap_interval(error, y, proba, **options)


def all_pairs():
    """The kernel error of 10⁵ vectors, with two threads."""
    y, proba = simplex(100_000)

    def work():
        with joblib.parallel_config(n_jobs=2):
            metrics.squared_kernel_calibration_error(y, proba, notion="canonical")

    return work


CASES = {
    "default search, 10⁶ confidences, n_jobs=2": (lambda: default_search(2), 2),
    "search, 50,000 × 1,000, one process": (lambda: canonical_search(None), 0),
    "search, 50,000 × 1,000, n_jobs=2": (lambda: canonical_search(2), 2),
    "memory map, 10⁷": (memory_map, 0),
    "table, 10⁸, with the draws": (table, 0),
    "evaluate --max-error, 5·10⁶ rows, .csv": (long_file("csv"), 0),
    "evaluate --max-error, 5·10⁶ rows, .parquet": (long_file("parquet"), 0),
    "evaluate --max-error, 5·10⁷ rows, a folder": (long_file("parquet", 10), 0),
    "monitor, 5·10⁶ rows, .csv": (long_file("csv", monitor=True), 0),
    "class-wise table, 10,000 × 1,000": (table_of("classwise", 10_000, 1000), 0),
    "top-label table, 20,000 × 1,000": (table_of("top-label", 20_000, 1000), 0),
    "table, 10⁶ in 10⁵ groups": (table_of("binary", 10**6, n_groups=10**5), 0),
    "smooth error, 10⁷": (smooth, 0),
    "bootstrap interval, 10⁶, 1,000 resamples, n_jobs=2": (bootstrap, 2),
    "SKCE, canonical, 10⁵ × 10, two threads": (all_pairs, 0),
    **{
        f"class-wise {name}, 50,000 × 1,000, two threads": (classwise(metric, **options), 0)
        for name, metric, options in [
            ("ECE", metrics.expected_calibration_error, {}),
            ("MCE", metrics.maximum_calibration_error, {}),
            ("debiased error", metrics.expected_calibration_error, {"norm": 2, "debias": True}),
            ("Kolmogorov-Smirnov", metrics.kolmogorov_smirnov_calibration_error, {}),
            ("smooth error", metrics.smooth_calibration_error, {}),
            ("SKCE", metrics.squared_kernel_calibration_error, {}),
            ("MMCE", metrics.maximum_mean_calibration_error, {}),
            ("UCME", metrics.squared_mean_embedding_calibration_error, {}),
            ("kernel density error", metrics.kernel_density_calibration_error, {}),
        ]
    },
}


def run(name):
    """Print the line of one case."""
    prepare, n_workers = CASES[name]
    work = prepare()
    forget_peak()  # of the preparation
    start, of_cpu = time.perf_counter(), time.process_time()
    work()
    seconds, of_cpu = time.perf_counter() - start, time.process_time() - of_cpu
    peak = resident("VmHWM") / 1024
    if n_workers:  # their memory is known once they have ended
        get_reusable_executor().shutdown(wait=True)
        peak += n_workers * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"| {name} | {seconds:.3g} s | {of_cpu:.3g} s | {peak:.2f} GB |", flush=True)


def main(names):
    """Run each case in a process of its own."""
    print("| what | time | CPU of the process | peak memory |\n|---|---|---|---|", flush=True)
    for name in names or CASES:
        subprocess.run([sys.executable, __file__, "--run", name], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2])
    else:
        main(sys.argv[1:])
