"""Calibration of several classifiers, of segments, and along a feature, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from skcal._show import percent
from skcal._sklearn_compat import validate_params
from skcal.displays import draw
from skcal.displays.base import DRAWN, Display, require_instance, require_search
from skcal.hypothesis_tests import adjust_pvalues
from skcal.hypothesis_tests.bias_curve import BiasCurve
from skcal.hypothesis_tests.result import CalibrationTestResult
from skcal.hypothesis_tests.segments import Segment, SegmentTestResult


@dataclass(frozen=True, eq=False)
class ClassifierError:
    """The error of one classifier with its limits, in probability units: roots of squared errors.

    Attributes
    ----------
    name : str
    plug_in : float
        ``search.rms_calibration_error_``.
    one_step, lower_bound : float
        Roots of the one-step estimate and of its lower confidence bound, 0 where these are
        negative; NaN where there is none.
    pvalue : float
        The p-value of the test, after Holm's adjustment over the classifiers; NaN without a test.
    rejected : bool
        Whether that p-value is at most the level.
    """

    name: str
    plug_in: float
    one_step: float
    lower_bound: float
    pvalue: float
    rejected: bool


@dataclass(eq=False, repr=False)
class ComparisonDisplay(Display):
    """Calibration errors of several classifiers, with lower bounds and tests.

    Make it with :meth:`from_searches`.

    Parameters
    ----------
    classifiers : list of ClassifierError
        The calibration error of each classifier with its limits, a row each.
    notion : str
        The kind of calibration; see :mod:`skcal.notions`.
    confidence_level : float, default=0.95
        The confidence level of the limits.
    level : float, default=0.05
        Differences whose p-value is at most this are marked as significant.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Set by :meth:`plot`, as are the following.
    plug_ins_, one_steps_ : lines of the markers
    lower_bounds_ : line segments from the lower bounds to the one-step estimates
    tests_ : list of texts

    See Also
    --------
    skcal.hypothesis_tests.compare_calibration : tests the difference of two.

    Notes
    -----
    Each bound and each test is about one classifier: overlapping segments do not say that two
    classifiers are equal. The plug-in may be too high if the function fits noise. The one-step
    estimate is on average never too high, and its lower bound holds for the true error.

    Examples
    --------
    >>> from skcal import CalibrationErrorSearchCV, TwoStepKernelRidge
    >>> from skcal.datasets import make_tempered
    >>> from skcal.displays import ComparisonDisplay
    >>> searches = {}
    >>> for temperature in (1.0, 2.0):
    ...     data = make_tempered(1000, temperature=temperature, n_truth_draws=0, random_state=0)
    ...     candidates = [(TwoStepKernelRidge(), {"alpha": [1e-3, 1e-2, 1e-1]})]
    ...     search = CalibrationErrorSearchCV(candidates, "confidence", random_state=0)
    ...     searches[f"T = {temperature}"] = search.fit(data.proba, data.labels)
    >>> display = ComparisonDisplay.from_searches(searches, plot=False)
    >>> [classifier.lower_bound > 0 for classifier in display.classifiers]
    [False, True]
    """

    classifiers: list[ClassifierError]
    _: KW_ONLY
    notion: str
    confidence_level: float = 0.95
    level: float = 0.05

    def _facts(self):
        n_tests = sum(not np.isnan(classifier.pvalue) for classifier in self.classifiers)
        n_classifiers = draw.counted(len(self.classifiers), "classifier")
        return [self.notion, n_classifiers, draw.counted(n_tests, "test")]

    @classmethod
    @validate_params({**DRAWN, "level": DRAWN["confidence_level"]})
    def from_searches(
        cls, searches, tests=None, *, confidence_level=0.95, level=0.05, ax=None, plot=True
    ) -> Self:
        """Read fitted searches and test results, and plot.

        Parameters
        ----------
        searches : dict
            Name of the classifier → fitted :class:`skcal.CalibrationErrorSearchCV`, all of the same
            notion; drawn in this order.
        tests : dict, default=None
            Name → result of a test of calibration; not every classifier needs one.
        confidence_level : float in (0, 1), default=0.95
            The confidence level of the lower bounds, which are one-sided.
        level : float in (0, 1), default=0.05
            The level of the tests, over all classifiers together.
        ax : matplotlib axes, default=None
            None makes a figure.
        plot : bool, default=True
            False computes only the numbers, without matplotlib.

        Returns
        -------
        display : ComparisonDisplay
        """
        tests = {} if tests is None else tests
        _require_comparable(searches, tests)
        pvalues = dict.fromkeys(searches, np.nan)
        if tests:
            adjusted = adjust_pvalues([result.pvalue for result in tests.values()])
            pvalues.update(zip(tests, adjusted.tolist(), strict=True))
        classifiers = [
            ClassifierError(
                name=str(name),
                plug_in=search.rms_calibration_error_,
                **_one_step_roots(search, confidence_level),
                pvalue=pvalues[name],
                rejected=pvalues[name] <= level,
            )
            for name, search in searches.items()
        ]
        notion = str(next(iter(searches.values())).notion_)
        display = cls(classifiers, notion=notion, confidence_level=confidence_level, level=level)
        return display.plot(ax=ax) if plot else display

    def _layout(self):
        return 1, (8.0, 1.9 + 0.34 * len(self.classifiers))

    def _draw(self, axes, name, kwargs):
        [ax] = axes
        plug_in, one_step, low = (
            np.array([getattr(classifier, field) for classifier in self.classifiers])
            for field in ("plug_in", "one_step", "lower_bound")
        )
        rows = np.arange(len(self.classifiers))
        self.lower_bounds_ = ax.hlines(rows, low, one_step, color=draw.GREEN, linewidth=2)
        ax.plot(low, rows, "|", color=draw.GREEN, markersize=11, markeredgewidth=2)
        look = {"color": draw.GREEN, "marker": "D", "markersize": 6, "linestyle": "none"}
        look["label"] = f"one-step, {percent(self.confidence_level)} lower bound"
        [self.one_steps_] = ax.plot(one_step, rows, **draw.styled(kwargs, **look))
        ring = {"markerfacecolor": "none", "markeredgecolor": draw.BLUE, "markeredgewidth": 1.5}
        [self.plug_ins_] = ax.plot(plug_in, rows, "o", markersize=8, label="plug-in", **ring)
        self.tests_ = self._draw_tests(ax)
        most = np.nanmax(np.concatenate([plug_in, one_step, [1e-9]]))
        ax.set_xlim(-0.02 * most, 1.06 * most)
        draw.name_rows(ax, draw.as_labels([classifier.name for classifier in self.classifiers], 30))
        ax.axvline(0, color=draw.GREY, linewidth=1, linestyle=":")
        ax.set_xlabel(f"RMS calibration error ({draw.as_label(self.notion)})")
        draw.head_rows(ax, name)

    def _draw_tests(self, ax) -> list[Any]:
        """P-values right of the rows; bold where calibration is rejected."""
        pvalues = [classifier.pvalue for classifier in self.classifiers]
        rejected = [classifier.rejected for classifier in self.classifiers]
        texts = draw.write_pvalues(ax, pvalues, rejected, fontweight="bold")
        if texts:
            adjusted = ", Holm" if len(texts) > 1 else ""
            heading = f"* significant\nat {percent(self.level)}{adjusted}"
            look = {"fontsize": "medium", "color": draw.ORANGE}
            ax.text(1.02, 1.01, heading, transform=ax.transAxes, **look)
        return texts


def _require_comparable(searches, tests):
    if not isinstance(searches, dict) or not searches:
        raise ValueError("searches must be a dict, name → fitted search, with one entry or more.")
    first_name, first = next(iter(searches.items()))
    for name, search in searches.items():
        require_search(f"searches[{name!r}]", search)
        if search.notion_ != first.notion_:
            raise ValueError(
                f"searches[{name!r}] is of notion {search.notion_!r}, "
                f"searches[{first_name!r}] of {first.notion_!r}. Errors of different "
                "notions are not comparable: fit all with the same."
            )
    for name, result in tests.items():
        if name not in searches:
            raise ValueError(f"tests holds {name!r}, which searches does not. Use the same names.")
        remedy = "Pass what a test returned."
        require_instance(f"tests[{name!r}]", result, CalibrationTestResult, remedy)


def _one_step_roots(search, confidence_level) -> dict:
    if search.one_step_ is None or not np.isfinite(search.one_step_standard_error_):
        return {"one_step": np.nan, "lower_bound": np.nan}
    squares = search.one_step_squared_error_, search.lower_confidence_bound(confidence_level)
    roots = np.sqrt(np.maximum(squares, 0))
    return {"one_step": float(roots[0]), "lower_bound": float(roots[1])}


_NAME_LINES = 2  # of the name of a row


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
        segments = self.segments[: draw.rows_that_fit(ax, _NAME_LINES)]
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
    lines = [draw.as_label(part, 30) for part in segment.name.split(" and ", _NAME_LINES - 1)]
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
        draw.set_title(ax, draw.titled(name, title))
