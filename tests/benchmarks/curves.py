"""Print time, peak memory and fitted exponent of every promised cost, peers beside us.

    python tests/benchmarks/curves.py [name …]
    python tests/benchmarks/curves.py --readme

Exponents are fitted to all sizes, and to the last two alone. Peers are measured in the same run
where they are installed (extra ``peers``). ``--readme`` prints the shorter table of the README.
"""

import importlib.util
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


UNTRACED = ("torchmetrics",)  # torch's memory is not Python's
README = (
    "expected calibration error",
    "smooth calibration error",
    "Brier decomposition",
    "MMCE",
    "SKCE, canonical",
    "Monte Carlo test of ECE, 199 draws",
    "default search, confidence",
)
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


def installed_peers(name):
    """Names of installed peers and what prepares their work."""
    return [
        (module, prepare)
        for module, prepare in PEERS.get(name, {}).items()
        if importlib.util.find_spec(module)
    ]


def readme():
    """Print the table of the README: the largest size, peers beside."""
    print(
        "| what | size | time | peak memory | growth | peers, same run |\n|---|---|---|---|---|---|"
    )
    for name in README:
        case = CASES[name]
        figures, (_, slope) = figures_of(case, case.prepare)
        seconds, peak = figures[-1]
        others = []
        for module, prepare in installed_peers(name):
            time, memory = measure(prepare(case.sizes[-1]))
            of_numpy = module not in UNTRACED
            others.append(f"{module} {time:.2g} s" + f", {memory:.0f} MB" * of_numpy)
        print(
            f"| {name} | {case.size} = {case.sizes[-1]:,} | {seconds:.2g} s | {peak:.0f} MB | "
            f"{case.size}^{slope:.2f} | {'; '.join(others) or '–'} |",
            flush=True,
        )


def main(names):
    if names == ["--readme"]:
        return readme()
    print("| what | size | time and peak memory | exponents (promised) |\n|---|---|---|---|")
    for name in names or CASES:
        curve(name, CASES[name], CASES[name].prepare)
        for module, prepare in installed_peers(name):
            curve(f"{name}, by {module}", CASES[name], prepare)


if __name__ == "__main__":
    main(sys.argv[1:])
