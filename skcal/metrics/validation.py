"""What medicine reports of a model for one outcome: numbers with intervals, a table, words."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import expit, logit
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from skcal._groups import tail_quantile, variance_of_sums
from skcal._scores import brier_losses, of_outcomes
from skcal._show import Table, html_result, percent
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal._validation import is_significant
from skcal.metrics.base import read_outcome
from skcal.metrics.cox import recalibration_of
from skcal.metrics.limits import clopper_pearson, proportion_limits
from skcal.metrics.smoothers import CURVES, Points, make_points, point_gaps
from skcal.sample import refuse_groups

_NOTE = (
    "ICI, E50, E90 and Emax are above 0 by noise alone; their lower limits are 0 where calibrated "
    "predictions could show as much."
)
_PARAGRAPH = (
    "The validation sample held {n:,} predictions and {events:,} events ({prevalence} %); the "
    "model expected {expected:.1f}, O/E ratio {observed_expected_ratio}. Calibration in the large "
    "was {intercept_in_the_large} and the calibration slope {slope}. The smooth calibration curve "
    "(by {method}) was off by {ici} on average (ICI), with an E50 of {e50} and an E90 of {e90}. "
    "The C-statistic was {c_statistic}, the Brier score {brier_score} and the scaled Brier score "
    "{scaled_brier_score}. Ranges in parentheses are {level} confidence intervals. " + _NOTE
)
MEASURE_NAMES = {
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


class Measure(NamedTuple):
    """A number with the ends of its interval."""

    estimate: float
    low: float
    high: float

    def _in_words(self, decimals: int = 2) -> str:
        """``0.66 (0.55 to 0.77)``."""
        estimate, low, high = (f"{value:.{decimals}f}" for value in self)
        return estimate if self.low != self.low else f"{estimate} ({low} to {high})"


@dataclass(frozen=True)
class ValidationMeasures:
    """Calibration, discrimination and overall performance of predictions of one outcome.

    Every measure is (estimate, low, high).

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
        Mean, median, 90 % quantile and maximum of the distance of the smooth calibration curve
        from the prediction. Biased upwards. Of the bootstrap, the lower end of the interval is
        that of the basic one, 0 unless at most a share of 1 - ``confidence_level`` of the outcomes
        that are redrawn from the predictions show as large a distance; the upper end is as far
        from the estimate as the upper end of the resamples from their median.
    c_statistic : Measure
        Area under the ROC curve, with DeLong's interval on the logit scale.
    brier_score : Measure
        Mean (y - p)², with its normal interval.
    scaled_brier_score : Measure
        1 - Brier score / (prevalence (1 - prevalence)), the index of prediction accuracy.
    method : str
        What smoothed the curve.
    confidence_level : float
    n_samples, n_events : int
        The predictions, and those of them with the positive outcome.
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

    @property
    def measures(self) -> dict[str, Measure]:
        """The measures by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Measure)}

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
        return _PARAGRAPH.format(
            **words,
            n=self.n_samples,
            events=self.n_events,
            expected=self.n_samples * self.mean_prediction.estimate,
            method=self.method,
            level=percent(self.confidence_level),
        )

    def _numbers(self) -> Table:
        """The measures by the names of their fields; None for what is not known."""
        rows = [
            (name, *(None if math.isnan(value) else value for value in measure))
            for name, measure in self.measures.items()
        ]
        return Table(("measure", *Measure._fields), rows)

    def _manuscript_table(self) -> Table:
        """The measures in three decimals."""
        rows = [(MEASURE_NAMES[name], *_cells(one)) for name, one in self.measures.items()]
        columns = ("measure", "estimate", f"{percent(self.confidence_level)} interval")
        return Table(columns, rows, "lrr", self._title(), [_NOTE])

    def _table(self) -> Table:
        """The measures in four digits."""
        rows = [(MEASURE_NAMES[name], *measure) for name, measure in self.measures.items()]
        return Table(("measure", *Measure._fields), rows, "lrrr", self._title(), [_NOTE])

    def _title(self) -> str:
        what = f"Validation of {self.n_samples:,} predictions, {self.n_events:,} events"
        return f"{what}; {percent(self.confidence_level)} intervals; curve by {self.method}"

    def __str__(self):
        return self._table().text()

    def _repr_html_(self):
        return html_result(self._title(), replace(self._table(), title=""))


def _cells(measure: Measure) -> tuple[str, str]:
    if measure.low != measure.low:
        return f"{measure.estimate:.3f}", ""
    return f"{measure.estimate:.3f}", f"{measure.low:.3f} to {measure.high:.3f}"


_QUANTILES = {"e50": 0.5, "e90": 0.9, "emax": 1.0}
DISTANCES = ("ici", *_QUANTILES)


@validate_params(
    {
        "method": [StrOptions(set(CURVES))],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "n_resamples": [Interval(Integral, 19, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def validation_measures(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    method: str = "splines",
    confidence_level: float = 0.95,
    n_resamples: int = 199,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
    random_state: Any = None,
) -> ValidationMeasures:
    """Calibration in the large, slope, ICI, C-statistic and scaled Brier score with intervals.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels; both outcomes must occur.
    y_proba : array-like of shape (n_samples,) or (n_samples, 2)
        P(positive class), or the probabilities of both classes.
    method : {"splines", "loess", "isotonic"}, default="splines"
        The smoother of the calibration curve, as in :func:`flexible_calibration_curve`.
    confidence_level : float in (0, 1), default=0.95
    n_resamples : int ≥ 19, default=199
        Bootstrap resamples for ICI, E50, E90 and Emax, and as many redrawn outcomes.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. See
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits, of which no digit is lost.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    result : ValidationMeasures

    Raises
    ------
    ValueError
        If the input is not valid, only one outcome occurs, or a threshold separates the outcomes.

    See Also
    --------
    cox_recalibration, integrated_calibration_index, flexible_calibration_curve

    Notes
    -----
    With ``groups`` means have standard errors by the sums over groups, proportions Korn and
    Graubard's limits, and the bootstrap resamples groups.

    More than 1,000 distinct predictions are grouped for the curve into 1,000 of equal mass.

    Intercepts, slope, their profile intervals, Brier score and the C-statistic are those of R
    (``glm``, ``rms::val.prob``, ``pROC``, pmcalibration). What differs: the "Intercept" of val.prob
    stands beside the slope (``cox_recalibration(…).intercept``); its C-statistic counts grouped
    predictions; its Eavg, E90 and Emax are of lowess, straight lines over two thirds of the samples
    (0.043, 0.073 and 0.077 of the example data of CalibrationCurves, where splines give 0.049,
    0.089 and 0.094, and loess 0.048, 0.091 and 0.102). R interpolates E50 and E90 between samples.

    References
    ----------
    .. [1] Van Calster et al., Calibration: the Achilles heel of predictive analytics, BMC Medicine
       2019.
    .. [2] Austin & Steyerberg, The integrated calibration index (ICI) and related metrics for
       quantifying the calibration of logistic regression models, Statistics in Medicine 2019.
    .. [3] DeLong, DeLong & Clarke-Pearson, Comparing the areas under two or more correlated
       receiver operating characteristic curves, Biometrics 1988.

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
    data = read_outcome(
        y_true,
        y_proba,
        notion="binary",
        groups=groups,
        labels=labels,
        pos_label=pos_label,
        from_logits=from_logits,
    )
    if data.problem.of_shares:
        remedy = "Pass a row for each vote, and groups= the sample of each row."
        refuse_groups(data.problem.groups, "validation_measures", remedy)
    x, outcome, together = data.prediction, data.happened, data.problem.groups
    cox = recalibration_of(data, confidence_level)
    rate = _prevalence(outcome, together, confidence_level)
    mean = float(x.mean())
    ratio = Measure(*(float(value / mean) if mean > 0 else np.inf for value in rate))
    return ValidationMeasures(
        prevalence=rate,
        mean_prediction=Measure(mean, np.nan, np.nan),
        observed_expected_ratio=ratio,
        intercept_in_the_large=Measure(
            cox.intercept_in_the_large, *cox.intercept_in_the_large_interval
        ),
        slope=Measure(cox.slope, *cox.slope_interval),
        **_distances(method, x, outcome, together, confidence_level, n_resamples, random_state),
        c_statistic=_c_statistic(x, outcome, together, confidence_level),
        **_brier_measures(x, outcome, together, confidence_level),
        method=method,
        confidence_level=confidence_level,
        n_samples=len(x),
        n_events=int(outcome.sum()),
    )


def _prevalence(outcome, groups, level) -> Measure:
    n, hits = len(outcome), outcome.sum()
    if groups is not None:
        limits = proportion_limits(outcome, np.ones(n), groups, (1 - level) / 2)
        return Measure(float(hits / n), *limits)
    return Measure(*map(float, (hits / n, *clopper_pearson(hits, n, (1 - level) / 2))))


def _distances(method, x, outcome, groups, level, n_resamples, random_state):
    """ICI, E50, E90 and Emax, with intervals that hold them and begin at 0 unless shown."""
    points = make_points(x, outcome, np.ones(len(x)))
    estimates = distances(method, points)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    draw = _resampled_points(points, outcome, groups)
    drawn: list[np.ndarray] = []
    while len(drawn) < n_resamples:
        found = _drawn_distances(method, points, *draw(rng))
        if np.isfinite(found[0]):
            drawn.append(found)
    tail = (1 - level) / 2
    # Noise adds to the distances, once more in the resamples. The lower end leaves that out twice;
    # the upper end counts the spread alone, since that of the truth may be any part of it.
    middle, largest = np.quantile(drawn, [0.5, 1 - tail], axis=0)
    low, high = 2 * estimates - largest, estimates + largest - middle
    size, rate = points.mass.astype(np.int64), np.clip(points.prediction, 0, 1)
    null = []
    for hits in rng.binomial(size, rate, size=(n_resamples, len(size))):
        null.append(_drawn_distances(method, points, hits, size - hits))
    pvalues = (1 + (np.array(null) >= estimates).sum(axis=0)) / (1 + n_resamples)
    low = np.where(is_significant(pvalues, level), np.clip(low, 0, estimates), 0.0)
    high = np.minimum(high, 1)
    rows = np.column_stack([estimates, low, high])
    return {name: Measure(*map(float, row)) for name, row in zip(DISTANCES, rows, strict=True)}


def _drawn_distances(method, points, hits, misses) -> np.ndarray:
    """Distances under drawn outcomes of the points; infinite where one outcome does not occur."""
    if not (hits.any() and misses.any()):
        return np.full(len(DISTANCES), np.inf)
    mass = (hits + misses).astype(np.float64)
    kept = mass > 0
    resampled = points._replace(
        prediction=points.prediction[kept],
        mass=mass[kept],
        hits=hits[kept].astype(np.float64),
        squares=mass[kept],
    )
    return distances(method, resampled)


def _resampled_points(points: Points, outcome, groups):
    """Return a function that draws the numbers of hits and of misses at each point."""
    n, size = len(outcome), len(points.mass)
    if groups is None:
        cells = np.concatenate([points.hits, points.mass - points.hits]) / n
        return lambda rng: rng.multinomial(n, cells).reshape(2, -1)
    place = points.group + size * (1 - outcome.astype(np.intp)), groups.codes
    cells = csr_array((np.ones(n), place), shape=(2 * size, groups.n_groups))
    shares = np.full(groups.n_groups, 1 / groups.n_groups)
    return lambda rng: (cells @ rng.multinomial(groups.n_groups, shares)).reshape(2, -1)


def distances(method: str, points: Points) -> np.ndarray:
    """Mean, median, 90 % quantile and maximum of |curve - prediction|."""
    gap, mass = point_gaps(method, points), points.mass
    quantiles = np.quantile(gap, list(_QUANTILES.values()), method="inverted_cdf", weights=mass)
    return np.append(mass @ gap / mass.sum(), quantiles)


def _c_statistic(x, outcome, groups, level) -> Measure:
    positive, negative = x[outcome == 1], x[outcome == 0]
    m, n = len(positive), len(negative)
    ranks = rankdata(np.concatenate([positive, negative]))
    above = (ranks[:m] - rankdata(positive)) / n  # negatives below each positive
    below = 1 - (ranks[m:] - rankdata(negative)) / m
    area = float(above.mean())
    variance = sum(one.var(ddof=1) / len(one) for one in (above, below) if len(one) > 1)
    if not 0 < area < 1:
        return Measure(area, np.nan, np.nan)
    z = tail_quantile((1 - level) / 2, np.ones(len(x)), groups)
    if groups is not None:
        parts = np.empty(len(x))
        parts[outcome == 1], parts[outcome == 0] = (above - area) / m, (below - area) / n
        variance = max(variance, float(variance_of_sums(parts, groups)))
    half = z * np.sqrt(variance) / (area * (1 - area))
    low, high = expit(logit(area) - half), expit(logit(area) + half)
    return Measure(area, float(low), float(high))


def _brier_measures(x, outcome, groups, level) -> dict[str, Measure]:
    losses = of_outcomes(brier_losses(x[:, None]), outcome.astype(np.intp))
    rate, n = outcome.mean(), len(x)
    score, variance = losses.mean(), rate * (1 - rate)
    influence = -losses / variance + score * (1 - 2 * rate) * outcome / variance**2
    z = tail_quantile((1 - level) / 2, np.ones(n), groups)
    half, wide = (z * _error_of_mean(terms, groups) for terms in (losses, influence))
    scaled = 1 - score / variance
    return {
        "brier_score": Measure(float(score), float(score - half), float(score + half)),
        "scaled_brier_score": Measure(float(scaled), float(scaled - wide), float(scaled + wide)),
    }


def _error_of_mean(terms, groups) -> float:
    """The standard error of a mean, of groups never below that of independent samples."""
    error = terms.std() / np.sqrt(len(terms))
    if groups is None:
        return float(error)
    of_groups = variance_of_sums(terms - terms.mean(), groups)
    return float(max(error, np.sqrt(of_groups) / len(terms)))
