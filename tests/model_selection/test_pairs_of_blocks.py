"""Nested cross-fitting over pairs of blocks: what tests a block has never seen it."""

import warnings
from itertools import combinations

import naive_estimates as naive
import numpy as np
import pytest
from notion_cases import every_notion
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import KFold, StratifiedKFold

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    PlugIn,
    Stacking,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)
from skcal.model_selection.estimates import one_step
from skcal.model_selection.plan import make_plans
from skcal.notions import Problems, make_problems, resolve_notion
from skcal.recalibration import SplineScaling
from skcal.sample import read_sample

ISOTONIC = PlugIn(IsotonicRegression(out_of_bounds="clip"), target="outcome")
PARTS = [PlugIn(TemperatureScaling()), PlugIn(SplineScaling()), ISOTONIC]
CANDIDATES = [
    (Zero(), {}),
    (TwoStepKernelRidge(), {"alpha": [1e-3, 1e-1]}),
    (Binning(), {"n_bins": [3, 8]}),
    (PlugIn(TemperatureScaling()), {}),
]


@pytest.fixture
def data(tempered):
    return tempered[0][:240], tempered[1][:240]


def searched(data, candidates, notion="confidence", **parameters):
    parameters = {"cv": 4, "random_state": 0} | parameters
    return CalibrationErrorSearchCV(candidates, notion, **parameters).fit(*data)


def plan_of(labels, notion="canonical", **parameters):
    search = CalibrationErrorSearchCV([Zero()], notion, **parameters)
    proba = np.full((len(labels), 4), 0.25)
    return make_plans(search, read_sample(labels, proba, notion))


@pytest.mark.parametrize("cv", [3, 4, 7, KFold(5), StratifiedKFold(5)])
def test_every_pair_of_blocks_is_left_out_once_and_scores_its_fit(cv):
    labels = np.arange(200) % 4
    [plan] = plan_of(labels, cv=cv, random_state=0)
    blocks = [outer.test for outer in plan.outers]
    assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(200))
    pairs = list(combinations(range(len(blocks)), 2))
    assert len(plan.trainings) == len(pairs)
    for training, (a, b) in zip(plan.trainings, pairs, strict=True):
        left_out = np.concatenate([blocks[a], blocks[b]])
        assert_array_equal(training, np.setdiff1d(np.arange(200), left_out))
    for training, scoring in plan.scored_trainings:
        assert_array_equal(np.sort(np.concatenate([training, *scoring])), np.arange(200))
    for outer in plan.outers:
        assert len(outer.columns) == len(blocks) - 1
        for column in (plan.columns[number] for number in outer.columns):
            for rows in (blocks[column.block], plan.trainings[column.training]):
                assert not np.isin(outer.test, rows).any()
            assert not np.isin(blocks[column.block], plan.trainings[column.training]).any()
    assert sorted(number for group in plan.groups for number in group) == list(
        range(len(plan.columns))
    )


@pytest.mark.parametrize("cv", [3, 5])
@pytest.mark.parametrize("seed", range(10))
def test_a_class_of_three_members_is_in_every_training_set(cv, seed):
    labels = np.repeat([0, 1, 2, 3], [3, 40, 40, 17])
    [plan] = plan_of(labels, cv=cv, random_state=seed)
    assert all(0 in labels[training] for training in plan.trainings)


@pytest.mark.parametrize("n_members", [1, 2])
def test_a_class_of_fewer_members_is_warned_of(n_members):
    labels = np.repeat([0, 1, 2, 3], [n_members, 40, 40, 20])
    with pytest.warns(UserWarning, match="Class 0 does not occur in the training part of fold"):
        plan_of(labels, cv=3, random_state=0)


STACK = [Zero(), Stacking([*PARTS[:1], TwoStepKernelRidge(1e-2)])]


@pytest.mark.parametrize(
    ("notion", "candidates"),
    [("canonical", STACK), ("confidence", CANDIDATES), ("top-label", STACK)],
)
def test_the_labels_of_a_block_change_nothing_that_tests_it(data, rng, notion, candidates):
    P, y = data
    search = searched(data, candidates, notion)
    k = 0 if notion == "canonical" else 3
    block = search.outer_results_[k].outer.test
    other = y.copy()
    other[block] = rng.permutation(y[block])
    changed = searched((P, other), candidates, notion)
    one, same = search.outer_results_[k], changed.outer_results_[k]
    assert_array_equal(one.outer.test, same.outer.test)
    assert repr(one.function) == repr(same.function)
    assert_array_equal(one.plug_ins, same.plug_ins)
    for first, second in zip(one.corrections, same.corrections, strict=True):
        assert_array_equal(first, second)
    key = "mean_test_score"
    assert (search.cv_results_[key] != changed.cv_results_[key]).all()


def test_corrections_are_the_mean_over_the_fits_that_lack_the_block(data):
    P, y = data
    search = searched(data, [Zero(), PlugIn(TemperatureScaling())])
    blocks = [result.outer.test for result in search.outer_results_]
    for k, result in enumerate(search.outer_results_):
        fits = [
            CalibrationErrorEstimator(PlugIn(TemperatureScaling()), "confidence").fit(
                P[rows], y[rows]
            )
            for other in blocks[:k] + blocks[k + 1 :]
            for rows in [np.setdiff1d(np.arange(240), np.concatenate([blocks[k], other]))]
        ]
        x = P[blocks[k]].max(axis=1)[:, None]
        expected = np.mean([fit.functions_[0].residual(x) for fit in fits], axis=0)
        assert_allclose(result.corrections[0], expected, rtol=1e-9)


def products_by_pairs(estimators, k, problem):
    """Σ_{i≠j} h_k h_l and Σ_{i≠j} h_k ⟨δ_i, δ_j⟩ of fitted parts, and the h_k with ⟨δ_i, δ_j⟩."""
    pairs = ~np.eye(len(problem.features), dtype=bool)
    h = [one.functions_[k].predict_pairs(problem.features)[pairs] for one in estimators]
    inner = (problem.residuals @ problem.residuals.T)[pairs]
    return np.array(h) @ np.transpose(h), np.array(h) @ inner, np.array(h), inner


def best_weights(gram, moments):
    root = np.linalg.cholesky(gram)
    return nnls(root.T, np.linalg.solve(root, moments))[0]


@pytest.mark.parametrize("notion", ["confidence", "classwise"])
def test_a_searched_stack_is_weighted_by_the_other_columns(data, notion):
    P, y = data
    parts, train, test = PARTS[:2], np.arange(180), np.arange(180, 240)
    search = searched(data, [Stacking(parts)], notion, cv=KFold(3), outer_cv=[(train, test)])
    resolved, ones = resolve_notion(notion, P), np.ones(240)
    problems = Problems(make_problems(P, y, resolved, ones), ones)
    fits, said = [], []
    for rows, held_out in KFold(3).split(train):
        fits.append([CalibrationErrorEstimator(f, notion).fit(P[rows], y[rows]) for f in parts])
        columns = problems.take(held_out).parts
        said.append([products_by_pairs(fits[-1], k, one) for k, one in enumerate(columns)])
    plug_ins, n_problems = np.zeros(3), len(problems.parts)
    for split in range(3):
        risk = 0.0
        for k in range(n_problems):
            others = [said[other][k] for other in range(3) if other != split]
            weights = best_weights(sum(o[0] for o in others), sum(o[1] for o in others))
            _, _, h, inner = said[split][k]
            risk += np.mean((inner - weights @ h) ** 2)
            every = [one[k] for one in said]
            weights = best_weights(sum(o[0] for o in every), sum(o[1] for o in every))
            x = problems.parts[k].features[test]
            values = np.array([one.functions_[k].predict(x) for one in fits[split]])
            plug_ins[split] += np.mean(weights @ values)
        assert_allclose(-search.cv_results_[f"split{split}_test_score"][0], risk, rtol=1e-8)
    assert_allclose(search.outer_results_[0].plug_ins, plug_ins, rtol=1e-5)


def test_a_correction_that_is_zero_gives_way_to_the_next_function():
    """Calibrated predictions: a stack of h = 0 has the lowest risk and says nothing."""
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(4), 240)
    y = (P.cumsum(axis=1) < rng.random((240, 1))).sum(axis=1)
    silent, last = Stacking([Zero()]), PlugIn(TemperatureScaling())
    search = searched((P, y), [silent, last], "canonical", labels=range(4))
    for result in search.outer_results_:
        assert isinstance(result.function, PlugIn)
        assert result.corrections[0].any()
    alone = searched((P, y), [silent], "canonical", labels=range(4))
    assert not any(result.corrections[0].any() for result in alone.outer_results_)
    assert alone.one_step_squared_error_ is None  # 0 ± 0 would read as certainty


@every_notion
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rare", [False, True])
def test_the_guarded_one_step_estimate_is_that_of_its_definition(notion, weighted, rare):
    rng = np.random.default_rng(0)
    P = rng.dirichlet([30, 0.2, 0.2, 0.2] if rare else np.ones(4), 60)
    y = np.minimum((P.cumsum(axis=1) < rng.random((60, 1))).sum(axis=1), 3)
    weight = rng.uniform(0.5, 2, 60) if weighted else np.ones(60)
    if notion == "binary":
        P, y = P[:, 1], (y == 1).astype(int)
    problems = Problems(make_problems(P, y, resolve_notion(notion, P), weight), weight)
    corrections = [
        0.3 * (0.4 - part.features) + 0.02 * rng.normal(size=part.features.shape)
        for part in problems.parts
    ]
    estimate = one_step(corrections, problems)
    terms, value, error = naive.one_step(corrections, problems)
    assert_allclose(estimate.terms, terms, rtol=1e-9, atol=1e-12)
    assert_allclose(estimate.value, value, rtol=1e-9, atol=1e-12)
    assert_allclose(estimate.standard_error, error, rtol=1e-8)


def test_events_that_have_not_happened_count_in_the_standard_error():
    P, y = np.full(100, 0.01), np.zeros(100, dtype=int)
    data = Problems(make_problems(P, y, resolve_notion("binary", P), np.ones(100)), np.ones(100))
    correction = [np.full((100, 1), -0.01)]  # what a fit to no events says: it moves p to 0
    estimate = one_step(correction, data)
    assert np.std(estimate.terms) < 1e-15
    assert estimate.standard_error > 0
    assert estimate.lower_confidence_bound() < 0


@pytest.mark.slow
def test_the_bound_of_rare_events_that_are_calibrated_has_its_level():
    """Of 400 data sets with 1 % positives 20 may be refuted; 36 or more have probability 0.0005.

    None was when this was written, and 0.975 of the estimates were below what is claimed; at 0.95
    fewer than 0.91 have probability 0.0005.
    """
    refuted, below = 0, 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        P = rng.beta(0.5, 49.5, 200)
        y = (rng.random(200) < P).astype(int)
        search = CalibrationErrorSearchCV(
            [PlugIn(SplineScaling()), Zero()], "binary", labels=[0, 1], random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            search.fit(P, y)
        refuted += search.lower_confidence_bound() > 0
        below += search.rms_calibration_error_ <= search.calibrated_up_to_
    assert refuted < 36
    assert below > 364
