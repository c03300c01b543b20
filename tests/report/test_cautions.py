"""What a report warns of before its numbers are read."""

import numpy as np
import pytest
from report_cases import findings_of

from skcal import Sample
from skcal._show import plain_number
from skcal.datasets import make_tempered
from skcal.notions import resolve_notion
from skcal.report import calibration_report
from skcal.report.answer import answer_of
from skcal.report.findings import _other_order
from skcal.report.measure import BinnedEce
from skcal.report.rows import _ece_rows
from skcal.report.words import cautions


def is_warned_of(y, proba):
    found = findings_of(y, proba)
    doubted = "columns may be in another order" in str(answer_of(found))
    assert doubted == (found.doubt is not None)
    return doubted


@pytest.mark.parametrize("n_classes", [2, 3])
def test_columns_in_another_order_are_suspected(n_classes):
    data = make_tempered(300, n_classes=n_classes, temperature=1.5, random_state=0)
    assert not is_warned_of(data.labels, data.proba)
    assert is_warned_of(data.labels, np.roll(data.proba, 1, axis=1))


def test_predictions_without_information_are_not_suspected():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    assert not is_warned_of(y, rng.uniform(size=400))
    assert not is_warned_of(y, np.full(400, 0.3))


def test_text_labels_whose_columns_are_in_another_order_are_suspected():
    data = make_tempered(400, n_classes=4, temperature=1.0, n_truth_draws=0, random_state=0)
    names = np.array(["low", "mid", "high", "top"])
    wrong = answer_of(findings_of(names[data.labels], data.proba))
    assert "wrong order: low, mid, high, top would fit" in wrong.sentences[0]
    assert "Recalibration does not fix this." in wrong.sentences[-1]
    assert wrong.title == "Miscalibrated: large"
    assert findings_of(names[data.labels], data.proba, labels=names).doubt is None


@pytest.mark.parametrize("n_classes", [4, 20, 50])
def test_poor_classifiers_are_not_suspected_of_another_order(n_classes):
    """Of 100 whose predictions say nothing, none is beyond four standard errors."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        proba = rng.dirichlet(np.ones(n_classes), 200)
        assert _other_order(proba, rng.integers(n_classes, size=200), range(n_classes)) is None


def test_another_order_of_many_classes_is_suspected_and_the_right_one_is_not():
    rng = np.random.default_rng(0)
    for _ in range(10):
        proba = rng.dirichlet(np.full(20, 0.5), 400)
        y = (proba.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1).clip(0, 19)
        assert _other_order(np.roll(proba, 1, axis=1), y, range(20)) is not None
        assert _other_order(proba, y, range(20)) is None


def test_predictions_that_are_always_right_look_like_those_of_training_data():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    always = np.where(y == 1, rng.uniform(0.6, 1, 200), rng.uniform(0, 0.4, 200))
    once_wrong = np.append(always[:-1], 1 - always[-1])
    for proba, warned in ((always, True), (once_wrong, False)):
        texts = cautions(Sample(y, proba), findings_of(y, proba))
        assert any("Every predicted class is right" in text for text in texts) == warned


@pytest.mark.parametrize("high", [0.02, 0.04])
def test_the_row_of_a_binned_ece_says_where_it_is_above_its_interval(high):
    ece = BinnedEce(
        resolve_notion("binary", np.zeros((1, 2))), 0.03, 0, high, 0.03, 0.05, 15, "uniform", 0, 0
    )
    row = _ece_rows(ece, {"confidence_level": 0.95})[0]
    assert ("without the noise" in row.detail) == (high == 0.02)
    assert row.with_limits == f"0.030 ({'without noise ' * (high == 0.02)}≤ {high:.3f})"


def test_a_sample_with_most_of_the_weight_is_named_and_no_number_is_long():
    rng = np.random.default_rng(0)
    p = np.append(1 - 1e-4, rng.uniform(0.05, 0.95, 299))
    y, weight = np.append(0, (rng.random(299) < p[1:]).astype(int)), np.append(1e9, np.ones(299))
    report = calibration_report(y, p, sample_weight=weight, n_resamples=19)
    assert "One sample has more than half of the weight" in " ".join(str(report).split())
    assert "worth 1 sample." in str(report)
    # A column of sentences has at least 40 columns, whatever stands before it.
    assert max(map(len, report.summary("full").splitlines())) <= 110
    brier = report.overall.validation.brier_score
    assert 0 <= brier.low <= brier.high <= 1
    weight[0] = 299.0
    assert "has more than half" not in str(calibration_report(y, p, sample_weight=weight / 2))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.000"),
        (0.0042, "0.0042"),
        (1.7e-6, "0.0000017"),
        (1.7e-98, "1.7e-98"),
        (-5.8e97, "-5.8e+97"),
        (62225.3, "62225.300"),
        (np.inf, "inf"),
    ],
)
def test_numbers_are_short(value, text):
    assert plain_number(value) == text
