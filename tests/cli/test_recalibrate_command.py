"""The command recalibrate."""

import csv
import gzip
import io
import json
import re
import sys
import zipfile

import numpy as np
import pytest
from report_cases import predictions
from scipy.special import expit, logit

from skcal import Recalibrator, TemperatureScaling
from skcal._show import on_command_line
from skcal.cli.commands import main
from skcal.recalibration import InterceptCalibration
from skcal.recalibration import mixture as candidates

NAMES = ["a", "b", "c"]


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    few = [TemperatureScaling()]
    monkeypatch.setattr(candidates, "default_candidates", lambda *_: few)


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def table(path, labels, proba, names, *, order=None, labelled=True):
    order = list(range(len(names))) if order is None else order
    header = ["id", *(names[k] for k in order), *(["label"] if labelled else [])]
    rows = [
        [f"s{i}", *(repr(float(p[k])) for k in order), *([names[y]] if labelled else [])]
        for i, (y, p) in enumerate(zip(labels, proba, strict=True))
    ]
    return write(path, header, rows)


def values(path, names):
    with path.open(newline="") as file:
        return np.array([[float(row[name]) for name in names] for row in csv.DictReader(file)])


def without_id(path):
    with path.open(newline="") as file:
        rows = [row[1:] for row in csv.reader(file)]
    return write(path, rows[0], rows[1:])


def test_a_table_is_rewritten_with_the_probabilities_that_the_recalibrator_gives(run, tmp_path):
    labels, proba = predictions(300)
    names = ["a", "b", "c"][: proba.shape[1]]
    fit = without_id(table(tmp_path / "fit.csv", labels[:200], proba[:200], names))
    order = list(range(len(names)))[::-1]
    new = table(tmp_path / "n.csv", labels[200:], proba[200:], names, order=order, labelled=False)
    out = tmp_path / "out.csv"
    text = run("recalibrate", fit, new, "--out", out)
    own = Recalibrator(labels=names, random_state=0).fit(proba[:200], np.array(names)[labels[:200]])
    assert np.array_equal(values(out, names), own.predict_proba(proba[200:]))
    assert out.read_text().splitlines()[0] == new.read_text().splitlines()[0]
    assert out.read_text().splitlines()[1].startswith("s0,")
    with on_command_line():
        assert text.startswith(own.summary())
    assert f"100 recalibrated predictions are in {out}." in text


@pytest.mark.parametrize("method", ["intercept", "slope"])
def test_a_map_of_intercept_or_slope_alone_is_saved_and_applied(method, run, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=600)
    y = (rng.uniform(size=600) < expit(0.4 * logit(p) - 1)).astype(int)
    fit = write(tmp_path / "fit.csv", ["p", "label"], zip(p, y, strict=True))
    new = write(tmp_path / "new.csv", ["p"], p[:5, None])
    saved, out = tmp_path / "map.json", tmp_path / "out.csv"
    told = json.loads(run("recalibrate", fit, "--method", method, "--save", saved, "--json"))
    map = {"intercept": InterceptCalibration(), "slope": TemperatureScaling()}[method]
    assert told["chosen"] == type(map).__name__
    run("recalibrate", "--map", saved, new, "--out", out)
    expected = (600 * map.fit(p, y).predict_proba(p[:5])[:, 1] + 0.5) / 601
    assert np.allclose(values(out, ["p"])[:, 0], expected, rtol=1e-9)


@pytest.mark.parametrize("method", ["intercept", "slope"])
@pytest.mark.parametrize("off", [-0.7, 0.7])
def test_the_printed_map_is_the_one_that_is_applied_to_the_rows_that_it_counts(
    method, off, run, tmp_path
):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=600)
    y = (rng.uniform(size=600) < expit(0.8 * logit(p) + off)).astype(int)
    part = np.where(np.arange(600) % 3, "a", "b")
    rows = list(zip(p, y, part, strict=True))
    fit = write(tmp_path / "fit.csv", ["p", "label", "part"], rows)
    new = write(tmp_path / "new.csv", ["p", "label", "part"], rows)
    out = tmp_path / "out.csv"
    asked = "--score", "p", "--only", "part=a", "--method", method, "--out", out
    text = " ".join(run("recalibrate", fit, new, *asked).split())
    z = logit(p)
    if method == "intercept":
        [(sign, shift)] = re.findall(r"applied: new log-odds = log-odds ([+-]) (\d\.\d+)\.", text)
        z = z + float(sign + shift)
    else:
        z = z / float(re.search(r"applied: log-odds are divided by ([\d.]+), the", text)[1])
    n, end = re.search(
        r"each probability p becomes \((\d+) p \+ 1/2\) / (\d+), away", text
    ).groups()
    expected = np.where(part == "a", (int(n) * expit(z) + 0.5) / int(end), p)
    assert np.allclose(values(out, ["p"])[:, 0], expected, atol=2e-3)
    assert f"400 recalibrated predictions are in {out}; the other 200 rows are kept as they" in text
    assert "logistic update for comparison, not the chosen map: new log-odds" in text


@pytest.mark.parametrize("command", ["recalibrate", "test", "monitor", "plot"])
def test_swapped_columns_are_told(command, tmp_path, capsys):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=300)
    y = np.where(rng.uniform(size=300) < p, "bad", "good")
    out = {"recalibrate": "--save", "plot": "--out"}.get(command, "--seed")
    for header, told in ((["good", "bad", "label"], False), (["bad", "good", "label"], True)):
        path = write(tmp_path / "fit.csv", header, zip(1 - p, p, y, strict=True))
        call = [command, *[tmp_path / f"{told}.json"] * (command == "monitor"), path]
        call += ["--resamples", 19] * (command in ("test", "plot"))
        if command != "monitor":
            call += [out, 0 if out == "--seed" else tmp_path / "out.png"]
        main([str(one) for one in call])
        assert ("columns may be swapped" in capsys.readouterr().err) == told


def test_json_tells_what_was_won(run, tmp_path):
    labels, proba = predictions(300)
    np.savez(tmp_path / "fit.npz", proba=proba[:200], labels=labels[:200])
    np.savez(tmp_path / "new.npz", proba=proba[200:], id=np.arange(100))
    out = tmp_path / "out.npz"
    found = json.loads(
        run("recalibrate", tmp_path / "fit.npz", tmp_path / "new.npz", "--out", out, "--json")
    )
    own = Recalibrator(random_state=0).fit(proba[:200], labels[:200])
    assert found["chosen"] == own.best_name_
    assert found["comparison"]["log_loss"]["before"] == own.comparison_["log_loss"].before
    assert (found["n_fitted"], found["n_applied"]) == (200, 100)
    with np.load(out) as data:
        assert np.array_equal(data["proba"], own.predict_proba(proba[200:]))
        assert np.array_equal(data["id"], np.arange(100))


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (["a", "b"], [["0.5", "0.5"]], "line 1 has no column 'c'"),
        (["a", "b", "c"], [["0.5", "0.2", "x"]], "line 2, column 'c' is 'x', not a number"),
        (["a", "b", "c"], [["0.5", "0.2", "0.4"]], "line 2 sums to 1.1, not 1"),
        (["a", "b", "c"], [["0.5", "0.2"]], "line 2 has 2 fields, the header 3"),
        (["a", "b", "c"], [], "no rows of probabilities"),
    ],
)
def test_what_is_wrong_with_the_second_file_is_said_on_one_line(
    run, tmp_path, header, rows, message
):
    labels, proba = predictions(60)
    fit = without_id(table(tmp_path / "fit.csv", labels, proba, ["a", "b", "c"]))
    new = write(tmp_path / "new.csv", header, rows)
    error = run("recalibrate", fit, new, "--out", tmp_path / "out.csv", status=2)
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out.csv").exists()


def test_files_that_cannot_be_written_are_said_before_the_work(run, tmp_path):
    labels, proba = predictions(60)
    fit = without_id(table(tmp_path / "fit.csv", labels, proba, ["a", "b", "c"]))
    error = run("recalibrate", fit, fit, "--out", tmp_path / "no" / "out.csv", status=2)
    assert "is absent" in error
    error = run("recalibrate", fit, fit, "--out", tmp_path / "out.npz", status=2)
    assert "another kind of file" in error
    error = run("recalibrate", fit, tmp_path / "none.csv", "--out", tmp_path / "o.csv", status=2)
    assert "none.csv: No such file" in error


@pytest.fixture
def fitted():
    """Labels and predictions of three classes, and a recalibrator of the first 200."""
    labels, proba = predictions(300)
    recalibrator = Recalibrator(labels=NAMES, random_state=0)
    return labels, proba, recalibrator.fit(proba[:200], np.array(NAMES)[labels[:200]])


@pytest.fixture
def fit_file(fitted, tmp_path):
    labels, proba, _ = fitted
    return table(tmp_path / "fit.csv", labels[:200], proba[:200], NAMES)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "npz", "-"])
def test_every_kind_of_file_is_applied_to_and_keeps_its_other_columns(
    run, tmp_path, monkeypatch, fitted, fit_file, kind
):
    labels, proba, recalibrator = fitted
    proba = proba[200:]
    text = table(tmp_path / "source.csv", labels[200:], proba, NAMES, order=[2, 1, 0])
    new, out = tmp_path / f"new.{kind}", tmp_path / f"out.{kind}"
    if kind == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
        new, out = "-", tmp_path / "out.csv"
    elif kind == "parquet":
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        frame = pd.DataFrame(proba[:, ::-1], columns=NAMES[::-1])
        frame.insert(0, "id", [f"s{i}" for i in range(100)])
        frame.assign(label="a").to_parquet(new)
    elif kind == "npz":
        ids = [f"s{i}" for i in range(100)]
        np.savez(new, proba=proba[:, ::-1], classes=NAMES[::-1], id=ids)
    else:
        content = text.read_bytes()
        new.write_bytes(gzip.compress(content) if kind == "csv.gz" else content)
    run("recalibrate", fit_file, new, "--id", "id", "--out", out)
    expected = recalibrator.predict_proba(proba)
    if kind == "npz":
        with np.load(out) as data:
            assert np.array_equal(data["proba"], expected[:, ::-1])
            assert data["id"][7] == "s7"
        return
    if kind == "parquet":
        frame = pd.read_parquet(out)
        assert frame.columns.tolist() == ["id", "c", "b", "a", "label"]
        assert np.array_equal(frame[NAMES], expected)
        assert frame["id"][7] == "s7"
        return
    content = gzip.decompress(out.read_bytes()) if kind == "csv.gz" else out.read_bytes()
    (tmp_path / "plain.csv").write_bytes(content)
    assert np.array_equal(values(tmp_path / "plain.csv", NAMES), expected)
    assert content.splitlines()[8].startswith(b"s7,")


def test_arrays_of_any_name_are_kept(run, tmp_path, fitted, fit_file):
    _, proba, recalibrator = fitted
    # numpy.savez has parameters of these names.
    with zipfile.ZipFile(tmp_path / "new.npz", "w") as archive:
        for name, values in (("file", [7]), ("proba", proba[200:]), ("allow_pickle", [8])):
            with archive.open(f"{name}.npy", "w") as member:
                np.save(member, values)
    run("recalibrate", fit_file, tmp_path / "new.npz", "--id", "id", "--out", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as data:
        assert data.files == ["file", "proba", "allow_pickle"]
        assert np.array_equal(data["proba"], recalibrator.predict_proba(proba[200:]))
        assert data["file"] == 7


def test_a_saved_map_is_applied_later_to_the_last_bit(run, tmp_path, fitted, fit_file):
    labels, proba, recalibrator = fitted
    saved, out = tmp_path / "map.json", tmp_path / "out.csv"
    text = run("recalibrate", fit_file, "--id", "id", "--save", saved)
    assert text.endswith(f"The map is in {saved}.\n")
    assert saved.read_text(encoding="utf-8") == recalibrator.to_json()
    new = table(tmp_path / "n.csv", labels[200:], proba[200:], NAMES, labelled=False)
    found = json.loads(run("recalibrate", "--map", saved, new, "--out", out, "--json"))
    assert np.array_equal(values(out, NAMES), recalibrator.predict_proba(proba[200:]))
    assert (found["map"], found["applied_to"], found["fitted_to"]) == (str(saved), str(new), None)
    assert found["chosen"] == recalibrator.best_name_
    assert "comparison" not in found
    both = run("recalibrate", fit_file, new, "--id", "id", "--out", out, "--save", saved)
    assert f"The map is in {saved}." in both
    assert f"100 recalibrated predictions are in {out}." in both


def test_logits_are_fitted_and_applied_without_loss(run, tmp_path):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 3)) * 3
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    z *= 20
    fit, new = tmp_path / "fit.npz", tmp_path / "new.npz"
    np.savez(fit, proba=z[:200], labels=y[:200])
    np.savez(new, proba=z[200:])
    out, saved, again = (tmp_path / name for name in ("out.npz", "map.json", "again.npz"))
    run("recalibrate", fit, new, "--out", out, "--logits", "--save", saved)
    own = Recalibrator(labels=range(3), from_logits=True, random_state=0).fit(z[:200], y[:200])
    run("recalibrate", "--map", saved, new, "--out", again)
    for written in (out, again):
        with np.load(written) as data:
            assert np.array_equal(data["proba"], own.predict_proba(z[200:]))
    assert "sums to" in run("recalibrate", fit, "--save", saved, status=2)


@pytest.mark.parametrize("way", [[], ["--method", "slope"]])
def test_options_that_a_question_lacks_have_probability_0(way, run, tmp_path):
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(200, 4))
    absent = np.arange(4) >= rng.integers(2, 5, 200)[:, None]
    z[absent] = -np.inf
    chosen = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    rows = [
        [*("" if np.isneginf(value) else repr(float(value)) for value in row), "ABCD"[k]]
        for row, k in zip(z, chosen, strict=True)
    ]
    file = write(tmp_path / "questions.csv", [*"ABCD", "label"], rows)
    out, saved = tmp_path / "out.csv", tmp_path / "map.json"
    run("recalibrate", file, file, "--logits", "--out", out, *way, "--save", saved)
    proba = values(out, "ABCD")
    assert (proba[absent] == 0).all()
    assert (proba[~absent] > 0).all()
    assert (proba.argmax(axis=1) == z.argmax(axis=1)).all()
    expected = Recalibrator([TemperatureScaling()], from_logits=True, random_state=0)
    np.testing.assert_allclose(proba, expected.fit(z, chosen).predict_proba(z), atol=1e-12)
    again = tmp_path / "again.csv"
    run("recalibrate", "--map", saved, file, "--out", again)
    assert (values(again, "ABCD") == proba).all()


def test_labels_that_are_names_are_read_as_in_other_commands(run, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=200)
    y = np.where(rng.uniform(size=200) < p**3, "ill", "well")
    ids = [f"s{i}" for i in range(200)]
    fit = write(tmp_path / "fit.csv", ["id", "p", "truth"], zip(ids, p, y, strict=True))
    new = write(tmp_path / "new.csv", ["p", "id"], zip(p[:5], ids, strict=False))
    out, more = tmp_path / "out.csv", ("--id", "id", "--label", "truth")
    run("recalibrate", fit, new, "--out", out, *more, "--pos-label", "ill")
    own = Recalibrator(labels=["well", "ill"], random_state=0).fit(p, y)
    assert np.allclose(values(out, ["p"])[:, 0], own.predict_proba(p[:5])[:, 1], rtol=1e-12)
    assert "--pos-label" in run("recalibrate", fit, new, "--out", out, *more, status=2)
    other = write(tmp_path / "n.csv", ["p", "q"], [[0.5, 1]])
    more = (*more, "--pos-label", "ill")
    error = run("recalibrate", fit, other, "--out", out, *more, status=2)
    assert "columns p, q: none has the name of a label" in error
    assert "by --score" in error


def test_a_file_that_is_too_large_is_refused(run, tmp_path, fit_file):
    options = "--id", "id", "--out", tmp_path / "o.csv", "--max-size", "1e-6"
    assert "Raise --max-size" in run("recalibrate", fit_file, fit_file, *options, status=2)


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "is not JSON"), ("{}", "is not a recalibrator"), (None, "No such file")],
)
def test_a_file_that_is_no_map_is_named(run, tmp_path, fit_file, content, message):
    saved = tmp_path / "map.json"
    if content is not None:
        saved.write_text(content)
    error = run("recalibrate", "--map", saved, fit_file, "--out", tmp_path / "o.csv", status=2)
    assert "map.json: " in error
    assert message in error
    assert error.count("\n") == 1


def test_the_summary_cannot_be_mixed_with_the_table(run, fit_file):
    error = run("recalibrate", fit_file, fit_file, "--id", "id", "--out", "-", status=2)
    assert "Pass the name of a file" in error
