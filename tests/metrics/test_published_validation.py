"""Numbers that packages for clinical validation print, of data that their manuals simulate."""

import functools

import numpy as np
from numpy.testing import assert_allclose
from r_random import RRandom
from scipy.special import expit, logit
from scipy.stats import beta

from skcal.metrics import cox_recalibration, flexible_calibration_curve, validation_measures


@functools.cache
def calibration_curves():
    """Test data of R's CalibrationCurves (help of traindata), predicted by its vignette's glm."""
    random = RRandom(1782)
    for n_samples in (1000, 500):  # of training and of test
        X = random.normal(4 * n_samples).reshape(4, n_samples).T
        y = random.bernoulli(expit(0.1 + X @ [0.5, 1.2, -0.75, 0.8]))
    # R 4.2.2, coef(glm(y ~ ., data = traindata, family = binomial)).
    coefficients = [0.6058457605, 1.3803507889, -0.7510904859, 0.8275730169]
    return y, expit(0.0891522112 + X @ coefficients)


@functools.cache
def pmcalibration():
    """Data of the vignette of R's pmcalibration on external validation."""
    random = RRandom(2345)
    one, two = random.normal(1000), random.normal(1000)
    y = random.bernoulli(expit(-3 + one + two + 0.3 * one * two))
    return y, expit(-3 + one + two)


@functools.cache
def rms_help():
    """Data of the example of R's rms::val.prob."""
    random = RRandom(1)
    X = random.uniform(600).reshape(3, 200)
    y = (random.uniform(200) <= expit(2 * (X[0] - 0.5))).astype(int)
    # rms 6.5-0, coef(lrm(y ~ x1 + x2 + x3, subset = 1:100)).
    coefficients = [1.994407545216, -0.445840350371, -0.833518584188]
    return y[100:], expit(-0.462723773664 + coefficients @ X[:, 100:])


@functools.cache
def measures(data, **options):
    return validation_measures(*data(), n_resamples=None, **options).measures


def test_r_draws_the_same_numbers():
    # The first rows of head(dat) in the vignette.
    assert_allclose(RRandom(2345).normal(2), [-1.19142464, 0.54930055], atol=5e-9)
    # set.seed(1); runif(3)
    assert_allclose(RRandom(1).uniform(3), [0.2655087, 0.3721239, 0.5728534], atol=5e-8)


def test_intercept_and_slope_are_those_of_pmcalibration():
    found = measures(pmcalibration)
    # The vignette: -0.044 (0.12) [-0.29, 0.19] and 1.336 (0.13) [1.10, 1.60], profile intervals;
    # here R's digits by glm and confint.
    assert_allclose(found["intercept_in_the_large"], [-0.0439528, -0.2928634, 0.1925419], atol=2e-5)
    assert_allclose(found["slope"], [1.3363884, 1.0957814, 1.6003566], atol=2e-5)


def test_measures_are_those_of_val_prob():
    y, p = calibration_curves()
    found = {name: value.estimate for name, value in measures(calibration_curves).items()}
    # R 4.2.2 with rms 6.5-0, val.prob(p, y); pROC 1.18.0, ci.auc; glm with an offset.
    assert_allclose(found["brier_score"], 0.17703339473, atol=1e-9)
    assert_allclose(found["slope"], 0.82278297045, atol=1e-7)
    assert_allclose(cox_recalibration(y, p).intercept, 0.20751823257, atol=1e-7)
    assert_allclose(found["intercept_in_the_large"], 0.22404680490, atol=1e-7)
    low, high = 0.7772551, 0.8512796  # DeLong's interval, of which this is the middle
    assert_allclose(found["c_statistic"], (low + high) / 2, atol=1e-7)
    y, p = rms_help()
    found = {name: value.estimate for name, value in measures(rms_help).items()}
    assert_allclose(found["c_statistic"], 0.66026410564, atol=1e-9)
    assert_allclose(found["brier_score"], 0.23189634632, atol=1e-9)
    assert_allclose(found["slope"], 0.95651781295, atol=1e-5)
    assert_allclose(cox_recalibration(y, p).intercept, 0.05228721395, atol=1e-5)


def test_standard_errors_of_the_c_statistic_are_those_of_proc():
    area, low, high = measures(calibration_curves)["c_statistic"]
    half = (logit(high) - logit(low)) / 2 * area * (1 - area)
    assert_allclose(half, (0.8512796 - 0.7772551) / 2, atol=1e-7)


def test_loess_is_that_of_r():
    y, p = calibration_curves()
    curve = flexible_calibration_curve(y, p, method="loess", at=[0.1, 0.3, 0.5, 0.7, 0.9])
    # loess(y ~ p, control = loess.control(surface = "direct")).
    expected = [0.15420326034, 0.38228296874, 0.58105993572, 0.69958571030, 0.88196438776]
    assert_allclose(curve.frequency, expected, atol=1e-9)
    found = measures(calibration_curves, method="loess")
    assert_allclose(found["ici"].estimate, 0.04777023177, atol=1e-7)
    assert_allclose(found["emax"].estimate, 0.1024193183, atol=1e-7)
    # Quantiles of R are interpolated.
    assert_allclose(found["e50"].estimate, 0.0499016037, atol=1e-4)
    assert_allclose(found["e90"].estimate, 0.09074441446, atol=1e-4)


def test_other_smoothers_of_r_differ_in_the_third_digit():
    """Loess between vertices, as R's default, and restricted cubic splines with the same knots."""
    found = measures(calibration_curves)
    assert_allclose(found["ici"].estimate, 0.04915855388, atol=1e-4)  # lrm(y ~ rcs(logit(p), 5))
    assert_allclose(found["emax"].estimate, 0.09710544807, atol=5e-3)
    loess = measures(calibration_curves, method="loess")
    assert_allclose(loess["ici"].estimate, 0.04747447817, atol=5e-4)
    assert_allclose(loess["emax"].estimate, 0.09659830391, atol=7e-3)


def test_cox_recalibration_is_that_of_calzone():
    rng = np.random.RandomState(123)  # as simulated_welldata.csv was made
    p = beta.rvs(0.5, 0.5, size=5000, random_state=rng)
    y = rng.binomial(1, p)
    found = cox_recalibration(y, p)
    # calzone 0.1, documentation of Cox analysis; its intervals are Wald's.
    assert_allclose(found.slope, 0.9942499557748269, atol=1e-10)
    assert_allclose(found.intercept, -0.04497652296600376, atol=1e-10)
    assert_allclose(
        found.slope + 1.959964 * found.slope_standard_error * np.array([-1, 1]),
        [0.9372902801721911, 1.0512096313774626],
        atol=1e-6,
    )
    assert_allclose(
        found.intercept + 1.959964 * found.intercept_standard_error * np.array([-1, 1]),
        [-0.12348577118577644, 0.03353272525376893],
        atol=1e-6,
    )
