"""Print time, peak memory and fitted exponent of every promised cost.

    python tests/benchmarks/curves.py [name …]
    python tests/benchmarks/curves.py --readme

Exponents are fitted to all sizes, and to the last two alone. ``--readme`` prints the shorter table
of the README. ``peers.py`` measures other packages beside skcal.
"""

import sys
import time
import tracemalloc

import numpy as np
from benchmark_cases import CASES
from measuring import seconds_of

README = (
    "expected calibration error",
    "smooth calibration error",
    "Brier decomposition",
    "MMCE",
    "SKCE, canonical",
    "Monte Carlo test of ECE, 199 draws",
    "default search, confidence",
)


def measure(work, rounds=3):
    """Least seconds of some rounds, and peak MB of Python's and numpy's memory in another."""
    work()
    seconds = [seconds_of(work, time.perf_counter, repeat=False) for _ in range(rounds)]
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return min(seconds), peak / 2**20


def figures_of(case, prepare):
    """Seconds and peak MB of every size; exponents fitted to all sizes and to the last two."""
    figures = [measure(prepare(size)) for size in case.sizes]
    logs = np.log([[size, time] for size, (time, _) in zip(case.sizes, figures, strict=True)])
    return figures, [np.polyfit(*logs[-last:].T, 1)[0] for last in (len(logs), 2)]


def curve(title, case, prepare):
    """Measure every size of a case and print a line."""
    figures, (fitted, last) = figures_of(case, prepare)
    cells = ", ".join(
        f"{size:,}: {time:.3g} s, {peak:.0f} MB"
        for size, (time, peak) in zip(case.sizes, figures, strict=True)
    )
    exponents = f"{fitted:.2f}, {last:.2f} ({case.order})"
    print(f"| {title} | {case.size} | {cells} | {exponents} |", flush=True)


def readme():
    """Print the table of the README: the largest size."""
    print("| what | size | time | peak memory | growth |\n|---|---|---|---|---|")
    for name in README:
        case = CASES[name]
        figures, (_, slope) = figures_of(case, case.prepare)
        seconds, peak = figures[-1]
        print(
            f"| {name} | {case.size} = {case.sizes[-1]:,} | {seconds:.2g} s | {peak:.0f} MB | "
            f"{case.size}^{slope:.2f} |",
            flush=True,
        )


def main(names):
    if names == ["--readme"]:
        return readme()
    print("| what | size | time and peak memory | exponents (promised) |\n|---|---|---|---|")
    for name in names or CASES:
        curve(name, CASES[name], CASES[name].prepare)


if __name__ == "__main__":
    main(sys.argv[1:])
