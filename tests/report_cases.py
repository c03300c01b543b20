"""Reports that several test modules read; each is made once."""

import functools

import numpy as np

from skcal import PlugIn, Sample, TemperatureScaling, TwoStepKernelRidge, Zero
from skcal.hypothesis_tests import calibration_test
from skcal.report import calibration_report, findings
from skcal.sample import read_sample

HOSTILE = "<script>alert('x')</script>"
CANDIDATES = [
    (Zero(), {}),
    (TwoStepKernelRidge(), {"alpha": [1e-3, 1e-2, 1e-1]}),
    (PlugIn(TemperatureScaling()), {}),
]
USUAL = vars(Sample)["default_resamples"]
OPTIONS = {"n_resamples": 99, "random_state": 0}
SEARCHED = OPTIONS | {"search": True, "candidates": CANDIDATES}


def draw_few(monkeypatch):
    """Let reports, and the tests behind their verdicts, make 199 draws."""
    monkeypatch.setattr(Sample, "default_resamples", 199)


def verdict_test(y_true, y_proba, **options):
    """The test of a verdict as users call it, of as many draws as reports make now."""
    return calibration_test(y_true, y_proba, n_resamples=None, random_state=0, **options)


def findings_of(y_true, y_proba=None, max_error=None, test=None, **options):
    """The numbers behind the answer alone, without the rest of a report."""
    sample = read_sample(y_true, y_proba, **options)
    asked = findings.ReportSamples.of(sample)
    return findings.find(findings.Attempts("a model"), asked, 0.95, max_error, test)


@functools.cache
def predictions(n_samples=500, n_classes=3, power=1.7):
    """Overconfident predictions: labels, probabilities."""
    rng = np.random.default_rng(7)
    truth = rng.dirichlet(np.full(n_classes, 0.6), size=n_samples)
    labels = (truth.cumsum(axis=1) < rng.uniform(size=(n_samples, 1))).sum(axis=1)
    powered = truth**power
    return labels.clip(0, n_classes - 1), powered / powered.sum(axis=1, keepdims=True)


@functools.cache
def binary(n_samples=400):
    rng = np.random.default_rng(3)
    proba = rng.beta(0.6, 0.6, n_samples)
    return (rng.random(n_samples) < proba**1.5).astype(int), proba


FEW = {"n_resamples": 19, "random_state": 0}


@functools.cache
def oddly_named_report():
    name = "50 % of A_1 & \\input{x}\n nul \x00 and \x1b[31m\u202e, \ud800, 日本語"
    return calibration_report(*predictions(100), name=name, **FEW)


@functools.cache
def plain_report():
    return calibration_report(*predictions(), **OPTIONS)


@functools.cache
def full_report():
    """Subgroups, a second model, search=True and names from outside."""
    labels, proba = predictions()
    names = np.array([HOSTILE, "b & c", "a long name " * 9], dtype=object)
    return calibration_report(
        names[labels],
        proba,
        labels=names,
        by=np.where(np.arange(len(labels)) % 3 == 0, HOSTILE, "plain"),
        compare=predictions(power=1.0)[1],
        name=HOSTILE,
        compare_name=f"second {HOSTILE}",
        **SEARCHED,
    )


@functools.cache
def binary_report():
    return calibration_report(*binary(), **OPTIONS)


REPORTS = [plain_report, full_report, binary_report]
