"""What every metric does first: who is positive, who counts, and how problems are combined."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skcal.metrics.base import estimate_problems
from skcal.sample import read_sample

P = np.array([0.125, 0.25, 0.75, 0.875])
TWO = np.column_stack([1 - P, P])
THREE = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.125, 0.75, 0.125], [0.625, 0.375, 0]])
yes_no = np.array(["no", "yes", "no", "yes"])


BOTH = [False, True]
UNKNOWN = r"y_true .*positive class of a 1-D y_proba is unknown\. Pass labels="


def happened(sample):
    """P(positive) and whether it happened, whatever the shape of the predictions."""
    proba = sample.proba if sample.proba.ndim == 1 else sample.proba[:, 1]
    return proba.tolist(), (sample.codes == 1).tolist()


# The positive class


@pytest.mark.parametrize(
    ("y", "pos_label"),
    [
        (yes_no, "yes"),
        (yes_no, "no"),  # the first in sorted order
        (yes_no.astype(object), "no"),
        (np.array([1, 2, 1, 2]), 1),
        (np.array([0, 1, 0, 1]), 0),
        (np.array([-1, 1, 1, 1]), -1),
        (np.array([False, True, False, True]), True),
        (np.array([False, True, False, True]), False),
        (np.array([0.0, 1.0, 0.0, 1.0]), 0),
    ],
)
def test_one_column_is_the_probability_of_pos_label(y, pos_label):
    for given in (y, y.tolist()):
        sample = read_sample(given, P, pos_label=pos_label)
        assert happened(sample) == (P.tolist(), (y == pos_label).tolist())
        assert sample.classes[1] == pos_label


@pytest.mark.parametrize("labels", [["no", "yes"], ["yes", "no"], np.array(["yes", "no"])])
def test_labels_are_negative_then_positive_and_pos_label_overrules_their_order(labels):
    assert happened(read_sample(yes_no, P, labels=labels))[1] == (yes_no == labels[1]).tolist()
    for pos_label in ("yes", "no"):
        sample = read_sample(yes_no, P, labels=labels, pos_label=pos_label)
        assert happened(sample) == (P.tolist(), (yes_no == pos_label).tolist())


@pytest.mark.parametrize("notion", ["binary", "auto"])
@pytest.mark.parametrize("pos_label", ["yes", "no"])
@pytest.mark.parametrize("labels", [None, ["no", "yes"], ["yes", "no"]])
def test_pos_label_chooses_the_column_of_two(labels, pos_label, notion):
    columns = ["no", "yes"] if labels is None else labels
    sample = read_sample(yes_no, TWO, labels=labels, pos_label=pos_label, notion=notion)
    expected = TWO[:, list(columns).index(pos_label)]
    assert happened(sample) == (expected.tolist(), (yes_no == pos_label).tolist())
    [problem] = sample.problems()
    assert_array_equal(problem.features[:, 0], expected)
    assert_array_equal(problem.outcomes[:, 0], yes_no == pos_label)


@pytest.mark.parametrize("notion", ["confidence", "classwise", "canonical", "top-label", "top-1"])
def test_pos_label_is_refused_where_it_cannot_matter(notion):
    with pytest.raises(ValueError, match=rf"^pos_label='no' .*'{notion}'.*use notion='binary'"):
        read_sample(yes_no, TWO, pos_label="no", notion=notion)
    one_dimensional = "auto" if notion == "confidence" else notion
    sample = read_sample(yes_no, P, pos_label="no", notion=one_dimensional)  # whose column is it?
    assert sample.classes.tolist() == ["yes", "no"]


@pytest.mark.parametrize("pos_label", [None, "yes", "no"])
def test_named_columns_of_a_data_frame_are_the_classes(pos_label):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(TWO, columns=["yes", "no"])
    sample = read_sample(pd.Series(yes_no), frame, pos_label=pos_label)
    expected = frame[pos_label or "no"].tolist()
    assert happened(sample) == (expected, (yes_no == (pos_label or "no")).tolist())


@pytest.mark.parametrize(
    ("present", "pos_label"),
    [("yes", "yes"), ("no", "yes"), (7, 7), *product([0, 1], [0, 1]), *product([False], BOTH)],
)
def test_one_class_in_y_true_either_always_or_never_is_the_positive_one(present, pos_label):
    sample = read_sample([present] * 4, P, pos_label=pos_label)
    assert happened(sample) == (P.tolist(), [present == pos_label] * 4)


@pytest.mark.parametrize(
    ("y", "proba", "options", "match"),
    [
        (yes_no, P, {"pos_label": "maybe"}, r"^pos_label='maybe' is not one of two .*'no', 'yes'"),
        (yes_no, P, {"pos_label": 1}, r"^pos_label=1 is not one of two .*\['no', 'yes'\]"),
        (yes_no, TWO, {"pos_label": "maybe"}, r"^pos_label='maybe' is not one of two"),
        ([1, 2, 3, 1], P, {"pos_label": 1}, r"^pos_label=1 is not one of two .*\[1, 2, 3\]"),
        (yes_no, P, {"labels": ["no", "yes", "?"], "pos_label": "yes"}, r"^pos_label='yes' is not"),
        ([0, 1, 2, 0], THREE, {"pos_label": 1}, r"^pos_label=1 has no meaning for 3 columns\. L"),
        (yes_no, P, {}, UNKNOWN),
        ([1, 2, 1, 2], P, {}, UNKNOWN),
        (yes_no, P, {"labels": ["no", "on"]}, r"^y_true row 1 is 'yes', .*Pass labels="),
        (yes_no, P, {"labels": ["no", "on"], "pos_label": "on"}, r"^y_true row 1 is 'yes'"),
        (["x"] * 4, TWO, {"pos_label": "x"}, r"y_true has 1 classes .*Pass labels="),
        (None, P, {"pos_label": 1}, "^y_true is None"),
        (yes_no[:3], P, {"pos_label": "no"}, r"inconsistent .*y_proba has 4 rows, y_true 3"),
    ],
)
def test_classes_that_are_not_clear_raise(y, proba, options, match):
    with pytest.raises(ValueError, match=match):
        read_sample(y, proba, **options)


# Weights and notions


def test_samples_of_weight_zero_are_dropped():
    y, weight = np.array([0, 1, 2, 0]), [0.0, 2.0, 0.5, 0.0]
    sample = read_sample(y, THREE, sample_weight=weight)
    assert_array_equal(sample.proba, THREE[1:3])
    assert_array_equal(sample.codes, y[1:3])
    assert_array_equal(sample.weight, weight[1:3])
    assert_array_equal(sample.classes, [0, 1, 2])
    assert_array_equal(read_sample(y, THREE).weight, np.ones(4))


def test_only_samples_of_positive_weight_count_towards_the_least_number():
    y, weight = [0, 1, 2, 0], [0, 2, 0, 1]
    assert len(read_sample(y, THREE, sample_weight=weight, at_least=2).proba) == 2
    with pytest.raises(ValueError, match=r"^y_proba has 2 sample.* 3 are needed"):
        read_sample(y, THREE, sample_weight=weight, at_least=3)


@pytest.mark.parametrize(
    ("proba", "notion"), [(P, "binary"), (TWO, "binary"), (THREE, "confidence")]
)
def test_auto_reads_the_shape_and_never_the_labels(proba, notion):
    for y in ([0, 1, 0, 1], [1, 1, 1, 1]):
        assert read_sample(y, proba).notion == notion


def test_an_estimate_that_is_not_a_number_is_never_left_out(rng):
    sample = read_sample(rng.integers(0, 3, 30), rng.dirichlet([1, 1, 1], 30), notion="classwise")
    assert estimate_problems(sample, lambda problem: 0.5, average="macro") == 0.5
    values = iter([0.5, np.nan, 0.5])
    with pytest.raises(FloatingPointError, match="problem 1 is not a number"):
        estimate_problems(sample, lambda problem: next(values))
