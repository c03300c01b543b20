"""One display of each kind, for what all of them promise."""

import functools
import warnings

import numpy as np

from skcal import CalibrationErrorSearchCV, TemperatureScaling, TwoStepKernelRidge, Zero, displays
from skcal.datasets import make_tempered
from skcal.functions import Binning, PlugIn
from skcal.hypothesis_tests import bias_curve, monte_carlo_test, segment_test
from skcal.monitoring import CalibrationMonitor


def binary(n_samples, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.beta(0.6, 0.6, n_samples)
    truth = proba**1.5 / (proba**1.5 + (1 - proba) ** 1.5)
    return (rng.random(n_samples) < truth).astype(int), proba


@functools.cache
def tempered(n_samples=600, n_classes=3, temperature=2.0):
    data = make_tempered(
        n_samples,
        n_classes=n_classes,
        temperature=temperature,
        concentration=0.6,
        n_truth_draws=0,
        random_state=0,
    )
    return data.labels, data.proba


CANDIDATES = (
    (Zero(), {}),
    (Binning(), {"n_bins": [2, 5, 10]}),
    (TwoStepKernelRidge(), {"alpha": [1e-4, 1e-3, 1e-2, 1e-1]}),
    (PlugIn(TemperatureScaling()), {}),
)


@functools.cache
def fitted_search(temperature=2.0, notion="confidence"):
    y, proba = tempered(temperature=temperature)
    candidates = [
        (function, grid)
        for function, grid in CANDIDATES
        if notion == "confidence" or grid.keys() <= {"alpha"}
    ]
    search = CalibrationErrorSearchCV(candidates, notion, random_state=0, labels=range(3))
    with warnings.catch_warnings():  # of calibrated predictions every second estimate is negative
        warnings.filterwarnings("ignore", "The squared calibration error is estimated as -")
        return search.fit(proba, y)


def null_result(notion="confidence", n_classes=3, n_resamples=199):
    y, proba = tempered(n_classes=n_classes)
    return monte_carlo_test(
        y, proba, notion=notion, labels=range(n_classes), n_resamples=n_resamples, random_state=0
    )


def segments():
    y, proba = binary(300)
    features = {"side": np.arange(300) % 3, "a feature with a long name": proba}
    return segment_test(y, proba, features, n_resamples=99, random_state=0)


def curve():
    y, proba = binary(300)
    return bias_curve(y, proba, proba, n_resamples=99, random_state=0)


def comparison(**options):
    searches = {"calibrated": fitted_search(1.0), "overconfident": fitted_search(2.0)}
    return displays.ComparisonDisplay.from_searches(
        searches, {"overconfident": null_result()}, **options
    )


def monitored(notion="confidence", n_batches=12, **options):
    """A monitor of predictions that become overconfident."""
    monitor = CalibrationMonitor(notion, **options)
    for k in range(n_batches):
        y, proba = tempered(temperature=1.0 if k < n_batches // 2 else 2.0)
        rows = slice(50 * (k % 12), 50 * (k % 12) + 50)
        monitor.update(proba[rows], y[rows])
    return monitor


def recalibrated(y, proba, **options):
    after = proba**1.5
    after /= after.sum(axis=1, keepdims=True) if proba.ndim == 2 else after + (1 - proba) ** 1.5
    return displays.RecalibrationDisplay.from_predictions(y, proba, after, **FEW, **options)


def compared(y, proba, **options):
    return displays.MurphyDisplay.from_predictions(y, proba, compare=proba**1.3, **options)


def case(make, data, n_panels=1, **options):
    """A function of ax= and plot=, and the number of panels."""
    return lambda **more: make(*data(), **options, **more), n_panels


def few():
    return binary(300)


def rare():
    """Predictions of which some lie far beyond the others, and names that are long."""
    rng = np.random.default_rng(0)
    proba = np.append(rng.beta(1.2, 40, 990), rng.uniform(0.3, 0.9, 9))
    names = np.array(["not readmitted", "readmitted within 30 days"])
    return names[(rng.random(len(proba)) < proba).astype(int)], proba


FEW = {"n_resamples": 99, "random_state": 0}
CASES = {
    "reliability": case(displays.ReliabilityDisplay.from_predictions, few, **FEW),
    "reliability of rare events": case(
        displays.ReliabilityDisplay.from_predictions,
        rare,
        labels=["not readmitted", "readmitted within 30 days"],
        name="readmission_model_of_2024.csv",
        **FEW,
    ),
    "reliability by class": case(
        displays.ReliabilityDisplay.from_predictions, tempered, 3, notion="classwise", **FEW
    ),
    "recalibration": case(recalibrated, few, 3),
    "recalibration of several classes": case(recalibrated, tempered, 2),
    "calibration curve": case(displays.CalibrationCurveDisplay.from_predictions, few),
    "decision curve": case(displays.DecisionCurveDisplay.from_predictions, few),
    "Murphy diagram": case(compared, few, 2),
    "risk and coverage": case(displays.RiskCoverageDisplay.from_predictions, few, max_risk=0.4),
    "simplex": case(displays.SimplexDisplay.from_predictions, tempered),
    "bin count": case(displays.BinCountDisplay.from_predictions, few, **FEW),
    "risk": case(displays.RiskDisplay.from_search, lambda: [fitted_search()], param="alpha"),
    "candidates": case(displays.RiskDisplay.from_search, lambda: [fitted_search()]),
    "comparison": (comparison, 1),
    "monitor": case(displays.MonitorDisplay.from_monitor, lambda: [monitored()], 2),
    "monitor by class": case(
        displays.MonitorDisplay.from_monitor, lambda: [monitored("classwise")]
    ),
    "segments": case(displays.SegmentDisplay.from_result, lambda: [segments()]),
    "bias curve": case(displays.BiasCurveDisplay.from_result, lambda: [curve()]),
}
