"""The tests of many subgroups at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skcal.hypothesis_tests import adjust_pvalues, monte_carlo_test
from skcal.report.parts import LEVEL, Data, Measures, Settings

_EXCEEDANCES = 20  # after which no more outcomes are drawn
_MOST_DRAWS = 100_000


def compare_groups(
    measures: list[Measures], parts: list[Data], settings: Settings
) -> tuple[list[Measures], list[float | None], list[str]]:
    """Adjust the p-values of the groups' tests by ECE; where there are many, draw more outcomes.

    The smallest adjusted p-value of G groups is G / (1 + n_resamples). Where that is above 5 %,
    each group's p-value is that of Besag & Clifford (1991): outcomes are drawn until the 20th that
    shows as much, at draw L, and p = 20 / L, or up to 100 G draws. It is exact, and draws are spent
    where p is small.

    Returns
    -------
    measures : list of Measures
    adjusted : list of float or None
    cautions : list of str
    """
    tested = sum(part.ece is not None for part in measures)
    cautions = []
    if tested > LEVEL * (1 + settings.n_resamples):
        most = min(100 * tested, _MOST_DRAWS)
        measures = [
            part if part.ece is None else replace(part, ece=replace(part.ece, pvalue=p))
            for part, p in zip(measures, _pvalues(measures, parts, settings, most), strict=True)
        ]
        if tested > LEVEL * most:
            cautions.append(
                f"{tested} groups are too many for their tests: the smallest adjusted p-value is "
                f"{tested / most:.2g} with {most:,} draws of each. Merge groups."
            )
    pvalues = [None if part.ece is None else part.ece.pvalue for part in measures]
    known = [p for p in pvalues if p is not None]
    adjusted = iter(adjust_pvalues(known).tolist() if known else [])
    return measures, [None if p is None else next(adjusted) for p in pvalues], cautions


def _pvalues(measures, parts, settings, most):
    for part, data in zip(measures, parts, strict=True):
        yield None if part.ece is None else sequential_pvalue(data, settings, most)


def sequential_pvalue(data: Data, settings: Settings, most: int) -> float:
    """Besag & Clifford's p-value of calibration by ECE, from at most ``most`` - 1 draws."""
    options = {**settings.bins, "labels": data.classes, "n_jobs": settings.n_jobs}
    seeds = np.random.SeedSequence(settings.random_state)
    exceeds, size = np.empty(0, dtype=bool), settings.n_resamples
    while len(exceeds) < most - 1:
        [seed] = seeds.spawn(1)[0].generate_state(1)
        count = max(19, min(size, most - 1 - len(exceeds)))
        test = monte_carlo_test(
            data.labels, data.proba, n_resamples=count, random_state=int(seed), **options
        )
        null = np.asarray(test.null_distribution)
        exceeds = np.append(exceeds, null >= test.statistic)[: most - 1]
        reached = np.flatnonzero(exceeds)[:_EXCEEDANCES]
        if len(reached) == _EXCEEDANCES:
            return _EXCEEDANCES / (1 + int(reached[-1]))
        size *= 2
    return (1 + int(np.count_nonzero(exceeds))) / most
