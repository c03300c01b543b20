"""Rows that depend on their neighbours are said, independent ones in any order are not."""

import warnings

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.special import expit, logit
from scipy.stats import norm

from skcal import calibration_report
from skcal.cli.commands import main
from skcal.report.findings import likeness_of_neighbours
from skcal.report.words import likeness


def series(rng, n, rate=0.97):
    """A normal autoregressive series of variance 1."""
    drawn = rng.normal(size=n + 500)
    return lfilter([np.sqrt(1 - rate**2)], [1, -rate], drawn)[500:]


def dependent(seed, n=1000):
    """Predictions and outcomes of two series; the predictions are calibrated."""
    rng = np.random.default_rng(seed)
    p = norm.cdf(series(rng, n))
    return p, (norm.cdf(series(rng, n)) < p).astype(float)


PREDICTIONS = {
    "uniform": lambda rng, n: rng.uniform(size=n),
    "rare": lambda rng, n: rng.beta(1, 30, n),
    "atoms": lambda rng, n: rng.integers(0, 11, n) / 10,
    "equal": lambda rng, n: np.full(n, 0.05),
    "series": lambda rng, n: expit(2 * series(rng, n)),
}
ORDERS = {
    "as drawn": lambda p, y: np.arange(len(p)),
    "by prediction": lambda p, y: np.argsort(p, kind="stable"),
    "by outcome": lambda p, y: np.argsort(y, kind="stable"),
}


def of(p, y):
    return likeness_of_neighbours(p[:, None], y[:, None])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", PREDICTIONS)
@pytest.mark.parametrize("slope", [1.0, 0.4])
def test_independent_rows_are_rarely_taken_for_dependent(kind, order, slope):
    """Also miscalibrated ones. More than 4 of 60 at a rate of 1 % have a probability of 3e-4."""
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = PREDICTIONS[kind](rng, 400)
        q = expit(slope * logit(np.clip(p, 1e-6, 1 - 1e-6)))
        y = (rng.random(400) < q).astype(float)
        rows = ORDERS[order](p, y)
        found += of(p[rows], y[rows]) > 2.58
    assert found <= 4


def test_dependent_rows_are_found_in_their_order_alone():
    assert all(of(*dependent(seed)) > 2.58 for seed in range(20))
    orders = [np.random.default_rng(seed).permutation(1000) for seed in range(20)]
    mixed = [of(*(part[rows] for part in dependent(k))) for k, rows in enumerate(orders)]
    assert sum(value > 2.58 for value in mixed) <= 2


def test_the_sum_is_its_definition_and_a_pair_is_one_standard_deviation():
    y = np.array([0, 0, 1, 1, 0, 1, 0, 0.0])
    residual = (y - 3 / 8) / np.sqrt(15 / 64)
    terms = residual[1:] * residual[:-1]
    expected = terms.sum() / np.sqrt((terms**2).sum())
    assert of(np.full(8, 0.4), y) == pytest.approx(expected)
    pair = np.zeros(10_000)
    pair[[700, 701]] = 1
    assert of(np.full(10_000, 1e-4), pair) < 1.01


def test_a_report_names_groups_and_says_what_else_it_could_be():
    p, y = dependent(0)
    options = {"n_resamples": 19}
    [caution] = [c for c in calibration_report(y, p, **options).warnings if "Neighbouring" in c]
    for part in ("pass groups=", "time series", "sorted by outcome", "change along the rows"):
        assert part in caution
    for groups in (np.arange(1000) // 50, np.arange(1000)):
        report = calibration_report(y, p, groups=groups, **options)
        assert not any("Neighbouring" in caution for caution in report.warnings)
    rows = np.argsort(y, kind="stable")
    report = calibration_report(y[rows], p[rows], **options)
    assert not any("Neighbouring" in caution for caution in report.warnings)


def test_several_classes_have_neighbours_too():
    rng = np.random.default_rng(0)
    place = norm.cdf(series(rng, 1000))
    proba = rng.dirichlet([2, 2, 2], 1000)
    codes = (proba.cumsum(axis=1) < place[:, None]).sum(axis=1)
    assert likeness(proba, np.eye(3)[codes])
    mixed = rng.permutation(1000)
    assert not likeness(proba[mixed], np.eye(3)[codes[mixed]])
    assert not likeness(proba[:29], np.eye(3)[codes[:29]])  # too few
    assert not likeness(np.eye(3)[codes], np.eye(3)[codes])


def test_the_command_warns_and_names_its_option(tmp_path, capsys):
    p, y = dependent(1, 400)
    lines = [f"{a:.6f},{b:.0f},{k // 20}" for k, (a, b) in enumerate(zip(p, y, strict=True))]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["p,label,week", *lines]))
    with warnings.catch_warnings():
        main(["evaluate", str(path), "--score", "p", "--label", "label", "--ignore", "week"])
        assert "pass --groups COLUMN" in capsys.readouterr().err
        main(["evaluate", str(path), "--score", "p", "--label", "label", "--groups", "week"])
        assert "Neighbouring" not in capsys.readouterr().err
