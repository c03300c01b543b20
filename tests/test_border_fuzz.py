"""Whatever is passed in: the right answer, or an error that names the argument; never a change.

Tests of single messages are in test_validation.py; here every public entrance gets everything.
"""

import re
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from each_case import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from input_forms import BAD_LABELS, BAD_WEIGHTS, LABEL_FORMS, READABLE, UNREADABLE
from numpy.testing import assert_allclose
from sklearn.utils.fixes import parse_version

import skcal
from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    CalibrationTable,
    Zero,
    calibration_report,
)
from skcal._validation import InputError
from skcal.hypothesis_tests import monte_carlo_test
from skcal.metrics import expected_calibration_error
from skcal.monitoring import CalibrationMonitor

pytestmark = pytest.mark.usefixtures("few_draws")

# Entrances


def metric(y, p, w=None, labels=None):
    return expected_calibration_error(y, p, sample_weight=w, labels=labels)


def hypothesis_test(y, p, w=None, labels=None):
    options = {"sample_weight": w, "labels": labels, "n_resamples": 19, "random_state": 0}
    return monte_carlo_test(y, p, **options).statistic


def estimator(y, p, w=None, labels=None):
    fitted = CalibrationErrorEstimator(Binning(5), notion="auto", labels=labels).fit(p, y, w)
    return [fitted.squared_error(p, w), fitted.score(p, y, w)]


def search(y, p, w=None, labels=None):
    candidates = [(Zero(), {}), (Binning(2), {})]
    fitted = CalibrationErrorSearchCV(candidates, "auto", labels, cv=3, random_state=0)
    fitted.fit(p, y, w)
    return [fitted.squared_error_, fitted.best_risk_, fitted.score(p, y, w)]


def report(y, p, w=None, labels=None):
    options = {"n_resamples": 19, "random_state": 0}
    made = calibration_report(y, p, labels=labels, **options)
    return [made.overall.ece.estimate, made.overall.overview.n_samples]


def table(y, p, w=None, labels=None):
    counted = CalibrationTable(labels=labels).update(y, p, sample_weight=w)
    return expected_calibration_error(counted)


def monitor(y, p, w=None, labels=None):
    return CalibrationMonitor(labels=labels).update(p, y, w).log_e_value_


CHEAP = [metric, hypothesis_test, estimator, table, monitor]
ENTRANCES = [*CHEAP, search, report]
every_entrance = pytest.mark.parametrize("entrance", ENTRANCES)
every_entrance_and_dimension = pytest.mark.parametrize(
    ("entrance", "dimensions"), [*((one, 1) for one in CHEAP), *((one, 2) for one in ENTRANCES)]
)


def forms_for(entrance, forms):
    """All forms, and of what takes long, but reads by the same functions, every ninth."""
    return list(forms) if entrance in CHEAP else list(forms)[::9]


# The contract


BORDER = [
    str(Path(skcal.__file__).parent / name)
    for name in (
        "_validation.py",
        "_labels.py",
        "sample.py",
        "table/reading.py",
        "monitoring/monitor.py",  # labels that only a table may lack
        "table/table.py",
        "monitoring/layout.py",
    )
] + [str(Path(sklearn.__file__).parent / "utils")]
ARGUMENT = re.compile(
    r"\b(y_true|y_proba|proba|labels|sample_weight|sample weights|weight|pos_label|[PyX])\b"
    r"|Sample weights|1D array"
)


def innermost(error):
    return traceback.extract_tb(error.__traceback__)[-1].filename


def assert_refused(error):
    """The error was raised on purpose, by skcal's or scikit-learn's checks, and names what."""
    assert type(error) in (ValueError, TypeError, InputError), repr(error)
    assert ARGUMENT.search(str(error)), str(error)
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    assert any(innermost(one).startswith(place) for place in BORDER for one in chain), [
        innermost(one) for one in chain
    ]


def assert_answered(entrance, arguments, expected, rtol=1e-6):
    assert_allclose(entrance(**arguments), expected, rtol=rtol, atol=1e-9)


# Data: sixteenths, which every float dtype holds exactly


def make():
    rng = np.random.default_rng(3)
    cuts = np.sort(rng.integers(0, 17, size=(30, 2)), axis=1)
    proba = np.diff(cuts, axis=1, prepend=0, append=16) / 16
    return np.arange(30) % 3, proba


LABELS, PROBA = make()
BINARY, POSITIVE = (LABELS == 1).astype(int), PROBA[:, 1].copy()
WEIGHT = np.array([0, 0.5, 1, 2])[np.arange(30) % 4]
ONE_HOT = np.eye(3)[(LABELS + (np.arange(30) % 5 == 0)) % 3]


@every_entrance_and_dimension
def test_predictions_in_any_form_give_the_right_answer(entrance, dimensions, tmp_path):
    y, p = (BINARY, POSITIVE) if dimensions == 1 else (LABELS, PROBA)
    before, expected = p.copy(), entrance(y, p)

    def check(form):
        given_p = READABLE[form](p, tmp_path)
        assert_answered(entrance, {"y": y, "p": given_p}, expected)
        np.testing.assert_array_equal(p, before)
        np.testing.assert_array_equal(np.asarray(given_p, dtype=float), before)

    for_each(forms_for(entrance, READABLE), check)


@pytest.mark.filterwarnings("ignore:All predictions in")
@every_entrance
def test_certain_predictions_may_be_integers(entrance):
    expected = entrance(LABELS, ONE_HOT)

    def check(dtype):
        assert_answered(entrance, {"y": LABELS, "p": ONE_HOT.astype(dtype)}, expected)

    for_each(forms_for(entrance, [bool, np.int8, np.int64, np.uint8]), check)


@every_entrance
def test_labels_in_any_form_give_the_right_answer(entrance, tmp_path):
    before, expected = LABELS.copy(), entrance(LABELS, PROBA)

    def check(form):
        if form == "StringDType" and parse_version(np.__version__) < parse_version("2.1"):
            return  # copies of such arrays crash numpy 2.0
        y = LABEL_FORMS[form](LABELS, tmp_path)
        assert_answered(entrance, {"y": y, "p": PROBA}, expected, rtol=1e-12)
        np.testing.assert_array_equal(LABELS, before)

    for_each(forms_for(entrance, LABEL_FORMS), check)


@pytest.mark.parametrize("entrance", [one for one in ENTRANCES if one is not report])
def test_weights_in_any_form_give_the_right_answer(entrance, tmp_path):
    before, expected = WEIGHT.copy(), entrance(LABELS, PROBA, WEIGHT)

    def check(form):
        w = READABLE[form](WEIGHT, tmp_path)
        assert_answered(entrance, {"y": LABELS, "p": PROBA, "w": w}, expected, rtol=1e-12)
        np.testing.assert_array_equal(WEIGHT, before)

    for_each(forms_for(entrance, READABLE), check)


@every_entrance
def test_labels_of_columns_in_any_form_give_the_right_answer(entrance):
    names = ["b", "c", "a"]
    forms = {
        "list": names,
        "object strings": np.array(names, dtype=object),
        "tuple": tuple(names),
        "Index": pd.Index(names),
        "Categorical": pd.Categorical(names),
    }
    expected = entrance(LABELS, PROBA, labels=[0, 1, 2])

    def check(form):
        arguments = {"y": np.array(names)[LABELS], "p": PROBA, "labels": forms[form]}
        assert_answered(entrance, arguments, expected, rtol=1e-12)

    for_each(forms_for(entrance, forms), check)


@every_entrance
def test_a_data_frame_with_two_columns_of_a_name_is_read_or_refused_by_name(entrance):
    frame = pd.DataFrame(PROBA, columns=["a", "a", "b"])
    try:
        value = entrance(LABELS, frame, labels=[0, 1, 2])
    except ValueError as error:
        assert_refused(error)
    else:
        assert_allclose(value, entrance(LABELS, PROBA), rtol=1e-12)


@every_entrance_and_dimension
def test_polars_is_read(entrance, dimensions):
    pl = pytest.importorskip("polars")
    y = pl.Series(LABELS.tolist())
    p, expected = pl.DataFrame(PROBA.tolist(), orient="row"), entrance(LABELS, PROBA)
    if dimensions == 1:
        y, p, expected = pl.Series(BINARY), pl.Series(POSITIVE), entrance(BINARY, POSITIVE)
    assert_answered(entrance, {"y": y, "p": p}, expected, rtol=1e-12)


# What no one can read


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@every_entrance_and_dimension
def test_predictions_that_are_none_are_refused_by_name(entrance, dimensions):
    y, p = (BINARY, POSITIVE) if dimensions == 1 else (LABELS, PROBA)
    before = p.copy()

    def check(kind):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            entrance(y, UNREADABLE[kind](p))
        assert_refused(caught.value)
        np.testing.assert_array_equal(p, before)

    for_each(UNREADABLE, check)


@every_entrance
def test_labels_that_are_none_are_refused_by_name(entrance):
    before = LABELS.copy()

    def check(kind):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            entrance(BAD_LABELS[kind](LABELS), PROBA)
        assert_refused(caught.value)
        np.testing.assert_array_equal(LABELS, before)

    for_each(BAD_LABELS, check)


@pytest.mark.parametrize("entrance", [one for one in ENTRANCES if one is not report])
def test_weights_that_are_none_are_refused_by_name(entrance):
    before = WEIGHT.copy()

    def check(kind):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            entrance(LABELS, PROBA, BAD_WEIGHTS[kind](WEIGHT))
        assert_refused(caught.value)
        np.testing.assert_array_equal(WEIGHT, before)

    for_each(BAD_WEIGHTS, check)


BAD_NAMES = {
    "number": 3,
    "string": "abc",
    "too few": [0, 1],
    "too many": [0, 1, 2, 3],
    "twice": [0, 1, 1],
    "other type": ["a", "b", "c"],
    "rows": np.eye(3),
    "NaN": [0, 1, np.nan],
    "None inside": [0, 1, None],
    "ragged": [[0], [1, 2], 3],
    "lists": [[0], [1], {}],
    "dictionary": {0: "a", 1: "b", 2: "c"},
    "empty": [],
}


@every_entrance
def test_labels_of_columns_that_are_none_are_refused_by_name(entrance):
    def check(kind):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            entrance(LABELS, PROBA, labels=BAD_NAMES[kind])
        # scikit-learn's own refusal of a parameter needs no more.
        if not type(caught.value).__name__.endswith("ParameterError"):
            assert_refused(caught.value)

    for_each(BAD_NAMES, check)


@pytest.mark.parametrize("pos_label", [2, "b", None, np.nan, [1], {}, np.array([1, 0]), b"1", 1.5])
def test_a_positive_class_that_is_none_is_refused_by_name(pos_label):
    if pos_label is None:
        arguments = {"y_true": np.array(["a", "b"])[BINARY]}
    else:
        arguments = {"y_true": BINARY, "pos_label": pos_label}
    with pytest.raises(Exception) as caught:  # noqa: PT011
        expected_calibration_error(y_proba=POSITIVE, **arguments)
    assert_refused(caught.value)


# Both at random

CELLS = [
    *(0.0, -0.0, 5e-324, 1e-300, 1e-17, -1e-17, 1 + 2e-16, 1 - 1e-16, 0.5, 1.0, 2.0, -1.0, 1e300),
    *(np.nan, np.inf, -np.inf, 1e-9, -1e-9, 1 + 1e-9, 0.30000000000000004),
]
DTYPES = [np.float64, np.float32, np.float16, np.longdouble, object, bool, np.int32, ">f4"]


@pytest.mark.filterwarnings("ignore:All predictions in")
@pytest.mark.parametrize(
    "examples",
    [pytest.param(25, id="quick"), pytest.param(3000, id="thorough", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("entrance", CHEAP)
def test_any_cell_in_any_dtype_is_refused_or_read_as_it_stands(entrance, examples):

    @settings(max_examples=examples, derandomize=True, deadline=None)
    @given(
        row=st.integers(0, 29),
        column=st.integers(0, 2),
        cell=st.sampled_from(CELLS),
        dtype=st.sampled_from(DTYPES),
        scalar=st.booleans(),
        order=st.sampled_from("CF"),
    )
    def holds(row, column, cell, dtype, scalar, order):
        y, p = (BINARY, POSITIVE.copy()) if scalar else (LABELS, PROBA.copy(order=order))
        p[row if scalar else (row, column)] = cell
        with np.errstate(all="ignore"):
            p = p.astype(dtype) if np.isfinite(cell) or np.dtype(dtype).kind in ("f", "O") else p
        before = p.copy()
        try:
            value = entrance(y, p)
        except (ValueError, TypeError) as error:
            assert_refused(error)
        else:
            clean = np.clip(np.asarray(p, dtype=np.float64), 0, 1)
            assert np.isfinite(clean).all()
            # A value beside a bin's edge may fall on its other side in another precision.
            clean = clean if np.dtype(dtype).itemsize > 4 else clean.astype(np.float32)
            assert_allclose(value, entrance(y, clean), rtol=1e-5, atol=1e-7)
        assert repr(p.tolist()) == repr(before.tolist())  # NaN among objects equals nothing

    holds()
