"""Net benefit of decisions at thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from skcal._show import html_list, html_result, html_rows, import_pandas, percent
from skcal._sklearn_compat import Interval, validate_params
from skcal.metrics.exceedances import limits_of, mean_of, share_above, simultaneous_z
from skcal.metrics.one_outcome import read_increasing, read_outcome
from skcal.notions import Notion

_THRESHOLDS = np.arange(100) / 100


@dataclass(frozen=True, eq=False)
class DecisionCurve:
    """Net benefit of treating by predictions, by threshold, with its uncertainty.

    Attributes
    ----------
    thresholds : ndarray of shape (n_thresholds,)
    net_benefit : ndarray of shape (n_thresholds,)
        The net benefit of treating where the prediction is at least the threshold.
    low, high : ndarray of shape (n_thresholds,)
        Pointwise limits: at each threshold they hold the net benefit with probability
        confidence_level.
    band_low, band_high : ndarray of shape (n_thresholds,)
        Simultaneous limits: at all thresholds at once.
    treat_all : ndarray of shape (n_thresholds,)
        The net benefit of treating everybody; that of treating nobody is 0.
    confidence_level : float
    notion : Notion
    n_samples : int
    """

    thresholds: np.ndarray = field(repr=False)
    net_benefit: np.ndarray = field(repr=False)
    low: np.ndarray = field(repr=False)
    high: np.ndarray = field(repr=False)
    band_low: np.ndarray = field(repr=False)
    band_high: np.ndarray = field(repr=False)
    treat_all: np.ndarray = field(repr=False)
    confidence_level: float
    notion: Notion
    n_samples: int

    def to_frame(self):
        """Return a pandas DataFrame, a row for each threshold."""
        pd = import_pandas()
        return pd.DataFrame(self._columns())

    def _columns(self):
        names = ("net_benefit", "low", "high", "band_low", "band_high", "treat_all")
        return {"threshold": self.thresholds} | {name: getattr(self, name) for name in names}

    def _repr_html_(self):
        title = f"Decision curve, {self.notion}, {self.n_samples:,} samples"
        level = percent(self.confidence_level)
        said = (
            f"low, high hold the net benefit at a threshold with {level}, the band at all at once; "
            "treating nobody has net benefit 0"
        )
        return html_result(title, html_rows(self._columns()), html_list([said]))


@validate_params(
    {"threshold": [Interval(Real, 0, 1, closed="left")]},
    prefer_skip_nested_validation=True,
)
def net_benefit(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    threshold: float = 0.5,
    notion: str = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Net benefit of treating where the prediction is at least a threshold.

    P(treated, positive) - P(treated, negative) t / (1 - t): the threshold t says how many
    negatives may be treated for the sake of one positive.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    threshold : float in [0, 1), default=0.5
        t; predictions equal to it are treated.
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence", whether the predicted class is
        right, for more.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits, of which no digit is lost.

    Returns
    -------
    benefit : float ≤ prevalence
        In positives per sample: 0.02 is worth 2 true positives in 100 samples, with no false ones.

    See Also
    --------
    decision_curve : all thresholds, with limits.

    Notes
    -----
    As a scorer: ``make_scorer(net_benefit, response_method="predict_proba", threshold=0.1)``.

    References
    ----------
    .. [1] Vickers & Elkin, Decision curve analysis: a novel method for evaluating prediction
       models, Medical Decision Making 2006.

    Examples
    --------
    >>> from skcal.metrics import net_benefit
    >>> round(net_benefit([1, 0, 0, 1, 0], [0.9, 0.3, 0.1, 0.2, 0.0], threshold=0.2), 2)
    0.35
    """
    found = read_outcome(y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits)
    shares, values = treated(found, np.array([threshold]))
    return float(mean_of(shares, values)[0])


@validate_params(
    {"confidence_level": [Interval(Real, 0, 1, closed="neither")]},
    prefer_skip_nested_validation=True,
)
def decision_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    thresholds: ArrayLike | None = None,
    notion: str = "auto",
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> DecisionCurve:
    """Net benefit by threshold, with pointwise and simultaneous limits.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    thresholds : array-like of shape (n_thresholds,), default=None
        Thresholds in [0, 1), in increasing order; None: 0, 0.01, …, 0.99. Predictions equal to a
        threshold are treated.
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence", whether the predicted class is
        right, for more.
    confidence_level : float in (0, 1), default=0.95
    sample_weight : array-like of shape (n_samples,), default=None
        Importance weights.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits, of which no digit is lost.

    Returns
    -------
    curve : DecisionCurve

    Raises
    ------
    ValueError
        If the input is not valid.

    See Also
    --------
    net_benefit : at one threshold.
    skcal.displays.DecisionCurveDisplay : draws it.

    Notes
    -----
    Limits are normal ones of a mean of bounded terms, after two samples are added [2]_, without
    which they fail where few are treated; the simultaneous ones by a normal process that has the
    empirical covariance. Of 1,000 data sets of each of uniform predictions, calibrated and too
    high, and events of 5 % and 1 %, at n = 200 and 1,000, the 95 % limits held in 93 % to 100 % at
    each default threshold, and the band at all of them in 95 % to 100 %; with weights that undo
    case-control sampling in 96 % or more, and in 99 %. Net benefit and treat_all rest on the same
    samples: where they are close, their difference is more certain than either.

    O(n log n).

    References
    ----------
    .. [1] Vickers & Elkin, Decision curve analysis: a novel method for evaluating prediction
       models, Medical Decision Making 2006.
    .. [2] Agresti & Min, Simple improved confidence intervals for comparing matched proportions,
       Statistics in Medicine 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.metrics import decision_curve
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000) ** 2
    >>> y = rng.uniform(size=2000) < p
    >>> curve = decision_curve(y, p, thresholds=[0.1, 0.3, 0.5])
    >>> curve.net_benefit.round(2), curve.treat_all.round(2)
    (array([0.28, 0.2 , 0.15]), array([ 0.26,  0.04, -0.34]))
    """
    found = read_outcome(y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits)
    grid = _THRESHOLDS if thresholds is None else read_increasing(thresholds, "thresholds", True)
    shares, values = treated(found, grid)
    total = float(np.sum((found.weight / found.weight.sum()) ** 2))
    pointwise = float(-ndtri((1 - confidence_level) / 2))
    together = simultaneous_z(shares, values, total, confidence_level, pointwise)
    low, high = limits_of(shares, values, total, pointwise)
    band_low, band_high = limits_of(shares, values, total, together)
    rate = float(found.weight @ found.happened / found.weight.sum())
    return DecisionCurve(
        thresholds=grid.copy(),
        net_benefit=mean_of(shares, values),
        low=low,
        high=high,
        band_low=band_low,
        band_high=band_high,
        treat_all=rate + (1 - rate) * values[1],
        confidence_level=confidence_level,
        notion=found.notion,
        n_samples=len(found.weight),
    )


def treated(found, thresholds):
    """Positives and negatives who are treated, and what each of them is worth."""
    weight = found.weight / found.weight.sum()
    shares = [
        share_above(found.prediction, weight * happened, thresholds)
        for happened in (found.happened, 1 - found.happened)
    ]
    return shares, [np.ones(len(thresholds)), -thresholds / (1 - thresholds)]
