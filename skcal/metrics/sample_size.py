"""How many samples a validation study needs for intervals of given widths."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import asinh, ceil, log, sqrt
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from skcal._show import Table, html_result, percent
from skcal._sklearn_compat import Interval, validate_params
from skcal._validation import CONFIDENCE_LEVEL, InputError, check_proba, first_of
from skcal.metrics.gap_sums import CHANGES, CROSSINGS, noise_of_sums

_N_DEVIATIONS, _N_NODES = 9, 200_001  # standard deviations and points of the linear predictor
_OTHER_RISK = 1.25  # ratio of mean risk and prevalence above which there is a warning
_SHARE = Interval(Real, 0, 1, closed="neither")
_PASSES = 0.9  # of passing the limit
_MORE = 0.2  # standard deviations: 1,800 simulated studies of four distributions, n = 300 to 4,000
_WIDTH_OPTION = Interval(Real, 0, None, closed="neither")
_CRITERIA = {
    "observed_expected_ratio": "O/E ratio",
    "slope": "calibration slope",
    "c_statistic": "C-statistic",
    "net_benefit": "standardised net benefit",
    "calibration_error": "calibration error, upper limit",
}


@dataclass(frozen=True, eq=False)
class ValidationSampleSize:
    """Samples that a validation study needs, by criterion.

    Attributes
    ----------
    observed_expected_ratio, slope, c_statistic : int
        Samples with which the interval of the O/E ratio, of the calibration slope and of the
        C-statistic is as narrow as asked.
    net_benefit : int or None
        The same of the standardised net benefit (net benefit over prevalence); None without
        ``threshold``.
    calibration_error : int or None
        Samples with which the upper limit of the calibration error is at most ``max_error`` with a
        chance of 90 %; None without ``max_error``.
    targets : dict of str to float
        The width, or for the calibration error the limit, that was asked, by criterion.
    anticipated : dict of str to float
        The value of each measure that the number assumes. The model is calibrated, so the O/E ratio
        and the slope are 1 and the calibration error is 0.
    prevalence, confidence_level : float
    """

    observed_expected_ratio: int
    slope: int
    c_statistic: int
    net_benefit: int | None
    calibration_error: int | None
    targets: dict[str, float]
    anticipated: dict[str, float]
    prevalence: float
    confidence_level: float

    @property
    def n_samples(self) -> int:
        """Samples that fulfil all criteria."""
        return max(getattr(self, name) for name in self.targets)

    @property
    def n_events(self) -> int:
        """Expected events among ``n_samples``."""
        return ceil(self.n_samples * self.prevalence)

    def _table(self) -> Table:
        rows = []
        for name, target in self.targets.items():
            n = getattr(self, name)
            events = ceil(n * self.prevalence)
            rows.append((_CRITERIA[name], self.anticipated[name], target, n, events))
        columns = "criterion", "anticipated", "target", "samples", "events"
        last = max(range(len(rows)), key=lambda k: rows[k][3])
        level = percent(self.confidence_level)
        notes = [
            f"target: the width of {level} intervals, from end to end. Events at a prevalence of "
            f"{100 * self.prevalence:.3g} %."
        ]
        if self.calibration_error is not None:
            notes.append(
                f"In {percent(_PASSES)} of such studies of a calibrated model the upper limit of "
                f"the calibration error ({level} confidence) is at most the target."
            )
        title = f"Collect {self.n_samples:,} samples, with about {self.n_events:,} events"
        return Table(columns, rows, title=title, notes=notes, chosen=last)

    def __str__(self):
        return self._table().text()

    def _repr_html_(self):
        return html_result(type(self).__name__, self._table())


@validate_params(
    {
        "prevalence": [_SHARE],
        "oe_width": [_WIDTH_OPTION],
        "slope_width": [_WIDTH_OPTION],
        "c_statistic": [Interval(Real, 0.5, 1, closed="neither"), None],
        "c_width": [_SHARE],
        "threshold": [_SHARE, None],
        "net_benefit_width": [_WIDTH_OPTION],
        "max_error": [_SHARE, None],
        **CONFIDENCE_LEVEL,
    },
    used_with={"net_benefit_width": "threshold"},
)
def validation_sample_size(
    prevalence: float,
    *,
    linear_predictor: Sequence[float] | None = None,
    y_proba: ArrayLike | None = None,
    oe_width: float = 0.2,
    slope_width: float = 0.2,
    c_statistic: float | None = None,
    c_width: float = 0.1,
    threshold: float | None = None,
    net_benefit_width: float = 0.2,
    max_error: float | None = None,
    confidence_level: float = 0.95,
) -> ValidationSampleSize:
    """Samples that a validation study needs, for intervals of given widths.

    Parameters
    ----------
    prevalence : float in (0, 1)
        The share of events that you expect in the study.
    linear_predictor : (float, float), default=None
        Mean and standard deviation of the log-odds of the predictions, which are normal.
    y_proba : array-like of shape (n_predictions,), default=None
        Predictions like those of the study, such as those of a pilot or of the development data, in
        place of ``linear_predictor``.
    oe_width : float, default=0.2
        The width of the interval of the O/E ratio, from end to end.
    slope_width : float, default=0.2
        The width of the interval of the calibration slope.
    c_statistic : float in (0.5, 1), default=None
        The C-statistic that you expect. None: that of a calibrated model with these predictions. If
        it is all that you know, it and ``prevalence`` imply the predictions: normal log-odds of
        equal variance with and without the event.
    c_width : float in (0, 1), default=0.1
        The width of the interval of the C-statistic.
    threshold : float in (0, 1), default=None
        The probability from which you would act. None leaves the net benefit out.
    net_benefit_width : float, default=0.2
        The width of the interval of the standardised net benefit, net benefit over prevalence.
    max_error : float in (0, 1), default=None
        The limit of the calibration error that the study should show. None leaves it out.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of the limits.

    Returns
    -------
    size : ValidationSampleSize
        One number of samples per criterion, and the largest, ``n_samples``.

    Raises
    ------
    ValueError
        If a number is out of its range, or nothing says how the predictions are distributed.

    Warns
    -----
    UserWarning
        If the mean of the predictions is not near the prevalence. The slope's number is then that
        of another prevalence.

    See Also
    --------
    validation_measures : the intervals that the study will report.
    calibration_error_interval : the upper limit of the calibration error.

    Notes
    -----
    Assumptions: the model is calibrated in the study, samples are independent, and there are enough
    events for normal intervals. The O/E ratio uses the normal interval of its logarithm. The slope
    uses the Fisher information of logistic recalibration, and the C-statistic Newcombe's variance.
    The net benefit uses sensitivity and specificity at ``threshold`` of a calibrated model [1]_.
    The calibration error uses the law of its upper limit for calibrated predictions. See [2]_ for
    continuous outcomes. All are closed forms or integrals; nothing is drawn. The published program
    pmvalsampsize finds standard errors in steps of 0.0001 and draws predictions, so its numbers
    differ by up to 0.6 %. In 500 simulated studies each, the median width was within 3 % of the
    width asked for. Clopper-Pearson intervals of the O/E ratio are 2 to 3 % wider.

    References
    ----------
    .. [1] Riley, Debray, Collins, Archer, Ensor, van Smeden & Snell, Minimum sample size for
       external validation of a clinical prediction model with a binary outcome, Statistics in
       Medicine 2021.
    .. [2] Archer, Snell, Ensor, Hudda, Collins & Riley, Minimum sample size for external validation
       of a clinical prediction model with a continuous outcome, Statistics in Medicine 2021.

    Examples
    --------
    >>> from skcal.metrics import validation_sample_size
    >>> size = validation_sample_size(0.1, c_statistic=0.8, threshold=0.2)
    >>> print(size)
    Collect 4,196 samples, with about 420 events
    <BLANKLINE>
      criterion                 anticipated  target  samples  events
      O/E ratio                           1     0.2    3,469     347
    * calibration slope                   1     0.2    4,196     420
      C-statistic                       0.8     0.1      836      84
      standardised net benefit       0.2386     0.2    1,372     138
    target: the width of 95 % intervals, from end to end. Events at a prevalence of 10 %.
    """
    z = float(norm.isf((1 - confidence_level) / 2))
    x, share = _distribution(prevalence, linear_predictor, y_proba, c_statistic)
    risk = expit(x)
    mean = float(share @ risk)
    if not 1 / _OTHER_RISK <= mean / prevalence <= _OTHER_RISK:
        warnings.warn(
            f"The mean of the predictions is {mean:.3g}, but prevalence is {prevalence:g}. The "
            "samples for slope and net benefit assume a calibrated model, whose mean prediction is "
            "the prevalence. Pass numbers that agree.",
            stacklevel=2,
        )
    if c_statistic is None:
        c_statistic = _c_of_calibrated(risk, share)
    targets = {"observed_expected_ratio": oe_width, "slope": slope_width, "c_statistic": c_width}
    anticipated = {"observed_expected_ratio": 1.0, "slope": 1.0, "c_statistic": c_statistic}
    net_benefit = None
    if threshold is not None:
        targets["net_benefit"] = net_benefit_width
        sensitivity, specificity = _at_threshold(risk, share, threshold)
        odds = (1 - prevalence) / prevalence * threshold / (1 - threshold)
        anticipated["net_benefit"] = sensitivity - (1 - specificity) * odds
        error = net_benefit_width / (2 * z)
        net_benefit = _of_net_benefit(prevalence, sensitivity, specificity, threshold, error)
    of_error = None
    if max_error is not None:
        targets["calibration_error"], anticipated["calibration_error"] = max_error, 0.0
        of_error = _of_error(float(share @ (risk * (1 - risk))), max_error, 1 - confidence_level)
    return ValidationSampleSize(
        _of_oe(prevalence, asinh(oe_width / 2) / z),  # width e^(z s) - e^(-z s)
        _of_slope(x, share, slope_width / (2 * z)),
        _of_c(prevalence, c_statistic, c_width / (2 * z)),
        net_benefit,
        of_error,
        targets,
        anticipated,
        prevalence,
        confidence_level,
    )


def _distribution(prevalence, linear_predictor, y_proba, c_statistic):
    """Log-odds and their shares."""
    if linear_predictor is not None and y_proba is not None:
        reason = "is given beside linear_predictor."
        raise InputError("y_proba", reason, "Pass one of them.")
    if y_proba is not None:
        proba = check_proba(y_proba).astype(np.float64)
        if proba.ndim == 2:
            reason = "has two dimensions."
            raise InputError("y_proba", reason, "Pass P(event), one number per prediction.")
        certain = (proba == 0) | (proba == 1)
        if certain.any():
            reason = "is 0 or 1, whose log-odds are infinite."
            remedy = "Leave such predictions out, or replace them by what the model means."
            raise InputError("y_proba", reason, remedy, **first_of(certain))
        return logit(proba), np.full(len(proba), 1 / len(proba))
    if linear_predictor is not None:
        numbers = np.asarray(linear_predictor, dtype=np.float64)
        if numbers.shape != (2,) or not np.isfinite(numbers).all() or numbers[1] <= 0:
            reason = f"is {linear_predictor!r}."
            remedy = "Pass mean and standard deviation of the log-odds, the second above 0."
            raise InputError("linear_predictor", reason, remedy)
        x = np.linspace(-_N_DEVIATIONS, _N_DEVIATIONS, _N_NODES)
        density = norm.pdf(x)
        return numbers[0] + numbers[1] * x, density / density.sum()
    if c_statistic is None:
        reason = "is missing, and so are y_proba and c_statistic."
        remedy = "Pass one of them: it says how the predictions are distributed."
        raise InputError("linear_predictor", reason, remedy)
    # [1] Eq. (10): N(m, v) without and N(m + v, v) with the event, where C = Φ(√(v / 2)). They are
    # the log-odds of the event if m = logit(prevalence) - v / 2.
    v = 2 * norm.ppf(c_statistic) ** 2
    low, reach = logit(prevalence) - v / 2, _N_DEVIATIONS * sqrt(v)
    x = np.linspace(low - reach, low + v + reach, _N_NODES)
    density = (1 - prevalence) * norm.pdf(x, low, sqrt(v))
    density += prevalence * norm.pdf(x, low + v, sqrt(v))
    return x, density / density.sum()


def _c_of_calibrated(risk, share) -> float:
    """C-statistic of a calibrated model, whose cases of each risk are events and others."""
    happened, weight = np.repeat([1, 0], len(risk)), np.append(share * risk, share * (1 - risk))
    return float(roc_auc_score(happened, np.append(risk, risk), sample_weight=weight))


def _at_threshold(risk, share, threshold) -> tuple[float, float]:
    """Sensitivity and specificity of a calibrated model."""
    event, none, acts = share * risk, share * (1 - risk), risk >= threshold
    return float(event @ acts / event.sum()), float(none @ ~acts / none.sum())


def _of_oe(prevalence, error) -> int:
    """Samples for this standard error of ln(O/E)."""
    return ceil((1 - prevalence) / (prevalence * error**2))


def _of_slope(x, share, error) -> int:
    """Samples for this standard error of the slope, by the Fisher information of (a, b)."""
    spread = share * expit(x) * expit(-x)
    total = spread.sum()
    centred = x - spread @ x / total
    return ceil(1 / (error**2 * float(spread @ centred**2)))


def _of_c(prevalence, c, error) -> int:
    """Samples for this standard error of the C-statistic, [1] Eq. (11), quadratic in n."""
    k = (1 - c) / (2 - c) + c / (1 + c)
    a, scale = error**2 * prevalence * (1 - prevalence), c * (1 - c)
    return ceil((scale * k / 2 + sqrt((scale * k / 2) ** 2 + 4 * a * scale * (1 - k))) / (2 * a))


def _of_net_benefit(prevalence, sensitivity, specificity, threshold, error) -> int:
    """Samples for this standard error of the standardised net benefit, [1] Eq. (13)."""
    odds = (1 - prevalence) / prevalence * threshold / (1 - threshold)
    wrong = 1 - specificity
    variance = (
        sensitivity * (1 - sensitivity) / prevalence
        + odds**2 * specificity * wrong / (1 - prevalence)
        + odds**2 * wrong**2 / (prevalence * (1 - prevalence))
    )
    return ceil(variance / error**2)


def _of_error(variance, max_error, tail) -> int:
    """Samples whose upper limit of the calibration error is below this with a chance of 90 %.

    The limit is T_3 + z σ / √n + ln(1 / tail) / n, where T_3 is nothing but noise. If noise shows
    more than 3 crossings the limit is that of more; _MORE is what this adds to the quantile.
    """
    cells = np.full(1024, 1 / 1024)
    means, deviations = noise_of_sums(cells)
    k = CHANGES.index(CROSSINGS)
    z = means[k] + norm.ppf(_PASSES) * deviations[k] + _MORE + norm.isf(tail)
    a, b = z * sqrt(variance), log(1 / tail)  # a / √n + b / n = max_error
    return ceil(((a + sqrt(a**2 + 4 * b * max_error)) / (2 * max_error)) ** 2)
