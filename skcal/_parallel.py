"""Work on the jobs that joblib's context says: by default one call after the other.

scikit-learn's ``Parallel`` sets the filters of warnings, which all threads share, around each call;
here workers get scikit-learn's configuration, and what skcal notes in them is noted by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from sklearn import config_context, get_config

from skcal._notes import Note, listen, pass_on

_LOSSES = 4  # of workers, before what is left to do is given up


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
    config, done = get_config(), 0
    for losses in count(1):
        parallel = Parallel(n_jobs=n_jobs, prefer=prefer, return_as=return_as)
        try:
            for result, notes in parallel(delayed(_noted)(config, *call) for call in calls[done:]):
                done += 1
                pass_on(notes)
                yield result
            return
        except Exception as error:
            if not _lost_with_its_worker(error):
                raise
            if losses == _LOSSES:
                raise RuntimeError(
                    f"{losses} times a worker of the cluster died with what it held ({error!r}). "
                    "Nothing that was passed is lost: call again when the workers stay alive, such "
                    "as with more memory each or fewer threads."
                ) from error


def _lost_with_its_worker(error) -> bool:
    """Whether dask lost arguments that only a worker held, which it cannot compute again."""
    return any(
        kind.__name__ in ("FutureCancelledError", "KilledWorker")
        and kind.__module__.startswith("distributed")
        for kind in type(error).__mro__
    )


def _noted(config, function, *arguments):
    """The result in a worker, and the notes there."""
    notes: list[Note] = []
    with config_context(**config):
        return listen(notes, function, *arguments), notes
