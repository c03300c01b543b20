"""Work on the jobs that joblib's context says: by default one call after the other.

scikit-learn's ``Parallel`` sets the filters of warnings, which all threads share, around each call;
here workers get scikit-learn's configuration, and what skcal notes in them is noted by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from sklearn import config_context, get_config

from skcal._notes import Note, listen, pass_on


def over_jobs(
    calls: Iterable[tuple], n_jobs: int | None = None, prefer: str | None = None
) -> list[Any]:
    """``[function(*arguments) for function, *arguments in calls]``, on some jobs.

    Parameters
    ----------
    calls : iterable of (function, *arguments)
    n_jobs : int, default=None
        None is 1 unless ``joblib.parallel_config`` says another number.
    prefer : {"threads", "processes"}, default=None
        The jobs where that context names no backend; nothing is copied for threads.
    """
    return list(one_by_one(calls, n_jobs, prefer, return_as="list"))


def one_by_one(
    calls: Iterable[tuple],
    n_jobs: int | None = None,
    prefer: str | None = None,
    return_as: str = "generator",
) -> Iterator[Any]:
    """Yield what :func:`over_jobs` returns, each as soon as it and those before are there."""
    calls, n_jobs = list(calls), effective_n_jobs(n_jobs)
    if n_jobs == 1 or len(calls) < 2:
        for function, *arguments in calls:
            yield function(*arguments)
        return
    config = get_config()
    results = Parallel(n_jobs=n_jobs, prefer=prefer, return_as=return_as)(
        delayed(_noted)(config, *call) for call in calls
    )
    for result, notes in results:
        pass_on(notes)
        yield result


def _noted(config, function, *arguments):
    """The result in a worker, and the notes there."""
    notes: list[Note] = []
    with config_context(**config):
        return listen(notes, function, *arguments), notes
