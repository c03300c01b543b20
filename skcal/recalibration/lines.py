"""Scores in another unit than log-odds, and the line by which they become log-odds.

Decision values, points of a scorecard and logits of another temperature are far from what penalties
and priors take for likely. A line is fitted to them first if it is clearly better than every line
of a slope from 1/8 to 4 and of small offsets, or if there are outliers. Narrow scores may have any
slope up to 4: a small or negative one says that they are useless or reversed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp, softmax

_SLOPES = (1 / 8, 4.0)  # of log-odds that maps take as they are
_WIDE = 12.0  # half the width of most scores, up to which any small slope is likely
_LEAST_SLOPE = 0.1  # of a line, per spread
_CLEARLY = 4.0  # log-likelihood
_SMOOTHING = 0.01
_BENDS = (1.0, 3.0, 10.0)  # spreads beyond which a score counts by 0.01 of its logarithm
_RISE = 0.01
_OUTLIER = 100.0  # and more than the last bend
_MOST_ENTRIES, _MOST_CELLS = 2**18, 1000


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
    z = _centred(z)
    if z.shape[1] == 1:
        cells = Cells.of(z[:, 0], codes, weight)
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
    if z.shape[1] > 1 and not outlying and 1 <= spread <= _WIDE and _is_balanced(z, outcomes):
        return None, np.nan
    bends = _BENDS if outlying else _BENDS[-1:]
    fits = [(*_fit_either_way(_compressed(t, bend), outcomes), bend) for bend in bends]
    loss, slope, offset, bend = min(fits, key=lambda fit: fit[0])
    if not outlying:
        slopes = (_SLOPES[0] if spread > _WIDE else None, _SLOPES[1])
        plain = [z] if from_logits else [z, _now_and_then_wrong(z)]
        gain = min(_fitted_line(u, outcomes, slopes, most_offset)[0] for u in plain) - loss
        if gain * outcomes.sum() <= _CLEARLY + len(offset):
            return None, loss
    names = ("centre", "spread", "slope", "offset", "bend")
    return dict(zip(names, (centre, spread, slope, offset, bend), strict=True)), loss


def _is_balanced(z, outcomes) -> bool:
    """Whether every class is about as frequent as the probabilities of these logits say."""
    counts = outcomes.sum(axis=0)
    surplus = outcomes.sum(axis=1) @ softmax(z, axis=1) - counts
    return bool((np.abs(surplus) <= counts / 16 + 3 * np.sqrt(counts + 1)).all())


def _centred(z):
    """A single column, of two their difference; of more less their mean."""
    if z.shape[1] == 2:
        return z[:, 1:] - z[:, :1]
    return z if z.shape[1] == 1 else z - z.mean(axis=1, keepdims=True)


def _compressed(t, bend):
    inner = np.clip(t, -bend, bend)
    return inner + _RISE * np.sign(t) * np.log1p(np.abs(t - inner))


def _now_and_then_wrong(z):
    """Log-odds of probabilities that are wrong now and then."""
    if z.shape[1] == 1:
        return np.log((expit(z) + _SMOOTHING) / (expit(-z) + _SMOOTHING))
    return np.log(softmax(z, axis=1) + _SMOOTHING)


def _fit_either_way(u, outcomes) -> tuple[float, float, np.ndarray]:
    """The best line, or minus the best falling one, which a map with a free slope turns round."""
    rising = _fitted_line(u, outcomes)
    if rising[1] > _LEAST_SLOPE:
        return rising
    loss, slope, offset = _fitted_line(u, outcomes, (None, -_LEAST_SLOPE))
    return (loss, -slope, -offset) if loss < rising[0] else rising


def _fitted_line(
    u, outcomes, slopes=(_LEAST_SLOPE, None), most_offset=np.inf
) -> tuple[float, float, np.ndarray]:
    """Mean log loss, slope and offsets of the best line, or of the best within limits.

    Outcomes (n, C) are smoothed as by Platt, so that slopes stay finite where they are separable.
    """
    counts, n_free = outcomes.sum(axis=0), u.shape[1]
    targets = (np.diag(counts) + 1) / (counts + len(counts))[:, None]
    outcomes = outcomes @ targets / outcomes.sum()
    mass = outcomes.sum(axis=1)
    data = [u, outcomes, mass]

    def loss(parameters):
        u, outcomes, mass = data
        logits = np.zeros_like(outcomes)
        logits[:, -n_free:] = parameters[0] * u + parameters[1:]
        total = logsumexp(logits, axis=1, keepdims=True)
        errors = (mass[:, None] * np.exp(logits - total) - outcomes)[:, -n_free:]
        value = mass @ total[:, 0] - np.vdot(outcomes, logits)
        return value, np.append(np.vdot(errors, u), errors.sum(axis=0))

    bounds = [slopes] + n_free * [(-most_offset, most_offset)]
    start = np.append(1.0, np.zeros(n_free))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    data.clear()  # older versions of scipy keep the function in a cycle
    return float(found.fun), float(found.x[0]), found.x[1:]
