"""Several files, folders, partitions and names with wildcards are read as one table."""

import gzip
import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from read_files import read_predictions, write_table

from skcal.cli.commands import main

N = 900
RNG = np.random.default_rng(0)
P = RNG.uniform(size=N).round(4)
COLUMNS = {
    "p": P,
    "label": (RNG.uniform(size=N) < P).astype(int),
    "site": RNG.choice(["east", "west"], N),
}


def part(rows, *names):
    return {name: COLUMNS[name][rows] for name in names or COLUMNS}


def write_parts(folder):
    """The rows in four files of different kinds and orders of columns, one without rows."""
    first, second = folder / "day=2026-01-01", folder / "day=2026-01-02"
    first.mkdir(parents=True), second.mkdir()
    write_table(first / "a.csv", part(slice(400)))
    text = write_table(first / "b", part(slice(400, 600), "site", "label", "p"))
    (first / "b.csv.gz").write_bytes(gzip.compress(text.read_bytes()))
    text.unlink()
    rows = [
        {name: values.tolist()[k] for name, values in part(slice(600, N)).items()}
        for k in range(N - 600)
    ]
    (second / "c.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (second / "d.csv").write_bytes(b"")
    return folder


def assert_same(read):
    assert_array_equal(read.proba, P)
    assert_array_equal(read.labels, COLUMNS["label"])
    assert read.classes.tolist() == [0, 1]


@pytest.mark.parametrize("pattern", [None, "*", "*/*", "**"])
def test_files_are_read_as_if_they_were_one(tmp_path, pattern):
    folder = write_parts(tmp_path / "days")
    read = read_predictions(folder / pattern if pattern else folder, score="p")
    assert_same(read)
    assert "day=2026-01-02/d.csv" in read.notes[1].replace("\\", "/")


def test_files_and_folders_stand_beside_each_other(tmp_path, run):
    folder = write_parts(tmp_path / "days")
    whole = write_table(tmp_path / "whole.csv", COLUMNS)
    first, second = sorted(folder.iterdir())
    options = "--score", "p", "--max-error", "0.1", "--by", "site", "--json"
    one = json.loads(run("evaluate", whole, *options, status=3))[0]
    two = json.loads(run("evaluate", first, second / "c.jsonl", *options, status=3))[0]
    assert one["gate"] == two["gate"]
    assert one["answers"] == two["answers"]
    assert two["name"] == "a.csv … c.jsonl (3 files)"


def test_names_of_folders_are_columns(tmp_path, run):
    folder = write_parts(tmp_path / "days")
    options = "--score", "p", "--max-error", "0.1", "--by", "day", "--json"
    [report] = json.loads(run("evaluate", folder, *options, status=3))
    rows = {one["subgroup"]: one["n_samples"] for one in report["gate"]["results"]}
    assert rows == {"all": N, "day = 2026-01-01": 600, "day = 2026-01-02": 300}


def test_a_partition_is_no_prediction(tmp_path):
    folder = tmp_path / "fold=1"
    folder.mkdir()
    write_table(folder / "a.csv", part(slice(N), "p", "label"))
    assert_same(read_predictions(tmp_path))


@pytest.mark.parametrize("command", ["report", "test", "plot"])
def test_other_commands_take_several_files(tmp_path, run, command):
    files = [write_table(tmp_path / f"{k}.csv", part(slice(k, N, 2))) for k in range(2)]
    more = ["--out", tmp_path / "out.svg"] if command == "plot" else []
    run(command, *files, "--score", "p", *more)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0.5,x,east", "b.csv is 'x'"),
        ("q,1,east", "b.csv: line 50, column 'p' is 'q'"),
        ("0.5,,east", "b.csv"),
        ("1.5,1,east", "b.csv"),
        ('0.5,1,"east', "b.csv: the quotation mark that opens in line 50"),
        ("0.5,1", "b.csv: line 50 has 2 fields"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path, run, line, said):
    files = [write_table(tmp_path / name, COLUMNS) for name in ("a.csv", "b.csv")]
    lines = files[1].read_text(encoding="utf-8").splitlines()
    lines[49] = line
    files[1].write_text("\n".join(lines), encoding="utf-8")
    text = run("evaluate", *files, "--score", "p", status=2)
    assert said in text
    assert "line 50" in text


def test_files_of_other_columns_are_refused(tmp_path, run):
    files = [write_table(tmp_path / "a.csv", COLUMNS)]
    files.append(write_table(tmp_path / "b.csv", part(slice(N), "p", "label")))
    text = run("evaluate", *files, "--score", "p", status=2)
    assert "b.csv and a.csv have different columns; not in both: site." in text


@pytest.mark.parametrize("names", [("a.csv", "a.csv"), ("a.csv", "*.csv"), ("a.csv", "-")])
def test_no_sample_counts_twice(tmp_path, names, capsys):
    write_table(tmp_path / "a.csv", COLUMNS)
    names = [name if name == "-" else str(tmp_path / name) for name in names]
    with pytest.raises(SystemExit):
        main(["evaluate", *names])
    said = "is given twice" if "-" not in names else "the standard input is one file"
    assert said in capsys.readouterr().err


def test_an_archive_stands_alone(tmp_path, capsys):
    path = tmp_path / "a.npz"
    np.savez(path, proba=P, labels=COLUMNS["label"])
    with pytest.raises(SystemExit):
        main(["evaluate", str(path), str(write_table(tmp_path / "a.csv", COLUMNS))])
    assert "Pass it alone" in capsys.readouterr().err
