"""Time and memory of recalibrators: skcal's, scikit-learn's and probmetrics', case by case.

Run ``python tests/benchmarks/recalibration_time.py [--cases …] [--methods …]``; methods of packages
that are absent are left out. Each fit, with the prediction of its own samples, has a process of its
own; BLAS has as many threads as OPENBLAS_NUM_THREADS and OMP_NUM_THREADS say. Printed are wall and
CPU seconds, the largest memory of the process with packages and data, and the log loss on these
samples.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from importlib import import_module

import numpy as np
from recalibration import METHODS
from scipy.special import log_softmax, softmax

from skcal import TemperatureScaling
from skcal.recalibration import VectorScaling

#: Samples, classes and whether predictions are float32 logits.
CASES = {
    "10,000 x 10": (10_000, 10, False),
    "50,000 x 1,000 logits": (50_000, 1_000, True),
    "1,000,000 binary": (1_000_000, 2, False),
}


def predictions(name):
    """Overconfident predictions and labels."""
    n, n_classes, logits = CASES[name]
    rng = np.random.default_rng(0)
    z = rng.normal(scale=2, size=(n, n_classes)).astype(np.float32)
    y = (z + rng.gumbel(size=z.shape).astype(np.float32)).argmax(axis=1)
    z *= 2
    if logits:
        return z, y
    return softmax(z.astype(np.float64), axis=1), y


OURS = {
    "skcal": METHODS["skcal"],
    "skcal temperature": lambda X, y, **options: TemperatureScaling(**options).fit(X, y),
    "skcal vector": lambda X, y, **options: VectorScaling(structured=True, **options).fit(X, y),
}
PEERS = {name: METHODS[name] for name in METHODS if name not in ("raw", "skcal", "logistic-mix")}


def recalibrated(method, X, y, logits):
    """Predictions after a fit to them; peers get probabilities."""
    if method in OURS:
        return OURS[method](X, y, from_logits=logits).predict_proba(X)
    P = softmax(X, axis=1) if logits else X
    return PEERS[method](P, y).predict_proba(P)


def measure(case, method) -> dict:
    """Fit and predict in this process."""
    X, y = predictions(case)
    with suppress(ImportError):
        import_module("probmetrics.calibrators")
    start, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proba = recalibrated(method, X, y, CASES[case][2])
    spent = time.perf_counter() - start, time.process_time() - cpu
    own = np.maximum(np.take_along_axis(proba, y[:, None], axis=1), np.finfo(float).tiny)
    raw = log_softmax(X, axis=1) if CASES[case][2] else np.log(np.maximum(X, 1e-300))
    return {
        "wall": spent[0],
        "cpu": spent[1],
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "log_loss": float(-np.log(own).mean()),
        "raw": float(-np.take_along_axis(raw, y[:, None], axis=1).mean()),
    }


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--methods", nargs="+", default=[*OURS, *PEERS], choices=[*OURS, *PEERS])
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    for case in options.cases:
        print(f"{case:24} {'wall s':>8} {'CPU s':>8} {'GB':>6} {'log loss':>9}  CPU / skcal")
        ours = None
        for method in options.methods:
            command = [sys.executable, __file__, "--one", case, method]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode:
                said = ran.stderr.strip().splitlines() or [f"ended with {ran.returncode}"]
                print(f"  {method:22} {said[-1][:80]}", flush=True)
                continue
            found = json.loads(ran.stdout.strip().splitlines()[-1])
            ours = ours or found["cpu"]
            print(
                f"  {method:22} {found['wall']:8.2f} {found['cpu']:8.2f} {found['gigabytes']:6.2f}"
                f" {found['log_loss']:9.4f}  {found['cpu'] / ours:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
