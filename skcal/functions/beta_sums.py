"""Sums of Beta kernels over [0, 1] in near-linear time.

For a query z and points p_j with charges q_j the sums are Σ_j q_j K_b(z; p_j) / K_b(z; z). On the
scale θ = arcsin √p the kernel is close to a Gaussian of standard deviation √b / 2, whatever p: one
unit here. Both variables are interpolated by Chebyshev polynomials, piece by piece: points of a
unit give their charges to a few nodes, and sums at the nodes of a unit serve all its queries. Close
to 0 and 1, where θ no longer measures the kernel, pieces shrink geometrically for points and are
steps of the logit for queries. Kernels further away than rounding shows are left out, and queries
far from every point, where the sums fall too steeply to be interpolated, are summed directly over
the few points that matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy.linalg import block_diag
from scipy.special import expit, gammaln

_NODES = 18  # of a piece; error 1e-10 where slopes are at most 6 a unit
_REACH = 16.0  # units; with exponents of at most -x²/4, less than 1e-22 of the sums is beyond
_UNITS_AWAY = 5  # units, or exponents in the tails, to the nearest point, if sums are interpolated
_TAIL_PIECE = 0.5  # of logit z, where z or 1 - z is below b
_HALVINGS = 14  # of the first and of the last unit of the points
_BATCH = 64
_LEAST_EXPONENT = -45.0  # e^-45 = 3e-20 beside the largest


def beta_sums(
    Z: np.ndarray, sets: Sequence[tuple[np.ndarray, np.ndarray]], bandwidths: Sequence[float]
) -> Iterator[np.ndarray]:
    """Σ_j q_j K_b(z; p_j) / K_b(z; z); at queries far from every point, up to a factor each.

    Parameters
    ----------
    Z : ndarray of shape (n, 2)
        Queries (z, 1 - z), both positive.
    sets : sequence of (ndarray of shape (k, 2), ndarray of shape (k, q))
        Points (p, 1 - p) and their charges, of which each set has sums of its own.
    bandwidths : sequence of float
        Values of b.

    Yields
    ------
    sums : ndarray of shape (n_sets, n, q)
        The sums for each bandwidth; of several sets 0 at queries far from every point.

    Notes
    -----
    O(n + k + s²) time for each bandwidth, s = min(k, 18 · 3.2 / √b) and less where b is small.
    Relative error below 1e-9 for non-negative charges. A query that is one of the points is far
    from none, be they of whatever set.
    """
    P = np.concatenate([points for points, _ in sets])
    fewer = sets
    if len(bandwidths) > 1 or len(sets) > 1:
        # What stands for the points at the least bandwidth does so at the others.
        fewer = [_compress(*one, min(bandwidths)) for one in sets]
    charges = block_diag(*(own for _, own in fewer))  # in columns of each set
    joined = np.concatenate([points for points, _ in fewer]), charges
    order = np.argsort(Z[:, 0])  # neighbours share a piece
    Z, place = Z[order], np.argsort(order)
    distinct = None
    for bandwidth, near in zip(bandwidths, are_near(Z, P, bandwidths), strict=True):
        sums = np.empty((len(Z), charges.shape[1]))
        if near.any():
            points = _ChargedPoints(*_compress(*joined, bandwidth), bandwidth)
            sums[near] = _interpolated(Z[near], points, bandwidth)
        if not near.all():
            sums[~near] = 0
        if not near.all() and len(sets) == 1:
            distinct = _distinct_points(*sets[0]) if distinct is None else distinct
            sums[~near] = _direct(Z[~near], _ChargedPoints(*distinct, bandwidth))
        yield sums[place].reshape(len(Z), len(sets), -1).swapaxes(0, 1)


def are_near(Z: np.ndarray, P: np.ndarray, bandwidths: Sequence[float]) -> Iterator[np.ndarray]:
    """For each bandwidth whether a point is close to each query.

    That is in units and, in the tails, in exponents.
    """
    of_queries, logit, angle = _angle(Z), _logit(Z), _angle(P)
    least = np.where(logit < 0, P[:, 0].min(), P[:, 1].min())
    within = _UNITS_AWAY - 1  # whole units next to the query's own
    for bandwidth in bandwidths:
        unit = np.sqrt(bandwidth) / 2
        occupied = np.bincount((angle / unit).astype(np.intp)) > 0
        below = np.concatenate([[0], np.cumsum(occupied)])
        own = (of_queries / unit).astype(np.intp)
        start = np.clip(own - within, 0, len(occupied))
        stop = np.clip(own + within + 1, 0, len(occupied))
        steep = (np.abs(logit) + _edge_logit(bandwidth)) * least > _UNITS_AWAY * bandwidth
        yield (below[stop] > below[start]) & ~steep


def _logit(Z: np.ndarray) -> np.ndarray:
    return np.log(Z[:, 0]) - np.log(Z[:, 1])


def _edge_logit(bandwidth: float) -> float:
    """The logit of b, at most 0: tails begin there."""
    edge = min(bandwidth, 0.5)
    return np.log(edge) - np.log1p(-edge)


def _angle(P: np.ndarray) -> np.ndarray:
    return np.arctan2(np.sqrt(P[:, 0]), np.sqrt(P[:, 1]))


class _ChargedPoints:
    """Points (p, 1 - p) in ascending order with charges; log K is linear in (log z, log(1 - z))."""

    def __init__(self, P: np.ndarray, charges: np.ndarray, bandwidth: float) -> None:
        self.angle, self.charges = _angle(P), charges
        self.slopes, self.norm = P / bandwidth, _log_norm(P, bandwidth)


def log_peak(Z: np.ndarray, bandwidth: float) -> np.ndarray:
    """Logarithm of K_b(z; z) for each query (z, 1 - z), without the factor Γ(1/b + 2)."""
    return np.einsum("ij,ij->i", Z, np.log(Z)) / bandwidth + _log_norm(Z, bandwidth)


def _log_norm(P: np.ndarray, bandwidth: float) -> np.ndarray:
    return -gammaln(P / bandwidth + 1).sum(axis=1)


def _chebyshev(t: np.ndarray) -> Iterator[np.ndarray]:
    """T_0(t), T_1(t), … one after the other."""
    before, now = np.ones_like(t), t
    for _ in range(_NODES):
        yield before
        before, now = now, 2 * t * now - before


_ROOTS = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
# Values at the roots, or charges of T_0, T_1, …, to the coefficients, or charges at the roots.
_TO_ROOTS = np.array([*_chebyshev(_ROOTS)]) * np.r_[1.0, np.full(_NODES - 1, 2.0)][:, None] / _NODES


def _compress(
    P: np.ndarray, charges: np.ndarray, bandwidth: float
) -> tuple[np.ndarray, np.ndarray]:
    """Replace the points of every crowded unit by Chebyshev nodes with charges; ascending."""
    # Mirrored points p > 1/2 keep the relative accuracy of 1 - p.
    mirrored = P[:, 0] > 0.5
    parts = []
    for side, rows in (([0, 1], ~mirrored), ([1, 0], mirrored)):
        if rows.any():
            small, sums = _compress_half(P[rows, side[0]], charges[rows], bandwidth)
            parts.append((np.column_stack([small, 1 - small])[:, side], sums))
    P, charges = (np.vstack(part) for part in zip(*parts, strict=True))
    order = np.argsort(_angle(P), kind="stable")
    return P[order], charges[order]


def _compress_half(
    p: np.ndarray, charges: np.ndarray, bandwidth: float
) -> tuple[np.ndarray, np.ndarray]:
    """Compress points p ≤ 1/2."""
    edges = _piece_edges(bandwidth)
    piece = np.minimum(np.searchsorted(edges, p, side="right") - 1, len(edges) - 2)
    crowded, pieces, group = _crowded(piece)
    if not len(pieces):
        return p, charges
    low, high = edges[pieces], edges[pieces + 1]
    t = np.clip((2 * p[crowded] - low[group] - high[group]) / (high - low)[group], -1, 1)
    moments = np.empty((len(pieces), _NODES, charges.shape[1]))
    inside = charges[crowded]
    for order, values in enumerate(_chebyshev(t)):
        for k, charge in enumerate(inside.T):
            moments[:, order, k] = np.bincount(group, values * charge, minlength=len(pieces))
    nodes = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * _ROOTS
    at_nodes = np.einsum("ok,gom->gkm", _TO_ROOTS, moments).reshape(-1, charges.shape[1])
    return np.append(p[~crowded], nodes), np.vstack([charges[~crowded], at_nodes])


def _crowded(piece: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which items share their piece with many, those pieces, and the place of each such item."""
    many = np.bincount(piece) > _NODES
    pieces = np.flatnonzero(many)
    place = np.zeros(len(many), dtype=np.intp)
    place[pieces] = np.arange(len(pieces))
    crowded = many[piece]
    return crowded, pieces, place[piece[crowded]]


def _piece_edges(bandwidth: float) -> np.ndarray:
    """Units of θ up to p = 1/2, the first one halved again and again."""
    unit = np.sqrt(bandwidth) / 2
    whole = np.sin(np.append(np.arange(unit, np.pi / 4, unit), np.pi / 4)) ** 2
    return np.concatenate([[0.0], whole[0] * 0.5 ** np.arange(_HALVINGS, 0, -1), whole])


def _interpolated(Z: np.ndarray, points: _ChargedPoints, bandwidth: float) -> np.ndarray:
    """Sums at queries close to points, from Chebyshev nodes where many queries share a piece."""
    logit = _logit(Z)
    crowded, pieces, group = _crowded(_target_pieces(_angle(Z), logit, bandwidth))
    sums = np.empty((len(Z), points.charges.shape[1]))
    sums[~crowded] = _windowed(Z[~crowded], points, bandwidth)
    if len(pieces):
        sums[crowded] = _from_nodes(logit[crowded], group, points, bandwidth)
    return sums


def _target_pieces(angle: np.ndarray, logit: np.ndarray, bandwidth: float) -> np.ndarray:
    """Units of θ where z and 1 - z exceed b; beyond, steps of the logit."""
    tail = np.floor((np.abs(logit) + _edge_logit(bandwidth)) / _TAIL_PIECE)  # ≥ 0 in the tails
    bulk = np.floor(angle / (np.sqrt(bandwidth) / 2))
    beyond = bulk.max(initial=0) + 1 + 2 * np.maximum(tail, 0) + (logit > 0)
    return np.where(tail < 0, bulk, beyond).astype(np.intp)


def _from_nodes(
    logit: np.ndarray, group: np.ndarray, points: _ChargedPoints, bandwidth: float
) -> np.ndarray:
    count = group.max() + 1
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, group, logit)
    np.maximum.at(high, group, logit)
    width = np.maximum(high - low, np.finfo(np.float64).tiny)
    nodes = ((low + high)[:, None] / 2 + width[:, None] / 2 * _ROOTS).ravel()
    values = _windowed(np.column_stack([expit(nodes), expit(-nodes)]), points, bandwidth)
    coefficients = np.einsum("ok,gkm->gmo", _TO_ROOTS, values.reshape(count, _NODES, -1))
    t = np.clip((2 * logit - (low + high)[group]) / width[group], -1, 1)
    order = np.argsort(group, kind="stable")
    ends = np.searchsorted(group[order], np.arange(count + 1))
    sums = np.empty((values.shape[1], len(logit)))
    for first in range(0, count, _BATCH):
        batch = np.arange(first, min(first + _BATCH, count))
        start = ends[first]
        polynomials = np.array([*_chebyshev(t[order[start : ends[batch[-1] + 1]]])])
        for g in batch:
            own = slice(ends[g], ends[g + 1])
            sums[:, own] = coefficients[g] @ polynomials[:, own.start - start : own.stop - start]
    result = np.empty(sums.T.shape)
    result[order] = sums.T
    return result


def _windowed(Z: np.ndarray, points: _ChargedPoints, bandwidth: float) -> np.ndarray:
    """Sums over the points within reach, in batches of neighbouring queries."""
    angle, reach = _angle(Z), _REACH * np.sqrt(bandwidth) / 2
    order = np.argsort(angle, kind="stable")
    log_z = np.log(Z)
    top = log_peak(Z, bandwidth)
    sums = np.empty((len(Z), points.charges.shape[1]))
    for start in range(0, len(Z), _BATCH):
        rows = order[start : start + _BATCH]
        first = np.searchsorted(points.angle, angle[rows[0]] - reach)
        last = np.searchsorted(points.angle, angle[rows[-1]] + reach, side="right")
        exponents = log_z[rows] @ points.slopes[first:last].T
        exponents += points.norm[first:last]
        exponents -= top[rows, None]
        sums[rows] = np.exp(exponents, out=exponents) @ points.charges[first:last]
    return sums


def _distinct_points(P: np.ndarray, charges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ascending points with the sums of their charges."""
    _, first, group = np.unique(P[:, 0], return_index=True, return_inverse=True)
    return P[first], np.column_stack([np.bincount(group, charge) for charge in charges.T])


def _direct(Z: np.ndarray, points: _ChargedPoints) -> np.ndarray:
    """Sums over the points that matter; log K is concave in p, so they are neighbours."""
    log_z, last = np.log(Z), len(points.norm) - 1

    def exponent(index: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", log_z, points.slopes[index]) + points.norm[index]

    def rises(index: np.ndarray) -> np.ndarray:
        return exponent(np.minimum(index + 1, last)) > exponent(index)

    zero, end = np.zeros(len(Z), dtype=np.intp), np.full(len(Z), last)
    peak = _first_false(rises, zero, end)
    least = exponent(peak) + _LEAST_EXPONENT
    first = _first_false(lambda index: exponent(index) < least, zero, peak)
    stop = _first_false(lambda index: exponent(index) >= least, peak, end) + 1
    sums = np.empty((len(Z), points.charges.shape[1]))
    for row, (start, end) in enumerate(zip(first, stop, strict=True)):
        exponents = points.slopes[start:end] @ log_z[row] + points.norm[start:end]
        sums[row] = np.exp(exponents - exponents.max()) @ points.charges[start:end]
    return sums


def _first_false(
    holds: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Bisect for the first index in [low, high) at which ``holds``, true at first, is false."""
    while (unsure := low < high).any():
        middle = (low + high) // 2
        true = holds(middle)
        low = np.where(unsure & true, middle + 1, low)
        high = np.where(unsure & ~true, middle, high)
    return low
