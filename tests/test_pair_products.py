"""Sums over pairs of products of several functions against explicit double sums."""

import itertools
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skcal.pair_risk import pair_products


def random_parts(n=25, r=4, m=3):
    rng = np.random.default_rng(0)
    form = rng.normal(size=(r, r))
    return rng.normal(size=(n, r)), rng.normal(size=(n, m)), form + form.T, rng.uniform(0.1, 3, n)


def functions_of_all_kinds(n, container=np.asarray):
    """Dense and one-hot features, with and without forms."""
    phi, residuals, form, weight = random_parts(n)
    one_hot, wide = np.eye(6)[np.arange(n) % 6], random_parts(n, r=6)
    parts = [
        (phi, form),
        (phi[:, :2], None),
        (container(one_hot), container(wide[2])),  # as of debiased bins
        (container(one_hot), None),
        (0 * phi, None),
        (wide[0], container(wide[2])),
    ]
    return parts, residuals, weight


def toarray(part):
    return part.toarray() if sparse.issparse(part) else part


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [2, 15])
def test_pair_products_are_double_sums(n, weighted, container):
    parts, residuals, weight = functions_of_all_kinds(n, container)
    given = weight if weighted else None
    weight = weight if weighted else np.ones(n)
    values = []
    for phi, form in parts:
        phi = toarray(phi)
        values.append(phi @ (np.eye(phi.shape[1]) if form is None else toarray(form)) @ phi.T)
    inner = residuals @ residuals.T
    gram, moments = np.zeros((len(parts), len(parts))), np.zeros(len(parts))
    for i, j in itertools.permutations(range(n), 2):
        h = np.array([value[i, j] for value in values])
        gram += weight[i] * weight[j] * np.outer(h, h)
        moments += weight[i] * weight[j] * h * inner[i, j]
    found, linear = pair_products(parts, residuals, given)
    size = np.sqrt(np.outer(np.diagonal(gram), np.diagonal(gram))).max()
    assert_allclose(found, gram, rtol=1e-12, atol=1e-13 * size)
    assert_allclose(linear, moments, rtol=1e-12, atol=1e-13 * np.abs(moments).max())
    assert_array_equal(found, found.T)


def test_pair_products_form_no_array_over_pairs():
    phi, residuals, form, _ = random_parts(n=20_000, r=30, m=10)
    tracemalloc.start()
    pair_products([(phi, form), (phi, None)], residuals)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # n² numbers take 3.2 GB
