"""Binning against sums over bins by hand and its dense bilinear form."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from skcal import Binning
from skcal.pair_risk import dense_pair_risk

SCALAR, SIMPLEX = ["uniform", "quantile", "sweep"], ["uniform", "median-variance"]
FORMS = [(1, s) for s in SCALAR] + [(3, s) for s in SIMPLEX]
DEBIAS = [True, "labels"]


def sample(rng, n, d):
    """Predictions and residuals of outcomes that are drawn from miscalibrated probabilities."""
    X = rng.dirichlet(np.full(max(d, 2), 0.7), size=n)
    truth = X**0.6 / (X**0.6).sum(axis=1, keepdims=True)
    codes = (truth.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)
    outcomes = np.eye(max(d, 2))[np.minimum(codes, max(d, 2) - 1)]
    if d == 1:
        X, outcomes = X[:, 1:], outcomes[:, 1:]
    return X, outcomes - X


def binning(strategy, debias=False, **options):
    return Binning(**{"n_bins": 4, "min_samples": 8, **options}, strategy=strategy, debias=debias)


def by_bin(function, X, residuals):
    """The residuals of each bin."""
    bins = function.partition_.assign(X)
    return [residuals[bins == b] for b in range(function.n_bins_)]


# Plain binning


@pytest.mark.parametrize(("d", "strategy"), FORMS)
def test_prediction_is_the_inner_product_of_mean_residuals(rng, d, strategy):
    X, residuals = sample(rng, 90, d)
    Z, _ = sample(rng, 40, d)
    function = binning(strategy).fit(X, residuals)
    groups = by_bin(function, X, residuals)
    filled = [group.mean(axis=0) if len(group) else residuals.mean(axis=0) for group in groups]
    means = np.array([*filled, residuals.mean(axis=0)])[function.partition_.assign(Z)]
    assert_allclose(function.residual(Z), means, rtol=1e-10, atol=1e-14)
    assert_allclose(function.predict(Z), (means**2).sum(axis=1), rtol=1e-10)
    assert_allclose(function.predict_pairs(Z, Z[:7]), means @ means[:7].T, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(("d", "empty"), [(1, [[0.5], [0.95]]), (2, [[0.45, 0.55], [1.0, 0.0]])])
def test_a_bin_without_training_samples_predicts_the_mean_residual(d, empty):
    X = np.array([[0.1], [0.15], [0.7]]) if d == 1 else np.array([[0.1, 0.9], [0.3, 0.7]])
    residuals = np.round(X) - X + (X > 0.68)
    function = Binning(n_bins=10).fit(X, residuals)
    expected = np.tile(residuals.mean(axis=0), (2, 1))
    assert_allclose(function.residual(empty), expected, rtol=1e-14)


# Debiased binning


def naive_variance(group, w):
    """Squared mean minus the mean over pairs of ⟨δ_i, δ_j⟩ with weights w_i w_j."""
    pairs = np.outer(w, w)
    np.fill_diagonal(pairs, 0)
    over_pairs = np.sum(pairs * (group @ group.T)) / pairs.sum() if len(group) > 1 else 0
    return np.sum((w @ group / w.sum()) ** 2) - over_pairs


@pytest.mark.parametrize(("d", "strategy"), FORMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_debiased_form_is_its_dense_definition(rng, d, strategy, weighted):
    """h = G_b·G_b' - 1[b = b'] v_b, with the risk over all pairs."""
    X, residuals = sample(rng, 90, d)
    Z, new = sample(rng, 30, d)
    weight = rng.uniform(0.5, 2, 90) if weighted else np.ones(90)
    function = binning(strategy, debias=True, n_bins=12).fit(X, residuals, weight)
    bins, at = function.partition_.assign(X), function.partition_.assign(Z)
    means = np.tile(weight @ residuals / weight.sum(), (function.n_bins_ + 1, 1))
    variance = np.zeros(function.n_bins_ + 1)
    for b in set(bins):
        group, w = residuals[bins == b], weight[bins == b]
        means[b] = w @ group / w.sum()
        variance[b] = naive_variance(group, w)
    dense = means[at] @ means[at].T - variance[at] * (at[:, None] == at)
    unseen = at == function.n_bins_
    assert unseen.any() == (d == 3 and strategy == "uniform")  # unseen cells have no variance
    assert sparse.issparse(function.feature_map(Z))
    assert_allclose(function.predict_pairs(Z), dense, rtol=1e-10, atol=1e-14)
    assert_allclose(function.predict(Z), np.diagonal(dense), rtol=1e-10, atol=1e-14)
    risk = dense_pair_risk(lambda rows, all_rows: dense, Z, new)
    assert_allclose(function.score(Z, new), -risk.value, rtol=1e-12)
    assert_allclose(function.risk(Z, new).standard_error, risk.standard_error, rtol=1e-10)


@pytest.mark.parametrize(("d", "strategy"), FORMS)
def test_label_debiasing_is_that_of_kumar_et_al(rng, d, strategy):
    X, residuals = sample(rng, 90, d)
    function = binning(strategy, debias="labels").fit(X, residuals)
    bins, outcomes = function.partition_.assign(X), X + residuals
    for b in set(bins):
        rate, size = outcomes[bins == b].mean(axis=0), np.count_nonzero(bins == b)
        expected = 0.0
        if size > 1:
            expected = (residuals[bins == b].mean(axis=0) ** 2).sum()
            expected -= (rate * (1 - rate)).sum() / (size - 1)
        assert_allclose(function.predict(X[bins == b]), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("debias", DEBIAS)
def test_bins_with_fewer_than_two_samples_are_counted_and_tell_nothing(debias):
    X = np.array([[0.05], [0.35], [0.35], [0.35], [0.95]])
    outcomes = np.array([[1], [0], [1], [1], [1.0]])
    function = Binning(n_bins=10, debias=debias).fit(X, outcomes - X)
    plain = Binning(n_bins=10).fit(X, outcomes - X)
    assert function.n_bins_not_debiased_ == 2
    assert plain.n_bins_not_debiased_ == 0
    # In the middle bin the predictions are equal, so both variances are (2/9) / 2.
    expected = (plain.predict(X) - 1 / 9) * [0, 1, 1, 1, 0]
    assert_allclose(function.predict(X), expected, atol=1e-15)


def test_only_plain_binning_has_a_residual():
    X, residuals = sample(np.random.default_rng(1), 20, 1)
    assert hasattr(Binning().fit(X, residuals), "residual")
    assert not hasattr(Binning(debias=True).fit(X, residuals), "residual")


# Extremes and errors


@pytest.mark.parametrize(("d", "strategy"), FORMS)
@pytest.mark.parametrize("debias", [False, *DEBIAS])
def test_one_distinct_prediction_makes_one_bin_that_matters(d, strategy, debias):
    X = np.full((20, 1), 0.25) if d == 1 else np.tile([[0.25, 0.25, 0.5]], (20, 1))
    outcomes = (np.arange(20) < 8).astype(float)[:, None]
    outcomes = outcomes if d == 1 else np.hstack([outcomes, 1 - outcomes, np.zeros((20, 1))])
    function = binning(strategy, debias).fit(X, outcomes - X)
    gap = np.array([0.15]) if d == 1 else np.array([0.15, 0.35, -0.5])
    # Equal predictions: the variance of the residuals is that of the outcomes.
    variance = 0.4 * 0.6 / 19 * (1 if d == 1 else 2)
    expected = (gap**2).sum() - (variance if debias else 0)
    assert_allclose(function.predict(X), expected, rtol=1e-12)


@pytest.mark.parametrize(("d", "strategy"), [(2, "quantile"), (3, "sweep"), (1, "median-variance")])
def test_a_strategy_that_does_not_fit_the_columns_raises(rng, d, strategy):
    with pytest.raises(ValueError, match=f"strategy='{strategy}' does not fit {d} feature"):
        Binning(strategy=strategy).fit(*sample(rng, 9, d))


@pytest.mark.parametrize("value", [-1e-3, 1.5])
def test_features_outside_the_unit_interval_raise(value):
    X = np.array([[0.2], [0.4], [value]])
    with pytest.raises(ValueError, match=rf"X row 2, column 0 is {value}, not a probability"):
        Binning().fit(X, np.zeros(3))
    with pytest.raises(ValueError, match=r"X row 2, column 0"):
        Binning().fit(X[:2], np.zeros(2)).predict(X)


@pytest.mark.parametrize("options", [{"strategy": "sweep"}, {"debias": "labels"}])
def test_residuals_that_make_no_outcome_raise_where_outcomes_are_needed(options):
    X, residuals = np.array([[0.2], [0.4]]), np.array([0.8, 0.5])
    Binning().fit(X, residuals)
    with pytest.raises(ValueError, match=r"X row 1 and y row 1 add up to \[0.9\]"):
        Binning(**options).fit(X, residuals)
