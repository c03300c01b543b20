"""What commands conclude is no more than what they looked at, and names where to look next."""

import re
from pathlib import Path

import numpy as np
import pytest

from skcal.cli.commands import main

N = 4000


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(path, **columns):
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def said(capsys, *command):
    """The exit status and the text that a command prints."""
    status = main(list(command))
    return status, " ".join(capsys.readouterr().out.split())


def opposite(seed=0, n=N, off=0.08):
    """Predictions that are right on average, and too low in one country, too high in another."""
    rng = np.random.default_rng(seed)
    p, country = np.round(rng.uniform(0.2, 0.8, n), 3), rng.choice(["AT", "BE"], n)
    y = (rng.random(n) < p + np.where(country == "AT", off, -off)).astype(int)
    return {"y": y, "p": p, "country": country}


@pytest.mark.parametrize("gate", [False, True], ids=["answer", "gate"])
def test_what_is_right_on_average_is_not_said_to_be_right_in_subgroups(in_folder, capsys, gate):
    columns = opposite()
    n = np.arange(N)
    others = {"patient": n, "decision": (columns["p"] > 0.5).astype(int), "fold": n % 5, "age": n}
    write("data.csv", **others, **columns)
    asked = ["data.csv", "--label", "y", "--score", "p", *["--max-error", "0.05"] * gate]
    status, text = said(capsys, "evaluate", *asked)
    assert status == 0
    assert ("PASSED" if gate else "CALIBRATED WITHIN 0.05") in text
    [named] = re.findall(r"Subgroups were not compared; (report )?(--by \S+) ", text)
    if gate:
        status, text = said(capsys, "evaluate", *asked, *named[1].split())
        assert status == 1
        assert "above 0.05 in country = AT, country = BE" in text
    else:
        assert (
            "The error of all samples together is below 0.05: recalibration of all is not" in text
        )
        status, text = said(capsys, "report", *asked, *named[1].split())
        assert "Subgroups differ, so one recalibration" in text
    assert "not compared" not in text


def test_a_file_without_a_column_of_subgroups_names_none(in_folder, capsys):
    columns = opposite()
    del columns["country"]
    write("data.csv", **columns, age=np.arange(N))
    asked = "data.csv", "--label", "y", "--score", "p"
    assert "report --by COLUMN compares them" in said(capsys, "evaluate", *asked)[1]
    assert "not compared" not in said(capsys, "evaluate", *asked, "--max-error", "0.05")[1]


def test_an_error_that_is_not_small_is_not_said_to_need_no_recalibration(in_folder, capsys):
    write("data.csv", **{**opposite(), "y": (np.arange(N) % 2)})
    text = said(capsys, "evaluate", "data.csv", "--label", "y", "--score", "p")[1]
    assert "not needed" not in text
