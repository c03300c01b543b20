"""Held-out losses of recalibrated predictions: skcal's default, scikit-learn's and probmetrics'.

Run ``python tests/benchmarks/recalibration.py OUT [--networks FOLDER] [--tabular] [--seeds N]``;
the methods of packages that are absent are left out. OUT is a folder: the losses of every sample
are kept there by case and method, so that runs may be repeated and added to. FOLDER holds ``.npz``
files with arrays ``proba`` and ``labels``. ``--tables`` writes means.
"""

from __future__ import annotations

import argparse
import sys
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

from skcal import Recalibrator

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


def with_sklearn(method, P, y):
    """A fitted method of scikit-learn."""
    passing = FrozenEstimator(Passing().fit(P, y))
    return CalibratedClassifierCV(passing, method=method, cv=2).fit(P, y)


def with_probmetrics(name, P, y):
    """A fitted method of probmetrics."""
    from probmetrics.calibrators import get_calibrator

    return get_calibrator(name, **{f"{name}_print_init_info": False}).fit(P, y)


def with_skcal(P, y, **options):
    """The default method of skcal, fitted."""
    return Recalibrator(random_state=0, **options).fit(P, y)


#: What is compared: by name what fits a method to predictions and labels.
METHODS = {
    "raw": lambda P, y: Passing().fit(P, y),
    "skcal": with_skcal,
    **{name: partial(with_sklearn, name) for name in ("sigmoid", "isotonic", "temperature")},
    **{name: partial(with_probmetrics, name) for name in ("sms", "svs", "ts-mix", "logistic-mix")},
}


def run(cases, methods, out) -> None:
    """Keep the losses (log, Brier) of every test sample, one file each."""
    for case in cases:
        for name in methods:
            path = out / f"{case.name} {name}.npz"
            if path.exists() and name != "skcal":
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fitted = METHODS[name](case.proba, case.labels)
                    proba = fitted.predict_proba(case.test_proba)
            except ImportError:
                continue
            except Exception as error:  # a peer that fails on a case has no losses there
                print(f"{case.name} {name}: {error}"[:200], flush=True)
                continue
            y = case.test_labels
            log = -np.log(np.maximum(proba[np.arange(len(y)), y], FLOOR))
            brier = ((proba - np.eye(proba.shape[1])[y]) ** 2).sum(axis=1)
            np.savez(path, log=log, brier=brier)


def by_group(out, loss):
    """Losses of the methods in the cases of each data set and size, in that order."""
    groups: dict = {}
    for path in sorted(Path(out).glob("*.npz")):
        case, name = path.stem.rsplit(" ", 1)
        group = " ".join(case.split()[1:-1]).replace("n=", "")
        with np.load(path) as data:
            groups.setdefault(group, {}).setdefault(case, {})[name] = data[loss]
    ordered = sorted(groups.items(), key=lambda item: (item[0].split()[0], len(item[0])))
    return {group: list(cases.values()) for group, cases in ordered}


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
    save(drawn, folder, title, axes[0, 0], ncols=8)


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
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.networks:
        run(network_cases(options.networks, range(options.seeds)), options.methods, options.out)
    if options.tabular:
        run(tabular_cases(range(options.seeds)), options.methods, options.out)
    if options.tables:
        title = "maps_networks" if options.networks else "maps_tabular"
        write_tables(options.out, options.tables, title)


if __name__ == "__main__":
    main()
