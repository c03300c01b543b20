"""A monitor that is written and read continues with the same numbers; other text is refused."""

import json

import numpy as np
import pytest
from test_monitor import ALL, stream, watch

from skcal.monitoring import CalibrationMonitor


@pytest.mark.parametrize("notion", ALL)
def test_a_resumed_monitor_continues_to_the_last_bit(notion):
    batches = list(stream(8, notion, temperature=1.4))
    through = watch(batches, notion, alpha=0.1, run_length=1000)
    resumed = CalibrationMonitor(notion, alpha=0.1, run_length=1000)
    for proba, labels in batches:
        resumed = CalibrationMonitor.from_json(resumed.to_json()).update(proba, labels)
    assert resumed.to_json() == through.to_json()
    assert resumed.e_value_ == through.e_value_
    assert resumed.alarm_ == through.alarm_
    assert resumed.estimates_ == through.estimates_
    assert str(resumed) == str(through)


def test_labels_of_any_plain_kind_are_kept():
    for names in (["b", "a"], [-1, 1], [0.5, 2.0], [False, True]):
        monitor = CalibrationMonitor(labels=names).update([0.2, 0.7], [names[0], names[1]])
        resumed = CalibrationMonitor.from_json(monitor.to_json())
        assert resumed.classes_.tolist() == names
        assert resumed.update([0.5], [names[1]]).n_samples_seen_ == 3


def test_infinite_evidence_is_kept():
    monitor = CalibrationMonitor(labels=[0, 1]).update([0.0], [1])
    text = monitor.to_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert CalibrationMonitor.from_json(text).e_value_ == np.inf


def test_an_unused_monitor_is_kept():
    monitor = CalibrationMonitor("classwise", [3, 4, 5], 0.2)
    resumed = CalibrationMonitor.from_json(monitor.to_json())
    assert resumed.get_params() == monitor.get_params()


def test_the_journal_and_a_reset_monitor_are_kept():
    monitor = watch(stream(8, temperature=3.0))
    monitor.acknowledge("a new scanner").update(*next(stream(1, seed=5)))
    resumed = CalibrationMonitor.from_json(monitor.to_json())
    assert resumed.acknowledged_ == monitor.acknowledged_ is not None
    assert resumed.journal_ == monitor.journal_
    resumed = CalibrationMonitor.from_json(resumed.reset("recalibrated").to_json())
    assert [entry.what for entry in resumed.journal_] == ["alarm", "acknowledged", "reset"]
    assert (resumed.n_samples_seen_, resumed.alarm_, resumed.e_value_) == (0, None, 1.0)
    fresh = watch(stream(2))
    for batch in stream(2):
        resumed.update(*batch)
    assert resumed.log_e_value_ == fresh.log_e_value_


def test_the_state_has_a_constant_size(monkeypatch):
    monkeypatch.setattr("skcal.monitoring.history.MOST_ROWS", 32)
    monitor = CalibrationMonitor(labels=[0, 1])
    rng = np.random.default_rng(0)
    sizes = []
    for n in (75, 113):
        for x in rng.uniform(size=n):
            monitor.update([x], [int(rng.uniform() < x)])
        sizes.append(len(monitor.to_json()))
        assert len(monitor.to_frame()) <= 32
    assert max(sizes) < 100_000
    assert abs(sizes[1] - sizes[0]) < 0.05 * sizes[0]
    frame = monitor.to_frame()
    assert frame.n_samples.iloc[-1] == 188
    gaps = np.diff(frame.n_samples)
    assert gaps[-1] == 1 <= gaps[-8:].max() <= 4  # the last batches are the densest
    assert gaps.max() <= 5 * 188 / 32


def broken(change):
    """A state with one change."""
    document = json.loads(watch(stream(2)).to_json())
    change(document)
    return json.dumps(document)


def put(*path):
    *places, last, value = path

    def change(document):
        for place in places:
            document = document[place]
        document[last] = value

    return change


def entry(**parts):
    return {"what": "alarm", "n_samples": 1, "note": "", **parts}


HOSTILE = {
    "no JSON": ("{", "text is not JSON"),
    "nested": ("[" * 100_000, "text is not JSON"),
    "other JSON": ("[1]", "text is not the state"),
    "format": (broken(put("format", "x")), "text is not the state"),
    "version": (broken(put("version", 1)), "version is 1, and 4 can be read"),
    "alpha": (broken(put("alpha", 3)), "parameters that are not valid"),
    "run length": (broken(put("run_length", "long")), "parameters that are not valid"),
    "layout": (broken(put("layout", 3)), "layout is missing or of another kind"),
    "columns": (broken(put("layout", "n_columns", 10**9)), "classes is not one name or number"),
    "classes": (broken(put("layout", "classes", [0, 1, 2, 2])), "classes is not one name"),
    "kinds of classes": (broken(put("layout", "classes", [[0], 1, 2, 3])), "classes is not one"),
    "nan": (broken(put("layout", "classes", [0, 1, 2, float("nan")])), "NaN is no number of JSON"),
    "names": (broken(put("layout", "names", ["a"])), "names is not one name a column"),
    "notion": (broken(put("layout", "notion", "no")), "layout is not valid"),
    "another notion": (broken(put("layout", "notion", "classwise")), "evidence has 1 problems"),
    "vectors": (broken(put("layout", "notion", "canonical")), "evidence has other parts"),
    "no evidence": (broken(lambda d: d.pop("evidence")), "evidence is missing"),
    "parts": (broken(lambda d: d["evidence"][0].pop("totals")), "evidence has other parts"),
    "shape": (broken(put("evidence", 0, "totals", [1.0])), "totals has shape"),
    "ragged": (broken(put("evidence", 0, "totals", [[1.0], 2.0])), "totals"),
    "text": (broken(put("evidence", 0, "totals", ["a", 0, 0, 0])), "an entry is not a number"),
    "null": (broken(put("evidence", 0, "totals", None)), "totals is not an array of numbers"),
    "negative": (broken(put("evidence", 0, "totals", [-1, 0, 0, 0, 0])), "negative count"),
    "begun": (broken(put("evidence", 0, "begun", [9e9, 0, 0, 0])), "begun is not between 0 and"),
    "not a number": (broken(put("evidence", 0, "log_wealth", 0, float("nan"))), "NaN is no number"),
    "infinite": (broken(put("evidence", 0, "bias_sums", ["inf", 0])), "not possible"),
    "huge": (broken(put("evidence", 0, "bias_sums", [10**400, 0])), "bias_sums"),
    "huge sums": (broken(put("evidence", 0, "bias_sums", [1e308, 0])), "not possible"),
    "negative sums": (broken(put("evidence", 0, "LearnedBins", 0, 0, 0, -1)), "not possible"),
    "samples": (broken(put("n_samples", 1.5)), "n_samples is 1.5, not a count"),
    "alarm": (broken(put("alarm", True)), "alarm is True, not a count"),
    "rows": (broken(put("history", "rows", [[1.0]])), "rows has shape"),
    "counts": (broken(put("history", "rows", 0, 0, "inf")), "not possible"),
    "batches": (broken(put("history", "n_batches", 0)), "n_batches is 0"),
    "acknowledged": (broken(put("acknowledged", -1)), "acknowledged is -1, not a count"),
    "journal": (broken(put("journal", 3)), "journal is missing or of another kind"),
    "entries": (broken(put("journal", [{"what": 1}])), "what is missing or of another kind"),
    "since": (broken(put("journal", [entry(since=0)])), "since is 0, not a count"),
    "half a range": (broken(put("journal", [entry(since=1, low=0.1)])), "a range without its ends"),
    "no probability": (broken(put("journal", [entry(low=2, high=3)])), "low is 2, not a number"),
    "runs": (broken(put("evidence", 0, "runs", [[0.0]])), "runs has shape"),
}


@pytest.mark.parametrize(("text", "message"), HOSTILE.values(), ids=HOSTILE)
def test_other_text_is_refused_with_what_is_wrong(text, message):
    with pytest.raises(ValueError, match=message):
        CalibrationMonitor.from_json(text)


def test_what_is_no_text_is_refused():
    with pytest.raises(ValueError, match="text is not JSON"):
        CalibrationMonitor.from_json(None)
