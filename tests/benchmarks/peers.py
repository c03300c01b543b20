"""Time and peak memory of skcal beside its peers, each in a process of its own, in one run.

    python tests/benchmarks/peers.py [what …] --out costs.csv --tables OUT    # resumes
    python tests/benchmarks/peers.py [what …] --by-turns                      # in one process

Every package measures sizes from 1,000 on, until one call takes longer than two seconds: the least
processor time of three calls, which other processes hardly touch, and the peak resident memory of a
fourth above what was there before it. By turns, every size above 1,000 samples prints the quartiles
of skcal's processor time over that of each peer, which bear a busy machine. Peers that are not
installed are left out (extra ``peers``). Linux only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from measuring import binary, classes, least_seconds, seconds_of, with_peak

sys.path.insert(0, str(Path(__file__).parents[1] / "studies"))
from study_tools import COLOURS, append, figure, kept, rows_of, save, write_table

SIZES = (1000, 10_000, 100_000, 1_000_000, 10_000_000)
LONGEST = 2.0  # seconds of a call after which no larger size is tried
MODULES = {"scikit-learn": "sklearn", "uncertainty-calibration": "calibration"}


def tensors(*arrays):
    """The same in torch, with one thread."""
    import torch

    torch.set_num_threads(1)
    return [torch.from_numpy(array) for array in arrays]


def of(module, name, predictions_first=False, **options):
    """Prepare the work of a function of a package, which is imported where it is measured."""

    def prepare(y, p):
        function = getattr(import_module(module), name)
        return partial(function, *((p, y) if predictions_first else (y, p)), **options)

    return prepare


def of_netcal(name, *arguments):
    """Prepare a measure of netcal, which takes predictions first."""
    return lambda y, p: partial(
        getattr(import_module("netcal.metrics"), name)(*arguments).measure, p, y
    )


def of_torchmetrics(y, p):
    """ECE of torchmetrics, of two classes or of ten."""
    metrics = import_module("torchmetrics.functional.classification")
    y, p = tensors(y, p)
    if p.ndim == 1:
        return partial(metrics.binary_calibration_error, p, y, n_bins=15)
    return partial(metrics.multiclass_calibration_error, p, y, p.shape[1], n_bins=15)


def variational(y, p):
    """The L1 error of probmetrics, cross-fitted by isotonic regression."""
    from probmetrics.calibrators import get_calibrator
    from probmetrics.metrics import MetricsWithCalibration, ProperLpLoss
    from probmetrics.splitters import CVSplitter

    loss = ProperLpLoss(p=1, binary_as_multiclass=True)
    fitted = get_calibrator("isotonic", calibrate_with_mixture=True)
    metric = MetricsWithCalibration(loss, fitted, CVSplitter(5), random_state=0)
    return partial(metric.compute_all_from_labels_probs, *tensors(y, np.stack([1 - p, p], axis=1)))


def map_of_skcal(name, **options):
    """Fit and apply a map of skcal."""
    kind = partial(getattr(import_module("skcal.recalibration"), name), **options)
    return lambda y, p: lambda: kind().fit(p, y).predict_proba(p)


def map_of_probmetrics(name):
    """Fit and apply a map of probmetrics."""

    def prepare(y, p):
        make = import_module("probmetrics.calibrators").get_calibrator
        tensors()
        return lambda: make(name).fit(p, y).predict_proba(p)

    return prepare


def map_of_netcal(y, p):
    """Fit and apply netcal's temperature scaling."""
    make = import_module("netcal.scaling").TemperatureScaling

    def work():
        fitted = make()
        fitted.fit(p, y)
        return fitted.transform(p)

    return work


def map_of_sklearn(y, p):
    """Fit and apply scikit-learn's temperature scaling to a classifier that passes its features."""
    from recalibration import Passing
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    frozen = FrozenEstimator(Passing().fit(p, y))
    return lambda: CalibratedClassifierCV(frozen, method="temperature").fit(p, y).predict_proba(p)


def sums_of_numpy(y, p):
    """The ECE of whoever writes it down, which checks nothing."""

    def work():
        bins = np.digitize(p, np.linspace(0, 1, 16)[1:-1], right=True)
        return np.abs(np.bincount(bins, y - p, minlength=15)).sum() / len(y)

    return work


METRICS, TESTS, MAPIE = "skcal.metrics", "skcal.hypothesis_tests", "mapie.metrics.calibration"
#: The data of a size, and by package what prepares its work.
CASES = {
    "ECE, two classes": (
        binary,
        {
            "skcal": of(METRICS, "expected_calibration_error"),
            "mapie": of(MAPIE, "expected_calibration_error", num_bins=15),
            "netcal": of_netcal("ECE", 15),
            "numpy": sums_of_numpy,
            "relplot": of("relplot.metrics", "binnedECE", True, nbins=15),
            "scikit-learn": of("sklearn.calibration", "calibration_curve", n_bins=15),
            "torchmetrics": of_torchmetrics,
        },
    ),
    "ECE, confidence of ten": (
        classes,
        {
            "skcal": of(METRICS, "expected_calibration_error"),
            "mapie": of(MAPIE, "top_label_ece", num_bins=15),
            "netcal": of_netcal("ECE", 15),
            "torchmetrics": of_torchmetrics,
            "uncertainty-calibration": of("calibration", "get_ece", True, num_bins=15),
        },
    ),
    "debiased error, each of ten": (
        classes,
        {
            "skcal": of(
                METRICS,
                "expected_calibration_error",
                notion="classwise",
                norm=2,
                debias=True,
                strategy="quantile",
            ),
            "uncertainty-calibration": of("calibration", "get_calibration_error", True),
        },
    ),
    "smooth ECE": (
        binary,
        {
            "skcal": of(METRICS, "smooth_calibration_error"),
            "relplot": of("relplot.metrics", "smECE", True),
        },
    ),
    "Kolmogorov-Smirnov test": (
        binary,
        {
            "skcal": of(TESTS, "kolmogorov_smirnov_test"),
            "mapie": of(MAPIE, "kolmogorov_smirnov_p_value"),
        },
    ),
    "Spiegelhalter's test": (
        binary,
        {"skcal": of(TESTS, "spiegelhalter_test"), "mapie": of(MAPIE, "spiegelhalter_p_value")},
    ),
    "MMCE": (
        binary,
        {"skcal": of(METRICS, "maximum_mean_calibration_error"), "netcal": of_netcal("MMCE")},
    ),
    "L1 error, cross-fitted": (
        binary,
        {
            "skcal": of(METRICS, "cross_fitted_calibration_error", random_state=0),
            "probmetrics": variational,
        },
    ),
    "temperature scaling of ten": (
        classes,
        {
            "skcal": map_of_skcal("TemperatureScaling"),
            "netcal": map_of_netcal,
            "probmetrics": map_of_probmetrics("temp-scaling"),
            "scikit-learn": map_of_sklearn,
        },
    ),
    "structured matrix scaling of ten": (
        classes,
        {
            "skcal": map_of_skcal("MatrixScaling", structured=True),
            "probmetrics": map_of_probmetrics("sms"),
        },
    ),
}


def sides_of(names):
    """Pairs of a case and a package that is installed."""
    for what in names:
        for package in CASES[what][1]:
            if find_spec(MODULES.get(package, package)):
                yield what, package


def run(what, package):
    """Print a line for each size: seconds and MB."""
    warnings.simplefilter("ignore")
    data, sides = CASES[what]
    sides[package](*data(1000))()  # imports and compilers
    for size in SIZES:
        work = sides[package](*data(size))
        seconds = least_seconds(work, longest=LONGEST)
        _, peak = with_peak(work)
        print(json.dumps([what, package, size, seconds, peak]), flush=True)
        if seconds > LONGEST:
            break


def measured(what, package):
    """The lines of a package, from a process of its own."""
    command = [sys.executable, __file__, "--run", what, package]
    try:
        limit = {"timeout": 600, "stderr": subprocess.DEVNULL, "text": True}
        out = subprocess.run(command, stdout=subprocess.PIPE, **limit).stdout
    except subprocess.TimeoutExpired as error:  # what it printed before counts
        out = (error.stdout or b"").decode()
    lines = [json.loads(line) for line in out.splitlines()]
    print(*lines[-1:], flush=True)
    return lines


def study(path, names):
    """Append the lines of the packages that are missing and installed."""
    done = kept(path, 2)
    append(path, (measured(*side) for side in sides_of(names) if side not in done))


def write_tables(path, folder):
    """The largest common size of each pair with ratios, and the growth of all."""
    lines = [(*line[:2], *map(float, line[2:])) for line in rows_of(path)]
    found = {line[:3]: line[3:] for line in lines}
    rows = []
    for what, package in [(what, side) for what, (_, sides) in CASES.items() for side in sides]:
        sizes = [n for n in SIZES if {(what, package, n), (what, "skcal", n)} <= found.keys()]
        if sizes and package != "skcal":
            n = sizes[-1]
            (ours, own_peak), (theirs, peak) = found[what, "skcal", n], found[what, package, n]
            times = f"{ours:.3g} s", f"{theirs:.3g} s", f"{theirs / ours:.1f}"
            more = f"{peak / own_peak:.1f}" if own_peak >= 1 else "–"
            memory = f"{own_peak:.0f} MB", f"{peak:.0f} MB", more
            rows.append([what, package, f"{n:,}", *times, *memory])
    sides = "skcal", "peer", "ratio"
    header = [
        "what",
        "peer",
        "n",
        *(f"{key}: {side}" for key in ("time", "memory") for side in sides),
    ]
    write_table(folder, "costs", header, rows)
    draw(found, folder)


def draw(found, folder):
    """Seconds against the number of samples, a panel for each case."""
    names = [what for what in CASES if any(key[0] == what for key in found)]
    drawn, axes = figure(-(-len(names) // 4), 4, size=(11, 2.7 * -(-len(names) // 4)))
    packages = list(dict.fromkeys(key[1] for key in found))
    colours = dict(zip(packages, COLOURS, strict=False))
    for ax, what in zip(axes.flat, names, strict=False):
        for package in packages:
            sizes = [n for n in SIZES if (what, package, n) in found]
            seconds = [found[what, package, n][0] for n in sizes]
            if sizes:
                width = 2.2 if package == "skcal" else 1.2
                style = {"color": colours.get(package, "0.8"), "linewidth": width}
                ax.loglog(sizes, seconds, "o-", markersize=3, label=package, **style)
        ax.set_title(what, fontsize="medium")
        ax.grid(color="0.92")
    for ax in axes.flat[len(names) :]:
        ax.set_visible(False)
    for row in axes:
        row[0].set_ylabel("seconds of the processor", fontsize="small")
    handles = {
        label: handle
        for ax in axes.flat
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    drawn.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=8)
    save(drawn, folder, "costs")


def by_turns(names, rounds=7):
    """Print the quartiles of ratios of neighbouring calls, skcal's time over a peer's."""
    warnings.simplefilter("ignore")
    print("| what | peer | n | skcal, ms | peer, ms | ratio |\n|---|---|---|---|---|---|")
    for what, package in sides_of(names):
        draw_data, prepared = CASES[what]
        for size in SIZES[1:] if package != "skcal" else ():
            data = draw_data(size)
            works = [prepared[side](*data) for side in ("skcal", package)]
            seconds = np.array([[seconds_of(work) for work in works] for _ in range(2)])
            if seconds.max() <= LONGEST:
                seconds = np.array([[seconds_of(work) for work in works] for _ in range(rounds)])
            low, high = np.quantile(seconds[:, 0] / seconds[:, 1], [0.25, 0.75])
            ours, theirs = 1000 * seconds.min(axis=0)
            times = f"{ours:.3g} | {theirs:.3g}"
            print(f"| {what} | {package} | {size:,} | {times} | {low:.2g}–{high:.2g} |", flush=True)
            if seconds.max() > LONGEST:
                break


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=list(CASES))
    parser.add_argument("--out", type=Path, default="costs.csv", help="where figures are kept")
    parser.add_argument("--tables", type=Path, help="where table and picture are written")
    parser.add_argument("--by-turns", action="store_true", help="in one process, ratios alone")
    parser.add_argument("--run", action="store_true", help="measure one package: what, package")
    options = parser.parse_args()
    if options.run:
        run(*options.what)
    elif options.by_turns:
        by_turns(options.what)
    else:
        study(options.out, options.what)
        write_tables(options.out, options.tables)


if __name__ == "__main__":
    main()
