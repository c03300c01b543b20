"""Fitted recalibrators as JSON, by which they are applied elsewhere.

The keys of the object:

``recalibrator``
    1, the format.
``classes``, ``n_features_in``, ``from_logits``
    As of a fitted :class:`skcal.Recalibrator`.
``n_samples``
    n, the number of samples.
``formula``
    What is answered for the probabilities q of the map and C classes, as text: (n q + 1 / C) /
    (n + 1), except of the identity, whose q is answered.
``map``
    One of ``{"map": "Identity"}``, the probabilities as they are; ``{"map": "Smoothed", "strength":
    a, "estimator": map}``, the map of (p + a) / (1 + a C); ``{"map": "Mixture", "weights": [...],
    "maps": [...]}``, the weighted mean; or a map as :mod:`skcal.recalibration.saving` describes it,
    with its formula.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from skcal._show import read_json
from skcal.recalibration.base import Identity, RecalibrationMap, Smoothed
from skcal.recalibration.mixture import Mixture

FORMAT = 1


def recalibrator_to_text(recalibrator) -> str:
    """A fitted recalibrator as JSON."""
    return json.dumps(
        {
            "recalibrator": FORMAT,
            "classes": recalibrator.classes_.tolist(),
            "n_features_in": int(recalibrator.n_features_in_),
            "from_logits": bool(recalibrator.from_logits),
            "n_samples": int(recalibrator.n_samples_),
            "name": recalibrator.best_name_,
            "formula": _formula(recalibrator),
            "map": _told(recalibrator.best_estimator_),
        },
        allow_nan=False,
        ensure_ascii=False,
    )


def _formula(recalibrator) -> str:
    if isinstance(recalibrator.best_estimator_, Identity):
        return "q, the probabilities of the map"
    n, n_classes = recalibrator.n_samples_, len(recalibrator.classes_)
    return f"({n} q + 1 / {n_classes}) / {n + 1}, q the probabilities of the map"


def _told(fitted) -> dict:
    if isinstance(fitted, Identity):
        return {"map": "Identity"}
    if isinstance(fitted, Smoothed):
        inner = _told(fitted.estimator_)
        told = {"map": "Smoothed", "strength": float(fitted.strength), "estimator": inner}
        return told | {"probability_floor": getattr(fitted, "_floor", None)}
    if isinstance(fitted, Mixture):
        weights = np.asarray(fitted.weights).tolist()
        return {"map": "Mixture", "weights": weights, "maps": list(map(_told, fitted.estimators_))}
    if isinstance(fitted, RecalibrationMap):
        return json.loads(fitted.to_json())
    raise TypeError(
        f"{type(fitted).__name__} is no map of skcal and has no JSON. Store it by skops or pickle."
    )


def recalibrator_from_text(recalibrator, text: str) -> None:
    """Set the attributes of a recalibrator that predict."""
    try:
        told = read_json(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"The text is no JSON: {error}. Pass what to_json() returned.") from None
    if not isinstance(told, dict) or told.get("recalibrator") != FORMAT:
        raise ValueError(
            f"The text holds no recalibrator of format {FORMAT}. Pass what Recalibrator.to_json() "
            "returned; maps are read by their own from_json."
        )
    try:
        classes = np.array(told["classes"])
        if classes.ndim != 1 or len(classes) < 2 or len(set(classes.tolist())) != len(classes):
            raise ValueError("classes are not distinct names or numbers of two columns or more")
        columns, n_samples = int(told["n_features_in"]), int(told["n_samples"])
        if columns not in ({1, 2} if len(classes) == 2 else {len(classes)}) or n_samples < 1:
            raise ValueError(f"{columns} columns, {len(classes)} classes, {n_samples} samples")
        recalibrator.from_logits = bool(told["from_logits"])
        recalibrator.classes_, recalibrator.n_features_in_ = classes, columns
        recalibrator.n_samples_, recalibrator.best_name_ = n_samples, str(told["name"])
        shape = columns, len(classes)
        recalibrator.best_estimator_ = _restored(told["map"], recalibrator.from_logits, shape)
        recalibrator._identity = _set(Identity(recalibrator.from_logits), shape)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"The text holds parts that do not fit together: {error!r}.") from error
    recalibrator._cross_fits = []


def _restored(told: dict, from_logits: bool, shape) -> Any:
    name = told["map"]
    if name == "Identity":
        return _set(Identity(from_logits), shape)
    if name == "Smoothed":
        inner = _restored(told["estimator"], False, shape)
        fitted = _set(Smoothed(inner, float(told["strength"]), from_logits), shape)
        fitted.estimator_ = inner
        if not from_logits:
            fitted._floor = float(told["probability_floor"])
        return fitted
    if name == "Mixture":
        maps = [_restored(one, from_logits, shape) for one in told["maps"]]
        weights = np.array(told["weights"], dtype=np.float64)
        if len(maps) != len(weights) or not np.isclose(weights.sum(), 1) or weights.min() < 0:
            raise ValueError("weights of a mixture")
        fitted = Mixture(maps, weights)
        fitted.estimators_, fitted.classes_ = maps, np.arange(shape[1])
        return fitted
    fitted = RecalibrationMap.from_json(json.dumps(told))
    if (fitted.n_features_in_, len(fitted.classes_)) != shape or fitted.from_logits != from_logits:
        raise ValueError(f"{name} is of other predictions")
    return fitted


def _set(fitted, shape):
    fitted.n_features_in_, fitted.classes_ = shape[0], np.arange(shape[1])
    return fitted
