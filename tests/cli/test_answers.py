"""Confidences of answers and whether each was right, in words of their own."""

import json

import numpy as np
import pytest

from skcal.cli.commands import main
from skcal.hypothesis_tests import calibration_test
from skcal.notions import ANSWERS
from skcal.report import calibration_report
from skcal.sample import read_sample

FEW = ["--resamples", "19"]
N = 200


def answers(seed=0, off=0.15):
    """Stated confidences in percent, of which many are 100, and right answers."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(4, 2, N)
    stated = np.minimum(np.round((truth + off) * 20) * 5, 100)
    stated[::3] = 100
    return stated, rng.random(N) < truth


def write(path, stated, right, words=(False, True)):
    lines = [
        {"question": f"q{k}", "confidence": float(c), "correct": words[int(r)], "subject": k % 2}
        for k, (c, r) in enumerate(zip(stated, right, strict=True))
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")


@pytest.fixture
def file(tmp_path):
    write(tmp_path / "a.jsonl", *answers())
    return tmp_path / "a.jsonl"


OPTIONS = ["--confidence", "confidence", "--correct", "correct", "--percent"]


def test_numbers_are_those_of_the_binary_notion_and_words_those_of_answers(file, run):
    stated, right = answers()
    facts = json.loads(run("report", file, *OPTIONS, "--json", *FEW))
    expected = calibration_report(right.astype(int), stated / 100, n_resamples=19).to_dict()
    for name in ("ece", "test", "cutoff"):
        assert facts["overall"].get(name) == expected["overall"].get(name)
    view = facts["overall"]["overview"]
    assert view["accuracy"] == pytest.approx(right.mean(), rel=1e-12)
    assert facts["overall"]["validation"] is None  # what medicine reports


@pytest.mark.parametrize("command", ["test", "evaluate"])
def test_other_commands_read_answers_too(file, run, command):
    text = run(command, file, *OPTIONS, *(FEW if command == "test" else []))
    assert "event" not in text
    stated, right = answers()
    if command == "test":
        [found] = json.loads(run("test", file, *OPTIONS, "--json", *FEW))
        test = calibration_test(right, stated / 100, n_resamples=19, random_state=0)
        assert found["pvalue"] == test.pvalue


@pytest.mark.parametrize(
    "words", [(0, 1), ("wrong", "right"), ("No", "YES"), ("0.0", "1.0"), ("f", "t")]
)
def test_right_and_wrong_may_be_said_in_several_words(words, tmp_path, run, file):
    write(tmp_path / "b.jsonl", *answers(), words)
    options = [*OPTIONS, "--json", *FEW]
    assert run("test", tmp_path / "b.jsonl", *options) == run("test", file, *options)


def test_what_is_neither_right_nor_wrong_is_named(tmp_path, capsys):
    stated, right = answers()
    write(tmp_path / "b.jsonl", stated, right, ("wrong", "right"))
    text = (tmp_path / "b.jsonl").read_text().splitlines()
    text[4] = text[4].replace("wrong", "refused").replace("right", "refused")
    (tmp_path / "b.jsonl").write_text("\n".join(text) + "\n")
    assert main(["test", str(tmp_path / "b.jsonl"), *OPTIONS]) == 2
    told = capsys.readouterr().err
    assert "line 5 is 'refused', neither right nor wrong. Write 1 or 0" in told
    assert "--drop-label refused" in told.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--confidence", "c"], "--correct COLUMN is missing"),
        (["--correct", "c"], "--confidence COLUMN is missing"),
        ([*OPTIONS, "--score", "c"], "--score is not an option with --confidence"),
        ([*OPTIONS, "--notion", "binary"], "--notion is not an option with --confidence"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(options, message, capsys):
    with pytest.raises(SystemExit):
        main(["report", "a.jsonl", *options])
    assert message in capsys.readouterr().err


def test_accuracy_of_answers_is_the_share_of_right_ones():
    sample = read_sample(np.array([1, 0, 0, 1]), np.array([0.9, 0.8, 0.2, 0.1]), ANSWERS)
    assert sample.accuracy == 0.5
    assert sample.mean_confidence == 0.5
    assert [problem.residuals.ravel().tolist() for problem in sample.problems()] == [
        problem.residuals.ravel().tolist()
        for problem in read_sample(sample.y_true, sample.proba, "binary").problems()
    ]
