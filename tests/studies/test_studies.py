"""What the studies share, that their pages show them, and that the battery has every test."""

import pickle
from pathlib import Path

import battery
import cluster
import evidence
import numpy as np
import published_inputs
import published_tables
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
    public = {name: getattr(hypothesis_tests, name) for name in hypothesis_tests.__all__}
    assert covered == {name for name, thing in public.items() if not isinstance(thing, type)}
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


def test_inputs_of_published_tables_are_made_from_published_files(tmp_path):
    rng = np.random.default_rng(0)
    source = tmp_path / "clone" / "experiments" / "data" / "PyTorch-CIFAR10"
    source.mkdir(parents=True)
    labels = rng.integers(10, size=30)
    np.savetxt(source / "labels.csv", labels + 1, fmt="%d")
    proba = rng.dirichlet(np.ones(10), 30)
    for name in published_inputs.WIDMANN:
        np.savetxt(source / f"{name}.csv", proba, delimiter=",", fmt="%.17g")
    for file, columns in (("errors", "ECE_uniform,ECE_dynamic"), ("pvalues", "ECE_uniform")):
        rows = [
            ",".join([name, *(f"0.{k}" for k, _ in enumerate(columns.split(",")))])
            for name in sorted([*published_inputs.WIDMANN, "vgg11_bn"])
        ]
        (source / f"{file}.csv").write_text("\n".join([f"model,{columns}", *rows, ""]))
    scores = rng.normal(size=(30, 10)).astype(np.float32)
    for name in published_inputs.GRUBER_BACH:
        content = ((scores[:5], labels[:5, None]), (scores, labels[:, None]))
        (tmp_path / f"probs_{name}_logits.p").write_bytes(pickle.dumps(content))
    folder, clone = tmp_path / "inputs", tmp_path / "clone"
    published_inputs.main([str(folder), "--widmann", str(clone), "--gruber-bach", str(tmp_path)])
    found = np.load(folder / "cifar10" / "resnet18.npz")
    np.testing.assert_array_equal(found["proba"], proba)
    np.testing.assert_array_equal(found["labels"], labels)
    printed = tools.rows_of(folder / "cifar10" / "published.csv")
    assert printed[0] == ["model", "ECE_uniform", "ECE_dynamic", "pvalue_ECE_uniform"]
    assert printed[1] == ["resnet18", "0.0", "0.1", "0.0"]
    title, _, _, (notion, _, confidence, correct) = next(published_tables.problems(folder))
    assert (title, notion) == ("densenet40_c10", "binary")
    shares = np.exp(scores.astype(float))
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(confidence, shares.max(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(correct, scores.argmax(axis=1) == labels)


def test_a_pickle_of_other_things_than_arrays_is_refused(tmp_path):
    (tmp_path / "probs_densenet40_c10_logits.p").write_bytes(pickle.dumps(Path("x")))
    with pytest.raises(pickle.UnpicklingError, match="is no array"):
        published_inputs.main([str(tmp_path / "inputs"), "--gruber-bach", str(tmp_path)])
