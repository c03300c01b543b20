"""Every public metric and test under odd containers, dtypes, weights, orders and threads.

The answer of a call is that of the plain call; what is not answered is refused on purpose.
"""

import contextlib
import inspect
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from process_state import process_state

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    PlugIn,
    TemperatureScaling,
    TwoStepKernelRidge,
    hypothesis_tests,
    metrics,
)

N = 30


def _data():
    # Sixteenths, which every float holds exactly.
    rng = np.random.default_rng(5)
    cuts = np.sort(rng.integers(1, 16, size=(N, 2)), axis=1)
    proba = np.diff(cuts, axis=1, prepend=0, append=16) / 16
    return np.arange(N) % 3, proba


LABELS, PROBA = _data()
CONTAINERS = {
    "plain": lambda a: a,
    "list": lambda a: a.tolist(),
    "Fortran order": np.asfortranarray,
    "reversed twice": lambda a: a[::-1].copy()[::-1],
    "object": lambda a: a.astype(object),
    "frame": lambda a: (pd.DataFrame if a.ndim > 1 else pd.Series)(a),
    "memoryview": memoryview,
    "masked": lambda a: np.ma.array(a),
    "every second": lambda a: np.repeat(a, 2, axis=0)[::2],
}
DTYPES = [np.float64, np.float32, np.float16, np.longdouble, ">f8"]
SCALES = [None, 1.0, 1e-200, 1e200]
NAMES = [None, ("a", "b", "c"), (10, 20, 30)]
BAD = [np.nan, np.inf, -0.5, 1.5]


def estimator(function):
    def call(y, p, sample_weight=None, labels=None):
        fitted = CalibrationErrorEstimator(function, "confidence", labels=labels)
        return fitted.fit(p, y, sample_weight).score(p, y, sample_weight)

    return call


def callables():
    """Functions of labels and predictions, by name, and whether they take weights."""
    found = {}
    for package in (metrics, hypothesis_tests):
        for name in package.__all__:
            function = getattr(package, name)
            takes = inspect.signature(function).parameters
            needed = [key for key, one in takes.items() if one.default is one.empty]
            plain = all(takes[key].kind is takes[key].VAR_KEYWORD for key in needed[2:])
            if inspect.isfunction(function) and needed[:2] == ["y_true", "y_proba"] and plain:
                found[name] = function, list(takes)
    for function in (Binning(4), TwoStepKernelRidge(1e-2), PlugIn(TemperatureScaling())):
        found[f"estimator, {function}"] = estimator(function), ["sample_weight", "labels"]
    return found


CALLABLES = callables()


def number(result):
    """A result as an array of numbers."""
    for name in ("pvalue", "gap", "estimate", "miscalibration", "score", "slope"):
        if hasattr(result, name):
            return np.asarray(getattr(result, name), dtype=float)
    return np.asarray(result, dtype=float)


def call(name, y, p, **options):
    function, takes = CALLABLES[name]
    extra = {"random_state": 0, "n_resamples": 19}
    extra = {key: value for key, value in extra.items() if key in takes}
    options = {key: value for key, value in options.items() if value is not None and key in takes}
    return number(function(y, p, **extra, **options))


def one_call(seed, expected):
    """Name and outcome of one random call."""
    rng = np.random.default_rng(seed)
    name = list(expected)[rng.integers(len(expected))]
    pick = lambda choices: list(choices)[rng.integers(len(choices))]  # noqa: E731
    dtype, names, scale = pick(DTYPES), pick(NAMES), pick(SCALES)
    p = PROBA.astype(dtype)
    broken = rng.random() < 0.2
    if broken:
        p[rng.integers(N), rng.integers(3)] = pick(BAD)
    y = LABELS if names is None else np.array(names)[LABELS]
    weight = None if scale is None else CONTAINERS[pick(CONTAINERS)](np.full(N, scale))
    try:
        found = call(
            name,
            CONTAINERS[pick(CONTAINERS)](y),
            CONTAINERS[pick(CONTAINERS)](p),
            sample_weight=weight,
            labels=names,
        )
    except (ValueError, TypeError):
        if not broken:
            raise
        return name, "refused"
    assert not broken, (name, seed)
    atol = 1e-6 if np.dtype(dtype).itemsize < 8 else 1e-9
    assert_allclose(found, expected[name], rtol=1e-5, atol=atol, err_msg=f"{name}, seed {seed}")
    return name, "answered"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "count", [pytest.param(300, id="quick"), pytest.param(10**5, marks=pytest.mark.slow)]
)
def test_any_call_says_what_the_plain_call_says_or_refuses(count, capsys):
    expected = {}
    for name in CALLABLES:
        # Left out: those of binary predictions alone, and curves, which are no number.
        with contextlib.suppress(ValueError, TypeError):
            expected[name] = call(name, LABELS, PROBA)
    assert len(expected) > 20
    before = process_state()
    with ThreadPoolExecutor(8) as pool:
        table = Counter(pool.map(lambda seed: one_call(seed, expected), range(count)))
    assert process_state() == before
    with capsys.disabled():
        if count > 1000:
            for name in expected:
                print(f"{name:45} {table[name, 'answered']:6} {table[name, 'refused']:6}")
    assert sum(table.values()) == count
