"""Sums of Dirichlet kernels over the simplex, of Beta kernels over [0, 1], and their likelihood."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from skcal._validation import row_blocks
from skcal.functions.beta_sums import beta_sums, log_peak

# e^-100 is nothing beside e^0, also where weights of samples differ by a factor of 1e20.
_LOWEST_EXPONENT = -100.0
_FEW_ABOVE = 0.3  # share of higher exponents, up to which picking them is faster than taking all
_WEIGHT_BYTES = 2**20  # one block of weights stays in the processor's cache
_BLOCK_ROWS = 16  # but so many rows at least, or a product reads all training points for few
_CLASS_SUMS = 16  # from so many classes on, summing each by itself is faster than a product
# Stands for log 0: times any mass that matters it leaves a weight of 0, and 0 · log 0 = 0.
_LOG_ZERO = -1e280
_NEGLIGIBLE_MASS = 1e-100
_MANY_PAIRS = 2**18  # scalar sums over more pairs are interpolated
_ALONE_BELOW = 1e-2  # a sum without the sample itself below this is computed directly


def suits_interpolation(X, n_points):
    """Which rows are summed by interpolation: scalar ones inside (0, 1), where there are many."""
    many = X.shape[1] == 1 and len(X) * n_points > _MANY_PAIRS
    return (X[:, 0] > 0) & (X[:, 0] < 1) & many


def weighted_targets(outcomes, weight):
    """Weighted outcomes and the weight, whose kernel sums are numerator and denominator."""
    return weight[:, None] * np.column_stack([outcomes, np.ones(len(weight))])


def kernel_sums(X, points, bandwidths, limits=True):
    """Σ_j K_b(x; p_j) t_j, t the targets, up to a factor of each row.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d)
    points : TargetPoints
    bandwidths : sequence of float
    limits : bool, default=True
        Whether zeros of a row on which every point has mass mean limits; else such a row has a
        factor of 0, as :func:`is_limit` tells.

    Returns
    -------
    sums : ndarray of shape (n_bandwidths, n_samples, d + 1)
    log_factors : ndarray of shape (n_bandwidths, n_samples)
        The logarithms of what the sums are to be multiplied by.
    """
    by_class, n_points = points.by_class, len(points.weight)
    if by_class:
        present, starts = np.unique(points.codes, return_index=True)
    else:
        targets = weighted_targets(points.outcomes, points.weight)
    train = points.in_order()
    norms = [points.log_norm(bandwidth, train) for bandwidth in bandwidths]
    sums = np.zeros((len(bandwidths), len(X), points.outcomes.shape[1] + 1))
    log_factors = np.empty(sums.shape[:2])
    products_of = train.products if limits else train.raw_products
    blocks = list(train.row_blocks(len(X)))
    memory = np.empty((blocks[0].stop, n_points))  # fresh memory for each would cost as much
    for rows in blocks:
        products = products_of(simplex_points(X[rows]), out=memory[: rows.stop - rows.start])
        block, factors = sums[:, rows], log_factors[:, rows]
        for few in row_blocks(len(products), 8 * n_points, most=_WEIGHT_BYTES):
            for own, top, bandwidth, norm in zip(block, factors, bandwidths, norms, strict=True):
                weights, top[few] = _weights(products[few], bandwidth, norm)
                if by_class:
                    own[few, present] = np.add.reduceat(weights, starts, axis=1)
                else:
                    own[few] = weights @ targets
    if by_class:
        sums[..., -1] = sums[..., :-1].sum(axis=-1)
    return sums, log_factors


def is_limit(log_factors, bandwidth):
    """Which rows have zeros on which every point has mass."""
    return log_factors * bandwidth < _LOG_ZERO * _NEGLIGIBLE_MASS


class TargetPoints:
    """Training points with what is summed over them: outcomes and weights.

    Where labels of many classes are the outcomes, points are summed class by class.

    Attributes
    ----------
    proba, outcomes : ndarray of shape (k, d)
    weight : ndarray of shape (k,)
    by_class : bool
    codes : ndarray of shape (k,)
        Ascending classes of the points, if they are summed by class.
    """

    def __init__(self, proba, outcomes, weight):
        self.proba, self.outcomes, self.weight = proba, outcomes, weight
        self.by_class = outcomes.shape[1] >= _CLASS_SUMS and bool((outcomes.max(axis=1) == 1).all())
        if self.by_class:
            codes = outcomes.argmax(axis=1)
            self._order = np.argsort(codes, kind="stable")
            self.codes = codes[self._order]
        self._log_norms: dict[float, np.ndarray] = {}

    def in_order(self):
        """Return the points in the order in which they are summed."""
        return _TrainingPoints(self.proba[self._order] if self.by_class else self.proba)

    def log_norm(self, bandwidth, train):
        """Return what is added to the exponents, of points by class with the logs of weights.

        ``train`` is :meth:`in_order`. It is computed once: many samples of many classes have
        as many logarithms of Γ.
        """
        if bandwidth not in self._log_norms:
            norm = train.log_norm(bandwidth)
            self._log_norms[bandwidth] = (
                norm + np.log(self.weight[self._order]) if self.by_class else norm
            )
        return self._log_norms[bandwidth]


class _TrainingPoints:
    """Training points p_j; log K_b(z; p_j) = Σ_c p_c log z_c / b + log_norm, [P22]."""

    def __init__(self, proba):
        self.proba = simplex_points(proba)

    def log_norm(self, bandwidth):
        """Return lnΓ(Σ_c p_c / b + C) - Σ_c lnΓ(p_c / b + 1) of each point."""
        # Printed rows miss a sum of 1 by 1e-7, which moves the first term by more than rounding
        # when b is small.
        log_norm = np.empty(len(self.proba))
        for rows in row_blocks(len(log_norm), 8 * self.proba.shape[1], most=_WEIGHT_BYTES):
            concentration = self.proba[rows] / bandwidth + 1
            of_classes = gammaln(concentration).sum(axis=1)
            log_norm[rows] = gammaln(concentration.sum(axis=1)) - of_classes
        return log_norm

    def row_blocks(self, n_rows):
        n_train, n_classes = self.proba.shape
        size = _WEIGHT_BYTES * max(1, n_classes // _BLOCK_ROWS)  # the more work, the larger
        rows = max(_BLOCK_ROWS, size // (8 * n_train))
        return row_blocks(n_rows, 8 * n_train, most=8 * n_train * rows)

    def products(self, Z, without=None, out=None):
        """Return Σ_c p_c log z_c (n, k); about -1e280 stands for log 0.

        In rows where every point has mass on zeros of z they are the limits for z_c → 0: points
        with more than the least mass there get -inf. ``without`` (n,) holds for each row a point
        that gets -inf too, or -1.
        """
        z = simplex_points(Z)
        products = self.raw_products(z, out)
        without = np.full(len(z), -1) if without is None else without
        left_out = np.flatnonzero(without >= 0)
        products[left_out, without[left_out]] = -np.inf
        limits = np.flatnonzero(products.max(axis=1) < _LOG_ZERO * _NEGLIGIBLE_MASS)
        if len(limits):
            zero = z[limits] == 0
            mass = zero.astype(np.float64) @ self.proba.T
            mass[products[limits] == -np.inf] = np.inf
            least = mass.min(axis=1, keepdims=True) + z.shape[1] * np.finfo(np.float64).eps
            inner = self.raw_products(np.where(zero, 1.0, z[limits]))
            products[limits] = np.where(mass > least, -np.inf, inner)
        return products

    def raw_products(self, z, out=None):
        """Return Σ_c p_c log z_c for rows (n, C)."""
        log_z = np.log(z, out=np.full_like(z, _LOG_ZERO), where=z > 0)
        return np.matmul(log_z, self.proba.T, out=out)


def _weights(products, bandwidth, log_norm):
    """Kernel weights (n, k), the largest of each row scaled to 1, and logs of the scales."""
    exponents = products / bandwidth
    exponents += log_norm
    top = exponents.max(axis=1)
    return _exp_below(exponents, top), top


def _exp_below(values, top):
    """exp(values - top) of contiguous rows; 0 stands for what is nothing beside 1."""
    values -= top[:, None]
    counts = values > _LOWEST_EXPONENT
    if np.count_nonzero(counts) > _FEW_ABOVE * values.size:
        np.maximum(values, _LOWEST_EXPONENT, out=values)
        np.exp(values, out=values)
        values *= counts
        return values
    weights, places = np.zeros_like(values), np.flatnonzero(counts)
    weights.ravel()[places] = np.exp(values.ravel()[places])
    return weights


def simplex_points(proba: np.ndarray) -> np.ndarray:
    """The point of the simplex, float64: (p, 1 - p) for a single column."""
    proba = proba.astype(np.float64)
    return np.hstack([proba, 1 - proba]) if proba.shape[1] == 1 else proba


def leave_one_out_residuals(proba, outcomes, weight, bandwidth) -> np.ndarray:
    """ĝ at each sample from all samples but one copy of itself.

    Parameters
    ----------
    proba, outcomes : ndarray of shape (n_samples, d)
    weight : ndarray of shape (n_samples,)
        Positive; a weight of 2 counts as a repeated row. At least two samples.
    bandwidth : float

    Returns
    -------
    residuals : ndarray of shape (n_samples, d)
    """
    targets = weighted_targets(outcomes, weight)
    one_copy = targets / np.maximum(weight, 1)[:, None]
    train = _TrainingPoints(proba)
    norm = train.log_norm(bandwidth)
    sums, _, alone = _sums_without_self(proba, weight, targets, bandwidth, train, norm)
    for block in train.row_blocks(len(alone)):
        rows = alone[block]
        products = train.products(proba[rows], np.where(weight[rows] <= 1, rows, -1))
        weights, _ = _weights(products, bandwidth, norm)
        weights[products == -np.inf] = 0.0
        sums[rows] = weights @ targets
        sums[rows] -= weights[np.arange(len(rows)), rows][:, None] * one_copy[rows]
    return sums[:, :-1] / sums[:, -1:] - proba


def _sums_without_self(proba, weight, targets, bandwidth, train, norm):
    """Kernel sums at each sample without one copy of itself, but for those that are alone.

    Returns
    -------
    sums : ndarray of shape (n_samples, n_targets)
    log_scale : ndarray of shape (n_samples,)
        The logarithm of what the sums are to be multiplied by.
    alone : ndarray of int
        The samples whose sums are not set.
    """
    one_copy = targets / np.maximum(weight, 1)[:, None]
    sums, log_scale = np.empty(targets.shape), np.empty(len(proba))
    fast = np.flatnonzero(suits_interpolation(proba, len(proba)))
    if len(fast):
        points = simplex_points(proba)
        [[sums[fast]]] = beta_sums(points[fast], [(points, targets)], [bandwidth])
        sums[fast] -= one_copy[fast]
        fast = fast[sums[fast, -1] > _ALONE_BELOW * one_copy[fast, -1]]
        log_scale[fast] = log_peak(points[fast], bandwidth) + gammaln(1 / bandwidth + 2)
    slow = np.delete(np.arange(len(proba)), fast)
    alone, repeated, first, place = _repeated(proba, weight, slow)
    if len(repeated):
        of_values, own, top = (np.empty((len(first), k)) for k in (targets.shape[1], 1, 1))
        for block in train.row_blocks(len(first)):
            rows = first[block]
            exponents = train.raw_products(simplex_points(proba[rows])) / bandwidth + norm
            top[block, 0] = exponents.max(axis=1)
            weights = _exp_below(exponents, top[block, 0])
            of_values[block], own[block, 0] = weights @ targets, weights[np.arange(len(rows)), rows]
        sums[repeated] = of_values[place] - own[place] * one_copy[repeated]
        log_scale[repeated] = top[place, 0]
    return sums, log_scale, alone


def _repeated(proba, weight, rows):
    """Split rows into those that are alone and those that share their only feature with others.

    Sums at a value are computed once for all its samples, of which there may be many at 0 and 1.

    Returns
    -------
    alone, repeated : ndarray of int
    first : ndarray of int
        A row of each repeated value.
    place : ndarray of int
        The position in ``first`` of each repeated row.
    """
    none = rows[:0]
    if proba.shape[1] > 1:
        return rows, none, none, none
    _, group = np.unique(proba[rows, 0], return_inverse=True)
    copy = np.minimum(weight[rows], 1)
    shared = np.bincount(group, weight[rows], minlength=1)[group] - copy > _ALONE_BELOW * copy
    _, first, place = np.unique(group[shared], return_index=True, return_inverse=True)
    repeated = rows[shared]
    return rows[~shared], repeated, repeated[first], place


def loo_log_likelihoods(proba, bandwidths, weight) -> np.ndarray:
    """Leave-one-out log likelihood of predictions under each bandwidth.

    Parameters
    ----------
    proba : ndarray of shape (n_samples, d)
    bandwidths : ndarray of shape (n_bandwidths,)
    weight : ndarray of shape (n_samples,)
        Positive; a weight of 2 counts as a repeated row, of which one copy is left out.

    Returns
    -------
    likelihood : ndarray of shape (n_bandwidths,)
        Points whose density is 0 under every bandwidth, because no other point shares their
        zeros, say nothing about it and are left out.
    """
    if weight.sum() <= 1 or len(weight) < 2:
        raise ValueError(
            "bandwidth='loo' needs at least 2 training samples whose weights sum to more than 1 "
            f"(n_samples = {len(weight)}, sum {weight.sum():.6g})."
        )
    return np.array([_loo_log_likelihood(proba, b, weight) for b in bandwidths])


def _loo_log_likelihood(proba, bandwidth, weight) -> float:
    train = _TrainingPoints(proba)
    norm = train.log_norm(bandwidth)
    density, logs, alone = _sums_without_self(
        proba, weight, weight[:, None], bandwidth, train, norm
    )
    known = np.delete(np.arange(len(proba)), alone)
    logs[known] += np.log(density[known, 0])
    for block in train.row_blocks(len(alone)):
        rows = alone[block]
        exponents = train.raw_products(simplex_points(proba[rows])) / bandwidth + norm
        logs[rows] = _loo_log_densities(exponents, weight, rows)
    return float(weight @ logs - weight.sum() * np.log(weight.sum() - 1))


def _loo_log_densities(values, weight, rows):
    """Log of the sums without one copy of each row; 0 where no other point shares its zeros."""
    mass = np.tile(weight, (len(values), 1))
    mass[np.arange(len(rows)), rows] = np.maximum(weight[rows] - 1, 0)
    values[mass == 0] = 2 * _LOG_ZERO
    top = values.max(axis=1)
    density = np.einsum("ij,ij->i", mass, _exp_below(values, top))
    isolated = top < _LOG_ZERO * _NEGLIGIBLE_MASS
    logs = np.log(density, out=np.zeros_like(density), where=~isolated)
    return np.where(isolated, 0.0, logs + top)
