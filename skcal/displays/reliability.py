"""Reliability diagrams."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from skcal._bins import SCALAR_PARTITIONS
from skcal._show import Table, html_list, html_result, percent
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal.displays.base import (
    BLUE,
    COLOURS,
    GREY,
    MAX_PANELS,
    ORANGE,
    Display,
    FromEstimator,
    as_label,
    counted,
    default_resamples,
    draw_band,
    draw_diagonal,
    in_inches,
    legend_below,
    limit_axes,
    styled,
    three_digits,
    titled,
)
from skcal.displays.reliability_panel import ReliabilityPanel, binned_error, make_curves, make_panel
from skcal.functions.base import BilinearFunction
from skcal.metrics.bins import BinRule, problem_moments
from skcal.metrics.cross_fitted import panel_error
from skcal.model_selection import CalibrationErrorEstimator, CalibrationErrorSearchCV
from skcal.sample import SCALAR_NOTIONS, Sample, read_sample

_FEW = 10  # bins with fewer samples are drawn hollow
_MOST_WITHOUT_BINS = 200_000  # samples; more take longer than all the rest
_HOLLOW = f"fewer than {_FEW} samples"
_STRIP = "histogram of predictions"
_ROOM = 1.7  # of the histogram, above its highest bar


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(FromEstimator, Display):
    """Reliability diagram: observed frequency against predicted probability.

    Make it with :meth:`from_predictions` or :meth:`from_estimator`, which compute all numbers.

    Parameters
    ----------
    panels : list of ReliabilityPanel
        One, or one a class for "classwise" and "top-label".
    notion : str
    method : str
        "bins", or what made the curve.
    strategy : str
        The rule of the bins, or "given".
    confidence_level : float, default=0.95
    n_panels_left_out : int, default=0
        Classes without a panel: of more than 12, those with the largest errors are shown.

    Attributes
    ----------
    ax_ : matplotlib axes, or ndarray of axes, one a panel
        Set by :meth:`plot`, as are the following.
    figure_ : matplotlib figure
    lines_, bands_, bars_, histograms_, legends_ : list
        Curves; bands of calibrated predictions; Clopper-Pearson bars of bins; histograms of the
        predictions; legends. None where a panel has none.

    See Also
    --------
    skcal.metrics.calibration_bins : the table of the bins.
    skcal.displays.SimplexDisplay : three classes at once.

    Notes
    -----
    A point outside its band is more than chance at this n, for that point alone; the legend tells
    what ECE calibrated predictions reach and, of one or two panels, the error without bins of
    :func:`skcal.metrics.cross_fitted_calibration_error`, and where its lower confidence bound is
    above 0 the side on which predictions err. Bars say where the frequency of the bin may be.
    Hollow points stand for fewer than 10 samples, hatched stretches hold none (of the first
    display on the axes). Where 99 % of the predictions are below 0.5 the axes end before 1, and the
    title says how many predictions are above.

    The band redraws the outcomes from the predictions, the interval of ECE resamples the samples
    (see :func:`skcal.metrics.bootstrap_interval`: it need not hold its estimate); both keep the
    bins. Weights must not depend on the labels (as when one class was thinned out): redrawn
    outcomes would keep them, and the band mean nothing. About 4 s a panel for a million samples.

    References
    ----------
    .. [1] Bröcker & Smith, Increasing the reliability of reliability diagrams, Weather and
       Forecasting 2007.
    .. [2] Dimitriadis, Gneiting & Jordan, Stable reliability diagrams for probabilistic
       classifiers, PNAS 2021.

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> from skcal.displays import ReliabilityDisplay
    >>> data = make_tempered(500, temperature=2.0, n_truth_draws=0, random_state=0)
    >>> display = ReliabilityDisplay.from_predictions(
    ...     data.labels, data.proba, n_bins=10, random_state=0, plot=False
    ... )
    >>> [panel] = display.panels
    >>> panel.n_samples, panel.error > panel.null_error
    (500, True)
    """

    panels: list[ReliabilityPanel]
    _: KW_ONLY
    notion: str
    method: str
    strategy: str
    confidence_level: float = 0.95
    n_panels_left_out: int = 0

    def _facts(self):
        n_samples = max(panel.n_samples for panel in self.panels)
        n_bins = counted(self.panels[0].n_bins, f"{self.strategy} bin")
        curve = "" if self.method == "bins" else f"curve by {self.method}"
        return [
            f"n = {n_samples:,}",
            self.notion,
            n_bins,
            curve,
            counted(len(self.panels), "panel"),
        ]

    def _repr_html_(self):
        columns = ("panel", "n", "ECE", "from", "to", "if calibrated ≤", "without bins", "± s.e.")
        rows, readings = [], []
        for panel in self.panels:
            facts = panel.without_bins or {"estimate": None, "standard_error": None, "reading": ""}
            error = (panel.error, *panel.error_interval, panel.null_error)
            numbers = (*error, facts["estimate"], facts["standard_error"])
            shown = ("–" if value is None else value for value in numbers)
            label = panel.label.replace("\n", ": ")
            rows.append((label, panel.n_samples, *shown))
            readings.append(f"{label}: {facts['reading']}" if facts["reading"] else "")
        title = f"Reliability diagram, {self.notion} calibration"
        return html_result(title, Table(columns, rows), html_list(filter(None, readings)))

    @classmethod
    @validate_params(
        {
            "method": [
                StrOptions({"bins", "isotonic", "kernel-density"}),
                BilinearFunction,
                CalibrationErrorEstimator,
                CalibrationErrorSearchCV,
            ],
            "n_bins": [Interval(Integral, 1, None, closed="left"), StrOptions({"cube_root"})],
            "strategy": [StrOptions(set(SCALAR_PARTITIONS))],
            "edges": ["array-like", None],
            "confidence_level": [Interval(Real, 0, 1, closed="neither")],
            "n_resamples": [Interval(Integral, 19, None, closed="left"), None],
            "random_state": ["random_state"],
        },
        prefer_skip_nested_validation=False,
    )
    def from_predictions(
        cls,
        y_true,
        y_proba,
        *,
        notion="auto",
        method="bins",
        n_bins=15,
        strategy="uniform",
        edges=None,
        confidence_level=0.95,
        n_resamples=None,
        sample_weight=None,
        labels=None,
        pos_label=None,
        random_state=None,
        name=None,
        ax=None,
        plot=True,
    ):
        """Compute and plot the diagram.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        notion : {"auto", "binary", "confidence", "top-label", "classwise"}, default="auto"
            "auto" is "binary" for one and two columns and "confidence" for more.
        method : str, calibration-estimation function, estimator or search, default="bins"
            The curve. "bins": frequencies of bins. "isotonic": isotonic regression, CORP [2].
            "kernel-density": a ratio of kernel densities. A function with ``residual``, fitted or
            not: a clone is fitted to these samples, with weights, and for the band to every
            resample. A fitted :class:`skcal.CalibrationErrorEstimator` or
            :class:`skcal.CalibrationErrorSearchCV` of this notion: x + ĝ(x) as it stands, without
            band. Where there are more than 1,000 distinct predictions, curves are fitted to 1,000
            groups of equal mass.
        n_bins : int or "cube_root", default=15
        strategy : {"uniform", "quantile", "sweep", "unique"}, default="uniform"
            Bins as in :func:`skcal.metrics.expected_calibration_error`; they also make the ECE in
            the legend of a curve.
        edges : array-like of shape (n_edges,), default=None
            Edges of bins, rising from 0 to 1, in place of ``n_bins`` and ``strategy``.
        confidence_level : float in (0, 1), default=0.95
            The confidence level of bars, band and interval.
        n_resamples : int ≥ 19, default=None
            The number of resamples, for the band and for the interval. None: 999, for more than
            100,000 samples 199, as in a report.
        sample_weight : array-like of shape (n_samples,), default=None
        labels : array-like of shape (n_classes,), default=None
            The class of each column; for 1-D predictions (negative class, positive class).
        pos_label : label, default=None
            The positive class of 1-D predictions, or of two columns for "binary"; otherwise an
            error.
        random_state : int, RandomState instance or None, default=None
            An int goes to band and interval of every panel as it is.
        name : str, default=None
            The name of the classifier, for title and legend.
        ax : matplotlib axes or array of axes, default=None
            One a panel; None makes a figure. On axes that hold a diagram the next one takes the
            next colour.
        plot : bool, default=True
            False computes the numbers alone, without matplotlib.

        Returns
        -------
        display : ReliabilityDisplay
        """
        sample = read_sample(y_true, y_proba, notion, sample_weight, labels, pos_label)
        _require_scalar(sample)
        rule = BinRule.of(n_bins, strategy, edges=edges)
        curves = make_curves(method, sample)
        n_resamples = n_resamples or default_resamples(len(sample.codes))
        problems = [(k, p) for k, p in enumerate(sample.problems()) if len(p.weight)]
        shown = _with_largest_errors(problems, rule)
        panels = [
            make_panel(
                _panel_label(sample, k, name),
                p,
                curves[k],
                rule,
                confidence_level,
                n_resamples,
                random_state,
            )
            for k, p in shown
        ]
        if len(sample.codes) <= _MOST_WITHOUT_BINS:
            panels = [
                replace(panel, without_bins=panel_error(sample, p, random_state, confidence_level))
                for panel, (_, p) in zip(panels, shown, strict=True)
            ]
        display = cls(
            panels,
            notion=sample.notion,
            method=method if isinstance(method, str) else type(method).__name__,
            strategy=strategy if edges is None else "given",
            confidence_level=confidence_level,
            n_panels_left_out=len(problems) - len(shown),
        )
        return display.plot(ax=ax) if plot else display

    def _layout(self):
        return len(self.panels), (3.2, 4.7) if len(self.panels) > 2 else (4.6, 6.3)

    def _draw(self, axes, name, kwargs):
        many = len(self.panels) > 2
        self.lines_: list[Any] = []
        self.bands_: list[Any] = []
        self.bars_: list[Any] = []
        self.histograms_: list[Any] = []
        self.legends_: list[Any] = []
        for axis, panel in zip(axes, self.panels, strict=True):
            if name is not None:
                described = panel.label.split("\n")[-1]
                panel = replace(panel, label=f"{as_label(name)}\n{described}")
            style = _Style.on(axis)
            draw_diagonal(axis)
            self.bands_.append(_draw_null_band(axis, panel, self.confidence_level, style))
            self.lines_.append(_draw_curve(axis, panel, style, kwargs, many))
            self.bars_.append(_draw_bars(axis, panel, style))
            self.histograms_.append(_draw_histogram(axis, panel, style))
            self.legends_.append(_finish(axis, panel, self.strategy, style))


def _require_scalar(sample: Sample):
    if not sample.notion.scalar:
        raise ValueError(
            f"notion={sample.notion!r} conditions on a vector, which one frequency axis does "
            f"not show. Use one of {SCALAR_NOTIONS}: 'classwise' has a panel a class; "
            "SimplexDisplay shows vectors of three classes or groups."
        )


def _panel_label(sample: Sample, k: int, name: str | None) -> str:
    described = sample.notion.titles([as_label(label, 24) for label in sample.classes])[k]
    return titled(name, described)


def _with_largest_errors(problems, rule):
    if len(problems) <= MAX_PANELS:
        return problems
    errors = [binned_error(problem_moments(problem, rule)) for _, problem in problems]
    return [problems[k] for k in sorted(np.argsort(errors)[-MAX_PANELS:])]


class _Style(NamedTuple):
    """Colours of one display among those on the same axes."""

    curve: str
    band: str
    histogram: str
    strip: Any  # axes of the histogram; None: this display is the first

    @classmethod
    def on(cls, ax):
        strip = next((child for child in ax.child_axes if child.get_label() == _STRIP), None)
        if strip is None:
            return cls(BLUE, ORANGE, GREY, None)
        others = [colour for colour in COLOURS if colour != ORANGE]
        colour = others[len(strip.containers) % len(others)]
        return cls(colour, colour, colour, strip)


def _with_name(panel, text: str) -> str:
    """Text of the legend, after the name of the classifier if it has one."""
    *name, _ = panel.label.split("\n")
    label = ": ".join([*name, text])
    return f" {label}" if label.startswith("_") else label  # legends leave out "_…"


def _draw_null_band(ax, panel, level, style):
    if panel.band_low is None:
        return None
    label = f"{percent(level)} if calibrated, then ECE ≤ {three_digits(panel.null_error)}"
    if style.strip is not None:
        label = _with_name(panel, label)
    x, low, high = panel.prediction, panel.band_low, panel.band_high
    if panel.count is None:
        return draw_band(ax, x, low, high, style.band, 0.25, label)
    return ax.vlines(x, low, high, color=style.band, alpha=0.4, linewidth=6, label=label)


def _draw_curve(ax, panel, style, kwargs, many):
    low, high = panel.error_interval
    text = f"ECE {three_digits(panel.error)}"
    if not np.isnan(low):
        text += f" [{three_digits(low)}, {three_digits(high)}]"
    text = _with_name(panel, text)
    if not many:  # narrow panels have no room
        text += legend_without_bins(panel.without_bins)
    x, y, colour = panel.prediction, panel.frequency, style.curve
    if panel.count is None:
        look = styled(kwargs, color=colour, linewidth=1.5, label=text)
        return ax.plot(x, y, **look)[0]
    few = panel.count < _FEW
    ax.plot(x, y, color=colour, linewidth=0.7, alpha=0.6)
    if few.any():
        hollow = {"markerfacecolor": "white", "markeredgecolor": colour, "markersize": 4}
        known = any(line.get_label() == _HOLLOW for line in ax.lines)
        label = None if known else _HOLLOW
        ax.plot(x[few], y[few], "o", **hollow, label=label, zorder=4)
    points = {"marker": "o", "markersize": 4, "linestyle": "none", "zorder": 4}
    look = styled(kwargs, color=colour, label=text, **points)
    return ax.plot(x[~few], y[~few], **look)[0]


def legend_without_bins(facts) -> str:
    """A second line of the legend, and one a side where the lower bound shows an error."""
    if facts is None or facts["estimate"] is None:
        return ""
    text = f"\nwithout bins {three_digits(facts['estimate'])}"
    if facts["standard_error"] is not None:
        text += f" ± {three_digits(facts['standard_error'])} (s.e.)"
    reading = (facts["reading"] or "").replace(", ", ",\n")  # on one line it is wider than the axes
    return f"{text}\n{reading}" if reading else text


def _draw_bars(ax, panel, style):
    if panel.count is None:
        return None
    if len(panel.empty) and style.strip is None:
        spans = np.column_stack([panel.empty[:, 0], np.diff(panel.empty)[:, 0]])
        ax.broken_barh(
            spans, (0, 1), facecolor="none", edgecolor="0.88", hatch="///", linewidth=0, zorder=0
        )
    bars = np.abs(np.stack([panel.low, panel.high]) - panel.frequency)
    return ax.errorbar(
        panel.prediction,
        panel.frequency,
        bars,
        fmt="none",
        ecolor=style.curve,
        elinewidth=1,
        zorder=3,
    )


def _draw_histogram(ax, panel, style):
    """Counts above the diagram, on a logarithmic scale: bins of one sample are seen."""
    edges, counts = panel.histogram_edges, panel.histogram
    look: dict[str, Any] = {"align": "edge", "color": style.histogram}
    if style.strip is not None:
        strip, look = style.strip, {"align": "edge", "fill": False, "edgecolor": style.histogram}
        most = max(counts.max(), strip.get_ylim()[1] / _ROOM)
    else:
        place = {"transform": in_inches(ax, 1), "sharex": ax}
        strip, most = ax.inset_axes([0, 0.08, 1, 0.45], label=_STRIP, **place), counts.max()
    bars = strip.bar(edges[:-1], counts, np.diff(edges), **look)
    strip.set(yscale="log", ylim=(0.6, _ROOM * most))
    decade = 10 ** int(np.log10(most))
    strip.set_yticks([1, decade] if decade > 1 else [1], minor=False)
    strip.set_yticks([], minor=True)
    strip.yaxis.set_major_formatter("{x:,.0f}")  # set_yticklabels sets the filters of warnings
    strip.tick_params(axis="y", labelsize="x-small")
    strip.tick_params(labelbottom=False)
    strip.spines[["top", "right"]].set_visible(False)
    return bars


def _finish(ax, panel, strategy, style):
    limit_axes(ax, panel.limit)
    bins = counted(panel.n_bins, f"{strategy} bin")
    title = panel.label if style.strip is None else panel.label.split("\n")[-1]
    title += f"\nn = {panel.n_samples:,}, {bins}"
    if panel.n_above:
        title += f"; {panel.n_above:,} above {panel.limit:g}"
    ax.set_title(title, fontsize="small")
    # Below the axes, since at small n there is no corner without bars.
    return legend_below(ax)
