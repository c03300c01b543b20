"""How work runs: on joblib's workers, with one thread of BLAS, with its warnings recorded.

What threads and interrupts leave of scikit-learn's settings and of the filters of warnings is as in
scikit-learn itself.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from threading import Lock
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from skcal._sklearn_compat import _get_threadpool_controller

_carried: list[ContextVar] = []
_LOST_WORKERS = 4  # of workers, before what is left to do is given up


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
    n_jobs = effective_n_jobs(n_jobs)
    made: Any = calls if n_jobs == 1 else list(calls)  # of one job when its turn comes
    if n_jobs == 1 or len(made) < 2:
        for function, *arguments in made:
            yield function(*arguments)
        return
    done = 0
    for losses in count(1):
        parallel = Parallel(n_jobs=n_jobs, prefer=prefer, return_as=return_as)
        try:
            here = os.getpid(), [variable.get() for variable in _carried]
            jobs = (delayed(_job)(*here, *call) for call in made[done:])
            for result, warned in parallel(jobs):
                done += 1
                for text, category in warned:
                    warnings.warn(text, category, stacklevel=2)
                yield result
            return
        except BrokenProcessPool as error:
            error.add_note(
                "A worker ended: for want of memory, or by an exception that pickle does not "
                "restore. Pass n_jobs=1 to see that exception."
            )
            raise
        except Exception as error:
            if not _lost_with_its_worker(error):
                raise
            if losses == _LOST_WORKERS:
                raise RuntimeError(
                    f"{losses} times a worker of the cluster died with what it held ({error!r}). "
                    "Nothing that was passed is lost: call again when the workers stay alive, such "
                    "as with more memory each or fewer threads."
                ) from error


def _job(caller: int, values: list, function, *arguments) -> tuple[Any, list]:
    """What a call returns, with the variables of its caller, and its warnings in other processes.

    These would be written to the standard error of the process, where nobody can record them.
    """
    for variable, value in zip(_carried, values, strict=True):
        variable.set(value)
    if os.getpid() == caller:
        return function(*arguments), []
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
        result = function(*arguments)
    return result, [(str(one.message), one.category) for one in caught]


def carried(variable: ContextVar) -> ContextVar:
    """Return a variable that has the same value in jobs as where they are begun."""
    _carried.append(variable)
    return variable


def _lost_with_its_worker(error) -> bool:
    """Whether dask lost arguments that only a worker held, which it cannot compute again."""
    return any(
        kind.__name__ in ("FutureCancelledError", "KilledWorker")
        and kind.__module__.startswith("distributed")
        for kind in type(error).__mro__
    )


_lock = Lock()
_inside = 0  # threads that are in one_blas_thread
_shared: list[tuple[Any, int]] = []  # libraries whose threads share one number, and that number


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Products in one thread of BLAS, until the last of the threads that are in here has left."""
    global _inside, _shared
    blas = _get_threadpool_controller().select(user_api="blas").lib_controllers
    counts = [(library, count) for library in blas if (count := library.num_threads) > 1]
    apart = [entry for entry in counts if entry[0].threading_layer == "openmp"]  # by thread
    with _lock:
        if not _inside:
            _shared = [entry for entry in counts if entry not in apart]
        _inside += 1
        _set_threads([(library, 1) for library, _ in counts])
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            _set_threads(apart if _inside else apart + _shared)


def _set_threads(counts) -> None:
    for library, number in counts:
        _let_any_thread_set(library)
        library.set_num_threads(number)
        _let_any_thread_set(library)


def _let_any_thread_set(library) -> None:
    """Threadpoolctl 3.8 heeds the first thread alone that has set the number of a library."""
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread(force=True)
