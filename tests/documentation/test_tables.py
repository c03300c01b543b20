"""Every column of a table has a heading."""

import csv
import re

from pages import DOC, TEXTS

BAR = re.compile(r"^=+(?: +=+)+$")
LIST = re.compile(
    r"\.\. list-table::.*\n(?: +:.*\n)* +:header-rows: 1\n(?: +:.*\n)*\n((?: +.*\n?)+)"
)


def grids(text):
    """Yield the headings of simple tables, a list of strings each."""
    lines = text.splitlines()
    bars = [number for number, line in enumerate(lines) if BAR.match(line.strip())]
    for first, second in zip(bars[::3], bars[1::3], strict=False):
        columns = [match.span() for match in re.finditer("=+", lines[first])]
        ends = [start for start, _ in columns[1:]] + [None]
        starts = [start for start, _ in columns]
        yield [
            " ".join(line[start:end].strip() for line in lines[first + 1 : second]).strip()
            for start, end in zip(starts, ends, strict=True)
        ]


def lists(text):
    """Yield the headings of list tables that have a row of them."""
    for table in LIST.findall(text):
        row = re.split(r"^ +\* ", table, flags=re.MULTILINE)[1]
        yield [cell.strip() for cell in re.findall(r"^ *-(.*)$", row, re.MULTILINE)]


def empty_headings(text):
    return [headings for headings in [*grids(text), *lists(text)] if not all(headings)]


def test_no_heading_of_a_table_is_empty():
    empty = {page: found for page, text in TEXTS.items() if (found := empty_headings(text))}
    assert not empty, empty
    assert sum(len([*grids(text), *lists(text)]) for text in TEXTS.values()) > 20


def split_rows(text):
    """Return the lines of simple tables that begin a row, though they go on with the row above."""
    lines = text.splitlines()
    bars = [number for number, line in enumerate(lines) if BAR.match(line.strip())]
    found = []
    for top, first, last in zip(bars[::3], bars[1::3], bars[2::3], strict=False):
        starts = [match.start() for match in re.finditer("=+", lines[top])]
        for line in lines[first + 1 : last]:
            cells = [
                line[one:other].strip()
                for one, other in zip(starts, [*starts[1:], None], strict=True)
            ]
            found += [line] * bool(cells[0] and not all(cells))
    return found


def test_no_row_of_a_table_is_split():
    """A line whose first cell is filled begins a row; texts of two lines need a list table."""
    assert {page: found for page, text in TEXTS.items() if (found := split_rows(text))} == {}
    assert split_rows("== ==\na  b\n== ==\na  b\n   b\na\n== ==\n") == ["a"]


def test_an_empty_heading_is_seen():
    grid = "===== ===\n      b\n===== ===\na     1\n===== ===\n"
    rows = ".. list-table::\n   :header-rows: 1\n\n   * - a\n     -\n   * - 1\n     - 2\n"
    assert empty_headings(grid) == [["", "b"]]
    assert empty_headings(rows) == [["a", ""]]


def test_the_readme_has_the_table_of_packages_that_one_run_wrote():
    with (DOC / "evidence" / "packages.csv").open(newline="") as file:
        rows = ["| " + " | ".join(row) + " |" for row in csv.reader(file)]
    readme = (DOC.parent / "README.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in rows if row not in readme] == []
    assert len(rows) > 8
