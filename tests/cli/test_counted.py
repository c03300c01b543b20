"""Long files are counted in blocks: the same answer as of all rows at once, the same errors."""

import gzip
import io
import json
import re
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from read_files import write_table

from skcal import calibration_test
from skcal.cli import counted, later, objects, text
from skcal.cli.commands import main
from skcal.cli.counted import CountedPredictions, read_or_count
from skcal.cli.gates import chosen_notions
from skcal.cli.parser import parse
from skcal.cli.predictions import read_predictions
from skcal.cli.problems import FileError
from skcal.monitoring import CalibrationMonitor
from skcal.notions import ANSWERS as OF_ANSWERS
from skcal.table import CalibrationTable

N = 1500
RNG = np.random.default_rng(0)
P = RNG.uniform(size=N).round(5)
Y = (RNG.uniform(size=N) < P**1.1).astype(int)
ROWS = RNG.dirichlet([1, 2, 3], N)
ROWS = np.column_stack([ROWS[:, :2].round(5), 1 - ROWS[:, :2].round(5).sum(axis=1)])
CLASSES = np.array(["cat", "cow", "dog"])
C = CLASSES[(ROWS.cumsum(axis=1) > RNG.uniform(size=(N, 1))).argmax(axis=1)]
SITE = RNG.choice(["east", "west", ""], N)
BINARY = {"p": P, "label": Y, "site": SITE, "mass": RNG.integers(0, 3, N)}
BY_LABEL = np.argsort(Y, kind="stable")  # first all of one label
GATE = ["--max-error", "0.2", "--error", "calibration", "--error", "ece"]


@pytest.fixture
def in_blocks(monkeypatch):
    """Let all tables be counted, in small blocks."""
    monkeypatch.setattr(counted, "_MOST_ROWS", 0)
    monkeypatch.setattr(text, "_BLOCK", 2000)
    monkeypatch.setattr(counted, "_BLOCK_BYTES", 2000)
    monkeypatch.setattr(counted, "_SETTLING", 1000)
    monkeypatch.setattr(objects, "_ROWS", 150)


def csv(path, columns, **options):
    return write_table(path, columns, **options)


def csv_gz(path, columns):
    path = path.with_suffix(".csv.gz")
    plain = io.StringIO()
    pd.DataFrame(columns).to_csv(plain, index=False)
    path.write_bytes(gzip.compress(plain.getvalue().encode()))
    return path


def jsonl(path, columns):
    path = path.with_suffix(".jsonl")
    pd.DataFrame(columns).to_json(path, orient="records", lines=True, double_precision=15)
    return path


def parquet(path, columns):
    pytest.importorskip("pyarrow")
    path = path.with_suffix(".parquet")
    pd.DataFrame(columns).to_parquet(path, row_group_size=700)
    return path


def folder(path, columns):
    frame, path = pd.DataFrame(columns), path.with_suffix("")
    for k, part in enumerate(np.array_split(np.arange(N), 3)):
        (path / f"day={k}").mkdir(parents=True)
        order = list(frame.columns[:: -1 if k else 1])
        frame.iloc[part][order].to_csv(path / f"day={k}" / "part.csv", index=False)
    (path / "day=2" / "empty.csv").write_text("")
    return path


def quoted(path, columns):
    columns = {"note": np.array(['a "word"', "two\nlines", "plain"])[np.arange(N) % 3], **columns}
    path = write_table(path, columns)
    content = path.read_text(encoding="utf-8").replace("\n", "\r\n")
    path.write_bytes(content.encode("utf-8"))
    return path


def words(columns):
    return {
        "p": columns["p"][BY_LABEL],
        "label": np.array(["no", "yes"])[columns["label"]][BY_LABEL],
    }


WIDE = {"label": C, **{f"p_{name}": column for name, column in zip(CLASSES, ROWS.T, strict=True)}}
ANSWERS = {"confidence": P, "correct": np.array(["false", "true"])[Y]}
MISSING = {**BINARY, "p": np.where(np.arange(N) % 100 == 99, np.nan, P)}
CASES = {
    "csv": (csv, BINARY, ["--score", "p"]),
    "gz": (csv_gz, BINARY, ["--score", "p"]),
    "jsonl": (jsonl, BINARY, ["--score", "p"]),
    "parquet": (parquet, BINARY, ["--score", "p"]),
    "folder": (folder, BINARY, ["--score", "p", "--by", "day"]),
    "fields that span lines": (quoted, BINARY, ["--score", "p"]),
    "weights": (csv, BINARY, ["--score", "p", "--weight", "mass"]),
    "subgroups": (csv, BINARY, ["--score", "p", "--by", "site"]),
    "subgroups of parquet": (parquet, BINARY, ["--score", "p", "--by", "site", "--by", "mass"]),
    "words": (csv, words(BINARY), ["--pos-label", "yes"]),
    "the other event": (csv, words(BINARY), ["--pos-label", "no"]),
    "classes": (csv, WIDE, ["--notion", "confidence", "--notion", "classwise"]),
    "top-label": (parquet, WIDE, ["--notion", "top-label"]),
    "logits": (csv, {"p": np.log(P / (1 - P)).round(9), "label": Y}, ["--logits"]),
    "percent": (csv, {"p": 100 * P, "label": Y}, ["--percent"]),
    "answers": (jsonl, ANSWERS, ["--confidence", "confidence", "--correct", "correct"]),
    "left out": (csv, MISSING, ["--score", "p", "--drop-missing", "--by", "site"]),
    "a label that is dropped": (
        csv,
        {"p": P, "label": np.where(np.arange(N) == N - 5, "?", Y.astype(str))},
        ["--drop-label", "?"],
    ),
}


def gate_of(arguments, capsys):
    status = main([*map(str, arguments), *GATE, "--json"])
    captured = capsys.readouterr()
    assert status in (0, 1, 3), captured.err
    return json.loads(captured.out)[0]["gate"]["results"]


def tables_of(read, options):
    """Tables of predictions that are held, by subgroup and notion."""
    notions = chosen_notions(options, read.proba)
    given = {"labels": read.classes, "resolution": options.resolution}
    return {
        name: {
            notion: CalibrationTable(notion, **given).update(
                part.labels, part.proba, sample_weight=part.weight
            )
            for notion in ([OF_ANSWERS] if read.of_answers else notions)
        }
        for name, part in read.parts(options.by).items()
    }


@pytest.mark.parametrize("name", CASES)
def test_blocks_add_up_to_the_table_of_all_rows(name, tmp_path, in_blocks):
    write, columns, more = CASES[name]
    options = parse(["evaluate", str(write(tmp_path / "a.csv", columns)), *more, *GATE])
    read, at_once = read_or_count(options), read_predictions(options)
    assert isinstance(read, CountedPredictions)
    expected = tables_of(at_once, options)
    assert list(read.tables) == list(expected)
    for part, tables in expected.items():
        assert list(read.tables[part]) == list(tables)
        for notion, table in tables.items():
            frames = read.tables[part][notion].to_frame(), table.to_frame()
            assert_frame_equal(*frames, rtol=1e-12)
    assert str(read.left_out) == str(at_once.left_out)
    assert read.classes.tolist() == at_once.classes.tolist()
    assert list(read.names) == list(at_once.names)
    assert list(read.notes) == list(at_once.notes)


@pytest.mark.parametrize(
    "name",
    [
        "top-label",
        pytest.param("subgroups", marks=pytest.mark.slow),
        pytest.param("classes", marks=pytest.mark.slow),
        pytest.param("answers", marks=pytest.mark.slow),
    ],
)
def test_blocks_give_the_answer_of_all_rows(name, tmp_path, capsys, in_blocks, monkeypatch):
    write, columns, options = CASES[name]
    arguments = ["evaluate", write(tmp_path / "a.csv", columns), *options]
    results = gate_of(arguments, capsys)
    monkeypatch.setattr(counted, "_MOST_ROWS", 10**9)
    expected = gate_of(arguments, capsys)
    for here, there in zip(results, expected, strict=True):
        for key in ("subgroup", "notion", "error", "n_samples", "limit"):
            assert here[key] == there[key]
        exact = here["error"] == "ece"
        assert here["ratio"] is None or here["ratio"] == pytest.approx(there["ratio"])
        assert here["estimate"] == pytest.approx(
            there["estimate"], rel=1e-9 if exact else 0.05, abs=0.003 * (not exact)
        )
        assert_allclose([here["low"], here["high"]], [there["low"], there["high"]], atol=0.01)


@pytest.mark.parametrize("write", [csv, jsonl])
def test_the_standard_input_is_counted(write, tmp_path, capsys, in_blocks, monkeypatch):
    path = write(tmp_path / "a.csv", BINARY)
    expected = gate_of(["evaluate", path, "--score", "p"], capsys)
    stream = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    monkeypatch.setattr(counted, "_MOST_ROWS", 500)
    results = gate_of(["evaluate", "-", "--score", "p"], capsys)
    assert results == expected


def test_a_short_standard_input_is_read_at_once(tmp_path, capsys, monkeypatch):
    path = csv(tmp_path / "a.csv", BINARY)
    expected = gate_of(["evaluate", path, "--score", "p"], capsys)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    results = gate_of(["evaluate", "-", "--score", "p"], capsys)
    assert results == expected


@pytest.mark.parametrize(("most", "kind"), [(N, "Predictions"), (N - 1, "CountedPredictions")])
def test_rows_above_the_most_are_counted(most, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(counted, "_MOST_ROWS", most)
    path = parquet(tmp_path / "a.csv", BINARY)
    assert type(read_or_count(parse(["evaluate", str(path), "--score", "p"]))).__name__ == kind


@pytest.mark.parametrize(
    "options",
    [
        ["--details"],
        ["--error", "rms"],
        ["--groups", "site"],
        ["--predicted", "site"],
        ["--notion", "canonical"],
        ["--resolution", "0.01"],
    ],
)
@pytest.mark.filterwarnings("ignore:.*needs rows")
def test_what_needs_rows_is_read_at_once(options, tmp_path, in_blocks):
    columns = {**BINARY, "site": np.where(P > 0.5, "1", "0")}
    path = csv(tmp_path / "a.csv", columns)
    read = read_or_count(parse(["evaluate", str(path), "--score", "p", *options]))
    assert not isinstance(read, CountedPredictions)
    assert len(read.labels) == N


def test_lists_in_cells_are_read_at_once(tmp_path, in_blocks):
    lists = [json.dumps([1 - p, p]) for p in P.tolist()]
    path = csv(tmp_path / "a.csv", {"scores": lists, "label": Y})
    read = read_or_count(parse(["evaluate", str(path), "--labels", "0,1"]))
    assert not isinstance(read, CountedPredictions)
    assert len(read.labels) == N


def data_of(arguments, capsys):
    assert main([*map(str, arguments), "--json"]) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


@pytest.mark.parametrize("name", ["csv", "classes", "answers"])
def test_tests_in_blocks_are_those_of_a_table(name, tmp_path, capsys, in_blocks):
    write, columns, more = CASES[name]
    arguments = ["test", write(tmp_path / "a.csv", columns), *more, "--resamples", "99"]
    results, _ = data_of(arguments, capsys)
    options = parse([*map(str, arguments)])
    tables = tables_of(read_predictions(options), options)[""]
    assert len(results) == len(tables)
    for result, table in zip(results, tables.values(), strict=True):
        expected = calibration_test(table, n_resamples=99)
        assert result["notion"] == str(expected.notion)
        assert result["statistic_pvalues"] == expected.statistic_pvalues


def test_a_report_in_blocks_is_that_of_all_rows(tmp_path, capsys, in_blocks, monkeypatch):
    arguments = ["report", csv(tmp_path / "a.csv", BINARY), "--score", "p", "--weight", "mass"]
    arguments += ["--resamples", "99"]
    found, _ = data_of(arguments, capsys)
    monkeypatch.setattr(counted, "_MOST_ROWS", 10**9)
    expected, _ = data_of(arguments, capsys)
    here, there = (each["overall"] for each in (found, expected))
    [said] = (text for text in here["cautions"] if "holds no rows" in text)
    assert said.endswith("Pass --strategy quantile to hold all rows.")
    assert here["overview"]["n_samples"] == there["overview"]["n_samples"]
    assert_allclose(here["ece"]["estimate"], there["ece"]["estimate"], atol=1e-12)
    assert_allclose(here["error"]["high"], there["error"]["high"], rtol=0.03)
    (head, told), (_, told_of_rows) = (
        each["read_as"].split("The event") for each in (found, expected)
    )
    assert told == told_of_rows
    assert "counted in a CalibrationTable" in head


def test_a_diagram_in_blocks_is_drawn(tmp_path, in_blocks):
    pytest.importorskip("matplotlib")
    path, out = csv(tmp_path / "a.csv", BINARY), tmp_path / "a.svg"
    assert main(["plot", str(path), "--score", "p", "--out", str(out)]) == 0
    assert b"<svg" in out.read_bytes()


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        ("report", "--by", "site"),
        ("report", "--bins", "9"),
        ("report", "--strategy", "quantile"),
        ("plot", "--method", "bins"),
        ("test", "--resolution", "0.1"),
        ("evaluate", "--groups", "mass"),
    ],
)
def test_an_option_that_needs_rows_says_so(command, option, value, tmp_path, in_blocks):
    path = csv(tmp_path / "a.csv", BINARY)
    out = ["--out", "a.svg"] if command == "plot" else []
    options = parse([command, str(path), "--score", "p", option, value, *out])
    with pytest.warns(UserWarning, match=f"{option} needs rows, so all rows are held"):
        assert not isinstance(read_or_count(options), CountedPredictions)


def replaced(path, row, line):
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[row] = line
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0.5,7,east,1", "label line 1401"),
        ("x,1,east,1", "line 1401, column 'p' is 'x', not a number"),
        (",1,east,1", "line 1401, column 'p' is empty. Pass --drop-missing"),
        ("0.5,,east,1", "line 1401"),
        ("1.5,1,east,1", "line 1401"),
        ("0.5,1,east", "line 1401 has 3 fields, the header 4"),
        ('0.5,1,"east,1', "line 1501"),
    ],
)
def test_what_is_wrong_in_a_late_block_is_named(line, said, tmp_path, capsys, in_blocks):
    late = replaced(csv(tmp_path / "b.csv", BINARY), 1400, line)
    first = csv(tmp_path / "a.csv", BINARY)
    assert main(["evaluate", str(first), str(late), "--score", "p"]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert "b.csv" in message


def test_a_missing_number_in_a_late_block_has_a_command_that_reads_it(tmp_path, capsys, in_blocks):
    path = replaced(csv(tmp_path / "a.csv", BINARY), 1400, ",1,east,1")
    assert main(["evaluate", str(path), "--score", "p"]) == 2
    offered = capsys.readouterr().err.splitlines()[-1]
    assert offered.endswith("--score p --drop-missing")
    assert main(["evaluate", str(path), "--score", "p", "--drop-missing", "--quiet"]) == 0
    read = read_or_count(parse(["evaluate", str(path), "--score", "p", "--drop-missing"]))
    assert read.left_out.samples == (1, N)


def in_two_files(tmp_path, columns, other):
    """A file, and a second one of other values."""
    return [
        str(csv(tmp_path / name, {**columns, **part}))
        for name, part in (("a.csv", {}), ("b.csv", other))
    ]


ODDS = np.log(P.clip(1e-5, 1 - 1e-5) / (1 - P.clip(1e-5, 1 - 1e-5)))
SCALES = {"--percent": (100 * P, "percentages"), "--logits": (ODDS, "log-odds")}


@pytest.mark.parametrize("option", SCALES)
@pytest.mark.parametrize("swapped", [False, True])
def test_another_scale_in_later_blocks_is_named_with_its_row(
    option, swapped, tmp_path, capsys, in_blocks
):
    values, what = SCALES[option]
    given = (P, values) if swapped else (values, P)
    files = in_two_files(tmp_path, {"p": given[0], "label": Y}, {"p": given[1]})
    assert main(["evaluate", *files, "--score", "p", option]) == 2
    said = capsys.readouterr().err
    assert f"{what} beside probabilities. Save all on one scale" in said
    assert re.search(r"b\.csv: from line 2 on predictions are from \S+ to \S+, and", said)
    one = in_two_files(tmp_path, {"p": values, "label": Y}, {})
    assert main(["evaluate", *one, "--score", "p", option, "--quiet"]) == 0


@pytest.mark.parametrize("option", SCALES)
def test_sorted_predictions_have_one_scale(option, tmp_path, in_blocks):
    for order in (np.argsort(P), np.argsort(-P)):
        path = csv(tmp_path / "a.csv", {"p": SCALES[option][0][order], "label": Y[order]})
        assert main(["evaluate", str(path), "--score", "p", option, "--quiet"]) == 0


@pytest.mark.parametrize(("name", "values"), [("model", ["A", "B"]), ("split", ["test", "train"])])
def test_another_model_in_a_late_block_is_named_with_its_row(
    name, values, tmp_path, capsys, in_blocks, monkeypatch
):
    monkeypatch.setattr(counted, "_SETTLING", 10)
    late = np.where(np.arange(N) == 1397, *values[::-1])
    path = csv(tmp_path / "a.csv", {**BINARY, name: late})
    command = ["evaluate", str(path), "--score", "p"]
    assert main(command) == 2
    said = f"line 1399, column '{name}' is '{values[1]}', and all rows before it are '{values[0]}'"
    assert said in capsys.readouterr().err
    assert main([*command, "--ignore", name, "--quiet"]) == 0


@pytest.mark.parametrize("most", [10**6, 400])
@pytest.mark.parametrize("write", [csv, parquet])
def test_names_that_repeat_far_apart_are_clusters(
    write, most, tmp_path, capsys, in_blocks, monkeypatch
):
    monkeypatch.setattr(later, "_MOST_KEPT", most)
    monkeypatch.setattr(counted, "_SETTLING", 10)
    patient = np.arange(N) % (N // 2)
    path = write(tmp_path / "a.csv", {**BINARY, "patient": patient})
    command = ["evaluate", str(path), "--score", "p"]
    read = read_or_count(parse(command))
    [told] = (note for note in read.notes if "pass --groups 'patient'" in note)
    number = int(re.search(r"has ([\d,]+) values in 1,500 rows", told)[1].replace(",", ""))
    assert number == N // 2 if most > N else abs(number - N // 2) < 250
    assert [told] == list(read.doubts)
    pair = [
        int(row.replace(",", "")) for row in re.search(r"rows (\S+) and (\S+) share", told).groups()
    ]
    assert pair[1] - pair[0] == N // 2
    assert main([*command, "--max-error", "0.2"]) == 2
    assert "--groups patient" in capsys.readouterr().err
    alone = write(tmp_path / "b.csv", {**BINARY, "patient": np.arange(N)})
    assert not read_or_count(parse(["evaluate", str(alone), "--score", "p"])).doubts


def test_files_of_other_columns_are_refused(tmp_path, capsys, in_blocks):
    paths = [csv(tmp_path / "a.csv", BINARY), csv(tmp_path / "b.csv", {"q": P, "label": Y})]
    assert main(["evaluate", *map(str, paths), "--score", "p"]) == 2
    assert "have different columns" in capsys.readouterr().err


@pytest.mark.parametrize("write", [csv_gz, parquet])
def test_a_file_that_is_cut_is_damaged(write, tmp_path, capsys, in_blocks):
    path = write(tmp_path / "a.csv", BINARY)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert main(["evaluate", str(path), "--score", "p"]) == 2
    assert re.search("cannot be read", capsys.readouterr().err)


def test_a_label_that_no_row_has_is_not_dropped(tmp_path, capsys, in_blocks):
    path = csv(tmp_path / "a.csv", BINARY)
    assert main(["evaluate", str(path), "--score", "p", "--drop-label", "x"]) == 2
    assert "no sample has the label 'x'" in capsys.readouterr().err


@pytest.mark.parametrize("column", ["p", "label"])
def test_a_block_without_a_sample_is_left_out(column, tmp_path, capsys, in_blocks):
    """As of the last days of a log, whose labels are not known yet."""
    last = {**BINARY, column: np.where(np.arange(N) < N - 400, BINARY[column].astype(str), "")}
    path = csv(tmp_path / "a.csv", last)
    whole = csv(tmp_path / "b.csv", {name: values[: N - 400] for name, values in BINARY.items()})
    options = ["--score", "p", "--json", *GATE]
    assert main(["evaluate", str(path), *options]) == 2
    said = capsys.readouterr().err
    assert "Pass --drop-missing" in said
    assert "Found array" not in said
    assert main(["evaluate", str(path), *options, "--drop-missing"]) in (0, 3)
    found = json.loads(capsys.readouterr().out)
    assert main(["evaluate", str(whole), *options]) in (0, 3)
    wanted = json.loads(capsys.readouterr().out)
    found, wanted = (
        [part["answers"][0][key] for part in parts for key in ("overview", "test", "error")]
        for parts in (found, wanted)
    )
    assert found == wanted


@pytest.mark.parametrize("column", ["p", "mass"])
def test_samples_that_all_do_not_count_are_refused(column, tmp_path, capsys, in_blocks):
    none = {"p": np.full(N, ""), "mass": np.zeros(N, int)}
    path = csv(tmp_path / "a.csv", {**BINARY, column: none[column]})
    options = ["--score", "p", "--weight", "mass", "--drop-missing"]
    assert main(["evaluate", str(path), *options]) == 2
    assert capsys.readouterr().err


def test_more_subgroups_than_tables_are_refused(tmp_path, in_blocks, monkeypatch):
    monkeypatch.setattr(counted, "_MOST_TABLES", 3)
    path = csv(tmp_path / "a.csv", BINARY)
    options = ["evaluate", str(path), "--score", "p", "--max-error", "0.1", "--by"]
    assert len(read_or_count(parse([*options, "site"])).tables) == 4
    monkeypatch.setattr(counted, "_MOST_TABLES", 2)
    with pytest.raises(FileError, match="names more than 2 subgroups"):
        read_or_count(parse([*options, "site"]))


@pytest.mark.parametrize("write", [csv, jsonl, parquet])
def test_few_rows_are_held_at_a_time(write, tmp_path, in_blocks, monkeypatch):
    sizes, read = [], {name: getattr(counted, name) for name in ("read_more", "_first_rows")}

    def first_rows(*arguments):
        frame = read["_first_rows"](*arguments)
        sizes.append(len(frame))
        return frame

    monkeypatch.setattr(counted, "_first_rows", first_rows)
    monkeypatch.setattr(
        counted, "read_more", lambda f, *a: (sizes.append(len(f)), read["read_more"](f, *a))[1]
    )
    read_or_count(parse(["evaluate", str(write(tmp_path / "a.csv", BINARY)), "--score", "p"]))
    settling, *blocks = sizes
    assert settling <= 1000 + 16 * len(blocks)
    assert sum(blocks) == N
    assert max(blocks) <= 200


def test_totals_are_no_samples_of_a_short_last_block(tmp_path, in_blocks):
    columns = {name: [*values, values[0]] for name, values in BINARY.items()}
    path = replaced(csv(tmp_path / "a.csv", columns), N + 1, f"{P.sum()!r},,Total,")
    read = read_or_count(parse(["evaluate", str(path), "--score", "p"]))
    assert len(read.sample()) == N
    assert f"Line {N + 2}, 'Total', holds totals and is not read." in read.notes


def test_rows_that_settle_the_columns_are_not_taken_for_all(tmp_path, capsys, in_blocks):
    """A column names the class of each probability: the offered reading needs all rows."""
    sure, guess = np.maximum(P, 1 - P), np.where(P > 0.5, "1", "0")
    path = csv(tmp_path / "a.csv", {"score": sure, "predicted_class": guess, "label": Y})
    assert main(["evaluate", str(path), "--score", "score"]) == 2
    offered = next(line for line in capsys.readouterr().err.splitlines() if "--predicted" in line)
    assert "--predicted predicted_class" in offered or "--predicted 'predicted_class'" in offered
    options = parse(["evaluate", str(path), "--score", "score"])
    with pytest.raises(FileError):
        read_or_count(options)
    options.predicted = "predicted_class"
    with pytest.warns(UserWarning, match="--predicted needs rows"):
        assert len(read_or_count(options).labels) == N


#: Messages of blocks that name a remedy: what is run, and what follows the advice.
ADVICE = {
    "standard input: is read already. Pass the name of a file.": ("-", "late.csv --drop-missing"),
    "{}: no sample has the label {} of --drop-label. Leave the option out.": (
        "a.csv --drop-label x",
        "a.csv",
    ),
    "{}: each sample would be left out, or has weight 0. Check the columns of predictions, labels "
    "and weights.": ("none.csv --weight mass", "a.csv --weight mass"),
    "{}: column {} names more than {} subgroups of {} rows. Leave out --by {}, or pass a column of "
    "fewer.": ("a.csv --max-error 0.1 --by site", "a.csv --max-error 0.1 --by day"),
}


@pytest.mark.parametrize("text", ADVICE)
def test_advice_of_blocks_is_followed(text, tmp_path, capsys, in_blocks, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(counted, "_MOST_ROWS", 300)
    monkeypatch.setattr(counted, "_MOST_TABLES", 2)
    monkeypatch.setattr(counted, "_SETTLING", 100)
    columns = {**BINARY, "day": np.arange(N) % 2}
    csv(tmp_path / "a.csv", columns)
    csv(tmp_path / "none.csv", {**columns, "mass": np.zeros(N, int)})
    late = replaced(csv(tmp_path / "late.csv", columns), 1400, ",1,east,1,0")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(late.read_bytes())))
    run, follow = (
        ["evaluate", *words.split(), "--score", "p", "--quiet"] for words in ADVICE[text]
    )
    assert main(run) == 2
    pattern = re.escape(text).replace(re.escape("{}"), ".*")
    assert re.search(pattern, capsys.readouterr().err)
    assert main(follow) != 2


MONITORED = {
    "binary": (BINARY, ["--score", "p"]),
    "words": (words(BINARY), ["--pos-label", "yes"]),
    "percent": ({"p": 100 * P, "label": Y}, ["--percent"]),
    "classes": (WIDE, ["--notion", "top-label"]),
}


@pytest.mark.parametrize("case", MONITORED)
def test_a_monitor_counts_long_files(case, tmp_path, monkeypatch, capsys, request):
    """Of equal predictions in each cell, in one stage: as of rows; each file is known again."""
    columns, options = MONITORED[case]
    days = [{name: np.asarray(part)[k::8] for name, part in columns.items()} for k in range(2)]
    files = [str(csv(tmp_path / f"{k}.csv", day)) for k, day in enumerate(days)]
    states, said = [tmp_path / "rows.json", tmp_path / "tables.json"], []
    for state in states:
        if state == states[1]:
            request.getfixturevalue("in_blocks")
        for file in files:
            assert main(["monitor", str(state), file, *options]) == 0
        said.append(capsys.readouterr().out)
    rows, tables = (json.loads(state.read_text()) for state in states)
    assert rows["rows"] == tables["rows"]  # the marks of each row
    assert rows["columns"] == tables["columns"]
    monitors = [CalibrationMonitor.from_json(state.read_text()) for state in states]
    assert len({monitor.n_samples_seen_ for monitor in monitors}) == 1
    assert_allclose(*(monitor.log_e_value_ for monitor in monitors), atol=0.02)
    before = states[1].read_bytes()
    renamed = str(csv(tmp_path / "renamed.csv", {n: c[::-1] for n, c in days[1].items()}))
    assert main(["monitor", str(states[1]), renamed, *options]) == 0
    assert "was added before and is not added again" in capsys.readouterr().err
    assert main(["monitor", str(states[0]), files[0], *options]) == 2  # counted as rows before
    assert "of rows that were added before" in capsys.readouterr().err
    assert states[1].read_bytes() == before


def test_a_monitor_holds_rows_of_ids(tmp_path, in_blocks, capsys):
    file = csv(tmp_path / "a.csv", {**BINARY, "id": np.arange(N)})
    state = str(tmp_path / "s.json")
    assert main(["monitor", state, str(file), "--score", "p", "--id", "id"]) in (0, 1)
    assert "--id needs rows" in capsys.readouterr().err
    assert main(["monitor", state, str(file), "--score", "p"]) in (0, 1)
    assert "was added before" in capsys.readouterr().err
