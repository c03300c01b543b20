"""Stacks of functions in a search: parts are fitted once, and held-out samples weight them."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from skcal._matrices import sum_over_pairs
from skcal._running import recorded_warnings
from skcal.functions.stacking import best_weights
from skcal.model_selection.engine import Fit, no_correction, raise_no_pairs
from skcal.model_selection.families import FunctionFamily, Plain, Work, key_of
from skcal.notions import Problem, Problems
from skcal.pair_risk import pair_risk_path


class Stack(FunctionFamily):
    """A function of fitted parts, its weights chosen by samples that other fits hold out.

    The parts are fitted once to each training set and never cross-validated inside: what they say
    of the samples that score other fits chooses the weights.
    """

    _held_out: list[list]  # of each column
    _known: dict[tuple[Hashable, int], Fit]  # of functions that may be parts, by training

    def take_parts(self, families: Iterable[FunctionFamily]) -> None:
        """Take the fits of parts from candidates that are the same functions."""
        self._known = {}
        for family in families:
            if isinstance(family, Plain):
                self._known |= family.known_fits()

    def calls(self, group: list, work: Work) -> list[tuple]:
        """Return the call that fits the parts, for each training set."""
        keys = [key_of(part) for part in self.function.parts]
        known = [
            [self._known.get((key, k)) for key in keys] for k in range(len(work.plan.trainings))
        ]
        return [
            (fit_parts, self.function, work.data, *training, of_parts)
            for training, of_parts in zip(work.plan.scored_trainings, known, strict=True)
        ]

    def record(self, group: list, results: list, work: Work) -> tuple[np.ndarray, np.ndarray]:
        """Keep the parts; score each column by the weights that the others of its group choose."""
        self._fits = dict(enumerate(result.fits for result in results))
        self._held_out = [column for result in results for column in result.held_out]
        scores = np.empty((1, len(work.plan.columns)))
        for columns in work.plan.groups:
            for column in columns:
                others = [self._held_out[other] for other in columns if other != column]
                scores[0, column] = _stack_score(self.function, self._held_out[column], others)
        return scores, np.stack([result.times for result in results], axis=1)

    def fit_of(self, setting: int, column: int, chosen_by: list[int], work: Work) -> Fit:
        """Combine the parts by weights that some columns choose."""
        held_out = [self._held_out[number] for number in chosen_by]
        training = work.plan.columns[column].training
        return _combine(self.function, self._fits[training], held_out)

    def fit_to_all(self, work: Work) -> Fit:
        """Fit the parts to all samples; all columns choose the weights."""
        with recorded_warnings():  # which the parts have said before
            parts = _parts_of(self.function, work.data.take(work.plan.rows))
        return _combine(self.function, parts, self._held_out)

    def forget_fits(self) -> None:
        """Free the parts, and what they say."""
        self._fits, self._held_out, self._known = {}, [], {}


class HeldOutParts(NamedTuple):
    """What the parts of a stack say of one problem of samples that their fits lack.

    Attributes
    ----------
    products : ndarray
        What :meth:`skcal.Stacking.products` returns.
    zero_risk, pairs, share : float
        The risk of h = 0, the weight of all pairs, and the share of the problem.
    """

    products: np.ndarray
    zero_risk: float
    pairs: float
    share: float


class FittedParts(NamedTuple):
    """Fitted parts of a stack, and what they say of held-out samples.

    Attributes
    ----------
    fits : list
        The fitted functions of each problem, or None where it has too few samples.
    held_out : list of lists of HeldOutParts or None
        One for each set of evaluation rows and each problem.
    times : ndarray of shape (1, 2)
    warnings : list of Warning
    """

    fits: list
    held_out: list[list]
    times: np.ndarray
    warnings: list


def fit_parts(
    stack: Any,
    data: Problems,
    train: np.ndarray,
    evaluations: list[np.ndarray],
    known: list[Fit | None],
) -> FittedParts:
    """Fit the parts of a stack to the training rows, for weights that others will choose.

    ``known`` holds the fit of each part, or None.
    """
    start = time.perf_counter()
    with recorded_warnings() as caught:
        fits = _parts_of(stack, data.take(train), known)
    middle = time.perf_counter()
    held_out = [
        [
            _hold_out(stack, fitted, problem)
            for fitted, problem in zip(fits, data.take(rows).parts, strict=True)
        ]
        for rows in evaluations
    ]
    times = np.array([[middle - start, time.perf_counter() - middle]])
    return FittedParts(fits, held_out, times, [entry.message for entry in caught])


def _parts_of(stack: Any, data: Problems, known: Iterable[Fit | None] = ()) -> list:
    """The fitted parts of each problem, None where it has too few samples."""
    fits = []
    for k, problem in enumerate(data.parts):
        sample = problem.seen_by(stack), problem.residuals, problem.weight
        known_parts = [fitted and fitted[k] for fitted in known]
        fits.append(stack.fit_parts(*sample, known_parts) if problem.has_pairs else None)
    return fits


def _hold_out(stack, fitted, problem: Problem) -> HeldOutParts | None:
    if fitted is None or not problem.has_pairs:
        return None
    X, residuals, weight = problem.seen_by(stack), problem.residuals, problem.weight
    zero = pair_risk_path(np.zeros((len(X), 1)), residuals, [None], sample_weight=weight)
    products = stack.products(fitted, X, residuals, weight)
    return HeldOutParts(products, float(zero[0]), float(sum_over_pairs(weight)), problem.share)


def _combine(stack: Any, fits: list, columns: list[list]) -> Fit:
    """The stack of fitted parts, its weights chosen by what columns of held-out samples say."""
    return [
        no_correction()
        if fitted is None
        else stack.combined(fitted, _sum_of_products(stack, held_out))
        for fitted, *held_out in zip(fits, *columns, strict=True)
    ]


def _sum_of_products(stack, held_out):
    count = len(stack.parts)
    return sum(
        (part.products for part in held_out if part is not None), np.zeros((2, count, count + 1))
    )


def _stack_score(stack: Any, column: list, others: list[list]) -> float:
    """Score of a stack on a column whose weights the other columns choose."""
    total, counted = 0.0, False
    for judged, *held_out in zip(column, *others, strict=True):
        if judged is not None:
            counted = True
            weights = best_weights(_sum_of_products(stack, held_out)[0])
            gram, moments = judged.products[0][:, :-1], judged.products[0][:, -1]
            gain = weights @ (gram @ weights - 2 * moments) / judged.pairs
            total -= judged.share * (judged.zero_risk + gain)
    if not counted:
        raise_no_pairs(0)
    return total
