"""CalibrationErrorEstimator computes what its definitions say, under every notion."""

import re

import numpy as np
import pytest
from notion_cases import every_notion
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    PlugIn,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)

FUNCTIONS = {
    "zero": Zero(),
    "binning": Binning(5),
    "debiased": Binning(5, debias=True),
    "density": DirichletKernelDensity(0.05),
    "kronecker": KroneckerKernelRidge(1e-4),
    "two-step": TwoStepKernelRidge(1e-3),
    "temperature": PlugIn(TemperatureScaling()),
}
HAVE_RESIDUAL = [FUNCTIONS[name] for name in FUNCTIONS if name not in ("kronecker", "debiased")]

every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


def naive_problems(proba, labels, notion):
    """Number, rows, features and residuals of every problem, one sample after the other."""
    if proba.ndim == 1:
        outcome = (labels == 1).astype(float)
        return [(0, np.arange(len(proba)), proba[:, None], (outcome - proba)[:, None])]
    n_classes = proba.shape[1]
    problems = {}
    for i, (p, y) in enumerate(zip(proba, labels, strict=True)):
        top = int(np.argmax(p))
        ranking = sorted(range(n_classes), key=lambda k: -p[k])
        if notion == "canonical":
            entries = [(0, p, np.eye(n_classes)[y])]
        elif notion == "confidence":
            entries = [(0, [p[top]], [y == top])]
        elif notion == "top-label":
            entries = [(top, [p[top]], [y == top])]
        elif notion == "classwise":
            entries = [(k, [p[k]], [y == k]) for k in range(n_classes)]
        elif notion == "top-2":
            first, second = ranking[:2]
            x = [p[first], p[second], sum(p[k] for k in ranking[2:])]
            entries = [(0, x, [y == first, y == second, y not in (first, second)])]
        else:
            entries = [(0, [p[0] + p[1], p[2] + p[3]], [y in (0, 1), y in (2, 3)])]
        for k, x, outcome in entries:
            problems.setdefault(k, []).append((i, x, np.array(outcome, float) - x))
    return [(k, *map(np.array, zip(*problems[k], strict=True))) for k in sorted(problems)]


def brute_force(estimator, proba, labels, notion, weight):
    """Risk by its definition over all pairs, and each sample's contribution to its deviation."""
    value, influence = 0.0, np.zeros(len(labels))
    for k, rows, x, residuals in naive_problems(proba, labels, notion):
        w = weight[rows]
        h = estimator.functions_[k].predict_pairs(x)
        pairs = np.outer(w, w) * ~np.eye(len(w), dtype=bool)
        loss = (residuals @ residuals.T - h) ** 2
        risk = np.sum(pairs * loss) / np.sum(pairs)
        share = w.sum() / weight.sum() if notion == "top-label" else 1.0
        own_mean = np.sum(pairs * loss, axis=1) / np.sum(pairs, axis=1)
        value += share * risk
        influence[rows] += share * 2 * w / w.sum() * (own_mean - risk)
    return value, np.sqrt(np.sum(influence**2))


@every_notion
@every_function
def test_predictions_risks_and_one_steps_are_those_of_their_definitions(
    split, rng, notion, function
):
    train, (proba, labels) = split(notion)
    estimator = CalibrationErrorEstimator(function, notion).fit(*train)
    h, total, saved = estimator.predict(proba), np.zeros(len(proba)), np.zeros(len(proba))
    with_residual = function in HAVE_RESIDUAL
    for k, rows, x, residuals in naive_problems(proba, labels, notion):
        total[rows] += np.diag(estimator.functions_[k].predict_pairs(x))
        if with_residual:  # what recalibrating saves of the Brier score
            left = residuals - estimator.functions_[k].residual(x)
            saved[rows] += np.sum(residuals**2, axis=1) - np.sum(left**2, axis=1)
    assert_allclose(h, total, rtol=1e-10, atol=1e-14)
    for weight in (None, rng.uniform(0, 3, len(labels))):
        given = np.ones(len(labels)) if weight is None else weight
        squared = estimator.squared_error(proba, weight)
        assert_allclose(squared, np.average(h, weights=given), rtol=1e-13)
        risk = estimator.risk(proba, labels, weight)
        value, standard_error = brute_force(estimator, proba, labels, notion, given)
        assert_allclose(risk.value, value, rtol=1e-11)
        assert_allclose(risk.standard_error, standard_error, rtol=1e-9)
        assert_allclose(estimator.score(proba, labels, weight), -risk.value, rtol=1e-12)
        assert risk.skipped == ()
    if with_residual:
        estimate = estimator.one_step(proba, labels)
        assert_allclose(estimate.terms, saved, rtol=1e-9, atol=1e-14)
        assert_allclose(estimate.value, saved.mean(), rtol=1e-9, atol=1e-14)
        expected = saved.std(ddof=1) / np.sqrt(len(saved))
        assert_allclose(estimate.standard_error, expected, rtol=1e-9)


def without_top(split, klass, keep_train, keep_test):
    """Keep only the first few samples whose most probable class is ``klass``."""
    parts = []
    for (proba, labels), keep in zip(split("top-label"), (keep_train, keep_test), strict=True):
        predicted = proba.argmax(axis=1) == klass
        kept = ~predicted | (np.cumsum(predicted) <= keep)
        parts.append((proba[kept], labels[kept]))
    return parts


@pytest.mark.parametrize("n_train", [0, 1])
@pytest.mark.parametrize("function", [KroneckerKernelRidge(), Binning(), DirichletKernelDensity()])
def test_top_label_has_h_0_for_a_class_predicted_less_than_twice(split, function, n_train):
    train, (proba, labels) = without_top(split, 2, n_train, 40)
    estimator = CalibrationErrorEstimator(function, "top-label").fit(*train)
    h = estimator.predict(proba)
    predicted = proba.argmax(axis=1) == 2
    assert_array_equal(h[predicted], 0.0)
    assert (h[~predicted] != 0).all()
    value, _ = brute_force(estimator, proba, labels, "top-label", np.ones(len(labels)))
    assert_allclose(estimator.score(proba, labels), -value, rtol=1e-11)


@pytest.mark.parametrize("n_test", [0, 1])
def test_top_label_reports_a_class_evaluated_less_than_twice_and_adds_no_risk(split, n_test):
    train, (proba, labels) = without_top(split, 2, 100, n_test)
    estimator = CalibrationErrorEstimator(Binning(5), "top-label").fit(*train)
    risk = estimator.risk(proba, labels)
    assert risk.skipped == (2,)
    value = 0.0
    for k, rows, x, residuals in naive_problems(proba, labels, "top-label"):
        if k != 2:
            value += len(rows) / len(labels) * estimator.functions_[k].risk(x, residuals).value
    assert_allclose(risk.value, value, rtol=1e-12)
    assert_array_equal(risk.influence[proba.argmax(axis=1) == 2], 0.0)


def test_top_label_risk_without_any_pair_is_an_error(split):
    train, (proba, labels) = split("top-label")
    one_a_class = np.unique(proba.argmax(axis=1), return_index=True)[1]
    estimator = CalibrationErrorEstimator(Binning(5), "top-label").fit(*train)
    with pytest.raises(ValueError, match="pairs"):
        estimator.score(proba[one_a_class], labels[one_a_class])


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Binning(5), Binning(5)),
        (DirichletKernelDensity(0.05), DirichletKernelDensity(0.05)),
        # ‖x - x'‖² is twice as large for two columns.
        (TwoStepKernelRidge(1e-3, gamma=1.0), TwoStepKernelRidge(1e-3, gamma=0.5)),
        (KroneckerKernelRidge(1e-4, gamma=1.0), KroneckerKernelRidge(1e-4, gamma=0.5)),
        (PlugIn(TemperatureScaling()), PlugIn(TemperatureScaling())),
    ],
    ids=["binning", "density", "two-step", "kronecker", "temperature"],
)
def test_canonical_error_of_two_columns_is_twice_the_binary_error(split, one, two):
    (p, y), (q, z) = split("binary")
    binary = CalibrationErrorEstimator(one, "canonical").fit(p, y)
    assert binary.notion_ == "binary"
    canonical = CalibrationErrorEstimator(two, "canonical").fit(np.column_stack([1 - p, p]), y)
    columns = np.column_stack([1 - q, q])
    # Only the pivots of the two factors differ, within their trace tolerance of 1e-8.
    assert_allclose(canonical.predict(columns), 2 * binary.predict(q), rtol=1e-5, atol=1e-9)
    assert_allclose(canonical.score(columns, z), 4 * binary.score(q, z), rtol=1e-6)


@pytest.mark.parametrize("notion", ["canonical", "confidence", "top-label", "binary"])
def test_logits_are_read_through_the_softmax(split, rng, notion):
    (_, labels), (_, test_labels) = split(notion)
    if notion == "binary":
        logits, more, squash = 3 * rng.normal(size=400), 3 * rng.normal(size=150), expit
    else:
        logits, more = 3 * rng.normal(size=(400, 4)), 3 * rng.normal(size=(150, 4))

        def squash(values):
            return softmax(values, axis=1)

    function = TwoStepKernelRidge(1e-3)
    one = CalibrationErrorEstimator(function, notion, from_logits=True).fit(logits, labels)
    two = CalibrationErrorEstimator(function, notion).fit(squash(logits), labels)
    assert_allclose(one.predict(more), two.predict(squash(more)), rtol=1e-12)
    assert_allclose(one.score(more, test_labels), two.score(squash(more), test_labels), rtol=1e-12)


@every_function
def test_one_step_exists_where_the_function_is_a_plug_in(split, function):
    estimator = CalibrationErrorEstimator(function, "confidence")
    expected = function in HAVE_RESIDUAL
    assert hasattr(estimator, "one_step") == expected
    assert hasattr(estimator.fit(*split("confidence")[0]), "one_step") == expected


def test_a_missing_one_step_says_why(split):
    fitted = CalibrationErrorEstimator(notion="confidence").fit(*split("confidence")[0])
    with pytest.raises(AttributeError) as caught:
        fitted.one_step(*split("confidence")[1])
    assert re.match(r"KroneckerKernelRidge has no residual.* TwoStep", str(caught.value.__cause__))


def test_the_default_function_is_kronecker_kernel_ridge(split):
    train, test = split("canonical")
    one = CalibrationErrorEstimator(notion="canonical").fit(*train)
    other = CalibrationErrorEstimator(KroneckerKernelRidge(), notion="canonical").fit(*train)
    assert one.score(*test) == other.score(*test)


@pytest.mark.parametrize("name", ["binning", "density", "temperature", "kronecker"])
def test_a_lens_whose_group_holds_all_the_mass_is_still_a_probability(name):
    P = np.array([[0.20, 0.40, 0.17, 0.23], [0.1, 0.2, 0.4, 0.3], [0.4, 0.2, 0.2, 0.2]])
    assert sum(P[0]) > 1  # by one rounding
    y = np.array([1, 0, 3])

    def unlikely(proba):
        return (proba < 0.15).astype(int)

    estimator = CalibrationErrorEstimator(FUNCTIONS[name], unlikely).fit(P, y)
    assert np.isfinite(estimator.predict(P)).all()
    assert np.isfinite(estimator.score(P, y))


@pytest.mark.parametrize("name", ["binning", "density", "temperature", "kronecker"])
def test_a_lens_may_leave_its_last_group_empty_in_evaluation(split, name):
    (P, y), (Q, z) = split("canonical")

    def unlikely(proba):
        return (proba < 0.05).astype(int)

    without = (Q >= 0.05).all(axis=1)
    assert np.count_nonzero(without) >= 5
    estimator = CalibrationErrorEstimator(FUNCTIONS[name], unlikely).fit(P, y)
    # A sample's own estimate does not depend on the samples beside it.
    assert_allclose(estimator.predict(Q[without]), estimator.predict(Q)[without], rtol=1e-9)
    assert np.isfinite(estimator.score(Q[without], z[without]))


@pytest.mark.parametrize("notion", ["canonical", "binary"])
def test_float32_predictions_give_the_float64_answer(split, notion):
    (P, y), (Q, z) = split(notion, 200, 80)
    P, Q = P.astype(np.float32), Q.astype(np.float32)
    for function in FUNCTIONS.values():
        single, double = (
            CalibrationErrorEstimator(function, notion).fit(X, y) for X in (P, P.astype(np.float64))
        )
        # Only residuals are rounded to float32: 6e-8 each, amplified by at most 1 / sqrt(alpha).
        expected = double.squared_error(Q.astype(np.float64))
        assert_allclose(single.squared_error(Q), expected, rtol=1e-4, atol=1e-7)
        assert_allclose(single.score(Q, z), double.score(Q.astype(np.float64), z), rtol=1e-5)
