"""Invariants of every public metric with its defaults; a new metric is covered by being public."""

import inspect
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from each_case import for_each
from numpy.testing import assert_allclose, assert_array_equal
from property_cases import (
    CLASSES,
    EDGE_CASES,
    NAMES,
    NOTIONS,
    SCALAR,
    SINGLE,
    VECTORS,
    ask,
    assert_same_outcome,
    numbers,
    orders,
    outcome,
    samples,
    seeds,
    state,
)
from scipy.special import expit, softmax
from sklearn.naive_bayes import GaussianNB

from skcal import CalibrationTable, metrics
from skcal.metrics.scorers import _SCORERS
from skcal.notions import NOTIONS as notions_of_skcal

# What is called like a metric and is none.
TOOLS = {
    "flexible_calibration_curve": "curves of one outcome: tests/metrics/test_curve.py",
    "shifted_calibration_error": "needs samples of the target: tests/metrics/test_shifted.py",
    "validation_measures": "draws resamples, needs both outcomes: tests/metrics/test_curve.py",
}


def counted(y_true, y_proba, *, sample_weight=None, from_logits=False, **options):
    """Binned numbers of a table that is given all samples."""
    table = CalibrationTable(**options)
    table.update(y_true, y_proba, sample_weight=sample_weight, from_logits=from_logits)
    errors = metrics.expected_calibration_error(table), metrics.maximum_calibration_error(table)
    return [*errors, table.n_samples_seen_]


def parameters(thing):
    return list(inspect.signature(thing).parameters)


METRICS = {
    name: getattr(metrics, name)
    for name in metrics.__all__
    if parameters(getattr(metrics, name))[:2] == ["y_true", "y_proba"] and name not in TOOLS
}
METRICS["CalibrationTable"] = counted


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is not as for every other metric, with the reason that the docstring gives."""

    options: dict = field(default_factory=dict)  # such that it covers small samples at all
    notions: tuple = NOTIONS  # that it takes
    undefined: bool = False  # refuses samples of one outcome, or that a threshold parts
    rows: str = ""  # why the order of the samples matters
    classes: str = ""  # why the numbers of the classes matter
    copies: str = ""  # why weight 2 is not two copies of a sample
    scale: str = ""  # why the scale of the weights matters
    logits: str = ""  # why logits give other digits than their probabilities
    tolerance: float = 1e-10
    times: int = 1  # that every sample is passed, such that it covers small samples at all


ECE, SKCE = "expected_calibration_error", "squared_kernel_calibration_error"
PAIRS = {"copies": "a U-statistic of pairs of samples"}
COUNTS = {"copies": "counts", "classes": "a row for each class", "scale": "a bin's weight"}
LOGISTIC = {
    "notions": SINGLE,
    "undefined": True,
    "tolerance": 1e-4,  # a slope between outcomes that barely overlap is found to few digits
    "times": 5,  # there is no slope of fewer events
}
LIMITS = {"notions": SINGLE, "copies": "limits: the number of samples"}
GIVEN = tuple(name for name, notion in notions_of_skcal.items() if notion.of_given_classes)
DENSITY = {"scale": "one copy of a repeated row is left out"}
# A metric without exceptions needs no entry. After a comma: options that take another path.
FACTS = {
    "CalibrationTable": Facts(notions=SCALAR, copies="n_samples_seen_"),
    "calibration_bins": Facts(**COUNTS),
    "calibration_bins, quantile": Facts(options={"strategy": "quantile"}, notions=SCALAR, **COUNTS),
    "binned_rms_error_interval": Facts(notions=SCALAR, copies="the number of samples"),
    "calibration_error": Facts(notions=SCALAR, copies="the number of samples"),
    "calibration_intercept": Facts(**LOGISTIC),
    "calibration_slope": Facts(**LOGISTIC),
    "cox_recalibration": Facts(**LOGISTIC, copies="limits: what weights are worth"),
    "cross_fitted_calibration_error": Facts(
        options={"cv": 3, "random_state": 0},
        classes="folds are those of the sorted samples",
        copies="copies may fall into different folds, and form pairs",
        logits="maps stop elsewhere: test_search_of_logits.py",
    ),
    "decision_curve": Facts(**LIMITS),
    "murphy_diagram": Facts(**LIMITS),
    "net_benefit": Facts(notions=SINGLE),
    f"{ECE}, quantile": Facts(options={"strategy": "quantile", "n_bins": 3}, notions=SCALAR),
    f"{ECE}, sweep": Facts(options={"strategy": "sweep"}, notions=SCALAR),
    f"{ECE}, unique": Facts(options={"strategy": "unique"}),
    f"{ECE}, median-variance": Facts(
        options={"strategy": "median-variance", "min_samples": 2},
        notions=VECTORS,
        classes="ties of the largest variance go to the first class",
        scale="samples in a cell",
    ),
    f"{ECE}, norm 1.5": Facts(options={"norm": 1.5, "n_bins": 3}),
    f"{ECE}, largest": Facts(options={"norm": np.inf}),
    f"{ECE}, debiased": Facts(
        options={"norm": 2, "debias": True, "root": False}, copies="the number of samples"
    ),
    f"{ECE}, debiased by labels": Facts(
        options={"norm": 2, "debias": "labels", "root": False, "n_bins": 4},
        copies="the number of samples",
    ),
    "cutoff_calibration_error": Facts(notions=SCALAR),
    "integrated_calibration_index": Facts(
        notions=SINGLE,
        undefined=True,
        copies="holds to few digits: below",
        logits="logits of equal confidences differ by rounding, as knots do",
    ),
    "kernel_density_calibration_error": Facts(options={"bandwidth": 0.1}, **DENSITY),
    "kernel_density_calibration_error, squared": Facts(
        options={"norm": 2, "bandwidth": 0.1}, **DENSITY
    ),
    "kolmogorov_smirnov_calibration_error": Facts(notions=SCALAR),
    "maximum_calibration_error, quantile": Facts(
        options={"strategy": "quantile", "n_bins": 3}, notions=SCALAR
    ),
    "maximum_mean_calibration_error": Facts(notions=SCALAR),
    "refinement_loss": Facts(
        options={"cv": 2},
        notions=GIVEN,
        rows="folds are drawn by the order of the rows",
        copies="copies may fall into different folds",
        logits="maps stop elsewhere",
        times=4,  # such that every training part has every class
    ),
    "score_decomposition": Facts(notions=SCALAR),
    "score_decomposition, log-loss": Facts(options={"score": "log-loss"}, notions=SCALAR),
    "score_decomposition, bins": Facts(options={"strategy": "uniform", "n_bins": 4}),
    "score_decomposition, log-loss in groups": Facts(
        options={"score": "log-loss", "strategy": "unique"}
    ),
    "smooth_calibration_error": Facts(notions=SCALAR),
    "smooth_calibration_error, fixed": Facts(options={"bandwidth": 0.1}, notions=SCALAR),
    SKCE: Facts(options={"bandwidth": 0.5}, **PAIRS),
    f"{SKCE}, biased": Facts(options={"method": "biased", "bandwidth": 0.5}),
    f"{SKCE}, linear": Facts(
        options={"method": "linear", "bandwidth": 0.5}, rows="pairs of consecutive rows", **PAIRS
    ),
    f"{SKCE}, block": Facts(
        options={"method": "block", "bandwidth": 0.5}, rows="blocks of consecutive rows", **PAIRS
    ),
    f"{SKCE}, rbf": Facts(options={"kernel": "rbf", "bandwidth": 0.5}, **PAIRS),
    f"{SKCE}, median": Facts(options={"method": "biased"}, copies="a median of pairs"),
    "squared_mean_embedding_calibration_error": Facts(
        options={"random_state": 0, "bandwidth": 0.5},
        classes="locations are drawn for a class by its number",
    ),
}
FACTS = dict.fromkeys(METRICS, Facts()) | FACTS


def of(name):
    """The metric whose variant this is."""
    return name.partition(", ")[0]


CASES = [(name, notion) for name, facts in FACTS.items() for notion in facts.notions]
REFUSED = sorted({(name, notion) for name in FACTS for notion in NOTIONS} - {*CASES})
pytestmark = [
    pytest.mark.filterwarnings("ignore:Too few outcomes are uncertain:UserWarning"),
    pytest.mark.filterwarnings("ignore:The calibration slope of all predictions:UserWarning"),
    pytest.mark.filterwarnings("ignore:The log loss is infinite:UserWarning"),
]
every_metric = pytest.mark.parametrize("name", FACTS)


def without(fact):
    return pytest.mark.parametrize(
        "name", [name for name, facts in FACTS.items() if not getattr(facts, fact)]
    )


def notions(name):
    """The notions that the metric takes."""
    return FACTS[name].notions


def ask_metric(name, y, proba, **options):
    return METRICS[of(name)](y, proba, **{**FACTS[name].options, **options})


def evaluate(name, notion, y, proba, **options):
    y, proba, question = ask(notion, y, proba)
    if (times := FACTS[name].times) > 1:
        y, proba = (np.concatenate([values] * times) for values in (y, proba))
        if "sample_weight" in options:
            options["sample_weight"] = np.tile(options["sample_weight"], times)
    return ask_metric(name, y, proba, **{**question, **options})


def gap(name):
    return {"rtol": max(1e-8, FACTS[name].tolerance), "atol": FACTS[name].tolerance}


def test_facts_are_of_public_metrics_which_take_what_every_metric_takes():
    assert {of(name) for name in FACTS} == set(METRICS)
    for name in set(METRICS) - {"CalibrationTable"}:
        options = {"notion", "sample_weight", "labels", "pos_label", "from_logits"}
        assert options <= set(parameters(METRICS[name]))


def test_notions_that_do_not_fit_are_refused_by_name():
    def check(case):
        with pytest.raises(ValueError, match=r"notion=|notion is|strategy="):
            evaluate(*case, *EDGE_CASES["certain or not"])

    for_each(REFUSED, check)


@pytest.mark.filterwarnings("ignore:All predictions in y_proba are 0 or 1")
@every_metric
def test_edge_cases_are_finite(name):
    def check(case):
        notion, edge = case
        value = outcome(evaluate, name, notion, *EDGE_CASES[edge])
        if isinstance(value, str):
            assert FACTS[name].undefined or "too few samples" in value or "needs 2" in value, value
        elif of(name) != "calibration_bins":  # the mean of an empty bin is NaN
            assert np.isfinite(value).all()

    for_each([(notion, edge) for notion in notions(name) for edge in EDGE_CASES], check)


# A lens numbers classes; ties of the arg max and of ranks go to the first class.
SYMMETRIC = ("classwise", "canonical")


@every_metric
def test_the_same_samples_told_in_another_way_give_the_same_number(name, check):
    """Again, in single precision, in another order and under other names; nothing is changed."""
    facts = FACTS[name]

    def holds(notion, sample, seed, order):
        y, proba = sample
        one = outcome(evaluate, name, notion, y, proba)
        arrays = y, proba.astype(np.float32, order="F"), np.ones(len(y)), np.array(CLASSES)
        before, options = state(*arrays), {} if notion == "binary" else {"labels": arrays[3]}
        single, again = (
            outcome(evaluate, name, notion, *arrays[:2], sample_weight=arrays[2], **options)
            for _ in "ab"
        )
        assert state(*arrays) == before
        assert again == single if isinstance(single, str) else again.tobytes() == single.tobytes()
        # Cox and log scores floor probabilities at the resolution of their dtype.
        if "log-loss" not in name or not np.isin(proba, (0, 1)).any():
            assert_same_outcome(one, single, rtol=max(1e-6, gap(name)["rtol"]), atol=1e-8)
        rows = np.random.default_rng(seed).permutation(len(y))
        if not facts.rows:
            moved = outcome(evaluate, name, notion, y[rows], proba[rows])
            assert_same_outcome(one, moved, **gap(name))
        if not facts.classes and notion in SYMMETRIC:
            renamed = evaluate(name, notion, NAMES[y], proba[:, order], labels=NAMES[order])
            assert_allclose(numbers(renamed), one, rtol=1e-8, atol=1e-10)

    check(holds, notions(name), sample=samples(), seed=seeds, order=orders)


@every_metric
def test_weight_zero_removes_a_sample_and_the_scale_of_weights_does_not_matter(name, check):
    def holds(notion, sample, seed):
        y, proba = sample
        rng = np.random.default_rng(seed)
        keep, weight = rng.random(len(y)) < 0.6, rng.uniform(0.5, 2, len(y))
        keep[:2] = True
        one = outcome(evaluate, name, notion, y[keep], proba[keep], sample_weight=weight[keep])
        scaled = (1 if FACTS[name].scale else 1e-9) * weight * keep
        other = outcome(evaluate, name, notion, y, proba, sample_weight=scaled)
        assert_same_outcome(one, other, **gap(name))

    check(holds, notions(name), sample=samples(at_least=4), seed=seeds)


@pytest.mark.filterwarnings("ignore:All predictions in y_proba are 0 or 1")
@without("copies")
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


@without("logits")
def test_logits_give_the_answer_of_their_probabilities(name, check):
    def holds(notion, sample):
        y, proba = sample
        z = np.log((16 * proba + 1) / 19)
        y, z, question = ask(notion, y, z if notion != "binary" else z - z[:, [0]])
        of_classes = z.ndim == 2 and notion != "multi-label"
        proba = softmax(z, axis=1) if of_classes else expit(z)
        one = outcome(ask_metric, name, y, proba, **question)
        other = outcome(ask_metric, name, y, z, from_logits=True, **question)
        if FACTS[name].undefined and isinstance(one, str) != isinstance(other, str):
            return  # rounding parts equal confidences, so that a threshold separates or not
        assert_same_outcome(one, other, rtol=max(1e-6, gap(name)["rtol"]), atol=1e-8)

    check(holds, notions(name), sample=samples())


@pytest.mark.parametrize("name", sorted({name for name, notion in CASES if notion == "binary"}))
def test_the_positive_column_of_two_is_the_one_dimensional_form(name, check):
    def holds(sample):
        y, proba = (np.concatenate([values] * FACTS[name].times) for values in sample)
        call = partial(ask_metric, name, notion="binary")
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
    order = np.arange(90) if FACTS.get(metric.__name__, Facts()).rows else rng.permutation(90)
    shuffled = metrics.get_scorer(name)(classifier, X[order], NAMES[y][order])
    assert_allclose(shuffled, score, rtol=1e-9)
    weight = rng.integers(0, 2, 90)
    kept = weight > 0
    weighted = metrics.get_scorer(name)(classifier, X, NAMES[y], sample_weight=weight)
    assert_allclose(weighted, metrics.get_scorer(name)(classifier, X[kept], NAMES[y][kept]))


def test_the_names_of_scorers_are_those_of_their_table():
    assert_array_equal(metrics.get_scorer_names(), sorted(f"neg_{name}" for name in _SCORERS))
