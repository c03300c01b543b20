"""``python -m skcal``: estimate and test the calibration of predictions."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

from skcal import CalibrationErrorSearchCV
from skcal._validation import check_labels
from skcal.cli.files import FileError, Predictions, align, read_predictions
from skcal.cli.parser import parse
from skcal.displays import ReliabilityDisplay
from skcal.displays.base import require_matplotlib
from skcal.hypothesis_tests import adjust_pvalues, monte_carlo_test, skce_test
from skcal.metrics import expected_calibration_error
from skcal.model_selection.summary import as_dict
from skcal.notions import resolve_notion
from skcal.report import calibration_report
from skcal.report.figure import draw, save_figure
from skcal.report.numbers import default_resamples, skce_options
from skcal.report.rows import number
from skcal.report.text import as_columns, comparison_text

_PATIENCE = 2.0  # seconds before progress is shown
_FIGURES = (".png", ".svg", ".pdf")


def main(arguments=None) -> int:
    """Run the command line; return the exit status."""
    options = parse(arguments)
    commands = {
        None: _run_demonstration,
        "evaluate": _run_evaluate,
        "report": _run_report,
        "test": _run_test,
        "plot": _run_plot,
        "compare": _run_compare,
    }
    try:
        commands[options.command](options)
    except (FileError, ValueError, ImportError, OSError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.filename:
            text = f"{error.filename}: {error.strerror}."
        print(f"skcal: {' '.join(text.split())}", file=sys.stderr)
        return 2
    return 0


def _run_demonstration(options):
    reports = [
        _evaluate(name, predictions, options) for name, predictions in _demonstration(options.seed)
    ]
    if options.json:
        print(json.dumps(reports, indent=2))


def _run_evaluate(options):
    reports = [_evaluate(options.file, _read(options), options)]
    if options.json:
        print(json.dumps(reports, indent=2))


def _read(options, file=None, groups=None) -> Predictions:
    path = options.file if file is None else file
    return read_predictions(
        path,
        options.label,
        groups,
        options.max_size * 2**30,
        pos_label=options.pos_label,
        normalize=options.normalize,
    )


def _run_report(options):
    _check_output(options.html, (".html",))
    predictions = _read(options, groups=options.groups)
    name = Path(options.file).name
    report = _report(predictions, options, name, groups=predictions.groups)
    _save(report, options)
    print(report.to_json() if options.json else report)


def _run_compare(options):
    _check_output(options.html, (".html",))
    first = _read(options)
    second = align(first, _read(options, options.second), options.file, options.second)
    names = Path(options.file).name, Path(options.second).name
    if names[0] == names[1]:
        names = options.file, options.second
    report = _report(first, options, names[0], compare=second.proba, compare_name=names[1])
    _save(report, options)
    print(report.to_json() if options.json else comparison_text(report))


def _report(predictions, options, name, **more):
    return calibration_report(
        predictions.labels,
        predictions.proba,
        labels=predictions.classes,
        notion=_one_notion(options),
        search=options.search,
        n_bins=options.bins,
        strategy=options.strategy,
        outer_cv=options.outer_cv,
        name=name,
        random_state=options.seed,
        n_jobs=options.n_jobs,
        **more,
    )


def _one_notion(options):
    notions = options.notion or ["auto"]
    if len(notions) > 1:
        raise FileError(f"--notion was given more than once; {options.command} takes one.")
    return notions[0]


def _save(report, options):
    if options.html is not None:
        report.save(options.html)


def _check_output(path, endings):
    """Say before the work what would fail after it."""
    if path is None:
        return
    path = Path(path)
    if path.suffix.lower() not in endings:
        raise FileError(f"{path}: unknown format {path.suffix!r}. Use {' or '.join(endings)}.")
    if path.is_dir():
        raise FileError(f"{path}: is a folder. Pass the path of a file.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise FileError(f"{path}: the folder {path.parent} is absent or cannot be written.")
    require_matplotlib()


def _run_plot(options):
    _check_output(options.out, _FIGURES)
    proba, labels, classes = _read(options)[:3]
    notion = _one_notion(options)
    drawn = len(labels) * resolve_notion(notion, proba).values_per_row(len(classes))
    display = ReliabilityDisplay.from_predictions(
        labels,
        proba,
        labels=classes,
        notion=notion,
        method=options.method,
        n_bins=options.bins,
        strategy=options.strategy,
        n_resamples=default_resamples(drawn),
        random_state=options.seed,
        name=Path(options.file).name,
        plot=False,
    )
    save_figure(draw(display), options.out)


def _run_test(options):
    predictions = _read(options)
    facts = [
        fact
        for notion in _notions(options.notion, predictions.proba)
        for fact in _tests(predictions, notion, options)
    ]
    adjusted = adjust_pvalues([fact["pvalue"] for fact in facts]).tolist()
    facts = [{**fact, "pvalue_holm": p} for fact, p in zip(facts, adjusted, strict=True)]
    if options.json:
        print(json.dumps(facts, indent=2))
        return
    print(f"H0: calibrated. {len(predictions.labels):,} predictions in {options.file}\n")
    table = [
        (
            fact["notion"],
            number(fact["estimate"]),
            f"{fact['pvalue']:.2g}",
            f"{fact['pvalue_holm']:.2g}",
            fact["test"],
        )
        for fact in facts
    ]
    header = ("notion", "estimate", "p", "p (Holm)", "test")
    print("\n".join(as_columns([header, *table], "<>>><")))


def _tests(predictions, notion, options):
    """ECE for scalar notions, and the SKCE, by the outcomes redrawn where affordable."""
    proba, labels, classes = predictions[:3]
    shared = {
        "notion": notion,
        "labels": classes,
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
    }
    results = []
    if notion.scalar:
        results.append(monte_carlo_test(labels, proba, n_resamples=options.resamples, **shared))
    n_columns = 1 if notion.scalar else len(classes)
    method = skce_options(len(labels), n_columns, options.resamples)
    if not notion.by_class or method["method"] == "monte-carlo":
        results.append(skce_test(labels, proba, **shared, **method))
    for result in results:
        yield {
            "notion": result.notion,
            "test": result.method,
            "estimate": result.estimate,
            "statistic": result.statistic,
            "pvalue": result.pvalue,
        }


def _demonstration(seed):
    """Out-of-fold predictions of an overconfident classifier and of a tree ensemble."""
    X, y = load_digits(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    for classifier in (GaussianNB(), RandomForestClassifier(random_state=seed)):
        proba = cross_val_predict(classifier, X, y, cv=folds, method="predict_proba")
        name = f"{type(classifier).__name__} on scikit-learn's digits, out of fold"
        yield name, Predictions(proba, y, np.arange(10))


def _evaluate(name, predictions, options) -> dict:
    notions = _notions(options.notion, predictions.proba)
    report = {"name": name, **_scores(predictions, notions), "searches": []}
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
    """The notions asked for; by default "auto" and, of three and more columns, canonical."""
    notions = notions or ["auto", "canonical"][: 2 if proba.ndim == 2 and proba.shape[1] > 2 else 1]
    return list(dict.fromkeys(resolve_notion(notion, proba) for notion in notions))


def _scores(predictions, notions) -> dict:
    """Accuracy, Brier score and the ECE of 15 equal bins, over all samples.

    ECE is of the first scalar notion that is searched; binary Brier scores are of one column.
    """
    proba, labels, classes = predictions[:3]
    notion = next((one for one in notions if one.scalar), resolve_notion("auto", proba))
    one_column = proba.ndim == 1 or notion == "binary"
    codes, _ = check_labels(labels, proba, classes)
    rows = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
    hits = rows.argmax(axis=1) == codes
    outcome = np.eye(rows.shape[1])[codes]
    brier = float(np.mean(np.sum((rows - outcome) ** 2, axis=1)))
    return {
        "n_samples": len(codes),
        "n_classes": len(classes),
        "accuracy": float(hits.mean()),
        "brier_score": brier / 2 if one_column else brier,
        "brier_notion": "binary" if one_column else "classwise",
        "ece_15_bins": expected_calibration_error(labels, proba, notion=notion, labels=classes),
        "ece_notion": notion,
    }


def _heading(report) -> str:
    line = "=" * len(report["name"])
    summed = "one column" if report["brier_notion"] == "binary" else "sum over classes"
    return (
        f"{report['name']}\n{line}\n{report['n_samples']:,} predictions of "
        f"{report['n_classes']} classes: accuracy {report['accuracy']:.4f}, Brier score "
        f"{report['brier_score']:.4f} ({summed}), untuned {report['ece_notion']} ECE "
        f"{report['ece_15_bins']:.4f} (15 bins)"
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
