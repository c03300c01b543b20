"""What the search and the recalibrator say that they chose, and why."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import suppress
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import expit, logit

from skcal._selection import LEVEL, Judged, choice_summary
from skcal._show import (
    Summary,
    about,
    format_setting,
    method_name,
    number,
    printable,
    pvalue_text,
    share,
    worded,
)
from skcal.metrics.cox import cox_recalibration
from skcal.model_selection.candidates import family_name
from skcal.recalibration.mixture import Mixture

_SUMMARY_LEVEL = 0.95
#: Models of a Bayesian average whose names do not say what they do.
_IN_WORDS = {
    "identity": "no change",
    "Platt": "slope and intercept",
    "noise": "an allowance for wrong labels",
    "shifts": "a shift in each range",
    "steps": "a frequency in each range",
}


def as_dict(search) -> dict:
    """Return what :func:`summary_of_search` shows, as plain numbers and strings."""
    candidates = [
        judged.record("risk", "best")
        | {"parameters": {k: _plain_value(v) for k, v in family.best_setting.items()}}
        for family, judged in zip(search.families_, _judged_families(search), strict=True)
    ]
    test, error = search.verdict()
    return {
        "notion": str(search.notion_),
        "pvalue": test.pvalue,
        "smallest_pvalue": test.smallest_pvalue,
        "calibration_error": error
        and {
            name: getattr(error, name)
            for name in ("estimate", "low", "high", "confidence_level", "max_crossings")
        },
        "sentence": error and error.sentence(),
        "n_samples": search.n_samples_,
        "n_test_samples": search.n_test_samples_,
        "candidates": candidates,
        "simplest_not_worse": search.simplest_family_.name,
        "squared_error": search.squared_error_,
        "standard_error": _plain_value(search.standard_error_),
        "rms_calibration_error": search.rms_calibration_error_,
        "calibrated_up_to": search.calibrated_up_to_,
        "plug_in_squared_error": search.plug_in_squared_error_,
        "fold_spread": search.fold_spread_,
        "one_step": _one_step_facts(search) if search.one_step_ is not None else None,
    }


def _judged_families(search) -> list[Judged]:
    return [
        Judged(
            family.name,
            format_setting(family.best_setting),
            0.0 - float(family.scores.max()),
            comparison,
            family is search.best_family_,
        )
        for family, comparison in zip(search.families_, search.comparisons_, strict=True)
    ]


def _one_step_facts(search) -> dict:
    names = (method_name(family_name(result.function)) for result in search.outer_results_)
    standard_error = _plain_value(search.one_step_standard_error_)
    bound = None if standard_error is None else search.lower_confidence_bound(_SUMMARY_LEVEL)
    return {
        "function": ", ".join(dict.fromkeys(names)),
        "squared_error": search.one_step_squared_error_,
        "standard_error": standard_error,
        "pvalue": search.one_step_.pvalue,
        "lower_confidence_bound": bound,
        "confidence_level": _SUMMARY_LEVEL,
    }


def _plain_value(value):
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | str | bool | None) else repr(value)


def summary_of_search(search) -> Summary:
    """Return the table, the choice and the estimates of a fitted search."""
    facts = as_dict(search)
    repeats = f"; medians over {search.n_repeats} repeats" if search.n_repeats > 1 else ""
    return choice_summary(
        f"{facts['notion']} calibration of {facts['n_samples']:,} predictions, "
        f"{len(search.classes_)} classes; cross-validated on {_n_tested(facts)}{repeats}",
        _judged_families(search),
        "risk",
        decimals=7,
        reference="best",
        record="risk",
        choice=_chosen_function(facts),
        facts=_estimate_facts(facts),
    )


def _n_tested(facts) -> str:
    """How many of the predictions are tested."""
    tested = facts["n_test_samples"]
    return f"{'all ' if tested == facts['n_samples'] else ''}{tested:,} predictions"


def _chosen_function(facts) -> list[str]:
    """The candidate that was chosen, and simpler ones that are as good."""
    chosen = next(fact["candidate"] for fact in facts["candidates"] if fact["chosen"])
    simplest = facts["simplest_not_worse"]
    lines = [
        f"chosen: {method_name(chosen)}, which has the lowest risk (mean squared error over pairs)."
    ]
    if simplest not in (chosen, "Zero"):  # whether Zero would do is what tests of calibration ask
        alike = "and its risk is not significantly higher (p > 0.05)"
        lines.append(f"{method_name(simplest)} is simpler, {alike}.")
    return lines


def _estimate_facts(facts) -> list[tuple[str, str]]:
    """The name and the text of each number: the headline, the verdict, and the search's own."""
    spread = number(facts["standard_error"] or 0, 6)
    headline, rms = facts["calibration_error"], facts["rms_calibration_error"]
    name, _, text = (facts["sentence"] or "").partition(" error ")
    lines = [(f"{name} error", text)] if headline else []
    shown = "no evidence of miscalibration"
    if facts["pvalue"] <= 1 - _SUMMARY_LEVEL:
        shown = "significantly miscalibrated"
    # The RMS error of the population is never below the calibration error.
    below = "; smaller than the calibration error by noise"
    if headline is None or rms >= headline["estimate"]:
        below = ""
    lines += [
        ("verdict", f"{shown} ({pvalue_text(facts['pvalue'], facts['smallest_pvalue'])})"),
        (
            "RMS calibration error",
            f"{_root_of(facts['squared_error'])} ± {spread} (s.e.){below}",
        ),
        ("if calibrated", f"below {number(facts['calibrated_up_to'])} in 95 % of samples"),
        (
            "plug-in",
            f"{_root_of(facts['plug_in_squared_error'])}; "
            f"fold models spread by {number(facts['fold_spread'], 6)}",
        ),
    ]
    if facts["one_step"] is None:
        return [*lines, ("one-step", "none: no candidate estimates the residual itself")]
    lines += _one_step_lines(facts["one_step"])
    return lines + _lower_bound(facts)


def _one_step_lines(fact) -> list[tuple[str, str]]:
    estimate = _root_of(fact["squared_error"])
    if fact["lower_confidence_bound"] is None:
        return [("one-step", f"{estimate}, by {fact['function']}")]
    error = f"± {number(fact['standard_error'], 6)} (s.e.), by {fact['function']}"
    return [("one-step", f"{estimate} {error}")]


def _lower_bound(facts) -> list[tuple[str, str]]:
    """That of the RMS error where the verdict is significant, which is never below the headline's.

    The root mean square is at least the mean.
    """
    bound = facts["one_step"]["lower_confidence_bound"]
    if bound is None or facts["pvalue"] > 1 - _SUMMARY_LEVEL:
        return []
    low = facts["calibration_error"]["low"] if facts["calibration_error"] else 0.0
    if low**2 > max(bound, 0.0):
        return [("lower bound", f"{number(low)}   that of the calibration error")]
    if bound <= 0:
        return []
    return [("lower bound", f"{_root_of(bound)}: the RMS error is at least this (95 % confidence)")]


def _root_of(squared: float) -> str:
    """The root in probability units, with its square."""
    if squared < 0:
        return f"0.0000   (its square is estimated as {number(squared, 6)})"
    return f"{number(math.sqrt(squared))}   root of {number(squared, 6)}"


def summary_of_recalibrator(recalibrator: Any) -> Summary:
    """The table, the choice and the gain."""
    if not hasattr(recalibrator, "cv_results_"):
        return Summary(f"{method_name(recalibrator.best_name_)}, read from JSON")
    classes = recalibrator.classes_.tolist()
    what = f", {len(classes)} classes"
    if recalibrator.n_features_in_ == 1:
        what = f" of the probability of {printable(str(classes[1]))}"
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
    line = _logistic_line(judged, before, rows)
    if line is None:
        yield "calibration slope", "undefined: these outcomes determine no finite one"
        return
    yield "slope and intercept before", line.sentence()
    if recalibrator.best_name_ != "Identity":
        after = _logistic_line(judged, judged.after[:, 1], rows)
        yield "slope and intercept after", "undefined" if after is None else after.sentence()
    updated = np.full(len(before), np.nan)
    for fold in recalibrator._cross_fits:
        test = np.searchsorted(judged.rows, fold.test)
        of_others = _logistic_line(judged, before, np.setdiff1d(rows, test))
        if of_others is not None:
            updated[test] = _moved(before[test], of_others)
    proof = None if np.isnan(updated).any() else _logistic_line(judged, updated, rows)
    if proof is not None:
        update = f"new log-odds = {line.intercept:.3g} + {line.slope:.3g} × log-odds"
        update = f"for comparison, not the chosen map: {update}"
        yield "logistic update", f"{update}; cross-validated: {proof.sentence()}"


def _logistic_line(judged, proba, rows) -> Any:
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
    unsure = "; this limit is above the error before, so a reduction is not certain"
    unsure *= left.high >= error.estimate
    if recalibrator.best_name_ != "Identity":  # else nothing is done
        yield "calibration error after", f"{error_left}{unsure}"
        yield (
            "",
            "A report cross-validates in other folds, so its error after differs within noise.",
        )
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
        yield "chosen: the predictions as they are; no map clearly lowers the cross-validated loss."
    elif name == "Mixture":
        shares = sorted(recalibrator._shares.items(), key=lambda item: -item[1])
        parts = ", ".join(f"{100 * part:.0f} % {method_name(name)}" for name, part in shares)
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
        yield f"chosen: {method_name(name)}{how}.{_without_gain(recalibrator)}"
    simplest = recalibrator.simplest_name_
    if name not in ("Identity", simplest):
        gap = recalibrator.comparisons_[recalibrator.names_.index(simplest)]
        shown = method_name(simplest)
        if simplest == "Identity":
            shown = worded("The identity", shown)
        chance = pvalue_text(gap.pvalue, 0)
        if gap.difference > 0:
            yield f"{shown} is simpler, and its loss is not significantly higher ({chance})."
        elif gap.pvalue > LEVEL:
            yield f"{shown} is simpler, and its loss is lower, but not significantly ({chance})."
        else:
            yield f"{shown} is simpler and has the lower loss ({chance})."


def _without_gain(recalibrator: Any) -> str:
    """Say of a choice that no lower loss and no smaller error are certain, and what to do."""
    if getattr(recalibrator, "out_of_fold_", None) is None:
        return ""
    gaps = recalibrator.comparison_.values()
    lower = any(gap.difference > 0 and gap.pvalue <= LEVEL for gap in gaps)
    error = recalibrator.initial_error()
    if lower or recalibrator.remaining_error().high < error.estimate:
        return ""
    if not error.is_significant:
        return " No gain over the predictions as they are is certain; they may stay as they are."
    return (
        f" The predictions are miscalibrated ({error.sentence()}), but cross-validation does not "
        "show for certain that this map gains on new data."
    )


def _averaged(estimator: Any) -> str:
    """The maps that a single map averages, with their shares, the largest first."""
    weights = getattr(estimator, "weights_", None)
    if not isinstance(weights, dict):
        return ""
    parts = sorted(weights.items(), key=lambda item: -item[1])
    shown = ", ".join(
        f"{100 * part:.0f} % {_IN_WORDS.get(name, name)}" for name, part in parts if part >= 0.005
    )
    return f", an average of maps, weighted by how well they fit: {shown}"
