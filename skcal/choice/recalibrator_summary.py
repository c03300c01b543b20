"""The recalibrator as a summary: its candidates, its choice, and what that changes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import expit, logit

from skcal._selection import LEVEL, Judged, choice_summary
from skcal._show import Summary, about, format_setting, number, printable, pvalue_text, share
from skcal.metrics.cox import cox_recalibration
from skcal.recalibration.mixture import Mixture


def summary_of(recalibrator: Any) -> Summary:
    """The table, the choice and the gain."""
    if not hasattr(recalibrator, "cv_results_"):
        return Summary(f"{recalibrator.best_name_}, read from JSON")
    classes = recalibrator.classes_.tolist()
    what = f", {len(classes)} classes"
    if recalibrator.n_features_in_ == 1:
        what = f" of P({printable(str(classes[1]))})"
    out_of_fold = getattr(recalibrator, "out_of_fold_", None)
    n_judged = 0 if out_of_fold is None else len(out_of_fold.rows)
    if isinstance(recalibrator.cv, Integral) and 0 < n_judged < recalibrator.n_samples_:
        what += f", {n_judged:,} of them drawn at random"
    judged = [
        Judged(name, _setting_text(setting), gap.before, gap, name == recalibrator.best_name_)
        for name, setting, gap in zip(
            recalibrator.names_, recalibrator._shown_params, recalibrator.comparisons_, strict=True
        )
    ]
    gains = (("log_loss", "log loss"), ("brier_score", "Brier score"))
    return choice_summary(
        f"{recalibrator.n_samples_:,} predictions{what}; cross-validated losses",
        judged,
        "log loss" if recalibrator.scoring == "neg_log_loss" else "Brier score",
        decimals=5,
        reference="chosen",
        record="loss",
        choice=list(_chosen_map(recalibrator)),
        facts=[(label, str(recalibrator.comparison_[key])) for key, label in gains]
        + list(_facts_of_lines(recalibrator))
        + list(_facts_of_predictions(recalibrator)),
    )


def _facts_of_lines(recalibrator) -> Iterator[tuple[str, str]]:
    """Slope and intercept of one event before, after and by a logistic update, cross-validated.

    TRIPOD asks for them where a model is updated.
    """
    judged = getattr(recalibrator, "out_of_fold_", None)
    if judged is None or len(recalibrator.classes_) > 2:
        return
    rows, before = np.arange(len(judged.before)), judged.before[:, 1]
    line = _line(judged, before, rows)
    if line is None:
        yield "calibration slope", "undefined: these outcomes determine no finite one"
        return
    yield "slope and intercept before", line.sentence()
    if recalibrator.best_name_ != "Identity":
        after = _line(judged, judged.after[:, 1], rows)
        yield "slope and intercept after", "undefined" if after is None else after.sentence()
    updated = np.full(len(before), np.nan)
    for fold in recalibrator._cross_fits:
        test = np.searchsorted(judged.rows, fold.test)
        of_others = _line(judged, before, np.setdiff1d(rows, test))
        if of_others is not None:
            updated[test] = _moved(before[test], of_others)
    proof = None if np.isnan(updated).any() else _line(judged, updated, rows)
    if proof is not None:
        update = f"new log-odds = {line.intercept:.3g} + {line.slope:.3g} × log-odds"
        yield "logistic update", f"{update}; cross-validated: {proof.sentence()}"


def _line(judged, proba, rows) -> Any:
    """The logistic recalibration of some rows, None where their outcomes determine none."""
    codes, n_classes = judged.codes[rows], judged.before.shape[1]
    groups = judged.groups.codes
    with warnings.catch_warnings(), suppress(ValueError):
        warnings.simplefilter("ignore")  # the sentence says what is undefined
        return cox_recalibration(
            codes,
            proba[rows],
            sample_weight=judged.weight[rows],
            groups=groups if groups is None else groups[rows],
            labels=np.arange(n_classes),
        )
    return None


def _moved(proba, line) -> np.ndarray:
    """Probabilities whose log-odds are moved by a line; 0 and 1 stay."""
    with np.errstate(divide="ignore"):
        return expit(line.intercept + line.slope * logit(proba))


def _facts_of_predictions(recalibrator) -> Iterator[tuple[str, str]]:
    """Calibration error, accuracy and predicted classes, before and after."""
    judged = getattr(recalibrator, "out_of_fold_", None)
    if judged is None:
        return
    error, left = recalibrator.initial_error(), recalibrator.remaining_error()
    limits = left.sentence().partition(" (")[2]
    yield "calibration error before", error.sentence().removeprefix("calibration error ")
    limits = limits.removeprefix("not significantly above 0; ")
    error_left = f"{about(left.estimate, left.high)} ({limits}"
    unsure = "; this limit is above the error before, so a reduction is not shown"
    unsure *= left.high >= error.estimate
    yield "calibration error after", f"{error_left}{unsure}"
    yield "", "A report cross-validates in other folds, so its error after differs within noise."
    before, after = judged.before.argmax(axis=1), judged.after.argmax(axis=1)
    rows = np.arange(len(before))
    of_shares = judged.codes.ndim == 2
    accuracy = [
        np.average(
            judged.codes[rows, top] if of_shares else judged.codes == top, weights=judged.weight
        )
        for top in (before, after)
    ]
    yield "accuracy", f"{number(accuracy[0])} before, {number(accuracy[1])} after"
    changed = np.average(before != after, weights=judged.weight)
    yield "predicted classes", f"{share(changed)} of the samples change theirs (out-of-fold)"


def _setting_text(setting: dict) -> str:
    """Short text of a map's parameters; the weights of a mixture stand below the table."""
    if isinstance(setting["map"], Mixture):
        return "weights below"
    return format_setting({name: value for name, value in setting.items() if name != "map"})


def _chosen_map(recalibrator: Any) -> Iterator[str]:
    name = recalibrator.best_name_
    if recalibrator._harm:
        yield f"chosen: the predictions as they are; recalibration {recalibrator._harm}."
    elif name == "Identity":
        yield "chosen: the predictions as they are; no map is significantly better."
    elif name == "Mixture":
        shares = sorted(recalibrator._shares.items(), key=lambda item: -item[1])
        parts = ", ".join(f"{100 * part:.0f} % {candidate}" for candidate, part in shares)
        temperature = recalibrator.best_estimator_.temperature
        then = "" if temperature == 1 else f", then temperature {temperature:.3f}"
        yield f"chosen: the mean of the candidates, {parts}{then}."
    else:
        only = len(recalibrator.names_) - ("Identity" in recalibrator.names_) == 1
        how = ", by its cross-validated loss"
        if only:
            leave = "the only other candidate is to leave the predictions as they are"
            leave = leave if "Identity" in recalibrator.names_ else "there is no other candidate"
            how = f"{_averaged(recalibrator.best_estimator_)}; {leave}"
        yield f"chosen: {name}{how}."
    simplest = recalibrator.simplest_name_
    if name not in ("Identity", simplest):
        gap = recalibrator.comparisons_[recalibrator.names_.index(simplest)]
        shown = "The identity" if simplest == "Identity" else simplest
        chance = pvalue_text(gap.pvalue, 0)
        if gap.difference > 0:
            yield f"{shown} is simpler, and its loss is not significantly higher ({chance})."
        elif gap.pvalue > LEVEL:
            yield f"{shown} is simpler, and its loss is lower, but not significantly ({chance})."
        else:
            yield f"{shown} is simpler and has the lower loss ({chance})."


def _averaged(estimator: Any) -> str:
    """The maps that a single map averages, with their shares, the largest first."""
    weights = getattr(estimator, "weights_", None)
    if not isinstance(weights, dict):
        return ""
    parts = sorted(weights.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{100 * part:.0f} % {name}" for name, part in parts if part >= 0.005)
    return f", the average of several maps, these: {shown}"
