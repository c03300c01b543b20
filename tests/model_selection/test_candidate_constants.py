"""The constants of the default candidates, and what a summary says at its limits."""

import numpy as np
import pytest

from skcal.model_selection import summary
from skcal.model_selection.candidates import family_name, fast_function, recommended
from skcal.notions import NOTIONS
from skcal.recalibration import SplineScaling

SCALAR, VECTOR = NOTIONS["confidence"], NOTIONS["canonical"]


def test_ridge_forms_are_approximations_of_rank_1000():
    for notion in (SCALAR, VECTOR):
        ranks = {
            function.max_rank
            for function, _ in recommended(notion, 4, 1000)
            if hasattr(function, "max_rank")
        }
        assert ranks == {1000}


@pytest.mark.parametrize(
    ("n_classes", "n_parts"), [(2, 8), (30, 8), (31, 4), (100, 4), (101, None)]
)
def test_maps_of_vectors_by_the_number_of_classes(n_classes, n_parts):
    function, grid = recommended(VECTOR, n_classes, 1000)[-1]
    if n_parts is None:
        assert grid == {"estimator__C": [0.01, 0.1, 1.0]}
        assert function.estimator.tol == 1e-6
        return
    assert (len(function.functions), function.cv) == (n_parts, 3)
    assert hasattr(function, "residual")  # so that it has a one-step estimate
    equivariant = [getattr(part, "equivariant", False) for part in function.functions]
    assert sum(equivariant) == (n_classes <= 30)
    temperature, structured, matrix, trees = (part.estimator for part in function.functions[:4])
    assert (type(temperature).__name__, structured.C, matrix.C) == ("TemperatureScaling", 1, 0.01)
    assert (trees.n_estimators, trees.min_samples_leaf, trees.random_state) == (30, 20, 0)
    for part in function.functions[5:]:
        np.testing.assert_array_equal(part.estimator[-1].alphas, np.logspace(-2, 4, 13))


def test_maps_of_scalars():
    *_, (isotonic, _), (_, grid), (stack, _) = recommended(SCALAR, 1, 1000)
    assert (isotonic.target, isotonic.estimator.out_of_bounds) == ("outcome", "clip")
    assert grid == {"estimator__C": [0.01, 0.1, 1.0, 10.0]}
    assert (len(stack.functions), stack.cv) == (3, 3)
    assert hasattr(stack, "residual")


@pytest.mark.parametrize(
    ("n_classes", "n_train", "name"),
    [
        (30, 100, "Stacking"),
        (30, 99, "Structured MatrixScaling"),
        (31, 100, "Structured MatrixScaling"),
        (100, 100, "Structured MatrixScaling"),
        (101, 100, "VectorScaling"),
        (101, 1000, "VectorScaling"),
    ],
)
def test_the_fast_function_changes_at_30_and_100_classes_and_100_samples(n_classes, n_train, name):
    function = fast_function(VECTOR, n_classes, n_train)
    assert family_name(function) == name
    if name == "Stacking":
        assert len(function.functions) == 2
    else:
        assert function.estimator.C == 0.1
    scalar = fast_function(SCALAR, 1, 50)
    assert (family_name(scalar), scalar.estimator.C) == ("SplineScaling", SplineScaling().C)


@pytest.mark.parametrize(
    ("bound", "reading"),
    [
        (None, "too few test samples"),
        (-1e-9, "do not refute calibration"),
        (0.0, "do not refute calibration"),
        (1e-9, "the error is at least this, at 95 % confidence"),
    ],
)
def test_the_lower_bound_is_read_by_its_sign(bound, reading):
    fact = {"squared_error": 0.01, "standard_error": 0.001, "function": "PlugIn"}
    facts = {**fact, "lower_confidence_bound": bound, "pvalue": 0.04}
    shown = repr(summary._one_step_lines(facts))
    assert reading in shown
    assert "0.1000   root of 0.01" in shown


@pytest.mark.parametrize(
    ("squared", "shown"),
    [(-1e-4, "its square is estimated as -0.000100"), (0.0, "root of 0"), (0.04, "0.2000")],
)
def test_roots_of_negative_squares_are_0_and_say_so(squared, shown):
    assert shown in summary._root_of(squared)
