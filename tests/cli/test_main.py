"""The command line: what it prints is what the search says."""

import json
import subprocess
import sys
from contextlib import redirect_stdout
from types import SimpleNamespace

import numpy as np
import pytest
from report_cases import CANDIDATES, binary
from sklearn.metrics import brier_score_loss

from skcal import CalibrationErrorSearchCV, Zero
from skcal.cli import evaluate
from skcal.cli.commands import main
from skcal.cli.evaluate import LateLines, scores_line, scores_of
from skcal.cli.predictions import Predictions
from skcal.hypothesis_tests.result import default_resamples
from skcal.metrics import expected_calibration_error
from skcal.model_selection import candidates
from skcal.notions import resolve_notion


@pytest.fixture
def three_candidates(monkeypatch):
    monkeypatch.setitem(candidates.CANDIDATES, "recommended", lambda *_: CANDIDATES)


@pytest.fixture
def npz(tmp_path, tempered):
    proba, labels = tempered
    path = tmp_path / "predictions.npz"
    np.savez(path, proba=proba[:400], labels=labels[:400])
    return path


@pytest.fixture
def report(npz, capsys):
    def run(*options):
        assert main(["evaluate", str(npz), "--json", *options]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_json_holds_what_the_search_finds(report, tempered, three_candidates):
    [result] = report("--notion", "confidence", "--seed", "3", "--cv", "4")
    proba, labels = (array[:400] for array in tempered)
    search = CalibrationErrorSearchCV(notion="confidence", cv=4, random_state=3)
    search.fit(proba, labels)
    [found] = result["searches"]
    assert found["squared_error"] == search.squared_error_
    assert found["one_step"]["squared_error"] == search.one_step_squared_error_
    assert found["one_step"]["lower_confidence_bound"] == search.lower_confidence_bound()
    [chosen] = [row for row in found["candidates"] if row["chosen"]]
    assert chosen["risk"] == search.best_risk_
    assert len(found["candidates"]) == len(search.families_)


def test_scores_beside_the_search_are_those_of_their_definitions(report, tempered):
    [result] = report("--notion", "confidence")
    proba, labels = (array[:400] for array in tempered)
    hit = proba.argmax(axis=1) == labels
    confidence = proba.max(axis=1)
    bins = np.ceil(confidence * 15)
    gaps = [abs(np.sum((hit - confidence)[bins == b])) for b in np.unique(bins)]
    assert result["ece_15_bins"] == pytest.approx(sum(gaps) / 400, rel=1e-12)
    assert result["accuracy"] == hit.mean()
    brier = np.mean(np.sum((proba - np.eye(4)[labels]) ** 2, axis=1))
    assert result["brier_score"] == pytest.approx(brier, rel=1e-12)


def test_scores_beside_a_binary_search_are_of_one_column(tmp_path, capsys):
    labels, proba = binary()
    np.savez(tmp_path / "1.npz", proba=proba, labels=labels)
    np.savez(tmp_path / "2.npz", proba=np.column_stack([1 - proba, proba]), labels=labels)
    options = ["--notion", "binary", "--cv", "3"]
    expected = {
        "brier_score": pytest.approx(brier_score_loss(labels, proba), rel=1e-12),
        "brier_notion": "binary",
        "ece_15_bins": pytest.approx(expected_calibration_error(labels, proba), rel=1e-12),
        "ece_notion": "binary",
    }
    for file in ("1.npz", "2.npz"):
        assert main(["evaluate", str(tmp_path / file), *options, "--json"]) == 0
        [result] = json.loads(capsys.readouterr().out)
        assert {name: result[name] for name in expected} == expected
    assert main(["evaluate", str(tmp_path / "1.npz"), *options]) == 0
    brier, ece = (f"{result[name]:.4f}" for name in ("brier_score", "ece_15_bins"))
    assert (
        f"Brier score {brier} (one column), untuned binary ECE {ece} (15 bins)\n"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("notions", "notion"),
    [
        ([], "confidence"),
        (["canonical"], "confidence"),
        (["top-2", "classwise"], "classwise"),
        (["top-label", "classwise"], "top-label"),
    ],
)
def test_ece_beside_the_searches_is_of_the_first_scalar_notion(tempered, notions, notion):
    proba, labels = (array[:400] for array in tempered)
    predictions = Predictions(proba, labels, np.arange(4))
    scores = scores_of(predictions, [resolve_notion(one, proba) for one in notions])
    assert (scores["ece_notion"], scores["brier_notion"]) == (notion, "classwise")
    assert scores["ece_15_bins"] == expected_calibration_error(labels, proba, notion=notion)
    heading = scores_line({"name": "x", **scores})
    assert f"(sum over classes), untuned {notion} ECE {scores['ece_15_bins']:.4f}" in heading


def test_notions_are_confidence_and_canonical_unless_asked(report):
    [result] = report("--cv", "3")
    assert [search["notion"] for search in result["searches"]] == ["confidence", "canonical"]
    [result] = report("--notion", "top-2", "--notion", "classwise", "--cv", "3")
    assert [search["notion"] for search in result["searches"]] == ["top-2", "classwise"]


@pytest.mark.parametrize("options", [[], ["--outer-cv", "3"]])
def test_blocks_and_outer_folds_test_on_every_sample(report, options):
    [result] = report("--notion", "confidence", *options)
    assert result["searches"][0]["n_test_samples"] == 400


def test_progress_is_silent_until_it_takes_long(tempered, capsys):
    proba, labels = tempered
    search = CalibrationErrorSearchCV(candidates=[Zero()], cv=3, verbose=1)
    progress = LateLines()
    with redirect_stdout(progress):
        search.fit(proba[:60], labels[:60])
    assert capsys.readouterr() == ("", "")
    progress.start -= 10
    with redirect_stdout(progress):
        search.fit(proba[:60], labels[:60])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("[CalibrationErrorSearchCV] ")
    assert captured.err.count("\n") == 1


def test_progress_and_results_are_on_streams_of_their_own(npz, capsys, monkeypatch):
    monkeypatch.setattr("skcal.cli.evaluate._PATIENCE", 0.0)
    command = ["evaluate", str(npz), "--notion", "confidence", "--cv", "3", "--json"]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)
    assert "[CalibrationErrorSearchCV] " in captured.err
    assert main([*command, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_the_demonstration_searches_two_notions_of_two_classifiers():
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "skcal", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    reports = json.loads(run.stdout)
    assert len(reports) == 2
    for report in reports:
        assert [search["notion"] for search in report["searches"]] == ["confidence", "canonical"]
        # Both classifiers are far from calibrated, and the search shows it.
        assert all(s["one_step"]["lower_confidence_bound"] > 0 for s in report["searches"])


def test_text_labels_without_classes_are_told_the_order_of_the_columns(tmp_path, capsys):
    proba = np.array([[0.2, 0.7, 0.1], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]] * 10)
    arrays = {"proba": proba, "labels": np.array(["mid", "low", "high"] * 10)}
    np.savez(tmp_path / "p.npz", **arrays)
    command = ["test", str(tmp_path / "p.npz"), "--resamples", "19", "--notion", "confidence"]
    main(command)
    told = capsys.readouterr().err
    assert told.startswith(f"skcal: {tmp_path / 'p.npz'}: without an array 'classes' the columns")
    assert "the order of the sorted labels, high, low, mid. Save classes=" in told
    assert "columns may be swapped" in told.splitlines()[1]  # as they are, for low and high
    assert told.count("\n") == 2
    main([*command, "--quiet"])
    assert capsys.readouterr().err == ""
    np.savez(tmp_path / "p.npz", **arrays, classes=["low", "mid", "high"])
    main(command)
    assert capsys.readouterr().err == ""


def test_an_interrupt_is_one_line_and_a_status_that_no_gate_returns(npz, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("skcal.cli.commands.evaluate", interrupted)
    assert main(["evaluate", str(npz), "--max-error", "0.1"]) == 130
    assert capsys.readouterr().err == "skcal: interrupted\n"


@pytest.mark.parametrize(("n", "n_resamples"), [(100_000, 999), (100_001, 199)])
def test_the_verdict_draws_as_many_resamples_as_that_of_a_report(n, n_resamples, monkeypatch):
    drawn = []
    monkeypatch.setattr(evaluate, "calibration_test", lambda *_, **more: drawn.append(more))
    options = SimpleNamespace(groups=None, weight=None, seed=0, n_jobs=None)
    evaluate.verdict_test(Predictions(np.full(n, 0.5), np.zeros(n), [0, 1]), "binary", options)
    assert drawn[0]["n_resamples"] == n_resamples == default_resamples(n)
