"""Calibration errors without bins, by functions that are fitted to other samples."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import KFold, check_cv

from skcal._sklearn_compat import StrOptions, validate_params
from skcal.functions import BilinearFunction
from skcal.model_selection import engine
from skcal.model_selection.adaptive import adaptive_squared_error
from skcal.model_selection.candidates import fast_function
from skcal.model_selection.errors import KINDS, estimate_error, facts_of
from skcal.model_selection.estimates import one_step
from skcal.notions import Problem, Problems
from skcal.sample import Sample, read_sample


@validate_params(
    {
        "kind": [StrOptions(set(KINDS))],
        "function": [BilinearFunction, None],
        "cv": ["cv_object"],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def cross_fitted_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    kind: str = "l1",
    notion: str = "auto",
    function: BilinearFunction | None = None,
    cv: Any = 5,
    random_state: Any = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Calibration error without bins, such as ECE, by a function that is fitted to other samples.

    Every sample is corrected by a fit that has not seen it; the corrections and the debiased error
    of cells that are found without the labels give the estimate.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    kind : {"l1", "l2", "rms", "squared", "log"}, default="l1"
        "l1": the mean total variation, half the sum over classes (of a single number its absolute
        value), which ECE estimates; "l2": the mean Euclidean norm; "squared" and "rms": its mean
        square and the root; "log": the log loss in nats that calibration would save.
    notion : str or callable, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more; see
        :mod:`skcal.notions`. Of "classwise" the errors of the classes are added.
    function : calibration-estimation function, default=None
        One that has ``residual``, such as :class:`skcal.PlugIn`. None: spline scaling for scalar
        notions; for vectors a stack of class-based temperatures and of a ridge regression on
        interactions with the confidence, of fewer than 100 samples or above 30 columns structured
        matrix scaling, above 100 vector scaling.
    cv : int, cross-validation splitter or iterable, default=5
        An int means as many shuffled folds (of fewer samples, as many as there are samples), which
        do not depend on the order of the samples. A splitter is given the samples of positive
        weight in their order; samples that it never tests are left out.
    random_state : int, RandomState instance or None, default=None
        Shuffles the folds; pass an int for the same value in every call.
    sample_weight : array-like of shape (n_samples,), default=None
        Importance weights: rows that are repeated may fall into different folds.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits, of which no digit is lost.

    Returns
    -------
    error : float
        In probability units, squared ones ("squared", which may be negative) or nats ("log",
        infinite with a warning where something happened that has probability 0). 0 where the
        samples do not show more than noise.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, or the function has no ``residual``.

    See Also
    --------
    skcal.CalibrationErrorSearchCV : chooses the function; its ``error`` has a standard error and a
        lower confidence bound.
    expected_calibration_error : with bins.

    Notes
    -----
    Five fits and O(n log n) time. Plain binned errors of calibrated predictions are above 0 by what
    noise alone gives; this one is 0 there more often than not.

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> from skcal.metrics import cross_fitted_calibration_error, expected_calibration_error
    >>> data = make_tempered(1000, temperature=1.0, n_truth_draws=0, random_state=0)
    >>> y, P = data.labels, data.proba  # calibrated
    >>> round(expected_calibration_error(y, P), 3)
    0.053
    >>> round(cross_fitted_calibration_error(y, P, random_state=0), 3)
    0.025
    """
    sample = read_sample(y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits)
    weight = sample.weight / sample.weight.mean()
    data = Problems(sample._replace(weight=weight).problems(), weight)
    if function is None:
        width = data.parts[0].features.shape[1]
        function = fast_function(sample.notion, width, len(weight))
    function = function.reading(from_logits)
    if not hasattr(function, "residual"):
        raise ValueError(
            f"function={function!r} has no residual(X). Pass TwoStepKernelRidge, PlugIn, Binning "
            "without debias, DirichletKernelDensity or Stacking."
        )
    error, _, _ = _estimate(kind, sample.notion, data, function, _splits(sample, cv, random_state))
    return error.estimate


def panel_error(sample: Sample, problem: Problem, random_state, confidence_level) -> dict:
    """The l1 error of one of the scalar problems of a sample, as plain numbers and words.

    Of a notion that has one problem it is the default of :func:`cross_fitted_calibration_error`.
    """
    of_all = sample.notion.shares_samples
    weight = problem.weight / problem.weight.mean()
    data = Problems([problem._replace(weight=weight, share=1.0, rows=slice(None))], weight)
    keys = _keys(sample) if of_all else (weight, problem.outcomes[:, 0], problem.features[:, 0])
    function = fast_function(sample.notion, 1, len(weight))
    splits = _folds(keys, 5, random_state)
    error, tested, corrections = _estimate("l1", sample.notion, data, function, splits)
    return facts_of(error, tested, corrections, confidence_level)


def _estimate(kind, notion, data: Problems, function, splits):
    """The error, the samples that were tested, and their corrections."""
    values, tested = _cross_fit(function, data, splits, notion.shares_samples)
    data = data.take(tested)
    corrections = [
        values[k if notion.shares_samples else 0][tested[part.rows]]
        for k, part in enumerate(data.parts)
    ]
    squared = adaptive_squared_error(data, corrections), one_step(corrections, data)
    return estimate_error(kind, notion, data, corrections, *squared), data, corrections


def _splits(sample: Sample, cv, random_state) -> list[tuple[np.ndarray, np.ndarray]]:
    everyone = np.arange(len(sample.codes))
    if not isinstance(cv, Integral):
        splits = check_cv(cv).split(everyone, sample.codes)
        return [(everyone[train], everyone[test]) for train, test in splits]
    return _folds(_keys(sample), cv, random_state)


def _keys(sample: Sample):
    """What orders the samples whatever the order of the rows, the last first."""
    return sample.weight, sample.codes, *sample.proba.reshape(len(sample.codes), -1).T


def _folds(keys, n_folds, random_state) -> list[tuple[np.ndarray, np.ndarray]]:
    """Shuffled folds of the samples in the order of the keys."""
    order = np.lexsort(keys)
    if len(order) < 2:
        return [(order[:0], order)]
    folds = KFold(min(n_folds, len(order)), shuffle=True, random_state=random_state).split(order)
    return [(np.sort(order[train]), np.sort(order[test])) for train, test in folds]


def _cross_fit(function, data: Problems, splits, shared) -> tuple[np.ndarray, np.ndarray]:
    """ĝ of all samples, one array for problems that divide them; the samples that were tested."""
    width = data.parts[0].features.shape[1]
    total = np.zeros((len(data.parts) if shared else 1, len(data.weight), width))
    count = np.zeros(len(data.weight))
    for train, test in splits:
        count[test] += 1
        if len(train) < 2:
            continue
        tested = data.take(test)
        fitted = engine.fit_again(function, data.take(train))
        corrections = engine.corrections(fitted, tested)
        for k, (part, correction) in enumerate(zip(tested.parts, corrections, strict=True)):
            total[k if shared else 0, test[part.rows]] += correction
    return total / np.maximum(count, 1)[:, None], np.flatnonzero(count)
