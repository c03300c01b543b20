"""Axes of probabilities, linear or in logits, that hold all that is drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

SCALES = ("linear", "logit")
#: Labels of both axes, for events and for whether predictions are right.
AXIS_LABELS = (("predicted probability", "observed frequency"), ("confidence", "accuracy"))
_LIMITS = (0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 1.0)  # of linear axes
_DECADES = tuple(10.0**-k for k in range(6, 0, -1))
_LOGIT_ENDS = (*_DECADES, 0.2, 0.5, 0.8, *(1 - end for end in _DECADES[::-1]))
_MARGIN = 0.02
_MOST_TICKS = 7
_WIDE = 0.5  # an axis whose six labels are short; others have three, or four; and the widest part


class ProbabilityAxis(NamedTuple):
    """Where an axis of probabilities begins and ends.

    Attributes
    ----------
    low, high : float
        For the linear scale the low end is 0 or the high one 1; for "logit" both lie in between.
    scale : {"linear", "logit"}
    """

    low: float
    high: float
    scale: str = "linear"

    def place(self, probability) -> np.ndarray:
        """Positions of probabilities: 0 at the low end, 1 at the high one; none lies outside."""
        probability = np.clip(probability, self.low, self.high)
        if self.scale == "linear":
            return (probability - self.low) / (self.high - self.low)
        first, last = logit([self.low, self.high])
        return (logit(probability) - first) / (last - first)

    def at(self, place) -> np.ndarray:
        """The probabilities at positions, which are 0 and 1 at the ends."""
        place = np.asarray(place, dtype=float)
        if self.scale == "linear":
            return self.low + place * (self.high - self.low)
        first, last = logit([self.low, self.high])
        return expit(first + place * (last - first))

    def inside(self, probability) -> np.ndarray:
        """Move probabilities beyond an end to that end."""
        return np.clip(probability, self.low, self.high)

    def ticks(self) -> np.ndarray:
        """Probabilities that get a label."""
        if self.scale == "linear":
            span = round(self.high - self.low, 6)
            by_thirds = f"{span:.1e}"[:3] in ("1.5", "3.0", "6.0")
            return np.linspace(self.low, self.high, 6 if span >= _WIDE else 3 + by_thirds)
        ends = np.array(_LOGIT_ENDS)
        ends = ends[(self.low <= ends) & (ends <= self.high)]
        if len(ends) > _MOST_TICKS:
            ends = ends[~np.isin(ends, (0.2, 0.8))]
        every = int(np.ceil(len(ends) / _MOST_TICKS))
        return ends[::-every][::-1] if self.high <= 0.5 else ends[::every]

    def joined(self, other: ProbabilityAxis) -> ProbabilityAxis:
        """The axis that holds both."""
        return self._replace(low=min(self.low, other.low), high=max(self.high, other.high))


UNIT = ProbabilityAxis(0.0, 1.0)


def axes_of(predictions, scale: str) -> list[ProbabilityAxis]:
    """Axes that hold the predictions, the shortest first, the last with all probabilities.

    A linear one ends before 1 and leaves out at most 1 % of the predictions, or begins above 0 and
    leaves none out. One of logits leaves out at most 0.5 % at each end, and what is nearer to 0 or
    1 than the share of a single sample.
    """
    if scale == "linear":
        least, most = predictions.min(), np.quantile(predictions, 0.99)
        lows = [round(1 - limit, 6) for limit in _LIMITS if limit <= _WIDE]
        begun = [ProbabilityAxis(low, 1.0) for low in lows if low <= least]
        return begun + [ProbabilityAxis(0.0, limit) for limit in _LIMITS if most <= limit]
    first, last = np.quantile(predictions, [0.005, 0.995])
    share = min(1 / len(predictions), 0.1)
    ends = np.array(_LOGIT_ENDS)
    low = float(ends[:-1][ends[:-1] <= max(first, share, ends[0])].max())
    most = ends[np.searchsorted(ends, min(last, 1 - share, ends[-1]))]
    return [ProbabilityAxis(low, float(end), scale) for end in ends if end >= most and end > low]


def set_axes(ax, axis: ProbabilityAxis, labels: tuple[str, str]) -> None:
    """Let both axes of a diagram be alike, or hold what another display on them drew too."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    drawn = getattr(ax, "_skcal_axis", None)
    if drawn is not None and drawn.scale != axis.scale:
        raise ValueError(
            f"ax holds a diagram with scale={drawn.scale!r}, this one has {axis.scale!r}. "
            "Use the same scale, or leave ax out."
        )
    axis = axis if drawn is None else axis.joined(drawn)
    ax._skcal_axis = axis
    ax.set(xscale=axis.scale, yscale=axis.scale, xlabel=labels[0], ylabel=labels[1])
    ends = ends_of(axis)
    ax.set(xlim=ends, ylim=ends, box_aspect=1)
    ax.spines[["top", "right"]].set_visible(False)
    for side in (ax.xaxis, ax.yaxis):
        side.set_major_locator(FixedLocator(axis.ticks().tolist()))
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
        side.set_minor_locator(NullLocator())


def ends_of(axis: ProbabilityAxis) -> tuple[float, float]:
    """The axis and a margin at both ends, so that markers at them are whole."""
    low, high = axis.at([-_MARGIN, 1 + _MARGIN]).tolist()
    return low, high
