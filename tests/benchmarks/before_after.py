"""Time and peak memory of calls before and after: two checkouts by turns, each in its process.

    git worktree add ../before COMMIT
    python tests/benchmarks/before_after.py ../before [what …]

Prints a line for each case: the least processor seconds of both sides, the quartiles of the ratios
of neighbouring calls, and the peak resident memory of a call above what was there before it. What
takes longer than a minute is called once, and what the earlier checkout does not know is left out.
Linux only.
"""

import json
import os
import subprocess
import sys
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
from measuring import binary, classes, seconds_of, with_peak

#: Data, and a call with its labels y, predictions p and features Z.
CASES = {
    "ECE, 1,000": ("binary(1000)", "expected_calibration_error(y, p)"),
    "ECE, 1,000 of ten classes": ("classes(1000, 10)", "expected_calibration_error(y, p)"),
    "ECE, 10,000": ("binary(10_000)", "expected_calibration_error(y, p)"),
    "ECE, 1,000,000": ("binary(10**6)", "expected_calibration_error(y, p)"),
    "Kolmogorov-Smirnov test, 1,000,000": ("binary(10**6)", "kolmogorov_smirnov_test(y, p)"),
    "Spiegelhalter's test, 1,000,000": ("binary(10**6)", "spiegelhalter_test(y, p)"),
    "smooth ECE, 1,000,000": ("binary(10**6)", "smooth_calibration_error(y, p)"),
    "Brier decomposition, 1,000,000": ("binary(10**6)", "score_decomposition(y, p)"),
    "MMCE, 100,000": ("binary(10**5)", "maximum_mean_calibration_error(y, p)"),
    "SKCE, 100,000": ("binary(10**5)", "squared_kernel_calibration_error(y, p)"),
    "calibration slope, 100,000": ("binary(10**5)", "calibration_slope(y, p)"),
    "Cox, intervals too, 100,000": ("binary(10**5)", "cox_recalibration(y, p)"),
    "spline curve with its band, 100,000": ("binary(10**5)", "flexible_calibration_curve(y, p)"),
    "`validation_measures`, 1,000": ("binary(1000)", "validation_measures(y, p, random_state=0)"),
    "L1 error, cross-fitted, 100,000": (
        "binary(10**5)",
        "cross_fitted_calibration_error(y, p, random_state=0)",
    ),
    "`monte_carlo_test`, 100,000": ("binary(10**5)", "monte_carlo_test(y, p, random_state=0)"),
    "`monte_carlo_test`, 1,000,000": ("binary(10**6)", "monte_carlo_test(y, p, random_state=0)"),
    "`skce_test`, 10,000": ("binary(10_000)", "skce_test(y, p, random_state=0)"),
    "`skce_test`, 100,000": ("binary(10**5)", "skce_test(y, p, random_state=0)"),
    "`skce_test`, canonical, 10,000 of ten": (
        "classes(10_000, 10)",
        "skce_test(y, p, notion='canonical', random_state=0)",
    ),
    "`skce_test`, canonical, 10,000 of a hundred": (
        "classes(10_000, 100)",
        "skce_test(y, p, notion='canonical', random_state=0)",
    ),
    "`segment_test`, 10,000 of 20 features": (
        "binary(10_000)",
        "segment_test(y, p, Z, random_state=0)",
    ),
    "`segment_test`, 100,000 of 20 features": (
        "binary(10**5)",
        "segment_test(y, p, Z, random_state=0)",
    ),
    "temperature scaling, 50,000 of 1,000": (
        "classes(50_000, 1000)",
        "TemperatureScaling().fit(p, y)",
    ),
    "default recalibrator, 10,000 of ten": ("classes(10_000, 10)", "Recalibrator().fit(p, y)"),
    "search, confidence, 10,000": (
        "classes(10_000, 10)",
        "CalibrationErrorSearchCV(notion='confidence', random_state=0).fit(p, y)",
    ),
    "search, confidence, 1,000,000": (
        "classes(10**6, 10)",
        "CalibrationErrorSearchCV(notion='confidence', random_state=0).fit(p, y)",
    ),
    "search, canonical, 10,000": (
        "classes(10_000, 10)",
        "CalibrationErrorSearchCV(notion='canonical', random_state=0).fit(p, y)",
    ),
    "report, 10,000": ("binary(10_000)", "calibration_report(y, p, random_state=0)"),
}
_LONG, _ROUNDS = 60.0, 7  # seconds of a call, turns


def work():
    """Answer each case that a line names by seconds and MB of a call, or by an error."""
    warnings.simplefilter("ignore")
    made, known = None, {}
    for module in map(import_module, ("skcal", "skcal.metrics", "skcal.hypothesis_tests")):
        known |= {name: getattr(module, name) for name in module.__all__}
    for line in sys.stdin:
        data, call = CASES[line.strip()]
        if made != data:
            known["y"], known["p"] = eval(data, {"binary": binary, "classes": classes})
            known["Z"] = np.random.default_rng(1).normal(size=(len(known["y"]), 20))
            made = data
        try:
            called = partial(eval, compile(call, call, "eval"), known)
            answer = with_peak(partial(seconds_of, called))
        except Exception as error:
            answer = str(error)
        print(json.dumps(answer), flush=True)


def started(checkout):
    """A process that works with the package of a checkout, with one thread of BLAS."""
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **threads, "PYTHONPATH": str(Path(checkout).resolve())}
    command = [sys.executable, __file__, "--work"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)


def asked(process, what):
    """The answer of a process."""
    process.stdin.write(f"{what}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def line_of(what, sides):
    """The table's line of a case."""
    found = []
    for turn in range(_ROUNDS):
        answers = [asked(side, what) for side in sides]
        if any(isinstance(answer, str) for answer in answers):
            return f"| {what} | {answers} |"
        if turn or max(answers)[0] > 1:  # the first turn of short calls warms caches
            found.append(answers)
        if max(answers)[0] > _LONG / _ROUNDS and (len(found) > 1 or max(answers)[0] > _LONG):
            break
    seconds, memory = np.moveaxis(np.array(found), 2, 0)
    low, high = np.quantile(seconds[:, 0] / seconds[:, 1], [0.25, 0.75])
    ratio = f"{low:.2g}" if f"{low:.2g}" == f"{high:.2g}" else f"{low:.2g}–{high:.2g}"
    least = 1000 * seconds.min(axis=0)
    times = " | ".join(f"{one:,.0f}" if one >= 100 else f"{one:.2g}" for one in least)
    peaks = " | ".join(f"{one:.0f}" for one in memory.max(axis=0))
    return f"| {what} | {times} | {ratio} | {peaks} |"


def main(before, *names):
    sides = [started(before), started(Path(__file__).parents[2])]
    print("| what | before, CPU ms | after | ratio | before, MB | after |")
    print("|---|---|---|---|---|---|")
    for what in names or CASES:
        print(line_of(what, sides), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--work"]:
        work()
    else:
        main(*sys.argv[1:])
