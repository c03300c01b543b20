"""The search as a summary and as a dictionary."""

from __future__ import annotations

import math

from skcal._selection import Judged, choice_summary
from skcal._show import Summary, format_setting, number
from skcal.model_selection.candidates import family_name

_LEVEL = 0.95


def as_dict(search) -> dict:
    """Return what :func:`summary_of` shows, as plain numbers and strings."""
    candidates = [
        one.record("risk", "best")
        | {"parameters": {k: _plain_value(v) for k, v in family.best_setting.items()}}
        for family, one in zip(search.families_, _judged(search), strict=True)
    ]
    return {
        "notion": str(search.notion_),
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
    """What was chosen, and what would have done."""
    chosen = next(fact["candidate"] for fact in facts["candidates"] if fact["chosen"])
    simplest = facts["simplest_not_worse"]
    lines = [f"chosen: {chosen}, which has the lowest risk (mean squared error over pairs)."]
    if simplest not in (chosen, "Zero"):  # whether Zero would do is what tests of calibration ask
        lines.append(f"{simplest} is simpler, and its risk is not significantly higher (p > 0.05).")
    return lines


def _estimate_facts(facts) -> list[tuple[str, str]]:
    """The name and the text of each estimate."""
    error = number(facts["standard_error"] or 0, 6)
    lines = [
        (
            "RMS calibration error",
            f"{_root_of(facts['squared_error'])} ± {error} (s.e.)",
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
    return [*lines, *_one_step_lines(facts["one_step"])]


def _one_step_lines(fact) -> list[tuple[str, str]]:
    estimate, bound = _root_of(fact["squared_error"]), fact["lower_confidence_bound"]
    if bound is None:
        return [("one-step", f"{estimate}, by {fact['function']}")]
    error = f"± {number(fact['standard_error'], 6)} (s.e.), by {fact['function']}"
    lines = [("one-step", f"{estimate} {error}")]
    if bound > 0:
        reading = f"{_root_of(bound)}: the RMS error is at least this (95 % confidence)"
        lines.append(("lower bound", reading))
    return lines


def _root_of(squared: float) -> str:
    """The root in probability units, with its square."""
    if squared < 0:
        return f"0.0000   (its square is estimated as {number(squared, 6)})"
    return f"{number(math.sqrt(squared))}   root of {number(squared, 6)}"
