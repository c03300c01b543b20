"""Invariants that every metric must have; a new metric is covered by being listed here."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skcal import metrics

SCALAR = ("binary", "confidence", "classwise", "top-label")
ALL = (*SCALAR, "canonical")


def parts(function, *names):
    """Return a function that gives the named parts of a decomposition as an array."""
    return lambda *a, **k: np.array([getattr(function(*a, **k), name) for name in names])


def in_chunks(y, proba, *, sample_weight=None, **options):
    """ECE of chunks of four samples."""
    accumulator = metrics.CalibrationAccumulator(**options)
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    for start in range(0, len(y), 4):
        rows = slice(start, start + 4)
        accumulator.partial_fit(y[rows], proba[rows], weight[rows])
    return accumulator.expected_calibration_error()


ece = metrics.expected_calibration_error
skce = metrics.squared_kernel_calibration_error
brier = parts(metrics.brier_decomposition, "score", "reliability", "resolution", "uncertainty")
score = parts(metrics.score_decomposition, "score", "miscalibration", "discrimination")
table = parts(metrics.calibration_bins, "weight")

# Name: (metric, notions, whether a weight of 2 is a repeated row)
REGISTRY = {
    "ECE": (ece, ALL, True),
    "ECE in chunks": (in_chunks, SCALAR, True),
    "ECE, quantile": (partial(ece, strategy="quantile", n_bins=3), SCALAR, True),
    "ECE, sweep": (partial(ece, strategy="sweep"), SCALAR, True),
    "ECE, unique": (partial(ece, strategy="unique"), ALL, True),
    "ECE, median-variance": (
        partial(ece, strategy="median-variance", min_samples=2),
        ["canonical"],
        True,
    ),
    "RMS": (partial(ece, norm=2), ALL, True),
    "debiased": (partial(ece, norm=2, debias=True, root=False), ALL, False),
    "MCE": (metrics.maximum_calibration_error, ALL, True),
    "bins": (partial(table, strategy="quantile"), SCALAR, True),
    "SKCE, unbiased": (partial(skce, bandwidth=0.5), ("binary", "canonical", "classwise"), False),
    "SKCE, biased": (partial(skce, method="biased", bandwidth=0.5), ALL, True),
    "SKCE, median": (partial(skce, method="biased"), ALL, False),
    "MMCE": (metrics.maximum_mean_calibration_error, SCALAR, True),
    "UCME": (
        partial(metrics.mean_embedding_calibration_error, random_state=0, bandwidth=0.5),
        SCALAR,
        True,
    ),
    "smooth ECE": (metrics.smooth_calibration_error, SCALAR, True),
    "smooth ECE, fixed": (partial(metrics.smooth_calibration_error, bandwidth=0.1), SCALAR, True),
    "KS": (metrics.kolmogorov_smirnov_calibration_error, SCALAR, True),
    "Kuiper": (partial(metrics.kolmogorov_smirnov_calibration_error, kuiper=True), SCALAR, True),
    "KDE": (
        partial(metrics.kernel_density_calibration_error, bandwidth=0.1),
        ("binary", "confidence", "classwise", "canonical"),
        True,
    ),
    "cross-fitted": (
        partial(metrics.cross_fitted_calibration_error, random_state=0),
        ALL,
        False,
    ),
    "Brier": (brier, SCALAR, True),
    "Brier, bins": (partial(brier, strategy="uniform", n_bins=4), ALL, True),
    "log loss": (score, SCALAR, True),
    "sharpness": (metrics.sharpness, ALL, True),
}
CASES = [(name, notion) for name, (_, notions, _) in REGISTRY.items() for notion in notions]
OTHERS = {  # not functions of every sample: fits that need both outcomes, tools, scorers
    "CalibrationAccumulator",
    "bootstrap_interval",
    "calibration_intercept",
    "calibration_slope",
    "cox_recalibration",
    "get_scorer",
    "get_scorer_names",
    "integrated_calibration_index",
    "make_calibration_scorer",
}
every_case = pytest.mark.parametrize(("name", "notion"), CASES)
few = settings(max_examples=10, deadline=None)


def test_every_metric_is_listed():
    listed = set()
    for metric, _, _ in REGISTRY.values():
        cells = [metric.func if isinstance(metric, partial) else metric]
        while cells:
            function = cells.pop()
            listed.add(getattr(function, "__name__", ""))
            cells += [
                cell.cell_contents
                for cell in (getattr(function, "__closure__", None) or ())
                if callable(cell.cell_contents)
            ]
    assert set(metrics.__all__) - OTHERS <= listed


@st.composite
def samples(draw, n_classes=3, at_least=2):
    """Predictions in sixteenths, with 0, 1 and ties, and labels."""
    n = draw(st.integers(at_least, 12))
    cuts = draw(
        st.lists(
            st.lists(st.integers(0, 16), min_size=n_classes - 1, max_size=n_classes - 1),
            min_size=n,
            max_size=n,
        )
    )
    cuts = np.sort(np.array(cuts), axis=1)
    proba = np.diff(cuts, axis=1, prepend=0, append=16) / 16
    y = np.array(draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n)))
    return y, proba


def evaluate(name, notion, y, proba, **options):
    if notion == "binary":
        y, proba = (y == 1).astype(int), proba[:, 1]
    else:
        options.setdefault("labels", [0, 1, 2])
    return REGISTRY[name][0](y, proba, notion=notion, **options)


@every_case
@few
@given(sample=samples(), seed=st.integers(0, 100))
def test_the_order_of_the_samples_does_not_matter(name, notion, sample, seed):
    y, proba = sample
    order = np.random.default_rng(seed).permutation(len(y))
    first = evaluate(name, notion, y, proba)
    assert np.isfinite(first).all()
    assert_allclose(evaluate(name, notion, y[order], proba[order]), first, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "notion"),
    # Ties of the arg max, and of the largest variance, go to the first class; folds are those
    # of the sorted samples.
    [
        case
        for case in CASES
        if case[1] in ("classwise", "canonical")
        and case[0] not in ("UCME", "ECE, median-variance", "cross-fitted")
    ],
)
@few
@given(sample=samples(), seed=st.integers(0, 100))
def test_joint_relabelling_does_not_matter(name, notion, sample, seed):
    y, proba = sample
    order = np.random.default_rng(seed).permutation(3)
    names = np.array(["b", "c", "a"])
    first = evaluate(name, notion, y, proba)
    second = evaluate(name, notion, names[y], proba[:, order], labels=names[order])
    if name == "bins":  # a row a class
        first, second = np.sort(first), np.sort(second)
    assert_allclose(second, first, rtol=1e-8, atol=1e-10)


@every_case
@few
@given(sample=samples(at_least=4), data=st.data())
def test_weight_zero_removes_a_sample(name, notion, sample, data):
    y, proba = sample
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(y), max_size=len(y))))
    keep[:2] = True
    removed = evaluate(name, notion, y[keep], proba[keep])
    weighted = evaluate(name, notion, y, proba, sample_weight=keep.astype(float))
    assert_allclose(weighted, removed, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("name", "notion"), [case for case in CASES if REGISTRY[case[0]][2]])
@few
@given(sample=samples(), data=st.data())
def test_weight_two_repeats_a_sample(name, notion, sample, data):
    y, proba = sample
    count = np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(y), max_size=len(y))))
    repeated = evaluate(name, notion, y.repeat(count), proba.repeat(count, axis=0))
    weighted = evaluate(name, notion, y, proba, sample_weight=count)
    assert_allclose(weighted, repeated, rtol=1e-8, atol=1e-10)


@every_case
@few
@given(sample=samples())
def test_float32_equals_float64_where_both_are_exact(name, notion, sample):
    y, proba = sample
    double = evaluate(name, notion, y, proba)
    single = evaluate(name, notion, y, proba.astype(np.float32))
    # scikit-learn's log loss floors probabilities at the resolution of their dtype.
    if name != "log loss" or not np.isin(proba, (0, 1)).any():
        assert_allclose(single, double, rtol=1e-6, atol=1e-8)


@every_case
@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_one_distinct_prediction_is_finite(name, notion, value):
    proba = np.tile([value, 1 - value, 0.0], (5, 1))
    for y in (np.zeros(5, dtype=int), np.array([0, 1, 2, 1, 0])):
        assert np.isfinite(evaluate(name, notion, y, proba)).all()


@pytest.mark.parametrize(
    "name", [n for n, (_, notions, _) in REGISTRY.items() if "binary" in notions]
)
@few
@given(sample=samples(n_classes=2))
def test_the_positive_column_of_two_is_the_one_dimensional_form(name, sample):
    y, proba = sample
    metric = REGISTRY[name][0]
    first = metric(y, proba[:, 1], notion="binary")
    assert_allclose(metric(y, proba, notion="binary", labels=[0, 1]), first, rtol=1e-12, atol=0)
