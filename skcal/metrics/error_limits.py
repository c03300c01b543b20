"""The calibration error: the mean absolute difference of predicted probability and frequency."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike

from skcal._running import over_jobs
from skcal._show import ShownRounded, beside_limit, percent, plain_number, says_above_0
from skcal._validation import InputError
from skcal.metrics.gap_models import FEWEST_POOLED, GapModels, cells_of, held_out_gaps, pooled_error
from skcal.metrics.gap_sums import (
    CHANGES,
    CROSSINGS,
    GapSums,
    at_changes,
    excess_of_more_changes,
    largest_signed_sums,
    noise_of_sums,
)
from skcal.notions import Notion, Problem
from skcal.sample import Sample, read_sample, scalar_notions

_LIMIT_LEVEL = 0.95  # of the limits between which an estimate is
_SIGNIFICANT = 1.9  # standard errors of a bias, from which no estimate is smaller
_SHARPEST = 2.0  # standard deviations, less which the signed sums of a lower limit are largest
_BISECTIONS, _LIMIT_ROUNDING, _NO_VARIANCE = 30, 1e-12, 1e-100


def calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Calibration error: the mean absolute difference of predicted probability and frequency.

    That is what ECE estimates, E abs(E[y | p] - p), without bins, widths, folds or a seed. Print it
    with the limits of :func:`calibration_error_interval`, whose estimate it is.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str, default="auto"
        A scalar notion; "auto" is "binary" for one and two columns and "confidence" for more. The
        error of "classwise" and of "multi-label" is the mean over the classes.
    sample_weight : array-like of shape (n_samples,), default=None
        Importance weights, whose scale does not matter: a weight of 2 says less than two samples.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. See
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    error : float in [0, 1]
        In probability units; 0 is calibrated. Calibrated samples have a small positive value.

    Raises
    ------
    ValueError
        If the input is not valid or the notion has vectors, whose error is the RMS calibration
        error of :class:`skcal.CalibrationErrorSearchCV`.

    See Also
    --------
    calibration_error_interval : the same number with its confidence limits.
    expected_calibration_error : the published estimator, with bins.
    smooth_calibration_error : with a kernel whose width the data choose.
    skcal.Sample : Labels and predictions, read once for several questions.

    Notes
    -----
    Sorted predictions become at most 128 cells, and values with as many samples as a cell are alone
    in one. Some 900 Gaussian models of the cells' gaps, and "calibrated", are averaged by their
    evidence: constant, a line, a parabola, smooth on several scales of probabilities, logits or
    ranks, independent, or off in few coarse cells, of sizes from noise level up. The estimate is
    the posterior mean of the mean absolute gap, moved up to the bias where that is significant. A
    value that is alone and five standard errors off is read as it is.

    With three classes or more, each has the curve of all classes and an offset of its own in the
    log-odds, or models of its own, averaged by the evidence of all. Calibrated predictions of ten
    classes (n = 1,000) read 0.0018 and 0.0024 on average, and 0.0048 and 0.0066 if each class is
    estimated alone. Many small offsets in different directions are read too low:
    :doc:`/validation/index`.

    Mean absolute error times 1,000 at n = 1,000, 200 data sets a row, and 100 of those with a star
    (``tests/studies/calibration_error_study.py``; more curves on :doc:`/validation/index`):

    ================================= ===== ==== ========== =======
    curve                             truth this smooth ECE 15 bins
    ================================= ===== ==== ========== =======
    calibrated, uniform               0     12   31         38
    calibrated, 2 % events            0     4    10         8
    calibrated, multiples of 0.05     0     11   30         38
    logit shift of 0.15               25    12   11         19
    logistic slope 0.8                33    11   10         18
    2 % events, 1.5 times as many     13    5    4          5
    a spike of 2 % of the samples     27    10   21         36
    a plateau from 0.3 to 0.7         40    12   9          21
    a jump at 0.5                     50    11   11         20
    three crossings, a sine of 0.2    128   11   41         11
    three crossings, jumps of ±0.15   150   23   62         17
    nine crossings, a sine of 0.12 *  77    14   34         10
    19 crossings, jumps of ±0.1 *     100   37   66         43
    23 crossings, a sine of 0.15 *    92    25   58         46
    two jumps, one up and one down *  36    14   8          20
    0 to 100 %, alternating sides *   47    16   6          7
    2 % events, alternating sides *   10    5    2          3
    ================================= ===== ==== ========== =======

    So ``smooth_calibration_error`` is better for plateaus, and for errors that alternate where most
    predictions are near 0 or 1. 15 bins are better for jumps and waves that are as wide as some
    bins.

    O(n log n) time: 0.03 s for 1,000 predictions and 3 s for a million.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.metrics import calibration_error, expected_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=1000)
    >>> y = rng.uniform(size=1000) < p  # calibrated
    >>> round(calibration_error(y, p), 3), round(expected_calibration_error(y, p), 3)
    (0.008, 0.037)
    >>> y = rng.uniform(size=1000) < p**1.5  # off by 0.1 on average
    >>> round(calibration_error(y, p), 3)
    0.096
    """
    sample = read_sample(
        y_true,
        y_proba,
        notion,
        sample_weight,
        labels,
        pos_label,
        from_logits,
        groups=groups,
        from_sums=True,
    )
    return ErrorLimits.of(sample).estimate


@dataclass(frozen=True)
class CalibrationErrorInterval(ShownRounded):
    """A calibration error with its limits.

    Attributes
    ----------
    estimate : float
        The error, as :func:`~skcal.metrics.calibration_error` returns it.
    low, high : float
        One-sided confidence limits, each at ``confidence_level``. ``low`` is 0 where
        :func:`~skcal.hypothesis_tests.calibration_test` does not reject at 1 -
        ``confidence_level``, and where that test alone says that the error is above 0.
    confidence_level : float
    max_crossings : int
        ``high`` holds for curves that cross the diagonal at most so often: as often as was asked
        for, or more often where the data show it.
    notion : str
    pvalue : float
        That of the test.
    """

    estimate: float
    low: float
    high: float
    confidence_level: float
    max_crossings: int
    notion: str
    pvalue: float = field(repr=False)

    @property
    def is_significant(self) -> bool:
        """Whether the error is significantly above 0."""
        return self.pvalue <= 1 - self.confidence_level + _LIMIT_ROUNDING

    @classmethod
    def of_classes(
        cls, sample: Sample, pvalues: np.ndarray, *, confidence_level: float = _LIMIT_LEVEL
    ) -> dict[int, CalibrationErrorInterval]:
        """Return the calibration error of each class with its limits, by its number.

        Parameters
        ----------
        sample : Sample
            With the notion "classwise", or "top-label", which leaves out a class that is never
            predicted.
        pvalues : ndarray of shape (n_classes,)
            The p-value of each class, such as ``class_pvalues`` of
            :func:`~skcal.hypothesis_tests.calibration_test`.
        confidence_level : float in (0, 1), default=0.95
            Of each of the two limits.
        """
        parts = {k: part for k, part in enumerate(sample.problems()) if len(part.weight)}
        samples: dict[int, Any] = {k: _Part(part, sample.notion) for k, part in parts.items()}
        limits = {k: ErrorLimits(part) for k, part in samples.items()}
        return {k: each.interval(float(pvalues[k]), confidence_level) for k, each in limits.items()}

    @property
    def assumption(self) -> str:
        """What the upper limit assumes of the calibration curve."""
        n = self.max_crossings
        changes = "1 change" if n == 1 else f"{n} changes"
        return f"at most {changes} between too low and too high as predictions rise"

    def _shown(self):
        level = f"with {percent(self.confidence_level)} confidence"
        rows: list[tuple[str, Any]] = [("estimate", self.estimate)]
        rows.append((f"at least, {level}", self.low))
        rows += [(f"at most, {level}", self.high), ("kind of calibration", str(self.notion))]
        return [*rows, ("assumed for the upper limit", self.assumption)]

    def sentence(self, limit: float | None = None) -> str:
        """Return the error with its limits in words.

        Parameters
        ----------
        limit : float, default=None
            A number that stands nearby, such as a tolerance: what rounding would move to its other
            side has more digits.
        """
        beside = math.inf if limit is None else limit
        low, high = (beside_limit(end, beside) for end in (self.low, self.high))
        level = percent(self.confidence_level)
        if says_above_0(self.low, self.estimate):
            limits = f"above 0, at most {high}, each with {level} confidence"
        elif self.low > 0:
            limits = f"at least {low}, at most {high}, each with {level} confidence"
        elif self.is_significant:
            limits = f"above 0, p ≤ {self.pvalue:.2g}; at most {high} with {level} confidence"
        else:
            limits = f"not significantly above 0; at most {high} with {level} confidence"
        return f"calibration error {plain_number(self.estimate)} ({limits})"


def _remembered(compute):
    """A few numbers that are computed once for a sample, whatever becomes of its sorted rows."""

    @wraps(compute)
    def numbers(self, *asked):
        key = compute.__name__, *asked
        if key not in self.known:
            self.known[key] = compute(self, *asked)
        return self.known[key]

    return numbers


@dataclass(frozen=True, eq=False)
class _Part:
    """A problem as the sample that it is about."""

    problem: Problem
    notion: Notion
    holds_rows = True

    @property
    def weight(self):
        return self.problem.weight

    @property
    def groups(self):
        return self.problem.groups

    @property
    def typical_share(self):
        return np.sort(self.problem.squares).sum() / np.sort(self.weight).sum() ** 2

    def quantile(self, tail):
        return self.problem.of_mean_1.quantile(tail)

    def problems(self):
        return [self.problem._replace(share=1.0, rows=slice(None))]


class ErrorLimits:
    """The calibration error of a sample, and limits that hold whatever a test says.

    Parameters
    ----------
    sample : Sample
        With a scalar notion.
    known : dict, default=None
        Numbers that limits of the same sample computed.
    """

    @classmethod
    def of(cls, sample: Sample) -> ErrorLimits:
        """Return the limits of a sample, which it remembers; its sorted rows only while in use."""
        known, in_use = sample.once("limits", lambda: ({}, WeakValueDictionary()))
        return in_use.setdefault("limits", cls(sample, known))

    def __init__(self, sample: Sample, known: dict | None = None):
        if not sample.notion.scalar:
            raise InputError(
                f"notion={str(sample.notion)!r}",
                "conditions on a vector, for which there is no calibration error with limits.",
                f"Use one of {scalar_notions(sample)}, or the RMS calibration error of "
                "skcal.CalibrationErrorSearchCV.",
            )
        self.sample, self.known = sample, {} if known is None else known
        self.groups = sample.groups.of_several()
        #: Whether a mean of signed residuals is less certain with some signs than with others.
        self.widths_differ = not self.groups.independent

    @cached_property
    def _problems(self) -> list[Problem]:
        return [problem for problem in self.sample.problems() if len(problem.weight)]

    @property
    def divided(self) -> bool:
        """Whether each sample belongs to one of the parts only."""
        return not self.sample.notion.shares_samples

    @property
    def shares(self) -> list[float]:
        """The share of each part in the error."""
        n = len(self._problems)
        return [problem.share if self.divided else 1 / n for problem in self._problems]

    @cached_property
    def parts(self) -> list[GapSums]:
        """The rows of each problem in order."""
        problems, beside = self._problems, None
        if (
            len(problems) > 1 and not self.divided and self.sample.holds_rows
        ):  # whose equal rows differ in other classes
            drawn = np.random.default_rng(0).random((2, len(problems)))
            beside = np.zeros(len(self.sample.weight))
            for problem, a, b in zip(problems, *drawn, strict=True):
                beside += a * problem.features[:, 0] + b * problem.residuals[:, 0]
        return over_jobs([(GapSums.of, part, beside) for part in problems], prefer="threads")

    def interval(
        self, pvalue: float, confidence_level: float = _LIMIT_LEVEL, max_crossings: int = CROSSINGS
    ) -> CalibrationErrorInterval:
        """Return the error with its limits; the lower one is 0 unless the p-value is small."""
        tail = 1 - confidence_level
        high, allowed = self.high(tail, max_crossings)
        return CalibrationErrorInterval(
            estimate=self.estimate,
            low=min(self.low(tail), self.estimate) if pvalue <= tail + _LIMIT_ROUNDING else 0.0,
            high=max(high, self.estimate),
            confidence_level=confidence_level,
            max_crossings=allowed,
            notion=str(self.sample.notion),
            pvalue=pvalue,
        )

    @property
    @_remembered
    def estimate(self) -> float:
        """The posterior mean of the error."""
        if len(self.parts) < FEWEST_POOLED:
            errors = over_jobs([(_estimate, part) for part in self.parts], prefer="threads")
            error = float(np.dot(self.shares, errors))
        else:
            between = 0.0
            if self.sample.products is not None:
                ones = [np.ones(len(part.x)) for part in self.parts]
                between = self._between(ones, np.zeros(len(ones)))
            error = pooled_error(self.parts, self.shares, self.groups, between)
        if len(self.parts) == 1:
            return error
        bias, spread = self.bias  # of all, which may be significant where that of no part is
        return max(error, _significant_part(bias, spread**2))

    def high(self, tail: float, max_crossings: int = CROSSINGS) -> tuple[float, int]:
        """The upper limit, and how many crossings of the diagonal it allows."""
        z = self.quantile(tail)
        largest = max(total + z * spread for total, spread in self._largest(max_crossings))
        unseen = np.log(1 / tail) * self.typical_share  # events too rare to have happened
        more = float(
            excess_of_more_changes(self._sums, self._noise[1], self.deviation, max_crossings)
        )
        high = largest + more + unseen
        covered = self._sums <= at_changes(self._sums, max_crossings) + more
        if more > 0:
            max_crossings = max(max_crossings, *np.array(CHANGES)[covered].tolist())
        return min(float(high), 1.0), max_crossings

    def low(self, tail: float) -> float:
        """The larger of the lower limits of the bias and of residuals that others sign."""
        limits = [
            abs(value) - self.quantile(tail / 2) * spread
            for value, spread in (self.bias, self._held_out)
        ]
        return max(*limits, 0.0)

    @_remembered
    def _largest(self, max_crossings: int) -> list[tuple[float, float]]:
        """The largest means of signed residuals, by numbers of crossings, and their deviations."""
        changes = [k for k in CHANGES if k < max_crossings] if self.widths_differ else []
        patterns = [part.largest_patterns([*changes, max_crossings]) for part in self.parts]
        return [self._signed(signs) for signs in zip(*patterns, strict=True)]

    @property
    @_remembered
    def bias(self) -> tuple[float, float]:
        """The mean residual, and its standard deviation."""
        return self._signed([np.ones(len(part.x)) for part in self.parts])

    @property
    @_remembered
    def _held_out(self) -> tuple[float, float]:
        """The mean of residuals times what other folds predict of their sign, and its deviation.

        Factors in [-1, 1] cannot make it larger than the error.
        """
        held_out = over_jobs([(held_out_gaps, part) for part in self.parts], prefer="threads")
        signals, variances = [], []
        for (cells, gaps), share in zip(held_out, self.shares, strict=True):
            n = cells.mass.sum()
            signals.append(share * gaps * cells.mass / n)
            variances.append(share**2 * cells.noise / n**2)
        factors = _sharpest(np.hstack(signals), np.concatenate(variances))
        ends = np.cumsum([len(part) for part in variances])[:-1]
        signs = [
            of_cells[part.folds, part.of_rows(cells.cell)]
            for part, (cells, _), of_cells in zip(
                self.parts, held_out, np.split(factors, ends, axis=1), strict=True
            )
        ]
        return self._signed(signs)

    def _signed(self, signs) -> tuple[float, float]:
        """The mean of the residuals times signs of the rows of each part, and its deviation."""
        sums = [
            float(part.weight @ (part.residuals * sign))
            for part, sign in zip(self.parts, signs, strict=True)
        ]
        return float(np.dot(self.shares, sums)), float(np.sqrt(self._variance(signs, sums)))

    @property
    @_remembered
    def _sums(self) -> np.ndarray:
        """The signed sums T_k of all problems, for k of CHANGES."""
        return np.dot(self.shares, self._noise[0])

    @property
    @_remembered
    def _noise(self):
        """Of each part the sums T_k; the means of their noise; the deviation of a mean residual."""
        steps, shares = [part.independent_steps for part in self.parts], np.array(self.shares)
        sums = [largest_signed_sums(values, CHANGES[-1])[list(CHANGES)] for values, _ in steps]
        means = shares @ [noise_of_sums(variances)[0] for _, variances in steps]
        scales = shares * np.sqrt([variances.sum() for _, variances in steps])
        # Samples of different parts are independent; the same samples may err together.
        return np.stack(sums), means, np.linalg.norm(scales) if self.divided else scales.sum()

    @property
    def noise_means(self) -> np.ndarray:
        """The mean of the noise of each signed sum, for k of CHANGES."""
        return self._noise[1]

    @property
    def typical_share(self) -> float:
        """The share of a sample in the weight of all, 1 / n of equal weights."""
        return self.sample.typical_share

    @property
    def deviation(self) -> float:
        """The standard deviation of a mean of signed residuals."""
        return float(self._noise[2])

    def quantile(self, tail: float) -> float:
        """The upper quantile of a studentised mean."""
        return self.sample.quantile(tail)

    def _variance(self, signs, sums) -> float:
        """The variance of the mean of the residuals times signs."""
        if self.parts[0].given_folds is not None:
            return self._variance_of_sums(signs, sums)
        terms, beside, of_groups = np.zeros(len(self.sample.weight)), 0.0, 0.0
        for part, share, sign, total in zip(self.parts, self.shares, signs, sums, strict=True):
            terms[part.rows] += share * part.weight * (part.residuals * sign - total)
            squares = sign**2 @ (part.implied - (part.weight * part.residuals) ** 2)
            beside += share**2 * max(float(squares), 0.0)
            if not part.groups.independent:  # of several parts in the worst case
                of_groups += share * np.sqrt(part.variance_of_groups(sign))
        # Sorted, so that sums do not depend on the order of the rows.
        variance = float((np.sort(terms) ** 2).sum()) + beside
        if self.groups.independent:
            return variance
        order = np.argsort(terms)
        seen_of_groups = self.groups.take(order).variance_of_sum(terms[order])
        return max(variance, float(seen_of_groups), float(of_groups**2))

    def _variance_of_sums(self, signs, sums) -> float:
        """The same of rows that stand for several samples each.

        If products of residuals of two parts are not known, a sample adds at most the sum of its
        absolute residuals, and the deviations of the parts at most add up.
        """
        deviations = []
        for part, share, sign, total in zip(self.parts, self.shares, signs, sums, strict=True):
            squares = sign**2 * part.seen - 2 * sign * total * part.squares * part.residuals
            squares += total**2 * part.squares
            beside = max(float(sign**2 @ (part.implied - part.seen)), 0.0)
            deviations.append(share * np.sqrt(max(float(squares.sum()), 0.0) + beside))
        alone = float(np.dot(deviations, deviations))
        if self.divided or len(deviations) == 1:
            return alone
        if self.sample.products is not None:
            return max(alone + self._between(signs, np.array(sums)), 0.0)
        return float(min(sum(deviations) ** 2, max(self.sample.joint_square, alone)))

    def _between(self, signs, sums) -> float:
        """What pairs of parts add to the variance of the mean of residuals times signs, less sums.

        The signs of a coarse cell have their mean.
        """
        given = list(zip(self.parts, signs, strict=True))
        between = 2 * self.sample.products.between([(part.x, s, part.seen) for part, s in given])
        means = np.array([part.squares @ (part.residuals * sign) for part, sign in given])
        pairs = np.outer(sums, self.parts[0].squares.sum() * sums - 2 * means)
        return self.shares[0] ** 2 * float(between + pairs.sum() - np.trace(pairs))


def _sharpest(signals: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Factors s in [-1, 1] of cells for which Σ s signal - 2 √Σ s² variance is largest.

    Parameters
    ----------
    signals : ndarray of shape (n_folds, n_cells)
    variances : ndarray of shape (n_cells,)
    """
    factors = np.sign(signals)
    for _ in range(_BISECTIONS):
        deviation = np.sqrt(np.maximum(factors**2 @ variances, _NO_VARIANCE))
        factors = np.clip(signals * deviation[:, None] / (_SHARPEST * variances), -1, 1)
    return factors


def _estimate(part: GapSums) -> float:
    """The posterior mean of the mean absolute gap, at least the bias where that is significant."""
    cells = cells_of(part)
    error, _ = GapModels(cells).average(cells.sums)
    variance = min(part.variances)
    if not part.groups.independent:
        variance = max(variance, part.variance_of_all)
    return max(error, _significant_part(part.bias, variance))


def _significant_part(bias: float, variance: float) -> float:
    """The absolute bias where that is significant, less of it where it is not, and 0 in noise."""
    square = bias**2 / max(variance, 1e-300)
    return abs(bias) * float(np.clip((square - 1) / (_SIGNIFICANT**2 - 1), 0, 1))
