"""A report as one self-contained HTML page."""

from __future__ import annotations

from html import escape

from skcal._show import _NOT_HTML, number, percent
from skcal.report.figure import (
    draw,
    draw_curve,
    draw_decisions,
    reliability,
    single_panels,
    svg_uri,
)
from skcal.report.group_rows import (
    GROUP_COLUMNS,
    OUTCOME_COLUMNS,
    group_rows,
    outcome_reading,
    outcome_rows,
)
from skcal.report.paired_rows import comparison_rows, paired_lines, verdict
from skcal.report.parts import LEVEL
from skcal.report.rows import (
    Row,
    all_warnings,
    by_kind,
    class_rows,
    heading,
    how_made,
    pvalue,
    root,
    rows_of,
)
from skcal.report.segment_audit import SEGMENT_COLUMNS, segment_rows, segment_verdict
from skcal.report.style import PAGE_STYLE, STYLE

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_LONG = 15  # rows; longer tables scroll on screens
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


def as_page(report) -> str:
    """A whole document, with its figure."""
    title = _NOT_HTML.sub("", escape(f"Calibration report: {report.overall.name}"))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n{PAGE_STYLE}</head>\n"
        f'<body class="skcal-page">\n{_article(report, "h1", "h2")}</body>\n</html>\n'
    )


def as_fragment(report) -> str:
    """A part of another document; without matplotlib it says so in place of the figure."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        note = "<p>Figures need matplotlib: pip install 'skcal[plot]'.</p>\n"
        return f"{STYLE}{_article(report, 'h3', 'h4', note)}"
    return f"{STYLE}{_article(report, 'h3', 'h4')}"


def _article(report, title, section, figure=None) -> str:
    parts = [_head(report, title), _cards(report), _warnings(report, section)]
    first = [report.overall]
    if report.comparison is not None:
        first.append(report.comparison.second)
    parts.append(_figure(report, first) if figure is None else figure)
    parts.append(_section(section, "Measures", _measures(report.overall, report.settings)))
    if report.comparison is not None:
        parts.append(_section(section, "Comparison", _comparison(report)))
    if report.groups:
        groups = _groups(report) + (_figure(report, report.groups) if figure is None else figure)
        parts.append(_section(section, "Groups", groups))
        parts += [
            _section(section, f"Group {_name(part.name)}", _measures(part, report.settings))
            for part in report.groups
        ]
    if report.segments is not None:
        parts.append(_section(section, "Segments", _segments(report.segments)))
    parts.append(_section(section, "Bins", _bins(report.overall)))
    parts.append(_section(section, "Classes", _classes(report.overall)))
    parts.append(f"<footer>{escape(how_made(report))}</footer>\n")
    text = f'<article class="skcal skcal-report">\n{"".join(parts)}</article>\n'
    return _NOT_HTML.sub("\N{REPLACEMENT CHARACTER}", text)


def _name(name) -> str:
    """Text from outside: escaped, and its direction kept to itself."""
    return f"<bdi>{escape(str(name))}</bdi>"


def _section(tag, title, body) -> str:
    return (
        f"<section>\n<details open>\n<summary><{tag}>{title}</{tag}></summary>\n{body}"
        "</details>\n</section>\n"
    )


def _head(report, tag) -> str:
    return (
        f"<header>\n<p>Calibration report</p>\n<{tag}>{_name(report.overall.name)}</{tag}>\n"
        f"<p>{escape(heading(report))}</p>\n</header>\n"
        f'<p class="skcal-verdict">{escape(report.verdict)}</p>\n'
    )


def _cards(report) -> str:
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
        cards.append(("test of calibration", pvalue(ece.pvalue), level))
    shown = "".join(
        f"<div><dt>{escape(name)}</dt><dd><b>{escape(value)}</b> {escape(note)}</dd></div>\n"
        for name, value, note in cards
    )
    return f'<dl class="skcal-cards">\n{shown}</dl>\n'


def _warnings(report, tag) -> str:
    return f"<aside>\n<{tag}>Caveats</{tag}>\n{_list(all_warnings(report, groups=False))}</aside>\n"


def _figure(report, parts) -> str:
    """An image for each panel, so that narrow screens show one below the other."""
    if all(part.diagram is None for part in parts):
        return ""
    display = reliability(parts, report.notion, report.settings)
    images = "".join(
        f'<img alt="{escape(f"Reliability diagram: {panel.label}")}" src="{svg_uri(draw(one))}">\n'
        for panel, one in zip(display.panels, single_panels(display), strict=True)
    )
    curves = [part for part in parts if part.curve is not None and part.diagram is not None]
    images += "".join(
        f'<img alt="{escape(f"Calibration curve: {part.name}")}" '
        f'src="{svg_uri(draw_curve(part.curve, part.name))}">\n'
        for part in curves[: len(display.panels)]
    )
    whole = parts[0] is report.overall  # groups are too many for a third figure each
    decisions = [part for part in curves if whole and part.decision is not None]
    if decisions:
        names = escape(f"Decision curve: {', '.join(str(part.name) for part in decisions)}")
        images += f'<img alt="{names}" src="{svg_uri(draw_decisions(decisions))}">\n'
    left_out = ""
    if display.n_panels_left_out:
        left_out = f"The {len(display.panels)} with the largest ECE of {len(parts)}. "
    reading = _READING.format(level=percent(report.settings["confidence_level"]))
    if curves:
        reading += _CURVE_READING
    if decisions:
        reading += _DECISION_READING
    return (
        f'<figure>\n<div class="skcal-panels">\n{images}</div>\n'
        f"<figcaption>{left_out}{escape(reading)}</figcaption>\n</figure>\n"
    )


def _list(texts) -> str:
    items = "".join(f"<li>{escape(text)}</li>\n" for text in texts)
    return f"<ul>\n{items}</ul>\n" if items else ""


def _measures(measures, settings) -> str:
    rows = "".join(_measure(row) for row in rows_of(measures, settings))
    return f'<table class="skcal-measures">\n<tbody>\n{rows}</tbody>\n</table>\n'


def _measure(row: Row) -> str:
    part = ' class="skcal-part"' if row.indented else ""
    return (
        f'<tr{part}><th scope="row">{escape(row.quantity)}</th><td>{escape(row.shown)}</td>'
        f"<td>{escape(row.detail)}</td></tr>\n"
    )


def _table(columns, rows) -> str:
    """Cells of text; the first column names the row, what has no column explains it."""
    width = len(columns)
    head = "".join(f'<th scope="col">{_name(column)}</th>' for column in columns)
    body = "".join(
        f'<tr><th scope="row">{_name(row[0])}{_notes(row[width:])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:width])
        + "</tr>\n"
        for row in rows
    )
    long = " skcal-long" if len(rows) > _LONG else ""
    return (
        f'<div class="skcal-scroll{long}" tabindex="0"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody>\n</table></div>\n"
    )


def _notes(cells) -> str:
    return "".join(f" <small>{escape(cell)}</small>" for cell in cells if cell)


def _comparison(report) -> str:
    names = report.overall.name, report.comparison.second.name
    table = _table(("", *names), comparison_rows(report))
    return f"<p>{escape(verdict(report))}</p>\n{table}{_list(paired_lines(report))}"


def _groups(report) -> str:
    outcomes = outcome_rows(report)
    table = _table(GROUP_COLUMNS, group_rows(report))
    if outcomes:
        table += f"{_table(OUTCOME_COLUMNS, outcomes)}<p>{outcome_reading(report)}</p>\n"
    return table + _list(by_kind(report.groups))


def _segments(found) -> str:
    verdict = escape(segment_verdict(found))
    return f"<p>{verdict}</p>\n" + _table(SEGMENT_COLUMNS, segment_rows(found))


def _bins(measures) -> str:
    diagram = measures.diagram
    if diagram is None:
        return "<p>none</p>\n"
    names = "prediction", "frequency", "low", "high", "band_low", "band_high"
    rows = [
        (f"{count:,}", *map(number, values))
        for count, *values in zip(diagram["count"], *(diagram[name] for name in names), strict=True)
    ]
    columns = ("samples", "mean prediction", "frequency", "from", "to", "if calibrated from", "to")
    return _table(columns, rows)


def _classes(measures) -> str:
    rows = [(label, number(rate), number(mean)) for label, rate, mean in class_rows(measures)]
    return _table(("class", "base rate", "mean prediction"), rows)
