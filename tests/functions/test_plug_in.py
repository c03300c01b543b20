"""PlugIn against the scikit-learn estimators it holds; Zero."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from skcal import PlugIn, TemperatureScaling, Zero
from skcal.recalibration import LogProbabilities, MatrixScaling, VectorScaling

REGRESSORS = [
    LinearRegression(),
    Ridge(0.1),
    SVR(),
    make_pipeline(StandardScaler(), Ridge()),
    make_pipeline(StandardScaler(), SVR()),
]
CLASSIFIERS = [
    LogisticRegression(C=0.1),
    make_pipeline(LogProbabilities(), LogisticRegression()),
    RandomForestClassifier(5, random_state=0),
    TemperatureScaling(),
    VectorScaling(),
    MatrixScaling(structured=True),
]


def name_of(estimator):
    steps = getattr(estimator, "steps", [(None, estimator)])
    return "-".join(type(step).__name__ for _, step in steps)


by_estimator = {"ids": name_of}


@pytest.fixture
def canonical(tempered):
    proba, labels = (array[:150] for array in tempered)
    return proba, labels, np.eye(4)[labels] - proba


@pytest.fixture
def binary(tempered):
    proba, labels = (array[:150] for array in tempered)
    return proba[:, :1], (labels == 0).astype(int), (labels == 0) - proba[:, 0]


# Equivariance


def unit_rows(rng, n=120, n_classes=4):
    X = rng.dirichlet(np.ones(n_classes), n)
    return X, np.eye(n_classes)[rng.integers(0, n_classes, n)] - X


EQUIVARIANT = [
    (Ridge(0.1), "residual"),
    (KNeighborsRegressor(3), "outcome"),
    (LogisticRegression(C=0.1), "residual"),
]


@pytest.mark.parametrize(("estimator", "target"), EQUIVARIANT, ids=["ridge", "map", "classifier"])
def test_permuted_classes_permute_an_equivariant_residual(rng, estimator, target):
    X, residuals = unit_rows(rng)
    function = PlugIn(estimator, target, equivariant=True).fit(X, residuals)
    new, order = rng.dirichlet(np.ones(4), 30), rng.permutation(4)
    assert_allclose(function.residual(new[:, order]), function.residual(new)[:, order], atol=1e-14)
    each = np.array([rng.permutation(4) for _ in X])  # also one permutation a sample in fit
    shuffled = (np.take_along_axis(array, each, axis=1) for array in (X, residuals))
    again = clone(function).fit(*shuffled)
    assert_allclose(again.residual(new), function.residual(new), atol=1e-14)
    assert not np.allclose(
        function.residual(new), PlugIn(estimator, target).fit(X, residuals).residual(new)
    )


def test_an_equivariant_residual_is_the_estimators_on_sorted_rows(rng):
    X, residuals = unit_rows(rng)
    function = PlugIn(Ridge(0.1), equivariant=True).fit(X, residuals)
    rows = [np.argsort(-row) for row in X]
    ridge = Ridge(0.1).fit(
        [x[r] for x, r in zip(X, rows, strict=True)],
        [d[r] for d, r in zip(residuals, rows, strict=True)],
    )
    for x, rank, found in zip(X, rows, function.residual(X), strict=True):
        assert_allclose(found[rank], ridge.predict([x[rank]])[0], atol=1e-14)


def test_equivariance_needs_a_feature_for_each_residual_and_of_one_changes_nothing(rng, binary):
    p, _, residuals = binary
    one = PlugIn(LinearRegression(), equivariant=True).fit(p, residuals)
    assert_array_equal(one.residual(p), PlugIn(LinearRegression()).fit(p, residuals).residual(p))
    with pytest.raises(ValueError, match=r"X has 3 columns and y 2: equivariant=True"):
        PlugIn(Ridge(), equivariant=True).fit(rng.normal(size=(9, 3)), rng.normal(size=(9, 2)))


# Zero


@pytest.mark.parametrize("columns", [1, 3])
def test_zero_is_zero_and_its_risk_the_mean_squared_inner_product(rng, columns):
    X, residuals = rng.uniform(size=(20, columns)), rng.normal(size=(20, columns))
    function = Zero().fit(X, residuals)
    assert_array_equal(function.predict(X), np.zeros(20))
    assert_array_equal(function.predict_pairs(X, X[:3]), np.zeros((20, 3)))
    assert_array_equal(function.residual(X), np.zeros((20, columns)))
    squares = (residuals @ residuals.T)[~np.eye(20, dtype=bool)] ** 2
    assert_allclose(function.score(X, residuals), -squares.mean(), rtol=1e-12)


# Regressors of the residual


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("regressor", REGRESSORS, **by_estimator)
def test_regressor_columns_are_those_of_the_regressor(canonical, rng, regressor, weighted):
    """Single-output regressors are fitted to one column after the other."""
    X, _, residuals = canonical
    weight = rng.uniform(0.1, 3, len(X)) if weighted else None
    keyword = (
        f"{regressor.steps[-1][0]}__sample_weight"
        if hasattr(regressor, "steps")
        else ("sample_weight")
    )
    fit_params = {keyword: weight} if weighted else {}
    expected = np.column_stack(
        [clone(regressor).fit(X, column, **fit_params).predict(X) for column in residuals.T]
    )
    function = PlugIn(regressor).fit(X, residuals, weight)
    assert_allclose(function.residual(X), expected, rtol=1e-9, atol=1e-12)
    assert_allclose(function.predict(X), (expected**2).sum(axis=1), rtol=1e-9)
    assert_allclose(function.predict_pairs(X), expected @ expected.T, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("regressor", REGRESSORS, **by_estimator)
def test_scalar_problems_fit_the_regressor_itself(binary, regressor):
    X, _, residuals = binary
    function = PlugIn(regressor).fit(X, residuals)
    assert type(function.estimator_) is type(regressor)
    expected = clone(regressor).fit(X, residuals).predict(X)
    assert_allclose(function.residual(X), expected[:, None], rtol=1e-12)
    column = PlugIn(regressor).fit(X, residuals[:, None])
    assert_array_equal(column.residual(X), function.residual(X))


def test_only_single_output_regressors_are_wrapped(canonical):
    X, _, residuals = canonical
    assert isinstance(PlugIn(Ridge()).fit(X, residuals).estimator_, Ridge)
    assert isinstance(PlugIn(SVR()).fit(X, residuals).estimator_, MultiOutputRegressor)


# Outcomes as the target


def test_isotonic_regression_of_the_outcome_is_a_recalibration_map(binary):
    X, outcomes, residuals = binary
    isotonic = IsotonicRegression(out_of_bounds="clip")
    function = PlugIn(isotonic, target="outcome").fit(X, residuals)
    expected = clone(isotonic).fit(X[:, 0], outcomes).predict(X[:, 0]) - X[:, 0]
    assert_allclose(function.residual(X)[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize("target", ["residual", "outcome"])
@pytest.mark.parametrize("classifier", CLASSIFIERS, **by_estimator)
def test_residual_of_a_classifier_is_its_probabilities_minus_the_prediction(
    canonical, binary, classifier, target
):
    X, labels, residuals = canonical
    function = PlugIn(classifier, target).fit(X, residuals)
    expected = clone(classifier).fit(X, labels).predict_proba(X) - X
    assert_allclose(function.residual(X), expected, atol=1e-12)
    assert_allclose(function.residual(X).sum(axis=1), 0, atol=1e-12)
    X, outcomes, residuals = binary
    function = PlugIn(classifier, target).fit(X, residuals)
    expected = clone(classifier).fit(X, outcomes).predict_proba(X)[:, 1:] - X
    assert_allclose(function.residual(X), expected, atol=1e-12)


@pytest.mark.parametrize("classifier", CLASSIFIERS, **by_estimator)
def test_columns_follow_classes_and_absent_classes_get_zero(canonical, classifier):
    X, labels, _ = canonical
    X, labels = X[labels != 1], labels[labels != 1]
    function = PlugIn(classifier).fit(X, np.eye(4)[labels] - X)
    proba = function.residual(X) + X
    inner = clone(classifier).fit(X, labels)
    assert_allclose(proba[:, inner.classes_], inner.predict_proba(X), atol=1e-12)
    assert_allclose(np.delete(proba, inner.classes_, axis=1), 0, atol=1e-15)
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("classifier", CLASSIFIERS, **by_estimator)
def test_outcomes_of_one_class_are_predicted_as_a_constant(canonical, classifier):
    X, _, _ = canonical
    function = PlugIn(classifier).fit(X, np.eye(4)[2] - X)
    assert function.estimator_ is None
    assert_allclose(function.residual(X), np.eye(4)[2] - X, atol=1e-15)
    for outcome in (0, 1):
        function = PlugIn(classifier).fit(X[:, :1], outcome - X[:, 0])
        assert_allclose(function.residual(X[:, :1]), outcome - X[:, :1], atol=1e-15)


@pytest.mark.parametrize(
    ("estimator", "target"), [(LogisticRegression(), "residual"), (Ridge(), "outcome")]
)
def test_residuals_that_make_no_outcome_raise(estimator, target):
    with pytest.raises(ValueError, match="X row 1 and y row 1 add up to"):
        PlugIn(estimator, target).fit([[0.2], [0.4]], [0.8, 0.7])
    with pytest.raises(ValueError, match="not a probability"):
        PlugIn(estimator, target).fit([[0.2], [1.5]], [0.8, -0.5])
    fitted = PlugIn(estimator, target).fit([[0.2], [0.4]], [0.8, -0.4])
    with pytest.raises(ValueError, match="not a probability"):
        fitted.predict([[-0.5]])


# Weights


@pytest.mark.parametrize("classifier", CLASSIFIERS, **by_estimator)
def test_weights_reach_the_classifier(canonical, rng, classifier):
    X, labels, residuals = canonical
    weight = rng.uniform(0.1, 3, len(X)) * (rng.uniform(size=len(X)) < 0.8)
    keep = weight > 0
    name = f"{classifier.steps[-1][0]}__" if hasattr(classifier, "steps") else ""
    inner = clone(classifier).fit(X[keep], labels[keep], **{f"{name}sample_weight": weight[keep]})
    function = PlugIn(classifier).fit(X, residuals, weight)
    assert_allclose(function.residual(X), inner.predict_proba(X) - X, atol=1e-12)
    unweighted = PlugIn(classifier).fit(X, residuals)
    assert np.abs(function.residual(X) - unweighted.residual(X)).max() > 1e-3


@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsRegressor(),
        KNeighborsClassifier(),
        make_pipeline(StandardScaler(), KNeighborsRegressor()),
        make_pipeline(StandardScaler(), KNeighborsClassifier()),
    ],
    **by_estimator,
)
def test_weights_are_refused_by_name_where_the_estimator_takes_none(canonical, estimator):
    X, _, residuals = canonical
    zero_one = np.arange(len(X)) % 2
    PlugIn(estimator).fit(X, residuals, np.ones(len(X)))
    removed = PlugIn(estimator).fit(X, residuals, zero_one).residual(X)
    kept = zero_one == 1
    assert_allclose(removed, PlugIn(estimator).fit(X[kept], residuals[kept]).residual(X))
    with pytest.raises(ValueError, match=r"KNeighbors\w+\.fit does not take it"):
        PlugIn(estimator).fit(X, residuals, 1 + zero_one)


@pytest.mark.parametrize(
    "estimator", [Ridge(), SVR(), *CLASSIFIERS[:2], REGRESSORS[3]], **by_estimator
)
def test_metadata_routing_changes_nothing(canonical, rng, estimator):
    X, _, residuals = canonical
    weight = rng.uniform(0.1, 3, len(X))
    expected = PlugIn(estimator).fit(X, residuals, weight).residual(X)
    with config_context(enable_metadata_routing=True):
        routed = PlugIn(estimator).fit(X, residuals, weight)
        assert_array_equal(routed.residual(X), expected)
        plain = PlugIn(estimator).fit(X, residuals).residual(X)
    assert_array_equal(PlugIn(estimator).fit(X, residuals).residual(X), plain)


# The scikit-learn contract of the inner estimator


def test_parameters_are_nested_and_the_estimator_is_never_fitted_itself(canonical):
    X, _, residuals = canonical
    inner = make_pipeline(LogProbabilities(), LogisticRegression())
    function = clone(PlugIn(inner)).set_params(estimator__logisticregression__C=0.05)
    assert function.get_params()["estimator__logisticregression__C"] == 0.05
    assert inner.get_params()["logisticregression__C"] == 1.0
    function.fit(X, residuals)
    assert not hasattr(function.estimator[-1], "coef_")
    assert function.estimator_[-1].C == 0.05
    assert not hasattr(clone(function), "estimator_")


@pytest.mark.parametrize("function", [PlugIn(TemperatureScaling()), Zero()], ids=name_of)
def test_one_dimensional_features_are_told_their_shape(function):
    with pytest.raises(ValueError, match=r"X has shape \(2,\).*n_classes\)\.$"):
        function.fit([0.5, 0.2], [0.5, -0.2])
    with pytest.raises(ValueError, match=r"X has shape \(2,\).*Are X and y swapped\?"):
        function.fit([0, 1], [[0.5, 0.5], [0.2, 0.8]])
    function.fit([[0.5], [0.2]], [0.5, -0.2])
    with pytest.raises(ValueError, match=r"X has shape \(3,\).*X\.reshape\(-1, 1\)"):
        function.predict([0.5, 0.2, 0.3])
