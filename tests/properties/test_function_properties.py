"""Invariants of every calibration-estimation function and map, on small samples with ties.

Float32 of continuous predictions is in tests/model_selection/test_estimator_invariance.py.
"""

import inspect

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from property_cases import (
    CLASSES,
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
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from skcal import CalibrationErrorEstimator, functions, recalibration
from skcal._bins import SCALAR_PARTITIONS, SIMPLEX_PARTITIONS
from skcal.functions import (
    BilinearFunction,
    Binning,
    DirichletKernelDensity,
    FixedFunction,
    KroneckerKernelRidge,
    PlugIn,
    Stacking,
    TwoStepKernelRidge,
    Zero,
)
from skcal.recalibration import (
    LogProbabilities,
    MatrixScaling,
    ProbabilityInteractions,
    TemperatureScaling,
    VectorScaling,
)

LOGISTIC = LogisticRegression(C=0.1, solver="newton-cholesky", tol=1e-10)
RIDGE = TwoStepKernelRidge(1e-2, tol=1e-13)


def suspected(X, Z):
    """0.09 ⟨x - 1/2, x' - 1/2⟩, whose rank is the number of features."""
    return 0.09 * (X - 0.5) @ (Z - 0.5).T


FUNCTIONS = {
    "FixedFunction": FixedFunction(suspected),
    "Zero": Zero(),
    "Binning uniform": Binning(4),
    "Binning quantile": Binning(3, "quantile"),
    "Binning sweep": Binning(strategy="sweep"),
    "Binning unique": Binning(strategy="unique"),
    "Binning median-variance": Binning(strategy="median-variance", min_samples=2),
    "Binning debiased": Binning(2, debias=True),
    "Binning debiased by labels": Binning(2, debias="labels"),
    "DirichletKernelDensity": DirichletKernelDensity(0.05),
    "DirichletKernelDensity loo": DirichletKernelDensity("loo"),
    "KroneckerKernelRidge": KroneckerKernelRidge(1e-2, tol=1e-13),
    "KroneckerKernelRidge square-root": KroneckerKernelRidge(
        1e-2, coordinates="square-root", kernel="laplacian", tol=1e-13
    ),
    "TwoStepKernelRidge": RIDGE,
    "TwoStepKernelRidge log-ratio": TwoStepKernelRidge(
        1e-2, coordinates="log-ratio", gamma=0.01, tol=1e-13
    ),
    "LogProbabilities": PlugIn(make_pipeline(LogProbabilities(), LOGISTIC)),
    "ProbabilityInteractions": PlugIn(
        make_pipeline(ProbabilityInteractions(n_knots=3), Ridge(solver="svd")), equivariant=True
    ),
    "MatrixScaling structured": PlugIn(MatrixScaling(C=0.1, structured=True, tol=1e-12)),
    "VectorScaling structured": PlugIn(VectorScaling(C=0.1, structured=True, tol=1e-12)),
    "Stacking": Stacking([PlugIn(TemperatureScaling()), Binning(3), RIDGE], cv=2, random_state=0),
}
COVERED_BY_OTHERS = {
    "FixedFunction": "a function of the user: tests/functions/test_own_functions.py",
    "BilinearFunction": "the base class",
    "PlugIn": "holds every map",
    "RecalibrationMap": "the base class of maps",
    "Identity": "learns nothing: tests/recalibration",
    "Smoothed": "a map of smoothed predictions: tests/recalibration",
    "Mixture": "a mean of maps: tests/recalibration",
    "BayesianCalibration": "an average of maps of one probability: tests/recalibration",
    "adjust_prevalence": "a formula: tests/recalibration/test_prevalence.py",
    "estimate_prevalence": "a likelihood: tests/recalibration/test_prevalence.py",
}


def small(map_class):
    """A map of few parameters, found to the last digits."""
    options = {"C": 0.1, "tol": 1e-12, "n_knots": 4, "n_bins": 3}
    takes = inspect.signature(map_class).parameters
    return map_class(**{name: value for name, value in options.items() if name in takes})


#: Classes that a fit returns.
RESULTS = {"LossComparison", "OutOfFold"}
FUNCTIONS |= {
    name: PlugIn(small(getattr(recalibration, name)))
    for name in recalibration.__all__
    if name not in {*COVERED_BY_OTHERS, *FUNCTIONS, *RESULTS}
}
SCALAR_ONLY = {"Binning quantile", "Binning sweep"}
SIMPLEX_ONLY = {"Binning median-variance"}
CASES = [
    (name, notion)
    for name in FUNCTIONS
    for notion in NOTIONS
    if not (name in SCALAR_ONLY and notion in VECTORS)
    and not (name in SIMPLEX_ONLY and notion not in VECTORS)
]
# What a function documents as an exception.
FOLDS = {"Stacking": "the order of the rows makes its folds"}
NOT_REPETITIONS = FOLDS | {
    "Binning debiased": "the variance of a bin mean is that of importance weights",
    "Binning debiased by labels": "the same",
    "Binning median-variance": "min_samples counts rows",
}
FIRST_CLASS = {
    "Binning median-variance": "ties of the largest variance go to the first class",
    "ClassBasedTemperatureScaling": "ties of the largest probability go to the first class",
    "ProbabilityInteractions": "the same",
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)
QUERIES = np.vstack([np.eye(3), np.full((1, 3), 1 / 3), [[0.5, 0.25, 0.25], [0.0625, 0.9375, 0]]])


def without(exceptions):
    return pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in exceptions])


def notions(name, among=NOTIONS):
    """Draw a notion that fits the function."""
    return st.sampled_from([notion for notion in among if (name, notion) in CASES])


def fit(name, notion, y, proba, sample_weight=None, labels=None):
    y, proba, question = ask(notion, y, proba)
    if labels is not None:
        question["labels"] = labels
    estimator = CalibrationErrorEstimator(clone(FUNCTIONS[name]), **question)
    return estimator.fit(proba, y, sample_weight), (proba, y, sample_weight)


def queries(notion):
    return QUERIES[:, 1] if notion == "binary" else QUERIES


def predict(name, notion, y, proba, **options):
    return fit(name, notion, y, proba, **options)[0].predict(queries(notion))


def measure(name, notion, y, proba, **options):
    """Predictions elsewhere, the estimates and the risk, all on one sample."""
    estimator, (P, y, weight) = fit(name, notion, y, proba, **options)
    values = [estimator.predict(queries(notion)), estimator.squared_error(P, weight)]
    if hasattr(estimator, "one_step"):
        step = estimator.one_step(P, y, weight)
        values += [step.value, step.standard_error]
    risk = estimator.risk(P, y, weight)
    return [*values, risk.value, risk.standard_error]


def test_every_public_function_and_strategy_is_a_case():
    named = {name.split()[0] for name in FUNCTIONS}
    public = set(functions.__all__) | set(recalibration.__all__)
    assert named | set(COVERED_BY_OTHERS) == public - RESULTS
    strategies = {function.strategy for function in FUNCTIONS.values() if type(function) is Binning}
    assert strategies == set(SCALAR_PARTITIONS) | set(SIMPLEX_PARTITIONS)
    public = [getattr(functions, name) for name in functions.__all__]
    covered = {type(function) for function in FUNCTIONS.values()}
    assert covered == {f for f in public if issubclass(f, BilinearFunction)} - {BilinearFunction}
    assert not [f for f in covered if inspect.isabstract(f)]


@pytest.mark.parametrize("name", sorted(SCALAR_ONLY))
def test_functions_of_single_numbers_refuse_vectors(name):
    with pytest.raises(ValueError, match=r"3 (columns|feature)"):
        measure(name, "canonical", *EDGE_CASES["certain or not"])


@pytest.mark.parametrize("name", sorted(SIMPLEX_ONLY))
def test_functions_of_the_simplex_refuse_single_numbers(name):
    with pytest.raises(ValueError, match="strategy"):
        measure(name, "confidence", *EDGE_CASES["certain or not"])


ONE_OF_EACH = [case for case in CASES if case[1] in ("confidence", "canonical")]


@pytest.mark.parametrize(("name", "notion"), [*ONE_OF_EACH, ("Binning uniform", "top-label")])
def test_edge_cases_are_finite(name, notion):
    for case, (y, proba) in EDGE_CASES.items():
        value = outcome(measure, name, notion, y, proba)
        if isinstance(value, str):
            assert "no class is predicted for 2 samples" in value, (case, value)
            assert notion == "top-label"
        else:  # a standard error needs more than two samples
            assert np.isfinite(value).all() or len(y) == 2, case
            assert np.isfinite(value[: len(QUERIES)]).all(), case


@every_function
def test_the_same_samples_told_in_another_way_give_the_same_fit(name, check):
    """Again, in single precision and in another order; nothing is changed."""

    def holds(notion, sample, seed):
        y, proba = sample
        one = outcome(measure, name, notion, y, proba)
        arrays = y, proba.astype(np.float32, order="F"), np.ones(len(y))
        before = state(*arrays)
        single, again = (
            outcome(measure, name, notion, *arrays[:2], sample_weight=arrays[2]) for _ in "ab"
        )
        assert state(*arrays) == before
        assert again == single if isinstance(single, str) else again.tobytes() == single.tobytes()
        predicted = slice(None if isinstance(one, str) else len(QUERIES))
        assert_same_outcome(one[predicted], single[predicted], rtol=1e-5, atol=1e-7)
        if name not in FOLDS:
            rows = np.random.default_rng(seed).permutation(len(y))
            moved = outcome(measure, name, notion, y[rows], proba[rows])
            assert_same_outcome(one, moved, rtol=1e-6, atol=1e-8)

    check(holds, notion=notions(name), sample=samples(), seed=seeds)


@without(FIRST_CLASS)
def test_joint_relabelling_does_not_matter(name, check):
    def holds(notion, sample, order):
        y, proba = sample
        one = fit(name, notion, y, proba)[0].predict(QUERIES)
        renamed, _ = fit(name, notion, NAMES[y], proba[:, order], labels=NAMES[order])
        # Collinear parts of a stack have weights to 1e-6: _ROUNDING tells them from noise.
        rtol = 1e-5 if name == "Stacking" else 1e-6
        assert_allclose(renamed.predict(QUERIES[:, order]), one, rtol=rtol, atol=1e-8)

    symmetric = notions(name, ["canonical", "classwise"])  # arg max ties go to the first class
    check(holds, notion=symmetric, sample=samples(), order=orders)


@every_function
def test_weight_zero_removes_a_sample(name, check):
    def holds(notion, sample, seed):
        y, proba = sample
        keep = np.random.default_rng(seed).random(len(y)) < 0.6
        keep[:2] = True
        one = outcome(measure, name, notion, y[keep], proba[keep])
        other = outcome(measure, name, notion, y, proba, sample_weight=keep.astype(float))
        assert_same_outcome(one, other, rtol=1e-6, atol=1e-8)

    check(holds, notion=notions(name), sample=samples(at_least=4), seed=seeds)


@pytest.mark.filterwarnings("ignore:All predictions in X are 0 or 1")
@without(NOT_REPETITIONS)
def test_weight_two_repeats_a_sample_of_a_fit(name, check):
    def holds(notion, sample, seed):
        y, proba = sample
        times = np.random.default_rng(seed).integers(1, 4, len(y))
        if notion == "top-label":  # a problem of one row is not fitted, of two copies it is
            proba, y = np.vstack([proba, proba]), np.hstack([y, y])
            times = np.tile(times, 2)
        one = predict(name, notion, y.repeat(times), proba.repeat(times, axis=0))
        other = predict(name, notion, y, proba, sample_weight=times)
        assert_allclose(other, one, rtol=1e-6, atol=1e-8)

    check(holds, notion=notions(name), sample=samples(), seed=seeds)


@without(SIMPLEX_ONLY)
def test_the_positive_column_of_two_is_the_one_dimensional_form(name, check):
    def holds(sample):
        y, proba = sample
        one = CalibrationErrorEstimator(clone(FUNCTIONS[name]), "binary").fit(proba[:, 1], y)
        two = CalibrationErrorEstimator(clone(FUNCTIONS[name]), "binary", labels=[0, 1])
        two.fit(proba, y)
        assert_array_equal(two.predict(proba), one.predict(proba[:, 1]))
        assert two.score(proba, y) == one.score(proba[:, 1], y)

    check(holds, sample=samples(n_classes=2))


@every_function
def test_h_is_symmetric_and_an_inner_product_where_it_has_a_residual(name, check):
    def holds(notion, sample):
        y, proba = sample
        estimator, _ = fit(name, notion, y, proba)
        for function in estimator.functions_:
            X = np.linspace(0, 1, 6)[:, None]
            X = X if function.n_features_in_ == 1 else QUERIES[:, : function.n_features_in_]
            if X.shape[1] == 2:
                X = np.column_stack([X[:, 0], 1 - X[:, 0]])
            pairs = function.predict_pairs(X)
            assert_allclose(pairs, pairs.T, rtol=1e-9, atol=1e-12)
            assert_allclose(np.diagonal(pairs), function.predict(X), rtol=1e-9, atol=1e-12)
            assert_allclose(function.predict_pairs(X[:2], X), pairs[:2], rtol=1e-9, atol=1e-12)
            if hasattr(function, "residual") and not isinstance(function, Stacking):
                own = function.residual(X)
                assert_allclose(own @ own.T, pairs, rtol=1e-9, atol=1e-12)

    check(holds, notion=notions(name), sample=samples())


def test_estimates_of_a_fit_hold_classes_in_the_order_of_the_labels():
    y, proba = EDGE_CASES["certain or not"]
    renamed, _ = fit("Binning uniform", "classwise", NAMES[y], proba, labels=NAMES)
    plain, _ = fit("Binning uniform", "classwise", y, proba, labels=CLASSES)
    assert_array_equal(renamed.classes_, NAMES)
    for one, other in zip(plain.functions_, renamed.functions_, strict=True):
        assert_array_equal(one.bin_residuals_, other.bin_residuals_)
