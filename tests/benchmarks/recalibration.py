"""Held-out losses of recalibrated predictions: skcal's default, scikit-learn's and probmetrics'.

Run ``python tests/benchmarks/recalibration.py OUT [--networks FOLDER] [--tabular] [--seeds N]``;
the methods of packages that are absent are left out. OUT is a folder: the losses of every sample
are kept there by case and method, so that runs may be repeated and added to. FOLDER holds ``.npz``
files with arrays ``proba`` and ``labels``. ``--table`` prints cases, ``--tables`` writes means.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

sys.path.insert(0, str(Path(__file__).parents[1] / "studies"))
from study_tools import dots, figure, mean_and_error, save, write_table

#: Losses of impossible outcomes are those of this probability, as of scikit-learn's log_loss.
FLOOR = np.finfo(float).eps


class Case(NamedTuple):
    """Predictions and labels to fit a map to, and others to judge it by."""

    name: str
    proba: np.ndarray
    labels: np.ndarray
    test_proba: np.ndarray
    test_labels: np.ndarray


class Passing(ClassifierMixin, BaseEstimator):
    """A classifier whose features are its probabilities."""

    def fit(self, X, y):
        """Learn nothing but the classes."""
        self.classes_ = np.arange(X.shape[1])
        self.n_features_in_ = X.shape[1]
        return self

    def predict_proba(self, X):
        """Return X."""
        return X

    def predict(self, X):
        """Most probable class."""
        return self.classes_[X.argmax(axis=1)]


def network_cases(folder, seeds) -> Iterator[Case]:
    """Yield 1,000 and 5,000 samples of each file, judged on 5,000 others."""
    for path in sorted(Path(folder).glob("*.npz")):
        with np.load(path) as data:
            proba, labels = data["proba"], data["labels"]
        proba = proba / proba.sum(axis=1, keepdims=True)
        for seed in seeds:
            order = np.random.default_rng(seed).permutation(len(labels))
            test = order[:5000]
            for n in (1000, 5000):
                rows = order[5000 : 5000 + n]
                name = f"{path.stem} n={n} seed={seed}"
                yield Case(name, proba[rows], labels[rows], proba[test], labels[test])


def _datasets():
    yield "breast_cancer", *load_breast_cancer(return_X_y=True), (100,)
    yield "digits", *load_digits(return_X_y=True), (300, 600)
    yield "iris", *load_iris(return_X_y=True), (50,)
    yield "wine", *load_wine(return_X_y=True), (60,)
    shape = {"n_features": 20, "n_informative": 8, "flip_y": 0.05, "random_state": 0}
    yield "binary", *make_classification(24_000, **shape), (100, 1000, 10_000)
    rare = make_classification(24_000, weights=[0.97], **shape)
    yield "rare", *rare, (300, 1000, 10_000)
    yield "five", *make_classification(24_000, n_classes=5, **shape), (100, 1000, 10_000)


def _classifiers():
    models = {
        "bayes": GaussianNB(),
        "forest": RandomForestClassifier(100, random_state=0),
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "logistic": LogisticRegression(max_iter=3000),
    }
    try:
        from lightgbm import LGBMClassifier
        from xgboost import XGBClassifier
    except ImportError:
        return models
    models["lightgbm"] = LGBMClassifier(verbose=-1, n_jobs=1, random_state=0)
    models["xgboost"] = XGBClassifier(n_jobs=1, random_state=0)
    return models


def tabular_cases(seeds) -> Iterator[Case]:
    """Yield classifiers of packaged and made data, trained on a third or 4,000 samples."""
    for data_name, X, y, sizes in _datasets():
        for seed in seeds:
            n_train = min(4000, len(y) // 3)
            split = train_test_split(X, y, train_size=n_train, stratify=y, random_state=seed)
            X_train, X_rest, y_train, y_rest = split
            for model_name, model in _classifiers().items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    proba = clone(model).fit(X_train, y_train).predict_proba(X_rest)
                proba = proba.astype(np.float64)
                proba /= proba.sum(axis=1, keepdims=True)
                first_test = sizes[-1]
                for n in sizes:
                    name = f"{model_name} {data_name} n={n} seed={seed}"
                    test = slice(first_test, None)
                    yield Case(name, proba[:n], y_rest[:n], proba[test], y_rest[test])


def _sklearn(method, case):
    passing = Passing().fit(case.proba, case.labels)
    map_ = CalibratedClassifierCV(FrozenEstimator(passing), method=method, cv=2)
    return map_.fit(case.proba, case.labels).predict_proba(case.test_proba)


def _probmetrics(name, case):
    from probmetrics.calibrators import get_calibrator

    map_ = get_calibrator(name, **{f"{name}_print_init_info": False})
    return map_.fit(case.proba, case.labels).predict_proba(case.test_proba)


def _skcal(options, case):
    from skcal import Recalibrator

    return Recalibrator(random_state=0, **options).fit(case.proba, case.labels)


#: What is compared: name → function of a case.
METHODS = {
    "raw": lambda case: case.test_proba,
    "skcal": partial(_skcal, {}),
    "sigmoid": partial(_sklearn, "sigmoid"),
    "isotonic": partial(_sklearn, "isotonic"),
    "temperature": partial(_sklearn, "temperature"),
    "sms": partial(_probmetrics, "sms"),
    "svs": partial(_probmetrics, "svs"),
    "ts-mix": partial(_probmetrics, "ts-mix"),
    "logistic-mix": partial(_probmetrics, "logistic-mix"),
}


def run(cases, methods, out) -> None:
    """Keep the losses (log, Brier) of every test sample and the time, one file each."""
    for case in cases:
        for name in methods:
            path = out / f"{case.name} {name}.npz"
            if path.exists() and name != "skcal":
                continue
            start = time.perf_counter()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    proba = METHODS[name](case)
            except ImportError:
                continue
            except Exception as error:  # a peer that fails on a case has no losses there
                print(f"{case.name} {name}: {error}"[:200], flush=True)
                continue
            chosen = ""
            if hasattr(proba, "predict_proba"):
                chosen = str(proba.best_name_)
                proba = proba.predict_proba(case.test_proba)
            seconds = time.perf_counter() - start
            y = case.test_labels
            rows = np.arange(len(y))
            log = -np.log(np.maximum(proba[rows, y], FLOOR))
            outcome = np.eye(proba.shape[1])[y]
            brier = ((proba - outcome) ** 2).sum(axis=1)
            np.savez(path, log=log, brier=brier, seconds=seconds, chosen=chosen)


def read(out, loss):
    """Return {case: {method: (losses, seconds, chosen map)}}."""
    found: dict = {}
    for path in sorted(Path(out).glob("*.npz")):
        case, name = path.stem.rsplit(" ", 1)
        with np.load(path) as data:
            values = data[loss], float(data["seconds"]), str(data["chosen"])
        found.setdefault(case, {})[name] = values
    return found


def by_group(out, loss):
    """Losses of the methods in the cases of each data set and size, in that order."""
    groups: dict = {}
    for case, by_name in read(out, loss).items():
        group = " ".join(case.split()[1:-1]).replace("n=", "")
        groups.setdefault(group, []).append({k: v[0] for k, v in by_name.items()})
    return dict(sorted(groups.items(), key=lambda item: (item[0].split()[0], len(item[0]))))


def row_of(group, cases, names):
    """Mean losses, in how many cases skcal's is the lowest, in how many it is above the raw one."""
    means = [np.mean([case[k].mean() for case in cases if k in case]) for k in names]
    lowest = [
        case["skcal"].mean() <= min(v.mean() for k, v in case.items() if k != "raw")
        for case in cases
    ]
    worse = sum(_z(case["skcal"] - case["raw"]) > 1 for case in cases)
    shown = (f"{mean:.4f}" for mean in means)
    return [group, len(cases), *shown, sum(lowest), worse]


def write_tables(out, folder, title) -> None:
    """Mean losses over classifiers and seeds, as table, and how far they are above skcal's."""
    losses = {loss: by_group(out, loss) for loss in ("log", "brier")}
    drawn, axes = figure(1, 2, size=(10, 1.6 + 0.36 * len(losses["log"])))
    for ax, (loss, groups) in zip(axes[0], losses.items(), strict=True):
        tried = set().union(*(case for cases in groups.values() for case in cases))
        names = [name for name in METHODS if name in tried]
        header = [f"{loss} loss", "cases", *names, "skcal lowest", "worse than raw"]
        rows = [row_of(group, cases, names) for group, cases in groups.items()]
        write_table(folder, f"{title}_{loss}", header, rows)
        series = {}
        for name in names:
            gaps = [
                [case[name].mean() - case["skcal"].mean() for case in cases if name in case]
                for cases in groups.values()
            ]
            if name != "skcal":
                series[name] = np.transpose([mean_and_error(values) for values in gaps])
        dots(ax, list(groups), series, spread=0.7)
        ax.axvline(0, color="black", linewidth=0.9)
        ax.set_xscale("symlog", linthresh=0.01)
        ax.set_xlabel(f"{loss} loss above that of skcal")
    drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=8)
    save(drawn, folder, title)


def table(out, loss) -> None:
    """Print mean losses, the best other method and the paired difference to it."""
    found = read(out, loss)
    names = list(METHODS)
    print(f"{loss} loss".ljust(36), *(name.rjust(11) for name in names), " best other   z  z(raw)")
    counts = {"worse than the best other by a s.e.": 0, "worse than raw by a s.e.": 0, "best": 0}
    for case, by_name in found.items():
        ours = by_name["skcal"][0]
        others = {k: v[0].mean() for k, v in by_name.items() if k not in ("skcal", "raw")}
        best = min(others, key=others.get)
        gaps = [_z(ours - by_name[name][0]) for name in (best, "raw")]
        counts["worse than the best other by a s.e."] += gaps[0] > 1
        counts["worse than raw by a s.e."] += gaps[1] > 1
        counts["best"] += ours.mean() < others[best]
        cells = (f"{by_name[k][0].mean():11.5f}" if k in by_name else " " * 11 for k in names)
        seconds, chosen = by_name["skcal"][1:]
        print(
            case.ljust(36), *cells, best.rjust(11), *(f"{gap:6.2f}" for gap in gaps),
            f"{seconds:6.2f} s", chosen,
        )  # fmt: skip
    print(f"{len(found)} cases:", counts)


def _z(difference) -> float:
    error = difference.std() / np.sqrt(len(difference))
    return float(difference.mean() / error) if error > 0 else 0.0


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--networks")
    parser.add_argument("--tabular", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", type=Path, help="where tables of means are written")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--table", nargs="*", choices=("log", "brier"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.networks:
        run(network_cases(options.networks, range(options.seeds)), options.methods, options.out)
    if options.tabular:
        run(tabular_cases(range(options.seeds)), options.methods, options.out)
    for loss in options.table or ():
        table(options.out, loss)
    if options.tables:
        title = "maps_networks" if options.networks else "maps_tabular"
        write_tables(options.out, options.tables, title)


if __name__ == "__main__":
    main()
