"""Recalibration maps that scikit-learn lacks, for use in :class:`skcal.PlugIn`."""

from __future__ import annotations

import warnings
from numbers import Real

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skcal._sklearn_compat import Interval, _fit_context
from skcal._validation import InputError, check_labels, check_weight, read_probabilities
from skcal.recalibration.coordinates import log_probabilities


class LogProbabilities(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Map probabilities to their logarithms, a single column to its logit.

    Probabilities below 2⁻⁵² ≈ 2.2e-16 count as that floor, so that 0 and 1 stay finite.

    Examples
    --------
    >>> from skcal import LogProbabilities
    >>> LogProbabilities().fit_transform([[0.25, 0.75], [1.0, 0.0]]).round(2)
    array([[ -1.39,  -0.29],
           [  0.  , -36.04]])
    """

    def fit(self, X, y=None):
        """Check the probabilities X of shape (n_samples, d); nothing is learnt."""
        read_probabilities(self, X, y)
        return self

    def transform(self, X):
        """Return logarithms (or logits) of shape (n_samples, d)."""
        check_is_fitted(self)
        return log_probabilities(read_probabilities(self, X, reset=False))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "n_features_in_")


class _ScalingMap(ClassifierMixin, BaseEstimator):
    """A map from log-probabilities to logits; subclasses fit it and give the logits."""

    def _validate(self, X, y, sample_weight):
        X = read_probabilities(self, X, y)
        proba = X[:, 0] if X.shape[1] == 1 else X
        names = {"name": "y", "proba_name": "X", "single": "single column"}
        try:
            codes, self.classes_ = check_labels(y, proba, **names)
        except InputError as error:  # recalibration maps have no option labels
            remedies = {
                "positive class": "Pass y == positive class.",
                "classes": "Pass y as column numbers of X, from 0.",
            }
            raise ValueError(error.told(remedies.get(error.kind))) from None
        return _logits(X), codes, check_weight(sample_weight, len(X))

    def predict_proba(self, X):
        """Recalibrated probabilities of shape (n_samples, n_classes)."""
        check_is_fitted(self)
        X = read_probabilities(self, X, reset=False).astype(np.float64, copy=False)
        return softmax(self._map(X, _logits(X)), axis=1)

    def predict(self, X):
        """Most probable class of each sample."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _logits(X):
    """Log-probabilities of all classes: (0, logit) for a single column."""
    logits = log_probabilities(X)
    return np.hstack([np.zeros_like(logits), logits]) if X.shape[1] == 1 else logits


class TemperatureScaling(_ScalingMap):
    """Divide log-probabilities by one temperature, the maximum likelihood one.

    c(p) = softmax(log p / T); for a single column σ(logit(p) / T). Probabilities below 2⁻⁵²
    count as that floor.

    Parameters
    ----------
    max_temperature : float > 1, default=100.0
        T is sought from 1 / max_temperature to max_temperature; separable outcomes have no
        finite optimum.

    Attributes
    ----------
    temperature_ : float
        T > 1 cools overconfident predictions.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    The likelihood is concave in 1/T; its derivative's root is found to 1e-12. O(n C) a step.

    References
    ----------
    .. [1] Guo et al., On calibration of modern neural networks, ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal import TemperatureScaling
    >>> p = np.tile([[0.9], [0.1]], (10, 1))
    >>> y = np.tile([1, 0, 1, 0, 1, 0, 0, 1, 1, 0], 2)  # right in 8 of 10
    >>> float(TemperatureScaling().fit(p, y).temperature_.round(3))
    1.585
    """

    _parameter_constraints: dict = {
        "max_temperature": [Interval(Real, 1, None, closed="neither")],
    }

    def __init__(self, max_temperature=100.0):
        self.max_temperature = max_temperature

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Find the temperature.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples, 1)
            Probabilities; a single column holds P(positive class).
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        logits, codes, weight = self._validate(X, y, sample_weight)
        self.temperature_ = 1 / _best_scale(logits, codes, weight, self.max_temperature)
        return self

    def _map(self, X, logits):
        return logits / self.temperature_


class ClassBasedTemperatureScaling(_ScalingMap):
    """One temperature for each predicted class, shrunk towards the temperature of all samples.

    c(p) = softmax(log p / T_k) where p_k is the largest, penalised by (T / T_k - 1)² / (2 C) with
    T that of :class:`TemperatureScaling`. Some classes may be predicted with too much confidence,
    others with too little.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty, as in
        :class:`~sklearn.linear_model.LogisticRegression`.
    max_temperature : float > 1, default=100.0
        As in :class:`TemperatureScaling`.

    Attributes
    ----------
    temperature_ : float
        T.
    temperatures_ : ndarray of shape (n_classes,)
        T_k; that of a class which is never predicted is T.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    Ties for the largest probability go to the first class. O(n C) a step.

    References
    ----------
    .. [1] Frenkel & Goldberger, Network calibration by class-based temperature scaling,
       EUSIPCO 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal import ClassBasedTemperatureScaling
    >>> p = np.tile([[0.9, 0.1], [0.1, 0.9]], (10, 1))
    >>> y = np.tile([0, 1, 0, 0, 0, 1, 1, 0, 0, 1], 2)  # 0 is right in 8 of 10, 1 in 6 of 10
    >>> ClassBasedTemperatureScaling(C=100).fit(p, y).predict_proba(p[:2]).round(2)
    array([[0.8, 0.2],
           [0.4, 0.6]])
    """

    _parameter_constraints: dict = {
        "C": [Interval(Real, 0, None, closed="neither")],
        **TemperatureScaling._parameter_constraints,
    }

    def __init__(self, C=1.0, max_temperature=100.0):
        self.C = C
        self.max_temperature = max_temperature

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Find the temperatures.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples, 1)
            Probabilities; a single column holds P(positive class).
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        logits, codes, weight = self._validate(X, y, sample_weight)
        predicted = logits.argmax(axis=1)
        scale = _best_scale(logits, codes, weight, self.max_temperature)
        self.temperature_ = 1 / scale
        self.temperatures_ = np.full(logits.shape[1], self.temperature_)
        for k in np.unique(predicted):
            rows = predicted == k
            own = _best_scale(
                logits[rows], codes[rows], weight[rows], self.max_temperature, scale, 1 / self.C
            )
            self.temperatures_[k] = 1 / own
        return self

    def _map(self, X, logits):
        return logits / self.temperatures_[logits.argmax(axis=1)][:, None]


def _best_scale(logits, codes, weight, max_temperature, center=1.0, penalty=0.0):
    """1/T of the highest likelihood, less penalty (1/(center T) - 1)² / 2."""
    logits = logits - logits.max(axis=1, keepdims=True)  # rows without information are 0
    chosen = weight @ np.take_along_axis(logits, codes[:, None], axis=1)[:, 0]
    # Not a closure: brentq's cycle of references would keep its arrays until a collection.
    sample = logits, logits[:, 1] - logits[:, 0], weight, chosen, center, penalty
    limit = np.log(max_temperature)
    if _slope(np.log(center), *sample) == 0:
        return center
    if _slope(-limit, *sample) >= 0:
        return np.exp(-limit)
    if _slope(limit, *sample) <= 0:
        return np.exp(limit)
    return np.exp(brentq(_slope, -limit, limit, args=sample, xtol=1e-12))


def _slope(log_scale, logits, margin, weight, chosen, center, penalty):
    """Minus the likelihood's derivative in the scale, 1/T."""
    scale = np.exp(log_scale)
    if logits.shape[1] == 2:
        mean = logits[:, 0] + margin * expit(scale * margin)
    else:
        mean = np.einsum("ij,ij->i", softmax(scale * logits, axis=1), logits)
    return weight @ mean - chosen + penalty * (scale / center - 1) / center


class VectorScaling(_ScalingMap):
    """One slope and one intercept a class on log-probabilities, shrunk towards the identity.

    c(p) = softmax(a ⊙ log p + b), penalised by (‖a - 1‖² + ‖b‖²) / (2 C). Probabilities below 2⁻⁵²
    count as that floor.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty, as in
        :class:`~sklearn.linear_model.LogisticRegression`.
    max_iter : int, default=1000
    tol : float, default=1e-8
        Gradient tolerance, relative to the sum of the weights.

    Attributes
    ----------
    slope_, intercept_ : ndarray of shape (n_classes,)
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    References
    ----------
    .. [1] Guo et al., On calibration of modern neural networks, ICML 2017.

    Examples
    --------
    >>> from skcal import VectorScaling
    >>> p = [[0.8, 0.2], [0.8, 0.2], [0.2, 0.8], [0.2, 0.8]]
    >>> VectorScaling(C=1e-9).fit(p, [0, 1, 1, 0]).predict_proba(p).round(3)[0]
    array([0.8, 0.2])
    """

    _parameter_constraints: dict = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Real, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, C=1.0, max_iter=1000, tol=1e-8):
        self.C = C
        self.max_iter = max_iter
        self.tol = tol

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Find slopes and intercepts by L-BFGS.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples, 1)
            Probabilities; a single column holds P(positive class).
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        sample = [*self._validate(X, y, sample_weight)]
        n_classes, total = sample[0].shape[1], sample[2].sum()
        identity = np.repeat([1.0, 0.0], n_classes)

        def objective(parameters):
            logits, codes, weight = sample
            rows = np.arange(len(codes))
            slope, intercept = np.split(parameters, 2)
            log_c = log_softmax(slope * logits + intercept, axis=1)
            error = np.exp(log_c)
            error[rows, codes] -= 1
            error *= weight[:, None] / total
            shift = parameters - identity
            loss = -(weight @ log_c[rows, codes]) / total + shift @ shift / (2 * self.C * total)
            gradient = np.concatenate([np.sum(error * logits, axis=0), error.sum(axis=0)])
            return loss, gradient + shift / (self.C * total)

        result = minimize(
            objective,
            identity,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": int(self.max_iter), "gtol": self.tol, "ftol": 1e-14},
        )
        sample.clear()  # older versions of scipy keep the objective until a collection
        self.n_iter_ = result.nit
        if result.nit >= self.max_iter:
            warnings.warn(
                f"VectorScaling stopped after max_iter={self.max_iter} iterations.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.slope_, self.intercept_ = np.split(result.x, 2)
        return self

    def _map(self, X, logits):
        return self.slope_ * logits + self.intercept_
