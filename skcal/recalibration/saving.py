"""Fitted recalibration maps as JSON, so that they are stored without pickles and applied elsewhere.

The keys of the object:

``map``
    Name of the class.
``format``
    1.
``options``
    The parameters of the constructor.
``n_features_in``, ``classes``
    The number of columns of X, and the class of each column of the answer.
``z``
    How z is computed from a row x of X, as text: logits of the classes, of a single column (0, the
    second class's), for maps of one probability the second class's alone.
``probability_floor``
    Where probabilities are mapped, what smaller ones count as.
``parameters``
    What the fit learnt: numbers and (nested) lists of them.
``formula``
    The answer as a function of z, as text; ⊙, powers, roots and exp are element by element, ``@``
    is the product of row and matrix, and (0, …) puts a 0 before a single number.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from skcal._show import read_json

FORMAT = 1
_KEYS = {
    "map": str,
    "format": int,
    "options": dict,
    "n_features_in": int,
    "classes": list,
    "parameters": dict,
}


def to_text(fitted) -> str:
    """A fitted map as JSON."""
    parameters = {
        name: np.asarray(getattr(fitted, f"{name}_")).tolist() for name in fitted._saved_parameters
    }
    return json.dumps(
        {
            "map": type(fitted).__name__,
            "format": FORMAT,
            "options": {k: _plain(v) for k, v in fitted.get_params(deep=False).items()},
            "n_features_in": int(fitted.n_features_in_),
            "classes": np.asarray(fitted.classes_).tolist(),
            "z": _description_of_z(fitted),
            "probability_floor": getattr(fitted, "_floor", None),
            "parameters": parameters,
            "formula": fitted._formula_text(),
        },
        allow_nan=False,
        ensure_ascii=False,
    )


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def _description_of_z(fitted):
    """How z comes from a row x of X."""
    if fitted.n_features_in_ == 1:
        logit = "log(max(x, probability_floor)) - log(max(1 - x, 2^-52))"
        logit = "x" if fitted.from_logits else logit
        return logit if fitted._of_single_probability else f"(0, {logit})"
    if fitted.from_logits:
        return "x[1] - x[0]" if fitted._of_single_probability else "x - log(sum(exp(x)))"
    logs = "log(max(x, probability_floor))"
    return f"({logs})[1] - ({logs})[0]" if fitted._of_single_probability else logs


def from_text(text, known: dict[str, Any]):
    """The fitted map that a text tells, of one of the known classes."""
    told = _read(text)
    if told["map"] not in known:
        raise ValueError(
            f"The text holds the map {told['map']!r:.80}, which is none of {', '.join(known)}."
        )
    options = told["options"]
    fitted = known[told["map"]]()
    unknown = set(options) - set(fitted.get_params(deep=False))
    if unknown:
        raise ValueError(f"options of the text hold {sorted(unknown)[0]!r:.80}, which is unknown.")
    fitted.set_params(**options)
    fitted._validate_params()
    try:
        _restore(fitted, told)
        proba = fitted.predict_proba(_neutral(fitted))
    except (TypeError, ValueError, IndexError, KeyError, OverflowError, MemoryError) as error:
        raise ValueError(f"The text holds parameters that do not fit together: {error}") from error
    if not (np.isfinite(proba).all() and np.allclose(proba.sum(axis=1), 1)):
        raise ValueError("The text holds parameters that give no probabilities.")
    return fitted


def _read(text):
    try:
        told = read_json(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"The text is no JSON: {error}. Pass what to_json() returned.") from None
    if not isinstance(told, dict):
        raise ValueError("The text is no JSON object. Pass what to_json() returned.")
    for key, kind in _KEYS.items():
        if not isinstance(told.get(key), kind) or isinstance(told[key], bool):
            raise ValueError(f"The text lacks {key!r}, or it is not of type {kind.__name__}.")
    if told["format"] != FORMAT:
        raise ValueError(f"The text has format {told['format']}; this version reads {FORMAT}.")
    return told


def _restore(fitted, told):
    n_columns, classes = told["n_features_in"], np.array(told["classes"])
    if classes.ndim != 1 or len(set(told["classes"])) != len(classes) or len(classes) < 2:
        raise ValueError("classes are not distinct names or numbers of two columns or more.")
    if n_columns not in ({1, 2} if len(classes) == 2 else {len(classes)}):
        raise ValueError(f"{n_columns} columns and {len(classes)} classes.")
    fitted.n_features_in_, fitted.classes_ = n_columns, classes
    if not fitted.from_logits:
        fitted._floor = float(told["probability_floor"])
        if not 0 < fitted._floor < 1:
            raise ValueError("probability_floor is not between 0 and 1.")
    for name in fitted._saved_parameters:
        value = np.asarray(told["parameters"][name])
        if value.dtype.kind not in "if" or not np.isfinite(value).all():
            raise ValueError(f"{name} holds what is no finite number.")
        setattr(fitted, f"{name}_", value[()])


def _neutral(fitted):
    """A row of equal logits or probabilities, and one for each column that favours it."""
    if fitted.n_features_in_ == 1:
        return np.array([[0.5], [0.25], [0.75]])
    rows = np.vstack([np.zeros(fitted.n_features_in_), 1 + np.eye(fitted.n_features_in_)])
    weights = np.exp(rows)
    return rows if fitted.from_logits else weights / weights.sum(axis=1, keepdims=True)
