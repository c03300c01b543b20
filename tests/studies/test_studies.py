"""What the studies share, that their pages show them, and that the battery has every test."""

from pathlib import Path

import battery
import cluster
import evidence
import numpy as np
import pytest
import study_tools as tools

from skcal import hypothesis_tests, metrics

ROOT = Path(__file__).parents[2]
DOC = ROOT / "doc"


def test_rows_are_kept_and_known_again(tmp_path):
    path = tmp_path / "folder" / "rows.csv"
    assert tools.kept(path, 2) == set()
    tools.append(path, [[("a, b", 1, 0.5)], [("c", 2, 0.25)]])
    tools.append(path, [[("d", 3, 0.125)]])
    assert tools.kept(path, 2) == {("a, b", "1"), ("c", "2"), ("d", "3")}
    assert tools.rows_of(path)[0] == ["a, b", "1", "0.5"]


def test_means_of_cells_weigh_cells_alike():
    cells = {"one": [1.0, 3.0], "other": [10.0, 10.0, 10.0]}
    mean, error = tools.mean_of_cells(cells)
    assert mean == 6.0
    assert error == pytest.approx(0.5 * np.sqrt(2) / np.sqrt(2))
    assert np.isnan(tools.mean_of_cells({"one": [1.0]})[1])


def test_tables_are_written_as_they_are_printed(tmp_path, capsys):
    tools.write_table(tmp_path, "a_table", ["name", "value"], [["ECE, 15 bins", "0.1"]])
    assert (tmp_path / "a_table.csv").read_text() == 'name,value\n"ECE, 15 bins",0.1\n'
    assert "ECE, 15 bins  0.1" in capsys.readouterr().out


def test_the_page_shows_the_commands_of_the_run():
    for part, commands in evidence.PARTS.items():
        shown = (DOC / "evidence" / f"{part}.txt").read_text(encoding="utf-8")
        for command in commands:
            assert (ROOT / command.split()[0]).exists()
            assert command.format(data="FOLDER", out="OUT", work="WORK") in shown, part
    assert [row[0] for row in tools.rows_of(DOC / "evidence" / "runs.csv")][1:] == [
        *evidence.PARTS,
        "all",
    ]


def test_every_public_test_and_interval_is_in_the_battery():
    covered = {name.split()[0] for name in battery.public_tests()} | set(battery.NO_TEST)
    assert covered == set(hypothesis_tests.__all__)
    intervals = " ".join(battery.intervals())
    for name in metrics.__all__:
        if name.endswith("_interval"):
            assert name.removesuffix("_interval") in intervals


def test_the_page_of_levels_has_a_row_for_every_test_and_interval():
    rows = (DOC / "levels.rst").read_text(encoding="utf-8").splitlines()
    for name in [*battery.drawing_nothing(), *battery.intervals()]:
        assert any(row.startswith(f"{name} ") for row in rows), name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_search_on_a_cluster_gives_the_numbers_of_one_process():
    pytest.importorskip("distributed", reason="needs the extra dask")
    alone, together = cluster.main()
    assert together.squared_error_ == alone.squared_error_
    np.testing.assert_array_equal(
        together.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )
