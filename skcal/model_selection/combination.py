"""Functions that combine others, their weights chosen by samples that other fits hold out.

A search fits the parts of such a function once to each training set and never cross-validates
inside: what the parts say of the samples that score other fits chooses the weights.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from skcal._running import recorded_warnings
from skcal.functions import BilinearFunction
from skcal.model_selection.engine import (
    Fit,
    has_pairs,
    no_correction,
    raise_no_pairs,
)
from skcal.notions import Problems
from skcal.pair_risk import pair_risk_path


class HeldOut(NamedTuple):
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


class Parts(NamedTuple):
    """Fitted parts of a stack, and what they say of held-out samples.

    Attributes
    ----------
    fits : list
        The fitted functions of each problem, or None where it has too few samples.
    held_out : list of lists of HeldOut or None
        One for each set of evaluation rows and each problem.
    times : ndarray of shape (1, 2)
    warnings : list of Warning
    """

    fits: list
    held_out: list[list]
    times: np.ndarray
    warnings: list


def fit_parts(
    stack: BilinearFunction, data: Problems, train: np.ndarray, evaluations: list[np.ndarray]
) -> Parts:
    """Fit the parts of a stack to the training rows, for weights that others will choose."""
    start = time.perf_counter()
    with recorded_warnings() as caught:
        fits = parts_of(stack, data.take(train))
    middle = time.perf_counter()
    held_out = [
        [
            _held_out(stack, fitted, problem)
            for fitted, problem in zip(fits, data.take(rows).parts, strict=True)
        ]
        for rows in evaluations
    ]
    times = np.array([[middle - start, time.perf_counter() - middle]])
    return Parts(fits, held_out, times, [one.message for one in caught])


def parts_of(stack: BilinearFunction, data: Problems) -> list:
    """The fitted parts of each problem, None where it has too few samples."""
    return [
        stack.fit_parts(problem.seen_by(stack), problem.residuals, problem.weight)
        if has_pairs(problem)
        else None
        for problem in data.parts
    ]


def _held_out(stack, fitted, problem) -> HeldOut | None:
    if fitted is None or not has_pairs(problem):
        return None
    X, residuals, weight = problem.seen_by(stack), problem.residuals, problem.weight
    zero = pair_risk_path(np.zeros((len(X), 1)), residuals, [None], sample_weight=weight)
    pairs = float(weight @ (weight.sum() - weight))
    products = stack.products(fitted, X, residuals, weight)
    return HeldOut(products, float(zero[0]), pairs, problem.share)


def combine(stack: BilinearFunction, fits: list, columns: list[list]) -> Fit:
    """The stack of fitted parts, its weights chosen by what columns of held-out samples say."""
    combined = []
    for fitted, *held_out in zip(fits, *columns, strict=True):
        if fitted is None:
            combined.append(no_correction())
        else:
            combined.append(stack.combined(fitted, _sum_of_products(stack, held_out)))
    return combined


def _sum_of_products(stack, held_out):
    count = len(stack.parts)
    return sum(
        (one.products for one in held_out if one is not None), np.zeros((2, count, count + 1))
    )


def stack_score(stack: BilinearFunction, column: list, others: list[list]) -> float:
    """Score of a stack on a column whose weights the other columns choose."""
    total, counted = 0.0, False
    for own, *held_out in zip(column, *others, strict=True):
        if own is not None:
            counted = True
            weights = stack.best_weights(_sum_of_products(stack, held_out)[0])
            gram, moments = own.products[0][:, :-1], own.products[0][:, -1]
            gain = weights @ (gram @ weights - 2 * moments) / own.pairs
            total -= own.share * (own.zero_risk + gain)
    if not counted:
        raise_no_pairs(0)
    return total
