"""The recalibrator as a summary: its candidates, its choice, and what that changes."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np

from skcal._selection import LEVEL, Judged, choice_summary
from skcal._show import Summary, about, format_setting, number, printable, pvalue_text, share
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
        + list(_facts_of_predictions(recalibrator)),
    )


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
        if name == "Mixture" and gap.difference <= 0:
            yield (
                f"{shown} is simpler and its loss is lower, but not significantly for all "
                f"candidates together ({chance} by itself): of maps so close the mean is safer."
            )
        elif gap.difference > 0:
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
