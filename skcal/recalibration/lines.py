"""Scores in another unit than log-odds, and the line by which they become log-odds.

Decision values, points of a scorecard and logits of another temperature are far from what penalties
and priors take for likely. A line is fitted to them first if it is clearly better than every line
of a slope from 1/8 to 4 and of offsets from -5 to 5, or if there are outliers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp

_SLOPES = (1 / 8, 4.0)  # of log-odds that maps take as they are
_WIDE = 12.0  # half the width of most scores, from which on a small slope is likely
_CLEARLY = 4.0  # log-likelihood
_BEND, _RISE = 3.0, 0.05  # in spreads; beyond, scores count by 0.05 of their logarithm
_OUTLIER = 100.0  # in spreads, and as a score
_SMOOTHING = 0.01
_MOST_ENTRIES, _MOST_CELLS = 2**20, 1000


class Cells(NamedTuple):
    """Samples of about equal logits: their mean logit, their events and their number."""

    z: np.ndarray
    events: np.ndarray
    mass: np.ndarray

    @classmethod
    def of(cls, z, codes, mass) -> Cells:
        """Samples of single logits (n,), quantiles of them where there are many."""
        distinct, rows = np.unique(z, return_inverse=True)
        cells = cls(distinct, np.bincount(rows, mass * codes), np.bincount(rows, mass))
        if len(distinct) <= _MOST_CELLS:
            return cells
        place = cells.in_quantiles(_MOST_CELLS)
        total = np.bincount(place, cells.mass)
        mean = np.bincount(place, cells.mass * cells.z) / total
        return cls(mean, np.bincount(place, cells.events), total)

    @property
    def rank(self):
        """The share of the samples below the middle of each cell."""
        return (np.cumsum(self.mass) - self.mass / 2) / self.mass.sum()

    def in_quantiles(self, n_cells: int) -> np.ndarray:
        """The quantile cell of each of these cells, numbered without gaps."""
        place = np.minimum((self.rank * n_cells).astype(int), n_cells - 1)
        return np.unique(place, return_inverse=True)[1]


def log_odds(line: dict | None, z: np.ndarray) -> np.ndarray:
    """Log-probabilities (n, C), or logits (n, 1), of such scores by a line; without one the scores.

    Beyond 3 spreads from the centre a score counts by 0.05 of its logarithm, so that outliers
    neither decide the line nor lose their order.
    """
    if line is None:
        return z
    t = (_centred(z) - line["centre"]) / line["spread"]
    v = line["slope"] * _compressed(t) + line["offset"]
    if z.shape[1] == 2:
        v = np.hstack([np.zeros_like(v), v])
    return v if z.shape[1] == 1 else log_softmax(v, axis=1)


def line_of(
    z, codes, weight, most_offset: float = 5.0, from_logits: bool = True
) -> tuple[dict | None, float]:
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
    if z.shape[1] == 2:
        z = _centred(z)
    if z.shape[1] == 1:
        cells = Cells.of(z[:, 0], codes, weight)
        w, outcomes = cells.z[:, None], np.stack([cells.mass - cells.events, cells.events], axis=1)
        quantiles = np.interp([0.05, 0.5, 0.95], cells.rank, cells.z)
        centre, spread = quantiles[1:2], _spread(w, quantiles)
    else:
        rows = slice(None, None, 1 + z.size // _MOST_ENTRIES)
        z, codes = z[rows], codes[rows]
        w, outcomes = _centred(z), weight[rows, None] * (codes[:, None] == np.arange(z.shape[1]))
        centre = np.median(w, axis=0)
        spread = _spread(w, np.quantile(w - centre, [0.05, 0.5, 0.95]))
    t = (w - centre) / spread
    outlying = bool(((np.abs(t) > _OUTLIER) & (np.abs(w) > _OUTLIER)).any())
    if z.shape[1] > 1 and not outlying and 1 <= spread <= _WIDE and np.ptp(centre) <= most_offset:
        return None, np.nan
    loss, slope, offset = _fit(_compressed(t), outcomes)
    line = {"centre": centre, "spread": spread, "slope": slope, "offset": offset}
    if outlying:
        return line, loss
    raw = offset - slope / spread * centre
    raw = raw - raw.mean() * (len(raw) > 1)
    plausible = slope / spread >= _SLOPES[0] or spread <= _WIDE  # else useless or reversed
    if plausible and slope / spread <= _SLOPES[1] and np.abs(raw).max() <= most_offset:
        return None, loss
    scores = w if z.shape[1] == 1 else z
    plain = _fit(scores, outcomes, most_offset)[0]
    if not from_logits:
        plain = min(plain, _fit(_smoothed(scores), outcomes, most_offset)[0])
    gain = (plain - loss) * outcomes.sum()
    return (line if gain > _CLEARLY + len(offset) else None), loss


def _centred(z):
    """A single column, of two their difference; of more less their mean."""
    if z.shape[1] == 2:
        return z[:, 1:] - z[:, :1]
    return z if z.shape[1] == 1 else z - z.mean(axis=1, keepdims=True)


def _spread(w, quantiles) -> float:
    """Half the distance of the outer quantiles, or of the ends where these are equal."""
    half = float(quantiles[2] - quantiles[0]) / 2
    return half or float(np.ptp(w)) / 2 or 1.0


def _compressed(t):
    inner = np.clip(t, -_BEND, _BEND)
    return inner + _RISE * np.sign(t) * np.log1p(np.abs(t - inner))


def _smoothed(z):
    """Log-odds of probabilities that are wrong now and then."""
    if z.shape[1] == 1:
        return np.log((expit(z) + _SMOOTHING) / (expit(-z) + _SMOOTHING))
    return np.log(np.exp(z) + _SMOOTHING)


def _fit(u, outcomes, most_offset=None) -> tuple[float, float, np.ndarray]:
    """Mean log loss, slope and offsets of the best line, or of the best within limits.

    Outcomes (n, C) are smoothed as by Platt, so that slopes stay finite where they are separable.
    """
    counts, n_free = outcomes.sum(axis=0), u.shape[1]
    targets = (np.diag(counts) + 1) / (counts + len(counts))[:, None]
    outcomes = outcomes @ targets / outcomes.sum()
    mass = outcomes.sum(axis=1)

    def loss(parameters):
        logits = np.zeros_like(outcomes)
        logits[:, -n_free:] = parameters[0] * u + parameters[1:]
        total = logsumexp(logits, axis=1, keepdims=True)
        errors = (mass[:, None] * np.exp(logits - total) - outcomes)[:, -n_free:]
        value = mass @ total[:, 0] - np.vdot(outcomes, logits)
        return value, np.append(np.vdot(errors, u), errors.sum(axis=0))

    if most_offset is None:
        bounds = [(0.1, None)] + n_free * [(None, None)]
    else:
        bounds = [_SLOPES] + n_free * [(-most_offset, most_offset)]
    start = np.append(1.0, np.zeros(n_free))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return float(found.fun), float(found.x[0]), found.x[1:]
