"""E-values of many streams."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import false_discovery_control

from skcal.monitoring import e_benjamini_hochberg, merge_e_values


def test_merging_is_a_mean_or_a_product():
    values = [3.0, 0.5, 4.0]
    assert merge_e_values(values) == 2.5
    assert merge_e_values(values, sample_weight=[0, 1, 1]) == 2.25
    assert merge_e_values(values, independent=True) == pytest.approx(6)
    assert merge_e_values([1e200] * 3, independent=True) == np.inf


def test_infinite_and_zero_evidence():
    assert (
        merge_e_values([0.0, np.inf]) == merge_e_values([0.0, np.inf], independent=True) == np.inf
    )
    assert merge_e_values([0.0, np.inf], sample_weight=[1, 0]) == 0
    assert merge_e_values([0.0, 5.0], independent=True) == 0
    assert_array_equal(e_benjamini_hochberg([np.inf, 0.0]), [True, False])


def test_e_bh_is_bh_of_the_reciprocals(rng):
    for _ in range(50):
        e_values = np.exp(rng.normal(1, 3, 20))
        expected = false_discovery_control(np.minimum(1, 1 / e_values)) <= 0.1
        assert_array_equal(e_benjamini_hochberg(e_values, alpha=0.1), expected)


@pytest.mark.parametrize(
    ("e_values", "message"),
    [
        ([1.0, -1.0], "e_values row 1 is -1, not a number ≥ 0"),
        ([np.nan], "e_values row 0 is nan"),
        ([], "Pass one e-value a stream"),
        ([[1.0]], r"has shape \(1, 1\)"),
    ],
)
def test_what_is_no_e_value_is_refused(e_values, message):
    for function in (merge_e_values, e_benjamini_hochberg):
        with pytest.raises(ValueError, match=message):
            function(e_values)


def test_products_have_no_weights():
    with pytest.raises(ValueError, match="Leave it out of a product"):
        merge_e_values([1.0, 2.0], independent=True, sample_weight=[1, 1])
