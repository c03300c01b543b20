"""How strongly the outcomes of groups of samples depend on each other, and what follows from it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, logit

_SAME_FIT = 1e-9  # of a log-likelihood, for each sample
_LEAST_CHANCE = 1e-300  # of an outcome that happened
_SHARED_ROOTS, _LARGEST_ROOT = 9, 1 - 1e-6  # values of √λ that are compared first, and the largest


class Dependence:
    """How strongly the outcomes of one group depend on each other, λ in [0, 1].

    Each group has a uniform number; each of its samples takes that with probability √λ, else a
    number of its own, and has the outcome in whose part of [0, 1] its number lies. Two samples of a
    group then have λ times the covariance of samples that surely share their number, which is the
    largest that their predictions allow: of equal predictions that of shared labels.

    λ is the larger of two estimates. The covariance of pairs within groups knows nothing of labels
    that are shared where hardly any group has an event; the likelihood does, but it rests on the
    whole law. It is that of predictions whose log-odds are shifted so that as many events are
    expected as were seen, since a bias would look like dependence.

    Parameters
    ----------
    chance : ndarray of shape (n_samples, m)
        Predictions, of single probabilities one column.
    residuals : ndarray of shape (n_samples, m)
    codes : ndarray of int of shape (n_samples,)
        The group of each sample.
    of_labels : bool
        Whether outcomes are labels; of shares there is no likelihood.
    """

    def __init__(self, chance, residuals, codes, of_labels=True):
        self._data: Any = chance, residuals, codes
        self._of_labels = of_labels

    @cached_property
    def strength(self) -> float:
        """λ, estimated when it is first asked for."""
        (chance, residuals, codes), self._data = self._data, None
        chance, residuals = (part.astype(np.float64) for part in (chance, residuals))
        together = np.bincount(codes)[codes] > 1
        if not together.any():
            return 0.0
        chance, residuals = chance[together], residuals[together]
        codes = np.unique(codes[together], return_inverse=True)[1]
        seen = self.covariance(chance, residuals, codes)
        return max(seen, self.most_likely(chance, residuals, codes)) if self._of_labels else seen

    @staticmethod
    def covariance(chance, residuals, codes) -> float:
        """Σ over pairs within groups of δ_i δ_j, over what it were of shared numbers."""
        if chance.shape[1] > 1:  # whether the class is one of the first k
            chance, residuals = (np.cumsum(v, axis=1)[:, :-1] for v in (chance, residuals))
            chance = chance.clip(0, 1)
        ones, seen, most = np.ones(len(codes)), 0.0, 0.0
        for p, delta in zip(chance.T, residuals.T, strict=True):
            seen += (np.bincount(codes, delta) ** 2).sum() - delta @ delta
            most += covariance_of_shared(ones, p, codes) - p @ (1 - p)
        return float(np.clip(seen / most, 0, 1)) if most > 0 else 0.0

    @staticmethod
    def most_likely(chance, residuals, codes) -> float:
        """λ of the largest likelihood."""
        if chance.shape[1] == 1:
            p, happened = chance[:, 0], chance[:, 0] + residuals[:, 0] > 0.5
            p = _of_as_many_events(p, happened.sum())
            low, high = np.where(happened, 0, p), np.where(happened, p, 1)
        else:
            column = (chance + residuals).argmax(axis=1)
            ends = np.cumsum(chance, axis=1) / chance.sum(axis=1, keepdims=True)
            high = np.take_along_axis(ends, column[:, None], axis=1)[:, 0]
            low = high - np.take_along_axis(chance, column[:, None], axis=1)[:, 0]
        likelihood = _Likelihood(low, high, codes)
        grid = np.linspace(0, _LARGEST_ROOT, _SHARED_ROOTS)
        values = np.array([likelihood(share) for share in grid])
        best = int(np.argmax(values - _SAME_FIT * len(codes) * (grid > 0)))
        if best in (0, _SHARED_ROOTS - 1):
            return float(np.rint(grid[best]))
        bracket = grid[best - 1], grid[best + 1]
        share = minimize_scalar(lambda s: -likelihood(s), bounds=bracket, method="bounded").x
        return float(share**2)


def _of_as_many_events(p, n_events):
    """Predictions whose log-odds are shifted so that their sum is a number of events."""
    free = (p > 0) & (p < 1)
    events = n_events - np.count_nonzero(p == 1)
    if not 0 < events < np.count_nonzero(free):
        return p
    z, shifted = logit(p[free]), p.copy()
    reach = np.abs(z).max() + 40
    shift = brentq(lambda a: expit(z + a).sum() - events, -reach, reach)
    shifted[free] = expit(z + shift)
    return shifted


class _Likelihood:
    """The log-likelihood of √λ, for the parts [low, high) of [0, 1] of the outcomes that happened.

    Given the number u of its group a sample has its outcome with probability s 1(low ≤ u < high) +
    (1 - s) (high - low), s = √λ. The integral of their product over u is a sum over the pieces
    between the ends of all parts, in which it does not change.
    """

    def __init__(self, low, high, codes):
        n_groups = codes.max() + 1
        self.chance = np.maximum(high - low, _LEAST_CHANCE)
        ends = np.concatenate([low, high, np.zeros(n_groups), np.ones(n_groups)])
        group = np.concatenate([codes, codes, np.arange(n_groups), np.arange(n_groups)])
        self.order = np.lexsort((ends, group))
        length = np.diff(ends[self.order], append=0)
        self.kept = np.flatnonzero(length > 0)
        self.length = np.log(length[self.kept])
        self.group = group[self.order][self.kept]
        self.starts = np.flatnonzero(np.diff(self.group, prepend=-1))

    def __call__(self, share) -> float:
        """Return the log-likelihood."""
        alone = (1 - share) * self.chance
        gain = np.log1p(share / alone)
        none = np.zeros(2 * len(self.starts))
        path = np.cumsum(np.concatenate([gain, -gain, none])[self.order])
        terms = self.length + path[self.kept]
        most = np.maximum.reduceat(terms, self.starts)
        sums = np.add.reduceat(np.exp(terms - most[self.group]), self.starts)
        return float(np.log(alone).sum() + (most + np.log(sums)).sum())


def covariance_of_shared(values: np.ndarray, chance: np.ndarray, codes: np.ndarray) -> Any:
    """Covariance of Σ_i values_i 1(u_g < chance_i), u_g the uniform number of the group of i.

    Of values (n_samples, m) a matrix, of (n_samples,) a number.
    """
    _, step, above, mean = _steps_of_shared(values, chance, codes)
    return (step * above.T) @ above - mean.T @ mean


def variances_of_shared(values: np.ndarray, chance: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Variance of the same sum over each group, (n_groups,); ``codes`` must leave out no group."""
    first, step, above, mean = _steps_of_shared(values, chance, codes)
    return np.add.reduceat(step * above**2, first) - mean**2


def _steps_of_shared(values, chance, codes):
    """The variance of a group is ∫ v(u)² du - mean², v(u) the sum of values over chance_i > u.

    Returned are the first sample of each group, the lengths of the steps of v, v on them, and the
    means, in the order of groups and chances.
    """
    order = np.lexsort((chance, codes))
    group, p, values = codes[order], chance[order], values[order]
    first = np.flatnonzero(np.diff(group, prepend=-1))
    sizes = np.diff(first, append=len(group))
    step = np.diff(p, prepend=0.0)
    step[first] = p[first]
    before = np.cumsum(values, axis=0) - values
    total = np.add.reduceat(values, first, axis=0) + before[first]
    above = np.repeat(total, sizes, axis=0) - before
    return first, step, above, np.add.reduceat((p * values.T).T, first, axis=0)
