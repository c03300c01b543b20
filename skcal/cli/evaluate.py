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
from skcal._matrices import two_columns
from skcal._scores import brier_losses, of_outcomes
from skcal._selection import LEVEL
from skcal._show import printable
from skcal.cli.gates import GATED_ERRORS, line_of_gate
from skcal.cli.predictions import Predictions, samples_of
from skcal.hypothesis_tests import calibration_test
from skcal.hypothesis_tests.result import default_resamples
from skcal.metrics import expected_calibration_error
from skcal.metrics.cross_fitted import ece_without_bins
from skcal.model_selection.errors import error_facts, error_line
from skcal.model_selection.summary import as_dict
from skcal.notions import resolve_notion
from skcal.report.words import impossible_outcomes, sides_of
from skcal.sample import read_sample

_PATIENCE = 2.0  # seconds before progress is shown


def demonstration(seed):
    """Out-of-fold predictions of an overconfident classifier and of a tree ensemble."""
    X, y = load_digits(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    for classifier in (GaussianNB(), RandomForestClassifier(random_state=seed)):
        proba = cross_val_predict(classifier, X, y, cv=folds, method="predict_proba")
        name = f"{type(classifier).__name__} on scikit-learn's digits, out of fold"
        yield name, Predictions(proba, y, np.arange(10))


def evaluate(name, predictions, options, gate=None) -> dict:
    """Search each notion, print the summaries unless JSON is wanted, and return all numbers.

    The numbers of a gate, as of :func:`skcal.cli.gates.gate_of_errors`, are printed, too.
    """
    notions = chosen_notions(options.notion, predictions.proba)
    weight = samples_of(predictions, options)["sample_weight"]
    report = {"name": name, **scores_of(predictions, notions, weight), "searches": []}
    if not options.json:
        options.print(scores_line(report))
    for notion in notions:
        search = _search(predictions, notion, options)
        kinds = [kind for kind in dict.fromkeys(options.error or []) if kind not in GATED_ERRORS]
        sample = read_sample(
            predictions.labels,
            predictions.proba,
            notion,
            labels=predictions.classes,
            **samples_of(predictions, options),
        )
        without_bins = ece_without_bins(sample, random_state=options.seed)
        facts = [without_bins if kind == "l1" else error_facts(search, kind) for kind in kinds]
        test = verdict_test(predictions, notion, options)
        report["searches"].append(
            {
                **as_dict(search),
                "without_bins": without_bins,
                "errors": facts,
                "pvalue": test.pvalue,
            }
        )
        if not options.json:
            more = [without_bins, *(fact for fact in facts if fact is not without_bins)]
            lines = [error_line(_agreeing(fact, test), 19) for fact in more]
            options.print("\n" + "\n".join([search.summary(), *lines, _verdict_line(test, search)]))
    if not options.json:
        if gate is not None:
            options.print("\n" + "\n".join(line_of_gate(facts) for facts in gate["results"]))
        options.print()
    return report


def verdict_test(predictions, notion, options, n_resamples=None):
    """The test that decides the verdict of reports, too; by default of as many resamples."""
    return calibration_test(
        predictions.labels,
        predictions.proba,
        notion=notion,
        labels=predictions.classes,
        **samples_of(predictions, options),
        n_resamples=n_resamples or default_resamples(len(predictions.labels)),
        random_state=options.seed,
        n_jobs=options.n_jobs,
    )


def _agreeing(fact, test) -> dict:
    """An error without what the verdict does not show: sides, and a limit above 0.

    Sides are shares of the error, which are read as gaps.
    """
    if fact["estimate"] is None:  # which the reading explains
        return fact
    shown = test.pvalue <= LEVEL
    bound = fact["lower_confidence_bound"] if shown else None
    return {**fact, "reading": "", "lower_confidence_bound": bound}


def _verdict_line(test, search) -> str:
    """Whether miscalibration is shown, as a line of the summary of a search."""
    shown = test.pvalue <= LEVEL
    about = f"; {impossible_outcomes(test)}" if test.n_impossible else ""
    about += f"; predictions are {sides_of(test)}" if sides_of(test) else ""
    bounded = search.one_step_squared_error_ is not None
    if not shown and bounded and search.lower_confidence_bound() > 0:
        about = "; the lower bound above is by a test of its own, not adjusted for this one"
    text = f"miscalibration is {'' if shown else 'not '}shown (p = {test.pvalue:.2g}{about})"
    return f"{'verdict':19} {text}{'' if shown else ', which does not show that it is small'}"


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
    data, more = (predictions.proba, predictions.labels), samples_of(predictions, options)
    if options.quiet:
        return search.fit(*data, **more)
    with redirect_stdout(LateLines()):  # the standard output itself has the results
        return search.fit(*data, **more)


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


def scores_of(predictions, notions, weight=None) -> dict:
    """Accuracy, Brier score and the ECE of 15 equal bins, over all samples.

    ECE is of the first scalar notion that is searched.
    """
    proba, labels, classes = predictions[:3]
    notion = next((one for one in notions if one.scalar), resolve_notion("auto", proba))
    brier_notion = notion if notion.of_positive_class else resolve_notion("classwise", proba)
    sample = read_sample(labels, proba, sample_weight=weight, labels=classes)
    losses = of_outcomes(brier_losses(two_columns(sample.proba)), sample.happened)
    return {
        "n_samples": len(labels),
        "n_classes": len(classes),
        "accuracy": sample.accuracy,
        "brier_score": float(np.average(losses, weights=sample.weight)),
        "brier_notion": brier_notion,
        "ece_15_bins": expected_calibration_error(
            labels, proba, notion=notion, labels=classes, sample_weight=weight
        ),
        "ece_notion": notion,
    }


def scores_line(report) -> str:
    """The first lines that are printed of an evaluation."""
    name = printable(" ".join(report["name"].split()))
    summed = "one column" if report["n_classes"] == 2 else "sum over classes"
    return (
        f"{name}\n{'=' * len(name)}\n{report['n_samples']:,} predictions of "
        f"{report['n_classes']} classes: accuracy {report['accuracy']:.4f}, Brier score "
        f"{report['brier_score']:.4f} ({summed}), untuned {report['ece_notion']} ECE "
        f"{report['ece_15_bins']:.4f} (15 bins)"
    )
