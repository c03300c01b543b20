"""The null distribution of a test."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from skcal._sklearn_compat import validate_params
from skcal.displays import draw
from skcal.displays.base import DRAWN, MAX_PANELS, Display, require_instance
from skcal.hypothesis_tests.result import CalibrationTestResult

_HISTOGRAM_BINS = 30


@dataclass(frozen=True, eq=False)
class NullPanel:
    """Numbers of one panel.

    Attributes
    ----------
    label : str
    statistic, pvalue : float
        Observed; of several classes the adjusted p-value.
    counts, edges : ndarray of shape (30,) and (31,)
        Histogram of the resampled statistics.
    n_as_extreme : int
        Resampled statistics that are at least the observed one.
    n_resamples : int
    """

    label: str
    statistic: float
    pvalue: float
    counts: np.ndarray
    edges: np.ndarray
    n_as_extreme: int
    n_resamples: int


@dataclass(eq=False, repr=False)
class NullDistributionDisplay(Display):
    """A test's null distribution with the observed statistic.

    Make it with :meth:`from_result`.

    Parameters
    ----------
    panels : list of NullPanel
        One, or one a class where every class is tested.
    method : str
        The test, for the title.
    n_panels_left_out : int, default=0
        The number of classes without a panel. If there are more than 12, those with the smallest
        p-values have one.
    name : str, default=None
        The name of the classifier, for the title.

    Attributes
    ----------
    ax_ : matplotlib axes, or ndarray of axes, one a panel
        Set by :meth:`plot`, as are the following.
    figure_ : matplotlib figure
    histograms_ : list of bars, one a panel
    lines_ : list of lines at the observed statistics
    legends_ : list of legends

    See Also
    --------
    skcal.hypothesis_tests.monte_carlo_test, skcal.hypothesis_tests.skce_test

    Examples
    --------
    >>> from skcal.datasets import make_dirichlet
    >>> from skcal.displays import NullDistributionDisplay
    >>> from skcal.hypothesis_tests import monte_carlo_test
    >>> data = make_dirichlet(500, n_classes=3, model="M2", random_state=0)
    >>> result = monte_carlo_test(data.labels, data.proba, random_state=0)
    >>> [panel] = NullDistributionDisplay.from_result(result, plot=False).panels
    >>> panel.pvalue == result.pvalue, panel.n_as_extreme
    (True, 0)
    """

    panels: list[NullPanel]
    _: KW_ONLY
    method: str
    n_panels_left_out: int = 0
    name: str | None = None

    def _facts(self):
        resamples = draw.counted(self.panels[0].n_resamples, "resample")
        return [draw.as_label(self.method, 60), draw.counted(len(self.panels), "panel"), resamples]

    @classmethod
    @validate_params(DRAWN, prefer_skip_nested_validation=False)
    def from_result(cls, result, *, labels=None, name=None, ax=None, plot=True) -> Self:
        """Read the result of a test, and plot.

        Parameters
        ----------
        result : CalibrationTestResult
            The result of a test that resamples.
        labels : array-like of shape (n_classes,), default=None
            Names of the classes where every class is tested; None numbers them.
        name : str, default=None
            The name of the classifier, for the title.
        ax : matplotlib axes or array of axes, default=None
            One a panel; None makes a figure.
        plot : bool, default=True
            False computes only the numbers, without matplotlib.

        Returns
        -------
        display : NullDistributionDisplay
        """
        require_instance("result", result, CalibrationTestResult, "Pass what a test returned.")
        if result.null_distribution is None:
            raise ValueError(
                f"result, of {result.method!r}, has no null distribution. Use a test that "
                "resamples: monte_carlo_test, risk_test or skce_test(method='monte-carlo')."
            )
        if result.null_distribution.ndim == 1:
            label = f"{result.notion} calibration"
            panels = [_null_panel(label, result.statistic, result.pvalue, result.null_distribution)]
        else:
            panels = _panels_by_class(result, labels)
        display = cls(
            panels[:MAX_PANELS],
            method=result.method,
            n_panels_left_out=len(panels[MAX_PANELS:]),
            name=name,
        )
        return display.plot(ax=ax) if plot else display

    def _layout(self):
        return len(self.panels), (6.4, 4.0) if len(self.panels) == 1 else (2.9, 3.4)

    def _draw(self, axes, name, kwargs):
        self.histograms_: list[Any] = []
        self.lines_: list[Any] = []
        self.legends_: list[Any] = []
        for axis, panel in zip(axes, self.panels, strict=True):
            self._draw_panel(axis, panel, name, kwargs)

    def _draw_panel(self, ax, panel, name, kwargs):
        from matplotlib.patches import Patch

        left, width = panel.edges[:-1], np.diff(panel.edges)
        # A bar that the observed statistic cuts holds both sides; it is drawn as less extreme.
        extreme = left >= panel.statistic
        colours = np.where(extreme, draw.ORANGE, draw.GREY)
        label = f"{panel.n_resamples:,} resamples if calibrated"
        look = draw.styled(kwargs, align="edge", color=colours, label=label)
        bars = ax.bar(left, panel.counts, width, **look)
        self.histograms_.append(bars)
        adjusted = " (Holm)" if len(self.panels) > 1 else ""
        text = f"observed {panel.statistic:.3g}, p = {panel.pvalue:.3g}{adjusted}"
        self.lines_.append(ax.axvline(panel.statistic, color=draw.BLUE, linewidth=2, label=text))
        ax.set(xlabel="statistic", ylabel="resamples", ylim=(0, 1.05 * panel.counts.max()))
        ax.margins(x=0.05)
        ax.locator_params(axis="x", nbins=4)
        ax.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4))
        ax.set_title(self._title(panel, name), fontsize="medium")
        handles = [self.lines_[-1], bars]
        if panel.n_as_extreme:
            label = f"{panel.n_as_extreme:,} at least as large"
            handles.append(Patch(color=draw.ORANGE, label=label))
        self.legends_.append(draw.legend_below(ax, handles=handles, bbox_to_anchor=(0.5, -0.5)))

    def _title(self, panel, name):
        if len(self.panels) > 1:
            return draw.titled(name, panel.label)
        method = draw.as_label(self.method.replace("_", " "), 80)  # words, of a function's name too
        return f"{draw.as_label(name) if name else panel.label}\n{method}"


def _null_panel(label, statistic, pvalue, null) -> NullPanel:
    low, high = float(null.min()), float(null.max())
    room = max(abs(high), abs(statistic - high), 1e-12)
    if high - low < 1e-9 * room:  # resamples that are all the same
        low, high = low - 0.02 * room, high + 0.02 * room
    counts, edges = np.histogram(null, bins=_HISTOGRAM_BINS, range=(low, high))
    n_as_extreme = int(np.count_nonzero(null >= statistic))
    return NullPanel(label, float(statistic), float(pvalue), counts, edges, n_as_extreme, len(null))


def _panels_by_class(result, labels) -> list[NullPanel]:
    """Panels by ascending p-value; of equal ones the larger statistic first."""
    n_classes = len(result.class_pvalues)
    labels = range(n_classes) if labels is None else list(labels)
    if len(labels) != n_classes:
        raise ValueError(f"labels has {len(labels)} entries, the result {n_classes} classes.")
    order = np.lexsort([-result.class_statistics, result.class_pvalues])
    return [
        _null_panel(
            f"class {draw.as_label(labels[k], 24)}",
            result.class_statistics[k],
            result.class_pvalues[k],
            result.null_distribution[k],
        )
        for k in order
    ]
