"""Tests by the squared kernel calibration error: bounds, limits, published p-values."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from calibrated_samples import kernel_value, sample, single_problem, superclass
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist
from scipy.stats import chi2, kstest, norm
from sklearn import config_context
from sklearn.utils import check_random_state
from used import used

from skcal.datasets import make_dirichlet
from skcal.hypothesis_tests import monte_carlo_test, skce, skce_test
from skcal.hypothesis_tests.skce import (
    FeatureStatistic,
    null_squares,
    null_squares_of_blocks,
    null_squares_of_features,
)
from skcal.kernels import Kernel
from skcal.metrics import squared_kernel_calibration_error
from skcal.metrics.kernel import KernelStatistic
from skcal.metrics.statistic import draw_codes
from skcal.notions import make_problems

SINGLE_PROBLEMS = ["binary", "confidence", "canonical", "top-2", superclass]
# Median of the full matrix of pairwise distances, zero diagonal included: shared/data/README.md.
RESNET18_WIDTH = 0.9986236334437499
NETWORKS = ["resnet18", "densenet121", "vgg16_bn", "googlenet"]


def linear_kernel(X, Z):
    """A kernel of the user; 1 at most on the simplex."""
    return X @ Z.T


def h_matrix(y, proba, notion, kernel="laplacian", width=0.3, A=None):
    """h_ij = k(x_i, x_j) δ_iᵀ A δ_j, one pair at a time."""
    [(x, residuals, *_)] = make_problems(proba, y, notion)
    A = np.eye(x.shape[1]) if A is None else A
    h = [[kernel_value(a, b, kernel, width) for b in x] for a in x]
    return np.array(h) * (residuals @ A @ residuals.T)


# Distribution-free


def bound_pvalue(t, n, bound, estimator, size=None):
    """mathematics.md §10."""
    if t <= 0:
        return 1.0
    if estimator == "biased":
        return np.exp(-(max(0, np.sqrt(n * t / bound) - 1) ** 2) / 2)
    if estimator == "block":
        return np.exp(-(n // size) * (size // 2) * t**2 / (2 * bound**2))
    return np.exp(-(n // 2) * t**2 / (2 * bound**2))


@pytest.mark.parametrize("estimator", ["biased", "unbiased", "block"])
@pytest.mark.parametrize("notion", SINGLE_PROBLEMS)
def test_distribution_free_pvalues_follow_their_bounds(notion, estimator):
    y, proba = sample(notion, n=61)
    y[:20] = 1 - np.minimum(y[:20], 1)  # towards estimates that make a difference
    scalar = notion in ("binary", "confidence")
    m = {"canonical": 4, "top-2": 3, superclass: 2}.get(notion, 1)
    A = np.diag(np.arange(1.0, m + 1))
    for class_kernel, kernel_bound in [(None, None), (A, None), (A, 0.5)]:
        for size in [2, 7, None] if estimator == "block" else [None]:
            options = {"notion": notion, "block_size": size, "class_kernel": class_kernel}
            error = squared_kernel_calibration_error(y, proba, method=estimator, **options)
            options |= {"method": "distribution-free", "kernel_bound": kernel_bound}
            result = skce_test(y, proba, estimator=estimator, **options)
            bound = (1 if scalar else 2) * (1 if class_kernel is None else m) * (kernel_bound or 1)
            assert_allclose(result.estimate, error, rtol=1e-12)
            expected = bound_pvalue(error, 61, bound, estimator, size or 7)
            assert_allclose(result.pvalue, expected, rtol=1e-9)


@pytest.mark.parametrize("estimator", ["unbiased", "block"])
def test_negative_estimates_are_no_evidence(estimator):
    found = 0
    for seed in range(20):
        data = make_dirichlet(50, n_classes=3, random_state=seed)
        options = {"notion": "canonical", "method": "distribution-free", "estimator": estimator}
        result = skce_test(data.labels, data.proba, **options)
        found += result.estimate <= 0
        assert (result.pvalue == 1) == (result.estimate <= 0)
    assert 0 < found < 20


def test_bounds_of_callables_must_be_given():
    y, proba = sample("canonical")
    options = {"method": "distribution-free", "kernel": linear_kernel, "notion": "canonical"}
    with pytest.raises(ValueError, match="needs kernel_bound, an upper bound of the callable"):
        skce_test(y, proba, **options)
    result = skce_test(y, proba, kernel_bound=1, **options)
    assert_allclose(result.pvalue, bound_pvalue(result.estimate, len(y), 2, "unbiased"))


# Published figures: Widmann, Lindsten & Zachariah (2019), CIFAR-10


def full_matrix_median(proba):
    """Median total variation distance of the full matrix: n zeros and each pair twice."""
    distances, n = pdist(proba, "cityblock"), len(proba)
    middle = [(n * n // 2 - 1 - n) // 2, (n * n // 2 - n) // 2]
    distances.partition(middle)
    return distances[middle].mean() / 2


def check_linear(y, proba, width, figures):
    options = {"notion": "canonical", "bandwidth": width, "block_size": 2, "variance": "sample"}
    result = skce_test(y, proba, method="block", **options)
    n_blocks = len(y) // 2
    # Theirs divides by the number of blocks, not by one less.
    z = result.statistic * np.sqrt(n_blocks / (n_blocks - 1))
    expected = figures["pvalue_SKCEul_median_asymptotic"]
    assert norm.sf(z) == pytest.approx(expected, abs=1e-8, rel=0)
    assert result.pvalue != pytest.approx(expected, abs=1e-6, rel=0)
    check_bound(y, proba, width, "block", "SKCEul_median", figures)
    return result


def check_bound(y, proba, width, estimator, name, figures):
    options = {"notion": "canonical", "bandwidth": width}
    if estimator == "block":
        options["block_size"] = 2
    result = skce_test(y, proba, method="distribution-free", estimator=estimator, **options)
    assert_allclose(result.estimate, figures[name], rtol=1e-10)
    # Theirs square a negative estimate, of which nothing is known.
    published = figures[f"pvalue_{name}_distribution_free"] if result.estimate > 0 else 1
    assert result.pvalue == pytest.approx(published, abs=1e-8, rel=0)


def test_linear_pvalues_of_resnet18_are_the_published_ones(cifar10, published):
    proba, y = cifar10("resnet18")
    result = check_linear(y, proba, RESNET18_WIDTH, published["resnet18"])
    assert result.pvalue == pytest.approx(0.1834767, abs=5e-8)


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
def test_pvalues_of_cifar10_networks_are_the_published_ones(cifar10, published, network):
    proba, y = cifar10(network)
    width = full_matrix_median(proba)
    check_linear(y, proba, width, published[network])
    for estimator, name in {"biased": "SKCEb_median", "unbiased": "SKCEuq_median"}.items():
        check_bound(y, proba, width, estimator, name, published[network])
    result = skce_test(
        y, proba, notion="canonical", method="asymptotic", bandwidth=width, random_state=0
    )
    assert published[network]["pvalue_SKCEuq_median_asymptotic"] == 0  # a count over resamples
    assert result.pvalue < 0.01


# Asymptotic: quadratic


@pytest.mark.parametrize("kernel", ["laplacian", "rbf", linear_kernel])
@pytest.mark.parametrize("notion", SINGLE_PROBLEMS)
def test_bootstrap_is_the_quadratic_form_of_its_multinomial_counts(notion, kernel):
    n, B = 13, 19
    y, proba = sample(notion, n)
    m = {"canonical": 4, "top-2": 3, superclass: 2}.get(notion, 1)
    root = np.random.default_rng(3).normal(size=(m, m))
    for A in (None, root @ root.T):
        H = h_matrix(y, proba, notion, kernel, A=A)
        seed = check_random_state(8).randint(2**31 - 1)
        counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=B)
        null = np.zeros(B)
        for b, c in enumerate(counts):
            for i, j in product(range(n), repeat=2):
                pair = n / (n - 1) * c[i] * c[j] if i != j else n / (n - 1) * c[i] * (c[i] - 1)
                null[b] += (pair - 2 * c[i]) * H[i, j] / n**2
        unbiased = (H.sum() - np.trace(H)) / (n * (n - 1))
        statistic = n / (n - 1) * unbiased - H.mean()
        options = {"notion": notion, "kernel": kernel, "bandwidth": 0.3, "class_kernel": A}
        options = used(skce_test, **options)
        for memory in (1024, 0.005):  # MiB: all rows, blocks of some
            with config_context(working_memory=memory):
                result = skce_test(
                    y, proba, method="asymptotic", n_resamples=B, random_state=8, **options
                )
            assert_allclose(result.null_distribution, null, rtol=1e-9, atol=1e-15)
            assert_allclose(result.statistic, statistic, rtol=1e-9, atol=1e-15)
            assert_allclose(result.estimate, unbiased, rtol=1e-9, atol=1e-15)
            assert result.pvalue == (1 + np.sum(null >= statistic)) / (1 + B)


def test_memory_of_the_bootstrap_is_bounded():
    n = 3000
    data = make_dirichlet(n, n_classes=3, random_state=0)
    options = {"notion": "canonical", "method": "asymptotic", "bandwidth": 0.5}
    tracemalloc.start()
    skce_test(data.labels, data.proba, n_resamples=99, random_state=0, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 8 * n**2  # half of one n×n matrix


def test_spectral_limit_of_one_prediction_is_a_scaled_chi_square(monkeypatch):
    """k = 1 and δ = ±½ make H of rank one with eigenvalue n/4, for every share of the samples."""
    y = np.random.default_rng(0).integers(0, 2, 200)
    for rows in (2000, 50):
        monkeypatch.setattr(skce, "_SPECTRUM_ROWS", rows)
        result = skce_test(
            y, np.full(200, 0.5), method="spectral", n_resamples=2000, random_state=0
        )
        # A Kolmogorov-Smirnov test at level 1e-4.
        assert kstest(4 * result.null_distribution + 1, chi2(1).cdf).pvalue > 1e-4
        expected = 200 * squared_kernel_calibration_error(y, np.full(200, 0.5))
        assert_allclose(result.statistic, expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", ["laplacian", "rbf", linear_kernel])
@pytest.mark.parametrize("notion", SINGLE_PROBLEMS)
def test_spectral_limit_has_the_eigenvalues_of_the_pairs(notion, kernel):
    y, proba = sample(notion, 30)
    eigenvalues = np.linalg.eigvalsh(h_matrix(y, proba, notion, kernel)) / 30
    options = {"notion": notion, "kernel": kernel, "bandwidth": 0.3, "n_resamples": 20_000}
    options = used(skce_test, method="spectral", **options)
    null = skce_test(y, proba, random_state=0, **options).null_distribution
    cumulants = [0, 2 * np.sum(eigenvalues**2), 8 * np.sum(eigenvalues**3)]
    centred = null - null.mean()
    moments = [null.mean(), np.mean(centred**2), np.mean(centred**3)]
    errors = [np.std(null**k) / np.sqrt(len(null)) for k in (1, 2, 3)]
    # Each mean leaves 5 standard errors with probability 6e-7.
    assert (np.abs(np.subtract(moments, cumulants)) < 5 * np.array(errors)).all()


@pytest.mark.filterwarnings("ignore:All predictions in")
@pytest.mark.parametrize("method", ["asymptotic", "spectral", "monte-carlo", "block"])
def test_certain_and_right_predictions_have_p_1(method):
    y = np.array([0, 1, 2, 2, 1, 0] * 4)
    result = skce_test(y, np.eye(3)[y], notion="canonical", method=method, random_state=0)
    assert result.pvalue == 1
    assert result.estimate == result.statistic == 0


# Blocks


@pytest.mark.parametrize("notion", SINGLE_PROBLEMS)
@pytest.mark.parametrize("size", [2, 5, None])
def test_block_means_have_a_normal_limit_and_by_their_variance_under_h0_a_chi_square_one(
    notion, size
):
    y, proba = sample(notion, 43)
    H, b = h_matrix(y, proba, notion), size or 6
    values = []
    for start in range(0, 43 - b + 1, b):
        block = H[start : start + b, start : start + b]
        values.append((block.sum() - np.trace(block)) / (b * (b - 1)))
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    z = np.mean(values) / error
    options = {"notion": notion, "method": "block", "block_size": size, "bandwidth": 0.3}
    result = skce_test(y, proba, variance="sample", **options)
    assert_allclose(result.statistic, z, rtol=1e-8)
    assert_allclose(result.pvalue, norm.sf(z), rtol=1e-8)
    known = skce_test(y, proba, **options)
    assert (known.estimate, known.standard_error) == (result.estimate, result.standard_error)
    assert_allclose(result.estimate, np.mean(values), rtol=1e-8)
    low, high = result.confidence_interval(0.9)
    assert_allclose([low, high], np.mean(values) + norm.ppf([0.05, 0.95]) * error, rtol=1e-8)
    [(X, *_)] = make_problems(proba, y, notion)
    kernel, count = Kernel.of("laplacian", 0.3, X), len(values)
    squares = null_squares_of_blocks(X, kernel, np.eye(X.shape[1]), b)
    z = known.estimate / (np.sqrt(2 * squares) / (count * b * (b - 1)))
    assert_allclose(known.statistic, z)
    assert_allclose(known.pvalue, chi2.sf(max(count + z * np.sqrt(2 * count), 0), count))


@pytest.mark.parametrize("class_kernel", [None, np.diag([1.0, 2, 0.5]) + 0.1])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_the_variance_under_h0_is_that_of_all_outcomes(n_columns, class_kernel):
    """Every outcome of five predictions, with its probability."""
    rng = np.random.default_rng(0)
    m = n_columns
    X = rng.dirichlet(np.ones(3), size=5) if m == 3 else rng.uniform(size=(5, 1))
    A = np.eye(m) if class_kernel is None else class_kernel[:m, :m]
    outcomes = np.eye(3) if m == 3 else np.array([[0.0], [1.0]])
    law = X if m == 3 else np.hstack([1 - X, X])
    kernel = Kernel.of("laplacian", 0.4, X)
    K, pairs = kernel.matrix(X, X), np.triu_indices(5, 1)
    mean = square = 0.0
    for codes in product(range(law.shape[1]), repeat=5):
        delta = outcomes[list(codes)] - X
        probability = np.prod(law[np.arange(5), list(codes)])
        total = 2 * np.sum((K * (delta @ A @ delta.T))[pairs])
        mean, square = mean + probability * total, square + probability * total**2
    assert_allclose(mean, 0, atol=1e-12)
    assert_allclose(square, 2 * null_squares(X, kernel, A), rtol=1e-10)
    assert_allclose(null_squares_of_blocks(X, kernel, A, 5), null_squares(X, kernel, A))
    own = sum(null_squares(X[i : i + 2], kernel, A) for i in (0, 2))
    assert_allclose(null_squares_of_blocks(X, kernel, A, 2), own)


@pytest.mark.parametrize("kernel", ["laplacian", "rbf", linear_kernel])
def test_the_variance_under_h0_does_not_depend_on_how_it_is_summed(kernel, monkeypatch):
    x = np.random.default_rng(0).uniform(size=(60, 1))
    k = Kernel.of(kernel, 0.2, x)
    one = null_squares(x, k, np.eye(1))
    by_hand = k.matrix(x, x) ** 2 * ((x * (1 - x)) @ (x * (1 - x)).T)
    assert_allclose(one, by_hand.sum() - np.trace(by_hand), rtol=1e-9)
    blocks = null_squares_of_blocks(x, k, np.eye(1), 20)
    assert_allclose(blocks, sum(null_squares(x[i : i + 20], k, np.eye(1)) for i in (0, 20, 40)))


def test_blocks_that_agree_on_an_error_have_no_normal_limit():
    options = {"method": "block", "block_size": 2, "labels": [0, 1]}
    with pytest.raises(ValueError, match=r"All blocks agree.*method='monte-carlo'"):
        skce_test([1] * 8, [0.75] * 8, variance="sample", **options)
    with pytest.raises(ValueError, match=r"predictions are certain.*method='monte-carlo'"):
        skce_test([1] * 8, [0.0] * 8, **options)
    assert skce_test([0] * 50, [0.02] * 50, method="block", labels=[0, 1]).pvalue > 0.3


# Several widths


def literal_largest(y, proba, notion, widths):
    """Largest SKCE over widths, each divided by its standard deviation under H0."""
    [(X, *_)] = make_problems(proba, y, notion)
    n, values = len(y), []
    for width in widths:
        H = h_matrix(y, proba, notion, width=width)
        squares = null_squares(X, Kernel.of("laplacian", width, X), np.eye(X.shape[1]))
        values.append((H.sum() - np.trace(H)) / np.sqrt(2 * squares))
    best = int(np.argmax(values))
    H = h_matrix(y, proba, notion, width=widths[best])
    return values[best], (H.sum() - np.trace(H)) / (n * (n - 1))


@pytest.mark.parametrize("notion", SINGLE_PROBLEMS)
def test_the_default_is_the_largest_standardised_error_of_several_widths(notion):
    y, proba = sample(notion, 30)
    options = {"notion": notion, "n_resamples": 39, "random_state": 0}
    result = skce_test(y, proba, **options)
    statistic, estimate = literal_largest(y, proba, notion, (0.01, 0.1, 1.0))
    assert_allclose(result.statistic, statistic, rtol=1e-5)
    assert_allclose(result.estimate, estimate, rtol=1e-5, atol=1e-9)
    same = skce_test(y, proba, bandwidth=[1.0, 0.01, 0.1], **options)
    assert same.pvalue == result.pvalue


@pytest.mark.parametrize("notion", ["binary", "canonical"])
@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_one_width_of_several_has_the_p_value_of_that_width(notion, estimator):
    y, proba = sample(notion)
    options = {"notion": notion, "n_resamples": 99, "random_state": 0, "estimator": estimator}
    one = skce_test(y, proba, bandwidth=0.2, **options)
    several = skce_test(y, proba, bandwidth=[0.2], **options)
    assert several.pvalue == one.pvalue
    assert_allclose(several.estimate, one.estimate, rtol=1e-6)


def test_a_width_whose_error_rounding_hides_does_not_decide():
    # The nearest of 100-class predictions are 50 widths of 0.01 apart: in float32 it sees nothing.
    data = make_dirichlet(250, n_classes=100, model="M2", random_state=3)
    result = skce_test(data.labels, data.proba, notion="canonical", n_resamples=99, random_state=3)
    assert result.pvalue == 0.01
    assert result.null_distribution.mean() < 2  # in standard deviations


# Dispatch


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_monte_carlo_is_the_default(estimator):
    y, proba = sample("top-label")
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    options = {"kernel": "rbf", "bandwidth": 0.2, "notion": "top-label", "random_state": 3}
    options["sample_weight"] = weight
    result = skce_test(y, proba, estimator=estimator, n_resamples=39, **options)
    name = "squared_kernel_calibration_error"
    expected = monte_carlo_test(y, proba, name, method=estimator, n_resamples=39, **options)
    assert result.pvalue == expected.pvalue
    assert (result.null_distribution == expected.null_distribution).all()


BLOCKS = {"method": "distribution-free", "estimator": "block"}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"method": "asymptotic", "block_size": 2}, "block_size is not used by .*'asymptotic'"),
        ({"block_size": 2}, "block_size is not used by method='monte-carlo'"),
        ({"method": "asymptotic", "estimator": "block"}, "estimator is not used .*'asymptotic'"),
        ({"method": "block", "estimator": "biased"}, "estimator is not used with method='block'"),
        ({"class_kernel": np.eye(4)}, "takes no class_kernel and no estimator='block'"),
        ({"estimator": "block"}, "takes no class_kernel and no estimator='block'"),
        ({"method": "block", "bandwidth": [0.1, 1]}, "takes one bandwidth.*method='monte-carlo'"),
        *(({"bandwidth": wrong}, "positive") for wrong in ([0.1, 0], [], [[0.1]], [np.nan])),
        ({"method": "block", "block_size": 6}, r"11 samples, 1 block\(s\) of 6; at least 2"),
        ({"method": "block", "block_size": 12}, r"11 samples, 0 block\(s\) of 12; at least 2"),
        ({**BLOCKS, "block_size": 17}, r"11 samples, 0 block\(s\) of 17; at least 1"),
    ],
)
def test_what_a_method_does_not_take_is_refused(options, match):
    y, proba = sample("canonical", 11)
    with pytest.raises(ValueError, match=match):
        skce_test(y, proba, notion="canonical", **options)
    assert 0 < skce_test(y, proba, notion="canonical", block_size=6, **BLOCKS).pvalue <= 1


@pytest.mark.parametrize("method", ["distribution-free", "asymptotic", "spectral", "block"])
def test_limits_refuse_weights_that_differ(method):
    y, proba = sample("canonical")
    options = {"notion": "canonical", "method": method, "random_state": 0}
    same = skce_test(y, proba, sample_weight=np.full(len(y), 3.0), **options)
    assert same.pvalue == skce_test(y, proba, **options).pvalue
    weight = np.append(np.ones(len(y) - 1), 2.0)
    with pytest.raises(ValueError, match=r"sample_weight is not for method=.* Use method='monte"):
        skce_test(y, proba, sample_weight=weight, **options)


@pytest.mark.parametrize(
    "options", [{"method": "monte-carlo", "n_resamples": 19}, {"method": "block", "block_size": 2}]
)
def test_few_samples_of_many_classes_take_no_matrix_of_classes(options):
    C = 2000
    proba = np.random.default_rng(0).dirichlet(np.ones(C), 6)
    tracemalloc.start()
    try:
        skce_test(np.arange(6), proba, notion="canonical", random_state=0, **options)
        assert tracemalloc.get_traced_memory()[1] < 8 * C**2 / 4
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("biased", [True, False])
def test_features_of_all_samples_as_landmarks_are_the_kernel(biased):
    data = make_dirichlet(120, n_classes=4, n_truth_draws=0, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 120)
    problem = single_problem(data.labels, data.proba, "canonical", weight)
    kernel = Kernel.of("laplacian", 0.3, problem.features)
    codes = draw_codes(problem.features, range(5))
    exact = KernelStatistic(problem, kernel, biased)(codes)
    features = FeatureStatistic(problem.features, problem.weight, kernel, biased)
    assert_allclose(features(codes), exact, atol=2e-6)
    assert_allclose(features(np.eye(4)[codes]), features(codes), rtol=1e-12, atol=1e-15)
    squares = null_squares(problem.features, kernel, weight=weight)
    assert null_squares_of_features(problem.features, [features.psi])[0] == pytest.approx(squares)


@pytest.mark.parametrize(
    ("n", "notion", "kind"),
    [
        (20, "canonical", KernelStatistic),
        (50, "confidence", KernelStatistic),
        (50, "canonical", FeatureStatistic),
    ],
)
def test_features_stand_for_the_kernels_of_many_vectors_alone(monkeypatch, n, notion, kind):
    monkeypatch.setattr(skce, "_MANY_SAMPLES", 30)
    data = make_dirichlet(n, n_classes=4, n_truth_draws=0, random_state=0)
    problem = single_problem(data.labels, data.proba, notion)
    kernels = [Kernel.of("laplacian", 0.3, problem.features)]
    statistics = skce.LargestOfWidths(problem, kernels, False).statistics
    assert [type(statistic) for statistic in statistics] == [kind]


def test_many_vectors_are_tested_by_features(monkeypatch):
    data = make_dirichlet(300, n_classes=4, n_truth_draws=0, random_state=0)
    arguments = {"notion": "canonical", "n_resamples": 99, "random_state": 0}
    exact = skce_test(data.labels, data.proba, **arguments)
    monkeypatch.setattr(skce, "_MANY_SAMPLES", 100)
    features = skce_test(data.labels, data.proba, **arguments)
    assert features.pvalue == exact.pvalue  # 300 landmarks: all samples
    assert features.statistic == pytest.approx(exact.statistic, rel=1e-3)
    assert features.estimate == pytest.approx(exact.estimate)
