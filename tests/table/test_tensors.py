"""Tensors of torch are reduced on their device, whatever their type and shape."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skcal import CalibrationTable
from skcal.metrics import expected_calibration_error

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)
Z = 2 * RNG.standard_normal((300, 5))
Y = RNG.integers(0, 5, 300)


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def ece_of_rows(y, z, notion="confidence"):
    return expected_calibration_error(y, softmax(z), notion=notion)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("notion", ["auto", "confidence", "top-label"])
def test_logits_and_probabilities_of_every_float_type(kind, notion):
    logits = torch.tensor(Z).to(getattr(torch, kind))
    table = CalibrationTable(notion).update(torch.tensor(Y), logits, from_logits=True)
    rounded = logits.double().numpy()
    expected = ece_of_rows(Y, rounded, "confidence" if notion == "auto" else notion)
    assert_allclose(expected_calibration_error(table), expected, rtol=1e-4)
    proba = torch.tensor(softmax(Z)).to(getattr(torch, kind))
    table = CalibrationTable(notion).update(torch.tensor(Y), proba)
    assert table.n_samples_seen_ == 300
    assert_allclose(expected_calibration_error(table), ece_of_rows(Y, Z, table.notion_), rtol=0.02)


@pytest.mark.parametrize("block", [40, 2**20])
def test_images_and_labels_to_ignore(block, monkeypatch):
    monkeypatch.setattr("skcal.table.reading._BLOCK", block)
    z, y = RNG.standard_normal((4, 5, 6, 7)), RNG.integers(0, 5, (4, 6, 7))
    y[0, :3] = -100
    table = CalibrationTable().update(
        torch.tensor(y), torch.tensor(z), from_logits=True, ignore_label=-100
    )
    kept = y != -100
    expected = ece_of_rows(y[kept], np.moveaxis(z, 1, -1)[kept])
    assert table.n_samples_seen_ == kept.sum() == 4 * 42 - 21
    assert_allclose(expected_calibration_error(table), expected, rtol=1e-10)
    flat = CalibrationTable().update(
        np.where(y.ravel() == -100, -1, y.ravel()),
        np.moveaxis(z, 1, -1).reshape(-1, 5),
        from_logits=True,
        ignore_label=-1,
    )
    assert_allclose(expected_calibration_error(flat), expected, rtol=1e-10)


def test_images_of_other_kinds_and_arrays_are_read_pixel_by_pixel():
    z, y = RNG.standard_normal((3, 4, 5, 6)), RNG.integers(0, 4, (3, 5, 6))
    rows = np.moveaxis(z, 1, -1).reshape(-1, 4)
    for notion in ("confidence", "classwise"):
        expected = ece_of_rows(y.ravel(), rows, notion)
        for of in (np.asarray, torch.tensor):
            table = CalibrationTable(notion).update(of(y), of(z), from_logits=True)
            assert_allclose(expected_calibration_error(table), expected, rtol=1e-9)


def test_only_single_columns_leave_the_device(monkeypatch):
    moved = []
    cpu = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda self: moved.append(self.numel()) or cpu(self))
    CalibrationTable().update(torch.tensor(Y), torch.tensor(Z), from_logits=True)
    assert sum(moved) == 3 * 300  # the confidence, whether it was right, and its class


def test_other_kinds_of_tensors_are_read_as_arrays():
    p = torch.tensor(softmax(Z)[:, 0])
    y = torch.tensor((Y == 0).astype(int))
    table = CalibrationTable().update(y, p)
    expected = expected_calibration_error(y.numpy(), p.numpy())
    assert_allclose(expected_calibration_error(table), expected, rtol=1e-12)
    classwise = CalibrationTable("classwise").update(
        torch.tensor(Y), torch.tensor(Z), from_logits=True
    )
    assert_allclose(
        expected_calibration_error(classwise), ece_of_rows(Y, Z, "classwise"), rtol=1e-9
    )


SEVENTH, NINTH = np.arange(300) == 7, np.arange(300) == 9
LOGITS, ALL = {"from_logits": True}, ece_of_rows(Y, Z)


@pytest.mark.parametrize(
    ("bad", "message", "followed", "right"),
    [
        (
            (Y, np.where(SEVENTH[:, None], np.nan, Z), LOGITS),
            "y_proba row 7 holds NaN or infinity. Drop or fix that sample.",
            (Y[~SEVENTH], Z[~SEVENTH], LOGITS),
            ece_of_rows(Y[~SEVENTH], Z[~SEVENTH]),
        ),
        *(
            (
                (np.where(NINTH, wrong, Y), Z, LOGITS),
                "y_true row 9 is none of the columns 0 to 4. Pass numbers of columns, and "
                "ignore_label= for one to leave out.",
                (np.where(NINTH, wrong, Y), Z, LOGITS | {"ignore_label": wrong}),
                ece_of_rows(Y[~NINTH], Z[~NINTH]),
            )
            for wrong in (5, -1)
        ),
        (
            (Y, Z, {}),
            "y_proba row 0 does not sum to 1. Pass probabilities, or from_logits=True.",
            (Y, Z, LOGITS),
            ALL,
        ),
        (
            (Y[1:], Z, LOGITS),
            "y_true has the shape (299,) beside y_proba of (300, 5). Pass one label for each "
            "sample or pixel.",
            (Y, Z, LOGITS),
            ALL,
        ),
        (
            (Y * 1.0, Z, LOGITS),
            "y_true holds numbers of torch.float64. Pass numbers of columns.",
            (Y, Z, LOGITS),
            ALL,
        ),
    ],
)
def test_bad_tensors_are_named_and_the_advice_is_followed(bad, message, followed, right):
    table = CalibrationTable().update(torch.tensor(Y), torch.tensor(Z), from_logits=True)
    before = table.to_json()
    *of_bad, options = bad
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        table.update(*map(torch.tensor, of_bad), **options)
    assert str(caught.value) == message
    assert table.to_json() == before
    *of_followed, options = followed
    table = CalibrationTable().update(*map(torch.tensor, of_followed), **options)
    assert_allclose(expected_calibration_error(table), right, rtol=1e-9)


RANK = """
    import sys, torch, numpy as np, torch.distributed as dist
    from skcal import CalibrationTable
    from skcal.metrics import expected_calibration_error
    rank, file = int(sys.argv[1]), sys.argv[2]
    dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=2)
    rng = np.random.default_rng(0)
    z, y = rng.standard_normal((200, 4)), rng.integers(0, 4, 200)
    part = slice(rank, None, 2)
    table = CalibrationTable("confidence")
    table.update(torch.tensor(y[part]), torch.tensor(z[part]), from_logits=True)
    tables = [None, None]
    dist.all_gather_object(tables, table)
    whole = CalibrationTable("confidence")
    whole.update(torch.tensor(y), torch.tensor(z), from_logits=True)
    found, expected = map(expected_calibration_error, (sum(tables), whole))
    assert abs(found - expected) < 1e-12 and sum(tables).n_samples_seen_ == 200
    dist.destroy_process_group()
"""


def test_tables_of_two_ranks_add_up(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(RANK)]
    ranks = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "store")], stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    for rank in ranks:
        _, error = rank.communicate(timeout=120)
        assert rank.returncode == 0, error.decode()
