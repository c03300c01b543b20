"""What a call no longer needs is freed at its end, not when cycles of references are collected."""

import gc
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

import skcal
from skcal import Sample, metrics
from skcal.functions import BilinearFunction
from skcal.recalibration.base import RecalibrationMap

N_SAMPLES = 5000  # an array of it is larger than what older versions of scipy keep
SCALAR_ONLY = {
    "BayesianCalibration",
    "BetaCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "PlattScaling",
    "QuadraticScaling",
    "SplineScaling",
    "VennAbers",
}


def sample():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), N_SAMPLES)
    return (rng.random((N_SAMPLES, 1)) > P.cumsum(axis=1)).sum(axis=1), P


def bytes_in_cycles(work):
    """Return what a collection frees after a second call, its result being kept."""
    work()
    gc.disable()
    gc.freeze()  # what is there already is not looked at
    tracemalloc.start()
    try:
        result = work()  # noqa: F841
        before = tracemalloc.get_traced_memory()[0]
        gc.collect()
        return before - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.unfreeze()
        gc.enable()


DEFAULTS = {
    "PlugIn": skcal.PlugIn(skcal.TemperatureScaling(), target="outcome"),
    "Stacking": skcal.Stacking(
        [skcal.PlugIn(skcal.TemperatureScaling()), skcal.TwoStepKernelRidge()], cv=2
    ),
}
ESTIMATORS = {
    name: DEFAULTS[name] if name in DEFAULTS else thing()
    for name, thing in vars(skcal).items()
    if isinstance(thing, type)
    and issubclass(thing, BilinearFunction | RecalibrationMap)
    and name != "BilinearFunction"
}


@pytest.mark.parametrize("scalar", [True, False])
@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_a_fit_leaves_no_arrays_to_the_collector(name, scalar):
    if name in SCALAR_ONLY and not scalar:
        pytest.skip("of a single probability")
    y, P = sample()
    outcomes = np.eye(3)[y]
    if scalar:
        P, outcomes, y = P[:, :1], outcomes[:, :1], y == 0
    estimator = ESTIMATORS[name]
    target = outcomes - P if isinstance(estimator, BilinearFunction) else y
    assert bytes_in_cycles(lambda: clone(estimator).fit(P, target)) < 8 * N_SAMPLES


@pytest.mark.parametrize(
    "metric",
    [
        metrics.cox_recalibration,
        metrics.expected_calibration_error,
        metrics.kernel_density_calibration_error,
        metrics.smooth_calibration_error,
        metrics.squared_kernel_calibration_error,
    ],
)
def test_a_metric_leaves_no_arrays_to_the_collector(metric):
    y, P = sample()
    assert bytes_in_cycles(lambda: metric(y == 0, P[:, 0])) < 8 * N_SAMPLES


def ask_everything(sample):
    """Ask a Sample all that it remembers."""
    skcal.calibration_error(sample)
    skcal.calibration_error_interval(sample)
    skcal.equivalence_test(sample, limit=0.3)
    if str(sample.notion) == "binary":
        skcal.calibration_report(sample, n_resamples=19, random_state=0)


@pytest.mark.parametrize("notion", ["binary", "classwise"])
def test_a_sample_remembers_numbers_and_no_rows(notion, few_draws):
    def read(n_samples):
        rng = np.random.default_rng(1)
        P = rng.dirichlet(np.ones(3), n_samples)
        labels = (rng.random((n_samples, 1)) > P.cumsum(axis=1)).sum(axis=1)
        if notion == "binary":
            return Sample(labels == 0, P[:, 0])
        return Sample(labels, P, notion=notion)

    ask_everything(read(300))  # what functions remember, once
    n = 10_000
    sample = read(n)
    tracemalloc.start()
    try:
        ask_everything(sample)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 8 * n, held  # no array of one number a row
