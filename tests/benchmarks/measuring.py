"""What the benchmarks share: data, seconds and the memory of a process (Linux)."""

import time
from pathlib import Path

import numpy as np

SHORT = 0.02  # seconds that a clock resolves


def binary(n):
    """Labels and P(positive) of n samples."""
    rng = np.random.default_rng(0)
    p = 1 - 0.9 * rng.beta(0.3, 3, n)
    return (rng.random(n) < p).astype(int), p


def classes(n, n_classes=10):
    """Labels and rows of probabilities, a little overconfident."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(n_classes, 0.3), n)
    chance = 0.9 * proba + 0.1 / n_classes
    return (chance.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1), proba


def seconds_of(work, clock=time.process_time, repeat=True):
    """Seconds of a call; calls too short for the clock are repeated, unless told not to."""
    times = 1
    while True:
        start = clock()
        for _ in range(times):
            work()
        seconds = clock() - start
        if seconds >= SHORT or not repeat:
            return seconds / times
        times *= 10


def least_seconds(work, rounds=3, longest=np.inf):
    """Least seconds of the processor of some calls, of one call if it takes longer."""
    least = seconds_of(work)
    for _ in range(rounds - 1 if least <= longest else 0):
        least = min(least, seconds_of(work))
    return least


def resident(key):
    """A figure of this process's memory in MB."""
    return int(Path("/proc/self/status").read_text().split(f"{key}:")[1].split()[0]) / 1024


def forget_peak():
    """Let the peak of the memory so far not count."""
    Path("/proc/self/clear_refs").write_text("5")


def with_peak(work):
    """What a call returns, and its peak MB above what was there before it."""
    forget_peak()
    before = resident("VmRSS")
    result = work()
    return result, max(resident("VmHWM") - before, 0.0)
