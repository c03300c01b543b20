"""Fits to unions of blocks that share what they compute, against fits to each union alone."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone

from skcal import (
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    TwoStepKernelRidge,
    Zero,
)
from skcal.datasets import make_tempered
from skcal.functions import dirichlet_sums, kernel_density, kernel_ridge

DENSITIES = [DirichletKernelDensity(width) for width in (1e-5, 1e-3, "loo", 0.3)]
RIDGES = [
    ridge(alpha, tol=1e-14)
    for ridge in (TwoStepKernelRidge, KroneckerKernelRidge)
    for alpha in (1e-4, 1.0)
]


def draw_blocks(rng, d, draw):
    """Four blocks of features, residuals and weights, and two without any sample that counts.

    On the grid many features are 0 or 1.
    """
    blocks = []
    for n in (30, 41, 25, 38):
        X = rng.dirichlet(np.full(max(d, 2), 0.3), size=n)
        X = rng.multinomial(20, X) / 20 if draw == "grid" else X
        outcomes = np.eye(max(d, 2))[rng.integers(0, max(d, 2), n)]
        X, outcomes = (X[:, 1:], outcomes[:, 1:]) if d == 1 else (X, outcomes)
        blocks.append((X, outcomes - X, rng.integers(0, 3, n).astype(float)))
    X, residuals, weight = blocks[0]
    return [*blocks, (X[:0], residuals[:0], weight[:0]), (X, residuals, 0 * weight)]


@pytest.mark.parametrize(
    ("functions", "many"),
    [(DENSITIES, True), (DENSITIES, False), (RIDGES, True), (RIDGES, False)],
    ids=["densities, many", "densities", "ridges of many residuals", "ridges"],
)
@pytest.mark.parametrize(("d", "draw"), [(1, "grid"), (1, "inside"), (3, "grid"), (20, "inside")])
def test_fits_to_blocks_are_those_to_each_union(rng, monkeypatch, functions, d, draw, many):
    monkeypatch.setattr(dirichlet_sums, "_MANY_PAIRS", 0 if many else np.inf)
    monkeypatch.setattr(TwoStepKernelRidge, "_has_risk_form", lambda *size: many)
    blocks = draw_blocks(rng, d, draw)
    shared = functions[0]._over_blocks(functions, blocks)
    trainings = [*combinations([0, 2, 3], 2), (0, 2, 4), (2, 3, 5)]
    scores = shared.scores(functions, 1, trainings)
    X, residuals, weight = blocks[1]
    for training, column in zip(trainings, scores.T, strict=True):
        union = [np.concatenate(part) for part in zip(*(blocks[k] for k in training), strict=True)]
        for function, score in zip(functions, column, strict=True):
            alone, fitted = clone(function).fit(*union), shared.fit(function, training)
            assert_allclose(score, alone.score(X, residuals, weight), rtol=1e-8)
            assert_allclose(fitted.predict(X), alone.predict(X), rtol=1e-6, atol=1e-9)
            assert vars(fitted).keys() == vars(alone).keys()


@pytest.mark.parametrize("d", [1, 3, 20])
def test_blocks_of_rows_score_as_all_rows_do_what_is_not_far_behind(rng, monkeypatch, d):
    monkeypatch.setattr(kernel_density, "_TRIAL_ROWS", 18)
    monkeypatch.setattr(kernel_density, "_BEHIND", 1.2)
    blocks, trainings = draw_blocks(rng, d, "inside"), [(0, 2), (0, 3), (2, 3)]
    functions = [DirichletKernelDensity(width) for width in (1e-5, 1e-3, 0.1, "loo", 0.3)]
    shared = functions[0]._over_blocks(functions, blocks)
    expected = shared.scores(functions, 1, trainings)
    with config_context(working_memory=16 * 4 * 5 * (d + 1) * 6 / 2**20):  # 6 of 41 rows
        scores = shared.scores(functions, 1, trainings)
    first = [part[blocks[1][2] > 0][:18] for part in blocks[1]]
    tried = np.array(
        [[shared.fit(f, training).score(*first) for training in trainings] for f in functions]
    )
    fixed = tried[[0, 1, 2, 4]].max(axis=0)
    behind = (tried < 1.2 * fixed).all(axis=1) & [True, True, True, False, True]
    assert 0 < np.count_nonzero(behind) < 4
    assert_allclose(scores[~behind], expected[~behind], rtol=1e-8)
    assert_allclose(scores[behind], tried[behind], rtol=1e-8)
    assert_allclose(shared.scores(functions[3:4], 1, trainings), expected[3:4], rtol=1e-8)


def data():
    data = make_tempered(240, n_classes=4, temperature=2.0, n_truth_draws=0, random_state=0)
    return data.proba, data.labels


def search_of_ridges(max_rank=None, labels=None):
    proba, y = data()
    candidates = [(Zero(), {})] + [
        (ridge(tol=1e-14, gamma=1.0, max_rank=max_rank), {"alpha": [1e-5, 1e-3, 1e-1]})
        for ridge in (TwoStepKernelRidge, KroneckerKernelRidge)
    ]
    return CalibrationErrorSearchCV(candidates, "canonical", cv=4, random_state=0).fit(
        proba, y if labels is None else labels
    )


@pytest.fixture(scope="module")
def doubled():
    """A search whose first fits have rank 4."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_ridge, "_FIRST_RANK", 4)
        return search_of_ridges()


def test_the_rank_doubles_until_the_lowest_risks_no_longer_show_it(doubled, monkeypatch):
    exact = search_of_ridges()
    rank = doubled.families_[1].models[0].functions_[0].rank_
    assert 4 < rank < exact.families_[1].models[0].functions_[0].rank_
    for one, other in zip(exact.families_, doubled.families_, strict=True):
        assert one.best_setting == other.best_setting
        assert_allclose(one.scores.max(), other.scores.max(), rtol=1e-5)
    monkeypatch.setattr(kernel_ridge, "_FIRST_RANK", 4)
    limited = search_of_ridges(max_rank=6)
    assert limited.families_[1].models[0].functions_[0].rank_ == 6


def test_no_factor_and_no_rows_of_a_rank_are_computed_or_held_twice(monkeypatch):
    """The fits of half the rank, which say whether finer ones matter, are those before."""
    monkeypatch.setattr(kernel_ridge, "_FIRST_RANK", 4)
    factored, fits, scored = [], [], []
    take, initialise = kernel_ridge._KernelRidge._take_factor, kernel_ridge._RidgeFits.__init__
    score = kernel_ridge._RidgeFits._scores

    def take_factor(function, basis, moments):
        factored.append((len(moments.gram), moments.total, moments.gram[0, 0]))
        return take(function, basis, moments)

    def initialised(self, *args, **kwargs):
        fits.append(self)
        initialise(self, *args, **kwargs)

    def of_functions(self, functions, block, trainings):
        scored.extend((self.rank, repr(f), block, t) for f in functions for t in trainings)
        return score(self, functions, block, trainings)

    monkeypatch.setattr(kernel_ridge._KernelRidge, "_take_factor", take_factor)
    monkeypatch.setattr(kernel_ridge._RidgeFits, "__init__", initialised)
    monkeypatch.setattr(kernel_ridge._RidgeFits, "_scores", of_functions)
    search = search_of_ridges()
    assert len({rank for rank, *_ in factored}) > 3
    assert len(set(scored)) == len(scored)
    shared = [rank for rank, total, _ in factored if rank > 2 and total < 240]
    # Of four blocks: six pairs and four triples; of all samples the last.
    assert max(np.bincount(shared)) <= 10
    ranks = sorted(part.rank for part in fits)
    assert ranks == sorted(set(ranks))
    of_ranks = {part.rank: part for part in fits if "_sums" in vars(part)}
    finest = of_ranks[max(of_ranks)]._sums
    for part in of_ranks.values():
        assert all(
            np.shares_memory(psi, whole)
            for (psi, *_), (whole, *_) in zip(part._sums.parts, finest.parts, strict=True)
        )
    errors = [m.functions_[0].trace_error_ for f in search.families_[1:] for m in f.models]
    assert np.isfinite(errors).all()


def test_coarser_fits_on_other_landmarks_are_not_those_before(rng):
    blocks, function = draw_blocks(rng, 3, "inside"), TwoStepKernelRidge(tol=1e-14)
    fits = kernel_ridge._RidgeFits(function, blocks, 4)
    assert fits.finer().coarser() is fits
    other = kernel_ridge._RidgeFits(function, [(1 - X, *rest) for X, *rest in blocks], 4)
    finer = kernel_ridge._RidgeFits(function, blocks, 8, half=other)
    assert finer.coarser() is not other
    scores = finer.coarser().scores([function], 1, [(0, 2)])
    assert_allclose(scores, fits.scores([function], 1, [(0, 2)]), rtol=1e-12)


def test_what_is_far_from_the_best_is_scored_by_the_first_fits_alone(doubled):
    first = search_of_ridges(max_rank=4)
    for one, other in zip(doubled.families_[1:], first.families_[1:], strict=True):
        far = np.abs(np.arange(3) - one.best) > 1
        assert far.any()
        assert_array_equal(one.scores[far], other.scores[far])
        assert (one.scores[~far] != other.scores[~far]).all()


def test_the_labels_of_a_block_do_not_choose_the_rank_that_tests_it(monkeypatch, doubled, rng):
    monkeypatch.setattr(kernel_ridge, "_FIRST_RANK", 4)
    one, labels = doubled.outer_results_[0], data()[1].copy()
    block = one.outer.test
    labels[block] = rng.permutation(labels[block])
    same = search_of_ridges(labels=labels).outer_results_[0]
    assert_array_equal(one.plug_ins, same.plug_ins)
    assert_array_equal(one.corrections[0], same.corrections[0])


@pytest.mark.filterwarnings("ignore:Class .* is predicted for fewer than 2 samples")
@pytest.mark.parametrize("weighted", [False, True])
def test_a_class_may_not_be_predicted_in_a_block(weighted):
    data = make_tempered(80, n_classes=5, temperature=2.0, n_truth_draws=0, random_state=0)
    candidates = [DirichletKernelDensity(width) for width in (0.02, "loo")]
    candidates += [KroneckerKernelRidge(), TwoStepKernelRidge()]
    options = {"notion": "top-label", "random_state": 0}
    predicted, weight = data.proba.argmax(axis=1), np.ones(80)
    first = CalibrationErrorSearchCV([Zero()], **options).fit(data.proba, data.labels)
    tests = [result.outer.test for result in first.outer_results_]
    if weighted:
        weight[tests[0][predicted[tests[0]] == predicted[0]]] = 0
    counts = [np.bincount(predicted[rows], weight[rows], minlength=5) for rows in tests]
    assert ((np.min(counts, axis=0) == 0) & (np.sum(counts, axis=0) > 10)).any()
    search = CalibrationErrorSearchCV([Zero(), *candidates], **options)
    search.fit(data.proba, data.labels, sample_weight=weight)
    assert all(np.isfinite(family.scores).all() for family in search.families_)
