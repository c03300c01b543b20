"""Damaged and hostile files: a line for each problem, status 2, and never a traceback."""

import io
import os
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from read_files import read_predictions

from skcal.cli.commands import main
from skcal.cli.problems import FileError

TABLE = "cat,dog,label\n0.25,0.75,dog\n1.0,0.0,cat\n0.5,0.5,dog\n"
HOSTILE = "<script>alert(1)</script>"


def npz_bytes(compress=False, **arrays):
    arrays = {"proba": [[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]], "labels": [1, 0, 1]} | arrays
    file = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(file, **arrays)
    return file.getvalue()


def parquet_bytes(columns=None):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    file = io.BytesIO()
    good = {"cat": [0.25, 1.0, 0.5], "dog": [0.75, 0.0, 0.5], "label": ["dog", "cat", "dog"]}
    pd.DataFrame(good if columns is None else columns).to_parquet(file)
    return file.getvalue()


def assert_refused(path, capsys, *options):
    """Refused as a function by FileError, as a command by status 2 and a line for each problem.

    The last line may be a command that reads the file, before it what that leaves out.
    """
    with pytest.raises(FileError) as caught:
        read_predictions(path)
    assert "\n" not in str(caught.value)
    status = main(["test", str(path), "--resamples", "19", *options])
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    lines = captured.err.splitlines()
    if lines[-1].startswith("skcal: With these options the file can be read: python -m skcal test"):
        lines.pop()
        if " left out" in lines[-1]:
            lines.pop()
    assert captured.err.endswith("\n")
    assert lines[0] == f"skcal: {caught.value}"
    assert len(set(lines)) == len(lines)
    for line in lines:
        assert line.startswith(f"skcal: {path}")
        assert line.endswith((".", "?"))
    assert "Traceback" not in captured.err
    return captured.err


# Beside those of test_files.py.
BAD_CSV = {
    "byte order mark alone": "\ufeff",
    "two byte order marks": "\ufeff\ufefflabel,cat,dog\ncat,0.5,0.5\n",
    "open quote": 'cat,dog,label\n0.5,0.5,"cat\n0.5,0.5,cat\n',
    "newline in a label": 'cat,dog,label\n0.5,0.5,"ca\nt"\n',
    "newline in a number": 'cat,dog,label\n"0.5\n1",0.5,cat\n',
    "newline in a header": '"c\nat",dog,label\n0.5,0.5,cat\n',
    "newline in a header twice": '"c\nat","c\nat",label\n0.5,0.5,cat\n',
    "a field beyond the limit of csv": f"cat,dog,label\n0.5,{'9' * 200_000},cat\n",
    "a label beyond the limit of csv": f"cat,dog,label\n0.5,0.5,{'c' * 200_000}\n",
    "zero bytes": "cat,dog,label\n0.5,\0,cat\n",
    "two label columns": "cat,dog,label,label\n0.5,0.5,cat,dog\n",
    "equal after stripping": "cat, cat ,label\n0.5,0.5,cat\n",
    "infinity": "cat,dog,label\n0.5,1e999,cat\n",
    "hexadecimal": "cat,dog,label\n0x1p-1,0x1p-1,cat\n",
    "empty cells": "cat,dog,label\n,,\n",
    "empty label": "cat,dog,label\n0.5,0.5,\n",
    "short row": "cat,dog,label\n0.5,cat\n",
    "long row": "cat,dog,label\n0.5,0.5,cat,cat\n",
    "formula": "cat,dog,label\n=0.5,0.5,cat\n",
    "one sample": "cat,dog,label\n0.5,0.5,cow\n",
    "a page": "<html><body>404 Not Found</body></html>\n",
}


@pytest.mark.parametrize("kind", BAD_CSV)
def test_a_bad_table_is_one_line(kind, tmp_path, capsys):
    path = tmp_path / "predictions.csv"
    path.write_text(BAD_CSV[kind], encoding="utf-8", newline="")
    assert_refused(path, capsys)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + TABLE,
        TABLE.replace("\n", "\r\n"),
        TABLE.replace(",", " , "),
        TABLE.rstrip("\n"),
        "\n".join(f'"{row}"'.replace(",", '","') for row in TABLE.splitlines()),
        TABLE.replace("0.25", "2.5e-1").replace("1.0", "+1"),
    ],
)
def test_other_dialects_of_a_good_table_are_read(text, tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text(text, encoding="utf-8", newline="")
    found = read_predictions(path)
    np.testing.assert_array_equal(found.proba, [[0.25, 0.75], [1, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(found.labels, ["dog", "cat", "dog"])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1", "cp1252"])
def test_other_encodings_are_one_line(encoding, tmp_path, capsys):
    path = tmp_path / "predictions.csv"
    path.write_text(TABLE.replace("cat", "chât"), encoding=encoding)
    assert "is not text in UTF-8. Pass --encoding " in assert_refused(path, capsys)


class Bomb:
    """Makes a folder when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["proba", "labels", "classes"])
def test_pickles_in_an_archive_are_refused_and_never_run(name, tmp_path, capsys):
    path, made = tmp_path / "predictions.npz", tmp_path / "made"
    objects = np.array([Bomb(made)] * 3, dtype=object)
    path.write_bytes(npz_bytes(**{name: objects}))
    assert_refused(path, capsys)
    assert not made.exists()


BAD_ARRAYS = {
    "0-d": {"proba": 0.5},
    "3-d": {"proba": np.full((3, 2, 2), 0.25)},
    "no columns": {"proba": np.empty((3, 0))},
    "no rows": {"proba": np.empty((0, 2)), "labels": []},
    "strings": {"proba": [["0.5", "0.5"]] * 3},
    "complex": {"proba": np.full((3, 2), 0.5 + 0j)},
    "structured": {"proba": np.zeros(3, dtype=[("a", float), ("b", float)])},
    "NaN": {"proba": [[np.nan, 1]] * 3},
    "logits": {"proba": [[-3.0, 4.0]] * 3},
    "fewer labels": {"labels": [0, 1]},
    "a column of labels": {"labels": [[0, 2]] * 3},
    "labels that are missing": {"labels": [np.nan, 0, 1]},
    "another class": {"labels": [0, 1, 2]},
    "classes of another number": {"classes": ["a", "b", "c"]},
    "classes twice": {"classes": ["a", "a"]},
    "labels without a class": {"labels": [0, 1, 5], "classes": ["a", "b"]},
}


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_bad_arrays_are_one_line(kind, tmp_path, capsys):
    path = tmp_path / "predictions.npz"
    path.write_bytes(npz_bytes(**BAD_ARRAYS[kind]))
    assert_refused(path, capsys)


def with_members(members, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def array_header(descr, shape, version=1):
    return described(repr({"descr": descr, "fortran_order": False, "shape": shape}), version)


def described(text, version=1):
    text = text.encode() + b"\n"
    return np.lib.format.MAGIC_PREFIX + bytes([version, 0]) + struct.pack("<H", len(text)) + text


def archive_of(array):
    return with_members({"proba.npy": array, "labels.npy": array})


def patched(content, field, value):
    """Set two bytes of every local (at ``field``) and central (two further) header."""
    content = bytearray(content)
    for magic, shift in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
        at = content.find(magic)
        while at >= 0:
            content[at + field + shift : at + field + shift + 2] = struct.pack("<H", value)
            at = content.find(magic, at + 4)
    return bytes(content)


def torn():
    """The stream of compressed data begins with a block of a kind that does not exist."""
    content = bytearray(npz_bytes(compress=True))
    lengths = struct.unpack("<HH", content[26:30])
    content[30 + sum(lengths)] |= 0b110
    return bytes(content)


BAD_ARCHIVES = {
    "empty": b"",
    "an empty archive": with_members({}),
    "text": b"cat,dog,label\n",
    "an array alone": npz_bytes()[:4] + b"\0" * 100,
    "first half": npz_bytes()[: len(npz_bytes()) // 2],
    "all but the end": npz_bytes()[:-10],
    "no arrays in it": with_members({"readme.txt": b"hello"}),
    "other names": with_members({"p.npy": b"", "y.npy": b""}),
    "text for arrays": archive_of(b"hello"),
    "nothing for arrays": archive_of(b""),
    "a header without data": archive_of(array_header("<f8", (3, 2))),
    "a shape beyond memory": archive_of(array_header("<f8", (2**60,))),
    "a shape beyond int64": archive_of(array_header("<f8", (2**70,))),
    "a negative shape": archive_of(array_header("<f8", (-3, 2))),
    "a shape that is none": archive_of(array_header("<f8", "abc")),
    "a dtype that is none": archive_of(array_header("nonsense", (3,))),
    "a header of another version": archive_of(array_header("<f8", (3,), version=9)),
    "a shape of truth": archive_of(array_header("<f8", (True,))),
    "empty texts without an end": archive_of(array_header("<U0", (10**12,))),
    "code for a header": archive_of(described("__import__('os').abort()")),
    "brackets for a header": archive_of(described("(" * 5000)),
    "damaged compression": torn(),
    "unknown compression": patched(npz_bytes(), 8, 99),
    "encrypted": patched(npz_bytes(), 6, 1),
}


@pytest.mark.parametrize("kind", BAD_ARCHIVES)
def test_a_bad_archive_is_one_line(kind, tmp_path, capsys):
    path = tmp_path / "predictions.npz"
    path.write_bytes(BAD_ARCHIVES[kind])
    assert_refused(path, capsys)


def test_every_command_refuses_a_bad_file_alike(tmp_path, capsys):
    path = tmp_path / "predictions.csv"
    path.write_text(BAD_CSV["short row"])
    figure = ["--out", str(tmp_path / "figure.png")]
    errors = set()
    for arguments in (["evaluate"], ["report"], ["test"], ["plot", *figure]):
        assert main([arguments[0], str(path), *arguments[1:]]) == 2
        errors.add(capsys.readouterr().err)
    assert main(["compare", str(path), str(path)]) == 2
    assert {capsys.readouterr().err} == errors


@pytest.mark.parametrize("ending", [".csv", ".npz", ".parquet"])
def test_folders_absent_files_and_odd_names_are_one_line(ending, tmp_path, capsys):
    folder = tmp_path / f"folder{ending}"
    folder.mkdir()
    assert_refused(folder, capsys)
    assert_refused(tmp_path / f"absent{ending}", capsys)
    assert_refused(tmp_path / f"absent {HOSTILE.replace('/', ' ')} ünï{ending}", capsys)
    assert_refused(folder / f"inside{ending}", capsys)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads anything")
def test_a_file_without_permission_is_one_line(tmp_path, capsys):
    path = tmp_path / "predictions.csv"
    path.write_text(TABLE)
    path.chmod(0)
    assert_refused(path, capsys)


def test_hostile_names_of_files_classes_and_groups_are_text_in_the_page(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=(60, 1))
    names = np.array([HOSTILE, 'x" onload="alert(1)'])
    path = tmp_path / "<img src=x onerror=alert(1)>.npz"
    page = tmp_path / "page.html"
    labels = names[(rng.uniform(size=60) < p[:, 0]).astype(int)]
    where = np.where(np.arange(60) % 2, HOSTILE, "'><script>alert(2)</script>")
    np.savez(path, proba=np.hstack([1 - p, p]), labels=labels, classes=names, where=where)
    assert (
        main(["report", str(path), "--by", "where", "--html", str(page), "--resamples", "39"]) == 0
    )
    text = page.read_text(encoding="utf-8").lower()
    assert "alert(1)" in text
    for part in ("<script>alert", "<img src=x", '"x" onload='):
        assert part not in text


# At random

quick = pytest.mark.parametrize(
    "examples",
    [pytest.param(60, id="quick"), pytest.param(3000, id="thorough", marks=pytest.mark.slow)],
)


def check(holds, examples, **strategies):
    """Run a property that writes to one file again and again."""
    options = {"max_examples": examples, "derandomize": True, "deadline": None}
    settings(**options, report_multiple_bugs=False)(given(**strategies)(holds))()


def read_or_refuse(path, content):
    """Whatever the bytes: predictions, or a FileError of one line that names the file."""
    path.write_bytes(content)
    error = None
    try:
        found = read_predictions(path)
    except FileError as refusal:
        error = str(refusal)
    if error is not None:
        assert error.startswith(f"{path}: ")
        assert "\n" not in error
    else:
        assert len(found.proba) == len(found.labels) > 0
        assert np.isfinite(found.proba).all()
        assert set(found.labels.tolist()) <= set(found.classes.tolist())


@quick
def test_any_text_is_a_table_or_refused(examples, tmp_path):
    pieces = [*",\n\";\r\0' é01", "0.5", "cat", "label", "nan"]

    def holds(start, text):
        read_or_refuse(tmp_path / "p.csv", (start + "".join(text)).encode())

    starts = st.sampled_from(["", "label,cat\n", "cat,dog,label\n", "\ufefflabel,p\n"])
    check(holds, examples, start=starts, text=st.lists(st.sampled_from(pieces), max_size=30))


@st.composite
def damage(draw, content):
    """Bytes of a good file with a few of them changed, cut out, doubled or the end missing."""
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        kind = draw(st.sampled_from(["set", "cut", "double", "end"]))
        length = draw(st.integers(1, 8))
        if kind == "set":
            content[at : at + 1] = bytes([draw(st.integers(0, 255))])
        elif kind == "cut":
            del content[at : at + length]
        elif kind == "double":
            content[at:at] = content[at : at + length]
        else:
            del content[at:]
    return bytes(content)


FILES = {
    "csv": lambda: TABLE.encode(),
    "npz": npz_bytes,
    "compressed.npz": lambda: npz_bytes(compress=True),
    "parquet": parquet_bytes,
}


@quick
@pytest.mark.parametrize("kind", FILES)
def test_a_damaged_file_is_read_or_refused(kind, examples, tmp_path):
    path = tmp_path / f"predictions.{kind}"
    content = FILES[kind]()
    read_or_refuse(path, content)
    check(lambda content: read_or_refuse(path, content), examples, content=damage(content))


BAD_COLUMNS = {
    "lists": {"a": [["x"], ["y"]], "b": [0.5, 0.5], "label": ["a", "b"]},
    "dictionaries": {"a": [{"x": 1}, {"x": 2}], "b": [0.5, 0.5], "label": ["a", "b"]},
    "text": {"a": ["x", "y"], "b": [0.5, 0.5], "label": ["a", "b"]},
    "bytes": {"a": [b"1", b"2"], "b": [0.5, 0.5], "label": ["a", "b"]},
    "missing": {"a": [0.5, None], "b": [0.5, 0.5], "label": ["a", "b"]},
    "no label": {"a": [0.5, 0.5], "b": [0.5, 0.5]},
    "missing labels": {"a": [0.5, 0.5], "b": [0.5, 0.5], "label": ["a", None]},
    "lists of labels": {"a": [0.5, 0.5], "b": [0.5, 0.5], "label": [["a"], ["b"]]},
    "no rows": {"a": [], "b": [], "label": []},
    "dates": {"a": np.array(["1970-01-01"] * 2, dtype="datetime64[s]"), "label": ["1", "0"]},
}


@pytest.mark.parametrize("kind", BAD_COLUMNS)
def test_bad_columns_of_parquet_are_one_line(kind, tmp_path, capsys):
    path = tmp_path / "predictions.parquet"
    path.write_bytes(parquet_bytes(BAD_COLUMNS[kind]))
    assert_refused(path, capsys)


def test_texts_of_parquet_that_are_no_utf_8_are_one_line(tmp_path, capsys):
    path = tmp_path / "predictions.parquet"
    content = parquet_bytes()
    assert content.count(b"\x03\0\0\0cat") == 1
    path.write_bytes(content.replace(b"\x03\0\0\0cat", b"\x03\0\0\0\x80at"))
    assert_refused(path, capsys)
