"""Dense and sparse matrices and multiples of the identity against plain products."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from skcal._matrices import (
    as_factor,
    inner_product,
    one_hot,
    rows_of,
    rowwise_dot,
    rowwise_quadratic,
    square_of_products,
    times,
    times_rows,
)

KINDS = [np.asarray, sparse.csr_array]
FORMS = {"dense": np.asarray, "sparse": sparse.csr_array, "identity": lambda _: 2.5}


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def form_of(kind, rng):
    """Return a form (4, 4), not symmetric, and the same as an array."""
    values = rng.standard_normal((4, 4))
    return FORMS[kind](values), 2.5 * np.eye(4) if kind == "identity" else values


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_products_with_a_form(rng, kind, form):
    z, (factor, M) = rng.standard_normal((9, 4)), form_of(form, rng)
    assert_allclose(dense(times(kind(z), factor)), z @ M)
    assert_allclose(rowwise_quadratic(kind(z), factor), np.diagonal(z @ M @ z.T))
    assert_allclose(inner_product(kind(z.T @ z), factor), np.trace(z.T @ z @ M.T))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_times_weights(rng, kind):
    z, weight = kind(rng.standard_normal((5, 3))), np.array([0.0, 1.0, 2.0, 0.5, 1e300])
    assert_allclose(dense(times_rows(z, weight)), weight[:, None] * dense(z))
    assert times_rows(z, np.ones(5)) is z  # no copy


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_rowwise_products(rng, kind, other):
    a, b = rng.random((2, 6, 1000)).astype(np.float32)
    expected = (a.astype(np.float64) * b).sum(axis=1)
    rtol = 1e-13 if kind is other is np.asarray else 1e-6  # scipy multiplies in single precision
    assert_allclose(rowwise_dot(kind(a), other(b)), expected, rtol=rtol)


@pytest.mark.parametrize("shape", [(3, 8), (8, 3), (4, 4)])
def test_the_square_of_products_is_that_of_either_side(rng, shape):
    z = rng.standard_normal(shape)
    expected = np.square(z.T @ z).sum()
    assert_allclose([square_of_products(z), square_of_products(z.T)], expected)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_forms_are_as_given(rng, kind):
    z = rng.random((6, 2)).astype(np.float32)
    rows = rows_of(kind(z), slice(2, 5))
    assert rows.dtype == np.float64
    assert_allclose(dense(rows), z[2:5], rtol=0)
    assert_allclose(dense(as_factor(kind(z))), z, rtol=0)
    assert as_factor(None) == 1.0


def test_outcomes_are_rows_of_the_identity():
    codes = np.array([2, 0, 2])
    np.testing.assert_array_equal(one_hot(codes, 4), np.eye(4)[codes])
    assert one_hot(codes, 4, np.float32).dtype == np.float32
