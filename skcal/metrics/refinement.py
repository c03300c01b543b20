"""The loss that is left after a recalibration that is fitted in folds: what to choose models by."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from skcal._folds import (
    absent_class,
    read_splits,
    refuse_overlap,
    shuffled_folds,
    warn_of_absent_class,
)
from skcal._scores import LOSSES, of_outcomes
from skcal._sklearn_compat import HasMethods, validate_params
from skcal._validation import InputError
from skcal.metrics.decomposition import SCORES
from skcal.metrics.statistic import observed_draw
from skcal.notions import Problem
from skcal.recalibration.bayesian import BayesianCalibration
from skcal.recalibration.candidates import for_input
from skcal.recalibration.mixture import fit_map, mapped_proba, plain_proba
from skcal.recalibration.reading import LabelledPredictions
from skcal.recalibration.scalar_scaling import PlattScaling
from skcal.recalibration.scaling import VectorScaling
from skcal.recalibration.temperature import TemperatureScaling
from skcal.sample import Sample, read_sample

_LOSS_OF = {"log-loss": "neg_log_loss", "brier": "neg_brier_score"}


@validate_params(
    {
        **SCORES,
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
    splits = _splits(sample, cv, random_state)
    total = sum(
        problem.share * _loss(problem, splits, recalibrator, score) for problem in sample.problems()
    )
    both = score == "brier" and sample.notion.by_class and len(sample.classes) == 2
    return float(total / 2 if both else total)


def _splits(sample: Sample, cv, random_state) -> list[tuple[np.ndarray, np.ndarray]]:
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
    absent = absent_class((train for train, _ in splits), sample.codes, sample.weight)
    warn_of_absent_class(absent, sample.classes, "methods that were fitted without it judge it")
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
