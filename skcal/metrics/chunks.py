"""Samples in chunks: slices of arrays, chunks of dask arrays, and what their columns mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_consistent_length

from skcal._labels import column_names, is_table, plain_labels, refuse_other_columns
from skcal._validation import LARGEST_WEIGHT, check_weight, naming, row_blocks
from skcal.notions import resolve_notion
from skcal.sample import Sample, read_sample, refuse_vectors

_SLICE_BYTES = 2**26


class Chunk(NamedTuple):
    """Labels, predictions and weights of consecutive rows, and where they are.

    Attributes
    ----------
    y_true, y_proba, sample_weight : array-like, or dask delayed objects
    place : str
        Says in messages which rows they are; "" for those of a whole array.
    """

    y_true: Any
    y_proba: Any
    sample_weight: Any
    place: str = ""


def array_chunks(y_true, y_proba, sample_weight) -> Iterator[Chunk]:
    """Slices of numpy arrays, memory maps among them; anything else is one chunk."""
    if not isinstance(y_proba, np.ndarray) or y_proba.ndim not in (1, 2):
        yield Chunk(y_true, y_proba, sample_weight)
        return
    row_bytes = 8 * (4 + y_proba[:1].size)
    slices = list(row_blocks(len(y_proba), row_bytes, most=_SLICE_BYTES))
    if len(slices) < 2:
        yield Chunk(y_true, y_proba, sample_weight)
        return
    weighted = sample_weight is not None and not isinstance(sample_weight, Real)
    with naming("y_true"):
        y_true = np.asanyarray(y_true)
    with naming("sample_weight"):
        sample_weight = np.asanyarray(sample_weight) if weighted else sample_weight
        check_consistent_length(y_true, y_proba, sample_weight if weighted else None)
    for rows in slices:
        weight = sample_weight[rows] if weighted else sample_weight
        place = f"Row 0 is row {rows.start} of the array." if rows.start else ""
        yield Chunk(y_true[rows], y_proba[rows], weight, place)


def is_dask(array) -> bool:
    """Whether an array is one of dask's, or another of its collections; imports nothing."""
    return hasattr(array, "__dask_graph__")


def dask_chunks(y_true, y_proba, sample_weight) -> list[Chunk]:
    """Chunks of dask arrays as delayed objects; numpy arrays beside them are cut alike."""
    try:
        import dask.array  # noqa: F401
    except ImportError as error:
        raise ImportError("Dask arrays need dask: pip install 'dask[distributed]'.") from error
    given = {"y_proba": y_proba, "y_true": y_true, "sample_weight": sample_weight}
    given = {name: array for name, array in given.items() if array is not None}
    _refuse_frames(given)
    name, model = next((name, array) for name, array in given.items() if is_dask(array))
    given = {other: _in_chunks_of(array, other, model, name) for other, array in given.items()}
    parts = {name: array.to_delayed().ravel() for name, array in given.items()}
    weights = parts.get("sample_weight", [None] * len(parts["y_proba"]))
    return [
        Chunk(y, p, w, f"This is chunk {number} of the dask array.")
        for number, (y, p, w) in enumerate(
            zip(parts["y_true"], parts["y_proba"], weights, strict=True)
        )
    ]


def _refuse_frames(given) -> None:
    for name, array in given.items():
        if is_dask(array) and not hasattr(array, "chunks"):
            raise ValueError(
                f"{name} is a dask {type(array).__name__}. Pass {name}.to_dask_array(lengths=True)."
            )


def _in_chunks_of(array, name, model, model_name):
    """An array in the chunks of a dask array, of whole rows; of unknown number as they are."""
    import dask.array as da

    array, rows = array if is_dask(array) else np.asarray(array), model.chunks[0]
    unknown = is_dask(array) and np.isnan([*array.chunks[0], *rows]).any()
    whole = dict.fromkeys(range(1, array.ndim), -1)
    if unknown and len(array.chunks[0]) == len(rows):
        return array.rechunk(whole)
    if array.ndim == 0 or array.shape[0] != model.shape[0]:
        raise ValueError(
            f"{name} has shape {array.shape} and {model_name} {model.shape}: one entry per row of "
            "known number is needed. Pass dask arrays in equal chunks."
        )
    return da.asarray(array).rechunk({0: rows, **whole})


@dataclass(frozen=True)
class Columns:
    """The classes and the kind of the columns, fixed by the first chunk.

    Attributes
    ----------
    shape : tuple of int
        The shape of a row: () for 1-D predictions.
    names : list or None
        The names of a data frame's columns.
    labels : list
        The class of each column; (negative, positive) for 1-D predictions.
    notion : str or callable
        The notion, resolved: not "auto".
    pos_label : label or None
        The first of two columns, if that is the positive class.
    from_logits : bool
    """

    shape: tuple
    names: list | None
    labels: list
    notion: str
    pos_label: Any
    from_logits: bool

    @classmethod
    def of(cls, chunks: list[Chunk], notion, labels, pos_label, from_logits) -> Columns:
        """Read the columns of the first chunk, and the labels of all."""
        y, proba = chunks[0][:2]
        with naming("y_proba"):
            names, shape = column_names(proba), np.shape(proba)[1:]
        options = {"labels": labels, "from_logits": from_logits}
        if len(chunks) > 1 and not is_table(y):  # slices of arrays
            n_classes = shape[0] if shape else 2
            y = np.concatenate([_telling_labels(chunk.y_true, n_classes) for chunk in chunks])
            proba, options["from_logits"] = np.full((len(y), *shape), 1 / max(n_classes, 1)), False
        sample = read_sample(y, proba, notion, pos_label=pos_label, **options)
        positive = pos_label if sample.positive_first else None
        classes = sample.given_classes.tolist()  # the columns keep their order
        if pos_label is not None and not shape and labels is None:
            _require_both(classes, y)
        return cls(shape, names, classes, sample.notion, positive, from_logits)

    def read(self, y_true, y_proba, sample_weight) -> Sample:
        """Check a chunk; it may be left without samples of positive weight."""
        with naming("y_proba"):
            shape = np.shape(y_proba)[1:]
        earlier = self.shape, self.names, "y_proba", "chunks"
        refuse_other_columns(shape, column_names(y_proba), *earlier)
        names = ("labels", "pos_label", "from_logits")
        options = {name: getattr(self, name) for name in names}
        sample = read_sample(y_true, y_proba, notion=self.notion, **options)
        refuse_vectors(sample)
        weight = _check_chunk_weight(sample_weight, len(sample.proba))
        keep = slice(None) if weight.all() else weight > 0
        return sample.take(keep, (sample.weight * weight)[keep])

    def require_options(self, notion, labels, pos_label, from_logits) -> None:
        """Raise unless the options of an accumulator without samples fit."""
        notion = resolve_notion(notion, np.zeros((1, *self.shape)))
        labels = self.labels if labels is None else np.asarray(labels).tolist()
        if pos_label is None:
            pos_label = self.pos_label
        elif not self.shape:
            labels, pos_label = [*(set(labels) - {pos_label}), pos_label], None
        elif pos_label != labels[0]:
            pos_label = None
        options = {"labels": labels, "pos_label": pos_label, "from_logits": from_logits}
        self.require(replace(self, notion=notion, **options))

    def require(self, other: Columns) -> None:
        """Raise unless another accumulator's columns mean the same."""
        earlier = self.shape, self.names, "y_proba", "chunks"
        refuse_other_columns(other.shape, other.names, *earlier)
        for name in ("labels", "notion", "pos_label", "from_logits"):
            value, other_value = getattr(self, name), getattr(other, name)
            if value != other_value:
                raise ValueError(
                    f"The accumulators have different {name}, {value!r} and {other_value!r}. Pass "
                    f"{name}= to each."
                )


def _telling_labels(y, n_classes) -> np.ndarray:
    """A few labels of a chunk that hold all of its classes."""
    y = plain_labels(y, "y_true")
    if y.dtype.kind in "iu" and len(y) and y.min() >= 0 and y.max() < n_classes:
        return np.array([y.min(), y.max()])
    return y if y.dtype.kind == "O" else np.unique(y)


def _require_both(classes, y) -> None:
    seen = set(np.asarray(y).ravel().tolist())
    if not seen.issuperset(classes):
        raise ValueError(
            f"The first chunk holds the label {seen.pop()!r} alone, so the other class is unknown. "
            "Pass labels=[negative class, positive class]."
        )


def _check_chunk_weight(sample_weight, n_samples) -> np.ndarray:
    """Weights that are not rescaled, so that chunks agree; all may be zero."""
    with naming("sample_weight"):
        weight = None if sample_weight is None else np.asarray(sample_weight)
    if weight is not None and weight.dtype.kind in "biuf" and weight.ndim and not weight.any():
        check_weight(weight + 1.0, n_samples)
        return np.zeros(n_samples)
    checked = check_weight(sample_weight, n_samples)
    if weight is not None and not 1 / LARGEST_WEIGHT < float(np.max(weight)) < LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight is up to {np.max(weight):.3g}; weights of chunks are not rescaled. "
            "Divide all by one number, so that the largest is between 1e-60 and 1e+60."
        )
    return checked
