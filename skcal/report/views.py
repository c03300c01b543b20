"""A report as text, figures, HTML page, CSV, LaTeX and plain data.

Figures are drawn without pyplot's state, and have the same bytes each time.
"""

from __future__ import annotations

import base64
from copy import copy
from dataclasses import replace
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Any

from skcal._show import (
    Table,
    broken,
    cut_apart,
    html_list,
    html_text,
    one_line,
    percent,
    printable,
    style,
    wrapped,
)
from skcal.displays import CalibrationCurveDisplay, DecisionCurveDisplay, ReliabilityDisplay
from skcal.displays.draw import rendered
from skcal.report import rows, words
from skcal.report.centres import draw_forest, height_of_forest
from skcal.report.measure import Measures

_SHOWN_CLASSES = 12  # that text shows
_BREADTH, _NARROWER = 100, range(36, 12, -4)  # columns of text, and letters of names where more are
_LINES_OF_A_NAME = 4  # of the name of a row, whose middle is left out if it is longer


# Text


def as_text(report, full: bool = False) -> str:
    """The report for a terminal of 100 columns: one screen, or everything."""
    parts = ["\n\n".join(map(wrapped, report.paragraphs)), "", wrapped(report.read_as)]
    if report.comparison is not None:
        parts += ["", _comparison_text(report, full)]
    if report.comparison is None or full:
        parts += ["", rows.measures_table(report.overall, report.settings, full).text()]
    if report.subgroups:
        parts += ["", _short_names(rows.subgroups_table(report), 24).text()]
        if report.heterogeneity:
            parts += ["", _short_names(rows.centres_table(report), 24).text()]
        if full:
            tables = rows.side_by_side(report.subgroups, report.settings, 2)
            parts += [text for table in tables for text in ("", table.text())]
    if report.segments is not None:
        segments = rows.segments_table(report)
        parts += ["", _short_names(segments, 40).text()]
    if full and report.overall.overview.base_rates:
        parts += ["", _classes_text(report.overall)]
    return _framed(report, title_of(report, 90), parts, full)


def title_of(report, width: int | None = None) -> str:
    """The title of a report."""
    names = " and ".join(model.name for model in words.models_of(report))
    kind = "Calibration report" if report.comparison is None else "Comparison of calibration"
    return f"{kind}: {names if width is None else one_line(names, width)}"


def _framed(report, title, parts, full) -> str:
    """The parts between what every report begins and ends with."""
    caveats = [wrapped(text, "* ", "  ") for text in words.all_warnings(report, full=full)]
    begin = [title, "=" * len(title), *map(wrapped, words.headings(report)), ""]
    end = ["", "Caveats:", *caveats, "", wrapped(words.how_made(report))]
    return printable("\n".join([*begin, *parts, *end]))


def _comparison_text(report, full) -> str:
    table = rows.comparison_table(report, full)
    columns = cut_apart(table.columns, 20)
    notes = [wrapped(note, "", "  ") for note in table.notes]
    text = replace(table, columns=columns, title="", notes=()).text()
    return "\n".join([text, "", *notes] if notes else [text])


def _short_names(table, width) -> Table:
    """The table with names of rows, which come from outside, on lines of this width or less."""
    for most in (width, *(less for less in _NARROWER if less < width)):
        names = cut_apart([row[0] for row in table.rows], _LINES_OF_A_NAME * most)
        rows = []
        for name, (_, *cells) in zip(names, table.rows, strict=True):
            first, *others = broken(name, most).split("\n")
            rows += [(first, *cells), *(("  " + line, *[""] * len(cells)) for line in others)]
        short = replace(table, rows=rows)
        if max(map(len, replace(short, title="", notes=()).lines())) <= _BREADTH:
            break
    return short


def _classes_text(measures) -> str:
    table = rows.classes_table(measures)
    more = len(table.rows) - _SHOWN_CLASSES
    notes = [f"… and {more:,} more"] if more > 0 else []
    return _short_names(replace(table, rows=table.rows[:_SHOWN_CLASSES], notes=notes), 24).text()


# LaTeX


def as_latex(report, full: bool = False) -> str:
    """A ``tabular`` of booktabs for all samples, and those of subgroups and of two models."""
    title, overall = title_of(report), report.overall
    shown = rows.article_table(overall, report.settings, full)
    notes = [report.verdict, *words.all_warnings(report, full=full), *shown.notes]
    tables = [replace(shown, title=title, notes=notes)]
    if report.subgroups:
        tables.append(replace(rows.subgroups_table(report), title=f"{title}, subgroups"))
        if report.heterogeneity:
            tables.append(replace(rows.centres_table(report), title=f"{title}, new subgroups"))
        if full:
            numbers = rows.side_by_side(report.subgroups, report.settings)
            tables += [replace(table, title=f"{title}, numbers of subgroups") for table in numbers]
    if report.comparison is not None:
        table = rows.comparison_table(report)
        columns = ("quantity", *table.columns[1:])
        tables.append(replace(table, columns=columns, title=f"{title}. {table.title}"))
    return "\n".join(table.latex() for table in tables)


# Plain data


_SIZE = (3.1, 4.2)  # at its own size, and on a telephone, text has at least 9 points
_TITLE = 24  # letters of a line of its title, which is centred on the axes
_TITLE_SHARE = 0.6  # of that height are for the error in the title
_WITHOUT_STRIP = 3.0  # the height of a figure without a histogram


def reliability(parts: list[Measures], notion: str, settings: dict) -> ReliabilityDisplay:
    """A panel for each set of predictions; of many those with the largest error.

    Names fill at most three lines of a title, and those that differ do not look alike.
    """
    shown = [(part.name, part.diagram) for part in parts if part.diagram is not None]
    names = cut_apart([name for name, _ in shown], 3 * _TITLE)
    names = [name.replace("$", r"\$") for name in names]
    panels = [
        replace(panel, label="\n".join([name, *panel.label.split("\n")[1:]]))
        for name, (_, panel) in zip(names, shown, strict=True)
    ]
    if not panels:
        raise ValueError("There is no reliability diagram to draw: too few samples.")
    level = settings["confidence_level"]
    return ReliabilityDisplay.of_panels(panels, notion=notion, confidence_level=level)


def single_panels(display: ReliabilityDisplay, same_counts: bool) -> list[ReliabilityDisplay]:
    """The panels one by one on the same axes, those of histograms too if that is asked for."""
    options = {name: getattr(display, name) for name in ("notion", "method", "confidence_level")}
    shared: dict[str, Any] = {"axis": display.axis}
    if same_counts:
        shared["most"] = max(panel.histogram.max() for panel in display.panels)
    return [ReliabilityDisplay([replace(one, **shared)], **options) for one in display.panels]


def draw(display: ReliabilityDisplay):
    """Plot on a figure that pyplot does not know of."""
    n = len(display.panels)
    without = all(panel.number is None for panel in display.panels)
    figure, axes = _new_figure(n, _SIZE[1] - _TITLE_SHARE * without)
    for unused in axes[n:]:
        figure.delaxes(unused)
    display.plot(ax=axes[:n])
    for legend in display.legends_:
        legend.remove()  # pages explain what is drawn, and legends would hide points
    return display.figure_


def draw_curve(display: CalibrationCurveDisplay):
    """Plot a calibration curve on a figure that pyplot does not know of."""
    figure, [axis] = _new_figure()
    copy(display).plot(ax=axis)  # plotting keeps the axes
    if axis.get_legend() is not None:
        axis.get_legend().remove()
    return figure


def draw_decisions(measures: list[Measures]):
    """Plot the decision curves of some models on axes that they share."""
    figure, [axis] = _new_figure(height=_WITHOUT_STRIP)
    for part in measures:
        if part.decision is not None:
            DecisionCurveDisplay(part.decision, name=part.name).plot(ax=axis)
    return figure


def _forest(report, measure: str):
    """A forest plot on a figure that pyplot does not know of."""
    figure, [axis] = _new_figure(height=height_of_forest(report))
    draw_forest(axis, report, measure)
    return figure


def _new_figure(n_panels=1, height=_SIZE[1]):
    """A figure that pyplot does not know of, and its axes, of at most three columns."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Figures need matplotlib: pip install matplotlib.") from error
    n_columns = min(n_panels, 3)
    n_rows = ceil(n_panels / n_columns)
    figure = Figure((_SIZE[0] * n_columns, height * n_rows), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False).ravel()


def svg_uri(figure) -> str:
    """The figure as a data URI, the same bytes for the same figure."""
    svg = rendered(figure, "svg", transparent=True)
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


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
_ABOUT_LINE = "The line is a smooth estimate of the observed frequency. "
_ARROWS = "Arrows mark intervals that go on beyond the axis. "
_SHADINGS = "Shaded ranges are significantly miscalibrated; points in them that miss are orange. "
_CURVE_READING = (
    "Curves are regressions on splines. The darker band holds the curve at each single point, the "
    "paler one holds the whole curve. Below: how many samples have each prediction, by outcome."
)
_DECISION_READING = (
    " Net benefit: events found by treating where the prediction is at least the threshold t, less "
    "t / (1 − t) for each needless treatment."
)
_FOREST = (
    "Each point is a subgroup with its {0} interval. Thick grey lines are {0} prediction intervals "
    "of a new subgroup. The dashed line is the ideal."
)
_PAGE_CSS = Path(__file__).with_name("page.css")
_PAGE_STYLE = style("skcal-report", _PAGE_CSS, of_page=True)
_PART_STYLE = style("skcal-report", _PAGE_CSS)


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
        if report.heterogeneity:
            table += rows.centres_table(report).html() + _forests(report)
        table += html_list(words.by_kind(report.subgroups, full))
        yield words.name_of_parts(report), table + _figures(report, report.subgroups)
    if report.segments is not None:
        yield "Segments", rows.segments_table(report).html()


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
        read = f"<p>{html_text(report.read_as)}</p>\n" if part is report.overall else ""
        yield name, f"{read}{table}{notes}"
    if report.subgroups:
        tables = [table.html() for table in rows.side_by_side(report.subgroups, report.settings)]
        notes = "" if full else html_list(words.by_kind(report.subgroups))
        yield f"All numbers of {words.name_of_parts(report).lower()}", "".join(tables) + notes
    panel = report.overall.diagram
    yield "Bins", "<p>none</p>\n" if panel is None else rows.bins_table(panel).html()
    if len(report.overall.overview.base_rates) > 2:
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
        f"{_verdict_html(report)}"
    )


def _verdict_html(report) -> str:
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
            line=_ABOUT_LINE * all(panel.is_smooth for panel in display.panels),
            ranges=_SHADINGS * shaded,
        )
    if any(panel.is_beyond(display.axis) for panel in display.panels):
        reading = f"{reading} {_ARROWS}".strip()
    return _figure(images, reading)


def _forests(report) -> str:
    """A forest plot of each measure, with its prediction interval in a new subgroup."""
    if not _can_draw():
        return ""
    known = {one.measure for one in report.heterogeneity}
    images = [
        _image(f"Forest plot of {name}", _forest(report, name))
        for name in rows.CENTRES
        if name in known
    ]
    return _figure(images, _FOREST.format(percent(report.settings["confidence_level"])))


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
