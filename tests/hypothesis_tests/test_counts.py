"""Redrawn numbers of events have the law of redrawn outcomes, and tests decide alike by either."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import chisquare, ks_2samp

from skcal.hypothesis_tests import calibration_test, monte_carlo, monte_carlo_test, scan_test
from skcal.metrics import statistic
from skcal.metrics.statistic import draw_counts

N_DRAWS = 3000


def law_of_a_sum(x):
    """The probabilities of 0, 1, … events of independent predictions."""
    law = np.ones(1)
    for p in x:
        law = np.convolve(law, [1 - p, p])
    return law


CELLS = {
    "low": np.linspace(0.001, 0.4, 12),
    "high": np.linspace(0.55, 0.999, 12),
    "around 1/2": np.linspace(0.2, 0.8, 9),
    "all": np.linspace(0, 1, 6),
    "nearly equal": np.array([0.3, 0.3, 0.3 + 1e-9]),
    "one": np.array([0.7]),
    "rare": np.append(np.zeros(20), [1e-300, 1e-9, 0.2]),
    "sure": np.append([0.6, 1 - 1e-9], np.ones(20)),
}


@pytest.mark.parametrize("n_fine", [1, 256])
@pytest.mark.parametrize("name", CELLS)
def test_counts_have_the_law_of_a_sum_of_outcomes(name, n_fine, monkeypatch):
    monkeypatch.setattr(statistic, "_FINE_CELLS", n_fine)
    x = CELLS[name]
    counts = draw_counts(x, np.array([0]), range(N_DRAWS))[:, 0]
    expected = N_DRAWS * law_of_a_sum(x)
    observed = np.bincount(counts, minlength=len(expected))
    many = expected >= 5
    pairs = [np.append(v[many], v[~many].sum()) for v in (observed, expected)]
    pairs = [v[pairs[1] > 1e-3] for v in pairs]
    assert pairs[0].sum() == N_DRAWS  # no draw of what is impossible
    if len(pairs[0]) > 1:  # 16 cases: a false alarm of 2 % in all
        assert chisquare(pairs[0], pairs[1] * N_DRAWS / pairs[1].sum()).pvalue > 1e-3


def test_cells_are_drawn_independently_and_a_seed_is_a_draw(monkeypatch):
    monkeypatch.setattr(statistic, "_FINE_CELLS", 4)
    x = np.sort(np.random.default_rng(0).beta(0.5, 0.7, 900))
    starts = np.array([0, 100, 350, 500, 880])
    counts = draw_counts(x, starts, range(N_DRAWS))
    covariance = np.diag(np.add.reduceat(x * (1 - x), starts))
    error = np.sqrt((np.outer(*2 * [covariance.diagonal()]) + covariance**2) / N_DRAWS)
    # 15 different entries, and 5 means: a false alarm of 1e-3 in all.
    assert (np.abs(np.cov(counts.T) - covariance) < 4.2 * error).all()
    away = counts.mean(axis=0) - np.add.reduceat(x, starts)
    assert (np.abs(away) < 4.2 * np.sqrt(covariance.diagonal() / N_DRAWS)).all()
    assert_array_equal(counts[5:8], draw_counts(x, starts, [5, 6, 7]))


def of_both_sides(test, y, p, monkeypatch, **options):
    results = []
    monkeypatch.setattr(monte_carlo, "_ROWS_A_CELL", 0)
    for border in (0, np.inf):
        monkeypatch.setattr(monte_carlo, "_MANY_ROWS", border)
        results.append(test(y, p, random_state=0, **options))
    return results


TESTS = {
    "calibration_test": calibration_test,
    "scan_test": scan_test,
    "uniform bins": partial(monte_carlo_test, n_bins=15),
    "quantile bins": partial(monte_carlo_test, strategy="quantile", norm=2),
    "distinct predictions": partial(monte_carlo_test, strategy="unique", norm=np.inf),
}


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("kind", ["binary", "rounded", "ends", "classwise"])
def test_both_sides_of_the_border_decide_alike(name, kind, rng, monkeypatch):
    p = {
        "binary": rng.beta(0.7, 2, 600),
        "rounded": rng.integers(1, 20, 600) / 20,
        "ends": np.append(rng.uniform(size=400), np.repeat([0.0, 1.0], 100)),
        "classwise": rng.dirichlet([1, 1, 1], 600),
    }[kind]
    options = {"n_resamples": 999 if kind == "classwise" else 2999}
    if kind == "classwise":
        y = (p.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)
        options["notion"] = "classwise"
    else:
        y = (rng.random(600) < p).astype(int)
    counts, rows = of_both_sides(TESTS[name], y, p, monkeypatch, **options)
    assert counts.statistic == pytest.approx(rows.statistic, rel=0.2)  # of ranks among draws
    pairs = zip(*(np.atleast_2d(r.null_distribution) for r in (counts, rows)), strict=True)
    # 30 distributions in all: a false alarm of 3 %
    assert min(ks_2samp(*pair).pvalue for pair in pairs) > 1e-3
    assert counts.pvalue == pytest.approx(rows.pvalue, abs=0.08)


@pytest.mark.parametrize("n", [49_999, 50_000])
@pytest.mark.parametrize("name", ["calibration_test", "scan_test", "uniform bins"])
def test_decisions_and_workers_at_the_border(name, n):
    test = TESTS[name]
    rng = np.random.default_rng(4)
    p = rng.beta(1, 3, n)
    happened = rng.random(n)
    options = {"n_resamples": 199, "random_state": 0}
    calibrated = test(happened < p, p, **options)
    assert calibrated.pvalue > 0.1
    assert test(happened < p, p, n_jobs=2, **options).pvalue == calibrated.pvalue
    assert test(happened < p + 0.03 * (p > 0.3), p, **options).pvalue <= 0.01


@pytest.mark.parametrize("n_values", [1000, 1001])
def test_many_distinct_predictions_are_drawn_row_by_row(n_values, monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.permutation(np.arange(50_000) % n_values + 1) / (n_values + 1)
    drawn = []
    monkeypatch.setattr(monte_carlo, "draw_counts", lambda *a: drawn.append(1) or draw_counts(*a))
    test = monte_carlo_test(rng.random(50_000) < p, p, strategy="unique", n_resamples=19)
    assert (len(drawn) > 0) == (n_values == 1000)
    assert test.pvalue > 0.05


@pytest.mark.parametrize("kind", ["weights", "groups", "votes", "vectors"])
def test_what_is_no_count_is_drawn_row_by_row(kind, rng, monkeypatch):
    p = rng.uniform(size=300)
    y, options = (rng.random(300) < p).astype(int), {"n_resamples": 99}
    if kind == "weights":
        options["sample_weight"] = rng.uniform(1, 2, 300)
    elif kind == "groups":
        options["groups"] = np.arange(300) // 3
    elif kind == "votes":
        y, p = np.column_stack([1 - p, p]).round(1), np.column_stack([1 - p, p])
        options["labels"] = [0, 1]
    else:
        p, options["notion"] = rng.dirichlet(np.ones(3), 300), "canonical"
        y = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    for test in (calibration_test, monte_carlo_test):
        by_counts, by_rows = of_both_sides(test, y, p, monkeypatch, **options)
        assert_array_equal(by_counts.null_distribution, by_rows.null_distribution)
