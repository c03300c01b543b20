"""``--weight`` and ``--groups``: what commands print is what functions say of such samples."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest
from read_files import write_table
from report_cases import verdict_test

from skcal import CalibrationErrorSearchCV, Recalibrator
from skcal.cli.commands import main
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import (
    calibration_error_interval,
    calibration_test,
    compare_calibration,
    equivalence_test,
)
from skcal.report import calibration_report


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 120)
    y = (rng.uniform(size=120) < p**1.3).astype(int)
    return y, p, rng.integers(1, 4, 120) / 2, (np.arange(120) // 2).astype(str)


@pytest.fixture
def table(sample, tmp_path):
    y, p, weight, groups = sample
    for name, q in (("a.csv", p), ("b.csv", p**1.2)):
        write_table(tmp_path / name, {"label": y, "p": q, "w": weight, "g": groups})
    return tmp_path / "a.csv"


OPTIONS = ["--weight", "w", "--groups", "g"]


def told(capsys, *arguments, status=0):
    assert main([str(one) for one in arguments]) == status
    return json.loads(capsys.readouterr().out)


def test_evaluate_weighs_every_number(sample, table, capsys):
    y, p, weight, groups = sample
    more = {"sample_weight": weight, "groups": groups}
    [found] = told(capsys, "evaluate", table, *OPTIONS, "--details", "--max-error", 0.3, "--json")
    [answer] = found["answers"]
    accuracy = np.average((p >= 0.5) == y, weights=weight)
    assert answer["overview"]["accuracy"] == pytest.approx(accuracy)
    assert answer["error"]["high"] == calibration_error_interval(y, p, **more).high
    search = CalibrationErrorSearchCV(random_state=0).fit(p, y, **more)
    assert found["searches"][0]["squared_error"] == search.squared_error_
    assert answer["test"]["pvalue"] == verdict_test(y, p, **more).pvalue
    [bounds] = found["gate"]["results"]
    expected = equivalence_test(y, p, limit=0.3, **more)
    assert (bounds["low"], bounds["high"]) == (expected.low, expected.high)
    rate = np.average(y, weights=weight)
    assert bounds["rate_of_rarest_outcome"] == pytest.approx(min(rate, 1 - rate))


def test_test_report_and_compare_take_both(sample, table, capsys, monkeypatch):
    y, p, weight, groups = sample
    more = {"sample_weight": weight, "groups": groups}
    [found] = told(capsys, "test", table, *OPTIONS, "--json", "--resamples", 99)
    expected = calibration_test(y, p, n_resamples=99, random_state=0, **more)
    assert found["pvalue"] == expected.pvalue
    found = told(capsys, "report", table, *OPTIONS, "--json", "--resamples", 19)
    report = calibration_report(y, p, n_resamples=19, name="a.csv", **more)
    assert found["overall"] == json.loads(report.to_json())["overall"]
    no_report = SimpleNamespace(to_dict=dict)
    monkeypatch.setattr("skcal.cli.commands.calibration_report", lambda **_: no_report)
    files = [str(table), str(table.with_name("b.csv"))]
    assert main(["compare", *files, *OPTIONS, "--fail-if-worse", "--json"]) < 2
    found = json.loads(capsys.readouterr().out)
    expected = compare_calibration(y, p, p**1.2, **more)
    assert found["gate"]["pvalue"] == pytest.approx(expected.pvalue, rel=1e-9)


def test_plot_and_recalibrate_take_both(sample, table, capsys, tmp_path, monkeypatch):
    y, p, weight, groups = sample
    drawn = []
    monkeypatch.setattr(ReliabilityDisplay, "save", lambda display, path: drawn.append(display))
    assert main(["plot", str(table), *OPTIONS, "--out", str(tmp_path / "p.png")]) == 0
    more = {"sample_weight": weight, "groups": groups}
    expected = ReliabilityDisplay.from_predictions(y, p, plot=False, **more)
    np.testing.assert_array_equal(drawn[0].panels[0].low, expected.panels[0].low)
    found = told(capsys, "recalibrate", table, "--save", tmp_path / "m.json", "--json", *OPTIONS)
    own = Recalibrator(random_state=0).fit(p, y, **more)
    assert found["chosen"] == own.best_name_
    assert found["comparison"]["log_loss"]["after"] == own.comparison_["log_loss"].after
    out = tmp_path / "out.csv"
    call = ["recalibrate", table, table.with_name("b.csv"), "--out", out, *OPTIONS]
    assert main([str(one) for one in call]) == 0
    with out.open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["label", "p", "w", "g"]
    assert [row[2] for row in rows[1:]] == [str(one) for one in weight]
    np.testing.assert_allclose(
        [float(row[1]) for row in rows[1:]], own.predict_proba(p**1.2)[:, 1], rtol=1e-12
    )


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x", "column 'w' holds 'x'. Give weights of at least 0."),
        ("", "column 'w' holds ''."),
        ("-1", "column 'w' holds '-1'."),
        ("nan", "column 'w' holds 'nan'."),
        ("inf", "column 'w' holds 'inf'."),
        ("0", "column 'w' holds 0 alone."),
    ],
)
def test_what_is_no_weight_is_named(cell, message, tmp_path, capsys):
    path = tmp_path / "p.csv"
    first = "0" if cell == "0" else "1"
    path.write_text(f"label,p,w\n1,0.5,{first}\n0,0.5,{cell}\n1,0.7,{first}\n")
    assert main(["test", str(path), "--weight", "w"]) == 2
    assert message in capsys.readouterr().err
    assert main(["test", str(path), "--weight", "v"]) == 2
    assert "Name a column by --weight" in capsys.readouterr().err
