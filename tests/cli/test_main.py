"""The command line: what it prints is what the search says."""

import io
import json
import sys
from contextlib import redirect_stdout

import numpy as np
import pytest
from report_cases import CANDIDATES, binary, verdict_test

from skcal import CalibrationErrorSearchCV, Zero
from skcal._show import as_data
from skcal.cli import commands
from skcal.cli.commands import main
from skcal.cli.evaluate import ProgressLine, progress_in_words
from skcal.metrics import calibration_error
from skcal.model_selection import candidates
from skcal.report import calibration_report
from skcal.report.answer import answer_of


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
    [result] = report("--details", "--notion", "confidence", "--seed", "3", "--cv", "4")
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


def test_the_answer_is_that_of_the_report_and_needs_no_search(report, tempered, npz, capsys):
    [result] = report()
    proba, labels = (array[:400] for array in tempered)
    overall = calibration_report(labels, proba).overall
    [answer] = result["answers"]
    assert result["searches"] == []
    assert answer["error"]["estimate"] == calibration_error(labels, proba)
    assert answer["error"] == as_data(overall.error)
    assert answer["test"]["pvalue"] == verdict_test(labels, proba).pvalue
    assert main(["evaluate", str(npz)]) == 0
    printed = capsys.readouterr().out
    said, shown = answer_of(overall), " ".join(printed.split())
    assert said.title == "Overconfident: large"
    assert printed.splitlines()[2] == (
        "MISCALIBRATED: overconfident, large. Pass or fail needs a limit: --max-error."
    )
    assert " ".join(" ".join(said.sentences).split()) in shown
    assert f"{answer['title']}. {' '.join(answer['sentences'])}" == str(answer_of(overall))
    assert len(printed.rstrip().splitlines()) <= 14  # the last ones are how the file was read


def test_the_answer_about_two_columns_is_that_of_one(tmp_path, capsys):
    (labels, proba), answers = binary(), []
    for columns in (proba, np.column_stack([1 - proba, proba])):
        np.savez(tmp_path / "p.npz", proba=columns, labels=labels)
        assert main(["evaluate", str(tmp_path / "p.npz"), "--notion", "binary", "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out)[0]["answers"])
    assert answers[0] == answers[1]


def test_notions_are_auto_unless_asked_and_vectors_are_searched(report, three_candidates):
    [result] = report("--details", "--cv", "3")
    assert [search["notion"] for search in result["searches"]] == ["confidence"]
    [result] = report("--notion", "top-2", "--notion", "classwise", "--cv", "3")
    assert [search["notion"] for search in result["searches"]] == ["top-2"]
    assert [answer["notion"] for answer in result["answers"]] == ["classwise"]


@pytest.mark.parametrize("options", [[], ["--outer-cv", "3"]])
def test_blocks_and_outer_folds_test_on_every_sample(report, options, three_candidates):
    [result] = report("--notion", "confidence", "--error", "rms", *options)
    assert result["searches"][0]["n_test_samples"] == 400
    assert [error["kind"] for error in result["searches"][0]["errors"]] == ["rms"]


def test_outer_folds_need_the_search(npz, capsys):
    outer = ["report", str(npz), "--outer-cv", "2", "--resamples", "19", "--json"]
    with pytest.raises(SystemExit):
        main(outer)
    assert "--outer-cv is for --search: pass both" in capsys.readouterr().err
    assert main([*outer, "--search"]) == 0
    facts = json.loads(capsys.readouterr().out)["overall"]["tuned"][0]
    assert facts["n_test_samples"] == 400


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_one_line_that_is_replaced_once_it_takes_long(tempered):
    proba, labels = tempered
    search = CalibrationErrorSearchCV(candidates=[Zero()] * 2, cv=3, verbose=1)
    terminal = Terminal()
    progress = ProgressLine(terminal)
    with redirect_stdout(progress):
        search.fit(proba[:60], labels[:60])
    progress.clear()
    assert terminal.getvalue() == ""
    progress.start -= 10
    with redirect_stdout(progress):
        search.fit(proba[:60], labels[:60])
    progress.clear()
    shown = terminal.getvalue()
    assert "\n" not in shown
    first, *_, last, cleared, rest = shown.split("\x1b[K")
    assert first == "\r10 s, about 10 s left: 1 of 2 done, now Zero 2"
    assert last == "\r10 s: 2 of 2 done, now the estimates"
    assert progress_in_words("1 of 9, Zero: 1 setting; next Binning", 60.0).startswith(
        "60 s, about 8 min left: 1 of 9 done, now Binning"
    )
    assert (cleared, rest) == ("\r", "")
    assert all(len(line) <= 80 for line in (first, last))


@pytest.mark.parametrize(("command", "options"), [("evaluate", ["--details"]), ("report", [])])
def test_progress_is_shown_in_a_terminal_alone(npz, capsys, monkeypatch, command, options):
    monkeypatch.setattr("skcal.cli.evaluate._PATIENCE", 0.0)
    call = [command, str(npz), "--notion", "confidence", "--json", *options]
    assert main(call) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)
    assert captured.err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(call) == 0
    assert json.loads(capsys.readouterr().out)
    assert terminal.getvalue().count("\x1b[K") > 1
    assert main([*call, "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_the_demonstration_answers_for_two_classifiers(capsys, monkeypatch):
    reports, answer = [], commands.evaluate
    monkeypatch.setattr(
        commands, "evaluate", lambda *given: reports.append(answer(*given)) or reports[-1]
    )
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[2] == "MISCALIBRATED: overconfident, large."
    assert "--max-error" not in printed  # which it does not have
    monkeypatch.setattr(commands, "evaluate", lambda *_: reports.pop(0))
    monkeypatch.setattr(commands, "demonstration", lambda seed: [("model", None)] * 2)
    assert main(["--json"]) == 0
    answers = [report["answers"] for report in json.loads(capsys.readouterr().out)]
    titles = [answer["title"] for [answer] in answers]
    assert titles == ["Overconfident: large", "Underconfident: large"]
    assert all(answer["gain"]["helps"] for [answer] in answers)


def test_text_labels_without_classes_are_told_the_order_of_the_columns(tmp_path, capsys):
    proba = np.array([[0.2, 0.7, 0.1], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]] * 10)
    arrays = {"proba": proba, "labels": np.array(["mid", "low", "high"] * 10)}
    np.savez(tmp_path / "p.npz", **arrays)
    command = ["test", str(tmp_path / "p.npz"), "--resamples", "19", "--notion", "confidence"]
    main(command)
    told = capsys.readouterr().err
    assert told.startswith(f"skcal: {tmp_path / 'p.npz'}: without an array 'classes' the columns")
    assert "the order of the sorted labels, high, low, mid. Save an array 'classes'" in told
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
