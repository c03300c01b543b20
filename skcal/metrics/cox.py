"""Logistic recalibration a + b logit(p): intercept, slope and their intervals."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skcal._show import ShownRounded, percent, plain_number
from skcal._sklearn_compat import validate_params
from skcal._validation import CONFIDENCE_LEVEL
from skcal.metrics.base import outcome_of
from skcal.metrics.limits import FEWEST_EVENTS, warn_if_few_events
from skcal.metrics.logistic import LogisticFit, LogisticLine
from skcal.model_selection.estimator import ConfidenceInterval
from skcal.sample import Sample, read_sample


@dataclass(frozen=True)
class CoxRecalibration(ShownRounded):
    """Logistic recalibration logit P(Y = 1) = a + b logit(p), fitted by maximum likelihood.

    Attributes
    ----------
    intercept, slope : float
        a and b; 0 and 1 are calibrated. b < 1: predictions too extreme. With b free, a is not what
        :func:`~skcal.metrics.calibration_intercept` gives; that is ``intercept_in_the_large``.
        From fewer than five events or non-events both, their standard errors and intervals are NaN.
        Predictions of exactly 0 or 1 do not count: with an outcome against one there is no slope of
        all, and these are those of the others.
    intercept_standard_error, slope_standard_error : float
        The standard errors by the Fisher information of the effective sample size. If there are
        groups, those of the sandwich, never below.
    intercept_in_the_large, intercept_in_the_large_standard_error : float
        a with b = 1 fixed; below 0: predictions too high on the whole.
    log_likelihood : dict
        The log-likelihood of the fits "intercept and slope", "intercept" (b = 1) and "calibrated"
        (a = 0, b = 1). The last two are -infinity if an outcome is against a prediction of exactly
        0 or 1.
    intercept_interval, slope_interval, intercept_in_the_large_interval : ConfidenceInterval
        (low, high): the values that the likelihood ratio test does not reject; of groups those of
        Student's distribution.
    confidence_level : float
    notion : {"binary", "confidence"}
    slope_note : str
        Why the slope of all predictions is undefined, or why there is none; else empty.
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
    slope_note: str

    def sentence(self) -> str:
        """Return slope and intercept with their intervals, in words."""
        numbers = [self.slope, *self.slope_interval]
        numbers += [self.intercept_in_the_large, *self.intercept_in_the_large_interval]
        slope, low, high, large, least, most = map(plain_number, numbers)
        large = f"intercept at slope 1 {large} ({least} to {most})"
        level = percent(self.confidence_level)
        if math.isnan(self.slope):
            return f"{large}; {level} interval; {self.slope_note}"
        slope = f"{slope} ({low} to {high})"
        if self.slope_note:
            slope = f"{self.slope_note}; {slope} of the other predictions"
        return f"calibration slope {slope}; {large}; {level} intervals"


@validate_params(CONFIDENCE_LEVEL)
def cox_recalibration(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> CoxRecalibration:
    """Calibration intercept and slope (Cox) with standard errors and confidence intervals.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of the intervals.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; only their ratios matter. They are worth (Σ w)² / Σ w² samples of
        equal weight. For counts of rows pass votes as ``y_true``.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. See
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    result : CoxRecalibration
        ``intercept`` and ``slope`` of the logits (0 and 1 if calibrated),
        ``intercept_in_the_large`` at slope 1, and their intervals. From fewer than five events or
        non-events there is a warning and only the last; see Notes.

    Raises
    ------
    ValueError
        If the input is not valid, only one outcome occurs or all predictions are equal. Also if a
        threshold separates the outcomes, because then no finite slope is the most likely, and if
        :func:`calibration_intercept` raises it.

    See Also
    --------
    calibration_intercept, calibration_slope, integrated_calibration_index

    Notes
    -----
    Predictions of exactly 0 and 1 have no finite logit, and say nothing of a finite slope: it is
    that of the others. If an outcome is against one of them, the slope of all is undefined, and
    there is a warning. At slope 1 they expect no event, or nothing but events, whatever the
    intercept, and the others make up for outcomes against them.

    The intervals are those of the profile likelihood, as R's ``confint`` gives them for a logistic
    regression. They may be asymmetric, as is right for few events. An end is infinite if the
    likelihood never falls far enough. If ``groups`` are given, the likelihood is not known.
    Standard errors then come from the sandwich of the groups' scores, and are in no direction below
    those of independent samples. Intervals use Student's distribution with (Σ w)² / Σ_g w_g² - 1
    degrees of freedom. Weights are scaled to the sum (Σ w)² / Σ w²: intervals of 95 % then hold the
    truth in at least 95 % of sets, up to one point, whatever the weights (see :ref:`levels`).

    Fewer than five events or non-events do not determine a slope. Groups count for as many events
    as would tell as much if they were independent.

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
    >>> y, p = [0, 1, 0, 1, 1, 0] * 2, [0.2, 0.3, 0.4, 0.6, 0.9, 0.7] * 2
    >>> result = cox_recalibration(y, p)
    >>> round(result.slope, 3), round(result.slope_standard_error, 3)
    (0.721, 0.58)
    >>> [round(end, 2) for end in result.slope_interval]
    [-0.3, 2.12]
    """
    sample = read_sample(
        y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits, groups=groups
    )
    result = recalibration_of(sample, confidence_level)
    LogisticLine.finite(result.intercept_in_the_large)
    _check_slope(LogisticLine(outcome_of(sample)))
    return result


def _check_slope(line: LogisticLine) -> None:
    """Raise without a slope; warn of few events, and of outcomes against exactly 0 or 1."""
    if line.events >= FEWEST_EVENTS or line.n_certain:
        line.check_overlap()
    warn_if_few_events(line.events, FEWEST_EVENTS, "a slope, which is NaN", "Use more samples.")
    if line.n_against and line.events >= FEWEST_EVENTS:
        warnings.warn(
            f"The calibration slope of all predictions is {line.slope_note}. That of the others is "
            "returned. If predictions were rounded, calibration_report takes their step as "
            "resolution=.",
            stacklevel=3,
        )


def recalibration_of(sample: Sample, confidence_level: float) -> CoxRecalibration:
    """The logistic recalibration of predictions of one outcome, without a slope of few events."""
    data = outcome_of(sample.effective)
    line, shift = LogisticLine(data), LogisticLine(data, slope=1)
    both = LogisticFit(np.full(2, np.nan), np.full((2, 2), np.nan), np.nan)
    intercept = slope = ConfidenceInterval(np.nan, np.nan)
    if line.events >= FEWEST_EVENTS and not (line.n_certain and line.why_no_slope):
        line.check_overlap()
        both = line.fit()
        intercept, slope = line.intervals(both, confidence_level)
    large = shift.fit()
    [in_the_large] = shift.intervals(large, confidence_level)
    errors, [error_in_the_large] = both.standard_errors.tolist(), large.standard_errors.tolist()
    return CoxRecalibration(
        intercept=float(both.coefficients[0]),
        slope=float(both.coefficients[1]),
        intercept_standard_error=errors[0],
        slope_standard_error=errors[1],
        intercept_in_the_large=float(large.coefficients[0]),
        intercept_in_the_large_standard_error=error_in_the_large,
        log_likelihood={
            "intercept and slope": both.log_likelihood,
            "intercept": -np.inf if shift.n_against else large.log_likelihood,
            "calibrated": -np.inf if shift.n_against else shift.log_likelihood([0.0]),
        },
        intercept_interval=intercept,
        slope_interval=slope,
        intercept_in_the_large_interval=in_the_large,
        confidence_level=confidence_level,
        notion=sample.notion,
        slope_note=line.slope_note,
    )


def calibration_intercept(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Calibration intercept (calibration in the large): bias of the predictions in log-odds.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; only their ratios matter.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    intercept : float
        The intercept in log-odds. 0: no bias on the whole; below 0: predictions are too high.

    Raises
    ------
    ValueError
        If the input is not valid or only one outcome occurs, or predictions between 0 and 1 cannot
        make up for outcomes against those of exactly 0 or 1.

    See Also
    --------
    cox_recalibration : standard errors, and the intercept beside a free slope.

    Notes
    -----
    It is a in logit P(Y = 1) = a + logit(p).

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
    sample = read_sample(y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits)
    line = LogisticLine(outcome_of(sample.effective), slope=1)
    return LogisticLine.finite(line.most_likely()[0])


def calibration_slope(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Calibration slope: below 1 if predictions are overconfident, above 1 if underconfident.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; only their ratios matter.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    slope : float
        1 is calibrated; below 1: predictions are overconfident. NaN, with a warning, from fewer
        than five events or non-events. It is that of predictions between 0 and 1; there is a
        warning where outcomes are against those of exactly 0 or 1, since that of all is undefined.

    Raises
    ------
    ValueError
        If :func:`cox_recalibration` raises it.

    See Also
    --------
    cox_recalibration : standard errors.

    Notes
    -----
    It is b in logit P(Y = 1) = a + b logit(p).

    References
    ----------
    .. [1] Cox, Two further applications of a model for binary regression, Biometrika 1958.

    Examples
    --------
    >>> from skcal.metrics import calibration_slope
    >>> y, p = [0, 1, 0, 1, 1, 0] * 2, [0.2, 0.3, 0.4, 0.6, 0.9, 0.7] * 2
    >>> round(calibration_slope(y, p), 3)
    0.721
    """
    sample = read_sample(y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits)
    line = LogisticLine(outcome_of(sample.effective))
    _check_slope(line)
    if line.events < FEWEST_EVENTS:
        return np.nan
    return float(line.most_likely()[1])
