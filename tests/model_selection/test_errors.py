"""The errors that people report, from cross-fitted corrections."""

import json
import re
from functools import cache
from types import SimpleNamespace

import naive_estimates as naive
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    PlugIn,
    TemperatureScaling,
    Zero,
)
from skcal._show import number
from skcal.cli.commands import main
from skcal.datasets import make_tempered
from skcal.model_selection import candidates
from skcal.model_selection.adaptive import adaptive_squared_error
from skcal.model_selection.errors import (
    ErrorEstimate,
    _range_of_side,
    estimate_error,
)
from skcal.model_selection.estimates import one_step
from skcal.notions import NOTIONS, Problems, make_problems
from skcal.recalibration import SplineScaling

SCALAR = ("confidence", "top-label", "classwise")
SPLINES = PlugIn(SplineScaling())


@cache
def searched(notion, n=400, temperature=2.0, seed=0, **options):
    data = make_tempered(n, temperature=temperature, n_classes=3, random_state=seed)
    candidates = [Zero(), PlugIn(TemperatureScaling())]
    search = CalibrationErrorSearchCV(candidates, notion, cv=3, random_state=0, **options)
    return search.fit(data.proba, data.labels), data


def known_of(p, y, corrections, notion="binary", weight=None):
    """What every kind of error is estimated from."""
    weight = np.ones(len(y)) if weight is None else weight
    data = Problems(make_problems(p, y, notion, weight), weight)
    squared = adaptive_squared_error(data, corrections), one_step(corrections, data)
    return NOTIONS[notion], data, corrections, *squared


def estimates(kind, *arguments):
    return estimate_error(kind, *known_of(*arguments))


@pytest.mark.parametrize("notion", [*SCALAR, "canonical", "top-2"])
def test_every_kind_is_known_of_every_notion_and_needs_no_fit(notion):
    search, _ = searched(notion)
    values = {kind: search.error(kind) for kind in ErrorEstimate.kinds}
    assert_allclose(values["squared"].estimate, search.squared_error_)
    assert_allclose(values["rms"].estimate, search.rms_calibration_error_)
    assert values["squared"].lower_confidence_bound() == search.lower_confidence_bound()
    assert_allclose(values["rms"].lower_confidence_bound() ** 2, search.lower_confidence_bound())
    for kind, error in values.items():
        assert (error.kind, error.notion) == (kind, notion)
        assert 0 < error.lower_confidence_bound() < error.estimate
        assert error.lower_confidence_bound(0.99) < error.lower_confidence_bound(0.9)
        assert 0 < error.standard_error < error.estimate


@pytest.mark.parametrize(
    ("notion", "n_repeats"), [("confidence", 2), ("top-label", 1), ("classwise", 1)]
)
def test_over_and_under_add_up_to_the_l1_error(notion, n_repeats):
    error = searched(notion, n_repeats=n_repeats)[0].error("l1")
    assert_allclose(error.over + error.under, error.estimate, rtol=1e-12)
    assert min(error.over, error.under) >= 0
    if notion != "classwise":
        assert error.over > 10 * error.under


def test_only_the_l1_error_of_single_numbers_has_signs():
    assert searched("canonical")[0].error("l1").over is None
    assert searched("confidence")[0].error("rms").over is None


@pytest.mark.parametrize("notion", ["confidence", "top-label", "classwise", "canonical"])
@pytest.mark.parametrize("kind", ["l1", "l2"])
def test_norms_are_the_root_times_ratios_of_cells_and_of_the_corrections(notion, kind):
    rng = np.random.default_rng(3)
    truth = rng.dirichlet([1, 1, 1], 60)
    p = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < rng.random((60, 1))).sum(axis=1)
    weight = rng.choice([0.5, 1.0], 60)
    data = Problems(make_problems(p, y, notion, weight), weight)
    g = [
        0.2 * (0.4 - part.features) + rng.normal(0, 0.02, part.features.shape)
        for part in data.parts
    ]
    squared = adaptive_squared_error(data, g)

    def ratio(cells):
        """Mean norm over root mean square of the means of ĝ over cells, one loop a sample."""
        size = square = 0.0
        for part, own, cell in zip(data.parts, g, cells, strict=True):
            for i in cell if len(own) else []:
                members = np.flatnonzero(np.array(cell) == i)
                v = np.average(own[members], axis=0, weights=part.weight[members])
                share = part.share / part.weight.sum() * np.mean(part.weight[members])
                scale = 0.5 if kind == "l1" and len(v) > 1 else 1.0
                norm = np.abs(v).sum() if kind == "l1" else np.linalg.norm(v)
                size, square = size + share * scale * norm, square + share * v @ v
        return size / np.sqrt(square)

    alone = ratio([np.arange(len(own)) for own in g])
    cells = dict(naive.partitions(data))
    chosen = [ratio(cells[name]) if name in cells else alone for name in squared.chosen]
    expected = np.sqrt(squared.unshrunk) * (np.mean(chosen) + alone) / 2
    error = estimates(kind, p, y, g, notion, weight)
    assert squared.z > 1
    assert_allclose([error.estimate, error.signed], expected)


def test_signed_estimates_are_those_that_are_not_made_0():
    rng = np.random.default_rng(4)
    p = rng.random(300)
    seen = set()
    for _ in range(20):
        y = (rng.random(300) < p).astype(int)
        known = known_of(p, y, [0.02 * rng.normal(size=(300, 1))])
        for kind in ErrorEstimate.kinds:
            error = estimate_error(kind, *known)
            assert error.signed != 0
            assert error.estimate <= max(error.signed, 0)
            assert kind not in ("l1", "l2") or error.estimate in (0, error.signed)
            seen.add((error.signed > 0, error.estimate > 0))
    assert seen == {(False, False), (True, False), (True, True)}


def test_one_step_terms_meet_their_definitions():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet([1, 1, 1], 60), rng.dirichlet([1, 1, 1], 60)
    y, g = rng.integers(0, 3, 60), (q - p) / 2
    residuals, rows = np.eye(3)[y] - p, np.arange(60)
    terms = {
        "l1": np.sum(residuals * np.sign(g), axis=1) / 2,
        "l2": np.sum(residuals * g, axis=1) / np.linalg.norm(g, axis=1),
        "log": np.log((p + g)[rows, y]) - np.log(p[rows, y]),
    }
    weight = rng.uniform(0.5, 2, 60)
    for kind, term in terms.items():
        error = estimates(kind, p, y, [g], "canonical", weight)
        assert_allclose(error.one_step.terms, term)
        assert_allclose(error.one_step.value, np.average(term, weights=weight))


def test_one_column_has_the_errors_of_the_two_that_it_stands_for():
    rng = np.random.default_rng(1)
    p, y = rng.uniform(0.1, 0.9, 80), rng.integers(0, 2, 80)
    g = 0.05 * np.sin(9 * p)
    for kind in ("l1", "log"):  # the Euclidean norm counts both columns
        one = estimates(kind, p, y, [g[:, None]])
        two = estimates(kind, np.stack([1 - p, p], axis=1), y, [np.stack([-g, g], 1)], "canonical")
        assert_allclose(two.one_step.terms, one.one_step.terms)
        assert_allclose(two.standard_error, one.standard_error, rtol=0.02)


def test_the_correction_stays_in_the_interior_of_the_simplex():
    p, y = np.full(4, 0.5), np.array([0, 1, 1, 0])
    error = estimates("log", p, y, [np.array([[0.9], [-0.9], [0.2], [0.0]])])
    # q ∝ max(p + ĝ, p / √n) with n = 4.
    q = np.array([1.4 / 1.65, 0.25 / 1.65, 0.7, 0.5])
    assert_allclose(error.one_step.terms, np.log(np.where(y == 1, q, 1 - q) / 0.5))


def test_what_happened_against_probability_0_is_an_infinite_log_error():
    p, y = np.array([0.0, 0.5, 1.0, 0.25]), np.array([0, 1, 1, 1])
    g = [np.full((4, 1), 0.1)]
    assert np.isfinite(estimates("log", p, y, g).estimate)
    for row in (0, 2):
        other = y.copy()
        other[row] = 1 - y[row]
        with pytest.warns(UserWarning, match=f"tested sample {row} has probability 0"):
            error = estimates("log", p, other, g)
        assert error.estimate == error.lower_confidence_bound() == np.inf


def test_weights_count_samples():
    rng = np.random.default_rng(2)
    p, weight = rng.uniform(0.1, 0.9, 200), rng.integers(0, 3, 200)
    y, kept = (rng.random(200) < p**2).astype(int), weight > 0
    estimator = CalibrationErrorEstimator(SPLINES).fit(p[:100], y[:100])
    for kind in ErrorEstimate.kinds:
        one = estimator.error(p, y, kind, sample_weight=weight)
        other = estimator.error(p[kept], y[kept], kind, sample_weight=weight[kept])
        assert_allclose(one.estimate, other.estimate)
        assert_allclose(one.lower_confidence_bound(), other.lower_confidence_bound())


@pytest.mark.filterwarnings("ignore:The squared calibration error is estimated as -")
def test_what_cannot_be_told_raises():
    search, data = searched("confidence", n=60)
    with pytest.raises(ValueError, match=r"kind='l3' is unknown\. Use one of 'squared'"):
        search.error("l3")
    search = clone(search).set_params(candidates=[Binning(5, debias=True)])
    search.fit(data.proba, data.labels)
    assert search.error("rms").estimate >= 0
    with pytest.raises(ValueError, match="no candidate has `residual`"):
        search.error("l1")
    with pytest.raises(ValueError, match="no candidate has `residual`"):
        search.error("rms").lower_confidence_bound()
    estimator = CalibrationErrorEstimator(Binning(5, debias=True))
    assert not hasattr(estimator, "error")


def test_no_correction_leaves_the_mean_residual():
    p = np.full(400, 0.8)
    y = (np.arange(400) % 2).astype(int)
    error = estimates("l1", p, y, [np.zeros((400, 1))])
    assert_allclose([error.over, error.under], [error.estimate, 0])
    assert abs(error.estimate - 0.3) < 0.01
    assert error.lower_confidence_bound() <= 0


# Bounds at level 95 % are above the truth more often with probability 0.002 of 12, 0.003 of 30.
@pytest.mark.parametrize(("n_sets", "most"), [(12, 3), pytest.param(30, 5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("truth", ["calibrated", "too high", "rare and calibrated"])
def test_bounds_hold(truth, n_sets, most):
    above = dict.fromkeys(ErrorEstimate.kinds, 0)
    for seed in range(n_sets):
        rng = np.random.default_rng([seed, 7])
        p = rng.uniform(0.02, 0.98, 200)
        if truth == "rare and calibrated":
            p = 0.01 * np.exp(0.5 * rng.standard_normal(200))
        q = p**1.5 if truth == "too high" else p
        y, half = (rng.random(200) < q).astype(int), np.arange(200) < 100
        y[:2], y[-2:] = (0, 1), (0, 1)
        g = p - q
        divergence = q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))
        true = {
            "squared": np.mean(g**2),
            "rms": np.mean(g**2) ** 0.5,
            "l1": np.mean(np.abs(g)),
            "l2": np.mean(np.abs(g)),
            "log": np.mean(divergence),
        }
        corrections = np.empty((200, 1))
        for rows in (half, ~half):
            fitted = SPLINES.fit(p[~rows, None], y[~rows] - p[~rows])
            corrections[rows] = fitted.residual(p[rows, None])
        known = known_of(p, y, [corrections])
        for kind in ErrorEstimate.kinds:
            error = estimate_error(kind, *known)
            above[kind] += error.lower_confidence_bound() > true[kind] + 1e-12
            # An estimate is never below its bound, and a bound above 0 has a test that rejects.
            for level in (0.2, 0.95, 0.999):
                bound = error.lower_confidence_bound(level)
                assert bound <= error.estimate
                assert bound <= 0 or max(error.one_step.pvalue, error.squared.pvalue) < 1 - level
    assert max(above.values()) <= most, above


# In words and as plain numbers


MAPS = [Zero(), PlugIn(TemperatureScaling()), PlugIn(SplineScaling())]


def search(p, y, cv=3):
    return CalibrationErrorSearchCV(MAPS, cv=cv, random_state=0).fit(p, y)


def tempered(temperature):
    data = make_tempered(2000, temperature=temperature, n_classes=3, random_state=0)
    return data.proba, data.labels


@cache
def tempered_search(temperature):
    return search(*tempered(temperature))


@pytest.mark.filterwarnings("ignore:The squared calibration error is estimated as -")
def test_the_side_is_said_where_the_bound_shows_it():
    found = tempered_search(2.0)
    error = found.error("l1")
    facts = error.to_dict()
    assert facts["estimate"] == error.estimate
    assert facts["lower_confidence_bound"] == error.lower_confidence_bound()
    assert facts["over"] + facts["under"] == pytest.approx(error.estimate)
    assert facts["reading"].startswith(f"overconfident by {error.over:.3f}")
    assert facts["reading"] == error.reading in error.line()
    assert "underconfident" in tempered_search(0.5).error("l1").reading
    assert tempered_search(1.0).error("l1").reading == ""


def test_the_place_is_said_where_it_is_not_everywhere():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = (rng.random(4000) < np.where(p > 0.6, p - 0.15, p)).astype(int)
    reading = search(p, y, cv=5).error("l1").reading
    assert reading.startswith("too high by 0.0")
    assert reading.split(" above ")[1] in ("0.6", "0.61", "0.62", "0.63", "0.64", "0.65")


def test_an_infinite_error_is_none_with_a_reading():
    rng = np.random.default_rng(0)
    p = rng.choice([0.0, 0.5, 1.0], 300)
    y = (rng.random(300) < 0.8 * p + 0.1).astype(int)
    with pytest.warns(UserWarning, match="infinite"):
        error = search(p, y).error("log")
    facts = error.to_dict()
    assert facts["estimate"] is facts["standard_error"] is facts["lower_confidence_bound"] is None
    assert "probability 0" in error.line()


def test_the_command_line_prints_the_errors_that_are_asked_for(tmp_path, capsys, monkeypatch):
    short = [(one, {}) for one in MAPS]
    monkeypatch.setitem(candidates.CANDIDATES, "recommended", lambda *_: short)
    p, y = tempered(2.0)
    np.savez(tmp_path / "p.npz", proba=p[:300], labels=y[:300])
    options = ["evaluate", str(tmp_path / "p.npz"), "--notion", "confidence", "--cv", "3"]
    assert main([*options, "--error", "l1", "--error", "log"]) == 0
    printed = capsys.readouterr().out
    assert main([*options, "--error", "l1", "--error", "log", "--json"]) == 0
    [result] = json.loads(capsys.readouterr().out)
    facts = result["searches"][0]["errors"]
    assert [fact["kind"] for fact in facts] == ["l1", "log"]
    for fact in facts:
        assert fact["reading"] in printed
        assert printed.count(f"{fact['name'].ljust(23)} {number(fact['estimate'])} ± ") == 1
    assert facts[0]["name"] == "mean absolute error"
    with pytest.raises(SystemExit):
        main([*options, "--error", "l3"])


def test_an_error_prints_its_bound_if_it_says_something_and_its_sides():
    shown = str(tempered_search(2.0).error("l1"))
    calibrated = tempered_search(1.0).error("l1")
    assert calibrated.lower_confidence_bound() <= 0
    assert str(calibrated).endswith("(s.e.); too high by 0, too low by 0")
    error = number(calibrated.standard_error)
    assert calibrated.line() == f"mean absolute error 0.0000 ± {error} (s.e.)"
    assert re.fullmatch(
        r"confidence l1 error 0\.\d+ ± 0\.\d+ \(s\.e\.\), at least 0\.\d+ at 95 % confidence; "
        r"too high by 0\.\d+, too low by [\d.e-]+",
        shown,
    )


def test_a_place_that_rounds_to_everything_is_not_said():
    p = np.concatenate([np.linspace(0.5, 0.99, 90), np.linspace(0.996, 0.9999, 60), [1.0] * 30])
    size = np.where(p < 1, 0.1, 0.0)
    data = SimpleNamespace(parts=[SimpleNamespace(features=p[:, None])], weight=np.ones(len(p)))
    assert _range_of_side(data, -size, -1) == ""
