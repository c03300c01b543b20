"""What a recalibrator chose and gained, as text."""

from __future__ import annotations

import numpy as np

from skcal._cv_results import format_setting
from skcal._text import as_columns, printable
from skcal.recalibration.mixture import Mixture


def _shown(setting: dict) -> str:
    """Short text of a map's parameters, of a mixture its weights."""
    if isinstance(setting["map"], Mixture):
        largest = np.sort(setting["map"].weights)[::-1]
        return "weights " + ", ".join(f"{weight:.2f}" for weight in largest[:3])
    return format_setting({name: value for name, value in setting.items() if name != "map"})


def summarize(recalibrator) -> str:
    """Return the table and the gain of a fitted recalibrator."""
    loss = "log loss" if recalibrator.scoring == "neg_log_loss" else "Brier score"
    rows = [("  candidate", "best parameters", loss, "above chosen ± s.e.", "p")]
    for name, setting, comparison in zip(
        recalibrator.names_, recalibrator._shown_params, recalibrator.comparisons_, strict=True
    ):
        chosen = name == recalibrator.best_name_
        rows.append(
            (
                ("* " if chosen else "  ") + name,
                _shown(setting),
                "infinite" if np.isinf(comparison.before) else f"{comparison.before:.5f}",
                *(("-", "") if chosen else _gap(comparison)),
            )
        )
    lines = [
        f"{recalibrator.n_samples_:,} predictions{_of_what(recalibrator)}; "
        "losses of samples that were held out",
        "",
        *as_columns(rows, "<<>>>"),
        "",
        *_reading(recalibrator),
    ]
    return "\n".join(lines)


def _of_what(recalibrator):
    """The positive class of single probabilities, otherwise the number of classes."""
    classes = recalibrator.classes_.tolist()
    if recalibrator.n_features_in_ == 1:
        return f" of P({printable(str(classes[1]))})"
    return f", {len(classes)} classes"


def _gap(comparison):
    if not np.isfinite(comparison.difference):
        return "infinite", ""
    gap = f"{comparison.difference:+.1e} ± {comparison.standard_error:.1e}"
    return gap, f"{comparison.pvalue:.2g}"


def _reading(recalibrator):
    name = recalibrator.best_name_
    if name == "Identity":
        yield "* chosen: the predictions as they are; no map is significantly better."
    elif name == "Mixture":
        yield "* chosen: the mean of the candidates, by weights of the highest held-out likelihood."
    else:
        yield f"* chosen: {name}, on samples that it was not fitted to."
    if name not in ("Identity", recalibrator.simplest_name_):
        yield (
            f"  {recalibrator.simplest_name_} is simpler and its loss not significantly higher "
            "(p > 0.05)."
        )
    for key, label in (("log_loss", "log loss"), ("brier_score", "Brier score")):
        yield f"{label:12s} {recalibrator.comparison_[key]}"
