"""The reliability figure of a report, drawn without pyplot's state."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from contextlib import suppress
from dataclasses import fields, replace
from math import ceil
from typing import Any

import numpy as np

from skcal._files import replacing
from skcal.displays import CalibrationCurveDisplay, DecisionCurveDisplay, ReliabilityDisplay
from skcal.displays.base import MAX_PANELS
from skcal.displays.reliability_panel import ReliabilityPanel
from skcal.metrics import decision_curve
from skcal.metrics.curve import CalibrationCurve
from skcal.metrics.thresholds import DecisionCurve
from skcal.report.parts import BinnedError, Data, Measures, Settings

_SIZE = (4.2, 5.8)


def diagram_of(
    name: str, data: Data, settings: Settings, ece: BinnedError | None, of_search: dict | None
) -> dict:
    """The panel of a reliability display, with the interval, limit and error of the table."""
    display = ReliabilityDisplay.from_predictions(
        data.labels,
        data.proba,
        labels=data.classes,
        confidence_level=settings.confidence_level,
        n_resamples=settings.n_resamples,
        random_state=settings.random_state,
        name=name,
        plot=False,
        **settings.bins,
    )
    [panel] = display.panels
    if ece is not None:
        panel = replace(panel, error_interval=(ece.low, ece.high), null_error=ece.null_limit)
    if of_search is not None:
        panel = replace(panel, without_bins=of_search)
    return _written(panel) | {"error_interval": list(panel.error_interval)}


def _written(part) -> dict:
    """The fields of a dataclass, arrays as lists."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


def _read(written: dict) -> dict[str, Any]:
    """What :func:`_written` gave, lists as arrays."""
    return {
        name: np.array(value) if isinstance(value, list) else value
        for name, value in written.items()
    }


def curve_of(data: Data, settings: Settings) -> dict | None:
    """The smooth curve of predictions of one outcome with its limits and a histogram."""
    if not settings.notion.of_positive_class:
        return None
    display = CalibrationCurveDisplay.from_predictions(
        data.labels,
        data.proba,
        labels=data.classes,
        confidence_level=settings.confidence_level,
        plot=False,
    )
    more = {"histogram": display.histogram.tolist(), "limit": display.limit}
    return _written(display.curve) | more


def draw_curve(curve: dict, name: str):
    """Plot what :func:`curve_of` wrote down, on a figure that pyplot does not know of."""
    parts = _read(curve)
    histogram, limit = parts.pop("histogram"), parts.pop("limit")
    figure = _figure(_SIZE)
    CalibrationCurveDisplay(CalibrationCurve(**parts), histogram, limit=limit, name=name).plot(
        ax=figure.subplots()
    )
    return figure


def decision_of(data: Data, settings: Settings) -> dict | None:
    """The decision curve of predictions of one outcome, and its limits at the prevalence."""
    rate = float(np.mean(data.codes == 1))
    if not (settings.notion.of_positive_class and 0 < rate < 1):
        return None
    options = {"labels": data.classes, "confidence_level": settings.confidence_level}
    there = decision_curve(data.labels, data.proba, thresholds=[rate], **options)
    at_prevalence = [rate, *(float(v[0]) for v in (there.net_benefit, there.low, there.high))]
    whole = decision_curve(data.labels, data.proba, **options)
    return _written(whole) | {"at_prevalence": at_prevalence}


def draw_decisions(measures: list[Measures]):
    """Plot what :func:`decision_of` wrote down of some models, on axes that they share."""
    figure = _figure(_SIZE)
    axis = figure.subplots()
    for one in measures:
        parts = _read(one.decision or {})
        del parts["at_prevalence"]
        DecisionCurveDisplay(DecisionCurve(**parts), name=one.name).plot(ax=axis)
    return figure


def panel_of(diagram: dict) -> ReliabilityPanel:
    """The panel that :func:`diagram_of` wrote down."""
    values = _read(diagram)
    low, high = diagram["error_interval"]
    empty = np.array(diagram["empty"], dtype=np.float64).reshape(-1, 2)
    values |= {"error_interval": (low, high), "empty": empty}
    return ReliabilityPanel(**values)


def reliability(parts: list[Measures], notion: str, settings: dict) -> ReliabilityDisplay:
    """A panel for each set of predictions; of many those with the largest ECE."""
    panels = [panel_of(part.diagram) for part in parts if part.diagram is not None]
    if not panels:
        raise ValueError("There is no reliability diagram to draw: too few samples.")
    kept = sorted(range(len(panels)), key=lambda k: -panels[k].error)[:MAX_PANELS]
    return ReliabilityDisplay(
        [panels[k] for k in sorted(kept)],
        notion=notion,
        method="bins",
        strategy=settings["strategy"],
        confidence_level=settings["confidence_level"],
        n_panels_left_out=len(panels) - len(kept),
    )


def single_panels(display: ReliabilityDisplay) -> list[ReliabilityDisplay]:
    """The panels one by one."""
    options = {
        name: getattr(display, name)
        for name in ("notion", "method", "strategy", "confidence_level")
    }
    return [ReliabilityDisplay([panel], **options) for panel in display.panels]


def draw(display: ReliabilityDisplay):
    """Plot on a figure that pyplot does not know of."""
    n = len(display.panels)
    columns = min(n, 3)
    size = (_SIZE[0] * columns, _SIZE[1] * ceil(n / columns))
    figure = _figure(size)
    axes = figure.subplots(ceil(n / columns), columns, squeeze=False).ravel()
    for unused in axes[n:]:
        figure.delaxes(unused)
    return display.plot(ax=axes[:n]).figure_


def _figure(size):
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Figures need matplotlib: pip install 'skcal[plot]'.") from error
    return Figure(figsize=size, layout="constrained")


def svg_uri(figure) -> str:
    """The figure as a data URI, the same bytes for the same figure."""
    svg = _rendered(figure, "svg", transparent=True)
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


def save_figure(figure, path) -> None:
    """Write without date and random identifiers; a file is replaced as a whole."""
    content = _rendered(figure, str(path).rsplit(".", 1)[-1].lower())
    with replacing(path) as file:
        file.write(content)


def _rendered(figure, kind: str, **options) -> bytes:
    """The bytes of the figure as a kind of file; nothing outside of the figure is set."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_text(_drawable(text))
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    file = io.BytesIO()
    figure.savefig(file, format=kind, metadata=dates.get(kind), dpi=150, **options)
    return _with_fixed_identifiers(file.getvalue()) if kind == "svg" else file.getvalue()


def _drawable(text) -> str:
    """The text with what no font of its families holds replaced; matplotlib would warn of it."""
    from matplotlib import rcParams
    from matplotlib.font_manager import findfont, get_font

    known: set[str] = set()
    fonts: Any = rcParams
    for family in text.get_fontfamily():
        for name in fonts.get(f"font.{family}", [family]):
            if all(character in known for character in text.get_text()):
                return text.get_text()
            properties = text.get_fontproperties().copy()
            properties.set_family([name])
            with suppress(ValueError):  # a font that is not installed
                path = findfont(properties, fallback_to_default=False)
                known |= set(map(chr, get_font(path).get_charmap())) | {"\n"}
    instead = "\N{REPLACEMENT CHARACTER}" if "\N{REPLACEMENT CHARACTER}" in known else "?"
    return "".join(one if one in known else instead for one in text.get_text())


_IDENTIFIERS = re.compile(rb'((?:id="|href="#|url\(#)[^")]*?)([0-9a-f]{10})(?=["\)])')


def _with_fixed_identifiers(svg: bytes) -> bytes:
    """Number the random identifiers; with a hash, so that two figures may be in one document."""
    numbers: dict[bytes, bytes] = {}
    for match in _IDENTIFIERS.finditer(svg):
        numbers.setdefault(match[2], b"%x" % len(numbers))
    numbered = _IDENTIFIERS.sub(lambda match: match[1] + numbers[match[2]], svg)
    own = hashlib.sha256(numbered).hexdigest()[:10].encode()
    return _IDENTIFIERS.sub(lambda match: match[1] + own + b"-" + numbers[match[2]], svg)
