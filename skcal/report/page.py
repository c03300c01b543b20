"""A report as one self-contained HTML page: one screen, and folded details."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from skcal._show import html_list, html_text, percent, style
from skcal.displays.reliability_panel import SMOOTH
from skcal.report.answer import answer_of
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
    segments_table,
    side_by_side,
    subgroups_table,
)
from skcal.report.views import title_of
from skcal.report.words import (
    all_warnings,
    answer_of_comparison,
    by_kind,
    headings,
    how_made,
    name_of_parts,
    paired_lines,
)

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_READING = (
    "Points are bins of predictions with {level} intervals. They lie on the dashed line if the "
    "predictions are calibrated; by chance, 1 of {chance:.0f} intervals misses it. {line}"
    "{ranges}Below: the samples of each outcome by prediction; heights are square roots of counts."
)
_LINE = "The line is a smooth estimate of the observed frequency. "
_RANGES = "Shaded ranges are significantly miscalibrated; points in them that miss are orange. "
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
& .skcal-first { display: grid; grid-template-columns: minmax(18rem, 24rem) minmax(20rem, 1fr);
  gap: 0 2rem; align-items: start; margin-top: 1rem; }
& .skcal-first:not(:has(figure)), & .skcal-first:has(img + img) { display: block; }
& .skcal-first figure { margin: 0 0 1rem; }
& figure { margin: 1rem auto; }
& img { display: block; height: auto; filter: var(--image); }
& .skcal-panels { display: flex; flex-wrap: wrap; justify-content: center; gap: 1rem; }
& .skcal-panels img { flex: 1 1 20rem; width: 100%; max-width: 30rem; min-width: 0; }
& details .skcal-panels { flex-direction: column; align-items: center; }
& details .skcal-panels img { flex: none; }
& .skcal-many img { flex: none; width: 21.6rem; max-width: 100%; }
& details .skcal-many { flex-direction: row; }
& figcaption { color: var(--soft); font-size: .875rem; }
& .skcal-measures thead { display: none; }
& .skcal-measures :is(table, tbody) { display: block; }
& .skcal-measures tr { display: grid; grid-template-columns: 1fr 5rem 8.5rem; gap: 0 .75rem;
  padding: .35rem 0; border-bottom: 1px solid var(--line); break-inside: avoid; }
& .skcal-measures :is(td, th) { padding: 0; border: 0; font-weight: 600; }
& .skcal-measures td:nth-child(2) { text-align: right; }
& .skcal-measures td:nth-child(3) { font-weight: normal; }
& .skcal-measures td:last-child { grid-column: 1 / -1; color: var(--soft); font-size: .875rem;
  font-weight: normal; }
& .skcal-measures .skcal-part :is(td, th) { font-weight: normal; }
& .skcal-part :is(th, td:last-child) { padding-left: 1.25rem; }
& details .skcal-measures tbody { columns: 26rem; column-gap: 2rem; }
& .skcal-number { text-align: right; }
& .skcal-long { max-height: 26rem; }
& .skcal-scroll table { overflow-wrap: break-word; }
& .skcal-scroll th { min-width: 4.5rem; max-width: 18rem; overflow-wrap: anywhere; }
& .skcal-scroll thead th { overflow-wrap: break-word; }
& .skcal-scroll tbody th { min-width: 8rem; }
& .skcal-scroll small { display: block; color: var(--soft); }
& .skcal-scroll thead th { position: sticky; top: 0; background: var(--back); }
& .skcal-scroll + ul { margin-top: .75rem; }
& footer { margin-top: 2rem; color: var(--soft); font-size: .875rem; }
@media screen and (max-width: 60rem) { & .skcal-first { display: block; } }
@media (max-width: 40rem) {
  & { padding: 1rem; }
  & .skcal-first { display: block; }
  & .skcal-measures tr { grid-template-columns: 1fr auto auto; }
  & .skcal-scroll :is(td, th) { padding-right: .4rem; font-size: .75rem; }
  & .skcal-scroll :is(th, tbody th) { min-width: 0; }
}
@media screen and (prefers-color-scheme: dark) {
  .skcal-page { background: #141414; }
  & .skcal-good { color: #6cb8ff; }
  & .skcal-moderate { color: #ffb366; }
  & .skcal-bad { color: #ff8a5c; }
}
@media print {
  & { max-width: none; padding: 0; font-size: 8.5pt; line-height: 1.35; }
  & :is(table, small, figcaption, footer, td, th, li) { font-size: 8pt; }
  & header :is(h1, h3) { font-size: 16pt; }
  & :is(section, aside) > :is(h2, h4), & summary :is(h2, h4) { font-size: 11pt; }
  & .skcal-verdict { font-size: 10pt; margin-top: .5rem; }
  & .skcal-verdict strong { font-size: 13pt; }
  & .skcal-measures td:last-child { font-size: 7.5pt; }
  & .skcal-measures tr { padding: .15rem 0; }
  & details .skcal-measures tbody { columns: 2; }
  & :is(td, th) { padding-top: .08rem; padding-bottom: .08rem; }
  & details :is(td, th) { font-size: 7.5pt; line-height: 1.2; }
  & aside { padding: .4rem .75rem; }
  & section, & footer { margin-top: .4rem; }
  & figure { margin: .5rem auto; }
  & .skcal-scroll { max-height: none; overflow: visible; }
  & .skcal-scroll thead th { position: static; }
  & :is(tr, img, aside) { break-inside: avoid; }
  & section:has(details:not([open])) { display: none; }
  & :is(h2, h4, summary) { break-after: avoid; }
  & .skcal-panels, & details .skcal-panels { flex-direction: row; }
  & .skcal-panels img, & details .skcal-panels img { flex: none; width: 7.9cm; }
  & .skcal-first { grid-template-columns: 7.9cm 1fr; }
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
        table = replace(comparison_table(report, full), title="").html()
    shown = "".join(
        f"<section>\n<{section}>{name}</{section}>\n{body}</section>\n"
        for name, body in _evidence(report, figures, full)
    )
    opened = " open" if full else ""
    folded = "".join(
        f"<section>\n<details{opened}>\n<summary><{section}>{name}</{section}></summary>\n{body}"
        "</details>\n</section>\n"
        for name, body in _details(report, models, figures, full)
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


def _evidence(report, figures, full):
    """Names and contents of what the verdict rests on, which is always shown and printed."""
    if report.subgroups:
        table, caveats = subgroups_table(report).html(), html_list(by_kind(report.subgroups, full))
        yield name_of_parts(report), table + caveats + figures(report, report.subgroups)
    if report.segments is not None:
        yield "Segments", segments_table(report.segments, report.settings).html()


def _details(report, models, figures, full):
    """Names and contents of what is folded; the caveats of a full page have all warnings."""
    if report.comparison is not None and not full:
        yield "Paired tests", html_list(paired_lines(report))
    for part in models:
        name = "All numbers"
        if report.comparison is not None:
            name += f": <bdi>{html_text(part.name)}</bdi>"
        notes = "" if full else html_list(part.warnings)
        yield name, measures_table(part, report.settings).html("skcal-measures") + notes
    if report.subgroups:
        tables = side_by_side(report.subgroups, report.settings)
        notes = "" if full else html_list(by_kind(report.subgroups))
        yield (
            f"All numbers of {name_of_parts(report).lower()}",
            "".join(table.html() for table in tables) + notes,
        )
    panel = report.overall.diagram
    yield "Bins", "<p>none</p>\n" if panel is None else bins_table(panel).html()
    if len(report.overall.overview.classes) > 2:
        yield "Classes", classes_table(report.overall).html()
    curves = [part for part in models if part.curve is not None]
    if curves and figures is _figures:
        yield "Curves", _curves(curves)


def _head(report, tag) -> str:
    kind, _, names = title_of(report).partition(": ")
    lines = [f"<p>{html_text(line)}</p>\n" for line in headings(report)]
    return (
        f"<header>\n<p>{kind}</p>\n"
        f"<{tag}><bdi>{html_text(names)}</bdi></{tag}>\n{''.join(lines)}</header>\n"
        f"{_answers(report)}"
    )


def _answers(report) -> str:
    """Each title in its colour and its sentences, those of two models below their difference."""
    further = f"<p>{html_text(' '.join(report.further))}</p>\n" if report.further else ""
    if report.comparison is None:
        return f'<div class="skcal-verdict">{_answer(report.answer)}</div>\n{further}'
    models = report.overall, report.comparison.second
    answers = report.answer, answer_of(models[1])
    parts = [
        f"<p><b>{html_text(part.name)}:</b> {html_text(answer)}</p>\n"
        for part, answer in zip(models, answers, strict=True)
    ]
    first = _answer(answer_of_comparison(report))
    return f'<div class="skcal-verdict">{first}</div>\n{"".join(parts)}{further}'


def _answer(answer) -> str:
    title = f'<strong class="skcal-{answer.grade}">{html_text(answer.title)}.</strong>'
    return f"{title} {html_text(' '.join(answer.sentences))}"


def _no_figures(report, parts) -> str:
    return (
        "<p>This report has no figures, since matplotlib is not installed: pip install matplotlib, "
        "and make the report again.</p>\n"
    )


def _figures(report, parts) -> str:
    """A diagram for each set of predictions, one below the other on narrow screens."""
    if all(part.diagram is None for part in parts):
        return ""
    display = reliability(parts, report.notion, report.settings)
    names = [panel.label.split("\n")[0] for panel in display.panels]
    for k, panel in enumerate(display.panels):  # heading and table say the rest
        display.panels[k] = replace(panel, label=names[k] * (len(parts) > 1), number=None)
    singles = single_panels(display, same_counts=report.overall in parts)
    images = [
        _image(f"Reliability diagram: {name}", draw(single))
        for name, single in zip(names, singles, strict=True)
    ]
    reading = ""
    if display.n_panels_left_out:
        reading = f"The {len(display.panels)} with the largest calibration error of {len(parts)}. "
    if report.overall in parts:  # once a page
        shaded = any(panel.ranges for panel in display.panels)
        level = report.settings["confidence_level"]
        reading += _READING.format(
            level=percent(level),
            chance=1 / (1 - level),
            line=_LINE * all(panel.line == SMOOTH for panel in display.panels),
            ranges=_RANGES * shaded,
        )
    return _figure(images, reading)


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
    caption = f"<figcaption>{html_text(reading)}</figcaption>\n" if reading else ""
    return (
        f'<figure>\n<div class="skcal-panels{many}">\n{"".join(images)}</div>\n{caption}</figure>\n'
    )


def _image(description, figure) -> str:
    return f'<img alt="{html_text(description)}" src="{svg_uri(figure)}">\n'
