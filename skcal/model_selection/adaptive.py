"""The squared calibration error by the form that the samples can bear.

Of a problem with features x, residuals δ and corrections ĝ that were fitted on other samples, with
g*(x) = E[δ | x], every one of these is an estimate of E‖g*‖² that is hardly ever too high in
expectation:

* the product, mean ⟨δ, ĝ⟩ = E‖g*‖² + E⟨g*, ĝ - g*⟩: little noise, too low where ĝ is too smooth;
* B cells, the weighted mean over cells b of the mean ⟨δ_i, δ_j⟩ over its pairs i ≠ j, which is the
  debiased binned error: E‖E[g* | cell]‖²;
* B cells and the product within them, which adds mean ⟨δ_i, ĝ(x_i) - ĝ_b⟩ with ĝ_b the mean of ĝ
  over the cell: what cells average away is left to ĝ.

Each has a standard deviation s that is known if the predictions are calibrated, since the outcomes
then follow the predictions. The estimate is the candidate of the highest value - 2.5 s: a finer one
is taken as far as it shows significantly more (a penalised maximum, Laurent & Massart 2000). Cells
are found without the labels, by halving at medians, so that the choice favours no outcome.

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

from skcal._show import ShownRounded
from skcal._validation import row_blocks
from skcal.notions import Problem, Problems

_MAX_CELLS = 64
_ROUNDING = 1e-9  # what is equal up to this is a tie, whatever the scale of the weights
_MIN_SAMPLES = 5  # samples of a cell, on average
_MIN_VARIANCE = 1.0  # variance of the outcomes of a cell, on average; of rare events their number
_PENALTY = 2.5  # standard deviations at calibration
_NULL_DRAWS = 4000


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
        The chosen candidate's value, which is nearly unbiased.
    z : float
        The largest value of a candidate in its standard deviations at calibration.
    chosen : str
        The name of the chosen candidate.
    candidates : list of (str, float, float)
        The name, the value and the standard deviation at calibration of every candidate.
    calibrated_up_to : float
        What the value stays below with probability 0.95 if the predictions are calibrated, by the
        distribution of the cells' candidates, see :func:`adaptive_squared_error`.
    """

    value: float
    standard_error: float
    unshrunk: float
    z: float
    chosen: str
    candidates: list = field(repr=False)
    calibrated_up_to: float


class _Candidate(NamedTuple):
    name: str
    value: float
    variance: float  # at calibration
    influence: np.ndarray  # of each sample, up to a constant


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
    candidates = list(_estimates(data, corrections))
    known = [c for c in candidates if c.variance > 0] or candidates
    best = max(known, key=lambda c: c.value - _PENALTY * c.variance**0.5)
    # Events of predicted probability 0 that have happened are no noise.
    certain = np.inf if best.value > 0 else 0.0
    z = max((c.value / c.variance**0.5 for c in known if c.variance > 0), default=certain)
    share = data.weight / data.weight.sum()
    hajek = share**2 @ (best.influence - share @ best.influence) ** 2
    # The influences of a U-statistic count its degenerate part twice.
    standard_error = float(np.sqrt(max(best.variance, hajek - best.variance)))
    shrunk = best.value * max(0.0, 1 - 1 / z**2) if z > 0 else 0.0
    return SquaredError(
        value=float(shrunk if best.value > 0 else best.value),
        standard_error=standard_error,
        unshrunk=float(best.value),
        z=float(z),
        chosen=best.name,
        candidates=[(c.name, float(c.value), float(c.variance**0.5)) for c in candidates],
        calibrated_up_to=_null_quantile(
            np.sqrt([c.variance for c in candidates[1::2]]), data.parts[0].features.shape[1]
        ),
    )


def _null_quantile(deviations, n_columns) -> float:
    """The 95 % quantile of the value at calibration, from the deviations of 1, 2, 4, … cells.

    What a finer partition adds is nearly independent of the coarser one, and a sum of squares with
    as many degrees of freedom as it adds cells, each of n_columns - 1 (at least 1).
    """
    rng = np.random.default_rng(0)
    added = np.maximum(np.diff(deviations**2, prepend=0.0), 0.0)
    freedom = max(1, n_columns - 1) * np.maximum(1, 2.0 ** np.arange(-1, len(added) - 1))
    squares = rng.chisquare(freedom, (_NULL_DRAWS, len(added)))
    values = np.cumsum((squares - freedom) * np.sqrt(added / (2 * freedom)), axis=1)
    known = deviations > 0
    if not known.any():
        return 0.0
    values, deviations = values[:, known], deviations[known]
    best = np.argmax(values - _PENALTY * deviations, axis=1)
    raw, z = values[np.arange(len(values)), best], (values / deviations).max(axis=1)
    shrunk = np.where((raw > 0) & (z > 1), raw * (1 - 1 / np.maximum(z, 1) ** 2), 0.0)
    return float(np.quantile(shrunk, 0.95))


def _estimates(data: Problems, corrections) -> Iterator[_Candidate]:
    n_levels = max(_n_levels(part) for part in data.parts)
    cells = [np.zeros(len(part.weight), dtype=np.intp) for part in data.parts]
    for level in range(n_levels):
        if level:
            cells = [halve(part, cell) for part, cell in zip(data.parts, cells, strict=True)]
        pairs = _pairs_in_cells(data, cells)
        if level == 0:
            whole = _product("product", data, corrections)
            # One cell has a degree of freedom (m of vectors), and no correction has less.
            yield whole._replace(variance=max(whole.variance, pairs.variance))
        yield pairs
        rest = _product("", data, corrections, cells)
        yield _Candidate(
            f"{pairs.name} and the product within",
            pairs.value + rest.value,
            pairs.variance + rest.variance,
            pairs.influence + rest.influence,
        )


def _n_levels(problem: Problem) -> int:
    """1 + log₂ of the largest number of cells whose sums are nearly normal."""
    weight = problem.weight
    if not len(weight):
        return 1
    share = weight / weight.sum()
    effective = 1 / (share @ share)
    variance = sum(share @ _variance(column) for column in problem.features.T)
    most = min(_MAX_CELLS, effective / _MIN_SAMPLES, effective * variance / _MIN_VARIANCE)
    return 1 + int(np.log2(max(1.0, most * (1 + _ROUNDING))))  # whatever the rounding of a sum


def _variance(p):
    p = p.astype(np.float64)
    return p * (1 - p)


def halve(problem: Problem, cell: np.ndarray) -> np.ndarray:
    """Halve each cell by mass, along its feature of the largest variance; equal values stay."""
    X, weight = problem.features, problem.weight
    if not len(weight):
        return cell
    mass = np.bincount(cell, weight)
    coordinate = np.zeros(len(mass), dtype=np.intp)
    if X.shape[1] > 1:
        means = _sums(cell, weight, X, len(mass)) / mass[:, None]
        squares = np.stack(
            [np.bincount(cell, weight * column.astype(np.float64) ** 2) for column in X.T], axis=1
        )
        variance = squares / mass[:, None] - means**2
        largest = variance.max(axis=1, keepdims=True)
        coordinate = (variance >= largest * (1 - _ROUNDING)).argmax(axis=1)
    value = X[np.arange(len(X)), coordinate[cell]].astype(np.float64)
    order = np.lexsort((value, cell))
    value, own = value[order], cell[order]
    below = np.cumsum(weight[order]) - (np.cumsum(mass) - mass)[own]
    cut = np.full(len(mass), np.inf)
    ends = np.flatnonzero((own[1:] == own[:-1]) & (value[1:] > value[:-1]))
    if len(ends):
        miss = np.round(np.abs(below[ends] / mass[own[ends]] - 0.5) / _ROUNDING)
        best = ends[np.lexsort((miss, own[ends]))]
        best = best[np.append(True, own[best][1:] != own[best][:-1])]
        cut[own[best]] = value[best]
    upper = np.zeros(len(X), dtype=np.intp)
    upper[order] = value > cut[own]
    return np.unique(2 * cell + upper, return_inverse=True)[1].ravel()


def _sums(cell, weight, values, n_cells) -> np.ndarray:
    """Weighted sums of the columns of values in each cell, (n_cells, m)."""
    sums = [np.bincount(cell, weight * column, n_cells) for column in values.T]
    return np.stack(sums, axis=1)


def _blocks_of(problem) -> Iterator[slice]:
    return row_blocks(len(problem.weight), 8 * 4 * problem.features.shape[1])


def _dot(first, second):
    return np.einsum("ij,ij->i", first, second)


def _product(name, data: Problems, corrections, cells=None) -> _Candidate:
    """Mean ⟨δ, v⟩ of v = ĝ, or of ĝ minus its mean over the cell."""
    n = len(data.weight)
    terms, influence = np.zeros(n), np.zeros(n)
    spread = Spread(n)
    for k, (part, correction) in enumerate(zip(data.parts, corrections, strict=True)):
        cell = np.zeros(len(part.weight), dtype=np.intp) if cells is None else cells[k]
        means = _means(part, correction, cell, cells is None)
        places = np.arange(n)[part.rows]
        for rows in _blocks_of(part):
            mean = means[cell[rows]]
            v, delta = correction[rows] - mean, part.residuals[rows]
            terms[places[rows]] += _dot(delta, v)
            influence[places[rows]] += _dot(v, 2 * (delta - mean) - v)
            spread.add(places[rows], part.features[rows], v)
    share = data.weight / data.weight.sum()
    return _Candidate(name, float(share @ terms), float(share**2 @ spread.variances), influence)


def _means(part, correction, cell, whole):
    """ĝ_b of each cell; 0 where it makes no pair, so that ĝ itself stays."""
    count = np.bincount(cell)
    if whole or not len(count):
        return np.zeros((max(1, len(count)), correction.shape[1]))
    mass = np.bincount(cell, part.weight)
    means = _sums(cell, part.weight, correction, len(mass)) / mass[:, None]
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
        for rows in row_blocks(len(places), 8 * 4 * proba.shape[1]):
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
    """The weighted mean over cells of the mean ⟨δ_i, δ_j⟩ over pairs i ≠ j."""
    value, variance, influence = 0.0, 0.0, np.zeros(len(data.weight))
    for part, cell in zip(data.parts, cells, strict=True):
        if not len(part.weight):
            continue
        mass, squares = np.bincount(cell, part.weight), np.bincount(cell, part.weight**2)
        pairs = mass**2 - squares
        pairs[pairs <= 1e-12 * mass**2] = np.inf  # a single sample makes no pair and adds nothing
        sums = _sums(cell, part.weight, part.residuals, len(mass))
        norms, row = np.empty(len(cell)), np.empty(len(cell))
        for rows in _blocks_of(part):
            delta = part.residuals[rows]
            norms[rows] = _dot(delta, delta)
            row[rows] = _dot(delta, sums[cell[rows]])
        products = _dot(sums, sums) - np.bincount(cell, part.weight**2 * norms)
        error = products / pairs
        row -= part.weight * norms
        influence[part.rows] += 2 * row * (mass / pairs)[cell] - error[cell]
        share = part.share * mass / mass.sum()
        value += float(share @ error)
        variance += float(
            share**2 @ (2 * _products_of_covariances(part, cell, len(mass)) / pairs**2)
        )
    n_columns = sum(part.features.shape[1] for part in data.parts)
    if len(data.parts) > 1 and data.share_samples:
        variance *= n_columns / (n_columns - 1)  # residuals of the classes sum to 0
    n_cells = 1 + max(int(cell.max(initial=0)) for cell in cells)
    return _Candidate(f"{n_cells} cell{'s' * (n_cells > 1)}", value, variance, influence)


def _products_of_covariances(part, cell, n_cells) -> np.ndarray:
    """Σ_{i≠j} w_i² w_j² tr(V_i V_j) over each cell, V_i the covariance of the outcome under p_i."""
    squares, X = part.weight**2, part.features
    if X.shape[1] == 1:
        own = squares * _variance(X[:, 0])
        return np.bincount(cell, own, n_cells) ** 2 - np.bincount(cell, own**2, n_cells)
    own = np.empty(len(cell))
    for rows in _blocks_of(part):
        p = X[rows].astype(np.float64)
        p2 = (p**2).sum(axis=1)
        own[rows] = squares[rows] ** 2 * (p2 - 2 * (p**3).sum(axis=1) + p2**2)
    members = np.split(np.argsort(cell, kind="stable"), np.cumsum(np.bincount(cell))[:-1])
    norms = [_squared_norm_of_covariance(X[rows], squares[rows]) for rows in members]
    return np.array(norms) - np.bincount(cell, own, n_cells)


def _squared_norm_of_covariance(X, squares) -> Any:
    """‖Σ_i w_i² (diag p_i - p_i p_iᵀ)‖_F²."""
    total = np.diag(squares @ X).astype(np.float64)
    for rows in row_blocks(len(X), 16 * X.shape[1]):
        root = X[rows] * np.sqrt(squares[rows])[:, None]
        total -= root.T @ root
    return (total**2).sum()
