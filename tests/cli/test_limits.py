"""What is too much, too long or not to be shown: one line and status 2, or silence."""

import json
import os
import re
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
from read_files import read_predictions
from report_cases import predictions

from skcal.cli import commands
from skcal.cli.commands import main
from skcal.cli.problems import FileError
from skcal.report import calibration_report

TABLE = "cat,dog,label\n" + "0.25,0.75,dog\n0.5,0.5,cat\n" * 30
# An escape, one of C1, a mark of direction, and deletion.
CONTROLS = "\x1b[31m\x9b\u202e\x7f"
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text(TABLE)
    return str(path)


@pytest.mark.parametrize("write", ["repeated", "incremental"])
def test_parquet_is_held_to_what_it_expands_to(write, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    n, path = 2_000, tmp_path / "bomb.parquet"
    label = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), ["x" * 10_000])
    table = pa.table({"p": [0.5] * n, "label": label.cast(pa.string())})
    options = {"compression": "zstd"}
    if write == "incremental":
        options |= {"use_dictionary": False, "column_encoding": {"label": "DELTA_BYTE_ARRAY"}}
        options["column_encoding"]["p"] = "PLAIN"
    parquet.write_table(table, path, **options)
    del label, table
    assert path.stat().st_size < 50_000
    before = pa.default_memory_pool().bytes_allocated()
    with pytest.raises(FileError, match=r"holds .* GB, more than .*--max-size"):
        read_predictions(path, max_bytes=2**23)
    assert pa.default_memory_pool().bytes_allocated() == before


@pytest.mark.parametrize("kind", ["numbers", "fixed texts"])
def test_parquet_is_counted_before_it_is_read(kind, tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    n = 2**17 if kind == "numbers" else 1000
    table = pa.table({"p": [0.5] * n, "label": [1] * n})
    if kind == "fixed texts":
        texts = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), [b"x" * 10_000])
        fixed = texts.cast(pa.binary()).cast(pa.binary(10_000))
        table = table.append_column("id", fixed)
    parquet.write_table(table, tmp_path / "p.parquet")
    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", lambda *_, **__: 1 / 0)
    with pytest.raises(FileError, match="--max-size"):
        read_predictions(tmp_path / "p.parquet", max_bytes=2**20)


def test_lists_in_parquet_are_counted_before_they_are_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "lists.parquet"
    parquet.write_table(pa.table({"p": [[0.5] * 100_000], "label": [1]}), path)
    with pytest.raises(FileError, match=r"holds .* GB, more than .*--max-size"):
        read_predictions(path, max_bytes=2**19)
    parquet.write_table(pa.table({"p": [[0.2, 0.8], [0.5, 0.5]], "label": [1, 0]}), path)
    assert read_predictions(path).proba.tolist() == [[0.2, 0.8], [0.5, 0.5]]


def test_labels_of_an_archive_may_be_bytes_or_a_column(tmp_path):
    path, texts = tmp_path / "predictions.npz", np.array(["cat", "dog"] * 20)
    proba = np.tile([[0.25, 0.75], [0.5, 0.5]], (20, 1))
    for labels in (texts.astype("S"), texts[:, np.newaxis]):
        np.savez(path, proba=proba, labels=labels, classes=["cat", "dog"])
        np.testing.assert_array_equal(read_predictions(path).labels, texts)
        assert main(["recalibrate", str(path), "--save", str(tmp_path / "map.json")]) == 0


def test_an_alpha_below_all_resamples_is_told(table, capsys):
    assert main(["test", table, "--alpha", "1e-300", "--resamples", "19"]) == 2
    told = capsys.readouterr().err
    assert "--alpha 1e-300 is below what 1,000,000 resamples, the most, can show" in told


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_long_label_among_many_is_refused(ending, tmp_path):
    # An array of texts holds each in the place of the longest: 4 bytes a character.
    path = tmp_path / f"predictions.{ending}"
    rows = [(0.5, "1" * 9_000), *[(0.5, "0")] * 999]
    if ending == "csv":
        path.write_text("p,label\n" + "".join(f"{p},{label}\n" for p, label in rows))
    else:
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pd.DataFrame(rows, columns=["p", "label"]).to_parquet(path)
    with pytest.raises(FileError, match="more than"):
        read_predictions(path, max_bytes=2**20)


@pytest.mark.parametrize("error", [MemoryError(), BrokenProcessPool("killed")])
@pytest.mark.parametrize("command", ["test", "report", "evaluate", "plot"])
def test_a_lack_of_memory_is_one_line(command, error, table, tmp_path, monkeypatch, capsys):
    def fail(*arguments, **options):
        raise error

    for name in ("calibration_test", "calibration_report", "evaluate"):
        monkeypatch.setattr(commands, name, fail)
    monkeypatch.setattr("skcal.displays.base.save_figure", fail)
    options = ["--out", str(tmp_path / "a.png")] if command == "plot" else []
    assert main([command, table, *options]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("skcal: The memory does not suffice.")
    assert captured.err.count("\n") == 1


def assert_clean(text):
    assert not HIDDEN.search(text), HIDDEN.findall(text)


@pytest.mark.skipif(os.name == "nt", reason="no such names of files")
@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize("command", ["test", "report", "evaluate"])
def test_control_characters_of_names_are_escaped(command, form, tmp_path, capsys):
    path = tmp_path / f"a{CONTROLS}b.csv"
    path.write_text(TABLE.replace("cat", f"c{CONTROLS}"), encoding="utf-8")
    options = [] if command == "evaluate" else ["--resamples", "19"]
    assert main([command, str(path), *options, *form]) == 0
    captured = capsys.readouterr()
    assert_clean(captured.out + captured.err)
    if form:
        json.loads(captured.out)
    elif command != "report":  # whose title shows what can be seen
        assert r"a\x1b[31m\x9b\u202e\x7fb.csv" in captured.out


def test_control_characters_of_messages_are_escaped(tmp_path, capsys):
    path = tmp_path / "predictions.csv"
    path.write_text(TABLE.replace("0.25", f"{CONTROLS}0.25"), encoding="utf-8")
    for arguments in (["test", str(path)], ["test", f"{CONTROLS}.csv"], ["plot", str(path)]):
        if arguments[0] == "plot":
            arguments += ["--out", f"{CONTROLS}.xyz"]
        assert main(arguments) == 2
        captured = capsys.readouterr().err
        assert captured.endswith("\n")
        assert_clean(captured)
        assert r"\x1b[31m\x9b\u202e\x7f" in captured


def test_json_of_reports_escapes_and_keeps_names():
    options = {"n_resamples": 19, "random_state": 0}
    name = f"é {CONTROLS}\n\ud800"
    report = calibration_report(*predictions(), name=name, **options)
    assert_clean(report.to_json())
    assert report.to_json().isascii()
    assert json.loads(report.to_json())["overall"]["name"] == name
    assert_clean(str(report))


def test_a_reader_that_has_read_enough_ends_it_quietly(table, monkeypatch, capfd):
    read, write = os.pipe()
    os.close(read)  # who reads is gone before anything is written
    with open(write, "w", encoding="utf-8") as output:
        monkeypatch.setattr("sys.stdout", output)
        assert main(["test", table, "--resamples", "19"]) == 141
    assert capfd.readouterr() == ("", "")


def test_a_missing_array_among_many_is_named_shortly(tmp_path):
    path = tmp_path / "predictions.npz"
    np.savez(path, **{f"array {k}": np.zeros(1) for k in range(2000)})
    with pytest.raises(
        FileError, match=r"'proba' is missing \(found: array 0, .* 1988 more\)"
    ) as e:
        read_predictions(path)
    assert len(str(e.value)) < 500
