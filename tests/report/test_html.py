"""The page of a report: whole, escaped, alone, the same bytes each time."""

import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from report_cases import (
    FEW,
    HOSTILE,
    REPORTS,
    full_report,
    oddly_named_report,
    plain_report,
    predictions,
)

from skcal.displays import ReliabilityDisplay, reliability
from skcal.report import calibration_report, views

VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """Tags, attributes and text; checks that tags are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def tags(self, name):
        return [attributes for tag, attributes in self.seen if tag == name]


def page_of(report, tmp_path):
    path = tmp_path / "report.html"
    report.save(path)
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("make", REPORTS)
def test_a_page_is_well_formed_asks_for_nothing_and_fits_phones_dark_rooms_and_paper(
    make, tmp_path
):
    text = page_of(make(), tmp_path)
    page = Page(text)
    assert not page.tags("script")
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in page.tags("img"))
    assert all(link["href"].startswith("data:") for link in page.tags("link"))
    assert not re.search(r"https?://|url\(|@import", text)
    [policy] = [meta for meta in page.tags("meta") if "http-equiv" in meta]
    assert policy["content"].startswith("default-src 'none'")
    assert 'name="viewport" content="width=device-width' in text
    for media in ("(prefers-color-scheme: dark)", "@media print", "(max-width: 40rem)"):
        assert media in text


def test_names_from_outside_are_escaped(tmp_path):
    text = page_of(full_report(), tmp_path)
    assert "<script" not in text
    shown = "".join(Page(text).text)
    assert shown.count(HOSTILE) >= 6  # title, heading, class, group and both models
    assert f"All numbers: second {HOSTILE}" in shown
    assert HOSTILE in "".join(image["alt"] for image in Page(text).tags("img"))


@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")  # of signs that matplotlib's fonts lack
def test_control_characters_do_not_reach_the_page(tmp_path):
    text = page_of(oddly_named_report(), tmp_path)
    assert not re.search("[\x00\x1b]", text)
    assert "日本語" in text


def test_a_page_holds_the_numbers_of_the_text(tmp_path):
    report = full_report()
    shown = "".join(Page(page_of(report, tmp_path)).text)
    overall, second = report.overall, report.comparison.second
    for value in (overall.ece.estimate, second.error.estimate):
        assert f"{value:.3f}" in shown
    for text in [*report.overall.warnings, *second.warnings, *report.subgroups[0].warnings]:
        assert text in shown
    assert f"{report.subgroups[1].tuned[0]['rms_calibration_error']:.3f}" in shown


def test_many_classes_and_groups_stay_small(tmp_path, monkeypatch):
    monkeypatch.setattr(reliability, "MAX_PANELS", 3)
    labels, proba = predictions(120, 40)
    groups = np.arange(120) % 4
    report = calibration_report(labels, proba, labels=range(40), by=groups, **FEW)
    text = page_of(report, tmp_path)
    assert len(text) < 1e6
    assert len(Page(text).tags("img")) == 1 + 3
    assert "The 3 with the largest calibration error of 4." in text
    assert "… and 28 more" in report.summary("full")


def test_a_notebook_gets_a_part_of_a_page():
    text = full_report()._repr_html_()
    page = Page(text)
    assert not page.tags("html")
    assert page.tags("article")
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    selectors = re.findall(r"(?:^|[{}])\s*([^@{};]+)\{", style)
    assert len(selectors) > 30
    assert all(".skcal" in one for one in selectors)  # other cells keep their looks


def test_without_matplotlib_and_pandas_a_report_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        plain_report().to_frame()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    plain_report().save(tmp_path / "report.html")
    for text in (full_report()._repr_html_(), (tmp_path / "report.html").read_text("utf-8")):
        assert "This report has no figures, since matplotlib is not installed" in text
        assert "<img" not in text
    assert plain_report().answer.title in (tmp_path / "report.html").read_text("utf-8")


def test_other_endings_are_json_and_text_or_refused(tmp_path):
    report = plain_report()
    report.save(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text(encoding="utf-8") == report.to_json() + "\n"
    report.save(tmp_path / "report.txt")
    assert (tmp_path / "report.txt").read_text(encoding="utf-8") == str(report) + "\n"
    with pytest.raises(ValueError, match=r"has the ending '\.docx'\. Use one of \.html, \.json"):
        report.save(tmp_path / "report.docx")


def test_plot_draws_a_panel_a_model_or_a_group():
    plt = pytest.importorskip("matplotlib.pyplot")
    before = dict(plt.rcParams)
    for groups, count in ((False, 2), (True, 2)):
        display = full_report().plot(by=groups)
        assert isinstance(display, ReliabilityDisplay)
        assert np.size(display.ax_) == count
    _, ax = plt.subplots()
    assert plain_report().plot(ax=ax).ax_ is ax
    with pytest.raises(ValueError, match="by=True, but the report has no subgroups"):
        plain_report().plot(by=True)
    plt.close("all")
    assert dict(plt.rcParams) == before


def test_no_line_ends_between_a_number_and_its_sign():
    text = views.html_text("95 % of 3 (≤ 0.5, ≥ .5 %), a %b")
    assert (
        text == "95\N{NO-BREAK SPACE}% of 3 (≤\N{NO-BREAK SPACE}0.5, ≥ .5\N{NO-BREAK SPACE}%), a %b"
    )


def test_names_of_rows_break_between_words_alone_on_telephones():
    """Where they may break anywhere and have no least width, they stand letter below letter."""
    narrow = re.search(
        r"@media \(max-width: (?:40rem|640px)\) \{(.*?)\n\}", full_report()._repr_html_(), re.S
    )[1]
    rules = [line for line in narrow.splitlines() if "tbody th" in line]
    assert any("display: block; max-width: none" in line for line in rules)  # as wide as the page
    names = re.findall(r'<td[^>]* data-name="([^"]*)"', full_report()._repr_html_())
    assert {"O/E ratio", "calibration error"} & set(names)  # beside each value, without a head


@pytest.mark.parametrize("mean", [0.02, 0.4])
def test_no_text_of_a_figure_is_cut_off(mean, monkeypatch):
    """Also of rare events, whose axes say how many predictions lie beyond, and of long names."""
    rng = np.random.default_rng(0)
    p = np.append(rng.beta(1.2, 1.2 / mean, 990), rng.uniform(0.4, 0.9, 10))
    y = (rng.random(1000) < p).astype(int)
    hospital = rng.choice(
        [f"the general hospital number {k} of a long town" for k in range(5)], 1000
    )
    figures = []
    monkeypatch.setattr(views, "svg_uri", lambda figure: figures.append(figure) or "")
    options = {"by": {"hospital": hospital}, "name": "the model of a year ago", **FEW}
    assert "Forest plot" in calibration_report(y, p, **options)._repr_html_()
    assert len(figures) >= 9
    for figure in figures:
        for _ in range(2):
            figure.draw_without_rendering()
        width, height = figure.get_size_inches()
        box = figure.get_tightbbox()
        assert min(box.x0, box.y0, width - box.x1, height - box.y1) >= -0.01


def test_subgroups_of_rare_events_are_enlarged_as_all_samples_are():
    """The interval of a small subgroup may leave the axis, by an arrow; its points do not."""
    rng = np.random.default_rng(0)
    p = rng.beta(1.2, 40, 4000)
    y = (rng.random(4000) < p).astype(int)
    ward = np.repeat(["large", "small"], [3960, 40])
    p[-40:] = rng.uniform(0.05, 0.1, 40)
    y[-40:] = np.arange(40) % 8 == 0
    options = {"n_resamples": 99, "random_state": 0}
    report = calibration_report(y, p, by={"ward": ward}, **options)
    alone = ReliabilityDisplay.from_predictions(y[-40:], p[-40:], plot=False, **options)
    high = report.overall.diagram.axis.high
    display = report.plot(by=True)
    assert display.axis.high == report.overall.diagram.axis.high <= 0.2 < alone.axis.high
    ends = {(*ax.get_xlim(), *ax.get_ylim()) for ax in display.ax_}
    assert len(ends) == 1
    small = display.panels[1]
    assert small.frequency.max() <= high < small.high.max()
    assert small.histogram_edges[-1] == pytest.approx(high)
    [key] = display.legends_
    assert "above the axis" in [text.get_text() for text in key.get_texts()]
    said = "Arrows mark intervals that go on beyond the axis."
    assert said in report._repr_html_()
    assert said not in calibration_report(y, p, **options)._repr_html_()
