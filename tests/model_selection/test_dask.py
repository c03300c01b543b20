"""A search on a cluster gives the numbers of one process, also when a worker dies."""

import os
import signal
import threading

import joblib
import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from skcal import Binning, CalibrationErrorSearchCV, PlugIn, TemperatureScaling, Zero
from skcal.datasets import make_tempered

# That dask's tasks give the numbers of one process is shown by doc/guide/large_data.rst.
pytestmark = pytest.mark.slow
distributed = pytest.importorskip("distributed", reason="needs the extra dask")


def search(n_jobs):
    data = make_tempered(400, n_truth_draws=0, random_state=0)
    candidates = [Zero(), (Binning(), {"n_bins": [5, 10]}), PlugIn(TemperatureScaling())]
    searching = CalibrationErrorSearchCV(candidates, "confidence", random_state=0, n_jobs=n_jobs)
    return searching.fit(data.proba, data.labels)


@pytest.fixture(scope="module")
def client():
    options = {"processes": True, "dashboard_address": ":0", "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("dies", [False, True])
def test_two_workers_give_the_numbers_of_one_process(client, dies):
    expected = search(n_jobs=1)
    victim = next(iter(client.run(os.getpid).values()))
    killer = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
    with joblib.parallel_config(backend="dask"):
        if dies:
            killer.start()
        found = search(n_jobs=-1)
    assert found.squared_error_ == expected.squared_error_
    assert found.one_step_squared_error_ == expected.one_step_squared_error_
    scores = expected.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], scores)
    if dies:
        killer.join()
        assert victim not in client.run(os.getpid).values()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_the_documented_setting_ends_a_search_without_workers():
    dask = pytest.importorskip("dask")
    options = {"processes": True, "dashboard_address": ":0", "silence_logs": 50}
    forests = [PlugIn(ExtraTreesRegressor(400, random_state=seed)) for seed in range(6)]
    data = make_tempered(3000, n_truth_draws=0, random_state=0)
    endless = CalibrationErrorSearchCV(forests, "confidence", n_jobs=-1, random_state=0)
    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": "3s"}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        threading.Timer(2, cluster.scale, [0]).start()
        with pytest.raises(distributed.scheduler.NoWorkerError, match="without any running work"):
            endless.fit(data.proba, data.labels)
