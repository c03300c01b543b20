"""The numbers behind an answer: the test, the error with its limits, ranges, and the gain.

One of them is whether the columns of predictions seem to be in another order than the labels.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from skcal._groups import FEWEST_GROUPS
from skcal._show import worded
from skcal.exceptions import InputError
from skcal.hypothesis_tests import (
    EquivalenceTestResult,
    calibration_error_interval,
    calibration_test,
    equivalence_test,
    scan_test,
)
from skcal.hypothesis_tests.joint import JointTestResult
from skcal.hypothesis_tests.scan import ScanRange, ScanTestResult
from skcal.metrics import CalibrationErrorInterval
from skcal.metrics.limits import frequency_limits
from skcal.notions import Notion
from skcal.recalibration import BayesianCalibration, TemperatureScaling
from skcal.report.answer import LIMIT, Answer, answer_of, heading_of
from skcal.sample import Sample

_SHARE_OF_RATE = 0.2  # of the rarer outcome, which is the tolerance where it is less than usual
_FOLDS = 5  # of the recalibration that is tried
_BIN_POWER = 0.4  # power of the number of samples
_LIMIT_TAIL = 0.025  # of each limit of what happened on the other side
_HELPS = 0.8  # of the error that is left, from which on recalibration is not promised


@dataclass(frozen=True)
class Overview:
    """Mean predictions and observed frequencies; the ends are those of the predictions in question.

    ``counts`` are the samples of each class, whatever their weights. ``n_groups`` is None where all
    samples are independent. ``effective_size`` is (Σw)² / Σw² where weights differ, by which shares
    and means are, else None. ``n_certain`` predictions are exactly 0 or 1. ``of_shares`` is True if
    outcomes are shares or votes, whose events are not whole samples.
    """

    n_samples: int
    counts: list[float]
    n_groups: int | None
    effective_size: float | None
    classes: list
    base_rates: list[float]
    mean_predictions: list[float]
    accuracy: float
    mean_confidence: float
    smallest: float
    largest: float
    n_certain: int
    of_shares: bool

    def averages(self, notion: Notion) -> tuple[float, float]:
        """The mean prediction and the observed frequency, of events or of right predictions."""
        if notion.of_positive_class:
            return self.mean_predictions[-1], self.base_rates[-1]
        return self.mean_confidence, self.accuracy

    @property
    def has_few_groups(self) -> bool:
        """Whether there are groups, too few to know a variance from."""
        return self.n_groups is not None and self.n_groups < FEWEST_GROUPS


@dataclass(frozen=True)
class Gain:
    """The calibration error that is left after recalibration, cross-validated.

    Attributes
    ----------
    method : str
    error, high : float
        The error and its upper confidence limit.
    helps : bool
    """

    method: str
    error: float
    high: float
    helps: bool


@dataclass(frozen=True, eq=False)
class Findings:
    """The numbers behind the answer about one set of predictions; None if not estimated.

    Attributes
    ----------
    name : str
    notion : Notion
    overview : Overview
    test : JointTestResult or None
        The test that decides the verdict.
    error : CalibrationErrorInterval or None
        The calibration error with its limits.
    tolerance : float
        The error that is accepted, beside which the title has its size.
    max_error : float or None
        The tolerance, if the user set it.
    gate : EquivalenceTestResult or None
        Whether the error is below the tolerance, and how many samples would show it.
    gain : Gain or None
        What recalibration leaves of an error that is significant.
    scan : ScanTestResult or None
        Where predictions are miscalibrated.
    other_side : ScanRange or None
        Predictions beyond the largest of these ranges that are significantly wrong in the other
        direction, if predictions are significantly too extreme or not extreme enough.
    doubt : str or None
        Why the columns seem to be in another order than the labels.
    """

    name: str
    notion: Notion
    overview: Overview
    test: JointTestResult | None
    error: CalibrationErrorInterval | None
    tolerance: float
    max_error: float | None
    gate: EquivalenceTestResult | None
    gain: Gain | None
    scan: ScanTestResult | None
    other_side: ScanRange | None
    doubt: str | None

    @classmethod
    def of(
        cls,
        sample: Sample,
        name: str = "classifier",
        *,
        confidence_level: float = 0.95,
        max_error: float | None = None,
        n_jobs: int | None = None,
    ) -> Findings:
        """Compute them, which takes a fraction of the time of a report.

        Parameters
        ----------
        sample : Sample
            Labels and predictions.
        name : str, default="classifier"
            What the predictions are called.
        confidence_level : float in (0, 1), default=0.95
            Of limits and ranges.
        max_error : float in (0, 1), default=None
            The calibration error that you tolerate, as in :func:`skcal.calibration_report`.
        n_jobs : int, default=None
            The number of workers.

        Raises
        ------
        ValueError
            If the kind of calibration is about vectors of probabilities.
        """
        if not sample.notion.scalar:
            reason = f"is {str(sample.notion)!r}, of which there is no calibration error."
            raise InputError("notion", reason, "Make a Sample of 'binary' or 'confidence'.")
        attempts = Attempts(name, holds_rows=sample.holds_rows)
        return find(attempts, ReportSamples.of(sample), confidence_level, max_error, n_jobs=n_jobs)

    @property
    def answer(self) -> Answer:
        """The title, such as "Overconfident: large", and at most three sentences."""
        return answer_of(self)

    @property
    def heading(self) -> str:
        """A line about the samples."""
        return heading_of(self)

    @property
    def is_significant(self) -> bool:
        """Whether the verdict is "miscalibrated"."""
        return self.error is not None and self.error.is_significant

    @property
    def ranges(self) -> list:
        """The ranges that the scan names, where the verdict is "miscalibrated"."""
        return list(self.scan.ranges) if self.is_significant and self.scan is not None else []

    @property
    def both_sides(self) -> list[ScanRange]:
        """The range with the most surplus or missing events, and one that is wrong the other way.

        The second is absent where there is none.
        """
        ranges = by_importance(self.ranges)
        others = [one for one in ranges if _is_too_low(one) != _is_too_low(ranges[0])]
        if ranges and self.other_side is not None:
            others.append(self.other_side)
        return ranges[:1] + others[:1]


def by_importance(ranges) -> list[ScanRange]:
    """Ranges, first those where most outcomes are surplus or missing."""
    return sorted(ranges, key=lambda one: -one.n_samples * abs(one.observed - one.predicted))


def _is_too_low(one: ScanRange) -> bool:
    return one.observed > one.predicted


@dataclass
class Attempts:
    """Runs parts of a report; what fails, what skcal warns of and what needs rows is collected."""

    name: str
    verbose: bool | int = False
    holds_rows: bool = True
    messages: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def __call__(self, what, function, *arguments):
        """Return the part, or None if the samples do not allow it."""
        if self.verbose:
            print(f"[calibration_report] {self.name}: {what}", flush=True)
        with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
            try:
                result = function(*arguments)
            except ValueError as error:
                result = None
                self.messages.append(f"{what}: not estimated. {error}")
        texts = [f"{what}: {warning.message}" for warning in caught]
        self.messages += [text for text in dict.fromkeys(texts) if text not in self.messages]
        return result

    def of_rows(self, what, function, *arguments):
        """Return the part that needs the rows of samples, or None of a table, which has none."""
        if self.holds_rows:
            return self(what, function, *arguments)
        self.left_out.append(what)
        return None


class ReportSamples(NamedTuple):
    """The samples that a report is about.

    Attributes
    ----------
    sample : Sample
        Of several labels all pairs of a sample and a label, as samples of one event.
    whole : Sample
        The samples whose test and error are told; of one label or event the same.
    """

    sample: Sample
    whole: Sample

    @classmethod
    def of(cls, sample: Sample, whole: Sample | None = None) -> ReportSamples:
        """Return both; without a ``whole`` they are the same."""
        return cls(sample, sample if whole is None else whole)


def find(
    attempt: Attempts,
    asked: ReportSamples,
    confidence_level: float,
    max_error: float | None = None,
    test: JointTestResult | None = None,
    *,
    tolerance: float | None = None,
    of_part: bool = False,
    n_jobs: int | None = None,
) -> Findings:
    """Compute the numbers behind the answer; the test and the error may be known already.

    Without a ``tolerance``, such as that of all samples, it is that of the sample.
    """
    sample, whole = asked
    verdict = partial(calibration_test, n_resamples=None, n_jobs=n_jobs)
    test = test or attempt("test", verdict, whole)
    if tolerance is None:
        tolerance = _tolerance(sample, max_error)
    scan = other_side = error = gate = gain = None
    level: dict[str, Any] = {"confidence_level": confidence_level}
    if sample.notion.single:
        scanned = partial(scan_test if test is None else test.scan, n_jobs=n_jobs, **level)
        scan = attempt("ranges", scanned, sample)
    if test is not None:
        if scan is not None and scan.ranges:
            other_side = _other_side(sample, scan.ranges, test.spread)
        given = level | {"pvalue": test.pvalue}
        limits = partial(calibration_error_interval, **given)
        error = attempt("calibration error", limits, whole)
    if error is not None:
        gate = attempt("samples needed", partial(equivalence_test, limit=tolerance, **given), whole)
    if error is not None and error.is_significant and not of_part:
        gain = attempt.of_rows("recalibration", _gain_of_trial, sample, whole, error)
    return Findings(
        name=attempt.name,
        notion=sample.notion,
        overview=_overview(sample),
        test=test,
        error=error,
        tolerance=tolerance,
        max_error=max_error,
        gate=gate,
        gain=gain,
        scan=scan,
        other_side=other_side,
        doubt=_doubt_about_order(attempt, sample),
    )


def _doubt_about_order(attempt, sample) -> str | None:
    """What is wrong with the order of the columns; of confidences that were counted, None."""
    if not sample.knows_classes:
        return attempt.of_rows("order of the columns", doubt_about_order)
    return doubt_about_order(sample)


def _other_side(sample, ranges, spread) -> ScanRange | None:
    """The predictions above or below the largest range, if they are wrong in the other direction.

    They are above it if it is too low and predictions are too extreme. Their average is outside of
    the limits of what happened there.
    """
    largest = by_importance(ranges)[0]
    [problem] = sample.problems()
    x = problem.features[:, 0]
    above = _is_too_low(largest) == (spread == "too extreme")
    part = x > largest.high if above else x < largest.low
    if not spread or not problem.weight[part].any():
        return None
    beyond = problem.take(np.flatnonzero(part), slice(None), problem.weight[part])
    predicted = float(np.average(x[part], weights=beyond.weight))
    observed = float(np.average(beyond.outcomes[:, 0], weights=beyond.weight))
    limits = frequency_limits(beyond._replace(groups=sample.groups.take(part)), _LIMIT_TAIL)
    if limits[0] <= predicted <= limits[1]:
        return None
    about = beyond.number(), predicted, observed, np.nan, np.nan
    other = ScanRange(float(x[part].min()), float(x[part].max()), *about)
    return other if _is_too_low(other) != _is_too_low(largest) else None


def _overview(sample) -> Overview:
    problems = [problem for problem in sample.problems() if len(problem.features)]
    features, groups = [problem.features for problem in problems], sample.groups
    n_groups = len(sample) if groups.independent else len(np.unique(groups.units(len(sample))))
    return Overview(
        n_samples=len(sample),
        counts=sample.counts.tolist(),
        n_groups=n_groups if n_groups < len(sample) else None,
        classes=[plain_label(label) for label in sample.classes.tolist()],
        effective_size=sample.effective_size,
        base_rates=sample.frequencies.tolist(),
        mean_predictions=sample.mean_predictions.tolist(),
        accuracy=sample.accuracy,
        mean_confidence=sample.mean_confidence,
        smallest=float(min(map(np.min, features))),
        largest=float(max(map(np.max, features))),
        n_certain=sum(part.number(np.isin(part.features, (0, 1)).all(axis=1)) for part in problems),
        of_shares=sample.outcomes is not None,
    )


def plain_label(label):
    """A label as JSON can hold it."""
    is_number = isinstance(label, float) and np.isfinite(label)
    return label if is_number or isinstance(label, bool | int | str) else str(label)


def _tolerance(sample, max_error) -> float:
    """The limit that was asked for, or 0.05, of rare outcomes a fifth of their rate."""
    if max_error is not None:
        return max_error
    if not sample.notion.single:
        return LIMIT
    [problem] = sample.problems()
    rate = float(np.average(problem.outcomes[:, 0], weights=problem.weight))
    rate = min(rate, 1 - rate) or 1.0
    return min(LIMIT, float(f"{_SHARE_OF_RATE * rate:.1g}"))


def _gain_of_trial(sample, whole, error) -> Gain:
    """The error of the whole after recalibration, by fits to other blocks of the samples.

    Samples, or their groups, are dealt to blocks in the order of their confidences.
    """
    rank = np.argsort(np.argsort(sample.proba_of_classes.max(axis=1), kind="stable"))
    blocks = (rank if sample.groups.independent else sample.groups.codes) % _FOLDS
    return gain_of(recalibrated(sample, blocks), whole, error)


def recalibrated(sample, blocks) -> np.ndarray:
    """Predictions of each block after a recalibration that was fitted to the other blocks."""
    rows = sample.proba_of_classes
    two, weight = rows.shape[1] == 2, sample.effective.weight
    recalibration: Any = BayesianCalibration() if two else TemperatureScaling()
    proba = np.empty(rows.shape)
    for block in np.unique(blocks):
        fitted, held_out = blocks != block, blocks == block
        method = clone(recalibration).fit(
            rows[fitted], sample.happened[fitted], sample_weight=weight[fitted]
        )
        proba[held_out] = method.predict_proba(rows[held_out])
    return proba[:, 1] if sample.proba.ndim == 1 else proba


def gain_of(proba, whole, error) -> Gain:
    """What recalibrated predictions of the whole leave of its error."""
    after = whole._replace(proba=proba.reshape(whole.proba.shape), logits=None)
    left = calibration_error_interval(after, confidence_level=error.confidence_level, pvalue=1.0)
    two = whole.proba_of_classes.shape[1] == 2 or whole.notion.of_labels
    name = "Recalibration" if two else "Temperature scaling"
    return Gain(name, left.estimate, left.high, left.estimate <= _HELPS * error.estimate)


_MOST_ORDERED = 100
_SURE_ORDER = 4.0  # standard errors
REVERSED = (
    "Shuffled labels would fit these predictions better than the labels do. The columns may be in "
    "another order than the labels, or the other class may be the positive one: check {}."
)


def doubt_about_order(sample: Sample) -> str | None:
    """Return what is wrong with the order of the columns, if anything seems to be."""
    if sample.is_reversed:
        return REVERSED.format(worded("labels= and pos_label=", "--labels and --pos-label"))
    return _other_order(sample.proba_of_classes, sample.happened, sample.classes)


def _other_order(rows: np.ndarray, happened: np.ndarray, classes) -> str | None:
    """A warning where columns in another order give what happened much higher probabilities.

    The order is found in each half of the samples and judged in the other half: the best order of
    many classes fits the samples that chose it, even if predictions hold no information.
    """
    n, n_classes = rows.shape
    if happened.ndim > 1 or not 2 < n_classes <= _MOST_ORDERED:
        return None
    halves = np.zeros((2, n_classes, n_classes))
    samples = np.arange(n)
    half = samples % 2
    np.add.at(halves, (half, happened), rows)
    orders = np.array([_best_order(sums) for sums in halves[::-1]])
    gain = rows[samples, orders[half, happened]] - rows[samples, happened]
    if gain.mean() <= _SURE_ORDER * max(gain.std() / math.sqrt(n), 1e-9):
        return None
    names = ", ".join(str(classes[k]) for k in np.argsort(_best_order(halves.sum(axis=0))))
    option = worded("labels=", "--labels")
    return (
        f"The columns seem to be in the wrong order: {names} would fit the labels much better. "
        f"Check it, and pass {option} if columns are not in the order of the sorted labels."
    )


def _best_order(sums: np.ndarray) -> np.ndarray:
    """The column of each class that gives the largest sum of probabilities."""
    return linear_sum_assignment(sums, maximize=True)[1]


def likeness_of_neighbours(proba: np.ndarray, happened: np.ndarray) -> float:
    """How much neighbouring rows err to the same side, in standard deviations.

    A miscalibration is removed first: residuals are those from the frequency in each bin of equal
    predictions, so that rows that are sorted by their predictions are as others. The sum of the
    products of neighbouring standardised residuals is divided by the root of that of their squares,
    so that a single pair of rare events is at most one standard deviation.

    Parameters
    ----------
    proba, happened : ndarray of shape (n_samples, n_columns)
        Predictions and how much of each class happened; of two classes one column suffices.

    Returns
    -------
    likeness : float
        0 where outcomes are sorted, which says nothing about neighbours.
    """
    n, products = len(proba), np.zeros(max(len(proba) - 1, 0))
    changes = np.count_nonzero((happened[1:] != happened[:-1]).any(axis=1))
    rows = happened[:, 0] if happened.shape[1] == 1 else happened  # which is sorted much faster
    if changes < len(np.unique(rows, axis=0)):
        return 0.0
    for p, y in zip(proba.T, happened.T, strict=True):
        edges = np.unique(np.quantile(p, np.linspace(0, 1, 2 + int(n**_BIN_POWER))[1:-1]))
        bins = np.searchsorted(edges, p)
        mean = np.bincount(bins, y) / np.maximum(np.bincount(bins), 1)
        deviation = np.sqrt(np.maximum(mean * (1 - mean), 1e-300))
        deviation[~((mean > 0) & (mean < 1))] = np.inf
        residual = (y - mean[bins]) / deviation[bins]
        products += residual[1:] * residual[:-1]
    squares = float(products @ products)
    return float(products.sum() / np.sqrt(squares)) if squares > 0 else 0.0
