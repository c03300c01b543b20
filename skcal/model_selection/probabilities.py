"""From a classifier to its probabilities, so that a pipeline runs from raw samples."""

from __future__ import annotations

from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from skcal._sklearn_compat import HasMethods, _fit_context


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

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcal import CalibrationErrorEstimator, ClassifierProbabilities
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
    def fit(self, X, y=None, **params):
        """Fit the classifier unless it is frozen.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), default=None
        **params : dict
            Passed on to the classifier's ``fit``.

        Returns
        -------
        self : object
        """
        self.classifier_ = clone(self.classifier).fit(X, y, **params)
        self.classes_ = self.classifier_.classes_
        return self

    def transform(self, X):
        """Return probabilities of shape (n_samples, n_classes)."""
        check_is_fitted(self)
        return self.classifier_.predict_proba(X)

    def get_feature_names_out(self, input_features=None):
        """Return the classes as names of the columns."""
        check_is_fitted(self)
        return self.classes_.astype(str).astype(object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
