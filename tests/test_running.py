"""Jobs: they warn and have the configuration as with scikit-learn; lost calls are made again."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from joblib import parallel_config
from sklearn import config_context, get_config
from threadpoolctl import threadpool_info, threadpool_limits

from skcal._running import one_blas_thread, over_jobs
from skcal._show import on_command_line, worded


class FutureCancelledError(Exception):
    """As dask raises it."""


FutureCancelledError.__module__ = "distributed.client"
recording = {"record": True, "action": "always", "category": UserWarning}
recorded_warnings = partial(warnings.catch_warnings, **recording)


def warned(k):
    warnings.warn(f"warning {k}", stacklevel=2)
    return k, get_config()["working_memory"]


def warned_of(k):
    warnings.warn(f"pass {worded('max_error', '--max-error')} {k}", stacklevel=2)
    return k


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_jobs_warn_and_have_the_configuration(n_jobs):
    with (
        recorded_warnings() as caught,
        parallel_config(backend="threading"),
        config_context(working_memory=7),
    ):
        found = over_jobs([(warned, k) for k in range(5)], n_jobs)
    assert found == [(k, 7) for k in range(5)]
    assert sorted(str(one.message) for one in caught) == [f"warning {k}" for k in range(5)]


def test_what_processes_warn_of_is_recorded_and_names_what_the_caller_does():
    calls = [(warned_of, k) for k in range(3)]
    for backend in ("loky", "threading"):
        with (
            recorded_warnings() as caught,
            parallel_config(backend=backend),
            on_command_line(),
        ):
            assert over_jobs(calls, 2) == [0, 1, 2]
        said = sorted(str(one.message) for one in caught)
        assert said == [f"pass --max-error {k}" for k in range(3)]
        assert {one.category for one in caught} == {UserWarning}


def test_warnings_before_an_error_are_recorded():
    def fail():
        warned(1)
        raise ZeroDivisionError

    with (
        recorded_warnings() as caught,
        pytest.raises(ZeroDivisionError),
    ):
        fail()
    assert [str(one.message) for one in caught] == ["warning 1"]


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_has_its_threads_again_when_the_last_of_two_threads_has_left():
    if not blas_threads():
        pytest.skip("threadpoolctl knows no BLAS here")
    first_is_in, second_is_in = threading.Event(), threading.Event()

    def first():
        with one_blas_thread():
            first_is_in.set()
            assert second_is_in.wait(60)

    def second():
        assert first_is_in.wait(60)
        with one_blas_thread():
            second_is_in.set()
            leaving.result(60)
            return blas_threads()

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with ThreadPoolExecutor(2) as pool:
            leaving = pool.submit(first)
            assert set(pool.submit(second).result(60)) == {1}
        assert blas_threads() == before


def losing(times):
    lock, left = threading.Lock(), [times]

    def work(k):
        with lock:
            if k == 3 and left[0]:
                left[0] -= 1
                raise FutureCancelledError("lost")
        return k

    return [(work, k) for k in range(6)]


def test_calls_that_are_lost_with_a_worker_are_made_again():
    with parallel_config(backend="threading"):
        assert over_jobs(losing(3), 2) == list(range(6))
        with pytest.raises(RuntimeError, match=r"4 times a worker .* call again"):
            over_jobs(losing(9), 2)
        assert over_jobs(losing(0), 2) == list(range(6))  # when the workers stay alive


def test_other_errors_are_raised_as_they_are():
    with parallel_config(backend="threading"), pytest.raises(ZeroDivisionError):
        over_jobs([(divmod, 1, 0), (divmod, 1, 1)], 2)


def test_of_one_job_each_call_is_made_when_its_turn_comes():
    """So that what a call needs is not held for all calls at once."""
    events = []

    def calls():
        for k in range(3):
            events.append(("made", k))
            yield events.append, ("done", k)

    over_jobs(calls(), n_jobs=1)
    assert events == [(what, k) for k in range(3) for what in ("made", "done")]
