"""Reading predictions: what is right is read, what is wrong is named by line and column."""

import sys
from argparse import Namespace
from unittest import mock

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from read_files import read_predictions, write_table
from scipy.special import softmax

from skcal.cli import files
from skcal.cli.frames import Frame
from skcal.cli.predictions import Predictions, align
from skcal.cli.problems import FileError

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


def test_a_single_column_holds_the_probability_of_label_1(csv_file):
    predictions = read_predictions(csv_file("p,y\n0.25,0\n0.5,1\n"), label="y")
    assert_array_equal(predictions.proba, [0.25, 0.5])
    assert_array_equal(predictions.labels, [0, 1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 is empty. Give a header"),
        ("\n,cat,label\na,0.5,cat\na,0.5,cat\n", "line 2 has a column without a name. Pass --ig"),
        ("cat,dog,y\n0.5,0.5,cat\n", r"line 1 has no column 'label' \(columns: y, cat, dog\)"),
        ("# a, b\n0.5,0.5,cat\n", "line 1 is '# a', not a header. Delete that"),
        ("cat,dog,label\n0.5,0.5,cat\n# end\n", "line 3 has 1 fields.*Delete lines of comments"),
        ("label\ncat\n", "no columns of probabilities"),
        ("cat,dog,label\n", "no rows of probabilities below the header"),
        ("cat,dog,label\n0.5,0.5,cat\n0.5,cat\n", "line 3 has 2 fields, the header 3"),
        ("cat,dog,label\n0.5,0.5,cat\n0.5,x,cat\n", "line 3, column 'dog' is 'x', not a number"),
        (
            "cat,dog,label\n0.5,0.5,cat\n0.5,,cat\n",
            r"line 3, column 'dog' is empty\. Pass --drop-missing to leave out such samples\.$",
        ),
        ("cat,dog,label\n\n0.5,0.5,cat\n\n0.5,0.6,cat\n", "line 5 sums to 1.1"),
        ("cat,dog,label\n50,50,cat\n", "line 2 sums to 100, not 1. If these are percentages"),
        (",cat,dog,label\n0,0.5,0.5,cat\n0,1,0,cat\n", "column without a name. Pass --ignore"),
        (
            "cat;dog;label\n0.5;0.5;cat\n",
            "If semicolons separate its fields, not commas, pass --sep ';'",
        ),
        (
            "cat\tdog\tlabel\n0.5\t0.5\tcat\n",
            "tabulators separate its fields, not commas, pass --sep tab",
        ),
        ('p,label\n"0,5",1\n', "is '0,5'. If that is a decimal comma, pass --decimal ','"),
        ("p,label\n7.2%,1\n", r"'7\.2%', a percentage\. Pass --percent\.$"),
        (
            "cat,dog,label\n0.5,0.5,cat\n0.5,n/a,cat\n",
            r"'n/a'\. Pass --drop-missing to leave out such samples\.$",
        ),
        ("0.5,0.5,1\n0.4,0.6,2\n", "line 1 holds numbers where names .* pass --header none"),
        (
            "cat,dog,label\n0.5,0.5,cat\n0.5,0.6,cat\n",
            "line 3 sums to 1.1, not 1.*a column of probabilities for each class",
        ),
        ("cat,dog,label\n0.5,0.5,cat\n1.5,-0.5,cat\n", "line 3, column 'cat' is 1.5, not a prob"),
        ("cat,dog,label\n3,-2,cat\n4,1,dog\n", "line 3 sums to 5, not 1.*pass --logits"),
        ("cat,dog,label\n0.5,0.5,cat\n0.5,nan,cat\n", "line 3, column 'dog' is 'nan'. Pass --drop"),
        ("cat,dog,label\n0.5,0.5,cat\n0.5,0.5,cow\n", "line 3 is 'cow', which is not one of"),
        ("p,label\n0.5,1\n0.5,cat\n", "line 3 is 'cat'.*labels must be 0 or 1.*--pos-label"),
        ("p,label\n0.5,1\n1.5,0\n", "column 'p' is 1.5, not a probability.*for logits --logits"),
        ("cat,dog,label\n0.33,0.66,cat\n", "line 2 sums to 0.99, not 1.*pass --normalize"),
        (
            "p,fold,label\n0.5,1,1\n",
            "columns p, fold: none has the name of a label, such as '1'. .* by --s",
        ),
        (
            "customer_id,p,label\n17,0.8,yes\n18,0.3,no\n",
            "columns p, customer_id: none has .* 'yes'.* other columns are then not read",
        ),
        (
            "cat,dog,label\n0.5,0.3,cat\n0.3,0.6,cow\n",
            r"'cow' \(1 samples\) is among the labels, but",
        ),
        ("p,q,label\n0.2,0.8,\n", "line 2 has no label. Pass --drop-missing"),
        ("cat,cat,label\n0.5,0.5,cat\n", "line 1 names column 'cat' twice"),
    ],
)
def test_bad_csv_is_named_by_line_and_column(csv_file, text, message):
    path = csv_file(text)
    with pytest.raises(FileError, match=message) as error:
        read_predictions(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p;label\n0.5;1\n", "column 'p' is '0.5', with a point where --decimal says a comma"),
        ("p,label\n0.5,1\n", "If commas separate its fields, not semicolons, pass --sep ','"),
        ("p;label\n7,2%;1\n", "'7,2%', a percentage. Pass --percent"),
        ("p;label\n0,5;1\nx;1\n", "line 3, column 'p' is 'x', not a number"),
        ("p;label\n0,5;1\n1.000,5;1\n", "line 3, column 'p' is '1.000,5'.*separators of thousands"),
    ],
)
def test_other_separators_and_decimals_have_hints_of_their_own(csv_file, text, message):
    with pytest.raises(FileError, match=message):
        read_predictions(csv_file(text), sep=";", decimal=",")


def test_an_absent_class_is_not_taken_for_a_column_too_many(csv_file):
    text = "cat,dog,cow,label\n0.5,0.25,0.25,cat\n0.25,0.5,0.75,dog\n"
    with pytest.raises(FileError, match=r"line 3 sums to 1\.5, not 1"):
        read_predictions(csv_file(text))


@pytest.mark.parametrize(("positive", "classes"), [("yes", ["no", "yes"]), ("no", ["yes", "no"])])
def test_pos_label_names_what_a_single_column_holds(csv_file, tmp_path, positive, classes):
    found = read_predictions(csv_file("p,label\n0.25,yes\n0.5,no\n"), pos_label=positive)
    assert_array_equal(found.proba, [0.25, 0.5])
    assert_array_equal(found.labels, ["yes", "no"])
    assert_array_equal(found.classes, classes)
    np.savez(tmp_path / "p.npz", proba=[0.25, 0.5], labels=["yes", "no"])
    assert_array_equal(read_predictions(tmp_path / "p.npz", pos_label=positive).classes, classes)


@pytest.mark.parametrize(
    ("name", "labels", "classes"),
    [
        ("malignant", ["benign", "malignant"], ["benign", "malignant"]),
        ("benign", ["benign", "malignant"], ["malignant", "benign"]),
        ("0", ["0", "1"], ["1", "0"]),
        ("1", ["0", "1"], [0, 1]),
    ],
)
def test_a_single_column_named_by_a_label_is_its_probability(csv_file, name, labels, classes):
    path = csv_file(f"id,{name},label\n7,0.25,{labels[0]}\n8,0.5,{labels[1]}\n")
    for options in ({"ignore": ["id"]}, {"score": name}):
        found = read_predictions(path, **options)
        assert_array_equal(found.proba, [0.25, 0.5])
        assert_array_equal(found.classes, classes)
    other = read_predictions(path, ignore=["id"], pos_label=labels[0])
    assert_array_equal(other.classes, labels[::-1])
    with pytest.raises(FileError, match="--pos-label"):
        read_predictions(csv_file("p,label\n0.25,benign\n0.5,malignant\n"))


@pytest.mark.parametrize("name", ["ok", "fraud"])
def test_a_later_batch_named_by_a_label_keeps_its_classes(csv_file, name):
    first = read_predictions(csv_file(f"{name},label\n0.25,ok\n0.5,fraud\n"))
    path = csv_file(f"{name},label\n0.25,ok\n0.5,ok\n")
    assert_array_equal(read_predictions(path, known=first.classes).classes, first.classes)
    other = read_predictions(path, known=first.classes[::-1])
    assert_array_equal(other.classes, first.classes)  # the monitor refuses these


def test_pos_label_means_numbers_too(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, proba=[0.25, 0.5], labels=[1, 2])
    assert_array_equal(read_predictions(path, pos_label="1").classes, [2, 1])
    with pytest.raises(FileError, match=r"is unknown\. Name the positive one by --pos-label\."):
        read_predictions(path)
    np.savez(path, proba=[0.25, 0.5], labels=[1, 2], classes=[1, 2])
    assert_array_equal(read_predictions(path, pos_label="1").classes, [2, 1])


def test_pos_label_brings_its_column_to_the_second_place(csv_file):
    found = read_predictions(csv_file(GOOD), pos_label="cat")
    assert_array_equal(found.classes, ["dog", "cat"])
    assert_array_equal(found.proba, [[0.75, 0.25], [0.0, 1.0]])
    assert_array_equal(found.labels, ["dog", "cat"])
    assert_array_equal(read_predictions(csv_file(GOOD), pos_label="dog").classes, ["cat", "dog"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD, "--pos-label 'cow' is not one of two classes: cat, dog"),
        ("a,b,c,label\n0.5,0.25,0.25,a\n", "--pos-label 'cow' is not one of two classes: a, b, c"),
        ("p,label\n0.5,yes\n0.5,no\n", "--pos-label 'cow' is not one of two classes: no, yes"),
        ("p,label\n0.5,yes\n0.5,yes\n", "--pos-label 'cow' needs two labels, found yes"),
    ],
)
def test_a_positive_label_that_is_none_is_refused(csv_file, text, message):
    with pytest.raises(FileError, match=message):
        read_predictions(csv_file(text), pos_label="cow")


def test_normalize_divides_rounded_rows_by_their_sums(csv_file):
    path = csv_file("a,b,c,label\n0.333,0.333,0.333,a\n0.25,0.25,0.5,b\n")
    found = read_predictions(path, normalize=True).proba
    assert_array_equal(found, [[1 / 3, 1 / 3, 1 / 3], [0.25, 0.25, 0.5]])
    path = csv_file("p,label\n0.3,1\n0.5,0\n")
    assert_array_equal(read_predictions(path, normalize=True).proba, [0.3, 0.5])
    path = csv_file("a,b,label\n1.0049,-0.0049,a\n0,1,b\n")
    with pytest.warns(UserWarning, match=r"^2 numbers outside \[0, 1\] are set to 0 or 1, as --no"):
        found = read_predictions(path, normalize=True).proba
    assert_array_equal(found, [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("0.5,0.44,a", "line 3 sums to 0.94, not 1. --normalize is for rounded rows alone"),
        ("50,50,a", "line 3 sums to 100, not 1. --normalize is for rounded rows alone"),
        ("1.02,-0.02,a", "line 3, column 'a' is 1.02, not a probability"),
        ("1.0051,-0.0051,a", "line 3, column 'a' is 1.0051, not a probability"),
        ("nan,0.5,a", "line 3, column 'a' is 'nan'. Pass --drop-missing"),
        ("inf,0.5,a", "contains infinity"),
    ],
)
def test_normalize_mends_nothing_but_rounding(csv_file, row, message):
    with pytest.raises(FileError, match=message):
        read_predictions(csv_file(f"a,b,label\n0.5,0.5,b\n{row}\n"), normalize=True)


def test_npz_holds_proba_labels_and_perhaps_classes(tmp_path):
    path = tmp_path / "predictions.npz"
    np.savez(path, proba=[[0.25, 0.75], [1.0, 0.0]], labels=["b", "a"], classes=["b", "a"])
    predictions = read_predictions(path)
    assert_array_equal(predictions.labels, ["b", "a"])
    assert_array_equal(predictions.classes, ["b", "a"])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"labels": [1]}, "array 'proba' is missing"),
        ({"proba": [[0.25, 0.75]]}, "array 'labels' is missing"),
        (
            {"proba": [[0.25, 0.75]], "labels": np.array([{}], dtype=object)},
            r"array 'labels' holds Python objects\. Save.*astype\(str\)",
        ),
    ],
)
def test_bad_arrays_are_named(tmp_path, arrays, message):
    np.savez(tmp_path / "predictions.npz", **arrays)
    with pytest.raises(FileError, match=message):
        read_predictions(tmp_path / "predictions.npz")


def test_a_file_that_is_no_archive_is_said_to_be_none(tmp_path):
    path = tmp_path / "predictions.npz"
    for content in (b"", b"not an archive", np.lib.format.MAGIC_PREFIX, b"PK\x03\x04damaged"):
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"predictions\.npz: (not an|a damaged) \.npz archive"):
            read_predictions(path)


def test_absent_files_and_unknown_kinds_are_named(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        read_predictions(tmp_path / "absent.csv")
    with pytest.raises(
        FileError,
        match=r"unknown kind of file\. Pass a \.csv, .* or \.npz file",
    ):
        read_predictions(tmp_path / "predictions.sas7bdat")


def test_groups_are_read_from_their_column(csv_file, tmp_path):
    path = csv_file("cat,where,label,dog\n0.25,north,dog,0.75\n1.0,south,cat,0.0\n")
    predictions = read_predictions(path, by=["where"])
    assert_array_equal(predictions.others["where"], ["north", "south"])
    assert_array_equal(predictions.classes, ["cat", "dog"])
    np.savez(tmp_path / "p.npz", proba=[0.25, 0.5], labels=[0, 1], where=["a", "b"])
    predictions = read_predictions(tmp_path / "p.npz", by=["where"])
    assert_array_equal(predictions.others["where"], ["a", "b"])
    with pytest.raises(FileError, match=r"no column 'who' \(columns: .*\)\. Name a column by --b"):
        read_predictions(path, by=["who"])
    with pytest.raises(FileError, match="array 'who' is missing"):
        read_predictions(tmp_path / "p.npz", by=["who"])


def test_files_that_hold_too_much_are_refused_before_they_are_read(csv_file, tmp_path):
    with pytest.raises(FileError, match=r"more than .*--max-size"):
        read_predictions(csv_file(GOOD), max_bytes=10)
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, proba=np.full(100_000, 0.5), labels=np.zeros(100_000, dtype=int))
    assert path.stat().st_size < 10_000
    with pytest.raises(FileError, match=r"holds .* GB, more than"):
        read_predictions(path, max_bytes=100_000)


def from_frame(folder, frame, *others):
    """What is read of a Parquet file that holds the data frame."""
    path = folder / "predictions.parquet"
    path.touch()
    read = Frame(path, [str(name) for name in frame.columns], frame)
    with mock.patch.object(files, "read_parquet", return_value=read):
        return read_predictions(path, by=others, max_bytes=2**20)


def frame_of(columns):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(columns)


def test_tables_are_read_as_csv_files_are(csv_file, tmp_path):
    frame = frame_of({"cat": [0.25, 1.0], "label": ["dog", "cat"], "dog": [0.75, 0.0]})
    of_frame = from_frame(tmp_path, frame)
    from_csv = read_predictions(csv_file(GOOD))
    for name in ("proba", "labels", "classes"):
        assert_array_equal(getattr(of_frame, name), getattr(from_csv, name))


def test_numbers_name_columns_of_tables(tmp_path):
    frame = frame_of({0: [0.25, 1.0], 1: [0.75, 0.0], "label": [1.0, 0.0], "g": [7, 8]})
    predictions = from_frame(tmp_path, frame, "g")
    assert_array_equal(predictions.labels, ["1", "0"])
    assert_array_equal(predictions.others["g"], ["7", "8"])
    frame = frame_of({"p": np.array([0.25, 1.0], dtype=np.float32), "label": [1, 0]})
    assert_array_equal(from_frame(tmp_path, frame).labels, [1, 0])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [0.5], "b": [0.5]}, "the table has no column 'label'"),
        (
            {"a": ["x"], "b": [0.5], "label": ["a"]},
            "columns b, a: none has the name|column 'a' is 'x', not a number",
        ),
        ({"a": [0.5], "b": [0.6], "label": ["a"]}, r"row 0 sums to 1\.1"),
        ({"a": [1.5], "b": [-0.5], "label": ["a"]}, "row 0, column 'a' is 1.5"),
        ({"a": [0.5], "b": [0.5], "label": [None]}, "row 0 has no label"),
        (
            {"a": [0.5], "b": [0.5], "label": ["c"]},
            "columns a, b: none has .*, such as 'c'",
        ),
        ({"a": [], "b": [], "label": []}, "no rows of probabilities"),
        ({"label": ["a"]}, "no columns of probabilities"),
    ],
)
def test_bad_tables_are_named_by_row_and_column(tmp_path, columns, message):
    with pytest.raises(FileError, match=message):
        from_frame(tmp_path, frame_of(columns))


def test_parquet_files_are_read(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "predictions.parquet"
    frame = frame_of({"cat": [0.25, 1.0], "dog": [0.75, 0.0], "label": ["dog", "cat"]})
    frame.assign(id=[7, 8], site=["a", "b"]).to_parquet(path)
    found = read_predictions(path, by=["site"], ignore=["id"])
    assert_array_equal(found.labels, ["dog", "cat"])
    assert found.others["site"].tolist() == ["a", "b"]
    frame.to_parquet(path)
    with pytest.raises(FileError, match="--max-size"):
        read_predictions(path, max_bytes=path.stat().st_size - 1)
    frame[:0].to_parquet(path)
    with pytest.raises(FileError, match="no rows of probabilities"):
        read_predictions(path)
    path.write_bytes(b"not parquet")
    with pytest.raises(FileError, match=r"predictions\.parquet: "):
        read_predictions(path)


def test_without_pyarrow_parquet_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "predictions.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(FileError, match="needs pandas and pyarrow: pip install pandas pyarrow"):
        read_predictions(path)


NAMED = Namespace(file="A", second="B", id=[], correct=None)


def pair(**other):
    classes = np.array(["a", "b"])
    first = Predictions(np.array([[0.2, 0.8], [0.6, 0.4]]), classes[[1, 0]], classes)
    return first, first._replace(**other)


def test_columns_of_another_model_come_into_the_same_order():
    first, second = pair(proba=np.array([[0.7, 0.3], [0.1, 0.9]]), classes=np.array(["b", "a"]))
    _, aligned = align(first, second, NAMED)
    assert_array_equal(aligned.proba, [[0.3, 0.7], [0.9, 0.1]])
    assert_array_equal(aligned.classes, ["a", "b"])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"labels": np.array(["b"])}, "B has 1 samples, A 2"),
        ({"labels": np.array(["b", "b"])}, "sample 2 has the label b, in A a"),
        ({"classes": np.array(["a", "c"])}, "different classes; not in both: b, c"),
        ({"proba": np.array([0.2, 0.6])}, "different classes; not in both: of a single column"),
    ],
)
def test_other_samples_or_classes_are_not_compared(other, message):
    first, second = pair(**other)
    with pytest.raises(FileError, match=message):
        align(first, second, NAMED)


@pytest.mark.parametrize("command", ["evaluate", "report", "test", "abstain"])
def test_logits_are_read_by_every_command(command, run, tmp_path):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 3))
    proba = softmax(z, axis=1)
    y = (proba.cumsum(axis=1) < rng.uniform(size=(60, 1))).sum(axis=1)
    for name, numbers in (("z", z), ("p", proba)):
        cells = {str(k): column for k, column in enumerate(numbers.T)} | {"label": y}
        write_table(tmp_path / f"{name}.csv", cells)
    more = ["--max-risk", "0.9"] if command == "abstain" else []
    said = [
        " ".join(run(command, tmp_path / name, *more, *option).split())
        for name, option in (("z.csv", ["--logits"]), ("p.csv", []))
    ]
    how = " Predictions were read as logits; those of a row become probabilities that sum to 1."
    assert (how in said[0]) == (command in ("evaluate", "report"))
    assert said[0].replace("z.csv", "p.csv").replace(how, "") == said[1]
    said = run(command, tmp_path / "z.csv", *more, status=2)
    assert "If these are logits, pass --logits." in said
    assert said.splitlines()[-1].endswith("--logits")
    assert "Leave --logits out" in run(command, tmp_path / "p.csv", *more, "--logits", status=2)
