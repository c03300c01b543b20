"""What CalibrationErrorEstimator must not depend on."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    PlugIn,
    Stacking,
    TemperatureScaling,
    TwoStepKernelRidge,
)
from skcal.recalibration import MatrixScaling

FUNCTIONS = {
    "binning": Binning(5),
    "density": DirichletKernelDensity(0.05),
    "kronecker": KroneckerKernelRidge(1e-3, tol=1e-13),
    "two-step": TwoStepKernelRidge(1e-3, tol=1e-13),
    "hellinger": KroneckerKernelRidge(1e-3, coordinates="square-root", gamma="median", tol=1e-13),
    "aitchison": TwoStepKernelRidge(1e-2, coordinates="log-ratio", gamma=0.01, tol=1e-13),
    "temperature": PlugIn(TemperatureScaling()),
    "matrix": PlugIn(MatrixScaling(C=0.1, structured=True, tol=1e-12)),
    "stacking": Stacking(
        [PlugIn(TemperatureScaling()), Binning(3), KroneckerKernelRidge(1e-2, tol=1e-13)],
        random_state=0,
    ),
}


# Where float32 holds the predictions, every function: tests/properties.
@pytest.mark.parametrize("notion", ["canonical", "binary"])
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_float32_predictions_give_the_float64_answer(split, notion, function):
    (P, y), (Q, z) = split(notion, 200, 80)
    P, Q = P.astype(np.float32), Q.astype(np.float32)
    single = CalibrationErrorEstimator(function, notion).fit(P, y)
    double = CalibrationErrorEstimator(function, notion).fit(P.astype(np.float64), y)
    # Only residuals are rounded to float32: 6e-8 each, amplified by at most 1 / sqrt(alpha).
    expected = double.squared_error(Q.astype(np.float64))
    assert_allclose(single.squared_error(Q), expected, rtol=1e-4, atol=1e-7)
    assert_allclose(single.score(Q, z), double.score(Q.astype(np.float64), z), rtol=1e-5)


def test_the_default_function_is_kronecker_kernel_ridge(split):
    train, test = split("canonical")
    one = CalibrationErrorEstimator(notion="canonical").fit(*train)
    other = CalibrationErrorEstimator(KroneckerKernelRidge(), notion="canonical").fit(*train)
    assert one.score(*test) == other.score(*test)


@pytest.mark.parametrize("name", ["binning", "density", "temperature", "kronecker"])
def test_a_lens_whose_group_holds_all_the_mass_is_still_a_probability(name):
    P = np.array([[0.20, 0.40, 0.17, 0.23], [0.1, 0.2, 0.4, 0.3], [0.4, 0.2, 0.2, 0.2]])
    assert sum(P[0]) > 1  # by one rounding
    y = np.array([1, 0, 3])

    def unlikely(proba):
        return (proba < 0.15).astype(int)

    estimator = CalibrationErrorEstimator(FUNCTIONS[name], unlikely).fit(P, y)
    assert np.isfinite(estimator.predict(P)).all()
    assert np.isfinite(estimator.score(P, y))


@pytest.mark.parametrize("name", ["binning", "density", "temperature", "kronecker"])
def test_a_lens_may_leave_its_last_group_empty_in_evaluation(split, name):
    (P, y), (Q, z) = split("canonical")

    def unlikely(proba):
        return (proba < 0.05).astype(int)

    without = (Q >= 0.05).all(axis=1)
    assert np.count_nonzero(without) >= 5
    estimator = CalibrationErrorEstimator(FUNCTIONS[name], unlikely).fit(P, y)
    # A sample's own estimate does not depend on the samples beside it.
    assert_allclose(estimator.predict(Q[without]), estimator.predict(Q)[without], rtol=1e-9)
    assert np.isfinite(estimator.score(Q[without], z[without]))
