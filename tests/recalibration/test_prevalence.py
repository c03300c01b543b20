"""Adjusted probabilities and estimated prevalences against closed forms and truths."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning

from skcal.metrics import calibration_intercept, calibration_slope
from skcal.recalibration import adjust_prevalence, estimate_prevalence

OLD, NEW = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])


def draw(prevalence, n, seed=0, distance=1.0, old=0.5):
    """Labels, and what is calibrated where the positive class has prevalence ``old``."""
    rng = np.random.default_rng([seed, n])
    y = (rng.random(n) < prevalence).astype(int)
    z = rng.normal(np.where(y, 1, -1) * distance)
    return y, expit(2 * distance * z + logit(old))


def test_logits_of_single_probabilities_are_shifted():
    p = np.linspace(0.01, 0.99, 50)
    adjusted = adjust_prevalence(p, prevalence=0.3, new_prevalence=0.05)
    assert_allclose(logit(adjusted), logit(p) + logit(0.05) - logit(0.3), rtol=1e-12)
    two = adjust_prevalence(
        np.column_stack([1 - p, p]), prevalence=[0.7, 0.3], new_prevalence=[0.95, 0.05]
    )
    assert_allclose(two[:, 1], adjusted, rtol=1e-12)
    pairs = adjust_prevalence(p, prevalence=[0.7, 0.3], new_prevalence=[0.95, 0.05])
    assert_allclose(pairs, adjusted, rtol=1e-12)


def test_adjusting_is_bayes_rule_and_has_an_inverse():
    rng = np.random.default_rng(0)
    likelihood = rng.random((40, 3))
    old, new = (likelihood * share for share in (OLD, NEW))
    old, new = (one / one.sum(axis=1, keepdims=True) for one in (old, new))
    adjusted = adjust_prevalence(old, prevalence=OLD, new_prevalence=NEW)
    assert_allclose(adjusted, new, rtol=1e-12)
    assert_allclose(adjust_prevalence(adjusted, prevalence=NEW, new_prevalence=OLD), old)
    assert_allclose(adjust_prevalence(old, prevalence=OLD, new_prevalence=OLD), old)


def test_certain_predictions_stay_and_small_ones_keep_their_digits():
    p = np.array([0.0, 1e-300, 1e-20, 1.0])
    adjusted = adjust_prevalence(p, prevalence=0.2, new_prevalence=0.5)
    assert_allclose(adjusted, [0, 4e-300, 4e-20, 1], rtol=1e-12)
    corners = adjust_prevalence(np.eye(3), prevalence=OLD, new_prevalence=NEW)
    assert_allclose(corners, np.eye(3))
    gone = adjust_prevalence([[0.25, 0.25, 0.5]], prevalence=OLD, new_prevalence=[0.5, 0.5, 0])
    assert gone[0, 2] == 0
    assert_allclose(gone[0, 1] / gone[0, 0], 0.5 / 0.3)


def test_adjusted_predictions_are_calibrated_where_the_base_rate_differs():
    y, p = draw(0.05, 200_000)
    assert calibration_intercept(y, p) < -2.5
    adjusted = adjust_prevalence(p, prevalence=0.5, new_prevalence=0.05)
    # Standard errors are 0.014 and 0.010.
    assert abs(calibration_intercept(y, adjusted)) < 0.06
    assert abs(calibration_slope(y, adjusted) - 1) < 0.05


def test_estimates_are_the_maximum_of_the_likelihood():
    _, p = draw(0.2, 3000)
    found = estimate_prevalence(p, prevalence=0.5)
    shares = np.linspace(found - 0.01, found + 0.01, 41)
    likelihood = np.log(2 * np.outer(1 - shares, 1 - p) + 2 * np.outer(shares, p)).sum(axis=1)
    assert likelihood.argmax() == 20
    assert_allclose(adjust_prevalence(p, prevalence=0.5, new_prevalence=found).mean(), found)
    weighted = estimate_prevalence(p, prevalence=0.5, sample_weight=np.arange(3000) % 3)
    repeated = estimate_prevalence(p.repeat(np.arange(3000) % 3), prevalence=0.5)
    assert_allclose(weighted, repeated, atol=1e-6)


def test_estimates_of_several_classes_find_the_truth():
    rng = np.random.default_rng(0)
    y = rng.choice(3, 20_000, p=NEW)
    x = rng.normal(size=(20_000, 3)) + 2 * np.eye(3)[y]
    proba = OLD * np.exp(2 * x)  # the common part of the normal densities drops out
    proba /= proba.sum(axis=1, keepdims=True)
    found = estimate_prevalence(proba, prevalence=OLD)
    assert_allclose(found.sum(), 1)
    assert_allclose(found, NEW, atol=0.02)


def test_refusals_say_what_to_do():
    p = [0.2, 0.5]
    with pytest.raises(ValueError, match=r"prevalence has shape \(3,\). Pass one number"):
        adjust_prevalence(p, prevalence=OLD, new_prevalence=0.1)
    with pytest.raises(ValueError, match="new_prevalence holds no shares that sum to 1"):
        adjust_prevalence(p, prevalence=0.5, new_prevalence=1.5)
    with pytest.raises(ValueError, match="prevalence is 0 for class 1"):
        adjust_prevalence(p, prevalence=0.0, new_prevalence=0.1)
    with pytest.raises(ValueError, match=r"y_proba row 1 .* new prevalence 0"):
        adjust_prevalence([0.5, 0.0], prevalence=0.5, new_prevalence=1.0)
    with pytest.raises(ValueError, match="class of share 0"):
        estimate_prevalence(p, prevalence=1.0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        estimate_prevalence(p, prevalence=0.1, max_iter=1)


def test_an_optimum_at_the_boundary_is_said_to_be_one(rng):
    y = rng.random(3000) < 0.18
    p = expit(0.6 * rng.normal(np.where(y, 1, -1)) - 2.4)  # too low at a prevalence of .23
    with pytest.warns(UserWarning, match="highest where class 1 is absent"):
        assert estimate_prevalence(p, prevalence=0.23) == 0
    several = np.column_stack([1 - p, 0.7 * p, 0.3 * p])
    with pytest.warns(UserWarning, match="is absent"):
        shares = estimate_prevalence(several, prevalence=[0.77, 0.161, 0.069])
    assert_allclose(shares.sum(), 1)
