"""Logistic recalibration a + b logit(p): intercept, slope and their intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit
from scipy.special import logit as log_odds
from scipy.stats import chi2

from skcal._groups import no_smaller
from skcal._scores import log_losses_of_logits
from skcal._show import ShownRounded, percent, plain_number
from skcal._sklearn_compat import validate_params
from skcal._validation import CONFIDENCE_LEVEL, InputError
from skcal.metrics.base import Outcome, check_both, read_outcome
from skcal.model_selection.estimator import ConfidenceInterval

_ITERATIONS, _HALVINGS = 100, 30
_TOLERANCE = 1e-13  # of the gradient of the mean loss
_ROUNDING = 1e-13  # of the mean loss
_DOUBLINGS = 60
_NEWTON_STEPS, _FAR = 10, 100.0  # Newton's, from a guess at most so many reaches off


@dataclass(frozen=True)
class CoxRecalibration(ShownRounded):
    """Logistic recalibration logit P(Y = 1) = a + b logit(p), fitted by maximum likelihood.

    Attributes
    ----------
    intercept, slope : float
        a and b; 0 and 1 are calibrated. b < 1: predictions too extreme. With b free, a is not what
        :func:`~skcal.metrics.calibration_intercept` gives; that is ``intercept_in_the_large``.
    intercept_standard_error, slope_standard_error : float
        The standard errors by the Fisher information; samples count with their weights. Of groups
        those of the sandwich, never below.
    intercept_in_the_large, intercept_in_the_large_standard_error : float
        a with b = 1 fixed; below 0: predictions too high on the whole.
    log_likelihood : dict
        The log-likelihood of the fits "intercept and slope", "intercept" (b = 1) and "calibrated"
        (a = 0, b = 1).
    intercept_interval, slope_interval, intercept_in_the_large_interval : ConfidenceInterval
        (low, high): the values that the likelihood ratio test does not reject; of groups those of
        Student's distribution.
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

    def sentence(self) -> str:
        """Return slope and intercept with their intervals, in words."""
        numbers = [self.slope, *self.slope_interval]
        numbers += [self.intercept_in_the_large, *self.intercept_in_the_large_interval]
        slope, low, high, large, least, most = map(plain_number, numbers)
        return (
            f"calibration slope {slope} ({low} to {high}); intercept at slope 1 {large} "
            f"({least} to {most}); {percent(self.confidence_level)} intervals"
        )


@validate_params(CONFIDENCE_LEVEL)
def cox_recalibration(
    y_true: ArrayLike,
    y_proba: ArrayLike,
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
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of the intervals.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row.
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
        ``intercept_in_the_large`` at slope 1, and their intervals.

    Raises
    ------
    ValueError
        If the input is not valid, only one outcome occurs or all predictions are equal. Also if a
        threshold separates the outcomes, because then no finite slope is the most likely.

    See Also
    --------
    calibration_intercept, calibration_slope, integrated_calibration_index

    Notes
    -----
    Probabilities below 2⁻⁵² ≈ 2.2e-16 count as that floor (logit ±36.04), and can dominate the
    slope. Logits have no floor.

    The intervals are those of the profile likelihood, as R's ``confint`` gives them for a logistic
    regression. They may be asymmetric, as is right for few events. An end is infinite if the
    likelihood never falls far enough. If ``groups`` are given, the likelihood is not known.
    Standard errors then come from the sandwich of the groups' scores, and are in no direction below
    those of independent samples. Intervals use Student's distribution with (Σ w)² / Σ_g w_g² - 1
    degrees of freedom.

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
    options = {"from_logits": from_logits, "groups": groups}
    data = read_outcome(y_true, y_proba, notion, sample_weight, labels, pos_label, **options)
    return recalibration_of(data, confidence_level)


def recalibration_of(data: Outcome, confidence_level: float) -> CoxRecalibration:
    """The logistic recalibration of predictions of one outcome."""
    logit, outcome, weight = data.logit, data.happened, data.weight
    check_both(outcome)
    check_overlap(logit, outcome)
    both = fit_logistic(logit, outcome, weight)
    large = fit_intercept(logit, outcome, weight)
    if data.problem.groups.independent:
        intervals = profile_intervals(logit, outcome, weight, both, large, confidence_level)
    else:
        both, large = of_groups(both, data), of_groups(large, data)
        half = data.problem.groups.quantile((1 - confidence_level) / 2, weight)
        intervals = [
            ConfidenceInterval(float(value - half * error), float(value + half * error))
            for fit in (both, large)
            for value, error in zip(fit.coefficients, fit.standard_errors, strict=True)
        ]
    errors = both.standard_errors
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
        notion=data.notion,
    )


def intercept_of(data: Outcome, confidence_level: float) -> tuple[float, float, float]:
    """The intercept in the large and the ends of its interval, which need no slope."""
    logit, outcome, weight = data.logit, data.happened, data.weight
    large = fit_intercept(logit, outcome, weight)
    if data.problem.groups.independent:
        return float(large.coefficients[0]), *profile_interval(
            logit, outcome, weight, large, confidence_level
        )
    large = of_groups(large, data)
    half = data.problem.groups.quantile((1 - confidence_level) / 2, weight)
    value, error = float(large.coefficients[0]), float(large.standard_errors[0])
    return value, float(value - half * error), float(value + half * error)


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
    """Calibration intercept (calibration in the large): bias of the predictions in log-odds.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
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
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    intercept : float
        The intercept in log-odds. 0: no bias on the whole; below 0: predictions are too high.
        Probabilities below 2⁻⁵² count as that floor (logit ±36.04).

    Raises
    ------
    ValueError
        If the input is not valid or only one outcome occurs.

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
    data = read_outcome(y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits)
    check_both(data.happened)
    return _most_likely_intercept(data.logit, data.happened, data.weight)


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
    """Calibration slope: below 1 if predictions are overconfident, above 1 if underconfident.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
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
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    slope : float
        1 is calibrated; below 1: predictions are overconfident. Probabilities below 2⁻⁵² count as
        that floor (logit ±36.04), and can dominate.

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
    >>> round(calibration_slope([0, 1, 0, 1, 1, 0], [0.2, 0.3, 0.4, 0.6, 0.9, 0.7]), 3)
    0.721
    """
    data = read_outcome(y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits)
    check_both(data.happened)
    check_overlap(data.logit, data.happened)
    return float(_most_likely_line(data.logit, data.happened, data.weight)[1][1])


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


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients, their covariance by the Fisher information, and the log-likelihood."""

    coefficients: np.ndarray
    covariance: np.ndarray
    log_likelihood: float

    @property
    def standard_errors(self) -> np.ndarray:
        """Of the coefficients."""
        return np.sqrt(np.diagonal(self.covariance))


def of_groups(fit: LogisticFit, data: Outcome) -> LogisticFit:
    """Return a fit with the sandwich covariance of the groups' scores.

    It is in no direction smaller than that of independent samples, and than that of outcomes which
    depend on each other as strongly as those of the groups do.
    """
    design = np.column_stack([np.ones_like(data.logit), data.logit])[:, : len(fit.coefficients)]
    linear = design @ fit.coefficients + (0 if len(fit.coefficients) > 1 else data.logit)
    chance, weighted = expit(linear), design * data.weight[:, None]
    residuals = data.happened - chance
    groups = data.problem.groups.about(chance[:, None], residuals[:, None])
    covariance = fit.covariance
    for middle in (
        groups.covariance_of_sums(weighted * residuals[:, None]),
        groups.covariance(weighted, chance),
    ):
        covariance = no_smaller(fit.covariance @ middle @ fit.covariance, covariance)
    return replace(fit, covariance=covariance)


def fit_intercept(logit, outcome, weight) -> LogisticFit:
    """Maximum likelihood of a in a + logit."""
    a = _most_likely_intercept(logit, outcome, weight)
    frequency = expit(a + logit)
    with np.errstate(divide="ignore"):  # of certain predictions alone
        variance = 1 / (weight @ (frequency * (1 - frequency)))
    best = log_likelihood(a + logit, outcome, weight)
    return LogisticFit(np.array([a]), np.array([[variance]]), best)


def _most_likely_intercept(logit, outcome, weight) -> float:
    """The a of a + logit: the score falls with a, so that its root is bracketed.

    Newton's method would not do: the likelihood is flat where p is 0 or 1.
    """
    centre = log_odds(weight @ outcome / weight.sum())
    if not np.isfinite(centre):
        reason = "leaves one of two outcomes no weight beside rounding."
        raise InputError("sample_weight", reason, "Lower the largest weight.")
    bracket = centre - logit.max() - 1, centre - logit.min() + 1
    # Not a closure: brentq's cycle of references would keep its arrays until a collection.
    arguments = np.ones_like(logit), logit, outcome, weight
    return brentq(_slope_of_likelihood, *bracket, args=arguments, xtol=1e-13, maxiter=1000)


def fit_logistic(logit, outcome, weight) -> LogisticFit:
    """Maximum likelihood of (a, b) in a + b logit."""
    design, coefficients = _most_likely_line(logit, outcome, weight)
    linear = design @ coefficients
    frequency = expit(linear)
    spread = weight * frequency * (1 - frequency)
    information = (design * spread[:, None]).T @ design
    best = log_likelihood(linear, outcome, weight)
    return LogisticFit(coefficients, np.linalg.pinv(information), best)


def _most_likely_line(logit, outcome, weight) -> tuple[np.ndarray, np.ndarray]:
    """The design (n, 2) and the coefficients of a + b logit."""
    design = np.column_stack([np.ones_like(logit), logit])
    calibrated = np.array([0.0, 1.0])
    hits, penalty = weight * outcome, np.zeros(2)
    return design, logistic_coefficients(design, hits, weight, penalty, calibrated)


def logistic_coefficients(X, hits, mass, penalty, start) -> np.ndarray:
    """Coefficients β where Σ mass log(1 + exp(η)) - hits η + Σ penalty β² / 2 is least, η = Xβ.

    Newton's method with halved steps, from 0 or a better start: resamples that a threshold
    separates have flat likelihoods, where solvers warn and change.
    """

    def loss(coefficients):
        linear = X @ coefficients
        fit = mass @ np.logaddexp(0, linear) - hits @ linear
        return fit + penalty @ coefficients**2 / 2

    total = mass.sum()
    least, coefficients = min(((loss(one), one) for one in (start, 0 * start)), key=itemgetter(0))
    for _ in range(_ITERATIONS):
        chance = expit(X @ coefficients)
        gradient = X.T @ (mass * chance - hits) + penalty * coefficients
        if np.abs(gradient).max() <= _TOLERANCE * total:
            break
        curvature = (X * (mass * chance * (1 - chance))[:, None]).T @ X
        curvature += np.diag(penalty + 1e-14 * total)
        step = np.linalg.solve(curvature, gradient)
        for _ in range(_HALVINGS):
            new = loss(coefficients - step)
            if new < least + _ROUNDING * total:
                break
            step = step / 2
        else:
            break
        coefficients, least = coefficients - step, new
    return coefficients


def log_likelihood(logit, outcome, weight):
    """Log likelihood of outcomes 0/1 given their logits."""
    return -float(weight @ log_losses_of_logits(logit[:, None], outcome))


def profile_intervals(logit, outcome, weight, both, large, confidence_level):
    """Profile likelihood intervals of the intercept, the slope and the intercept in the large.

    They hold the values that the likelihood ratio test does not reject, so that they are skewed as
    the likelihood is, where events are few.
    """
    fall = chi2.ppf(confidence_level, 1) / 2
    errors = np.sqrt(np.diagonal(both.covariance))
    design = np.ones_like(logit), logit
    intervals = []
    for k, other in ((0, 1), (1, 0)):
        ratio = both.covariance[k, other] / both.covariance[k, k]
        line = both.coefficients[other], ratio, both.coefficients[k], errors[other] / 10
        best = partial(_best_of_other, design[k], design[other], outcome, weight, line)
        intervals.append(_profile(best, both.coefficients[k], errors[k], fall))
    return [*intervals, profile_interval(logit, outcome, weight, large, confidence_level)]


def profile_interval(logit, outcome, weight, large, confidence_level) -> ConfidenceInterval:
    """That of the intercept in the large."""
    fall, error = chi2.ppf(confidence_level, 1) / 2, large.standard_errors[0]
    shifted = partial(_shifted, logit, outcome, weight)
    return _profile(shifted, large.coefficients[0], error, fall)


def _best_of_other(column, other, outcome, weight, line, value):
    """The largest log-likelihood over the other column's coefficient, near a line in ``value``."""
    start, ratio, center, reach = line
    offset = value * column
    guess = start + ratio * (value - center)
    c = _root_of_score(other, offset, outcome, weight, guess, reach)
    return log_likelihood(offset + c * other, outcome, weight)


def _shifted(logit, outcome, weight, a):
    return log_likelihood(a + logit, outcome, weight)


def _root_of_score(z, offset, outcome, weight, guess, reach):
    """The c that is most likely in offset + c z; its score falls with it."""
    c, weighted = guess, weight * z
    for _ in range(_NEWTON_STEPS):
        chance = expit(offset + c * z)
        information = weighted @ (z * chance * (1 - chance))
        step = weighted @ (outcome - chance) / information if information > 0 else np.inf
        if not abs(step) < _FAR * reach:
            break
        c += step
        if abs(step) <= 1e-3 * reach:  # the next one would be some square of it
            return c
    arguments = z, offset, outcome, weight  # not a closure, as above
    tolerance, low, high = 1e-5 * reach, guess - reach, guess + reach
    while _slope_of_likelihood(low, *arguments) < 0:
        low, high, reach = low - 2 * reach, low, 2 * reach
    while _slope_of_likelihood(high, *arguments) > 0:
        low, high, reach = high, high + 2 * reach, 2 * reach
    return brentq(_slope_of_likelihood, low, high, args=arguments, xtol=tolerance)


def _slope_of_likelihood(c, z, offset, outcome, weight):
    """Derivative of the log-likelihood of offset + c z by c."""
    return weight @ (z * (outcome - expit(offset + c * z)))


def _profile(likelihood: Callable, best, step, fall) -> ConfidenceInterval:
    """Values where a profile likelihood is ``fall`` below its largest."""
    least = likelihood(best) - fall
    ends = []
    for reach in (-2 * step, 2 * step):
        for _ in range(_DOUBLINGS):
            if likelihood(best + reach) < least:
                ends_at = best, best + reach
                root = brentq(_above, *ends_at, args=(likelihood, least), xtol=1e-8 * step)
                ends.append(float(root))
                break
            reach *= 2
        else:
            ends.append(float(np.copysign(np.inf, reach)))
    return ConfidenceInterval(*ends)


def _above(value, likelihood, least):
    return likelihood(value) - least
