"""Partitions against exact rational arithmetic and naive loops."""

from fractions import Fraction

import naive_bins
import numpy as np
import pytest
from naive_bins import equal_mass
from numpy.testing import assert_array_equal

from skcal._bins import median_variance, quantile, sweep, uniform, unique

DTYPES = [np.float32, np.float64]
# Scores on a coarse grid (a forest's, say) with ties, zeros and ones, and continuous scores.
SCORES = [lambda rng, n: rng.integers(0, 11, n) / 10, lambda rng, n: rng.uniform(size=n)]


def partition(kind, X, outcomes=None, weight=None, n_bins=15, min_samples=1):
    X = np.asarray(X)
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    return kind(X, outcomes, weight, n_bins=n_bins, min_samples=min_samples)


def column(x):
    return np.asarray(x)[:, None]


def same_grouping(a, b):
    """Whether two labellings put the same rows together."""
    return len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(set(a)) == len(set(b))


# Intervals


@pytest.mark.parametrize("dtype", DTYPES)
def test_grid_values_fall_as_in_rational_arithmetic(dtype):
    """All k/K, K ≤ 100, however they were rounded: by division in either dtype."""
    K = np.repeat(np.arange(1, 101), np.arange(2, 102))
    k = np.concatenate([np.arange(size + 1) for size in range(1, 101)])
    for n_bins in range(2, 101):
        exact = np.maximum(-(-k * n_bins // K) - 1, 0)  # ⌈B k/K⌉, in integers
        bins = partition(uniform, column([0.5]).astype(dtype), n_bins=n_bins)
        for x in (k.astype(dtype) / K.astype(dtype), (k / K).astype(dtype)):
            assert_array_equal(bins.assign(column(x)), exact, err_msg=f"{n_bins} bins")


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # half precision ends at 65,504
@pytest.mark.parametrize("dtype", [np.float16, *DTYPES])
@pytest.mark.parametrize("n_bins", [1, 7, 1000, 200_000])
def test_many_bins_are_those_of_a_search_among_edges(rng, n_bins, dtype):
    edges = (np.arange(n_bins + 1) / n_bins).astype(dtype)
    near = np.nextafter(edges, dtype(2)), np.nextafter(edges, dtype(-1))
    x = np.concatenate(
        [edges, *near, rng.random(1000).astype(dtype), [dtype(-1e-9), dtype(1.0001)]]
    )
    bins = partition(uniform, column([0.5]).astype(dtype), n_bins=n_bins)
    assert_array_equal(bins.assign(column(x)), np.searchsorted(edges[1:-1], x, side="left"))


# Equal mass


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("draw", SCORES)
@pytest.mark.parametrize(("n", "n_bins"), [(1, 5), (2, 2), (7, 10), (40, 1), (40, 8), (41, 15)])
def test_quantile_edges_are_inverted_cdf_values(rng, draw, n, n_bins, dtype):
    for _ in range(10):
        x, counts = draw(rng, n).astype(dtype), rng.integers(1, 4, n)
        bins = partition(quantile, column(x), weight=counts, n_bins=n_bins)
        repeated = x.repeat(counts)
        assert_array_equal(bins.assign(column(repeated)), equal_mass(repeated.tolist(), n_bins))
        assert set(bins.edges[1:-1]) <= set(x.tolist()) - {x.max()}


@pytest.mark.parametrize(
    ("x", "n_bins", "expected"),
    [
        ([0, 0, 0, 0.5, 0.6, 0.7], 2, [0, 0, 0, 1, 1, 1]),
        ([0, 0, 0, 0, 0, 1], 2, [0, 0, 0, 0, 0, 1]),
        ([0, 0.5, 0.6, 1], 2, [0, 0, 1, 1]),
        ([0, 1, 1, 1, 1, 1], 2, [0, 0, 0, 0, 0, 0]),
        ([0, 1, 1, 1, 1, 1], 6, [0, 1, 1, 1, 1, 1]),
        ([0, 0, 0], 3, [0, 0, 0]),
        ([1, 1, 1], 3, [0, 0, 0]),
    ],
)
def test_zeros_and_ones_share_a_bin_only_where_the_quantiles_say_so(x, n_bins, expected):
    X = column(np.array(x, dtype=float))
    bins = partition(quantile, X, n_bins=n_bins)
    assert_array_equal(bins.assign(X), expected)
    assert bins.n_bins == len(set(expected))


# Monotone sweep


@pytest.mark.parametrize("draw", SCORES)
@pytest.mark.parametrize("n", [1, 2, 3, 12, 40])
def test_sweep_is_the_largest_count_whose_smaller_counts_are_all_monotone(rng, draw, n):
    for _ in range(15):
        x = draw(rng, n)
        y = (rng.uniform(size=n) < x).astype(float)
        bins = partition(sweep, column(x), column(y))
        expected = naive_bins.sweep(x.tolist(), [Fraction(int(hit)) for hit in y])
        assert_array_equal(bins.assign(column(x)), expected)


def test_sweep_can_stop_before_a_larger_count_that_is_monotone_again():
    # B' = 2: frequencies 1/4, 2/3; B' = 3: 0, 1, 1/2; B' = 4: 0, 1/2, 1/2, 1.
    x, y = np.arange(7) / 10, np.array([0, 0, 0, 1, 1, 0, 1.0])
    bins = partition(sweep, column(x), column(y))
    assert_array_equal(bins.assign(column(x)), [0, 0, 0, 0, 1, 1, 1])


# Cells of the simplex


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n_bins", "n_classes"), [(1, 3), (2, 2), (3, 5), (10, 4), (1000, 3)])
def test_cells_are_the_tuples_of_ceilings(rng, n_bins, n_classes, dtype):
    # 0 lies in the first interval, which is closed: max(1, ⌈B p⌉).
    K = 3 * n_bins
    k = rng.multinomial(K, rng.dirichlet(np.full(n_classes, 0.4), size=400))
    tuples = np.maximum(-(-k * n_bins // K), 1)
    X = (k / K).astype(dtype)
    cells = partition(uniform, X, n_bins=n_bins)
    _, expected = np.unique(tuples, axis=0, return_inverse=True)
    assert cells.n_bins == expected.max() + 1
    assert same_grouping(cells.assign(X), expected.ravel())


def test_cells_with_numbers_that_are_multiples_of_256_stay_apart():
    p = (np.array([255, 256, 257, 511, 512, 513, 768]) + 0.5) / 1000
    X = np.column_stack([1 - p, p])
    assigned = partition(uniform, X, n_bins=1000).assign(X)
    assert_array_equal(np.sort(assigned), np.arange(len(p)))


def test_cells_of_distinct_predictions_tell_the_smallest_apart_but_not_the_signs_of_zero():
    p = np.array([0.0, -0.0, 1e-20, 5e-324, 0.5, 0.5 + 2**-53])
    X = np.column_stack([p, 1 - p])
    assert_array_equal(partition(unique, X).assign(X), [0, 0, 2, 1, 3, 4])


def test_cells_unseen_in_training_get_the_number_after_the_last():
    cells = partition(uniform, np.array([[0.1, 0.9], [0.9, 0.1]]), n_bins=4)
    X = np.array([[0.9, 0.1], [0.4, 0.6], [0.0, 1.0], [0.1, 0.9], [1.0, 0.0]])
    assert cells.n_bins == 2
    assert_array_equal(cells.assign(X), [1, 2, 0, 0, 1])


# Median-variance tree


def naive_median_variance(X, min_samples):
    """mathematics.md §5, literally: always split the cell with the largest variance."""
    open_cells, final = [np.arange(len(X))], []

    def largest_variance(cell):
        return np.var(X[cell], axis=0, ddof=1).max() if len(cell) > 1 else 0.0

    while open_cells:
        cell = open_cells.pop(int(np.argmax([largest_variance(cell) for cell in open_cells])))
        values = X[cell, np.argmax(X[cell].var(axis=0))]
        below = values < np.median(values)
        if min(below.sum(), (~below).sum()) >= min_samples:
            open_cells += [cell[below], cell[~below]]
        else:
            final.append(cell)
    assigned = np.empty(len(X), dtype=int)
    for number, cell in enumerate(final):
        assigned[cell] = number
    return assigned


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("min_samples", [1, 7, 30])
@pytest.mark.parametrize(("n", "n_classes"), [(2, 3), (3, 3), (101, 8)])
def test_median_variance_splits_as_its_definition(rng, n, n_classes, min_samples, dtype):
    X = rng.dirichlet(np.full(n_classes, 0.5), size=n).astype(dtype)
    tree = partition(median_variance, X, min_samples=min_samples)
    assigned = tree.assign(X)
    assert same_grouping(assigned, naive_median_variance(X.astype(float), min_samples))
    assert set(assigned) == set(range(tree.n_bins))
    assert np.bincount(assigned).min() >= min(min_samples, n)


@pytest.mark.parametrize(
    ("first", "min_samples", "expected"),
    [
        ([0.1, 0.4, 0.4, 0.4, 0.4], 1, [0, 1, 1, 1, 1]),  # equal values stay together
        ([0.4, 0.1, 0.1, 0.1, 0.1], 1, [0, 0, 0, 0, 0]),  # none lies below the median
        ([0.1, 0.2, 0.3, 0.4], 2, [0, 0, 1, 1]),
        ([0.1, 0.2, 0.3, 0.4, 0.5], 2, [0, 0, 1, 1, 1]),  # the median goes up
        ([0.1, 0.2, 0.3], 2, [0, 0, 0]),
        ([0.3, 0.3, 0.3], 1, [0, 0, 0]),
    ],
)
def test_median_variance_splits_below_the_median_and_never_ties(first, min_samples, expected):
    first = np.array(first)
    X = np.column_stack([first, (1 - first) * 0.4, (1 - first) * 0.6])
    tree = partition(median_variance, X, min_samples=min_samples)
    assert same_grouping(tree.assign(X), np.array(expected))


def test_a_cell_is_final_when_its_most_variable_class_cannot_be_split():
    # Class 0 varies most and has its median at its minimum; class 1 could be split.
    X = np.array([[0, 0.2, 0.8], [0, 0.4, 0.6], [0, 0.3, 0.7], [0.9, 0.05, 0.05]])
    assert partition(median_variance, X).n_bins == 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_median_variance_does_not_depend_on_the_order_of_the_rows(n_classes):
    """Two columns have equal variances, up to the rounding of sums; so may columns on a grid."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.multinomial(50, np.full(n_classes, 1 / n_classes), size=51) / 50
        order = rng.permutation(51)
        tree = partition(median_variance, X, min_samples=5)
        shuffled = partition(median_variance, X[order], min_samples=5)
        assert same_grouping(tree.assign(X), shuffled.assign(X))


def test_sweep_ends_when_weights_differ_by_magnitudes():
    X = np.array([[0.1], [0.2], [0.3], [0.4]])
    weight = np.array([1, 1e-7, 1.1, 1.04159265])
    bins = sweep(X, np.array([[0.0], [1], [0], [1]]), weight, n_bins=10, min_samples=1)
    assert 1 <= bins.n_bins <= 4
