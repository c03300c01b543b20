"""The reliability figure of a report, drawn without pyplot's state."""

from __future__ import annotations

import base64
import io
import warnings
from math import ceil

from skcal.displays import ReliabilityDisplay
from skcal.displays.base import MAX_PANELS
from skcal.report.numbers import panel_of
from skcal.report.parts import Measures

_SIZE = (4.2, 5.8)


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
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Figures need matplotlib: pip install 'skcal[plot]'.") from error
    n = len(display.panels)
    columns = min(n, 3)
    size = (_SIZE[0] * columns, _SIZE[1] * ceil(n / columns))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(ceil(n / columns), columns, squeeze=False).ravel()
    for unused in axes[n:]:
        figure.delaxes(unused)
    return display.plot(ax=axes[:n]).figure_


def svg_uri(figure) -> str:
    """The figure as a data URI, the same bytes for the same figure."""
    file = io.BytesIO()
    save_figure(figure, file, format="svg", transparent=True)
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def save_figure(figure, file, **options) -> None:
    """Write without date and random identifiers."""
    from matplotlib import rc_context

    kind = options.get("format") or str(file).rsplit(".", 1)[-1].lower()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    # There is no other way to fixed identifiers in SVG; the settings are restored.
    with rc_context({"svg.hashsalt": "skcal"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # names in other scripts
        figure.savefig(file, metadata=dates.get(kind), dpi=150, **options)
