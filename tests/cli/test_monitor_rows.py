"""The command ``monitor`` counts no row twice, and refuses the columns of another model."""

import json

import numpy as np
import pytest

from skcal.cli.commands import main
from skcal.cli.monitor import _begins_with_a_batch, _in_order, _is_no_chance
from skcal.monitoring import CalibrationMonitor

LINES = [f"r{k},{p},{int(k % 5 == 0)}" for k, p in enumerate(np.linspace(0.1, 0.3, 60).round(3))]


def write(path, lines, header="id,default,label"):
    path.write_text("\n".join([header, *lines, ""]))
    return str(path)


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command on a state; return the exit status, what it printed and warned of."""

    def call(*arguments):
        status = main(["monitor", str(tmp_path / "state.json"), *map(str, arguments)])
        return status, *capsys.readouterr()

    call.seen = lambda: json.loads((tmp_path / "state.json").read_text())["n_samples"]
    return call


def test_rows_with_an_id_are_counted_once(run, tmp_path):
    run(write(tmp_path / "a.csv", LINES[:40]), "--id", "id")
    _, _, said = run(write(tmp_path / "b.csv", LINES[39::-1]))  # the id is remembered
    assert run.seen() == 40
    assert "was added before" in said
    _, _, said = run(write(tmp_path / "c.csv", LINES))
    assert run.seen() == 60
    assert "40 of 60 rows were added before, by their id, and are left out" in said
    run(write(tmp_path / "d.csv", LINES[50:]))
    assert run.seen() == 60
    run(tmp_path / "d.csv", "--again")
    assert run.seen() == 70
    once = tmp_path / "once.json"
    main(["monitor", str(once), write(tmp_path / "a.csv", LINES[:40]), "--id", "id"])
    main(["monitor", str(once), write(tmp_path / "c.csv", LINES[40:]), "--id", "id"])
    monitor = CalibrationMonitor.from_json(once.read_text())
    assert monitor.n_samples_seen_ == 60


def test_without_ids_the_order_of_rows_does_not_make_another_batch(run, tmp_path):
    option = ["--ignore", "id"]
    run(write(tmp_path / "a.csv", LINES), *option)
    _, _, said = run(write(tmp_path / "b.csv", LINES[::-1]), *option)
    assert run.seen() == 60
    assert "was added before and is not added again" in said


def test_without_ids_rows_that_were_added_in_another_file_are_refused(run, tmp_path):
    option = ["--ignore", "id"]
    run(write(tmp_path / "a.csv", LINES[:40]), *option)
    status, _, said = run(write(tmp_path / "b.csv", LINES[::-1]), *option)
    assert (status, run.seen()) == (2, 40)
    assert "40 of 60 rows have predictions and label of rows that were added before" in said
    assert run(write(tmp_path / "c.csv", LINES[38:]), *option)[0] == 0  # two may agree by chance
    assert run(tmp_path / "b.csv", *option, "--again")[0] == 0
    assert run.seen() == 122


def test_a_file_of_few_values_that_grew_is_known_by_its_beginning(run, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.integers(1, 5, 300) / 10
    lines = [f"0,{x},{int(rng.random() < x)}" for x in p]
    option = ["--ignore", "id"]
    for k in range(4):
        assert run(write(tmp_path / f"{k}.csv", lines[50 * k : 50 * (k + 1)]), *option)[0] == 0
    status, _, said = run(write(tmp_path / "b.csv", lines[100:180]), *option)
    assert (status, run.seen()) == (2, 200)
    assert "far more than chance would make" in said


@pytest.mark.parametrize("rounded", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("digits", [1, 2, 3, 4])
def test_files_of_other_rows_are_added(digits, rounded):
    """Of 720 files of new rows none is refused; each would be with a probability of 1e-6."""
    rng, refused = np.random.default_rng(digits), 0
    known, batches = np.empty(0, "<u8"), []
    for _ in range(60):
        n = rng.choice([1, 5, 20, 100, 1000])
        p = rng.uniform(size=n)
        p = np.where(rng.uniform(size=n) < rounded, p.round(digits), p)
        marks = (2 * (p * 10**15).round() + (rng.uniform(size=n) < p)).astype("<u8")
        refused += _is_no_chance(marks, known) or _begins_with_a_batch(marks, batches)
        known, batches = np.append(known, marks), [*batches, _in_order(marks)]
    assert not refused


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*LINES[40:], LINES[45]], "id 'r45' names several rows. Name each prediction once"),
        (["r3,.9,1"], "id 'r3' was added before with another prediction or label"),
    ],
)
def test_ids_that_name_no_prediction_are_refused(run, tmp_path, lines, message):
    run(write(tmp_path / "a.csv", LINES[:40]), "--id", "id")
    status, _, said = run(write(tmp_path / "b.csv", lines))
    assert status == 2
    assert message in said
    assert run.seen() == 40


def test_two_columns_name_a_row_and_answers_to_one_question_share_a_weight(run, tmp_path):
    visits = [f"{line},{k // 2},{k % 2}" for k, line in enumerate(LINES)]
    header = "id,default,label,patient,visit"
    path, ids = (
        write(tmp_path / "a.csv", visits[:40], header),
        ["--score", "default", "--id", "visit"],
    )
    status, _, said = run(path, *ids)
    assert (status, "visit '0' names several rows" in said) == (2, True)
    ids += ["--id", "patient"]
    assert run(path, *ids, "--groups", "patient")[0] == 0
    monitor = CalibrationMonitor.from_json((tmp_path / "state.json").read_text())
    assert monitor.n_samples_seen_ == 40
    assert monitor.periods_["all"].predicted == pytest.approx(
        np.linspace(0.1, 0.3, 60)[:40].sum() / 2, abs=0.01
    )
    write(tmp_path / "a.csv", visits[::-1], header)
    _, _, said = run(path, "--score", "default")
    assert "40 of 60 rows were added before, by their patient and visit, and are left out" in said
    assert run.seen() == 60
    write(tmp_path / "a.csv", [visits[3].replace(",0,1,1", ",1,1,1")], header)
    status, _, said = run(path, "--score", "default")
    assert (status, "patient '1', visit '1' was added before with another" in said) == (2, True)


def test_columns_of_another_model_are_refused(run, tmp_path):
    run(write(tmp_path / "a.csv", LINES[:40]), "--ignore", "id")
    renamed = write(tmp_path / "b.csv", LINES[40:], "id,limit,label")
    status, _, said = run(renamed, "--ignore", "id")
    assert (status, run.seen()) == (2, 40)
    assert "predictions in limit, earlier batches" in said
    assert "had predictions in default. Give the same columns" in said
    relabelled = write(tmp_path / "c.csv", LINES[40:], "id,default,paid")
    status, _, said = run(relabelled, "--ignore", "id", "--label", "paid")
    assert (status, run.seen()) == (2, 40)
    assert "labels in 'paid', earlier batches" in said
    assert run(write(tmp_path / "d.csv", LINES[40:]), "--ignore", "id")[0] == 0


def test_unlabelled_rows_are_left_out_and_added_when_they_have_labels(run, tmp_path, capsys):
    partial = [line if k % 2 else line[:-1] for k, line in enumerate(LINES)]
    option = ["--id", "id", "--skip-unlabelled"]
    other = ["monitor", str(tmp_path / "other.json"), write(tmp_path / "a.csv", partial)]
    main([*other, "--ignore", "id", "--skip-unlabelled"])
    assert "do not add it again when it has more labels" in capsys.readouterr().err
    status, _, said = run(write(tmp_path / "a.csv", partial), "--id", "id")
    assert (status, "line 2 has no label" in said) == (2, True)
    _, _, said = run(tmp_path / "a.csv", *option)
    assert run.seen() == 30
    assert "30 of 60 samples (50 %) are left out: 30 without a label" in said
    run(write(tmp_path / "a.csv", LINES), *option)
    assert run.seen() == 60
    status, _, said = run(write(tmp_path / "b.csv", ["x,.1,", "y,.2,"]), *option)
    assert (status, "each sample would be left out" in said) == (2, True)


def test_alarms_are_acknowledged_and_reset(run, tmp_path):
    wrong = [f"w{k},0.02,1" for k in range(30)] + ["w30,.02,0"]
    assert run(write(tmp_path / "a.csv", wrong), "--id", "id")[0] == 1
    assert run()[0] == 1
    status, printed, _ = run("--acknowledge", "--note", "known")
    assert (status, "acknowledged at 31" in printed) == (0, True)
    status, printed, _ = run("--reset", "--note", "recalibrated", "--json")
    facts = json.loads(printed)
    assert (status, facts["n_samples_seen"], facts["alarm"]) == (0, 0, None)
    assert [entry["note"] for entry in facts["journal"]] == [
        "the event happens more often than predicted",
        "known",
        "recalibrated",
    ]
    status, _, said = run("--acknowledge")
    assert (status, "There is no alarm to acknowledge" in said) == (2, True)
    run(tmp_path / "a.csv")  # rows that were counted stay known
    assert run.seen() == 0
    assert "No samples yet since the reset at sample 31: recalibrated" in run()[1]
    status, _, said = run("--plan", "1.5")
    assert (status, "There are no samples to plan by. Add a batch" in said) == (2, True)


def test_a_plan_and_the_numbers_of_the_text_are_in_the_json(run, tmp_path):
    write(tmp_path / "a.csv", LINES)
    _, printed, _ = run(tmp_path / "a.csv", "--id", "id", "--plan", "1.5")
    monitor = CalibrationMonitor.from_json((tmp_path / "state.json").read_text())
    plan = monitor.plan(1.5)
    assert printed == f"{monitor}\nPlan: {plan}\n"
    _, printed, _ = run("--json", "--plan", "1.5")
    facts = json.loads(printed)
    assert facts.pop("plan")["n_batches"] == plan.n_batches
    assert [facts.pop(name) for name in ("alarm_batch", "drift_batch")] == [None, None]
    assert facts == json.loads(json.dumps(monitor.to_dict()))


def test_damaged_marks_of_rows_are_refused(run, tmp_path):
    run(write(tmp_path / "a.csv", LINES), "--id", "id")
    path = tmp_path / "state.json"
    for part in ({"rows": "x"}, {"columns": 3}, {"batches": {}}, {"batches": ["x 1"]}):
        whole = json.loads(path.read_text())
        path.write_text(json.dumps({**whole, **part}))
        status, _, said = run(tmp_path / "a.csv")
        assert (status, "batches, columns or rows are damaged" in said) == (2, True)
        path.write_text(json.dumps(whole))
