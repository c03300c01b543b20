"""Exports of many programs are read right in two calls: the bare one, and a command that it shows.

Of each kind there are many, with other names, separators, orders, encodings and numbers of classes.
"""

import json
import shlex
import zipfile
from itertools import product

import numpy as np
import pytest

from skcal.cli.commands import _read_both, main
from skcal.cli.parser import parse
from skcal.cli.predictions import read_predictions
from skcal.cli.problems import FileError, Problems, read_or_list_problems

N = 60
RNG = np.random.default_rng(11)
Z = RNG.normal(-0.4, 1.3, N)
Y = (RNG.random(N) < 1 / (1 + np.exp(-Z))).astype(int)
P = np.round(1 / (1 + np.exp(-1.6 * Z)), 4)
Q = np.round(1 - P, 4)
NO_YES = np.array(["no", "yes"])
GUESS = (P > 0.5).astype(int)


def every(k, *values):
    """All combinations of values, of which one in k runs always, and the others with -m slow."""
    cases = enumerate(product(*values))
    return [pytest.param(*case, marks=[pytest.mark.slow] * (i % k > 0)) for i, case in cases]


def classes_of(n_classes):
    """Probabilities (N, n_classes) of four digits that sum to 1, and the class of each sample."""
    rng = np.random.default_rng(n_classes)
    proba = np.round(rng.dirichlet(np.full(n_classes, 1.5), N), 4)
    proba[:, 0] = np.round(proba[:, 0] + 1 - proba.sum(axis=1), 4)
    proba = np.abs(proba)
    return proba, (proba.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)


def text_of(header, rows, sep=","):
    return "\n".join(sep.join(map(str, row)) for row in [header, *rows]) + "\n"


def options_of(path, *given, command="evaluate"):
    return parse([command, str(path), *given])


def read(path, *given):
    return read_or_list_problems(options_of(path, *given), read_predictions)


def readings(path, *given):
    """What the first call reads, or what the commands read that it shows, and what it says."""
    try:
        return [read(path, *given)], ""
    except Problems as error:
        shown = [line for line in error.lines if "python -m skcal " in line]
        commands = [shlex.split(line.split("python -m skcal ")[1])[2:] for line in shown]
        return [read(path, *command) for command in commands], " ".join(error.lines)


def is_event(found, p=P, y=Y):
    of_event = found.proba if found.proba.ndim == 1 else found.proba[:, 1]
    happened = found.labels == found.classes[1]
    return (
        len(of_event) == len(p)
        and np.allclose(of_event, p, atol=1e-9)
        and np.array_equal(happened, y == 1)
    )


def assert_read_once(path, *given, p=P, y=Y):
    """Exactly one reading, the first or one of the commands, is the right one."""
    found, said = readings(path, *given)
    assert [is_event(one, p, y) for one in found].count(True) == 1, said
    return found, said


# A row for each sample and class


LONG = {
    "names": ("id", "class", "prob", "truth"),
    "BigQuery": ("row_id", "predicted_label", "probability", "label"),
    "R": (".row", "name", "value", "obs"),
    "polars": ("case", "variable", "p", "target"),
}


def long_rows(proba, happened, names, *, hot=False, with_id=True, shuffled=False, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for i, (row, k) in enumerate(zip(proba.tolist(), happened, strict=True)):
        for j in rng.permutation(len(row)):
            outcome = int(j == k) if hot else names[k]
            rows.append([*[f"s{i}"] * with_id, names[j], row[j], outcome])
    return [rows[k] for k in rng.permutation(len(rows))] if shuffled else rows


SHAPES = [
    (2, False, True, False, ","),
    (2, True, True, True, ";"),
    (3, False, True, True, "\t"),
    (3, True, False, False, ","),
    (3, False, False, False, "|"),
    (12, False, True, True, ","),
    (12, True, True, False, ","),
]


@pytest.mark.parametrize(("columns", "shape", "numbered"), every(5, LONG, SHAPES, [False, True]))
def test_a_row_for_each_sample_and_class_is_a_sample(columns, shape, numbered, tmp_path):
    n_classes, hot, with_id, shuffled, sep = shape
    proba, happened = classes_of(n_classes)
    names = [str(k) if numbered else f"kind {'abcdefghijkl'[k]}" for k in range(n_classes)]
    header = LONG[columns] if with_id else LONG[columns][1:]
    if numbered and hot:  # which may also be the outcome of a class
        names = [f"{k + 3}" for k in range(n_classes)]
    rows = long_rows(proba, happened, names, hot=hot, with_id=with_id, shuffled=shuffled)
    path = tmp_path / "a.csv"
    path.write_text(text_of(header, rows, sep))
    given = ["--label", header[-1]] + (["--sep", sep.replace("\t", "tab")] if sep != "," else [])
    for more in ([], ["--score", header[-2]]):
        [found], _ = readings(path, *given, *more)
        order = [found.classes.astype(str).tolist().index(name) for name in names]
        keys = list(dict.fromkeys(row[0] for row in rows)) if with_id else range(N)
        samples = [int(str(key).removeprefix("s")) for key in keys]
        np.testing.assert_allclose(found.proba[:, order], proba[samples], atol=1e-9)
        assert found.labels.astype(str).tolist() == [names[k] for k in happened[samples]]
        assert f"Each of {N} samples has a row for each class" in found.read.read_as
    if header[-1] != "label":
        assert readings(path, *given[2:])[0]


def test_a_long_table_of_two_predictions_names_both(tmp_path):
    proba, happened = classes_of(3)
    rows = [[*row[:3], row[2], row[3]] for row in long_rows(proba, happened, list("abc"))]
    path = tmp_path / "a.csv"
    path.write_text(text_of(["id", "class", "p", "q", "truth"], rows))
    found, said = readings(path, "--label", "truth")
    assert len(found) == 2
    assert "columns p, q of probabilities" in said


@pytest.mark.parametrize(("name", "value"), [("_MOST_CLASSES", 2), ("_MOST", 1.1)])
def test_tables_of_more_classes_or_other_sums_stay_as_they_are(name, value, tmp_path, monkeypatch):
    proba, happened = classes_of(3)
    path = tmp_path / "a.csv"
    path.write_text(text_of(["id", "class", "p", "y"], long_rows(proba, happened, "abc", hot=True)))
    given = ["--label", "y", "--score", "p", "--ignore", "id"]
    assert len(read(path, *given[:4]).labels) == N
    monkeypatch.setattr(f"skcal.cli.long.{name}", value)
    assert len(read(path, *given).labels) == 3 * N


@pytest.mark.parametrize(("n", "n_readings"), [(6, 2), (7, 1)])
def test_many_different_bounds_have_one_command(n, n_readings, tmp_path):
    texts = [f"<{p}" if k < n else str(p) for k, p in enumerate(np.linspace(0.01, 0.9, N).round(4))]
    path = tmp_path / "a.csv"
    path.write_text(text_of(["p", "label"], zip(texts, Y, strict=True)))
    found, _ = readings(path)
    assert len(found) == n_readings
    assert is_event(found[0], np.linspace(0.01, 0.9, N).round(4))


@pytest.mark.parametrize(("n", "is_asked"), [(4, True), (5, False)])
def test_many_other_grades_are_no_readings(n, is_asked, tmp_path):
    grades = [f"grade {k}" if k < n else "IC"[y] for k, y in enumerate(Y)]
    path = tmp_path / "a.csv"
    path.write_text(text_of(["sure", "grade"], zip(P, grades, strict=True)))
    _, said = readings(path, "--confidence", "sure", "--correct", "grade")
    assert ("If these answers are wrong" in said) == is_asked


@pytest.mark.parametrize("kind", ["pairs", "shares", "score"])
def test_tables_that_only_look_long_stay_as_they_are(kind, tmp_path):
    path, pairs = tmp_path / "a.csv", np.repeat(range(N // 2), 2)
    if kind == "pairs":  # of a case and a control, whose probabilities sum to 1
        p = np.where(np.arange(N) % 2 == 0, np.repeat(P[::2], 2), 1 - np.repeat(P[::2], 2)).round(4)
        path.write_text(text_of(["pair", "p", "case"], zip(pairs, p, [0, 1] * 30, strict=True)))
        given = ["--label", "case", "--score", "p", "--ignore", "pair"]
    else:  # another column sums to 1 in each value of a feature
        shares = np.tile([0.3, 0.7], N // 2)
        rows = zip(pairs, ["a", "b"] * 30, shares, P, Y, strict=True)
        path.write_text(text_of(["region", "product", "share", "p", "label"], rows))
        given = ["--score", "p", "--ignore", "region"]
    assert len(read(path, *given).labels) == N


def test_a_long_table_is_counted_as_its_samples(tmp_path, monkeypatch):
    proba, happened = classes_of(3)
    path = tmp_path / "a.csv"
    header = ["id", "class", "p", "truth"]
    path.write_text(text_of(header, long_rows(proba, happened, list("abc"))))
    monkeypatch.setattr("skcal.cli.counted._MOST_ROWS", 50)
    assert main(["evaluate", str(path), "--label", "truth", "--quiet"]) == 0
    new = ["recalibrate", str(path), str(path), "--label", "truth", "--out", str(path)]
    assert main(new) == 2


def test_entries_that_objects_name_by_eleven_numbers_are_in_no_doubt(tmp_path):
    proba, happened = classes_of(11)
    path = tmp_path / "a.jsonl"
    lines = [
        json.dumps({"p": {str(k): x for k, x in enumerate(row)}, "label": int(k)})
        for row, k in zip(proba.tolist(), happened, strict=True)
    ]
    path.write_text("\n".join(lines))
    found = read(path)
    order = [found.classes.astype(str).tolist().index(str(k)) for k in range(11)]
    np.testing.assert_allclose(found.proba[:, order], proba)


# Grades of language models


GRADES = [("I", "C"), ("incorrect", "correct"), ("0", "1"), ("F", "T")]


@pytest.mark.parametrize(("pair", "others"), every(3, GRADES, ["N", "P", "NP", "n", "!#"]))
def test_grades_beside_right_and_wrong_have_two_readings(pair, others, tmp_path):
    if pair == ("F", "T") and others == "n":
        pytest.skip("another case of the same words")
    grades = np.array(pair, dtype=object)[Y]
    grades[::9] = [others[k % len(others)] for k in range(len(grades[::9]))]
    path = tmp_path / "a.csv"
    path.write_text(text_of(["sure", "grade"], zip(P, grades, strict=True)))
    found, said = readings(path, "--confidence", "sure", "--correct", "grade")
    kept = np.arange(N) % 9 != 0
    wrong, left_out = found
    assert wrong.labels.tolist() == (grades == pair[1]).astype(int).tolist()
    assert left_out.labels.tolist() == Y[kept].tolist()
    np.testing.assert_array_equal(left_out.proba, P[kept])
    assert f"--pos-label '{pair[1]}': then {wrong.labels.mean():.3g} are right" in said
    assert f"then {left_out.labels.mean():.3g} are." in said
    with pytest.raises(FileError, match=f"is not one of the words .*{pair[1]}"):
        read(path, "--confidence", "sure", "--correct", "grade", "--pos-label", "right")


# Decimal commas, dates, numbers that are bounds


DATES = ["01.03.2024", "2024-03-01", "1.3.24 10:05", "03/01/2024"]
PAIRS = [["0", "1"], ["0,00", "1,00"], ["nein", "ja"]]


@pytest.mark.parametrize(("date", "sep", "label"), every(7, DATES, ";\t|", PAIRS))
def test_decimal_commas_beside_dates_take_one_command(date, sep, label, tmp_path):
    rows = (
        [k, date, str(p).replace(".", ","), int(p > 0.5), label[y]]
        for k, (p, y) in enumerate(zip(P, Y, strict=True))
    )
    path = tmp_path / "a.csv"
    path.write_text(text_of(["LFDNR", "DATUM", "PRE_1", "PGR_1", "TOD"], rows, sep), "utf-8-sig")
    for given in ([], ["--label", "TOD"], ["--label", "TOD", "--score", "PRE_1"]):
        assert_read_once(path, *given)


@pytest.mark.parametrize(("form", "decimal"), every(3, ["<{}%", "< {} %", "{}%", "≤{}%"], ".,"))
def test_bounds_are_the_number_in_them_or_missing(form, decimal, tmp_path):
    texts = [f"{100 * p:.1f}%".replace(".", decimal) for p in P]
    texts[3] = form.format(1)
    p = np.round(P, 3)
    p[3] = 0.01
    path = tmp_path / "a.tsv"
    path.write_text(text_of(["risk", "label"], zip(texts, Y, strict=True), "\t"))
    found, said = readings(path)
    exact = np.array([float(text.strip("<≤% ").replace(",", ".")) / 100 for text in texts])
    assert is_event(found[0], exact)
    if form[0] != "{":
        kept = np.arange(N) != 3
        assert is_event(found[1], exact[kept], Y[kept])
        assert "--missing" in said


@pytest.mark.parametrize("form", ["~{}", "about {}", "ca. {}", "≈ {}"])
def test_approximate_numbers_are_read(form, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        text_of(["p", "label"], ((form.format(p), y) for p, y in zip(P, Y, strict=True)))
    )
    [found], _ = readings(path)
    assert is_event(found)


# Names of columns again, tables of programs that print


@pytest.mark.parametrize("sep", [",", ";", "\t"])
@pytest.mark.parametrize("quoted", [False, True])
def test_a_header_in_the_middle_is_no_sample(sep, quoted, tmp_path):
    header = ['"p"', '"label"'] if quoted else ["p", "label"]
    lines = text_of(header, zip(P, Y, strict=True), sep).splitlines()
    for k in (50, 30, 20):
        lines.insert(k, lines[0])
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n")
    [found], _ = readings(path, "--sep", sep.replace("\t", "tab"))
    assert is_event(found)
    assert "Lines 21, 32, 53 repeat the header and are not read." in found.read.read_as
    path.write_text(path.read_text().replace(f"{P[40]}", "x", 1))
    with pytest.raises(FileError, match=f"line {lines.index(f'{P[40]}{sep}{Y[40]}') + 1}, "):
        read(path, "--sep", sep.replace("\t", "tab"))


@pytest.mark.parametrize("names", [["label", "p"], ["id", "p", "label"]])
def test_tables_of_other_columns_below_each_other_are_named(names, tmp_path):
    cells = {"p": P, "label": Y, "id": range(N)}
    rows = zip(*(cells[name] for name in names), strict=True)
    path = tmp_path / "a.csv"
    path.write_text(text_of(["p", "label"], zip(P, Y, strict=True)) + text_of(names, rows))
    with pytest.raises(FileError, match=f"line {N + 2} begins a table with the columns"):
        read(path)
    lines = path.read_text().splitlines()
    for name, part in (("1.csv", lines[: N + 1]), ("2.csv", lines[N + 1 :])):
        (tmp_path / name).write_text("\n".join(part) + "\n")
    if len(names) == 2:
        options = parse(["evaluate", *(str(tmp_path / name) for name in ("1.csv", "2.csv"))])
        assert is_event(read_predictions(options), np.tile(P, 2), np.tile(Y, 2))


def printed(kind, header, rows):
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [" | ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)) for row in rows]
    names = " | ".join(x.center(w) for x, w in zip(header, widths, strict=True))
    if kind == "psql":
        rule = "+".join("-" * (w + 2) for w in widths)
        return "\n".join([f" {names} ", rule, *(f" {x} " for x in lines), f"({N} rows)", "", ""])
    if kind == "mysql":
        rule = f"+{'+'.join('-' * (w + 2) for w in widths)}+"
        body = [f"| {x} |" for x in lines]
        end = f"{N} rows in set (0.01 sec)"
        return "\n".join([rule, f"| {names} |", rule, *body, rule, end, ""])
    sign = ":---" if kind == "markdown" else "---"
    return "\n".join(
        [f"| {names} |", f"|{'|'.join([sign] * len(header))}|", *(f"| {x} |" for x in lines), ""]
    )


PRINTED = ["psql", "mysql", "markdown", "github"]


@pytest.mark.parametrize(
    ("kind", "labels", "ending"), every(5, PRINTED, [["0", "1"], ["f", "t"]], ["txt", "md", "csv"])
)
def test_printed_tables_are_read(kind, ending, labels, tmp_path):
    rows = zip(range(N), P, np.array(labels)[Y], strict=True)
    path = tmp_path / f"a.{ending}"
    path.write_text(printed(kind, ["id", "prob", "churned"], rows))
    assert_read_once(path)
    assert_read_once(path, "--label", "churned", "--sep", "|")


@pytest.mark.parametrize("quote", ["", "'", '"'])
@pytest.mark.parametrize("upper", [False, True])
def test_arff_is_read(quote, upper, tmp_path):
    at = str.upper if upper else str
    lines = [
        "% Weka",
        f"{at('@relation')} {quote}a b{quote}" if quote else "@relation a",
        f"{at('@attribute')} age numeric",
        f"{at('@attribute')} {quote}p{' ' * bool(quote)}yes{quote} numeric",
        f"{at('@attribute')} died {{no,yes}}",
        "",
        at("@data"),
        *(f"{k},{p},{NO_YES[y]}" for k, (p, y) in enumerate(zip(P, Y, strict=True))),
    ]
    path = tmp_path / "a.arff"
    path.write_text("\n".join(lines) + "\n")
    assert_read_once(path)
    path.write_text(path.read_text().replace(f",{P[2]},", ",x,"))
    with pytest.raises(FileError, match=r"line 10, column 'p ?yes' is 'x'"):
        read(path, "--label", "died", "--score", "p yes" if quote else "pyes")


@pytest.mark.parametrize("names", [("1", "-1"), ("-1", "1"), ("0", "1")])
@pytest.mark.parametrize("first", [True, False])
def test_libsvm_calls_what_it_predicts_labels(names, first, tmp_path):
    of = {names[0]: Q, names[1]: P} if names[1] == "1" else {names[0]: P, names[1]: Q}
    happened = np.where(Y == 1, "1", min(names))
    guess = np.where(P > 0.5, "1", min(names))
    columns = [guess, of[names[0]], of[names[1]]]
    header, cells = ["labels", *names], columns
    header = ["truth", *header] if first else [*header[:3], *header[3:]]
    cells = [happened, *cells] if first else cells
    path = tmp_path / "a.out"
    path.write_text(text_of(header, zip(*cells, strict=True), " "))
    if first:
        assert_read_once(path, "--sep", " ")
    else:
        found, said = readings(path)
        assert not found
        assert "If no column holds what happened, add one" in said


# What says which rows count, and how much


COUNTS = ["n", "count", "_FREQ_", "Freq", "n_obs", "frequency"]


@pytest.mark.parametrize("name", every(4, COUNTS))
def test_numbers_of_samples_are_asked_about_and_read_as_such(name, tmp_path, capsys):
    counts = np.random.default_rng(0).integers(1, 9, N)
    path, long = tmp_path / "a.csv", tmp_path / "long.csv"
    path.write_text(text_of(["p", "y", name], zip(P, Y, counts, strict=True)))
    rows = np.repeat(np.arange(N), counts)
    long.write_text(text_of(["p", "y"], zip(P[rows], Y[rows], strict=True)))
    given = ["--label", "y", "--score", "p"]
    [found], _ = readings(path, *given)
    assert f"pass --count {name!r}" in found.doubts[0]
    counted, weighed, ignored = readings(path, *given, "--max-error", "0.3")[0]
    assert np.array_equal(np.sort(counted.proba), np.sort(P[rows]))
    assert counted.labels.sum() == Y[rows].sum()
    assert (len(weighed.labels), len(ignored.labels)) == (N, N)
    assert any("in place of --weight" in note for note in weighed.notes)
    told = []
    for file, more in ((path, ["--count", name]), (long, [])):
        main(["evaluate", str(file), *given, *more, "--max-error", "0.3", "--json"])
        [result] = json.loads(capsys.readouterr().out)[0]["gate"]["results"]
        told.append([result["low"], result["estimate"], result["high"]])
    np.testing.assert_allclose(*told, rtol=1e-9)


def test_a_column_of_fractions_is_no_number_of_samples(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text_of(["p", "label", "n"], zip(P, Y, P * 3, strict=True)))
    with pytest.raises(FileError, match="no number of samples") as caught:
        read(path, "--score", "p", "--count", "n")
    assert "--weight 'n' in its place" in str(caught.value)
    assert read(path, "--score", "p", "--weight", "n").weight.tolist() == (P * 3).tolist()


def test_both_models_count_the_same_samples(tmp_path):
    counts = np.random.default_rng(1).integers(1, 4, N)
    path = tmp_path / "a.csv"
    path.write_text(text_of(["p", "q", "label", "n"], zip(P, P**2, Y, counts, strict=True)))
    options = options_of(path, "--score", "p", "--score", "q", "--count", "n", command="compare")
    first, second = _read_both(options)
    np.testing.assert_allclose(second.proba, first.proba**2)
    assert len(first.labels) == counts.sum()


PARTS = [("mtry", ["2", "7"]), ("model", ["a b", "c"]), ("_PartInd_", ["0", "1"])]
PARTS += [("split", ["train", "test"]), ("Partition", ["0", "1", "2"])]


@pytest.mark.parametrize(("name", "values"), PARTS)
def test_rows_of_one_model_or_part_are_kept_by_its_name(name, values, tmp_path):
    n = len(values)
    cells = np.tile(values, N)
    rows = zip(np.repeat(P, n), np.repeat(Y, n), cells, strict=True)
    path = tmp_path / "a.csv"
    path.write_text(text_of(["p", "label", name], rows))
    found, said = readings(path, "--score", "p")
    assert len(found) == (1 if name == "split" else n)
    assert all(map(is_event, found))
    assert "Read are 60 of" in found[0].read.read_as
    assert f"--ignore {name!r}" in said
    with pytest.raises(FileError, match=r"is 'x' .rows are: "):
        read(path, "--score", "p", "--only", f"{name}=x")
    none = [
        "--only",
        f"{name}={values[0]}",
        "--only",
        f"label={Y[0]}",
        "--only",
        f"p={P[Y[0] != Y][0]}",
    ]
    with pytest.raises(FileError, match="Leave out an --only"):
        read(path, "--score", "p", *none)
    assert len(read(path, "--score", "p", *none[:4]).labels) == (Y[0] == Y).sum()
    both = [part for x in values for part in ("--only", f"{name}={x}")]
    assert len(read(path, "--ignore", name, "--score", "p").labels) == n * N
    if n == 2:
        assert len(read(path, "--score", "p", *both, "--ignore", name).labels) == n * N


def test_rows_of_two_models_in_one_file_are_compared(tmp_path):
    rows = [[k, "v1", p, y] for k, (p, y) in enumerate(zip(P, Y, strict=True))]
    rows += [[k, "v2", p**2, y] for k, (p, y) in enumerate(zip(P, Y, strict=True))][::-1]
    path = tmp_path / "a.csv"
    path.write_text(text_of(["case", "model", "p", "label"], rows))
    given = ["--only", "model=v1", "--only", "model=v2", "--id", "case", "--score", "p"]
    first, second = _read_both(options_of(path, *given, command="compare"))
    np.testing.assert_allclose(second.proba, first.proba**2)


@pytest.mark.parametrize(
    ("name", "value"), [("split", "train"), ("_PartInd_", "1"), ("id", "Apparent")]
)
def test_rows_that_are_all_of_training_are_said_so(name, value, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text_of(["p", "label", name], zip(P, Y, [value] * N, strict=True)))
    [doubt] = read(path, "--score", "p").doubts
    assert "as those of training are" in doubt
    [ignored], _ = readings(path, "--score", "p", "--max-error", "0.3")
    assert not ignored.doubts


def test_copies_of_rows_are_said_and_left_out(tmp_path):
    rows = [[f"c{k}", p, y] for k, (p, y) in enumerate(zip(P, Y, strict=True))]
    path = tmp_path / "a.csv"
    path.write_text(text_of(["case_id", "p", "label"], [*rows, *rows[:5]]))
    [doubt] = read(path, "--score", "p").doubts
    assert "5 of 65 rows are copies of others" in doubt
    distinct, ignored = readings(path, "--score", "p", "--max-error", "0.3")[0]
    assert is_event(distinct)
    assert len(ignored.labels) == N + 5


@pytest.mark.parametrize("stacked", [True, False])
def test_rows_of_versions_that_no_column_names_are_doubted(stacked, tmp_path):
    rows = [[f"q{k}", p, y] for k, (p, y) in enumerate(zip(P, Y, strict=True))]
    rows += [[f"q{k}", p**2, y] for k, (p, y) in enumerate(zip(P, Y, strict=True))]
    rows = rows if stacked else sorted(rows)
    path = tmp_path / "a.csv"
    path.write_text(text_of(["question", "p", "label"], rows))
    [doubt] = read(path, "--score", "p").doubts
    assert "If each of the 2 rows of a value is of another model or version" in doubt
    with pytest.raises(Problems, match="of another model or version"):
        read(path, "--score", "p", "--max-error", "0.3")
    path.write_text(text_of(["question", "p", "label"], rows[:N] if stacked else rows[::2]))
    assert not read(path, "--score", "p", "--max-error", "0.3").doubts


@pytest.mark.parametrize(
    ("command", "more"), [("test", ["--alpha", "0.05"]), ("abstain", ["--max-risk", "0.2"])]
)
def test_no_verdict_rests_on_rows_that_may_belong_together(command, more, tmp_path, capsys):
    rows = zip(np.repeat(range(N // 3), 3), P, Y, strict=True)
    path = tmp_path / "a.csv"
    path.write_text(text_of(["patient", "p", "label"], rows))
    assert main([command, str(path), "--score", "p", *more]) == 2
    assert "--groups patient" in capsys.readouterr().err
    assert main([command, str(path), "--score", "p", *more, "--groups", "patient"]) < 2 + 2


# Labels that are empty, and that no option names


@pytest.mark.parametrize("word", ["x", "yes", "relapse", "1"])
def test_an_empty_label_may_be_the_other_class(word, tmp_path):
    labels = np.array(["", word])[Y]
    path = tmp_path / "a.csv"
    path.write_text(text_of(["p", "label"], zip(P, labels, strict=True)))
    [found], said = readings(path)
    assert is_event(found)
    assert f"as {N - Y.sum()} of {N} rows" in said


@pytest.mark.parametrize("form", ["{}", "p_{}", "{}.prob"])
@pytest.mark.parametrize("word", ["None", "NA", "none"])
def test_an_empty_label_may_be_the_class_none(form, word, tmp_path):
    header = [form.format(word), form.format("relapse"), "label"]
    labels = np.array(["", "relapse"])[Y]
    path = tmp_path / "a.csv"
    path.write_text(text_of(header, zip(Q, P, labels, strict=True)))
    found, said = readings(path)
    assert [is_event(one) for one in found] == [False, True][-len(found) :]
    assert f"--empty-label {word}" in said


@pytest.mark.parametrize("word", ["None", "NA", "none"])
def test_a_label_like_a_missing_one_may_be_the_other_class(word, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text_of(["p", "label"], zip(P, np.array([word, "relapse"])[Y], strict=True)))
    [found], said = readings(path)
    assert is_event(found)
    assert f"is {word!r}. If it is a class, pass --pos-label 'relapse'" in said


OUTCOMES = {
    "words": ("churned", NO_YES[Y]),
    "numbers": ("WIEDERAUFN", Y),
    "codes": ("died", np.where(np.arange(N) == 5, -99, Y)),
    "truth values": ("died", np.array(["False", "True"])[Y]),
    "a mark": ("severe reaction", np.array(["", "x"])[Y]),
}


@pytest.mark.parametrize(("columns", "name"), every(2, ["p", "p,q", "p,guess"], OUTCOMES))
def test_what_happened_is_found_by_contents(name, columns, tmp_path):
    column, cells = OUTCOMES[name]
    first = {"p": ["risk"], "p,q": ["p_no", "p_yes"], "p,guess": ["risk", "decision"]}[columns]
    values = {"p": [P], "p,q": [Q, P], "p,guess": [P, GUESS]}[columns]
    header = ["customer", "age", *first, column]
    rows = zip(range(N), RNG.integers(18, 90, N), *values, cells, strict=True)
    path = tmp_path / "a.csv"
    path.write_text(text_of(header, rows))
    kept = np.arange(N) != 5 if name == "codes" else np.ones(N, bool)
    if columns == "p,q" and name != "words":
        assert column in str(readings(path)[1])
        return
    found, said = readings(path)
    assert any(is_event(one, P[kept], Y[kept]) for one in found), said
    assert f"What happened may be in {column!r} (" in said


def test_columns_that_scores_say_are_no_outcomes(tmp_path):
    rows = zip(P, Q, GUESS, (P > 0.3).astype(int), Y, strict=True)
    path = tmp_path / "a.csv"
    path.write_text(text_of(["P_BAD1", "P_BAD0", "I_BAD", "U_BAD", "F_BAD"], rows))
    [found], said = readings(path)
    assert is_event(found)
    assert "as the scores say in each row" in said


@pytest.mark.parametrize("name", ["raw_score", "logit", "decision_function", "lp"])
def test_log_odds_are_named_where_no_column_holds_probabilities(name, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        text_of(["id", name, "plan", "label"], zip(range(N), Z, ["a"] * N, Y, strict=True))
    )
    found, said = readings(path)
    assert any(is_event(one, 1 / (1 + np.exp(-Z))) for one in found)
    assert f"--score {name!r} --logits" in said


# Sheets and archives


@pytest.mark.parametrize("legend", every(3, range(3)))
def test_the_sheet_with_numbers_is_read_and_said(legend, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    notes = pd.DataFrame({"code": [0, 1], "meaning": ["alive", "dead"]})
    sheets = [("README", pd.DataFrame({"about": ["risk of death", "by ward"]})), ("codes", notes)]
    sheets.insert(legend, ("my data", pd.DataFrame({"p": P, "label": Y})))
    path = tmp_path / "a.xlsx"
    with pd.ExcelWriter(path) as book:
        for name, sheet in sheets:
            sheet.to_excel(book, sheet_name=name, index=False)
    found = read(path)
    assert is_event(found)
    assert "Sheet 'my data' is read, of the sheets" in found.read.read_as
    assert is_event(read(path, "--sheet", "my data"))
    with pytest.raises(FileError, match="has no sheet 'x'"):
        read(path, "--sheet", "x")
    with pd.ExcelWriter(path) as book:
        for name, q in (("a", P), ("b", P**2)):
            pd.DataFrame({"p": q, "label": Y}).to_excel(book, sheet_name=name, index=False)
    found, _ = readings(path)
    assert [is_event(one) for one in found] == [True, False]


@pytest.mark.parametrize("folder", ["", "outputs/"])
def test_arrays_of_other_names_are_found(folder, tmp_path):
    arrays = {"test_logits": np.log(np.column_stack([Q, P])), "test_labels": Y}
    for name, values in arrays.items():
        np.save(tmp_path / f"{name}.npy", values)
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in arrays:
            archive.write(tmp_path / f"{name}.npy", f"{folder}{name}.npy")
        archive.writestr(f"{folder}config.json", "{}")
    [found], _ = readings(path)
    assert is_event(found, P / (P + Q))
    np.savez(tmp_path / "b.npz", y_prob=np.column_stack([Q, P]), y_test=Y, fold=Y * 3)
    [found], _ = readings(tmp_path / "b.npz")
    assert is_event(found)
