"""The limit of an estimate if the predictions are calibrated, by redrawn outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from skcal._matrices import rowwise_dot
from skcal.model_selection.adaptive import (
    WHOLE,
    SquaredError,
    candidates_of,
    largest_z,
    mass_and_pairs,
    means_in_cells,
    near_best,
    partitions_of,
    shrunk_value,
    weighted_sums,
)
from skcal.notions import Problem, Problems

_LEVEL = 0.95
_DRAWS = 400
_TOGETHER = 2**15  # outcomes that are redrawn at a time
_OUTCOMES = 4e7  # of more samples, or of hundreds of classes, fewer draws, but at least 100


def calibrated_limit(
    data: Problems,
    corrections: Sequence[np.ndarray],
    estimate: SquaredError,
) -> float:
    """The 95 % quantile of the estimate if the predictions are calibrated.

    The quantile of the estimate over outcomes that are redrawn from the predictions, with the
    corrections as they are: those of redrawn samples would be other noise of about this size. With
    groups, the larger one of that and the quantile under random signs of the groups' residuals.

    Parameters
    ----------
    data : Problems
        Problems, whose samples are all of positive weight.
    corrections : sequence of ndarray of shape (n_rows, m), one a problem
    estimate : SquaredError
        The estimate by these corrections.

    Returns
    -------
    limit : float
        In squared probability units, at least 0.

    Notes
    -----
    400 draws, of more than 100,000 samples fewer, of a thousand classes of more than 10,000, and at
    least 100, of O(n log m) time each.
    """
    deviations = np.array([deviation for *_, deviation in estimate.candidates])
    known = deviations > 0
    if not known.any():
        return 0.0
    laws = [_redrawn] if data.groups.independent else [_redrawn, _flipped]
    return max(_limit_of(law(data, corrections)[:, known], deviations[known]) for law in laws)


def _limit_of(values, deviations) -> float:
    near, _ = near_best(values, deviations)
    means = (values * near).sum(axis=1) / near.sum(axis=1)
    shrunk = shrunk_value(means, largest_z(values, deviations))
    return float(max(np.quantile(shrunk, _LEVEL), 0.0))


def _flipped(data: Problems, corrections) -> np.ndarray:
    """The values of all candidates where groups keep or change the signs of their residuals."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(_DRAWS, data.groups.n_groups))
    candidates = candidates_of(data, corrections)
    return np.stack([candidate.sums.flipped(signs) for candidate in candidates], axis=1)


def _redrawn(data: Problems, corrections) -> np.ndarray:
    """The values of all candidates, as in their estimates, under redrawn outcomes, a row a draw."""
    rng, n = np.random.default_rng(0), len(data.weight)
    cost = n * max(1, data.parts[0].features.shape[1] / 100)
    n_draws = int(np.clip(_OUTCOMES / cost, 100, _DRAWS))
    names, cells_of_parts = zip(*partitions_of(data), strict=True)
    parts = [
        _RedrawnProblem(part, correction, names, [cells[k] for cells in cells_of_parts])
        for k, (part, correction) in enumerate(zip(data.parts, corrections, strict=True))
        if len(part.weight)
    ]
    draws = _outcomes([part.problem for part in parts], rng, n_draws, data.share_samples)
    return np.vstack(
        [
            sum(part.values(*events) for part, events in zip(parts, of_parts, strict=True))
            for of_parts in draws
        ]
    )


def _outcomes(parts, rng, n_draws, share_samples) -> Iterator[list]:
    """For some draws at a time the events of each problem: number of draws, draws, rows, columns.

    Problems divide the samples, or share them, and then a sample has one outcome in all of them.
    """
    whole = parts
    if share_samples and len(parts) > 1:
        whole = [parts[0]._replace(features=np.hstack([part.features for part in parts]))]
    limits = [_cumulated(part.features) for part in whole]
    ends = np.cumsum([len(part.weight) for part in whole])
    step = max(1, _TOGETHER // ends[-1])
    for start in range(0, n_draws, step):
        uniform = rng.random((min(step, n_draws - start), ends[-1]))
        columns = np.split(uniform, ends[:-1], axis=1)
        drawn = [_events(own, limit) for own, limit in zip(columns, limits, strict=True)]
        if len(whole) < len(parts):
            [(count, draws, rows, column)] = drawn
            order = np.argsort(column, kind="stable")
            cuts = np.searchsorted(column[order], np.arange(1, len(parts)))
            drawn = [
                (count, draws[own], rows[own], np.zeros_like(own)) for own in np.split(order, cuts)
            ]
        yield drawn


def _cumulated(proba) -> np.ndarray:
    """Where the intervals of the columns end, of several columns counted up by the rows."""
    limit = np.cumsum(proba, axis=1, dtype=np.float64)
    if limit.shape[1] > 1:
        limit /= limit[:, -1:].copy()
        limit += np.arange(len(limit))[:, None]
    return limit


def _events(uniform, limit) -> tuple:
    """The events in uniform numbers, a row a draw: number of draws, draws, rows, columns."""
    (count, n), m = uniform.shape, limit.shape[1]
    if m == 1:
        places = np.flatnonzero(uniform < limit[:, 0])
        draws = places // n
        return count, draws, places - n * draws, np.zeros_like(places)
    draws, rows = np.arange(count).repeat(n), np.tile(np.arange(n), count)
    columns = np.searchsorted(limit.ravel(), uniform.ravel() + rows) - m * rows
    return count, draws, rows, np.clip(columns, 0, m - 1)


class _RedrawnProblem:
    """The candidates of a problem as functions of its events.

    Sums of w δ and of w² ‖δ‖² are known over atoms, on which all partitions are constant.
    """

    def __init__(self, problem: Problem, correction, names, partitions: list[np.ndarray]):
        self.problem = problem
        atom = partitions[0]
        for cell in partitions[1:]:
            atom = np.unique(atom * (1 + cell.max()) + cell, return_inverse=True)[1].ravel()
        self._atom = atom
        weight, p = problem.weight, problem.features
        n_atoms = 1 + int(atom.max(initial=0))
        self._expected = weighted_sums(atom, weight, p, n_atoms)
        self._norms = np.bincount(atom, weight**2 * rowwise_dot(p, p), n_atoms)
        # Shares of the samples, times ĝ.
        payoff = (problem.share / weight.sum() * weight)[:, None] * correction
        self._paid = float(rowwise_dot(p, payoff).sum())
        self._payoff, self._proba = np.ravel(payoff), np.ravel(problem.features)
        self._partitions, columns = [], np.arange(p.shape[1])
        for name, cell in zip(names, partitions, strict=True):
            of_atom = np.empty(n_atoms, dtype=np.intp)
            of_atom[atom] = cell
            mass, pairs = mass_and_pairs(problem, cell)
            entries = (of_atom[:, None] * len(columns) + columns).ravel()
            factors = problem.share * mass / mass.sum() / pairs
            means = problem.share / weight.sum() * means_in_cells(problem, correction, cell)
            self._partitions.append((name, of_atom, entries, factors, means))

    def values(self, n_draws, draws, rows, columns) -> np.ndarray:
        """The value of each candidate (n_draws, n_candidates) by the events of each draw."""
        atom, weight = self._atom[rows], self.problem.weight[rows]
        n_atoms, m = self._expected.shape
        places = rows * m + columns  # of one column the rows, at a fraction of the time
        change = weight**2 * (1 - 2 * self._proba[places])
        norms = self._norms + _sums(draws, atom, change, (n_draws, n_atoms))
        sums = _sums(draws, atom * m + columns, weight, (n_draws, n_atoms * m))
        sums -= self._expected.ravel()
        ends = np.searchsorted(draws, np.arange(1, n_draws))
        product = np.array([paid.sum() for paid in np.split(self._payoff[places], ends)])
        product -= self._paid
        draws = np.arange(n_draws)[:, None]
        values = []
        for name, cell, entries, factors, means in self._partitions:
            of_cells = _sums(draws, entries, sums, (n_draws, len(factors) * m))
            of_cells = of_cells.reshape(n_draws, -1, m)
            squares = np.einsum("dkj,dkj->dk", of_cells, of_cells)
            pairs = (squares - _sums(draws, cell, norms, (n_draws, len(factors)))) @ factors
            if name == WHOLE:
                values.append(product)
            values.append(pairs)
            if "cell" in name:
                values.append(pairs + product - np.einsum("dkj,kj->d", of_cells, means))
        return np.stack(values, axis=1)


def _sums(draws, places, values, shape) -> np.ndarray:
    """Sums of values in the places (draw, place) of an array of this shape."""
    places = (draws * shape[1] + places).ravel()
    return np.bincount(places, values.ravel(), shape[0] * shape[1]).reshape(shape)
