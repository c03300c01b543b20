"""Invariants of every public hypothesis test, in each of its methods, on small samples."""

import re
from functools import partial
from inspect import isclass, isfunction

import numpy as np
import pytest
from each_case import for_each
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from property_cases import (
    EDGE_CASES,
    NAMES,
    NOTIONS,
    VECTORS,
    ask,
    assert_same_outcome,
    orders,
    outcome,
    samples,
    seeds,
    state,
)
from scipy.special import expit

from skcal import hypothesis_tests, metrics
from skcal.hypothesis_tests.monte_carlo import STATISTICS
from skcal.hypothesis_tests.result import CalibrationTestResult

TOOLS = {
    "adjust_pvalues": "takes p-values: below",
    "calibration_error_interval": "has limits: tests/hypothesis_tests/test_error_interval.py",
    "equivalence_test": "has bounds, and no p-value",
    "equivalence_tests": "has bounds, and no p-value",
}
B = 19  # resamples, such that p-values of one test reach 5 %


def compare_with_a_flatter_model(y_true, y_proba, **options):
    classes = 2 if y_proba.ndim == 1 else y_proba.shape[1]
    flatter = (y_proba + 1 / np.float64(classes)) / 2
    return hypothesis_tests.compare_calibration(y_true, y_proba, flatter, **options)


def confidence(proba):
    return np.maximum(proba, 1 - proba) if proba.ndim == 1 else proba.max(axis=1)


def segments_by_confidence(y_true, y_proba, **options):
    features = {"confidence": np.where(confidence(y_proba) > 0.66, "high", "low")}
    return hypothesis_tests.segment_test(y_true, y_proba, features, **options)


def curve_along_confidence(y_true, y_proba, **options):
    feature = confidence(y_proba).astype(np.float32)
    return hypothesis_tests.bias_curve(y_true, y_proba, feature, window=0.5, **options)


ADAPTED = {
    "compare_calibration": compare_with_a_flatter_model,
    "segment_test": segments_by_confidence,
    "bias_curve": curve_along_confidence,
}


def variants(function, parameter, resampled, random, **options):
    """A test for each of the values that a parameter takes."""
    [values] = [
        constraint.options
        for constraint in function._skl_parameter_constraints[parameter]
        if hasattr(constraint, "options")
    ]
    call = ADAPTED.get(function.__name__, function)
    return {
        f"{function.__name__} {value}": partial(
            call,
            **{parameter: value},
            **({"n_resamples": B} if value in resampled else {}),
            **({"random_state": 0} if random else {}),
            **options,
        )
        for value in sorted(values)
    }


# Fits to a handful of samples, most of them separable, may stop early.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:The sum of .label:UserWarning"),
    pytest.mark.filterwarnings("ignore:Too few outcomes are uncertain:UserWarning"),
    pytest.mark.filterwarnings("ignore:n_resamples=19.* possible p-value:UserWarning"),
]
monte_carlo = hypothesis_tests.monte_carlo_test
TESTS = {
    **variants(monte_carlo, "statistic", STATISTICS, True),
    **variants(
        hypothesis_tests.skce_test, "method", ["monte-carlo", "asymptotic", "spectral"], True
    ),
    **variants(
        hypothesis_tests.mean_embedding_test, "method", ["monte-carlo"], True, n_locations=2
    ),
    **variants(hypothesis_tests.cox_test, "hypothesis", [], False),
    **variants(
        hypothesis_tests.hosmer_lemeshow_test, "strategy", [], False, n_bins=3, min_expected=0
    ),
    **variants(hypothesis_tests.kolmogorov_smirnov_test, "statistic", [], False),
    **variants(hypothesis_tests.compare_calibration, "method", [], False),
    **variants(hypothesis_tests.segment_test, "statistic", ["bias", "ece"], True, min_samples=1),
    "calibration_test": partial(hypothesis_tests.calibration_test, n_resamples=B, random_state=0),
    "bias_curve": partial(curve_along_confidence, n_resamples=B, random_state=0),
    "risk_test": partial(hypothesis_tests.risk_test, n_resamples=B, random_state=0),
    "scan_test": partial(hypothesis_tests.scan_test, n_resamples=B, random_state=0),
    "spiegelhalter_test": partial(hypothesis_tests.spiegelhalter_test),
}
# What takes long otherwise.
TESTS["monte_carlo_test smooth_calibration_error"].keywords["bandwidth"] = 0.1
TESTS["monte_carlo_test squared_mean_embedding_calibration_error"].keywords["n_locations"] = 2
OF_CLASSES = ("top-label", "classwise")
CLASSICAL = [name for name in TESTS if name.startswith(("cox", "hosmer", "kolmogorov", "spiegel"))]
ONE_PROBLEM = [
    name
    for name in TESTS
    if name.startswith(("skce_test", "mean_embedding_test")) and "monte-carlo" not in name
]
SCALAR_STATISTICS = [
    f"monte_carlo_test {name}"
    for name in (
        "cutoff_calibration_error",
        "kolmogorov_smirnov_calibration_error",
        "maximum_mean_calibration_error",
        "smooth_calibration_error",
    )
]
# Notions that a test documents not to take.
REFUSED = (
    {(name, notion) for name in CLASSICAL if "spiegel" not in name for notion in VECTORS}
    | {(name, notion) for name in ONE_PROBLEM for notion in (*OF_CLASSES, "multi-label")}
    | {(name, notion) for name in SCALAR_STATISTICS for notion in VECTORS}
    | {("compare_calibration skce", "top-label")}
    | {("scan_test", notion) for notion in VECTORS}
    | {("bias_curve", notion) for notion in (*OF_CLASSES, "multi-label", *VECTORS)}
)
CASES = [(name, notion) for name in TESTS for notion in NOTIONS if (name, notion) not in REFUSED]
# Refusals of samples on which a statistic is not defined: name, words of the message.
UNDEFINED = {
    "cox_test": "both|slope|no finite intercept",
    "hosmer_lemeshow_test": "A bin holds only",
    "kolmogorov_smirnov_test": "variance of 0",
    "spiegelhalter_test": "variance of 0",
    "mean_embedding_test": "covariance|too few",
    "skce_test block": r"blocks agree|block\(s\)",
    "compare_calibration": "same for every sample|too few|no class is predicted",
    "risk_test": "no class is predicted",
}
# What a test documents to depend on the order of the rows.
ORDER = {
    "skce_test block": "blocks are of consecutive rows",
    "mean_embedding_test": "locations are drawn from the rows",
    "monte_carlo_test squared_mean_embedding_calibration_error": "the same",
    "risk_test": "a row belongs to the training or the test part",
    "segment_test ece": "is standardised by redrawn outcomes",
    "bias_curve": "samples of the same value are parted in their order",
    "calibration_test": "its statistic is a rank among draws, which go to rows",
}
BY_NUMBER = {
    "calibration_test": "its statistic is a rank among draws, which go to rows and columns",
    "mean_embedding_test": "locations are drawn for a class by its number",
    "monte_carlo_test squared_mean_embedding_calibration_error": "the same",
}
# Without resamples the p-value is a function of the sample.
CLOSED = [
    *CLASSICAL,
    "skce_test distribution-free",
    "compare_calibration projection",
    "compare_calibration skce",
]
UNCERTAIN = np.array([0, 1, 2, 1]), np.array([[4, 2, 2], [2, 5, 1], [1, 1, 6], [3, 4, 1]]) / 8
every_test = pytest.mark.parametrize("name", TESTS)


def run(name, notion, y, proba, **options):
    y, proba, question = ask(notion, y, proba)
    return TESTS[name](y, proba, **{**question, **options})


@pytest.mark.parametrize("name", TESTS)
def test_logits_are_the_probabilities_that_they_make(name):
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=200)
    y = (rng.uniform(size=200) < expit(z / 2)).astype(int)
    test, logits, proba = TESTS[name], [z], [expit(z)]
    if name.startswith("compare_calibration"):
        test, logits, proba = hypothesis_tests.compare_calibration, [z, z / 2], expit([z, z / 2])
    found = test(y, *logits, notion="binary", from_logits=True)
    expected = test(y, *proba, notion="binary")
    assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-6)


def listed(name, table):
    return any(name.startswith(entry) for entry in table)


def without(table):
    return pytest.mark.parametrize("name", [name for name in TESTS if not listed(name, table)])


def notions(name, among=NOTIONS):
    """Draw a notion that the test takes."""
    return st.sampled_from([notion for notion in among if (name, notion) in CASES])


def values_of(result):
    values = np.array([result.statistic, result.estimate])
    return values[~np.isnan(values)]  # some tests estimate nothing


def statistic(name, notion, *sample, **options):
    return values_of(run(name, notion, *sample, **options))


def test_every_public_test_is_a_case_or_a_tool():
    covered = {name.split()[0] for name in TESTS}
    public = {name: getattr(hypothesis_tests, name) for name in hypothesis_tests.__all__}
    assert covered | set(TOOLS) == {name for name, one in public.items() if isfunction(one)}
    assert all(isfunction(one) or isclass(one) for one in public.values())
    assert {name.split()[1] for name in TESTS if name.startswith("monte_carlo")} == set(STATISTICS)
    assert set(STATISTICS) <= set(metrics.__all__)


def test_notions_that_do_not_fit_are_refused_by_name():
    def check(case):
        with pytest.raises(ValueError, match="notion="):
            run(*case, *UNCERTAIN)

    for_each(sorted(REFUSED), check)


def assert_pvalues(result):
    values = [result.pvalue]
    if result.class_pvalues is not None:
        values += list(result.class_pvalues[~np.isnan(result.class_pvalues)])
    assert all(0 < value <= 1 for value in values), values
    refuted = "impossible at slope 1" in result.method  # by a certain outcome that did not happen
    assert np.isfinite(result.statistic) or refuted
    if result.null_distribution is not None:
        assert np.isfinite(result.null_distribution).all()


def assert_refused(name, error):
    words = [UNDEFINED[entry] for entry in UNDEFINED if name.startswith(entry)]
    assert re.search("|".join([*words, "are needed", "both parts need two"]), error)


@pytest.mark.parametrize(
    ("name", "notion"), [case for case in CASES if case[1] in ("binary", "canonical")]
)
def test_edge_cases_have_a_pvalue_or_say_why_not(name, notion):
    for y, proba in EDGE_CASES.values():
        try:
            result = run(name, notion, y, proba)
        except ValueError as error:
            assert_refused(name, str(error))
        else:
            assert_pvalues(result)


@every_test
def test_the_same_samples_told_in_another_way_are_tested_alike(name, check):
    """Again to the bit, in single precision and in another order; nothing is changed."""

    def tested(notion, y, proba):
        try:
            return run(name, notion, y, proba)
        except ValueError as error:
            assert_refused(name, str(error))

    def holds(notion, sample, seed):
        y, proba = sample
        one, arrays = tested(notion, y, proba), (y, proba.astype(np.float32, order="F"))
        before = state(*arrays)
        single, again = (tested(notion, *arrays) for _ in "ab")
        assert state(*arrays) == before
        rows = np.random.default_rng(seed).permutation(len(y))
        moved = tested(notion, y[rows], proba[rows])
        assert (one is None) == (single is None) == (again is None)
        assert listed(name, ORDER) or (one is None) == (moved is None)
        if one is None:
            return
        assert_pvalues(one)
        assert (again.pvalue, again.statistic) == (single.pvalue, single.statistic)
        if single.null_distribution is not None:
            assert_array_equal(again.null_distribution, single.null_distribution)
        assert_allclose(values_of(single), values_of(one), rtol=1e-4, atol=1e-5)
        if not listed(name, ORDER):
            # Features of the kernel leave out 1e-8 of its trace, which depends on the order.
            rtol = 1e-4 if "cox" in name else 1e-5 if "skce_test" in name else 1e-6
            assert_allclose(values_of(moved), values_of(one), rtol=rtol, atol=1e-8)
        if name in CLOSED:
            assert_allclose(moved.pvalue, one.pvalue, rtol=1e-5)

    check(holds, notion=notions(name), sample=samples(), seed=seeds)


@without({*BY_NUMBER, *CLASSICAL, "segment_test ece", "bias_curve"})
def test_joint_relabelling_does_not_change_the_statistic(name, check):
    def holds(notion, sample, order):
        y, proba = sample
        one = outcome(statistic, name, notion, y, proba)
        renamed = NAMES[y], proba[:, order]
        other = outcome(statistic, name, notion, *renamed, labels=NAMES[order])
        # The default of the tests by risk stops at a gradient of 1e-4.
        loose = listed(name, ("risk_test",))
        assert_same_outcome(one, other, rtol=1e-2 if loose else 1e-6, atol=1e-3 if loose else 1e-8)

    symmetric = notions(name, ["canonical", "classwise"])  # arg max ties go to the first class
    if listed(name, SCALAR_STATISTICS):
        symmetric = st.just("classwise")
    check(holds, notion=symmetric, sample=samples(), order=orders)


@every_test
def test_the_positive_column_of_two_is_the_one_dimensional_form(name, check):
    def holds(sample):
        y, proba = sample
        results = [
            outcome(lambda p, **k: [*statistic_of(TESTS[name](y, p, notion="binary", **k))], p, **k)
            for p, k in ((proba[:, 1], {}), (proba, {"labels": [0, 1]}))
        ]
        assert_same_outcome(*results, rtol=1e-9, atol=1e-12)

    def statistic_of(result):
        return result.statistic, result.pvalue

    check(holds, sample=samples(n_classes=2))


@pytest.mark.parametrize("name", [name for name in TESTS if name.startswith("monte_carlo")])
def test_weight_zero_removes_a_sample_to_the_bit(name, check):
    def holds(notion, sample, seed):
        y, proba = sample
        keep = np.random.default_rng(seed).random(len(y)) < 0.6
        keep[:2] = True
        one = outcome(run, name, notion, y[keep], proba[keep])
        other = outcome(run, name, notion, y, proba, sample_weight=keep)
        assert one.tobytes() == other.tobytes()

    check(holds, notion=notions(name), sample=samples(at_least=4), seed=seeds)


@pytest.mark.filterwarnings("ignore:All predictions in")
@pytest.mark.parametrize("notion", ["confidence", "canonical", "classwise"])
@pytest.mark.parametrize("name", ["monte_carlo_test expected_calibration_error", "risk_test"])
def test_certain_predictions_are_rejected_as_far_as_resamples_go_or_never(name, notion):
    rows, n_tests = np.arange(20) % 3, 3 if notion == "classwise" else 1
    right = run(name, notion, rows, np.eye(3)[rows])
    wrong = run(name, notion, (rows + 1) % 3, np.eye(3)[rows])
    assert right.pvalue == 1
    assert wrong.pvalue == pytest.approx(n_tests / (B + 1))


@pytest.mark.parametrize("name", TESTS)
def test_the_sentence_says_what_the_p_value_says(name):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.1, 0.9, 80)
        y = (rng.random(80) < (p if seed % 2 else p**3)).astype(int)
        result = TESTS[name](y, p, labels=[0, 1])
        said = result.sentence()
        none = re.search("no evidence of|do not differ significantly", said)
        assert bool(none) == (result.pvalue > 0.05), said
        assert " ".join(str(result).split())[1:].startswith(said[1:])


@pytest.mark.parametrize("pvalue", [0.0496, 0.05, 0.05 + 1e-14, 0.0500001, 0.0504, 0.2])
def test_a_p_value_is_printed_on_its_side_of_5_percent(pvalue):
    result = CalibrationTestResult(statistic=1.0, pvalue=pvalue, method="z")
    [shown] = re.findall(r"p = ([0-9.]+)", result.sentence())
    assert (
        (float(shown) <= 0.05) == ("significantly" in result.sentence()) == (pvalue < 0.05 + 1e-9)
    )


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("error", ["calibration", "cutoff", "ece", "rms"])
def test_the_limits_of_an_equivalence_test_are_printed_on_their_side(error, side):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p**1.5).astype(int)
    known = hypothesis_tests.equivalence_test(y, p, limit=0.5, error=error)
    verdicts = {("high", -1): "unknown", ("high", 1): "below"}
    verdicts |= {("low", -1): "above", ("low", 1): "unknown"}
    for (end, of_side), verdict in verdicts.items():
        limit = getattr(known, end) + side * 1e-6
        if of_side != side:
            continue
        found = hypothesis_tests.equivalence_test(y, p, limit=limit, error=error)
        assert found.verdict == verdict
        shown = re.search("at least ([0-9.]+), at most ([0-9.]+),", found.sentence()).groups()
        assert (float(shown[0]) > limit) == (verdict == "above")
        assert (float(shown[1]) <= limit) == (verdict == "below")
