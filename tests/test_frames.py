"""Columns of Arrow tables are read as their values, missing ones as missing."""

import numpy as np
import pytest

from skcal import Recalibrator, calibration_report
from skcal._validation import decoded
from skcal.hypothesis_tests import monte_carlo_test, segment_test
from skcal.metrics import CalibrationAccumulator, expected_calibration_error

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
        lambda: CalibrationAccumulator(labels=list("abc")).partial_fit(LACKING, PROBA),
        lambda: calibration_report(LABELS, PROBA, groups=LACKING),
        lambda: calibration_report(LABELS, PROBA, groups=pa.table({"site": LACKING})),
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
