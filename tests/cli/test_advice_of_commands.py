"""What a command says to do is done, and gives the answer of another command that is right."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from advice import matches
from advice_of_commands import CASES, make_files, numbers_of, run

from skcal.cli import commands


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_files()


@pytest.mark.parametrize("text", CASES)
def test_advice_of_commands_is_followed(text):
    words, followed, right = CASES[text]
    assert matches(text, run(words)[2])
    for path in ("s.json", "map.json", "new.csv"):
        (Path.cwd() / path).unlink(missing_ok=True)
    if isinstance(right, int):
        assert run(followed)[0] == right
        return
    numbers = numbers_of(followed)
    assert len(numbers) > 3
    np.testing.assert_allclose(numbers, numbers_of(right), rtol=1e-9)


def test_a_file_is_named_where_the_standard_input_is_closed(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", None)
        assert "standard input: is closed. Pass the name of a file." in run("evaluate -")[2]
        assert numbers_of("evaluate a.csv --json") == numbers_of("evaluate id.csv --score p --json")


def test_files_need_pandas_as_the_message_says(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pandas", None)  # as where it is not installed
        assert "a.csv: reading it needs pandas: pip install pandas." in run("evaluate a.csv")[2]
    assert run("evaluate a.csv")[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        "evaluate a.csv",
        "report a.csv",
        "compare a.csv b.csv",
        "monitor s.json a.csv",
        "abstain a.csv --max-risk 0.5",
        "sample-size --prevalence 0.5 --linear-predictor 0 1",
    ],
)
def test_a_lack_of_memory_names_options_that_the_command_has(words, monkeypatch):
    def lack(*_):
        raise MemoryError

    monkeypatch.setattr(commands, "_run", lack)
    status, _, told = run(words)
    assert status == 2
    assert "The memory does not suffice. Pass fewer samples or classes" in told
    options = " ".join(re.findall(r"--.*\d", told))
    assert run(f"{words} {options}")[2] == told  # and is no error of the parser
    takes = "--n-jobs" in run(f"{words.split()[0]} --help")[2]
    assert takes == bool(options)


def test_too_many_bins_of_a_plot_name_the_option():
    p = (np.arange(1100) + 0.5) / 1100
    rows = [f"{x},{int(k % 3 == 0)}" for k, x in enumerate(p)]
    Path("many.csv").write_text("\n".join(["p,label", *rows]))
    many = "plot many.csv --out a.svg"
    assert "Pass fewer --bins, or leave --bins out." in run(f"{many} --bins 5000")[2]
    assert run(f"{many} --bins 20")[0] == run(many)[0] == 0


def test_a_column_of_times_is_not_of_numbers():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.read_csv("two.csv")
    frame["p"] = pd.to_timedelta(frame["p"], unit="s")
    frame.to_parquet("times.parquet")
    told = run("evaluate times.parquet --score p")[2]
    assert "not numbers. Name the column of probabilities by --score." in told
    followed = numbers_of("evaluate times.parquet --score q --json")
    assert followed == numbers_of("evaluate two.csv --score q --json")


def test_columns_without_names_of_labels_are_named_by_the_score():
    told = run("evaluate pair.csv")[2]
    assert "sum to 1. Give each the name of its label" in told
    assert "or name the one of P(positive) by --score." in told
    followed = numbers_of("evaluate pair.csv --score of_yes --json")
    assert followed == numbers_of("evaluate a.csv --json")


def test_an_alarm_is_closed_and_the_monitor_begins_anew_as_it_says():
    status, told, _ = run("monitor s.json off.csv")
    assert status == 1
    close, anew = re.findall(r"python -m skcal (monitor s\.json --.*) CAUSE", told)
    assert run(f"{close} 'a new threshold'")[0] == 0
    assert run(f"{anew} 'recalibrated'")[0] == 0
    followed = numbers_of("monitor s.json a.csv --json")
    right = numbers_of("monitor t.json a.csv --json")
    assert followed[:4] == right[:4]
