"""Probabilities multiplied by what their effect may vary with, for linear models."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skcal._sklearn_compat import Interval, StrOptions, _fit_context
from skcal._validation import read_probabilities
from skcal.recalibration.splines import b_splines


class ProbabilityInteractions(TransformerMixin, BaseEstimator):
    """Products of all probabilities with the predicted class or with splines of the confidence.

    A linear model on them is a linear map of p whose coefficients vary from predicted class to
    predicted class, or smoothly with max p.

    Parameters
    ----------
    by : {"confidence", "predicted class"}, default="confidence"
    n_knots : int ≥ 2, default=8
        Evenly spaced on [0, 1], for quadratic splines of max p.

    Attributes
    ----------
    n_features_in_ : int

    Notes
    -----
    Ties for the largest probability go to the first class; of a single column max p is p. Bins of
    the confidence with a map in each are those of [1]_, maps for each predicted class those of
    [2]_, here for whole vectors.

    References
    ----------
    .. [1] Ji et al., Bin-wise temperature scaling, ICCV Workshops 2019.
    .. [2] Gupta & Ramdas, Top-label calibration and multiclass-to-binary reductions, ICLR 2022.

    Examples
    --------
    >>> from skcal import ProbabilityInteractions
    >>> ProbabilityInteractions("predicted class").fit_transform([[0.75, 0.25], [0.5, 0.5]])
    array([[0.75, 0.25, 0.  , 0.  ],
           [0.5 , 0.5 , 0.  , 0.  ]])
    """

    _parameter_constraints: dict = {
        "by": [StrOptions({"confidence", "predicted class"})],
        "n_knots": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(self, by="confidence", n_knots=8):
        self.by = by
        self.n_knots = n_knots

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Check the probabilities X of shape (n_samples, d); nothing is learnt."""
        read_probabilities(self, X, y)
        return self

    def transform(self, X):
        """Return the products, (n_samples, d²) or (n_samples, d (n_knots + 1))."""
        check_is_fitted(self)
        X = read_probabilities(self, X, reset=False).astype(np.float64)
        if self.by == "confidence":
            varying = b_splines(X.max(axis=1, keepdims=True), np.linspace(0, 1, self.n_knots), 2)
        else:
            varying = np.eye(X.shape[1])[X.argmax(axis=1)]
        return (varying[:, :, None] * X[:, None, :]).reshape(len(X), -1)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "n_features_in_")
