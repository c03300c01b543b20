"""Every number of a report is that of a public function; what cannot be estimated is said."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from report_cases import (
    CANDIDATES,
    FEW,
    HOSTILE,
    OPTIONS,
    REPORTS,
    SEARCHED,
    binary,
    binary_report,
    full_report,
    oddly_named_report,
    plain_report,
    predictions,
)
from scipy.special import expit
from scipy.stats import norm, sem, ttest_1samp
from sklearn.metrics import log_loss

from skcal import CalibrationErrorSearchCV
from skcal.datasets import make_tempered
from skcal.hypothesis_tests import compare_calibration, monte_carlo_test
from skcal.metrics import (
    bootstrap_interval,
    expected_calibration_error,
    score_decomposition,
    sharpness,
    shifted_calibration_error,
)
from skcal.report import calibration_report
from skcal.report.rows import comparison_table
from skcal.report.words import answer_of_comparison, other_measures, paired_verdict

RESAMPLING = {"n_resamples": 99, "random_state": 0}


def strict_json(report):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(report.to_json(), parse_constant=refuse)


def test_ece_is_that_of_the_metric_its_interval_and_its_null_distribution():
    labels, proba = predictions()
    ece = plain_report().overall.ece
    interval = bootstrap_interval(expected_calibration_error, labels, proba, **RESAMPLING)
    test = monte_carlo_test(labels, proba, **RESAMPLING)
    assert ece.estimate == expected_calibration_error(labels, proba) == interval.estimate
    assert ece.low == min(interval.low, ece.estimate)  # calibration is refuted
    assert ece.high == max(interval.high, ece.estimate)
    assert ece.null_mean == test.null_distribution.mean()
    assert ece.null_limit == np.quantile(test.null_distribution, 0.95)
    count = np.bincount((15 * proba.max(axis=1)).astype(int), minlength=15)
    assert (ece.n_empty, ece.n_nearly_empty) == (sum(count == 0), sum((count > 0) & (count < 10)))
    assert ece.n_empty > 0


def test_scores_are_scikit_learns_with_the_parts_of_the_decompositions():
    labels, proba = predictions()
    brier, plain, by_class = plain_report().overall.scores
    classwise = {"notion": "classwise"}
    parts = score_decomposition(labels, proba, **classwise)
    assert brier.score == parts.score
    assert (brier.miscalibration, brier.discrimination) == (
        parts.miscalibration,
        parts.discrimination,
    )
    assert brier.score == pytest.approx(np.mean(np.sum((proba - np.eye(3)[labels]) ** 2, axis=1)))
    assert plain.score == pytest.approx(log_loss(labels, proba), rel=1e-12)
    log_parts = score_decomposition(labels, proba, score="log-loss", **classwise)
    assert by_class.score == log_parts.score
    assert plain_report().overall.sharpness == sharpness(labels, proba, **classwise)


def test_a_binary_report_of_two_columns_is_that_of_one():
    labels, proba = binary()
    both = np.column_stack([1 - proba, proba])
    two = calibration_report(labels, both, notion="binary", **OPTIONS)
    text, which = " ".join(str(two).split()), " (column 2 of 2)"
    assert text.count(which) == 1
    assert text.replace(which, "") == " ".join(str(binary_report()).split())


def test_scores_and_sharpness_say_when_they_are_sums_over_classes():
    def details(report):
        frame = report.to_frame().set_index("quantity")["detail"]
        return frame["Brier score"], frame["sharpness"]

    assert all(text.endswith("summed over classes") for text in details(plain_report()))
    assert not any("summed over classes" in text for text in details(binary_report()))


def test_overview_counts():
    labels, proba = predictions()
    view = plain_report().overall.overview
    assert (view.n_samples, view.classes) == (500, [0, 1, 2])
    assert view.base_rates == [np.mean(labels == k) for k in range(3)]
    assert view.accuracy == np.mean(proba.argmax(axis=1) == labels)
    assert view.mean_confidence == pytest.approx(proba.max(axis=1).mean())
    assert binary_report().overall.overview.accuracy == np.mean((binary()[1] > 0.5) == binary()[0])


def test_tuned_errors_are_those_of_the_searches():
    tuned = full_report().overall.tuned
    assert [facts["notion"] for facts in tuned] == ["confidence", "canonical", "classwise"]
    assert (plain_report().overall.tuned, plain_report().overall.searches) == ([], {})
    searches = full_report().overall.searches
    assert [search.squared_error_ for search in searches.values()] == [
        facts["squared_error"] for facts in tuned
    ]
    for facts in tuned:
        search = CalibrationErrorSearchCV(CANDIDATES, facts["notion"], random_state=0)
        search.fit(predictions()[1], predictions()[0])
        assert facts["rms_calibration_error"] == search.rms_calibration_error_
        assert facts["one_step"]["squared_error"] == search.one_step_squared_error_
        assert facts["one_step"]["lower_confidence_bound"] == search.lower_confidence_bound()
        assert facts["candidates"][-1]["risk"] == pytest.approx(
            -search.cv_results_["mean_test_score"][-1]
        )


def test_the_figure_shows_the_numbers_of_the_table():
    overall, diagram = plain_report().overall, plain_report().overall.diagram
    assert diagram.ranges == list(overall.scan.ranges if overall.test.pvalue <= 0.05 else [])
    assert diagram.number.pvalue == overall.test.pvalue
    assert sum(diagram.count) == 500
    data = plain_report().to_dict()["overall"]["diagram"]
    assert data["count"] == diagram.count.tolist()


def test_verbose_tells_of_the_parts_and_changes_nothing(capsys):
    labels, proba = predictions(100)
    options = SEARCHED | {"n_resamples": 19}
    report = calibration_report(labels, proba, verbose=1, **options)
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "[calibration_report] classifier: test"
    assert any(line.startswith("[CalibrationErrorSearchCV] ") for line in told)
    assert "[calibration_report] classifier: binned ECE" in told
    again = calibration_report(labels, proba, **options)
    assert capsys.readouterr().out == ""
    assert again.to_json() == report.to_json()
    calibration_report(labels == 1, proba[:, 1], verbose=1, **OPTIONS | {"n_resamples": 19})
    assert capsys.readouterr().out.count(" decision curve\n") == 1


def test_groups_are_reports_of_their_samples_with_adjusted_pvalues():
    report = full_report()
    labels, proba = predictions()
    rows = np.arange(len(labels)) % 3 == 0
    first, second = report.subgroups
    assert (first.name, second.name) == (HOSTILE, "plain")
    assert first.ece.estimate == expected_calibration_error(labels[rows], proba[rows])
    search = CalibrationErrorSearchCV(CANDIDATES, "canonical", random_state=0, labels=range(3))
    search.fit(proba[rows], labels[rows])
    assert first.tuned[1]["squared_error"] == search.squared_error_


def test_paired_tests_are_those_of_compare_calibration():
    tests = full_report().comparison.tests
    assert [(test.notion, test.measure) for test in tests] == [
        (notion, measure)
        for notion in ("confidence", "canonical", "classwise")
        for measure in ("squared error", "SKCE")
    ]
    labels, proba = predictions()
    other = predictions(power=1.0)[1]
    expected = compare_calibration(labels, proba, other, notion="canonical", method="skce")
    assert (tests[3].estimate, tests[3].pvalue) == (expected.estimate, expected.pvalue)
    assert (tests[3].low, tests[3].high) == expected.confidence_interval()
    expected = compare_calibration(labels, proba, other, notion="canonical")
    assert (tests[2].estimate, tests[2].pvalue) == (expected.estimate, expected.pvalue)


def test_paired_tests_of_scores_are_those_of_their_differences():
    labels, first = predictions()
    second = predictions(power=1.0)[1]
    report = full_report()
    brier, log_loss, *_ = report.comparison.score_tests
    hits = np.eye(first.shape[1])[labels]
    squares = ((hits - first) ** 2 - (hits - second) ** 2).sum(axis=1)
    logs = np.log(second[hits == 1] / first[hits == 1])
    for test, differences in ((brier, squares), (log_loss, logs)):
        expected = ttest_1samp(differences, 0)
        assert_allclose(test.estimate, differences.mean(), rtol=1e-10)
        assert_allclose(test.pvalue, expected.pvalue, rtol=0.1)  # of the normal limit
        assert_allclose(
            (test.low, test.high),
            differences.mean() + norm.ppf([0.025, 0.975]) * sem(differences),
            rtol=1e-10,
        )
    # They are of the scores that the report prints.
    for test, one, other in zip(
        (brier, log_loss), report.overall.scores, report.comparison.second.scores, strict=False
    ):
        assert test.measure == one.name
        assert_allclose(test.estimate, one.score - other.score, rtol=1e-10)
    assert "Brier score, <script>" in report.summary("full")
    assert "Brier score, <script>" not in str(report)


def test_paired_brier_scores_of_two_columns_are_those_of_the_notion():
    labels, proba = binary(100)
    both, other = np.column_stack([1 - proba, proba]), np.column_stack([1 - proba**1.5, proba**1.5])
    for notion in ("binary", "confidence"):
        report = calibration_report(labels, both, compare=other, notion=notion, **FEW)
        [one, *_], [two, *_] = report.overall.scores, report.comparison.second.scores
        assert_allclose(
            report.comparison.score_tests[0].estimate, one.score - two.score, rtol=1e-10
        )


def test_of_many_samples_some_are_searched_with_bounds_at_the_level_of_the_report():
    labels, proba = predictions()
    asked = {"max_search_samples": 200, "confidence_level": 0.8}
    report = calibration_report(labels, proba, **asked, **SEARCHED)
    rows = np.sort(np.random.default_rng(0).choice(500, size=200, replace=False))
    search = CalibrationErrorSearchCV(CANDIDATES, "confidence", random_state=0)
    search.fit(proba[rows], labels[rows])
    facts = report.overall.tuned[0]
    assert facts["squared_error"] == search.squared_error_
    assert facts["one_step"]["lower_confidence_bound"] == search.lower_confidence_bound(0.8)
    assert facts["one_step"]["confidence_level"] == 0.8
    assert report.overall.ece.estimate == expected_calibration_error(labels, proba)
    printed = " ".join(str(report).split())
    assert "each with 80 % confidence" in printed
    assert "RMS errors are estimated on 200 of" in printed


@pytest.mark.parametrize("make", REPORTS)
def test_json_is_strict_and_holds_everything(make):
    report = make()
    assert strict_json(report) == report.to_dict() == json.loads(report.to_json(indent=None))
    assert "fitted to these samples" in report.warnings[-1]


def test_the_same_seed_gives_the_same_report():
    labels, proba = predictions()
    drawn = calibration_report(labels, proba, **FEW | {"random_state": np.random.RandomState(5)})
    seeded = FEW | {"random_state": drawn.settings["random_state"]}
    again = calibration_report(labels, proba, **seeded)
    assert again.to_json() == drawn.to_json()
    assert again._repr_html_() == drawn._repr_html_()


def test_pos_label_turns_the_columns():
    labels, proba = binary()
    names = np.array(["sick", "well"])[labels]
    report = calibration_report(
        names, np.column_stack([1 - proba, proba]), notion="binary", pos_label="sick", **FEW
    )
    assert report.overall.overview.classes == ["well", "sick"]
    expected = expected_calibration_error(1 - labels, 1 - proba)
    assert report.overall.ece.estimate == pytest.approx(expected)


def test_text_is_aligned_and_holds_the_numbers():
    text = plain_report().summary("full")
    assert max(map(len, text.splitlines())) <= 100
    rows = [line for line in text.splitlines() if line.startswith(("binned", "mean confidence "))]
    assert len({line.index("0.") + 5 for line in rows}) == 1
    ece = plain_report().overall.ece
    assert re.search(rf"^binned ECE \(15 bins\) +{ece.estimate:.3f}  ", text, re.MULTILINE)
    assert "cannot be seen from here" in text
    assert "mean gap of uniform bins; 95 % bootstrap interval" in " ".join(text.split())


def test_names_cannot_send_escape_sequences_to_a_terminal():
    text = str(oddly_named_report())
    assert not re.search("[\x00\x1b\u202e]", text)
    assert text.splitlines()[0].endswith("日本語")


def test_frame_has_a_row_for_each_number_of_each_part():
    frame = full_report().to_frame()
    assert set(frame["part"]) == {"all", "subgroup", "second", "paired"}
    table = frame[frame["part"] == "all"].set_index(["quantity", "notion"])
    overall = full_report().overall
    assert table.loc[("binned ECE (15 bins)", "confidence"), "value"] == overall.ece.estimate
    assert table.loc[("calibration error", "confidence"), "low"] == overall.error.low
    assert table.loc[("RMS calibration error, canonical", "canonical"), "value"] >= 0
    assert (frame.dtypes[["value", "low", "high", "pvalue"]] == np.float64).all()
    paired, comparison = frame[frame["part"] == "paired"], full_report().comparison
    tests = [*comparison.tests, *comparison.score_tests]
    for column, name in {"notion": "notion", "value": "estimate", "pvalue": "pvalue"}.items():
        assert paired[column].tolist() == [getattr(test, name) for test in tests]
    measures = ["squared error", "SKCE", *(test.measure for test in comparison.score_tests)]
    assert measures[2:5] == ["Brier score", "log loss", "accuracy"]
    assert set(paired["quantity"]) == {f"{measure}, difference" for measure in measures}
    assert set(paired["name"]) == {f"{HOSTILE} minus second {HOSTILE}"}
    assert not (plain_report().to_frame()["part"] == "paired").any()


def with_tests(*tests):
    """A comparison of A and B whose paired tests have these (estimate, p-value)."""
    report = full_report()
    [first, *_] = report.comparison.tests
    made = [replace(first, estimate=estimate, pvalue=p) for estimate, p in tests]
    second = replace(report.comparison.second, name="B")
    return replace(
        report,
        overall=replace(report.overall, name="A"),
        comparison=replace(report.comparison, second=second, tests=made),
    )


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ([(0.1, 0.01), (0.1, 0.2)], r"^B is better calibrated: [^;]*p = 0\.02 \(paired"),
        ([(-0.1, 0.01), (-0.1, 0.02)], r"^A is better calibrated: .*0\.02 and .*0\.02 \(paired"),
        ([(0.1, 0.03), (0.1, 0.2)], r"^There is no evidence that either .*p-value is 0\.06 "),
        ([(0.1, 0.01), (-0.1, 0.01)], r"^Which .* depends on the measure: A by .*; B by "),
        ([], r"^Which model is better calibrated was not tested\.$"),
    ],
)
def test_the_verdict_is_that_of_the_adjusted_paired_tests(tests, expected):
    report = with_tests(*tests)
    verdict = paired_verdict(report)
    assert re.search(expected, verdict), verdict
    assert verdict not in " ".join(str(report).split())  # where the difference says it all
    vectors = replace(report, comparison=replace(report.comparison, error_difference=None))
    assert answer_of_comparison(vectors).sentences == [verdict]


def test_a_comparison_leads_with_the_difference_of_the_calibration_errors():
    report = full_report()
    labels, proba = predictions()
    expected = compare_calibration(labels, proba, predictions(power=1.0)[1]).error_difference
    found = report.comparison.error_difference
    assert found == expected
    errors = report.overall.error.estimate, report.comparison.second.error.estimate
    assert found.estimate == pytest.approx(errors[0] - errors[1], rel=1e-12)
    answer = answer_of_comparison(report)
    assert re.match("The (squared )?calibration error of ", answer.sentences[0])
    assert ("is better calibrated" in answer.title) == (found.better is not None)
    undecided = "Measures disagree", "No significant difference in calibration"
    assert (answer.title in undecided) == (found.better is None)
    assert other_measures(report).startswith("By measure: ")  # no name takes a capital
    assert ("smaller than that of" in answer.sentences[0]) == found.is_significant
    assert found.pvalue == report.comparison.tests[0].pvalue
    names = [row[0] for row in comparison_table(report).rows]
    first = ["calibration error", "cutoff error", "accuracy", "mean confidence", "Brier score"]
    assert names[:5] == first


def test_a_line_of_data_model_and_date_stands_below_the_title():
    labels, proba = predictions()
    few = {"n_resamples": 19}
    report = calibration_report(labels, proba, description="hold-out 7, <v3>,\n2026-05-01", **few)
    assert str(report).splitlines()[3] == "hold-out 7, <v3>, 2026-05-01"
    assert "<p>hold-out 7, &lt;v3&gt;, 2026-05-01</p>" in report._repr_html_()
    assert report.to_dict()["description"] == "hold-out 7, <v3>, 2026-05-01"


def test_parts_that_the_samples_do_not_allow_are_left_out_and_said():
    report = calibration_report([0, 1, 1], [0.2, 0.7, 0.9], **SEARCHED)
    assert report.overall.tuned == []
    said = " ".join(report.warnings)
    assert "RMS binary error: not estimated" in said
    assert strict_json(report)["overall"]["tuned"] == []


RARE_CLASS = [0] * 200 + [1] * 195 + [2] * 5


@pytest.mark.filterwarnings("ignore:All predictions in")
@pytest.mark.parametrize(
    ("labels", "proba", "message"),
    [
        ([0, 1] * 15, [0.3, 0.6] * 15, "Only 15 of 30 samples have the rarer outcome"),
        ([0, 1] * 20, [0.0, 1.0] * 20, "All probabilities are 0 or 1"),
        ([0, 1] * 200, [0.3] * 400, "All predictions are equal"),
        ([1, 1] * 200, [0.0, 0.7] * 200, "200 outcomes had a predicted probability of 0"),
        ([1, 1] * 200, [0.6, 0.7] * 200, "Class 0 never occurs among the labels"),
        ([1] * 395 + [0] * 5, [0.6, 0.7] * 200, "Only 5 of 400 samples have the rarer outcome"),
        (RARE_CLASS, [[0.6, 0.35, 0.05]] * 400, "Class 2 occurs fewer than 10 times"),
        ([0, 1] * 200, [0.05] + [0.6, 0.7] * 199 + [0.7], "1 of the 15 bins of the binned ECE"),
    ],
)
def test_cautions_are_given_where_they_are_due(labels, proba, message):
    report = calibration_report(labels, proba, **FEW)
    assert any(message in text for text in report.warnings), report.warnings
    assert "bins" in message or not any(message in text for text in plain_report().warnings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compare": np.ones((500, 2)) / 2}, r"compare has shape \(500, 2\), y_proba \(500, 3\)"),
        ({"compare": np.full((500, 3), 0.5)}, r"compare row 0 sums to 1\.5"),
        (
            {"compare": predictions(power=1.0)[1], "strategy": "quantile"},
            "strategy='quantile' makes other bins",
        ),
        ({"by": ["a"] * 499}, "by has 499 entries, y_proba 500 rows"),
        ({"by": ["a"] * 499 + [None]}, "by row 499 is missing"),
        ({"n_bins": 0}, "n_bins"),
        ({"candidates": "nonsense", "search": True}, "candidates"),
        ({"candidates": [("Binning", {})], "search": True}, r"candidates\[0\] is"),
        ({"candidates": CANDIDATES}, "candidates is not used with search=False"),
        ({"cv": 3}, "cv is not used with search=False"),
        ({"outer_cv": 3}, "outer_cv is not used with search=False"),
        ({"max_search_samples": 100}, "max_search_samples is not used with search=False"),
        ({"compare_name": "b"}, "compare_name is not used with compare=None"),
        ({"notion": "canonical"}, "notion"),
        ({"confidence_level": 95}, "confidence_level"),
    ],
)
def test_bad_requests_name_the_argument(options, message):
    with pytest.raises(ValueError, match=message):
        calibration_report(*predictions(), **{**OPTIONS, **options})


@pytest.mark.parametrize("ending", ["csv", "tex", "txt", "html", "json"])
@pytest.mark.parametrize("make", REPORTS)
def test_no_export_holds_the_names_of_types(make, ending, tmp_path):
    for legacy in (False, "1.25"):  # as numpy 2 and numpy 1 write their numbers
        with np.printoptions(legacy=legacy):
            make().save(tmp_path / f"report.{ending}", "full")
        text = (tmp_path / f"report.{ending}").read_text("utf-8")
        assert not re.search(r"\b(np|numpy)\.\w+\(|array\(", text)


def test_a_target_without_labels_has_the_error_of_the_metric():
    rng = np.random.default_rng(0)
    y = (rng.random(600) < 0.5).astype(int)
    p = expit(rng.normal(2 * y - 1, 1))
    target = expit(rng.normal(2 * (rng.random(400) < 0.2) - 1, 1))
    report = calibration_report(y, p, target=target, **FEW)
    expected = shifted_calibration_error(y, p, target_proba=target)
    assert (report.target.estimate, report.target.high) == (expected.estimate, expected.high)
    sentence = expected.sentence()
    assert f"{sentence[0].upper()}{sentence[1:]}." in report.verdict
    assert strict_json(report)["target"]["low"] == expected.low
    frame = report.to_frame()
    assert frame[frame["part"] == "target"]["value"].tolist() == [expected.estimate]
    assert plain_report().target is None
    columns, of_target = np.column_stack([p, 1 - p]), np.column_stack([target, 1 - target])
    reversed = {"labels": [1, 0], "pos_label": 1}
    report = calibration_report(y, columns, target=of_target, **reversed, **FEW)
    assert report.target.estimate == expected.estimate


def test_a_metric_of_the_user_is_a_row_with_its_interval():
    data = make_tempered(200, temperature=2.0, n_truth_draws=0, random_state=0)

    def errors(y_true, y_proba):
        return float((y_proba.argmax(axis=1) != y_true).mean())

    few = {"n_resamples": 19}
    options = {"metrics": {"errors": errors}, "by": np.arange(200) % 2, **few}
    report = calibration_report(data.labels, data.proba, **options)
    alone = bootstrap_interval(errors, data.labels, data.proba, n_resamples=19)
    [own] = report.overall.own
    assert (own.estimate, own.low, own.high) == (alone.estimate, alone.low, alone.high)
    assert "\nerrors" in str(report)
    frame = report.to_frame()
    assert frame[frame.quantity == "errors"].value.tolist()[0] == alone.estimate
    assert (frame.quantity == "errors").sum() == 3
    assert report.to_dict()["overall"]["own"][0]["estimate"] == alone.estimate
    assert report.to_dict()["settings"]["metrics"] == ["errors"]
    for wrong in ({"a": 3}, {1: errors}):
        with pytest.raises(ValueError, match=r"^metrics holds .*Pass names with functions"):
            calibration_report(data.labels, data.proba, metrics=wrong, **few)
    failing = {"rows": lambda y, p: p, "none": lambda y, p: float("nan")}
    text = " ".join(
        str(calibration_report(data.labels, data.proba, metrics=failing, **few)).split()
    )
    assert "rows: not estimated. metric returned array([[" in text
    assert "none: not estimated. metric returned nan; an interval needs one finite number." in text
