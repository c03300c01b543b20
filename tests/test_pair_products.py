"""Sums over pairs of products of several functions against explicit double sums."""

import itertools
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import block_diag

from skcal import Binning
from skcal.pair_risk import pair_products, pair_risk


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


def test_pair_products_hold_the_risks_of_all_weighted_sums():
    parts, residuals, weight = functions_of_all_kinds(25)
    gram, moments = pair_products(parts, residuals, weight)
    pairs = weight.sum() ** 2 - weight @ weight
    zero = pair_risk(parts[-2][0], residuals, sample_weight=weight).value
    for a in np.random.default_rng(1).normal(size=(5, len(parts))):
        features = np.hstack([phi for phi, _ in parts])
        forms = [np.eye(phi.shape[1]) if form is None else form for phi, form in parts]
        form = block_diag(*(k * M for k, M in zip(a, forms, strict=True)))
        risk = pair_risk(features, residuals, form, sample_weight=weight).value
        assert_allclose(zero + (a @ gram @ a - 2 * moments @ a) / pairs, risk, rtol=1e-10)


def test_pair_products_of_weight_0_are_those_of_removed_rows():
    parts, residuals, weight = functions_of_all_kinds(25)
    keep = np.arange(25) % 3 > 0
    fewer = [(phi[keep], form) for phi, form in parts]
    zeroed = pair_products(parts, residuals, weight * keep)
    removed = pair_products(fewer, residuals[keep], weight[keep])
    for one, other in zip(zeroed, removed, strict=True):
        assert_allclose(one, other, rtol=1e-12, atol=1e-12 * np.abs(other).max())


def test_pair_products_form_no_array_over_pairs():
    phi, residuals, form, _ = random_parts(n=20_000, r=30, m=10)
    tracemalloc.start()
    pair_products([(phi, form), (phi, None)], residuals)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # n² numbers take 3.2 GB


def test_debiased_bins_enter_as_they_are(tempered):
    proba, labels = (array[:60] for array in tempered)
    residuals = np.eye(4)[labels] - proba
    models = [Binning(k, debias=k == 4).fit(proba, residuals) for k in (3, 4)]
    parts = [(model.feature_map(proba), model.form_) for model in models]
    assert sparse.issparse(parts[1][0])
    gram, moments = pair_products(parts, residuals)
    others = ~np.eye(60, dtype=bool)
    h = np.array([model.predict_pairs(proba)[others] for model in models])
    assert_allclose(gram, h @ h.T, rtol=1e-10)
    assert_allclose(moments, h @ (residuals @ residuals.T)[others], rtol=1e-10)
