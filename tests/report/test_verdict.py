"""The answer in words, caveats once, groups without power, and tables for other programs."""

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from report_cases import HOSTILE, OPTIONS, binary_report, full_report, plain_report, predictions

from skcal.displays import ReliabilityDisplay
from skcal.metrics.validation import Measure
from skcal.report import calibration_report
from skcal.report.compare import read_groups
from skcal.report.rows import groups_table, records_table
from skcal.report.words import all_warnings, powerless, verdict_of


def test_a_shown_error_is_said_with_size_side_and_remedy():
    report = plain_report()
    error = report.overall.without_bins
    assert report.verdict.startswith(
        f"Miscalibrated: the confidences are off by {error['estimate']:.3f}"
    )
    assert f"at least {error['lower_confidence_bound']:.3f} at 95 % confidence" in report.verdict
    assert "they are overconfident by" in report.verdict
    assert "Recalibration on other samples would mend it" in report.verdict
    assert "the probabilities are off" in binary_report().verdict
    for view in (str(report), report._repr_html_()):
        assert " ".join(report.verdict.split()) in " ".join(view.split())


def validation(*ratio):
    found = binary_report().overall.validation
    return replace(found, observed_expected_ratio=Measure(*ratio))


def test_what_is_not_shown_is_not_claimed():
    overall, settings = plain_report().overall, plain_report().settings
    hidden = {**overall.without_bins, "lower_confidence_bound": -0.01, "reading": ""}
    unclear = replace(overall, without_bins=hidden)
    assert verdict_of(unclear, settings).startswith("Miscalibrated by the test of ECE (p = 0.01)")
    assert "with a lower limit of 0" in verdict_of(unclear, settings)
    low = replace(unclear, validation=validation(1.294, 1.09, 1.52))
    assert verdict_of(low, settings).endswith("1.29 times as frequent as predicted (1.09 to 1.52).")
    for ratio in ((1.2, 0.9, 1.52), (np.nan,) * 3):
        level = replace(unclear, validation=validation(*ratio))
        assert "frequent" not in verdict_of(level, settings)
    calm = replace(unclear, ece=replace(overall.ece, pvalue=0.4))
    assert verdict_of(calm, settings).startswith("No miscalibration is shown")
    assert "cannot be told from none here" in verdict_of(calm, settings)
    nothing = replace(overall, without_bins=None)
    assert "do not allow an estimate" in verdict_of(nothing, settings)


def test_caveats_of_groups_stand_once_and_powerless_groups_say_so():
    labels, proba = predictions()
    groups = np.repeat(np.arange(5), [420, 20, 20, 20, 20])
    report = calibration_report(labels, proba, groups=groups, **OPTIONS)
    few = [text for text in all_warnings(report) if "samples are few" in text]
    assert len(few) == 1
    assert few[0].startswith("1 (and alike in 3 more): 20 samples are few")
    remarks = groups_table(report).remarks
    assert 0 not in remarks
    assert set(remarks.values()) == {"too few samples to show an error as large as that of all"}
    assert powerless(report.groups[1], report.overall) == (1 in remarks)
    assert str(report).count("  *\n") == len(remarks)
    assert str(report).count("* too few samples to show an error") == 1


def test_groups_may_be_several_columns():
    columns = {"site": ["s10", "s2"] * 5, "sex": ["f"] * 4 + ["m"] * 6}
    names = ["site = s2", "site = s10", "sex = f", "sex = m"]
    assert [name for name, _ in read_groups(columns, 10)] == names
    pd = pytest.importorskip("pandas")
    assert [name for name, _ in read_groups(pd.DataFrame(columns), 10)] == names


def test_the_same_seed_gives_the_same_interval_in_display_and_report():
    labels, proba = predictions()
    options = {**OPTIONS, "n_resamples": None}
    report = calibration_report(labels, proba, **options)
    display = ReliabilityDisplay.from_predictions(labels, proba, random_state=0, plot=False)
    found = display.panels[0].error_interval
    assert found == pytest.approx((report.overall.ece.low, report.overall.ece.high), rel=1e-10)


def records(report):
    table = records_table(report)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_csv_holds_every_number_in_full_and_no_formula(tmp_path):
    report = full_report()
    report.save(tmp_path / "report.csv")
    text = (tmp_path / "report.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    expected = records(report)
    assert len(rows) == len(expected)
    assert [row["value"] for row in rows] == [repr(record["value"]) for record in expected]
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row.values())
    assert any(row["detail"].startswith("'= ") for row in rows)
    assert rows[0]["name"] == HOSTILE


def test_latex_has_a_table_of_groups_and_one_of_two_models(tmp_path):
    labels, proba = predictions(200)
    softer = np.sqrt(proba) / np.sqrt(proba).sum(axis=1, keepdims=True)
    groups = np.repeat(["a_1", "b"], 100)
    report = calibration_report(
        labels, proba, compare=softer, compare_name="B_2", groups=groups, **OPTIONS
    )
    report.save(tmp_path / "report.tex")
    first, of_groups, of_two = (tmp_path / "report.tex").read_text().split("\n\n")
    assert first.count("tabular}") == of_groups.count("tabular}") == of_two.count("tabular}") == 2
    assert "\na\\_1 & 100 & " in of_groups
    assert " & B\\_2 & " in of_two
    assert f"accuracy & {report.overall.overview.accuracy:.4f} & " in of_two
    notes = [line for line in of_two.splitlines() if line.startswith("% ")]
    tests = [*report.comparison.tests, *report.comparison.score_tests]
    assert len(notes) == 1 + len(tests)
    paired = [one for one in records(report) if one["part"] == "paired"]
    assert [one["pvalue"] for one in paired] == [test.pvalue for test in tests]


def test_latex_is_escaped(tmp_path):
    labels, proba = predictions(100)
    name = "50 % of A_1 & \\input{x}\n"
    report = calibration_report(labels, proba, name=name, **OPTIONS)
    report.save(tmp_path / "report.tex")
    text = (tmp_path / "report.tex").read_text(encoding="utf-8")
    body = text.partition("\\midrule\n")[2].partition("\\bottomrule")[0]
    for line in body.splitlines():
        assert line.endswith(r" \\")
        assert len(re.findall(r"(?<!\\)&", line)) == 2
        assert not re.search(r"(?<!\\)[%#_]", line)
    assert text.splitlines()[0].startswith("% Calibration report: 50 % of A_1")
    assert text.isascii()
