"""Temperatures: of all samples, of each predicted class, and mixed with the prediction itself."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, softmax

from skcal._sklearn_compat import Interval
from skcal._validation import row_blocks
from skcal.recalibration.base import BLOCK_BYTES, RecalibrationMap, logits_of_all

_ACCURACY = 1e-12  # of log T
_ABSENT_LOGIT = -1e150  # of a logit of -inf, whose product with a probability of 0 is 0
_STEPS_IN_LOG_T = 10  # in log T, before its limits are tried


class TemperatureScaling(RecalibrationMap):
    """Temperature scaling: divide log-probabilities by the maximum likelihood temperature.

    c(p) = softmax(log p / T); for a single column σ(logit(p) / T).

    Parameters
    ----------
    max_temperature : float > 1, default=100.0
        T is sought from 1 / max_temperature to max_temperature; separable outcomes have no
        finite optimum. Both bounds move with the unit of the logits: where half of the rows have a
        largest logit that is more than 10, or less than 0.1, above their mean.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

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
        **RecalibrationMap._parameter_constraints,
        "max_temperature": [Interval(Real, 1, None, closed="neither")],
    }

    _treats_options_alike = True
    _saved_parameters: tuple[str, ...] = ("temperature",)
    _formula = "softmax(z / temperature)"

    def __init__(self, max_temperature=100.0, from_logits=False):
        self.max_temperature = max_temperature
        self.from_logits = from_logits

    def _fit(self, z, codes, weight):
        scale = _best_scale(logits_of_all(z), codes, weight, self.max_temperature)
        self.temperature_ = 1 / scale

    def _map(self, z):
        return logits_of_all(z) / self.temperature_


class ClassBasedTemperatureScaling(RecalibrationMap):
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
        The bound of the temperatures, as in :class:`TemperatureScaling`.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

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
    >>> from skcal.recalibration import ClassBasedTemperatureScaling
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

    _saved_parameters: tuple[str, ...] = ("temperature", "temperatures")
    _formula = "softmax(z / temperatures[argmax(z)])"

    def __init__(self, C=1.0, max_temperature=100.0, from_logits=False):
        self.C = C
        self.max_temperature = max_temperature
        self.from_logits = from_logits

    def _fit(self, z, codes, weight):
        logits = logits_of_all(z)
        predicted = logits.argmax(axis=1)
        scale = _best_scale(logits, codes, weight, self.max_temperature)
        self.temperature_ = 1 / scale
        self.temperatures_ = np.full(logits.shape[1], self.temperature_)
        for k in np.unique(predicted):
            rows = predicted == k
            sample = logits[rows], codes[rows], weight[rows]
            scale_of_class = _best_scale(*sample, self.max_temperature, scale, 1 / self.C)
            self.temperatures_[k] = 1 / scale_of_class

    def _map(self, z):
        logits = logits_of_all(z)
        return logits / self.temperatures_[logits.argmax(axis=1)][:, None]


class EnsembleTemperatureScaling(TemperatureScaling):
    """Ensemble temperature scaling: mix tempered, original and uniform probabilities.

    c(p) = w₁ softmax(log p / T) + w₂ p + w₃ / n_classes, T the maximum likelihood temperature, then
    w the maximum likelihood weights ≥ 0 of sum 1. Classes whose logit is -inf do not count.

    Parameters
    ----------
    max_temperature : float > 1, default=100.0
        The bound of the temperature, as in :class:`TemperatureScaling`.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    temperature_ : float
    weights_ : ndarray of shape (3,)
        w.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    The order of the classes of each sample stays as it is. The uniform part bounds what a wrong
    prediction of certainty can cost.

    References
    ----------
    .. [1] Zhang, Kailkhura & Han, Mix-n-Match: ensemble and compositional methods for uncertainty
       calibration in deep learning, ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.recalibration import EnsembleTemperatureScaling
    >>> p = np.repeat([0.6, 0.999], [10, 20])
    >>> y = np.r_[np.tile([1, 1, 1, 0, 0], 2), np.tile([1] * 9 + [0], 2)]  # 9 of 10 instead of 999
    >>> EnsembleTemperatureScaling().fit(p, y).predict_proba([0.999]).round(2)
    array([[0.1, 0.9]])
    """

    _saved_parameters: tuple[str, ...] = ("temperature", "weights")
    _formula = "weights @ (softmax(z / temperature), softmax(z), 1 / n_classes)"

    def _fit(self, z, codes, weight):
        super()._fit(z, codes, weight)
        chances = np.empty((len(codes), 3))
        for rows in row_blocks(len(z), 8 * z.shape[1], most=BLOCK_BYTES):
            labelled = np.arange(len(codes[rows])), codes[rows]
            chances[rows] = np.stack([part[labelled] for part in self._parts(z[rows])], axis=1)
        self.weights_ = _weights_of_parts(chances, weight / weight.sum())

    def _parts(self, z):
        logits = logits_of_all(z)
        proba = softmax(logits, axis=1)
        return (
            softmax(logits / self.temperature_, axis=1),
            proba,
            uniform(logits),
        )

    def _proba(self, z):
        # Sums of BLAS differ in rounding from batch to batch, which orders ties otherwise.
        return sum(
            weight * part for weight, part in zip(self.weights_, self._parts(z), strict=True)
        )


def uniform(logits) -> np.ndarray:
    """Uniform probabilities of the classes that are present, whose logits are above -inf."""
    present = ~np.isneginf(logits)
    return present / present.sum(axis=1, keepdims=True)


def best_temperature(z, codes, weight):
    """T of the highest likelihood, of log-probabilities or, of a single column, logits z."""
    return 1 / _best_scale(logits_of_all(z), codes, weight, 100.0)


def _best_scale(logits, codes, weight, max_temperature, center=1.0, penalty=0.0):
    """1/T of the highest log-likelihood less ``penalty`` (1/(center T) - 1)² / 2."""
    top = None if logits.shape[1] == 2 else logits.max(axis=1, keepdims=True)
    if top is None and not (both := np.isfinite(logits).all(axis=1)).all():
        if not both.any():
            return center
        logits, codes, weight = logits[both], codes[both], weight[both]  # one option is certain
    sample = logits, top, codes, weight, center, penalty
    low, high = np.array([-1, 1]) * np.log(max_temperature) - np.log(_unit(logits, top))
    log_scale = np.log(center)
    for _ in range(_STEPS_IN_LOG_T):
        scale = np.exp(log_scale)
        slope, curvature = _derivatives(scale, *sample)
        if slope == 0:
            return scale
        curvature *= scale  # in log 1/T
        step = -slope / curvature if abs(slope) < curvature else -np.sign(slope)
        log_scale = np.clip(log_scale + step, low, high)
        if abs(step) <= _ACCURACY:
            return np.exp(log_scale)
    # There may be no maximum between the limits.
    if _slope(low, *sample) >= 0:
        return np.exp(low)
    if _slope(high, *sample) <= 0:
        return np.exp(high)
    # The sample is no closure: brentq's cycle of references would keep it until a collection.
    return np.exp(brentq(_slope, low, high, args=sample, xtol=_ACCURACY))


def _unit(logits, top) -> float:
    """1, or the factor by which typical logits are above 10 or below 0.1."""
    if top is None:
        typical = np.median(np.abs(logits[:, 1] - logits[:, 0])) / 2
    else:
        typical = np.median(top[:, 0] - logits.mean(axis=1, where=~np.isneginf(logits)))
    return float(typical / np.clip(typical, 0.1, 10)) or 1.0


def _slope(log_scale, *sample):
    """Minus the likelihood's derivative in the scale, 1/T."""
    return _derivatives(np.exp(log_scale), *sample)[0]


def _derivatives(scale, logits, top, codes, weight, center, penalty):
    """First and second derivative of minus the likelihood in the scale, 1/T."""
    slope, curvature = 0.0, 0.0
    for rows in row_blocks(len(logits), 8 * logits.shape[1], most=BLOCK_BYTES):
        row_weight, labels = weight[rows], codes[rows]
        if top is None:
            margin = logits[rows, 1] - logits[rows, 0]
            share = expit(scale * margin)
            slope += row_weight @ (margin * (share - labels))
            curvature += row_weight @ (margin**2 * share * (1 - share))
        else:
            below = logits[rows] - top[rows]  # rows without information are 0
            np.maximum(below, _ABSENT_LOGIT, out=below)
            share = np.exp(scale * below)
            total = share.sum(axis=1)
            share *= below
            means = share.sum(axis=1) / total
            slope += row_weight @ (means - np.take_along_axis(below, labels[:, None], axis=1)[:, 0])
            curvature += row_weight @ (np.einsum("ij,ij->i", share, below) / total - means**2)
    slope += penalty * (scale / center - 1) / center
    return slope, curvature + penalty / center**2


def _weights_of_parts(chances, share):
    """Weights of the mixture of the highest likelihood.

    ``chances`` (n_samples, 3) are the probabilities that each part gives to the labels.
    """
    held = [chances, share]  # older versions of scipy keep the loss until a collection

    def loss(weights):
        chances, share = held
        mixed = chances @ weights + np.finfo(float).tiny
        return -(share @ np.log(mixed)), -(chances.T @ (share / mixed))

    simplex = {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(3)}
    options = {"ftol": 1e-13, "maxiter": 500}
    start, bounds = np.array([0.8, 0.1, 0.1]), [(0, 1)] * 3
    result = minimize(
        loss, start, jac=True, bounds=bounds, constraints=simplex, method="SLSQP", options=options
    )
    held.clear()
    weights = np.clip(result.x, 0, 1)
    return weights / weights.sum()
