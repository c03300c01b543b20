"""Calibration errors with their limits: of one model, and the difference of two.

Other paired differences are those in accuracy, proper scores and selective prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skcal._scores import LossComparison, brier_losses, log_losses
from skcal._show import ShownRounded, percent, plain_number, pvalue_text
from skcal._sklearn_compat import Interval, validate_params
from skcal._validation import CONFIDENCE_LEVEL, is_significant
from skcal.hypothesis_tests.joint import calibration_test
from skcal.metrics import area_under_risk_coverage
from skcal.metrics.error_limits import CalibrationErrorInterval, ErrorLimits
from skcal.metrics.gap_sums import CHANGES, CROSSINGS, GapSums
from skcal.sample import Sample, read_sample

#: The constraint of a p-value that is known already.
PVALUE: dict[str, list] = {"pvalue": [Interval(Real, 0, 1, closed="both"), None]}


@validate_params(
    {
        "max_crossings": [Interval(Integral, 0, 100, closed="both")],
        **PVALUE,
        **CONFIDENCE_LEVEL,
    }
)
def calibration_error_interval(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    confidence_level: float = 0.95,
    max_crossings: int = 3,
    pvalue: float | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> CalibrationErrorInterval:
    """Calibration error with one-sided confidence limits, without bins and without smoothness.

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
    confidence_level : float in (0, 1), default=0.95
        Of each of the two limits.
    max_crossings : int in [0, 100], default=3
        The upper limit holds for calibration curves that cross the diagonal at most so often. It
        allows more crossings where the data show more.
    pvalue : float in [0, 1], default=None
        What decides whether the lower limit is above 0, such as a p-value that is adjusted for
        several samples by :func:`~skcal.hypothesis_tests.adjust_pvalues`. None: that of
        :func:`~skcal.hypothesis_tests.calibration_test`.
    sample_weight : array-like of shape (n_samples,), default=None
        Importance weights, whose scale does not matter.
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
    interval : CalibrationErrorInterval
        Its ``sentence()`` says estimate and limits in words.

    Raises
    ------
    ValueError
        If the input is not valid or the notion has vectors.

    See Also
    --------
    calibration_error : only the estimate.
    skcal.hypothesis_tests.calibration_test : decides whether the lower limit is above 0.
    skcal.hypothesis_tests.equivalence_test : is the error below a limit that you set?
    bootstrap_interval : intervals of other measures.
    skcal.Sample : Labels and predictions, read once for several questions.

    Notes
    -----
    For a pattern of signs s(p) the mean of (y - p) s(p) estimates at most E abs(E[y | p] - p), and
    just that if s is the sign of the gap. T_k is the largest such mean over patterns that change
    their sign at most k times.

    *Upper limit.* T_k plus the half width of the pattern that attains it. The pattern of the true
    gap is a fixed one. If it changes its sign at most k times, its own mean is at most T_k, and
    misses the error by more than its half width in 5 % of the data sets. k is ``max_crossings``, or
    larger where T_k of a larger k exceeds it by more than noise. The attribute ``max_crossings``
    says which. A curve that crosses the diagonal more often than that, by so little that the data
    do not show it, may have a larger error than this limit. The argument needs a half width as
    large as that of the true pattern. Independent samples have one for all patterns. Effects of
    groups add up in a constant pattern and cancel in an alternating one. With ``groups`` the limit
    is the largest of T_j plus the half width of its pattern, for j = 0, …, k.

    *Lower limit.* The larger of two, each at half the level: that of the bias, and that of the mean
    of (y - p) s(p), where the models of :func:`calibration_error` choose s, between -1 and 1, for
    each of ten folds from the other nine. The folds come from a fixed seed and the sorted rows. The
    limit is 0 where :func:`~skcal.hypothesis_tests.calibration_test` (seed 0, rows sorted, 999
    redraws, and 199 of more than 100,000 samples) does not reject. Where that test alone shows an
    error, ``low`` is 0 as well, and ``sentence()`` says that the error is above 0.

    Share of data sets whose limit is on the wrong side of the truth, over curves that cross at most
    three times (``tests/studies/calibration_error_study.py``, the page "Validation" of the
    documentation): independent samples, 18 curves, lower 2.2 %, 2.2 % and 2.9 % at n = 300, 1,000
    and 10,000, of 2,600, 2,600 and 385 data sets, and at most 13 of 200 of one curve at n = 300 and
    1,000; upper 0.1 %, 0.2 % and 0.3 % of 3,600, 3,600 and 1,979.
    Lognormal weights, groups of five and five votes a sample, four curves: lower 0.5 to 1.3 % of
    600 each at n = 300 and 0.3 to 2 % of 300 each at n = 1,000, upper 0 of 800 and of 400 each,
    which could be narrower. Large groups whose latent scores are correlated by 0.4 to 0.6, a gap on
    one side of 0.15, 0.1 and 0.075: upper 3.0, 2.9 and 4.4 % of 2,000 each (10 groups of 800, 12 of
    1,000 and 40 of 400).

    Standard errors are the larger of the observed one and that of calibrated predictions, of
    ``groups`` by their sums, with quantiles of Student's distribution for groups and for weights
    that differ. The estimate and its accuracy: :func:`calibration_error`. Neither a seed nor the
    order of the rows changes a digit.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.hypothesis_tests import calibration_error_interval
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=1000)
    >>> y = rng.uniform(size=1000) < p**1.5
    >>> print(calibration_error_interval(y, p).sentence())
    calibration error 0.080 (at least 0.055, at most 0.120, each with 95 % confidence)
    """
    options: dict[str, Any] = {"from_logits": from_logits, "groups": groups, "from_sums": True}
    sample = read_sample(y_true, y_proba, notion, sample_weight, labels, pos_label, **options)
    if pvalue is None:
        pvalue = calibration_test(sample, n_resamples=None).pvalue
    return ErrorLimits.of(sample).interval(pvalue, confidence_level, max_crossings)


_SHIFT = 0.35  # of the mean noise of signed sums, by which estimates of errors near 0 may be off
_OF_ADDED = 0.5  # of what shrinking the smaller error adds to the difference


@dataclass(frozen=True)
class ErrorDifference(ShownRounded):
    """The calibration error of a first model minus that of a second one.

    Attributes
    ----------
    estimate : float
        In units of probability; negative where the first model has the smaller error.
    low, high : float
        The interval. It holds 0 unless the paired test rejects, and may hold 0 where it does: the
        test compares squared errors, which can differ where calibration errors are equal. Of equal
        predictions both ends are 0.
    confidence_level : float
    pvalue : float
        That of the paired test of :func:`compare_calibration`, which decides what is significant.
    squared_estimate : float
        The difference of squared calibration errors that it tests.
    """

    estimate: float
    low: float
    high: float
    confidence_level: float
    pvalue: float
    squared_estimate: float

    @property
    def is_significant(self) -> bool:
        """Whether one model is significantly better calibrated, by squared calibration errors."""
        return bool(is_significant(self.pvalue, self.confidence_level))

    @property
    def better(self) -> int | None:
        """0 or 1, the model that is significantly better; None where measures disagree, too."""
        agree = self.estimate * self.squared_estimate >= 0
        return int(self.squared_estimate > 0) if self.is_significant and agree else None

    def sentence(self, first: str = "the first model", second: str = "the second") -> str:
        """Return the difference in words.

        Parameters
        ----------
        first, second : str, default="the first model" and "the second"
            What the models are called.
        """
        smaller, larger = (second, first) if self.squared_estimate > 0 else (first, second)
        towards, beyond = sorted((self.low, self.high), key=abs)
        size, low, high = map(plain_number, map(abs, (self.estimate, towards, beyond)))
        level, p = percent(self.confidence_level), pvalue_text(self.pvalue, 0.0)
        if self.low == self.high == 0:
            return f"the calibration errors of {first} and {second} are equal"
        if not self.is_significant:
            return (
                f"the calibration errors of {first} and {second} do not differ significantly "
                f"(by {size}; at most {high}, {level} interval; {p})"
            )
        squared = f"squared calibration error of {smaller} is smaller than that of {larger} ({p})"
        if self.better is None:
            return (
                f"which model is better calibrated depends on the measure: the {squared}, its "
                f"calibration error is larger by {size} (at most {high}, {level} interval)"
            )
        if self.low <= 0 <= self.high:
            less, more = map(plain_number, (-self.low, self.high)[:: 1 if self.better == 0 else -1])
            estimated = f"{size} smaller" if self.estimate else "equal"
            return (
                f"the {squared}; its calibration error is at most {less} smaller or {more} larger "
                f"({level} interval; estimated: {estimated})"
            )
        return (
            f"the calibration error of {smaller} is smaller than that of {larger} by {size} "
            f"({low} to {high}, {level} interval; {p})"
        )


def difference_of_errors(
    first: Sample, second: Sample, test: Any, confidence_level: float = 0.95
) -> ErrorDifference:
    """Return the difference of two calibration errors, whose samples are paired.

    Each error is the mean of residuals times the signs of the gap. Given these signs, the
    difference is a mean over the samples, whose variance knows that models err together. The
    estimates shrink noise. What they miss by that widens the interval by 0.35 of the mean noise of
    the signed sums. Shrinking only the smaller of two errors makes them differ more: half of what
    that adds to the difference of the signed sums widens the interval towards 0. If both models
    seem off to one side, noise in the outcomes that they share may hide that one is off to the
    other: the interval holds the differences that are possible then.

    Of seven laws of independent samples, 200 data sets each, the interval missed the true
    difference in at most 4 % (1 % events). Where two models err as far, one upwards and one
    downwards, it missed in 0.5 % (300 samples, 0.05 each). Where 100 groups of 10 share a label and
    each sample has a prediction of its own, it missed 18 % without the third widening (60 sets) and
    4 % with it (200 sets). The price is power: a bias of 0.06 in 600 uniform predictions was
    significant in 10 % (28 % without the second widening; the third costs none of it).

    Parameters
    ----------
    first, second : Sample
        With the same rows, weights and groups, and a scalar notion.
    test : object with the attributes ``pvalue`` and ``estimate``
        The paired test of squared errors, first minus second.
    confidence_level : float
        The confidence level of the limits.
    """
    same = np.array_equal(first.proba, second.proba)
    if same and np.array_equal(first.happened, second.happened):
        return ErrorDifference(0.0, 0.0, 0.0, confidence_level, test.pvalue, test.estimate)
    limits = [ErrorLimits.of(sample) for sample in (first, second)]
    (first_terms, first_sum), (second_terms, second_sum) = map(_signed_terms, limits)
    terms = first_terms - second_terms
    terms = terms[np.argsort(terms)] if first.groups.independent else terms
    variance = first.groups.larger_variance(float(terms @ terms), terms)
    variance = max(variance, _variance_by_dependence(*limits))
    noise = np.mean([np.interp(CROSSINGS, CHANGES, each.noise_means) for each in limits])
    z = limits[0].quantile((1 - confidence_level) / 2)
    half = z * np.sqrt(variance) + _SHIFT * noise
    estimate = limits[0].estimate - limits[1].estimate
    same_side = max(0.0, float(np.sign(estimate) * (first_sum - second_sum)))
    added = half + _OF_ADDED * max(0.0, abs(estimate) - same_side)
    towards_0 = max(added, _turned_by_noise([each.bias for each in limits], z))
    low, high = (towards_0, half) if estimate > 0 else (half, towards_0)
    low, high = float(max(estimate - low, -1.0)), float(min(estimate + high, 1.0))
    if not is_significant(test.pvalue, confidence_level) or estimate * test.estimate < 0:
        low, high = min(low, 0.0), max(high, 0.0)
    return ErrorDifference(estimate, low, high, confidence_level, test.pvalue, test.estimate)


def _turned_by_noise(biases: list[tuple[float, float]], z: float) -> float:
    """What noise that both biases share may add to the difference of two of the same side.

    If it is larger than the smaller one, their true sides differ.
    """
    (first, spread), (second, other) = biases
    if first * second <= 0:
        return 0.0
    turned = z * max(spread, other) - min(abs(first), abs(second))
    return 2 * float(np.clip(turned, 0.0, abs(first - second)))


def _variance_by_dependence(first: ErrorLimits, second: ErrorLimits) -> float:
    """The variance of the difference of signed sums by the dependence of outcomes in groups.

    Given their outcomes two models are independent, unless these are the same; problems of a notion
    are taken in the worst case.
    """
    deviation, n_samples = 0.0, len(first.sample.weight)
    for a, b, share in zip(first.parts, second.parts, first.shares, strict=True):
        if a.groups.independent or b.groups.independent:  # no groups in this problem
            continue
        signs = [part.largest_patterns([CROSSINGS])[0] for part in (a, b)]
        in_order = np.full((3, n_samples), np.nan)
        in_order[:, b.rows] = signs[1], b.x, b.x + b.residuals
        sign, x, outcome = in_order[:, a.rows]
        if np.allclose(outcome, a.x + a.residuals):
            change = a.weight * (signs[0] - sign)
            variance = float(a.groups.covariance(change, (a.x + x) / 2))
        else:
            variance = sum(map(GapSums.variance_of_groups, (a, b), signs))
        deviation += share * np.sqrt(variance)
    return deviation**2


def _signed_terms(limits: ErrorLimits) -> tuple[np.ndarray, float]:
    """The mean signed residual, after what each sample adds to it, shape (n_samples,)."""
    terms, mean = np.zeros(len(limits.sample.weight)), 0.0
    for part, share in zip(limits.parts, limits.shares, strict=True):
        signed = part.residuals * part.largest_patterns([CROSSINGS])[0]
        total = float(part.weight @ signed)
        terms[part.rows] += share * part.weight * (signed - total)
        mean += share * total
    return terms, mean


_LOSSES = {"Brier score": brier_losses, "log loss": log_losses}


class ScoreDifference(NamedTuple):
    """The first model minus the second, with its interval.

    Attributes
    ----------
    measure : str
    estimate, low, high, pvalue : float
    method : str
    larger_is_better : bool
    """

    measure: str
    estimate: float
    low: float
    high: float
    pvalue: float
    method: str
    larger_is_better: bool = False


def score_differences(
    first: Sample, second: Sample, level: float, n_resamples: int, random_state: int
) -> list[ScoreDifference]:
    """Return differences of Brier score and log loss, and of predictions that are right or wrong.

    The latter are those of the accuracy, of the area under the risk-coverage curve, and of the
    largest coverage at which the observed risk is at most half of the smaller share of wrong
    answers, in one digit. Means and the area, by its influence function, have the limits of means;
    the coverage has a bootstrap of samples, or of groups. An infinite difference is left out.
    """
    found, samples = [], (first, second)
    for name, losses in _LOSSES.items():
        proba = [sample.proba_of_classes for sample in samples]
        outcomes = [sample.happened for sample in samples]
        about = first.weight, first.groups
        gain = LossComparison.of_predictions(losses, proba, outcomes, *about)
        found += _of_means(name, gain, first, level)
    if first.notion.single and not first.notion.of_positive_class and first.outcomes is None:
        found += _of_answers(first, second, level, n_resamples, random_state)
    return found


def _of_answers(first, second, level, n_resamples, random_state) -> list[ScoreDifference]:
    answers = [_Ranked.of(sample) for sample in (first, second)]
    found: list[ScoreDifference] = []
    for name, larger in (("accuracy", True), ("area under the risk-coverage curve", False)):
        values = [one.right if larger else one.influence() for one in answers]
        gain = LossComparison.of(values[0], values[1], first.weight, first.groups)
        found += _of_means(name, gain, first, level, larger)
    share = min(1 - float(np.average(one.right, weights=first.weight)) for one in answers)
    risk = float(f"{share / 2:.1g}")
    if not 0 < risk < 1:
        return found
    units = first.groups.units(len(first.codes))
    n_units, rng = int(units.max()) + 1, np.random.default_rng(random_state)
    estimate = answers[0].coverage(risk) - answers[1].coverage(risk)
    drawn = np.empty(n_resamples)
    for k in range(n_resamples):
        times = np.bincount(rng.integers(n_units, size=n_units), minlength=n_units)[units]
        drawn[k] = answers[0].coverage(risk, times) - answers[1].coverage(risk, times)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    tails = [(1 + np.count_nonzero(side)) / (1 + n_resamples) for side in (drawn <= 0, drawn >= 0)]
    name, method = f"coverage at a risk of {percent(risk)}", "bootstrap"
    ends = float(min(low, estimate)), float(max(high, estimate))
    found.append(ScoreDifference(name, estimate, *ends, min(1.0, 2 * min(tails)), method, True))
    return found


def _of_means(name, gain: LossComparison, sample, level, larger=False) -> list[ScoreDifference]:
    if not np.isfinite(gain.standard_error):
        return []
    half = sample.groups.quantile((1 - level) / 2, sample.weight) * gain.standard_error
    ends = gain.difference - half, gain.difference + half
    method = "normal limit" if sample.groups.independent else "Student's limit of groups"
    return [ScoreDifference(name, gain.difference, *ends, gain.pvalue, method, larger)]


class _Ranked(NamedTuple):
    """Answers, and their ranks by confidence, the highest first; equal ones are kept together."""

    right: np.ndarray
    weight: np.ndarray
    order: np.ndarray
    last: np.ndarray
    level: np.ndarray

    @classmethod
    def of(cls, sample: Sample) -> _Ranked:
        [problem] = sample.problems()
        sure = problem.features[:, 0]
        order = np.argsort(-sure, kind="stable")
        ends = np.append(np.diff(sure[order]) < 0, True)
        level = np.empty(len(order), dtype=np.intp)
        level[order] = np.cumsum(ends) - ends  # of each answer, from the surest
        return cls(problem.outcomes[:, 0], problem.weight, order, np.flatnonzero(ends), level)

    def _kept(self, times=1) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the answers that each level keeps, and of the wrong ones among them."""
        weight = (self.weight * times)[self.order]
        wrong = weight * (1 - self.right[self.order])
        return np.cumsum(weight)[self.last], np.cumsum(wrong)[self.last]

    def coverage(self, risk: float, times=1) -> float:
        """The largest share of answers that a level keeps whose risk is at most this."""
        kept, wrong = self._kept(times)
        allowed = kept[(wrong <= risk * kept) & (kept > 0)]
        return float(allowed.max(initial=0.0) / kept[-1])

    def influence(self) -> np.ndarray:
        """Terms whose mean is the area, and whose variance is that of the area.

        The area is E[r(S)], of the risk r(s) = P(wrong, S ≥ s) / g(s), g(s) = P(S ≥ s). An answer
        of confidence s moves it by r(s), and by the integral of (wrong - r) / g over what is at
        most as sure.
        """
        kept, wrong = self._kept()
        risk, mass = wrong / kept, np.diff(kept, prepend=0.0)
        area = area_under_risk_coverage(self.right, -self.level, sample_weight=self.weight)
        below = np.cumsum((mass / kept)[::-1])[::-1][self.level]
        of_risk = np.cumsum((mass * risk / kept)[::-1])[::-1][self.level]
        terms = risk[self.level] + (1 - self.right) * below - of_risk
        return area + terms - np.average(terms, weights=self.weight)
