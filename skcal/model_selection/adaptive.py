"""The squared calibration error by the forms that the samples can bear.

Of a problem with features x, residuals δ and corrections ĝ that were fitted on other samples, with
g*(x) = E[δ | x], every one of these is an estimate of E‖g*‖² that is hardly ever too high in
expectation:

* the product, mean ⟨δ, ĝ⟩ = E‖g*‖² + E⟨g*, ĝ - g*⟩: little noise, too low where ĝ is too smooth;
* B cells, the weighted mean over cells b of the mean ⟨δ_i, δ_j⟩ over its pairs i ≠ j, which is the
  debiased binned error: E‖E[g* | cell]‖²;
* B cells and the product within them, which adds mean ⟨δ_i, ĝ(x_i) - ĝ_b⟩ with ĝ_b the mean of ĝ
  over the cell: what cells average away is left to ĝ.

Cells are found without the labels, so that the choice favours no outcome: by halving at medians,
and for scalar problems also by equal widths. A partition into more than one cell needs outcomes
whose variances p(1 - p) add up to three times the number of its cells.

Each candidate has a standard deviation s that is known if the predictions are calibrated, since the
outcomes then follow the predictions. A finer one is taken as far as it shows significantly more (a
penalised maximum, Laurent & Massart 2000): the best is that of the highest value - 3 s, and the
estimate is the mean of all whose value - 3 s is at most 0.7 s of the best one below that.

References
----------
Laurent & Massart, Adaptive estimation of a quadratic functional by model selection, The Annals of
Statistics 2000.
Kumar, Liang & Ma, Verified uncertainty calibration, NeurIPS 2019.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack

from skcal._bins import equal_intervals
from skcal._matrices import gram_square, rowwise_dot
from skcal._show import ShownRounded
from skcal._validation import row_blocks
from skcal.notions import Problem, Problems

WHOLE = "1 cell"
_MAX_CELLS = 64
_BIN_NUMBERS = (5, 10, 15, 30)  # numbers of bins of equal width
_TIE_ROUNDING = 1e-9  # what is equal up to this is a tie, whatever the scale of the weights
_MIN_SAMPLES = 5  # samples of a cell, on average
_CANDIDATE_BYTES = 2**22  # of temporaries
_MIN_VARIANCE = 3.0  # variance of the outcomes of a cell, on average; of rare events their number
_PENALTY = 3.0  # standard deviations at calibration
_NEAR_BEST = 0.7  # standard deviations of the best candidate


@dataclass(frozen=True, eq=False)
class SquaredError(ShownRounded):
    """An estimate of a squared calibration error that adapts to the samples.

    Attributes
    ----------
    value : float
        The estimate. A positive one is shrunk by the factor max(0, 1 - 1/z²), since where nothing
        can be told from 0 most of it is noise; a negative one stands as it is.
    standard_error : float
        The standard error of the estimate before it is shrunk.
    unshrunk : float
        The mean of the chosen candidates, which is nearly unbiased.
    z : float
        The largest value of a candidate in its standard deviations at calibration.
    chosen : list of str
        The names of the chosen candidates, the best one first.
    candidates : list of (str, float, float)
        The name, the value and the standard deviation at calibration of every candidate.
    shapes : list
        What each chosen candidate sees of ĝ: the share of all samples and the mean of ĝ in each of
        its cells, one pair of arrays (n_cells,) and (n_cells, m) a problem; None where ĝ itself.
    """

    value: float
    standard_error: float
    unshrunk: float
    z: float
    chosen: list[str]
    candidates: list = field(repr=False)
    shapes: list = field(repr=False)

    def sentence(self) -> str:
        """Return the estimate in words."""
        error = f"± {self.standard_error:.2g} (s.e. before it is shrunk)"
        return f"squared calibration error {self.value:.4g} {error}"

    @property
    def doubt(self) -> float:
        """The factor max(0, 1 - 1/z²) of positive values."""
        return max(0.0, 1 - 1 / self.z**2) if self.z > 0 else 0.0


class GroupSums(NamedTuple):
    """A candidate as a form in sums over groups, Σ_{g≠g'} ⟨a_g, a_g'⟩ + Σ_g t_g.

    Attributes
    ----------
    vectors : sparse array of shape (n_groups, k)
    terms : ndarray of shape (n_groups,)
    """

    vectors: Any
    terms: np.ndarray

    @property
    def variance(self) -> float:
        """Its variance if the groups are independent and their residuals 0 on average."""
        norms = self._norms
        pairs = float(gram_square(self.vectors)) - norms @ norms
        return 2 * max(pairs, 0.0) + float(self.terms @ self.terms)

    @property
    def _norms(self) -> np.ndarray:
        return np.asarray((self.vectors * self.vectors).sum(axis=1)).ravel()

    def flipped(self, signs: np.ndarray) -> np.ndarray:
        """Its values where the residuals of each group keep or change their signs (k, n_groups)."""
        sums = (self.vectors.T @ signs.T).T
        return (sums**2).sum(axis=1) - self._norms.sum() + signs @ self.terms


class _Candidate(NamedTuple):
    name: str
    value: float
    variance: float  # at calibration
    influence: np.ndarray  # of each sample, up to a constant
    cells: list[np.ndarray] | None = None  # of each problem; None where ĝ enters
    sums: Any = None  # GroupSums, of groups


def adaptive_squared_error(data: Problems, corrections: Sequence[np.ndarray]) -> SquaredError:
    """Estimate the squared calibration error of a notion, the sum over its problems.

    Where the predictions are calibrated, the value is 0 more often than not.

    Parameters
    ----------
    data : Problems
        Problems, whose samples, all of positive weight, are counted by weight.
    corrections : sequence of ndarray of shape (n_rows, m), one a problem
        ĝ(x_i) of a function that was fitted without sample i.

    Returns
    -------
    estimate : SquaredError

    Notes
    -----
    O(n (m² + log n)) time for n samples and residuals of m columns (m = 1: n log n).
    """
    candidates = list(candidates_of(data, corrections))
    known = [c for c in candidates if c.variance > 0] or candidates
    values, deviations = np.array([(c.value, c.variance**0.5) for c in known]).T
    near, best = near_best(values, deviations)
    chosen = [known[best], *(known[k] for k in np.flatnonzero(near) if k != best)]
    unshrunk, z = values[near].mean(), largest_z(values, deviations)
    variance = max(c.variance for c in chosen)
    influence = np.mean([c.influence for c in chosen], axis=0)
    share = data.weight / data.weight.sum()
    terms = share * (influence - share @ influence)
    hajek = data.groups.larger_variance(float(terms @ terms), terms)
    return SquaredError(
        value=float(shrunk_value(unshrunk, z)),
        # The influences of a U-statistic count its degenerate part twice.
        standard_error=float(np.sqrt(max(variance, hajek - variance))),
        unshrunk=float(unshrunk),
        z=float(z),
        chosen=[c.name for c in chosen],
        candidates=[(c.name, float(c.value), float(c.variance**0.5)) for c in candidates],
        shapes=[c.cells and _shape_in_cells(data, corrections, c.cells) for c in chosen],
    )


# The rule, of one row of candidates or of many


def near_best(values, deviations) -> tuple[np.ndarray, np.ndarray]:
    """Which of the candidates (…, n_candidates) are as good as the best, and which that is."""
    lower = values - _PENALTY * deviations
    best, highest = lower.argmax(axis=-1), lower.max(axis=-1)
    least = highest - _NEAR_BEST * deviations[best] - _TIE_ROUNDING * np.abs(highest)
    return lower >= least[..., None], best


def largest_z(values, deviations) -> np.ndarray:
    """The largest value of a candidate in its standard deviations at calibration."""
    if (deviations > 0).all():
        return (values / deviations).max(axis=-1)
    # Events of predicted probability 0 that have happened are no noise.
    return np.where((values > 0).any(axis=-1), np.inf, 0.0)


def shrunk_value(value, z):
    """Positive values times max(0, 1 - 1/z²)."""
    return np.where(value > 0, value * np.maximum(0, 1 - 1 / np.maximum(z, 1) ** 2), value)


# The candidates


def candidates_of(data: Problems, corrections) -> Iterator[_Candidate]:
    """Return all candidates; of groups no variance is less than that of the sums over groups."""
    for name, cells in partitions_of(data):
        pairs = _pairs_in_cells(data, cells)._replace(name=name)
        if name == WHOLE:
            whole = _product("product", data, corrections)
            # One cell has a degree of freedom (m of vectors), and no correction has less.
            yield whole._replace(variance=max(whole.variance, pairs.variance))
        yield pairs
        if "cell" in name:
            rest = _product("", data, corrections, cells)
            yield _Candidate(
                f"{name} and the product within",
                pairs.value + rest.value,
                pairs.variance + rest.variance,
                pairs.influence + rest.influence,
                sums=pairs.sums and GroupSums(pairs.sums.vectors, rest.sums.terms),
            )


def partitions_of(data: Problems) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Names of partitions, and the cell of each sample of each problem; the same never twice."""
    cells = [np.zeros(len(part.weight), dtype=np.intp) for part in data.parts]
    yield WHOLE, cells
    sizes = [_effective_samples(part) for part in data.parts]
    variance = np.dot(sizes, [_mean_variance(part) for part in data.parts])
    known = [cells]

    def is_new(cells):
        enough = variance * (1 + _TIE_ROUNDING) >= _MIN_VARIANCE * sum(map(_n_cells, cells))
        return enough and not any(all(map(np.array_equal, cells, others)) for others in known)

    most = min(_MAX_CELLS, max(sizes) / _MIN_SAMPLES)
    for _ in range(int(np.log2(max(1.0, most)))):
        cells = [halve(part, cell) for part, cell in zip(data.parts, cells, strict=True)]
        if not is_new(cells):
            break
        known.append(cells)
        yield f"{max(map(_n_cells, cells))} cells", cells
    if data.parts[0].features.shape[1] > 1:
        return
    for n_bins in _BIN_NUMBERS:
        bins = equal_intervals(n_bins)
        cells = [
            np.unique(bins.assign(part.features), return_inverse=True)[1] for part in data.parts
        ]
        if is_new(cells):
            known.append(cells)
            yield f"{n_bins} bins", cells


def _n_cells(cell) -> int:
    return 1 + int(cell.max(initial=-1))


def _effective_samples(problem: Problem) -> float:
    weight = problem.weight
    # Whatever the rounding of a sum.
    return (1 + _TIE_ROUNDING) * weight.sum() ** 2 / (weight @ weight) if len(weight) else 0.0


def _mean_variance(problem: Problem) -> float:
    """The mean over samples of the variance of the outcome, its columns added."""
    total = problem.weight.sum()
    return sum(problem.weight @ _variance(column) for column in problem.features.T) / max(
        total, np.finfo(float).tiny
    )


def _variance(p):
    p = p.astype(np.float64)
    return p * (1 - p)


def halve(problem: Problem, cell: np.ndarray) -> np.ndarray:
    """Halve each cell by mass, along its feature of the largest variance; equal values stay.

    Cells of a single feature ascend with it, as those that halves of one cell are.
    """
    X, weight = problem.features, problem.weight
    if not len(weight):
        return cell
    mass = np.bincount(cell, weight)
    if X.shape[1] == 1:
        value = X[:, 0].astype(np.float64)
        order = np.argsort(value)
    else:
        means = weighted_sums(cell, weight, X, len(mass)) / mass[:, None]
        squares = np.stack(
            [np.bincount(cell, weight * column.astype(np.float64) ** 2) for column in X.T], axis=1
        )
        variance = squares / mass[:, None] - means**2
        largest = variance.max(axis=1, keepdims=True)
        coordinate = (variance >= largest * (1 - _TIE_ROUNDING)).argmax(axis=1)
        value = X[np.arange(len(X)), coordinate[cell]].astype(np.float64)
        order = np.lexsort((value, cell))
    value, ordered = value[order], cell[order]
    below = np.cumsum(weight[order]) - (np.cumsum(mass) - mass)[ordered]
    ends = np.flatnonzero((ordered[1:] == ordered[:-1]) & (value[1:] > value[:-1]))
    miss = np.round(np.abs(below[ends] / mass[ordered[ends]] - 0.5) / _TIE_ROUNDING)
    ends = ends[np.lexsort((miss, ordered[ends]))]
    cut = np.full(len(mass), np.inf)
    halved, first = np.unique(ordered[ends], return_index=True)
    cut[halved] = value[ends[first]]
    upper = np.zeros(len(X), dtype=np.intp)
    upper[order] = value > cut[ordered]
    halves = 2 * cell + upper
    return (np.cumsum(np.bincount(halves) > 0) - 1)[halves]


def weighted_sums(cell, weight, values, n_cells) -> np.ndarray:
    """Weighted sums of the columns of values in each cell, (n_cells, m)."""
    sums = [np.bincount(cell, weight * column, n_cells) for column in values.T]
    return np.stack(sums, axis=1)


def _shape_in_cells(data: Problems, corrections, cells) -> list[tuple[np.ndarray, np.ndarray]]:
    """The share of all samples, and the mean of ĝ, in each cell of each problem."""
    shapes = []
    for part, correction, cell in zip(data.parts, corrections, cells, strict=True):
        mass = np.bincount(cell, part.weight)
        sums = weighted_sums(cell, part.weight, correction, len(mass))
        shapes.append((part.share * mass / max(mass.sum(), 1e-300), sums / mass[:, None]))
    return shapes


def mass_and_pairs(problem: Problem, cell) -> tuple[np.ndarray, np.ndarray]:
    """The weight of each cell and of its pairs; infinite where a single sample makes none.

    Samples of one group make no pairs.
    """
    mass = np.bincount(cell, problem.weight)
    squares = problem.groups.squares_of_cells(problem.weight, cell, len(mass))
    pairs = mass**2 - squares
    pairs[pairs <= 1e-12 * mass**2] = np.inf
    return mass, pairs


def _group_cells(problem: Problem, cell):
    """The cell and the group of each part of a group in a cell, and the part of each sample."""
    groups = problem.groups
    parts, place = np.unique(cell * groups.n_groups + groups.codes, return_inverse=True)
    return parts // groups.n_groups, parts % groups.n_groups, place.ravel()


def _blocks_in(problem) -> Iterator[slice]:
    return row_blocks(len(problem.weight), 8 * 4 * problem.features.shape[1], most=_CANDIDATE_BYTES)


def _product(name, data: Problems, corrections, cells=None) -> _Candidate:
    """Mean ⟨δ, v⟩ of v = ĝ, or of ĝ minus its mean over the cell."""
    n = len(data.weight)
    terms, influence = np.zeros(n), np.zeros(n)
    spread = Spread(n)
    for k, (part, correction) in enumerate(zip(data.parts, corrections, strict=True)):
        cell = np.zeros(len(part.weight), dtype=np.intp) if cells is None else cells[k]
        means = means_in_cells(part, correction, cell)
        if cells is None:
            means = np.zeros_like(means)
        places = np.arange(n)[part.rows]
        for rows in _blocks_in(part):
            mean = means[cell[rows]]
            v, delta = correction[rows] - mean, part.residuals[rows]
            terms[places[rows]] += rowwise_dot(delta, v)
            influence[places[rows]] += rowwise_dot(v, 2 * (delta - mean) - v)
            spread.add(places[rows], part.features[rows], v)
    share = data.weight / data.weight.sum()
    variance = float(share**2 @ spread.variances)
    sums = None
    if not data.groups.independent:
        of_groups = data.groups.sums(share * terms)
        sums = GroupSums(csr_array((len(of_groups), 1)), of_groups)
        variance = max(variance, sums.variance)
    return _Candidate(name, float(share @ terms), variance, influence, sums=sums)


def means_in_cells(part: Problem, correction, cell) -> np.ndarray:
    """ĝ_b of each cell (n_cells, m); 0 where it makes no pair, so that ĝ itself stays."""
    count = np.bincount(cell)
    if not len(count):
        return np.zeros((1, correction.shape[1]))
    mass = np.bincount(cell, part.weight)
    means = weighted_sums(cell, part.weight, correction, len(mass)) / mass[:, None]
    means[count < 2] = 0
    return means


class Spread:
    """Moments of ⟨e_Y, v⟩ of each sample if Y follows given probabilities, added over problems.

    Problems about the same samples, one a class, are entries of one outcome.
    """

    def __init__(self, n_samples: int):
        self._powers = np.zeros((4, n_samples))  # Σ p v^k
        self._columns = np.zeros(n_samples, dtype=np.intp)

    def add(self, places, proba, vectors) -> None:
        """Add columns of probabilities and of v (n_rows, m) for some of the samples."""
        self._columns[places] += proba.shape[1]
        for rows in row_blocks(len(places), 8 * 4 * proba.shape[1], most=_CANDIDATE_BYTES):
            product, v = proba[rows].astype(np.float64), vectors[rows]
            for power in self._powers:
                power[places[rows]] += product.sum(axis=1)
                product = product * v

    def _moments(self):
        """Moments about 0; columns that do not sum to 1 are divided by their sum."""
        mass = np.where((self._columns > 1) & (self._powers[0] > 0), self._powers[0], 1)
        return self._powers[1:] / mass

    @property
    def variances(self) -> np.ndarray:
        """The variance of each sample."""
        mean, square, _ = self._moments()
        return np.maximum(square - mean**2, 0)

    @property
    def third_moments(self) -> np.ndarray:
        """The third central moment of each sample."""
        mean, square, cube = self._moments()
        return cube - 3 * mean * square + 2 * mean**3


def _pairs_in_cells(data: Problems, cells) -> _Candidate:
    """The weighted mean over cells of ⟨δ_i, δ_j⟩ over pairs of samples of different groups."""
    value, variance, influence = 0.0, 0.0, np.zeros(len(data.weight))
    grouped, vectors = not data.groups.independent, []
    for part, cell in zip(data.parts, cells, strict=True):
        if not len(part.weight):
            continue
        mass, pairs = mass_and_pairs(part, cell)
        sums = weighted_sums(cell, part.weight, part.residuals, len(mass))
        share = part.share * mass / mass.sum()
        if grouped:
            of_cell, of_group, place = _group_cells(part, cell)
            of_groups = weighted_sums(place, part.weight, part.residuals, len(of_cell))
            squares = np.bincount(of_cell, rowwise_dot(of_groups, of_groups))
            row = rowwise_dot(part.residuals, sums[cell] - of_groups[place])
            shape, scale = (data.groups.n_groups, len(mass)), np.sqrt(share / pairs)[of_cell]
            for column in of_groups.T:
                vectors.append(csr_array((scale * column, (of_group, of_cell)), shape=shape))
        else:
            norms, row = np.empty(len(cell)), np.empty(len(cell))
            for rows in _blocks_in(part):
                delta = part.residuals[rows]
                norms[rows] = rowwise_dot(delta, delta)
                row[rows] = rowwise_dot(delta, sums[cell[rows]])
            squares = np.bincount(cell, part.weight**2 * norms)
            row -= part.weight * norms
        error = (rowwise_dot(sums, sums) - squares) / pairs
        influence[part.rows] += 2 * row * (mass / pairs)[cell] - error[cell]
        value += float(share @ error)
        expected = _products_of_covariances(part, cell, len(mass))
        variance += float(share**2 @ (2 * expected / pairs**2))
    if grouped:
        form = GroupSums(hstack(vectors, format="csr"), np.zeros(data.groups.n_groups))
        return _Candidate("", value, max(variance, form.variance), influence, cells, form)
    n_columns = sum(part.features.shape[1] for part in data.parts)
    if len(data.parts) > 1 and data.share_samples:
        variance *= n_columns / (n_columns - 1)  # residuals of the classes sum to 0
    return _Candidate("", value, variance, influence, cells)


def _products_of_covariances(part, cell, n_cells) -> np.ndarray:
    """Σ_{i≠j} w_i² w_j² tr(V_i V_j) over each cell, V_i the covariance of the outcome under p_i."""
    squares, X = part.weight**2, part.features
    if X.shape[1] == 1:
        own = squares * _variance(X[:, 0])
        return _above_rounding(np.bincount(cell, own, n_cells) ** 2, np.bincount(cell, own**2))
    own = np.empty(len(cell))
    for rows in _blocks_in(part):
        p = X[rows].astype(np.float64)
        p2 = (p**2).sum(axis=1)
        own[rows] = squares[rows] ** 2 * (p2 - 2 * (p**3).sum(axis=1) + p2**2)
    members = np.split(np.argsort(cell, kind="stable"), np.cumsum(np.bincount(cell))[:-1])
    norms = [_squared_norm_of_covariance(X, squares, rows) for rows in members]
    return _above_rounding(np.array(norms), np.bincount(cell, own))


def _above_rounding(total, own) -> np.ndarray:
    """The total less what samples make with themselves; 0 where rounding leaves no more."""
    return np.where(total - own > 1e-13 * total, total - own, 0.0)


def _squared_norm_of_covariance(X, squares, members) -> Any:
    """‖Σ_i w_i² (diag p_i - p_i p_iᵀ)‖_F² over the members of a cell."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for rows in row_blocks(len(members), 16 * X.shape[1]):
        few = members[rows]
        root = X[few] * np.sqrt(squares[few])[:, None]
        total -= root.T @ root
        total[np.diag_indices_from(total)] += squares[few] @ X[few]
    return (total**2).sum()
