"""Threads and interrupts for as long as one likes: ``python tests/soak.py SECONDS [THREADS]``.

Rounds of some seconds, in which threads do whatever skcal does, and the main thread too, where it
is interrupted at any moment. All numbers are those of a single thread. After each round nothing of
what the process shares has changed; at the end a line of JSON tells how memory went.
"""

import ctypes
import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from process_state import process_state
from report_cases import predictions
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

from skcal import (
    CalibrationErrorSearchCV,
    PlugIn,
    RecalibratedClassifierCV,
    Recalibrator,
    TemperatureScaling,
    TwoStepKernelRidge,
    VectorScaling,
    Zero,
    calibration_report,
    hypothesis_tests,
    metrics,
)
from skcal._border import _one_shared_blas_thread, keeping_filters
from skcal.displays import MonitorDisplay
from skcal.monitoring import CalibrationMonitor

ROUND = 10  # seconds
LIBC = ctypes.CDLL(None)
FEW = {"n_resamples": 39, "random_state": 0}
y, P = predictions(150)
CANDIDATES = [
    (Zero(), {}),
    (TwoStepKernelRidge(), {"alpha": [1e-3, 1e-2]}),
    (PlugIn(VectorScaling(max_iter=1)), {}),  # does not converge
    (PlugIn(DecisionTreeRegressor(random_state=0)), {}),
    (PlugIn(LogisticRegression()), {}),
]


def search(notion, candidates=None):
    found = CalibrationErrorSearchCV(candidates, notion, cv=3, random_state=0).fit(P, y)
    return found.squared_error_, found.best_risk_, found.predict(P).tobytes()


def report():
    made = calibration_report(y, P, notion="confidence", candidates=CANDIDATES[:2], cv=3, **FEW)
    with tempfile.TemporaryDirectory() as folder:
        made.save(Path(folder) / "report.html")
        page = (Path(folder) / "report.html").read_text()
    return made.to_json(), page


def recalibrate():
    return Recalibrator(random_state=0).fit(P, y).predict_proba(P).tobytes()


def classify():
    own = Recalibrator([TemperatureScaling()], random_state=0)
    fitted = RecalibratedClassifierCV(GaussianNB(), own, cv=3).fit(np.log(P + 1e-3), y)
    return fitted.predict_proba(np.log(P + 1e-3)).tobytes()


def draw():
    display = MonitorDisplay.from_monitor(CalibrationMonitor().update(P, y), plot=False)
    return len(display.plot(ax=Figure().subplots(1, 2)).figure_.get_axes())


def monitor():
    return CalibrationMonitor().update(P, y).log_e_value_


def refuse():
    try:
        metrics.expected_calibration_error(y, P + 1)
    except ValueError as error:
        return str(error)


def bootstrap():
    return repr(metrics.bootstrap_interval(metrics.expected_calibration_error, y, P, **FEW))


def of(function, *arguments, **options):
    return repr(function(y, P, *arguments, **options))


TASKS = {
    "search": partial(search, "confidence"),
    "own candidates": partial(search, "canonical", CANDIDATES),
    "report": report,
    "recalibrator": recalibrate,
    "classifier": classify,
    "bootstrap": bootstrap,
    "monitor": monitor,
    "display": draw,
    "refusal": refuse,
    "ECE": partial(of, metrics.expected_calibration_error),
    "smooth ECE": partial(of, metrics.smooth_calibration_error, notion="confidence"),
    "kernel error": partial(of, metrics.squared_kernel_calibration_error),
    "Cox": partial(of, metrics.cox_recalibration, notion="confidence"),
    "curve": partial(of, metrics.calibration_curve, notion="confidence"),
    "skce": partial(of, hypothesis_tests.skce_test, notion="canonical", **FEW),
    "Monte Carlo": partial(of, hypothesis_tests.monte_carlo_test, **FEW),
    "segments": partial(of, hypothesis_tests.segment_test, P[:, 0], **FEW),
}


def resources():
    """Mebibytes held, open files and threads of the operating system."""
    gc.collect()
    if hasattr(LIBC, "malloc_trim"):
        LIBC.malloc_trim(0)  # what the allocator keeps for later calls is not held by any
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    mebibytes = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return round(mebibytes, 1), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def work(rng, expected, until, done, failures, turned=lambda: False):
    """Any task after any other; an error that an interrupt was turned into ends it."""
    while time.monotonic() < until and not failures:
        name = rng.choice(list(TASKS))
        try:
            assert TASKS[name]() == expected[name], f"{name}: other numbers"
            done[name] += 1
        except Exception:
            text = f"{name}\n{traceback.format_exc()}"
            if turned():
                done["turned interrupts"] += 1
                print(text, file=sys.stderr)
                return
            failures.append(text)


def interrupted(rng, expected, until, done, failures):
    """The same in the main thread, which is interrupted at any moment.

    Compiled code of matplotlib turns an interrupt into an error of its own.
    """
    fired = lambda: signal.getitimer(signal.ITIMER_REAL)[0] == 0  # noqa: E731
    while time.monotonic() < until and not failures:
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 1.0))
            work(rng, expected, until, done, failures, fired)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            done["interrupts"] += 1


def one_round(seed, pool, n_threads, expected, done, failures):
    rngs = [random.Random(seed + number) for number in range(n_threads + 1)]
    until = time.monotonic() + ROUND
    counters = [Counter() for _ in rngs]
    jobs = [
        pool.submit(work, rng, expected, until, count, failures)
        for rng, count in zip(rngs[1:], counters[1:], strict=True)
    ]
    interrupted(rngs[0], expected, until, counters[0], failures)
    for job in jobs:
        job.result()
    for count in counters:
        done.update(count)


def main(seconds, n_threads=4):
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    expected = {name: task() for name, task in TASKS.items()}
    again = {name: task() for name, task in TASKS.items()}
    assert again == expected
    pool = ThreadPoolExecutor(n_threads)  # kept, since matplotlib opens its fonts for each thread
    before, done, failures = process_state(), Counter(), []
    held, end, rng = [], time.monotonic() + seconds, random.Random(time.time_ns())
    while time.monotonic() < end and not failures:
        one_round(rng.randrange(2**31), pool, n_threads, expected, done, failures)
        after = process_state()
        for key in before:
            if before[key] != after[key]:
                failures.append(f"{key}: {before[key]} is now {after[key]}"[:2000])
        failures += ["someone never left"] * bool(
            keeping_filters._inside or _one_shared_blas_thread._inside
        )
        held.append(resources())
        if len(held) % 6 == 1:
            print(time.strftime("%H:%M:%S"), *held[-1], sum(done.values()), flush=True)
    print(*failures, sep="\n", file=sys.stderr)
    warm = held[len(held) // 5 :]
    told = {
        "rounds": len(held),
        "calls": sum(done.values()) - done["interrupts"],
        "done": dict(done),
        "mebibytes": [min(warm)[0], max(warm)[0], held[0][0], held[-1][0]],
        "files": sorted({one[1] for one in held}),
        "threads": sorted({one[2] for one in held}),
        "failures": len(failures),
    }
    print(json.dumps(told))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), *map(int, sys.argv[2:])))
