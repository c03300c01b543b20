"""A mixture of the tempered prediction, the prediction and the uniform distribution."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from skcal._validation import row_blocks
from skcal.recalibration.base import BLOCK_BYTES, logits_of_all
from skcal.recalibration.temperature import TemperatureScaling


class EnsembleTemperatureScaling(TemperatureScaling):
    """A mixture of the tempered prediction, the prediction itself and the uniform distribution.

    c(p) = w₁ softmax(log p / T) + w₂ p + w₃ / n_classes, T the maximum likelihood temperature, then
    w the maximum likelihood weights ≥ 0 of sum 1.

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
    >>> from skcal import EnsembleTemperatureScaling
    >>> p = np.repeat([0.6, 0.999], [10, 20])
    >>> y = np.r_[np.tile([1, 1, 1, 0, 0], 2), np.tile([1] * 9 + [0], 2)]  # 9 of 10 instead of 999
    >>> EnsembleTemperatureScaling().fit(p, y).predict_proba([0.999]).round(2)
    array([[0.1, 0.9]])
    """

    _saved_parameters: tuple[str, ...] = ("temperature", "weights")
    _formula = "weights @ (softmax(z / temperature), softmax(z), 1 / n_classes)"

    def _fit(self, z, codes, weight):
        super()._fit(z, codes, weight)
        own = np.empty((len(codes), 3))
        for rows in row_blocks(len(z), 8 * z.shape[1], most=BLOCK_BYTES):
            chosen = np.arange(len(codes[rows])), codes[rows]
            own[rows] = np.stack([part[chosen] for part in self._parts(z[rows])], axis=1)
        share = weight / weight.sum()
        self.weights_ = _mixture_weights(own, share)

    def _parts(self, z):
        logits = logits_of_all(z)
        proba = softmax(logits, axis=1)
        return (
            softmax(logits / self.temperature_, axis=1),
            proba,
            np.full_like(proba, 1 / logits.shape[1]),
        )

    def _proba(self, z):
        return np.tensordot(self.weights_, np.stack(self._parts(z)), axes=1)


def _mixture_weights(own, share):
    """Weights of the highest likelihood of mixtures of the columns."""
    held = [own, share]  # older versions of scipy keep the loss until a collection

    def loss(weights):
        own, share = held
        mixed = own @ weights + np.finfo(float).tiny
        return -(share @ np.log(mixed)), -(own.T @ (share / mixed))

    simplex = {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(3)}
    options = {"ftol": 1e-13, "maxiter": 500}
    start, bounds = np.array([0.8, 0.1, 0.1]), [(0, 1)] * 3
    result = minimize(
        loss, start, jac=True, bounds=bounds, constraints=simplex, method="SLSQP", options=options
    )
    held.clear()
    weights = np.clip(result.x, 0, 1)
    return weights / weights.sum()
