"""What a report holds of predictions of one outcome, each number that of the public function."""

import json

import numpy as np
import pytest
from report_cases import FEW, binary, plain_report

from skcal._show import share
from skcal.metrics import (
    decision_curve,
    flexible_calibration_curve,
    net_benefit,
    validation_measures,
)
from skcal.report import calibration_report
from skcal.report.rows import headline_rows

OPTIONS = FEW | {"n_resamples": 39}


@pytest.fixture(scope="module")
def report():
    return calibration_report(*binary(), by=np.arange(400) % 2, **OPTIONS)


@pytest.fixture(scope="module")
def page(report):
    return report._repr_html_()


def test_numbers_and_curves_are_those_of_the_public_functions(report, page):
    y, p = binary()
    part = json.loads(report.to_json())["overall"]
    curve, decision = flexible_calibration_curve(y, p), decision_curve(y, p)
    np.testing.assert_allclose(part["curve"]["band_high"], curve.band_high)
    np.testing.assert_allclose(part["decision"]["band_low"], decision.band_low)
    np.testing.assert_allclose(part["decision"]["treat_all"], decision.treat_all)
    rate, value, low, high = part["decision"]["at_prevalence"]
    assert rate == y.mean()
    assert value == net_benefit(y, p, threshold=rate)
    assert low < value < high
    found = validation_measures(y, p, n_resamples=OPTIONS["n_resamples"], random_state=0)
    np.testing.assert_allclose(part["validation"]["ici"], found.ici)
    lines = [
        line
        for line in report.summary("full").splitlines()
        if line.startswith("net benefit at the")
    ]
    assert f"{value:.3f}" in lines[0]
    assert page.count('alt="Calibration curve: ') == page.count('alt="Decision curve: ') == 1


def test_groups_have_numbers_but_no_figure_of_decisions(report, page, tmp_path):
    y, p = binary()
    assert [len(part.decision.thresholds) for part in report.subgroups] == [100, 100]
    assert [part.tuned for part in report.subgroups] == [[], []]  # without search=True
    odd = np.arange(400) % 2 == 1
    found = validation_measures(y[odd], p[odd], n_resamples=19, random_state=0)
    ratio = "{:.2f} ({:.2f} to {:.2f})".format(*found.observed_expected_ratio)
    cells = ["200", share(p[odd].mean()), share(y[odd].mean()), ratio]
    [line] = [line for line in str(report).splitlines() if ratio in line]
    assert line.split("  ")[0] == "1"
    assert all(cell in line for cell in cells)
    assert ratio in page
    report.save(tmp_path / "report.tex")
    row = " & ".join(["1", *cells]).replace("%", r"\%")
    assert row in (tmp_path / "report.tex").read_text()


def test_several_classes_have_none_of_it():
    overall = plain_report().overall
    assert overall.validation is overall.curve is overall.decision is None


def test_one_outcome_alone_leaves_the_decision_curve_out():
    _, p = binary()
    report = calibration_report(np.ones(100, dtype=int), p[:100], labels=[0, 1], **OPTIONS)
    assert report.overall.decision is None
    assert "decision curve" not in str(report)


def rows_of(report):
    return {row.quantity: row for row in headline_rows(report.overall, report.settings)}


@pytest.mark.filterwarnings("ignore:All predictions in")
def test_votes_and_samples_without_events_have_their_ratio_and_the_reason_for_no_slope():
    _, p = binary()
    votes = np.random.default_rng(0).integers(1, 5, (len(p), 2))
    found = rows_of(calibration_report(votes, p, **OPTIONS))
    expected = votes[:, 1].sum() / (votes.sum(axis=1) @ p)
    assert found["O/E ratio"].value == pytest.approx(expected, rel=1e-9)
    assert "Pass a row for each vote" in found["calibration slope"].detail
    none = np.zeros(len(p), dtype=int)
    found = rows_of(calibration_report(none, p, labels=[0, 1], **OPTIONS))
    assert found["O/E ratio"].value == 0 < found["O/E ratio"].high
    assert found["calibration slope"].detail.endswith("one outcome only (0); both are needed")
    assert "accuracy" not in found
    found = rows_of(calibration_report(none, 1e-9 * none, labels=[0, 1], **OPTIONS))
    assert found["O/E ratio"].value is None
    assert found["O/E ratio"].detail == "undefined: all predictions are 0"


def test_a_row_for_each_vote_has_the_ratio_of_the_votes_and_slope():
    _, p = binary()
    votes = np.random.default_rng(0).integers(1, 5, (len(p), 2))
    counts = votes.sum(axis=1)
    y = np.concatenate([np.repeat([0, 1], row) for row in votes])
    rows = np.repeat(np.arange(len(p)), counts)
    of_votes = rows_of(calibration_report(votes, p, **OPTIONS))["O/E ratio"]
    found = rows_of(calibration_report(y, p[rows], groups=rows, **OPTIONS))
    assert found["O/E ratio"].value == pytest.approx(of_votes.value, rel=1e-9)
    assert found["calibration slope"].value is not None


@pytest.mark.filterwarnings("ignore:All predictions in")
def test_no_slope_and_no_intercept_are_shown_of_predictions_of_0_and_1_alone():
    rng = np.random.default_rng(0)
    p = rng.integers(2, size=600).astype(float)
    y = np.where(rng.random(600) < 0.1, 1 - p, p).astype(int)
    report = calibration_report(y, p, **OPTIONS)
    text = " ".join(report.summary("full").split())
    assert "undefined: predictions of exactly 0 or 1 have no finite logit" in text
    assert "of the others" not in text
    summary = str(report.overall.validation) + report.overall.validation.summary("paragraph")
    assert "inf" not in summary
    assert "of others is shown" not in summary
