"""The command that finds the threshold above which few answers are wrong."""

import json
import re

import numpy as np
import pytest
from read_files import write_table

from skcal.cli.commands import main
from skcal.metrics import coverage_at_risk

N = 600


def answers(seed=0):
    """Five samples for each of 120 questions, with confidences in percent that are often 100."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(5, 1.5, N // 5).repeat(5)
    stated = np.minimum(5 * np.round(20 * (truth + 0.1 * rng.random(N))), 100)
    return stated, rng.random(N) < truth


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "answers.jsonl"
    rows = [
        {"question": k // 5, "confidence": float(c), "correct": bool(r)}
        for k, (c, r) in enumerate(zip(*answers(), strict=True))
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


ALONE = ["--ignore", "question"]  # without which samples of a question may belong together
ANSWERS = ["--confidence", "confidence", "--correct", "correct", "--percent"]


def test_it_is_coverage_at_risk_of_answers_also_with_groups(file, run):
    stated, right = answers()
    for options, groups in ((ALONE, None), (["--groups", "question"], np.arange(N) // 5)):
        expected = coverage_at_risk(right, stated, 0.2, groups=groups)
        assert 50 < expected.threshold <= 100  # in the units of the file
        assert run("abstain", file, *ANSWERS, "--max-risk", 0.2, *options).strip() == str(expected)
        facts = json.loads(run("abstain", file, *ANSWERS, "--max-risk", 0.2, "--json", *options))
        assert facts["threshold"] == expected.threshold
        assert facts["low"] == expected.low


def test_without_a_proven_threshold_the_status_is_3(file, run):
    text = run("abstain", file, *ANSWERS, *ALONE, "--max-risk", 0.001, status=3)
    assert "No threshold is proven to keep the share of wrong answers at or below 0.1 %" in text
    call = ["abstain", file, *ANSWERS, *ALONE, "--max-risk", 0.001, "--json"]
    facts = json.loads(run(*call, status=3))
    assert (facts["threshold"], facts["coverage"]) == (None, 0)
    assert 50 < facts["nearest"]["threshold"] <= 100


def test_of_a_classifier_it_asks_whether_the_most_probable_class_is_right(tmp_path, run):
    rng = np.random.default_rng(1)
    proba = rng.dirichlet([0.3] * 3, N)
    y = (proba.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
    two = proba[:, :2] / proba[:, :2].sum(axis=1, keepdims=True)
    for columns, name in ((proba, "three.csv"), (two, "two.csv")):
        labels = np.minimum(y, columns.shape[1] - 1)
        cells = {str(k): column for k, column in enumerate(columns.T)} | {"label": labels}
        write_table(tmp_path / name, cells)
        right = columns.argmax(axis=1) == labels
        expected = coverage_at_risk(right, columns.max(axis=1), 0.6)
        assert run("abstain", tmp_path / name, "--max-risk", 0.6).strip() == str(expected)


def test_of_risks_of_one_event_it_says_what_confidence_is_and_which_risks_are_kept(tmp_path, run):
    rng = np.random.default_rng(2)
    p = rng.beta(0.5, 1, N)
    y = (rng.random(N) < p).astype(int)
    write_table(tmp_path / "risk.csv", {"risk": 100 * p, "died": y})
    asked = "abstain", tmp_path / "risk.csv", "--label", "died", "--score", "risk", "--percent"
    text = " ".join(run(*asked, "--max-risk", 0.2).split())
    means = "Confidence is max(p, 100 − p), where p is the predicted probability of 1: the answer "
    assert f"{means}is 1 if p is above 50, else 0." in text
    kept = re.search(r"So keep a row if p is at most ([\d.]+) or at least ([\d.]+)\.", text)
    low, high = map(float, kept.groups())
    share = float(re.search(r"keeps ([\d.]+) % of the answers", text)[1])
    assert round(100 * np.mean((100 * p <= low) | (100 * p >= high)), 1) == share < 100
    unproven = " ".join(run(*asked, "--max-risk", 0.001, status=3).split())
    assert means in unproven
    assert "keep a row" not in unproven


@pytest.mark.parametrize("risk", ["0", "1", "x"])
def test_risks_outside_of_0_and_1_are_refused(file, risk, capsys):
    with pytest.raises(SystemExit):
        main(["abstain", str(file), *ANSWERS, "--max-risk", risk])
    assert "--max-risk" in capsys.readouterr().err
