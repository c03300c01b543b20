"""Maps with many parameters against an independent minimiser of their penalised likelihood."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import BSpline
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skcal import TemperatureScaling
from skcal.metrics import cox_recalibration
from skcal.recalibration import (
    BetaCalibration,
    DirichletCalibration,
    InterceptCalibration,
    MatrixScaling,
    QuadraticScaling,
    SplineScaling,
    VectorScaling,
    likelihood,
)
from skcal.recalibration.likelihood import Affine, ClassByClass

FLOOR = 2.0**-52
COORDINATES = ["probability", "square-root", "log", "log-ratio"]
SCALAR = [
    *(MatrixScaling(structured=True, coordinates=name, tol=1e-10) for name in COORDINATES),
    SplineScaling(n_knots=4, tol=1e-10),
    BetaCalibration(tol=1e-10),
    QuadraticScaling(tol=1e-10),
]
VECTOR = [*SCALAR[:4], DirichletCalibration(C_intercept=0.3, C_diagonal=50.0, tol=1e-10)]
CASES = [(scaling, 1) for scaling in SCALAR] + [(scaling, d) for scaling in VECTOR for d in (2, 3)]
every_case = pytest.mark.parametrize(
    ("scaling", "d"), CASES, ids=lambda v: v if isinstance(v, int) else name_of(v)
)


def name_of(scaling):
    return f"{type(scaling).__name__}-{getattr(scaling, 'coordinates', '')}"


def sample(rng, n, d, temperature=1.7):
    """Overconfident predictions of which one class is further off, and labels."""
    truth = rng.dirichlet(np.full(max(d, 2), 0.8), size=n)
    y = (truth.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)
    powered = truth**temperature * (1 + np.eye(max(d, 2))[0])
    X = powered / powered.sum(axis=1, keepdims=True)
    return (X[:, 1:] if d == 1 else X), y


def features_of(scaling, X):
    """f(p), written once more."""
    x = X[:, 0]
    if isinstance(scaling, BetaCalibration):
        return np.column_stack([np.log(x), -np.log(1 - x)])
    if isinstance(scaling, QuadraticScaling):
        return np.column_stack([logit(x), logit(x) ** 2])
    if isinstance(scaling, DirichletCalibration):
        return np.log(X)
    if isinstance(scaling, SplineScaling):
        quantiles = np.quantile(
            x, np.arange(1, scaling.n_knots - 1) / (scaling.n_knots - 1), method="inverted_cdf"
        )
        knots = np.concatenate([[x.min()], quantiles, [x.max()]])
        steps = np.arange(1, 4)
        before = knots[0] - steps[::-1] * (knots[1] - knots[0])
        after = knots[-1] + steps * (knots[-1] - knots[-2])
        return BSpline.design_matrix(x, np.concatenate([before, knots, after]), 3).toarray()
    if scaling.coordinates == "probability":
        return X
    if scaling.coordinates == "square-root":
        return np.sqrt(np.column_stack([x, 1 - x]) if X.shape[1] == 1 else X)
    if X.shape[1] == 1:
        return logit(X)
    ratio = scaling.coordinates == "log-ratio"
    return np.log(X) - (np.log(X).mean(axis=1, keepdims=True) if ratio else 0)


def offset_of(scaling, X, y, weight):
    if isinstance(scaling, BetaCalibration | DirichletCalibration):
        T = 1.0
    else:
        T = TemperatureScaling().fit(X, y, weight).temperature_
    both = np.hstack([np.zeros_like(X), logit(X)]) if X.shape[1] == 1 else np.log(X)
    return both / T


def logits_of(parameters, offset, features):
    """Logits at (V, b); of two classes the second one's is free."""
    coefficients = parameters.reshape(features.shape[1] + 1, -1)
    logits = offset.copy()
    logits[:, -coefficients.shape[1] :] += features @ coefficients[:-1] + coefficients[-1]
    return logits


def penalised_loss(parameters, offset, features, y, weight, inverse):
    log_c = log_softmax(logits_of(parameters, offset, features), axis=1)
    return -weight @ log_c[np.arange(len(y)), y] + np.sum(parameters**2 / (2 * inverse))


def gradient(parameters, offset, features, y, weight, inverse):
    error = softmax(logits_of(parameters, offset, features), axis=1)
    error = weight[:, None] * (error - np.eye(error.shape[1])[y])
    error = error[:, 1:] if error.shape[1] == 2 else error
    slopes = np.vstack([features.T @ error, error.sum(axis=0)])
    return slopes.ravel() + parameters / inverse


def check_optimum(scaling, X, y, weight, inverse=None):
    fitted = scaling.fit(X, y, weight)
    found = np.vstack([fitted.coef_, fitted.intercept_]).ravel()
    if inverse is None:
        inverse = np.full(fitted.coef_.shape, scaling.C)
        if isinstance(scaling, DirichletCalibration) and inverse.shape[1] > 1:
            np.fill_diagonal(inverse, scaling.C_diagonal)
        of_intercept = np.full_like(
            fitted.intercept_, getattr(scaling, "C_intercept", None) or scaling.C
        )
        inverse = np.vstack([inverse, of_intercept]).ravel()
    features, offset = features_of(scaling, X), offset_of(scaling, X, y, weight)
    arguments = offset, features, y, weight, inverse
    # tol is of the mean loss, in units of the root of at most |features|² / 4 + 1 / C n.
    units = np.sqrt(np.max(np.mean(features**2, axis=0)) + 1 / (scaling.C * weight.sum()) + 1)
    assert np.abs(gradient(found, *arguments)).max() <= 1e-7 * weight.sum() * units
    brute = minimize(penalised_loss, 0 * found, arguments, method="BFGS", options={"gtol": 1e-4})
    loss = penalised_loss(found, *arguments)
    assert loss <= brute.fun + 1e-9 * abs(loss)
    assert_allclose(loss, brute.fun, rtol=1e-6)
    expected = softmax(logits_of(found, offset, features), axis=1)
    assert_allclose(fitted.predict_proba(X), expected, rtol=1e-9)


@every_case
@pytest.mark.parametrize(("C", "weighted"), [(0.01, True), (100.0, False)])
def test_the_coefficients_minimise_the_penalised_log_loss(rng, scaling, d, C, weighted):
    X, y = sample(rng, 100, d)
    weight = np.ones(100)
    if weighted and not isinstance(scaling, SplineScaling):  # its knots are weighted quantiles
        weight = rng.uniform(0.2, 2, 100)
    check_optimum(clone(scaling).set_params(C=C), X, y, weight)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_off_diagonal_and_intercept_have_penalties_of_their_own(rng, d):
    X, y = sample(rng, 100, d)
    penalties = {"C_off_diagonal": 0.03, "C_intercept": 0.5}
    scaling = MatrixScaling(2.0, structured=True, coordinates="log", tol=1e-10, **penalties)
    inverse = {1: [2.0, 0.5], 2: [2.0, 2.0, 0.5]}.get(d)  # two classes have no diagonal
    if d == 3:
        inverse = np.vstack([np.where(np.eye(3), 2.0, 0.03), np.full(3, 0.5)]).ravel()
    check_optimum(scaling, X, y, np.ones(100), np.array(inverse))


@pytest.mark.parametrize(("C", "weighted"), [(1e-2, True), (100.0, False)])
@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("d", [1, 3])
def test_vector_scaling_minimises_the_penalised_log_loss(rng, C, weighted, structured, d):
    X, y = sample(rng, 120, d)
    weight = rng.integers(0, 4, 120).astype(float) if weighted else np.ones(120)
    fitted = VectorScaling(C, structured=structured).fit(X, y, weight)
    T = TemperatureScaling().fit(X, y, weight).temperature_ if structured else 1.0
    logits = np.log(X) if d > 1 else np.hstack([np.zeros_like(X), logit(X)])

    def loss(parameters):
        slope, intercept = (1 + parameters[0]) / T, parameters[1]
        log_c = log_softmax(slope * logits + intercept, axis=1)[np.arange(120), y]
        return -weight @ log_c + np.sum(parameters**2) / (2 * C)

    found = np.stack([fitted.slope_ * T - 1, fitted.intercept_])

    def of_vector(v):
        return loss(v.reshape(2, -1))

    brute = minimize(of_vector, np.zeros(found.size), method="BFGS", options={"gtol": 1e-5})
    assert loss(found) <= brute.fun + 1e-9
    # The minimum is unique: the penalty is strictly convex.
    assert_allclose(found.ravel(), brute.x, atol=1e-3)
    expected = softmax(fitted.slope_ * logits + fitted.intercept_, axis=1)
    assert_allclose(fitted.predict_proba(X), expected, rtol=1e-12)


# Classes


@pytest.mark.parametrize(
    ("scaling", "d"),
    [*CASES, (TemperatureScaling(), 1), (TemperatureScaling(), 3)],
    ids=lambda v: v if isinstance(v, int) else name_of(v),
)
@pytest.mark.parametrize("names", [["ant", "bee", "cat"], [0, 1, 2]], ids=str)
def test_a_class_of_weight_0_keeps_its_name_and_is_as_good_as_absent(rng, scaling, d, names):
    X, y = sample(rng, 90, d)
    kept = y != 1
    labels = np.array(names)[y] if d > 1 else y  # of a single column 0 and 1
    fitted = clone(scaling).fit(X, labels, kept.astype(float))
    assert_array_equal(fitted.classes_, [0, 1] if d == 1 else names[:d])
    fewer = clone(scaling).fit(X[kept], y[kept])
    assert_allclose(fitted.predict_proba(X), fewer.predict_proba(X), atol=1e-9)


@every_case
def test_one_class_alone_is_predicted_more_often_than_before(rng, scaling, d):
    X, _ = sample(rng, 60, d)
    proba = scaling.fit(X, np.zeros(60, int)).predict_proba(X)
    before = 1 - X[:, 0] if d == 1 else X[:, 0]
    assert np.isfinite(proba).all()
    assert proba[:, 0].mean() > before.mean()


# Extremes


@every_case
def test_zeros_and_ones_are_finite_and_count_as_the_floor(rng, scaling, d):
    corner = np.repeat([0.0, 1.0, 0.3], 20)[:, None]
    X = corner if d == 1 else np.hstack([corner, 1 - corner, np.zeros((60, d - 2))])
    y = rng.integers(0, max(d, 2), 60)
    fitted = scaling.fit(X, y)
    proba = fitted.predict_proba(X)
    assert np.isfinite(proba).all()
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    assert_allclose(fitted.predict_proba(np.maximum(X, FLOOR)), proba, atol=1e-6)


@pytest.mark.parametrize(("coordinates", "C"), [("square-root", 1.0), ("log", 100.0)])
def test_500_samples_of_100_classes_converge_in_a_third_of_max_iter(coordinates, C):
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(100, 0.05), size=500)
    y = np.minimum((truth.cumsum(axis=1) < rng.uniform(size=(500, 1))).sum(axis=1), 99)
    X = truth**1.7 / np.sum(truth**1.7, axis=1, keepdims=True)
    options = {"structured": True, "coordinates": coordinates}
    scaling = MatrixScaling(C, **options).fit(X, y)
    assert scaling.n_iter_ < scaling.max_iter / 3
    # As far as 20 times more iterations and a tolerance of 1e-12 get.
    exact = MatrixScaling(
        C, structured=True, coordinates=coordinates, max_iter=20_000, tol=1e-12
    ).fit(X, y)
    assert_allclose(scaling.predict_proba(X), exact.predict_proba(X), atol=1e-3)


@every_case
def test_what_does_not_converge_says_so_by_name_and_is_the_identity(rng, scaling, d):
    X, y = sample(rng, 60, d)
    name = type(scaling).__name__
    scaling = clone(scaling).set_params(C=10.0, max_iter=1)
    with pytest.warns(ConvergenceWarning, match=f"^{name}.* did not converge in 1 iterations"):
        scaling.fit(X, y)
    proba = scaling.predict_proba(X)
    assert_allclose(proba, np.hstack([1 - X, X]) if d == 1 else X, rtol=1e-12)
    assert scaling.temperature_ == 1
    assert_array_equal(scaling.coef_, 0)
    assert_array_equal(scaling.intercept_, 0)


# Splines


def test_a_spline_is_constant_in_the_added_logit_beyond_the_training_range(rng):
    x = rng.uniform(0.2, 0.8, 200)
    fitted = SplineScaling().fit(x[:, None], rng.uniform(size=200) < x**2)
    ends = [[x.min()], [0.01], [x.max()], [0.99]]
    proba = fitted.predict_proba(ends)[:, 1]
    added = logit(proba) - logit(np.ravel(ends)) / fitted.temperature_
    assert_allclose(added[[1, 3]], added[[0, 2]], rtol=1e-9)
    assert abs(added[0] - added[2]) > 1e-3


@pytest.mark.parametrize(("x", "n_splines"), [([0.3], 4), ([0.1, 0.9], 4), ([0.1, 0.5, 0.9], 5)])
def test_repeated_predictions_give_fewer_knots(x, n_splines):
    X = np.repeat(x, 20)[:, None]
    y = np.tile([0, 1, 1, 0, 1], 4 * len(x))
    fitted = SplineScaling(C=100).fit(X, y)
    assert fitted.coef_.shape == (n_splines, 1)
    assert_allclose(fitted.predict_proba(X)[:, 1], 0.6, atol=0.01)  # the frequency


def test_a_spline_catches_what_no_temperature_can(rng):
    x = rng.uniform(size=5000)
    truth = expit(logit(x) + 2 * np.sin(2 * np.pi * x))
    y = rng.uniform(size=5000) < truth
    fitted, plain = SplineScaling().fit(x[:, None], y), TemperatureScaling().fit(x[:, None], y)
    error, before = (
        np.mean((m.predict_proba(x[:, None])[:, 1] - truth) ** 2) for m in (fitted, plain)
    )
    # 13 coefficients from 5,000 outcomes: variance some 13 / 5000 / 6 = 4e-4; 5 times that.
    assert error < 2e-3 < before


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_a_new_intercept_makes_the_mean_prediction_the_share_of_each_class(n_classes):
    rng = np.random.default_rng(n_classes)
    proba = rng.dirichlet(np.ones(n_classes), 300)
    weight = rng.integers(0, 4, 300).astype(float)
    y = rng.choice(n_classes, 300, p=np.arange(1, n_classes + 1) / sum(range(1, n_classes + 1)))
    new = InterceptCalibration().fit(proba, y, weight).predict_proba(proba)
    shares = np.bincount(y, weight, minlength=n_classes) / weight.sum()
    assert_allclose(np.average(new, axis=0, weights=weight), shares, atol=2e-5)
    odds = new[:, 1:] / new[:, :1] / (proba[:, 1:] / proba[:, :1])
    assert_allclose(odds, np.broadcast_to(odds[0], odds.shape), rtol=1e-9)


def test_a_new_intercept_is_that_of_logistic_recalibration():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.6, 400)
    y = (rng.uniform(size=400) < p**1.4).astype(int)
    fitted = InterceptCalibration().fit(p, y)
    assert_allclose(fitted.intercept_, cox_recalibration(y, p).intercept_in_the_large, atol=1e-5)


def test_a_new_intercept_stays_finite_where_a_class_is_absent():
    p = np.array([0.2, 0.4, 0.7])
    proba = np.column_stack([p, (1 - p) / 2, (1 - p) / 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = InterceptCalibration().fit(np.vstack([proba, proba]), [0, 1, 1, 0, 1, 0])
    assert np.isfinite(found.intercept_).all()
    assert found.predict_proba(proba)[:, 2].max() < 1e-4


@pytest.mark.parametrize("by_class", [False, True])
def test_curvatures_are_derivatives_of_the_gradient(rng, by_class):
    """Of all coefficients, or of the two of each class."""
    X, y = sample(rng, 40, 3)
    z, share = np.log(X), rng.dirichlet(np.ones(40))
    design = ClassByClass(z) if by_class else Affine(np.hstack([z, np.ones((40, 1))]))
    shape = (2 if by_class else 4, 3)
    coefficients = 0.3 * rng.normal(size=shape)
    gradient_at = likelihood.ManyClasses(z, design, y, share).loss_and_gradient
    numerical = np.empty((coefficients.size, coefficients.size))
    for k, step in enumerate(1e-5 * np.eye(coefficients.size)):
        step = step.reshape(shape[::-1]).T  # class after class
        change = gradient_at(coefficients + step)[1] - gradient_at(coefficients - step)[1]
        numerical[k] = change.T.ravel() / 2e-5
    hessian = likelihood._class_hessians if by_class else likelihood._hessian
    blocks = hessian(z, design, coefficients, share)
    width = blocks.shape[1]
    for k, block in enumerate(blocks):
        own = slice(k * width, (k + 1) * width)
        assert_allclose(block, numerical[own, own], atol=1e-8)


@pytest.mark.parametrize(("classes", "C"), [(3, 0.01), (3, 100.0), (12, 1.0), (20, 100.0)])
def test_maps_of_certain_predictions_reach_the_optimum_of_a_strict_tolerance(rng, classes, C):
    """Such as naive Bayes makes, whose curvature is another one where they are mended."""
    X, y = sample(rng, 400, classes, temperature=8.0)
    for scaling in (VectorScaling(C), MatrixScaling(C, structured=True)):
        loose = scaling.fit(X, y).predict_proba(X)
        strict = clone(scaling).set_params(tol=1e-11, max_iter=10_000).fit(X, y).predict_proba(X)
        assert np.abs(loose - strict).max() < 1e-4
