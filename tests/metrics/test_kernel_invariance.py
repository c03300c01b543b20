"""What does not change the squared kernel calibration error, and what is refused."""

from functools import partial

import numpy as np
import pytest
from naive_kernel import METHODS, NOTIONS, draw, polynomial
from numpy.testing import assert_allclose
from sklearn import config_context

from skcal.datasets import make_dirichlet
from skcal.metrics import squared_kernel_calibration_error


@pytest.mark.parametrize("kernel", ["laplacian", "rbf", polynomial])
@pytest.mark.parametrize("notion", NOTIONS)
def test_order_of_the_rows_does_not_matter_without_blocks(notion, kernel):
    y, proba = draw(notion)
    order = np.random.default_rng(4).permutation(len(y))
    for method in ("unbiased", "biased"):
        metric = partial(
            squared_kernel_calibration_error, notion=notion, kernel=kernel, method=method
        )
        assert_allclose(metric(y[order], proba[order]), metric(y, proba), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize("notion", [n for n in NOTIONS if isinstance(n, str) and n != "binary"])
def test_classes_may_be_renamed_with_their_columns(notion, options):
    y, proba = draw(notion)
    order, names = np.array([2, 0, 1]), np.array(["b", "c", "a"])
    metric = partial(squared_kernel_calibration_error, notion=notion, **options)
    renamed = metric(names[y], proba[:, order], labels=names[order])
    assert_allclose(renamed, metric(y, proba), rtol=1e-9)


@pytest.mark.parametrize("options", METHODS)
def test_two_columns_are_two_binary_problems(options):
    y, p = draw("binary")
    metric = partial(squared_kernel_calibration_error, **options)
    two, expected = np.column_stack([1 - p, p]), metric(y, p)
    assert metric(y, two, notion="binary") == expected
    assert metric(y, p, notion="canonical") == expected
    for notion in ("canonical", "classwise"):
        assert_allclose(metric(y, two, notion=notion), 2 * expected, rtol=1e-9)


@pytest.mark.parametrize("options", METHODS)
def test_weight_0_removes_a_row_and_the_scale_of_weights_does_not_matter(options):
    y, proba = draw("canonical")
    metric = partial(squared_kernel_calibration_error, notion="canonical", **options)
    keep = np.random.default_rng(1).uniform(size=len(y)) < 0.7
    assert_allclose(metric(y, proba, sample_weight=keep * 0.3), metric(y[keep], proba[keep]))


def test_weight_2_is_not_a_repeated_row():
    """Copies would form pairs; among all pairs they may."""
    y, proba = draw("canonical", 12)
    times = np.random.default_rng(1).integers(1, 4, 12)
    metric = partial(squared_kernel_calibration_error, notion="canonical", bandwidth=0.5)
    rows = np.repeat(np.arange(12), times)
    weighted, repeated = metric(y, proba, sample_weight=times), metric(y[rows], proba[rows])
    assert abs(weighted - repeated) > 0.01
    metric = partial(metric, method="biased")
    assert_allclose(metric(y, proba, sample_weight=times), metric(y[rows], proba[rows]))


@pytest.mark.parametrize("kernel", ["laplacian", "rbf", polynomial])
@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize("notion", NOTIONS)
def test_single_precision_changes_no_more_than_its_rounding(notion, options, kernel):
    y, proba = draw(notion)
    proba = proba.astype(np.float32)
    metric = partial(squared_kernel_calibration_error, notion=notion, kernel=kernel, **options)
    assert_allclose(metric(y, proba), metric(y, proba.astype(np.float64)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kernel", ["laplacian", "rbf", polynomial])
@pytest.mark.parametrize("notion", ["canonical", "confidence"])
@pytest.mark.parametrize("method", ["unbiased", "biased", "block"])
def test_blocks_in_memory_do_not_change_the_error(method, notion, kernel):
    data = make_dirichlet(300, n_classes=3, model="M2", random_state=0)
    metric = partial(
        squared_kernel_calibration_error, data.labels, data.proba, notion=notion, kernel=kernel
    )
    options = {"method": method, "block_size": 120 if method == "block" else None}
    whole = metric(**options)
    with config_context(working_memory=0.05):  # MiB: blocks of some 10 rows
        assert_allclose(metric(**options), whole, rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"sample_weight": [1, 0, 0]}, r"1 sample\(s\) of positive weight"),
        ({"method": "linear", "sample_weight": [1, 0, 0]}, r"1 sample\(s\) of positive weight"),
        ({"method": "block", "block_size": 4}, r"3 sample\(s\) of positive weight"),
        ({"method": "block", "block_size": 1}, "'block_size'"),
        ({"method": "quadratic"}, "'method'"),
        ({"kernel": "linear"}, "'kernel'"),
        ({"bandwidth": 0}, "'bandwidth'"),
        ({"bandwidth": "mean"}, "'bandwidth'"),
        ({"average": "weighted"}, "'average'"),
        ({"kernel": lambda X, Z: np.ones(len(X))}, "The kernel returned shape"),
    ],
)
def test_what_is_no_error_is_refused(options, match):
    with pytest.raises(ValueError, match=match):
        squared_kernel_calibration_error([0, 1, 1], [0.2, 0.7, 0.4], **options)
