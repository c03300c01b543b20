"""Statements of uncertainty depend on ratios of weights alone, over every public one."""

import inspect
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from property_cases import numbers
from scipy.special import expit
from test_hypothesis_test_properties import TESTS
from test_metric_properties import FACTS, METRICS, of

import skcal
from skcal import displays, hypothesis_tests, metrics, monitoring
from skcal.monitoring import merge_e_values

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
RNG = np.random.default_rng(0)
Z = 1.5 * RNG.normal(size=120)
P, Y = expit(Z), (RNG.random(120) < expit(0.7 * Z + 0.2)).astype(int)
WEIGHT = RNG.lognormal(0, 0.8, 120)
FEW = {"n_resamples": 19, "random_state": 0}
SAMPLE = Y, P


def measures(call, *arguments, **options):
    """A report's numbers of all predictions."""
    overall = call(*arguments, **options, **FEW).to_dict()["overall"]
    return [overall[name] for name in ("validation", "measures", "overview") if name in overall]


#: Public functions that take weights beside METRICS and TESTS: name → call of weights.
OTHERS = {
    "area_under_risk_coverage": partial(metrics.area_under_risk_coverage, *SAMPLE),
    "bootstrap_interval": partial(
        metrics.bootstrap_interval, metrics.expected_calibration_error, *SAMPLE, **FEW
    ),
    "calibration_error_interval": partial(skcal.calibration_error_interval, *SAMPLE),
    "calibration_report": partial(measures, skcal.calibration_report, *SAMPLE),
    "coverage_at_risk": partial(metrics.coverage_at_risk, *SAMPLE, max_risk=0.3),
    "equivalence_test": partial(hypothesis_tests.equivalence_test, *SAMPLE, limit=0.1),
    "flexible_calibration_curve": partial(metrics.flexible_calibration_curve, *SAMPLE),
    "merge_e_values": lambda sample_weight: merge_e_values(P, sample_weight=sample_weight),
    "risk_coverage_curve": partial(metrics.risk_coverage_curve, *SAMPLE),
    "sharpness": partial(metrics.sharpness, *SAMPLE),
    "shifted_calibration_error": partial(
        metrics.shifted_calibration_error, *SAMPLE, target_proba=P[:60] ** 1.2, **FEW
    ),
    "validation_measures": partial(metrics.validation_measures, *SAMPLE, **FEW),
}
#: Functions whose weights are numbers of rows, since they state no uncertainty.
COUNTED = {
    "CalibrationTable": "adds batches, whose scale must be the same",
    "calibration_bins": "shows the sums of weights",
    "kernel_density_calibration_error": "leaves out one copy of a row, as a fit does",
    "expected_calibration_error, median-variance": "samples in a cell, by weight",
}
ELSEWHERE = {
    "CalibrationMonitor": "bets on each sample before it knows later weights: at most 1, or counts",
    "compare_risks": "of calibration functions: tests/model_selection/test_comparison.py",
    "pair_risk": "tests/test_pair_risk.py",
}
STATEMENTS = {
    **{
        name: partial(METRICS[of(name)], *SAMPLE, notion="binary", **facts.options)
        for name, facts in FACTS.items()
        if "binary" in facts.notions and not name.startswith(tuple(COUNTED))
    },
    **{
        name: partial(test, *SAMPLE, notion="binary")
        for name, test in TESTS.items()
        if "mean_embedding_test monte" not in name
    },
    **OTHERS,
}


def test_every_public_function_that_takes_weights_is_a_case():
    takes = {
        name
        for room in (skcal, metrics, hypothesis_tests, monitoring)
        for name in room.__all__
        if inspect.isfunction(getattr(room, name))
        and "sample_weight" in inspect.signature(getattr(room, name)).parameters
    }
    cases = {name.split()[0].strip(",") for name in STATEMENTS}
    assert takes <= cases | {name.split(",")[0] for name in COUNTED} | set(ELSEWHERE)


def answer(name, weight):
    """The numbers of a statement, or its refusal."""
    try:
        return numbers(STATEMENTS[name](sample_weight=weight))
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", STATEMENTS)
def test_only_ratios_of_weights_matter(name):
    one = answer(name, WEIGHT)
    for scale in (2.0**-20, 2.0**20):
        assert_array_equal(answer(name, scale * WEIGHT), one)
    for scale in (1e-6, 3.7, 1e6):
        other = answer(name, scale * WEIGHT)
        assert isinstance(one, str) == isinstance(other, str), (one, other)
        if not isinstance(one, str):
            assert_allclose(other, one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["BinCount", "CalibrationCurve", "DecisionCurve", "Murphy"])
def test_only_ratios_of_weights_matter_to_a_display(name):
    def drawn(weight):
        kind = getattr(displays, f"{name}Display")
        shown = kind.from_predictions(*SAMPLE, sample_weight=weight)
        return np.concatenate([numbers(value) for _, value in sorted(vars(shown).items())])

    one = drawn(WEIGHT)
    assert_array_equal(drawn(2.0**-20 * WEIGHT), one)
    assert_allclose(drawn(1e6 * WEIGHT), one, rtol=1e-9, atol=1e-9)


def test_counts_are_counts_and_shares_are_by_weight():
    """The heavier a class, the larger its share; no sample is more than one."""
    rng = np.random.default_rng(1)
    p = rng.uniform(0.2, 0.6, 63)
    y = (np.arange(63) < 24).astype(int)
    weight = np.where(y == 1, 0.5, 1.0)
    found = skcal.calibration_report(y, p, sample_weight=weight, **FEW)
    text = str(found)
    assert "Only 24 of 63 samples have the rarer outcome" in text
    assert "24 of them (24 % by weight)" in text
    assert found.overall.overview.counts == [39, 24]
    assert metrics.validation_measures(y, p, sample_weight=weight, **FEW).n_events == 24
    by = np.arange(63) % 2
    parts = skcal.calibration_report(y, p, sample_weight=weight, by=by, **FEW).subgroups
    assert [part.overview.counts[1] for part in parts] == [
        int(y[by == int(part.name[-1])].sum()) for part in parts
    ]
