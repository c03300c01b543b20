"""A report as one self-contained HTML page: one screen, and folded details."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from skcal._show import html_list, html_text, percent, style
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
    measures_table,
    outcomes_table,
    segments_table,
    subgroups_table,
)
from skcal.report.views import title_of
from skcal.report.words import all_warnings, by_kind, heading, how_made

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_READING = (
    "Points are bins of predictions, each with its own {level} interval. On the dashed line they "
    "are calibrated. Shaded: ranges with statistically significant miscalibration. Below: how many "
    "samples have each prediction, by outcome; heights are square roots of counts."
)
_CURVE_READING = (
    "Curves are regressions on splines. The darker band holds the curve at each single point, the "
    "paler one holds the whole curve. Below: how many samples have each prediction, by outcome."
)
_DECISION_READING = (
    " Net benefit: events found by treating where the prediction is at least the threshold t, less "
    "t / (1 − t) for each needless treatment."
)
_RULES = """
.skcal-page { margin: 0; background: #fff; }
& { max-width: 68rem; margin: 0 auto; padding: 1.25rem; }
& header p { margin: 0; color: var(--soft); }
& :is(h1, h2, h3, h4) { line-height: 1.25; color: inherit; }
& header :is(h1, h3) { margin: 0 0 .25rem; font-size: 1.7rem; }
& :is(section, aside) > :is(h2, h4) { margin: 0 0 .5rem; font-size: 1.15rem; }
& section { margin-top: 1rem; }
& .skcal-verdict { margin: 1rem 0 0; font-size: 1.1rem; }
& .skcal-verdict strong { display: block; font-size: 1.35rem; }
& .skcal-good { color: #0072b2; }
& .skcal-unknown { color: var(--soft); }
& .skcal-moderate { color: #b35900; }
& .skcal-bad { color: #c03000; }
& summary { cursor: pointer; margin: 0 0 .5rem; }
& summary :is(h2, h4) { display: inline; margin: 0; font-size: 1.15rem; }
& aside { padding: .75rem 1rem; border-left: .25rem solid var(--edge);
  background: var(--mind); }
& .skcal-first { display: grid; grid-template-columns: minmax(18rem, 26rem) minmax(20rem, 1fr);
  gap: 0 1.5rem; align-items: center; }
& .skcal-first:not(:has(figure)), & .skcal-first:has(img + img) { display: block; }
& .skcal-first :is(td, th) { font-size: .875rem; overflow-wrap: normal; }
& figure { margin: 1rem auto; }
& img { display: block; height: auto; filter: var(--image); }
& .skcal-panels { display: flex; flex-wrap: wrap; justify-content: center; gap: 1rem; }
& .skcal-panels img { flex: 1 1 20rem; width: 100%; max-width: 30rem; min-width: 0; }
& details .skcal-panels { flex-direction: column; align-items: center; }
& details .skcal-panels img { flex: none; }
& .skcal-many img { flex: none; width: 21.6rem; max-width: 100%; }
& details .skcal-many { flex-direction: row; }
& figcaption { color: var(--soft); font-size: .875rem; }
& .skcal-measures th { width: 22%; font-weight: 600; }
& .skcal-measures td:nth-child(3) { white-space: nowrap; }
& .skcal-measures td:nth-child(2) { font-weight: 600; text-align: right; white-space: nowrap; }
& .skcal-measures td:last-child { width: 50%; color: var(--soft); }
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
  & .skcal-first { display: block; }
  & .skcal-measures thead { display: none; }
  & .skcal-measures tr { display: grid; grid-template-columns: 1fr auto auto; gap: .5rem;
    padding: .35rem 0; border-bottom: 1px solid var(--line); }
  & .skcal-measures :is(td, th) { width: auto; padding-top: 0; padding-bottom: 0;
    padding-right: 0; border: 0; }
  & .skcal-measures td:last-child { grid-column: 1 / -1; width: auto; font-size: .875rem; }
  & .skcal-part td:last-child { padding-left: 1.25rem; }
}
@media screen and (prefers-color-scheme: dark) {
  .skcal-page { background: #141414; }
  & .skcal-good { color: #6cb8ff; }
  & .skcal-moderate { color: #ffb366; }
  & .skcal-bad { color: #ff8a5c; }
}
@media print {
  & { max-width: none; padding: 0; font-size: 9pt; }
  & :is(table, figcaption, footer) { font-size: 8pt; }
  & thead th { font-size: 7.5pt; }
  & .skcal-verdict { font-size: 11pt; }
  & :is(td, th) { padding-top: .15rem; padding-bottom: .15rem; }
  & .skcal-scroll { max-height: none; overflow: visible; }
  & .skcal-scroll thead th { position: static; }
  & :is(tr, img, aside) { break-inside: avoid; }
  & section:has(details:not([open])) { display: none; }
  & :is(h2, h4, summary) { break-after: avoid; }
  & .skcal-panels img { max-width: 8.5cm; }
  & .skcal-first { grid-template-columns: 8.5cm 1fr; }
}
"""
_PAGE_STYLE = style("skcal-report", _RULES, of_page=True)
_PART_STYLE = style("skcal-report", _RULES)


def as_page(report, full: bool = False) -> str:
    """A whole document, with its figures; of "full" nothing is folded."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{html_text(title_of(report))}</title>\n{_PAGE_STYLE}</head>\n"
        f'<body class="skcal-page">\n{_article(report, "h1", "h2", full)}</body>\n</html>\n'
    )


def as_fragment(report) -> str:
    """A part of another document; without matplotlib it says so in place of the figures."""
    return f"{_PART_STYLE}{_article(report, 'h3', 'h4', False)}"


def _article(report, title, section, full) -> str:
    """One screen: answer, diagram and five rows; below caveats, evidence and folded details."""
    try:
        import matplotlib  # noqa: F401

        figures: Any = _figures
    except ImportError:
        figures = _no_figures
    models = [report.overall]
    if report.comparison is not None:
        models.append(report.comparison.second)
    table = measures_table(report.overall, report.settings, False).html("skcal-measures")
    if report.comparison is not None:
        table = replace(comparison_table(report), title="").html()
    shown = "".join(
        f"<section>\n<{section}>{name}</{section}>\n{body}</section>\n"
        for name, body in _evidence(report, figures)
    )
    opened = " open" if full else ""
    folded = "".join(
        f"<section>\n<details{opened}>\n<summary><{section}>{name}</{section}></summary>\n{body}"
        "</details>\n</section>\n"
        for name, body in _details(report, models, figures)
    )
    caveats = html_list(all_warnings(report, subgroups=False, full=full))
    parts = [
        _head(report, title),
        f'<div class="skcal-first">\n{figures(report, models)}{table}</div>\n',
        f"<aside>\n<{section}>Caveats</{section}>\n{caveats}</aside>\n",
        shown,
        folded,
        f"<footer>{html_text(how_made(report))}</footer>\n",
    ]
    return f'<article class="skcal skcal-report">\n{"".join(parts)}</article>\n'


def _evidence(report, figures):
    """Names and contents of what the verdict rests on, which is always shown and printed."""
    if report.subgroups:
        outcomes = outcomes_table(report)
        tables = subgroups_table(report).html() + (outcomes.html() if outcomes.rows else "")
        warnings = html_list(by_kind(report.subgroups))
        yield "Subgroups", tables + warnings + figures(report, report.subgroups)
    if report.segments is not None:
        yield "Segments", segments_table(report.segments, report.settings).html()


def _details(report, models, figures):
    """Names and contents of what is folded."""
    for part in models:
        name = "All numbers"
        if report.comparison is not None:
            name += f": <bdi>{html_text(part.name)}</bdi>"
        notes = html_list([*part.cautions, *part.warnings])
        yield name, measures_table(part, report.settings).html("skcal-measures") + notes
    curves = [part for part in models if part.curve is not None]
    if curves and figures is _figures:
        yield "Curves", _curves(curves)
    for part in report.subgroups:
        table = measures_table(part, report.settings).html("skcal-measures")
        yield f"Subgroup <bdi>{html_text(part.name)}</bdi>", table
    panel = report.overall.diagram
    yield "Bins", "<p>none</p>\n" if panel is None else bins_table(panel).html()
    yield "Classes", classes_table(report.overall).html()


def _head(report, tag) -> str:
    kind, _, names = title_of(report).partition(": ")
    return (
        f"<header>\n<p>{kind}</p>\n"
        f"<{tag}><bdi>{html_text(names)}</bdi></{tag}>\n"
        f"<p>{html_text(heading(report.overall))}</p>\n</header>\n"
        f"{_answer(report)}"
    )


def _answer(report) -> str:
    """The title in its colour and the sentences; of two models, what tells them apart first."""
    if report.comparison is not None:
        return f'<p class="skcal-verdict">{html_text(report.verdict)}</p>\n'
    answer = report.answer
    title = f'<strong class="skcal-{answer.grade}">{html_text(answer.title)}.</strong>'
    text, more = (html_text(" ".join(part)) for part in (answer.sentences, report.further))
    further = f"<p>{more}</p>\n" if more else ""
    return f'<p class="skcal-verdict">{title} {text}</p>\n{further}'


def _no_figures(report, parts) -> str:
    return (
        "<p>This report has no figures, since matplotlib is not installed: pip install matplotlib, "
        "and make the report again.</p>\n"
    )


def _figures(report, parts) -> str:
    """A diagram for each set of predictions, one below the other on narrow screens.

    That of a single model stands beside the answer and does not repeat the error.
    """
    if all(part.diagram is None for part in parts):
        return ""
    display = reliability(parts, report.notion, report.settings)
    if parts == [report.overall]:
        [panel] = display.panels
        display.panels = [replace(panel, label=panel.label.split("\n")[-1], number=None)]
    images = [
        _image(f"Reliability diagram: {panel.label}", draw(single))
        for panel, single in zip(display.panels, single_panels(display), strict=True)
    ]
    left_out = ""
    if display.n_panels_left_out:
        left_out = f"The {len(display.panels)} with the largest calibration error of {len(parts)}. "
    reading = _READING.format(level=percent(report.settings["confidence_level"]))
    return _figure(images, left_out + reading)


def _curves(parts) -> str:
    """Calibration curves, and the decision curves of all models on the same axes."""
    images = [_image(f"Calibration curve: {part.name}", draw_curve(part.curve)) for part in parts]
    decisions = [part for part in parts if part.decision is not None]
    if decisions:
        names = ", ".join(str(part.name) for part in decisions)
        images.append(_image(f"Decision curve: {names}", draw_decisions(decisions)))
    return _figure(images, _CURVE_READING + _DECISION_READING * bool(decisions))


def _figure(images, reading) -> str:
    many = " skcal-many" * (len(images) > 2)
    return (
        f'<figure>\n<div class="skcal-panels{many}">\n{"".join(images)}</div>\n'
        f"<figcaption>{html_text(reading)}</figcaption>\n</figure>\n"
    )


def _image(description, figure) -> str:
    return f'<img alt="{html_text(description)}" src="{svg_uri(figure)}">\n'
