"""Containers of other libraries: columns of Arrow tables, indices of pandas, the array API."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy
from sklearn.utils.fixes import parse_version

from skcal import CalibrationErrorSearchCV, CalibrationTable, Recalibrator, calibration_report
from skcal._validation import InputError, decoded, of_series
from skcal.hypothesis_tests import monte_carlo_test, segment_test
from skcal.metrics import expected_calibration_error
from skcal.recalibration import TemperatureScaling

pa = pytest.importorskip("pyarrow")
N = 60
RNG = np.random.default_rng(0)
PROBA = RNG.dirichlet(np.ones(3), N)
LABELS = np.array(list("abc"))[RNG.integers(3, size=N)]


def in_chunks(values):
    """A column of a table, of two chunks whose dictionaries have another order."""
    halves = values[: len(values) // 2], values[len(values) // 2 :]
    return pa.chunked_array([pa.array(half).dictionary_encode() for half in halves])


LACKING = in_chunks([None, *LABELS[1:].tolist()])


@pytest.mark.parametrize(
    "values",
    [["a", None, "b", "a"], [1, None, 7, 1], [0.5, None, 0.25, 0.5], [b"a", None, b"b", b"a"]],
)
def test_values_stand_in_place_of_codes(values):
    assert decoded(in_chunks(values)).to_pylist() == values
    table = pa.table({"x": in_chunks(values), "y": [1, 2, 3, 4]})
    assert decoded(table).to_pydict() == {"x": values, "y": [1, 2, 3, 4]}


def test_what_is_no_dictionary_is_left_as_it_is():
    for values in (LABELS, LABELS.tolist(), pa.array(LABELS), pa.table({"y": LABELS}), None, 1.0):
        assert decoded(values) is values


@pytest.mark.parametrize(
    "call",
    [
        lambda: expected_calibration_error(LACKING, PROBA),
        lambda: monte_carlo_test(LACKING, PROBA),
        lambda: Recalibrator().fit(PROBA, LACKING),
        lambda: CalibrationTable(labels=list("abc")).update(LACKING, PROBA),
        lambda: calibration_report(LABELS, PROBA, by=LACKING),
        lambda: calibration_report(LABELS, PROBA, by=pa.table({"site": LACKING})),
    ],
)
def test_a_missing_label_of_a_dictionary_is_missing(call):
    with pytest.raises(ValueError, match=r"row 0 is missing|row 0: is missing"):
        call()


def test_missing_numbers_of_a_dictionary_are_missing():
    first = in_chunks([None, *PROBA[1:, 0].tolist()])
    with pytest.raises(ValueError, match="row 0"):
        expected_calibration_error(
            LABELS, pa.table({"a": first, "b": PROBA[:, 1], "c": PROBA[:, 2]})
        )
    weight = in_chunks([None, *[1.0] * (N - 1)])
    with pytest.raises(ValueError, match="sample_weight"):
        expected_calibration_error(LABELS, PROBA, sample_weight=weight)


def test_missing_values_of_a_feature_are_a_segment_of_their_own():
    column = [None] * 20 + LABELS[20:].tolist()
    options = {"n_resamples": 19, "random_state": 0, "min_samples": 2}
    plain = segment_test(LABELS, PROBA, pa.table({"x": column}), **options)
    coded = segment_test(LABELS, PROBA, pa.table({"x": in_chunks(column)}), **options)
    assert str(coded) == str(plain)
    assert "x missing" in str(plain.segments)


def test_indices_of_other_rows_may_differ():
    pd = pytest.importorskip("pandas")
    proba = pd.DataFrame(PROBA, columns=list("abc"))
    labels = pd.Series(LABELS)
    expected_calibration_error(labels.set_axis(range(100, 100 + N)), proba)  # of a split of data
    expected_calibration_error(labels, proba.sort_values("a").reset_index(drop=True))
    shuffled = pd.Series(np.ones(N)).sample(frac=1, random_state=0)
    with pytest.raises(InputError, match=r"^sample_weight row 0 .*, y_true 0: the same in another"):
        expected_calibration_error(
            labels, proba.set_axis(range(100, 100 + N)), sample_weight=shuffled
        )


def test_columns_whose_names_are_no_labels_are_refused_unless_labels_tell(rng):
    pd = pytest.importorskip("pandas")
    p = rng.uniform(size=300)
    bad = (rng.uniform(size=300) < p).astype(int)
    frame = pd.DataFrame({"bad": p, "good": 1 - p})
    reason = r"^y_proba has the columns \['bad', 'good'\], which do not name all labels of y_true"
    for columns in (frame, frame[["good", "bad"]]):
        with pytest.raises(InputError, match=r"'good'.*'bad'|'bad'.*'good'"):
            expected_calibration_error(bad, columns)
    with pytest.raises(InputError, match=reason):
        expected_calibration_error(bad, frame)
    named = frame.rename(columns={"bad": 1, "good": 0})
    expected = expected_calibration_error(bad, p)
    assert expected_calibration_error(bad, frame, labels=[1, 0]) == pytest.approx(expected)
    assert expected_calibration_error(bad, named) == pytest.approx(expected)
    unnamed = pd.DataFrame(np.column_stack([1 - p, p]))
    assert expected_calibration_error(bad, unnamed) == pytest.approx(expected)
    for estimator in (Recalibrator(), TemperatureScaling(), CalibrationErrorSearchCV()):
        with pytest.raises(ValueError, match=r"^X has the columns \['bad', 'good'\]"):
            estimator.fit(frame, bad)


def test_columns_of_shares_are_those_of_the_predictions():
    pd = pytest.importorskip("pandas")
    shares, proba = np.full((4, 2), 0.5), np.tile([0.25, 0.75], (4, 1))
    y, p = pd.DataFrame(shares, columns=["a", "b"]), pd.DataFrame(proba, columns=["a", "b"])
    assert expected_calibration_error(y, p) == expected_calibration_error(shares, proba) == 0.25
    for other in (["b", "a"], ["a", "c"]):
        with pytest.raises(InputError, match=r"^y_true has the columns .* than y_proba"):
            expected_calibration_error(y.set_axis(other, axis=1), p)


def test_categories_in_another_order_than_the_columns_are_warned_of():
    pd = pytest.importorskip("pandas")
    y = pd.Categorical(["low", "high", "mid"] * 5, ["low", "mid", "high"])
    p = np.random.default_rng(0).dirichlet(np.ones(3), 15)
    with pytest.warns(UserWarning, match=r"y_true has the categories .*low.*Pass labels="):
        read_in_sorted_order = expected_calibration_error(y, p)
    told = expected_calibration_error(y, p, labels=y.categories)  # without a warning
    in_order = p[:, [2, 0, 1]]  # high, low, mid
    assert told == pytest.approx(expected_calibration_error(np.asarray(y), in_order), abs=1e-15)
    assert told != pytest.approx(read_in_sorted_order, abs=1e-3)
    expected_calibration_error(y, pd.DataFrame(p, columns=y.categories))
    for categories in (["high", "low", "mid"], ["high", 0, "low", "mid", "a"]):  # two are unused
        assert expected_calibration_error(pd.Categorical(y, categories), p) == read_in_sorted_order


def test_categories_of_polars_are_read_as_strings():
    pl = pytest.importorskip("polars")
    y, p = list("abc") * 5, np.random.default_rng(0).dirichlet(np.ones(3), 15)
    coded = pl.Series(y).cast(pl.Categorical)
    assert expected_calibration_error(coded, p) == expected_calibration_error(y, p)


ARRAY_API = """
import {library} as xp, numpy as np
from sklearn import config_context
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as LDA
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from skcal import *
from skcal.metrics import expected_calibration_error
from skcal.recalibration import TemperatureScaling
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(3), 60)
Y = (P.cumsum(axis=1) < rng.uniform(size=(60, 1))).sum(axis=1)
p, y, w = xp.asarray(P), xp.asarray(Y), xp.asarray(np.ones(60))
with config_context(array_api_dispatch=True):
    error = expected_calibration_error(y, p, sample_weight=w)
    assert error == expected_calibration_error(Y, P), error
    estimator = CalibrationErrorEstimator().fit(p, y)
    assert estimator.score(p, y) == CalibrationErrorEstimator().fit(P, Y).score(P, Y)
    for map in (TemperatureScaling(), Recalibrator([TemperatureScaling()], cv=3, random_state=0)):
        proba = map.fit(p, y).predict_proba(p)
        assert type(proba) is type(p), type(proba)
        assert (np.asarray(proba) == map.fit(P, Y).predict_proba(P)).all()
        assert (np.asarray(map.predict(p)) == map.predict(P)).all()
        assert type(map.predict(p)) is type(p)
    X, x = P[:, :2], xp.asarray(P[:, :2])
    plain = RecalibratedClassifierCV(LDA(), TemperatureScaling(), cv=3).fit(X, Y)
    given = RecalibratedClassifierCV(LDA(), TemperatureScaling(), cv=3).fit(x, y)
    proba = given.predict_proba(x)
    assert type(proba) is type(x)
    assert np.allclose(np.asarray(proba), plain.predict_proba(X))
    assert type(given.predict(x)) is type(x)
    assert (np.asarray(given.predict(x)) == plain.predict(X)).all()
    words = np.array(["low", "mid", "high"])[Y]
    plain = RecalibratedClassifierCV(LDA(), TemperatureScaling(), cv=3).fit(X, words)
    given = RecalibratedClassifierCV(LDA(), TemperatureScaling(), cv=3).fit(x, words)
    assert (given.classes_ == plain.classes_).all()
    assert np.allclose(np.asarray(given.predict_proba(x)), plain.predict_proba(X))
    assert (given.predict(x) == plain.predict(X)).all()
    R = np.eye(3)[Y] - P
    r, functions = xp.asarray(R), [
        Zero(), Binning(strategy="median-variance"), DirichletKernelDensity(0.1),
        KroneckerKernelRidge(), TwoStepKernelRidge(), PlugIn(TemperatureScaling()),
        Stacking([Zero(), TwoStepKernelRidge()], random_state=0),
    ]
    for function in functions:
        plain, given = clone(function).fit(P, R, np.ones(60)), clone(function).fit(p, r, w)
        for a, b in ((plain.predict(P), given.predict(p)),
                     (plain.predict_pairs(P, P[:7]), given.predict_pairs(p, p[:7, :]))):
            assert type(b) is type(p), type(b)
            assert (np.asarray(b) == a).all()
        assert (given.feature_map(p) == plain.feature_map(P)).all()
        assert (given.score(p, r), given.risk(p, r, w).value) == (
            plain.score(P, R), plain.risk(P, R).value)
        assert GridSearchCV(function, {{}}, cv=2).fit(p, r).best_score_ == (
            GridSearchCV(function, {{}}, cv=2).fit(P, R).best_score_)
    pointwise = CalibrationErrorEstimator().fit(p, y).predict(p)
    assert type(pointwise) is type(p)
    assert (np.asarray(pointwise) == CalibrationErrorEstimator().fit(P, Y).predict(P)).all()
map.fit(P, Y)
assert type(map.predict_proba(p)) is np.ndarray
"""


@pytest.mark.skipif(
    parse_version(scipy.__version__) < parse_version("1.14"),
    reason="scikit-learn dispatches to other libraries from scipy 1.14 on",
)
@pytest.mark.parametrize(
    "library", ["array_api_strict", pytest.param("torch", marks=pytest.mark.integrations)]
)
def test_arrays_of_other_libraries_are_taken_and_come_back(library):
    pytest.importorskip(library)
    done = subprocess.run(
        [sys.executable, "-c", ARRAY_API.format(library=library)],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "Float64", "object"])
@pytest.mark.parametrize("of_labels", ["int64", "int8", "bool", "float64", "Int64", "object"])
def test_series_are_read_as_their_arrays(dtype, of_labels):
    """Those of numpy's numbers at once, others by scikit-learn's checks."""
    pd = pytest.importorskip("pandas")
    p = np.round(RNG.random(N), 2)
    y = RNG.integers(2, size=N)
    given = pd.Series(y, name="y").astype(of_labels), pd.Series(p, name="p").astype(dtype)
    exact = p.astype(dtype if dtype in ("float32", "float16") else "float64")
    weight = pd.Series(RNG.integers(1, 4, N))
    error = expected_calibration_error(*given, sample_weight=weight)
    assert error == expected_calibration_error(y, exact, sample_weight=weight.to_numpy())
    assert isinstance(of_series(given[1]), np.ndarray) == (dtype[0] == "f")
    with pytest.raises(InputError, match=r"y_proba row 1 is NaN|y_proba.*NaN|contains NaN"):
        expected_calibration_error(given[0], given[1].where(np.arange(N) != 1))
    with pytest.raises(InputError, match="same in another order"):
        expected_calibration_error(given[0], given[1][::-1])
