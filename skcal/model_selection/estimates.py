"""One-step estimates: what a correction that was fitted to other samples gains, and how surely.

The terms of errors other than the squared one follow by duality, see
:mod:`skcal.model_selection.errors`. Redrawn outcomes give the limit of an estimate if the
predictions are calibrated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from skcal._groups import law_of_mean
from skcal._matrices import rowwise_dot
from skcal._show import ShownRounded
from skcal._sklearn_compat import validate_params
from skcal._validation import CONFIDENCE_LEVEL
from skcal.model_selection.adaptive import (
    WHOLE,
    Spread,
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
from skcal.pair_risk import one_step_terms, weighted_mean


class ConfidenceInterval(NamedTuple):
    """An interval with fields ``low`` and ``high``, as scipy's results have."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class OneStepEstimate(ShownRounded):
    """One-step estimate of a squared calibration error.

    Attributes
    ----------
    value : float
        Estimate; negative values are possible.
    standard_error : float
        The standard error of the mean of the terms, given the fitted function, and no less than
        what the predictions imply: see ``one_step_gain``.
    terms : ndarray of shape (n_samples,)
        The independent terms ψ_i, whose (weighted) mean is the value.
    degrees_of_freedom : float
        Degrees of freedom of the value in units of its standard error: those of Student's
        distribution for groups; infinity is the normal one.
    """

    value: float
    standard_error: float
    terms: np.ndarray = field(repr=False)
    degrees_of_freedom: float = field(default=np.inf, repr=False)

    def sentence(self) -> str:
        """Return the estimate in words."""
        return f"squared calibration error {self.value:.4g} ± {self.standard_error:.2g} (s.e.)"

    @property
    def _law(self):
        return law_of_mean(self.degrees_of_freedom)

    @property
    def pvalue(self) -> float:
        """One-sided p-value of a squared error of 0; 1 where the standard error is unknown.

        :meth:`lower_confidence_bound` is above 0 where it is below 1 - ``confidence_level``.
        """
        if not np.isfinite(self.standard_error):
            return 1.0
        if self.standard_error == 0:
            return 0.0 if self.value > 0 else 1.0
        return float(self._law.sf(self.value / self.standard_error))

    @validate_params(CONFIDENCE_LEVEL)
    def confidence_interval(self, confidence_level=0.95) -> ConfidenceInterval:
        """Normal interval around the value.

        It covers the squared error minus E‖ĝ - g*‖², so only its lower end bounds the calibration
        error.

        Parameters
        ----------
        confidence_level : float in (0, 1), default=0.95
            Share of samples, drawn anew, for which the limits hold.
        """
        self._require_error()
        half = self._law.ppf((1 + confidence_level) / 2) * self.standard_error
        return ConfidenceInterval(float(self.value - half), float(self.value + half))

    @validate_params(CONFIDENCE_LEVEL)
    def lower_confidence_bound(self, confidence_level=0.95) -> float:
        """One-sided lower confidence limit of the squared calibration error.

        Parameters
        ----------
        confidence_level : float in (0, 1), default=0.95
            Share of samples, drawn anew, for which the limits hold.
        """
        self._require_error()
        return float(self.value - self._law.ppf(confidence_level) * self.standard_error)

    def _require_error(self):
        if not np.isfinite(self.standard_error):
            raise ValueError(
                f"An interval needs at least 2 test samples, there are {len(self.terms)}. "
                "Pass a larger test split."
            )


@dataclass(frozen=True, eq=False)
class Gains:
    """One-step terms of the samples of a problem: what the outcomes pay, above a constant.

    Attributes
    ----------
    terms : ndarray of shape (n_rows,)
    expected : ndarray of shape (n_rows,)
        The mean of the terms if the outcomes follow the predictions p.
    corrected : ndarray of shape (n_rows,)
        The mean of the terms if the outcomes follow p + ĝ.
    payoff : ndarray of shape (n_rows, m)
        What each outcome pays.
    correction : ndarray of shape (n_rows, m)
        ĝ.
    """

    terms: np.ndarray
    expected: np.ndarray
    corrected: np.ndarray
    payoff: np.ndarray
    correction: np.ndarray


def _squared_gain(part: Problem, correction) -> Gains:
    """2⟨δ, ĝ⟩ - ‖ĝ‖²."""
    norms = rowwise_dot(correction, correction)
    terms = one_step_terms(correction, part.residuals)
    return Gains(terms, -norms, norms, 2 * correction, correction)


def _outcome_gain(part: Problem, payoff, base, corrected, correction) -> Gains:
    """⟨outcome, payoff⟩ + base."""
    terms = rowwise_dot(part.features + part.residuals, payoff) + base
    return Gains(terms, rowwise_dot(part.features, payoff) + base, corrected, payoff, correction)


def _direction_gain(part: Problem, direction, correction) -> Gains:
    """⟨δ, direction⟩."""
    base = -rowwise_dot(part.features, direction)
    return _outcome_gain(part, direction, base, rowwise_dot(correction, direction), correction)


def _l1_gain(part: Problem, correction, n_samples) -> Gains:
    return _direction_gain(part, np.sign(correction) * half(correction), correction)


def half(correction) -> float:
    """Total variation halves the sum over outcomes; of one number its complement is left out."""
    return 0.5 if correction.shape[1] > 1 else 1.0


def _l2_gain(part: Problem, correction, n_samples) -> Gains:
    norms = np.linalg.norm(correction, axis=1, keepdims=True)
    direction = np.divide(correction, norms, out=np.zeros_like(correction), where=norms > 0)
    return _direction_gain(part, direction, correction)


def proba_of_outcomes(part: Problem) -> np.ndarray:
    """The features, of a single one (p, 1 - p), which of logits is no difference."""
    p = part.features.astype(np.float64)
    if p.shape[1] > 1:
        return p
    return np.hstack([p, 1 - p if part.logits is None else expit(-part.logits)])


def corrected_proba(p, correction, n_samples) -> np.ndarray:
    """Rows q ∝ max(p + ĝ, p / √n): no outcome becomes impossible by a correction."""
    q = np.maximum(p + correction, p / np.sqrt(n_samples))
    return q / q.sum(axis=1, keepdims=True)


def _log_gain(part: Problem, correction, n_samples) -> Gains:
    """Gain of log loss of the corrected probabilities."""
    p = proba_of_outcomes(part)
    scalar = correction.shape[1] == 1
    if scalar:
        correction = np.hstack([correction, -correction])
    q = corrected_proba(p, correction, n_samples)
    ratio = np.divide(q, p, out=np.ones_like(q), where=(p > 0) & (q > 0))
    gain = np.log(ratio)
    corrected = rowwise_dot(q, gain)
    if not scalar:
        return _outcome_gain(part, gain, np.zeros(len(p)), corrected, correction)
    payoff, base = gain[:, :1] - gain[:, 1:], gain[:, 1]
    return _outcome_gain(part, payoff, base, corrected, correction[:, :1])


#: Kind of error → its one-step terms, by a problem, ĝ and the number of samples.
GAINS: dict[str, Callable[..., Gains]] = {"l1": _l1_gain, "l2": _l2_gain, "log": _log_gain}


def one_step(corrections: Sequence[np.ndarray], data: Problems) -> OneStepEstimate:
    """One-step estimate of the squared error by corrections ĝ that were fitted to other samples.

    Parameters
    ----------
    corrections : sequence of ndarray of shape (n_rows, m), one a problem
    data : Problems

    Returns
    -------
    estimate : OneStepEstimate
    """
    pairs = zip(data.parts, corrections, strict=True)
    return one_step_gain([_squared_gain(*pair) for pair in pairs], data)[0]


def one_step_gain(gains: Sequence[Gains], data: Problems) -> tuple[OneStepEstimate, float]:
    """One-step estimate by the terms of each problem, and their mean if the outcomes follow p + ĝ.

    Parameters
    ----------
    gains : sequence of Gains, one a problem
    data : Problems

    Returns
    -------
    estimate : OneStepEstimate
    corrected : float

    Notes
    -----
    The terms of rare events look alike until an event occurs, so that their variance v is too small
    by chance, and a bound by it too high. Given ĝ it is known what it would be if the outcomes
    followed p, or p + λĝ; v₀ takes the smaller of the two for each sample, and the standard error
    is √(max(v, v₀) / n). λ = 1 - min(¼, 2γ²), with γ the skewness of the mean payoff if the
    outcomes followed p: the fewer events carry the terms, the less is ĝ believed.
    """
    n = len(data.weight)
    share, places = data.weight / data.weight.sum(), np.arange(n)
    terms, expected, corrected = np.zeros(n), np.zeros(n), np.zeros(n)
    predicted, moved = Spread(n), Spread(n)
    for gain, part in zip(gains, data.parts, strict=True):
        terms[part.rows] += gain.terms
        expected[part.rows] += gain.expected
        corrected[part.rows] += gain.corrected
        predicted.add(places[part.rows], part.features, gain.payoff)
    second, third = share**2 @ predicted.variances, share**3 @ predicted.third_moments
    belief = 1 - min(0.25, 2 * third**2 / second**3) if second > 0 else 1.0
    for gain, part in zip(gains, data.parts, strict=True):
        proba = np.clip(part.features + belief * gain.correction, 0, 1)
        moved.add(places[part.rows], proba, gain.payoff)
    value, standard_error = weighted_mean(terms, data.weight)
    implied = np.minimum(predicted.variances, moved.variances)
    unbiased = 1 - share @ share
    if unbiased > 0:
        total = implied + (expected - share @ expected) ** 2
        standard_error = max(standard_error, np.sqrt(share**2 @ total / unbiased))
    variance = data.groups.larger_variance(standard_error**2, share * (terms - value))
    if not data.groups.independent:
        law = data.dependent.variance_of_terms(share * np.sqrt(implied))
        between = data.groups.variance_of_sum(share * (expected - share @ expected))
        variance = max(variance, law + float(between))
    freedom = data.groups.degrees_of_freedom(data.weight)
    estimate = OneStepEstimate(value, float(np.sqrt(variance)), terms, freedom)
    return estimate, float(share @ corrected)


def median_of_repeats(values: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """Median over repeated shuffles, its variance the median of s.e.² + (deviation)².

    So an estimate does not hang on one shuffle (Chernozhukov et al., Double/debiased machine
    learning for treatment and structural parameters, The Econometrics Journal 2018, Def. 3.3).
    """
    middle = np.median(values)
    variance = np.median(np.square(errors) + (np.asarray(values) - middle) ** 2)
    return float(middle), float(np.sqrt(variance))


def median_of_one_steps(repeats: list[OneStepEstimate | None]) -> OneStepEstimate | None:
    """Median over repeats, with the terms of the repeat closest to it."""
    estimates = [estimate for estimate in repeats if estimate is not None]
    if len(estimates) < len(repeats):
        return None
    if len(estimates) == 1:
        return estimates[0]
    values = [estimate.value for estimate in estimates]
    middle, error = median_of_repeats(values, [one.standard_error for one in estimates])
    closest = estimates[int(np.argmin(np.abs(np.array(values) - middle)))]
    return OneStepEstimate(middle, error, closest.terms, closest.degrees_of_freedom)


_SHRINK_LEVEL = 0.95
_SIGN_DRAWS = 400
_DRAWN_TOGETHER = 2**15  # outcomes that are redrawn at a time
_DRAWN_OUTCOMES = 4e7  # of more samples, or of hundreds of classes, fewer draws, but at least 100


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
    return float(max(np.quantile(shrunk, _SHRINK_LEVEL), 0.0))


def _flipped(data: Problems, corrections) -> np.ndarray:
    """The values of all candidates where groups keep or change the signs of their residuals."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(_SIGN_DRAWS, data.groups.n_groups))
    candidates = candidates_of(data, corrections)
    return np.stack([candidate.sums.flipped(signs) for candidate in candidates], axis=1)


def _redrawn(data: Problems, corrections) -> np.ndarray:
    """The values of all candidates, as in their estimates, under redrawn outcomes, a row a draw."""
    rng, n = np.random.default_rng(0), len(data.weight)
    cost = n * max(1, data.parts[0].features.shape[1] / 100)
    n_draws = int(np.clip(_DRAWN_OUTCOMES / cost, 100, _SIGN_DRAWS))
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
    step = max(1, _DRAWN_TOGETHER // ends[-1])
    for start in range(0, n_draws, step):
        uniform = rng.random((min(step, n_draws - start), ends[-1]))
        columns = np.split(uniform, ends[:-1], axis=1)
        drawn = [_drawn_events(own, limit) for own, limit in zip(columns, limits, strict=True)]
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


def _drawn_events(uniform, limit) -> tuple:
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
