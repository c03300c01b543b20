"""Calibration curves as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skcal._show import html_list, html_result, html_rows, import_pandas, percent
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal.metrics.one_outcome import check_both, read_increasing, read_outcome
from skcal.metrics.smoothers import CURVES, isotonic_curve, isotonic_limits, make_points
from skcal.notions import Notion

_GRID = 101
_TAIL, _FEW = 10, 100  # R's rms draws curves between the 10th predictions from both ends


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """A calibration curve, the frequency of the outcome by prediction, with its uncertainty.

    Attributes
    ----------
    prediction : ndarray of shape (n_points,)
        Where the curve is evaluated.
    frequency : ndarray of shape (n_points,)
        The curve.
    low, high : ndarray of shape (n_points,)
        Pointwise limits: at each point they hold the curve with probability confidence_level.
    band_low, band_high : ndarray of shape (n_points,)
        Simultaneous limits: at all points at once.
    method : {"splines", "loess", "isotonic"}
    confidence_level : float
    notion : Notion
    n_samples : int
    """

    prediction: np.ndarray = field(repr=False)
    frequency: np.ndarray = field(repr=False)
    low: np.ndarray = field(repr=False)
    high: np.ndarray = field(repr=False)
    band_low: np.ndarray = field(repr=False)
    band_high: np.ndarray = field(repr=False)
    method: str
    confidence_level: float
    notion: Notion
    n_samples: int

    def to_frame(self):
        """Return a pandas DataFrame, a row for each point."""
        pd = import_pandas()
        return pd.DataFrame(self._columns())

    def _columns(self):
        names = ("prediction", "frequency", "low", "high", "band_low", "band_high")
        return {name: getattr(self, name) for name in names}

    def _repr_html_(self):
        title = f"Calibration curve by {self.method}, {self.notion}, {self.n_samples:,} samples"
        level = percent(self.confidence_level)
        said = f"low, high hold the curve at a point with {level}, the band at all points at once"
        return html_result(title, html_rows(self._columns()), html_list([said]))


@validate_params(
    {
        "method": [StrOptions(set(CURVES))],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    },
    prefer_skip_nested_validation=True,
)
def calibration_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    method: str = "splines",
    at: ArrayLike | None = None,
    notion: str = "auto",
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> CalibrationCurve:
    """Smooth calibration curve with pointwise and simultaneous limits of the curve itself.

    The bands of a reliability diagram say where calibrated predictions would lie; these say where
    the curve may lie.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels; both outcomes must occur.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    method : {"splines", "loess", "isotonic"}, default="splines"
        "splines": logistic regression on cubic splines of logit(p) with 5 knots at quantiles.
        "loess": local quadratic regression of the outcomes on p with span 0.75, the default of R's
        ``loess``. "isotonic": isotonic regression; its limits are exact for any curve that does not
        fall, and wide.
    at : array-like of shape (n_points,), default=None
        Probabilities at which the curve is wanted, in increasing order. None: 101 between the 10th
        predictions from both ends, of fewer than 100 samples the smallest and the largest.
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    confidence_level : float in (0, 1), default=0.95
    sample_weight : array-like of shape (n_samples,), default=None
        Importance weights; not for the limits of "isotonic", which need equal ones.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits, of which no digit is lost.

    Returns
    -------
    curve : CalibrationCurve

    Raises
    ------
    ValueError
        If the input is not valid, only one outcome occurs, or weights differ for "isotonic".

    See Also
    --------
    integrated_calibration_index : the mean distance of a curve from the diagonal.
    skcal.displays.CalibrationCurveDisplay : draws it.

    Notes
    -----
    Limits of splines and loess are normal ones around the expectation of the smoother: where the
    true curve bends more than the smoother can follow, they miss it, and the more surely the more
    samples there are. Then use "isotonic", whose limits were never short. In per cent of 300 data
    sets, how often the 95 % limits held at a point, on average over the points, and the 95 % band
    held the whole curve:

    ======================  =====  =======  =======  ========
    curve                       n  splines  loess    isotonic
    ======================  =====  =======  =======  ========
    uniform, calibrated       200  95, 95   94, 91   100, 100
    uniform, calibrated     1,000  94, 92   94, 94   100, 100
    slope 1.4                 200  96, 95   96, 94   100, 100
    slope 1.4               1,000  95, 90   95, 93   100, 100
    logit shifted by 0.7      200  94, 96   94, 86   100, 100
    logit shifted by 0.7    1,000  94, 92   94, 93   100, 100
    5 % events, calibrated    200  96, 87   90, 75   100, 100
    5 % events, calibrated  1,000  95, 93   93, 86   100, 100
    wave p + 0.15 sin 3πp     200  92, 17   88, 79   99, 100
    wave p + 0.15 sin 3πp   1,000  88, 0    70, 4    97, 100
    five steps                200  87, 46   82, 26   98, 100
    five steps              1,000  63, 0    53, 0    98, 100
    ======================  =====  =======  =======  ========

    More than 1,000 distinct predictions are grouped into 1,000 of equal mass (100 for isotonic
    limits). Loess is R's with ``surface="direct"``; R's default interpolates between vertices,
    which changes the third digit. The splines have the knots of R's ``rcs(logit(p), 5)``, but may
    bend at the outer ones.

    References
    ----------
    .. [1] Van Calster et al., A calibration hierarchy for risk models was defined, J. Clinical
       Epidemiology 2016.
    .. [2] Dimitriadis, Dümbgen, Henzi, Puke & Ziegel, Honest calibration assessment for binary
       outcome predictions, Biometrika 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.metrics import calibration_curve
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < p**2
    >>> curve = calibration_curve(y, p, at=[0.3, 0.5, 0.7])
    >>> curve.frequency.round(1)
    array([0.1, 0.2, 0.5])
    >>> bool((curve.band_high < curve.prediction).all())  # predictions are too high
    True
    """
    found = read_outcome(y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits)
    x, outcome = found.prediction, found.happened
    check_both(outcome)
    grid = _grid(x) if at is None else read_increasing(at, "at")
    frequency, limits = _curve(method, x, outcome, found.weight, grid, confidence_level)
    return CalibrationCurve(
        prediction=grid,
        frequency=frequency,
        **dict(zip(("low", "high", "band_low", "band_high"), limits, strict=True)),
        method=method,
        confidence_level=confidence_level,
        notion=found.notion,
        n_samples=len(x),
    )


def _grid(x) -> np.ndarray:
    tails = _TAIL if len(x) >= _FEW else 1
    ends = np.partition(x, [tails - 1, len(x) - tails])[[tails - 1, len(x) - tails]]
    return np.clip(np.linspace(ends[0], ends[1], _GRID), 0, 1)


def _curve(method, x, outcome, weight, grid, level):
    """The frequency and the rows of its limits."""
    points = make_points(x, outcome, weight)
    if method != "isotonic":
        found = CURVES[method](points, grid, level)
        return found.frequency, found.limits
    if np.ptp(weight) > 1e-9 * weight.max():
        raise ValueError(
            "sample_weight differs among samples, but method='isotonic' counts outcomes for exact "
            "limits. Use method='splines' or 'loess'."
        )
    return isotonic_curve(points, grid).frequency, isotonic_limits(x, outcome, grid, level)
