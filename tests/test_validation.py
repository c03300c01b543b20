"""The border: what is let in, and what every refusal says."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, log_softmax, softmax
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_array

from skcal import Binning, CalibrationErrorEstimator, Recalibrator, Zero
from skcal._labels import check_labels, column_names
from skcal._validation import (
    FLOATS,
    InputError,
    check_predictions,
    check_proba,
    check_weight,
    is_plain,
    read_features,
    row_blocks,
)
from skcal.displays import RecalibrationDisplay
from skcal.metrics import bootstrap_interval, expected_calibration_error
from skcal.recalibration import Mixture, TemperatureScaling, VectorScaling
from skcal.sample import read_sample

PROBA = np.array([[0.25, 0.25, 0.5], [0.5, 0.25, 0.25], [0.125, 0.125, 0.75]])
POSITIVE = np.array([0.25, 0.5, 0.75])


def with_entry(value, row=1, column=1, proba=PROBA):
    changed = proba.copy()
    changed[(row, column)[: proba.ndim]] = value
    return changed


def pandas_frame(values):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(values) if values.ndim == 2 else pd.Series(values)


def single_precision_softmax():
    logits = np.random.default_rng(0).normal(scale=4, size=(300, 1000))
    return softmax(logits.astype(np.float32), axis=1)


# Arrays that need no more than a look.


def test_plain_arrays_are_those_that_the_checks_of_scikit_learn_return_as_they_are():
    fractions = np.linspace(0, 1, 12).reshape(4, 3)
    plain = [fractions, fractions.astype(np.float32), fractions.T, fractions[:, ::2], POSITIVE]
    for array in plain:
        assert is_plain(array, 1, 2)
        assert check_array(array, dtype=FLOATS, ensure_2d=False) is array
    others = [
        *(fractions.tolist(), np.ma.array(fractions), fractions.view(np.matrix), np.float64(0.5)),
        *(fractions.astype(kind) for kind in (">f8", np.float16, np.longdouble, object, int)),
        *(fractions[:0], fractions[None], with_entry(np.nan), with_entry(-np.inf), None),
    ]
    assert [array for array in others if is_plain(array, 1, 2)] == []
    assert is_plain(np.full((2, 2), 1e308), 2)  # whose sum overflows
    assert not is_plain(POSITIVE, 2)


@pytest.mark.filterwarnings("error")
def test_features_leave_the_number_and_the_names_of_columns_behind():
    pd = pytest.importorskip("pandas")
    estimator = BaseEstimator()
    assert read_features(estimator, PROBA) is PROBA
    assert estimator.n_features_in_ == 3
    with pytest.raises(ValueError, match="X has 2 features, but BaseEstimator is expecting 3"):
        read_features(estimator, PROBA[:, :2], reset=False)
    read_features(estimator, pd.DataFrame(PROBA, columns=["a", "b", "c"]))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        read_features(estimator, PROBA, reset=False)
    read_features(estimator, PROBA[:, :2])
    assert estimator.n_features_in_ == 2
    assert not hasattr(estimator, "feature_names_in_")


# Probabilities that are let in.


@pytest.mark.parametrize("given", ["f8", "f4", "f2", "g", "i8", "?", "O"])
def test_storage_stays_single_only_where_it_was_single_or_less(given):
    checked = check_proba(np.eye(3).astype(given))
    assert checked.dtype == (np.float32 if given in ("f4", "f2") else np.float64)
    np.testing.assert_array_equal(checked, np.eye(3))


@pytest.mark.parametrize(
    ("dtype", "explained"), [(np.float64, 1e-6), (np.float32, 1e-6), (np.float16, 2e-3)]
)
def test_a_row_may_miss_1_by_what_its_dtype_explains(dtype, explained):
    proba = single_precision_softmax().astype(dtype)
    miss = np.abs(proba.sum(axis=1, dtype=np.float64) - 1).max()
    assert 1e-8 < miss < explained
    np.testing.assert_array_equal(check_proba(proba), proba)  # accepted, and not renormalised


class Tensor:
    """As a tensor of torch with numbers of 16 bits, which numpy does not have."""

    dtype, ndim = "torch.bfloat16", 2

    def __init__(self, values):
        bits = np.asarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000  # to even
        self.values = rounded.astype(np.uint32).view(np.float32)
        self.shape = self.values.shape

    def detach(self):
        return self

    cpu = float = detach

    def numpy(self):
        return self.values


Tensor.__module__ = "torch"


def test_rows_of_bfloat16_may_miss_1_by_its_rounding():
    rows = Tensor(single_precision_softmax())
    miss = np.abs(rows.values.sum(axis=1, dtype=np.float64) - 1)
    assert 2e-3 < miss.max() < 1.6e-2
    np.testing.assert_array_equal(check_proba(rows), rows.values)
    with pytest.raises(InputError, match="sums to"):
        check_proba(rows.values)
    with pytest.raises(InputError, match="sums to"):
        check_proba(Tensor(0.98 * single_precision_softmax()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [slice(None), 0])
def test_rounding_beyond_0_and_1_is_read_as_0_and_1(dtype, columns):
    eps = np.finfo(dtype).eps
    rows = np.array([[0.5, 0.5], [1 + eps, -eps], [-4 * eps, 1 + 4 * eps]], dtype=dtype)
    checked = check_proba(rows[:, columns])
    assert checked.dtype == dtype
    np.testing.assert_array_equal(checked, np.array([[0.5, 0.5], [1, 0], [0, 1]])[:, columns])


def test_logits_become_probabilities_on_request():
    logits = np.array([[3.0, -1.0, 0.5], [-800.0, 800.0, 0.0]])
    for given, map_ in ((logits, lambda z: softmax(z, axis=1)), (logits[1], expit)):
        proba, logarithms = check_predictions(given, True)
        # Two roundings of the same map.
        np.testing.assert_allclose(proba, map_(given), rtol=1e-15)
        expected = given if given.ndim == 1 else log_softmax(given, axis=1)
        np.testing.assert_array_equal(logarithms, expected)


def test_probabilities_of_float32_logits_are_float64():
    logits = np.array([[20.0, -20.0, 0.5]], dtype=np.float32)
    for given in (logits, logits[0]):
        proba, logarithms = check_predictions(given, True)
        assert proba.dtype == logarithms.dtype == np.float64
        np.testing.assert_array_equal(proba, check_predictions(given.astype(float), True)[0])


@pytest.mark.parametrize("given", [PROBA, POSITIVE])
def test_probabilities_have_no_logits(given):
    for option in (None, False):
        proba, logarithms = check_predictions(given, option)
        assert logarithms is None
        np.testing.assert_array_equal(proba, check_proba(given))


def test_who_may_have_logits_is_told_of_the_option_where_there_is_one():
    told = {}
    for option in (None, False):
        with pytest.raises(ValueError, match="If these are logits") as error:
            check_predictions([[3.0, -1.0]], option)
        told[option] = str(error.value)
    assert told[False] == told[None].removesuffix(".") + " or from_logits=True."


# Probabilities that are refused.

SUM = (
    r"^y_proba row 1 sums to {}, not 1\. Pass predict_proba output, or divide each row by its sum\."
)
ROUNDED = r"^y_proba row 1 sums to {}, not 1\. If it was rounded .* skcal\.metrics\.normalize_proba"
LOGITS = r"^y_proba row 1 sums to {}, not 1\. If .* logits, apply scipy\.special\.softmax\(.*1\)\.$"
RANGE = r"^y_proba row 1{} is {}, not a probability in \[0, 1\]\. .*predict_proba.*softmax or expit"
NEAR = r"^y_proba row 1{} is {}, not a probability in \[0, 1\]\. .*numpy\.clip\(y_proba, 0, 1\)"


@pytest.mark.parametrize(
    ("proba", "match"),
    [
        (with_entry(0.251), ROUNDED.format(r"1\.001")),
        (with_entry(0.35), SUM.format(r"1\.1")),
        (with_entry(0.249), ROUNDED.format(r"0\.999")),
        (with_entry(0.25 + 2e-5), ROUNDED.format(r"1\.00002")),
        (with_entry(0.251).astype(np.float32), ROUNDED.format(r"1\.001")),
        (with_entry(0.26).astype(np.float16), SUM.format(r"1\.01\d*")),
        ([[0.5, 0.5], [3.0, 1.0]], LOGITS.format("4")),
        ([[0.5, 0.5], [-3.0, 1.0]], LOGITS.format("-2")),
        ([[0.5, 0.5], [1.0000001, 0.0]], NEAR.format(", column 0", r"1\.0000001")),
        ([[0.5, 0.5], [-1e-7, 1 + 1e-7]], NEAR.format(", column 0", "-1e-07")),
        ([[0.5, 0.5], [1.2, -0.2]], RANGE.format(", column 0", r"1\.2")),
        ([[0.5, 0.5], [3.0, -2.0]], RANGE.format(", column 0", "3")),
        ([0.5, -0.2, 2.0], RANGE.format("", r"-0\.2")),
        ([0.5, 1.0000001, 0.0], NEAR.format("", r"1\.0000001")),
        ([0, 2, 1], RANGE.format("", "2")),  # labels in the place of probabilities
        (np.ma.masked_greater(PROBA, 0.7), r"^y_proba is masked\. Drop the masked rows"),
        (PROBA[:, :1], r"^y_proba has a single column.*as a 1-D array, y_proba\.ravel\(\)"),
        (0.5, r"^y_proba has 0 dimensions\. Pass \(n_samples,\) prob"),
        (PROBA[None], r"^y_proba has 3 dimensions\. Pass \(n_samples,\) prob"),
        (np.empty(0), r"0 sample\(s\).*minimum of 1"),
        (np.empty((0, 3)), r"0 sample\(s\).*minimum of 1"),
        (PROBA.astype(complex), "Complex data not supported"),
        (sparse.csr_array(PROBA), r"y_proba.*dense.*toarray"),
    ],
)
def test_a_refusal_names_the_argument_the_first_offender_and_the_remedy(proba, match):
    error = TypeError if sparse.issparse(proba) else ValueError
    with pytest.raises(error, match=match):
        check_proba(proba)


NOT_FINITE = [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]


@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("proba", [PROBA, POSITIVE], ids=["rows", "positive"])
@pytest.mark.parametrize(("value", "word"), NOT_FINITE)
def test_the_row_of_the_first_value_that_is_not_finite_is_named(value, word, proba, from_logits):
    with pytest.raises(ValueError, match=rf"(?s)(?=.*{word}).*y_proba.*row 1\b"):
        check_predictions(with_entry(value, proba=proba), from_logits)


def test_logits_of_masked_classes_have_a_remedy_that_gives_their_softmax():
    logits = np.log(PROBA)
    logits[1, 0] = -np.inf
    with pytest.raises(ValueError, match=r"row 1, column 0.*numpy\.maximum\(y_proba, -1e4\)"):
        check_predictions(logits, True)
    proba, _ = check_predictions(np.maximum(logits, -1e4), True)
    np.testing.assert_allclose(proba[1], softmax(logits[1]), atol=1e-15)


def test_tensors_in_half_precision_are_read_as_arrays_are():
    class Tensor:
        """As of torch, whose dtypes are not numpy's."""

        def __init__(self, array):
            self.array, self.ndim, self.shape = array, array.ndim, array.shape
            self.dtype = f"torch.{array.dtype}"

        def __len__(self):
            return len(self.array)

        def __array__(self, dtype=None, copy=None):
            return self.array.astype(dtype or self.array.dtype)

    half = with_entry(0.2505).astype(np.float16)
    np.testing.assert_array_equal(check_proba(Tensor(half)), check_proba(half))


def test_messages_name_the_argument_that_the_caller_has():
    with pytest.raises(ValueError, match=r"^P row 1 sums to"):
        check_proba(with_entry(0.5), name="P")
    with pytest.raises(ValueError, match=r"^y_test row 0 is 7,"):
        check_labels([7, 0, 0], PROBA, [0, 1, 2], name="y_test")


# Labels.


@pytest.mark.parametrize("container", [np.asarray, list, pandas_frame])
@pytest.mark.parametrize(
    ("y", "labels", "codes", "classes"),
    [
        ([0, 1, 2], None, [0, 1, 2], [0, 1, 2]),
        ([0, 0, 2], None, [0, 0, 2], [0, 1, 2]),  # y_true may lack classes
        ([1.0, 2.0, 2.0], None, [1, 2, 2], [0, 1, 2]),
        ([1, 2, 3], None, [0, 1, 2], [1, 2, 3]),
        ([-1, 1, 0], None, [0, 2, 1], [-1, 0, 1]),
        ([True, False, True], None, [1, 0, 1], [0, 1, 2]),
        (np.array([0, 1, 1], dtype=object), None, [0, 1, 1], [0, 1, 2]),
        (["c", "a", "b"], None, [2, 0, 1], ["a", "b", "c"]),
        (["a", "b", "b"], ["c", "b", "a"], [2, 1, 1], ["c", "b", "a"]),  # unsorted
        # One-dimensional probabilities: (negative class, positive class).
        ([0, 1, 0], None, [0, 1, 0], [0, 1]),
        ([1, 1, 1], None, [1, 1, 1], [0, 1]),  # 1 alone is positive in both codes
        ([-1, 1, -1], None, [0, 1, 0], [-1, 1]),
        ([-1, -1, -1], None, [0, 0, 0], [-1, 1]),
        ([False, True, False], None, [0, 1, 0], [0, 1]),
        (["no", "yes", "no"], ["yes", "no"], [1, 0, 1], ["yes", "no"]),
        ([2, 2, 2], [2, 1], [0, 0, 0], [2, 1]),
    ],
)
def test_labels_are_the_numbers_of_their_columns(container, y, labels, codes, classes):
    proba = PROBA if len(classes) == 3 else POSITIVE
    encoded, resolved = check_labels(container(np.asarray(y)), proba, labels)
    assert encoded.dtype == np.int64
    assert (encoded.tolist(), resolved.tolist()) == (codes, classes)


@pytest.mark.parametrize("y", [["no", "yes", "no"], [1, 2, 1], [2, 2, 2], [0, -1, 0], [0.5, 1, 0]])
def test_the_positive_class_is_never_guessed(y):
    with pytest.raises(ValueError, match=r"^y_true takes.*Pass labels=\[negative class, positive"):
        check_labels(y, POSITIVE)


COUNT = r"^y_true has 2 classes \[{}\], y_proba has 3 columns\. Pass labels= with the class of ev"
CLASS = r"^y_true row {} is {}, which is not one of .*\. Pass labels= with the class of every"


@pytest.mark.parametrize(
    ("y", "labels", "match"),
    [
        ([1, 3, 3], None, COUNT.format("1, 3")),
        (["a", "b", "b"], None, COUNT.format("'a', 'b'")),
        ([0.5, 1, 1], None, r"continuous\. y_true must hold the class labels"),
        (["a", "d", "e"], ["a", "b", "c"], CLASS.format(1, "'d'")),
        ([0, 1, 5], [0, 1, 2], CLASS.format(2, 5)),
        ([0, 1, 2], ["0", "1", "2"], CLASS.format(0, 0)),
        ([0, 1, 2], [0, 1], r"^labels holds 2 .*3 columns\. Pass the class of each column, once"),
        ([0, 1, 2], [0, 1, 1], r"^labels holds 2 distinct classes.*3 columns.*once"),
        ([0, 1, 2], [0, 1, 2, 2], r"^labels .*(4|repeat|twice)"),
        ([0, 1, 2], [[0, 1, 2]], r"labels.*1d array"),
        (np.array([0, "a", 2], dtype=object), None, r"y_true .*sorted.*of one type"),
        ([0, np.nan, 2], None, r"^y_true row 1 is nan"),
        ([0, 1, np.inf], None, r"^y_true row 2 is inf"),
        (np.array(["a", None, "c"], dtype=object), None, r"^y_true row 1 is missing \(None\)"),
        (np.array(["a", np.nan, "c"], dtype=object), None, r"^y_true row 1 is missing \(nan\)"),
        (np.array(["2020", "NaT", "2021"], dtype="M8[Y]"), None, r"^y_true row 1 is.*(NaT|miss)"),
        (np.ma.masked_equal([0, 1, 2], 1), None, r"^y_true .*mask"),
        (np.eye(3), None, r"y_true.*1d array.*\(3, 3\)"),
        (None, None, r"^y_true is None"),
        ([0, 1], None, r"y_proba has 3 rows, y_true 2"),
    ],
)
def test_labels_that_name_no_column_are_refused(y, labels, match):
    with pytest.raises(ValueError, match=match):
        check_labels(y, PROBA, labels)


def test_a_column_of_labels_is_read_with_scikit_learns_warning():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert check_labels([[0], [1], [2]], PROBA)[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("weight", [None, 1, 2.5, [1, 2, 3], [0.0, 0.0, 1e-30], [True, False, 1]])
def test_weights_are_float64_one_per_sample(weight):
    checked = check_weight(weight, 3)
    assert checked.dtype == np.float64
    expected = np.broadcast_to(1 if weight is None else np.asarray(weight, dtype=float), 3)
    np.testing.assert_array_equal(checked, expected)


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        ([0.5, -1, -2], r"^sample_weight row 1 is -1: negative\. Pass weights ≥ 0"),
        (-0.5, r"^sample_weight row 0 is -0\.5: negative"),
        ([0, 0, 0], r"non-zero number; sample_weight is all zero"),
        ([1, 1], r"sample_weight\.shape == \(2,\), expected \(3,\): one per sample"),
        ([[1], [1], [1]], r"Sample weights must be 1D array or scalar, got 2D.*sample_weight"),
        ("abc", r"^sample_weight is a str\. Pass an array of numbers"),
        (["1", "1", "1"], r"^sample_weight row 0 holds '1', not a number\. Pass one weight"),
        ([1, np.nan, 1], r"sample_weight.*NaN"),
        ([1, np.inf, 1], r"sample_weight.*infinity"),
        (np.ma.masked_equal([1.0, 2.0, 3.0], 2), r"^sample_weight .*mask"),
    ],
)
def test_other_weights_are_refused(weight, match):
    with pytest.raises(ValueError, match=match):
        check_weight(weight, 3)


@pytest.mark.parametrize(("n_rows", "row_bytes"), [(0, 8), (1, 2**30), (100, 2**18), (7, 0)])
def test_row_blocks_cover_all_rows_once_within_the_memory(n_rows, row_bytes):
    with config_context(working_memory=1):
        blocks = list(row_blocks(n_rows, row_bytes))
    assert [i for block in blocks for i in range(n_rows)[block]] == list(range(n_rows))
    assert all(b.stop - b.start == 1 or (b.stop - b.start) * row_bytes <= 2**20 for b in blocks)


def test_estimators_that_take_logits_say_so():
    with pytest.raises(ValueError, match="or from_logits=True"):
        CalibrationErrorEstimator(notion="canonical").fit([[3.0, 1.0], [-1.0, -1.0]], [0, 1])


def outcomes_of(proba, rng):
    return (proba.cumsum(axis=1) < rng.random((len(proba), 1))).sum(axis=1)


def test_labels_that_are_counted_from_1_are_warned_of(rng):
    proba = rng.dirichlet([1, 1, 1], 300)
    y = outcomes_of(proba, rng) + 1
    few = y < 3  # with all three, the sorted labels tell
    with pytest.warns(UserWarning, match=r"y_true holds integers from 1.*labels=range\(1, 4\)"):
        read_sample(y[few], proba[few])
    with pytest.warns(UserWarning, match=r"y holds integers from 1.*labels=range\(1, 4\)"):
        Recalibrator([TemperatureScaling()]).fit(proba[few], y[few])
    read_sample(y[few], proba[few], labels=range(3))  # as told
    Recalibrator([TemperatureScaling()], labels=range(3)).fit(proba[few], y[few])
    with pytest.warns(UserWarning, match=r"y holds integers from 1.*If so pass y - 1\.$"):
        TemperatureScaling().fit(proba[few], y[few])  # which has no labels=
    codes, classes = check_labels(y[few], proba[few], labels=range(1, 4))
    assert classes.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(codes, y[few] - 1)


def test_classes_that_lack_0_by_chance_are_not_warned_of(rng):
    # 4 standard errors: a false alarm in 3e-5 of 100 draws; warnings are errors here.
    for _ in range(100):
        proba = rng.dirichlet(np.ones(20), 10)
        y = outcomes_of(proba, rng)
        read_sample(y[y > 0], proba[y > 0])


def test_numerals_that_name_columns_are_integers(rng):
    proba = rng.dirichlet([1, 1, 1], 50)
    y = outcomes_of(proba, rng)
    codes, classes = check_labels(y, proba, columns=["2", "1", "0"])
    assert classes.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(codes, 2 - y)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda p: check_proba(np.array([0, 2, 1])), r"row 1 is 2, .*arguments swapped"),
        (lambda p: check_proba(np.array([0.5, 1 + 1e-7])), r"pass numpy\.clip\(y_proba, 0, 1\)"),
        (lambda p: check_labels(p, p), r"y_true should be a 1d array.*arguments swapped"),
        (
            lambda p: check_labels(["a", "b"], p[:2, 0]),
            r"\['a', 'b'\] for probabilities of 'b'\) or pos_label=",
        ),
        (lambda p: check_labels(["a", "b"], p[:2, 0], name="y"), "of the constructor"),
    ],
)
def test_likely_slips_are_named(rng, call, match):
    with pytest.raises(ValueError, match=match):
        call(rng.dirichlet([1, 1, 1], 5))


# The error


def test_an_error_carries_its_parts_and_is_told_in_other_words():
    with pytest.raises(InputError) as caught:
        check_proba(with_entry(-0.25, row=1, column=2).clip(max=1)[:, 2], name="p")
    error = caught.value
    assert (error.argument, error.row, error.column, error.kind) == ("p", 1, None, "range")
    assert str(error).startswith("p row 1 is -0.25, not a probability in [0, 1]. Pass predict_")
    said = error.message("Mend it.", row="line 7", column="column 'cat'")
    assert said == "p line 7, column 'cat' is -0.25, not a probability in [0, 1]. Mend it."


def test_an_error_survives_a_pickle():
    error = InputError("X", "is 2.", "Divide.", row=3, column=1, lead="Input X: ", kind="range")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) == "Input X: X row 3, column 1 is 2. Divide."
    assert vars(copy) == vars(error)


@pytest.mark.parametrize("batches", [False, True])
def test_arrow_tables_are_data_frames(batches):
    pa = pytest.importorskip("pyarrow")
    table = pa.table(dict(zip("cab", PROBA.T, strict=True)))
    table = table.to_batches()[0] if batches else table
    y = pa.chunked_array([["a", "b"], ["a"]])
    np.testing.assert_array_equal(check_proba(table), PROBA)
    codes, classes = check_labels(y, PROBA, columns=column_names(table))
    assert (codes.tolist(), classes.tolist()) == ([1, 2, 1], ["c", "a", "b"])
    estimator = CalibrationErrorEstimator(Zero(), notion="classwise").fit(table, y)
    assert estimator.classes_.tolist() == ["c", "a", "b"]
    value = expected_calibration_error(y, table)
    assert value == expected_calibration_error([1, 2, 1], PROBA)


def test_an_entry_of_an_arrow_table_is_refused_by_row_and_column():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": [0.5, None], "b": [0.5, 0.5]})
    with pytest.raises(InputError, match=r"y_proba contains NaN: y_proba row 1, column 0\. Drop"):
        check_proba(table)
    with pytest.raises(InputError, match="y_proba row 0, column 0 holds 'x', not a number"):
        check_proba(pa.table({"a": ["x"], "b": ["y"]}))


def test_masks_and_ragged_rows_are_refused_before_they_are_arrays():
    masked, y = np.ma.masked_equal([0, 1, 2] * 10, 1), np.arange(30) % 2
    with pytest.raises(InputError, match="y_true is masked"):
        bootstrap_interval(expected_calibration_error, masked, np.full((30, 3), 1 / 3))
    with pytest.raises(InputError, match="y_after is masked"):
        RecalibrationDisplay.from_predictions(y, y_before=y / 2, y_after=masked / 2, plot=False)
    with pytest.raises(InputError, match=r"^X: .*inhomogeneous"):
        Recalibrator().fit([[0.5, 0.5], [0.2, 0.3, 0.5]] * 15, y)


@pytest.mark.parametrize("kind", ["masked", "dates"])
@pytest.mark.parametrize("one", [Binning(2), VectorScaling(), Mixture([VectorScaling()], [1.0])])
def test_maps_and_functions_read_no_masked_entries_and_no_dates(one, kind):
    p = np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    X = np.ma.masked_equal(p, 0.75) if kind == "masked" else np.rint(p).astype("datetime64[D]")
    y = p - 0.25 if isinstance(one, Binning) else [0, 1, 1]
    with pytest.raises(InputError, match=r"X (is masked|holds dates)"):
        one.fit(X, y)
