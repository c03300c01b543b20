"""Text files are read within bounds, whatever they are."""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest
from read_files import read_predictions

from skcal.cli import text
from skcal.cli.cells import Dialect
from skcal.cli.commands import main
from skcal.cli.files import read_frame
from skcal.cli.problems import FileError, read_text

TABLE = "cat,dog,label\n" + "0.25,0.75,dog\n0.5,0.5,cat\n" * 20
FORMS = {
    "as pandas writes it": TABLE,
    "without a last newline": TABLE.rstrip("\n"),
    "as R writes it": TABLE.replace("dog", '"dog"').replace("cat", '"cat"'),
    "as spreadsheets write it": "\ufeff" + TABLE.replace("\n", "\r\n"),
    "carriage returns": TABLE.replace("\n", "\r"),
    "mixed ends": TABLE + "0.5,0.5,cat\r\n0.5,0.5,cat\r\r\r0.5,0.5,dog\n" + "1,0,cat\n",
    "blank lines": TABLE + "\n\n0.5,0.5,cat\n\n",
    "blanks": TABLE.replace(",", " , ") + "\t0.5,0.5\x0b,cat\n",
    "other scripts": TABLE.replace("cat", "chât") + "0.5\u2003,\u0660.5,chât\n",
    "signs and exponents": TABLE + "+0.5,.5,cat\n1.,0e9,cat\n5E-1,50e-2,dog\n-0.0,1,dog\n",
    "small numbers": TABLE + f"5e-324,1,cat\n1e-400,1,cat\n0.{'3' * 400},0.{'6' * 399}7,cat\n",
    "quotes": TABLE + '"0.5","0.5",cat\n0.5,0.5,"c""at"\n0.5,0.5,c"at\n0.5,0.5,"c"at\n',
    "newlines in quotes": TABLE + '0.5,0.5,"c\nat"\n0.5,0.5,"c\r\nat"\n0.5,0.5,dog\n',
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_those_of_the_csv_module_and_lines_those_of_editors(form, tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_bytes(FORMS[form].encode())
    frame = read_frame(path, 2**30, Dialect())
    lines = io.StringIO(FORMS[form].removeprefix("\ufeff"), newline="")
    reader = csv.reader(list(lines))
    assert frame.header == [name.strip() for name in next(reader)]
    rows = [(reader.line_num, row) for row in reader if row]
    numbers = np.column_stack([frame.numbers(name, Dialect()) for name in frame.header[:2]])
    assert numbers.tolist() == [[float(a), float(b)] for _, (a, b, _) in rows]
    texts = frame.texts("label")
    assert [texts.values[code] for code in texts.codes] == [row[2] for _, row in rows]
    words = [frame.words_for_row(row) for row in range(len(frame))]
    assert words == [f"line {line}" for line, _ in rows]


@pytest.mark.parametrize(
    ("late", "message"),
    [
        ("0.5,x,cat\n0.5,0.5,cat\n", "line 43, column 'dog' is 'x', not a number. Give a num"),
        ("0.5,0.5\n0.5,x,cat\n", "line 43 has 2 fields, the header 3"),
        ("0.5,0.5,cat,\n", "line 43 has 4 fields"),
    ],
)
def test_the_first_wrong_row_is_named(late, message, tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text(TABLE + "\n" + late + "0.5,0.5,dog\n")
    with pytest.raises(FileError, match=message):
        read_predictions(path)


def test_a_damaged_archive_is_refused(tmp_path):
    path = tmp_path / "predictions.csv.gz"
    content = gzip.compress(TABLE.encode(), mtime=0)
    for damaged in (content[:-1], content[:-8], content[:-9], content[:-20], b"no gzip at all"):
        path.write_bytes(damaged)
        with pytest.raises(FileError, match=r"gz: cannot be read \(.*\)\. Save it again"):
            read_predictions(path)


@pytest.mark.parametrize("form", ["csv.gz", "csv.bz2", "csv.xz", "csv.zip", "xlsx", "parquet"])
def test_whatever_a_cut_or_changed_file_raises_names_the_file_and_the_remedy(tmp_path, form):
    """Also with a word of a library, such as of the description that pandas stores."""
    whole = tmp_path / f"whole.{form}"
    cut = tmp_path / f"cut.{form}"
    frame = pd.DataFrame({"a": [0.5, 0.25], "b": [0.5, 0.75], "label": ["a", "b"]})
    if form == "xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(whole, index=False)
    elif form == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(whole)
    else:
        frame.to_csv(whole, index=False)
    content = whole.read_bytes()
    changed = [content[:k] for k in range(4, len(content), max(1, len(content) // 40))]
    if form == "xlsx":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        for word, other in ((b"<sheet ", b"<other "), (b"<workbook", b"workbook")):
            with zipfile.ZipFile(cut, "w") as archive:
                for name, part in parts.items():
                    archive.writestr(name, part.replace(word, other))
            changed.append(cut.read_bytes())
    elif form == "parquet":
        for word in (b'"pandas_type"', b'"index_columns"', b'"kind"', b"unicode", b"float64"):
            changed += [
                content.replace(word, other * len(word)) for other in (b"x", b"\xff", b"\0")
            ]
    messages = []
    for part in changed:
        cut.write_bytes(part)
        try:
            read_predictions(cut)
        except FileError as error:
            messages.append(str(error))
    named = r"cut\.[\w.]+: (cannot be read \(.+\)\. Save it again\.|no |has )"
    assert [text for text in messages if not re.search(named, text)] == []
    assert len(messages) > 20


def test_a_quotation_mark_that_is_left_open_is_named_where_it_opens(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"{p:.2f},{p > 0.5:d}" for p in np.linspace(0.1, 0.9, 40)]
    for k, changed in [(7, '"' + rows[7]), (7, rows[7].replace(",", ',"'))]:
        path.write_text("\n".join(["p,label", *rows[:k], changed, *rows[k + 1 :]]) + "\n")
        with pytest.raises(
            FileError, match=f"mark that opens in line {k + 2} closes in line 41 or"
        ):
            read_predictions(path)


def test_a_cell_may_hold_a_list_of_20_000_probabilities(tmp_path):
    rows = np.random.default_rng(0).dirichlet(np.ones(20_000), 3)
    path = tmp_path / "a.csv"
    lists = [f'"{json.dumps(row.tolist())}",{k}' for k, row in enumerate(rows)]
    path.write_text("p,label\n" + "\n".join(lists) + "\n")
    names = [str(k) for k in range(20_000)]
    found = read_predictions(path, labels=names)
    np.testing.assert_allclose(found.proba, rows)


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
    with pytest.raises(FileError, match=r"line 1 has more than 16,777,216 characters\. Save it"):
        read_predictions(path)
    with pytest.raises(FileError, match="Raise --max-size"):
        read_text(path, 2**20)


def test_numbers_of_text_are_held_to_the_size_that_is_allowed(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text("cat,dog,label\n" + "0,1,dog\n" * 1000)
    with pytest.raises(FileError, match=r"holds 1\.\d+e-05 GB, more than 1\.12e-05"):
        read_predictions(path, max_bytes=12_000)


def test_a_header_of_many_columns_is_refused(tmp_path):
    names = [f"c{k}" for k in range(2000)]
    path = tmp_path / "predictions.csv"
    path.write_text(",".join([*names, "c7", "label"]) + "\n")
    with pytest.raises(FileError, match="names column 'c7' twice"):
        read_predictions(path)
    path.write_text(",".join([*names, "label"]) + "\n" + "0," * len(names) + "c\n")
    with pytest.raises(FileError, match="none has the name of a label"):
        read_predictions(path)


def test_a_long_name_among_many_is_refused_before_all_take_its_place(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text(",".join(["x" * 10_000, *(f"c{k}" for k in range(2000)), "label"]) + "\n")
    path.write_text(path.read_text() + "0," * 2001 + "c0\n")
    with pytest.raises(FileError, match="Raise --max-size"):
        read_predictions(path, max_bytes=2**24)


def test_messages_are_of_bounded_length(tmp_path, capsys):
    path = tmp_path / "predictions.csv"
    path.write_text(f"{'x' * 100_000},dog,lapel\n0.5,0.5,dog\n")
    assert main(["test", str(path)]) == 2
    message = capsys.readouterr().err
    assert len(message) < 2000
    assert message.startswith(f"skcal: {path}: line 1 has no column 'label'")
    assert message.endswith("Name the column of labels by --label.\n")


@pytest.mark.slow
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


@pytest.mark.parametrize("chunk", [7, 20, 40, 2**16])
def test_parts_of_any_size_are_read_alike(chunk, tmp_path, monkeypatch):
    columns = {
        "small": np.arange(40) % 3,
        "large": 10 * np.arange(40),
        "negative": -np.arange(40) * 200,
        "p": np.linspace(0, 1, 40).round(3),
        "late": ["7"] * 30 + ["x"] * 10,
        "zeros": [f"{k:03d}" for k in range(40)],
        "truth": ["True", "False"] * 20,
    }
    rows = zip(*(map(str, values) for values in columns.values()), strict=True)
    path = tmp_path / "a.csv"
    path.write_text("\n".join([",".join(columns), *map(",".join, rows)]) + "\n")
    monkeypatch.setattr(text, "_CHUNK", chunk)
    frame = read_frame(path, 1e9, Dialect())
    assert len(frame) == 40
    for name, values in columns.items():
        texts = frame.texts(name)
        assert np.array(texts.values)[texts.codes].tolist() == list(map(str, values))
        assert frame.cells(name).tolist() == list(map(str, values))
    for name in ("small", "large", "negative", "p"):
        np.testing.assert_array_equal(frame.numbers(name, Dialect()), columns[name])
    with pytest.raises(FileError, match="line 32, column 'late' is 'x', not a number"):
        frame.numbers("late", Dialect())
