"""Small samples with ties, zeros and ones, and what all property tests do with them."""

from dataclasses import fields, is_dataclass

import numpy as np
from hypothesis import strategies as st

from skcal import notions

CLASSES = [0, 1, 2]
NAMES = np.array(["b", "c", "a"])
# Every notion that has a name of its own, and one of each kind that has none.
NOTIONS = (*notions.NOTIONS, "top-2", "lens")
SINGLE = tuple(name for name, notion in notions.NOTIONS.items() if notion.single)
SCALAR = tuple(name for name, notion in notions.NOTIONS.items() if notion.scalar)
VECTORS = tuple(name for name in NOTIONS if name not in SCALAR)


def first_two_together(proba):
    """A lens: the first two classes against the third."""
    return np.tile([0, 0, 1], (len(proba), 1))


def ask(notion, y, proba):
    """Return labels, predictions and options that put the question of a notion."""
    if notion == "binary":
        return (y == 1).astype(int), proba[:, 1], {"notion": "binary"}
    if notion == "multi-label":
        return np.eye(3)[y], proba, {"notion": notion, "labels": CLASSES}
    notion = first_two_together if notion == "lens" else notion
    return y, proba, {"notion": notion, "labels": CLASSES}


@st.composite
def samples(draw, at_least=2, at_most=10, n_classes=3):
    """Labels, and predictions in sixteenths or quarters, which float32 holds exactly."""
    unit, n = draw(st.sampled_from([1, 4])), draw(st.integers(at_least, at_most))
    cut = st.lists(st.integers(0, 16 // unit), min_size=n_classes - 1, max_size=n_classes - 1)
    cuts = unit * np.sort(np.array(draw(st.lists(cut, min_size=n, max_size=n))), axis=1)
    proba = np.diff(cuts, axis=1, prepend=0, append=16) / 16
    y = draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n))
    return np.array(y), proba


seeds = st.integers(0, 1000)
orders = st.sampled_from([[1, 2, 0], [2, 0, 1], [2, 1, 0], [0, 2, 1], [1, 0, 2]])


def edge_cases():
    """Samples at the border of what is allowed."""
    corners = np.eye(3)[[0, 1, 2, 0, 1]]
    return {
        "two samples": (np.array([0, 1]), np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])),
        "two equal samples": (np.array([0, 1]), np.tile([0.5, 0.25, 0.25], (2, 1))),
        "one distinct prediction": (np.array([0, 1, 2, 1, 0]), np.tile([0.5, 0.25, 0.25], (5, 1))),
        "one class": (np.ones(5, dtype=int), np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]])[
            [0, 1, 0, 1, 1]
        ]),
        "certain and right": (np.array([0, 1, 2, 0, 1]), corners),
        "certain and wrong": (np.array([1, 2, 0, 1, 2]), corners),
        "certain or not": (
            np.array([0, 1, 2, 0, 1, 1]),
            np.vstack([corners, [[0.25, 0.5, 0.25]]]),
        ),
    }  # fmt: skip


EDGE_CASES = edge_cases()


def numbers(result):
    """All numbers of a result, in order, as one array."""
    if result is None or isinstance(result, str | bool):
        return np.array([])
    if isinstance(result, dict):
        result = list(result.values())
    elif is_dataclass(result):
        result = [getattr(result, field.name) for field in fields(result)]
    if isinstance(result, list | tuple):
        parts = [numbers(part) for part in result]
        return np.concatenate(parts) if parts else np.array([])
    array = np.asarray(result)
    return array.astype(np.float64).ravel() if array.dtype.kind in "biuf" else np.array([])


def outcome(function, *arguments, **options):
    """Return what a call gives: numbers, or the refusal of a sample that tells nothing."""
    try:
        return numbers(function(*arguments, **options))
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


def assert_same_outcome(one, other, rtol=1e-8, atol=1e-10):
    """Both the same numbers, or both refused (the message may name other rows)."""
    assert isinstance(one, str) == isinstance(other, str), (one, other)
    if not isinstance(one, str):
        np.testing.assert_allclose(other, one, rtol=rtol, atol=atol)


def state(*arrays):
    """Bytes, shape, strides and dtype of arrays."""
    return [(array.tobytes(), array.shape, array.strides, array.dtype) for array in arrays]
