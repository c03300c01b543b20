"""The result of a test, adjusted p-values, and tests of several problems."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skcal._groups import INDEPENDENT, Groups, law_of_mean
from skcal._selection import LEVEL
from skcal._show import ShownRounded, pvalue_text, rounded, worded, wrapped
from skcal._sklearn_compat import Interval, validate_params
from skcal._validation import CONFIDENCE_LEVEL, InputError, as_floats, is_significant
from skcal.metrics.limits import FEWEST_EVENTS, effective_number, warn_if_few_events
from skcal.model_selection.estimator import ConfidenceInterval
from skcal.notions import Problem
from skcal.sample import Sample, refuse_groups

_OF_JSON = (
    "notion",
    "pvalue",
    "method",
    "statistic_pvalues",
    "direction",
    "spread",
    "n_impossible",
    "ranges",
    "lower_bound",
)
#: Constraints of a test that draws its null distribution.
RESAMPLING = {
    "n_resamples": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}


@dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationTestResult(ShownRounded):
    """Result of a test of H0: "calibrated in this notion", or "equally miscalibrated".

    Attributes
    ----------
    statistic : float
        The observed statistic; the sum over classes where every class is tested.
    pvalue : float
        Probability under H0 of a statistic at least as extreme (an upper bound for
        "distribution-free"); of several classes the smallest after adjustment by Holm's method.
    estimate : float
        The quantity that the test's Returns section names; NaN where there is none.
    method : str
        How the p-value came about, and whether its level is exact or asymptotic.
    notion : str
    class_statistics, class_pvalues : ndarray of shape (n_classes,) or None
        One a class for "classwise", and for "top-label" where each is tested, in the order of the
        columns; p-values are adjusted. NaN for a class that is never predicted, which the
        adjustment does not count.
    null_distribution : ndarray of shape (n_resamples,) or (n_classes, n_resamples), or None
        Statistics of resampled outcomes.
    standard_error : float
        The standard error of the estimate; NaN where the theory gives none.
    degrees_of_freedom : float
        Degrees of freedom of the estimate in units of its standard error: those of Student's
        distribution for groups; infinity is the normal one.
    """

    statistic: float
    pvalue: float
    estimate: float = np.nan
    method: str
    notion: str = ""
    class_statistics: np.ndarray | None = field(default=None, repr=False)
    class_pvalues: np.ndarray | None = field(default=None, repr=False)
    null_distribution: np.ndarray | None = field(default=None, repr=False)
    standard_error: float = field(default=np.nan, repr=False)
    degrees_of_freedom: float = field(default=np.inf, repr=False)

    @property
    def smallest_pvalue(self) -> float:
        """The smallest p-value that the number of redraws allows; 0 where nothing is redrawn.

        Where each class is tested, it is the smallest adjusted one.
        """
        null, adjusted = self.null_distribution, self.class_pvalues
        n_tests = 1 if adjusted is None else int(np.count_nonzero(~np.isnan(adjusted)))
        return 0.0 if null is None else min(n_tests / (1 + np.shape(null)[-1]), 1.0)

    @property
    def null_mean(self) -> float:
        """Mean of the statistic under H0, where outcomes were resampled; else NaN."""
        null = self.null_distribution
        return np.nan if null is None else float(np.atleast_2d(null).sum(axis=0).mean())

    def _data(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _OF_JSON if hasattr(self, name)}

    def _shown(self):
        """The numbers of the fields, and what `print` adds to them."""
        shown = super()._shown()
        if not np.isnan(self.null_mean):
            shown.append(("under H0, on average", self.null_mean))
        if self.method.startswith("paired") and not np.isnan(self.standard_error):
            low, high = self.confidence_interval()
            shown.append(("standard error", self.standard_error))
            shown.append(("95 % interval", f"{rounded(low)} to {rounded(high)}"))
        return shown

    def sentence(self) -> str:
        """Return whether the test is significant at the 5 % level, in words."""
        p, paired = pvalue_text(self.pvalue, self.smallest_pvalue), self.method.startswith("paired")
        if is_significant(self.pvalue, 1 - LEVEL):
            if paired:
                better = "first" if self.estimate < 0 else "second"
                return f"the {better} model is significantly better calibrated ({p})"
            return f"significantly miscalibrated{self._how()} ({p})"
        what = "a difference between the models" if paired else "miscalibration"
        return f"no evidence of {what} ({p})"

    def _how(self) -> str:
        """The words behind "significantly miscalibrated" that say what is wrong."""
        return ""

    def __str__(self):
        lines = [
            wrapped(self._head()),
            f"method     {self.method}; kind: {self.notion}",
            f"statistic  {self.statistic:.4g}",
        ]
        if not np.isnan(self.null_mean):
            lines.append(f"under H0   {self.null_mean:.4g} on average")
        if self.estimate != self.statistic and not np.isnan(self.estimate):
            error = "" if np.isnan(self.standard_error) else f" ± {self.standard_error:.2g} (s.e.)"
            lines.append(f"estimate   {self.estimate:.4g}{error}")
            if self.method.startswith("paired"):
                lines[-1] += ", squared errors, first minus second"
                low, high = self.confidence_interval()
                lines.append(f"interval   [{low:.4g}, {high:.4g}] at 95 % confidence")
        return "\n".join(lines)

    @validate_params(CONFIDENCE_LEVEL)
    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Return the interval (low, high) of the estimate, where the theory gives one.

        Parameters
        ----------
        confidence_level : float in (0, 1), default=0.95
            Share of samples, drawn anew, for which the limits hold.
        """
        if np.isnan(self.standard_error):
            raise ValueError(
                f"No interval is known for {self.method}. Use skcal.metrics.bootstrap_interval of "
                "a measure."
            )
        law = law_of_mean(self.degrees_of_freedom)
        half = law.isf((1 - confidence_level) / 2) * self.standard_error
        return ConfidenceInterval(float(self.estimate - half), float(self.estimate + half))


def adjust_pvalues(pvalues: ArrayLike) -> np.ndarray:
    """Adjust p-values of several classes or groups by Holm's method [1]_.

    It bounds the probability of any false rejection, under any dependence.

    Parameters
    ----------
    pvalues : array-like of shape (n_tests,)
        The p-values to adjust.

    Returns
    -------
    adjusted : ndarray of shape (n_tests,)
        Adjusted p-values in the order of ``pvalues``, at most 1.

    Raises
    ------
    ValueError
        If a p-value is outside [0, 1].

    See Also
    --------
    scipy.stats.false_discovery_control : bounds the rate of false discoveries.

    References
    ----------
    .. [1] Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 1979.

    Examples
    --------
    >>> from skcal.hypothesis_tests import adjust_pvalues
    >>> adjust_pvalues([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    pvalues = as_floats(pvalues, "pvalues")
    if pvalues.ndim != 1 or not len(pvalues) or not ((pvalues >= 0) & (pvalues <= 1)).all():
        raise ValueError(f"pvalues must be a 1-D array of numbers in [0, 1], got {pvalues}.")
    order = np.argsort(pvalues)
    steps = np.arange(len(pvalues), 0, -1) * pvalues[order]
    adjusted = np.empty_like(pvalues)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted


def resampled_pvalue(observed, null) -> np.ndarray:
    """(1 + #{T_b ≥ T}) / (1 + B) along the last axis: never 0."""
    null = np.asarray(null)
    count = np.count_nonzero(null >= np.asarray(observed)[..., None], axis=-1)
    return (1 + count) / (1 + null.shape[-1])


def positive(pvalue: float) -> float:
    """Return a p-value of a closed form as the smallest normal number where it is rounded to 0."""
    return max(float(pvalue), float(np.finfo(np.float64).tiny))


def warn_if_few(n_resamples: int, n_tests: int, groups: Groups = INDEPENDENT) -> None:
    """Warn when no p-value can reach 5 %."""
    if n_tests * groups.smallest_pvalue > 0.05:
        tests = "a test" if n_tests == 1 else f"{n_tests} tests"
        warnings.warn(
            f"{groups.n_held} groups: the smallest possible p-value of {tests} is "
            f"{min(n_tests * groups.smallest_pvalue, 1):.3g}, above 0.05. Use more groups.",
            stacklevel=2,
        )
    smallest = n_tests / (1 + n_resamples)
    if smallest > 0.05:
        given, needed = (
            worded(f"n_resamples={n}", f"--resamples {n}") for n in (n_resamples, 20 * n_tests - 1)
        )
        warnings.warn(
            f"{given}: the smallest possible p-value is {min(smallest, 1):.3g}, above 0.05. Use at "
            f"least {needed}.",
            stacklevel=2,
        )


def require_reachable(level: float, groups: Groups) -> None:
    """Raise where flips of groups cannot reach a level."""
    if level < groups.smallest_pvalue:
        raise InputError(
            "groups",
            f"holds {groups.n_held} groups, whose signs give p-values of at least "
            f"{groups.smallest_pvalue:.2g}, above the level {level:.2g} of each test.",
            "Lower confidence_level, or use more groups.",
        )


def of_each_problem(
    sample: Sample, test: Callable[[Problem], CalibrationTestResult]
) -> CalibrationTestResult:
    """Test the problem of a sample, or each that has samples, adjusted by Holm's method."""
    if not sample.notion.by_class:
        [problem] = sample.problems()
        return replace(test(problem), notion=str(sample.notion))
    problems = sample.problems()
    titles = sample.notion.titles([str(name) for name in sample.classes])
    filled = [k for k, problem in enumerate(problems) if len(problem.weight)]
    results = [_test_class(test, problems[k], titles[k]) for k in filled]
    pvalues = adjust_pvalues([result.pvalue for result in results])
    statistics, smallest = [result.statistic for result in results], int(pvalues.argmin())
    return CalibrationTestResult(
        statistic=float(sum(statistics)),
        pvalue=float(pvalues.min()),
        method=f"{results[smallest].method}, Holm over {len(results)} classes",
        notion=str(sample.notion),
        **of_classes(sample, filled, statistics, pvalues),
    )


def only_problem(sample: Sample, method: str) -> Problem:
    """The problem of a sample, for a limit that holds for independent samples of one problem."""
    refuse_groups(sample.groups, f"method={method!r}", "Use method='monte-carlo'.")
    problems = sample.problems()
    if len(problems) > 1:
        raise ValueError(f"notion={sample.notion!r} is several problems. Use method='monte-carlo'.")
    return problems[0]


def of_classes(sample: Sample, filled: list[int], statistics, pvalues) -> dict[str, Any]:
    """The fields of a result about single classes, NaN for those without samples."""
    if not sample.notion.by_class:
        return {}
    columns = np.full((2, len(sample.classes)), np.nan)
    columns[:, filled] = statistics, pvalues
    return {"class_statistics": columns[0], "class_pvalues": columns[1]}


def _test_class(test, problem, title):
    try:
        return test(problem)
    except ValueError as error:
        raise ValueError(f"Of {title}: {error}") from error


def warn_of_limit(variances: np.ndarray, fourth_moments: np.ndarray) -> None:
    """Warn where the sum of terms of these moments under H0 is of few effective ones."""
    events = effective_number(variances, fourth_moments)
    warn_if_few_events(events, FEWEST_EVENTS, "the limit", "Use monte_carlo_test.")
