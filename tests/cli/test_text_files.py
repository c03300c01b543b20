"""Text files are read within bounds, whatever they are."""

import gzip
import io
import os
import subprocess
import sys
import time
import tracemalloc

import pytest

from skcal.cli.bounds import FileError, read_text
from skcal.cli.commands import main
from skcal.cli.predictions import read_predictions

TABLE = "cat,dog,label\n" + "0.25,0.75,dog\n0.5,0.5,cat\n" * 20


@pytest.mark.parametrize("form", ["csv", "csv.gz", "-"])
@pytest.mark.parametrize("size", ["inf", "1e300", "1e12"])
def test_any_size_may_be_allowed(form, size, tmp_path, monkeypatch):
    path = tmp_path / f"predictions.{form}"
    path.write_bytes(gzip.compress(TABLE.encode()) if form != "csv" else TABLE.encode())
    if form == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        path = "-"
    command = ["test", str(path), "--resamples", "19", "--max-size", size]
    assert main([*command, "--quiet"]) == 0


@pytest.mark.parametrize("form", ["csv.gz", "-"])
def test_no_more_is_held_than_a_file_has(form, tmp_path, monkeypatch):
    path = tmp_path / "predictions.csv.gz"
    path.write_bytes(gzip.compress(TABLE.encode()))
    if form == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TABLE.encode())))
        path = "-"
    tracemalloc.start()
    try:
        read_predictions(path)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_the_standard_input_stays_open(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(TABLE.encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    read_predictions("-")
    assert not stream.buffer.closed


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device")
def test_a_device_without_an_end_is_refused(tmp_path):
    path = tmp_path / "predictions.csv"
    path.symlink_to("/dev/zero")
    with pytest.raises(FileError, match=r"line 1 has more than 16,777,216 bytes\. Save it"):
        read_predictions(path)
    with pytest.raises(FileError, match="Raise --max-size"):
        read_text(path, 2**20)


def test_numbers_of_text_are_held_to_the_size_that_is_allowed(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text("cat,dog,label\n" + "0,1,dog\n" * 1000)
    with pytest.raises(FileError, match=r"holds 1\.12e-05 GB, more than 1\.12e-05"):
        read_predictions(path, max_bytes=12_000)


def test_a_header_of_many_columns_takes_no_time(tmp_path):
    names = [f"c{k}" for k in range(100_000)]
    path = tmp_path / "predictions.csv"
    path.write_text(",".join([*names, "c7", "label"]) + "\n")
    start = time.process_time()
    with pytest.raises(FileError, match="names column 'c7' twice"):
        read_predictions(path)
    path.write_text(",".join([*names, "label"]) + "\n" + "0," * len(names) + "c\n")
    with pytest.raises(FileError, match="none has the name of a label"):
        read_predictions(path)
    assert time.process_time() - start < 10  # seconds; minutes if each is looked up in all


def test_a_long_name_among_many_is_refused_before_all_take_its_place(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text(",".join(["x" * 100_000, *(f"c{k}" for k in range(20_000)), "label"]) + "\n")
    path.write_text(path.read_text() + "0," * 20_001 + "c0\n")
    with pytest.raises(FileError, match="Raise --max-size"):
        read_predictions(path)


def test_messages_are_of_bounded_length(tmp_path, capsys):
    path = tmp_path / "predictions.csv"
    path.write_text(f"{'x' * 100_000},dog,lapel\n0.5,0.5,dog\n")
    assert main(["test", str(path)]) == 2
    message = capsys.readouterr().err
    assert len(message) < 2000
    assert message.startswith(f"skcal: {path}: line 1 has no column 'label'")
    assert message.endswith("Name the column of labels by --label.\n")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")
def test_little_memory_suffices_for_a_small_file(tmp_path):
    path = tmp_path / "predictions.csv.gz"
    path.write_bytes(gzip.compress(TABLE.encode()))
    script = (
        "import resource, sys; from skcal.cli.commands import main\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))\n"
        "sys.exit(any(main(['test', file, '--resamples', '19']) for file in sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), "-"],
        input=TABLE.encode(),
        capture_output=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
