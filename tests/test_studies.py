"""What the studies of the examples share, and that the page of evidence is theirs."""

import importlib
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
EVIDENCE = EXAMPLES.parent / "doc" / "evidence"


@pytest.fixture
def tools(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("study_tools")


def test_rows_are_kept_and_known_again(tools, tmp_path):
    path = tmp_path / "folder" / "rows.csv"
    assert tools.kept(path, 2) == set()
    tools.append(path, [[("a, b", 1, 0.5)], [("c", 2, 0.25)]])
    tools.append(path, [[("d", 3, 0.125)]])
    assert tools.kept(path, 2) == {("a, b", "1"), ("c", "2"), ("d", "3")}
    assert tools.rows_of(path)[0] == ["a, b", "1", "0.5"]


def test_means_of_cells_weigh_cells_alike(tools):
    cells = {"one": [1.0, 3.0], "other": [10.0, 10.0, 10.0]}
    mean, error = tools.mean_of_cells(cells)
    assert mean == 6.0
    assert error == pytest.approx(0.5 * np.sqrt(2) / np.sqrt(2))
    assert np.isnan(tools.mean_of_cells({"one": [1.0]})[1])


def test_tables_are_written_as_they_are_printed(tools, tmp_path, capsys):
    tools.write_table(tmp_path, "a_table", ["name", "value"], [["ECE, 15 bins", "0.1"]])
    assert (tmp_path / "a_table.csv").read_text() == 'name,value\n"ECE, 15 bins",0.1\n'
    assert "ECE, 15 bins  0.1" in capsys.readouterr().out


def test_the_page_shows_the_commands_of_the_run(tools):
    parts = importlib.import_module("evidence").PARTS
    for part, commands in parts.items():
        shown = (EVIDENCE / f"{part}.txt").read_text(encoding="utf-8")
        for command in commands:
            assert (EXAMPLES.parent / command.split()[0]).exists()
            assert command.format(data="FOLDER", out="OUT", work="WORK") in shown, part
    assert [row[0] for row in tools.rows_of(EVIDENCE / "runs.csv")][1:] == [*parts, "all"]
