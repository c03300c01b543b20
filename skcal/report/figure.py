"""The reliability figure of a report, drawn without pyplot's state."""

from __future__ import annotations

import base64
import io
import warnings
from dataclasses import fields, replace
from math import ceil
from typing import Any

import numpy as np

from skcal.displays import ReliabilityDisplay
from skcal.displays.base import MAX_PANELS
from skcal.displays.reliability_panel import ReliabilityPanel
from skcal.report.parts import BinnedError, Data, Measures, Settings

_SIZE = (4.2, 5.8)


def diagram_of(
    name: str, data: Data, settings: Settings, ece: BinnedError | None, without_bins: dict | None
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
    if without_bins is not None:
        panel = replace(panel, without_bins=without_bins)
    values = {part.name: getattr(panel, part.name) for part in fields(panel)}
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    } | {"error_interval": list(panel.error_interval)}


def panel_of(diagram: dict) -> ReliabilityPanel:
    """The panel that :func:`diagram_of` wrote down."""
    values: dict[str, Any] = {
        name: np.array(value) if isinstance(value, list) else value
        for name, value in diagram.items()
    }
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
