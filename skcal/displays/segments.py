"""Segments of the samples, and curves along a feature: predicted beside observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np

from skcal._show import percent
from skcal._sklearn_compat import validate_params
from skcal.displays import draw
from skcal.displays.base import DRAWN, Display, require_instance
from skcal.hypothesis_tests.bias_curve import BiasCurve
from skcal.hypothesis_tests.segments import Segment, SegmentTestResult

_LINES = 2  # of the name of a row


@dataclass(eq=False, repr=False)
class SegmentDisplay(Display):
    """Expected and observed means of the worst segments, with intervals and p-values.

    Make it with :meth:`from_result`.

    Parameters
    ----------
    segments : list of Segment
        The segments from the top.
    n_segments : int
        The number of segments that were tested.
    level : float, default=0.05
        Segments whose adjusted p-value is at most this are marked as significant.
    compared_with : {"predicted", "all samples"}, default="predicted"
        The expected mean: the mean prediction or, for a test with ``relative=True``, the mean of
        the calibration curve of all samples at these predictions.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Set by :meth:`plot`, as are the following.
    observed_, expected_ : lines of the markers
    intervals_ : line segments of the intervals
    tests_ : list of texts

    See Also
    --------
    skcal.hypothesis_tests.segment_test

    Notes
    -----
    The intervals hold for all segments together, as the p-values are adjusted for all.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.displays import SegmentDisplay
    >>> from skcal.hypothesis_tests import segment_test
    >>> rng = np.random.default_rng(0)
    >>> group, proba = rng.choice(["u", "v"], 1000), rng.uniform(size=1000)
    >>> y = rng.uniform(size=1000) < np.where(group == "u", proba**2, proba)
    >>> result = segment_test(y, proba, {"group": group}, random_state=0)
    >>> [segment.name for segment in SegmentDisplay.from_result(result, plot=False).segments]
    ['group = u', 'group = v']
    """

    segments: Sequence[Segment]
    _: KW_ONLY
    n_segments: int
    level: float = 0.05
    compared_with: str = "predicted"

    def _facts(self):
        return [f"{len(self.segments):,} of {draw.counted(self.n_segments, 'segment')}"]

    @classmethod
    @validate_params({**DRAWN, "level": DRAWN["confidence_level"]})
    def from_result(cls, result, *, n_worst=12, level=0.05, ax=None, plot=True) -> Self:
        """Take the worst segments of a test, and plot.

        Parameters
        ----------
        result : SegmentTestResult
            Of :func:`skcal.hypothesis_tests.segment_test`.
        n_worst : int, default=12
            The largest number of segments to plot.
        level : float in (0, 1), default=0.05
            The level of the test, over all segments together.
        ax : matplotlib axes, default=None
            None makes a figure.
        plot : bool, default=True
            False computes only the numbers, without matplotlib.

        Returns
        -------
        display : SegmentDisplay
        """
        require_instance("result", result, SegmentTestResult, "Pass what segment_test returned.")
        display = cls(
            result.segments[:n_worst],
            n_segments=len(result.segments),
            level=level,
            compared_with=result.compared_with,
        )
        return display.plot(ax=ax) if plot else display

    def _layout(self):
        return 1, (8.0, 1.5 + 0.5 * len(self.segments))

    def _draw(self, axes, name, kwargs):
        [ax] = axes
        segments = self.segments[: draw.rows_that_fit(ax, _LINES)]
        rows = np.arange(len(segments))
        low, high, observed, expected = (
            np.array([getattr(segment, field) for segment in segments])
            for field in ("low", "high", "observed", "expected")
        )
        rejected = [segment.pvalue <= self.level for segment in segments]
        colours = [draw.ORANGE if reject else draw.BLUE for reject in rejected]
        self.intervals_ = ax.hlines(rows, low, high, color=colours, linewidth=2)
        look = {"color": draw.BLUE, "marker": "o", "linestyle": "none", "label": "observed, 95 %"}
        [self.observed_] = ax.plot(observed, rows, **draw.styled(kwargs, **look))
        mark = {"color": draw.ink(ax), "markersize": 14, "markeredgewidth": 2}
        [self.expected_] = ax.plot(expected, rows, "|", label=self.compared_with, **mark)
        ax.set_xlabel("mean probability")
        several = len({segment.outcome for segment in segments}) > 1
        draw.name_rows(ax, [_row_label(one, several) for one in segments], fontsize="medium")
        self.tests_ = draw.write_pvalues(ax, [one.pvalue for one in segments], rejected)
        heading = f"{len(rows)} of {draw.counted(self.n_segments, 'segment')},\n"
        heading += f"* significant at {percent(self.level)}"
        options = {"fontsize": "medium", "verticalalignment": "bottom"}
        ax.text(1.02, 1.01, heading, transform=ax.transAxes, **options)
        draw.head_rows(ax, name)


def _row_label(segment, of_several_outcomes):
    n = f"{draw.as_label(segment.outcome, 14)}, n" if of_several_outcomes else "n"
    lines = [draw.as_label(part, 30) for part in segment.name.split(" and ", _LINES - 1)]
    return " and\n".join(lines) + f" ({n} = {segment.n_samples:,})"


@dataclass(eq=False, repr=False)
class BiasCurveDisplay(Display):
    """Predicted and observed means along a feature, with the band of calibrated models.

    Make it with :meth:`from_result`.

    Parameters
    ----------
    curve : BiasCurve
        What is drawn; see :func:`skcal.hypothesis_tests.bias_curve`.
    feature : str, default="feature"
        Name of the feature, for the x axis.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Set by :meth:`plot`, as are the following.
    observed_, predicted_ : lines
    band_ : filled area

    See Also
    --------
    skcal.hypothesis_tests.bias_curve

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.displays import BiasCurveDisplay
    >>> from skcal.hypothesis_tests import bias_curve
    >>> rng = np.random.default_rng(0)
    >>> age, proba = rng.uniform(20, 80, 500), rng.uniform(size=500)
    >>> curve = bias_curve(rng.uniform(size=500) < proba, proba, age, random_state=0)
    >>> BiasCurveDisplay.from_result(curve, feature="age", plot=False).curve is curve
    True
    """

    curve: BiasCurve
    _: KW_ONLY
    feature: str = "feature"
    _size = (6.4, 4.2)

    def _facts(self):
        place = f"{draw.counted(len(self.curve.values), 'value')} of {draw.as_label(self.feature)}"
        return [self.curve.notion, place, f"p = {self.curve.pvalue:.3g}"]

    @classmethod
    def from_result(cls, result, *, feature="feature", ax=None, plot=True) -> Self:
        """Take the result of a test, and plot.

        Parameters
        ----------
        result : BiasCurve
            Of :func:`skcal.hypothesis_tests.bias_curve`.
        feature : str, default="feature"
            The name of the feature, for the axis.
        ax : matplotlib axes, default=None
            None makes a figure.
        plot : bool, default=True
            False needs no matplotlib.

        Returns
        -------
        display : BiasCurveDisplay
        """
        require_instance("result", result, BiasCurve, "Pass what bias_curve returned.")
        display = cls(result, feature=feature)
        return display.plot(ax=ax) if plot else display

    def _draw(self, axes, name, kwargs):
        [ax], curve = axes, self.curve
        low = np.maximum(curve.predicted - curve.chance, 0)
        high = np.minimum(curve.predicted + curve.chance, 1)
        label = f"{percent(curve.confidence_level)} if calibrated"
        self.band_ = draw.band(ax, curve.values, low, high, draw.GREY, 0.4, label)
        [self.predicted_] = ax.plot(
            curve.values, curve.predicted, "--", color=draw.ink(ax), label="predicted"
        )
        look = {"color": draw.BLUE, "marker": "o", "markersize": 3, "label": "observed"}
        [self.observed_] = ax.plot(curve.values, curve.observed, **draw.styled(kwargs, **look))
        ax.set(xlabel=draw.as_label(self.feature), ylabel="mean probability")
        draw.legend_below(ax)
        title = f"p = {curve.pvalue:.3g} along the whole curve"
        ax.set_title(draw.titled(name, title), fontsize="medium")
