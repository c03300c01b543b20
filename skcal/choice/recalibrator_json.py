"""Fitted recalibrators as JSON, by which they are applied elsewhere.

The keys of the object:

``recalibrator``
    1, the format.
``classes``, ``n_features_in``, ``from_logits``
    As of a fitted :class:`skcal.Recalibrator`.
``n_samples``, ``n_rows``
    The number of samples, and n, the number of rows that their weights stand for.
``name``
    What tables call the map.
``formula``
    What is answered for the probabilities q of the map and C classes, as text: (n q + 1 / C) /
    (n + 1), except of the identity, whose q is answered.
``map``
    One of ``{"map": "Identity"}``, the probabilities as they are; ``{"map": "Smoothed", "strength":
    a, "estimator": map, "probability_floor": floor}``, the map of (p + a) / (1 + a C);
    ``{"map": "Mixture", "weights": [...], "temperature": T, "maps": [...]}``, softmax(log m / T) of
    the weighted mean m, where probabilities below 2⁻⁵² count as that; or a map as
    :mod:`skcal.recalibration.saving` describes it, with its formula.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from skcal._show import Document, worded
from skcal.recalibration.base import Identity, RecalibrationMap, Smoothed, known_maps
from skcal.recalibration.mixture import Mixture
from skcal.recalibration.saving import from_document, set_columns

JSON_FORMAT = 1


def recalibrator_to_text(recalibrator) -> str:
    """A fitted recalibrator as JSON."""
    return json.dumps(
        {
            "recalibrator": JSON_FORMAT,
            "classes": recalibrator.classes_.tolist(),
            "n_features_in": int(recalibrator.n_features_in_),
            "from_logits": bool(recalibrator.from_logits),
            "n_samples": int(recalibrator.n_samples_),
            "n_rows": float(recalibrator.n_rows_),
            "name": recalibrator.best_name_,
            "formula": _formula(recalibrator),
            "map": _as_object(recalibrator.best_estimator_),
        },
        allow_nan=False,
        ensure_ascii=False,
    )


def _formula(recalibrator) -> str:
    if isinstance(recalibrator.best_estimator_, Identity):
        return "q, the probabilities of the map"
    n, n_classes = recalibrator.n_rows_, len(recalibrator.classes_)
    n = int(n) if n % 1 == 0 else n
    return f"({n} q + 1 / {n_classes}) / {n + 1}, q the probabilities of the map"


def _as_object(fitted) -> dict:
    """A fitted map, which may hold others, as an object of JSON."""
    if isinstance(fitted, Identity):
        return {"map": "Identity"}
    if isinstance(fitted, Smoothed):
        return {
            "map": "Smoothed",
            "strength": float(fitted.strength),
            "estimator": _as_object(fitted.estimator_),
            "probability_floor": getattr(fitted, "_floor", None),
        }
    if isinstance(fitted, Mixture):
        weights = np.asarray(fitted.weights).tolist()
        maps = [_as_object(part) for part in fitted.estimators_]
        temperature = float(fitted.temperature)
        return {"map": "Mixture", "weights": weights, "temperature": temperature, "maps": maps}
    if isinstance(fitted, RecalibrationMap):
        return json.loads(fitted.to_json())
    raise TypeError(
        f"{type(fitted).__name__} is no map of skcal and has no JSON. Store it by skops or pickle."
    )


def recalibrator_from_text(recalibrator, text: str) -> None:
    """Set the attributes of a recalibrator that predict."""
    remedy = worded(
        "Pass what Recalibrator.to_json() returned; maps are read by their own from_json.",
        "Give a file that recalibrate --save wrote.",
    )
    document = Document.parse(text, "a recalibrator", remedy)
    if "recalibrator" not in document.parts:
        raise document.wrong("text", "is not a recalibrator")
    document.expect("recalibrator", JSON_FORMAT)
    set_columns(recalibrator, document)
    recalibrator.from_logits = document.value("from_logits", bool)
    recalibrator.n_samples_ = document.count("n_samples", 1)
    recalibrator.n_rows_ = float(recalibrator.n_samples_)  # of a text without it
    if "n_rows" in document.parts:
        recalibrator.n_rows_ = document.number("n_rows", 0.5, 1e300)
    recalibrator.best_name_ = document.value("name", str)
    shape = recalibrator.n_features_in_, len(recalibrator.classes_)
    try:
        recalibrator.best_estimator_ = _restored(
            document.part("map"), recalibrator.from_logits, shape
        )
    except RecursionError as error:
        raise document.wrong("map", "is nested too deeply") from error
    recalibrator._cross_fits = []


def _restored(document: Document, from_logits: bool, shape: tuple[int, int]) -> Any:
    """A fitted map of predictions of a kind, with so many columns and classes."""
    name = document.value("map", str)
    if name == "Identity":
        return _with_shape(Identity(from_logits), shape)
    if name == "Smoothed":
        inner = _restored(document.part("estimator"), False, shape)
        strength = document.number("strength", 0, 1e300)
        smoothed = _with_shape(Smoothed(inner, strength, from_logits), shape)
        smoothed.estimator_ = inner
        if not from_logits:
            smoothed._floor = document.number("probability_floor", math.ulp(0.0), 0.5)
        return smoothed
    if name == "Mixture":
        maps = [_restored(part, from_logits, shape) for part in document.objects("maps")]
        weights = document.array("weights", low=0)
        if weights.shape != (len(maps),) or not np.isclose(weights.sum(), 1):
            raise document.wrong("weights", "are not one for each map, of sum 1")
        mixture = Mixture(maps, weights, document.number("temperature", 1e-6, 1e6))
        mixture.estimators_ = maps
        return _with_shape(mixture, shape)
    fitted = from_document(document, known_maps(RecalibrationMap))
    if (fitted.n_features_in_, len(fitted.classes_)) != shape or fitted.from_logits != from_logits:
        raise document.wrong("map", f"{name} is of other predictions")
    return fitted


def _with_shape(fitted, shape: tuple[int, int]):
    """A map that learns nothing, as fitted to so many columns and classes."""
    fitted.n_features_in_, fitted.classes_ = shape[0], np.arange(shape[1])
    return fitted
