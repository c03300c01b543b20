"""Which maps a recalibrator tries, and which keep the order of the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from skcal._selection import as_pair, distinct_names, settings_of, shown_name
from skcal._validation import InputError
from skcal.recalibration.base import Identity, Smoothed
from skcal.recalibration.bayesian import BayesianCalibration
from skcal.recalibration.scaling import MatrixScaling, VectorScaling
from skcal.recalibration.temperature import EnsembleTemperatureScaling, TemperatureScaling

MATRIX_MAX_CLASSES = 100
_TOL = 1e-5  # of maps whose neighbours on the grid differ by far more


def default_candidates(
    n_classes: int, monotone=True, preserve_classes=False, absent=False
) -> list[tuple]:
    """Maps and grids, from the simplest on; if options are absent, those that treat all alike."""
    if n_classes == 2 and not preserve_classes and not absent:
        return [(BayesianCalibration(monotone=monotone), {})]
    temperatures: list[tuple] = [
        (TemperatureScaling(), {}),
        (EnsembleTemperatureScaling(), {}),
        (Smoothed(TemperatureScaling(), strength=0.01), {}),
    ]
    if absent:
        return temperatures[:2]
    if preserve_classes:
        return temperatures
    vector = VectorScaling(C=1 / (2 * n_classes), structured=True, tol=_TOL)
    if n_classes > MATRIX_MAX_CLASSES:
        return [*temperatures[:2], (vector, {})]
    roots = MatrixScaling(structured=True, tol=_TOL)
    logs = MatrixScaling(C=0.01, structured=True, coordinates="log-ratio", tol=_TOL)
    return [
        *temperatures,
        (vector, {}),
        (logs, {}),
        (roots, {"C": [0.1, 1.0, 10.0]}),
        (Smoothed(roots, strength=0.001), {"estimator__C": [0.1, 1.0]}),
    ]


def default_max_samples(n_classes: int) -> int:
    """Samples that choose: enough for differences that matter."""
    return 50_000 if n_classes == 2 else 5_000


def keeps_order(estimator: Any) -> bool:
    """Whether a map never changes the order of the classes of a sample."""
    if isinstance(estimator, Smoothed):
        return keeps_order(estimator.estimator)
    return type(estimator) in (Identity, TemperatureScaling, EnsembleTemperatureScaling)


@dataclass(eq=False)
class MapCandidate:
    """A map with its parameter settings, and an unfitted map for each."""

    name: str
    map: Any
    settings: list[dict]
    maps: list


_REMEDY = (
    "Pass a map such as skcal.TemperatureScaling(), or (map, param_grid); a map has fit and "
    "predict_proba."
)


def _is_map(candidate) -> bool:
    return hasattr(candidate, "fit") and hasattr(candidate, "predict_proba")


def make_map_candidates(
    candidates,
    n_classes: int,
    from_logits=False,
    monotone=True,
    preserve_classes=False,
    absent=False,
) -> list[MapCandidate]:
    """Expand maps or (map, param_grid) pairs, None the default ones; the identity comes first."""
    if not monotone and candidates is None and (n_classes > 2 or preserve_classes):
        reason = "belongs to the default map of two classes, which may change their order."
        raise InputError("monotone=False", reason, "Leave it out.")
    if candidates is None:
        candidates = default_candidates(n_classes, monotone, preserve_classes, absent)
    elif not monotone:
        reason = "belongs to the default candidates, and candidates are passed."
        raise InputError("monotone=False", reason, "Leave one of them out.")
    identity = Identity(from_logits)
    expanded: list[tuple] = [(identity, [{}], [identity])]
    for position, candidate in enumerate(candidates):
        place = f"candidates[{position}]"
        estimator, grid = as_pair(candidate, place, _is_map, _REMEDY)
        if preserve_classes and not keeps_order(estimator):
            reason = f"is {shown_name(estimator)}, which can change the order of the classes."
            remedy = "Pass preserve_classes=False, or temperatures, which keep it."
            raise InputError(place, reason, remedy)
        if not isinstance(estimator, Identity):
            place = f"{place}, {shown_name(estimator)}"
            estimator = for_input(estimator, from_logits, place)
            if absent and not getattr(estimator, "_takes_absent", False):
                reason = "does not take logits of -inf, those of absent options."
                remedy = "Leave candidates out, or pass TemperatureScaling() or "
                raise InputError(place, reason, f"{remedy}EnsembleTemperatureScaling().")
            expanded.append((estimator, *settings_of(estimator, grid, place)))
    names = distinct_names(shown_name(estimator) for estimator, _, _ in expanded)
    return [MapCandidate(name, *rest) for name, rest in zip(names, expanded, strict=True)]


def for_input(estimator, from_logits, place):
    """The map, reading logits if all predictions are logits."""
    if from_logits != getattr(estimator, "from_logits", False):
        if not hasattr(estimator, "from_logits"):
            raise ValueError(
                f"{place}, has no from_logits. Pass maps that have it, or probabilities and "
                "from_logits=False."
            )
        return clone(estimator).set_params(from_logits=from_logits)
    return estimator
