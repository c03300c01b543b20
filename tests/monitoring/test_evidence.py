"""The e-process is its definition, and a martingale with mean 1 under H0, exactly."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from naive_bets import e_process, make_batches
from numpy.testing import assert_allclose

from skcal.monitoring.bets import Batch, tilted
from skcal.monitoring.evidence import BET_SCALES, Evidence

SCALAR_OR_NOT = pytest.mark.parametrize("n_columns", [2, 3])


def watch(batches, n_columns):
    evidence = Evidence(n_columns, n_columns == 2)
    for batch in batches:
        evidence.settle(evidence.bet(batch))
    return evidence


@SCALAR_OR_NOT
def test_the_e_process_is_the_mixture_over_tilts_and_starts(n_columns, rng):
    batches = make_batches([3, 1, 7, 20, 2], n_columns, rng, tilt=0.6)
    evidence, (e_value, detector) = watch(batches, n_columns), e_process(batches, n_columns)
    assert_allclose(np.exp(evidence.log_e_value), e_value, rtol=1e-10)
    assert_allclose(np.exp(evidence.log_detector), detector, rtol=1e-10)


def outcomes_of(batches):
    """All outcomes with their probabilities under H0."""
    columns = range(batches[0].proba.shape[1])
    sizes = [len(batch.code) for batch in batches]
    for codes in product(columns, repeat=sum(sizes)):
        parts = np.split(np.array(codes), np.cumsum(sizes)[:-1])
        happened = [replace(batch, code=part) for batch, part in zip(batches, parts, strict=True)]
        probability = np.prod([b.of_column(b.proba, b.code).prod() for b in happened])
        yield probability, happened


@SCALAR_OR_NOT
def test_the_mean_over_all_outcomes_is_exactly_1(n_columns, rng):
    batches = make_batches([2, 1, 2], n_columns, rng)
    found = [(p, watch(happened, n_columns)) for p, happened in outcomes_of(batches)]
    assert_allclose(sum(p for p, _ in found), 1)
    assert_allclose(sum(p * np.exp(evidence.log_wealth_of_bets) for p, evidence in found), 1)
    assert 0.9 < sum(p * np.exp(evidence.log_e_value) for p, evidence in found) <= 1
    # E D_t is the number of samples.
    assert_allclose(sum(p * np.exp(evidence.log_detector) for p, evidence in found), 5)


@SCALAR_OR_NOT
def test_weights_below_1_keep_the_mean_at_most_1(n_columns, rng):
    weight = np.array([0.5, 0.2])
    batches = [replace(batch, weight=weight) for batch in make_batches([2, 2], n_columns, rng)]
    found = [(p, watch(happened, n_columns)) for p, happened in outcomes_of(batches)]
    assert 0.9 < sum(p * np.exp(evidence.log_e_value) for p, evidence in found) <= 1


@SCALAR_OR_NOT
def test_samples_of_a_group_may_have_one_outcome_in_common(n_columns, rng):
    batches = make_batches([2, 2], n_columns, rng)
    means = []
    for weight in (np.ones(3), np.full(3, 1 / 3)):
        mean = 0.0
        for p, happened in outcomes_of(batches):
            thrice = [
                Batch(*(np.repeat(part, 3, axis=0) for part in (b.proba, b.code, b.target)), w)
                for b, w in zip(happened, [np.tile(weight, 2)] * 2, strict=True)
            ]
            mean += p * np.exp(watch(thrice, n_columns).log_e_value)
        means.append(mean)
    assert means[0] > 1.05  # as if they were independent
    assert 0.9 < means[1] <= 1


def test_the_mean_is_1_where_predictions_are_certain():
    proba = np.array([[0.0, 0.5, 0.5], [0.0, 1e-200, 1.0]])
    batch = Batch(proba, np.array([1, 2]), proba.argmax(axis=1), np.ones(2))
    found = [(p, watch(happened, 3)) for p, happened in outcomes_of([batch, batch]) if p]
    values = [np.exp(evidence.log_e_value) for _, evidence in found]
    assert np.isfinite(values).all()
    assert sum(p * value for (p, _), value in zip(found, values, strict=True)) < 1.01


def test_an_outcome_that_was_excluded_is_infinite_evidence():
    batch = Batch.of(np.array([[0.0], [0.5]]), np.array([[1.0], [1.0]]), np.ones(2))
    evidence = watch([batch], 2)
    assert evidence.log_e_value == evidence.log_detector == np.inf
    evidence.settle(evidence.bet(batch))
    evidence.merge(evidence)
    assert evidence.log_e_value == np.inf
    assert np.isfinite(evidence.estimate(0.05)).all()


@SCALAR_OR_NOT
def test_the_order_of_rows_and_the_size_of_blocks_do_not_matter(n_columns, rng, monkeypatch):
    batches = make_batches([50, 40], n_columns, rng)
    moved = [
        Batch(*(getattr(b, name)[order] for name in vars(b)))
        for b in batches
        for order in [rng.permutation(len(b.code))]
    ]
    first = watch(batches, n_columns)
    monkeypatch.setattr("skcal.monitoring.bets._BET_BYTES", 500)
    second = watch(moved, n_columns)
    for name, array in first.arrays().items():
        assert_allclose(array, second.arrays()[name], atol=1e-10, err_msg=name)


@SCALAR_OR_NOT
def test_error_terms_are_bounded_and_mean_what_they_say(n_columns, rng):
    batches = make_batches([400, 1], n_columns, rng, tilt=0.5)
    evidence = watch(batches[:1], n_columns)
    best = int(np.argmax(evidence.log_prior + evidence.log_wealth))
    family = int(np.searchsorted(evidence.ends, best, side="right"))
    place = best - evidence.ends[family] + evidence.families[family].n_tilts
    [batch] = batches[1:]
    gap = (tilted(batch, evidence.families[family].tilt(batch, place)) - batch.proba)[0]
    part = slice(1, 2) if n_columns == 2 else slice(None)
    means = np.zeros(len(BET_SCALES))
    for code in range(n_columns):
        terms = evidence.bet(replace(batch, code=np.array([code])))[3][0]
        assert (terms >= -BET_SCALES - 1e-9).all()
        means += batch.proba[0, code] * terms
    # Under H0 the mean is -‖ĝ‖²; the largest scale does not shrink this ĝ.
    assert_allclose(means[-1], -(gap[part] ** 2).sum(), rtol=1e-6)
    assert (means[:-1] > means[-1]).all()
