"""Invariants of every public metric with its defaults; a new metric is covered by being public."""

import inspect
from functools import partial

import numpy as np
import pytest
from each_case import for_each
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from property_cases import (
    CLASSES,
    EDGE_CASES,
    NAMES,
    NOTIONS,
    ask,
    assert_same_outcome,
    numbers,
    outcome,
    samples,
    seeds,
    state,
)
from scipy.special import expit, softmax
from sklearn.naive_bayes import GaussianNB

from skcal import metrics
from skcal.metrics.scorers import _SCORERS

TOOLS = {
    "CalibrationAccumulator": "takes chunks: below as a function of all samples",
    "bootstrap_interval": "takes a metric: tests/metrics/test_bootstrap.py",
    "flexible_calibration_curve": "curves of one outcome: tests/metrics/test_curve.py",
    "get_scorer": "returns scorers: below",
    "get_scorer_names": "returns names",
    "make_calibration_scorer": "returns scorers: below",
    "normalize_proba": "mends predictions: tests/metrics/test_rounded.py",
    "validation_measures": "draws resamples, needs both outcomes: tests/metrics/test_curve.py",
}


def accumulated(y_true, y_proba, *, sample_weight=None, **options):
    """Every number of an accumulator that is given all samples."""
    accumulator = metrics.CalibrationAccumulator(**options)
    accumulator.partial_fit(y_true, y_proba, sample_weight)
    return [
        accumulator.expected_calibration_error(),
        accumulator.maximum_calibration_error(),
        accumulator.n_samples_seen_,
    ]


METRICS = {name: getattr(metrics, name) for name in metrics.__all__ if name not in TOOLS}
METRICS["accumulator"] = accumulated
# Options that take another path, with the name of the metric before the comma.
ECE, SKCE = "expected_calibration_error", "squared_kernel_calibration_error"
BINNED = {
    "quantile": {"strategy": "quantile", "n_bins": 3},
    "sweep": {"strategy": "sweep"},
    "unique": {"strategy": "unique"},
    "median-variance": {"strategy": "median-variance", "min_samples": 2},
    "norm 1.5": {"norm": 1.5, "n_bins": 3},
    "largest": {"norm": np.inf},
    "debiased": {"norm": 2, "debias": True, "root": False},
    "debiased by labels": {"norm": 2, "debias": "labels", "root": False, "n_bins": 4},
}
KERNEL = {
    "biased": {"method": "biased", "bandwidth": 0.5},
    "linear": {"method": "linear", "bandwidth": 0.5},
    "block": {"method": "block", "bandwidth": 0.5},
    "rbf": {"kernel": "rbf", "bandwidth": 0.5},
    "median": {"method": "biased"},
}
VARIANTS = {
    **{f"{ECE}, {what}": options for what, options in BINNED.items()},
    **{f"{SKCE}, {what}": options for what, options in KERNEL.items()},
    "maximum_calibration_error, quantile": {"strategy": "quantile", "n_bins": 3},
    "calibration_bins, quantile": {"strategy": "quantile"},
    "smooth_calibration_error, fixed": {"bandwidth": 0.1},
    "kolmogorov_smirnov_calibration_error, Kuiper": {"kuiper": True},
    "kernel_density_calibration_error, squared": {"norm": 2, "bandwidth": 0.1},
    "score_decomposition, log-loss": {"score": "log-loss"},
    "score_decomposition, bins": {"strategy": "uniform", "n_bins": 4},
    "score_decomposition, log-loss in groups": {"score": "log-loss", "strategy": "unique"},
}


def of(name):
    """The metric whose variant this is."""
    return name.partition(", ")[0]


METRICS |= {name: partial(METRICS[of(name)], **options) for name, options in VARIANTS.items()}
# Options that make a metric cover small samples at all.
OPTIONS = {
    "cross_fitted_calibration_error": {"random_state": 0},
    "squared_kernel_calibration_error": {"bandwidth": 0.5},
    "squared_mean_embedding_calibration_error": {"random_state": 0, "bandwidth": 0.5},
    "kernel_density_calibration_error": {"bandwidth": 0.1},
}
VECTORS = ("canonical", "top-2", "lens")
SEVERAL = ("top-label", "classwise")
SCALAR_ONLY = (
    "accumulator",
    "calibration_error_interval",
    "integrated_calibration_index",
    "kolmogorov_smirnov_calibration_error",
    "maximum_mean_calibration_error",
    "score_decomposition",
    "score_decomposition, log-loss",
    "smooth_calibration_error",
    "smooth_calibration_error, fixed",
    "kolmogorov_smirnov_calibration_error, Kuiper",
    *(name for name in VARIANTS if name.endswith(("quantile", "sweep"))),
)
OF_ONE_OUTCOME = ("decision_curve", "murphy_diagram", "net_benefit")
LOGISTIC = ("calibration_intercept", "calibration_slope", "cox_recalibration")
# Notions that a metric documents not to take.
REFUSED = (
    {(name, notion) for name in SCALAR_ONLY for notion in VECTORS}
    | {(name, notion) for name in LOGISTIC + OF_ONE_OUTCOME for notion in VECTORS + SEVERAL}
    | {("integrated_calibration_index", notion) for notion in SEVERAL}
)
REFUSED |= {(f"{ECE}, median-variance", notion) for notion in ("binary", "confidence", *SEVERAL)}
# Documented to refuse samples that determine no value: one outcome, or outcomes a threshold parts.
PARTIAL = {*LOGISTIC, "integrated_calibration_index"}
# Weights are importance weights: copies of a row form pairs, see the docstrings.
NOT_REPETITIONS = {
    **dict.fromkeys(
        [SKCE, *(f"{SKCE}, {what}" for what in ("linear", "block", "rbf"))],
        "a U-statistic of pairs of samples",
    ),
    f"{SKCE}, median": "a median of pairs",
    f"{ECE}, debiased": "the number of samples",
    f"{ECE}, debiased by labels": "the number of samples",
    "cross_fitted_calibration_error": "copies may fall into different folds, and form pairs",
    "calibration_error_interval": "the number of samples",
    "calibration_bins": "counts",
    "calibration_bins, quantile": "counts",
    "decision_curve": "limits: the number of samples",
    "murphy_diagram": "limits: the number of samples",
    "accumulator": "n_samples_seen_",
    "integrated_calibration_index": "does not hold: below",
}
# A slope between outcomes that barely overlap is found to few digits.
TOLERANCE = dict.fromkeys(LOGISTIC, 1e-4)
CASES = [(name, notion) for name in METRICS for notion in NOTIONS if (name, notion) not in REFUSED]
pytestmark = pytest.mark.filterwarnings("ignore:Too few outcomes are uncertain:UserWarning")
every_metric = pytest.mark.parametrize("name", METRICS)


def without(table):
    return pytest.mark.parametrize("name", [name for name in METRICS if name not in table])


def notions(name, among=NOTIONS):
    """The notions that the metric takes."""
    return [notion for notion in among if (name, notion) in CASES]


def evaluate(name, notion, y, proba, **options):
    y, proba, question = ask(notion, y, proba)
    return METRICS[name](y, proba, **OPTIONS.get(name, {}), **{**question, **options})


def gap(name):
    return {"rtol": TOLERANCE.get(name, 1e-8), "atol": TOLERANCE.get(name, 1e-10)}


def test_every_public_metric_is_a_case_or_a_tool():
    assert {of(name) for name in METRICS} | set(TOOLS) == {*metrics.__all__, "accumulator"}
    assert {name for name, _ in CASES} == set(METRICS)
    for name in set(METRICS) - {"accumulator"}:
        parameters = inspect.signature(METRICS[name]).parameters
        options = {"notion", "sample_weight", "labels", "pos_label", "from_logits"}
        assert options <= set(parameters)
        assert list(parameters)[:2] == ["y_true", "y_proba"]


def test_notions_that_do_not_fit_are_refused_by_name():
    def check(case):
        with pytest.raises(ValueError, match=r"notion=|strategy="):
            evaluate(*case, *EDGE_CASES["certain or not"])

    for_each(sorted(REFUSED), check)


@every_metric
def test_edge_cases_are_finite(name):
    def check(case):
        notion, edge = case
        value = outcome(evaluate, name, notion, *EDGE_CASES[edge])
        if isinstance(value, str):
            assert name in PARTIAL or "too few samples" in value or "needs 2" in value, value
        elif of(name) != "calibration_bins":  # the mean of an empty bin is NaN
            assert np.isfinite(value).all()

    for_each([(notion, edge) for notion in notions(name) for edge in EDGE_CASES], check)


@every_metric
def test_inputs_are_not_changed_and_calls_repeat_to_the_bit(name, check):
    def holds(notion, sample, storage):
        y, proba = sample
        arrays = y, proba.astype(storage[0], order=storage[1]), np.ones(len(y)), np.array(CLASSES)
        before = state(*arrays)
        options = {} if notion == "binary" else {"labels": arrays[3]}
        one = outcome(evaluate, name, notion, *arrays[:2], sample_weight=arrays[2], **options)
        other = outcome(evaluate, name, notion, *arrays[:2], sample_weight=arrays[2], **options)
        assert state(*arrays) == before
        assert one == other if isinstance(one, str) else one.tobytes() == other.tobytes()

    storage = st.sampled_from([(np.float64, "C"), (np.float32, "F")])
    check(holds, notions(name), sample=samples(), storage=storage)


IN_ORDER = {f"{SKCE}, linear", f"{SKCE}, block"}


@without(IN_ORDER)
def test_the_order_of_the_samples_does_not_matter(name, check):
    def holds(notion, sample, seed):
        y, proba = sample
        order = np.random.default_rng(seed).permutation(len(y))
        one = outcome(evaluate, name, notion, y, proba)
        other = outcome(evaluate, name, notion, y[order], proba[order])
        assert_same_outcome(one, other, **gap(name))

    check(holds, notions(name), sample=samples(), seed=seeds)


# Locations are drawn for a class by its number; the rows of tables of classes change places.
# Ties of the largest variance go to the first class; folds are those of the sorted samples.
BY_CLASS = {
    "cross_fitted_calibration_error",
    "squared_mean_embedding_calibration_error",
    "calibration_bins",
    "calibration_bins, quantile",
    f"{ECE}, median-variance",
}


# A lens numbers classes; ties of the arg max and of ranks go to the first class.
SYMMETRIC = ("classwise", "canonical")


@pytest.mark.parametrize(
    "name", [name for name in METRICS if name not in BY_CLASS and notions(name, SYMMETRIC)]
)
def test_joint_relabelling_does_not_matter(name, check):
    def holds(notion, sample, order):
        y, proba = sample
        one = numbers(evaluate(name, notion, y, proba))
        other = numbers(evaluate(name, notion, NAMES[y], proba[:, order], labels=NAMES[order]))
        assert_allclose(other, one, rtol=1e-8, atol=1e-10)

    check(
        holds, notions(name, SYMMETRIC), sample=samples(), order=st.permutations(range(3)).map(list)
    )


@every_metric
def test_weight_zero_removes_a_sample(name, check):
    def holds(notion, sample, seed):
        y, proba = sample
        keep = np.random.default_rng(seed).random(len(y)) < 0.6
        keep[:2] = True
        one = outcome(evaluate, name, notion, y[keep], proba[keep])
        other = outcome(evaluate, name, notion, y, proba, sample_weight=keep)
        assert_same_outcome(one, other, **gap(name))

    check(holds, notions(name), sample=samples(at_least=4), seed=seeds)


@without(NOT_REPETITIONS)
def test_weight_two_repeats_a_sample(name, check):
    def holds(notion, sample, seed):
        y, proba = sample
        times = np.random.default_rng(seed).integers(1, 4, len(y))
        if notion == "top-label":  # leaving one out, a class needs two rows, of whatever weight
            y, proba, times = np.tile(y, 2), np.tile(proba, (2, 1)), np.tile(times, 2)
        one = outcome(evaluate, name, notion, y.repeat(times), proba.repeat(times, axis=0))
        other = outcome(evaluate, name, notion, y, proba, sample_weight=times)
        assert_same_outcome(one, other, **gap(name))

    check(holds, notions(name), sample=samples(), seed=seeds)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weight_two_repeats_a_sample_of_the_integrated_calibration_index():
    y, p, times = np.array([0, 0, 0, 0, 1]), np.array([0, 0, 0, 1, 2]) / 16, [3, 2, 2, 1, 1]
    index = metrics.integrated_calibration_index
    repeated = index(y.repeat(times), p.repeat(times))
    assert_allclose(index(y, p, sample_weight=times), repeated, rtol=1e-3)


OF_COUNTS = {
    "calibration_bins": "a bin's weight",
    "calibration_bins, quantile": "a bin's weight",
    f"{ECE}, median-variance": "samples in a cell",
    "cox_recalibration": "standard errors",
    "kernel_density_calibration_error": "one copy of a repeated row is left out",
    "kernel_density_calibration_error, squared": "the same",
}


@without(OF_COUNTS)
def test_the_scale_of_the_weights_does_not_matter(name, check):
    def holds(notion, sample, seed, scale):
        y, proba = sample
        weight = np.random.default_rng(seed).uniform(0.5, 2, len(y))
        one = outcome(evaluate, name, notion, y, proba, sample_weight=weight)
        other = outcome(evaluate, name, notion, y, proba, sample_weight=scale * weight)
        assert_same_outcome(one, other, **gap(name))

    scale = st.sampled_from([1e-9, 0.1, 1e9])
    check(holds, notions(name), sample=samples(), seed=seeds, scale=scale)


# Cox and log scores floor probabilities at the resolution of their dtype.
@every_metric
def test_float32_gives_the_float64_answer_where_both_are_exact(name, check):
    def holds(notion, sample):
        y, proba = sample
        one = outcome(evaluate, name, notion, y, proba)
        other = outcome(evaluate, name, notion, y, proba.astype(np.float32))
        if "log-loss" not in name or not np.isin(proba, (0, 1)).any():
            assert_same_outcome(one, other, rtol=max(1e-6, gap(name)["rtol"]), atol=1e-8)

    check(holds, notions(name), sample=samples())


FIT_TO_LOGITS = {
    "cross_fitted_calibration_error": "maps stop elsewhere: test_search_of_logits.py",
    "integrated_calibration_index": "logits of equal confidences differ by rounding, as knots do",
}


@without(FIT_TO_LOGITS)
def test_logits_give_the_answer_of_their_probabilities(name, check):
    def holds(notion, sample):
        y, proba = sample
        z = np.log((16 * proba + 1) / 19)
        y, z, question = ask(notion, y, z if notion != "binary" else z - z[:, [0]])
        proba = softmax(z, axis=1) if z.ndim == 2 else expit(z)
        options = {**OPTIONS.get(name, {}), **question}
        one = outcome(METRICS[name], y, proba, **options)
        other = outcome(METRICS[name], y, z, from_logits=True, **options)
        assert_same_outcome(one, other, rtol=max(1e-6, gap(name)["rtol"]), atol=1e-8)

    check(holds, notions(name), examples=4, sample=samples())


@pytest.mark.parametrize("name", sorted({name for name, notion in CASES if notion == "binary"}))
def test_the_positive_column_of_two_is_the_one_dimensional_form(name, check):
    def holds(sample):
        y, proba = sample
        call = partial(METRICS[name], **OPTIONS.get(name, {}), notion="binary")
        one = outcome(call, y, proba[:, 1])
        other = outcome(call, y, proba, labels=[0, 1])
        assert_same_outcome(one, other, rtol=1e-12, atol=0)

    check(holds, sample=samples(n_classes=2))


def test_only_the_unbiased_squared_kernel_error_is_negative(check):
    skce, lowest = metrics.squared_kernel_calibration_error, []

    def holds(sample):
        for notion in ("canonical", "confidence", "classwise"):
            y, proba, question = ask(notion, *sample)
            assert skce(y, proba, method="biased", **question) >= 0
            lowest.append(skce(y, proba, **question))

    check(holds, examples=5, sample=samples())
    assert min(lowest) < 0


@pytest.mark.parametrize("name", metrics.get_scorer_names())
def test_scorers_are_minus_the_metric_whatever_the_names_of_the_classes(name):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2 if "binary" in name or "index" in name else 3, 90)
    X = rng.normal(size=(90, 2)) + y[:, None]
    classifier = GaussianNB().fit(X, NAMES[y])
    metric, options = _SCORERS[name.removeprefix("neg_")]
    proba, classes = classifier.predict_proba(X), classifier.classes_
    if len(classes) == 2:
        proba = proba[:, 1]
    before = state(X)
    score = metrics.get_scorer(name)(classifier, X, NAMES[y])
    assert state(X) == before
    assert score == -metric(NAMES[y], proba, labels=classes, **options)
    order = rng.permutation(90)
    shuffled = metrics.get_scorer(name)(classifier, X[order], NAMES[y][order])
    assert_allclose(shuffled, score, rtol=1e-9)
    weight = rng.integers(0, 2, 90)
    kept = weight > 0
    weighted = metrics.get_scorer(name)(classifier, X, NAMES[y], sample_weight=weight)
    assert_allclose(weighted, metrics.get_scorer(name)(classifier, X[kept], NAMES[y][kept]))


def test_the_names_of_scorers_are_those_of_their_table():
    assert_array_equal(metrics.get_scorer_names(), sorted(f"neg_{name}" for name in _SCORERS))
