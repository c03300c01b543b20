"""Calibration errors without bins, by functions that are fitted to other samples."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_random_state

from skcal._folds import OUTCOMES_UNKNOWN, absent_class, read_splits, warn_of_absent_class
from skcal._groups import GroupBlocks
from skcal._sklearn_compat import StrOptions, validate_params
from skcal.functions import BilinearFunction
from skcal.model_selection import engine
from skcal.model_selection.adaptive import adaptive_squared_error
from skcal.model_selection.candidates import fast_function
from skcal.model_selection.errors import KINDS, estimate_error
from skcal.model_selection.estimates import one_step
from skcal.notions import Problems
from skcal.sample import Sample, read_sample


@validate_params(
    {
        "kind": [StrOptions(set(KINDS))],
        "function": [BilinearFunction, None],
        "cv": ["cv_object"],
        "random_state": ["random_state"],
        "signed": ["boolean"],
    }
)
def cross_fitted_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    kind: str = "rms",
    notion: str = "auto",
    function: BilinearFunction | None = None,
    cv: Any = 5,
    random_state: Any = 0,
    signed: bool = False,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """RMS calibration error, or another kind, estimated by cross-fitting.

    Every sample is corrected by a fit that did not use it. The estimate combines these corrections
    with the debiased error of cells that are made without the labels. It takes whole vectors, too.
    The mean absolute error of single probabilities is :func:`calibration_error`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    kind : {"l1", "l2", "rms", "squared", "log"}, default="rms"
        "l1": the mean total variation, half the sum over classes (the absolute value of a single
        number). "l2": the mean Euclidean norm. "squared" and "rms": its mean square and the root.
        "log": the log loss in nats that calibration would save.
    notion : str or callable, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more; see
        :mod:`skcal.notions`. "classwise" adds the errors of the classes.
    function : calibration-estimation function, default=None
        One that has ``residual``, such as :class:`skcal.PlugIn`. None: spline scaling for scalar
        notions. For vectors it is a stack of class-based temperatures and of a ridge regression on
        interactions with the confidence. With fewer than 100 samples or above 30 columns it is
        structured matrix scaling, above 100 columns vector scaling.
    cv : int, cross-validation splitter or iterable, default=5
        An int is the number of shuffled folds, at most one a sample. They do not depend on the
        order of the samples. A splitter is given the samples of positive weight in their order;
        samples that it never tests are left out.
    random_state : int, RandomState instance or None, default=0
        Shuffles the folds. If it is an int, the same samples have the same error in every call.
    signed : bool, default=False
        Whether to return the estimate with its sign, before estimates within the noise are shrunk
        or set to 0. "l1", "l2" and "rms" then return sign(V) √|V| in place of the root of the
        squared error V. A signed estimate also ranks calibrated models, as scorers must.
    sample_weight : array-like of shape (n_samples,), default=None
        Importance weights: rows that are repeated may fall into different folds.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other, so that folds hold whole groups and pairs of
        one group do not count. See :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    error : float
        In probability units, squared ones ("squared", which may be negative) or nats ("log",
        infinite with a warning where something happened that has probability 0). 0 if the error is
        within the noise, unless ``signed``.

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
    See ``skcal.model_selection.errors`` for the forms. Five fits and O(n log n) time, some 10 s for
    a million samples of one probability and more for 100,000 vectors of ten classes. Plain binned
    errors of calibrated predictions are above 0 because of noise. This error is then 0 in most
    cases.

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> from skcal.metrics import cross_fitted_calibration_error, expected_calibration_error
    >>> data = make_tempered(1000, temperature=1.0, n_truth_draws=0, random_state=0)
    >>> y, P = data.labels, data.proba  # calibrated
    >>> round(expected_calibration_error(y, P), 3)
    0.053
    >>> round(cross_fitted_calibration_error(y, P, notion="canonical"), 3)
    0.0
    """
    sample = read_sample(
        y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits, groups=groups
    )
    weight = sample.weight / sample.weight.mean()
    data = Problems(sample._replace(weight=weight).problems(), weight, sample.groups)
    splits = _splits(sample, data, cv, random_state)
    if sample.notion.of_given_classes and not isinstance(cv, Integral):
        absent = absent_class((train for train, _ in splits), sample.codes, sample.weight)
        warn_of_absent_class(absent, sample.classes, OUTCOMES_UNKNOWN)
    error = _estimate(kind, sample.notion, data, function, splits)
    return error.signed if signed else error.estimate


def _estimate(kind, notion, data: Problems, function, splits):
    """The error of the samples that are tested."""
    if function is None:
        function = fast_function(notion, data.parts[0].features.shape[1], len(data.weight))
    function = function.reading(data.parts[0].logits is not None)
    if not hasattr(function, "residual"):
        raise ValueError(
            f"function={function!r} has no residual(X). Pass TwoStepKernelRidge, PlugIn, Binning "
            "without debias, DirichletKernelDensity or Stacking."
        )
    values, tested = _cross_fit(function, data, splits)
    data = data.take(tested)
    corrections = [
        values[k if data.share_samples else 0][tested[part.rows]]
        for k, part in enumerate(data.parts)
    ]
    squared = adaptive_squared_error(data, corrections), one_step(corrections, data)
    return estimate_error(kind, notion, data, corrections, *squared)


def _splits(sample: Sample, data: Problems, cv, random_state) -> list[tuple]:
    """Training and test samples of each fold; a number of them is shuffled, by whole groups."""
    if not isinstance(cv, Integral):
        return read_splits(check_cv(cv), sample.codes, sample.codes, data.groups)
    order = np.lexsort(_keys(sample, data))
    if not data.groups.independent:
        codes = data.groups.codes[order]
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
        in_order = np.argsort(np.argsort(first))[codes]  # groups are numbered as they come
        seed = check_random_state(random_state).randint(2**31 - 1)
        folds = GroupBlocks(int(cv), seed).split(order, groups=in_order)
    elif len(order) < 2:
        return [(order[:0], order)]
    else:
        shuffled = KFold(min(cv, len(order)), shuffle=True, random_state=random_state)
        folds = shuffled.split(order)
    return [(np.sort(order[train]), np.sort(order[test])) for train, test in folds]


def _keys(sample: Sample, data: Problems):
    """What orders the samples whatever the order of the rows, the last first."""
    if len(data.parts) == 1 and data.parts[0].features.shape[1] == 1:
        part = data.parts[0]
        return part.weight, part.outcomes[:, 0], part.features[:, 0]
    return sample.weight, sample.codes, *sample.columns.T


def _cross_fit(function, data: Problems, splits) -> tuple[np.ndarray, np.ndarray]:
    """ĝ of all samples, one array for problems that divide them; the samples that were tested."""
    width, shared = data.parts[0].features.shape[1], data.share_samples
    total = np.zeros((len(data.parts) if shared else 1, len(data.weight), width))
    count = np.zeros(len(data.weight))
    for train, test in splits:
        count[test] += 1
        if len(train) < 2:
            continue
        tested = data.take(test)
        fitted = engine.fit_again(function, data, train)
        corrections = engine.corrections(fitted, tested)
        for k, (part, correction) in enumerate(zip(tested.parts, corrections, strict=True)):
            total[k if shared else 0, test[part.rows]] += correction
    return total / np.maximum(count, 1)[:, None], np.flatnonzero(count)
