"""Tests of notions of several problems: each class by itself, adjusted; and their few events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from skcal._notes import note
from skcal.hypothesis_tests.result import CalibrationTestResult, adjust_pvalues
from skcal.metrics.base import Sample
from skcal.notions import Problem

FEWEST_EVENTS = 5  # below that limits are off by more than a percent or two


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
    statistics, pvalues = np.full((2, len(problems)), np.nan)
    statistics[filled] = [result.statistic for result in results]
    pvalues[filled] = adjust_pvalues([result.pvalue for result in results])
    return CalibrationTestResult(
        statistic=float(np.nansum(statistics)),
        pvalue=float(np.nanmin(pvalues)),
        estimate=np.nan,
        method=f"{results[0].method}, Holm over {len(results)} classes",
        notion=str(sample.notion),
        class_statistics=statistics,
        class_pvalues=pvalues,
    )


def _test_class(test, problem, title):
    try:
        return test(problem)
    except ValueError as error:
        raise ValueError(f"Of {title}: {error}") from error


def require_scalar(sample: Sample) -> None:
    """Raise for a notion that conditions on a vector."""
    if not sample.notion.scalar:
        raise ValueError(
            f"notion={str(sample.notion)!r} conditions on a vector. Use 'binary', 'confidence', "
            "'top-label' or 'classwise', or monte_carlo_test."
        )


def warn_if_few_events(variances: np.ndarray, fourth_moments: np.ndarray) -> None:
    """Warn where the sum of terms of these moments under H0 is of few effective ones.

    (Σ variance)² / Σ fourth moment is the number of equal terms of ±1 that would be as far from
    normal, and close to the expected number of events where those are rare.
    """
    total = fourth_moments.sum()
    events = variances.sum() ** 2 / total if total > 0 else 0.0
    if events < FEWEST_EVENTS:
        note(
            f"Too few outcomes are uncertain for the limit: the effective number of events is "
            f"{events:.2g}, below {FEWEST_EVENTS}. Use monte_carlo_test.",
            UserWarning,
        )
