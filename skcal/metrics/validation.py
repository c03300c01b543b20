"""What medicine reports of a model for one outcome: numbers with intervals, a table, words."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, ndtri
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from skcal._scores import brier_losses, of_outcomes
from skcal._show import Table, html_result, percent
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal.metrics.base import read_outcome
from skcal.metrics.cox import recalibration_of
from skcal.metrics.limits import clopper_pearson
from skcal.metrics.smoothers import CURVES, Points, make_points, point_gaps

_OUTSIDE = "outside its interval, which leaves out what noise adds to the distances"
_PARAGRAPH = (
    "The validation sample held {n:,} predictions and {events:,} events ({prevalence} %); the "
    "model expected {expected:.1f}, O/E ratio {observed_expected_ratio}. Calibration in the large "
    "was {intercept_in_the_large} and the calibration slope {slope}. The smooth calibration curve "
    "(by {method}) was off by {ici} on average (ICI), with an E50 of {e50} and an E90 of {e90}. "
    "The C-statistic was {c_statistic}, the Brier score {brier_score} and the scaled Brier score "
    "{scaled_brier_score}. Ranges in parentheses are {level} confidence intervals."
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
        from the prediction, with basic bootstrap intervals, not below 0. Biased upwards, so that an
        interval, from which the bias is taken, may lie below its estimate.
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
        return Table(columns, rows, "lrr", self._title())

    def _table(self) -> Table:
        """The measures in four digits."""
        rows = [(MEASURE_NAMES[name], *measure) for name, measure in self.measures.items()]
        outside = [
            MEASURE_NAMES[name] for name, one in self.measures.items() if one.estimate > one.high
        ]
        notes = [f"{', '.join(outside)}: {_OUTSIDE}"] if outside else []
        return Table(("measure", *Measure._fields), rows, "lrrr", self._title(), notes)

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
        Bootstrap resamples for ICI, E50, E90 and Emax.
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
        labels=labels,
        pos_label=pos_label,
        from_logits=from_logits,
    )
    x, outcome = data.prediction, data.happened
    cox = recalibration_of(data, confidence_level)
    rate = _prevalence(outcome, confidence_level)
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
        **_distances(method, x, outcome, confidence_level, n_resamples, random_state),
        c_statistic=_c_statistic(x, outcome, confidence_level),
        **_brier_measures(x, outcome, confidence_level),
        method=method,
        confidence_level=confidence_level,
        n_samples=len(x),
        n_events=int(outcome.sum()),
    )


def _prevalence(outcome, level) -> Measure:
    n, hits = len(outcome), outcome.sum()
    return Measure(*map(float, (hits / n, *clopper_pearson(hits, n, (1 - level) / 2))))


def _distances(method, x, outcome, level, n_resamples, random_state) -> dict[str, Measure]:
    """ICI, E50, E90 and Emax with basic bootstrap intervals."""
    points = make_points(x, outcome, np.ones(len(x)))
    estimates = distances(method, points)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    cells = np.concatenate([points.hits, points.mass - points.hits]) / len(x)
    drawn: list[np.ndarray] = []
    while len(drawn) < n_resamples:
        hits, misses = rng.multinomial(len(x), cells).reshape(2, -1)
        if hits.any() and misses.any():
            mass = (hits + misses).astype(np.float64)
            kept = mass > 0
            resampled = points._replace(
                prediction=points.prediction[kept],
                mass=mass[kept],
                hits=hits[kept].astype(np.float64),
                squares=mass[kept],
            )
            drawn.append(distances(method, resampled))
    tail = (1 - level) / 2
    limits = 2 * estimates - np.quantile(drawn, [1 - tail, tail], axis=0)
    names = ("ici", *_QUANTILES)
    return {
        name: Measure(*map(float, row))
        for name, row in zip(
            names, np.column_stack([estimates, np.clip(limits, 0, 1).T]), strict=True
        )
    }


def distances(method: str, points: Points) -> np.ndarray:
    """Mean, median, 90 % quantile and maximum of |curve - prediction|."""
    gap, mass = point_gaps(method, points), points.mass
    quantiles = np.quantile(gap, list(_QUANTILES.values()), method="inverted_cdf", weights=mass)
    return np.append(mass @ gap / mass.sum(), quantiles)


def _c_statistic(x, outcome, level) -> Measure:
    positive, negative = x[outcome == 1], x[outcome == 0]
    m, n = len(positive), len(negative)
    ranks = rankdata(np.concatenate([positive, negative]))
    above = (ranks[:m] - rankdata(positive)) / n  # negatives below each positive
    below = 1 - (ranks[m:] - rankdata(negative)) / m
    area = float(above.mean())
    variance = sum(one.var(ddof=1) / len(one) for one in (above, below) if len(one) > 1)
    if not 0 < area < 1:
        return Measure(area, np.nan, np.nan)
    half = -ndtri((1 - level) / 2) * np.sqrt(variance) / (area * (1 - area))
    low, high = expit(logit(area) - half), expit(logit(area) + half)
    return Measure(area, float(low), float(high))


def _brier_measures(x, outcome, level) -> dict[str, Measure]:
    losses = of_outcomes(brier_losses(x[:, None]), outcome.astype(np.intp))
    rate, n = outcome.mean(), len(x)
    score, variance = losses.mean(), rate * (1 - rate)
    influence = -losses / variance + score * (1 - 2 * rate) * outcome / variance**2
    z = -ndtri((1 - level) / 2) / np.sqrt(n)
    half, scaled = z * losses.std(), 1 - score / variance
    wide = z * influence.std()
    return {
        "brier_score": Measure(float(score), float(score - half), float(score + half)),
        "scaled_brier_score": Measure(float(scaled), float(scaled - wide), float(scaled + wide)),
    }
