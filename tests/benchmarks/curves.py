"""Print time, peak memory and fitted exponent of every promised cost, peers beside us.

    python tests/benchmarks/curves.py [name …]

The exponent is that of the last two sizes; peers are measured in the same run where they are
installed (extra ``peers``).
"""

import importlib.util
import math
import sys
import time
import tracemalloc

import numpy as np
from benchmark_cases import CASES, binary


def peer_expected_calibration_error(n):
    """ECE of torchmetrics."""
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    y, p = (torch.from_numpy(part) for part in binary(n))
    return lambda: binary_calibration_error(p, y, n_bins=15)


def peer_smooth_calibration_error(n):
    """Smooth ECE of relplot."""
    import relplot

    y, p = binary(n)
    return lambda: relplot.smECE(f=p, y=y)


def peer_binned(n):
    """ECE of netcal."""
    from netcal.metrics import ECE

    y, p = binary(n)
    return lambda: ECE(15).measure(p, y)


PEERS = {
    "expected calibration error": {
        "torchmetrics": peer_expected_calibration_error,
        "netcal": peer_binned,
    },
    "smooth calibration error": {"relplot": peer_smooth_calibration_error},
}


def measure(work, rounds=3):
    """Least seconds of some rounds, and peak MB of Python's and numpy's memory in another."""
    work()
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return min(seconds), peak / 2**20


def curve(title, case, prepare):
    """Measure every size of a case and print a line."""
    figures = [measure(prepare(size)) for size in case.sizes]
    seconds = np.array([time for time, _ in figures])
    slope = math.log(seconds[-1] / seconds[-2]) / math.log(case.sizes[-1] / case.sizes[-2])
    cells = ", ".join(
        f"{size:,}: {time:.3g} s, {peak:.0f} MB"
        for size, (time, peak) in zip(case.sizes, figures, strict=True)
    )
    print(f"| {title} | {case.size} | {cells} | {slope:.2f} ({case.order}) |", flush=True)


def main(names):
    print("| what | size | time and peak memory | exponent (promised) |\n|---|---|---|---|")
    for name in names or CASES:
        curve(name, CASES[name], CASES[name].prepare)
        for module, prepare in PEERS.get(name, {}).items():
            if importlib.util.find_spec(module):
                curve(f"{name}, by {module}", CASES[name], prepare)


if __name__ == "__main__":
    main(sys.argv[1:])
