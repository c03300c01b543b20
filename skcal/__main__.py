"""``python -m skcal``: estimate the calibration error of predictions."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

from skcal import Binning, CalibrationErrorSearchCV, __version__
from skcal._files import FileError, Predictions, read_predictions
from skcal._validation import check_labels
from skcal.model_selection.summary import as_dict
from skcal.notions import make_problems, resolve_notion

_PATIENCE = 2.0  # seconds before progress is shown


def main(arguments=None) -> int:
    """Run the command line; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        named = _demonstration(options.seed) if options.command is None else _files(options)
        reports = [_evaluate(name, predictions, options) for name, predictions in named]
    except (FileError, ValueError) as error:
        print(f"skcal: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(reports, indent=2))
    return 0


_EXAMPLE = "example: python -m skcal evaluate predictions.csv --label y --notion canonical"
_DEFAULTS = {
    "notion": None,
    "cv": 5,
    "outer_cv": None,
    "seed": 0,
    "n_jobs": None,
    "json": False,
}


def _options() -> argparse.ArgumentParser:
    """Options that may stand before and after the command."""
    # Without defaults: those of the command would overwrite what stands before it.
    options = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    options.add_argument(
        "--notion",
        action="append",
        help="notion of calibration; may be repeated (default: confidence and canonical)",
    )
    options.add_argument("--cv", type=_at_least(2), help="folds that choose (default: 5)")
    options.add_argument(
        "--outer-cv",
        type=_at_least(2),
        help="test on every sample, with a whole search in each of this many outer folds "
        "(default: test on one fifth)",
    )
    options.add_argument("--seed", type=_at_least(0), help="shuffles the folds (default: 0)")
    options.add_argument("--n-jobs", type=int, help="parallel jobs (default: 1; -1: all cores)")
    options.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="skcal",
        parents=[_options()],
        description="Estimate the calibration error of a classifier's probabilities. Without a "
        "command: of two classifiers of handwritten digits, as a demonstration.",
        epilog=_EXAMPLE,
    )
    parser.set_defaults(**_DEFAULTS)
    parser.add_argument("--version", action="version", version=f"skcal {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="evaluate")
    evaluate = commands.add_parser(
        "evaluate",
        parents=[_options()],
        help="evaluate predictions in a file",
        description="CSV: a header, a column of probabilities per class, named by the class, and a "
        "column of labels. NPZ: arrays 'proba' and 'labels'.",
        epilog=_EXAMPLE,
    )
    evaluate.add_argument("file", help=".csv or .npz file")
    evaluate.add_argument(
        "--label", default="label", help="column of labels in a CSV file (default: label)"
    )
    return parser


def _at_least(smallest):
    """A type for argparse: integers from ``smallest``."""

    def integer(text):
        number = int(text)
        if number < smallest:
            raise argparse.ArgumentTypeError(f"{number} must be at least {smallest}")
        return number

    return integer


def _files(options):
    return [(options.file, read_predictions(options.file, options.label))]


def _demonstration(seed):
    """Out-of-fold predictions of an overconfident classifier and of a tree ensemble."""
    X, y = load_digits(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    for classifier in (GaussianNB(), RandomForestClassifier(random_state=seed)):
        proba = cross_val_predict(classifier, X, y, cv=folds, method="predict_proba")
        name = f"{type(classifier).__name__} on scikit-learn's digits, out of fold"
        yield name, Predictions(proba, y, np.arange(10))


def _evaluate(name, predictions, options) -> dict:
    report = {"name": name, **_scores(predictions), "searches": []}
    notions = _notions(options.notion, predictions.proba)
    if not options.json:
        print(_heading(report), flush=True)
    for notion in notions:
        search = CalibrationErrorSearchCV(
            notion=notion,
            labels=predictions.classes,
            cv=options.cv,
            outer_cv=options.outer_cv,
            n_jobs=options.n_jobs,
            random_state=options.seed,
            verbose=1,
        )
        with contextlib.redirect_stdout(_LateProgress(sys.stderr)):
            search.fit(predictions.proba, predictions.labels)
        report["searches"].append(as_dict(search))
        if not options.json:
            print(f"\n{search.summary()}", flush=True)
    if not options.json:
        print()
    return report


def _notions(notions, proba):
    """The notions asked for; by default confidence and canonical, for 1-D input binary too."""
    notions = notions or (["confidence", "canonical"] if proba.ndim == 2 else ["binary"])
    return list(dict.fromkeys(resolve_notion(notion, proba) for notion in notions))


def _scores(predictions) -> dict:
    """Accuracy, Brier score and the ECE of 15 equal bins, over all samples."""
    proba, labels, classes = predictions
    codes, _ = check_labels(labels, proba, classes)
    rows = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
    hits = rows.argmax(axis=1) == codes
    outcome = np.eye(rows.shape[1])[codes]
    [problem] = make_problems(proba, codes, "confidence")
    gaps = Binning(15).fit(problem.features, problem.residuals).residual(problem.features)
    return {
        "n_samples": len(codes),
        "n_classes": len(classes),
        "accuracy": float(hits.mean()),
        "brier_score": float(np.mean(np.sum((rows - outcome) ** 2, axis=1))),
        "ece_15_bins": float(np.abs(gaps).mean()),
    }


def _heading(report) -> str:
    line = "=" * len(report["name"])
    return (
        f"{report['name']}\n{line}\n{report['n_samples']:,} predictions of "
        f"{report['n_classes']} classes: accuracy {report['accuracy']:.4f}, Brier score "
        f"{report['brier_score']:.4f}, untuned 15-bin ECE {report['ece_15_bins']:.4f}"
    )


class _LateProgress:
    """A stream that stays silent for the first seconds."""

    def __init__(self, stream):
        self.stream, self.start = stream, time.monotonic()

    def write(self, text):
        """Pass on text once the patience is over."""
        if time.monotonic() - self.start > _PATIENCE:
            self.stream.write(text)

    def flush(self):
        """Flush the stream."""
        self.stream.flush()


if __name__ == "__main__":
    sys.exit(main())
