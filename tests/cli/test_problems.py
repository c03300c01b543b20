"""Files as people have them: all problems, a command that reads them, what is left out."""

import gzip
import io
import itertools
import json
import shlex
import sys

import numpy as np
import pytest
from read_files import read_predictions, write_table

from skcal.cli import predictions
from skcal.cli.commands import main
from skcal.cli.parser import parse
from skcal.cli.problems import FileError, Problems, read_or_list_problems

FEW = ["--resamples", "19"]
N = 120


def samples():
    """Names, risks, outcomes and subgroups as text."""
    rng = np.random.default_rng(0)
    risk = rng.uniform(size=N).round(3)
    outcome = (rng.uniform(size=N) < risk).astype(int)
    return {
        "name": [f"Zoë {k}" for k in range(N)],
        "risk": [f"{value:.3f}" for value in risk],
        "label": [str(value) for value in outcome],
        "sex": ["FM"[k % 2] for k in range(N)],
    }


def percentages(columns):
    columns["risk"] = [f"{float(text) * 100:.1f}%" for text in columns["risk"]]


def commas(columns):
    columns["risk"] = [text.replace(".", ",") for text in columns["risk"]]


def gaps(columns):
    columns["risk"][3] = columns["risk"][50] = ""
    columns["risk"][60] = "N/A"
    columns["label"][50] = columns["label"][70] = ""


def third_labels(columns):
    columns["label"][90] = "unknown"


DISTORTIONS = {"%": percentages, ",": commas, "gaps": gaps, "third label": third_labels}


def commands_and_problems(capsys):
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("skcal: ") for line in lines)
    start = "skcal: With these options the file can be read: python -m skcal "
    assert lines[-1].startswith(start)
    return shlex.split(lines[-1].removeprefix(start)), lines[:-1]


@pytest.mark.parametrize("n_distortions", range(1, 5))
def test_the_command_that_is_shown_reads_what_is_left_of_the_file(n_distortions, tmp_path, capsys):
    for names in itertools.combinations(DISTORTIONS, n_distortions):
        columns = samples()
        for name in names:
            DISTORTIONS[name](columns)
        gone = {3, 50, 60, 70} if "gaps" in names else set()
        gone |= {90} if "third label" in names else set()
        kept = [k for k in range(N) if k not in gone]
        if "," in names:
            columns = {"y" if name == "label" else name: c for name, c in columns.items()}
            write_table(tmp_path / "a.csv", columns, ";", "cp1252")
        else:
            write_table(tmp_path / "a.csv", columns)
        assert main(["test", str(tmp_path / "a.csv"), "--ignore", "sex", *FEW, "--json"]) == 2
        command, problems = commands_and_problems(capsys)
        told = " ".join(problems)
        for name, option in (("%", "--percent"), ("gaps", "--drop-missing")):
            assert (option in told) == (option in command) == (name in names)
        assert ("--drop-label 'unknown'" in told) == ("third label" in names)
        assert (f"{len(gone)} of {N} samples" in told) == bool(gone)
        found = predictions.read_predictions(parse(command))
        np.testing.assert_allclose(found.proba, np.array(samples()["risk"], float)[kept], 1e-12)
        assert found.labels.tolist() == [int(samples()["label"][k]) for k in kept]
    assert main(command) == 0


@pytest.mark.usefixtures("reports_once")
def test_a_report_says_what_was_left_out_in_total_and_by_subgroup(tmp_path, run):
    columns = samples()
    gaps(columns)
    third_labels(columns)
    write_table(tmp_path / "a.csv", columns)
    options = ["--by", "sex", "--ignore", "name", "--drop-missing", "--drop-label", "unknown", *FEW]
    line = (
        "5 of 120 samples (4.2 %) are left out: 3 without a prediction, 1 without a label, 1 "
        "labelled 'unknown'. By subgroup: sex = F 4 of 60, sex = M 1 of 60."
    )
    page = tmp_path / "page.html"
    shown = run("report", tmp_path / "a.csv", *options, "--html", page)
    assert line in " ".join(shown.split())
    shown = page.read_text(encoding="utf-8").replace("\xa0", " ")
    assert line.replace("'", "&#x27;") in shown
    facts = json.loads(run("report", tmp_path / "a.csv", *options, "--json"))
    assert facts["overall"]["overview"]["n_samples"] == 115
    assert facts["overall"]["cautions"][0] == line
    write_table(tmp_path / "a.csv", samples())
    options = {"by": ["sex"], "ignore": ["name"], "drop_missing": True}
    found = read_predictions(tmp_path / "a.csv", **options)
    assert str(found.left_out) == "No sample is left out."


@pytest.mark.parametrize("named", [False, True])
def test_samples_that_one_of_two_models_lacks_are_left_out_of_both(named, tmp_path, run):
    first, second = samples(), samples()
    first["risk"][5] = ""
    second["risk"][8] = second["risk"][9] = "nan"
    order = np.random.default_rng(1).permutation(N) if named else np.arange(N)
    write_table(tmp_path / "a.csv", first)
    write_table(tmp_path / "b.csv", {k: [v[i] for i in order] for k, v in second.items()})
    options = ["--id" if named else "--ignore", "name", *FEW, "--json"]
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    found = json.loads(run("compare", *files, *options, "--by", "sex", "--drop-missing"))
    assert found["overall"]["overview"]["n_samples"] == N - 3
    assert found["comparison"]["second"]["scores"] == found["overall"]["scores"]
    [line] = [text for text in found["overall"]["cautions"] if "left out" in text]
    assert "3 of 120 samples (2.5 %) are left out: 1 without a prediction in " in line
    assert "2 without a prediction in " in line
    assert line.endswith("By subgroup: sex = F 1 of 60, sex = M 2 of 60.")


def test_archives_leave_out_what_is_missing(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, proba=[0.2, np.nan, 0.4, 0.5], labels=[0, 1, np.nan, 1], where=list("abab"))
    found = read_predictions(path, by=["where"], drop_missing=True)
    assert found.labels.tolist() == [0, 1]
    assert found.proba.tolist() == [0.2, 0.5]
    assert found.others["where"].tolist() == ["a", "b"]
    assert str(found.left_out).endswith("By subgroup: where = a 1 of 2, where = b 1 of 2.")
    np.savez(path, proba=[[0.2, 0.8], [np.nan, 1]], votes=[[1, 3], [2, 2]])
    found = read_predictions(path, soft="votes", drop_missing=True)
    assert found.labels.tolist() == [[1, 3]]


def test_shares_that_are_missing_are_left_out(tmp_path):
    (tmp_path / "a.csv").write_text("0,1,v0,v1\n0.2,0.8,1,3\n0.5,0.5,,2\n,1,2,2\n0.5,0.5,4,0\n")
    found = read_predictions(tmp_path / "a.csv", soft="v", drop_missing=True)
    assert found.labels.tolist() == [[1, 3], [4, 0]]
    assert "2 of 4 samples (50 %) are left out" in str(found.left_out)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("p,label\n,1\n,0\n", ["--drop-missing"], "each sample would be left out"),
        ("p,label\n.5,1\n.5,0\n", ["--drop-label", "x"], "no sample has the label 'x' of --drop"),
        ("p,label\n50%,1\n0.5,0\n", ["--percent"], "line 3, column 'p' is '0.5', without a"),
        (
            'label,p\n1,.5\n0,".5\n1,.6\n',
            [],
            "opens in line 3 closes in line 4 or never. Close",
        ),
        ("p,label\n0.5,1\n0.5,0\n", ["--percent"], "the largest prediction is 0.005, after div"),
    ],
)
def test_options_that_do_not_suit_a_file_are_told(text, options, message, tmp_path, capsys):
    (tmp_path / "a.csv").write_text(text)
    main(["test", str(tmp_path / "a.csv"), *options, *FEW])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--encoding", "base64"], "'base64' is not an encoding, such as cp1252"),
        (["--encoding", "nonsense"], "'nonsense' is not an encoding"),
        (["--scale", "0"], "must be above 0"),
        (["--scale", "10", "--percent"], "not allowed with argument --scale"),
    ],
)
def test_options_of_files_are_checked(option, message, capsys):
    with pytest.raises(SystemExit):
        main(["test", "a.csv", *option])
    assert message in capsys.readouterr().err


def test_a_scale_is_what_stands_for_certainty(tmp_path):
    (tmp_path / "a.csv").write_text("p,label\n8,1\n2.5,0\n10,1\n")
    found = read_predictions(tmp_path / "a.csv", scale=10.0)
    assert found.proba.tolist() == [0.8, 0.25, 1.0]


def test_options_that_two_files_need_differently_have_no_command(tmp_path, capsys):
    write_table(tmp_path / "a.csv", {k: samples()[k] for k in ("risk", "label")})
    write_table(tmp_path / "b.csv", {k: samples()[k] for k in ("risk", "label")}, sep=";")
    assert main(["compare", str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert "b.csv: line 1 is one column" in told[0]
    assert "a.csv: line 1 is one column" in told[1]


def test_a_class_is_never_named_as_a_column_to_ignore(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("cat,dog,label\n=0.5,0.5,dog\n0.5,0.5,cat\n" * 9)
    assert main(["test", str(tmp_path / "a.csv")]) == 2
    assert "With these options" not in capsys.readouterr().err


# Objects of JSON, one a line


def records(columns):
    return [
        {"risk": float(p), "label": int(y), "about": {"sex": sex, "notes": [1, {"a": 2}]}}
        for p, y, sex in zip(columns["risk"], columns["label"], columns["sex"], strict=True)
    ]


@pytest.mark.parametrize("source", ["a.jsonl", "a.jsonl.gz", "-"])
def test_objects_of_json_are_read_as_tables_are(source, tmp_path, monkeypatch):
    write_table(tmp_path / "a.csv", {k: samples()[k] for k in ("risk", "label", "sex")})
    lines = "\n".join(json.dumps(record) for record in records(samples())) + "\n"
    if source == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    else:
        packed = gzip.compress(lines.encode()) if source.endswith("gz") else lines.encode()
        (tmp_path / source).write_bytes(packed)
        source = tmp_path / source
    found = read_predictions(source, score="risk", by=["about.sex"])
    expected = read_predictions(tmp_path / "a.csv", score="risk", by=["sex"])
    assert found.proba.tolist() == expected.proba.tolist()
    assert found.labels.tolist() == expected.labels.tolist()
    assert found.others["about.sex"].tolist() == expected.others["sex"].tolist()


def test_recalibrated_objects_of_json_keep_what_else_they_hold(tmp_path, run):
    lines = [json.dumps(record) for record in records(samples())]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    options = ["--score", "risk", "--method", "slope"]
    files = [tmp_path / name for name in ("a.jsonl", "a.jsonl", "new.jsonl")]
    run("recalibrate", *files[:2], "--out", files[2], *options)
    new = [json.loads(line) for line in files[2].read_text().splitlines()]
    assert all(0 <= record.pop("risk") <= 1 for record in new)
    old = [{k: v for k, v in json.loads(line).items() if k != "risk"} for line in lines]
    assert new == old


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"0": 0.5, "1": 0.5, "label": 1}\n[1]\n', "line 2 is not an object of JSON (not an obj"),
        ('{"0": 0.5, "1": 0.5, "label": 1}\n{"0":\n', "line 2 is not an object of JSON"),
        ('{"0": 0.5, "0": 0.5, "label": 1}\n', "(a name stands twice)"),
        ("[" * 100_000 + "\n", "line 1 is not an object of JSON"),
        ('{"0": 1, "1": 0, "label": 1}\n{"0": 1, "label": 1}\n', "line 2, column '1' is empty"),
        ('{"p": null, "label": 1}\n', "line 1, column 'p' is empty"),
        ('{"p": NaN, "label": 1}\n', "contains NaN"),
        ('{"p": 0.5, "label": true}\n', "line 1 is 'true'. With a single column"),
        ("\n\n", "line 1 is empty"),
        ("", "line 1 is empty"),
    ],
)
def test_lines_that_are_no_objects_are_named(text, message, tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text(text)
    assert main(["test", str(tmp_path / "a.jsonl"), *FEW]) == 2
    assert message in capsys.readouterr().err


def test_a_remedy_after_which_the_same_problem_comes_back_is_none():
    """The number of readings stays small, whichever problems follow each other."""
    readings = []

    def read(options):
        readings.append(options)
        text, other = ("odd", "even") if len(readings) % 2 else ("even", "odd")
        raise FileError(f"{text}.csv", choices=[{"label": text}, {"label": other}, {"only": ["a"]}])

    with pytest.raises(Problems) as caught:
        read_or_list_problems(parse(["evaluate", "a.csv"]), read)
    assert caught.value.lines == ["odd.csv"]
    assert len(readings) == 1 + 3 + 9
