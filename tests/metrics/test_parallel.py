"""Metrics spread their work over what joblib's context says, and do not depend on it."""

import threading
import time

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context

from skcal.datasets import make_tempered
from skcal.metrics import (
    kernel_density_calibration_error,
    kolmogorov_smirnov_calibration_error,
    maximum_mean_calibration_error,
    smooth_calibration_error,
    squared_kernel_calibration_error,
    squared_mean_embedding_calibration_error,
)

DATA = make_tempered(300, n_truth_draws=0, random_state=0)
METRICS = {
    "SKCE, canonical": (squared_kernel_calibration_error, {"notion": "canonical"}),
    "SKCE, class-wise": (squared_kernel_calibration_error, {"notion": "classwise"}),
    "SKCE, incomplete": (
        squared_kernel_calibration_error,
        {"notion": "classwise", "method": "incomplete", "n_pairs": 2000, "random_state": 0},
    ),
    "SKCE, rbf": (squared_kernel_calibration_error, {"notion": "confidence", "kernel": "rbf"}),
    "MMCE": (maximum_mean_calibration_error, {"notion": "classwise"}),
    "mean embedding": (
        squared_mean_embedding_calibration_error,
        {"notion": "top-label", "random_state": np.random.RandomState},
    ),
    "smooth": (smooth_calibration_error, {"notion": "top-label"}),
    "KS": (kolmogorov_smirnov_calibration_error, {"notion": "classwise"}),
    "density": (kernel_density_calibration_error, {"notion": "classwise"}),
}


@pytest.mark.parametrize("name", METRICS)
def test_the_number_of_jobs_changes_no_digit(name):
    metric, options = METRICS[name]

    def value():
        draws = options.get("random_state")
        own = {"random_state": draws(0)} if callable(draws) else {}
        with config_context(working_memory=0.1):  # many blocks
            return metric(DATA.labels, DATA.proba, **options | own)

    alone = value()
    with parallel_config(backend="threading", n_jobs=2):
        assert value() == alone


def test_blocks_of_pairs_run_at_the_same_time():
    running, most = [], []

    def kernel(X, Z):
        running.append(0)
        most.append(len(running))
        time.sleep(0.01)
        running.pop()
        return np.exp(-((X[:, None] - Z) ** 2).sum(axis=2))

    with config_context(working_memory=0.05), parallel_config(n_jobs=2):
        squared_kernel_calibration_error(DATA.labels, DATA.proba, notion="canonical", kernel=kernel)
    assert max(most) == 2


def test_without_a_context_work_stays_in_the_calling_thread():
    threads = set()

    def kernel(X, Z):
        threads.add(threading.get_ident())
        return np.exp(-((X[:, None] - Z) ** 2).sum(axis=2))

    with config_context(working_memory=0.05):
        squared_kernel_calibration_error(DATA.labels, DATA.proba, notion="canonical", kernel=kernel)
    assert threads == {threading.get_ident()}
