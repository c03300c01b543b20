"""Calibration errors and the loss after a recalibration, by fits to other samples, without bins."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_random_state

from skcal._folds import (
    OUTCOMES_UNKNOWN,
    absent_class,
    read_splits,
    refuse_overlap,
    shuffled_folds,
    warn_of_absent_class,
)
from skcal._groups import GroupBlocks
from skcal._scores import LOSSES, of_outcomes
from skcal._sklearn_compat import HasMethods, StrOptions, validate_params
from skcal._validation import InputError
from skcal.functions import BilinearFunction
from skcal.metrics.decomposition import SCORE_OPTION
from skcal.metrics.statistic import observed_draw
from skcal.model_selection import engine
from skcal.model_selection.adaptive import adaptive_squared_error
from skcal.model_selection.candidates import fast_function
from skcal.model_selection.errors import ErrorEstimate, estimate_error
from skcal.model_selection.estimates import one_step
from skcal.notions import Problem, Problems
from skcal.recalibration.bayesian import BayesianCalibration
from skcal.recalibration.mixture import fit_map, for_input, mapped_proba, plain_proba
from skcal.recalibration.reading import LabelledPredictions
from skcal.recalibration.scalar_scaling import PlattScaling
from skcal.recalibration.scaling import VectorScaling
from skcal.recalibration.temperature import TemperatureScaling
from skcal.sample import Sample, read_sample


@validate_params(
    {
        "kind": [StrOptions(set(ErrorEstimate.kinds))],
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
        trainings = (train for train, _ in splits)
        absent = absent_class(trainings, sample.codes, sample.weight, sample.groups)
        warn_of_absent_class(absent, sample.classes, OUTCOMES_UNKNOWN, cv)
    error = _error_of_fits(kind, sample.notion, data, function, splits)
    return error.signed if signed else error.estimate


def _error_of_fits(kind, notion, data: Problems, function, splits):
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
    order = np.lexsort(_sort_keys(sample, data))
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


def _sort_keys(sample: Sample, data: Problems):
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


_LOSS_OF = {"log-loss": "neg_log_loss", "brier": "neg_brier_score"}


@validate_params(
    {
        **SCORE_OPTION,
        "recalibrator": [HasMethods(["fit", "predict_proba"]), None],
        "cv": ["cv_object"],
        "random_state": ["random_state"],
    }
)
def refinement_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike | None = None,
    *,
    score: str = "log-loss",
    recalibrator: Any = None,
    cv: Any = 5,
    notion: str | Callable = "auto",
    random_state: Any = 0,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Return the log loss or Brier score that is left after recalibration.

    A recalibration method is fitted to all folds but one and recalibrates this one. The mean loss
    of the recalibrated predictions is the refinement part of the loss. Choose a model by it if you
    recalibrate the chosen model. A model cannot lower it by being calibrated: a constant has the
    loss of the class frequencies, the largest of all but for noise.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    score : {"log-loss", "brier"}, default="log-loss"
        "log-loss" is in nats. "brier" is (p - y)² for two classes, and the sum over the classes of
        (p_k - 1[y = k])² for more.
    recalibrator : recalibration method, default=None
        A classifier of probabilities. None: for two classes
        :class:`~skcal.recalibration.PlattScaling`, and
        :class:`~skcal.recalibration.BayesianCalibration` of what it returns; for more
        :class:`~skcal.TemperatureScaling` and then :class:`~skcal.recalibration.VectorScaling`. So
        the temperature of the predictions does not change the loss.
    cv : int ≥ 2, cross-validation splitter or iterable, default=5
        An int is the number of shuffled folds with equal shares of the classes; with ``groups``
        they hold whole groups. Folds depend on labels and the order of the rows, not on
        predictions, so that models are compared on the same folds. Samples that a splitter never
        tests are left out.
    notion : {"auto", "binary", "canonical", "classwise", "multi-label"}, default="auto"
        "auto" is "binary" for one and two columns and "canonical" for more. "classwise" and
        "multi-label" add the losses of the columns, each recalibrated by itself.
    random_state : int, RandomState instance or None, default=0
        Shuffles the folds.
    sample_weight : array-like of shape (n_samples,), default=None
        Importance weights; only their ratios matter.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other, so that folds hold whole groups. See
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    loss : float
        The mean loss after recalibration, in nats or units of the Brier score; never infinite.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, if there are fewer than two samples a fold
        (10 for ``cv=5``), or if the notion is about the predicted class: a model that is always
        wrong would then have a loss of 0.

    Warns
    -----
    UserWarning
        If a training part lacks a class.

    See Also
    --------
    get_scorer : "neg_refinement_loss" and "neg_brier_refinement_loss" choose models by it.
    score_decomposition : the parts of a loss by bins or isotonic regression, fitted to the samples
        that they recalibrate.

    Notes
    -----
    The calibration part is the loss of the predictions as they are, minus this loss. So the sum of
    both parts is the log loss or Brier score itself, scikit-learn's "neg_log_loss". Choose by the
    sum if the model is used as it is. [1]_ stops training early by the refinement part, [2]_ shows
    that every proper score has these two parts.

    Recalibrated probabilities are mixed with uniform ones of weight 1 / (n + 1), where n is the
    number of training samples: so few samples cannot show that anything is impossible.

    References
    ----------
    .. [1] Berta, Holzmüller, Jordan & Bach, Rethinking early stopping: refine, then calibrate,
       arXiv:2501.19195, 2025.
    .. [2] Bröcker, Reliability, sufficiency, and the decomposition of proper scores, Quarterly
       Journal of the Royal Meteorological Society 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcal.metrics import refinement_loss
    >>> rng = np.random.default_rng(0)
    >>> z = 2 * rng.normal(size=2000)
    >>> y = rng.uniform(size=2000) < expit(z)
    >>> round(refinement_loss(y, expit(z)), 3), round(refinement_loss(y, expit(5 * z)), 3)
    (0.443, 0.443)
    >>> round(refinement_loss(y, np.full(2000, 0.5)), 3)  # calibrated, and useless
    0.693
    """
    sample = read_sample(
        y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits, groups=groups
    )
    is_auto = isinstance(notion, str) and notion == "auto"
    if is_auto and not (sample.notion.of_given_classes or sample.notion.of_labels):
        sample = sample.asked("canonical")
    if not sample.notion.of_given_classes:
        raise InputError(
            f"notion={str(sample.notion)!r}",
            "may ask about the predicted class, so that a model that is always wrong is the best.",
            "Pass notion='canonical' or 'classwise'.",
        )
    sample = sample.effective
    splits = _splits_of_refinement(sample, cv, random_state)
    total = sum(
        problem.share * _loss(problem, splits, recalibrator, score) for problem in sample.problems()
    )
    both = score == "brier" and sample.notion.by_class and len(sample.classes) == 2
    return float(total / 2 if both else total)


def _splits_of_refinement(sample: Sample, cv, random_state) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows; shuffled folds do not depend on the predictions."""
    n_samples = len(sample)
    if not isinstance(cv, Integral):
        splits = read_splits(check_cv(cv), sample.codes, sample.codes, sample.groups)
        refuse_overlap(splits, n_samples)
    elif n_samples < 2 * int(cv):
        reason = f"has {n_samples} samples of positive weight, and cv={cv} needs {2 * cv}."
        raise InputError("y_true", reason, "Pass more samples, or a smaller cv: cv=2 needs 4.")
    elif not sample.groups.independent or sample.codes.ndim > 1:
        seed = check_random_state(random_state).randint(2**31 - 1)
        splits = shuffled_folds(sample.groups, int(cv), seed, sample.codes, sample.weight)
    else:
        order = check_random_state(random_state).permutation(n_samples)
        # Class after class, as they appear, so that their names do not matter.
        _, first, codes = np.unique(sample.codes, return_index=True, return_inverse=True)
        order = order[np.argsort(first[codes][order], kind="stable")]
        fold = np.empty(n_samples, dtype=int)
        fold[order] = np.arange(n_samples) % cv
        splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(cv)]
    trainings = (train for train, _ in splits)
    absent = absent_class(trainings, sample.codes, sample.weight, sample.groups)
    judge = "methods that were fitted without it judge it"
    warn_of_absent_class(absent, sample.classes, judge, cv)
    return splits


def _loss(problem: Problem, splits, recalibrator, score) -> float:
    """The mean loss of the tested rows of a problem after recalibration."""
    of_logits = problem.logits is not None
    X = (problem.logits if of_logits else problem.features).astype(np.float64)
    happened = observed_draw(problem)[0]
    if happened.dtype.kind == "f" and happened.ndim == 1:
        happened = np.column_stack([1 - happened, happened])
    data = LabelledPredictions(X, happened, problem.weight)
    if recalibrator is not None:
        recalibrator = for_input(recalibrator, of_logits, "recalibrator")
    total, mass = 0.0, 0.0
    for train, test in splits:
        trained, tested, method = data.take(train), data.take(test), recalibrator
        if method is None:
            # Whatever the unit of the logits was, the second method gets the same.
            first, method = _default_methods(data.n_classes)
            first = fit_map(for_input(first, of_logits, "recalibrator"), trained)
            trained, tested = (
                part._replace(X=plain_proba(first, part.X, data.n_classes))
                for part in (trained, tested)
            )
        n_rows, fitted = trained.weight.sum(), fit_map(method, trained)
        proba = mapped_proba(fitted, tested.X, n_rows, data.n_classes)
        losses = of_outcomes(LOSSES[_LOSS_OF[score]](proba), tested.happened)
        total, mass = total + tested.weight @ losses, mass + tested.weight.sum()
    return total / mass


def _default_methods(n_classes: int):
    """A method with a free temperature, and one that shrinks towards what this returns."""
    if n_classes == 2:
        return PlattScaling(C=10_000.0), BayesianCalibration()
    return TemperatureScaling(), VectorScaling(C=1 / (2 * n_classes), structured=True)
