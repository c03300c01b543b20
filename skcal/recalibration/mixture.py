"""Fits of any map to checked predictions, mixtures, and which maps a recalibrator tries."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skcal._selection import as_pair, distinct_names, settings_of, short_name
from skcal._sklearn_compat import Interval, _fit_context
from skcal._validation import InputError, read_columns
from skcal.recalibration.base import Identity, Smoothed
from skcal.recalibration.bayesian import BayesianCalibration
from skcal.recalibration.features import log_probabilities
from skcal.recalibration.reading import LabelledPredictions, read_for_map
from skcal.recalibration.scaling import MatrixScaling, VectorScaling
from skcal.recalibration.temperature import EnsembleTemperatureScaling, TemperatureScaling, uniform

_PACKAGE = str(Path(__file__).parents[1])
_EM_STEPS = 200
_LEAST_WEIGHT = 0.02  # weight of a map that is worth its fit


def fit_map(estimator, data: LabelledPredictions):
    """Fit a clone; weights that are all 1 are not passed on.

    For a map of others shares become a row for each class that has one. Among this package's own
    warnings, only those of fits that did not converge are passed on: maps get column numbers, of
    which one may be absent from a fold, and some candidates are for rounded logarithms.
    """
    data = data.for_fit_of(estimator)
    estimator, weight = clone(estimator), data.weight
    options = {}
    if not (weight == 1).all():
        last, model = "", estimator
        if isinstance(estimator, Pipeline):
            last, model = f"{estimator.steps[-1][0]}__", estimator.steps[-1][1]
        if has_fit_parameter(model, "sample_weight"):
            options = {f"{last}sample_weight": weight}
        elif not (weight == weight[0]).all():
            reason = f"varies, and {type(model).__name__}.fit does not take sample_weight."
            raise InputError("sample_weight", reason, "Add it to fit, or pass equal weights.")
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
        estimator.fit(data.X, data.happened, **options)
    for entry in caught:
        is_of_package = entry.filename.startswith(_PACKAGE)
        if not is_of_package or issubclass(entry.category, ConvergenceWarning):
            warnings.warn(entry.message, stacklevel=2)
    return estimator


def plain_proba(fitted, X: np.ndarray, n_classes: int) -> np.ndarray:
    """Probabilities (n, C) of a fitted map, 0 for classes that it does not know."""
    proba = np.asarray(fitted.predict_proba(X), dtype=X.dtype)
    if proba.shape == (len(X), n_classes):
        return proba
    if proba.shape != (len(X), len(getattr(fitted, "classes_", ()))):
        raise ValueError(
            f"{type(fitted).__name__}.predict_proba returned an array of shape {proba.shape} for "
            f"{len(X)} samples of {n_classes} classes. Return shape {len(X), n_classes}: a column "
            "for each class."
        )
    whole = np.zeros((len(proba), n_classes), X.dtype)
    whole[:, fitted.classes_] = proba
    return whole


def mapped_proba(fitted, X: np.ndarray, n_rows: float, n_classes: int) -> np.ndarray:
    """Probabilities (n, C) of a map that was fitted to so many rows.

    Except of the identity they are mixed with uniform ones, of weight 1 / (n_rows + 1), since so
    few rows cannot show that anything is impossible. Absent options, with logits of -inf, stay so.
    """
    proba = plain_proba(fitted, X, n_classes)
    if isinstance(fitted, Identity):
        return proba
    if np.may_share_memory(proba, X):
        proba = proba.copy()
    proba *= n_rows / (n_rows + 1)
    proba += (uniform(X) if np.isneginf(X).any() else 1 / n_classes) / (n_rows + 1)
    return proba


class Mixture(ClassifierMixin, BaseEstimator):
    """Average the probabilities of several maps with weights.

    Parameters
    ----------
    estimators : list of maps
        The maps to average.
    weights : array-like of shape (n_maps,)
        They sum to 1.
    temperature : float > 0, default=1.0
        The mean is recalibrated by this temperature: p ** (1 / temperature), divided by the sum.

    Attributes
    ----------
    estimators_ : list of maps
        Fitted.
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from skcal import TemperatureScaling
    >>> from skcal.recalibration import Identity, Mixture
    >>> p, y = [[0.9], [0.9], [0.9], [0.1]], [1, 1, 0, 0]
    >>> mixture = Mixture([Identity(), TemperatureScaling()], [0.5, 0.5]).fit(p, y)
    >>> mixture.predict_proba([[0.9]]).round(3)
    array([[0.175, 0.825]])
    """

    _parameter_constraints: dict = {
        "estimators": [list],
        "weights": ["array-like"],
        "temperature": [Interval(Real, 0, None, closed="neither")],
    }

    _takes_shares = True

    def __init__(self, estimators, weights, temperature=1.0):
        self.estimators = estimators
        self.weights = weights
        self.temperature = temperature

    @property
    def from_logits(self) -> bool:
        """Whether X holds logits, which is so if one of the maps reads them."""
        return any(getattr(map, "from_logits", False) for map in self.estimators)

    @property
    def _takes_absent(self) -> bool:
        """Whether logits may be -inf, those of absent options."""
        return all(getattr(map, "_takes_absent", False) for map in self.estimators)

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None) -> Self:
        """Fit every map.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples, 1)
            Predicted probabilities; one column holds P(positive class).
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels as for :class:`TemperatureScaling`, or shares of the classes, or counts of votes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; a weight of 2 counts as a repeated row. A sum below the
            effective sample size (Σ w)² / Σ w² is raised to it. None: all 1.

        Returns
        -------
        self : object
        """
        data = read_for_map(self, X, y, sample_weight)
        self.estimators_ = [fit_map(estimator, data) for estimator in self.estimators]
        return self

    def predict_proba(self, X) -> np.ndarray:
        """Return the weighted mean of the maps' probabilities, (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one column holds P(positive class).
        """
        check_is_fitted(self)
        X = read_columns(self, X, reset=False)
        parts = zip(self.estimators_, self.weights, strict=True)
        n_classes = len(self.classes_)
        total = sum(weight * plain_proba(fitted, X, n_classes) for fitted, weight in parts)
        if self.temperature != 1:
            logits = np.where(np.isneginf(X), -np.inf, log_probabilities(total))
            total = softmax(logits / self.temperature, axis=1)
        return total.astype(X.dtype, copy=False)

    def predict(self, X) -> np.ndarray:
        """Return the most probable class of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one column holds P(positive class).
        """
        most_probable = self.predict_proba(X).argmax(axis=1)
        return self.classes_[most_probable]


def mixture_weights(log_losses: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
    """Weights of the mixture of the highest likelihood, under a flat Dirichlet prior of one sample.

    Parameters
    ----------
    log_losses : ndarray of shape (n_samples, n_maps)
        Of what happened, on samples that the maps were not fitted to.
    sample_weight : ndarray of shape (n_samples,)
        Weights of the samples, as numbers of rows.

    Returns
    -------
    weights : ndarray of shape (n_maps,)
        Steps of expectation and maximisation; small ones are 0.
    """
    n_maps = log_losses.shape[1]
    kept = (sample_weight > 0) & np.isfinite(log_losses).any(axis=1)
    log_losses, share = log_losses[kept], sample_weight[kept]
    happened = np.exp(log_losses.min(axis=1, keepdims=True) - log_losses)
    weights = np.full(n_maps, 1 / n_maps)
    for _ in range(_EM_STEPS):
        belief = happened * weights
        before, weights = weights, (share / belief.sum(axis=1)) @ belief + 1 / n_maps
        weights /= weights.sum()
        if np.abs(weights - before).max() < 1e-4:
            break
    weights[weights < _LEAST_WEIGHT] = 0
    return weights / weights.sum()


MATRIX_MAX_CLASSES = 100
_GRID_TOL = 1e-5  # of maps whose neighbours on the grid differ by far more


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
    vector = VectorScaling(C=1 / (2 * n_classes), structured=True, tol=_GRID_TOL)
    if n_classes > MATRIX_MAX_CLASSES:
        return [*temperatures[:2], (vector, {})]
    roots = MatrixScaling(structured=True, tol=_GRID_TOL)
    logs = MatrixScaling(C=0.01, structured=True, coordinates="log-ratio", tol=_GRID_TOL)
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


_PASS_METHODS = (
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
        estimator, grid = as_pair(candidate, place, _is_map, _PASS_METHODS)
        if preserve_classes and not keeps_order(estimator):
            reason = f"is {short_name(estimator)}, which can change the order of the classes."
            remedy = "Pass preserve_classes=False, or temperatures, which keep it."
            raise InputError(place, reason, remedy)
        if not isinstance(estimator, Identity):
            place = f"{place}, {short_name(estimator)}"
            estimator = for_input(estimator, from_logits, place)
            if absent and not getattr(estimator, "_takes_absent", False):
                reason = "does not take logits of -inf, those of absent options."
                remedy = "Leave candidates out, or pass TemperatureScaling() or "
                raise InputError(place, reason, f"{remedy}EnsembleTemperatureScaling().")
            expanded.append((estimator, *settings_of(estimator, grid, place)))
    names = distinct_names(short_name(estimator) for estimator, _, _ in expanded)
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
