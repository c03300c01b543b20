"""What notebooks show: rounded, escaped, and out of reach of the styles of their hosts."""

import re
from html import escape

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from skcal import (
    CalibrationErrorSearchCV,
    PlugIn,
    RecalibratedClassifierCV,
    Recalibrator,
    TemperatureScaling,
    Zero,
)
from skcal._show import ShownRounded, Table, html_list, html_result, style
from skcal.datasets import make_tempered
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import (
    bias_curve,
    calibration_error_interval,
    calibration_test,
    compare_calibration,
    equivalence_test,
    scan_test,
    segment_test,
    skce_test,
    spiegelhalter_test,
)
from skcal.hypothesis_tests.joint import JointTestResult
from skcal.metrics import (
    binned_rms_error_interval,
    bootstrap_interval,
    calibration_bins,
    cox_recalibration,
    expected_calibration_error,
    score_decomposition,
    validation_measures,
)


def data(n=300):
    drawn = make_tempered(n, n_classes=3, temperature=2.0, n_truth_draws=0, random_state=0)
    return drawn.labels, drawn.proba


def fitted_search(y, p):
    candidates = [Zero(), PlugIn(TemperatureScaling())]
    return CalibrationErrorSearchCV(candidates, cv=3, random_state=0).fit(p, y)


def text_of(html):
    html = re.sub("<style>.*?</style>", "", html, flags=re.DOTALL)
    return " ".join(re.sub("<[^>]*>", " ", html).split())


def specificity(selector):
    """Classes with attributes and pseudo-classes; the largest of an :is() counts."""
    selector = re.sub(r":is\(([^)]*)\)", lambda found: found[1].split(",")[0], selector)
    return len(re.findall(r"\.[a-z]|\[|:(?!:)", selector))


def test_every_rule_is_kept_to_our_elements_and_outweighs_those_of_hosts(tmp_path):
    sheet = tmp_path / "x.css"
    sheet.write_text("/* x */\n& p { margin: 0; }\n")
    text = re.search("<style>(.*)</style>", style("skcal-x", sheet), re.DOTALL)[1]
    rules = re.findall(r"(?:^|[{}])\s*([^@{};]+)\{", text)
    assert len(rules) > 8
    assert all(specificity(one.strip()) >= 3 for one in rules)  # a host's have two
    assert re.search(r"\.skcal\.skcal\.skcal :is\(.*?\)\s*\{ all: revert;", text, re.DOTALL)
    assert ".skcal.skcal.skcal.skcal.skcal-x p { margin" in text  # above the undoing
    assert "rem" not in text  # the size of a host's text is its own


def test_cells_are_rounded_and_escaped():
    rows = [("<b>", 0.123456, np.nan), ("\x1b", 1234567, True)]
    shown = Table(("a", "b", "c"), rows, chosen=1).html()
    assert "&lt;b&gt;" in shown
    assert "\x1b" not in shown
    assert text_of(shown) == "a b c &lt;b&gt; 0.1235 – \N{REPLACEMENT CHARACTER} 1,234,567 True"
    assert shown.count("skcal-chosen") == 1
    assert "… and 40 more rows" in html_result("", Table(("x",), [(k,) for k in range(100)]))
    assert html_list([]) == ""
    assert "&lt;i&gt;" in html_result("<i>")


@pytest.mark.parametrize(
    "make",
    [
        lambda y, p: skce_test(y, p, n_resamples=19, random_state=0),
        lambda y, p: bootstrap_interval(
            expected_calibration_error, y, p, n_resamples=19, random_state=0
        ),
        score_decomposition,
        lambda y, p: spiegelhalter_test((y == 0).astype(int), p[:, 0]),
        lambda y, p: cox_recalibration((y == 0).astype(int), p[:, 0]),
        calibration_test,
        scan_test,
        lambda y, p: equivalence_test(y, p, limit=0.05),
        lambda y, p: compare_calibration(y, p, p[:, [1, 2, 0]]),
        lambda y, p: compare_calibration(y, p, p[:, [1, 2, 0]]).error_difference,
        lambda y, p: segment_test(y, p, {"first": p[:, 0]}, n_resamples=19),
        calibration_error_interval,
        binned_rms_error_interval,
        lambda y, p: fitted_search(y, p).error(),
        lambda y, p: fitted_search(y, p).error().one_step,
        lambda y, p: Recalibrator([TemperatureScaling()], cv=3).fit(p, y).comparison_["log_loss"],
    ],
)
def test_results_open_with_a_sentence_and_show_rounded_numbers_and_no_arrays(make):
    """What `print` and a notebook say first is `sentence()`: no name of a class, no p-value."""
    found = make(*data())
    assert isinstance(found, ShownRounded)
    sentence = found.sentence()
    head = f"{sentence[0].upper()}{sentence[1:]}" + "." * (not sentence.endswith("."))
    assert not head.startswith(("P-value", "P =", type(found).__name__))
    printed = " ".join(str(found).split())
    assert printed[0].upper() + printed[1:] == head.rstrip(".") or printed.startswith(head)
    shown = text_of(found._repr_html_())
    assert shown.startswith(" ".join(escape(head).split()))
    for name in ("estimate", "statistic", "pvalue", "low", "score", "slope"):
        value = getattr(found, name, None)
        if isinstance(value, float) and value == value and f"{name}=" in repr(found):
            # A test of several parts shows their p-values in place of a statistic.
            of_parts = name == "statistic" and isinstance(found, JointTestResult)
            assert of_parts or f" {value:.4g}" in shown
    assert "array" not in shown


def test_results_without_a_text_of_their_own_print_the_same_table():
    y, p = data()
    positive = (y == 0).astype(int)
    cox = cox_recalibration(positive, p[:, 0])
    lines = str(cox).splitlines()
    assert lines[2:4] == ["", f"intercept{' ' * 30}{cox.intercept:.4g}"]
    low, high = cox.slope_interval
    assert f"slope interval{' ' * 25}low {low:.4g}, high {high:.4g}" in lines
    assert "standard error of the square" in str(binned_rms_error_interval(y, p))
    rows = str(validation_measures(positive, p[:, 0], n_resamples=19, random_state=0)).splitlines()
    assert rows[0] == (
        f"Validation of 300 predictions, {positive.sum()} events; 95 % intervals; curve by splines"
    )
    assert rows[6].split()[:3] == ["calibration", "in", "the"]
    table = rows[2:-2]  # above the note
    assert len({len(row) for row in table}) == 1  # aligned


def test_a_search_shows_its_summary_before_its_parameters():
    y, p = data()
    search = CalibrationErrorSearchCV([Zero(), PlugIn(TemperatureScaling())], cv=3, random_state=0)
    assert "skcal-result" not in search._repr_html_()
    search.fit(p, y)
    bundle = search._repr_mimebundle_()
    for html in (search._repr_html_(), bundle["text/html"]):
        shown = text_of(html)
        # Older versions of scikit-learn show parameters without a heading.
        assert shown.index("confidence calibration of 300") < shown.rindex(
            "CalibrationErrorSearchCV"
        )
        for line in search.summary().splitlines():
            assert " ".join(line.strip("* ").split()) in shown.replace("&lt;", "<")
    assert "CalibrationErrorSearchCV" in bundle["text/plain"]


def test_recalibrators_show_their_summary_before_their_parameters():
    y, p = data()
    recalibrator = Recalibrator([TemperatureScaling()], cv=3, random_state=0)
    assert "skcal-result" not in recalibrator._repr_html_()
    recalibrator.fit(p, y)
    classifier = RecalibratedClassifierCV(GaussianNB(), recalibrator, cv=3).fit(p, y)
    for fitted, summary in (
        (recalibrator, recalibrator.summary()),
        (classifier, classifier.recalibrator_.summary()),
    ):
        for html in (fitted._repr_html_(), fitted._repr_mimebundle_()["text/html"]):
            shown = text_of(html).replace("&lt;", "<").replace("&gt;", ">")
            for line in summary.splitlines():
                assert " ".join(line.strip("* ").split()) in shown
    assert recalibrator.get_feature_names_out().tolist() == ["0", "1", "2"]
    read = Recalibrator.from_json(recalibrator.to_json())
    assert "skcal-result" not in read._repr_html_()
    gain = text_of(recalibrator.comparison_["log_loss"]._repr_html_())
    assert f"before {recalibrator.comparison_['log_loss'].before:.4g}" in gain


def test_segments_and_bias_curves_show_their_tables():
    y, p = data()
    features = {"x": np.arange(300), "<b>": np.tile(["u", "v"], 150)}
    found = segment_test(y == 0, p[:, 0], features, n_resamples=19, random_state=0)
    shown = text_of(found._repr_html_())
    worst = found.segments[0]
    assert f"{worst.n_samples} {worst.predicted:.4f} {worst.observed:.4f} (" in shown
    assert "<b>" not in found._repr_html_().replace("&lt;b&gt;", "")
    assert "estimate" not in shown  # which is not a number
    curve = bias_curve(y == 0, p[:, 0], features["x"], n_resamples=19, random_state=0)
    shown = text_of(curve._repr_html_())
    assert "values predicted observed chance" in shown
    assert f"{curve.observed[0]:.4g}" in shown
    assert curve._repr_html_().count("<tr>") < 20


@pytest.mark.parametrize("notion", ["confidence", "classwise", "canonical"])
def test_bins_show_a_table(notion):
    y, p = data()
    options = {"n_bins": 4, "strategy": "uniform", "notion": notion}
    bins = calibration_bins(y, p, **options)
    shown = bins._repr_html_()
    assert f"{len(bins)} bins, {notion} calibration" in shown
    n_rows = min(len(bins), 60)
    assert shown.count("<tr>") == n_rows + 1
    title, _, _, *lines = str(bins).splitlines()
    assert title in text_of(shown)
    short = f"60 of {len(bins)} rows; to_frame() has all"
    assert len(lines) == n_rows + 1 + (len(bins) > 60)
    assert (lines[-1] == short) == (short in shown) == (len(bins) > 60)
    assert repr(bins) == f"CalibrationBins(notion={notion!r}, confidence_level=0.95)"
    assert "nan" not in shown
    assert "weight" not in text_of(shown)
    weighted = calibration_bins(y, p, sample_weight=np.arange(300) % 3, **options)
    assert "weight" in text_of(weighted._repr_html_())
    assert f"{np.nanmax(bins.frequency):.4g}" in shown


def test_a_reliability_diagram_shows_what_its_line_says():
    y, p = data()
    display = ReliabilityDisplay.from_predictions(y, p, random_state=0, plot=False)
    [panel] = display.panels
    shown = text_of(display._repr_html_())
    sentence = panel.number.sentence()
    assert f"C{sentence[1:]}" in shown
    assert f"{panel.number.high:.4g}" in shown
    assert sentence.split(" (")[0] in repr(display)
    assert f"{len(panel.ranges)} significant range" in repr(display) or not panel.ranges
    assert f"{panel.n_bins} bins" in repr(display)
    for part in panel.ranges:
        assert f"average {100 * part.predicted:.3g} %" in shown


def test_tables_that_scroll_have_a_shade_where_they_go_on():
    """Covers scroll with the table, and hide the shades of the frame at its ends."""
    shown = Table(("a", "b"), [("x" * 40, 0.5)] * 9).html()
    rule = re.search(r"\.skcal-scroll \{(.*?)\}", html_result("", shown), re.DOTALL)[1]
    assert (rule.count("no-repeat local"), rule.count("no-repeat scroll")) == (4, 4)
    assert 'class="skcal-scroll' in shown
