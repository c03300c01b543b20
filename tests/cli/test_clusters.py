"""Columns that no option names, and that say which rows belong together or how they count."""

import json
import shlex
from itertools import product

import numpy as np
import pandas as pd
import pytest

from skcal.cli.clusters import (
    _frequencies,
    clusters,
    log_chance_of_one_outcome,
)
from skcal.cli.commands import main
from skcal.cli.frames import Frame
from skcal.cli.names import is_known, kind_of_samples
from skcal.cli.parser import parse
from skcal.cli.predictions import read_predictions
from skcal.cli.problems import FileError, Problems, read_or_list_problems

OWNERS = ["patient_id", "PatientID", "patientid", "PatNr", "subject", "Customer ID", "user_id"]
OWNERS += [
    "question_id",
    "id",
    "Kunde",
    "case",
    "record_id",
    "doc_id",
    "image_name",
    "SUBJID",
    "pid",
]
ROWS = ["row", ".row", "rowIndex", "row_ids", "index", "no"]
OTHERS = ["age", "sex", "patient_age", "number_of_visits", "paid", "covid", "zip_code", "eye_color"]
OTHERS += ["education_num", "household_size", "loan_amount", "fold", "valid", "site"]
WORDS = "limits are too narrow: pass --groups"


def samples(seed=0, n=200):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n).round(4)
    return rng, p, (rng.random(n) < p).astype(int)


def repeated(seed=0, n=200, times=5):
    """Predictions of a repeated cross-validation: of each sample several, and one outcome."""
    rng, p, y = samples(seed, n)
    names = np.tile(np.arange(n), times)
    p = (p[names] + rng.normal(0, 0.01, len(names))).clip(0, 1).round(6)
    return pd.DataFrame({"name": names, "p": p, "y": y[names]})


def visits(seed=0):
    """Several visits of each patient, of different outcomes."""
    rng, p, y = samples(seed)
    return pd.DataFrame({"name": rng.integers(0, 60, 200), "p": p, "y": y})


def read(file, *more):
    options = parse(["evaluate", str(file), "--label", "y", "--score", "p", *more])
    return read_or_list_problems(options, read_predictions)


def saved(frame, name, path):
    frame.rename(columns={"name": name}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", OWNERS + ROWS + OTHERS)
def test_names_of_columns_say_whether_they_name_samples(name):
    assert kind_of_samples(name) == 2 * (name in OWNERS) + (name in ROWS)


@pytest.mark.parametrize(
    ("name", "frame"), [("patient_id", visits()), ("row", repeated()), ("Kennung", repeated())]
)
def test_rows_that_may_belong_together_are_said_and_stop_a_verdict(name, frame, tmp_path):
    file = saved(frame, name, tmp_path / "a.csv")
    [doubt] = read(file).doubts
    assert f"{WORDS} {name!r}" in doubt
    assert doubt in read(file).read.read_as
    with pytest.raises(Problems, match=WORDS) as caught:
        read(file, "--max-error", "0.3")
    commands = [shlex.split(line.split("python -m skcal ")[1]) for line in caught.value.lines[1:]]
    assert [command[-2:] for command in commands] == [["--groups", name], ["--ignore", name]]
    for command in commands:
        assert not read(file, *command[6:]).doubts


SURVEY = ["pweight", "sampling_weight", "Sample Weight", "finalwgt", "fnlwgt", "survey_weight"]
SURVEY += ["iptw", "siptw", "WTMEC2YR", "_LLCPWT", "person_weight", "fweight", "perwt"]
PLAIN = ["w", "wt", "weight", "weights", "_FREQ_"]
OF_BODIES = ["birth_weight", "weight_kg", "WtLoss", "body_weight", "weight_loss", "lightweight"]


def weighed(name, values, path):
    """A file of which half the rows count, by other weights, more than the rest."""
    _, p, y = samples()
    frame = pd.DataFrame({"p": p, "y": y, name: values})
    frame.to_csv(path, index=False)
    return path


def unequal(seed=0):
    rng = np.random.default_rng(seed)
    return (np.tile([300, 2700], 100) * rng.uniform(0.7, 1.3, 200)).round(2)


@pytest.mark.parametrize("name", SURVEY + PLAIN)
def test_weights_that_no_option_names_are_said_and_stop_a_verdict(name, tmp_path):
    words = f"pass --weight {name!r}"
    file = weighed(name, unequal(), tmp_path / "a.csv")
    [doubt] = read(file).doubts
    assert words in doubt
    with pytest.raises(Problems, match=words) as caught:
        read(file, "--max-error", "0.3")
    commands = [shlex.split(line.split("python -m skcal ")[1]) for line in caught.value.lines[1:]]
    assert [command[-2:] for command in commands] == [["--weight", name], ["--ignore", name]]
    given, ignored = (read(file, *command[6:]) for command in commands)
    assert (given.doubts, ignored.doubts, ignored.weight) == ([], [], None)
    assert np.array_equal(given.weight, unequal())


def test_weights_are_said_where_groups_are_given(tmp_path):
    file = saved(visits().assign(iptw=unequal()), "psu", tmp_path / "a.csv")
    assert [("--weight" in doubt, "--groups" in doubt) for doubt in read(file).doubts] == [
        (True, False),
        (False, True),
    ]
    [doubt] = read(file, "--groups", "psu").doubts
    assert "--weight 'iptw'" in doubt


def test_weights_of_bodies_and_equal_weights_raise_no_alarm(tmp_path):
    rng = np.random.default_rng(0)
    adults, babies = rng.normal(75, 15, 200).round(), rng.normal(3300, 700, 200).round()
    values = [(name, unequal()) for name in OF_BODIES]
    plain = [name for name in PLAIN if not is_known("count", name)]  # which are asked about
    values += [(name, kilograms) for name in plain for kilograms in (adults, babies)]
    values += [(name, other) for name in SURVEY for other in (np.ones(200), unequal() - 1000)]
    values += [("pweight", ["heavy", "light"] * 100)]
    for name, cells in values:
        assert not read(weighed(name, cells, tmp_path / "a.csv")).doubts, name


@pytest.mark.parametrize(("mean", "is_said"), [(1.09, True), (1.11, False), (0.91, True)])
def test_plain_weights_are_told_by_a_mean_near_1(mean, is_said, tmp_path):
    file = weighed("weight", mean * np.tile([0.8, 1.2], 100), tmp_path / "a.csv")
    assert bool(read(file).doubts) == is_said


def test_limits_of_repeated_samples_are_too_narrow_unless_they_are_groups(tmp_path, capsys):
    file = saved(repeated(n=100), "row", tmp_path / "a.csv")
    arguments = [str(file), "--label", "y", "--score", "p", "--json"]
    widths = []
    for more in (["--groups", "row"], ["--ignore", "row"]):
        main(["evaluate", *arguments, "--max-error", "0.3", *more])
        [result] = json.loads(capsys.readouterr().out)[0]["gate"]["results"]
        widths.append(result["high"] - result["low"])
    assert widths[0] > 1.5 * widths[1]
    assert main(["report", *arguments, "--resamples", "19"]) == 0
    assert WORDS in " ".join(json.loads(capsys.readouterr().out)["overall"]["cautions"])


def others():
    rng, p, y = samples(n=400)
    index = np.tile(np.arange(100), 4)  # which begins anew in each file
    columns = {"age": rng.integers(18, 90, 400), "sex": rng.integers(0, 2, 400), "index": index}
    columns |= {"visits": rng.poisson(3, 400), "site": rng.choice([*"ABCDEFGH"], 400)}
    columns |= {"risk": (100 * p).astype(int), "id": np.arange(400), "y_pred": (p > 0.5) * 1}
    columns |= {"fold_id": np.char.add("fold", (np.arange(400) % 10).astype(str)), "loss": y - p}
    return pd.DataFrame(columns), p, y


def test_features_subgroups_and_names_of_single_rows_raise_no_alarm():
    columns, p, y = others()
    assert clusters(Frame("a.csv", list(columns), columns), list(columns), None, p, y) == []


def test_an_informative_feature_raises_no_alarm_in_400_sets():
    alarms = 0
    for seed in range(400):
        rng, p, y = samples(seed, n=300)
        score = (60 * (p + rng.normal(0, 0.02, 300))).astype(int)
        columns = pd.DataFrame({"points": score})
        alarms += len(clusters(Frame("a.csv", ["points"], columns), ["points"], None, p, y))
    assert alarms == 0


def test_columns_that_options_name_are_not_doubted(tmp_path):
    file = saved(visits(), "patient", tmp_path / "a.csv")
    for more in (["--groups", "patient"], ["--by", "patient", "--max-error", "0.5"]):
        assert not read(file, *more).doubts


@pytest.mark.parametrize("cell", ["", "NA"])
def test_a_row_without_a_cluster_is_refused(cell, tmp_path):
    frame = visits().astype({"name": str})
    frame.loc[3:5, "name"] = cell
    file = saved(frame, "patient", tmp_path / "a.csv")
    with pytest.raises(FileError, match=rf"line 5, column 'patient' is '{cell}', in 3 rows"):
        read(file, "--groups", "patient")


def test_samples_that_are_left_out_do_not_shift_the_others(tmp_path):
    frame = repeated().astype(object)
    frame.loc[::7, "p"] = ""
    file = saved(frame, "row", tmp_path / "a.csv")
    assert f"{WORDS} 'row'" in read(file, "--drop-missing").doubts[0]


@pytest.mark.parametrize("most", [0, 10**6])
def test_of_many_rows_columns_that_are_named_so_are_looked_at(most, monkeypatch):
    monkeypatch.setattr("skcal.cli.clusters._MOST_CELLS", most)
    frame = repeated()
    columns = pd.DataFrame({"b": frame["name"], "row": frame["name"]})
    found = clusters(
        Frame("a.csv", ["b", "row"], columns), ["b", "row"], None, *frame[["p", "y"]].to_numpy().T
    )
    assert [cluster.name for cluster in found] == ["row", *["b"] * (most > 0)]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_chance_of_one_outcome_is_that_of_all_outcomes(n_classes):
    """Against a sum over all outcomes of independent samples of these frequencies."""
    rng = np.random.default_rng(n_classes)
    codes = np.array([0, 0, 1, 1, 1, 2])
    proba = rng.dirichlet(np.ones(n_classes), 6)
    happened = np.array([0, 0, 1, 1, 1, 0])
    scores = proba[:, 1] if n_classes == 2 else proba
    columns = np.column_stack([-scores, scores]).T if n_classes == 2 else proba.T
    rates = [_frequencies(column, happened == k) for k, column in enumerate(columns)]
    total = 0.0
    for outcome in product(range(n_classes), repeat=6):
        each = [rates[k][row] for row, k in enumerate(outcome)]
        pure = all(len({outcome[row] for row in np.flatnonzero(codes == c)}) == 1 for c in range(3))
        total += np.prod(each) * pure
    assert np.exp(log_chance_of_one_outcome(codes, scores, happened)) == pytest.approx(total)
    assert log_chance_of_one_outcome(codes, scores, np.array([0, 1, 1, 1, 1, 0])) == 0
