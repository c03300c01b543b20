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
import importlib.util
import json
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "studies"))
from study_tools import COLOURS, append, figure, kept, rows_of, save, write_table

SIZES = (1000, 10_000, 100_000, 1_000_000, 10_000_000)
LONGEST = 2.0  # seconds of a call after which no larger size is tried
MODULES = {"scikit-learn": "sklearn", "uncertainty-calibration": "calibration"}


def binary(n):
    """Labels and P(positive)."""
    rng = np.random.default_rng(0)
    p = 1 - 0.9 * rng.beta(0.3, 3, n)
    return (rng.random(n) < p).astype(int), p


def ten_classes(n):
    """Labels and rows of ten probabilities, a little overconfident."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(10, 0.3), n)
    below = (0.9 * proba + 0.01).cumsum(axis=1)[:, :-1] < rng.random((n, 1))
    return below.sum(axis=1), proba


def tensors(*arrays):
    """The same in torch, with one thread."""
    import torch

    torch.set_num_threads(1)
    return [torch.from_numpy(array) for array in arrays]


def of_skcal(name, module="metrics", **options):
    """A function of skcal."""
    found = getattr(importlib.import_module(f"skcal.{module}"), name)
    return partial(found, **options)


def of_mapie(name, **options):
    """A function of MAPIE."""
    from mapie.metrics import calibration

    return partial(getattr(calibration, name), **options)


def of_torchmetrics(y, p):
    """ECE of torchmetrics, of two classes or of ten."""
    from torchmetrics.functional import classification as metrics

    y, p = tensors(y, p)
    if p.ndim == 1:
        return partial(metrics.binary_calibration_error, p, y, n_bins=15)
    return partial(metrics.multiclass_calibration_error, p, y, p.shape[1], n_bins=15)


def of_netcal(name, *arguments):
    """A measure of netcal, which takes predictions first."""
    from netcal import metrics

    measure = getattr(metrics, name)(*arguments)
    return lambda y, p: measure.measure(p, y)


def of_uncertainty(name, y, p, **options):
    """A function of uncertainty-calibration, which takes predictions first."""
    import calibration

    return partial(getattr(calibration, name), p, y, **options)


def variational(y, p):
    """The L1 error of probmetrics, cross-fitted by isotonic regression."""
    from probmetrics.calibrators import get_calibrator
    from probmetrics.metrics import MetricsWithCalibration, ProperLpLoss
    from probmetrics.splitters import CVSplitter

    loss = ProperLpLoss(p=1, binary_as_multiclass=True)
    fitted = get_calibrator("isotonic", calibrate_with_mixture=True)
    metric = MetricsWithCalibration(loss, fitted, CVSplitter(5), random_state=0)
    y, p = tensors(y, np.stack([1 - p, p], axis=1))
    return lambda: metric.compute_all_from_labels_probs(y, p)


def map_of_skcal(name, y, p, **options):
    """Fit and apply a map of skcal."""
    kind = of_skcal(name, "recalibration").func
    return lambda: kind(**options).fit(p, y).predict_proba(p)


def map_of_probmetrics(name, y, p):
    """Fit and apply a map of probmetrics."""
    from probmetrics.calibrators import get_calibrator

    tensors()
    return lambda: get_calibrator(name).fit(p, y).predict_proba(p)


def map_of_netcal(y, p):
    """Fit and apply netcal's temperature scaling."""
    from netcal.scaling import TemperatureScaling

    def work():
        fitted = TemperatureScaling()
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


def curve_of_sklearn(y, p):
    """The reliability curve, from which an ECE could be summed."""
    from sklearn.calibration import calibration_curve

    return partial(calibration_curve, y, p, n_bins=15)


def relplot(name, y, p, **options):
    """A function of relplot, which takes predictions first."""
    import relplot as package

    return partial(getattr(package.metrics, name), p, y, **options)


def call(function, y, p):
    """The work of a function of labels and predictions."""
    return partial(function, y, p)


class Case(NamedTuple):
    """What is compared: the data of a size, and what prepares the work of each package."""

    data: object
    sides: dict


def skcal_and(prepare, **peers):
    """The sides of a case, skcal first."""
    return {"skcal": prepare, **{name.replace("_", "-"): side for name, side in peers.items()}}


def lazily(make, *arguments, **options):
    """Import the package in the process that measures it alone."""
    return lambda y, p: call(make(*arguments, **options), y, p)


CASES = {
    "ECE, two classes": Case(
        binary,
        skcal_and(
            lazily(of_skcal, "expected_calibration_error"),
            mapie=lazily(of_mapie, "expected_calibration_error", num_bins=15),
            netcal=lazily(of_netcal, "ECE", 15),
            numpy=sums_of_numpy,
            relplot=partial(relplot, "binnedECE", nbins=15),
            scikit_learn=curve_of_sklearn,
            torchmetrics=of_torchmetrics,
        ),
    ),
    "ECE, confidence of ten": Case(
        ten_classes,
        skcal_and(
            lazily(of_skcal, "expected_calibration_error"),
            mapie=lazily(of_mapie, "top_label_ece", num_bins=15),
            netcal=lazily(of_netcal, "ECE", 15),
            torchmetrics=of_torchmetrics,
            uncertainty_calibration=partial(of_uncertainty, "get_ece", num_bins=15),
        ),
    ),
    "debiased error, each of ten": Case(
        ten_classes,
        skcal_and(
            lazily(
                of_skcal,
                "expected_calibration_error",
                notion="classwise",
                norm=2,
                debias=True,
                strategy="quantile",
            ),
            uncertainty_calibration=partial(of_uncertainty, "get_calibration_error"),
        ),
    ),
    "smooth ECE": Case(
        binary,
        skcal_and(lazily(of_skcal, "smooth_calibration_error"), relplot=partial(relplot, "smECE")),
    ),
    "Kolmogorov-Smirnov test": Case(
        binary,
        skcal_and(
            lazily(of_skcal, "kolmogorov_smirnov_test", "hypothesis_tests"),
            mapie=lazily(of_mapie, "kolmogorov_smirnov_p_value"),
        ),
    ),
    "Spiegelhalter's test": Case(
        binary,
        skcal_and(
            lazily(of_skcal, "spiegelhalter_test", "hypothesis_tests"),
            mapie=lazily(of_mapie, "spiegelhalter_p_value"),
        ),
    ),
    "MMCE": Case(
        binary,
        skcal_and(
            lazily(of_skcal, "maximum_mean_calibration_error"), netcal=lazily(of_netcal, "MMCE")
        ),
    ),
    "L1 error, cross-fitted": Case(
        binary,
        skcal_and(
            lazily(of_skcal, "cross_fitted_calibration_error", random_state=0),
            probmetrics=variational,
        ),
    ),
    "temperature scaling of ten": Case(
        ten_classes,
        skcal_and(
            partial(map_of_skcal, "TemperatureScaling"),
            netcal=map_of_netcal,
            probmetrics=partial(map_of_probmetrics, "temp-scaling"),
            scikit_learn=map_of_sklearn,
        ),
    ),
    "structured matrix scaling of ten": Case(
        ten_classes,
        skcal_and(
            partial(map_of_skcal, "MatrixScaling", structured=True),
            probmetrics=partial(map_of_probmetrics, "sms"),
        ),
    ),
}


def status(key):
    """A figure of this process's memory in MB."""
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{key}:")[1].split()[0]) / 1024


def least_seconds(work, rounds=3):
    """Least processor time of a call; calls too short for the clock are repeated."""
    found, times = [], 1
    while len(found) < rounds:
        start = time.process_time()
        for _ in range(times):
            work()
        seconds = time.process_time() - start
        if seconds < 0.02 and times < 10_000:
            found, times = [], times * 10
        else:
            found.append(seconds / times)
            if seconds > LONGEST:
                break
    return min(found)


def run(what, package):
    """Print a line for each size: seconds and MB."""
    warnings.simplefilter("ignore")
    case = CASES[what]
    case.sides[package](*case.data(1000))()  # imports and compilers
    for size in SIZES:
        work = case.sides[package](*case.data(size))
        seconds = least_seconds(work)
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far does not count
        before = status("VmRSS")
        work()
        peak = max(status("VmHWM") - before, 0)
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
    sides = [(what, package) for what in names for package in CASES[what].sides]
    append(
        path,
        (
            measured(*side)
            for side in sides
            if side not in done and importlib.util.find_spec(MODULES.get(side[1], side[1]))
        ),
    )


def write_tables(path, folder):
    """The largest common size of each pair with ratios, and the growth of all."""
    lines = [(*line[:2], *map(float, line[2:])) for line in rows_of(path)]
    found = {line[:3]: line[3:] for line in lines}
    rows = []
    for what, package in [(one, side) for one in CASES for side in CASES[one].sides]:
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
    for what, package in [(one, side) for one in names for side in CASES[one].sides]:
        if package == "skcal" or not importlib.util.find_spec(MODULES.get(package, package)):
            continue
        for size in SIZES[1:]:
            data = CASES[what].data(size)
            sides = [CASES[what].sides[one](*data) for one in ("skcal", package)]
            found = np.array([[least_seconds(one, rounds=1) for one in sides] for _ in range(2)])
            if found.max() <= LONGEST:
                more = [[least_seconds(one, rounds=1) for one in sides] for _ in range(rounds)]
                found = np.array(more)
            low, high = np.quantile(found[:, 0] / found[:, 1], [0.25, 0.75])
            ours, theirs = 1000 * found.min(axis=0)
            times = f"{ours:.3g} | {theirs:.3g}"
            print(f"| {what} | {package} | {size:,} | {times} | {low:.2g}–{high:.2g} |", flush=True)
            if found.max() > LONGEST:
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
