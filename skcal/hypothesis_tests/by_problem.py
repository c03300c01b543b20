"""Tests of notions of several problems: each class by itself, adjusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from skcal.hypothesis_tests.result import CalibrationTestResult, adjust_pvalues
from skcal.metrics.limits import FEWEST_EVENTS, effective_number, warn_if_few_events
from skcal.notions import Problem
from skcal.sample import Sample


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


def warn_of_limit(variances: np.ndarray, fourth_moments: np.ndarray) -> None:
    """Warn where the sum of terms of these moments under H0 is of few effective ones."""
    events = effective_number(variances, fourth_moments)
    warn_if_few_events(events, FEWEST_EVENTS, "the limit", "Use monte_carlo_test.")
