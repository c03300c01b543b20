"""The measures that medicine reports for a model of one outcome: numbers, intervals, a table."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from sklearn.utils import check_random_state

from skcal._scores import brier_losses, of_outcomes
from skcal._show import Table, html_result, percent
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal._validation import CONFIDENCE_LEVEL
from skcal.metrics.base import Outcome, outcome_of
from skcal.metrics.cox import recalibration_of
from skcal.metrics.curve import CURVE_DISTANCES, CurveDistances
from skcal.metrics.limits import FEWEST_EVENTS, frequency_limits
from skcal.metrics.logistic import LogisticLine
from skcal.metrics.smoothers import CURVES
from skcal.sample import Sample, read_sample, refuse_groups

_NOTE = (
    "ICI, E50, E90 and Emax are above 0 even for calibrated predictions. A lower limit of 0 says "
    "that calibrated predictions could show as much."
)
_PARAGRAPH = (
    "The validation sample held {n:,} predictions and {events:,} events ({prevalence} %); the "
    "model expected {expected:.1f}, O/E ratio {observed_expected_ratio}. Calibration in the large "
    "was {intercept_in_the_large} and the calibration slope {slope}. The smooth calibration curve "
    "(by {method}) was off by {ici} on average (ICI), with an E50 of {e50} and an E90 of {e90}. "
    "The C-statistic was {c_statistic}, the Brier score {brier_score} and the scaled Brier score "
    "{scaled_brier_score}. Ranges in parentheses are {level} confidence intervals. "
)
_FEW_EITHER = 100  # events, or samples without one: a rule of thumb for validations


class Measure(NamedTuple):
    """A number with the ends of its interval."""

    estimate: float
    low: float
    high: float

    def _in_words(self, decimals: int = 2) -> str:
        """``0.66 (0.55 to 0.77)``."""
        if not math.isfinite(self.estimate):
            return "not estimated"
        estimate, low, high = (f"{value:.{decimals}f}" for value in self)
        return estimate if self.low != self.low else f"{estimate} ({low} to {high})"


@dataclass(frozen=True)
class ValidationMeasures:
    """Calibration, discrimination and overall performance of predictions of one outcome.

    Every measure is (estimate, low, high). From fewer than five events or samples without one there
    is no slope and no C-statistic (NaN), and no interval of the curve and the Brier score. Events
    of ``groups`` count as many as would tell as much if they were independent.

    Attributes
    ----------
    prevalence : Measure
        The share of positive outcomes, with its Clopper-Pearson interval.
    mean_prediction : Measure
        The mean of the predictions; no interval (NaN).
    observed_expected_ratio : Measure
        Prevalence over mean prediction, O/E; above 1 predictions are too low. Clopper-Pearson,
        given the predictions.
    intercept_in_the_large, slope : Measure
        Calibration-in-the-large and calibration slope by logistic recalibration, with profile
        likelihood intervals; 0 and 1 are calibrated.
    ici, e50, e90, emax : Measure
        Mean, median, 90 % quantile and maximum of the distance of the smooth calibration curve from
        the prediction. Biased upwards. The lower end of a bootstrap interval is that of the basic
        interval. It is 0 if more than a share of 1 - ``confidence_level`` of the outcomes redrawn
        from the predictions have as large a distance. The upper end is as far from the estimate as
        the upper end of the resamples from their median.
    c_statistic : Measure
        Area under the ROC curve, with DeLong's interval on the logit scale.
    brier_score : Measure
        Mean (y - p)², with its normal interval inside 0 to 1.
    scaled_brier_score : Measure
        1 - Brier score / (prevalence (1 - prevalence)), the index of prediction accuracy.
    method : str
        The smoother of the curve.
    confidence_level : float
    n_samples, n_events : int
        The predictions, and those of them with the positive outcome, whatever their weights.
    slope_note : str
        Why the slope of all predictions is undefined, and ``slope`` that of those between 0 and 1,
        or why there is none; else empty.
    titles : dict of str to str
        What each measure is called where it is shown.
    """

    prevalence: Measure
    mean_prediction: Measure
    observed_expected_ratio: Measure
    intercept_in_the_large: Measure
    slope: Measure
    ici: Measure
    e50: Measure
    e90: Measure
    emax: Measure
    c_statistic: Measure
    brier_score: Measure
    scaled_brier_score: Measure
    method: str
    confidence_level: float
    n_samples: int
    n_events: int
    slope_note: str
    titles: ClassVar[dict[str, str]] = {
        "prevalence": "prevalence",
        "mean_prediction": "mean prediction",
        "observed_expected_ratio": "O/E ratio",
        "intercept_in_the_large": "calibration in the large",
        "slope": "calibration slope",
        "ici": "ICI",
        "e50": "E50",
        "e90": "E90",
        "emax": "Emax",
        "c_statistic": "C-statistic",
        "brier_score": "Brier score",
        "scaled_brier_score": "scaled Brier score",
    }

    @property
    def measures(self) -> dict[str, Measure]:
        """The measures by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Measure)}

    @property
    def distances(self) -> dict[str, Measure]:
        """ICI, E50, E90 and Emax by name."""
        return {name: getattr(self, name) for name in CURVE_DISTANCES}

    def _data(self) -> dict[str, Measure]:
        return self.measures

    def to_frame(self):
        """Return a pandas DataFrame, a row for each measure."""
        return self._numbers().frame().set_index("measure").rename_axis(None)

    def summary(self, format: str = "text") -> str:
        """The measures in the form that a manuscript needs.

        Parameters
        ----------
        format : {"text", "paragraph", "csv", "latex"}, default="text"
            A table in four digits, the sentences of a results section in two or three decimals, the
            numbers in full, or a ``tabular`` for the package booktabs.

        Returns
        -------
        summary : str
        """
        views = {
            "text": self.__str__,
            "paragraph": self._as_paragraph,
            "csv": self._numbers().csv,
            "latex": self._manuscript_table().latex,
        }
        if format not in views:
            raise ValueError(f"format={format!r} is unknown. Use one of {', '.join(views)}.")
        return views[format]()

    def _as_paragraph(self) -> str:
        fine = {"ici", "e50", "e90", "emax", "brier_score"}
        words = {
            name: measure._in_words(3 if name in fine else 2)
            for name, measure in self.measures.items()
        }
        words["prevalence"] = f"{100 * self.prevalence.estimate:.1f}"
        said = _PARAGRAPH.format(
            **words,
            n=self.n_samples,
            events=self.n_events,
            expected=self.n_samples * self.mean_prediction.estimate,
            method=self.method,
            level=percent(self.confidence_level),
        )
        return said + " ".join(self._notes())

    def _notes(self) -> list[str]:
        """Notes for the reader: that events are few, that distances are noisy."""
        notes = []
        if self.slope_note.startswith("undefined"):
            notes = [f"The calibration slope of all is {self.slope_note}."]
            if math.isfinite(self.slope.estimate):
                notes = [f"{notes[0]} That of others is shown."]
        if math.isnan(self.c_statistic.estimate):
            return [
                *notes,
                f"{self.n_events:,} events in {self.n_samples:,} samples are too few for a slope, "
                "a C-statistic, and intervals of the curve and the Brier score: at least "
                f"{FEWEST_EVENTS} events and as many samples without one are needed, and those of "
                "dependent samples count less. Collect more samples.",
            ]
        few, what = min(
            (self.n_events, "events"), (self.n_samples - self.n_events, "samples without an event")
        )
        if few >= _FEW_EITHER:
            return [*notes, _NOTE]
        return [
            *notes,
            f"{few:,} {what} are fewer than the {_FEW_EITHER} of a rule of thumb for validations. "
            "The intervals say how much these samples show.",
            _NOTE,
        ]

    def _numbers(self) -> Table:
        """The measures by the names of their fields; None for what is not known."""
        rows = [
            (name, *(None if math.isnan(value) else value for value in measure))
            for name, measure in self.measures.items()
        ]
        return Table(("measure", *Measure._fields), rows)

    def _manuscript_table(self) -> Table:
        """The measures in three decimals."""
        rows = [(self.titles[name], *_as_cells(measure)) for name, measure in self.measures.items()]
        columns = ("measure", "estimate", f"{percent(self.confidence_level)} interval")
        return Table(columns, rows, "lrr", self._title(), self._notes())

    def _table(self) -> Table:
        """The measures in four digits."""
        unknown = Measure(math.nan, math.nan, math.nan)
        rows = [
            (self.titles[name], *(measure if math.isfinite(measure.estimate) else unknown))
            for name, measure in self.measures.items()
        ]
        return Table(("measure", *Measure._fields), rows, "lrrr", self._title(), self._notes())

    def _title(self) -> str:
        what = f"Validation of {self.n_samples:,} predictions, {self.n_events:,} events"
        return f"{what}; {percent(self.confidence_level)} intervals; curve by {self.method}"

    def __str__(self):
        return self._table().text()

    def _repr_html_(self):
        return html_result(self._title(), replace(self._table(), title=""))


def _as_cells(measure: Measure) -> tuple[str, str]:
    if not math.isfinite(measure.estimate):
        return "–", ""
    if math.isnan(measure.low):
        return f"{measure.estimate:.3f}", ""
    return f"{measure.estimate:.3f}", f"{measure.low:.3f} to {measure.high:.3f}"


@validate_params(
    {
        "method": [StrOptions(set(CURVES))],
        **CONFIDENCE_LEVEL,
        "n_resamples": [Interval(Integral, 19, None, closed="left"), None],
        "random_state": ["random_state"],
    }
)
def validation_measures(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    method: str = "splines",
    confidence_level: float = 0.95,
    n_resamples: int | None = 199,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
    random_state: int | np.random.RandomState | None = 0,
) -> ValidationMeasures:
    """Calibration in the large, slope, ICI, C-statistic and scaled Brier score with intervals.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), or Sample
        Labels; both outcomes must occur.
    y_proba : array-like of shape (n_samples,) or (n_samples, 2), default=None
        P(positive class), or the probabilities of both classes.
        Left out beside a :class:`skcal.Sample`.
    method : {"splines", "loess", "isotonic"}, default="splines"
        The smoother of the calibration curve, as in :func:`flexible_calibration_curve`.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of the limits.
    n_resamples : int ≥ 19 or None, default=199
        Bootstrap resamples for ICI, E50, E90 and Emax, and as many redrawn outcomes. None: these
        four, which take most of the time, have no intervals (NaN).
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; only their ratios matter: the measures are those of a population in
        which a sample stands for as many as its weight says. A weight of 2 is no repeated row,
        which would make intervals shorter.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. See
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.
    random_state : int, RandomState instance or None, default=0
        The seed of the draws.

    Returns
    -------
    result : ValidationMeasures
        Each measure as ``(estimate, low, high)``, such as ``slope`` and ``c_statistic``. It has
        ``sentence()`` and ``to_frame()``.

    Raises
    ------
    ValueError
        If the input is not valid, only one outcome occurs, or a threshold separates the outcomes.

    See Also
    --------
    cox_recalibration, integrated_calibration_index, flexible_calibration_curve

    Notes
    -----
    If ``groups`` are given, standard errors of means come from the sums over groups. Proportions
    have Korn and Graubard's limits, slope and intercept those of :func:`cox_recalibration`. The
    bootstrap resamples groups. The interval of a distance then excludes 0 only if the distance also
    exceeds that of the resampled curves from the curve. That of ICI did so in 6 % of 80 calibrated
    sets of 60 groups of 20 samples; with redrawn outcomes only, in 19 %. Samples whose weights
    differ are groups of one.

    More than 1,000 distinct predictions are grouped for the curve into 1,000 of equal mass. Curves
    are fitted to 2 ``n_resamples`` further sets of samples. This takes about a second for splines
    of 10,000 predictions, and minutes for "loess". Use fewer resamples for a first look with
    "loess".

    Intercepts, slope, their profile intervals, Brier score and the C-statistic are those of R
    (``glm``, ``rms::val.prob``, ``pROC``, pmcalibration). Three things differ. The "Intercept" of
    val.prob is fitted beside the slope (``cox_recalibration(…).intercept``). Its C-statistic counts
    grouped predictions. Its Eavg, E90 and Emax use lowess, straight lines over two thirds of the
    samples. On the example data of CalibrationCurves lowess gives 0.043, 0.073 and 0.077, splines
    0.049, 0.089 and 0.094, and loess 0.048, 0.091 and 0.102. R interpolates E50 and E90 between
    samples.

    References
    ----------
    .. [1] Van Calster et al., Calibration: the Achilles heel of predictive analytics, BMC Medicine
       2019.
    .. [2] Austin & Steyerberg, The integrated calibration index (ICI) and related metrics for
       quantifying the calibration of logistic regression models, Statistics in Medicine 2019.
    .. [3] DeLong, DeLong & Clarke-Pearson, Comparing the areas under two or more correlated
       receiver operating characteristic curves, Biometrics 1988.
    .. [4] Collins, Ogundimu & Altman, Sample size considerations for the external validation of a
       multivariable prognostic model: a resampling study, Statistics in Medicine 2016: at least
       100 events and 100 non-events, below which summaries say so.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.metrics import validation_measures
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=1000)
    >>> y = rng.uniform(size=1000) < p**2  # predictions are too high
    >>> measures = validation_measures(y, p, n_resamples=49, random_state=0)
    >>> bool(measures.observed_expected_ratio.high < 1)
    True
    >>> round(measures.ici.estimate, 2), round(measures.c_statistic.estimate, 2)
    (0.15, 0.86)
    """
    sample = read_sample(
        y_true, y_proba, "binary", sample_weight, labels, pos_label, from_logits, groups=groups
    )
    return validation_of(sample, method, confidence_level, n_resamples, random_state)


def validation_of(
    sample: Sample,
    method: str,
    confidence_level: float,
    n_resamples,
    random_state,
    inner: Sample | None = None,
) -> ValidationMeasures:
    """The measures of predictions of one outcome; intercept and slope may be of ``inner`` ones."""
    if sample.groups.of_shares:
        remedy = "Pass a row for each vote, and groups= the sample of each row."
        refuse_groups(sample.groups, "validation_measures", remedy)
    cox = recalibration_of(inner or sample, confidence_level)
    data = _of_mean_weight_1(sample)
    x, outcome = data.prediction, data.happened
    about = outcome, data.weight, data.problem.groups, confidence_level
    few = LogisticLine(data, slope=1).events < FEWEST_EVENTS
    unknown = Measure(np.nan, np.nan, np.nan)
    rate, mean, ratio = _rate_and_ratio(data, confidence_level)
    return ValidationMeasures(
        prevalence=rate,
        mean_prediction=Measure(mean, np.nan, np.nan),
        observed_expected_ratio=ratio,
        intercept_in_the_large=Measure(
            cox.intercept_in_the_large, *cox.intercept_in_the_large_interval
        ),
        slope=Measure(cox.slope, *cox.slope_interval),
        **_distances(method, data, confidence_level, None if few else n_resamples, random_state),
        c_statistic=unknown if few else _c_statistic(x, *about),
        **_brier_measures(x, *about, few),
        method=method,
        confidence_level=confidence_level,
        n_samples=len(x),
        n_events=round(float(outcome.sum())),
        slope_note=cox.slope_note,
    )


def observed_expected_ratio(sample: Sample, confidence_level: float) -> Measure:
    """O/E with its limits, of any number of events: 0 and an upper limit of none."""
    return _rate_and_ratio(_of_mean_weight_1(sample), confidence_level)[2]


def _of_mean_weight_1(sample: Sample) -> Outcome:
    """The outcome of a sample, which is a group of its own where weights differ."""
    weight = sample.weight / sample.weight.mean()
    return outcome_of(sample._replace(weight=weight, groups=sample.groups.or_singles(weight)))


def _rate_and_ratio(data: Outcome, level: float) -> tuple[Measure, float, Measure]:
    """The share of events, the mean prediction, and their ratio."""
    outcome, weight = data.happened, data.weight
    limits = frequency_limits(data.problem, (1 - level) / 2)
    rate = Measure(float(np.average(outcome, weights=weight)), *limits)
    mean = float(np.average(data.prediction, weights=weight))
    return rate, mean, Measure(*(float(value / mean) if mean > 0 else np.inf for value in rate))


def _distances(method, data: Outcome, level, n_resamples, random_state) -> dict[str, Measure]:
    """ICI, E50, E90 and Emax."""
    curve = CurveDistances(method, data)
    ends: Any = [[np.nan] * len(CURVE_DISTANCES)] * 2
    if n_resamples is not None:
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        ends = curve.intervals(level, n_resamples, rng)
    rows = zip(CURVE_DISTANCES, curve.estimates, *ends, strict=True)
    return {name: Measure(*map(float, row)) for name, *row in rows}


def _c_statistic(x, outcome, weight, groups, level) -> Measure:
    scales = [weight / (weight @ (outcome == label)) for label in (0, 1)]
    shares = [scale * (outcome == label) for label, scale in enumerate(scales)]
    place = np.unique(x, return_inverse=True)[1]
    masses = [np.bincount(place, share) for share in shares]
    below = [(np.cumsum(mass) - mass / 2)[place] for mass in masses]
    # The share of the other outcome on the right side of each sample, were it of either outcome.
    either = 1 - below[1], below[0]
    parts = np.where(outcome == 1, either[1], either[0])
    area = float(shares[1] @ parts)
    if not 0 < area < 1:
        return Measure(area, np.nan, np.nan)
    centred = (parts - area) ** 2
    squares = [float(share @ share) for share in shares]
    variance = sum(
        float(share**2 @ centred) / (1 - square)
        for share, square in zip(shares, squares, strict=True)
        if square < 1
    )
    z = groups.quantile((1 - level) / 2, weight)
    terms = (shares[0] + shares[1]) * (parts - area)
    effects = [scale * (share - area) for scale, share in zip(scales, either, strict=True)]
    law = effects[1] - effects[0], np.clip(x, 0, 1)
    variance = groups.larger_variance(variance, terms, law)
    half = z * np.sqrt(variance) / (area * (1 - area))
    low, high = expit(logit(area) - half), expit(logit(area) + half)
    return Measure(area, float(low), float(high))


def _brier_measures(x, outcome, weight, groups, level, few) -> dict[str, Measure]:
    losses = of_outcomes(brier_losses(x[:, None]), outcome.astype(np.intp))
    share = weight / weight.sum()
    rate, score = share @ outcome, share @ losses
    variance = rate * (1 - rate)
    influence = -losses / variance + score * (1 - 2 * rate) * outcome / variance**2
    z = np.nan if few else groups.quantile((1 - level) / 2, weight)
    of_event = 1 - 2 * x  # by how much an event changes the loss
    effects = of_event, -of_event / variance + score * (1 - 2 * rate) / variance**2
    half, wide = (
        z * _error_of_mean(terms, share, groups, x, effect)
        for terms, effect in zip((losses, influence), effects, strict=True)
    )
    scaled = 1 - score / variance
    return {
        "brier_score": Measure(
            float(score), max(float(score - half), 0.0), min(float(score + half), 1.0)
        ),
        "scaled_brier_score": Measure(
            float(scaled), float(scaled - wide), min(float(scaled + wide), 1.0)
        ),
    }


def _error_of_mean(terms, share, groups, chance, effect) -> float:
    """The standard error of a weighted mean.

    Of groups it is never below that of independent samples, and than that of outcomes of these
    chances with the estimated dependence, which change the terms by their effect.
    """
    terms = share * (terms - share @ terms)
    law = share * effect, chance
    return float(np.sqrt(groups.larger_variance(float(terms @ terms), terms, law)))
