"""The squared kernel calibration error against a double loop and known truths."""

from functools import cache, partial

import numpy as np
import pytest
from naive_kernel import METHODS, NOTIONS, draw, first_or_other, naive_skce, naive_sum, polynomial
from numpy.testing import assert_allclose
from used import used

from skcal.datasets import make_dirichlet
from skcal.metrics import kernel_density_calibration_error, squared_kernel_calibration_error
from skcal.notions import make_problems


@pytest.mark.parametrize(
    ("kernel", "weighted"), [("laplacian", True), ("rbf", True), (polynomial, False)]
)
@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize("notion", NOTIONS)
def test_skce_is_the_mean_over_pairs(notion, options, kernel, weighted):
    y, proba = draw(notion, 20)
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    one_problem = partial(naive_skce, kernel=kernel, width="median", **options)
    expected = naive_sum(y, proba, notion, one_problem, weight)
    error = squared_kernel_calibration_error(
        y, proba, notion=notion, kernel=kernel, sample_weight=weight, **options
    )
    assert_allclose(error, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("kernel", ["laplacian", polynomial])
@pytest.mark.parametrize("notion", ["binary", "canonical"])
@pytest.mark.parametrize("block_size", [2, 15, 17, 46])
def test_incomplete_last_blocks_are_left_out(block_size, notion, kernel):
    """Small and large blocks take two ways through the code."""
    y, proba = draw(notion)
    options = {"method": "block", "block_size": block_size}
    [(x, residuals, *_)] = make_problems(proba, y, notion)
    expected = naive_skce(x, residuals, kernel, 0.3, **options)
    shape = used(squared_kernel_calibration_error, kernel=kernel, bandwidth=0.3)
    metric = partial(squared_kernel_calibration_error, notion=notion, **shape)
    assert_allclose(metric(y, proba, **options), expected, rtol=1e-10, atol=1e-14)
    kept = len(y) // block_size * block_size
    changed = np.where(np.arange(len(y)) < kept, y, 1 - np.minimum(y, 1))
    assert metric(changed, proba, **options) == metric(y, proba, **options)
    if block_size == 46:
        assert_allclose(metric(y, proba, **options), metric(y, proba), rtol=1e-12)


@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize("notion", ["canonical", "top-2", first_or_other, "confidence"])
def test_class_kernels_weigh_pairs_of_classes(notion, options):
    y, proba = draw(notion, 23)
    m = {"canonical": 3, "top-2": 3, "confidence": 1}.get(notion, 2)
    root = np.random.default_rng(3).normal(size=(m, m))
    metric = partial(squared_kernel_calibration_error, y, proba, notion=notion, **options)
    [(x, residuals, *_)] = make_problems(proba, y, notion)
    for A in (root @ root.T, np.outer(root[0], root[0])):
        expected = naive_skce(x, residuals, "laplacian", "median", A=A, **options)
        assert_allclose(metric(class_kernel=A), expected, rtol=1e-9, atol=1e-14)
    assert_allclose(metric(class_kernel=np.eye(m)), metric(), rtol=1e-12)


@pytest.mark.parametrize(
    ("class_kernel", "match"),
    [
        (np.eye(2), r"class_kernel has shape \(2, 2\); .*\(3, 3\)"),
        (np.triu(np.ones((3, 3))), "symmetric"),
        (np.diag([1, 1, -1e-3]), "semidefinite: its smallest eigenvalue is -0.001"),
        (-np.eye(3), "not positive semidefinite"),
        (np.full((3, 3), np.nan), "class_kernel contains NaN"),
        (np.ones(3), "class_kernel|2D"),
        ("identity", "class_kernel"),
    ],
)
def test_class_kernels_that_are_none_are_refused(class_kernel, match):
    y, proba = draw("canonical")
    with pytest.raises(ValueError, match=match):
        squared_kernel_calibration_error(y, proba, notion="canonical", class_kernel=class_kernel)


@pytest.mark.parametrize(
    "metric",
    [
        kernel_density_calibration_error,
        *(
            partial(squared_kernel_calibration_error, method=m)
            for m in ("unbiased", "linear", "block")
        ),
    ],
)
def test_a_class_predicted_once_adds_nothing(metric):
    y, proba = draw("top-label")
    proba = proba[:, :2] / proba[:, :2].sum(axis=1, keepdims=True)
    proba = np.column_stack([proba, np.zeros(len(proba))])
    proba[0] = [0, 0, 1]
    metric = partial(metric, notion="top-label")
    each = metric(y, proba, average=None)
    share = np.bincount(proba.argmax(axis=1)) / len(y)
    assert np.isnan(each[2])
    assert_allclose(metric(y, proba), share[:2] @ each[:2], rtol=1e-12)
    assert_allclose(metric(y, proba, average="macro"), each[:2].mean(), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"sample_weight": [1, 0, 0]}, r"1 sample\(s\) of positive weight"),
        ({"method": "linear", "sample_weight": [1, 0, 0]}, r"1 sample\(s\) of positive weight"),
        ({"method": "block", "block_size": 4}, r"3 sample\(s\) of positive weight"),
        ({"method": "block", "block_size": 1}, "'block_size'"),
        ({"bandwidth": 0}, "'bandwidth'"),
        ({"kernel": lambda X, Z: np.ones(len(X))}, "The kernel returned shape"),
    ],
)
def test_what_is_no_error_is_refused(options, match):
    with pytest.raises(ValueError, match=match):
        squared_kernel_calibration_error([0, 1, 1], [0.2, 0.7, 0.4], **options)


# The incomplete U-statistic


OPTIONS = {"notion": "canonical", "bandwidth": 0.5}


def skce(data, **options):
    return squared_kernel_calibration_error(data.labels, data.proba, **OPTIONS | options)


incomplete = partial(skce, method="incomplete", return_standard_error=True)


@cache
def dirichlet(seed, n=300, model="M2"):
    noise = {"M1": {}, "M2": {"noise": 0.3}}[model]
    return make_dirichlet(n, n_classes=3, model=model, random_state=seed, **noise)


@pytest.mark.parametrize("n", [2, 3, 51])  # of an even number, half a shift would be missing
@pytest.mark.parametrize("weighted", [False, True])
def test_all_pairs_give_the_unbiased_estimate(n, weighted):
    data = dirichlet(0, n)
    weight = np.random.default_rng(0).uniform(0.5, 2, n) if weighted else None
    value, _ = incomplete(data, n_pairs=10**9, sample_weight=weight)
    assert_allclose(value, skce(data, sample_weight=weight), rtol=1e-10)


def test_it_is_the_mean_over_cyclic_pairs_of_shuffled_samples():
    data = dirichlet(1, 40)
    order = np.random.RandomState(5).permutation(40)
    p, delta = data.proba[order], (np.eye(3)[data.labels] - data.proba)[order]
    h = np.exp(-0.5 * np.abs(p[:, None] - p).sum(axis=2) / 0.5) * (delta @ delta.T)
    pairs = [(i, (i + s) % 40) for s in (1, 2, 3) for i in range(40)]
    terms = np.array([h[pair] for pair in pairs])
    t = terms - terms.mean()
    sums = np.zeros(40)
    for (i, j), deviation in zip(pairs, t, strict=True):
        sums[i] += deviation
        sums[j] += deviation
    variance = max(sums @ sums - t @ t, t @ t) / 120**2
    value, standard_error = incomplete(data, n_pairs=101, random_state=5)
    assert_allclose(value, terms.mean(), rtol=1e-12)
    assert_allclose(standard_error, np.sqrt(variance), rtol=1e-10)


@pytest.mark.parametrize(
    ("model", "n_pairs"), [pytest.param("M1", 2400, marks=pytest.mark.slow), ("M2", 120)]
)
def test_the_standard_error_is_the_spread_over_data_sets(model, n_pairs):
    estimates = np.array(
        [incomplete(dirichlet(s, 120, model), n_pairs=n_pairs, random_state=s) for s in range(200)]
    )
    ratio = np.mean(estimates[:, 1] ** 2) / np.var(estimates[:, 0], ddof=1)
    # The variance of 200 draws has a standard error of 10 %: outside with probability 3e-3; the
    # floor at independent pairs errs to the safe side.
    assert 0.7 < ratio < 1.6


def test_samples_of_weight_0_have_no_influence():
    data = dirichlet(3, 31)
    weight = np.ones(31)
    weight[:20] = 0
    value, _ = incomplete(data, n_pairs=10**9, sample_weight=weight)
    full = squared_kernel_calibration_error(data.labels[20:], data.proba[20:], **OPTIONS)
    assert_allclose(value, full, rtol=1e-10)


@pytest.mark.parametrize("options", [{"method": "unbiased"}, {"notion": "classwise"}])
def test_other_methods_and_several_problems_have_no_standard_error(options):
    with pytest.raises(ValueError, match="return_standard_error needs method='incomplete'"):
        incomplete(dirichlet(4, 30), **options)
