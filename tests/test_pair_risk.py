"""The risk of bilinear forms against its definition, a double loop over pairs."""

import itertools
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context

from skcal.datasets import make_tempered
from skcal.notions import make_problems
from skcal.pair_risk import (
    PairRisk,
    add_problems,
    dense_pair_risk,
    linear_pair_risk,
    one_step_terms,
    pair_risk,
    pair_risk_difference,
    pair_risk_path,
    weighted_mean,
)

EXACT = {"rtol": 1e-12}  # sums of some 10⁴ terms in double precision


def random_parts(n=25, r=4, m=3):
    rng = np.random.default_rng(0)
    form = rng.normal(size=(r, r))
    return rng.normal(size=(n, r)), rng.normal(size=(n, m)), form + form.T, rng.uniform(0.1, 3, n)


def squared_gap(phi, residuals, form):
    form = np.eye(phi.shape[1]) if form is None else form
    return lambda i, j: (residuals[i] @ residuals[j] - phi[i] @ form @ phi[j]) ** 2


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


# The factored risk is the definition.


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


@pytest.mark.parametrize(
    "notion", ["canonical", "confidence", "top-label", "classwise", "top-2", "binary"]
)
def test_every_notion_has_the_risk_of_its_pairs(notion, tempered):
    proba, labels = tempered[0][:500], tempered[1][:500]
    if notion == "binary":
        proba, labels = proba[:, 0], (labels == 0).astype(int)
    for X, residuals, _ in make_problems(proba, labels, notion):
        _, _, form, weight = random_parts(len(X), X.shape[1])
        dense = dense_pair_risk(
            lambda a, b, M=form: a @ M @ b.T, X, residuals, sample_weight=weight
        )
        assert_same(pair_risk(X, residuals, form, sample_weight=weight), dense)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize("form", ["dense", "sparse", None])
def test_sparse_features_and_forms_have_the_dense_risk(form, container):
    _, residuals, dense, weight = random_parts(n=40, r=6)
    phi = np.eye(6)[np.arange(40) % 6]
    other = container(dense) if form == "sparse" else dense if form else None
    right = pair_risk(phi, residuals, dense if form else None, sample_weight=weight)
    for features in (container(phi), phi):
        assert_same(pair_risk(features, residuals, other, sample_weight=weight), right)


def test_array_likes_and_single_precision_are_summed_in_double():
    phi, residuals, form, _ = (part.astype(np.float32) for part in random_parts(m=1))
    double = pair_risk(*(part.astype(np.float64) for part in (phi, residuals, form)))
    assert_same(pair_risk(phi, residuals, form), double)
    assert_same(pair_risk(phi, residuals[:, 0], form), double)
    assert_same(pair_risk(phi.tolist(), residuals.tolist(), form.tolist()), double)


# Differences, paths, disjoint pairs.


@pytest.mark.parametrize("kind", ["forms", "identity", "sparse"])
def test_the_difference_has_the_differences_of_the_losses(kind):
    phi, residuals, form, weight = random_parts()
    other = random_parts(r=6)[0] ** 2
    a, b = (form, np.diag(np.arange(6.0))) if kind == "forms" else (None, None)
    given = sparse.csr_array(other) if kind == "sparse" else other
    difference = pair_risk_difference(phi, a, given, b, residuals, sample_weight=weight)
    first, second = squared_gap(phi, residuals, a), squared_gap(other, residuals, b)
    assert_is_loop(difference, lambda i, j: first(i, j) - second(i, j), weight)
    risk_a = pair_risk(phi, residuals, a, sample_weight=weight).value
    risk_b = pair_risk(other, residuals, b, sample_weight=weight).value
    assert_allclose(difference.value, risk_a - risk_b, atol=1e-12 * max(risk_a, risk_b))


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
    scale = pair_risk(phi, residuals, form).value
    assert max(abs(same.value), same.standard_error) < 1e-15 * scale


def test_a_path_holds_the_single_risks():
    phi, residuals, form, weight = random_parts()
    forms = [form, 2 * form, np.eye(4), np.zeros((4, 4))]
    path = pair_risk_path(phi, residuals, iter(forms), sample_weight=weight)
    singles = [pair_risk(phi, residuals, M, sample_weight=weight).value for M in forms]
    assert_allclose(path, singles, **EXACT)


@pytest.mark.parametrize("n", [6, 7])  # an odd last sample is left out
@pytest.mark.parametrize("to_phi", [np.asarray, sparse.csr_array])
def test_the_linear_risk_is_a_loop_over_disjoint_pairs(n, to_phi):
    phi, residuals, form, weight = random_parts(n)
    for M in (form, None):
        losses = np.array([squared_gap(phi, residuals, M)(i, i + 1) for i in (0, 2, 4)])
        linear = linear_pair_risk(to_phi(phi), residuals, M)
        assert_allclose(linear.value, losses.mean(), **EXACT)
        assert_allclose(linear.standard_error, losses.std() / np.sqrt(3), **EXACT)
        weighted = linear_pair_risk(to_phi(phi), residuals, M, sample_weight=weight)
        pairs = [weight[i] * weight[i + 1] for i in (0, 2, 4)]
        assert_allclose(weighted.value, np.average(losses, weights=pairs), **EXACT)


@pytest.mark.parametrize("n", [4, 5])
def test_the_linear_risk_averaged_over_all_orders_is_the_pair_risk(n):
    phi, residuals, form, _ = random_parts(n)
    orders = map(list, itertools.permutations(range(n)))
    linear = [linear_pair_risk(phi[order], residuals[order], form).value for order in orders]
    assert_allclose(np.mean(linear), pair_risk(phi, residuals, form).value, **EXACT)


# Weights.


def test_weight_0_is_a_removed_row_and_equal_weights_are_none():
    phi, residuals, form, weight = random_parts()
    keep = np.arange(25) % 3 > 0
    zeroed = pair_risk(phi, residuals, form, sample_weight=weight * keep)
    removed = pair_risk(phi[keep], residuals[keep], form, sample_weight=weight[keep])
    assert_same(PairRisk(zeroed.value, zeroed.standard_error, zeroed.influence[keep]), removed)
    assert_array_equal(zeroed.influence[~keep], 0)
    equal = pair_risk(phi, residuals, form, sample_weight=np.full(25, 7.0))
    assert_same(equal, pair_risk(phi, residuals, form))


def test_weight_2_is_not_a_repeated_row_whose_copies_form_a_pair():
    phi, residuals, form, _ = random_parts(n=6)
    rows, weight = [0, *range(6)], np.array([2.0, 1, 1, 1, 1, 1])
    repeated = pair_risk(phi[rows], residuals[rows], form).value * 7 * 6
    copies = 2 * squared_gap(phi, residuals, form)(0, 0)
    weighted = pair_risk(phi, residuals, form, sample_weight=weight).value * (7**2 - (4 + 5))
    assert_allclose(weighted, repeated - copies, **EXACT)


@pytest.mark.parametrize("function", [pair_risk, linear_pair_risk])
@pytest.mark.parametrize("weight", [None, [0, 0, 1, 0]])
def test_a_risk_needs_two_samples(function, weight):
    n = 1 if weight is None else 4
    with pytest.raises(ValueError, match=r"at least 2 samples with positive sample_weight"):
        function(np.ones((n, 1)), np.ones(n), sample_weight=weight)


@pytest.mark.parametrize("rows", [slice(3, None), np.arange(30) % 25])
@pytest.mark.parametrize("function", [pair_risk, linear_pair_risk])
def test_features_and_residuals_of_different_lengths_are_refused(function, rows):
    phi, residuals, form, _ = random_parts()
    with pytest.raises(ValueError, match=r"(?i)inconsistent|dimension|length|samples"):
        function(phi, residuals[rows], form)


# Cost.


def test_blocks_have_the_risk_of_the_whole():
    phi, residuals, form, weight = random_parts(n=500)
    arguments = {"phi": phi, "residuals": residuals, "form": form, "sample_weight": weight}
    whole = pair_risk(**arguments), dense_pair_risk(lambda X, Z: X @ Z.T, phi, residuals)
    with config_context(working_memory=0.01):  # 46 rows of a block at most
        assert_same(pair_risk(**arguments), whole[0])
        assert_same(dense_pair_risk(lambda X, Z: X @ Z.T, phi, residuals), whole[1])
        assert_allclose(
            pair_risk_path(phi, residuals, [form], sample_weight=weight), whole[0].value
        )


def test_no_array_over_pairs_is_formed():
    phi, residuals, form, _ = random_parts(n=20_000, r=30, m=10)
    tracemalloc.start()
    pair_risk(phi, residuals, form)
    pair_risk_difference(phi, form, phi, None, residuals)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # n² numbers take 3.2 GB


# Statistics.


def test_the_standard_error_is_the_spread_over_repetitions():
    risks, linear, differences = [], [], []
    for seed in range(400):
        data = make_tempered(200, n_classes=3, n_truth_draws=0, random_state=seed)
        [(p, residuals, _)] = make_problems(data.proba, data.labels, "canonical")
        g = np.sqrt(p) / np.sqrt(p).sum(axis=1, keepdims=True) - p
        risks.append(pair_risk(g, residuals))
        linear.append(linear_pair_risk(g, residuals))
        differences.append(pair_risk_difference(g, None, 0 * g, None, residuals))
    for results in (risks, linear, differences):
        spread = np.std([result.value for result in results], ddof=1)
        stated = np.sqrt(np.mean([result.standard_error**2 for result in results]))
        # A spread over 400 has a relative error of 3.5 %; 4 of them: false alarms 6e-5.
        assert abs(stated / spread - 1) < 0.14


def test_the_risk_is_smallest_at_the_inverse_temperature():
    data = make_tempered(40_000, temperature=2.0, n_truth_draws=0, random_state=0)
    taus, risks = [0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.8], []
    for start in range(0, 40_000, 500):
        rows = slice(start, start + 500)
        [(p, residuals, _)] = make_problems(data.proba[rows], data.labels[rows], "canonical")
        powers = [p**tau / (p**tau).sum(axis=1, keepdims=True) for tau in taus]
        risks.append([pair_risk(power - p, residuals).value for power in powers])
    risks = np.array(risks)
    above = risks - risks[:, [3]]
    z = above.mean(axis=0) / (above.std(axis=0) / np.sqrt(80) + 1e-300)
    assert z[[0, 1, 2, 4, 5, 6]].min() > 3, z
