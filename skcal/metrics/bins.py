"""Rules of bins, and sums over bins, of which every binned measure is a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from skcal._bins import (
    SCALAR_PARTITIONS,
    SIMPLEX_PARTITIONS,
    Intervals,
    bin_sums,
    equal_intervals,
    find_partition,
    given_edges,
    variance_of_means,
)
from skcal._groups import Groups
from skcal._scores import bounded_log_losses
from skcal._sklearn_compat import Interval, StrOptions
from skcal._validation import BIN_COUNT, InputError, row_blocks
from skcal.metrics.statistic import observed_draw
from skcal.notions import Counted, Notion, Problem
from skcal.sample import Sample

#: Constraints of a metric's options of bins.
BIN_OPTIONS = {
    "n_bins": [BIN_COUNT, StrOptions({"cube_root"})],
    "strategy": [StrOptions(set(SCALAR_PARTITIONS) | set(SIMPLEX_PARTITIONS))],
    "min_samples": [Interval(Integral, 1, None, closed="left")],
    "edges": ["array-like", None],
}


def is_of_vectors(strategy: Any) -> bool:
    """Whether bins are split until they hold ``min_samples``, as vectors alone can be."""
    return bool(strategy == "median-variance")


#: With which options these are used, for ``used_with`` of ``validate_params``.
USE_OF_BINS: dict[str, dict] = {
    "n_bins": {"strategy": ("uniform", "quantile"), "edges": (None,)},
    "strategy": {"edges": (None,)},
    "min_samples": {"strategy": is_of_vectors, "edges": (None,)},
}


@dataclass(frozen=True)
class BinRule:
    """How predictions are binned.

    Parameters
    ----------
    n_bins : int or "cube_root"
        The number of bins.
    strategy : str
        As in :func:`calibration_bins`, or the bins themselves.
    min_samples : int, default=1
        Fewest samples in a cell of "median-variance".

    Attributes
    ----------
    strategies : frozenset of str
        Those of single probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.metrics import BinRule
    >>> from skcal.notions import make_problems
    >>> p, y = np.array([0.1, 0.3, 0.4, 0.9]), np.array([0, 0, 1, 1])
    >>> [problem] = make_problems(p, y, "binary")
    >>> moments = BinRule(2, "uniform").moments(problem)
    >>> moments.count, moments.gaps.ravel().round(3)
    (array([3., 1.]), array([0.067, 0.1  ]))
    """

    n_bins: int | str
    strategy: str | Intervals
    min_samples: int = 1
    strategies: ClassVar[frozenset[str]] = frozenset(SCALAR_PARTITIONS)

    @classmethod
    def of(cls, n_bins, strategy, min_samples: int = 1, edges: Any = None) -> BinRule:
        """Return the rule of options as users give them, in which given edges come first.

        Parameters
        ----------
        n_bins, strategy, min_samples, edges
            As in :func:`calibration_bins`.
        """
        if edges is None:
            return cls(n_bins, strategy, min_samples)
        given = given_edges(edges)
        return cls(given.n_bins, given, min_samples)

    @property
    def known(self) -> Intervals | None:
        """Bins of [0, 1] that are the same for all samples, or None."""
        if isinstance(self.strategy, Intervals):
            return self.strategy
        equal = self.strategy == "uniform" and self.n_bins != "cube_root"
        return equal_intervals(int(self.n_bins)) if equal else None

    def moments(self, problem: Problem, names: Sequence[str] | None = None) -> BinMoments:
        """Bin a problem and sum over its bins, about their means or middles.

        Parameters
        ----------
        problem : Problem
            Features, residuals and weights.
        names : sequence of str, default=None
            The sums that are needed, attributes of :class:`BinMoments`, "weight" among them; None:
            those of predictions and outcomes.
        """
        names = OF_TABLES if names is None else names
        return _moments(problem, self, names)

    def partition(self, problem: Problem):
        """Return the partition of a problem's features.

        Parameters
        ----------
        problem : Problem
            Features, residuals and weights.
        """
        x, weight, n_bins = problem.features, problem.weight, self.n_bins
        if problem.counted is not None and self.strategy in SCALAR_PARTITIONS.keys() - {"uniform"}:
            reason = f"is {self.strategy!r}, and a CalibrationTable holds no samples to divide."
            raise InputError("strategy", reason, "Leave strategy out, or pass a skcal.Sample.")
        if isinstance(self.strategy, Intervals):
            if x.shape[1] > 1:
                raise ValueError(
                    "edges are of single probabilities, but the notion conditions on vectors. "
                    "Leave edges out, or use notion='confidence', 'classwise' or 'binary'."
                )
            return self.strategy
        if n_bins == "cube_root":
            n_bins = max(1, int(np.cbrt(weight.sum()) * (1 + 1e-12)))
        outcomes = problem.outcomes if self.strategy == "sweep" else None
        find = find_partition(self.strategy, x.shape[1])
        return find(x, outcomes, weight, n_bins=n_bins, min_samples=self.min_samples)


# Sums of so many numbers lose some 1e-13 of themselves at worst; those of blocks are compensated.
BLOCK_ROWS = 2**14
_BIN_BYTES = 2**27
_ABOVE_0 = np.nextafter(0, 1)


@dataclass(slots=True, eq=False)
class BinMoments:
    """Sums over the samples of each bin of one problem; None for those not asked for.

    Attributes
    ----------
    share : float
        π, the problem's share of the weight of all samples; 1 for every notion but ``top-label``.
    partition : Intervals, Cells or Tree
    centres : ndarray of shape (n_bins, m) or None
        What second moments are taken about.
    weight, count, squares : ndarray of shape (n_bins,)
        Σ w, number of samples, Σ w².
    residuals, outcomes, shift : ndarray of shape (n_bins, m)
        Σ w δ, Σ w o and Σ w (x - centre).
    errors, square_errors, deviations, products, log_loss : ndarray of shape (n_bins,)
        Σ w ‖x - o‖², Σ w² ‖x - o‖², Σ w ‖x - centre‖², Σ w ⟨x - centre, o⟩, and the
        logarithmic loss.
    bins : ndarray of shape (n_rows,) or None
        The bin of each row, where the rows were seen at once.
    group_variances : ndarray of shape (n_bins,) or None
        What pairs of one group add to the squared gap, in place of ``variances``.
    """

    share: float
    partition: object
    centres: Any
    weight: np.ndarray
    count: Any = None
    squares: Any = None
    residuals: Any = None
    outcomes: Any = None
    shift: Any = None
    errors: Any = None
    square_errors: Any = None
    deviations: Any = None
    products: Any = None
    log_loss: Any = None
    bins: Any = None
    group_variances: Any = None

    @property
    def total(self) -> float:
        """Weight of all samples."""
        return self.weight.sum()

    @property
    def filled(self) -> np.ndarray:
        """Weight of each bin as a column; of an empty one the smallest number above 0."""
        return np.maximum(self.weight, _ABOVE_0)[:, None]

    @property
    def gaps(self) -> np.ndarray:
        """Mean residual of each bin, (n_bins, m); 0 for an empty one."""
        return self.residuals / self.filled

    @property
    def predictions(self) -> np.ndarray:
        """Mean prediction of each bin, (n_bins, m)."""
        return self.centres + self.shift / self.filled

    @property
    def frequencies(self) -> np.ndarray:
        """Mean outcome of each bin, (n_bins, m); 0 for an empty one."""
        return self.outcomes / self.filled

    def variances(self, debias) -> np.ndarray:
        """Estimated variance of each mean residual, summed over columns.

        With that of residuals the squared gaps minus it are means of ⟨δ_i, δ_j⟩ over pairs.

        Parameters
        ----------
        debias : bool or "labels"
            "labels": by the frequencies of the outcomes, else by the residuals.
        """
        if self.group_variances is not None:
            return self.group_variances
        sums = self.weight, self.squares, self.count, self.gaps
        if debias == "labels":
            return variance_of_means(*sums, frequencies=self.frequencies)[0]
        return variance_of_means(*sums, self.square_errors)[0]

    @property
    def variance_sums(self) -> np.ndarray:
        """Σ w ‖x - x̄‖² of each bin, about its own mean."""
        about_centre = (self.shift**2 / self.filled).sum(axis=1)
        return np.maximum(self.deviations - about_centre, 0)

    @property
    def covariance_sums(self) -> np.ndarray:
        """Σ w ⟨x - x̄, o - ō⟩ of each bin."""
        return self.products - (self.shift * self.frequencies).sum(axis=1)


#: The sums that a metric may ask for.
MOMENTS = tuple(field.name for field in fields(BinMoments))[3:-2]
GAPS = ("weight", "residuals")
OF_TABLES = (*GAPS, "count", "squares", "outcomes", "shift")


class BinnedRows:
    """The rows of a problem in bins, and their sums over the bins for any weights.

    Parameters
    ----------
    problem : Problem
    partition : Intervals, Cells or Tree
    centres : ndarray of shape (n_bins, m), default=None
        The points about which second moments are taken; they may be None if none are asked for.
    """

    def __init__(self, problem: Problem, partition, centres: Any = None):
        self.partition, self.centres, self.counted = partition, centres, problem.counted
        if self.counted is None:
            self.bins = partition.assign(problem.features)
        else:
            X = self.counted.means[:, None]
            problem = problem._replace(features=X, residuals=problem.outcomes - X)
            self.bins = bins_of_counted(self.counted, partition)
        self.problem, self._residuals = problem, problem.residuals
        if self._residuals is not None:  # once for all weights
            self._residuals = self._residuals.astype(np.float64, copy=False)

    def moments(self, names, share: float, weight: np.ndarray) -> BinMoments:
        """Return the sums of these names if the rows have these weights."""
        sums = self.sums(names, weight)
        return BinMoments(share, self.partition, self.centres, **sums, bins=self.bins)

    def sums(self, names, weight: np.ndarray) -> dict[str, np.ndarray]:
        """Return the sums over the bins by name, (n_bins,) or (n_bins, m), for these weights."""
        size = self.partition.n_bins
        return {name: bin_sums(self.bins, _TERMS[name](self, weight), size) for name in names}

    @cached_property
    def _outcomes(self) -> np.ndarray:
        return self.problem.outcomes.astype(np.float64)

    @cached_property
    def _errors(self) -> np.ndarray:
        errors = ((self.problem.features.astype(np.float64) - self._outcomes) ** 2).sum(axis=1)
        return errors if self.counted is None else errors + self.spread + self.counted.scatter

    @property
    def spread(self) -> Any:
        """The variance of the predictions of the samples that a row is."""
        return 0.0 if self.counted is None else self.counted.spread

    def _counts(self, weight):
        return weight > 0 if self.counted is None else self.counted.counts

    def _squares(self, weight):
        return weight**2 if self.counted is None else weight**2 * self.counted.uneven

    @cached_property
    def _shift(self) -> np.ndarray:
        return self.problem.features.astype(np.float64) - self.centres[self.bins]

    def _log_losses(self) -> np.ndarray:
        codes, problem = observed_draw(self.problem)[0], self.problem
        losses = bounded_log_losses(problem.features, codes, problem.logits)
        if self.counted is None:
            return losses
        p, y = problem.features[:, 0], self._outcomes[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):  # -log p is convex
            curvature = np.where(y > 0, y / p**2, 0) + np.where(y < 1, (1 - y) / (1 - p) ** 2, 0)
            return losses + np.where(self.spread > 0, self.spread * curvature / 2, 0)


def bins_of_counted(counted: Counted, partition: Intervals) -> np.ndarray:
    """The bins of rows that stand for several samples, whose cells are cut by some edges only."""
    given, edges = counted.intervals.edges, partition.edges
    if not np.isin(edges, given).all():
        n = len(edges) - 1
        remedy = "Pass edges=table.edges, or count a CalibrationTable(edges=…) with yours."
        if np.array_equal(edges, equal_intervals(n).edges):
            remedy = (
                "Pass edges=table.edges, or count a CalibrationTable("
                f"edges=numpy.arange({n + 1}) / {n})."
            )
        raise InputError(
            "edges",
            "cut cells of the CalibrationTable, which was counted with "
            f"{len(given) - 1} bins between {given[0]:g}, {given[1]:.4g}, … and {given[-1]:g}.",
            remedy,
        )
    return np.searchsorted(partition.edges[1:-1], given[1:])[counted.bins]


#: What each row adds to a sum, (n_rows,) or (n_rows, m), for some weights.
_TERMS: dict[str, Callable[[Any, np.ndarray], np.ndarray]] = {
    "weight": lambda rows, w: w,
    "count": lambda rows, w: rows._counts(w),
    "squares": lambda rows, w: rows._squares(w),
    "residuals": lambda rows, w: w[:, None] * rows._residuals,
    "outcomes": lambda rows, w: w[:, None] * rows._outcomes,
    "shift": lambda rows, w: w[:, None] * rows._shift,
    "errors": lambda rows, w: w * rows._errors,
    "square_errors": lambda rows, w: rows._squares(w) * rows._errors,
    "deviations": lambda rows, w: w * ((rows._shift**2).sum(axis=1) + rows.spread),
    "products": lambda rows, w: w * (rows._shift * rows._outcomes).sum(axis=1),
    "log_loss": lambda rows, w: w * rows._log_losses(),
}


class CompensatedSum:
    """A sum of arrays of one shape that keeps what rounding takes from it (Neumaier 1974)."""

    def __init__(self):
        self.total: Any = 0.0
        self.carry: Any = 0.0

    def add(self, term):
        """Add an array."""
        total = self.total + term
        taken = total - self.total
        self.carry += (self.total - (total - taken)) + (term - taken)
        self.total = total

    @property
    def value(self):
        """The sum."""
        return self.total + self.carry


def pooled(sample: Sample) -> Problem:
    """All problems of a scalar notion as one, whose groups are the samples."""
    problems, everyone = sample.problems(), np.arange(len(sample.weight))
    rows = np.concatenate([everyone[problem.rows] for problem in problems])
    groups = sample.groups
    if groups.independent:
        groups = Groups(everyone, np.zeros(len(everyone), dtype=bool), len(everyone))
    return Problem(
        np.concatenate([problem.features for problem in problems]),
        np.concatenate([problem.residuals for problem in problems]),
        sample.weight[rows],
        groups=groups.take(rows),
    )


def moments_together(moments: list[BinMoments]) -> BinMoments:
    """Sums over several problems in the same bins."""
    added = {
        name: sum(getattr(part, name) for part in moments)
        for name in MOMENTS
        if getattr(moments[0], name) is not None
    }
    return replace(moments[0], share=1.0, bins=None, **added)


def bin_moments(sample: Sample, rule: BinRule, names=MOMENTS) -> list[BinMoments]:
    """Bin the predictions of each problem of a sample and sum over the bins.

    Parameters
    ----------
    sample : Sample
    rule : BinRule
    names : sequence of str
        The sums that are needed, attributes of BinMoments; "weight" is among them.

    Returns
    -------
    moments : list of BinMoments
        One a problem; without weight for a class of ``top-label`` that is never predicted.
    """
    few = len(sample.proba) <= BLOCK_ROWS and sample.notion.shares_samples
    in_blocks = sample.groups.independent and not few  # blocks of samples cut groups
    in_blocks = in_blocks and sample.holds_rows
    known = rule.known if in_blocks and sample.notion.scalar else None
    if known:
        table = BinTable(known, sample.notion, names)
        table.add(sample)  # bins known beforehand, so that blocks of samples will do
        return table.moments()
    return [rule.moments(problem, names) for problem in sample.problems()]


def _moments(problem: Problem, rule: BinRule, names) -> BinMoments:
    """Bin a problem and sum over its bins, about their means or middles."""
    known, weight = rule.known if problem.features.shape[1] == 1 else None, problem.weight
    partition = known or rule.partition(problem) if len(weight) else equal_intervals(1)
    rows = BinnedRows(problem, partition)
    if known:
        rows.centres = partition.middles
    elif "shift" in names:
        mass, sums = (
            bin_sums(rows.bins, values, partition.n_bins)
            for values in (weight, weight[:, None] * problem.features.astype(np.float64))
        )
        rows.centres = sums / np.where(mass > 0, mass, 1)[:, None]
    moments = rows.moments(names, problem.share, weight)
    if problem.groups.independent or "square_errors" not in names:
        return moments
    return replace(moments, group_variances=_group_variances(problem, moments))


def _group_variances(problem: Problem, moments: BinMoments) -> np.ndarray:
    """Squared gaps less the mean of ⟨δ_i, δ_j⟩ over the pairs of different groups of each bin."""
    size, column = len(moments.weight), problem.weight[:, None]
    bins, place = problem.groups.cells(moments.bins, size)
    squares, within = (
        np.bincount(bins, (bin_sums(place, terms, len(bins)) ** 2).sum(axis=1), minlength=size)
        for terms in (column, column * problem.residuals)
    )
    count = np.bincount(bins, minlength=size)
    return variance_of_means(moments.weight, squares, count, moments.gaps, within)[0]


class BinTable:
    """Sums over intervals that are known beforehand, of the problems of a scalar notion.

    Parameters
    ----------
    partition : Intervals
        The partition, which is the same for all problems.
    notion : Notion
    names : sequence of str
        The names of the moments, as for :func:`bin_moments`.

    Attributes
    ----------
    sums : dict of str to CompensatedSum
        By name, of shape (n_problems, n_bins) or (n_problems, n_bins, 1).
    """

    def __init__(self, partition: Intervals, notion: Notion, names=MOMENTS):
        self.partition, self.notion = partition, notion
        self.sums = {name: CompensatedSum() for name in names}

    def add(self, sample: Sample):
        """Add samples in blocks, few enough for their sums to be exact and their arrays small."""
        row_bytes = max(_BIN_BYTES // BLOCK_ROWS, 40 * sample.proba[:1].size)
        for rows in row_blocks(len(sample.proba), row_bytes, most=_BIN_BYTES):
            parts = [
                BinnedRows(problem, self.partition, self.partition.middles).sums(
                    self.sums, problem.weight
                )
                for problem in sample.take(rows).problems()
            ]
            for name, total in self.sums.items():
                total.add(np.stack([part[name] for part in parts]))

    def moments(self) -> list[BinMoments]:
        """Return the sums, problem by problem."""
        values = {name: total.value for name, total in self.sums.items()}
        mass = values["weight"].sum(axis=1)
        shares = np.ones(len(mass)) if self.notion.shares_samples else mass / mass.sum()
        return [
            BinMoments(
                float(share),
                self.partition,
                self.partition.middles,
                **{name: sums[k] for name, sums in values.items()},
            )
            for k, share in enumerate(shares)
        ]


# Distance of the observed frequencies from the mean prediction, from their differences (n_bins, m).
DISTANCES = {
    "total-variation": lambda gap: np.abs(gap).sum(axis=1) / 2,
    "euclidean": lambda gap: np.sqrt((gap**2).sum(axis=1)),
    "sqeuclidean": lambda gap: (gap**2).sum(axis=1),
    "cityblock": lambda gap: np.abs(gap).sum(axis=1),
}


def gap_distances(gap, distance):
    """‖gap‖ of each bin; the absolute value for scalar problems."""
    return np.abs(gap[:, 0]) if gap.shape[1] == 1 else DISTANCES[distance](gap)
