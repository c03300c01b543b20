"""Reports of tables say what reports of the samples say, and name what they leave out."""

import json
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_table import binary, both, of_shares, rows_of

from skcal import CalibrationTable, Sample, calibration_report, calibration_test
from skcal.metrics import bootstrap_interval, expected_calibration_error, score_decomposition
from skcal.metrics.limits import frequency_limits, surprises
from skcal.metrics.validation import observed_expected_ratio

pytestmark = pytest.mark.filterwarnings("ignore:n_resamples")
REPORTED = ["binary", "two columns", "weights", "groups", "votes", "confidence"]


@cache
def reports(case):
    return [calibration_report(each, n_resamples=99) for each in both(case, 1500)]


@pytest.mark.parametrize("case", REPORTED)
def test_reports_hold_the_numbers_of_the_samples(case):
    table, sample = reports(case)
    found, expected = (each.overall for each in (table, sample))
    rtol = 1e-3 if of_shares(case) or "groups" in case else 1e-8
    for name in ("accuracy", "mean_confidence", "smallest", "largest", "effective_size"):
        values = (getattr(each.overview, name) for each in (found, expected))
        values = [0 if value is None else value for value in values]
        assert_allclose(*values, rtol=1e-9)
    for name in ("n_samples", "n_groups", "classes", "n_certain", "of_shares"):
        assert getattr(found.overview, name) == getattr(expected.overview, name)
    assert_allclose(found.error.estimate, expected.error.estimate, rtol=0.02)
    assert_allclose(found.error.high, expected.error.high, rtol=0.03)
    assert_allclose(found.cutoff.high, expected.cutoff.high, rtol=0.02)
    assert (found.tolerance, found.is_significant) == (expected.tolerance, expected.is_significant)
    assert_allclose(found.ece.estimate, expected.ece.estimate, atol=1e-12)
    for name in ("low", "high", "null_mean", "null_limit"):
        assert abs(getattr(found.ece, name) - getattr(expected.ece, name)) < 0.012, name
    assert len(found.diagram.count) == len(expected.diagram.count)
    if found.overview.base_rates:
        for name in ("counts", "base_rates", "mean_predictions"):
            if (name, case) != ("counts", "votes"):
                assert_allclose(*(getattr(each.overview, name) for each in (found, expected)))
        for ours, theirs in zip(found.scores, expected.scores, strict=True):
            assert ours.name == theirs.name
            assert_allclose(ours.score, theirs.score, rtol=rtol)
            assert_allclose(ours.miscalibration, theirs.miscalibration, atol=3e-4)
            assert_allclose(ours.uncertainty, theirs.uncertainty, rtol=1e-9)
        assert_allclose(found.sharpness, expected.sharpness, rtol=rtol)
    if found.ratio is not None:
        assert_allclose(found.ratio, expected.ratio, rtol=1e-3)
    said = [report.answer.title for report in (table, sample)]
    assert said[0] == said[1]


@pytest.mark.parametrize("case", ["binary", "groups", "confidence"])
def test_what_a_report_of_a_table_lacks_is_named_in_every_view(case, tmp_path):
    table, sample = reports(case)
    rows = {each: set(each.to_frame()["quantity"]) for each in (table, sample)}
    assert rows[table] <= rows[sample] | {"calibration slope"}
    [caution] = (text for text in table.warnings if "holds no rows" in text)
    assert not any("holds no rows" in text for text in sample.warnings)
    lacking = rows[sample] - rows[table]
    named = {
        "Brier score": "Brier score",
        "log loss": "log loss",
        "log loss, one against the rest": "log loss",
        "sharpness": "sharpness",
        "calibration in the large": "slope",
        "net benefit at the prevalence": "decision curve",
        "C-statistic": "C-statistic",
        "ICI": "ICI",
        "ICI: E50": "ICI",
        "ICI: E90": "ICI",
        "ICI: Emax": "ICI",
        "scaled Brier score": "slope",
        "prevalence": "slope",
    }
    assert lacking <= named.keys()
    assert all(named[quantity] in caution for quantity in lacking)
    assert "neighbouring rows" in caution
    assert "recalibration" in caution or not table.overall.is_significant
    assert "counted in a CalibrationTable" in table.read_as
    without = table.read_as.replace(", counted in a CalibrationTable", "")
    assert without.split(".")[0] in sample.read_as.replace("; ", ". ")
    for detail in ("short", "full"):
        assert caution[:60] in " ".join(table.summary(detail).split())
        for ending in (".csv", ".tex", ".html")[: 2 + (detail == "full")]:
            table.save(tmp_path / f"report{ending}", detail)
    data = json.loads(table.to_json())
    assert caution in data["overall"]["cautions"]
    assert data["read_as"] == table.read_as


def test_a_report_knows_rounding_and_impossible_outcomes_of_a_table():
    y, p = binary(900, kind="rounded")
    p[:40], y[:40] = 0.0, 1
    table = CalibrationTable().update(y, p)
    for each in (table, CalibrationTable(resolution=None).update(y, p)):
        found = calibration_report(each, n_resamples=99)
        expected = calibration_report(y, p, resolution=each.resolution, n_resamples=99)
        left_out = ("recalibration: ", "Slope undefined")
        texts = [text for text in expected.warnings if not text.startswith(left_out)]
        assert [text for text in found.warnings if "holds no rows" not in text] == texts
        assert any("are rounded to" in text or "infinite" in text for text in texts)
        assert found.overall.overview.n_certain == expected.overall.overview.n_certain
        for ours, theirs in zip(found.overall.scores, expected.overall.scores, strict=True):
            assert_allclose(ours.score, theirs.score, rtol=1e-9)
            assert_allclose(ours.miscalibration, theirs.miscalibration, rtol=1e-6)


def test_bins_of_a_report_are_those_of_the_table():
    y, p = binary(900)
    edges = np.linspace(0, 1, 8) ** 2
    found = calibration_report(CalibrationTable(edges=edges).update(y, p), n_resamples=99)
    assert found.overall.ece.n_bins == found.settings["n_bins"] == 7
    assert found.overall.ece.strategy == found.settings["strategy"] == "given"
    assert_allclose(found.overall.ece.estimate, expected_calibration_error(y, p, edges=edges))


@pytest.mark.parametrize(
    ("option", "remedy"),
    [
        ({"by": np.zeros(200)}, "Pass a skcal.Sample."),
        ({"segments": np.zeros((200, 1))}, "Pass a skcal.Sample."),
        ({"compare": np.full(200, 0.5)}, "Pass a skcal.Sample."),
        ({"target": np.full(200, 0.5)}, "Pass a skcal.Sample."),
        ({"metrics": {"mine": lambda y, p: 0.0}}, "Pass a skcal.Sample."),
        ({"search": True}, "Pass a skcal.Sample."),
        ({"n_bins": 10}, "Leave n_bins out, or count"),
        ({"strategy": "quantile"}, "Leave strategy out, or count"),
    ],
)
def test_what_needs_rows_is_refused_by_name(option, remedy):
    [name] = option
    table = CalibrationTable().update(*binary(200))
    with pytest.raises(ValueError, match=f"^{name} ") as caught:
        calibration_report(table, **option)
    assert remedy in str(caught.value)


@pytest.mark.parametrize("notion", ["classwise", "top-label", "multi-label"])
def test_kinds_of_calibration_without_a_report_are_refused(notion):
    y, P = rows_of(200)
    y = (np.arange(3) == y[:, None]).astype(int) if notion == "multi-label" else y
    with pytest.raises(ValueError, match="Count a CalibrationTable of 'binary' or 'confidence'"):
        calibration_report(CalibrationTable(notion).update(y, P))
    assert calibration_report(CalibrationTable("confidence").update(*rows_of(200))).answer.title


def test_bins_that_hold_few_samples_are_mended_as_the_caveat_says():
    y, p = binary(100)
    sparse = "fewer than 10 samples"

    def caveats(each, **options):
        return " ".join(calibration_report(each, n_resamples=19, **options).warnings)

    table, sample = CalibrationTable().update(y, p), Sample(y, p)
    assert "Count a CalibrationTable(edges=…) of fewer bins." in caveats(table)
    assert "Use fewer bins, or bins of equally many samples." in caveats(sample)
    assert sparse not in caveats(CalibrationTable(edges=np.linspace(0, 1, 5)).update(y, p))
    for option in ({"n_bins": 4}, {"strategy": "quantile", "n_bins": 5}):
        assert sparse not in caveats(sample, **option)


def test_parts_of_a_report_are_those_of_the_public_functions():
    table, sample = both("weights", 1500)
    report = calibration_report(table, n_resamples=99)
    assert report.overall.test.pvalue == calibration_test(table).pvalue
    assert report.overall.error.low == calibration_report(table, n_resamples=19).overall.error.low
    [brier, log_loss] = report.overall.scores
    for score, name in ((brier, "brier"), (log_loss, "log-loss")):
        assert score.score == score_decomposition(table, score=name).score
        whole = score_decomposition(table, score=name)
        parts = whole.miscalibration - whole.discrimination + whole.uncertainty
        assert_allclose(whole.score, parts, rtol=1e-12)
    assert_allclose(surprises(table._as_sample()), surprises(sample), rtol=0.1)


@pytest.mark.parametrize("case", ["binary", "weights", "votes", "confidence"])
def test_the_bootstrap_of_a_table_has_the_law_of_that_of_the_samples(case):
    table, sample = (
        each if isinstance(each, Sample) else each._as_sample() for each in both(case, 4000)
    )
    draws = []
    for each in (table, sample):
        found = bootstrap_interval(
            expected_calibration_error, each, n_resamples=400, random_state=0
        )
        assert found.estimate == expected_calibration_error(each)
        draws.append(found.distribution)
    means, deviations = ([draw.mean() for draw in draws], [draw.std() for draw in draws])
    # Standard errors are 5 % and 3.5 % of a deviation.
    assert abs(means[0] - means[1]) < 0.3 * deviations[1]
    assert_allclose(*deviations, rtol=0.2)


@pytest.mark.parametrize("case", ["binary", "weights", "votes", "groups"])
def test_frequency_limits_and_ratios_of_cells_are_those_of_samples(case):
    table, sample = both(case, 1200)
    table = table._as_sample()
    for tail in (0.025, 0.2):
        assert_allclose(
            observed_expected_ratio(table, 1 - 2 * tail),
            observed_expected_ratio(sample, 1 - 2 * tail),
            rtol=1e-4 if not of_shares(case) else 1e-2,
        )
    [part], [whole] = table.problems(), sample.problems()
    if case == "binary":
        assert_allclose(frequency_limits(part, 0.1), frequency_limits(whole, 0.1), rtol=1e-12)


def test_reversed_columns_are_found_in_cells_by_their_numbers_of_samples():
    rng = np.random.default_rng(0)
    rows = np.array([[0.4, 0.6], [0.4, 0.6], [0.6, 0.4], [0.6, 0.4]])
    codes, sizes = np.array([0, 1, 0, 1]), rng.integers(5, 60, (200, 4))
    found = []
    for size in sizes:
        samples = np.repeat(codes, size), np.repeat(rows, size, axis=0)
        found.append(CalibrationTable(labels=[0, 1]).update(*samples)._as_sample().is_reversed)
        assert Sample(*samples).is_reversed == found[-1]
    assert 20 < sum(found) < 180


def test_a_table_of_one_cell_or_one_outcome_has_a_report():
    one = CalibrationTable(labels=[0, 1]).update(np.arange(60) % 2, np.full(60, 0.5))
    assert any("All predictions are equal" in text for text in calibration_report(one).warnings)
    same = CalibrationTable(labels=[0, 1]).update(np.zeros(60, int), np.full(60, 0.25))
    assert "same outcome" in " ".join(calibration_report(same).warnings)
    with pytest.raises(ValueError, match="1 sample"):
        calibration_report(CalibrationTable(labels=[0, 1]).update([1], [0.5]))
    interval = bootstrap_interval(expected_calibration_error, *binary(300), n_resamples=19)
    assert interval.low < interval.high


@pytest.mark.filterwarnings("ignore:All predictions in y_proba are 0 or 1")
@pytest.mark.parametrize("n_wrong", [5, 3])
def test_an_error_at_a_limit_of_the_size_words_has_one_size(n_wrong):
    """2.5 % is half of what is tolerated: sums of cells and of rows differ in the last digits."""
    p = np.repeat([0.0, 1.0], 200)
    y = p.astype(int)
    y[:n_wrong], y[200 : 200 + n_wrong] = 1, 0
    order = np.random.default_rng(3).permutation(400)
    table = CalibrationTable().update(y[order], p[order])
    answers = [
        calibration_report(*each).answer for each in ((table,), (y, p), (y[order], p[order]))
    ]
    assert [answer.title for answer in answers] == ["Overconfident: small"] * 3
