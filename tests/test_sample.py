"""A sample is read once, does not change, and remembers what was computed of it."""

import copy
import json
import pickle
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn import config_context

from skcal import calibration_error_interval, calibration_report, calibration_test
from skcal.__main__ import main
from skcal.hypothesis_tests import equivalence_test, joint
from skcal.metrics import error_limits
from skcal.notions import ANSWERS, NOTIONS
from skcal.report import compare as report_compare
from skcal.report import report as report_room
from skcal.sample import Sample

RNG = np.random.default_rng(0)
N = 150
P = RNG.uniform(size=N)
Y = (RNG.uniform(size=N) < P**1.5).astype(int)
ROWS = RNG.dirichlet(np.ones(3), N)
LABELS = np.array(["a", "b", "c"])[[RNG.choice(3, p=row) for row in ROWS]]
WEIGHT = np.where(np.arange(N) % 7 == 3, 0.0, RNG.uniform(0.5, 2, N))
GROUPS = RNG.integers(0, 30, N)
ARRAYS = ("proba", "codes", "weight", "classes", "logits", "outcomes", "votes")


def sample(**options):
    return Sample(Y, P, sample_weight=WEIGHT, groups=GROUPS, **options)


def test_it_has_the_rows_that_were_passed_and_is_equal_to_itself_alone():
    one = sample()
    assert len(one) == N
    assert one != sample()
    assert one == one.asked("auto") == one.asked("binary")
    np.testing.assert_array_equal(one.weight, WEIGHT)  # also those of weight 0
    assert len(one.counted) == np.count_nonzero(WEIGHT)
    assert len(one.take(np.arange(5, 25))) == 20


def test_nothing_of_it_can_be_changed():
    one = Sample(Y, np.log(P / (1 - P)), from_logits=True)
    votes = Sample(RNG.integers(1, 4, (N, 3)), ROWS)
    for each in (one, votes, one.take(slice(3, 60)), pickle.loads(pickle.dumps(one))):
        arrays = [array for name in ARRAYS if (array := getattr(each, name)) is not None]
        assert len(arrays) >= 5
        for array in arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[1]
        with pytest.raises(FrozenInstanceError):
            each.weight = np.ones(N)
    P[0] = P[0]  # arrays that were passed stay writeable


@pytest.mark.parametrize(
    "derived",
    [
        lambda one: one.take(np.arange(N)),
        lambda one: one._replace(resolution=None),
        copy.copy,
        copy.deepcopy,
        lambda one: pickle.loads(pickle.dumps(one)),
    ],
)
def test_what_is_made_of_it_begins_with_an_empty_memory(derived):
    one = sample()
    assert one.once("name", lambda: 1) == 1
    assert one.once("name", lambda: 2) == 1
    assert len(pickle.dumps(one)) == len(pickle.dumps(sample()))
    assert derived(one).once("name", lambda: 3) == 3


def test_it_remembers_for_each_notion_and_with_or_without_rows_of_weight_0():
    one = Sample(LABELS, ROWS, sample_weight=WEIGHT)
    for number, notion in enumerate(("confidence", "classwise", "top-label", "canonical", "top-2")):
        assert one.asked(notion).once("name", lambda n=number: n) == number
    for number, notion in enumerate(("confidence", "classwise", "top-label", "canonical", "top-2")):
        assert one.asked(notion).counted.once("name", lambda: None) == number
    binary = sample()
    assert binary.once("name", lambda: "of events") == "of events"
    assert binary.asked(ANSWERS).once("name", lambda: "of answers") == "of answers"
    assert binary.asked(NOTIONS["binary"]).once("name", lambda: None) == "of events"


def test_threads_compute_once_and_an_error_is_not_remembered():
    one, calls = sample(), Counter()

    def compute(name):
        calls[name] += 1
        time.sleep(0.02)
        return name

    with ThreadPoolExecutor(8) as threads:
        names = list("abab" * 4)
        found = threads.map(lambda name: one.once(name, lambda: compute(name)), names)
        assert list(found) == names
    assert calls == {"a": 1, "b": 1}
    with pytest.raises(ZeroDivisionError):
        one.once("c", lambda: 1 / 0)
    assert one.once("c", lambda: one.once("d", lambda: 4)) == 4  # one asks for another


@pytest.fixture
def counted(monkeypatch):
    """How often a verdict is drawn, an error is estimated, and a sample is read."""
    calls = Counter()

    def counting(owner, name, label):
        function = getattr(owner, name)

        def call(*args, **kwargs):
            calls[label] += 1
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, call)

    counting(joint, "_tested", "verdicts")
    counting(error_limits, "_estimate", "limits")
    for module in (report_room, report_compare):
        counting(module, "read_sample", "reads")
    return calls


def file_of(folder, y, p):
    path = folder / "r.csv"
    path.write_text("y,p\n" + "".join(f"{a},{b:.1f}\n" for a, b in zip(y, p, strict=True)))
    return str(path)


@pytest.mark.parametrize("resolution", ["none", "auto", "0.1"])
@pytest.mark.parametrize("limit", [0.004, 0.02, 0.2])
def test_a_gate_decides_by_the_limits_that_are_printed(
    resolution, limit, tmp_path, capsys, counted
):
    """The verdict of an answer and of its gate are one, drawn once by the step that was passed."""
    rng = np.random.default_rng(0)
    p = np.round(rng.uniform(size=2000) ** 3, 1)
    y = (rng.random(2000) < np.where(p == 0, 0.03, p)).astype(int)
    command = ["evaluate", file_of(tmp_path, y, p), "--score", "p", "--label", "y", "--json"]
    status = main([*command, "--max-error", str(limit), "--resolution", resolution])
    [report] = json.loads(capsys.readouterr().out)
    [answer], [bounds] = report["answers"], report["gate"]["results"]
    low = answer["error"]["low"]
    assert bounds["low"] == low
    assert (low > 0) == (resolution == "none")  # rounding explains what happened at 0
    assert status == (1 if low > limit else 0 if answer["error"]["high"] <= limit else 3)
    assert counted["verdicts"] == 1
    assert counted["limits"] == 1 + (answer["gain"] is not None)


def test_a_report_of_two_models_reads_each_once_and_draws_a_verdict_of_each(counted):
    options = {"random_state": 0, "n_resamples": 19}
    calibration_report(Y, P, compare=P**1.3, **options)
    assert counted["verdicts"] == 2


def test_questions_about_one_sample_draw_its_verdict_once(counted):
    one = sample()
    test = calibration_test(one)
    interval = calibration_error_interval(one)
    below = equivalence_test(one, limit=0.5)
    assert (counted["verdicts"], counted["limits"]) == (1, 1)
    weighted = {"sample_weight": WEIGHT, "groups": GROUPS}
    assert calibration_test(Y, P, **weighted).pvalue == test.pvalue
    assert calibration_error_interval(Y, P, **weighted) == interval
    assert str(equivalence_test(Y, P, limit=0.5, **weighted)) == str(below)
    assert calibration_test(one, random_state=1).pvalue != test.pvalue


def test_evaluate_ends_with_how_the_file_was_read(tmp_path, capsys):
    p = np.round(RNG.uniform(size=300), 1)
    y = (RNG.random(300) < p).astype(int)
    command = ["evaluate", file_of(tmp_path, y, p), "--score", "p", "--label", "y"]
    for more in ([], ["--max-error", "0.2"], ["--max-error", "0.2", "--details"]):
        main([*command, *more])
        printed = " ".join(capsys.readouterr().out.split())
        assert printed.endswith(
            f"300 samples of two classes. The event is label 1 ({y.sum()} of 300, "
            f"{100 * y.mean():.3g} %); predictions are its probability (column p), in steps of 0.1."
        )
        main([*command, *more, "--json"])
        [report] = json.loads(capsys.readouterr().out)
        assert printed.endswith(report["read_as"])


@pytest.mark.parametrize("command", ["report", "compare"])
def test_reports_of_files_say_once_how_they_were_read(command, tmp_path, capsys, few_draws):
    """Which column it was, and by what it was divided; a comparison tells it of the first file."""
    p = np.round(100 * RNG.uniform(size=60))
    y = (RNG.random(60) < p / 100).astype(int)
    path = file_of(tmp_path, y, p)
    files = [path] * (1 + (command == "compare"))
    main([command, *files, "--score", "p", "--label", "y", "--percent", "--resamples", "19"])
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("(column p)") == 1
    assert printed.count("were divided by 100") == 1


def test_it_knows_impossible_outcomes_reversed_columns_and_the_steps_of_predictions():
    rng = np.random.default_rng(0)
    p = np.round(rng.uniform(size=400) * 8) / 8
    y = rng.uniform(size=400) < p
    one = Sample(y, p)
    assert one.likely_steps == 8
    assert not one.is_reversed
    assert not one.impossible.any()
    other = Sample(~y, p)
    assert other.is_reversed
    assert other.impossible.tolist() == np.isin(p, (0, 1)).tolist()
    shares = Sample([[0.5, 0.5], [1, 0], [0, 1]], [0.0, 0.0, 0.5])
    assert shares.impossible.tolist() == [True, False, False]
    assert Sample(y, rng.uniform(size=400)).likely_steps is None


def test_blocks_hold_all_samples_in_their_order_and_fit_into_the_bytes():
    one = Sample(LABELS, ROWS, sample_weight=WEIGHT)
    parts = list(one.blocks(8, most=80))
    assert [len(part) for part in parts[:-1]] == [10] * (len(parts) - 1)
    assert np.array_equal(np.concatenate([part.proba for part in parts]), one.proba)
    assert np.array_equal(np.concatenate([part.weight for part in parts]), one.weight)
    with config_context(working_memory=1):
        assert len(next(one.blocks(2**19))) == 2
