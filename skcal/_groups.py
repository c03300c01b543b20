"""Samples that belong together: groups whose samples depend on each other, as in scikit-learn.

What is true of independent samples, that sums of squares tell the variance of a sum, is true of the
sums over groups.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm, t
from sklearn.model_selection import GroupKFold

from skcal._labels import sorted_labels
from skcal._validation import InputError

_FEWEST = 6  # fewer tell no variance
_FEWEST_FREEDOM = 0.1  # below which quantiles of Student's distribution overflow
_FEW_CELLS = 8  # of bins and groups, for each sample
FEW_OF_TESTS, FEW_OF_COMPARISONS = 10, 20  # below which there is a warning


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each of some samples.

    Attributes
    ----------
    codes : ndarray of int of shape (n_samples,)
        From 0 to ``n_groups`` - 1; some of the samples need not hold all of them.
    alone : ndarray of bool of shape (n_samples,)
        Whether no other sample of positive weight that was passed belongs to the group.
    n_groups : int
    of_shares : bool
        Whether outcomes are shares of votes, whose law is unknown even where a sample is alone.
    """

    codes: np.ndarray
    alone: np.ndarray
    n_groups: int
    of_shares: bool = False

    def take(self, rows: slice | np.ndarray) -> Groups:
        """Return the groups of some of the samples."""
        return replace(self, codes=self.codes[rows], alone=self.alone[rows])

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums (n_groups, …) over the samples of each group, of values (n_samples, …)."""
        columns = values.reshape(len(values), -1).T
        sums = [np.bincount(self.codes, column, minlength=self.n_groups) for column in columns]
        return np.stack(sums, axis=-1).reshape(self.n_groups, *values.shape[1:])

    def sums_in_cells(self, values: np.ndarray, cells: np.ndarray, n_cells: int) -> np.ndarray:
        """Sums (n_groups, n_cells) over the samples of each group in each cell."""
        places = self.codes * n_cells + cells
        return np.bincount(places, values, self.n_groups * n_cells).reshape(-1, n_cells)

    def cells(self, bins: np.ndarray, n_bins: int) -> tuple[np.ndarray, np.ndarray]:
        """The bin of each cell, the samples of a group in a bin, and the cell of each sample."""
        places = bins * self.n_groups + self.codes
        if n_bins * self.n_groups > _FEW_CELLS * len(places):
            cells, place = np.unique(places, return_inverse=True)
        else:  # an array of all cells costs less than to sort the samples
            held = np.bincount(places, minlength=n_bins * self.n_groups) > 0
            cells, place = np.flatnonzero(held), (np.cumsum(held) - 1)[places]
        return cells // self.n_groups, place.reshape(-1)

    @property
    def smallest_pvalue(self) -> float:
        """The least p-value of a two-sided statistic whose groups change their signs.

        Samples that are alone have more than two outcomes.
        """
        return 0.0 if self.alone.any() else 2.0 ** (1 - len(np.unique(self.codes)))


def groups_or_singles(groups: Groups | None, weight: np.ndarray) -> Groups | None:
    """The groups; where there are none and weights of mean 1 differ, each sample by itself.

    Formulas of groups are then those of samples of different weight.
    """
    if groups is not None or (weight == 1).all():
        return groups
    n_samples = len(weight)
    return Groups(np.arange(n_samples), np.ones(n_samples, dtype=bool), n_samples)


def read_groups(groups: Any, weight: np.ndarray, few: int = FEW_OF_TESTS) -> Groups | None:
    """Check a user's groups; None where every sample is a group of its own.

    Parameters
    ----------
    groups : array-like of shape (n_samples,), Groups or None
        Labels of any sortable type, or what was made of them.
    weight : ndarray of shape (n_samples,)
        Samples of weight 0 do not count.
    few : int
        Below so many groups there is a warning.
    """
    if groups is None or isinstance(groups, Groups):
        return groups
    codes, sizes = _codes_and_sizes(groups, weight)
    if (sizes <= 1).all():
        return None
    n_groups = int(np.count_nonzero(sizes))
    if n_groups < _FEWEST:
        raise InputError(
            "groups",
            f"holds {n_groups} groups, and at least {_FEWEST} are needed: samples of one group may "
            "depend on each other, so that so few tell nothing of what chance does.",
            "Pass finer groups if those are independent, or collect more.",
        )
    if n_groups < few:
        warnings.warn(
            f"groups holds {n_groups} groups. Of fewer than {few} levels and intervals are rough.",
            stacklevel=2,
        )
    mass = np.bincount(codes, weight)
    effective = mass.sum() ** 2 / (mass @ mass)
    if effective < _FEWEST:
        warnings.warn(
            f"groups holds {n_groups} groups, the largest with {mass.max() / mass.sum():.0%} of "
            f"the samples, so that they tell as much as {effective:.1f} groups of equal size: "
            "intervals, bounds and comparisons are rough.",
            stacklevel=2,
        )
    return Groups(np.maximum(np.cumsum(sizes > 0) - 1, 0)[codes], sizes[codes] <= 1, n_groups)


def _codes_and_sizes(groups, weight) -> tuple[np.ndarray, np.ndarray]:
    """The number of each sample's group, and how many samples of positive weight each holds."""
    present, codes = sorted_labels(groups, "groups")
    if len(codes) != len(weight):
        lead = "Found input variables with inconsistent numbers of samples: "
        raise InputError("groups", f"has {len(codes)} rows, not {len(weight)}.", lead=lead)
    return codes, np.bincount(codes[weight > 0], minlength=len(present))


def refuse_shared_groups(groups: Any, weight: np.ndarray, who: str, remedy: str) -> None:
    """Raise where samples share a group, for what takes independent samples alone."""
    if groups is None:
        return
    codes, sizes = _codes_and_sizes(groups, weight)
    shared = (sizes > 1)[codes] & (weight > 0)
    if shared.any():
        reason = f"puts sample {int(np.argmax(shared))} and others into one group, and {who}."
        raise InputError("groups", reason, remedy)


class GroupBlocks:
    """A splitter whose blocks hold whole groups and are alike in size.

    Those of scikit-learn's ``GroupKFold``, with groups of the same size in random order. With
    ``shuffle=True`` its blocks would differ in size.

    Parameters
    ----------
    n_splits : int
    random_state : int
    """

    def __init__(self, n_splits: int, random_state: int):
        self.n_splits, self.random_state = n_splits, random_state

    def split(self, X, y=None, groups=None):
        """Yield the rows of training and of test samples, one block after the other."""
        codes = np.unique(groups, return_inverse=True)[1]
        sizes = np.bincount(codes)
        if len(sizes) < 2 * self.n_splits:
            raise InputError(
                "groups",
                f"makes {len(sizes)} groups of {len(codes)} samples, and {self.n_splits} blocks "
                f"need {2 * self.n_splits}.",
                "Pass fewer folds or finer groups.",
            )
        largest = int(sizes.max())
        if largest * self.n_splits > len(codes):
            warnings.warn(
                f"One of the groups holds {largest} of {len(codes)} samples, more than a block of "
                f"{self.n_splits}: what is estimated from it rests on one group.",
                stacklevel=2,
            )
        shuffled = np.random.default_rng(self.random_state).permutation(len(sizes))
        yield from GroupKFold(self.n_splits).split(X, groups=np.argsort(shuffled[::-1])[codes])


def refuse_cut_groups(splits, groups: Groups | None, name: str) -> None:
    """Raise where a group has samples in both parts of a split."""
    if groups is None:
        return
    for number, (train, test) in enumerate(splits):
        cut = np.isin(groups.codes[test], groups.codes[train])
        if cut.any():
            raise InputError(
                name,
                f"puts a group into both parts of split {number}, that of sample "
                f"{test[int(np.argmax(cut))]}.",
                "Pass an int, or a splitter of groups such as GroupKFold.",
            )


def groups_of_votes(votes: np.ndarray, weight: np.ndarray, groups: Groups | None) -> Groups:
    """The groups of samples with votes, of which those of one sample depend on each other."""
    alone = votes == 1
    if groups is None:
        codes = np.maximum(np.cumsum(weight > 0) - 1, 0)
        return Groups(codes, alone, int(codes[-1]) + 1, True)
    return replace(groups, alone=groups.alone & alone, of_shares=True)


def effective_groups(weight: np.ndarray, groups: Groups) -> float:
    """How many groups of equal weight would tell as much, (Σ w)² / Σ_g w_g²."""
    sums = groups.sums(weight)
    return float(sums.sum() ** 2 / (sums @ sums))


def degrees_of_freedom(weight: np.ndarray, groups: Groups | None) -> float:
    """Those of Student's distribution of a studentised mean, G_eff - 1; infinity without groups."""
    if groups is None:
        return np.inf
    return max(effective_groups(weight, groups) - 1, _FEWEST_FREEDOM)


def law_of_mean(freedom: float):
    """Student's distribution of so many degrees of freedom, normal of infinitely many."""
    return norm if np.isinf(freedom) else t(freedom)


def tail_quantile(tail: float, weight: np.ndarray, groups: Groups | None) -> float:
    """The upper quantile of a studentised mean."""
    return float(law_of_mean(degrees_of_freedom(weight, groups)).isf(tail))


def variance_of_sums(values: np.ndarray, groups: Groups) -> np.ndarray:
    """Variance of Σ_i values_i with mean 0, G / (G - 1) Σ_g (Σ_{i∈g} values_i)²; one a column."""
    n = groups.n_groups
    return n / (n - 1) * (groups.sums(values) ** 2).sum(axis=0)


def covariance_of_sums(values: np.ndarray, groups: Groups) -> np.ndarray:
    """Covariance (m, m) of Σ_i values_i, of values (n, m) with mean 0."""
    sums = groups.sums(values)
    return groups.n_groups / (groups.n_groups - 1) * sums.T @ sums


def no_smaller(covariance: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Return a covariance, enlarged in the directions in which it is below another."""
    root = np.linalg.cholesky(floor)
    inverse = np.linalg.inv(root)
    values, vectors = np.linalg.eigh(inverse @ covariance @ inverse.T)
    scaled = root @ vectors
    return scaled * np.maximum(values, 1) @ scaled.T
