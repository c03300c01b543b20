"""What the command line says to do about a file is done, and gives the right numbers."""

import re
import shlex
import warnings

import numpy as np
import pytest
from advice import FOLLOWED

from skcal.cli import predictions
from skcal.cli.parser import parse
from skcal.cli.problems import FileError, Problems, read_or_list_problems

N = 40
RNG = np.random.default_rng(3)
P = RNG.uniform(0.05, 0.95, N).round(3)
Y = (RNG.random(N) < P).astype(int)
SURE, GUESS = np.maximum(P, 1 - P), (P > 0.5).astype(int)
ROWS = np.column_stack([1 - P, P])
WORDS = np.array(["no", "yes"])


def table(header="p,label", *columns, sep=","):
    columns = columns or (P, Y)
    lines = [header, *(sep.join(map(str, row)) for row in zip(*columns, strict=True))]
    return "\n".join(lines) + "\n"


def marked(label):
    return np.where(np.arange(N) == N - 1, label, Y.astype(str))


KEPT = slice(0, N - 1)  # of files whose last sample is left out
LOGITS = np.log(ROWS)
# What a file holds, the options, the advice, what is done, and the samples that are right.
# What is done: None takes a command that is offered; options; or another text of the file.
CASES = {
    "--drop-missing": (table("p,label", [*P[:-1], ""], Y), "", "Pass --drop-missing", None, KEPT),
    "no label": (table("p,label", P, [*Y[:-1], ""]), "", "Pass --drop-missing", None, KEPT),
    "--percent": (table("p,label", [f"{100 * p:.1f}%" for p in P], Y), "", "Pass --percent.", None),
    "percentages": (table("p,label", 100 * P, Y), "", "If these are percentages, pass", None),
    "--decimal": (
        table("p;label", [str(p).replace(".", ",") for p in P], Y, sep=";"),
        "--sep ;",
        "If that is a decimal comma, pass --decimal",
        None,
    ),
    "a point": (table(), "--decimal ,", "with a point where --decimal says", None),
    "--sep": (
        table("p;label", P, Y, sep=";"),
        "",
        "separate its fields, not ",
        None,
    ),
    "--header": (
        table(f"{P[0]},{Y[0]}", P[1:], Y[1:]),
        "",
        "If the file has no header, pass --header none",
        None,
    ),
    "quoted": (
        table("p,label", [str(p).replace(".", ",") for p in P], Y),
        "",
        "If commas stand before decimals, quote the numbers",
        table("p,label", [f'"{p}"'.replace(".", ",") for p in P], Y),
        slice(None),
        "--decimal ,",
    ),
    "--label": (
        table("p,happened", P, Y),
        "",
        "Name the column of labels by --label",
        None,
    ),
    "repeat --ignore": (
        table("a,b,p,label", P, P, P, Y),
        "--ignore a,b",
        "Repeat --ignore for each column",
        "--ignore a --ignore b",
    ),
    "no name": (
        table(",p,label", np.arange(N) // 2, P, Y),
        "",
        "Pass --ignore '' if it numbers",
        None,
    ),
    "--score": (
        table("id,p,label", range(N), P, Y),
        "",
        "by --score; other columns are then",
        None,
    ),
    "scores": (table("p,q,label", P, P**2, Y), "", "by --score; other columns are then", None),
    "--soft": (table("p_a,p_b,y_a,y_b", *ROWS.T, 1 - Y, Y), "", "pass --soft", None),
    "--prefix": (
        table("p0,p1,q0,q1,label", *ROWS.T, *(ROWS**2 / (ROWS**2).sum(1, keepdims=True)).T, Y),
        "",
        "Name one by --prefix",
        None,
    ),
    "--labels": (
        table("p,label", [f'"[{a}, {b}]"' for a, b in ROWS], WORDS[Y]),
        "",
        "Pass the labels in their order, such as --labels",
        None,
    ),
    "--pos-label": (table("p,label", P, Y + 1), "", "name the positive one by --pos-label", None),
    "event": (
        table("guess,p,label", WORDS[GUESS], P, WORDS[Y]),
        "--score p",
        "name the positive one by --pos-label",
        None,
    ),
    "--drop-label": (
        table("p,label", P, marked("unclear")),
        "",
        "To leave out such samples",
        None,
        KEPT,
    ),
    "--logits": (
        table("0,1,label", *(3 * LOGITS + 1).T, Y),
        "",
        "If these are logits, pass --logits",
        None,
        "logits",
    ),
    "no --logits": (table("0,1,label", *ROWS.T, Y), "--logits", "Leave --logits out", ""),
    "range": (
        table("p,label", [*(8 * P[1:] - 4), 9.5], Y),
        "",
        "for logits --logits",
        "--logits",
        "scores",
    ),
    "logs": (table("p,label", np.log(P), Y), "", "pass --log-probabilities: the mean", None),
    "no logs": (table(), "--log-probabilities", "Leave --log-probabilities out", ""),
    "--normalize": (
        table("0,1,label", *(ROWS * 1.004).round(3).T, Y),
        "",
        "If it was rounded, pass --normalize",
        None,
        "near",
    ),
    "above 1": (
        table("p,label", [1.000002, *P[1:]], Y),
        "",
        "If that is rounding, pass --normalize",
        None,
        "near",
    ),
    "--predicted": (
        table("guess,p,label", WORDS[GUESS], SURE, WORDS[Y]),
        "--label label",
        "as is the probability of the class that a model predicts",
        None,
    ),
    "hint": (
        table("p,label", SURE, Y),
        "",
        "pass it by --predicted",
        (table("p,guess,label", SURE, GUESS, Y)),
        slice(None),
        "--score p --predicted guess",
    ),
    "two truths": (
        table("label,p,truth", WORDS[GUESS], SURE, WORDS[Y]),
        "",
        "Name the one that holds what happened by --label",
        None,
    ),
    "id of logits": (
        table("id,0,1,label", range(N), *(3 * LOGITS).T, Y),
        "--logits",
        "If it is no class, pass --ignore",
        None,
        "logits",
    ),
    "utf-16": (table().encode("utf-16-le"), "", "Pass --encoding", None),
    "bytes of utf-16": (table().encode("utf-16"), "", "Pass --encoding", None),
    "cp1252": (table("p,läbel", P, Y).encode("cp1252"), "--label läbel", "Pass --encoding", None),
}


def assert_right(found, rows):
    """The predictions are of the event, the last class, and those of the rows."""
    p, y, of_event = P, Y, found.proba if found.proba.ndim == 1 else found.proba[:, 1]
    happened = found.labels
    happened = happened.argmax(axis=1) if happened.ndim == 2 else happened == found.classes[1]
    if rows == "logits":
        p, rows = ROWS[:, 1] ** 3 / (ROWS**3).sum(axis=1), slice(None)
    elif rows == "scores":
        p, rows = 1 / (1 + np.exp(-np.r_[8 * P[1:] - 4, 9.5])), slice(None)
    near = 0.006 if rows == "near" else 1e-9
    rows = slice(None) if rows == "near" else rows
    np.testing.assert_array_equal(happened.astype(int), y[rows])
    p = np.r_[1.0, P[1:]] if near > 1e-3 and of_event.max() == 1 else p
    np.testing.assert_allclose(of_event, p[rows], atol=near)


def is_right(found, rows):
    try:
        assert_right(found, rows)
    except AssertionError:
        return False
    return True


def read(path, arguments):
    options = parse(["evaluate", str(path), *arguments])
    return read_or_list_problems(options, predictions.read_predictions)


@pytest.mark.parametrize("name", CASES)
def test_advice_is_followed(name, tmp_path):
    text, given, advice, done, *more = CASES[name]
    rows, also = [*more, slice(None), ""][:2] if more else (slice(None), "")
    path, given = tmp_path / "a.csv", given.split()
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    commands, told = [], ""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read(path, given)
    except Problems as error:
        told = " ".join(error.lines)
        shown = [line for line in error.lines if "python -m skcal " in line]
        commands = [shlex.split(line.split("python -m skcal ")[1])[2:] for line in shown]
    except FileError as error:
        told = str(error)
    told = told or " ".join(str(warning.message) for warning in caught)
    assert advice in told
    assert not re.search(r"numpy\.|scipy\.|skcal\.|predict_proba|\w=\w", told)
    warnings.simplefilter("ignore")  # of readings that are not the right one
    if done is None:
        readings = [read(path, command) for command in commands]
        right = [is_right(reading, rows) for reading in readings]
        assert right.count(True) == 1 if len(readings) > 1 else right == [True]
        return
    assert not commands
    if isinstance(done, str) and "\n" in done:
        path.write_text(done)
        done = " ".join([*given, also])
    assert_right(read(path, done.split()), rows)


def test_the_advice_that_is_followed_is_known_as_such():
    assert {case[2] for case in CASES.values()} <= FOLLOWED.keys()


@pytest.mark.parametrize("header", ["p,label", "id,p,label", "p,label,site"])
def test_decimal_commas_between_commas_are_never_names_of_rows(header, tmp_path):
    columns = {"id": range(N), "p": [str(p).replace(".", ",") for p in P], "label": Y, "site": Y}
    path = tmp_path / "a.csv"
    path.write_text(table(header, *(columns[name] for name in header.split(","))))
    with pytest.raises(FileError, match=r"line 2 has . fields, the header .. If commas stand"):
        read(path, ["--score", "p"])
