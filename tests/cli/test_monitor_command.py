"""The command ``monitor``: its state is the monitor's, its exit status the alarm."""

import json
import os
import re
import shlex
import shutil
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pytest
from read_files import write_table

from skcal.cli.commands import main
from skcal.datasets import make_tempered
from skcal.monitoring import CalibrationMonitor

NAMES = np.array(["ant", "bee", "cat"])


def batch(seed, temperature=1.0, n_samples=150):
    options = {"n_classes": 3, "n_truth_draws": 0, "random_state": seed}
    data = make_tempered(n_samples, temperature=temperature, **options)
    return data.proba, NAMES[data.labels]


def write(path, proba, labels, order=(0, 1, 2)):
    return str(write_table(path, {"label": labels, **{NAMES[k]: proba[:, k] for k in order}}))


@pytest.fixture
def run(tmp_path, capsys):
    state = tmp_path / "state.json"

    def call(file, *options, status=0):
        assert main(["monitor", str(state), str(file), *options]) == status
        captured = capsys.readouterr()
        return captured.err if status == 2 else captured.out

    call.state = state
    return call


def test_batches_add_up_to_what_the_monitor_finds(run, tmp_path):
    monitor = CalibrationMonitor(labels=NAMES)
    for seed in range(3):
        proba, labels = batch(seed)
        monitor.update(proba, labels)
        order = [(0, 1, 2), (2, 0, 1), (1, 0, 2)][seed]  # columns are found by name
        printed = run(write(tmp_path / "batch.csv", proba, labels, order))
        assert printed == f"{monitor}\n"
    kept = CalibrationMonitor.from_json(run.state.read_text())
    assert kept.e_value_ == monitor.e_value_
    assert sorted(os.listdir(tmp_path)) == ["batch.csv", "state.json"]


def test_the_exit_status_tells_the_alarm(run, tmp_path):
    options = ["--notion", "canonical", "--alpha", "0.01"]
    for seed in range(4):
        proba, labels = batch(seed, temperature=2.5)
        file = write(tmp_path / "batch.csv", proba, labels)
        status = main(["monitor", str(run.state), file, *options])
        kept = CalibrationMonitor.from_json(run.state.read_text())
        assert status == (kept.alarm_ is not None)
        assert (kept.alpha, kept.notion) == (0.01, "canonical")
    assert status == 1
    text = run(write(tmp_path / "batch.csv", *batch(9)), status=1)
    assert "ALARM at sample" in text
    assert "Next: compare the samples, which are off from the first one on, with those that" in text
    assert "The command report with --by COLUMN shows which subgroups are off." in text
    for option in ("--acknowledge", "--reset"):
        command = f"python -m skcal monitor {shlex.quote(str(run.state))} {option} --note CAUSE"
        assert command in text
        assert main(shlex.split(command)[3:]) == 0


def test_json_holds_the_evidence(run, tmp_path):
    file = write(tmp_path / "batch.csv", *batch(0))
    facts = json.loads(run(file, "--run-length", "1e6", "--json"))
    monitor = CalibrationMonitor.from_json(run.state.read_text())
    assert facts["e_value"] == monitor.e_value_
    assert facts["run_length"] == 1e6
    assert facts["alarm"] is None
    assert facts["estimates"]["confidence"]["bias"] == monitor.estimates_["confidence"].bias
    (tmp_path / "b.csv").write_text("label,p\n1,0\n0,0.5\n")
    run.state.unlink()
    facts = json.loads(run(tmp_path / "b.csv", "--json", status=1))
    assert facts["e_value"] == "inf"


def test_a_batch_may_lack_classes(run, tmp_path):
    proba, labels = batch(0)
    run(write(tmp_path / "batch.csv", proba, labels))
    proba, labels = batch(1)
    run(write(tmp_path / "batch.csv", proba[labels == "bee"], labels[labels == "bee"]), status=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--notion", "canonical"], "watches with --notion confidence, not canonical"),
        (["--alpha", "0.1"], "watches with --alpha 0.05, not 0.1"),
        (["--run-length", "100"], "watches with --run-length None, not 100.0"),
        (["--label", "class"], "has no column 'class'"),
    ],
)
def test_what_the_state_does_not_hold_is_refused(run, tmp_path, options, message):
    file = write(tmp_path / "batch.csv", *batch(0))
    run(file)
    before = run.state.read_bytes()
    assert message in run(file, *options, status=2)
    assert run.state.read_bytes() == before


def test_bad_input_leaves_the_state_as_it_was(run, tmp_path):
    file = write(tmp_path / "batch.csv", *batch(0))
    run(file)
    before = run.state.read_bytes()
    (tmp_path / "other.csv").write_text("label,ant,bee\nant,0.5,0.5\n")
    assert "has the classes ant, bee" in run(tmp_path / "other.csv", status=2)
    (tmp_path / "one.csv").write_text("label,p\n1,0.5\n0,0.5\n")
    assert "has the classes 0, 1" in run(tmp_path / "one.csv", status=2)
    assert run.state.read_bytes() == before
    run.state.write_text("label,p\n1,0.5\n")
    assert "is not JSON" in run(file, status=2)
    assert run.state.read_text() == "label,p\n1,0.5\n"
    run.state.write_text(CalibrationMonitor().to_json())
    assert "a monitor without samples" in run(file, status=2)


def test_a_file_is_added_once_unless_it_is_asked_for_again(run, tmp_path, capsys):
    files = [write(tmp_path / f"{seed}.csv", *batch(seed)) for seed in range(2)]
    assert "alpha" in run(files[0], "--alpha", "2", status=2)
    assert not run.state.exists()
    for file in files:
        printed = run(file)
    before = run.state.read_bytes()
    renamed = str(shutil.copy(files[0], tmp_path / "renamed.csv"))
    for file in (*files, renamed):  # the jobs of two days run once more
        assert main(["monitor", str(run.state), file]) == 0
        captured = capsys.readouterr()
        assert "was added before and is not added again" in captured.err
        assert captured.out == printed
    assert main(["monitor", str(run.state), files[0], "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert run.state.read_bytes() == before
    assert run(files[0], "--again").startswith("No alarm after 450 samples")
    assert run(files[1]).startswith("No alarm after 450 samples")


def test_a_batch_of_text_labels_may_lack_the_event(run, tmp_path):
    (tmp_path / "a.csv").write_text("label,p\nok,.2\nfraud,.7\n")
    (tmp_path / "b.csv").write_text("label,p\nok,.01\nok,.02\n")
    option = ["--pos-label", "fraud"]
    assert "needs two labels, found ok" in run(tmp_path / "b.csv", *option, status=2)
    run(tmp_path / "a.csv", *option)
    assert run(tmp_path / "b.csv", *option).startswith("No alarm after 4 samples")
    assert run(tmp_path / "b.csv", "--again").startswith("No alarm after 6 samples")
    assert "has the classes fraud, ok" in run(tmp_path / "a.csv", "--pos-label", "ok", status=2)


def test_a_state_is_shown_and_drawn_without_a_batch(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    state, file = tmp_path / "state.json", write(tmp_path / "batch.csv", *batch(0))
    assert main(["monitor", str(state)]) == 2
    assert "state.json" in capsys.readouterr().err
    main(["monitor", str(state), file])
    before, printed = state.read_bytes(), capsys.readouterr().out
    assert main(["monitor", str(state), "--plot", str(tmp_path / "evidence.png")]) == 0
    assert capsys.readouterr().out == printed
    assert (tmp_path / "evidence.png").stat().st_size > 5_000
    assert state.read_bytes() == before


def test_a_state_of_the_library_can_be_gone_on_with(run, tmp_path):
    proba, labels = batch(0)
    run.state.write_text(CalibrationMonitor(labels=NAMES).update(proba, labels).to_json())
    assert run(write(tmp_path / "batch.csv", *batch(1))).startswith("No alarm after 300 samples")
    state = json.loads(run.state.read_text())
    assert len(state.pop("batches")) == 2
    assert CalibrationMonitor.from_json(json.dumps(state)).n_samples_seen_ == 300


def test_a_state_that_cannot_be_written_is_an_error(tmp_path, capsys):
    file = write(tmp_path / "batch.csv", *batch(0))
    assert main(["monitor", str(tmp_path / "no" / "state.json"), file]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_monitors_of_one_state_wait_for_each_other(tmp_path):
    # Each adds its batch to what it has read: two at a time would lose one of them.
    fcntl = pytest.importorskip("fcntl")
    # A lock is that of an open file, so that threads wait for each other as processes do.
    file, state = write(tmp_path / "batch.csv", *batch(0)), tmp_path / "state.json"
    command = ["monitor", str(state), file, "--again", "--quiet"]
    folder = os.open(tmp_path, os.O_RDONLY)
    with ThreadPoolExecutor(2) as pool:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            both = [pool.submit(main, command) for _ in range(2)]
            assert wait(both, timeout=1).done == set()
        finally:
            os.close(folder)
        assert [one.result() for one in both] == [0, 0]
    assert CalibrationMonitor.from_json(state.read_text()).n_samples_seen_ == 300
    assert sorted(os.listdir(tmp_path)) == ["batch.csv", "state.json"]


def test_a_state_that_is_no_file_is_refused(tmp_path, capsys):
    file, state = write(tmp_path / "batch.csv", *batch(0)), tmp_path / "state.json"
    state.mkdir()
    assert main(["monitor", str(state), file]) == 2
    assert "is no file. Pass the name of one" in capsys.readouterr().err


def test_metrics_are_in_the_text_format_of_prometheus(run, tmp_path):
    file = write(tmp_path / "batch.csv", *batch(0, 3.0, 600))
    lines = run(file, "--format", "prometheus", "--plan", "0.9", "--batch", "50", status=1)
    monitor = CalibrationMonitor.from_json(run.state.read_text())
    values = dict(line.split(" ") for line in lines.splitlines() if not line.startswith("#"))
    names = ("samples", "alarm", "log_e_value", "e_detector", "threshold", "plan_batches")
    numbers = {name: float(values[f"skcal_monitor_{name}"]) for name in names}
    plan = monitor.plan(0.9, 50)
    assert list(numbers.values()) == [
        600,
        1,
        monitor.log_e_value_,
        monitor.detector_,
        20,
        plan.n_batches,
    ]
    ratio = monitor.periods_["all"].ratio
    assert float(values["skcal_monitor_observed_expected_ratio_all"]) == ratio
    page = Path(__file__).parents[2] / "doc" / "guide" / "monitoring.rst"
    documented = re.findall(r"`(skcal_monitor_\w+|…_\w+)`", page.read_text(encoding="utf-8"))
    ratio_name = "skcal_monitor_observed_expected_ratio"
    documented = {name.replace("…", ratio_name) for name in documented}
    absent = {"recent", "drift", "since_drift"} - set(monitor.periods_)
    assert set(values) == documented - {f"{ratio_name}_{period}" for period in absent}
    for name in values:
        assert f"# TYPE {name} gauge" in lines.splitlines()
    meanings = [line.split(" ", 3)[3] for line in lines.splitlines() if line.startswith("# HELP")]
    assert len(set(meanings)) == len(values)
    run.state.unlink()
    impossible = write(tmp_path / "no.csv", np.eye(3)[[0, 1, 2]], NAMES[[1, 1, 2]])
    assert "skcal_monitor_log_e_value +Inf" in run(impossible, "--format", "prometheus", status=1)


def test_plans_are_for_batches_of_a_size_and_count_one_batch(run, tmp_path):
    file = write(tmp_path / "batch.csv", *batch(0, 1.0, 600))
    run(file)
    few, many = (run_shown(run, size) for size in (50, 100_000))
    assert "batches of 50 (" in few
    assert "the alarm comes after about 1 batch of 100,000 (100,000 samples)" in many
    assert "within 1 batch." in many
    with pytest.raises(SystemExit):
        main(["monitor", str(run.state), "--batch", "9"])


def run_shown(run, size):
    return run("--plan", "0.8", "--batch", str(size))


def weeks(n_weeks=12, drift_from=7):
    """Rare events of which there are more from a week on: a day for each 50 of them."""
    rng = np.random.default_rng(0)
    for week in range(n_weeks):
        p = rng.beta(1.2, 12, 350)
        y = rng.random(350) < p * (1 + 0.8 * (week >= drift_from))
        days = np.datetime64("2024-01-01") + 7 * week + np.arange(350) // 50
        yield {"label": y.astype(int), "score": p, "day": days.astype(str)}


def test_an_alarm_names_the_file_that_it_came_with_and_the_one_at_which_its_drift_began(
    run, tmp_path
):
    for week, table in enumerate(weeks()):
        file = write_table(tmp_path / f"week {week:02}.csv", table)
        main(["monitor", str(run.state), str(file), "--ignore", "day", "--quiet"])
    text = run("--json", status=1)
    told, monitor = json.loads(text), CalibrationMonitor.from_json(run.state.read_text())
    for key, sample in (
        ("alarm_batch", monitor.alarm_),
        ("drift_batch", monitor.periods_["drift"].first_sample),
    ):
        week = (sample - 1) // 350
        assert told[key] == {
            "file": f"week {week:02}.csv",
            "date": None,
            "first_sample": 350 * week + 1,
            "last_sample": 350 * week + 350,
        }
    first, second, *_ = run("--alpha", "0.05", status=1).splitlines()
    assert first.startswith("ALARM at sample")
    alarm, drift = told["alarm_batch"], told["drift_batch"]
    assert second == (
        f"The alarm came with {alarm['file']} (samples {alarm['first_sample']:,} to "
        f"{alarm['last_sample']:,}). The drift began at about {drift['file']} (samples "
        f"{drift['first_sample']:,} to {drift['last_sample']:,})."
    )
    assert drift["file"] >= "week 06.csv"


def test_days_of_one_file_are_batches_in_their_order_and_named_by_an_alarm(run, tmp_path, rng):
    tables = list(weeks())
    table = {name: np.concatenate([part[name] for part in tables]) for name in tables[0]}
    order = rng.permutation(len(table["label"]))
    shuffled = {name: values[order] for name, values in table.items()}
    file = write_table(tmp_path / "year.csv", shuffled)
    assert main(["monitor", str(run.state), str(file), "--date", "day", "--quiet"]) == 1
    kept = CalibrationMonitor.from_json(run.state.read_text())
    monitor = CalibrationMonitor(labels=kept.classes_)
    for day in np.unique(table["day"]):
        rows = shuffled["day"] == day
        monitor.update(shuffled["score"][rows], shuffled["label"][rows])
    assert kept.log_e_value_ == pytest.approx(monitor.log_e_value_)
    assert kept.alarm_ == monitor.alarm_
    text = run("--alpha", "0.05", status=1)
    day = table["day"][monitor.alarm_ - 1]
    began = table["day"][monitor.periods_["drift"].first_sample - 1]
    assert f"The alarm came with year.csv, {day} (samples " in text
    assert f"The drift began at about year.csv, {began} (samples " in text
    assert "2024-02-12" <= began < day
    state = json.loads(run.state.read_text())
    assert len(state["places"]) == 7 * len(tables)
    main(["monitor", str(run.state), "--reset", "--quiet"])
    assert json.loads(run.state.read_text())["places"] == []
    half = tables[0]["score"] / 2
    assert "is no date such as 2024-12-31" in run(
        write_table(
            tmp_path / "bad.csv", {**tables[0], "score": half, "day": ["31/12/2024"] * 350}
        ),
        "--date",
        "day",
        status=2,
    )
