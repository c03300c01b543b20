"""Errors that people report, in words and as plain numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from skcal._show import number, percent
from skcal.model_selection.errors import ErrorEstimate
from skcal.notions import Problems

_LEVEL = 0.95
_PART = 0.2  # of the error: what a side needs to be said
_TAIL = 0.05
_NAMES = {
    "squared": "squared error",
    "rms": "root mean square error",
    "l1": "ECE without bins",
    "l2": "mean Euclidean error",
    "log": "log error",
}


def error_facts(search, kind: str, confidence_level: float = _LEVEL) -> dict:
    """Return an error of a fitted search as :func:`facts_of` does."""
    fit = search.cross_fits_[0]
    return facts_of(search.error(kind), fit.data, fit.corrections, confidence_level)


def facts_of(
    error: ErrorEstimate,
    data: Problems,
    corrections: Sequence[np.ndarray],
    confidence_level: float = _LEVEL,
) -> dict:
    """Return an error as plain numbers and strings; None is what is not finite.

    ``reading`` says on which side the predictions err, and where the corrections (n_rows, m) of the
    problems say so, if the lower bound shows an error.
    """
    bound = None
    if error.one_step is not None and (
        math.isinf(error.estimate) or np.isfinite(error.one_step.standard_error)
    ):
        bound = error.lower_confidence_bound(confidence_level)
    return {
        "kind": error.kind,
        "name": _NAMES[error.kind],
        "notion": str(error.notion),
        "estimate": _finite(error.estimate),
        "standard_error": _finite(error.standard_error),
        "lower_confidence_bound": _finite(bound),
        "confidence_level": confidence_level,
        "over": error.over,
        "under": error.under,
        "reading": _reading(error, bound, data, corrections),
    }


def _finite(value):
    return float(value) if value is not None and math.isfinite(value) else None


def error_line(facts: dict, width: int = 22) -> str:
    """Return the error, its uncertainty and the side in one line; the name takes ``width``."""
    return f"{facts['name'].ljust(width)} {error_text(facts)}"


def error_text(facts: dict) -> str:
    """Return the error without its name."""
    if facts["estimate"] is None:
        return facts["reading"]
    line = number(facts["estimate"])
    if facts["standard_error"] is not None:
        line += f" ± {number(facts['standard_error'])} (s.e.)"
    if facts["lower_confidence_bound"] is not None:
        bound, level = max(facts["lower_confidence_bound"], 0.0), facts["confidence_level"]
        line += f", at least {number(bound)} at {percent(level)} confidence"
    return f"{line}; {facts['reading']}" if facts["reading"] else line


def _reading(error: ErrorEstimate, bound: float | None, data, corrections) -> str:
    if math.isinf(error.estimate):
        return "infinite: something happened that had probability 0"
    if error.over is None or error.under is None or bound is None or bound <= 0:
        return ""
    largest = error.notion.of_largest
    words = ("overconfident", "underconfident") if largest else ("too high", "too low")
    said = []
    for sign, word, size in zip((-1, 1), words, (error.over, error.under), strict=True):
        if size >= _PART * error.estimate:
            alone = len(data.parts) == 1
            where = _where(data, corrections[0][:, 0], sign) if alone else ""
            said.append(f"{word} by {size:.3f}{where}")
    return ", ".join(said)


def _where(data: Problems, correction, sign) -> str:
    """The predictions that hold nine tenths of a side's corrections, where that is not all."""
    x, weight = data.parts[0].features[:, 0], data.weight
    size = weight * np.maximum(sign * correction, 0)
    if not size.any():
        return ""
    low, high = _quantiles(x, size)
    first, last = _quantiles(x, weight)
    all_above = high >= last or f"{high:.2g}" == "1"
    if low <= first:
        return "" if all_above else f" below {high:.2g}"
    return f" above {low:.2g}" if all_above else f" from {low:.2g} to {high:.2g}"


def _quantiles(x, weight):
    order = np.argsort(x, kind="stable")
    mass = np.cumsum(weight[order]) / weight.sum()
    places = np.searchsorted(mass, [_TAIL, 1 - _TAIL])
    return x[order][np.minimum(places, len(x) - 1)]
