"""The search as a summary and as a dictionary."""

from __future__ import annotations

import math

from skcal._selection import Judged, choice_summary
from skcal._show import Summary, format_setting, number, pvalue_text
from skcal.model_selection.candidates import family_name

_LEVEL = 0.95


def as_dict(search) -> dict:
    """Return what :func:`summary_of` shows, as plain numbers and strings."""
    candidates = [
        judged.record("risk", "best")
        | {"parameters": {k: _plain_value(v) for k, v in family.best_setting.items()}}
        for family, judged in zip(search.families_, _judged(search), strict=True)
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


def _judged(search) -> list[Judged]:
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
    names = (family_name(result.function) for result in search.outer_results_)
    standard_error = _plain_value(search.one_step_standard_error_)
    bound = None if standard_error is None else search.lower_confidence_bound(_LEVEL)
    return {
        "function": ", ".join(dict.fromkeys(names)),
        "squared_error": search.one_step_squared_error_,
        "standard_error": standard_error,
        "pvalue": search.one_step_.pvalue,
        "lower_confidence_bound": bound,
        "confidence_level": _LEVEL,
    }


def _plain_value(value):
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | str | bool | None) else repr(value)


def summary_of(search) -> Summary:
    """Return the table, the choice and the estimates of a fitted search."""
    facts = as_dict(search)
    repeats = f"; medians over {search.n_repeats} repeats" if search.n_repeats > 1 else ""
    return choice_summary(
        f"{facts['notion']} calibration of {facts['n_samples']:,} predictions, "
        f"{len(search.classes_)} classes; cross-validated on {_how_many(facts)}{repeats}",
        _judged(search),
        "risk",
        decimals=7,
        reference="best",
        record="risk",
        choice=_chosen_function(facts),
        facts=_estimate_facts(facts),
    )


def _how_many(facts) -> str:
    """How many of the predictions are tested."""
    tested = facts["n_test_samples"]
    return f"{'all ' if tested == facts['n_samples'] else ''}{tested:,} predictions"


def _chosen_function(facts) -> list[str]:
    """The candidate that was chosen, and simpler ones that are as good."""
    chosen = next(fact["candidate"] for fact in facts["candidates"] if fact["chosen"])
    simplest = facts["simplest_not_worse"]
    lines = [f"chosen: {chosen}, which has the lowest risk (mean squared error over pairs)."]
    if simplest not in (chosen, "Zero"):  # whether Zero would do is what tests of calibration ask
        lines.append(f"{simplest} is simpler, and its risk is not significantly higher (p > 0.05).")
    return lines


def _estimate_facts(facts) -> list[tuple[str, str]]:
    """The name and the text of each number: the headline, the verdict, and the search's own."""
    spread = number(facts["standard_error"] or 0, 6)
    headline, rms = facts["calibration_error"], facts["rms_calibration_error"]
    name, _, text = (facts["sentence"] or "").partition(" error ")
    lines = [(f"{name} error", text)] if headline else []
    shown = "no evidence of miscalibration"
    if facts["pvalue"] <= 1 - _LEVEL:
        shown = "significantly miscalibrated"
    # The RMS error of the population is never below the calibration error.
    below = "; by chance below the calibration error here"
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
    if bound is None or facts["pvalue"] > 1 - _LEVEL:
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
