"""The command ``evaluate`` and the demonstration: searches with their progress."""

from __future__ import annotations

import io
import sys
import time
from contextlib import redirect_stdout

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

from skcal import CalibrationErrorSearchCV
from skcal._scores import brier_losses, of_outcomes
from skcal._show import printable
from skcal._validation import check_labels
from skcal.cli.gates import GATED_ERRORS
from skcal.cli.predictions import Predictions
from skcal.metrics import expected_calibration_error
from skcal.model_selection.errors import error_facts, error_line
from skcal.model_selection.summary import as_dict
from skcal.notions import resolve_notion

_PATIENCE = 2.0  # seconds before progress is shown


def demonstration(seed):
    """Out-of-fold predictions of an overconfident classifier and of a tree ensemble."""
    X, y = load_digits(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    for classifier in (GaussianNB(), RandomForestClassifier(random_state=seed)):
        proba = cross_val_predict(classifier, X, y, cv=folds, method="predict_proba")
        name = f"{type(classifier).__name__} on scikit-learn's digits, out of fold"
        yield name, Predictions(proba, y, np.arange(10))


def evaluate(name, predictions, options) -> dict:
    """Search each notion, print the summaries unless JSON is wanted, and return all numbers."""
    notions = chosen_notions(options.notion, predictions.proba)
    report = {"name": name, **scores_of(predictions, notions), "searches": []}
    if not options.json:
        options.print(title_of(report))
    for notion in notions:
        search = _search(predictions, notion, options)
        kinds = [kind for kind in dict.fromkeys(options.error or []) if kind not in GATED_ERRORS]
        facts = [error_facts(search, kind) for kind in kinds]
        report["searches"].append({**as_dict(search), "errors": facts})
        if not options.json:
            more = [error_line(fact, 19) for fact in facts if fact["kind"] != "l1"]  # it has that
            options.print("\n" + "\n".join([search.summary(), *more]))
    if not options.json:
        options.print()
    return report


def chosen_notions(notions, proba):
    """The notions asked for; by default "auto" and, of three and more columns, canonical."""
    auto = resolve_notion("auto", proba)
    notions = notions or ([auto] if auto.of_positive_class else [auto, "canonical"])
    return list(dict.fromkeys(resolve_notion(notion, proba) for notion in notions))


def _search(predictions, notion, options) -> CalibrationErrorSearchCV:
    """A fitted search; its progress goes to the error stream once it has taken some seconds."""
    search = CalibrationErrorSearchCV(
        notion=notion,
        labels=predictions.classes,
        cv=options.cv,
        outer_cv=options.outer_cv,
        n_jobs=options.n_jobs,
        random_state=options.seed,
        verbose=int(not options.quiet),
    )
    if options.quiet:
        return search.fit(predictions.proba, predictions.labels)
    with redirect_stdout(LateLines()):  # the standard output itself has the results
        return search.fit(predictions.proba, predictions.labels)


class LateLines(io.TextIOBase):
    """A stream that passes on to the error stream what is written once some seconds are over."""

    def __init__(self):
        self.start = time.monotonic()

    def write(self, text):
        """Write a text, or drop it."""
        if sys.stderr is not None and time.monotonic() - self.start > _PATIENCE:
            sys.stderr.write(text)
            sys.stderr.flush()
        return len(text)


def scores_of(predictions, notions) -> dict:
    """Accuracy, Brier score and the ECE of 15 equal bins, over all samples.

    ECE is of the first scalar notion that is searched.
    """
    proba, labels, classes = predictions[:3]
    notion = next((one for one in notions if one.scalar), resolve_notion("auto", proba))
    brier_notion = notion if notion.of_positive_class else resolve_notion("classwise", proba)
    codes, _ = check_labels(labels, proba, classes)
    rows = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
    hits = rows.argmax(axis=1) == codes
    return {
        "n_samples": len(codes),
        "n_classes": len(classes),
        "accuracy": float(hits.mean()),
        "brier_score": float(of_outcomes(brier_losses(rows), codes).mean()),
        "brier_notion": brier_notion,
        "ece_15_bins": expected_calibration_error(labels, proba, notion=notion, labels=classes),
        "ece_notion": notion,
    }


def title_of(report) -> str:
    """The first lines that are printed of an evaluation."""
    name = printable(" ".join(report["name"].split()))
    summed = "one column" if report["n_classes"] == 2 else "sum over classes"
    return (
        f"{name}\n{'=' * len(name)}\n{report['n_samples']:,} predictions of "
        f"{report['n_classes']} classes: accuracy {report['accuracy']:.4f}, Brier score "
        f"{report['brier_score']:.4f} ({summed}), untuned {report['ece_notion']} ECE "
        f"{report['ece_15_bins']:.4f} (15 bins)"
    )
