"""Estimators that stand before and after a function: a classifier's probabilities, and p + ĝ(p)."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skcal._sklearn_compat import HasMethods, _fit_context, _num_samples
from skcal._validation import check_weight, n_rows
from skcal.model_selection import engine
from skcal.model_selection.estimates import corrected_proba
from skcal.model_selection.estimator import CalibrationErrorEstimator
from skcal.notions import Problems, make_problems


class ClassifierProbabilities(TransformerMixin, BaseEstimator):
    """Transform samples to a classifier's predicted probabilities.

    Parameters
    ----------
    classifier : estimator object
        A classifier with ``predict_proba``. A fitted classifier in
        :class:`~sklearn.frozen.FrozenEstimator` stays as it is; any other is cloned and fitted,
        and its probabilities of its own training samples are optimistic.

    Attributes
    ----------
    classifier_ : estimator object
    classes_ : ndarray of shape (n_classes,)
        The class of each column.
    n_features_in_ : int
        Where the classifier has it.
    feature_names_in_ : ndarray of shape (n_features,)
        Where the classifier was fitted to columns with names.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcal import CalibrationErrorEstimator
    >>> from skcal.model_selection import ClassifierProbabilities
    >>> X, y = load_digits(return_X_y=True)
    >>> classifier = GaussianNB().fit(X[:600], y[:600])
    >>> pipeline = make_pipeline(
    ...     ClassifierProbabilities(FrozenEstimator(classifier)),
    ...     CalibrationErrorEstimator(notion="confidence"),
    ... )
    >>> pipeline.fit(X[600:1200], y[600:1200]).predict(X[1200:]).shape
    (597,)
    """

    _parameter_constraints: dict = {"classifier": [HasMethods(["fit", "predict_proba"])]}

    def __init__(self, classifier):
        self.classifier = classifier

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, **params) -> Self:
        """Fit the classifier unless it is frozen.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            What the classifier takes.
        y : array-like of shape (n_samples,), default=None
            Labels; not needed if the classifier is fitted.
        **params : dict
            Passed on to the classifier's ``fit``.

        Returns
        -------
        self : object
        """
        self.classifier_ = clone(self.classifier).fit(X, y, **params)
        self.classes_ = self.classifier_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.classifier_, name):
                setattr(self, name, getattr(self.classifier_, name))
        return self

    def transform(self, X) -> np.ndarray:
        """Return probabilities of shape (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            What the classifier takes.
        """
        check_is_fitted(self)
        return self.classifier_.predict_proba(X)

    def get_feature_names_out(self, input_features=None):
        """Return the classes as names of the columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored; there for scikit-learn.
        """
        check_is_fitted(self)
        return self.classes_.astype(str).astype(object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = get_tags(self.classifier).input_tags.sparse
        return tags


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
    n_rows_ : float
        The rows that the weights stand for: their sum, at least (Σ w)² / Σ w².
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    c ∝ max(p + ĝ, p / √n): no outcome becomes impossible by a correction that n samples taught.
    With "classwise" each entry is corrected separately, then all are divided by their sum. With
    "confidence" and "top-label" the largest entry is corrected, and the others keep their ratios
    (equal ones, if all were 0). So another class may become the most probable.

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
    _takes_shares = True

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, sample_weight=None) -> Self:
        """Fit the function.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predictions.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; a weight of 2 counts as a repeated row. None: all 1.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the function has no ``residual``, or the kind of calibration does not cover all
            classes.
        """
        self._validate_params()
        estimator = clone(self.estimator).fit(X, y, sample_weight)
        weight = check_weight(sample_weight, _num_samples(X))
        return self._set(estimator, n_rows(weight))

    def _set(self, fitted, n_rows):
        """Take a fitted estimator."""
        if fitted.notion_.of_labels:
            raise ValueError(
                f"notion={fitted.notion_!r} is not of one class a sample. Fit a correction, or a "
                "map, to each label by itself."
            )
        lacking = [function for function in fitted.functions_ if not hasattr(function, "residual")]
        if lacking:
            raise ValueError(
                f"{type(lacking[0]).__name__} has no residual(X), which would be added to the "
                "predictions. Use PlugIn, TwoStepKernelRidge, Binning without debias, "
                "DirichletKernelDensity or Stacking."
            )
        if not (fitted.notion_.of_given_classes or fitted.notion_.of_largest):
            raise ValueError(
                f"notion={fitted.notion_!r} corrects sums of probabilities and tells no "
                "probability of a class. Use 'canonical', 'confidence', 'top-label' or 'classwise'."
            )
        self.estimator_, self.n_rows_ = fitted, n_rows
        self.classes_, self.n_features_in_ = fitted.classes_, fitted.n_features_in_
        return self

    def predict_proba(self, X) -> np.ndarray:
        """Corrected probabilities of all classes.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one column holds P(positive class).

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        fitted = self.estimator_
        proba, logits, turned = fitted._predictions(X)
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
        corrected = corrected_proba(proba, change, self.n_rows_)
        return corrected[:, ::-1] if turned else corrected

    def _largest_corrected(self, proba, parts, corrections):
        change = np.zeros(len(proba))
        for part, correction in zip(parts, corrections, strict=True):
            change[part.rows] = correction[:, 0]
        rows, top = np.arange(len(proba)), proba.argmax(axis=1)
        largest = np.minimum(proba[rows, top], 1)
        two, changes = np.column_stack([largest, 1 - largest]), np.column_stack([change, -change])
        two = corrected_proba(two, changes, self.n_rows_)
        others = proba.copy()
        others[rows, top] = 0
        total = others.sum(axis=1, keepdims=True)
        equal = np.full_like(others, 1 / (proba.shape[1] - 1))
        equal[rows, top] = 0
        others = np.where(total > 0, others / np.where(total > 0, total, 1), equal)
        result = others * two[:, 1:]
        result[rows, top] = two[:, 0]
        return result

    def predict(self, X) -> np.ndarray:
        """Most probable class of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one column holds P(positive class).
        """
        most_probable = self.predict_proba(X).argmax(axis=1)  # which asks whether it is fitted
        return self.classes_[most_probable]
