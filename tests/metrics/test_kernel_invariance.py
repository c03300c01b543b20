"""What does not change the squared kernel calibration error, and what is refused."""

from functools import partial

import numpy as np
import pytest
from naive_kernel import polynomial
from numpy.testing import assert_allclose
from sklearn import config_context

from skcal.datasets import make_dirichlet
from skcal.metrics import squared_kernel_calibration_error


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
