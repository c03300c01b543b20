"""What commands conclude is no more than what they looked at, and names where to look next."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from skcal import Recalibrator
from skcal._show import share
from skcal.cli.commands import main
from skcal.hypothesis_tests import equivalence_test
from skcal.recalibration import TemperatureScaling

N = 4000


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(path, **columns):
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def said(capsys, *command):
    """The exit status and the text that a command prints."""
    status = main(list(command))
    return status, " ".join(capsys.readouterr().out.split())


def opposite(seed=0, n=N, off=0.08):
    """Predictions that are right on average, and too low in one country, too high in another."""
    rng = np.random.default_rng(seed)
    p, country = np.round(rng.uniform(0.2, 0.8, n), 3), rng.choice(["AT", "BE"], n)
    y = (rng.random(n) < p + np.where(country == "AT", off, -off)).astype(int)
    return {"y": y, "p": p, "country": country}


@pytest.mark.parametrize("gate", [False, True], ids=["answer", "gate"])
def test_what_is_right_on_average_is_not_said_to_be_right_in_subgroups(in_folder, capsys, gate):
    columns = opposite()
    n = np.arange(N)
    others = {"patient": n, "decision": (columns["p"] > 0.5).astype(int), "fold": n % 5, "age": n}
    write("data.csv", **others, **columns)
    asked = ["data.csv", "--label", "y", "--score", "p", *["--max-error", "0.05"] * gate]
    status, text = said(capsys, "evaluate", *asked)
    assert status == 0
    assert ("PASSED" if gate else "CALIBRATED WITHIN 0.05") in text
    [named] = re.findall(r"Subgroups were not compared; (report )?(--by \S+) ", text)
    if gate:
        status, text = said(capsys, "evaluate", *asked, *named[1].split())
        assert status == 1
        assert "above 0.05 in country = AT, country = BE" in text
        assert main(["evaluate", *asked, *named[1].split(), "--details", "--cv", "3"]) == 1
        assert "not compared" not in capsys.readouterr().out
    else:
        assert (
            "The error of all samples together is below 0.05: recalibration of all is not" in text
        )
        status, text = said(capsys, "report", *asked, *named[1].split())
        assert "Subgroups differ, so one recalibration" in text
    assert "not compared" not in text


def test_a_file_without_a_column_of_subgroups_names_none(in_folder, capsys):
    columns = opposite()
    del columns["country"]
    write("data.csv", **columns, age=np.arange(N))
    asked = "data.csv", "--label", "y", "--score", "p"
    assert "report --by COLUMN compares them" in said(capsys, "evaluate", *asked)[1]
    assert "not compared" not in said(capsys, "evaluate", *asked, "--max-error", "0.05")[1]


@pytest.mark.parametrize("n_values", [12, 13])
def test_a_column_of_more_values_than_a_table_of_subgroups_shows_well_is_not_named(
    in_folder, capsys, n_values
):
    columns = opposite()
    columns["country"] = np.char.add("c", (np.arange(N) % n_values).astype(str))
    write("data.csv", **columns)
    text = said(capsys, "evaluate", "data.csv", "--label", "y", "--score", "p")[1]
    assert ("report --by country compares" in text) == (n_values == 12)
    assert ("report --by COLUMN compares" in text) == (n_values == 13)


def test_an_error_that_is_not_small_is_not_said_to_need_no_recalibration(in_folder, capsys):
    write("data.csv", **{**opposite(), "y": (np.arange(N) % 2)})
    text = said(capsys, "evaluate", "data.csv", "--label", "y", "--score", "p")[1]
    assert "not needed" not in text


@pytest.mark.parametrize("weighted", [False, True])
def test_tables_of_subgroups_show_to_which_side_each_is_off(in_folder, capsys, weighted):
    """Predicted and observed frequency stand beside each other, of weights if there are."""
    columns = opposite()
    weight = 1 + (np.arange(N) % 3) if weighted else np.ones(N)
    write("data.csv", **columns, w=weight)
    asked = ["data.csv", "--label", "y", "--score", "p", "--by", "country"]
    asked += ["--weight", "w"] if weighted else ["--ignore", "w"]
    y, p, country = columns.values()
    for command in (["report"], ["evaluate", "--max-error", "0.05"]):
        assert main([command[0], *asked, *command[1:]]) in (0, 1)
        printed = capsys.readouterr().out
        for name in ("AT", "BE"):
            part = country == name
            [line] = [x for x in printed.splitlines() if x.startswith(f"country = {name} ")]
            sides = [share(np.average(x[part], weights=weight[part])) for x in (p, y)]
            assert " ".join(sides) in " ".join(line.split())
            assert (sides[0] < sides[1]) == (name == "AT")
        told = "The column n counts samples without weights; all other numbers are weighted."
        assert (told in " ".join(printed.split())) == (weighted and command == ["report"])


def of_groups(seed, n_groups, size=40):
    """Calibrated predictions of questions whose answers depend on each other."""
    rng = np.random.default_rng(seed)
    p, question = rng.uniform(0.05, 0.95, n_groups * size), np.repeat(np.arange(n_groups), size)
    shared = np.repeat(rng.normal(size=n_groups), size)
    y = np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.normal(size=len(p)) < norm.ppf(p)
    return {"y": y.astype(int), "p": p, "question": question}


def test_more_groups_are_asked_for_where_samples_depend_on_each_other(in_folder, capsys):
    """As many groups pass in at least 6 of 10 data sets; as many samples of the same ones do not.

    Nine of ten pass if the sentence is right, so that fewer than 6 of 10 has probability 2e-3.
    """
    columns = of_groups(0, 25)
    write("data.csv", **columns)
    asked = ["data.csv", "--label", "y", "--score", "p", "--groups", "question"]
    answer = said(capsys, "evaluate", *asked)[1]
    gate = said(capsys, "evaluate", *asked, "--max-error", "0.05")[1]
    assert "NOT DECIDED, too few groups" in gate
    for text in (answer, gate):
        assert not re.search(r"about [\d,]+ samples", text)
    [needed] = re.findall(r"about ([\d,]+) groups, not 25, would show", answer)
    [exact] = re.findall(r"about ([\d,]+) groups of column 'question' would show", gate)
    needed, exact = (int(text.replace(",", "")) for text in (needed, exact))
    assert needed == pytest.approx(exact, rel=0.06)

    def passes(columns):
        y, p, question = columns.values()
        return equivalence_test(y, p, groups=question, limit=0.05).verdict == "below"

    assert sum(passes(of_groups(seed, needed)) for seed in range(1, 11)) >= 6
    assert not passes(of_groups(1, 25, 40 * needed // 25))
    found = equivalence_test(*list(columns.values())[:2], groups=columns["question"], limit=0.05)
    assert f"groups     25; about {found.n_groups_needed:,.0f} would show" in str(found)
    alone = equivalence_test(*list(columns.values())[:2], limit=0.01)
    assert alone.n_groups is alone.n_groups_needed is None


@pytest.mark.parametrize("n_wrong", [9, 27])
def test_subgroups_that_fail_are_named_up_to_as_many_as_the_table_has(in_folder, capsys, n_wrong):
    """Of more, the option that shows all is named, and shows them."""
    rng = np.random.default_rng(0)
    part = np.arange(28 * 150) % 28
    p = rng.uniform(0.35, 0.65, len(part))
    y = (rng.random(len(part)) < p + 0.35 * (part < n_wrong)).astype(int)
    write("data.csv", y=y, p=p, site=np.char.add("s", part.astype(str)))
    asked = ["evaluate", "data.csv", "--label", "y", "--score", "p", "--by", "site"]
    status, text = said(capsys, *asked, "--max-error", "0.05")
    first = text[text.index("FAILED") : text.index("(joint")]
    names = re.findall(r"site = s(\d+)", first.partition("undecided")[0])
    assert (status, len(names)) == (1, min(n_wrong, 24 + (n_wrong == 9)))
    assert set(map(int, names)) <= set(range(n_wrong))
    assert "--all-rows shows them" in text
    every = said(capsys, *asked, "--max-error", "0.05", "--all-rows")[1].partition("at most ")[2]
    assert all(f"site = s{k} " in every for k in range(28))


def test_the_rows_of_only_are_not_called_all_samples(in_folder, capsys):
    columns = opposite()
    write("data.csv", **columns, half=np.arange(N) % 2)
    asked = ["data.csv", "--label", "y", "--score", "p", "--only", "country=AT"]
    for limit, by in (("0.05", []), ("0.05", ["--by", "half"]), ("0.3", [])):
        text = said(capsys, "evaluate", *asked, "--max-error", limit, *by)[1]
        assert "all samples with country = AT" in text
        assert by or "All samples with country = AT: Too low on average" in text
        assert not re.search("all samples(?! with)", text, re.IGNORECASE)
    for command in ("evaluate", "report", "test"):
        assert "data.csv, country=AT" in said(capsys, command, *asked)[1]
    two = said(capsys, "evaluate", *asked, "--only", "half=1", "--max-error", "0.3")[1]
    assert "PASSED: below 0.3 in all samples with country = AT, half = 1." in two
    plain = said(capsys, "evaluate", *asked[:5], "--max-error", "0.3")[1]
    assert "in all samples." in plain


def test_recalibration_says_its_temperature_and_that_it_is_judged_on_other_rows(in_folder, capsys):
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(3, 0.6), 1000)
    proba = truth**1.7 / (truth**1.7).sum(axis=1, keepdims=True)
    label = (truth.cumsum(axis=1) < rng.random((1000, 1))).sum(axis=1).clip(0, 2)
    columns = {"a": proba[:, 0], "b": proba[:, 1], "c": 1 - proba[:, 0] - proba[:, 1]}
    columns["y"] = np.array(list("abc"))[label]
    write("data.csv", **columns)
    write("copy.csv", **columns)
    asked = ["--label", "y", "--method", "slope", "--out", "out.csv"]
    for new in ("data.csv", "copy.csv"):
        assert main(["recalibrate", "data.csv", new, *asked]) == 0
        printed = capsys.readouterr()
        same = "data.csv: the recalibration was fitted to these rows." in printed.err
        assert same == (new == "data.csv")
    [shown] = re.findall(r"are divided by ([\d.]+), the temperature\.", printed.out)
    fitted = Recalibrator([TemperatureScaling()], random_state=0)
    given = np.column_stack([columns[name] for name in "abc"])
    fitted.fit(given, columns["y"])
    assert float(shown) == pytest.approx(fitted.best_estimator_.temperature_, rel=1e-3)


@pytest.mark.parametrize("by", [False, True])
@pytest.mark.parametrize(("limit", "status"), [(0.04, 1), (0.076, 3), (0.2, 0)])
def test_report_and_evaluate_exit_alike_at_a_limit(in_folder, capsys, by, limit, status):
    columns = opposite()
    if not by:  # all samples are off as those of a country were
        columns = {**columns, "p": np.round(columns["p"] - 0.08 * (columns["country"] == "BE"), 3)}
        columns["y"] = (np.random.default_rng(1).random(N) < columns["p"] + 0.08).astype(int)
    write("data.csv", **columns)
    asked = ["data.csv", "--label", "y", "--score", "p", "--max-error", str(limit)]
    asked += ["--by", "country"] if by else ["--ignore", "country"]
    assert main(["evaluate", *asked]) == status
    shown = " ".join(capsys.readouterr().out.split())
    assert main(["report", *asked]) == status
    [told] = re.findall("skcal: ((?:PASSED|FAILED|NOT DECIDED).*)", capsys.readouterr().err)
    assert told in shown
    assert main(["report", *asked, "--json", "--quiet", "--html", "out.html"]) == status
    assert Path("out.html").exists()
    assert main(["report", *asked[:5], *asked[7:]]) == 0
