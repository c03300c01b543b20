"""Products with kernel matrices, and median distances, against dense arrays over pairs."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist, pdist
from sklearn import config_context

from skcal.kernels import Kernel, laplacian_forms, laplacian_times, median_distance


def simplex(n, n_classes=3):
    return np.random.default_rng(0).dirichlet(np.ones(n_classes), size=n)


POINTS = {
    "one": np.array([0.3]),
    "spread": np.random.default_rng(0).uniform(size=100),
    "ties": np.random.default_rng(0).integers(0, 5, size=100) / 4,
    "two clusters": np.r_[np.linspace(0, 1e-9, 50), np.linspace(1 - 1e-9, 1, 50)],
    "far from 0": 1e5 + np.random.default_rng(0).uniform(size=100),
}


@pytest.mark.parametrize("width", np.logspace(-4, 4, 9))
@pytest.mark.parametrize("points", POINTS)
def test_laplacian_times_is_the_product_with_the_dense_matrix(points, width):
    z = POINTS[points] / width
    V = np.random.default_rng(1).normal(size=(len(z), 3))
    dense = np.exp(-np.abs(z[:, None] - z))
    product = laplacian_times(z, V)
    assert (np.abs(product - dense @ V) <= 1e-13 * (dense @ np.abs(V))).all()
    assert_allclose(laplacian_times(-z[::-1], V[::-1])[::-1], product, rtol=0, atol=1e-12)
    order = np.argsort(z)
    apart, own = laplacian_forms(z[order], lambda rows: V[order[rows]].T)
    assert_allclose(apart + own, np.einsum("ij,ij->j", V, dense @ V), rtol=1e-12)
    assert_allclose(own, np.einsum("ij,ij->j", V, V), rtol=1e-12)


@pytest.mark.parametrize("bandwidth", [1e-300, 1e-30, 1e-19, 1e-12])
def test_widths_far_below_the_scale_of_the_points_give_no_overflow(bandwidth):
    """Probabilities of softmaxes spread over 20 orders of magnitude, and so do their distances."""
    rng = np.random.default_rng(0)
    z = np.sort(np.concatenate([10.0 ** -rng.uniform(0, 20, 300), np.zeros(5)]))
    z = np.append(z, [np.nextafter(1.0, 0), 1.0, 1.0])
    V = rng.normal(size=(len(z), 2))
    dense = np.exp(-np.abs(z[:, None] - z) / bandwidth)
    assert_allclose(laplacian_times(z, V, 1 / bandwidth), dense @ V, rtol=1e-12, atol=1e-12)
    order = np.argsort(z)
    sums = laplacian_forms(z[order], lambda rows: V[order[rows]].T, 1 / bandwidth)
    assert_allclose(sum(sums), np.einsum("ij,ij->j", V, dense @ V), rtol=1e-12)


def dense(X, Z, name, width):
    """mathematics.md §8: total variation (|x - z| for numbers), or Euclidean."""
    if callable(name):
        return name(X, Z)
    if name == "rbf":
        return np.exp(-(cdist(X, Z) ** 2) / (2 * width**2))
    return np.exp(-cdist(X, Z, "cityblock") / (2 if X.shape[1] > 1 else 1) / width)


def squared_product(X, Z):
    return (1 + X @ Z.T) ** 2


@pytest.mark.parametrize("working_memory", [1024, 0.02])  # MiB: one block, and blocks of 13 rows
@pytest.mark.parametrize("width", [1e-3, 1])
@pytest.mark.parametrize("name", ["laplacian", "rbf", squared_product])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_products_with_a_kernel_are_those_with_its_matrix(
    n_columns, dtype, name, width, working_memory
):
    X = simplex(100)[:, :n_columns].astype(dtype)
    X[10:15] = X[9]
    exact, V = X.astype(np.float64), np.random.default_rng(1).normal(size=(100, 2))
    kernel, K = Kernel.of(name, width, X), dense(exact, exact, name, width)
    size = np.abs(V) @ np.abs(V).T * K
    with config_context(working_memory=working_memory):
        assert_allclose(kernel.times(X, V), K @ V, rtol=0, atol=1e-11 * size.sum(axis=1).max())
        assert_allclose(kernel.quadratic_form(X, V), np.vdot(V, K @ V), atol=1e-11 * size.sum())
    assert_allclose(kernel.matrix(X, X[:7]), K[:, :7], rtol=1e-9, atol=1e-15)
    rtol = 1e-5 if callable(name) and dtype == np.float32 else 1e-9
    assert_allclose(kernel.paired(X[:60], X[40:]), np.diagonal(K[:60, 40:]), rtol=rtol)


def test_a_quadratic_form_asks_for_half_of_the_pairs_in_blocks():
    pairs = []

    def kernel(X, Z):
        pairs.append(len(X) * len(Z))
        return X @ Z.T

    with config_context(working_memory=0.02):
        Kernel.of(kernel, None, simplex(100)).quadratic_form(simplex(100), np.ones((100, 1)))
    assert max(pairs) <= 13 * 100
    assert sum(pairs) < 0.75 * 100**2


@pytest.mark.parametrize("spread", [1e-6, 1e-8])
def test_confidences_close_to_1_keep_their_distances(spread):
    X = 1 - spread * np.random.default_rng(0).uniform(size=(100, 1))
    V, kernel = np.random.default_rng(1).normal(size=(100, 1)), Kernel.of("rbf", "median", X)
    K = dense(X, X, "rbf", kernel.bandwidth)
    assert_allclose(kernel.matrix(X, X), K, rtol=1e-6)
    assert_allclose(kernel.quadratic_form(X, V), np.vdot(V, K @ V), rtol=1e-6)


# Median distances


@pytest.mark.parametrize("n", [2, 3, 50])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_the_median_is_that_of_distinct_pairs(n, n_columns):
    X = simplex(n)[:, :n_columns]
    for metric, power in (("cityblock", 1), ("euclidean", 2)):
        norms = [np.linalg.norm(a - b, ord=power) for a, b in combinations(X, 2)]
        assert_allclose(median_distance(X, metric), np.median(norms), rtol=1e-13)
    total_variation = Kernel.of("laplacian", "median", X).bandwidth
    halves = 1 if n_columns == 1 else 2
    assert_allclose(total_variation, median_distance(X, "cityblock") / halves, rtol=1e-15)
    assert Kernel.of("rbf", "median", X).bandwidth == median_distance(X, "euclidean")


def test_up_to_3000_rows_count_and_of_more_a_sample_that_ignores_their_order():
    X = np.random.default_rng(0).beta(0.5, 2, size=(3600, 2))
    exact = np.median(pdist(X[:3000], "cityblock"))
    assert_allclose(median_distance(X[:3000], "cityblock"), exact, rtol=1e-13)
    sampled = median_distance(X, "cityblock")
    assert_allclose(sampled, np.median(pdist(X, "cityblock")), rtol=5e-3)
    order = np.random.default_rng(1).permutation(3600)
    assert median_distance(X[order], "cityblock") == sampled


SCALARS = {
    "spread": lambda rng, n: rng.uniform(size=n),
    "halves": lambda rng, n: rng.integers(0, 3, n) / 2,
    "grid": lambda rng, n: rng.integers(0, 101, n) / 100,
    "many orders": lambda rng, n: np.exp(-700 * rng.uniform(size=n)),
    "float32 softmax": lambda rng, n: rng.beta(0.01, 3, n).astype(np.float32),
    "mostly 1": lambda rng, n: np.where(rng.uniform(size=n) < 0.6, 1, rng.uniform(size=n)),
    "neighbours": lambda rng, n: 1 - rng.integers(0, 50, n) * np.finfo(float).eps / 2,
    "logarithms": lambda rng, n: np.log(rng.integers(1, 40, n) / 40) - 9,
    "both signs": lambda rng, n: rng.integers(-7, 8, n) / 7,
    "tiny": lambda rng, n: rng.integers(0, 9, n) * 1e-300,
}


@pytest.mark.parametrize("kind", SCALARS)
def test_the_median_of_scalars_is_to_the_bit_that_of_all_pairs(kind):
    rng = np.random.default_rng(0)
    for n in [*range(2, 40), 100, 500]:
        X = SCALARS[kind](rng, n)[:, None].astype(float)
        gaps = pdist(X, "cityblock")
        expected = np.median(gaps) or (np.median(gaps[gaps > 0]) if gaps.any() else 1)
        assert median_distance(X, "cityblock") == median_distance(X, "euclidean") == expected


def test_copies_of_few_values_take_no_memory_of_pairs():
    X = np.repeat([[0.0], [1.0]], 1500, axis=0)
    tracemalloc.start()
    assert median_distance(X, "cityblock") == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize("metric", ["cityblock", "euclidean"])
def test_coinciding_pairs_are_left_out_when_they_are_half_of_all(metric):
    copies = np.zeros((8, 1))
    assert median_distance(copies[:1], metric) == median_distance(copies, metric) == 1
    # 28 of 36 pairs coincide: the median of the other 8.
    assert median_distance(np.vstack([copies, [[0.3]]]), metric) == 0.3
    # 1 of 3 pairs coincides and counts.
    assert median_distance(np.array([[0.0], [0], [0.3]]), metric) == 0.3
    # 3 of 6: the middle is half of 0 and 0.2.
    assert median_distance(np.array([[0.0], [0], [0], [0.2]]), metric) == 0.1


@pytest.mark.parametrize(("name", "n_columns"), [("laplacian", 1), ("laplacian", 3), ("rbf", 3)])
def test_products_and_medians_form_no_array_over_pairs(name, n_columns):
    X, V = simplex(4000)[:, :n_columns], np.ones((4000, 2))
    tracemalloc.start()
    kernel = Kernel.of(name, "median", X)
    median_peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    kernel.quadratic_form(X, V)
    kernel.times(X, V)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # n² numbers take 128 MB; pairs of 3,000 samples 36 MB, twice for their median.
    assert median_peak < 80e6
    assert peak < 25e6
