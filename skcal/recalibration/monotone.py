"""Maps of a single probability without a formula: isotonic, Venn-Abers, histogram binning."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from skcal._bins import Intervals, quantile, uniform
from skcal._sklearn_compat import StrOptions
from skcal._validation import BIN_COUNT, read_columns
from skcal.recalibration.base import RecalibrationMap
from skcal.recalibration.features import graded

_PART_ROUNDING = 1e-12  # by which parts differ that are one


class IsotonicCalibration(RecalibrationMap):
    """Isotonic regression of the outcome on a single probability, by default centred.

    Isotonic regression is flat where outcomes contradict the order of the predictions. Centred,
    each flat part is one point at its mean prediction, and c is linear between the points, so that
    different predictions stay different [1]_.

    Parameters
    ----------
    centered : bool, default=True
        Whether flat parts become points; else c is that of
        :class:`~sklearn.isotonic.IsotonicRegression`.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    x_thresholds_, y_thresholds_ : ndarray of shape (n_thresholds,)
        Predictions and their c, linear between and constant beyond.
    estimators_ : list of IsotonicCalibration
        With three and more columns, instead of the thresholds: a map for each class.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    One sample with half a positive outcome is added everywhere, so no outcome has probability 0:
    c = (n c' + 1/2) / (n + 1). With two columns p is the second. With more each class is mapped
    against the rest, and the results are divided by their sum. O(n log n) a class.

    References
    ----------
    .. [1] Oron & Flournoy, Centered isotonic regression: point and interval estimation for
       dose-response studies, Statistics in Biopharmaceutical Research 9, 2017.

    Examples
    --------
    >>> from skcal.recalibration import IsotonicCalibration
    >>> fitted = IsotonicCalibration().fit([0.1, 0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1, 1])
    >>> fitted.predict_proba([0.1, 0.2, 0.3, 0.45])[:, 1].round(2)
    array([0.08, 0.29, 0.5 , 0.66])
    """

    _parameter_constraints: dict = {
        **RecalibrationMap._parameter_constraints,
        "centered": ["boolean"],
    }
    _of_single_probability = True
    _is_of_ranks = True
    _saved_parameters: tuple[str, ...] = ("x_thresholds", "y_thresholds")
    _formula = (
        "u = σ(z) + 1e-6 (z - min(max(z, -30), 30)) interpolated linearly between (x_thresholds, "
        "y_thresholds), constant beyond"
    )

    def __init__(self, centered=True, from_logits=False):
        self.centered = centered
        self.from_logits = from_logits

    def _fit(self, z, codes, weight):
        p, rows, total = _scores_with_weights(graded(z[:, 0]), weight)
        mean = np.bincount(rows, weight * codes) / total
        level = isotonic_regression(mean, sample_weight=total, y_min=0, y_max=1)
        if self.centered:
            start = np.flatnonzero(np.diff(level, prepend=-1.0) > _PART_ROUNDING)
            p = np.add.reduceat(p * total, start) / np.add.reduceat(total, start)
            level = level[start]
        n = weight.sum()
        self.x_thresholds_, self.y_thresholds_ = p, (n * level + 0.5) / (n + 1)

    def _proba(self, z):
        positive = np.interp(graded(z[:, 0]), self.x_thresholds_, self.y_thresholds_)
        return np.stack([1 - positive, positive], axis=1)


class VennAbers(RecalibrationMap):
    """Inductive Venn-Abers calibration of a single probability.

    The outcome of a new sample is set to 0 and to 1. Isotonic regression of all samples with it
    gives p₀ and p₁. One end of this interval is calibrated whatever the distribution of the
    samples, provided they are exchangeable. ``predict_proba`` is p₁ / (1 - p₀ + p₁), which
    minimises the largest regret of the log loss [1]_.

    Parameters
    ----------
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    scores_ : ndarray of shape (n_scores,)
        Distinct logits of the training samples.
    lower_, upper_ : ndarray of shape (n_scores,)
        p₀ and p₁ at these.
    estimators_ : list of VennAbers
        With three and more columns, instead of scores: a map for each class.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    A new sample counts as one of weight 1. With two columns p is the second. With more each class
    is mapped against the rest, and the results are divided by their sum. O(n log n) a class.

    References
    ----------
    .. [1] Vovk, Petej & Fedorova, Large-scale probabilistic predictors with and without guarantees
       of validity, NeurIPS 2015.

    Examples
    --------
    >>> from skcal.recalibration import VennAbers
    >>> fitted = VennAbers().fit([0.1, 0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1, 1])
    >>> fitted.predict_interval([0.3]).round(2)
    array([[0.33, 0.67]])
    >>> fitted.predict_proba([0.3]).round(2)
    array([[0.5, 0.5]])
    """

    _of_single_probability = True
    _is_of_ranks = True
    _saved_parameters: tuple[str, ...] = ("scores", "lower", "upper")
    _formula = (
        "p1 / (1 - p0 + p1); p0 is lower at the largest score <= z, or 0; p1 is upper at the "
        "smallest score >= z, or 1"
    )

    def _fit(self, z, codes, weight):
        self.scores_, rows, total = _scores_with_weights(z[:, 0], weight)
        positive = np.bincount(rows, weight * codes)
        self.upper_ = _with_a_positive(total, positive)
        # What is negative is positive in the reverse order.
        self.lower_ = 1 - _with_a_positive(total[::-1], (total - positive)[::-1])[::-1]

    def predict_interval(self, X):
        """Return the Venn-Abers interval [p₀, p₁] of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns), or (n_samples,) of a single column
            Predicted probabilities; one column holds P(positive class).

        Returns
        -------
        interval : ndarray of shape (n_samples, 2), or (n_samples, n_classes, 2)
            With three and more classes, the intervals of each against the rest.
        """
        check_is_fitted(self)
        X = read_columns(self, X, reset=False)
        if self._is_of_several_classes:
            pairs = zip(self.estimators_, self._against_the_rest(X).T, strict=True)
            return np.stack([part.predict_interval(column) for part, column in pairs], axis=1)
        return self._interval(self._logarithms(X))

    def _interval(self, z):
        # A positive outcome joins the next higher score, a negative one the next lower.
        below = np.searchsorted(self.scores_, z[:, 0], side="right")
        above = np.searchsorted(self.scores_, z[:, 0], side="left")
        return np.stack(
            [np.append(0, self.lower_)[below], np.append(self.upper_, 1)[above]], axis=1
        )

    def _proba(self, z):
        p0, p1 = self._interval(z).T
        positive = p1 / (1 - p0 + p1)
        return np.stack([1 - positive, positive], axis=1)


class HistogramBinning(RecalibrationMap):
    """Histogram binning: replace predictions by the observed frequency of their bin.

    Parameters
    ----------
    n_bins : int ≥ 1, default=10
        The number of bins.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal numbers of samples or of equal width.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    edges_ : ndarray of shape (n_bins + 1,)
        Edges of the bins; a prediction on an edge belongs to the lower bin. Equal predictions share
        a bin, so that there may be fewer bins of equal numbers.
    frequencies_ : ndarray of shape (n_bins,)
        Frequency of events in each bin; an empty bin has its middle.
    estimators_ : list of HistogramBinning
        With three and more columns, instead of the others: a map for each class.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    IsotonicCalibration : bins whose ends and number the data choose, and which reverse no samples.

    Notes
    -----
    One sample with half a positive outcome is added everywhere, so no outcome has probability 0:
    c = (n c' + 1/2) / (n + 1). Predictions in one bin become equal, and a bin may lie below the one
    before it: the ranking of samples is not kept.

    References
    ----------
    .. [1] Zadrozny & Elkan, Obtaining calibrated probability estimates from decision trees and
       naive Bayesian classifiers, ICML 2001.

    Examples
    --------
    >>> from skcal.recalibration import HistogramBinning
    >>> fitted = HistogramBinning(n_bins=2).fit([0.1, 0.2, 0.3, 0.6, 0.7, 0.8], [0, 1, 0, 1, 1, 1])
    >>> fitted.predict_proba([0.2, 0.9])[:, 1].round(2)
    array([0.36, 0.93])
    """

    _parameter_constraints: dict = {
        **RecalibrationMap._parameter_constraints,
        "n_bins": [BIN_COUNT],
        "strategy": [StrOptions({"quantile", "uniform"})],
    }
    _of_single_probability = True
    _saved_parameters: tuple[str, ...] = ("edges", "frequencies")
    _formula = (
        "frequencies[k] of the bin edges[k] < u <= edges[k + 1], in the first and last also "
        "beyond; u = σ(z), for quantiles + 1e-6 (z - min(max(z, -30), 30))"
    )

    def __init__(self, n_bins=10, strategy="quantile", from_logits=False):
        self.n_bins = n_bins
        self.strategy = strategy
        self.from_logits = from_logits

    def _fit(self, z, codes, weight):
        p = self._positions(z)
        rule = {"quantile": quantile, "uniform": uniform}[self.strategy]
        bins: Any = rule(p, codes[:, None], weight, n_bins=self.n_bins, min_samples=1)
        if self.strategy == "quantile":  # whose ends are predictions: between them and the next
            values = np.unique(p)
            inner = bins.edges[1:-1]
            above = values[np.searchsorted(values, inner, side="right")]
            ends = [min(0.0, values[0])], [max(1.0, values[-1])]
            bins = Intervals(np.concatenate([ends[0], (inner + above) / 2, ends[1]]))
        place = bins.assign(p)
        mass = np.bincount(place, weight, bins.n_bins)
        events = np.bincount(place, weight * codes, bins.n_bins)
        middle = bins.middles[:, 0]
        rate = np.divide(events, mass, out=middle.copy(), where=mass > 0)
        n = weight.sum()
        self.edges_, self.frequencies_ = bins.edges, (n * rate + 0.5) / (n + 1)

    @property
    def _takes_line(self):
        return self.strategy == "uniform"

    @property
    def _is_of_ranks(self):
        return self.strategy == "quantile"

    def _positions(self, z):
        """Probabilities, without the rounding of logits that would move 0.3 across an edge there.

        Bins of equal numbers tell apart those that would round to 0 or 1.
        """
        return np.round(graded(z) if self.strategy == "quantile" else expit(z), 14)

    def _proba(self, z):
        positive = self.frequencies_[Intervals(self.edges_).assign(self._positions(z))]
        return np.stack([1 - positive, positive], axis=1)


def _scores_with_weights(values, weight):
    """Distinct values, which of them each sample has, and the sums of their weights."""
    distinct, rows = np.unique(values, return_inverse=True)
    return distinct, rows, np.bincount(rows, weight)


def _with_a_positive(total, positive):
    """Isotonic regression at each score if a positive outcome of weight 1 is added there.

    Slopes of the greatest convex minorant of cumulative sums, Algorithms 1 and 2 of [1]: the
    samples below the score are moved by (-1, -1), one after the other.
    """
    x = [-1.0, *np.append(0.0, np.cumsum(total)).tolist()]  # x[j + 1] belongs to j samples
    y = [-1.0, *np.append(0.0, np.cumsum(positive)).tolist()]
    hull: list[tuple[float, float]] = []  # its last point is the leftmost
    for point in zip(x[::-1], y[::-1], strict=True):
        _push(hull, point)
    values = np.empty(len(total))
    for j in range(len(total)):
        (x0, y0), (x1, y1) = hull[-1], hull[-2]
        values[j] = (y1 - y0) / (x1 - x0)
        moved = x[j + 2] - 1, y[j + 2] - 1
        if (moved[1] - y0) * (x1 - x0) < (y1 - y0) * (moved[0] - x0):
            hull.pop()
            _push(hull, moved)
    return np.clip(values, 0, 1)


def _push(hull, point):
    """Add a point on the left of a lower convex hull."""
    x, y = point
    while len(hull) > 1:
        (x0, y0), (x1, y1) = hull[-1], hull[-2]
        if (y0 - y) * (x1 - x) < (y1 - y) * (x0 - x):
            break
        hull.pop()
    hull.append(point)
