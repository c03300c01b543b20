"""Kernel calibration errors: no bins, but a kernel and its width."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from numbers import Integral, Real
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_random_state

from skcal._sklearn_compat import Interval, StrOptions, is_named, validate_params
from skcal._validation import InputError, naming, row_blocks, weight_of_pairs
from skcal.kernels import Kernel, laplacian_forms
from skcal.metrics.base import AVERAGE, Average, Kernels, estimate_problems
from skcal.metrics.statistic import prepared_by
from skcal.sample import Sample, read_sample

KERNEL_OPTIONS = {
    "kernel": [StrOptions({"laplacian", "rbf"}), callable],
    "bandwidth": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"})],
}
_SMALL_BLOCKS = 16  # up to here the pairs of all blocks are taken at once
_KERNEL_BYTES = 2**24
_SINGLE = 1e-6  # rounding of float32 sums
_DOUBLE = 1e-14  # of float64 sums, which scalars have, beside the variances of outcomes
_UNSEEN = 1e-18  # of the largest number


def prepare_kernel(problem, *, method="unbiased", kernel="laplacian", bandwidth="median", **others):
    """The statistic of the estimates from all pairs; None of others."""
    if others or method not in ("unbiased", "biased"):
        return None
    return KernelStatistic(
        problem, Kernel.of(kernel, bandwidth, problem.features, True), method == "biased"
    )


@overload
def squared_kernel_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = ...,
    *,
    return_standard_error: Literal[True],
    average: Average = "sum",
    **options: Unpack[Kernels],
) -> tuple[float, float]: ...
@overload
def squared_kernel_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = ...,
    *,
    average: None,
    **options: Unpack[Kernels],
) -> np.ndarray: ...
@overload
def squared_kernel_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = ...,
    *,
    average: Average = "sum",
    return_standard_error: Literal[False] = False,
    **options: Unpack[Kernels],
) -> float: ...
@prepared_by(prepare_kernel, at_least=2)
@validate_params(
    {
        **KERNEL_OPTIONS,
        "method": [StrOptions({"unbiased", "biased", "linear", "block", "incomplete"})],
        "block_size": [Interval(Integral, 2, None, closed="left"), None],
        "n_pairs": [Interval(Integral, 1, None, closed="left"), None],
        "return_standard_error": ["boolean"],
        "random_state": ["random_state"],
        "class_kernel": ["array-like", None],
        **AVERAGE,
    },
    prefer_skip_nested_validation=True,
    used_with={
        "bandwidth": {"kernel": is_named},
        "block_size": {"method": ("block",)},
        "n_pairs": {"method": ("incomplete",)},
    },
)
def squared_kernel_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str | Callable = "auto",
    method: Literal["unbiased", "biased", "linear", "block", "incomplete"] = "unbiased",
    kernel: Literal["laplacian", "rbf"] | Callable = "laplacian",
    bandwidth: float | Literal["median"] = "median",
    block_size: int | None = None,
    n_pairs: int | None = None,
    class_kernel: ArrayLike | None = None,
    average: Average | None = "sum",
    return_standard_error: bool = False,
    random_state: int | np.random.RandomState | None = 0,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float | np.ndarray | tuple[float | np.ndarray, float]:
    """Squared kernel calibration error (SKCE), a mean over pairs of predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str or callable, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more. [1]_ uses "canonical".
    method : {"unbiased", "biased", "linear", "block", "incomplete"}, default="unbiased"
        "unbiased": the mean over pairs i ≠ j, which averages 0 for calibrated predictions and may
        be negative. "biased": over all pairs, never negative. "block": the unbiased one of
        consecutive blocks, averaged; "linear": blocks of two. The last two depend on the order of
        the samples, and leave out an incomplete last block. "incomplete": unbiased, over
        ``n_pairs`` pairs of shuffled samples, each sample in as many pairs.
    kernel : {"laplacian", "rbf"} or callable, default="laplacian"
        "laplacian": exp(-d/ν) with the total variation distance d = ½‖x - x'‖₁ (``|x - x'|``
        for scalar notions); "rbf": exp(-‖x - x'‖² / (2ν²)). A symmetric callable ``kernel(X, Z)``
        takes rows of features and no ``bandwidth``. It returns the (n, k) matrix k, or for a
        matrix-valued kernel K [1]_ an array of shape (n, k, m, m), where m is the number of entries
        of a residual; see :doc:`/extend/kernel`.
    bandwidth : float > 0 or "median", default="median"
        ν. "median": of the distances between pairs of predictions (weights aside); of more than
        3,000 predictions, between 3,000 evenly spaced in lexicographic order; 0.01 at least. If a
        model is confident or events are rare, half of all pairs can be nearly equal. Then the
        median does not measure the scale of its errors, so pass a number such as 0.1.
    block_size : int ≥ 2, default=None
        The number of samples of a block, for "block"; None is ⌊√n⌋.
    n_pairs : int ≥ 1, default=None
        The number of pairs, for "incomplete"; rounded up to a multiple of the number of samples, at
        most all pairs. None is 100 a sample.
    class_kernel : array-like of shape (m, m), default=None
        A, positive semidefinite: ⟨δ_i, δ_j⟩ becomes δ_iᵀ A δ_j, for notions with vectors of m
        entries. None is the identity. Not for matrix-valued kernels.
    average : {"sum", "macro"} or None, default="sum"
        Over the classes of "classwise" and "top-label", as in :func:`expected_calibration_error`.
    return_standard_error : bool, default=False
        Whether to return the standard error too, for "incomplete" and notions of one problem.
    random_state : int, RandomState instance or None, default=0
        Shuffles the samples for "incomplete".
    sample_weight : array-like of shape (n_samples,), default=None
        Importance weights w_i w_j of the pairs; a weight of 2 differs from a repeated row, whose
        copies would form a pair.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    error : float, or ndarray of shape (n_classes,) for ``average=None``
        A square, at most 2 sup k (a scalar problem: sup k; of a matrix-valued kernel the spectral
        norm counts). Values depend on the kernel and its
        width: compare them only at the same ones. NaN (``average=None``) or left out: classes of
        "top-label" that are predicted too rarely for the method.
    standard_error : float
        Only with ``return_standard_error``; that of the incomplete U-statistic, for the choice of
        the samples and of the pairs.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, there are fewer samples than a block, or
        ``class_kernel`` is not symmetric and positive semidefinite. Also if a callable returns
        another shape or numbers that are not finite, or is not symmetric among 16 predictions.

    See Also
    --------
    maximum_mean_calibration_error, squared_mean_embedding_calibration_error

    Notes
    -----
    The error is the mean of k(x_i, x_j) ⟨δ_i, δ_j⟩ over pairs, or of δ_iᵀ K(x_i, x_j) δ_j. It takes
    O(n² (C + m)) time, or O(n² m²) by matrices, in blocks of bounded memory, about a minute for
    100,000 vectors of ten classes; "block" and "incomplete" then take seconds. The time is O(n log
    n) for scalar notions with the Laplacian kernel, O(n · block_size) for blocks and O(n_pairs) for
    "incomplete". With S pairs a sample the variance of "incomplete" is (Σ_i T_i² - Σ_e t_e²) / (n
    S)². Here t_e are the deviations of the pairs from the mean, and T_i their sums over the 2 S
    pairs of a sample. The variance is at least Σ_e t_e² / (n S)², its value for calibrated
    predictions. Two samples make one pair, which has no spread: 0.

    References
    ----------
    .. [1] Widmann, Lindsten & Zachariah, Calibration tests in multi-class classification: a
       unifying framework, NeurIPS 2019.

    Examples
    --------
    >>> from skcal.datasets import make_dirichlet
    >>> from skcal.metrics import squared_kernel_calibration_error
    >>> data = make_dirichlet(500, n_classes=3, model="M3", random_state=0)
    >>> error = squared_kernel_calibration_error(data.labels, data.proba, notion="canonical")
    >>> round(error, 3)
    0.102
    """
    blocks = {"linear": 2, "block": block_size}.get(method)
    at_least = {"biased": 1, "block": block_size or 2}.get(method, 2)
    sample = read_sample(
        y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits, at_least=at_least
    )

    standard_errors: list[float] = []

    def measure(problem):
        width = Kernel.of(kernel, bandwidth, problem.features, True)
        root = class_root(class_kernel, problem.residuals.shape[1], width)
        if method in ("unbiased", "biased"):
            return quadratic(problem, root, width, biased=method == "biased")
        if method == "incomplete":
            value, standard_error = incomplete(problem, root, width, n_pairs, random_state)
            standard_errors.append(standard_error)
            return value
        size = blocks or max(2, int(np.sqrt(len(problem.weight))))
        pairs, mass = block_sums(problem, root, width, size)
        return pairs.sum() / mass.sum()

    in_order = method == "incomplete"
    error = estimate_problems(
        sample, measure, at_least=at_least, average=average, in_order=in_order
    )
    if not return_standard_error:
        return error
    if method != "incomplete" or sample.notion.by_class:
        raise ValueError(
            "return_standard_error needs method='incomplete' and a notion of one problem, not "
            f"method={method!r} with notion={sample.notion!r}. For others use bootstrap_interval."
        )
    return error, standard_errors[0]


def class_root(class_kernel, m: int, kernel: Kernel):
    """Return L with A = L Lᵀ, or None for the identity."""
    if class_kernel is None:
        return None
    if kernel.m is not None:
        reason = "is not used with a matrix-valued kernel."
        raise InputError("class_kernel", reason, "Leave class_kernel out.")
    with naming("class_kernel"):
        A = check_array(class_kernel, dtype=np.float64, input_name="class_kernel")
    if A.shape != (m, m) or not np.allclose(A, A.T, rtol=1e-10, atol=0):
        raise ValueError(
            f"class_kernel has shape {A.shape}; pass a symmetric array of shape {(m, m)}."
        )
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    if values[0] < -1e-10 * max(values[-1], 0) or values[-1] < 0:
        raise ValueError(
            "class_kernel is not positive semidefinite: its smallest eigenvalue is "
            f"{values[0]:.3g}."
        )
    return vectors * np.sqrt(np.maximum(values, 0))


def class_residuals(problem, class_root):
    """Residuals δ, or Lᵀδ for a class kernel A = L Lᵀ, in float64."""
    residuals = problem.residuals.astype(np.float64)
    return residuals if class_root is None else residuals @ class_root


def quadratic(problem, class_root, kernel, *, biased):
    """Mean of h_ij over all pairs, or those with i ≠ j."""
    weight = problem.weight
    V = weight[:, None] * class_residuals(problem, class_root)
    total = kernel.quadratic_form(problem.features, V)
    if biased:
        return total / weight.sum() ** 2
    diagonal = kernel.paired_products(problem.features, V, problem.features, V).sum()
    return (total - diagonal) / weight_of_pairs(weight.sum(), weight @ weight)


def block_sums(problem, class_root, kernel, size: int):
    """Σ_{i≠j} w_i w_j h_ij and Σ_{i≠j} w_i w_j of each block of consecutive samples."""
    X, weight = problem.features, problem.weight
    n_blocks = len(X) // size
    V = weight[:, None] * class_residuals(problem, class_root)
    sums = np.zeros(n_blocks)
    if size <= _SMALL_BLOCKS:
        stop = n_blocks * size
        for a, b in combinations(range(size), 2):
            left, right = slice(a, stop, size), slice(b, stop, size)
            sums += 2 * kernel.paired_products(X[left], V[left], X[right], V[right])
    else:
        for block in range(n_blocks):
            rows = slice(block * size, (block + 1) * size)
            diagonal = kernel.paired_products(X[rows], V[rows], X[rows], V[rows])
            sums[block] = kernel.quadratic_form(X[rows], V[rows]) - diagonal.sum()
    weight = weight[: n_blocks * size].reshape(n_blocks, size)
    return sums, weight_of_pairs(weight.sum(axis=1), (weight**2).sum(axis=1))


def incomplete(problem, class_root, kernel, n_pairs, random_state):
    """Mean of h_ij over pairs (i, i + s) of shuffled samples, s = 1, …, S; its standard error."""
    n_samples = len(problem.weight)
    if n_samples < 2:
        raise ValueError("method='incomplete' needs at least 2 samples.")
    shifts = 100 if n_pairs is None else -(-n_pairs // n_samples)
    shifts = min(shifts, (n_samples - 1) // 2) or 1  # then every pair occurs once
    order = check_random_state(random_state).permutation(n_samples)
    X, weight = problem.features[order], problem.weight[order]
    V = class_residuals(problem, class_root)[order]
    # Per sample: sums of w_e h_e and of w_e over its pairs; over all pairs: of w², w² h, w² h².
    products, masses, squares = np.zeros(n_samples), np.zeros(n_samples), np.zeros(3)
    for shift in range(1, shifts + 1):
        pair = weight * np.roll(weight, -shift)
        h = kernel.paired_products(X, V, np.roll(X, -shift, axis=0), np.roll(V, -shift, axis=0))
        for total, values in ((products, pair * h), (masses, pair)):
            total += values + np.roll(values, shift)
        squares += [pair @ pair, pair**2 @ h, pair**2 @ h**2]
    mass = masses.sum() / 2
    value = products.sum() / (2 * mass)
    deviations = products - value * masses
    spread = max(squares @ [value**2, -2 * value, 1], 0.0)  # 0 but for rounding where h is constant
    # Samples that pairs share never make the mean more certain than independent pairs would.
    variance = max(deviations @ deviations - spread, spread)
    return value, float(np.sqrt(variance) / mass)


@prepared_by()
@validate_params(
    {"bandwidth": [Interval(Real, 0, None, closed="neither")]}, prefer_skip_nested_validation=True
)
def maximum_mean_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    bandwidth: float = 0.4,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Maximum mean calibration error (MMCE): a kernel calibration error of fixed width.

    It is the root of :func:`squared_kernel_calibration_error` with ``method="biased"`` and the
    Laplacian kernel of this ``bandwidth``; Kumar et al. [1]_ gave it the name, for confidences.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class), and its
        confidence is max(p, 1 - p).
        Left out beside a :class:`skcal.Sample`.
    notion : str, default="auto"
        A scalar notion; "auto" is "binary" for one and two columns and "confidence" for more.
    bandwidth : float > 0, default=0.4
        ν of the kernel ``exp(-|c - c'| / ν)``.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    error : float
        A root, in [0, 1] for one problem; 0 only where every (smoothed) residual vanishes. Biased
        upwards: of the order of n^(-1/2) for calibrated predictions.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, or the notion has vectors.

    Notes
    -----
    O(n log n) time, O(n) memory.

    References
    ----------
    .. [1] Kumar, Sarawagi & Jain, Trainable calibration measures for neural networks from kernel
       mean embeddings, ICML 2018.

    Examples
    --------
    >>> from skcal.metrics import maximum_mean_calibration_error
    >>> maximum_mean_calibration_error([0, 1], [[0.75, 0.25], [0.25, 0.75]], notion="confidence")
    0.25
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, scalar=True)

    def measure(problem):
        width = Kernel.of("laplacian", bandwidth, problem.features)
        return max(quadratic(problem, None, width, biased=True), 0.0)

    return estimate_problems(sample, measure, norm=2)


class KernelStatistic:
    """Unbiased or biased squared kernel calibration error of a problem.

    Products with the kernel matrix are float32 for vectors, whose null distribution goes through
    the same code; ``slack`` is what they do not resolve.
    """

    chunk = 128

    def __init__(self, problem, kernel: Kernel, biased: bool):
        self.kernel, self.biased = kernel, biased
        self.X, self.weight = problem.features, problem.weight
        self.ascending = np.argsort(self.X[:, 0])
        self.diagonal = self._norms() * self.weight**2  # of a matrix-valued kernel bounds
        pairs = self.weight.sum() ** 2
        self.pairs = pairs if biased else pairs - self.weight @ self.weight
        if self.X.shape[1] > 1:
            self.slack = _SINGLE * self.diagonal.sum() / len(self.X) ** 1.5
        else:  # equal outcomes round otherwise among other numbers of draws
            spread = self.diagonal @ (self.X[:, 0] * (1 - self.X[:, 0]))
            self.slack = _DOUBLE * float(spread) / len(self.X) ** 1.5

    def __call__(self, codes):
        """Return the statistic of each row of outcomes; 0 where there are no pairs."""
        if not self.pairs:
            return np.zeros(len(codes))
        apart, alone = (self._sums_of_scalars if self.X.shape[1] == 1 else self._sums)(codes)
        return (apart + alone if self.biased else apart) / self.pairs

    def _sums_of_scalars(self, codes):
        """Sums over pairs of two samples, and over samples with themselves, of each resample."""
        if self.kernel.name == "laplacian":
            z, weight = self.X[self.ascending, 0].astype(np.float64), self.weight[self.ascending]
            ordered = codes.take(self.ascending, axis=1)

            def rows_at(rows):
                return weight[rows] * (ordered[:, rows] - z[rows])

            return laplacian_forms(z, rows_at, self.kernel.gamma)
        V = self.weight * (codes - self.X[:, 0])
        alone = (codes - self.X[:, 0]) ** 2 @ self.diagonal
        return np.einsum("ji,ij->j", V, self.kernel.times(self.X, V.T)) - alone, alone

    def _sums(self, codes):
        """The same of vectors."""
        n, m = self.X.shape
        residuals = np.broadcast_to(-_single(self.X)[:, None], (n, len(codes), m)).copy()
        if codes.ndim == 3:
            residuals += codes.transpose(1, 0, 2)
        else:
            happened = codes.T[:, :, None]
            hits = 1 + np.take_along_axis(residuals, happened, axis=2)
            np.put_along_axis(residuals, happened, hits, axis=2)
        if self.kernel.m is None:
            alone = self.diagonal @ np.einsum("ijk,ijk->ij", residuals, residuals)
        residuals *= self.weight[:, None, None].astype(np.float32)
        if self.kernel.m is not None:
            alone, total = self._forms_of_matrices(residuals)
            return total - alone, alone
        return self._quadratic_forms(residuals) - alone, alone

    def _norms(self):
        """k(x, x), or the trace of K(x, x), which is at least its norm."""
        if self.kernel.m is None:
            return self.kernel.paired(self.X, self.X)
        return sum(
            self.kernel.paired_products(self.X, V, self.X, V)
            for V in np.broadcast_to(np.eye(self.kernel.m)[:, None], (self.kernel.m, *self.X.shape))
        )

    def _forms_of_matrices(self, V):
        """Σ_i v_iᵀ K_ii v_i and Σ_ij v_iᵀ K_ij v_j of each resample."""
        n, n_resamples, _ = V.shape
        alone, total = np.zeros((2, n_resamples))
        for rows in self.kernel.blocks(n, n_resamples):
            K = self.kernel.paired(self.X[rows], self.X[rows])
            images = np.einsum("iab,irb->ira", K, V[rows])
            alone += np.einsum("ira,ira->r", V[rows], images)
        flat = V.transpose(0, 2, 1)
        for rows, columns in self.kernel.tiles(n):
            K = self.kernel.matrix(self.X[rows], self.X[columns]).transpose(0, 2, 1, 3)
            left, right = (flat[part].reshape(-1, n_resamples) for part in (rows, columns))
            product = _single(K.reshape(len(left), len(right))) @ right
            total += np.einsum("ij,ij->j", left, product, dtype=np.float64)
        return alone, total

    def _quadratic_forms(self, V):
        """Σ_ij k_ij ⟨v_i, v_j⟩ of each resample, from half of the pairs."""
        n, n_resamples, m = V.shape
        flat, total = V.reshape(n, -1), np.zeros(n_resamples)
        for rows in row_blocks(n, 12 * n, most=_KERNEL_BYTES):
            K = _single(self.kernel.matrix(self.X[rows], self.X[rows.start :]))
            K[:, rows.stop - rows.start :] *= 2  # pairs with later blocks count for both orders
            product = (K @ flat[rows.start :]).reshape(-1, n_resamples, m)
            total += np.einsum("ijk,ijk->j", V[rows], product, dtype=np.float64)
        return total


def _single(values):
    """float32, with 0 in place of numbers too small for the sums: subnormal factors are slow."""
    single = values.astype(np.float32)
    size = np.abs(single)
    single[size < _UNSEEN * size.max(initial=0)] = 0
    return single
