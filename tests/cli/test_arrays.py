"""Labels of archives as one-hot rows, and as places among named classes."""

import numpy as np
import pytest

from skcal.cli.parser import parse
from skcal.cli.predictions import read_predictions
from skcal.cli.problems import Problems, read_or_list_problems

RNG = np.random.default_rng(0)
P = RNG.dirichlet([1, 2, 3], 40)
CODES = (P.cumsum(axis=1) > RNG.random((40, 1))).argmax(axis=1)
NAMES = np.array(["cat", "ant", "bee"])  # in another order than sorted
HOT = np.eye(3)[CODES]


def read(path, arrays, *more):
    np.savez(path, **arrays)
    return read_or_list_problems(parse(["evaluate", str(path), *more]), read_predictions)


@pytest.mark.parametrize("names", ["classes", "classes_", "class_names", "target_names", None])
@pytest.mark.parametrize(
    "labels", [CODES, CODES[:, None], HOT, HOT.astype("f4"), HOT.astype(bool), NAMES[CODES]]
)
def test_labels_of_archives_are_of_the_class_that_the_columns_have(labels, names, tmp_path):
    if names is None and labels.dtype.kind == "U":
        pytest.skip("the order is that of the sorted labels")
    arrays = {"proba": P, "labels": labels} | ({} if names is None else {names: NAMES})
    found = read(tmp_path / "a.npz", arrays)
    column = {name: k for k, name in enumerate(found.classes.tolist())}
    happened = np.array([column[label] for label in found.labels.tolist()])
    np.testing.assert_allclose(found.proba[np.arange(40), happened], P[np.arange(40), CODES])
    assert found.classes.tolist() == ([0, 1, 2] if names is None else NAMES.tolist())
    said = [*["holds 1 for the class"] * (labels.shape[1:] == (3,))]
    said += ["places among the classes"] * (names is not None and labels.shape[1:] != (3,))
    said = said if labels.dtype.kind != "U" else []
    assert all(text in found.read.read_as for text in said)


def test_one_hot_rows_beside_a_single_column(tmp_path):
    happened = (CODES == 0).astype(int)
    found = read(tmp_path / "a.npz", {"proba": P[:, 0], "labels": np.eye(2)[happened]})
    np.testing.assert_array_equal(found.labels, happened)
    np.testing.assert_array_equal(found.proba, P[:, 0])


def test_shares_in_place_of_labels_name_the_option(tmp_path):
    arrays = {"proba": P, "labels": 0.7 * HOT + 0.1}
    with pytest.raises(Problems, match="pass --soft labels") as caught:
        read(tmp_path / "a.npz", arrays)
    assert caught.value.lines[-1].endswith("a.npz --soft labels")
    np.testing.assert_allclose(
        read(tmp_path / "a.npz", arrays, "--soft", "labels").labels, 0.7 * HOT + 0.1
    )
