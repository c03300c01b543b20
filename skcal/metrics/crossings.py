"""Signed sums of residuals with few changes of sign: an upper limit of a mean absolute gap.

For a pattern of signs s(p) the mean of (y - p) s(p) estimates at most the mean absolute gap, and
just that if s is the sign of the gap. T_k is the largest such mean over patterns that change their
sign at most k times. T_k plus a half width is an upper limit for all curves that cross the diagonal
at most k times: the pattern of the true gap is fixed, so its noise is that of one mean. This needs
a half width that is no smaller than that of the true pattern. That of any pattern is as good for
independent samples. Groups add up in a constant pattern and cancel in an alternating one, so the
limit is the largest of T_j plus the half width of the pattern that attains T_j, for j = 0, …, k.
"""

from __future__ import annotations

import numpy as np

#: Changes of sign whose T_k are compared.
CHANGES = (0, 1, 2, 3, 4, 6, 9, 14, 22, 34)
# Mean and standard deviation of T_k of a Brownian motion on [0, 1]: 4,000 to 8,000 paths of 256,
# 1,024 and 4,096 steps, of which each change of sign misses _OF_STEPS standard deviations of a step
# (Siegmund 1985).
_MEANS = np.array([0.80, 1.97, 2.77, 3.40, 3.94, 4.84, 5.95, 7.44, 9.35, 11.63])
_DEVIATIONS = np.array([0.603, 0.580, 0.577, 0.576, 0.578, 0.579, 0.580, 0.581, 0.582, 0.584])
_OF_STEPS = 1.165
_OF_ALL = 0.25  # changes for each step, up to which that is so
# Standard errors by which more changes of sign must be larger to be evident, and by which others
# may be less evident than the best; how much faster than that an upper limit grows.
_EVIDENT, _AS_GOOD, _TIMES = 0.7, 0.5, 2.5


def largest_signed_sums(steps: np.ndarray, most: int) -> np.ndarray:
    """T_0, …, T_most (most + 1, …): the largest sums of steps times signs that change k times.

    Of steps (…, n_steps). Signs may change less often than that.
    """
    path = np.zeros((*steps.shape[:-1], steps.shape[-1] + 1))
    np.cumsum(steps, axis=-1, out=path[..., 1:])
    twice, end = 2 * path, path[..., -1]
    best = np.empty((2, most + 1, *end.shape))
    for of_first, sign in zip(best, (1, -1), strict=True):
        of_first[0], value = sign * end, sign * twice  # values as in _values, plus sign times path
        for k in range(1, most + 1):
            sign = -sign
            np.maximum.accumulate(value, axis=-1, out=value)
            of_first[k] = value[..., -1] + sign * end
            (np.add if sign > 0 else np.subtract)(value, twice, out=value)
    return np.maximum.accumulate(best.max(axis=0), axis=0)


def largest_patterns(steps: np.ndarray, changes) -> list[np.ndarray]:
    """Signs of the steps that attain T_k, for each k of the changes."""
    path = np.append(0.0, np.cumsum(steps))
    by_first = {first: list(_values(path, first, max(changes))) for first in (1, -1)}
    sums = [(row[-1], -k, -first) for first, rows in by_first.items() for k, row in enumerate(rows)]
    patterns = []
    for most in changes:
        _, k, first = max(each for each in sums if each[1] >= -most)
        k, first, values = -k, -first, by_first[-first]
        signs, end = np.empty(len(steps)), len(steps)
        for change in range(k, -1, -1):
            sign = first * (-1) ** change
            start = int(np.argmax((values[change - 1] - sign * path)[: end + 1])) if change else 0
            signs[start:end], end = sign, start
        patterns.append(signs)
    return patterns


def _values(path, sign, most):
    """Yield for each k the largest signed sum up to each place, that starts with this sign."""
    value = sign * path
    yield value
    for _ in range(most):
        sign = -sign
        value = np.maximum.accumulate(value - sign * path, axis=-1) + sign * path
        yield value


def noise_of_sums(variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of T_k, k of CHANGES, of independent steps of these variances."""
    total = variances.sum()
    if total <= 0:
        return np.zeros(len(CHANGES)), np.zeros(len(CHANGES))
    changes, coarseness = np.array(CHANGES), (variances**1.5).sum() / total**1.5
    missed = np.where(changes * coarseness**2 < _OF_ALL, _OF_STEPS * changes * coarseness, 0)
    of_all = np.sqrt(2 / np.pi * variances).sum()  # the mean of the sum of all absolute steps
    means = np.minimum(np.sqrt(total) * (_MEANS - missed), max(of_all, np.sqrt(total)))
    return means, np.sqrt(total) * _DEVIATIONS


def noise_of_fine_sums(variance: float) -> np.ndarray:
    """Mean of T_k, k of CHANGES, of very many small steps of this variance together."""
    return np.sqrt(variance) * _MEANS


def excess_of_more_changes(sums, means, deviation: float, changes: int) -> np.ndarray:
    """What to add to T_k where more changes of sign are evident.

    Parameters
    ----------
    sums : ndarray of shape (n_changes, …)
        T_k for k of CHANGES.
    means : ndarray of shape (n_changes,)
        Means of those of noise alone.
    deviation : float
        The standard deviation of a mean of signed residuals.
    changes : int
        k.
    """
    gains = (sums.T - means).T
    more = np.array(CHANGES) > changes
    if not more.any():
        return np.zeros(sums.shape[1:])
    best = gains[more].max(axis=0)
    excess = best - at_changes(gains, changes) - _EVIDENT * deviation
    as_good = gains[more] >= best - _AS_GOOD * deviation
    covering = np.where(as_good, sums[more], np.inf).min(axis=0) - at_changes(sums, changes)
    return np.clip(_TIMES * excess, 0, np.maximum(covering, 0))


def at_changes(values: np.ndarray, changes: int) -> np.ndarray:
    """Values (n_changes, …), for k of CHANGES, at another k; those of the last k beyond it."""
    after = int(np.searchsorted(CHANGES, changes))
    if after == len(CHANGES) or CHANGES[after] == changes:
        return values[min(after, len(CHANGES) - 1)]
    below, above = CHANGES[after - 1 : after + 1]
    part = (changes - below) / (above - below)
    return (1 - part) * values[after - 1] + part * values[after]
