"""Confidences of answers and whether each was right, in words of their own."""

import json

import numpy as np
import pytest

from skcal.cli.commands import main
from skcal.hypothesis_tests import calibration_test, compare_calibration
from skcal.metrics import calibration_error
from skcal.report import calibration_report

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
    assert view["mean_confidence"] == pytest.approx(stated.mean() / 100, rel=1e-12)
    assert facts["overall"]["validation"] is None  # what medicine reports


@pytest.mark.usefixtures("reports_once")
def test_a_report_of_answers_never_speaks_of_events(file, run, tmp_path):
    options, page = ["--by", "subject", *FEW], tmp_path / "page.html"
    short = run("report", file, *OPTIONS, *options)
    full = run("report", file, *OPTIONS, *options, "--detail", "full", "--html", page)
    for shown in (short, full, page.read_text("utf-8")):
        assert "event" not in shown
        assert "accuracy" in shown
        assert "classifier was trained" not in shown
    assert short.splitlines()[2].startswith("200 answers. ")


def test_groups_of_answers_are_counted_in_the_heading(file, run):
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    pairs = [json.dumps(row | {"question": k // 2}) for k, row in enumerate(rows)]
    file.write_text("\n".join(pairs))
    text = run("report", file, *OPTIONS, "--groups", "question", *FEW)
    assert text.splitlines()[2].startswith("200 answers in 100 groups. Are answers right")


def test_recalibrating_confidences_changes_no_answer(file, run, tmp_path):
    printed = run("recalibrate", file, *OPTIONS, "--save", tmp_path / "map.json")
    assert "calibration error after" in printed
    assert "accuracy" not in printed
    assert "change theirs" not in printed


JUDGING = [
    ["test", "a.jsonl", *FEW],
    ["evaluate", "a.jsonl"],
    ["evaluate", "a.jsonl", "--details", "--max-error", 0.1, "--by", "subject"],
]


@pytest.mark.parametrize(
    ("command", "off"),
    [
        *((command, off) for command in JUDGING for off in (0.15, -0.2, 0.02)),
        (["compare", "a.jsonl", "b.jsonl", *FEW], 0.15),
        (["recalibrate", "a.jsonl", "b.jsonl", "--out", "new.jsonl"], 0.15),
        (["abstain", "a.jsonl", "--max-risk", 0.35], 0.15),
        (["abstain", "a.jsonl", "--max-risk", 0.01], 0.15),
        (["shift", "a.jsonl", "b.jsonl", "--resamples", 20], 0.15),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else None,
)
def test_no_text_about_answers_speaks_of_events(tmp_path, monkeypatch, capsys, command, off):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.jsonl", *answers(0, off))
    write(tmp_path / "b.jsonl", *answers(1))
    assert main([*map(str, command), *OPTIONS]) in (0, 1, 3)
    said = capsys.readouterr()
    assert said.out
    assert "event" not in said.out + said.err


def test_the_test_of_answers_is_that_of_the_library(file, run):
    stated, right = answers()
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


@pytest.mark.usefixtures("reports_once")
def test_two_models_are_compared_each_with_its_own_right_and_wrong(tmp_path, run):
    (first, right), (second, second_right) = answers(0), answers(1, off=0.0)
    write(tmp_path / "a.jsonl", first, right)
    write(tmp_path / "b.jsonl", second, second_right)
    lines = (tmp_path / "b.jsonl").read_text().splitlines()
    order = np.random.default_rng(0).permutation(N)
    (tmp_path / "b.jsonl").write_text("\n".join(lines[k] for k in order) + "\n")
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    options = [*OPTIONS, "--id", "question", *FEW]
    facts = json.loads(run("compare", *files, *options, "--json"))
    test = compare_calibration(
        right, first / 100, second / 100, second_y_true=second_right, method="projection"
    )
    [found] = [
        facts for facts in facts["comparison"]["tests"] if facts["measure"] == "squared error"
    ]
    assert (found["estimate"], found["pvalue"]) == pytest.approx((test.estimate, test.pvalue))
    views = facts["overall"]["overview"], facts["comparison"]["second"]["overview"]
    expected = [right.mean(), second_right.mean()]
    assert [view["accuracy"] for view in views] == pytest.approx(expected, rel=1e-12)
    text = run("compare", *files, *options)
    assert "event" not in text
    status = int(test.estimate < 0 and test.pvalue <= 0.05)
    run("compare", *files, *options, "--fail-if-worse", "--quiet", status=status)


def test_a_second_model_has_outcomes_of_its_own_in_a_report():
    rng = np.random.default_rng(0)
    p, q = rng.uniform(size=(2, 300))
    y, z = rng.random(300) < p, rng.random(300) < q
    report = calibration_report(y, p, compare=q, second_y_true=z, n_resamples=19)
    assert report.comparison.second.error.estimate == calibration_error(z, q)
    brier = next(one for one in report.comparison.score_tests if one.measure == "Brier score")
    assert brier.estimate == pytest.approx(np.mean((y - p) ** 2) - np.mean((z - q) ** 2))
    with pytest.raises(ValueError, match="second_y_true is not used with compare=None"):
        calibration_report(y, p, second_y_true=z)
