"""Smooth, cumulative and kernel errors against other packages: python -m pytest -m peers.

relplot 1.0.3, probmetrics 1.3.0, netcal 1.4.0. ece-kde is not on the package index.
"""

from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skcal.metrics import (
    cutoff_calibration_error,
    kolmogorov_smirnov_calibration_error,
    maximum_mean_calibration_error,
    smooth_calibration_error,
)

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

KINDS = ["overconfident", "calibrated", "inner", "grid"]


def binary(kind):
    """Labels and P(positive); of "grid" a quarter is exactly 0 or 1."""
    rng = np.random.default_rng(0)
    truth = rng.beta(0.7, 0.7, size=2000)
    labels = (rng.uniform(size=2000) < truth).astype(int)
    if kind == "calibrated":
        return labels, truth
    p = truth**2 / (truth**2 + (1 - truth) ** 2)
    return labels, {"overconfident": p, "inner": 0.02 + 0.96 * p, "grid": np.round(p, 1)}[kind]


def multiclass():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(4), size=1000)
    labels = (truth.cumsum(axis=1) < rng.uniform(size=(1000, 1))).sum(axis=1)
    return labels, truth**2 / (truth**2).sum(axis=1, keepdims=True)


# relplot


def relplot_weight(p, width):
    """What relplot counts: its reflected grid has 0 and 1 themselves once, half of their mass."""
    n_steps = max(2000, round(20 / width)) // 2
    return np.minimum(1, 0.5 + 0.5 * n_steps * np.minimum(p, 1 - p))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [0.1, 0.05, 0.02, 0.01, 0.003])
def test_relplot_sums_the_smooth_error_over_200_points(width, kind):
    relplot = import_module("relplot")
    y, p = binary(kind)
    peer = relplot.metrics.smECE_sigma(p, y, sigma=width)
    weight = relplot_weight(p, width)
    error = smooth_calibration_error(y, p, bandwidth=width, sample_weight=weight)
    assert_allclose(peer, error, rtol=0.01)  # its sums count both ends of [0, 1] in full
    if kind == "inner":
        assert (weight == 1).all()
    if kind == "grid":
        assert peer > 1.08 * smooth_calibration_error(y, p, bandwidth=width)


@pytest.mark.parametrize("kind", KINDS)
def test_relplot_finds_the_self_consistent_width_to_2_to_the_minus_10(kind):
    relplot = import_module("relplot")
    y, p = binary(kind)
    peer, width = relplot.smECE(p, y, return_width=True)
    error = smooth_calibration_error(y, p, sample_weight=relplot_weight(p, width))
    # f falls by less than its width rises, so that both miss by less than a step of the search.
    assert_allclose([peer, width], error, rtol=0.01, atol=2**-10)


# probmetrics


def test_smooth_error_of_probmetrics_is_that_of_relplot_for_confidences():
    metrics = import_module("probmetrics.metrics")
    torch = import_module("torch")
    y, proba = multiclass()
    assert proba.max() < 1 - 1e-3  # and relplot's grid does not halve what lies close to 1
    metric = metrics.SmoothCalibrationError()
    peer = metric.compute_from_labels_probs(torch.as_tensor(y), torch.as_tensor(proba))
    assert_allclose(float(peer), smooth_calibration_error(y, proba), rtol=0.01, atol=2**-10)


def probmetrics_cumulative(y, p):
    """Kolmogorov-Smirnov and Kuiper errors of probmetrics."""
    metrics = import_module("probmetrics.metrics")
    torch = import_module("torch")
    two = torch.as_tensor(np.column_stack([1 - p, p]))
    both = metrics.KolmogorovSmirnovCalibrationMetric(), metrics.KuiperCalibrationMetric()
    return [float(metric.compute_from_labels_probs(torch.as_tensor(y), two)) for metric in both]


def cumulative(y, p):
    return [kolmogorov_smirnov_calibration_error(y, p), cutoff_calibration_error(y, p)]


@pytest.mark.parametrize("kind", KINDS[:3])
def test_cumulative_errors_are_those_of_probmetrics_without_ties(kind):
    y, p = binary(kind)
    assert_allclose(probmetrics_cumulative(y, p), cumulative(y, p), atol=1e-5)  # its float32 sums


def test_probmetrics_shows_the_order_of_rows_with_ties():
    y, p = np.array([1, 1, 0, 0]), np.full(4, 0.5)
    assert probmetrics_cumulative(y, p) == [0.25, 0.25]
    assert cumulative(y, p) == [0, 0]


# netcal


def test_mmce_is_that_of_netcal_for_rows_of_probabilities():
    netcal = import_module("netcal.metrics")
    y, proba = multiclass()
    peer = netcal.MMCE().measure(proba, y)
    assert_allclose(maximum_mean_calibration_error(y, proba), peer, rtol=1e-12)
    y, p = binary("overconfident")
    columns = np.column_stack([1 - p, p])
    ours = maximum_mean_calibration_error(y, columns, notion="confidence")
    assert_allclose(ours, netcal.MMCE().measure(columns, y), rtol=1e-12)


def test_mmce_of_netcal_confuses_confidence_and_p_for_one_column():
    """Its residual of p is 1[y = (p > ½)] - p, so that perfect predictions have error ½."""
    netcal = import_module("netcal.metrics")
    y = np.array([0, 0, 1, 1])
    assert netcal.MMCE().measure(y.astype(float), y) == 0.5
    assert maximum_mean_calibration_error(y, y.astype(float)) == 0
    y, p = binary("overconfident")
    residual = (y == (p > 0.5)) - p
    confused = np.sqrt(residual @ np.exp(-np.abs(p[:, None] - p) / 0.4) @ residual) / len(y)
    assert_allclose(netcal.MMCE().measure(p, y), confused, rtol=1e-12)
