"""Every size that chooses a path through the code is crossed from both sides by a public call."""

import importlib
import pkgutil
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from numpy.testing import assert_allclose

import skcal
from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    calibration_report,
)
from skcal.cli.counted import read_or_count
from skcal.cli.parser import parse
from skcal.functions import dirichlet_sums
from skcal.hypothesis_tests import segment_test, skce_test
from skcal.metrics import binned_rms_error_interval, squared_kernel_calibration_error
from skcal.model_selection import compare_risks
from skcal.recalibration import DirichletCalibration, MatrixScaling


def draw(n, n_classes=2, seed=0):
    """Labels and calibrated predictions, (n,) of two classes."""
    rng = np.random.default_rng(seed)
    if n_classes == 2:
        p = rng.random(n)
        return (rng.random(n) < p).astype(int), p
    P = 0.999 * rng.dirichlet(np.full(n_classes, 0.5), n) + 0.001 / n_classes
    return (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), P


def risks_of_densities(n):
    y, p = draw(n)
    grid = [(DirichletKernelDensity(), {"bandwidth": [1e-5, 1e-3, 0.1]})]
    search = CalibrationErrorSearchCV(grid, random_state=0).fit(p, y)
    return search.cv_results_["mean_test_score"]


@pytest.mark.filterwarnings("ignore:The squared calibration error is estimated")
@pytest.mark.parametrize("n", [1280, 1281, 1300, 1400, 1478, 1479])
def test_risks_of_densities_are_those_of_direct_sums_at_every_size(n, monkeypatch):
    """Training sets of 3n/5 and 4n/5 points are on different sides of 2^18 pairs in between."""
    fast = risks_of_densities(n)
    monkeypatch.setattr(dirichlet_sums, "_MANY_PAIRS", np.inf)
    assert_allclose(fast, risks_of_densities(n), rtol=1e-9)


def of_density(n_classes):
    y, P = draw(60, n_classes)
    if n_classes == 2:
        return DirichletKernelDensity(0.1).fit(P[:, None], y - P).residual(P[:20, None])
    residuals = np.eye(n_classes)[y] - P
    return DirichletKernelDensity(0.1).fit(P, residuals).residual(P[:20])


def of_map(recalibration_map):
    y, P = draw(300, 4)
    return recalibration_map.fit(P, y).predict_proba(P)


def of_kernel_blocks():
    y, P = draw(60, 3)
    error = squared_kernel_calibration_error(y, P, notion="canonical", method="block")
    return [error, skce_test(y, P, notion="canonical", method="block").pvalue]


def of_segments():
    y, p = draw(400)
    features = np.random.default_rng(1).integers(0, 4, (400, 3)).astype(float)
    result = segment_test(y, p, features, random_state=0, n_resamples=99)
    return [result.pvalue, result.statistic]


def of_interval_of_groups():
    interval = binned_rms_error_interval(*draw(200), groups=np.arange(200) % 20)
    return [interval.low, interval.estimate, interval.high]


def of_compared_risks():
    y, P = draw(300, 3)
    fitted = [
        CalibrationErrorEstimator(function, "canonical").fit(P[:60], y[:60])
        for function in (DirichletKernelDensity(0.1), Binning())
    ]
    result = compare_risks(*fitted, P[60:], y[60:], groups=np.arange(240) % 20)
    return [result.difference, result.standard_error]


def of_a_long_file():
    y, p = draw(200)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "p.csv"
        path.write_text(
            "p,label\n" + "".join(f"{a!r},{b}\n" for a, b in zip(p.tolist(), y, strict=True))
        )
        sample = read_or_count(parse(["evaluate", str(path)])).sample()
    return [len(sample), skcal.metrics.expected_calibration_error(sample), sample.accuracy]


def of_a_table_of_classes():
    y, P = draw(400, 3)
    interval = skcal.calibration_error_interval(skcal.CalibrationTable("classwise").update(y, P))
    return [interval.estimate, interval.high]


def of_a_large_table():
    y, p = draw(40_000)
    interval = skcal.calibration_error_interval(skcal.CalibrationTable().update(y, p**1.5))
    return [interval.low, interval.estimate, interval.high]


# Module and constant: the call, and how far both sides may be apart.
PATHS = {
    "_groups._FEW_CELLS": (of_interval_of_groups, 1e-12),
    "cli.counted._MOST_ROWS": (of_a_long_file, 1e-9),
    "functions.dirichlet_sums._CLASS_SUMS": (lambda: of_density(5), 1e-12),
    "functions.dirichlet_sums._FEW_ABOVE": (lambda: of_density(5), 1e-12),
    "functions.dirichlet_sums._MANY_PAIRS": (lambda: of_density(2), 1e-8),
    "hypothesis_tests.segment_features._DENSE": (of_segments, 1e-12),
    "hypothesis_tests.skce._SMALL_BLOCK": (of_kernel_blocks, 1e-12),
    "metrics.gap_sums._MOST_BY_RANK": (of_a_large_table, 0.01),
    "metrics.kernel._SMALL_BLOCKS": (of_kernel_blocks, 1e-12),
    "model_selection.comparison._FEW_PAIRS": (of_compared_risks, 1e-10),
    "table.reading._MOST_TOGETHER": (of_a_table_of_classes, 0.15),
    "recalibration.likelihood._WHITENED_CLASSES": (
        lambda: of_map(DirichletCalibration(C=0.1, tol=1e-10, max_iter=10_000)),
        1e-6,
    ),
    "recalibration.scaling._CHOLESKY_MAX_CLASSES": (
        lambda: of_map(MatrixScaling(C=0.1)),
        1e-3,  # two solvers of scikit-learn, to its tolerance
    ),
}


@pytest.mark.filterwarnings("ignore:The squared calibration error is estimated")
@pytest.mark.parametrize("name", PATHS)
def test_both_sides_of_a_size_agree(name, monkeypatch):
    call, tolerance = PATHS[name]
    module, constant = name.rsplit(".", 1)
    module = importlib.import_module(f"skcal.{module}")
    results = []
    for value in (0, 10**12):
        monkeypatch.setattr(module, constant, value)
        results.append(np.hstack(call()))
    assert np.isfinite(results[0]).all()
    assert_allclose(*results, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("steps", "is_named"), [(1000, True), (1001, False)])
def test_a_likely_step_is_named_up_to_one_in_1000(steps, is_named):
    y, p = draw(300)
    p = np.round(p * steps) / steps
    p[:5] = 1 - y[:5]
    text = " ".join(str(calibration_report(y, p, n_resamples=19)).split())
    assert "Slope undefined" in text
    assert (f"multiples of 1/{steps}" in text) == is_named
    assert ("multiples of 1/" in text) == is_named


# The others: what they bound, and where both sides are tested if the result differs on purpose.
OTHERS = {
    "lines, names, points or ranges that are shown": {
        "cli.cells._FEW_BOUNDS",  # tests/cli/test_exports.py
        "cli.cells._FEW_WORDS",  # tests/cli/test_codes.py
        "cli.clusters._MOST_CELLS",  # tests/cli/test_clusters.py
        "cli.columns._FEW_BELOW",  # tests/cli/test_forms.py
        "cli.find._MOST_LISTED",
        "cli.happened._FEW_SHOWN",
        "cli.happened._MOST_LOOKED_AT",
        "cli.happened._MOST_SHOWN",
        "cli.header._MOST_LINES",
        "cli.labels._FEW",  # tests/cli/test_forms.py
        "cli.labels._FEW_OTHERS",  # tests/cli/test_exports.py
        "cli.monitor._MOST_DIGESTS",
        "cli.predictions._MOST_SUBGROUPS",  # tests/cli/test_conclusions.py
        "cli.parts._MOST_NOTES",  # tests/cli/test_headers.py
        "cli.problems._MOST_COMMANDS",
        "cli.table._MOST_PAIRS",
        "cli.text._MOST_LINES",
        "cli.monitor._MOST_MARKS",
        "monitoring.monitor._MOST_NOTED",
        "displays.axis._MOST_TICKS",
        "displays.recalibration._MOST_DRAWN",
        "displays.reliability_panel._MOST_VALUES",
        "metrics.bin_table._MOST_BINS",
        "report.centres._MOST_PRINTED",
    },
    "sizes from which on a text warns": {
        "cli.gates._LARGE_SHARE",
        "sample._LARGE",
        "metrics.bootstrap._FEW_GROUPS",  # tests/metrics/test_bootstrap.py
        "metrics.validation._FEW_EITHER",
        "report.findings._MOST_ORDERED",
        "report.words._FEW_OF_A_CLASS",
        "report.words._FEW_OUTCOMES",
        "report.words._FEW_SAMPLES",
    },
    "limits of numbers": {
        "_rounding._MOST_NAMED_STEPS",  # below
        "_validation._MOST_WEIGHT",  # tests/properties/test_weights_of_fits.py
        "cli.counted._MOST_TABLES",  # tests/cli/test_counted.py
        "cli.later._MOST_KEPT",  # tests/cli/test_counted.py
        "cli.long._MOST",  # tests/cli/test_exports.py
        "cli.long._MOST_CLASSES",  # tests/cli/test_exports.py
        "cli.predictions._MOST_SUBGROUPS",  # tests/cli/test_wild_forms.py
        "report.centres._SMALL",
        "monitoring.bets._MOST_SHIFTED",
        "monitoring.planning._MOST_BATCHES",
        "monitoring.planning._MOST_DRIFT",
        "monitoring.layout._MOST_SUM",
        "_scores._FEW_EVENTS",  # tests/recalibration/test_losses.py
        "table.counted._MOST_ROWS",  # tests/table/test_table.py
        "table.frames._MOST",
        "table.sums._MOST_BYTES",  # tests/table/test_table.py
    },
    "threads or processes": {
        "choice.search._MANY_FEATURES",  # tests/model_selection/test_blas_threads.py
        "choice.recalibrator._MANY_PROBABILITIES",
    },
    "the resolution of a grid, or the number of cells, draws or ranks": {
        "displays.curves._MANY_POINTS",
        "displays.simplex._MAX_ROWS",
        "hypothesis_tests.joint_statistics._MOST_CELLS",
        "hypothesis_tests.monte_carlo._MANY_ROWS",  # tests/hypothesis_tests/test_counts.py
        "hypothesis_tests.scan._MOST_SCAN_CELLS",  # tests/hypothesis_tests/test_scan.py
        "hypothesis_tests.mean_embedding._MOST_LOCATIONS",
        "hypothesis_tests.skce._MANY_SAMPLES",  # tests/hypothesis_tests/test_skce.py
        "metrics.binned._MANY_RESAMPLED",  # tests/metrics/test_bootstrap.py
        "metrics.gap_models._MANY",
        "metrics.gap_models._MOST_CELLS",
        "metrics.gap_models._MOST_OF_MANY",
        "metrics.gap_sums._MOST_POINTS",
        "metrics.limits._MOST_STEPS_DRAWN",
        "metrics.smoothers._MAX_GROUPS",
        "metrics.murphy._MOST_OF_GROUPS",  # tests/test_groups.py
        "metrics.smoothers._MAX_POINTS",
        "model_selection.adaptive._MAX_CELLS",
        "model_selection.candidates._MAX_RANK",
        "recalibration.bayesian._MOST_SEGMENTS",
        "recalibration.features._MOST_LOGIT_CELLS",  # tests/recalibration/test_units.py
        "recalibration.features._MOST_ENTRIES",
        "report.compare._MOST_DRAWS",  # tests/report/test_subgroup_tests.py
    },
    "candidates, or features of a statistic": {
        "hypothesis_tests.comparison._MANY_CLASSES",  # test_compare_calibration.py
        "hypothesis_tests.joint_statistics._MOST_SHIFT",
        "hypothesis_tests.joint_statistics._MOST_STEPS",
        "model_selection.candidates.MATRIX_SCALING_MAX_CLASSES",
        "model_selection.candidates._INTERACTIONS_MAX_CLASSES",
        "model_selection.candidates._MANY_PRODUCTS",  # tests/model_selection/test_candidates.py
        "recalibration.base._MANY_COLUMNS",
        "recalibration.mixture.MATRIX_MAX_CLASSES",
    },
}


def test_every_constant_that_is_named_as_a_size_is_listed():
    pattern = re.compile(r"_(MANY|FEW|MOST|MAX|SMALL|LARGE|DENSE)(_[A-Z_]+)?|\w+_MAX_CLASSES")
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(skcal.__path__, "skcal.")
        if not module.name.endswith("__main__")
    ]
    names = {
        f"{module.__name__.removeprefix('skcal.')}.{name}"
        for module in modules
        for name, value in vars(module).items()
        if pattern.fullmatch(name) and isinstance(value, int | float)
    }
    assert names - set(PATHS).union(*OTHERS.values()) == set(), "cross it, or list it here"
    assert set().union(*OTHERS.values()) <= names
