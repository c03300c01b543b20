"""Calibration as medicine reports it: intercept, slope, integrated calibration index."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn import config_context
from sklearn.base import BaseEstimator, clone

from skcal._show import ShownRounded
from skcal._sklearn_compat import HasMethods, Interval, StrOptions, validate_params
from skcal.metrics.logistic import (
    fit_intercept,
    fit_logistic,
    log_likelihood,
    profile_intervals,
)
from skcal.metrics.one_outcome import check_both
from skcal.metrics.smoothers import CURVES, make_points, point_gaps
from skcal.model_selection.estimator import ConfidenceInterval
from skcal.recalibration.features import log_probabilities
from skcal.sample import read_sample


@dataclass(frozen=True)
class CoxRecalibration(ShownRounded):
    """Logistic recalibration logit P(Y = 1) = a + b logit(p), fitted by maximum likelihood.

    Attributes
    ----------
    intercept, slope : float
        a and b; 0 and 1 are calibrated. b < 1: predictions too extreme. With b free, a is not what
        :func:`~skcal.metrics.calibration_intercept` gives; that is ``intercept_in_the_large``.
    intercept_standard_error, slope_standard_error : float
        The standard errors by the Fisher information; samples count with their weights.
    intercept_in_the_large, intercept_in_the_large_standard_error : float
        a with b = 1 fixed; below 0: predictions too high on the whole.
    log_likelihood : dict
        The log-likelihood of the fits "intercept and slope", "intercept" (b = 1) and "calibrated"
        (a = 0, b = 1).
    intercept_interval, slope_interval, intercept_in_the_large_interval : ConfidenceInterval
        (low, high): the values that the likelihood ratio test does not reject.
    confidence_level : float
    notion : {"binary", "confidence"}
    """

    intercept: float
    slope: float
    intercept_standard_error: float
    slope_standard_error: float
    intercept_in_the_large: float
    intercept_in_the_large_standard_error: float
    log_likelihood: dict[str, float]
    intercept_interval: ConfidenceInterval
    slope_interval: ConfidenceInterval
    intercept_in_the_large_interval: ConfidenceInterval
    confidence_level: float
    notion: str


@validate_params(
    {"confidence_level": [Interval(Real, 0, 1, closed="neither")]},
    prefer_skip_nested_validation=True,
)
def cox_recalibration(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    notion: str = "auto",
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> CoxRecalibration:
    """Calibration intercept and slope of Cox with standard errors and intervals.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of the intervals.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits, of which no digit is lost.

    Returns
    -------
    result : CoxRecalibration

    Raises
    ------
    ValueError
        If the input is not valid, only one outcome occurs, all predictions are equal, or a
        threshold separates the outcomes, so that no finite slope is the most likely.

    See Also
    --------
    calibration_intercept, calibration_slope, integrated_calibration_index

    Notes
    -----
    Probabilities below 2⁻⁵² ≈ 2.2e-16 count as that floor (logit ±36.04), and can dominate the
    slope. Logits have no floor.

    The intervals are those of the profile likelihood, as R's ``confint`` gives them for a logistic
    regression. They need no symmetry, which few events do not have; an end is infinite where the
    likelihood never falls far enough.

    References
    ----------
    .. [1] Cox, Two further applications of a model for binary regression, Biometrika 1958.
    .. [2] Van Calster et al., Calibration: the Achilles heel of predictive analytics, BMC Medicine
       2019.
    .. [3] Venzon & Moolgavkar, A method for computing profile-likelihood-based confidence
       intervals, Applied Statistics 1988.

    Examples
    --------
    >>> from skcal.metrics import cox_recalibration
    >>> y, p = [0, 1, 0, 1, 1, 0], [0.2, 0.3, 0.4, 0.6, 0.9, 0.7]
    >>> result = cox_recalibration(y, p)
    >>> round(result.slope, 3), round(result.slope_standard_error, 3)
    (0.721, 0.821)
    >>> [round(end, 2) for end in result.slope_interval]
    [-0.71, 2.89]
    """
    logit, outcome, weight, notion = read_logits(
        y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits
    )
    check_both(outcome)
    check_overlap(logit, outcome)
    both = fit_logistic(logit, outcome, weight)
    large = fit_intercept(logit, outcome, weight)
    errors = np.sqrt(np.diagonal(both.covariance))
    intervals = profile_intervals(logit, outcome, weight, both, large, confidence_level)
    return CoxRecalibration(
        intercept=float(both.coefficients[0]),
        slope=float(both.coefficients[1]),
        intercept_standard_error=float(errors[0]),
        slope_standard_error=float(errors[1]),
        intercept_in_the_large=float(large.coefficients[0]),
        intercept_in_the_large_standard_error=float(np.sqrt(large.covariance[0, 0])),
        log_likelihood={
            "intercept and slope": both.log_likelihood,
            "intercept": large.log_likelihood,
            "calibrated": log_likelihood(logit, outcome, weight),
        },
        intercept_interval=intervals[0],
        slope_interval=intervals[1],
        intercept_in_the_large_interval=intervals[2],
        confidence_level=confidence_level,
        notion=notion,
    )


def calibration_intercept(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    notion: str = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Calibration in the large: a in logit P(Y = 1) = a + logit(p).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits, of which no digit is lost.

    Returns
    -------
    intercept : float
        The intercept in log-odds; 0 is calibrated on the whole, below 0: predictions too high.
        Probabilities below 2⁻⁵² count as that floor (logit ±36.04).

    Raises
    ------
    ValueError
        If the input is not valid or only one outcome occurs.

    See Also
    --------
    cox_recalibration : standard errors, and the intercept beside a free slope.

    References
    ----------
    .. [1] Van Calster et al., Calibration: the Achilles heel of predictive analytics, BMC Medicine
       2019.

    Examples
    --------
    >>> from skcal.metrics import calibration_intercept
    >>> round(calibration_intercept([0, 0, 0, 1], [0.5, 0.5, 0.5, 0.5]), 4)  # log(1/3)
    -1.0986
    """
    logit, outcome, weight, _ = read_logits(
        y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits
    )
    check_both(outcome)
    return float(fit_intercept(logit, outcome, weight).coefficients[0])


def calibration_slope(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    notion: str = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Calibration slope: b in logit P(Y = 1) = a + b logit(p).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits, of which no digit is lost.

    Returns
    -------
    slope : float
        1 is calibrated, below 1: predictions too extreme. Probabilities below 2⁻⁵² count as that
        floor (logit ±36.04), and can dominate.

    Raises
    ------
    ValueError
        If :func:`cox_recalibration` raises it.

    See Also
    --------
    cox_recalibration : standard errors.

    References
    ----------
    .. [1] Cox, Two further applications of a model for binary regression, Biometrika 1958.

    Examples
    --------
    >>> from skcal.metrics import calibration_slope
    >>> round(calibration_slope([0, 1, 0, 1, 1, 0], [0.2, 0.3, 0.4, 0.6, 0.9, 0.7]), 3)
    0.721
    """
    logit, outcome, weight, _ = read_logits(
        y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits
    )
    check_both(outcome)
    check_overlap(logit, outcome)
    return float(fit_logistic(logit, outcome, weight).coefficients[1])


@validate_params(
    {
        "estimator": [HasMethods(["fit", "predict_proba"]), StrOptions(set(CURVES)), None],
        "quantile": [Interval(Real, 0, 1, closed="both"), None],
    },
    prefer_skip_nested_validation=True,
)
def integrated_calibration_index(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    notion: str = "auto",
    estimator: BaseEstimator | str | None = None,
    quantile: float | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Integrated calibration index, ICI: mean ``|ĉ(p_i) - p_i|`` for a smooth calibration curve ĉ.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    estimator : classifier, {"splines", "loess", "isotonic"} or None, default=None
        The smoother, a classifier of the outcome given logit(p) as its one feature, or a method of
        :func:`calibration_curve`. None is "splines" without groups of many predictions: logistic
        regression on cubic splines of the logit with 5 knots at quantiles.
    quantile : float in [0, 1], default=None
        None is the mean; 0.5 and 0.9 are E50 and E90 of [1]_, 1 is Emax.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits, of which no digit is lost.

    Returns
    -------
    index : float in [0, 1], in probability units; 0 is calibrated.

    Raises
    ------
    ValueError
        If the input is not valid or only one outcome occurs.

    Notes
    -----
    [1]_ smooths by loess, R's rms package by lowess. The smoother matters: over 60 draws of a model
    of Beta(1, 3) predictions, splines and loess differed in ICI by 0.007 on average and by at most
    0.04 at n = 300 (0.001 and 0.003 at n = 3,000), in E90 by 0.015 and at most 0.09 (0.004 and
    0.02); isotonic regression has larger E90 and Emax. Compare values of one smoother. The curve is
    fitted to the samples on which it is evaluated, so all are biased upwards: ICI was 0.06, 0.05
    and 0.065 at n = 300 (splines, loess, isotonic) where the truth is 0.047.

    References
    ----------
    .. [1] Austin & Steyerberg, The integrated calibration index (ICI) and related metrics for
       quantifying the calibration of logistic regression models, Statistics in Medicine 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.metrics import integrated_calibration_index
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < p**2
    >>> round(integrated_calibration_index(y, p), 2)  # E|p² - p| = 1/6
    0.17
    """
    logit, outcome, weight, _ = read_logits(
        y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits
    )
    check_both(outcome)
    if estimator is None or isinstance(estimator, str):
        grouped = {} if estimator else {"most": len(logit)}
        points = make_points(expit(logit), outcome, weight, **grouped)
        gap, weight = point_gaps(estimator or "splines", points), points.mass
    else:
        gap = _fitted_gap(estimator, logit, outcome, weight, sample_weight is not None)
    if quantile is None:
        return float(weight @ gap / weight.sum())
    return float(np.quantile(gap, quantile, method="inverted_cdf", weights=weight))


def _fitted_gap(estimator, logit, outcome, weight, weighted):
    """Distance of a classifier's curve from each prediction."""
    smoother, X = clone(estimator), logit[:, None]
    step = smoother.steps[-1][0] + "__" if hasattr(smoother, "steps") else ""
    weights = {f"{step}sample_weight": weight}
    with config_context(enable_metadata_routing=False):
        smoother.fit(X, outcome.astype(np.int64), **(weights if weighted else {}))
    return np.abs(smoother.predict_proba(X)[:, 1] - expit(logit))


def read_logits(y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits):
    """Logits (n,), outcomes 0/1 and weights of the one problem of the notion, and its name."""
    sample = read_sample(
        y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits, single=True
    )
    [problem] = sample.problems()
    return *logits(problem), sample.notion


def logits(problem):
    """Logits (n,), outcomes 0/1 and weights of a problem of single probabilities."""
    outcome = problem.outcomes[:, 0].astype(np.float64)
    own = problem.logits
    own = log_probabilities(problem.features) if own is None else own
    return own[:, 0], outcome, problem.weight


def check_overlap(logit, outcome):
    """Raise unless the predictions of the two outcomes overlap."""
    if logit.min() == logit.max():
        raise ValueError("All predictions of y_proba are equal, so they have no slope.")
    below, above = logit[outcome == 0], logit[outcome == 1]
    if below.max() <= above.min() or above.max() <= below.min():
        raise ValueError(
            "A threshold on y_proba separates the outcomes, so that no finite slope is the most "
            "likely. More samples are needed."
        )
