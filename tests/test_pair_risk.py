"""The risk of bilinear forms against its definition, a double loop over pairs."""

import itertools
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context

from skcal._matrices import sum_over_pairs
from skcal.notions import NOTIONS, make_problems
from skcal.pair_risk import (
    PairRisk,
    add_problems,
    dense_pair_risk,
    excess_risk,
    one_step_terms,
    pair_risk,
    pair_risk_path,
    plug_in_risks,
    weighted_mean,
)


def pair_risk_difference(phi_a, form_a, phi_b, form_b, residuals, sample_weight=None):
    a, b = (
        excess_risk(phi, residuals, form, sample_weight=sample_weight)
        for phi, form in ((phi_a, form_a), (phi_b, form_b))
    )
    return a - b


EXACT = {"rtol": 1e-12}  # sums of some 10⁴ terms in double precision
ROUNDED = {"rtol": 0, "atol": 1e-14}  # sums of some 100 terms below 1


def random_parts(n=25, r=4, m=3):
    rng = np.random.default_rng(0)
    form = rng.normal(size=(r, r))
    return rng.normal(size=(n, r)), rng.normal(size=(n, m)), form + form.T, rng.uniform(0.1, 3, n)


def squared_gap(phi, residuals, form):
    M = np.eye(phi.shape[1]) if form is None else form
    return lambda i, j: (residuals[i] @ residuals[j] - phi[i] @ M @ phi[j]) ** 2


def assert_is_loop(risk, loss, weight):
    """Compare with Σ_{i≠j} w_i w_j ℓ_ij / Σ_{i≠j} w_i w_j and its Hájek projection."""
    n, total, pairs, variance = len(weight), 0.0, 0.0, 0.0
    for i, j in itertools.permutations(range(n), 2):
        total += weight[i] * weight[j] * loss(i, j)
        pairs += weight[i] * weight[j]
    for i in range(n):
        others = [j for j in range(n) if j != i]
        mean = sum(weight[j] * loss(i, j) for j in others) / sum(weight[j] for j in others)
        variance += 4 * weight[i] ** 2 * (mean - total / pairs) ** 2 / sum(weight) ** 2
    assert_allclose(risk.value, total / pairs, **EXACT)
    # A single pair has no spread; otherwise means are subtracted.
    assert_allclose(risk.standard_error, np.sqrt(variance), rtol=1e-10, atol=1e-12 * total / pairs)
    assert_allclose(np.linalg.norm(risk.influence), risk.standard_error, **EXACT)


def assert_same(left, right):
    assert_allclose(left.value, right.value, **EXACT)
    assert_allclose(left.influence, right.influence, rtol=1e-9, atol=1e-12 * abs(right.value))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("use_form", [False, True])
@pytest.mark.parametrize(("n", "r", "m"), [(25, 4, 3), (7, 1, 1), (6, 20, 10), (2, 2, 3)])
def test_pair_risk_is_its_double_loop(n, r, m, use_form, weighted):
    phi, residuals, form, weight = random_parts(n, r, m)
    form = form if use_form else None
    risk = pair_risk(phi, residuals, form, sample_weight=weight if weighted else None)
    assert_is_loop(risk, squared_gap(phi, residuals, form), weight if weighted else np.ones(n))


def test_the_dense_reference_is_its_double_loop_for_any_function():
    phi, residuals, _, weight = random_parts()
    risk = dense_pair_risk(lambda X, Z: (X @ Z.T) ** 3, phi, residuals, sample_weight=weight)
    gap = residuals @ residuals.T - (phi @ phi.T) ** 3
    assert_is_loop(risk, lambda i, j: gap[i, j] ** 2, weight)


@pytest.mark.parametrize("notion", [*NOTIONS, "top-2"])
def test_every_notion_has_the_risk_of_its_pairs(notion, tempered):
    proba, labels = tempered[0][:500], tempered[1][:500]
    if notion == "binary":
        proba, labels = proba[:, 0], (labels == 0).astype(int)
    for X, residuals, *_ in make_problems(proba, labels, notion):
        _, _, M, weight = random_parts(len(X), X.shape[1])
        risk = pair_risk(X, residuals, M, sample_weight=weight)
        dense = dense_pair_risk(lambda a, b, M=M: a @ M @ b.T, X, residuals, sample_weight=weight)
        assert_same(risk, dense)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("form", ["dense", "sparse", None])
def test_sparse_features_and_forms_have_the_dense_risk(form, container):
    _, residuals, dense, weight = random_parts(n=40, r=6)
    phi = np.eye(6)[np.arange(40) % 6]
    other = container(dense) if form == "sparse" else dense if form else None
    right = pair_risk(phi, residuals, dense if form else None, sample_weight=weight)
    for features in (container(phi), phi):
        assert_same(pair_risk(features, residuals, other, sample_weight=weight), right)


def test_single_precision_is_summed_in_double():
    phi, residuals, form, _ = (part.astype(np.float32) for part in random_parts(m=1))
    double = pair_risk(*(part.astype(np.float64) for part in (phi, residuals, form)))
    assert_same(pair_risk(phi, residuals, form), double)
    assert_same(pair_risk(phi, residuals[:, 0], form), double)  # one column


def test_lists_are_read_as_arrays():
    parts = random_parts()[:3]
    assert_same(pair_risk(*(part.tolist() for part in parts)), pair_risk(*parts))


@pytest.mark.parametrize("kind", ["forms", "identity", "sparse"])
def test_the_difference_has_the_differences_of_the_losses(kind):
    phi, residuals, form, weight = random_parts()
    other = random_parts(r=6)[0] ** 2
    a, b = (form, np.diag(np.arange(6.0))) if kind == "forms" else (None, None)
    given = sparse.csr_array(other) if kind == "sparse" else other
    difference = pair_risk_difference(phi, a, given, b, residuals, sample_weight=weight)
    first, second = squared_gap(phi, residuals, a), squared_gap(other, residuals, b)
    assert_is_loop(difference, lambda i, j: first(i, j) - second(i, j), weight)
    both = (phi, residuals, a), (other, residuals, b)
    risk_a, risk_b = (pair_risk(*parts, sample_weight=weight).value for parts in both)
    assert abs(difference.value - (risk_a - risk_b)) < 1e-12 * max(risk_a, risk_b)


def test_the_difference_of_close_functions_does_not_cancel():
    phi, residuals, form, _ = random_parts(n=200)
    difference = pair_risk_difference(phi, (1 + 1e-9) * form, phi, form, residuals).value
    h, others = phi @ form @ phi.T, ~np.eye(200, dtype=bool)
    # R((1 + ε)h) - R(h) = 2ε mean h (h - ⟨δ, δ'⟩) + O(ε²); 1 + ε itself has 7 digits of ε.
    slope = np.mean((h * (h - residuals @ residuals.T))[others])
    assert_allclose(difference, 2e-9 * slope, rtol=5e-7)


def test_identical_functions_differ_by_rounding_alone():
    phi, residuals, form, _ = random_parts(n=300)
    same = pair_risk_difference(phi, form, phi.copy(), form.copy(), residuals)
    assert max(abs(same.value), same.standard_error) < 1e-15 * pair_risk(phi, residuals).value


def test_a_path_holds_the_single_risks_and_takes_the_square_of_the_residuals_that_is_known():
    phi, residuals, form, weight = random_parts()
    forms = [form, 2 * form, np.eye(4), np.zeros((4, 4))]
    path = pair_risk_path(phi, residuals, iter(forms), sample_weight=weight)
    singles = [pair_risk(phi, residuals, M, sample_weight=weight).value for M in forms]
    assert_allclose(path, singles, **EXACT)
    constant = weight @ (residuals @ residuals.T) ** 2 @ weight
    more = pair_risk_path(phi, residuals, forms, sample_weight=weight, constant=2 * constant)
    assert_allclose(more - path, constant / sum_over_pairs(weight), **EXACT)


def test_weight_0_is_a_removed_row_and_equal_weights_are_none():
    phi, residuals, form, weight = random_parts()
    keep = np.arange(25) % 3 > 0
    zeroed = pair_risk(phi, residuals, form, sample_weight=weight * keep)
    removed = pair_risk(phi[keep], residuals[keep], form, sample_weight=weight[keep])
    assert_same(PairRisk(zeroed.value, zeroed.standard_error, zeroed.influence[keep]), removed)
    assert_array_equal(zeroed.influence[~keep], 0)
    assert_same(*(pair_risk(phi, residuals, form, sample_weight=w) for w in (7, None)))


@pytest.mark.parametrize("weight", [None, [0, 0, 1, 0]])
def test_a_risk_needs_two_samples(weight):
    n = 1 if weight is None else 4
    with pytest.raises(ValueError, match=r"at least 2 samples with positive sample_weight"):
        pair_risk(np.ones((n, 1)), np.ones(n), sample_weight=weight)


@pytest.mark.parametrize("rows", [slice(3, None), np.arange(30) % 25], ids=["fewer", "more"])
def test_features_and_residuals_of_different_lengths_are_refused(rows):
    phi, residuals, form, _ = random_parts()
    with pytest.raises(ValueError, match=r"(?i)inconsistent|dimension|length|samples"):
        pair_risk(phi, residuals[rows], form)


def test_blocks_have_the_risk_of_the_whole():
    phi, residuals, form, weight = random_parts(n=500)

    def risks():
        yield pair_risk(phi, residuals, form, sample_weight=weight)
        yield pair_risk_difference(phi, form, phi, None, residuals, sample_weight=weight)
        yield dense_pair_risk(lambda X, Z: X @ Z.T, phi, residuals, sample_weight=weight)

    whole = list(risks())
    with config_context(working_memory=0.01):  # at most 46 rows in a block
        for one, other in zip(risks(), whole, strict=True):
            assert_same(one, other)


def test_no_array_over_pairs_is_formed():
    phi, residuals, form, _ = random_parts(n=20_000, r=30, m=10)
    tracemalloc.start()
    pair_risk(phi, residuals, form)
    pair_risk_difference(phi, form, phi, None, residuals)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # n² numbers take 3.2 GB


def population():
    """Return shares, features, residuals and E[δ | x] of the atoms (x, y) of a finite model."""
    rng = np.random.default_rng(0)
    share, p, truth = rng.dirichlet(np.ones(4)), *rng.dirichlet(np.ones(3), size=(2, 4))
    x, y = np.divmod(np.arange(12), 3)
    return share[x] * truth[x, y], p[x], np.eye(3)[y] - p[x], (truth - p)[x]


def test_the_one_step_terms_fall_short_by_what_the_correction_misses():
    share, p, residuals, truth = population()
    for g in (0 * p, p, truth / 2, truth, truth + 0.1):
        terms = one_step_terms(g, residuals)
        bound = np.sum(truth**2, axis=1) - np.sum((g - truth) ** 2, axis=1)
        assert_allclose(share @ terms, share @ bound, **ROUNDED)
        saved = np.sum(residuals**2, axis=1) - np.sum((residuals - g) ** 2, axis=1)
        assert_allclose(terms, saved, **ROUNDED)  # of the Brier score


def test_standard_error_is_close_to_the_jackknife(rng):
    phi, residuals = rng.normal(size=(60, 4)), rng.normal(size=(60, 3))
    left_out = [
        excess_risk(np.delete(phi, i, 0), np.delete(residuals, i, 0)).value for i in range(60)
    ]
    # They differ by a factor (n - 1) / (n - 2) in every contribution and √(n / (n - 1)).
    error = excess_risk(phi, residuals).standard_error
    assert_allclose(error, np.sqrt(59 * np.var(left_out)), rtol=3 / 60)


def test_the_weighted_mean_has_the_usual_standard_error():
    terms, weight = np.random.default_rng(0).normal(size=(2, 30)) ** 2
    usual = terms.mean(), terms.std(ddof=1) / np.sqrt(30)
    assert_allclose(weighted_mean(terms, np.full(30, 9.0)), usual, **EXACT)
    mean, error = weighted_mean(np.append(terms, 5), np.append(weight, 0))
    assert_allclose(mean, np.average(terms, weights=weight), **EXACT)
    assert_allclose(error, weighted_mean(terms, weight)[1], **EXACT)  # 0 is removed
    assert np.isnan(weighted_mean(terms[:1], weight[:1])[1])


def test_problems_add_their_influences_before_the_variance():
    phi, residuals, form, _ = random_parts(n=20)
    one, two = pair_risk(phi[:10], residuals[:10], form), pair_risk(phi[10:], residuals[10:], form)
    rows = slice(0, 10), np.arange(10, 20), slice(0, 0)
    apart = add_problems([one, two, None], [0.3, 0.7, 0.1], rows, 20)
    assert_allclose(apart.value, 0.3 * one.value + 0.7 * two.value, **EXACT)
    errors = 0.3 * one.standard_error, 0.7 * two.standard_error
    assert_allclose(apart.standard_error, np.hypot(*errors), **EXACT)
    assert apart.skipped == (2,)
    shared = add_problems([one, one], [1, 1], [slice(None)] * 2, 10).standard_error
    assert_allclose(shared, 2 * one.standard_error, **EXACT)


@pytest.mark.parametrize(("n", "m"), [(30, 3), (3, 12), (12, 12)])
@pytest.mark.parametrize("weighted", [False, True])
def test_risks_of_several_plug_ins_are_those_of_each(rng, n, m, weighted):
    residuals, phis = rng.normal(size=(n, m)), rng.normal(size=(4, n, m))
    weight = rng.integers(0, 3, n) + (np.arange(n) < 2) if weighted else None
    risks = plug_in_risks(iter(phis), residuals, sample_weight=weight)
    expected = [pair_risk(phi, residuals, sample_weight=weight).value for phi in phis]
    assert_allclose(risks, expected, rtol=1e-11)
