"""Binned metrics refuse what they cannot read: the message names the argument and the remedy."""

import numpy as np
import pytest

from skcal.metrics import calibration_bins, expected_calibration_error, maximum_calibration_error

P, TWO = np.array([0.1, 0.4, 0.6, 0.8]), np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.5, 0.5]])
METRICS = [expected_calibration_error, maximum_calibration_error, calibration_bins]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("y", "proba", "options", "match"),
    [
        ([0, 1, 0, 1], P, {"strategy": "median-variance"}, "^strategy='median-var.* fit 1 feature"),
        (
            [0, 1, 0, 1],
            TWO,
            {"notion": "canonical", "strategy": "sweep"},
            "^strategy='sweep' .* 2 f",
        ),
        ([0, 1, 0, 1], P, {"notion": "marginal"}, "^notion='marginal' is unknown. Use one of"),
        ([], [], {}, "0 sample"),
    ],
)
def test_errors_name_the_argument_and_the_remedy(metric, y, proba, options, match):
    with pytest.raises(ValueError, match=match):
        metric(y, proba, **options)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"debias": True}, "^debias=True is for norm=2, the squared error, not 1"),
        ({"debias": "labels", "norm": np.inf}, "^debias='labels' is for norm=2, .* not inf"),
        (
            {"debias": True, "norm": 2, "distance": "cityblock"},
            "debias=True .*'euclidean', not 'cit",
        ),
        ({"norm": 51}, "^norm is 51: powers of small gaps vanish. Pass numpy.inf"),
    ],
)
def test_options_that_do_not_go_together_raise(options, match):
    with pytest.raises(ValueError, match=match):
        expected_calibration_error([0, 1, 0, 1], TWO, notion="canonical", **options)


def test_no_bin_with_enough_samples_raises():
    match = "^min_bin_samples=5: .* 2.* Lower min_bin_samples or n_bins"
    with pytest.raises(ValueError, match=match):
        maximum_calibration_error([0, 1, 0, 1], P, n_bins=2, min_bin_samples=5)
    with pytest.raises(ValueError, match=r"'min_bin_samples' parameter .* Got 0"):
        maximum_calibration_error([0, 1, 0, 1], P, min_bin_samples=0)
