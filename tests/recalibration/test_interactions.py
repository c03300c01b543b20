"""Products of probabilities with the predicted class and with splines of the confidence."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import BSpline
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from skcal.recalibration import ProbabilityInteractions
from skcal.recalibration.features import b_splines


def test_a_linear_model_by_predicted_class_is_one_model_for_each_class(rng):
    X = rng.dirichlet(np.ones(3), 200)
    y = rng.normal(size=(200, 2))
    interactions = ProbabilityInteractions("predicted class")
    joint = make_pipeline(interactions, LinearRegression(fit_intercept=False)).fit(X, y)
    for k in range(3):
        rows = X.argmax(axis=1) == k
        own = LinearRegression(fit_intercept=False).fit(X[rows], y[rows])
        assert_allclose(joint.predict(X[rows]), own.predict(X[rows]), atol=1e-12)


@pytest.mark.parametrize("n_knots", [2, 8])
def test_by_confidence_the_products_are_with_quadratic_b_splines_of_the_largest(rng, n_knots):
    X = rng.dirichlet(np.ones(4), 50)
    features = ProbabilityInteractions(n_knots=n_knots).fit_transform(X)
    step = 1 / (n_knots - 1)
    knots = np.linspace(-2 * step, 1 + 2 * step, n_knots + 4)
    expected = []
    for j in range(n_knots + 1):
        spline = BSpline.basis_element(knots[j : j + 4], extrapolate=False)
        expected.append(np.nan_to_num(spline(X.max(axis=1)))[:, None] * X)
    assert_allclose(features, np.hstack(expected), atol=1e-12)


@pytest.mark.parametrize("knots", [[0.0, 1.0], [0.1, 0.12, 0.5, 0.9]])
@pytest.mark.parametrize("degree", [2, 3])
def test_b_splines_are_those_of_scikit_learn_and_constant_beyond_the_knots(knots, degree):
    x, column = np.linspace(0, 1, 101)[:, None], np.array(knots)[:, None]
    splines = SplineTransformer(knots=column, degree=degree, extrapolation="constant").fit(column)
    assert_allclose(b_splines(x, np.array(knots), degree), splines.transform(x), atol=1e-14)


@pytest.mark.parametrize("by", ["confidence", "predicted class"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_a_sample_add_up_to_its_probabilities(rng, by, dtype):
    X = np.vstack([rng.dirichlet(np.ones(3), 20), np.eye(3), np.full((1, 3), 1 / 3)]).astype(dtype)
    features = ProbabilityInteractions(by).fit_transform(X)
    assert features.dtype == np.float64
    assert_allclose(features.reshape(len(X), -1, 3).sum(axis=1), X, rtol=1e-12, atol=1e-15)


def test_ties_go_to_the_first_class():
    features = ProbabilityInteractions("predicted class").fit_transform([[0.4, 0.2, 0.4]])
    assert_array_equal(features, [[0.4, 0.2, 0.4, 0, 0, 0, 0, 0, 0]])


def test_features_that_are_no_probabilities_are_refused():
    with pytest.raises(ValueError, match=r"X row 0, column 1 is 2, not a probability"):
        ProbabilityInteractions().fit([[0.5, 2.0]])
    fitted = ProbabilityInteractions().fit([[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"X row 0, column 0 is -1, not a probability"):
        fitted.transform([[-1.0, 0.5]])
    with pytest.raises(ValueError, match=r"'by' parameter"):
        ProbabilityInteractions("class").fit([[0.5, 0.5]])
