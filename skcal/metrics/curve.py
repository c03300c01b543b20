"""Smooth calibration curves with limits, their distances from the diagonal, and chance's part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn import config_context
from sklearn.base import BaseEstimator, clone

from skcal._groups import INDEPENDENT, Groups
from skcal._show import ShownColumns, percent
from skcal._sklearn_compat import HasMethods, Interval, StrOptions, validate_params
from skcal._validation import CONFIDENCE_LEVEL, is_significant
from skcal.metrics.base import (
    Outcome,
    bounded_logits,
    check_both,
    outcome_of,
    read_increasing,
)
from skcal.metrics.limits import FEWEST_EVENTS, warn_if_few_events
from skcal.metrics.smoothers import (
    CURVES,
    Points,
    isotonic_curve,
    isotonic_limits,
    make_points,
    point_gaps,
)
from skcal.notions import Notion
from skcal.sample import Sample, read_sample, refuse_groups, refuse_weights

_N_GRID = 101
_CURVE_ROUNDING = 1e-9
_RMS_TAIL = 10  # R's rms draws curves between the 10th predictions from both ends


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationCurve(ShownColumns):
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
    methods : frozenset of str
        The names of the smoothers that a curve may be drawn by.
    """

    methods: ClassVar[frozenset[str]] = frozenset(CURVES)
    prediction: np.ndarray
    frequency: np.ndarray
    low: np.ndarray
    high: np.ndarray
    band_low: np.ndarray
    band_high: np.ndarray
    method: str
    confidence_level: float
    notion: Notion
    n_samples: int

    def _caption(self):
        level = percent(self.confidence_level)
        title = f"Calibration curve by {self.method}, {self.notion}, {self.n_samples:,} samples"
        limits = f"low, high hold the curve at a point with {level}, the band at all points at once"
        return title, limits


@validate_params({"method": [StrOptions(set(CURVES))], **CONFIDENCE_LEVEL})
def flexible_calibration_curve(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    method: str = "splines",
    at: ArrayLike | None = None,
    notion: str = "auto",
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> CalibrationCurve:
    """Smooth calibration curve with pointwise and simultaneous confidence limits.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), or Sample
        Labels; both outcomes must occur.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    method : {"splines", "loess", "isotonic"}, default="splines"
        "splines": logistic regression on natural cubic splines of logit(p) with 5 knots, as R's
        ``rcs(logit(p), 5)``. With fewer than 100 events or non-events there are 4 knots, with fewer
        than 30 there are 3. "loess": local quadratic regression of the outcomes on p with span
        0.75, the default of R's ``loess``. "isotonic": isotonic regression; its limits are exact
        for any curve that does not fall, and wide.
    at : array-like of shape (n_points,), default=None
        Probabilities at which to evaluate the curve, in increasing order. None: 101 between the
        10th predictions from both ends; with n < 100 samples, between the (n // 10)-th.
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of the limits.
    sample_weight : array-like of shape (n_samples,), default=None
        Importance weights; not for the limits of "isotonic", which need equal ones.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. Not for the limits
        of "isotonic". See :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    curve : CalibrationCurve
        The ``frequency`` at each ``prediction``, with pointwise limits and a simultaneous band.

    Raises
    ------
    ValueError
        If the input is not valid, only one outcome occurs, or weights differ or ``groups`` are
        given for "isotonic".

    Warns
    -----
    UserWarning
        If there are fewer than five events or non-events.

    See Also
    --------
    integrated_calibration_index : the mean distance of a curve from the diagonal.
    skcal.displays.CalibrationCurveDisplay : draws it.

    Notes
    -----
    Limits of splines are those of the profile likelihood. Normal limits of the logit reach from 0
    to 1 in regions without events. The normal limits of R's model, rms::rcs(lp, 5) rebuilt in
    Python, were wider than 0.9 somewhere in 20 of 60 calibrated sets (n = 500, 10 % events,
    Beta(1, 9)); these in none. Limits of loess are normal. Both are limits of the expectation of
    the smoother. If the true curve bends more than the smoother can follow, they miss it, more
    surely with more samples. Then use "isotonic", whose limits were never short.

    The table gives two figures, in per cent of 300 data sets (splines: 60 to 300). The first says
    how often the 95 % limits held at a point, on average over the points. The second says how often
    the 95 % band held the whole curve. The column of splines was drawn anew, 5 % events as
    Beta(1, 19), so rows compare smoothers roughly:

    ======================  =====  =======  =======  ========
    curve                       n  splines  loess    isotonic
    ======================  =====  =======  =======  ========
    uniform, calibrated       200  94, 94   94, 91   100, 100
    uniform, calibrated     1,000  94, 95   94, 94   100, 100
    slope 1.4                 200  95, 94   96, 94   100, 100
    slope 1.4               1,000  94, 98   95, 93   100, 100
    logit shifted by 0.7      200  93, 90   94, 86   100, 100
    logit shifted by 0.7    1,000  94, 95   94, 93   100, 100
    5 % events, calibrated    200  94, 93   90, 75   100, 100
    5 % events, calibrated  1,000  96, 95   93, 86   100, 100
    wave p + 0.15 sin 3πp     200  83, 0    88, 79   99, 100
    wave p + 0.15 sin 3πp   1,000  80, 0    70, 4    97, 100
    five steps                200  78, 7    82, 26   98, 100
    five steps              1,000  51, 0    53, 0    98, 100
    ======================  =====  =======  =======  ========

    Fewer than five events, or non-events, do not determine a curve. The limits of splines and loess
    are then 0 and 1, with a warning. If ``groups`` are given, the effective number of events under
    the estimated dependence counts.

    More than 1,000 distinct predictions are grouped into 1,000 of equal mass (100 for isotonic
    limits). Loess is R's with ``surface="direct"``; R's default interpolates between vertices,
    which changes the third digit.

    References
    ----------
    .. [1] Van Calster et al., A calibration hierarchy for risk models was defined, J. Clinical
       Epidemiology 2016.
    .. [2] Dimitriadis, Dümbgen, Henzi, Puke & Ziegel, Honest calibration assessment for binary
       outcome predictions, Biometrika 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.metrics import flexible_calibration_curve
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < p**2
    >>> curve = flexible_calibration_curve(y, p, at=[0.3, 0.5, 0.7])
    >>> curve.frequency.round(1)
    array([0.1, 0.2, 0.5])
    >>> bool((curve.band_high < curve.prediction).all())  # predictions are too high
    True
    """
    sample = read_sample(
        y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits, groups=groups
    )
    data = outcome_of(sample)
    check_both(data.happened)
    grid = _grid(data.prediction) if at is None else read_increasing(at, "at")
    frequency, limits = _frequency_and_limits(data, method, grid, confidence_level)
    low, high, band_low, band_high = limits
    return CalibrationCurve(
        grid,
        frequency,
        low,
        high,
        band_low,
        band_high,
        method,
        confidence_level,
        data.notion,
        len(data.weight),
    )


def _grid(x) -> np.ndarray:
    tails = min(_RMS_TAIL, max(1, len(x) // _RMS_TAIL))
    ends = np.partition(x, [tails - 1, len(x) - tails])[[tails - 1, len(x) - tails]]
    return np.clip(np.linspace(ends[0], ends[1], _N_GRID), 0, 1)


def _frequency_and_limits(data: Outcome, method, grid, level):
    """The frequency and the rows of its limits."""
    x, outcome, weight, groups = data.prediction, data.happened, data.weight, data.problem.groups
    points = make_points(x, outcome, weight, groups=groups)
    if method != "isotonic":
        curve = CURVES[method](points, grid, level, data)
        if points.events >= FEWEST_EVENTS * (1 - _CURVE_ROUNDING):
            return curve
        remedy = "They are 0 and 1. Collect more samples."  # fitted ones miss in 9 to 80 %
        warn_if_few_events(points.events, FEWEST_EVENTS, "limits of a curve", remedy)
        return curve._replace(limits=np.repeat([[0.0], [1.0]] * 2, len(grid), axis=1))
    refuse_groups(groups, "method='isotonic'", "Use method='splines' or 'loess'.")
    refuse_weights(data, "method='isotonic'", "Use method='splines' or 'loess'.")
    return isotonic_curve(points, grid).frequency, isotonic_limits(x, outcome, grid, level)


@validate_params(
    {
        "estimator": [HasMethods(["fit", "predict_proba"]), StrOptions(set(CURVES))],
        "quantile": [Interval(Real, 0, 1, closed="both"), None],
    }
)
def integrated_calibration_index(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    estimator: BaseEstimator | str = "splines",
    quantile: float | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Integrated calibration index (ICI): mean distance of a smooth curve from the predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    estimator : classifier or {"splines", "loess", "isotonic"}, default="splines"
        The smoother: a classifier of the outcome given logit(p) as its one feature, or a method
        of :func:`flexible_calibration_curve`, which groups more than 1,000 distinct predictions.
        Predictions of exactly 0 and 1 have the outermost logits of the others. With "splines" 12
        or more of them have their own observed frequency.
    quantile : float in [0, 1], default=None
        None is the mean; 0.5 and 0.9 are E50 and E90 of [1]_, 1 is Emax.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row. The number of knots of splines depends on the
        effective number of samples instead.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    index : float in [0, 1], in probability units; 0 is calibrated.
        The mean distance of the curve from the diagonal.

    Raises
    ------
    ValueError
        If the input is not valid or only one outcome occurs.

    Notes
    -----
    The index is the mean of ``|ĉ(p_i) - p_i|`` for a smooth calibration curve ĉ. [1]_ smooths by
    loess, R's rms package by lowess. The smoother matters, so compare values of one smoother only.
    Splines and loess differed in ICI by 0.004 on average and by at most 0.02, over 30 draws of 300
    predictions of Beta(1, 3) with logits too low by 0.3. Isotonic regression has larger E90 and
    Emax. The curve is fitted to the samples on which it is evaluated, so all are biased upwards. In
    five such models the ICI of splines was 0.046 to 0.074 on average, the truth 0.034 to 0.066. The
    difference was at least 0.001 and at most 0.013.

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
    sample = read_sample(y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits)
    data = outcome_of(sample)
    check_both(data.happened)
    outcome, weight = data.happened, data.weight
    if isinstance(estimator, str):
        points = make_points(data.prediction, outcome, weight)
        gap, weight = np.abs(point_gaps(estimator, points)), points.mass
    else:
        z = bounded_logits(data.logit), expit(data.logit)
        gap = _fitted_gap(estimator, *z, outcome, weight, np.ptp(sample.weight) > 0)
    if quantile is None:
        return float(weight @ gap / weight.sum())
    return float(np.quantile(gap, quantile, method="inverted_cdf", weights=weight))


def _fitted_gap(estimator, logit, prediction, outcome, weight, weighted):
    """Distance of a classifier's curve from each prediction."""
    smoother, X = clone(estimator), logit[:, None]
    step = smoother.steps[-1][0] + "__" if hasattr(smoother, "steps") else ""
    weights = {f"{step}sample_weight": weight}
    with config_context(enable_metadata_routing=False):
        smoother.fit(X, outcome.astype(np.int64), **(weights if weighted else {}))
    return np.abs(smoother.predict_proba(X)[:, 1] - prediction)


_QUANTILES = {"e50": 0.5, "e90": 0.9, "emax": 1.0}
CURVE_DISTANCES = ("ici", *_QUANTILES)


class CurveDistances:
    """Distances of the curve of one outcome, in the order of ``CURVE_DISTANCES``.

    Parameters
    ----------
    method : str
        The curve, one of :data:`skcal.metrics.smoothers.CURVES`.
    data : Outcome
    """

    def __init__(self, method: str, data: Outcome):
        self.method, self.happened, self.weight = method, data.happened, data.weight
        self.groups: Groups = data.problem.groups
        self.points = make_points(data.prediction, data.happened, data.weight)
        self.gaps = point_gaps(method, self.points)
        self.estimates = _summarised(self.gaps, self.points.mass)

    def intervals(self, level: float, n_resamples: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Ends of intervals that hold the distances, the lower ones 0 unless these are shown.

        Noise adds to the distances, once more in the resamples. The lower end leaves that out
        twice; the upper end counts the spread alone, since that of the truth may be any part of it.
        """
        tail, estimates, groups = (1 - level) / 2, self.estimates, self.groups
        dependent = not groups.independent and not groups.alone.all()
        units = [(INDEPENDENT.or_singles(self.weight), 1.0)]
        if dependent:  # no interval is narrower than without groups
            units = [(units[0][0], np.sqrt(groups.design_effect(self.weight))), (groups, 1.0)]
        below = above = np.zeros(len(estimates))
        for resampled, scale in units:
            drawn, noise = self._resampled(resampled, n_resamples, rng)
            middle, largest = np.quantile(drawn, [0.5, 1 - tail], axis=0)
            below = np.maximum(below, scale * (largest - estimates))
            above = np.maximum(above, scale * (largest - middle))
        if dependent:  # groups that are drawn anew may not tell how outcomes vary
            of_curve = self._redrawn(self.points.prediction + self.gaps, n_resamples, rng)
            middle, largest = np.quantile(of_curve, [0.5, 1 - tail], axis=0)
            with np.errstate(invalid="ignore"):
                above = np.fmax(above, largest - middle)
        calibrated = self._redrawn(self.points.prediction, n_resamples, rng)
        larger = (calibrated >= estimates).sum(axis=0)
        if not groups.independent:
            larger = np.maximum(larger, (noise >= estimates).sum(axis=0))
        shown = is_significant((1 + larger) / (1 + n_resamples), level)
        low = np.where(shown, np.clip(estimates - below, 0, estimates), 0.0)
        return low, np.minimum(estimates + above, 1)

    def _resampled(self, groups: Groups, n_resamples, rng) -> tuple[np.ndarray, np.ndarray]:
        """Distances of the curves of resamples, from the diagonal and from the curve."""
        resamples = self._samples(rng) if groups.independent else self._samples_of(groups, rng)
        distances: list[np.ndarray] = []
        noise: list[np.ndarray] = []
        while len(distances) < n_resamples:
            points, kept = self._kept(*next(resamples))
            if len(kept):
                gaps = point_gaps(self.method, points)
                distances.append(_summarised(gaps, points.mass))
                noise.append(_summarised(gaps - self.gaps[kept], points.mass))
        return np.array(distances), np.array(noise)

    def _samples(self, rng) -> Iterator[tuple]:
        """Hits, misses and squared weights at each point, of samples that are drawn anew."""
        n, points = len(self.happened), self.points
        cells = np.concatenate([points.hits, points.mass - points.hits]) / n
        while True:
            hits, misses = rng.multinomial(n, cells).reshape(2, -1)
            yield hits, misses, hits + misses

    def _samples_of(self, groups: Groups, rng) -> Iterator[tuple]:
        """The same where groups are drawn with all of their samples."""
        n, size, place = groups.n_groups, len(self.points.mass), self.points.group
        cells = csr_array(
            (self.weight, (place + size * (1 - self.happened.astype(np.intp)), groups.codes)),
            shape=(2 * size, n),
        )
        squares = csr_array((self.weight**2, (place, groups.codes)), shape=(size, n))
        shares = np.full(n, 1 / n)
        while True:
            counts = rng.multinomial(n, shares)
            yield *(cells @ counts).reshape(2, -1), squares @ counts

    def _redrawn(self, chance: np.ndarray, n_resamples, rng) -> np.ndarray:
        """Distances (n_resamples, 4) if outcomes have these chances; infinite without a curve."""
        redraw = self._outcomes if self.groups.independent else self._outcomes_of_groups
        distances = np.full((n_resamples, len(CURVE_DISTANCES)), np.inf)
        drawn = redraw(chance, n_resamples, rng)
        for row, (hits, misses) in zip(distances, drawn, strict=True):
            points, kept = self._kept(hits, misses, self.points.squares)
            if len(kept):
                row[:] = _summarised(point_gaps(self.method, points), points.mass)
        return distances

    def _outcomes(self, chance, n_resamples, rng) -> Iterator[tuple]:
        """Hits and misses at each point."""
        size, rate = self.points.mass.astype(np.int64), np.clip(chance, 0, 1)
        for hits in rng.binomial(size, rate, size=(n_resamples, len(size))):
            yield hits, size - hits

    def _outcomes_of_groups(self, chance, n_resamples, rng) -> Iterator[tuple]:
        """The same of samples whose weights may differ, and which depend on each other."""
        points, rate = self.points, np.clip(chance, 0, 1)[self.points.group]
        for seeds in rng.integers(2**31 - 1, size=(n_resamples, 2)):
            [uniform] = self.groups.uniform(seeds[:1], seeds[1:])
            hits = np.bincount(points.group, self.weight * (uniform < rate), len(points.mass))
            misses = points.mass - hits
            yield hits, np.where(misses > 1e-12 * points.mass, misses, 0.0)

    def _kept(self, hits, misses, squares) -> tuple[Points, np.ndarray]:
        """The points with samples, and their places; none where one outcome does not occur."""
        mass = np.asarray(hits + misses, dtype=np.float64)
        kept = np.flatnonzero(mass > 0) if hits.any() and misses.any() else np.arange(0)
        return self.points._replace(
            prediction=self.points.prediction[kept],
            mass=mass[kept],
            hits=np.asarray(hits, dtype=np.float64)[kept],
            squares=np.asarray(squares, dtype=np.float64)[kept],
        ), kept


def _summarised(gaps: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Mean, median, 90 % quantile and maximum of the sizes of gaps."""
    sizes = np.abs(gaps)
    quantiles = np.quantile(sizes, list(_QUANTILES.values()), method="inverted_cdf", weights=mass)
    return np.append(mass @ sizes / mass.sum(), quantiles)
