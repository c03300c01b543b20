"""Rules of bins: n_bins, strategy and min_samples, or bins that are given."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array

from skcal._bins import SCALAR_PARTITIONS, SIMPLEX_PARTITIONS, Intervals, find_partition
from skcal._sklearn_compat import Interval, StrOptions
from skcal._validation import naming
from skcal.notions import Problem

#: Constraints of a metric's options of bins.
BIN_OPTIONS = {
    "n_bins": [Interval(Integral, 1, None, closed="left"), StrOptions({"cube-root"})],
    "strategy": [StrOptions(set(SCALAR_PARTITIONS) | set(SIMPLEX_PARTITIONS))],
    "min_samples": [Interval(Integral, 1, None, closed="left")],
    "edges": ["array-like", None],
}


class BinRule(NamedTuple):
    """How predictions are binned; a strategy that is a partition is the bins themselves.

    Parameters
    ----------
    n_bins : int or "cube-root"
    strategy : str or Intervals
    min_samples : int
    """

    n_bins: int | str
    strategy: str | Intervals
    min_samples: int = 1

    @classmethod
    def of(cls, n_bins, strategy, min_samples: int = 1, edges: Any = None) -> BinRule:
        """Return the rule of a user's options, in which given edges come first."""
        if edges is None:
            return cls(n_bins, strategy, min_samples)
        given = given_edges(edges)
        return cls(given.n_bins, given, min_samples)

    @property
    def known(self) -> Intervals | None:
        """Bins of [0, 1] that are the same for all samples, or None."""
        if isinstance(self.strategy, Intervals):
            return self.strategy
        equal = self.strategy == "uniform" and self.n_bins != "cube-root"
        return uniform_edges(int(self.n_bins)) if equal else None

    def partition(self, problem: Problem):
        """Return the partition of a problem's features."""
        x, weight, n_bins = problem.features, problem.weight, self.n_bins
        if isinstance(self.strategy, Intervals):
            if x.shape[1] > 1:
                raise ValueError(
                    "edges are of single probabilities, but the notion conditions on vectors. "
                    "Leave edges out, or use notion='confidence', 'classwise' or 'binary'."
                )
            return self.strategy
        if n_bins == "cube-root":
            n_bins = max(1, int(np.cbrt(weight.sum()) * (1 + 1e-12)))
        outcomes = problem.outcomes if self.strategy == "sweep" else None
        find = find_partition(self.strategy, x.shape[1])
        return find(x, outcomes, weight, n_bins=n_bins, min_samples=self.min_samples)


def uniform_edges(n_bins: int) -> Intervals:
    """Bins of equal width of [0, 1]."""
    return Intervals(np.arange(n_bins + 1) / n_bins)


def given_edges(edges: Any) -> Intervals:
    """Bins between edges that a user gives, which rise from 0 to 1."""
    with naming("edges"):
        edges = check_array(edges, dtype=np.float64, ensure_2d=False, input_name="edges")
    if edges.ndim != 1 or len(edges) < 2 or edges[0] != 0 or edges[-1] != 1:
        found = f"{edges[0]:g} to {edges[-1]:g}" if edges.ndim == 1 else f"shape {edges.shape}"
        raise ValueError(
            f"edges of {found}: a 1-D array from 0 to 1 is needed. Pass [0, …, 1] with the "
            "inner edges between."
        )
    if not (np.diff(edges) > 0).all():
        k = int(np.argmin(np.diff(edges) > 0))
        raise ValueError(
            f"edges must increase, but edges[{k + 1}] = {edges[k + 1]:g} follows {edges[k]:g}. "
            "Pass numpy.unique(edges)."
        )
    return Intervals(edges)
