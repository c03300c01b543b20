"""The squared kernel calibration error under H0: its variance is known from the predictions."""

from __future__ import annotations

from itertools import combinations, compress

import numpy as np

from skcal._validation import row_blocks
from skcal.kernels import Kernel
from skcal.metrics.kernel import KernelStatistic
from skcal.metrics.statistic import observed_codes
from skcal.notions import Problem

_BLOCK_BYTES = 2**24
_SMALL_BLOCK = 16


def covariance_products(X: np.ndarray, Z: np.ndarray, A: np.ndarray | None, inner) -> np.ndarray:
    """tr(A Σ A Σ'), Σ = diag(x) - x xᵀ the covariance of an outcome drawn from x.

    ``A`` of None is the identity, which would be larger than few predictions of many classes;
    ``inner`` multiplies rows with rows: all pairs, or the first with the first and so on.
    """
    if X.shape[1] == 1:
        return _square_of_one(A) * inner(X * (1 - X), Z * (1 - Z))
    XA, ZA, XA2 = (X, Z, X) if A is None else (X @ A, Z @ A, X @ A**2)
    products = inner(XA2, Z) - inner(X, ZA**2) - inner(XA**2, Z) + inner(XA, Z) ** 2
    return np.maximum(products, 0)


def _square_of_one(A) -> float:
    return 1.0 if A is None else A[0, 0] ** 2


def all_pairs(X, Z):
    """⟨x_i, z_j⟩."""
    return X @ Z.T


def row_by_row(X, Z):
    """⟨x_i, z_i⟩."""
    return np.einsum("ij,ij->i", X, Z)


def null_squares(X: np.ndarray, kernel: Kernel, A: np.ndarray | None = None) -> float:
    """Sum of E h_ij² over pairs i ≠ j under H0."""
    X = X.astype(np.float64, copy=False)
    own = kernel.paired(X, X) ** 2 @ covariance_products(X, X, A, row_by_row)
    if X.shape[1] == 1 and not callable(kernel.name):
        squared = kernel._replace(gamma=2 * kernel.gamma)  # k², of either named kernel
        total = squared.quadratic_form(X, X * (1 - X)) * _square_of_one(A)
    else:
        total = 0.0
        for rows in row_blocks(len(X), 24 * len(X), most=_BLOCK_BYTES):
            products = covariance_products(X[rows], X, A, all_pairs)
            total += float(np.vdot(kernel.matrix(X[rows], X) ** 2, products))
    return max(float(total - own), 0.0)


def null_squares_of_blocks(X: np.ndarray, kernel: Kernel, A: np.ndarray | None, size: int) -> float:
    """The same for pairs within consecutive blocks of ``size`` samples."""
    X = X.astype(np.float64, copy=False)
    stop = len(X) // size * size
    if size > _SMALL_BLOCK:
        return sum(null_squares(X[i : i + size], kernel, A) for i in range(0, stop, size))
    total = 0.0
    for a, b in combinations(range(size), 2):
        left, right = X[a:stop:size], X[b:stop:size]
        products = covariance_products(left, right, A, row_by_row)
        total += 2 * float(kernel.paired(left, right) ** 2 @ products)
    return total


class LargestOfWidths:
    """The largest standardised SKCE of several kernels, as a function of blocks of outcomes.

    Each is divided by its standard deviation under H0, which does not depend on outcomes. Kernels
    that are so narrow that rounding exceeds that deviation are left out, unless all are.
    """

    chunk = KernelStatistic.chunk

    def __init__(self, problem: Problem, kernels: list[Kernel], biased: bool):
        X, n = problem.features.astype(np.float64, copy=False), len(problem.weight)
        statistics = [KernelStatistic(problem, kernel, biased) for kernel in kernels]
        squares = np.array([null_squares(X, kernel) for kernel in kernels])
        scales = np.sqrt(2 * squares) / max(n * (n - 1), 1)
        resolved = scales > [statistic.slack for statistic in statistics]
        if resolved.any():
            statistics, scales = list(compress(statistics, resolved)), scales[resolved]
        self.statistics = statistics
        self.scales = np.where(scales > 0, scales, 1.0)[:, None]
        spread = (X * (1 - X)).sum(axis=1)  # E‖δ_i‖²
        means = [statistic.own @ spread / n**2 if biased else 0.0 for statistic in self.statistics]
        self.means = np.array(means)[:, None]
        slacks = np.array([statistic.slack for statistic in self.statistics])
        self.slack = float((slacks / self.scales[:, 0]).max())

    def __call__(self, codes):
        """Return the statistic of each row of outcomes."""
        return self._standardised(codes).max(axis=0)

    def squared_error(self, problem: Problem) -> float:
        """The squared kernel calibration error at the kernel that decides."""
        codes = observed_codes(problem)
        best = int(self._standardised(codes)[:, 0].argmax())
        return float(self.statistics[best](codes)[0])

    def _standardised(self, codes):
        values = np.stack([statistic(codes) for statistic in self.statistics])
        return (values - self.means) / self.scales
