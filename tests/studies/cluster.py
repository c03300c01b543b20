"""
A search on a cluster
=====================

Candidates, settings and folds of a search run in parallel on the workers of a dask cluster; the
results are those of one process. It pays where a search takes minutes. Needs
``pip install 'skcal[dask]'``. Run

    python tests/studies/cluster.py                              # two workers of this machine
    python tests/studies/cluster.py tcp://scheduler:8786         # those of a running cluster

The workers of a running cluster need the same version of skcal.
"""

import sys
from time import perf_counter

import joblib
from distributed import Client, LocalCluster

from skcal import CalibrationErrorSearchCV
from skcal.datasets import make_tempered


def timed_search(data, n_jobs):
    """Return a fitted search and its seconds."""
    start = perf_counter()
    search = CalibrationErrorSearchCV(notion="confidence", random_state=0, n_jobs=n_jobs)
    search.fit(data.proba, data.labels)
    return search, perf_counter() - start


def main(address=None):
    """Search in this process and on the workers, and compare."""
    data = make_tempered(1000, temperature=1.5, n_truth_draws=0, random_state=0)
    alone, seconds = timed_search(data, n_jobs=1)
    print(f"one process: {seconds:5.1f} s, error {alone.rms_calibration_error_:.6f}")
    target = address or LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with Client(target) as client, joblib.parallel_config(backend="dask"):
        together, seconds = timed_search(data, n_jobs=-1)
        workers = len(client.scheduler_info()["workers"])
    if address is None:
        target.close()
    print(f"{workers} workers:   {seconds:5.1f} s, error {together.rms_calibration_error_:.6f}")
    return alone, together


if __name__ == "__main__":  # worker processes import this file
    main(*sys.argv[1:])
