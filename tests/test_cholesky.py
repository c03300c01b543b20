"""Blocks of pivots against greedy pivots, one after the other, on whole matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel

from skcal._matrices import IndefiniteError, pivoted_cholesky


def decompose(K, tol=1e-8, max_rank=None, weight=None):
    """Return what the decomposition of a whole matrix is, and how often rows were asked for."""
    calls = []

    def rows_at(positions):
        calls.append(positions)
        return K[positions]

    weight = np.ones(len(K)) if weight is None else weight
    found = pivoted_cholesky(np.diagonal(K), rows_at, weight, tol, max_rank or len(K))
    return *found, len(calls)


def greedy_rank(K, tol):
    """Rank of the pivoted Cholesky decomposition that always takes the largest remainder."""
    rest, rank = K.copy(), 0
    while np.trace(rest) > tol * np.trace(K):
        pivot = int(np.argmax(np.diagonal(rest)))
        column = rest[:, pivot] / np.sqrt(rest[pivot, pivot])
        rest, rank = rest - np.outer(column, column), rank + 1
    return rank


@pytest.mark.parametrize("max_rank", [1, 15, 16, 17, 127, 128, 129, 300, 400])
def test_a_definite_matrix_is_its_factor_on_the_pivots_and_the_error_is_what_is_left(rng, max_rank):
    K = rbf_kernel(rng.random((400, 6)), gamma=20)
    weight = rng.random(400) + 0.1
    pivots, psi, error, _ = decompose(K, 0.0, max_rank, weight)
    assert len(pivots) == len(set(pivots)) == psi.shape[1] == max_rank
    assert_allclose((psi @ psi.T)[pivots], K[pivots], atol=1e-13)
    assert_allclose(np.triu(psi[pivots], 1), 0, atol=0)
    assert (np.diagonal(psi[pivots]) > 0).all()
    left = weight @ np.diagonal(K - psi @ psi.T) / (weight @ np.diagonal(K))
    assert_allclose(error, left, atol=1e-14)


@pytest.mark.parametrize("rank", [1, 40, 200])
def test_the_rank_of_a_singular_matrix_is_found(rng, rank):
    features = rng.standard_normal((500, rank))
    pivots, psi, error, _ = decompose(features @ features.T, 1e-12)
    assert len(pivots) == rank
    assert error < 1e-12
    assert_allclose(psi @ psi.T, features @ features.T, atol=1e-11 * rank)


@pytest.mark.parametrize("concentration", [0.05, 1.0])
def test_pivots_in_blocks_need_hardly_more_rank_than_greedy_ones(rng, concentration):
    K = rbf_kernel(rng.dirichlet(np.full(10, concentration), 600), gamma=1)
    expected = greedy_rank(K, 1e-4)
    assert expected <= len(decompose(K, 1e-4)[0]) <= 1.1 * expected + 64  # the end of a block


def test_neighbours_are_not_taken_one_by_one(rng):
    centres = rng.dirichlet(np.ones(50), 150)
    X = np.repeat(centres, 20, axis=0) + 1e-9 * rng.random((3000, 50))
    _, _, error, n_calls = decompose(rbf_kernel(X, gamma=50), 1e-6, 150)
    assert n_calls < 25
    assert error < 0.01


def test_an_indefinite_matrix_is_refused_by_the_row_that_shows_it():
    K = np.eye(5)
    K[1, 3] = K[3, 1] = 2.0  # 1 - 2² < 0 at whichever of the two comes second
    with pytest.raises(IndefiniteError, match=r"^The remainder of row [13] is -3\.$") as error:
        decompose(K, 0.0)
    assert error.value.row in (1, 3)
    K = np.diag([1.0, 1.0, -0.5])
    with pytest.raises(IndefiniteError, match=r"^The remainder of row 2 is -0\.5\.$"):
        decompose(K)
