"""Reading predictions: what is right is read, what is wrong is named by line and column."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skcal._files import FileError, read_predictions

GOOD = "cat,label,dog\n0.25,dog,0.75\n1.0,cat,0.0\n"


@pytest.fixture
def csv_file(tmp_path):
    def write(text, name="predictions.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_csv_columns_are_classes_wherever_the_label_stands(csv_file):
    predictions = read_predictions(csv_file(GOOD))
    assert_array_equal(predictions.proba, [[0.25, 0.75], [1.0, 0.0]])
    assert_array_equal(predictions.labels, ["dog", "cat"])
    assert_array_equal(predictions.classes, ["cat", "dog"])


def test_csv_with_a_byte_order_mark_and_blank_lines_is_read(csv_file):
    predictions = read_predictions(csv_file("\ufeff" + GOOD + "\n\n"))
    assert_array_equal(predictions.labels, ["dog", "cat"])


def test_a_single_column_holds_the_probability_of_label_1(csv_file):
    predictions = read_predictions(csv_file("p,y\n0.25,0\n0.5,1\n"), label="y")
    assert_array_equal(predictions.proba, [0.25, 0.5])
    assert_array_equal(predictions.labels, [0, 1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"line 1 has no column 'label' \(columns: none\).*--label"),
        ("cat,dog,y\n0.5,0.5,cat\n", r"line 1 has no column 'label' \(columns: cat, dog, y\)"),
        ("label\ncat\n", "no columns of probabilities"),
        ("cat,dog,label\n", "no rows of probabilities"),
        ("cat,dog,label\n0.5,0.5,cat\n0.5,cat\n", "line 3 has 2 fields, the header 3"),
        ("cat,dog,label\n0.5,0.5,cat\n0.5,x,cat\n", "line 3, column 'dog' is 'x', not a number"),
        (
            "cat,dog,label\n0.5,0.5,cat\n0.5,,cat\n",
            r"line 3, column 'dog' is 'empty'.*probability\.$",
        ),
        ("cat,dog,label\n\n0.5,0.5,cat\n\n0.5,0.6,cat\n", "line 5 sums to 1.1"),
        ("cat,dog,label\n50,50,cat\n", "line 2 sums to 100, not 1. If these are percentages"),
        (",cat,dog,label\n0,0.5,0.5,cat\n", "column without a name.*index=False"),
        ("cat;dog;label\n0.5;0.5;cat\n", "by commas, not semicolons"),
        ("0.5,0.5,1\n0.4,0.6,2\n", "line 1 has no column 'label'.*Give a header"),
        ("cat,dog,label\n0.5,0.5,cat\n0.5,0.6,cat\n", "line 3 sums to 1.1, not 1.*divide each row"),
        ("cat,dog,label\n0.5,0.5,cat\n1.5,-0.5,cat\n", "line 3, column 'cat' is 1.5, not a prob"),
        ("cat,dog,label\n3,-2,cat\n4,1,dog\n", "line 3 sums to 5, not 1.*softmax"),
        ("cat,dog,label\n0.5,0.5,cat\n0.5,nan,cat\n", "contains NaN"),
        ("cat,dog,label\n0.5,0.5,cat\n0.5,0.5,cow\n", "line 3 is 'cow', which is not one of"),
        ("p,label\n0.5,1\n0.5,cat\n", "line 3 is 'cat'.*labels must be 0 or 1"),
        ("cat,cat,label\n0.5,0.5,cat\n", "line 1 names column 'cat' twice"),
    ],
)
def test_bad_csv_is_named_by_line_and_column(csv_file, text, message):
    path = csv_file(text)
    with pytest.raises(FileError, match=message) as error:
        read_predictions(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_npz_holds_proba_labels_and_perhaps_classes(tmp_path):
    path = tmp_path / "predictions.npz"
    np.savez(path, proba=[[0.25, 0.75], [1.0, 0.0]], labels=["b", "a"], classes=["b", "a"])
    predictions = read_predictions(path)
    assert_array_equal(predictions.labels, ["b", "a"])
    assert_array_equal(predictions.classes, ["b", "a"])


def test_npz_of_objects_is_refused(tmp_path):
    path = tmp_path / "predictions.npz"
    np.savez(path, proba=[[0.25, 0.75]], labels=np.array([{}], dtype=object))
    with pytest.raises(
        FileError, match=r"array 'labels' holds Python objects\. Save.*astype\(str\)"
    ):
        read_predictions(path)


@pytest.mark.parametrize("missing", ["proba", "labels"])
def test_npz_without_an_array_names_it(tmp_path, missing):
    path = tmp_path / "predictions.npz"
    arrays = {"proba": [[0.25, 0.75]], "labels": [1]}
    del arrays[missing]
    np.savez(path, **arrays)
    with pytest.raises(FileError, match=f"array '{missing}' is missing"):
        read_predictions(path)


def test_a_file_that_is_no_archive_is_said_to_be_none(tmp_path):
    path = tmp_path / "predictions.npz"
    for content in (b"", b"not an archive", np.lib.format.MAGIC_PREFIX, b"PK\x03\x04damaged"):
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"predictions\.npz: (not an|a damaged) \.npz archive"):
            read_predictions(path)


def test_other_encodings_are_named(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text(GOOD, encoding="utf-16")
    with pytest.raises(FileError, match=r"not UTF-8 text\. Save it as UTF-8"):
        read_predictions(path)


def test_absent_files_and_unknown_kinds_are_named(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        read_predictions(tmp_path / "absent.csv")
    with pytest.raises(FileError, match=r"unknown kind of file\. Pass a \.csv or \.npz file"):
        read_predictions(tmp_path / "predictions.txt")
