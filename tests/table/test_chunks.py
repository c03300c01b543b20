"""Binned numbers of samples that come in chunks, from disk or on workers, to the last digits."""

import tracemalloc
import warnings
from itertools import product
from math import fsum, inf

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skcal import CalibrationTable, calibration_error_interval
from skcal.metrics import (
    calibration_bins,
    expected_calibration_error,
    maximum_calibration_error,
    score_decomposition,
    sharpness,
)

N, EDGES = 157, np.arange(11) / 10
ERRORS = [
    {"norm": norm, "debias": debias, "average": average, "root": root}
    for norm, debias, average, root in [
        (1, False, "sum", True),
        (1, False, None, False),
        *product([2], [False, True, "labels"], ["sum", "macro", None], [False]),
        (3, False, "macro", True),
        (inf, False, "sum", True),
        (inf, False, None, False),
    ]
]


def hard_sample(notion="confidence", dtype=np.float64, n=N):
    """Grid values on the edges of bins, zeros, ones, ties and an absent class."""
    rng = np.random.default_rng(3)
    proba = rng.dirichlet(np.full(4, 0.4), size=n)
    proba[: n // 2] = rng.multinomial(10, [0.5, 0.3, 0.2, 0.0], size=n // 2) / 10
    proba[:3] = np.eye(4)[:3]
    y = rng.integers(0, 3, n)
    if notion == "binary":
        return (y == 1).astype(int), proba[:, 1].astype(dtype)
    return y, proba.astype(dtype)


def in_chunks(table, size, *arrays, weight=None):
    for start in range(0, len(arrays[0]), size):
        rows = slice(start, start + size)
        of_rows = None if weight is None else weight[rows]
        table.update(*(a[rows] for a in arrays), sample_weight=of_rows)
    return table


def assert_equal_at_once(table, y, proba, dtype=np.float64, **options):
    # Residuals of float32 are those of float32 where all samples are at once.
    atol = 1e-12 if dtype == np.float64 else 1e-7
    weighted = options.get("sample_weight") is not None
    for choice in ERRORS:
        # Of weights and predictions within a cell Σ w² p is not known.
        rough = 1e-3 * (weighted and choice["debias"] is True)
        found = expected_calibration_error(table, edges=EDGES, **choice)
        expected = expected_calibration_error(y, proba, edges=EDGES, **options, **choice)
        assert_allclose(found, expected, rtol=1e-11 + rough, atol=atol + rough * 1e-2)
    for least in (None, 3):
        found = maximum_calibration_error(table, edges=EDGES, min_samples=least)
        expected = maximum_calibration_error(y, proba, edges=EDGES, min_samples=least, **options)
        assert_allclose(found, expected, rtol=0, atol=atol)
    found = calibration_bins(table, edges=EDGES)
    expected = calibration_bins(y, proba, edges=EDGES, **options)
    for name in ("count", "weight", "prediction", "frequency", "low", "high"):
        assert_allclose(getattr(found, name), getattr(expected, name), atol=10 * atol)
    assert found.notion == expected.notion
    assert_array_equal(found.classes, expected.classes)
    for score in ("brier", "log-loss"):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The log loss is infinite")
            binned = {"score": score, "strategy": "uniform", "n_bins": 10}
            given = score_decomposition(y, proba, **binned, **options)
            parts = vars(score_decomposition(table, **binned)), vars(given)
        if score == "brier" or dtype == np.float64:
            assert_allclose(*(list(part.values()) for part in parts), rtol=0, atol=1e-6)
    assert_allclose(sharpness(table), sharpness(y, proba, **options), rtol=0, atol=atol)


@pytest.mark.parametrize("notion", ["binary", "confidence", "top-label", "classwise"])
@pytest.mark.parametrize(
    ("dtype", "weighted", "size"), [(np.float64, True, 7), (np.float32, False, 60)]
)
def test_chunks_give_what_all_samples_give(notion, dtype, weighted, size):
    y, proba = hard_sample(notion, dtype)
    weight = np.random.default_rng(4).integers(0, 4, N) * 0.7 if weighted else None
    labels = [0, 1] if notion == "binary" else range(4)
    table = CalibrationTable(notion, edges=EDGES, labels=labels)
    in_chunks(table, size, y, proba, weight=weight)
    assert_equal_at_once(table, y, proba, dtype, notion=notion, sample_weight=weight)
    assert table.n_samples_seen_ == (N if weight is None else np.count_nonzero(weight))


def test_edges_known_beforehand_are_any_bins():
    y, p = hard_sample("binary")
    edges = [0, *calibration_bins(y, p, strategy="quantile", n_bins=6).right]
    table = in_chunks(CalibrationTable(edges=edges, labels=[0, 1]), 20, y, p)
    for choice in ERRORS:
        at_once = expected_calibration_error(y, p, strategy="quantile", n_bins=6, **choice)
        found = expected_calibration_error(table, edges=edges, **choice)
        assert_allclose(found, at_once, rtol=1e-11, atol=1e-12)


def test_sums_of_many_samples_keep_their_digits():
    # One sum of 2²⁰ terms 0.1 loses 1e-12 of itself.
    p = np.full(2**20, 0.1)
    naive = np.bincount(np.zeros(len(p), dtype=np.intp), p)[0]
    assert abs(naive / fsum(p) - 1) > 1e-12
    y = np.zeros(len(p), dtype=np.int8)
    table = CalibrationTable().update(y, p)
    for found in (expected_calibration_error(y, p), expected_calibration_error(table)):
        assert_allclose(found, 0.1, rtol=0, atol=1e-12)
    assert_allclose(expected_calibration_error(y, p), 0.1, rtol=5e-13)


def traced_peak(call):
    tracemalloc.start()
    try:
        result = call()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    """A million binary predictions, 8 MB, and their labels as memory maps."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("on_disk")
    p = rng.uniform(size=10**6)
    np.save(folder / "p.npy", p)
    np.save(folder / "y.npy", (rng.uniform(size=10**6) < p).astype(np.int8))
    return [np.load(folder / name, mmap_mode="r") for name in ("y.npy", "p.npy")]


def test_memory_maps_are_read_in_slices(on_disk, monkeypatch):
    monkeypatch.setattr("skcal.table.sums._PENDING", 2**14)  # rows that wait are of any number
    half = [array[: 5 * 10**5] for array in on_disk]
    (_, least), (table, peak) = (
        traced_peak(lambda arrays=arrays: CalibrationTable().update(*arrays))
        for arrays in (half, on_disk)
    )
    at_once = expected_calibration_error(*map(np.array, on_disk))
    assert_allclose(expected_calibration_error(table), at_once, rtol=1e-12)
    assert peak < least + 1e6  # the second half are 4 MB


@pytest.mark.parametrize(
    "metric",
    [
        expected_calibration_error,
        maximum_calibration_error,
        lambda y, p: expected_calibration_error(y, p, norm=2, debias=True),
        lambda y, p: score_decomposition(y, p, strategy="uniform"),
    ],
)
def test_functions_take_24_bytes_a_sample_beyond_a_memory_map(metric, on_disk):
    # Labels as column numbers and weights, 8 each, and blocks of some 10⁴ samples.
    assert traced_peak(lambda: metric(*on_disk))[1] < 24e6


def test_two_workers_of_a_cluster_count_their_chunks():
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    barrier = {}

    def count(y, p):
        import time

        address = distributed.get_worker().address
        barrier.setdefault(address, 0)
        barrier[address] += 1
        for _ in range(200):  # until the other worker computes, too
            if len(barrier) == 2:
                break
            time.sleep(0.05)
        return CalibrationTable(labels=[0, 1]).update(y, p), address, len(p)

    rng = np.random.default_rng(0)
    p = rng.uniform(size=6000)
    y = (rng.uniform(size=6000) < p**1.2).astype(int)
    chunks = [da.from_array(part, chunks=1000).to_delayed() for part in (y, p)]
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    cluster = distributed.LocalCluster(**options, dashboard_address=None)
    with cluster, distributed.Client(cluster):
        tasks = [dask.delayed(count)(*part) for part in zip(*chunks, strict=True)]
        parts = dask.compute(*tasks)
    assert len({address for _, address, _ in parts}) == 2
    assert [size for *_, size in parts] == [1000] * 6  # nothing was gathered
    whole, table = CalibrationTable().update(y, p), sum(part for part, *_ in parts)
    assert_array_equal(table.to_frame()["n"], whole.to_frame()["n"])
    found, expected = (calibration_error_interval(each) for each in (table, whole))
    assert_allclose((found.low, found.high), (expected.low, expected.high), rtol=1e-9)


@pytest.mark.parametrize("notion", ["top-label", "classwise"])
def test_classes_are_counted_together_as_one_by_one(notion):
    rng = np.random.default_rng(0)
    proba, weight = rng.dirichlet(np.full(40, 0.3), 300), rng.lognormal(size=300)
    y = rng.integers(0, 40, 300)
    given = {"sample_weight": weight, "groups": np.arange(300) // 3}
    frame = CalibrationTable(notion).update(y, proba, **given).to_frame()
    top = proba.argmax(axis=1)
    for k in range(40):
        rows = top == k if notion == "top-label" else np.ones(300, dtype=bool)
        if not rows.any():
            continue
        of_class = {name: values[rows] for name, values in given.items()}
        alone = CalibrationTable(labels=[0, 1]).update(y[rows] == k, proba[rows, k], **of_class)
        own = frame[frame["problem"].str.endswith(f" {k}")].drop(columns="problem")
        expected = alone.to_frame()
        assert_array_equal(own[["group", "cell", "bin", "outcome", "n"]], expected[own.columns[:5]])
        assert_allclose(own.iloc[:, 5:], expected.iloc[:, 5:], rtol=1e-12)
    assert frame["n"].sum() == (300 if notion == "top-label" else 300 * 40)
