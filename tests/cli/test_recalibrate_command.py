"""The command recalibrate."""

import csv
import json

import numpy as np
import pytest
from report_cases import predictions

from skcal import Recalibrator
from skcal.cli.commands import main


@pytest.fixture
def run(capsys):
    def call(*arguments, status=0):
        assert main([str(one) for one in arguments]) == status
        captured = capsys.readouterr()
        return captured.err if status else captured.out

    return call


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
    assert text.startswith(own.summary())
    assert f"100 recalibrated predictions are in {out}." in text


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


def test_a_single_column_stays_one(run, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=200)
    y = (rng.uniform(size=200) < p**3).astype(int)
    fit = write(tmp_path / "fit.csv", ["p", "label"], zip(p, y, strict=True))
    new = write(tmp_path / "new.csv", ["p"], p[:5, None])
    out = tmp_path / "out.csv"
    run("recalibrate", fit, new, "--out", out)
    expected = Recalibrator(labels=[0, 1], random_state=0).fit(p, y).predict_proba(p[:5])[:, 1]
    assert np.allclose(values(out, ["p"])[:, 0], expected, rtol=1e-12)


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
