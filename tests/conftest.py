"""Data that several test modules share."""

import gc
import os
from pathlib import Path

import numpy as np
import pytest

# Workers of pytest-xdist share the cores: threads of BLAS would wait for each other.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("MPLBACKEND", "Agg")  # figures need no screen
SHARED = Path(__file__).parents[2] / "shared"
# All have one name, under which doctests would be looked for in one of them.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is collected stays: the garbage collector need not look at it, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# What tests of a folder, or of these files, share is dear: reports, workers of joblib, sources.
TOGETHER = ("tests/report/", "tests/displays/")
APART = ("tests/documentation/test_pages.py",)  # whose tests share nothing
SHARING = {
    "tests/test_threads_and_pickles.py": "workers",
    "tests/model_selection/test_search_of_maps.py": "workers",
    "tests/test_recalibrated_classifier.py": "workers",
    "tests/test_imports.py": "parsed sources",
    "tests/test_packaging.py": "parsed sources",
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give a worker whole files or folders, so that what their tests share is made once."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            if file in APART:
                return nodeid
            folder = next((folder for folder in TOGETHER if file.startswith(folder)), file)
            return SHARING.get(file, folder)

    return Scheduling(config, log)


def _require(path):
    if not path.exists():
        pytest.skip(f"reference data {path.relative_to(SHARED.parent)} is not beside the checkout")
    return path


@pytest.fixture(scope="session")
def cifar10():
    """Return predictions and labels of a CIFAR-10 network by name."""

    def load(name):
        with np.load(_require(SHARED / "data" / "cifar10" / f"{name}.npz")) as data:
            return data["proba"], data["labels"].astype(np.int64)

    return load


@pytest.fixture(scope="session")
def published():
    """Return the figures of Widmann et al. (2019) for each CIFAR-10 network: dict of dicts."""
    lines = _require(SHARED / "data" / "cifar10" / "published.csv").read_text().splitlines()
    names, *rows = (line.split(",") for line in lines)
    return {row[0]: dict(zip(names[1:], map(float, row[1:]), strict=True)) for row in rows}


@pytest.fixture(scope="session")
def reference():
    """Outputs of the published code of Gruber & Bach (2025) on vgg16_bn."""
    with np.load(_require(SHARED / "vectors" / "gruber_bach_reference.npz")) as data:
        return dict(data)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def tempered():
    """1,200 overconfident predictions over 4 classes: proba, labels."""
    rng = np.random.default_rng(7)
    truth = rng.dirichlet(np.full(4, 0.5), size=1200)
    labels = (truth.cumsum(axis=1) < rng.uniform(size=(1200, 1))).sum(axis=1)
    powered = truth**1.7
    return powered / powered.sum(axis=1, keepdims=True), labels


@pytest.fixture
def few_draws(monkeypatch):
    """199 draws suffice for what reports print; how many there are is asked elsewhere."""
    from report_cases import draw_few

    draw_few(monkeypatch)
