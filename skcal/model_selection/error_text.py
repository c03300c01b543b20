"""Errors that people report, in words and as plain numbers."""

from __future__ import annotations

import math

import numpy as np

from skcal._text import number
from skcal.model_selection.errors import ErrorEstimate

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
    """Return an error of a fitted search as plain numbers and strings; None is what is not finite.

    ``reading`` says on which side the predictions err, where the lower bound shows an error.
    """
    error = search.error(kind)
    bound = None
    if error.one_step is not None and (
        math.isinf(error.estimate) or np.isfinite(error.one_step.standard_error)
    ):
        bound = error.lower_confidence_bound(confidence_level)
    return {
        "kind": kind,
        "name": _NAMES[kind],
        "notion": str(error.notion),
        "estimate": _finite(error.estimate),
        "standard_error": _finite(error.standard_error),
        "lower_confidence_bound": _finite(bound),
        "confidence_level": confidence_level,
        "over": error.over,
        "under": error.under,
        "reading": _reading(search, error, bound),
    }


def _finite(value):
    return float(value) if value is not None and math.isfinite(value) else None


def error_line(facts: dict) -> str:
    """Return the error, its uncertainty and the side in one line."""
    name = facts["name"].ljust(22)
    if facts["estimate"] is None:
        return f"{name} {facts['reading']}"
    line = f"{name} {number(facts['estimate'])}"
    if facts["standard_error"] is not None:
        line += f" ± {number(facts['standard_error'])} (s.e.)"
    if facts["lower_confidence_bound"] is not None:
        line += f", at least {number(max(facts['lower_confidence_bound'], 0.0))} at 95 % confidence"
    return f"{line}; {facts['reading']}" if facts["reading"] else line


def _reading(search, error: ErrorEstimate, bound: float | None) -> str:
    if math.isinf(error.estimate):
        return "infinite: something happened that had probability 0"
    if error.over is None or error.under is None or bound is None or bound <= 0:
        return ""
    words = ("too high", "too low")
    if search.notion_ in ("confidence", "top-label"):
        words = ("overconfident", "underconfident")
    said = []
    for sign, word, size in zip((-1, 1), words, (error.over, error.under), strict=True):
        if size >= _PART * error.estimate:
            where = _where(search, sign) if search.notion_.single else ""
            said.append(f"{word} by {size:.3f}{where}")
    return ", ".join(said)


def _where(search, sign) -> str:
    """The predictions that hold nine tenths of a side's corrections, where that is not all."""
    fit = search.cross_fits_[0]
    x, weight = fit.data.parts[0].features[:, 0], fit.data.weight
    size = weight * np.maximum(sign * fit.corrections[0][:, 0], 0)
    if not size.any():
        return ""
    low, high = _quantiles(x, size)
    first, last = _quantiles(x, weight)
    if low <= first:
        return "" if high >= last else f" below {number(high, 2)}"
    return (
        f" above {number(low, 2)}"
        if high >= last
        else f" from {number(low, 2)} to {number(high, 2)}"
    )


def _quantiles(x, weight):
    order = np.argsort(x, kind="stable")
    mass = np.cumsum(weight[order]) / weight.sum()
    places = np.searchsorted(mass, [_TAIL, 1 - _TAIL])
    return x[order][np.minimum(places, len(x) - 1)]
