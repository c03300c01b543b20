"""Recalibration maps against their likelihoods."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.special import log_softmax, logit, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skcal import TemperatureScaling
from skcal.recalibration import (
    BetaCalibration,
    ClassBasedTemperatureScaling,
    InterceptCalibration,
    LogProbabilities,
    MatrixScaling,
    SplineScaling,
    VectorScaling,
)
from skcal.recalibration.features import PROBABILITY_FLOOR

MAPS = [
    TemperatureScaling(),
    ClassBasedTemperatureScaling(),
    InterceptCalibration(),
    VectorScaling(),
    MatrixScaling(),
    MatrixScaling(structured=True, tol=1e-10),
]
SCALAR_MAPS = [BetaCalibration(), SplineScaling()]
LOWEST = np.log(PROBABILITY_FLOOR)  # -36.04


def draw(rng, truth):
    return (truth.cumsum(axis=1) < rng.uniform(size=(len(truth), 1))).sum(axis=1)


def temper(truth, temperature):
    powered = truth**temperature
    return powered / powered.sum(axis=1, keepdims=True)


def log_loss(logits, y, weight=None):
    return -np.average(log_softmax(logits, axis=1)[np.arange(len(y)), y], weights=weight)


def with_weights(rng, n, weighted):
    return rng.integers(0, 4, n).astype(float) if weighted else np.ones(n)


# Log-probabilities


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_and_logits(rng, dtype):
    X = rng.dirichlet(np.ones(3), size=20).astype(dtype)
    transformed = LogProbabilities().fit_transform(X)
    assert transformed.dtype == np.float64
    assert_allclose(transformed, np.log(X.astype(float)), rtol=1e-15)
    scalar = LogProbabilities().fit_transform(X[:, :1])
    assert_allclose(scalar, logit(X[:, :1].astype(float)), rtol=1e-12, atol=1e-15)


def test_zero_and_one_are_finite_at_the_floor():
    X = np.array([[0.0, 1.0], [1e-300, 1.0], [PROBABILITY_FLOOR, 1 - PROBABILITY_FLOOR]])
    assert PROBABILITY_FLOOR == 2.0**-52
    assert_allclose(LogProbabilities().fit_transform(X)[:, 0], LOWEST, rtol=1e-15)
    assert_allclose(LogProbabilities().fit_transform(X)[:, 1], 0, atol=1e-15)
    scalar = LogProbabilities().fit_transform([[0.0], [0.5], [1.0]])
    assert_allclose(scalar[:, 0], [LOWEST, 0, -LOWEST], rtol=1e-15)


def test_logarithms_are_taken_of_probabilities_alone():
    with pytest.raises(ValueError, match=r"X row 1, column 0 is -0\.5, not a probability"):
        LogProbabilities().fit([[0.5], [-0.5]])
    fitted = LogProbabilities().fit([[0.5]])
    with pytest.raises(ValueError, match=r"X row 0, column 0 is 1\.5, not a probability"):
        fitted.transform([[1.5]])


def test_names_of_features_are_kept():
    fitted = LogProbabilities().fit([[0.5, 0.5]])
    assert_array_equal(fitted.get_feature_names_out(["a", "b"]), ["a", "b"])


# Temperature


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("true_temperature", [0.4, 1.0, 3.0])
def test_temperature_is_a_stationary_point_of_the_likelihood(rng, weighted, true_temperature):
    truth = rng.dirichlet(np.ones(3), size=300)
    X, y = temper(truth, true_temperature), draw(rng, truth)
    weight = with_weights(rng, 300, weighted)
    T = TemperatureScaling().fit(X, y, weight).temperature_
    logits = np.log(X)
    slope = weight @ (
        np.sum(softmax(logits / T, axis=1) * logits, axis=1) - logits[np.arange(300), y]
    )
    assert abs(slope) < 1e-9 * weight.sum()
    losses = [log_loss(logits / t, y, weight) for t in (0.99 * T, T, 1.01 * T)]
    assert losses[1] < min(losses[0], losses[2])


@pytest.mark.parametrize("max_temperature", [5.0, 100.0])
def test_separable_and_reversed_outcomes_hit_the_bounds(max_temperature):
    X = np.array([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]])
    fitted = TemperatureScaling(max_temperature).fit(X, [0, 1, 0])
    assert_allclose(fitted.temperature_, 1 / max_temperature, rtol=1e-12)
    fitted = TemperatureScaling(max_temperature).fit(X, [1, 0, 1])
    assert_allclose(fitted.temperature_, max_temperature, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 5, 7, 10])
def test_predictions_without_information_leave_the_temperature_at_one(n_classes):
    """Every temperature maps (1/C, …, 1/C) to itself, so the likelihood is flat."""
    X, y = np.full((4 * n_classes, n_classes), 1 / n_classes), np.arange(4 * n_classes) % n_classes
    assert TemperatureScaling().fit(X, y).temperature_ == 1


# Temperatures by predicted class


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_each_class_has_the_temperature_of_its_penalised_likelihood(rng, C, weighted):
    truth = rng.dirichlet(np.ones(3), size=300)
    X, y = temper(truth, np.where(truth.argmax(axis=1) == 0, 3.0, 0.7)[:, None]), draw(rng, truth)
    weight = with_weights(rng, 300, weighted)
    fitted = ClassBasedTemperatureScaling(C).fit(X, y, weight)
    T = TemperatureScaling().fit(X, y, weight).temperature_
    assert_allclose(fitted.temperature_, T, rtol=1e-12)
    for k in range(3):
        own = X.argmax(axis=1) == k

        def loss(scale, own=own):
            data = weight[own].sum() * log_loss(np.log(X[own]) * scale, y[own], weight[own])
            return data + (T * scale - 1) ** 2 / (2 * C)

        assert abs(approx_fprime([1 / fitted.temperatures_[k]], lambda s: loss(s[0]))[0]) < 1e-3
        best = loss(1 / fitted.temperatures_[k])
        assert best < min(
            loss(0.99 / fitted.temperatures_[k]), loss(1.01 / fitted.temperatures_[k])
        )


def test_a_class_that_is_never_predicted_keeps_the_common_temperature():
    X = np.array([[0.5, 0.3, 0.2], [0.6, 0.2, 0.2], [0.1, 0.7, 0.2], [0.2, 0.6, 0.2]])
    fitted = ClassBasedTemperatureScaling().fit(X, [0, 2, 1, 0])
    assert fitted.temperatures_[2] == fitted.temperature_
    assert fitted.temperatures_[0] != fitted.temperature_


# Vector scaling


def test_vector_scaling_that_does_not_converge_is_the_identity_and_says_so(rng):
    X = rng.dirichlet(np.ones(3), size=60)
    scaling = VectorScaling(C=10.0, max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"^VectorScaling.* not converge in 1 .*Lower C or"):
        scaling.fit(X, rng.integers(0, 3, 60))
    assert_allclose(scaling.predict_proba(X), X, rtol=1e-12)
    assert scaling.n_iter_ == 1


# Matrix scaling


@pytest.mark.parametrize(
    ("d", "solver"), [(1, "newton-cholesky"), (3, "newton-cholesky"), (31, "newton-cg")]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_matrix_scaling_is_logistic_regression_on_log_probabilities(rng, d, solver, weighted):
    X = rng.dirichlet(np.ones(max(d, 2)), size=150)
    y, weight = draw(rng, temper(X, 0.5)), with_weights(rng, 150, weighted)
    y[: max(d, 2)] = np.arange(max(d, 2))
    weight[: max(d, 2)] = 1.0
    X = X if d > 1 else X[:, 1:]
    features = np.log(X) if d > 1 else logit(X)
    logistic = LogisticRegression(C=0.1, solver=solver, max_iter=1000)
    kept = weight > 0
    logistic.fit(features[kept], y[kept], weight[kept])
    expected = logistic.predict_proba(features)
    assert_allclose(MatrixScaling(C=0.1).fit(X, y, weight).predict_proba(X), expected, 1e-6)


def test_matrix_scaling_gives_absent_classes_nothing_and_a_single_one_everything(rng):
    X = rng.dirichlet(np.ones(4), size=60)
    proba = MatrixScaling().fit(X, rng.choice([0, 2], 60)).predict_proba(X)
    assert_array_equal(proba[:, [1, 3]], 0)
    alone = MatrixScaling().fit(X, np.full(60, 3)).predict_proba(X)
    assert_array_equal(alone, np.tile(np.eye(4)[3], (60, 1)))


# All


@pytest.mark.parametrize("scaling", MAPS)
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.5, 0.5], [1.2, -0.2]], [0, 1], r"X row 1, column 0 is 1\.2, not a probability"),
        ([[0.5, 0.5], [0.2, 0.8], [0.1, 0.9]], [0, 1, 5], "y has 3 classes"),
        (
            [[0.5], [0.2]],
            ["a", "a"],
            r"y takes values in \['a'\].* single column X .*Pass y == positive class\.$",
        ),
        ([[0.5], [0.2]], [0.3, 0.6], r"arguments swapped\?.*Pass y == positive class\.$"),
        ([[0.5, 0.2, 0.3]] * 2, ["a", "b"], r"Pass y as column numbers of X, from 0, or"),
        ([[0.5, 0.5], [0.2, 0.8]], [0, 1, 1], "inconsistent numbers of samples"),
    ],
)
def test_impossible_predictions_and_labels_raise(scaling, X, y, message):
    with pytest.raises(ValueError, match=message):
        scaling.fit(X, y)


def test_logits_are_met_by_what_makes_them_probabilities():
    logits, y = np.array([[2.0, -1.0], [0.5, 1.5], [0.1, 0.3]]), [0, 1, 0]
    with pytest.raises(ValueError, match=r"pass scipy\.special\.softmax\(logits, axis=1\)\.$"):
        LogProbabilities().fit(logits)
    with pytest.raises(ValueError, match=r"pass scipy\.special\.expit\(logits\)\.$"):
        LogProbabilities().fit(logits[:, :1])
    for scaling in [*MAPS, *SCALAR_MAPS]:
        with pytest.raises(ValueError, match=r"logits.*or from_logits=True\.$"):
            scaling.fit(logits, y)
        clone(scaling).set_params(from_logits=True).fit(logits, y)


@pytest.mark.parametrize("estimator", [*MAPS, *SCALAR_MAPS], ids=str)
@pytest.mark.parametrize("y", [[0.5, 0.2, 0.7], [[0.5, 0.2, 0.3]] * 3])
def test_swapped_arguments_and_strings_are_recognised(estimator, y):
    with pytest.raises(ValueError, match=r"arguments swapped\?"):
        estimator.fit([0, 1, 1], y)
    with pytest.raises(
        ValueError, match=r"^X row 0, column 0 holds 'b'.*Are the arguments swapped"
    ):
        estimator.fit(np.array([["b"], ["a"]]), [0.5, 0.2])
    with pytest.raises(ValueError, match=r"X has shape \(3,\).*X\.reshape\(-1, 1\)"):
        LogProbabilities().fit([0.5, 0.2, 0.7])


@pytest.mark.parametrize("estimator", [*MAPS, *SCALAR_MAPS], ids=str)
def test_one_dimensional_predictions_of_several_columns_are_told_their_shape(estimator, rng):
    fitted = clone(estimator).fit(rng.dirichlet([1, 1], size=20), np.arange(20) % 2)
    message = r"X has shape \(5,\); .* was fitted on 2 columns\. Reshape your data: a row"
    with pytest.raises(ValueError, match=message):
        fitted.predict_proba(np.full(5, 0.5))


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), ("no", "yes")])
@pytest.mark.parametrize("estimator", [*MAPS, *SCALAR_MAPS], ids=str)
def test_binary_predictions_are_one_number_one_column_or_two_and_any_labels(estimator, labels, rng):
    p = rng.uniform(0.01, 0.99, 60)
    codes = (rng.uniform(size=60) < p**2).astype(int)
    y = np.array(labels)[codes]
    plain = clone(estimator).fit(p[:, None], codes).predict_proba(p[:, None])
    for X in (p, p.tolist(), p[:, None]):
        fitted = clone(estimator).fit(X, y)
        assert_array_equal(fitted.classes_, labels)
        assert_array_equal(fitted.predict_proba(X), plain)
        assert_array_equal(fitted.predict_proba(p), plain)
        assert set(fitted.predict(X)) <= set(labels)
    two = clone(estimator).fit(np.column_stack([1 - p, p]), y)
    assert_array_equal(two.classes_, labels)
    if estimator in SCALAR_MAPS:
        assert_allclose(two.predict_proba(np.column_stack([1 - p, p])), plain, rtol=1e-9)


@pytest.mark.parametrize("estimator", MAPS, ids=lambda estimator: type(estimator).__name__)
def test_sums_of_probabilities_that_round_above_1_are_read_as_1(estimator, rng):
    p, y = rng.uniform(size=(40, 1)), rng.integers(0, 2, 40)
    p[0], p[1] = 1 + 2.3e-16, -1e-17
    fitted = clone(estimator).fit(p, y)
    exact = clone(estimator).fit(np.clip(p, 0, 1), y)
    assert_allclose(fitted.predict_proba(p), exact.predict_proba(np.clip(p, 0, 1)), atol=1e-9)
