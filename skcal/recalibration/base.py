"""What recalibration maps share: reading of arguments, and from logits to probabilities."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skcal._validation import InputError, check_labels, check_weight, read_probabilities
from skcal.recalibration.coordinates import log_probabilities


class ScalingMap(ClassifierMixin, BaseEstimator):
    """A map from log-probabilities to logits; subclasses fit it and give the logits, ``_map``."""

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
        return self._proba(X, _logits(X))

    def _proba(self, X, logits):
        return softmax(self._map(X, logits), axis=1)

    def predict(self, X):
        """Most probable class of each sample."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _logits(X):
    """Log-probabilities of all classes: (0, logit) for a single column."""
    logits = log_probabilities(X)
    return np.hstack([np.zeros_like(logits), logits]) if X.shape[1] == 1 else logits
