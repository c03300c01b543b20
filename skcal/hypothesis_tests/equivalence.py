"""Whether a calibration error is shown to be below a limit, by confidence bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from skcal._show import (
    VERDICTS,
    ShownRounded,
    beside_limit,
    number,
    percent,
    plain_number,
    says_above_0,
    wrapped,
)
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal._validation import BIN_COUNT, CONFIDENCE_LEVEL, InputError
from skcal.hypothesis_tests.bounds import (
    Bounds,
    bounds_of_cutoff,
    bounds_of_ece,
    bounds_of_interval,
    bounds_of_rms,
    check_interval,
    largest_gap_of,
    needed_for_calibration_error,
)
from skcal.hypothesis_tests.error_interval import PVALUE
from skcal.hypothesis_tests.joint import calibration_test
from skcal.hypothesis_tests.monte_carlo import nonempty
from skcal.metrics.error_limits import ErrorLimits
from skcal.sample import (
    Sample,
    read_sample,
    refuse_groups,
    refuse_vectors,
    refuse_weights,
)

_TITLES = {
    "calibration": "calibration error",
    "rms": "RMS calibration error",
    "cutoff": "cutoff calibration error",
    "expected": "expected calibration error",
    "interval": "difference of observed and predicted frequencies in the interval",
}
_ERRORS = ("calibration", "cutoff", "ece", "rms")
_REDRAWN_TO = 10  # times the smallest p-value of some draws, up to which more draws are taken


@dataclass(frozen=True, eq=False)
class EquivalenceTestResult(ShownRounded):
    """Result of :func:`~skcal.hypothesis_tests.equivalence_test`.

    Attributes
    ----------
    verdict : {"below", "above", "unknown"}
        Whether the error is significantly below the limit, above it, or neither.
    estimate, low, high : float
        The error, and one-sided confidence bounds of it, each at ``confidence_level``.
    limit : float
    n_samples : int
    n_samples_needed : float
        Number of such samples with which the verdict is "below" with a chance of 90 %, if the error
        is ``assumed_error``. It is infinity if that is not below the limit. From few samples this
        is a guess: the error may be another.
    assumed_error : float
        The estimate less what noise adds to it on average, at least 0. Estimates of the calibration
        error and of the RMS error hold no such noise.
    largest_gap : float
        Upper bound of the difference of observed and predicted frequencies in any range of
        predictions that holds ``min_share`` of the samples; NaN with ``interval``.
    error, method, notion : str
    min_share, confidence_level : float
    n_groups : int or None
        The number of groups of samples that depend on each other; None if all are independent.
    """

    verdict: str
    estimate: float
    low: float
    high: float
    limit: float
    n_samples: int
    n_samples_needed: float
    assumed_error: float
    largest_gap: float
    error: str
    method: str
    notion: str
    min_share: float = field(default=0.1, repr=False)
    confidence_level: float = field(default=0.95, repr=False)
    n_groups: int | None = field(default=None, repr=False)

    @property
    def n_groups_needed(self) -> float | None:
        """The number of such groups that hold ``n_samples_needed``; None without groups."""
        if self.n_groups is None or not np.isfinite(self.n_samples_needed):
            return None
        return float(np.ceil(self.n_samples_needed * self.n_groups / self.n_samples))

    def sentence(self) -> str:
        """Return the verdict with the error and its limits, in words."""
        low, high = (beside_limit(end, self.limit) for end in (self.low, self.high))
        least = "above 0" if says_above_0(self.low, self.estimate) else f"at least {low}"
        limits = f"{least}, at most {high}, each" if self.low > 0 else f"at most {high}"
        return (
            f"the {_TITLES[self.error]} is {VERDICTS[self.verdict]} {self.limit:g}: "
            f"{plain_number(self.estimate)}, "
            f"{limits} with {percent(self.confidence_level)} confidence"
        )

    def _shown(self):
        verdicts = {"verdict": VERDICTS[self.verdict]}
        return [(name, verdicts.get(name, value)) for name, value in super()._shown()]

    def __str__(self):
        lines = [wrapped(self._head()), f"kind       {self.notion}, {self.method} limits"]
        if self.largest_gap < 1:
            lines.append(
                f"gap        at most {number(self.largest_gap)} in any range with "
                f"{percent(self.min_share)} of the samples"
            )
        if self.verdict == "unknown":
            needed = "no number"
            if np.isfinite(self.n_samples_needed):
                needed = f"about {self.n_samples_needed:,.0f}"
            what, n = "samples", self.n_samples
            if self.n_groups is not None:
                what, n = "groups ", self.n_groups
                needed = (
                    needed if self.n_groups_needed is None else f"about {self.n_groups_needed:,.0f}"
                )
            lines.append(
                f"{what}    {n:,}; {needed} would show it to be below, if the error "
                f"is {number(self.assumed_error)}"
            )
        return "\n".join(lines)


@validate_params(
    {
        "limit": [Interval(Real, 0, 1, closed="neither")],
        "error": [StrOptions(set(_ERRORS))],
        "method": [StrOptions({"asymptotic", "exact"})],
        "n_bins": [BIN_COUNT],
        "interval": ["array-like", None],
        "min_share": [Interval(Real, 0, 1, closed="right")],
        **PVALUE,
        **CONFIDENCE_LEVEL,
    },
    used_with={
        "error": {"interval": (None,)},
        "min_share": {"interval": (None,)},
        "n_bins": {"error": ("ece", "rms"), "interval": (None,)},
        "pvalue": {"error": ("calibration",), "interval": (None,)},
    },
)
def equivalence_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    limit: float,
    error: Literal["calibration", "cutoff", "ece", "rms"] = "calibration",
    method: Literal["asymptotic", "exact"] = "asymptotic",
    notion: str = "auto",
    n_bins: int = 15,
    interval: tuple[float, float] | None = None,
    min_share: float = 0.1,
    confidence_level: float = 0.95,
    pvalue: float | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> EquivalenceTestResult:
    """Test whether a calibration error is below or above a limit that you set.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    limit : float in (0, 1)
        The error that may not be exceeded, in probability units. For rare events choose a share of
        their rate: a limit of 0.05 is meaningless if 1 % happen.
    error : {"calibration", "cutoff", "ece", "rms"}, default="calibration"
        "calibration": the calibration error, whose limits are those of
        :func:`~skcal.calibration_error_interval`. "cutoff": the largest difference of the
        numbers of observed and predicted events in any range of predictions, divided by the number
        of all samples. "ece": the expected calibration error of ``n_bins`` uniform bins. "rms": the
        RMS calibration error in such bins, of :func:`~skcal.metrics.binned_rms_error_interval`.
    method : {"asymptotic", "exact"}, default="asymptotic"
        "exact", only for "cutoff", holds its level at every sample size, given the predictions.
    notion : {"auto", "binary", "confidence", "top-label", "classwise"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more. For the last two
        "cutoff" and "ece" bound the largest error of all classes, each at the level divided by
        their number. "calibration" bounds the mean over the classes of "classwise", and the error
        of all samples of "top-label".
    n_bins : int, default=15
        For ``error="ece"`` and ``error="rms"``.
    interval : (float, float), default=None
        Bound only the difference of observed and predicted frequencies among predictions in this
        closed interval, by binomial limits. Use it for predictions around a threshold of decisions.
        ``limit`` is then about this difference, per sample in the interval and not of the whole.
    min_share : float in (0, 1], default=0.1
        ``largest_gap`` is about ranges with at least this share of the samples.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of each of the two bounds.
    pvalue : float in [0, 1], default=None
        What decides whether the lower limit of "calibration" is above 0, as in
        :func:`~skcal.calibration_error_interval`. None: the p-value of
        :func:`~skcal.hypothesis_tests.calibration_test`.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; only their ratios matter. Shares and numbers of events are those of a
        population in which each sample stands for as many cases as its weight. Not for "exact".
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. See
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities are computed from them without loss of
        precision.

    Returns
    -------
    result : EquivalenceTestResult
        ``verdict`` is "below", "above" or "unknown"; ``low`` and ``high`` are one-sided limits of
        the error. ``n_samples_needed`` is how many samples would decide. It has ``sentence()``.

    Raises
    ------
    ValueError
        If the input is not valid, the notion has vectors or the interval holds no prediction. Also
        if "exact" is asked for another error than "cutoff", with ``groups`` or with weights that
        differ.

    See Also
    --------
    scan_test : shows where predictions are miscalibrated.
    skcal.metrics.cutoff_calibration_error : the estimate of "cutoff".
    skcal.Sample : Labels and predictions, read once for several questions.

    Notes
    -----
    *Calibration error.* Estimate and limits are those of
    :func:`~skcal.calibration_error_interval`, so that the verdict agrees with what is
    printed elsewhere. Samples with which calibrated predictions pass a limit of 0.05 in nine of ten
    cases: 2,500 with uniform predictions, and 1,100 for the cutoff error. The cutoff error is
    cheaper since errors that change their sign from one prediction to the next cancel in it.

    *Cutoff error.* An error that is a supremum θ = sup E[δ s(x)] over a fixed family of s has an
    upper confidence bound, sup of {mean δ s(x) + half width of s}: the half width at the s of θ is
    enough, whatever the size of the family. With d the cumulative residuals and v those of
    p (1 - p), or of δ², over n², "asymptotic" bounds the cutoff error [1]_ by

    max over ± and v of min_a {largest rise of ± d + z v / (2a), + z a / 2} + log(1 / α) / n,

    where the last term counts rare events that have not happened, and "exact" by a self-normalised
    supermartingale [2]_,

    max over ± of the largest rise of ± d + (ψ / λ) Σ δ² / n, plus log(1 / α) / (n λ),
    ψ = -log(1 - λ) - λ.

    ``largest_gap`` is bounded in the same way, directly: the largest mean residual of a range plus
    its half width.

    *ECE* of fixed bins is bounded by its estimate plus z √((v - ECE²) / n) + log(1 / α) / n with v
    the larger of the means of δ² and p (1 - p). Errors that change their sign within a bin cancel.

    For ``groups`` variances of sums over ranges are those of the sums over groups, between 100
    quantiles of the predictions, never below those of independent samples, and z is a quantile of
    Student's distribution with n² / Σ_g n_g² - 1 degrees of freedom. Limits of an interval are
    those of as many independent samples as make the variance as large.

    With weights w of mean 1, w δ takes the place of δ and w² p (1 - p) that of p (1 - p),
    log(1 / α) / n is times the largest weight, and z a quantile of Student's distribution with
    (Σ w)² / Σ w² - 1 degrees of freedom.

    The lower bounds subtract from the estimate the noise that calibrated predictions would show, at
    the same confidence. ``n_samples_needed`` of "calibration" and "cutoff" comes from 200 data sets
    that are drawn by a fixed seed: gaps of the assumed size, in the shape that the data suggest,
    plus noise. With the error that 200,000 samples or more suggest, so many samples showed "below"
    in 92 to 100 of 100 data sets each ("calibration", seven curves), 88 to 97 ("ece"), 87 to 97
    ("rms"), and in 87 to 98 % of 120 ("cutoff", five curves). If the true error is larger than the
    assumed one, fewer pass. O(n log n) time.

    References
    ----------
    .. [1] Rossellini, Soloff, Barber, Ren & Willett, Can a calibration metric be both testable and
       actionable?, 2025, https://arxiv.org/abs/2502.19851.
    .. [2] Howard, Ramdas, McAuliffe & Sekhon, Time-uniform Chernoff bounds via nonnegative
       supermartingales, Probability Surveys 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.hypothesis_tests import equivalence_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=3000)
    >>> y = rng.uniform(size=3000) < p
    >>> print(equivalence_test(y, p, limit=0.06))
    The calibration error is significantly below 0.06: 0.020, at most 0.051 with 95 % confidence.
    kind       binary, asymptotic limits
    gap        at most 0.1651 in any range with 10 % of the samples
    >>> equivalence_test(y, p, limit=0.035, error="cutoff").verdict
    'below'
    """
    if method == "exact" and (error != "cutoff" or interval is not None):
        raise ValueError(
            f"method='exact' is for error='cutoff' without an interval, not error={error!r} and "
            f"interval={interval!r}. Use method='asymptotic'."
        )
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, groups=groups, from_sums=True)
    options: dict[str, Any] = {"method": method, "n_bins": n_bins, "min_share": min_share}
    options |= {"interval": interval, "pvalue": pvalue}
    return bounded(sample, error, limit, confidence_level, **options)


@validate_params({"limit": [Interval(Real, 0, 1, closed="neither")], **CONFIDENCE_LEVEL})
def equivalence_tests(
    questions: Sequence[tuple[Sample, str]], *, limit: float, confidence_level: float = 0.95
) -> list[EquivalenceTestResult]:
    """Test several errors or subgroups by one limit, so that all verdicts hold together.

    Parameters
    ----------
    questions : sequence of (Sample, str)
        Samples or tables, such as all samples and each subgroup, each with the name of an error as
        in :func:`equivalence_test`.
    limit : float in (0, 1)
        The error that none of them may exceed, in probability units.
    confidence_level : float in (0, 1), default=0.95
        All verdicts are right with this probability.

    Returns
    -------
    results : list of EquivalenceTestResult
        One for each question.

    Raises
    ------
    ValueError
        If an error is unknown, or a notion has vectors.

    See Also
    --------
    equivalence_test : one error.

    Notes
    -----
    Each error is bounded at the level itself if all are then below the limit: that is false only if
    an error above it is below by its own bound (Berger's intersection-union test [1]_). Otherwise
    each bound has an m-th of the allowed error. An error is above or below, so that one verdict of
    each can be wrong, and any of the m is with at most the whole of it (Bonferroni).

    Both steps together are wrong with at most 2 - 1/m times the allowed error by this argument. For
    independent normal estimates of 2 to 5 parts, with and without that of all samples, and parts at
    the limit or 0 to 6 standard errors below it, some verdict is wrong in at most 5.05 % where 5 %
    are allowed. Of calibration errors the limits are wider: with five subgroups of 400 samples, one
    or all of them at the limit, some verdict was wrong in 0 to 1.8 % of 400 data sets each.

    References
    ----------
    .. [1] Berger, Multiparameter hypothesis testing and acceptance sampling, Technometrics 1982.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal import Sample
    >>> from skcal.hypothesis_tests import equivalence_tests
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=6000)
    >>> sample, is_old = Sample(rng.uniform(size=6000) < p, p), rng.uniform(size=6000) < 0.5
    >>> questions = [(sample.take(rows), "calibration") for rows in (is_old, ~is_old)]
    >>> [test.verdict for test in equivalence_tests(questions, limit=0.06)]
    ['below', 'below']
    """
    unknown = [error for _, error in questions if error not in _ERRORS]
    if unknown:
        names = ", ".join(map(repr, _ERRORS))
        raise InputError("questions", f"holds the error {unknown[0]!r}.", f"Use one of {names}.")
    asked = [
        (read_sample(sample, groups=None, from_sums=True), error) for sample, error in questions
    ]
    tests = [bounded(*question, limit, confidence_level) for question in asked]
    if all(test.verdict == "below" for test in tests) or len(tests) == 1:
        return tests
    each = 1 - (1 - confidence_level) / len(tests)
    return [bounded(*question, limit, each) for question in asked]


def bounded(
    sample: Sample,
    error: str,
    limit: float,
    confidence_level: float,
    *,
    method: str = "asymptotic",
    n_bins: int = 15,
    interval=None,
    min_share: float = 0.1,
    pvalue: float | None = None,
) -> EquivalenceTestResult:
    """The bounds of an error of a sample, and whether it is below a limit.

    The p-value of its test may be known already.
    """
    refuse_vectors(sample)
    if not sample.holds_rows:
        _refuse_rows(error, method, interval)
    if method == "exact":
        refuse_groups(sample.groups, "method='exact'", "Use method='asymptotic'.")
        refuse_weights(sample, "method='exact'", "Use method='asymptotic'.")
    problems = [problem.of_mean_1 for problem in nonempty(sample)]
    tail = 1 - confidence_level
    name, alpha = error, tail / len(problems)
    if interval is not None:
        name, method = "interval", "binomial"
        ends = check_interval(interval)
        each = [bounds_of_interval(problem, limit, alpha, ends) for problem in problems]
    elif error == "calibration":
        each = [_calibration_bounds(sample, pvalue, limit, tail)]
    elif error == "rms":
        each = [bounds_of_rms(sample, limit, tail, n_bins)]
    elif error == "ece":
        name = "expected"
        each = [bounds_of_ece(problem, limit, alpha, n_bins) for problem in problems]
    else:
        each = [bounds_of_cutoff(problem, limit, alpha, method) for problem in problems]
    largest_gap = np.nan
    if interval is None:
        largest_gap = max(largest_gap_of(problem, min_share, alpha) for problem in problems)
    bounds = Bounds.largest(each)
    return EquivalenceTestResult(
        verdict="below" if bounds.high <= limit else "above" if bounds.low > limit else "unknown",
        estimate=bounds.estimate,
        low=max(bounds.low, 0.0),
        high=min(bounds.high, 1.0),
        limit=limit,
        n_samples=len(sample),
        n_samples_needed=bounds.n_samples_needed,
        assumed_error=bounds.assumed_error,
        largest_gap=largest_gap,
        error=name,
        method=method,
        notion=str(sample.notion),
        min_share=min_share,
        confidence_level=confidence_level,
        n_groups=_number_of_groups(sample),
    )


def _number_of_groups(sample) -> int | None:
    """The number of groups, None where each sample is one of its own."""
    if sample.groups.independent:
        return None
    n_groups = len(np.unique(sample.groups.units(len(sample))))
    return n_groups if n_groups < len(sample) else None


def _refuse_rows(error, method, interval) -> None:
    """Raise for what the sums of a table do not answer."""
    if interval is not None:
        raise InputError("interval", "may cut cells of a CalibrationTable.", "Pass a skcal.Sample.")
    if method == "exact" or error == "rms":
        asked = "method='exact'" if method == "exact" else "error='rms'"
        remedy = "Use error='calibration', 'ece' or 'cutoff' with method='asymptotic'."
        raise InputError(asked, "needs rows, which a CalibrationTable does not hold.", remedy)


def _calibration_bounds(sample, pvalue, limit, tail) -> Bounds:
    """The calibration error with the limits that it has everywhere."""
    limits = ErrorLimits.of(sample)
    if pvalue is None:  # where nothing else shows an error, the lower limit is 0 whatever it is
        pvalue = _pvalue_at(sample, tail) if limits.low(tail) > 0 else 1.0
    known = limits.interval(pvalue, 1 - tail)
    needed = needed_for_calibration_error(limits, limit, tail, known.max_crossings)
    return Bounds(known.estimate, known.low, known.high, needed, known.estimate)


def _pvalue_at(sample, tail: float) -> float:
    """The p-value of the verdict, of more draws where these allow none as small as ``tail``."""
    test = calibration_test(sample, n_resamples=None)
    drawn: Any = test.null_distribution
    smallest = 1 / (1 + drawn.shape[-1])  # of a class
    if test.pvalue > _REDRAWN_TO * smallest or smallest <= tail:
        return test.pvalue
    return calibration_test(sample, n_resamples=ceil(2 / tail)).pvalue
