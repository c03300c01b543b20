"""Samples that belong together: groups whose samples depend on each other, as in scikit-learn.

What is true of independent samples, that sums of squares tell the variance of a sum, is true of the
sums over groups.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.sparse import csr_array
from scipy.special import expit, logit
from scipy.stats import norm, t
from sklearn.model_selection import GroupKFold, KFold

from skcal._labels import sorted_labels
from skcal._matrices import one_hot
from skcal._validation import InputError

FEWEST_GROUPS = 6  # fewer tell no variance
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
    dependence : Dependence or None
        How strongly outcomes of a group depend on each other, of all samples of a problem; None
        where outcomes are not known.
    """

    codes: np.ndarray
    alone: np.ndarray
    n_groups: int
    of_shares: bool = False
    dependence: Dependence | None = None
    independent: ClassVar[bool] = False  # whether all samples are

    def units(self, n_samples: int) -> np.ndarray:
        """The number of the group of each sample; independent samples have numbers of their own."""
        return self.codes

    def n_units(self, n_samples: int) -> int:
        """The number of groups, or of samples if these are independent."""
        return self.n_groups

    def take(self, rows: slice | np.ndarray) -> Groups:
        """Return the groups of some of the samples."""
        return replace(self, codes=self.codes[rows], alone=self.alone[rows])

    def of_several(self) -> Groups:
        """Return the groups that hold samples; independent ones where no two samples share one.

        A single one counts as two, since it says nothing of how groups vary.
        """
        held, codes = np.unique(self.codes, return_inverse=True)
        if len(held) == len(codes):
            return INDEPENDENT
        return replace(self, codes=codes, n_groups=max(len(held), 2))

    @property
    def n_held(self) -> int:
        """The number of groups that hold samples."""
        return len(np.unique(self.codes))

    def about(self, chance: np.ndarray, residuals: np.ndarray | None) -> Groups:
        """Return the groups of samples whose predictions and residuals (n_samples, m) are given."""
        if residuals is None:
            return self
        known = Dependence(chance, residuals, self.codes, not self.of_shares)
        return replace(self, dependence=known)

    def of_outcomes(self, proba: np.ndarray, happened: np.ndarray) -> Groups:
        """The same of probabilities (n_samples, C) of the columns, or shares of all, that happened.

        Shares of two classes may be those of the second one.
        """
        if happened.dtype.kind != "f":
            happened = one_hot(happened, proba.shape[1])
        elif happened.ndim == 1:
            happened = np.column_stack([1 - happened, happened])
        columns = slice(1, None) if proba.shape[1] == 2 else slice(None)
        return self.about(proba[:, columns], (happened - proba)[:, columns])

    @property
    def strength(self) -> float:
        """λ of :class:`Dependence`, 0 where it is not known."""
        return 0.0 if self.dependence is None else self.dependence.strength

    def uniform(self, seeds, group_seeds) -> np.ndarray:
        """Uniform numbers (k, n_samples) of the law of :class:`Dependence`; a draw a seed.

        ``group_seeds`` draw what the samples of a group share, so that problems about other samples
        of the same groups may share it, too.
        """
        block = np.empty((len(seeds), len(self.codes)))
        for draw, seed, group_seed in zip(block, seeds, group_seeds, strict=True):
            rng = np.random.default_rng(seed)
            draw[:] = rng.random(len(draw))
            if self.strength > 0:
                common = np.random.default_rng([group_seed, 1]).random(self.n_groups)[self.codes]
                shared = rng.random(len(draw)) < np.sqrt(self.strength)
                draw[shared] = common[shared]
        return block

    def design_effect(self, weight: np.ndarray) -> float:
        """By how much dependence multiplies the variance of a mean of alike samples."""
        sums = self.sums(weight)
        return 1 + self.strength * float(sums @ sums / (weight @ weight) - 1)

    def covariance(self, values: np.ndarray, chance: np.ndarray) -> Any:
        """Covariance (m, m) of Σ_i values_i y_i by the law of :class:`Dependence`; of shares 0.

        Parameters
        ----------
        values : ndarray of shape (n_samples, m) or (n_samples,)
            The latter of one sum, whose variance is a number.
        chance : ndarray of shape (n_samples,)
            The probabilities of y = 1.
        """
        independent = (self._variances(chance) * values.T) @ values
        if self.of_shares or self.strength == 0:
            return independent
        shared = covariance_of_shared(values, chance, self.codes)
        return self.strength * shared + (1 - self.strength) * independent

    def variance_of_terms(self, deviations: np.ndarray) -> float:
        """Variance of a sum of terms (n_samples,) with these standard deviations; of shares 0.

        The largest that the dependence allows: two terms of a group have at most λ times the
        product of their deviations as covariance.
        """
        if self.of_shares:
            return 0.0
        sums = self.sums(deviations)
        independent = float(deviations @ deviations)
        return self.strength * float(sums @ sums) + (1 - self.strength) * independent

    def _variances(self, chance) -> np.ndarray:
        """Variances of outcomes; 0 for shares, whose variances are not known."""
        return np.zeros_like(chance) if self.of_shares else chance * (1 - chance)

    def covariance_of_cells(self, values, chance, cells, n_cells: int) -> np.ndarray:
        """The same of the sums over each of some cells, (n_cells, n_cells).

        No chance in a cell is below one in an earlier cell, so that samples of a group that share
        their number have the covariance p (1 - p') if their cells differ, p that of the earlier.
        """
        return self.covariance_and_squares_of_cells(values, chance, cells, n_cells)[0]

    def covariance_and_squares_of_cells(self, values, chance, cells, n_cells: int):
        """The same, and the sum over the groups of the squares of the entries of each one's."""
        of_cell, place = self.cells(cells, n_cells)
        variances: Any = np.bincount(place, values**2 * self._variances(chance))
        if self.of_shares or self.strength == 0:
            return np.diag(np.bincount(of_cell, variances, n_cells)), float(variances @ variances)
        shared = variances_of_shared(values, chance, place)
        variances = self.strength * shared + (1 - self.strength) * variances
        low, high = (
            csr_array((values * part, (self.codes, cells)), shape=(self.n_groups, n_cells))
            for part in (chance, 1 - chance)
        )
        between = self.strength * np.triu((low.T @ high).toarray(), 1)
        squares = self.strength**2 * np.triu((low.power(2).T @ high.power(2)).toarray(), 1).sum()
        covariance = between + between.T + np.diag(np.bincount(of_cell, variances, n_cells))
        return covariance, float(variances @ variances + 2 * squares)

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

    def squares_of_cells(self, terms: np.ndarray, cells: np.ndarray, n_cells: int) -> np.ndarray:
        """Sums over each cell of the squares of its terms, those of a group in it together."""
        of_cell, place = self.cells(cells, n_cells)
        return np.bincount(of_cell, np.bincount(place, terms) ** 2, minlength=n_cells)

    @property
    def unbiased(self) -> float:
        """G / (G - 1), by which sums of squares over groups are unbiased."""
        if self.n_groups < 2:
            reason = "holds the votes of one sample, from which no variance is known."
            raise InputError("y_true", reason, "Pass 2 samples or more.")
        return self.n_groups / (self.n_groups - 1)

    def covariances(self, weight, residuals, chance, cells, n_cells: int) -> tuple:
        """Covariances (n_cells, n_cells) of the sums of w δ: as seen, and by their dependence.

        None of independent samples.
        """
        sums = self.sums_in_cells(weight * residuals, cells, n_cells)
        seen = self.unbiased * sums.T @ sums
        return seen, self.covariance_of_cells(weight, chance, cells, n_cells)

    def variance_of_sum(self, values: np.ndarray) -> Any:
        """Variance of Σ_i values_i of mean 0, G / (G - 1) Σ_g (Σ_{i∈g} values_i)²; one a column."""
        return self.unbiased * (self.sums(values) ** 2).sum(axis=0)

    def covariance_of_sums(self, values: np.ndarray) -> np.ndarray:
        """Covariance (m, m) of Σ_i values_i, of values (n_samples, m) with mean 0."""
        sums = self.sums(values)
        return self.unbiased * sums.T @ sums

    def larger_variance(self, variance: float, terms: np.ndarray, law: Any = None) -> float:
        """Variance of Σ_i terms_i with mean 0, no smaller than that of independent samples.

        Parameters
        ----------
        variance : float
            That of independent samples.
        terms : ndarray of shape (n_samples,)
        law : tuple of two ndarray of shape (n_samples,), default=None
            By how much an event changes each term, and the chance of it. The variance is then no
            smaller than by the law of :class:`Dependence`, either.
        """
        seen = float(self.variance_of_sum(terms))
        return max(variance, seen, 0.0 if law is None else float(self.covariance(*law)))

    def effective_number(self, weight: np.ndarray) -> float:
        """How many groups of equal weight would tell as much, (Σ w)² / Σ_g w_g²."""
        sums = self.sums(weight)
        return float(sums.sum() ** 2 / (sums @ sums))

    def degrees_of_freedom(self, weight: np.ndarray) -> float:
        """Degrees of freedom of a studentised mean; infinity for independent samples."""
        return max(self.effective_number(weight) - 1, _FEWEST_FREEDOM)

    def quantile(self, tail: float, weight: np.ndarray) -> float:
        """The upper quantile of a studentised mean."""
        return float(law_of_mean(self.degrees_of_freedom(weight)).isf(tail))

    def or_singles(self, weight: np.ndarray) -> Groups:
        """Return the groups; independent samples of different weights become groups of one.

        The formulas of groups then hold for these weights, whose mean is 1.
        """
        return self

    def with_votes(self, votes: np.ndarray, weight: np.ndarray) -> Groups:
        """Return the groups of samples with votes; votes of one sample depend on each other."""
        return replace(self, alone=self.alone & (votes == 1), of_shares=True)

    def blocks(self, n_splits: int, seed: int) -> KFold | GroupBlocks:
        """A splitter into shuffled blocks, which hold whole groups."""
        return GroupBlocks(int(n_splits), seed)

    @property
    def smallest_pvalue(self) -> float:
        """The least p-value of a two-sided statistic whose groups change their signs.

        Samples that are alone have more than two outcomes.
        """
        return 0.0 if self.alone.any() else 2.0 ** (1 - self.n_held)


class _Independent(Groups):
    """The answers of groups for independent samples, without a number for each sample."""

    independent = True
    codes: Any = None
    alone: Any = None
    n_groups: Any = None
    strength = 0.0
    smallest_pvalue = 0.0

    def __init__(self, **_):
        """Set no field: each sample is its own group."""

    def __repr__(self):
        return "INDEPENDENT"

    def units(self, n_samples):
        return np.arange(n_samples)

    def n_units(self, n_samples):
        return n_samples

    def take(self, rows):
        return self

    def of_several(self):
        return self

    def about(self, chance, residuals):
        return self

    def of_outcomes(self, proba, happened):
        return self

    def design_effect(self, weight):
        return 1.0

    def sums(self, values):
        return values

    def squares_of_cells(self, terms, cells, n_cells):
        return np.bincount(cells, terms**2, minlength=n_cells)

    def covariances(self, weight, residuals, chance, cells, n_cells):
        return ()

    def variance_of_sum(self, values):
        return np.vecdot(values.T, values.T)

    def covariance_of_sums(self, values):
        return values.T @ values

    def larger_variance(self, variance, terms, law=None):
        return variance

    def degrees_of_freedom(self, weight):
        return np.inf

    def or_singles(self, weight):
        if (weight == 1).all():
            return self
        n_samples = len(weight)
        return Groups(np.arange(n_samples), np.ones(n_samples, dtype=bool), n_samples)

    def with_votes(self, votes, weight):
        codes = np.maximum(np.cumsum(weight > 0) - 1, 0)
        return Groups(codes, votes == 1, int(codes[-1]) + 1, True)

    def blocks(self, n_splits, seed):
        return KFold(n_splits, shuffle=True, random_state=seed)


#: The groups of samples that do not depend on each other.
INDEPENDENT = _Independent()


def read_groups(
    groups: Any, weight: np.ndarray, few: int | None = FEW_OF_TESTS, fewest: int = FEWEST_GROUPS
) -> Groups:
    """Check a user's groups.

    Parameters
    ----------
    groups : array-like of shape (n_samples,), Groups or None
        Labels of any sortable type, or what was made of them.
    weight : ndarray of shape (n_samples,)
        Samples of weight 0 do not count.
    few : int or None
        Below so many groups there is a warning; None: none.
    fewest : int
        So many groups are needed; folds need two.
    """
    if isinstance(groups, Groups):
        return groups
    if groups is None:
        return INDEPENDENT
    codes, sizes = _codes_and_sizes(groups, weight)
    if (sizes <= 1).all():
        return INDEPENDENT
    n_groups = int(np.count_nonzero(sizes))
    if n_groups < fewest:
        raise InputError(
            "groups",
            f"holds {n_groups} groups, and at least {fewest} are needed: samples of one group may "
            "depend on each other, so that so few tell nothing of what chance does.",
            "Pass finer groups if those are independent, or collect more.",
        )
    numbers = np.maximum(np.cumsum(sizes > 0) - 1, 0)[codes]
    together = Groups(numbers, sizes[codes] <= 1, n_groups)
    if few is not None:
        warn_of_few_groups(together, weight, few)
    return together


def warn_of_few_groups(groups: Groups, weight: np.ndarray, few: int) -> None:
    """Warn of fewer groups than these, or of a few that hold most of the samples."""
    if groups.independent:
        return
    if groups.n_groups < few:
        warnings.warn(
            f"groups holds {groups.n_groups} groups. With fewer than {few} groups, levels and "
            "intervals are rough.",
            stacklevel=2,
        )
    mass, effective = groups.sums(weight), groups.effective_number(weight)
    if effective < FEWEST_GROUPS:
        warnings.warn(
            f"groups holds {groups.n_groups} groups, the largest with "
            f"{mass.max() / mass.sum():.0%} of the samples, so that they tell as much as "
            f"{effective:.1f} groups of equal size: intervals, bounds and comparisons are rough.",
            stacklevel=2,
        )


def _codes_and_sizes(groups, weight) -> tuple[np.ndarray, np.ndarray]:
    """The number of each sample's group, and how many samples of positive weight each holds."""
    present, codes = sorted_labels(groups, "groups")
    if len(codes) != len(weight):
        lead = "Found input variables with inconsistent numbers of samples: "
        raise InputError("groups", f"has {len(codes)} rows, not {len(weight)}.", lead=lead)
    return codes, np.bincount(codes[weight > 0], minlength=len(present))


def weights_within_groups(groups: Any, weight: np.ndarray) -> np.ndarray:
    """Divide the weights of each group by their sum where that is above 1."""
    codes, _ = _codes_and_sizes(groups, weight)
    sizes = np.bincount(codes, weight > 0)
    mass = np.where(sizes > 1, np.bincount(codes, weight), 1.0)
    return weight / np.maximum(mass, 1.0)[codes]


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
            most = len(sizes) // 2
            fewer = f"at most {most} folds, or " if most > 1 else ""
            raise InputError(
                "groups",
                f"makes {len(sizes)} groups of {len(codes)} samples, and {self.n_splits} blocks "
                f"need {2 * self.n_splits}.",
                f"Pass {fewer}finer groups.",
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


def law_of_mean(freedom: float):
    """Student's distribution of so many degrees of freedom, normal of infinitely many."""
    return norm if np.isinf(freedom) else t(freedom)


def quantile_of_weights(tail: float, effective: float, n_samples: int) -> float:
    """The upper quantile of a studentised mean, by the effective number of samples."""
    unequal = effective < n_samples * (1 - 1e-9)
    freedom = max(effective - 1, _FEWEST_FREEDOM) if unequal else np.inf
    return float(law_of_mean(freedom).isf(tail))


def no_smaller(covariance: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Return a covariance, enlarged in the directions in which it is below another."""
    try:
        root = np.linalg.cholesky(floor)
    except np.linalg.LinAlgError:
        reason = "is so unequal that a covariance vanishes in rounding."
        raise InputError("sample_weight", reason, "Lower the largest weight.") from None
    inverse = np.linalg.inv(root)
    values, vectors = np.linalg.eigh(inverse @ covariance @ inverse.T)
    scaled = root @ vectors
    return scaled * np.maximum(values, 1) @ scaled.T


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

    Values (n_samples, m) give a matrix (m, m), values (n_samples,) a number.
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
