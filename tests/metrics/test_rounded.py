"""Rounded probabilities are normalised where that is asked for, and only those."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skcal.datasets import make_dirichlet
from skcal.metrics import expected_calibration_error, normalize_proba


def test_rounded_rows_are_divided_by_their_sums():
    data = make_dirichlet(100, n_classes=7, model="M2", random_state=0)
    rounded = data.proba.round(2)
    with pytest.raises(ValueError, match="not 1"):
        expected_calibration_error(data.labels, rounded)
    proba = normalize_proba(rounded)
    assert_allclose(proba * rounded.sum(axis=1, keepdims=True), rounded, rtol=1e-14)
    error = expected_calibration_error(data.labels, proba)
    assert abs(error - expected_calibration_error(data.labels, data.proba)) < 0.05


def test_single_probabilities_and_what_others_check_stay():
    for values in (np.array([0.2, 0.7]), np.array([[0.5, np.nan]]), np.array([["a", "b"]])):
        assert normalize_proba(values) is values


@pytest.mark.parametrize(("row", "tolerance"), [([0.5, 0.44], 0.05), ([0.5, 0.49], 0.005)])
def test_what_is_no_rounding_is_refused_by_its_row(row, tolerance):
    with pytest.raises(
        ValueError, match=f"y_proba row 1 sums to 0.9.*Rounding explains {tolerance};"
    ):
        normalize_proba([[0.5, 0.5], row], tolerance=tolerance)
    with pytest.raises(ValueError, match=r"The .tolerance. parameter"):
        normalize_proba([[0.5, 0.5]], tolerance=1.5)
