"""Accumulated chunks against all samples at once."""

import pickle
import re
import sys
import tracemalloc
import warnings
from itertools import product
from math import fsum, inf

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skcal.metrics import (
    CalibrationAccumulator,
    calibration_bins,
    chunks,
    expected_calibration_error,
    maximum_calibration_error,
    score_decomposition,
    sharpness,
)

NOTIONS = ["binary", "confidence", "top-label", "classwise"]
N, N_BINS = 157, 10
ERRORS = [
    {"norm": norm, "debias": debias, "average": average, "root": root}
    for norm, debias, average, root in [
        (1, False, "sum", True),
        (1, False, None, False),
        *product([2], [False, True, "labels"], ["sum", "macro", None], [False]),
        (2, True, "sum", True),
        (3, False, "macro", True),
        (inf, False, "sum", True),
        (inf, False, None, False),
    ]
]

every_notion = pytest.mark.parametrize("notion", NOTIONS)


def hard_sample(notion="confidence", dtype=np.float64, n=N):
    """Grid values on the edges of bins, zeros, ones, ties and an absent class."""
    rng = np.random.default_rng(3)
    proba = rng.dirichlet(np.full(4, 0.4), size=n)
    proba[: n // 2] = rng.multinomial(N_BINS, [0.5, 0.3, 0.2, 0.0], size=n // 2) / N_BINS
    proba[:3] = np.eye(4)[:3]
    y = rng.integers(0, 3, n)
    if notion == "binary":
        return (y == 1).astype(int), proba[:, 1].astype(dtype)
    return y, proba.astype(dtype)


def some_weights(n=N):
    return np.random.default_rng(4).integers(0, 4, n) * 0.7


def accumulate(accumulator, size, *arrays):
    for start in range(0, len(arrays[0]), size):
        accumulator.partial_fit(*(array[start : start + size] for array in arrays))
    return accumulator


def assert_same_table(table, expected):
    for name, value in vars(expected).items():
        if isinstance(value, np.ndarray) and name != "classes":
            own = getattr(table, name)
            assert_allclose(own, value, rtol=1e-11, atol=1e-12, err_msg=name)


def assert_same_sums(one, other, rtol):
    for name, total in other._table.sums.items():
        value = one._table.sums[name].value
        assert_allclose(value, total.value, rtol=rtol, atol=rtol, err_msg=name)


def assert_equal_at_once(accumulator, y, proba, **options):
    """Everything that the accumulator gives against the functions."""
    binned = {**options, "n_bins": accumulator.n_bins}
    for choice in ERRORS:
        own = accumulator.expected_calibration_error(**choice)
        # A root is as exact as its argument where that is not 0.
        tolerance = {"rtol": 1e-11, "atol": 1e-12 if not choice["root"] else 1e-8}
        assert_allclose(own, expected_calibration_error(y, proba, **binned, **choice), **tolerance)
    close = {"rtol": 0, "atol": 1e-12}
    for least in (None, 3):
        own = accumulator.maximum_calibration_error(min_samples=least)
        at_once = maximum_calibration_error(y, proba, min_samples=least, **binned)
        assert_allclose(own, at_once, **close)
    table, expected = accumulator.calibration_bins(), calibration_bins(y, proba, **binned)
    assert_same_table(table, expected)
    assert table.notion == expected.notion
    assert_array_equal(table.classes, expected.classes)
    for score in ("brier", "log-loss"):
        own = accumulator.score_decomposition(score=score)
        with warnings.catch_warnings():  # outcomes of probability 0, which sums do not show
            warnings.filterwarnings("ignore", "The log loss is infinite")
            parts = score_decomposition(y, proba, score=score, strategy="uniform", **binned)
        assert_allclose(list(vars(own).values()), list(vars(parts).values()), **close)
    assert_allclose(accumulator.sharpness(), sharpness(y, proba, **options), **close)


# Equal to the functions


@every_notion
@pytest.mark.parametrize(
    ("dtype", "weighted", "size"), [(np.float64, True, 7), (np.float32, False, 60)]
)
def test_chunks_give_what_all_samples_give(notion, dtype, weighted, size):
    y, proba = hard_sample(notion, dtype)
    weight = some_weights() if weighted else None
    accumulator = CalibrationAccumulator(notion, n_bins=N_BINS)
    accumulate(accumulator, size, *(a for a in (y, proba, weight) if a is not None))
    assert_equal_at_once(accumulator, y, proba, notion=notion, sample_weight=weight)
    assert accumulator.n_samples_seen_ == (N if weight is None else np.count_nonzero(weight))


@pytest.mark.parametrize("notion", ["binary", "top-label"])
def test_blocks_within_a_chunk_do_not_matter(notion, monkeypatch):
    y, proba = hard_sample(notion)
    whole = CalibrationAccumulator(notion).partial_fit(y, proba)
    monkeypatch.setattr("skcal.metrics.bins._BLOCK_BYTES", 2**17)
    monkeypatch.setattr("skcal.metrics.bins.BLOCK_ROWS", 2**3)
    blocks = CalibrationAccumulator(notion).partial_fit(y, proba)
    assert_same_sums(blocks, whole, rtol=1e-13)


def test_edges_known_beforehand_are_any_bins():
    y, p = hard_sample("binary")
    table = calibration_bins(y, p, strategy="quantile", n_bins=6)
    accumulator = CalibrationAccumulator(edges=[0, *table.right])
    accumulate(accumulator, 20, y, p)
    for choice in ERRORS:
        at_once = expected_calibration_error(y, p, strategy="quantile", n_bins=6, **choice)
        own = accumulator.expected_calibration_error(**choice)
        assert_allclose(own, at_once, rtol=1e-11, atol=1e-12)
    assert_same_table(accumulator.calibration_bins(), table)


def test_sums_of_many_samples_keep_their_digits():
    # One sum of 2²⁰ terms 0.1 loses 1e-12 of itself.
    p = np.full(2**20, 0.1)
    naive = np.bincount(np.zeros(len(p), dtype=np.intp), p)[0]
    assert abs(naive / fsum(p) - 1) > 1e-12
    accumulator = CalibrationAccumulator().partial_fit(np.zeros(len(p), dtype=np.int8), p)
    table = accumulator.calibration_bins()
    filled = table.count > 0
    assert_allclose(table.gap[filled], -0.1, rtol=5e-13)
    assert_allclose(table.prediction[filled], 0.1, rtol=5e-13)
    assert_allclose(expected_calibration_error(np.zeros(len(p), int), p), 0.1, rtol=5e-13)


# Merging


@every_notion
def test_merging_in_any_order_gives_the_same(notion):
    y, proba = hard_sample(notion)
    rng = np.random.default_rng(0)
    cuts = np.sort(rng.integers(0, N, 6))
    parts = [
        CalibrationAccumulator(notion, n_bins=N_BINS).partial_fit(*chunk)
        for chunk in zip(np.split(y, cuts), np.split(proba, cuts), strict=True)
    ]
    parts = [parts[k] for k in rng.permutation(len(parts))]
    assert_equal_at_once(sum(parts), y, proba, notion=notion)
    left = (parts[0] + (parts[1] + parts[2])) + (parts[3] + parts[4] + parts[5])
    assert_equal_at_once(left.merge(parts[6]), y, proba, notion=notion)


def test_a_sum_leaves_its_terms_alone():
    y, proba = hard_sample()
    one = CalibrationAccumulator().partial_fit(y[:50], proba[:50])
    other = CalibrationAccumulator().partial_fit(y[50:], proba[50:])
    before = pickle.dumps((one, other))
    total = one + other
    total.partial_fit(y, proba)
    assert pickle.dumps((one, other)) == before
    assert (one + CalibrationAccumulator()).n_samples_seen_ == 50
    assert (CalibrationAccumulator() + one).n_samples_seen_ == 50
    with pytest.raises(TypeError):
        one + 1
    with pytest.raises(TypeError, match="cannot merge a int"):
        one.merge(1)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_bins": 9}, "different bins"),
        ({"edges": [0, 0.5, 1]}, "different bins"),
        ({"notion": "classwise"}, "different notion, 'confidence' and 'classwise'"),
        ({"labels": [3, 2, 1, 0]}, r"different labels.*Pass labels= to each"),
        ({"notion": "binary"}, "one dimension, earlier chunks have 4 columns"),
    ],
)
def test_what_does_not_fit_is_not_merged(options, match):
    one = CalibrationAccumulator().partial_fit(*hard_sample())
    before = pickle.dumps(one)
    other = CalibrationAccumulator(**options)
    if options.get("notion") != "binary":
        with pytest.raises(ValueError, match="different"):
            other.merge(one)
    other.partial_fit(*hard_sample(options.get("notion", "confidence")))
    with pytest.raises(ValueError, match=match):
        one.merge(other)
    with pytest.raises(ValueError, match=r"different|earlier chunks"):
        other.merge(one)
    assert pickle.dumps(one) == before
    with pytest.raises(ValueError, match="different bins"):
        one.set_params(n_bins=3).partial_fit(*hard_sample())


# Chunks that are not valid


def bad_chunks():
    y, proba = hard_sample(n=10)
    inside, infinite, unnormalised = proba.copy(), proba.copy(), proba.copy()
    inside[-1, 2], infinite[4, 0], unnormalised[7] = np.nan, np.inf, [0.5, 0.4, 0.0, 0.0]
    return {
        "NaN in the last row": ((y, inside), "contains NaN: y_proba row 9, column 2"),
        "infinity": ((y, infinite), "contains infinity: y_proba row 4"),
        "no simplex": ((y, unnormalised), "row 7 sums to 0.9"),
        "label": ((np.append(y[:-1], 9), proba), "y_true row 9 is 9"),
        "missing label": ((np.append(y[:-1], np.nan), proba), "y_true row 9 is nan"),
        "lengths": ((y[:-1], proba), "inconsistent numbers of samples"),
        "weight": ((y, proba, np.append(np.ones(9), -1)), "sample_weight row 9 is -1"),
        "NaN weight": ((y, proba, np.append(np.ones(9), np.nan)), "sample_weight contains NaN"),
        "zero weights": ((y, proba, np.zeros(9)), "one per sample"),
        "huge weights": ((y, proba, np.full(10, 1e150)), "weights of chunks are not rescaled"),
        "large weights": (
            (y, proba, np.full(10, 1e61)),
            r"up to 1e\+61; weights of chunks",
        ),
        "small weights": ((y, proba, np.full(10, 1e-61)), "between 1e-60 and 1e"),
        "columns": ((y, proba[:, :3] / proba[:, :3].sum(1)[:, None]), "3 columns, .* 4"),
        "one column": ((y == 1, proba[:, 1]), "one dimension, .* 4 columns"),
        "no numbers": ((proba, y), "y_proba"),
    }


@pytest.mark.parametrize("kind", bad_chunks())
def test_a_bad_chunk_adds_nothing(kind):
    chunk, match = bad_chunks()[kind]
    accumulator = CalibrationAccumulator().partial_fit(*hard_sample())
    before = pickle.dumps(accumulator)
    with pytest.raises(ValueError, match=match):
        accumulator.partial_fit(*chunk)
    assert pickle.dumps(accumulator) == before
    if kind in ("NaN in the last row", "missing label", "NaN weight"):
        empty = CalibrationAccumulator(labels=[0, 1, 2, 3])
        with pytest.raises(ValueError, match=r"NaN|nan"):
            empty.partial_fit(*chunk)
        with pytest.raises(NotFittedError, match="has seen no samples"):
            empty.sharpness()


def test_reordered_columns_of_data_frames_raise():
    pd = pytest.importorskip("pandas")
    y, proba = hard_sample()
    names = np.array(["d", "b", "a", "c"])
    frame = pd.DataFrame(proba, columns=names)
    accumulator = CalibrationAccumulator("classwise").partial_fit(names[y], frame)
    assert_array_equal(accumulator.classes_, names)
    at_once = expected_calibration_error(names[y], frame, notion="classwise")
    assert_allclose(accumulator.expected_calibration_error(), at_once, rtol=1e-12)
    with pytest.raises(ValueError, match=r"columns \['a', 'b', 'c', 'd'\], earlier chunks"):
        accumulator.partial_fit(names[y], frame[sorted(names)])


def test_a_bad_row_of_a_large_array_is_named_and_nothing_added(monkeypatch):
    monkeypatch.setattr(chunks, "_SLICE_BYTES", 2**10)
    y, proba = hard_sample()
    accumulator = CalibrationAccumulator().partial_fit(y, proba)
    before = pickle.dumps(accumulator)
    bad = proba.copy()
    bad[-1, 0] = np.nan
    with pytest.raises(ValueError, match=r"y_proba row (\d+), .* Row 0 is row (\d+)") as error:
        accumulator.partial_fit(y, bad)
    row, start = map(int, re.findall(r"row (\d+)(?:,| of)", str(error.value)))
    assert row + start == N - 1
    assert pickle.dumps(accumulator) == before


def test_chunks_without_rows_or_weight_change_nothing():
    y, proba = hard_sample()
    accumulator = CalibrationAccumulator().partial_fit(y[:0], proba[:0])
    assert not hasattr(accumulator, "n_samples_seen_")
    accumulator.partial_fit(y, proba, np.zeros(N))
    with pytest.raises(ValueError, match="No sample of positive weight"):
        accumulator.expected_calibration_error()
    accumulator.partial_fit(y, proba, np.ones(N)).partial_fit(y[:0], proba[:0])
    at_once = expected_calibration_error(y, proba)
    assert_allclose(accumulator.expected_calibration_error(), at_once, rtol=1e-12)


# Labels


def test_labels_tell_the_classes_that_a_chunk_lacks():
    y, proba = hard_sample()
    names = np.array(["d", "b", "a", "c"])
    order = np.argsort(y)  # a class after the other
    accumulator = CalibrationAccumulator("classwise", n_bins=N_BINS, labels=names)
    accumulate(accumulator, 10, names[y][order], proba[order])
    assert_equal_at_once(accumulator, names[y], proba, notion="classwise", labels=names)
    with pytest.raises(ValueError, match="Pass labels="):
        accumulate(CalibrationAccumulator(), 10, names[y][order], proba[order])


@pytest.mark.parametrize("labels", [None, ["no", "yes"], ["yes", "no"]])
@pytest.mark.parametrize("pos_label", ["no", "yes"])
@pytest.mark.parametrize("two_columns", [False, True])
def test_the_positive_class_is_that_of_the_functions(labels, pos_label, two_columns):
    y, p = hard_sample("binary")
    y, proba = np.array(["no", "yes"])[y], np.stack([1 - p, p], axis=1) if two_columns else p
    options = {"notion": "binary", "labels": labels, "pos_label": pos_label}
    accumulator = CalibrationAccumulator(**options, n_bins=N_BINS)
    accumulate(accumulator, 25, y, proba)
    assert_equal_at_once(accumulator, y, proba, **options)
    assert_same_sums(CalibrationAccumulator(**options, n_bins=N_BINS) + accumulator, accumulator, 0)
    options["pos_label"] = {"no": "yes", "yes": "no"}[pos_label]
    with pytest.raises(ValueError, match=r"different (labels|pos_label)"):
        CalibrationAccumulator(**options, n_bins=N_BINS).merge(accumulator)


def test_a_first_chunk_of_one_class_needs_the_name_of_the_other():
    with pytest.raises(ValueError, match="holds the label 'no' alone"):
        CalibrationAccumulator(pos_label="yes").partial_fit(["no", "no"], [0.1, 0.2])
    accumulator = CalibrationAccumulator(pos_label="yes", labels=["no", "yes"])
    accumulator.partial_fit(["no", "no"], [0.1, 0.2]).partial_fit(["yes"], [0.9])
    assert accumulator.n_samples_seen_ == 3


@pytest.mark.parametrize("names", [["no", "yes"], [False, True], np.int8([0, 1]), [3.0, 7.0]])
def test_slices_of_an_array_know_the_labels_of_all(monkeypatch, names):
    monkeypatch.setattr(chunks, "_SLICE_BYTES", 2**9)
    y, p = hard_sample("binary")
    order = np.argsort(y)
    proba = np.stack([1 - p, p], axis=1)[order]
    names = np.array(names)
    accumulator = CalibrationAccumulator("classwise", n_bins=N_BINS)
    accumulator.partial_fit(names[y][order], proba)
    assert_equal_at_once(accumulator, names[y][order], proba, notion="classwise")


# Options


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_bins": 0}, "'n_bins' parameter"),
        ({"n_bins": "cube_root"}, "'n_bins' parameter"),
        ({"edges": [0, 1, 2]}, "from 0 to 1"),
        ({"edges": [0, 0.5, 0.5, 1]}, r"must increase, but edges\[2\] = 0\.5 follows 0\.5"),
        ({"edges": [0.1, 0.5]}, r"^edges of 0\.1 to 0\.5: .* from 0 to 1 .* Pass \[0, …, 1\]"),
        ({"edges": [[0, 1]]}, r"^edges of shape \(1, 2\): a 1-D array from 0 to 1"),
        ({"edges": []}, "edges"),
        ({"edges": [0, np.nan, 1]}, "edges.*NaN"),
        ({"edges": ["a", "b"]}, "^edges: could not convert"),
        ({"edges": np.array([0, 1j, 1])}, "^edges: Complex"),
        ({"edges": 0.5}, "'edges' parameter"),
        ({"edges": [1]}, "from 0 to 1"),
        ({"notion": "canonical"}, "conditions on a vector"),
        ({"pos_label": 1}, "no meaning for 4 columns"),
    ],
)
def test_options_are_checked(options, match):
    with pytest.raises(ValueError, match=match):
        CalibrationAccumulator(**options).partial_fit(*hard_sample())


# Pickling and memory


def test_pickles_and_clones():
    y, proba = hard_sample()
    accumulator = CalibrationAccumulator(n_bins=7).partial_fit(y[:80], proba[:80])
    again = pickle.loads(pickle.dumps(accumulator)).partial_fit(y[80:], proba[80:])
    accumulator.partial_fit(y[80:], proba[80:])
    assert_same_sums(again, accumulator, rtol=0)
    assert clone(accumulator).get_params()["n_bins"] == 7
    assert not hasattr(clone(accumulator), "n_samples_seen_")


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
    accumulator = CalibrationAccumulator()
    error = accumulator.partial_fit(*on_disk).expected_calibration_error()
    assert_allclose(error, expected_calibration_error(*map(np.array, on_disk)), rtol=1e-12)
    monkeypatch.setattr(chunks, "_SLICE_BYTES", 2**21)
    small, peak = traced_peak(lambda: CalibrationAccumulator().partial_fit(*on_disk))
    assert peak < 6e6  # less than the predictions alone
    assert_same_sums(small, accumulator, rtol=1e-12)


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


# Dask


@pytest.fixture
def da():
    return pytest.importorskip("dask.array", reason="dask is not installed")


def lazily(da, *arrays):
    return [da.from_array(array, chunks=(10, *array.shape[1:])) for array in arrays]


@pytest.mark.parametrize("notion", ["binary", "top-label"])
def test_dask_arrays_give_what_arrays_give(da, notion):
    y, proba = hard_sample(notion)
    weight = some_weights()
    lazy = lazily(da, y, proba, weight)
    accumulator = CalibrationAccumulator(notion, n_bins=N_BINS).partial_fit(*lazy)
    assert_equal_at_once(accumulator, y, proba, notion=notion, sample_weight=weight)
    accumulator.partial_fit(y, proba, weight)
    twice = CalibrationAccumulator(notion, n_bins=N_BINS).partial_fit(*lazy).partial_fit(*lazy)
    assert_same_sums(accumulator, twice, rtol=1e-12)


def test_arrays_beside_a_dask_array_are_cut_alike(da):
    y, proba = hard_sample()
    weight = some_weights()
    whole = CalibrationAccumulator(n_bins=N_BINS).partial_fit(y, proba, weight)
    for chunk in (
        (y, da.from_array(proba, chunks=(10, 4)), weight),
        (da.from_array(y, chunks=20), proba, weight),
        (y.tolist(), da.from_array(proba, chunks=(10, 2)), da.from_array(weight, chunks=20)),
    ):
        own = CalibrationAccumulator(n_bins=N_BINS).partial_fit(*chunk)
        assert_same_sums(own, whole, rtol=1e-12)


def test_chunks_of_dask_arrays_are_never_gathered(da, monkeypatch):
    sizes = []
    read = chunks.Columns.read

    def record(columns, y, proba, weight):
        sizes.append(len(proba))
        return read(columns, y, proba, weight)

    monkeypatch.setattr(chunks.Columns, "read", record)
    rng = da.random.default_rng(0)
    p = rng.uniform(size=10**6, chunks=20_000)
    y = (rng.uniform(size=10**6, chunks=20_000) < p).astype(int)
    with pytest.importorskip("dask").config.set(scheduler="synchronous"):
        accumulator, peak = traced_peak(lambda: CalibrationAccumulator().partial_fit(y, p))
    assert sizes == [20_000] * 50
    assert peak < 6e6  # the predictions are 8 MB
    assert accumulator.n_samples_seen_ == 10**6


def test_rows_of_unknown_number(da):
    y, proba = hard_sample()
    keep = proba[:, 0] < 0.9
    *lazy, mask = lazily(da, y, proba, keep)
    accumulator = CalibrationAccumulator(n_bins=N_BINS).partial_fit(*(a[mask] for a in lazy))
    assert_equal_at_once(accumulator, y[keep], proba[keep], notion="confidence")
    with pytest.raises(ValueError, match="one entry per row of known number"):
        CalibrationAccumulator().partial_fit(y[keep], lazy[1][mask])


def test_dask_chunks_that_are_not_valid_are_named_and_add_nothing(da):
    y, proba = hard_sample()
    lazy_y, lazy = lazily(da, y, proba)
    bad = proba.copy()
    bad[-1, 0] = np.nan
    empty, accumulator = CalibrationAccumulator(), CalibrationAccumulator().partial_fit(y, proba)
    before = pickle.dumps(accumulator)
    for match, arrays in {
        r"y_true has shape \(50,\)": (y[:50], lazy),
        r"sample_weight has shape \(\)": (lazy_y, lazy, 2.0),
        r"y_proba row 6, .* chunk 15 of the dask array": lazily(da, y, bad),
    }.items():
        for one in (accumulator, empty):
            with pytest.raises(ValueError, match=match):
                one.partial_fit(*arrays)
    assert pickle.dumps(accumulator) == before
    assert not hasattr(empty, "n_samples_seen_")


class Lazy:
    def __dask_graph__(self):
        return {}


def test_other_dask_collections_are_refused(da):
    with pytest.raises(ValueError, match=r"y_proba is a dask Lazy. Pass y_proba.to_dask_arr"):
        CalibrationAccumulator().partial_fit([0, 1], Lazy())
    bag = pytest.importorskip("dask.bag").from_sequence([0, 1])
    with pytest.raises(ValueError, match="y_true is a dask Bag"):
        CalibrationAccumulator().partial_fit(bag, da.ones(2))


def test_without_dask_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.setitem(sys.modules, "dask.array", None)
    with pytest.raises(ImportError, match=r"pip install 'dask\[distributed\]'"):
        CalibrationAccumulator().partial_fit([0, 1], Lazy())
