"""A report as one self-contained HTML page: light, dark, on phones and on paper."""

from __future__ import annotations

from skcal._show import html_list, html_text, number, percent, style
from skcal.report.figure import (
    draw,
    draw_curve,
    draw_decisions,
    reliability,
    single_panels,
    svg_uri,
)
from skcal.report.rows import (
    bins_table,
    classes_table,
    comparison_table,
    groups_table,
    measures_table,
    outcomes_table,
    root,
    segments_table,
)
from skcal.report.words import LEVEL, all_warnings, by_kind, heading, how_made, pvalue_text

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_READING = (
    "Dots are the observed frequencies of bins, with Clopper-Pearson bars; hollow dots stand for "
    "fewer than 10 samples. Orange is where {level} of the frequencies of calibrated predictions "
    "would lie. Hatched stretches hold no predictions. Above: how many predictions there are."
)
_CURVE_READING = (
    " Curves are regressions on splines; their bands say where the curve may lie, at each point "
    "and as a whole. Below them: the predictions."
)
_DECISION_READING = (
    " Net benefit: events found by treating where the prediction is at least the threshold t, less "
    "t / (1 − t) for each needless treatment."
)
_RULES = """
.skcal-page { margin: 0; background: #fff; }
& { max-width: 60rem; margin: 0 auto; padding: 1.25rem; }
& header p { margin: 0; color: var(--soft); }
& :is(h1, h2, h3, h4) { line-height: 1.25; color: inherit; }
& header :is(h1, h3) { margin: 0 0 .25rem; font-size: 1.7rem; }
& :is(section, aside) > :is(h2, h4) { margin: 0 0 .5rem; font-size: 1.15rem; }
& section { margin-top: 2rem; }
& .skcal-verdict { margin: 1rem 0 0; font-size: 1.1rem; }
& summary { cursor: pointer; margin: 0 0 .5rem; }
& summary :is(h2, h4) { display: inline; margin: 0; font-size: 1.15rem; }
& .skcal-cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr));
  gap: .75rem; margin: 1.25rem 0; }
& .skcal-cards div { padding: .75rem 1rem; border-radius: .5rem; background: var(--box); }
& .skcal-cards dt { color: var(--soft); font-size: .875rem; font-weight: normal; }
& .skcal-cards dd { margin: 0; color: var(--soft); font-size: .875rem; }
& .skcal-cards b { display: block; color: var(--text); font-size: 1.5rem; line-height: 1.3; }
& aside { padding: .75rem 1rem; border-left: .25rem solid var(--edge);
  background: var(--mind); }
& figure { margin: 1.5rem auto; }
& img { display: block; height: auto; filter: var(--image); }
& .skcal-panels { display: flex; flex-wrap: wrap; justify-content: center; gap: 1rem; }
& .skcal-panels img { flex: 1 1 16rem; max-width: 28rem; min-width: 0; }
& .skcal-panels:has(img:nth-child(4):last-child) img { flex-basis: 20rem; } /* 2 + 2, not 3 + 1 */
& .skcal-panels:has(img:nth-child(5):last-child) img { max-width: 18rem; } /* 3 + 2, alike */
& figcaption { color: var(--soft); font-size: .875rem; }
& .skcal-measures th { width: 30%; font-weight: 600; }
& .skcal-measures td:nth-child(2) { font-weight: 600; text-align: right; white-space: nowrap; }
& .skcal-measures td:last-child { width: 58%; color: var(--soft); }
& .skcal-part th { padding-left: 1.25rem; font-weight: normal; }
& .skcal-part td:nth-child(2) { font-weight: normal; }
& .skcal-long { max-height: 26rem; }
& .skcal-scroll table { overflow-wrap: break-word; }
& .skcal-scroll th { min-width: 4.5rem; max-width: 18rem; overflow-wrap: anywhere; }
& .skcal-scroll thead th { overflow-wrap: break-word; }
& .skcal-scroll tbody th { min-width: 8rem; }
& .skcal-scroll small { display: block; color: var(--soft); }
& .skcal-scroll thead th { position: sticky; top: 0; background: var(--back); }
& .skcal-scroll + ul { margin-top: .75rem; }
& footer { margin-top: 2rem; color: var(--soft); font-size: .875rem; }
@media (max-width: 40rem) {
  & { padding: 1rem; }
  & .skcal-cards { grid-template-columns: 1fr 1fr; }
  & .skcal-measures tr { display: grid; grid-template-columns: 1fr auto; padding: .35rem 0;
    border-bottom: 1px solid var(--line); }
  & .skcal-measures :is(td, th) { width: auto; padding-top: 0; padding-bottom: 0;
    padding-right: 0; border: 0; }
  & .skcal-measures td:last-child { grid-column: 1 / -1; width: auto; font-size: .875rem; }
  & .skcal-part td:last-child { padding-left: 1.25rem; }
}
@media screen and (prefers-color-scheme: dark) {
  .skcal-page { background: #141414; }
}
@media print {
  & { max-width: none; padding: 0; font-size: 9pt; }
  & :is(table, figcaption, footer, .skcal-cards dt, .skcal-cards dd) { font-size: 8pt; }
  & thead th { font-size: 7.5pt; }
  & .skcal-verdict { font-size: 11pt; }
  & .skcal-cards { grid-template-columns: repeat(4, 1fr); }
  & :is(td, th) { padding-top: .15rem; padding-bottom: .15rem; }
  & details::details-content { content-visibility: visible; block-size: auto; }
  & .skcal-scroll { max-height: none; overflow: visible; }
  & .skcal-scroll thead th { position: static; }
  & :is(tr, img, .skcal-cards div, aside) { break-inside: avoid; }
  & :is(h2, h4, summary) { break-after: avoid; }
  & .skcal-panels img { max-width: 7cm; }
}
"""
_PAGE_STYLE = style("skcal-report", _RULES, of_page=True)
_PART_STYLE = style("skcal-report", _RULES)


def as_page(report) -> str:
    """A whole document, with its figure."""
    title = html_text(f"Calibration report: {report.overall.name}")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n{_PAGE_STYLE}</head>\n"
        f'<body class="skcal-page">\n{_article(report, "h1", "h2")}</body>\n</html>\n'
    )


def as_fragment(report) -> str:
    """A part of another document; without matplotlib it says so in place of the figure."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        note = "<p>Figures need matplotlib: pip install matplotlib.</p>\n"
        return f"{_PART_STYLE}{_article(report, 'h3', 'h4', note)}"
    return f"{_PART_STYLE}{_article(report, 'h3', 'h4')}"


def _article(report, title, section, figure=None) -> str:
    """The whole report; ``figure`` stands in place of figures that cannot be drawn."""
    models = [report.overall]
    sections = [("Measures", _measures_html(report.overall, report.settings))]
    if report.comparison is not None:
        models.append(report.comparison.second)
        sections.append(("Comparison", comparison_table(report).html()))
    if report.groups:
        drawn = _figures(report, report.groups) if figure is None else figure
        sections.append(("Groups", _groups_html(report) + drawn))
        sections += [
            (f"Group <bdi>{html_text(part.name)}</bdi>", _measures_html(part, report.settings))
            for part in report.groups
        ]
    if report.segments is not None:
        sections.append(("Segments", segments_table(report.segments).html()))
    panel = report.overall.diagram
    sections.append(("Bins", "<p>none</p>\n" if panel is None else bins_table(panel).html()))
    sections.append(("Classes", classes_table(report.overall).html()))
    caveats = html_list(all_warnings(report, groups=False))
    parts = [
        _head(report, title),
        _cards(report),
        f"<aside>\n<{section}>Caveats</{section}>\n{caveats}</aside>\n",
        _figures(report, models) if figure is None else figure,
        *(
            f"<section>\n<details open>\n<summary><{section}>{name}</{section}></summary>\n{body}"
            "</details>\n</section>\n"
            for name, body in sections
        ),
        f"<footer>{html_text(how_made(report))}</footer>\n",
    ]
    return f'<article class="skcal skcal-report">\n{"".join(parts)}</article>\n'


def _head(report, tag) -> str:
    return (
        f"<header>\n<p>Calibration report</p>\n"
        f"<{tag}><bdi>{html_text(report.overall.name)}</bdi></{tag}>\n"
        f"<p>{html_text(heading(report))}</p>\n</header>\n"
        f'<p class="skcal-verdict">{html_text(report.verdict)}</p>\n'
    )


def _cards(report) -> str:
    """The numbers that matter most, each with what it is to be compared with."""
    view, ece = report.overall.overview, report.overall.ece
    cards = [("accuracy", number(view.accuracy), f"confidence {number(view.mean_confidence)}")]
    if report.notion.of_positive_class:
        mean = f"mean prediction {number(view.mean_predictions[-1])}"
        cards = [("base rate", number(view.base_rates[-1]), mean)]
    for facts in report.overall.tuned[:1]:
        bound = (facts["one_step"] or {}).get("lower_confidence_bound")
        least = "" if bound is None else f"at least {number(root(bound))}"
        error = number(facts["calibration_error"])
        cards.append(("calibration error, tuned", error, least))
    if ece is not None:
        limit = f"if calibrated ≤ {number(ece.null_limit)}"
        if report.overall.without_bins is not None:
            limit += f"; without bins {number(report.overall.without_bins['estimate'])}"
        cards.append((f"ECE, {ece.n_bins} bins", number(ece.estimate), limit))
        verdict = "refuted" if ece.pvalue <= LEVEL else "not refuted"
        level = f"{verdict} at the {percent(LEVEL)} level"
        cards.append(("test of calibration", pvalue_text(ece.pvalue), level))
    shown = "".join(
        f"<div><dt>{html_text(name)}</dt>"
        f"<dd><b>{html_text(value)}</b> {html_text(note)}</dd></div>\n"
        for name, value, note in cards
    )
    return f'<dl class="skcal-cards">\n{shown}</dl>\n'


def _measures_html(measures, settings) -> str:
    return measures_table(measures, settings).html("skcal-measures")


def _groups_html(report) -> str:
    outcomes = outcomes_table(report)
    tables = groups_table(report).html() + (outcomes.html() if outcomes.rows else "")
    return tables + html_list(by_kind(report.groups))


def _figures(report, parts) -> str:
    """An image for each panel, so that narrow screens show one below the other."""
    if all(part.diagram is None for part in parts):
        return ""
    display = reliability(parts, report.notion, report.settings)
    images = [
        _image(f"Reliability diagram: {panel.label}", draw(single))
        for panel, single in zip(display.panels, single_panels(display), strict=True)
    ]
    curves = [part for part in parts if part.curve is not None and part.diagram is not None]
    images += [
        _image(f"Calibration curve: {part.name}", draw_curve(part.curve))
        for part in curves[: len(display.panels)]
    ]
    whole = parts[0] is report.overall  # groups are too many for a third figure each
    decisions = [part for part in curves if whole and part.decision is not None]
    if decisions:
        names = ", ".join(str(part.name) for part in decisions)
        images.append(_image(f"Decision curve: {names}", draw_decisions(decisions)))
    left_out = ""
    if display.n_panels_left_out:
        left_out = f"The {len(display.panels)} with the largest ECE of {len(parts)}. "
    reading = _READING.format(level=percent(report.settings["confidence_level"]))
    reading += _CURVE_READING * bool(curves) + _DECISION_READING * bool(decisions)
    return (
        f'<figure>\n<div class="skcal-panels">\n{"".join(images)}</div>\n'
        f"<figcaption>{left_out}{html_text(reading)}</figcaption>\n</figure>\n"
    )


def _image(description, figure) -> str:
    return f'<img alt="{html_text(description)}" src="{svg_uri(figure)}">\n'
