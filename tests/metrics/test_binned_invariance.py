"""What changes no binned error, and the extremes of the input."""

from functools import partial

import numpy as np
import pytest
from naive_bins import FORMS, continuous
from numpy.testing import assert_allclose

from skcal.metrics import (
    expected_calibration_error,
    maximum_calibration_error,
)

every_form = pytest.mark.parametrize(("notion", "strategy"), FORMS)
ERRORS = [
    {"norm": 1},
    {"norm": 1.5},
    {"norm": 2},
    {"norm": np.inf},
    {"norm": 2, "debias": "labels"},
    {"norm": 2, "debias": True},
]
TOLERANCE = {"rtol": 1e-10, "atol": 1e-13}


def errors(y, proba, **options):
    options = {"n_bins": 7, "min_samples": 5, **options}
    values = [
        expected_calibration_error(y, proba, root=False, **kind, **options) for kind in ERRORS
    ]
    return np.array([*values, maximum_calibration_error(y, proba, **options)])


def draw(rng, notion):
    n_classes = 2 if notion == "binary" else 4
    proba, _ = continuous(rng, n_classes, np.float64)
    return proba, rng.integers(0, n_classes, len(proba))


# Invariants


@pytest.mark.parametrize("notion", ["top-label", "classwise"])
def test_errors_of_classes_follow_their_names(rng, notion):
    proba, y = draw(rng, notion)  # where the arg max has no ties
    order, names = rng.permutation(4), np.array(["b", "d", "a", "c"])
    error = partial(expected_calibration_error, notion=notion, average=None)
    renamed = error(names[y], proba[:, order], labels=names[order])
    assert_allclose(renamed, error(y, proba)[order], **TOLERANCE)


def test_debiasing_of_weighted_samples_is_the_mean_over_pairs(rng):
    """The mean of δ_i δ_j over pairs i ≠ j of a bin, each with weight w_i w_j."""
    p, y, weight = rng.uniform(size=50), rng.integers(0, 2, 50), rng.uniform(0.5, 2, 50)
    expected = 0.0
    for left in (0, 0.5):
        inside = (left < p) & (p <= left + 0.5)
        w, residual = weight[inside], (y - p)[inside]
        pairs = np.outer(w, w)
        np.fill_diagonal(pairs, 0)
        expected += w.sum() / weight.sum() * (residual @ pairs @ residual) / pairs.sum()
    options = {"norm": 2, "debias": True, "root": False, "n_bins": 2}
    squared = expected_calibration_error(y, p, sample_weight=weight, **options)
    assert_allclose(squared, expected, rtol=1e-12)


def test_many_float32_rows_are_summed_in_double_precision(rng):
    p = rng.uniform(size=200_000).astype(np.float32)
    y = (rng.uniform(size=len(p)) < p**2).astype(int)
    single, double = (expected_calibration_error(y, x) for x in (p, p.astype(float)))
    assert_allclose(single, double, rtol=1e-9)  # torchmetrics 1.9 is off by 3e-5


# One column and two


@pytest.mark.parametrize("strategy", ["uniform", "unique"])
def test_two_columns_count_each_residual_twice(rng, strategy):
    proba, y = draw(rng, "binary")
    one, options = proba[:, 1], {"strategy": strategy, "n_bins": 7}
    [squared, debiased] = (
        expected_calibration_error(y, one, norm=2, debias=debias, root=False, **options)
        for debias in (False, True)
    )
    for notion in ("canonical", "classwise"):
        # A question about one column is the binary one.
        assert_allclose(errors(y, one, notion=notion, **options), errors(y, one, **options))
        for debias, expected in ((False, squared), (True, debiased)):
            kind = {"notion": notion, "norm": 2, "debias": debias, "root": False}
            twice = expected_calibration_error(y, proba, **kind, **options)
            assert_allclose(twice, 2 * expected, rtol=1e-10, atol=1e-15)
    plain = expected_calibration_error(y, one, **options)
    classwise, macro, canonical = (
        expected_calibration_error(y, proba, notion=notion, average=average, **options)
        for notion, average in (("classwise", "sum"), ("classwise", "macro"), ("canonical", "sum"))
    )
    # The total variation is half the sum of both.
    assert_allclose([classwise / 2, macro, canonical], plain, rtol=1e-10)


def test_probability_of_the_positive_class_and_confidence_are_two_metrics():
    """Each is 0 where the other is not."""
    p, y = np.repeat([0.25, 0.75], 4), [1, 0, 0, 0, 0, 1, 1, 1]
    two = np.column_stack([1 - p, p])
    assert expected_calibration_error(y, p) == 0
    assert expected_calibration_error(y, two, notion="confidence") == 0
    y = [1, 1, 0, 0, 1, 1, 1, 1]  # 1/4 too seldom below, 1/4 too often above
    assert expected_calibration_error(y, p) == 0.25
    assert expected_calibration_error(y, two, notion="confidence") == 0
    assert expected_calibration_error(y, two) == 0.25  # auto


# Extremes


@pytest.mark.filterwarnings("ignore:All predictions in")
@every_form
def test_zeros_and_ones_are_finite_and_all_or_nothing(notion, strategy):
    n_classes = 2 if notion == "binary" else 3
    predicted = np.arange(30) % n_classes
    proba = np.eye(n_classes, dtype=np.float32)[predicted]
    for n_bins in (1, 9):
        options = {"notion": notion, "strategy": strategy, "n_bins": n_bins}
        right = errors(predicted, proba, **options)
        assert right[4] <= 0  # the variance of labels is not that of their residuals
        assert_allclose(np.delete(right, 4), 0, atol=1e-15)
        wrong = errors((predicted + 1) % n_classes, proba, **options)
        assert np.isfinite(wrong).all()
        if notion in ("confidence", "top-label"):
            assert_allclose(wrong, 1)
        if notion == "canonical" and strategy != "median-variance" and n_bins > 1:
            assert_allclose(wrong, [1, 2**0.75, 2, 1, 2, 2, 1])  # all mass is on the wrong class


@pytest.mark.parametrize("strategy", ["uniform", "quantile", "sweep", "unique"])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 5])
def test_one_distinct_prediction_has_one_gap(strategy, p, n):
    for hits in range(n + 1):
        gap = abs(hits / n - p)
        variance = hits / n * (1 - hits / n) / max(n - 1, 1)
        debiased = gap**2 - variance if n > 1 else 0  # one sample has no pairs
        expected = [gap, gap**1.5, gap**2, gap, debiased, debiased, gap]
        y = (np.arange(n) < hits).astype(int)
        assert_allclose(errors(y, np.full(n, p), strategy=strategy), expected, atol=1e-15)
