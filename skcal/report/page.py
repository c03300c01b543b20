"""A report as one self-contained HTML page: one screen, and folded details."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from skcal._show import html_list, html_text, percent, style
from skcal.displays.reliability_panel import SMOOTH
from skcal.report import rows, words
from skcal.report.figure import (
    draw,
    draw_curve,
    draw_decisions,
    reliability,
    single_panels,
    svg_uri,
)
from skcal.report.views import title_of

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_READING = (
    "Points are bins of predictions with {level} intervals. They lie on the dashed line if the "
    "predictions are calibrated; by chance, 1 of {chance:.0f} intervals misses it. {line}"
    "{ranges}Below: the samples of each outcome by prediction; heights are square roots of counts."
)
_NO_FIGURES = (
    "<p>This report has no figures, since matplotlib is not installed: pip install matplotlib, and "
    "make the report again.</p>\n"
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
_CSS = Path(__file__).with_suffix(".css")
_PAGE_STYLE = style("skcal-report", _CSS, of_page=True)
_PART_STYLE = style("skcal-report", _CSS)


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
    table = rows.measures_table(report.overall, report.settings, False).html("skcal-measures")
    if report.comparison is not None:
        table = replace(rows.comparison_table(report, full), title="").html()
    opened, first = " open" if full else "", _figures(report, words.models_of(report))
    caveats = html_list(words.all_warnings(report, subgroups=False, full=full))
    parts = [
        _head(report, title),
        f'<div class="skcal-first">\n{first}<div>{table}</div></div>\n',
        f"<aside>\n<{section}>Caveats</{section}>\n{caveats}</aside>\n",
        *(
            f"<section>\n<{section}>{name}</{section}>\n{body}</section>\n"
            for name, body in _evidence(report, full)
        ),
        *(
            f"<section>\n<details{opened}>\n<summary><{section}>{name}</{section}></summary>\n{body}"
            "</details>\n</section>\n"
            for name, body in _details(report, full)
        ),
        f"<footer>{html_text(words.how_made(report))}</footer>\n",
    ]
    return f'<article class="skcal skcal-report">\n{"".join(parts)}</article>\n'


def _evidence(report, full):
    """Names and contents of what the verdict rests on, which is always shown and printed."""
    if report.subgroups:
        table = rows.subgroups_table(report).html()
        table += html_list(words.by_kind(report.subgroups, full))
        yield words.name_of_parts(report), table + _figures(report, report.subgroups)
    if report.segments is not None:
        yield "Segments", rows.segments_table(report.segments, report.settings).html()


def _details(report, full):
    """Names and contents of what is folded; the caveats of a full page have all warnings."""
    if report.comparison is not None and not full:
        yield "Paired tests", html_list(words.paired_lines(report))
    for part in words.models_of(report):
        name = "All numbers"
        if report.comparison is not None:
            name += f": <bdi>{html_text(part.name)}</bdi>"
        notes = "" if full else html_list(part.warnings)
        table = rows.measures_table(part, report.settings).html("skcal-measures")
        yield name, f"<p>{html_text(report.read_as)}</p>\n{table}{notes}"
    if report.subgroups:
        tables = [table.html() for table in rows.side_by_side(report.subgroups, report.settings)]
        notes = "" if full else html_list(words.by_kind(report.subgroups))
        yield f"All numbers of {words.name_of_parts(report).lower()}", "".join(tables) + notes
    panel = report.overall.diagram
    yield "Bins", "<p>none</p>\n" if panel is None else rows.bins_table(panel).html()
    if len(report.overall.overview.classes) > 2:
        yield "Classes", rows.classes_table(report.overall).html()
    curves = [part for part in words.models_of(report) if part.curve is not None]
    if curves and _can_draw():
        yield "Curves", _curves(curves)


def _head(report, tag) -> str:
    kind, _, names = title_of(report).partition(": ")
    lines = [f"<p>{html_text(line)}</p>\n" for line in words.headings(report)]
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
    parts = [
        f"<p><b>{html_text(name)}:</b> {html_text(answer)}</p>\n"
        for name, answer in words.answers_of_models(report)
    ]
    first = _answer(words.answer_of_comparison(report))
    return f'<div class="skcal-verdict">{first}</div>\n{"".join(parts)}{further}'


def _answer(answer) -> str:
    title = f'<strong class="skcal-{answer.grade}">{html_text(answer.title)}.</strong>'
    return f"{title} {html_text(' '.join(answer.sentences))}"


def _can_draw() -> bool:
    return find_spec("matplotlib") is not None


def _figures(report, parts) -> str:
    """A diagram for each set of predictions, one below the other on narrow screens."""
    if not _can_draw():
        return _NO_FIGURES
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
