"""Questions about confidences read the largest probability of logits, and answer as from rows."""

import tracemalloc
import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context

import skcal
from skcal import Sample, _matrices, metrics
from skcal.hypothesis_tests import equivalence_test, scan_test

N_CLASSES = 5
BLOCK = 16  # rows


def numbers_of(result):
    values = vars(result).values() if hasattr(result, "__dict__") else np.ravel(result).tolist()
    return [float(value) for value in values if isinstance(value, int | float | np.floating)]


QUESTIONS = {
    "ece": metrics.expected_calibration_error,
    "debiased": partial(
        metrics.expected_calibration_error, strategy="quantile", norm=2, debias=True
    ),
    "maximum": metrics.maximum_calibration_error,
    "log loss": partial(metrics.score_decomposition, score="log-loss"),
    "sharpness": metrics.sharpness,
    "bins": lambda *a, **k: (
        metrics.calibration_bins(*a, **k).to_frame().to_numpy().ravel().tolist()
    ),
    "interval": skcal.calibration_error_interval,
    "error": skcal.calibration_error,
    "test": skcal.calibration_test,
    "scan": partial(scan_test, random_state=0),
    "equivalence": partial(equivalence_test, limit=0.3),
}


def draw(n, dtype=np.float64, spread=2.0):
    rng = np.random.default_rng(n)
    z = (spread * rng.standard_normal((n, N_CLASSES))).astype(dtype)
    y = (z + 1.5 * rng.gumbel(size=z.shape)).argmax(axis=1)
    y[0] = 0
    return y, z


def both(question, y, z, **options):
    options |= {"notion": "confidence", "from_logits": True}
    return question(y, z, **options), question(Sample(y, z, **options))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(_matrices, "_CACHED_BYTES", 8 * N_CLASSES * BLOCK)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_are_those_of_whole_rows(name, dtype, small_blocks):
    y, z = draw(150, dtype)
    reduced, whole = both(QUESTIONS[name], y, z)
    assert len(numbers_of(whole))
    assert_allclose(numbers_of(reduced), numbers_of(whole), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1])
@pytest.mark.parametrize("limited", ["by the cache", "by working_memory"])
def test_both_sides_of_a_border_of_blocks(n, limited, monkeypatch):
    y, z = draw(n)
    block = 8 * N_CLASSES * BLOCK
    memory = block / 2**20 if limited == "by working_memory" else 1024
    if limited == "by the cache":
        monkeypatch.setattr(_matrices, "_CACHED_BYTES", block)
    with config_context(working_memory=memory):
        reduced, whole = both(metrics.expected_calibration_error, y, z)
        top = _matrices.Softmax(z).top
    assert reduced == pytest.approx(whole, rel=1e-12)
    assert (top == z.argmax(axis=1)).all()


@pytest.mark.parametrize("options", ["weights", "groups", "names", "frame"])
def test_other_arguments_are_read_alike(options, small_blocks):
    y, z = draw(90)
    weight = np.arange(90) % 4
    names = np.array(["e", "d", "c", "b", "a"])
    given = {
        "weights": (y, {"sample_weight": weight}),
        "groups": (y, {"groups": np.arange(90) // 3, "sample_weight": weight}),
        "names": (names[y], {"labels": names}),
        "frame": (names[y], {}),
    }
    y, more = given[options]
    if options == "frame":
        pandas = pytest.importorskip("pandas")
        z = pandas.DataFrame(z, columns=names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reduced, whole = both(skcal.calibration_error_interval, y, z, **more)
    assert_allclose(numbers_of(reduced), numbers_of(whole), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("spread", [1e-20, 30, 400, 1e5])
def test_the_largest_of_close_and_of_extreme_logits(spread):
    """Equal probabilities go to the first class; odds lose nothing where the others vanish."""
    y, z = draw(60, spread=spread)
    z[0], z[1] = 0, [0, 0, 745, 0, 0]
    options = {"notion": "confidence", "from_logits": True}
    [whole] = Sample(y, z, **options).problems()
    largest = _matrices.Softmax(z)
    assert (largest.confidence == whole.features[:, 0]).all()
    assert ((largest.top == y) == (whole.outcomes[:, 0] == 1)).all()
    assert_allclose(largest.odds, whole.logits[:, 0], rtol=1e-12, atol=1e-12)


def wrong(change):
    y, z = draw(60)
    return change(y, z)


def with_entry(value):
    def change(y, z):
        z[41, 3] = value
        return y, z

    return change


MISTAKES = {
    "nan": with_entry(np.nan),
    "infinite": with_entry(np.inf),
    "masked": with_entry(-np.inf),
    "one column": lambda y, z: (y, z[:, :1]),
    "one dimension": lambda y, z: (y, z[:, 0]),
    "probabilities": lambda y, z: (y, np.full(z.shape, 1 / N_CLASSES)),
    "float32 probabilities": lambda y, z: (y, np.full(z.shape, 1 / N_CLASSES, np.float32)),
    "a label too many": lambda y, z: (np.where(np.arange(60) == 7, N_CLASSES, y), z),
    "too few labels": lambda y, z: (y[:-1], z),
    "ragged": lambda y, z: (y, [[0.0, 1.0, 2.0], [0.0, 1.0]] * 30),
    "texts": lambda y, z: (y, z.astype(str)),
    "counted from 1": lambda y, z: (z[:, :4].argmax(axis=1) + 1, np.where(z == z[:, 4:], -9, z)),
    "certain": lambda y, z: (y, 1e7 * z),
    "empty": lambda y, z: (y[:0], z[:0]),
}
WARNED = {"counted from 1", "certain"}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named_alike(name):
    y, z = wrong(MISTAKES[name])
    options = {"notion": "confidence", "from_logits": True}

    def text_of(call):
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            try:
                call()
            except ValueError as error:
                return str(error)
        return [str(warning.message) for warning in record]

    reduced = text_of(lambda: metrics.expected_calibration_error(y, z, **options))
    assert reduced == text_of(lambda: Sample(y, z, **options))
    assert isinstance(reduced, list) == (name in WARNED)
    assert len(reduced)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_are_not_copied(dtype):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((4000, 1000)).astype(dtype)
    y = rng.integers(0, 1000, 4000)
    options = {"notion": "confidence", "from_logits": True}
    metrics.expected_calibration_error(y[:99], z[:99], **options)  # what functions remember, once
    for limit, question in [
        (2**22, metrics.expected_calibration_error),
        (z.nbytes, skcal.calibration_error),
    ]:
        tracemalloc.start()
        try:
            question(y, z, **options)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < limit, peak
