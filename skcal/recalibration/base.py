"""The base of recalibration methods, from arguments to probabilities; identity and smoothing."""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.special import expit, logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from skcal._selection import short_name
from skcal._show import method_name, worded
from skcal._sklearn_compat import HasMethods, Interval, _fit_context
from skcal._validation import (
    InputError,
    as_given,
    decoded,
    normalized_logits,
    read_columns,
    row_blocks,
)
from skcal.recalibration.features import (
    BEYOND,
    PROBABILITY_FLOOR,
    line_of,
    log_odds,
    log_probabilities,
)
from skcal.recalibration.reading import read_for_map
from skcal.recalibration.saving import from_text, to_text

_LOST = 0.01  # log loss
BLOCK_BYTES = 2**20  # what stays in the processor's cache
# Naive Bayes has probabilities of 1e-300, which say less than they pretend: of temperature scaling
# on its 10 classes of digits the held-out log loss is 0.57 at a floor of 2⁻⁵², 0.59 at 2⁻¹²⁶, 1.09
# without one. The many small probabilities of 1,000 classes weigh: 2⁻⁵² makes 6.9 of a temperature
# of 8, 2⁻¹²⁶ loses nothing.
_MANY_COLUMNS = 100
_SMALLEST_FLOAT32 = float(np.finfo(np.float32).tiny)  # 2⁻¹²⁶
# Zeros beside a smallest probability between these are no predictions, but rounding of float32. Of
# float64 there are zeros of forests above, and naive Bayes below, which gains nothing by logits.
_ROUNDED_ENDS = {np.float64: (1e-46, 1e-30), np.float32: (0.0, 1e-6)}


class RecalibrationMap(ClassifierMixin, BaseEstimator, ABC):
    """The base of recalibration maps: predictions and labels in, better probabilities out.

    Subclasses get predictions as z: log-probabilities of shape (n_samples, n_classes). A single
    column, or a map of a single probability, gets the logit of shape (n_samples, 1). They fit
    themselves to z in ``_fit`` and return logits of all classes in ``_map`` or probabilities in
    ``_proba``. A map of a single probability is fitted to each of three and more classes against
    the rest; the answers are divided by their sum.

    Parameters
    ----------
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities, in a single column the logit of the
        positive class. They are used without loss; a row's log-sum-exp is subtracted, which changes
        no probability. ``Identity``, ``TemperatureScaling`` and ``EnsembleTemperatureScaling`` take
        logits of -inf, those of absent options, and give these probability 0.

    Attributes
    ----------
    line_ : dict or None
        Of maps with a free slope and offset: the line by which scores became log-odds before the
        map was fitted. None where they are log-odds, as probabilities nearly always are.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    Scores may have any unit and offset, such as points or decision values. If a line to log-odds is
    clearly better than what penalties and priors take for likely, or if scores are outliers, the
    line is fitted first and the map to its log-odds. Temperatures have no offset, and ``Identity``
    and ``InterceptCalibration`` no slope: they warn where such a line is clearly better.

    Probabilities below 2⁻⁵² ≈ 2.2e-16 count as nearly that; their order stays. Smaller ones, such
    as those of naive Bayes, are more certain than any data. Without the bound they weigh so much
    that other samples suffer (digits, held-out log loss after temperature scaling 0.57, without a
    bound 1.09). With more than
    100 classes many small ones matter: logarithms are exact from 2⁻¹²⁶ ≈ 1.2e-38 on. Zeros then
    count as the smallest positive probability of the training samples. Logits have no such bounds.

    Examples
    --------
    >>> from skcal.recalibration import RecalibrationMap, TemperatureScaling
    >>> fitted = TemperatureScaling().fit([0.2, 0.4, 0.7, 0.9], [0, 1, 0, 1])
    >>> RecalibrationMap.from_json(fitted.to_json())
    TemperatureScaling()
    """

    _parameter_constraints: dict = {"from_logits": ["boolean"]}
    _of_single_probability = False
    _takes_shares = True
    _takes_line: Any = False  # whether slope and offset are free, so that scores have any unit
    _is_of_ranks: Any = False  # or the order of the scores is all that counts
    _treats_options_alike = False  # so that some of them may be absent
    _saved_parameters: tuple[str, ...] = ()  # attributes without their underscore
    _formula: Any = ""  # of probabilities as a function of z and these; a property of a fit's own

    def __init__(self, from_logits=False):
        self.from_logits = from_logits

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None) -> Self:
        """Fit the map.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
            Probabilities, or logits if ``from_logits=True``; a single column holds those of the
            positive class.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels: column numbers from 0, or of any sortable type, which name the columns in sorted
            order, as ``predict_proba`` of scikit-learn does. With a single column the second in
            order, ``classes_[1]``, is positive. Or shares of the classes, or counts of votes for
            them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; a weight of 2 counts as a repeated row. A sum below the
            effective sample size (Σ w)² / Σ w² is raised to it. None: all 1.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X holds no probabilities, or labels and columns do not match.

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` iterations of a map that has them do not suffice.
        UserWarning
            If more than 1 % of the probabilities are 0 because float32 rounded them. Also if a
            single column is clearly lower for the positive of two named labels than for the other,
            or if the map lacks the slope or the offset that the scores need.
        """
        data = read_for_map(self, X, y, sample_weight).counted()
        if not data.weight.all():
            data = data.take(data.weight > 0)
        if not self.from_logits:
            self._floor = _floor_of(data.X)
        self.line_, several = None, self._is_of_several_classes
        line, loss = self._line_of(data)
        if several or self._takes_line:
            self.line_ = line
        if several:
            part = clone(self)
            part.from_logits = True
            columns = enumerate(self._against_the_rest(data.X).T)
            self.estimators_ = [
                clone(part).fit(column, data.against_the_rest(k), data.weight)
                for k, column in columns
            ]
            if hasattr(self.estimators_[0], "n_iter_"):
                self.n_iter_ = max(part.n_iter_ for part in self.estimators_)
            return self
        self._fit_labelled(data)
        self._lost_by_line = 0.0
        if line and not self._takes_line:
            X, codes, weight, _ = data.as_labels()
            with np.errstate(divide="ignore"):
                losses = -np.log(self._predict(X.astype(np.float64))[np.arange(len(X)), codes])
            self._lost_by_line = float(np.average(losses, weights=weight) - loss)
            warn_of_line(self)
        return self

    def _fit_labelled(self, data):
        """Fit to predictions and outcomes, of shares a row for each class that has one."""
        data = data.as_labels()
        self._fit(self._logarithms(data.X), data.happened, data.weight)

    def _line_of(self, data):
        """The line by which scores become log-odds, or None, and its log loss."""
        several = self._is_of_several_classes
        if (self._is_of_ranks and not several) or data.has_absent:
            return None, np.nan
        X, codes, weight, _ = data.as_labels()
        z = self._plain_logarithms(X) if several else self._logarithms(X)
        # An offset of a class bends its log-odds against the rest.
        bent = z.shape[1] > 2 and (several or (self._takes_line and self.from_logits))
        return line_of(z, codes, weight, 0.5 if bent else 5.0, self.from_logits)

    @property
    def _takes_absent(self) -> bool:
        """Whether logits may be -inf, those of absent options."""
        return self._treats_options_alike and self.from_logits

    @property
    def _is_of_several_classes(self) -> bool:
        """Whether a map of a single probability was fitted for each class against the rest."""
        return self._of_single_probability and self.n_features_in_ > 2

    def _against_the_rest(self, X):
        """The logit of each class against all others, (n, C)."""
        z = normalized_logits(log_odds(self.line_, self._plain_logarithms(X)))
        largest = np.arange(X.shape[1]) == z.argmax(axis=1)[:, None]
        others = np.log1p(-np.exp(np.where(largest, -np.inf, z)))
        others[largest] = logsumexp(np.where(largest, -np.inf, z), axis=1)
        return z - others

    @abstractmethod
    def _fit(self, z, codes, weight):
        """Learn from z, column numbers and positive weights."""

    def _logarithms(self, X):
        """Z of checked predictions."""
        z = self._plain_logarithms(X)
        if self._of_single_probability and z.shape[1] == 2:
            z = z[:, 1:] - z[:, :1]
        return log_odds(getattr(self, "line_", None), z)

    def _plain_logarithms(self, X):
        """Z of checked predictions in their own unit."""
        if self.from_logits:
            return normalized_logits(X)
        return log_probabilities(X, self._floor, BEYOND)

    def predict_proba(self, X) -> np.ndarray:
        """Recalibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns), or (n_samples,) of a single column
            Predictions of the kind that the map was fitted to.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            In float32 where X is float32 or shorter, else in float64. Under
            ``sklearn.config_context(array_api_dispatch=True)`` of the library and device of X.
        """
        check_is_fitted(self)
        return as_given(self._predict(read_columns(self, X, reset=False)), X)

    def _predict(self, X):
        """Probabilities of checked predictions."""
        if self._is_of_several_classes:
            pairs = zip(self.estimators_, self._against_the_rest(X).T, strict=True)
            proba = np.column_stack([part.predict_proba(column)[:, 1] for part, column in pairs])
            return (proba / proba.sum(axis=1, keepdims=True)).astype(X.dtype, copy=False)
        proba = np.empty((len(X), len(self.classes_)), X.dtype)
        for rows in row_blocks(len(X), 8 * proba.shape[1], most=BLOCK_BYTES):
            proba[rows] = self._of_classes("_proba", self._logarithms(X[rows]))
        return proba

    def _of_classes(self, method, z):
        """What one of a subclass' own methods returns, if it has a column for each class."""
        values, n_classes = getattr(self, method)(z), len(self.classes_)
        if np.shape(values) != (len(z), n_classes):
            raise ValueError(
                f"{type(self).__name__}.{method} returned an array of shape {np.shape(values)} for "
                f"{len(z)} samples of {n_classes} classes. Return a column for each class."
            )
        return values

    def _proba(self, z):
        """Probabilities of shape (n_samples, n_classes), by default of the logits ``_map(z)``."""
        logits = self._of_classes("_map", z)
        if logits.shape[1] == 2:
            margin = logits[:, 1] - logits[:, 0]
            return np.stack([expit(-margin), expit(margin)], axis=1)
        return softmax(logits, axis=1)

    def predict(self, X) -> np.ndarray:
        """Most probable class of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one column holds P(positive class).
        """
        most_probable = decoded(self.predict_proba(X)).argmax(axis=1)
        return as_given(self.classes_[most_probable], X)

    @property
    def _shown_name(self):
        """The name of the map in tables."""
        return f"{'Structured ' * getattr(self, 'structured', False)}{type(self).__name__}"

    def _saved(self):
        """The fitted parameters by name."""
        if self._is_of_several_classes:
            return {"estimators": [json.loads(part.to_json()) for part in self.estimators_]}
        learnt = {name: getattr(self, f"{name}_") for name in self._saved_parameters}
        return {name: np.asarray(value).tolist() for name, value in learnt.items()}

    def to_json(self) -> str:
        """Return the fitted map as JSON text, with its formula.

        Numbers are written in full: what :meth:`from_json` reads predicts the same to the last bit.
        The keys are those of ``skcal.recalibration.saving``.

        Returns
        -------
        text : str

        Raises
        ------
        TypeError
            If the map is not one of the package.
        """
        check_is_fitted(self)
        if type(self).__name__ not in known_maps(type(self)):
            reason = (
                f"{type(self).__name__} is no map of skcal, and from_json runs no code of others."
            )
            raise TypeError(f"{reason} Store it by skops or pickle.")
        return to_text(self)

    @classmethod
    def from_json(cls, text) -> RecalibrationMap:
        """Restore the fitted map that :meth:`to_json` wrote.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        fitted : RecalibrationMap
            Of the class by which it is called; ``RecalibrationMap.from_json`` reads every map.

        Raises
        ------
        ValueError
            If the text is no map of that class, or its parameters do not fit together.
        """
        return from_text(text, known_maps(cls))


def known_maps(cls):
    """Maps of the package that are a class or derived from it, by name."""
    is_known = cls._formula and cls.__module__.startswith("skcal.recalibration.")
    known = {cls.__name__: cls} if is_known else {}
    for derived in cls.__subclasses__():
        known |= known_maps(derived)
    return known


class Identity(RecalibrationMap):
    """Leave predictions as they are: they count as calibrated.

    Parameters
    ----------
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities, whose softmax is then the result.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from skcal.recalibration import Identity
    >>> Identity().fit([0.2, 0.9], [0, 1]).predict_proba([0.3])
    array([[0.7, 0.3]])
    """

    _treats_options_alike = True

    def _fit(self, z, codes, weight):
        pass

    def _map(self, z):
        return logits_of_all(z)

    def _predict(self, X):
        if self.from_logits:
            return softmax(self._map(X.astype(np.float64)), axis=1).astype(X.dtype, copy=False)
        return np.hstack([1 - X, X]) if X.shape[1] == 1 else X


class Smoothed(RecalibrationMap):
    """Fit a map to probabilities that are shrunk a little towards uniform ones.

    c((p + a) / (1 + a C)) for C classes and the map c. Trees and boosting predict 0 and 1 for
    labels that are wrong one time in a hundred. Logarithms of such probabilities mislead a map of
    logits.

    Parameters
    ----------
    estimator : recalibration map
        The map to fit.
    strength : float ≥ 0, default=0.01
        a.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    estimator_ : recalibration map
        Fitted to the smoothed probabilities.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from skcal.recalibration import Smoothed, TemperatureScaling
    >>> p, y = [0.0, 1.0, 1.0, 0.0, 0.6], [0, 1, 0, 0, 1]
    >>> Smoothed(TemperatureScaling(), strength=0.1).fit(p, y).predict_proba([1.0]).round(2)
    array([[0.23, 0.77]])
    """

    _parameter_constraints: dict = {
        **RecalibrationMap._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "strength": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, estimator, strength=0.01, from_logits=False):
        self.estimator = estimator
        self.strength = strength
        self.from_logits = from_logits

    def _fit_labelled(self, data):
        if getattr(self.estimator, "from_logits", False):
            reason = "has from_logits=True, but is fitted to probabilities."
            raise InputError("estimator", reason, "Pass from_logits=True to Smoothed instead.")
        data = data._replace(X=self._smooth(self._logarithms(data.X))).for_fit_of(self.estimator)
        self.estimator_ = clone(self.estimator).fit(data.X, data.happened, data.weight)

    def _fit(self, z, codes, weight):
        raise NotImplementedError

    @property
    def _shown_name(self):
        return f"Smoothed {short_name(self.estimator)}"

    def _smooth(self, z):
        p = expit(z) if z.shape[1] == 1 else np.exp(z)
        return (p + self.strength) / (1 + self.strength * max(2, p.shape[1]))

    def _proba(self, z):
        return self.estimator_.predict_proba(self._smooth(z))


def warn_of_line(fitted) -> None:
    """Warn where a fit lacks a slope or an offset without which it is far from the best line."""
    lost = getattr(fitted, "_lost_by_line", 0.0)
    if lost > _LOST:
        warnings.warn(
            f"{method_name(type(fitted).__name__)} lacks the slope or the offset that the scores "
            f"in X need: its log loss is {lost:.2g} above that of a line on them. "
            "Use a map that has both"
            + worded(", such as BayesianCalibration or VectorScaling.", "."),
            UserWarning,
            stacklevel=2,
        )


def logits_of_all(z):
    """Logits of all classes: (0, logit) for a single column."""
    return np.hstack([np.zeros_like(z), z]) if z.shape[1] == 1 else z


def _floor_of(X):
    """The value that replaces zeros; a warning if float32 rounded to them."""
    positive = _smallest_positive(X)
    lost, smallest = np.count_nonzero(X <= 0), positive
    if X.shape[1] == 1:
        lost += np.count_nonzero(X == 1)
        smallest = min(positive, _smallest_positive(1 - X))
    low, high = _ROUNDED_ENDS[X.dtype.type]
    if lost > 0.01 * X.size and low < smallest < high:
        warnings.warn(
            f"{lost} of {X.size} probabilities in X are 0 or 1, which float32 rounded: their "
            "logarithms are lost. Pass logits to a map with from_logits=True.",
            stacklevel=2,
        )
    many = X.shape[1] > _MANY_COLUMNS
    return min(PROBABILITY_FLOOR, max(_SMALLEST_FLOAT32, positive)) if many else PROBABILITY_FLOOR


def _smallest_positive(X):
    lowest = X.min()
    return float(lowest if lowest > 0 else np.min(X, where=X > 0, initial=1))
