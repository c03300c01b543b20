"""Threads and interrupts leave what the whole process shares as it was."""

import gc
import inspect
import os
import random
import subprocess
import sys
import textwrap
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import RLock
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn
from joblib import parallel_config
from process_state import process_state
from sklearn.linear_model import LinearRegression
from test_documentation import LISTED
from threadpoolctl import threadpool_limits

from skcal import (
    CalibrationErrorSearchCV,
    PlugIn,
    TemperatureScaling,
    TwoStepKernelRidge,
    VectorScaling,
    Zero,
    _border,
    calibration_report,
)
from skcal._border import (
    _blas_threads,
    _free,
    _one_shared_blas_thread,
    keeping_filters,
    one_blas_thread,
    restoring,
)
from skcal._floats import ignoring
from skcal.displays import base
from skcal.hypothesis_tests import skce_test
from skcal.metrics import bootstrap_interval, expected_calibration_error

CONTEXT_AWARE = getattr(sys.flags, "context_aware_warnings", False)  # of Python 3.14
CANDIDATES = [
    (Zero(), {}),
    (TwoStepKernelRidge(), {"alpha": [1e-3, 1e-2]}),
    (PlugIn(TemperatureScaling()), {}),
    (PlugIn(VectorScaling(max_iter=1)), {}),  # does not converge
]


@pytest.fixture(scope="module")
def data(tempered):
    proba, labels = tempered
    return proba[:150], labels[:150]


def search(P, y, candidates=CANDIDATES):
    found = CalibrationErrorSearchCV(candidates, "canonical", cv=3, random_state=0).fit(P, y)
    return found.squared_error_, found.best_risk_, found.predict(P).tobytes()


def report(P, y):
    options = {"candidates": CANDIDATES[:3], "cv": 3, "n_resamples": 19, "random_state": 0}
    made = calibration_report(y, P, notion="confidence", **options)
    return made.to_json(), made._repr_html_()


def test(P, y):
    return skce_test(y, P, notion="canonical", n_resamples=39, random_state=0).pvalue


test.__test__ = False


def interval(P, y):
    options = {"n_resamples": 39, "random_state": 0}
    return bootstrap_interval(expected_calibration_error, y, P, **options).distribution.tobytes()


WORK = [search, report, test, interval]


@pytest.mark.parametrize(
    "rounds", [pytest.param(1, id="quick"), pytest.param(40, id="long", marks=pytest.mark.slow)]
)
@pytest.mark.filterwarnings("ignore:.*did not converge", "ignore:The squared calibration error")
def test_eight_threads_say_what_one_says_and_leave_no_trace(data, rounds):
    alone = {work: work(*data) for work in WORK}
    before = process_state()
    with ThreadPoolExecutor(8) as pool:
        jobs = [(work, pool.submit(work, *data)) for work in WORK * 4 * rounds]
        for work, job in jobs:
            assert job.result() == alone[work], work
    assert process_state() == before


class Waiting(LinearRegression):
    """Lets the search that entered first leave first."""

    order = (threading.Event(), threading.Event())

    def __init__(self, first=True):
        super().__init__()
        self.first = first

    def fit(self, X, y, sample_weight=None):
        inside, left = self.order
        if self.first:
            inside.wait(60)
        else:
            inside.set()
            left.wait(60)
        return super().fit(X, y)


@pytest.fixture
def two_blas_threads():
    """Of which no thread keeps the control, as after the import of numpy."""
    with threadpool_limits(2, user_api="blas"):
        for library, _ in _blas_threads():
            _free(library)
        yield


def test_the_search_that_began_first_may_end_first(data, two_blas_threads):
    P, y = data
    before = process_state()

    def work(first):
        found = search(P, y, [PlugIn(Waiting(first)), Zero()])
        if first:
            Waiting.order[1].set()
        return found

    with ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(work, True), pool.submit(work, False)]:
            job.result()
    assert process_state() == before


@pytest.mark.parametrize("threads", [(0, 0), (0, 1), (1, 0)])
def test_one_blas_thread_ends_when_the_last_has_left(two_blas_threads, threads):
    before = process_state()["threads"]
    contexts = one_blas_thread(), one_blas_thread()
    pools = [ThreadPoolExecutor(1) for _ in contexts]  # each of a single thread
    first, second = (pools[number] for number in threads)
    first.submit(contexts[0].__enter__).result()
    inside = process_state()["threads"]
    assert inside != before
    second.submit(contexts[1].__enter__).result()
    first.submit(contexts[0].__exit__, None, None, None).result()
    assert process_state()["threads"] == inside
    second.submit(contexts[1].__exit__, None, None, None).result()
    assert process_state()["threads"] == before


class OwnNumbers:
    """As OpenBLAS on OpenMP: each thread has its own number."""

    threading_layer = "openmp"

    def __init__(self):
        self._own = threading.local()

    @property
    def num_threads(self):
        return getattr(self._own, "count", 4)

    def set_num_threads(self, count):
        self._own.count = count


def test_each_thread_says_its_own_number_where_it_has_one(monkeypatch):
    library = OwnNumbers()
    controller = SimpleNamespace(lib_controllers=[library])
    controller.select = lambda user_api: controller
    monkeypatch.setattr(_border, "_get_threadpool_controller", lambda: controller)
    with ThreadPoolExecutor(1) as pool, one_blas_thread():
        other = one_blas_thread()
        assert (library.num_threads, pool.submit(lambda: library.num_threads).result()) == (1, 4)
        pool.submit(other.__enter__).result()
        assert pool.submit(lambda: library.num_threads).result() == 1
        pool.submit(other.__exit__, None, None, None).result()
        assert (library.num_threads, pool.submit(lambda: library.num_threads).result()) == (1, 4)
    assert library.num_threads == 4


COMPLEX = ("error", None, np.exceptions.ComplexWarning, None, 0)


@pytest.mark.skipif(CONTEXT_AWARE, reason="each thread has filters of its own")
def test_filters_of_checks_that_overlap_are_dropped_when_the_last_has_left():
    with warnings.catch_warnings():
        before = list(warnings.filters)
        first, second = keeping_filters(), keeping_filters()
        first.__enter__()
        outer, inner = warnings.catch_warnings(), warnings.catch_warnings()
        outer.__enter__()
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        second.__enter__()
        inner.__enter__()
        outer.__exit__(None, None, None)
        first.__exit__(None, None, None)
        inner.__exit__(None, None, None)
        assert warnings.filters[0] == COMPLEX  # what two checks of scikit-learn leave
        second.__exit__(None, None, None)
        assert warnings.filters == before


def test_filters_of_the_user_are_kept():
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        with keeping_filters():
            warnings.simplefilter("ignore", ResourceWarning)
            before = list(warnings.filters)
        assert warnings.filters == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="without fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_threads_of_its_parent():
    inside = keeping_filters()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(inside.__enter__).result()
        with keeping_filters._lock:
            child = os.fork()
            if not child:
                with keeping_filters():
                    pass
                os._exit(bool(keeping_filters._inside))
        inside.__exit__(None, None, None)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class InterruptedLock:
    """Interrupts who has just acquired it, as Python 3.14 may at the begin of a ``with``."""

    def __init__(self):
        self.lock, self.interrupts = RLock(), 1

    def acquire(self):
        self.lock.acquire()
        self.interrupts -= 1
        if self.interrupts == 0:
            raise KeyboardInterrupt

    def release(self):
        self.lock.release()


@pytest.mark.parametrize("shared", [keeping_filters, _one_shared_blas_thread])
def test_an_interrupt_at_a_lock_leaves_it_free(shared, monkeypatch):
    monkeypatch.setattr(shared, "_lock", InterruptedLock())
    with pytest.raises(KeyboardInterrupt), shared():
        pass
    with ThreadPoolExecutor(1) as pool:
        pool.submit(shared().__enter__).result(timeout=60)
    shared._inside.clear()


def test_an_interrupt_at_the_lock_of_drawing_leaves_it_free(monkeypatch):
    monkeypatch.setattr(base, "_DRAWING", InterruptedLock())
    draw = base.drawing(lambda: "drawn")
    with pytest.raises(KeyboardInterrupt):
        draw()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(draw).result(timeout=60) == "drawn"


class Interrupting(LinearRegression):
    """Raises KeyboardInterrupt at some fit."""

    left = 0

    def fit(self, X, y, sample_weight=None):
        Interrupting.left -= 1
        if not Interrupting.left:
            raise KeyboardInterrupt
        return super().fit(X, y)


@pytest.mark.parametrize("fits", [1, 2, 5])
@pytest.mark.parametrize("work", [search, partial(calibration_report, random_state=0)])
def test_an_interrupted_fit_leaves_no_trace(data, fits, work):
    before = process_state()
    Interrupting.left = fits
    arguments = data if work is search else data[::-1]
    with pytest.raises(KeyboardInterrupt):
        work(*arguments, candidates=[PlugIn(Interrupting())])
    assert process_state() == before


@pytest.mark.parametrize("name", ["_cholesky", "pair_risk", "kernels"])
def test_an_interrupt_in_any_room_leaves_no_trace(data, name, monkeypatch):
    """Every function of the room is the one that is interrupted, once."""
    P, y = data
    module = __import__(f"skcal.{name}", fromlist=["skcal"])
    before = process_state()
    own = [
        k for k, one in vars(module).items() if getattr(one, "__module__", "") == module.__name__
    ]

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    reached = 0
    for key in own:
        with monkeypatch.context() as patch:
            patch.setattr(module, key, interrupt)
            try:
                search(P[:60], y[:60], CANDIDATES[:3])
            except KeyboardInterrupt:
                reached += 1
            except (TypeError, AttributeError):  # a class that others ask for its type
                pass
        assert process_state() == before, key
    assert reached


def test_an_interrupt_that_stops_others_from_restoring_leaves_their_settings(data):
    before = process_state()

    class Interrupted(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            sklearn.set_config(assume_finite=True)
            np.seterr(invalid="raise")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(*data, [PlugIn(Interrupted())])
    assert process_state() == before


def test_contexts_that_end_with_the_traceback_restore_nothing_of_others():
    """As where the end of one of them is interrupted, which is a function of Python."""
    before = process_state()

    @restoring
    def interrupted():
        with sklearn.config_context(skip_parameter_validation=True), ignoring("over"):
            inner = sklearn.config_context(assume_finite=True), ignoring("under")
            for context in inner:
                context.__enter__()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted()
    del caught
    gc.collect()
    assert process_state() == before


def test_every_public_function_of_samples_restores_settings_when_interrupted():
    """Beside those of the rooms below, which such functions call."""
    below = ("skcal.kernels.", "skcal.notions.", "skcal.pair_risk.")
    for name, function in LISTED.items():
        if inspect.isfunction(function) and not name.startswith(below):
            takes = inspect.signature(function).parameters
            if {"y_true", "y_proba", "proba", "X"} & set(takes):
                assert restored_by(function), name


def restored_by(function):
    return function.__code__ is restoring(function).__code__


@pytest.mark.parametrize("name", ["predict_proba", "predict", "score"])
def test_an_interrupted_method_leaves_the_settings(data, name):
    P, y = data
    model = CalibratorOfMine().fit(P, y)
    before = process_state()
    with pytest.raises(KeyboardInterrupt):
        getattr(model, name)(*(P, y)[: 1 + (name == "score")])
    assert process_state() == before


class CalibratorOfMine(TemperatureScaling):
    """A map of a user, who is interrupted while scikit-learn checks."""

    def predict_proba(self, X):
        sklearn.set_config(assume_finite=True)
        np.seterr(over="raise")
        raise KeyboardInterrupt


SCRIPT = """
    import random, signal, sys, warnings
    sys.path.insert(0, {folder!r})
    import numpy as np
    from process_state import process_state
    from report_cases import predictions
    from skcal import CalibrationErrorSearchCV, calibration_report

    labels, proba = predictions(120)
    def work():
        CalibrationErrorSearchCV(notion="canonical", cv=3, random_state=0).fit(proba, labels)
        calibration_report(labels, proba, n_resamples=19, random_state=0)._repr_html_()

    warnings.simplefilter("ignore")
    rng = random.Random({seed})
    before, done = process_state(), 0
    for _ in range({times}):
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, {longest}))
            work()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            done += 1
        after = process_state()
        assert after == before, [key for key in before if before[key] != after[key]]
    print(done)
"""


@pytest.mark.parametrize(
    ("times", "longest"), [(15, 0.3), pytest.param(2000, 2.0, marks=pytest.mark.slow)]
)
def test_signals_at_any_moment_leave_no_trace(times, longest):
    pytest.importorskip("matplotlib")
    settings = {"folder": str(Path(__file__).parent), "times": times, "longest": longest}
    script = textwrap.dedent(SCRIPT.format(seed=random.randrange(2**31), **settings))
    script = "import signal; signal.signal(signal.SIGALRM, signal.default_int_handler)\n" + script
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > times // 3


@pytest.mark.filterwarnings("ignore:foreign:ResourceWarning")
def test_reports_hold_no_warnings_of_others(data):
    P, y = data

    class Foreign(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            warnings.warn(
                "foreign: unclosed file name='/etc/hostname'", ResourceWarning, stacklevel=2
            )
            return super().fit(X, y)

    candidates = [PlugIn(Foreign()), PlugIn(VectorScaling(max_iter=1))]
    options = {"candidates": candidates, "n_resamples": 19, "search": True, "random_state": 0}
    shown = calibration_report(y, P, **options).to_json()
    assert "foreign" not in shown
    assert "did not converge, the first said: VectorScaling" in shown


def test_notes_of_workers_are_heard_by_the_report(data):
    P, y = data
    options = {"candidates": [PlugIn(VectorScaling(max_iter=1))], "n_resamples": 19}
    options |= {"search": True, "random_state": 0}
    alone = calibration_report(y, P, **options)
    with parallel_config(backend="threading"):
        assert calibration_report(y, P, n_jobs=2, **options).warnings == alone.warnings
    assert np.any(["did not converge" in text for text in alone.warnings])
