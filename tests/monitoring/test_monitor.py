"""What a monitor promises to who feeds it batches."""

import copy
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit
from scipy.stats import binom
from sklearn.base import clone

from skcal._show import html_text
from skcal.datasets import make_tempered
from skcal.monitoring import CalibrationMonitor, merge_e_values
from skcal.monitoring.bets import Batch
from skcal.monitoring.evidence import Evidence
from skcal.notions import NOTIONS, make_problems

ALL = [*NOTIONS, "top-2"]


def stream(n_batches, notion="confidence", temperature=1.0, size=50, seed=0):
    """Batches of predictions and labels."""
    for k in range(n_batches):
        options = {"n_truth_draws": 0, "random_state": 1000 * seed + k}
        data = make_tempered(size, temperature=temperature, n_classes=4, **options)
        if notion == "binary":
            proba = data.proba[:, 0] / data.proba[:, :2].sum(axis=1)
            keep = data.labels < 2
            yield proba[keep], 1 - data.labels[keep]
        elif notion == "multi-label":
            yield data.proba, np.eye(4)[data.labels]
        else:
            yield data.proba, data.labels


def watch(batches, notion="confidence", **options):
    monitor = CalibrationMonitor(notion, **options)
    for proba, labels in batches:
        monitor.update(proba, labels)
    return monitor


@pytest.mark.parametrize("notion", ALL)
def test_an_overconfident_model_is_found(notion):
    monitor = watch(stream(20, notion, temperature=2.0), notion)
    assert monitor.alarm_ is not None
    assert monitor.alarm_ <= monitor.n_samples_seen_
    assert monitor.e_value_ > 1 / monitor.alpha
    assert monitor.notion_ == notion
    assert "ALARM" in str(monitor)


@pytest.mark.parametrize("notion", ALL)
def test_the_evidence_is_that_of_the_problems(notion):
    batches = list(stream(4, notion, temperature=2.0))
    monitor = watch(batches, notion)
    weights = np.ones(50)
    first = make_problems(*batches[0], NOTIONS.get(notion, notion), weights[: len(batches[0][1])])
    width = first[0].features.shape[1]
    of_all = len(first) == 1  # no bets on ranges of a single class
    found = [Evidence(max(width, 2), width == 1, of_all) for _ in first]
    for proba, labels in batches:
        problems = make_problems(proba, labels, NOTIONS.get(notion, notion), weights[: len(labels)])
        for evidence, problem in zip(found, problems, strict=True):
            batch = Batch.of(problem.features, problem.outcomes, problem.weight)
            evidence.settle(evidence.bet(batch))
    values = [np.exp(evidence.log_e_value) for evidence in found]
    by_class = list(monitor.e_values_.values())[-len(values) :]
    assert_allclose(by_class, values)
    expected = merge_e_values(values)
    if notion == "top-label":
        assert next(iter(monitor.e_values_)) == "all"
        confidence = watch(batches, "confidence")
        expected = (expected + confidence.e_value_) / 2
    assert_allclose(monitor.e_value_, expected)


def test_before_any_sample_there_is_no_evidence():
    monitor = CalibrationMonitor()
    assert (monitor.e_value_, monitor.detector_, monitor.alarm_) == (1.0, 0.0, None)
    assert monitor.n_samples_seen_ == len(monitor.to_frame()) == 0
    assert monitor.estimates_ == monitor.e_values_ == {}
    monitor.update(np.empty((0, 3)), [])
    assert monitor.update([], []) is monitor
    assert str(monitor) == "No samples yet"


def test_two_columns_and_one_are_the_same_binary_question():
    batches = list(stream(5, "binary"))
    one = watch(batches, "auto")
    two = watch([(np.column_stack([1 - p, p]), y) for p, y in batches], "auto")
    assert one.notion_ == two.notion_ == "binary"
    assert_allclose(one.log_e_value_, two.log_e_value_)


def test_labels_name_the_columns():
    names = np.array(["d", "a", "c", "b"])
    batches = list(stream(3))
    named = watch([(p, names[y]) for p, y in batches], labels=names)
    assert named.log_e_value_ == watch(batches).log_e_value_
    frames = [(pd.DataFrame(p, columns=names), names[y]) for p, y in batches]
    assert watch(frames).log_e_value_ == named.log_e_value_
    assert named.classes_.tolist() == names.tolist()


def test_samples_of_weight_0_are_not_seen_and_counts_repeat_rows():
    batches = list(stream(3))
    weighted, repeated = CalibrationMonitor(), CalibrationMonitor()
    for proba, labels in batches:
        weight = np.arange(50) % 3
        weighted.update(proba, labels, weight)
        repeated.update(np.repeat(proba, weight, axis=0), np.repeat(labels, weight))
    assert_allclose(weighted.log_e_value_, repeated.log_e_value_)
    assert weighted.n_samples_seen_ == sum(np.arange(50) % 3 > 0) * 3
    assert_allclose(*(next(iter(m.estimates_.values())) for m in (weighted, repeated)))


def test_zeros_that_happen_are_an_alarm_at_once():
    monitor = CalibrationMonitor(labels=[0, 1]).update([0.0, 0.3], [1, 0])
    assert monitor.e_value_ == monitor.detector_ == np.inf
    assert monitor.alarm_ == 2
    assert "e-value inf" in str(monitor)


def test_the_detector_has_an_alarm_of_its_own():
    batches = [*stream(30), *stream(30, temperature=1.7, seed=1)]
    monitor = watch(batches, run_length=10_000)
    assert monitor.detector_ > 10_000
    early = watch(batches[: monitor.alarm_ // 50 - 1], run_length=10_000)
    assert early.detector_ < 10_000
    assert "on average" in str(monitor)


def false_alarms(n_streams, n_batches, size):
    """Calibrated binary streams with an alarm, of uniform predictions and of rare events."""
    alarms = 0
    for seed in range(n_streams):
        rng = np.random.default_rng(seed)
        monitor = CalibrationMonitor(labels=[0, 1])
        for _ in range(n_batches):
            x = rng.uniform(size=size) if seed % 2 else expit(rng.normal(-4, 1, size))
            monitor.update(x, (rng.uniform(size=size) < x).astype(int))
        alarms += monitor.alarm_ is not None
    return alarms


def test_alarms_on_calibrated_streams_are_rare():
    # More than 7 of 40 at a rate of 5 % have a probability of 7e-4.
    assert false_alarms(40, 6, 100) <= 7


@pytest.mark.slow
def test_alarms_on_long_calibrated_streams_are_rare():
    assert false_alarms(400, 60, 100) <= binom.isf(1e-3, 400, 0.05)


@pytest.mark.slow
def test_predictions_may_depend_on_the_past():
    """A forecaster who follows the outcomes is calibrated, and so is who watches the evidence."""
    alarms = 0
    for seed in range(200):
        rng, monitor, ones = np.random.default_rng(seed), CalibrationMonitor(labels=[0, 1]), 1.0
        for n in range(2, 100):
            x = ones / n if monitor.e_value_ < 2 else 0.5  # Pólya's urn, left for a coin
            y = int(rng.uniform() < x)
            ones += y
            monitor.update([x], [y])
        alarms += monitor.alarm_ is not None
    assert alarms <= binom.isf(1e-3, 200, 0.05)


def test_confidence_sequences_cover_at_all_times():
    wrong = 0
    for seed in range(40):
        rng, monitor = np.random.default_rng(seed), CalibrationMonitor(labels=[0, 1], alpha=0.1)
        truth, n = np.zeros(2), 0
        for batch in range(12):
            x = rng.uniform(0.1, 0.9, 40)
            q = expit(logit(x) + 0.8 * (batch > 5))
            monitor.update(x, (rng.uniform(size=40) < q).astype(int))
            truth += [(q - x).sum(), ((q - x) ** 2).sum()]
            n += 40
            found = monitor.estimates_["binary"]
            outside = not found.bias_low <= truth[0] / n <= found.bias_high
            if outside or found.rms_error_low**2 > truth[1] / n:
                wrong += 1
                break
    # At 2 α = 20 % more than 17 of 40 have a probability of 2e-4.
    assert wrong <= 17


def test_the_limits_close_in_on_the_truth():
    rng, monitor = np.random.default_rng(0), CalibrationMonitor(labels=[0, 1])
    for _ in range(40):
        x = rng.uniform(0.1, 0.9, 1000)
        monitor.update(x, (rng.uniform(size=1000) < x + 0.08).astype(int))
    found = monitor.estimates_["binary"]
    assert 0.06 < found.bias_low < 0.08 < found.bias_high < 0.1
    assert 0.7**0.5 * 0.08 < found.rms_error_low < 0.08


def test_merge_multiplies_independent_evidence():
    first, second = (watch(stream(6, temperature=1.3, seed=seed)) for seed in (1, 2))
    logs, starts = (
        [getattr(monitor._evidence[0], name) for monitor in (first, second)]
        for name in ("log_wealth_of_bets", "log_detector")
    )
    kept = copy.deepcopy(second)
    assert first.merge(second) is first
    merged = first._evidence[0]
    assert_allclose(merged.log_wealth_of_bets, sum(logs))
    assert_allclose(merged.log_detector, np.logaddexp(*starts))
    assert merged.totals[0] == first.n_samples_seen_ == 600
    assert first.to_frame().n_samples.iloc[-1] == 600
    assert kept.to_json() == second.to_json()
    both = watch([*stream(6, temperature=1.3, seed=1), *stream(6, temperature=1.3, seed=2)])
    assert first.plan(1.1, batch_size=50) == both.plan(1.1, batch_size=50)
    empty = CalibrationMonitor("confidence").merge(second)
    assert empty.plan(1.1, batch_size=50) == second.plan(1.1, batch_size=50)
    for ours, theirs in zip(empty.found_by_now_[-1], second.found_by_now_[-1], strict=True):
        assert ours == pytest.approx(theirs)
    assert_allclose(empty.log_e_value_, second.log_e_value_)
    assert empty.merge(CalibrationMonitor()).n_samples_seen_ == second.n_samples_seen_


def test_an_alarm_outlives_a_merge():
    alarmed, quiet = watch(stream(8, temperature=3.0)), watch(stream(2))
    alarm = alarmed.alarm_
    assert quiet.merge(alarmed).alarm_ == quiet.n_samples_seen_
    assert alarmed.merge(watch(stream(1))).alarm_ == alarm


@pytest.mark.parametrize(
    ("other", "error", "message"),
    [
        (watch(stream(1), alpha=0.1), ValueError, "different alpha"),
        (watch(stream(1), run_length=100), ValueError, "different run_length"),
        (watch(stream(1), "canonical"), ValueError, "different notion"),
        (watch(stream(1, "binary"), "auto"), ValueError, "different n_columns"),
        (watch([(p, y) for p, y in stream(1)], labels=[0, 1, 3, 2]), ValueError, "classes"),
        (3, TypeError, "cannot merge a int"),
    ],
)
def test_monitors_of_other_models_do_not_merge(other, error, message):
    monitor = watch(stream(2))
    before = monitor.to_json()
    with pytest.raises(error, match=message):
        monitor.merge(other)
    assert monitor.to_json() == before


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (([[0.5, 0.6, 0, 0]], [0]), "X row 0 sums to 1.1"),
        (([[0.5, 0.5]], [0]), "X has 2 columns, earlier batches have 4"),
        (([0.5], [0]), "X has one dimension, earlier batches have 4 columns"),
        (([[1, 0, 0, 0.0]], [7]), "y row 0 is 7, which is not one of the classes"),
        (([[1, 0, 0, 0.0]], [0, 1]), "X has 1 rows, y 2"),
        (([[1, 0, 0, 0.0]], [0], [1.5]), "sample_weight row 0 is 1.5: neither a count"),
        (([[1, 0, 0, 0.0]], [0], [-1]), "sample_weight row 0 is -1: negative"),
    ],
)
def test_what_is_not_valid_changes_nothing(batch, message):
    monitor = watch(stream(2))
    before = monitor.to_json()
    with pytest.raises(ValueError, match=message):
        monitor.update(*batch)
    assert monitor.to_json() == before


def test_groups_share_a_weight_and_single_ones_change_nothing(rng):
    p = rng.uniform(size=600)
    y = (rng.uniform(size=600) < p).astype(int)
    alone = CalibrationMonitor().update(p, y)
    assert CalibrationMonitor().update(p, y, groups=np.arange(600)).to_json() == alone.to_json()
    weights = CalibrationMonitor().update(p[:150], y[:150], np.full(150, 1 / 3))
    shared = CalibrationMonitor().update(p[:150], y[:150], groups=np.arange(150) % 50)
    assert_allclose(shared.log_e_value_, weights.log_e_value_)
    with pytest.raises(ValueError, match="groups has 2 rows, not 3"):
        alone.update([0.1, 0.2, 0.3], [0, 1, 0], groups=[1, 1])


def test_a_lens_that_fails_in_the_middle_of_a_batch_changes_nothing(monkeypatch):
    monkeypatch.setattr("skcal.monitoring.layout._PART_BYTES", 64 * 4 * 20)

    def lens(proba):
        if (proba[:, 0] == 1).any():
            raise ValueError("no such thing")
        return np.broadcast_to([0, 0, 1, 1], proba.shape)

    [(proba, labels)] = stream(1)
    bad = proba.copy()
    bad[-1] = [1, 0, 0, 0]
    monitor = CalibrationMonitor(lens).update(proba, labels)
    before = monitor.log_e_value_
    with pytest.raises(ValueError, match="no such thing"):
        monitor.update(bad, labels)
    assert (monitor.log_e_value_, monitor.n_samples_seen_) == (before, 50)
    again = CalibrationMonitor(lens).update(proba, labels)
    for watching in (monitor, again):
        watching.update(proba, labels)
    assert monitor.log_e_value_ == again.log_e_value_


def test_columns_in_another_order_are_refused():
    [(proba, labels)] = stream(1)
    frame = pd.DataFrame(proba, columns=range(4))
    monitor = CalibrationMonitor().update(frame, labels)
    with pytest.raises(ValueError, match="Bring the columns into the same order"):
        monitor.update(frame[[1, 0, 2, 3]], labels)


@pytest.mark.parametrize(
    "options", [{"alpha": 1}, {"alpha": 1e-320}, {"alpha": "x"}, {"run_length": 0}]
)
def test_parameters_are_checked(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        CalibrationMonitor(**options).update([0.5], [1])


def test_a_monitor_is_cloned_without_its_past_and_pickled_with_it():
    monitor = watch(stream(2), alpha=0.01)
    assert clone(monitor).get_params() == monitor.get_params()
    assert clone(monitor).n_samples_seen_ == 0
    assert pickle.loads(pickle.dumps(monitor)).to_json() == monitor.to_json()


def test_a_lens_is_watched():
    def pairs(proba):
        return np.broadcast_to([0, 0, 1, 1], proba.shape)

    monitor = watch(stream(4, temperature=2.0), pairs)
    assert str(monitor.notion_) == "pairs"
    with pytest.raises(ValueError, match="is code, which JSON does not hold"):
        monitor.to_json()
    with pytest.raises(ValueError, match="is a callable, which JSON does not hold"):
        CalibrationMonitor(pairs).to_json()


@pytest.mark.parametrize("n", [1_000, pytest.param(12_000, marks=pytest.mark.slow)])
def test_a_large_batch_is_one_batch_and_needs_little_memory(n, monkeypatch, rng):
    proba = rng.dirichlet(np.ones(10), n)
    labels = (proba.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)
    for notion in ("canonical", "top-label"):
        whole, cut = (CalibrationMonitor(notion).update(proba[:500], labels[:500]) for _ in "ab")
        whole.update(proba, labels)
        with monkeypatch.context() as patch:
            patch.setattr("skcal.monitoring.layout._PART_BYTES", 2**15)
            tracemalloc.start()
            cut.update(proba, labels)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert_allclose(cut.log_e_value_, whole.log_e_value_)
        assert peak < max(proba.nbytes, 2**19)


def test_a_first_batch_is_evidence_whose_order_is_chosen_without_the_labels(rng):
    proba = rng.uniform(size=20_000)
    labels = (rng.uniform(size=20_000) < proba**1.1).astype(int)
    once = CalibrationMonitor().update(proba, labels)
    assert once.alarm_ == 20_000
    assert "the event happens less often than predicted" in str(once)
    for seed in range(5):  # files that are sorted by their labels
        labels = (np.random.default_rng(100 + seed).uniform(size=20_000) < proba).astype(int)
        order = np.argsort(labels)
        assert CalibrationMonitor().update(proba[order], labels[order]).alarm_ is None


def test_limits_leave_out_0_only_in_an_alarm(rng):
    seen = 0
    for power in (1.0, 1.1, 1.3, 2.0):
        monitor = CalibrationMonitor()
        for size in (10, 300, 40, 5_000):
            proba = rng.uniform(size=size)
            monitor.update(proba, (rng.uniform(size=size) < proba**power).astype(int))
            estimate = monitor.estimates_["binary"]
            if estimate.bias_low > 0 or estimate.bias_high < 0:
                seen += 1
                assert monitor.e_value_ >= 20
    assert seen


def test_frames_tell_the_course():
    batches = list(stream(10, temperature=1.5))
    monitor, last = watch(batches), watch(batches[:-1])
    frame = monitor.to_frame()
    assert frame.n_samples.tolist() == list(range(50, 501, 50))
    assert_allclose(frame.log_e_value.iloc[[-2, -1]], [last.log_e_value_, monitor.log_e_value_])
    for name, value in monitor.estimates_["confidence"]._asdict().items():
        assert_allclose(frame[name].iloc[-1], value)
    proba, labels = batches[-1]
    hit = proba.argmax(axis=1) == labels
    assert_allclose(frame.recent_bias.iloc[-1], (hit - proba.max(axis=1)).mean())
    assert watch(batches, "classwise").to_frame().bias.isna().all()
    assert np.isfinite(watch(batches, "top-label").to_frame()).all(axis=None)


def test_what_is_printed_and_shown_is_short():
    monitor = watch(stream(3), "top-label")
    assert len(str(monitor).splitlines()) == 5
    bundle = monitor._repr_mimebundle_()
    assert bundle["text/plain"] == str(monitor)
    for line in str(monitor).splitlines():
        assert html_text(line) in bundle["text/html"] == monitor._repr_html_()
    named = CalibrationMonitor("classwise", labels=["a\x1b", "b<"]).update([[1.0, 0]], ["b<"])
    assert "class a\\x1b" in str(named)
    assert "b&lt;" in named._repr_html_()


def test_an_alarm_names_the_mean_where_that_is_off_and_else_the_slope():
    rng = np.random.default_rng(0)
    drifts = [
        (0.01, 0.2, lambda p: 1.8 * p, "more often than predicted"),
        (0, 1, lambda p: expit(logit(p) / 2), "predictions are too extreme"),
        (0.3, 0.7, lambda p: expit(3 * logit(p)), "predictions are not extreme enough"),
    ]
    for low, high, truth, said in drifts:
        p = rng.uniform(low, high, 4000)
        y = (rng.uniform(size=4000) < truth(p)).astype(int)
        flat = CalibrationMonitor().update(p, y)
        assert flat.alarm_ is not None
        assert said in str(flat)
    variance, slope = p * (1 - p), logit(p)
    slope -= np.average(slope, weights=variance)
    parts = ((y - p).sum(), variance.sum()), (slope @ (y - p), variance @ slope**2)
    expected = [score / np.sqrt(information) for score, information in parts]
    assert_allclose(flat._history.leanings(0), expected)


@pytest.mark.parametrize("notion", ["binary", "confidence", "canonical", "classwise"])
@pytest.mark.parametrize("certain", [0.0, 1.0])
def test_predictions_without_doubt_can_be_shown(notion, certain):
    """As a tree gives: all are 0 or 1 and right, so that there is no variance to plan by."""
    y = np.array([0, 1, 0, 1] if certain else [0, 0, 0, 0])
    monitor = CalibrationMonitor(notion=notion, labels=[0, 1])
    monitor.update(np.column_stack([1 - y, y]).astype(float), y)
    text = str(monitor)
    assert text.startswith("No alarm after 4 samples")
    assert ("could have been found" in text) == (notion != "classwise")
    assert monitor._repr_html_()
    assert all(found["ratio_high"] is None for found in monitor.to_dict()["found_by_now"])
