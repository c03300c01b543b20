"""What a recalibrator chose and gained, as text."""

from __future__ import annotations

import numpy as np

from skcal._show import Summary, format_setting, printable
from skcal.recalibration.mixture import Mixture


def _shown(setting: dict) -> str:
    """Short text of a map's parameters, of a mixture its weights."""
    if isinstance(setting["map"], Mixture):
        largest = np.sort(setting["map"].weights)[::-1]
        more = ", …" if np.count_nonzero(largest) > 3 else ""
        return "weights " + ", ".join(f"{weight:.2f}" for weight in largest[:3]) + more
    return format_setting({name: value for name, value in setting.items() if name != "map"})


def summary_of(recalibrator) -> Summary:
    """Return the table and the gain of a fitted recalibrator."""
    if not hasattr(recalibrator, "cv_results_"):
        return Summary(f"{recalibrator.best_name_}, read from JSON")
    header, *rows = _table(recalibrator)
    return Summary(
        _heading(recalibrator),
        header,
        rows,
        recalibrator.names_.index(recalibrator.best_name_),
        list(_choice(recalibrator)),
        _gains(recalibrator),
        list(_records(recalibrator)),
    )


def _heading(recalibrator) -> str:
    classes = recalibrator.classes_.tolist()
    what = f", {len(classes)} classes"
    if recalibrator.n_features_in_ == 1:
        what = f" of P({printable(str(classes[1]))})"
    return f"{recalibrator.n_samples_:,} predictions{what}; losses of samples that were held out"


def _table(recalibrator) -> list[tuple[str, ...]]:
    """The header and a row of text for each candidate."""
    loss = "log loss" if recalibrator.scoring == "neg_log_loss" else "Brier score"
    rows: list[tuple[str, ...]] = [
        ("candidate", "best parameters", loss, "above chosen ± s.e.", "p")
    ]
    for name, setting, comparison in zip(
        recalibrator.names_, recalibrator._shown_params, recalibrator.comparisons_, strict=True
    ):
        rows.append(
            (
                name,
                _shown(setting),
                "infinite" if np.isinf(comparison.before) else f"{comparison.before:.5f}",
                *(("-", "") if name == recalibrator.best_name_ else _gap(comparison)),
            )
        )
    return rows


def _records(recalibrator):
    """The numbers of each candidate in full."""
    found = zip(
        recalibrator.names_, recalibrator._shown_params, recalibrator.comparisons_, strict=True
    )
    for name, setting, comparison in found:
        yield {
            "candidate": name,
            "parameters": _shown(setting),
            "loss": comparison.before,
            "loss_above_chosen": comparison.difference,
            "standard_error": comparison.standard_error,
            "pvalue": comparison.pvalue,
            "chosen": name == recalibrator.best_name_,
        }


def _gap(comparison):
    if not np.isfinite(comparison.difference):
        return "infinite", ""
    gap = f"{comparison.difference:+.1e} ± {comparison.standard_error:.1e}"
    return gap, f"{comparison.pvalue:.2g}"


def _choice(recalibrator):
    name = recalibrator.best_name_
    if name == "Identity":
        yield "chosen: the predictions as they are; no map is significantly better."
    elif name == "Mixture":
        yield "chosen: the mean of the candidates, by weights of the highest held-out likelihood."
    else:
        yield f"chosen: {name}, on samples that it was not fitted to."
    simplest = recalibrator.simplest_name_
    if name not in ("Identity", simplest):
        above = recalibrator.comparisons_[recalibrator.names_.index(simplest)].difference
        loss = "not significantly higher (p > 0.05)" if above > 0 else "not higher"
        yield f"{simplest} is simpler and its loss {loss}."


def _gains(recalibrator) -> list[tuple[str, str]]:
    """Each loss before and after, on samples that no fit has seen."""
    labels = (("log_loss", "log loss"), ("brier_score", "Brier score"))
    return [(label, str(recalibrator.comparison_[key])) for key, label in labels]
