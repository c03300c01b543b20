"""Arrays of 30 rows in any form: those that say the same, and those that no one can read."""

from uuid import uuid4

import numpy as np
import pandas as pd
from scipy import sparse


def on_disk(array, folder):
    path = folder / f"{uuid4().hex}.bin"
    array.tofile(path)
    # Not np.load, whose parser of literals fails in threads of Python 3.11.
    return np.memmap(path, dtype=array.dtype, mode="r", shape=array.shape)


def frozen(array):
    array = array.copy()
    array.setflags(write=False)
    return array


def spread(array):
    """The array as every second entry of a larger one."""
    large = np.full([2 * n for n in array.shape], 7, dtype=array.dtype)
    inner = large[tuple(slice(None, None, 2) for _ in array.shape)]
    inner[...] = array
    return inner


class Subclass(np.ndarray):
    """A subclass of arrays."""


class Duck:
    """An object that turns into an array when asked."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype=dtype)


def odd_index(values):
    return list(range(5, 5 + len(values) // 2)) * 2


READABLE = {
    "float16": lambda a, _: a.astype(np.float16),
    "float32": lambda a, _: a.astype(np.float32),
    "longdouble": lambda a, _: a.astype(np.longdouble),
    "big-endian": lambda a, _: a.astype(">f8"),
    "object": lambda a, _: a.astype(object),
    "list": lambda a, _: a.tolist(),
    "tuple of tuples": lambda a, _: tuple(map(tuple, a.tolist())) if a.ndim > 1 else tuple(a),
    "Fortran order": lambda a, _: np.asfortranarray(a),
    "every second": lambda a, _: spread(a),
    "reversed twice": lambda a, _: a[::-1].copy()[::-1],
    "read-only": lambda a, _: frozen(a),
    "memory map": on_disk,
    "subclass": lambda a, _: a.view(Subclass),
    "duck": lambda a, _: Duck(a),
    "masked array without a mask": lambda a, _: np.ma.array(a),
    "buffer": lambda a, _: memoryview(a),
    "pandas": lambda a, _: (pd.DataFrame if a.ndim > 1 else pd.Series)(a),
    "pandas, odd index": lambda a, _: (pd.DataFrame if a.ndim > 1 else pd.Series)(
        a, index=odd_index(a)
    ),
    "pandas, nullable": lambda a, _: (pd.DataFrame if a.ndim > 1 else pd.Series)(
        a, dtype="Float64"
    ),
}


LABEL_FORMS = {
    "int8": lambda y, _: y.astype(np.int8),
    "uint64": lambda y, _: y.astype(np.uint64),
    "float": lambda y, _: y.astype(float),
    "float16": lambda y, _: y.astype(np.float16),
    "object": lambda y, _: y.astype(object),
    "list": lambda y, _: y.tolist(),
    "range of strings": lambda y, _: np.array(["a", "b", "c"])[y],
    "bytes": lambda y, _: np.array([b"a", b"b", b"c"])[y],
    "object strings": lambda y, _: np.array(["a", "b", "c"], dtype=object)[y],
    "StringDType": lambda y, _: np.array(["a", "b", "c"], dtype=np.dtypes.StringDType())[y],
    "every second": lambda y, _: spread(y),
    "read-only": lambda y, _: frozen(y),
    "memory map": on_disk,
    "subclass": lambda y, _: y.view(Subclass),
    "duck": lambda y, _: Duck(y),
    "masked array without a mask": lambda y, _: np.ma.array(y),
    "pandas, odd index": lambda y, _: pd.Series(y, index=odd_index(y)),
    "pandas, nullable": lambda y, _: pd.Series(y, dtype="Int64"),
    "pandas, string": lambda y, _: pd.Series(np.array(["a", "b", "c"])[y], dtype="string"),
    "pandas, categorical": lambda y, _: pd.Series(pd.Categorical(np.array(["a", "b", "c"])[y])),
    "pandas, categorical codes": lambda y, _: pd.Series(pd.Categorical(y)),
    "negative": lambda y, _: y - 5,
    "far apart": lambda y, _: np.array([-(2**40), 3, 2**40])[y],
}


def with_cell(value, dtype=np.float64):
    def change(p):
        p = p.astype(dtype)
        p[(4,) + (1,) * (p.ndim - 1)] = value
        return p

    return change


def certain(p):
    return np.eye(3)[p.argmax(axis=1)] if p.ndim > 1 else np.rint(p)


UNREADABLE = {
    "None": lambda p: None,
    "number": lambda p: 0.5,
    "0-d": lambda p: np.array(0.5),
    "string": lambda p: "0.5",
    "dictionary": lambda p: {"p": p},
    "set": lambda p: {0.25, 0.75},
    "function": lambda p: len,
    "generator": lambda p: (row for row in p),
    "empty list": lambda p: [],
    "no rows": lambda p: p[:0],
    "no columns": lambda p: p.reshape(len(p), -1)[:, :0],
    "one column": lambda p: p.reshape(len(p), -1)[:, :1],
    "3-d": lambda p: np.stack([p, p], axis=-1) if p.ndim > 1 else p.reshape(5, 3, 2),
    "ragged": lambda p: [[0.5, 0.5], [0.2, 0.3, 0.5]] * 15,
    "nested": lambda p: [[[0.5], [0.5]]] * 30,
    "structured": lambda p: np.zeros(30, dtype=[("a", float), ("b", float)]),
    "matrix": np.matrix,
    "complex": lambda p: p.astype(complex),
    "datetime": lambda p: certain(p).astype("datetime64[D]"),
    "timedelta": lambda p: certain(p).astype("timedelta64[s]"),
    "strings": lambda p: p.astype(str),
    "bytes": lambda p: p.astype("S"),
    "objects": lambda p: np.full(p.shape, object(), dtype=object),
    "dictionaries": lambda p: np.full(p.shape, {}, dtype=object),
    "None inside": with_cell(None, object),
    "string inside": with_cell("x", object),
    "list inside": lambda p: [*p.tolist()[:-1], [0.5, [0.5], 0]],
    "NaN": with_cell(np.nan),
    "infinity": with_cell(np.inf),
    "minus infinity": with_cell(-np.inf, np.float32),
    "huge": with_cell(1e300),
    "huge for float32": with_cell(1e300, np.longdouble),
    "beyond float64": with_cell(np.longdouble("1e4000"), np.longdouble),
    "huge integer": with_cell(10**400, object),
    "negative": with_cell(-0.25),
    "above 1": with_cell(1.25),
    "percentages": lambda p: 100 * p,
    "sparse": lambda p: sparse.csr_array(p.reshape(len(p), -1)),
    "sparse matrix": lambda p: sparse.csc_matrix(p.reshape(len(p), -1)),
    "masked": lambda p: np.ma.masked_equal(p, p.flat[0]),
    "pandas, NA": lambda p: pd.DataFrame(p, dtype="Float64").mask(p.reshape(len(p), -1) == p.max()),
    "pandas, categorical": lambda p: pd.DataFrame({"a": pd.Categorical(["x"] * 30), "b": 0.5}),
    "pandas, dates": lambda p: pd.DataFrame({"a": pd.date_range("2020", periods=30), "b": 0.5}),
    "fewer rows": lambda p: p[:-1],
    "more rows": lambda p: np.concatenate([p, p[:1]]),
}


BAD_LABELS = {
    "None": lambda y: None,
    "number": lambda y: 1,
    "0-d": lambda y: np.array(1),
    "string": lambda y: "abc",
    "dictionary": lambda y: dict(enumerate(y)),
    "function": lambda y: len,
    "generator": lambda y: (one for one in y),
    "empty": lambda y: [],
    "3-d": lambda y: y.reshape(5, 3, 2),
    "ragged": lambda y: [[0], [1, 2]] * 15,
    "fewer": lambda y: y[:-1],
    "more": lambda y: np.append(y, 0),
    "NaN": lambda y: np.where(y == 1, np.nan, y),
    "infinity": lambda y: np.where(y == 1, np.inf, y),
    "complex": lambda y: y + 0.5j,
    "fractions": lambda y: y / 7 + np.arange(30) / 100,
    "mixed types": lambda y: np.array(["a", 1, 2.5], dtype=object)[y],
    "None inside": lambda y: np.array([0, None, 2], dtype=object)[y],
    "lists inside": lambda y: np.array([[0], None, {}], dtype=object)[y],
    "NaT": lambda y: np.array(["NaT", "2020-01-01", "2021-01-01"], dtype="datetime64[D]")[y],
    "another class": lambda y: np.where(np.arange(30) == 7, 3, y),
    "pandas, NA": lambda y: pd.Series(y, dtype="Int64").mask(y == 1),
    "categorical with a gap": lambda y: pd.Series(pd.Categorical(["a", None, "c"] * 10)),
    "sparse": lambda y: sparse.csr_array(y[:, None]),
    "masked": lambda y: np.ma.masked_equal(y, 1),
}


BAD_WEIGHTS = {
    "string": lambda w: "balanced",
    "strings": lambda w: w.astype(str),
    "dictionary": lambda w: {0: 1.0},
    "function": lambda w: len,
    "generator": lambda w: (one for one in w),
    "empty": lambda w: [],
    "a column": lambda w: w[:, None],
    "fewer": lambda w: w[:-1],
    "negative": lambda w: w - 1,
    "zero": lambda w: 0 * w,
    "NaN": lambda w: np.where(w == 1, np.nan, w),
    "infinity": lambda w: np.where(w == 1, np.inf, w),
    "beyond float64": lambda w: w.astype(np.longdouble) * np.longdouble("1e4000"),
    "complex": lambda w: w + 1j,
    "datetime": lambda w: np.full(30, "2020-01-01", dtype="datetime64[D]"),
    "None inside": lambda w: np.where(w == 1, None, w),
    "ragged": lambda w: [[1], [1, 2]] * 15,
    "sparse": lambda w: sparse.csr_array(w[:, None]),
    "masked": lambda w: np.ma.masked_equal(w, 1),
    "pandas, NA": lambda w: pd.Series(w, dtype="Float64").mask(w == 1),
}
