"""Confidence sequences solve their equation, and hold at all times."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skcal.monitoring.evidence import boundary, lower_bound

RATES = 0.9 * 0.5 ** np.arange(16.0)


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
def test_at_the_boundary_the_mixture_is_1_over_alpha(alpha):
    variance = np.array([0.0, 0.3, 10, 1e4, 1e8])
    psi = -np.log(1 - RATES) - RATES
    exponents = RATES * boundary(variance, alpha)[:, None] - psi * variance[:, None]
    assert_allclose(np.exp(exponents).mean(axis=1), 1 / alpha, rtol=1e-6)


def test_the_supermartingale_has_a_mean_of_at_most_1_for_every_law_of_two_points():
    """Terms ≥ -1 of mean m: -1 ≤ low < high, the probabilities following from m."""
    for low in (-1.0, -0.5, -0.01):
        for high in (0.01, 0.5, 3.0):
            for m in np.linspace(low, high, 7):
                p = (m - low) / (high - low)
                for rate in RATES:
                    psi = -np.log(1 - rate) - rate
                    values = [np.exp(rate * (t - m) - psi * t**2) for t in (low, high)]
                    assert (1 - p) * values[0] + p * values[1] <= 1 + 1e-12


def test_bounds_scale_with_their_terms():
    bound = lower_bound(3.0, 2.0, 40, 0.05, 1.0)
    assert_allclose(lower_bound(0.3, 0.02, 40, 0.05, 0.1), bound / 10)
    assert lower_bound(0.0, 0.0, 0, 0.05) == -np.inf
