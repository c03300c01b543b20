"""Features of probabilities, and the line by which scores in another unit become log-odds.

Features are coordinates of the simplex, B-splines, and products of these. Decision values, points
of a scorecard and logits of another temperature are far from what penalties and priors take for
likely. A line is fitted to them first if it is clearly better than every line of a slope from 1/8
to 4 and of small offsets, or if there are outliers. Narrow scores may have any slope up to 4: a
small or negative one says that they are useless or reversed.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skcal._sklearn_compat import Interval, StrOptions, _fit_context
from skcal._validation import read_probabilities

#: Smallest probability whose logarithm is taken: 2⁻⁵² ≈ 2.2e-16, so that log p ≥ -36.04.
PROBABILITY_FLOOR = float(np.finfo(np.float64).eps)
_SMALLEST_FLOAT = 5e-324  # zeros count as that
#: How much of a logarithm maps read beyond this floor, so that the order stays.
BEYOND = 1e-7


def log_probabilities(
    X: np.ndarray, floor: float = PROBABILITY_FLOOR, beyond: float = 0.0
) -> np.ndarray:
    """Return log p; for a single column the logit, log p - log(1 - p).

    Probabilities below ``floor`` count as that; 1 - p below :data:`PROBABILITY_FLOOR` as it. To
    keep their order, ``beyond`` times the logarithm that is lost is added.
    """
    X = X.astype(np.float64, copy=False)
    log_p = _floored_logarithms(X, floor, beyond)
    if X.shape[1] == 1:
        log_p -= _floored_logarithms(1 - X, PROBABILITY_FLOOR, beyond)
    return log_p


def _floored_logarithms(X: np.ndarray, floor: float, beyond: float) -> np.ndarray:
    log_p = np.maximum(X, floor)
    np.log(log_p, out=log_p)
    if beyond and X.min() < floor:
        rare = floor > X
        log_p[rare] += beyond * np.log(np.maximum(X[rare], _SMALLEST_FLOAT) / floor)
    return log_p


def graded(z: np.ndarray) -> np.ndarray:
    """Return σ(z), to which 1e-6 of what z has beyond ±30 is added: else it would round to 0 or 1.

    Different logits stay different.
    """
    return expit(z) + 1e-6 * (z - np.clip(z, -30, 30))


def square_roots(X: np.ndarray) -> np.ndarray:
    """Return √p, of a single column √p and √(1 - p); their distances are Hellinger's, times √2."""
    X = X.astype(np.float64)
    return np.sqrt(np.maximum(np.hstack([X, 1 - X]) if X.shape[1] == 1 else X, 0))


def log_ratios(X: np.ndarray) -> np.ndarray:
    """Return log p minus its mean over the classes (Aitchison's centred log-ratio), or the logit.

    Probabilities below :data:`PROBABILITY_FLOOR` count as the floor.
    """
    log_p = log_probabilities(X)
    return log_p if X.shape[1] == 1 else log_p - log_p.mean(axis=1, keepdims=True)


#: Name → function of features (n, d).
COORDINATES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "probability": lambda X: X,
    "square-root": square_roots,
    "log": log_probabilities,
    "log-ratio": log_ratios,
}


def coordinates_of_logarithms(name: str, z: np.ndarray) -> np.ndarray:
    """Coordinates of predictions whose log-probabilities, in a single column logits, are z."""
    if name == "log":
        return z
    if name == "log-ratio":
        return z if z.shape[1] == 1 else z - z.mean(axis=1, keepdims=True)
    return COORDINATES[name](expit(z) if z.shape[1] == 1 else np.exp(z))


class _OfProbabilities(TransformerMixin, BaseEstimator):
    """The base of transformers of probabilities, which learn nothing."""

    _parameter_constraints: dict[str, list[object]] = {}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check the probabilities X of shape (n_samples, d); nothing is learnt.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Probabilities in [0, 1].
        y : None, default=None
            Ignored; there for scikit-learn.
        """
        read_probabilities(self, X, y)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")


class LogProbabilities(OneToOneFeatureMixin, _OfProbabilities):
    """Map probabilities to their logarithms, a single column to its logit.

    Probabilities below 2⁻⁵² ≈ 2.2e-16 count as that floor, so that 0 and 1 stay finite.

    Examples
    --------
    >>> from skcal.recalibration import LogProbabilities
    >>> LogProbabilities().fit_transform([[0.25, 0.75], [1.0, 0.0]]).round(2)
    array([[ -1.39,  -0.29],
           [  0.  , -36.04]])
    """

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return logarithms (or logits) of shape (n_samples, d).

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Probabilities in [0, 1].
        """
        check_is_fitted(self)
        return log_probabilities(read_probabilities(self, X, reset=False))


class ProbabilityInteractions(_OfProbabilities):
    """Multiply all probabilities by the predicted class or by splines of the confidence.

    A linear model on them is a linear map of p whose coefficients vary from predicted class to
    predicted class, or smoothly with max p.

    Parameters
    ----------
    by : {"confidence", "predicted class"}, default="confidence"
    n_knots : int ≥ 2, default=8
        Evenly spaced on [0, 1], for quadratic splines of max p.

    Attributes
    ----------
    n_features_in_ : int

    Notes
    -----
    Ties for the largest probability go to the first class; of a single column max p is p. Bins of
    the confidence with a map in each are those of [1]_, maps for each predicted class those of
    [2]_, here for whole vectors.

    References
    ----------
    .. [1] Ji et al., Bin-wise temperature scaling, ICCV Workshops 2019.
    .. [2] Gupta & Ramdas, Top-label calibration and multiclass-to-binary reductions, ICLR 2022.

    Examples
    --------
    >>> from skcal.recalibration import ProbabilityInteractions
    >>> ProbabilityInteractions("predicted class").fit_transform([[0.75, 0.25], [0.5, 0.5]])
    array([[0.75, 0.25, 0.  , 0.  ],
           [0.5 , 0.5 , 0.  , 0.  ]])
    """

    _parameter_constraints: dict[str, list[object]] = {
        "by": [StrOptions({"confidence", "predicted class"})],
        "n_knots": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(self, by: str = "confidence", n_knots: int = 8) -> None:
        self.by = by
        self.n_knots = n_knots

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the products, (n_samples, d²) or (n_samples, d (n_knots + 1)).

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Probabilities in [0, 1].
        """
        check_is_fitted(self)
        p = read_probabilities(self, X, reset=False).astype(np.float64)
        if self.by == "confidence":
            varying = b_splines(p.max(axis=1, keepdims=True), np.linspace(0, 1, self.n_knots), 2)
        else:
            varying = np.eye(p.shape[1])[p.argmax(axis=1)]
        return (varying[:, :, None] * p[:, None, :]).reshape(len(p), -1)


def b_splines(x: np.ndarray, knots: np.ndarray, degree: int) -> np.ndarray:
    """Values of the B-splines (n, k) at numbers (n, 1), beyond the knots those at the last one."""
    steps = np.arange(1, degree + 1)
    before = knots[0] - (knots[1] - knots[0]) * steps[::-1]
    after = knots[-1] + (knots[-1] - knots[-2]) * steps
    n_splines = len(knots) + degree - 1
    splines = BSpline(np.concatenate([before, knots, after]), np.eye(n_splines), degree)
    return splines(np.clip(x[:, 0], knots[0], knots[-1]))


_SLOPE_LIMITS = (1 / 8, 4.0)  # of log-odds that maps take as they are
_WIDE_HALF = 12.0  # half the width of most scores, up to which any small slope is likely
_LEAST_SLOPE = 0.1  # of a line, per spread
_CLEARLY = 4.0  # log-likelihood
_SMOOTHING = 0.01
_BENDS = (1.0, 3.0, 10.0)  # spreads beyond which a score counts by 0.01 of its logarithm
_RISE = 0.01
_OUTLIER = 100.0  # and more than the last bend
_MOST_ENTRIES, _MOST_LOGIT_CELLS = 2**18, 1000


class LogitCells(NamedTuple):
    """Samples of about equal logits: their mean logit, their events and their number."""

    z: np.ndarray
    events: np.ndarray
    mass: np.ndarray

    @classmethod
    def of(cls, z: np.ndarray, codes: np.ndarray, mass: np.ndarray) -> LogitCells:
        """Samples of single logits (n,), quantiles of them where there are many."""
        distinct, rows = np.unique(z, return_inverse=True)
        cells = cls(distinct, np.bincount(rows, mass * codes), np.bincount(rows, mass))
        if len(distinct) <= _MOST_LOGIT_CELLS:
            return cells
        place = cells.in_quantiles(_MOST_LOGIT_CELLS)
        total = np.bincount(place, cells.mass)
        mean = np.bincount(place, cells.mass * cells.z) / total
        return cls(mean, np.bincount(place, cells.events), total)

    @property
    def rank(self) -> Any:
        """The share of the samples below the middle of each cell."""
        return (np.cumsum(self.mass) - self.mass / 2) / self.mass.sum()

    def in_quantiles(self, n_cells: int) -> np.ndarray:
        """The quantile cell of each of these cells, numbered without gaps."""
        place = np.minimum((self.rank * n_cells).astype(int), n_cells - 1)
        return np.unique(place, return_inverse=True)[1]


def log_odds(line: dict[str, Any] | None, z: np.ndarray) -> np.ndarray:
    """Log-probabilities (n, C), or logits (n, 1), of such scores by a line; without one the scores.

    Scores far from the centre count by their logarithm, so that outliers do not decide the line and
    keep their order.
    """
    if line is None:
        return z
    t = (_centred(z) - line["centre"]) / line["spread"]
    v = line["slope"] * _compressed(t, line["bend"]) + line["offset"]
    if z.shape[1] == 2:
        v = np.hstack([np.zeros_like(v), v])
    return v if z.shape[1] == 1 else log_softmax(v, axis=1)


def line_of(
    z: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    most_offset: float = 5.0,
    from_logits: bool = True,
) -> tuple[dict[str, Any] | None, float]:
    """The line by which scores become log-odds, None if they are such, and its mean log loss.

    Parameters
    ----------
    z : ndarray of shape (n_samples, 1) or (n_samples, n_classes)
        Logits, or log-probabilities.
    codes : ndarray of shape (n_samples,)
        Column numbers of the labels.
    weight : ndarray of shape (n_samples,)
        Numbers of rows.
    most_offset : float, default=5.0
        The largest offset of scores that count as log-odds.
    from_logits : bool, default=True
        Else z is of probabilities, of which zeros and ones may be wrong now and then.

    Returns
    -------
    line : dict or None
    loss : float
        NaN where three and more columns look so much like log-odds that no line was fitted.
    """
    z = _centred(z)
    if z.shape[1] == 1:
        cells = LogitCells.of(z[:, 0], codes, weight)
        z, outcomes = cells.z[:, None], np.stack([cells.mass - cells.events, cells.events], axis=1)
        low, centre, high = np.interp([[0.05], [0.5], [0.95]], cells.rank, cells.z)
    else:
        rows = slice(None, None, 1 + z.size // _MOST_ENTRIES)
        z, outcomes = z[rows], weight[rows, None] * (codes[rows, None] == np.arange(z.shape[1]))
        centre = np.median(z, axis=0)
        low, high = np.quantile(z - centre, [0.05, 0.95])
    spread = float(np.squeeze(high - low)) / 2 or float(np.ptp(z)) / 2 or 1.0
    t = (z - centre) / spread
    outlying = bool(((np.abs(t) > _BENDS[-1]) & (np.abs(z) > _OUTLIER)).any())
    if z.shape[1] > 1 and not outlying and 1 <= spread <= _WIDE_HALF and _is_balanced(z, outcomes):
        return None, np.nan
    bends = _BENDS if outlying else _BENDS[-1:]
    fits = [(*_fit_either_way(_compressed(t, bend), outcomes), bend) for bend in bends]
    loss, slope, offset, bend = min(fits, key=lambda fit: fit[0])
    if not outlying:
        slopes = (_SLOPE_LIMITS[0] if spread > _WIDE_HALF else None, _SLOPE_LIMITS[1])
        plain = [z] if from_logits else [z, now_and_then_wrong(z)]
        gain = min(_fitted_line(u, outcomes, slopes, most_offset)[0] for u in plain) - loss
        if gain * outcomes.sum() <= _CLEARLY + len(offset):
            return None, loss
    names = ("centre", "spread", "slope", "offset", "bend")
    return dict(zip(names, (centre, spread, slope, offset, bend), strict=True)), loss


def _is_balanced(z: np.ndarray, outcomes: np.ndarray) -> bool:
    """Whether every class is about as frequent as the probabilities of these logits say."""
    counts = outcomes.sum(axis=0)
    surplus = outcomes.sum(axis=1) @ softmax(z, axis=1) - counts
    return bool((np.abs(surplus) <= counts / 16 + 3 * np.sqrt(counts + 1)).all())


def _centred(z: np.ndarray) -> Any:
    """A single column, of two their difference; of more less their mean."""
    if z.shape[1] == 2:
        return z[:, 1:] - z[:, :1]
    return z if z.shape[1] == 1 else z - z.mean(axis=1, keepdims=True)


def _compressed(t: np.ndarray, bend: float) -> Any:
    inner = np.clip(t, -bend, bend)
    return inner + _RISE * np.sign(t) * np.log1p(np.abs(t - inner))


def now_and_then_wrong(z: np.ndarray) -> Any:
    """Log-odds of probabilities that are wrong now and then; those of one event may be 1-D."""
    if z.ndim == 1 or z.shape[1] == 1:
        return np.log((expit(z) + _SMOOTHING) / (expit(-z) + _SMOOTHING))
    return np.log(softmax(z, axis=1) + _SMOOTHING)


def _fit_either_way(u: np.ndarray, outcomes: np.ndarray) -> tuple[float, float, np.ndarray]:
    """The best line, or minus the best falling one, which a map with a free slope turns round."""
    rising = _fitted_line(u, outcomes)
    if rising[1] > _LEAST_SLOPE:
        return rising
    loss, slope, offset = _fitted_line(u, outcomes, (None, -_LEAST_SLOPE))
    return (loss, -slope, -offset) if loss < rising[0] else rising


def _fitted_line(
    u: np.ndarray,
    outcomes: np.ndarray,
    slopes: tuple[float | None, float | None] = (_LEAST_SLOPE, None),
    most_offset: float = np.inf,
) -> tuple[float, float, np.ndarray]:
    """Mean log loss, slope and offsets of the best line, or of the best within limits.

    Outcomes (n, C) are smoothed as by Platt, so that slopes stay finite where they are separable.
    """
    counts, n_free = outcomes.sum(axis=0), u.shape[1]
    targets = (np.diag(counts) + 1) / (counts + len(counts))[:, None]
    outcomes = outcomes @ targets / outcomes.sum()
    mass = outcomes.sum(axis=1)
    data = [u, outcomes, mass]

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        u, outcomes, mass = data
        logits = np.zeros_like(outcomes)
        logits[:, -n_free:] = parameters[0] * u + parameters[1:]
        largest = logits.max(axis=1)  # scipy's functions cost more than the arithmetic
        p = np.exp(logits - largest[:, None])
        total = p.sum(axis=1)
        errors = (p * (mass / total)[:, None] - outcomes)[:, -n_free:]
        value = mass @ (largest + np.log(total)) - np.vdot(outcomes, logits)
        return value, np.append(np.vdot(errors, u), errors.sum(axis=0))

    bounds = [slopes] + n_free * [(-most_offset, most_offset)]
    start = np.append(1.0, np.zeros(n_free))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    data.clear()  # older versions of scipy keep the function in a cycle
    return float(found.fun), float(found.x[0]), found.x[1:]
