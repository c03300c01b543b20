"""Predictions of classifiers that have not seen a fold, and may lack a class of it."""

from __future__ import annotations

import numpy as np

from skcal._sklearn_compat import _check_method_params, _safe_indexing

_UNLIKELY = 10.0  # by how much the logit of a class that a fold lacks is below the lowest


def fit_fold(classifier, X, y, train, test, params, classes):
    """A classifier of the training rows, and its predictions for the test rows."""
    params = _check_method_params(X, params, indices=train)
    classifier.fit(_safe_indexing(X, train), _safe_indexing(y, train), **params)
    return classifier, aligned_predictions(classifier, _safe_indexing(X, test), classes)


def aligned_predictions(classifier, X, classes):
    """Probabilities or, of classifiers without, logits, with a column of every class."""
    known = np.searchsorted(classes, classifier.classes_)
    if hasattr(classifier, "predict_proba"):
        proba = np.asarray(classifier.predict_proba(X))
        if len(known) == len(classes):
            return proba
        whole = np.zeros((len(proba), len(classes)), dtype=proba.dtype)
        whole[:, known] = proba
        return whole
    logits = np.asarray(classifier.decision_function(X))
    if logits.ndim == 1 and len(classes) > 2:
        logits = np.stack([np.zeros_like(logits), logits], axis=1)
    if logits.ndim == 2 and logits.shape[1] != len(known):
        raise ValueError(
            f"{type(classifier).__name__}.decision_function has {logits.shape[1]} columns for "
            f"{len(known)} classes. Pass a classifier with a column per class, such as "
            "SVC(decision_function_shape='ovr')."
        )
    if logits.ndim == 1 or len(known) == len(classes):
        return logits
    whole = np.full((len(logits), len(classes)), logits.min() - _UNLIKELY)
    whole[:, known] = logits
    return whole
