"""One number of several problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcal._running import over_jobs
from skcal.sample import Sample


def estimate(
    sample: Sample, measure, *, at_least=1, norm=1, average="sum", root=True, in_order=False
):
    """Apply ``measure(problem) → float`` to each problem with enough samples, and combine.

    ``in_order=True`` is for measures that draw random numbers one after the other.
    """
    problems = sample.problems()
    enough = [problem for problem in problems if len(problem.weight) >= at_least]
    if in_order:
        found = iter([measure(problem) for problem in enough])
    else:
        found = iter(over_jobs([(measure, problem) for problem in enough], prefer="threads"))
    powers = [next(found) if len(p.weight) >= at_least else np.nan for p in problems]
    for k, (power, problem) in enumerate(zip(powers, problems, strict=True)):
        if np.isnan(power) and len(problem.weight) >= at_least:
            raise FloatingPointError(f"The estimate of problem {k} is not a number.")
    return combine(powers, problems, norm, average, root)


def combine(powers, problems, norm: float, average: str | None, root: bool = True):
    """Combine E‖gap‖^q of several problems into one number, or one number a problem.

    Parameters
    ----------
    powers : list of float
        One a problem; NaN for one with too few samples, which is left out of sum and mean.
    problems : list of Problem
    norm : float
        q; for infinity the largest of the problems counts.
    average : {"sum", "macro"} or None
    root : bool
        Take the q-th root; a negative power, which debiasing can leave, has root 0.
    """
    values: Any = np.asarray(powers, dtype=np.float64)
    shares = np.array([problem.share for problem in problems])
    present = ~np.isnan(values)
    if not present.any():
        raise ValueError("y_proba has too few samples of every class to estimate the error.")
    if average is None:
        pass
    elif np.isinf(norm):
        values = values[present].max()
    elif average == "macro":
        values = values[present].mean()
    else:
        values = np.sum(shares[present] * values[present])
    if root and norm != 1 and not np.isinf(norm):
        values = np.maximum(values, 0) ** (1 / norm)
    return values if average is None else float(values)
