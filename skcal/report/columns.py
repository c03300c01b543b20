"""Which columns make subgroups that one recalibration of all samples would leave miscalibrated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse, stats
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from skcal._groups import FEWEST_GROUPS
from skcal.sample import Sample

_KNOTS = (0.25, 0.5, 0.75)  # quantiles of the log-odds, between which one recalibration is a line
_MOST_EXTREME = 14.0  # log-odds of probabilities of 0 and 1
_C = 1e4  # of the ridge, which keeps subgroups finite whose outcomes are all the same


@dataclass(frozen=True)
class DifferingColumns:
    """Columns whose subgroups still differ after one recalibration of all samples.

    Attributes
    ----------
    columns : list of str
        Each differs after a recalibration by all columns before it; the first one differs most.
    explained : list of str
        Columns that differ alone, and not after a recalibration by ``columns``.
    """

    columns: list[str]
    explained: list[str]


def differing_columns(
    columns: dict[str, list[tuple]], sample: Sample, level: float
) -> DifferingColumns:
    """Find them by score tests, adjusted for all columns; ``level`` is that of the confidence.

    A column is given by the names and the rows of its subgroups.

    Notes
    -----
    The null hypothesis is a logistic regression of the outcomes on a linear spline of the log-odds,
    and on level and slope of each subgroup of the columns that were chosen. A candidate adds those
    of its own subgroups. If samples depend on each other, the variance of the scores is multiplied
    by the ratio of the sums of squares of groups and of samples.
    """
    if not (columns and sample.notion.single and sample.holds_rows):
        return DifferingColumns([], [])
    data = _ScoreData(sample)
    designs = {name: data.design(parts) for name, parts in columns.items() if len(parts) > 1}
    if not designs or data.n_groups < FEWEST_GROUPS or not data.has_both_outcomes:
        return DifferingColumns([], [])
    least = np.log((1 - level) / len(designs))
    alone: list[str] = []
    chosen: list[str] = []
    while len(chosen) < len(designs):
        null = sparse.hstack([data.spline, *(designs[name] for name in chosen)], "csr")
        found = data.log_pvalues(null, {k: v for k, v in designs.items() if k not in chosen})
        alone = alone if chosen else [name for name, value in found.items() if value <= least]
        best = min(found, key=found.__getitem__)
        if found[best] > least:
            break
        chosen.append(best)
    return DifferingColumns(chosen, [name for name in alone if name not in chosen])


class _ScoreData:
    """Outcomes, weights and the spline of the log-odds of a sample."""

    def __init__(self, sample: Sample):
        [problem] = sample.problems()
        n = len(problem.features)
        self.outcome = problem.outcomes[:, 0]
        self.weight = problem.weight / problem.weight.mean()
        self.has_both_outcomes = 0 < self.weight @ self.outcome < self.weight.sum()
        x = np.clip(logit(problem.features[:, 0]), -_MOST_EXTREME, _MOST_EXTREME)
        self._x = (x - x.mean()) / (x.std() or 1.0)
        knots = np.unique(np.quantile(self._x, _KNOTS))
        hinges = np.maximum(self._x[:, None] - knots, 0)
        self.spline = sparse.csr_array(np.column_stack([np.ones(n), self._x, hinges]))
        codes = np.arange(n)
        if not sample.groups.independent:
            codes = np.unique(sample.groups.units(n), return_inverse=True)[1]
        self.n_groups = int(codes.max()) + 1
        ones = np.ones(n), (codes, np.arange(n))
        self._of_groups = sparse.csr_array(ones, shape=(self.n_groups, n))

    def design(self, parts: list[tuple]) -> sparse.csr_array:
        """Level and slope of each subgroup, given its name and rows."""
        code, rows = np.empty(len(self._x), np.intp), np.arange(len(self._x))
        for k, (_, part) in enumerate(parts):
            code[part] = k
        shape = len(self._x), len(parts)
        columns = [sparse.csr_array((v, (rows, code)), shape) for v in (self._x**0, self._x)]
        return sparse.hstack(columns, "csr")

    def log_pvalues(self, null, candidates) -> dict[str, float]:
        """The logarithm of the p-value of each candidate beside the columns of ``null``."""
        n = len(self.outcome)
        model = LogisticRegression(C=_C, fit_intercept=False, solver="lbfgs", max_iter=1000)
        weight = np.concatenate([self.weight * self.outcome, self.weight * (1 - self.outcome)])
        kept = weight > 0
        model.fit(
            sparse.vstack([null, null], "csr")[kept], np.repeat([1, 0], n)[kept], weight[kept]
        )
        chance = model.predict_proba(null)[:, 1]
        residual, spread = self.weight * (self.outcome - chance), chance * (1 - chance)
        found = {}
        for name, design in candidates.items():
            both = sparse.hstack([null, design], "csr")
            m = null.shape[1]
            information = _gram_of(both, self.weight * spread)
            within = np.linalg.pinv(information[:m, :m], hermitian=True)
            # Scores of the candidate, less what the estimates of the null model take of them.
            effective = np.vstack([-within @ information[:m, m:], np.eye(design.shape[1])])
            score = effective.T @ (both.T @ residual)
            variance = effective.T @ _gram_of(both, self.weight**2 * spread) @ effective
            variance *= self._design_effect(both, residual, effective)
            roots, axes = np.linalg.eigh(variance)
            known = roots > 1e-8 * max(roots.max(), 1e-300)
            statistic = float(((axes[:, known].T @ score) ** 2 / roots[known]).sum())
            found[name] = float(stats.chi2.logsf(statistic, max(int(known.sum()), 1)))
        return found

    def _design_effect(self, both, residual, effective) -> float:
        """How much larger the variance of sums over groups is than that of samples, at least 1."""
        if self.n_groups == len(residual):
            return 1.0
        scores = sparse.diags_array(residual) @ both
        squares = [
            np.trace(effective.T @ (part.T @ part).toarray() @ effective)
            for part in (self._of_groups @ scores, scores)
        ]
        return max(squares[0] / squares[1], 1.0) if squares[1] > 0 else 1.0


def _gram_of(columns, weight) -> np.ndarray:
    return (columns.T @ (sparse.diags_array(weight) @ columns)).toarray()
