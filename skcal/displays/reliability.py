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
    as_percent,
    counted,
    draw_band,
    draw_diagonal,
    free_corner,
    in_inches,
    limit_axes,
    problem_titles,
    styled,
    titled,
    with_error,
)
from skcal.displays.reliability_panel import (
    ReliabilityPanel,
    binned_error,
    make_curves,
    make_panel,
    rule_of,
)
from skcal.functions.base import BilinearFunction
from skcal.hypothesis_tests.result import default_resamples
from skcal.hypothesis_tests.scan import ScanRange, scan_test
from skcal.metrics.bins import problem_moments
from skcal.metrics.cross_fitted import ece_without_bins
from skcal.model_selection import CalibrationErrorEstimator, CalibrationErrorSearchCV
from skcal.sample import SCALAR_NOTIONS, Sample, read_sample

_MOST_WITHOUT_BINS = 200_000  # samples; more take longer than all the rest
_MOST_RANGES = 3  # that are told inside the axes
_STRIP = "histogram of predictions"
_TITLE_PAD = 38  # points: above the histogram, without a second pass of a layout
_ROOM = 1.7  # of the histogram, above its highest bar
_WIDE = 2.9  # inches, from which letters are larger


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
        "bins", or what made the line.
    confidence_level : float, default=0.95
    n_panels_left_out : int, default=0
        Classes without a panel: of more than 12, those with the largest errors are shown.

    Attributes
    ----------
    ax_ : matplotlib axes, or ndarray of axes, one a panel
        Set by :meth:`plot`, as are the following.
    figure_ : matplotlib figure
    lines_, bands_, histograms_, legends_ : list
        Lines; bands of all bins at once; histograms of the predictions; legends.
    ranges_ : list of list
        Points with bars of the ranges in which miscalibration is shown.

    See Also
    --------
    skcal.metrics.calibration_bins : the table of bins.
    skcal.hypothesis_tests.scan_test : the test whose ranges are shaded.
    skcal.displays.SimplexDisplay : three classes at once.

    Notes
    -----
    The band says where the frequencies of the bins may be, all of them at once (Clopper-Pearson
    limits at Bonferroni's level). What is seen and what :func:`skcal.hypothesis_tests.scan_test`
    shows are one answer: ranges of predictions are shaded where it rejects and names them, each
    with a point at what was predicted and what happened in it. The bar of the point, limits for all
    ranges at once, leaves out the diagonal. The band leaves it out in these ranges alone: where the
    test shows nothing it is widened to the diagonal. A range may reach over several bins that are
    not conspicuous each by itself.

    The histogram above counts the predictions, on a logarithmic scale. Where 99 % of them are below
    0.5 the axes end before 1, and the title says how many are above. The legend holds the error
    without bins of :func:`skcal.metrics.cross_fitted_calibration_error`, up to 200,000 samples.

    The test redraws outcomes, which weights must not depend on: with weights there are no ranges,
    nor where classes are left out. About 6 s a panel for a million samples.

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
    ...     data.labels, data.proba, random_state=0, plot=False
    ... )
    >>> display
    ReliabilityDisplay(n = 500, confidence, 8 bins, ECE without bins 0.132 ± 0.020, 1 range shown)
    """

    panels: list[ReliabilityPanel]
    _: KW_ONLY
    notion: str
    method: str
    confidence_level: float = 0.95
    n_panels_left_out: int = 0

    def _facts(self):
        n_samples = max(panel.n_samples for panel in self.panels)
        facts = [
            f"n = {n_samples:,}",
            self.notion,
            "" if self.method == "bins" else f"line by {self.method}",
        ]
        if len(self.panels) > 1:
            return [*facts, f"{len(self.panels)} panels"]
        [panel] = self.panels
        return [*facts, counted(panel.n_bins, "bin"), _error_in_words(panel), self._verdict(panel)]

    def _verdict(self, panel) -> str:
        """What the test of the panel shows, in few words; empty if it was not asked."""
        if panel.ranges:
            return f"{counted(len(panel.ranges), 'range')} shown"
        if np.isnan(panel.pvalue):
            return ""
        shown = panel.pvalue <= 1 - self.confidence_level
        text = "shown, but not where" if shown else "no range stands out"
        return f"{text} (p = {panel.pvalue:.2g})"

    def _repr_html_(self):
        columns = ("panel", "n", "bins", "ECE without bins", "± s.e.", "p (scan)")
        rows, shown = [], []
        for panel in self.panels:
            facts = panel.without_bins or {"estimate": None, "standard_error": None}
            label = panel.label.replace("\n", ": ")
            pvalue = None if np.isnan(panel.pvalue) else panel.pvalue
            numbers = (facts["estimate"], facts["standard_error"], pvalue)
            cells = ("–" if value is None else value for value in numbers)
            rows.append((label, panel.n_samples, panel.n_bins, *cells))
            told = [_range_in_words(part) for part in panel.ranges] or [self._verdict(panel)]
            shown += [f"{label}: {text}" for text in told if text]
        title = f"Reliability diagram, {self.notion} calibration"
        return html_result(title, Table(columns, rows), html_list(shown))

    @classmethod
    @validate_params(
        {
            "method": [
                StrOptions({"bins", "isotonic", "kernel-density"}),
                BilinearFunction,
                CalibrationErrorEstimator,
                CalibrationErrorSearchCV,
            ],
            "n_bins": [
                Interval(Integral, 1, None, closed="left"),
                StrOptions({"auto", "cube_root"}),
            ],
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
        n_bins="auto",
        strategy="quantile",
        edges=None,
        confidence_level=0.95,
        n_resamples=None,
        sample_weight=None,
        groups=None,
        labels=None,
        pos_label=None,
        random_state=0,
        name=None,
        ax=None,
        plot=True,
    ):
        """Compute and plot the diagram.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        notion : {"auto", "binary", "confidence", "top-label", "classwise"}, default="auto"
            "auto" is "binary" for one and two columns and "confidence" for more.
        method : str, calibration-estimation function, estimator or search, default="bins"
            The line; bands and ranges do not depend on it. "bins": frequencies of bins.
            "isotonic": isotonic regression, CORP [2]. "kernel-density": a ratio of kernel
            densities. A function with ``residual``, fitted or not: a clone is fitted to these
            samples, with weights. A fitted :class:`skcal.CalibrationErrorEstimator` or
            :class:`skcal.CalibrationErrorSearchCV` of this notion: x + ĝ(x) as it stands. Where
            there are more than 1,000 distinct predictions, curves are fitted to 1,000 groups of
            equal mass.
        n_bins : int, "auto" or "cube_root", default="auto"
            "auto": up to 20 bins, equal predictions together, with equal parts of the samples and
            of Σ p (1 - p), at least 5 in a bin, so that each expects some events.
        strategy : {"quantile", "uniform", "sweep", "unique"}, default="quantile"
            Of other ``n_bins``, as in :func:`skcal.metrics.expected_calibration_error`.
        edges : array-like of shape (n_edges,), default=None
            Edges of bins, rising from 0 to 1, in place of ``n_bins`` and ``strategy``.
        confidence_level : float in (0, 1), default=0.95
            The confidence level of bands and ranges.
        n_resamples : int ≥ 19, default=None
            The number of redrawn outcomes of the test. None: 999, for more than 100,000 samples
            199, as in a report.
        sample_weight : array-like of shape (n_samples,), default=None
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other, which the ranges, the limits of the bins
            and the error without bins take into account. None: all are independent.
        labels : array-like of shape (n_classes,), default=None
            The class of each column; for 1-D predictions (negative class, positive class).
        pos_label : label, default=None
            The positive class of 1-D predictions, or of two columns for "binary"; otherwise an
            error.
        random_state : int, RandomState instance or None, default=0
            Of the test and of the folds of the error without bins.
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
        sample = read_sample(
            y_true, y_proba, notion, sample_weight, labels, pos_label, groups=groups
        )
        _require_scalar(sample)
        curves = make_curves(method, sample)
        problems = [(k, p) for k, p in enumerate(sample.problems()) if len(p.weight)]
        rules = {k: rule_of(p, n_bins, strategy, edges) for k, p in problems}
        shown = _with_largest_errors(problems, rules)
        scans: dict[int, tuple[float, list]] = {k: (np.nan, []) for k, _ in shown}
        if len(shown) == len(problems):
            n_resamples = n_resamples or default_resamples(len(sample.codes))
            options = {"n_resamples": n_resamples, "confidence_level": confidence_level}
            options |= {"labels": labels, "pos_label": pos_label, "random_state": random_state}
            options |= {"sample_weight": sample_weight, "groups": groups}
            scans = _scan(scan_test(y_true, y_proba, notion=notion, **options), sample, shown)
        panels = []
        for k, problem in shown:
            without_bins = None
            if len(sample.codes) <= _MOST_WITHOUT_BINS:
                level = {"random_state": random_state, "confidence_level": confidence_level}
                without_bins = ece_without_bins(sample, problem=problem, **level)
            label = titled(name, problem_titles(sample)[k])
            parts = (label, problem, curves[k], rules[k], confidence_level, *scans[k], without_bins)
            panels.append(make_panel(*parts))
        display = cls(
            panels,
            notion=sample.notion,
            method=method if isinstance(method, str) else type(method).__name__,
            confidence_level=confidence_level,
            n_panels_left_out=len(problems) - len(shown),
        )
        return display.plot(ax=ax) if plot else display

    def _layout(self):
        return len(self.panels), (3.3, 3.9) if len(self.panels) > 2 else (4.6, 5.2)

    def _draw(self, axes, name, kwargs):
        self.lines_: list[Any] = []
        self.bands_: list[Any] = []
        self.ranges_: list[list[Any]] = []
        self.histograms_: list[Any] = []
        self.legends_: list[Any] = []
        for axis, panel in zip(axes, self.panels, strict=True):
            if name is not None:
                described = panel.label.split("\n")[-1]
                panel = replace(panel, label=f"{as_label(name)}\n{described}")
            style = _Style.on(axis)
            draw_diagonal(axis)
            self.bands_.append(_draw_band(axis, panel, self.confidence_level, style))
            self.ranges_.append(_draw_ranges(axis, panel, style))
            self.lines_.append(_draw_line(axis, panel, style, kwargs))
            self.histograms_.append(_draw_histogram(axis, panel, style))
            _finish(axis, panel, style)
            self.legends_.append(_draw_legend(axis, panel, self._verdict(panel), style))


def _require_scalar(sample: Sample):
    if not sample.notion.scalar:
        raise ValueError(
            f"notion={sample.notion!r} conditions on a vector, which one frequency axis does "
            f"not show. Use one of {SCALAR_NOTIONS}: 'classwise' has a panel a class; "
            "SimplexDisplay shows vectors of three classes or groups."
        )


def _with_largest_errors(problems, rules):
    if len(problems) <= MAX_PANELS:
        return problems
    errors = [binned_error(problem_moments(problem, rules[k])) for k, problem in problems]
    return [problems[k] for k in sorted(np.argsort(errors)[-MAX_PANELS:])]


def _scan(result, sample: Sample, shown) -> dict[int, tuple[float, list[ScanRange]]]:
    """The p-value and the ranges of each problem."""
    if not sample.notion.by_class:
        return {k: (result.pvalue, result.ranges) for k, _ in shown}
    outcomes = sample.notion.titles([str(name) for name in sample.classes])
    return {
        k: (
            float(result.class_pvalues[k]),
            [part for part in result.ranges if part.outcome == outcomes[k]],
        )
        for k, _ in shown
    }


def _error_in_words(panel) -> str:
    facts = panel.without_bins
    if facts is None or facts["estimate"] is None:
        return ""
    return f"ECE without bins {with_error(facts['estimate'], facts['standard_error'])}"


def _range_in_words(part: ScanRange) -> str:
    low = as_percent(part.low if 1000 * part.low > part.high else 0.0, 2)
    high = as_percent(part.high, 2)
    predicted, observed = as_percent(part.predicted), as_percent(part.observed)
    return f"{low} to {high} %: {predicted} % predicted, {observed} % happened"


class _Style(NamedTuple):
    """Colours of one display among those on the same axes."""

    line: str
    range: str
    strip: Any  # axes of the histogram; None: this display is the first

    @classmethod
    def on(cls, ax):
        strip = next((child for child in ax.child_axes if child.get_label() == _STRIP), None)
        if strip is None:
            return cls(BLUE, ORANGE, None)
        others = [colour for colour in COLOURS if colour != ORANGE]
        colour = others[len(strip.containers) % len(others)]
        return cls(colour, colour, strip)


def _draw_band(ax, panel, level, style):
    """The limits of all bins."""
    label = f"{percent(level)} limits of all bins at once" if style.strip is None else None
    x, low, high = panel.band()
    return draw_band(ax, x, low, high, style.line, 0.2, label)


def _draw_ranges(ax, panel, style):
    """What was predicted and what happened where miscalibration is shown, with its limits."""
    bars = []
    for k, part in enumerate(panel.ranges):
        height = [[part.observed - part.observed_low], [part.observed_high - part.observed]]
        text = _range_in_words(part).replace("predicted, ", "predicted,\n")
        label = text if k < _MOST_RANGES and style.strip is None else None
        look = {"color": style.range, "markersize": 6, "linewidth": 2, "zorder": 5}
        bars.append(
            ax.errorbar(part.predicted, part.observed, height, fmt="D", label=label, **look)
        )
        if style.strip is None:
            ax.axvspan(part.low, part.high, color=style.range, alpha=0.08, linewidth=0, zorder=0)
    return bars


def _draw_line(ax, panel, style, kwargs):
    """The line; its label is for axes that it shares."""
    name = as_label(panel.label.split("\n")[0], 24) if "\n" in panel.label else ""
    facts = panel.without_bins or {"estimate": None}
    error = ""
    if facts["estimate"] is not None:
        error = with_error(facts["estimate"], facts["standard_error"])
    label = ": ".join(filter(None, [name, error])) or "classifier"
    label = f" {label}" if label.startswith("_") else label  # legends leave out "_…"
    markers = {"marker": "o", "markersize": 3.5} if panel.line_x is panel.prediction else {}
    look = styled(kwargs, color=style.line, linewidth=1.5, label=label, zorder=4, **markers)
    return ax.plot(panel.line_x, panel.line_y, **look)[0]


def _draw_histogram(ax, panel, style):
    """Counts above the diagram, on a logarithmic scale: bins of one sample are seen."""
    edges, counts = panel.histogram_edges, panel.histogram
    look: dict[str, Any] = {"align": "edge", "color": GREY}
    if style.strip is not None:
        strip, look = style.strip, {"align": "edge", "fill": False, "edgecolor": style.line}
        most = max(counts.max(), strip.get_ylim()[1] / _ROOM)
    else:
        place = {"transform": in_inches(ax, 1), "sharex": ax}
        strip, most = ax.inset_axes([0, 0.08, 1, 0.4], label=_STRIP, **place), counts.max()
    bars = strip.bar(edges[:-1], counts, np.diff(edges), **look)
    strip.set(yscale="log", ylim=(0.6, _ROOM * most))
    decade = 10 ** int(np.log10(most))
    strip.set_yticks([1, decade] if decade > 1 else [1], minor=False)
    strip.set_yticks([], minor=True)
    strip.yaxis.set_major_formatter("{x:,.0f}")  # set_yticklabels sets the filters of warnings
    strip.tick_params(axis="y", labelsize="x-small")
    strip.tick_params(labelbottom=False, bottom=False)
    strip.spines[["top", "right"]].set_visible(False)
    return bars


def _finish(ax, panel, style):
    limit_axes(ax, panel.limit)
    look: dict[str, Any] = {"fontsize": "small", "y": 1.0, "pad": _TITLE_PAD}
    if style.strip is not None:  # of no single classifier
        ax.set_title(panel.label.split("\n")[-1], **look)
        return
    n_events = f"{panel.n_events:,.1f}".removesuffix(".0")
    title = f"{panel.label}: n = {panel.n_samples:,}, {n_events} happened"
    if panel.n_above:
        title += f"; {panel.n_above:,} above {panel.limit:g}"
    ax.set_title(title, **look)


def _draw_legend(ax, panel, verdict, style):
    """Numbers inside the axes, in the corner where less is drawn; of several displays their lines.

    What the test shows is told of a single display.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    spec = ax.get_subplotspec()  # whose width does not depend on a layout to come
    place = ax if spec is None else spec
    width = place.get_position(*([] if spec is None else [ax.figure])).width
    is_wide = width * ax.figure.bbox.width / ax.figure.dpi > _WIDE
    parts = list(zip(*ax.get_legend_handles_labels(), strict=True))
    lines = [part for part in parts if isinstance(part[0], Line2D)]
    title = None
    if style.strip is not None:
        parts, title = lines, "ECE without bins" if panel.without_bins else None
    else:
        [(line, _)] = lines
        others = [part for part in parts if part[0] is not line]
        parts = [(line, _error_in_words(panel) or counted(panel.n_bins, "bin")), *others]
        if not panel.ranges and verdict:
            parts.append((Patch(alpha=0), verdict))
    size = "small" if is_wide else "x-small"
    return ax.legend(
        *zip(*parts, strict=True),
        title=title,
        loc=free_corner(ax),
        fontsize=size,
        title_fontsize=size,
        handlelength=1.2,
        frameon=False,
    )
