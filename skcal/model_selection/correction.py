"""From a calibration-estimation function to a recalibration map: p + ĝ(p), on the simplex."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from skcal._sklearn_compat import _num_samples
from skcal._validation import check_predictions, check_weight
from skcal.model_selection import engine
from skcal.model_selection.error_terms import corrected_proba
from skcal.model_selection.estimator import CalibrationErrorEstimator
from skcal.notions import NOTIONS, Problems, make_problems


class FunctionCorrection(ClassifierMixin, BaseEstimator):
    """Add the estimated residual of a calibration-estimation function to the predictions.

    Parameters
    ----------
    estimator : CalibrationErrorEstimator
        An estimator of a function with ``residual`` and of the notion "canonical", "classwise",
        "binary", "confidence" or "top-label".

    Attributes
    ----------
    estimator_ : CalibrationErrorEstimator
        The fitted estimator.
    n_samples_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    c ∝ max(p + ĝ, p / √n): no outcome becomes impossible by a correction that n samples taught. Of
    "classwise" each entry is corrected by itself before they are divided by their sum. Of
    "confidence" and "top-label" the largest entry is corrected, and the others keep their ratios
    (equal ones, where all were 0), so that another class may become the most probable.

    Examples
    --------
    >>> from skcal import CalibrationErrorEstimator, PlugIn
    >>> from skcal.recalibration import SplineScaling
    >>> from skcal.datasets import make_tempered
    >>> from skcal.model_selection import FunctionCorrection
    >>> data = make_tempered(2000, temperature=2.0, n_truth_draws=0, random_state=0)
    >>> splines = CalibrationErrorEstimator(PlugIn(SplineScaling()), notion="confidence")
    >>> map_ = FunctionCorrection(splines).fit(data.proba, data.labels)
    >>> bool(map_.predict_proba(data.proba).max(axis=1).mean() < data.proba.max(axis=1).mean())
    True
    """

    _parameter_constraints: dict = {"estimator": [CalibrationErrorEstimator]}

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, sample_weight=None):
        """Fit the function.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predictions.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the function has no ``residual``, or the notion says nothing of all classes.
        """
        self._validate_params()
        estimator = clone(self.estimator).fit(X, y, sample_weight)
        weight = check_weight(sample_weight, _num_samples(X))
        return self._set(estimator, int(np.count_nonzero(weight)))

    def _set(self, fitted, n_samples):
        """Take a fitted estimator."""
        lacking = [one for one in fitted.functions_ if not hasattr(one, "residual")]
        if lacking:
            raise ValueError(
                f"{type(lacking[0]).__name__} has no residual(X), which would be added to the "
                "predictions. Use PlugIn, TwoStepKernelRidge, Binning without debias, "
                "DirichletKernelDensity or Stacking."
            )
        if not (fitted.notion_.of_given_classes or fitted.notion_.of_largest):
            raise ValueError(
                f"notion={fitted.notion_!r} corrects sums of probabilities and tells no "
                f"probability of a class. Use one of {', '.join(map(repr, NOTIONS))}."
            )
        self.estimator_, self.n_samples_ = fitted, n_samples
        self.classes_, self.n_features_in_ = fitted.classes_, fitted.n_features_in_
        return self

    def predict_proba(self, X):
        """Corrected probabilities of all classes.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        fitted = self.estimator_
        options = {"name": "X", "estimator": fitted, "reset": False}
        proba, logits = check_predictions(X, fitted.from_logits, **options)
        proba = proba.astype(np.float64, copy=False)
        problems = make_problems(proba, None, fitted.notion_, logits=logits)
        data = Problems(problems, np.ones(len(proba)))
        corrections = engine.corrections(fitted.functions_, data)
        if proba.ndim == 1:
            proba = np.column_stack([1 - proba, proba])
        if fitted.notion_.of_largest:
            return self._largest_corrected(proba, data.parts, corrections)
        change = np.hstack(corrections)
        if change.shape[1] == 1:  # of the second class of two
            change = np.hstack([-change, change])
        return corrected_proba(proba, change, self.n_samples_)

    def _largest_corrected(self, proba, parts, corrections):
        change = np.zeros(len(proba))
        for part, correction in zip(parts, corrections, strict=True):
            change[part.rows] = correction[:, 0]
        rows, top = np.arange(len(proba)), proba.argmax(axis=1)
        largest = np.minimum(proba[rows, top], 1)
        two, changes = np.column_stack([largest, 1 - largest]), np.column_stack([change, -change])
        two = corrected_proba(two, changes, self.n_samples_)
        others = proba.copy()
        others[rows, top] = 0
        total = others.sum(axis=1, keepdims=True)
        equal = np.full_like(others, 1 / (proba.shape[1] - 1))
        equal[rows, top] = 0
        others = np.where(total > 0, others / np.where(total > 0, total, 1), equal)
        result = others * two[:, 1:]
        result[rows, top] = two[:, 0]
        return result

    def predict(self, X):
        """Most probable class of each sample."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
