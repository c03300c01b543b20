"""Matrix-valued kernels (Widmann, Lindsten & Zachariah 2019, Definition 1) by double loops."""

import re
import tracemalloc
from functools import partial
from itertools import product

import numpy as np
import pytest
from naive_kernel import METHODS, draw, first_or_other
from numpy.testing import assert_allclose
from scipy.stats import chi2
from sklearn import config_context

from skcal._validation import InputError
from skcal.hypothesis_tests import (
    compare_calibration,
    mean_embedding_test,
    monte_carlo_test,
    skce_test,
)
from skcal.hypothesis_tests.skce import null_squares, null_squares_of_blocks
from skcal.kernels import Kernel
from skcal.metrics import squared_kernel_calibration_error
from skcal.metrics.kernel import KernelStatistic
from skcal.metrics.statistic import draw_codes
from skcal.notions import make_problems


def parts(m):
    """A matrix B, of which no two rows or columns are alike, and widths."""
    B = np.eye(m) + np.triu(np.linspace(0.1, 0.6, m * m).reshape(m, m), 1)
    return B, np.linspace(0.2, 1.0, m)


def of_two_points(x, z):
    """K(x, z) = B diag(k_c(x, z)) Bᵀ + x zᵀ."""
    B, widths = parts(len(x))
    return B @ np.diag(np.exp(-np.abs(x - z).sum() / widths)) @ B.T + np.outer(x, z)


def all_pairs(X, Z):
    """The same of arrays."""
    B, widths = parts(X.shape[1])
    k = np.exp(-np.abs(X[:, None] - Z).sum(axis=2)[..., None] / widths)
    return (B * k[:, :, None]) @ B.T + X[:, None, :, None] * Z[:, None]


def widths_of_classes(X, Z):
    """Of arrays: diag(exp(-|x_c - z_c| / ν_c))."""
    gaps = np.abs(X[:, None] - Z) / np.linspace(0.1, 0.5, X.shape[1])
    return np.exp(-gaps)[..., None] * np.eye(X.shape[1])


def h_matrix(x, residuals):
    n = len(x)
    h = [
        residuals[i] @ of_two_points(x[i], x[j]) @ residuals[j]
        for i, j in product(range(n), repeat=2)
    ]
    return np.reshape(h, (n, n))


def naive_mean(H, weight, method="unbiased", block_size=None):
    n, total, mass = len(H), 0.0, 0.0
    size = {"linear": 2, "block": block_size or max(2, int(np.sqrt(n)))}.get(method, n)
    for start in range(0, n - size + 1, size):
        for i, j in product(range(start, start + size), repeat=2):
            if i != j or method == "biased":
                total += weight[i] * weight[j] * H[i, j]
                mass += weight[i] * weight[j]
    return total / mass


NOTIONS = ["canonical", "top-2", first_or_other, "binary"]


@pytest.mark.parametrize("options", [*METHODS, {"method": "block", "block_size": 17}])
@pytest.mark.parametrize("notion", NOTIONS)
def test_the_error_is_the_mean_over_pairs(notion, options):
    y, proba = draw(notion, 36)
    [(x, residuals, *_)] = make_problems(proba, y, notion)
    H = h_matrix(np.asarray(x), residuals)
    for weight in (np.ones(len(y)), np.random.default_rng(1).uniform(0.2, 3, len(y))):
        for memory in (1024, 0.001):  # MiB: all pairs at once, and a few
            with config_context(working_memory=memory):
                error = squared_kernel_calibration_error(
                    y, proba, notion=notion, kernel=all_pairs, sample_weight=weight, **options
                )
            assert_allclose(error, naive_mean(H, weight, **options), rtol=1e-10, atol=1e-14)


def test_a_kernel_of_two_points_is_passed_as_the_message_says():
    y, proba = draw("canonical", 12)
    metric = partial(squared_kernel_calibration_error, y, proba, notion="canonical")
    with pytest.raises(ValueError, match="of two points pass") as caught:
        metric(kernel=of_two_points)
    [recipe] = re.findall(r"pass (lambda X, Z: .*)\.$", str(caught.value))
    error = metric(kernel=eval(recipe, {"k": of_two_points}))
    assert_allclose(error, metric(kernel=all_pairs), rtol=1e-12)


def test_matrices_of_another_size_are_refused_as_followed():
    y, proba = draw("canonical", 30)
    metric = partial(squared_kernel_calibration_error, y, proba)
    with pytest.raises(InputError, match=r"Return \(1, 1\) matrices, or pass notion='canonical'"):
        metric(kernel=lambda X, Z: np.ones((len(X), len(Z), 3, 3)))
    one = metric(kernel=lambda X, Z: np.ones((len(X), len(Z), 1, 1)))
    assert_allclose(one, metric(kernel=lambda X, Z: np.ones((len(X), len(Z)))), rtol=1e-12)
    assert np.isfinite(metric(kernel=all_pairs, notion="canonical"))


def test_the_incomplete_error_of_all_pairs_is_the_unbiased_one():
    y, proba = draw("canonical", 31)
    options = {"notion": "canonical", "kernel": all_pairs}
    error = squared_kernel_calibration_error(
        y, proba, method="incomplete", return_standard_error=True, **options
    )
    unbiased = squared_kernel_calibration_error(y, proba, **options)
    assert_allclose(error[0], unbiased, rtol=1e-10)
    assert error[1] > 0


@pytest.mark.parametrize("method", ["unbiased", "biased", "linear", "block"])
def test_multiples_of_a_matrix_are_a_class_kernel(method):
    y, proba = draw("canonical", 40)
    root = np.random.default_rng(3).normal(size=(3, 3))
    A = root @ root.T

    def scalar(X, Z):
        return (1 + X @ Z.T) ** 2

    options = {"notion": "canonical", "method": method}
    expected = squared_kernel_calibration_error(y, proba, kernel=scalar, class_kernel=A, **options)
    error = squared_kernel_calibration_error(
        y, proba, kernel=lambda X, Z: scalar(X, Z)[..., None, None] * A, **options
    )
    assert_allclose(error, expected, rtol=1e-10)


def test_soft_labels_have_their_residuals():
    _, proba = draw("canonical", 20)
    shares = np.random.default_rng(0).dirichlet(np.ones(3), size=20)
    H = h_matrix(proba, shares - proba)
    options = {"notion": "canonical", "kernel": all_pairs}
    error = squared_kernel_calibration_error(shares, proba, **options)
    assert_allclose(error, naive_mean(H, np.ones(20)), rtol=1e-10)
    assert 0 < skce_test(shares, proba, n_resamples=99, **options).pvalue <= 1


# The test


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_redrawn_statistics_are_those_of_the_double_loop(biased, weighted):
    y, proba = draw("canonical", 25)
    weight = np.random.default_rng(1).uniform(0.2, 3, 25) if weighted else np.ones(25)
    problem = make_problems(proba, y, "canonical")[0]._replace(weight=weight)
    statistic = KernelStatistic(problem, Kernel.of(all_pairs, "median", proba, True), biased)
    codes = draw_codes(proba, range(5))
    numbers = proba + np.random.default_rng(2).normal(size=(4, 25, 3))  # as groups flip residuals
    method = "biased" if biased else "unbiased"
    for draws, outcomes in ((codes, np.eye(3)[codes]), (numbers, numbers)):
        expected = [naive_mean(h_matrix(proba, e - proba), weight, method) for e in outcomes]
        assert_allclose(statistic(draws), expected, rtol=1e-5, atol=1e-7)
        with config_context(working_memory=0.001):
            assert_allclose(statistic(draws), expected, rtol=1e-5, atol=1e-7)


def test_the_monte_carlo_pvalue_is_that_of_the_metric_redrawn():
    y, proba = draw("canonical", 30)
    options = {"n_resamples": 19, "random_state": 3, "notion": "canonical"}
    pvalue = skce_test(y, proba, kernel=all_pairs, **options).pvalue

    def literal(outcomes, features):
        residuals = np.eye(3)[outcomes] - features
        return naive_mean(h_matrix(features, residuals), np.ones(len(features)))

    assert pvalue == monte_carlo_test(y, proba, literal, **options).pvalue


def test_the_variance_under_h0_is_that_of_all_outcomes():
    X = np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    kernel, pairs = Kernel.of(all_pairs, "median", X, True), np.triu_indices(4, 1)
    square = 0.0
    for codes in product(range(3), repeat=4):
        total = 2 * np.sum(h_matrix(X, np.eye(3)[list(codes)] - X)[pairs])
        square += np.prod(X[np.arange(4), list(codes)]) * total**2
    for memory in (1024, 0.0001):
        with config_context(working_memory=memory):
            assert_allclose(square, 2 * null_squares(X, kernel), rtol=1e-10)
    assert_allclose(null_squares_of_blocks(X, kernel, None, 4), null_squares(X, kernel))


@pytest.mark.parametrize("size", [5, 20])
def test_blocks_have_their_limit(size):
    y, proba = draw("canonical", 43)
    H, n_blocks = h_matrix(proba, np.eye(3)[y] - proba), 43 // size
    estimate = naive_mean(H, np.ones(43), "block", size)
    kernel = Kernel.of(all_pairs, "median", proba, True)
    blocks = [proba[i : i + size] for i in range(0, n_blocks * size, size)]
    squares = sum(null_squares(block, kernel) for block in blocks)
    z = estimate / (np.sqrt(2 * squares) / (n_blocks * size * (size - 1)))
    options = {"notion": "canonical", "method": "block", "block_size": size}
    result = skce_test(y, proba, kernel=all_pairs, **options)
    assert_allclose([result.estimate, result.statistic], [estimate, z], rtol=1e-8)
    tail = chi2.sf(max(n_blocks + z * np.sqrt(2 * n_blocks), 0), n_blocks)
    assert_allclose(result.pvalue, tail, rtol=1e-8)


def test_the_asymptotic_methods_have_the_eigenvalues_and_the_sums_of_the_pairs():
    y, proba = draw("canonical", 30)
    H = h_matrix(proba, np.eye(3)[y] - proba)
    unbiased = (H.sum() - np.trace(H)) / (30 * 29)
    options = {"notion": "canonical", "kernel": all_pairs, "random_state": 0}
    quadratic = skce_test(y, proba, method="asymptotic", n_resamples=99, **options)
    assert_allclose(quadratic.statistic, 30 / 29 * unbiased - H.mean(), rtol=1e-9)
    spectral = skce_test(y, proba, method="spectral", n_resamples=20_000, **options)
    assert_allclose(spectral.statistic, 30 * unbiased, rtol=1e-9)
    variance = 2 * np.sum((np.linalg.eigvalsh(H) / 30) ** 2)
    # Of 20,000 draws the relative error of a variance is some 2 %.
    assert_allclose(spectral.null_distribution.var(), variance, rtol=0.1)
    free = skce_test(y, proba, method="distribution-free", kernel_bound=6.0, **options)
    assert_allclose(free.pvalue, np.exp(-15 * unbiased**2 / (2 * 12.0**2)), rtol=1e-9)


def test_calibrated_predictions_are_rejected_as_often_as_the_level_says():
    rng, proba = np.random.default_rng(0), np.random.default_rng(1).dirichlet(np.ones(3), size=30)
    pvalues = []
    for seed in range(100):
        y = draw_codes(proba, [rng.integers(2**31)])[0]
        options = {"n_resamples": 19, "random_state": seed, "notion": "canonical"}
        pvalues.append(
            skce_test(y, proba, kernel=widths_of_classes, labels=[0, 1, 2], **options).pvalue
        )
    # At level 10 %, more than 22 of 100 have probability 1e-4, none has 3e-5.
    assert 1 <= np.count_nonzero(np.array(pvalues) <= 0.1) <= 22


def test_groups_flip_their_residuals():
    y, proba = draw("canonical", 40)
    groups = np.repeat(np.arange(20), 2)
    options = {"notion": "canonical", "n_resamples": 99, "random_state": 0}
    result = skce_test(y, proba, kernel=all_pairs, groups=groups, **options)
    A = np.eye(3)
    same = skce_test(
        y, proba, kernel=lambda X, Z: (X @ Z.T)[..., None, None] * A, groups=groups, **options
    )
    scalar = skce_test(y, proba, kernel=lambda X, Z: X @ Z.T, groups=groups, **options)
    assert 0 < result.pvalue <= 1
    assert_allclose(same.null_distribution, scalar.null_distribution, rtol=1e-3, atol=1e-7)
    assert same.pvalue == scalar.pvalue


@pytest.mark.parametrize("method", ["unbiased", "block"])
def test_memory_is_bounded(method):
    n, m = 400, 5
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(m), size=n)
    options = {"notion": "canonical", "method": method}
    options |= {"block_size": n} if method == "block" else {}
    tracemalloc.start()
    with config_context(working_memory=1):
        squared_kernel_calibration_error(
            rng.integers(0, m, n), proba, kernel=widths_of_classes, **options
        )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.15 * 8 * n**2 * m**2


# What is refused


def not_symmetric(X, Z):
    return np.ones((1, len(Z), 1, 1)) * (X[:, None, :, None] * np.eye(X.shape[1]))


def not_finite(X, Z):
    return np.where(np.eye(3) > 0, np.nan, 1.0) * np.ones((len(X), len(Z), 1, 1))


CALLS = [
    squared_kernel_calibration_error,
    *(
        lambda *args, method=method, **options: skce_test(*args, method=method, **options)
        for method in ("monte-carlo", "block", "asymptotic", "spectral")
    ),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("kernel", "match"),
    [
        (of_two_points, r"The kernel (returned shape|fails for).*lambda X, Z: \[\[k\(x, z\)"),
        (
            lambda X, Z: np.ones((len(X), len(Z), 2, 2)),
            r"^kernel returns matrices of shape \(2, 2\) for residuals of 3",
        ),
        (lambda X, Z: np.ones((len(X), len(Z), 3)), r"returned shape \(16, 15, 3\)"),
        (not_finite, r"The kernel returned nan for X row.*must be finite"),
        (
            not_symmetric,
            r"^kernel is not symmetric: k\(x, z\) = .* entry \[\d, \d\]\. Return k\(x, z\)",
        ),
        (
            lambda X, Z: X[:, :1] * np.ones(len(Z)),
            r"^kernel is not symmetric: k\(x, z\) = .*\]\. Return",
        ),
    ],
)
def test_kernels_that_are_none_are_refused(call, kernel, match):
    y, proba = draw("canonical")
    with pytest.raises(ValueError, match=match):
        call(y, proba, notion="canonical", kernel=kernel)


@pytest.mark.parametrize("n", [2, 3])
def test_a_kernel_of_two_points_is_refused_of_as_many_samples_as_classes(n):
    y, proba = draw("canonical")
    with pytest.raises(ValueError, match=r"lambda X, Z"):
        squared_kernel_calibration_error(
            y[:n],
            proba[:n],
            notion="canonical",
            labels=[0, 1, 2],
            kernel=lambda x, z: np.full((3, 3), np.sum(x) * np.sum(z)),
        )


def test_matrices_and_a_class_kernel_are_refused_together():
    y, proba = draw("canonical")
    with pytest.raises(InputError, match=r"class_kernel is not used with a matrix-valued kernel"):
        squared_kernel_calibration_error(
            y, proba, notion="canonical", kernel=all_pairs, class_kernel=np.eye(3)
        )


def test_functions_of_numbers_refuse_matrices():
    y, proba = draw("canonical")
    options = {"notion": "canonical", "kernel": all_pairs}
    for call in (
        lambda: mean_embedding_test(y, proba, **options),
        lambda: compare_calibration(y, proba, proba[::-1], method="skce", **options),
    ):
        with pytest.raises(ValueError, match=r"returned shape \(.*, 3, 3\), not"):
            call()
