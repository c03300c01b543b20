"""Displays of classifiers and of cross-validation results, by what they make of predictions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from skcal._sklearn_compat import _safe_indexing, named_arguments
from skcal._validation import InputError
from skcal.metrics.scorers import align_columns, predicted

_Display = TypeVar("_Display")
_Options = ParamSpec("_Options")
_LEFT_OUT = ("cls", "y_true", "y_proba", "labels", "from_logits")  # the classifier tells them


_FromPredictions = Callable[Concatenate[Any, Any, Any, _Options], Any]


class _ClassMethod(Protocol[_Options]):
    """What a type checker knows: three samples' arguments and options in, the display out."""

    def __get__(
        self, instance: Any, owner: type[_Display]
    ) -> Callable[Concatenate[Any, Any, Any, _Options], _Display]: ...


def of_estimator(from_predictions: _FromPredictions[_Options]) -> _ClassMethod[_Options]:
    """A class method ``from_estimator`` with the options of ``from_predictions``."""

    def from_estimator(cls, estimator, X, y, **options):
        """Compute and plot for a fitted classifier.

        The predictions of two classes are P(``classes_[1]``), or those of ``pos_label``.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with ``predict_proba`` and ``classes_``. It should not have been
            fitted to these samples.
        X : array-like of shape (n_samples, n_features)
            The features of the samples.
        y : array-like of shape (n_samples,)
            Their labels. A label that the classifier lacks gets a column of zeros.
        """
        _require_classifier("estimator", estimator)
        proba = predicted(estimator, X)
        return _shown(cls, type(estimator).__name__, y, proba, estimator.classes_, options)

    return _like(from_estimator, from_predictions)


def of_cv_results(from_predictions: _FromPredictions[_Options]) -> _ClassMethod[_Options]:
    """A class method ``from_cv_results`` with the options of ``from_predictions``."""

    def from_cv_results(cls, cv_results, X, y, **options):
        """Compute and plot out-of-fold predictions of a cross-validation.

        Each sample is predicted by the classifier that was not fitted to it.

        Parameters
        ----------
        cv_results : dict
            What :func:`sklearn.model_selection.cross_validate` returned with
            ``return_estimator=True`` and ``return_indices=True``. Every sample must be in exactly
            one test fold.
        X : array-like of shape (n_samples, n_features)
            The features of the samples.
        y : array-like of shape (n_samples,)
            Their labels. A label that the classifier lacks gets a column of zeros.
        """
        estimators, folds = _parts_of(cv_results, len(y))
        classes = np.unique(np.concatenate([estimator.classes_ for estimator in estimators]))
        proba = np.zeros((len(y), len(classes)))
        for estimator, rows in zip(estimators, folds, strict=True):
            columns = np.searchsorted(classes, estimator.classes_)
            proba[np.ix_(rows, columns)] = predicted(estimator, _safe_indexing(X, rows))
        return _shown(cls, type(estimators[0]).__name__, y, proba, classes, options)

    return _like(from_cv_results, from_predictions)


def _shown(cls, name, y, proba, classes, options):
    proba, labels = align_columns(proba, classes, y, options.get("pos_label"))
    return cls.from_predictions(y, proba, labels=labels, **{"name": name, **options})


def _require_classifier(argument, estimator) -> None:
    if not (hasattr(estimator, "predict_proba") and hasattr(estimator, "classes_")):
        raise InputError(
            f"{argument}={estimator!r}",
            "has no predict_proba or no classes_.",
            "Pass a fitted classifier with probabilities, or use from_predictions.",
        )


def _parts_of(cv_results, n_samples) -> tuple[list, list]:
    """The fitted classifiers and the rows of their test folds."""
    if not {"estimator", "indices"} <= set(cv_results):
        reason = (
            f"holds {', '.join(map(repr, sorted(cv_results)))}, but not the fitted classifiers."
        )
        remedy = "Pass cross_validate(..., return_estimator=True, return_indices=True)."
        raise InputError("cv_results", reason, remedy)
    estimators, folds = cv_results["estimator"], cv_results["indices"]["test"]
    for estimator in estimators:
        _require_classifier("cv_results['estimator']", estimator)
    counts = np.bincount(np.concatenate(folds), minlength=n_samples)
    if len(counts) != n_samples or (counts != 1).any():
        k = int(np.argmax(counts != 1)) if len(counts) == n_samples else n_samples
        reason = f"has sample {k} in {counts[k]} test folds, of {n_samples:,} samples in y."
        remedy = "Use a splitter whose test folds hold every sample once, such as StratifiedKFold."
        raise InputError("cv_results", reason, remedy)
    return estimators, folds


def _like(function, from_predictions) -> Any:
    """A class method whose options, also in signature and docstring, are those of another."""
    model = from_predictions.__func__
    *arguments, _ = inspect.signature(function).parameters.values()
    options = inspect.signature(model).parameters.values()
    kept = [option for option in options if option.name not in _LEFT_OUT]
    signature = inspect.Signature([*arguments, *kept])

    def method(cls, *args, **kwargs):
        named_arguments(method.__qualname__, signature.parameters, (cls, *args), kwargs)
        given = signature.bind(cls, *args, **kwargs)
        return function(*given.args, **given.kwargs)

    method.__name__ = function.__name__
    method.__qualname__ = f"{model.__qualname__.rsplit('.', 1)[0]}.{function.__name__}"
    method.__module__ = model.__module__
    method.__doc__ = function.__doc__.rstrip() + "\n" + _options_of(model.__doc__)
    method.__signature__ = signature  # type: ignore[attr-defined]
    return classmethod(method)


def _options_of(text: str) -> str:
    """The sections of a docstring from its options on, without those that another gives."""
    _, _, text = text.partition("----------")
    entries = re.split(r"\n(?=        \S)", text)[1:]
    names = [re.match(r"        (\w+) :", entry) for entry in entries]
    named = zip(names, entries, strict=True)
    return "\n".join(entry for name, entry in named if not name or name[1] not in _LEFT_OUT)
