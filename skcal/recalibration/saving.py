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
``line``
    null, or the numbers of a line by which z became log-odds before the map was fitted: z is then
    what its key ``z`` says, of two columns their difference, of more less its mean. With t =
    (z - centre) / spread, which beyond ±bend becomes sign(t) (bend + 0.01 log(1 + abs(t) - bend)),
    slope t + offset takes the place of z; of two and more columns less its log-sum-exp.
``probability_floor``
    Where probabilities are mapped, the floor below which they count as nearly that.
``parameters``
    What the fit learnt: numbers and (nested) lists of them; of a map of one probability that was
    fitted to several classes ``estimators``, such an object for each class against the rest.
``formula``
    The answer as a function of z, as text; ⊙, powers, roots and exp are element by element, ``@``
    is the product of row and matrix, and (0, …) puts a 0 before a single number.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from skcal._show import Document

MAP_FORMAT = 1
_PASS_MAP = "Pass what to_json() of a map returned."


def to_text(fitted) -> str:
    """A fitted map as JSON."""
    formula = fitted._formula
    if fitted._is_of_several_classes:
        formula = "q / sum(q), q[k] the answer of estimators[k] to z[k]"
    return json.dumps(
        {
            "map": type(fitted).__name__,
            "format": MAP_FORMAT,
            "options": {
                name: value.item() if isinstance(value, np.generic) else value
                for name, value in fitted.get_params(deep=False).items()
            },
            "n_features_in": int(fitted.n_features_in_),
            "classes": np.asarray(fitted.classes_).tolist(),
            "z": _description_of_z(fitted),
            "line": _as_lists(getattr(fitted, "line_", None)),
            "probability_floor": getattr(fitted, "_floor", None),
            "parameters": fitted._saved(),
            "formula": formula,
        },
        allow_nan=False,
        ensure_ascii=False,
    )


def _as_lists(line):
    return line and {name: np.asarray(value).tolist() for name, value in line.items()}


def _logarithm(x, floor):
    """The logarithm of a probability, below a floor by 1e-7 of what is lost."""
    lost = f"log(max(min({x}, {floor}), 5e-324) / {floor})"
    return f"log(max({x}, {floor})) + 1e-7 * {lost}"


def _description_of_z(fitted):
    """How z comes from a row x of X."""
    if fitted.n_features_in_ == 1:
        rest = _logarithm("1 - x", "2^-52")
        logit = f"{_logarithm('x', 'probability_floor')} - ({rest})"
        logit = "x" if fitted.from_logits else logit
        return logit if fitted._of_single_probability else f"(0, {logit})"
    if fitted._is_of_several_classes:
        logits = "x" if fitted.from_logits else _logarithm("x", "probability_floor")
        return f"L - log(sum(exp of the others of L)), L = {logits}"
    if fitted.from_logits:
        return "x[1] - x[0]" if fitted._of_single_probability else "x - log(sum(exp(x)))"
    logs = _logarithm("x", "probability_floor")
    return f"({logs})[1] - ({logs})[0]" if fitted._of_single_probability else logs


def from_text(text, known: dict[str, Any]):
    """The fitted map that a text holds, of one of the known classes."""
    return from_document(Document.parse(text, "a map", _PASS_MAP), known)


def from_document(document: Document, known: dict[str, Any]):
    """The fitted map that an object of JSON holds, of one of the known classes."""
    name = document.value("map", str)
    if name not in known:
        raise document.wrong("map", f"is {name!r:.80}, which is none of {', '.join(known)}")
    document.expect("format", MAP_FORMAT)
    fitted, options = known[name](), document.value("options", dict)
    unknown = set(options) - set(fitted.get_params(deep=False))
    if unknown:
        raise document.wrong("options", f"hold {sorted(unknown)[0]!r:.80}, which is unknown")
    fitted.set_params(**options)
    fitted._validate_params()
    set_columns(fitted, document)
    if not fitted.from_logits:
        fitted._floor = document.number("probability_floor", math.ulp(0.0), 0.5)
    fitted.line_ = _read_line(document)
    parameters = document.part("parameters")
    if fitted._is_of_several_classes:
        parts = parameters.objects("estimators")
        fitted.estimators_ = [from_document(part, {name: type(fitted)}) for part in parts]
    else:
        for parameter in fitted._saved_parameters:
            setattr(fitted, f"{parameter}_", parameters.array(parameter)[()])
    try:
        proba = fitted.predict_proba(_neutral(fitted))
    except (TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
        raise document.wrong("parameters", f"do not fit together ({error})") from error
    if not (np.isfinite(proba).all() and np.allclose(proba.sum(axis=1), 1)):
        raise document.wrong("parameters", "give no probabilities")
    return fitted


def _read_line(document: Document) -> dict | None:
    """The line of a map, None without."""
    if document.parts.get("line") is None:
        return None
    part = document.part("line")
    return {
        "centre": part.array("centre"),
        "spread": part.number("spread", math.ulp(0.0), np.inf),
        "slope": part.number("slope", 0, np.inf),
        "offset": part.array("offset"),
        "bend": part.number("bend", 0, np.inf),
    }


def set_columns(fitted, document: Document) -> None:
    """Set the classes and the number of columns of what predicts."""
    classes = document.labels("classes")
    n_columns = document.count("n_features_in", 1)
    if n_columns not in ({1, 2} if len(classes) == 2 else {len(classes)}):
        raise document.wrong("n_features_in", f"is {n_columns} for {len(classes)} classes")
    fitted.n_features_in_, fitted.classes_ = n_columns, np.array(classes)


def _neutral(fitted):
    """A row of equal logits or probabilities, and for each column one that favours it."""
    if fitted.n_features_in_ == 1:
        return np.array([[0.5], [0.25], [0.75]])
    rows = np.vstack([np.zeros(fitted.n_features_in_), 1 + np.eye(fitted.n_features_in_)])
    weights = np.exp(rows)
    return rows if fitted.from_logits else weights / weights.sum(axis=1, keepdims=True)
