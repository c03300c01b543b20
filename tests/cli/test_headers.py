"""Headers that are not in line 1, headers that are absent, and rows that are no samples."""

import json

import numpy as np
import pytest
from test_forms import CLASS, GUESS, NO_YES, SURE, THREE, P, Q, Y, assert_event, offers, read

from skcal.cli import files, text
from skcal.cli.cells import Dialect
from skcal.cli.commands import main
from skcal.cli.problems import FileError

N = len(P)
HEADER = ["id", "label", "p"]
ROWS = [[f"H{k}", int(y), float(p)] for k, (y, p) in enumerate(zip(Y, P, strict=True))]
WORDS = [[name, NO_YES[label], p] for name, label, p in ROWS]
TOTAL = ["Total", int(Y.sum()), round(float(P.sum()), 3)]
# Rows of a table, and a sentence on how it is read.
TABLES = {
    "a title": ([["Predictions of March"], HEADER, *ROWS], "The header is line 2; the lines"),
    "a padded title": ([["Sepsis", "", ""], [""] * 3, HEADER, *ROWS], "The header is line 3"),
    "pairs": ([["Model", "x"], ["Date", "2025"], [], HEADER, *ROWS], "The header is line 4"),
    "comments": ([["# of x"], ["# of 2025"], HEADER, *WORDS], "The header is line 3"),
    "a comment with commas": ([["# a", "b", "c"], HEADER, *ROWS], "The header is line 2"),
    "groups": ([["", "Outcome", ""], HEADER, *WORDS], "The header is line 2"),
    "a commented header": ([["# id", *HEADER[1:]], *ROWS], ""),
    "columns without names": (
        [["id", "", "label", "p", ""], *([n, "", *r, ""] for n, *r in ROWS)],
        "",
    ),
    "notes at the side": (
        [[*HEADER, "", ""], *([*row, "", "x" * (k == 3)] for k, row in enumerate(ROWS))],
        "",
    ),
    "a rule": ([HEADER, ["--", "---", "--"], *ROWS], ""),
    "a total": ([HEADER, *ROWS, TOTAL], f"Line {N + 2}, 'Total', holds totals and is not read."),
    "a total of words": ([HEADER, *WORDS, ["TOTAL:", "", 3.2]], "holds totals"),
    "a total of two words": ([HEADER, *ROWS, ["Grand total", *TOTAL[1:]]], "holds totals"),
    "a mean in range": ([HEADER, *ROWS, ["Mean", 1, 0.4]], f"Line {N + 2}, 'Mean'"),
    "several": (
        [HEADER, *ROWS, [""] * 3, ["Mean", 0.4, 0.4], ["SD", 0.5, 0.2], ["", "", ""]],
        f"Line {N + 4}, 'SD', holds totals",
    ),
    "title and total": ([["March"], HEADER, *WORDS, TOTAL], f"Line {N + 3}, 'Total'"),
}  # fmt: skip


def as_text(path, rows, sep=","):
    lines = [sep.join(map(str, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def as_sheet(path, rows):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append([None if cell == "" else cell for cell in row])
    book.save(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "semicolons", "xlsx"])
@pytest.mark.parametrize("name", TABLES)
def test_the_header_is_found_and_totals_are_no_samples(name, kind, tmp_path):
    rows, said = TABLES[name]
    if kind == "xlsx":
        path = as_sheet(tmp_path / "a.xlsx", rows)
    else:
        path = as_text(tmp_path / "a.csv", rows, ";" if kind == "semicolons" else ",")
    given = ["--sep", ";"] * (kind == "semicolons")
    given += ["--pos-label", "yes"] * any("yes" in row for row in rows)
    found = read(path, "--score", "p", *given)
    assert_event(found)
    assert said in " ".join(found.notes)
    assert ("not read" in " ".join(found.notes)) == bool(said) or "Other columns" in str(
        found.notes
    )


def test_a_row_without_numbers_below_a_header_is_allowed(tmp_path):
    rows = [["# of x"], ["day", "a", "b"], ["d1", 0.5, 0.2], ["d2", "", ""], ["d3", 0.1, 0.3]]
    frame = files.read_frame(as_text(tmp_path / "a.csv", rows), 2**30, Dialect())
    assert (frame.header, len(frame)) == (rows[1], 3)


@pytest.mark.parametrize("index", ["numbers", "names", "shuffled", "repeated", "fractions"])
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_the_index_of_a_data_frame_is_not_read(kind, index, tmp_path):
    cells = {
        "numbers": range(N),
        "names": [f"H{k}" for k in range(N)],
        "shuffled": np.random.default_rng(0).permutation(N).tolist(),
        "repeated": [k % 20 for k in range(N)],
        "fractions": (np.arange(N) / 7).tolist(),
    }[index]
    rows = [["", "p", "label"], *([i, r[2], r[1]] for i, r in zip(cells, ROWS, strict=True))]
    path = (as_sheet if kind == "xlsx" else as_text)(tmp_path / f"a.{kind}", rows)
    if index in ("repeated", "fractions"):
        with pytest.raises(FileError, match="a column without a name"):
            read(path, "--score", "p")
        return
    found = read(path)
    assert_event(found)
    assert (
        "The first field of each row, which the header does not name, is not read." in found.notes
    )


def test_another_separator_is_named_below_a_title(tmp_path):
    path = as_text(
        tmp_path / "a.csv",
        [["Predictions of March"], [], HEADER[1:], *[row[1:] for row in ROWS]],
        ";",
    )
    [command], _ = offers(path)
    assert command == ["--sep", ";"]
    assert_event(read(path, *command))
    path.write_text("sep=;\n" + path.read_text())
    assert_event(read(path))
    path = as_text(tmp_path / "a.csv", [["sep=|"], HEADER[1:], *[row[1:] for row in ROWS]], "|")
    assert_event(read(path))


UNTOUCHED = {
    "a sample of that name in the middle": [HEADER, *ROWS[:30], ["Mean", 1, 0.5], *ROWS[30:]],
    "a name that others have": [HEADER, *ROWS, ["H0", 1, 0.5]],
    "a name of statistics alone": [HEADER, *ROWS, ["Max", 1, 0.5]],
    "a name that the last two have": [HEADER, *ROWS[1:], ["Sum", 1, 0.5], ["Sum", 0, 0.5]],
}


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("name", UNTOUCHED)
def test_samples_stay_samples(name, kind, tmp_path):
    rows = UNTOUCHED[name]
    path = (as_sheet if kind == "xlsx" else as_text)(tmp_path / f"a.{kind}", rows)
    found = read(path, "--score", "p")
    np.testing.assert_allclose(found.proba, [row[2] for row in rows[1:]])
    assert "totals" not in " ".join(found.notes)


def test_a_class_named_like_a_total_is_a_class(tmp_path):
    names = np.array(["mean", "other"])
    rows = [["mean", "other", "label"], *zip(Q, P, names[Y], strict=True), [0.9, 0.1, "mean"]]
    found = read(as_text(tmp_path / "a.csv", rows))
    assert len(found.proba) == N + 1


@pytest.mark.parametrize("first", ["", "q"])
def test_rows_of_texts_are_no_header(first, tmp_path):
    rows = [
        [f"q{k}", f"a{k}", "CI"[1 - y], f"{p:.0%}"]
        for k, (y, p) in enumerate(zip(Y, P, strict=True))
    ]
    rows[0][3] = "NA"
    path = as_text(tmp_path / "a.csv", [[first, "answer", "grade", "sure"], *rows])
    given = ["--confidence", "sure", "--correct", "grade", "--percent", "--drop-missing"]
    given += ["--ignore", ""] * (first == "")
    assert len(read(path, *given).proba) == N - 1


def test_line_numbers_count_the_lines_above_the_header(tmp_path):
    rows = [
        ["March"],
        [],
        HEADER,
        *[[*row[:2], "x" if k == 5 else row[2]] for k, row in enumerate(ROWS)],
    ]
    for path in (as_text(tmp_path / "a.csv", rows), as_sheet(tmp_path / "a.xlsx", rows)):
        with pytest.raises(FileError, match=r"line 9, column 'p' is 'x', not a number"):
            read(path, "--score", "p")
        with pytest.raises(FileError, match="line 3 has no column 'y'"):
            read(path, "--label", "y")


# Without a header


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx"])
def test_columns_without_names_are_numbered(kind, tmp_path):
    rows = [[k, 20 + k, *row[1:]] for k, row in enumerate(ROWS)]
    path = tmp_path / f"a.{kind}"
    _ = (
        as_sheet(path, rows)
        if kind == "xlsx"
        else as_text(path, rows, "\t" if kind == "tsv" else ",")
    )
    commands, told = offers(path)
    assert "columns are then called column1 to column4" in told
    assert commands == [["--header", "none", "--label", "column3", "--score", "column4"]]
    assert_event(read(path, *commands[0]))


@pytest.mark.parametrize("first", [0, 1])
def test_the_numbers_of_columns_are_no_classes(first, tmp_path):
    path = as_text(
        tmp_path / "a.csv", [[*row, k + first] for row, k in zip(THREE, CLASS, strict=True)]
    )
    commands, told = offers(path)
    assert not commands
    assert "The rows of column1, column2, column3 sum to 1" in told
    names = [str(k + first) for k in (2, 0, 1)]
    found = read(path, "--header", "none", "--label", "column4", "--labels", ",".join(names))
    assert_three_in(found, names)


def assert_three_in(found, names):
    order = [found.classes.astype(str).tolist().index(name) for name in names]
    np.testing.assert_allclose(found.proba[:, order], THREE, atol=1e-9)


def test_two_columns_that_may_be_labels_are_both_named(tmp_path):
    path = as_text(tmp_path / "a.csv", zip(P, Y, np.roll(Y, 1), GUESS, strict=True))
    commands, told = offers(path)
    assert [command[3] for command in commands] == ["column2", "column3"]
    assert "as the scores say in each row" in told.partition("'column4' (")[2]


def test_parts_without_a_header_are_one_table(tmp_path):
    for k in range(2):
        as_text(tmp_path / f"part-0000{k}.csv", [row[1:] for row in ROWS[k * 30 : k * 30 + 30]])
    [command], told = offers(tmp_path)
    assert "part-00000.csv has no header" in told
    assert_event(read(tmp_path, *command))


@pytest.mark.parametrize("n_files", [8, 9])
def test_totals_of_several_files_are_no_samples_and_are_said(n_files, tmp_path):
    for k in range(n_files):
        as_text(tmp_path / f"{k}.csv", [HEADER, *ROWS[: 30 + k], TOTAL])
    found = read(tmp_path, "--score", "p")
    assert len(found.proba) == sum(range(30, 30 + n_files))
    said = " ".join(found.notes)
    assert said.count("holds totals") == 8
    assert ("1 more such sentences are not shown" in said) == (n_files == 9)


@pytest.mark.parametrize("block", [200, 10_000])
def test_totals_are_looked_for_at_the_end_of_the_file_alone(block, tmp_path, monkeypatch):
    """Not at the end of each block, whose last row may be a sample of that name."""
    monkeypatch.setattr(text, "_BLOCK", block)
    rows = [[f"{k:04}", *row[1:]] for k, row in enumerate(ROWS)]
    path = as_text(tmp_path / "a.csv", [["March"], HEADER, *rows, TOTAL])
    ends = np.cumsum([len(frame) for frame in files.blocks_of(path, 2**30, Dialect())])[:-1]
    for end in ends:
        rows[end - 1][0] = "Mean"
    as_text(path, [["March"], HEADER, *rows, TOTAL])
    frames = list(files.blocks_of(path, 2**30, Dialect()))
    assert (len(frames) > 3) == (block == 200)
    read_rows = np.concatenate([frame.numbers("p", Dialect()) for frame in frames])
    np.testing.assert_allclose(read_rows, P)
    said = [note for frame in frames for note in frame.notes if "totals" in note]
    assert said == [f"Line {N + 3}, 'Total', holds totals and is not read."]


def test_a_file_without_a_header_is_written_without_one(tmp_path):
    path, out = as_text(tmp_path / "a.csv", [row[1:] for row in ROWS]), tmp_path / "b.csv"
    given = ["--header", "none", "--label", "column1", "--out", str(out), "--method", "slope"]
    assert main(["recalibrate", str(path), str(path), *given]) == 0
    assert len(out.read_text().splitlines()) == N
    assert read(out, "--header", "none", "--label", "column1").labels.tolist() == Y.tolist()


# JSON


@pytest.mark.parametrize("named", ["a list", "rows", "columns", "index", "features"])
def test_the_longest_table_of_json_is_read(named, tmp_path):
    records = [{"label": y, "p": p} for _, y, p in ROWS]
    value = {
        "a list": records,
        "rows": {"fields": ["label", "p"], "values": [[y, p] for _, y, p in ROWS]},
        "columns": {"label": [r[1] for r in ROWS], "p": [r[2] for r in ROWS], "names": ["x"]},
        "index": {str(k): record for k, record in enumerate(records)},
        "features": {"features": [{"type": "x", "properties": record} for record in records]},
    }[named]
    for k, whole in enumerate([value, {"model": "x", "scores": {"auc": 0.7}, "data": [value]}]):
        path = tmp_path / f"{k}.json"
        path.write_text(json.dumps(whole))
        given = ["--label", "properties.label", "--score", "properties.p"]
        found = read(path, *given * (named == "features"))
        assert_event(found)


def test_objects_in_lists_of_one_are_fields(tmp_path):
    """As Label Studio and pipelines of one answer write them; they are written back in place."""
    lines = [
        {"gold": str(NO_YES[y]), "out": [{"label": str(NO_YES[g]), "score": float(s)}]}
        for y, g, s in zip(Y, GUESS, SURE, strict=True)
    ]
    path, out = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    given = ["--label", "gold", "--score", "out.score", "--predicted", "out.label"]
    assert_event(read(path, *given))
    lines = [{"label": y, "out": [{"p": p, "text": "x"}]} for _, y, p in ROWS]
    path.write_text("\n".join(map(json.dumps, lines)))
    written = ["--score", "out.p", "--method", "slope", "--out", str(out)]
    assert main(["recalibrate", str(path), str(path), *written]) == 0
    new = [json.loads(line)["out"][0] for line in out.read_text().splitlines()]
    assert all(isinstance(record["p"], float) and record["text"] == "x" for record in new)
    assert not np.allclose([record["p"] for record in new], P)
    lines = [{"label": y, "out": json.dumps({"p": p, "text": "x"})} for _, y, p in ROWS]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert_event(read(path, "--score", "out.p"))
    assert main(["recalibrate", str(path), str(path), *written]) == 2


def test_an_array_of_one_column_is_one_probability(tmp_path):
    np.savez(tmp_path / "a.npz", P[:, None], Y[:, None])
    found = read(tmp_path / "a.npz", "--score", "arr_0", "--label", "arr_1")
    assert_event(found)
    assert "Array 'arr_0' has one column" in " ".join(found.notes)


# What Weka and Orange write


@pytest.mark.filterwarnings("ignore:Column .* has no prediction below")  # of the other reading
@pytest.mark.parametrize("last", ["prediction", "distribution"])
def test_the_text_of_weka_is_read(last, tmp_path):
    lines = [
        "",
        "=== Predictions on test data ===",
        "",
        f"    inst#     actual  predicted error {last}",
    ]
    for k in range(N):
        sign = "   +  " if Y[k] != GUESS[k] else "      "
        both = [f"{'*' * int(GUESS[k] == j)}{p}" for j, p in enumerate((Q[k], P[k]))]
        value = SURE[k] if last == "prediction" else ",".join(both)
        names = [f"{code + 1:>6}:{NO_YES[code]}" for code in (Y[k], GUESS[k])]
        lines.append(f"{k + 1:>9} {' '.join(names)}{sign}{value} ")
    path = tmp_path / "a.txt"
    path.write_text("\n".join([*lines, "", ""]))
    commands, _ = offers(path, "--label", "actual")
    as_class = [c for c in commands if last == "distribution" or "--predicted" in c]
    assert_event(read(path, *as_class[0]))
    path.write_text("\n".join([*lines[:-3], " 9 1:no"]))
    with pytest.raises(FileError, match=rf"line {N + 2} has \d fields, the header 5"):
        read(path, "--label", "actual", "--sep", " ")


@pytest.mark.parametrize(
    ("names", "kind"),
    [("flags", "csv"), ("flags", "tab"), ("short", "tab"), ("long", "csv"), ("long", "tab")],
)
def test_headers_of_orange_in_one_line_and_in_three_are_read(names, kind, tmp_path):
    columns = [range(N), NO_YES[Y], Q, P]
    head = {
        "flags": [["C#age", "cD#died", "mC#LR (no)", "mC#LR (yes)"]],
        "short": [["age", "died", "LR (no)", "LR (yes)"], list("cdcc"), ["", "class", "m", "meta"]],
        "long": [
            ["age", "died", "LR (no)", "LR (yes)"],
            ["continuous", "no yes", "continuous", "continuous"],
            ["", "class", "meta", "meta"],
        ],
    }[names]
    rows = [*head, *zip(*columns, strict=True)]
    path = as_text(tmp_path / f"a.{kind}", rows, "\t" if kind == "tab" else ",")
    assert_event(read(path, "--label", "died"))
