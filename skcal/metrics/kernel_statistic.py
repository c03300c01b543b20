"""The squared kernel calibration error under many outcomes at once."""

from __future__ import annotations

import numpy as np

from skcal._validation import row_blocks
from skcal.kernels import Kernel

_BLOCK_BYTES = 2**24
_SINGLE = 1e-6  # rounding of float32 sums
_UNSEEN = 1e-18  # of the largest number


def prepare_kernel(problem, *, method="unbiased", kernel="laplacian", bandwidth="median", **others):
    """The statistic of the estimates from all pairs; None of others."""
    if others or method not in ("unbiased", "biased"):
        return None
    return KernelStatistic(
        problem, Kernel.of(kernel, bandwidth, problem.features), method == "biased"
    )


class KernelStatistic:
    """Unbiased or biased squared kernel calibration error of a problem.

    Products with the kernel matrix are float32 for vectors, whose null distribution goes through
    the same code; ``slack`` is what they do not resolve.
    """

    chunk = 128

    def __init__(self, problem, kernel: Kernel, biased: bool):
        self.kernel, self.biased = kernel, biased
        self.X, self.weight = problem.features, problem.weight
        self.own = kernel.paired(self.X, self.X) * self.weight**2
        pairs = self.weight.sum() ** 2
        self.pairs = pairs if biased else pairs - self.weight @ self.weight
        vectors = self.X.shape[1] > 1
        self.slack = _SINGLE * self.own.sum() / len(self.X) ** 1.5 if vectors else 0.0

    def __call__(self, codes):
        """Return the statistic of each row of outcomes; 0 where there are no pairs."""
        if not self.pairs:
            return np.zeros(len(codes))
        codes = codes.T
        n, m = self.X.shape
        if m == 1:
            V = self.weight[:, None] * (codes - self.X)
            total = np.einsum("ij,ij->j", V, self.kernel.times(self.X, V))
            squares = (codes - self.X) ** 2
        else:
            residuals = np.broadcast_to(-_single(self.X)[:, None], (n, codes.shape[1], m)).copy()
            np.put_along_axis(
                residuals,
                codes[:, :, None],
                1 + np.take_along_axis(residuals, codes[:, :, None], axis=2),
                axis=2,
            )
            squares = np.einsum("ijk,ijk->ij", residuals, residuals)
            total = self._quadratic_forms(residuals * self.weight[:, None, None].astype(np.float32))
        return (total if self.biased else total - self.own @ squares) / self.pairs

    def _quadratic_forms(self, V):
        """Σ_ij k_ij ⟨v_i, v_j⟩ of each resample, from half of the pairs."""
        n, n_resamples, m = V.shape
        flat, total = V.reshape(n, -1), np.zeros(n_resamples)
        for rows in row_blocks(n, 12 * n, most=_BLOCK_BYTES):
            K = _single(self.kernel.matrix(self.X[rows], self.X[rows.start :]))
            K[:, rows.stop - rows.start :] *= 2  # pairs with later blocks count for both orders
            product = (K @ flat[rows.start :]).reshape(-1, n_resamples, m)
            total += np.einsum("ijk,ijk->j", V[rows], product, dtype=np.float64)
        return total


def _single(values):
    """float32, where 0 stands for what sums do not see: subnormal factors are slow."""
    single = values.astype(np.float32)
    size = np.abs(single)
    single[size < _UNSEEN * size.max(initial=0)] = 0
    return single
