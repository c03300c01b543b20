"""Tests by the squared kernel calibration error, whose variance if calibrated is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, compress
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import eigvalsh
from scipy.stats import chi2, norm
from sklearn.utils import check_random_state

from skcal._matrices import pivoted_cholesky
from skcal._sklearn_compat import Interval, StrOptions, is_named, validate_params
from skcal._validation import InputError, row_blocks
from skcal.hypothesis_tests.monte_carlo import draw_nulls, from_draws, monte_carlo_of, nonempty
from skcal.hypothesis_tests.result import (
    RESAMPLING,
    CalibrationTestResult,
    only_problem,
    positive,
    resampled_pvalue,
    warn_if_few,
)
from skcal.kernels import Kernel
from skcal.metrics.kernel import KernelStatistic, block_sums, class_residuals, class_root, quadratic
from skcal.metrics.limits import FEWEST_EVENTS, surprises, warn_if_few_events
from skcal.metrics.statistic import observed_draw
from skcal.notions import Problem
from skcal.sample import Sample, read_sample, refuse_weights

_SPECTRUM_ROWS = 2000
_MANY_SAMPLES = 2000  # of vectors, beyond which landmarks stand for the kernel of several widths
_RANK, _TOL = 300, 1e-8  # of these landmarks, and the share of the trace at which fewer suffice
_BANDWIDTHS = (0.01, 0.1, 1.0)  # from what differences of probabilities can matter to all of them
_PAIR_BYTES = 2**24
_SUMS_BYTES = 2**19  # of sums that stay in the processor's cache while samples are added
_SMALL_BLOCK = 16  # samples, up to which pairs of places are fewer than blocks


@validate_params(
    {
        "method": [
            StrOptions({"monte-carlo", "distribution-free", "asymptotic", "spectral", "block"})
        ],
        "estimator": [StrOptions({"unbiased", "biased", "block"})],
        "kernel": [StrOptions({"laplacian", "rbf"}), callable],
        "bandwidth": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"auto", "median"}),
            "array-like",
        ],
        "block_size": [Interval(Integral, 2, None, closed="left"), None],
        "class_kernel": ["array-like", None],
        "kernel_bound": [Interval(Real, 0, None, closed="neither"), None],
        "variance": [StrOptions({"null", "sample"})],
        **RESAMPLING,
    },
    prefer_skip_nested_validation=False,
    used_with={
        "bandwidth": {"kernel": is_named},
        "estimator": {"method": ("distribution-free", "monte-carlo")},
        "variance": {"method": ("block",)},
        "kernel_bound": {"method": ("distribution-free",)},
        "n_resamples": {"method": ("monte-carlo", "asymptotic", "spectral")},
        "n_jobs": {"method": ("monte-carlo",)},
    },
)
def skce_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str | Callable = "auto",
    method: Literal[
        "monte-carlo", "distribution-free", "asymptotic", "spectral", "block"
    ] = "monte-carlo",
    estimator: Literal["unbiased", "biased", "block"] = "unbiased",
    kernel: Literal["laplacian", "rbf"] | Callable = "laplacian",
    bandwidth: float | str | ArrayLike = "auto",
    block_size: int | None = None,
    variance: Literal["null", "sample"] = "null",
    class_kernel: ArrayLike | None = None,
    kernel_bound: float | None = None,
    n_resamples: int = 999,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> CalibrationTestResult:
    """Test calibration by the squared kernel calibration error.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str or callable, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more; [1]_ tests
        "canonical". Notions of several problems ("classwise", "top-label") have
        ``method="monte-carlo"`` only.
    method : {"monte-carlo", "distribution-free", "asymptotic", "spectral", "block"}, \
default="monte-carlo"
        "monte-carlo": exact level. "distribution-free": a bound, level at most nominal, hardly any
        power. "asymptotic": the quadratic statistic n/(n-1) SKCE_uq - SKCE_b with a multinomial
        bootstrap. "spectral": n SKCE_uq against its weighted χ² limit, with the eigenvalues of the
        matrix h_ij / n (of 2,000 evenly spaced samples at most). "block": the mean of blocks,
        against the most skewed of its limits, χ² with as many degrees of freedom as blocks.
    estimator : {"unbiased", "biased", "block"}, default="unbiased"
        The estimator of the statistic, for "monte-carlo" (not "block") and "distribution-free".
    kernel : {"laplacian", "rbf"} or callable, default="laplacian"
        As in :func:`skcal.metrics.squared_kernel_calibration_error`; a callable may be
        matrix-valued, for every method.
    bandwidth : float > 0, "auto", "median" or array-like of floats, default="auto"
        The width of the kernel, as in :func:`skcal.metrics.squared_kernel_calibration_error`.
        Several widths, for "monte-carlo": the statistic is the largest SKCE over the widths, each
        divided by its standard deviation under H0 [3]_. "auto" is (0.01, 0.1, 1) for "monte-carlo",
        and "median" otherwise. All see predictions only, so they are safe; a kernel fitted to the
        labels tested is not.
    block_size : int ≥ 2, default=None
        The number of samples of a block; None is ⌊√n⌋, 2 the linear estimator.
    variance : {"null", "sample"}, default="null"
        The variance by which "block" standardises: that under H0, known from the predictions, or
        that of the blocks against a normal limit [1]_. The latter fails if most blocks agree; the
        interval then uses only this variance.
    class_kernel : array-like of shape (m, m), default=None
        A, positive semidefinite; not for "monte-carlo" or matrix-valued kernels.
    kernel_bound : float, default=None
        Upper bound of k, or of the spectral norm of matrices, for "distribution-free" with a
        callable; named kernels have 1.
    n_resamples : int, default=999
        The number of resamples, for "monte-carlo", "asymptotic" and "spectral".
    random_state : int, RandomState instance or None, default=0
        The seed of the draws.
    n_jobs : int, default=None
        Workers of "monte-carlo"; results do not depend on it.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the statistic, kept fixed; a pair has their product. Only their ratios matter.
        They must not depend on the labels. Outcomes are redrawn sample by sample, so that the level
        is as without weights. Only for "monte-carlo".
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. Only for
        "monte-carlo". See :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities are computed from them without loss of
        precision.

    Returns
    -------
    result : CalibrationTestResult
        ``estimate`` is the SKCE; with several widths, that of the width that decides.
        ``confidence_interval()``, for "block", uses the variance of the blocks or that under H0,
        whichever is larger.

    Raises
    ------
    ValueError
        If the input is not valid, there are fewer than two blocks or the bound of a callable kernel
        is missing. Also if the method does not use an option that is given. Several widths, weights
        that differ and ``groups`` need "monte-carlo".

    Notes
    -----
    Measured level at 5 % on model M1 of [1]_, C = 10, Dir(0.1), n = 250 (2,000 data sets, resampled
    methods 1,000): "monte-carlo" 5.0 % (standard error 0.7 %), "asymptotic" 4.3 %, "spectral"
    4.2 %, bounds 0 %; at n = 50 (300 for resampled methods) 7.0, 3.0, 1.3 and 0 %. "asymptotic" and
    "spectral" rejected 26 % to 36 % where 100 samples had 1 % events (50 data sets each); they warn
    if the effective number of events is below 5. "block" (400
    data sets): 3.5 % and 3.0 %, of confident networks, rare events, and 20 classes near the
    vertices 2 % to 7.5 %, where ``variance="sample"`` rejected up to 35 %. Power: see
    :mod:`skcal.hypothesis_tests`.

    For confident networks most distances are near ties, and so is the median; therefore "auto"
    takes several widths. The page "Levels and powers of single tests" of the documentation says
    what they cost if one width is known to be best.

    With vectors, more than 2,000 samples and several widths, features of at most 300 landmarks
    stand for each kernel in the statistic. The predictions choose the landmarks, so the test is as
    exact, at O(300 n) instead of O(n² C) a draw, half a minute for 10,000 samples of 100 classes.
    ``estimate`` is the SKCE of all pairs. With one width a draw has all pairs, O(n² C), minutes for
    10,000 samples. Then choose several widths or "block". A matrix-valued kernel takes O(n² C²) a
    draw, some 8 s for 1,000 samples of ten classes. O(n² (C + n_resamples)) time for "asymptotic"
    in blocks of bounded memory.

    References
    ----------
    .. [1] Widmann, Lindsten & Zachariah, Calibration tests in multi-class classification: a
       unifying framework, NeurIPS 2019, Lemmas 2 and 3.
    .. [2] Arcones & Giné, On the bootstrap of U and V statistics, Ann. Statist. 1992.
    .. [3] Schrab et al., MMD aggregated two-sample test, JMLR 2023.

    Examples
    --------
    >>> from skcal.datasets import make_dirichlet
    >>> from skcal.hypothesis_tests import skce_test
    >>> data = make_dirichlet(250, n_classes=3, model="M2", random_state=0)
    >>> skce_test(data.labels, data.proba, notion="canonical", random_state=0).pvalue
    0.001
    """
    if block_size is not None and "block" not in (method, estimator):
        raise InputError("block_size", f"is not used by method={method!r}.", "Use 'block'.")
    sampled = method == "monte-carlo"
    if sampled and (class_kernel is not None or estimator == "block"):
        raise ValueError(
            "method='monte-carlo' takes no class_kernel and no estimator='block'. Use "
            "monte_carlo_test(…, 'squared_kernel_calibration_error', class_kernel=…)."
        )
    if not sampled and np.ndim(bandwidth):
        raise ValueError(
            f"method={method!r} takes one bandwidth. Use method='monte-carlo' for several."
        )
    question = notion, sample_weight, labels, pos_label, from_logits
    at_least = 1 if sampled else 2
    sample = read_sample(y_true, y_proba, *question, groups=groups, at_least=at_least)
    if sampled:
        draws = n_resamples, check_random_state(random_state), n_jobs
        widths = _several_widths(kernel, bandwidth)
        if widths is not None:
            return _of_widths(sample, kernel, widths, estimator == "biased", *draws)
        bandwidth = "median" if callable(kernel) else bandwidth
        options = {"method": estimator, "kernel": kernel, "bandwidth": bandwidth}
        return monte_carlo_of(sample, "squared_kernel_calibration_error", options, *draws)
    single: Any = "median" if isinstance(bandwidth, str) else bandwidth
    problem = only_problem(sample, method)
    refuse_weights(sample, f"method={method!r}", "Use method='monte-carlo'.")
    problem = problem._replace(weight=np.ones(len(problem.weight)))
    width = Kernel.of(kernel, single, problem.features, True)
    root = class_root(class_kernel, problem.residuals.shape[1], width)
    size = block_size or max(2, int(np.sqrt(len(problem.weight))))
    if method == "block":
        result = _block(problem, root, width, size, variance)
    elif method == "distribution-free":
        bound = _bound_of_h(problem, class_kernel, kernel, kernel_bound)
        result = _distribution_free(problem, root, width, estimator, size, bound)
    else:
        warn_if_few(n_resamples, 1)
        remedy = "Use method='monte-carlo'."
        if problem.residuals.any():
            warn_if_few_events(surprises(sample), FEWEST_EVENTS, "the limit", remedy)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        test = _bootstrap if method == "asymptotic" else _spectral
        result = test(problem, root, width, n_resamples, rng)
    return replace(result, notion=str(sample.notion))


def _bound_of_h(problem, class_kernel, kernel, kernel_bound):
    """B with |h_ij| ≤ B: 2 sup k for vectors, sup k for scalar problems, times ‖A‖₂."""
    if kernel_bound is None and callable(kernel):
        raise ValueError(
            "method='distribution-free' needs kernel_bound, an upper bound of the callable kernel."
        )
    scale = 1.0 if class_kernel is None else float(np.linalg.norm(class_kernel, 2))
    vectors = 2.0 if problem.features.shape[1] > 1 else 1.0
    return vectors * scale * (1.0 if kernel_bound is None else kernel_bound)


def _distribution_free(problem, root, kernel, estimator, size, bound):
    """Upper bounds of P(SKCE ≥ t) if calibrated [W19, Lemma 2 and its corollaries]."""
    n = len(problem.weight)
    if estimator == "block":
        _require_blocks(n // size, 1, n, size)
        sums, pairs = block_sums(problem, root, kernel, size)
        estimate = float(sums.sum() / pairs.sum())
        exponent = (n // size) * (size // 2) * estimate**2 / (2 * bound**2)
    else:
        estimate = quadratic(problem, root, kernel, biased=estimator == "biased")
        if estimator == "biased":
            exponent = max(0.0, np.sqrt(n * max(estimate, 0.0) / bound) - 1) ** 2 / 2
        else:
            exponent = (n // 2) * estimate**2 / (2 * bound**2)
    pvalue = positive(np.exp(-exponent)) if estimate > 0 else 1.0  # of t ≤ 0 nothing is known
    method = f"distribution-free bound ({estimator} SKCE), level at most nominal"
    return CalibrationTestResult(
        statistic=estimate, pvalue=pvalue, estimate=estimate, method=method
    )


def _require_blocks(n_blocks, at_least, n, size):
    if n_blocks < at_least:
        raise ValueError(
            f"y_proba has {n} samples, {n_blocks} block(s) of {size}; at least {at_least} are "
            "needed. Lower block_size."
        )


def _several_widths(kernel, bandwidth):
    """Widths to take the largest of; None for a single one, and for a callable kernel."""
    if callable(kernel):
        return None
    if isinstance(bandwidth, str):
        return _BANDWIDTHS if bandwidth == "auto" else None
    if not np.ndim(bandwidth):
        return None
    widths = np.asarray(bandwidth, dtype=np.float64)
    if widths.ndim != 1 or not len(widths) or not (np.isfinite(widths) & (widths > 0)).all():
        raise ValueError(f"bandwidth={bandwidth!r} must hold positive numbers.")
    return widths


def _of_widths(sample, kernel, widths, biased, n_resamples, rng, n_jobs):
    """The largest standardised SKCE of several widths."""
    problems = nonempty(sample)
    statistics = [
        LargestOfWidths(problem, [Kernel.of(kernel, w, problem.features) for w in widths], biased)
        for problem in problems
    ]
    draws = draw_nulls(statistics, problems, n_resamples, rng, n_jobs)
    count = max(len(statistic.statistics) for statistic in statistics)  # those that are resolved
    result = from_draws(sample, draws, f"Monte Carlo (largest SKCE of {count} widths)")
    pairs = zip(statistics, problems, strict=True)
    estimate = sum(problem.share * statistic.squared_error(problem) for statistic, problem in pairs)
    return replace(result, estimate=float(estimate))


def _block(problem, root, kernel, size, variance):
    n_blocks = len(problem.weight) // size
    _require_blocks(n_blocks, 2, len(problem.weight), size)
    sums, pairs = block_sums(problem, root, kernel, size)
    values = sums / pairs
    estimate = float(values.mean())
    error = float(values.std(ddof=1) / np.sqrt(n_blocks))
    scale = error
    if variance == "null":  # a sample of rare events does not show their variance
        A = None if root is None else root @ root.T
        squares = null_squares_of_blocks(problem.features, kernel, A, size)
        scale = np.sqrt(2 * squares) / pairs.sum()
        error = max(error, float(scale))
    if not estimate and not scale:
        z, pvalue = 0.0, 1.0  # every pair agrees with the predictions
    elif scale == 0:
        raise ValueError(
            "All blocks agree, or all predictions are certain, so the standard error is 0 and no "
            "limit holds. Use method='monte-carlo'."
        )
    else:
        z = estimate / scale
        tail = chi2.sf(max(n_blocks + z * np.sqrt(2 * n_blocks), 0.0), n_blocks)
        pvalue = positive(tail if variance == "null" else norm.sf(z))
    return CalibrationTestResult(
        statistic=float(z),
        pvalue=pvalue,
        estimate=estimate,
        method=f"blocks of {size}, asymptotic level",
        standard_error=error,
    )


def _h_blocks(problem, root, kernel):
    """Blocks of rows of H, h_ij = k(x_i, x_j) ⟨δ_i, δ_j⟩ or δ_iᵀ K(x_i, x_j) δ_j."""
    residuals = class_residuals(problem, root)
    X, n = problem.features, len(residuals)
    for rows in row_blocks(n, 24 * n, most=_PAIR_BYTES):
        yield rows, kernel.products(X[rows], residuals[rows], X, residuals)


def _bootstrap(problem, root, kernel, n_resamples, rng):
    """[W19, Lemma 3]: T = n/(n-1) SKCE_uq - SKCE_b under multinomial counts c."""
    n = len(problem.weight)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).T.astype(np.float64)
    forms, weighted_sums, diagonals = np.zeros((3, n_resamples))
    total, trace = 0.0, 0.0
    for rows, H in _h_blocks(problem, root, kernel):
        drawn = counts[rows]
        forms += np.einsum("ij,ij->j", drawn, H @ counts)
        row_sums, diagonal = H.sum(axis=1), H[np.arange(len(H)), np.arange(n)[rows]]
        weighted_sums += row_sums @ drawn
        diagonals += diagonal @ drawn
        total, trace = total + row_sums.sum(), trace + diagonal.sum()
    unbiased = (total - trace) / (n * (n - 1))
    statistic = n / (n - 1) * unbiased - total / n**2
    null = (n / (n - 1) * (forms - diagonals) - 2 * weighted_sums) / n**2
    return CalibrationTestResult(
        statistic=float(statistic),
        pvalue=float(resampled_pvalue(statistic, null)),
        estimate=float(unbiased),
        method="quadratic statistic with multinomial bootstrap, asymptotic level",
        null_distribution=null,
    )


def _spectral(problem, root, kernel, n_resamples, rng):
    """N times the unbiased SKCE tends to Σ λ_k (Z_k² - 1), λ_k the eigenvalues of H / n."""
    n = len(problem.weight)
    estimate = quadratic(problem, root, kernel, biased=False)
    rows = np.linspace(0, n - 1, min(n, _SPECTRUM_ROWS)).round().astype(np.intp)
    residuals, X = class_residuals(problem, root)[rows], problem.features[rows]
    H = kernel.products(X, residuals, X, residuals)
    eigenvalues = np.maximum(eigvalsh(H), 0) / len(rows)
    eigenvalues = eigenvalues[eigenvalues > 1e-12 * eigenvalues.max(initial=0)]
    null = (rng.standard_normal((n_resamples, len(eigenvalues))) ** 2 - 1) @ eigenvalues
    return CalibrationTestResult(
        statistic=float(n * estimate),
        pvalue=float(resampled_pvalue(n * estimate, null)),
        estimate=float(estimate),
        method="weighted χ² limit, asymptotic level",
        null_distribution=null,
    )


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


def null_terms(X: np.ndarray, Z: np.ndarray, kernel: Kernel, A, inner) -> np.ndarray:
    """E h² under H0: k² tr(A Σ A Σ'), or tr(K Σ' Kᵀ Σ) of a matrix-valued kernel."""
    paired = inner is row_by_row
    K = kernel.paired(X, Z) if paired else kernel.matrix(X, Z)
    if kernel.m is None:
        return K**2 * covariance_products(X, Z, A, inner)
    x, z, k = ("ia", "ib", "iab") if paired else ("ia", "jb", "ijab")
    left, right = np.einsum(f"{x},{k}->{k[:-2]}b", X, K), np.einsum(f"{k},{z}->{k[:-1]}", K, Z)
    products = np.einsum(f"{x},{k[:-1]}->{k[:-2]}", X, np.einsum(f"{k},{z}->{k[:-1]}", K**2, Z))
    products -= np.einsum(f"{x},{k[:-1]}->{k[:-2]}", X, right**2)
    products -= np.einsum(f"{z},{k[:-2]}b->{k[:-2]}", Z, left**2)
    return np.maximum(products + np.einsum(f"{x},{k[:-1]}->{k[:-2]}", X, right) ** 2, 0)


def _paired_null_terms(X, Z, kernel, A):
    blocks = kernel.blocks(len(X))
    return np.concatenate([null_terms(X[rows], Z[rows], kernel, A, row_by_row) for rows in blocks])


def null_squares(
    X: np.ndarray, kernel: Kernel, A: np.ndarray | None = None, weight: np.ndarray | None = None
) -> float:
    """Sum of E (w_i w_j h_ij)² over pairs i ≠ j under H0."""
    X = X.astype(np.float64, copy=False)
    squares = np.ones(len(X)) if weight is None else weight**2
    alone = squares**2 @ _paired_null_terms(X, X, kernel, A)
    if X.shape[1] == 1 and not callable(kernel.name):
        squared = kernel._replace(gamma=2 * kernel.gamma)  # k², of either named kernel
        total = squared.quadratic_form(X, squares[:, None] * (X * (1 - X))) * _square_of_one(A)
    else:
        total = sum(
            squares[rows] @ null_terms(X[rows], X[columns], kernel, A, all_pairs) @ squares[columns]
            for rows, columns in kernel.tiles(len(X))
        )
    return max(float(total - alone), 0.0)


def null_squares_of_blocks(X: np.ndarray, kernel: Kernel, A: np.ndarray | None, size: int) -> float:
    """The same for pairs within consecutive blocks of ``size`` samples."""
    X = X.astype(np.float64, copy=False)
    stop = len(X) // size * size
    if size > _SMALL_BLOCK:
        return sum(null_squares(X[i : i + size], kernel, A) for i in range(0, stop, size))
    total = 0.0
    for a, b in combinations(range(size), 2):
        left, right = X[a:stop:size], X[b:stop:size]
        total += 2 * float(_paired_null_terms(left, right, kernel, A).sum())
    return total


class LargestOfWidths:
    """The largest standardised SKCE of several kernels, as a function of blocks of outcomes.

    Each is divided by its standard deviation under H0, which does not depend on outcomes. Kernels
    that are so narrow that rounding exceeds that deviation are left out, unless all are.
    """

    chunk = KernelStatistic.chunk

    def __init__(self, problem: Problem, kernels: list[Kernel], biased: bool):
        problem = problem.of_mean_1
        weight, X = problem.weight, problem.features.astype(np.float64, copy=False)
        n = len(weight)
        self.kernels, self.biased = kernels, biased
        if X.shape[1] > 1 and n > _MANY_SAMPLES:
            statistics: list = [FeatureStatistic(X, weight, kernel, biased) for kernel in kernels]
            squares = null_squares_of_features(X, [statistic.psi for statistic in statistics])
        else:
            statistics = [KernelStatistic(problem, kernel, biased) for kernel in kernels]
            squares = np.array([null_squares(X, kernel, weight=weight) for kernel in kernels])
        scales = np.sqrt(2 * squares) / max(n**2 - weight @ weight, 1)
        resolved = scales > [statistic.slack for statistic in statistics]
        if resolved.any():
            statistics, scales = list(compress(statistics, resolved)), scales[resolved]
            self.kernels = list(compress(kernels, resolved))
        self.statistics = statistics
        self.scales = np.where(scales > 0, scales, 1.0)[:, None]
        spread = (X * (1 - X)).sum(axis=1)  # E‖δ_i‖²
        means = [
            statistic.diagonal @ spread / n**2 if biased else 0.0 for statistic in self.statistics
        ]
        self.means = np.array(means)[:, None]
        slacks = np.array([statistic.slack for statistic in self.statistics])
        self.slack = float((slacks / self.scales[:, 0]).max())

    def __call__(self, codes):
        """Return the statistic of each row of outcomes."""
        return self._standardised(codes).max(axis=0)

    def squared_error(self, problem: Problem) -> float:
        """The squared kernel calibration error at the kernel that decides."""
        codes = observed_draw(problem)
        best = int(self._standardised(codes)[:, 0].argmax())
        return float(KernelStatistic(problem, self.kernels[best], self.biased)(codes)[0])

    def _standardised(self, codes):
        values = np.stack([statistic(codes) for statistic in self.statistics])
        return (values - self.means) / self.scales


class FeatureStatistic:
    """SKCE of vectors by features of few landmarks, k(x, x') ≈ ⟨ψ(x), ψ(x')⟩.

    That is a kernel, too, and a Monte Carlo test by its SKCE as exact as by that of k, at O(n r)
    for a draw instead of O(n² C). Landmarks are chosen by the predictions, not by the labels.
    """

    slack = 1e-13

    def __init__(self, X: np.ndarray, weight: np.ndarray, kernel: Kernel, biased: bool):
        n = len(X)
        diagonal = kernel.paired(X, X)
        _, psi, _ = pivoted_cholesky(
            diagonal, lambda rows: kernel.matrix(X[rows], X), np.ones(n), _TOL, min(n, _RANK)
        )
        psi = np.multiply(weight[:, None], psi, order="C")  # as products with outcomes read it
        self.X, self.psi, self.biased = X, psi, biased
        self.expected = X.T @ psi
        self.diagonal, self.norms = row_by_row(psi, psi), row_by_row(X, X)
        self.pairs = weight.sum() ** 2 - (0 if biased else weight @ weight)
        self.chunk = max(1, min(KernelStatistic.chunk, _PAIR_BYTES // self.expected.nbytes))

    def __call__(self, codes):
        """Return the statistic of each row of outcomes."""
        if codes.ndim == 3:
            sums = np.tensordot(codes, self.psi, axes=(1, 0))
            squares = np.square(codes - self.X).sum(axis=2)
        else:
            sums = self._sums(codes)
            squares = 1 - 2 * self.X[np.arange(len(self.X)), codes] + self.norms
        deviations = sums - self.expected
        total = np.einsum("kij,kij->k", deviations, deviations)
        return (total if self.biased else total - squares @ self.diagonal) / self.pairs

    def _sums(self, codes):
        """Sums of ψ over the samples of each outcome, (k, m, r)."""
        sums, m = np.empty((len(codes), *self.expected.shape)), self.X.shape[1]
        for rows in row_blocks(len(codes), self.expected.nbytes, most=_SUMS_BYTES):
            few = codes[rows]
            count, n = few.shape
            places = (few + m * np.arange(count)[:, None]).T.ravel()
            starts = np.arange(0, len(places) + 1, count)
            chosen = sparse.csc_array((np.ones(len(places)), places, starts), shape=(count * m, n))
            sums[rows] = (chosen @ self.psi).reshape(count, m, -1)
        return sums


def null_squares_of_features(X: np.ndarray, features: list[np.ndarray]) -> np.ndarray:
    """Sums of E (w_i w_j h_ij)² over pairs under H0, from evenly spaced samples with all."""
    n, totals = len(X), np.zeros(len(features))
    rows = np.linspace(0, n - 1, min(n, _SPECTRUM_ROWS)).round().astype(np.intp)
    for few in row_blocks(len(rows), 24 * n, most=_PAIR_BYTES):
        some = rows[few]
        products = covariance_products(X[some], X, None, all_pairs)
        for k, psi in enumerate(features):
            squares = products * (psi[some] @ psi.T) ** 2
            totals[k] += squares.sum() - squares[np.arange(len(some)), some].sum()
    return np.maximum(totals, 0.0) * n / len(rows)
