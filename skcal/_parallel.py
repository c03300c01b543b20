"""Work on what joblib's context says: by default one thread after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed


def over_jobs(work: Callable[..., Any], items: Sequence[Any], *arguments: Any) -> list[Any]:
    """``[work(item, *arguments) for item in items]`` on the jobs of ``joblib.parallel_config``.

    They are threads where the context names no backend: blocks of numpy's work run beside each
    other, and nothing is copied.
    """
    n_jobs = min(effective_n_jobs(None), len(items))
    if n_jobs <= 1:
        return [work(item, *arguments) for item in items]
    return Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(work)(item, *arguments) for item in items
    )
