"""Every option of reading applies to every file of a command, also to one without labels."""

import numpy as np
import pytest

from skcal import Recalibrator
from skcal.cli.commands import _read_both, main
from skcal.cli.parser import _OF_FILES, parse
from skcal.cli.planning import read_target
from skcal.cli.predictions import read_predictions
from skcal.recalibration import TemperatureScaling

N = 80
RNG = np.random.default_rng(2)
P = RNG.uniform(0.03, 0.97, N).round(3)
Q = np.round(1 - P, 3)
Y = (RNG.random(N) < P).astype(int)
NO_YES = np.array(["no", "yes"])
SHARP = (1 / (1 + np.exp(-RNG.normal(0, 3, 400)))).round(8)  # of overconfident predictions
HAPPENED = (RNG.random(400) < 1 / (1 + (1 / SHARP - 1) ** 0.3)).astype(int)
SURE, GUESS = np.maximum(P, Q), (P > 0.5).astype(int)


def table(header, *columns, sep=","):
    rows = (sep.join(map(str, row)) for row in zip(*columns, strict=True))
    return "\n".join([header, *rows]) + "\n"


def marked(mark):
    return [mark if k % 20 == 7 else p for k, p in enumerate(P)]


GIVEN = table("p,label", P, Y)
# Of each option a file that needs it, what is passed, and the bytes' encoding.
FILES = {
    "label": (table("p,y", P, Y), ["--label", "y"]),
    "pos-label": (table("p,label", P, NO_YES[Y]), ["--pos-label", "yes"]),
    "normalize": (
        table("0,1,label", (Q * 1.003).round(3), (P * 1.003).round(3), Y),
        ["--normalize"],
    ),
    "ignore": (table("age,p,label", range(N), P, Y), ["--ignore", "age"]),
    "only": (
        table("model,p,label", ["a", "b"] * N, np.repeat(P, 2), np.repeat(Y, 2)),
        ["--only", "model=b"],
    ),
    "distinct": (
        table("id,p,label", [*range(N), 3, 4], [*P, *P[3:5]], [*Y, *Y[3:5]]),
        ["--distinct", "--score", "p"],
    ),
    "id": (table("name,p,label", range(N), P, Y), ["--ignore", "name"]),
    "score": (table("p,q,label", P, Q, Y), ["--score", "p"]),
    "predicted": (
        table("guess,p,label", NO_YES[GUESS], SURE, NO_YES[Y]),
        ["--score", "p", "--predicted", "guess"],
    ),
    "prefix": (table("a0,a1,b0,b1,label", Q, P, P, Q, Y), ["--prefix", "a"]),
    "labels": (
        table("p,label", [f'"[{q}, {p}]"' for q, p in zip(Q, P, strict=True)], NO_YES[Y]),
        ["--labels", "no,yes"],
    ),
    "confidence": (table("p,right", P, Y), ["--confidence", "p", "--correct", "right"]),
    "correct": (table("p,right", P, Y), ["--confidence", "p", "--correct", "right"]),
    "sep": (table("p;label", P, Y, sep=";"), ["--sep", ";"]),
    "decimal": (
        table("p;label", [str(p).replace(".", ",") for p in P], Y, sep=";"),
        ["--sep", ";", "--decimal", ","],
    ),
    "header": (
        "\n".join(GIVEN.splitlines()[1:]) + "\n",
        ["--header", "none", "--score", "column1", "--label", "column2"],
    ),
    "encoding": (table("größe,label", P, Y), ["--encoding", "cp1252", "--score", "größe"]),
    "scale": (table("p,label", 10 * P, Y), ["--scale", "10"]),
    "percent": (table("p,label", [f"{100 * p:.1f}%" for p in P], Y), ["--percent"]),
    "logits": (table("p,label", np.log(P / (1 - P)), Y), ["--logits"]),
    "log-probabilities": (table("p,label", np.log(P), Y), ["--log-probabilities"]),
    "bounds": (table("p,label", marked("<0.02"), Y), ["--bounds"]),
    "drop-missing": (table("p,label", marked("NA"), Y), ["--drop-missing"]),
    "missing": (table("p,label", marked("-99"), Y), ["--missing", "-99"]),
    "drop-label": (
        table("p,label", P, ["unclear" if k == 3 else y for k, y in enumerate(Y)]),
        ["--drop-label", "unclear"],
    ),
    "empty-label": (
        table("p,label", P, np.array(["", "yes"])[Y]),
        ["--empty-label", "other", "--pos-label", "yes"],
    ),
    "sheet": (None, ["--sheet", "data"]),
    "max-size": (GIVEN, ["--max-size", "1"]),
    "quiet": (GIVEN, ["--quiet"]),
}
RIGHT = {  # predictions of rows, where they are not P
    "bounds": np.where(np.arange(N) % 20 == 7, 0.02, P),
    "normalize": P,
    "drop-missing": P[np.arange(N) % 20 != 7],
    "missing": P[np.arange(N) % 20 != 7],
}


def test_each_option_of_reading_has_a_file():
    assert {*FILES} == {*_OF_FILES.split()}


@pytest.fixture
def files(request, tmp_path):
    text, given = FILES[request.param]
    paths = [tmp_path / f"{name}.{'xlsx' if text is None else 'csv'}" for name in "ab"]
    for path in paths:
        if text is not None:
            path.write_text(text, "cp1252" if request.param == "encoding" else "utf-8")
            continue
        pd = pytest.importorskip("pandas")
        pytest.importorskip("openpyxl")
        with pd.ExcelWriter(path) as book:
            pd.DataFrame({"x": P, "y": Y}).to_excel(book, sheet_name="legend", index=False)
            pd.DataFrame({"p": P, "label": Y}).to_excel(book, sheet_name="data", index=False)
    return request.param, *map(str, paths), given


def of_event(proba):
    return proba if proba.ndim == 1 else proba[:, 1]


@pytest.mark.filterwarnings("ignore:.*rows without a prediction are left out")
@pytest.mark.parametrize("files", FILES, indirect=True)
def test_an_option_applies_to_a_file_without_labels(files):
    option, a, b, given = files
    options = parse(["shift", a, b, *given])
    first = read_predictions(options)
    second, _ = read_target(first, options)
    right = RIGHT.get(option, P)
    near = 0.004 if option == "normalize" else 1e-12
    np.testing.assert_allclose(of_event(second), right, atol=near)
    if option != "drop-label":
        np.testing.assert_allclose(of_event(first.proba), right, atol=near)


@pytest.mark.parametrize("files", FILES, indirect=True)
def test_an_option_applies_to_the_second_of_two_models(files):
    _, a, b, given = files
    first, second = _read_both(parse(["compare", a, b, *given]))
    np.testing.assert_array_equal(first.proba, second.proba)
    np.testing.assert_array_equal(first.labels, second.labels)


@pytest.mark.filterwarnings("ignore:.*rows without a prediction stay as they are")
@pytest.mark.filterwarnings("ignore:20 of 400 samples")
@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("csv", "missing"),
        ("parquet", "drop-missing"),
        pytest.param("jsonl", "missing", marks=pytest.mark.slow),
        pytest.param("npz", "missing", marks=pytest.mark.slow),
        pytest.param("csv", "drop-missing", marks=pytest.mark.slow),
        pytest.param("npz", "drop-missing", marks=pytest.mark.slow),
    ],
)
def test_rows_without_a_prediction_stay_where_others_are_recalibrated(kind, option, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    known = np.arange(len(SHARP)) % 20 != 7
    p = np.where(known, SHARP, np.nan if option == "drop-missing" else -99.0)
    a, out = (tmp_path / f"{name}.{kind}" for name in ("a", "out"))
    frame, given = pd.DataFrame({"p": p, "label": HAPPENED}), FILES[option][1]
    if kind == "npz":
        np.savez(a, proba=p, labels=HAPPENED)
    elif kind == "jsonl":
        frame.to_json(a, orient="records", lines=True)
    else:
        getattr(frame, f"to_{kind}")(a, index=False)
    call = ["recalibrate", str(a), str(a), "--out", str(out), "--method", "slope"]
    assert main([*call, *given]) == 0
    if kind == "npz":
        found = np.load(out)["proba"]
    elif kind == "jsonl":
        found = pd.read_json(out, lines=True)["p"].to_numpy(float)
    else:
        found = getattr(pd, f"read_{kind}")(out)["p"].to_numpy(float)
    np.testing.assert_array_equal(found[~known], p[~known])
    options = parse(["recalibrate", str(a), str(a), "--out", str(out), *given])
    first = read_predictions(options)
    method = TemperatureScaling()
    fitted = Recalibrator([method], labels=first.classes, random_state=0)
    fitted.fit(first.proba, first.labels)
    expected = fitted.predict_proba(SHARP[known])[:, 1]
    np.testing.assert_allclose(found[known], expected, atol=1e-9)
    assert np.abs(found - p)[known].max() > 0.05


def test_the_probability_of_the_predicted_class_stays_one(tmp_path):
    a, out = tmp_path / "a.csv", tmp_path / "out.csv"
    guess, given = (SHARP > 0.5).astype(int), FILES["predicted"][1]
    columns = NO_YES[guess], np.maximum(SHARP, 1 - SHARP), NO_YES[HAPPENED]
    a.write_text(table("guess,p,label", *columns))
    call = ["recalibrate", str(a), str(a), "--out", str(out), "--method", "slope"]
    assert main([*call, *given]) == 0
    found = read_predictions(parse(["evaluate", str(out), *given])).proba[:, 1]
    assert (np.diff(found[np.argsort(SHARP)]) >= 0).all()
    assert np.abs(found - SHARP).max() > 0.05
