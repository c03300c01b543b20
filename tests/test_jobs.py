"""Jobs: what is noted in them is heard, and what a cluster loses is called again."""

import threading

import pytest
from joblib import parallel_config
from sklearn import config_context, get_config

from skcal._notes import listen, note
from skcal._parallel import over_jobs


class FutureCancelledError(Exception):
    """As dask raises it."""


FutureCancelledError.__module__ = "distributed.client"


def noted(k):
    note(f"note {k}")
    return k, get_config()["working_memory"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_notes_of_jobs_are_heard_in_order_and_jobs_have_the_configuration(n_jobs):
    notes = []
    with parallel_config(backend="threading"), config_context(working_memory=7):
        found = listen(notes, over_jobs, [(noted, k) for k in range(5)], n_jobs)
    assert found == [(k, 7) for k in range(5)]
    assert [one.message for one in notes] == [f"note {k}" for k in range(5)]


@pytest.mark.filterwarnings("default")
def test_notes_that_no_one_hears_are_warnings_of_the_caller():
    with pytest.warns(UserWarning, match="note 3") as caught:
        noted(3)
    assert caught[0].filename == __file__


def test_notes_before_an_error_are_heard():
    def fail():
        note("before")
        raise ValueError("after")

    notes = []
    with pytest.raises(ValueError, match="after"):
        listen(notes, fail)
    assert notes[0].message == "before"


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


def test_other_errors_are_raised_as_they_are():
    with parallel_config(backend="threading"), pytest.raises(ZeroDivisionError):
        over_jobs([(divmod, 1, 0), (divmod, 1, 1)], 2)
