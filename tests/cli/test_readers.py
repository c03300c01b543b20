"""The fast reader of text gives what the careful one gives, or leaves the rest to it."""

import gzip
import io
import sys
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skcal.cli import text
from skcal.cli.bounds import FileError
from skcal.cli.predictions import read_predictions
from skcal.cli.table import read_table
from skcal.cli.text import Dialect
from tests.cli.test_file_fuzz import BAD_CSV, TABLE

pytest.importorskip("pyarrow")

ROWS = "0.25,0.75,dog\n0.5,0.5,cat\n1,0,cat\n" * 6
COMMAS = Dialect()
HEAD = "cat,dog,label\n"
TABLES = {
    **BAD_CSV,
    "as pandas writes it": HEAD + ROWS,
    "without a last newline": HEAD + ROWS.rstrip("\n"),
    "as R writes it": '"cat","dog","label"\n' + ROWS.replace("dog", '"dog"'),
    "as spreadsheets write it": (HEAD + ROWS).replace("\n", "\r\n"),
    "blank lines within": HEAD + ROWS + "\n\n" + ROWS,
    "blank lines at the end": HEAD + ROWS + "\n\n",
    "carriage returns alone": (HEAD + ROWS).replace("\n", "\r"),
    "a carriage return near the end": HEAD + ROWS + "0.5,0.5,c\rt",
    "carriage returns in a row": HEAD + ROWS + "\r\r\r0.5,0.5,cat\r\r" + ROWS,
    "a carriage return within": HEAD + ROWS + "0.5,0.5,c\rat\n" + ROWS,
    "carriage returns at some lines": HEAD + ROWS + ROWS.replace("\n", "\r\n") + ROWS,
    "blanks around": HEAD + ROWS.replace(",", " , ") + "\t0.5,0.5\x0b,cat\n",
    "blanks of other scripts": HEAD + ROWS + "0.5\u2003,0.5,cat\n" + ROWS,
    "digits of other scripts": HEAD + ROWS + "\u0660.5,0.5,cat\n",
    "signs and exponents": HEAD + "+0.5,.5,cat\n1.,0e9,cat\n5E-1,50e-2,dog\n-0.0,1,dog\n" + ROWS,
    "underscores": HEAD + ROWS + "0.2_5,0.75,cat\n",
    "many digits": HEAD + f"0.{'3' * 400},0.{'6' * 399}7,cat\n" + ROWS,
    "small numbers": HEAD + "5e-324,1,cat\n1e-400,1,cat\n2.2250738585072011e-308,1,dog\n",
    "not a number with a note": HEAD + ROWS + "nan(7),0.5,cat\n",
    "infinity in words": HEAD + ROWS + "-Infinity,0.5,cat\n",
    "an exponent without a number": HEAD + ROWS + "0.5e,0.5,cat\n",
    "a comma in quotes": HEAD + ROWS + '0.5,0.5,"c,at"\n' + ROWS,
    "a newline in quotes": HEAD + ROWS + '0.5,0.5,"c\nat"\n' + ROWS,
    "a quote in quotes": HEAD + ROWS + '0.5,0.5,"c""at"\n',
    "a quote within": HEAD + ROWS + '0.5,0.5,c"at\n',
    "a quote that ends within": HEAD + ROWS + '0.5,0.5,"c"at\n',
    "a blank before a quote": HEAD + ROWS + '0.5,0.5, "cat"\n',
    "empty quotes": HEAD + ROWS + '0.5,0.5,""\n',
    "numbers in quotes": HEAD + ROWS + '"0.5","0.5",cat\n',
    "letters of other scripts": (HEAD + ROWS).replace("cat", "chât"),
    "a byte order mark within": HEAD + ROWS + "\ufeff0.5,0.5,cat\n" + ROWS,
    "half a character": (HEAD + ROWS + "0.5,0.5,ch\u00e2t\n" + ROWS).encode("latin-1"),
    "a zero byte late": HEAD + ROWS + "0.5,0.5,c\0at\n",
    "a short row late": HEAD + ROWS + "0.5,0.5\n" + ROWS,
    "a long row late": HEAD + ROWS + "0.5,0.5,cat,\n" + ROWS,
    "the header again": HEAD + ROWS + HEAD + ROWS,
    "a percentage late": HEAD + ROWS + "50%,50%,cat\n",
    "no label late": HEAD + ROWS + "0.5,0.5, \n" + ROWS,
    "a sum late": HEAD + ROWS + "0.5,0.6,cat\n" + ROWS,
    "a number late": HEAD + ROWS + "1.5,-0.5,cat\n" + ROWS,
    "two faults": HEAD + ROWS + "x,0.5,cat\n0.5,y,cat\n",
    "an ignored column": "at,cat,dog,label\n" + "".join(f"A,{row}\n" for row in ROWS.split()),
    "one column of quotes": 'p\n""\n0.5\n',
}  # fmt: skip


def what_is_read(path, block, dialect=COMMAS, max_bytes=2**30, ignored=()):
    """What a reader returns or says; without a block the careful one reads alone."""
    patches = {"_BLOCK": block, "_BLOCK_OF_COLUMN": 0, "_LEAST_FAST": 0}
    if block is None:
        patches = {"_import_arrow": lambda: None}
    with mock.patch.multiple(text, **patches):
        try:
            return read_predictions(path, max_bytes=max_bytes, dialect=dialect, ignored=ignored)
        except FileError as error:
            return str(error)


def assert_same(path, block=64, **options):
    careful = what_is_read(path, None, **options)
    fast = what_is_read(path, block, **options)
    if isinstance(careful, str):
        assert fast == careful
        return
    assert not isinstance(fast, str), fast
    for one, other in zip(fast[:3], careful[:3], strict=True):
        assert one.dtype == other.dtype
        assert_array_equal(one, other)
        if one.dtype.kind == "f":
            assert_array_equal(np.signbit(one), np.signbit(other))


@pytest.mark.parametrize("block", [1, 40, 2**20])
@pytest.mark.parametrize("kind", TABLES)
def test_both_readers_read_or_say_the_same(kind, block, tmp_path):
    path, content = tmp_path / "p.csv", TABLES[kind]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    ignored = ["at"] if kind == "an ignored column" else []
    assert_same(path, block, ignored=ignored)
    assert_same(path, block, ignored=ignored, max_bytes=200)


COMMON = (
    "as pandas writes it",
    "as R writes it",
    "as spreadsheets write it",
    "letters of other scripts",
    "carriage returns at some lines",
    "numbers in quotes",
)


@pytest.mark.parametrize("kind", COMMON)
def test_common_tables_are_read_fast(kind, tmp_path):
    path = tmp_path / "p.csv"
    path.write_bytes(TABLES[kind].encode())
    with mock.patch.object(text.Rows, "_read_carefully") as careful:
        fast = what_is_read(path, 40)
        careful.side_effect = lambda lines, rows: next(rows, None) and pytest.fail("rows are left")
        assert len(what_is_read(path, 40).proba) == len(fast.proba) >= 18


def test_a_large_file_is_read_fast_and_a_small_one_without_pyarrow(tmp_path):
    path = tmp_path / "p.csv"
    for times, called in ((10, False), (60_000, True)):
        path.write_text(HEAD + "0.25,0.75,dog\n0.5,0.5,cat\n" * times)
        with mock.patch.object(text, "_import_arrow", wraps=text._import_arrow) as imported:
            assert len(read_predictions(path).proba) == 2 * times
        assert imported.called == called


@pytest.mark.parametrize("block", [1, 40, 2**20])
def test_both_readers_name_the_same_line_after_fast_blocks(block, tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(HEAD + ROWS + "\n" + ROWS + "0.5,x,cat\n" + ROWS)
    assert "line 39, column 'dog' is 'x'" in what_is_read(path, block)


def test_both_readers_read_other_dialects(tmp_path):
    path = tmp_path / "p.csv"
    for sep, decimal in ((";", ","), ("\t", "."), ("|", ","), ("^", "."), ("]", ".")):
        rows = ROWS.replace(",", sep).replace(".", decimal)
        path.write_text(HEAD.replace(",", sep) + rows)
        assert_same(path, 40, dialect=Dialect(sep, decimal))
        found = what_is_read(path, 40, dialect=Dialect(sep, decimal))
        assert_array_equal(found.proba[:2], [[0.25, 0.75], [0.5, 0.5]])
        for late in ("0.5", "1,5", "1,2,3", "1.234,5", ",", "-,5"):
            path.write_text(HEAD.replace(",", sep) + rows + f"{late}{sep}1{sep}cat\n")
            assert_same(path, 40, dialect=Dialect(sep, decimal))


@pytest.mark.parametrize("n_left", [0, 1, 8, 9, 40, 400])
def test_both_readers_meet_the_end_of_a_damaged_archive(n_left, tmp_path):
    path = tmp_path / "p.csv.gz"
    content = gzip.compress((HEAD + ROWS * 400 + "0.5,x,cat\n").encode(), mtime=0)
    path.write_bytes(content[: len(content) - n_left])
    assert_same(path, 2**20)


def test_both_readers_bound_what_an_archive_expands_to(tmp_path):
    path = tmp_path / "p.csv.gz"
    path.write_bytes(gzip.compress((HEAD + ROWS * 5000).encode()))
    for max_bytes in (2_000, 200_000, 10**6):  # at most as many as it expands to
        assert_same(path, 2**16, max_bytes=max_bytes)


def test_a_pipe_is_read_in_one_pass(monkeypatch):
    tables = []
    for block in (None, 40):
        stream = io.TextIOWrapper(io.BytesIO((HEAD + ROWS + '0.5,0.5,"c,at"\n').encode()))
        monkeypatch.setattr(sys, "stdin", stream)
        tables.append(what_is_read("-", block))
    assert tables[0] == tables[1]
    assert "line 20 is 'c,at'" in tables[0]


def test_all_other_columns_are_kept_by_both_readers(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text('id,p,note\n7,0.25,"a"\n8,0.50, b \n9,1,\n' * 1)

    def choose(header, place):
        return [header.index("p")], []

    tables = []
    for patches in ({"_import_arrow": lambda: None}, {"_LEAST_FAST": 0, "_BLOCK": 8}):
        with mock.patch.multiple(text, **patches):
            tables.append(read_table(path, 2**30, choose, keep=True))
    careful, fast = tables
    assert_array_equal(careful.numbers, fast.numbers)
    assert list(careful.lines) == list(fast.lines) == [2, 3, 4]
    for name in ("id", "note"):
        assert careful.texts[name].values == fast.texts[name].values
        assert list(careful.texts[name].codes) == list(fast.texts[name].codes)


@pytest.mark.parametrize(
    "examples",
    [pytest.param(150, id="quick"), pytest.param(5000, id="thorough", marks=pytest.mark.slow)],
)
def test_both_readers_agree_on_any_text(examples, tmp_path):
    path = tmp_path / "p.csv"
    pieces = [*',\n" \r\0é-+_\t\ufeff\x0c.10', "0.5", "cat", "\r\n", "nan", "inf", "e5", "0x1"]
    pieces.append("0.5,0.5,cat\n")

    def holds(start, rows, block):
        path.write_bytes((start + ROWS[:40] + "".join(rows)).encode())
        assert_same(path, block)

    options = {"max_examples": examples, "derandomize": True, "deadline": None}
    strategies = {
        "start": st.sampled_from(
            [HEAD, "label,cat,dog\n", "\ufeff" + TABLE, '"cat",dog,label\r\n']
        ),
        "rows": st.lists(st.sampled_from(pieces), max_size=12),
        "block": st.sampled_from([1, 30, 1000]),
    }
    settings(**options)(given(**strategies)(holds))()
