"""Errors that people report, in words and as plain numbers."""

import json
import re
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from skcal import CalibrationErrorSearchCV, PlugIn, TemperatureScaling, Zero
from skcal._show import number
from skcal.cli.commands import main
from skcal.datasets import make_tempered
from skcal.model_selection import candidates
from skcal.model_selection.errors import _range_of_side, error_facts, error_line, error_text
from skcal.recalibration import SplineScaling

CANDIDATES = [Zero(), PlugIn(TemperatureScaling()), PlugIn(SplineScaling())]


def search(p, y, cv=3):
    return CalibrationErrorSearchCV(CANDIDATES, cv=cv, random_state=0).fit(p, y)


def tempered(temperature):
    data = make_tempered(2000, temperature=temperature, n_classes=3, random_state=0)
    return data.proba, data.labels


@cache
def searched(temperature):
    return search(*tempered(temperature))


@pytest.mark.filterwarnings("ignore:The squared calibration error is estimated as -")
def test_the_side_is_said_where_the_bound_shows_it():
    found = searched(2.0)
    facts = error_facts(found, "l1")
    error = found.error("l1")
    assert facts["estimate"] == error.estimate
    assert facts["lower_confidence_bound"] == error.lower_confidence_bound()
    assert facts["over"] + facts["under"] == pytest.approx(error.estimate)
    assert facts["reading"].startswith(f"overconfident by {error.over:.3f}")
    assert facts["reading"] in error_line(facts)
    assert "underconfident" in error_facts(searched(0.5), "l1")["reading"]
    assert error_facts(searched(1.0), "l1")["reading"] == ""


def test_the_place_is_said_where_it_is_not_everywhere():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = (rng.random(4000) < np.where(p > 0.6, p - 0.15, p)).astype(int)
    reading = error_facts(search(p, y, cv=5), "l1")["reading"]
    assert reading.startswith("too high by 0.0")
    assert reading.split(" above ")[1] in ("0.6", "0.61", "0.62", "0.63", "0.64", "0.65")


def test_an_infinite_error_is_none_with_a_reading():
    rng = np.random.default_rng(0)
    p = rng.choice([0.0, 0.5, 1.0], 300)
    y = (rng.random(300) < 0.8 * p + 0.1).astype(int)
    with pytest.warns(UserWarning, match="infinite"):
        facts = error_facts(search(p, y), "log")
    assert facts["estimate"] is facts["standard_error"] is facts["lower_confidence_bound"] is None
    assert "probability 0" in error_line(facts)


def test_the_command_line_prints_the_errors_that_are_asked_for(tmp_path, capsys, monkeypatch):
    short = [(one, {}) for one in CANDIDATES]
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
    assert all(printed.count(error_line(fact, 23)) == 1 for fact in facts)
    assert facts[0]["name"] == "mean absolute error"
    with pytest.raises(SystemExit):
        main([*options, "--error", "l3"])


def test_an_error_prints_its_bound_if_it_says_something_and_its_sides():
    shown = str(searched(2.0).error("l1"))
    calibrated = searched(1.0).error("l1")
    assert calibrated.lower_confidence_bound() <= 0
    assert str(calibrated).endswith("(s.e.); too high by 0, too low by 0")
    facts = error_facts(searched(1.0), "l1")
    assert error_text(facts) == f"0.0000 ± {number(facts['standard_error'])} (s.e.)"
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
