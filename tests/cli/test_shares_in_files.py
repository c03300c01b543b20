"""Shares and votes of annotators in files: the numbers are those of the functions."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot
from read_files import write_table

from skcal import Recalibrator
from skcal._show import on_command_line
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import calibration_test, equivalence_test
from skcal.monitoring import CalibrationMonitor
from skcal.report import calibration_report
from skcal.sample import read_sample

CLASSES = np.array(["cat", "dog", "emu"])


@pytest.fixture(scope="module")
def voted():
    rng = np.random.default_rng(5)
    law = rng.dirichlet([1, 1, 2], 120).round(6)
    law /= law.sum(axis=1, keepdims=True)
    votes = np.array([rng.multinomial(4, row) for row in law]).astype(float)
    sharp = law**1.5
    return votes, sharp / sharp.sum(axis=1, keepdims=True)


def save(path, votes, proba, order=(0, 1, 2)):
    """The columns of votes in another order than those of predictions."""
    columns = {CLASSES[k]: proba[:, k] for k in order}
    columns |= {f"votes_{CLASSES[k]}": votes[:, k] for k in (2, 0, 1)}
    columns |= {"label": ["kept"] * len(votes), "site": np.arange(len(votes)) % 2}
    return write_table(path, columns)


@pytest.fixture
def table(tmp_path, voted):
    return save(tmp_path / "votes.csv", *voted)


def pvalue(run, *arguments):
    [found] = json.loads(run("test", *arguments, "--json", "--resamples", 99))
    return found["pvalue"]


def test_every_kind_of_file_gives_the_test_of_the_votes(run, table, tmp_path, voted):
    votes, proba = voted
    archive = tmp_path / "votes.npz"
    np.savez(archive, proba=proba, votes=votes, classes=CLASSES)
    of = {"notion": "confidence", "n_resamples": 99, "random_state": 0}
    expected = calibration_test(votes, proba, **of).pvalue
    few = ["--notion", "confidence"]
    beside = ["--soft", "votes_", "--ignore", "site", *few]
    assert pvalue(run, table, *beside) == expected
    assert pvalue(run, archive, "--soft", "votes", *few) == expected
    tabs, columnar = tmp_path / "votes.tsv", tmp_path / "votes.parquet"
    tabs.write_text(Path(table).read_text().replace(",", "\t"))
    assert pvalue(run, tabs, *beside) == expected
    assert "If commas separate its fields" in run("test", table, *beside, "--sep", "tab", status=2)
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas").read_csv(table).to_parquet(columnar)
    assert pvalue(run, columnar, *beside) == expected


def test_report_of_votes(run, table, voted):
    votes, proba = voted
    options = ["--soft", "votes_", "--by", "site", "--resamples", 39]
    site = (np.arange(len(votes)) % 2).astype(str)
    expected = calibration_report(
        votes,
        proba,
        labels=CLASSES,
        by={"site": site},
        name="votes.csv",
        n_resamples=39,
        random_state=0,
    )
    with on_command_line():
        assert run("report", table, *options) == f"{expected}\n"


def test_files_of_the_same_votes_are_compared_whatever_the_order_of_their_columns(
    run, table, tmp_path, voted
):
    other = save(tmp_path / "other.csv", *voted, order=(2, 0, 1))
    options = ["--soft", "votes_", "--ignore", "site", "--fail-if-worse", "--resamples", 19]
    found = json.loads(run("compare", table, other, *options, "--json"))
    assert found["gate"]["pvalue"] == 1  # the same predictions
    save(tmp_path / "other.csv", np.roll(voted[0], 1, axis=1), voted[1])
    message = run("compare", table, other, *options, status=2)
    assert "sample 1 has the label [" in message


def test_recalibration_by_votes(run, table, tmp_path, voted):
    _, proba = voted
    out, saved = tmp_path / "out.csv", tmp_path / "map.json"
    options = ["--soft", "votes_", "--ignore", "site", "--method", "slope"]
    run("recalibrate", table, table, *options, "--out", out, "--save", saved)
    recalibrator = Recalibrator.from_json(saved.read_text())
    mended = np.array([row.split(",")[:3] for row in out.read_text().splitlines()[1:]], float)
    np.testing.assert_array_equal(mended, recalibrator.predict_proba(proba))
    assert mended.max(axis=1).mean() < proba.max(axis=1).mean()  # the votes are less sure


def test_gate_of_votes(run, table, voted):
    options = ["--soft", "votes_", "--ignore", "site", "--notion", "confidence", "--json"]
    [found] = json.loads(run("evaluate", table, *options, "--max-error", 0.5))
    expected = equivalence_test(*voted, limit=0.5, notion="confidence")
    assert found["gate"]["verdict"] == expected.verdict == "below"
    assert found["gate"]["results"][0]["high"] == expected.high
    sample = read_sample(*voted)
    [answer] = found["answers"]
    overview = answer["overview"]
    assert (overview["accuracy"], overview["n_samples"]) == (sample.accuracy, len(voted[0]))


def test_a_diagram_of_votes(run, table, voted, tmp_path, monkeypatch):
    drawn = []
    whole = ReliabilityDisplay.from_predictions

    def kept(*arguments, **options):
        drawn.append(whole(*arguments, **options))
        return drawn[-1]

    monkeypatch.setattr(ReliabilityDisplay, "from_predictions", kept)
    options = ["--soft", "votes_", "--ignore", "site", "--resamples", 19]
    run("plot", table, *options, "--out", tmp_path / "votes.png")
    assert drawn[0].figure_.figure.number not in pyplot.get_fignums()
    expected = whole(*voted, labels=CLASSES, n_resamples=19, random_state=0, plot=False)
    [[found], [panel]] = (display.panels for display in (*drawn, expected))
    np.testing.assert_array_equal(
        [found.prediction, found.frequency], [panel.prediction, panel.frequency]
    )
    assert found.number == panel.number


def test_a_monitor_takes_one_vote_a_sample_and_refuses_more(run, table, voted, tmp_path):
    votes, proba = voted
    options = ["--soft", "votes_", "--ignore", "site", "--json"]
    state = tmp_path / "state.json"
    with pytest.raises(ValueError, match="needs labels") as refused:
        CalibrationMonitor("confidence").update(proba, votes)
    message = run("monitor", state, table, *options, status=2)
    assert message == f"skcal: {refused.value}\n"
    assert not state.exists()
    first = votes.argmax(axis=1)
    one = save(tmp_path / "one.csv", np.eye(3)[first], proba)
    found = json.loads(run("monitor", state, one, *options))
    expected = CalibrationMonitor("confidence").update(proba, first)
    assert found["log_e_value"] == expected.log_e_value_
    assert json.loads(run("monitor", state, "--json")) == found


def test_a_single_column_takes_its_class_from_its_name_or_an_option(run, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=200).round(4)
    yes = rng.binomial(3, p**2)

    def file(name):
        return write_table(tmp_path / f"{name}.csv", {name: p, "v_yes": yes, "v_no": 3 - yes})

    options = {"notion": "binary", "n_resamples": 99, "random_state": 0}
    expected = calibration_test(np.column_stack([3 - yes, yes]), p, **options).pvalue
    assert pvalue(run, file("yes"), "--soft", "v_") == expected
    assert pvalue(run, file("score"), "--soft", "v_", "--pos-label", "yes") == expected
    assert "may be of either class, yes, no" in run("test", file("score"), "--soft", "v_", status=2)
    negative = calibration_test(np.column_stack([yes, 3 - yes]), p, **options).pvalue
    assert pvalue(run, file("no"), "--soft", "v_") == negative


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("votes_emu", "emus"), "of the classes emu there are"),
        (lambda text: text.replace("votes_", "w_"), "no column that begins with 'votes_'"),
        (lambda text: text.replace(",0.0,", ",-1,", 1), "is -1: negative"),
        (lambda text: text.replace(",0.0,", ",,", 1), "is empty"),
        (lambda text: text.replace(",1.0,", ",0.5,", 1), "Pass shares that sum to 1, or whole"),
    ],
)
def test_what_is_wrong_is_named(run, tmp_path, voted, change, message):
    path = tmp_path / "wrong.csv"
    save(path, *voted)
    path.write_text(change(path.read_text()))
    options = ["--soft", "votes_", "--ignore", "site"]
    assert message in run("test", path, *options, status=2)


def test_arrays_of_another_shape_are_refused(run, tmp_path, voted):
    votes, proba = voted
    path = tmp_path / "wrong.npz"
    for wrong in (votes[:, :2], votes[:, 0], votes[:-1]):
        np.savez(path, proba=proba, votes=wrong)
        assert "shape" in run("test", path, "--soft", "votes", status=2)
    np.savez(path, proba=proba, votes=votes, classes=CLASSES[:2])
    assert "'classes' has 2 entries" in run("test", path, "--soft", "votes", status=2)
