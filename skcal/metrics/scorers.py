"""Scorers for cross-validation and model selection."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np

from skcal._labels import another, is_table, plain_labels
from skcal._sklearn_compat import (
    BaseScorer,
    refuse_unused,
    shared_by_scorers,
    validate_parameter_constraints,
)
from skcal._validation import InputError, plain_array, refuse_no_numbers
from skcal.metrics.binned import expected_calibration_error, maximum_calibration_error
from skcal.metrics.cross_fitted import cross_fitted_calibration_error, refinement_loss
from skcal.metrics.cumulative import cutoff_calibration_error, kolmogorov_smirnov_calibration_error
from skcal.metrics.curve import integrated_calibration_index
from skcal.metrics.error_limits import calibration_error
from skcal.metrics.kernel import maximum_mean_calibration_error, squared_kernel_calibration_error
from skcal.metrics.selective import risk_coverage_of_predictions
from skcal.metrics.smooth import kernel_density_calibration_error, smooth_calibration_error
from skcal.sample import is_of_labels

_MEAN_OF_CLASSES = {"notion": "classwise", "average": "macro"}
_CANONICAL, _DEBIASED = {"notion": "canonical"}, {"norm": 2, "debias": True, "root": False}
# Name without "neg_": the metric by its defaults, or options that the name says.
_SCORERS: dict[str, tuple[Callable, dict]] = {
    "calibration_error": (calibration_error, {}),
    "expected_calibration_error": (expected_calibration_error, {}),
    "classwise_expected_calibration_error": (expected_calibration_error, _MEAN_OF_CLASSES),
    "top_label_expected_calibration_error": (expected_calibration_error, {"notion": "top-label"}),
    "binary_expected_calibration_error": (expected_calibration_error, {"notion": "binary"}),
    "debiased_squared_calibration_error": (expected_calibration_error, _DEBIASED),
    "maximum_calibration_error": (maximum_calibration_error, {}),
    "squared_kernel_calibration_error": (squared_kernel_calibration_error, {}),
    "canonical_squared_kernel_calibration_error": (
        squared_kernel_calibration_error,
        _CANONICAL,
    ),
    "maximum_mean_calibration_error": (maximum_mean_calibration_error, {}),
    "smooth_calibration_error": (smooth_calibration_error, {}),
    "classwise_smooth_calibration_error": (smooth_calibration_error, _MEAN_OF_CLASSES),
    "binary_smooth_calibration_error": (smooth_calibration_error, {"notion": "binary"}),
    "cutoff_calibration_error": (cutoff_calibration_error, {}),
    "kolmogorov_smirnov_calibration_error": (kolmogorov_smirnov_calibration_error, {}),
    "kernel_density_calibration_error": (kernel_density_calibration_error, {}),
    "canonical_kernel_density_calibration_error": (
        kernel_density_calibration_error,
        _CANONICAL,
    ),
    "cross_fitted_calibration_error": (cross_fitted_calibration_error, {}),
    "integrated_calibration_index": (integrated_calibration_index, {}),
    "refinement_loss": (refinement_loss, {}),
    "brier_refinement_loss": (refinement_loss, {"score": "brier"}),
    "area_under_risk_coverage": (risk_coverage_of_predictions, {}),
    "generalized_area_under_risk_coverage": (risk_coverage_of_predictions, {"generalized": True}),
}


class CalibrationScorer(BaseScorer):
    """A scorer that knows the class of each column of probabilities from ``classes_``.

    ``make_scorer`` passes only the columns to a metric, so that it fails if a fold lacks a class or
    has a label that the classifier was not fitted to. This one does not.
    """

    def _score(self, method_caller, estimator, X, y_true, **kwargs):
        self._warn_overlap("Options of this scorer are also passed as metadata.", kwargs)
        options = {**self._kwargs, **kwargs}
        # Not through method_caller: for two classes it returns one column, that of the pos_label
        # of whichever scorer asked first, and it refuses classifiers of one class.
        if not hasattr(estimator, "predict_proba"):
            raise AttributeError(
                f"{type(estimator).__name__} has no predict_proba, which this scorer needs. Use "
                "another classifier, or CalibratedClassifierCV around it."
            )
        if is_of_labels(options.get("notion")):
            return self._sign * self._score_func(y_true, estimator.predict_proba(X), **options)
        asked = "skcal predict_proba"
        proba = shared_by_scorers(method_caller, asked, lambda: predicted(estimator, X))
        proba, labels = align_columns(proba, estimator.classes_, y_true, options.get("pos_label"))
        score = self._score_func(y_true, proba, labels=labels, **options)
        if not isinstance(score, Real):
            raise TypeError(
                f"{_metric_name(self._score_func)} returns {type(score).__name__}, not a number. "
                "Make the scorer of a function that returns one of its numbers."
            )
        return self._sign * score


def predicted(estimator, X) -> np.ndarray:
    """The predictions of a classifier, as an array."""
    proba = estimator.predict_proba(X)
    refuse_no_numbers(proba, "predict_proba")
    return plain_array(proba, "predict_proba")


def align_columns(proba, classes, y_true, pos_label):
    """P(positive) for two classes; columns of zeros for labels that the classifier lacks."""
    labels = np.asarray(classes)
    if proba.ndim != 2 or proba.shape[1] != len(labels):
        reason = f"has shape {proba.shape}, classes_ {len(labels)} entries."
        raise InputError("predict_proba", reason, "Use a classifier with a column per class.")
    known, unknown = set(labels.tolist()), []
    if not is_table(y_true):  # whose columns are those of the classes
        y = plain_labels(y_true, "y_true")
        unknown = [label for label in dict.fromkeys(y.tolist()) if label not in known]
    if len(unknown):
        _refuse_labels_of_other_types(unknown[0], labels[0])
        zeros = np.zeros((len(proba), len(unknown)), dtype=proba.dtype)
        labels = np.concatenate([labels, unknown])
        order = np.argsort(labels)
        proba, labels = np.hstack([proba, zeros])[:, order], labels[order]
    if len(labels) == 1:  # the one class is always predicted, and always right
        return proba[:, 0], np.array([another(labels.item()), labels.item()])
    if len(labels) != 2:
        return proba, labels
    positive = 0 if pos_label is not None and labels[0] == pos_label else 1
    return proba[:, positive], labels[[1 - positive, positive]]


def _refuse_labels_of_other_types(label, known) -> None:
    """Refuse a label that the classifier never saw."""
    if any(isinstance(label, kind) != isinstance(known, kind) for kind in (str, Real)):
        raise ValueError(
            f"y_true holds {label!r}, classes_ of the estimator {known!s}: labels of another type. "
            "Score with labels as in fit."
        )
    if isinstance(label, float) and not label.is_integer():
        raise ValueError(f"Unknown label type: continuous. y_true holds {label!r}; pass labels.")


def _metric_name(metric):
    return getattr(metric, "__name__", repr(metric))


def make_calibration_scorer(
    metric: Callable, *, greater_is_better: bool = False, **metric_params: Any
) -> CalibrationScorer:
    """Make a scorer of a metric that takes ``labels``.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_proba, *, labels, …) → float``, one of :mod:`skcal.metrics`.
    greater_is_better : bool, default=False
        False negates the metric.
    **metric_params
        Options of the metric. Fix ``notion``, so that two-class and multi-class problems are
        scored alike.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y, sample_weight=None) → float`` for everything in scikit-learn that
        takes ``scoring=``; takes part in metadata routing. The estimator needs ``predict_proba``
        and ``classes_``. With two classes the metric gets P(``classes_[1]``). A label that the
        estimator lacks gets a column of zeros.

    Raises
    ------
    TypeError, ValueError
        If the metric does not take ``labels`` or an option, or refuses its value.

    See Also
    --------
    get_scorer : ready-made ones.
    sklearn.metrics.make_scorer : works with ``response_method="predict_proba"`` where every test
        set holds all classes.

    Notes
    -----
    Do not choose models by a calibration error alone: the constant prediction of the class
    frequencies is calibrated. Choose by :func:`refinement_loss` and recalibrate the chosen model,
    or choose by the log loss or the Brier score, and report the calibration error.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from skcal.metrics import expected_calibration_error, make_calibration_scorer
    >>> scorer = make_calibration_scorer(
    ...     expected_calibration_error, notion="classwise", n_bins=10, average="macro"
    ... )
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_val_score(LogisticRegression(max_iter=1000), X, y, scoring=scorer).shape
    (5,)
    """
    if not callable(metric):
        raise ValueError(f"metric={metric!r} is not callable; get_scorer takes names.")
    if not isinstance(greater_is_better, bool | np.bool_):
        raise TypeError(f"greater_is_better={greater_is_better!r} must be True or False.")
    if "labels" in metric_params:
        raise TypeError("labels are those of the estimator's classes_. Leave labels= out.")
    if metric_params.get("from_logits"):
        raise TypeError("Scorers ask predict_proba for probabilities. Leave from_logits= out.")
    try:  # a misspelt option raises
        inspect.signature(metric).bind_partial(None, None, labels=None, **metric_params)
    except TypeError as error:
        raise TypeError(f"metric={_metric_name(metric)} {error}. It must take labels.") from None
    constraints = getattr(metric, "_skl_parameter_constraints", {})
    validate_parameter_constraints(constraints, metric_params, _metric_name(metric))
    refuse_unused(metric, metric_params)
    return CalibrationScorer(metric, 1 if greater_is_better else -1, metric_params, "predict_proba")


def get_scorer(name: str) -> CalibrationScorer:
    """Return a scorer by its name.

    Parameters
    ----------
    name : str
        One of :func:`get_scorer_names`. The metric has its defaults: "binary" for two classes and
        "confidence" for more, unless the name says another notion. With two classes "canonical" and
        "classwise" are "binary". Class-wise errors are means over the classes. Areas under risk and
        coverage use the predicted class and its probability.

    Returns
    -------
    scorer : callable
        A scorer as :func:`make_calibration_scorer` makes it: minus the error, so that greater is
        better.

    Raises
    ------
    ValueError
        If the name is unknown.

    Notes
    -----
    Do not choose models by a calibration error alone: the constant prediction of the class
    frequencies is calibrated. On scikit-learn's breast cancer data it beats logistic regression by
    17 of the 21 scorers of calibration errors and of risk and coverage.

    Choose by "neg_refinement_loss" or "neg_brier_refinement_loss" if you recalibrate the chosen
    model. They are the log loss and the Brier score after a recalibration in five folds within the
    validation part, which needs 10 samples; ``make_calibration_scorer(refinement_loss, cv=2)``
    needs 4. With metadata routing they take ``groups`` and ``sample_weight``. Choose by
    scikit-learn's "neg_log_loss", the sum of refinement and calibration part, if you use the model
    as it is. :doc:`/howto/scorers` compares such choices on ten data sets.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcal.metrics import get_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> round(get_scorer("neg_expected_calibration_error")(GaussianNB().fit(X, y), X, y), 4)
    -0.0325
    """
    plain = str(name).removeprefix("neg_")
    if plain == name or plain not in _SCORERS:
        near = get_close_matches(f"neg_{plain}", get_scorer_names(), n=1, cutoff=0.7)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise ValueError(
            f"{name!r} is not a scorer of skcal (scikit-learn's are in sklearn.metrics). {hint}Use "
            f"one of get_scorer_names(): {', '.join(get_scorer_names())}."
        )
    metric, params = _SCORERS[plain]
    return make_calibration_scorer(metric, **params)


def get_scorer_names() -> list[str]:
    """Return the names of all scorers, sorted.

    Returns
    -------
    names : list of str
        Names that :func:`get_scorer` takes, sorted.

    Examples
    --------
    >>> from skcal.metrics import get_scorer_names
    >>> get_scorer_names()[0]
    'neg_area_under_risk_coverage'
    """
    return sorted(f"neg_{name}" for name in _SCORERS)
