"""The Bayesian average: its sums against brute force, its limits, its ranks and its warning."""

import warnings
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import betaln, expit, logit
from scipy.stats import kendalltau
from sklearn.linear_model import LogisticRegression

from skcal import RecalibratedClassifierCV, Recalibrator
from skcal.recalibration import BayesianCalibration, HistogramBinning, PlattScaling, bayesian
from skcal.recalibration.features import LogitCells
from skcal.recalibration.likelihood import TwoClasses


def drawn(n, truth, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.002, 0.998, n)
    return p, (rng.random(n) < truth(p)).astype(int)


def moved(p):
    return expit(logit(p) + 0.5)


def stepped(p):
    return np.select([p < 1 / 3, p < 2 / 3], [1 / 6, 0.5], 5 / 6)


# Parts against their definitions


def test_sums_over_partitions_are_those_of_all_partitions(monkeypatch):
    rng = np.random.default_rng(0)
    k = 6
    monkeypatch.setattr(bayesian, "_CUTS", (2,))
    start, end = np.triu_indices(k + 1, 1)
    log_evidence, mean = rng.normal(size=len(start)), rng.normal(size=len(start))
    of_segment = {(a, b): row for row, (a, b) in enumerate(zip(start, end, strict=True))}
    total, sums = 0.0, np.zeros(k)
    for is_cut in product([False, True], repeat=k - 1):
        ends = [0, *(np.flatnonzero(is_cut) + 1), k]
        rows = [of_segment[pair] for pair in pairwise(ends)]
        n_cut = sum(is_cut)
        chance = (2 / k) ** n_cut * (1 - 2 / k) ** (k - 1 - n_cut)
        chance *= np.exp(log_evidence[rows].sum())
        total += chance
        for row, a, b in zip(rows, ends[:-1], ends[1:], strict=True):
            sums[a:b] += chance * mean[row]
    # A model that is twice as likely in each segment stands beside it.
    of_models = np.stack([log_evidence + np.log(2), log_evidence]), np.stack([mean, mean])
    of_all, at_places = bayesian._partitions(*of_models, start, end)
    assert of_all[1, 0] == pytest.approx(np.log(total))
    assert_allclose(at_places[1, 0], sums / total)
    assert of_all[0, 0] > of_all[1, 0] + np.log(2)


def test_one_step_has_the_evidence_of_a_beta_binomial_law(monkeypatch):
    p, y = drawn(40, stepped)
    cells = LogitCells.of(logit(p), y, np.ones(40))
    monkeypatch.setattr(bayesian, "_CUTS", (1e-12,))  # so that there is one segment
    [steps, *_] = bayesian._piecewise(cells, np.array([0.0]))
    rate = (y.sum() + 0.5) / 41
    a, b = 2 * rate, 2 * (1 - rate)
    expected = betaln(a + y.sum(), b + 40 - y.sum()) - betaln(a, b)
    assert steps.log_weight == pytest.approx(expected + np.log(bayesian.PRIOR["steps"]), abs=1e-6)
    assert steps.proba == pytest.approx((a + y.sum()) / 42)


def test_the_evidence_is_the_integral_over_the_prior():
    p, y = drawn(60, moved)
    cells = LogitCells.of(logit(p), y, np.ones(60))
    # A feature that is 1 at the cells and the knot, and two roots: coefficients 0.8 b and 0.4 b.
    X, roots = np.ones((1, 60)), np.array([[[0.8]], [[0.4]]])
    priors = [("one", 1.0), ("other", 0.5)]
    models = bayesian._posteriors(priors, X, np.ones((1, 1)), roots, cells, np.array([0.3]))
    [_, (name, found, proba)] = models
    assert name == "other"
    b = np.linspace(-8, 8, 4001)
    f = cells.z[:, None] + 0.4 * b
    log_joint = cells.events @ f - cells.mass @ np.logaddexp(0, f) - b**2 / 2
    weight = np.exp(log_joint - log_joint.max())
    integral = log_joint.max() + np.log(weight.sum() * (b[1] - b[0]) / np.sqrt(2 * np.pi))
    assert found == pytest.approx(integral + np.log(0.5), abs=0.02)
    assert proba[0] == pytest.approx(weight @ expit(0.3 + 0.4 * b) / weight.sum(), abs=0.002)


def test_the_evidence_of_wrong_labels_is_the_integral_over_both_shares():
    rng = np.random.default_rng(0)
    p = rng.beta(0.3, 0.3, 150)
    y = (rng.random(150) < 0.06 + 0.86 * p).astype(int)
    cells = LogitCells.of(logit(p), y, np.ones(150))
    found = bayesian._noise(cells, np.array([-50, 0.3, 50]))
    t = np.linspace(-9, 6, 201)
    a, b = (grid[..., None] for grid in np.meshgrid(expit(t) / 2, expit(t) / 2))
    log_joint = np.log(a + (1 - a - b) * p) @ y + np.log1p(-a - (1 - a - b) * p) @ (1 - y)
    unit = (t - bayesian._NOISE_PRIOR[0] - np.log(2)) / bayesian._NOISE_PRIOR[1]
    log_joint -= np.add.outer(unit**2, unit**2) / 2
    weight = np.exp(log_joint - log_joint.max())
    integral = log_joint.max() + np.log(weight.sum() * (unit[1] - unit[0]) ** 2 / (2 * np.pi))
    assert found.log_weight == pytest.approx(integral + np.log(bayesian.PRIOR["noise"]), abs=0.15)
    a, b = ((weight * of[..., 0]).sum() / weight.sum() for of in (a, b))
    assert_allclose(found.proba, [a, a + (1 - a - b) * expit(0.3), 1 - b], atol=0.005)


@pytest.mark.parametrize("scale", [1, 60])
def test_the_likelihood_of_two_classes_has_these_derivatives(scale):
    rng = np.random.default_rng(0)
    X, offset = rng.normal(size=(30, 3)), scale * rng.normal(size=30)
    mass = rng.uniform(0.5, 2, 30)
    likelihood = TwoClasses(offset, X, mass * rng.uniform(0, 1, 30).round(), mass)
    b = rng.normal(size=3)
    loss, gradient, hessian = likelihood.derivatives(b)
    f = offset + X @ b
    assert loss == pytest.approx(mass @ np.logaddexp(0, f) - likelihood.events @ f, rel=1e-9)
    for k, step in enumerate(1e-6 * np.eye(3)):
        above, below = likelihood.derivatives(b + step), likelihood.derivatives(b - step)
        assert gradient[k] == pytest.approx((above[0] - below[0]) / 2e-6, rel=1e-4, abs=1e-6)
        assert_allclose(hessian[k], (above[1] - below[1]) / 2e-6, rtol=1e-4, atol=1e-6)


# The map


@pytest.mark.parametrize(
    ("truth", "model"),
    [
        (moved, "intercept"),
        (stepped, "steps"),
        (lambda p: expit(0.5 * logit(p)), "slope"),
        (lambda p: 0.15 + 0.8 * p, "noise"),
    ],
)
def test_many_samples_find_the_model_and_the_truth(truth, model):
    p, y = drawn(5000, truth)
    fitted = BayesianCalibration().fit(p, y)
    assert max(fitted.weights_, key=fitted.weights_.get) == model
    assert sum(fitted.weights_.values()) == pytest.approx(1)
    grid = np.linspace(0.02, 0.98, 97)
    error = np.abs(fitted.predict_proba(grid)[:, 1] - truth(grid))
    assert error.mean() < 0.015


@pytest.mark.parametrize("n", [3, 30, 300])
@pytest.mark.parametrize("truth", [moved, stepped, lambda p: np.full_like(p, 0.3)])
def test_the_ranking_is_kept(n, truth):
    p, y = drawn(n, truth)
    fitted = BayesianCalibration().fit(p, y)
    assert kendalltau(p, fitted.predict_proba(p)[:, 1]).statistic == pytest.approx(1)
    grid = expit(np.linspace(-11, 11, 2001))
    assert (np.diff(fitted.predict_proba(grid)[:, 1]) > 0).all()


def falling(p):
    return np.clip(p + 0.25 * np.sin(4 * np.pi * p), 0, 1)


FOLLOW = r"pass BayesianCalibration\(monotone=False\)"


def test_a_truth_that_falls_is_warned_of_and_followed_if_asked_for():
    p, y = drawn(3000, falling)
    with pytest.warns(UserWarning, match=FOLLOW):
        kept = BayesianCalibration().fit(p, y)
    free = BayesianCalibration(monotone=False).fit(p, y)
    grid = np.linspace(0.02, 0.98, 97)
    assert (np.diff(kept.predict_proba(grid)[:, 1]) > 0).all()
    assert np.diff(free.predict_proba(grid)[:, 1]).min() < -0.005
    kept, free = (
        np.abs(one.predict_proba(grid)[:, 1] - falling(grid)).mean() for one in (kept, free)
    )
    assert free < 0.5 * kept
    with pytest.warns(UserWarning, match=FOLLOW):
        Recalibrator(random_state=0).fit(p, y)
    with pytest.warns(UserWarning, match=FOLLOW):
        Recalibrator([BayesianCalibration()], do_no_harm=False).fit(p, y)
    classifier = LogisticRegression()
    with pytest.warns(UserWarning, match=FOLLOW):
        RecalibratedClassifierCV(classifier, BayesianCalibration()).fit(logit(p)[:, None], y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        followed = eval(FOLLOW.replace("\\", "").removeprefix("pass "))
        Recalibrator([followed], do_no_harm=False).fit(p, y)
        RecalibratedClassifierCV(classifier, followed).fit(logit(p)[:, None], y)


WEIGHTS = {
    "lognormal": lambda rng, n: rng.lognormal(0, 1, n),
    "integers": lambda rng, n: rng.integers(0, 4, n).astype(float),
    "a few heavy ones": lambda rng, n: np.where(rng.random(n) < 0.01, 10.0, 1.0),
}


@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights_of_any_scale_make_no_increasing_truth_fall(weights, scale):
    for seed in (0, 1, 7, 12):
        p, y = drawn(2000, stepped, seed)
        weight = scale * WEIGHTS[weights](np.random.default_rng(seed + 100), 2000)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            BayesianCalibration().fit(p, y, weight)
    with pytest.warns(UserWarning, match="clearly falls somewhere"):
        BayesianCalibration().fit(p, 1 - y, weight)


def test_one_heavy_row_is_no_fall():
    p, y = drawn(500, stepped)
    weight = np.ones(500)
    weight[(y == 0) & (p > 0.9)] = np.r_[25.0, np.ones(((y == 0) & (p > 0.9)).sum() - 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fitted = BayesianCalibration().fit(p, y, weight)
    assert fitted._lost < bayesian._CLEAR_LOSS


def test_weights_are_counts_of_rows_unless_they_are_worth_more():
    p, y = drawn(400, moved)
    plain = BayesianCalibration().fit(p, y).predict_proba(p)
    assert_allclose(BayesianCalibration().fit(p, y, np.full(400, 0.01)).predict_proba(p), plain)
    twice = BayesianCalibration().fit(p.repeat(2), y.repeat(2)).predict_proba(p)
    assert_allclose(BayesianCalibration().fit(p, y, np.full(400, 2.0)).predict_proba(p), twice)
    weight = np.r_[np.ones(200), np.zeros(200)]
    assert_allclose(
        BayesianCalibration().fit(p, y, weight).predict_proba(p),
        BayesianCalibration().fit(p[:200], y[:200]).predict_proba(p),
    )
    rng = np.random.default_rng(0)
    weight = rng.lognormal(0, 2, 400)
    unequal = BayesianCalibration().fit(p, y, weight / weight.sum())
    assert unequal.weights_["identity"] > BayesianCalibration().fit(p, y).weights_["identity"]


def test_the_order_of_rows_is_no_matter():
    p, y = drawn(300, stepped)
    forward = BayesianCalibration().fit(p, y).predict_proba(p)
    assert_allclose(
        BayesianCalibration().fit(p[::-1], y[::-1]).predict_proba(p), forward, rtol=1e-9
    )


def test_outcomes_of_one_class_and_a_single_prediction_give_probabilities():
    for p, y in (([0.2, 0.4, 0.9], [1, 1, 1]), ([0.3] * 20, [0, 1] * 10), ([0.0, 1.0], [0, 1])):
        proba = BayesianCalibration().fit(p, y).predict_proba([0.0, 0.3, 1.0])
        assert ((proba > 0) & (proba < 1)).all()


def test_certain_predictions_are_kept_off_0_and_1(monkeypatch):
    def models(cells, at):
        yield bayesian._Model("identity", 0.0, (at > 0).astype(float))

    monkeypatch.setattr(bayesian, "_models", models)
    fitted = BayesianCalibration(monotone=False).fit(*drawn(50, stepped))
    assert_allclose(fitted.predict_proba([0.0, 1.0]).min(axis=1), np.finfo(float).eps, rtol=0.01)
    assert "Infinity" not in fitted.to_json()


def test_the_default_for_two_classes_is_this_map():
    p, y = drawn(200, moved)
    fitted = Recalibrator(random_state=0).fit(p, y)
    assert fitted.best_name_ == "BayesianCalibration"
    expected = BayesianCalibration().fit(p, y).predict_proba(p)
    assert_allclose(fitted.predict_proba(p), (200 * expected + 0.5) / 201)


# Platt scaling and histogram binning


def test_platt_scaling_is_logistic_regression_on_the_logit():
    p, y = drawn(500, lambda p: expit(0.7 * logit(p) + 0.5))
    fitted = PlattScaling(C=1e8, tol=1e-9).fit(p, y)
    f = fitted.slope_ * logit(p) + fitted.intercept_
    residual = y - expit(f)
    assert_allclose([residual.sum(), residual @ logit(p)], 0, atol=1e-4)
    assert_allclose(fitted.predict_proba(p)[:, 1], expit(f))
    weak = PlattScaling(C=1e-9).fit(p, y)
    assert (weak.slope_, weak.intercept_) == (pytest.approx(1), pytest.approx(0, abs=1e-6))


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_histogram_binning_answers_with_the_frequency_in_the_bin(strategy):
    p, y = drawn(400, stepped)
    weight = np.random.default_rng(1).uniform(0.5, 2, 400)
    fitted = HistogramBinning(n_bins=5, strategy=strategy).fit(p, y, weight)
    assert len(fitted.edges_) == 6
    n = weight.sum()
    for low, high in zip(fitted.edges_[:-1], fitted.edges_[1:], strict=True):
        inside = (p > low) & (p <= high)
        rate = np.average(y[inside], weights=weight[inside])
        found = fitted.predict_proba(p[inside])[:, 1]
        assert_allclose(found, (n * rate + 0.5) / (n + 1))


def test_an_empty_bin_keeps_its_middle():
    fitted = HistogramBinning(n_bins=4, strategy="uniform").fit([0.1, 0.2, 0.9, 0.8], [0, 0, 1, 1])
    assert fitted.predict_proba([0.3, 0.7])[:, 1] == pytest.approx([2 / 5, 3 / 5])


@pytest.mark.filterwarnings("ignore:The frequency of events clearly falls")
@pytest.mark.parametrize("scale", [1e6, 1e10])
@pytest.mark.parametrize("seed", [8, 9, 11, 16])
def test_probabilities_are_such_whatever_the_sum_of_the_weights(seed, scale):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, 1500)
    y = rng.random(1500) < expit(0.6 * logit(p) + 0.5)
    weight = scale * rng.lognormal(0, 1, 1500)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        fitted = BayesianCalibration().fit(p, y, sample_weight=weight)
    mapped = fitted.predict_proba(np.linspace(0.001, 0.999, 400))
    assert ((mapped > 0) & (mapped < 1)).all()


def test_repeated_rows_of_a_group_are_no_fall_of_the_frequency():
    rng = np.random.default_rng(0)
    p = rng.random(150)
    y = (rng.random(150) < 0.5 + 0.6 * (p - 0.5)).astype(int)
    rows = np.repeat(np.arange(150), 10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Recalibrator(random_state=0).fit(p[rows], y[rows], groups=rows)
        fell = ["clearly falls" in str(warning.message) for warning in caught]
        assert not any(fell)
        caught.clear()
        other = rng.random(150) > p  # than the predicted event
        Recalibrator(random_state=0).fit(p[rows], other[rows], groups=rows)
    assert any("clearly falls" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("largest", [1e10, 1e12, 1e20, 1e60])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_weight_beside_which_all_others_vanish_is_followed(largest):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 120)
    y = (rng.random(120) < p).astype(int)
    weight = np.r_[largest, rng.uniform(0.5, 2, 119)]
    for outcome in (y, 1 - y):
        proba = BayesianCalibration().fit(p, outcome, sample_weight=weight).predict_proba(p)[:, 1]
        assert np.isfinite(proba).all()
        assert (proba[0] > 0.5) == (outcome[0] == 1)
