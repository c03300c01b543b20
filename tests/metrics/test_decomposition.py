"""Scores in parts: their definition by loops, and what holds whatever the grouping."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import xlogy
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss
from used import used

from skcal._bins import SCALAR_PARTITIONS, SIMPLEX_PARTITIONS, find_partition
from skcal.metrics import score_decomposition, sharpness
from skcal.notions import make_problems

pytestmark = pytest.mark.filterwarnings("ignore:The log loss is infinite:UserWarning")

SCALAR = ["binary", "confidence", "top-label", "classwise"]
VECTOR = ["canonical", "top-2"]
SCORES = ["brier", "log-loss"]
BINNED = [*product(SCALAR, SCALAR_PARTITIONS), *product(VECTOR, SIMPLEX_PARTITIONS)]
GROUPED = [*BINNED, *product(SCALAR, ["isotonic"])]
BINS = {"n_bins": 5, "min_samples": 20}

every_score = pytest.mark.parametrize("score", SCORES)
every_grouping = pytest.mark.parametrize(("notion", "strategy"), GROUPED)


@pytest.fixture
def coarse(rng):
    """Labels and predictions on the grid k/8 of 3 classes: exact sums, ties, zeros and ones."""

    def draw(notion="classwise", n=120):
        truth = rng.dirichlet(np.ones(3), size=n)
        labels = (truth.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)
        proba = rng.multinomial(8, truth) / 8
        return ((labels == 0).astype(int), proba[:, 0]) if notion == "binary" else (labels, proba)

    return draw


def values(parts):
    return np.array(list(vars(parts).values()))


def weighted_problems(y, proba, notion, weight):
    """Features, outcomes, weights and share of each problem."""
    for x, residuals, *_, rows in make_problems(proba, y, notion):
        w = weight[rows]
        if len(w):
            share = w.sum() / weight.sum() if notion == "top-label" else 1
            yield x, np.rint(x + residuals), w, share


def naive_parts(x, outcomes, weight, bins):
    """The six sums of Stephenson et al. (2008), sample by sample."""
    base_rate = np.average(outcomes, axis=0, weights=weight)
    parts = np.zeros(6)
    for b in set(bins.tolist()):
        inside = np.flatnonzero(bins == b)
        predicted = np.average(x[inside], axis=0, weights=weight[inside])
        frequency = np.average(outcomes[inside], axis=0, weights=weight[inside])
        for i in inside:
            terms = [
                (x[i] - outcomes[i]) ** 2,
                (predicted - frequency) ** 2,
                (frequency - base_rate) ** 2,
                (outcomes[i] - base_rate) ** 2,
                (x[i] - predicted) ** 2,
                2 * (x[i] - predicted) * (outcomes[i] - frequency),
            ]
            parts += weight[i] * np.sum(terms, axis=1)
    return parts / weight.sum()


@pytest.mark.parametrize(("notion", "strategy"), BINNED)
def test_brier_parts_are_those_of_the_definition(coarse, rng, notion, strategy):
    y, proba = coarse(notion)
    weight = rng.uniform(0.2, 2, len(y))
    expected = np.zeros(6)
    for x, outcomes, w, share in weighted_problems(y, proba, notion, weight):
        bins = find_partition(strategy, x.shape[1])(x, outcomes, w, **BINS).assign(x)
        expected += share * naive_parts(x, outcomes, w, bins)
    parts = score_decomposition(
        y,
        proba,
        sample_weight=weight,
        **used(score_decomposition, notion=notion, strategy=strategy, **BINS),
    )
    assert_allclose(values(parts), expected, rtol=1e-10, atol=1e-14)


@every_grouping
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_add_up_to_the_score(coarse, rng, notion, strategy, weighted):
    y, proba = coarse(notion)
    options = used(score_decomposition, notion=notion, strategy=strategy, **BINS)
    if weighted:
        options["sample_weight"] = rng.uniform(0.2, 2, len(y))
    for name in SCORES:
        parts = score_decomposition(y, proba, score=name, **options)
        score, mcb, dsc, unc, variance, covariance = values(parts)
        assert_allclose(score, mcb - dsc + unc + variance - covariance, rtol=1e-13)
        if name == "log-loss" or strategy in ("isotonic", "unique"):
            assert_allclose([variance, covariance], 0, atol=1e-16)


# The scores


def one_against_rest(score, y, proba, weight):
    classes = range(proba.shape[1])
    return sum(score(y == k, proba[:, k], sample_weight=weight) for k in classes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_scikit_learn(coarse, rng, dtype, weighted):
    y, proba = coarse()
    proba = proba.astype(dtype)
    assert (proba[np.arange(len(y)), y] == 0).any()  # log loss of p = 0 where the class occurred
    weight = rng.uniform(0.2, 2, len(y)) if weighted else None
    own = {
        (score, notion): score_decomposition(
            y, proba, score=score, notion=notion, strategy="unique", sample_weight=weight
        ).score
        for score in SCORES
        for notion in ("canonical", "classwise")
    }
    brier = one_against_rest(brier_score_loss, y, proba, weight)
    rtol = 1e-6 if dtype == np.float32 else 1e-12
    assert_allclose(own["brier", "classwise"], brier, rtol=rtol)
    assert_allclose(own["brier", "canonical"], brier, rtol=rtol)  # Σ_k (p_k - 1[y = k])², not half
    assert_allclose(own["log-loss", "canonical"], log_loss(y, proba, sample_weight=weight), rtol)
    rest = one_against_rest(log_loss, y, proba, weight)
    assert_allclose(own["log-loss", "classwise"], rest, rtol=rtol)


BRIER_NOTIONS = ("auto", "confidence", "top-label", "classwise", "canonical", "top-1")


@every_score
def test_the_brier_score_of_two_columns_is_that_of_one(coarse, score):
    y, p = coarse("binary")
    two = np.column_stack([1 - p, p])

    def parts(proba, notion):
        result = score_decomposition(y, proba, score=score, notion=notion, strategy="unique")
        return values(result)

    one = parts(p, "binary")
    assert_allclose(parts(two, "binary"), one, rtol=1e-12)
    # The log loss of one class against the rest counts both of two classes.
    times = 2 if score == "log-loss" else 1
    assert_allclose(parts(two, "classwise"), times * one, rtol=1e-12)
    assert_allclose(parts(two, "canonical"), one, rtol=1e-12)
    if score == "brier":
        assert_allclose([parts(two, n)[0] for n in BRIER_NOTIONS], brier_score_loss(y, p))
    for notion in ("classwise", "canonical"):
        assert_allclose(parts(p, notion), one, rtol=1e-15)


# Isotonic recalibration and groups of equal predictions


@pytest.mark.parametrize("notion", SCALAR)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_isotonic_parts_are_what_isotonic_regression_saves(coarse, rng, notion, dtype):
    y, proba = coarse(notion)
    proba = proba.astype(dtype)
    weight = rng.uniform(0.2, 2, len(y))
    expected = {"brier": np.zeros(2), "log-loss": np.zeros(2)}
    for x, outcomes, w, share in weighted_problems(y, proba, notion, weight):
        x, o = x[:, 0].astype(float), outcomes[:, 0].astype(float)
        recalibrated = IsotonicRegression(y_min=0, y_max=1).fit(x, o, w).predict(x)
        for k, p in enumerate([recalibrated, np.average(o, weights=w)]):
            log = -xlogy(o, p) - xlogy(1 - o, 1 - p)
            expected["brier"][k] += share * np.average((p - o) ** 2, weights=w)
            expected["log-loss"][k] += share * np.average(log, weights=w)
    for score in SCORES:
        parts = score_decomposition(y, proba, score=score, notion=notion, sample_weight=weight)
        best, uncertainty = expected[score]
        assert_allclose(parts.score - parts.miscalibration, best, rtol=1e-6)
        assert_allclose(parts.uncertainty - parts.discrimination, best, rtol=1e-6)
        assert_allclose(parts.uncertainty, uncertainty, rtol=1e-6)


def test_one_bin_can_be_worse_than_the_predictions_that_it_replaces():
    parts = score_decomposition([0, 1], [0.25, 0.75], score="brier", strategy="uniform", n_bins=1)
    assert values(parts).tolist() == [1 / 16, 0, 0, 1 / 4, 1 / 16, 1 / 4]
    loss = score_decomposition([0, 1], [0.25, 0.75], score="log-loss", strategy="uniform", n_bins=1)
    whole = [-np.log(0.75), np.log(2 / 3), 0, np.log(2), 0, 0]
    assert_allclose(values(loss), whole, atol=1e-15)


# Invariances


@pytest.mark.parametrize("notion", ["classwise", "canonical"])
def test_sharpness_is_the_variance_of_each_column_summed(coarse, notion):
    y, proba = coarse()
    assert_allclose(sharpness(y, proba, notion=notion), proba.var(axis=0).sum(), rtol=1e-13)
    assert sharpness(y, proba, notion=notion) == sharpness(y[::-1], proba, notion=notion)
    assert_allclose(sharpness(y, proba, notion="confidence"), proba.max(axis=1).var(), rtol=1e-13)
    assert_allclose(sharpness(y, np.tile(proba[0], (len(y), 1)), notion=notion), 0, atol=1e-30)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"notion": "canonical"}, "notion='canonical' conditions on a vector"),
        ({"notion": "canonical", "strategy": "sweep"}, "strategy='sweep' does not fit"),
        ({"strategy": "median-variance"}, "strategy='median-variance' does not fit"),
        ({"sample_weight": -1}, "sample_weight row 0"),
        ({"score": "spherical"}, "'score' parameter"),
    ],
)
def test_what_has_no_decomposition_raises(coarse, options, match):
    with pytest.raises(ValueError, match=match):
        score_decomposition(*coarse(), **options)


@pytest.mark.parametrize("strategy", ["isotonic", "uniform"])
def test_an_infinite_log_loss_is_said(strategy):
    options = {"score": "log-loss", "strategy": strategy}
    said = "infinite: 1 outcome had a predicted probability of 0. .* replace 0 by 2e-16"
    with pytest.warns(UserWarning, match=said):
        parts = score_decomposition([0, 1, 1, 0], [0.0, 0.0, 0.5, 0.5], **options)
    assert parts.score > 9
    score_decomposition([0, 0, 1, 0], [0.0, 0.0, 0.5, 0.5], **options)
