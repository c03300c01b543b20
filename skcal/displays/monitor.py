"""Evidence and error of a monitored model over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from textwrap import fill
from typing import Any, NamedTuple, Self

import numpy as np

from skcal._show import percent
from skcal._sklearn_compat import validate_params
from skcal.displays import draw
from skcal.displays.base import DRAWN, Display, require_instance
from skcal.monitoring import CalibrationMonitor

_LEGEND_WIDTH = 28  # of a line of a legend
_MARKED = 30  # looks, beyond which they have no markers


class Stretch(NamedTuple):
    """Samples from a change to the next one, their surplus of events per sample, and its margin.

    The surplus of 95 % of calibrated models lies within the margin about 0.
    """

    first_sample: int
    last_sample: int
    surplus: float
    margin: float


@dataclass(eq=False, repr=False)
class MonitorDisplay(Display):
    """Plot the evidence of a monitor over time, and the bias of the predictions.

    Make it with :meth:`from_monitor`. The upper panel shows the e-value on a logarithmic scale,
    with the value that raises the alarm; with a run length it shows the e-detector. The lower panel
    shows observed minus predicted probability. A dot is a period between two rows of the history.
    The line is for all samples so far, with limits that hold at all times. It ends where a drift
    begins, since the mean of all samples lags behind one: a level line is the mean since then,
    and the grey band holds 95 % of such means if the model is calibrated.

    Parameters
    ----------
    columns : dict of str to ndarray of shape (n_rows,)
        The result of :meth:`skcal.monitoring.CalibrationMonitor.history`.
    threshold : float
        The evidence that raises the alarm.
    alpha : float
        The bound on the probability that a false alarm ever comes.
    notion : str
        The kind of calibration that is watched.
    alarm : int, default=None
        Samples at the alarm.
    of_detector : bool, default=False
        Whether the e-detector raises the alarm, and is shown.
    periods : sequence of Stretch, default=()
        After an alarm the drift, as the monitor estimates it, and what came after it, if it ended.
        Both panels shade the drift.
    direction : str, default=None
        What the alarm was raised for, in words, for the legend.
    name : str, default=None
        The name of the model, for the title.

    Attributes
    ----------
    ax_ : ndarray of axes, or axes where the notion has no common bias, as "classwise"
        Set by :meth:`plot`, as are the following.
    figure_ : matplotlib figure
    evidence_ : line
    threshold_ : line
    alarm_ : line, or None
    drift_ : list of filled areas
    bias_ : line, or None
    interval_ : filled area, or None
    periods_ : list of lines
    recent_bias_ : markers, or None

    See Also
    --------
    skcal.monitoring.CalibrationMonitor

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> from skcal.displays import MonitorDisplay
    >>> from skcal.monitoring import CalibrationMonitor
    >>> monitor = CalibrationMonitor()
    >>> for seed in range(20):
    ...     data = make_tempered(100, temperature=1.5, n_truth_draws=0, random_state=seed)
    ...     _ = monitor.update(data.proba, data.labels)
    >>> display = MonitorDisplay.from_monitor(monitor, plot=False)
    >>> display.alarm == monitor.alarm_, len(display.columns["e_value"])
    (True, 20)
    """

    columns: dict[str, np.ndarray]
    _: KW_ONLY
    threshold: float
    alpha: float
    notion: str
    alarm: int | None = None
    of_detector: bool = False
    periods: Sequence[Stretch] = ()
    direction: str | None = None
    name: str | None = None

    def _facts(self):
        n = self.columns["n_samples"]
        alarm = "no alarm" if self.alarm is None else f"alarm at {self.alarm:,}"
        return [f"n = {int(n[-1]):,}", self.notion, draw.counted(len(n), "row"), alarm]

    @classmethod
    @validate_params(DRAWN, prefer_skip_nested_validation=False)
    def from_monitor(cls, monitor, *, name=None, ax=None, plot=True) -> Self:
        """Plot the evidence and the bias that a monitor recorded.

        Parameters
        ----------
        monitor : CalibrationMonitor
            A monitor that was updated with samples.
        name : str, default=None
            The name of the model, for the title.
        ax : array of two matplotlib axes, default=None
            One axes where the notion has no common bias; None makes a figure.
        plot : bool, default=True
            False computes the numbers without plotting, and needs no matplotlib.

        Returns
        -------
        display : MonitorDisplay
        """
        require_instance("monitor", monitor, CalibrationMonitor, "Pass a CalibrationMonitor.")
        if not monitor.n_samples_seen_:
            raise ValueError("monitor has seen no samples. Call update(X, y) first.")
        of_detector = monitor.run_length is not None
        history, periods = monitor._history, []
        if "drift" in monitor.periods_ and not monitor._evidence_is_gone:
            for rows in pairwise(monitor._drift_rows()):
                period = history.between(*rows)
                ends = period.first_sample, period.last_sample
                periods.append(Stretch(*ends, *history.surplus(*rows)))
        display = cls(
            monitor.history(),
            threshold=float(monitor.run_length if of_detector else 1 / monitor.alpha),
            alpha=monitor.alpha,
            notion=str(monitor.notion_),
            alarm=monitor.alarm_,
            of_detector=of_detector,
            periods=periods,
            direction=monitor.to_dict()["direction"],
            name=name,
        )
        return display.plot(ax=ax) if plot else display

    @property
    def _has_bias(self) -> bool:
        return not np.isnan(self.columns["bias"]).all()

    def _layout(self):
        return (2, (4.6, 3.4)) if self._has_bias else (1, (6.4, 3.6))

    def _draw(self, axes, name, kwargs):
        self.bias_: Any = None
        self.interval_: Any = None
        self.recent_bias_: Any = None
        self.drift_ = self._draw_drift(axes)
        self._draw_evidence(axes[0], kwargs)
        if self._has_bias:
            self._draw_bias(axes[1])
        events = {"confidence": "right predictions"}.get(self.notion, "events")
        kind = "" if self.notion == "binary" else f" ({draw.as_label(self.notion, 20)})"
        titles = f"evidence of miscalibration{kind}", f"surplus of {events} per sample"
        for axis, shown in zip(axes, titles, strict=False):
            axis.set_xlabel("samples")
            axis.margins(x=0.02)
            axis.locator_params(axis="x", nbins=5)
            draw.legend_below(axis)
            draw.set_title(axis, draw.titled(name, shown))

    def _draw_drift(self, axes) -> list:
        """Shade the samples of the change, and say in the first legend which they are."""
        if not self.periods:
            return []
        first, last, *_ = self.periods[0]
        over = last < self.columns["n_samples"][-1]
        label = f"since about sample {first:,}"
        if over:
            label = f"from about sample {first:,} to {last:,}"
        return [
            draw.shade(ax, first - 1, last, None if k else f"drift {label}")
            for k, ax in enumerate(axes)
        ]

    def _draw_evidence(self, ax, kwargs) -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        label = "e-detector" if self.of_detector else "e-value"
        logs = self.columns["log_e_value"] / np.log(10)  # beyond what float64 holds, too
        if self.of_detector:
            logs = np.log10(self.columns["detector"])
        shown = np.where(np.isfinite(logs), logs, np.nan)
        look = draw.styled(kwargs, color=draw.BLUE, label=label)
        look.setdefault("marker", "o" if len(shown) <= _MARKED else "")
        [self.evidence_] = ax.plot(self.columns["n_samples"], shown, **look)
        self.threshold_ = ax.axhline(
            np.log10(self.threshold),
            color=draw.GREY,
            linestyle="--",
            label=f"alarm at {self.threshold:,.4g}",
        )
        self.alarm_: Any = None
        if self.alarm is not None:
            infinite = " (infinite evidence)" if np.isposinf(logs).any() else ""
            said = "" if self.direction is None else ":\n" + fill(self.direction, _LEGEND_WIDTH)
            label = f"alarm after {self.alarm:,} samples{infinite}{said}"
            self.alarm_ = ax.axvline(self.alarm, color=draw.ORANGE, linewidth=2, label=label)
        ax.set_ylabel("e-detector, samples" if self.of_detector else "e-value")
        ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"$10^{{{v:.0f}}}$"))

    def _draw_bias(self, ax) -> None:
        n, columns = self.columns["n_samples"], self.columns
        until, when = np.ones(len(n), dtype=bool), "so far"
        if self.periods:
            until, when = n < self.periods[0].first_sample, "before the drift"
        if until.any():
            label = f"{percent(1 - self.alpha)} band of all {when}"
            low, high = (columns[name][until] for name in ("bias_low", "bias_high"))
            self.interval_ = draw.band(ax, n[until], low, high, draw.BLUE, 0.2, label)
            look = {"color": draw.BLUE, "label": f"all samples {when}"}
            [self.bias_] = ax.plot(n[until], columns["bias"][until], **look)
        self._draw_periods(ax)
        [self.recent_bias_] = ax.plot(
            n, columns["recent_bias"], ".", color=draw.GREY, label="each batch", zorder=1
        )
        ax.axhline(0, color=draw.ink(ax), linewidth=0.8)
        if self.alarm is not None:
            ax.axvline(self.alarm, color=draw.ORANGE, linewidth=2)
        most = np.nanmax(np.abs([columns["bias"], columns["recent_bias"]]))
        later = slice(np.count_nonzero(until) // 4, None)  # the first are as wide as the panel
        wide = np.abs([columns[name][until][later] for name in ("bias_low", "bias_high")])
        most = min(1, 1.1 * max(most, wide.max(initial=0)))
        ax.set(ylabel="observed −\npredicted", ylim=(-most, most))

    def _draw_periods(self, ax) -> None:
        """Draw the mean of each period since the drift began, and those of calibrated models."""
        self.periods_ = []
        for k, (first, last, surplus, margin) in enumerate(self.periods):
            place, is_first = (first - 1, last), not k
            named = "95 % of means if calibrated" if is_first else None
            draw.band(ax, place, (-margin,) * 2, (margin,) * 2, draw.GREY, 0.4, named)
            number = f"{surplus:+.2g}".replace("-", "−")
            label = f"{'drift' if is_first else 'later'}: {number} on average"
            look = {"color": draw.ORANGE if is_first else draw.BLUE, "linewidth": 2.5}
            self.periods_ += ax.plot(place, (surplus, surplus), label=label, **look)
